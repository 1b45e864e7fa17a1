//! Writes folds: sums, maxima and products of matrices that differ from row to row.
//!
//! Lanes run along a dim that is kept, so that each lane folds in the order of the program, or
//! along one that is folded, with one reduction of the lanes at the end. Which of the two is chosen
//! from the addresses alone, and so is the order: it never depends on the number of rows. Several
//! neighbouring results are folded at once, to share loads and to hide latency.

use cohort_abi::manifest::Elem;
use cohort_dialects::builder::{Val, name_of};
use melior::ir::ValueLike;
use melior::ir::operation::OperationLike;

use super::compute::{Computer, Known, Lanes, is_operation};
use super::frame::{Block, Frame, Row};
use crate::codegen::emit::{Emitter, Index, Width};
use crate::kernel::rows::body::{Body, Instruction, Store, ValueId};
use crate::kernel::rows::graph::Linear;
use crate::kernel::rows::layout::LANES;
use crate::kernel::rows::stage::Fold;

/// Results that are folded at once: vectors side by side, and neighbours along another dim.
const MAX_VECTORS: i64 = 4;
const MAX_NEIGHBOURS: i64 = 4;

pub fn fold<'c>(e: &Emitter<'c>, frame: &Frame<'_, 'c>, fold: &Fold<'c>, block: Option<Block<'c>>) {
    let folder = Folder::new(frame, fold);
    frame.for_rows(e, block, |e, row| match folder.lanes_dim() {
        Some(dim) if folder.fold.dims.contains(&dim) => folder.along_folded(e, row, dim),
        dim => folder.along_kept(e, row, dim),
    });
}

struct Folder<'a, 'f, 'c> {
    frame: &'a Frame<'f, 'c>,
    fold: &'a Fold<'c>,
    kept: Vec<usize>,
    elem: Elem,
    store: Store,
    /// The factors of what is summed, where a multiply-add does both.
    factors: Option<(ValueId, ValueId)>,
}

/// One of the results that are folded at once: what to add to the index of each dim.
type Shift = Vec<(usize, i64)>;

/// Folds the results at an index, shifted in each of the given ways.
type KeptBody<'a, 'c> = dyn FnMut(&Emitter<'c>, &[Index<'c>], &[Shift]) + 'a;

impl<'a, 'f, 'c> Folder<'a, 'f, 'c> {
    fn new(frame: &'a Frame<'f, 'c>, fold: &'a Fold<'c>) -> Self {
        let rank = fold.body.domain.len();
        let kept: Vec<usize> = (0..rank).filter(|dim| !fold.dims.contains(dim)).collect();
        let layout = frame.layouts.of_node[fold.node].as_ref();
        let layout = layout.unwrap_or_else(|| unreachable!("a fold has memory"));
        let address = Linear {
            constant: 0,
            coefficients: layout.strides.clone(),
        };
        let store = Store {
            place: layout.place,
            address,
            value: fold.input,
        };
        let (instruction, elem) = &fold.body.values[fold.input];
        let factors = match instruction {
            Instruction::Pointwise { inputs, .. }
                if is_operation(instruction, "arith.mulf")
                    && name_of(fold.combiner) == "arith.addf" =>
            {
                Some((inputs[0], inputs[1]))
            }
            _ => None,
        };
        Folder {
            frame,
            fold,
            kept,
            elem: *elem,
            store,
            factors,
        }
    }

    fn size(&self, dim: usize) -> i64 {
        self.fold.body.domain[dim]
    }

    /// The dim that the lanes run along: the one with the fewest gathers, the longer of equals.
    fn lanes_dim(&self) -> Option<usize> {
        let gathers = |dim: usize| {
            let strided = |(instruction, _): &&(Instruction<'c>, Elem)| match instruction {
                Instruction::Load { address, .. } => !matches!(address.coefficients[dim], 0 | 1),
                _ => false,
            };
            self.fold.body.values.iter().filter(strided).count()
        };
        let folded = self
            .fold
            .dims
            .iter()
            .copied()
            .filter(|_| self.neutral().is_some());
        // A result is stored as vectors along its last dim only.
        self.kept
            .last()
            .copied()
            .into_iter()
            .chain(folded)
            .filter(|dim| self.size(*dim) > 1)
            .min_by_key(|dim| (gathers(*dim), -self.size(*dim).min(LANES), *dim))
    }

    /// What changes nothing when it is folded in.
    fn neutral(&self) -> Option<u32> {
        Some(match name_of(self.fold.combiner).as_str() {
            "arith.addf" => (-0.0_f32).to_bits(),
            "arith.mulf" => 1.0_f32.to_bits(),
            "arith.maximumf" | "arith.maxnumf" => f32::NEG_INFINITY.to_bits(),
            "arith.minimumf" | "arith.minnumf" => f32::INFINITY.to_bits(),
            "arith.addi" | "arith.ori" | "arith.xori" | "arith.maxui" => 0,
            "arith.muli" => 1,
            "arith.maxsi" => i32::MIN as u32,
            "arith.minsi" => i32::MAX as u32,
            "arith.minui" | "arith.andi" => u32::MAX,
            _ => return None,
        })
    }

