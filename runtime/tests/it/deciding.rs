//! Programs whose path depends on tensors: the same bits however instances run together.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use cohort_runtime::abi::OperandRef;
use cohort_runtime::{Batch, Config, Error, Limits, Policy, Program, Session, Weights};

use crate::program::{run, tree_session, try_run};
use crate::walk::*;

const KINDS: [i32; 4] = [WALK, NEVER_DECIDE, RECURSE, DECIDE_BY_INPUT];

fn lines(count: i32) -> String {
    (0..count)
        .map(|seed| line(seed, KINDS[seed as usize % 7 % 4]))
        .collect()
}

fn config(batch: Batch, threads: usize) -> Config {
    Config {
        batch,
        threads,
        limits: Limits {
            max_depth: 2000,
            max_nodes: 1000,
            max_memory: 1 << 20,
            max_steps: 100,
            max_time: None,
        },
        ..Config::default()
    }
}

fn output(line: &str) -> (Vec<u32>, i64) {
    let value: serde_json::Value = serde_json::from_str(line).unwrap();
    let numbers = value["output"][0].as_array().unwrap().iter();
    (
        numbers
            .map(|number| number.to_string().parse::<f32>().unwrap().to_bits())
            .collect(),
        value["output"][1].as_i64().unwrap(),
    )
}

#[test]
fn results_are_those_of_the_program() {
    let (lines, stats) = run(&mut walk_session(config(Batch::Count(64), 1)), &lines(200));
    assert_eq!((stats.instances, stats.failed), (200, 0));
    for (seed, line) in (0..).zip(&lines) {
        let (point, steps) = expected(seed, KINDS[seed as usize % 7 % 4]);
        assert_eq!(
            output(line),
            (point.map(f32::to_bits).to_vec(), i64::from(steps))
        );
    }
    assert!(stats.suspensions > 1000, "{}", stats.suspensions);
    // All instances of a batch share its flushes.
    assert!(stats.flushes < 4 * 100, "{}", stats.flushes);
}

#[test]
fn neither_batches_nor_flights_nor_threads_change_a_bit() {
    let input = lines(150);
    let (reference, _) = run(&mut walk_session(config(Batch::Unbatched, 1)), &input);
    for threads in [1, 2] {
        for batch in [
            Batch::Count(1),
            Batch::Count(7),
            Batch::All,
            Batch::InFlight(1),
            Batch::InFlight(3),
            Batch::InFlight(64),
            Batch::InFlight(1000),
        ] {
            let (output, _) = run(&mut walk_session(config(batch, threads)), &input);
            assert_eq!(output, reference, "{batch:?} on {threads} threads");
        }
    }
}

#[test]
fn no_scheduler_changes_a_bit() {
    let input = lines(150);
    let (reference, _) = run(&mut walk_session(config(Batch::Unbatched, 1)), &input);
    for scheduler in [Policy::Agenda, Policy::Lookahead, Policy::Instances] {
        for (batch, gather_fusion) in [(Batch::Count(7), true), (Batch::All, false)] {
            let mut session = walk_session(Config {
                scheduler,
                gather_fusion,
                ..config(batch, 2)
            });
            let (output, _) = run(&mut session, &input);
            assert_eq!(output, reference, "{scheduler:?}, {batch:?}");
        }
    }
}

