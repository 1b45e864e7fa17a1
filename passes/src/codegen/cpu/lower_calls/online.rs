//! Softmax-like folds between two products, computed online: `Σ_j exp(s - max s) / Σ exp(s - max s) · v`
//! where `s` is computed from a product, element by element.
//!
//! The scores of a block of rows and a block of `j` are a tile in scratch; they are never all there.
//! What was summed with an earlier maximum is rescaled when a block raises it (Milakov and
//! Gimelshein, Online Normalizer Calculation for Softmax, 2018; Dao et al., FlashAttention, 2022,
//! algorithm 1). Blocks are counted from the call's own first row, so bits depend on the call alone.

use cohort_abi::manifest::Elem;
use cohort_dialects::builder::Val;
use melior::ir::{ValueLike, attribute::IntegerAttribute, operation::OperationLike};

use super::blocks::{PANEL, TILE_ROWS};
use super::bounds::{self, Mask};
use super::eval::{Base, Call, Lanes, Memory, Range, Stride};
use super::graph::{Graph, Index, NodeId, Product, Var};
use super::product::{BLOCKS, Packing, TILE, ZEROS, block_of, find_root, round_up};
use crate::codegen::cpu::lower_kernels::product::call as call_shared;
use crate::codegen::emit::{Emitter, Width};
pub use crate::kernel::calls::chain::{Chain, ONLINE, find};
use crate::kernel::calls::parts::Window;
use crate::kernel::rows::layout::LANES;

/// Rows whose sums are kept, and entries of `j`, in a block.
pub const ROWS: i64 = 96;
const KEYS: i64 = 256;

/// Bytes between rows of scores.
const SCORE_ROW: i64 = (KEYS + LANES) * 4;

/// A part of a result that is computed from such a chain.
pub struct Plan {
    node: NodeId,
    shift: Vec<i64>,
    /// Depth of the first product, columns of the second.
    depth: i64,
    columns: i64,
    /// The mask behind which scores need not be looked at, with how many entries a row has more than
    /// its index.
    until: Option<Mask>,
}

/// Finds the chain that a part of a result ends in, where its operation asks for it.
pub fn plan(graph: &Graph<'_>, root: NodeId, windows: &[Window]) -> Option<Plan> {
    let (node, shift) = find_root(graph, root, windows, &|node| {
        graph.nodes[node].op.attribute(ONLINE).is_ok() && find(graph, node).is_some()
    })?;
    let chain = find(graph, node)?;
    let first = graph.product(chain.first.0)?;
    Some(Plan {
        node,
        shift,
        depth: first.depth.known()?,
        columns: graph.nodes[node].shape.last()?.known()?,
        until: bounds::after(graph, node).and_then(|after| {
            let (mask, _) = bounds::of_product(graph, node)?;
            (mask.after == after).then_some(mask)
        }),
    })
}

/// Where things lie in the scratch.
struct Layout {
    rows: i64,
    row_bytes: i64,
    keys: i64,
    key_panel: i64,
    values: i64,
    value_panel: i64,
    scores: i64,
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

impl Plan {
    /// Whether a row's cost grows with its index.
    pub fn is_triangle(&self) -> bool {
        self.until.is_some()
    }

    /// The two products of the chain.
    pub fn products(&self, graph: &Graph<'_>) -> Vec<NodeId> {
        let first = find(graph, self.node).map(|chain| chain.first.0);
        first.into_iter().chain([self.node]).collect()
    }

    fn layout(&self) -> Layout {
        let row_bytes = (round_up(self.depth, LANES) + LANES) * 4;
        let key_panel = round_up(self.depth, LANES) * PANEL * 4;
        let value_panel = KEYS * PANEL * 4;
        let sum_row = round_up(self.columns, PANEL) * 4;
        let rows = BLOCKS;
        let keys = rows + (ROWS + LANES) * row_bytes;
        let values = keys + KEYS / PANEL * key_panel;
        let scores = values + round_up(self.columns, PANEL) / PANEL * value_panel;
        let sums = scores + (TILE_ROWS + 1) * SCORE_ROW;
        let most = sums + (ROWS + TILE_ROWS) * sum_row;
        let total = most + (ROWS + TILE_ROWS) * 4;
        Layout {
            rows,
            row_bytes,
            keys,
            key_panel,
            values,
            value_panel,
            scores,
            sums,
            sum_row,
            most,
            total,
            needed: total + (ROWS + TILE_ROWS) * 4,
            now: total + (ROWS + TILE_ROWS) * 4 + 64,
            scale: total + (ROWS + TILE_ROWS) * 4 + 128,
            bytes: total + (ROWS + TILE_ROWS) * 4 + 192,
        }
    }

