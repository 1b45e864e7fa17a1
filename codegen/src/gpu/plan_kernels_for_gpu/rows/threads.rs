//! What threads do of a stage over whole rows: how many rows a block has, who folds, and how many neighbours a
//! thread takes at once.

use cohort_passes::kernel::affine::Affine;
use cohort_passes::kernel::rows::body::Body;
use cohort_passes::kernel::rows::graph::{Graph, Kind, dense_strides};
use cohort_passes::kernel::rows::layout::{Place, elem_bytes};
use cohort_passes::kernel::rows::stage::{Fold, ReduceRows, Stage};

use super::plan::{LaunchPlan, Rows, loads_of};
use crate::gpu::lower_kernels_to_gpu::ops::{THREADS, WARP, WIDE};
use crate::gpu::neighbours::are_neighbours;
use crate::plan_rows::{FoldSchedule, NestSchedule, Schedule};

/// Elements of a stage that a block should have, at least.
const ELEMENTS: i64 = 1024;

/// Results of folds by warps that a block has at most: their lanes' values are in shared memory.
const WARP_RESULTS: i64 = 64;

/// Fewer results than this are folded by warps, if there is enough to fold.
const FEW_RESULTS: i64 = 32;
const MUCH_TO_FOLD: i64 = 16;

/// Rows that a block computes.
pub fn block_rows(graph: &Graph<'_>, rows: &Rows<'_>) -> i64 {
    let widest = rows.stages.iter().map(|stage| match stage {
        Stage::Group(body) => body.domain.iter().product(),
        Stage::Fold(fold) if by_warps(fold) => results(fold) * WARP,
        Stage::Fold(fold) => results(fold),
        Stage::ReduceRows(list) => list.init.domain.iter().product(),
        Stage::Loops { node, .. } => match &graph.nodes[*node].kind {
            Kind::Loops(loops) => {
                let kept = (0..loops.folds.len()).filter(|dim| !loops.folds[*dim]);
                kept.map(|dim| loops.domain[dim]).product()
            }
            _ => 1,
        },
        Stage::Product(_) | Stage::Pack { .. } => 1,
    });
    let widest = widest.max().unwrap_or(1).max(1);
    let folds = rows.stages.iter().filter_map(|stage| match stage {
        Stage::Fold(fold) if by_warps(fold) => Some(WARP_RESULTS / results(fold).max(1)),
        _ => None,
    });
    let most = folds.min().unwrap_or(THREADS).clamp(1, THREADS);
    (ELEMENTS / widest).clamp(1, most)
}

/// Whether warps fold it.
fn by_warps(fold: &Fold<'_>) -> bool {
    let folded: i64 = fold.dims.iter().map(|dim| fold.body.domain[*dim]).product();
    results(fold) < FEW_RESULTS && folded > MUCH_TO_FOLD
}

fn results(fold: &Fold<'_>) -> i64 {
    fold.init.domain.iter().product()
}

pub struct Threads<'a, 'c> {
    pub graph: &'a Graph<'c>,
    pub plan: &'a LaunchPlan<'c>,
}

impl<'c> Threads<'_, 'c> {
    /// Whether every row of a place begins at a multiple of `to` bytes, at most 16. What is in scratch does.
    fn rows_are_aligned(&self, place: Place, to: i64) -> bool {
        let node = match place {
            Place::Operand(operand) => self.graph.operands[operand],
            Place::Result(result) => self.graph.results[result],
            _ => return true,
        };
        let node = &self.graph.nodes[node];
        node.elements() * elem_bytes(node.elem) % to == 0
    }

    /// How many neighbours a thread takes of what has one access of that many.
    fn width(
        &self,
        domain: &[i64],
        accesses: &[(Place, &Affine, cohort_abi::manifest::Elem)],
    ) -> i64 {
        let last = domain.last().copied().unwrap_or(1);
        let widest = accesses.iter().any(|(place, address, elem)| {
            are_neighbours(domain, address, *elem, WIDE)
                && self.rows_are_aligned(*place, WIDE * elem_bytes(*elem))
        });
        if last % WIDE == 0 && widest { WIDE } else { 1 }
    }
}

impl<'c> Schedule<'c> for Threads<'_, 'c> {
    fn nest(&self, body: &Body<'c>) -> NestSchedule<'c> {
        let stores = body.stores.iter();
        let stores = stores.map(|store| (store.place, &store.address, body.values[store.value].1));
        NestSchedule {
            body: body.clone(),
            lanes: None,
            by: Some(self.width(&body.domain, &stores.collect::<Vec<_>>())),
            across_rows: false,
        }
    }

    fn fold(&self, fold: &Fold<'c>) -> FoldSchedule {
        let last = fold.body.domain.len().checked_sub(1);
        let along = fold.dims.last().copied().filter(|dim| Some(*dim) == last);
        let loads: Vec<_> = loads_of(&fold.body).collect();
        let accesses = loads.iter().filter_map(|(buffer, address)| {
            let layout = self.plan.layouts.of_node[*buffer].as_ref()?;
            Some((layout.place, address, self.graph.nodes[*buffer].elem))
        });
        FoldSchedule {
            lanes: fold.dims.last().copied().filter(|_| by_warps(fold)),
            vectors: match along {
                Some(_) => self.width(&fold.body.domain, &accesses.collect::<Vec<_>>()),
                None => 1,
            },
            neighbours: 1,
            across_rows: false,
        }
    }

    /// What is folded in lies as a result's elements do that is stored densely.
    fn list(&self, list: &ReduceRows<'c>, shape: &[i64]) -> i64 {
        let dense = Affine::strided(0, &dense_strides(shape));
        let elem = list.init.values[list.init_value].1;
        self.width(shape, &[(Place::Operand(list.list), &dense, elem)])
    }
}
