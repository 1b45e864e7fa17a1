//! What the maps of a kernel take for granted of a call's lengths.
//!
//! An index is inside of a dim if the least that its loops make is not negative and the largest is less than the
//! dim's size. Both say that a sum of lengths is not negative. Most such sums are whatever the lengths; the others
//! hold because shapes have been compared before the kernel was called, and the kernel says so.

use std::collections::BTreeMap;

use melior::Context;
use melior::ir::{AffineExpr, Attribute};

use super::super::graph::Size;
use crate::kernel::affine::Affine;

/// A sum of lengths, each times a coefficient, and of a constant.
#[derive(Clone)]
struct Sum {
    coefficients: Vec<i64>,
    constant: i64,
}

impl Sum {
    fn add(&mut self, times: i64, size: Size) {
        match size {
            Size::Known(size) => self.constant += times * size,
            Size::Length(length) => self.coefficients[length] += times,
        }
    }
}

/// Sums that are not negative in any call: the least constant for the same coefficients.
pub struct Given {
    lengths: usize,
    sums: BTreeMap<Vec<i64>, i64>,
}

impl Given {
    /// Nothing yet, of a kernel with `lengths` lengths.
    pub fn new(lengths: usize) -> Given {
        Given {
            lengths,
            sums: BTreeMap::new(),
        }
    }

    /// That these indices, of loops of these sizes, lead to an element of such a shape.
    pub fn take(&mut self, shape: &[Size], at: &[Affine], loops: &[Size]) {
        for (dim, index) in shape.iter().zip(at) {
            let zero = Sum {
                coefficients: vec![0; self.lengths],
                constant: 0,
            };
            let (mut least, mut behind) = (zero.clone(), zero);
            least.constant += index.constant;
            behind.add(1, *dim);
            behind.constant -= 1 + index.constant;
            for (var, coefficient) in &index.terms {
                // A loop ends at one less than its size.
                let (moved, by) = match *coefficient < 0 {
                    true => (&mut least, *coefficient),
                    false => (&mut behind, -coefficient),
                };
                moved.add(by, loops[*var]);
                moved.constant -= by;
            }
            self.add(least);
            self.add(behind);
        }
    }

    fn add(&mut self, sum: Sum) {
        let holds = sum.constant >= 0 && sum.coefficients.iter().all(|of| *of >= 0);
        // What no length decides is the verifier's to refuse.
        let decides = sum.coefficients.iter().any(|of| *of != 0);
        if decides && !holds {
            let least = self.sums.entry(sum.coefficients).or_insert(sum.constant);
            *least = sum.constant.min(*least);
        }
    }

    /// The constraints of the kernel's lengths, if there are any.
    pub fn attribute<'c>(&self, context: &'c Context) -> Option<Attribute<'c>> {
        let sums = self.sums.iter().map(|(coefficients, constant)| {
            let terms = coefficients.iter().enumerate();
            let terms = terms.filter(|(_, of)| **of != 0).map(|(length, of)| {
                AffineExpr::dim(context, length) * AffineExpr::constant(context, *of)
            });
            let constant = AffineExpr::constant(context, *constant);
            let sum = terms.reduce(|sum, term| sum + term);
            sum.map_or(constant, |sum| sum + constant).to_raw()
        });
        let sums: Vec<_> = sums.collect();
        let equalities = vec![false; sums.len()];
        if sums.is_empty() {
            return None;
        }
        // SAFETY: the expressions are of this context, and of as many dims as there are lengths; each has a flag.
        unsafe {
            let set = mlir_sys::mlirIntegerSetGet(
                context.to_raw(),
                self.lengths as isize,
                0,
                sums.len() as isize,
                sums.as_ptr(),
                equalities.as_ptr(),
            );
            Some(Attribute::from_raw(mlir_sys::mlirIntegerSetAttrGet(set)))
        }
    }
}
