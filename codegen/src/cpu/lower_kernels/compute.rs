//! Writes the values of a [`Body`] for one index of its domain, and loop nests of them.

use std::collections::HashMap;

use cohort_abi::manifest::Elem;
use cohort_dialects::builder::Val;
use cohort_dialects::keys;
use cohort_passes::kernel::affine::Affine;
use cohort_passes::kernel::rows::body::{Instruction, Store, ValueId};
use cohort_passes::kernel::rows::layout::{LANES, Place, elem_bytes};
use cohort_passes::pass::Outcome;
use cohort_passes::support::ir::{integer_attribute, integers};
use melior::ir::{OperationRef, operation::OperationLike};

use super::frame::{Address, Block, Frame, LaneRows, Rows};
use crate::emit::{Emitter, Index, Width, divides, element_address};
use crate::read_rows::body::{Body, block_of};

/// How an index of the domain becomes lanes.
#[derive(Clone, Copy)]
pub struct Lanes<'c> {
    pub width: Width,
    /// The dim that the lanes run along; none when all lanes compute the same.
    pub dim: Option<usize>,
    /// Fewer lanes than a vector has.
    pub mask: Option<Val<'c>>,
}

/// Where the values of a body are computed: one row or sixteen, with the addresses of what they touch.
pub struct Computer<'a, 'f, 'c> {
    frame: &'a Frame<'f, 'c>,
    body: &'a Body<'c>,
    rows: Rows<'c>,
    addresses: HashMap<Place, Address<'c>>,
    /// The dims that each value depends on.
    dims: Vec<Vec<usize>>,
}

/// Values computed already, by value and by the index of the dims they depend on.
pub type Known<'c> = HashMap<(ValueId, Vec<(usize, i64)>), Val<'c>>;

impl<'a, 'f, 'c> Computer<'a, 'f, 'c> {
    pub fn new(
        e: &Emitter<'c>,
        frame: &'a Frame<'f, 'c>,
        body: &'a Body<'c>,
        rows: Rows<'c>,
    ) -> Self {
        let mut addresses = HashMap::new();
        let mut dims: Vec<Vec<usize>> = Vec::new();
        for (instruction, elem) in &body.values {
            dims.push(match instruction {
                Instruction::Load { address, .. } => dims_of(address),
                Instruction::HostScalar(_) | Instruction::Splat(_) => vec![],
                Instruction::Pointwise { inputs, .. } => {
                    let mut all: Vec<usize> = inputs
                        .iter()
                        .flat_map(|input| dims[*input].clone())
                        .collect();
                    all.sort_unstable();
                    all.dedup();
                    all
                }
            });
            if let Instruction::Load { buffer, .. } = instruction {
                let place = *buffer;
                addresses
                    .entry(place)
                    .or_insert_with(|| frame.rows_of(e, place, rows, *elem));
            }
        }
        for store in &body.stores {
            addresses
                .entry(store.place)
                .or_insert_with(|| frame.rows_of(e, store.place, rows, body.values[store.value].1));
        }
        Computer {
            frame,
            body,
            rows,
            addresses,
            dims,
        }
    }

    /// Makes sure that the address of a place is known.
    pub fn touch(&mut self, e: &Emitter<'c>, place: Place, elem: Elem) {
        let (frame, rows) = (self.frame, self.rows);
        self.addresses
            .entry(place)
            .or_insert_with(|| frame.rows_of(e, place, rows, elem));
    }

