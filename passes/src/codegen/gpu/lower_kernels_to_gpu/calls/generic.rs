//! Whatever is no product: a thread an element, or, where elements are folds or made of some, a warp a
//! row.
//!
//! The folds that all elements of a row share are computed by the warp: a lane folds every 32nd term
//! along the last of the folded dims, and what the lanes have is folded in their order. Others are
//! computed by one thread, term by term.

use cohort_abi::gpu::{CallTiles, TiledDim};
use cohort_abi::manifest::Extent;
use cohort_dialects::builder::Val;

use super::super::ops::{THREADS, WARP, barrier, below, divide, thread, when};
use super::super::site::memory as space;
use super::eval::{Call, Memory};
use super::{Tile, size_of, split};
use crate::codegen::emit::{Emitter, Width};
use crate::codegen::variables::Fold;
use crate::kernel::calls;
use crate::kernel::calls::graph::{Graph, Index, Kind, NodeId, Size, Var};
use crate::kernel::calls::memory::extent;
use crate::kernel::calls::parts::Window;

/// Elements of a thread, where it computes some each for itself.
const ELEMENTS: i64 = 4;

/// Columns of a row that a warp computes.
const COLUMNS: i64 = 256;

const ROWS: i64 = THREADS / WARP;

/// Bytes between the lanes' values of two warps.
const LANES_BYTES: i64 = (WARP + 1) * 4;

/// How a part of a result is dealt to threads.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Plan {
    /// A thread an element.
    Elements,
    /// A warp a row; without columns a row is one element.
    Rows { columns: bool },
}

pub fn plan(graph: &Graph<'_>, root: NodeId, windows: &[Window]) -> Plan {
    match (graph.folds(root, &[]).is_empty(), windows.len()) {
        (true, _) => Plan::Elements,
        (false, 0 | 1) => Plan::Rows { columns: false },
        (false, _) => Plan::Rows { columns: true },
    }
}

impl Plan {
    pub fn shared_bytes(self) -> i64 {
        match self {
            Plan::Elements => 0,
            Plan::Rows { .. } => 2 * ROWS * LANES_BYTES,
        }
    }

    pub fn tiles(self, graph: &Graph<'_>, root: NodeId, windows: &[Window]) -> CallTiles {
        let sizes: Vec<Size> = windows.iter().map(|window| window.size).collect();
        let dim = |sizes: &[Size], tile: i64| TiledDim {
            length: extent(sizes, 1),
            tile: tile as u64,
        };
        let dims = match self {
            Plan::Elements => vec![dim(&sizes, ELEMENTS * THREADS)],
            Plan::Rows { columns: false } => vec![dim(&sizes, ROWS)],
            Plan::Rows { columns: true } => {
                let (rows, column) = sizes.split_at(sizes.len() - 1);
                vec![dim(rows, ROWS), dim(column, COLUMNS)]
            }
        };
        let folds = graph.folds(root, &[]);
        let input = folds.first().map(|fold| match &graph.nodes[*fold].kind {
            Kind::Reduce { input, .. } => extent(&graph.nodes[*input].shape, 1),
            _ => Extent::default(),
        });
        let none = Extent {
            lengths: vec![],
            times: 1,
        };
        CallTiles {
            dims,
            work: input.unwrap_or(none),
        }
    }
}

/// Computes a tile of a part of a result.
pub fn write<'c>(
    e: &Emitter<'c>,
    call: &mut Call<'_, 'c>,
    part: (NodeId, &[Window]),
    plan: Plan,
    tile: &Tile<'c>,
    memory: &Memory<'c>,
) {
    let sizes: Vec<Val<'c>> = part
        .1
        .iter()
        .map(|window| size_of(e, call, window))
        .collect();
    match plan {
        Plan::Elements => elements(e, call, part, &sizes, tile, memory),
        Plan::Rows { columns } => rows(e, call, part, (&sizes, columns), tile, memory),
    }
}

/// How many entries dims have.
fn count<'c>(e: &Emitter<'c>, sizes: &[Val<'c>]) -> Val<'c> {
    sizes
        .iter()
        .fold(e.int(1), |product, size| e.mul(product, *size))
}

fn variables<'c>(call: &mut Call<'_, 'c>, windows: &[Window], index: &[Val<'c>]) -> Vec<Var> {
    let dims = windows.iter().zip(index);
    dims.map(|(window, at)| call.variable(*at, window.size.known()))
        .collect()
}

fn elements<'c>(
    e: &Emitter<'c>,
    call: &mut Call<'_, 'c>,
    (root, windows): (NodeId, &[Window]),
    sizes: &[Val<'c>],
    tile: &Tile<'c>,
    memory: &Memory<'c>,
) {
    let first = e.add(tile.first[0], thread(e));
    let end = e.min(
        count(e, sizes),
        e.add(tile.first[0], e.int(ELEMENTS * THREADS)),
    );
    e.for_loop(first, end, THREADS, &[], |e, at, _| {
        call.scope(|call| {
            let index = split(e, at, sizes);
            let vars = variables(call, windows, &index);
            super::store(
                e,
                call,
                (root, windows),
                std::slice::from_ref(&vars),
                memory,
            );
        });
        vec![]
    });
}

