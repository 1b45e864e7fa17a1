//! One function's expressions: its variables, and which file lowers which kind.

use cohort_dialects::builder::{Builder, Op, Val, arguments_of, region_with_block};
use cohort_dialects::keys;
use cohort_frontend::Diagnostic;
use cohort_frontend::program::{Elem, Expr, ExprKind, Function, Type, VarId};
use melior::ir::attribute::{IntegerAttribute, StringAttribute};
use melior::ir::{Region, Type as MlirType, ValueLike};

use crate::cfb;
use crate::dims::Dims;
use crate::module::Unit;
use crate::types::{Types, shown, width};

/// A number that is needed but that nothing tells.
const UNKNOWN_LENGTH: &str = "E0708";

pub struct Lowering<'a, 'c> {
    pub unit: &'a Unit<'a, 'c>,
    function: &'a Function,
    /// What each variable in scope is bound to. Variables are the function's own and scopes are
    /// SSA's, so one table serves all regions.
    vars: Vec<Vec<Val<'c>>>,
    /// The lengths of instance dims in scope.
    pub dims: Dims<'c>,
    /// Phases that have begun.
    phases: i64,
}

impl<'a, 'c> Lowering<'a, 'c> {
    pub fn new(unit: &'a Unit<'a, 'c>, function: &'a Function) -> Self {
        Lowering {
            unit,
            function,
            vars: vec![Vec::new(); function.vars.len()],
            dims: Dims::default(),
            phases: 0,
        }
    }

    pub fn types(&self) -> Types<'a, 'c> {
        self.unit.types
    }

    /// The values that make up an expression's value.
    pub fn expr(&mut self, at: Builder<'c>, expr: &Expr) -> Vec<Val<'c>> {
        let values = self.lower(at, expr);
        if self.dims.take_missed() {
            let label = format!("this is `{}`", shown(&expr.ty, self.unit.program));
            let refusal = Diagnostic::error(
                UNKNOWN_LENGTH,
                "no tensor at hand tells a length of this",
            )
            .at(&expr.span, label)
            .note(
                "a length that only an array's elements have is not known where there may be none",
            );
            self.unit.refused.borrow_mut().push(refusal);
        }
        self.dims.learn(at, &expr.ty, &values);
        values
    }

    fn lower(&mut self, at: Builder<'c>, expr: &Expr) -> Vec<Val<'c>> {
        // A chain of `let` is as long as the source; everything else nests as the parser allows.
        let mut expr = expr;
        loop {
            match &expr.kind {
                ExprKind::Let { var, value, body } => {
                    let values = self.expr(at, value);
                    let ty = &self.function.vars[var.0].ty;
                    self.vars[var.0] = self.fitted(at, values, ty);
                    expr = body;
                }
                ExprKind::Phase(body) => {
                    self.phase(at.at(self.unit.locations.of(&expr.span)));
                    expr = body;
                }
                _ => break,
            }
        }
        let at = at.at(self.unit.locations.of(&expr.span));
        match &expr.kind {
            ExprKind::Let { .. } | ExprKind::Phase(_) => {
                unreachable!("the loop above ends after the last `let`")
            }
            ExprKind::Var(var) => self.vars[var.0].clone(),
            ExprKind::Tuple(elements) => self.exprs(at, elements),
            ExprKind::TupleGet { tuple, index } => self.tuple_get(at, tuple, *index),
            ExprKind::Construct {
                adt,
                constructor,
                fields,
            } => {
                let described = &self.types().adt(*adt).constructors[*constructor];
                let name = &described.name;
                let fields = self.expected(at, fields, &described.fields);
                vec![cfb::construct(
                    at,
                    name,
                    &fields,
                    self.types().whole(&expr.ty),
                )]
            }

            ExprKind::Match { scrutinee, arms } => self.match_(at, &expr.ty, scrutinee, arms),
            ExprKind::If {
                cond,
                then,
                otherwise,
            } => self.if_(at, &expr.ty, cond, then, otherwise),
            ExprKind::While {
                vars,
                init,
                cond,
                body,
            } => self.while_(at, vars, init, cond, body),
            ExprKind::Call { function, args } => self.call(at, &expr.ty, *function, args),

            ExprKind::Array(_)
            | ExprKind::Len(_)
            | ExprKind::Index { .. }
            | ExprKind::Push { .. }
            | ExprKind::Reverse(_)
            | ExprKind::Range(_)
            | ExprKind::Map { .. }
            | ExprKind::Fold { .. }
            | ExprKind::Sum(_)
            | ExprKind::Stack(_) => self.array(at, expr),

            ExprKind::Literal(_)
            | ExprKind::ScalarUnary { .. }
            | ExprKind::ScalarBinary { .. }
            | ExprKind::ScalarCast(_)
            | ExprKind::Force(_)
            | ExprKind::DimSize { .. } => vec![self.scalar(at, expr)],

            ExprKind::Param(_)
            | ExprKind::Lift(_)
            | ExprKind::Unary { .. }
            | ExprKind::Binary { .. }
            | ExprKind::Select { .. }
            | ExprKind::Cast(_)
            | ExprKind::Fill(_)
            | ExprKind::Iota { .. }
            | ExprKind::Random { .. }
            | ExprKind::MatMul { .. }
            | ExprKind::Reduce { .. }
            | ExprKind::ArgMax { .. }
            | ExprKind::Softmax { .. }
            | ExprKind::Row { .. } => vec![self.tensor(at, expr)],

            ExprKind::Length { name, count, body } => {
                let count = self.value(at, count);
                let outside = self.dims.clone();
                self.dims.count(at, name, count);
                let values = self.expr(at, body);
                self.dims = outside;
                values
            }

            ExprKind::Text(text) => {
                let text = StringAttribute::new(at.context(), text).into();
                let ty = self.types().whole(&expr.ty);
                vec![at.value_with(Op::CfbStrConstant, &[], ty, &[(keys::TEXT, text)])]
            }
            ExprKind::SameText { lhs, rhs } => {
                let (lhs, rhs) = (self.value(at, lhs), self.value(at, rhs));
                let ty = self.types().elem(Elem::Bool);
                vec![at.value(Op::CfbStrEqual, &[lhs, rhs], ty)]
            }
            ExprKind::Debug { text, value } => {
                let values = self.expr(at, value);
                let values = self.fitted(at, values, &value.ty);
                cfb::debug(at, text, self.types().whole(&value.ty), &values);
                values
            }

            ExprKind::Slice { .. }
            | ExprKind::Concat { .. }
            | ExprKind::Reshape(_)
            | ExprKind::CheckShape(_)
            | ExprKind::Transpose { .. } => vec![self.shaped(at, expr)],

            ExprKind::Gather { table, indices } => vec![self.gather(at, expr, table, indices)],

            ExprKind::CumSum { .. }
            | ExprKind::Sort { .. }
            | ExprKind::SegmentSum { .. }
            | ExprKind::Scatter { .. } => {
                vec![self.pairwise(at, expr)]
            }
        }
    }

    /// What follows is the next phase.
    fn phase(&mut self, at: Builder<'c>) {
        self.phases += 1;
        let number = IntegerAttribute::new(at.i64(), self.phases).into();
        at.op(Op::CfbPhase, &[], &[], &[(keys::NUMBER, number)], vec![]);
    }

    /// The values of several expressions, one after the other.
    pub fn exprs(&mut self, at: Builder<'c>, exprs: &[Expr]) -> Vec<Val<'c>> {
        exprs.iter().flat_map(|expr| self.expr(at, expr)).collect()
    }

    /// The values of several expressions where values of these types are expected.
    pub fn expected<'t>(
        &mut self,
        at: Builder<'c>,
        exprs: &[Expr],
        types: impl IntoIterator<Item = &'t Type>,
    ) -> Vec<Val<'c>> {
        let mut values = Vec::new();
        for (expr, ty) in exprs.iter().zip(types) {
            let own = self.expr(at, expr);
            values.extend(self.fitted(at, own, ty));
        }
        values
    }

    /// The types of variables of the function.
    pub fn types_of_vars(&self, vars: &[VarId]) -> Vec<&'a Type> {
        vars.iter()
            .map(|var| &self.function.vars[var.0].ty)
            .collect()
    }

