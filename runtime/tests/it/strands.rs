//! Strands of an instance, as a compiler would make them: some wait for others of their scope.

use cohort_runtime::abi::{Context, Failure};
use cohort_runtime::symbols::*;
use cohort_runtime::{Batch, Config, Program, Session, Weights};

use crate::program::run;
use crate::walk::*;

const BEGIN: u32 = 0;
const STEP: u32 = 1;
const SCORE: u32 = 2;
const JOIN: u32 = 5;

/// Turns of each strand: two long ways, of which one begins with few turns and the other ends with them.
const TURNS: [u64; 4] = [9, 2, 2, 9];
const STRANDS: usize = TURNS.len();
/// Instances of this seed fail in a strand that others wait for.
const FAILS: u64 = 13;

unsafe fn call(context: *mut Context, kernel: u32, operands: &[u64]) -> u64 {
    // SAFETY: as many operands as the kernel has.
    unsafe { cohort_record(context, kernel, operands.as_ptr()) }
}

/// The scope: the count, the seed, and what each strand hands over.
unsafe extern "C" fn strand(context: *mut Context, scope: *mut u64, index: i64) {
    // SAFETY: the scope is the caller's and has these slots; kernels and forces are the manifest's.
    unsafe {
        let (seed, index) = (scope.add(1).read(), index as usize);
        let mut x = match index {
            0 | 1 => call(context, BEGIN, &[seed + index as u64]),
            _ => {
                cohort_await(context, scope, index as i64 - 2);
                // It has ended, however often one waits for it.
                cohort_await(context, scope, index as i64 - 2);
                scope.add(index).read()
            }
        };
        for turn in 0..TURNS[index] {
            x = call(context, STEP, &[x]);
            let score = call(context, SCORE, &[x]);
            if f32::from_bits(cohort_force(context, score, 0)) < 0.0 {
                x = call(context, STEP, &[x]);
            }
            if seed == FAILS && (index, turn) == (1, 1) {
                cohort_fail(context, Failure::IndexOutOfRange as u32, 7, 3, 0);
            }
        }
        scope.add(2 + index).write(x);
    }
}

unsafe extern "C" fn chains(context: *mut Context, arguments: *const u64, results: *mut u64) {
    let mut scope = [0_u64; 2 + STRANDS];
    // SAFETY: three arguments, two results; the scope lives until it is joined.
    unsafe {
        let scope = scope.as_mut_ptr();
        scope.add(1).write(arguments.read() & 0xffff_ffff);
        for index in 0..STRANDS as i64 {
            // The last one runs here, as in compiled code.
            let is_last = index + 1 == STRANDS as i64;
            if is_last || cohort_fork(context, strand, scope, index) == 0 {
                strand(context, scope, index);
            }
        }
        cohort_join(context, scope);
        let ends = [scope.add(4).read(), scope.add(5).read()];
        results.write(call(context, JOIN, &ends));
        results.add(1).write(0);
    }
}

fn session(batch: Batch, threads: usize) -> Session {
    let mut manifest = walk_manifest();
    manifest.entry = "chains".to_owned();
    let mut functions = walk_functions();
    functions.0.push(("chains", chains as *const ()));
    let program = Program::new(manifest, Box::new(functions)).unwrap();
    let config = Config {
        batch,
        threads,
        ..Config::default()
    };
    Session::new(program, &Weights::none(), config).unwrap()
}

fn lines(seeds: std::ops::Range<i32>) -> String {
    seeds.map(|seed| line(seed, WALK)).collect()
}

#[test]
fn a_strand_waits_for_those_that_it_needs_alone() {
    let (_, stats) = run(&mut session(Batch::All, 1), &lines(0..1));
    // Two ways of eleven turns side by side, and what joins them.
    assert_eq!((stats.flushes, stats.suspensions), (12, 22));
    let (_, alone) = run(&mut session(Batch::Unbatched, 1), &lines(0..1));
    assert_eq!(alone.suspensions, 22);
}

#[test]
fn strands_that_wait_for_others_change_no_bit() {
    let input = lines(0..40);
    let (reference, stats) = run(&mut session(Batch::Unbatched, 1), &input);
    assert_eq!((stats.instances, stats.failed), (40, 1));
    for threads in [1, 2] {
        for batch in [
            Batch::Count(1),
            Batch::Count(7),
            Batch::All,
            Batch::InFlight(3),
        ] {
            let (output, stats) = run(&mut session(batch, threads), &input);
            assert_eq!(output, reference, "{batch:?} on {threads} threads");
            assert_eq!(stats.failed, 1);
        }
    }
}

#[test]
fn where_enough_wait_strands_run_in_their_turn() {
    let input = lines(20..120);
    let run = |batch| {
        let (output, stats) = run(&mut session(batch, 1), &input);
        let strands = stats.strands.unwrap();
        (output, strands.side_by_side, strands.in_turn, strands.why)
    };
    // Of four strands the caller runs the last one itself.
    let (reference, side_by_side, in_turn, why) = run(Batch::Count(1));
    assert_eq!((side_by_side, in_turn), (300, 0), "{why}");
    for batch in [Batch::All, Batch::InFlight(80)] {
        let (output, side_by_side, in_turn, why) = run(batch);
        assert_eq!(output, reference, "{batch:?}");
        assert_eq!(side_by_side + in_turn, 300);
        assert!(in_turn > 150, "{why}");
    }
}
