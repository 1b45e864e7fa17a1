//! Programs on the simulated GPU: the same bits as on the processor, and a clear end when the device
//! fails.

use std::ffi::c_void;

use cohort_runtime::abi::OperandRef;
use cohort_runtime::abi::gpu::{GpuFunction, GpuKernel, GpuLaunch, Precision};
use cohort_runtime::abi::manifest::*;
use cohort_runtime::device::sim::cohort_sim_barrier;
use cohort_runtime::device::{DeviceKind, Faults, Sim};
use cohort_runtime::{Batch, Config, Error, Fault, Policy, Program, Session, Weights};

use crate::program::*;
use crate::ragged_program::{Instance, list, rows_main, rows_manifest, stacked};
use crate::walk;

const TILE: u64 = 8;
pub const THREADS: u32 = 32;

/// One launch of one function, of blocks of [`TILE`] rows.
fn gpu(symbol: &str, constants: Vec<Constant>, shared_bytes: u32) -> GpuKernel {
    let function = |symbol: String, from_rows, tile_rows| GpuFunction {
        symbol,
        from_rows,
        threads: THREADS,
        tile_rows_per_row: 1,
        tile_rows,
        column_blocks: 1,
        shared_bytes,
        grid_stride: false,
        calls: None,
    };
    GpuKernel {
        constants,
        scratch_bytes: 64,
        scratch_bytes_per_row: 64,
        precision: Precision::F32,
        launches: vec![GpuLaunch {
            functions: vec![function(symbol.to_owned(), 0, TILE)],
            grouped: None,
            resident: None,
            clustered: None,
            beside: false,
        }],
    }
}

/// What a function finds in its arguments.
struct Given {
    rows: u64,
    operands: Vec<OperandRef>,
    results: Vec<*mut c_void>,
    constants: Vec<*const c_void>,
    scratch: *mut c_void,
}

/// # Safety
///
/// The arguments are those of a kernel with these numbers of operands, results and constants.
unsafe fn given(arguments: *const u64, counts: [usize; 3]) -> Given {
    let [operands, results, constants] = counts;
    let mut next = 0;
    let mut word = || {
        next += 1;
        // SAFETY: the caller's promise.
        unsafe { arguments.add(next - 1).read() }
    };
    Given {
        rows: word(),
        operands: (0..operands)
            .map(|_| OperandRef {
                base: word() as *const c_void,
                index: word() as *const u32,
                offsets: word() as *const u32,
            })
            .collect(),
        results: (0..results).map(|_| word() as *mut c_void).collect(),
        constants: (0..constants).map(|_| word() as *const c_void).collect(),
        scratch: word() as *mut c_void,
    }
}

/// A function for the simulator that lets the first thread of each block run a kernel of the CPU.
macro_rules! on_first_thread {
    ($name:ident, $kernel:path, $operands:literal) => {
        pub unsafe extern "C" fn $name(
            arguments: *const u64,
            block: u64,
            _: u64,
            thread: u64,
            _: *mut c_void,
            _: *mut c_void,
        ) {
            if thread > 0 {
                return;
            }
            // SAFETY: the arguments are those of this kernel, which has one result.
            unsafe {
                let given = given(arguments, [$operands, 1, 0]);
                $kernel(
                    (block * TILE) as i64,
                    given.rows.min((block + 1) * TILE) as i64,
                    given.operands.as_ptr(),
                    given.results.as_ptr(),
                    given.constants.as_ptr(),
                    given.scratch,
                );
            }
        }
    };
}

on_first_thread!(leaf_sim, leaf, 2);
on_first_thread!(begin_sim, walk::begin, 1);
on_first_thread!(step_sim, walk::step, 1);
on_first_thread!(score_sim, walk::score, 1);
on_first_thread!(label_sim, walk::label, 1);
on_first_thread!(is_high_sim, walk::is_high, 1);
on_first_thread!(join_sim, walk::join, 2);
on_first_thread!(stacked_sim, stacked, 3);
on_first_thread!(list_sim, list, 3);

