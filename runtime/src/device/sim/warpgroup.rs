//! What the threads of a warpgroup compute together: `wgmma.mma_async` of 64 rows, up to 256 columns and 16 k, of bf16 in shared
//! memory.
//!
//! Both sides are told by descriptors, whose fields and whose swizzle over 128 bytes the *PTX ISA* lists ("Matrix descriptor",
//! "Swizzling modes"). Each thread has the sums of two rows, eight apart, and of two neighbouring columns of every eight, as with
//! `mma.sync`. Here a product is done when it is begun: what reads or overwrites something before it is done is for the interpreter of
//! PTX to find. Sums are rounded as in [`warp`](super::warp).

/// Threads of a warpgroup.
pub const GROUP: usize = 128;

const ROWS: usize = 64;
const TERMS: usize = 16;
/// Bytes of a row of a tile in shared memory.
const ROW_BYTES: usize = 128;

/// What a thread gives: see [`cohort_abi::gpu::MULTIPLY_GROUP`].
#[derive(Clone, Copy)]
pub struct Product {
    pub columns: i64,
    pub left: u64,
    pub right: u64,
    pub sums: *mut f32,
}

/// A matrix in shared memory.
struct Tile<'a> {
    shared: &'a [u8],
    start: usize,
    /// Bytes from eight rows to the next.
    stride: usize,
}

impl<'a> Tile<'a> {
    fn new(descriptor: u64, shared: &'a [u8]) -> Result<Tile<'a>, String> {
        let field = |shift: u32, bits: u32| (descriptor >> shift & ((1 << bits) - 1)) as usize;
        if field(62, 2) != 1 || field(49, 3) != 0 {
            return Err(format!(
                "the descriptor {descriptor:#x} is not of a tile that is swizzled over 128 bytes"
            ));
        }
        Ok(Tile {
            shared,
            start: field(0, 14) << 4,
            stride: field(32, 14) << 4,
        })
    }

    /// The factors of a row.
    fn row(&self, row: usize) -> Result<[f64; TERMS], String> {
        let start = self.start + row / 8 * self.stride + row % 8 * ROW_BYTES;
        let mut factors = [0.0; TERMS];
        for (k, factor) in factors.iter_mut().enumerate() {
            let at = start + 2 * k;
            let at = at ^ ((at / ROW_BYTES % 8) << 4);
            let bytes = self.shared.get(at..at + 2);
            let Some(&[low, high]) = bytes else {
                return Err(format!(
                    "a warpgroup multiplies what is at byte {at} of {} of shared memory",
                    self.shared.len()
                ));
            };
            let bits = u32::from(u16::from_le_bytes([low, high])) << 16;
            *factor = f64::from(f32::from_bits(bits));
        }
        Ok(factors)
    }

    fn rows(&self, count: usize) -> Result<Vec<[f64; TERMS]>, String> {
        (0..count).map(|row| self.row(row)).collect()
    }
}

/// Multiplies what the threads of a warpgroup give, in the order of their numbers.
///
/// # Safety
///
/// Each thread's sums are its own, half as many as there are columns.
pub unsafe fn multiply(products: &[Product], shared: &[u8]) -> Result<(), String> {
    let Some(first) = products.first() else {
        return Ok(());
    };
    let what = |product: &Product| (product.columns, product.left, product.right);
    let is_shape = (8..=256).contains(&first.columns) && first.columns % 8 == 0;
    if !is_shape || products.iter().any(|product| what(product) != what(first)) {
        return Err("the threads of a warpgroup multiply different matrices".to_owned());
    }
    let columns = first.columns as usize;
    let left = Tile::new(first.left, shared)?.rows(ROWS)?;
    let right = Tile::new(first.right, shared)?.rows(columns)?;
    for (thread, product) in products.iter().enumerate() {
        let (warp, lane) = (thread / 32, thread % 32);
        for register in 0..columns / 2 {
            let row = warp * 16 + lane / 4 + register % 4 / 2 * 8;
            let column = register / 4 * 8 + lane % 4 * 2 + register % 2;
            // SAFETY: the caller's promise.
            let place = unsafe { product.sums.add(register) };
            // SAFETY: as above.
            let before = f64::from(unsafe { place.read() });
            let factors = left[row].iter().zip(&right[column]);
            let sum = factors.fold(before, |sum, (a, b)| sum + a * b) as f32;
            // SAFETY: as above.
            unsafe { place.write(sum) };
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tile of rows of 64 numbers, swizzled as the instruction set says.
    fn tile(rows: usize, of: impl Fn(usize, usize) -> f32) -> Vec<u8> {
        let mut bytes = vec![0; rows * ROW_BYTES];
        for row in 0..rows {
            for k in 0..64 {
                let piece = (k / 8) ^ (row % 8);
                let at = row * ROW_BYTES + piece * 16 + k % 8 * 2;
                let bits = (of(row, k).to_bits() >> 16) as u16;
                bytes[at..at + 2].copy_from_slice(&bits.to_le_bytes());
            }
        }
        bytes
    }

    fn descriptor(start: usize) -> u64 {
        1 << 62 | 64 << 32 | 1 << 16 | (start >> 4) as u64
    }

    #[test]
    fn a_warpgroup_multiplies() {
        const COLUMNS: usize = 24;
        let a = |row: usize, k: usize| (row % 7) as f32 - (k % 5) as f32;
        let b = |column: usize, k: usize| (column % 3 * 2) as f32 + (k % 4) as f32;
        let mut shared = tile(ROWS, a);
        let from = shared.len();
        shared.extend(tile(COLUMNS, b));
        for first in [0, 16, 48] {
            let mut sums = vec![[1.0_f32; COLUMNS / 2]; GROUP];
            let of_thread = |sums: &mut [f32; COLUMNS / 2]| Product {
                columns: COLUMNS as i64,
                left: descriptor(2 * first),
                right: descriptor(from + 2 * first),
                sums: sums.as_mut_ptr(),
            };
            let products: Vec<Product> = sums.iter_mut().map(of_thread).collect();
            // SAFETY: each thread has sums of its own.
            unsafe { multiply(&products, &shared).unwrap() };
            for (thread, sums) in sums.iter().enumerate() {
                for (register, sum) in sums.iter().enumerate() {
                    let row = thread / 32 * 16 + thread % 32 / 4 + register / 2 % 2 * 8;
                    let column = register / 4 * 8 + thread % 4 * 2 + register % 2;
                    let expected: f32 = (first..first + 16).map(|k| a(row, k) * b(column, k)).sum();
                    assert_eq!(*sum, 1.0 + expected, "row {row}, column {column}");
                }
            }
        }
    }

    #[test]
    fn what_is_no_tile_is_told() {
        let shared = vec![0; ROWS * ROW_BYTES];
        let told = |columns, left, right| {
            let mut sums = [0.0; 4];
            let sums = sums.as_mut_ptr();
            let product = Product {
                columns,
                left,
                right,
                sums,
            };
            // SAFETY: the one thread has sums of its own.
            unsafe { multiply(&[product], &shared) }.unwrap_err()
        };
        let good = descriptor(0);
        assert!(told(8, good & !(3 << 62), good).contains("not of a tile"));
        assert!(told(8, good, descriptor(shared.len())).contains("at byte 8192 of 8192"));
        assert!(told(12, good, good).contains("different matrices"));
    }
}
