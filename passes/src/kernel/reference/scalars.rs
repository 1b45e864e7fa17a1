//! Operations on numbers: `arith` and `math`.

/// A number; truth values are 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// A number of any float type.
    Float(f64),
    /// A number of any integer type; a truth value is 0 or 1.
    Int(i64),
}

use Scalar::{Float, Int};
use cohort_dialects::builder::Op;

impl Scalar {
    /// The number as a float.
    pub fn float(self) -> f64 {
        match self {
            Float(number) => number,
            Int(number) => number as f64,
        }
    }

    /// The number as an integer, cut off towards zero.
    pub fn int(self) -> i64 {
        match self {
            Float(number) => number as i64,
            Int(number) => number,
        }
    }

    /// The nearest number of f32.
    pub fn rounded(self) -> Scalar {
        match self {
            Float(number) => Float(f64::from(number as f32)),
            Int(number) => Int(number),
        }
    }

    /// Whether it is not 0.
    pub fn is_true(self) -> bool {
        self.int() != 0
    }
}

/// Bits of the first operand's elements, and of the result's.
#[derive(Clone, Copy, Debug, Default)]
pub struct Widths {
    pub from: u32,
    pub to: u32,
}

/// An operation on the elements of its operands.
pub type Operation = fn(&[Scalar], Widths) -> Scalar;

/// What f32 can hold of a number.
fn in_range(number: f64) -> f64 {
    const LARGEST: f64 = f32::MAX as f64;
    // Half of the least positive number of f32.
    const LEAST: f64 = 7.006_492_321_624_085e-46;
    if number.abs() > LARGEST {
        return f64::INFINITY.copysign(number);
    }
    match number.abs() <= LEAST {
        true => 0.0_f64.copysign(number),
        false => number,
    }
}

fn wrap(number: i64, bits: u32) -> i64 {
    match bits {
        1 => number & 1,
        bits if bits < 64 => number << (64 - bits) >> (64 - bits),
        _ => number,
    }
}

fn unsigned(number: i64, bits: u32) -> u64 {
    match bits {
        bits if bits < 64 => number as u64 & ((1 << bits) - 1),
        _ => number as u64,
    }
}

/// A truth value as a signed number is -1.
fn signed(number: i64, bits: u32) -> i64 {
    match bits {
        1 => -number,
        _ => number,
    }
}

/// What is divided by instead: 1 where the processor would trap, see `lower-kernels`.
fn divisor(x: &[Scalar], bits: u32) -> i64 {
    let least = wrap(1 << (bits.min(63) - 1), bits);
    let traps = x[1].int() == 0 || x[0].int() == least && x[1].int() == -1;
    if traps { 1 } else { x[1].int() }
}

/// A NaN where one is, as IEEE 754's maximum and minimum.
fn either(x: &[Scalar], pick: fn(f64, f64) -> f64) -> f64 {
    let (a, b) = (x[0].float(), x[1].float());
    match a.is_nan() || b.is_nan() {
        true => f64::NAN,
        false => pick(a, b),
    }
}

macro_rules! float {
    (|$x:ident| $result:expr) => {
        |$x: &[Scalar], _: Widths| Float(in_range($result))
    };
}

macro_rules! float_of {
    ($function:expr) => {
        |x: &[Scalar], _: Widths| Float(in_range($function(x[0].float())))
    };
}

macro_rules! int {
    (|$x:ident, $widths:ident| $result:expr) => {
        |$x: &[Scalar], $widths: Widths| Int(wrap($result, $widths.to))
    };
}

macro_rules! truth {
    (|$x:ident, $widths:ident| $result:expr) => {
        |$x: &[Scalar], $widths: Widths| Int(i64::from($result))
    };
}

