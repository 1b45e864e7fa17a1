//! Writes loops that are run as they are written: one element after another.

use std::collections::HashMap;

use cohort_abi::manifest::Elem;
use cohort_dialects::builder::{
    Val, arguments_of, name_of, operands_of, operations_of, result_of, results_of,
};
use melior::ir::{
    BlockRef, OperationRef, ValueLike, attribute::ArrayAttribute, operation::OperationLike,
};

use super::body::block_of;
use super::compute::{DIVISIONS, element_address};
use super::frame::{Block, Frame, Row};
use super::kernel::number;
use crate::codegen::emit::{Emitter, Index, Width};
use crate::kernel::loop_level::{Memory, address_of, to_linear};
use crate::kernel::rows::graph::Linear;
use crate::kernel::rows::layout::{Place, elem_bytes};
use crate::kernel::rows::read::elem_of;
use crate::pass::{Failed, Outcome, error};
use crate::support::ir::{clone_op, integers, key, set_operand};

/// Where a result is written.
struct Stored {
    result: usize,
    place: Place,
    address: Linear,
    elem: Elem,
}

struct Loops<'f, 'a, 'c> {
    frame: &'f Frame<'a, 'c>,
    over: Vec<i64>,
    folded: Vec<usize>,
    start: BlockRef<'c, 'c>,
    step: BlockRef<'c, 'c>,
    stored: Vec<Stored>,
}

pub fn loops<'c>(
    e: &Emitter<'c>,
    frame: &Frame<'_, 'c>,
    stage: OperationRef<'c, 'c>,
    block: Option<Block<'c>>,
) -> Outcome {
    let loops = Loops::read(frame, stage)?;
    let mut written = Ok(());
    frame.for_rows(e, block, |e, row| written = loops.row(e, row));
    written
}

impl<'f, 'a, 'c> Loops<'f, 'a, 'c> {
    fn read(frame: &'f Frame<'a, 'c>, stage: OperationRef<'c, 'c>) -> Result<Self, Failed> {
        let addresses = stage.attribute("addresses").ok();
        let addresses = addresses.and_then(|array| ArrayAttribute::try_from(array).ok());
        let results = integers(stage, "stored").into_iter().enumerate();
        let stored = results.map(|(position, result)| {
            let memory = operands_of(stage)[position];
            let address = addresses.and_then(|maps| maps.element(position).ok());
            Some(Stored {
                result: result as usize,
                place: frame.kernel.place(memory),
                address: to_linear(address?)?,
                elem: Memory::of(memory)?.elem,
            })
        });
        let stored: Option<Vec<Stored>> = stored.collect();
        Ok(Loops {
            frame,
            over: integers(stage, "over"),
            folded: integers(stage, "folding")
                .into_iter()
                .map(|dim| dim as usize)
                .collect(),
            start: block_of(stage, 0)?,
            step: block_of(stage, 1)?,
            stored: stored.ok_or_else(|| error(stage, "expected linear maps"))?,
        })
    }

    fn row(&self, e: &Emitter<'c>, row: Option<Row<'c>>) -> Outcome {
        let mut addresses: HashMap<Place, Val<'c>> = HashMap::new();
        let loaded = [self.step, self.start].map(|block| self.places_in(block));
        let [of_step, of_start] = loaded;
        let stored = self.stored.iter().map(|stored| stored.place);
        for place in of_step.into_iter().chain(stored).chain(of_start) {
            let address = || self.frame.address(e, place, row);
            addresses.entry(place).or_insert_with(address);
        }
        let scalars = Scalars {
            frame: self.frame,
            row,
            addresses,
        };
        let kept: Vec<usize> = (0..self.over.len())
            .filter(|dim| !self.folded.contains(dim))
            .collect();
        let sizes = |dims: &[usize]| dims.iter().map(|dim| self.over[*dim]).collect::<Vec<_>>();
        let mut failed = None;
        e.for_nest(&sizes(&kept), &[], &mut |e, outer, _| {
            let mut index = vec![Index::constant(0); self.over.len()];
            for (dim, at) in kept.iter().zip(outer) {
                index[*dim] = *at;
            }
            let starts = scalars.write(e, self.start, &[], &index);
            let starts = starts.unwrap_or_else(|stop| {
                failed = Some(stop);
                vec![]
            });
            let ends = e.for_nest(&sizes(&self.folded), &starts, &mut |e, inner, carried| {
                for (dim, at) in self.folded.iter().zip(inner) {
                    index[*dim] = *at;
                }
                let next = scalars.write(e, self.step, carried, &index);
                next.unwrap_or_else(|stop| {
                    failed = Some(stop);
                    carried.to_vec()
                })
            });
            for dim in &self.folded {
                index[*dim] = Index::constant(0);
            }
            for stored in &self.stored {
                let Some(end) = ends.get(stored.result) else {
                    continue;
                };
                let base = scalars.addresses[&stored.place];
                let bytes = elem_bytes(stored.elem);
                let at = element_address(e, base, &stored.address, bytes, &index);
                e.store_elem(*end, at, stored.elem, Width::Scalar, None);
            }
            vec![]
        });
        failed.map_or(Ok(()), Err)
    }

