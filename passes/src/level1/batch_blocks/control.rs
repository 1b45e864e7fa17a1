//! The control program: tensors become handles.

use cohort_dialects::builder::{
    Builder, Op, arguments_of, name_of, operands_of, result_of, results_of,
};
use cohort_dialects::keys;
use cohort_dialects::types::{array, array_element, lazy, lazy_tensor};
use melior::{
    Context,
    ir::{
        Attribute, OperationRef, Type, ValueLike,
        attribute::{ArrayAttribute, TypeAttribute},
        operation::OperationLike,
        r#type::{FunctionType, TupleType},
    },
};

use super::make_value_lazy;
use crate::pass::{Outcome, error};
use crate::support::ir::{
    TensorType, blocks_of, defining_op, elements_of, erase, functions_of, integer_attribute,
    is_tensor, nested_ops, replace_uses, set_attribute, top_level, users_of,
};

/// Gives every tensor outside of kernels its lazy form.
pub fn make_lazy<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    for function in functions_of(module) {
        for operation in nested_ops(function) {
            match Op::of(operation) {
                Some(Op::CfbLookup) => lookup(context, operation)?,
                Some(Op::TensorDim) => read_length(context, operation)?,
                Some(Op::CfbDebug) => {
                    if let Ok(ty) = operation.attribute(&keys::TYPE) {
                        set_attribute(operation, keys::TYPE, lazy_attribute(context, ty));
                    }
                }
                _ => {}
            }
        }
        replace_tensor_values(context, function)?;
        for operation in nested_ops(function) {
            for value in results_of(operation) {
                make_value_lazy(context, value);
            }
            for block in blocks_of(operation) {
                arguments_of(block)
                    .into_iter()
                    .for_each(|value| make_value_lazy(context, value));
            }
        }
        for block in blocks_of(function) {
            arguments_of(block)
                .into_iter()
                .for_each(|value| make_value_lazy(context, value));
        }
        if let Ok(ty) = function.attribute(&keys::FUNCTION_TYPE) {
            set_attribute(function, keys::FUNCTION_TYPE, lazy_attribute(context, ty));
        }
    }
    for adt in top_level(module)
        .into_iter()
        .filter(|op| Op::CfbAdt.is(*op))
    {
        if let Ok(fields) = adt.attribute(&keys::FIELDS) {
            set_attribute(adt, keys::FIELDS, lazy_attribute(context, fields));
        }
    }
    Ok(())
}

/// `tensor.dim` of what will be a handle; lengths are known without the tensor.
fn read_length<'c>(context: &'c Context, dim: OperationRef<'c, 'c>) -> Outcome {
    let operands = operands_of(dim);
    let axis = defining_op(operands[1]).and_then(|axis| integer_attribute(axis, keys::VALUE));
    let axis = axis.ok_or_else(|| error(dim, "not supported yet: a dim chosen at run time"))?;
    let Some(builder) = Builder::before(context, dim) else {
        return Ok(());
    };
    let axis = builder.i64_attr(axis as i64);
    let attributes = [(keys::AXIS, axis)];
    let length = builder.value_with(
        Op::CfbDim,
        &operands[..1],
        builder.index_type(),
        &attributes,
    );
    replace_uses(result_of(dim, 0), length);
    erase(dim);
    Ok(())
}

