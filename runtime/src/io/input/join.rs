//! Instances that were built apart, in one chunk: their handles are counted anew.

use cohort_abi::Handle;
use cohort_abi::manifest::{Manifest, Type};

use super::{Arguments, Inputs, Instance};
use crate::program::numbering::Numbering;
use crate::program::slot::slot_count;
use crate::program::structure::Structured;

/// Joins inputs of a program.
pub struct Joiner {
    numbering: Numbering,
    /// By data type: whether its values have tensors.
    has_rows: Vec<bool>,
}

/// Values that are still to be looked at.
enum Rest<'m> {
    /// Values of these types, one behind another.
    Values(&'m [Type], *mut u64),
    /// This number of values of the type.
    Elements(&'m Type, u64, *mut u64),
    /// This number of handles.
    Handles(usize, u64, *mut u64),
}

impl Joiner {
    /// Joins inputs of this program.
    pub fn new(manifest: &Manifest) -> Joiner {
        let mut has_rows = vec![false; manifest.adts.len()];
        loop {
            let next: Vec<bool> = manifest
                .adts
                .iter()
                .map(|adt| {
                    let mut fields = adt.constructors.iter().flat_map(|one| &one.fields);
                    fields.any(|ty| is_with_rows(ty, &has_rows))
                })
                .collect();
            if next == has_rows {
                break;
            }
            has_rows = next;
        }
        Joiner {
            numbering: Numbering::of(manifest),
            has_rows,
        }
    }

    /// Whether the rows of both can be counted together.
    pub fn fit(&self, one: &Inputs, other: &Inputs) -> bool {
        let mut blocks = one.rows.row_pools.iter().zip(&other.rows.row_pools);
        blocks.all(|(one, other)| one.rows.saturating_add(other.rows) <= u64::from(u32::MAX))
    }

    /// Moves all instances of `from` behind those of `to`; they fit.
    pub fn join(&self, manifest: &Manifest, to: &mut Inputs, mut from: Inputs) {
        for instance in 0..from.len() {
            if let Ok(Arguments {
                first_slot,
                structure,
                ..
            }) = from.instances[instance].outcome
            {
                if let Some(structure) = structure {
                    let origins = &mut from.data[structure.data..];
                    for (pool, origin) in origins[..self.numbering.row_pools].iter_mut().enumerate()
                    {
                        *origin = self.moved(*origin, pool, to);
                    }
                }
                let mut slot = from.slots[first_slot..].as_mut_ptr();
                for argument in &manifest.arguments {
                    if is_with_rows(&argument.ty, &self.has_rows) {
                        // SAFETY: a builder of the program made the slots and all that they point to,
                        // which belong to `from`.
                        unsafe { self.count_anew(manifest, &argument.ty, slot, to) };
                    }
                    // SAFETY: the slots of all arguments lie behind each other.
                    slot = unsafe { slot.add(slot_count(&argument.ty)) };
                }
            }
        }
        let first_slot = to.slots.len();
        let first_id = to.ids.len();
        let first_datum = to.data.len();
        to.slots.append(&mut from.slots);
        to.data.append(&mut from.data);
        to.ids.push_str(&from.ids);
        to.bytes += from.bytes;
        to.instances
            .extend(from.instances.into_iter().map(|instance| Instance {
                id_end: first_id + instance.id_end,
                outcome: instance.outcome.map(|arguments| Arguments {
                    first_slot: first_slot + arguments.first_slot,
                    structure: arguments.structure.map(|structure| Structured {
                        data: first_datum + structure.data,
                        ..structure
                    }),
                    ..arguments
                }),
            }));
        for (to, from) in to.rows.row_pools.iter_mut().zip(&from.rows.row_pools) {
            to.append(from);
        }
        to.memory.absorb(from.memory);
    }

    /// Replaces the handles of a value by those that its rows have behind the rows of `to`.
    ///
    /// # Safety
    ///
    /// The slots are of a value of the type that a builder made; nothing else refers to them.
    unsafe fn count_anew(&self, manifest: &Manifest, ty: &Type, slot: *mut u64, to: &Inputs) {
        let mut rest = vec![Rest::Elements(ty, 1, slot)];
        while let Some(next) = rest.pop() {
            let (ty, slot) = match next {
                Rest::Values([], _) | Rest::Elements(_, 0, _) | Rest::Handles(_, 0, _) => continue,
                Rest::Values([ty, others @ ..], slot) => {
                    // SAFETY: the values lie behind each other.
                    rest.push(Rest::Values(others, unsafe { slot.add(slot_count(ty)) }));
                    (ty, slot)
                }
                Rest::Elements(ty, count, slot) => {
                    // SAFETY: as above.
                    let others = unsafe { slot.add(slot_count(ty)) };
                    rest.push(Rest::Elements(ty, count - 1, others));
                    (ty, slot)
                }
                Rest::Handles(pool, count, slot) => {
                    // SAFETY: `slot` points at `count` handles, of which at least one is left.
                    unsafe {
                        *slot = self.moved(*slot, pool, to);
                        rest.push(Rest::Handles(pool, count - 1, slot.add(1)));
                    }
                    continue;
                }
            };
            match ty {
                Type::Tensor { pool } | Type::Ragged { pool, .. } => {
                    // SAFETY: the value's first slot is its handle.
                    unsafe { *slot = self.moved(*slot, *pool, to) };
                }
                Type::Tuple(types) => rest.push(Rest::Values(types, slot)),
                _ if !is_with_rows(ty, &self.has_rows) => {}
                Type::Array(element) => {
                    // SAFETY: the slot points to the length, which is followed by the elements.
                    let (count, first) = unsafe { list(*slot) };
                    rest.push(Rest::Elements(element, count, first));
                }
                Type::Stacked { pool } => {
                    // SAFETY: as above; the elements are handles.
                    let (count, first) = unsafe { list(*slot) };
                    rest.push(Rest::Handles(*pool, count, first));
                }
                Type::Adt(adt) => {
                    // SAFETY: the slot points to the tag, which is followed by the fields.
                    let (tag, first) = unsafe { list(*slot) };
                    let fields = &manifest.adts[*adt].constructors[tag as usize].fields;
                    rest.push(Rest::Values(fields, first));
                }
                Type::Scalar(_) | Type::Str => {}
            }
        }
    }

    fn moved(&self, handle: u64, pool: usize, to: &Inputs) -> u64 {
        let position = Handle(handle).position();
        let before = to.rows.row_pools[pool].rows as u32;
        let bucket = self.numbering.input(to.chunk, pool) as u32;
        Handle::new(bucket, 0, position + before).0
    }
}

/// What a node or a list begins with, and where its parts are.
///
/// # Safety
///
/// The slot points to one.
unsafe fn list(slot: u64) -> (u64, *mut u64) {
    let first = slot as *mut u64;
    // SAFETY: the caller's promise.
    unsafe { (*first, first.add(1)) }
}

fn is_with_rows(ty: &Type, adts: &[bool]) -> bool {
    match ty {
        Type::Scalar(_) | Type::Str => false,
        Type::Tensor { .. } | Type::Ragged { .. } | Type::Stacked { .. } => true,
        Type::Tuple(types) => types.iter().any(|ty| is_with_rows(ty, adts)),
        Type::Array(element) => is_with_rows(element, adts),
        Type::Adt(adt) => adts[*adt],
    }
}