/// Runs an instance between others; gives its record, after a check that it is the same however
/// they run, and that the others' bits do not change.
fn failure_of(kind: i32) -> serde_json::Value {
    let good: Vec<String> = (0..6)
        .map(|seed| line(seed, KINDS[seed as usize % 4]))
        .collect();
    let input = good[..3].concat() + &line(11, kind) + &good[3..].concat() + &line(12, kind);
    let (alone, _) = run(&mut walk_session(config(Batch::All, 1)), &good.concat());
    let mut records = Vec::new();
    for batch in [
        Batch::All,
        Batch::InFlight(3),
        Batch::Count(2),
        Batch::Count(1),
        Batch::Unbatched,
    ] {
        let (lines, stats) = run(&mut walk_session(config(batch, 1)), &input);
        assert_eq!((stats.instances, stats.failed), (8, 2));
        for (index, line) in alone.iter().enumerate() {
            let with_others = &lines[if index < 3 { index } else { index + 1 }];
            assert_eq!(output(with_others), output(line));
        }
        records.push((lines[3].clone(), lines[7].clone()));
    }
    assert!(
        records.iter().all(|record| *record == records[0]),
        "{records:?}"
    );
    let record: serde_json::Value = serde_json::from_str(&records[0].0).unwrap();
    record["error"].clone()
}

#[test]
fn failures_stay_alone() {
    for (kind, expected, message) in [
        (
            WALK_FOREVER,
            "step_limit",
            "needs more than 100 turns of loops and calls; raise the limit with --max-steps",
        ),
        (
            NAN,
            "nan_decision",
            "a tensor that decides is not a number (NaN) (walk.coh:20:8)",
        ),
        (
            FAIL_LATER,
            "index_out_of_range",
            "index 7 is out of range for length 3 (walk.coh:9:9)",
        ),
        (
            RECORD_FOREVER,
            "node_limit",
            "needs more than 1000 kernel calls (walk.coh:step); raise the limit with --max-nodes",
        ),
        (
            ALLOCATE_FOREVER,
            "memory_limit",
            "needs more than 1048576 bytes; raise the limit with --max-memory",
        ),
    ] {
        let error = failure_of(kind);
        assert_eq!(
            (&error["kind"], &error["message"]),
            (&expected.into(), &message.into())
        );
    }
}

#[test]
fn recursion_is_limited_across_decisions() {
    let error = failure_of(RECURSE_FOREVER);
    assert!(
        ["node_limit", "depth_limit"].contains(&error["kind"].as_str().unwrap()),
        "{error}"
    );
    let mut deep = config(Batch::All, 1);
    deep.limits.max_nodes = 100_000;
    let input = line(1, RECURSE_FOREVER) + &line(2, WALK);
    let (lines, _) = run(&mut walk_session(deep), &input);
    assert!(
        lines[0].contains("recursion went deeper than 2000 calls"),
        "{}",
        lines[0]
    );
    assert_eq!(output(&lines[1]).0, expected(2, WALK).0.map(f32::to_bits));
}

#[test]
fn a_forged_decision_is_an_internal_error() {
    let mut session = walk_session(config(Batch::All, 1));
    let input = line(1, WALK) + &line(1, FORGE) + &line(2, WALK);
    let error = try_run(&mut session, input.as_bytes()).unwrap_err();
    assert!(matches!(error, Error::Internal(_)), "{error}");
    // The session is not hurt.
    let (lines, _) = run(&mut session, &line(1, WALK));
    assert_eq!(output(&lines[0]).0, expected(1, WALK).0.map(f32::to_bits));
}

#[test]
fn neither_order_nor_company_change_a_bit() {
    let input = lines(40);
    let (reference, _) = run(&mut walk_session(config(Batch::InFlight(8), 1)), &input);
    let mut twice: Vec<&str> = input.lines().rev().collect();
    twice.extend(input.lines());
    let (lines, _) = run(
        &mut walk_session(config(Batch::InFlight(8), 1)),
        &twice.join("\n"),
    );
    for (index, line) in reference.iter().enumerate() {
        assert_eq!(output(&lines[39 - index]), output(line));
        assert_eq!(output(&lines[40 + index]), output(line));
    }
}

