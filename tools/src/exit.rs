//! How a tool ends: its exit code, and its last words on stderr.

use std::io::Write;

use cohort_runtime::Error;

/// Exit codes of both tools.
pub const SUCCESS: u8 = 0;
/// Some instances failed, or a pass or a check did.
pub const FAILED: u8 = 1;
/// The command line, the program or its weights are wrong.
pub const USAGE: u8 = 2;

/// Why a tool stops early; `message` goes to stderr unless it is empty because it was told already.
#[derive(Debug)]
pub struct Stop {
    /// The exit code.
    pub code: u8,
    /// What is written to standard error.
    pub message: String,
}

impl Stop {
    /// The command line or a file that it names is wrong: exit code [`USAGE`].
    pub fn usage(message: impl Into<String>) -> Stop {
        Stop {
            code: USAGE,
            message: message.into(),
        }
    }

    /// What was asked for could not be done: exit code [`FAILED`].
    pub fn failed(message: impl Into<String>) -> Stop {
        Stop {
            code: FAILED,
            message: message.into(),
        }
    }

    /// The reason has been reported already.
    pub fn reported(code: u8) -> Stop {
        Stop {
            code,
            message: String::new(),
        }
    }
}

/// What the runtime refuses ends the tool; when nobody reads the output any more, without a word.
pub fn stop(error: Error) -> Stop {
    match &error {
        Error::WriteOutput(cause) if cause.kind() == std::io::ErrorKind::BrokenPipe => {
            Stop::reported(FAILED)
        }
        _ => Stop::usage(error.to_string()),
    }
}

/// Says why a tool stopped and gives the process's exit code.
pub fn finish(result: Result<u8, Stop>) -> u8 {
    match result {
        Ok(code) => code,
        Err(stop) => {
            if !stop.message.is_empty() {
                say(&format!("error: {}", stop.message));
            }
            stop.code
        }
    }
}

/// Writes a line to stderr; nothing can be done where that fails. It may have names in it that come
/// from files, so what would do something to a terminal is shown as an escape.
pub fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{}", harmless(line));
}

/// The text with control characters and those that change the direction of writing escaped.
pub fn harmless(text: &str) -> String {
    let acts = |c: char| {
        (c.is_control() && !matches!(c, '\n' | '\t'))
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match acts(c) {
            true => shown.extend(c.escape_unicode()),
            false => shown.push(c),
        }
    }
    shown
}
