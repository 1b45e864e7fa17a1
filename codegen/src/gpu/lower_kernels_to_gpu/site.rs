//! Addresses on the device, and the values of a body at neighbouring indices of one row, in one thread.
//!
//! Elements of 4 bytes that are next to each other, and begin at a multiple of all their bytes, are one
//! load or store; others are as many as there are.

use std::collections::HashMap;

use cohort_abi::manifest::Elem;
use cohort_dialects::builder::Val;
use cohort_passes::kernel::affine::Affine;
use cohort_passes::kernel::description::ConstantDescription;
use cohort_passes::kernel::rows::body::{Instruction, Store, ValueId};
use cohort_passes::kernel::rows::layout::{Place, elem_bytes};
use cohort_passes::support::ir::key;

use super::ops::{load_neighbours, store_neighbours, to_bf16_pair};
use crate::emit::{Emitter, Index, Width, divides, element_address};
use crate::gpu::neighbours::are_neighbours;
use crate::read_rows::body::Body;
use crate::read_rows::memory::{Address as AnyAddress, Arguments, Row};

/// Where a slot of the scratch is.
#[derive(Clone, Copy, Debug)]
pub enum Home {
    /// No launch touches it.
    Nowhere,
    /// On the device, one for all rows: bytes from the scratch's start.
    Once(i64),
    /// On the device, one a row, bytes a row: `scratch + once + rows * before + row * bytes`.
    Rows { before: i64, bytes: i64 },
    /// In shared memory, one for each row of the block: bytes from its start, bytes a row.
    Shared { offset: i64, bytes: i64 },
}

/// What stays the same for a whole function.
#[derive(Clone)]
pub struct Frame<'a, 'c> {
    pub arguments: Arguments<'a, 'c>,
    pub homes: &'a [Home],
    /// Bytes of the scratch before what each row has.
    pub once_bytes: i64,
    pub rows: Val<'c>,
    pub constants: Vec<(&'a ConstantDescription, Val<'c>)>,
    pub scratch: Val<'c>,
    /// The block's shared memory, where the function has some.
    pub shared: Option<Val<'c>>,
}

/// An address, and the emitter whose pointers are of its memory.
#[derive(Clone, Copy)]
pub struct Address<'c> {
    pub at: Val<'c>,
    pub shared: bool,
}

impl<'c> AnyAddress<'c> for Address<'c> {
    fn in_memory(self, e: &Emitter<'c>) -> (Emitter<'c>, Val<'c>) {
        (memory(e, self.shared), self.at)
    }
}

/// The same emitter for global or for shared memory.
pub fn memory<'c>(e: &Emitter<'c>, shared: bool) -> Emitter<'c> {
    let space = if shared { 3 } else { 1 };
    Emitter {
        pointer: e.b.pointer_in(space),
        ..*e
    }
}

impl<'c> Frame<'_, 'c> {
    pub fn address(&self, e: &Emitter<'c>, place: Place, row: Option<Row<'c>>) -> Address<'c> {
        let global = |at| Address { at, shared: false };
        match (place, row) {
            (Place::Constant(node), _) => {
                global(self.constant(&self.arguments.kernel.constants[node]))
            }
            (Place::Slot(slot), row) => match (self.homes[slot], row) {
                (Home::Rows { before, bytes }, Some(row)) => {
                    let start = e.offset_by(self.scratch, self.once_bytes);
                    let start = e.offset(start, e.times(self.rows, before));
                    global(e.offset(start, e.times(row.in_bucket, bytes)))
                }
                (Home::Shared { offset, bytes }, Some(row)) => {
                    let e = memory(e, true);
                    let start = e.offset_by(self.shared(), offset);
                    Address {
                        at: e.offset(start, e.times(row.in_block, bytes)),
                        shared: true,
                    }
                }
                (Home::Once(offset), _) => global(e.offset_by(self.scratch, offset)),
                _ => unreachable!("slot {slot} is in no memory here"),
            },
            (Place::Sum(_), _) => unreachable!("sums are in no memory"),
            (Place::Operand(_) | Place::Result(_), row) => {
                global(self.arguments.address(e, place, row))
            }
        }
    }

    /// The memory of a constant that the launches touch.
    pub fn constant(&self, what: &ConstantDescription) -> Val<'c> {
        let mut constants = self.constants.iter();
        let constant = constants.find(|(constant, _)| *constant == what);
        constant.map_or_else(
            || unreachable!("the function takes it"),
            |(_, value)| *value,
        )
    }

    pub fn shared(&self) -> Val<'c> {
        self.shared
            .unwrap_or_else(|| unreachable!("the function has shared memory"))
    }

    /// Whether a place keeps its numbers in bf16.
    fn keeps_bf16(&self, place: Place) -> bool {
        matches!(place, Place::Slot(slot) if self.arguments.kernel.slots[slot].bf16)
    }

    /// Whether `count` neighbouring indices along the last dim of a body, from a multiple of their number
    /// on, are neighbouring elements that can be loaded or stored at once.
    pub fn are_neighbours(
        &self,
        body: &Body<'c>,
        place: Place,
        address: &Affine,
        elem: Elem,
        count: i64,
    ) -> bool {
        let row = match place {
            Place::Operand(operand) => self.arguments.kernel.operands[operand].memory.row_bytes(),
            Place::Result(result) => self.arguments.kernel.results[result].row_bytes(),
            // Rows of scratch begin at cache lines.
            Place::Constant(_) | Place::Slot(_) | Place::Sum(_) => 0,
        };
        are_neighbours(&body.domain, address, elem, count) && row % (count * elem_bytes(elem)) == 0
    }
}

