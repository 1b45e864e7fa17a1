//! Reads a kernel's body: every value gets a slot, every operation what is needed to compute it.

use crate::support::dim_equality::reassociation;
use std::collections::HashMap;

use cohort_dialects::builder::{
    Op, Val, arguments_of, name_of, operands_of, operations_of, results_of,
};
use cohort_dialects::keys::{self, Key};
use cohort_dialects::shape::Shape;
use cohort_dialects::types::rows_tensor;
use melior::ir::{
    AffineExpr, BlockRef, OperationRef, Type, TypeLike, ValueLike, attribute::IntegerAttribute,
    operation::OperationLike,
};

use super::scalars::{Operation, Scalar, Widths, operation};
use crate::kernel::rows::constants::bits_of;
use crate::kernel::rows::maps::{MapResult, indexing_maps};
use crate::support::dims::length_names;
use crate::support::ir::{
    TensorType, affine_map, blocks_of, elem_of, elements_of, global_of, integer_attribute,
    integers, key,
};

/// The number of a value.
pub type Slot = usize;

pub struct Kernel {
    pub slots: usize,
    /// The slot of the number of entries.
    pub entries: Slot,
    pub arguments: Vec<Argument>,
    pub body: Block,
}

/// One of the kernel's operands.
pub struct Argument {
    pub slot: Slot,
    pub kind: ArgumentKind,
    pub is_used: bool,
}

pub enum ArgumentKind {
    /// Numbers; the first dim counts entries.
    Numbers(Vec<Length>),
    Length,
    Lists,
}

/// How long a dim of an operand is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Length {
    Entries,
    Known(usize),
    /// As the operand of this number among the lengths says.
    Given(usize),
}

pub struct Block {
    pub arguments: Vec<Slot>,
    pub steps: Vec<Step>,
    /// What it ends with.
    pub results: Vec<Slot>,
}

pub struct Step {
    pub code: Code,
    pub operands: Vec<Slot>,
    pub results: Vec<Slot>,
}

pub enum Code {
    Constant(Scalar),
    Dense(super::Tensor),
    Param(String),
    /// On numbers, or on the elements of tensors.
    Elements(Operation, Widths),
    /// Of this shape, with an operand for each `None`.
    Empty(Vec<Option<u64>>),
    /// The same, full of the first operand.
    Splat(Vec<Option<u64>>),
    FromElements(Vec<usize>),
    Dim,
    /// The elements again, in another shape; dims in groups become one, or one dim becomes a group.
    Collapse(Vec<Vec<usize>>),
    Expand(Vec<Option<u64>>),
    Cast,
    ExtractSlice(Slice),
    InsertSlice(Slice),
    Extract,
    Concat(usize),
    /// `affine.apply`, of dims and then symbols.
    Affine(Affine),
    Loops(Loops),
    /// The index of a loop around.
    LoopIndex(usize),
    ReduceRows(Block),
}

/// Which part of a tensor; `None` is the next operand.
pub struct Slice {
    pub offsets: Vec<Option<u64>>,
    pub sizes: Vec<Option<u64>>,
    pub strides: Vec<Option<u64>>,
    /// The dims that the part has itself; the others are of length 1 and left out.
    pub kept: Vec<bool>,
}

/// A `linalg.generic`.
pub struct Loops {
    pub maps: Vec<Vec<MapResult>>,
    pub inputs: usize,
    pub loops: usize,
    pub body: Block,
    /// Whether the body is `outs + ins0 * ins1`.
    pub multiplies_and_adds: bool,
}

pub enum Affine {
    Operand(usize),
    Constant(i64),
    Of(fn(i64, i64) -> i64, Box<[Affine; 2]>),
}

