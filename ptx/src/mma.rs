//! `mma.sync`: what the threads of a warp multiply together, of 16 rows, 8 columns and 8 or 16 of k.
//!
//! Which element is in which register of which lane is said by the *PTX ISA* ("Matrix Fragments for
//! mma.m16n8k8" and "mma.m16n8k16"). How sums are rounded is not: "the accumulation order, rounding and handling
//! of subnormal inputs are unspecified". So it is chosen by [`TensorCores`].

use crate::instruction::Shape;

/// Threads of a warp.
pub const WARP: usize = 32;

const ROWS: usize = 16;
const COLUMNS: usize = 8;

/// How a tensor core adds products to what was there before. Products are exact in each.
///
/// The models of cards are those that measurements found: M. Fasi, N. J. Higham, M. Mikaitis, S. Pranesh, *Numerical
/// behavior of NVIDIA tensor cores*, PeerJ Computer Science 7:e330, 2021, and P. Xie, Y. Wang, F. Yang, M. Yang,
/// *MMA-Sim: bit-accurate reference model of tensor cores and matrix cores*, arXiv:2511.10909, 2025. A
/// group of products and the sum before are aligned to the largest exponent among them, cut off at a number of
/// bits below it, added without any further rounding, and the sum is cut off to `f32`. They were not compared with
/// a card here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TensorCores {
    /// In `f64`, from the first of k to the last, rounded once to the nearest `f32`: what the simulator of kernels
    /// that are compiled for the host does.
    #[default]
    Nearest,
    /// Groups of 16 bytes of a factor (4 of tf32, 8 of bf16), 24 bits below the largest exponent.
    Ampere,
    /// Groups of 32 bytes, 25 bits.
    Hopper,
}

/// A lane's registers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lane {
    pub left: [u32; 4],
    pub right: [u32; 2],
    pub sums: [u32; 4],
}

/// Replaces the sums of all lanes.
pub fn multiply(shape: Shape, cores: TensorCores, lanes: &mut [Lane; WARP]) {
    let (left, right) = gather(shape, lanes);
    let depth = depth(shape);
    for (lane, registers) in lanes.iter_mut().enumerate() {
        for (number, sum) in registers.sums.iter_mut().enumerate() {
            let (row, column) = (lane / 4 + number / 2 * 8, lane % 4 * 2 + number % 2);
            let factors = left[row].iter().zip(&right[column]).take(depth);
            let factors: Vec<(f32, f32)> = factors.map(|(a, b)| (*a, *b)).collect();
            *sum = add(shape, cores, f32::from_bits(*sum), &factors).to_bits();
        }
    }
}

fn depth(shape: Shape) -> usize {
    match shape {
        Shape::Tf32 => 8,
        Shape::Bf16 => 16,
    }
}

type Factors<const N: usize> = [[f32; 16]; N];

/// The rows of the left side and the columns of the right one.
fn gather(shape: Shape, lanes: &[Lane; WARP]) -> (Factors<ROWS>, Factors<COLUMNS>) {
    let (mut left, mut right) = ([[0.0; 16]; ROWS], [[0.0; 16]; COLUMNS]);
    for (lane, registers) in lanes.iter().enumerate() {
        let (group, t) = (lane / 4, lane % 4);
        let put = |row: &mut [f32; 16], half: usize, bits: u32| match shape {
            // The hardware reads no more digits.
            Shape::Tf32 => row[t + 4 * half] = f32::from_bits(bits & !0x1fff),
            Shape::Bf16 => {
                row[2 * t + 8 * half] = f32::from_bits(bits << 16);
                row[2 * t + 8 * half + 1] = f32::from_bits(bits & 0xffff_0000);
            }
        };
        for (number, bits) in registers.left.into_iter().enumerate() {
            put(&mut left[group + number % 2 * 8], number / 2, bits);
        }
        for (number, bits) in registers.right.into_iter().enumerate() {
            put(&mut right[group], number, bits);
        }
    }
    (left, right)
}

/// What there was before and the products of all pairs.
pub fn add(shape: Shape, cores: TensorCores, before: f32, factors: &[(f32, f32)]) -> f32 {
    let quarter = depth(shape) / 2;
    let (group, bits) = match cores {
        TensorCores::Nearest => {
            let products = factors.iter().map(|(a, b)| f64::from(*a) * f64::from(*b));
            return products.fold(f64::from(before), |sum, product| sum + product) as f32;
        }
        TensorCores::Ampere => (quarter, 24),
        TensorCores::Hopper => (2 * quarter, 25),
    };
    let groups = factors.chunks(group);
    groups.fold(before, |sum, group| add_group(sum, group, bits))
}

/// One group of products and the sum before, cut off at a number of bits below the largest exponent.
fn add_group(before: f32, factors: &[(f32, f32)], bits: i32) -> f32 {
    let products = factors.iter().map(|(a, b)| {
        // The exponent of a product is that of its factors together, though it may be one more.
        let exponent = exponent(*a) + exponent(*b);
        (f64::from(*a) * f64::from(*b), exponent)
    });
    let terms: Vec<(f64, i32)> = products
        .chain([(f64::from(before), exponent(before))])
        .collect();
    if terms.iter().any(|(term, _)| !term.is_finite()) {
        // Of what is infinite or no number nothing is cut off.
        let sum: f64 = terms.iter().map(|(term, _)| term).sum();
        return sum as f32;
    }
    let some = terms.iter().filter(|(term, _)| *term != 0.0);
    let Some(largest) = some.map(|(_, exponent)| *exponent).max() else {
        return 0.0;
    };
    // All of this is exact: terms have few bits, and `f64` exponents enough.
    let unit = 2.0_f64.powi(largest - bits);
    let sum: f64 = terms.iter().map(|(term, _)| (term / unit).trunc()).sum();
    toward_zero(sum * unit)
}

