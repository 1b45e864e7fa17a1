//! What of an instance decides which calls it makes: its structure.
//!
//! Where no tensor decides, the compiler says which numbers of an instance only choose rows of parameters
//! ([`cohort_abi::manifest::Structure`]). Instances that are equal but for these and for the elements of their tensors
//! have one *structure* and make the same calls. [`ValueForm`] is the form of the program's arguments, or of its result, in
//! which both are told apart; `key` reads structures, `image` copies values.

mod image;
mod key;

use cohort_abi::manifest::{Elem, Manifest, Source, Structure, Type};

use crate::program::slot::slot_count;

pub use image::Image;
pub use key::{Reading, Structured};

/// What a slot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Bits that are compared.
    Word,
    /// A number that chooses rows, and does no more.
    Row,
    /// The handle of a row of the row pool, or of the first of several.
    Tensor(usize),
    /// The address of a [`Block`].
    Block(usize),
    /// The address of a text.
    Text,
}

/// What is at an address: a number, and then slots.
#[derive(Debug, Default)]
enum Block {
    /// Not known yet.
    #[default]
    Empty,
    /// The number is a tag; the fields' slots of each constructor.
    Adt(Vec<Vec<Part>>),
    /// The number is a length; the slots of an element.
    Array(Vec<Part>),
}

/// The form of values that lie behind each other.
#[derive(Debug)]
pub struct ValueForm {
    parts: Vec<Part>,
    /// Those of data types come first, by number.
    blocks: Vec<Block>,
    /// See [`ValueForm::fewest_rows`].
    fewest_rows: u64,
}

/// What is told of a value's slots in turn. `place` is where the slot is if all that belongs to the value lies
/// behind its own slots, in the order in which it is met.
trait Visit {
    fn word(&mut self, place: usize, bits: u64);
    fn row(&mut self, place: usize, number: u64);
    fn tensor(&mut self, place: usize, pool: usize, handle: u64);
    fn text(&mut self, place: usize, address: u64);
    /// The slot is the address of a block, which begins at `block` with this number.
    fn block(&mut self, place: usize, block: usize, number: u64);
}

impl ValueForm {
    /// Of the arguments of an instance; `None` where its calls depend on more than its structure.
    pub fn of_arguments(manifest: &Manifest) -> Option<ValueForm> {
        let structure = manifest.structure.as_ref()?;
        let chooses = |number| structure.arguments.contains(&number);
        let mut plan = ValueForm::new(manifest, structure);
        for (number, argument) in manifest.arguments.iter().enumerate() {
            let parts = plan.parts_of(&argument.ty, chooses(number));
            plan.parts.extend(parts);
        }
        Some(plan)
    }

    /// Of the result; `None` where that has texts, which may be anywhere.
    pub fn of_result(manifest: &Manifest) -> Option<ValueForm> {
        let mut plan = ValueForm::new(manifest, &Structure::default());
        plan.parts = plan.parts_of(&manifest.result, false);
        (!plan.has_text()).then_some(plan)
    }

    /// Whether there are texts in the values or in what they may have.
    fn has_text(&self) -> bool {
        let mut seen = vec![false; self.blocks.len()];
        let mut open = vec![&self.parts];
        while let Some(parts) = open.pop() {
            for part in parts {
                match *part {
                    Part::Text => return true,
                    Part::Block(block) if !std::mem::replace(&mut seen[block], true) => {
                        match &self.blocks[block] {
                            Block::Adt(constructors) => open.extend(constructors),
                            Block::Array(element) => open.push(element),
                            Block::Empty => {}
                        }
                    }
                    _ => {}
                }
            }
        }
        false
    }

    fn new(manifest: &Manifest, structure: &Structure) -> ValueForm {
        let mut plan = ValueForm {
            parts: Vec::new(),
            blocks: Vec::new(),
            fewest_rows: fewest_rows(manifest),
        };
        plan.blocks.resize_with(manifest.adts.len(), Block::default);
        for (number, adt) in manifest.adts.iter().enumerate() {
            let constructors = adt
                .constructors
                .iter()
                .enumerate()
                .map(|(tag, constructor)| {
                    let fields = constructor.fields.iter().enumerate();
                    fields
                        .flat_map(|(field, ty)| {
                            plan.parts_of(ty, structure.fields.contains(&[number, tag, field]))
                        })
                        .collect()
                });
            plan.blocks[number] = Block::Adt(constructors.collect());
        }
        plan
    }

