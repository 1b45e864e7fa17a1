//! Symbolic dims in normal form.
//!
//! A dim such as `3*H` or `n*(D/4)` is a polynomial with rational coefficients; exponents may be
//! negative, so that dividing by a dim stays in the form. Two dims are equal when their normal
//! forms are, whatever numbers they are bound to later: `4*(D/4)` is `D`, and whether `D/4` is a
//! whole number is asked once `D` is known.

use std::collections::BTreeMap;
use std::fmt::Write;

/// What a dim can be made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Atom {
    /// A dim of the program, by its place among the declarations.
    Program(usize),
    /// A dim variable of the function at hand, by its place in the signature.
    Variable(usize),
    /// A length that some value turned out to have; it equals nothing but itself.
    Opened(usize),
    /// Not yet known, to be found by unification.
    Unknown(usize),
}

/// A product of powers, sorted by atom, without zero exponents.
type Monomial = Vec<(Atom, i32)>;

/// A reduced fraction with a positive denominator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ratio {
    numerator: i128,
    denominator: i128,
}

impl Ratio {
    const ONE: Ratio = Ratio {
        numerator: 1,
        denominator: 1,
    };

    fn new(numerator: i128, denominator: i128) -> Option<Ratio> {
        if denominator == 0 {
            return None;
        }
        let divisor = gcd(numerator.unsigned_abs(), denominator.unsigned_abs());
        let divisor = i128::try_from(divisor).ok()?;
        let sign = if denominator < 0 { -1 } else { 1 };
        Some(Ratio {
            numerator: numerator.checked_div(divisor)?.checked_mul(sign)?,
            denominator: denominator.checked_div(divisor)?.checked_mul(sign)?,
        })
    }

    fn integer(value: i128) -> Ratio {
        Ratio {
            numerator: value,
            denominator: 1,
        }
    }

    fn add(self, other: Ratio) -> Option<Ratio> {
        let left = self.numerator.checked_mul(other.denominator)?;
        let right = other.numerator.checked_mul(self.denominator)?;
        Ratio::new(
            left.checked_add(right)?,
            self.denominator.checked_mul(other.denominator)?,
        )
    }

    fn multiply(self, other: Ratio) -> Option<Ratio> {
        Ratio::new(
            self.numerator.checked_mul(other.numerator)?,
            self.denominator.checked_mul(other.denominator)?,
        )
    }

    fn inverse(self) -> Option<Ratio> {
        Ratio::new(self.denominator, self.numerator)
    }

    fn negate(self) -> Ratio {
        Ratio {
            numerator: self.numerator.saturating_neg(),
            denominator: self.denominator,
        }
    }

    pub fn whole(self) -> Option<i128> {
        (self.denominator == 1).then_some(self.numerator)
    }
}

fn gcd(a: u128, b: u128) -> u128 {
    if b == 0 { a.max(1) } else { gcd(b, a % b) }
}

/// More terms than any real dim has; products beyond it are refused.
const MAX_TERMS: usize = 200;

/// A dim in normal form. Operations give `None` where numbers leave the range of the form.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Poly {
    terms: BTreeMap<Monomial, Ratio>,
}

impl Poly {
    pub fn constant(value: u64) -> Poly {
        let mut terms = BTreeMap::new();
        if value != 0 {
            terms.insert(Vec::new(), Ratio::integer(i128::from(value)));
        }
        Poly { terms }
    }

    /// The number of an integer, which may be negative.
    pub fn integer(value: i32) -> Poly {
        let size = Poly::constant(value.unsigned_abs().into());
        if value < 0 { size.negate() } else { size }
    }

    pub fn atom(atom: Atom) -> Poly {
        Poly {
            terms: BTreeMap::from([(vec![(atom, 1)], Ratio::ONE)]),
        }
    }

    fn from_terms(terms: impl IntoIterator<Item = (Monomial, Ratio)>) -> Option<Poly> {
        let mut sum: BTreeMap<Monomial, Ratio> = BTreeMap::new();
        for (monomial, coefficient) in terms {
            let entry = sum.entry(monomial).or_insert(Ratio::integer(0));
            *entry = entry.add(coefficient)?;
        }
        sum.retain(|_, coefficient| coefficient.numerator != 0);
        (sum.len() <= MAX_TERMS).then_some(Poly { terms: sum })
    }

    pub fn add(&self, other: &Poly) -> Option<Poly> {
        let terms = self.terms.iter().chain(&other.terms);
        Poly::from_terms(terms.map(|(m, c)| (m.clone(), *c)))
    }

