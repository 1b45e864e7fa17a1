//! A value of a data type from flat arrays: its nodes in postorder, each behind its parts, and an array for
//! each field that is not a value of the type itself.

use std::mem::MaybeUninit;

use cohort_abi::manifest::{Adt, Constructor, Elem, Manifest, Type};

use super::Inputs;
use super::builder::Builder;
use super::message::Problem;
use super::walk::TAGS;

/// The nodes of one instance's value.
pub struct Postorder<'a> {
    /// The tag of each node's constructor.
    pub tags: &'a [u8],
    /// By tag and field, what the nodes of the constructor have there, in order; as elements lie in rows.
    /// Nothing for fields that are values of the type itself.
    pub fields: &'a [Vec<Option<Vec<u8>>>],
    /// By tag: how many nodes in `fields` are before the instance's first.
    pub first: &'a [usize],
}

/// By tag and field: the elements' type and the shape of what an array has a row of for each node; nothing
/// for fields that are values of the type itself.
pub type FlatFields = Vec<Vec<Option<(Elem, Vec<u64>)>>>;

/// How nodes of a constructor are made of flat arrays.
#[derive(Default)]
pub(super) struct Form {
    /// Fields that are values of the type itself.
    parts: usize,
    fields: Vec<Field>,
}

#[derive(Clone, Copy)]
enum Field {
    Part,
    Scalar(Elem),
    Row { pool: usize, bytes: usize },
}

impl Form {
    /// Of a node: its tag and its fields, or nothing where one node stands for all.
    fn slots(&self) -> usize {
        match self.fields.len() {
            0 => 0,
            fields => 1 + fields,
        }
    }

    /// Those of a data type by tag; nothing where it has no flat form.
    fn all(manifest: &Manifest, adt: usize) -> Option<Vec<Form>> {
        let constructors = &manifest.adts[adt].constructors;
        if constructors.len() > TAGS.len() {
            return None;
        }
        let form = |constructor: &Constructor| {
            let fields = constructor.fields.iter().map(|ty| match ty {
                Type::Adt(own) if *own == adt => Some(Field::Part),
                Type::Scalar(elem) => Some(Field::Scalar(*elem)),
                Type::Tensor { pool } => Some(Field::Row {
                    pool: *pool,
                    bytes: manifest.row_pools[*pool].row_bytes() as usize,
                }),
                _ => None,
            });
            let fields: Vec<Field> = fields.collect::<Option<_>>()?;
            let is_part = |field: &&Field| matches!(field, Field::Part);
            Some(Form {
                parts: fields.iter().filter(is_part).count(),
                fields,
            })
        };
        constructors.iter().map(form).collect()
    }
}

