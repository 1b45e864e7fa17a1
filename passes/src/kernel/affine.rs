//! Affine expressions: which element of a value a reader reads, and where in memory it lies.

/// The number of a dim of the reader, or of a loop's variable.
pub type Var = usize;

/// `constant + Σ coefficient * variable`, variables in rising order.
#[derive(Clone, PartialEq, Eq, Debug, Hash, Default)]
pub struct Affine {
    /// What is added.
    pub constant: i64,
    /// Each variable with its coefficient, which is not 0; no variable occurs twice.
    pub terms: Vec<(Var, i64)>,
}

impl Affine {
    /// One without variables.
    pub fn constant(constant: i64) -> Affine {
        Affine {
            constant,
            terms: vec![],
        }
    }

    /// The variable alone.
    pub fn var(var: Var) -> Affine {
        Affine {
            constant: 0,
            terms: vec![(var, 1)],
        }
    }

    /// With a coefficient for each variable from 0 on.
    pub fn strided(constant: i64, strides: &[i64]) -> Affine {
        let terms = strides.iter().copied().enumerate();
        Affine {
            constant,
            terms: terms.filter(|(_, stride)| *stride != 0).collect(),
        }
    }

    /// The sum of both.
    pub fn plus(&self, other: &Affine) -> Affine {
        let mut sum = self.clone();
        sum.constant += other.constant;
        for (var, coefficient) in &other.terms {
            match sum.terms.binary_search_by_key(var, |term| term.0) {
                Ok(at) => sum.terms[at].1 += coefficient,
                Err(at) => sum.terms.insert(at, (*var, *coefficient)),
            }
        }
        sum.terms.retain(|term| term.1 != 0);
        sum
    }

    /// The product with a factor.
    pub fn times(&self, factor: i64) -> Affine {
        let mut product = self.clone();
        product.constant *= factor;
        product.terms.iter_mut().for_each(|term| term.1 *= factor);
        product.terms.retain(|term| term.1 != 0);
        product
    }

    /// The variable's coefficient; 0 where it does not occur.
    pub fn coefficient(&self, var: Var) -> i64 {
        let term = self.terms.iter().find(|term| term.0 == var);
        term.map_or(0, |term| term.1)
    }

    /// The coefficients of the first `rank` variables.
    pub fn coefficients(&self, rank: usize) -> Vec<i64> {
        (0..rank).map(|var| self.coefficient(var)).collect()
    }

    /// This expression of a reader's dims, where the reader is read at `index`.
    pub fn at(&self, index: &[Affine]) -> Affine {
        let start = Affine::constant(self.constant);
        self.terms.iter().fold(start, |sum, (dim, coefficient)| {
            sum.plus(&index[*dim].times(*coefficient))
        })
    }

    /// With a variable and its term left out; those behind it count one less.
    pub fn without(&self, var: Var) -> Affine {
        let terms = self.terms.iter().filter(|term| term.0 != var);
        let counted = |of: Var| of - usize::from(of > var);
        Affine {
            constant: self.constant,
            terms: terms.map(|(of, by)| (counted(*of), *by)).collect(),
        }
    }
}

/// Every dim at itself.
pub fn identity(rank: usize) -> Vec<Affine> {
    (0..rank).map(Affine::var).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_that_cancel_out_are_gone() {
        let both = Affine::strided(7, &[3, 0, -2]);
        assert_eq!(both.terms, [(0, 3), (2, -2)]);
        let sum = both.plus(&Affine::var(2).times(2));
        assert_eq!(sum, Affine::strided(7, &[3]));
        assert_eq!(both.times(0), Affine::default());
    }

    #[test]
    fn a_reader_of_a_reader_reads_at_both_indices() {
        // Element (i, j) of rows of 5, where i is 2 a + 1 and j is b - a.
        let rows = Affine::strided(0, &[5, 1]);
        let index = [Affine::strided(1, &[2]), Affine::strided(0, &[-1, 1])];
        assert_eq!(rows.at(&index), Affine::strided(5, &[9, 1]));
        assert_eq!(rows.at(&identity(2)), rows);
    }

    #[test]
    fn variables_behind_one_that_is_left_out_move_up() {
        let address = Affine::strided(4, &[6, 3, 1]);
        assert_eq!(address.without(0), Affine::strided(4, &[3, 1]));
        assert_eq!(address.without(1).coefficients(2), [6, 1]);
    }
}
