//! The ways of running a program, and what must be equal between them.

use std::fs;
use std::io;

use cohort_e2e::Rng;
use cohort_e2e::programs::Traits;
use cohort_e2e::records::{Closeness, Record, compare_records};

use super::Failure;
use crate::child::{Ending, How};
use crate::judge::{essence, is_fit};
use crate::targets::Tools;

/// How far f32 may be from f64, as a part of the largest number of an output.
const CLOSE: Closeness = Closeness::WholeOutput(2e-4);

/// Of one artifact: the same bits.
const EQUAL: [&[&str]; 7] = [
    &["--no-batch"],
    &["--batch", "4", "--threads", "2"],
    &["--in-flight", "3"],
    &["--scheduler", "agenda"],
    &["--scheduler", "lookahead", "--batch", "5"],
    &[
        "--scheduler",
        "agenda",
        "--in-flight",
        "2",
        "--threads",
        "2",
    ],
    &["--granularity", "instance"],
];

/// How often the instances come where they come again.
const AGAIN: usize = 66;

/// A run's command, how it ended and the lines that it wrote.
struct Run {
    command: String,
    lines: Vec<String>,
}

struct Runner<'a> {
    tools: &'a Tools,
    /// The commands that made what is run.
    made: Vec<String>,
}

/// Runs the program in the current folder in all ways.
pub fn compare(
    traits: Traits,
    input: &[String],
    tools: &Tools,
    rng: &mut Rng,
    comparisons: &mut u64,
) -> io::Result<Option<Failure>> {
    let mut runner = Runner {
        tools,
        made: Vec::new(),
    };
    match runner.all(traits, input, rng, comparisons) {
        Ok(()) => Ok(None),
        Err(Problem::Failure(failure)) => Ok(Some(failure)),
        Err(Problem::Io(error)) => Err(error),
    }
}

enum Problem {
    Failure(Failure),
    Io(io::Error),
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Problem {
        Problem::Io(error)
    }
}

