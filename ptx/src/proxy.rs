//! What the async proxy, through which warpgroups' products read, sees of shared memory (*PTX ISA*, "Async Proxy").
//!
//! What a thread wrote, by a store or by a copy that has arrived, is seen once the same thread has executed
//! `fence.proxy.async` behind it and a barrier of the block has followed, or one of some warpgroups, whose products alone see it
//! then. A barrier of a cluster does not count. What
//! nobody wrote is poison, and may be read. What a product that is not complete reads may not be written.

use crate::warpgroup::GROUP;
use crate::wgmma::PIECE;

/// Bytes whose writer is known: those of the smallest element.
const ELEMENT: usize = 2;

/// Of the shared memory of a block.
#[derive(Debug)]
pub struct Proxy {
    /// Of each element, the last one.
    writes: Vec<Write>,
    /// How many products that are not complete read each piece, once for each warp.
    readers: Vec<u32>,
    /// Of each thread.
    fences: Vec<Fences>,
}

#[derive(Clone, Copy, Debug)]
struct Write {
    /// Nobody's where there is no such thread.
    thread: u32,
    /// How many fences the thread had executed before.
    fences: u32,
}

/// How many fences a thread has executed, and how many of them before its last barrier with each warpgroup.
#[derive(Clone, Debug)]
struct Fences {
    all: u32,
    before_barrier: Vec<u32>,
}

/// Why the proxy does not see an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unseen {
    pub address: u64,
    pub writer: u32,
    /// It is, and there was no barrier behind.
    pub is_fenced: bool,
}

impl Proxy {
    pub fn new(threads: usize, shared_bytes: usize) -> Proxy {
        let nobody = Write {
            thread: u32::MAX,
            fences: 0,
        };
        Proxy {
            writes: vec![nobody; shared_bytes.div_ceil(ELEMENT)],
            readers: vec![0; shared_bytes.div_ceil(PIECE as usize)],
            fences: vec![
                Fences {
                    all: 0,
                    before_barrier: vec![0; threads.div_ceil(GROUP)],
                };
                threads
            ],
        }
    }

    /// Notes what a thread writes; the first address that is still read, if there is one.
    pub fn write(&mut self, thread: usize, address: u64, bytes: usize) -> Result<(), u64> {
        let Ok(begin) = usize::try_from(address) else {
            return Ok(());
        };
        let last = begin.saturating_add(bytes.saturating_sub(1));
        let piece = PIECE as usize;
        let pieces = self.readers.get(begin / piece..=last / piece);
        let pieces = pieces.unwrap_or_default().iter();
        if let Some(read) = pieces.zip(begin / piece..).find(|(count, _)| **count > 0) {
            return Err(address.max((read.1 * piece) as u64));
        }
        let fences = self.fences.get(thread).map_or(0, |fences| fences.all);
        let write = Write {
            thread: thread as u32,
            fences,
        };
        let elements = self.writes.get_mut(begin / ELEMENT..=last / ELEMENT);
        elements.unwrap_or_default().fill(write);
        Ok(())
    }

    /// A thread's fence.
    pub fn fence(&mut self, thread: usize) {
        if let Some(fences) = self.fences.get_mut(thread) {
            fences.all += 1;
        }
    }

    /// All threads have been at a barrier.
    pub fn meet(&mut self) {
        let groups: Vec<usize> = (0..self.fences.len().div_ceil(GROUP)).collect();
        self.meet_groups(&groups);
    }

    /// Those of some warpgroups have been at one.
    pub fn meet_groups(&mut self, groups: &[usize]) {
        for group in groups {
            for fences in self.fences.iter_mut().skip(group * GROUP).take(GROUP) {
                for with in groups {
                    fences.before_barrier[*with] = fences.all;
                }
            }
        }
    }

    /// Whether a warpgroup sees a piece.
    pub fn check(&self, piece: u64, group: usize) -> Result<(), Unseen> {
        let first = piece as usize / ELEMENT;
        let elements = self.writes.get(first..first + PIECE as usize / ELEMENT);
        for (write, element) in elements.unwrap_or_default().iter().zip(first..) {
            let Some(fences) = self.fences.get(write.thread as usize) else {
                continue;
            };
            let before = fences.before_barrier.get(group).copied().unwrap_or(0);
            if before <= write.fences {
                return Err(Unseen {
                    address: (element * ELEMENT) as u64,
                    writer: write.thread,
                    is_fenced: fences.all > write.fences,
                });
            }
        }
        Ok(())
    }

    /// A product begins to read a piece.
    pub fn hold(&mut self, piece: u64) {
        if let Some(readers) = self.readers.get_mut((piece / PIECE) as usize) {
            *readers += 1;
        }
    }

    /// It has read it.
    pub fn release(&mut self, piece: u64) {
        if let Some(readers) = self.readers.get_mut((piece / PIECE) as usize) {
            *readers -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_seen_behind_a_fence_and_a_barrier() {
        let mut proxy = Proxy::new(2, 64);
        let unseen = |writer, is_fenced| {
            Err(Unseen {
                address: 20,
                writer,
                is_fenced,
            })
        };
        assert_eq!(proxy.check(16, 0), Ok(()));
        // A fence before is none.
        proxy.fence(1);
        proxy.write(1, 20, 4).unwrap();
        proxy.meet();
        assert_eq!(proxy.check(16, 0), unseen(1, false));
        // Nor is another thread's.
        proxy.fence(0);
        proxy.meet();
        assert_eq!(proxy.check(16, 0), unseen(1, false));
        proxy.fence(1);
        assert_eq!(proxy.check(16, 0), unseen(1, true));
        proxy.meet();
        assert_eq!(proxy.check(16, 0), Ok(()));
        // The last write counts, of each element apart.
        proxy.write(0, 20, 2).unwrap();
        assert_eq!(proxy.check(16, 0), unseen(0, false));
        assert_eq!(proxy.check(0, 0), Ok(()));
        assert_eq!(proxy.check(32, 0), Ok(()));
    }

    #[test]
    fn a_barrier_of_a_warpgroup_is_for_its_own_products() {
        let mut proxy = Proxy::new(2 * GROUP, 64);
        proxy.write(GROUP + 1, 16, 16).unwrap();
        proxy.fence(GROUP + 1);
        proxy.meet_groups(&[0]);
        assert!(proxy.check(16, 1).is_err());
        proxy.meet_groups(&[1]);
        assert_eq!(proxy.check(16, 1), Ok(()));
        assert!(proxy.check(16, 0).is_err());
        proxy.meet_groups(&[0, 1]);
        assert_eq!(proxy.check(16, 0), Ok(()));
    }

    #[test]
    fn what_is_read_is_not_written() {
        let mut proxy = Proxy::new(1, 64);
        proxy.hold(32);
        proxy.hold(32);
        assert_eq!(proxy.write(0, 16, 16), Ok(()));
        assert_eq!(proxy.write(0, 44, 4), Err(44));
        assert_eq!(proxy.write(0, 24, 16), Err(32));
        proxy.release(32);
        assert_eq!(proxy.write(0, 32, 16), Err(32));
        proxy.release(32);
        assert_eq!(proxy.write(0, 32, 16), Ok(()));
        // What is outside is told elsewhere.
        assert_eq!(proxy.write(0, 64, 16), Ok(()));
        assert_eq!(proxy.write(0, u64::MAX, 16), Ok(()));
    }
}
