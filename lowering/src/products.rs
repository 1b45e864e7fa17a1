//! `@`: products of vectors, matrices, and what has dims before those of matrices.

use cohort_dialects::builder::{Builder, Op, Val};
use cohort_frontend::program::{Dim, Elem};

use crate::expr::Lowering;
use crate::types::known;

impl<'c> Lowering<'_, 'c> {
    /// The product of two values, whose shapes are given, then that of the result.
    pub fn product(
        &self,
        at: Builder<'c>,
        elem: Elem,
        sides: [Val<'c>; 2],
        [left, right, shape]: [&[Dim]; 3],
    ) -> Val<'c> {
        let tensors = self.tensors(at, elem);
        let name = match (left.len(), right.len()) {
            (1, 1) => Op::LinalgDot,
            (1, 2) => Op::LinalgVecmat,
            (2, 1) => Op::LinalgMatvec,
            (2, 2) => Op::LinalgMatmul,
            (_, 2) if left.iter().all(|dim| known(dim).is_some()) => {
                return self.rows_by_matrix(at, elem, sides, [left, right, shape]);
            }
            _ => return self.batched(at, elem, sides, [left, right, shape]),
        };
        let [left, right] = sides;
        tensors.product(name, left, right, shape)
    }

    /// A matrix is the same for all rows of the other side, however many dims these have.
    fn rows_by_matrix(
        &self,
        at: Builder<'c>,
        elem: Elem,
        [lhs, rhs]: [Val<'c>; 2],
        [left, right, shape]: [&[Dim]; 3],
    ) -> Val<'c> {
        let [before @ .., inner] = left else {
            unreachable!("a product's operands have dims")
        };
        let rows = Dim::Known(before.iter().filter_map(known).product());
        let flat = [rows.clone(), inner.clone()];
        let lhs = self.reshape(at, elem, lhs, left, &flat);
        let result = [rows, right[1].clone()];
        let product = self
            .tensors(at, elem)
            .product(Op::LinalgMatmul, lhs, rhs, &result);
        self.reshape(at, elem, product, &result, shape)
    }

    /// Any product, as one sum over all dims of the result.
    fn batched(
        &self,
        at: Builder<'c>,
        elem: Elem,
        [lhs, rhs]: [Val<'c>; 2],
        [left, right, shape]: [&[Dim]; 3],
    ) -> Val<'c> {
        let (rows, columns) = (usize::from(left.len() > 1), usize::from(right.len() > 1));
        let batch = shape.len() - rows - columns;
        let inner = shape.len();
        let ends = [
            [(batch..batch + rows).collect(), vec![inner]].concat(),
            [vec![inner], (batch + rows..inner).collect()].concat(),
        ];
        let mut sides = [lhs, rhs];
        let mut factors = [vec![], vec![]];
        for (side, own) in [left, right].into_iter().enumerate() {
            let before = own.len() - ends[side].len();
            let missing = batch - before;
            // A dim of one that is repeated is none of the loops.
            let kept: Vec<usize> = (0..before)
                .filter(|axis| own[*axis] == shape[axis + missing])
                .collect();
            let dims = kept.iter().copied().chain(before..own.len());
            let dims: Vec<Dim> = dims.map(|axis| own[axis].clone()).collect();
            sides[side] = self.reshape(at, elem, sides[side], own, &dims);
            factors[side] = kept.into_iter().map(|axis| axis + missing).collect();
            factors[side].extend(&ends[side]);
        }
        self.tensors(at, elem).contraction(sides, factors, shape)
    }
}
