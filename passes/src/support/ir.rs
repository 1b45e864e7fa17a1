//! Small questions and edits that several passes need and melior does not offer.

use cohort_abi::manifest::Elem;
use cohort_dialects::builder::{
    Builder, Op, Val, arguments_of, extend, extend_block, extend_op, operations_of, result_of,
};
use cohort_dialects::enums::DialectEnum;
use cohort_dialects::keys::{self, Key};
pub use cohort_dialects::marks::{COMPUTED, GRADIENT_OF};
use melior::ir::{
    AffineMap, Attribute, BlockLike, BlockRef, Location, Operation, OperationRef, Region,
    RegionLike, Type, Value, ValueLike,
    attribute::{
        ArrayAttribute, AttributeLike, DenseI64ArrayAttribute, IntegerAttribute, StringAttribute,
    },
    operation::OperationLike,
    r#type::{IntegerType, TypeLike},
};

/// What a number of this type is to the runtime, of a host scalar and of a tensor's elements alike.
pub fn elem_of(ty: Type<'_>) -> Option<Elem> {
    if ty.is_f32() {
        return Some(Elem::F32);
    }
    let integer = IntegerType::try_from(ty).ok()?;
    match (integer.is_signless(), integer.width()) {
        (true, 32) => Some(Elem::I32),
        (true, 1) => Some(Elem::Bool),
        _ => None,
    }
}

/// What identifies a value, for maps and sets.
pub type ValueKey = usize;

/// What tells a value from all others, as long as it lives.
pub fn key(value: Val<'_>) -> ValueKey {
    value.to_raw().ptr as usize
}

/// What identifies an operation.
pub fn op_key(operation: OperationRef<'_, '_>) -> usize {
    operation.to_raw().ptr as usize
}

/// The operations that use a value, one entry a use.
pub fn users_of<'c>(value: Val<'c>) -> Vec<OperationRef<'c, 'c>> {
    let mut users = Vec::new();
    // SAFETY: the value is alive; the use list is only read.
    unsafe {
        let mut operand = mlir_sys::mlirValueGetFirstUse(value.to_raw());
        while !operand.ptr.is_null() {
            users.push(OperationRef::from_raw(mlir_sys::mlirOpOperandGetOwner(
                operand,
            )));
            operand = mlir_sys::mlirOpOperandGetNextUse(operand);
        }
    }
    users
}

/// Makes every use of `of` a use of `with`, but for those in `exceptions`.
pub fn replace_uses_except<'c>(of: Val<'c>, with: Val<'c>, exceptions: &[OperationRef<'c, 'c>]) {
    let mut exceptions: Vec<_> = exceptions.iter().map(|op| op.to_raw()).collect();
    // SAFETY: all values and operations are alive; MLIR copies nothing beyond the call.
    unsafe {
        mlir_sys::mlirValueReplaceAllUsesExcept(
            of.to_raw(),
            with.to_raw(),
            exceptions.len() as isize,
            exceptions.as_mut_ptr(),
        );
    }
}

/// Puts another value where a value is used.
pub fn replace_uses<'c>(of: Val<'c>, with: Val<'c>) {
    replace_uses_except(of, with, &[]);
}

/// Changes a value's type in place; its operation must accept the new one.
pub fn set_type<'c>(value: Val<'c>, ty: Type<'c>) {
    // SAFETY: value and type are alive and of one context.
    unsafe { mlir_sys::mlirValueSetType(value.to_raw(), ty.to_raw()) }
}

/// Moves an operation before another, from any block.
pub fn move_before(operation: OperationRef<'_, '_>, other: OperationRef<'_, '_>) {
    // SAFETY: both are alive and in blocks.
    unsafe { mlir_sys::mlirOperationMoveBefore(operation.to_raw(), other.to_raw()) }
}

/// Moves an operation to the end of a block without a terminator, from any block.
pub fn move_to_end<'c>(operation: OperationRef<'c, '_>, block: BlockRef<'c, '_>) {
    // SAFETY: both are alive; what is taken out of its block is owned by the other one.
    unsafe {
        mlir_sys::mlirOperationRemoveFromParent(operation.to_raw());
        mlir_sys::mlirBlockAppendOwnedOperation(block.to_raw(), operation.to_raw());
    }
}

/// A detached copy, regions included.
pub fn clone_op<'c>(operation: OperationRef<'c, '_>) -> Operation<'c> {
    // SAFETY: the operation is alive; the copy is owned by the result.
    unsafe { Operation::from_raw(mlir_sys::mlirOperationClone(operation.to_raw())) }
}