    pub fn scratch_bytes(&self) -> i64 {
        self.layout().bytes
    }
}

/// Computes a part of a result.
pub fn write<'c>(
    e: &Emitter<'c>,
    call: &mut Call<'_, 'c>,
    root: NodeId,
    windows: &[Window],
    plan: &Plan,
    memory: &Memory<'c>,
    scratch: Val<'c>,
) {
    let Some(chain) = find(call.graph, plan.node) else {
        return;
    };
    let Some(first) = call.graph.product(chain.first.0) else {
        return;
    };
    let writer = Writer {
        root,
        windows,
        plan,
        layout: plan.layout(),
        chain: &chain,
        first: &first,
        memory,
        scratch,
    };
    writer.outer(e, call, &mut vec![]);
}

struct Writer<'a, 'c> {
    root: NodeId,
    windows: &'a [Window],
    plan: &'a Plan,
    layout: Layout,
    chain: &'a Chain,
    first: &'a Product,
    memory: &'a Memory<'c>,
    scratch: Val<'c>,
}

/// A block of rows of one matrix.
struct Block<'a, 'c> {
    /// Indices of the second product's outer dims.
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
        let [from, to] = call.ranges(e, self.windows)[dim].ends(e);
        if dim + 2 < self.windows.len() {
            e.for_loop(from, to, 1, &[], |e, value, _| {
                call.scope(|call| {
                    outer.push(call.variable(value, self.windows[dim].size.known()));
                    self.outer(e, call, outer);
                    outer.pop();
                });
                vec![]
            });
            return;
        }
        let keys = call.size(e, self.chain.second.depth);
        e.for_loop(from, to, ROWS, &[], |e, row, _| {
            let rows = e.min(e.sub(to, row), e.int(ROWS));
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

    /// The indices of the second product's dims and of `j`, for these variables of row and `j`.
    fn index(&self, block: &Block<'_, 'c>, row: Index, j: Index) -> Vec<Index> {
        let outer = block.outer.iter().map(|var| Index::var(*var));
        let mut index: Vec<Index> = outer
            .chain([row, Index::default()])
            .zip(&self.plan.shift)
            .map(|(index, shift)| index.plus(&Index::constant(*shift)))
            .collect();
        index.push(j);
        index
    }

    fn rows(&self, e: &Emitter<'c>, call: &mut Call<'_, 'c>, block: &Block<'_, 'c>) {
        let layout = &self.layout;
        let dim = block.outer.len();
        // The first product is read at the second's outer indices.
        let index = self.index(block, Index::default(), Index::default());
        let (first_outer, shift) = {
            let at: Vec<Index> = self.chain.first.1.iter().map(|i| i.at(&index)).collect();
            let lead = at.len() - 2;
            (at[..lead].to_vec(), at[lead].constant)
        };
        let first = Packing {
            product: self.first,
            outer: &first_outer,
            shift: [shift, 0],
            below: [None, None, Some(self.plan.depth)],
            k: e.int(0),
            k_count: e.int(self.plan.depth),
            depth: e.int(self.plan.depth),
        };
        let range = |first: Val<'c>, count: Val<'c>| Range {
            first: Some(first),
            from: 0,
            count,
            known: None,
            below: None,
        };
        let all_rows = call.size(e, self.windows[dim].size);
        call.scope(|call| {
            let rows = range(block.row, block.rows);
            first.left(
                e,
                call,
                rows,
                all_rows,
                self.at(e, layout.rows),
                layout.row_bytes,
            );
        });
        // First up to the mask, and then all again if that turns out to be needed.
        let needed = self.at(e, layout.needed);
        let times = match self.plan.until {
            None => 1,
            Some(_) => 2,
        };
        e.store(e.int(1), needed, 8);
        e.for_loop(e.int(0), e.int(times), 1, &[], |e, time, _| {
            let again = e.at_least(e.load(needed, e.i64, 8), e.int(1));
            e.if_then(again, |e| {
                let until = self.plan.until.map(|mask| {
                    // All of them the second time.
                    let after = e.add(block.row, e.int(shift + mask.after));
                    e.add(after, e.times(time, 1 << 40))
                });
                self.all_keys(e, call, block, &first, &index, until);
                if let Some(mask) = self.plan.until {
                    self.look_back(e, block, mask);
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
        first: &Packing<'_, 'c>,
        index: &[Index],
        until: Option<Val<'c>>,
    ) {
        let layout = &self.layout;
        let dim = block.outer.len();
        let range = |first: Val<'c>, count: Val<'c>| Range {
            first: Some(first),
            from: 0,
            count,
            known: None,
            below: None,
        };
        self.clear(e, block);
        let end = match until {
            None => block.keys,
            Some(until) => {
                let last = e.sub(e.add(until, block.rows), e.int(1));
                e.min(block.keys, last)
            }
        };
        e.for_loop(e.int(0), end, KEYS, &[], |e, j, _| {
            let count = e.min(e.sub(end, j), e.int(KEYS));
            call.scope(|call| {
                let keys = range(j, count);
                let to = self.at(e, layout.keys);
                first.right(e, call, keys, block.keys, to, layout.key_panel);
            });
            let second = Packing {
                product: &self.chain.second,
                outer: &index[..dim],
                shift: [self.plan.shift[dim], self.plan.shift[dim + 1]],
                below: [None, Some(self.plan.columns), None],
                k: j,
                k_count: count,
                depth: block.keys,
            };
            call.scope(|call| {
                let columns = e.int(self.plan.columns);
                let to = self.at(e, layout.values);
                let all = range(e.int(0), columns);
                second.right(e, call, all, columns, to, layout.value_panel);
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
    fn look_back(&self, e: &Emitter<'c>, block: &Block<'_, 'c>, mask: Mask) {
        let most = self.at(e, self.layout.most);
        let masked = e.bits(mask.other, Elem::F32, Width::Scalar);
        let enough = e.bits(110.0_f32.to_bits(), Elem::F32, Width::Scalar);
        let low = e.for_loop(e.int(0), block.rows, 1, &[e.int(0)], |e, row, low| {
            let most = e.load(e.offset(most, e.times(row, 4)), masked.r#type(), 4);
            let above = e.b.value("arith.subf", &[most, masked], masked.r#type());
            let is_above = compare(e, 2, above, enough, Width::Scalar);
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
        let panels = e.and(e.add(count, e.int(PANEL - 1)), -PANEL);
        let all = e.int(1 << 40);
        let tile = self.at(e, TILE);
        let arguments = [
            e.offset(self.at(e, layout.rows), e.times(row, layout.row_bytes)),
            e.int(layout.row_bytes),
            self.at(e, layout.keys),
            e.int(layout.key_panel),
            e.int(self.plan.depth),
            scores,
            e.int(SCORE_ROW),
            self.at(e, ZEROS),
            e.int(0),
            rows,
            panels,
            all,
            tile,
        ];
        call_shared(e, block_of(call), &arguments);
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
            e.int(SCORE_ROW),
            self.at(e, layout.values),
            e.int(layout.value_panel),
            count,
            sums,
            e.int(layout.sum_row),
            sums,
            e.int(layout.sum_row),
            rows,
            e.int(round_up(self.plan.columns, PANEL)),
            all,
            tile,
        ];
        call_shared(e, block_of(call), &arguments);
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
        let row_var = call.variable(position, None);
        let j_var = call.variable(j, None);
        let index = self.index(block, Index::var(row_var), Index::var(j_var));
        let at: Vec<Index> = self.chain.scores.1.iter().map(|i| i.at(&index)).collect();
        let scores = e.offset(self.at(e, layout.scores), e.times(in_tile, SCORE_ROW));
        let rank = self.chain.first.1.len();
        let mut memory = Memory {
            base: Base::Address(scores),
            origin: vec![None; rank],
            strides: vec![Stride::Bytes(0); rank],
            padded: true,
        };
        memory.origin[rank - 1] = Some(j);
        memory.strides[rank - 1] = Stride::Bytes(4);
        call.memory.insert(self.chain.first.0, memory);
        let node = self.chain.scores.0;
        call.prepare(e, node, &at, Lanes::default(), &[j_var]);
        let low = e.bits(f32::NEG_INFINITY.to_bits(), Elem::F32, Width::Vector);
        let most = call.lanes_loop(e, count, None, &[low], |call, e, k, mask, most| {
            call.scope(|call| {
                call.set(j_var, e.add(j, k));
                let var = Some(j_var);
                let score = call.value(e, node, &at, Lanes { var, mask });
                let score = mask.map_or(score, |mask| e.select(mask, score, low));
                e.store(score, e.offset(scores, e.times(k, 4)), 4);
                vec![larger(e, score, most[0], Width::Vector)]
            })
        })[0];
        call.memory.remove(&self.chain.first.0);
        let mut all = most;
        for by in [8, 4, 2, 1] {
            all = larger(e, e.rotate(all, by), all, Width::Vector);
        }
        let all = e.first_lane(all, Elem::F32);
        let most = e.offset(self.at(e, layout.most), e.times(in_block, 4));
        let before = e.load(most, all.r#type(), 4);
        let now = larger(e, all, before, Width::Scalar);
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
        let none = compare(e, 1, now, low, Width::Vector);
        let base = e.select(none, zero, now);
        let shifted = e.b.value("arith.subf", &[before, base], vector);
        let scale = e.b.value("math.exp", &[shifted], vector);
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
        let scores = e.offset(self.at(e, layout.scores), e.times(in_tile, SCORE_ROW));
        let sums = e.for_loop(e.int(0), count, LANES, &[zero], |e, k, sums| {
            let at = e.offset(scores, e.times(k, 4));
            let shifted =
                e.b.value("arith.subf", &[e.load(at, vector, 4), base], vector);
            let weight = e.b.value("math.exp", &[shifted], vector);
            e.store(weight, at, 4);
            vec![e.b.value("arith.addf", &[sums[0], weight], vector)]
        })[0];
        let mut sum = sums;
        for by in [8, 4, 2, 1] {
            sum = e.b.value("arith.addf", &[sum, e.rotate(sum, by)], vector);
        }
        let sum = e.first_lane(sum, Elem::F32);
        let total_at = e.offset(self.at(e, layout.total), e.times(in_block, 4));
        let total = e.load(total_at, scalar, 4);
        let total = e.b.value("math.fma", &[total, scale, sum], scalar);
        e.store(total, total_at, 4);
        let scale = e.splat(scale, Elem::F32, Width::Vector);
        let sums = e.offset(self.at(e, layout.sums), e.times(in_block, layout.sum_row));
        e.for_loop(
            e.int(0),
            e.int(layout.sum_row),
            LANES * 4,
            &[],
            |e, at, _| {
                let at = e.offset(sums, at);
                let scaled =
                    e.b.value("arith.mulf", &[e.load(at, vector, 4), scale], vector);
                e.store(scaled, at, 4);
                vec![]
            },
        );
    }

    /// Divides by the sums of weights, and computes what is behind the second product.
    fn finish(&self, e: &Emitter<'c>, call: &mut Call<'_, 'c>, block: &Block<'_, 'c>) {
        let layout = &self.layout;
        let vector = e.elem_type(Elem::F32, Width::Vector);
        let (sums, totals) = (self.at(e, layout.sums), self.at(e, layout.total));
        // A sum of nothing is zero.
        let empty = e.at_least(e.int(0), block.keys);
        let one = e.bits(1.0_f32.to_bits(), Elem::F32, Width::Scalar);
        e.for_loop(e.int(0), block.rows, 1, &[], |e, row, _| {
            let total = e.load(e.offset(totals, e.times(row, 4)), one.r#type(), 4);
            let total = e.select(empty, one, total);
            let total = e.splat(total, Elem::F32, Width::Vector);
            let sums = e.offset(sums, e.times(row, layout.sum_row));
            e.for_loop(
                e.int(0),
                e.int(layout.sum_row),
                LANES * 4,
                &[],
                |e, at, _| {
                    let at = e.offset(sums, at);
                    let value =
                        e.b.value("arith.divf", &[e.load(at, vector, 4), total], vector);
                    e.store(value, at, 4);
                    vec![]
                },
            );
            vec![]
        });
        let rank = self.windows.len();
        let mut memory = Memory {
            base: Base::Address(sums),
            origin: vec![None; rank],
            strides: vec![Stride::Bytes(0); rank],
            padded: true,
        };
        let shift = self.plan.shift[rank - 2];
        memory.origin[rank - 2] = Some(e.add(block.row, e.int(shift)));
        memory.strides[rank - 2] = Stride::Bytes(layout.sum_row);
        memory.strides[rank - 1] = Stride::Bytes(4);
        call.memory.insert(self.plan.node, memory);
        let mut ranges = call.ranges(e, self.windows);
        for (range, var) in ranges.iter_mut().zip(block.outer) {
            range.first = call.value_of(*var);
            range.count = e.int(1);
            range.known = Some(1);
        }
        ranges[rank - 2].first = Some(block.row);
        ranges[rank - 2].count = block.rows;
        ranges[rank - 2].known = None;
        call.store_all(e, self.root, &ranges, self.memory);
        call.memory.remove(&self.plan.node);
    }
}

/// The larger of two; where one is no number, the second.
fn larger<'c>(e: &Emitter<'c>, a: Val<'c>, b: Val<'c>, width: Width) -> Val<'c> {
    // Predicate 2 is `ogt`.
    e.select(compare(e, 2, a, b, width), a, b)
}

fn compare<'c>(e: &Emitter<'c>, predicate: i64, a: Val<'c>, b: Val<'c>, width: Width) -> Val<'c> {
    let predicate = IntegerAttribute::new(e.i64, predicate).into();
    let ty = e.elem_type(Elem::Bool, width);
    e.b.value_with("arith.cmpf", &[a, b], ty, &[("predicate", predicate)])
}
