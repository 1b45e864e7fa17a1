//! A data set: all instances of a file, in memory.

use std::path::{Path, PathBuf};

use cohort_train::instances::{self, BadLine};
use cohort_train::{Instance, fingerprint};

use super::args::Arguments;
use super::terminal::Terminal;
use crate::exit::Stop;

pub struct Data {
    path: PathBuf,
    pub instances: Vec<Instance>,
    bad: Vec<BadLine>,
    pub fingerprint: String,
}

impl Data {
    pub fn read(path: &Path) -> Result<Data, Stop> {
        let bytes = crate::text::read(path)?;
        let (instances, bad) = instances::read(&bytes);
        Ok(Data {
            path: path.to_owned(),
            instances,
            bad,
            fingerprint: fingerprint::of([bytes.as_slice()]),
        })
    }

    /// Names the lines that are no instances, and says how many there are.
    pub fn report(&self, arguments: &Arguments, terminal: &mut Terminal) -> Result<u64, Stop> {
        for BadLine { number, reason } in &self.bad {
            let path = self.path.display();
            let sentence = format!("{path}:{number}: the line is no instance: {reason}");
            if arguments.stop_on_failure {
                return Err(Stop::failed(sentence));
            }
            terminal.say_failure(&sentence);
        }
        Ok(self.bad.len() as u64)
    }
}