/// `node`, each thread an element: left rows are loaded into shared memory by all threads together.
unsafe fn node_with(
    arguments: *const u64,
    block: u64,
    thread: u64,
    shared: *mut c_void,
    barrier: impl Fn(),
) {
    // SAFETY: two operands, two results and two constants; shared memory for a tile.
    unsafe {
        let given = given(arguments, [2, 2, 2]);
        let tile = shared.cast::<f32>();
        let (slot, column) = (thread as usize / WIDTH, thread as usize % WIDTH);
        let row = (block * TILE) as usize + slot;
        let exists = (row as u64) < given.rows;
        let element = |operand: &OperandRef, row: usize| {
            let row = *operand.index.add(row) as usize;
            *(operand.base as *const f32).add(row * WIDTH + column)
        };
        if exists {
            *tile.add(thread as usize) = element(&given.operands[0], row);
        }
        barrier();
        if !exists {
            return;
        }
        let w = given.constants[0].cast::<f32>();
        let quarter = *given.constants[1].cast::<f32>();
        let mut product = 0.0;
        for k in 0..WIDTH {
            product += *tile.add(slot * WIDTH + k) * *w.add(k * WIDTH + column);
        }
        let place = row * WIDTH + column;
        *given.results[0].cast::<f32>().add(place) = product;
        *given.results[1].cast::<f32>().add(place) =
            product * quarter + element(&given.operands[1], row);
    }
}

pub unsafe extern "C" fn node_sim(
    arguments: *const u64,
    block: u64,
    _: u64,
    thread: u64,
    shared: *mut c_void,
    context: *mut c_void,
) {
    // SAFETY: the caller's.
    unsafe {
        node_with(arguments, block, thread, shared, || {
            cohort_sim_barrier(context)
        })
    }
}

unsafe extern "C" fn node_without_barrier(
    arguments: *const u64,
    block: u64,
    _: u64,
    thread: u64,
    shared: *mut c_void,
    _: *mut c_void,
) {
    // SAFETY: the caller's.
    unsafe { node_with(arguments, block, thread, shared, || ()) }
}

/// Only some threads come to the barrier.
unsafe extern "C" fn node_with_half_a_barrier(
    arguments: *const u64,
    block: u64,
    _: u64,
    thread: u64,
    shared: *mut c_void,
    context: *mut c_void,
) {
    // SAFETY: the caller's.
    unsafe {
        node_with(arguments, block, thread, shared, || {
            if thread < 16 {
                cohort_sim_barrier(context);
            }
        });
    }
}

/// Writes where it has no memory.
unsafe extern "C" fn node_outside(
    arguments: *const u64,
    block: u64,
    _: u64,
    thread: u64,
    shared: *mut c_void,
    context: *mut c_void,
) {
    // SAFETY: none; the guards behind the scratch are there for it.
    unsafe {
        let scratch = given(arguments, [2, 2, 2]).scratch;
        scratch.cast::<u8>().add(4000).write(1);
        node_sim(arguments, block, 0, thread, shared, context);
    }
}

pub fn tree_program(node: &str) -> (Manifest, Functions) {
    let mut manifest = tree_manifest();
    manifest.kernels[0].gpu = Some(gpu("leaf_sim", vec![], 0));
    let quarter = manifest.kernels[1].constants[1].clone();
    let constants = vec![Constant::Plain { param: 1 }, quarter];
    let shared = TILE as u32 * WIDTH as u32 * 4;
    manifest.kernels[1].gpu = Some(gpu(node, constants, shared));
    let mut functions = tree_functions();
    functions.0.extend([
        ("leaf_sim", leaf_sim as *const ()),
        ("node_sim", node_sim as *const ()),
        ("node_without_barrier", node_without_barrier as *const ()),
        (
            "node_with_half_a_barrier",
            node_with_half_a_barrier as *const (),
        ),
        ("node_outside", node_outside as *const ()),
    ]);
    (manifest, functions)
}

