//! Numbers that begin where a line of the caches does, so that no vector of them lies in two lines.

use std::ops::{Deref, DerefMut};

use crate::memory::advise_huge_pages;

/// Numbers of a line.
const LINE: usize = 16;

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([f32; LINE]);

/// A vector of numbers that grows, and is zeros behind what was there.
#[derive(Default)]
pub struct Lines {
    lines: Vec<Line>,
    count: usize,
}

impl Lines {
    /// Makes room for at least `count` lines.
    pub fn grow(&mut self, count: usize) {
        if count <= self.count {
            return;
        }
        let lines = count.div_ceil(LINE);
        if lines > self.lines.capacity() {
            self.lines.reserve_exact(lines - self.lines.len());
            advise_huge_pages(self.lines.spare_capacity_mut());
        }
        self.lines.resize(lines, Line([0.0; LINE]));
        self.count = count;
    }

    /// There are none from now on; the memory stays.
    pub fn clear(&mut self) {
        self.lines.clear();
        self.count = 0;
    }
}

impl Deref for Lines {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        // SAFETY: a line is its numbers and nothing else, and there are as many lines as these take.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.count) }
    }
}

impl DerefMut for Lines {
    fn deref_mut(&mut self) -> &mut [f32] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.count) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_as_they_grow_and_the_others_are_zeros() {
        let mut lines = Lines::default();
        assert!(lines.is_empty());
        lines.grow(17);
        lines[16] = 3.0;
        lines.grow(40);
        lines.grow(5);
        assert_eq!((lines.len(), lines[16], lines[39]), (40, 3.0, 0.0));
        assert_eq!(lines.as_ptr().addr() % 64, 0);
        lines[39] = 1.0;
        lines.clear();
        lines.grow(40);
        assert_eq!(*lines, [0.0; 40]);
    }
}
