//! `accumulate-products`: sums of products become one accumulation (level 2 to level 2).
//!
//! A product with a shared right side can start from any value instead of zero. In a sum of
//! products, the first summand that all rows share (a bias) becomes the start of the first product,
//! each product the start of the next, in the order of the program; what else is added is added to
//! the last. A product of a concatenation becomes a product for each part with its rows of the
//! right side, so that nothing is copied together; where the concatenation is a result of the kernel it lies in
//! memory anyway, and the product reads it as it is.
//!
//! ```mlir
//! %p = linalg.matmul ins(%a, %u : …) outs(%zero : …) -> tensor<?x8xf32>
//! %q = linalg.matmul ins(%b, %w : …) outs(%zero : …) -> tensor<?x8xf32>
//! %s = arith.addf %p, %q : tensor<?x8xf32>
//! %r = arith.addf %s, %bias : tensor<?x8xf32>
//! // becomes
//! %p = linalg.matmul ins(%a, %u : …) outs(%bias : …) -> tensor<?x8xf32>
//! %r = linalg.matmul ins(%b, %w : …) outs(%p : …) -> tensor<?x8xf32>
//!
//! %c = tensor.concat dim(1) %a, %b : (tensor<?x3xf32>, tensor<?x5xf32>) -> tensor<?x8xf32>
//! %p = linalg.matmul ins(%c, %w : …) outs(%zero : …) -> tensor<?x4xf32>
//! // becomes
//! %u = tensor.extract_slice %w[0, 0] [3, 4] [1, 1] : tensor<8x4xf32> to tensor<3x4xf32>
//! %v = tensor.extract_slice %w[3, 0] [5, 4] [1, 1] : tensor<8x4xf32> to tensor<5x4xf32>
//! %q = linalg.matmul ins(%a, %u : …) outs(%zero : …) -> tensor<?x4xf32>
//! %p = linalg.matmul ins(%b, %v : …) outs(%q : …) -> tensor<?x4xf32>
//! ```
//!
//! Products whose rows are the same at some calls, a first step's say, are added up apart from others and then added to
//! these, if that is 4,096 multiplications a row or more: so `specialise-kernels` finds sums that are the same there.
//! Products of zeros start where others end, as it finds these all the same.
//!
//! Sums are reordered, once for all rows. Requires: level 2. Leaves: level 2; what became unused
//! is left to the canonicaliser. Limits: a product is accumulated only if nothing else reads it;
//! products of matrices that differ from row to row stay as they are, because their sum is fused
//! anyway.

use cohort_dialects::builder::{Builder, Op, Val, operands_of, result_of};
use cohort_dialects::keys;
use std::collections::HashSet;

use melior::{
    Context,
    ir::{
        OperationRef, ValueLike,
        attribute::{
            DenseI32ArrayAttribute, DenseI64ArrayAttribute, FloatAttribute, IntegerAttribute,
        },
        operation::OperationLike,
    },
};

use super::specialise_kernels::{forward_records, known_products};
use crate::pass::{Outcome, PassInfo};
use crate::support::ir::{
    TensorType, clone_op, defining_op, erase, integers, move_before, nested_ops, op_key,
    replace_uses, set_operand, set_type, splat_value, symbol_of, top_level, users_of,
};
use crate::support::origins::Origins;

/// The pass `accumulate-products`.
pub const PASS: PassInfo = PassInfo {
    name: "accumulate-products",
    summary: "Make sums of products, and products of concatenations, one accumulation (level 2)",
    description: include_str!("accumulate_products.rs"),
    run,
};

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    let origins = Origins::new(module);
    let records = forward_records(module);
    for kernel in top_level(module) {
        if !Op::CfbKernel.is(kernel) {
            continue;
        }
        // Collected first: splitting a product erases it, and with it the operations of its region.
        let products: Vec<_> = nested_ops(kernel)
            .into_iter()
            .filter(|op| is_product(*op))
            .collect();
        for product in products {
            split_concatenation(context, product);
        }
        let records = symbol_of(kernel).and_then(|name| records.get(&name));
        let known = records.map(|records| known_products(kernel, records, &origins));
        let known = known.unwrap_or_default();
        let sums = nested_ops(kernel)
            .into_iter()
            .filter(|op| Op::ArithAddf.is(*op));
        let sums: Vec<_> = sums.filter(|sum| !is_inner(*sum)).collect();
        for sum in sums {
            accumulate(context, sum, &known);
        }
    }
    Ok(())
}

/// A product of rows with a shared right side.
pub(crate) fn is_product(operation: OperationRef<'_, '_>) -> bool {
    if !Op::LinalgMatmul.is(operation) {
        return false;
    }
    let operands = operands_of(operation);
    let leads_with_rows = |value: Val<'_>| {
        TensorType::of_value(value).is_some_and(|ty| matches!(ty.shape.first(), Some(None)))
    };
    leads_with_rows(operands[0]) && !leads_with_rows(operands[1])
}

/// Whether a sum is only a summand of another one.
fn is_inner(sum: OperationRef<'_, '_>) -> bool {
    match users_of(result_of(sum, 0))[..] {
        [user] => Op::ArithAddf.is(user),
        _ => false,
    }
}

