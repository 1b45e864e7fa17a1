//! The vector-Jacobian product of each tensor operation.
//!
//! From the cotangent of an operation's result follow those of its operands. Cotangents of one value
//! that come from slices of it side by side are joined by one concatenation; all others are added up.
//! The formulas are listed in `docs/training.md`; broadcasts and sums are each other's cotangents.

use cohort_abi::manifest::Elem;
use cohort_dialects::builder::{
    Builder, CmpfPredicate, Dialect, Op, Val, arguments_of, name_of, operands_of, operations_of,
    result_of, results_of,
};
use std::collections::HashMap;

use melior::ir::{OperationRef, Type, ValueLike, operation::OperationLike};

use super::emit::{Shape, broadcast, concat, full, product, slice, sum_over, transpose};
use super::sites::{Site, View};
use crate::support::extents::{Extents, Length};
use crate::support::ir::{
    TensorType, ValueKey, blocks_of, defining_op, elem_of, integer_attribute, integers, key,
};

/// What is known of the cotangent of a value so far.
#[derive(Default)]
struct Contributions<'c> {
    whole: Vec<Val<'c>>,
    /// Of elements along an axis: the axis, the first, how many.
    slices: Vec<(usize, u64, u64, Val<'c>)>,
}

/// The backward of one block, as it is written.
pub struct Backward<'c> {
    pub b: Builder<'c>,
    /// What each value of the block is here.
    pub forward: HashMap<ValueKey, Val<'c>>,
    /// The instance dims of the block's values, and their lengths here.
    pub extents: Extents,
    pub lengths: HashMap<usize, Val<'c>>,
    /// The values of the block that are a parameter or a part of one.
    pub views: HashMap<ValueKey, View>,
    pub sites: Vec<Site<'c>>,
    cotangents: HashMap<ValueKey, Contributions<'c>>,
}

/// What has no derivative here.
pub struct NoRule(pub String);

pub(super) type Rule = Result<(), NoRule>;

