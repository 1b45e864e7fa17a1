//! Global memory, and the copies from there that a thread has begun and not waited for.

use std::collections::VecDeque;

/// A piece of global memory.
#[derive(Debug)]
pub struct Region<'a> {
    /// The address of the first byte.
    pub address: u64,
    /// All that may be read.
    pub bytes: &'a mut [u8],
    /// So many of them, the first ones, may be written as well.
    pub writable: usize,
}

/// All global memory that there is.
#[derive(Debug)]
pub struct Memory<'a> {
    /// By their addresses.
    regions: Vec<Region<'a>>,
    /// The one that was found last, which is likely to be asked for again.
    last: usize,
    /// How often something was written.
    pub(crate) writes: u64,
}

impl<'a> Memory<'a> {
    /// Of regions that do not overlap.
    pub fn new(mut regions: Vec<Region<'a>>) -> Memory<'a> {
        regions.sort_by_key(|region| region.address);
        Memory {
            regions,
            last: 0,
            writes: 0,
        }
    }

    fn find(&mut self, address: u64) -> Option<&mut Region<'a>> {
        let has = |region: &Region| {
            let offset = address.wrapping_sub(region.address);
            offset < region.bytes.len() as u64
        };
        if !self.regions.get(self.last).is_some_and(has) {
            let behind = self
                .regions
                .partition_point(|region| region.address <= address);
            self.last = behind.checked_sub(1)?;
        }
        self.regions.get_mut(self.last).filter(|region| has(region))
    }

    /// Bytes that may be read; nothing where some of them are in no region.
    pub(crate) fn read(&mut self, address: u64, bytes: usize) -> Option<&[u8]> {
        let region = self.find(address)?;
        let begin = (address - region.address) as usize;
        region.bytes.get(begin..begin.checked_add(bytes)?)
    }

    /// Bytes that may be written; nothing where some of them may not.
    pub(crate) fn write(&mut self, address: u64, bytes: usize) -> Option<&mut [u8]> {
        self.writes += 1;
        let region = self.find(address)?;
        let begin = (address - region.address) as usize;
        let end = begin.checked_add(bytes)?;
        let is_writable = end <= region.writable;
        region.bytes.get_mut(begin..end).filter(|_| is_writable)
    }
}

/// A copy to shared memory; what is not copied is zeros.
#[derive(Clone, Copy, Debug)]
pub struct Copy {
    pub to: u64,
    pub from: u64,
    pub bytes: usize,
    pub copied: usize,
    /// Of the instruction.
    pub pc: usize,
}

/// Copies that a thread has begun.
#[derive(Debug, Default)]
pub struct Copies {
    begun: VecDeque<Copy>,
    /// How many copies each group has, the oldest first.
    groups: VecDeque<usize>,
    /// Copies of no group yet.
    open: usize,
}

impl Copies {
    pub fn begin(&mut self, copy: Copy) {
        self.begun.push_back(copy);
        self.open += 1;
    }

    pub fn commit(&mut self) {
        self.groups.push_back(std::mem::take(&mut self.open));
    }

    /// The next copy to make until at most this many groups are pending.
    pub fn next(&mut self, pending: u32) -> Option<Copy> {
        while self.groups.len() > pending as usize {
            match self.groups.front_mut() {
                Some(0) => {
                    self.groups.pop_front();
                }
                Some(count) => {
                    *count -= 1;
                    return self.begun.pop_front();
                }
                None => break,
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_outside_is_neither_read_nor_written() {
        let (mut a, mut b) = ([1_u8; 16], [2_u8; 16]);
        let region = |address, bytes, writable| Region {
            address,
            bytes,
            writable,
        };
        let mut memory = Memory::new(vec![
            region(200, &mut b[..], 8),
            region(100, &mut a[..], 16),
        ]);
        assert_eq!(memory.read(112, 4), Some(&[1; 4][..]));
        assert_eq!(memory.read(113, 4), None);
        assert_eq!(memory.read(208, 8), Some(&[2; 8][..]));
        for (address, bytes) in [(99, 1), (0, 1), (216, 1), (u64::MAX, 8), (150, 1)] {
            assert_eq!(memory.read(address, bytes), None);
        }
        assert!(memory.write(204, 4).is_some());
        assert!(memory.write(205, 4).is_none());
    }

    #[test]
    fn copies_come_group_by_group() {
        let mut copies = Copies::default();
        let copy = |to| Copy {
            to,
            from: 0,
            bytes: 4,
            copied: 4,
            pc: 0,
        };
        copies.begin(copy(1));
        copies.begin(copy(2));
        copies.commit();
        copies.commit();
        copies.begin(copy(3));
        copies.commit();
        let mut made = |pending| {
            let mut all = Vec::new();
            while let Some(copy) = copies.next(pending) {
                all.push(copy.to);
            }
            all
        };
        assert_eq!(made(3), [0_u64; 0]);
        assert_eq!(made(1), [1, 2]);
        assert_eq!(made(0), [3]);
    }
}