/// A copy of one of an operation's regions; an empty one where it has none of that index.
pub fn clone_region<'c>(operation: OperationRef<'c, '_>, index: usize) -> Region<'c> {
    let copy = clone_op(operation);
    let region = Region::new();
    if let Ok(body) = copy.region(index) {
        // SAFETY: both regions are alive; the copy dies after its body has moved.
        unsafe { mlir_sys::mlirRegionTakeBody(region.to_raw(), body.to_raw()) };
    }
    region
}

/// The body of a region of an operation, taken from it; empty if there is no such region.
pub fn take_region<'c>(operation: OperationRef<'c, '_>, index: usize) -> Region<'c> {
    let region = Region::new();
    if let Ok(body) = operation.region(index) {
        // SAFETY: both regions are alive, and the new one is empty.
        unsafe { mlir_sys::mlirRegionTakeBody(region.to_raw(), body.to_raw()) };
    }
    region
}

/// The operation of the same name and attributes on other values; marks of ours stay behind.
pub fn repeat<'c>(
    b: &Builder<'c>,
    op: OperationRef<'c, 'c>,
    inputs: &[Val<'c>],
    ty: Type<'c>,
) -> Val<'c> {
    let b = b.at(op.location());
    let copy = b.again(op, inputs, &[ty], vec![]);
    for (name, _) in attributes_without(op, &[]) {
        if name.starts_with("cfb.") {
            remove_attribute(copy, name);
        }
    }
    result_of(copy, 0)
}

/// The attributes of an operation, without some.
pub fn attributes_without<'c>(
    operation: OperationRef<'c, '_>,
    without: &[Key<'_>],
) -> Vec<(Key<'c>, Attribute<'c>)> {
    let named = operation.attributes();
    let named = named.map(|(name, attribute)| (Key::of(name), attribute));
    named.filter(|(key, _)| !without.contains(key)).collect()
}

/// Erases an operation without uses.
pub fn erase(operation: OperationRef<'_, '_>) {
    // SAFETY: the caller has replaced all uses; no reference to it is kept.
    unsafe { mlir_sys::mlirOperationDestroy(operation.to_raw()) }
}

/// The operation that defines a value; `None` for a block argument.
pub fn defining_op<'c>(value: Val<'c>) -> Option<OperationRef<'c, 'c>> {
    // SAFETY: the value is alive; the kind is asked first.
    unsafe {
        mlir_sys::mlirValueIsAOpResult(value.to_raw())
            .then(|| OperationRef::from_raw(mlir_sys::mlirOpResultGetOwner(value.to_raw())))
    }
}

/// The block whose argument a value is, and which.
pub fn argument_of<'c>(value: Val<'c>) -> Option<(BlockRef<'c, 'c>, usize)> {
    // SAFETY: the value is alive; the kind is asked first.
    unsafe {
        mlir_sys::mlirValueIsABlockArgument(value.to_raw()).then(|| {
            let block = mlir_sys::mlirBlockArgumentGetOwner(value.to_raw());
            let number = mlir_sys::mlirBlockArgumentGetArgNumber(value.to_raw());
            (BlockRef::from_raw(block), number as usize)
        })
    }
}

/// The blocks of all regions of an operation.
pub fn blocks_of<'c>(operation: OperationRef<'c, '_>) -> Vec<BlockRef<'c, 'c>> {
    let mut blocks = Vec::new();
    for region in operation.regions() {
        let mut next = region.first_block();
        while let Some(block) = next {
            blocks.push(extend_block(block));
            next = block.next_in_region().map(extend_block);
        }
    }
    blocks
}

/// Every operation below one, outermost first, itself not included.
pub fn nested_ops<'c>(operation: OperationRef<'c, '_>) -> Vec<OperationRef<'c, 'c>> {
    let mut found = Vec::new();
    let mut stack = vec![extend_op(operation)];
    while let Some(operation) = stack.pop() {
        let children: Vec<_> = blocks_of(operation)
            .into_iter()
            .flat_map(operations_of)
            .collect();
        found.extend(children.iter().copied());
        stack.extend(children.into_iter().rev());
    }
    found
}

/// The functions of a module, in order.
pub fn functions_of<'c>(module: OperationRef<'c, '_>) -> Vec<OperationRef<'c, 'c>> {
    top_level(module)
        .into_iter()
        .filter(|op| Op::FuncFunc.is(*op))
        .collect()
}