/// The operation of a name; a comparison also has a predicate.
pub fn operation(kind: Op, predicate: Option<i64>) -> Option<Operation> {
    Some(match kind {
        Op::ArithAddf => float!(|x| x[0].float() + x[1].float()),
        Op::ArithSubf => float!(|x| x[0].float() - x[1].float()),
        Op::ArithMulf => float!(|x| x[0].float() * x[1].float()),
        Op::ArithDivf => float!(|x| x[0].float() / x[1].float()),
        Op::ArithRemf => float!(|x| x[0].float() % x[1].float()),
        Op::ArithNegf => float!(|x| -x[0].float()),
        Op::ArithMaximumf => float!(|x| either(x, f64::max)),
        Op::ArithMinimumf => float!(|x| either(x, f64::min)),
        Op::ArithMaxnumf => float!(|x| x[0].float().max(x[1].float())),
        Op::ArithMinnumf => float!(|x| x[0].float().min(x[1].float())),
        Op::MathFma => float!(|x| x[0].float().mul_add(x[1].float(), x[2].float())),
        Op::MathPowf => float!(|x| x[0].float().powf(x[1].float())),
        Op::MathAtan2 => float!(|x| x[0].float().atan2(x[1].float())),
        Op::MathCopysign => float!(|x| x[0].float().copysign(x[1].float())),
        Op::MathFpowi => float!(|x| x[0].float().powi(x[1].int() as i32)),
        Op::MathRsqrt => float!(|x| 1.0 / x[0].float().sqrt()),
        Op::MathAbsf => float_of!(f64::abs),
        Op::MathAcos => float_of!(f64::acos),
        Op::MathAsin => float_of!(f64::asin),
        Op::MathAtan => float_of!(f64::atan),
        Op::MathCbrt => float_of!(f64::cbrt),
        Op::MathCeil => float_of!(f64::ceil),
        Op::MathCos => float_of!(f64::cos),
        Op::MathCosh => float_of!(f64::cosh),
        Op::MathErf => float_of!(libm::erf),
        Op::MathErfc => float_of!(libm::erfc),
        Op::MathExp => float_of!(f64::exp),
        Op::MathExp2 => float_of!(f64::exp2),
        Op::MathExpm1 => float_of!(f64::exp_m1),
        Op::MathFloor => float_of!(f64::floor),
        Op::MathLog => float_of!(f64::ln),
        Op::MathLog10 => float_of!(f64::log10),
        Op::MathLog1p => float_of!(f64::ln_1p),
        Op::MathLog2 => float_of!(f64::log2),
        Op::MathRound => float_of!(f64::round),
        Op::MathRoundeven => float_of!(f64::round_ties_even),
        Op::MathSin => float_of!(f64::sin),
        Op::MathSinh => float_of!(f64::sinh),
        Op::MathSqrt => float_of!(f64::sqrt),
        Op::MathTan => float_of!(f64::tan),
        Op::MathTanh => float_of!(f64::tanh),
        Op::MathTrunc => float_of!(f64::trunc),

        Op::ArithAddi => int!(|x, w| x[0].int().wrapping_add(x[1].int())),
        Op::ArithSubi => int!(|x, w| x[0].int().wrapping_sub(x[1].int())),
        Op::ArithMuli => int!(|x, w| x[0].int().wrapping_mul(x[1].int())),
        Op::ArithDivsi => int!(|x, w| x[0].int().wrapping_div(divisor(x, w.from))),
        Op::ArithRemsi => int!(|x, w| x[0].int().wrapping_rem(divisor(x, w.from))),
        Op::ArithDivui => {
            int!(
                |x, w| (unsigned(x[0].int(), w.from) / unsigned(divisor(x, w.from), w.from)) as i64
            )
        }
        Op::ArithRemui => {
            int!(
                |x, w| (unsigned(x[0].int(), w.from) % unsigned(divisor(x, w.from), w.from)) as i64
            )
        }
        Op::ArithAndi => int!(|x, w| x[0].int() & x[1].int()),
        Op::ArithOri => int!(|x, w| x[0].int() | x[1].int()),
        Op::ArithXori => int!(|x, w| x[0].int() ^ x[1].int()),
        Op::ArithShli => int!(|x, w| x[0].int().wrapping_shl(x[1].int() as u32)),
        Op::ArithShrsi => int!(|x, w| x[0].int().wrapping_shr(x[1].int() as u32)),
        Op::ArithShrui => {
            int!(|x, w| unsigned(x[0].int(), w.from).wrapping_shr(x[1].int() as u32) as i64)
        }
        Op::ArithMaxsi => int!(|x, w| x[0].int().max(x[1].int())),
        Op::ArithMinsi => int!(|x, w| x[0].int().min(x[1].int())),
        Op::ArithMaxui => {
            int!(|x, w| unsigned(x[0].int(), w.from).max(unsigned(x[1].int(), w.from)) as i64)
        }
        Op::ArithMinui => {
            int!(|x, w| unsigned(x[0].int(), w.from).min(unsigned(x[1].int(), w.from)) as i64)
        }
        Op::MathAbsi => int!(|x, w| x[0].int().wrapping_abs()),
        Op::MathIpowi => int!(|x, w| power(x[0].int(), x[1].int(), w.to)),

        Op::ArithSitofp => float!(|x| x[0].float()),
        Op::ArithUitofp => |x, w| Float(unsigned(x[0].int(), w.from) as f64),
        Op::ArithFptosi => int!(|x, w| match w.to {
            32 => i64::from(x[0].float() as i32),
            _ => x[0].float() as i64,
        }),
        Op::ArithFptoui => int!(|x, w| match w.to {
            32 => i64::from(x[0].float() as u32),
            _ => x[0].float() as u64 as i64,
        }),
        Op::ArithExtsi => int!(|x, w| signed(x[0].int(), w.from)),
        Op::ArithExtui | Op::ArithIndexCastui => int!(|x, w| unsigned(x[0].int(), w.from) as i64),
        Op::ArithTrunci | Op::ArithIndexCast => int!(|x, w| x[0].int()),
        Op::ArithBitcast => |x, _| match x[0] {
            Float(number) => Int(i64::from((number as f32).to_bits() as i32)),
            Int(bits) => Float(f64::from(f32::from_bits(bits as u32))),
        },
        Op::ArithSelect => |x, _| if x[0].is_true() { x[1] } else { x[2] },
        Op::ArithCmpi => compare_integers(predicate?)?,
        Op::ArithCmpf => compare_floats(predicate?)?,
        _ => return None,
    })
}

