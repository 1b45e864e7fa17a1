//! Builders for typed programs, and ways to run them.

use std::collections::BTreeMap;

use cohort_frontend::program::{
    Adt, AdtId, Closure, Constructor, Dim, Elem, Expr, ExprKind, Function, FunctionId, Literal,
    Param, Program, Span, Type, Var, VarId,
};
use cohort_oracle::{InstanceError, Limits, Oracle, Tensor};
use serde_json::Value as Json;

pub fn expr(ty: Type, kind: ExprKind) -> Expr {
    Expr {
        kind,
        ty,
        span: Span::default(),
    }
}

pub fn boxed(ty: Type, kind: ExprKind) -> Box<Expr> {
    Box::new(expr(ty, kind))
}

pub const I32: Type = Type::Scalar(Elem::I32);
pub const F32: Type = Type::Scalar(Elem::F32);
pub const BOOL: Type = Type::Scalar(Elem::Bool);

pub fn array_of(element: Type) -> Type {
    Type::Array(Box::new(element))
}

/// A tensor type; a number is a known dim, anything else an instance dim.
pub fn tensor_of(elem: Elem, dims: &[&str]) -> Type {
    let dim = |name: &&str| match name.parse() {
        Ok(length) => Dim::Known(length),
        Err(_) => Dim::Instance(name.to_string()),
    };
    Type::Tensor {
        elem,
        shape: dims.iter().map(dim).collect(),
    }
}

pub fn f32s(dims: &[&str]) -> Type {
    tensor_of(Elem::F32, dims)
}

pub fn i32s(dims: &[&str]) -> Type {
    tensor_of(Elem::I32, dims)
}

pub fn int(value: i32) -> Expr {
    expr(I32, ExprKind::Literal(Literal::I32(value)))
}

pub fn float(value: f64) -> Expr {
    expr(F32, ExprKind::Literal(Literal::F32(value)))
}

pub fn boolean(value: bool) -> Expr {
    expr(BOOL, ExprKind::Literal(Literal::Bool(value)))
}

pub fn call(result: Type, function: usize, args: Vec<Expr>) -> Expr {
    expr(
        result,
        ExprKind::Call {
            function: FunctionId(function),
            args,
        },
    )
}

pub fn closure(params: &[usize], body: Expr) -> Closure {
    Closure {
        params: params.iter().copied().map(VarId).collect(),
        body: Box::new(body),
    }
}

/// A function under construction: its parameters come first, other variables follow.
pub struct Build {
    function: Function,
}

impl Build {
    pub fn new(name: &str, params: &[(&str, Type)]) -> Build {
        let mut build = Build {
            function: Function {
                name: name.to_string(),
                params: (0..params.len()).map(VarId).collect(),
                result: I32,
                body: int(0),
                vars: Vec::new(),
                span: Span::default(),
            },
        };
        for (name, ty) in params {
            build.local(name, ty.clone());
        }
        build
    }

    pub fn local(&mut self, name: &str, ty: Type) -> usize {
        self.function.vars.push(Var {
            name: name.to_string(),
            ty,
            span: Span::default(),
        });
        self.function.vars.len() - 1
    }

    pub fn var(&self, index: usize) -> Expr {
        expr(
            self.function.vars[index].ty.clone(),
            ExprKind::Var(VarId(index)),
        )
    }

    pub fn boxed_var(&self, index: usize) -> Box<Expr> {
        Box::new(self.var(index))
    }

    pub fn finish(mut self, body: Expr) -> Function {
        self.function.result = body.ty.clone();
        self.function.body = body;
        self.function
    }
}

/// A program whose entry is its first function.
pub fn program(functions: Vec<Function>) -> Program {
    Program {
        functions,
        ..Program::default()
    }
}

pub fn with_param(mut program: Program, name: &str, elem: Elem, shape: &[u64]) -> Program {
    program.params.push(Param {
        name: name.to_string(),
        elem,
        shape: shape.to_vec(),
        stored: None,
        span: Span::default(),
    });
    program
}

/// Adds `type Tree = Leaf(i32) | Node(Tree, Tree) | Empty`.
pub fn with_tree(mut program: Program) -> Program {
    let tree = Type::Adt(AdtId(0));
    let constructor = |name: &str, fields| Constructor {
        names: vec![],
        name: name.to_string(),
        fields,
    };
    program.adts.push(Adt {
        name: "Tree".to_string(),
        constructors: vec![
            constructor("Leaf", vec![I32]),
            constructor("Node", vec![tree.clone(), tree]),
            constructor("Empty", vec![]),
        ],
        span: Span::default(),
    });
    program
}

pub fn run(program: &Program, args: Json) -> Result<Json, InstanceError> {
    run_with(program, &[], args, Limits::default())
}

pub fn run_with(
    program: &Program,
    weights: &[(&str, Tensor)],
    args: Json,
    limits: Limits,
) -> Result<Json, InstanceError> {
    let weights: BTreeMap<String, Tensor> = weights
        .iter()
        .map(|(name, tensor)| (name.to_string(), tensor.clone()))
        .collect();
    Oracle::new(program, weights)
        .expect("the weights fit")
        .run("test", &args, limits)
}

/// Runs a program that is one expression over the entry's parameters, and gives its output.
pub fn evaluate(
    params: &[(&str, Type)],
    args: Json,
    body: impl FnOnce(&mut Build) -> Expr,
) -> Result<Json, InstanceError> {
    let mut build = Build::new("main", params);
    let body = body(&mut build);
    run(&program(vec![build.finish(body)]), args)
}
