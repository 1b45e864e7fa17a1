//! Chooses what a person may choose otherwise: rows of a block, the loop that runs in vectors and how
//! many of them at once, tiles. What depends on the processor is chosen by [`Processor`].

use cohort_dialects::builder::Op;
use cohort_dialects::keys;
use cohort_passes::kernel::affine::Affine;
use cohort_passes::kernel::rows::body::{Body, Instruction};
use cohort_passes::kernel::rows::layout::{LANES, Slot};
use cohort_passes::kernel::rows::stage::{Combiner, Fold, ReduceRows, TILE_ROWS};
use cohort_passes::kernel::schedule::Processor;
use cohort_passes::pass::Failed;
use cohort_passes::support::ir::nested_ops;
use melior::ir::OperationRef;

use crate::cpu::lower_kernels::scratch;
use crate::plan_rows::{FoldSchedule, NestSchedule, Schedule};
use crate::read_rows::kernel::number;

/// Rows that the micro-kernel for panels of one column takes at once.
pub const NARROW_ROW_TILE: i64 = 4;

/// Results that are folded at once: vectors side by side, and neighbours along another dim.
const MAX_VECTORS: i64 = 4;
const MAX_NEIGHBOURS: i64 = 4;

/// Values that a lane folds at most by itself where lanes are rows: each is read from sixteen places.
const MAX_FOLDED_IN_LANE: i64 = 8;

/// Rows of the kernel that fill the tiles of its products.
pub fn tile_of_rows(slots: &[Slot]) -> i64 {
    let product_rows = slots.iter().map(|slot| slot.product_rows).max();
    match product_rows {
        Some(1) => TILE_ROWS,
        _ => 1,
    }
}

/// How many rows a block of a kernel at the loop level has.
pub fn rows_of_block(processor: &Processor, kernel: OperationRef<'_, '_>) -> Result<i64, Failed> {
    let peak = scratch::bytes_of_row(kernel)?.max(1);
    Ok(processor.rows_of_block(peak, weight_bytes(kernel)?))
}

/// The bytes that the products of a kernel at the loop level read of weights, whatever the rows.
fn weight_bytes(kernel: OperationRef<'_, '_>) -> Result<i64, Failed> {
    let bytes = nested_ops(kernel)
        .into_iter()
        .filter(|op| Op::RaggedProduct.is(*op))
        .map(|product| Ok(number(product, keys::K)? * number(product, keys::COLUMNS)? * 4));
    bytes.sum()
}

/// What runs in vectors, and how.
pub struct Vectors;

impl<'c> Schedule<'c> for Vectors {
    fn nest(&self, body: &Body<'c>) -> NestSchedule<'c> {
        let body = merge_dims(body);
        let lanes = lanes_of_group(&body);
        NestSchedule {
            by: lanes.map(|dim| width_along(&body, dim)),
            lanes,
            across_rows: body.rows && body.domain.iter().product::<i64>() == 1,
            body,
        }
    }

    fn fold(&self, of: &Fold<'c>) -> FoldSchedule {
        fold(of)
    }

    fn list(&self, _: &ReduceRows<'c>, shape: &[i64]) -> i64 {
        let size = shape.last();
        size.map_or(1, |size| MAX_VECTORS.min((size + LANES - 1) / LANES))
    }
}

/// The last dim along which everything is stored to neighbouring elements.
fn lanes_of_group(body: &Body<'_>) -> Option<usize> {
    let dense = |dim: usize| {
        let mut stores = body.stores.iter();
        stores.all(|store| store.address.coefficient(dim) == 1)
    };
    (0..body.domain.len())
        .rev()
        .find(|dim| body.domain[*dim] > 1 && dense(*dim))
}

/// Elements at a time: two vectors where there are as many, and all that is loaded lies side by side.
fn width_along(body: &Body<'_>, dim: usize) -> i64 {
    if gathers(body, dim) > 0 || body.domain[dim] < 2 * LANES {
        LANES
    } else {
        2 * LANES
    }
}

/// Loads that are neither of one element nor of neighbours along a dim.
fn gathers(body: &Body<'_>, dim: usize) -> usize {
    let strided = |instruction: &Instruction<'_>| match instruction {
        Instruction::Load { address, .. } => !matches!(address.coefficient(dim), 0 | 1),
        _ => false,
    };
    let instructions = body.values.iter().map(|(instruction, _)| instruction);
    instructions
        .filter(|instruction| strided(instruction))
        .count()
}

