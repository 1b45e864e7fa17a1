//! Files of instances and results: JSON Lines, and what arrays are kept in.
//!
//! Whatever a file is, its instances go through the one [`Builder`](cohort_runtime::io::input::Builder): rows of
//! Arrow and Parquet are read as they are ([`rows`]), arrays of NumPy as such rows ([`npz`]). Results of these
//! formats are collected, put in order, and written at the end ([`table`]).

#[cfg(feature = "formats")]
mod damage;
#[cfg(feature = "formats")]
mod footer;
#[cfg(feature = "formats")]
pub mod ipc;
#[cfg(feature = "formats")]
mod npz;
#[cfg(feature = "formats")]
mod npz_write;
#[cfg(feature = "formats")]
pub mod numbers;
#[cfg(feature = "formats")]
mod rows;
#[cfg(feature = "formats")]
pub mod table;

use std::path::Path;

use crate::exit::Stop;

/// What a file is, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// JSON Lines, whatever the name.
    Lines,
    /// One array of NumPy.
    Npy,
    /// Several arrays of NumPy.
    Npz,
    /// Arrow's file format.
    Arrow,
    /// Parquet.
    Parquet,
}

impl Format {
    /// The format that a file's name says, else JSON Lines.
    pub fn of(path: &Path) -> Format {
        match path.extension().and_then(|name| name.to_str()) {
            Some("npy") => Format::Npy,
            Some("npz") => Format::Npz,
            Some("arrow" | "arrows" | "feather" | "ipc") => Format::Arrow,
            Some("parquet") => Format::Parquet,
            _ => Format::Lines,
        }
    }

    /// Refuses what this build cannot read and write.
    pub fn check(self, path: &Path) -> Result<(), Stop> {
        if self == Format::Lines || cfg!(feature = "formats") {
            return Ok(());
        }
        Err(Stop::usage(format!(
            "{}: this batch-run was built for JSON Lines alone",
            path.display()
        )))
    }
}

#[cfg(feature = "formats")]
pub use run::run;

#[cfg(feature = "formats")]
mod run {
    use std::cell::RefCell;
    use std::path::Path;
    use std::rc::Rc;
    use std::sync::Arc;

    use cohort_runtime::abi::manifest::Manifest;
    use cohort_runtime::io::feed::{Chunks, Supply};
    use cohort_runtime::io::input::{InputStream, Reader};
    use cohort_runtime::io::output::columns::{Collector, Columns};
    use cohort_runtime::io::sink::{JsonLines, Sink};
    use cohort_runtime::{Config, Progress, Session, Stats};

    use super::rows::Rows;
    use super::{Format, table};
    use crate::exit::{Stop, stop};
    use crate::output::{Document, Lines};

    /// Runs the instances of one file, or of lines, and writes the results to another, or as lines.
    pub fn run(
        session: &mut Session,
        config: &Config,
        (input, lines): (&Path, Option<impl InputStream>),
        (output, results): (&Path, Option<Lines>),
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Stats, Stop> {
        let manifest = Arc::new(session.program().manifest().clone());
        let (count, bytes) = (session.chunks().0, config.batch_memory);
        let max_memory = config.limits.max_memory;
        let (mut of_lines, mut of_rows);
        let supply: &mut dyn Supply = match lines {
            Some(lines) => {
                let reader = Reader::new(&manifest, lines, max_memory, config.max_line_bytes);
                of_lines = Chunks::new(reader, count, bytes);
                &mut of_lines
            }
            None => {
                of_rows = Rows::open(&manifest, max_memory, input, (count, bytes))?;
                &mut of_rows
            }
        };
        if let Some(results) = results {
            let mut sink = JsonLines::new(&manifest, &config.limits, results);
            return session.run(supply, &mut sink, progress).map_err(stop);
        }
        let format = Format::of(output);
        // Whether results have a form there is known before they are computed.
        table::write(format, &manifest, &Columns::of(&manifest))
            .map_err(|problem| cannot_write(output, &problem))?;
        let document = Document::open(output)?;
        let collected = Rc::<RefCell<Vec<Columns>>>::default();
        let taken = collected.clone();
        let take = move |columns| {
            taken.borrow_mut().push(columns);
            Ok(())
        };
        let mut sink = Collector::new(manifest.clone(), max_memory, take);
        let stats = session.run(supply, &mut sink, progress).map_err(stop)?;
        sink.flush().map_err(stop)?;
        let columns = in_order(&manifest, &collected.take());
        let bytes = table::write(format, &manifest, &columns);
        document.write(&bytes.map_err(|problem| cannot_write(output, &problem))?)?;
        Ok(stats)
    }

    fn cannot_write(path: &Path, problem: &str) -> Stop {
        Stop::usage(format!("cannot write {}: {problem}", path.display()))
    }

    /// All results in the order of their instances.
    fn in_order(manifest: &Manifest, portions: &[Columns]) -> Columns {
        let mut order = Vec::new();
        for (portion, columns) in portions.iter().enumerate() {
            let instances = columns.instances.iter().enumerate();
            order.extend(instances.map(|(place, done)| (done.number, portion, place)));
        }
        order.sort_unstable();
        let mut all = Columns::of(manifest);
        for (_, portion, place) in order {
            all.push(&portions[portion], place);
        }
        all
    }
}
