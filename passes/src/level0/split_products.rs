//! `split-products`: the part of a product that need not wait for the recursion leaves it (level 0).
//!
//! In `concat(x, h) @ w` the whole product waits for `h`, which a loop or a recursion carries from
//! step to step, although `x` is known beforehand. The product becomes a sum of two: that of `x`
//! with its rows of `w`, which `hoist-operators` then makes a block of static depth, and that of
//! `h` with the others. Each is a sum over its rows of `w` in their order.
//!
//! ```mlir
//! %c = tensor.concat dim(0) %x, %h : (tensor<3xf32>, tensor<5xf32>) -> tensor<8xf32>
//! %p = linalg.vecmat ins(%c, %w : …) outs(%zero : …) -> tensor<4xf32>
//! // becomes, in a loop that carries %h
//! %u = tensor.extract_slice %w[0, 0] [3, 4] [1, 1] : tensor<8x4xf32> to tensor<3x4xf32>
//! %a = linalg.vecmat ins(%x, %u : …) outs(%zero : …) -> tensor<4xf32>
//! %v = tensor.extract_slice %w[3, 0] [5, 4] [1, 1] : tensor<8x4xf32> to tensor<5x4xf32>
//! %b = linalg.vecmat ins(%h, %v : …) outs(%zero : …) -> tensor<4xf32>
//! %p = arith.addf %a, %b : tensor<4xf32>
//! ```
//!
//! It pays where the part that is known early has at least four rows of `w`: with fewer, storing
//! and reading its result costs what computing it does.
//!
//! Requires: level 0 after inlining. Leaves: level 0. Not supported: products of matrices (they stay
//! whole). After ACRoBat, "operator hoisting".

use cohort_dialects::builder::{Op, operands_of};
use melior::{Context, ir::OperationRef};

use crate::pass::{Outcome, PassInfo};
use crate::support::concatenations::{Run, concatenation, runs, split};
use crate::support::waves::{BasicBlock, walk_blocks};

/// The pass `split-products`.
pub const PASS: PassInfo = PassInfo {
    name: "split-products",
    summary: "Split products of a concatenation by what need not wait for the recursion (level 0)",
    description: include_str!("split_products.rs"),
    run,
};

/// Rows of the matrix below which a product costs no more than storing its result.
const FEWEST_ROWS: u64 = 4;

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    // Collected first: splitting erases operations that the walk still looks at.
    let mut splits = Vec::new();
    walk_blocks(module, &mut |block| {
        let products = block.operations.iter().copied();
        splits.extend(products.filter_map(|product| parts(block, product)));
    });
    for (product, early, late) in splits {
        // The early ones first, so that their sum is early too.
        split(context, product, &[early, late]);
    }
    Ok(())
}

type Runs<'c> = Vec<Run<'c, bool>>;

/// The parts of a product that are known early, and those that are not, if it pays to split it.
fn parts<'c>(
    block: &BasicBlock<'c>,
    product: OperationRef<'c, 'c>,
) -> Option<(OperationRef<'c, 'c>, Runs<'c>, Runs<'c>)> {
    let concat = concatenation(product).filter(|_| Op::LinalgVecmat.is(product))?;
    if block.value_wave(operands_of(product)[1]) > 0 {
        return None;
    }
    let runs = runs(concat, |part| block.value_wave(part) == 0)?;
    let (early, late): (Runs<'c>, Runs<'c>) = runs.into_iter().partition(|run| run.holds);
    let rows: u64 = early.iter().map(|run| run.rows).sum();
    (rows >= FEWEST_ROWS && !late.is_empty()).then_some((product, early, late))
}
