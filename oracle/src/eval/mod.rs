//! Evaluation: one function a family of expressions, each the definition of what it means.

mod arrays;
mod frame;
mod random;
mod recording;
mod scalars;
mod tensors;

use std::io::Write;
use std::sync::Arc;

use cohort_frontend::program::{Arm, Expr, ExprKind, FunctionId, Literal, Program, Type, VarId};
use serde_json::{Map, Value as Json};

use self::frame::Frame;
pub(crate) use self::random::Key;
use crate::encode;
use crate::error::{ErrorKind, InstanceError};
use crate::limits::Limits;
use crate::reverse::Tape;
use crate::scalar::Scalar;
use crate::stack;
use crate::value::Value;

/// Evaluates one instance and counts what it uses.
pub(crate) struct Evaluator<'p> {
    program: &'p Program,
    /// The program's parameters, in its order.
    params: &'p [Value],
    /// The instance's id, and what its random numbers are made with.
    id: &'p Json,
    key: Key,
    limits: Limits,
    depth: u64,
    steps: u64,
    /// Where gradients are asked for.
    tape: Option<Tape<'p>>,
}

impl<'p> Evaluator<'p> {
    pub(crate) fn new(
        program: &'p Program,
        params: &'p [Value],
        id: &'p Json,
        key: Key,
        limits: Limits,
    ) -> Evaluator<'p> {
        Evaluator {
            program,
            params,
            id,
            key,
            limits,
            depth: 0,
            steps: 0,
            tape: None,
        }
    }

    /// Calls a function, which makes it one deeper for as long as it runs.
    pub(crate) fn call(
        &mut self,
        function: FunctionId,
        args: Vec<Value>,
    ) -> Result<Value, InstanceError> {
        self.step()?;
        let function = &self.program.functions[function.0];
        if self.depth >= self.limits.max_depth || stack::is_nearly_exhausted() {
            let (name, depth) = (&function.name, self.depth);
            return Err(InstanceError::new(
                ErrorKind::DepthLimit,
                format!("the call of `{name}` at depth {depth} is one too deep, see --max-depth"),
            ));
        }
        self.depth += 1;
        let mut frame = Frame::new(function);
        for (&param, arg) in function.params.iter().zip(args) {
            frame.set(param, arg)?;
        }
        let result = self.eval(&mut frame, &function.body)?;
        self.depth -= 1;
        Ok(result)
    }

    /// Counts a call, a loop iteration or the application of a closure.
    fn step(&mut self) -> Result<(), InstanceError> {
        self.steps += 1;
        if self.steps > self.limits.max_steps {
            let message = format!("more than {} steps, see --max-steps", self.limits.max_steps);
            return Err(InstanceError::new(ErrorKind::StepLimit, message));
        }
        Ok(())
    }

    /// Refuses a tensor that is too large before it is computed, unless only its operands tell its lengths.
    fn refuse_large(&self, frame: &Frame<'p>, ty: &Type) -> Result<(), InstanceError> {
        match ty {
            Type::Tensor { shape, .. } => match frame.lengths(shape) {
                Ok(lengths) => self.refuse_many(&lengths),
                Err(_) => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// Refuses a tensor of these lengths if its elements take more than the limit.
    fn refuse_many(&self, lengths: &[usize]) -> Result<(), InstanceError> {
        const ELEMENT_BYTES: u64 = 4;
        let many = |all: u64, length: &usize| all.saturating_mul(*length as u64);
        let is_empty = lengths.contains(&0);
        if is_empty || lengths.iter().fold(ELEMENT_BYTES, many) <= self.limits.max_memory {
            return Ok(());
        }
        let (lengths, most) = (describe_lengths(lengths), self.limits.max_memory);
        let message = format!("{lengths} elements need more than {most} bytes, see --max-memory");
        Err(InstanceError::new(ErrorKind::MemoryLimit, message))
    }

    /// The value of `expr`, which is checked to be of its type.
    fn eval(&mut self, frame: &mut Frame<'p>, expr: &'p Expr) -> Result<Value, InstanceError> {
        let value = match &expr.kind {
            ExprKind::Literal(literal) => Value::Scalar(literal_value(*literal)),
            ExprKind::Var(var) => frame.get(*var)?,
            ExprKind::Param(param) => self.params[param.0].clone(),
            ExprKind::Let { var, value, body } => self.eval_let(frame, *var, value, body)?,
            // When things run does not change what they are.
            ExprKind::Phase(body) => self.eval(frame, body)?,
            ExprKind::Text(text) => Value::Text(text.as_str().into()),
            ExprKind::SameText { lhs, rhs } => {
                let lhs = self.eval(frame, lhs)?.into_text()?;
                let rhs = self.eval(frame, rhs)?.into_text()?;
                Value::Scalar(Scalar::Bool(lhs == rhs))
            }
            ExprKind::Debug { text, value } => {
                let shown = self.eval(frame, value)?;
                self.show(text, &value.ty, &shown);
                shown
            }
            ExprKind::Length { name, count, body } => {
                let count = self.eval(frame, count)?.into_i32()?;
                frame.count(name, count)?;
                self.eval(frame, body)?
            }
            ExprKind::Tuple(elements) => Value::tuple(self.eval_all(frame, elements)?),
            ExprKind::TupleGet { tuple, index } => {
                let elements = self.eval(frame, tuple)?.into_tuple()?;
                let element = elements.get(*index);
                element
                    .cloned()
                    .ok_or_else(|| InstanceError::internal("no such tuple element"))?
            }
            ExprKind::Construct {
                adt,
                constructor,
                fields,
            } => Value::adt(*adt, *constructor, self.eval_all(frame, fields)?),
            ExprKind::Match { scrutinee, arms } => self.eval_match(frame, scrutinee, arms)?,
            ExprKind::If {
                cond,
                then,
                otherwise,
            } => {
                let branch = if self.eval(frame, cond)?.into_bool()? {
                    then
                } else {
                    otherwise
                };
                self.eval(frame, branch)?
            }
            ExprKind::While {
                vars,
                init,
                cond,
                body,
            } => self.eval_while(frame, vars, init, cond, body)?,
            ExprKind::Call { function, args } => {
                let args = self.eval_all(frame, args)?;
                self.call(*function, args)?
            }

            ExprKind::Array(_)
            | ExprKind::Len(_)
            | ExprKind::Index { .. }
            | ExprKind::Push { .. }
            | ExprKind::Reverse(_)
            | ExprKind::Range(_)
            | ExprKind::Map { .. }
            | ExprKind::Fold { .. }
            | ExprKind::Sum(_)
            | ExprKind::Stack(_) => self.eval_array(frame, expr)?,

            ExprKind::ScalarUnary { .. }
            | ExprKind::ScalarBinary { .. }
            | ExprKind::ScalarCast(_)
            | ExprKind::Lift(_)
            | ExprKind::Force(_)
            | ExprKind::DimSize { .. } => self.eval_scalar(frame, expr)?,

            _ => {
                self.refuse_large(frame, &expr.ty)?;
                Value::Tensor(self.operation(expr, |evaluator| {
                    evaluator.eval_tensor(frame, expr).map(Arc::new)
                })?)
            }
        };
        frame.check(&expr.ty, &value)?;
        Ok(value)
    }

    /// Writes a value to the standard error stream.
    fn show(&self, text: &str, ty: &Type, value: &Value) {
        let mut line = Map::new();
        line.insert("id".to_owned(), self.id.clone());
        line.insert("debug".to_owned(), Json::from(text));
        match encode::value(self.program, ty, value, self.limits.max_nesting()) {
            Ok(value) => line.insert("value".to_owned(), value),
            Err(error) => line.insert("error".to_owned(), Json::from(error.message)),
        };
        // Nothing can be done where stderr is gone.
        let _ = writeln!(std::io::stderr(), "{}", Json::Object(line));
    }

    fn eval_all(
        &mut self,
        frame: &mut Frame<'p>,
        exprs: &'p [Expr],
    ) -> Result<Vec<Value>, InstanceError> {
        exprs.iter().map(|expr| self.eval(frame, expr)).collect()
    }

    fn eval_let(
        &mut self,
        frame: &mut Frame<'p>,
        var: VarId,
        value: &'p Expr,
        body: &'p Expr,
    ) -> Result<Value, InstanceError> {
        let value = self.eval(frame, value)?;
        frame.set(var, value)?;
        self.eval(frame, body)
    }

    fn eval_match(
        &mut self,
        frame: &mut Frame<'p>,
        scrutinee: &'p Expr,
        arms: &'p [Arm],
    ) -> Result<Value, InstanceError> {
        let value = self.eval(frame, scrutinee)?.into_adt()?;
        let arm = arms
            .iter()
            .find(|arm| arm.constructor == value.constructor)
            .ok_or_else(|| InstanceError::internal("a match lacks a constructor"))?;
        for (var, field) in arm.fields.iter().zip(&value.fields) {
            if let Some(var) = var {
                frame.set(*var, field.clone())?;
            }
        }
        self.eval(frame, &arm.body)
    }

    fn eval_while(
        &mut self,
        frame: &mut Frame<'p>,
        vars: &[VarId],
        init: &'p [Expr],
        cond: &'p Expr,
        body: &'p Expr,
    ) -> Result<Value, InstanceError> {
        let mut state = self.eval_all(frame, init)?;
        loop {
            for (&var, value) in vars.iter().zip(&state) {
                frame.set(var, value.clone())?;
            }
            if !self.eval(frame, cond)?.into_bool()? {
                break;
            }
            self.step()?;
            let next = self.eval(frame, body)?;
            state = match vars {
                [_] => vec![next],
                _ => next.into_tuple()?.to_vec(),
            };
        }
        Ok(match vars {
            [_] => state.remove(0),
            _ => Value::tuple(state),
        })
    }
}

/// `3 × 4`
fn describe_lengths(lengths: &[usize]) -> String {
    let each: Vec<String> = lengths.iter().map(usize::to_string).collect();
    each.join(" × ")
}

fn literal_value(literal: Literal) -> Scalar {
    match literal {
        Literal::F32(value) => Scalar::F32(value),
        Literal::I32(value) => Scalar::I32(value),
        Literal::Bool(value) => Scalar::Bool(value),
    }
}
