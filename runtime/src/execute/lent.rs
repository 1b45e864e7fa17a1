//! Which rows of inputs kernels read where the reader made them ([`Lent`]).
//!
//! A kernel has one base for all rows of an operand. So what is lent is copied after all where a launch has rows of it and others
//! for an operand, or where it has a list or a stack of rows for each entry.

use cohort_abi::manifest::Operand;

use super::Executor;
use super::launch::Placed;
use super::ragged::{RaggedLaunches, Run};
use super::tables::Tables;
use crate::memory::inputs::Lent;

impl Executor {
    /// Copies what is lent where a launch of the flush cannot read it where it is.
    pub(super) fn copy_mixed(&mut self) {
        if self.arena.lent().is_empty() {
            return;
        }
        let reads = Reads {
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
                    && lent.any(|lent| reads.mix(placed, (position, operand), lent))
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

/// What launches read.
struct Reads<'a> {
    index: &'a [u32],
    ragged: &'a RaggedLaunches,
    tables: &'a Tables,
}

impl Reads<'_> {
    /// Whether one base is not enough for what a launch reads as an operand, some of which may be lent.
    fn mix(&self, placed: &Placed, (position, operand): (usize, &Operand), lent: &Lent) -> bool {
        if operand.pool() != Some(lent.region.pool) {
            return false;
        }
        let entries = placed.entries as usize;
        match (operand, placed.ragged) {
            (Operand::Rows { .. } | Operand::Stacked { .. }, _) => true,
            (_, None) => {
                let start = placed.index_start + position * entries;
                differ(lent, 0, &self.index[start..start + entries])
            }
            (_, Some(launch)) => match self.ragged.run(launch, position) {
                Run::ByCall | Run::Pieces => differ(lent, 0, self.ragged.firsts(launch, position)),
                Run::Listed { first, list } => differ(lent, first, self.tables.list(list)),
                Run::OnePiece { first } => {
                    let (first, lent) = (u64::from(first), lent.region);
                    let begin = u64::from(lent.first);
                    let (behind, end) = (
                        first + u64::from(placed.entries),
                        begin + u64::from(lent.rows),
                    );
                    let is_apart = behind <= begin || first >= end;
                    let is_inside = first >= begin && behind <= end;
                    !is_apart && !is_inside
                }
            },
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
