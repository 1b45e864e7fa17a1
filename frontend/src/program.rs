//! The typed program: what the checker produces and what lowering and the oracle consume.
//!
//! It is monomorphic (every generic function, type and dim variable is instantiated), every
//! program dim has its number, every `match` is flat (one arm a constructor, nested patterns are
//! compiled away), every name is resolved, and every implicit step is written out: broadcasting is
//! in the result's type, [`ExprKind::Lift`] takes a host scalar to a tensor, [`ExprKind::Force`]
//! reads a tensor on the host. It still means one instance: nothing here knows of batching.

use std::ops::Range;

pub use crate::stored::{Stored, are_own};

/// A byte range in one source file; `file` is an index into the [`crate::source::Sources`].
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Span {
    pub file: usize,
    pub range: Range<usize>,
}

#[derive(Clone, Debug, Default)]
pub struct Program {
    pub dims: Vec<ProgramDim>,
    pub params: Vec<Param>,
    pub adts: Vec<Adt>,
    /// Every function reachable from the entry, each instantiated once a set of arguments' types.
    pub functions: Vec<Function>,
    pub entry: FunctionId,
}

/// `dim H`, with the number it was bound to.
#[derive(Clone, Debug)]
pub struct ProgramDim {
    pub name: String,
    pub size: u64,
}

/// `param ul: f32[H, 5*H]`: a tensor shared by all instances.
#[derive(Clone, Debug)]
pub struct Param {
    pub name: String,
    pub elem: Elem,
    pub shape: Vec<u64>,
    /// Where weights files have it, if not under its own name.
    pub stored: Option<Stored>,
    pub span: Span,
}