/// Reads a kernel, or says what of it is not interpreted.
pub fn read<'c>(kernel: OperationRef<'c, 'c>) -> Result<Kernel, String> {
    let blocks = blocks_of(kernel);
    let body = *blocks.first().ok_or("it has no body")?;
    let lengths = length_names(kernel);
    let mut reader = Reader::default();
    let arguments = arguments_of(body);
    let (entries, operands) = arguments
        .split_first()
        .ok_or("its first argument is not its number of entries")?;
    let entries = reader.slot(*entries);
    let operands: Result<Vec<_>, String> = operands
        .iter()
        .map(|operand| {
            Ok(Argument {
                slot: reader.slot(*operand),
                kind: argument_kind(operand.r#type(), &lengths)?,
                is_used: !crate::support::ir::users_of(*operand).is_empty(),
            })
        })
        .collect();
    let body = reader.block(body)?;
    Ok(Kernel {
        slots: reader.slots.len(),
        entries,
        arguments: operands?,
        body,
    })
}

fn argument_kind(ty: Type<'_>, lengths: &[String]) -> Result<ArgumentKind, String> {
    if rows_tensor(ty).is_some() {
        return Ok(ArgumentKind::Lists);
    }
    let tensor = TensorType::of(ty).ok_or_else(|| format!("an operand of type `{ty}`"))?;
    if tensor.element.is_index() {
        return Ok(ArgumentKind::Length);
    }
    let names = Shape::of_type(ty).map(|shape| shape.dims);
    let dims = tensor.shape.iter().enumerate().map(|(axis, dim)| {
        if let Some(known) = dim {
            return Ok(Length::Known(*known as usize));
        }
        if axis == 0 {
            return Ok(Length::Entries);
        }
        let name = names.as_ref().and_then(|dims| dims[axis].name.as_ref());
        let position = name.and_then(|name| lengths.iter().position(|length| length == name));
        position
            .map(Length::Given)
            .ok_or_else(|| format!("a dim of `{ty}` whose length has no name"))
    });
    Ok(ArgumentKind::Numbers(dims.collect::<Result<_, String>>()?))
}

fn known_shape(ty: Type<'_>) -> Result<Vec<usize>, String> {
    let shape = TensorType::of(ty).and_then(|tensor| {
        let dims = tensor.shape.iter().map(|dim| dim.map(|dim| dim as usize));
        dims.collect::<Option<Vec<usize>>>()
    });
    shape.ok_or_else(|| format!("`{ty}`, whose shape is not known"))
}

#[derive(Default)]
struct Reader {
    slots: HashMap<usize, Slot>,
}

impl Reader {
    fn slot(&mut self, value: Val<'_>) -> Slot {
        let next = self.slots.len();
        *self.slots.entry(key(value)).or_insert(next)
    }