/// The same body with neighbouring dims made one where every address allows it.
fn merge_dims<'c>(body: &Body<'c>) -> Body<'c> {
    let mut body = body.clone();
    let mut dim = body.domain.len();
    while dim >= 2 {
        dim -= 1;
        let size = body.domain[dim];
        let mergeable =
            |address: &Affine| address.coefficient(dim - 1) == address.coefficient(dim) * size;
        let loads = body
            .values
            .iter()
            .all(|(instruction, _)| match instruction {
                Instruction::Load { address, .. } => mergeable(address),
                _ => true,
            });
        if loads && body.stores.iter().all(|store| mergeable(&store.address)) {
            for (instruction, _) in &mut body.values {
                if let Instruction::Load { address, .. } = instruction {
                    *address = address.without(dim - 1);
                }
            }
            for store in &mut body.stores {
                store.address = store.address.without(dim - 1);
            }
            body.domain[dim] *= body.domain[dim - 1];
            body.domain.remove(dim - 1);
        }
    }
    body
}

/// Lanes run along the dim with the fewest gathers, the longer of equals.
fn fold(fold: &Fold<'_>) -> FoldSchedule {
    let body = &fold.body;
    let size = |dim: usize| body.domain[dim];
    let kept: Vec<usize> = (0..body.domain.len())
        .filter(|dim| !fold.dims.contains(dim))
        .collect();
    // A result is stored as vectors along its last dim only.
    let candidates = kept.last().into_iter().chain(&fold.dims).copied();
    let lanes = candidates
        .filter(|dim| size(*dim) > 1)
        .min_by_key(|dim| (gathers(body, *dim), -size(*dim).min(LANES), *dim));
    let of_kept = lanes.filter(|dim| !fold.dims.contains(dim));
    let others = kept.iter().copied().filter(|dim| Some(*dim) != of_kept);
    let along = others.rev().find(|dim| size(*dim) > 1);
    // More than one only if they share a load.
    let shares = |dim: usize| {
        let mut instructions = body.values.iter().map(|(instruction, _)| instruction);
        instructions.any(|instruction| match instruction {
            Instruction::Load { address, .. } => address.coefficient(dim) == 0,
            _ => false,
        })
    };
    if is_folded_in_lane(fold, lanes) {
        return FoldSchedule {
            lanes: None,
            vectors: 1,
            neighbours: 1,
            across_rows: true,
        };
    }
    FoldSchedule {
        across_rows: false,
        lanes,
        vectors: of_kept.map_or(1, |dim| MAX_VECTORS.min((size(dim) + LANES - 1) / LANES)),
        neighbours: along
            .filter(|dim| shares(*dim))
            .map_or(1, |dim| size(dim).min(MAX_NEIGHBOURS)),
    }
}

/// Whether each lane folds a row of its own: few values to a single result, which is the same in the order of the
/// program as in that of lanes that run along the values.
fn is_folded_in_lane(fold: &Fold<'_>, lanes: Option<usize>) -> bool {
    let body = &fold.body;
    let is_kept = |dim: &usize| !fold.dims.contains(dim);
    let kept: i64 = (0..body.domain.len())
        .filter(is_kept)
        .map(|dim| body.domain[dim])
        .product();
    let folded: i64 = fold.dims.iter().map(|dim| body.domain[*dim]).product();
    let is_in_order = lanes.is_none() || is_order_free(&fold.combiner);
    body.rows && kept == 1 && folded <= MAX_FOLDED_IN_LANE && is_in_order
}

/// Whether a combiner gives the same bits in any order: rounding is what makes a difference.
fn is_order_free(combiner: &Combiner<'_>) -> bool {
    match combiner {
        Combiner::Operation(op) => matches!(
            Op::of(*op),
            Some(
                Op::ArithMaximumf
                    | Op::ArithMinimumf
                    | Op::ArithMaxsi
                    | Op::ArithMinsi
                    | Op::ArithMaxui
                    | Op::ArithMinui
                    | Op::ArithAddi
                    | Op::ArithMuli
                    | Op::ArithAndi
                    | Op::ArithOri
                    | Op::ArithXori
            )
        ),
        Combiner::Product(..) => false,
    }
}
