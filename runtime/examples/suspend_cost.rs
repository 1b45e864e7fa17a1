//! What a decision costs, without any real kernel: the switch to other instances and back, its share
//! of a flush, and reading the value.
//!
//! `cargo run --release -p cohort-runtime --example suspend_cost`

use std::ffi::c_void;

use cohort_runtime::abi::manifest::{
    Elem, Force, Kernel, Manifest, Operand, RowPool, Source, Type,
};
use cohort_runtime::abi::{Context, Handle, OperandRef, VERSION};
use cohort_runtime::symbols::{cohort_force, cohort_record};
use cohort_runtime::{Batch, CompiledCode, Config, Program, Session, Weights};

/// Decisions of one instance.
const DECISIONS: usize = 100;
/// Calls between two decisions.
const CALLS: usize = 4;
const INSTANCES: usize = 10_000;

struct Functions {
    entry: *const (),
}

// SAFETY: the functions are those that the manifest below names, and live forever.
unsafe impl CompiledCode for Functions {
    fn symbol(&self, name: &str) -> Option<*const ()> {
        match name {
            "entry" => Some(self.entry),
            "nothing" => Some(nothing as *const ()),
            _ => None,
        }
    }
}

/// Each decision is by the last of some calls that need each other; with `CACHED`, it is by a row
/// that is there already; with neither, there are only the calls.
unsafe extern "C" fn decide<const FORCED: bool, const CACHED: bool>(
    context: *mut Context,
    _arguments: *const u64,
    results: *mut u64,
) {
    // SAFETY: the kernel has one operand, which is a row; the result is one slot.
    unsafe {
        let source = Handle::new(0, 0, 0).0;
        let mut handle = source;
        for _ in 0..DECISIONS {
            for _ in 0..CALLS {
                handle = cohort_record(context, 0, &handle);
            }
            if FORCED && cohort_force(context, if CACHED { source } else { handle }, 0) != 0 {
                break;
            }
        }
        results.write(handle);
    }
}

unsafe extern "C" fn nothing(
    _begin: i64,
    _end: i64,
    _operands: *const OperandRef,
    _results: *const *mut c_void,
    _constants: *const *const c_void,
    _scratch: *mut c_void,
) {
}

fn main() -> Result<(), cohort_runtime::Error> {
    let manifest = Manifest {
        version: VERSION,
        entry: "entry".to_owned(),
        arguments: vec![],
        result: Type::Tensor { pool: 0 },
        adts: vec![],
        params: vec![],
        row_pools: vec![RowPool {
            elem: Elem::F32,
            shape: vec![],
        }],
        sources: vec![Source::Splat { bits: 0, pool: 0 }],
        kernels: vec![Kernel {
            name: "nothing".to_owned(),
            symbol: "nothing".to_owned(),
            location: String::new(),
            operands: vec![Operand::Row { pool: 0 }],
            results: vec![0],
            constants: vec![],
            scratch_bytes: 0,
            row_tile: 8,
            flops_per_row: 0,
            row_products: vec![],
            call: Default::default(),
            gpu: None,
        }],
        locations: vec![],
        debugs: vec![],
        forces: vec![Force {
            location: String::new(),
            pool: 0,
        }],
        computed: vec![],
        grows_in_place: false,
        gradients: None,
        structure: None,
        gpu_flush: None,
        dims: vec![],
    };
    // Seconds to record and to execute, the best of some repetitions.
    let measure = |entry: *const (), in_flight: usize| {
        let program = Program::new(manifest.clone(), Box::new(Functions { entry }))?;
        let config = Config {
            batch: Batch::InFlight(in_flight),
            ..Config::default()
        };
        let mut session = Session::new(program, &Weights::none(), config)?;
        let input = "{}\n".repeat(INSTANCES);
        let stats = session.benchmark(input.as_bytes(), std::io::sink(), 5, false, &mut |_| {})?;
        let best = |seconds: &dyn Fn(usize) -> f64| {
            (0..stats.repetitions.len())
                .map(seconds)
                .fold(f64::INFINITY, f64::min)
        };
        Ok::<_, cohort_runtime::Error>((
            best(&|index| stats.repetitions[index].record_seconds),
            best(&|index| stats.repetitions[index].execute_seconds),
        ))
    };
    let decisions = (INSTANCES * DECISIONS) as f64;
    for in_flight in [1, 16, 64, 256, 1024] {
        let (record, execute) = measure(decide::<false, false> as *const (), in_flight)?;
        let cached = measure(decide::<true, true> as *const (), in_flight)?;
        let forced = measure(decide::<true, false> as *const (), in_flight)?;
        let nanoseconds = |seconds: f64| seconds / decisions * 1e9;
        println!(
            "{in_flight:>5} in flight: {:.1} ns to suspend and resume, {:.1} ns more to execute the \
             {CALLS} calls before it in a flush of their own, {:.1} ns for a value that is there; \
             a recorded call {:.2} ns",
            nanoseconds(forced.0 - record),
            nanoseconds(forced.1 - execute),
            nanoseconds(cached.0 - record),
            nanoseconds(record) / CALLS as f64,
        );
    }
    Ok(())
}
