//! Types of random programs.

use std::fmt;

/// The dims of a tensor by name: `A` and `B` are the program's, `n` and `m` the instance's, and
/// numbers stand for themselves.
pub type Shape = Vec<&'static str>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elem {
    F32,
    I32,
    Bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ty {
    F32,
    I32,
    Bool,
    Str,
    Tensor(Elem, Shape),
    Tuple(Vec<Ty>),
    Array(Box<Ty>),
    /// `Nothing | Box(f32[A], i32) | Pair((f32[B], bool), Box)`
    Box,
    /// `Leaf(i32) | Node(Tree, Tree) | Many(f32[A], [Tree])`
    Tree,
}

impl Ty {
    pub fn f32(shape: &[&'static str]) -> Ty {
        Ty::Tensor(Elem::F32, shape.to_vec())
    }
}

/// Whether a dim differs by instance, and so may be 0.
pub fn is_instance(dim: &str) -> bool {
    dim == "n" || dim == "m"
}

/// As `zeros` and its like take a shape.
pub fn shape_text(shape: &[&str]) -> String {
    format!("[{}]", shape.join(", "))
}

impl fmt::Display for Elem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Elem::F32 => "f32",
            Elem::I32 => "i32",
            Elem::Bool => "bool",
        })
    }
}

impl fmt::Display for Ty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ty::F32 => f.write_str("f32"),
            Ty::I32 => f.write_str("i32"),
            Ty::Bool => f.write_str("bool"),
            Ty::Str => f.write_str("str"),
            Ty::Tensor(elem, shape) => write!(f, "{elem}{}", shape_text(shape)),
            Ty::Tuple(parts) => {
                let parts: Vec<String> = parts.iter().map(Ty::to_string).collect();
                write!(f, "({})", parts.join(", "))
            }
            Ty::Array(element) => write!(f, "[{element}]"),
            Ty::Box => f.write_str("Box"),
            Ty::Tree => f.write_str("Tree"),
        }
    }
}
