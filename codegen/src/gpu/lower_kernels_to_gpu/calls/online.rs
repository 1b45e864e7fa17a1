//! Softmax-like folds between two products, computed online: no score is in the device's memory.
//!
//! A block has a tile of rows and columns of the second product. It goes over the keys a few at a time:
//! the first product's sums become scores in registers, and weights in shared memory ([`weights`]) or, on tensor cores, where they
//! are ([`warps`]); what was summed with an earlier maximum is rescaled (Milakov and Gimelshein, Online Normalizer Calculation for
//! Softmax, 2018; Dao et al., FlashAttention, 2022, algorithm 1). Keys are counted from the call's own
//! first row, and everything is added up in one order, so bits depend on the call alone.
//!
//! The second product's right side is on its way to shared memory while the first product is computed,
//! and the first one's for the next keys while scores become weights and the second product is added up.
//!
//! Keys behind a mask are left out, unless a row's largest score is so low that they have weight: then
//! the block begins again with all of them.

mod plan;
mod warps;
mod weights;

use cohort_abi::manifest::Elem;
use cohort_dialects::builder::{CmpfPredicate, Val};
use cohort_passes::kernel::affine::{Affine, Var};
use cohort_passes::kernel::calls::neighbours::stored_at_once;
use cohort_passes::kernel::calls::stages::OnlineSoftmax;
use melior::ir::ValueLike;

use super::super::ops::{
    barrier, below, both, commit_copies, divide, wait_for_copies, wait_for_copies_but, when,
};
use super::super::site::memory as space;
use super::block::{ThreadPlace, multiply, zeros};
use super::eval::{Call, Memory};
use super::source::{Begins, Source, Span};
use super::warps::Held;
use super::{Tile, at};
use crate::emit::{Emitter, Width};
use plan::{Exchange, NOTHING, SharedLayout};

pub use plan::{OnlinePlan, plan};

struct Writer<'a, 'c> {
    plan: &'a OnlinePlan,
    layout: SharedLayout,
    exchange: Exchange,
    place: ThreadPlace<'c>,
    /// Variables of the loops: outer ones, and one of rows and of columns to be set.
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
/// weights of its row, or of each of its rows where a warp has rows of its own.
struct State<'c> {
    sums: Vec<Val<'c>>,
    most: Vec<Val<'c>>,
    total: Vec<Val<'c>>,
}

impl<'c> State<'c> {
    fn values(&self) -> Vec<Val<'c>> {
        [&self.sums[..], &self.most, &self.total].concat()
    }
}

/// Computes a tile of what is stored.
pub fn write<'c>(
    e: &Emitter<'c>,
    call: &mut Call<'_, 'c>,
    plan: &OnlinePlan,
    tile: &Tile<'c>,
    memory: &Memory<'c>,
) {
    let over = &plan.stage.over;
    let rank = over.len();
    let place = ThreadPlace::new(e, tile.shared);
    let (own_row, own_part) = divide(e, place.thread, plan.parts());
    let vars: Vec<Var> = (0..rank)
        .map(|dim| call.variable(tile.first[dim]))
        .collect();
    let layout = plan.layout();
    let writer = Writer {
        plan,
        exchange: plan.exchange(layout.values.end()),
        layout,
        place,
        outer: vars[..rank - 2].to_vec(),
        row: vars[rank - 2],
        column: vars[rank - 1],
        first_row: tile.first[rank - 2],
        first_column: tile.first[rank - 1],
        rows: call.size(e, over[rank - 2]),
        columns: call.size(e, over[rank - 1]),
        keys: call.size(e, plan.stage.keys),
        own_row,
        own_part,
    };
    if plan.whole {
        // They are waited for with the first keys, or before them.
        let begins = writer.begins(e, e.int(0), writer.first_row);
        let rows = writer.rows_source(e, call);
        rows.bring(e, call, &writer.place, begins);
    }
    let rows = plan
        .by_warps
        .map(|precision| writer.hold_rows(e, precision));
    let state = match plan.stage.until {
        None => writer.all_keys(e, call, rows.as_ref(), &writer.cleared(e), writer.keys),
        Some(until) => writer.masked(e, call, rows.as_ref(), until),
    };
    writer.finish(e, call, memory, &state);
}

