//! Tiles and sums of rows for AVX2 and AVX-512.

use std::arch::x86_64::{
    _mm256_broadcast_ss, _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_set1_ps, _mm256_storeu_ps,
    _mm512_fmadd_ps, _mm512_loadu_ps, _mm512_set1_ps, _mm512_storeu_ps,
};

use super::{Sides, add_rows, ask, pack_left, pack_right};

/// # Safety
///
/// As [`super::Add`] says, of 32 columns.
#[target_feature(enable = "avx512f")]
pub unsafe fn add_512(right: *const f32, rows: usize, total: &mut [f32]) {
    // SAFETY: the caller's promise.
    unsafe { add_rows::<32>(right, rows, total) };
}

/// # Safety
///
/// As [`super::Add`] says, of 16 columns.
#[target_feature(enable = "avx2")]
pub unsafe fn add_256(right: *const f32, rows: usize, total: &mut [f32]) {
    // SAFETY: the caller's promise.
    unsafe { add_rows::<16>(right, rows, total) };
}

/// # Safety
///
/// As [`super::PackLeft`] says, of 12 columns.
#[target_feature(enable = "avx512f")]
pub unsafe fn pack_left_512(rows: &[&[f32]], panels: &mut [f32]) {
    pack_left::<12>(rows, panels);
}

/// # Safety
///
/// As [`super::PackRight`] says, of 32 columns.
#[target_feature(enable = "avx512f")]
pub unsafe fn pack_right_512(rows: &[&[f32]], first: usize, panel: &mut [f32]) {
    pack_right::<32>(rows, first, panel);
}

/// # Safety
///
/// As [`super::PackLeft`] says, of 12 columns.
#[target_feature(enable = "avx2")]
pub unsafe fn pack_left_256(rows: &[&[f32]], panels: &mut [f32]) {
    pack_left::<12>(rows, panels);
}

/// # Safety
///
/// As [`super::PackRight`] says, of 16 columns.
#[target_feature(enable = "avx2")]
pub unsafe fn pack_right_256(rows: &[&[f32]], first: usize, panel: &mut [f32]) {
    pack_right::<16>(rows, first, panel);
}

/// The tile's first rows and vectors, as many as count.
///
/// # Safety
///
/// As [`super::Run`] says, of 12 rows and 32 columns.
#[target_feature(enable = "avx512f")]
pub unsafe fn run_512(sides: Sides<'_>, [down, across]: [usize; 2], tile: *mut f32, stride: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        match (down, across) {
            (9.., 17..) => part_512::<12, 2>(sides, tile, stride),
            (9.., _) => part_512::<12, 1>(sides, tile, stride),
            (5.., 17..) => part_512::<8, 2>(sides, tile, stride),
            (5.., _) => part_512::<8, 1>(sides, tile, stride),
            (_, 17..) => part_512::<4, 2>(sides, tile, stride),
            (_, _) => part_512::<4, 1>(sides, tile, stride),
        }
    }
}

/// # Safety
///
/// As [`run_512`].
#[target_feature(enable = "avx512f")]
unsafe fn part_512<const DOWN: usize, const VECTORS: usize>(
    sides: Sides<'_>,
    tile: *mut f32,
    stride: usize,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let mut sums = [[_mm512_set1_ps(0.0); VECTORS]; DOWN];
        for (down, sums) in sums.iter_mut().enumerate() {
            for (vector, sum) in sums.iter_mut().enumerate() {
                *sum = _mm512_loadu_ps(tile.add(down * stride + vector * 16));
            }
        }
        for (soon, rows) in sides.stretches() {
            for own in soon {
                ask::<32>(*own);
            }
            for row in rows {
                let mut vectors = [_mm512_set1_ps(0.0); VECTORS];
                for (number, vector) in vectors.iter_mut().enumerate() {
                    *vector = _mm512_loadu_ps(sides.right.add(row * 32 + number * 16));
                }
                for (down, sums) in sums.iter_mut().enumerate() {
                    let factor = _mm512_set1_ps(*sides.left.add(row * 12 + down));
                    for (sum, vector) in sums.iter_mut().zip(vectors) {
                        *sum = _mm512_fmadd_ps(factor, vector, *sum);
                    }
                }
            }
        }
        for (down, sums) in sums.iter().enumerate() {
            for (vector, sum) in sums.iter().enumerate() {
                _mm512_storeu_ps(tile.add(down * stride + vector * 16), *sum);
            }
        }
    }
}

/// The tile's first rows and vectors, as many as count.
///
/// # Safety
///
/// As [`super::Run`] says, of 6 rows and 16 columns, with panels of 12.
#[target_feature(enable = "avx2,fma")]
pub unsafe fn run_256(sides: Sides<'_>, [down, across]: [usize; 2], tile: *mut f32, stride: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        match (down, across) {
            (5.., 9..) => part_256::<6, 2>(sides, tile, stride),
            (5.., _) => part_256::<6, 1>(sides, tile, stride),
            (3.., 9..) => part_256::<4, 2>(sides, tile, stride),
            (3.., _) => part_256::<4, 1>(sides, tile, stride),
            (_, 9..) => part_256::<2, 2>(sides, tile, stride),
            (_, _) => part_256::<2, 1>(sides, tile, stride),
        }
    }
}

/// # Safety
///
/// As [`run_256`].
#[target_feature(enable = "avx2,fma")]
unsafe fn part_256<const DOWN: usize, const VECTORS: usize>(
    sides: Sides<'_>,
    tile: *mut f32,
    stride: usize,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let mut sums = [[_mm256_set1_ps(0.0); VECTORS]; DOWN];
        for (down, sums) in sums.iter_mut().enumerate() {
            for (vector, sum) in sums.iter_mut().enumerate() {
                *sum = _mm256_loadu_ps(tile.add(down * stride + vector * 8));
            }
        }
        for (soon, rows) in sides.stretches() {
            for own in soon {
                ask::<16>(*own);
            }
            for row in rows {
                let mut vectors = [_mm256_set1_ps(0.0); VECTORS];
                for (number, vector) in vectors.iter_mut().enumerate() {
                    *vector = _mm256_loadu_ps(sides.right.add(row * 16 + number * 8));
                }
                for (down, sums) in sums.iter_mut().enumerate() {
                    let factor = _mm256_broadcast_ss(&*sides.left.add(row * 12 + down));
                    for (sum, vector) in sums.iter_mut().zip(vectors) {
                        *sum = _mm256_fmadd_ps(factor, vector, *sum);
                    }
                }
            }
        }
        for (down, sums) in sums.iter().enumerate() {
            for (vector, sum) in sums.iter().enumerate() {
                _mm256_storeu_ps(tile.add(down * stride + vector * 8), *sum);
            }
        }
    }
}
