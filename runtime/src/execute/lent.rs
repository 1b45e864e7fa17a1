//! Which rows of inputs kernels read where the reader made them ([`Lent`]).
//!
//! A kernel has one base for all rows of an operand. So what is lent is copied after all where a launch has rows of it and others
//! for an operand, or where it has a list or a stack of rows for each entry.

use cohort_abi::manifest::Operand;

use super::Executor;
use super::launch::Placed;
use super::reads::{Known, Reads};
use crate::memory::inputs::Lent;

impl Executor {
    /// Copies what is lent where a launch of the flush cannot read it where it is.
    pub(super) fn copy_mixed(&mut self) {
        if self.arena.lent().is_empty() {
            return;
        }
        let known = Known {
            index: self.index.words_mut(),
            ragged: &self.ragged,
            tables: &self.tables,
        };
        let mut mixed: Vec<usize> = Vec::new();
        let launched = self.cached.placed.iter().chain(&self.placed);
        for placed in launched.filter(|placed| placed.rows > 0) {
            let kernel = &self.kernels[placed.kernel as usize];
            for (position, operand) in kernel.operands.iter().enumerate() {
                let Some(pool) = operand.pool() else {
                    continue;
                };
                let mut lent = self.arena.lent().iter();
                if !mixed.contains(&pool)
                    && lent.any(|lent| mixes(known, placed, (position, operand), lent))
                {
                    mixed.push(pool);
                }
            }
        }
        for pool in mixed {
            let copy = |from: &[u8], to: &mut [u8]| self.workers.copy(from, to);
            self.arena.copy_lent(pool, copy);
        }
    }
}

/// Whether one base is not enough for what a launch reads as an operand, some of which may be lent.
fn mixes(
    known: Known<'_>,
    placed: &Placed,
    (position, operand): (usize, &Operand),
    lent: &Lent,
) -> bool {
    if operand.pool() != Some(lent.region.pool) {
        return false;
    }
    if matches!(operand, Operand::Rows { .. } | Operand::Stacked { .. }) {
        return true;
    }
    match known.reads(placed, (position, operand)) {
        Reads::Entries(rows) | Reads::ByCall(rows) | Reads::Pieces(rows) => differ(lent, 0, rows),
        Reads::Listed { first, list } => differ(lent, first, list),
        Reads::OnePiece { first } => {
            let (begin, end) = (
                u64::from(first),
                u64::from(first) + u64::from(placed.entries),
            );
            let lent_begin = u64::from(lent.region.first);
            let lent_end = lent_begin + u64::from(lent.region.rows);
            let is_apart = end <= lent_begin || begin >= lent_end;
            let is_inside = begin >= lent_begin && end <= lent_end;
            !is_apart && !is_inside
        }
    }
}

/// Whether some of the rows, counted from `first`, are lent and others are not.
fn differ(lent: &Lent, first: u32, rows: &[u32]) -> bool {
    let has = |row: &u32| lent.has(lent.region.pool, first.wrapping_add(*row));
    rows.first()
        .map(has)
        .is_some_and(|one| rows.iter().any(|row| has(row) != one))
}
