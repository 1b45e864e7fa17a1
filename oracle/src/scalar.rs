//! One number or truth value, and every operation on them; tensors apply the same, elementwise.

use cohort_frontend::program::{Binary, Elem, Unary};

use crate::error::{ErrorKind, InstanceError};

/// An element of a tensor or a host scalar. An `f32` is held and computed as f64.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// A floating-point number.
    F32(f64),
    /// An integer, which wraps.
    I32(i32),
    /// A truth value.
    Bool(bool),
}

impl Scalar {
    /// Its type.
    pub fn elem(self) -> Elem {
        match self {
            Scalar::F32(_) => Elem::F32,
            Scalar::I32(_) => Elem::I32,
            Scalar::Bool(_) => Elem::Bool,
        }
    }

    /// Zero of a type; of truth values, false.
    pub fn zero(elem: Elem) -> Scalar {
        match elem {
            Elem::F32 => Scalar::F32(0.0),
            Elem::I32 => Scalar::I32(0),
            Elem::Bool => Scalar::Bool(false),
        }
    }

    pub(crate) fn elem_name(self) -> &'static str {
        elem_name(self.elem())
    }
}

pub(crate) fn elem_name(elem: Elem) -> &'static str {
    match elem {
        Elem::F32 => "f32",
        Elem::I32 => "i32",
        Elem::Bool => "bool",
    }
}

pub(crate) fn unary(op: Unary, value: Scalar) -> Result<Scalar, InstanceError> {
    use Scalar::{Bool, F32, I32};
    Ok(match (op, value) {
        (Unary::Neg, F32(x)) => F32(-x),
        (Unary::Neg, I32(x)) => I32(x.wrapping_neg()),
        (Unary::Not, Bool(x)) => Bool(!x),
        (Unary::Abs, F32(x)) => F32(x.abs()),
        (Unary::Abs, I32(x)) => I32(x.wrapping_abs()),
        (Unary::Exp, F32(x)) => F32(x.exp()),
        (Unary::Log, F32(x)) => F32(x.ln()),
        (Unary::Sqrt, F32(x)) => F32(x.sqrt()),
        (Unary::Sin, F32(x)) => F32(x.sin()),
        (Unary::Cos, F32(x)) => F32(x.cos()),
        (Unary::Tanh, F32(x)) => F32(x.tanh()),
        (Unary::Erf, F32(x)) => F32(erf(x)),
        (Unary::Sigmoid, F32(x)) => F32(1.0 / (1.0 + (-x).exp())),
        // Not `x.max(0.0)`, which would hide a NaN.
        (Unary::Relu, F32(x)) => F32(if x < 0.0 { 0.0 } else { x }),
        (Unary::Relu, I32(x)) => I32(x.max(0)),
        _ => {
            return Err(InstanceError::internal(format!(
                "{op:?} does not apply to {}",
                value.elem_name()
            )));
        }
    })
}

pub(crate) fn binary(op: Binary, lhs: Scalar, rhs: Scalar) -> Result<Scalar, InstanceError> {
    use Scalar::{Bool, F32, I32};
    match (lhs, rhs) {
        (F32(a), F32(b)) => binary_f32(op, a, b),
        (I32(a), I32(b)) => binary_i32(op, a, b)?,
        (Bool(a), Bool(b)) => binary_bool(op, a, b),
        _ => None,
    }
    .ok_or_else(|| {
        let (lhs, rhs) = (lhs.elem_name(), rhs.elem_name());
        InstanceError::internal(format!("{op:?} does not apply to {lhs} and {rhs}"))
    })
}

fn binary_f32(op: Binary, a: f64, b: f64) -> Option<Scalar> {
    use Scalar::{Bool, F32};
    Some(match op {
        Binary::Add => F32(a + b),
        Binary::Sub => F32(a - b),
        Binary::Mul => F32(a * b),
        Binary::Div => F32(a / b),
        Binary::Pow => F32(a.powf(b)),
        // NaN wins, unlike in `f64::min` and `f64::max`.
        Binary::Min => F32(if a.is_nan() || a < b { a } else { b }),
        Binary::Max => F32(if a.is_nan() || a > b { a } else { b }),
        Binary::Eq => Bool(a == b),
        Binary::Ne => Bool(a != b),
        Binary::Lt => Bool(a < b),
        Binary::Le => Bool(a <= b),
        Binary::Gt => Bool(a > b),
        Binary::Ge => Bool(a >= b),
        Binary::Rem | Binary::And | Binary::Or => return None,
    })
}

fn binary_i32(op: Binary, a: i32, b: i32) -> Result<Option<Scalar>, InstanceError> {
    use Scalar::{Bool, I32};
    Ok(Some(match op {
        Binary::Add => I32(a.wrapping_add(b)),
        Binary::Sub => I32(a.wrapping_sub(b)),
        Binary::Mul => I32(a.wrapping_mul(b)),
        Binary::Div | Binary::Rem if b == 0 => {
            return Err(InstanceError::new(
                ErrorKind::DivisionByZero,
                format!("{a} is divided by zero"),
            ));
        }
        Binary::Div => I32(a.wrapping_div(b)),
        Binary::Rem => I32(a.wrapping_rem(b)),
        Binary::Pow => I32(power_i32(a, b)),
        Binary::Min => I32(a.min(b)),
        Binary::Max => I32(a.max(b)),
        Binary::Eq => Bool(a == b),
        Binary::Ne => Bool(a != b),
        Binary::Lt => Bool(a < b),
        Binary::Le => Bool(a <= b),
        Binary::Gt => Bool(a > b),
        Binary::Ge => Bool(a >= b),
        Binary::And | Binary::Or => return Ok(None),
    }))
}

