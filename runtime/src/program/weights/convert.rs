//! Elements of a weights file in the types that programs have: widened, or narrowed where each one
//! is exact.

use std::borrow::Cow;

use cohort_abi::manifest::Elem;
use half::{bf16, f16};
use safetensors::tensor::Dtype;

/// The type in which a program has elements of a file's type, if there is one.
pub fn elem_of(dtype: Dtype) -> Option<Elem> {
    Some(match dtype {
        Dtype::F32 | Dtype::F16 | Dtype::BF16 | Dtype::F64 => Elem::F32,
        Dtype::I32 | Dtype::I64 => Elem::I32,
        Dtype::BOOL => Elem::Bool,
        _ => return None,
    })
}

/// Whether elements are another type's in the file than in the program.
pub fn is_converted(dtype: Dtype) -> bool {
    matches!(dtype, Dtype::F16 | Dtype::BF16 | Dtype::F64 | Dtype::I64)
}

/// The first element that the program's type has no number for.
#[derive(Debug, PartialEq)]
pub struct Inexact {
    pub position: usize,
    pub value: String,
}

/// The bytes of elements as the program has them.
pub fn converted(bytes: &[u8], dtype: Dtype) -> Result<Cow<'_, [u8]>, Inexact> {
    match dtype {
        Dtype::F16 => each(bytes, |b| Ok(f16::from_le_bytes(b).to_f32().to_le_bytes())),
        Dtype::BF16 => each(bytes, |b| Ok(bf16::from_le_bytes(b).to_f32().to_le_bytes())),
        Dtype::F64 => each(bytes, |b| {
            let value = f64::from_le_bytes(b);
            let narrow = value as f32;
            match f64::from(narrow) == value || value.is_nan() {
                true => Ok(narrow.to_le_bytes()),
                false => Err(format!("{value:?}")),
            }
        }),
        Dtype::I64 => each(bytes, |b| {
            let value = i64::from_le_bytes(b);
            let narrow = i32::try_from(value).map_err(|_| value.to_string())?;
            Ok(narrow.to_le_bytes())
        }),
        _ => Ok(Cow::Borrowed(bytes)),
    }
}

fn each<const SIZE: usize>(
    bytes: &[u8],
    element: impl Fn([u8; SIZE]) -> Result<[u8; 4], String>,
) -> Result<Cow<'_, [u8]>, Inexact> {
    let (elements, _) = bytes.as_chunks::<SIZE>();
    let mut all = Vec::with_capacity(elements.len() * 4);
    for (position, bytes) in elements.iter().enumerate() {
        let converted = element(*bytes).map_err(|value| Inexact { position, value })?;
        all.extend_from_slice(&converted);
    }
    Ok(Cow::Owned(all))
}

#[cfg(test)]
mod tests {
    use super::{Inexact, converted};
    use safetensors::tensor::Dtype;

    fn floats(bytes: &[u8], dtype: Dtype) -> Vec<f32> {
        let bytes = converted(bytes, dtype).expect("every element is exact");
        let (elements, _) = bytes.as_chunks::<4>();
        elements.iter().map(|b| f32::from_le_bytes(*b)).collect()
    }

    fn bytes_of<const SIZE: usize>(elements: &[[u8; SIZE]]) -> Vec<u8> {
        elements.concat()
    }

    #[test]
    fn halves_are_widened_with_all_their_numbers() {
        // 1, the least subnormal, the largest, minus infinity, minus zero.
        let halves: [u16; 5] = [0x3c00, 0x0001, 0x7bff, 0xfc00, 0x8000];
        let found = floats(&bytes_of(&halves.map(u16::to_le_bytes)), Dtype::F16);
        assert_eq!(
            found[..4],
            [1.0, 2f32.powi(-24), 65504.0, f32::NEG_INFINITY]
        );
        assert_eq!(found[4].to_bits(), (-0.0f32).to_bits());
        let brains: [u16; 2] = [0x3f80, 0xff80];
        let found = floats(&bytes_of(&brains.map(u16::to_le_bytes)), Dtype::BF16);
        assert_eq!(found, [1.0, f32::NEG_INFINITY]);
    }

    #[test]
    fn doubles_are_narrowed_where_nothing_is_lost() {
        let exact = [
            0.5,
            -0.0,
            f64::INFINITY,
            f64::from(f32::MIN_POSITIVE) / 2.0,
            f64::NAN,
        ];
        let found = floats(&bytes_of(&exact.map(f64::to_le_bytes)), Dtype::F64);
        assert_eq!(
            found[..4],
            exact[..4].iter().map(|x| *x as f32).collect::<Vec<_>>()
        );
        assert!(found[4].is_nan());
        for inexact in [0.1, 1e300, 1e-300] {
            let bytes = bytes_of(&[0.5, inexact].map(f64::to_le_bytes));
            let value = format!("{inexact:?}");
            let expected = Inexact { position: 1, value };
            assert_eq!(converted(&bytes, Dtype::F64), Err(expected));
        }
    }

    #[test]
    fn long_integers_are_narrowed_where_they_fit() {
        let fitting = [i64::from(i32::MIN), 0, i64::from(i32::MAX)];
        let bytes = bytes_of(&fitting.map(i64::to_le_bytes));
        let expected = bytes_of(&[i32::MIN, 0, i32::MAX].map(i32::to_le_bytes));
        assert_eq!(converted(&bytes, Dtype::I64).as_deref(), Ok(&expected[..]));
        let bytes = bytes_of(&[1, i64::from(i32::MAX) + 1].map(i64::to_le_bytes));
        let value = "2147483648".to_owned();
        let expected = Inexact { position: 1, value };
        assert_eq!(converted(&bytes, Dtype::I64), Err(expected));
    }
}
