//! A block whose unit is the row, as it is for one row.
//!
//! The leading dims of all its tensors go, and with them the loops over these: a product of rows
//! with a matrix becomes one of a vector with it. Over the batch of all rows that is then, by the
//! same rules as for any block, one dense product.

use crate::kernel::rows::maps::named_structure;
use std::collections::HashMap;

use cohort_dialects::builder::{
    Builder, Op, Val, arguments_of, is_arithmetic, name_of, operands_of, operations_of,
    region_with_block, result_of, results_of,
};
use cohort_dialects::keys::{self, Key};
use melior::{
    Context,
    ir::{
        BlockRef, OperationRef, Region, ValueLike,
        attribute::{DenseI32ArrayAttribute, DenseI64ArrayAttribute, IntegerAttribute},
        operation::OperationLike,
    },
};

use crate::kernel::rows::maps::MapResult;
use crate::pass::{Failed, error};
use crate::support::dim_equality::{loops_of, reassociation};
use crate::support::ir::{
    TensorType, clone_op, integer_attribute, integers, key, nested_ops, set_attribute, set_operand,
    set_type, splat, splat_value,
};

/// The body of a block for one row of its `count` leading dims. The region owns the result.
pub fn row_form<'c>(
    context: &'c Context,
    body: BlockRef<'c, 'c>,
    count: usize,
) -> Result<(Region<'c>, BlockRef<'c, 'c>), Failed> {
    let arguments = arguments_of(body);
    let types: Vec<_> = arguments
        .iter()
        .map(|argument| match row_type(*argument, count) {
            Some(row) => row.to_type(),
            None => argument.r#type(),
        })
        .collect();
    let operations = operations_of(body);
    let location = operations.first().map_or_else(
        || melior::ir::Location::unknown(context),
        |first| first.location(),
    );
    let (region, block) = region_with_block(&types, location);
    let mut rows = Rows {
        builder: Builder::at_end(context, block, location),
        count,
        values: HashMap::new(),
    };
    for (argument, row) in arguments.into_iter().zip(arguments_of(block)) {
        rows.values.insert(key(argument), row);
    }
    for operation in operations {
        rows.builder.location = operation.location();
        rows.convert(operation)?;
    }
    Ok((region, block))
}

/// The type of one row of a tensor with instance dims; `None` for any other value.
fn row_type(value: Val<'_>, count: usize) -> Option<TensorType<'_>> {
    let mut ty = TensorType::of_value(value)?;
    if !ty.shape.contains(&None) {
        return None;
    }
    ty.shape.drain(..count);
    Some(ty)
}

struct Rows<'c> {
    builder: Builder<'c>,
    /// The leading dims that go.
    count: usize,
    values: HashMap<usize, Val<'c>>,
}

