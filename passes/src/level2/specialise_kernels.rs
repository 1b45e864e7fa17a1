//! `specialise-kernels`: a kernel gets a copy for what is known of its operands when it is recorded (level 2).
//!
//! A leaf has no children, the first step of a loop begins with zeros: what a block makes of them is the same
//! at every such call, products included. The copy takes neither the list nor the row; `hoist-constants` computes at
//! load what became constant. The choice is made where the call is recorded.
//!
//! ```mlir
//! %h = cfb.record @cell(%children, %x) : (!cfb.array<…>, !cfb.lazy<…>) -> !cfb.lazy<…>
//! // becomes
//! %n = cfb.array_len %children : !cfb.array<…>
//! %none = arith.cmpi eq, %n, %c0 : i32
//! %h = scf.if %none -> (!cfb.lazy<…>) {
//!   %a = cfb.record @cell_base(%x) : (!cfb.lazy<…>) -> !cfb.lazy<…>
//!   scf.yield %a : !cfb.lazy<…>
//! } else {
//!   %b = cfb.record @cell(%children, %x) : (!cfb.array<…>, !cfb.lazy<…>) -> !cfb.lazy<…>
//!   scf.yield %b : !cfb.lazy<…>
//! }
//! ```
//!
//! An operand is *known* where it is an empty list, or the handle of a constant or of a whole parameter, which a
//! `cfb.same` tells where calls, branches and loops lead other rows there too. A product is *saved* in one of
//! two cases:
//!
//! * its left side and its start are known. It is computed by the same operations, only earlier;
//! * its left side is zero, and it starts from rows. It becomes `start + z`, where `z` is the product of that zero
//!   row from -0. A zero times a number is a zero, and a zero added changes no number but -0, so the
//!   product is its start, but where that is -0: there it is the sum of the zeros alone, which is `z`. Where a weight
//!   is infinite or not a number, `z` is not a number, and so is the product.
//!
//! So the copy gives the bits of the kernel for all weights, and nothing is assumed of them.
//!
//! Done where it pays: a copy is a launch of its own, which reads again what it has in common with the kernel.
//! So the products saved take 4,096 multiplications a row or more, and no fewer than those that are left.
//!
//! Requires: level 2, after `accumulate-products` has fixed the order of sums. Leaves: level 2. Left alone: kernels of
//! values with instance dims, and those that gradients go through.

mod known;

use cohort_dialects::builder::{
    Builder, CmpiPredicate, Op, Val, arguments_of, operands_of, operations_of, region_with_block,
    result_of, results_of,
};
use cohort_dialects::keys;
use cohort_dialects::marks::FUSED_COLUMNS;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use cohort_dialects::types::array_element;
use melior::{
    Context,
    ir::{
        BlockRef, OperationRef, Type, ValueLike,
        attribute::{FlatSymbolRefAttribute, StringAttribute},
        operation::OperationLike,
    },
};

use crate::level0::hoist_constants::rows::repeat;
use crate::level1::differentiate_blocks::{GRADIENT, HELPER};
use crate::pass::{Outcome, PassInfo};
use crate::support::dims;
use crate::support::ir::{
    GRADIENT_OF, blocks_of, clone_op, defining_op, erase, functions_of, key, name_attribute,
    nested_ops, op_key, remove_attribute, replace_uses, set_attribute, set_operand, symbol_of,
    top_level, users_of,
};
use crate::support::origins::{Constant, Origin, Origins};
use crate::support::symbols::{Symbols, records_by_kernel};
use known::Products;

/// The pass `specialise-kernels`.
pub const PASS: PassInfo = PassInfo {
    name: "specialise-kernels",
    summary: "Copy kernels for empty lists and constant rows, chosen where they are recorded (level 2)",
    description: include_str!("specialise_kernels.rs"),
    run,
};

/// Multiplications a row below which a launch more costs what is saved.
const FEWEST_SAVED: u64 = 4096;

/// What an operand is, where the copy is called.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Known<'c> {
    /// A list without elements.
    Empty,
    Row(Row<'c>),
}

