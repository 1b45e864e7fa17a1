//! The checked program before any number is known: typed, resolved, still generic and symbolic.
//!
//! Patterns are kept nested and scalars are not yet told apart by where they live; `mono` flattens
//! the former for each instantiation and `stage` settles the latter.

use crate::dims::Poly;
use crate::program::{Binary, Literal, Order, Reduction, SortPart, Span, Unary};
use crate::types::Ty;

pub type LocalId = usize;

#[derive(Clone, Debug)]
pub struct Local {
    pub name: String,
    pub ty: Ty,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct Function {
    /// The first locals are the parameters.
    pub params: Vec<LocalId>,
    pub locals: Vec<Local>,
    pub body: Expr,
}

#[derive(Clone, Debug)]
pub struct Expr {
    pub kind: Kind,
    pub ty: Ty,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum Kind {
    /// A mistake was reported; a program that holds one never leaves the checker.
    Error,
    Literal(Literal),
    Local(LocalId),
    Param(usize),
    /// A dim's number as an i32.
    Dim(Poly),
    /// The pattern always matches.
    Let {
        pattern: Pattern,
        value: Box<Expr>,
        body: Box<Expr>,
    },
    /// What follows is a phase of its own.
    Phase(Box<Expr>),
    /// The body, in which a dim of this function is as long as a number of the host says.
    Length {
        dim: Poly,
        count: Box<Expr>,
        body: Box<Expr>,
    },
    Tuple(Vec<Expr>),
    Construct {
        constructor: usize,
        fields: Vec<Expr>,
    },
    Match {
        scrutinee: Box<Expr>,
        arms: Vec<Arm>,
    },
    If {
        cond: Box<Expr>,
        then: Box<Expr>,
        otherwise: Box<Expr>,
    },
    While {
        vars: Vec<LocalId>,
        init: Vec<Expr>,
        cond: Box<Expr>,
        body: Box<Expr>,
    },
    Map {
        arrays: Vec<Expr>,
        params: Vec<Pattern>,
        body: Box<Expr>,
    },
    Fold {
        array: Box<Expr>,
        init: Box<Expr>,
        acc: Pattern,
        element: Pattern,
        body: Box<Expr>,
    },
    Call {
        function: usize,
        types: Vec<Ty>,
        dims: Vec<Poly>,
        args: Vec<Expr>,
    },
    Array(Vec<Expr>),
    Op(Op, Vec<Expr>),
}

#[derive(Clone, Debug)]
pub struct Arm {
    pub pattern: Pattern,
    /// A `bool` that must hold too.
    pub guard: Option<Expr>,
    pub body: Expr,
}

/// A built-in on values; its result's shape is the expression's type.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    Len,
    /// A scalar that the host knows from here on.
    Host,
    Index,
    Push,
    Reverse,
    Range,
    SumArray,
    Stack,
    Unary(Unary),
    Binary(Binary),
    Select,
    Cast,
    Fill,
    MatMul,
    Reduce(Reduction, usize),
    ArgMax(usize),
    Softmax(usize),
    CumSum(usize),
    Sort {
        axis: usize,
        order: Order,
        part: SortPart,
    },
    SegmentSum,
    Scatter,
    /// Of a tensor from a number on, to another or to the end; a part of a `split` has no numbers.
    Slice {
        axis: usize,
        /// The start and the length, unless the instance computes them.
        bounds: Option<(Poly, Poly)>,
    },
    Concat(usize),
    Reshape,
    Transpose(Vec<usize>),
    Row,
    Gather,
    DimSize(usize),
    Iota(usize),
    Random,
    /// A text of the program.
    Text(String),
    /// Whether two texts are the same.
    SameText,
    /// The value, shown with this text.
    Debug(String),
    /// The value, whose lengths must be those of the result.
    CheckShape,
}

#[derive(Clone, Debug)]
pub struct Pattern {
    pub kind: PatternKind,
    pub ty: Ty,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum PatternKind {
    Wildcard,
    Bind(LocalId),
    Construct {
        adt: usize,
        constructor: usize,
        fields: Vec<Pattern>,
    },
    Tuple(Vec<Pattern>),
    /// Whichever matches first; all bind the same locals.
    Or(Vec<Pattern>),
    Int(i32),
    Bool(bool),
}

impl Pattern {
    /// What an or-pattern chooses from; the pattern itself if it is none.
    pub fn alternatives(&self) -> Vec<&Pattern> {
        match &self.kind {
            PatternKind::Or(parts) => parts.iter().flat_map(Pattern::alternatives).collect(),
            _ => vec![self],
        }
    }
}
