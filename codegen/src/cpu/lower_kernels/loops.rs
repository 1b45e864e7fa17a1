//! Writes loops that are run as they are written, for each row of a block.

use std::collections::HashMap;

use cohort_abi::manifest::Elem;
use cohort_dialects::builder::Val;
use cohort_passes::kernel::rows::graph::Linear;
use cohort_passes::kernel::rows::layout::{Place, elem_bytes};
use cohort_passes::pass::Outcome;
use melior::ir::OperationRef;

use super::frame::{Block, Frame, Row};
use crate::emit::{Emitter, Index, Width, element_address};
use crate::read_rows::loops::{Access, Loops};

pub fn loops<'c>(
    e: &Emitter<'c>,
    frame: &Frame<'_, 'c>,
    stage: OperationRef<'c, 'c>,
    block: Option<Block<'c>>,
) -> Outcome {
    let loops = Loops::read(frame.kernel, stage)?;
    let mut written = Ok(());
    frame.for_rows(e, block, |e, row| {
        let mut addresses: HashMap<Place, Val<'c>> = HashMap::new();
        for place in loops.places(frame.kernel) {
            let address = || frame.address(e, place, row);
            addresses.entry(place).or_insert_with(address);
        }
        let scalars = Scalars {
            frame,
            row,
            addresses,
        };
        e.for_nest(&loops.sizes(&loops.kept()), &[], &mut |e, outer, _| {
            let done = loops.at(e, frame.kernel, &loops.index(outer), &scalars);
            if done.is_err() {
                written = done;
            }
            vec![]
        });
    });
    written
}

/// The memory of a row of a block.
struct Scalars<'f, 'a, 'c> {
    frame: &'f Frame<'a, 'c>,
    row: Option<Row<'c>>,
    addresses: HashMap<Place, Val<'c>>,
}

impl<'c> Access<'c> for Scalars<'_, '_, 'c> {
    fn load(
        &self,
        e: &Emitter<'c>,
        place: Place,
        address: &Linear,
        elem: Elem,
        index: &[Index<'c>],
    ) -> Val<'c> {
        if let (Place::Operand(operand), true) = (place, self.frame.kernel.is_scalar(place)) {
            return self.frame.host_scalar(e, operand, elem, self.row);
        }
        let at = element_address(e, self.addresses[&place], address, elem_bytes(elem), index);
        e.load_elem(at, elem, Width::Scalar, None)
    }

    fn store(
        &self,
        e: &Emitter<'c>,
        value: Val<'c>,
        place: Place,
        address: &Linear,
        elem: Elem,
        index: &[Index<'c>],
    ) {
        let at = element_address(e, self.addresses[&place], address, elem_bytes(elem), index);
        e.store_elem(value, at, elem, Width::Scalar, None);
    }
}
