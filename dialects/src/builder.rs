//! A small builder over melior's: an insertion point, a location, and one call an operation.
//!
//! The typed builders of the `cfb` dialect (generated from its declarations) cover our own
//! operations; this one is for the many upstream operations that lowering and passes create.

use crate::keys::{self, Key};
pub use crate::op::{Dialect, Op, is_arithmetic};
pub use melior::dialect::arith::{CmpfPredicate, CmpiPredicate};
use melior::{
    Context,
    ir::{
        Attribute, Block, BlockLike, BlockRef, Identifier, Location, Operation, OperationRef,
        Region, RegionLike, Type, TypeLike, Value, ValueLike,
        attribute::{FloatAttribute, IntegerAttribute},
        operation::{OperationBuilder, OperationLike},
    },
};

/// A value whose lifetime is only the context's; it is valid while its module is.
pub type Val<'c> = Value<'c, 'c>;

/// Where new operations go: the end of a block, or before one of its operations.
#[derive(Clone, Copy)]
pub struct Builder<'c> {
    context: &'c Context,
    block: BlockRef<'c, 'c>,
    before: Option<OperationRef<'c, 'c>>,
    /// The place in the program that new operations are said to come from.
    pub location: Location<'c>,
}

impl<'c> Builder<'c> {
    /// Adds operations at the end of a block.
    pub fn at_end(context: &'c Context, block: BlockRef<'c, '_>, location: Location<'c>) -> Self {
        Builder {
            context,
            block: extend_block(block),
            before: None,
            location,
        }
    }

    /// Inserts before `operation`, at its location. `None` when it is in no block.
    pub fn before(context: &'c Context, operation: OperationRef<'c, '_>) -> Option<Self> {
        let block = extend_block(operation.block()?);
        let location = operation.location();
        // SAFETY: the operation is in a block of a module that outlives this builder.
        let before = unsafe { OperationRef::from_raw(operation.to_raw()) };
        Some(Builder {
            context,
            block,
            before: Some(before),
            location,
        })
    }

    /// The same place, for operations that come from another location.
    pub fn at(self, location: Location<'c>) -> Self {
        Builder { location, ..self }
    }

