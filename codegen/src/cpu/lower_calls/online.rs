//! Softmax-like folds between two products, computed online: `Σ_j exp(s - max s) / Σ exp(s - max s) · v`
//! where `s` is computed from a product, element by element.
//!
//! The scores of a block of rows and a block of `j` are a tile in scratch; they are never all there.
//! What was summed with an earlier maximum is rescaled when a block raises it (Milakov and
//! Gimelshein, Online Normalizer Calculation for Softmax, 2018; Dao et al., FlashAttention, 2022,
//! algorithm 1). Blocks are counted from the call's own first row, so bits depend on the call alone.

use cohort_abi::manifest::Elem;
use cohort_dialects::builder::{CmpfPredicate, Val};
use cohort_passes::kernel::affine::{Affine, Var};
use cohort_passes::kernel::calls::stages::{OnlineSoftmax, Side};
use cohort_passes::kernel::rows::layout::{LANES, round_up};
use cohort_passes::kernel::rows::stage::{PANEL, TILE_ROWS};
use melior::ir::ValueLike;

use super::eval::{Base, Call, Lanes, Memory, Range, Stride};
use super::packing::Packing;
use super::product::{BLOCKS, TILE, ZEROS, block_of};
use crate::emit::{Emitter, Width};

/// Where things lie in the scratch.
struct OnlineLayout {
    rows: i64,
    row_bytes: i64,
    keys: i64,
    key_panel: i64,
    values: i64,
    value_panel: i64,
    scores: i64,
    /// Bytes between rows of scores.
    score_row: i64,
    sums: i64,
    sum_row: i64,
    most: i64,
    total: i64,
    /// Whether a block of rows needs what is behind the mask.
    needed: i64,
    /// Of a tile's rows: what is taken from their scores, and what sums are multiplied by.
    now: i64,
    scale: i64,
    bytes: i64,
}

impl OnlineLayout {
    fn of(online: &OnlineSoftmax) -> OnlineLayout {
        let [block_rows, block_keys] = online.blocks;
        let columns = columns_of(online);
        let row_bytes = (round_up(online.depth, LANES) + LANES) * 4;
        let key_panel = round_up(online.depth, LANES) * PANEL * 4;
        let value_panel = block_keys * PANEL * 4;
        let sum_row = round_up(columns, PANEL) * 4;
        // Whole vectors are stored behind the last score of a row.
        let score_row = (block_keys + LANES) * 4;
        let of_rows = (block_rows + TILE_ROWS) * 4;
        let rows = BLOCKS;
        let keys = rows + (block_rows + LANES) * row_bytes;
        let values = keys + block_keys / PANEL * key_panel;
        let scores = values + round_up(columns, PANEL) / PANEL * value_panel;
        let sums = scores + (TILE_ROWS + 1) * score_row;
        let most = sums + (block_rows + TILE_ROWS) * sum_row;
        let total = most + of_rows;
        let needed = total + of_rows;
        OnlineLayout {
            rows,
            row_bytes,
            keys,
            key_panel,
            values,
            value_panel,
            scores,
            score_row,
            sums,
            sum_row,
            most,
            total,
            needed,
            now: needed + 64,
            scale: needed + 128,
            bytes: needed + 192,
        }
    }
}

fn columns_of(online: &OnlineSoftmax) -> i64 {
    let columns = online.over.last().and_then(|size| size.known());
    columns.unwrap_or(1)
}

pub fn scratch_bytes(online: &OnlineSoftmax) -> i64 {
    OnlineLayout::of(online).bytes
}

/// Computes a part of a result.
pub fn write<'c>(
    e: &Emitter<'c>,
    call: &mut Call<'_, 'c>,
    online: &OnlineSoftmax,
    memory: &Memory<'c>,
    scratch: Val<'c>,
) {
    let writer = Writer {
        online,
        layout: OnlineLayout::of(online),
        columns: columns_of(online),
        memory,
        scratch,
    };
    writer.outer(e, call, &mut vec![]);
}

struct Writer<'a, 'c> {
    online: &'a OnlineSoftmax,
    layout: OnlineLayout,
    columns: i64,
    memory: &'a Memory<'c>,
    scratch: Val<'c>,
}

/// A block of rows of one matrix.
struct Block<'a, 'c> {
    /// The loops over matrices.
    outer: &'a [Var],
    row: Val<'c>,
    rows: Val<'c>,
    keys: Val<'c>,
}

