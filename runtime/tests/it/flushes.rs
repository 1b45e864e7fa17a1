//! Whole flushes as one launch on the simulated GPU: the same bits, and a barrier that is missing or that not
//! all blocks come to is noticed.

use std::ffi::c_void;

use cohort_runtime::abi::gpu::flush::{HEADER_WORDS, LAUNCH_WORDS, STEP_WORDS};
use cohort_runtime::abi::gpu::{GpuFlush, SimFn};
use cohort_runtime::device::sim::{cohort_sim_barrier, cohort_sim_grid_barrier};
use cohort_runtime::device::{Faults, Sim};
use cohort_runtime::{Batch, Config, Policy, Program, Session};

use crate::devices::{THREADS, config, leaf_sim, node_sim, tree_program, trees};
use crate::program::*;

/// By their numbers.
const FUNCTIONS: [(&str, SimFn); 2] = [("node_sim", node_sim), ("leaf_sim", leaf_sim)];

/// Runs a flush as compiled code does; `is_waited` says of a block and a step whether it waits for all.
///
/// # Safety
///
/// There is a schedule for these functions at the address in the arguments.
unsafe fn flush_with(
    arguments: *const u64,
    block: u64,
    thread: u64,
    shared: *mut c_void,
    context: *mut c_void,
    is_waited: impl Fn(u64, usize) -> bool,
) {
    // SAFETY: the caller's promise; all addresses are within the schedule.
    unsafe {
        let schedule = *arguments as *const u32;
        let word = |at: usize| *schedule.add(at) as usize;
        let (all, steps) = (word(1), word(2));
        for step in 0..steps {
            if step > 0 && is_waited(block, step) {
                cohort_sim_grid_barrier(context);
            }
            let record = HEADER_WORDS + STEP_WORDS * step;
            let (mut launch, blocks) = (word(record), word(record + 1));
            let mut begin = 0;
            for at in (block as usize..blocks).step_by(all) {
                let record = |launch| HEADER_WORDS + STEP_WORDS * steps + LAUNCH_WORDS * launch;
                while at >= begin + word(record(launch) + 1) {
                    begin += word(record(launch) + 1);
                    launch += 1;
                }
                let [function, columns, list] = [0, 2, 3].map(|field| word(record(launch) + field));
                let (x, y) = ((at - begin) % columns, (at - begin) / columns);
                let list = schedule.cast::<u8>().add(list).cast();
                FUNCTIONS[function].1(list, x as u64, y as u64, thread, shared, context);
                cohort_sim_barrier(context);
            }
        }
    }
}

/// A function for the simulator that runs a flush.
macro_rules! flush {
    ($name:ident, $is_waited:expr) => {
        unsafe extern "C" fn $name(
            arguments: *const u64,
            block: u64,
            _: u64,
            thread: u64,
            shared: *mut c_void,
            context: *mut c_void,
        ) {
            // SAFETY: the caller's.
            unsafe { flush_with(arguments, block, thread, shared, context, $is_waited) }
        }
    };
}

flush!(flush, |_, _| true);
flush!(flush_without_barrier, |_, _| false);
flush!(flush_without_one_barrier, |_, step| step != 2);
flush!(flush_with_early_end, |block, step| block > 0 || step < 2);

fn session(flush: &str, blocks: u32, config: Config) -> Session {
    let (mut manifest, mut functions) = tree_program("node_sim");
    let shared = |kernel: &cohort_runtime::abi::manifest::Kernel| {
        let gpu = kernel.gpu.as_ref().unwrap();
        gpu.launches[0].functions[0].shared_bytes
    };
    manifest.gpu_flush = Some(GpuFlush {
        symbol: flush.to_owned(),
        threads: THREADS,
        shared_bytes: manifest.kernels.iter().map(shared).max().unwrap(),
        argument_bytes: 32,
        functions: FUNCTIONS.map(|(name, _)| name.to_owned()).to_vec(),
        clusters: None,
    });
    functions.0.extend([
        ("flush", crate::flushes::flush as *const ()),
        ("flush_without_barrier", flush_without_barrier as *const ()),
        (
            "flush_without_one_barrier",
            flush_without_one_barrier as *const (),
        ),
        ("flush_with_early_end", flush_with_early_end as *const ()),
    ]);
    let program = Program::new(manifest, Box::new(functions)).unwrap();
    let device = Sim::new(&program, Faults::default()).with_blocks(blocks);
    Session::on(Some(Box::new(device)), program, &tree_weights(), config).unwrap()
}

fn launches(stats: &cohort_runtime::Stats) -> u64 {
    stats.device.as_ref().map_or(0, |device| device.launches)
}

#[test]
fn a_flush_is_one_launch_and_gives_the_same_bits() {
    let input = trees(150);
    let (expected, _) = run(&mut tree_session(Config::default()), &input);
    for blocks in [1, 2, 3, 7] {
        for batch in [
            Batch::Count(1),
            Batch::Count(7),
            Batch::All,
            Batch::Unbatched,
        ] {
            for scheduler in [Policy::Depth, Policy::Agenda] {
                let config = Config {
                    scheduler,
                    ..config(batch)
                };
                let mut session = session("flush", blocks, config);
                let (found, stats) = run(&mut session, &input);
                assert_eq!(found, expected, "{blocks}, {batch:?}, {scheduler:?}");
                assert!(
                    launches(&stats) <= stats.flushes,
                    "{batch:?}, {scheduler:?}"
                );
                // Again, with memory that was used before.
                assert_eq!(run(&mut session, &input).0, expected);
            }
        }
    }
}

#[test]
fn a_grid_barrier_that_is_missing_is_noticed() {
    let input = trees(60);
    let (expected, _) = run(&mut tree_session(Config::default()), &input);
    let found =
        |flush: &str, blocks| run(&mut session(flush, blocks, config(Batch::All)), &input).0;
    for blocks in [2, 3, 5] {
        assert_ne!(found("flush_without_barrier", blocks), expected);
        assert_ne!(found("flush_without_one_barrier", blocks), expected);
    }
    // One block waits for nobody.
    assert_eq!(found("flush_without_barrier", 1), expected);
}

#[test]
fn blocks_that_end_while_others_wait_end_the_run() {
    let input = trees(60);
    let mut session = session("flush_with_early_end", 3, config(Batch::All));
    let error = try_run(&mut session, input.as_bytes()).unwrap_err();
    let message = error.to_string();
    assert!(
        message.contains("2 of 3 blocks wait for all blocks") && message.contains("have ended"),
        "{message}"
    );
}
