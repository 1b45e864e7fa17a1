//! How many strands begin beside their caller, and how many in their turn.

use super::Recorder;

/// Counts of strands; see [`crate::instance::strands`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Forks {
    /// The budget: how many more may begin until others end.
    pub(super) left: u64,
    /// Strands that began beside their caller.
    pub side_by_side: u64,
    /// Strands that their caller ran itself, as enough waited already or there was no stack.
    pub in_turn: u64,
}

impl Recorder {
    /// Sets the budget of strands: how many may begin until others end.
    #[inline]
    pub fn set_forks_left(&mut self, left: u64) {
        self.forks.left = left;
    }

    /// A strand began beside its caller.
    pub fn strand_began(&mut self) {
        self.forks.left = self.forks.left.saturating_sub(1);
        self.forks.side_by_side += 1;
    }

    /// There was no stack for a strand.
    pub fn strand_refused(&mut self) {
        self.forks.in_turn += 1;
    }

    /// A strand that began beside its caller has ended.
    pub fn strand_ended(&mut self) {
        self.forks.left = self.forks.left.saturating_add(1);
    }

    /// Strands since [`Recorder::clear_counts`].
    pub fn forks(&self) -> Forks {
        self.forks
    }
}
