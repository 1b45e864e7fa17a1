//! Upstream's named operations on tensors: each with the payload region and the `outs` it needs.

use cohort_dialects::attributes::MapResult;
use cohort_dialects::builder::{
    Builder, CmpfPredicate, Op, Val, arguments_of, region_with_block, result_of, results_of,
};
use cohort_dialects::keys::{self, Key};
use cohort_frontend::program::{Binary, Dim, Elem, Literal};
use melior::ir::{
    Attribute, Region, Type, ValueLike,
    attribute::{DenseI32ArrayAttribute, DenseI64ArrayAttribute},
    r#type::{RankedTensorType, ShapedTypeLike},
};

use crate::dims::Dims;
use crate::numbers;
use crate::types::{Types, known};

/// The element types of a payload's arguments and what it makes of them.
type Payload<'p, 'c> = &'p dyn Fn(Builder<'c>, &[Val<'c>]) -> Vec<Val<'c>>;

fn region<'c>(at: Builder<'c>, arguments: &[Type<'c>], payload: Payload<'_, 'c>) -> Region<'c> {
    let (region, block) = region_with_block(arguments, at.location);
    let inside = Builder::at_end(at.context(), block, at.location);
    let values = payload(inside, &arguments_of(block));
    inside.linalg_yield(&values);
    region
}

fn indices<'c>(at: Builder<'c>, values: &[usize]) -> Attribute<'c> {
    let values: Vec<i64> = values.iter().map(|value| *value as i64).collect();
    DenseI64ArrayAttribute::new(at.context(), &values).into()
}

fn segments<'c>(at: Builder<'c>, inputs: i32, outputs: i32) -> (Key<'static>, Attribute<'c>) {
    let sizes = DenseI32ArrayAttribute::new(at.context(), &[inputs, outputs]);
    (keys::OPERAND_SEGMENT_SIZES, sizes.into())
}

