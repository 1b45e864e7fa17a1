//! What is kept from batch to batch changes rows that are computed, and nothing else.

use std::ffi::c_void;

use cohort_runtime::abi::manifest::*;
use cohort_runtime::abi::{Context, Handle, OperandRef};
use cohort_runtime::symbols::{cohort_force, cohort_record};
use cohort_runtime::{Batch, Config, Policy, Program, Session};

use crate::program::{
    FORGE_A_HANDLE, Functions, Tree, WIDTH, WORDS, run, tree_functions, tree_manifest,
    tree_weights, try_run,
};

/// Bytes of a row of the tree program.
const ROW: u64 = 4 * WIDTH as u64;

/// The first elements of a row, `* 0.125`: all of them for the tree program whose leaves have nothing but
/// their words.
unsafe extern "C" fn scaled<const COLUMNS: usize>(
    begin: i64,
    end: i64,
    operands: *const OperandRef,
    results: *const *mut c_void,
    _constants: *const *const c_void,
    _scratch: *mut c_void,
) {
    // SAFETY: operands and results as the manifest lists them.
    unsafe {
        let (table, out) = (*operands, (*results).cast::<f32>());
        for row in begin as usize..end as usize {
            let from = (table.base as *const f32).add(*table.index.add(row) as usize * WIDTH);
            for column in 0..COLUMNS {
                *out.add(row * COLUMNS + column) = *from.add(column) * 0.125;
            }
        }
    }
}

fn session(config: Config) -> Session {
    let mut manifest = tree_manifest();
    manifest.kernels[0].operands.truncate(1);
    let mut functions = tree_functions();
    functions.0.retain(|(name, _)| *name != "leaf");
    functions.0.push(("leaf", scaled::<WIDTH> as *const ()));
    let program = Program::new(manifest, Box::new(functions)).unwrap();
    Session::new(program, &tree_weights(), config).unwrap()
}

/// Trees of words, some of which there are not.
fn lines(count: usize) -> String {
    let mut seed = 21;
    let mut tree = |index: usize| match index % 7 {
        3 => format!(
            "{{\"Node\": [{{\"Leaf\": [{}]}}, {{\"Leaf\": [99]}}]}}",
            index % WORDS
        ),
        5 => format!("{{\"Leaf\": [{}]}}", index % WORDS),
        _ => Tree::random(&mut seed, 1 + (index as u32 * 5) % 40).json(),
    };
    let line = |index| format!("{{\"id\": {index}, \"t\": {}}}\n", tree(index));
    (0..count).map(line).collect()
}

#[test]
fn keeping_changes_no_bit() {
    let input = lines(120);
    let (reference, alone) = run(
        &mut session(Config {
            batch: Batch::Unbatched,
            ..Config::default()
        }),
        &input,
    );
    assert!(alone.failed > 10 && alone.kept_calls == 0);
    for (keep_memory, most) in [(64 << 20, WORDS as u64), (3 * ROW, 3), (ROW - 1, 0), (0, 0)] {
        for (batch, threads) in [(Batch::Count(1), 1), (Batch::Count(7), 2), (Batch::All, 3)] {
            for scheduler in [Policy::Depth, Policy::Agenda, Policy::Lookahead] {
                for gather_fusion in [true, false] {
                    let mut session = session(Config {
                        batch,
                        threads,
                        keep_memory,
                        scheduler,
                        gather_fusion,
                        ..Config::default()
                    });
                    let (output, cold) = run(&mut session, &input);
                    assert_eq!(output, reference, "{keep_memory} {batch:?} {scheduler:?}");
                    assert_eq!(cold.kept_bytes, cold.kept_calls * ROW);
                    assert!(cold.kept_bytes <= keep_memory);
                    // What is kept serves the next run as well.
                    let (output, warm) = run(&mut session, &input);
                    assert_eq!(output, reference, "{keep_memory} {batch:?} {scheduler:?}");
                    if threads > 1 {
                        // Threads keep calls of their own, and which runs what is not known.
                        assert!(warm.kept_bytes <= keep_memory);
                        continue;
                    }
                    let saved = cold.kernels[0].rows - warm.kernels[0].rows;
                    assert_eq!((saved, warm.kept_calls), (most, most));
                    if most == WORDS as u64 {
                        assert_eq!(warm.kernels[0].rows, 0);
                        assert!(warm.shared_calls > 100, "{}", warm.shared_calls);
                    }
                }
            }
        }
    }
}

