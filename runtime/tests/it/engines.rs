//! Threads with engines of their own, where tensors decide: the same records, whoever runs an instance.

use std::io::{self, BufRead, BufReader, Read, Write};

use cohort_runtime::{Batch, Config, Error, Limits};

use crate::program::run;
use crate::walk::*;

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

/// Instances that decide many times, few times and never, and each kind of those that fail.
fn mixed(count: i32) -> String {
    let kinds = [
        WALK,
        NEVER_DECIDE,
        NAN,
        RECURSE,
        WALK,
        WALK_FOREVER,
        DECIDE_BY_INPUT,
        FAIL_LATER,
        WALK,
        ALLOCATE_FOREVER,
        RECURSE_FOREVER,
        WALK,
        RECORD_FOREVER,
    ];
    (0..count)
        .map(|seed| match seed % 29 {
            7 => "{\"id\": \"wrong\", \"seed\": \"?\"}\n".to_owned(),
            _ => line(seed, kinds[seed as usize % kinds.len()]),
        })
        .collect()
}

const BATCHES: [Batch; 8] = [
    Batch::Count(1),
    Batch::Count(2),
    Batch::Count(7),
    Batch::All,
    Batch::InFlight(1),
    Batch::InFlight(2),
    Batch::InFlight(9),
    Batch::InFlight(1000),
];

#[test]
fn there_are_engines_for_many_instances_and_one_for_few() {
    for (count, are_divided) in [(31, false), (64, true), (256, true)] {
        let input: String = (0..count).map(|seed| line(seed, WALK)).collect();
        let flushes = |threads| {
            let mut session = walk_session(config(Batch::Count(256), threads));
            let (lines, stats) = run(&mut session, &input);
            let mut output = Vec::new();
            let repeated = session
                .benchmark(input.as_bytes(), &mut output, 2, false, &mut |_| {})
                .unwrap();
            let output = String::from_utf8(output).unwrap();
            assert_eq!(output.lines().collect::<Vec<_>>(), lines);
            assert_eq!(repeated.repetitions.len(), 2);
            assert_eq!(
                (repeated.instances, repeated.rows, repeated.suspensions),
                (stats.instances, stats.rows, stats.suspensions)
            );
            (lines, stats.flushes)
        };
        let ((alone, one), (beside, two)) = (flushes(1), flushes(2));
        assert_eq!(alone, beside);
        assert_eq!(one < two, are_divided, "{count}: {one} and {two} flushes");
    }
}

#[test]
fn what_fails_fails_alone_and_the_same() {
    for count in [1, 2, 13, 150] {
        let input = mixed(count);
        let (reference, of_one) = run(&mut walk_session(config(Batch::Count(5), 1)), &input);
        for threads in [2, 3, 5] {
            for batch in BATCHES {
                let (lines, stats) = run(&mut walk_session(config(batch, threads)), &input);
                assert_eq!(lines, reference, "{batch:?} on {threads} threads");
                assert_eq!(
                    (stats.instances, stats.failed),
                    (of_one.instances, of_one.failed)
                );
            }
        }
    }
}

#[test]
fn too_little_memory_or_too_few_buckets_change_nothing() {
    let input: String = (0..300).map(|seed| line(seed, WALK)).collect();
    let (reference, _) = run(&mut walk_session(config(Batch::Count(10), 1)), &input);
    for batch in BATCHES {
        for (batch_memory, max_buckets) in [(1_000, 10_000), (1 << 30, 160)] {
            let mut small = walk_session(Config {
                batch_memory,
                max_buckets,
                ..config(batch, 2)
            });
            let (lines, _) = run(&mut small, &input);
            assert_eq!(lines, reference, "{batch:?}, {batch_memory}, {max_buckets}");
        }
    }
}

/// Takes `bytes` bytes.
struct Small(usize);

impl Write for Small {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.checked_sub(bytes.len()) {
            Some(left) => self.0 = left,
            None => return Err(io::ErrorKind::StorageFull.into()),
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Has some bytes, and then an error.
struct Torn<'a>(&'a [u8]);

impl Read for Torn<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer)? {
            0 => Err(io::ErrorKind::ConnectionReset.into()),
            bytes => Ok(bytes),
        }
    }
}

#[test]
fn a_run_that_cannot_go_on_ends_and_another_one_is_as_ever() {
    let input = mixed(300);
    for batch in BATCHES {
        let mut session = walk_session(config(batch, 2));
        let (reference, _) = run(&mut session, &input);
        let whole = session.run_stream(input.as_bytes(), Small(5_000), &mut |_| {});
        assert!(matches!(whole, Err(Error::WriteOutput(_))), "{whole:?}");
        let torn = BufReader::new(Torn(input.as_bytes()));
        let whole = session.run_stream(torn, io::sink(), &mut |_| {});
        assert!(matches!(whole, Err(Error::ReadInput(_))), "{whole:?}");
        let (again, _) = run(&mut session, &input);
        assert_eq!(again, reference, "{batch:?}");
    }
}

/// Gives a few bytes at a time.
struct Slow<'a>(&'a [u8]);

impl Read for Slow<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = buffer.len().min(100);
        self.0.read(&mut buffer[..length])
    }
}

#[test]
fn a_stream_is_told_of_as_it_goes_on() {
    let input = mixed(500);
    let (reference, _) = run(&mut walk_session(config(Batch::Count(8), 1)), &input);
    for batch in [Batch::Count(8), Batch::InFlight(8)] {
        let (mut output, mut told) = (Vec::new(), Vec::new());
        let stream = BufReader::with_capacity(100, Slow(input.as_bytes()));
        let stats = walk_session(config(batch, 2))
            .run_stream(stream, &mut output, &mut |progress| {
                told.push((progress.instances, progress.bytes_read));
            })
            .unwrap();
        let lines: Vec<String> = output.lines().map(Result::unwrap).collect();
        assert_eq!(lines, reference);
        assert!(told.is_sorted(), "{told:?}");
        assert_eq!(
            told.last(),
            Some(&(stats.instances, input.len() as u64)),
            "{batch:?}"
        );
    }
}