/// The loads of a body that are of memory.
pub fn loads_of<'a>(body: &'a Body<'_>) -> impl Iterator<Item = (Place, &'a Affine)> + 'a {
    body.values
        .iter()
        .filter_map(|(instruction, _)| match instruction {
            Instruction::Load { buffer, address } => match buffer {
                Place::Sum(_) => None,
                place => Some((*place, address)),
            },
            _ => None,
        })
}

/// Values by number, one for each neighbouring index.
pub type Known<'c> = HashMap<ValueId, Vec<Val<'c>>>;

/// Sums of products by their number, one for each neighbouring index.
pub type Sums<'c> = Vec<Vec<Val<'c>>>;

/// Neighbouring indices of one row: computes values of bodies over the same domain.
pub struct Site<'a, 'f, 'c> {
    pub frame: &'a Frame<'f, 'c>,
    pub row: Option<Row<'c>>,
    /// The first one, along the last dim a multiple of their number.
    pub index: &'a [Index<'c>],
    /// How many there are along the last dim.
    pub count: i64,
    /// Addresses of rows, found once.
    pub addresses: &'a mut HashMap<Place, Address<'c>>,
    /// The products that the thread holds.
    pub sums: Option<&'a Sums<'c>>,
}

impl<'c> Site<'_, '_, 'c> {
    pub fn address(&mut self, e: &Emitter<'c>, place: Place) -> Address<'c> {
        if let Some(address) = self.addresses.get(&place) {
            return *address;
        }
        let address = self.frame.address(e, place, self.row);
        self.addresses.insert(place, address);
        address
    }

    /// The value at the first index.
    pub fn value(
        &mut self,
        e: &Emitter<'c>,
        body: &Body<'c>,
        id: ValueId,
        known: &mut Known<'c>,
    ) -> Val<'c> {
        self.values(e, body, id, known)[0]
    }

