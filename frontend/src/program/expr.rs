//! Expressions of a typed program.

use super::{AdtId, FunctionId, ParamId, Span, Type, VarId};

/// An expression with its type.
#[derive(Clone, Debug)]
pub struct Expr {
    /// What it computes.
    pub kind: ExprKind,
    /// The type of its value. Some kinds say nothing else about the shape.
    pub ty: Type,
    /// The part of the source that it stands for.
    pub span: Span,
}

/// A closure written where `map`, `fold` and their like take one; it may use outer variables.
#[derive(Clone, Debug)]
pub struct Closure {
    /// Variables of the function around it, bound anew for each application.
    pub params: Vec<VarId>,
    /// The value of an application.
    pub body: Box<Expr>,
}

/// What a [`ExprKind::Match`] does for one constructor.
#[derive(Clone, Debug)]
pub struct Arm {
    /// Index into [`super::Adt::constructors`].
    pub constructor: usize,
    /// One a field; `None` for a field that the arm does not use.
    pub fields: Vec<Option<VarId>>,
    /// The value where this constructor is found.
    pub body: Expr,
}

/// A scalar that is written in the program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Literal {
    /// Kept as it was read; compiled code rounds it to f32.
    F32(f64),
    /// An integer within its range.
    I32(i32),
    /// `true` or `false`.
    Bool(bool),
}

/// What an expression computes. Operands are evaluated in the order in which they stand.
#[derive(Clone, Debug)]
pub enum ExprKind {
    /// A host scalar.
    Literal(Literal),
    /// The value that a variable of the function has.
    Var(VarId),
    /// A tensor that all instances share.
    Param(ParamId),
    /// `let`: the value of `body`, in which `var` stands for `value`.
    Let {
        /// Bound here alone.
        var: VarId,
        /// Evaluated first, and once.
        value: Box<Expr>,
        /// The only part that sees `var`.
        body: Box<Expr>,
    },
    /// The value of `body`, all of which runs after everything before it, in all instances. Only
    /// between the bindings of the entry.
    Phase(Box<Expr>),
    /// A text of the program.
    Text(String),
    /// Whether two texts are the same, a host `bool`.
    SameText {
        /// A [`Type::Str`].
        lhs: Box<Expr>,
        /// A [`Type::Str`].
        rhs: Box<Expr>,
    },
    /// The value, which is shown to the user with this text.
    Debug {
        /// Heads the line that is written.
        text: String,
        /// Of any type; the instance waits until all of it is computed.
        value: Box<Expr>,
    },
    /// The value of `body`, in which the instance dim of this name is as long as `count` says, a host
    /// integer; a negative one is the instance's error.
    Length {
        /// As in [`super::Dim::Instance`].
        name: String,
        /// Evaluated before `body`.
        count: Box<Expr>,
        /// The part in which the dim has this length.
        body: Box<Expr>,
    },
    /// A tuple of these components.
    Tuple(Vec<Expr>),
    /// A component of a tuple.
    TupleGet {
        /// Of a [`Type::Tuple`].
        tuple: Box<Expr>,
        /// Counted from 0, and within the tuple.
        index: usize,
    },
    /// A value of a data type.
    Construct {
        /// The type of the value.
        adt: AdtId,
        /// Index into [`super::Adt::constructors`].
        constructor: usize,
        /// One for each of [`super::Constructor::fields`], in order.
        fields: Vec<Expr>,
    },
    /// Exhaustive: exactly one arm a constructor, in the type's order.
    Match {
        /// Of a [`Type::Adt`]; evaluated once.
        scrutinee: Box<Expr>,
        /// Indexed by constructor.
        arms: Vec<Arm>,
    },
    /// `cond` is a host `bool` (a tensor's decision is wrapped in [`ExprKind::Force`]).
    If {
        /// Evaluated first.
        cond: Box<Expr>,
        /// The value where `cond` holds; otherwise not evaluated.
        then: Box<Expr>,
        /// The value where `cond` does not hold.
        otherwise: Box<Expr>,
    },
    /// `while`: `vars` start at `init`; while `cond` holds they become the elements of `body`
    /// (a tuple, or the one value when there is one variable); the value is their last state,
    /// shaped like `body`.
    While {
        /// Assigned together, before each turn.
        vars: Vec<VarId>,
        /// One for each of `vars`.
        init: Vec<Expr>,
        /// Asked before each turn; sees `vars`.
        cond: Box<Expr>,
        /// The next state; sees `vars`.
        body: Box<Expr>,
    },
    /// The result of a function, which may be the one that calls.
    Call {
        /// The instance that the types of the arguments select.
        function: FunctionId,
        /// One for each of [`super::Function::params`].
        args: Vec<Expr>,
    },

