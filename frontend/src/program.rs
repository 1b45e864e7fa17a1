//! The typed program: what the checker produces and what lowering and the oracle consume.
//!
//! It is monomorphic (every generic function, type and dim variable is instantiated), every
//! program dim has its number, every `match` is flat (one arm a constructor, nested patterns are
//! compiled away), every name is resolved, and every implicit step is written out: broadcasting is
//! in the result's type, [`ExprKind::Lift`] takes a host scalar to a tensor, [`ExprKind::Force`]
//! reads a tensor on the host. It still means one instance: nothing here knows of batching.

mod expr;

use std::ops::Range;

pub use crate::stored::{Stored, are_own};
pub use expr::*;

/// A byte range in one source file; `file` is an index into the [`crate::source::Sources`].
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Span {
    /// Index into [`Sources::files`](crate::source::Sources::files).
    pub file: usize,
    /// Bytes of that file's text; the end is not part of it.
    pub range: Range<usize>,
}

/// The program as one instance runs it. Ids such as [`FunctionId`] are indices into its lists.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// In the order of the source.
    pub dims: Vec<ProgramDim>,
    /// In the order of the source, whether the entry uses them or not.
    pub params: Vec<Param>,
    /// Every data type that some function or another type holds, each instantiated once.
    pub adts: Vec<Adt>,
    /// Every function reachable from the entry, each instantiated once a set of arguments' types.
    pub functions: Vec<Function>,
    /// The function that runs for each instance; its parameters are the members of the input.
    pub entry: FunctionId,
}

/// `dim H`, with the number it was bound to.
#[derive(Clone, Debug)]
pub struct ProgramDim {
    /// Unique among the program's dims.
    pub name: String,
    /// From 1 to the largest `i32`.
    pub size: u64,
}

/// `param ul: f32[H, 5*H]`: a tensor shared by all instances.
#[derive(Clone, Debug)]
pub struct Param {
    /// As the program calls it; the weights file may have it under [`Param::stored`].
    pub name: String,
    /// The type of its elements here; a weights file may store it in another precision.
    pub elem: Elem,
    /// Each length at least 1, row-major; empty for a scalar.
    pub shape: Vec<u64>,
    /// Where weights files have it, if not under its own name.
    pub stored: Option<Stored>,
    /// Where the name is declared.
    pub span: Span,
}

/// A monomorphic algebraic data type; `name` reads like the source, `List<i32>`.
#[derive(Clone, Debug)]
pub struct Adt {
    /// As messages and outputs show it; one that would be very long is numbered, `List<#3>`.
    pub name: String,
    /// In the order of the declaration, which [`Arm::constructor`] and values count by.
    pub constructors: Vec<Constructor>,
    /// Where the name is declared.
    pub span: Span,
}

/// One way of building a value of an [`Adt`].
#[derive(Clone, Debug)]
pub struct Constructor {
    /// As inputs and outputs spell it.
    pub name: String,
    /// In the order of the declaration.
    pub fields: Vec<Type>,
    /// The names of the fields: one a field, or none at all.
    pub names: Vec<String>,
}

/// A function at one set of types and dims, or an arm of a large match that became a function.
#[derive(Clone, Debug)]
pub struct Function {
    /// Unique in the program: the source's name, with a suffix where it was instantiated twice.
    pub name: String,
    /// In the order of the arguments; each is one of [`Function::vars`].
    pub params: Vec<VarId>,
    /// The type of the value that a call gives.
    pub result: Type,
    /// Its value is the result.
    pub body: Expr,
    /// Every variable of the function, closures' parameters included, by [`VarId`].
    pub vars: Vec<Var>,
    /// The name in its declaration, or the arm.
    pub span: Span,
}

/// A variable of a function: a parameter, or what an expression within it binds.
#[derive(Clone, Debug)]
pub struct Var {
    /// For people: not unique, and made up where the compiler needs a variable of its own.
    pub name: String,
    /// The type of every value that it is bound to.
    pub ty: Type,
    /// Where it is bound.
    pub span: Span,
}

macro_rules! index_type {
    ($($(#[$about:meta])* $name:ident,)*) => { $(
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
        pub struct $name(pub usize);
    )* };
}
index_type! {
    /// Index into [`Program::params`].
    ParamId,
    /// Index into [`Program::adts`].
    AdtId,
    /// Index into [`Program::functions`].
    FunctionId,
    /// Index into the [`Function::vars`] of the function that it stands in.
    VarId,
}

/// The type of a scalar and of a tensor's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Elem {
    /// IEEE 754 single precision in compiled code.
    F32,
    /// Two's complement; arithmetic wraps.
    I32,
    /// A truth value.
    Bool,
}

/// The length of a tensor's axis.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Dim {
    /// The same for all instances, and part of the type.
    Known(u64),
    /// Known only at run time and different for each instance; equal names within one function
    /// are equal lengths. A name may be arithmetic of others, or the number 0. The one name that
    /// says nothing is `_`: it stands for any length, inside array elements and constructor fields
    /// whose values need not agree. A value whose dim is known may stand where an instance dim is
    /// expected, never the other way round.
    Instance(String),
}

/// The type of a value. It also says where the value lives: on the host, or in tensors.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// A host value: it comes from the input's structure or from literals, never from a tensor.
    Scalar(Elem),
    /// Rank 0 is a scalar that a tensor computation produced.
    Tensor {
        /// The type of its elements.
        elem: Elem,
        /// From the outermost axis to the innermost.
        shape: Vec<Dim>,
    },
    /// Components in order, which may differ in type.
    Tuple(Vec<Type>),
    /// Any number of values of one type, on the host; each instance has its own length.
    Array(Box<Type>),
    /// A value of a data type, on the host; tensors may be among its fields.
    Adt(AdtId),
    /// A text, which only passes through.
    Str,
}
