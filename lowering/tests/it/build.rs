//! Building typed programs without the parser, and lowering them.

use cohort_frontend::program::{
    Adt, AdtId, Binary, Closure, Constructor, Dim, Elem, Expr, ExprKind, Function, FunctionId,
    Literal, Param, ParamId, Program, Span, Type, Unary, Var, VarId,
};
use cohort_frontend::{Diagnostic, Sources};
use cohort_lowering::lower;
use melior::ir::Module;

pub const F32: Type = Type::Scalar(Elem::F32);
pub const I32: Type = Type::Scalar(Elem::I32);
pub const BOOL: Type = Type::Scalar(Elem::Bool);

pub const SOURCE: &str = "first line\n  let é = second line\n";

/// A place in [`SOURCE`], line 2, column 11.
pub fn place() -> Span {
    let start = SOURCE.find("second").expect("the source has it");
    Span {
        file: 1,
        range: start..start + 6,
    }
}

pub fn tensor(shape: &[u64]) -> Type {
    tensor_of(Elem::F32, shape)
}

pub fn tensor_of(elem: Elem, shape: &[u64]) -> Type {
    Type::Tensor {
        elem,
        shape: shape.iter().map(|length| Dim::Known(*length)).collect(),
    }
}

/// `f32[n, …]`
pub fn ragged(shape: &[u64]) -> Type {
    let known = shape.iter().map(|length| Dim::Known(*length));
    let shape = std::iter::once(Dim::Instance("n".to_owned()))
        .chain(known)
        .collect();
    Type::Tensor {
        elem: Elem::F32,
        shape,
    }
}

pub fn array(element: Type) -> Type {
    Type::Array(Box::new(element))
}

pub fn expr(kind: ExprKind, ty: Type) -> Expr {
    Expr {
        kind,
        ty,
        span: place(),
    }
}

pub fn f32(value: f64) -> Expr {
    expr(ExprKind::Literal(Literal::F32(value)), F32)
}

pub fn i32(value: i32) -> Expr {
    expr(ExprKind::Literal(Literal::I32(value)), I32)
}

pub fn bool(value: bool) -> Expr {
    expr(ExprKind::Literal(Literal::Bool(value)), BOOL)
}

pub fn boxed(expr: Expr) -> Box<Expr> {
    Box::new(expr)
}

pub fn unary(op: Unary, value: Expr) -> Expr {
    let ty = value.ty.clone();
    expr(
        ExprKind::Unary {
            op,
            value: boxed(value),
        },
        ty,
    )
}

pub fn binary(op: Binary, lhs: Expr, rhs: Expr, ty: Type) -> Expr {
    expr(
        ExprKind::Binary {
            op,
            lhs: boxed(lhs),
            rhs: boxed(rhs),
        },
        ty,
    )
}

pub fn scalar_binary(op: Binary, lhs: Expr, rhs: Expr, ty: Type) -> Expr {
    expr(
        ExprKind::ScalarBinary {
            op,
            lhs: boxed(lhs),
            rhs: boxed(rhs),
        },
        ty,
    )
}

pub fn lift(value: Expr) -> Expr {
    let Type::Scalar(elem) = value.ty else {
        panic!("only a scalar is lifted")
    };
    expr(ExprKind::Lift(boxed(value)), tensor_of(elem, &[]))
}

/// A program of one entry and what it needs.
#[derive(Default)]
pub struct Test {
    pub program: Program,
    vars: Vec<Var>,
    arguments: Vec<VarId>,
}

impl Test {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn var(&mut self, name: &str, ty: Type) -> VarId {
        self.vars.push(Var {
            name: name.to_owned(),
            ty,
            span: place(),
        });
        VarId(self.vars.len() - 1)
    }

    /// A use of a variable.
    pub fn get(&self, var: VarId) -> Expr {
        expr(ExprKind::Var(var), self.vars[var.0].ty.clone())
    }

    /// An argument of the entry, as the expression that reads it.
    pub fn argument(&mut self, name: &str, ty: Type) -> Expr {
        let var = self.var(name, ty);
        self.arguments.push(var);
        self.get(var)
    }

    pub fn param(&mut self, name: &str, shape: &[u64]) -> Expr {
        let (elem, shape) = (Elem::F32, shape.to_vec());
        let ty = tensor(&shape);
        self.program.params.push(Param {
            name: name.to_owned(),
            elem,
            shape,
            stored: None,
            span: place(),
        });
        expr(ExprKind::Param(ParamId(self.program.params.len() - 1)), ty)
    }

    pub fn adt(&mut self, name: &str, constructors: &[(&str, Vec<Type>)]) -> AdtId {
        let constructors = constructors
            .iter()
            .map(|(name, fields)| Constructor {
                names: vec![],
                name: (*name).to_owned(),
                fields: fields.clone(),
            })
            .collect();
        self.program.adts.push(Adt {
            name: name.to_owned(),
            constructors,
            span: place(),
        });
        AdtId(self.program.adts.len() - 1)
    }

    pub fn let_(
        &mut self,
        name: &str,
        value: Expr,
        body: impl FnOnce(&mut Self, Expr) -> Expr,
    ) -> Expr {
        let var = self.var(name, value.ty.clone());
        let used = self.get(var);
        let body = body(self, used);
        let ty = body.ty.clone();
        expr(
            ExprKind::Let {
                var,
                value: boxed(value),
                body: boxed(body),
            },
            ty,
        )
    }

    pub fn closure(
        &mut self,
        params: &[(&str, Type)],
        body: impl FnOnce(&mut Self, Vec<Expr>) -> Expr,
    ) -> Closure {
        let params: Vec<_> = params
            .iter()
            .map(|(name, ty)| self.var(name, ty.clone()))
            .collect();
        let used = params.iter().map(|var| self.get(*var)).collect();
        let body = boxed(body(self, used));
        Closure { params, body }
    }

    /// Ends what was built so far as a function of its own and begins the next.
    pub fn function(&mut self, name: &str, body: Expr) -> FunctionId {
        self.program.functions.push(Function {
            name: name.to_owned(),
            params: std::mem::take(&mut self.arguments),
            result: body.ty.clone(),
            body,
            vars: std::mem::take(&mut self.vars),
            span: place(),
        });
        FunctionId(self.program.functions.len() - 1)
    }

    /// The text of the module whose entry computes `body`; it was verified and read back.
    pub fn lower(self, body: Expr) -> String {
        self.try_lower(body)
            .unwrap_or_else(|refused| panic!("{refused:?}"))
    }

    pub fn try_lower(mut self, body: Expr) -> Result<String, Vec<Diagnostic>> {
        self.program.entry = self.function("main", body);
        lower_program(&self.program)
    }
}

pub fn lower_program(program: &Program) -> Result<String, Vec<Diagnostic>> {
    let context = cohort_dialects::new_context();
    let mut sources = Sources::new();
    sources.add("test.coh", SOURCE);
    let module = lower(&context, program, &sources)?;
    let text = module.as_operation().to_string();
    let again = Module::parse(&context, &text).expect("what is printed is read back");
    assert_eq!(again.as_operation().to_string(), text);
    Ok(text)
}

/// Checks that the lines appear in the text, in this order.
#[track_caller]
pub fn expect(text: &str, parts: &[&str]) {
    let mut rest = text;
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => panic!("no `{part}` in the rest of\n{text}"),
        }
    }
}