/// A tensor every element of which is the scalar.
pub fn fill<'c>(at: Builder<'c>, scalar: Val<'c>, empty: Val<'c>) -> Val<'c> {
    let body = region(at, &[scalar.r#type(); 2], &|_, args| vec![args[0]]);
    let ty = empty.r#type();
    let segments = [segments(at, 1, 1)];
    let operands = [scalar, empty];
    result_of(
        at.op(Op::LinalgFill, &operands, &[ty], &segments, vec![body]),
        0,
    )
}

/// What a payload makes of the elements of tensors of one shape.
pub fn elementwise<'c>(
    at: Builder<'c>,
    inputs: &[Val<'c>],
    empty: Val<'c>,
    payload: &dyn Fn(Builder<'c>, &[Val<'c>]) -> Val<'c>,
) -> Val<'c> {
    let operands = [inputs, &[empty]].concat();
    let tensors: Vec<_> = operands
        .iter()
        .filter_map(|operand| RankedTensorType::try_from(operand.r#type()).ok())
        .collect();
    let elements: Vec<Type<'c>> = tensors.iter().map(|tensor| tensor.element()).collect();
    let rank = tensors.last().map_or(0, |tensor| tensor.rank());
    let body = region(at, &elements, &|inside, args| {
        vec![payload(inside, &args[..inputs.len()])]
    });
    let maps = vec![all_but(rank, None); operands.len()];
    let attributes = [
        (keys::INDEXING_MAPS, at.indexing_maps(rank, &maps)),
        (keys::ITERATOR_TYPES, at.iterators(&vec![false; rank])),
        segments(at, inputs.len() as i32, 1),
    ];
    let types = [empty.r#type()];
    result_of(
        at.op(
            Op::LinalgGeneric,
            &operands,
            &types,
            &attributes,
            vec![body],
        ),
        0,
    )
}

/// Tensor operations of one element type.
#[derive(Clone, Copy)]
pub struct Tensors<'a, 'c> {
    pub at: Builder<'c>,
    pub types: Types<'a, 'c>,
    pub dims: &'a Dims<'c>,
    pub elem: Elem,
}

impl<'c> Tensors<'_, 'c> {
    fn element(&self) -> Type<'c> {
        self.types.elem(self.elem)
    }

    pub fn empty(&self, shape: &[Dim]) -> Val<'c> {
        let sizes = self.dims.sizes(self.at, shape);
        let ty = self.types.tensor(self.elem, shape);
        self.at.tensor_empty(&sizes, ty)
    }

    /// A tensor of one number, as the `outs` of an operation that accumulates.
    pub fn filled(&self, shape: &[Dim], literal: Literal) -> Val<'c> {
        let scalar = numbers::constant(self.at, self.element(), literal);
        self.fill(shape, scalar)
    }

    /// A tensor every element of which is this attribute: a constant where the shape is known.
    pub fn splat(&self, shape: &[Dim], element: Attribute<'c>) -> Val<'c> {
        if shape.iter().all(|dim| known(dim).is_some()) {
            let ty = self.types.tensor(self.elem, shape);
            return numbers::splat(self.at, ty, element);
        }
        let scalar = numbers::splat(self.at, self.element(), element);
        self.fill(shape, scalar)
    }

    fn fill(&self, shape: &[Dim], scalar: Val<'c>) -> Val<'c> {
        let empty = self.empty(shape);
        fill(self.at, scalar, empty)
    }

    /// Repeats a value along the axes of `shape` in `added`; its own axes are the others.
    pub fn broadcast(&self, value: Val<'c>, shape: &[Dim], added: &[usize]) -> Val<'c> {
        let at = self.at;
        let empty = self.empty(shape);
        let body = region(at, &[self.element(); 2], &|_, args| vec![args[0]]);
        let dimensions = [(keys::DIMENSIONS, indices(at, added))];
        let ty = empty.r#type();
        result_of(
            at.op(
                Op::LinalgBroadcast,
                &[value, empty],
                &[ty],
                &dimensions,
                vec![body],
            ),
            0,
        )
    }

    /// Axis `i` of the result, whose shape is given, is axis `permutation[i]` of the value.
    pub fn transpose(&self, value: Val<'c>, shape: &[Dim], permutation: &[usize]) -> Val<'c> {
        let at = self.at;
        let empty = self.empty(shape);
        let body = region(at, &[self.element(); 2], &|_, args| vec![args[0]]);
        let permutation = [(keys::PERMUTATION, indices(at, permutation))];
        let ty = empty.r#type();
        result_of(
            at.op(
                Op::LinalgTranspose,
                &[value, empty],
                &[ty],
                &permutation,
                vec![body],
            ),
            0,
        )
    }

    /// The body of a sum of products.
    fn multiply_and_add(&self) -> Region<'c> {
        region(self.at, &[self.element(); 3], &|inside, args| {
            let apply = |op, left, right| numbers::binary(inside, op, self.elem, left, right);
            let product = apply(Binary::Mul, args[0], args[1]);
            vec![apply(Binary::Add, args[2], product)]
        })
    }

    /// A product of this kind: `linalg.dot`, `vecmat`, `matvec` or `matmul`.
    pub fn product(&self, kind: Op, lhs: Val<'c>, rhs: Val<'c>, shape: &[Dim]) -> Val<'c> {
        let at = self.at;
        let zeros = self.filled(shape, numbers::zero(self.elem));
        let body = self.multiply_and_add();
        let ty = zeros.r#type();
        result_of(
            at.op(
                kind,
                &[lhs, rhs, zeros],
                &[ty],
                &[segments(at, 2, 1)],
                vec![body],
            ),
            0,
        )
    }

    /// Sums of products over the last loop; the others are the result's dims. `factors` are the dims of
    /// either side, as loops.
    pub fn contraction(
        &self,
        sides: [Val<'c>; 2],
        factors: [Vec<usize>; 2],
        shape: &[Dim],
    ) -> Val<'c> {
        let at = self.at;
        let zeros = self.filled(shape, numbers::zero(self.elem));
        let body = self.multiply_and_add();
        let loops = shape.len() + 1;
        let kept: Vec<usize> = (0..shape.len()).collect();
        let map = |dims: &Vec<usize>| -> Vec<MapResult> {
            let dims = dims.iter().copied();
            dims.map(MapResult::Loop).collect()
        };
        let maps = [&factors[0], &factors[1], &kept].map(map);
        let attributes = [
            (keys::INDEXING_MAPS, at.indexing_maps(loops, &maps)),
            (
                keys::ITERATOR_TYPES,
                at.iterators(&folding(loops, shape.len())),
            ),
            segments(at, 2, 1),
        ];
        let ty = zeros.r#type();
        let operands = [sides[0], sides[1], zeros];
        result_of(
            at.op(Op::LinalgGeneric, &operands, &[ty], &attributes, vec![body]),
            0,
        )
    }

    /// Combines the elements along `axis`, which leaves the shape.
    pub fn reduce(
        &self,
        combine: Binary,
        neutral: Literal,
        value: Val<'c>,
        shape: &[Dim],
        axis: usize,
    ) -> Val<'c> {
        let at = self.at;
        let init = self.filled(shape, neutral);
        let body = region(at, &[self.element(); 2], &|inside, args| {
            vec![numbers::binary(
                inside, combine, self.elem, args[1], args[0],
            )]
        });
        let dimensions = [(keys::DIMENSIONS, indices(at, &[axis]))];
        let ty = init.r#type();
        result_of(
            at.op(
                Op::LinalgReduce,
                &[value, init],
                &[ty],
                &dimensions,
                vec![body],
            ),
            0,
        )
    }

    /// The index of the first largest element along `axis`. A NaN is larger than nothing; where all
    /// are NaN the index is 0.
    pub fn argmax(&self, value: Val<'c>, from: &[Dim], axis: usize) -> Val<'c> {
        let at = self.at;
        let shape = without(from, axis);
        // A NaN to begin with loses against any number, even the least.
        let least = match self.elem {
            Elem::F32 => Literal::F32(f64::NAN),
            Elem::I32 => Literal::I32(i32::MIN),
            Elem::Bool => Literal::Bool(false),
        };
        let best = self.filled(&shape, least);
        let integers = Tensors {
            elem: Elem::I32,
            ..*self
        };
        let index = integers.filled(&shape, Literal::I32(0));
        let arguments = [self.element(), self.element(), integers.element()];
        let body = region(at, &arguments, &|inside, args| {
            let wins = self.is_larger(inside, args[0], args[1]);
            let position = place(inside, axis, integers.element());
            vec![
                numbers::select(inside, wins, args[0], args[1]),
                numbers::select(inside, wins, position, args[2]),
            ]
        });
        let rank = from.len();
        let kept = all_but(rank, Some(axis));
        let maps = [all_but(rank, None), kept.clone(), kept];
        let attributes = [
            (keys::INDEXING_MAPS, at.indexing_maps(rank, &maps)),
            (keys::ITERATOR_TYPES, at.iterators(&folding(rank, axis))),
            segments(at, 1, 2),
        ];
        let types = [best.r#type(), index.r#type()];
        results_of(at.op(
            Op::LinalgGeneric,
            &[value, best, index],
            &types,
            &attributes,
            vec![body],
        ))[1]
    }

    /// Each element is its own index along `axis`, which no constant can say.
    pub fn indices(&self, shape: &[Dim], axis: usize) -> Val<'c> {
        let at = self.at;
        let init = self.empty(shape);
        let body = region(at, &[self.element()], &|inside, _| {
            vec![place(inside, axis, self.element())]
        });
        let rank = shape.len();
        let attributes = [
            (
                keys::INDEXING_MAPS,
                at.indexing_maps(rank, &[all_but(rank, None)]),
            ),
            (keys::ITERATOR_TYPES, at.iterators(&vec![false; rank])),
            segments(at, 0, 1),
        ];
        let ty = init.r#type();
        result_of(
            at.op(Op::LinalgGeneric, &[init], &[ty], &attributes, vec![body]),
            0,
        )
    }

    fn is_larger(&self, at: Builder<'c>, value: Val<'c>, best: Val<'c>) -> Val<'c> {
        if self.elem != Elem::F32 {
            return numbers::binary(at, Binary::Gt, self.elem, value, best);
        }
        let is_number = at.cmpf(CmpfPredicate::Ord, value, value);
        let beats = at.cmpf(CmpfPredicate::Ult, best, value);
        numbers::binary(at, Binary::And, Elem::Bool, is_number, beats)
    }
}

/// The index along an axis, in the body of an operation.
fn place<'c>(inside: Builder<'c>, axis: usize, ty: Type<'c>) -> Val<'c> {
    let dim = [(keys::DIM, inside.i64_attr(axis as i64))];
    let index = Type::index(inside.context());
    let place = inside.value_with(Op::LinalgIndex, &[], index, &dim);
    inside.index_cast(place, ty)
}

/// A shape less one axis.
pub fn without(shape: &[Dim], axis: usize) -> Vec<Dim> {
    let mut rest = shape.to_vec();
    rest.remove(axis);
    rest
}

/// All loops in order, but for one where it is given.
fn all_but(loops: usize, axis: Option<usize>) -> Vec<MapResult> {
    let kept = (0..loops).filter(|number| Some(*number) != axis);
    kept.map(MapResult::Loop).collect()
}

/// One loop folds, the others do not.
fn folding(loops: usize, axis: usize) -> Vec<bool> {
    (0..loops).map(|number| number == axis).collect()
}