/// A product of a concatenation along its columns, part by part.
fn split_concatenation<'c>(context: &'c Context, product: OperationRef<'c, 'c>) {
    let [lhs, rhs, start] = operands_of(product)[..] else {
        return;
    };
    // Rows of matrices are collapsed after they have been concatenated.
    let Some(mut concat) = defining_op(lhs) else {
        return;
    };
    let collapse = (Op::TensorCollapseShape.is(concat)).then_some(concat);
    if let Some(collapse) = collapse {
        let Some(inner) = defining_op(operands_of(collapse)[0]) else {
            return;
        };
        concat = inner;
    }
    let (Some(from), Some(to)) = (
        TensorType::of_value(result_of(concat, 0)),
        TensorType::of_value(lhs),
    ) else {
        return;
    };
    let dim = concat
        .attribute(&keys::DIM)
        .ok()
        .and_then(|dim| IntegerAttribute::try_from(dim).ok());
    let along_columns = dim.is_some_and(|dim| dim.value() as usize + 1 == from.rank());
    if !Op::TensorConcat.is(concat) || !along_columns || to.rank() != 2 {
        return;
    }
    let is_result = (users_of(result_of(concat, 0)).into_iter()).any(|user| Op::CfbYield.is(user));
    if is_result {
        return;
    }
    // Columns that the collapse has joined with others are no longer columns of a part.
    if from.shape.last() != to.shape.last() {
        return;
    }
    let (Some(builder), Some(weight)) =
        (Builder::before(context, product), TensorType::of_value(rhs))
    else {
        return;
    };
    let mut sum = start;
    let mut first = 0;
    for part in operands_of(concat) {
        let Some(columns) = TensorType::of_value(part).and_then(|ty| ty.shape.last().copied()?)
        else {
            return;
        };
        let rows = TensorType {
            shape: vec![Some(columns), weight.shape[1]],
            ..weight.clone()
        };
        let sizes: Vec<i64> = rows
            .shape
            .iter()
            .map(|size| size.unwrap_or(0) as i64)
            .collect();
        let array = |values: &[i64]| DenseI64ArrayAttribute::new(context, values).into();
        let slice = builder.value_with(
            Op::TensorExtractSlice,
            &[rhs],
            rows.to_type(),
            &[
                (keys::STATIC_OFFSETS, array(&[first, 0])),
                (keys::STATIC_SIZES, array(&sizes)),
                (keys::STATIC_STRIDES, array(&[1, 1])),
                (
                    keys::OPERAND_SEGMENT_SIZES,
                    DenseI32ArrayAttribute::new(context, &[1, 0, 0, 0]).into(),
                ),
            ],
        );
        let part = match collapse {
            None => part,
            Some(collapse) => {
                let copy = builder.insert(clone_op(collapse));
                set_operand(copy, 0, part);
                let shape = vec![None, Some(columns)];
                set_type(
                    result_of(copy, 0),
                    TensorType {
                        shape,
                        ..to.clone()
                    }
                    .to_type(),
                );
                result_of(copy, 0)
            }
        };
        let copy = builder.insert(clone_op(product));
        for (index, operand) in [part, slice, sum].into_iter().enumerate() {
            set_operand(copy, index, operand);
        }
        sum = result_of(copy, 0);
        first += columns as i64;
    }
    replace_uses(result_of(product, 0), sum);
    erase(product);
}

/// Products that start from one another; the first starts from zero.
struct Chain<'c> {
    /// In order.
    products: Vec<OperationRef<'c, 'c>>,
    /// Gives the rows of the last their matrix shape back.
    expand: Option<OperationRef<'c, 'c>>,
}

/// What a sum adds up.
#[derive(Default)]
struct Summands<'c> {
    chains: Vec<Chain<'c>>,
    others: Vec<Val<'c>>,
    /// The sums that become unused, users first.
    sums: Vec<OperationRef<'c, 'c>>,
}

impl<'c> Summands<'c> {
    fn collect(&mut self, sum: OperationRef<'c, 'c>) {
        self.sums.push(sum);
        for operand in operands_of(sum) {
            let once = users_of(operand).len() == 1;
            match defining_op(operand).filter(|_| once) {
                Some(inner) if Op::ArithAddf.is(inner) => self.collect(inner),
                Some(op) => match chain_of(op) {
                    Some(chain) => self.chains.push(chain),
                    None => self.others.push(operand),
                },
                None => self.others.push(operand),
            }
        }
    }
}

fn chain_of<'c>(last: OperationRef<'c, 'c>) -> Option<Chain<'c>> {
    let expand = (Op::TensorExpandShape.is(last)).then_some(last);
    let mut product = match expand {
        None => last,
        Some(expand) => {
            let flat = operands_of(expand)[0];
            defining_op(flat).filter(|_| users_of(flat).len() == 1)?
        }
    };
    let mut products = Vec::new();
    loop {
        if !is_product(product) {
            return None;
        }
        products.push(product);
        let start = operands_of(product)[2];
        if is_zero(start) {
            products.reverse();
            return Some(Chain { products, expand });
        }
        product = defining_op(start).filter(|_| users_of(start).len() == 1)?;
    }
}