impl<'c> Writer<'_, 'c> {
    /// The variables of the loops, and of those behind them.
    fn vars(&self, more: &[Var]) -> Vec<Var> {
        let mut vars = self.outer.clone();
        vars.extend([self.row, self.column]);
        vars.extend(more);
        vars
    }

    fn float(&self, e: &Emitter<'c>, value: f32) -> Val<'c> {
        e.bits(value.to_bits(), Elem::F32, Width::Scalar)
    }

    fn cleared(&self, e: &Emitter<'c>) -> State<'c> {
        let rows = self.plan.rows_of_thread();
        State {
            sums: zeros(e, self.plan.sums.count()),
            most: vec![self.float(e, f32::NEG_INFINITY); rows],
            total: vec![self.float(e, 0.0); rows],
        }
    }

    /// From what a loop carries.
    fn state(&self, values: &[Val<'c>]) -> State<'c> {
        let (sums, rest) = values.split_at(self.plan.sums.count() as usize);
        let (most, total) = rest.split_at(self.plan.rows_of_thread());
        State {
            sums: sums.to_vec(),
            most: most.to_vec(),
            total: total.to_vec(),
        }
    }

    /// The rows of the block of which the thread has the largest score.
    fn rows_of_state(&self, e: &Emitter<'c>) -> Vec<Val<'c>> {
        match self.plan.by_warps {
            None => vec![self.own_row],
            Some(_) => (0..self.plan.scores.rows)
                .map(|number| self.plan.scores.row(e, &self.place, number))
                .collect(),
        }
    }

    /// The keys that the mask leaves, and perhaps all of them again.
    fn masked(
        &self,
        e: &Emitter<'c>,
        call: &mut Call<'_, 'c>,
        rows: Option<&Held<'c>>,
        (until, masked): (i64, u32),
    ) -> State<'c> {
        let more = self.plan.rows - 1 + until;
        let end = e.min(self.keys, e.add(self.first_row, e.int(more)));
        let state = call.scope(|call| self.all_keys(e, call, rows, &self.cleared(e), end));
        let needed = self.needs_masked(e, masked, &state);
        let again = both(e, needed, below(e, end, self.keys));
        let states = state.values().into_iter().zip(self.cleared(e).values());
        let state: Vec<_> = states
            .map(|(now, clear)| e.select(again, clear, now))
            .collect();
        let end = e.select(again, self.keys, e.int(0));
        self.all_keys(e, call, rows, &self.state(&state), end)
    }

    /// Whether a row of the block gives what is masked weight.
    fn needs_masked(&self, e: &Emitter<'c>, masked: u32, state: &State<'c>) -> Val<'c> {
        let masked = e.bits(masked, Elem::F32, Width::Scalar);
        let s = &space(e, true);
        for (row, most) in self.rows_of_state(e).into_iter().zip(&state.most) {
            let above = e.b.subf(*most, masked);
            let is_above = e.b.cmpf(CmpfPredicate::Ogt, above, self.float(e, NOTHING));
            let need = e.select(is_above, self.float(e, 0.0), self.float(e, 1.0));
            // The threads of a row store the same.
            let at = s.offset(self.place.at(e, self.layout.needs), e.times(row, 4));
            s.store(need, at, 4);
        }
        barrier(e);
        let none = self.float(e, 0.0);
        let all = e.for_loop(
            e.int(0),
            e.int(self.plan.rows),
            1,
            &[none],
            |e, row, all| {
                let s = &space(e, true);
                let at = s.offset(self.place.at(e, self.layout.needs), e.times(row, 4));
                let need = s.load(at, all[0].r#type(), 4);
                vec![e.b.maximumf(need, all[0])]
            },
        )[0];
        e.b.cmpf(CmpfPredicate::Ogt, all, none)
    }

    /// The steps over the keys below an end.
    fn all_keys(
        &self,
        e: &Emitter<'c>,
        call: &mut Call<'_, 'c>,
        rows: Option<&Held<'c>>,
        state: &State<'c>,
        end: Val<'c>,
    ) -> State<'c> {
        let plan = self.plan;
        let sides = plan.sides;
        let keys = self.keys_source(e, call, end);
        let values = self.values_source(e, call, end);
        let zero = e.int(0);
        let waits = plan.whole && (sides.rows.is_copied() || sides.keys.is_copied());
        if plan.whole {
            when(e, below(e, zero, end), |e| {
                keys.bring(e, call, &self.place, self.begins(e, zero, zero));
                if waits {
                    commit_copies(e);
                }
            });
        }
        let carried = state.values();
        let ends = e.for_loop(zero, end, plan.keys, &carried, |e, key, carried| {
            let state = self.state(carried);
            // The keys are there, and nobody reads what the last step has left.
            if waits {
                wait_for_copies(e);
            }
            barrier(e);
            values.bring(e, call, &self.place, self.begins(e, key, self.first_column));
            if sides.values.is_copied() {
                commit_copies(e);
            }
            let products = match rows {
                Some(rows) => self.multiply_held_rows(e, rows),
                None if plan.whole => self.multiply_keys(e, &zeros(e, plan.scores.count())),
                None => self.products(e, call, &keys, key),
            };
            let scores = call.scope(|call| self.scores(e, call, (key, end), &products));
            if rows.is_none() {
                self.leave_scores(e, &scores);
            }
            barrier(e);
            let next = e.add(key, e.int(plan.keys));
            if plan.whole {
                when(e, below(e, next, end), |e| {
                    keys.bring(e, call, &self.place, self.begins(e, e.int(0), next));
                });
                if sides.keys.is_copied() {
                    commit_copies(e);
                }
            }
            let wait = |e: &Emitter<'c>| {
                match (
                    sides.values.is_copied(),
                    plan.whole && sides.keys.is_copied(),
                ) {
                    (false, _) => {}
                    // The next keys are a later group.
                    (true, true) => wait_for_copies_but(e, 1),
                    (true, false) => wait_for_copies(e),
                }
            };
            let state = match rows {
                Some(rows) => self.add_in_registers(e, rows.precision, state, &scores, wait),
                None => {
                    let state = self.weigh(e, state, wait);
                    let sums = self.add_values(e, &state);
                    State { sums, ..state }
                }
            };
            state.values()
        });
        self.state(&ends)
    }

    // What is brought to shared memory.

    fn begins(&self, e: &Emitter<'c>, k: Val<'c>, other: Val<'c>) -> Begins<'c> {
        let buffer = e.int(0);
        Begins { k, other, buffer }
    }

    fn depth(&self, e: &Emitter<'c>, call: &mut Call<'_, 'c>) -> Span<'c> {
        Span {
            var: call.variable(e.int(0)),
            end: e.int(self.plan.stage.depth),
            full: self.plan.stage.depth % self.layout.keys.depth == 0,
        }
    }

    /// The first product's left side.
    fn rows_source(&self, e: &Emitter<'c>, call: &mut Call<'_, 'c>) -> Source<'c> {
        let k = self.depth(e, call);
        let key = call.variable(e.int(0));
        let (node, index) = self.plan.stage.left.read();
        Source {
            tile: self.layout.rows,
            side: self.plan.sides.rows,
            node,
            at: at(index, &self.vars(&[key, k.var])),
            k,
            other: Span {
                var: self.row,
                end: self.rows,
                full: false,
            },
        }
    }

    /// Its right side.
    fn keys_source(&self, e: &Emitter<'c>, call: &mut Call<'_, 'c>, end: Val<'c>) -> Source<'c> {
        let k = self.depth(e, call);
        let var = call.variable(e.int(0));
        let (node, index) = self.plan.stage.right.read();
        Source {
            tile: self.layout.keys,
            side: self.plan.sides.keys,
            node,
            at: at(index, &self.vars(&[var, k.var])),
            k,
            other: Span {
                var,
                end,
                full: false,
            },
        }
    }

    /// The second product's right side.
    fn values_source(&self, e: &Emitter<'c>, call: &mut Call<'_, 'c>, end: Val<'c>) -> Source<'c> {
        let var = call.variable(e.int(0));
        let (node, index) = self.plan.stage.values.read();
        Source {
            tile: self.layout.values,
            side: self.plan.sides.values,
            node,
            at: at(index, &self.vars(&[var])),
            k: Span {
                var,
                end,
                full: false,
            },
            other: Span {
                var: self.column,
                end: self.columns,
                full: self.plan.full,
            },
        }
    }

    // The first product.

    fn multiply_keys(&self, e: &Emitter<'c>, sums: &[Val<'c>]) -> Vec<Val<'c>> {
        let tiles = (self.layout.rows, self.layout.keys);
        multiply(e, &self.place, self.plan.scores, tiles, e.int(0), sums)
    }

    /// The first product's sums of the thread's rows and keys, where not all of its depth has room.
    fn products(
        &self,
        e: &Emitter<'c>,
        call: &mut Call<'_, 'c>,
        keys: &Source<'c>,
        first_key: Val<'c>,
    ) -> Vec<Val<'c>> {
        let rows = self.rows_source(e, call);
        let depth = e.int(self.plan.stage.depth);
        let sums = zeros(e, self.plan.scores.count());
        let step = self.layout.keys.depth;
        e.for_loop(e.int(0), depth, step, &sums, |e, k, sums| {
            rows.bring(e, call, &self.place, self.begins(e, k, self.first_row));
            keys.bring(e, call, &self.place, self.begins(e, k, first_key));
            if rows.side.is_copied() || keys.side.is_copied() {
                commit_copies(e);
                wait_for_copies(e);
            }
            barrier(e);
            let sums = self.multiply_keys(e, sums);
            barrier(e);
            sums
        })
    }

    /// Computes the scores from the products.
    fn scores(
        &self,
        e: &Emitter<'c>,
        call: &mut Call<'_, 'c>,
        (first_key, end): (Val<'c>, Val<'c>),
        products: &[Val<'c>],
    ) -> Vec<Val<'c>> {
        let cells = self.plan.scores;
        let one = e.int(1);
        let low = self.float(e, f32::NEG_INFINITY);
        // Of the step, in the bits of a register.
        let narrow = |count| e.b.trunci(count, e.i32);
        let keys = narrow(e.min(e.sub(end, first_key), e.int(self.plan.keys)));
        let of_product = |(number, product): (i64, &Val<'c>)| {
            let row = cells.row(e, &self.place, number / cells.columns);
            let in_step = cells.column(e, &self.place, number % cells.columns);
            let key = e.add(first_key, in_step);
            let score = call.scope(|call| {
                let at_row = e.min(e.add(self.first_row, row), e.sub(self.rows, one));
                call.set(self.row, at_row);
                let var = call.variable(e.min(key, e.sub(end, one)));
                let stage = &self.plan.stage;
                call.give(stage.product, vec![Affine::var(var)], *product);
                let (node, index) = &stage.scores;
                call.value(e, *node, &at(index, &self.vars(&[var])))
            });
            e.select(below(e, narrow(in_step), keys), score, low)
        };
        (0..).zip(products).map(of_product).collect()
    }

    // The second product.

    fn add_values(&self, e: &Emitter<'c>, state: &State<'c>) -> Vec<Val<'c>> {
        let scales = self.of_rows(e, self.exchange.scales);
        let rescaled = self.rescaled(e, &state.sums, &scales);
        let tiles = (self.exchange.weights, self.layout.values);
        multiply(e, &self.place, self.plan.sums, tiles, e.int(0), &rescaled)
    }

    /// The sums of a thread, each multiplied by what its row is.
    fn rescaled(&self, e: &Emitter<'c>, sums: &[Val<'c>], scales: &[Val<'c>]) -> Vec<Val<'c>> {
        let by_row = sums.chunks(self.plan.sums.columns as usize).zip(scales);
        by_row
            .flat_map(|(sums, scale)| sums.iter().map(|sum| e.b.mulf(*sum, *scale)))
            .collect()
    }

    /// Divides by the sums of weights, and computes what is behind the second product.
    fn finish(
        &self,
        e: &Emitter<'c>,
        call: &mut Call<'_, 'c>,
        memory: &Memory<'c>,
        state: &State<'c>,
    ) {
        let cells = self.plan.sums;
        let totals = match self.plan.by_warps {
            Some(_) => state.total.clone(),
            None => {
                self.leave(e, self.exchange.totals, state.total[0]);
                barrier(e);
                self.of_rows(e, self.exchange.totals)
            }
        };
        // A sum of nothing is zero.
        let some = below(e, e.int(0), self.keys);
        let one = self.float(e, 1.0);
        let inverse = |total: Val<'c>| e.b.divf(one, e.select(some, total, one));
        let inverses: Vec<_> = totals.into_iter().map(inverse).collect();
        let OnlineSoftmax {
            over, finish, sums, ..
        } = &self.plan.stage;
        let at_once = stored_at_once(call.graph, finish, over, cells.neighbours());
        for (number, neighbours) in state.sums.chunks(at_once as usize).enumerate() {
            let number = number as i64 * at_once;
            let of_row = number / cells.columns;
            let inverse = inverses[of_row as usize];
            let row = cells.row(e, &self.place, of_row);
            let column = cells.column(e, &self.place, number % cells.columns);
            let row = e.add(self.first_row, row);
            let column = e.add(self.first_column, column);
            let inside = both(e, below(e, row, self.rows), below(e, column, self.columns));
            when(e, inside, |e| {
                call.scope(|call| {
                    call.set(self.row, row);
                    let elements: Vec<Vec<Var>> = (0..)
                        .zip(neighbours)
                        .map(|(next, sum)| {
                            let value = e.b.mulf(*sum, inverse);
                            let mut vars = self.outer.clone();
                            let column = e.add(column, e.int(next));
                            vars.extend([self.row, call.variable(column)]);
                            let own = vars.iter().copied().map(Affine::var).collect();
                            call.give(*sums, own, value);
                            vars
                        })
                        .collect();
                    super::store(e, call, finish, &elements, memory);
                });
            });
        }
    }
}
