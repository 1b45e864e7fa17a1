//! Tensor operations of one instance, as the rules of derivatives make them.

use cohort_dialects::builder::{Builder, Op, Val, arguments_of, region_with_block, result_of};
use cohort_dialects::keys::{self, Key};
use melior::ir::{
    Attribute, Type, ValueLike,
    attribute::{DenseI32ArrayAttribute, DenseI64ArrayAttribute, FloatAttribute},
};

use crate::level1::batch_blocks::named;
use crate::support::ir::TensorType;

/// A tensor's type and the lengths of its instance dims.
#[derive(Clone)]
pub struct Shape<'c> {
    pub ty: TensorType<'c>,
    pub lengths: Vec<Val<'c>>,
}

impl<'c> Shape<'c> {
    pub fn to_type(&self) -> Type<'c> {
        self.ty.to_type()
    }

    /// The length of an axis, if it is an instance dim.
    fn length(&self, axis: usize) -> Option<Val<'c>> {
        self.ty.shape[axis].is_none().then(|| {
            let before = self.ty.shape[..axis].iter();
            self.lengths[before.filter(|size| size.is_none()).count()]
        })
    }

    /// The axes of these numbers, in this order.
    pub fn pick(&self, axes: &[usize]) -> Shape<'c> {
        Shape {
            ty: TensorType {
                shape: axes.iter().map(|axis| self.ty.shape[*axis]).collect(),
                element: self.ty.element,
            },
            lengths: axes.iter().filter_map(|axis| self.length(*axis)).collect(),
        }
    }

    /// With another size of an axis.
    pub fn resized(&self, axis: usize, size: u64) -> Shape<'c> {
        let axes: Vec<usize> = (0..self.ty.rank()).filter(|own| *own != axis).collect();
        let lengths = self.pick(&axes).lengths;
        let mut ty = self.ty.clone();
        ty.shape[axis] = Some(size);
        Shape { ty, lengths }
    }
}

pub fn empty<'c>(b: &Builder<'c>, shape: &Shape<'c>) -> Val<'c> {
    b.tensor_empty(&shape.lengths, shape.to_type())
}

/// A tensor full of one f32.
pub fn full<'c>(b: &Builder<'c>, shape: &Shape<'c>, value: f32) -> Val<'c> {
    let element = shape.ty.element;
    let number: Attribute<'c> = FloatAttribute::new(b.context(), element, value.into()).into();
    let scalar = b.constant(number, element);
    fill(b, scalar, empty(b, shape))
}

pub fn fill<'c>(b: &Builder<'c>, scalar: Val<'c>, init: Val<'c>) -> Val<'c> {
    named(b, Op::LinalgFill, &[scalar], init)
}

/// `linalg.broadcast`, `linalg.transpose` or `linalg.reduce` with the named dims.
fn with_dims<'c>(
    b: &Builder<'c>,
    kind: Op,
    (attribute, dims): (Key<'_>, &[usize]),
    (value, init): (Val<'c>, Val<'c>),
    payload: impl Fn(&Builder<'c>, &[Val<'c>]) -> Val<'c>,
) -> Val<'c> {
    let element = TensorType::of_value(init).map_or(init.r#type(), |ty| ty.element);
    let (region, block) = region_with_block(&[element, element], b.location);
    let inner = Builder::at_end(b.context(), block, b.location);
    let made = payload(&inner, &arguments_of(block));
    inner.linalg_yield(&[made]);
    let dims: Vec<i64> = dims.iter().map(|dim| *dim as i64).collect();
    let dims = DenseI64ArrayAttribute::new(b.context(), &dims).into();
    let attributes = [(attribute, dims)];
    let ty = init.r#type();
    result_of(
        b.op(kind, &[value, init], &[ty], &attributes, vec![region]),
        0,
    )
}

/// Repeats a value along the axes `added` of the shape.
pub fn broadcast<'c>(
    b: &Builder<'c>,
    value: Val<'c>,
    shape: &Shape<'c>,
    added: &[usize],
) -> Val<'c> {
    if added.is_empty() {
        return value;
    }
    let init = empty(b, shape);
    let dims = (keys::DIMENSIONS, added);
    with_dims(b, Op::LinalgBroadcast, dims, (value, init), |_, args| {
        args[0]
    })
}

