//! Folds as stages of a row launch.
//!
//! A fold with many results gives each to one thread, which folds in the order of the program. One with
//! few results gives each to a warp: a lane folds every 32nd element, or four neighbours of every 128,
//! and one thread folds what the lanes have, lane by lane. Which of the two, the fold says.

use std::collections::HashMap;

use cohort_dialects::builder::Val;
use cohort_passes::kernel::rows::layout::Place;
use melior::ir::{ValueLike, operation::OperationLike};

use super::super::launches::{Rows, Stage};
use super::super::ops::{THREADS, WARP, barrier, below, delinearise, divide, when};
use super::super::site::{Address, Known, memory};
use super::{Writer, widened};
use crate::emit::{Emitter, Index, Width};
use crate::read_rows::folds::Fold;
use crate::read_rows::memory::Row;

/// Lanes' values of one result; one more than there are lanes, so that results lie in other banks.
const LANES_STRIDE: i64 = WARP + 1;

/// Bytes of shared memory for the lanes of folds.
pub fn lanes_bytes(rows: &Rows<'_>) -> i64 {
    let folds = rows.stages.iter().filter_map(|stage| match stage {
        Stage::Fold(fold) if fold.lanes.is_some() => {
            Some(fold.results() * rows.block_rows * LANES_STRIDE * 4)
        }
        _ => None,
    });
    folds.max().unwrap_or(0)
}

impl<'c> Writer<'_, '_, 'c> {
    pub(super) fn fold(&self, e: &Emitter<'c>, fold: &Fold<'c>) {
        let width = fold.vectors;
        self.deal(e, fold.results(), self.threads(), |e, _, row, at| {
            let kept = delinearise(e, at, &fold.init.domain);
            let place = fold.store.place;
            let mut touched = self.addresses(e, row, &[&fold.body, &fold.init], &[place]);
            let start = self.start(e, fold, row, &kept, &mut touched);
            let end = e.for_nest(
                &folded_sizes(fold, width),
                &[start],
                &mut |e, at, carried| {
                    let index = whole_index(fold, &kept, &widened(e, at, width));
                    let inputs = self.inputs(e, fold, row, (&index, width), &mut touched.clone());
                    vec![
                        inputs
                            .iter()
                            .fold(carried[0], |sum, inputs| step(e, fold, sum, inputs)),
                    ]
                },
            )[0];
            self.store_end(e, fold, row, &kept, end, &mut touched);
        });
    }

