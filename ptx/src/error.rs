//! What is wrong with a text, or with what it does.

use std::fmt;

/// A mistake, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Of the text, from 1 on; 0 where it is about no line.
    pub line: u32,
    /// What ran.
    pub thread: Option<ThreadId>,
    /// In words.
    pub message: String,
}

/// A thread of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadId {
    /// Of its block, in the first and the second dim of the grid.
    pub block: (u32, u32),
    /// Its own number in the block.
    pub thread: u32,
}

impl Error {
    pub(crate) fn new(line: u32, message: impl Into<String>) -> Error {
        Error {
            line,
            thread: None,
            message: message.into(),
        }
    }

    pub(crate) fn of(self, block: (u32, u32), thread: usize) -> Error {
        let thread = Some(ThreadId {
            block,
            thread: thread as u32,
        });
        Error { thread, ..self }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "line {} of the PTX: ", self.line)?;
        }
        if let Some(ThreadId { block, thread }) = self.thread {
            write!(f, "block {block:?}, thread {thread}: ")?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
