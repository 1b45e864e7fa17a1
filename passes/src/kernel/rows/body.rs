//! The body of a loop nest: what a stage computes for one index of its domain.
//!
//! It is built from the graph on demand. Slices, broadcasts and transpositions vanish into the
//! addresses of loads; equal computations at the same index are done once.

use std::collections::HashMap;

use cohort_abi::manifest::Elem;
use melior::ir::OperationRef;

use super::graph::{Graph, Kind, NodeId};
use super::layout::{Layouts, Place, reshape_groups};
use crate::kernel::affine::Affine;

/// The place of a value in [`Body::values`].
pub type ValueId = usize;

/// One step, for one element. `M` is what names memory: the node that it is of, or at the loop level its place.
#[derive(Clone)]
pub enum Instruction<'c, M = NodeId> {
    /// Of memory; the address counts elements.
    Load {
        /// What is read.
        buffer: M,
        /// The element, in variables of the body's domain.
        address: Affine,
    },
    /// The operand of this number, a scalar that the host passes.
    HostScalar(usize),
    /// A constant, as the bits of an element.
    Splat(u32),
    /// An `arith` or `math` operation.
    Pointwise {
        /// The operation.
        op: OperationRef<'c, 'c>,
        /// Its operands, computed before.
        inputs: Vec<ValueId>,
    },
}

/// A value that is written to memory.
#[derive(Clone)]
pub struct Store {
    /// The memory.
    pub place: Place,
    /// The element, in variables of the body's domain.
    pub address: Affine,
    /// What is written.
    pub value: ValueId,
}

/// What is computed at each index of a domain, without memory between.
#[derive(Clone)]
pub struct Body<'c> {
    /// The sizes of the loops.
    pub domain: Vec<i64>,
    /// Whether it runs for every row.
    pub rows: bool,
    /// The steps, each after those it reads, and the types of what they make.
    pub values: Vec<(Instruction<'c>, Elem)>,
    /// What is written, in order.
    pub stores: Vec<Store>,
    known: HashMap<(NodeId, Vec<Affine>), ValueId>,
    loads: HashMap<(NodeId, Affine), ValueId>,
    /// How often each pointwise node is computed, in elements.
    pub evaluations: HashMap<NodeId, i64>,
}

/// The node must be stored in memory before this body can read it.
pub struct MustStore(pub NodeId);

/// Where a body finds what it reads.
pub struct Source<'a, 'c> {
    /// How the nodes are computed.
    pub graph: &'a Graph<'c>,
    /// Where those that are stored lie.
    pub layouts: &'a Layouts,
}

impl<'c> Body<'c> {
    /// A body that computes nothing yet.
    pub fn new(domain: Vec<i64>, rows: bool) -> Self {
        Body {
            domain,
            rows,
            values: vec![],
            stores: vec![],
            known: HashMap::new(),
            loads: HashMap::new(),
            evaluations: HashMap::new(),
        }
    }

    /// The value of a node at an index, loaded if it is in memory.
    pub fn value(
        &mut self,
        source: &Source<'_, 'c>,
        id: NodeId,
        index: &[Affine],
    ) -> Result<ValueId, MustStore> {
        if let Some(value) = self.known.get(&(id, index.to_vec())) {
            return Ok(*value);
        }
        let node = &source.graph.nodes[id];
        let value = match source.layouts.view(source.graph, id) {
            Some(view) => {
                let address = view.address(index);
                self.load(view.buffer, address, node.elem)
            }
            None => self.compute(source, id, index)?,
        };
        self.known.insert((id, index.to_vec()), value);
        Ok(value)
    }

    /// The value of a node at an index, computed even if it has memory.
    pub fn compute(
        &mut self,
        source: &Source<'_, 'c>,
        id: NodeId,
        index: &[Affine],
    ) -> Result<ValueId, MustStore> {
        let node = &source.graph.nodes[id];
        match &node.kind {
            Kind::Splat(bits) => Ok(self.push(Instruction::Splat(*bits), node.elem)),
            Kind::HostScalar(operand) => {
                Ok(self.push(Instruction::HostScalar(*operand), node.elem))
            }
            Kind::Pointwise { op, inputs } => {
                if self.rows && !node.rows {
                    return Err(MustStore(id));
                }
                let mut values = Vec::new();
                for input in inputs {
                    values.push(self.value(source, *input, index)?);
                }
                *self.evaluations.entry(id).or_default() += self.domain.iter().product::<i64>();
                Ok(self.push(
                    Instruction::Pointwise {
                        op: *op,
                        inputs: values,
                    },
                    node.elem,
                ))
            }
            Kind::Access {
                source: from,
                index: map,
            } => {
                let index: Vec<Affine> = map.iter().map(|linear| linear.at(index)).collect();
                self.value(source, *from, &index)
            }
            Kind::Reshape { source: from } => {
                if let Some(index) =
                    self.reshape(&source.graph.nodes[*from].shape, &node.shape, index)
                {
                    return self.value(source, *from, &index);
                }
                // Dims that are joined lie one behind the other in memory.
                let view = source.layouts.selected(source.graph, id);
                let view = view.ok_or(MustStore(*from))?;
                let address = view.address(index);
                Ok(self.load(view.buffer, address, node.elem))
            }
            // Always in memory.
            _ => Err(MustStore(id)),
        }
    }

    /// Says that a node at an index of the whole domain has this value.
    pub fn define(&mut self, id: NodeId, index: &[Affine], value: ValueId) {
        self.known.insert((id, index.to_vec()), value);
    }

    fn push(&mut self, instruction: Instruction<'c>, elem: Elem) -> ValueId {
        self.values.push((instruction, elem));
        self.values.len() - 1
    }

    fn load(&mut self, buffer: NodeId, address: Affine, elem: Elem) -> ValueId {
        if let Some(value) = self.loads.get(&(buffer, address.clone())) {
            return *value;
        }
        let load = Instruction::Load {
            buffer,
            address: address.clone(),
        };
        let value = self.push(load, elem);
        self.loads.insert((buffer, address), value);
        value
    }

    /// The nodes whose memory is read.
    pub fn buffers(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.loads.keys().map(|(buffer, _)| *buffer)
    }

    /// The index into `from` that reads what `index` reads of the same elements in shape `to`.
    fn reshape(&self, from: &[i64], to: &[i64], index: &[Affine]) -> Option<Vec<Affine>> {
        let zero = Affine::constant(0);
        let mut result = vec![zero.clone(); from.len()];
        for (left, right) in reshape_groups(from, to) {
            let left: Vec<usize> = left.into_iter().filter(|dim| from[*dim] != 1).collect();
            let right: Vec<usize> = right.into_iter().filter(|dim| to[*dim] != 1).collect();
            match left[..] {
                [] => {}
                [dim] => {
                    result[dim] = right
                        .iter()
                        .fold(zero.clone(), |sum, d| sum.times(to[*d]).plus(&index[*d]));
                }
                _ => return None,
            }
        }
        Some(result)
    }
}