/// `cfb.lookup` of a parameter is a row that exists already; of a tensor whose length is known at run
/// time it is some of its rows.
fn lookup<'c>(context: &'c Context, lookup: OperationRef<'c, 'c>) -> Outcome {
    let operands = operands_of(lookup);
    let is_ragged = |value| {
        let tensor = lazy_tensor(ValueLike::r#type(value)).unwrap_or(ValueLike::r#type(value));
        TensorType::of(tensor).is_some_and(|ty| ty.shape.first() == Some(&None))
    };
    if is_ragged(&operands[0]) {
        let Some(builder) = Builder::before(context, lookup) else {
            return Ok(());
        };
        let ty = lazy_form(context, result_of(lookup, 0).r#type());
        let row = builder.value(Op::CfbRow, &operands, ty);
        replace_uses(result_of(lookup, 0), row);
        erase(lookup);
        return Ok(());
    }
    let table = defining_op(operands[0])
        .filter(|load| Op::MlProgramGlobalLoadConst.is(*load))
        .and_then(|load| load.attribute(&keys::GLOBAL).ok())
        .ok_or_else(|| {
            error(
                lookup,
                "not supported yet: a row of a tensor that is not a parameter, by a computed index",
            )
        })?;
    let Some(builder) = Builder::before(context, lookup) else {
        return Ok(());
    };
    let ty = lazy_form(context, result_of(lookup, 0).r#type());
    let row = builder.value_with(Op::CfbParamRow, &operands[1..], ty, &[(keys::PARAM, table)]);
    replace_uses(result_of(lookup, 0), row);
    erase(lookup);
    Ok(())
}

/// Parameters and constants that the control program passes on become handles; what nobody uses
/// any more goes.
fn replace_tensor_values<'c>(context: &'c Context, function: OperationRef<'c, 'c>) -> Outcome {
    let mut operations = nested_ops(function);
    operations.reverse();
    for operation in operations {
        let results = results_of(operation);
        let replaced = match Op::of(operation) {
            Some(Op::MlProgramGlobalLoadConst) => true,
            Some(
                Op::ArithConstant
                | Op::TensorEmpty
                | Op::LinalgFill
                | Op::LinalgBroadcast
                | Op::TensorFromElements,
            ) => results.iter().any(|result| is_tensor(result.r#type())),
            _ => false,
        };
        if !replaced {
            continue;
        }
        let used = results.iter().any(|result| !users_of(*result).is_empty());
        if used {
            let Some(builder) = Builder::before(context, operation) else {
                continue;
            };
            let ty = lazy_form(context, results[0].r#type());
            let handle = match (
                Op::of(operation),
                operation.attribute(&keys::GLOBAL),
                operation.attribute(&keys::VALUE),
            ) {
                (_, Ok(parameter), _) => builder.cfb_param(parameter, ty),
                (Some(Op::ArithConstant), _, Ok(value)) => {
                    builder.value_with(Op::CfbConstant, &[], ty, &[(keys::VALUE, value)])
                }
                _ => {
                    let name = name_of(operation);
                    let message = format!("`{name}` outside of a block; run `form-blocks` first");
                    return Err(error(operation, &message));
                }
            };
            replace_uses(results[0], handle);
        }
        erase(operation);
    }
    Ok(())
}

/// A type with every tensor in it, inside of arrays and tuples too, made lazy.
pub fn lazy_form<'c>(context: &'c Context, ty: Type<'c>) -> Type<'c> {
    let each = |types: &[Type<'c>]| -> Vec<_> {
        let types = types.iter();
        types.map(|ty| lazy_form(context, *ty)).collect()
    };
    if is_tensor(ty) {
        return lazy(ty).unwrap_or(ty);
    }
    if let Some(element) = array_element(ty) {
        return array(lazy_form(context, element));
    }
    if let Ok(tuple) = TupleType::try_from(ty) {
        let parts = (0..tuple.type_count()).filter_map(|index| tuple.r#type(index).ok());
        return TupleType::new(context, &each(&parts.collect::<Vec<_>>())).into();
    }
    if let Ok(function) = FunctionType::try_from(ty) {
        let inputs = (0..function.input_count()).filter_map(|index| function.input(index).ok());
        let results = (0..function.result_count()).filter_map(|index| function.result(index).ok());
        let [inputs, results] = [inputs.collect::<Vec<_>>(), results.collect()];
        return FunctionType::new(context, &each(&inputs), &each(&results)).into();
    }
    ty
}

/// The same for the types in an attribute.
fn lazy_attribute<'c>(context: &'c Context, attribute: Attribute<'c>) -> Attribute<'c> {
    if let Ok(ty) = TypeAttribute::try_from(attribute) {
        return TypeAttribute::new(lazy_form(context, ty.value())).into();
    }
    if ArrayAttribute::try_from(attribute).is_err() {
        return attribute;
    }
    let elements = elements_of(attribute).into_iter();
    let elements: Vec<_> = elements
        .map(|element| lazy_attribute(context, element))
        .collect();
    ArrayAttribute::new(context, &elements).into()
}

#[cfg(test)]
mod tests {
    use cohort_dialects::new_context;
    use melior::ir::Type;

    use super::lazy_form;

    #[test]
    fn wraps_tensors_once_wherever_they_are() {
        let context = new_context();
        let cases = [
            ("i32", "i32"),
            ("tensor<3xf32>", "!cfb.lazy<tensor<3xf32>>"),
            ("!cfb.lazy<tensor<3xf32>>", "!cfb.lazy<tensor<3xf32>>"),
            (
                "(tensor<f32>, i32) -> tensor<2xi1>",
                "(!cfb.lazy<tensor<f32>>, i32) -> !cfb.lazy<tensor<2xi1>>",
            ),
            (
                "!cfb.array<tuple<tensor<f32>, tensor<2xi1>>>",
                "!cfb.array<tuple<!cfb.lazy<tensor<f32>>, !cfb.lazy<tensor<2xi1>>>>",
            ),
        ];
        for (text, expected) in cases {
            let ty = Type::parse(&context, text).expect(text);
            let lazy = lazy_form(&context, ty);
            assert_eq!(lazy, Type::parse(&context, expected).expect(text), "{text}");
        }
    }
}
