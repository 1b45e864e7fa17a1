//! Writes folds: sums, maxima and products of matrices that differ from row to row.
//!
//! Lanes run along a dim that is kept, so that each lane folds in the order of the program, or
//! along one that is folded, with one reduction of the lanes at the end. The kernel says which of the two,
//! so the order never depends on the number of rows. Or the lanes are rows, each of which folds by itself.
//! Several neighbouring results are folded at once, to share loads and to hide latency.

use cohort_dialects::builder::Val;
use cohort_dialects::keys;
use cohort_passes::kernel::calls;
use cohort_passes::kernel::rows::layout::LANES;
use cohort_passes::pass::Outcome;
use melior::ir::operation::OperationLike;
use melior::ir::{OperationRef, ValueLike};

use super::compute::{Computer, Known, Lanes};
use super::frame::{Block, Frame, Rows};
use crate::emit::{Emitter, Index, Width};
use crate::read_rows::folds::Fold;

pub fn fold<'c>(
    e: &Emitter<'c>,
    frame: &Frame<'_, 'c>,
    stage: OperationRef<'c, 'c>,
    block: Option<Block<'c>>,
) -> Outcome {
    let folder = Folder {
        frame,
        fold: Fold::read(frame.arguments.kernel, stage)?,
    };
    let across_rows = stage.has_attribute(&keys::ACROSS_ROWS);
    frame.for_rows_or_lanes(e, block, across_rows, |e, rows| match folder.fold.lanes {
        Some(dim) if folder.fold.folded.contains(&dim) => folder.along_folded(e, rows, dim),
        dim => folder.along_kept(e, rows, dim),
    });
    Ok(())
}

struct Folder<'f, 'a, 'c> {
    frame: &'f Frame<'a, 'c>,
    fold: Fold<'c>,
}

/// One of the results that are folded at once: what to add to the index of each dim.
type Shift = Vec<(usize, i64)>;

/// Folds the results at an index, shifted in each of the given ways.
type KeptBody<'a, 'c> = dyn FnMut(&Emitter<'c>, &[Index<'c>], &[Shift]) + 'a;