/// A power that wraps; a negative exponent is one of `1 / base`, 0 but for 1 and -1.
fn power(base: i64, exponent: i64, bits: u32) -> i64 {
    match (base, exponent) {
        (1, _) => 1,
        (-1, exponent) => 1 - 2 * (exponent & 1),
        (_, ..0) => 0,
        (base, exponent) => {
            let (mut result, mut square, mut left) = (1_i64, base, exponent);
            while left > 0 {
                if left & 1 == 1 {
                    result = wrap(result.wrapping_mul(square), bits);
                }
                square = wrap(square.wrapping_mul(square), bits);
                left >>= 1;
            }
            result
        }
    }
}

/// By the number of a predicate of `arith.cmpi`.
fn compare_integers(predicate: i64) -> Option<Operation> {
    Some(match predicate {
        0 => truth!(|x, _w| x[0].int() == x[1].int()),
        1 => truth!(|x, _w| x[0].int() != x[1].int()),
        2 => truth!(|x, w| signed(x[0].int(), w.from) < signed(x[1].int(), w.from)),
        3 => truth!(|x, w| signed(x[0].int(), w.from) <= signed(x[1].int(), w.from)),
        4 => truth!(|x, w| signed(x[0].int(), w.from) > signed(x[1].int(), w.from)),
        5 => truth!(|x, w| signed(x[0].int(), w.from) >= signed(x[1].int(), w.from)),
        6 => truth!(|x, w| unsigned(x[0].int(), w.from) < unsigned(x[1].int(), w.from)),
        7 => truth!(|x, w| unsigned(x[0].int(), w.from) <= unsigned(x[1].int(), w.from)),
        8 => truth!(|x, w| unsigned(x[0].int(), w.from) > unsigned(x[1].int(), w.from)),
        9 => truth!(|x, w| unsigned(x[0].int(), w.from) >= unsigned(x[1].int(), w.from)),
        _ => return None,
    })
}

/// By the number of a predicate of `arith.cmpf`: the ordered ones, then those that a NaN also meets.
fn compare_floats(predicate: i64) -> Option<Operation> {
    fn is_nan(x: &[Scalar]) -> bool {
        x[0].float().is_nan() || x[1].float().is_nan()
    }
    Some(match predicate {
        0 => truth!(|_x, _w| false),
        1 => truth!(|x, _w| x[0].float() == x[1].float()),
        2 => truth!(|x, _w| x[0].float() > x[1].float()),
        3 => truth!(|x, _w| x[0].float() >= x[1].float()),
        4 => truth!(|x, _w| x[0].float() < x[1].float()),
        5 => truth!(|x, _w| x[0].float() <= x[1].float()),
        6 => truth!(|x, _w| !is_nan(x) && x[0].float() != x[1].float()),
        7 => truth!(|x, _w| !is_nan(x)),
        8 => truth!(|x, _w| is_nan(x) || x[0].float() == x[1].float()),
        9 => truth!(|x, _w| is_nan(x) || x[0].float() > x[1].float()),
        10 => truth!(|x, _w| is_nan(x) || x[0].float() >= x[1].float()),
        11 => truth!(|x, _w| is_nan(x) || x[0].float() < x[1].float()),
        12 => truth!(|x, _w| is_nan(x) || x[0].float() <= x[1].float()),
        13 => truth!(|x, _w| x[0].float() != x[1].float()),
        14 => truth!(|x, _w| is_nan(x)),
        15 => truth!(|_x, _w| true),
        _ => return None,
    })
}
