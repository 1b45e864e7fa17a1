//! Tensors stacked from rows that are anywhere.
//!
//! ```mlir
//! %x = cfb.stack %rows : !cfb.array<tensor<8xf32>> -> tensor<?x8xf32>
//! // becomes
//! cfb.kernel @stack_0 attributes {lengths = [@dim.0], rows = [@dim.0], takes = [#cfb<takes stacked>], unit = #cfb<unit rows>} {
//! ^bb0(%rows: index, %n: tensor<?xindex>, %row: tensor<?x8xf32>):
//!   cfb.yield %row : tensor<?x8xf32>
//! }
//! %len = cfb.array_len %rows : !cfb.array<tensor<8xf32>>
//! %n = arith.index_cast %len : i32 to index
//! %x = cfb.record @stack_0(%n, %rows) : …
//! ```
//!
//! One that is only a result of the entry stays: its rows are written out from where they are.

use cohort_abi::manifest::Unit;
use cohort_dialects::builder::{
    Builder, Op, arguments_of, operands_of, region_with_block, result_of,
};
use cohort_dialects::keys;
use cohort_dialects::marks;
use cohort_dialects::types::lazy;
use melior::{
    Context,
    ir::{OperationRef, Type, ValueLike, operation::OperationLike},
};

use super::Kernels;
use crate::level0::form_blocks::DIM;
use crate::pass::{Outcome, error};
use crate::support::dims::{self, Takes};
use crate::support::ir::{TensorType, erase, nested_ops, replace_uses, users_of};

pub fn record_stacks<'c>(
    context: &'c Context,
    kernels: &mut Kernels<'c>,
    module: OperationRef<'c, 'c>,
) -> Outcome {
    let stacks: Vec<_> = nested_ops(module)
        .into_iter()
        .filter(|op| Op::CfbStack.is(*op) && !passes_through(*op))
        .collect();
    for stack in stacks {
        record(context, kernels, stack)?;
    }
    Ok(())
}

/// Whether a stack is a result of the entry and nothing else.
fn passes_through(stack: OperationRef<'_, '_>) -> bool {
    users_of(result_of(stack, 0)).into_iter().all(|user| {
        let around = user.parent_operation();
        Op::FuncReturn.is(user) && around.is_some_and(|op| op.has_attribute(&marks::ENTRY))
    })
}

fn record<'c>(
    context: &'c Context,
    kernels: &mut Kernels<'c>,
    stack: OperationRef<'c, 'c>,
) -> Outcome {
    let (array, stacked) = (operands_of(stack)[0], result_of(stack, 0));
    let ty = TensorType::of_value(stacked).filter(|ty| !ty.shape[1..].contains(&None));
    let Some(ty) = ty else {
        let message = "not supported yet: stacking tensors whose lengths differ by instance";
        return Err(error(stack, message));
    };
    let types = [
        Type::index(context),
        kernels.top.tensor_type(&[None], kernels.top.index_type()),
        ty.to_type(),
    ];
    let (region, entry) = region_with_block(&types, stack.location());
    let inner = Builder::at_end(context, entry, stack.location());
    inner.cfb_yield(&arguments_of(entry)[2..]);
    let dim = format!("{DIM}0");
    let top = kernels.top.at(stack.location());
    let lengths = top.array(&[top.symbol(&dim)]);
    let attributes = [
        (keys::SYM_NAME, top.string("kernel")),
        (keys::SYM_VISIBILITY, top.string("private")),
        (keys::UNIT, dims::unit_attribute(context, Unit::Rows)),
        (keys::LENGTHS, lengths),
        (keys::ROWS, lengths),
        (
            keys::TAKES,
            dims::takes_attribute(context, &[Takes::Stacked]),
        ),
    ];
    let kernel = top.op(Op::CfbKernel, &[], &[], &attributes, vec![region]);
    let name = kernels.unify(context, kernel, "stack");

    let Some(before) = Builder::before(context, stack) else {
        return Ok(());
    };
    let length = before.value(Op::CfbArrayLen, &[array], before.i32());
    let length = before.index_cast(length, before.index_type());
    let result = lazy(stacked.r#type()).unwrap_or(stacked.r#type());
    let row = before.cfb_record(&name, &[length, array], &[result]);
    replace_uses(stacked, row[0]);
    erase(stack);
    Ok(())
}
