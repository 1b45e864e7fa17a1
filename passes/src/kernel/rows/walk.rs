//! The walk over a kernel's graph that the planners of every target make: which nodes are stages of their
//! own, and what of each is the same whatever runs it.
//!
//! A planner is asked for each node that is used, in order. What a pass over the rows is, and where it goes,
//! is the target's.

use melior::ir::OperationRef;

use super::body::{Body, MustStore, Source, Store, ValueId};
use super::graph::{Graph, Kind, NodeId, dense_strides};
use super::layout::{Layouts, Place};
use super::stage::{Combiner, Fold, ReduceRows};
use crate::kernel::affine::{Affine, identity};

/// A value that is computed and stored.
pub struct Root<'a> {
    /// The node that is computed.
    pub id: NodeId,
    /// The sizes of the loops.
    pub domain: &'a [i64],
    /// Whether it is computed for every row.
    pub rows: bool,
    /// Compute the node instead of loading it: this is what fills its memory.
    pub defines: bool,
    /// Where it is stored.
    pub place: Place,
    /// The first element there.
    pub offset: i64,
    /// For each loop, how many elements apart its turns store.
    pub strides: &'a [i64],
}

impl Root<'_> {
    /// Adds the value, and its store, to a body of the same domain.
    pub fn add_to<'c>(
        &self,
        body: &mut Body<'c>,
        source: &Source<'_, 'c>,
    ) -> Result<(), MustStore> {
        let index = identity(self.domain.len());
        let value = if self.defines {
            let value = body.compute(source, self.id, &index)?;
            body.define(self.id, &index, value);
            value
        } else {
            body.value(source, self.id, &index)?
        };
        body.stores.push(Store {
            place: self.place,
            address: Affine::strided(self.offset, self.strides),
            value,
        });
        Ok(())
    }
}

