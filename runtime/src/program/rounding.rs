//! Floats rounded as a GPU's conversions round them, to the nearest.

use cohort_abi::gpu::Precision;

/// The bits of a float rounded to tf32; halves go away from zero, and what overflows is infinite
/// (`cvt.rna.tf32.f32`).
pub fn tf32(value: f32) -> u32 {
    if value.is_nan() {
        return 0x7fff_ffff;
    }
    (value.to_bits() + 0x1000) & !0x1fff
}

/// The bits of two floats rounded to bf16 (`cvt.rn.bf16x2.f32`).
pub fn bf16_pair(high: f32, low: f32) -> u32 {
    u32::from(bf16(high)) << 16 | u32::from(bf16(low))
}

/// The bits of a float rounded to bf16; halves go to even.
pub fn bf16(value: f32) -> u16 {
    if value.is_nan() {
        return 0x7fff;
    }
    let bits = value.to_bits();
    ((bits + 0x7fff + (bits >> 16 & 1)) >> 16) as u16
}

/// The words of a matrix in bf16 whose elements `of` gives, column after column, of an even `k`.
pub fn words_by_columns(
    (k, columns): (usize, usize),
    of: impl Fn(usize, usize) -> f32,
) -> impl Iterator<Item = u32> {
    let of_column = k / 2;
    (0..of_column * columns).map(move |word| {
        let (column, row) = (word / of_column, word % of_column * 2);
        bf16_pair(of(row + 1, column), of(row, column))
    })
}

/// The words of a matrix whose elements `of` gives: those of [`cohort_abi::manifest::Constant::Rounded`].
pub fn words(
    precision: Precision,
    (k, columns): (usize, usize),
    of: impl Fn(usize, usize) -> f32,
) -> impl Iterator<Item = u32> {
    let per_word = precision.per_word() as usize;
    (0..k.div_ceil(per_word) * columns).map(move |word| {
        let (row, column) = (word / columns * per_word, word % columns);
        match precision {
            Precision::F32 => of(row, column).to_bits(),
            Precision::Tf32 => tf32(of(row, column)),
            Precision::Bf16 if row + 1 < k => bf16_pair(of(row + 1, column), of(row, column)),
            Precision::Bf16 => bf16_pair(0.0, of(row, column)),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_go_to_even_and_what_is_no_number_stays_none() {
        let bits = [
            (0x3f80_8000, 0x3f80),
            (0x3f81_8000, 0x3f82),
            (0x3f80_8001, 0x3f81),
            (0x7f7f_ffff, 0x7f80),
            (0xff80_0000, 0xff80),
            (0x8000_0000, 0x8000),
            (0x7f80_0001, 0x7fff),
        ];
        for (from, to) in bits {
            assert_eq!(bf16(f32::from_bits(from)), to, "{from:x}");
        }
    }

    #[test]
    fn pairs_are_of_neighbouring_rows() {
        let of = |row: usize, column: usize| (1 + row * 2 + column) as f32;
        let words: Vec<u32> = words(Precision::Bf16, (3, 2), of).collect();
        assert_eq!(words, [0x4040_3f80, 0x4080_4000, 0x40a0, 0x40c0]);
        let words: Vec<u32> = words_by_columns((4, 2), of).collect();
        assert_eq!(words, [0x4040_3f80, 0x40e0_40a0, 0x4080_4000, 0x4100_40c0]);
    }
}
