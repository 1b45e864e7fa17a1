//! What a block sees of global memory while others run: the model of memory at its weakest.
//!
//! What a block writes, others see from its next fence on, or when it has ended; what it has read once it reads again
//! as it was, whatever others wrote, until it has a fence or a load that acquires; but a relaxed load finds what is in memory
//! (*PTX ISA*, "Memory Consistency Model"). A card may be as late with either; so text that lacks a fence computes
//! something else here.

use std::collections::HashMap;

use crate::memory::Memory;

/// Bytes of a line; no access is larger, and each is a multiple of its size.
const LINE: u64 = 64;

/// The lines that a block has written or read.
#[derive(Debug, Default)]
pub struct View {
    lines: HashMap<u64, Line>,
}

/// A bit a byte: of which the block knows what they are, and which of these nobody else does.
#[derive(Debug)]
struct Line {
    bytes: [u8; LINE as usize],
    known: u64,
    written: u64,
}

impl View {
    fn line(&mut self, address: u64) -> (&mut Line, usize) {
        let line = self.lines.entry(address / LINE).or_insert(Line {
            bytes: [0; LINE as usize],
            known: 0,
            written: 0,
        });
        (line, (address % LINE) as usize)
    }

    /// Bytes that may be read; nothing where some of them are in no region.
    pub fn read(&mut self, memory: &mut Memory<'_>, address: u64, bytes: usize) -> Option<&[u8]> {
        let (line, first) = self.line(address);
        let own = mask(first, bytes);
        if line.known & own != own {
            let found = memory.read(address, bytes)?;
            for (at, byte) in (first..).zip(found) {
                if line.known >> at & 1 == 0 {
                    line.bytes[at] = *byte;
                }
            }
            line.known |= own;
        }
        line.bytes.get(first..first + bytes)
    }

    /// Bytes that may be written; nothing where some of them may not.
    pub fn write(
        &mut self,
        memory: &mut Memory<'_>,
        address: u64,
        bytes: usize,
    ) -> Option<&mut [u8]> {
        memory.write(address, bytes)?;
        let (line, first) = self.line(address);
        let own = mask(first, bytes);
        line.known |= own;
        line.written |= own;
        line.bytes.get_mut(first..first + bytes)
    }

    /// Others see all that was written.
    pub fn publish(&mut self, memory: &mut Memory<'_>) {
        for (line, own) in &mut self.lines {
            own.publish(line * LINE, u64::MAX, memory);
        }
    }

    /// These bytes are the same for all blocks: an atomic operation is on what is in memory.
    pub fn meet(&mut self, memory: &mut Memory<'_>, address: u64, bytes: usize) {
        let (line, first) = self.line(address);
        let own = mask(first, bytes);
        line.publish(address / LINE * LINE, own, memory);
        line.known &= !own;
    }

    /// What others wrote is seen from now on.
    pub fn forget(&mut self) {
        self.lines.retain(|_, line| {
            line.known &= line.written;
            line.known != 0
        });
    }
}

impl Line {
    /// Those of some bytes that were written.
    fn publish(&mut self, address: u64, of: u64, memory: &mut Memory<'_>) {
        let written = self.written & of;
        let bytes = (address..).zip(self.bytes).enumerate();
        for (_, (address, byte)) in bytes.filter(|(at, _)| written >> at & 1 == 1) {
            // It was allowed when it was written.
            if let Some(to) = memory.write(address, 1) {
                to.copy_from_slice(&[byte]);
            }
        }
        self.written &= !of;
    }
}

fn mask(first: usize, bytes: usize) -> u64 {
    (u64::MAX >> (LINE as usize - bytes)) << first
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Region;

    #[test]
    fn others_see_what_was_published_and_not_what_was_read_before() {
        let mut bytes = [0_u8; 128];
        let mut memory = Memory::new(vec![Region {
            address: 64,
            bytes: &mut bytes,
            writable: 100,
        }]);
        let (mut a, mut b) = (View::default(), View::default());
        assert_eq!(b.read(&mut memory, 72, 4), Some(&[0; 4][..]));
        a.write(&mut memory, 72, 4).unwrap().fill(1);
        // Its own are seen at once, beside others of the line.
        assert_eq!(
            a.read(&mut memory, 68, 8),
            Some(&[0, 0, 0, 0, 1, 1, 1, 1][..])
        );
        a.publish(&mut memory);
        assert_eq!(b.read(&mut memory, 72, 4), Some(&[0; 4][..]));
        b.write(&mut memory, 76, 1).unwrap().fill(2);
        b.forget();
        assert_eq!(
            b.read(&mut memory, 72, 8),
            Some(&[1, 1, 1, 1, 2, 0, 0, 0][..])
        );
        assert_eq!(memory.read(76, 1), Some(&[0][..]));
        // An atomic operation is on what both have written.
        b.meet(&mut memory, 76, 4);
        assert_eq!(memory.read(72, 8), Some(&[1, 1, 1, 1, 2, 0, 0, 0][..]));
        // Memory is checked as without.
        assert!(b.write(&mut memory, 164, 4).is_none());
        assert!(b.read(&mut memory, 188, 8).is_none());
    }
}