/// A row that is the same for every call.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Row<'c> {
    Constant(Constant<'c>),
    /// A whole parameter.
    Parameter(String),
}

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    let origins = Origins::new(module);
    let records = records_to_change(module);
    let mut symbols = Symbols::of(module);
    for kernel in top_level(module) {
        let Some(name) = symbol_of(kernel) else {
            continue;
        };
        let Some(records) = records.get(&name) else {
            continue;
        };
        if !Op::CfbKernel.is(kernel) || dims::has_lengths(kernel) {
            continue;
        }
        let Some(case) = Case::find(kernel, records, &origins) else {
            continue;
        };
        let symbol = symbols.free_like(&format!("{name}_base"));
        case.copy(context, kernel, &symbol);
        for record in records {
            case.choose(context, &origins, *record, &symbol);
        }
    }
    Ok(())
}

/// The records of each kernel that gradients do not go through, nor are computed by.
pub fn records_to_change<'c>(
    module: OperationRef<'c, 'c>,
) -> HashMap<String, Vec<OperationRef<'c, 'c>>> {
    let functions = functions_of(module);
    let mut refused: HashSet<String> = functions
        .iter()
        .filter_map(|function| name_attribute(*function, GRADIENT_OF))
        .collect();
    let backward = functions.into_iter().filter(|f| is_backward(*f));
    refused.extend(records_by_kernel(backward.flat_map(nested_ops)).into_keys());
    let mut records = forward_records(module);
    records.retain(|kernel, _| !refused.contains(kernel));
    records
}

/// The records of each kernel in what is not backward.
pub(super) fn forward_records<'c>(
    module: OperationRef<'c, 'c>,
) -> HashMap<String, Vec<OperationRef<'c, 'c>>> {
    let functions = functions_of(module).into_iter();
    records_by_kernel(functions.filter(|f| !is_backward(*f)).flat_map(nested_ops))
}

fn is_backward(function: OperationRef<'_, '_>) -> bool {
    function.has_attribute(&GRADIENT) || function.has_attribute(&HELPER)
}

/// The products of a kernel whose left side is the same at some calls and not zero, if to compute them once saves
/// enough. By [`op_key`].
pub(super) fn known_products<'c>(
    kernel: OperationRef<'c, 'c>,
    records: &[OperationRef<'c, 'c>],
    origins: &Origins<'c>,
) -> HashSet<usize> {
    let body = blocks_of(kernel).first().copied();
    let Some(body) = body.filter(|_| !dims::has_lengths(kernel)) else {
        return HashSet::new();
    };
    let products = Products::of(body, &possible_starts(body, records, origins));
    let known =
        (products.saved()).filter(|product| !product.is_zero && product.size >= FEWEST_SAVED);
    known.map(|product| op_key(product.operation)).collect()
}

/// What each operand may be known to be where a kernel is called.
fn possible_starts<'c>(
    body: BlockRef<'c, 'c>,
    records: &[OperationRef<'c, 'c>],
    origins: &Origins<'c>,
) -> BTreeMap<usize, Known<'c>> {
    let arguments = arguments_of(body);
    let operands = arguments.iter().skip(1).enumerate();
    let known = operands.filter_map(|(index, argument)| {
        let operands = records.iter();
        let operands = operands.filter_map(|record| operands_of(*record).get(index).copied());
        let operands: Vec<Val<'c>> = operands.collect();
        Some((index, possible_start(*argument, &operands, origins)?))
    });
    known.collect()
}

/// What is known where a kernel's copy is called, by operand.
struct Case<'c>(BTreeMap<usize, Known<'c>>);

