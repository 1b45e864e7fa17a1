//! How deep the schema of a Parquet file nests, told before the library reads it: that goes down one call
//! a level, as deep as the file says.
//!
//! A file ends with its metadata, their length and a mark. The metadata are a struct of Thrift's compact
//! protocol, whose field 2 is the schema: the nodes of a tree in preorder, each with the number of its
//! children in field 5.

/// Tensors have 16 dims and arrays nest a little; each of their levels is three of a schema.
const MOST_LEVELS: usize = 256;
/// Fields within fields: the format has fewer than ten.
const MOST_NESTED: usize = 32;

const MARK: &[u8] = b"PAR1";
const SCHEMA: i64 = 2;
const CHILDREN: i64 = 5;

/// Refuses what nests too deeply. What is not Parquet is left to the library to tell.
pub fn check(file: &[u8]) -> Result<(), String> {
    let metadata = file.strip_suffix(MARK).and_then(|file| {
        let (rest, length) = file.split_last_chunk::<4>()?;
        let length = u32::from_le_bytes(*length) as usize;
        rest.get(rest.len().checked_sub(length)?..)
    });
    let Some(metadata) = metadata else {
        return Ok(());
    };
    match levels(metadata) {
        Some(levels) if levels <= MOST_LEVELS => Ok(()),
        Some(_) => Err(format!("its schema has more than {MOST_LEVELS} levels")),
        None => Err("its metadata are damaged".to_owned()),
    }
}

/// The levels of the schema, as far as they matter.
fn levels(metadata: &[u8]) -> Option<usize> {
    let mut reader = Reader { bytes: metadata };
    let mut field = 0;
    while let Some(kind) = reader.field(&mut field)? {
        if (field, kind) != (SCHEMA, LIST) {
            reader.skip(kind, 0)?;
            continue;
        }
        let (count, STRUCT) = reader.list()? else {
            return None;
        };
        // Of the nodes around, how many children are still to come.
        let mut open: Vec<u64> = Vec::new();
        let mut most = 0;
        for _ in 0..count {
            let children = reader.children()?;
            if let Some(left) = open.last_mut() {
                *left -= 1;
            }
            if children > 0 {
                open.push(children);
            }
            most = most.max(open.len() + 1);
            if most > MOST_LEVELS {
                break;
            }
            while open.last() == Some(&0) {
                open.pop();
            }
        }
        return Some(most);
    }
    Some(0)
}

const BYTE: u8 = 3;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
const STRUCT: u8 = 12;

/// What is left of a text of Thrift's compact protocol.
struct Reader<'b> {
    bytes: &'b [u8],
}

impl Reader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(*byte)
    }

    fn drop(&mut self, count: u64) -> Option<()> {
        self.bytes = self.bytes.get(usize::try_from(count).ok()?..)?;
        Some(())
    }

    /// Seven bits a byte, the least first.
    fn number(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    /// The sign is the last bit.
    fn signed(&mut self) -> Option<i64> {
        let value = self.number()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// The kind of the next field, whose number follows from that of the one before; none at the end.
    fn field(&mut self, number: &mut i64) -> Option<Option<u8>> {
        let head = self.byte()?;
        if head == 0 {
            return Some(None);
        }
        *number = match head >> 4 {
            0 => self.signed()?,
            more => number.checked_add(more.into())?,
        };
        Some(Some(head & 15))
    }

    /// How many elements of which kind.
    fn list(&mut self) -> Option<(u64, u8)> {
        let head = self.byte()?;
        let count = match head >> 4 {
            15 => self.number()?,
            few => few.into(),
        };
        Some((count, head & 15))
    }

    /// How many children the node has that comes next.
    fn children(&mut self) -> Option<u64> {
        let (mut field, mut children) = (0, 0);
        while let Some(kind) = self.field(&mut field)? {
            match (field, kind) {
                (CHILDREN, 4..=6) => children = self.signed()?.try_into().unwrap_or(0),
                _ => self.skip(kind, 0)?,
            }
        }
        Some(children)
    }

    fn skip(&mut self, kind: u8, nested: usize) -> Option<()> {
        if nested > MOST_NESTED {
            return None;
        }
        match kind {
            // A truth value is its field's kind.
            1 | 2 => Some(()),
            BYTE => self.drop(1),
            4..=6 => self.number().map(|_| ()),
            DOUBLE => self.drop(8),
            BINARY => {
                let length = self.number()?;
                self.drop(length)
            }
            LIST | SET => {
                let (count, kind) = self.list()?;
                (0..count).try_for_each(|_| self.element(kind, nested))
            }
            MAP => match self.number()? {
                0 => Some(()),
                count => {
                    let kinds = self.byte()?;
                    (0..count).try_for_each(|_| {
                        self.element(kinds >> 4, nested)?;
                        self.element(kinds & 15, nested)
                    })
                }
            },
            STRUCT => {
                let mut field = 0;
                while let Some(kind) = self.field(&mut field)? {
                    self.skip(kind, nested + 1)?;
                }
                Some(())
            }
            _ => None,
        }
    }

    /// In a list a truth value is a byte.
    fn element(&mut self, kind: u8, nested: usize) -> Option<()> {
        match kind {
            1 | 2 => self.drop(1),
            _ => self.skip(kind, nested + 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file whose schema nests one column in this many groups.
    fn chain(groups: usize) -> Vec<u8> {
        let mut metadata = vec![0x15, 2, 0x19, 0xfc];
        let mut count = groups + 1;
        while count > 127 {
            metadata.push(count as u8 | 0x80);
            count >>= 7;
        }
        metadata.push(count as u8);
        for _ in 0..groups {
            // Repetition, name, one child.
            metadata.extend([0x35, 0, 0x18, 1, b'x', 0x15, 2, 0]);
        }
        metadata.extend([0x15, 8, 0x25, 0, 0x18, 1, b'x', 0]);
        metadata.extend([0x16, 0, 0x19, 0x0c, 0]);
        let length = (metadata.len() as u32).to_le_bytes();
        [MARK, &metadata, &length, MARK].concat()
    }

    #[test]
    fn schemas_nest_so_deep_and_no_deeper() {
        assert_eq!(check(&chain(1)), Ok(()));
        assert_eq!(check(&chain(MOST_LEVELS - 1)), Ok(()));
        let deep = check(&chain(200_000)).expect_err("too deep");
        assert!(deep.contains("levels"), "{deep}");
    }

    #[test]
    fn damaged_metadata_are_told() {
        let whole = chain(3);
        for place in MARK.len()..whole.len() {
            for byte in [0, 0x19, 0x7f, 0xfc, 0xff] {
                let mut changed = whole.clone();
                changed[place] = byte;
                let _ = check(&changed);
                let _ = check(&changed[..place]);
            }
        }
    }
}