impl<'a, 'c> Folder<'_, 'a, 'c> {
    fn size(&self, dim: usize) -> i64 {
        self.fold.body.domain[dim]
    }

    fn combine(&self, e: &Emitter<'c>, a: Val<'c>, b: Val<'c>) -> Val<'c> {
        e.copy(self.fold.combiner, &[a, b], a.r#type())
    }

    /// Folds the value at an index into an accumulator.
    fn step(
        &self,
        e: &Emitter<'c>,
        computer: &Computer<'_, 'a, 'c>,
        accumulator: Val<'c>,
        index: &[Index<'c>],
        lanes: Lanes<'c>,
        known: &mut Known<'c>,
    ) -> Val<'c> {
        if let [a, b] = self.fold.inputs[..] {
            let a = computer.value(e, a, index, lanes, known);
            let b = computer.value(e, b, index, lanes, known);
            return e
                .b
                .at(self.fold.combiner.location())
                .vector_fma(a, b, accumulator);
        }
        let value = computer.value(e, self.fold.inputs[0], index, lanes, known);
        self.combine(e, accumulator, value)
    }

    /// Runs `body` for every index of the kept dims but `lanes`, neighbours along the last together.
    fn for_kept(&self, e: &Emitter<'c>, lanes: Option<usize>, body: &mut KeptBody<'_, 'c>) {
        let rank = self.fold.body.domain.len();
        let outer: Vec<usize> = self
            .fold
            .kept
            .iter()
            .copied()
            .filter(|dim| Some(*dim) != lanes)
            .collect();
        let along = outer.iter().copied().rev().find(|dim| self.size(*dim) > 1);
        let together = along.map_or(1, |dim| self.fold.neighbours.min(self.size(dim)));
        let sizes: Vec<i64> = outer
            .iter()
            .map(|dim| {
                if Some(*dim) == along {
                    1
                } else {
                    self.size(*dim)
                }
            })
            .collect();
        e.for_nest(&sizes, &[], &mut |e, outer_index, _| {
            let mut index = vec![Index::constant(0); rank];
            for (dim, at) in outer.iter().zip(outer_index) {
                index[*dim] = *at;
            }
            let Some(along) = along else {
                body(e, &index, &[vec![]]);
                return vec![];
            };
            let size = self.size(along);
            let whole = size / together * together;
            let shifts = |count: i64| -> Vec<Shift> {
                (0..count)
                    .map(|neighbour| vec![(along, neighbour)])
                    .collect()
            };
            e.for_static(whole, together, &[], |e, at, _| {
                index[along] = at;
                body(e, &index, &shifts(together));
                vec![]
            });
            if whole < size {
                index[along] = Index::constant(whole);
                body(e, &index, &shifts(size - whole));
            }
            vec![]
        });
    }

    fn along_kept(&self, e: &Emitter<'c>, rows: Rows<'c>, dim: Option<usize>) {
        let computer = Computer::new(e, self.frame, &self.fold.body, rows);
        let inits = Computer::new(e, self.frame, &self.fold.init, rows);
        let stores = self.stores(e, rows);
        self.for_kept(e, dim, &mut |e, index, shifts| {
            let Some(dim) = dim else {
                let lanes = Lanes {
                    width: Width::Vector,
                    dim: None,
                    mask: None,
                };
                self.kept_block(e, [&computer, &inits], &stores, index, shifts, lanes);
                return;
            };
            let size = self.size(dim);
            if size < LANES {
                let lanes = Lanes {
                    width: Width::Vector,
                    dim: Some(dim),
                    mask: Some(e.mask(size)),
                };
                self.kept_block(e, [&computer, &inits], &stores, index, shifts, lanes);
                return;
            }
            // Blocks of several vectors, then what is left of them; the last may overlap.
            let lanes = Lanes {
                width: Width::Vector,
                dim: Some(dim),
                mask: None,
            };
            let vectors = (size + LANES - 1) / LANES;
            let wide = self.fold.vectors.min(vectors);
            let blocks = size / (wide * LANES) * wide * LANES;
            let widen = |starts: &[i64]| -> Vec<Shift> {
                let pairs = starts
                    .iter()
                    .flat_map(|at| shifts.iter().map(move |s| (at, s)));
                let widened = pairs.map(|(at, shift)| {
                    let mut shift = shift.clone();
                    shift.push((dim, *at));
                    shift
                });
                widened.collect()
            };
            let mut index = index.to_vec();
            e.for_static(blocks, wide * LANES, &[], |e, at, _| {
                index[dim] = at;
                let starts: Vec<_> = (0..wide).map(|vector| vector * LANES).collect();
                self.kept_block(
                    e,
                    [&computer, &inits],
                    &stores,
                    &index,
                    &widen(&starts),
                    lanes,
                );
                vec![]
            });
            if blocks < size {
                let starts = (blocks..size)
                    .step_by(LANES as usize)
                    .map(|at| at.min(size - LANES));
                let starts: Vec<_> = starts.collect();
                index[dim] = Index::constant(0);
                self.kept_block(
                    e,
                    [&computer, &inits],
                    &stores,
                    &index,
                    &widen(&starts),
                    lanes,
                );
            }
        });
    }

    /// Folds a few vectors of results at once.
    fn kept_block(
        &self,
        e: &Emitter<'c>,
        [computer, inits]: [&Computer<'_, 'a, 'c>; 2],
        stores: &Computer<'_, 'a, 'c>,
        index: &[Index<'c>],
        shifts: &[Shift],
        lanes: Lanes<'c>,
    ) {
        let shifted = |index: &[Index<'c>], shift: &Shift| {
            let mut index = index.to_vec();
            for (dim, by) in shift {
                index[*dim] = index[*dim].plus(*by);
            }
            index
        };
        let mut known = Known::new();
        let result_lanes = self.result_lanes(lanes);
        let starts: Vec<_> = shifts
            .iter()
            .map(|shift| {
                let at = self.result_index(&shifted(index, shift));
                inits.value(e, self.fold.store.value, &at, result_lanes, &mut known)
            })
            .collect();
        let sizes: Vec<i64> = self.fold.folded.iter().map(|dim| self.size(*dim)).collect();
        let sums = e.for_nest(&sizes, &starts, &mut |e, folded, sums| {
            let mut index = index.to_vec();
            for (dim, at) in self.fold.folded.iter().zip(folded) {
                index[*dim] = *at;
            }
            let mut known = Known::new();
            let steps = shifts.iter().zip(sums);
            steps
                .map(|(shift, sum)| {
                    self.step(
                        e,
                        computer,
                        *sum,
                        &shifted(&index, shift),
                        lanes,
                        &mut known,
                    )
                })
                .collect()
        });
        for (shift, sum) in shifts.iter().zip(sums) {
            let at = self.result_index(&shifted(index, shift));
            stores.store(e, &self.fold.store, sum, self.fold.elem, &at, result_lanes);
        }
    }

    fn along_folded(&self, e: &Emitter<'c>, rows: Rows<'c>, dim: usize) {
        let computer = Computer::new(e, self.frame, &self.fold.body, rows);
        let inits = Computer::new(e, self.frame, &self.fold.init, rows);
        let stores = self.stores(e, rows);
        let neutral = calls::neutral(self.fold.combiner);
        let others: Vec<usize> = self
            .fold
            .folded
            .iter()
            .copied()
            .filter(|other| *other != dim)
            .collect();
        let sizes: Vec<i64> = others.iter().map(|other| self.size(*other)).collect();
        let size = self.size(dim);
        self.for_kept(e, None, &mut |e, index, shifts| {
            let starts: Vec<_> = shifts
                .iter()
                .map(|_| e.bits(neutral, self.fold.elem, Width::Vector))
                .collect();
            let sums = e.for_nest(&sizes, &starts, &mut |e, at, sums| {
                let mut index = index.to_vec();
                for (other, at) in others.iter().zip(at) {
                    index[*other] = *at;
                }
                let step =
                    |e: &Emitter<'c>, at: Index<'c>, mask: Option<Val<'c>>, sums: &[Val<'c>]| {
                        let lanes = Lanes {
                            width: Width::Vector,
                            dim: Some(dim),
                            mask,
                        };
                        let mut known = Known::new();
                        let steps = shifts.iter().zip(sums);
                        steps
                            .map(|(shift, sum)| {
                                let mut index = index.clone();
                                index[dim] = at;
                                for (dim, by) in shift {
                                    index[*dim] = index[*dim].plus(*by);
                                }
                                let next = self.step(e, &computer, *sum, &index, lanes, &mut known);
                                mask.map_or(next, |mask| e.select(mask, next, *sum))
                            })
                            .collect::<Vec<_>>()
                    };
                let whole = size / LANES * LANES;
                let sums = e.for_static(whole, LANES, sums, |e, at, sums| step(e, at, None, sums));
                if whole == size {
                    return sums;
                }
                step(e, Index::constant(whole), Some(e.mask(size - whole)), &sums)
            });
            let scalar = Lanes {
                width: Width::Scalar,
                dim: None,
                mask: None,
            };
            for (shift, sum) in shifts.iter().zip(sums) {
                let mut index = index.to_vec();
                for (dim, by) in shift {
                    index[*dim] = index[*dim].plus(*by);
                }
                let at = self.result_index(&index);
                let mut all = sum;
                for by in [8, 4, 2, 1] {
                    all = self.combine(e, all, e.rotate(all, by));
                }
                let start = inits.value(e, self.fold.store.value, &at, scalar, &mut Known::new());
                let result = self.combine(e, start, e.first_lane(all, self.fold.elem));
                stores.store(e, &self.fold.store, result, self.fold.elem, &at, scalar);
            }
        });
    }

    /// Knows the address of the result.
    fn stores(&self, e: &Emitter<'c>, rows: Rows<'c>) -> Computer<'_, 'a, 'c> {
        let mut computer = Computer::new(e, self.frame, &self.fold.init, rows);
        computer.touch(e, self.fold.store.place, self.fold.elem);
        computer
    }

    fn result_index(&self, index: &[Index<'c>]) -> Vec<Index<'c>> {
        self.fold.kept.iter().map(|dim| index[*dim]).collect()
    }

    fn result_lanes(&self, lanes: Lanes<'c>) -> Lanes<'c> {
        let dim = lanes
            .dim
            .and_then(|dim| self.fold.kept.iter().position(|kept| *kept == dim));
        Lanes { dim, ..lanes }
    }
}