    /// The slots of a type, whose numbers may only choose rows.
    fn parts_of(&mut self, ty: &Type, chooses: bool) -> Vec<Part> {
        match ty {
            Type::Scalar(Elem::I32) if chooses => vec![Part::Row],
            Type::Scalar(_) => vec![Part::Word],
            Type::Str => vec![Part::Text],
            Type::Tensor { pool } => vec![Part::Tensor(*pool)],
            Type::Ragged { pool, .. } => {
                let mut parts = vec![Part::Word; slot_count(ty)];
                parts[0] = Part::Tensor(*pool);
                parts
            }
            Type::Tuple(types) => {
                let types = types.iter();
                types.flat_map(|ty| self.parts_of(ty, false)).collect()
            }
            Type::Array(element) => {
                let element = self.parts_of(element, chooses);
                vec![self.array(element)]
            }
            Type::Stacked { pool } => vec![self.array(vec![Part::Tensor(*pool)])],
            Type::Adt(adt) => vec![Part::Block(*adt)],
        }
    }

    fn array(&mut self, element: Vec<Part>) -> Part {
        self.blocks.push(Block::Array(element));
        Part::Block(self.blocks.len() - 1)
    }

    /// Slots of the values themselves.
    pub fn slots(&self) -> usize {
        self.parts.len()
    }

    /// Numbers below this choose a row of any parameter that has rows.
    pub fn fewest_rows(&self) -> u64 {
        self.fewest_rows
    }

    /// Tells of all slots of values, those of blocks after the slot with their address; whether there are no
    /// more than `most`.
    ///
    /// # Safety
    ///
    /// The slots are those of values of the plan's types.
    unsafe fn walk(&self, slots: *const u64, most: usize, visit: &mut impl Visit) -> bool {
        let mut end = self.parts.len();
        let mut open = vec![Run::new(&self.parts, 1, slots, 0)];
        while let Some(run) = open.last_mut() {
            let Some(part) = run.parts.get(run.at) else {
                run.left -= 1;
                run.at = 0;
                if run.left == 0 {
                    open.pop();
                }
                continue;
            };
            // SAFETY: the values are as the plan says.
            let value = unsafe { *run.slot };
            let place = run.place;
            run.at += 1;
            run.place += 1;
            // SAFETY: at most one behind the last slot.
            run.slot = unsafe { run.slot.add(1) };
            match *part {
                Part::Word => visit.word(place, value),
                Part::Row => visit.row(place, value),
                Part::Tensor(pool) => visit.tensor(place, pool, value),
                Part::Text => visit.text(place, value),
                Part::Block(block) => {
                    let first = value as *const u64;
                    // SAFETY: the slot is the address of a block.
                    let number = unsafe { *first };
                    let (parts, count) = match &self.blocks[block] {
                        Block::Adt(constructors) => match constructors.get(number as usize) {
                            Some(fields) => (fields, 1),
                            None => return false,
                        },
                        Block::Array(element) => (element, number),
                        Block::Empty => return false,
                    };
                    visit.block(place, end, number);
                    let slots = (parts.len() as u64).checked_mul(count);
                    let slots = slots.and_then(|slots| usize::try_from(slots).ok());
                    let begin = end + 1;
                    match slots.and_then(|slots| slots.checked_add(begin)) {
                        Some(new) if new <= most => end = new,
                        _ => return false,
                    }
                    if end > begin {
                        // SAFETY: a block is its number and then slots.
                        let first = unsafe { first.add(1) };
                        open.push(Run::new(parts, count, first, begin));
                    }
                }
            }
        }
        true
    }
}

/// A sequence of parts, repeated.
struct Run<'p> {
    parts: &'p [Part],
    left: u64,
    at: usize,
    slot: *const u64,
    place: usize,
}

impl Run<'_> {
    fn new(parts: &[Part], left: u64, slot: *const u64, place: usize) -> Run<'_> {
        Run {
            parts,
            left,
            at: 0,
            slot,
            place,
        }
    }
}

fn fewest_rows(manifest: &Manifest) -> u64 {
    let tables = manifest.sources.iter().filter_map(|source| match source {
        Source::Table { param, .. } => manifest.weight(*param)?.shape.first().copied(),
        _ => None,
    });
    // They are numbers of 32 bits with a sign.
    tables.fold(1 << 31, u64::min)
}
