//! The memory of a kernel's operands and results, as its function gets it on every target.

use std::collections::HashMap;

use cohort_abi::manifest::Elem;
use cohort_dialects::builder::Val;
use cohort_passes::kernel::affine::Affine;
use cohort_passes::kernel::rows::layout::{Place, elem_bytes};

use super::kernel::Kernel;
use crate::emit::{Emitter, Index, Width, element_address};

/// A row that a stage runs for; there is none in the part that runs once a call.
#[derive(Clone, Copy)]
pub struct Row<'c> {
    /// Counted from the block's first row.
    pub in_block: Val<'c>,
    /// Counted from the bucket's first row.
    pub in_bucket: Val<'c>,
}

/// The fields of an operand's [`OperandRef`](cohort_abi::OperandRef).
#[derive(Clone, Copy)]
pub struct OperandFields<'c> {
    pub base: Val<'c>,
    pub index: Val<'c>,
    pub offsets: Val<'c>,
}

/// The first entry of a row's list in the operand's index, and the one after its last.
#[derive(Clone, Copy)]
pub struct Entries<'c> {
    pub first: Val<'c>,
    pub end: Val<'c>,
}

/// What a function gets of operands and results.
#[derive(Clone)]
pub struct Arguments<'a, 'c> {
    pub kernel: &'a Kernel<'c>,
    pub operands: Vec<OperandFields<'c>>,
    pub results: Vec<Val<'c>>,
}

impl<'c> Arguments<'_, 'c> {
    /// The address of a row of an operand or a result.
    pub fn address(&self, e: &Emitter<'c>, place: Place, row: Option<Row<'c>>) -> Val<'c> {
        match (place, row) {
            (Place::Operand(operand), Some(row)) => self.listed(e, operand, row.in_bucket),
            (Place::Result(result), Some(row)) => {
                let bytes = self.kernel.results[result].row_bytes();
                e.offset(self.results[result], e.times(row.in_bucket, bytes))
            }
            (Place::Operand(_) | Place::Result(_), None) => {
                unreachable!("only rows have operands and results")
            }
            (Place::Constant(_) | Place::Slot(_) | Place::Sum(_), _) => {
                unreachable!("neither an operand nor a result")
            }
        }
    }

    /// The list of a row.
    pub fn list(&self, e: &Emitter<'c>, operand: usize, row: Row<'c>) -> Entries<'c> {
        let offsets = self.operands[operand].offsets;
        let entry = e.offset(offsets, e.times(row.in_bucket, 4));
        Entries {
            first: e.load_u32(entry),
            end: e.load_u32(e.offset_by(entry, 4)),
        }
    }

    /// The address of the row of an operand that an entry of its index names.
    pub fn listed(&self, e: &Emitter<'c>, operand: usize, entry: Val<'c>) -> Val<'c> {
        let OperandFields { base, index, .. } = self.operands[operand];
        let entry = e.offset(index, e.times(entry, 4));
        let bytes = self.kernel.operands[operand].memory.row_bytes();
        e.offset(base, e.times(e.load_u32(entry), bytes))
    }

    /// The scalar of the host that a row's record gives an operand.
    pub fn host_scalar(
        &self,
        e: &Emitter<'c>,
        operand: usize,
        elem: Elem,
        row: Option<Row<'c>>,
    ) -> Val<'c> {
        let Some(row) = row else {
            return e.bits(0, elem, Width::Scalar);
        };
        // Of a truth value, the low byte holds 0 or 1.
        let address = e.offset(self.operands[operand].index, e.times(row.in_bucket, 4));
        e.load_elem(address, elem, Width::Scalar, None)
    }

    /// The scalars of the host that the records of sixteen rows give an operand.
    pub fn host_scalars(
        &self,
        e: &Emitter<'c>,
        operand: usize,
        elem: Elem,
        first: Row<'c>,
        mask: Val<'c>,
    ) -> Val<'c> {
        let address = e.offset(self.operands[operand].index, e.times(first.in_bucket, 4));
        match elem {
            // Of a truth value, the low byte holds 0 or 1.
            Elem::Bool => e.gather(address, 4, elem, Some(mask)),
            Elem::F32 | Elem::I32 => e.load_elem(address, elem, Width::Vector, Some(mask)),
        }
    }
}

/// An address of some memory, and how an emitter gets at that.
pub trait Address<'c>: Copy {
    fn in_memory(self, e: &Emitter<'c>) -> (Emitter<'c>, Val<'c>);
}

/// A processor has one memory.
impl<'c> Address<'c> for Val<'c> {
    fn in_memory(self, e: &Emitter<'c>) -> (Emitter<'c>, Val<'c>) {
        (*e, self)
    }
}

/// The elements of a row, one at a time.
pub struct Scalars<'a, 'c, A> {
    pub arguments: &'a Arguments<'a, 'c>,
    pub row: Option<Row<'c>>,
    pub addresses: HashMap<Place, A>,
}

impl<'c, A: Address<'c>> Scalars<'_, 'c, A> {
    pub fn load(
        &self,
        e: &Emitter<'c>,
        place: Place,
        address: &Affine,
        elem: Elem,
        index: &[Index<'c>],
    ) -> Val<'c> {
        if let (Place::Operand(operand), true) = (place, self.arguments.kernel.is_scalar(place)) {
            return self.arguments.host_scalar(e, operand, elem, self.row);
        }
        let (e, at) = self.element(e, place, address, elem, index);
        e.load_elem(at, elem, Width::Scalar, None)
    }

    pub fn store(
        &self,
        e: &Emitter<'c>,
        value: Val<'c>,
        place: Place,
        address: &Affine,
        elem: Elem,
        index: &[Index<'c>],
    ) {
        let (e, at) = self.element(e, place, address, elem, index);
        e.store_elem(value, at, elem, Width::Scalar, None);
    }

    fn element(
        &self,
        e: &Emitter<'c>,
        place: Place,
        address: &Affine,
        elem: Elem,
        index: &[Index<'c>],
    ) -> (Emitter<'c>, Val<'c>) {
        let (e, base) = self.addresses[&place].in_memory(e);
        let at = element_address(&e, base, address, elem_bytes(elem), index);
        (e, at)
    }
}
