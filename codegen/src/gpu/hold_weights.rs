//! `hold-weights`: weights of recursions stay in shared memory for a whole flush (the loop level).
//!
//! Each level of a recursion multiplies a few rows with the same weights. A flush that is one launch (`persistence`) can
//! leave them where they are: a block takes the same columns at each level, and has them in its shared memory. Which
//! kernels that is worth while for the module says, that it fits their sizes.
//!
//! ```mlir
//! ragged.tiles over [256] small [2, 1, 32, 1] large [8, 1, 16, 1] from 512 { … }
//! // becomes
//! ragged.tiles over [256] small [2, 1, 32, 1] large [8, 1, 16, 1] from 512 resident [4, 16, 3] { … }
//! ```
//!
//! A kernel *repeats* if one of its calls may depend on another of the same flush: it is recorded in a loop, or in
//! another function than the entry, and takes what a call, a loop or that function's caller gives. Weights stay if
//!
//! - every kernel that repeats is one launch of products: anything else that runs at each level would need the
//!   same shared memory;
//! - its products are one sum, in f32, of rows with parameters as they are, with as many terms as
//!   are copied at once or a multiple;
//! - a block has room for the columns that it takes of each of these kernels, with all their terms, at least 4 of
//!   them, and no kernel has more such parts of its columns than a card has processors.
//!
//! Of sizes that have room the one with the most columns is taken: then the fewest blocks read each row. A thread has
//! one row and one column in all of them, so how many threads a level has does not depend on it.
//!
//! Requires: what `plan-kernels-for-gpu` leaves. Leaves: the same; a module without code for a GPU as it is. A kernel
//! that repeats and whose weights do not stay gets a remark that says why.

use cohort_abi::gpu::Precision;
use cohort_dialects::builder::{Op, Val, extend_op, operands_of, operations_of};
use cohort_dialects::keys;
use cohort_dialects::marks;
use cohort_dialects::types::lazy_tensor;
use cohort_passes::kernel::description::ConstantDescription;
use cohort_passes::kernel::rows::layout::Place;
use cohort_passes::pass::{Failed, Outcome, PassInfo, remark};
use cohort_passes::support::ir::{
    argument_of, blocks_of, defining_op, nested_ops, set_attribute, symbol_of, top_level,
};
use cohort_passes::support::symbols::records_by_kernel;
use melior::{
    Context,
    ir::{
        BlockLike, OperationRef, ValueLike, attribute::DenseI64ArrayAttribute,
        operation::OperationLike,
    },
};

use super::lower_kernels_to_gpu::function::MOST_SHARED;
use super::lower_kernels_to_gpu::launches::{self, Chain, Launch, Tile};
use super::lower_kernels_to_gpu::tile::Resident;
use super::lower_kernels_to_gpu::tile::resident::terms_of;
use crate::read_rows::kernel::Kernel;

/// The pass `hold-weights`.
pub const PASS: PassInfo = PassInfo {
    name: "hold-weights",
    summary: "Leave weights of recursions in shared memory for a whole flush (the loop level)",
    description: include_str!("hold_weights.rs"),
    run,
};

/// Streaming multiprocessors of a card, at least: each has the shared memory of a block.
const PROCESSORS: i64 = 128;

/// Columns of a block, and terms of rows in shared memory and how many times as many: the best first.
const COLUMNS: [i64; 2] = [8, 4];
const RINGS: [(i64, i64); 7] = [
    (64, 3),
    (64, 2),
    (32, 4),
    (32, 3),
    (16, 4),
    (16, 3),
    (16, 2),
];

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    let mut operations = top_level(module).into_iter();
    let Some(gpu) = operations.find(|op| Op::GpuModule.is(*op)) else {
        return Ok(());
    };
    let records = records_by_kernel(nested_ops(module));
    let repeat = |kernel: &OperationRef<'c, 'c>| {
        let of_kernel = symbol_of(*kernel).and_then(|name| records.get(&name));
        Op::RaggedKernel.is(*kernel)
            && of_kernel.is_some_and(|all| all.iter().any(|record| repeats(*record)))
    };
    let kernels: Vec<_> = top_level(gpu).into_iter().filter(repeat).collect();
    let mut tiles = vec![];
    for kernel in &kernels {
        match tile_of(*kernel)? {
            Ok(tile) => tiles.push(tile),
            Err(reason) => {
                tell(*kernel, reason);
                let others = kernels.iter().filter(|other| *other != kernel);
                others.for_each(|other| {
                    tell(
                        *other,
                        "another kernel at the same levels has other launches",
                    );
                });
                return Ok(());
            }
        }
    }
    let tiles: Vec<&Tile<'c>> = tiles.iter().map(|tile| &**tile).collect();
    let Some(resident) = size(&tiles) else {
        let reason =
            format!("a block has {MOST_SHARED} bytes of shared memory, which do not hold them");
        kernels.iter().for_each(|kernel| tell(*kernel, &reason));
        return Ok(());
    };
    for tile in tiles {
        let Resident {
            columns,
            terms,
            stages,
        } = resident;
        let numbers = DenseI64ArrayAttribute::new(context, &[columns, terms, stages]);
        set_attribute(tile.op, keys::RESIDENT, numbers.into());
    }
    Ok(())
}