    /// The value at each index.
    pub fn values(
        &mut self,
        e: &Emitter<'c>,
        body: &Body<'c>,
        id: ValueId,
        known: &mut Known<'c>,
    ) -> Vec<Val<'c>> {
        if let Some(values) = known.get(&id) {
            return values.clone();
        }
        let (instruction, elem) = &body.values[id];
        let values = match instruction {
            Instruction::Splat(bits) => self.same(e.bits(*bits, *elem, Width::Scalar)),
            Instruction::HostScalar(operand) => self.same(
                self.frame
                    .arguments
                    .host_scalar(e, *operand, *elem, self.row),
            ),
            Instruction::Load { buffer, address } => self.load(e, body, *buffer, address, *elem),
            Instruction::Pointwise { op, inputs } => {
                let inputs: Vec<_> = inputs
                    .iter()
                    .map(|input| self.values(e, body, *input, known))
                    .collect();
                let compute = |at: usize| {
                    let mut inputs: Vec<_> = inputs.iter().map(|values| values[at]).collect();
                    if divides(*op) {
                        inputs[1] = e.safe_divisor(inputs[0], inputs[1], Width::Scalar);
                    }
                    e.copy(*op, &inputs, e.elem_type(*elem, Width::Scalar))
                };
                if inputs.iter().all(|values| are_same(values)) {
                    self.same(compute(0))
                } else {
                    (0..self.count as usize).map(compute).collect()
                }
            }
        };
        known.insert(id, values.clone());
        values
    }

    /// A value that is the same at all indices.
    fn same(&self, value: Val<'c>) -> Vec<Val<'c>> {
        vec![value; self.count as usize]
    }

    fn load(
        &mut self,
        e: &Emitter<'c>,
        body: &Body<'c>,
        place: Place,
        address: &Affine,
        elem: Elem,
    ) -> Vec<Val<'c>> {
        if let (Place::Sum(number), Some(sums)) = (place, self.sums) {
            return sums[number].clone();
        }
        let base = self.address(e, place);
        let e = memory(e, base.shared);
        if self
            .frame
            .are_neighbours(body, place, address, elem, self.count)
        {
            let at = element_address(&e, base.at, address, elem_bytes(elem), self.index);
            return load_neighbours(&e, at, elem, self.count);
        }
        let load = |number| {
            let at = self.element(&e, base, address, elem, number);
            e.load_elem(at, elem, Width::Scalar, None)
        };
        let last = body.domain.len().checked_sub(1);
        match last.map_or(0, |last| address.coefficient(last)) {
            0 => self.same(load(0)),
            _ => (0..self.count).map(load).collect(),
        }
    }

    /// Stores the value at each index.
    pub fn store(
        &mut self,
        e: &Emitter<'c>,
        body: &Body<'c>,
        store: &Store,
        values: &[Val<'c>],
        elem: Elem,
    ) {
        let base = self.address(e, store.place);
        let e = memory(e, base.shared);
        if self.frame.keeps_bf16(store.place) {
            // Four neighbours at once, as the kernel's verifier has seen.
            let pairs = values.chunks_exact(2);
            let words: Vec<_> = pairs
                .map(|pair| to_bf16_pair(&e, pair[0], pair[1]))
                .collect();
            let at = element_address(&e, base.at, &store.address, 2, self.index);
            return store_neighbours(&e, &words, at, Elem::I32);
        }
        if self
            .frame
            .are_neighbours(body, store.place, &store.address, elem, self.count)
        {
            let at = self.element(&e, base, &store.address, elem, 0);
            return store_neighbours(&e, values, at, elem);
        }
        for (number, value) in (0..).zip(values) {
            let at = self.element(&e, base, &store.address, elem, number);
            e.store_elem(*value, at, elem, Width::Scalar, None);
        }
    }

    /// What a body loads of memory.
    pub fn loaded(&mut self, e: &Emitter<'c>, body: &Body<'c>) -> Known<'c> {
        let mut known = Known::new();
        for (id, (instruction, _)) in body.values.iter().enumerate() {
            let is_loaded = match instruction {
                Instruction::Load { buffer, .. } => !matches!(buffer, Place::Sum(_)),
                Instruction::HostScalar(_) => true,
                Instruction::Splat(_) | Instruction::Pointwise { .. } => false,
            };
            if is_loaded {
                self.values(e, body, id, &mut known);
            }
        }
        known
    }

    /// Computes and stores all values that a body stores.
    pub fn run(&mut self, e: &Emitter<'c>, body: &Body<'c>) {
        self.run_with(e, body, &mut Known::new());
    }

    /// The same, of which some values are known.
    pub fn run_with(&mut self, e: &Emitter<'c>, body: &Body<'c>, known: &mut Known<'c>) {
        for store in &body.stores {
            let values = self.values(e, body, store.value, known);
            self.store(e, body, store, &values, body.values[store.value].1);
        }
    }

    /// The address of the element of one of the indices.
    fn element(
        &self,
        e: &Emitter<'c>,
        base: Address<'c>,
        address: &Affine,
        elem: Elem,
        number: i64,
    ) -> Val<'c> {
        let mut index = self.index.to_vec();
        if let Some(last) = index.last_mut() {
            *last = last.plus(number);
        }
        element_address(e, base.at, address, elem_bytes(elem), &index)
    }
}

/// Whether they are one value.
fn are_same(values: &[Val<'_>]) -> bool {
    values.windows(2).all(|pair| key(pair[0]) == key(pair[1]))
}
