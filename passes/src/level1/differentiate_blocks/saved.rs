//! What forward keeps for backward.
//!
//! The gradient function is first written as if all of forward were recomputed. Each value of the block that
//! it then reads is either cheap to recompute from the call's operands and results, or saved: values are
//! visited in program order, and one whose recomputation is expensive becomes another result of the block,
//! from which later ones can be recomputed. Where several of them are elementwise arithmetic on one expensive value,
//! as `0.5 * u` and `0.7 * u` of `gelu(u)`, that one is saved in their place.

use std::collections::{HashMap, HashSet};

use cohort_abi::manifest::Elem;
use cohort_dialects::builder::{
    Builder, Dialect, Op, Val, operands_of, operations_of, result_of, results_of,
};
use cohort_dialects::keys;
use melior::{
    Context,
    ir::{OperationRef, Type, ValueLike, attribute::IntegerAttribute, r#type::IntegerType},
};

use super::rules::Backward;
use super::source::Source;
use crate::support::dim_equality::Length;
use crate::support::ir::{
    TensorType, attributes_without, blocks_of, clone_region, defining_op, elem_of, erase, key,
    op_key, replace_uses,
};
use crate::support::waves::used_values;

/// The values of copied operations that a function reads for anything but more copies.
pub fn needed(end: OperationRef<'_, '_>, copies: &HashSet<usize>) -> HashSet<usize> {
    let mut needed = HashSet::new();
    let mut seen = HashSet::new();
    let mut pending = vec![end];
    while let Some(operation) = pending.pop() {
        let is_copy = copies.contains(&op_key(operation));
        for value in used_values(operation) {
            let Some(producer) = defining_op(value) else {
                continue;
            };
            if copies.contains(&op_key(producer)) && !is_copy {
                needed.insert(key(value));
            }
            if seen.insert(op_key(producer)) {
                pending.push(producer);
            }
        }
    }
    needed
}

/// The results of a block's operations that are to be saved, by their places: `needed` are those that
/// backward reads, as it has them.
pub fn chosen<'c>(
    source: &Source<'c>,
    backward: &mut Backward<'c>,
    needed: &HashSet<usize>,
) -> Vec<(usize, usize)> {
    let rows = source.dims.rows.len();
    let yielded = source.yielded.iter();
    let yielded: HashSet<usize> = yielded.map(|value| key(*value)).collect();
    let mut choose = |sources: &HashSet<usize>| {
        let mut at_hand = yielded.clone();
        let mut chosen = Vec::new();
        for (place, operation) in source.operations.iter().enumerate() {
            for (number, result) in results_of(*operation).into_iter().enumerate() {
                let own = key(backward.value(result));
                let is_wanted = needed.contains(&own) || sources.contains(&key(result));
                let is_new = is_wanted && !at_hand.contains(&key(result));
                if is_new && is_expensive_from(result, &at_hand) && has_rows(backward, result, rows)
                {
                    at_hand.insert(key(result));
                    chosen.push(((place, number), result));
                }
            }
        }
        chosen
    };
    let chosen = choose(&HashSet::new());
    let mut readers: HashMap<usize, usize> = HashMap::new();
    for source in chosen.iter().flat_map(|own| sources(own.1, &yielded)) {
        *readers.entry(key(source)).or_default() += 1;
    }
    let shared = (chosen.iter())
        .filter_map(|own| sources(own.1, &yielded).find(|source| readers[&key(*source)] > 1));
    let chosen = choose(&shared.map(key).collect());
    chosen.into_iter().map(|(place, _)| place).collect()
}

/// An expensive value, what it is cheap arithmetic on if that is one expensive value of its shape, and so on.
fn sources<'c>(value: Val<'c>, at_hand: &HashSet<usize>) -> impl Iterator<Item = Val<'c>> {
    std::iter::successors(Some(value), |value| {
        let producer = defining_op(*value).filter(|producer| !computes(*producer))?;
        let mut expensive: Vec<Val<'c>> = operands_of(producer);
        expensive.retain(|operand| is_expensive_from(*operand, at_hand));
        expensive.dedup_by_key(|operand| key(*operand));
        match expensive[..] {
            [operand] if shape(operand) == shape(*value) => Some(operand),
            _ => None,
        }
    })
}

