//! What the threads of a warp do together: they exchange values, and multiply.
//!
//! `mma.sync` is of 16 rows, 8 columns and 8 or 16 k. Lane `4g + t` has rows `g` and `g + 8` of the left side, column `g` of the right side, and of the sums
//! rows `g` and `g + 8` at columns `2t` and `2t + 1`; of k, `t` and `t + 4` in tf32, and in bf16 two
//! neighbours a register, `2t` and `2t + 8` the first of them. The products are exact, and their sum with
//! what was there before is rounded once, from `f64`. In which order hardware adds them is not
//! specified.
//!
//! No more terms are added than the instruction has, as `cohort-ptx` does: a zero too many would make 0 of
//! −0. Where a matrix ends before, kernels give zeros themselves. In the models of cards
//! ([`TensorCores`](cohort_ptx::TensorCores)) a sum of zeros is 0 whatever their signs are, so the sign of a
//! zero may be another there.

use crate::program::rounding;

/// Threads of a warp.
pub const WARP: usize = 32;

const ROWS: usize = 16;
const COLUMNS: usize = 8;

/// What a thread waits for the others of its warp for.
pub enum Together {
    Multiply(Product),
    Shuffle(Shuffle),
}

/// What a thread gives, and gets: see [`cohort_abi::gpu::SHUFFLE`].
pub struct Shuffle {
    pub lanes: i64,
    pub value: *mut f32,
}

/// What a thread gives: see [`cohort_abi::gpu::MULTIPLY`].
pub struct Product {
    pub k: i64,
    pub registers: *mut u32,
}

/// The digits of tf32, of which the hardware reads no more.
fn from_tf32(bits: u32) -> f64 {
    f64::from(f32::from_bits(bits & !0x1fff))
}

/// Two of bf16, the first in the lower half.
fn from_bf16_pair(bits: u32) -> [f64; 2] {
    [bits << 16, bits & 0xffff_0000].map(|bits| f64::from(f32::from_bits(bits)))
}

/// Where the elements of a lane's registers are: of k, the first and the second of the right side's two.
fn elements(k: i64, lane: usize, register: u32, which: usize) -> Vec<(usize, f64)> {
    let t = lane % 4;
    match k {
        8 => vec![(t + 4 * which, from_tf32(register))],
        _ => {
            let first = 2 * t + 8 * which;
            let [low, high] = from_bf16_pair(register);
            vec![(first, low), (first + 1, high)]
        }
    }
}

/// Does what the lanes of a warp wait for, given in their order.
///
/// # Safety
///
/// Each lane's registers are its own.
pub unsafe fn run(together: Vec<Together>) -> Result<(), String> {
    let (mut products, mut shuffles) = (vec![], vec![]);
    for own in together {
        match own {
            Together::Multiply(product) => products.push(product),
            Together::Shuffle(shuffle) => shuffles.push(shuffle),
        }
    }
    match (products.len(), shuffles.len()) {
        // SAFETY: the caller's promise.
        (WARP, 0) => unsafe { multiply(&products) },
        // SAFETY: the caller's promise.
        (0, WARP) => unsafe { shuffle(&shuffles) },
        (some, 0) => Err(format!(
            "{some} of the {WARP} threads of a warp multiply, the rest do not"
        )),
        (0, some) => Err(format!(
            "{some} of the {WARP} threads of a warp exchange values, the rest do not"
        )),
        (some, others) => Err(format!(
            "{some} of the {WARP} threads of a warp multiply, {others} exchange values"
        )),
    }
}