fn binary_bool(op: Binary, a: bool, b: bool) -> Option<Scalar> {
    Some(Scalar::Bool(match op {
        Binary::And => a && b,
        Binary::Or => a || b,
        Binary::Eq => a == b,
        Binary::Ne => a != b,
        _ => return None,
    }))
}

/// `base` to the `exponent`, wrapping; a negative exponent is one of `1 / base`, truncated.
fn power_i32(base: i32, exponent: i32) -> i32 {
    match (u32::try_from(exponent), base) {
        (Ok(exponent), _) => base.wrapping_pow(exponent),
        (Err(_), 1) => 1,
        (Err(_), -1) if exponent % 2 == 0 => 1,
        (Err(_), -1) => -1,
        (Err(_), _) => 0,
    }
}

/// Float to integer truncates, and saturates where the integer cannot hold it.
pub(crate) fn cast(value: Scalar, to: Elem) -> Scalar {
    match (value, to) {
        (Scalar::F32(x), Elem::F32) => Scalar::F32(x),
        (Scalar::F32(x), Elem::I32) => Scalar::I32(x as i32),
        (Scalar::F32(x), Elem::Bool) => Scalar::Bool(x != 0.0),
        (Scalar::I32(x), Elem::F32) => Scalar::F32(f64::from(x)),
        (Scalar::I32(x), Elem::I32) => Scalar::I32(x),
        (Scalar::I32(x), Elem::Bool) => Scalar::Bool(x != 0),
        (Scalar::Bool(x), Elem::F32) => Scalar::F32(f64::from(u8::from(x))),
        (Scalar::Bool(x), Elem::I32) => Scalar::I32(i32::from(x)),
        (Scalar::Bool(x), Elem::Bool) => Scalar::Bool(x),
    }
}

/// The error function by the series `2/√π · e^(-x²) · Σ 2^k x^(2k+1) / (1·3·…·(2k+1))`, whose
/// terms all have the same sign: nothing cancels, and the sum is good to a few units in the last place.
fn erf(x: f64) -> f64 {
    if x.is_nan() || x == 0.0 {
        return x;
    }
    // From here on the difference to one is below an f64's resolution.
    if x.abs() > 6.0 {
        return x.signum();
    }
    let mut term = x;
    let mut sum = x;
    let mut odd = 1.0;
    while term.abs() > sum.abs() * 1e-17 {
        odd += 2.0;
        term *= 2.0 * x * x / odd;
        sum += term;
    }
    std::f64::consts::FRAC_2_SQRT_PI * (-x * x).exp() * sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn erf_agrees_with_tables() {
        for (x, expected) in [
            (0.0, 0.0),
            (0.1, 0.112_462_916_018_284_89),
            (0.5, 0.520_499_877_813_046_5),
            (-1.0, -0.842_700_792_949_714_9),
            (2.0, 0.995_322_265_018_952_7),
            (3.5, 0.999_999_256_901_627_7),
            (7.0, 1.0),
        ] {
            assert!((erf(x) - expected).abs() < 4e-15, "erf({x}) is {}", erf(x));
        }
        assert!(erf(f64::NAN).is_nan());
    }

    #[test]
    fn integers_wrap() {
        let max = Scalar::I32(i32::MAX);
        assert_eq!(
            binary(Binary::Add, max, Scalar::I32(1)),
            Ok(Scalar::I32(i32::MIN))
        );
        let min = Scalar::I32(i32::MIN);
        assert_eq!(binary(Binary::Div, min, Scalar::I32(-1)), Ok(min));
        assert_eq!(
            binary(Binary::Rem, Scalar::I32(-7), Scalar::I32(3)),
            Ok(Scalar::I32(-1))
        );
        assert_eq!(unary(Unary::Abs, min), Ok(min));
    }

    #[test]
    fn division_of_integers_by_zero_is_an_error_and_of_floats_is_not() {
        let error = binary(Binary::Rem, Scalar::I32(3), Scalar::I32(0)).unwrap_err();
        assert_eq!(error.kind, ErrorKind::DivisionByZero);
        let infinite = binary(Binary::Div, Scalar::F32(3.0), Scalar::F32(0.0));
        assert_eq!(infinite, Ok(Scalar::F32(f64::INFINITY)));
    }

    #[test]
    fn nan_is_not_lost_in_min_max_and_relu() {
        let nan = Scalar::F32(f64::NAN);
        let one = Scalar::F32(1.0);
        for result in [
            binary(Binary::Min, nan, one),
            binary(Binary::Min, one, nan),
            binary(Binary::Max, nan, one),
            binary(Binary::Max, one, nan),
            unary(Unary::Relu, nan),
        ] {
            assert!(
                matches!(result, Ok(Scalar::F32(x)) if x.is_nan()),
                "{result:?}"
            );
        }
    }

    #[test]
    fn casts_truncate_and_saturate() {
        assert_eq!(cast(Scalar::F32(-2.7), Elem::I32), Scalar::I32(-2));
        assert_eq!(cast(Scalar::F32(1e20), Elem::I32), Scalar::I32(i32::MAX));
        assert_eq!(cast(Scalar::Bool(true), Elem::F32), Scalar::F32(1.0));
        assert_eq!(cast(Scalar::I32(5), Elem::Bool), Scalar::Bool(true));
    }
}