/// The exponent as it is stored: that of what is below the normal numbers is the least of these.
fn exponent(value: f32) -> i32 {
    let stored = (value.to_bits() >> 23 & 0xff) as i32;
    stored.max(1) - 127
}

/// The `f32` that is no farther from zero.
fn toward_zero(value: f64) -> f32 {
    let nearest = value as f32;
    match f64::from(nearest).abs() > value.abs() && value.abs() < 2.0_f64.powi(128) {
        true => f32::from_bits(nearest.to_bits() - 1),
        false => nearest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The registers of each lane, as the instruction set lists them.
    #[test]
    fn elements_lie_where_the_instruction_set_says() {
        let a = |row: usize, k: usize| (row * 3 + k) as f32;
        let b = |k: usize, column: usize| (k as f32 - 2.0) * (column + 1) as f32;
        let pair = |low: f32, high: f32| low.to_bits() >> 16 | high.to_bits() & 0xffff_0000;
        for shape in [Shape::Tf32, Shape::Bf16] {
            let mut lanes = [Lane::default(); WARP];
            for (lane, registers) in lanes.iter_mut().enumerate() {
                let (g, t) = (lane / 4, lane % 4);
                let left = |row: usize, half: usize| match shape {
                    Shape::Tf32 => a(row, t + 4 * half).to_bits(),
                    Shape::Bf16 => {
                        let k = 2 * t + 8 * half;
                        pair(a(row, k), a(row, k + 1))
                    }
                };
                let right = |half: usize| match shape {
                    Shape::Tf32 => b(t + 4 * half, g).to_bits(),
                    Shape::Bf16 => {
                        let k = 2 * t + 8 * half;
                        pair(b(k, g), b(k + 1, g))
                    }
                };
                registers.left = [left(g, 0), left(g + 8, 0), left(g, 1), left(g + 8, 1)];
                registers.right = [right(0), right(1)];
                registers.sums = [1.0_f32.to_bits(); 4];
            }
            for cores in [
                TensorCores::Nearest,
                TensorCores::Ampere,
                TensorCores::Hopper,
            ] {
                let mut lanes = lanes;
                multiply(shape, cores, &mut lanes);
                for (lane, registers) in lanes.iter().enumerate() {
                    let (g, t) = (lane / 4, lane % 4);
                    let places = [
                        (g, 2 * t),
                        (g, 2 * t + 1),
                        (g + 8, 2 * t),
                        (g + 8, 2 * t + 1),
                    ];
                    for (sum, (row, column)) in registers.sums.iter().zip(places) {
                        let expected: f32 =
                            (0..depth(shape)).map(|k| a(row, k) * b(k, column)).sum();
                        assert_eq!(f32::from_bits(*sum), 1.0 + expected, "{shape:?} {cores:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn cards_cut_off_what_the_nearest_rounds() {
        let tiny = 2.0_f32.powi(-12);
        let sum = |cores, before: f32, factors: &[(f32, f32)]| {
            let mut all = [(0.0, 0.0); 16];
            all[..factors.len()].copy_from_slice(factors);
            add(Shape::Bf16, cores, before, &all)
        };
        use TensorCores::{Ampere, Hopper, Nearest};
        let ulp = f32::EPSILON;
        // Three quarters of a bit: rounded up, or cut off.
        let most = [(tiny, 2.0_f32.powi(-12)), (tiny, 2.0_f32.powi(-13))];
        assert_eq!(sum(Nearest, 1.0, &most), 1.0 + ulp);
        assert_eq!(sum(Ampere, 1.0, &most), 1.0);
        assert_eq!(sum(Hopper, 1.0, &most), 1.0);
        assert_eq!(sum(Hopper, -1.0, &most), -1.0 + ulp);
        // Quarters of a bit of 1.0: 25 bits below it keep them, 24 do not.
        let quarters = [(tiny, 2.0_f32.powi(-13)); 4];
        assert_eq!(sum(Nearest, 1.0, &quarters), 1.0 + ulp);
        assert_eq!(sum(Hopper, 1.0, &quarters), 1.0 + ulp);
        assert_eq!(sum(Ampere, 1.0, &quarters), 1.0);
        // What is small is lost beside what is large, though that goes away again in the same group.
        let gone = [(1.0, 1.0), (tiny, 2.0_f32.powi(-20)), (-1.0, 1.0)];
        assert_eq!(sum(Nearest, 0.0, &gone), tiny * 2.0_f32.powi(-20));
        assert_eq!(sum(Hopper, 0.0, &gone), 0.0);
    }

    #[test]
    fn the_ends_of_f32_are_kept() {
        let (huge, least) = (f32::MAX, f32::from_bits(1));
        for cores in [
            TensorCores::Nearest,
            TensorCores::Ampere,
            TensorCores::Hopper,
        ] {
            let sum = |before, a, b| add(Shape::Tf32, cores, before, &[(a, b)]);
            assert_eq!(sum(huge, huge, 2.0), f32::INFINITY);
            assert_eq!(sum(1.0, f32::INFINITY, 1.0), f32::INFINITY);
            assert!(sum(f32::INFINITY, f32::NEG_INFINITY, 1.0).is_nan());
            assert!(sum(f32::NAN, 1.0, 1.0).is_nan());
            assert_eq!(sum(least, least, 1.0), 2.0 * least);
            assert_eq!(sum(0.0, 0.0, 5.0), 0.0);
        }
    }
}
