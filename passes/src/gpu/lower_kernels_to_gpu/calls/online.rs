//! Softmax-like folds between two products, computed online: no score is in the device's memory.
//!
//! A block has a tile of rows and columns of the second product. It goes over the keys a few at a time:
//! the first product's sums become scores in registers, and weights in shared memory; what was summed
//! with an earlier maximum is rescaled (Milakov and Gimelshein, Online Normalizer Calculation for
//! Softmax, 2018; Dao et al., FlashAttention, 2022, algorithm 1). Keys are counted from the call's own
//! first row, and everything is added up in one order, so bits depend on the call alone.
//!
//! Keys behind a mask are left out, unless a row's largest score is so low that they have weight: then
//! the block begins again with all of them.

mod plan;
mod weights;

use cohort_abi::manifest::Elem;
use cohort_dialects::builder::Val;
use melior::ir::{ValueLike, attribute::IntegerAttribute};

use super::super::ops::{barrier, below, both, divide, when};
use super::super::site::memory as space;
use super::block::{Loaded, Place, Source, Span, multiply, whole_steps, zeros};
use super::eval::{Call, Memory};
use super::product::shifted;
use super::{Tile, size_of};
use crate::calls::bounds::Mask;
use crate::calls::chain::{self, Chain};
use crate::calls::graph::{Index, NodeId, Product, Var};
use crate::calls::parts::Window;
use crate::cpu::lower_kernels::emit::{Emitter, Width};
use plan::{BLOCK_KEYS, BLOCK_ROWS, DEPTH, KEYS, Layout, NOTHING, PARTS, ROWS};

pub use plan::{Plan, plan};

struct Writer<'a, 'c> {
    plan: &'a Plan,
    layout: Layout,
    chain: &'a Chain,
    first: &'a Product,
    place: Place<'c>,
    /// Variables of the second product's dims: outer ones, and one of rows and of columns to be set.
    outer: Vec<Var>,
    row: Var,
    column: Var,
    first_row: Val<'c>,
    first_column: Val<'c>,
    /// How many there are in the call.
    rows: Val<'c>,
    columns: Val<'c>,
    keys: Val<'c>,
    /// The row and the part of it that the thread has where maxima and sums are found.
    own_row: Val<'c>,
    own_part: Val<'c>,
}

/// What goes from one step over keys to the next: the thread's sums; the largest score and the sum of
/// weights of its row.
struct State<'c> {
    sums: Vec<Val<'c>>,
    most: Val<'c>,
    total: Val<'c>,
}

impl<'c> State<'c> {
    fn values(&self) -> Vec<Val<'c>> {
        let mut values = self.sums.clone();
        values.extend([self.most, self.total]);
        values
    }

    fn of(values: &[Val<'c>]) -> State<'c> {
        let sums = values.len() - 2;
        State {
            sums: values[..sums].to_vec(),
            most: values[sums],
            total: values[sums + 1],
        }
    }
}

/// Computes a tile of a part of a result.
pub fn write<'c>(
    e: &Emitter<'c>,
    call: &mut Call<'_, 'c>,
    (root, windows): (NodeId, &[Window]),
    plan: &Plan,
    tile: &Tile<'c>,
    memory: &Memory<'c>,
) {
    let Some(chain) = chain::find(call.graph, plan.node) else {
        return;
    };
    let Some(first) = call.graph.product(chain.first.0) else {
        return;
    };
    let rank = windows.len();
    let place = Place::new(e, tile.shared);
    let (own_row, own_part) = divide(e, place.thread, PARTS);
    let vars: Vec<Var> = (0..rank)
        .map(|dim| call.variable(tile.first[dim], windows[dim].size.known()))
        .collect();
    let writer = Writer {
        plan,
        layout: plan.layout(),
        chain: &chain,
        first: &first,
        place,
        outer: vars[..rank - 2].to_vec(),
        row: vars[rank - 2],
        column: vars[rank - 1],
        first_row: tile.first[rank - 2],
        first_column: tile.first[rank - 1],
        rows: size_of(e, call, &windows[rank - 2]),
        columns: size_of(e, call, &windows[rank - 1]),
        keys: call.size(e, chain.second.depth),
        own_row,
        own_part,
    };
    let state = match plan.until {
        None => writer.all_keys(e, call, &writer.cleared(e), writer.keys),
        Some(mask) => writer.masked(e, call, mask),
    };
    writer.finish(e, call, (root, windows), memory, &state);
}