    /// The memory that a region loads from; a scalar of the host is in none.
    fn places_in(&self, block: BlockRef<'c, 'c>) -> Vec<Place> {
        let loads = operations_of(block).into_iter();
        let loads = loads.filter(|op| name_of(*op) == "ragged.load");
        let places = loads.map(|op| self.frame.kernel.place(operands_of(op)[0]));
        places
            .filter(|place| !self.frame.is_scalar(*place))
            .collect()
    }
}

/// Writes regions of scalars for a row.
struct Scalars<'f, 'a, 'c> {
    frame: &'f Frame<'a, 'c>,
    row: Option<Row<'c>>,
    addresses: HashMap<Place, Val<'c>>,
}

impl<'c> Scalars<'_, '_, 'c> {
    /// The operations of a region on the given values; what it yields.
    fn write(
        &self,
        e: &Emitter<'c>,
        block: BlockRef<'c, 'c>,
        arguments: &[Val<'c>],
        index: &[Index<'c>],
    ) -> Result<Vec<Val<'c>>, Failed> {
        let mut values: HashMap<usize, Val<'c>> = HashMap::new();
        for (old, new) in arguments_of(block).into_iter().zip(arguments) {
            values.insert(key(old), *new);
        }
        for op in operations_of(block) {
            if name_of(op) == "ragged.load" {
                values.insert(key(result_of(op, 0)), self.load(e, op, index)?);
                continue;
            }
            let operands = operands_of(op).into_iter();
            let mut operands: Vec<Val<'c>> = operands.map(|value| values[&key(value)]).collect();
            match name_of(op).as_str() {
                "ragged.yield" => return Ok(operands),
                "ragged.index" => {
                    let at = e.index_value(index[number(op, "dim")? as usize]);
                    values.insert(key(result_of(op, 0)), at);
                    continue;
                }
                name if DIVISIONS.contains(&name)
                    && elem_of(result_of(op, 0).r#type()) == Some(Elem::I32) =>
                {
                    operands[1] = e.safe_divisor(operands[0], operands[1], Width::Scalar);
                }
                _ => {}
            }
            let copy = e.b.insert(clone_op(op));
            for (position, operand) in operands.iter().enumerate() {
                set_operand(copy, position, *operand);
            }
            for (old, new) in results_of(op).into_iter().zip(results_of(copy)) {
                values.insert(key(old), new);
            }
        }
        Ok(vec![])
    }

    fn load(
        &self,
        e: &Emitter<'c>,
        op: OperationRef<'c, 'c>,
        index: &[Index<'c>],
    ) -> Result<Val<'c>, Failed> {
        let place = self.frame.kernel.place(operands_of(op)[0]);
        let elem = elem_of(result_of(op, 0).r#type());
        let elem = elem.ok_or_else(|| error(op, "expected f32, i32 or i1"))?;
        if let (Place::Operand(operand), true) = (place, self.frame.is_scalar(place)) {
            return Ok(self.frame.host_scalar(e, operand, elem, self.row));
        }
        let address = address_of(op).ok_or_else(|| error(op, "expected a linear map"))?;
        let base = self.addresses[&place];
        let at = element_address(e, base, &address, elem_bytes(elem), index);
        Ok(e.load_elem(at, elem, Width::Scalar, None))
    }
}
