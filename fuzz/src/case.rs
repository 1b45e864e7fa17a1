//! One run of a tool over files, one of which is what is varied.

use std::fs;
use std::io;
use std::rc::Rc;

use crate::mutate::Form;

/// Which of the tools runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// `batch-opt`.
    Opt,
    /// `batch-run`.
    Run,
    /// With clients, see [`crate::client`].
    Serve,
}

impl Tool {
    /// The name of its program.
    pub fn name(self) -> &'static str {
        match self {
            Tool::Opt => "batch-opt",
            Tool::Run => "batch-run",
            Tool::Serve => "batch-serve",
        }
    }
}

/// What is checked of a run beside how it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Check {
    /// That it ends as tools do.
    Nothing,
    /// Every line of `input.jsonl` has one record in `output.jsonl`, and the first and the last line,
    /// which are good, have this one.
    Records {
        /// The record of a good line, without its id.
        good: String,
    },
}

/// Files are named relative to the folder in which the tool runs.
#[derive(Clone, Debug)]
pub struct Case {
    /// What is run.
    pub tool: Tool,
    /// The command line, without the program.
    pub arguments: Vec<String>,
    /// The files that stay as they are.
    pub files: Vec<(String, Rc<[u8]>)>,
    /// The file that is varied.
    pub subject: String,
    /// The contents of that file.
    pub bytes: Vec<u8>,
    /// What that file is, which says how it is varied.
    pub form: Form,
    /// What must be so after the run.
    pub check: Check,
}

impl Case {
    /// Writes the files into the current folder.
    pub fn write(&self) -> io::Result<()> {
        for (name, bytes) in &self.files {
            fs::write(name, bytes)?;
        }
        fs::write(&self.subject, self.form.file(&self.bytes, &self.files))
    }

    /// How many inputs there are in it: each instance is one, all else is one.
    pub fn inputs(&self) -> u64 {
        match self.check {
            Check::Nothing => 1,
            Check::Records { .. } => {
                let lines = self.bytes.iter().filter(|byte| **byte == b'\n').count();
                lines.saturating_sub(2) as u64
            }
        }
    }

    /// The command line, for people.
    pub fn command(&self) -> String {
        format!("{} {}", self.tool.name(), self.arguments.join(" "))
    }
}
