//! `keep-weights-bf16`: the packed weights of products are kept in bf16 (the loop level).
//!
//! With few rows a launch, a processor waits for the weights that it streams from its caches. Kept in bf16, which is 8
//! bits of a number's 24 and has half the bytes, they come up to twice as fast. Each number is rounded once, to the
//! nearest, when the weights are loaded and packed; products widen it, which is exact, and multiply and add in `f32` in
//! the order that they have without. So the bits are those of `f32` with rounded weights, and do not depend on the
//! batch.
//!
//! ```mlir
//! %w = ragged.param @w panels 32 : memref<28x140xf32>
//! // becomes
//! %w = ragged.param @w panels 32 bf16 : memref<28x140xf32>
//! ```
//!
//! That is every parameter in panels, and every weight that is computed from parameters when they are loaded. A product
//! that is computed then, since it is the same for all rows, has the bits that it would have later. Not rounded: whatever
//! is read in another way (biases, embeddings, what a product adds to), matrices that a kernel packs itself, and those of
//! products over calls. A remark says how many bytes are kept.
//!
//! Part of the pipeline with `--keep-weights bf16` only. Requires: the loop level, of `plan-kernels`. Leaves: the same. A
//! program with gradients is refused: its parameters change by steps that are far smaller than what bf16 tells apart.

use std::collections::HashSet;

use cohort_dialects::builder::{Op, operations_of, result_of};
use cohort_dialects::keys;
use cohort_dialects::marks::GRADIENTS;
use cohort_passes::kernel::loop_level::{Memory, kernels};
use cohort_passes::pass::{Outcome, PassInfo, error, remark};
use cohort_passes::support::ir::{
    COMPUTED, blocks_of, integer_attribute, name_attribute, set_attribute, symbol_of, top_level,
};
use melior::{
    Context,
    ir::{Attribute, OperationRef, operation::OperationLike},
};

/// The pass `keep-weights-bf16`.
pub const PASS: PassInfo = PassInfo {
    name: "keep-weights-bf16",
    summary: "Keep the packed weights of products in bf16 (the loop level)",
    description: include_str!("keep_weights_bf16.rs"),
    run,
};

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    if module.has_attribute(&GRADIENTS) {
        return Err(error(
            module,
            "weights that are trained are kept in f32; leave `--keep-weights bf16` out for gradients",
        ));
    }
    let globals = top_level(module).into_iter();
    let at_load: HashSet<String> = globals
        .filter_map(|global| name_attribute(global, COMPUTED))
        .collect();
    // The weights that stay packed, each once.
    let mut packed = HashSet::new();
    let (mut first, mut numbers) = (None, 0);
    for [kernel, _] in kernels(module) {
        let is_at_load = symbol_of(kernel).is_some_and(|name| at_load.contains(&name));
        for param in blocks_of(kernel).into_iter().flat_map(operations_of) {
            let panels = integer_attribute(param, keys::PANELS);
            let (true, Some(panels)) = (Op::RaggedParam.is(param), panels) else {
                continue;
            };
            set_attribute(param, keys::BF16, Attribute::unit(context));
            if is_at_load {
                continue;
            }
            first.get_or_insert(kernel);
            if packed.insert((name_attribute(param, keys::PARAM), panels)) {
                numbers += padded(&Memory::of(result_of(param, 0)), panels);
            }
        }
    }
    if let Some(kernel) = first {
        let text = format!(
            "the packed weights of products are kept in bf16, in {} bytes instead of {}",
            2 * numbers,
            4 * numbers
        );
        remark(kernel, &text);
    }
    Ok(())
}

/// How many numbers a weight in panels has, with those that fill the last panel.
fn padded(memory: &Option<Memory>, panels: i64) -> i64 {
    let shape = memory.as_ref().map_or(&[][..], |memory| &memory.shape);
    let (columns, rows) = shape.split_last().unwrap_or((&0, &[]));
    (columns + panels - 1) / panels * panels * rows.iter().product::<i64>()
}