/// The arguments of a function that has a body; none of one that has not.
pub fn function_arguments<'c>(function: OperationRef<'c, 'c>) -> Vec<Val<'c>> {
    let body = blocks_of(function).first().copied();
    body.map(arguments_of).unwrap_or_default()
}

/// The `func.call`s in an operation, at any depth.
pub fn calls_in<'c>(operation: OperationRef<'c, '_>) -> Vec<OperationRef<'c, 'c>> {
    nested_ops(operation)
        .into_iter()
        .filter(|op| Op::FuncCall.is(*op))
        .collect()
}

/// The operations directly in a module.
pub fn top_level<'c>(module: OperationRef<'c, '_>) -> Vec<OperationRef<'c, 'c>> {
    blocks_of(module)
        .into_iter()
        .flat_map(operations_of)
        .collect()
}

/// Whether an operation is one of `inside` or in a region of one.
pub fn is_within(
    operation: OperationRef<'_, '_>,
    inside: &std::collections::HashSet<usize>,
) -> bool {
    let mut current = Some(extend_op(operation));
    while let Some(operation) = current {
        if inside.contains(&op_key(operation)) {
            return true;
        }
        current = operation.parent_operation().map(extend_op);
    }
    false
}

/// Whether a value is defined in a region of one of `inside`.
pub fn is_local(value: Val<'_>, inside: &std::collections::HashSet<usize>) -> bool {
    let owner = match defining_op(value) {
        Some(producer) => producer.parent_operation(),
        None => argument_of(value).and_then(|(block, _)| block.parent_operation()),
    };
    owner.is_some_and(|owner| is_within(owner, inside))
}

/// The value of a string or flat symbol attribute.
pub fn name_attribute(operation: OperationRef<'_, '_>, name: Key<'_>) -> Option<String> {
    text_of(operation.attribute(&name).ok()?)
}

/// The value of an attribute that is an enum of the dialect; `None` where it is not there.
pub fn enum_attribute<E: DialectEnum>(operation: OperationRef<'_, '_>, name: Key<'_>) -> Option<E> {
    E::of(operation.attribute(&name).ok()?)
}

/// The symbol that an operation declares.
pub fn symbol_of(operation: OperationRef<'_, '_>) -> Option<String> {
    name_attribute(operation, keys::SYM_NAME)
}

/// Whether only its module refers to an operation by its symbol.
pub fn is_private(operation: OperationRef<'_, '_>) -> bool {
    name_attribute(operation, keys::SYM_VISIBILITY).as_deref() == Some("private")
}

/// The function that a `func.call` or `llvm.call` calls.
pub fn callee_of(call: OperationRef<'_, '_>) -> Option<String> {
    name_attribute(call, keys::CALLEE)
}

/// The kernel that a `cfb.record` records.
pub fn kernel_of(record: OperationRef<'_, '_>) -> Option<String> {
    name_attribute(record, keys::KERNEL)
}

/// The global that an `ml_program.global_load_const` reads.
pub fn global_of(load: OperationRef<'_, '_>) -> Option<String> {
    name_attribute(load, keys::GLOBAL)
}

/// The text of a string, or the name of a flat symbol.
pub fn text_of(attribute: Attribute<'_>) -> Option<String> {
    // SAFETY: the attribute is alive and its kind is asked before it is read.
    let text = unsafe {
        if mlir_sys::mlirAttributeIsAString(attribute.to_raw()) {
            mlir_sys::mlirStringAttrGetValue(attribute.to_raw())
        } else if mlir_sys::mlirAttributeIsAFlatSymbolRef(attribute.to_raw()) {
            mlir_sys::mlirFlatSymbolRefAttrGetValue(attribute.to_raw())
        } else {
            return None;
        }
    };
    // SAFETY: MLIR's string points to `length` bytes owned by the context.
    let bytes = unsafe { std::slice::from_raw_parts(text.data.cast::<u8>(), text.length) };
    Some(String::from_utf8_lossy(bytes).into_owned())
}

/// The elements of an array attribute; none where it is something else.
pub fn elements_of<'c>(attribute: Attribute<'c>) -> Vec<Attribute<'c>> {
    ArrayAttribute::try_from(attribute).map_or(vec![], |array| {
        (0..array.len())
            .filter_map(|index| array.element(index).ok())
            .collect()
    })
}

