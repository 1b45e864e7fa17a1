//! The vector-Jacobian products of `linalg`'s operations but for contractions, and of folds of lists.

use cohort_dialects::builder::{
    CmpfPredicate, Op, Val, arguments_of, operands_of, operations_of, results_of,
};
use cohort_dialects::keys::{self, Key};
use melior::ir::OperationRef;

use super::emit::{Shape, broadcast, full, product, sum_over, transpose};
use super::rules::{Backward, NoRule, Rule, no_rule};
use super::sites::{Site, View};
use crate::support::ir::{TensorType, blocks_of, defining_op, integer_attribute, integers, key};

impl<'c> Backward<'c> {
    pub(super) fn structured(
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
                let axes = axes(operation, keys::DIMENSIONS);
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
                let permutation = axes(operation, keys::PERMUTATION);
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
                integer_attribute(*operation, keys::DIM).map(|dim| dim + 1) == rank
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
        let axes = axes(operation, keys::DIMENSIONS);
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
    pub(super) fn reduce_rows(&mut self, operation: OperationRef<'c, 'c>, g: Val<'c>) -> Rule {
        if combiner(operation) != Some(Op::ArithAddf) {
            return Err(NoRule("a fold of a list other than a sum".to_owned()));
        }
        let of = operands_of(operation);
        self.add(of[0], g);
        self.add(of[1], g);
        Ok(())
    }
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

fn axes(operation: OperationRef<'_, '_>, name: Key<'_>) -> Vec<usize> {
    let axes = integers(operation, name).into_iter();
    axes.map(|axis| axis as usize).collect()
}
