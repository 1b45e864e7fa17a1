//! `--bisect`: which technique must be left out for a program's results to be right.
//!
//! Each way of leaving something out is a run of `batch-run` in a process of its own, whose records are
//! compared with the oracle's; one that ends by a signal, or does not compile, is as wrong as other
//! numbers are.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use cohort_codegen::pipeline;

use super::glue::Options;
use crate::exit::{FAILED, SUCCESS, Stop};
use crate::model::techniques::TECHNIQUES;
use crate::output;

/// Looks for it and writes what was found; the exit code is that of success where there is nothing to
/// look for.
pub fn run(options: &Options) -> Result<u8, Stop> {
    let runs = Runs::new(options)?;
    let (code, text) = match runs.wrong(&[]) {
        None => (
            SUCCESS,
            "nothing is wrong: the results are as the oracle has them\n".to_owned(),
        ),
        Some(first) => (FAILED, runs.blame(&first)),
    };
    output::write(&options.output, text.as_bytes())?;
    Ok(code)
}

struct Runs<'a> {
    options: &'a Options,
    tool: PathBuf,
    input: PathBuf,
    folder: tempfile::TempDir,
}

impl Runs<'_> {
    /// Asks the oracle what is right.
    fn new(options: &Options) -> Result<Runs<'_>, Stop> {
        let Some(input) = options.instances.clone() else {
            return Err(Stop::usage(
                "`--bisect` runs the program: say over which instances, `--input FILE`",
            ));
        };
        if [&options.input, &input]
            .into_iter()
            .any(|path| path == Path::new("-"))
        {
            return Err(Stop::usage(
                "`--bisect` reads its files many times: they cannot be stdin",
            ));
        }
        let tool = std::env::current_exe()
            .map(|path| path.with_file_name("batch-run"))
            .ok()
            .filter(|path| path.is_file());
        let runs = Runs {
            options,
            tool: tool.ok_or_else(|| {
                Stop::usage("`--bisect` needs the tool `batch-run` beside `batch-opt`")
            })?,
            input,
            folder: tempfile::tempdir()
                .map_err(|error| Stop::usage(format!("cannot make a temporary folder: {error}")))?,
        };
        let (status, said) =
            runs.call(&["--oracle".as_ref(), "--output".as_ref(), &runs.expected()])?;
        // 1: some instances failed, as they may.
        match status.code() {
            Some(0 | 1) => Ok(runs),
            _ => Err(Stop::usage(format!("the oracle cannot run this\n{said}"))),
        }
    }

    fn expected(&self) -> PathBuf {
        self.folder.path().join("expected.jsonl")
    }

    /// Runs the program with further arguments; how that ended, and what it said.
    fn call(&self, arguments: &[&Path]) -> Result<(ExitStatus, String), Stop> {
        let mut command = Command::new(&self.tool);
        command.arg(&self.options.input);
        if let Some(weights) = &self.options.weights {
            command.arg("--weights").arg(weights);
        }
        for dim in &self.options.dims {
            command.args(["--dim", dim]);
        }
        if let Some(entry) = &self.options.entry {
            command.args(["--entry", entry]);
        }
        let ended = command
            .args(["--allow-unused-weights", "--quiet", "--input"])
            .arg(&self.input)
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .map_err(|error| Stop::usage(format!("cannot run `batch-run`: {error}")))?;
        Ok((
            ended.status,
            String::from_utf8_lossy(&ended.stderr).into_owned(),
        ))
    }

    /// What is wrong with the results when some techniques are left out; `None` if they are right.
    fn wrong(&self, without: &[&str]) -> Option<String> {
        let expected = self.expected();
        let mut arguments: Vec<&Path> = vec![
            "--output".as_ref(),
            "/dev/null".as_ref(),
            "--expect".as_ref(),
            &expected,
        ];
        let list = without.join(",");
        if !list.is_empty() {
            arguments.extend::<[&Path; 2]>(["--without".as_ref(), list.as_ref()]);
        }
        // How the program is compiled, of which the oracle knows nothing.
        let options = [
            ("--granularity", &self.options.granularity),
            ("--unroll", &self.options.unroll),
            ("--keep-weights", &self.options.keep_weights),
            ("--tolerance", &self.options.tolerance),
        ];
        for (name, value) in options {
            if let Some(value) = value {
                arguments.extend::<[&Path; 2]>([name.as_ref(), value.as_ref()]);
            }
        }
        match self.call(&arguments) {
            Ok((status, _)) if status.success() => None,
            Ok((status, said)) => {
                let said = said.lines().find(|line| line.starts_with("error"));
                Some(said.map_or_else(|| format!("batch-run: {status}"), str::to_owned))
            }
            Err(stop) => Some(stop.message),
        }
    }

    /// Says which techniques are to blame for what is wrong.
    fn blame(&self, first: &str) -> String {
        let mut text = format!("wrong: {first}\n");
        let passes = pipeline::optional().map(|(name, _)| name);
        let all: Vec<&str> = passes.chain(TECHNIQUES.map(|(name, _)| name)).collect();
        if let Some(still) = self.wrong(&all) {
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "wrong without any of the {} techniques as well: {still}\n\
                 The mistake is in what is always done: lowering, batching, code, or the runtime.",
                all.len()
            );
            return text;
        }
        // Each of them alone; where none is enough, as many as are needed together.
        let alone = all.iter().filter(|name| self.wrong(&[name]).is_none());
        let alone: Vec<&str> = alone.copied().collect();
        if alone.is_empty() {
            let mut needed = all;
            let mut at = 0;
            while at < needed.len() {
                let mut fewer = needed.clone();
                fewer.remove(at);
                match self.wrong(&fewer) {
                    None => needed = fewer,
                    Some(_) => at += 1,
                }
            }
            let _ = writeln!(
                text,
                "right only without all of these: --without {}",
                needed.join(",")
            );
        }
        for name in alone {
            let _ = writeln!(text, "right: --without {name}");
        }
        text
    }
}
