//! The batching rule of each tensor operation.
//!
//! A value of a block is *shared* (the same for every row, still unbatched) or *rows* (it has the
//! leading batch dim). An operation all of whose operands are shared stays as it is; otherwise its
//! rule gives it the batch dim, and a shared operand that must have one too is broadcast.

use std::collections::HashMap;

use cohort_dialects::builder::{
    Builder, Val, arguments_of, name_of, operands_of, region_with_block, result_of, results_of,
};
use melior::ir::{
    Attribute, OperationRef, Type, ValueLike,
    attribute::{ArrayAttribute, DenseI32ArrayAttribute, DenseI64ArrayAttribute, IntegerAttribute},
    operation::OperationLike,
};

use super::maps::{shift_groups, shift_map};
use super::shapes::Bounds;
use crate::ir::{
    TensorType, clone_op, clone_region, defining_op, integers, is_tensor, key, nested_ops,
    set_attribute, set_operand, set_type,
};
use crate::pass::{Failed, error};

#[derive(Clone, Copy)]
pub(super) enum Batched<'c> {
    Shared(Val<'c>),
    Rows(Val<'c>),
}

/// Writes the batched form of a block's operations, in order.
pub struct Batcher<'c> {
    pub builder: Builder<'c>,
    /// The number of rows, an `index`.
    rows: Val<'c>,
    /// The sizes of dims that differ by call.
    pub(super) bounds: Option<Bounds<'c>>,
    values: HashMap<usize, Batched<'c>>,
}

impl<'c> Batcher<'c> {
    pub fn new(builder: Builder<'c>, rows: Val<'c>) -> Self {
        Batcher {
            builder,
            rows,
            bounds: None,
            values: HashMap::new(),
        }
    }

    pub fn define_shared(&mut self, of: Val<'c>, shared: Val<'c>) {
        self.values.insert(key(of), Batched::Shared(shared));
    }

    pub fn define_rows(&mut self, of: Val<'c>, rows: Val<'c>) {
        self.values.insert(key(of), Batched::Rows(rows));
    }

    /// Writes the batched form of one operation.
    pub fn batch(&mut self, operation: OperationRef<'c, 'c>) -> Result<(), Failed> {
        self.builder.location = operation.location();
        let operands = self.operands(operation)?;
        let is_widened = name_of(operation) == "tensor.cast"
            && tensor_type(result_of(operation, 0), operation)?
                .shape
                .contains(&None);
        if is_widened {
            // What is the same for all instances gets a length like any other.
            let result = self.cast(operation)?;
            self.define_rows(result_of(operation, 0), result);
            return Ok(());
        }
        if operands
            .iter()
            .all(|operand| matches!(operand, Batched::Shared(_)))
        {
            return self.keep_shared(operation, &operands);
        }
        let name = name_of(operation);
        let result = match name.as_str() {
            "tensor.empty" => self.empty(result_of(operation, 0), operation)?,
            "linalg.fill" => self.fill(operation)?,
            "linalg.broadcast" => {
                self.shift_dimensions(operation, "dimensions", "linalg.broadcast")?
            }
            "linalg.reduce" => self.shift_dimensions(operation, "dimensions", "linalg.reduce")?,
            "linalg.transpose" => self.transpose(operation)?,
            "cfb.reduce_rows" => self.reduce_rows(operation)?,
            "linalg.generic" => return self.generic(operation),
            "linalg.vecmat" => self.vecmat(operation)?,
            "linalg.matvec" => self.matvec(operation)?,
            "linalg.matmul" => self.matmul(operation)?,
            "linalg.dot" => self.dot(operation)?,
            "tensor.cast" => self.cast(operation)?,
            "tensor.extract_slice" => self.extract_slice(operation)?,
            "tensor.concat" => self.concat(operation)?,
            "tensor.collapse_shape" | "tensor.expand_shape" => self.reshape(operation)?,
            "tensor.from_elements" => self.scalar_rows(operation)?,
            _ if name.starts_with("arith.") || name.starts_with("math.") => {
                self.elementwise(operation)?
            }
            _ => {
                return Err(error(
                    operation,
                    &format!("not supported yet: no batching rule for `{name}`"),
                ));
            }
        };
        self.define_rows(result_of(operation, 0), result);
        Ok(())
    }