impl Builder<'_> {
    /// Reads an argument of the instance at hand, of a data type whose fields are values of the type itself,
    /// scalars, or tensors of known shape.
    pub fn postorder(
        &mut self,
        number: usize,
        nodes: &Postorder<'_>,
        inputs: &mut Inputs,
    ) -> Result<(), Problem> {
        let manifest = self.manifest;
        let argument = &manifest.arguments[number];
        self.begin_argument(number, || argument.name.clone())?;
        self.frames.clear();
        self.values.clear();
        let Type::Adt(adt) = argument.ty else {
            return Err(self.wrong("it is of no data type"));
        };
        if self.forms[adt].is_empty() {
            let forms = Form::all(manifest, adt);
            self.forms[adt] = forms.ok_or_else(|| self.wrong("its type has no flat form"))?;
        }
        let forms = std::mem::take(&mut self.forms[adt]);
        let built = self.nodes(&manifest.adts[adt], &forms, nodes, inputs);
        self.forms[adt] = forms;
        built?;
        match self.values.len() {
            1 => self.end_argument(inputs),
            count => return Err(self.wrong(&format!("its nodes make {count} values, not one"))),
        }
        Ok(())
    }

    /// Leaves the values that no other node is around.
    fn nodes(
        &mut self,
        adt: &Adt,
        forms: &[Form],
        nodes: &Postorder<'_>,
        inputs: &mut Inputs,
    ) -> Result<(), Problem> {
        if nodes.first.len() != forms.len() || nodes.fields.len() != forms.len() {
            return Err(self.wrong("its arrays are not those of its constructors"));
        }
        for (tag, form) in forms.iter().enumerate() {
            if nodes.fields[tag].len() != form.fields.len() {
                let name = &adt.constructors[tag].name;
                return Err(self.wrong(&format!("the arrays of {name} are not one a field")));
            }
        }
        let mut room = self.room(forms, nodes, inputs)?;
        // In variables of their own, which is faster.
        let mut values = std::mem::take(&mut self.values);
        let mut taken = std::mem::take(&mut self.taken);
        taken.clear();
        taken.extend_from_slice(nodes.first);
        for (place, tag) in nodes.tags.iter().enumerate() {
            let tag = usize::from(*tag);
            let form = &forms[tag];
            if form.fields.is_empty() {
                values.push(&raw const TAGS[tag] as u64);
                continue;
            }
            let name = || adt.constructors[tag].name.as_str();
            let Some(base) = values.len().checked_sub(form.parts) else {
                let name = name();
                let problem = format!("node {place} is a {name}, whose parts are not before it");
                return Err(self.wrong(&problem));
            };
            let (slots, rest) = room.split_at_mut(form.slots());
            room = rest;
            slots[0].write(tag as u64);
            if form.parts == form.fields.len() {
                for (slot, part) in slots[1..].iter_mut().zip(&values[base..]) {
                    slot.write(*part);
                }
                values.truncate(base);
                values.push(slots.as_ptr() as u64);
                continue;
            }
            let row = taken[tag];
            taken[tag] += 1;
            let mut part = base;
            let fields = form.fields.iter().zip(&nodes.fields[tag]);
            for (slot, (field, column)) in slots[1..].iter_mut().zip(fields) {
                let value = match (field, column) {
                    (Field::Part, None) => {
                        part += 1;
                        values[part - 1]
                    }
                    (Field::Scalar(elem), Some(column)) => {
                        let bits = scalar(*elem, column, row);
                        u64::from(bits.ok_or_else(|| self.too_few(name()))?)
                    }
                    (Field::Row { pool, bytes }, Some(column)) => {
                        let row = row_of(column, row, *bytes);
                        let row = row.ok_or_else(|| self.too_few(name()))?;
                        self.charge(*bytes as u64)?;
                        let block = &mut inputs.rows.row_pools[*pool];
                        let position = u32::try_from(block.rows).map_err(|_| Problem::Memory)?;
                        block.extend(row);
                        block.rows += 1;
                        self.input_handle(inputs, *pool, position).0
                    }
                    _ => return Err(self.wrong(&format!("an array of {} is misplaced", name()))),
                };
                slot.write(value);
            }
            values.truncate(base);
            values.push(slots.as_ptr() as u64);
        }
        (self.values, self.taken) = (values, taken);
        Ok(())
    }

    /// Memory for all nodes, which the instance is charged for.
    fn room<'r>(
        &mut self,
        forms: &[Form],
        nodes: &Postorder<'_>,
        inputs: &mut Inputs,
    ) -> Result<&'r mut [MaybeUninit<u64>], Problem> {
        let mut size = 0;
        for (place, tag) in nodes.tags.iter().enumerate() {
            let Some(form) = forms.get(usize::from(*tag)) else {
                let problem = format!("node {place} has the tag {tag}, which no constructor has");
                return Err(self.wrong(&problem));
            };
            size += form.slots();
        }
        self.charge(8 * size as u64)?;
        let memory = inputs.memory.alloc(size);
        if memory.is_null() {
            return Err(Problem::Memory);
        }
        // SAFETY: that many slots were allocated, nothing else refers to them, and they stay as long as the inputs
        // have the instance, longer than it is read.
        Ok(unsafe { std::slice::from_raw_parts_mut(memory.cast(), size) })
    }

    #[cold]
    fn wrong(&self, what: &str) -> Problem {
        let argument = &self.manifest.arguments[self.argument];
        Problem::Line(format!("argument {}: {what}", argument.name))
    }

    #[cold]
    fn too_few(&self, constructor: &str) -> Problem {
        self.wrong(&format!(
            "a field of {constructor} has fewer elements than there are nodes"
        ))
    }

    /// The fields that need an array; nothing where a type has no flat form.
    pub fn flat_fields(&self, adt: usize) -> Option<FlatFields> {
        let of = |field: &Field| match field {
            Field::Part => None,
            Field::Scalar(elem) => Some((*elem, Vec::new())),
            Field::Row { pool, .. } => {
                let pool = &self.manifest.row_pools[*pool];
                Some((pool.elem, pool.shape.clone()))
            }
        };
        let forms = Form::all(self.manifest, adt)?;
        let fields = forms
            .iter()
            .map(|form| form.fields.iter().map(of).collect());
        Some(fields.collect())
    }
}

/// The bits of element `row` of a column.
fn scalar(elem: Elem, column: &[u8], row: usize) -> Option<u32> {
    match elem {
        Elem::F32 | Elem::I32 => {
            let (words, _) = column.as_chunks();
            words.get(row).map(|word| u32::from_le_bytes(*word))
        }
        Elem::Bool => column.get(row).map(|byte| u32::from(*byte)),
    }
}

/// The bytes of row `row` of a column whose rows take `bytes` each.
fn row_of(column: &[u8], row: usize, bytes: usize) -> Option<&[u8]> {
    let begin = row.checked_mul(bytes)?;
    column.get(begin..begin.checked_add(bytes)?)
}
