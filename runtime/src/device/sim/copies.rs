//! Copies to shared memory that a thread has begun and not waited for.
//!
//! Their bytes are there when the thread waits for them, and not a moment before: until then the place
//! holds poison. On a card they may come at any time in between.

use std::collections::VecDeque;

struct Copy {
    to: *mut u8,
    from: *const u8,
    bytes: usize,
    /// How many are copied; the others are zeros.
    copied: usize,
}

/// A thread's copies.
pub struct Copies {
    poison: u8,
    begun: VecDeque<Copy>,
    /// How many copies each group has, the oldest first.
    groups: VecDeque<usize>,
    /// Copies of no group yet.
    open: usize,
}

impl Copies {
    pub fn new(poison: u8) -> Copies {
        Copies {
            poison,
            begun: VecDeque::new(),
            groups: VecDeque::new(),
            open: 0,
        }
    }

    /// # Safety
    ///
    /// The thread may write `bytes` bytes at `to`.
    pub unsafe fn begin(&mut self, to: *mut u8, from: *const u8, bytes: i64, copied: i64) {
        let bytes = bytes.max(0) as usize;
        let copied = (copied.max(0) as usize).min(bytes);
        // SAFETY: the caller's promise.
        unsafe { to.write_bytes(self.poison, bytes) };
        self.begun.push_back(Copy {
            to,
            from,
            bytes,
            copied,
        });
        self.open += 1;
    }

    pub fn commit(&mut self) {
        self.groups.push_back(std::mem::take(&mut self.open));
    }

    /// Makes the copies of all groups but the last `pending`.
    ///
    /// # Safety
    ///
    /// The thread may read and write what these copies read and write.
    pub unsafe fn wait(&mut self, pending: i64) {
        while self.groups.len() as i64 > pending {
            let count = self.groups.pop_front().unwrap_or_default();
            for copy in self.begun.drain(..count) {
                // SAFETY: the caller's promise; global and shared memory do not overlap.
                unsafe {
                    std::ptr::copy_nonoverlapping(copy.from, copy.to, copy.copied);
                    let rest = copy.bytes - copy.copied;
                    copy.to.add(copy.copied).write_bytes(0, rest);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_there_when_their_group_was_waited_for() {
        let from = [1_u8, 2, 3, 4];
        let mut to = [0_u8; 8];
        let mut copies = Copies::new(0xff);
        let (first, second) = to.split_at_mut(4);
        // SAFETY: all ranges have four bytes.
        unsafe {
            copies.begin(first.as_mut_ptr(), from.as_ptr(), 4, 4);
            copies.commit();
            copies.begin(second.as_mut_ptr(), from.as_ptr(), 4, 1);
            copies.commit();
            assert_eq!((&*first, &*second), (&[0xff; 4][..], &[0xff; 4][..]));
            copies.wait(1);
            assert_eq!((&*first, &*second), (&from[..], &[0xff; 4][..]));
            copies.wait(0);
            assert_eq!(second, [1, 0, 0, 0]);
        }
    }
}
