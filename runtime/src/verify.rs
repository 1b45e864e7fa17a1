//! Checks batch invariance by running: the same instances in other company, other orders, on other
//! threads, must give the same bits.
//!
//! The first run takes the instances as they are given. Each *composition* then runs a random
//! choice of them (some left out, some twice, in another order) in another way: batches of another
//! size, other threads, each call alone. Every record is compared with that of the first run,
//! decisions included, since a decision that falls differently changes what is computed after it.
//!
//! Of a program whose gradients are computed, those of the inputs are compared in the same way, and those
//! of the parameters, which are sums in the order of the instances, with what the composition's instances
//! give in the same order one by one.
//!
//! Where a record differs, both runs are made again with a [`crate::report::trace`] of that instance, and
//! the first call whose rows differ, in the order of recording, is named.

mod compare;
mod compose;
mod report;

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;

use fastrand::Rng;

use crate::backward::{Cotangent, CotangentLines, Cotangents, Question};
use crate::error::Error;
use crate::failure::InstanceError;
use crate::io::sink::GradientLines;
use crate::program::code::Program;
use crate::program::weights::Weights;
use crate::session::{Config, Session};
use compare::Record;
use compose::Composition;
pub use report::{Difference, Divergence, OutputDifference, SumDifference, Summary, Verdict};

/// How a verification is run.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many compositions are run after the first run.
    pub compositions: u64,
    /// Of the random choices; the same seed makes the same compositions.
    pub seed: u64,
    /// Compositions run on 1 to this many threads.
    pub max_threads: usize,
    /// The cotangents of the outputs, where gradients are computed; without them the entry gives a loss.
    pub cotangents: Option<Rc<CotangentLines>>,
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
    let mut bench = Bench {
        program,
        weights,
        lines: lines(input),
        cotangents: options.cotangents.clone(),
        ids: Vec::new(),
    };
    let mut rng = Rng::with_seed(options.seed);
    let base = Composition::as_given(config, bench.lines.len());
    let first = bench.run(&base)?;
    bench.ids = first.records.iter().map(|own| own.id.clone()).collect();
    let mut summary = Summary::new(&first.records);
    for number in 0..options.compositions {
        let lines = bench.lines.len();
        let composition = Composition::random(config, number, lines, &options, &mut rng);
        let ran = bench.run(&composition)?;
        for (is_forward, first, then) in [
            (true, &first.records, &ran.records),
            (false, &first.inputs, &ran.inputs),
        ] {
            let Some(position) = difference(&composition, first, then) else {
                continue;
            };
            let line = composition.order[position];
            return Ok(Verdict::Differs(Box::new(Difference {
                composition: number + 1,
                compositions: options.compositions,
                way: composition.to_string(),
                line: bench.lines[line].0,
                id: first[line].id.clone(),
                output: first[line].output_difference(&then[position]),
                place: match is_forward {
                    true => bench.find_place(&base, &composition, position)?,
                    false => Divergence::Backward,
                },
            })));
        }
        if config.gradients {
            let alone = bench.run(&composition.one_by_one(config))?;
            if let Some((parameter, element)) = alone.sum_difference(&ran) {
                return Ok(Verdict::SumsDiffer(Box::new(SumDifference {
                    composition: number + 1,
                    compositions: options.compositions,
                    way: composition.to_string(),
                    parameter: program.manifest().params[parameter].name.clone(),
                    element,
                    first: alone.params[parameter][element],
                    then: ran.params[parameter][element],
                })));
            }
            summary.gradients += 1;
        }
        summary.add(&composition);
        progress(number + 1);
    }
    Ok(Verdict::Holds(Box::new(summary)))
}

/// Where in the composition's order the first record is that differs.
fn difference(composition: &Composition, first: &[Record], then: &[Record]) -> Option<usize> {
    let pairs = composition.order.iter().zip(then).enumerate();
    pairs
        .filter(|(_, (line, record))| !first[**line].same(record))
        // The first of the input, so that the report does not depend on the order.
        .min_by_key(|(_, (line, _))| **line)
        .map(|(position, _)| position)
}

