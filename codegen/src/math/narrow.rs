//! `exp`, `tanh` and `erf` on `f32`, in as few operations as they take.
//!
//! The first two make most of a recurrent cell's pointwise work, and `erf` that of an encoder's, where the
//! number of operations is what counts. `tanh` is Eigen's rational one, as in MLIR; `exp` has Cephes' reduction
//! and a minimax polynomial of one degree less. What is left out of MLIR's expansions is a second clamp that the
//! first makes needless, a branch of `tanh` for arguments near zero, where the quotient is accurate
//! anyway, and the negation in `e^-x`, which goes into the coefficients. `erf` is one polynomial, where MLIR has
//! quotients of three pairs, whose coefficients each element selects.

use cohort_dialects::builder::{
    Builder, CmpfPredicate, Op, Val, element_of, operands_of, with_element,
};
use melior::ir::{OperationRef, Type, TypeLike, ValueLike};

/// Below and above, `exp` is zero and infinite.
const EXP_RANGE: (f32, f32) = (-87.8, 88.8);

/// What `ln 2` is in two parts, the first with few bits; negated.
const LN_2: (f32, f32) = (-0.693_359_4, 2.121_944_4e-4);
/// `e^x` for `|x| <= ln 2 / 2`, relative error below 2^-28, highest power first.
const EXP: [f32; 7] = [
    1.381_454e-3,
    8.368_745e-3,
    4.166_839e-2,
    0.166_665_21,
    0.499_999_94,
    1.0,
    1.0,
];
/// Beyond, `tanh` is one to the last bit.
const TANH_LIMIT: f32 = 7.998_811_7;
/// Eigen's `tanh(x) / x` as a quotient of polynomials in `x²`, highest power first.
const TANH_OVER: [f32; 7] = [
    -2.760_768_4e-16,
    2.000_188e-13,
    -8.604_672e-11,
    5.122_297_3e-8,
    1.485_722_35e-5,
    6.372_619_5e-4,
    4.893_524_6e-3,
];
const TANH_UNDER: [f32; 4] = [1.198_258_4e-6, 1.185_347_1e-4, 2.268_434_7e-3, 4.893_525e-3];
/// Beyond, `erf` is one to 1.7 units in the last place.
const ERF_LIMIT: f32 = 3.77;
/// What takes `x²` up to the limit to between -1 and 1, where the powers of a polynomial do not cancel each other; the
/// one is subtracted.
const ERF_SCALE: f32 = 0.140_717_24;
/// `erf(x) / x` as a polynomial in that, highest power first. Of the minimax polynomial's neighbours it is one that is 1
/// at the limit, and nowhere more where multiply-adds are fused.
const ERF: [f32; 15] = [
    9.536_89e-4,
    -2.419_614_5e-3,
    2.005_254_4e-3,
    -3.076_867_7e-3,
    9.540_722e-3,
    -1.740_696_3e-2,
    2.557_718_8e-2,
    -3.795_54e-2,
    5.423_418e-2,
    -7.199_088_5e-2,
    9.078_516e-2,
    -0.111_645_28,
    0.138_657_63,
    -0.187_068_55,
    0.375_061_72,
];

pub(super) fn is_expandable(kind: Op) -> bool {
    matches!(kind, Op::MathExp | Op::MathTanh | Op::MathErf)
}

