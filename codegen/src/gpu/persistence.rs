//! `persistence`: one more function of the `gpu.module`, which runs a whole flush (level 3).
//!
//! A flush of a recursion is a launch or more for each of its levels, of few rows each, and what the card
//! computes of one takes less than the launch. So all functions of the kernels are run by one,
//! `cohort_flush`, whose blocks stay on the card for the whole flush and read from a *schedule* in the
//! device's memory what to do (`abi/src/gpu/flush.rs`): in each step, the blocks of all launches of the
//! step in turn; before the next one, all of them wait for each other. A step ends only where the next one
//! may read what it wrote: behind a level, and between the waves of a call's launches (`fuse-launches`). This is the persistence
//! of Cortex (§5), with a schedule that is made at run time.
//!
//! What a block does next is its *order*, in its shared memory: the function, the place in its grid, and its arguments. To find that
//! takes loads that wait for one another, and the schedule does not change, so it is done ahead: between the arrival at a
//! barrier of the grid and the wait there, and, for another block of the same step, before the last barrier of the block before.
//!
//! ```mlir
//! gpu.module @cohort_gpu attributes {cfb.gpu_kernels = …} {
//!   llvm.mlir.global internal @cell$0$shared() {addr_space = 3 : i32} : !llvm.array<9728 x i8>
//!   gpu.func @cell$0(%rows: i64, %base: !llvm.ptr<1>, …) kernel { … }
//!   gpu.func @cell$1(…) kernel { … }
//! }
//! // becomes, besides
//! gpu.module @cohort_gpu attributes {cfb.gpu_flush = "{…}", cfb.gpu_kernels = …} {
//!   …
//!   func.func private @cohort_grid_arrive(!llvm.ptr<1>)
//!   func.func private @cohort_grid_wait(!llvm.ptr<1>, i64)
//!   func.func private @cell$0$block(!llvm.ptr<3>, i64, i64) attributes {cfb.block_of = @cell$0}
//!   func.func private @cell$1$block(!llvm.ptr<3>, i64, i64) attributes {cfb.block_of = @cell$1}
//!   llvm.mlir.global internal @cohort_flush$shared() {addr_space = 3 : i32} : !llvm.array<9952 x i8>
//!   gpu.func @cohort_flush(%schedule: !llvm.ptr<1>) kernel {
//!     …  // the first order
//!     gpu.barrier
//!     scf.for %step = %zero to %steps step %one {
//!       %is_later = arith.cmpi sgt, %step, %zero : i64
//!       scf.if %is_later {
//!         %arrivals = arith.muli %step, %all_blocks : i64
//!         func.call @cohort_grid_wait(%schedule, %arrivals) : (!llvm.ptr<1>, i64) -> ()
//!       }
//!       scf.for %block = %me to %blocks step %all_blocks iter_args(%order = %zero) -> (i64) {
//!         scf.index_switch %function
//!         case 0 { func.call @cell$0$block(%arguments, %x, %y) : (…) -> () … }
//!         case 1 { func.call @cell$1$block(%arguments, %x, %y) : (…) -> () … }
//!         default { }
//!         // the next one writes the shared memory that this one read, or has begun to copy to and not waited for
//!         nvvm.cp.async.commit.group
//!         nvvm.cp.async.wait.group 0
//!         …  // the order for the next block of the step, in the memory beside this one
//!         gpu.barrier
//!         scf.yield %other
//!       }
//!       scf.if %is_not_last {
//!         func.call @cohort_grid_arrive(%schedule) : (!llvm.ptr<1>) -> ()
//!         …  // the first order of the next step
//!       }
//!     }
//!     gpu.return
//!   }
//! }
//! ```
//!
//! The functions declared with `cfb.block_of` run one block of the function of that name: its arguments are a
//! list in shared memory, its place in the grid and its shared memory are given. The code for a card gets copies of those
//! functions' bodies (`expand-flush`), the host calls them (`lower-gpu-to-host`). Those that are launched one
//! by one stay as they are: the runtime takes them where a flush has one step, where its grids are so large
//! that launches do not matter, where each call is timed, and where a card cannot launch cooperatively. It is
//! the same code in the same order for each row, so no bit depends on which are taken.
//!
//! The largest tiles need more threads and shared memory per block and are left out: with that many rows the overhead
//! of a launch is negligible.
//!
//! Where weights stay in shared memory for the whole flush (`hold-weights`), the function for few rows is the one that
//! holds them. It says in a word which it has, that is zero at the beginning of a flush. Where they begin says `cfb.held_at`,
//! behind the memory that all functions have for as long as they run. Of those that do not say it each has memory of its own where
//! there is room, and `cfb.shared_from` says where each function's begins. Else the functions that hold
//! nothing have their memory behind that word, and set it to zero before they run.
//!
//! A barrier of the grid counts the blocks that have arrived, all barriers together, so that nothing is set back.
//!
//! Where weights stay in clusters (`form-clusters`), a second function, `cohort_flush_clusters`, is for cards that have these. Behind
//! the steps of the grid each cluster of 16 blocks has steps of its own, with `cohort_cluster_arrive` and `cohort_cluster_wait` in
//! between; which barrier it is, and which blocks share a step, depends on the step alone:
//!
//! ```mlir
//! func.func private @cohort_cluster_arrive()
//! func.func private @cohort_cluster_wait()
//! func.func private @cell$0_clustered$cluster(!llvm.ptr<3>, i64, i64)
//!   attributes {cfb.block_of = @cell$0_clustered, cfb.in_cluster}
//! gpu.func @cohort_flush_clusters(%schedule: !llvm.ptr<1>) kernel { … }
//! ```
//!
//! Requires: what `lower-kernels-to-gpu` leaves, before `lower-control`. Leaves: level 3. A program whose only
//! launch runs once in an instance has flushes of one step, and stays as it is, with a remark; so does one
//! whose functions have blocks of different sizes, or leave no shared memory for orders.