    fn block<'c>(&mut self, block: BlockRef<'c, 'c>) -> Result<Block, String> {
        let arguments = arguments_of(block);
        let arguments = arguments.into_iter().map(|argument| self.slot(argument));
        let arguments = arguments.collect();
        let operations = operations_of(block);
        let (end, operations) = operations.split_last().ok_or("a block without an end")?;
        let mut steps = Vec::with_capacity(operations.len());
        for operation in operations {
            steps.push(Step {
                code: self.code(*operation)?,
                operands: self.all(operands_of(*operation)),
                results: self.all(results_of(*operation)),
            });
        }
        Ok(Block {
            arguments,
            steps,
            results: self.all(operands_of(*end)),
        })
    }

    fn all(&mut self, values: Vec<Val<'_>>) -> Vec<Slot> {
        values.into_iter().map(|value| self.slot(value)).collect()
    }

    fn code<'c>(&mut self, op: OperationRef<'c, 'c>) -> Result<Code, String> {
        let unknown = || format!("`{}` is not interpreted", name_of(op));
        let result = results_of(op).first().map(|result| result.r#type());
        let shape = || {
            let tensor = result.and_then(TensorType::of);
            tensor.map(|tensor| tensor.shape).ok_or_else(unknown)
        };
        Ok(match Op::of(op) {
            Some(Op::ArithConstant) => constant(op).ok_or_else(unknown)?,
            Some(Op::MlProgramGlobalLoadConst) => Code::Param(global_of(op).ok_or_else(unknown)?),
            Some(Op::TensorEmpty) => Code::Empty(shape()?),
            Some(Op::TensorSplat) => Code::Splat(shape()?),
            Some(Op::TensorFromElements) => {
                Code::FromElements(known_shape(result.ok_or_else(unknown)?)?)
            }
            Some(Op::TensorDim) => Code::Dim,
            Some(Op::TensorCast | Op::CfbWiden) => Code::Cast,
            Some(Op::TensorExtract) => Code::Extract,
            Some(Op::TensorCollapseShape) => Code::Collapse(reassociation(op)),
            Some(Op::TensorExpandShape) => Code::Expand(numbers(op, keys::STATIC_OUTPUT_SHAPE)),
            Some(Op::TensorExtractSlice) => {
                Code::ExtractSlice(slice(op, &shape()?).ok_or_else(unknown)?)
            }
            Some(Op::TensorInsertSlice) => {
                let part = operands_of(op).first().map(|part| part.r#type());
                let part = part.and_then(TensorType::of).ok_or_else(unknown)?;
                Code::InsertSlice(slice(op, &part.shape).ok_or_else(unknown)?)
            }
            Some(Op::TensorConcat) => {
                Code::Concat(integer_attribute(op, keys::DIM).ok_or_else(unknown)? as usize)
            }
            Some(Op::AffineApply) => Code::Affine(affine(op).ok_or_else(unknown)?),
            Some(Op::LinalgGeneric) => Code::Loops(
                self.loops(op)
                    .map_err(|problem| problem.unwrap_or_else(unknown))?,
            ),
            Some(Op::LinalgIndex) => {
                Code::LoopIndex(integer_attribute(op, keys::DIM).ok_or_else(unknown)? as usize)
            }
            Some(Op::CfbReduceRows) => {
                let body = blocks_of(op).first().copied().ok_or_else(unknown)?;
                Code::ReduceRows(self.block(body)?)
            }
            _ => {
                let predicate = integer_attribute(op, keys::PREDICATE);
                let of = Op::of(op)
                    .and_then(|kind| operation(kind, predicate))
                    .ok_or_else(unknown)?;
                let first = operands_of(op).first().map(|first| first.r#type());
                let widths = Widths {
                    from: first.and_then(bits).ok_or_else(unknown)?,
                    to: result.and_then(bits).ok_or_else(unknown)?,
                };
                Code::Elements(of, widths)
            }
        })
    }

    /// An error without a text means that the form is not known.
    fn loops<'c>(&mut self, op: OperationRef<'c, 'c>) -> Result<Loops, Option<String>> {
        let maps = indexing_maps(op).ok_or(None)?;
        let kinds = op.attribute(&keys::ITERATOR_TYPES).map_err(|_| None)?;
        let body = blocks_of(op).first().copied().ok_or(None)?;
        Ok(Loops {
            inputs: maps.len().checked_sub(op.result_count()).ok_or(None)?,
            maps,
            loops: elements_of(kinds).len(),
            multiplies_and_adds: multiplies_and_adds(body),
            body: self.block(body).map_err(Some)?,
        })
    }
}

/// Whether a body is `^bb0(%a, %b, %sum): %p = mulf %a, %b; %s = addf %sum, %p; yield %s`.
fn multiplies_and_adds<'c>(body: BlockRef<'c, 'c>) -> bool {
    let (arguments, operations) = (arguments_of(body), operations_of(body));
    let ([a, b, sum], [multiply, add, end]) = (&arguments[..], &operations[..]) else {
        return false;
    };
    let reads = |op: OperationRef<'c, 'c>, values: &[Val<'c>]| {
        let operands = operands_of(op);
        operands.len() == values.len()
            && operands.iter().zip(values).all(|(x, y)| key(*x) == key(*y))
    };
    Op::ArithMulf.is(*multiply)
        && Op::ArithAddf.is(*add)
        && reads(*multiply, &[*a, *b])
        && reads(*add, &[*sum, results_of(*multiply)[0]])
        && reads(*end, &[results_of(*add)[0]])
}

