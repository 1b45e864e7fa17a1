//! Numbers and tensors.

use cohort_abi::Handle;
use cohort_abi::manifest::Elem;

use super::Inputs;
use super::builder::Builder;
use super::message::{END_OF_LIST, Problem, expected_scalar, too_many};
use super::source::Source;
use crate::memory::inputs::InputBlock;
use crate::program::weights::{describe, dtype_name};

impl Builder<'_> {
    /// The bits of a number or a truth value.
    #[inline]
    pub(super) fn scalar(&self, source: &mut impl Source, elem: Elem) -> Result<u32, Problem> {
        match source.scalar(elem)? {
            Some(bits) => Ok(bits),
            None => Err(Problem::Value {
                expected: expected_scalar(elem).to_owned(),
                found: source.found(),
            }),
        }
    }

    /// Appends a row to the inputs' rows.
    pub(super) fn tensor(
        &mut self,
        source: &mut impl Source,
        pool: usize,
        inputs: &mut Inputs,
    ) -> Result<Handle, Problem> {
        let manifest = self.manifest;
        let (shape, elem) = (
            &manifest.row_pools[pool].shape,
            manifest.row_pools[pool].elem,
        );
        self.charge(manifest.row_pools[pool].row_bytes())?;
        let block = &mut inputs.rows.row_pools[pool];
        let position = u32::try_from(block.rows).map_err(|_| Problem::Memory)?;
        self.counters.clear();
        if let Some(found) = source.tensor(elem)? {
            if found != shape {
                return Err(wrong_shape(&self.expected_part(pool, 0), elem, found));
            }
            append(block, source.elements(elem)?)?;
            block.rows += 1;
            return Ok(self.input_handle(inputs, pool, position));
        }
        'value: loop {
            let level = self.counters.len();
            if level == shape.len() {
                let bits = self.scalar(source, elem)?;
                match elem {
                    Elem::F32 | Elem::I32 => block.extend(&bits.to_le_bytes()),
                    Elem::Bool => block.extend(&[bits as u8]),
                }
            } else {
                if !source.begin_list()? {
                    return Err(Problem::Value {
                        expected: self.expected_part(pool, level),
                        found: source.found(),
                    });
                }
                match (shape[level], source.next(true)?) {
                    (0, false) => {}
                    (0, true) => return Err(too_many(source, 0)),
                    (_, has_first) => {
                        self.counters.push(0);
                        if !has_first {
                            return Err(self.part_missing(pool, level + 1));
                        }
                        continue 'value;
                    }
                }
            }
            // A part is complete; so are all around it of which it is the last.
            loop {
                let Some(counter) = self.counters.last_mut() else {
                    break 'value;
                };
                *counter += 1;
                let counter = *counter;
                let length = shape[self.counters.len() - 1];
                match (source.next(false)?, counter == length) {
                    (true, false) => continue 'value,
                    (true, true) => return Err(too_many(source, length as usize)),
                    (false, false) => return Err(self.part_missing(pool, self.counters.len())),
                    (false, true) => self.counters.pop(),
                };
            }
        }
        block.rows += 1;
        Ok(self.input_handle(inputs, pool, position))
    }

    fn part_missing(&self, pool: usize, level: usize) -> Problem {
        Problem::Value {
            expected: self.expected_part(pool, level),
            found: END_OF_LIST.to_owned(),
        }
    }
}

/// Appends the elements of a tensor to its rows, if there is memory for them.
pub(super) fn append(block: &mut InputBlock, elements: &[u8]) -> Result<(), Problem> {
    match block.try_extend(elements) {
        true => Ok(()),
        false => Err(Problem::Memory),
    }
}

/// A whole tensor is of another shape.
pub(super) fn wrong_shape(expected: &str, elem: Elem, shape: &[u64]) -> Problem {
    Problem::Value {
        expected: expected.to_owned(),
        found: format!("an array {}", describe(dtype_name(elem), shape)),
    }
}