    // Arrays.
    /// An array of these elements, all of one type.
    Array(Vec<Expr>),
    /// The number of elements, a host i32.
    Len(Box<Expr>),
    /// `xs[i]` with a host index; out of range is the instance's error.
    Index {
        /// Of a [`Type::Array`].
        array: Box<Expr>,
        /// A host i32, from 0.
        index: Box<Expr>,
    },
    /// A new array with one more element at its end.
    Push {
        /// The elements before it; the array itself stays as it is.
        array: Box<Expr>,
        /// The last element.
        value: Box<Expr>,
    },
    /// The elements of an array, last one first.
    Reverse(Box<Expr>),
    /// `[0, 1, …, count-1]`, empty for a negative count.
    Range(Box<Expr>),
    /// Over one or more arrays of equal length; unequal lengths are the instance's error.
    Map {
        /// At least one; evaluated in order.
        arrays: Vec<Expr>,
        /// Takes an element of each array, and gives one of the result.
        closure: Closure,
    },
    /// The closure takes the accumulator, then the element.
    Fold {
        /// Taken from the first element to the last.
        array: Box<Expr>,
        /// The value for an empty array.
        init: Box<Expr>,
        /// Gives the next accumulator.
        closure: Closure,
    },
    /// The sum of an array of tensors or scalars; zeros for an empty array.
    Sum(Box<Expr>),
    /// An array of `n` tensors as one tensor with a leading instance dim.
    Stack(Box<Expr>),

    // Scalars on the host.
    /// An operation on a host scalar.
    ScalarUnary {
        /// Applied as to one element of a tensor.
        op: Unary,
        /// On the host; what tensors computed comes through [`ExprKind::Force`].
        value: Box<Expr>,
    },
    /// An operation on two host scalars of one type.
    ScalarBinary {
        /// For [`Binary::And`] and [`Binary::Or`], `rhs` is evaluated only if `lhs` leaves it open.
        op: Binary,
        /// Of the type of `rhs`; evaluated first.
        lhs: Box<Expr>,
        /// An integer that is divided by a 0 here is the instance's error.
        rhs: Box<Expr>,
    },
    /// A host scalar of another element type; see [`ExprKind::Cast`].
    ScalarCast(Box<Expr>),

    // Between host and tensors.
    /// A host scalar as a rank-0 tensor.
    Lift(Box<Expr>),
    /// A rank-0 tensor read on the host.
    Force(Box<Expr>),

    // Tensors. Elementwise operands broadcast as in NumPy to the shape of the result's type.
    /// An operation on each element by itself.
    Unary {
        /// Applied to every element.
        op: Unary,
        /// Of the result's shape.
        value: Box<Expr>,
    },
    /// An operation on elements of equal index, once both operands are broadcast.
    Binary {
        /// Applied to every pair of elements.
        op: Binary,
        /// Of the same element type as `rhs`.
        lhs: Box<Expr>,
        /// A 0 among the divisors of integers is the instance's error.
        rhs: Box<Expr>,
    },
    /// Of each element one of two, both of which are computed; all three operands broadcast.
    Select {
        /// Of `bool`; where it holds, `then` is taken.
        cond: Box<Expr>,
        /// Of the result's element type.
        then: Box<Expr>,
        /// Of the result's element type.
        otherwise: Box<Expr>,
    },
    /// To the element type of the result. From f32 to i32 it truncates, and saturates beyond the
    /// range; a `bool` becomes 0 or 1.
    Cast(Box<Expr>),
    /// Every element is the rank-0 or host value.
    Fill(Box<Expr>),
    /// A product of vectors or matrices, contracted over the last dim of `lhs` and the last but one
    /// of `rhs`, or its only one; dims before those of the matrices broadcast.
    MatMul {
        /// Of f32, and of rank 1 or more.
        lhs: Box<Expr>,
        /// Of f32, and of rank 1 or more.
        rhs: Box<Expr>,
    },
    /// The reduced axis leaves the shape.
    Reduce {
        /// How the elements of a line become one.
        op: Reduction,
        /// Of rank 1 or more.
        value: Box<Expr>,
        /// Counted from 0, the outermost.
        axis: usize,
    },
    /// Index of the first largest element along `axis`, as i32; the axis leaves the shape.
    ArgMax {
        /// Of f32 or i32; an axis of length 0 is the instance's error.
        value: Box<Expr>,
        /// Counted from 0, the outermost.
        axis: usize,
    },
    /// `exp(x - m) / Σ exp(x - m)` of each line along `axis`, whose largest element is `m`.
    Softmax {
        /// Of f32, and of the result's shape.
        value: Box<Expr>,
        /// Counted from 0, the outermost.
        axis: usize,
    },
    /// Each element is the sum of those along `axis` up to it.
    CumSum {
        /// Of f32 or i32, and of the result's shape.
        value: Box<Expr>,
        /// Counted from 0, the outermost.
        axis: usize,
    },
    /// The elements along `axis` in order, or as i32 where each one was. Of equal ones the first
    /// comes first, and a NaN comes after all numbers.
    Sort {
        /// Of f32 or i32; the result may be shorter along `axis`, and takes the first of the order.
        value: Box<Expr>,
        /// Counted from 0, the outermost.
        axis: usize,
        /// Of the values, also where indices are asked for.
        order: Order,
        /// What the result holds.
        part: SortPart,
    },
    /// Row `s` of the result is the sum of the rows of `values` whose element of `segments`, of
    /// rank 1, is `s`; one out of range is the instance's error.
    SegmentSum {
        /// Of rank 1 or more; a row is a slice of the first axis.
        values: Box<Expr>,
        /// Of i32, one for each row of `values`.
        segments: Box<Expr>,
    },
    /// `value` with row `indices[i]` replaced by `rows[i]`, of numbers; of equal indices the last one
    /// counts, and one out of range is the instance's error.
    Scatter {
        /// Of rank 1 or more; a row is a slice of the first axis.
        value: Box<Expr>,
        /// Of i32 and rank 1, one for each of `rows`.
        indices: Box<Expr>,
        /// Each shaped like a row of `value`.
        rows: Box<Expr>,
    },
    /// `start .. start + length` along `axis`.
    Slice {
        /// Its length along `axis` is known, and covers the slice.
        value: Box<Expr>,
        /// Counted from 0, the outermost.
        axis: usize,
        /// Index of the first element taken.
        start: u64,
        /// How many are taken.
        length: u64,
    },
    /// Tensors one behind the other along `axis`, all other lengths being equal.
    Concat {
        /// At least one, of one element type.
        values: Vec<Expr>,
        /// Counted from 0, the outermost.
        axis: usize,
    },
    /// The same elements in row-major order, in the shape of the type; another number of them is
    /// the instance's error.
    Reshape(Box<Expr>),
    /// The value, whose lengths must be those of the type, or the instance ends with an error.
    CheckShape(Box<Expr>),
    /// Axis `i` of the result is axis `permutation[i]` of the value.
    Transpose {
        /// Of the rank of `permutation`.
        value: Box<Expr>,
        /// Each axis of `value` once.
        permutation: Vec<usize>,
    },
    /// `table[index]`: one slice of the first axis, with a host index; out of range is the
    /// instance's error.
    Row {
        /// Of rank 1 or more.
        table: Box<Expr>,
        /// A host i32, from 0.
        index: Box<Expr>,
    },
    /// `gather(table, indices)`: rows by a rank-1 i32 tensor.
    Gather {
        /// Of rank 1 or more.
        table: Box<Expr>,
        /// Each within the first axis of `table`; one out of range is the instance's error.
        indices: Box<Expr>,
    },
    /// Length of an axis as a host i32.
    DimSize {
        /// Of rank 1 or more.
        value: Box<Expr>,
        /// Counted from 0, the outermost.
        axis: usize,
    },
    /// An i32 tensor whose every element is its own index along `axis`; the shape is the type's.
    Iota {
        /// Counted from 0, the outermost.
        axis: usize,
    },
    /// Counter-based uniform numbers in [0, 1), keyed by the instance's id and `counter`.
    Random {
        /// A host i32; the same one gives the same numbers again.
        counter: Box<Expr>,
    },
}

