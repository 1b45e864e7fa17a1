//! What makes a line along an axis of each one: running sums and sorts; and sums of segments.

use std::cmp::Ordering;

use cohort_frontend::program::{Binary, Elem, Order, SortPart};

use super::layout::check_index;
use super::{Tensor, length_mismatch};
use crate::error::{ErrorKind, InstanceError};
use crate::scalar::{self, Scalar};

/// Each element the sum of those along `axis` up to it.
pub(crate) fn cumsum(value: &Tensor, axis: usize) -> Result<Tensor, InstanceError> {
    let elem = value.elem();
    each_line(
        value,
        axis,
        elem,
        |index, _| index + 1,
        |line| {
            let mut total = Scalar::zero(elem);
            line.iter()
                .map(|&element| {
                    total = scalar::binary(Binary::Add, total, element)?;
                    Ok(total)
                })
                .collect()
        },
    )
}

/// The elements along `axis` in order, or where they were. Equal ones stay as they stand, and NaN
/// comes after all numbers.
pub(crate) fn sort(
    value: &Tensor,
    axis: usize,
    order: Order,
    part: SortPart,
) -> Result<Tensor, InstanceError> {
    let elem = match part {
        SortPart::Values => value.elem(),
        SortPart::Indices => Elem::I32,
    };
    each_line(
        value,
        axis,
        elem,
        |_, length| length,
        |line| {
            let mut indices: Vec<usize> = (0..line.len()).collect();
            indices.sort_by(|&left, &right| compare(line[left], line[right], order));
            indices
                .into_iter()
                .map(|index| match part {
                    SortPart::Values => Ok(line[index]),
                    SortPart::Indices => Ok(scalar::cast(Scalar::F32(index as f64), Elem::I32)),
                })
                .collect()
        },
    )
}

fn compare(left: Scalar, right: Scalar, order: Order) -> Ordering {
    let number = |scalar| match scalar {
        Scalar::F32(value) => value,
        Scalar::I32(value) => f64::from(value),
        Scalar::Bool(value) => f64::from(u8::from(value)),
    };
    let (left, right) = (number(left), number(right));
    match left.partial_cmp(&right) {
        Some(ordering) if order == Order::Descending => ordering.reverse(),
        Some(ordering) => ordering,
        None => left.is_nan().cmp(&right.is_nan()),
    }
}

/// Row `s` of `count` is the sum of the rows of `values` whose segment is `s`.
pub(crate) fn segment_sum(
    values: &Tensor,
    segments: &Tensor,
    count: usize,
) -> Result<Tensor, InstanceError> {
    let (_, rows, row_length) = values.around(0)?;
    if segments.count() != rows {
        return Err(length_mismatch("segment_sum", values, segments));
    }
    let mut sums = vec![Scalar::zero(values.elem()); count * row_length];
    let mut doubted = vec![false; count * row_length];
    for row in 0..rows {
        let segment = place(segments, row, count)?;
        for place in 0..row_length {
            let (sum, element) = (segment * row_length + place, row * row_length + place);
            sums[sum] = scalar::binary(Binary::Add, sums[sum], values.at(element))?;
            doubted[sum] |= values.is_doubtful(element);
        }
    }
    let shape = [&[count], &values.shape[1..]].concat();
    let result = Tensor::build(values.elem(), shape, |position| Ok(sums[position]))?;
    Ok(result.doubted_where(|position| doubted[position]))
}

/// The tensor with row `indices[i]` replaced by row `i` of `rows`, one after another.
pub(crate) fn scatter(
    value: &Tensor,
    indices: &Tensor,
    rows: &Tensor,
) -> Result<Tensor, InstanceError> {
    let (_, count, row_length) = value.around(0)?;
    let (_, sources, _) = rows.around(0)?;
    if indices.count() != sources {
        return Err(length_mismatch("scatter", indices, rows));
    }
    let mut source = vec![None; count];
    for row in 0..sources {
        source[place(indices, row, count)?] = Some(row);
    }
    let of = |position: usize| {
        let (row, column) = (position / row_length, position % row_length);
        match source[row] {
            Some(row) => (rows, row * row_length + column),
            None => (value, position),
        }
    };
    let result = Tensor::build(value.elem(), value.shape.clone(), |position| {
        let (from, position) = of(position);
        Ok(from.at(position))
    })?;
    Ok(result.doubted_where(|position| {
        let (from, position) = of(position);
        from.is_doubtful(position)
    }))
}

/// A row's index among `count`.
fn place(indices: &Tensor, row: usize, count: usize) -> Result<usize, InstanceError> {
    match indices.at(row) {
        _ if indices.is_doubtful(row) => {
            let message = "an index was decided by what is not a number (NaN)";
            Err(InstanceError::new(ErrorKind::NanDecision, message))
        }
        Scalar::I32(index) => check_index(index, count),
        _ => Err(InstanceError::internal("indices are not integers")),
    }
}

/// A tensor of the same shape that holds what `made` makes of each line along `axis`. Its element
/// at an index is made of as many elements of the line as `reach` says of the index and the length.
fn each_line(
    value: &Tensor,
    axis: usize,
    elem: Elem,
    reach: impl Fn(usize, usize) -> usize,
    made: impl Fn(&[Scalar]) -> Result<Vec<Scalar>, InstanceError>,
) -> Result<Tensor, InstanceError> {
    let (before, length, after) = value.around(axis)?;
    let place = |line: usize, index: usize| (line / after * length + index) * after + line % after;
    let mut elements = vec![Scalar::zero(elem); value.count()];
    let mut doubted = vec![false; value.count()];
    for line in 0..before * after {
        let places: Vec<usize> = (0..length).map(|index| place(line, index)).collect();
        let own: Vec<Scalar> = places.iter().map(|&place| value.at(place)).collect();
        let in_doubt = |&place: &usize| value.is_doubtful(place) || value.is_nan(place);
        let first_in_doubt = places.iter().position(in_doubt).unwrap_or(length);
        for (index, element) in made(&own)?.into_iter().enumerate() {
            elements[places[index]] = element;
            doubted[places[index]] = first_in_doubt < reach(index, length);
        }
    }
    let result = Tensor::build(elem, value.shape.clone(), |position| Ok(elements[position]))?;
    Ok(result.doubted_where(|position| doubted[position]))
}
