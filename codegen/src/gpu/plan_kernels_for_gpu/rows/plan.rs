//! Cuts a kernel's graph into launches.
//!
//! A *tile* launch computes products: a block has a tile of rows and of columns of one iteration
//! space. Slices of a product are *gates*, products of their own over that space, so that the
//! pointwise values which read them at the same column are computed where the sums lie, in
//! registers. A *row* launch computes everything else: a block has whole rows and runs one *stage*
//! after another, with a barrier in between. Launches talk through the results' rows and scratch.
//!
//! A product is never stored but where a fold or a later launch needs more of it than one column.
//! Then the last value is stored that can still be computed with it ([`LaunchPlanner::frontier`]).

mod frontier;
mod launches;
mod products;
mod stages;

use std::collections::HashMap;

use cohort_passes::kernel::affine::Affine;
use cohort_passes::kernel::rows::body::{Body, MustStore};
use cohort_passes::kernel::rows::graph::{Graph, NodeId};
use cohort_passes::kernel::rows::layout::Layouts;
use cohort_passes::kernel::rows::stage::{Fold, ReduceRows, Stage};
use cohort_passes::kernel::rows::walk::{Planner, Root};
use melior::ir::OperationRef;

use crate::plan_rows::repetition;

pub use launches::{Launch, LaunchPlan, Rows, Segment, Tile, loads_of};

/// Products at the same place of one iteration space that a thread may hold.
pub const MAX_GATES: usize = 8;

/// Products of no more columns are folded like other sums: there are too few for a tile.
const NARROW: i64 = 4;

/// Why a kernel has no plan for a GPU.
pub struct Refused<'c> {
    pub op: OperationRef<'c, 'c>,
    pub reason: &'static str,
}

pub fn plan<'c>(graph: &Graph<'c>) -> Result<LaunchPlan<'c>, Refused<'c>> {
    let counts = graph.use_counts();
    let mut stored = vec![false; graph.nodes.len()];
    loop {
        let layouts = Layouts::assign(graph, &counts, &stored);
        let mut planner = LaunchPlanner {
            graph,
            counts: &counts,
            stored: &stored,
            layouts,
            launches: vec![],
            written: HashMap::new(),
        };
        let next = match planner.walk(&counts) {
            Ok(()) => match planner.costly() {
                costly if costly.is_empty() => {
                    let is_empty = |launch: &Launch<'c>| matches!(launch, Launch::Rows(rows) if rows.stages.is_empty());
                    planner.launches.retain(|launch| !is_empty(launch));
                    return Ok(LaunchPlan {
                        layouts: planner.layouts,
                        launches: planner.launches,
                    });
                }
                costly => costly,
            },
            Err(Stop::Store(node)) => vec![node],
            Err(Stop::Refused(refused)) => return Err(refused),
        };
        for node in next {
            if stored[node] {
                return Err(Refused {
                    op: graph.nodes[node].op,
                    reason: "a value that cannot be addressed",
                });
            }
            stored[node] = true;
        }
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

struct LaunchPlanner<'a, 'c> {
    graph: &'a Graph<'c>,
    counts: &'a [usize],
    stored: &'a [bool],
    layouts: Layouts,
    launches: Vec<Launch<'c>>,
    written: HashMap<NodeId, Written>,
}

impl<'c> LaunchPlanner<'_, 'c> {
    fn costly(&self) -> Vec<NodeId> {
        let bodies = self.launches.iter().flat_map(Launch::bodies);
        repetition::costly_in(self.graph, &self.layouts, bodies)
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
        root.add_to(&mut tile.body, &self.source())?;
        let columns = tile.domain.last().copied().unwrap_or(1);
        let loads: Vec<(NodeId, Affine)> = loads_of(&tile.body).collect();
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
                root.add_to(&mut body, &self.source())?;
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
}

impl<'a, 'c: 'a> Planner<'a, 'c> for LaunchPlanner<'a, 'c> {
    type Stop = Stop<'c>;
    type Written = Written;

    const SHARED_IN_MEMORY: bool = false;

    fn graph(&self) -> &'a Graph<'c> {
        self.graph
    }

    fn layouts(&self) -> &Layouts {
        &self.layouts
    }

    fn product(
        &mut self,
        id: NodeId,
        a: NodeId,
        weight: NodeId,
        init: NodeId,
    ) -> Result<(), Stop<'c>> {
        self.plan_product(id, a, weight, init)
    }

    fn fold(&mut self, fold: Fold<'c>, input: NodeId, init: NodeId) -> Result<Written, Stop<'c>> {
        self.plan_fold(fold, input, init)
    }

    fn list(&mut self, list: ReduceRows<'c>, init: NodeId) -> Result<Written, Stop<'c>> {
        self.needs_memory(init, &list.init)?;
        Ok(self.stage(true, Stage::ReduceRows(Box::new(list))))
    }

    fn loops(&mut self, id: NodeId) -> Result<Written, Stop<'c>> {
        self.plan_loops(id)
    }

    /// Adds a value to a launch that may hold it, or to a new one; where it is written.
    fn root(&mut self, root: Root<'_>) -> Result<Written, Stop<'c>> {
        let mut alone = Body::new(root.domain.to_vec(), false);
        root.add_to(&mut alone, &self.source())?;
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

    fn written(&self, id: NodeId) -> Option<Written> {
        self.written.get(&id).copied()
    }

    fn set_written(&mut self, id: NodeId, written: Written) {
        self.written.insert(id, written);
    }

    fn refuse(&self, op: OperationRef<'c, 'c>, reason: &'static str) -> Stop<'c> {
        Stop::Refused(Refused { op, reason })
    }
}
