//! `hold-weights`: weights of recursions stay in shared memory for a whole flush (the loop level).
//!
//! Each level of a recursion multiplies a few rows with the same weights. A flush that is one launch (`persistence`) can
//! leave them where they are: a block takes the same columns at each level, and has them in its shared memory. Which
//! kernels that is worth while for the module says, that it fits their sizes.
//!
//! ```mlir
//! ragged.tiles over [256] small [2, 1, 32, 1] large [8, 1, 16, 1] from 512 { … }
//! // becomes
//! ragged.tiles over [256] small [2, 1, 32, 1] large [8, 1, 16, 1] from 512 resident [4, 16, 3, 20480] { … }
//! ```
//!
//! A kernel *repeats* if one of its calls may depend on another of the same flush: it is recorded in a loop, or in
//! another function than the entry, and takes what a call, a loop or that function's caller gives. The weights of a launch
//! of its products stay if
//!
//! - its calls make one row each: those of a row for each element are many at each level;
//! - its products are in f32, of rows with parameters as they are, with as many terms as are copied at once or a multiple;
//! - at least 4 columns of each of these launches, with all their terms, fit a block's shared memory beside what the
//!   module's other functions use, and its columns are divided between at most as many blocks as a card has multiprocessors.
//!   If they do not all fit, the launches with the fewest weights are dropped first.
//!
//! The last number says where the weights begin in a flush's shared memory: behind what the functions need for as long as they
//! run, rows of these launches among it. A launch that is alone at all levels may have the beginning, and load its weights again
//! where another function ran.
//!
//! Of sizes that have room the one with the most columns is taken: then the fewest blocks read each row. A thread has
//! one row and one column in all of them, so how many threads a level has does not depend on it (`form-clusters` gives a thread two
//! rows, where all blocks of a cluster have other columns).
//!
//! Requires: what `plan-kernels-for-gpu` leaves. Leaves: the same; a module without code for a GPU as it is. A launch of products
//! of a kernel that repeats, whose weights do not stay, gets a remark that says why.

use std::cmp::Reverse;

use cohort_abi::gpu::Precision;
use cohort_dialects::builder::{Op, Val, extend_op, operands_of, operations_of, results_of};
use cohort_dialects::keys;
use cohort_dialects::marks;
use cohort_dialects::types::{array_element, lazy_tensor};
use cohort_passes::kernel::description::ConstantDescription;
use cohort_passes::kernel::rows::layout::{Place, round_up};
use cohort_passes::pass::{Outcome, PassInfo, remark};
use cohort_passes::support::ir::{
    TensorType, argument_of, blocks_of, defining_op, nested_ops, set_attribute, symbol_of,
    top_level,
};
use cohort_passes::support::symbols::records_by_kernel;
use melior::{
    Context,
    ir::{
        BlockLike, OperationRef, ValueLike, attribute::DenseI64ArrayAttribute,
        operation::OperationLike,
    },
};

use super::lower_kernels_to_gpu::function::{MOST_SHARED, SHARED, shared_bytes};
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

/// Bytes of a block's shared memory for weights and for what other functions need: a flush has its orders there, too
/// (`persistence`), of up to 60 arguments.
const ROOM: i64 = MOST_SHARED - 1024;

/// Of a grid: columns of a block, the best first.
const GRID: Room = Room {
    bytes: ROOM,
    columns: &[8, 4],
    has: |parts| parts <= PROCESSORS,
    thread_rows: |_| 1,
};

/// What blocks have room for.
pub struct Room {
    /// Of shared memory, for weights and for what other functions need.
    pub bytes: i64,
    /// Columns of a block, the best first.
    pub columns: &'static [i64],
    /// Whether as many blocks are there as columns have parts.
    pub has: fn(parts: i64) -> bool,
    /// Rows per thread at most, given how many blocks the columns are divided between.
    pub thread_rows: fn(parts: i64) -> i64,
}

