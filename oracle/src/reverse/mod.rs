//! Reverse mode: which tensor was computed of which, and the way back.
//!
//! A [`Tape`] holds the operations of one instance in the order in which they ran. What carries values
//! from one to the next (variables, calls, data types, arrays, closures) leaves no trace on it: a value
//! is known by the address of its tensor. [`Tape::pull_back`] goes through the operations from the last
//! to the first, and the rule of each ([`rules`]) adds what its result's cotangent makes of its operands'.
//!
//! The rules are written from the definition of each operation, and share nothing with the compiler's.

mod elementwise;
mod movement;
mod products;
mod reductions;
mod rules;

use std::collections::HashMap;
use std::sync::Arc;

use cohort_frontend::program::{Elem, Expr};

use crate::error::InstanceError;
use crate::tensor::Tensor;

/// What was computed, as far as gradients flow through it.
#[derive(Default)]
pub(crate) struct Tape<'p> {
    nodes: Vec<Node<'p>>,
    /// The nodes by the address of their tensor, which no other can have while they hold it.
    places: HashMap<usize, usize>,
    /// The operands of the operations under way; those of the innermost come last.
    operands: Vec<Arc<Tensor>>,
}

struct Node<'p> {
    value: Arc<Tensor>,
    /// `None` of what gradients are asked for.
    made: Option<Made<'p>>,
}

struct Made<'p> {
    by: &'p Expr,
    of: Vec<Arc<Tensor>>,
}

/// Where the operands of an operation begin.
pub(crate) struct Mark(usize);

impl<'p> Tape<'p> {
    /// Gradients flow to `value`, unless they cannot.
    pub(crate) fn watch(&mut self, value: &Arc<Tensor>) {
        self.add(value, None);
    }

    /// The operation that begins has the operands that are [`read`](Tape::read) until its end, but
    /// for those of operations in between.
    pub(crate) fn begin(&self) -> Mark {
        Mark(self.operands.len())
    }

    pub(crate) fn read(&mut self, operand: &Arc<Tensor>) {
        self.operands.push(Arc::clone(operand));
    }

    pub(crate) fn end(&mut self, Mark(begin): Mark, by: &'p Expr, result: &Arc<Tensor>) {
        let of: Vec<Arc<Tensor>> = self.operands.drain(begin..).collect();
        if of.iter().any(|operand| self.holds(operand)) {
            self.add(result, Some(Made { by, of }));
        }
    }

    /// Whether gradients flow through a value.
    fn holds(&self, value: &Arc<Tensor>) -> bool {
        self.places.contains_key(&address(value))
    }

    fn add(&mut self, value: &Arc<Tensor>, made: Option<Made<'p>>) {
        // A sum of one element is that element.
        if value.elem() == Elem::F32 && !self.holds(value) {
            self.places.insert(address(value), self.nodes.len());
            let value = Arc::clone(value);
            self.nodes.push(Node { value, made });
        }
    }

    /// The cotangents of all that is watched, from those of some results; a result that gradients do
    /// not flow through is left out.
    pub(crate) fn pull_back(
        &self,
        results: Vec<(Arc<Tensor>, Vec<f64>)>,
    ) -> Result<Cotangents<'_>, InstanceError> {
        let mut cotangents = Cotangents {
            places: &self.places,
            of_nodes: vec![None; self.nodes.len()],
        };
        for (result, seed) in results {
            cotangents.add(&result, |cotangent| {
                for (total, part) in cotangent.iter_mut().zip(&seed) {
                    *total += part;
                }
            });
        }
        for (place, node) in self.nodes.iter().enumerate().rev() {
            let Some(made) = &node.made else { continue };
            // Nobody needs it after its own operands have got theirs.
            let Some(cotangent) = cotangents.of_nodes[place].take() else {
                continue;
            };
            let mut operation = Operation {
                expr: made.by,
                operands: &made.of,
                result: &node.value,
                cotangent: &cotangent,
                cotangents: &mut cotangents,
            };
            rules::pull_back(&mut operation)?;
        }
        Ok(cotangents)
    }
}

/// The cotangents known so far.
pub(crate) struct Cotangents<'t> {
    places: &'t HashMap<usize, usize>,
    /// `None` where nothing has flown yet.
    of_nodes: Vec<Option<Vec<f64>>>,
}

impl Cotangents<'_> {
    pub(crate) fn of(&self, value: &Arc<Tensor>) -> Option<&[f64]> {
        let place = *self.places.get(&address(value))?;
        self.of_nodes[place].as_deref()
    }

    fn add(&mut self, value: &Arc<Tensor>, contribute: impl FnOnce(&mut [f64])) {
        if let Some(&place) = self.places.get(&address(value)) {
            contribute(self.of_nodes[place].get_or_insert_with(|| vec![0.0; value.count()]));
        }
    }
}

/// One operation on the way back, as its rule sees it.
struct Operation<'o, 't> {
    expr: &'o Expr,
    operands: &'o [Arc<Tensor>],
    result: &'o Tensor,
    /// One number for each element of the result.
    cotangent: &'o [f64],
    cotangents: &'o mut Cotangents<'t>,
}

impl<'o> Operation<'o, '_> {
    fn operand(&self, index: usize) -> Result<&'o Arc<Tensor>, InstanceError> {
        self.operands.get(index).ok_or_else(|| {
            let message = format!("an operation without operand {index}: {:?}", self.expr.kind);
            InstanceError::internal(message)
        })
    }

    /// Adds to the cotangent of an operand, if there is to be one.
    fn add(
        &mut self,
        index: usize,
        contribute: impl FnOnce(&mut [f64]),
    ) -> Result<(), InstanceError> {
        let operand = self.operand(index)?;
        self.cotangents.add(operand, contribute);
        Ok(())
    }

    /// Where each element of the result comes from an element of one operand: its cotangent goes there.
    fn send_back(
        &mut self,
        index: usize,
        source: impl Fn(usize) -> usize,
    ) -> Result<(), InstanceError> {
        let cotangent = self.cotangent;
        self.add(index, |total| {
            for (position, part) in cotangent.iter().enumerate() {
                total[source(position)] += part;
            }
        })
    }
}

fn address(value: &Arc<Tensor>) -> usize {
    Arc::as_ptr(value).addr()
}
