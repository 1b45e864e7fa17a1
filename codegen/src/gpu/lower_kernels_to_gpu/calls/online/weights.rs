//! Scores become weights in shared memory: the threads of a row find its largest score and add its weights up.

use cohort_dialects::builder::{CmpfPredicate, Val};
use melior::ir::{Type, ValueLike};

use super::super::super::ops::{barrier, below, when};
use super::super::super::site::memory as space;
use super::{State, Writer};
use crate::emit::Emitter;

impl<'c> Writer<'_, 'c> {
    /// Leaves the thread's scores where weights will be.
    pub(super) fn leave_scores(&self, e: &Emitter<'c>, scores: &[Val<'c>]) {
        let cells = self.plan.scores;
        for (number, score) in (0..).zip(scores) {
            let row = cells.row(e, &self.place, number / cells.columns);
            let key = cells.column(e, &self.place, number % cells.columns);
            let to = self.exchange.weights.address(e, &self.place, key, row);
            space(e, true).store(*score, to, 4);
        }
    }

    /// Where a row's numbers of its parts are: `which` is 0 for maxima, 1 for sums.
    fn parts_of(&self, e: &Emitter<'c>, which: i64) -> Val<'c> {
        let from = self.exchange.parts + which * self.plan.rows * self.plan.parts() * 4;
        let parts = self.place.at(e, from);
        space(e, true).offset(parts, e.times(self.own_row, self.plan.parts() * 4))
    }

    /// Leaves a number of the thread's part; gives all parts' once all are there.
    fn exchange(&self, e: &Emitter<'c>, which: i64, value: Val<'c>) -> Vec<Val<'c>> {
        let s = &space(e, true);
        let parts = self.parts_of(e, which);
        s.store(value, s.offset(parts, e.times(self.own_part, 4)), 4);
        barrier(e);
        (0..self.plan.parts())
            .map(|part| s.load(s.offset_by(parts, part * 4), value.r#type(), 4))
            .collect()
    }

    /// Where the thread's part of its row's scores is: the parts take turns, that lanes read from
    /// different banks.
    fn own(&self, e: &Emitter<'c>, number: Val<'c>) -> Val<'c> {
        let key = e.add(e.times(number, self.plan.parts()), self.own_part);
        let weights = self.exchange.weights;
        weights.address(e, &self.place, key, self.own_row)
    }

    /// Makes scores weights, which all threads may read then, and what each has waited for in `wait`.
    /// The thread's sums are not rescaled yet.
    pub(super) fn weigh(
        &self,
        e: &Emitter<'c>,
        before: State<'c>,
        wait: impl FnOnce(&Emitter<'c>),
    ) -> State<'c> {
        let [of_most, of_total] = [before.most[0], before.total[0]];
        let float: Type<'c> = of_most.r#type();
        let low = self.float(e, f32::NEG_INFINITY);
        let most = e.for_loop(
            e.int(0),
            e.int(self.plan.part_keys()),
            1,
            &[low],
            |e, key, most| {
                let score = space(e, true).load(self.own(e, key), float, 4);
                vec![e.b.maximumf(score, most[0])]
            },
        )[0];
        let parts = self.exchange(e, 0, most).into_iter();
        let most = parts.fold(of_most, |most, part| e.b.maximumf(part, most));
        // Where no score is over minus infinity, weights are zero rather than undefined.
        let none = e.b.cmpf(CmpfPredicate::Oeq, most, low);
        let base = e.select(none, self.float(e, 0.0), most);
        let shifted = e.b.subf(of_most, base);
        let scale = e.b.exp(shifted);
        let zero = self.float(e, 0.0);
        let sum = e.for_loop(
            e.int(0),
            e.int(self.plan.part_keys()),
            1,
            &[zero],
            |e, key, sum| {
                let s = &space(e, true);
                let at = self.own(e, key);
                let shifted = e.b.subf(s.load(at, float, 4), base);
                let weight = e.b.exp(shifted);
                s.store(weight, at, 4);
                vec![e.b.addf(sum[0], weight)]
            },
        )[0];
        self.leave(e, self.exchange.scales, scale);
        wait(e);
        let parts = self.exchange(e, 1, sum).into_iter();
        let sum = parts.reduce(|sum, part| e.b.addf(sum, part));
        let sum = sum.unwrap_or(zero);
        let total = e.b.fma(of_total, scale, sum);
        State {
            sums: before.sums,
            most: vec![most],
            total: vec![total],
        }
    }

    /// Leaves a number of the thread's row for all threads; those of one row have the same.
    pub(super) fn leave(&self, e: &Emitter<'c>, at: i64, value: Val<'c>) {
        let s = &space(e, true);
        let to = s.offset(self.place.at(e, at), e.times(self.own_row, 4));
        when(e, below(e, self.own_part, e.int(1)), |e| {
            space(e, true).store(value, to, 4);
        });
    }

    /// The numbers that were left for the rows of the thread's sums.
    pub(super) fn of_rows(&self, e: &Emitter<'c>, at: i64) -> Vec<Val<'c>> {
        let s = &space(e, true);
        let ty = e.b.f32();
        let cells = self.plan.sums;
        let row = |number: i64| {
            let row = cells.row(e, &self.place, number);
            s.load(s.offset(self.place.at(e, at), e.times(row, 4)), ty, 4)
        };
        (0..cells.rows).map(row).collect()
    }
}
