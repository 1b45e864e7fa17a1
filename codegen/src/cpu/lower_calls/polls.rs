//! Long calls ask whether they are late.
//!
//! A launch can be given up between two of its calls, and one call may take minutes. So each turn of a
//! loop that has loops within its loops begins by asking the runtime; when there is no time left nothing
//! more is computed, and what was is thrown away. Calls whose lengths are all small never ask.

use cohort_abi::symbols;
use cohort_dialects::builder::{
    Builder, CmpiPredicate, Op, Val, arguments_of, operands_of, operations_of, region_with_block,
    result_of, results_of,
};
use cohort_dialects::keys;
use cohort_passes::support::ir::{blocks_of, move_before, nested_ops, set_operand};
use melior::{
    Context,
    ir::{OperationRef, ValueLike, attribute::FlatSymbolRefAttribute},
};

use super::eval::Call;
use crate::emit::Emitter;

/// The longest of a call's lengths from which on it asks: loops over the three dims of a product of squares
/// as long take a tenth of a second.
const LONG: i64 = 1 << 10;

/// Declares what is asked.
pub fn declare(module: &Emitter<'_>) {
    module.declare(symbols::LATE, &[], Some(module.b.i32()));
}

/// Whether a call is long.
pub fn is_long<'c>(e: &Emitter<'c>, call: &Call<'_, 'c>) -> Val<'c> {
    let lengths = call.lengths.iter().map(|length| length.value(e));
    let longest = lengths.reduce(|a, b| e.max(a, b));
    e.at_least(longest.unwrap_or_else(|| e.int(0)), e.int(LONG))
}

/// Lets the loops within one over calls ask, where `is_long` holds.
pub fn add<'c>(context: &'c Context, calls: OperationRef<'c, 'c>, is_long: Val<'c>) {
    for the_loop in nested_ops(calls) {
        if Op::ScfFor.is(the_loop) && has_loops_in_loops(the_loop) {
            poll(context, the_loop, is_long);
        }
    }
}

/// Whether some loop of the body has a loop, or multiplies blocks, which are loops.
fn has_loops_in_loops(the_loop: OperationRef<'_, '_>) -> bool {
    let is_loop = |op: &OperationRef<'_, '_>| Op::ScfFor.is(*op);
    let inner = nested_ops(the_loop);
    inner.iter().any(|op| Op::LlvmCall.is(*op))
        || (inner.into_iter().filter(is_loop)).any(|inner| nested_ops(inner).iter().any(is_loop))
}

/// Runs the body only while there is time.
fn poll<'c>(context: &'c Context, the_loop: OperationRef<'c, 'c>, is_long: Val<'c>) {
    let Some(body) = blocks_of(the_loop).first().copied() else {
        return;
    };
    let mut operations = operations_of(body);
    let (Some(first), Some(end)) = (operations.first().copied(), operations.pop()) else {
        return;
    };
    let Some(b) = Builder::before(context, first) else {
        return;
    };
    let truth = b.i1();
    let branch = |body: &dyn Fn(&Builder<'c>) -> Vec<Val<'c>>| {
        let (region, block) = region_with_block(&[], b.location);
        let inner = Builder::at_end(context, block, b.location);
        let values = body(&inner);
        inner.scf_yield(&values);
        region
    };
    let ask = |b: &Builder<'c>| {
        let callee = FlatSymbolRefAttribute::new(context, symbols::LATE).into();
        let attributes = [
            (keys::CALLEE, callee),
            (keys::OPERAND_SEGMENT_SIZES, b.i32s(&[0, 0])),
            (keys::OP_BUNDLE_SIZES, b.i32s(&[])),
        ];
        let late = b.value_with(Op::LlvmCall, &[], b.i32(), &attributes);
        let none = b.integer(0, late.r#type());
        vec![b.cmpi(CmpiPredicate::Eq, late, none)]
    };
    let asks = branch(&ask);
    let goes_on = branch(&|b| vec![b.integer(1, truth)]);
    let in_time = result_of(b.scf_if(is_long, &[truth], [asks, goes_on]), 0);

    let (yielded, carried) = (operands_of(end), arguments_of(body));
    let types: Vec<_> = yielded.iter().map(|value| value.r#type()).collect();
    let (works, given_up) = (
        branch(&|_| yielded.clone()),
        branch(&|_| carried[1..].to_vec()),
    );
    let b = Builder::before(context, end).unwrap_or(b);
    let choice = b.scf_if(in_time, &types, [works, given_up]);
    let inside = blocks_of(choice).first().copied();
    if let Some(yielding) = inside.and_then(|block| operations_of(block).pop()) {
        for operation in operations {
            move_before(operation, yielding);
        }
    }
    for (index, value) in results_of(choice).into_iter().enumerate() {
        set_operand(end, index, value);
    }
}