impl Runner<'_> {
    fn all(
        &mut self,
        traits: Traits,
        input: &[String],
        rng: &mut Rng,
        comparisons: &mut u64,
    ) -> Result<(), Problem> {
        let is_simulated = rng.one_in(2);
        let is_interpreted = is_simulated && rng.one_in(4);
        let devices: &[&str] = match (is_simulated, is_interpreted) {
            (_, true) => &["--gpu-arch", "ptx,sim"],
            (true, false) => &["--gpu-arch", "sim"],
            (false, false) => &[],
        };
        self.compile("model.cohort", devices)?;
        // What is beyond f32 has no equal in f64.
        let expected = match traits.extreme {
            true => None,
            false => Some(self.run("program.coh", &["--oracle"])?),
        };
        let first = self.run("model.cohort", &[])?;
        if let Some(expected) = &expected {
            self.close("the oracle", expected, &first)?;
            *comparisons += 1;
        }
        for way in EQUAL {
            let other = self.run("model.cohort", way)?;
            self.equal(&way.join(" "), &first, &other)?;
            *comparisons += 1;
        }
        if is_simulated {
            let simulated = self.run("model.cohort", &["--device", "gpu-sim"])?;
            match &expected {
                Some(expected) => {
                    self.close("the simulated GPU and the oracle", expected, &simulated)?
                }
                None => self.same_errors("the simulated GPU", &first, &simulated)?,
            }
            // Without speculation, and in batches of another size.
            let way = [
                "--device",
                "gpu-sim",
                "--without",
                "speculation",
                "--batch",
                "3",
            ];
            let waiting = self.run("model.cohort", &way)?;
            self.equal("the simulated GPU without guesses", &simulated, &waiting)?;
            *comparisons += 2;
            if is_interpreted {
                // The same kernels by the text that a card would be given.
                let text = self.run("model.cohort", &["--device", "ptx-sim"])?;
                self.equal("PTX and the simulated GPU", &simulated, &text)?;
                *comparisons += 1;
            }
        }

        let techniques = choose(&self.tools.techniques, rng);
        if !techniques.is_empty() {
            let other = self.run("model.cohort", &["--without", &techniques])?;
            self.equal(&format!("--without {techniques}"), &first, &other)?;
            *comparisons += 1;
        }
        let passes = choose(&self.tools.passes, rng);
        let mut way = match passes.is_empty() {
            true => Vec::new(),
            false => vec!["--without", &passes],
        };
        match rng.below(4) {
            0 => way.extend(["--granularity", "operator"]),
            1 => way.extend(["--granularity", "function"]),
            2 => way.extend(["--unroll", "1"]),
            _ => {}
        }
        if !way.is_empty() {
            self.made.clear();
            self.compile("other.cohort", &way)?;
            let other = self.run("other.cohort", &[])?;
            match &expected {
                Some(expected) => {
                    self.close("the oracle, compiled otherwise,", expected, &other)?
                }
                None => self.same_errors("another compilation", &first, &other)?,
            }
            let alone = self.run("other.cohort", &["--no-batch"])?;
            self.equal("--no-batch, compiled otherwise,", &other, &alone)?;
            *comparisons += 2;
            self.made.clear();
            self.made.push("batch-opt program.coh --weights weights.safetensors --emit=artifact -o model.cohort".into());
        }

        // Last, as they change the input. What is recorded of one instance is used again for those of its structure when
        // there are enough of them.
        let original = fs::read("input.jsonl")?;
        fs::write("input.jsonl", original.repeat(AGAIN))?;
        let batch = *rng.pick(&["1", "4", "50"]);
        let again = self.run("model.cohort", &["--batch", batch])?;
        let all = Run {
            command: first.command.clone(),
            lines: [&first.lines; AGAIN]
                .into_iter()
                .flatten()
                .cloned()
                .collect(),
        };
        self.equal("the same instances again", &all, &again)?;
        *comparisons += 1;

        let mut order: Vec<usize> = (0..input.len()).collect();
        rng.shuffle(&mut order);
        let permuted: Vec<&str> = order.iter().map(|place| input[*place].as_str()).collect();
        fs::write("input.jsonl", permuted.join("\n") + "\n")?;
        let mut other = self.run("model.cohort", &["--batch", "6"])?;
        let mut sorted = vec![String::new(); other.lines.len()];
        for (line, place) in other.lines.iter().zip(&order) {
            if let Some(slot) = sorted.get_mut(*place) {
                slot.clone_from(line);
            }
        }
        other.lines = sorted;
        self.equal("another order", &first, &other)?;
        *comparisons += 1;
        Ok(fs::write("input.jsonl", original)?)
    }

    fn compile(&mut self, artifact: &str, way: &[&str]) -> Result<(), Problem> {
        let arguments = [
            "program.coh",
            "--weights",
            "weights.safetensors",
            "--emit=artifact",
            "-o",
            artifact,
        ];
        let arguments: Vec<String> = arguments
            .iter()
            .chain(way)
            .map(|text| text.to_string())
            .collect();
        let command = format!("batch-opt {}", arguments.join(" "));
        let ending = self.tools.call(self.tools.opt, "batch-opt", &arguments)?;
        self.made.push(command);
        match ending.how {
            How::Code(0) if is_fit(&ending).is_ok() => Ok(()),
            _ => Err(self.failure("it does not compile", &ending, &[])),
        }
    }

    fn run(&self, model: &str, way: &[&str]) -> Result<Run, Problem> {
        let arguments = [
            model,
            "--weights",
            "weights.safetensors",
            "--input",
            "input.jsonl",
            "--output",
            "output.jsonl",
            "--max-depth",
            "2000",
            "--max-steps",
            "1000000",
        ];
        let arguments: Vec<String> = arguments
            .iter()
            .chain(way)
            .map(|text| text.to_string())
            .collect();
        let command = format!("batch-run {}", arguments.join(" "));
        let ending = self.tools.call(self.tools.run, "batch-run", &arguments)?;
        let is_done = matches!(ending.how, How::Code(0 | 1)) && is_fit(&ending).is_ok();
        let text = fs::read_to_string("output.jsonl").unwrap_or_default();
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        if !is_done || lines.iter().any(|line| Record::parse(line).is_err()) {
            let which = way.first().copied().unwrap_or("plain");
            return Err(self.failure(&format!("it does not run ({which})"), &ending, &[command]));
        }
        Ok(Run { command, lines })
    }

    /// Fails unless both have the same lines.
    fn equal(&self, way: &str, first: &Run, other: &Run) -> Result<(), Problem> {
        if first.lines == other.lines {
            return Ok(());
        }
        let pairs = first.lines.iter().zip(&other.lines);
        let (a, b) = pairs
            .into_iter()
            .find(|(a, b)| a != b)
            .map_or(("", ""), |(a, b)| (a, b));
        let what = match (error_kind(a), error_kind(b)) {
            (None, None) => "other bits".to_owned(),
            (a, b) => format!(
                "{} in place of {}",
                b.unwrap_or("a value".into()),
                a.unwrap_or("a value".into())
            ),
        };
        let option = way.split_whitespace().next().unwrap_or(way);
        let option = match option {
            "another" | "the" => way,
            option => option,
        };
        Err(self.difference(format!("{what} with {option}"), way, (a, b), (first, other)))
    }

    /// Fails unless both are as close as f32 allows.
    fn close(&self, what: &str, expected: &Run, actual: &Run) -> Result<(), Problem> {
        let Err(message) = compare_records(&expected.lines, &actual.lines, CLOSE) else {
            return Ok(());
        };
        let pairs = expected.lines.iter().zip(&actual.lines);
        let far = |(a, b): &(&String, &String)| {
            compare_records(&[(*a).clone()], &[(*b).clone()], CLOSE).is_err()
        };
        let (a, b) = pairs
            .into_iter()
            .find(far)
            .map_or(("", ""), |(a, b)| (a, b));
        let kinds = match (error_kind(a), error_kind(b)) {
            (None, None) => String::new(),
            (a, b) => format!(
                ": {} in place of {}",
                b.unwrap_or("a value".into()),
                a.unwrap_or("a value".into())
            ),
        };
        Err(self.difference(
            format!("differs from {what}{kinds}"),
            &message,
            (a, b),
            (expected, actual),
        ))
    }

    /// Fails unless the same instances fail.
    fn same_errors(&self, what: &str, first: &Run, other: &Run) -> Result<(), Problem> {
        let pairs = first.lines.iter().zip(&other.lines);
        match pairs
            .into_iter()
            .find(|(a, b)| error_kind(a) != error_kind(b))
        {
            Some((a, b)) => Err(self.difference(
                format!("other errors in {what}"),
                "",
                (a, b),
                (first, other),
            )),
            None => Ok(()),
        }
    }

    fn difference(
        &self,
        signature: String,
        how: &str,
        lines: (&str, &str),
        runs: (&Run, &Run),
    ) -> Problem {
        Problem::Failure(Failure {
            signature,
            commands: [
                self.made.clone(),
                vec![runs.0.command.clone(), runs.1.command.clone()],
            ]
            .concat(),
            details: format!("{how}\nfirst {}\nthen  {}", lines.0, lines.1),
        })
    }

    fn failure(&self, what: &str, ending: &Ending, commands: &[String]) -> Problem {
        Problem::Failure(Failure {
            signature: format!("{what}: {:?} {}", ending.how, essence(&ending.stderr)),
            commands: [self.made.as_slice(), commands].concat(),
            details: format!("{:?}\n{}", ending.how, ending.stderr),
        })
    }
}

/// The kind of error of an instance, if it is one.
fn error_kind(line: &str) -> Option<String> {
    Some(Record::parse(line).ok()?.result.err()?.kind)
}

/// Some of the names, often none, with commas between.
fn choose(names: &[String], rng: &mut Rng) -> String {
    if names.is_empty() {
        return String::new();
    }
    let mut chosen: Vec<&str> = Vec::new();
    for _ in 0..rng.below(4) {
        let name = rng.pick(names).as_str();
        if !chosen.contains(&name) {
            chosen.push(name);
        }
    }
    chosen.join(",")
}