#[test]
fn a_flight_stays_full() {
    let input: String = (0..400).map(|seed| line(seed, WALK)).collect();
    let (_, batches) = run(&mut walk_session(config(Batch::Count(20), 1)), &input);
    let (_, flight) = run(&mut walk_session(config(Batch::InFlight(20), 1)), &input);
    assert_eq!(flight.rows, batches.rows);
    assert_eq!(flight.suspensions, batches.suspensions);
    // A batch waits for its slowest instance.
    assert!(
        2 * flight.flushes < batches.flushes,
        "{} {}",
        flight.flushes,
        batches.flushes
    );
    assert!(
        flight.mean_rows_per_launch > 1.1 * batches.mean_rows_per_launch,
        "{} {}",
        flight.mean_rows_per_launch,
        batches.mean_rows_per_launch
    );
}

/// Lines made as they are read.
struct Stream(std::ops::Range<i32>, Vec<u8>);

impl std::io::Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        while self.1.len() < buffer.len() {
            match self.0.next() {
                // One in a thousand recurses, one fails, one waits long.
                Some(seed) => self.1.extend_from_slice(
                    line(
                        seed,
                        [RECURSE, NAN, WALK_FOREVER]
                            .get(seed as usize % 1000)
                            .copied()
                            .unwrap_or(WALK),
                    )
                    .as_bytes(),
                ),
                None => break,
            }
        }
        let length = buffer.len().min(self.1.len());
        buffer[..length].copy_from_slice(&self.1[..length]);
        self.1.drain(..length);
        Ok(length)
    }
}

#[test]
fn a_stream_in_flight_uses_steady_memory() {
    let mut peaks = Vec::new();
    for count in [5_000, 100_000] {
        let mut session = walk_session(config(Batch::InFlight(32), 1));
        let stream = std::io::BufReader::with_capacity(4096, Stream(0..count, Vec::new()));
        let stats = session
            .run_stream(stream, std::io::sink(), &mut |_| {})
            .unwrap();
        assert_eq!(stats.instances, count as u64);
        assert_eq!(stats.failed, 2 * count as u64 / 1000);
        assert!(stats.rows > 10 * count as u64, "{}", stats.rows);
        peaks.push((stats.peak_rows, stats.peak_buckets));
    }
    // What the longest instance keeps alive, and no more however many there are.
    for (rows, buckets) in peaks {
        assert!(
            rows < 32 * 3 * 200 && buckets < 2000,
            "{rows} rows, {buckets} buckets"
        );
    }
}

#[test]
fn full_memory_stops_admission_and_changes_nothing() {
    let input = lines(300);
    let (reference, free) = run(&mut walk_session(config(Batch::InFlight(100), 1)), &input);
    let mut small = walk_session(Config {
        batch_memory: 1_000,
        ..config(Batch::InFlight(100), 1)
    });
    let (lines, stats) = run(&mut small, &input);
    assert_eq!(lines, reference);
    assert!(
        4 * stats.peak_rows < free.peak_rows,
        "{} {}",
        stats.peak_rows,
        free.peak_rows
    );
}

#[test]
fn an_instance_that_finds_no_bucket_left_runs_again_alone() {
    // The longest of these needs about a hundred buckets by itself.
    let input = lines(60);
    let (reference, _) = run(&mut walk_session(config(Batch::InFlight(10), 1)), &input);
    for batch in [Batch::InFlight(10), Batch::Count(10)] {
        let mut small = walk_session(Config {
            max_buckets: 160,
            ..config(batch, 1)
        });
        let (lines, stats) = run(&mut small, &input);
        assert_eq!(lines, reference);
        assert!(stats.peak_buckets <= 160, "{}", stats.peak_buckets);
    }
    // One that needs more even alone fails, whoever it runs with.
    let input = line(1, WALK) + &line(0, WALK_FOREVER) + &line(2, WALK);
    let mut records = Vec::new();
    for batch in [Batch::InFlight(10), Batch::InFlight(1), Batch::All] {
        let mut small = walk_session(Config {
            max_buckets: 100,
            ..config(batch, 1)
        });
        let (lines, stats) = run(&mut small, &input);
        assert_eq!(stats.failed, 1);
        assert!(lines[1].contains("node_limit"), "{}", lines[1]);
        records.push(lines);
    }
    assert!(records.iter().all(|lines| *lines == records[0]));
}