impl<'c> Backward<'c> {
    pub fn new(b: Builder<'c>, extents: Extents) -> Backward<'c> {
        Backward {
            b,
            forward: HashMap::new(),
            extents,
            lengths: HashMap::new(),
            views: HashMap::new(),
            sites: Vec::new(),
            cotangents: HashMap::new(),
        }
    }

    /// A value of the block, as the function has it.
    pub fn value(&self, value: Val<'c>) -> Val<'c> {
        self.forward.get(&key(value)).copied().unwrap_or(value)
    }

    /// The shape of a value of the block.
    pub fn shape(&mut self, value: Val<'c>) -> Result<Shape<'c>, NoRule> {
        let ty = TensorType::of_value(value)
            .ok_or_else(|| NoRule("a value that is not a tensor".to_owned()))?;
        let mut lengths = Vec::new();
        for length in self.extents.shape(value) {
            if let Length::Dim(number) = length {
                let known = self.lengths.get(&number).copied();
                lengths
                    .push(known.ok_or_else(|| NoRule("a length that nothing tells".to_owned()))?);
            }
        }
        Ok(Shape { ty, lengths })
    }

    pub fn add(&mut self, value: Val<'c>, cotangent: Val<'c>) {
        let own = self.cotangents.entry(key(value)).or_default();
        own.whole.push(cotangent);
    }

    fn add_slice(&mut self, value: Val<'c>, axis: usize, first: u64, size: u64, part: Val<'c>) {
        let own = self.cotangents.entry(key(value)).or_default();
        own.slices.push((axis, first, size, part));
    }

    /// The cotangent of a value of the block, once all its uses are done; `None` if there is none.
    pub fn cotangent(&mut self, value: Val<'c>) -> Result<Option<Val<'c>>, NoRule> {
        let Some(mut own) = self.cotangents.remove(&key(value)) else {
            return Ok(None);
        };
        let b = self.b;
        let mut parts = std::mem::take(&mut own.slices);
        parts.sort_by_key(|(axis, first, _, _)| (*axis, *first));
        let mut whole = Vec::new();
        while !parts.is_empty() {
            // As many as lie side by side along one axis.
            let (axis, mut end) = (parts[0].0, 0);
            let mut rest = Vec::new();
            let mut row = Vec::new();
            for part in parts {
                if part.0 == axis && part.1 >= end {
                    end = part.1 + part.2;
                    row.push(part);
                } else {
                    rest.push(part);
                }
            }
            parts = rest;
            let shape = self.shape(value)?;
            whole.push(padded(&b, &shape, axis, &row));
        }
        whole.append(&mut own.whole);
        let sum = whole.into_iter().reduce(|left, right| b.addf(left, right));
        if let Some(sum) = sum {
            self.cotangents.entry(key(value)).or_default().whole = vec![sum];
        }
        Ok(sum)
    }

    /// Goes from the cotangents of an operation's results to those of its operands.
    pub fn differentiate(&mut self, operation: OperationRef<'c, 'c>) -> Rule {
        let mut found = None;
        for result in results_of(operation) {
            if is_f32(result)
                && let Some(cotangent) = self.cotangent(result)?
            {
                found = Some((result, cotangent));
            }
        }
        let Some((result, g)) = found else {
            return Ok(());
        };
        if self.views.contains_key(&key(result)) {
            self.b = self.b.at(operation.location());
            let view = self.views[&key(result)].clone();
            self.sites.push(Site {
                view,
                left: None,
                right: g,
            });
            return Ok(());
        }
        self.b = self.b.at(operation.location());
        let Some(kind) = Op::of(operation) else {
            return Err(no_rule(operation));
        };
        match (Dialect::of(operation), kind) {
            (Some(Dialect::Arith | Dialect::Math), _) => {
                self.elementwise(operation, kind, result, g)
            }
            (Some(Dialect::Linalg), _) => self.structured(operation, kind, result, g),
            (Some(Dialect::Tensor), _) | (_, Op::CfbWiden) => self.reshaped(operation, kind, g),
            (_, Op::CfbReduceRows) => self.reduce_rows(operation, g),
            _ => Err(no_rule(operation)),
        }
    }

    fn elementwise(
        &mut self,
        operation: OperationRef<'c, 'c>,
        kind: Op,
        result: Val<'c>,
        g: Val<'c>,
    ) -> Rule {
        let b = self.b;
        let of = operands_of(operation);
        if kind == Op::ArithConstant {
            return Ok(());
        }
        let shape = self.shape(result)?;
        let number = |value: f32| full(&b, &shape, value);
        let at: Vec<Val<'c>> = of.iter().map(|operand| self.value(*operand)).collect();
        let y = self.value(result);
        let mul = |left, right| b.mulf(left, right);
        match kind {
            Op::ArithAddf => {
                self.add(of[0], g);
                self.add(of[1], g);
            }
            Op::ArithSubf => {
                self.add(of[0], g);
                self.add(of[1], b.negf(g));
            }
            Op::ArithNegf => self.add(of[0], b.negf(g)),
            Op::ArithMulf => {
                self.add(of[0], mul(g, at[1]));
                self.add(of[1], mul(g, at[0]));
            }
            Op::ArithDivf => match sigmoid_of(operation) {
                // Of both together, for far out exp is infinite and what it is multiplied by zero.
                Some(x) => {
                    let rest = b.subf(number(1.0), y);
                    self.add(x, mul(g, mul(y, rest)));
                }
                None => {
                    let share = b.divf(g, at[1]);
                    self.add(of[0], share);
                    self.add(of[1], b.negf(mul(share, y)));
                }
            },
            Op::ArithMaximumf | Op::ArithMinimumf | Op::ArithMaxnumf | Op::ArithMinnumf => {
                let better = match matches!(kind, Op::ArithMaximumf | Op::ArithMaxnumf) {
                    true => CmpfPredicate::Ogt,
                    false => CmpfPredicate::Olt,
                };
                let is_left = b.cmpf(better, at[0], at[1]);
                let zero = number(0.0);
                self.add(of[0], b.select(is_left, g, zero));
                self.add(of[1], b.select(is_left, zero, g));
            }
            Op::ArithSelect => {
                let zero = number(0.0);
                self.add(of[1], b.select(at[0], g, zero));
                self.add(of[2], b.select(at[0], zero, g));
            }
            Op::MathExp => self.add(of[0], mul(g, y)),
            Op::MathLog => self.add(of[0], b.divf(g, at[0])),
            Op::MathSqrt => {
                let twice = b.addf(y, y);
                self.add(of[0], b.divf(g, twice));
            }
            Op::MathTanh => {
                let rest = b.subf(number(1.0), mul(y, y));
                self.add(of[0], mul(g, rest));
            }
            Op::MathSin => self.add(of[0], mul(g, b.cos(at[0]))),
            Op::MathCos => {
                let slope = b.negf(b.sin(at[0]));
                self.add(of[0], mul(g, slope));
            }
            Op::MathErf => {
                let exponent = b.negf(mul(at[0], at[0]));
                let bell = b.exp(exponent);
                let slope = mul(number(std::f32::consts::FRAC_2_SQRT_PI), bell);
                self.add(of[0], mul(g, slope));
            }
            Op::MathAbsf => {
                let zero = number(0.0);
                let negative = b.cmpf(CmpfPredicate::Olt, at[0], zero);
                let positive = b.cmpf(CmpfPredicate::Ogt, at[0], zero);
                let turned = b.negf(g);
                let below = b.select(negative, turned, zero);
                self.add(of[0], b.select(positive, g, below));
            }
            Op::MathPowf => {
                let (zero, one) = (number(0.0), number(1.0));
                let less = b.subf(at[1], one);
                let slope = mul(at[1], b.powf(at[0], less));
                let flat = b.cmpf(CmpfPredicate::Oeq, at[1], zero);
                self.add(of[0], mul(g, b.select(flat, zero, slope)));
                let log = b.log(at[0]);
                let base = b.cmpf(CmpfPredicate::Oeq, at[0], zero);
                let below = b.cmpf(CmpfPredicate::Olt, at[1], zero);
                let grows = b.select(below, mul(y, log), zero);
                self.add(of[1], mul(g, b.select(base, grows, mul(y, log))));
            }
            Op::ArithSitofp | Op::ArithUitofp => {}
            _ => return Err(no_rule(operation)),
        }
        Ok(())
    }

    fn structured(
        &mut self,
        operation: OperationRef<'c, 'c>,
        kind: Op,
        result: Val<'c>,
        g: Val<'c>,
    ) -> Rule {
        let b = self.b;
        let of = operands_of(operation);
        let shape = self.shape(result)?;
        match kind {
            // Of a host scalar.
            Op::LinalgFill => {}
            Op::LinalgBroadcast => {
                let axes = axes(operation, "dimensions");
                let leads = axes.iter().enumerate().all(|(at, axis)| at == *axis);
                match self.views.get(&key(of[0])) {
                    Some(view) if leads => self.sites.push(Site {
                        view: view.clone(),
                        left: None,
                        right: g,
                    }),
                    _ => self.add(of[0], sum_over(&b, g, &shape, &axes)),
                }
            }
            Op::LinalgTranspose => {
                let permutation = axes(operation, "permutation");
                let mut inverse = vec![0; permutation.len()];
                for (to, from) in permutation.iter().enumerate() {
                    inverse[*from] = to;
                }
                self.add(of[0], transpose(&b, g, &shape, &inverse));
            }
            Op::LinalgReduce if of.len() == 2 => return self.reduce(operation, result, g),
            Op::LinalgDot => {
                let vector = self.shape(of[0])?;
                let spread = broadcast(&b, g, &vector, &[0]);
                for (own, other) in [(0, 1), (1, 0)] {
                    let other = self.value(of[other]);
                    self.add(of[own], b.mulf(spread, other));
                }
            }
            Op::LinalgVecmat => {
                let (x, w) = (self.value(of[0]), self.value(of[1]));
                let (vector, matrix) = (self.shape(of[0])?, self.shape(of[1])?);
                let turned = transpose(&b, w, &matrix, &[1, 0]);
                self.add(of[0], product(&b, Op::LinalgVecmat, g, turned, &vector));
                self.outer(of[1], &matrix, (x, &vector), (g, &shape));
            }
            Op::LinalgMatvec => {
                let (w, x) = (self.value(of[0]), self.value(of[1]));
                let (matrix, vector) = (self.shape(of[0])?, self.shape(of[1])?);
                self.add(of[1], product(&b, Op::LinalgVecmat, g, w, &vector));
                self.outer(of[0], &matrix, (g, &shape), (x, &vector));
            }
            Op::LinalgMatmul => {
                let sides = [self.value(of[0]), self.value(of[1])];
                let shapes = [self.shape(of[0])?, self.shape(of[1])?];
                let right = transpose(&b, sides[1], &shapes[1], &[1, 0]);
                if let Some(view) = self.views.get(&key(of[1])).cloned() {
                    // Each row of the left side is one of the site's.
                    self.site_of_product(view, sides[0], g);
                } else {
                    let left = transpose(&b, sides[0], &shapes[0], &[1, 0]);
                    self.add(of[1], product(&b, Op::LinalgMatmul, left, g, &shapes[1]));
                }
                match self.views.get(&key(of[0])) {
                    Some(view) => {
                        let site = Site {
                            view: view.clone(),
                            left: Some(transpose(&b, g, &shape, &[1, 0])),
                            right,
                        };
                        self.sites.push(site);
                    }
                    None => self.add(of[0], product(&b, Op::LinalgMatmul, g, right, &shapes[0])),
                }
            }
            Op::LinalgBatchMatmul => {
                let sides = [self.value(of[0]), self.value(of[1])];
                let shapes = [self.shape(of[0])?, self.shape(of[1])?];
                let turned =
                    [0, 1].map(|side| transpose(&b, sides[side], &shapes[side], &[0, 2, 1]));
                self.add(
                    of[0],
                    product(&b, Op::LinalgBatchMatmul, g, turned[1], &shapes[0]),
                );
                self.add(
                    of[1],
                    product(&b, Op::LinalgBatchMatmul, turned[0], g, &shapes[1]),
                );
            }
            Op::LinalgGeneric => return self.contraction(operation, result, g),
            _ => return Err(no_rule(operation)),
        }
        // Products start from their last operand, which is a fill but where one is accumulated.
        let init = of[of.len() - 1];
        let is_product = matches!(
            kind,
            Op::LinalgDot
                | Op::LinalgVecmat
                | Op::LinalgMatvec
                | Op::LinalgMatmul
                | Op::LinalgBatchMatmul
        );
        if is_product && defining_op(init).is_none_or(|op| !Op::LinalgFill.is(op)) {
            self.add(init, g);
        }
        Ok(())
    }

    /// The cotangent of a matrix that is multiplied by one vector.
    fn outer(
        &mut self,
        matrix: Val<'c>,
        shape: &Shape<'c>,
        left: (Val<'c>, &Shape<'c>),
        right: (Val<'c>, &Shape<'c>),
    ) {
        if let Some(view) = self.views.get(&key(matrix)).cloned() {
            return self.site_of_product(view, left.0, right.0);
        }
        let b = self.b;
        let sides = [
            broadcast(&b, left.0, shape, &[1]),
            broadcast(&b, right.0, shape, &[0]),
        ];
        self.add(matrix, b.mulf(sides[0], sides[1]));
    }

    /// Notes `Σ leftᵀ right`. A concatenation has a site for each of its parts, so nobody has to write it down.
    fn site_of_product(&mut self, view: View, left: Val<'c>, right: Val<'c>) {
        let columns = |part: Val<'c>| TensorType::of_value(part)?.shape.last().copied()?;
        let parts = defining_op(left)
            .filter(|operation| Op::TensorConcat.is(*operation))
            .filter(|operation| {
                let rank = TensorType::of_value(left).map(|ty| ty.shape.len() as i64);
                integer_attribute(*operation, "dim").map(|dim| dim + 1) == rank
            })
            .map(operands_of);
        let sizes = parts.iter().flatten().map(|part| columns(*part));
        let (Some(parts), Some(sizes)) = (&parts, sizes.collect::<Option<Vec<u64>>>()) else {
            let left = Some(left);
            return self.sites.push(Site { view, left, right });
        };
        let mut first = 0;
        for (part, size) in parts.iter().zip(sizes) {
            self.site_of_product(view.rows(first, size), *part, right);
            first += size;
        }
    }

    fn reduce(&mut self, operation: OperationRef<'c, 'c>, result: Val<'c>, g: Val<'c>) -> Rule {
        let b = self.b;
        let of = operands_of(operation);
        let axes = axes(operation, "dimensions");
        let shape = self.shape(of[0])?;
        let folds = self.shape(result)?;
        match combiner(operation) {
            Some(Op::ArithAddf) => self.add(of[0], broadcast(&b, g, &shape, &axes)),
            Some(Op::ArithMaximumf | Op::ArithMinimumf | Op::ArithMaxnumf | Op::ArithMinnumf) => {
                let best = broadcast(&b, self.value(result), &shape, &axes);
                let is_best = b.cmpf(CmpfPredicate::Oeq, self.value(of[0]), best);
                let (zero, one) = (full(&b, &shape, 0.0), full(&b, &shape, 1.0));
                let ones = b.select(is_best, one, zero);
                let count = sum_over(&b, ones, &shape, &axes);
                // Where nothing is the best, all of them are not numbers.
                let least = full(&b, &folds, 1.0);
                let count = b.maximumf(count, least);
                let share = b.divf(g, count);
                let share = broadcast(&b, share, &shape, &axes);
                self.add(of[0], b.select(is_best, share, zero));
            }
            _ => return Err(NoRule("this reduction".to_owned())),
        }
        Ok(())
    }

    /// Each tensor of the list has the cotangent of their sum.
    fn reduce_rows(&mut self, operation: OperationRef<'c, 'c>, g: Val<'c>) -> Rule {
        if combiner(operation) != Some(Op::ArithAddf) {
            return Err(NoRule("a fold of a list other than a sum".to_owned()));
        }
        let of = operands_of(operation);
        self.add(of[0], g);
        self.add(of[1], g);
        Ok(())
    }

    fn reshaped(&mut self, operation: OperationRef<'c, 'c>, kind: Op, g: Val<'c>) -> Rule {
        let b = self.b;
        let of = operands_of(operation);
        match kind {
            Op::TensorExtractSlice => {
                let shape = self.shape(of[0])?;
                let dynamic = |numbers: &[i64]| numbers.iter().any(|number| *number < 0);
                let offsets = integers(operation, "static_offsets");
                let steps = integers(operation, "static_strides");
                let part = TensorType::of_value(result_of(operation, 0));
                let part = part.filter(|part| part.rank() == shape.ty.rank());
                let Some(part) =
                    part.filter(|_| !dynamic(&offsets) && steps.iter().all(|s| *s == 1))
                else {
                    return Err(NoRule("this slice".to_owned()));
                };
                // Padded along one axis after the other, but for the first, which others may join.
                let mut cut: Vec<usize> = (0..part.rank())
                    .filter(|axis| part.shape[*axis] != shape.ty.shape[*axis])
                    .collect();
                if cut
                    .iter()
                    .any(|axis| part.shape[*axis].is_none() || shape.ty.shape[*axis].is_none())
                {
                    return Err(NoRule(
                        "a slice along a dim whose length differs".to_owned(),
                    ));
                }
                let mut value = g;
                let mut grown = shape.clone();
                for axis in &cut {
                    grown = grown.resized(*axis, part.shape[*axis].unwrap_or(0));
                }
                let Some(first) = (!cut.is_empty()).then(|| cut.remove(0)) else {
                    self.add(of[0], g);
                    return Ok(());
                };
                for axis in cut {
                    let size = part.shape[axis].unwrap_or(0);
                    let own = (axis, offsets[axis] as u64, size, value);
                    grown = grown.resized(axis, shape.ty.shape[axis].unwrap_or(0));
                    value = padded(&b, &grown, axis, &[own]);
                }
                let size = part.shape[first].unwrap_or(0);
                self.add_slice(of[0], first, offsets[first] as u64, size, value);
            }
            Op::TensorConcat => {
                let axis = integer_attribute(operation, "dim").unwrap_or(0) as usize;
                let mut first = 0;
                for operand in of {
                    let shape = self.shape(operand)?;
                    let Some(size) = shape.ty.shape[axis] else {
                        return Err(NoRule(
                            "a concatenation along a dim whose length differs".to_owned(),
                        ));
                    };
                    self.add(operand, slice(&b, g, &shape, axis, first));
                    first += size;
                }
            }
            Op::TensorCollapseShape => return self.split_again(operation, g),
            Op::TensorExpandShape => return self.join_again(operation, g),
            // One way and back.
            Op::TensorCast => {
                let shape = self.shape(of[0])?;
                let operands = [&[g], &shape.lengths[..]].concat();
                self.add(of[0], b.value(Op::CfbWiden, &operands, shape.to_type()));
            }
            Op::CfbWiden => {
                let ty: Type<'c> = of[0].r#type();
                self.add(of[0], b.tensor_cast(g, ty));
            }
            // Of a host scalar, or of nothing.
            Op::TensorFromElements | Op::TensorEmpty => {}
            _ => return Err(no_rule(operation)),
        }
        Ok(())
    }
}

/// Parts of a value side by side along an axis, with zeros for the rest of it.
fn padded<'c>(
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

/// What `1 / (1 + exp(-x))` is the sigmoid of.
fn sigmoid_of<'c>(division: OperationRef<'c, 'c>) -> Option<Val<'c>> {
    let of = operands_of(division);
    if !is_one(of[0]) {
        return None;
    }
    let sum = defining_op(of[1]).filter(|op| Op::ArithAddf.is(*op))?;
    let sides = operands_of(sum);
    let exponential = match (is_one(sides[0]), is_one(sides[1])) {
        (false, true) => sides[0],
        (true, false) => sides[1],
        _ => return None,
    };
    let exponential = defining_op(exponential).filter(|op| Op::MathExp.is(*op))?;
    let turned = defining_op(operands_of(exponential)[0])?;
    (Op::ArithNegf.is(turned)).then(|| operands_of(turned)[0])
}

/// Whether a value is full of ones.
fn is_one(value: Val<'_>) -> bool {
    let Some(producer) = defining_op(value) else {
        return false;
    };
    match Op::of(producer) {
        Some(Op::ArithConstant) => {
            let number = match TensorType::of_value(value) {
                Some(_) => crate::support::ir::splat_value(producer),
                None => producer.attribute("value").ok(),
            };
            let number = number
                .and_then(|number| melior::ir::attribute::FloatAttribute::try_from(number).ok());
            number.is_some_and(|number| number.value() == 1.0)
        }
        Some(Op::LinalgFill | Op::LinalgBroadcast) => is_one(operands_of(producer)[0]),
        _ => false,
    }
}

/// What has no rule.
fn no_rule(operation: OperationRef<'_, '_>) -> NoRule {
    NoRule(format!("`{}`", name_of(operation)))
}

/// The one operation that combines two elements of a reduction.
fn combiner(operation: OperationRef<'_, '_>) -> Option<Op> {
    let body = *blocks_of(operation).first()?;
    let operations = operations_of(body);
    let [combine, end] = operations[..] else {
        return None;
    };
    let of = operands_of(combine);
    let arguments = arguments_of(body);
    let takes_both = of.len() == 2 && arguments.iter().all(|own| of.contains(own));
    let gives = operands_of(end) == results_of(combine);
    (takes_both && gives).then(|| Op::of(combine)).flatten()
}

fn axes(operation: OperationRef<'_, '_>, name: &str) -> Vec<usize> {
    let axes = integers(operation, name).into_iter();
    axes.map(|axis| axis as usize).collect()
}

/// Whether a value holds what has a gradient.
pub fn is_f32(value: Val<'_>) -> bool {
    let ty = value.r#type();
    let held = cohort_dialects::types::array_element(ty).unwrap_or(ty);
    TensorType::of(held).is_some_and(|ty| elem_of(ty.element) == Some(Elem::F32))
}