fn tree_session_with(node: &str, config: Config, faults: Faults) -> Session {
    let (manifest, functions) = tree_program(node);
    let program = Program::new(manifest, Box::new(functions)).unwrap();
    let device = Sim::new(&program, faults);
    Session::on(Some(Box::new(device)), program, &tree_weights(), config).unwrap()
}

fn walk_session(config: Config, faults: Faults) -> Session {
    let mut manifest = walk::walk_manifest();
    for kernel in &mut manifest.kernels {
        kernel.gpu = Some(gpu(&format!("{}_sim", kernel.name), vec![], 0));
    }
    let mut functions = walk::walk_functions();
    functions.0.extend([
        ("begin_sim", begin_sim as *const ()),
        ("step_sim", step_sim as *const ()),
        ("score_sim", score_sim as *const ()),
        ("label_sim", label_sim as *const ()),
        ("is_high_sim", is_high_sim as *const ()),
        ("join_sim", join_sim as *const ()),
    ]);
    let program = Program::new(manifest, Box::new(functions)).unwrap();
    let device = Sim::new(&program, faults);
    Session::on(Some(Box::new(device)), program, &Weights::none(), config).unwrap()
}

pub fn trees(count: u64) -> String {
    let mut seed = 9;
    (0..count)
        .map(|index| {
            let tree = Tree::random(&mut seed, 1 + index as u32 % 23);
            format!("{{\"t\": {}}}\n", tree.json())
        })
        .collect()
}

pub fn config(batch: Batch) -> Config {
    Config {
        batch,
        device: DeviceKind::GpuSim,
        ..Config::default()
    }
}

#[test]
fn a_device_gives_the_bits_of_the_processor() {
    let input = trees(150);
    let (expected, on_cpu) = run(&mut tree_session(Config::default()), &input);
    for batch in [
        Batch::Count(1),
        Batch::Count(7),
        Batch::All,
        Batch::Unbatched,
    ] {
        for scheduler in [Policy::Depth, Policy::Agenda, Policy::Lookahead] {
            let config = Config {
                scheduler,
                ..config(batch)
            };
            let mut session = tree_session_with("node_sim", config, Faults::default());
            let (found, stats) = run(&mut session, &input);
            assert_eq!(found, expected, "{batch:?}, {scheduler:?}");
            assert!(stats.kernel_launches > 0 && on_cpu.kernel_launches > 0);
            // Again, with memory that was used before.
            assert_eq!(run(&mut session, &input).0, expected);
        }
    }
}

#[test]
fn a_device_computes_rows_of_values_that_differ_in_length() {
    let program = || {
        let functions = vec![
            ("rows_main", rows_main as *const ()),
            ("stacked", stacked as *const ()),
            ("list", list as *const ()),
            ("stacked_sim", stacked_sim as *const ()),
            ("list_sim", list_sim as *const ()),
        ];
        let manifest = rows_manifest(|symbol| gpu(symbol, vec![], 0));
        Program::new(manifest, Box::new(Functions(functions))).unwrap()
    };
    let line = |n: usize| format!("{{\"x\": {:?}}}\n", Instance::new(n, 0).x);
    let input: String = [3, 0, 17, 1, 0, 40, 8, 5].map(line).concat();
    let mut on_cpu = Session::new(program(), &Weights::none(), Config::default()).unwrap();
    let (expected, _) = run(&mut on_cpu, &input);
    for batch in [
        Batch::Count(1),
        Batch::Count(3),
        Batch::All,
        Batch::Unbatched,
    ] {
        for scheduler in [Policy::Depth, Policy::Agenda] {
            let config = Config {
                scheduler,
                ..config(batch)
            };
            let device = Sim::new(&program(), Faults::default());
            let device: Box<dyn cohort_runtime::device::Device> = Box::new(device);
            let mut session =
                Session::on(Some(device), program(), &Weights::none(), config).unwrap();
            let (found, _) = run(&mut session, &input);
            assert_eq!(found, expected, "{batch:?}, {scheduler:?}");
        }
    }
}

