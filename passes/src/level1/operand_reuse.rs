//! `operand-reuse`: finds which operands of a block are the same for every instance.
//!
//! A parameter is shared by all instances, so a product with it is one dense product over all
//! rows, while a matrix that differs by instance makes a batched product. A block operand is
//! `shared` when it is a parameter load, or can be nothing but one and the same parameter, by whatever ways
//! it came: arguments and results of calls (recursive ones included), branches, loops, elements of arrays, fields of
//! constructors ([`Origins`]); such a value's uses become loads. Everything else is `row`. The result is
//! the attribute `reuse`, one entry an operand.
//!
//! ```mlir
//! cfb.block "f"(%h, %w) : (tensor<8xf32>, tensor<8x8xf32>) -> (tensor<8xf32>) {…}
//! // becomes, where %w is always the parameter @w
//! %w = ml_program.global_load_const @w : tensor<8x8xf32>
//! cfb.block "f"(%h, %w) : (…) -> (…) attributes {reuse = [#cfb<reuse row>, #cfb<reuse shared>]} {…}
//! ```
//!
//! Requires: level 1. Leaves: every block with `reuse`. A function that is called with different
//! parameters keeps `row` operands and a remark says so: its products run one matrix a row.

use cohort_dialects::builder::{
    Builder, Op, Val, arguments_of, extend_op, operands_of, operations_of, results_of,
};
use cohort_dialects::enums::{DialectEnum, Reuse};
use cohort_dialects::keys;
use melior::{
    Context,
    ir::{
        Attribute, BlockLike, OperationRef, ValueLike,
        attribute::{ArrayAttribute, FlatSymbolRefAttribute},
        operation::OperationLike,
    },
};

use crate::pass::{Outcome, PassInfo, remark};
use crate::support::ir::{
    TensorType, argument_of, blocks_of, defining_op, global_of, is_tensor, nested_ops,
    replace_uses, set_attribute, symbol_of, users_of,
};
use crate::support::origins::{Origin, Origins};

/// The pass `operand-reuse`.
pub const PASS: PassInfo = PassInfo {
    name: "operand-reuse",
    summary: "Mark each operand of a block `shared` or `row`",
    description: include_str!("operand_reuse.rs"),
    run,
};

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    let origins = Origins::new(module);
    // All are found before any is replaced.
    let found: Vec<(Val<'c>, Vec<Origin<'c>>)> = handed_on(module)
        .into_iter()
        .map(|value| (value, origins.of_all([value])))
        .collect();
    for (value, origins) in &found {
        match origins.as_slice() {
            [Origin::Parameter(parameter)] => load_instead(context, *value, parameter),
            several if is_matrix(*value) => explain(*value, several),
            _ => {}
        }
    }
    for operation in nested_ops(module) {
        if Op::CfbBlock.is(operation) {
            annotate(context, operation);
        }
    }
    Ok(())
}

/// The tensors that the control program hands on rather than computes, and something uses.
fn handed_on<'c>(module: OperationRef<'c, 'c>) -> Vec<Val<'c>> {
    let mut values = Vec::new();
    for operation in nested_ops(module) {
        match Op::of(operation) {
            Some(Op::FuncFunc | Op::ScfWhile | Op::CfbFold | Op::CfbMap | Op::CfbMatch) => {
                values.extend(blocks_of(operation).into_iter().flat_map(arguments_of));
                values.extend(results_of(operation));
            }
            Some(Op::FuncCall | Op::ScfIf | Op::CfbArrayGet | Op::ArithSelect) => {
                values.extend(results_of(operation));
            }
            _ => {}
        }
    }
    values.retain(|value| is_tensor(value.r#type()) && !users_of(*value).is_empty());
    values
}

/// Says of a function's matrix that it is one of several parameters.
fn explain<'c>(value: Val<'c>, origins: &[Origin<'c>]) {
    let Some((block, index)) = argument_of(value) else {
        return;
    };
    let function = block.parent_operation().map(extend_op);
    let Some(function) = function.filter(|owner| Op::FuncFunc.is(*owner)) else {
        return;
    };
    let name = symbol_of(function).unwrap_or_default();
    let is_parameter = |origin: &Origin<'_>| matches!(origin, Origin::Parameter(_));
    if origins.iter().any(is_parameter) {
        remark(
            function,
            &format!(
                "argument {index} of `{name}` is a different parameter at different calls, so its \
                 products take one matrix a row"
            ),
        );
    }
}

/// The parameter that a value is, when it is a load of one.
fn loaded_parameter(value: Val<'_>) -> Option<String> {
    let producer = defining_op(value)?;
    (Op::MlProgramGlobalLoadConst.is(producer))
        .then(|| global_of(producer))
        .flatten()
}

fn is_matrix(value: Val<'_>) -> bool {
    TensorType::of_value(value).is_some_and(|ty| ty.rank() >= 2)
}

fn load_instead<'c>(context: &'c Context, value: Val<'c>, parameter: &str) {
    let next = match argument_of(value) {
        Some((block, _)) => operations_of(block).first().copied(),
        None => defining_op(value).and_then(|producer| {
            let next = producer.next_in_block()?;
            Some(extend_op(next))
        }),
    };
    let Some(builder) = next.and_then(|next| Builder::before(context, next)) else {
        return;
    };
    let symbol = FlatSymbolRefAttribute::new(context, parameter).into();
    let load = builder.global(symbol, value.r#type());
    replace_uses(value, load);
}

fn annotate<'c>(context: &'c Context, block: OperationRef<'c, 'c>) {
    let reuse: Vec<Attribute<'c>> = operands_of(block)
        .into_iter()
        .map(|operand| match loaded_parameter(operand).is_some() {
            true => Reuse::Shared,
            false => Reuse::Row,
        })
        .map(|reuse| reuse.attribute(context))
        .collect();
    set_attribute(
        block,
        keys::REUSE,
        ArrayAttribute::new(context, &reuse).into(),
    );
}
