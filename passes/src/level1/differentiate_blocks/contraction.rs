//! Sums of products over loops: any product that is not one of vectors and matrices.
//!
//! A loop of one side, of the other, or of both runs along each dim of the result, and one loop of both
//! is summed over. The cotangent of a side is such a sum again, of the result's cotangent and the other
//! side, over the loops that the side does not have.

use cohort_dialects::attributes::MapResult;
use cohort_dialects::builder::{
    Builder, Op, Val, arguments_of, operands_of, region_with_block, result_of,
};
use cohort_dialects::keys;
use melior::ir::{OperationRef, ValueLike};

use super::emit::{Shape, broadcast, full, sum_over, transpose};
use super::rules::{Backward, NoRule, Rule};
use super::sites::Site;
use crate::support::dim_equality::{Loops, loops_of};
use crate::support::ir::{TensorType, defining_op, key, nested_ops};

/// A value and the loop that each of its axes runs along.
#[derive(Clone)]
struct Factor<'c> {
    value: Val<'c>,
    shape: Shape<'c>,
    loops: Vec<usize>,
}

impl<'c> Backward<'c> {
    pub(super) fn contraction(
        &mut self,
        operation: OperationRef<'c, 'c>,
        result: Val<'c>,
        g: Val<'c>,
    ) -> Rule {
        let no_rule = || NoRule("`linalg.generic`".to_owned());
        let maps = factors_of(operation).ok_or_else(no_rule)?;
        let of = operands_of(operation);
        let shape = self.shape(result)?;
        let mut sides = Vec::with_capacity(2);
        for side in [0, 1] {
            sides.push(Factor {
                value: self.value(of[side]),
                shape: self.shape(of[side])?,
                loops: maps[side].clone(),
            });
        }
        let g = Factor {
            value: g,
            shape,
            loops: maps[2].clone(),
        };
        for (own, other) in [(0, 1), (1, 0)] {
            if own == 1 && self.is_rows_by_matrix(of[1], &sides, &g) {
                continue;
            }
            let cotangent = cotangent_of(&self.b, &sides[own], &g, &sides[other]);
            self.add(of[own], cotangent);
        }
        if defining_op(of[2]).is_none_or(|init| !Op::LinalgFill.is(init)) {
            self.add(of[2], g.value);
        }
        Ok(())
    }

    /// Whether the right side is a matrix that is a parameter, and the left one has all other loops of the
    /// result: then each row of it is one of the site's.
    fn is_rows_by_matrix(&mut self, right: Val<'c>, sides: &[Factor<'c>], g: &Factor<'c>) -> bool {
        let (Some(view), [inner, column]) = (self.views.get(&key(right)), &sides[1].loops[..])
        else {
            return false;
        };
        let (Some((last, rows)), Some((last_of_g, rows_of_g))) =
            (sides[0].loops.split_last(), g.loops.split_last())
        else {
            return false;
        };
        let fits = last == inner && last_of_g == column && rows == rows_of_g;
        if fits {
            self.sites.push(Site {
                view: view.clone(),
                left: Some(sides[0].value),
                right: g.value,
            });
        }
        fits
    }
}

/// The loops of both sides and of the result, where the operation sums up their products.
fn factors_of(operation: OperationRef<'_, '_>) -> Option<[Vec<usize>; 3]> {
    let kinds: Vec<_> = nested_ops(operation).into_iter().map(Op::of).collect();
    if kinds != [Op::ArithMulf, Op::ArithAddf, Op::LinalgYield].map(Some) {
        return None;
    }
    let Loops { maps, .. } = loops_of(operation)?;
    let plain = |map: Vec<MapResult>| {
        let loops = map.into_iter().map(|place| match place {
            MapResult::Loop(number) => Some(number),
            _ => None,
        });
        loops.collect::<Option<Vec<usize>>>()
    };
    let maps: Option<Vec<Vec<usize>>> = maps.into_iter().map(plain).collect();
    <[Vec<usize>; 3]>::try_from(maps?).ok()
}

