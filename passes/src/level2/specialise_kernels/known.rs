//! Which products of a kernel need nothing but what is known.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use cohort_dialects::builder::{Op, Val, arguments_of, operands_of, operations_of, results_of};
use melior::ir::{BlockRef, OperationRef, Type, ValueLike, attribute::FloatAttribute};

use super::{Known, Row};
use crate::level0::hoist_constants::rows::keeps_rows;
use crate::level2::accumulate_products::{is_product, is_zero};
use crate::support::ir::{TensorType, key, splat_of};
use crate::support::origins::Constant;
use crate::support::products::size;

/// A product of a kernel.
pub struct Product<'c> {
    pub operation: OperationRef<'c, 'c>,
    /// Multiplications a row.
    pub size: u64,
    /// The operands that must be what they are known to be for it to be saved.
    pub needed: BTreeSet<usize>,
    /// Whether its left side is a row that is known, or zero if that is so.
    pub is_left_known: bool,
    pub is_zero: bool,
    pub is_start_known: bool,
}

/// The products of a kernel, in order.
pub struct Products<'c> {
    pub all: Vec<Product<'c>>,
}

/// What a value is made of, if of known operands alone.
#[derive(Clone, Default)]
struct Made {
    of: BTreeSet<usize>,
    /// Whether it is +0 throughout.
    zero: bool,
}

impl<'c> Products<'c> {
    /// In the body of a kernel of which some operands are known.
    pub fn of(body: BlockRef<'c, 'c>, known: &BTreeMap<usize, Known<'c>>) -> Products<'c> {
        let mut all = Vec::new();
        let arguments = arguments_of(body);
        let mut values: HashMap<usize, Made> = HashMap::new();
        let mut lists = HashMap::new();
        for (index, known) in known {
            let argument = key(arguments[index + 1]);
            let of = BTreeSet::from([*index]);
            match known {
                Known::Empty => {
                    lists.insert(argument, *index);
                }
                Known::Row(row) => {
                    let zero = matches!(row, Row::Constant(value) if is_zero_constant(*value));
                    values.insert(argument, Made { of, zero });
                }
            }
        }
        for operation in operations_of(body) {
            let operands = operands_of(operation);
            let of_batches = matches!(
                Op::of(operation),
                Some(Op::LinalgBatchMatmul | Op::LinalgBatchMatvec | Op::LinalgBatchVecmat)
            );
            if is_product(operation) || of_batches {
                let left = values
                    .get(&key(operands[0]))
                    .filter(|_| is_product(operation));
                let start = values.get(&key(operands[2]));
                let is_zero = left.is_some_and(|left| left.zero);
                let starts = start.filter(|_| !is_zero).map(|start| start.of.clone());
                let of_left = left.map(|left| left.of.clone());
                all.push(Product {
                    operation,
                    size: size(operation),
                    needed: (of_left.into_iter().chain(starts)).flatten().collect(),
                    is_left_known: left.is_some(),
                    is_zero,
                    is_start_known: start.is_some(),
                });
            }
            if let Some(made) = made(operation, arguments[0], &values, &lists) {
                for result in results_of(operation) {
                    values.insert(key(result), made.clone());
                }
            }
        }
        Products { all }
    }

    /// Those that are not computed where the known operands are what they are known to be.
    pub fn saved(&self) -> impl Iterator<Item = &Product<'c>> {
        (self.all.iter()).filter(|product| {
            product.is_left_known
                && (product.is_zero || product.is_start_known)
                && !product.needed.is_empty()
        })
    }
}

/// What the results of an operation are made of.
fn made<'c>(
    operation: OperationRef<'c, 'c>,
    rows: Val<'c>,
    values: &HashMap<usize, Made>,
    lists: &HashMap<usize, usize>,
) -> Option<Made> {
    let operands = operands_of(operation);
    let kind = Op::of(operation);
    match kind {
        Some(Op::MlProgramGlobalLoadConst) => return Some(Made::default()),
        Some(Op::ArithConstant) => {
            let zero = results_of(operation).into_iter().all(is_zero);
            let of = BTreeSet::new();
            return Some(Made { of, zero });
        }
        // Of nothing, a fold is its start.
        Some(Op::CfbReduceRows) => {
            let mut made = values.get(&key(operands[1]))?.clone();
            made.of.insert(*lists.get(&key(operands[0]))?);
            return Some(made);
        }
        _ if !keeps_rows(operation, rows) => return None,
        _ => {}
    }
    let used = operands
        .iter()
        .filter(|operand| key(**operand) != key(rows));
    let used: Option<Vec<&Made>> = used.map(|operand| values.get(&key(*operand))).collect();
    let used = used?;
    let zero = match kind {
        // The other operand is where the result goes.
        Some(Op::LinalgFill | Op::LinalgBroadcast) => used[0].zero,
        Some(Op::TensorExtractSlice | Op::TensorConcat) => used.iter().all(|made| made.zero),
        _ => false,
    };
    let of = used
        .iter()
        .flat_map(|made| made.of.iter().copied())
        .collect();
    Some(Made { of, zero })
}

/// Whether a constant is +0 throughout.
pub fn is_zero_constant(value: Constant<'_>) -> bool {
    let number = splat_of(value.0).and_then(|number| FloatAttribute::try_from(number).ok());
    number.is_some_and(|number| number.value().to_bits() == 0)
}

/// The type of a row of a value that has one for each row of its kernel.
pub fn row_type<'c>(value: Val<'c>) -> Type<'c> {
    match TensorType::of_value(value) {
        Some(mut ty) if ty.shape.first() == Some(&None) => {
            ty.shape.remove(0);
            ty.to_type()
        }
        _ => value.r#type(),
    }
}
