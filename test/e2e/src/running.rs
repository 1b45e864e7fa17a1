//! A tool that runs while the test talks to it.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::tools::command;

/// Whatever takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// A run of a tool over pipes, which ends with this at the latest.
pub struct Running {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Running {
    /// Starts `batch-run` on a model; panics if it cannot.
    #[track_caller]
    pub fn start(model: &Path, arguments: &[&str]) -> Running {
        Running::tool("batch-run", model, arguments)
    }

    /// Starts a tool on a model; panics if it cannot.
    #[track_caller]
    pub fn tool(name: &str, model: &Path, arguments: &[&str]) -> Running {
        let mut child = command(name)
            .arg(model)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the tool can be started");
        let stdout = child.stdout.take().expect("stdout is piped");
        let (send, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                // Nobody may be interested any more.
                let _ = send.send(line);
            }
        });
        Running {
            stdin: child.stdin.take(),
            child,
            lines,
        }
    }

    /// Gives it a text, which need not be a line.
    pub fn send(&mut self, text: &str) {
        if let Some(stdin) = &mut self.stdin {
            stdin
                .write_all(text.as_bytes())
                .and_then(|()| stdin.flush())
                .expect("the tool reads its input");
        }
    }

    /// The next line that it writes.
    #[track_caller]
    pub fn line(&self) -> String {
        let line = self.lines.recv_timeout(PATIENCE);
        line.unwrap_or_else(|_| panic!("no line within {PATIENCE:?}"))
    }

    /// Bytes of memory that it has.
    #[track_caller]
    pub fn resident_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let status = status.expect("the tool runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.and_then(|value| value.trim().strip_suffix("kB"));
        let kilobytes = kilobytes.and_then(|kilobytes| kilobytes.trim().parse::<u64>().ok());
        kilobytes.expect("a size") * 1024
    }

    /// Sends it a signal by its name.
    #[track_caller]
    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let status = Command::new("kill").args([name, &pid]).status();
        assert!(status.is_ok_and(|status| status.success()), "kill {name}");
    }

    /// Waits for its end without ending its input; its exit code, the rest of what it wrote, and what
    /// it told.
    #[track_caller]
    pub fn end(mut self) -> (i32, Vec<String>, String) {
        let begin = Instant::now();
        let status = loop {
            match self.child.try_wait().expect("the child can be waited for") {
                Some(status) => break status,
                None if begin.elapsed() > PATIENCE => {
                    let _ = self.child.kill();
                    panic!("no end within {PATIENCE:?}");
                }
                None => thread::sleep(Duration::from_millis(2)),
            }
        };
        let mut stderr = String::new();
        if let Some(mut pipe) = self.child.stderr.take() {
            let _ = pipe.read_to_string(&mut stderr);
        }
        let code = status.code();
        let code = code.unwrap_or_else(|| panic!("it died: {status}\n{stderr}"));
        (code, self.lines.iter().collect(), stderr)
    }

    /// Ends its input.
    pub fn close(&mut self) {
        self.stdin = None;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended, unless a test failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
