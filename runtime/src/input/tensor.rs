//! Numbers and tensors.

use cohort_abi::Handle;
use cohort_abi::manifest::Elem;

use super::Inputs;
use super::cursor::{Cursor, Peek};
use super::decode::Decoder;
use super::message::{Problem, expected_scalar, too_many};
use crate::numbering::Numbering;

impl Decoder<'_> {
    /// The bits of a number or a truth value.
    #[inline]
    pub(super) fn scalar(&self, cursor: &mut Cursor<'_>, elem: Elem) -> Result<u32, Problem> {
        // A token of the wrong kind stays where it is, for the message.
        let mut look = *cursor;
        let bits = match (elem, look.peek()) {
            (Elem::F32, Peek::Number) => {
                let value = look.number()?.parse::<f32>().ok();
                value.filter(|value| value.is_finite()).map(f32::to_bits)
            }
            (Elem::I32, Peek::Number) => {
                let value = look.number()?.parse::<i32>().ok();
                value.map(|value| value as u32)
            }
            (Elem::Bool, Peek::True) => {
                look.skip_word(4);
                Some(1)
            }
            (Elem::Bool, Peek::False) => {
                look.skip_word(5);
                Some(0)
            }
            _ => None,
        };
        if bits.is_some() {
            *cursor = look;
        }
        bits.ok_or_else(|| Problem::Value {
            expected: expected_scalar(elem).to_owned(),
            found: cursor.found(),
        })
    }

    /// Appends a row to the inputs' rows.
    pub(super) fn tensor(
        &mut self,
        cursor: &mut Cursor<'_>,
        space: usize,
        inputs: &mut Inputs,
    ) -> Result<Handle, Problem> {
        let manifest = self.manifest;
        let (shape, elem) = (&manifest.spaces[space].shape, manifest.spaces[space].elem);
        self.charge(manifest.spaces[space].row_bytes())?;
        let block = &mut inputs.rows.spaces[space];
        let position = u32::try_from(block.rows).map_err(|_| Problem::Memory)?;
        self.counters.clear();
        'value: loop {
            let level = self.counters.len();
            if level == shape.len() {
                let bits = self.scalar(cursor, elem)?;
                match elem {
                    Elem::F32 | Elem::I32 => block.bytes.extend_from_slice(&bits.to_le_bytes()),
                    Elem::Bool => block.bytes.push(bits as u8),
                }
            } else {
                if !cursor.take(b'[') {
                    return Err(Problem::Value {
                        expected: self.expected_part(space, level),
                        found: cursor.found(),
                    });
                }
                if shape[level] > 0 {
                    self.counters.push(0);
                    if cursor.peek() == Peek::ListEnd {
                        return Err(Problem::Value {
                            expected: self.expected_part(space, level + 1),
                            found: cursor.found(),
                        });
                    }
                    continue 'value;
                }
                if !cursor.take(b']') {
                    return Err(too_many(cursor, 0));
                }
            }
            // A part is complete; so are all around it of which it is the last.
            loop {
                let Some(counter) = self.counters.last_mut() else {
                    break 'value;
                };
                *counter += 1;
                let length = shape[self.counters.len() - 1];
                let is_last = self.counters.last() == Some(&length);
                if cursor.take(b',') {
                    if is_last {
                        return Err(too_many(cursor, length as usize));
                    }
                    continue 'value;
                }
                if !is_last && cursor.peek() == Peek::ListEnd {
                    return Err(Problem::Value {
                        expected: self.expected_part(space, self.counters.len()),
                        found: cursor.found(),
                    });
                }
                cursor.expect(b']', "`,` or `]`")?;
                self.counters.pop();
            }
        }
        block.rows += 1;
        Ok(self.input_handle(inputs, space, position))
    }

    /// The handle of a row of the inputs.
    pub(super) fn input_handle(&self, inputs: &Inputs, space: usize, position: u32) -> Handle {
        let bucket = Numbering::of(self.manifest).input(inputs.chunk, space);
        Handle::new(bucket as u32, 0, position)
    }
}