/// Axis `i` of the result is axis `permutation[i]` of the value, whose shape is given.
pub fn transpose<'c>(
    b: &Builder<'c>,
    value: Val<'c>,
    shape: &Shape<'c>,
    permutation: &[usize],
) -> Val<'c> {
    let init = empty(b, &shape.pick(permutation));
    let dims = (keys::PERMUTATION, permutation);
    with_dims(b, Op::LinalgTranspose, dims, (value, init), |_, args| {
        args[0]
    })
}

/// The sums over axes of a value of the given shape.
pub fn sum_over<'c>(b: &Builder<'c>, value: Val<'c>, shape: &Shape<'c>, axes: &[usize]) -> Val<'c> {
    let mut value = value;
    let mut kept: Vec<usize> = (0..shape.ty.rank()).collect();
    // One axis at a time, the last first, as the frontend reduces.
    for axis in axes.iter().rev() {
        kept.retain(|own| own != axis);
        let init = full(b, &shape.pick(&kept), 0.0);
        let dims = [*axis];
        let dims = (keys::DIMENSIONS, &dims[..]);
        value = with_dims(b, Op::LinalgReduce, dims, (value, init), |inner, args| {
            inner.addf(args[1], args[0])
        });
    }
    value
}

/// A product of a kind of `linalg` that starts at zero.
pub fn product<'c>(
    b: &Builder<'c>,
    kind: Op,
    left: Val<'c>,
    right: Val<'c>,
    shape: &Shape<'c>,
) -> Val<'c> {
    let init = full(b, shape, 0.0);
    named(b, kind, &[left, right], init)
}

/// The elements of a tensor along an axis, from `first` on, as many as the shape has.
pub fn slice<'c>(
    b: &Builder<'c>,
    value: Val<'c>,
    shape: &Shape<'c>,
    axis: usize,
    first: u64,
) -> Val<'c> {
    let rank = shape.ty.rank();
    // SAFETY: a pure function that returns MLIR's mark of a dynamic size.
    let dynamic = unsafe { mlir_sys::mlirShapedTypeGetDynamicSize() };
    let offsets: Vec<i64> = (0..rank)
        .map(|own| if own == axis { first as i64 } else { 0 })
        .collect();
    let sizes: Vec<i64> = (shape.ty.shape.iter())
        .map(|size| size.map_or(dynamic, |size| size as i64))
        .collect();
    let list = |numbers: &[i64]| DenseI64ArrayAttribute::new(b.context(), numbers).into();
    let mut operands = vec![value];
    operands.extend(&shape.lengths);
    let counts = [1, 0, shape.lengths.len() as i32, 0];
    let attributes = [
        (keys::STATIC_OFFSETS, list(&offsets)),
        (keys::STATIC_SIZES, list(&sizes)),
        (keys::STATIC_STRIDES, list(&vec![1; rank])),
        (
            keys::OPERAND_SEGMENT_SIZES,
            DenseI32ArrayAttribute::new(b.context(), &counts).into(),
        ),
    ];
    b.value_with(
        Op::TensorExtractSlice,
        &operands,
        shape.to_type(),
        &attributes,
    )
}

/// Tensors one behind another along an axis.
pub fn concat<'c>(b: &Builder<'c>, parts: &[Val<'c>], shape: &Shape<'c>, axis: usize) -> Val<'c> {
    if let [part] = parts {
        return *part;
    }
    b.concat(axis, parts, shape.to_type())
}

/// Parts of a value side by side along an axis, with zeros for the rest of it.
pub fn padded<'c>(
    b: &Builder<'c>,
    shape: &Shape<'c>,
    axis: usize,
    parts: &[(usize, u64, u64, Val<'c>)],
) -> Val<'c> {
    let end = shape.ty.shape[axis].unwrap_or(0);
    let mut all = Vec::new();
    let mut next = 0;
    let fill_up = |all: &mut Vec<Val<'c>>, next: u64, first: u64| {
        if first > next {
            all.push(full(b, &shape.resized(axis, first - next), 0.0));
        }
    };
    for (_, first, size, part) in parts {
        fill_up(&mut all, next, *first);
        all.push(*part);
        next = first + size;
    }
    fill_up(&mut all, next, end);
    concat(b, &all, shape, axis)
}
