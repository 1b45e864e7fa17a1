//! The control program: tensors become handles.

use cohort_dialects::builder::{
    Builder, arguments_of, name_of, operands_of, result_of, results_of,
};
use cohort_dialects::types::lazy_tensor;
use melior::{
    Context,
    ir::{
        Attribute, OperationRef, Type, ValueLike,
        attribute::{AttributeLike, TypeAttribute},
        operation::OperationLike,
    },
};

use super::make_value_lazy;
use crate::pass::{Outcome, error};
use crate::support::ir::{
    TensorType, blocks_of, defining_op, erase, functions_of, integer_attribute, is_tensor,
    nested_ops, replace_uses, set_attribute, top_level, users_of,
};

/// Gives every tensor outside of kernels its lazy form.
pub fn make_lazy<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    for function in functions_of(module) {
        for operation in nested_ops(function) {
            match name_of(operation).as_str() {
                "cfb.lookup" => lookup(context, operation)?,
                "tensor.dim" => read_length(context, operation)?,
                "cfb.debug" => {
                    if let Ok(ty) = operation.attribute("type") {
                        set_attribute(operation, "type", lazy_attribute(context, ty));
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
        if let Ok(ty) = function.attribute("function_type") {
            set_attribute(function, "function_type", lazy_attribute(context, ty));
        }
    }
    for adt in top_level(module)
        .into_iter()
        .filter(|op| name_of(*op) == "cfb.adt")
    {
        if let Ok(fields) = adt.attribute("fields") {
            set_attribute(adt, "fields", lazy_attribute(context, fields));
        }
    }
    Ok(())
}

/// `tensor.dim` of what will be a handle; lengths are known without the tensor.
fn read_length<'c>(context: &'c Context, dim: OperationRef<'c, 'c>) -> Outcome {
    let operands = operands_of(dim);
    let axis = defining_op(operands[1]).and_then(|axis| integer_attribute(axis, "value"));
    let axis = axis.ok_or_else(|| error(dim, "not supported yet: a dim chosen at run time"))?;
    let Some(builder) = Builder::before(context, dim) else {
        return Ok(());
    };
    let axis = builder.i64_attr(axis as i64);
    let attributes = [("axis", axis)];
    let length = builder.value_with("cfb.dim", &operands[..1], builder.ty("index"), &attributes);
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
        let row = builder.value("cfb.row", &operands, ty);
        replace_uses(result_of(lookup, 0), row);
        erase(lookup);
        return Ok(());
    }
    let table = defining_op(operands[0])
        .filter(|load| name_of(*load) == "ml_program.global_load_const")
        .and_then(|load| load.attribute("global").ok())
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
    let row = builder.value_with("cfb.param_row", &operands[1..], ty, &[("param", table)]);
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
        let name = name_of(operation);
        let results = results_of(operation);
        let replaced = match name.as_str() {
            "ml_program.global_load_const" => true,
            "arith.constant"
            | "tensor.empty"
            | "linalg.fill"
            | "linalg.broadcast"
            | "tensor.from_elements" => results.iter().any(|result| is_tensor(result.r#type())),
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
                name.as_str(),
                operation.attribute("global"),
                operation.attribute("value"),
            ) {
                (_, Ok(parameter), _) => {
                    builder.value_with("cfb.param", &[], ty, &[("param", parameter)])
                }
                ("arith.constant", _, Ok(value)) => {
                    builder.value_with("cfb.constant", &[], ty, &[("value", value)])
                }
                _ => {
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
    let text = ty.to_string();
    match make_text_lazy(&text) {
        Some(lazy) => Type::parse(context, &lazy).unwrap_or(ty),
        None => ty,
    }
}

/// The same for the types in an attribute.
fn lazy_attribute<'c>(context: &'c Context, attribute: Attribute<'c>) -> Attribute<'c> {
    if let Ok(ty) = TypeAttribute::try_from(attribute) {
        return TypeAttribute::new(lazy_form(context, ty.value())).into();
    }
    // SAFETY: the attribute is alive and its kind is asked before its elements are read.
    let count = unsafe {
        if !mlir_sys::mlirAttributeIsAArray(attribute.to_raw()) {
            return attribute;
        }
        mlir_sys::mlirArrayAttrGetNumElements(attribute.to_raw())
    };
    let elements: Vec<_> = (0..count)
        // SAFETY: as above; the index is below the count.
        .map(|index| unsafe {
            Attribute::from_raw(mlir_sys::mlirArrayAttrGetElement(attribute.to_raw(), index))
        })
        .map(|element| lazy_attribute(context, element))
        .collect();
    melior::ir::attribute::ArrayAttribute::new(context, &elements).into()
}

/// Wraps every `tensor<…>` of a printed type that is not in a `!cfb.lazy` already; `None` when
/// there is none.
fn make_text_lazy(text: &str) -> Option<String> {
    const TENSOR: &str = "tensor<";
    const LAZY: &str = "!cfb.lazy<";
    let mut out = String::new();
    let mut rest = text;
    let mut changed = false;
    while let Some(start) = rest.find(TENSOR) {
        let (before, from) = rest.split_at(start);
        let depth_end = matching_angle(from, TENSOR.len())?;
        let (tensor, after) = from.split_at(depth_end);
        out.push_str(before);
        if out.ends_with(LAZY) {
            out.push_str(tensor);
        } else {
            out.push_str(LAZY);
            out.push_str(tensor);
            out.push('>');
            changed = true;
        }
        rest = after;
    }
    out.push_str(rest);
    changed.then_some(out)
}

/// The end of the bracket that opened before `from`.
fn matching_angle(text: &str, from: usize) -> Option<usize> {
    let mut depth = 1;
    for (index, byte) in text.bytes().enumerate().skip(from) {
        match byte {
            b'<' => depth += 1,
            b'>' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(index + 1);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::make_text_lazy;

    #[test]
    fn wraps_tensors_once_wherever_they_are() {
        let cases = [
            ("i32", None),
            ("tensor<3xf32>", Some("!cfb.lazy<tensor<3xf32>>")),
            ("!cfb.lazy<tensor<3xf32>>", None),
            (
                "!cfb.array<tuple<tensor<f32>, tensor<2xi1>>>",
                Some("!cfb.array<tuple<!cfb.lazy<tensor<f32>>, !cfb.lazy<tensor<2xi1>>>>"),
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(make_text_lazy(text).as_deref(), expected, "{text}");
        }
    }
}