/// Whether a value is filled with zeros.
pub(crate) fn is_zero(value: Val<'_>) -> bool {
    let Some(op) = defining_op(value) else {
        return false;
    };
    match Op::of(op) {
        Some(Op::LinalgFill | Op::TensorCollapseShape | Op::TensorExpandShape) => {
            is_zero(operands_of(op)[0])
        }
        Some(Op::ArithConstant) => {
            let number = splat_value(op).or_else(|| op.attribute(&keys::VALUE).ok());
            let number = number.and_then(|number| FloatAttribute::try_from(number).ok());
            // Not -0, which is another start of a sum.
            number.is_some_and(|number| number.value().to_bits() == 0)
        }
        _ => false,
    }
}

fn accumulate<'c>(context: &'c Context, sum: OperationRef<'c, 'c>, known: &HashSet<usize>) {
    let mut summands = Summands::default();
    summands.collect(sum);
    let Some(first) = summands.chains.first() else {
        return;
    };
    let flat = first.expand.is_some();
    if summands
        .chains
        .iter()
        .any(|chain| chain.expand.is_some() != flat)
    {
        return;
    }
    let Some(builder) = Builder::before(context, sum) else {
        return;
    };
    // All chains move to the sum, where everything they may start from is known.
    for chain in &summands.chains {
        for op in chain.products.iter().chain(&chain.expand) {
            move_before(*op, sum);
        }
    }
    let zero = operands_of(first.products[0])[2];
    let is_known = |chain: &Chain<'c>| {
        let mut products = chain.products.iter();
        products.all(|product| known.contains(&op_key(*product)))
    };
    let (mut apart, mut chains): (Vec<_>, Vec<_>) = summands.chains.into_iter().partition(is_known);
    if chains.is_empty() {
        std::mem::swap(&mut apart, &mut chains);
    }
    let mut others = summands.others;
    let mut start = zero;
    let bias = others
        .iter()
        .position(|other| shared_start(*other, flat).is_some());
    if let Some((bias, source)) = bias.and_then(|at| Some((at, shared_start(others[at], flat)?))) {
        start = match source {
            SharedStart::AsItIs(value) => value,
            SharedStart::Vector(broadcast) => {
                let Some(before) = Builder::before(context, chains[0].products[0]) else {
                    return;
                };
                let copy = before.insert(clone_op(broadcast));
                set_operand(copy, 1, zero);
                set_type(result_of(copy, 0), zero.r#type());
                let dims = DenseI64ArrayAttribute::new(context, &[0]).into();
                crate::support::ir::set_attribute(copy, keys::DIMENSIONS, dims);
                result_of(copy, 0)
            }
        };
        others.remove(bias);
    }
    let (mut result, mut unused) = link(&chains, start);
    if !apart.is_empty() {
        let (known, more) = link(&apart, zero);
        result = builder.addf(result, known);
        unused.extend(more);
    }
    for other in others {
        result = builder.addf(result, other);
    }
    replace_uses(result_of(sum, 0), result);
    for operation in summands.sums.into_iter().chain(unused) {
        erase(operation);
    }
}

/// Makes each product start from the one before it, the first from `start`. Gives their sum, and the reshapes that are
/// unused once the sums are.
fn link<'c>(chains: &[Chain<'c>], mut start: Val<'c>) -> (Val<'c>, Vec<OperationRef<'c, 'c>>) {
    for chain in chains {
        if let Some(first) = chain.products.first() {
            set_operand(*first, 2, start);
        }
        if let Some(last) = chain.products.last() {
            start = result_of(*last, 0);
        }
    }
    let mut expands: Vec<_> = chains.iter().filter_map(|chain| chain.expand).collect();
    match expands.pop() {
        Some(last) => (result_of(last, 0), expands),
        None => (start, expands),
    }
}

/// A summand that is the same for all rows, as what a product may start from.
enum SharedStart<'c> {
    AsItIs(Val<'c>),
    /// A vector broadcast to the rows of matrices: the operation is to be repeated for flat rows.
    Vector(OperationRef<'c, 'c>),
}

fn shared_start<'c>(value: Val<'c>, flat: bool) -> Option<SharedStart<'c>> {
    let broadcast = defining_op(value).filter(|op| Op::LinalgBroadcast.is(*op))?;
    let source = operands_of(broadcast)[0];
    let ty = TensorType::of_value(source)?;
    let result = TensorType::of_value(value)?;
    if matches!(ty.shape.first(), Some(None)) {
        return None;
    }
    let vector = ty.rank() == 1 && ty.shape.last() == result.shape.last() && {
        let last = result.rank() as i64 - 1;
        !integers(broadcast, keys::DIMENSIONS).contains(&last)
    };
    match (flat, vector) {
        (false, true) => Some(SharedStart::AsItIs(value)),
        (true, true) => Some(SharedStart::Vector(broadcast)),
        _ => None,
    }
}
