//! Tiles and sums of rows for AVX2 and AVX-512.

use std::arch::x86_64::{
    _mm256_broadcast_ss, _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_set1_ps, _mm256_storeu_ps,
    _mm512_fmadd_ps, _mm512_loadu_ps, _mm512_maskz_loadu_ps, _mm512_set1_ps, _mm512_storeu_ps,
};

use super::{Side, add_rows, ask};

/// # Safety
///
/// As [`super::Add`] says, of 32 columns.
#[target_feature(enable = "avx512f")]
pub unsafe fn add_512(right: Side<'_>, total: &mut [f32]) {
    // SAFETY: the caller's promise.
    unsafe { add_rows::<32>(right, total) };
}

/// # Safety
///
/// As [`super::Add`] says, of 16 columns.
#[target_feature(enable = "avx2")]
pub unsafe fn add_256(right: Side<'_>, total: &mut [f32]) {
    // SAFETY: the caller's promise.
    unsafe { add_rows::<16>(right, total) };
}

/// [`Side::pack`] with vectors as wide as those that will be read.
///
/// # Safety
///
/// The panel has 32 columns, and memory for all rows.
#[target_feature(enable = "avx512f")]
unsafe fn pack_512(side: Side<'_>, row: usize) {
    let Some(own) = side.unpacked::<32>(row) else {
        return;
    };
    let there = ((1_u64 << own.len().min(32)) - 1) as u32;
    for (first, mask) in [(0, there as u16), (16, (there >> 16) as u16)] {
        // SAFETY: the mask has what the row has; the caller's promise.
        unsafe {
            let vector = _mm512_maskz_loadu_ps(mask, own.as_ptr().wrapping_add(first));
            _mm512_storeu_ps(side.packed.add(row * 32 + first), vector);
        }
    }
}

/// # Safety
///
/// As [`super::Run`] says, of 12 rows and 32 columns.
#[target_feature(enable = "avx512f")]
pub unsafe fn run_512(
    left: Side<'_>,
    right: Side<'_>,
    size: [usize; 2],
    tile: *mut f32,
    stride: usize,
) {
    // SAFETY: the caller's promise.
    unsafe {
        match left.is_packed && right.is_packed {
            true => sized_512::<true>(left, right, size, tile, stride),
            false => sized_512::<false>(left, right, size, tile, stride),
        }
    }
}

/// The tile's first rows and vectors, as many as count.
///
/// # Safety
///
/// As [`run_512`].
#[target_feature(enable = "avx512f")]
unsafe fn sized_512<const PACKED: bool>(
    left: Side<'_>,
    right: Side<'_>,
    [down, across]: [usize; 2],
    tile: *mut f32,
    stride: usize,
) {
    // SAFETY: the caller's promise.
    unsafe {
        match (down, across) {
            (9.., 17..) => part_512::<12, 2, PACKED>(left, right, tile, stride),
            (9.., _) => part_512::<12, 1, PACKED>(left, right, tile, stride),
            (5.., 17..) => part_512::<8, 2, PACKED>(left, right, tile, stride),
            (5.., _) => part_512::<8, 1, PACKED>(left, right, tile, stride),
            (_, 17..) => part_512::<4, 2, PACKED>(left, right, tile, stride),
            (_, _) => part_512::<4, 1, PACKED>(left, right, tile, stride),
        }
    }
}

/// # Safety
///
/// As [`run_512`]; both sides are packed if it says so.
#[target_feature(enable = "avx512f")]
unsafe fn part_512<const DOWN: usize, const VECTORS: usize, const PACKED: bool>(
    left: Side<'_>,
    right: Side<'_>,
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
            // The tile below is the next.
            ask::<32>(tile.wrapping_add((DOWN + down) * stride));
        }
        for row in 0..right.rows.len() {
            if !PACKED {
                left.pack::<12>(row);
                pack_512(right, row);
            }
            let mut vectors = [_mm512_set1_ps(0.0); VECTORS];
            for (number, vector) in vectors.iter_mut().enumerate() {
                *vector = _mm512_loadu_ps(right.packed.add(row * 32 + number * 16));
            }
            for (down, sums) in sums.iter_mut().enumerate() {
                let factor = _mm512_set1_ps(*left.packed.add(row * 12 + down));
                for (sum, vector) in sums.iter_mut().zip(vectors) {
                    *sum = _mm512_fmadd_ps(factor, vector, *sum);
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

/// # Safety
///
/// As [`super::Run`] says, of 6 rows and 16 columns, with panels of 12.
#[target_feature(enable = "avx2,fma")]
pub unsafe fn run_256(
    left: Side<'_>,
    right: Side<'_>,
    size: [usize; 2],
    tile: *mut f32,
    stride: usize,
) {
    // SAFETY: the caller's promise.
    unsafe {
        match left.is_packed && right.is_packed {
            true => sized_256::<true>(left, right, size, tile, stride),
            false => sized_256::<false>(left, right, size, tile, stride),
        }
    }
}

/// The tile's first rows and vectors, as many as count.
///
/// # Safety
///
/// As [`run_256`].
#[target_feature(enable = "avx2,fma")]
unsafe fn sized_256<const PACKED: bool>(
    left: Side<'_>,
    right: Side<'_>,
    [down, across]: [usize; 2],
    tile: *mut f32,
    stride: usize,
) {
    // SAFETY: the caller's promise.
    unsafe {
        match (down, across) {
            (5.., 9..) => part_256::<6, 2, PACKED>(left, right, tile, stride),
            (5.., _) => part_256::<6, 1, PACKED>(left, right, tile, stride),
            (3.., 9..) => part_256::<4, 2, PACKED>(left, right, tile, stride),
            (3.., _) => part_256::<4, 1, PACKED>(left, right, tile, stride),
            (_, 9..) => part_256::<2, 2, PACKED>(left, right, tile, stride),
            (_, _) => part_256::<2, 1, PACKED>(left, right, tile, stride),
        }
    }
}

/// # Safety
///
/// As [`run_256`]; both sides are packed if it says so.
#[target_feature(enable = "avx2,fma")]
unsafe fn part_256<const DOWN: usize, const VECTORS: usize, const PACKED: bool>(
    left: Side<'_>,
    right: Side<'_>,
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
            // The tile below is the next.
            ask::<16>(tile.wrapping_add((DOWN + down) * stride));
        }
        for row in 0..right.rows.len() {
            if !PACKED {
                left.pack::<12>(row);
                right.pack::<16>(row);
            }
            let mut vectors = [_mm256_set1_ps(0.0); VECTORS];
            for (number, vector) in vectors.iter_mut().enumerate() {
                *vector = _mm256_loadu_ps(right.packed.add(row * 16 + number * 8));
            }
            for (down, sums) in sums.iter_mut().enumerate() {
                let factor = _mm256_broadcast_ss(&*left.packed.add(row * 12 + down));
                for (sum, vector) in sums.iter_mut().zip(vectors) {
                    *sum = _mm256_fmadd_ps(factor, vector, *sum);
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
