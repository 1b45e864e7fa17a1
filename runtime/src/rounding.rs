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

/// The bits of two floats rounded to bf16; halves go to even (`cvt.rn.bf16x2.f32`).
pub fn bf16_pair(high: f32, low: f32) -> u32 {
    let [high, low] = [high, low].map(|value| {
        if value.is_nan() {
            return 0x7fff;
        }
        let bits = value.to_bits();
        (bits + 0x7fff + (bits >> 16 & 1)) >> 16
    });
    high << 16 | low
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
    fn pairs_are_of_neighbouring_rows() {
        let of = |row: usize, column: usize| (1 + row * 2 + column) as f32;
        let words: Vec<u32> = words(Precision::Bf16, (3, 2), of).collect();
        assert_eq!(words, [0x4040_3f80, 0x4080_4000, 0x40a0, 0x40c0]);
    }
}
