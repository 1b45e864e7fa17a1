//! Softmax in registers, on tensor cores: each warp has rows of its own, and each row four lanes.
//!
//! Rows are in registers before the first keys come, where they were in shared memory. A lane has scores of its rows, finds the
//! largest, and the four lanes of a row exchange it. Weights stay where scores were: as a factor of the second product they belong to
//! the same lanes (Dao, FlashAttention-2, 2023, section 3.3). So warps wait for each other only for keys and values.

use cohort_abi::gpu::Precision;
use cohort_dialects::builder::{CmpfPredicate, Val};

use super::super::super::ops::{barrier, commit_copies, shuffle, wait_for_copies};
use super::super::block::zeros;
use super::super::warps::{Held, hold, hold_sums, multiply_held};
use super::{State, Writer};
use crate::emit::Emitter;

/// By how much the numbers of a row's lanes differ, one bit after another.
const LANES_OF_ROW: [i64; 2] = [1, 2];

impl<'c> Writer<'_, 'c> {
    /// The first product's left side; where it was in shared memory is free then.
    pub(super) fn hold_rows(&self, e: &Emitter<'c>, precision: Precision) -> Held<'c> {
        if self.plan.sides.rows.is_copied() {
            commit_copies(e);
            wait_for_copies(e);
        }
        barrier(e);
        let cells = (self.plan.scores, precision);
        let rows = hold(e, &self.place, cells, self.layout.rows);
        barrier(e);
        rows
    }

    /// The first product's sums of a step.
    pub(super) fn multiply_held_rows(&self, e: &Emitter<'c>, rows: &Held<'c>) -> Vec<Val<'c>> {
        let cells = self.plan.scores;
        let sums = zeros(e, cells.count());
        multiply_held(e, &self.place, cells, (rows, self.layout.keys), &sums)
    }

    /// Makes the scores of a step weights, and adds the values that they weigh once these are there, which `wait` waits for.
    pub(super) fn add_in_registers(
        &self,
        e: &Emitter<'c>,
        precision: Precision,
        before: State<'c>,
        scores: &[Val<'c>],
        wait: impl FnOnce(&Emitter<'c>),
    ) -> State<'c> {
        let of_row = scores.chunks(self.plan.scores.columns as usize);
        let (mut weights, mut scales) = (vec![], vec![]);
        let (mut most, mut total) = (vec![], vec![]);
        for (scores, (of_most, of_total)) in of_row.zip(before.most.iter().zip(&before.total)) {
            let row = self.weigh_row(e, scores, *of_most);
            weights.extend(row.weights);
            scales.push(row.scale);
            most.push(row.most);
            total.push(e.b.fma(*of_total, row.scale, row.sum));
        }
        let rescaled = self.rescaled(e, &before.sums, &scales);
        let weights = hold_sums(e, (self.plan.scores, precision), &weights);
        wait(e);
        barrier(e);
        let sides = (&weights, self.layout.values);
        let sums = multiply_held(e, &self.place, self.plan.sums, sides, &rescaled);
        State { sums, most, total }
    }

    /// The weights of a row's scores that a lane has, where `before` was the largest score so far.
    fn weigh_row(&self, e: &Emitter<'c>, scores: &[Val<'c>], before: Val<'c>) -> Row<'c> {
        let of_lane = scores
            .iter()
            .fold(before, |most, score| e.b.maximumf(*score, most));
        let most = LANES_OF_ROW.iter().fold(of_lane, |most, lanes| {
            e.b.maximumf(shuffle(e, most, *lanes), most)
        });
        // Where no score is over minus infinity, weights are zero rather than undefined.
        let low = self.float(e, f32::NEG_INFINITY);
        let none = e.b.cmpf(CmpfPredicate::Oeq, most, low);
        let base = e.select(none, self.float(e, 0.0), most);
        let weight = |score: &Val<'c>| e.b.exp(e.b.subf(*score, base));
        let weights: Vec<_> = scores.iter().map(weight).collect();
        let of_lane = weights[1..]
            .iter()
            .fold(weights[0], |sum, weight| e.b.addf(sum, *weight));
        let sum = LANES_OF_ROW
            .iter()
            .fold(of_lane, |sum, lanes| e.b.addf(sum, shuffle(e, sum, *lanes)));
        let scale = e.b.exp(e.b.subf(before, base));
        Row {
            weights,
            most,
            scale,
            sum,
        }
    }
}

/// A row in a step.
struct Row<'c> {
    /// Of the lane's scores.
    weights: Vec<Val<'c>>,
    /// The largest score so far.
    most: Val<'c>,
    /// What earlier sums are multiplied by.
    scale: Val<'c>,
    /// Of all weights of the step, those of other lanes among them.
    sum: Val<'c>,
}