    pub(super) fn fold_by_warps(&self, e: &Emitter<'c>, fold: &Fold<'c>) {
        let elem = fold.elem;
        let lanes = memory(e, true).offset_by(self.frame.shared(), self.lanes);
        let (warp, lane) = divide(e, self.thread, WARP);
        let width = fold.vectors;
        let count = fold.count() / width;
        let sizes = folded_sizes(fold, width);
        self.deal(
            e,
            fold.results(),
            (warp, THREADS / WARP),
            |e, piece, row, at| {
                let kept = delinearise(e, at, &fold.init.domain);
                let touched = self.addresses(e, row, &[&fold.body], &[]);
                let inputs = |e: &Emitter<'c>, at| {
                    let at = widened(e, &delinearise(e, at, &sizes), width);
                    let index = whole_index(fold, &kept, &at);
                    self.inputs(e, fold, row, (&index, width), &mut touched.clone())
                };
                let one_lane = |e: &Emitter<'c>| {
                    let first = inputs(e, lane);
                    let first = first[1..].iter().fold(begin(e, &first[0]), |sum, inputs| {
                        step(e, fold, sum, inputs)
                    });
                    let next = e.add(lane, e.int(WARP));
                    let end = e.for_loop(next, e.int(count), WARP, &[first], |e, at, carried| {
                        let inputs = inputs(e, at);
                        vec![
                            inputs
                                .iter()
                                .fold(carried[0], |sum, inputs| step(e, fold, sum, inputs)),
                        ]
                    })[0];
                    let e = memory(e, true);
                    let of_piece = e.offset(lanes, e.times(piece, LANES_STRIDE * 4));
                    let at = e.offset(of_piece, e.times(lane, 4));
                    e.store_elem(end, at, elem, Width::Scalar, None);
                };
                if count >= WARP {
                    one_lane(e);
                } else {
                    when(e, below(e, lane, e.int(count)), one_lane);
                }
            },
        );
        barrier(e);
        self.deal(e, fold.results(), self.threads(), |e, piece, row, at| {
            let kept = delinearise(e, at, &fold.init.domain);
            let place = fold.store.place;
            let mut touched = self.addresses(e, row, &[&fold.init], &[place]);
            let start = self.start(e, fold, row, &kept, &mut touched);
            let of_piece = memory(e, true).offset(lanes, e.times(piece, LANES_STRIDE * 4));
            let end = e.for_static(count.min(WARP), 1, &[start], |e, at, carried| {
                let of_lane = e.times(e.index_value(at), 4);
                let shared = memory(e, true);
                let at = shared.offset(of_piece, of_lane);
                let value = shared.load_elem(at, elem, Width::Scalar, None);
                vec![combine(e, fold, carried[0], value)]
            })[0];
            self.store_end(e, fold, row, &kept, end, &mut touched);
        });
    }

    /// What a fold starts from.
    fn start(
        &self,
        e: &Emitter<'c>,
        fold: &Fold<'c>,
        row: Option<Row<'c>>,
        kept: &[Index<'c>],
        touched: &mut HashMap<Place, Address<'c>>,
    ) -> Val<'c> {
        let mut site = self.site(row, kept, 1, touched);
        site.value(e, &fold.init, fold.store.value, &mut Known::new())
    }

    fn store_end(
        &self,
        e: &Emitter<'c>,
        fold: &Fold<'c>,
        row: Option<Row<'c>>,
        kept: &[Index<'c>],
        end: Val<'c>,
        touched: &mut HashMap<Place, Address<'c>>,
    ) {
        let mut site = self.site(row, kept, 1, touched);
        site.store(e, &fold.init, &fold.store, &[end], fold.elem);
    }

    /// What is folded in at neighbouring indices, for each of them.
    fn inputs(
        &self,
        e: &Emitter<'c>,
        fold: &Fold<'c>,
        row: Option<Row<'c>>,
        (index, count): (&[Index<'c>], i64),
        touched: &mut HashMap<Place, Address<'c>>,
    ) -> Vec<Vec<Val<'c>>> {
        let mut site = self.site(row, index, count, touched);
        let mut known = Known::new();
        let inputs = fold.inputs.iter();
        let inputs: Vec<_> = inputs
            .map(|input| site.values(e, &fold.body, *input, &mut known))
            .collect();
        (0..count as usize)
            .map(|at| inputs.iter().map(|values| values[at]).collect())
            .collect()
    }
}

/// The index of a fold's domain that kept and folded dims make up.
fn whole_index<'c>(fold: &Fold<'c>, kept: &[Index<'c>], folded: &[Index<'c>]) -> Vec<Index<'c>> {
    let mut kept = kept.iter();
    let mut index = Vec::new();
    for dim in 0..fold.body.domain.len() {
        let at = match fold.folded.iter().position(|folded| *folded == dim) {
            Some(position) => folded.get(position),
            None => kept.next(),
        };
        index.push(at.copied().unwrap_or(Index::constant(0)));
    }
    index
}

/// The sizes of the folded dims, the last one counted in pieces of `width`.
fn folded_sizes(fold: &Fold<'_>, width: i64) -> Vec<i64> {
    let mut sizes: Vec<i64> = fold
        .folded
        .iter()
        .map(|dim| fold.body.domain[*dim])
        .collect();
    if let Some(last) = sizes.last_mut() {
        *last /= width;
    }
    sizes
}

/// What is folded in, as what a fold begins with.
fn begin<'c>(e: &Emitter<'c>, inputs: &[Val<'c>]) -> Val<'c> {
    match inputs[..] {
        [a, b] => e.b.mulf(a, b),
        _ => inputs[0],
    }
}

/// What is folded in, folded into what was folded before.
fn step<'c>(e: &Emitter<'c>, fold: &Fold<'c>, before: Val<'c>, inputs: &[Val<'c>]) -> Val<'c> {
    match inputs[..] {
        [a, b] => e.b.fma(a, b, before),
        _ => combine(e, fold, before, inputs[0]),
    }
}

fn combine<'c>(e: &Emitter<'c>, fold: &Fold<'c>, a: Val<'c>, b: Val<'c>) -> Val<'c> {
    if fold.inputs.len() > 1 {
        return e.b.addf(a, b);
    }
    let e = Emitter {
        b: e.b.at(fold.combiner.location()),
        ..*e
    };
    e.copy(fold.combiner, &[a, b], a.r#type())
}
