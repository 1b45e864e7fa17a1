//! Writes loops that are run as they are written, for each row of a block.

use std::collections::HashMap;

use cohort_dialects::builder::Val;
use cohort_passes::kernel::rows::layout::Place;
use cohort_passes::pass::Outcome;
use melior::ir::OperationRef;

use super::frame::{Block, Frame};
use crate::emit::Emitter;
use crate::read_rows::loops::Loops;
use crate::read_rows::memory::Scalars;

pub fn loops<'c>(
    e: &Emitter<'c>,
    frame: &Frame<'_, 'c>,
    stage: OperationRef<'c, 'c>,
    block: Option<Block<'c>>,
) -> Outcome {
    let loops = Loops::read(frame.arguments.kernel, stage)?;
    let mut written = Ok(());
    frame.for_rows(e, block, |e, row| {
        let mut addresses: HashMap<Place, Val<'c>> = HashMap::new();
        for place in loops.places(frame.arguments.kernel) {
            let address = || frame.address(e, place, row);
            addresses.entry(place).or_insert_with(address);
        }
        let scalars = Scalars {
            arguments: &frame.arguments,
            row,
            addresses,
        };
        e.for_nest(&loops.sizes(&loops.kept()), &[], &mut |e, outer, _| {
            let done = loops.at(e, &loops.index(outer), &scalars);
            if done.is_err() {
                written = done;
            }
            vec![]
        });
    });
    written
}