/// Gives each lane the value of another one.
///
/// # Safety
///
/// Each lane's value is its own.
unsafe fn shuffle(shuffles: &[Shuffle]) -> Result<(), String> {
    let lanes = shuffles.first().map_or(0, |shuffle| shuffle.lanes);
    let is_other = |shuffle: &Shuffle| shuffle.lanes != lanes;
    if shuffles.iter().any(is_other) || !(0..WARP as i64).contains(&lanes) {
        return Err("the threads of a warp exchange values with lanes that do not".to_owned());
    }
    // SAFETY: the caller's promise.
    let values = shuffles
        .iter()
        .map(|shuffle| unsafe { shuffle.value.read() });
    let values: Vec<f32> = values.collect();
    for (lane, shuffle) in shuffles.iter().enumerate() {
        // SAFETY: as above.
        unsafe { shuffle.value.write(values[lane ^ lanes as usize]) };
    }
    Ok(())
}

/// Multiplies what the lanes of a warp give, in the order of the lanes.
///
/// # Safety
///
/// Each lane's registers are its own.
pub unsafe fn multiply(products: &[Product]) -> Result<(), String> {
    let k = products.first().map_or(0, |product| product.k);
    if products.iter().any(|product| product.k != k) || !matches!(k, 8 | 16) {
        return Err("the threads of a warp multiply different matrices".to_owned());
    }
    let mut left = [[0.0_f64; 16]; ROWS];
    let mut right = [[0.0_f64; 16]; COLUMNS];
    for (lane, product) in products.iter().enumerate() {
        let group = lane / 4;
        // SAFETY: the caller's promise.
        let register = |number: usize| unsafe { product.registers.add(number).read() };
        for number in 0..4 {
            let row = group + number % 2 * 8;
            for (k, value) in elements(k, lane, register(number), number / 2) {
                left[row][k] = value;
            }
        }
        for number in 0..2 {
            for (k, value) in elements(k, lane, register(4 + number), number) {
                right[group][k] = value;
            }
        }
    }
    for (lane, product) in products.iter().enumerate() {
        for number in 0..4 {
            let (row, column) = (lane / 4 + number / 2 * 8, lane % 4 * 2 + number % 2);
            // SAFETY: the caller's promise.
            let place = unsafe { product.registers.add(6 + number) };
            // SAFETY: as above.
            let before = f64::from(f32::from_bits(unsafe { place.read() }));
            let factors = left[row].iter().zip(&right[column]).take(k as usize);
            let sum = factors.fold(before, |sum, (a, b)| sum + a * b) as f32;
            // SAFETY: as above.
            unsafe { place.write(sum.to_bits()) };
        }
    }
    Ok(())
}

/// See [`cohort_abi::gpu::TO_TF32`].
pub extern "C" fn cohort_sim_to_tf32(value: f32) -> u32 {
    rounding::tf32(value)
}

