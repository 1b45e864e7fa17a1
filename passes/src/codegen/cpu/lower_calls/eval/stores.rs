//! Loops over the elements of a part of a result, by vectors along one of its dims.

use cohort_dialects::builder::Val;

use super::super::graph::{Index, NodeId, Var};
use super::{Call, Lanes, Memory};
use crate::codegen::emit::{Emitter, Width};
use crate::kernel::calls::parts::Window;
use crate::kernel::rows::layout::{LANES, elem_bytes};

/// A range of a dim at run time: `count` entries from `first` on.
#[derive(Clone, Copy)]
pub struct Range<'c> {
    pub first: Option<Val<'c>>,
    pub from: i64,
    pub count: Val<'c>,
    /// `count`, if it is known.
    pub known: Option<i64>,
    /// What all entries, counted without `from`, are below, if it is known.
    pub below: Option<i64>,
}

impl<'c> Range<'c> {
    /// The first entry, and the one behind the last.
    pub fn ends(&self, e: &Emitter<'c>) -> [Val<'c>; 2] {
        match self.first {
            None => [e.int(0), self.count],
            Some(first) => [first, e.add(first, self.count)],
        }
    }
}

impl<'c> Call<'_, 'c> {
    /// A loop over `0..count` by vectors: `body` is given an index, which of the lanes count, if not
    /// all do, and what is carried. Where the loop is split, the mask is left to its last step.
    pub fn lanes_loop(
        &mut self,
        e: &Emitter<'c>,
        count: Val<'c>,
        known: Option<i64>,
        carried: &[Val<'c>],
        mut body: impl FnMut(
            &mut Self,
            &Emitter<'c>,
            Val<'c>,
            Option<Val<'c>>,
            &[Val<'c>],
        ) -> Vec<Val<'c>>,
    ) -> Vec<Val<'c>> {
        let main = match (self.split, known) {
            (false, _) => None,
            (true, Some(known)) if known % LANES == 0 => {
                return e.for_loop(e.int(0), count, LANES, carried, |e, value, carried| {
                    body(self, e, value, None, carried)
                });
            }
            (true, Some(known)) => (known > LANES).then(|| e.int(known - known % LANES)),
            (true, None) => Some(e.and(count, -LANES)),
        };
        let mut carried = carried.to_vec();
        if let Some(main) = main {
            carried = e.for_loop(e.int(0), main, LANES, &carried, |e, value, carried| {
                body(self, e, value, None, carried)
            });
        }
        let first = main.unwrap_or_else(|| e.int(0));
        e.for_loop(first, count, LANES, &carried, |e, value, carried| {
            let mask = e.first_lanes(e.sub(count, value));
            body(self, e, value, Some(mask), carried)
        })
    }

    /// The ranges of a part of a result, of this piece of it.
    pub fn ranges(&self, e: &Emitter<'c>, windows: &[Window]) -> Vec<Range<'c>> {
        let mut ranges: Vec<_> = windows
            .iter()
            .map(|window| Range {
                first: None,
                from: window.from,
                count: self.size(e, window.size),
                known: window.size.known(),
                below: window.size.known(),
            })
            .collect();
        if let (Some([from, to]), Some(range)) = (self.piece, ranges.first_mut()) {
            range.first = Some(from);
            range.count = e.sub(to, from);
        }
        ranges
    }

    /// Computes a node at every index of the ranges and stores it.
    pub fn store_all(
        &mut self,
        e: &Emitter<'c>,
        node: NodeId,
        ranges: &[Range<'c>],
        memory: &Memory<'c>,
    ) {
        let at: Vec<Var> = ranges
            .iter()
            .map(|range| self.variables.add(None, range.below))
            .collect();
        // Trailing dims of one entry have no lanes, and where folds would gather, they have them. Lanes
        // are stored side by side: one entry of several, as a part of a concatenation has, is not that.
        let lane = ranges.iter().rposition(|range| range.known != Some(1));
        let index: Vec<Index> = at.iter().map(|var| Index::var(*var)).collect();
        let bytes = elem_bytes(self.graph.nodes[node].elem);
        let lane = lane.filter(|dim| self.lane_stride(memory, &index, at[*dim]) == Some(bytes));
        let reads = self
            .graph
            .reads(node, &index, &|var| self.variables.below(var));
        let lane_of = &at;
        let lane = lane.filter(|dim| {
            let gathers =
                |(node, at): &(NodeId, Vec<Index>)| self.gathers(*node, at, lane_of[*dim]);
            !reads.iter().any(|read| gathers(read) > 0)
        });
        self.store_loops(e, node, ranges, memory, &at, 0, lane);
    }

    #[allow(clippy::too_many_arguments)]
    fn store_loops(
        &mut self,
        e: &Emitter<'c>,
        node: NodeId,
        ranges: &[Range<'c>],
        memory: &Memory<'c>,
        vars: &[Var],
        dim: usize,
        lane: Option<usize>,
    ) {
        let index: Vec<Index> = vars
            .iter()
            .zip(ranges)
            .map(|(var, range)| Index::var(*var).plus(&Index::constant(range.from)))
            .collect();
        if dim == 0 {
            self.prepare(e, node, &index, Lanes::default(), vars);
        }
        let Some(range) = ranges.get(dim) else {
            let value = self.value(e, node, &index, Lanes::default());
            let address = self.address(e, memory, &index);
            e.store_elem(
                value,
                address,
                self.graph.nodes[node].elem,
                Width::Scalar,
                None,
            );
            return;
        };
        if lane != Some(dim) {
            e.for_loop(e.int(0), range.count, 1, &[], |e, value, _| {
                self.scope(|call| {
                    let position = range.first.map_or(value, |first| e.add(first, value));
                    call.variables.set(vars[dim], position);
                    let blocked = &vars[dim + 1..];
                    call.prepare(e, node, &index, Lanes::default(), blocked);
                    call.store_loops(e, node, ranges, memory, vars, dim + 1, lane);
                });
                vec![]
            });
            return;
        }
        self.lanes_loop(
            e,
            range.count,
            range.known,
            &[],
            |call, e, value, mask, _| {
                call.scope(|call| {
                    let position = range.first.map_or(value, |first| e.add(first, value));
                    call.variables.set(vars[dim], position);
                    for rest in &vars[dim + 1..] {
                        call.variables.set(*rest, e.int(0));
                    }
                    let var = Some(vars[dim]);
                    let value = call.value(e, node, &index, Lanes { var, mask });
                    let address = call.address(e, memory, &index);
                    let elem = call.graph.nodes[node].elem;
                    e.store_elem(value, address, elem, Width::Vector, mask);
                });
                vec![]
            },
        );
    }
}