fn rows<'c>(
    e: &Emitter<'c>,
    call: &mut Call<'_, 'c>,
    (root, windows): (NodeId, &[Window]),
    (sizes, columns): (&[Val<'c>], bool),
    tile: &Tile<'c>,
    memory: &Memory<'c>,
) {
    let (warp, lane) = divide(e, thread(e), WARP);
    let outer = &sizes[..sizes.len() - usize::from(columns)];
    let all = count(e, outer);
    let number = e.add(tile.first[0], warp);
    // A warp without a row computes the last one, to meet the barriers.
    let row = e.min(number, e.sub(all, e.int(1)));
    let index = split(e, row, outer);
    let mut vars = variables(call, windows, &index);
    let column = columns.then(|| {
        let column = windows.len() - 1;
        call.variable(e.int(0), windows[column].size.known())
    });
    vars.extend(column);
    let warps = Warps {
        warp,
        lane,
        shared: tile.shared,
    };
    let at: Vec<Index> = vars
        .iter()
        .zip(windows)
        .map(|(var, window)| Index::var(*var).plus(&Index::constant(window.from)))
        .collect();
    warps.prepare(e, call, (root, &at), column.as_slice(), &mut 0);
    when(e, below(e, number, all), |e| {
        let Some(column) = column else {
            when(e, below(e, lane, e.int(1)), |e| {
                call.scope(|call| {
                    super::store(
                        e,
                        call,
                        (root, windows),
                        std::slice::from_ref(&vars),
                        memory,
                    )
                });
            });
            return;
        };
        let first = e.add(tile.first[1], lane);
        let end = e.add(tile.first[1], e.int(COLUMNS));
        let end = e.min(end, sizes[sizes.len() - 1]);
        e.for_loop(first, end, WARP, &[], |e, at, _| {
            call.scope(|call| {
                call.set(column, at);
                super::store(
                    e,
                    call,
                    (root, windows),
                    std::slice::from_ref(&vars),
                    memory,
                );
            });
            vec![]
        });
    });
}

struct Warps<'c> {
    warp: Val<'c>,
    lane: Val<'c>,
    shared: Val<'c>,
}

impl<'c> Warps<'c> {
    /// Computes the folds that a node needs and that depend on no `blocked` variable. Counts them.
    fn prepare(
        &self,
        e: &Emitter<'c>,
        call: &mut Call<'_, 'c>,
        (node, at): (NodeId, &[Index]),
        blocked: &[Var],
        folds: &mut i64,
    ) {
        for (node, at) in call.ready(node, at, blocked) {
            if call.is_known(node, &at) {
                continue;
            }
            let fold = call.fold_of(node, &at);
            self.prepare(e, call, (fold.input, &fold.domain), &fold.inner, folds);
            let value = self.fold(e, call, (node, &at), &fold, *folds);
            *folds += 1;
            call.give(node, at, value);
        }
    }

    fn fold(
        &self,
        e: &Emitter<'c>,
        call: &mut Call<'_, 'c>,
        (node, at): (NodeId, &[Index]),
        fold: &Fold<'c>,
        number: i64,
    ) -> Val<'c> {
        let elem = call.graph.nodes[node].elem;
        let neutral = e.bits(calls::neutral(fold.combiner), elem, Width::Scalar);
        let of_lane = self.lane(e, call, fold, 0, neutral);
        // Two buffers take turns, so that one barrier is enough.
        let s = &space(e, true);
        let lanes = s.offset_by(self.shared, number % 2 * ROWS * LANES_BYTES);
        let lanes = s.offset(lanes, e.times(self.warp, LANES_BYTES));
        let to = s.offset(lanes, e.times(self.lane, 4));
        s.store_elem(of_lane, to, elem, Width::Scalar, None);
        barrier(e);
        let start = call.value(e, fold.init, at);
        e.for_loop(e.int(0), e.int(WARP), 1, &[start], |e, lane, sums| {
            let s = &space(e, true);
            let from = s.offset(lanes, e.times(lane, 4));
            let value = s.load_elem(from, elem, Width::Scalar, None);
            vec![e.copy(fold.combiner, &[sums[0], value], value_type(e, elem))]
        })[0]
    }

    /// What a lane folds, from one of the dims on.
    fn lane(
        &self,
        e: &Emitter<'c>,
        call: &mut Call<'_, 'c>,
        fold: &Fold<'c>,
        dim: usize,
        sum: Val<'c>,
    ) -> Val<'c> {
        let Some(var) = fold.inner.get(dim).copied() else {
            return call.fold_step(e, fold, sum);
        };
        let last = dim + 1 == fold.inner.len();
        let (first, step) = if last {
            (self.lane, WARP)
        } else {
            (e.int(0), 1)
        };
        let size = call.size(e, fold.sizes[dim]);
        e.for_loop(first, size, step, &[sum], |e, at, sums| {
            call.scope(|call| {
                call.set(var, at);
                vec![self.lane(e, call, fold, dim + 1, sums[0])]
            })
        })[0]
    }
}

fn value_type<'c>(e: &Emitter<'c>, elem: cohort_abi::manifest::Elem) -> melior::ir::Type<'c> {
    e.elem_type(elem, Width::Scalar)
}
