//! Cuts a kernel's graph into launches.
//!
//! A *tile* launch computes products: a block has a tile of rows and of columns of one iteration
//! space. Slices of a product are *gates*, products of their own over that space, so that the
//! pointwise values which read them at the same column are computed where the sums lie, in
//! registers. A *row* launch computes everything else: a block has whole rows and runs one *stage*
//! after another, with a barrier in between. Launches talk through the results' rows and scratch.
//!
//! A product is never stored but where a fold or a later launch needs more of it than one column.
//! Then the last value is stored that can still be computed with it ([`Planner::frontier`]).

mod frontier;
mod launches;
mod products;
mod stages;

use std::collections::HashMap;

use melior::ir::OperationRef;

use crate::cpu::lower_kernels::body::{Body, MustStore, Source, Store};
use crate::cpu::lower_kernels::graph::{Graph, Kind, Linear, NodeId, dense_strides, identity};
use crate::cpu::lower_kernels::layout::{Layouts, Place};
use crate::cpu::lower_kernels::repetition;

pub use launches::{Chain, Fold, Launch, List, Plan, Rows, Segment, Stage, Tile, loads_of};

/// Products at the same place of one iteration space that a thread may hold.
pub const MAX_GATES: usize = 8;

/// Products of no more columns are folded like other sums: there are too few for a tile.
const NARROW: i64 = 4;

/// Why a kernel has no plan for a GPU.
pub struct Refused<'c> {
    pub op: OperationRef<'c, 'c>,
    pub reason: &'static str,
}

pub fn plan<'c>(graph: &Graph<'c>) -> Result<Plan<'c>, Refused<'c>> {
    let counts = graph.use_counts();
    let mut stored = vec![false; graph.nodes.len()];
    loop {
        let layouts = Layouts::assign(graph, &counts, &stored);
        let mut planner = Planner {
            graph,
            counts: &counts,
            stored: &stored,
            layouts,
            launches: vec![],
            written: HashMap::new(),
        };
        let next = match planner.run() {
            Ok(()) => match planner.costly() {
                None => {
                    let is_empty = |launch: &Launch<'c>| matches!(launch, Launch::Rows(rows) if rows.stages.is_empty());
                    planner.launches.retain(|launch| !is_empty(launch));
                    return Ok(Plan {
                        layouts: planner.layouts,
                        launches: planner.launches,
                    });
                }
                Some(node) => node,
            },
            Err(Stop::Store(node)) => node,
            Err(Stop::Refused(refused)) => return Err(refused),
        };
        if stored[next] {
            return Err(Refused {
                op: graph.nodes[next].op,
                reason: "a value that cannot be addressed",
            });
        }
        stored[next] = true;
    }
}

enum Stop<'c> {
    /// The node must be stored, a product as it is.
    Store(NodeId),
    Refused(Refused<'c>),
}

impl From<MustStore> for Stop<'_> {
    fn from(MustStore(node): MustStore) -> Self {
        Stop::Store(node)
    }
}

/// A launch and, of a row launch, the stage that writes a value.
type Written = (usize, usize);

/// A value that is computed and stored.
struct Root<'a> {
    id: NodeId,
    domain: &'a [i64],
    rows: bool,
    /// Compute the node instead of loading it: this is what fills its memory.
    defines: bool,
    place: Place,
    offset: i64,
    strides: &'a [i64],
}

struct Planner<'a, 'c> {
    graph: &'a Graph<'c>,
    counts: &'a [usize],
    stored: &'a [bool],
    layouts: Layouts,
    launches: Vec<Launch<'c>>,
    written: HashMap<NodeId, Written>,
}