    pub fn negate(&self) -> Poly {
        Poly {
            terms: self
                .terms
                .iter()
                .map(|(m, c)| (m.clone(), c.negate()))
                .collect(),
        }
    }

    pub fn subtract(&self, other: &Poly) -> Option<Poly> {
        self.add(&other.negate())
    }

    pub fn multiply(&self, other: &Poly) -> Option<Poly> {
        if self.terms.len().saturating_mul(other.terms.len()) > MAX_TERMS * 4 {
            return None;
        }
        let mut products = Vec::new();
        for (m1, c1) in &self.terms {
            for (m2, c2) in &other.terms {
                products.push((multiply_monomials(m1, m2)?, c1.multiply(*c2)?));
            }
        }
        Poly::from_terms(products)
    }

    /// Only a product of dims and numbers divides; `None` for a sum and for zero.
    pub fn divide(&self, other: &Poly) -> Option<Poly> {
        let mut terms = other.terms.iter();
        let (Some((monomial, coefficient)), None) = (terms.next(), terms.next()) else {
            return None;
        };
        let inverse = monomial
            .iter()
            .map(|(atom, power)| (*atom, -power))
            .collect();
        let inverse = Poly {
            terms: BTreeMap::from([(inverse, coefficient.inverse()?)]),
        };
        self.multiply(&inverse)
    }

    /// The number it is, when no atom is left.
    pub fn as_constant(&self) -> Option<Ratio> {
        let mut terms = self.terms.iter();
        match (terms.next(), terms.next()) {
            (None, _) => Some(Ratio::integer(0)),
            (Some((monomial, coefficient)), None) if monomial.is_empty() => Some(*coefficient),
            _ => None,
        }
    }

    pub fn is_constant(&self, value: u64) -> bool {
        self.as_constant().and_then(Ratio::whole) == Some(i128::from(value))
    }

    /// Whether what it divides by is a number of the program for each of these atoms in it: `D/4 * n` is
    /// a length for every `n`, `n/2` is not.
    pub fn is_whole_in(&self, atoms: &dyn Fn(Atom) -> bool) -> bool {
        self.terms.iter().all(|(monomial, coefficient)| {
            let mut own = monomial.iter().filter(|(atom, _)| atoms(*atom));
            let all_multiply = own.clone().all(|(_, power)| *power > 0);
            own.next().is_none() || all_multiply && coefficient.whole().is_some()
        })
    }

