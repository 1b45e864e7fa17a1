//! Lines of a stream, in bounded memory.

use std::io::{self, BufRead, Read};

/// A line without its end.
#[derive(Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// The line's bytes.
    Text(&'a [u8]),
    /// It was skipped.
    TooLong {
        /// Bytes that a line may have at most.
        limit: usize,
    },
}

/// A stream of instances that arrive one by one, perhaps slowly.
pub trait InputStream: BufRead {
    /// Whether reading now would wait for somebody.
    fn would_wait(&mut self) -> bool {
        false
    }
}

impl InputStream for &[u8] {}
impl InputStream for io::Empty {}
impl<T: AsRef<[u8]>> InputStream for io::Cursor<T> {}
impl<R: Read> InputStream for io::BufReader<R> {}

impl<T: InputStream + ?Sized> InputStream for &mut T {
    fn would_wait(&mut self) -> bool {
        (**self).would_wait()
    }
}

impl<T: InputStream + ?Sized> InputStream for Box<T> {
    fn would_wait(&mut self) -> bool {
        (**self).would_wait()
    }
}

/// What comes next in a stream.
#[derive(Debug, PartialEq, Eq)]
pub enum Next<'a> {
    /// A line that is not blank, and its number, counted from 1.
    Line(u64, Line<'a>),
    /// The line is not there yet, or not all of it.
    Later,
    /// The stream is over.
    End,
}

/// Cuts a stream into lines of limited length, and counts them.
pub struct Lines<R> {
    input: R,
    limit: usize,
    number: u64,
    bytes_read: u64,
    /// The line, or as much of it as has arrived.
    buffer: Vec<u8>,
    /// Whether there is a part of a line.
    is_begun: bool,
    /// Whether all of the line is in the buffer.
    is_complete: bool,
}

impl<R: InputStream> Lines<R> {
    /// Lines of at most `limit` bytes.
    pub fn new(input: R, limit: usize) -> Lines<R> {
        Lines {
            input,
            limit,
            number: 0,
            bytes_read: 0,
            buffer: Vec::new(),
            is_begun: false,
            is_complete: true,
        }
    }

    /// Bytes of the stream that were read so far.
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read
    }

    /// The next line that is not blank; without waiting for it unless it may.
    pub fn next_line(&mut self, may_wait: bool) -> io::Result<Next<'_>> {
        loop {
            match self.read_line(may_wait)? {
                Arrived::Line => {}
                Arrived::Later => return Ok(Next::Later),
                Arrived::End => return Ok(Next::End),
            }
            self.number += 1;
            if !self.is_complete {
                self.buffer = Vec::new();
                let limit = self.limit;
                return Ok(Next::Line(self.number, Line::TooLong { limit }));
            }
            if self.number == 1 && self.buffer.starts_with(b"\xef\xbb\xbf") {
                self.buffer.drain(..3);
            }
            if !self.buffer.iter().all(u8::is_ascii_whitespace) {
                return Ok(Next::Line(self.number, Line::Text(&self.buffer)));
            }
        }
    }

    /// Fills the buffer with the next line, or with more of it.
    fn read_line(&mut self, may_wait: bool) -> io::Result<Arrived> {
        if !self.is_begun {
            self.buffer.clear();
            self.is_complete = true;
        }
        loop {
            if !may_wait && self.input.would_wait() {
                return Ok(Arrived::Later);
            }
            let available = match self.input.fill_buf() {
                Ok(available) => available,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if available.is_empty() {
                // The last line may have no end.
                return Ok(match std::mem::take(&mut self.is_begun) {
                    true => Arrived::Line,
                    false => Arrived::End,
                });
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let text = &available[..end.unwrap_or(available.len())];
            let fits = self.buffer.len() + text.len() <= self.limit
                && self.buffer.try_reserve(text.len()).is_ok();
            self.is_complete &= fits;
            if self.is_complete {
                self.buffer.extend_from_slice(text);
            }
            let used = text.len() + usize::from(end.is_some());
            self.input.consume(used);
            self.bytes_read += used as u64;
            self.is_begun = end.is_none();
            if end.is_some() {
                return Ok(Arrived::Line);
            }
        }
    }
}

/// What has arrived of a line.
enum Arrived {
    Line,
    Later,
    End,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_skipped_and_blank_lines_counted() {
        let text = b"one\n\n  \nmuch too long\r\nfour\nlast" as &[u8];
        // A tiny buffer, so that lines span several reads.
        let mut lines = Lines::new(io::BufReader::with_capacity(3, text), 5);
        let line = |number, text| Next::Line(number, Line::Text(text));
        assert_eq!(lines.next_line(true).unwrap(), line(1, b"one"));
        let too_long = Next::Line(4, Line::TooLong { limit: 5 });
        assert_eq!(lines.next_line(true).unwrap(), too_long);
        assert_eq!(lines.next_line(true).unwrap(), line(5, b"four"));
        assert_eq!(lines.next_line(true).unwrap(), line(6, b"last"));
        assert_eq!(lines.next_line(true).unwrap(), Next::End);
        assert_eq!(lines.bytes_read(), text.len() as u64);
    }

    /// Gives a piece each time that it is waited for.
    struct Slow(Vec<&'static [u8]>);

    impl Read for Slow {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::ErrorKind::Unsupported.into())
        }
    }

    impl BufRead for Slow {
        fn fill_buf(&mut self) -> io::Result<&[u8]> {
            Ok(self.0.first().copied().unwrap_or_default())
        }

        fn consume(&mut self, bytes: usize) {
            if let Some(first) = self.0.first_mut() {
                *first = &first[bytes..];
            }
        }
    }

    impl InputStream for Slow {
        fn would_wait(&mut self) -> bool {
            match self.0.first() {
                Some([]) => {
                    self.0.remove(0);
                    true
                }
                _ => false,
            }
        }
    }

    #[test]
    fn a_line_that_arrives_in_pieces_is_whole() {
        let mut lines = Lines::new(Slow(vec![b"one\ntw", b"o\n", b"three"]), 100);
        let line = |number, text| Next::Line(number, Line::Text(text));
        assert_eq!(lines.next_line(false).unwrap(), line(1, b"one"));
        assert_eq!(lines.next_line(false).unwrap(), Next::Later);
        assert_eq!(lines.next_line(false).unwrap(), line(2, b"two"));
        assert_eq!(lines.next_line(false).unwrap(), Next::Later);
        assert_eq!(lines.next_line(false).unwrap(), Next::Later);
        assert_eq!(lines.next_line(true).unwrap(), line(3, b"three"));
        assert_eq!(lines.next_line(true).unwrap(), Next::End);
    }
}