/// Terms of rows in shared memory and how many times as many: the best first.
const RINGS: [(i64, i64); 8] = [
    (64, 4),
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
    let records_of = |kernel: OperationRef<'c, 'c>| {
        let of_kernel = symbol_of(kernel).and_then(|name| records.get(&name));
        of_kernel.into_iter().flatten().copied()
    };
    let repeat = |kernel: OperationRef<'c, 'c>| records_of(kernel).any(repeats);
    let kernels = top_level(gpu).into_iter();
    let (mut tiles, mut others) = (vec![], 0);
    // Launches of kernels that repeat.
    let mut repeated = 0;
    for kernel in kernels.filter(|op| Op::RaggedKernel.is(*op)) {
        let stages = blocks_of(kernel).into_iter().flat_map(operations_of);
        if stages.into_iter().any(|op| Op::RaggedCalls.is(op)) {
            others = others.max(SHARED);
            if repeat(kernel) {
                repeated += 1;
                tell(kernel, "its unit is the call");
            }
            continue;
        }
        let read = Kernel::read(kernel)?;
        let launches: Vec<_> = launches::read(&read)?.into_iter().map(|it| it.1).collect();
        let repeats = repeat(kernel);
        let makes_many_rows = records_of(kernel).any(makes_many_rows);
        for (launch, bytes) in shared_bytes(&read, launches)? {
            others = others.max(bytes);
            repeated += usize::from(repeats);
            let Launch::Tile(tile) = launch else { continue };
            let reason = match makes_many_rows {
                true => Some("a call has as many rows as its instance has"),
                false => refused(&read, &tile),
            };
            match reason {
                None if repeats => {
                    tiles.push(*tile);
                    continue;
                }
                Some(reason) if repeats => tell(tile.op, reason),
                _ => {}
            }
            others = others.max(small_bytes(&tile));
        }
    }
    let is_alone = tiles.len() == 1 && repeated == 1;
    let (stay, size) = choose(tiles, others, is_alone);
    for (tile, numbers) in stay.iter().zip(numbers(&stay, size)) {
        let numbers = DenseI64ArrayAttribute::new(context, &numbers);
        set_attribute(tile.op, keys::RESIDENT, numbers.into());
    }
    Ok(())
}

fn tell(op: OperationRef<'_, '_>, reason: &str) {
    let message = format!("its weights are read anew at each level on a GPU: {reason}");
    remark(op, &message);
}

// Which kernels repeat.

/// Whether a call may depend on one at the same place.
fn repeats(record: OperationRef<'_, '_>) -> bool {
    is_recorded_again(record) && operands_of(record).into_iter().any(is_of_a_step)
}