    /// The context of everything that is built.
    pub fn context(&self) -> &'c Context {
        self.context
    }

    /// The block that operations are added to.
    pub fn block(&self) -> BlockRef<'c, 'c> {
        self.block
    }

    /// Inserts a built operation.
    pub fn insert(&self, operation: Operation<'c>) -> OperationRef<'c, 'c> {
        let inserted = match self.before {
            Some(before) => self.block.insert_operation_before(before, operation),
            None => self.block.append_operation(operation),
        };
        // SAFETY: the block owns the operation now and lives as long as the module.
        unsafe { OperationRef::from_raw(inserted.to_raw()) }
    }

    /// Builds and inserts any operation. Names, attributes and types are the compiler's own, so an
    /// operation that cannot be built is a bug of the caller.
    pub fn op(
        &self,
        kind: Op,
        operands: &[Val<'c>],
        results: &[Type<'c>],
        attributes: &[(Key<'_>, Attribute<'c>)],
        regions: Vec<Region<'c>>,
    ) -> OperationRef<'c, 'c> {
        let attributes: Vec<_> = attributes
            .iter()
            .map(|(name, attribute)| (Identifier::new(self.context, name), *attribute))
            .collect();
        let name = kind.name();
        let operation = OperationBuilder::new(name, self.location)
            .add_operands(operands)
            .add_results(results)
            .add_attributes(&attributes)
            .add_regions_vec(regions)
            .build()
            .unwrap_or_else(|error| unreachable!("`{name}` could not be built: {error}"));
        self.insert(operation)
    }

    /// The same operation as another, with its attributes, on other operands.
    pub fn again(
        &self,
        of: OperationRef<'c, '_>,
        operands: &[Val<'c>],
        results: &[Type<'c>],
        regions: Vec<Region<'c>>,
    ) -> OperationRef<'c, 'c> {
        let name = name_of(of);
        let operation = OperationBuilder::new(&name, self.location)
            .add_operands(operands)
            .add_results(results)
            .add_attributes(&of.attributes().collect::<Vec<_>>())
            .add_regions_vec(regions)
            .build()
            .unwrap_or_else(|error| unreachable!("`{name}` could not be built: {error}"));
        self.insert(operation)
    }

    /// An operation with one result and no attributes.
    pub fn value(&self, kind: Op, operands: &[Val<'c>], result: Type<'c>) -> Val<'c> {
        result_of(self.op(kind, operands, &[result], &[], vec![]), 0)
    }

    /// An operation with one result.
    pub fn value_with(
        &self,
        kind: Op,
        operands: &[Val<'c>],
        result: Type<'c>,
        attributes: &[(Key<'_>, Attribute<'c>)],
    ) -> Val<'c> {
        result_of(self.op(kind, operands, &[result], attributes, vec![]), 0)
    }

    /// An LLVM structure of these fields.
    pub fn pack_struct(&self, fields: &[Val<'c>]) -> Val<'c> {
        let types: Vec<_> = fields.iter().map(|field| field.r#type()).collect();
        let ty = self.llvm_struct(&types);
        let empty = self.value(Op::LlvmMlirUndef, &[], ty);
        (0..).zip(fields).fold(empty, |whole, (number, field)| {
            let position = [(keys::POSITION, self.i64s(&[number]))];
            self.value_with(Op::LlvmInsertvalue, &[whole, *field], ty, &position)
        })
    }

    /// The first fields of an LLVM structure, all of one type.
    pub fn unpack_struct(&self, whole: Val<'c>, count: usize, ty: Type<'c>) -> Vec<Val<'c>> {
        let field = |number: usize| {
            let position = [(keys::POSITION, self.i64s(&[number as i64]))];
            self.value_with(Op::LlvmExtractvalue, &[whole], ty, &position)
        };
        (0..count).map(field).collect()
    }

    /// Whether two integers compare so; of vectors and tensors, which elements do.
    pub fn cmpi(&self, predicate: CmpiPredicate, a: Val<'c>, b: Val<'c>) -> Val<'c> {
        self.compare(Op::ArithCmpi, predicate as i64, [a, b])
    }

    /// The same of floats.
    pub fn cmpf(&self, predicate: CmpfPredicate, a: Val<'c>, b: Val<'c>) -> Val<'c> {
        self.compare(Op::ArithCmpf, predicate as i64, [a, b])
    }

    fn compare(&self, kind: Op, predicate: i64, sides: [Val<'c>; 2]) -> Val<'c> {
        let truth = with_element(sides[0].r#type(), self.i1());
        let predicate = [(keys::PREDICATE, self.i64_attr(predicate))];
        self.value_with(kind, &sides, truth, &predicate)
    }

    /// A constant of type `index`.
    pub fn index(&self, value: i64) -> Val<'c> {
        self.integer(value, Type::index(self.context))
    }

    /// A constant of an integer or index type, or of vectors or tensors of one that are full of a number.
    pub fn integer(&self, value: i64, ty: Type<'c>) -> Val<'c> {
        self.full(IntegerAttribute::new(element_of(ty), value).into(), ty)
    }

    /// The same of floats.
    pub fn float(&self, value: f64, ty: Type<'c>) -> Val<'c> {
        let element = FloatAttribute::new(self.context, element_of(ty), value);
        self.full(element.into(), ty)
    }

    /// A constant that is this element, or full of it where the type is that of a vector or a tensor.
    pub fn full(&self, element: Attribute<'c>, ty: Type<'c>) -> Val<'c> {
        match element_of(ty) == ty {
            true => self.constant(element, ty),
            false => self.constant(self.splat(ty, element), ty),
        }
    }

    /// A constant of any type, whose value is an attribute of that type.
    pub fn constant(&self, value: Attribute<'c>, ty: Type<'c>) -> Val<'c> {
        self.value_with(Op::ArithConstant, &[], ty, &[(keys::VALUE, value)])
    }
}

/// The type of the elements of a vector or a tensor; any other type is its own.
pub fn element_of(ty: Type<'_>) -> Type<'_> {
    // SAFETY: the type is alive, and its kind is asked before its element is.
    unsafe {
        match mlir_sys::mlirTypeIsAShaped(ty.to_raw()) {
            true => Type::from_raw(mlir_sys::mlirShapedTypeGetElementType(ty.to_raw())),
            false => ty,
        }
    }
}

/// A vector or tensor of the same shape with other elements; for any other type the element itself.
pub fn with_element<'c>(ty: Type<'c>, element: Type<'c>) -> Type<'c> {
    let (raw, of) = (ty.to_raw(), element.to_raw());
    // SAFETY: both types are alive and of one context, and a type's kind is asked before its shape is.
    unsafe {
        if !mlir_sys::mlirTypeIsAShaped(raw) {
            return element;
        }
        let rank = mlir_sys::mlirShapedTypeGetRank(raw) as isize;
        let sizes: Vec<i64> = (0..rank)
            .map(|axis| mlir_sys::mlirShapedTypeGetDimSize(raw, axis))
            .collect();
        Type::from_raw(match mlir_sys::mlirTypeIsAVector(raw) {
            true => mlir_sys::mlirVectorTypeGet(rank, sizes.as_ptr(), of),
            false => {
                let encoding = mlir_sys::mlirRankedTensorTypeGetEncoding(raw);
                mlir_sys::mlirRankedTensorTypeGet(rank, sizes.as_ptr(), of, encoding)
            }
        })
    }
}

/// A region with one block of the given arguments.
pub fn region_with_block<'c>(
    arguments: &[Type<'c>],
    location: Location<'c>,
) -> (Region<'c>, BlockRef<'c, 'c>) {
    let arguments: Vec<_> = arguments.iter().map(|ty| (*ty, location)).collect();
    let region = Region::new();
    let block = extend_block(region.append_block(Block::new(&arguments)));
    (region, block)
}

/// Result `index` of an operation; the caller knows that it exists.
pub fn result_of<'c>(operation: OperationRef<'c, '_>, index: usize) -> Val<'c> {
    let value: Value<'c, '_> = operation
        .result(index)
        .unwrap_or_else(|_| unreachable!("`{}` has no result {index}", name_of(operation)))
        .into();
    extend(value)
}

/// The results of an operation, in order.
pub fn results_of<'c>(operation: OperationRef<'c, '_>) -> Vec<Val<'c>> {
    (0..operation.result_count())
        .map(|index| result_of(operation, index))
        .collect()
}

/// The operands of an operation, in order.
pub fn operands_of<'c>(operation: OperationRef<'c, '_>) -> Vec<Val<'c>> {
    operation.operands().map(extend).collect()
}

/// The arguments of a block, in order.
pub fn arguments_of<'c>(block: BlockRef<'c, '_>) -> Vec<Val<'c>> {
    (0..block.argument_count())
        .filter_map(|index| block.argument(index).ok())
        .map(|argument| extend(argument.into()))
        .collect()
}

/// The operations of a block, in order; safe to erase or move while the list is walked.
pub fn operations_of<'c>(block: BlockRef<'c, '_>) -> Vec<OperationRef<'c, 'c>> {
    let mut operations = Vec::new();
    let mut next = block.first_operation();
    while let Some(operation) = next {
        next = operation.next_in_block();
        // SAFETY: the module owns the operation; see `Val`.
        operations.push(unsafe { OperationRef::from_raw(operation.to_raw()) });
    }
    operations
}

/// The name of an operation, `func.call`.
pub fn name_of<'c>(operation: OperationRef<'c, '_>) -> String {
    operation
        .name()
        .as_string_ref()
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

/// Frees a value of the borrow through which it was reached.
pub fn extend<'c>(value: Value<'c, '_>) -> Val<'c> {
    // SAFETY: only the lifetime changes; see `Val`.
    unsafe { Value::from_raw(melior::ir::ValueLike::to_raw(&value)) }
}

/// The same block, for as long as the context lives; the module must outlive its use.
pub fn extend_block<'c>(block: BlockRef<'c, '_>) -> BlockRef<'c, 'c> {
    // SAFETY: only the lifetime changes; the module owns the block.
    unsafe { BlockRef::from_raw(block.to_raw()) }
}

/// The same operation, for as long as the context lives; the module must outlive its use.
pub fn extend_op<'c>(operation: OperationRef<'c, '_>) -> OperationRef<'c, 'c> {
    // SAFETY: only the lifetime changes; the module owns the operation.
    unsafe { OperationRef::from_raw(operation.to_raw()) }
}