/// Whether a value can be a result of the block: a tensor of floats whose leading dims are those of its
/// results.
fn has_rows(backward: &mut Backward<'_>, value: Val<'_>, rows: usize) -> bool {
    let leading = backward.equality.leading(value);
    let is_dim = |length: &Length| matches!(length, Length::Dim(_));
    let floats =
        TensorType::of_value(value).is_some_and(|ty| elem_of(ty.element) == Some(Elem::F32));
    floats && leading.len() == rows && leading.iter().any(is_dim) == (rows > 0)
}

/// How many operations of elementwise arithmetic cost about as much as to store a number and to read it again. Random
/// numbers take more.
const CHEAP: usize = 24;

/// Whether recomputing a value from what is at hand is expensive.
fn is_expensive_from(value: Val<'_>, at_hand: &HashSet<usize>) -> bool {
    let whole = shape(value);
    let mut arithmetic = 0;
    let mut seen = HashSet::new();
    let mut pending = vec![value];
    while let Some(value) = pending.pop() {
        if at_hand.contains(&key(value)) || !seen.insert(key(value)) {
            continue;
        }
        let Some(producer) = defining_op(value) else {
            continue;
        };
        if Dialect::of(producer) == Some(Dialect::Arith)
            && Op::of(producer) != Some(Op::ArithConstant)
            && shape(value) == whole
        {
            arithmetic += 1;
        }
        if computes(producer) || arithmetic > CHEAP {
            return true;
        }
        pending.extend(operands_of(producer));
    }
    false
}

/// Whether an operation is expensive by itself.
fn computes(operation: OperationRef<'_, '_>) -> bool {
    let kind = Op::of(operation);
    match Dialect::of(operation) {
        Some(Dialect::Linalg) => !matches!(
            kind,
            Some(Op::LinalgFill | Op::LinalgBroadcast | Op::LinalgTranspose)
        ),
        Some(Dialect::Math) => kind != Some(Op::MathAbsf),
        Some(Dialect::Arith) => kind == Some(Op::ArithDivf),
        dialect => dialect == Some(Dialect::Cfb),
    }
}

fn shape(value: Val<'_>) -> Option<Vec<Option<u64>>> {
    TensorType::of_value(value).map(|ty| ty.shape)
}

/// The block with these results of its operations as results of its own, in its place.
pub fn save<'c>(
    context: &'c Context,
    block: OperationRef<'c, 'c>,
    saved: &[(usize, usize)],
) -> OperationRef<'c, 'c> {
    let region = clone_region(block, 0);
    let Some(before) = Builder::before(context, block) else {
        return block;
    };
    let mut attributes = attributes_without(block, &[]);
    let count = IntegerType::new(context, 64).into();
    let count = IntegerAttribute::new(count, saved.len() as i64).into();
    attributes.push((keys::SAVED, count));
    let mut types: Vec<Type<'c>> = results_of(block).iter().map(|own| own.r#type()).collect();
    let old = blocks_of(block)
        .first()
        .map(|body| operations_of(*body))
        .unwrap_or_default();
    types.extend(
        saved
            .iter()
            .map(|(place, number)| result_of(old[*place], *number).r#type()),
    );
    let operands = operands_of(block);
    let new = before.op(Op::CfbBlock, &operands, &types, &attributes, vec![region]);
    let body = blocks_of(new)
        .first()
        .map(|body| operations_of(*body))
        .unwrap_or_default();
    if let Some(end) = body.last()
        && let Some(at_end) = Builder::before(context, *end)
    {
        let mut yielded = operands_of(*end);
        yielded.extend(
            saved
                .iter()
                .map(|(place, number)| result_of(body[*place], *number)),
        );
        at_end.cfb_yield(&yielded);
        erase(*end);
    }
    for (old, new) in results_of(block).into_iter().zip(results_of(new)) {
        replace_uses(old, new);
    }
    erase(block);
    new
}