mod function;
mod memory;

use cohort_abi::gpu::{GpuClusters, GpuFlush, GpuLaunch};
use cohort_dialects::builder::{Builder, Op, arguments_of};
use cohort_dialects::marks;
pub use cohort_dialects::marks::{BLOCK_OF, GPU_FLUSH as ATTRIBUTE, IN_CLUSTER, SHARED_FROM};
use cohort_passes::kernel::description::{GpuDescription, parse};
use cohort_passes::pass::{Failed, Outcome, PassInfo, error, remark};
use cohort_passes::support::ir::{
    blocks_of, integer_attribute, nested_ops, set_attribute, symbol_of, text_of, top_level,
};
use melior::{
    Context,
    ir::{OperationRef, attribute::StringAttribute, operation::OperationLike},
};

use super::lower_kernels_to_gpu::function::{MOST_CLUSTER_SHARED, MOST_SHARED};
use super::lower_kernels_to_gpu::{self, descriptions};
use function::Flush;
use memory::{Memory, Run};

/// The pass `persistence`.
pub const PASS: PassInfo = PassInfo {
    name: "persistence",
    summary: "Add a function to a gpu.module that runs a whole flush (level 3)",
    description: include_str!("persistence.rs"),
    run,
};

/// The function that runs a flush.
pub const FLUSH: &str = "cohort_flush";

/// The function that runs a flush where blocks form clusters.
pub const CLUSTERS: &str = "cohort_flush_clusters";

/// Signals that a block has arrived at a grid barrier, after a barrier of the block itself.
pub const GRID_ARRIVE: &str = "cohort_grid_arrive";
/// Waits until the given number of arrivals has been counted, then synchronises the block.
pub const GRID_WAIT: &str = "cohort_grid_wait";

/// Signals that a block has arrived at its cluster's barrier, after a barrier of the block itself.
pub const CLUSTER_ARRIVE: &str = "cohort_cluster_arrive";
/// Waits until all blocks of the cluster have arrived, then synchronises the block.
pub const CLUSTER_WAIT: &str = "cohort_cluster_wait";

/// Which functions take the place of those for few rows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Held {
    Nothing,
    Resident,
    Clustered,
}

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    let mut operations = top_level(module).into_iter();
    let gpu = operations.find(|op| Op::GpuModule.is(*op));
    let Some(gpu) = gpu.filter(|gpu| !gpu.has_attribute(&ATTRIBUTE)) else {
        return Ok(());
    };
    let functions = functions_of(gpu, Held::Resident)?;
    let arguments = functions.iter().map(|run| run.arguments).max().unwrap_or(0);
    let orders = function::order_bytes(arguments);
    let (functions, memory) = match Memory::new(&functions, orders, MOST_SHARED) {
        Some(memory) => (functions, memory),
        None => {
            let functions = functions_of(gpu, Held::Nothing)?;
            let Some(memory) = Memory::new(&functions, orders, MOST_SHARED) else {
                remark(
                    gpu,
                    "each launch of a flush is one of its own: a function needs all shared memory of a block",
                );
                return Ok(());
            };
            remark(
                gpu,
                "weights are read anew at each level: other functions need the shared memory of a block",
            );
            (functions, memory)
        }
    };
    let Some(first) = functions.first().map(|run| &run.function) else {
        return Ok(());
    };
    if let Some(reason) = is_pointless(module, &functions) {
        remark(
            gpu,
            &format!("each launch of a flush is one of its own: {reason}"),
        );
        return Ok(());
    }
    let mut flush = GpuFlush {
        symbol: FLUSH.to_owned(),
        threads: first.threads,
        shared_bytes: memory.bytes as u32,
        argument_bytes: function::argument_bytes(arguments) as u32,
        functions: symbols_of(&functions),
        clusters: None,
    };
    let block = blocks_of(gpu).first().copied();
    let block = block.ok_or_else(|| error(gpu, "expected a gpu.module with a body"))?;
    let inside = Builder::at_end(context, block, gpu.location());
    let mut of_flush = Flush {
        symbol: FLUSH,
        threads: flush.threads,
        argument_bytes: i64::from(flush.argument_bytes),
        is_clustered: false,
    };
    of_flush.write(context, &inside, (&functions, &memory));
    let functions = functions_of(gpu, Held::Clustered)?;
    let holds = functions.iter().any(|run| run.is_resident);
    if let Some(memory) = Memory::new(&functions, orders, MOST_CLUSTER_SHARED).filter(|_| holds) {
        of_flush.symbol = CLUSTERS;
        of_flush.is_clustered = true;
        of_flush.write(context, &inside, (&functions, &memory));
        flush.clusters = Some(GpuClusters {
            symbol: CLUSTERS.to_owned(),
            shared_bytes: memory.bytes as u32,
            functions: symbols_of(&functions),
        });
    }
    let json = serde_json::to_string(&flush)
        .map_err(|problem| error(gpu, &format!("cannot write `{ATTRIBUTE}`: {problem}")))?;
    set_attribute(gpu, ATTRIBUTE, StringAttribute::new(context, &json).into());
    let count = flush.functions.len();
    let clusters = match &flush.clusters {
        Some(clusters) => format!(", or of `{}` on a card with clusters", clusters.symbol),
        None => String::new(),
    };
    remark(
        gpu,
        &format!(
            "a flush of several steps is one launch of `{FLUSH}`, which runs {count} functions{clusters}"
        ),
    );
    Ok(())
}

