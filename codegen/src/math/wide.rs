//! `sin`, `cos` and `powf` on `f32`, computed in `f64` and rounded once.
//!
//! In `f64` the reduction of an angle and the logarithm in a power need no double-double tricks: the
//! result is right but for the last rounding. It costs twice the width, which is fair for functions
//! that models use rarely.
//!
//! Limits: an angle beyond 2^50 gives some number between -1 and 1.

use cohort_dialects::builder::{Builder, CmpfPredicate, Op, Val, element_of, with_element};
use melior::ir::{Type, TypeLike, ValueLike};
use std::f64::consts::{FRAC_2_PI, FRAC_PI_2, FRAC_PI_4, LN_2};

/// What π/2 is more than its nearest `f64`.
const FRAC_PI_2_REST: f64 = 6.123_233_995_736_766e-17;

pub(super) fn is_expandable(kind: Op) -> bool {
    matches!(kind, Op::MathSin | Op::MathCos | Op::MathPowf)
}

/// The value of the operation; `None` for types other than `f32` and vectors of it.
pub(super) fn expand<'c>(builder: Builder<'c>, kind: Op, operands: &[Val<'c>]) -> Option<Val<'c>> {
    let wide = Wide::new(builder, operands.first()?.r#type())?;
    match (kind, operands) {
        (Op::MathSin, &[x]) => Some(wide.sin(x)),
        (Op::MathCos, &[x]) => Some(wide.cos(x)),
        (Op::MathPowf, &[x, y]) => Some(wide.powf(x, y)),
        _ => None,
    }
}

/// Builds operations on one shape of values.
struct Wide<'c> {
    builder: Builder<'c>,
    f32: Type<'c>,
    f64: Type<'c>,
    i64: Type<'c>,
    i1: Type<'c>,
}

impl<'c> Wide<'c> {
    fn new(builder: Builder<'c>, ty: Type<'c>) -> Option<Self> {
        let f32 = element_of(ty);
        // SAFETY: the type is alive.
        let fits = ty == f32 || unsafe { mlir_sys::mlirTypeIsAVector(ty.to_raw()) };
        if !f32.is_f32() || !fits {
            return None;
        }
        let of = |element| with_element(ty, element);
        Some(Wide {
            builder,
            f32: ty,
            f64: of(builder.f64()),
            i64: of(builder.i64()),
            i1: of(builder.i1()),
        })
    }

    fn sin(&self, x: Val<'c>) -> Val<'c> {
        let angle = self.reduce(x);
        let odd = self.or(self.is(angle.quadrant, 1.0), self.is(angle.quadrant, 3.0));
        let negative = self.compare(CmpfPredicate::Oge, angle.quadrant, self.constant(2.0));
        let result = self.select(odd, angle.cos, angle.sin);
        let result = self.narrow(self.negate_if(negative, result));
        // The reduction forgets the sign of zero.
        let zero = self.is(self.widen(x), 0.0);
        self.select(zero, x, result)
    }

    fn cos(&self, x: Val<'c>) -> Val<'c> {
        let angle = self.reduce(x);
        let odd = self.or(self.is(angle.quadrant, 1.0), self.is(angle.quadrant, 3.0));
        let negative = self.or(self.is(angle.quadrant, 1.0), self.is(angle.quadrant, 2.0));
        let result = self.select(odd, angle.sin, angle.cos);
        self.narrow(self.negate_if(negative, result))
    }

    fn powf(&self, x: Val<'c>, y: Val<'c>) -> Val<'c> {
        let (x, y) = (self.widen(x), self.widen(y));
        let (zero, one) = (self.constant(0.0), self.constant(1.0));
        let base = self.builder.absf(x);

        // 2^(y log2 |x|). A base of one stays one, even to the power of infinity.
        let exponent = self.mul(y, self.log2(base));
        let exponent = self.select(
            self.is(base, 1.0),
            self.select(self.is_nan(y), y, zero),
            exponent,
        );
        let result = self.exp2(exponent);

        // A negative base: the sign is that of an odd power, and other powers are not real.
        let half = self.mul(y, self.constant(0.5));
        let whole = self.compare(CmpfPredicate::Oeq, self.builder.floor(y), y);
        let even = self.compare(CmpfPredicate::Oeq, self.builder.floor(half), half);
        let odd = self.select(even, self.boolean(false), whole);
        let signed = self.unary_copysign(result, x);
        let result = self.select(odd, signed, result);
        let finite = self.compare(CmpfPredicate::Ogt, x, self.constant(f64::NEG_INFINITY));
        let negative = self.and(finite, self.compare(CmpfPredicate::Olt, x, zero));
        let unreal = self.select(whole, self.boolean(false), negative);
        let result = self.select(unreal, self.constant(f64::NAN), result);

        let trivial = self.or(self.is(x, 1.0), self.is(y, 0.0));
        self.narrow(self.select(trivial, one, result))
    }

    /// Brings an angle to within π/4 of a multiple of π/2.
    fn reduce(&self, x: Val<'c>) -> Angle<'c> {
        let x = self.widen(x);
        let turns = self
            .builder
            .roundeven(self.mul(x, self.constant(FRAC_2_PI)));
        let back = self.builder.negf(turns);
        let rest = self.fma(back, self.constant(FRAC_PI_2), x);
        let rest = self.fma(back, self.constant(FRAC_PI_2_REST), rest);
        let rest = self
            .builder
            .minimumf(rest, self.constant(FRAC_PI_4 * 1.001));
        let rest = self
            .builder
            .maximumf(rest, self.constant(-FRAC_PI_4 * 1.001));
        let fours = self.builder.floor(self.mul(turns, self.constant(0.25)));
        let quadrant = self.fma(fours, self.constant(-4.0), turns);

        let square = self.mul(rest, rest);
        let sin = self.polynomial(square, &taylor(1, 8));
        let cos = self.polynomial(square, &taylor(0, 8));
        Angle {
            quadrant,
            sin: self.mul(rest, sin),
            cos,
        }
    }

    /// The binary logarithm of a value that is not negative.
    fn log2(&self, value: Val<'c>) -> Val<'c> {
        const MANTISSA: i64 = (1 << 52) - 1;
        let bits = self.builder.bitcast(value, self.i64);
        let exponent = self.builder.shrui(bits, self.integer(52));
        let exponent = self.builder.subi(exponent, self.integer(1023));
        let exponent = self.builder.sitofp(exponent, self.f64);
        let fraction = self.builder.andi(bits, self.integer(MANTISSA));
        let fraction = self.builder.ori(fraction, self.integer(1023 << 52));
        let fraction = self.builder.bitcast(fraction, self.f64);

        // From [1, 2) to [√½, √2), where the series converges fast.
        let large = self.compare(
            CmpfPredicate::Ogt,
            fraction,
            self.constant(std::f64::consts::SQRT_2),
        );
        let halved = self.mul(fraction, self.constant(0.5));
        let fraction = self.select(large, halved, fraction);
        let next = self.builder.addf(exponent, self.constant(1.0));
        let exponent = self.select(large, next, exponent);

        // ln m = 2 artanh((m - 1) / (m + 1))
        let above = self.builder.addf(fraction, self.constant(-1.0));
        let below = self.builder.addf(fraction, self.constant(1.0));
        let ratio = self.builder.divf(above, below);
        let series: Vec<f64> = (0..9)
            .map(|term| 2.0 / LN_2 / f64::from(2 * term + 1))
            .collect();
        let sum = self.polynomial(self.mul(ratio, ratio), &series);
        let result = self.fma(ratio, sum, exponent);

        // Infinity and NaN are their own logarithms; zero's is minus infinity.
        let finite = self.compare(CmpfPredicate::Olt, value, self.constant(f64::INFINITY));
        let result = self.select(finite, result, value);
        self.select(
            self.is(value, 0.0),
            self.constant(f64::NEG_INFINITY),
            result,
        )
    }

    /// Two to a power; far outside what `f32` holds, the nearest that is still told apart.
    fn exp2(&self, power: Val<'c>) -> Val<'c> {
        let clamped = self.builder.minimumf(power, self.constant(300.0));
        let clamped = self.builder.maximumf(clamped, self.constant(-300.0));
        // The bits of a NaN mean nothing below, so it waits outside.
        let nan = self.is_nan(power);
        let clamped = self.select(nan, self.constant(0.0), clamped);
        let whole = self.builder.roundeven(clamped);
        let rest = self.builder.subf(clamped, whole);
        let series: Vec<f64> = (0..13)
            .map(|term| LN_2.powi(term) / factorial(term))
            .collect();
        let fraction = self.polynomial(rest, &series);
        let exponent = self.builder.fptosi(whole, self.i64);
        let exponent = self.builder.addi(exponent, self.integer(1023));
        let scale = self.builder.shli(exponent, self.integer(52));
        let scale = self.builder.bitcast(scale, self.f64);
        self.select(nan, power, self.mul(fraction, scale))
    }

    /// The sum of `coefficients[i] · x^i`, from the highest power down.
    fn polynomial(&self, x: Val<'c>, coefficients: &[f64]) -> Val<'c> {
        let mut descending = coefficients.iter().rev();
        let highest = descending.next().copied().unwrap_or_default();
        descending.fold(self.constant(highest), |sum, coefficient| {
            self.fma(sum, x, self.constant(*coefficient))
        })
    }

    fn widen(&self, x: Val<'c>) -> Val<'c> {
        self.builder.extf(x, self.f64)
    }

    fn narrow(&self, x: Val<'c>) -> Val<'c> {
        self.builder.truncf(x, self.f32)
    }

    fn mul(&self, x: Val<'c>, y: Val<'c>) -> Val<'c> {
        self.builder.mulf(x, y)
    }

    fn fma(&self, x: Val<'c>, y: Val<'c>, z: Val<'c>) -> Val<'c> {
        self.builder.fma(x, y, z)
    }

    fn unary_copysign(&self, magnitude: Val<'c>, sign: Val<'c>) -> Val<'c> {
        self.builder.copysign(magnitude, sign)
    }

    fn negate_if(&self, condition: Val<'c>, x: Val<'c>) -> Val<'c> {
        self.select(condition, self.builder.negf(x), x)
    }

    fn select(&self, condition: Val<'c>, yes: Val<'c>, no: Val<'c>) -> Val<'c> {
        self.builder.select(condition, yes, no)
    }

    fn or(&self, x: Val<'c>, y: Val<'c>) -> Val<'c> {
        self.builder.ori(x, y)
    }

    fn and(&self, x: Val<'c>, y: Val<'c>) -> Val<'c> {
        self.builder.andi(x, y)
    }

    fn is(&self, x: Val<'c>, value: f64) -> Val<'c> {
        self.compare(CmpfPredicate::Oeq, x, self.constant(value))
    }

    fn is_nan(&self, x: Val<'c>) -> Val<'c> {
        self.compare(CmpfPredicate::Uno, x, x)
    }

    fn compare(&self, predicate: CmpfPredicate, x: Val<'c>, y: Val<'c>) -> Val<'c> {
        self.builder.cmpf(predicate, x, y)
    }

    fn constant(&self, value: f64) -> Val<'c> {
        self.builder.float(value, self.f64)
    }

    fn integer(&self, value: i64) -> Val<'c> {
        self.builder.integer(value, self.i64)
    }

    fn boolean(&self, value: bool) -> Val<'c> {
        self.builder.integer(i64::from(value), self.i1)
    }
}

/// An angle near a multiple of π/2: which one modulo four, and the functions of the rest.
struct Angle<'c> {
    quadrant: Val<'c>,
    sin: Val<'c>,
    cos: Val<'c>,
}

/// The alternating series `1/first! - x/(first + 2)! + …`.
fn taylor(first: i32, terms: i32) -> Vec<f64> {
    (0..terms)
        .map(|term| (-1f64).powi(term) / factorial(first + 2 * term))
        .collect()
}

fn factorial(number: i32) -> f64 {
    (1..=number).map(f64::from).product()
}