fn tell(kernel: OperationRef<'_, '_>, reason: &str) {
    let message = format!("its weights are read anew at each level on a GPU: {reason}");
    remark(kernel, &message);
}

// Which kernels repeat.

/// Whether a call may depend on one at the same place.
fn repeats(record: OperationRef<'_, '_>) -> bool {
    is_recorded_again(record) && operands_of(record).into_iter().any(is_of_a_step)
}

/// Whether a record is in a loop or in another function than the entry.
fn is_recorded_again<'c>(record: OperationRef<'c, 'c>) -> bool {
    let mut around = record.parent_operation().map(extend_op);
    while let Some(op) = around {
        match Op::of(op) {
            Some(Op::ScfFor | Op::ScfWhile | Op::CfbFold) => return true,
            Some(Op::FuncFunc) => return !op.has_attribute(&marks::ENTRY),
            _ => around = op.parent_operation().map(extend_op),
        }
    }
    false
}

/// Whether a tensor comes from a call, a loop or a function's caller, if only through other kernels.
fn is_of_a_step<'c>(value: Val<'c>) -> bool {
    if lazy_tensor(value.r#type()).is_none() {
        return false;
    }
    if let Some(op) = defining_op(value) {
        return match Op::of(op) {
            Some(Op::CfbRecord) => operands_of(op).into_iter().any(is_of_a_step),
            Some(Op::FuncCall | Op::ScfFor | Op::ScfWhile | Op::ScfIf | Op::CfbMatch) => true,
            kind => kind == Some(Op::CfbFold),
        };
    }
    let Some((block, number)) = argument_of(value) else {
        return false;
    };
    block.parent_operation().is_some_and(|op| match Op::of(op) {
        Some(Op::ScfFor | Op::ScfWhile) => true,
        // What is handed on comes before the elements.
        Some(Op::CfbFold) => number < op.result_count(),
        Some(Op::FuncFunc) => !op.has_attribute(&marks::ENTRY),
        // A part of the input, or an element.
        _ => false,
    })
}

// What fits.

/// The products of a kernel whose only launch they are, or why its weights cannot stay.
fn tile_of<'c>(
    kernel: OperationRef<'c, 'c>,
) -> Result<Result<Box<Tile<'c>>, &'static str>, Failed> {
    let stages: Vec<_> = blocks_of(kernel)
        .into_iter()
        .flat_map(operations_of)
        .collect();
    if stages.iter().any(|op| Op::RaggedCalls.is(*op)) {
        return Ok(Err("its unit is the call"));
    }
    let read = Kernel::read(kernel)?;
    let mut launches = launches::read(&read)?.into_iter();
    let (Some((_, Launch::Tile(tile))), None) = (launches.next(), launches.next()) else {
        return Ok(Err("it is not one launch of products"));
    };
    Ok(match refused(&read, &tile) {
        Some(reason) => Err(reason),
        None => Ok(tile),
    })
}

fn refused(kernel: &Kernel<'_>, tile: &Tile<'_>) -> Option<&'static str> {
    let [chain] = &tile.chains[..] else {
        return Some("its products are not one sum");
    };
    if tile.precision != Precision::F32 || tile.domain.len() != 1 {
        return Some("its products are not of vectors in f32");
    }
    let is_parameter = |place| match place {
        Place::Constant(at) => {
            matches!(kernel.constants[at], ConstantDescription::Plain { .. })
        }
        _ => false,
    };
    if !(chain.segments.iter()).all(|segment| is_parameter(segment.right)) {
        return Some("it multiplies with what is computed");
    }
    let is_wide = |chain: &Chain<'_>| {
        let mut segments = chain.segments.iter();
        segments.all(|segment| segment.copies[0] == 4 && segment.k % tile.small.depth == 0)
    };
    (!is_wide(chain)).then_some("its rows have no multiple of the terms that are copied at once")
}

/// The size that there is room for in all of them together.
fn size(tiles: &[&Tile<'_>]) -> Option<Resident> {
    let sizes = COLUMNS.into_iter().flat_map(|columns| {
        let rings = RINGS.into_iter();
        rings.map(move |(terms, stages)| Resident {
            columns,
            terms,
            stages,
        })
    });
    let mut sizes = sizes.filter(|size| {
        let fits = |tile: &&Tile<'_>| {
            let columns = tile.columns();
            let mut segments = tile.chains.iter().flat_map(|chain| &chain.segments);
            columns % size.columns == 0
                && columns / size.columns <= PROCESSORS
                && segments.all(|segment| segment.k % size.terms == 0)
        };
        let bytes = tiles.iter().flat_map(|tile| &tile.chains);
        let bytes = bytes.map(|chain| size.shared_bytes(chain.gates.len() as i64, terms_of(chain)));
        tiles.iter().all(fits) && bytes.sum::<i64>() <= MOST_SHARED
    });
    sizes.next()
}