/// The value of the operation; `None` for types other than `f32` and vectors of it.
pub(super) fn expand<'c>(builder: Builder<'c>, kind: Op, operands: &[Val<'c>]) -> Option<Val<'c>> {
    let [x] = *operands else { return None };
    let narrow = Narrow::new(builder, x.r#type())?;
    match kind {
        Op::MathExp => Some(narrow.exp(x)),
        Op::MathTanh => Some(narrow.tanh(x)),
        Op::MathErf => Some(narrow.erf(x)),
        _ => None,
    }
}

/// Builds operations on one shape of values.
struct Narrow<'c> {
    builder: Builder<'c>,
    f32: Type<'c>,
    i32: Type<'c>,
}

impl<'c> Narrow<'c> {
    fn new(builder: Builder<'c>, ty: Type<'c>) -> Option<Self> {
        let f32 = element_of(ty);
        // SAFETY: the type is alive.
        let fits = ty == f32 || unsafe { mlir_sys::mlirTypeIsAVector(ty.to_raw()) };
        if !f32.is_f32() || !fits {
            return None;
        }
        let of = |element| with_element(ty, element);
        Some(Narrow {
            builder,
            f32: ty,
            i32: of(builder.i32()),
        })
    }

    /// Where the argument is a negation, its sign goes into the constants, where it costs nothing.
    fn exp(&self, x: Val<'c>) -> Val<'c> {
        let (low, high) = EXP_RANGE;
        let (x, sign, low, high) = match negated(x) {
            Some(inner) => (inner, -1.0, -high, -low),
            None => (x, 1.0, low, high),
        };
        let x = self.clamp(x, low, high);
        let turns = self.fma(
            x,
            self.constant(sign * std::f32::consts::LOG2_E),
            self.constant(0.5),
        );
        let turns = self.builder.floor(turns);
        // The clamp leaves -127 ..= 128, and 128 has no place in the exponent's bits.
        let turns = self.at_most(turns, 127.0);
        let rest = self.fma(turns, self.constant(sign * LN_2.0), x);
        let rest = self.fma(turns, self.constant(sign * LN_2.1), rest);
        let degree = EXP.len() - 1;
        let mut series = EXP;
        for (at, coefficient) in series.iter_mut().enumerate() {
            if (degree - at) % 2 == 1 {
                *coefficient *= sign;
            }
        }
        let series = self.polynomial(rest, &series);
        let exponent = self.builder.fptosi(turns, self.i32);
        let exponent = self.integers(Op::ArithAddi, exponent, 127);
        let scale = self.integers(Op::ArithShli, exponent, 23);
        let scale = self.builder.bitcast(scale, self.f32);
        self.builder.mulf(series, scale)
    }

    fn tanh(&self, x: Val<'c>) -> Val<'c> {
        let x = self.clamp(x, -TANH_LIMIT, TANH_LIMIT);
        let square = self.builder.mulf(x, x);
        let over = self.builder.mulf(x, self.polynomial(square, &TANH_OVER));
        self.builder
            .divf(over, self.polynomial(square, &TANH_UNDER))
    }

    fn erf(&self, x: Val<'c>) -> Val<'c> {
        let x = self.clamp(x, -ERF_LIMIT, ERF_LIMIT);
        let square = self.builder.mulf(x, x);
        let place = self.fma(square, self.constant(ERF_SCALE), self.constant(-1.0));
        self.builder.mulf(x, self.polynomial(place, &ERF))
    }

    /// The polynomial with these coefficients, highest power first.
    fn polynomial(&self, x: Val<'c>, coefficients: &[f32]) -> Val<'c> {
        let (highest, rest) = coefficients.split_first().unwrap_or((&0.0, &[]));
        rest.iter()
            .fold(self.constant(*highest), |sum, coefficient| {
                self.fma(sum, x, self.constant(*coefficient))
            })
    }

    /// A NaN stays one.
    fn clamp(&self, x: Val<'c>, low: f32, high: f32) -> Val<'c> {
        let low = self.constant(low);
        let above = self.builder.cmpf(CmpfPredicate::Uge, x, low);
        let x = self.builder.select(above, x, low);
        self.at_most(x, high)
    }

    fn at_most(&self, x: Val<'c>, high: f32) -> Val<'c> {
        let high = self.constant(high);
        let below = self.builder.cmpf(CmpfPredicate::Ule, x, high);
        self.builder.select(below, x, high)
    }

    fn fma(&self, x: Val<'c>, y: Val<'c>, z: Val<'c>) -> Val<'c> {
        self.builder.fma(x, y, z)
    }

    fn integers(&self, kind: Op, x: Val<'c>, y: i64) -> Val<'c> {
        let y = self.builder.integer(y, self.i32);
        self.builder.value(kind, &[x, y], self.i32)
    }

    fn constant(&self, value: f32) -> Val<'c> {
        self.builder.float(f64::from(value), self.f32)
    }
}

/// What a value is the negation of.
fn negated(value: Val<'_>) -> Option<Val<'_>> {
    // SAFETY: the value is alive; whether it is a result is asked before its operation is taken.
    let producer = unsafe {
        let raw = value.to_raw();
        if !mlir_sys::mlirValueIsAOpResult(raw) {
            return None;
        }
        OperationRef::from_raw(mlir_sys::mlirOpResultGetOwner(raw))
    };
    Op::ArithNegf.is(producer).then(|| operands_of(producer)[0])
}