/// The entries of a dictionary attribute; `None` where it is something else.
pub fn entries_of<'c>(attribute: Attribute<'c>) -> Option<Vec<(String, Attribute<'c>)>> {
    // SAFETY: the attribute is alive and its kind is asked before it is read; MLIR's strings point to `length` bytes
    // owned by the context.
    unsafe {
        if !mlir_sys::mlirAttributeIsADictionary(attribute.to_raw()) {
            return None;
        }
        let count = mlir_sys::mlirDictionaryAttrGetNumElements(attribute.to_raw());
        let entries = (0..count).map(|index| {
            let entry = mlir_sys::mlirDictionaryAttrGetElement(attribute.to_raw(), index);
            let name = mlir_sys::mlirIdentifierStr(entry.name);
            let bytes = std::slice::from_raw_parts(name.data.cast::<u8>(), name.length);
            let name = String::from_utf8_lossy(bytes).into_owned();
            (name, Attribute::from_raw(entry.attribute))
        });
        Some(entries.collect())
    }
}

/// The elements of an array attribute of an operation; none where there is no such attribute.
pub fn array<'c>(operation: OperationRef<'c, '_>, name: Key<'_>) -> Vec<Attribute<'c>> {
    operation.attribute(&name).map_or(vec![], elements_of)
}

/// The strings in an array attribute.
pub fn strings(attribute: Attribute<'_>) -> Vec<String> {
    let texts = elements_of(attribute).into_iter();
    let texts = texts.filter(|text| StringAttribute::try_from(*text).is_ok());
    // Melior reads no empty string.
    texts.filter_map(text_of).collect()
}

/// The map of an affine map attribute.
pub fn affine_map<'c>(attribute: Attribute<'c>) -> Option<AffineMap<'c>> {
    // SAFETY: the attribute is alive and its kind is asked before it is read.
    unsafe {
        mlir_sys::mlirAttributeIsAAffineMap(attribute.to_raw())
            .then(|| AffineMap::from_raw(mlir_sys::mlirAffineMapAttrGetValue(attribute.to_raw())))
    }
}

/// The value of an integer attribute.
pub fn integer_attribute(operation: OperationRef<'_, '_>, name: Key<'_>) -> Option<i64> {
    let attribute = operation.attribute(&name).ok()?;
    IntegerAttribute::try_from(attribute)
        .ok()
        .map(|number| number.value())
}

/// The elements of a dense i64 array attribute, where a dynamic one is `i64::MIN`; none where there is no such
/// attribute.
pub fn integers(operation: OperationRef<'_, '_>, name: Key<'_>) -> Vec<i64> {
    let attribute = operation.attribute(&name).ok();
    let array = attribute.and_then(|array| DenseI64ArrayAttribute::try_from(array).ok());
    array.map_or(vec![], |array| {
        (0..array.len())
            .filter_map(|index| array.element(index).ok())
            .collect()
    })
}

/// The one number of which a constant tensor is full.
pub fn splat_value<'c>(constant: OperationRef<'c, '_>) -> Option<Attribute<'c>> {
    splat_of(constant.attribute(&keys::VALUE).ok()?)
}

/// The one number of all elements of an attribute.
pub fn splat_of(value: Attribute<'_>) -> Option<Attribute<'_>> {
    // SAFETY: the attribute is alive, and it is asked for its kind before it is read.
    unsafe {
        (mlir_sys::mlirAttributeIsADenseElements(value.to_raw())
            && mlir_sys::mlirDenseElementsAttrIsSplat(value.to_raw()))
        .then(|| Attribute::from_raw(mlir_sys::mlirDenseElementsAttrGetSplatValue(value.to_raw())))
    }
}

/// A constant of a tensor type with known shape that is full of one number of its element type.
pub fn splat<'c>(ty: Type<'c>, value: Attribute<'c>) -> Option<Attribute<'c>> {
    let known = TensorType::of(ty)?.shape.iter().all(Option::is_some);
    // SAFETY: type and value are alive and of one context; the type's shape is known.
    known.then(|| unsafe {
        Attribute::from_raw(mlir_sys::mlirDenseElementsAttrSplatGet(
            ty.to_raw(),
            value.to_raw(),
        ))
    })
}

/// Writes an attribute of an operation that is only borrowed.
pub fn set_attribute<'c>(operation: OperationRef<'c, '_>, name: Key<'_>, attribute: Attribute<'c>) {
    let name = melior::StringRef::new(&name);
    // SAFETY: operation and attribute are alive; MLIR copies the name.
    unsafe {
        mlir_sys::mlirOperationSetAttributeByName(
            operation.to_raw(),
            name.to_raw(),
            attribute.to_raw(),
        );
    }
}