    /// A value with the batch dim, broadcast if it is shared.
    pub fn rows_of(
        &mut self,
        value: Val<'c>,
        user: OperationRef<'c, 'c>,
    ) -> Result<Val<'c>, Failed> {
        match self.lookup(value, user)? {
            Batched::Rows(rows) => Ok(rows),
            Batched::Shared(shared) => Ok(self.broadcast(shared)),
        }
    }

    pub(super) fn lookup(
        &self,
        value: Val<'c>,
        user: OperationRef<'c, 'c>,
    ) -> Result<Batched<'c>, Failed> {
        self.values
            .get(&key(value))
            .copied()
            .ok_or_else(|| error(user, "uses a value from outside of its block"))
    }

    fn operands(&self, operation: OperationRef<'c, 'c>) -> Result<Vec<Batched<'c>>, Failed> {
        operands_of(operation)
            .into_iter()
            .map(|operand| self.lookup(operand, operation))
            .collect()
    }

    fn keep_shared(
        &mut self,
        operation: OperationRef<'c, 'c>,
        operands: &[Batched<'c>],
    ) -> Result<(), Failed> {
        let copy = self.builder.insert(clone_op(operation));
        for (index, operand) in operands.iter().enumerate() {
            if let Batched::Shared(value) = operand {
                set_operand(copy, index, *value);
            }
        }
        self.rebind_captures(operation, copy)?;
        for (old, new) in results_of(operation).into_iter().zip(results_of(copy)) {
            self.define_shared(old, new);
        }
        Ok(())
    }

    /// Rows like a value of the block, of no content.
    pub(super) fn empty(
        &mut self,
        like: Val<'c>,
        user: OperationRef<'c, 'c>,
    ) -> Result<Val<'c>, Failed> {
        let row = tensor_type(like, user)?;
        let sizes = self.sizes(like, user)?;
        let ty = row.batched().to_type();
        Ok(self.builder.value("tensor.empty", &sizes, ty))
    }

    /// The number of rows, then the sizes of the dims of a value that differ by call.
    fn sizes(&mut self, like: Val<'c>, user: OperationRef<'c, 'c>) -> Result<Vec<Val<'c>>, Failed> {
        let mut sizes = vec![self.rows];
        if tensor_type(like, user)?.shape.contains(&None) {
            let message = "not supported yet: a length that no operand of the kernel has";
            let bounds = self.bounds.as_mut().and_then(|bounds| bounds.of(like));
            sizes.extend(bounds.ok_or_else(|| error(user, message))?);
        }
        Ok(sizes)
    }

    fn broadcast(&self, shared: Val<'c>) -> Val<'c> {
        let ty = TensorType::of_value(shared).unwrap_or(TensorType {
            shape: vec![],
            element: shared.r#type(),
        });
        let shared = if is_tensor(shared.r#type()) {
            shared
        } else {
            self.builder
                .value("tensor.from_elements", &[shared], ty.to_type())
        };
        let init = self
            .builder
            .value("tensor.empty", &[self.rows], ty.batched().to_type());
        self.broadcast_along(shared, init, &[0])
    }

    /// `linalg.broadcast` into `init`, adding the given dims.
    fn broadcast_along(&self, value: Val<'c>, init: Val<'c>, dims: &[i64]) -> Val<'c> {
        let element = TensorType::of_value(init).map_or(value.r#type(), |ty| ty.element);
        let (region, block) = region_with_block(&[element, element], self.builder.location);
        let inner = Builder::at_end(self.builder.context(), block, self.builder.location);
        inner.op("linalg.yield", &arguments_of(block)[..1], &[], &[], vec![]);
        let dims = DenseI64ArrayAttribute::new(self.builder.context(), dims).into();
        result_of(
            self.builder.op(
                "linalg.broadcast",
                &[value, init],
                &[init.r#type()],
                &[("dimensions", dims)],
                vec![region],
            ),
            0,
        )
    }

    /// The destination of an operation: a fresh one where the original is, the same fill where it
    /// is filled, the value's rows otherwise.
    pub(super) fn destination(
        &mut self,
        value: Val<'c>,
        user: OperationRef<'c, 'c>,
    ) -> Result<Val<'c>, Failed> {
        if let Batched::Rows(rows) = self.lookup(value, user)? {
            return Ok(rows);
        }
        let producer = defining_op(value);
        match producer.map(name_of).as_deref() {
            Some("tensor.empty") => self.empty(value, user),
            Some("linalg.fill") => match producer {
                Some(fill) => self.fill(fill),
                None => self.rows_of(value, user),
            },
            _ => self.rows_of(value, user),
        }
    }

    /// A tensor whose shape is known as one whose lengths are operands of the kernel, or the other way
    /// round, where the lengths were found to be that.
    fn cast(&mut self, operation: OperationRef<'c, 'c>) -> Result<Val<'c>, Failed> {
        let rows = self.rows_of(operands_of(operation)[0], operation)?;
        let ty = tensor_type(result_of(operation, 0), operation)?.batched();
        Ok(self.builder.value("tensor.cast", &[rows], ty.to_type()))
    }

    fn elementwise(&mut self, operation: OperationRef<'c, 'c>) -> Result<Val<'c>, Failed> {
        let row = tensor_type(result_of(operation, 0), operation)?;
        let mut operands = Vec::new();
        for operand in operands_of(operation) {
            let same_shape = TensorType::of_value(operand).is_some_and(|ty| ty.shape == row.shape);
            if !same_shape {
                return Err(error(operation, "expected operands of the result's shape"));
            }
            operands.push(self.rows_of(operand, operation)?);
        }
        let attributes: Vec<_> = operation.attributes().collect();
        let copy = self.builder.op(
            &name_of(operation),
            &operands,
            &[row.batched().to_type()],
            &[],
            vec![],
        );
        for (name, attribute) in attributes {
            set_attribute(
                copy,
                name.as_string_ref().as_str().unwrap_or_default(),
                attribute,
            );
        }
        Ok(result_of(copy, 0))
    }

    /// `tensor.from_elements %s : tensor<f32>`: a host scalar's rows are that tensor already. Those of
    /// several are put side by side.
    fn scalar_rows(&mut self, operation: OperationRef<'c, 'c>) -> Result<Val<'c>, Failed> {
        let row = tensor_type(result_of(operation, 0), operation)?;
        let mut rows = Vec::new();
        for operand in operands_of(operation) {
            rows.push(self.rows_of(operand, operation)?);
        }
        Ok(self.side_by_side(&rows, &row))
    }

    /// One tensor a row of as many scalars a row.
    fn side_by_side(&self, scalars: &[Val<'c>], row: &TensorType<'c>) -> Val<'c> {
        let [Some(length), inner @ ..] = &row.shape[..] else {
            return scalars[0];
        };
        let part = TensorType {
            shape: inner.to_vec(),
            element: row.element,
        };
        let one = TensorType {
            shape: [&[Some(1)], inner].concat(),
            element: row.element,
        };
        let each = scalars.len() / (*length as usize).max(1);
        let parts: Vec<Val<'c>> = scalars
            .chunks(each.max(1))
            .map(|scalars| self.with_one(self.side_by_side(scalars, &part), &one))
            .collect();
        match parts[..] {
            [only] => only,
            _ => {
                let dim = IntegerAttribute::new(self.builder.ty("i64"), 1).into();
                let ty = row.batched().to_type();
                self.builder
                    .value_with("tensor.concat", &parts, ty, &[("dim", dim)])
            }
        }
    }

    /// Rows with a first dim of one entry, as those of `row` are.
    fn with_one(&self, value: Val<'c>, row: &TensorType<'c>) -> Val<'c> {
        let groups: Vec<Vec<usize>> = (0..row.rank())
            .map(|axis| match axis {
                0 => vec![0, 1],
                _ => vec![axis + 1],
            })
            .collect();
        let groups = self.builder.attr(&format!("{groups:?}"));
        let mut sizes = vec![dynamic()];
        sizes.extend(
            row.shape
                .iter()
                .map(|dim| dim.map_or(dynamic(), |n| n as i64)),
        );
        let sizes = DenseI64ArrayAttribute::new(self.builder.context(), &sizes).into();
        self.builder.value_with(
            "tensor.expand_shape",
            &[value, self.rows],
            row.batched().to_type(),
            &[("reassociation", groups), ("static_output_shape", sizes)],
        )
    }

    fn fill(&mut self, operation: OperationRef<'c, 'c>) -> Result<Val<'c>, Failed> {
        let row = tensor_type(result_of(operation, 0), operation)?;
        let init = self.empty(result_of(operation, 0), operation)?;
        Ok(match self.lookup(operands_of(operation)[0], operation)? {
            Batched::Rows(scalars) => {
                let dims: Vec<i64> = (1..=row.rank() as i64).collect();
                self.broadcast_along(scalars, init, &dims)
            }
            Batched::Shared(scalar) => self.named("linalg.fill", &[scalar], init),
        })
    }

    /// Rows of the shape of `like`, a value of the block.
    pub(super) fn expand(
        &mut self,
        value: Val<'c>,
        like: Val<'c>,
        groups: Attribute<'c>,
        user: OperationRef<'c, 'c>,
    ) -> Result<Val<'c>, Failed> {
        let row = tensor_type(like, user)?;
        let mut operands = vec![value];
        operands.extend(self.sizes(like, user)?);
        let mut sizes = vec![dynamic()];
        sizes.extend(
            row.shape
                .iter()
                .map(|dim| dim.map_or(dynamic(), |n| n as i64)),
        );
        let sizes = DenseI64ArrayAttribute::new(self.builder.context(), &sizes).into();
        Ok(self.builder.value_with(
            "tensor.expand_shape",
            &operands,
            row.batched().to_type(),
            &[("reassociation", groups), ("static_output_shape", sizes)],
        ))
    }

    /// `linalg.broadcast` and `linalg.reduce`: the same with every dim one further.
    fn shift_dimensions(
        &mut self,
        operation: OperationRef<'c, 'c>,
        attribute: &str,
        name: &str,
    ) -> Result<Val<'c>, Failed> {
        let operands = operands_of(operation);
        if operands.len() != 2 {
            return Err(error(
                operation,
                "not supported yet: a reduction of several values at once",
            ));
        }
        let input = self.rows_of(operands[0], operation)?;
        let init = self.destination(operands[1], operation)?;
        let dims: Vec<i64> = integers(operation, attribute)
            .into_iter()
            .map(|dim| dim + 1)
            .collect();
        let dims = DenseI64ArrayAttribute::new(self.builder.context(), &dims).into();
        let region = clone_region(operation, 0);
        let copy = self.builder.op(
            name,
            &[input, init],
            &[init.r#type()],
            &[(attribute, dims)],
            vec![region],
        );
        Ok(result_of(copy, 0))
    }

    fn transpose(&mut self, operation: OperationRef<'c, 'c>) -> Result<Val<'c>, Failed> {
        let operands = operands_of(operation);
        let input = self.rows_of(operands[0], operation)?;
        let init = self.destination(operands[1], operation)?;
        let mut permutation = vec![0];
        permutation.extend(
            integers(operation, "permutation")
                .into_iter()
                .map(|axis| axis + 1),
        );
        let permutation = DenseI64ArrayAttribute::new(self.builder.context(), &permutation).into();
        let region = clone_region(operation, 0);
        let copy = self.builder.op(
            "linalg.transpose",
            &[input, init],
            &[init.r#type()],
            &[("permutation", permutation)],
            vec![region],
        );
        Ok(result_of(copy, 0))
    }

    /// `cfb.reduce_rows`: each row folds the list that is its own.
    fn reduce_rows(&mut self, operation: OperationRef<'c, 'c>) -> Result<Val<'c>, Failed> {
        let operands = operands_of(operation);
        let list = self.rows_of(operands[0], operation)?;
        let init = self.destination(operands[1], operation)?;
        let region = clone_region(operation, 0);
        let ty = init.r#type();
        let copy = self
            .builder
            .op("cfb.reduce_rows", &[list, init], &[ty], &[], vec![region]);
        Ok(result_of(copy, 0))
    }

    /// Any `linalg.generic`: a new leading parallel dim, which shared inputs do not index.
    fn generic(&mut self, operation: OperationRef<'c, 'c>) -> Result<(), Failed> {
        let segments = int32s(operation, "operandSegmentSizes");
        let inputs = segments.first().copied().unwrap_or(0) as usize;
        let mut operands = Vec::new();
        let mut batched = Vec::new();
        for (index, operand) in operands_of(operation).into_iter().enumerate() {
            if index >= inputs {
                operands.push(self.destination(operand, operation)?);
                batched.push(true);
                continue;
            }
            match self.lookup(operand, operation)? {
                Batched::Rows(rows) => {
                    operands.push(rows);
                    batched.push(true);
                }
                Batched::Shared(shared) => {
                    operands.push(shared);
                    batched.push(false);
                }
            }
        }
        let copy = self.builder.insert(clone_op(operation));
        for (index, operand) in operands.iter().enumerate() {
            set_operand(copy, index, *operand);
        }
        for (result, init) in results_of(copy).into_iter().zip(&operands[inputs..]) {
            set_type(result, init.r#type());
        }
        self.shift_maps(copy, &batched)?;
        self.rebind_captures(operation, copy)?;
        for index in nested_ops(copy)
            .into_iter()
            .filter(|op| name_of(*op) == "linalg.index")
        {
            let dim = index
                .attribute("dim")
                .ok()
                .and_then(|dim| IntegerAttribute::try_from(dim).ok())
                .map_or(0, |dim| dim.value());
            let ty = Type::parse(self.builder.context(), "i64").unwrap_or(self.rows.r#type());
            set_attribute(index, "dim", IntegerAttribute::new(ty, dim + 1).into());
        }
        for (old, new) in results_of(operation).into_iter().zip(results_of(copy)) {
            self.define_rows(old, new);
        }
        Ok(())
    }

    /// What the body of an operation uses from outside of it is the copy's own, shared form.
    fn rebind_captures(
        &self,
        operation: OperationRef<'c, 'c>,
        copy: OperationRef<'c, 'c>,
    ) -> Result<(), Failed> {
        for (old, new) in nested_ops(operation).into_iter().zip(nested_ops(copy)) {
            for (index, operand) in operands_of(old).into_iter().enumerate() {
                match self.values.get(&key(operand)) {
                    Some(Batched::Shared(shared)) => set_operand(new, index, *shared),
                    Some(Batched::Rows(_)) => {
                        let message =
                            "not supported yet: a body that uses a row from outside of it";
                        return Err(error(old, message));
                    }
                    None => {}
                }
            }
        }
        Ok(())
    }

    fn shift_maps(&self, generic: OperationRef<'c, 'c>, batched: &[bool]) -> Result<(), Failed> {
        let refuse = || error(generic, "not supported yet: indexing maps of this form");
        let maps = generic.attribute("indexing_maps").ok().ok_or_else(refuse)?;
        let maps = ArrayAttribute::try_from(maps).map_err(|_| refuse())?;
        let shifted: Vec<Attribute<'c>> = (0..maps.len())
            .map(|index| {
                let map = maps.element(index).ok()?;
                let has_rows = batched.get(index).copied().unwrap_or(false);
                let text = shift_map(&map.to_string(), has_rows)?;
                Attribute::parse(self.builder.context(), &text)
            })
            .collect::<Option<_>>()
            .ok_or_else(refuse)?;
        let maps = ArrayAttribute::new(self.builder.context(), &shifted).into();
        set_attribute(generic, "indexing_maps", maps);
        let kinds = generic
            .attribute("iterator_types")
            .ok()
            .ok_or_else(refuse)?
            .to_string();
        let rest = kinds.trim_start_matches('[');
        let separator = if rest.starts_with(']') { "" } else { ", " };
        let kinds = format!("[#linalg.iterator_type<parallel>{separator}{rest}");
        let kinds = Attribute::parse(self.builder.context(), &kinds).ok_or_else(refuse)?;
        set_attribute(generic, "iterator_types", kinds);
        Ok(())
    }

    fn extract_slice(&mut self, operation: OperationRef<'c, 'c>) -> Result<Val<'c>, Failed> {
        let operands = operands_of(operation);
        if int32s(operation, "operandSegmentSizes")
            .iter()
            .enumerate()
            .any(|(segment, count)| [1, 3].contains(&segment) && *count > 0)
        {
            return Err(error(
                operation,
                "not supported yet: a slice whose bounds are computed",
            ));
        }
        let source = self.rows_of(operands[0], operation)?;
        let context = self.builder.context();
        let with_leading = |name: &str, leading: i64| -> Attribute<'c> {
            let mut values = vec![leading];
            values.extend(integers(operation, name));
            DenseI64ArrayAttribute::new(context, &values).into()
        };
        let row = tensor_type(result_of(operation, 0), operation)?;
        let sizes = self.sizes(result_of(operation, 0), operation)?;
        let segments = [1, 0, sizes.len() as i32, 0];
        let segments = DenseI32ArrayAttribute::new(context, &segments).into();
        let mut operands = vec![source];
        operands.extend(sizes);
        Ok(self.builder.value_with(
            "tensor.extract_slice",
            &operands,
            row.batched().to_type(),
            &[
                ("static_offsets", with_leading("static_offsets", 0)),
                ("static_sizes", with_leading("static_sizes", dynamic())),
                ("static_strides", with_leading("static_strides", 1)),
                ("operandSegmentSizes", segments),
            ],
        ))
    }

    fn concat(&mut self, operation: OperationRef<'c, 'c>) -> Result<Val<'c>, Failed> {
        let mut parts = Vec::new();
        for operand in operands_of(operation) {
            parts.push(self.rows_of(operand, operation)?);
        }
        let dim = operation
            .attribute("dim")
            .ok()
            .and_then(|dim| IntegerAttribute::try_from(dim).ok())
            .map_or(0, |dim| dim.value());
        let i64_type = self.builder.ty("i64");
        let row = tensor_type(result_of(operation, 0), operation)?;
        let dim = IntegerAttribute::new(i64_type, dim + 1).into();
        Ok(self.builder.value_with(
            "tensor.concat",
            &parts,
            row.batched().to_type(),
            &[("dim", dim)],
        ))
    }

    fn reshape(&mut self, operation: OperationRef<'c, 'c>) -> Result<Val<'c>, Failed> {
        let source = operands_of(operation)[0];
        let from = tensor_type(source, operation)?;
        let to = tensor_type(result_of(operation, 0), operation)?;
        let value = self.rows_of(source, operation)?;
        let groups = if from.rank() == 0 || to.rank() == 0 {
            // All dims of size one join the batch dim.
            let all: Vec<String> = (0..=from.rank().max(to.rank()))
                .map(|d| d.to_string())
                .collect();
            format!("[[{}]]", all.join(", "))
        } else {
            shift_groups(
                &operation
                    .attribute("reassociation")
                    .map_or(String::new(), |groups| groups.to_string()),
            )
        };
        let groups = self.builder.attr(&groups);
        if name_of(operation) == "tensor.expand_shape" {
            return self.expand(value, result_of(operation, 0), groups, operation);
        }
        Ok(self.builder.value_with(
            "tensor.collapse_shape",
            &[value],
            to.batched().to_type(),
            &[("reassociation", groups)],
        ))
    }
}

pub(super) fn tensor_type<'c>(
    value: Val<'c>,
    at: OperationRef<'c, 'c>,
) -> Result<TensorType<'c>, Failed> {
    TensorType::of_value(value).ok_or_else(|| error(at, "expected a ranked tensor"))
}

fn dynamic() -> i64 {
    // SAFETY: a pure function that returns MLIR's mark of a dynamic size.
    unsafe { mlir_sys::mlirShapedTypeGetDynamicSize() }
}

fn int32s(operation: OperationRef<'_, '_>, name: &str) -> Vec<i32> {
    let Ok(attribute) = operation.attribute(name) else {
        return vec![];
    };
    let Ok(array) = DenseI32ArrayAttribute::try_from(attribute) else {
        return vec![];
    };
    (0..array.len())
        .filter_map(|index| array.element(index).ok())
        .collect()
}
