//! Products of concatenations, run by run of their parts.

use cohort_dialects::builder::{Builder, Op, Val, operands_of, result_of};
use cohort_dialects::keys;
use melior::{
    Context,
    ir::{
        OperationRef, ValueLike,
        attribute::{DenseI32ArrayAttribute, DenseI64ArrayAttribute},
    },
};

use crate::support::ir::{
    TensorType, clone_op, defining_op, erase, integer_attribute, replace_uses, set_operand,
    set_type, users_of,
};

/// Neighbouring parts of a concatenation of which the same holds.
pub struct Run<'c, T> {
    pub parts: Vec<Val<'c>>,
    /// What holds of them.
    pub holds: T,
    /// The first row of the matrix that they are multiplied with.
    first: u64,
    /// How many rows of the matrix they are multiplied with.
    pub rows: u64,
}

/// The concatenation that is a product's left factor, along the contracted dim, of a vector or a matrix.
pub fn concatenation<'c>(product: OperationRef<'c, 'c>) -> Option<OperationRef<'c, 'c>> {
    let rank = match Op::of(product) {
        Some(Op::LinalgVecmat) => 1,
        Some(Op::LinalgMatmul) => 2,
        _ => return None,
    };
    let concat = defining_op(operands_of(product)[0]).filter(|op| Op::TensorConcat.is(*op))?;
    (integer_attribute(concat, keys::DIM) == Some(rank - 1)).then_some(concat)
}

/// The runs of a concatenation of which `holds` says the same; `None` where the length of a part is not known.
pub fn runs<'c, T: PartialEq>(
    concat: OperationRef<'c, 'c>,
    holds: impl Fn(Val<'c>) -> T,
) -> Option<Vec<Run<'c, T>>> {
    let mut runs: Vec<Run<'c, T>> = Vec::new();
    let mut first = 0;
    for part in operands_of(concat) {
        let rows = TensorType::of_value(part)?.shape.last().copied()??;
        let held = holds(part);
        match runs.last_mut() {
            Some(run) if run.holds == held => {
                run.parts.push(part);
                run.rows += rows;
            }
            _ => runs.push(Run {
                parts: vec![part],
                holds: held,
                first,
                rows,
            }),
        }
        first += rows;
    }
    Some(runs)
}

/// Makes a product of a concatenation a sum: of each group the sum of its runs' products, and then of these.
pub fn split<'c, T>(
    context: &'c Context,
    product: OperationRef<'c, 'c>,
    groups: &[Vec<Run<'c, T>>],
) {
    let (Some(builder), Some(concat)) = (Builder::before(context, product), concatenation(product))
    else {
        return;
    };
    let add = |left, right| builder.addf(left, right);
    let sums = groups.iter().filter_map(|runs| {
        let products = runs.iter().map(|run| product_of_run(builder, product, run));
        products
            .collect::<Option<Vec<_>>>()?
            .into_iter()
            .reduce(add)
    });
    // Each group is there before the sums of several are.
    let sums: Vec<Val<'c>> = sums.collect();
    if let Some(sum) = sums.into_iter().reduce(add) {
        replace_uses(result_of(product, 0), sum);
        erase(product);
        if users_of(result_of(concat, 0)).is_empty() {
            erase(concat);
        }
    }
}

/// The product of a run with its rows of the matrix, as `product` is of the whole.
fn product_of_run<'c, T>(
    builder: Builder<'c>,
    product: OperationRef<'c, 'c>,
    run: &Run<'c, T>,
) -> Option<Val<'c>> {
    let operands = operands_of(product);
    let matrix = TensorType::of_value(operands[1])?;
    let columns = matrix.shape.get(1).copied()??;
    let context = builder.context();
    let mut left = TensorType::of_value(operands[0])?;
    *left.shape.last_mut()? = Some(run.rows);
    let left = match run.parts[..] {
        [only] => only,
        _ => builder.concat(left.rank() - 1, &run.parts, left.to_type()),
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
    let copy = builder.insert(clone_op(product));
    set_operand(copy, 0, left);
    set_operand(copy, 1, slice);
    set_type(result_of(copy, 0), operands[2].r#type());
    Some(result_of(copy, 0))
}
