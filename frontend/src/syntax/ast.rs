//! The abstract syntax tree: what was written, with nothing resolved.
//!
//! Every node that can nest carries its `depth`, one more than its deepest child's. The parser
//! refuses a node that is too deep, which is what lets every later walk recurse without a check.

use crate::program::{Span, Stored};

#[derive(Clone, Debug)]
pub struct Ident {
    pub name: String,
    pub span: Span,
}

#[derive(Clone, Debug, Default)]
pub struct Module {
    pub items: Vec<Item>,
}

#[derive(Clone, Debug)]
pub enum Item {
    /// `import "file.coh"`
    Import(ImportItem),
    /// `dim V, D`
    Dims(Vec<Ident>),
    /// `param emb: f32[V, D]`
    Param(ParamItem),
    /// `let heads = 4`
    Const(ConstItem),
    Type(TypeItem),
    /// `type Row = f32[H]`
    Alias(AliasItem),
    Function(FunctionItem),
}

#[derive(Clone, Debug)]
pub struct ImportItem {
    pub path: String,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct ParamItem {
    pub name: Ident,
    pub ty: TypeExpr,
    pub stored: Option<StoredItem>,
}

/// `from "layer.{}.weight".T`
#[derive(Clone, Debug)]
pub struct StoredItem {
    pub stored: Stored,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct ConstItem {
    pub name: Ident,
    pub value: Expr,
}

#[derive(Clone, Debug)]
pub struct TypeItem {
    pub name: Ident,
    pub generics: Vec<Ident>,
    pub constructors: Vec<ConstructorItem>,
}

#[derive(Clone, Debug)]
pub struct AliasItem {
    pub name: Ident,
    pub generics: Vec<Ident>,
    pub ty: TypeExpr,
}

#[derive(Clone, Debug)]
pub struct ConstructorItem {
    pub name: Ident,
    pub fields: Vec<FieldItem>,
}

/// `Tree`, or `left: Tree`
#[derive(Clone, Debug)]
pub struct FieldItem {
    pub name: Option<Ident>,
    pub ty: TypeExpr,
}

#[derive(Clone, Debug)]
pub struct FunctionItem {
    pub name: Ident,
    pub generics: Vec<Ident>,
    pub params: Vec<(Ident, TypeExpr)>,
    pub result: TypeExpr,
    pub body: Expr,
}

#[derive(Clone, Debug)]
pub struct TypeExpr {
    pub kind: TypeKind,
    pub span: Span,
    pub depth: u32,
}

#[derive(Clone, Debug)]
pub enum TypeKind {
    /// `f32`, `Tree`, `List<i32>`, `T`
    Name {
        name: Ident,
        args: Vec<TypeExpr>,
    },
    /// `f32[n, 3*H]`
    Tensor {
        elem: Ident,
        shape: Vec<DimExpr>,
    },
    Array(Box<TypeExpr>),
    Tuple(Vec<TypeExpr>),
    /// Stands where a mistake was already reported.
    Error,
}

#[derive(Clone, Debug)]
pub struct DimExpr {
    pub kind: DimKind,
    pub span: Span,
    pub depth: u32,
}

#[derive(Clone, Debug)]
pub enum DimKind {
    Name(Ident),
    Number(u64),
    /// `_`: some length.
    Any,
    Binary {
        op: DimOp,
        lhs: Box<DimExpr>,
        rhs: Box<DimExpr>,
    },
    Error,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DimOp {
    Add,
    Sub,
    Mul,
    Div,
}

#[derive(Clone, Debug)]
pub struct Expr {
    pub kind: ExprKind,
    pub span: Span,
    pub depth: u32,
}

#[derive(Clone, Debug)]
pub enum ExprKind {
    Int(u64),
    Float(f64),
    Bool(bool),
    /// What stands between quotes; only some built-ins take one.
    Text(String),
    Name(Ident),
    /// `f(a, b)`: a function, a built-in or a constructor.
    Call {
        name: Ident,
        args: Vec<Arg>,
    },
    Index {
        value: Box<Expr>,
        indices: Vec<IndexArg>,
    },
    /// `t.left`
    Field {
        value: Box<Expr>,
        name: Ident,
    },
    Unary {
        op: UnaryOp,
        value: Box<Expr>,
    },
    Binary {
        op: BinaryOp,
        op_span: Span,
        lhs: Box<Expr>,
        rhs: Box<Expr>,
    },
    Tuple(Vec<Expr>),
    Array(Vec<Expr>),
    Block {
        statements: Vec<Statement>,
        result: Box<Expr>,
    },
    If {
        cond: Box<Expr>,
        then: Box<Expr>,
        otherwise: Box<Expr>,
    },
    Match {
        scrutinee: Box<Expr>,
        arms: Vec<Arm>,
    },
    While {
        cond: Box<Expr>,
        vars: Vec<LoopVar>,
        body: Box<Expr>,
    },
    For {
        pattern: Pattern,
        array: Box<Expr>,
        vars: Vec<LoopVar>,
        body: Box<Expr>,
    },
    Error,
}

#[derive(Clone, Debug)]
pub enum Statement {
    Let(Box<Let>),
    /// `phase;`
    Phase(Span),
}

#[derive(Clone, Debug)]
pub struct Let {
    pub pattern: Pattern,
    pub ty: Option<TypeExpr>,
    pub value: Expr,
}

#[derive(Clone, Debug)]
pub struct Arm {
    pub pattern: Pattern,
    /// `if w > 0`: the arm is taken only if this holds too.
    pub guard: Option<Expr>,
    pub body: Expr,
}

/// `with (h: f32[H] = h0)`
#[derive(Clone, Debug)]
pub struct LoopVar {
    pub name: Ident,
    pub ty: Option<TypeExpr>,
    pub init: Expr,
}

#[derive(Clone, Debug)]
pub enum Arg {
    Value(Expr),
    /// `axis = 0`
    Named(Ident, Expr),
    Closure(Closure),
}

#[derive(Clone, Debug)]
pub struct Closure {
    pub params: Vec<Pattern>,
    pub body: Expr,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum IndexArg {
    At(Expr),
    /// `a..b`, `a..`, `..b`, `..`
    Range {
        start: Option<Expr>,
        end: Option<Expr>,
        span: Span,
    },
}

#[derive(Clone, Debug)]
pub struct Pattern {
    pub kind: PatternKind,
    pub span: Span,
    pub depth: u32,
}

#[derive(Clone, Debug)]
pub enum PatternKind {
    Wildcard,
    /// A variable, or a constructor without fields when it begins with a capital.
    Name(Ident),
    Constructor {
        name: Ident,
        fields: Vec<FieldPattern>,
    },
    /// `Node(..)`: the constructor with whatever fields.
    AnyFields(Ident),
    Tuple(Vec<Pattern>),
    /// `A | B`: whichever matches first; all bind the same names.
    Or(Vec<Pattern>),
    Int(i64),
    Bool(bool),
    Error,
}

/// `p`, or `left = p`
#[derive(Clone, Debug)]
pub struct FieldPattern {
    pub name: Option<Ident>,
    pub pattern: Pattern,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryOp {
    Neg,
    Not,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinaryOp {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    MatMul,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    And,
    Or,
}

impl BinaryOp {
    pub fn symbol(self) -> &'static str {
        match self {
            BinaryOp::Add => "+",
            BinaryOp::Sub => "-",
            BinaryOp::Mul => "*",
            BinaryOp::Div => "/",
            BinaryOp::Rem => "%",
            BinaryOp::MatMul => "@",
            BinaryOp::Eq => "==",
            BinaryOp::Ne => "!=",
            BinaryOp::Lt => "<",
            BinaryOp::Le => "<=",
            BinaryOp::Gt => ">",
            BinaryOp::Ge => ">=",
            BinaryOp::And => "&&",
            BinaryOp::Or => "||",
        }
    }
}