/// See [`cohort_abi::gpu::TO_BF16_PAIR`].
pub extern "C" fn cohort_sim_to_bf16_pair(high: f32, low: f32) -> u32 {
    rounding::bf16_pair(high, low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roundings_are_those_of_the_instructions() {
        let tf32 = |value: f32| f32::from_bits(cohort_sim_to_tf32(value));
        let ulp = 2.0_f32.powi(-10);
        assert_eq!(tf32(1.0 + ulp * 0.49), 1.0);
        assert_eq!(tf32(1.0 + ulp * 0.5), 1.0 + ulp);
        assert_eq!(tf32(-1.0 - ulp * 0.5), -1.0 - ulp);
        assert_eq!(tf32(f32::MAX), f32::INFINITY);
        assert_eq!(tf32(f32::NEG_INFINITY), f32::NEG_INFINITY);
        assert!(tf32(f32::NAN).is_nan());
        let bf16 = |value: f32| f32::from_bits(cohort_sim_to_bf16_pair(value, 0.0));
        let ulp = 2.0_f32.powi(-7);
        assert_eq!(bf16(1.0 + ulp * 0.5), 1.0);
        assert_eq!(bf16(1.0 + ulp * 1.5), 1.0 + ulp * 2.0);
        assert_eq!(bf16(f32::MAX), f32::INFINITY);
        assert!(bf16(f32::NAN).is_nan());
        assert_eq!(cohort_sim_to_bf16_pair(1.0, 2.0), 0x3f80_4000);
    }

    #[test]
    fn sums_of_negative_zeros_are_negative() {
        let zero = (-0.0_f32).to_bits();
        let one = 1.0_f32.to_bits();
        for (k, one) in [(8, one), (16, one >> 16 | one)] {
            let zeros = if k == 8 { zero } else { zero >> 16 | zero };
            let lane = [zeros, zeros, zeros, zeros, one, one, zero, zero, zero, zero];
            let mut registers = [lane; WARP];
            let product = |registers: &mut [u32; 10]| Product {
                k,
                registers: registers.as_mut_ptr(),
            };
            let products: Vec<Product> = registers.iter_mut().map(product).collect();
            // SAFETY: each lane has registers of its own.
            unsafe { multiply(&products).unwrap() };
            assert!(registers.iter().all(|lane| lane[6..] == [zero; 4]), "k {k}");
        }
    }

    #[test]
    fn lanes_exchange_values() {
        let give = |values: &mut [f32], lanes: i64| -> Vec<Together> {
            let shuffle = |value: &mut f32| Together::Shuffle(Shuffle { lanes, value });
            values.iter_mut().map(shuffle).collect()
        };
        let mut values: Vec<f32> = (0..WARP).map(|lane| lane as f32).collect();
        // SAFETY: each lane has a value of its own.
        unsafe { run(give(&mut values, 5)).unwrap() };
        let others: Vec<f32> = (0..WARP).map(|lane| (lane ^ 5) as f32).collect();
        assert_eq!(values, others);
        // SAFETY: as above.
        let some = unsafe { run(give(&mut values[..31], 1)) };
        let message = "31 of the 32 threads of a warp exchange values, the rest do not";
        assert_eq!(some.unwrap_err(), message);
        let mut mixed = give(&mut values, 1);
        mixed.swap_remove(3);
        mixed.push(Together::Multiply(Product {
            k: 8,
            registers: std::ptr::null_mut(),
        }));
        // SAFETY: they are refused before they are looked at.
        let message = unsafe { run(mixed) }.unwrap_err();
        assert!(message.contains("1 of the 32 threads of a warp multiply, 31 exchange"));
        let mut lanes = give(&mut values[..16], 1);
        lanes.extend(give(&mut [0.0; 16], 2));
        // SAFETY: as above.
        assert!(unsafe { run(lanes) }.is_err());
    }

    /// The registers of each lane as the instruction set lists them, for tf32.
    #[test]
    fn a_warp_multiplies() {
        let a = |row: usize, k: usize| (row * 3 + k) as f32;
        let b = |k: usize, column: usize| (k as f32 - 2.0) * (column + 1) as f32;
        let mut registers = [[0_u32; 10]; WARP];
        for (lane, registers) in registers.iter_mut().enumerate() {
            let (g, t) = (lane / 4, lane % 4);
            let floats = [
                a(g, t),
                a(g + 8, t),
                a(g, t + 4),
                a(g + 8, t + 4),
                b(t, g),
                b(t + 4, g),
                1.0,
                1.0,
                1.0,
                1.0,
            ];
            *registers = floats.map(f32::to_bits);
        }
        let products: Vec<Product> = registers
            .iter_mut()
            .map(|registers| Product {
                k: 8,
                registers: registers.as_mut_ptr(),
            })
            .collect();
        // SAFETY: each lane has registers of its own.
        unsafe { multiply(&products).unwrap() };
        for (lane, registers) in registers.iter().enumerate() {
            let (g, t) = (lane / 4, lane % 4);
            for (number, (row, column)) in [
                (g, 2 * t),
                (g, 2 * t + 1),
                (g + 8, 2 * t),
                (g + 8, 2 * t + 1),
            ]
            .into_iter()
            .enumerate()
            {
                let sum: f32 = (0..8).map(|k| a(row, k) * b(k, column)).sum();
                assert_eq!(f32::from_bits(registers[6 + number]), 1.0 + sum);
            }
        }
    }
}