impl<'c> Case<'c> {
    /// What is worth a copy.
    fn find(
        kernel: OperationRef<'c, 'c>,
        records: &[OperationRef<'c, 'c>],
        origins: &Origins<'c>,
    ) -> Option<Case<'c>> {
        let body = blocks_of(kernel).first().copied()?;
        let mut possible = possible_starts(body, records, origins);
        let products = Products::of(body, &possible);
        let saved: u64 = products.saved().map(|product| product.size).sum();
        let all: u64 = products.all.iter().map(|product| product.size).sum();
        if saved < FEWEST_SAVED || saved < all - saved {
            return None;
        }
        let mut needed: BTreeSet<usize> = products
            .saved()
            .flat_map(|product| product.needed.clone())
            .collect();
        // Lists that are as long as these are empty with them.
        for (index, known) in &possible {
            let is_as_long = |record: &OperationRef<'c, 'c>| {
                let operands = operands_of(*record);
                let length = key(same_length(operands[*index]));
                needed
                    .iter()
                    .any(|other| key(same_length(operands[*other])) == length)
            };
            if *known == Known::Empty && records.iter().all(is_as_long) {
                needed.insert(*index);
            }
        }
        possible.retain(|index, _| needed.contains(index));
        Some(Case(possible))
    }

    /// Puts the copy before the kernel.
    fn copy(&self, context: &'c Context, kernel: OperationRef<'c, 'c>, symbol: &str) {
        let Some(before) = Builder::before(context, kernel) else {
            return;
        };
        let copy = before.insert(clone_op(kernel));
        // What a tuning says of the kernel that was fused holds for the copy.
        remove_attribute(copy, FUSED_COLUMNS);
        set_attribute(
            copy,
            keys::SYM_NAME,
            StringAttribute::new(context, symbol).into(),
        );
        let Some(body) = blocks_of(copy).first().copied() else {
            return;
        };
        let first = operations_of(body).first().copied();
        let Some(b) = first.and_then(|first| Builder::before(context, first)) else {
            return;
        };
        let arguments = arguments_of(body);
        for (index, known) in &self.0 {
            let argument = arguments[index + 1];
            match known {
                Known::Empty => {
                    for fold in users_of(argument) {
                        replace_uses(result_of(fold, 0), operands_of(fold)[1]);
                        erase(fold);
                    }
                }
                Known::Row(row) => {
                    let row = row.tensor(&b, known::row_type(argument));
                    replace_uses(argument, repeat(&b, arguments[0], row));
                }
            }
        }
        for product in Products::of(body, &BTreeMap::new()).all {
            if product.is_zero && !product.is_start_known {
                add_zeros(&b, arguments[0], product.operation);
            }
        }
        for index in self.0.keys().rev() {
            // SAFETY: the body is alive and has an argument of this number, which nothing uses any more.
            unsafe { mlir_sys::mlirBlockEraseArgument(body.to_raw(), *index as u32 + 1) };
        }
    }

    /// Calls the copy where all of it holds: always, never, or as it is decided there.
    fn choose(
        &self,
        context: &'c Context,
        origins: &Origins<'c>,
        record: OperationRef<'c, 'c>,
        symbol: &str,
    ) {
        let Some(b) = Builder::before(context, record) else {
            return;
        };
        let operands = operands_of(record);
        let mut lists = BTreeMap::new();
        let mut rows = BTreeMap::new();
        for (index, known) in &self.0 {
            let operand = operands[*index];
            let may_be = origins.of_all([operand]);
            match known {
                Known::Empty => {
                    let list = same_length(operand);
                    lists.insert(key(list), list);
                }
                Known::Row(row) if !may_be.contains(&row.origin()) => return,
                Known::Row(row) if may_be.len() > 1 => {
                    rows.insert(key(operand), (operand, row));
                }
                Known::Row(_) => {}
            }
        }
        let length = b.i32();
        let are_empty = lists.into_values().map(|list| {
            let count = b.value(Op::CfbArrayLen, &[list], length);
            let none = b.integer(0, length);
            b.cmpi(CmpiPredicate::Eq, count, none)
        });
        let are_same = rows.into_values().map(|(operand, row)| {
            let source = row.handle(&b, operand.r#type());
            b.value(Op::CfbSame, &[operand, source], b.i1())
        });
        let holds = are_empty
            .chain(are_same)
            .reduce(|all, one| b.andi(all, one));
        let types: Vec<Type<'c>> = results_of(record).iter().map(|r| r.r#type()).collect();
        let others: Vec<Val<'c>> = operands
            .iter()
            .enumerate()
            .filter(|(index, _)| !self.0.contains_key(index))
            .map(|(_, operand)| *operand)
            .collect();
        let special = |b: &Builder<'c>| b.cfb_record(symbol, &others, &types);
        let chosen = match holds {
            None => special(&b),
            Some(holds) => {
                let branch = |make: &dyn Fn(&Builder<'c>) -> Vec<Val<'c>>| {
                    let (region, block) = region_with_block(&[], b.location);
                    let inner = Builder::at_end(context, block, b.location);
                    inner.scf_yield(&make(&inner));
                    region
                };
                let general = |b: &Builder<'c>| results_of(b.insert(clone_op(record)));
                results_of(b.scf_if(holds, &types, [branch(&special), branch(&general)]))
            }
        };
        for (old, new) in results_of(record).into_iter().zip(chosen) {
            replace_uses(old, new);
        }
        erase(record);
    }
}

impl<'c> Row<'c> {
    fn of(origin: Origin<'c>) -> Option<Row<'c>> {
        match origin {
            Origin::Constant(value) => Some(Row::Constant(value)),
            Origin::Parameter(name) => Some(Row::Parameter(name)),
            _ => None,
        }
    }

    fn origin(&self) -> Origin<'c> {
        match self {
            Row::Constant(value) => Origin::Constant(*value),
            Row::Parameter(name) => Origin::Parameter(name.clone()),
        }
    }

    /// The row as a tensor of a kernel.
    fn tensor(&self, b: &Builder<'c>, ty: Type<'c>) -> Val<'c> {
        match self {
            Row::Parameter(name) => {
                let global = FlatSymbolRefAttribute::new(b.context(), name).into();
                b.global(global, ty)
            }
            Row::Constant(value) => b.constant(value.0, ty),
        }
    }

    /// The row's handle.
    fn handle(&self, b: &Builder<'c>, ty: Type<'c>) -> Val<'c> {
        match self {
            Row::Parameter(name) => {
                let param = FlatSymbolRefAttribute::new(b.context(), name).into();
                b.cfb_param(param, ty)
            }
            Row::Constant(value) => {
                b.value_with(Op::CfbConstant, &[], ty, &[(keys::VALUE, value.0)])
            }
        }
    }
}