/// The sum of the products of the result's cotangent and the other side, over all loops that the side does
/// not have.
fn cotangent_of<'c>(
    b: &Builder<'c>,
    own: &Factor<'c>,
    g: &Factor<'c>,
    other: &Factor<'c>,
) -> Val<'c> {
    let is_own = |number: &usize| own.loops.contains(number);
    let mut summed: Vec<usize> = g.loops.iter().copied().filter(|l| !is_own(l)).collect();
    // One loop is summed over by the product; the others are dims of it, the first ones.
    let Some(inner) = summed.pop() else {
        let spread = |factor: &Factor<'c>| {
            let kept: Vec<usize> = (own.loops.iter().copied())
                .filter(|number| factor.loops.contains(number))
                .collect();
            let missing = own.loops.iter().enumerate();
            let missing = missing.filter(|(_, number)| !factor.loops.contains(number));
            let missing: Vec<usize> = missing.map(|(axis, _)| axis).collect();
            let turned = reordered(b, factor, &kept);
            broadcast(b, turned.value, &own.shape, &missing)
        };
        return b.mulf(spread(g), spread(other));
    };
    let kept: Vec<usize> = summed.iter().chain(&own.loops).copied().collect();
    let extra = g.shape.pick(&axes_of(g, &summed));
    let shape = joined(&extra, &own.shape);
    let is_both = |number: &usize| g.loops.contains(number) && other.loops.contains(number);
    let both: Vec<usize> = kept.iter().copied().filter(is_both).collect();
    let alone = |factor: &Factor<'c>| -> Vec<usize> {
        let loops = kept.iter().copied();
        loops
            .filter(|own| factor.loops.contains(own) && !both.contains(own))
            .collect()
    };
    // The rows of the product are those loops that come first in it.
    let place = |factor: &Factor<'c>| {
        let first = alone(factor).first().copied();
        kept.iter().position(|number| Some(*number) == first)
    };
    let [left, right] = match place(other) < place(g) {
        true => [other, g],
        false => [g, other],
    };
    let rows = [&both[..], &alone(left), &[inner]].concat();
    let columns = [&both[..], &[inner], &alone(right)].concat();
    let left = reordered(b, left, &rows);
    let right = reordered(b, right, &columns);
    let product = contract(b, &left, &right, &kept, &shape);
    let extra: Vec<usize> = (0..summed.len()).collect();
    sum_over(b, product, &shape, &extra)
}

/// The axes of a value that run along these loops.
fn axes_of(factor: &Factor<'_>, loops: &[usize]) -> Vec<usize> {
    let axis = |number: &usize| factor.loops.iter().position(|own| own == number);
    loops.iter().filter_map(axis).collect()
}

/// A value with its axes in another order.
fn reordered<'c>(b: &Builder<'c>, factor: &Factor<'c>, loops: &[usize]) -> Factor<'c> {
    if factor.loops == loops {
        return factor.clone();
    }
    let permutation = axes_of(factor, loops);
    Factor {
        value: transpose(b, factor.value, &factor.shape, &permutation),
        shape: factor.shape.pick(&permutation),
        loops: loops.to_vec(),
    }
}

/// The axes of one shape, then those of another.
fn joined<'c>(first: &Shape<'c>, second: &Shape<'c>) -> Shape<'c> {
    let mut joined = first.clone();
    joined.ty.shape.extend(&second.ty.shape);
    joined.lengths.extend(&second.lengths);
    joined
}

/// The sum of products over the one loop of both sides that is not kept.
fn contract<'c>(
    b: &Builder<'c>,
    left: &Factor<'c>,
    right: &Factor<'c>,
    kept: &[usize],
    shape: &Shape<'c>,
) -> Val<'c> {
    let count = kept.len();
    let place = |number: &usize| kept.iter().position(|own| own == number).unwrap_or(count);
    let map = |loops: &[usize]| -> Vec<MapResult> {
        let places = loops.iter().map(|number| MapResult::Loop(place(number)));
        places.collect()
    };
    let maps = [&left.loops[..], &right.loops, kept].map(map);
    let folds: Vec<bool> = (0..=count).map(|number| number == count).collect();
    let init = full(b, shape, 0.0);
    let ty = init.r#type();
    let element = TensorType::of_value(init).map_or(ty, |ty| ty.element);
    let (region, block) = region_with_block(&[element; 3], b.location);
    let inner = Builder::at_end(b.context(), block, b.location);
    if let [x, y, sum] = arguments_of(block)[..] {
        let product = inner.mulf(x, y);
        let sum = inner.addf(sum, product);
        inner.linalg_yield(&[sum]);
    }
    let attributes = [
        (keys::INDEXING_MAPS, b.indexing_maps(folds.len(), &maps)),
        (keys::ITERATOR_TYPES, b.iterators(&folds)),
        (keys::OPERAND_SEGMENT_SIZES, b.i32s(&[2, 1])),
    ];
    let operands = [left.value, right.value, init];
    result_of(
        b.op(
            Op::LinalgGeneric,
            &operands,
            &[ty],
            &attributes,
            vec![region],
        ),
        0,
    )
}