    pub fn value(
        &self,
        e: &Emitter<'c>,
        id: ValueId,
        index: &[Index<'c>],
        lanes: Lanes<'c>,
        known: &mut Known<'c>,
    ) -> Val<'c> {
        let at = self.dims[id]
            .iter()
            .map(|dim| index[*dim].identity())
            .collect();
        if let Some(value) = known.get(&(id, at)) {
            return *value;
        }
        let (instruction, elem) = &self.body.values[id];
        let value = match instruction {
            Instruction::Splat(bits) => e.bits(*bits, *elem, lanes.width),
            Instruction::HostScalar(operand) => {
                let arguments = &self.frame.arguments;
                match self.rows {
                    Rows::One(row) => {
                        let scalar = arguments.host_scalar(e, *operand, *elem, row);
                        e.splat(scalar, *elem, lanes.width)
                    }
                    Rows::Across { first, mask } => {
                        arguments.host_scalars(e, *operand, *elem, first, mask)
                    }
                }
            }
            Instruction::Load { buffer, address } => {
                self.load(e, *buffer, address, *elem, index, lanes)
            }
            Instruction::Pointwise { op, inputs } => {
                let mut inputs: Vec<_> = inputs
                    .iter()
                    .map(|input| self.value(e, *input, index, lanes, known))
                    .collect();
                if divides(*op) {
                    inputs[1] = e.safe_divisor(inputs[0], inputs[1], lanes.width);
                }
                e.copy(*op, &inputs, e.elem_type(*elem, lanes.width))
            }
        };
        let at = self.dims[id]
            .iter()
            .map(|dim| index[*dim].identity())
            .collect();
        known.insert((id, at), value);
        value
    }

    pub fn load(
        &self,
        e: &Emitter<'c>,
        place: Place,
        address: &Affine,
        elem: Elem,
        index: &[Index<'c>],
        lanes: Lanes<'c>,
    ) -> Val<'c> {
        let bytes = elem_bytes(elem);
        let Address { base, lanes: rows } = self.addresses[&place];
        let at = element_address(e, base, address, bytes, index);
        if let Some(value) = self.load_rows(e, at, rows, elem) {
            return value;
        }
        let along = lanes.dim.map_or(0, |dim| address.coefficient(dim));
        match (lanes.width, along) {
            (Width::Scalar, _) => e.load_elem(at, elem, Width::Scalar, None),
            (width, 0) => {
                let scalar = e.load_elem(at, elem, Width::Scalar, None);
                e.splat(scalar, elem, width)
            }
            (width, 1) => {
                // Scratch and constants may be read a vector past their end, rows may not.
                let padded = matches!(place, Place::Slot(_) | Place::Constant(_));
                e.load_elem(at, elem, width, lanes.mask.filter(|_| !padded))
            }
            (_, stride) => e.gather(at, stride * bytes, elem, lanes.mask),
        }
    }

    /// Loads an element of the row of each lane, where lanes have rows of their own.
    fn load_rows(
        &self,
        e: &Emitter<'c>,
        at: Val<'c>,
        rows: LaneRows<'c>,
        elem: Elem,
    ) -> Option<Val<'c>> {
        let Rows::Across { mask, .. } = self.rows else {
            return None;
        };
        let neighbours = |at| e.load_elem(at, elem, Width::Vector, Some(mask));
        match rows {
            LaneRows::Same => None,
            LaneRows::Strided(bytes) if bytes == elem_bytes(elem) => Some(neighbours(at)),
            LaneRows::Strided(bytes) => Some(e.gather(at, bytes, elem, Some(mask))),
            LaneRows::Listed {
                offsets,
                neighbours: None,
            } => Some(e.gather_at(at, offsets, elem, Some(mask))),
            LaneRows::Listed {
                offsets,
                neighbours: Some((are_neighbours, first)),
            } => Some(e.choose(
                are_neighbours,
                |e| e.load_elem(e.offset(at, first), elem, Width::Vector, None),
                |e| e.gather_at(at, offsets, elem, Some(mask)),
            )),
        }
    }

    /// Writes a value to the element of a place that `address` names.
    pub fn store(
        &self,
        e: &Emitter<'c>,
        store: &Store,
        value: Val<'c>,
        elem: Elem,
        index: &[Index<'c>],
        lanes: Lanes<'c>,
    ) {
        let bytes = elem_bytes(elem);
        let Address { base, lanes: rows } = self.addresses[&store.place];
        let at = element_address(e, base, &store.address, bytes, index);
        if let (Rows::Across { mask, .. }, LaneRows::Strided(stride)) = (self.rows, rows) {
            return match stride == bytes {
                true => e.store_elem(value, at, elem, Width::Vector, Some(mask)),
                false => e.scatter_at(value, at, e.lane_offsets(stride), elem, mask),
            };
        }
        let along = lanes.dim.map_or(0, |dim| store.address.coefficient(dim));
        match (lanes.width, along) {
            (Width::Scalar, _) => e.store_elem(value, at, elem, Width::Scalar, None),
            (_, 0) => {
                e.store_elem(e.first_lane(value, elem), at, elem, Width::Scalar, None);
            }
            (width, _) => e.store_elem(value, at, elem, width, lanes.mask),
        }
    }
}