/// Bits of a number, or of a tensor's elements.
fn bits(ty: Type<'_>) -> Option<u32> {
    let element = TensorType::of(ty).map_or(ty, |tensor| tensor.element);
    if element.is_index() {
        return Some(64);
    }
    // SAFETY: the type is alive and is asked for its kind before its width is read.
    unsafe {
        let raw = element.to_raw();
        if mlir_sys::mlirTypeIsAInteger(raw) {
            return Some(mlir_sys::mlirIntegerTypeGetWidth(raw));
        }
        mlir_sys::mlirTypeIsAF32(raw).then_some(32)
    }
}

fn constant(op: OperationRef<'_, '_>) -> Option<Code> {
    let value = op.attribute(&keys::VALUE).ok()?;
    let result = *results_of(op).first()?;
    let Some(tensor) = TensorType::of(result.r#type()) else {
        return Some(Code::Constant(match IntegerAttribute::try_from(value) {
            Ok(integer) => Scalar::Int(match bits(result.r#type())? {
                1 => i64::from(integer.value() != 0),
                _ => integer.value(),
            }),
            Err(_) => super::number(elem_of(result.r#type())?, *bits_of(value)?.0.first()?),
        }));
    };
    let shape = known_shape(result.r#type()).ok()?;
    let elem = elem_of(tensor.element)?;
    let (bits, is_splat) = bits_of(value)?;
    let elements: Vec<Scalar> = bits
        .into_iter()
        .map(|bits| super::number(elem, bits))
        .collect();
    let elements = match is_splat {
        true => vec![*elements.first()?; shape.iter().product()],
        false => elements,
    };
    Some(Code::Dense(super::Tensor { shape, elements }))
}

/// Numbers of an attribute, of which some are operands.
fn numbers(op: OperationRef<'_, '_>, name: Key<'_>) -> Vec<Option<u64>> {
    let each = integers(op, name).into_iter();
    each.map(|number| u64::try_from(number).ok()).collect()
}

fn slice(op: OperationRef<'_, '_>, part: &[Option<u64>]) -> Option<Slice> {
    let sizes = numbers(op, keys::STATIC_SIZES);
    // The dims that are left out are those of length 1 that the part's type cannot have.
    let mut dims = part.iter().peekable();
    let kept: Vec<bool> = sizes
        .iter()
        .map(|size| dims.next_if(|dim| *dim == size).is_some())
        .collect();
    let all = dims.next().is_none();
    let left_out_are_ones =
        (kept.iter().zip(&sizes)).all(|(is_kept, size)| *is_kept || *size == Some(1));
    (all && left_out_are_ones).then(|| Slice {
        offsets: numbers(op, keys::STATIC_OFFSETS),
        strides: numbers(op, keys::STATIC_STRIDES),
        sizes,
        kept,
    })
}

fn affine(op: OperationRef<'_, '_>) -> Option<Affine> {
    let map = affine_map(op.attribute(&keys::MAP).ok()?)?;
    let only = (map.result_count() == 1).then(|| map.result(0).ok())?;
    expression(only?, map.dim_count())
}

fn expression(of: AffineExpr<'_>, dims: usize) -> Option<Affine> {
    if of.is_dim() {
        return Some(Affine::Operand(of.dim_position()));
    }
    if of.is_symbol() {
        return Some(Affine::Operand(dims + of.symbol_position()));
    }
    if of.is_constant() {
        return Some(Affine::Constant(of.constant_value()));
    }
    let apply: fn(i64, i64) -> i64 = match () {
        () if of.is_add() => i64::wrapping_add,
        () if of.is_mul() => i64::wrapping_mul,
        () if of.is_floor_div() => |a, b| a.div_euclid(b.max(1)),
        () if of.is_mod() => |a, b| a.rem_euclid(b.max(1)),
        () if of.is_ceil_div() => |a, b| -(-a).div_euclid(b.max(1)),
        () => return None,
    };
    let sides = [expression(of.lhs(), dims)?, expression(of.rhs(), dims)?];
    Some(Affine::Of(apply, Box::new(sides)))
}
