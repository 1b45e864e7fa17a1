//! A profile as a file: Chrome's trace events, which Perfetto and others open.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::io::{self, Write};

use cohort_abi::manifest::Manifest;
use serde::Serialize;
use serde_json::{Value, json};

use super::{Event, Gauge, Profile, Span};

/// There is one process.
const PROCESS: u32 = 1;

/// An event of the format. Times are in microseconds.
#[derive(Serialize)]
struct Line<'a> {
    name: &'a str,
    #[serde(rename = "cat", skip_serializing_if = "str::is_empty")]
    category: &'static str,
    #[serde(rename = "ph")]
    phase: &'static str,
    #[serde(rename = "ts")]
    begin: f64,
    #[serde(rename = "dur", skip_serializing_if = "Option::is_none")]
    duration: Option<f64>,
    #[serde(rename = "pid")]
    process: u32,
    #[serde(rename = "tid")]
    thread: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    #[serde(skip_serializing_if = "Value::is_null")]
    args: Value,
}

impl Profile {
    /// Writes all events, those of a thread in the order in which they began and outer ones first. `title`
    /// names the program; `threads` is how many there are, and one behind them is the device.
    pub fn write(
        &self,
        manifest: &Manifest,
        title: &str,
        threads: usize,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let mut events = self.events();
        let left_out = events.left_out;
        let starts = std::mem::take(&mut events.starts);
        let mut kept = std::mem::take(&mut events.kept);
        drop(events);
        kept.extend(starts);
        kept.sort_by_key(|event| match *event {
            Event::Span {
                what,
                thread,
                begin,
                nanoseconds,
            } => (thread, begin, Reverse(nanoseconds), what.nesting()),
            Event::Gauge { at, .. } => (u32::MAX, at, Reverse(0), 0),
            Event::Instance { begin, end, .. } => (u32::MAX, begin, Reverse(end - begin), 0),
        });

        let head = json!({ "program": title, "left_out": left_out });
        write!(
            out,
            "{{\"displayTimeUnit\":\"ns\",\"otherData\":{head},\"traceEvents\":["
        )?;
        let mut lines = Lines {
            out,
            is_first: true,
        };
        lines.name("process_name", 0, &format!("Cohort: {title}"))?;
        for thread in threads_of(&kept) {
            let name = match thread {
                0 => "main".to_owned(),
                thread if thread as usize == threads => "device".to_owned(),
                thread => format!("helper {thread}"),
            };
            lines.name("thread_name", thread, &name)?;
        }
        for event in &kept {
            lines.event(manifest, event)?;
        }
        writeln!(lines.out, "\n]}}")
    }
}

fn threads_of(events: &[Event]) -> BTreeSet<u32> {
    let threads = events.iter().filter_map(|event| match event {
        Event::Span { thread, .. } => Some(*thread),
        _ => None,
    });
    threads.collect()
}

struct Lines<'a> {
    out: &'a mut dyn Write,
    is_first: bool,
}

impl Lines<'_> {
    /// Names the process or a thread.
    fn name(&mut self, what: &str, thread: u32, name: &str) -> io::Result<()> {
        self.put(&Line {
            name: what,
            phase: "M",
            args: json!({ "name": name }),
            ..line(thread, 0)
        })
    }

    fn event(&mut self, manifest: &Manifest, event: &Event) -> io::Result<()> {
        match *event {
            Event::Span {
                what,
                thread,
                begin,
                nanoseconds,
            } => {
                let (name, category, args) = describe(manifest, what);
                self.put(&Line {
                    name,
                    category,
                    phase: "X",
                    duration: Some(microseconds(nanoseconds)),
                    args,
                    ..line(thread, begin)
                })
            }
            Event::Gauge { at, gauge } => {
                let (name, args) = match gauge {
                    Gauge::RowBytes(bytes) => ("memory of rows", json!({ "bytes": bytes })),
                    Gauge::ControlBytes(bytes) => {
                        ("memory of control programs", json!({ "bytes": bytes }))
                    }
                    Gauge::Alive(count) => ("instances alive", json!({ "instances": count })),
                };
                self.put(&Line {
                    name,
                    phase: "C",
                    args,
                    ..line(0, at)
                })
            }
            Event::Instance {
                number,
                begin,
                end,
                is_failed,
            } => {
                for (phase, at) in [("b", begin), ("e", end)] {
                    self.put(&Line {
                        name: "instance",
                        category: "instance",
                        phase,
                        id: Some(number),
                        args: json!({ "number": number, "failed": is_failed }),
                        ..line(0, at)
                    })?;
                }
                Ok(())
            }
        }
    }

    fn put(&mut self, line: &Line<'_>) -> io::Result<()> {
        let separator = match std::mem::take(&mut self.is_first) {
            true => "\n",
            false => ",\n",
        };
        self.out.write_all(separator.as_bytes())?;
        serde_json::to_writer(&mut self.out, line).map_err(io::Error::from)
    }
}

fn line(thread: u32, begin: u64) -> Line<'static> {
    Line {
        name: "",
        category: "",
        phase: "",
        begin: microseconds(begin),
        duration: None,
        process: PROCESS,
        thread,
        id: None,
        args: Value::Null,
    }
}

fn microseconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e3
}

/// Name, category and what else there is to say.
fn describe(manifest: &Manifest, what: Span) -> (&str, &'static str, Value) {
    let kernel = |number: u32| manifest.kernels.get(number as usize);
    let name = |number| kernel(number).map_or("?", |kernel| kernel.name.as_str());
    match what {
        Span::Start(name) => (name, "start", Value::Null),
        Span::Read => ("read", "phase", Value::Null),
        Span::Record => ("record", "phase", Value::Null),
        Span::Flush => ("flush", "phase", Value::Null),
        Span::Schedule => ("schedule", "phase", Value::Null),
        Span::Write => ("write", "phase", Value::Null),
        Span::Decide => ("decide", "phase", Value::Null),
        Span::Backward => ("backward", "phase", Value::Null),
        Span::Launch {
            kernel: number,
            calls,
            rows,
        } => {
            let place = kernel(number).map(|kernel| &kernel.location);
            let args = json!({ "kernel": number, "calls": calls, "rows": rows, "place": place });
            (name(number), "launch", args)
        }
        Span::Share {
            kernel: number,
            items,
        } => (
            name(number),
            "share",
            json!({ "kernel": number, "work_items": items }),
        ),
    }
}
