//! What recording and placing a kernel call costs, without any real kernel.
//!
//! `cargo run --release -p cohort-runtime --example record_cost`

use std::ffi::c_void;

use cohort_runtime::abi::manifest::{Elem, Kernel, Manifest, Operand, RowPool, Source, Type};
use cohort_runtime::abi::{Context, Handle, OperandRef, VERSION};
use cohort_runtime::symbols::cohort_record;
use cohort_runtime::{Batch, CompiledCode, Config, Program, Session, Weights};

/// Leaves of the tree that each instance records.
const LEAVES: usize = 32;
const CALLS: usize = 2 * LEAVES - 1;
const INSTANCES: usize = 10_000;

struct Functions;

// SAFETY: the functions are those that the manifest below names, and live forever.
unsafe impl CompiledCode for Functions {
    fn symbol(&self, name: &str) -> Option<*const ()> {
        match name {
            "entry" => Some(entry as *const ()),
            "nothing" => Some(nothing as *const ()),
            _ => None,
        }
    }
}

/// A balanced tree: a kernel with a row and a scalar for each leaf, one with two rows and two
/// results for each inner node.
unsafe extern "C" fn entry(context: *mut Context, _arguments: *const u64, results: *mut u64) {
    let mut handles = [0; LEAVES];
    // SAFETY: both kernels have two operands; the result is one slot.
    unsafe {
        for (leaf, handle) in handles.iter_mut().enumerate() {
            let operands = [Handle::new(0, 0, 0).0, leaf as u64];
            *handle = cohort_record(context, 0, operands.as_ptr());
        }
        let mut width = LEAVES;
        while width > 1 {
            width /= 2;
            for node in 0..width {
                let operands = [
                    handles[2 * node],
                    Handle(handles[2 * node + 1]).result_handle(0).0,
                ];
                handles[node] = cohort_record(context, 1, operands.as_ptr());
            }
        }
        results.write(handles[0]);
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
    let row = Operand::Row { pool: 0 };
    let kernel = |name: &str, operands: Vec<Operand>, results: Vec<usize>| Kernel {
        name: name.to_owned(),
        symbol: "nothing".to_owned(),
        location: String::new(),
        operands,
        results,
        constants: vec![],
        scratch_bytes: 0,
        row_tile: 8,
        flops_per_row: 0,
        row_products: vec![],
        call: Default::default(),
        gpu: None,
    };
    let manifest = Manifest {
        version: VERSION,
        entry: "entry".to_owned(),
        arguments: vec![],
        result: Type::Tensor { pool: 0 },
        adts: vec![],
        params: vec![],
        row_pools: vec![RowPool {
            elem: Elem::F32,
            shape: vec![1],
        }],
        sources: vec![Source::Splat { bits: 0, pool: 0 }],
        kernels: vec![
            kernel("leaf", vec![row, Operand::Scalar(Elem::I32)], vec![0]),
            kernel("node", vec![row, row], vec![0, 0]),
        ],
        locations: vec![],
        debugs: vec![],
        forces: vec![],
        computed: vec![],
        grows_in_place: false,
        gradients: None,
        structure: None,
        gpu_flush: None,
        dims: vec![],
    };
    for batch in [16, 256, 10_000] {
        let program = Program::new(manifest.clone(), Box::new(Functions))?;
        let config = Config {
            batch: Batch::Count(batch),
            ..Config::default()
        };
        let mut session = Session::new(program, &Weights::none(), config)?;
        let input = "{}\n".repeat(INSTANCES);
        let stats = session.benchmark(input.as_bytes(), std::io::sink(), 10, false, &mut |_| {})?;
        let best = |seconds: &dyn Fn(usize) -> f64| {
            let all = (0..stats.repetitions.len()).map(seconds);
            all.fold(f64::INFINITY, f64::min) * 1e9
        };
        let record = best(&|index| stats.repetitions[index].record_seconds);
        let execute = best(&|index| stats.repetitions[index].execute_seconds);
        let calls = (INSTANCES * CALLS) as f64;
        println!(
            "batch {batch:>6}: {:.2} ns to record a call ({:.0} ns an instance), {:.2} ns to place \
             it, {:.0} ns to read and {:.0} ns to write an instance",
            record / calls,
            record / INSTANCES as f64,
            execute / calls,
            stats.read_seconds * 1e9 / INSTANCES as f64,
            stats.write_seconds * 1e9 / INSTANCES as f64,
        );
    }
    Ok(())
}