    fn combine(&self, e: &Emitter<'c>, a: Val<'c>, b: Val<'c>) -> Val<'c> {
        e.copy(self.fold.combiner, &[a, b], a.r#type())
    }

    /// Folds the value at an index into an accumulator.
    fn step(
        &self,
        e: &Emitter<'c>,
        computer: &Computer<'_, 'f, 'c>,
        accumulator: Val<'c>,
        index: &[Index<'c>],
        lanes: Lanes<'c>,
        known: &mut Known<'c>,
    ) -> Val<'c> {
        if let Some((a, b)) = self.factors {
            let a = computer.value(e, a, index, lanes, known);
            let b = computer.value(e, b, index, lanes, known);
            return e.b.at(self.fold.combiner.location()).value(
                "vector.fma",
                &[a, b, accumulator],
                accumulator.r#type(),
            );
        }
        let value = computer.value(e, self.fold.input, index, lanes, known);
        self.combine(e, accumulator, value)
    }

    /// How many neighbours along `dim` to fold at once: more than one only if they share a load.
    fn neighbours(&self, computer: &Computer<'_, '_, '_>, dim: Option<usize>) -> i64 {
        let Some(dim) = dim else { return 1 };
        let body: &Body<'_> = &self.fold.body;
        let shares = (0..body.values.len()).any(|id| {
            matches!(body.values[id].0, Instruction::Load { .. }) && computer.ignores(id, dim)
        });
        if shares {
            self.size(dim).min(MAX_NEIGHBOURS)
        } else {
            1
        }
    }

    /// Runs `body` for every index of the kept dims but `lanes`, neighbours along the last together.
    fn for_kept(
        &self,
        e: &Emitter<'c>,
        computer: &Computer<'_, 'f, 'c>,
        lanes: Option<usize>,
        body: &mut KeptBody<'_, 'c>,
    ) {
        let rank = self.fold.body.domain.len();
        let outer: Vec<usize> = self
            .kept
            .iter()
            .copied()
            .filter(|dim| Some(*dim) != lanes)
            .collect();
        let along = outer.iter().copied().rev().find(|dim| self.size(*dim) > 1);
        let together = self.neighbours(computer, along);
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

    fn along_kept(&self, e: &Emitter<'c>, row: Option<Row<'c>>, dim: Option<usize>) {
        let computer = Computer::new(e, self.frame, &self.fold.body, row);
        let inits = Computer::new(e, self.frame, &self.fold.init, row);
        let stores = self.stores(e, row);
        self.for_kept(e, &computer, dim, &mut |e, index, shifts| {
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
            let wide = MAX_VECTORS.min(vectors);
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
        [computer, inits]: [&Computer<'_, 'f, 'c>; 2],
        stores: &Computer<'_, 'f, 'c>,
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
                inits.value(e, self.fold.init_value, &at, result_lanes, &mut known)
            })
            .collect();
        let sizes: Vec<i64> = self.fold.dims.iter().map(|dim| self.size(*dim)).collect();
        let sums = e.for_nest(&sizes, &starts, &mut |e, folded, sums| {
            let mut index = index.to_vec();
            for (dim, at) in self.fold.dims.iter().zip(folded) {
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
            stores.store(e, &self.store, sum, self.elem, &at, result_lanes);
        }
    }

    fn along_folded(&self, e: &Emitter<'c>, row: Option<Row<'c>>, dim: usize) {
        let computer = Computer::new(e, self.frame, &self.fold.body, row);
        let inits = Computer::new(e, self.frame, &self.fold.init, row);
        let stores = self.stores(e, row);
        let neutral = self.neutral().unwrap_or(0);
        let others: Vec<usize> = self
            .fold
            .dims
            .iter()
            .copied()
            .filter(|other| *other != dim)
            .collect();
        let sizes: Vec<i64> = others.iter().map(|other| self.size(*other)).collect();
        let size = self.size(dim);
        self.for_kept(e, &computer, None, &mut |e, index, shifts| {
            let starts: Vec<_> = shifts
                .iter()
                .map(|_| e.bits(neutral, self.elem, Width::Vector))
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
                let start = inits.value(e, self.fold.init_value, &at, scalar, &mut Known::new());
                let result = self.combine(e, start, e.first_lane(all, self.elem));
                stores.store(e, &self.store, result, self.elem, &at, scalar);
            }
        });
    }

    /// Knows the address of the result.
    fn stores(&self, e: &Emitter<'c>, row: Option<Row<'c>>) -> Computer<'a, 'f, 'c> {
        let mut computer = Computer::new(e, self.frame, &self.fold.init, row);
        computer.touch(e, self.store.place);
        computer
    }

    fn result_index(&self, index: &[Index<'c>]) -> Vec<Index<'c>> {
        self.kept.iter().map(|dim| index[*dim]).collect()
    }

    fn result_lanes(&self, lanes: Lanes<'c>) -> Lanes<'c> {
        let dim = lanes
            .dim
            .and_then(|dim| self.kept.iter().position(|kept| *kept == dim));
        Lanes { dim, ..lanes }
    }
}
