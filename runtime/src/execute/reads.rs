//! Which rows a launch reads of an operand. What the kernel is given for it ([`super::operands`]), and whether that can be
//! memory of a reader ([`super::lent`]), follow from this.

use cohort_abi::manifest::Operand;

use super::launch::Placed;
use super::ragged::{RaggedLaunches, Run};
use super::tables::Tables;

/// Rows that a launch reads of an operand that is no list.
#[derive(Clone, Copy)]
pub(super) enum Reads<'a> {
    /// For each entry the row of this number, or a stack that begins there.
    Entries(&'a [u32]),
    /// For each call those from this number on.
    ByCall(&'a [u32]),
    /// As [`Reads::ByCall`], where calls are computed one by one.
    Pieces(&'a [u32]),
    /// For all entries one after another, from `first` on.
    OnePiece { first: u32 },
    /// For each entry the row of this number, counted from `first`.
    Listed { first: u32, list: &'a [u32] },
}

/// What a flush knows of the rows that its launches read.
#[derive(Clone, Copy)]
pub(super) struct Known<'a> {
    pub index: &'a [u32],
    pub ragged: &'a RaggedLaunches,
    pub tables: &'a Tables,
}

impl<'a> Known<'a> {
    /// The list that the index has for an operand, of a number for each entry.
    pub fn entries(&self, placed: &Placed, position: usize) -> &'a [u32] {
        let entries = placed.entries as usize;
        &self.index[placed.index_start + position * entries..][..entries]
    }

    /// What a launch reads as the operand at a position.
    pub fn reads(&self, placed: &Placed, (position, operand): (usize, &Operand)) -> Reads<'a> {
        let Some(launch) = (placed.ragged).filter(|_| !matches!(operand, Operand::Stacked { .. }))
        else {
            return Reads::Entries(self.entries(placed, position));
        };
        let firsts = self.ragged.firsts(launch, position);
        match self.ragged.run(launch, position) {
            Run::ByCall => Reads::ByCall(firsts),
            Run::Pieces => Reads::Pieces(firsts),
            Run::OnePiece { first } => Reads::OnePiece { first },
            Run::Listed { first, list } => Reads::Listed {
                first,
                list: self.tables.list(list),
            },
        }
    }
}
