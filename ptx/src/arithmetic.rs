//! What instructions compute of registers alone, as functions of bits.
//!
//! A register's bits above its width are 0, and so are those of a result. Results of `f32` and `f64` that are not a
//! number have the bits that a card gives them.

use crate::instruction::Compute::{self, Binary, Ternary, Unary};

/// An instruction of arithmetic: what it computes, and how many bits its result and its operands have (1 for
/// predicates).
#[derive(Clone, Copy, Debug)]
pub struct Arithmetic {
    pub compute: Compute,
    pub to: u32,
    pub from: [u32; 3],
}

fn f32_of(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

fn bits_of(value: f32) -> u64 {
    match value.is_nan() {
        true => 0x7fff_ffff,
        false => u64::from(value.to_bits()),
    }
}

fn f64_of(bits: u64) -> f64 {
    f64::from_bits(bits)
}

fn bits_of_f64(value: f64) -> u64 {
    match value.is_nan() {
        true => 0x7fff_ffff_ffff_ffff,
        false => value.to_bits(),
    }
}

/// The instruction of that name, if it is one of arithmetic.
pub fn find(opcode: &str) -> Option<Arithmetic> {
    let (name, rest) = opcode.split_once('.')?;
    let (compute, to, from) = match name {
        "setp" => {
            let (comparison, of) = rest.split_once('.')?;
            let compute = compare(comparison, of)?;
            let bits = width(of)?;
            (compute, 1, [bits; 3])
        }
        "selp" => {
            let bits = width(rest)?;
            let select: fn(u64, u64, u64) -> u64 = |a, b, p| if p != 0 { a } else { b };
            (Ternary(select), bits, [bits, bits, 1])
        }
        "mov" => (Unary(|a| a), width(rest)?, [width(rest)?; 3]),
        "cvt" => convert(rest)?,
        "and" | "or" | "xor" | "not" => {
            let bits = width(rest).filter(|_| rest.starts_with('b') || rest == "pred")?;
            (bitwise(name, bits)?, bits, [bits; 3])
        }
        "shl" | "shr" => {
            let bits = width(rest)?;
            (shift(name, rest)?, bits, [bits, 32, 32])
        }
        "bfe" => {
            let bits = width(rest)?;
            (extract(rest)?, bits, [bits, 32, 32])
        }
        "shf" => (funnel(rest)?, 32, [32; 3]),
        "prmt" if rest == "b32" => (Ternary(permute), 32, [32; 3]),
        _ => {
            if let Some(compute) = float(name, rest) {
                let bits = width(rest.rsplit_once('.').map_or(rest, |(_, of)| of))?;
                (compute, bits, [bits; 3])
            } else {
                let (mode, of) = rest.rsplit_once('.').unwrap_or(("", rest));
                let bits = width(of)?;
                let (to, third) = match mode {
                    "wide" => (2 * bits, 2 * bits),
                    _ => (bits, bits),
                };
                (integer(name, mode, of)?, to, [bits, bits, third])
            }
        }
    };
    Some(Arithmetic { compute, to, from })
}

/// Bits of a type.
pub fn width(of: &str) -> Option<u32> {
    Some(match of {
        "pred" => 1,
        "b8" | "u8" | "s8" => 8,
        "b16" | "u16" | "s16" => 16,
        "b32" | "u32" | "s32" | "f32" => 32,
        "b64" | "u64" | "s64" | "f64" => 64,
        _ => return None,
    })
}

fn bitwise(name: &str, bits: u32) -> Option<Compute> {
    Some(match (name, bits) {
        ("and", _) => Binary(|a, b| a & b),
        ("or", _) => Binary(|a, b| a | b),
        ("xor", _) => Binary(|a, b| a ^ b),
        ("not", 1) => Unary(|a| a ^ 1),
        ("not", 16) => Unary(|a| u64::from(!(a as u16))),
        ("not", 32) => Unary(|a| u64::from(!(a as u32))),
        ("not", 64) => Unary(|a| !a),
        _ => return None,
    })
}

/// Shifts by more than there are bits shift all of them out.
fn shift(name: &str, of: &str) -> Option<Compute> {
    macro_rules! by {
        ($signed:ty, $unsigned:ty) => {
            |a, n| {
                let n = (n as u32).min(<$unsigned>::BITS);
                let half = n / 2;
                // In two steps, neither of which is by all bits.
                ((a as $signed >> half >> (n - half)) as $unsigned).into()
            }
        };
    }
    Some(match (name, of) {
        ("shl", "b16") => Binary(|a, n| (a << (n as u32).min(16)) & 0xffff),
        ("shl", "b32") => Binary(|a, n| (a << (n as u32).min(32)) & 0xffff_ffff),
        ("shl", "b64") => Binary(|a, n| a.checked_shl(n as u32).unwrap_or(0)),
        ("shr", "u16" | "b16") => Binary(by!(u16, u16)),
        ("shr", "u32" | "b32") => Binary(by!(u32, u32)),
        ("shr", "u64" | "b64") => Binary(by!(u64, u64)),
        ("shr", "s16") => Binary(by!(i16, u16)),
        ("shr", "s32") => Binary(by!(i32, u32)),
        ("shr", "s64") => Binary(by!(i64, u64)),
        _ => return None,
    })
}

/// A word of two that are shifted together: to the left the upper one, to the right the lower one.
fn funnel(of: &str) -> Option<Compute> {
    fn left(low: u64, high: u64, by: u64) -> u64 {
        (high << 32 | low) << by >> 32 & 0xffff_ffff
    }
    fn right(low: u64, high: u64, by: u64) -> u64 {
        (high << 32 | low) >> by & 0xffff_ffff
    }
    Some(match of {
        "l.wrap.b32" => Ternary(|low, high, by| left(low, high, by & 31)),
        "r.wrap.b32" => Ternary(|low, high, by| right(low, high, by & 31)),
        "l.clamp.b32" => Ternary(|low, high, by| left(low, high, by.min(32))),
        "r.clamp.b32" => Ternary(|low, high, by| right(low, high, by.min(32))),
        _ => return None,
    })
}

/// Bits from a position on, as a number without a sign, or with that of its highest bit, which is the value's own
/// where the bits go beyond it.
fn extract(of: &str) -> Option<Compute> {
    fn bits(a: u64, position: u64, length: u64) -> u64 {
        let (position, length) = (position as u32 & 0xff, length as u32 & 0xff);
        a.checked_shr(position).unwrap_or(0) & ones(length)
    }
    fn signed<const WIDTH: u32>(a: u64, position: u64, length: u64) -> u64 {
        let (from, count) = (position as u32 & 0xff, length as u32 & 0xff);
        let found = bits(a, position, length);
        let highest = (from + count).saturating_sub(1).min(WIDTH - 1);
        match count > 0 && a >> highest & 1 == 1 {
            // Those of the field that the value has; all above them are like its highest.
            true => (found | !ones(count.min(WIDTH.saturating_sub(from)))) & ones(WIDTH),
            false => found,
        }
    }
    fn ones(count: u32) -> u64 {
        1_u64.checked_shl(count).map_or(u64::MAX, |one| one - 1)
    }
    Some(match of {
        "u32" | "u64" => Ternary(bits),
        "s32" => Ternary(signed::<32>),
        "s64" => Ternary(signed::<64>),
        _ => return None,
    })
}

/// Four bytes, each of which four bits of the selector choose: the lower three say which of the eight bytes of `b` and
/// `a`, those of `a` being the lowest, and the fourth whether the chosen byte's sign is to fill it.
fn permute(a: u64, b: u64, selector: u64) -> u64 {
    let bytes = b << 32 | a;
    let chosen = |byte: u32| {
        let choice = selector >> (4 * byte);
        let value = (bytes >> (8 * (choice & 7))) as u8;
        let value = match choice & 8 {
            0 => value,
            _ => (value as i8 >> 7) as u8,
        };
        u64::from(value) << (8 * byte)
    };
    (0..4).map(chosen).sum()
}

fn compare(comparison: &str, of: &str) -> Option<Compute> {
    use std::cmp::Ordering::{Equal, Greater, Less};
    macro_rules! integers {
        ($type:ty) => {
            match comparison {
                "eq" => Binary(|a, b| (a as $type == b as $type).into()),
                "ne" => Binary(|a, b| (a as $type != b as $type).into()),
                "lt" => Binary(|a, b| ((a as $type) < b as $type).into()),
                "le" => Binary(|a, b| (a as $type <= b as $type).into()),
                "gt" => Binary(|a, b| (a as $type > b as $type).into()),
                "ge" => Binary(|a, b| (a as $type >= b as $type).into()),
                _ => return None,
            }
        };
    }
    // Those that end in `u` are true where a number is missing, too.
    macro_rules! floats {
        ($of:ident: $($name:literal => $holds:pat,)*) => {
            match comparison {
                $($name => Binary(|a, b| matches!($of(a).partial_cmp(&$of(b)), $holds).into()),)*
                "num" => Binary(|a, b| $of(a).partial_cmp(&$of(b)).is_some().into()),
                "nan" => Binary(|a, b| $of(a).partial_cmp(&$of(b)).is_none().into()),
                _ => return None,
            }
        };
        ($of:ident) => {
            floats! { $of:
                "eq" => Some(Equal),
                "ne" => Some(Less | Greater),
                "lt" => Some(Less),
                "le" => Some(Less | Equal),
                "gt" => Some(Greater),
                "ge" => Some(Greater | Equal),
                "equ" => None | Some(Equal),
                "neu" => None | Some(Less | Greater),
                "ltu" => None | Some(Less),
                "leu" => None | Some(Less | Equal),
                "gtu" => None | Some(Greater),
                "geu" => None | Some(Greater | Equal),
            }
        };
    }
    let is_equality = matches!(comparison, "eq" | "ne");
    Some(match of {
        "u16" => integers!(u16),
        "u32" => integers!(u32),
        "u64" => integers!(u64),
        "s16" => integers!(i16),
        "s32" => integers!(i32),
        "s64" => integers!(i64),
        "b16" if is_equality => integers!(u16),
        "b32" if is_equality => integers!(u32),
        "b64" if is_equality => integers!(u64),
        "f32" => floats!(f32_of),
        "f64" => floats!(f64_of),
        _ => return None,
    })
}

fn integer(name: &str, mode: &str, of: &str) -> Option<Compute> {
    // Of division by zero the result is not said; it is all ones here, and the remainder the number itself.
    macro_rules! operations {
        ($type:ty, $unsigned:ty, $wide:ty, $unsigned_wide:ty) => {
            match (name, mode) {
                ("add", "") => {
                    Binary(|a, b| ((a as $type).wrapping_add(b as $type) as $unsigned).into())
                }
                ("sub", "") => {
                    Binary(|a, b| ((a as $type).wrapping_sub(b as $type) as $unsigned).into())
                }
                ("mul", "lo") => {
                    Binary(|a, b| ((a as $type).wrapping_mul(b as $type) as $unsigned).into())
                }
                ("mul", "hi") => Binary(|a, b| {
                    let product = (a as $type as $wide) * (b as $type as $wide);
                    ((product >> <$type>::BITS) as $unsigned).into()
                }),
                ("mul", "wide") if <$type>::BITS < 64 => Binary(|a, b| {
                    ((a as $type as $wide) * (b as $type as $wide)) as $unsigned_wide as u64
                }),
                ("mad", "lo") => Ternary(|a, b, c| {
                    let product = (a as $type).wrapping_mul(b as $type);
                    (product.wrapping_add(c as $type) as $unsigned).into()
                }),
                ("mad", "wide") if <$type>::BITS < 64 => Ternary(|a, b, c| {
                    let product = (a as $type as $wide) * (b as $type as $wide);
                    product.wrapping_add(c as $wide) as $unsigned_wide as u64
                }),
                ("div", "") => Binary(|a, b| match b as $type {
                    0 => <$unsigned>::MAX.into(),
                    b => ((a as $type).wrapping_div(b) as $unsigned).into(),
                }),
                ("rem", "") => Binary(|a, b| match b as $type {
                    0 => (a as $unsigned).into(),
                    b => ((a as $type).wrapping_rem(b) as $unsigned).into(),
                }),
                ("min", "") => Binary(|a, b| ((a as $type).min(b as $type) as $unsigned).into()),
                ("max", "") => Binary(|a, b| ((a as $type).max(b as $type) as $unsigned).into()),
                // What is below zero is zero.
                ("min", "relu") if <$type>::MIN != 0 => {
                    Binary(|a, b| ((a as $type).min(b as $type).max(0) as $unsigned).into())
                }
                ("max", "relu") if <$type>::MIN != 0 => {
                    Binary(|a, b| ((a as $type).max(b as $type).max(0) as $unsigned).into())
                }
                ("abs", "") if <$type>::MIN != 0 => Unary(|a| {
                    let a = a as $type;
                    (a.max((0 as $type).wrapping_sub(a)) as $unsigned).into()
                }),
                ("neg", "") => Unary(|a| (0 as $type).wrapping_sub(a as $type) as $unsigned as u64),
                _ => return None,
            }
        };
    }
    Some(match of {
        "u16" => operations!(u16, u16, u32, u32),
        "u32" => operations!(u32, u32, u64, u64),
        "u64" => operations!(u64, u64, u128, u128),
        "s16" => operations!(i16, u16, i32, u32),
        "s32" => operations!(i32, u32, i64, u64),
        "s64" => operations!(i64, u64, i128, u128),
        _ => return None,
    })
}

/// The smaller or the larger one, -0 below +0; a number where one is missing, unless that is to be told.
fn extreme<const IS_MAX: bool, const TELLS_NAN: bool>(a: f64, b: f64) -> f64 {
    match (a.is_nan(), b.is_nan()) {
        (true, true) => f64::NAN,
        (true, false) | (false, true) if TELLS_NAN => f64::NAN,
        (true, false) => b,
        (false, true) => a,
        (false, false) if (a.total_cmp(&b).is_lt()) == IS_MAX => b,
        (false, false) => a,
    }
}

fn float(name: &str, rest: &str) -> Option<Compute> {
    macro_rules! extremes_f32 {
        ($is_max:literal, $nan:literal) => {
            Binary(|a, b| {
                bits_of(extreme::<$is_max, $nan>(f32_of(a).into(), f32_of(b).into()) as f32)
            })
        };
    }
    macro_rules! extremes_f64 {
        ($is_max:literal) => {
            Binary(|a, b| bits_of_f64(extreme::<$is_max, false>(f64_of(a), f64_of(b))))
        };
    }
    Some(match (name, rest) {
        ("add", "rn.f32") => Binary(|a, b| bits_of(f32_of(a) + f32_of(b))),
        ("sub", "rn.f32") => Binary(|a, b| bits_of(f32_of(a) - f32_of(b))),
        ("mul", "rn.f32") => Binary(|a, b| bits_of(f32_of(a) * f32_of(b))),
        ("div", "rn.f32") => Binary(|a, b| bits_of(f32_of(a) / f32_of(b))),
        ("rcp", "rn.f32") => Unary(|a| bits_of(1.0 / f32_of(a))),
        ("sqrt", "rn.f32") => Unary(|a| bits_of(f32_of(a).sqrt())),
        ("fma", "rn.f32") => Ternary(|a, b, c| bits_of(f32_of(a).mul_add(f32_of(b), f32_of(c)))),
        ("neg", "f32") => Unary(|a| a ^ 0x8000_0000),
        ("abs", "f32") => Unary(|a| a & 0x7fff_ffff),
        // The sign of the first and the rest of the second.
        ("copysign", "f32") => Binary(|a, b| (a & 0x8000_0000) | (b & 0x7fff_ffff)),
        ("copysign", "f64") => Binary(|a, b| (a & 1 << 63) | (b & !(1 << 63))),
        ("min", "f32") => extremes_f32!(false, false),
        ("max", "f32") => extremes_f32!(true, false),
        ("min", "NaN.f32") => extremes_f32!(false, true),
        ("max", "NaN.f32") => extremes_f32!(true, true),
        ("add", "rn.f64") => Binary(|a, b| bits_of_f64(f64_of(a) + f64_of(b))),
        ("sub", "rn.f64") => Binary(|a, b| bits_of_f64(f64_of(a) - f64_of(b))),
        ("mul", "rn.f64") => Binary(|a, b| bits_of_f64(f64_of(a) * f64_of(b))),
        ("div", "rn.f64") => Binary(|a, b| bits_of_f64(f64_of(a) / f64_of(b))),
        ("fma", "rn.f64") => {
            Ternary(|a, b, c| bits_of_f64(f64_of(a).mul_add(f64_of(b), f64_of(c))))
        }
        ("neg", "f64") => Unary(|a| a ^ 1 << 63),
        ("abs", "f64") => Unary(|a| a & !(1 << 63)),
        ("min", "f64") => extremes_f64!(false),
        ("max", "f64") => extremes_f64!(true),
        _ => return None,
    })
}

/// What is converted how: the function, bits of the result and of the operands.
fn convert(rest: &str) -> Option<(Compute, u32, [u32; 3])> {
    let compute = match rest {
        "rn.bf16x2.f32" => {
            let pair: fn(u64, u64) -> u64 = |high, low| bf16(high) << 16 | bf16(low);
            return Some((Binary(pair), 32, [32; 3]));
        }
        "rna.tf32.f32" => return Some((Unary(tf32), 32, [32; 3])),
        "rn.f32.f64" => Unary(|a| bits_of(f64_of(a) as f32)),
        "f64.f32" => Unary(|a| bits_of_f64(f32_of(a).into())),
        "rmi.f32.f32" => Unary(|a| bits_of(f32_of(a).floor())),
        "rpi.f32.f32" => Unary(|a| bits_of(f32_of(a).ceil())),
        "rni.f32.f32" => Unary(|a| bits_of(f32_of(a).round_ties_even())),
        "rzi.f32.f32" => Unary(|a| bits_of(f32_of(a).trunc())),
        "rmi.f64.f64" => Unary(|a| bits_of_f64(f64_of(a).floor())),
        "rpi.f64.f64" => Unary(|a| bits_of_f64(f64_of(a).ceil())),
        "rni.f64.f64" => Unary(|a| bits_of_f64(f64_of(a).round_ties_even())),
        "rzi.f64.f64" => Unary(|a| bits_of_f64(f64_of(a).trunc())),
        // What is beyond the integers is the nearest of them. What is not a number is 0, or only the highest bit is set where either
        // side has 64 bits.
        "rzi.s64.f32" => Unary(|a| or_highest::<64>(f32_of(a).is_nan(), f32_of(a) as i64 as u64)),
        "rzi.u64.f32" => Unary(|a| or_highest::<64>(f32_of(a).is_nan(), f32_of(a) as u64)),
        "rzi.s32.f64" => {
            Unary(|a| or_highest::<32>(f64_of(a).is_nan(), u64::from(f64_of(a) as i32 as u32)))
        }
        "rzi.u32.f64" => Unary(|a| or_highest::<32>(f64_of(a).is_nan(), (f64_of(a) as u32).into())),
        "rzi.s64.f64" => Unary(|a| or_highest::<64>(f64_of(a).is_nan(), f64_of(a) as i64 as u64)),
        "rzi.u64.f64" => Unary(|a| or_highest::<64>(f64_of(a).is_nan(), f64_of(a) as u64)),
        "rzi.s32.f32" => Unary(|a| u64::from(f32_of(a) as i32 as u32)),
        "rzi.u32.f32" => Unary(|a| u64::from(f32_of(a) as u32)),
        "rn.f32.s32" => Unary(|a| bits_of(a as i32 as f32)),
        "rn.f32.u32" => Unary(|a| bits_of(a as u32 as f32)),
        "rn.f32.s64" => Unary(|a| bits_of(a as i64 as f32)),
        "rn.f32.u64" => Unary(|a| bits_of(a as f32)),
        "rn.f64.s32" => Unary(|a| bits_of_f64((a as i32).into())),
        "rn.f64.u32" => Unary(|a| bits_of_f64((a as u32).into())),
        "rn.f64.s64" => Unary(|a| bits_of_f64(a as i64 as f64)),
        "rn.f64.u64" => Unary(|a| bits_of_f64(a as f64)),
        _ => convert_integer(rest)?,
    };
    let (to, from) = rest.rsplit_once('.')?;
    let to = to.rsplit_once('.').map_or(to, |(_, to)| to);
    Some((compute, width(to)?, [width(from)?; 3]))
}

/// Only the highest of some bits, where a number is missing; the value elsewhere.
fn or_highest<const BITS: u32>(is_nan: bool, value: u64) -> u64 {
    match is_nan {
        true => 1 << (BITS - 1),
        false => value,
    }
}

/// Integers are cut off or lengthened, by their sign where they have one.
fn convert_integer(rest: &str) -> Option<Compute> {
    macro_rules! to {
        ($from:ty, $to:expr) => {
            match $to {
                "u16" | "s16" => Unary(|a| u64::from(a as $from as u16)),
                "u32" | "s32" => Unary(|a| u64::from(a as $from as u32)),
                "u64" | "s64" => Unary(|a| a as $from as u64),
                _ => return None,
            }
        };
    }
    let (to, from) = rest.split_once('.')?;
    Some(match from {
        "u16" => to!(u16, to),
        "u32" => to!(u32, to),
        "u64" => to!(u64, to),
        "s16" => to!(i16, to),
        "s32" => to!(i32, to),
        "s64" => to!(i64, to),
        _ => return None,
    })
}

/// To 11 bits; halves go away from zero, and what overflows is infinite.
fn tf32(bits: u64) -> u64 {
    match f32_of(bits).is_nan() {
        true => 0x7fff_ffff,
        false => u64::from((bits as u32 + 0x1000) & !0x1fff),
    }
}

/// To 8 bits; halves go to even.
fn bf16(bits: u64) -> u64 {
    match f32_of(bits).is_nan() {
        true => 0x7fff,
        false => (bits + 0x7fff + (bits >> 16 & 1)) >> 16,
    }
}

#[cfg(test)]
mod tests;