#[test]
fn decisions_come_back_from_a_device() {
    let input: String = (0..120)
        .map(|seed| {
            let kinds = [
                walk::WALK,
                walk::NEVER_DECIDE,
                walk::RECURSE,
                walk::DECIDE_BY_INPUT,
            ];
            walk::line(seed, kinds[seed as usize % 4])
        })
        .collect();
    let (expected, _) = run(&mut walk::walk_session(Config::default()), &input);
    for batch in [
        Batch::Count(1),
        Batch::Count(16),
        Batch::InFlight(5),
        Batch::Unbatched,
    ] {
        let (found, _) = run(&mut walk_session(config(batch), Faults::default()), &input);
        assert_eq!(found, expected, "{batch:?}");
    }
}

#[test]
fn invariance_is_verified_on_a_device() {
    use cohort_runtime::verify::{Options, Verdict, verify};
    let (manifest, functions) = tree_program("node_sim");
    let program = Program::new(manifest, Box::new(functions)).unwrap();
    let options = Options {
        compositions: 6,
        seed: 1,
        max_threads: 2,
        cotangents: None,
    };
    let verdict = verify(
        &program,
        &tree_weights(),
        config(Batch::Count(8)),
        trees(20).as_bytes(),
        options,
        &mut |_| {},
    );
    assert!(matches!(verdict, Ok(Verdict::Holds(_))));
}

#[test]
fn a_missing_barrier_is_noticed() {
    let input = trees(40);
    let (expected, _) = run(&mut tree_session(Config::default()), &input);
    let session = |node| tree_session_with(node, config(Batch::All), Faults::default());
    let (found, _) = run(&mut session("node_without_barrier"), &input);
    assert_ne!(found, expected);

    let error = try_run(&mut session("node_with_half_a_barrier"), input.as_bytes()).unwrap_err();
    let message = error.to_string();
    assert!(
        message.contains("16 of 32 threads wait at a barrier"),
        "{message}"
    );
}

#[test]
fn writes_outside_of_the_memory_are_noticed() {
    let mut session = tree_session_with("node_outside", config(Batch::All), Faults::default());
    let error = try_run(&mut session, trees(3).as_bytes()).unwrap_err();
    assert!(error.to_string().contains("wrote outside"), "{error}");
}

#[test]
fn a_device_that_dies_leaves_what_was_finished() {
    let input = trees(60);
    let (expected, _) = run(&mut tree_session(Config::default()), &input);
    let faults = Faults {
        launch: Some(40),
        ..Faults::default()
    };
    let mut session = tree_session_with("node_sim", config(Batch::Count(10)), faults);
    let mut output = Vec::new();
    let error = session.run_stream(input.as_bytes(), &mut output, &mut |_| {});
    let error = error.unwrap_err();
    assert_eq!(error.fault(), Fault::User);
    assert_eq!(
        error.to_string(),
        "cannot run on the simulated GPU: it stopped working: the simulated device died"
    );
    let text = String::from_utf8(output).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        !lines.is_empty() && lines.len() < expected.len(),
        "{}",
        lines.len()
    );
    assert_eq!(lines[..], expected[..lines.len()]);
}

#[test]
fn a_device_that_dies_leaves_what_was_finished_in_flight() {
    let input: String = (0..60).map(|seed| walk::line(seed, walk::WALK)).collect();
    let (expected, _) = run(&mut walk::walk_session(Config::default()), &input);
    let faults = Faults {
        launch: Some(200),
        ..Faults::default()
    };
    let mut session = walk_session(config(Batch::InFlight(4)), faults);
    let mut output = Vec::new();
    let result = session.run_stream(input.as_bytes(), &mut output, &mut |_| {});
    assert!(matches!(result, Err(Error::Device { .. })));
    let text = String::from_utf8(output).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        !lines.is_empty() && lines.len() < expected.len(),
        "{}",
        lines.len()
    );
    assert_eq!(lines[..], expected[..lines.len()]);
}

