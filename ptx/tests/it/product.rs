//! A product of 13 by 33 as the compiler wrote it, `fn main(x: f32[13]) -> f32[33] { x @ w }`, for few rows: in f32
//! and, on tensor cores, in tf32.

use cohort_ptx::{Launch, Memory, Module, Region, TensorCores};

use crate::forward_and_backward;

const IN_F32: &str = include_str!("product.f32.ptx");
const IN_TF32: &str = include_str!("product.tf32.ptx");
const K: usize = 13;
const COLUMNS: usize = 33;

fn numbers(count: usize, first: usize) -> Vec<f32> {
    let number = |at: usize| ((first + at) * 2_654_435_761 % 2003) as f32 / 1000.0 - 1.0;
    (0..count).map(number).collect()
}

fn bytes(words: impl IntoIterator<Item = u32>) -> Vec<u8> {
    words.into_iter().flat_map(u32::to_le_bytes).collect()
}

fn tf32(value: f32) -> f32 {
    f32::from_bits((value.to_bits() + 0x1000) & !0x1fff)
}

/// Rows of the product as the text computes them.
fn run(text: &str, x: &[f32], w: &[f32]) -> Vec<u32> {
    let rows = x.len() / K;
    let module = Module::parse(text).expect("PTX");
    let mut x = bytes(x.iter().map(|value| value.to_bits()));
    let mut w = bytes(w.iter().map(|value| value.to_bits()));
    w.extend([0xff; 64]);
    // The rows in another order than they are in.
    let mut index = bytes((0..rows as u32).rev());
    let mut result = vec![0xff; rows * COLUMNS * 4];
    let written = result.len();
    let region = |address, bytes, writable| Region {
        address,
        bytes,
        writable,
    };
    let mut memory = Memory::new(vec![
        region(0x10_0000, &mut x[..], 0),
        region(0x20_0000, &mut w[..], 0),
        region(0x30_0000, &mut index[..], 0),
        region(0x40_0000, &mut result[..], written),
    ]);
    let launch = Launch {
        // More blocks than there are tiles: those compute nothing.
        grid: (rows as u32, 2),
        threads: 128,
        dynamic_shared_bytes: 0,
        is_together: false,
        blocks_of_cluster: 1,
        poison: 0xff,
        order: forward_and_backward,
        tensor_cores: TensorCores::Nearest,
    };
    let arguments = [
        rows as u64,
        0x10_0000,
        0x30_0000,
        0,
        0x40_0000,
        0x20_0000,
        0,
    ];
    let run = module.run("main_0$0_small", &arguments, &launch, &mut memory);
    run.expect("it runs");
    let words = result
        .chunks_exact(4)
        .map(|word| [word[0], word[1], word[2], word[3]]);
    words.map(u32::from_le_bytes).collect()
}

fn expected(
    x: &[f32],
    w: &[f32],
    sum: impl Fn(&mut dyn Iterator<Item = (f32, f32)>) -> f32,
) -> Vec<u32> {
    let rows = x.chunks_exact(K).rev();
    let places = rows.flat_map(|row| (0..COLUMNS).map(move |column| (row, column)));
    let of = |(row, column): (&[f32], usize)| {
        let mut factors = row
            .iter()
            .enumerate()
            .map(|(k, x)| (*x, w[k * COLUMNS + column]));
        sum(&mut factors).to_bits()
    };
    places.map(of).collect()
}

/// Every sum is a chain of fused multiply-adds in the order of k.
#[test]
fn in_f32_each_bit_is_that_of_the_chain() {
    let w = numbers(K * COLUMNS, 5000);
    let chain = |factors: &mut dyn Iterator<Item = (f32, f32)>| {
        factors.fold(0.0_f32, |sum, (x, w)| x.mul_add(w, sum))
    };
    for rows in [1, 3, 28, 61] {
        let x = numbers(rows * K, 17);
        assert_eq!(run(IN_F32, &x, &w), expected(&x, &w, chain), "{rows}");
    }
}

/// Eight of k at a time, of rounded factors.
#[test]
fn in_tf32_each_bit_is_that_of_the_model() {
    let w: Vec<f32> = numbers(K * COLUMNS, 5000).into_iter().map(tf32).collect();
    let model = |factors: &mut dyn Iterator<Item = (f32, f32)>| {
        let all: Vec<f64> = factors
            .map(|(x, w)| f64::from(tf32(x)) * f64::from(w))
            .collect();
        let eight = |before: f32, eight: &[f64]| {
            eight
                .iter()
                .fold(f64::from(before), |sum, product| sum + product) as f32
        };
        all.chunks(8).fold(0.0, eight)
    };
    for rows in [1, 3, 28, 61] {
        let x = numbers(rows * K, 17);
        assert_eq!(run(IN_TF32, &x, &w), expected(&x, &w, model), "{rows}");
    }
}

#[test]
fn what_the_text_lacks_shows() {
    let (x, w) = (numbers(28 * K, 17), numbers(K * COLUMNS, 5000));
    let right = run(IN_F32, &x, &w);
    for (lacks, instead) in [
        ("bar.sync \t0;", ""),
        ("cp.async.wait_group \t0;", ""),
        ("cp.async.wait_group \t0;", "cp.async.wait_group 1;"),
        ("cp.async.commit_group;", ""),
    ] {
        assert!(IN_F32.contains(lacks), "{lacks}");
        assert_ne!(
            run(&IN_F32.replace(lacks, instead), &x, &w),
            right,
            "{lacks}"
        );
    }
}
