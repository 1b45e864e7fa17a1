//! Lines that are ready before those of earlier instances.
//!
//! Instances that run together do not end in the order of the input, but their lines come out in
//! it. A line waits here for those before it; when too many wait, [`Reorder::is_full`] tells the
//! engine to take no new instance until the oldest one is out.

use std::collections::VecDeque;
use std::io::{self, Write};

/// Lines that may wait before no new instance is taken.
const MOST_LINES: usize = 1 << 16;
/// Bytes that may wait before no new instance is taken.
const MOST_BYTES: usize = 64 << 20;

/// The lines after the last one that was written, as far as they are ready.
#[derive(Debug, Default)]
pub struct Reorder {
    /// The number of the instance whose line is written next, `waiting[0]` is its line.
    next: u64,
    waiting: VecDeque<Option<Box<[u8]>>>,
    bytes: usize,
}

impl Reorder {
    /// Takes the line of the instance of that number, once for each from 0; writes all lines whose
    /// turn it is.
    pub fn put(&mut self, number: u64, line: &[u8], output: &mut impl Write) -> io::Result<()> {
        if number > self.next {
            let place = (number - self.next) as usize;
            if self.waiting.len() <= place {
                self.waiting.resize_with(place + 1, || None);
            }
            self.waiting[place] = Some(line.into());
            self.bytes += line.len();
            return Ok(());
        }
        output.write_all(line)?;
        self.waiting.pop_front();
        self.next += 1;
        while let Some(Some(line)) = self.waiting.front() {
            output.write_all(line)?;
            self.bytes -= line.len();
            self.waiting.pop_front();
            self.next += 1;
        }
        Ok(())
    }

    /// Whether new instances must wait until the oldest one is out.
    pub fn is_full(&self) -> bool {
        self.waiting.len() >= MOST_LINES || self.bytes >= MOST_BYTES
    }

    /// Lines that were written, from the first on.
    pub fn written(&self) -> u64 {
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_out_in_order_as_soon_as_they_can() {
        let mut reorder = Reorder::default();
        let mut output = Vec::new();
        for (number, written) in [
            (2, ""),
            (1, ""),
            (4, ""),
            (0, "012"),
            (3, "01234"),
            (5, "012345"),
        ] {
            let line = number.to_string();
            reorder.put(number, line.as_bytes(), &mut output).unwrap();
            assert_eq!(String::from_utf8_lossy(&output), written);
        }
        assert_eq!((reorder.bytes, reorder.waiting.len()), (0, 0));
    }

    #[test]
    fn too_much_that_waits_is_reported() {
        let mut reorder = Reorder::default();
        let mut output = Vec::new();
        reorder.put(MOST_LINES as u64, b"x", &mut output).unwrap();
        assert!(reorder.is_full());

        let mut reorder = Reorder::default();
        reorder.put(1, &vec![0; MOST_BYTES], &mut output).unwrap();
        assert!(reorder.is_full());
        reorder.put(0, b"x", &mut output).unwrap();
        assert!(!reorder.is_full());
        assert_eq!((reorder.written(), output.len()), (2, MOST_BYTES + 1));
    }
}
