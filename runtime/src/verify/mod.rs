//! Checks batch invariance by running: the same instances in other company, other orders, on other
//! threads, must give the same bits.
//!
//! The first run takes the instances as they are given. Each *composition* then runs a random
//! choice of them (some left out, some twice, in another order) in another way: batches of another
//! size, other threads, each call alone. Every record is compared with that of the first run,
//! decisions included, since a decision that falls differently changes what is computed after it.
//!
//! Where a record differs, both runs are made again with a [`crate::trace`] of that instance, and
//! the first call whose rows differ, in the order of recording, is named.

mod compare;
mod compose;
mod report;

use fastrand::Rng;

use crate::code::Program;
use crate::error::Error;
use crate::session::{Config, Session};
use crate::weights::Weights;
use compare::Record;
use compose::Composition;
pub use report::{Difference, OutputDifference, Place, Summary, Verdict};

#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How many compositions are run after the first run.
    pub compositions: u64,
    /// Of the random choices; the same seed makes the same compositions.
    pub seed: u64,
    /// Compositions run on 1 to this many threads.
    pub max_threads: usize,
}

/// Runs all lines of `input` as `config` says, then in other compositions, and compares.
pub fn verify(
    program: &Program,
    weights: &Weights,
    config: Config,
    input: &[u8],
    options: Options,
    progress: &mut dyn FnMut(u64),
) -> Result<Verdict, Error> {
    let bench = Bench {
        program,
        weights,
        lines: lines(input),
    };
    let mut rng = Rng::with_seed(options.seed);
    let base = Composition::as_given(config, bench.lines.len());
    let first = bench.run(&base)?;
    let mut summary = Summary::new(&first);
    for number in 0..options.compositions {
        let composition = Composition::random(config, number, first.len(), options, &mut rng);
        let records = bench.run(&composition)?;
        let differs = composition
            .order
            .iter()
            .zip(&records)
            .enumerate()
            .filter(|(_, (line, record))| !first[**line].same(record))
            // The first of the input, so that the report does not depend on the order.
            .min_by_key(|(_, (line, _))| **line)
            .map(|(position, _)| position);
        if let Some(position) = differs {
            let line = composition.order[position];
            let place = bench.find_place(&base, &composition, position)?;
            return Ok(Verdict::Differs(Box::new(Difference {
                composition: number + 1,
                compositions: options.compositions,
                way: composition.to_string(),
                line: bench.lines[line].0,
                id: first[line].id.clone(),
                output: first[line].output_difference(&records[position]),
                place,
            })));
        }
        summary.add(&composition);
        progress(number + 1);
    }
    Ok(Verdict::Holds(Box::new(summary)))
}

/// The lines that hold an instance, with their numbers in the input.
fn lines(input: &[u8]) -> Vec<(usize, &[u8])> {
    input
        .split(|byte| *byte == b'\n')
        .enumerate()
        .map(|(index, line)| (index + 1, line))
        .filter(|(_, line)| !line.trim_ascii().is_empty())
        .collect()
}

/// What stays the same over all runs.
struct Bench<'a> {
    program: &'a Program,
    weights: &'a Weights,
    lines: Vec<(usize, &'a [u8])>,
}

impl Bench<'_> {
    fn session(&self, composition: &Composition) -> Result<Session, Error> {
        let config = Config {
            // What one run shows, all show.
            debug: false,
            ..composition.config
        };
        Session::new(self.program.clone(), self.weights, config)
    }

    fn text(&self, composition: &Composition) -> Vec<u8> {
        let lines: Vec<&[u8]> = composition
            .order
            .iter()
            .map(|line| self.lines[*line].1)
            .collect();
        lines.join(&b'\n')
    }

    /// The records, one for each entry of the composition's order.
    fn run(&self, composition: &Composition) -> Result<Vec<Record>, Error> {
        let mut output = Vec::new();
        self.session(composition)?.run_stream(
            &self.text(composition)[..],
            &mut output,
            &mut |_| {},
        )?;
        let records: Vec<Record> = output
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .map(Record::parse)
            .collect::<Option<_>>()
            .ok_or_else(|| Error::Internal("a record of the output is malformed".to_owned()))?;
        if records.len() != composition.order.len() {
            return Err(Error::Internal(format!(
                "{} instances gave {} records",
                composition.order.len(),
                records.len()
            )));
        }
        Ok(records)
    }

    /// Runs both compositions again, watching the instance that is at `position` in the second.
    fn find_place(
        &self,
        first: &Composition,
        then: &Composition,
        position: usize,
    ) -> Result<Place, Error> {
        let line = then.order[position];
        let before = self
            .session(first)?
            .run_traced(&self.text(first)[..], line as u64)?;
        let after = self
            .session(then)?
            .run_traced(&self.text(then)[..], position as u64)?;
        Ok(compare::first_difference(
            self.program.manifest(),
            &before,
            &after,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_lines_are_no_instances_but_are_counted() {
        assert_eq!(
            lines(b"{}\n\n  \r\n{\"a\": 1}"),
            [(1, &b"{}"[..]), (4, &b"{\"a\": 1}"[..])]
        );
    }
}