/// An operation on one element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unary {
    /// `-x` of f32 or i32.
    Neg,
    /// `!x` of `bool`.
    Not,
    /// `|x|` of f32 or i32.
    Abs,
    /// `e^x`, of f32 as all that follow.
    Exp,
    /// The natural logarithm.
    Log,
    /// The square root; NaN of a negative number.
    Sqrt,
    /// The sine; angles are in radians.
    Sin,
    /// The cosine; angles are in radians.
    Cos,
    /// The hyperbolic tangent.
    Tanh,
    /// The error function.
    Erf,
    /// `1 / (1 + e^-x)`.
    Sigmoid,
    /// `x` if it is positive, else 0; NaN stays NaN.
    Relu,
}

/// An operation on two elements of one type, which the result has too; a comparison gives a `bool`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Binary {
    /// Addition; integers wrap.
    Add,
    /// Subtraction; integers wrap.
    Sub,
    /// Multiplication; integers wrap.
    Mul,
    /// Division; of integers it truncates towards zero.
    Div,
    /// Remainder; integers only.
    Rem,
    /// The smaller number, or NaN if one of them is.
    Min,
    /// The larger number, or NaN if one of them is.
    Max,
    /// `lhs` to the power of `rhs`. Integers wrap; a negative exponent gives 0, but for 1 and -1.
    Pow,
    /// Conjunction of `bool`.
    And,
    /// Disjunction of `bool`.
    Or,
    /// Whether they are equal, as a `bool`; NaN equals nothing.
    Eq,
    /// Whether they differ, as NaN does from everything.
    Ne,
    /// Whether `lhs < rhs`, of numbers.
    Lt,
    /// Whether `lhs <= rhs`, of numbers.
    Le,
    /// Whether `lhs > rhs`, of numbers.
    Gt,
    /// Whether `lhs >= rhs`, of numbers.
    Ge,
}

/// The direction of a sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// Smallest first.
    Ascending,
    /// Largest first.
    Descending,
}

/// What is asked of a sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SortPart {
    /// The elements themselves.
    Values,
    /// Where each of them was, from 0, as i32.
    Indices,
}

/// How the elements of a line, those along the reduced axis, become one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// 0 for an empty line.
    Sum,
    /// The largest; of an empty line `-∞`, or the least i32.
    Max,
    /// The smallest; of an empty line `∞`, or the greatest i32.
    Min,
    /// Of f32 alone; NaN for an empty line.
    Mean,
}
