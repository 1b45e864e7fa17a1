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
