//! Loops that are run as they are written: one element after another.

use std::collections::HashMap;

use cohort_abi::manifest::Elem;
use cohort_dialects::builder::{
    Op, Val, arguments_of, operands_of, operations_of, result_of, results_of,
};
use cohort_dialects::keys;
use cohort_passes::kernel::affine::Affine;
use cohort_passes::kernel::loop_level::{Memory, address_of, to_affine};
use cohort_passes::kernel::rows::layout::Place;
use cohort_passes::pass::{Failed, Outcome, error};
use cohort_passes::support::ir::{array, clone_op, elem_of, integers, key, set_operand};
use melior::ir::{BlockRef, OperationRef, ValueLike};

use super::body::block_of;
use super::kernel::{Kernel, number};
use super::memory::{Address, Scalars};
use crate::emit::{Emitter, Index, Width, divides};

/// Where a result is written.
struct Stored {
    result: usize,
    place: Place,
    address: Affine,
    elem: Elem,
}

pub struct Loops<'c> {
    pub over: Vec<i64>,
    pub folded: Vec<usize>,
    start: BlockRef<'c, 'c>,
    step: BlockRef<'c, 'c>,
    stored: Vec<Stored>,
}

impl<'c> Loops<'c> {
    pub fn read(kernel: &Kernel<'c>, stage: OperationRef<'c, 'c>) -> Result<Self, Failed> {
        let addresses = array(stage, keys::ADDRESSES);
        let results = integers(stage, keys::STORED).into_iter().enumerate();
        let stored = results.map(|(position, result)| {
            let memory = operands_of(stage)[position];
            Some(Stored {
                result: result as usize,
                place: kernel.place(memory),
                address: to_affine(*addresses.get(position)?)?,
                elem: Memory::of(memory)?.elem,
            })
        });
        let stored: Option<Vec<Stored>> = stored.collect();
        Ok(Loops {
            over: integers(stage, keys::OVER),
            folded: integers(stage, keys::FOLDING)
                .into_iter()
                .map(|dim| dim as usize)
                .collect(),
            start: block_of(stage, 0)?,
            step: block_of(stage, 1)?,
            stored: stored.ok_or_else(|| error(stage, "expected linear maps"))?,
        })
    }

    /// The loops that are not folded.
    pub fn kept(&self) -> Vec<usize> {
        let dims = 0..self.over.len();
        dims.filter(|dim| !self.folded.contains(dim)).collect()
    }

    pub fn sizes(&self, dims: &[usize]) -> Vec<i64> {
        dims.iter().map(|dim| self.over[*dim]).collect()
    }

    /// The index of all loops, those that are folded at 0.
    pub fn index(&self, kept: &[Index<'c>]) -> Vec<Index<'c>> {
        let mut index = vec![Index::constant(0); self.over.len()];
        for (dim, at) in self.kept().into_iter().zip(kept) {
            index[dim] = *at;
        }
        index
    }

    /// The memory that is touched; a scalar of the host is in none.
    pub fn places(&self, kernel: &Kernel<'c>) -> Vec<Place> {
        let loaded = |block| {
            let loads = operations_of(block).into_iter();
            let loads = loads.filter(|op| Op::RaggedLoad.is(*op));
            loads.map(|op| kernel.place(operands_of(op)[0]))
        };
        let stored = self.stored.iter().map(|stored| stored.place);
        let places = loaded(self.step).chain(stored).chain(loaded(self.start));
        places.filter(|place| !kernel.is_scalar(*place)).collect()
    }

    /// Folds and stores what is at an index of the loops that are kept.
    pub fn at<A: Address<'c>>(
        &self,
        e: &Emitter<'c>,
        kept: &[Index<'c>],
        memory: &Scalars<'_, 'c, A>,
    ) -> Outcome {
        let mut failed = None;
        let starts = write(e, memory, self.start, &[], kept)?;
        let mut index = kept.to_vec();
        let sizes = self.sizes(&self.folded);
        let ends = e.for_nest(&sizes, &starts, &mut |e, inner, carried| {
            for (dim, at) in self.folded.iter().zip(inner) {
                index[*dim] = *at;
            }
            let next = write(e, memory, self.step, carried, &index);
            next.unwrap_or_else(|stop| {
                failed = Some(stop);
                carried.to_vec()
            })
        });
        for stored in &self.stored {
            if let Some(end) = ends.get(stored.result) {
                memory.store(e, *end, stored.place, &stored.address, stored.elem, kept);
            }
        }
        failed.map_or(Ok(()), Err)
    }
}

/// The operations of a region on the given values; what it yields.
fn write<'c, A: Address<'c>>(
    e: &Emitter<'c>,
    memory: &Scalars<'_, 'c, A>,
    block: BlockRef<'c, 'c>,
    arguments: &[Val<'c>],
    index: &[Index<'c>],
) -> Result<Vec<Val<'c>>, Failed> {
    let mut values: HashMap<usize, Val<'c>> = HashMap::new();
    for (old, new) in arguments_of(block).into_iter().zip(arguments) {
        values.insert(key(old), *new);
    }
    for op in operations_of(block) {
        if Op::RaggedLoad.is(op) {
            let elem = elem_of(result_of(op, 0).r#type());
            let elem = elem.ok_or_else(|| error(op, "expected f32, i32 or i1"))?;
            let address = address_of(op).ok_or_else(|| error(op, "expected a linear map"))?;
            let place = memory.arguments.kernel.place(operands_of(op)[0]);
            let value = memory.load(e, place, &address, elem, index);
            values.insert(key(result_of(op, 0)), value);
            continue;
        }
        let operands = operands_of(op).into_iter();
        let mut operands: Vec<Val<'c>> = operands.map(|value| values[&key(value)]).collect();
        match Op::of(op) {
            Some(Op::RaggedYield) => return Ok(operands),
            Some(Op::RaggedIndex) => {
                let at = e.index_value(index[number(op, keys::DIM)? as usize]);
                values.insert(key(result_of(op, 0)), at);
                continue;
            }
            _ if divides(op) && elem_of(result_of(op, 0).r#type()) == Some(Elem::I32) => {
                operands[1] = e.safe_divisor(operands[0], operands[1], Width::Scalar);
            }
            Some(Op::MathIpowi) => {
                let result = result_of(op, 0);
                let power = e.copy(op, &operands, result.r#type());
                values.insert(key(result), power);
                continue;
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
