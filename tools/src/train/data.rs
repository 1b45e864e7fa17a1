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

    /// There must be something.
    pub fn check(&self, what: &str) -> Result<(), Stop> {
        if !self.instances.is_empty() {
            return Ok(());
        }
        let first = self
            .bad
            .first()
            .map(|bad| format!(": {}", self.describe(bad)));
        let first = first.unwrap_or_default();
        Err(Stop::usage(format!(
            "the {what} data has no instance{first}"
        )))
    }

    fn describe(&self, BadLine { number, reason }: &BadLine) -> String {
        let path = self.path.display();
        format!("{path}:{number}: the line is not an instance: {reason}")
    }

    /// Names the lines that are not instances, and says how many there are.
    pub fn report(&self, arguments: &Arguments, terminal: &mut Terminal) -> Result<u64, Stop> {
        for bad in &self.bad {
            let sentence = self.describe(bad);
            if arguments.stop_on_failure {
                return Err(Stop::failed(sentence));
            }
            terminal.say_failure(&sentence);
        }
        Ok(self.bad.len() as u64)
    }
}
