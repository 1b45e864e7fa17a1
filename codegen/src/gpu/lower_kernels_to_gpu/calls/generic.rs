//! Loops: a thread an element, or, where elements are folds or made of some, a warp a
//! row.
//!
//! The folds that all elements of a row share are computed by the warp: a lane folds every 32nd term
//! along the last of the folded dims, and what the lanes have is folded in their order. Others are
//! computed by one thread, term by term.

use cohort_abi::gpu::{CallTiles, TiledDim};
use cohort_abi::manifest::Extent;
use cohort_dialects::builder::Val;
use cohort_passes::kernel::affine::{Affine, Var};
use cohort_passes::kernel::calls;
use cohort_passes::kernel::calls::graph::{Graph, Kind, NodeId, Size};
use cohort_passes::kernel::calls::memory::extent;
use cohort_passes::kernel::calls::stages::Nest;

use super::super::ops::{THREADS, WARP, barrier, below, divide, thread, when};
use super::super::site::memory as space;
use super::eval::{Call, Memory};
use super::{Tile, at, split};
use crate::emit::{Emitter, Width};
use crate::variables::Fold;

/// Elements of a thread, where it computes some each for itself.
const ELEMENTS: i64 = 4;

/// Columns of a row that a warp computes.
const COLUMNS: i64 = 256;

const ROWS: i64 = THREADS / WARP;

/// Bytes between the lanes' values of two warps.
const LANES_BYTES: i64 = (WARP + 1) * 4;

/// Loops, and how their iterations are distributed over threads.
pub struct LoopsPlan {
    pub nest: Nest,
    threads: Threads,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Threads {
    /// A thread an element.
    Elements,
    /// A warp a row; without columns a row is one element.
    Rows { columns: bool },
}

pub fn plan(graph: &Graph<'_>, nest: Nest) -> LoopsPlan {
    let folds = graph.folds(nest.store.value, &[]);
    let threads = match (folds.is_empty(), nest.over.len()) {
        (true, _) => Threads::Elements,
        (false, 0 | 1) => Threads::Rows { columns: false },
        (false, _) => Threads::Rows { columns: true },
    };
    LoopsPlan { nest, threads }
}

impl LoopsPlan {
    pub fn shared_bytes(&self) -> i64 {
        match self.threads {
            Threads::Elements => 0,
            Threads::Rows { .. } => 2 * ROWS * LANES_BYTES,
        }
    }

    pub fn tiles(&self, graph: &Graph<'_>) -> CallTiles {
        let sizes = &self.nest.over[..];
        let dim = |sizes: &[Size], tile: i64| TiledDim {
            length: extent(sizes, 1),
            tile: tile as u64,
        };
        let dims = match self.threads {
            Threads::Elements => vec![dim(sizes, ELEMENTS * THREADS)],
            Threads::Rows { columns: false } => vec![dim(sizes, ROWS)],
            Threads::Rows { columns: true } => {
                let (rows, column) = sizes.split_at(sizes.len() - 1);
                vec![dim(rows, ROWS), dim(column, COLUMNS)]
            }
        };
        let folds = graph.folds(self.nest.store.value, &[]);
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

/// Computes a tile of what is stored.
pub fn write<'c>(
    e: &Emitter<'c>,
    call: &mut Call<'_, 'c>,
    plan: &LoopsPlan,
    tile: &Tile<'c>,
    memory: &Memory<'c>,
) {
    let nest = &plan.nest;
    let sizes = nest.over.iter().map(|size| call.size(e, *size));
    let sizes: Vec<Val<'c>> = sizes.collect();
    match plan.threads {
        Threads::Elements => elements(e, call, nest, &sizes, tile, memory),
        Threads::Rows { columns } => rows(e, call, nest, (&sizes, columns), tile, memory),
    }
}

/// How many entries dims have.
fn count<'c>(e: &Emitter<'c>, sizes: &[Val<'c>]) -> Val<'c> {
    sizes
        .iter()
        .fold(e.int(1), |product, size| e.mul(product, *size))
}

fn variables<'c>(call: &mut Call<'_, 'c>, index: &[Val<'c>]) -> Vec<Var> {
    index.iter().map(|at| call.variable(*at)).collect()
}

fn elements<'c>(
    e: &Emitter<'c>,
    call: &mut Call<'_, 'c>,
    nest: &Nest,
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
            let vars = variables(call, &index);
            super::store(e, call, &nest.store, std::slice::from_ref(&vars), memory);
        });
        vec![]
    });
}

fn rows<'c>(
    e: &Emitter<'c>,
    call: &mut Call<'_, 'c>,
    nest: &Nest,
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
    let mut vars = variables(call, &index);
    let column = columns.then(|| call.variable(e.int(0)));
    vars.extend(column);
    let warps = Warps {
        warp,
        lane,
        shared: tile.shared,
    };
    let store = &nest.store;
    let value = (store.value, &at(&store.at, &vars)[..]);
    warps.prepare(e, call, value, column.as_slice(), &mut 0);
    when(e, below(e, number, all), |e| {
        let Some(column) = column else {
            when(e, below(e, lane, e.int(1)), |e| {
                call.scope(|call| {
                    super::store(e, call, store, std::slice::from_ref(&vars), memory);
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
                super::store(e, call, store, std::slice::from_ref(&vars), memory);
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
        (node, at): (NodeId, &[Affine]),
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
        (node, at): (NodeId, &[Affine]),
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
