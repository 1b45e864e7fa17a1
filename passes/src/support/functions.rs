//! Functions whose arguments, and calls that give them, change.

use cohort_dialects::builder::{
    Builder, Val, arguments_of, operands_of, operations_of, results_of,
};
use cohort_dialects::keys;
use melior::{
    Context,
    ir::{BlockRef, OperationRef, Type, ValueLike, attribute::TypeAttribute, r#type::FunctionType},
};

use crate::support::ir::{blocks_of, erase, replace_uses, set_attribute};

/// Takes arguments, which nothing uses, from a block; `numbers` are in order.
pub fn erase_arguments(block: BlockRef<'_, '_>, numbers: &[usize]) {
    for number in numbers.iter().rev() {
        // SAFETY: the block is alive and has an argument of this number, which nothing uses.
        unsafe { mlir_sys::mlirBlockEraseArgument(block.to_raw(), *number as u32) };
    }
}

/// Puts an operation of other operands in place of one.
pub fn replace<'c>(b: &Builder<'c>, operation: OperationRef<'c, 'c>, operands: &[Val<'c>]) {
    let results: Vec<Type<'c>> = results_of(operation).iter().map(|r| r.r#type()).collect();
    let new = b.again(operation, operands, &results, vec![]);
    for (old, new) in results_of(operation).into_iter().zip(results_of(new)) {
        replace_uses(old, new);
    }
    erase(operation);
}

/// Lets the type of a function be that of its arguments and of what it returns.
pub fn change_type<'c>(context: &'c Context, function: OperationRef<'c, 'c>) {
    let Some(body) = blocks_of(function).first().copied() else {
        return;
    };
    let types = |values: Vec<Val<'c>>| -> Vec<Type<'c>> {
        values.iter().map(|value| value.r#type()).collect()
    };
    let returned = operations_of(body)
        .last()
        .map_or(vec![], |end| operands_of(*end));
    let ty = FunctionType::new(context, &types(arguments_of(body)), &types(returned));
    set_attribute(
        function,
        keys::FUNCTION_TYPE,
        TypeAttribute::new(ty.into()).into(),
    );
}
