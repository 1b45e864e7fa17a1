//! A browser without a window, told what to do through a pair of pipes.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

/// What takes longer does not come.
const PATIENCE: Duration = Duration::from_secs(60);

/// A page in a browser of its own.
pub struct Browser {
    child: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
    session: Option<Value>,
    next: u64,
    /// Holds its profile.
    _folder: TempDir,
}

/// Where Chromium is, if `make setup` could install it.
pub fn installed() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let names = ["chromium-headless-shell", "chromium"];
    let mut candidates =
        std::env::split_paths(&path).flat_map(|folder| names.map(|name| folder.join(name)));
    candidates.find(|candidate| candidate.is_file())
}

impl Browser {
    /// Opens a page.
    #[track_caller]
    pub fn open(program: &std::path::Path, url: &str) -> Browser {
        let folder = tempfile::tempdir().expect("a temporary folder");
        // It listens to descriptor 3 and speaks to 4.
        let mut child = Command::new("bash")
            .args(["-c", r#"exec "$0" "$@" 3<&0 4>&1 0</dev/null 1>&2"#])
            .arg(program)
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
            ])
            .args(["--no-first-run", "--remote-debugging-pipe"])
            .arg(format!("--user-data-dir={}", folder.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the browser can be started");
        let commands = child.stdin.take().expect("a pipe");
        let answers = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut browser = Browser {
            child,
            commands,
            answers,
            session: None,
            next: 0,
            _folder: folder,
        };
        let target = browser.call("Target.createTarget", json!({"url": url}))["targetId"].clone();
        let attached = browser.call(
            "Target.attachToTarget",
            json!({"targetId": target, "flatten": true}),
        );
        browser.session = Some(attached["sessionId"].clone());
        browser
    }

    /// Calls a method of the protocol of Chromium's developer tools.
    #[track_caller]
    fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.next += 1;
        let mut command = json!({"id": self.next, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            command["sessionId"] = session.clone();
        }
        let text = format!("{command}\0");
        self.commands
            .write_all(text.as_bytes())
            .and_then(|()| self.commands.flush())
            .expect("the browser listens");
        loop {
            let mut bytes = Vec::new();
            let count = self.answers.read_until(0, &mut bytes);
            assert!(count.is_ok_and(|count| count > 0), "the browser ended");
            bytes.pop();
            let answer: Value = serde_json::from_slice(&bytes).expect("an answer in JSON");
            if answer["id"] == self.next {
                assert!(answer.get("error").is_none(), "{method}: {answer}");
                return answer["result"].clone();
            }
        }
    }

    /// The value of an expression of the page.
    #[track_caller]
    pub fn value(&mut self, expression: &str) -> Value {
        let parameters = json!({"expression": expression, "returnByValue": true});
        let result = self.call("Runtime.evaluate", parameters);
        assert!(
            result.get("exceptionDetails").is_none(),
            "{expression}: {result}"
        );
        result["result"]["value"].clone()
    }

    /// Waits until an expression is true.
    #[track_caller]
    pub fn wait_for(&mut self, expression: &str) {
        let begin = Instant::now();
        while self.value(expression) != Value::Bool(true) {
            assert!(begin.elapsed() < PATIENCE, "never true: {expression}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It ends with its pipes, too.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