impl<'c> Planner<'_, 'c> {
    fn run(&mut self) -> Result<(), Stop<'c>> {
        let graph = self.graph;
        for (id, node) in graph.nodes.iter().enumerate() {
            if self.counts[id] == 0 {
                continue;
            }
            match &node.kind {
                Kind::Product { a, weight, init } => self.product(id, *a, *weight, *init)?,
                Kind::Concat { inputs, dim } => self.concat(id, inputs, *dim)?,
                Kind::Reduce { .. } => self.fold(id)?,
                Kind::ReduceRows { list, op, init } => self.list(id, *list, *op, *init)?,
                Kind::Loops(_) => self.loops(id)?,
                Kind::LoopsResult { loops, .. } => {
                    if let Some(written) = self.written.get(loops) {
                        self.written.insert(id, *written);
                    }
                }
                Kind::Operand(_) | Kind::List(_) | Kind::Param(_) | Kind::Dense(_) => {}
                _ => {
                    if let Some(layout) = self.layouts.of_node[id].clone() {
                        let written = self.root(Root {
                            id,
                            domain: &node.shape,
                            rows: node.rows,
                            defines: true,
                            place: layout.place,
                            offset: 0,
                            strides: &layout.strides,
                        })?;
                        self.written.insert(id, written);
                    }
                }
            }
        }
        for (result, id) in self.layouts.copies.clone() {
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

    fn source(&self) -> Source<'_, 'c> {
        Source {
            graph: self.graph,
            layouts: &self.layouts,
        }
    }

    fn refuse(&self, id: NodeId, reason: &'static str) -> Stop<'c> {
        Stop::Refused(Refused {
            op: self.graph.nodes[id].op,
            reason,
        })
    }

    fn costly(&self) -> Option<NodeId> {
        let bodies = self.launches.iter().flat_map(Launch::bodies);
        repetition::costly_in(self.graph, &self.layouts, bodies)
    }

    /// Adds a value to a launch that may hold it, or to a new one; where it is written.
    fn root(&mut self, root: Root<'_>) -> Result<Written, Stop<'c>> {
        let mut alone = Body::new(root.domain.to_vec(), false);
        self.add_root(&mut alone, &root)?;
        let pending: Vec<NodeId> = alone
            .buffers()
            .filter(|buffer| self.is_pending(*buffer))
            .collect();
        if !root.rows || pending.is_empty() {
            return self.pointwise(&root, alone);
        }
        for at in 0..self.launches.len() {
            if let Some(tile) = self.joined(at, &root)? {
                self.launches[at] = Launch::Tile(Box::new(tile));
                return Ok((at, 0));
            }
        }
        let empty = Tile {
            domain: root.domain.to_vec(),
            chains: vec![],
            body: Body::new(root.domain.to_vec(), false),
        };
        let at = self.launches.len();
        match self.with_root(at, empty, &root)? {
            Some(tile) => {
                self.launches.push(Launch::Tile(Box::new(tile)));
                Ok((at, 0))
            }
            None => {
                let product = pending.into_iter().min().unwrap_or(root.id);
                Err(Stop::Store(self.frontier(product, root.id)))
            }
        }
    }

    fn joined(&self, at: usize, root: &Root<'_>) -> Result<Option<Tile<'c>>, Stop<'c>> {
        match &self.launches[at] {
            Launch::Tile(tile) if tile.domain == root.domain => {
                self.with_root(at, Tile::clone(tile), root)
            }
            _ => Ok(None),
        }
    }

    /// A tile launch with one value more, where it can compute it.
    fn with_root(
        &self,
        at: usize,
        mut tile: Tile<'c>,
        root: &Root<'_>,
    ) -> Result<Option<Tile<'c>>, Stop<'c>> {
        self.add_root(&mut tile.body, root)?;
        let columns = tile.domain.last().copied().unwrap_or(1);
        let loads: Vec<(NodeId, Linear)> = loads_of(&tile.body).collect();
        for (buffer, address) in loads {
            if tile.gate(buffer, &address).is_some() {
                continue;
            }
            if !self.is_pending(buffer) {
                if !self.is_before(buffer, at) {
                    return Ok(None);
                }
                continue;
            }
            let Some(offset) = self.gate_offset(buffer, &address, &tile.domain) else {
                return Ok(None);
            };
            if self.computed_elsewhere(buffer, offset, columns, Some(at)) {
                return Ok(None);
            }
            if !self.add_gate(at, &mut tile, buffer, offset)? {
                return Ok(None);
            }
        }
        Ok((tile.gates() <= MAX_GATES).then_some(tile))
    }

    /// Values that read no product: a tile launch of the same domain, a stage, or a new one.
    fn pointwise(&mut self, root: &Root<'_>, alone: Body<'c>) -> Result<Written, Stop<'c>> {
        for at in 0..self.launches.len() {
            if root.rows
                && let Some(tile) = self.joined(at, root)?
            {
                self.launches[at] = Launch::Tile(Box::new(tile));
                return Ok((at, 0));
            }
            let Launch::Rows(rows) = &self.launches[at] else {
                continue;
            };
            if rows.once == root.rows {
                continue;
            }
            let mut joined = None;
            for (number, stage) in rows.stages.iter().enumerate() {
                let before = |buffer: NodeId| {
                    let known = self.written.get(&buffer);
                    known.is_none_or(|written| *written < (at, number))
                };
                let Stage::Group(body) = stage else { continue };
                if body.domain != root.domain {
                    continue;
                }
                let mut body = body.clone();
                self.add_root(&mut body, root)?;
                if body.buffers().all(before) {
                    joined = Some((number, body));
                    break;
                }
            }
            if let Some((number, body)) = joined
                && let Launch::Rows(rows) = &mut self.launches[at]
            {
                rows.stages[number] = Stage::Group(body);
                return Ok((at, number));
            }
        }
        Ok(self.stage(root.rows, Stage::Group(alone)))
    }

    fn add_root(&self, body: &mut Body<'c>, root: &Root<'_>) -> Result<(), Stop<'c>> {
        let index = identity(root.domain.len());
        let value = if root.defines {
            let value = body.compute(&self.source(), root.id, &index)?;
            body.define(root.id, &index, value);
            value
        } else {
            body.value(&self.source(), root.id, &index)?
        };
        body.stores.push(Store {
            place: root.place,
            address: Linear {
                constant: root.offset,
                coefficients: root.strides.to_vec(),
            },
            value,
        });
        Ok(())
    }
}
