//! Memory of instances: handed out by moving a pointer, taken back all at once.

use std::mem::MaybeUninit;

use crate::memory::Share;

/// Slots of the first ordinary chunk, 4 KiB; each one after it has twice as many as the one before.
const FIRST_SLOTS: usize = 1 << 9;
/// Slots of the largest ordinary chunk: 1 MiB.
const CHUNK_SLOTS: usize = 1 << 17;
/// The first chunks that are kept: together they have almost 1 MiB.
const KEPT_CHUNKS: usize = (CHUNK_SLOTS / FIRST_SLOTS).ilog2() as usize;
/// Bigger requests get a chunk of their own, which is given back at the next reset.
const LARGE_SLOTS: usize = CHUNK_SLOTS / 4;

/// Slots, and their share of the process's memory.
#[derive(Debug)]
struct Chunk {
    slots: Vec<MaybeUninit<u64>>,
    _share: Share,
}

impl Chunk {
    /// `count` slots, or `None` if memory cannot be allocated.
    fn new(count: usize) -> Option<Chunk> {
        let share = Share::take(8 * count as u64)?;
        let mut slots = Vec::new();
        slots.try_reserve_exact(count).ok()?;
        // SAFETY: there is room for `count` slots, and a slot need not be initialised.
        unsafe { slots.set_len(count) };
        Some(Chunk {
            slots,
            _share: share,
        })
    }
}

/// An allocator of 64-bit slots. What it hands out is uninitialised and stays where it is until
/// [`Bump::reset`] or a [`Bump::rollback`] to before it.
#[derive(Debug)]
pub struct Bump {
    chunks: Vec<Chunk>,
    large: Vec<Chunk>,
    /// Chunks in use: the last of them is being filled.
    used_chunks: usize,
    /// Bytes of all that is in use.
    bytes: u64,
    next: *mut u64,
    end: *mut u64,
}

/// A point to roll back to.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    used_chunks: usize,
    large: usize,
    next: *mut u64,
    end: *mut u64,
}

impl Default for Mark {
    fn default() -> Mark {
        Bump::default().mark()
    }
}

// SAFETY: what the pointers point to is in chunks that it owns, and only reached through it.
unsafe impl Send for Bump {}
// SAFETY: without exclusive access it only counts its bytes.
unsafe impl Sync for Bump {}

impl Default for Bump {
    fn default() -> Bump {
        Bump {
            chunks: Vec::new(),
            large: Vec::new(),
            used_chunks: 0,
            bytes: 0,
            next: std::ptr::null_mut(),
            end: std::ptr::null_mut(),
        }
    }
}

impl Bump {
    /// Room for `slots` slots; null where there is no memory for them.
    #[inline]
    pub fn alloc(&mut self, slots: usize) -> *mut u64 {
        let room = (self.end as usize - self.next as usize) / size_of::<u64>();
        if slots <= room && !self.next.is_null() {
            let start = self.next;
            // SAFETY: `next..end` lies in one chunk and holds at least `slots` slots.
            self.next = unsafe { start.add(slots) };
            return start;
        }
        self.alloc_slow(slots)
    }

    /// Allocates a copy of the values; `None` where there is no memory for them.
    pub fn alloc_copy(&mut self, values: &[u64]) -> Option<*mut u64> {
        let start = self.alloc(values.len());
        if start.is_null() {
            return None;
        }
        // SAFETY: `alloc` gave room for that many slots, which nothing else refers to.
        unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), start, values.len()) };
        Some(start)
    }

    #[cold]
    #[inline(never)]
    fn alloc_slow(&mut self, slots: usize) -> *mut u64 {
        if slots > LARGE_SLOTS {
            let Some(mut chunk) = Chunk::new(slots) else {
                return std::ptr::null_mut();
            };
            let start = chunk.slots.as_mut_ptr().cast::<u64>();
            self.bytes += 8 * slots as u64;
            self.large.push(chunk);
            return start;
        }
        loop {
            if self.used_chunks == self.chunks.len() {
                let count = FIRST_SLOTS << self.used_chunks.min(CHUNK_SLOTS.ilog2() as usize);
                let chunk = Chunk::new(count.min(CHUNK_SLOTS));
                let Some(chunk) = chunk else {
                    return std::ptr::null_mut();
                };
                self.chunks.push(chunk);
            }
            let chunk = &mut self.chunks[self.used_chunks].slots;
            self.used_chunks += 1;
            self.bytes += 8 * chunk.len() as u64;
            if chunk.len() < slots {
                continue;
            }
            let start = chunk.as_mut_ptr().cast::<u64>();
            // SAFETY: the chunk has at least `slots` slots.
            unsafe {
                self.end = start.add(chunk.len());
                self.next = start.add(slots);
            }
            return start;
        }
    }

    /// Where it stands, for a later [`Bump::rollback`].
    pub fn mark(&self) -> Mark {
        Mark {
            used_chunks: self.used_chunks,
            large: self.large.len(),
            next: self.next,
            end: self.end,
        }
    }

    /// Takes back everything handed out since the mark, which must be of this allocator and not
    /// older than its last reset.
    pub fn rollback(&mut self, mark: Mark) {
        self.used_chunks = mark.used_chunks;
        self.large.truncate(mark.large);
        self.next = mark.next;
        self.end = mark.end;
        self.count();
    }

    /// Takes over what another one handed out, until the next reset.
    pub fn absorb(&mut self, mut other: Bump) {
        other.chunks.truncate(other.used_chunks);
        self.large.append(&mut other.chunks);
        self.large.append(&mut other.large);
        self.count();
    }

    /// Bytes of the chunks in use.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Counts anew what is in use.
    fn count(&mut self) {
        let used = self.chunks[..self.used_chunks].iter().chain(&self.large);
        self.bytes = 8 * used.map(|chunk| chunk.slots.len() as u64).sum::<u64>();
    }

    /// Gives chunks that are not in use to the system, all but the first.
    pub fn shrink(&mut self) {
        self.chunks.truncate(self.used_chunks.max(KEPT_CHUNKS));
    }

    /// Takes back everything; keeps the ordinary chunks for the next use.
    pub fn reset(&mut self) {
        self.used_chunks = 0;
        self.bytes = 0;
        self.large.clear();
        self.next = std::ptr::null_mut();
        self.end = std::ptr::null_mut();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_do_not_overlap_and_are_reused_after_a_rollback() {
        let mut bump = Bump::default();
        assert!(!bump.alloc(0).is_null());
        let first = bump.alloc_copy(&[1, 2, 3]).unwrap();
        let mark = bump.mark();
        let second = bump.alloc(2);
        assert_eq!(second as usize - first as usize, 24);
        let large = bump.alloc(LARGE_SLOTS + 1);
        assert!(!large.is_null());
        for _ in 0..10 {
            bump.alloc(LARGE_SLOTS);
        }
        let most = bump.bytes();
        bump.count();
        assert_eq!(bump.bytes(), most);
        bump.rollback(mark);
        assert_eq!(bump.bytes(), 8 * FIRST_SLOTS as u64);
        assert_eq!(bump.alloc(2), second);
        // SAFETY: `first` was written by alloc_copy and is older than the mark.
        assert_eq!(unsafe { first.add(2).read() }, 3);
        bump.reset();
        assert_eq!(bump.bytes(), 0);
        assert!(bump.chunks.len() >= 2 && bump.large.is_empty());
    }
}
