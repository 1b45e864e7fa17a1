//! Random programs, each run in every way that there is: all must agree.
//!
//! A program is compiled to an artifact once, and once more with passes left out; running either takes
//! milliseconds. Runs of one artifact agree to the bit whatever the batch; with the oracle they agree as
//! far as f32 allows.

mod smaller;
mod ways;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::io;

use cohort_e2e::Rng;
use cohort_e2e::instances::{Instances, Shape, Values};
use cohort_e2e::programs::{RandomProgram, chains};
use cohort_e2e::weights::{random_weights, weights_bytes};
use cohort_frontend::program::Program;
use cohort_frontend::{Sources, check};
use cohort_tools::reduce::shrink::Budget;

use crate::findings::Findings;
use crate::targets::Tools;

/// What programs are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Everything that there is.
    Any,
    /// Operations on tensors, one on the result of another.
    Chains,
}

impl Kind {
    /// Every kind, in the order in which they are tried.
    pub const ALL: [Kind; 2] = [Kind::Any, Kind::Chains];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Any => "programs",
            Kind::Chains => "chains",
        }
    }

    /// In one of how many rounds one is tried.
    pub fn rounds(self) -> u64 {
        match self {
            Kind::Any => 1,
            Kind::Chains => 4,
        }
    }

    fn program(self, rng: &mut Rng) -> RandomProgram {
        match self {
            Kind::Any => RandomProgram::new(rng),
            Kind::Chains => chains::program(rng),
        }
    }
}

/// Of how many programs that fail alike each is saved.
const MOST_SAVED: u64 = 4;

/// Programs that were tried.
#[derive(Default)]
pub struct Counts {
    /// Programs.
    pub tried: u64,
    /// Programs in which something was wrong.
    pub failed: u64,
    /// Runs that agreed with another.
    pub comparisons: u64,
    /// By what is in them.
    traits: BTreeMap<&'static str, u64>,
}

impl Counts {
    /// A line for people, and what was most often refused.
    pub fn describe(&self, kind: Kind) -> String {
        let mut text = format!(
            "\n{:10} {} tried, {} failed; {} runs compared\n",
            kind.name(),
            self.tried,
            self.failed,
            self.comparisons
        );
        for (name, count) in &self.traits {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "  with {name}: {count}");
        }
        text
    }
}

/// Why a program failed.
struct Failure {
    /// What programs have in common that are taken to fail for the same reason.
    signature: String,
    /// The commands that show it.
    commands: Vec<String>,
    details: String,
}

/// Makes up a program and tries it; one that fails is made smaller and saved.
pub fn try_one(
    kind: Kind,
    mut rng: Rng,
    tools: &Tools,
    counts: &mut Counts,
    findings: &mut Findings,
    mut budget: Budget,
) -> io::Result<()> {
    let data_seed = rng.bits();
    let mut recorded = rng.record();
    let program = kind.program(&mut recorded);
    counts.tried += 1;
    for name in program.traits.names() {
        *counts.traits.entry(name).or_default() += 1;
    }
    let Some(failure) = trial(&program, data_seed, tools, &mut counts.comparisons)? else {
        return Ok(());
    };
    counts.failed += 1;
    if findings.count(kind.name(), &failure.signature) > MOST_SAVED {
        return Ok(());
    }
    let again = |choices: &[u64]| {
        let program = kind.program(&mut Rng::replay(choices.to_vec()));
        let failure = trial(&program, data_seed, tools, &mut 0).ok().flatten()?;
        Some((program, failure))
    };
    let small = smaller::smaller(recorded.choices(), &mut budget, |choices| {
        again(choices).is_some_and(|(_, found)| found.signature == failure.signature)
    });
    let failure = again(&small).map_or(failure, |(_, failure)| failure);
    let names = ["program.coh", "weights.safetensors", "input.jsonl"];
    let files: Vec<(&str, Vec<u8>)> = names
        .iter()
        .filter_map(|name| Some((*name, fs::read(name).ok()?)))
        .collect();
    let files: Vec<(&str, &[u8])> = files
        .iter()
        .map(|(name, bytes)| (*name, &**bytes))
        .collect();
    let message = format!("{}\n{}", failure.signature, failure.details);
    let folder = findings.save(kind.name(), &files, &failure.commands.join("\n"), &message)?;
    println!(
        "{}: {}\n  saved in {}",
        kind.name(),
        failure.signature,
        folder.display()
    );
    Ok(())
}

/// Compiles and runs a program; `None` if all went as it must.
fn trial(
    program: &RandomProgram,
    data_seed: u64,
    tools: &Tools,
    comparisons: &mut u64,
) -> io::Result<Option<Failure>> {
    let bound = match typed(program) {
        Ok(bound) => bound,
        Err(message) => {
            return Ok(Some(Failure {
                signature: "the checker refuses it".into(),
                commands: vec!["batch-opt program.coh --emit=program".into()],
                details: message,
            }));
        }
    };
    let mut rng = Rng::new(data_seed);
    let weights = weights_bytes(&random_weights(&bound, &mut rng));
    let input = instances(program, &bound, &mut rng);
    fs::write("program.coh", &program.text)?;
    fs::write("weights.safetensors", weights)?;
    fs::write("input.jsonl", input.join("\n") + "\n")?;
    ways::compare(program.traits, &input, tools, &mut rng, comparisons)
}

/// The typed program, or what is wrong with it.
fn typed(program: &RandomProgram) -> Result<Program, String> {
    let mut sources = Sources::new();
    let file = sources.add("program.coh", program.text.clone());
    let dims = program
        .dims
        .iter()
        .map(|(name, size)| (name.to_string(), *size))
        .collect();
    let bound = check(&sources, file).and_then(|checked| checked.bind(&BTreeMap::new(), &dims));
    bound.map_err(|diagnostics| {
        let mut text = Vec::new();
        // Writing to memory does not fail.
        let _ = cohort_frontend::render(&diagnostics, &sources, &mut text, false);
        String::from_utf8_lossy(&text).into_owned()
    })
}

fn instances(program: &RandomProgram, bound: &Program, rng: &mut Rng) -> Vec<String> {
    let mut instances = Instances::new(bound, 6);
    instances.lengths_from(program.lengths);
    instances.values_from(Values {
        integers_at_bounds: program.traits.integers,
        extreme_floats: program.traits.extreme,
    });
    let line = |index| {
        let shape = Shape::nth(index, 5, rng);
        instances
            .instance(&format!("i{index}"), shape, rng)
            .to_string()
    };
    (0..11).map(line).collect()
}