#[test]
fn what_a_batch_did_not_compute_is_not_kept() {
    let mut session = session(Config::default());
    let tree = |word: i32, other: i32| {
        format!("{{\"t\": {{\"Node\": [{{\"Leaf\": [{word}]}}, {{\"Leaf\": [{other}]}}]}}}}\n")
    };
    let (_, stats) = run(&mut session, &tree(1, 2));
    assert_eq!(stats.kept_calls, 2);
    // The flush of this batch fails, after the words 3 and 4 were recorded.
    let forged = [tree(3, 4), tree(1, FORGE_A_HANDLE)].concat();
    assert!(try_run(&mut session, forged.as_bytes()).is_err());
    let (output, stats) = run(&mut session, &[tree(4, 1), tree(2, 3)].concat());
    assert_eq!((stats.kernels[0].rows, stats.kept_calls), (2, 4));
    let (reference, _) = run(
        &mut self::session(Config::default()),
        &[tree(4, 1), tree(2, 3)].concat(),
    );
    assert_eq!(output, reference);
}

#[test]
fn a_benchmark_is_cold_unless_it_is_to_be_warm() {
    let input = lines(50);
    let benchmark = |is_warm| {
        let mut session = session(Config {
            batch: Batch::Count(5),
            ..Config::default()
        });
        let mut none = std::io::sink();
        session
            .benchmark(input.as_bytes(), &mut none, 2, is_warm, &mut |_| {})
            .unwrap()
    };
    let (cold, warm) = (benchmark(false), benchmark(true));
    assert_eq!(
        (cold.kernels[0].rows, warm.kernels[0].rows),
        (WORDS as u64, 0)
    );
    assert_eq!(cold.kept_calls, warm.kept_calls);
}

/// Decides by the first element of a word's row, from one word to the next, until it is above 0.05;
/// gives that word and how many there were.
unsafe extern "C" fn search(context: *mut Context, arguments: *const u64, results: *mut u64) {
    // SAFETY: one argument, a word; two results.
    unsafe {
        let (mut word, mut steps) = (arguments.read() % WORDS as u64, 1);
        loop {
            let row = Handle::new(1, 0, word as u32).0;
            let score = cohort_record(context, 0, &row);
            if f32::from_bits(cohort_force(context, score, 0)) > 0.05 {
                results.write(score);
                results.add(1).write(steps);
                return;
            }
            (word, steps) = ((word + 3) % WORDS as u64, steps + 1);
        }
    }
}

fn search_session(config: Config) -> Session {
    let mut manifest = tree_manifest();
    manifest.entry = "search".to_owned();
    manifest.adts.clear();
    manifest.arguments[0].ty = Type::Scalar(Elem::I32);
    manifest.row_pools.push(RowPool {
        elem: Elem::F32,
        shape: vec![],
    });
    manifest.result = Type::Tuple(vec![Type::Tensor { pool: 1 }, Type::Scalar(Elem::I32)]);
    manifest.kernels.truncate(1);
    manifest.kernels[0].operands.truncate(1);
    manifest.kernels[0].results = vec![1];
    manifest.forces = vec![Force {
        location: "search.coh:1:1".to_owned(),
        pool: 1,
    }];
    manifest.params.truncate(1);
    let functions = Functions(vec![
        ("search", search as *const ()),
        ("leaf", scaled::<1> as *const ()),
    ]);
    let program = Program::new(manifest, Box::new(functions)).unwrap();
    let config = Config {
        allow_unused_weights: true,
        ..config
    };
    Session::new(program, &tree_weights(), config).unwrap()
}

#[test]
fn instances_decide_by_what_is_kept() {
    let lines: String = (0..60)
        .map(|index| format!("{{\"t\": {}}}\n", index % 13))
        .collect();
    let (reference, alone) = run(
        &mut search_session(Config {
            batch: Batch::Unbatched,
            ..Config::default()
        }),
        &lines,
    );
    assert!(alone.rows > 80, "{}", alone.rows);
    for keep_memory in [1 << 20, 4 * 3, 0] {
        for batch in [
            Batch::Count(1),
            Batch::Count(9),
            Batch::InFlight(5),
            Batch::All,
        ] {
            let mut session = search_session(Config {
                batch,
                keep_memory,
                ..Config::default()
            });
            let (output, cold) = run(&mut session, &lines);
            assert_eq!(output, reference, "{batch:?} {keep_memory}");
            let (output, warm) = run(&mut session, &lines);
            assert_eq!(output, reference, "{batch:?} {keep_memory}");
            if keep_memory > 100 {
                // Nothing waits any more.
                assert_eq!(
                    (cold.rows, warm.rows, warm.suspensions),
                    (WORDS as u64, 0, 0)
                );
            }
        }
    }
}