    /// The value of an expression that is not a tuple.
    pub fn value(&mut self, at: Builder<'c>, expr: &Expr) -> Val<'c> {
        match self.expr(at, expr)[..] {
            [value] => value,
            ref values => unreachable!("{} values for one of type {:?}", values.len(), expr.ty),
        }
    }

    /// Binds variables, in order, to the flattened values of a tuple of their types.
    pub fn bind_all(&mut self, at: Builder<'c>, vars: &[VarId], values: &[Val<'c>]) {
        let mut rest = values;
        for var in vars {
            let ty = &self.function.vars[var.0].ty;
            let (own, after) = rest.split_at(width(ty));
            self.dims.learn(at, ty, own);
            self.vars[var.0] = own.to_vec();
            rest = after;
        }
    }

    pub fn var_types(&self, vars: &[VarId]) -> Vec<MlirType<'c>> {
        self.types()
            .flat_all(vars.iter().map(|var| &self.function.vars[var.0].ty))
    }

    /// A region whose arguments are variables and whose body, of a value that is expected to have
    /// type `ty`, ends in `terminator`.
    pub fn region(
        &mut self,
        at: Builder<'c>,
        vars: &[VarId],
        body: &Expr,
        ty: &Type,
        terminator: Op,
    ) -> Region<'c> {
        let types = self.var_types(vars);
        let (region, block) = region_with_block(&types, at.location);
        let outside = self.dims.clone();
        let inside = Builder::at_end(at.context(), block, at.location);
        self.bind_all(inside, vars, &arguments_of(block));
        let values = self.expr(inside, body);
        let values = self.fitted(inside, values, ty);
        inside.op(terminator, &values, &[], &[], vec![]);
        self.dims = outside;
        region
    }

    fn tuple_get(&mut self, at: Builder<'c>, tuple: &Expr, index: usize) -> Vec<Val<'c>> {
        let values = self.expr(at, tuple);
        let Type::Tuple(elements) = &tuple.ty else {
            unreachable!("an element of {:?}", tuple.ty)
        };
        let start: usize = elements[..index].iter().map(width).sum();
        values[start..start + width(&elements[index])].to_vec()
    }
}

/// The types of values.
pub fn types_of<'c>(values: &[Val<'c>]) -> Vec<MlirType<'c>> {
    values.iter().map(ValueLike::r#type).collect()
}