/// What a run gave.
struct Ran {
    /// One for each entry of the composition's order.
    records: Vec<Record>,
    /// The gradients of the inputs, where there are gradients.
    inputs: Vec<Record>,
    /// Those of the parameters.
    params: Vec<Vec<f32>>,
}

impl Ran {
    /// The first parameter, and the element of it, whose gradients have other bits.
    fn sum_difference(&self, other: &Ran) -> Option<(usize, usize)> {
        let mut params = self.params.iter().zip(&other.params).enumerate();
        params.find_map(|(parameter, (left, right))| {
            let mut elements = left.iter().zip(right);
            let differs = |(left, right): (&f32, &f32)| left.to_bits() != right.to_bits();
            Some((parameter, elements.position(differs)?))
        })
    }
}

/// Lines that a session writes, read by the code that made the session.
#[derive(Clone, Default)]
struct Shared(Rc<RefCell<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Cotangents of instances that have the ids of the first run: without an id of its own, an instance has
/// that of its line, which is another one in each composition.
struct OfLines {
    lines: Rc<CotangentLines>,
    /// By number in the run; those that the run gives, in the first run.
    ids: Vec<String>,
}

impl Cotangents for OfLines {
    fn of(&mut self, number: u64, id: &str) -> Result<Cotangent<'_>, InstanceError> {
        let id = self.ids.get(number as usize).map_or(id, String::as_str);
        self.lines.find(id)
    }
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
    cotangents: Option<Rc<CotangentLines>>,
    /// By line, once it is known.
    ids: Vec<String>,
}

impl Bench<'_> {
    /// A session, and where it writes the gradients of inputs.
    fn session(&self, composition: &Composition) -> Result<(Session, Shared), Error> {
        let config = Config {
            // What one run shows, all show.
            debug: false,
            ..composition.config
        };
        let mut session = Session::new(self.program.clone(), self.weights, config)?;
        let written = Shared::default();
        if config.gradients {
            let cotangents = self.cotangents.clone().map(|lines| {
                let ids = composition.order.iter();
                let ids = ids
                    .filter_map(|line| self.ids.get(*line).cloned())
                    .collect();
                Box::new(OfLines { lines, ids }) as Box<dyn Cotangents>
            });
            let inputs = GradientLines::new(&config.limits, written.clone());
            session.ask(Question {
                cotangents,
                inputs: Some(Box::new(inputs)),
            })?;
        }
        Ok((session, written))
    }

    fn text(&self, composition: &Composition) -> Vec<u8> {
        let lines: Vec<&[u8]> = composition
            .order
            .iter()
            .map(|line| self.lines[*line].1)
            .collect();
        lines.join(&b'\n')
    }

    fn run(&self, composition: &Composition) -> Result<Ran, Error> {
        let mut output = Vec::new();
        let (mut session, inputs) = self.session(composition)?;
        session.run_stream(&self.text(composition)[..], &mut output, &mut |_| {})?;
        let params = 0..self.program.manifest().params.len();
        let params = session.gradients().map_or(Vec::new(), |sums| {
            params
                .map(|param| sums.gradient(param).unwrap_or_default())
                .collect()
        });
        Ok(Ran {
            records: self.records(composition, &output)?,
            inputs: match composition.config.gradients {
                true => self.records(composition, &inputs.0.borrow())?,
                false => Vec::new(),
            },
            params,
        })
    }

    /// The records of lines, one for each entry of the composition's order.
    fn records(&self, composition: &Composition, lines: &[u8]) -> Result<Vec<Record>, Error> {
        let records: Vec<Record> = lines
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
    ) -> Result<Divergence, Error> {
        let line = then.order[position];
        let before = self
            .session(first)?
            .0
            .run_traced(&self.text(first)[..], line as u64)?;
        let after = self
            .session(then)?
            .0
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
