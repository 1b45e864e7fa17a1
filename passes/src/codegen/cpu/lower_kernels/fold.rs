//! Writes folds: sums, maxima and products of matrices that differ from row to row.
//!
//! Lanes run along a dim that is kept, so that each lane folds in the order of the program, or
//! along one that is folded, with one reduction of the lanes at the end. The kernel says which of the two,
//! so the order never depends on the number of rows. Several neighbouring results are folded at once, to
//! share loads and to hide latency.

use cohort_abi::manifest::Elem;
use cohort_dialects::builder::{Val, name_of, operands_of};
use melior::ir::operation::OperationLike;
use melior::ir::{OperationRef, ValueLike};

use super::body::{Body, block_of, yields};
use super::compute::{Computer, Known, Lanes};
use super::frame::{Block, Frame, Row};
use crate::codegen::emit::{Emitter, Index, Width};
use crate::codegen::plan_rows::is_operation;
use crate::kernel::loop_level::address_of;
use crate::kernel::rows::body::{Instruction, Store, ValueId};
use crate::kernel::rows::layout::LANES;
use crate::pass::{Failed, Outcome, error};
use crate::support::ir::{defining_op, integer_attribute, integers};

pub fn fold<'c>(
    e: &Emitter<'c>,
    frame: &Frame<'_, 'c>,
    stage: OperationRef<'c, 'c>,
    block: Option<Block<'c>>,
) -> Outcome {
    let folder = Folder::new(frame, stage)?;
    frame.for_rows(e, block, |e, row| match folder.lanes {
        Some(dim) if folder.folded.contains(&dim) => folder.along_folded(e, row, dim),
        dim => folder.along_kept(e, row, dim),
    });
    Ok(())
}

struct Folder<'f, 'a, 'c> {
    frame: &'f Frame<'a, 'c>,
    body: Body<'c>,
    /// What is folded in.
    input: ValueId,
    /// Computes the start of each element of the result.
    init: Body<'c>,
    init_value: ValueId,
    combiner: OperationRef<'c, 'c>,
    kept: Vec<usize>,
    folded: Vec<usize>,
    /// The dim that runs in vectors, how many of them are folded at once, and how many neighbours along
    /// another dim.
    lanes: Option<usize>,
    vectors: i64,
    neighbours: i64,
    elem: Elem,
    store: Store,
    /// The factors of what is summed, where a multiply-add does both.
    factors: Option<(ValueId, ValueId)>,
}

/// One of the results that are folded at once: what to add to the index of each dim.
type Shift = Vec<(usize, i64)>;

/// Folds the results at an index, shifted in each of the given ways.
type KeptBody<'a, 'c> = dyn FnMut(&Emitter<'c>, &[Index<'c>], &[Shift]) + 'a;

impl<'f, 'a, 'c> Folder<'f, 'a, 'c> {
    fn new(frame: &'f Frame<'a, 'c>, stage: OperationRef<'c, 'c>) -> Result<Self, Failed> {
        let over = integers(stage, "over");
        let folded: Vec<usize> = integers(stage, "folding")
            .into_iter()
            .map(|dim| dim as usize)
            .collect();
        let kept: Vec<usize> = (0..over.len())
            .filter(|dim| !folded.contains(dim))
            .collect();
        let sizes = kept.iter().map(|dim| over[*dim]).collect();
        let (start, step) = (block_of(stage, 0)?, block_of(stage, 1)?);
        let combiner = yields(step).first().and_then(|value| defining_op(*value));
        let combiner = combiner.ok_or_else(|| error(stage, "expected a step that combines"))?;
        let body = Body::read(frame.kernel, step, over, Some(combiner))?;
        let init = Body::read(frame.kernel, start, sizes, None)?;
        let init_value = init.id(yields(start)[0]);
        let input = body.id(operands_of(combiner)[1]);
        let (instruction, elem) = &body.values[input];
        let factors = match instruction {
            Instruction::Pointwise { inputs, .. }
                if is_operation(instruction, "arith.mulf") && name_of(combiner) == "arith.addf" =>
            {
                Some((inputs[0], inputs[1]))
            }
            _ => None,
        };
        let store = Store {
            place: frame.kernel.place(operands_of(stage)[0]),
            address: address_of(stage).ok_or_else(|| error(stage, "expected a linear map"))?,
            value: input,
        };
        Ok(Folder {
            frame,
            input,
            init,
            init_value,
            combiner,
            kept,
            folded,
            lanes: integer_attribute(stage, "lanes").map(|dim| dim as usize),
            vectors: integer_attribute(stage, "vectors").unwrap_or(1),
            neighbours: integer_attribute(stage, "neighbours").unwrap_or(1),
            elem: *elem,
            store,
            factors,
            body,
        })
    }

    fn size(&self, dim: usize) -> i64 {
        self.body.domain[dim]
    }

    /// What changes nothing when it is folded in.
    fn neutral(&self) -> Option<u32> {
        Some(match name_of(self.combiner).as_str() {
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
        e.copy(self.combiner, &[a, b], a.r#type())
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
        if let Some((a, b)) = self.factors {
            let a = computer.value(e, a, index, lanes, known);
            let b = computer.value(e, b, index, lanes, known);
            return e.b.at(self.combiner.location()).value(
                "vector.fma",
                &[a, b, accumulator],
                accumulator.r#type(),
            );
        }
        let value = computer.value(e, self.input, index, lanes, known);
        self.combine(e, accumulator, value)
    }

    /// Runs `body` for every index of the kept dims but `lanes`, neighbours along the last together.
    fn for_kept(&self, e: &Emitter<'c>, lanes: Option<usize>, body: &mut KeptBody<'_, 'c>) {
        let rank = self.body.domain.len();
        let outer: Vec<usize> = self
            .kept
            .iter()
            .copied()
            .filter(|dim| Some(*dim) != lanes)
            .collect();
        let along = outer.iter().copied().rev().find(|dim| self.size(*dim) > 1);
        let together = along.map_or(1, |dim| self.neighbours.min(self.size(dim)));
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
        let computer = Computer::new(e, self.frame, &self.body, row);
        let inits = Computer::new(e, self.frame, &self.init, row);
        let stores = self.stores(e, row);
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
            let wide = self.vectors.min(vectors);
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
                inits.value(e, self.init_value, &at, result_lanes, &mut known)
            })
            .collect();
        let sizes: Vec<i64> = self.folded.iter().map(|dim| self.size(*dim)).collect();
        let sums = e.for_nest(&sizes, &starts, &mut |e, folded, sums| {
            let mut index = index.to_vec();
            for (dim, at) in self.folded.iter().zip(folded) {
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
        let computer = Computer::new(e, self.frame, &self.body, row);
        let inits = Computer::new(e, self.frame, &self.init, row);
        let stores = self.stores(e, row);
        let neutral = self.neutral().unwrap_or(0);
        let others: Vec<usize> = self
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
                let start = inits.value(e, self.init_value, &at, scalar, &mut Known::new());
                let result = self.combine(e, start, e.first_lane(all, self.elem));
                stores.store(e, &self.store, result, self.elem, &at, scalar);
            }
        });
    }

    /// Knows the address of the result.
    fn stores(&self, e: &Emitter<'c>, row: Option<Row<'c>>) -> Computer<'_, 'a, 'c> {
        let mut computer = Computer::new(e, self.frame, &self.init, row);
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
