//! What the types of the control program become: slots in memory, scalars and pointers in SSA.

use cohort_dialects::builder::{Op, Val};
use cohort_dialects::types::{adt_name, array_element, is_str, lazy_tensor};
use cohort_passes::support::ir::{TensorType, defining_op};
use melior::{
    Context,
    dialect::llvm::r#type::pointer,
    ir::{
        Type, ValueLike,
        r#type::{IntegerType, TypeLike},
    },
};

/// The elements of a builtin tuple.
pub fn tuple_elements(ty: Type<'_>) -> Option<Vec<Type<'_>>> {
    let raw = ty.to_raw();
    // SAFETY: the type is alive and its kind is asked before it is taken apart.
    unsafe {
        if !mlir_sys::mlirTypeIsATuple(raw) {
            return None;
        }
        let count = mlir_sys::mlirTupleTypeGetNumTypes(raw);
        Some(
            (0..count)
                .map(|i| Type::from_raw(mlir_sys::mlirTupleTypeGetType(raw, i)))
                .collect(),
        )
    }
}

/// The types of the SSA values that a value of `ty` (not a tuple) becomes, one a slot: of a tensor
/// with instance dims its handle, then the lengths. `None` for what the control program cannot hold,
/// a tensor above all.
pub fn lowered<'c>(context: &'c Context, ty: Type<'c>) -> Option<Vec<Type<'c>>> {
    if let Some(tensor) = lazy_tensor(ty) {
        let lengths = instance_dims(&TensorType::of(tensor)?);
        return Some(vec![Type::from(IntegerType::new(context, 64)); 1 + lengths]);
    }
    if adt_name(ty).is_some() || array_element(ty).is_some() || is_str(ty) {
        return Some(vec![pointer(context, 0)]);
    }
    let is_integer = IntegerType::try_from(ty)
        .is_ok_and(|ty| ty.is_signless() && [1, 8, 32, 64].contains(&ty.width()));
    let is_number = is_integer || ty.is_index() || ty.is_f32() || ty.is_f64();
    (is_number || ty == pointer(context, 0)).then_some(vec![ty])
}

/// The types of what a value becomes. A tensor stacked from rows is the array of them.
pub fn lowered_value<'c>(context: &'c Context, value: Val<'c>) -> Option<Vec<Type<'c>>> {
    if is_stacked(value) {
        return Some(vec![pointer(context, 0)]);
    }
    lowered(context, value.r#type())
}

/// Whether a value is a tensor stacked from rows.
pub fn is_stacked(value: Val<'_>) -> bool {
    defining_op(value).is_some_and(|op| Op::CfbStack.is(op))
}

/// How many lengths a tensor has that are known at run time only.
pub fn instance_dims(tensor: &TensorType<'_>) -> usize {
    tensor.shape.iter().filter(|size| size.is_none()).count()
}