#[test]
fn too_little_memory_cuts_a_batch_or_is_an_error_with_numbers() {
    let run_within = |limit: Option<u64>, memory: Option<u64>| {
        let config = Config {
            device_memory: limit,
            ..config(Batch::All)
        };
        let faults = Faults {
            memory,
            ..Faults::default()
        };
        let (manifest, functions) = tree_program("node_sim");
        let program = Program::new(manifest, Box::new(functions)).unwrap();
        let device = Sim::new(&program, faults);
        let mut session = Session::on(Some(Box::new(device)), program, &tree_weights(), config)?;
        try_run(&mut session, trees(500).as_bytes())
    };
    let (all, _) = run_within(Some(4 << 20), None).unwrap();
    for (limit, memory) in [(Some(20_000), None), (None, Some(20_000))] {
        let (output, stats) = run_within(limit, memory).unwrap();
        assert!(
            output == all && stats.flushes > 1,
            "{} flushes",
            stats.flushes
        );
    }
    // There is too little even for the weights.
    let error = run_within(Some(100), None).err();
    let message = error.expect("it cannot be loaded").to_string();
    assert!(message.contains("bytes are needed and"), "{message}");
    assert!(message.contains("--device-memory"), "{message}");
}

#[test]
fn a_program_without_code_for_gpus_is_refused() {
    let program = Program::new(tree_manifest(), Box::new(tree_functions())).unwrap();
    let error = Session::new(program, &tree_weights(), config(Batch::All));
    let message = error
        .err()
        .expect("it should have been refused")
        .to_string();
    assert!(
        message.contains("`leaf` (trees.coh:3:5) has no code for GPUs"),
        "{message}"
    );

    let (manifest, mut functions) = tree_program("node_sim");
    functions.0.retain(|(name, _)| *name != "node_sim");
    let program = Program::new(manifest, Box::new(functions)).unwrap();
    let error = Session::new(program, &tree_weights(), config(Batch::All));
    let message = error
        .err()
        .expect("it should have been refused")
        .to_string();
    assert!(message.contains("without `node_sim`"), "{message}");
}

#[test]
fn impossible_launches_are_refused() {
    type Change = fn(&mut GpuKernel);
    let broken: [Change; 8] = [
        |gpu| gpu.launches.clear(),
        |gpu| gpu.launches[0].functions.clear(),
        |gpu| gpu.launches[0].beside = true,
        |gpu| gpu.launches[0].functions[0].from_rows = 1,
        |gpu| gpu.launches[0].functions[0].threads = 33,
        |gpu| gpu.constants[0] = Constant::Plain { param: 9 },
        |gpu| {
            gpu.constants[0] = Constant::Panels {
                param: 1,
                width: 3,
                format: WeightFormat::F32,
            }
        },
        // One row behind the last.
        |gpu| {
            gpu.constants[0] = Constant::Rounded {
                precision: Precision::Bf16,
                param: 1,
                offset: 1,
                strides: [1, 1],
                k: 1 << 20,
                columns: 1,
                by_columns: false,
            }
        },
    ];
    for change in broken {
        let (mut manifest, functions) = tree_program("node_sim");
        change(manifest.kernels[1].gpu.as_mut().unwrap());
        let error = Program::new(manifest, Box::new(functions)).err().unwrap();
        assert_eq!(error.fault(), Fault::Internal, "{error}");
    }
}

/// Where there is no driver, and where there is one for a program without code for it, the answer is
/// an error; nothing panics.
#[test]
fn a_card_that_cannot_be_used_is_an_error() {
    let (manifest, functions) = tree_program("node_sim");
    let program = Program::new(manifest, Box::new(functions)).unwrap();
    let config = Config {
        device: DeviceKind::Cuda,
        ..Config::default()
    };
    let error = Session::new(program, &tree_weights(), config);
    let error = error.err().expect("there is no code for it");
    assert!(matches!(error, Error::Device { .. }), "{error}");
}