impl<'c> Writer<'_, 'c> {
    fn at(&self, e: &Emitter<'c>, offset: i64) -> Val<'c> {
        e.offset_by(self.scratch, offset)
    }

    /// Loops over the dims before rows and columns, then over blocks of rows.
    fn outer(&self, e: &Emitter<'c>, call: &mut Call<'_, 'c>, outer: &mut Vec<Var>) {
        let dim = outer.len();
        let [from, to] = call.ranges(e, &self.online.over)[dim].ends(e);
        if dim + 2 < self.online.over.len() {
            e.for_loop(from, to, 1, &[], |e, value, _| {
                call.scope(|call| {
                    outer.push(call.variable(value));
                    self.outer(e, call, outer);
                    outer.pop();
                });
                vec![]
            });
            return;
        }
        let keys = call.size(e, self.online.keys);
        let [block_rows, _] = self.online.blocks;
        e.for_loop(from, to, block_rows, &[], |e, row, _| {
            let rows = e.min(e.sub(to, row), e.int(block_rows));
            let block = Block {
                outer,
                row,
                rows,
                keys,
            };
            call.scope(|call| self.rows(e, call, &block));
            vec![]
        });
    }

    /// A side of a product, to be packed from the loop `own` along the loop `along`, from `k` on.
    fn packing<'p>(
        &self,
        block: &'p Block<'_, 'c>,
        side: &'p Side,
        [own, along]: [usize; 2],
        [k, k_count, depth]: [Val<'c>; 3],
    ) -> Packing<'p, 'c> {
        Packing {
            side,
            outer: block.outer,
            own,
            along,
            k,
            k_count,
            depth,
        }
    }

    fn rows(&self, e: &Emitter<'c>, call: &mut Call<'_, 'c>, block: &Block<'_, 'c>) {
        let layout = &self.layout;
        let rank = self.online.over.len();
        let terms = [e.int(0), e.int(self.online.depth), e.int(self.online.depth)];
        let range = |first: Val<'c>, count: Val<'c>| Range {
            first: Some(first),
            count,
            known: None,
        };
        let all_rows = call.size(e, self.online.over[rank - 2]);
        call.scope(|call| {
            let rows = range(block.row, block.rows);
            let left = self.packing(block, &self.online.left, [rank - 2, rank + 1], terms);
            left.left(
                e,
                call,
                rows,
                all_rows,
                self.at(e, layout.rows),
                e.int(layout.row_bytes),
            );
        });
        // First up to the mask, and then all again if that turns out to be needed.
        let needed = self.at(e, layout.needed);
        let times = match self.online.until {
            None => 1,
            Some(_) => 2,
        };
        e.store(e.int(1), needed, 8);
        e.for_loop(e.int(0), e.int(times), 1, &[], |e, time, _| {
            let again = e.at_least(e.load(needed, e.i64, 8), e.int(1));
            e.if_then(again, |e| {
                let until = self.online.until.map(|(until, _)| {
                    // All of them the second time.
                    let after = e.add(block.row, e.int(until));
                    e.add(after, e.times(time, 1 << 40))
                });
                self.all_keys(e, call, block, until);
                if let Some((_, masked)) = self.online.until {
                    self.look_back(e, block, masked);
                }
            });
            vec![]
        });
        self.finish(e, call, block);
    }

    /// Goes over all of `j`. With `until`, row `r` of the block needs it below `until + r` only.
    fn all_keys(
        &self,
        e: &Emitter<'c>,
        call: &mut Call<'_, 'c>,
        block: &Block<'_, 'c>,
        until: Option<Val<'c>>,
    ) {
        let layout = &self.layout;
        let rank = self.online.over.len();
        let range = |first: Val<'c>, count: Val<'c>| Range {
            first: Some(first),
            count,
            known: None,
        };
        self.clear(e, block);
        let end = match until {
            None => block.keys,
            Some(until) => {
                let last = e.sub(e.add(until, block.rows), e.int(1));
                e.min(block.keys, last)
            }
        };
        let [_, block_keys] = self.online.blocks;
        e.for_loop(e.int(0), end, block_keys, &[], |e, j, _| {
            let count = e.min(e.sub(end, j), e.int(block_keys));
            call.scope(|call| {
                let keys = range(j, count);
                let to = self.at(e, layout.keys);
                let terms = [e.int(0), e.int(self.online.depth), e.int(self.online.depth)];
                let right = self.packing(block, &self.online.right, [rank, rank + 1], terms);
                right.right(e, call, keys, block.keys, to, e.int(layout.key_panel));
            });
            call.scope(|call| {
                let columns = e.int(self.columns);
                let to = self.at(e, layout.values);
                let all = range(e.int(0), columns);
                let of_keys = [j, count, block.keys];
                let values = self.packing(block, &self.online.values, [rank - 1, rank], of_keys);
                values.right(e, call, all, columns, to, e.int(layout.value_panel));
            });
            e.for_loop(e.int(0), block.rows, TILE_ROWS, &[], |e, row, _| {
                let Some(until) = until else {
                    call.scope(|call| self.tile(e, call, block, row, (j, count)));
                    return vec![];
                };
                let last = e.add(e.min(e.add(row, e.int(TILE_ROWS)), block.rows), until);
                let count = e.min(count, e.sub(e.sub(last, e.int(1)), j));
                let some = e.at_least(count, e.int(1));
                e.if_then(some, |e| {
                    call.scope(|call| self.tile(e, call, block, row, (j, count)));
                });
                vec![]
            });
            vec![]
        });
    }

    /// Tells whether what is masked has weight beside some row's largest score: only where the
    /// difference is small is its exponential not zero.
    fn look_back(&self, e: &Emitter<'c>, block: &Block<'_, 'c>, masked: u32) {
        let most = self.at(e, self.layout.most);
        let masked = e.bits(masked, Elem::F32, Width::Scalar);
        let enough = e.bits(110.0_f32.to_bits(), Elem::F32, Width::Scalar);
        let low = e.for_loop(e.int(0), block.rows, 1, &[e.int(0)], |e, row, low| {
            let most = e.load(e.offset(most, e.times(row, 4)), masked.r#type(), 4);
            let above = e.b.subf(most, masked);
            let is_above = e.b.cmpf(CmpfPredicate::Ogt, above, enough);
            vec![e.select(is_above, low[0], e.int(1))]
        });
        e.store(low[0], self.at(e, self.layout.needed), 8);
    }

    /// Sums of zero, with no maximum yet.
    fn clear(&self, e: &Emitter<'c>, block: &Block<'_, 'c>) {
        let layout = &self.layout;
        let zero = e.bits(0, Elem::F32, Width::Vector);
        let scalar = |bits| e.bits(bits, Elem::F32, Width::Scalar);
        let (low, none) = (scalar(f32::NEG_INFINITY.to_bits()), scalar(0));
        let (sums, most, total) = (
            self.at(e, layout.sums),
            self.at(e, layout.most),
            self.at(e, layout.total),
        );
        e.for_loop(e.int(0), block.rows, 1, &[], |e, row, _| {
            let at = e.times(row, 4);
            e.store(low, e.offset(most, at), 4);
            e.store(none, e.offset(total, at), 4);
            let sums = e.offset(sums, e.times(row, layout.sum_row));
            e.for_loop(
                e.int(0),
                e.int(layout.sum_row),
                LANES * 4,
                &[],
                |e, at, _| {
                    e.store(zero, e.offset(sums, at), 4);
                    vec![]
                },
            );
            vec![]
        });
    }

    /// A tile of rows with a block of `j`.
    fn tile(
        &self,
        e: &Emitter<'c>,
        call: &mut Call<'_, 'c>,
        block: &Block<'_, 'c>,
        row: Val<'c>,
        (j, count): (Val<'c>, Val<'c>),
    ) {
        let layout = &self.layout;
        let rows = e.min(e.sub(block.rows, row), e.int(TILE_ROWS));
        let scores = self.at(e, layout.scores);
        let vectors = e.and(e.add(count, e.int(LANES - 1)), -LANES);
        let all = e.int(1 << 40);
        let tile = self.at(e, TILE);
        let arguments = [
            e.offset(self.at(e, layout.rows), e.times(row, layout.row_bytes)),
            e.int(layout.row_bytes),
            self.at(e, layout.keys),
            e.int(layout.key_panel),
            e.int(self.online.depth),
            scores,
            e.int(layout.score_row),
            self.at(e, ZEROS),
            e.int(0),
            rows,
            vectors,
            all,
            tile,
        ];
        e.call(block_of(call), &arguments);
        e.for_loop(e.int(0), rows, 1, &[], |e, in_tile, _| {
            call.scope(|call| self.scores(e, call, block, (row, in_tile), (j, count)));
            vec![]
        });
        self.rescale(e, row, rows);
        e.for_loop(e.int(0), rows, 1, &[], |e, in_tile, _| {
            self.weights(e, e.add(row, in_tile), in_tile, count);
            vec![]
        });
        let sums = e.offset(self.at(e, layout.sums), e.times(row, layout.sum_row));
        let arguments = [
            scores,
            e.int(layout.score_row),
            self.at(e, layout.values),
            e.int(layout.value_panel),
            count,
            sums,
            e.int(layout.sum_row),
            sums,
            e.int(layout.sum_row),
            rows,
            e.int(round_up(self.columns, PANEL)),
            all,
            tile,
        ];
        e.call(block_of(call), &arguments);
    }

    /// Computes a row's scores from the first product's elements, in place, and the largest so far.
    fn scores(
        &self,
        e: &Emitter<'c>,
        call: &mut Call<'_, 'c>,
        block: &Block<'_, 'c>,
        (tile, in_tile): (Val<'c>, Val<'c>),
        (j, count): (Val<'c>, Val<'c>),
    ) {
        let layout = &self.layout;
        let in_block = e.add(tile, in_tile);
        let position = e.add(block.row, in_block);
        let row_var = call.variable(position);
        let j_var = call.variable(j);
        let rank = self.online.over.len();
        let mut loops: Vec<Affine> = block.outer.iter().map(|var| Affine::var(*var)).collect();
        loops.resize(rank + 1, Affine::default());
        loops[rank - 2] = Affine::var(row_var);
        loops[rank] = Affine::var(j_var);
        let (node, at) = &self.online.scores;
        let (node, at) = (*node, at.iter().map(|index| index.at(&loops)));
        let at: Vec<Affine> = at.collect();
        let scores = e.offset(
            self.at(e, layout.scores),
            e.times(in_tile, layout.score_row),
        );
        let memory = Memory {
            base: Base::Address(scores),
            origin: vec![Some(j)],
            strides: vec![Stride::Bytes(4)],
            padded: true,
        };
        call.memory.insert(self.online.product, memory);
        call.prepare(e, node, &at, Lanes::default(), &[j_var]);
        let low = e.bits(f32::NEG_INFINITY.to_bits(), Elem::F32, Width::Vector);
        let most = call.lanes_loop(e, count, None, &[low], |call, e, k, mask, most| {
            call.scope(|call| {
                call.set(j_var, e.add(j, k));
                let var = Some(j_var);
                let score = call.value(e, node, &at, Lanes { var, mask });
                let score = mask.map_or(score, |mask| e.select(mask, score, low));
                e.store(score, e.offset(scores, e.times(k, 4)), 4);
                vec![larger(e, score, most[0])]
            })
        })[0];
        call.memory.remove(&self.online.product);
        let mut all = most;
        for by in [8, 4, 2, 1] {
            all = larger(e, e.rotate(all, by), all);
        }
        let all = e.first_lane(all, Elem::F32);
        let most = e.offset(self.at(e, layout.most), e.times(in_block, 4));
        let before = e.load(most, all.r#type(), 4);
        let now = larger(e, all, before);
        e.store(
            now,
            e.offset(self.at(e, layout.now), e.times(in_tile, 4)),
            4,
        );
    }

    /// What a tile's rows have summed is multiplied by, now that their largest scores are known.
    fn rescale(&self, e: &Emitter<'c>, row: Val<'c>, rows: Val<'c>) {
        let layout = &self.layout;
        let vector = e.elem_type(Elem::F32, Width::Vector);
        let low = e.bits(f32::NEG_INFINITY.to_bits(), Elem::F32, Width::Vector);
        let zero = e.bits(0, Elem::F32, Width::Vector);
        let (most, now_at) = (
            e.offset(self.at(e, layout.most), e.times(row, 4)),
            self.at(e, layout.now),
        );
        let (before, now) = (e.load(most, vector, 4), e.load(now_at, vector, 4));
        // Where no score is over minus infinity, weights are zero rather than undefined.
        let none = e.b.cmpf(CmpfPredicate::Oeq, now, low);
        let base = e.select(none, zero, now);
        let shifted = e.b.subf(before, base);
        let scale = e.b.exp(shifted);
        let mask = Some(e.first_lanes(rows));
        e.store_elem(now, most, Elem::F32, Width::Vector, mask);
        e.store(base, now_at, 4);
        e.store(scale, self.at(e, layout.scale), 4);
    }

    /// Makes a row's scores weights, adds them up, and rescales what was summed before.
    fn weights(&self, e: &Emitter<'c>, in_block: Val<'c>, in_tile: Val<'c>, count: Val<'c>) {
        let layout = &self.layout;
        let vector = e.elem_type(Elem::F32, Width::Vector);
        let scalar = e.elem_type(Elem::F32, Width::Scalar);
        let zero = e.bits(0, Elem::F32, Width::Vector);
        let of_row = |at: i64| {
            let at = e.offset(self.at(e, at), e.times(in_tile, 4));
            e.load(at, scalar, 4)
        };
        let (base, scale) = (of_row(layout.now), of_row(layout.scale));
        let base = e.splat(base, Elem::F32, Width::Vector);
        let scores = e.offset(
            self.at(e, layout.scores),
            e.times(in_tile, layout.score_row),
        );
        let sums = e.for_loop(e.int(0), count, LANES, &[zero], |e, k, sums| {
            let at = e.offset(scores, e.times(k, 4));
            let shifted = e.b.subf(e.load(at, vector, 4), base);
            let weight = e.b.exp(shifted);
            e.store(weight, at, 4);
            vec![e.b.addf(sums[0], weight)]
        })[0];
        let mut sum = sums;
        for by in [8, 4, 2, 1] {
            sum = e.b.addf(sum, e.rotate(sum, by));
        }
        let sum = e.first_lane(sum, Elem::F32);
        let total_at = e.offset(self.at(e, layout.total), e.times(in_block, 4));
        let total = e.load(total_at, scalar, 4);
        let total = e.b.fma(total, scale, sum);
        e.store(total, total_at, 4);
        let scale = e.splat(scale, Elem::F32, Width::Vector);
        let sums = e.offset(self.at(e, layout.sums), e.times(in_block, layout.sum_row));
        self.for_sums(e, sums, |e, sum| e.b.mulf(sum, scale));
    }

    /// Puts in place of a row's sums what becomes of them, vector by vector.
    fn for_sums(
        &self,
        e: &Emitter<'c>,
        sums: Val<'c>,
        becomes: impl Fn(&Emitter<'c>, Val<'c>) -> Val<'c>,
    ) {
        let vector = e.elem_type(Elem::F32, Width::Vector);
        let bytes = e.int(self.layout.sum_row);
        e.for_loop(e.int(0), bytes, LANES * 4, &[], |e, at, _| {
            let at = e.offset(sums, at);
            let value = becomes(e, e.load(at, vector, 4));
            e.store(value, at, 4);
            vec![]
        });
    }

    /// Divides by the sums of weights, and computes what is behind the second product.
    fn finish(&self, e: &Emitter<'c>, call: &mut Call<'_, 'c>, block: &Block<'_, 'c>) {
        let layout = &self.layout;
        let (sums, totals) = (self.at(e, layout.sums), self.at(e, layout.total));
        // A sum of nothing is zero.
        let empty = e.at_least(e.int(0), block.keys);
        let one = e.bits(1.0_f32.to_bits(), Elem::F32, Width::Scalar);
        e.for_loop(e.int(0), block.rows, 1, &[], |e, row, _| {
            let total = e.load(e.offset(totals, e.times(row, 4)), one.r#type(), 4);
            let total = e.select(empty, one, total);
            let total = e.splat(total, Elem::F32, Width::Vector);
            let sums = e.offset(sums, e.times(row, layout.sum_row));
            self.for_sums(e, sums, |e, sum| e.b.divf(sum, total));
            vec![]
        });
        let rank = self.online.over.len();
        let mut memory = Memory {
            base: Base::Address(sums),
            origin: vec![None; rank],
            strides: vec![Stride::Bytes(0); rank],
            padded: true,
        };
        memory.origin[rank - 2] = Some(block.row);
        memory.strides[rank - 2] = Stride::Bytes(layout.sum_row);
        memory.strides[rank - 1] = Stride::Bytes(4);
        call.memory.insert(self.online.sums, memory);
        let mut ranges = call.ranges(e, &self.online.over);
        for (range, var) in ranges.iter_mut().zip(block.outer) {
            range.first = call.value_of(*var);
            range.count = e.int(1);
            range.known = Some(1);
        }
        ranges[rank - 2].first = Some(block.row);
        ranges[rank - 2].count = block.rows;
        ranges[rank - 2].known = None;
        call.store_all(e, &self.online.finish, &ranges, self.memory);
        call.memory.remove(&self.online.sums);
    }
}

/// The larger of two; where one is not a number, the second.
fn larger<'c>(e: &Emitter<'c>, a: Val<'c>, b: Val<'c>) -> Val<'c> {
    e.select(e.b.cmpf(CmpfPredicate::Ogt, a, b), a, b)
}