fn symbols_of(functions: &[Run]) -> Vec<String> {
    let symbols = functions.iter().map(|run| run.function.symbol.clone());
    symbols.collect()
}

/// The functions of all kernels, each once; for few rows those whose weights stay, where that is wanted.
fn functions_of(gpu: OperationRef<'_, '_>, held: Held) -> Result<Vec<Run>, Failed> {
    let Ok(attribute) = gpu.attribute(&lower_kernels_to_gpu::ATTRIBUTE) else {
        return Err(error(
            gpu,
            "expected a gpu.module that `lower-kernels-to-gpu` has written",
        ));
    };
    let mut functions: Vec<Run> = Vec::new();
    let found = top_level(gpu);
    for (_, json) in descriptions(attribute) {
        let described = text_of(json);
        let described = described.and_then(|json| parse::<GpuDescription>(&json).ok());
        let described = described.ok_or_else(|| error(gpu, "expected kernels' descriptions"))?;
        for launch in described.launches {
            let GpuLaunch {
                resident,
                clustered,
                functions: of_launch,
                ..
            } = launch;
            let resident = match held {
                Held::Nothing => None,
                Held::Resident => resident,
                Held::Clustered => clustered,
            };
            let threads = of_launch.first().map(|function| function.threads);
            let left_out = usize::from(resident.is_some());
            let others = of_launch.into_iter().skip(left_out);
            let resident = resident.into_iter().map(|function| (function, true));
            // Those of more threads, for many rows, are launched by themselves.
            let others = others.filter(|other| Some(other.threads) == threads);
            for (function, is_resident) in resident.chain(others.map(|other| (other, false))) {
                let mut known = functions.iter();
                if known.all(|known| known.function.symbol != function.symbol) {
                    let op = found
                        .iter()
                        .find(|op| symbol_of(**op).as_deref() == Some(&function.symbol));
                    let held_at = op.and_then(|op| integer_attribute(*op, marks::HELD_AT));
                    let body = op.and_then(|op| blocks_of(*op).first().copied());
                    functions.push(Run {
                        function,
                        is_resident,
                        held_at,
                        arguments: body.map_or(0, |body| arguments_of(body).len()),
                    });
                }
            }
        }
    }
    Ok(functions)
}

/// Why no flush of a program can gain anything; nothing where one may.
fn is_pointless(module: OperationRef<'_, '_>, functions: &[Run]) -> Option<String> {
    let threads = functions.first().map(|run| run.function.threads);
    if functions
        .iter()
        .any(|run| Some(run.function.threads) != threads)
    {
        return Some("functions have blocks of different sizes".to_owned());
    }
    // A launch that an instance records at one place in the entry, out of any loop, has no other behind it.
    let of_launch = |run: &Run| {
        let name = run
            .function
            .symbol
            .trim_end_matches("_large")
            .trim_end_matches("_small")
            .trim_end_matches("_resident");
        name.to_owned()
    };
    let mut launches: Vec<String> = functions.iter().map(of_launch).collect();
    launches.dedup();
    let records = nested_ops(module)
        .into_iter()
        .filter(|op| Op::CfbRecord.is(*op));
    let records: Vec<_> = records.collect();
    let [record] = records[..] else {
        return None;
    };
    let parent = record.parent_operation();
    let is_once = parent.is_some_and(|parent| parent.has_attribute(&marks::ENTRY));
    (is_once && launches.len() == 1).then(|| "it has no other".to_owned())
}
