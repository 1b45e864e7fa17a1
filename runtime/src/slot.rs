//! What the slots of a recorded call hold.

use cohort_abi::manifest::Operand;

/// What one operand of a call is.
///
/// In the log, the slot of a list holds the list's length; the handles of all lists of a call follow
/// after its slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// The bits of a host value.
    Scalar,
    /// A handle.
    Row,
    /// Any number of handles. Compiled code passes the address of an array.
    List,
}

impl Slot {
    /// How an operand stands in the log.
    pub fn of(operand: &Operand) -> Slot {
        match operand {
            Operand::Scalar(_) | Operand::Length => Slot::Scalar,
            Operand::Row { .. } | Operand::Ragged { .. } => Slot::Row,
            Operand::Rows { .. } | Operand::Stacked { .. } => Slot::List,
        }
    }
}

/// How many handles the lists of a call have together; `entry` begins with its slots.
#[inline]
pub fn listed(slots: &[Slot], entry: &[u64]) -> usize {
    let lists = slots.iter().zip(entry);
    let lengths = lists.map(|(slot, value)| match slot {
        Slot::List => *value as usize,
        _ => 0,
    });
    lengths.sum()
}