impl<'c> Writer<'_, 'c> {
    /// The index of the second product's domain, where keys are counted by a variable.
    fn index(&self, key: Var) -> Vec<Index> {
        let mut vars = self.outer.clone();
        vars.extend([self.row, self.column]);
        let mut index = shifted(&vars, &self.plan.shift);
        index.push(Index::var(key));
        index
    }

    fn float(&self, e: &Emitter<'c>, value: f32) -> Val<'c> {
        e.bits(value.to_bits(), Elem::F32, Width::Scalar)
    }

    fn cleared(&self, e: &Emitter<'c>) -> State<'c> {
        State {
            sums: zeros(e, ROWS * self.plan.columns),
            most: self.float(e, f32::NEG_INFINITY),
            total: self.float(e, 0.0),
        }
    }

    /// The keys that the mask leaves, and perhaps all of them again.
    fn masked(&self, e: &Emitter<'c>, call: &mut Call<'_, 'c>, mask: Mask) -> State<'c> {
        let row_shift = self.plan.shift[self.outer.len()];
        let more = BLOCK_ROWS - 1 + row_shift + mask.after;
        let end = e.min(self.keys, e.add(self.first_row, e.int(more)));
        let state = call.scope(|call| self.all_keys(e, call, &self.cleared(e), end));
        let needed = self.needs_masked(e, mask, &state);
        let again = both(e, needed, below(e, end, self.keys));
        let states = state.values().into_iter().zip(self.cleared(e).values());
        let state: Vec<_> = states
            .map(|(now, clear)| e.select(again, clear, now))
            .collect();
        let end = e.select(again, self.keys, e.int(0));
        self.all_keys(e, call, &State::of(&state), end)
    }

    /// Whether a row of the block gives what is masked weight.
    fn needs_masked(&self, e: &Emitter<'c>, mask: Mask, state: &State<'c>) -> Val<'c> {
        let masked = e.bits(mask.other, Elem::F32, Width::Scalar);
        let above =
            e.b.value("arith.subf", &[state.most, masked], masked.r#type());
        // Predicate 2 is `ogt`.
        let is_above = compare(e, 2, above, self.float(e, NOTHING));
        let need = e.select(is_above, self.float(e, 0.0), self.float(e, 1.0));
        let s = &space(e, true);
        let at = |row: Val<'c>| s.offset(self.place.at(e, self.layout.needs), e.times(row, 4));
        s.store(need, at(self.own_row), 4);
        barrier(e);
        let none = self.float(e, 0.0);
        let all = e.for_loop(e.int(0), e.int(BLOCK_ROWS), 1, &[none], |e, row, all| {
            let s = &space(e, true);
            let at = s.offset(self.place.at(e, self.layout.needs), e.times(row, 4));
            let need = s.load(at, all[0].r#type(), 4);
            vec![larger(e, need, all[0])]
        })[0];
        compare(e, 2, all, none)
    }

    /// The steps over the keys below an end.
    fn all_keys(
        &self,
        e: &Emitter<'c>,
        call: &mut Call<'_, 'c>,
        state: &State<'c>,
        end: Val<'c>,
    ) -> State<'c> {
        let whole = self.plan.depth <= DEPTH;
        if whole {
            self.fill_rows(e, call, e.int(0));
        }
        let ends = e.for_loop(
            e.int(0),
            end,
            BLOCK_KEYS,
            &state.values(),
            |e, key, carried| {
                let state = State::of(carried);
                let products = self.products(e, call, (key, end), whole);
                self.with_values(e, call, (key, end), |call| {
                    call.scope(|call| self.scores(e, call, (key, end), &products));
                    barrier(e);
                });
                let state = self.weigh(e, state);
                let sums = self.add_values(e, &state);
                barrier(e);
                State { sums, ..state }.values()
            },
        );
        State::of(&ends)
    }

    // The first product.

    fn first_at(&self, key: Var, k: Var) -> Vec<Index> {
        let mut index: Vec<Index> = (self.chain.first.1.iter())
            .map(|of| of.at(&self.index(key)))
            .collect();
        index.push(Index::var(k));
        self.first.at.iter().map(|of| of.at(&index)).collect()
    }

    fn spans(
        &self,
        e: &Emitter<'c>,
        call: &mut Call<'_, 'c>,
        first_k: Val<'c>,
    ) -> (Span<'c>, Vec<Index>, Var) {
        let k = call.variable(e.int(0), Some(self.plan.depth));
        let key = call.variable(e.int(0), None);
        let span = Span {
            var: k,
            first: first_k,
            end: e.int(self.plan.depth),
        };
        (span, self.first_at(key, k), key)
    }

    fn fill_rows(&self, e: &Emitter<'c>, call: &mut Call<'_, 'c>, first_k: Val<'c>) {
        let (k, at, _) = self.spans(e, call, first_k);
        let rows = Span {
            var: self.row,
            first: self.first_row,
            end: self.rows,
        };
        let source = Source {
            tile: self.layout.rows,
            node: self.first.a,
            at: &at,
            k,
            other: rows,
        };
        source.fill(e, call, &self.place);
    }

    /// The first product's sums of the thread's rows and keys.
    fn products(
        &self,
        e: &Emitter<'c>,
        call: &mut Call<'_, 'c>,
        (first_key, end): (Val<'c>, Val<'c>),
        whole: bool,
    ) -> Vec<Val<'c>> {
        let tile = self.layout.keys;
        let sums = zeros(e, ROWS * KEYS);
        let step =
            |e: &Emitter<'c>, call: &mut Call<'_, 'c>, first_k: Val<'c>, sums: &[Val<'c>]| {
                if !whole {
                    self.fill_rows(e, call, first_k);
                }
                let (k, at, key) = self.spans(e, call, first_k);
                let keys = Span {
                    var: key,
                    first: first_key,
                    end,
                };
                let source = Source {
                    tile,
                    node: self.first.b,
                    at: &at,
                    k,
                    other: keys,
                };
                source.fill(e, call, &self.place);
                barrier(e);
                let left = e.sub(e.int(self.plan.depth), first_k);
                let count = whole_steps(e, e.min(left, e.int(tile.depth)));
                multiply(
                    e,
                    &self.place,
                    (self.layout.rows, ROWS),
                    (tile, KEYS),
                    (count, e.int(0)),
                    sums,
                )
            };
        if whole {
            return step(e, call, e.int(0), &sums);
        }
        let depth = e.int(self.plan.depth);
        e.for_loop(e.int(0), depth, tile.depth, &sums, |e, first_k, sums| {
            let sums = call.scope(|call| step(e, call, first_k, sums));
            barrier(e);
            sums
        })
    }

    /// Computes the scores from the products, and puts them where weights will be.
    fn scores(
        &self,
        e: &Emitter<'c>,
        call: &mut Call<'_, 'c>,
        (first_key, end): (Val<'c>, Val<'c>),
        products: &[Val<'c>],
    ) {
        let Place {
            row_group,
            column_group,
            ..
        } = self.place;
        let one = e.int(1);
        let low = self.float(e, f32::NEG_INFINITY);
        for (number, product) in products.iter().enumerate() {
            let number = number as i64;
            let row = e.add(e.times(row_group, ROWS), e.int(number / KEYS));
            let in_step = e.add(e.times(column_group, KEYS), e.int(number % KEYS));
            let key = e.add(first_key, in_step);
            let score = call.scope(|call| {
                let at_row = e.min(e.add(self.first_row, row), e.sub(self.rows, one));
                call.set(self.row, at_row);
                let var = call.variable(e.min(key, e.sub(end, one)), None);
                let index = self.index(var);
                let at = |of: &[Index]| of.iter().map(|of| of.at(&index)).collect::<Vec<_>>();
                call.give(self.chain.first.0, at(&self.chain.first.1), *product);
                call.value(e, self.chain.scores.0, &at(&self.chain.scores.1))
            });
            let score = e.select(below(e, key, end), score, low);
            let to = self.layout.weights.address(e, &self.place, in_step, row);
            space(e, true).store(score, to, 4);
        }
    }

    // The second product.

    /// Loads the second product's right side for some keys, and puts it into its tile when `ready`
    /// comes back.
    fn with_values(
        &self,
        e: &Emitter<'c>,
        call: &mut Call<'_, 'c>,
        (first, end): (Val<'c>, Val<'c>),
        ready: impl FnOnce(&mut Call<'_, 'c>),
    ) {
        let key = call.variable(e.int(0), None);
        let second = &self.chain.second;
        let index = self.index(key);
        let at: Vec<Index> = second.at.iter().map(|of| of.at(&index)).collect();
        let source = Source {
            tile: self.layout.values,
            node: second.b,
            at: &at,
            k: Span {
                var: key,
                first,
                end,
            },
            other: Span {
                var: self.column,
                first: self.first_column,
                end: self.columns,
            },
        };
        let loaded: Loaded<'c> = source.load(e, call, &self.place, first);
        ready(call);
        source.put(e, &self.place, &loaded, e.int(0));
    }

    fn add_values(&self, e: &Emitter<'c>, state: &State<'c>) -> Vec<Val<'c>> {
        let float = state.most.r#type();
        let scales = self.of_rows(e, self.layout.scales, float);
        let sums = state.sums.chunks(self.plan.columns as usize).zip(scales);
        let rescaled: Vec<_> = sums
            .flat_map(|(sums, scale)| {
                let scaled = |sum: &Val<'c>| e.b.value("arith.mulf", &[*sum, scale], float);
                sums.iter().map(scaled).collect::<Vec<_>>()
            })
            .collect();
        multiply(
            e,
            &self.place,
            (self.layout.weights, ROWS),
            (self.layout.values, self.plan.columns),
            (e.int(BLOCK_KEYS), e.int(0)),
            &rescaled,
        )
    }

    /// Divides by the sums of weights, and computes what is behind the second product.
    fn finish(
        &self,
        e: &Emitter<'c>,
        call: &mut Call<'_, 'c>,
        (root, windows): (NodeId, &[Window]),
        memory: &Memory<'c>,
        state: &State<'c>,
    ) {
        let float = state.most.r#type();
        self.leave(e, self.layout.totals, state.total);
        barrier(e);
        let totals = self.of_rows(e, self.layout.totals, float);
        // A sum of nothing is zero.
        let some = below(e, e.int(0), self.keys);
        for (number, sum) in state.sums.iter().enumerate() {
            let (row, column) = (
                number as i64 / self.plan.columns,
                number as i64 % self.plan.columns,
            );
            let total = e.select(some, totals[row as usize], self.float(e, 1.0));
            let value = e.b.value("arith.divf", &[*sum, total], float);
            let row = e.add(e.times(self.place.row_group, ROWS), e.int(row));
            let columns = e.times(self.place.column_group, self.plan.columns);
            let row = e.add(self.first_row, row);
            let column = e.add(self.first_column, e.add(columns, e.int(column)));
            let inside = both(e, below(e, row, self.rows), below(e, column, self.columns));
            when(e, inside, |e| {
                call.scope(|call| {
                    call.set(self.row, row);
                    call.set(self.column, column);
                    let mut vars = self.outer.clone();
                    vars.extend([self.row, self.column]);
                    call.give(self.plan.node, shifted(&vars, &self.plan.shift), value);
                    super::store(e, call, (root, windows), &vars, memory);
                });
            });
        }
    }
}

/// The larger of two; where one is no number, the second.
fn larger<'c>(e: &Emitter<'c>, a: Val<'c>, b: Val<'c>) -> Val<'c> {
    e.select(compare(e, 2, a, b), a, b)
}

fn compare<'c>(e: &Emitter<'c>, predicate: i64, a: Val<'c>, b: Val<'c>) -> Val<'c> {
    let predicate = IntegerAttribute::new(e.i64, predicate).into();
    let ty = e.elem_type(Elem::Bool, Width::Scalar);
    e.b.value_with("arith.cmpf", &[a, b], ty, &[("predicate", predicate)])
}
