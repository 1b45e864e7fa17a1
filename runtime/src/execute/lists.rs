//! Where the lists of list operands lie: for each, an offset a row of the launch and one more, and
//! from some place in the index on the rows that all the lists name.

use crate::error::Error;

/// A list operand of a launch.
#[derive(Clone, Copy, Debug)]
pub struct ListOperand {
    /// Of row 0's offset.
    pub offsets: usize,
    /// Of the first list in the index.
    pub rows: usize,
    calls: usize,
}

/// The list operands of all launches of a flush.
#[derive(Debug, Default)]
pub struct Lists {
    pub operands: Vec<ListOperand>,
    pub offsets: Vec<u32>,
}

impl Lists {
    pub fn clear(&mut self) {
        self.operands.clear();
        self.offsets.clear();
    }

    /// Makes room for `count` list operands of a launch, all lists empty so far; returns the first.
    pub fn add(&mut self, count: usize, calls: u32) -> usize {
        let first = self.operands.len();
        for _ in 0..count {
            self.operands.push(ListOperand {
                offsets: self.offsets.len(),
                rows: 0,
                calls: calls as usize,
            });
            self.offsets
                .resize(self.offsets.len() + calls as usize + 1, 0);
        }
        first
    }

    pub fn set_length(&mut self, operand: usize, row: usize, length: u64) {
        let at = self.operands[operand].offsets + row + 1;
        // A length that does not fit is too large by itself.
        self.offsets[at] = u32::try_from(length).unwrap_or(u32::MAX);
    }

    /// Sets the lengths of one row after another.
    pub fn set_lengths(&mut self, operand: usize, row: usize, lengths: &[u32]) {
        let at = self.operands[operand].offsets + row + 1;
        self.offsets[at..at + lengths.len()].copy_from_slice(lengths);
    }

    /// Makes lengths offsets, and gives the lists of each operand a place behind the others.
    pub fn place(&mut self, index_length: &mut usize) -> Result<(), Error> {
        for operand in &mut self.operands {
            let offsets = &mut self.offsets[operand.offsets..][..=operand.calls];
            let mut sum = 0_u32;
            for offset in offsets {
                sum = sum.checked_add(*offset).ok_or_else(too_long)?;
                *offset = sum;
            }
            operand.rows = *index_length;
            *index_length += sum as usize;
        }
        Ok(())
    }

    /// Where in the index the list of a row begins.
    #[inline]
    pub fn start(&self, operand: usize, row: usize) -> usize {
        let operand = self.operands[operand];
        operand.rows + self.offsets[operand.offsets + row] as usize
    }
}

fn too_long() -> Error {
    Error::BatchTooLarge("lists of more than 2^32 rows together in a batch".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_lie_behind_each_other() {
        let mut lists = Lists::default();
        assert_eq!(lists.add(1, 3), 0);
        assert_eq!(lists.add(2, 1), 1);
        lists.set_length(0, 0, 2);
        lists.set_lengths(0, 2, &[1]);
        lists.set_length(2, 0, 4);
        let mut length = 10;
        lists.place(&mut length).unwrap();
        assert_eq!(length, 17);
        assert_eq!(lists.offsets, [0, 2, 2, 3, 0, 0, 0, 4]);
        let starts: Vec<_> = (0..3).map(|row| lists.start(0, row)).collect();
        assert_eq!(starts, [10, 12, 12]);
        assert_eq!((lists.start(1, 0), lists.start(2, 0)), (13, 13));
    }
}
