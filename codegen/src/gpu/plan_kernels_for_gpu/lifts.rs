//! Host scalars that a kernel takes beside tensors.
//!
//! A kernel may be recorded with a number of the host in one place and with a tensor in another: the start of
//! a fold, and what comes of its first turn. On the processor either is a row. A launch on a GPU takes an
//! operand in one form, so the number becomes a tensor by a kernel of its own, which copies it:
//!
//! ```mlir
//! cfb.kernel @lift_i32 { ^bb0(%rows: index, %x: tensor<?xi32>): cfb.yield %x : tensor<?xi32> }
//! …
//! %t = cfb.record @lift_i32(%k) : (i32) -> !cfb.lazy<tensor<i32>>
//! %r = cfb.record @f_0(%t, %y) : (!cfb.lazy<tensor<i32>>, !cfb.lazy<tensor<i32>>) -> !cfb.lazy<tensor<i32>>
//! ```

use std::collections::HashMap;

use cohort_dialects::builder::{Builder, Op, arguments_of, operands_of, region_with_block};
use cohort_dialects::keys;
use cohort_dialects::types::lazy;
use cohort_passes::support::ir::{elem_of, nested_ops, set_operand, symbol_of};
use cohort_passes::support::symbols::{Symbols, records_by_kernel};
use melior::{
    Context,
    ir::{
        Location, OperationRef, Type, TypeLike, ValueLike, attribute::StringAttribute,
        operation::OperationLike,
    },
};

/// Makes tensors of the host scalars of `kernels` that other records of the same kernel pass as tensors.
pub fn lift_scalars<'c>(
    context: &'c Context,
    module: OperationRef<'c, 'c>,
    kernels: &[OperationRef<'c, 'c>],
) {
    let Some(top) = kernels
        .first()
        .and_then(|first| Builder::before(context, *first))
    else {
        return;
    };
    let records = records_by_kernel(nested_ops(module));
    let mut symbols = Symbols::of(module);
    let mut lifts: HashMap<usize, String> = HashMap::new();
    for kernel in kernels {
        let name = symbol_of(*kernel).unwrap_or_default();
        for (record, index) in mixed(records.get(&name).map_or(&[], Vec::as_slice)) {
            let scalar = operands_of(record)[index];
            let ty = scalar.r#type();
            let lift = lifts
                .entry(ty.to_raw().ptr as usize)
                .or_insert_with(|| lift_kernel(context, top, kernel.location(), ty, &mut symbols));
            let Some(before) = Builder::before(context, record) else {
                continue;
            };
            let tensor = before.tensor_type(&[], ty);
            let tensor = lazy(tensor).unwrap_or(tensor);
            let lifted = before.cfb_record(lift, &[scalar], &[tensor]);
            set_operand(record, index, lifted[0]);
        }
    }
}

/// The operands of a kernel's records that are host scalars where others are tensors.
fn mixed<'c>(records: &[OperationRef<'c, 'c>]) -> Vec<(OperationRef<'c, 'c>, usize)> {
    let is_scalar = |record: &OperationRef<'c, 'c>, index: usize| {
        operands_of(*record)
            .get(index)
            .is_some_and(|operand| elem_of(operand.r#type()).is_some())
    };
    let operands = records.first().map_or(0, |record| record.operand_count());
    let places = (0..operands).filter(|index| {
        let scalars = records.iter().filter(|record| is_scalar(record, *index));
        (1..records.len()).contains(&scalars.count())
    });
    places
        .flat_map(|index| {
            let with = records
                .iter()
                .filter(move |record| is_scalar(record, index));
            with.map(move |record| (*record, index))
        })
        .collect()
}

/// A kernel that copies rows of one number; returns its name.
fn lift_kernel<'c>(
    context: &'c Context,
    top: Builder<'c>,
    location: Location<'c>,
    element: Type<'c>,
    symbols: &mut Symbols,
) -> String {
    let name = symbols.free_like(&format!("lift_{element}"));
    let rows = top.tensor_type(&[None], element);
    let (region, entry) = region_with_block(&[Type::index(context), rows], location);
    let inside = Builder::at_end(context, entry, location);
    inside.cfb_yield(&arguments_of(entry)[1..]);
    let attributes = [
        (keys::SYM_NAME, StringAttribute::new(context, &name).into()),
        (
            keys::SYM_VISIBILITY,
            StringAttribute::new(context, "private").into(),
        ),
    ];
    top.at(location)
        .op(Op::CfbKernel, &[], &[], &attributes, vec![region]);
    name
}