/// A monomorphic algebraic data type; `name` reads like the source, `List<i32>`.
#[derive(Clone, Debug)]
pub struct Adt {
    pub name: String,
    pub constructors: Vec<Constructor>,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct Constructor {
    pub name: String,
    pub fields: Vec<Type>,
    /// The names of the fields: one a field, or none at all.
    pub names: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct Function {
    /// Unique in the program: the source's name, with a suffix where it was instantiated twice.
    pub name: String,
    pub params: Vec<VarId>,
    pub result: Type,
    pub body: Expr,
    /// Every variable of the function, closures' parameters included, by [`VarId`].
    pub vars: Vec<Var>,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct Var {
    pub name: String,
    pub ty: Type,
    pub span: Span,
}

macro_rules! index_type {
    ($($name:ident),*) => { $(
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
        pub struct $name(pub usize);
    )* };
}
index_type!(ParamId, AdtId, FunctionId, VarId);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Elem {
    F32,
    I32,
    Bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Dim {
    Known(u64),
    /// Known only at run time and different for each instance; equal names within one function
    /// are equal lengths. A name may be arithmetic of others, or the number 0. The one name that says nothing is `_`: it stands for any length, inside
    /// array elements and constructor fields whose values need not agree. A value whose dim is
    /// known may stand where an instance dim is expected, never the other way round.
    Instance(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// A host value: it comes from the input's structure or from literals, never from a tensor.
    Scalar(Elem),
    /// Rank 0 is a scalar that a tensor computation produced.
    Tensor {
        elem: Elem,
        shape: Vec<Dim>,
    },
    Tuple(Vec<Type>),
    Array(Box<Type>),
    Adt(AdtId),
    /// A text, which only passes through.
    Str,
}

#[derive(Clone, Debug)]
pub struct Expr {
    pub kind: ExprKind,
    pub ty: Type,
    pub span: Span,
}

/// A closure written where `map`, `fold` and their like take one; it may use outer variables.
#[derive(Clone, Debug)]
pub struct Closure {
    pub params: Vec<VarId>,
    pub body: Box<Expr>,
}

#[derive(Clone, Debug)]
pub struct Arm {
    /// Index into [`Adt::constructors`].
    pub constructor: usize,
    /// One a field; `None` for a field that the arm does not use.
    pub fields: Vec<Option<VarId>>,
    pub body: Expr,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Literal {
    F32(f64),
    I32(i32),
    Bool(bool),
}

#[derive(Clone, Debug)]
pub enum ExprKind {
    /// A host scalar.
    Literal(Literal),
    Var(VarId),
    Param(ParamId),
    Let {
        var: VarId,
        value: Box<Expr>,
        body: Box<Expr>,
    },
    /// The value of `body`, all of which runs after everything before it, in all instances. Only
    /// between the bindings of the entry.
    Phase(Box<Expr>),
    /// A text of the program.
    Text(String),
    /// Whether two texts are the same, a host `bool`.
    SameText {
        lhs: Box<Expr>,
        rhs: Box<Expr>,
    },
    /// The value, which is shown to the user with this text.
    Debug {
        text: String,
        value: Box<Expr>,
    },
    /// The value of `body`, in which the instance dim of this name is as long as `count` says, a host
    /// integer; a negative one is the instance's error.
    Length {
        name: String,
        count: Box<Expr>,
        body: Box<Expr>,
    },
    Tuple(Vec<Expr>),
    TupleGet {
        tuple: Box<Expr>,
        index: usize,
    },
    Construct {
        adt: AdtId,
        constructor: usize,
        fields: Vec<Expr>,
    },
    /// Exhaustive: exactly one arm a constructor, in the type's order.
    Match {
        scrutinee: Box<Expr>,
        arms: Vec<Arm>,
    },
    /// `cond` is a host `bool` (a tensor's decision is wrapped in [`ExprKind::Force`]).
    If {
        cond: Box<Expr>,
        then: Box<Expr>,
        otherwise: Box<Expr>,
    },
    /// `while`: `vars` start at `init`; while `cond` holds they become the elements of `body`
    /// (a tuple, or the one value when there is one variable); the value is their last state,
    /// shaped like `body`.
    While {
        vars: Vec<VarId>,
        init: Vec<Expr>,
        cond: Box<Expr>,
        body: Box<Expr>,
    },
    Call {
        function: FunctionId,
        args: Vec<Expr>,
    },

    // Arrays.
    Array(Vec<Expr>),
    Len(Box<Expr>),
    /// `xs[i]` with a host index; out of range is the instance's error.
    Index {
        array: Box<Expr>,
        index: Box<Expr>,
    },
    Push {
        array: Box<Expr>,
        value: Box<Expr>,
    },
    Reverse(Box<Expr>),
    /// `[0, 1, …, count-1]`, empty for a negative count.
    Range(Box<Expr>),
    /// Over one or more arrays of equal length; unequal lengths are the instance's error.
    Map {
        arrays: Vec<Expr>,
        closure: Closure,
    },
    /// The closure takes the accumulator, then the element.
    Fold {
        array: Box<Expr>,
        init: Box<Expr>,
        closure: Closure,
    },
    /// The sum of an array of tensors or scalars; zeros for an empty array.
    Sum(Box<Expr>),
    /// An array of `n` tensors as one tensor with a leading instance dim.
    Stack(Box<Expr>),

    // Scalars on the host.
    ScalarUnary {
        op: Unary,
        value: Box<Expr>,
    },
    ScalarBinary {
        op: Binary,
        lhs: Box<Expr>,
        rhs: Box<Expr>,
    },
    ScalarCast(Box<Expr>),

    // Between host and tensors.
    /// A host scalar as a rank-0 tensor.
    Lift(Box<Expr>),
    /// A rank-0 tensor read on the host.
    Force(Box<Expr>),

    // Tensors. Elementwise operands broadcast as in NumPy to the shape of the result's type.
    Unary {
        op: Unary,
        value: Box<Expr>,
    },
    Binary {
        op: Binary,
        lhs: Box<Expr>,
        rhs: Box<Expr>,
    },
    Select {
        cond: Box<Expr>,
        then: Box<Expr>,
        otherwise: Box<Expr>,
    },
    Cast(Box<Expr>),
    /// Every element is the rank-0 or host value.
    Fill(Box<Expr>),
    /// Ranks (1|2) by (1|2), contracted over the last dim of `lhs` and the first of `rhs`.
    MatMul {
        lhs: Box<Expr>,
        rhs: Box<Expr>,
    },
    /// The reduced axis leaves the shape.
    Reduce {
        op: Reduction,
        value: Box<Expr>,
        axis: usize,
    },
    /// Index of the first largest element along `axis`, as i32; the axis leaves the shape.
    ArgMax {
        value: Box<Expr>,
        axis: usize,
    },
    Softmax {
        value: Box<Expr>,
        axis: usize,
    },
    /// Each element is the sum of those along `axis` up to it.
    CumSum {
        value: Box<Expr>,
        axis: usize,
    },
    /// The elements along `axis` in order, or as i32 where each one was. Of equal ones the first
    /// comes first, and a NaN comes after all numbers.
    Sort {
        value: Box<Expr>,
        axis: usize,
        order: Order,
        part: SortPart,
    },
    /// Row `s` of the result is the sum of the rows of `values` whose element of `segments`, of
    /// rank 1, is `s`; one out of range is the instance's error.
    SegmentSum {
        values: Box<Expr>,
        segments: Box<Expr>,
    },
    /// `value` with row `indices[i]` replaced by `rows[i]`, of numbers; of equal indices the last one
    /// counts, and one out of range is the instance's error.
    Scatter {
        value: Box<Expr>,
        indices: Box<Expr>,
        rows: Box<Expr>,
    },
    /// `start .. start + length` along `axis`.
    Slice {
        value: Box<Expr>,
        axis: usize,
        start: u64,
        length: u64,
    },
    Concat {
        values: Vec<Expr>,
        axis: usize,
    },
    Reshape(Box<Expr>),
    /// The value, whose lengths must be those of the type, or the instance ends with an error.
    CheckShape(Box<Expr>),
    /// Axis `i` of the result is axis `permutation[i]` of the value.
    Transpose {
        value: Box<Expr>,
        permutation: Vec<usize>,
    },
    /// `table[index]`: one slice of the first axis, with a host index; out of range is the
    /// instance's error.
    Row {
        table: Box<Expr>,
        index: Box<Expr>,
    },
    /// `gather(table, indices)`: rows by a rank-1 i32 tensor.
    Gather {
        table: Box<Expr>,
        indices: Box<Expr>,
    },
    /// Length of an axis as a host i32.
    DimSize {
        value: Box<Expr>,
        axis: usize,
    },
    /// An i32 tensor whose every element is its own index along `axis`; the shape is the type's.
    Iota {
        axis: usize,
    },
    /// Counter-based uniform numbers in [0, 1), keyed by the instance's id and `counter`.
    Random {
        counter: Box<Expr>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unary {
    Neg,
    Not,
    Abs,
    Exp,
    Log,
    Sqrt,
    Sin,
    Cos,
    Tanh,
    Erf,
    Sigmoid,
    Relu,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Binary {
    Add,
    Sub,
    Mul,
    Div,
    /// Remainder; integers only.
    Rem,
    Min,
    Max,
    Pow,
    And,
    Or,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    Ascending,
    Descending,
}

/// What is asked of a sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SortPart {
    Values,
    Indices,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reduction {
    Sum,
    Max,
    Min,
    Mean,
}