/// Removes an attribute, if it is there.
pub fn remove_attribute(operation: OperationRef<'_, '_>, name: Key<'_>) {
    let name = melior::StringRef::new(&name);
    // SAFETY: the operation is alive; MLIR only reads the name.
    unsafe {
        mlir_sys::mlirOperationRemoveAttributeByName(operation.to_raw(), name.to_raw());
    }
}

/// Gives an operation another operand, in the place of the one of this number.
pub fn set_operand<'c>(operation: OperationRef<'c, '_>, index: usize, value: Val<'c>) {
    // SAFETY: operation and value are alive; the index is below the operand count.
    unsafe {
        mlir_sys::mlirOperationSetOperand(operation.to_raw(), index as isize, value.to_raw());
    }
}

/// Static shape and element type of a ranked tensor; a dynamic dim is `None`.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorType<'c> {
    /// The sizes of its dims; `None` where one is dynamic.
    pub shape: Vec<Option<u64>>,
    /// The type of its elements.
    pub element: Type<'c>,
}

impl<'c> TensorType<'c> {
    /// The type as that of a ranked tensor; `None` if it is another.
    pub fn of(ty: Type<'c>) -> Option<TensorType<'c>> {
        let raw = ty.to_raw();
        // SAFETY: the type is alive; it is asked for its kind before its shape is read.
        unsafe {
            if !mlir_sys::mlirTypeIsARankedTensor(raw) {
                return None;
            }
            let shape = (0..mlir_sys::mlirShapedTypeGetRank(raw) as isize)
                .map(|axis| {
                    (!mlir_sys::mlirShapedTypeIsDynamicDim(raw, axis))
                        .then(|| mlir_sys::mlirShapedTypeGetDimSize(raw, axis) as u64)
                })
                .collect();
            let element = Type::from_raw(mlir_sys::mlirShapedTypeGetElementType(raw));
            Some(TensorType { shape, element })
        }
    }

    /// The type of a value that must be a tensor.
    pub fn of_value(value: Val<'c>) -> Option<TensorType<'c>> {
        Self::of(value.r#type())
    }

    /// How many dims it has.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// The sizes as MLIR has them.
    fn sizes(&self) -> Vec<i64> {
        // SAFETY: a pure function that returns MLIR's mark of a dynamic dim.
        let dynamic = unsafe { mlir_sys::mlirShapedTypeGetDynamicSize() };
        let sizes = self.shape.iter();
        sizes.map(|dim| dim.map_or(dynamic, |n| n as i64)).collect()
    }

    /// The type without an encoding.
    pub fn to_type(&self) -> Type<'c> {
        let shape = self.sizes();
        // SAFETY: shape and element are valid; there is no encoding.
        unsafe {
            Type::from_raw(mlir_sys::mlirRankedTensorTypeGet(
                shape.len() as isize,
                shape.as_ptr(),
                self.element.to_raw(),
                mlir_sys::mlirAttributeGetNull(),
            ))
        }
    }

    /// The type with an encoding; `None`, with a diagnostic, where that does not fit.
    pub fn encoded(&self, encoding: Attribute<'c>, location: Location<'c>) -> Option<Type<'c>> {
        let shape = self.sizes();
        // SAFETY: shape, element and encoding are valid and of one context.
        unsafe {
            Type::from_option_raw(mlir_sys::mlirRankedTensorTypeGetChecked(
                location.to_raw(),
                shape.len() as isize,
                shape.as_ptr(),
                self.element.to_raw(),
                encoding.to_raw(),
            ))
        }
    }

    /// The same with a leading dim of unknown size: one entry a row.
    pub fn batched(&self) -> TensorType<'c> {
        let mut shape = vec![None];
        shape.extend(&self.shape);
        TensorType {
            shape,
            element: self.element,
        }
    }
}

/// Whether a type is that of a ranked tensor.
pub fn is_tensor(ty: Type<'_>) -> bool {
    TensorType::of(ty).is_some()
}

/// A melior value without the borrow it came through.
pub fn val<'c, 'a>(value: impl Into<Value<'c, 'a>>) -> Val<'c>
where
    'c: 'a,
{
    extend(value.into())
}