/// How often [`slow_begin`] was called.
static SLOW_LAUNCHES: AtomicU64 = AtomicU64::new(0);

/// The kernel `begin`, which takes its time.
unsafe extern "C" fn slow_begin(
    first: i64,
    end: i64,
    operands: *const OperandRef,
    results: *const *mut c_void,
    constants: *const *const c_void,
    scratch: *mut c_void,
) {
    SLOW_LAUNCHES.fetch_add(1, Ordering::Relaxed);
    std::thread::sleep(Duration::from_millis(200));
    // SAFETY: the caller's promise.
    unsafe { begin(first, end, operands, results, constants, scratch) }
}

#[test]
fn the_time_of_an_instance_that_is_over_is_not_that_of_others() {
    let mut functions = walk_functions();
    for (name, function) in &mut functions.0 {
        if *name == "begin" {
            *function = slow_begin as *const ();
        }
    }
    let program = Program::new(walk_manifest(), Box::new(functions)).unwrap();
    let mut config = config(Batch::All, 1);
    config.limits.max_steps = u64::MAX;
    config.limits.max_time = Some(Duration::from_secs(1));
    let mut session = Session::new(program, &Weights::none(), config).unwrap();
    let (lines, _) = run(&mut session, &(line(1, SPIN) + &line(2, WALK)));
    assert!(lines[0].contains("time_limit"), "{}", lines[0]);
    let (point, steps) = expected(2, WALK);
    assert_eq!(
        output(&lines[1]),
        (point.map(f32::to_bits).to_vec(), i64::from(steps))
    );
    // The flush was not given up for the first one, so the second one did not begin again.
    assert_eq!(SLOW_LAUNCHES.load(Ordering::Relaxed), 1);
}

#[test]
fn a_limit_of_time_may_be_longer_than_any_time() {
    let input = lines(20);
    for batch in [Batch::Count(4), Batch::InFlight(4), Batch::Unbatched] {
        let (reference, _) = run(&mut walk_session(config(batch, 1)), &input);
        let mut config = config(batch, 1);
        config.limits.max_time = Some(Duration::MAX);
        assert_eq!(run(&mut walk_session(config), &input).0, reference);
        let trees = "{\"t\": {\"Leaf\": [3]}}\n".repeat(5);
        let (_, stats) = run(&mut tree_session(config), &trees);
        assert_eq!(stats.failed, 0);
    }
}

#[test]
fn an_instance_that_does_not_begin_has_computed_nothing() {
    let input = line(3, WALK) + "{\"seed\": \"three\", \"kind\": 0, \"x\": 0.5}\n";
    for batch in [Batch::Count(1), Batch::InFlight(1)] {
        let (lines, stats) = run(&mut walk_session(config(batch, 1)), &input);
        assert!(lines[1].contains("bad_input"), "{}", lines[1]);
        assert!(stats.rows > 0 && stats.useful_rows_share == 1.0);
    }
}

#[test]
fn a_benchmark_repeats_and_writes_once() {
    let input = lines(100);
    for batch in [Batch::Count(7), Batch::InFlight(7), Batch::Unbatched] {
        let mut session = walk_session(config(batch, 1));
        let (reference, plain) = run(&mut session, &input);
        let mut output = Vec::new();
        let stats = session
            .benchmark(input.as_bytes(), &mut output, 2, false, &mut |_| {})
            .unwrap();
        let output = String::from_utf8(output).unwrap();
        assert_eq!(output.lines().collect::<Vec<_>>(), reference);
        assert_eq!(stats.repetitions.len(), 2);
        assert_eq!(
            (stats.rows, stats.suspensions),
            (plain.rows, plain.suspensions)
        );
    }
}
