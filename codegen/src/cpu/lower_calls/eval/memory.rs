//! Where values lie in memory, and how one or a vector of their elements is loaded.

use cohort_abi::manifest::Elem;
use cohort_dialects::builder::{Op, Val};
use cohort_passes::kernel::affine::{Affine, Var};
use cohort_passes::kernel::rows::layout::{LANES, elem_bytes};

use super::super::graph::{NodeId, Size};
use super::{Call, Lanes};
use crate::emit::{Emitter, Width};

/// Bytes between neighbours.
#[derive(Clone, Copy)]
pub enum Stride<'c> {
    Bytes(i64),
    Value(Val<'c>),
    /// Those of what this many last dims of a node hold, found from the call's lengths at each use.
    Within(NodeId, usize),
}

/// A length or a first row of a call.
#[derive(Clone, Copy)]
pub enum Held<'c> {
    /// It was read before the call's loops.
    Value(Val<'c>),
    /// It is read from this address at each use.
    At(Val<'c>),
}

impl<'c> Held<'c> {
    /// Reads it now, or leaves it where it is.
    pub fn new(e: &Emitter<'c>, address: Val<'c>, hoisted: bool) -> Held<'c> {
        match hoisted {
            true => Held::Value(e.load_u32(address)),
            false => Held::At(address),
        }
    }

    pub fn value(self, e: &Emitter<'c>) -> Val<'c> {
        match self {
            Held::Value(value) => value,
            Held::At(address) => e.load_u32(address),
        }
    }
}

/// Where a value begins.
#[derive(Clone, Copy)]
pub enum Base<'c> {
    Address(Val<'c>),
    /// At a row from an address on.
    Row(Val<'c>, Held<'c>, i64),
}

impl<'c> Base<'c> {
    pub fn of_row(e: &Emitter<'c>, address: Val<'c>, row: Held<'c>, bytes: i64) -> Base<'c> {
        match row {
            Held::Value(row) => Base::Address(e.offset(address, e.times(row, bytes))),
            Held::At(_) => Base::Row(address, row, bytes),
        }
    }

    pub fn address(self, e: &Emitter<'c>) -> Val<'c> {
        match self {
            Base::Address(address) => address,
            Base::Row(address, row, bytes) => e.offset(address, e.times(row.value(e), bytes)),
        }
    }
}

/// Where a node's elements lie.
#[derive(Clone)]
pub struct Memory<'c> {
    pub base: Base<'c>,
    /// The index of each dim that lies at the base; 0 where there is none.
    pub origin: Vec<Option<Val<'c>>>,
    pub strides: Vec<Stride<'c>>,
    /// A vector may be read from its last element on.
    pub padded: bool,
}

impl<'c> Call<'_, 'c> {
    /// Dense row-major memory.
    pub fn dense(&self, e: &Emitter<'c>, base: Base<'c>, id: NodeId, padded: bool) -> Memory<'c> {
        let node = &self.graph.nodes[id];
        let mut strides = vec![];
        let mut stride = Stride::Bytes(elem_bytes(node.elem));
        for (inner, size) in node.shape.iter().rev().enumerate() {
            strides.push(stride);
            stride = match (stride, size) {
                (Stride::Bytes(bytes), Size::Known(size)) => Stride::Bytes(bytes * size),
                (Stride::Bytes(bytes), Size::Length(length)) => match self.lengths[*length] {
                    Held::Value(length) => Stride::Value(e.times(length, bytes)),
                    Held::At(_) => Stride::Within(id, inner + 1),
                },
                (Stride::Value(value), size) => Stride::Value(e.mul(value, self.size(e, *size))),
                (Stride::Within(id, inner), _) => Stride::Within(id, inner + 1),
            };
        }
        strides.reverse();
        Memory {
            base,
            origin: vec![None; strides.len()],
            strides,
            padded,
        }
    }

    /// The bytes of a stride.
    pub fn stride(&self, e: &Emitter<'c>, stride: Stride<'c>) -> Val<'c> {
        match stride {
            Stride::Bytes(bytes) => e.int(bytes),
            Stride::Value(bytes) => bytes,
            Stride::Within(node, inner) => {
                let node = &self.graph.nodes[node];
                let within = &node.shape[node.shape.len() - inner..];
                let bytes = e.int(elem_bytes(node.elem));
                let sizes = within.iter().map(|size| self.size(e, *size));
                sizes.fold(bytes, |bytes, size| e.mul(bytes, size))
            }
        }
    }

    pub fn address(&self, e: &Emitter<'c>, memory: &Memory<'c>, at: &[Affine]) -> Val<'c> {
        let mut address = memory.base.address(e);
        for ((index, origin), stride) in at.iter().zip(&memory.origin).zip(&memory.strides) {
            let value = match (self.variables.index(e, index), origin) {
                (None, None) => continue,
                (Some(value), None) => value,
                (None, Some(origin)) => e.sub(e.int(0), *origin),
                (Some(value), Some(origin)) => e.sub(value, *origin),
            };
            let bytes = match stride {
                Stride::Bytes(bytes) => e.times(value, *bytes),
                stride => e.mul(value, self.stride(e, *stride)),
            };
            address = e.offset(address, bytes);
        }
        address
    }

    /// Bytes between lanes; `None` when they differ from call to call.
    fn lane_stride(&self, memory: &Memory<'c>, at: &[Affine], lane: Var) -> Option<i64> {
        let mut sum = 0;
        for (index, stride) in at.iter().zip(&memory.strides) {
            match (index.coefficient(lane), stride) {
                (0, _) => {}
                (coefficient, Stride::Bytes(bytes)) => sum += coefficient * bytes,
                (_, Stride::Value(_) | Stride::Within(..)) => return None,
            }
        }
        Some(sum)
    }

    /// Where a value lies, and at which index, if it is numbers in memory that are side by side along a variable.
    pub fn in_memory(
        &self,
        node: NodeId,
        at: &[Affine],
        along: Var,
    ) -> Option<(Memory<'c>, Vec<Affine>)> {
        let (node, at) = self.graph.resolve(node, at);
        let memory = self.memory.get(&node)?;
        let elem = self.graph.nodes[node].elem;
        let stride = self.lane_stride(memory, &at, along);
        let fits = elem == Elem::F32 && stride == Some(elem_bytes(elem));
        fits.then(|| (memory.clone(), at))
    }

    /// Bytes between what is read at neighbours of a variable.
    pub fn stride_along(
        &self,
        e: &Emitter<'c>,
        memory: &Memory<'c>,
        at: &[Affine],
        var: Var,
    ) -> Val<'c> {
        let dims = at.iter().zip(&memory.strides);
        dims.fold(e.int(0), |sum, (index, stride)| {
            match index.coefficient(var) {
                0 => sum,
                coefficient => e.add(sum, e.times(self.stride(e, *stride), coefficient)),
            }
        })
    }

    pub(super) fn load(
        &self,
        e: &Emitter<'c>,
        memory: &Memory<'c>,
        elem: Elem,
        at: &[Affine],
        lanes: Lanes<'c>,
    ) -> Val<'c> {
        let address = self.address(e, memory, at);
        let Some(lane) = lanes.var else {
            return e.load_elem(address, elem, Width::Scalar, None);
        };
        match self.lane_stride(memory, at, lane) {
            Some(bytes) if bytes == elem_bytes(elem) => {
                let mask = lanes.mask.filter(|_| !memory.padded);
                e.load_elem(address, elem, Width::Vector, mask)
            }
            Some(bytes) => e.gather(address, bytes, elem, lanes.mask),
            None => {
                let ty = e.b.vector_type(LANES as u64, e.i64);
                let mut sum = e.lane_offsets(0);
                for (index, stride) in at.iter().zip(&memory.strides) {
                    let coefficient = index.coefficient(lane);
                    if coefficient == 0 {
                        continue;
                    }
                    let lanes = e.lane_offsets(coefficient);
                    let bytes = self.stride(e, *stride);
                    let bytes = e.b.value(Op::VectorBroadcast, &[bytes], ty);
                    let product = e.b.muli(lanes, bytes);
                    sum = e.b.addi(sum, product);
                }
                e.gather_at(address, sum, elem, lanes.mask)
            }
        }
    }
}
