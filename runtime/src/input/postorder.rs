//! A value of a data type from flat arrays: its nodes in postorder, each behind its parts, and an array for
//! each field that is not a value of the type itself.

use cohort_abi::manifest::{Elem, Type};

use super::Inputs;
use super::builder::Builder;
use super::message::Problem;
use super::walk::TAGS;

/// The nodes of one instance's value.
pub struct Postorder<'a> {
    pub tags: &'a [u8],
    /// By tag and field, what the nodes of the constructor have there, in order, from the instance's first
    /// on; as elements lie in rows. Nothing for fields that are values of the type itself.
    pub fields: &'a [Vec<Option<&'a [u8]>>],
}

/// By tag and field: the elements' type and the shape of what an array has a row of for each node; nothing
/// for fields that are values of the type itself.
pub type FlatFields = Vec<Vec<Option<(Elem, Vec<u64>)>>>;

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
        let wrong = |what: String| Problem::Line(format!("argument {}: {what}", argument.name));
        let Type::Adt(adt) = argument.ty else {
            return Err(wrong("it is of no data type".to_owned()));
        };
        let constructors = &manifest.adts[adt].constructors;
        let mut taken: Vec<usize> = vec![0; constructors.len()];
        let mut node = Vec::new();
        for (place, tag) in nodes.tags.iter().enumerate() {
            let tag = usize::from(*tag);
            let (Some(constructor), Some(columns)) = (constructors.get(tag), nodes.fields.get(tag))
            else {
                return Err(wrong(format!(
                    "node {place} has the tag {tag}, which no constructor has"
                )));
            };
            if constructor.fields.is_empty() {
                self.values.push(&raw const TAGS[tag] as u64);
                continue;
            }
            let is_own = |ty: &&Type| matches!(ty, Type::Adt(_));
            let parts = constructor.fields.iter().filter(is_own).count();
            let Some(base) = self.values.len().checked_sub(parts) else {
                let name = &constructor.name;
                return Err(wrong(format!(
                    "node {place} is a {name}, whose parts are not before it"
                )));
            };
            node.clear();
            node.push(tag as u64);
            let mut part = base;
            for (ty, column) in constructor.fields.iter().zip(columns) {
                node.push(match (ty, column) {
                    (Type::Adt(own), None) if *own == adt => {
                        part += 1;
                        self.values[part - 1]
                    }
                    (Type::Scalar(elem), Some(bytes)) => {
                        let size = elem.bytes();
                        let begin = size * taken[tag];
                        let element = bytes.get(begin..begin + size);
                        let element = element.ok_or_else(|| wrong(too_few(&constructor.name)))?;
                        u64::from(crate::output::bits(*elem, element))
                    }
                    (Type::Tensor { space }, Some(bytes)) => {
                        let size = manifest.spaces[*space].row_bytes() as usize;
                        let begin = size * taken[tag];
                        let row = bytes.get(begin..begin + size);
                        let row = row.ok_or_else(|| wrong(too_few(&constructor.name)))?;
                        self.charge(size as u64)?;
                        let block = &mut inputs.rows.spaces[*space];
                        let position = u32::try_from(block.rows).map_err(|_| Problem::Memory)?;
                        block.bytes.extend_from_slice(row);
                        block.rows += 1;
                        self.input_handle(inputs, *space, position).0
                    }
                    _ => return Err(wrong("its type has no flat form".to_owned())),
                });
            }
            taken[tag] += 1;
            self.values.truncate(base);
            let pointer = self.alloc(inputs, &node)?;
            self.values.push(pointer);
        }
        match self.values.len() {
            1 => self.end_argument(inputs),
            count => return Err(wrong(format!("its nodes make {count} values, not one"))),
        }
        Ok(())
    }

    /// The fields that need an array; nothing where a type has no flat form.
    pub fn flat_fields(&self, adt: usize) -> Option<FlatFields> {
        let manifest = self.manifest;
        let constructors = manifest.adts[adt].constructors.iter();
        if constructors.len() > TAGS.len() {
            return None;
        }
        constructors
            .map(|constructor| {
                let fields = constructor.fields.iter();
                fields
                    .map(|ty| match ty {
                        Type::Adt(own) if *own == adt => Some(None),
                        Type::Scalar(elem) => Some(Some((*elem, Vec::new()))),
                        Type::Tensor { space } => {
                            let space = &manifest.spaces[*space];
                            Some(Some((space.elem, space.shape.clone())))
                        }
                        _ => None,
                    })
                    .collect()
            })
            .collect()
    }
}

fn too_few(constructor: &str) -> String {
    format!("a field of {constructor} has fewer elements than there are nodes")
}
