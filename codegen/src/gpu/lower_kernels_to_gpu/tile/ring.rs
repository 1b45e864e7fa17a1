//! The ring of buffers through which rows come to a tile whose weights stay ([`super::resident`]): a few terms of all its rows at a
//! time, of one product after another, and of one sum after another.

use cohort_dialects::builder::Val;

use super::super::ops::{Copied, THREADS, WIDE, below, commit_copies, copy_async, divide, when};
use super::super::site::memory;
use super::copies::guarded;
use super::{Resident, Writer};
use crate::emit::Emitter;

/// The rows of a tile on their way through shared memory: the terms of all products of all sums, one behind another.
pub struct Ring<'c> {
    resident: Resident,
    /// Where the first buffer begins.
    pub start: Val<'c>,
    pieces: Vec<Piece<'c>>,
    /// The terms before each product, and of all.
    terms: Vec<i64>,
}

/// Four terms of a row that a thread copies in each step.
struct Piece<'c> {
    /// Of each product, where those of its first term would be if it were the first of all.
    from: Vec<Val<'c>>,
    /// Where they go in the first buffer.
    to: Val<'c>,
    valid: Option<Val<'c>>,
}

/// Where a sum begins in the ring: its first step, which is known, and the buffers of that step and of the next to be filled.
#[derive(Clone, Copy)]
pub struct RingPlace<'c> {
    pub step: i64,
    pub read: Val<'c>,
    pub written: Val<'c>,
}

impl<'c> Ring<'c> {
    pub fn new(e: &Emitter<'c>, tile: &Writer<'_, '_, 'c>, resident: Resident) -> Ring<'c> {
        // At the beginning where the weights are elsewhere, and behind them otherwise.
        let from = match resident.held_at {
            Some(_) => 0,
            None => resident.held_bytes(&tile.tile.chains),
        };
        let start = memory(e, true).offset_by(tile.frame.shared(), from);
        let segments: Vec<_> = (tile.tile.chains.iter())
            .flat_map(|chain| &chain.segments)
            .collect();
        let mut terms = vec![0];
        for segment in &segments {
            terms.push(terms[terms.len() - 1] + segment.k);
        }
        let per_row = resident.terms / WIDE;
        let count = tile.size.rows * resident.single_rows() * per_row;
        let piece = |first: i64| {
            let number = e.add(tile.thread, e.int(first));
            let is_whole = first + THREADS <= count;
            let valid = (!is_whole).then(|| below(e, number, e.int(count)));
            let number = match is_whole {
                true => number,
                false => e.min(number, e.int(count - 1)),
            };
            let (row, four) = divide(e, number, per_row);
            let to = e.add(e.times(row, resident.row_bytes()), e.times(four, WIDE * 4));
            let row = tile.row(e, e.add(tile.first_row, row));
            let from = segments.iter().zip(&terms).map(|(segment, before)| {
                let at = tile.left_row(e, segment, &row);
                let at = e.offset_by(at, -4 * before);
                e.offset(at, e.times(four, WIDE * 4))
            });
            Piece {
                from: from.collect(),
                to: memory(e, true).offset(start, to),
                valid,
            }
        };
        let pieces = (0..count).step_by(THREADS as usize).map(piece).collect();
        Ring {
            resident,
            start,
            pieces,
            terms,
        }
    }

    /// Steps of all sums.
    fn steps(&self) -> i64 {
        self.terms[self.terms.len() - 1] / self.resident.terms
    }

    /// Begins the copies of all steps that there are buffers for but one; where the first sum begins.
    pub fn begin(&self, e: &Emitter<'c>) -> RingPlace<'c> {
        let ahead = self.resident.stages - 1;
        for step in 0..ahead {
            let buffer = e.int(step * self.resident.stage_bytes());
            self.copy(e, e.int(step), buffer);
            commit_copies(e);
        }
        RingPlace {
            step: 0,
            read: e.int(0),
            written: e.int(ahead * self.resident.stage_bytes()),
        }
    }

    /// Copies the terms of a step to the buffer at byte offset `buffer`; does nothing behind the last step.
    pub fn copy(&self, e: &Emitter<'c>, step: Val<'c>, buffer: Val<'c>) {
        let terms = self.resident.terms;
        when(e, below(e, step, e.int(self.steps())), |e| {
            for piece in &self.pieces {
                guarded(e, piece.valid, |e| {
                    let mut from = piece.from[0];
                    for (before, next) in self.terms[1..].iter().zip(&piece.from[1..]) {
                        let is_before = below(e, step, e.int(before / terms));
                        from = e.select(is_before, from, *next);
                    }
                    let from = e.offset(from, e.times(step, terms * 4));
                    let to = memory(e, true).offset(piece.to, buffer);
                    copy_async(e, to, from, WIDE * 4, Copied::All);
                });
            }
        });
    }

    /// The buffer behind one, in bytes.
    pub fn behind(&self, e: &Emitter<'c>, buffer: Val<'c>) -> Val<'c> {
        let bytes = self.resident.stage_bytes();
        let next = e.add(buffer, e.int(bytes));
        let is_there = below(e, next, e.int(self.resident.stages * bytes));
        e.select(is_there, next, e.int(0))
    }
}