/// Whether a call makes one row for each element of its instance.
fn makes_many_rows(record: OperationRef<'_, '_>) -> bool {
    let results = results_of(record).into_iter();
    let mut tensors = results.filter_map(|row| TensorType::of(lazy_tensor(row.r#type())?));
    tensors.any(|tensor| tensor.shape.first() == Some(&None))
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

/// Whether a tensor, or some element of an array, comes from a call, a loop or a function's caller, if only through other
/// kernels.
fn is_of_a_step<'c>(value: Val<'c>) -> bool {
    if lazy_tensor(value.r#type()).is_none() && array_element(value.r#type()).is_none() {
        return false;
    }
    let any_of = |op| operands_of(op).into_iter().any(is_of_a_step);
    if let Some(op) = defining_op(value) {
        return match Op::of(op) {
            Some(Op::CfbRecord | Op::CfbArrayCreate | Op::CfbArrayGet | Op::CfbArrayPush) => {
                any_of(op)
            }
            Some(Op::CfbMap) => {
                let ends = blocks_of(op)
                    .into_iter()
                    .filter_map(|body| operations_of(body).pop());
                any_of(op) || ends.into_iter().any(any_of)
            }
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
        Some(Op::CfbMap) => {
            let array = operands_of(extend_op(op)).get(number).copied();
            array.is_some_and(is_of_a_step)
        }
        Some(Op::FuncFunc) => !op.has_attribute(&marks::ENTRY),
        // A part of the input, or an element.
        _ => false,
    })
}

// What fits.

/// Those whose weights stay in shared memory, with the size of all of them, and where the first begin; other functions need so
/// many bytes of it. One that is alone at all levels may be in the way of what runs once.
fn choose<'c>(
    mut tiles: Vec<Tile<'c>>,
    mut others: i64,
    is_alone: bool,
) -> (Vec<Tile<'c>>, (Resident, i64)) {
    tiles.sort_by_key(|tile| Reverse(weights_of(tile)));
    // Whichever is too large by itself is in nobody's way.
    let fits_alone =
        |tile: &Tile<'c>| size(std::slice::from_ref(tile), others, is_alone, &GRID).is_some();
    let (mut tiles, mut left_out): (Vec<_>, Vec<_>) = tiles.into_iter().partition(fits_alone);
    let small = |tiles: &[Tile<'c>]| tiles.iter().map(small_bytes).max();
    let found = loop {
        others = others.max(small(&left_out).unwrap_or(0));
        match size(&tiles, others, is_alone, &GRID) {
            Some(found) => break found,
            None => left_out.extend(tiles.pop()),
        }
    };
    for tile in left_out {
        let room = if is_alone { ROOM } else { ROOM - others };
        let reason = format!(
            "a block has {room} bytes of shared memory for weights, which do not hold them"
        );
        tell(tile.op, &reason);
    }
    (tiles, found)
}

/// Shared memory of the function for few rows, which a flush does without where weights stay.
pub fn small_bytes(tile: &Tile<'_>) -> i64 {
    tile.small.shared_bytes(tile.gates())
}

/// Weights that a launch of products reads.
fn weights_of(tile: &Tile<'_>) -> i64 {
    let of_chain = |chain: &Chain<'_>| chain.gates.len() as i64 * terms_of(chain);
    tile.columns() * tile.chains.iter().map(of_chain).sum::<i64>()
}

fn refused(kernel: &Kernel<'_>, tile: &Tile<'_>) -> Option<&'static str> {
    if tile.chains.is_empty() {
        return Some("it has no products");
    }
    if !GRID
        .columns
        .iter()
        .any(|columns| tile.columns() % columns == 0)
    {
        return Some("a block has no whole part of its columns");
    }
    if tile.precision != Precision::F32 || tile.domain.len() != 1 {
        return Some("its products are not of vectors in f32");
    }
    let is_parameter = |place| match place {
        Place::Constant(at) => {
            matches!(kernel.constants[at], ConstantDescription::Plain { .. })
        }
        _ => false,
    };
    let mut segments = tile.chains.iter().flat_map(|chain| &chain.segments);
    if !segments.all(|segment| is_parameter(segment.right)) {
        return Some("it multiplies with what is computed");
    }
    let is_wide = |chain: &Chain<'_>| {
        let mut segments = chain.segments.iter();
        segments.all(|segment| segment.copies[0] == 4 && segment.k % tile.small.depth == 0)
    };
    (!tile.chains.iter().all(is_wide))
        .then_some("its rows have no multiple of the terms that are copied at once")
}

/// The size that there is room for in all of them together, and where the weights begin: behind the `others` bytes that other
/// functions need, or at the beginning.
pub fn size(
    tiles: &[Tile<'_>],
    others: i64,
    is_alone: bool,
    room: &Room,
) -> Option<(Resident, i64)> {
    let sizes = room.columns.iter().flat_map(|columns| {
        let thread_rows = tiles
            .iter()
            .map(|tile| (room.thread_rows)(tile.columns() / columns));
        let thread_rows = thread_rows.max().unwrap_or(1);
        let rings = RINGS.into_iter();
        rings.map(move |(terms, stages)| Resident {
            columns: *columns,
            terms,
            stages,
            held_at: None,
            thread_rows,
        })
    });
    let mut sizes = sizes.filter_map(|size| {
        let fits = |tile: &Tile<'_>| {
            let columns = tile.columns();
            let mut segments = tile.chains.iter().flat_map(|chain| &chain.segments);
            columns % size.columns == 0
                && (room.has)(columns / size.columns)
                && segments.all(|segment| segment.k % size.terms == 0)
        };
        let held = tiles
            .iter()
            .map(|tile| round_up(size.held_bytes(&tile.chains), 16));
        let held: i64 = held.sum();
        let common = round_up(others.max(size.ring_bytes()), 16);
        let place = match tiles.iter().all(fits) {
            true if common + held <= room.bytes => Some(common),
            true if is_alone && held + size.ring_bytes() <= room.bytes => Some(0),
            _ => None,
        };
        Some((size, place?))
    });
    sizes.next()
}

/// The numbers of the attribute for each tile, given a size and where the weights of the first one begin: one behind another; or
/// at the beginning, where that is in nobody's way.
pub fn numbers(tiles: &[Tile<'_>], (size, common): (Resident, i64)) -> Vec<Vec<i64>> {
    let mut next = common;
    let of_tile = |tile: &Tile<'_>| {
        let mut numbers = vec![size.columns, size.terms, size.stages];
        if common > 0 {
            numbers.push(next);
            next += round_up(size.held_bytes(&tile.chains), 16);
        }
        numbers
    };
    tiles.iter().map(of_tile).collect()
}
