//! `batch-reduce`: makes a file of which a command holds as small as it can be.
//!
//! The command says what is looked for: it ends with 0 where a file still shows it. A `.coh` program is
//! reduced by its brackets ([`text`]), an MLIR file by MLIR's reducer ([`ir`]) and then like a program.

mod ir;
pub mod shrink;
pub mod text;
pub mod tokens;

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use clap::Parser;
use tempfile::TempPath;

use crate::exit::{SUCCESS, Stop, say};
use crate::output;
use shrink::Budget;

/// Makes a program (`.coh`) or IR (`.mlir`) as small as it can be while a command holds of it.
///
/// Exits with 2 when the command does not hold of the file as it is.
#[derive(Debug, Parser)]
#[command(name = "batch-reduce", version)]
struct Arguments {
    /// The program, or IR, that shows something
    file: PathBuf,
    /// A command for the shell that ends with 0 while a file shows it; `{}` is the file's path, which
    /// goes to the end where there is no `{}`
    #[arg(long, value_name = "COMMAND")]
    check: String,
    /// Where to write the smallest file that was found; `-` is stdout
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// How often the command is run at the most
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    trials: usize,
    /// How many seconds the whole may take
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    max_seconds: u64,
    /// How many seconds the command may take; it does not hold of a file for which it takes longer
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    check_seconds: u64,
    /// No summary
    #[arg(long)]
    quiet: bool,
}

/// Runs the tool and returns its exit code.
pub fn main(arguments: impl Iterator<Item = OsString>) -> Result<u8, Stop> {
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            let code = u8::try_from(error.exit_code()).unwrap_or(crate::exit::USAGE);
            let _ = error.print();
            return Ok(code);
        }
    };
    let original = String::from_utf8(crate::text::read(&arguments.file)?)
        .map_err(|_| Stop::usage(format!("{} is not UTF-8 text", arguments.file.display())))?;
    let mut check = Check::new(&arguments)?;
    if !check.holds(&original) {
        return Err(Stop::usage(format!(
            "the command does not end with 0 for {} as it is: {}",
            arguments.file.display(),
            check.command
        )));
    }
    let begun = match crate::compile::is_coh(&arguments.file) {
        true => original.clone(),
        false => check.by_mlir(&original)?,
    };
    let time = Duration::from_secs(arguments.max_seconds);
    let mut budget = Budget::new(arguments.trials, time);
    let small = text::reduce(&begun, &mut budget, &mut |text| check.holds(text));
    output::write(&arguments.output, small.as_bytes())?;
    if !arguments.quiet {
        let unless_done = match budget.is_spent() {
            true => "; there was no time, or no trial, for more",
            false => "",
        };
        say(&format!(
            "{} of {} bytes are left after {} {} of the command{unless_done}",
            small.len(),
            original.len(),
            check.runs,
            if check.runs == 1 { "run" } else { "runs" },
        ));
    }
    Ok(SUCCESS)
}

/// The command, and the place of the file that it is asked about.
struct Check {
    /// Gone with this.
    path: TempPath,
    command: String,
    most: Duration,
    /// Texts of which it did not hold.
    refused: HashSet<String>,
    runs: u64,
}

impl Check {
    fn new(arguments: &Arguments) -> Result<Check, Stop> {
        // Beside the file, so that what it imports is found.
        let beside = match arguments.file.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        let mut suffix = OsString::new();
        if let Some(extension) = arguments.file.extension() {
            suffix.push(".");
            suffix.push(extension);
        }
        let file = tempfile::Builder::new()
            .prefix(".reduced-")
            .suffix(&suffix)
            .tempfile_in(beside)
            .map_err(|error| {
                Stop::usage(format!(
                    "cannot make a file in {}: {error}",
                    beside.display()
                ))
            })?;
        let command = match arguments.check.contains("{}") {
            true => arguments.check.replace("{}", "\"$1\""),
            false => format!("{} \"$1\"", arguments.check),
        };
        Ok(Check {
            path: file.into_temp_path(),
            command,
            most: Duration::from_secs(arguments.check_seconds),
            refused: HashSet::new(),
            runs: 0,
        })
    }

    fn holds(&mut self, text: &str) -> bool {
        if self.refused.contains(text) {
            return false;
        }
        self.runs += 1;
        let holds = fs::write(&self.path, text).is_ok() && self.run();
        if !holds {
            self.refused.insert(text.to_owned());
        }
        holds
    }

    /// Whether the command ends with 0, in time.
    fn run(&self) -> bool {
        let child = Command::new("sh")
            .args(["-c", &self.command, "sh"])
            .arg(&self.path)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn();
        let Ok(mut child) = child else {
            return false;
        };
        let begin = Instant::now();
        let mut pause = Duration::from_micros(200);
        loop {
            match child.try_wait() {
                Ok(Some(status)) => return status.success(),
                Ok(None) if begin.elapsed() < self.most => std::thread::sleep(pause),
                _ => break,
            }
            pause = (pause * 2).min(Duration::from_millis(20));
        }
        // SAFETY: the group is that of the child, which was not waited for yet.
        unsafe { libc::kill(-(child.id() as libc::pid_t), libc::SIGKILL) };
        let _ = child.wait();
        false
    }

    /// What MLIR's reducer leaves of a module.
    fn by_mlir(&self, text: &str) -> Result<String, Stop> {
        let cannot = |error| Stop::usage(format!("cannot use a temporary folder: {error}"));
        let folder = tempfile::tempdir().map_err(cannot)?;
        let place = |name: &str| folder.path().join(name);
        let (input, output, tester) =
            (place("input.mlir"), place("output.mlir"), place("holds.sh"));
        // There a test that ends with 0 is one whose file is of no interest.
        let script = format!(
            "#!/bin/sh\nif sh -c {} sh \"$1\" >/dev/null 2>&1; then exit 1; fi\n",
            quoted(&self.command)
        );
        fs::write(&input, text).map_err(cannot)?;
        fs::write(&tester, script).map_err(cannot)?;
        fs::set_permissions(&tester, fs::Permissions::from_mode(0o700)).map_err(cannot)?;
        ir::reduce(&tester, &input, &output)?;
        fs::read_to_string(&output).map_err(cannot)
    }
}

/// A word of the shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
