//! Running the built tools as subprocesses.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::paths;
use crate::records::{self, Record};

/// No run of these tests takes anything near as long; what does hangs.
const TIME_LIMIT: Duration = Duration::from_secs(300);

/// The path of a built tool: in the folder that `COHORT_BIN` names, or in `target/release`.
pub fn tool(name: &str) -> PathBuf {
    let folder = match std::env::var_os("COHORT_BIN") {
        Some(folder) => PathBuf::from(folder),
        None => paths::workspace().join("target").join("release"),
    };
    let path = folder.join(name);
    assert!(
        path.is_file(),
        "there is no `{name}` in {}: run `make build` first, or set COHORT_BIN to the folder that \
         holds the tools",
        folder.display()
    );
    path
}

/// The same, to be started: what it compiles is kept with what the tests made.
pub fn command(name: &str) -> Command {
    let mut command = Command::new(tool(name));
    if std::env::var_os("COHORT_CACHE").is_none() {
        let folder = paths::workspace().join("target").join("test-cache");
        command.env("COHORT_CACHE", folder);
    }
    command
}

/// NVIDIA's assembler, where `make setup` installed it or the environment has it.
pub fn assembler() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("COHORT_PTXAS") {
        return Some(PathBuf::from(path));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain([paths::workspace().join(".tools/bin")]);
    let mut candidates = folders.map(|folder| folder.join("ptxas"));
    candidates.find(|candidate| candidate.is_file())
}

/// What a run left.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The exit code; there is none, and no outcome, where a signal ended the tool.
    pub code: i32,
    /// What it wrote to standard error.
    pub stderr: String,
    /// The text of the output file, or of stdout where the output is `-`; empty if there is none.
    pub output: String,
    command: String,
}

impl Outcome {
    /// The lines of the output, each checked to be a record.
    #[track_caller]
    pub fn lines(&self) -> Vec<String> {
        let lines = records::lines(&self.output);
        for line in &lines {
            if let Err(message) = Record::parse(line) {
                panic!("{message}\nfrom {}", self.describe());
            }
        }
        lines
    }

    /// The records of the output; panics if a line is none.
    #[track_caller]
    pub fn records(&self) -> Vec<Record> {
        self.lines()
            .iter()
            .filter_map(|line| Record::parse(line).ok())
            .collect()
    }

    /// Fails unless the exit code is this one.
    #[track_caller]
    pub fn expect_code(self, code: i32) -> Outcome {
        assert_eq!(self.code, code, "the exit code of {}", self.describe());
        self
    }

    /// Fails unless stderr holds each of the texts, in whatever case.
    #[track_caller]
    pub fn expect_message(self, texts: &[&str]) -> Outcome {
        let stderr = self.stderr.to_lowercase();
        for text in texts {
            let found = stderr.contains(&text.to_lowercase());
            assert!(found, "the message lacks `{text}`: {}", self.describe());
        }
        assert!(
            !stderr.contains("panicked at"),
            "a panic: {}",
            self.describe()
        );
        self
    }

    /// Everything, for the message of a test that fails.
    pub fn describe(&self) -> String {
        format!(
            "{}\nexit code {}, stderr:\n{}",
            self.command, self.code, self.stderr
        )
    }
}

/// A call of `batch-run` under construction.
#[derive(Clone, Debug)]
pub struct BatchRun {
    arguments: Vec<OsString>,
}

impl BatchRun {
    /// `batch-run MODEL`.
    pub fn new(model: &Path) -> BatchRun {
        BatchRun {
            arguments: vec![model.into()],
        }
    }

    /// Adds `--weights PATH`.
    pub fn weights(self, path: &Path) -> BatchRun {
        self.arg("--weights").arg(path)
    }

    /// Adds an argument.
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> BatchRun {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    /// Adds arguments.
    pub fn args(self, arguments: &[&str]) -> BatchRun {
        arguments.iter().fold(self, BatchRun::arg)
    }

    /// Runs over a text of input, through files.
    #[track_caller]
    pub fn run(self, input: &str) -> Outcome {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let input_path = folder.path().join("input.jsonl");
        let output_path = folder.path().join("output.jsonl");
        fs::write(&input_path, input).expect("the temporary folder is writable");
        let call = self
            .arg("--input")
            .arg(&input_path)
            .arg("--output")
            .arg(&output_path);
        let mut outcome = call.run_as_given("");
        outcome.output = fs::read_to_string(&output_path).unwrap_or_default();
        outcome
    }

    /// Runs over a text of input, through stdin and stdout.
    #[track_caller]
    pub fn run_piped(self, input: &str) -> Outcome {
        self.args(&["--input", "-", "--output", "-"])
            .run_as_given(input)
    }

    /// Runs with these arguments and no others.
    #[track_caller]
    pub fn run_as_given(self, stdin: &str) -> Outcome {
        run("batch-run", &self.arguments, stdin)
    }
}

/// Runs a tool to its end.
#[track_caller]
pub fn run(name: &str, arguments: &[OsString], stdin: &str) -> Outcome {
    let shown: Vec<String> = arguments
        .iter()
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    let described = format!("{name} {}", shown.join(" "));
    let mut child = command(name)
        .args(arguments)
        .envs(assembler().map(|path| ("COHORT_PTXAS", path)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("cannot start {described}: {error}"));

    // A pipe holds little, so each end is served by its own thread.
    let mut to_child = child.stdin.take().expect("stdin is piped");
    let input = stdin.to_string();
    let writer = thread::spawn(move || to_child.write_all(input.as_bytes()));
    let stdout = read_in_background(child.stdout.take());
    let stderr = read_in_background(child.stderr.take());

    let started = Instant::now();
    let status = loop {
        match child.try_wait().expect("the child can be waited for") {
            Some(status) => break status,
            None if started.elapsed() > TIME_LIMIT => {
                // It may have ended just now, which is as good.
                let _ = child.kill();
                panic!("no end after {TIME_LIMIT:?}: {described}");
            }
            None => thread::sleep(Duration::from_millis(2)),
        }
    };
    // A tool that fails early need not read its input.
    let _ = writer.join();
    let text = |reader: thread::JoinHandle<Vec<u8>>| {
        String::from_utf8_lossy(&reader.join().unwrap_or_default()).into_owned()
    };
    let (output, stderr) = (text(stdout), text(stderr));
    let code = status
        .code()
        .unwrap_or_else(|| panic!("{described} died: {status}\n{stderr}"));
    Outcome {
        code,
        stderr,
        output,
        command: described,
    }
}

fn read_in_background(
    pipe: Option<impl std::io::Read + Send + 'static>,
) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // What was read before an error is still worth showing.
            let _ = pipe.read_to_end(&mut bytes);
        }
        bytes
    })
}
