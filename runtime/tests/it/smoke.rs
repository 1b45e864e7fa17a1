//! Long streams in memory that does not grow.

use std::io::{BufReader, Read};
use std::process::Command;

use cohort_runtime::report::stats::peak_memory_bytes;
use cohort_runtime::{Batch, Config};

use crate::program::tree_session;

const INSTANCES: u64 = 1_000_000;
const CHILD: &str = "COHORT_SMOKE_CHILD";

/// Lines made as they are read; one in a thousand fails, one in a thousand is bigger.
struct Stream {
    line: u64,
    text: Vec<u8>,
    at: usize,
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.at == self.text.len() {
            if self.line == INSTANCES {
                return Ok(0);
            }
            let leaf = format!("{{\"Leaf\": [{}]}}", self.line % 10);
            let tree = match self.line % 1000 {
                0 => "{\"Leaf\": [99]}".to_owned(),
                1 => "{\"Node\": [\"Empty\", ".repeat(30) + &leaf + &"]}".repeat(30),
                _ => format!("{{\"Node\": [{leaf}, {leaf}]}}"),
            };
            self.line += 1;
            self.at = 0;
            self.text = format!("{{\"t\": {tree}}}\n").into_bytes();
        }
        let length = buffer.len().min(self.text.len() - self.at);
        buffer[..length].copy_from_slice(&self.text[self.at..self.at + length]);
        self.at += length;
        Ok(length)
    }
}

/// Peak memory is counted for a process, so the run gets one of its own.
#[test]
fn a_million_instances_run_in_steady_memory() {
    if std::env::var_os(CHILD).is_some() {
        return run_a_million();
    }
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "smoke::a_million_instances_run_in_steady_memory"])
        .args(["--nocapture", "--test-threads", "1"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&child.stdout);
    let errors = String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success(), "{output}\n{errors}");
    assert!(output.contains("1 passed"), "{output}");
}

fn run_a_million() {
    let mut session = tree_session(Config {
        batch: Batch::Count(200),
        ..Config::default()
    });
    let stream = Stream {
        line: 0,
        text: Vec::new(),
        at: 0,
    };
    let mut early = 0;
    let stats = session
        .run_stream(BufReader::new(stream), std::io::sink(), &mut |progress| {
            if early == 0 && progress.instances >= INSTANCES / 10 {
                early = peak_memory_bytes();
            }
        })
        .unwrap();
    assert_eq!(
        (stats.instances, stats.failed),
        (INSTANCES, INSTANCES / 1000)
    );
    // The system counts pages in groups, so a later peak may seem lower.
    let growth = stats.peak_memory_bytes.saturating_sub(early);
    assert!(growth < 4 << 20, "{growth} bytes more than {early}");
}
