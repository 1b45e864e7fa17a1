//! The variables of the loops around the place that code is written to, and what they tell of the values
//! that are read there: over what domain a fold runs, and which folds
//! must be computed before a loop begins.

use std::collections::HashSet;

use cohort_dialects::builder::Val;
use cohort_passes::kernel::affine::{Affine, Var};
use cohort_passes::kernel::calls::graph::{Graph, Kind, NodeId, Size, domain_of};
use melior::ir::OperationRef;

use crate::emit::Emitter;

/// Variables by number.
#[derive(Default)]
pub struct Variables<'c>(Vec<Option<Val<'c>>>);

/// A fold at an index, with variables for the dims that it folds.
pub struct Fold<'c> {
    pub input: NodeId,
    pub domain: Vec<Affine>,
    pub combiner: OperationRef<'c, 'c>,
    pub inner: Vec<Var>,
    pub sizes: Vec<Size>,
    pub init: NodeId,
}

impl<'c> Variables<'c> {
    /// A new variable, of a value that is known here or given later.
    pub fn add(&mut self, value: Option<Val<'c>>) -> Var {
        self.0.push(value);
        self.0.len() - 1
    }

    /// Gives a variable another value, where nothing is known of it yet.
    pub fn set(&mut self, var: Var, value: Val<'c>) {
        self.0[var] = Some(value);
    }

    pub fn value(&self, var: Var) -> Option<Val<'c>> {
        self.0[var]
    }

    /// The value of an index; `None` where it is 0.
    pub fn index(&self, e: &Emitter<'c>, index: &Affine) -> Option<Val<'c>> {
        let terms = index.terms.iter().map(|(var, coefficient)| {
            let value = self.value(*var);
            let value = value.unwrap_or_else(|| unreachable!("a variable has its loop"));
            e.times(value, *coefficient)
        });
        let sum = terms.reduce(|a, b| e.add(a, b));
        match (sum, index.constant) {
            (Some(sum), 0) => Some(sum),
            (Some(sum), constant) => Some(e.add(sum, e.int(constant))),
            (None, 0) => None,
            (None, constant) => Some(e.int(constant)),
        }
    }

    /// The fold that a node is at an index.
    pub fn fold_of(&mut self, graph: &Graph<'c>, node: NodeId, at: &[Affine]) -> Fold<'c> {
        let Kind::Reduce {
            input,
            dims,
            combiner,
            init,
        } = &graph.nodes[node].kind
        else {
            unreachable!("it is a fold");
        };
        let (domain, inner) = self.domain(graph, *input, dims, at);
        let sizes = dims.iter().map(|dim| graph.nodes[*input].shape[*dim]);
        Fold {
            input: *input,
            domain,
            combiner: *combiner,
            inner,
            sizes: sizes.collect(),
            init: *init,
        }
    }

    /// The index of a fold's domain, with new variables for the dims that it folds.
    fn domain(
        &mut self,
        graph: &Graph<'c>,
        input: NodeId,
        dims: &[usize],
        at: &[Affine],
    ) -> (Vec<Affine>, Vec<Var>) {
        let mut inner = vec![];
        let domain = domain_of(&graph.nodes[input].shape, dims, at, |_| {
            inner.push(self.add(None));
            inner[inner.len() - 1]
        });
        (domain, inner)
    }

    /// The folds that a node needs, that are not `done`, and that do not depend on `blocked` variables;
    /// those that others may need first.
    pub fn ready(
        &mut self,
        graph: &Graph<'c>,
        (node, at): (NodeId, &[Affine]),
        blocked: &[Var],
        done: &dyn Fn(NodeId, &[Affine]) -> bool,
    ) -> Vec<(NodeId, Vec<Affine>)> {
        let mut stack = vec![(node, at.to_vec(), blocked.to_vec())];
        let (mut seen, mut ready) = (HashSet::new(), vec![]);
        while let Some((node, at, blocked)) = stack.pop() {
            let (node, at) = graph.resolve(node, &at);
            if done(node, &at) || !seen.insert((node, at.clone())) {
                continue;
            }
            match &graph.nodes[node].kind {
                Kind::Pointwise { inputs, .. } => {
                    stack.extend(inputs.iter().map(|i| (*i, at.clone(), blocked.clone())));
                }
                Kind::Reduce {
                    input, dims, init, ..
                } => {
                    let vars = graph.depends(node, &at);
                    if vars.iter().all(|var| !blocked.contains(var)) {
                        ready.push((node, at));
                        continue;
                    }
                    let (domain, inner) = self.domain(graph, *input, dims, &at);
                    let mut more = blocked.clone();
                    more.extend(inner);
                    stack.push((*input, domain, more));
                    stack.push((*init, at, blocked));
                }
                _ => {}
            }
        }
        ready.reverse();
        ready
    }
}
