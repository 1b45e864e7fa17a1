//! Sums of outer products, `sum += Σ leftᵀ right` over rows: the gradients of matrices.
//!
//! Both sides are packed, some rows at a time, so that a tile of the sum stays in registers while it goes
//! over them. Each element gets one fused multiply-add a row, in the order of rows, whatever the tile and
//! the processor: tiles go on from what the sum was.

use super::sums::Pair;

/// Rows that are packed at once; both sides of them fit the caches.
const ROWS: usize = 192;

/// A way to go over packed rows.
#[derive(Clone, Copy)]
struct Tile {
    /// Rows and columns of the sum that one tile has.
    height: usize,
    width: usize,
    /// `(rows, left, right, tile)`: `left` has `height` numbers a row, `right` and each of the `height`
    /// rows of `tile` `width`.
    run: unsafe fn(usize, *const f32, *const f32, *mut f32),
}

/// Adds the products of all rows to a sum of this many rows and columns.
pub fn outer_products(sum: &mut [f32], [height, width]: [usize; 2], pairs: &[Pair<'_>]) {
    if height == 0 || width == 0 {
        return;
    }
    add(best_tile(), sum, [height, width], pairs);
}

fn add(tile: Tile, sum: &mut [f32], [height, width]: [usize; 2], pairs: &[Pair<'_>]) {
    let (tall, wide) = (height.div_ceil(tile.height), width.div_ceil(tile.width));
    let mut left = vec![0.0_f32; tall * tile.height * ROWS];
    let mut right = vec![0.0_f32; wide * tile.width * ROWS];
    let mut own = vec![0.0_f32; tile.height * tile.width];
    let mut rows = pairs.iter().flat_map(|pair| {
        let lefts = pair.left.chunks_exact(height);
        lefts.zip(pair.right.chunks_exact(width))
    });
    loop {
        let mut count = 0;
        while count < ROWS
            && let Some((a, g)) = rows.next()
        {
            pack(&mut left, a, count, tile.height);
            pack(&mut right, g, count, tile.width);
            count += 1;
        }
        if count == 0 {
            return;
        }
        for column in 0..wide {
            let right = &right[column * tile.width * ROWS..];
            for row in 0..tall {
                let left = &left[row * tile.height * ROWS..];
                let (first_row, first_column) = (row * tile.height, column * tile.width);
                let inside = tile.width.min(width - first_column);
                let last_row = height.min(first_row + tile.height);
                let places = (first_row..last_row).map(|row| row * width + first_column);
                for (place, own) in places.clone().zip(own.chunks_exact_mut(tile.width)) {
                    own[..inside].copy_from_slice(&sum[place..place + inside]);
                }
                // SAFETY: `best_tile` gives what the processor can run; both sides have `count` packed
                // rows from there on, and the tile its size.
                unsafe { (tile.run)(count, left.as_ptr(), right.as_ptr(), own.as_mut_ptr()) };
                for (place, own) in places.zip(own.chunks_exact(tile.width)) {
                    sum[place..place + inside].copy_from_slice(&own[..inside]);
                }
            }
        }
    }
}

/// Puts a row into panels of `size` columns, each `[ROWS][size]`. What is behind its end stays zero.
fn pack(panels: &mut [f32], row: &[f32], number: usize, size: usize) {
    for (panel, part) in row.chunks(size).enumerate() {
        let first = (panel * ROWS + number) * size;
        panels[first..first + part.len()].copy_from_slice(part);
    }
}

fn best_tile() -> Tile {
    tiles()[0]
}

/// Those that the processor can run, the best first.
fn tiles() -> Vec<Tile> {
    let mut tiles = Vec::new();
    #[cfg(target_arch = "x86_64")]
    {
        if std::is_x86_feature_detected!("avx512f") {
            tiles.push(Tile {
                height: 12,
                width: 32,
                run: x86::run_512,
            });
        }
        if std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma") {
            tiles.push(Tile {
                height: 6,
                width: 16,
                run: x86::run_256,
            });
        }
    }
    tiles.push(Tile {
        height: 4,
        width: 16,
        run: run_anywhere,
    });
    tiles
}

/// # Safety
///
/// As [`Tile::run`] says, of 4 rows and 16 columns.
unsafe fn run_anywhere(rows: usize, left: *const f32, right: *const f32, tile: *mut f32) {
    for row in 0..rows {
        for down in 0..4 {
            for across in 0..16 {
                // SAFETY: the caller's promise.
                unsafe {
                    let to = tile.add(down * 16 + across);
                    let (a, g) = (*left.add(row * 4 + down), *right.add(row * 16 + across));
                    *to = a.mul_add(g, *to);
                }
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        _mm256_broadcast_ss, _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_storeu_ps, _mm512_fmadd_ps,
        _mm512_loadu_ps, _mm512_set1_ps, _mm512_storeu_ps,
    };

    /// # Safety
    ///
    /// As [`super::Tile::run`] says, of 12 rows and 32 columns.
    #[target_feature(enable = "avx512f")]
    pub unsafe fn run_512(rows: usize, left: *const f32, right: *const f32, tile: *mut f32) {
        // SAFETY: the caller's promise.
        unsafe {
            let mut sums = [[_mm512_set1_ps(0.0); 2]; 12];
            for (down, sums) in sums.iter_mut().enumerate() {
                sums[0] = _mm512_loadu_ps(tile.add(down * 32));
                sums[1] = _mm512_loadu_ps(tile.add(down * 32 + 16));
            }
            for row in 0..rows {
                let first = _mm512_loadu_ps(right.add(row * 32));
                let second = _mm512_loadu_ps(right.add(row * 32 + 16));
                for (down, sums) in sums.iter_mut().enumerate() {
                    let factor = _mm512_set1_ps(*left.add(row * 12 + down));
                    sums[0] = _mm512_fmadd_ps(factor, first, sums[0]);
                    sums[1] = _mm512_fmadd_ps(factor, second, sums[1]);
                }
            }
            for (down, sums) in sums.iter().enumerate() {
                _mm512_storeu_ps(tile.add(down * 32), sums[0]);
                _mm512_storeu_ps(tile.add(down * 32 + 16), sums[1]);
            }
        }
    }

    /// # Safety
    ///
    /// As [`super::Tile::run`] says, of 6 rows and 16 columns.
    #[target_feature(enable = "avx2,fma")]
    pub unsafe fn run_256(rows: usize, left: *const f32, right: *const f32, tile: *mut f32) {
        // SAFETY: the caller's promise.
        unsafe {
            let mut sums = [[_mm256_loadu_ps(tile); 2]; 6];
            for (down, sums) in sums.iter_mut().enumerate() {
                sums[0] = _mm256_loadu_ps(tile.add(down * 16));
                sums[1] = _mm256_loadu_ps(tile.add(down * 16 + 8));
            }
            for row in 0..rows {
                let first = _mm256_loadu_ps(right.add(row * 16));
                let second = _mm256_loadu_ps(right.add(row * 16 + 8));
                for (down, sums) in sums.iter_mut().enumerate() {
                    let factor = _mm256_broadcast_ss(&*left.add(row * 6 + down));
                    sums[0] = _mm256_fmadd_ps(factor, first, sums[0]);
                    sums[1] = _mm256_fmadd_ps(factor, second, sums[1]);
                }
            }
            for (down, sums) in sums.iter().enumerate() {
                _mm256_storeu_ps(tile.add(down * 16), sums[0]);
                _mm256_storeu_ps(tile.add(down * 16 + 8), sums[1]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against one multiply-add after the other, to the bit, on sizes that fit no tile, with chains that
    /// stop and go on.
    #[test]
    fn each_element_is_one_chain() {
        let number = |seed: usize| ((seed * 7919) % 1013) as f32 / 101.3 - 5.0;
        for [height, width, rows] in [
            [1, 1, 1],
            [3, 28, 5],
            [61, 33, 200],
            [12, 32, 192],
            [257, 3, 401],
        ] {
            let left: Vec<f32> = (0..rows * height).map(number).collect();
            let right: Vec<f32> = (0..rows * width).map(|seed| number(seed + 17)).collect();
            let mut expected = vec![0.25_f32; height * width];
            for row in 0..rows {
                for (at, to) in expected.iter_mut().enumerate() {
                    let (down, across) = (at / width, at % width);
                    *to = left[row * height + down].mul_add(right[row * width + across], *to);
                }
            }
            let cut = rows / 3;
            let bits =
                |numbers: &[f32]| -> Vec<u32> { numbers.iter().map(|own| own.to_bits()).collect() };
            for tile in tiles() {
                let mut sum = vec![0.25_f32; height * width];
                for (first, last) in [(0, cut), (cut, rows)] {
                    let pair = Pair {
                        left: &left[first * height..last * height],
                        right: &right[first * width..last * width],
                    };
                    add(tile, &mut sum, [height, width], &[pair]);
                }
                let what = format!("{height} x {width}, {rows} rows, tiles of {}", tile.height);
                assert_eq!(bits(&sum), bits(&expected), "{what}");
            }
        }
    }
}