/// What an argument of a kernel may be known to be: for zeros more can be saved than for other rows.
fn possible_start<'c>(
    argument: Val<'c>,
    operands: &[Val<'c>],
    origins: &Origins<'c>,
) -> Option<Known<'c>> {
    let is_list = operands
        .first()
        .is_some_and(|operand| array_element(operand.r#type()).is_some());
    if is_list {
        let is_folded = |user: OperationRef<'c, 'c>| {
            Op::CfbReduceRows.is(user) && key(operands_of(user)[0]) == key(argument)
        };
        return users_of(argument)
            .into_iter()
            .all(is_folded)
            .then_some(Known::Empty);
    }
    let rows = origins.of_all(operands.iter().copied());
    let rows = rows.into_iter().filter_map(Row::of);
    let row = rows.min_by_key(|row| match row {
        Row::Constant(value) if known::is_zero_constant(*value) => 0,
        Row::Constant(_) => 1,
        Row::Parameter(_) => 2,
    });
    row.map(Known::Row)
}

/// The first list known that has as many elements.
fn same_length(mut list: Val<'_>) -> Val<'_> {
    while let Some(producer) = defining_op(list) {
        if !matches!(Op::of(producer), Some(Op::CfbMap | Op::CfbArrayReverse)) {
            break;
        }
        list = operands_of(producer)[0];
    }
    list
}

/// A product of zeros that starts from rows: its start and the sum of the zeros.
fn add_zeros<'c>(top: &Builder<'c>, rows: Val<'c>, product: OperationRef<'c, 'c>) {
    let Some(b) = Builder::before(top.context(), product) else {
        return;
    };
    let start = operands_of(product)[2];
    let ty = known::row_type(start);
    let zero = top.splat(ty, top.f32_attr(-0.0));
    let zero = top.constant(zero, ty);
    let zeros = b.insert(clone_op(product));
    set_operand(zeros, 2, repeat(top, rows, zero));
    let sum = b.addf(start, result_of(zeros, 0));
    replace_uses(result_of(product, 0), sum);
    erase(product);
}
