//! Addresses on the device, and the values of a body at one index of one row, in one thread.

use std::collections::HashMap;

use cohort_abi::manifest::Elem;
use cohort_dialects::builder::{Val, name_of};

use super::plan::Tile;
use crate::cpu::lower_kernels::body::{Body, Instruction, Store, ValueId};
use crate::cpu::lower_kernels::compute::{DIVISIONS, element_address};
use crate::cpu::lower_kernels::emit::{Emitter, Index, Width};
use crate::cpu::lower_kernels::graph::{Graph, Linear, NodeId};
use crate::cpu::lower_kernels::layout::{Layouts, Place, elem_bytes};

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
pub struct Frame<'a, 'c> {
    pub graph: &'a Graph<'c>,
    pub layouts: &'a Layouts,
    pub homes: &'a [Home],
    /// Bytes of the scratch before what each row has.
    pub once_bytes: i64,
    pub rows: Val<'c>,
    /// Base, index and offsets.
    pub operands: Vec<[Val<'c>; 3]>,
    pub results: Vec<Val<'c>>,
    pub constants: HashMap<NodeId, Val<'c>>,
    pub scratch: Val<'c>,
    /// The block's shared memory, where the function has some.
    pub shared: Option<Val<'c>>,
}

/// A row of the bucket that a block computes.
#[derive(Clone, Copy)]
pub struct Row<'c> {
    pub in_block: Val<'c>,
    pub in_bucket: Val<'c>,
}

/// An address, and the emitter whose pointers are of its memory.
#[derive(Clone, Copy)]
pub struct Address<'c> {
    pub at: Val<'c>,
    pub shared: bool,
}

/// The same emitter for global or for shared memory.
pub fn memory<'c>(e: &Emitter<'c>, shared: bool) -> Emitter<'c> {
    let space = if shared { 3 } else { 1 };
    Emitter {
        pointer: e.b.ty(&format!("!llvm.ptr<{space}>")),
        ..*e
    }
}

impl<'c> Frame<'_, 'c> {
    pub fn address(&self, e: &Emitter<'c>, place: Place, row: Option<Row<'c>>) -> Address<'c> {
        let global = |at| Address { at, shared: false };
        match (place, row) {
            (Place::Constant(node), _) => global(self.constants[&node]),
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
            (Place::Operand(operand), Some(row)) => {
                let [_, index, _] = self.operands[operand];
                let entry = e.offset(index, e.times(row.in_bucket, 4));
                global(self.operand_row(e, operand, entry))
            }
            (Place::Result(result), Some(row)) => {
                let node = &self.graph.nodes[self.graph.results[result]];
                let bytes = node.elements() * elem_bytes(node.elem);
                global(e.offset(self.results[result], e.times(row.in_bucket, bytes)))
            }
            (Place::Operand(_) | Place::Result(_), None) => {
                unreachable!("only rows have operands and results")
            }
        }
    }

    pub fn shared(&self) -> Val<'c> {
        self.shared
            .unwrap_or_else(|| unreachable!("the function has shared memory"))
    }

    /// The address of the row of an operand that an entry of its index names.
    pub fn operand_row(&self, e: &Emitter<'c>, operand: usize, entry: Val<'c>) -> Val<'c> {
        let node = &self.graph.nodes[self.graph.operands[operand]];
        let bytes = node.elements() * elem_bytes(node.elem);
        e.offset(self.operands[operand][0], e.times(e.load_u32(entry), bytes))
    }

    pub fn place_of(&self, buffer: NodeId) -> Place {
        self.layouts.of_node[buffer].as_ref().map_or_else(
            || unreachable!("node {buffer} has memory"),
            |layout| layout.place,
        )
    }
}

/// One index of one row: computes values of bodies over the same domain.
pub struct Site<'a, 'f, 'c> {
    pub frame: &'a Frame<'f, 'c>,
    pub row: Option<Row<'c>>,
    pub index: &'a [Index<'c>],
    /// Addresses of rows, found once.
    pub addresses: &'a mut HashMap<Place, Address<'c>>,
    /// The products that the thread holds: chain, gate.
    pub gates: Option<(&'a Tile<'c>, &'a [Vec<Val<'c>>])>,
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

    pub fn value(
        &mut self,
        e: &Emitter<'c>,
        body: &Body<'c>,
        id: ValueId,
        known: &mut HashMap<ValueId, Val<'c>>,
    ) -> Val<'c> {
        if let Some(value) = known.get(&id) {
            return *value;
        }
        let (instruction, elem) = &body.values[id];
        let value = match instruction {
            Instruction::Splat(bits) => e.bits(*bits, *elem, Width::Scalar),
            Instruction::HostScalar(operand) => self.host_scalar(e, *operand, *elem),
            Instruction::Load { buffer, address } => self.load(e, *buffer, address, *elem),
            Instruction::Pointwise { op, inputs } => {
                let mut inputs: Vec<_> = inputs
                    .iter()
                    .map(|input| self.value(e, body, *input, known))
                    .collect();
                if DIVISIONS.contains(&name_of(*op).as_str()) {
                    inputs[1] = e.safe_divisor(inputs[0], inputs[1], Width::Scalar);
                }
                e.copy(*op, &inputs, e.elem_type(*elem, Width::Scalar))
            }
        };
        known.insert(id, value);
        value
    }

    fn host_scalar(&self, e: &Emitter<'c>, operand: usize, elem: Elem) -> Val<'c> {
        let Some(row) = self.row else {
            return e.bits(0, elem, Width::Scalar);
        };
        let [_, index, _] = self.frame.operands[operand];
        let address = e.offset(index, e.times(row.in_bucket, 4));
        e.load_elem(address, elem, Width::Scalar, None)
    }

    fn load(&mut self, e: &Emitter<'c>, buffer: NodeId, address: &Linear, elem: Elem) -> Val<'c> {
        if let Some((tile, sums)) = self.gates
            && let Some((chain, gate)) = tile.gate(buffer, address)
        {
            return sums[chain][gate];
        }
        let place = self.frame.place_of(buffer);
        let base = self.address(e, place);
        let e = memory(e, base.shared);
        let at = element_address(&e, base.at, address, elem_bytes(elem), self.index);
        e.load_elem(at, elem, Width::Scalar, None)
    }

    pub fn store(&mut self, e: &Emitter<'c>, store: &Store, value: Val<'c>, elem: Elem) {
        let base = self.address(e, store.place);
        let e = memory(e, base.shared);
        let at = element_address(&e, base.at, &store.address, elem_bytes(elem), self.index);
        e.store_elem(value, at, elem, Width::Scalar, None);
    }
}
