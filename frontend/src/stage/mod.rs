//! Tells host scalars from those that tensors computed.
//!
//! A scalar is a host value unless a tensor computation made it, or it shares its place with one
//! that a tensor computation made: a variable, a field, a result, an array's elements. The least
//! such assignment is found by following values through the program ([`flow`]); then the program is
//! written anew with [`ExprKind::Lift`] where a host value takes a tensor's place and
//! [`ExprKind::Force`] where a tensor decides ([`emit`]).
//!
//! Each function and type is assigned once, not once a use. One rule goes beyond the least
//! solution: a `bool` that is a variable of `while` stays on the host. It is there to end the loop,
//! so it is read when it is computed and not once more before the first turn.
//!
//! A program whose gradients are wanted takes its floats as tensors, and gives them as such: gradients
//! flow through tensors alone.
//!
//! [`ExprKind::Lift`]: crate::program::ExprKind::Lift
//! [`ExprKind::Force`]: crate::program::ExprKind::Force

mod coerce;
mod divisors;
mod emit;
mod flow;
mod hoist;
mod operations;
mod scalars;
mod unused;
pub mod walk;

use crate::diagnostic::Diagnostic;
use crate::program::{Elem, Program, Type};

use self::flow::Flow;

/// Where the scalars of a type live, each as a place in [`Flow`].
#[derive(Clone, Debug)]
pub enum Places {
    Scalar(usize),
    Tuple(Vec<Places>),
    Array(Box<Places>),
    /// A tensor, or a type whose fields have places of their own.
    Opaque,
}

/// `is_differentiated` says whether gradients flow from what the entry gives to what it takes.
pub fn stage(mut program: Program, is_differentiated: bool) -> Result<Program, Vec<Diagnostic>> {
    unused::leave_out(&mut program);
    let mut flow = Flow::new(&program);
    flow.program();
    if is_differentiated {
        flow.differentiate_entry();
    }
    flow.solve();
    emit::program(&program, &flow)
}

/// Whether a value of the type is a `bool` that `while` keeps on the host.
fn is_flag(ty: &Type) -> bool {
    *ty == Type::Scalar(Elem::Bool)
}