impl<'c> Rows<'c> {
    fn value(&self, value: Val<'c>) -> Val<'c> {
        self.values.get(&key(value)).copied().unwrap_or(value)
    }

    fn is_row(&self, value: Val<'c>) -> bool {
        row_type(value, self.count).is_some()
    }

    fn define(&mut self, operation: OperationRef<'c, 'c>, row: Val<'c>) {
        self.values.insert(key(result_of(operation, 0)), row);
    }

    fn convert(&mut self, operation: OperationRef<'c, 'c>) -> Result<(), Failed> {
        let results = results_of(operation);
        let operands = operands_of(operation);
        if !results.iter().any(|result| self.is_row(*result)) {
            self.copy(operation);
            return Ok(());
        }
        match Op::of(operation) {
            Some(Op::TensorEmpty) => {
                let row = self.type_of(results[0]);
                let empty = self.builder.tensor_empty(&[], row.to_type());
                self.define(operation, empty);
            }
            Some(Op::ArithConstant) => {
                let copy = self.copy(operation);
                let row = self.type_of(results[0]).to_type();
                let value = splat_value(operation).and_then(|value| splat(row, value));
                let value = value.ok_or_else(|| error(operation, "expected one number for all"))?;
                set_attribute(copy, keys::VALUE, value);
            }
            Some(Op::TensorExtractSlice) => self.slice(operation),
            Some(Op::TensorCollapseShape | Op::TensorExpandShape) => self.reshape(operation),
            Some(Op::TensorConcat) => {
                let copy = self.copy(operation);
                self.lower_integer(copy, keys::DIM);
            }
            Some(Op::LinalgBroadcast) => {
                let added: Vec<i64> = integers(operation, keys::DIMENSIONS)
                    .into_iter()
                    .filter_map(|axis| self.below(axis))
                    .collect();
                if added.is_empty() {
                    let value = self.value(operands[0]);
                    self.define(operation, value);
                } else {
                    let copy = self.copy(operation);
                    self.set_integers(copy, keys::DIMENSIONS, &added);
                }
            }
            Some(Op::LinalgReduce | Op::LinalgTranspose) => {
                let attribute = match Op::of(operation) {
                    Some(Op::LinalgReduce) => keys::DIMENSIONS,
                    _ => keys::PERMUTATION,
                };
                let axes: Vec<i64> = integers(operation, attribute)
                    .into_iter()
                    .filter_map(|axis| self.below(axis))
                    .collect();
                let copy = self.copy(operation);
                self.set_integers(copy, attribute, &axes);
            }
            Some(Op::LinalgGeneric) => self.generic(operation)?,
            Some(Op::LinalgMatmul) => self.product(operation, Op::LinalgVecmat),
            Some(Op::LinalgMatvec) => self.product(operation, Op::LinalgDot),
            Some(Op::LinalgFill) => {
                self.copy(operation);
            }
            _ if is_arithmetic(operation) => {
                self.copy(operation);
            }
            _ => {
                let name = name_of(operation);
                let message = format!("not supported yet: `{name}` of each row");
                return Err(error(operation, &message));
            }
        }
        Ok(())
    }

    /// The same operation on rows; the types of its results are those of rows.
    fn copy(&mut self, operation: OperationRef<'c, 'c>) -> OperationRef<'c, 'c> {
        let copy = self.builder.insert(clone_op(operation));
        for (index, operand) in operands_of(operation).into_iter().enumerate() {
            set_operand(copy, index, self.value(operand));
        }
        for (old, new) in nested_ops(operation).into_iter().zip(nested_ops(copy)) {
            for (index, operand) in operands_of(old).into_iter().enumerate() {
                if let Some(value) = self.values.get(&key(operand)) {
                    set_operand(new, index, *value);
                }
            }
        }
        for (old, new) in results_of(operation).into_iter().zip(results_of(copy)) {
            if let Some(row) = row_type(old, self.count) {
                set_type(new, row.to_type());
            }
            self.values.insert(key(old), new);
        }
        copy
    }

    fn type_of(&self, value: Val<'c>) -> TensorType<'c> {
        row_type(value, self.count)
            .or_else(|| TensorType::of_value(value))
            .unwrap_or_else(|| unreachable!("{} is a tensor", value.r#type()))
    }

    /// An axis of a tensor as one of its rows; `None` for a leading one.
    fn below(&self, axis: i64) -> Option<i64> {
        let axis = axis - self.count as i64;
        (axis >= 0).then_some(axis)
    }

    fn set_integers(&self, operation: OperationRef<'c, 'c>, name: Key<'_>, values: &[i64]) {
        let values = DenseI64ArrayAttribute::new(self.builder.context(), values).into();
        set_attribute(operation, name, values);
    }

    fn lower_integer(&self, operation: OperationRef<'c, 'c>, name: Key<'_>) {
        let value = integer_attribute(operation, name).unwrap_or(0);
        let ty = self.builder.i64();
        let value = IntegerAttribute::new(ty, self.below(value).unwrap_or(0)).into();
        set_attribute(operation, name, value);
    }

    fn slice(&mut self, operation: OperationRef<'c, 'c>) {
        let source = self.value(operands_of(operation)[0]);
        let context = self.builder.context();
        let own = |name: Key<'_>| {
            let values = integers(operation, name);
            DenseI64ArrayAttribute::new(context, &values[self.count..]).into()
        };
        let segments = DenseI32ArrayAttribute::new(context, &[1, 0, 0, 0]).into();
        let row = self.type_of(result_of(operation, 0)).to_type();
        let attributes = [
            (keys::STATIC_OFFSETS, own(keys::STATIC_OFFSETS)),
            (keys::STATIC_SIZES, own(keys::STATIC_SIZES)),
            (keys::STATIC_STRIDES, own(keys::STATIC_STRIDES)),
            (keys::OPERAND_SEGMENT_SIZES, segments),
        ];
        let slice = self
            .builder
            .value_with(Op::TensorExtractSlice, &[source], row, &attributes);
        self.define(operation, slice);
    }

    fn reshape(&mut self, operation: OperationRef<'c, 'c>) {
        let source = operands_of(operation)[0];
        let value = self.value(source);
        let (from, to) = (self.type_of(source), self.type_of(result_of(operation, 0)));
        if from == to {
            self.define(operation, value);
            return;
        }
        let few = from.rank().min(to.rank());
        // Axes of one element that stood with a leading dim join the next group.
        let mut groups: Vec<Vec<usize>> = Vec::new();
        let mut over = Vec::new();
        for (axis, group) in reassociation(operation).into_iter().enumerate() {
            let own = group.into_iter().filter(|axis| *axis >= self.count);
            over.extend(own.map(|axis| axis - self.count));
            if axis >= self.count {
                groups.push(std::mem::take(&mut over));
            }
        }
        groups.truncate(few);
        let groups = self.builder.reassociation(&groups);
        let mut attributes = vec![(keys::REASSOCIATION, groups)];
        if Op::TensorExpandShape.is(operation) {
            let sizes: Vec<i64> = to
                .shape
                .iter()
                .map(|size| size.unwrap_or(1) as i64)
                .collect();
            let sizes = DenseI64ArrayAttribute::new(self.builder.context(), &sizes).into();
            attributes.push((keys::STATIC_OUTPUT_SHAPE, sizes));
        }
        let kind = match Op::TensorExpandShape.is(operation) {
            true => Op::TensorExpandShape,
            false => Op::TensorCollapseShape,
        };
        let reshaped = self
            .builder
            .value_with(kind, &[value], to.to_type(), &attributes);
        self.define(operation, reshaped);
    }

    /// A product of rows with what is the same for all of them.
    fn product(&mut self, operation: OperationRef<'c, 'c>, kind: Op) {
        let operands: Vec<_> = operands_of(operation)
            .into_iter()
            .map(|operand| self.value(operand))
            .collect();
        let row = self.type_of(result_of(operation, 0)).to_type();
        let segments = DenseI32ArrayAttribute::new(self.builder.context(), &[2, 1]).into();
        let attributes = [(keys::OPERAND_SEGMENT_SIZES, segments)];
        let product = self
            .builder
            .op(kind, &operands, &[row], &attributes, vec![Region::new()]);
        // SAFETY: the operation is a named linalg operation with an empty region, as required.
        unsafe { mlir_sys::mlirLinalgFillBuiltinNamedOpRegion(product.to_raw()) };
        self.define(operation, result_of(product, 0));
    }

    /// Any structured operation, without the loops over the leading dims.
    fn generic(&mut self, operation: OperationRef<'c, 'c>) -> Result<(), Failed> {
        let refuse = || error(operation, "not supported yet: indexing maps of this form");
        let loops = loops_of(operation).ok_or_else(refuse)?;
        let lead: Vec<usize> = loops
            .maps
            .last()
            .into_iter()
            .flat_map(|map| map.iter().take(self.count))
            .filter_map(|place| match place {
                MapResult::Loop(number) => Some(*number),
                MapResult::Constant(_) => None,
            })
            .collect();
        let kept: Vec<usize> = (0..loops.folds.len())
            .filter(|number| !lead.contains(number))
            .collect();
        let renumbered = |number: usize| kept.iter().position(|known| *known == number);
        let maps: Vec<Vec<MapResult>> = loops
            .maps
            .iter()
            .map(|map| {
                let places = map.iter().filter_map(|place| match place {
                    MapResult::Loop(number) => renumbered(*number).map(MapResult::Loop),
                    MapResult::Constant(_) => Some(*place),
                });
                places.collect()
            })
            .collect();
        if let Some(kind) = product_of(operation, &maps) {
            self.product(operation, kind);
            return Ok(());
        }
        let folds: Vec<bool> = kept.iter().map(|number| loops.folds[*number]).collect();
        let copy = self.copy(operation);
        let maps = self.builder.indexing_maps(folds.len(), &maps);
        set_attribute(copy, keys::INDEXING_MAPS, maps);
        set_attribute(copy, keys::ITERATOR_TYPES, self.builder.iterators(&folds));
        for index in nested_ops(copy) {
            if Op::LinalgIndex.is(index) {
                let number = integer_attribute(index, keys::DIM).unwrap_or(0) as usize;
                let number = renumbered(number).ok_or_else(refuse)?;
                let ty = self.builder.i64();
                set_attribute(
                    index,
                    keys::DIM,
                    IntegerAttribute::new(ty, number as i64).into(),
                );
            }
        }
        Ok(())
    }
}

/// The named product that sums of products over these loops are.
fn product_of(operation: OperationRef<'_, '_>, maps: &[Vec<MapResult>]) -> Option<Op> {
    let body: Vec<_> = nested_ops(operation).into_iter().map(Op::of).collect();
    if body != [Op::ArithMulf, Op::ArithAddf, Op::LinalgYield].map(Some) {
        return None;
    }
    let products = [
        Op::LinalgDot,
        Op::LinalgVecmat,
        Op::LinalgMatvec,
        Op::LinalgMatmul,
    ];
    products
        .into_iter()
        .find(|kind| named_structure(*kind).is_some_and(|named| named.maps == maps))
}