/// What a target makes of each kind of node.
pub trait Planner<'a, 'c: 'a> {
    /// Why it cannot go on; for some values, that they must be stored first.
    type Stop: From<MustStore>;
    /// Where something is written; what is written later is greater.
    type Written: Copy + Ord + Default;

    /// The graph that is planned.
    fn graph(&self) -> &'a Graph<'c>;

    /// Where its nodes lie.
    fn layouts(&self) -> &Layouts;

    /// Whether bodies that run for every row find in memory what is the same for all.
    const SHARED_IN_MEMORY: bool;

    /// A product of matrices, as [`Kind::Product`] has it.
    fn product(
        &mut self,
        id: NodeId,
        a: NodeId,
        weight: NodeId,
        init: NodeId,
    ) -> Result<(), Self::Stop>;

    /// A fold of the values of a node, which starts from those of another.
    fn fold(
        &mut self,
        fold: Fold<'c>,
        input: NodeId,
        init: NodeId,
    ) -> Result<Self::Written, Self::Stop>;

    /// A fold of a list's tensors, which starts from the values of a node.
    fn list(&mut self, list: ReduceRows<'c>, init: NodeId) -> Result<Self::Written, Self::Stop>;

    /// A `linalg.generic` that is emitted as it is.
    fn loops(&mut self, id: NodeId) -> Result<Self::Written, Self::Stop>;

    /// A value that is computed and stored.
    fn root(&mut self, root: Root<'_>) -> Result<Self::Written, Self::Stop>;

    /// Where a node is written; `None` if it is not yet.
    fn written(&self, id: NodeId) -> Option<Self::Written>;

    /// Notes where a node is written.
    fn set_written(&mut self, id: NodeId, written: Self::Written);

    /// The end of a plan that an operation makes impossible, for a reason that people read.
    fn refuse(&self, op: OperationRef<'c, 'c>, reason: &'static str) -> Self::Stop;

    /// What bodies read.
    fn source<'s>(&'s self) -> Source<'s, 'c>
    where
        'a: 's,
    {
        Source {
            graph: self.graph(),
            layouts: self.layouts(),
        }
    }

    /// A body over a domain, that runs for every row or once.
    fn body(&self, domain: &[i64], rows: bool) -> Body<'c> {
        Body::new(domain.to_vec(), rows && Self::SHARED_IN_MEMORY)
    }

    /// A body that computes a node over its shape, and the value.
    fn whole(
        &self,
        id: NodeId,
        shape: &[i64],
        rows: bool,
    ) -> Result<(Body<'c>, ValueId), MustStore> {
        let mut body = self.body(shape, rows);
        let value = body.value(&self.source(), id, &identity(shape.len()))?;
        Ok((body, value))
    }

    /// Asks for all nodes that are used, `counts` times each, and for the results that are nodes elsewhere.
    fn walk(&mut self, counts: &[usize]) -> Result<(), Self::Stop> {
        let graph = self.graph();
        for (id, node) in graph.nodes.iter().enumerate() {
            if counts[id] == 0 {
                continue;
            }
            let written = match &node.kind {
                Kind::Product { a, weight, init } => {
                    self.product(id, *a, *weight, *init)?;
                    None
                }
                Kind::Concat { inputs, dim } => self.concat(id, inputs, *dim)?,
                Kind::Reduce { .. } => self.reduce(id)?,
                Kind::ReduceRows { list, op, init } => {
                    let Kind::List(list) = graph.nodes[*list].kind else {
                        return Err(self.refuse(*op, "a reduction of what is not a list"));
                    };
                    let (start, init_value) = self.whole(*init, &node.shape, true)?;
                    let stage = ReduceRows {
                        node: id,
                        list,
                        op: *op,
                        init: start,
                        init_value,
                    };
                    Some(self.list(stage, *init)?)
                }
                Kind::Loops(_) => Some(self.loops(id)?),
                Kind::LoopsResult { loops, .. } => self.written(*loops),
                Kind::Operand(_) | Kind::List(_) | Kind::Param(_) | Kind::Dense => None,
                _ => self.own_root(id)?,
            };
            if let Some(written) = written {
                self.set_written(id, written);
            }
        }
        for (result, id) in self.layouts().copies.clone() {
            let node = &graph.nodes[id];
            self.root(Root {
                id,
                domain: &node.shape,
                rows: true,
                defines: false,
                place: Place::Result(result),
                offset: 0,
                strides: &dense_strides(&node.shape),
            })?;
        }
        Ok(())
    }

    /// Fills the memory of a node, if it has some.
    fn own_root(&mut self, id: NodeId) -> Result<Option<Self::Written>, Self::Stop> {
        let node = &self.graph().nodes[id];
        let Some(layout) = self.layouts().of_node[id].clone() else {
            return Ok(None);
        };
        let written = self.root(Root {
            id,
            domain: &node.shape,
            rows: node.rows,
            defines: true,
            place: layout.place,
            offset: 0,
            strides: &layout.strides,
        })?;
        Ok(Some(written))
    }

    /// Each part is stored where it belongs; all is there with the last one.
    fn concat(
        &mut self,
        id: NodeId,
        inputs: &[NodeId],
        dim: usize,
    ) -> Result<Option<Self::Written>, Self::Stop> {
        let graph = self.graph();
        let Some(layout) = self.layouts().of_node[id].clone() else {
            return Ok(None);
        };
        let node = &graph.nodes[id];
        let mut start = 0;
        let mut last = Self::Written::default();
        for input in inputs {
            let part = &graph.nodes[*input];
            let rank = node.shape.len();
            if part.shape.len() != rank && matches!(part.kind, Kind::Splat(_)) {
                return Err(self.refuse(node.op, "this concatenation"));
            }
            let mut domain = part.shape.clone();
            domain.resize(rank, 1);
            let written = self.root(Root {
                id: *input,
                domain: &domain,
                rows: node.rows,
                defines: false,
                place: layout.place,
                offset: start * layout.strides[dim],
                strides: &layout.strides,
            })?;
            start += domain[dim];
            last = last.max(written);
        }
        Ok(Some(last))
    }

    /// Asks for a fold of a node that is one.
    fn reduce(&mut self, id: NodeId) -> Result<Option<Self::Written>, Self::Stop> {
        let graph = self.graph();
        let node = &graph.nodes[id];
        let Kind::Reduce {
            input,
            dims,
            combiner,
            init,
        } = &node.kind
        else {
            return Ok(None);
        };
        let (body, value) = self.whole(*input, &graph.nodes[*input].shape, node.rows)?;
        let (start, init_value) = self.whole(*init, &node.shape, node.rows)?;
        let fold = Fold {
            node: id,
            body,
            input: value,
            dims: dims.clone(),
            combiner: Combiner::Operation(*combiner),
            init: start,
            init_value,
        };
        self.fold(fold, *input, *init).map(Some)
    }

    /// What loops that are run as they are read at each index: the body, and its values.
    fn loop_inputs(&self, id: NodeId) -> Result<(Body<'c>, Vec<ValueId>), MustStore> {
        let node = &self.graph().nodes[id];
        let Kind::Loops(loops) = &node.kind else {
            return Ok((self.body(&[], false), vec![]));
        };
        let mut body = self.body(&loops.domain, node.rows);
        let index = identity(loops.domain.len());
        let inputs = loops.inputs.iter();
        let values: Result<_, _> = inputs
            .map(|input| body.value(&self.source(), *input, &index))
            .collect();
        Ok((body, values?))
    }
}
