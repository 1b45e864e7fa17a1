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

use cohort_dialects::builder::{Builder, Op, Val, operands_of, result_of};
use cohort_dialects::keys;
use melior::{
    Context,
    ir::{
        OperationRef, ValueLike,
        attribute::{DenseI32ArrayAttribute, DenseI64ArrayAttribute},
    },
};

use crate::pass::{Outcome, PassInfo};
use crate::support::ir::{
    TensorType, clone_op, defining_op, erase, replace_uses, set_operand, set_type, users_of,
};
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
        splits.extend(products.filter_map(|product| Split::of(block, product)));
    });
    for split in &splits {
        split.apply(context);
    }
    Ok(())
}

/// Neighbouring parts of a concatenation that are known at the same time.
struct Run<'c> {
    parts: Vec<Val<'c>>,
    early: bool,
    /// The first row of the matrix, and how many.
    first: u64,
    rows: u64,
}

struct Split<'c> {
    product: OperationRef<'c, 'c>,
    concat: OperationRef<'c, 'c>,
    runs: Vec<Run<'c>>,
}

impl<'c> Split<'c> {
    /// How a product is split, if it pays.
    fn of(block: &BasicBlock<'c>, product: OperationRef<'c, 'c>) -> Option<Split<'c>> {
        if !Op::LinalgVecmat.is(product) {
            return None;
        }
        let operands = operands_of(product);
        let concat = defining_op(operands[0]).filter(|op| Op::TensorConcat.is(*op))?;
        if block.value_wave(operands[1]) > 0 {
            return None;
        }
        let mut runs: Vec<Run<'c>> = Vec::new();
        let mut first = 0;
        for part in operands_of(concat) {
            let rows = TensorType::of_value(part)?.shape.first().copied()??;
            let early = block.value_wave(part) == 0;
            match runs.last_mut() {
                Some(run) if run.early == early => {
                    run.parts.push(part);
                    run.rows += rows;
                }
                _ => runs.push(Run {
                    parts: vec![part],
                    early,
                    first,
                    rows,
                }),
            }
            first += rows;
        }
        let early = runs.iter().filter(|run| run.early).map(|run| run.rows);
        let pays = early.sum::<u64>() >= FEWEST_ROWS && runs.iter().any(|run| !run.early);
        pays.then_some(Split {
            product,
            concat,
            runs,
        })
    }

    fn apply(&self, context: &'c Context) {
        let Some(builder) = Builder::before(context, self.product) else {
            return;
        };
        // The early ones first, so that their sum is early too.
        let (early, late): (Vec<_>, Vec<_>) = self.runs.iter().partition(|run| run.early);
        let mut sum: Option<Val<'c>> = None;
        let mut late_sum: Option<Val<'c>> = None;
        for (runs, sum) in [(early, &mut sum), (late, &mut late_sum)] {
            for run in runs {
                let Some(product) = self.product_of(builder, run) else {
                    return;
                };
                *sum = Some(match *sum {
                    None => product,
                    Some(before) => add(builder, before, product),
                });
            }
        }
        if let (Some(early), Some(late)) = (sum, late_sum) {
            let whole = add(builder, early, late);
            replace_uses(result_of(self.product, 0), whole);
            erase(self.product);
            if users_of(result_of(self.concat, 0)).is_empty() {
                erase(self.concat);
            }
        }
    }

    /// The product of a run with its rows of the matrix.
    fn product_of(&self, builder: Builder<'c>, run: &Run<'c>) -> Option<Val<'c>> {
        let operands = operands_of(self.product);
        let matrix = TensorType::of_value(operands[1])?;
        let columns = matrix.shape.get(1).copied()??;
        let context = builder.context();
        let vector = match run.parts[..] {
            [only] => only,
            _ => {
                let mut ty = TensorType::of_value(operands[0])?;
                ty.shape = vec![Some(run.rows)];
                builder.concat(0, &run.parts, ty.to_type())
            }
        };
        let rows = TensorType {
            shape: vec![Some(run.rows), Some(columns)],
            ..matrix
        };
        let array = |values: &[i64]| DenseI64ArrayAttribute::new(context, values).into();
        let slice = builder.value_with(
            Op::TensorExtractSlice,
            &[operands[1]],
            rows.to_type(),
            &[
                (keys::STATIC_OFFSETS, array(&[run.first as i64, 0])),
                (
                    keys::STATIC_SIZES,
                    array(&[run.rows as i64, columns as i64]),
                ),
                (keys::STATIC_STRIDES, array(&[1, 1])),
                (
                    keys::OPERAND_SEGMENT_SIZES,
                    DenseI32ArrayAttribute::new(context, &[1, 0, 0, 0]).into(),
                ),
            ],
        );
        let copy = builder.insert(clone_op(self.product));
        set_operand(copy, 0, vector);
        set_operand(copy, 1, slice);
        set_type(result_of(copy, 0), operands[2].r#type());
        Some(result_of(copy, 0))
    }
}

fn add<'c>(builder: Builder<'c>, left: Val<'c>, right: Val<'c>) -> Val<'c> {
    builder.addf(left, right)
}
