//! The log of a training: lines of JSON, written one by one as things happen.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value as Json, json};

use crate::error::Error;
use crate::settings::Settings;
use crate::state::{EpochRecord, Means};

/// What a line has of an epoch's instances beside the means of their metrics.
pub const BESIDE_METRICS: [&str; 3] = ["loss", "instances", "failed"];

/// A file of lines that is added to.
pub struct Log {
    path: PathBuf,
    file: File,
}

impl Log {
    /// Begins anew, or goes on behind the first `lines` lines of what is there: those behind them belong to what is
    /// done again.
    pub fn open(path: &Path, lines: u64) -> Result<Log, Error> {
        let open = || -> io::Result<File> {
            let file = OpenOptions::new().create(true).append(true).open(path)?;
            // To read from a pipe or a terminal would be to wait.
            if file.metadata()?.is_file() {
                file.set_len(match lines {
                    0 => 0,
                    _ => bytes_of_lines(&fs::read(path)?, lines),
                })?;
            }
            Ok(file)
        };
        Ok(Log {
            file: open().map_err(|source| Error::write(path, source))?,
            path: path.to_owned(),
        })
    }

    /// Adds a line.
    pub fn append(&mut self, line: &Json) -> Result<(), Error> {
        let line = format!("{line}\n");
        let written = self.file.write_all(line.as_bytes());
        written.map_err(|source| Error::write(&self.path, source))
    }
}

/// How long the first lines are, or all that are whole where there are not as many.
fn bytes_of_lines(bytes: &[u8], lines: u64) -> u64 {
    let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    let last = ends.take(lines as usize).last();
    last.map_or(0, |(place, _)| place as u64 + 1)
}

/// The line of an epoch.
pub fn of_epoch(record: &EpochRecord, settings: &Settings) -> Json {
    let mut line = json!({
        "epoch": record.epoch,
        "step": record.step,
        "train": of_means(&record.train, settings),
    });
    if let Some(dev) = &record.dev {
        line["dev"] = of_means(dev, settings);
        line["best"] = record.is_best.into();
    }
    if record.skipped > 0 {
        line["skipped_steps"] = record.skipped.into();
    }
    line
}

fn of_means(means: &Means, settings: &Settings) -> Json {
    let mut numbers = Map::new();
    numbers.insert("loss".to_owned(), number(means.loss.0));
    for (place, metric) in means.metrics.iter().enumerate() {
        numbers.insert(settings.metric(place), number(metric.0));
    }
    numbers.insert("instances".to_owned(), means.instances.into());
    if means.failed > 0 {
        numbers.insert("failed".to_owned(), means.failed.into());
    }
    Json::Object(numbers)
}

/// What JSON has no number for is a text, as in outputs.
pub fn number(number: f64) -> Json {
    let text = match number {
        _ if number.is_finite() => return json!(number),
        f64::INFINITY => "Infinity",
        f64::NEG_INFINITY => "-Infinity",
        _ => "NaN",
    };
    Json::from(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_goes_on_behind_the_lines_that_count() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut log = Log::open(&path, 0).unwrap();
        for line in 0..3 {
            log.append(&json!(line)).unwrap();
        }
        let mut log = Log::open(&path, 2).unwrap();
        log.append(&json!("again")).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "0\n1\n\"again\"\n");
        drop(Log::open(&path, 9).unwrap());
        assert_eq!(fs::read_to_string(&path).unwrap(), "0\n1\n\"again\"\n");
        drop(Log::open(&path, 0).unwrap());
        assert_eq!(fs::read_to_string(&path).unwrap(), "");
    }
    #[test]
    fn a_pipe_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
        let other = path.clone();
        let reader = std::thread::spawn(move || fs::read_to_string(other).unwrap());
        let mut log = Log::open(&path, 2).unwrap();
        log.append(&json!(3)).unwrap();
        drop(log);
        assert_eq!(reader.join().unwrap(), "3\n");
    }
}