    /// The atom it is, when it is nothing but one atom.
    pub fn as_atom(&self) -> Option<Atom> {
        let mut terms = self.terms.iter();
        match (terms.next(), terms.next()) {
            (Some((monomial, coefficient)), None) if *coefficient == Ratio::ONE => {
                match monomial.as_slice() {
                    [(atom, 1)] => Some(*atom),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Whether nothing is subtracted or divided, so that it is no less than 0 where its atoms are not.
    pub fn is_sum(&self) -> bool {
        self.terms.iter().all(|(monomial, coefficient)| {
            let multiplies = monomial.iter().all(|(_, power)| *power > 0);
            multiplies && coefficient.numerator > 0 && coefficient.denominator == 1
        })
    }

    pub fn atoms(&self) -> impl Iterator<Item = Atom> + '_ {
        self.terms.keys().flatten().map(|(atom, _)| *atom)
    }

    /// Replaces atoms; those for which `replace` gives `None` stay.
    pub fn substitute(&self, replace: &dyn Fn(Atom) -> Option<Poly>) -> Option<Poly> {
        if self.atoms().all(|atom| replace(atom).is_none()) {
            return Some(self.clone());
        }
        let mut sum = Poly::default();
        for (monomial, coefficient) in &self.terms {
            let mut product = Poly {
                terms: BTreeMap::from([(Vec::new(), *coefficient)]),
            };
            for (atom, power) in monomial {
                let value = replace(*atom).unwrap_or_else(|| Poly::atom(*atom));
                for _ in 0..power.unsigned_abs().min(64) {
                    product = if *power > 0 {
                        product.multiply(&value)?
                    } else {
                        product.divide(&value)?
                    };
                }
            }
            sum = sum.add(&product)?;
        }
        Some(sum)
    }

    /// Solves `self == 0` for an atom among those that `wanted` picks: the first that occurs once,
    /// linearly and alone in its term.
    pub fn solve(&self, wanted: &dyn Fn(Atom) -> bool) -> Option<(Atom, Poly)> {
        for (monomial, coefficient) in &self.terms {
            let [(atom, 1)] = monomial.as_slice() else {
                continue;
            };
            let elsewhere = self.terms.keys().filter(|other| *other != monomial);
            if !wanted(*atom) || elsewhere.flatten().any(|(other, _)| other == atom) {
                continue;
            }
            let mut rest = self.clone();
            rest.terms.remove(monomial);
            let factor = coefficient.negate().inverse()?;
            let factor = Poly {
                terms: BTreeMap::from([(Vec::new(), factor)]),
            };
            return Some((*atom, rest.multiply(&factor)?));
        }
        None
    }

    /// As one would write it, `3*H`, `D + 1`, `D/4`.
    pub fn display(&self, name: &dyn Fn(Atom) -> String) -> String {
        if self.terms.is_empty() {
            return "0".to_owned();
        }
        let mut text = String::new();
        // Constants come last: `H + 1`, not `1 + H`.
        let constant = self.terms.iter().filter(|(m, _)| m.is_empty());
        for (monomial, coefficient) in self
            .terms
            .iter()
            .filter(|(m, _)| !m.is_empty())
            .chain(constant)
        {
            let negative = coefficient.numerator < 0;
            match (text.is_empty(), negative) {
                (true, true) => text.push('-'),
                (true, false) => {}
                (false, true) => text.push_str(" - "),
                (false, false) => text.push_str(" + "),
            }
            term(&mut text, monomial, *coefficient, name);
        }
        text
    }
}

fn multiply_monomials(left: &Monomial, right: &Monomial) -> Option<Monomial> {
    let mut powers: BTreeMap<Atom, i32> = left.iter().copied().collect();
    for (atom, power) in right {
        let sum = powers.entry(*atom).or_insert(0);
        *sum = sum
            .checked_add(*power)
            .filter(|sum| sum.unsigned_abs() <= 64)?;
    }
    powers.retain(|_, power| *power != 0);
    Some(powers.into_iter().collect())
}

fn term(text: &mut String, monomial: &Monomial, coefficient: Ratio, name: &dyn Fn(Atom) -> String) {
    let numerator = coefficient.numerator.unsigned_abs();
    let mut factors: Vec<String> = Vec::new();
    let mut divisors: Vec<String> = Vec::new();
    if numerator != 1 || !monomial.iter().any(|(_, power)| *power > 0) {
        factors.push(numerator.to_string());
    }
    if coefficient.denominator != 1 {
        divisors.push(coefficient.denominator.to_string());
    }
    for (atom, power) in monomial {
        let list = if *power > 0 {
            &mut factors
        } else {
            &mut divisors
        };
        for _ in 0..power.unsigned_abs() {
            list.push(name(*atom));
        }
    }
    text.push_str(&factors.join("*"));
    for divisor in divisors {
        // Writing to a string cannot fail.
        let _ = write!(text, "/{divisor}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(atom: Atom) -> String {
        match atom {
            Atom::Program(0) => "D".to_owned(),
            Atom::Program(_) => "H".to_owned(),
            Atom::Variable(_) => "n".to_owned(),
            Atom::Opened(_) | Atom::Unknown(_) => "?".to_owned(),
        }
    }

    #[test]
    fn normal_forms_are_equal_when_the_dims_are() -> Result<(), &'static str> {
        let d = Poly::atom(Atom::Program(0));
        let h = Poly::atom(Atom::Program(1));
        let four = Poly::constant(4);
        let quarter = d.divide(&four).ok_or("D/4")?;
        assert_eq!(quarter.multiply(&four), Some(d.clone()));
        assert_eq!(d.add(&h), h.add(&d));
        assert_eq!(quarter.display(&names), "D/4");
        let sum = d
            .add(&h)
            .and_then(|s| s.multiply(&Poly::constant(3)))
            .ok_or("3*(D+H)")?;
        assert_eq!(sum.display(&names), "3*D + 3*H");
        Ok(())
    }

    #[test]
    fn a_linear_unknown_is_solved() -> Result<(), &'static str> {
        let unknown = Poly::atom(Atom::Unknown(0));
        let h = Poly::atom(Atom::Program(1));
        let three = Poly::constant(3);
        let equation = unknown
            .multiply(&three)
            .and_then(|left| left.subtract(&h.multiply(&three)?))
            .ok_or("3*? - 3*H")?;
        let solved = equation.solve(&|atom| matches!(atom, Atom::Unknown(_)));
        assert_eq!(solved, Some((Atom::Unknown(0), h)));
        Ok(())
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        let mut poly = Poly::constant(u64::MAX);
        for _ in 0..2 {
            poly = match poly.multiply(&poly) {
                Some(product) => product,
                None => return,
            };
        }
        panic!("a product of eight-byte numbers was not refused");
    }
}