fn dims_of(address: &Affine) -> Vec<usize> {
    address.terms.iter().map(|(dim, _)| *dim).collect()
}

/// Runs `body` for the vectors that cover `0..size`: whole ones, of which the last may overlap the
/// one before, or a single one with a mask where there are fewer elements than lanes.
fn for_vectors<'c>(
    e: &Emitter<'c>,
    size: i64,
    width: Width,
    body: impl FnOnce(&Emitter<'c>, Index<'c>, Option<Val<'c>>),
) {
    let lanes = width.lanes();
    if size < LANES {
        let mask = e.mask(size);
        return body(e, Index::constant(0), Some(mask));
    }
    e.for_static(size, lanes, &[], |e, index, _| {
        let index = match index.value.filter(|_| size % lanes != 0) {
            Some(value) => Index {
                value: Some(e.min(value, e.int(size - lanes))),
                constant: 0,
            },
            None => index,
        };
        body(e, index, None);
        vec![]
    });
}

/// A loop nest for every row of the block.
pub fn nest<'c>(
    e: &Emitter<'c>,
    frame: &Frame<'_, 'c>,
    stage: OperationRef<'c, 'c>,
    block: Option<Block<'c>>,
) -> Outcome {
    let body = Body::read(
        frame.arguments.kernel,
        block_of(stage, 0)?,
        integers(stage, keys::OVER),
        None,
    )?;
    let vector = integer_attribute(stage, keys::LANES).map(|dim| dim as usize);
    let width = match integer_attribute(stage, keys::BY) {
        Some(elements) if elements == Width::Pair.lanes() => Width::Pair,
        _ => Width::Vector,
    };
    let across_rows = stage.has_attribute(&keys::ACROSS_ROWS);
    frame.for_rows_or_lanes(e, block, across_rows, |e, rows| {
        let computer = Computer::new(e, frame, &body, rows);
        let sizes: Vec<i64> = (0..body.domain.len())
            .map(|dim| {
                if Some(dim) == vector {
                    1
                } else {
                    body.domain[dim]
                }
            })
            .collect();
        e.for_nest(&sizes, &[], &mut |e, index, _| {
            let write = |e: &Emitter<'c>, index: &[Index<'c>], lanes: Lanes<'c>| {
                let mut known = Known::new();
                for store in &body.stores {
                    let elem = body.values[store.value].1;
                    let value = computer.value(e, store.value, index, lanes, &mut known);
                    computer.store(e, store, value, elem, index, lanes);
                }
            };
            match vector {
                None => {
                    write(
                        e,
                        index,
                        Lanes {
                            width: Width::Vector,
                            dim: None,
                            mask: None,
                        },
                    );
                }
                Some(dim) => {
                    for_vectors(e, body.domain[dim], width, |e, at, mask| {
                        let mut index = index.to_vec();
                        index[dim] = at;
                        let dim = Some(dim);
                        write(e, &index, Lanes { width, dim, mask });
                    });
                }
            }
            vec![]
        });
    });
    Ok(())
}
