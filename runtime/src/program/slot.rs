//! Slots: 64 bits each, of values that the control program hands on and of calls that it records.

use cohort_abi::manifest::{LeadingDim, Operand, Type};

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

/// Slots of a value of the type.
pub fn slot_count(ty: &Type) -> usize {
    match ty {
        Type::Tuple(types) => types.iter().map(slot_count).sum(),
        Type::Ragged { dims, .. } => {
            let is_free = |dim: &&LeadingDim| !matches!(dim, LeadingDim::Known(_));
            1 + dims.iter().filter(is_free).count()
        }
        _ => 1,
    }
}
