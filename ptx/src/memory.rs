//! Global memory, and what was begun asynchronously and not waited for, such as a thread's copies from there.

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

/// Asynchronous operations that were begun, such as a thread's copies, in the groups that are waited for.
#[derive(Debug)]
pub struct Groups<T> {
    begun: VecDeque<T>,
    /// How many operations each group has, the oldest first.
    groups: VecDeque<usize>,
    /// Operations of no group yet.
    open: usize,
}

impl<T> Default for Groups<T> {
    fn default() -> Groups<T> {
        Groups {
            begun: VecDeque::new(),
            groups: VecDeque::new(),
            open: 0,
        }
    }
}

impl<T> Groups<T> {
    pub fn begin(&mut self, operation: T) {
        self.begun.push_back(operation);
        self.open += 1;
    }

    /// Those that are not complete, the oldest first.
    pub fn pending(&self) -> impl Iterator<Item = &T> {
        self.begun.iter()
    }

    /// Whether the oldest of them is in a group.
    pub fn is_committed(&self) -> bool {
        self.begun.len() > self.open
    }

    pub fn commit(&mut self) {
        self.groups.push_back(std::mem::take(&mut self.open));
    }

    /// The next operation to complete until at most this many groups are pending.
    pub fn next(&mut self, pending: u32) -> Option<T> {
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
    fn operations_complete_group_by_group() {
        let mut groups = Groups::default();
        groups.begin(1);
        groups.begin(2);
        assert!(!groups.is_committed());
        groups.commit();
        groups.commit();
        groups.begin(3);
        groups.commit();
        groups.begin(4);
        assert!(groups.is_committed());
        let complete = |groups: &mut Groups<u64>, pending| {
            let mut all = Vec::new();
            while let Some(operation) = groups.next(pending) {
                all.push(operation);
            }
            all
        };
        assert_eq!(complete(&mut groups, 3), [0_u64; 0]);
        assert_eq!(complete(&mut groups, 1), [1, 2]);
        assert_eq!(complete(&mut groups, 0), [3]);
        // What is in no group is never complete.
        assert!(groups.pending().eq(&[4]) && !groups.is_committed());
    }
}
