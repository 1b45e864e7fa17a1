//! What a call of a kernel is in the log, and how many rows it makes.
//!
//! A call of an ordinary kernel makes one row. A call of a *ragged* kernel makes as many as its
//! lengths say, one behind another in its bucket, perhaps none; or it is a kernel whose unit is the
//! call, see [`cohort_abi::manifest::CallShape`].

use cohort_abi::manifest::{Division, Extent, Kernel, Operand, Padding, Unit};

use crate::program::slot::{Slot, listed};

/// The form of a kernel's calls.
#[derive(Clone, Debug)]
pub struct CallForm {
    /// For each operand.
    pub slots: Box<[Slot]>,
    /// The operands with an extent of their own and that extent, an index into `extents`.
    operands: Box<[(usize, usize)]>,
    lengths: Box<[usize]>,
    extents: Box<[Extent]>,
    rows: Option<usize>,
    flops: Box<[Extent]>,
    has_lists: bool,
    /// The slots with handles, where every call has as many of these, all of which it reads.
    pub handles: Option<Box<[usize]>>,
    /// What the kernel counts: rows, or calls.
    pub unit: Unit,
    /// Whether the rows of several calls may be one range.
    pub fused: bool,
    /// How a call may be divided between threads.
    pub division: Option<Division>,
    /// How the storage of its results is padded.
    pub padding: Option<Padding>,
    /// Whether its calls are anything but a row each.
    pub is_ragged: bool,
}

impl CallForm {
    /// The form that the calls of a kernel have.
    pub fn of(kernel: &Kernel) -> CallForm {
        let extent = |(index, operand): (usize, &Operand)| match operand {
            Operand::Ragged { extent, .. } | Operand::Stacked { extent, .. } => {
                Some((index, *extent))
            }
            _ => None,
        };
        let slots: Box<[Slot]> = kernel.operands.iter().map(Slot::of).collect();
        let is_ragged = kernel.call.rows.is_some() || kernel.call.unit == Unit::Calls;
        CallForm {
            has_lists: slots.contains(&Slot::List),
            handles: handles(&slots, is_ragged),
            slots,
            operands: (kernel.operands.iter().enumerate())
                .filter_map(extent)
                .collect(),
            lengths: (kernel.operands.iter().enumerate())
                .filter(|(_, operand)| **operand == Operand::Length)
                .map(|(index, _)| index)
                .collect(),
            extents: kernel.call.extents.clone().into(),
            rows: kernel.call.rows,
            flops: kernel.call.flops.clone().into(),
            unit: kernel.call.unit,
            fused: kernel.call.fused,
            division: kernel.call.division.clone(),
            padding: kernel.call.padding,
            is_ragged,
        }
    }

    /// Of calls that make one row each.
    pub fn plain(slots: Box<[Slot]>) -> CallForm {
        CallForm {
            has_lists: slots.contains(&Slot::List),
            handles: handles(&slots, false),
            slots,
            operands: [].into(),
            lengths: [].into(),
            extents: [].into(),
            rows: None,
            flops: [].into(),
            unit: Unit::Rows,
            fused: true,
            division: None,
            padding: None,
            is_ragged: false,
        }
    }

    /// The rows of the bucket that a call makes; `entry` begins with its slots.
    #[inline]
    pub fn rows(&self, entry: &[u64]) -> u64 {
        self.rows.map_or(1, |rows| self.extent(rows, entry))
    }

    /// An extent of a call; as many as fit 64 bits when there are more.
    #[inline]
    pub fn extent(&self, extent: usize, entry: &[u64]) -> u64 {
        self.extents[extent].count(|length| entry[length])
    }

    /// Of the operands with an extent of their own: which, and their rows in a call.
    pub fn operand_rows<'a>(&'a self, entry: &'a [u64]) -> impl Iterator<Item = (usize, u64)> + 'a {
        let operands = self.operands.iter();
        operands.map(|(operand, extent)| (*operand, self.extent(*extent, entry)))
    }

    /// Whether the operand has no rows in a call.
    pub fn is_empty(&self, operand: usize, entry: &[u64]) -> bool {
        let mut extents = self.operands.iter();
        let extent = extents.find(|(index, _)| *index == operand);
        extent.is_some_and(|(_, extent)| self.extent(*extent, entry) == 0)
    }

    /// The rows that a call has when its lengths are these, given by operand.
    pub fn rows_of(&self, length: impl Fn(usize) -> u64) -> u64 {
        self.rows.map_or(1, |rows| self.extents[rows].count(length))
    }

    /// The same as a reader counts them: where several dims differ by instance, what lies along the last
    /// of them is one row.
    pub fn read_rows_of(&self, length: impl Fn(usize) -> u64) -> u64 {
        let Some(extent) = self.rows.map(|rows| &self.extents[rows]) else {
            return 1;
        };
        let whole = extent.count(&length);
        match extent.lengths.split_last() {
            Some((last, [_, ..])) => whole / length(*last).max(1),
            _ => whole,
        }
    }

    /// The rows of an operand in a call whose lengths are these.
    pub fn extent_of(&self, extent: usize, length: impl Fn(usize) -> u64) -> u64 {
        self.extents[extent].count(length)
    }

    /// Whether the results have an extent of their own.
    pub fn has_extent(&self) -> bool {
        self.rows.is_some()
    }

    /// The operands that are lengths.
    pub fn lengths(&self) -> impl Iterator<Item = usize> + '_ {
        self.lengths.iter().copied()
    }

    /// Which of the lengths an operand is.
    #[inline]
    pub fn column(&self, operand: usize) -> usize {
        let mut lengths = self.lengths.iter();
        lengths.position(|length| *length == operand).unwrap_or(0)
    }

    /// What the rows of a call are the product of: a number, and some of the lengths.
    pub fn row_columns(&self) -> (u64, Vec<usize>) {
        self.rows.map_or((1, Vec::new()), |rows| {
            let extent = &self.extents[rows];
            let columns = extent.lengths.iter().map(|operand| self.column(*operand));
            (extent.times, columns.collect())
        })
    }

    /// Operations of products of one call, with the lengths given by operand.
    pub fn flops(&self, length: impl Fn(usize) -> u64) -> u64 {
        let each = self.flops.iter().map(|extent| extent.count(&length));
        each.fold(0, u64::saturating_add)
    }

    /// Of these, those that grow along the dim that may be divided, as if they did not.
    pub fn rising_flops(&self, length: impl Fn(usize) -> u64) -> u64 {
        let rising = self.division.iter().flat_map(|division| &division.rising);
        let each = rising.map(|at| self.flops[*at].count(&length));
        each.fold(0, u64::saturating_add)
    }

    /// How long a call's entry is behind its bucket.
    #[inline]
    pub fn entry_length(&self, entry: &[u64]) -> usize {
        match self.has_lists {
            true => self.slots.len() + listed(&self.slots, entry),
            false => self.slots.len(),
        }
    }
}

fn handles(slots: &[Slot], is_ragged: bool) -> Option<Box<[usize]>> {
    let is_plain = !is_ragged && !slots.contains(&Slot::List);
    let numbered = slots.iter().enumerate();
    let handles = numbered.filter(|(_, slot)| **slot == Slot::Row);
    is_plain.then(|| handles.map(|(index, _)| index).collect())
}
