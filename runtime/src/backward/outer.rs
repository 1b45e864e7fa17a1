//! Sums of outer products, `sum += Σ leftᵀ right` over rows: the gradients of matrices.
//!
//! Both sides are packed, some rows at a time, so that a tile of the sum stays in registers while it goes
//! over them, and a panel of each side lies in the nearest cache.
//! Each element gets one fused multiply-add a row, in the order of rows, whatever the tile and
//! the processor: tiles go on from what the sum was. Products that have the right side in common, as of the parts of a
//! concatenation, are computed together, and it is read and packed once; so is its sum, the gradient of a bias.

use std::ops::Range;

/// The most rows that are packed at once: a panel of each side then fits a first-level cache of 32 KB.
const ROWS: usize = 256;

/// Numbers of a panel with columns of this width. Panels are not a power of two apart: a row goes to the same place of
/// each, and these must not all be in one set of the caches.
const fn panel_size(width: usize) -> usize {
    width * ROWS + 16
}

/// How many rows ahead of those that are packed the processor is asked for: they lie anywhere.
pub const AHEAD: usize = 4;

/// A way to go over packed rows.
#[derive(Clone, Copy)]
struct Tile {
    /// Rows and columns of the sum that one tile has.
    height: usize,
    width: usize,
    /// Rows of the sum that a panel of the left side is for, one tile or several: wide copies are fewer.
    panel: usize,
    pack_left: Pack,
    pack_right: Pack,
    add: Add,
    run: Run,
}

/// As [`pack`], on a processor that has what it is compiled for.
type Pack = unsafe fn(&mut [f32], &[f32], usize);

/// `([down, across], rows, left, right, tile, stride)`: adds to the first `down` rows and `across` columns of a tile at
/// least, and to what lies beside them in the tile at most. `left` has `panel` numbers a row, of which the first `height`
/// count, `right` and each of the `height` rows of `tile` `width`; the rows of `tile` are `stride` numbers apart.
type Run = unsafe fn([usize; 2], usize, *const f32, *const f32, *mut f32, usize);

/// Adds a row to the sum of rows, on a processor that has what it is compiled for.
type Add = unsafe fn(&mut [f32], &[f32]);

/// A sum of outer products, row-major, and the left rows; its height is their length.
pub struct Product<'a> {
    pub sum: &'a mut [f32],
    pub height: usize,
    pub lefts: &'a [&'a [f32]],
}

/// Memory for packed rows, which is used again.
#[derive(Default)]
pub struct Panels {
    /// Of one product behind another.
    left: Vec<f32>,
    right: Vec<f32>,
    /// A tile at the edge of the sum.
    own: Vec<f32>,
}

impl Panels {
    /// Adds to each product's sum those of its left rows with the right rows, which are as many and of the same length,
    /// and to each of `totals` the right rows themselves.
    pub fn add_all(
        &mut self,
        products: &mut [Product<'_>],
        totals: &mut [&mut [f32]],
        rights: &[&[f32]],
    ) {
        self.add(best_tile(), products, totals, rights);
    }

    fn add(
        &mut self,
        tile: Tile,
        products: &mut [Product<'_>],
        totals: &mut [&mut [f32]],
        rights: &[&[f32]],
    ) {
        let width = rights.first().map_or(0, |row| row.len());
        if width == 0 {
            return;
        }
        let left_size = |height: usize| height.div_ceil(tile.panel) * panel_size(tile.panel);
        let lefts = products.iter().map(|product| left_size(product.height));
        let wide = width.div_ceil(tile.width);
        let Panels { left, right, own } = self;
        for (panels, size) in [
            (&mut *left, lefts.sum()),
            (&mut *right, wide * panel_size(tile.width)),
            (&mut *own, tile.height * tile.width),
        ] {
            if panels.len() < size {
                panels.resize(size, 0.0);
            }
        }
        // As many at a time as nearly equal parts have: a few rows at the end would not pay for reading the sum.
        let most = rights.len().div_ceil(rights.len().div_ceil(ROWS));
        for first in (0..rights.len()).step_by(most) {
            let rows = first..rights.len().min(first + most);
            // SAFETY: `best_tile` gives what the processor can run.
            over(rights, rows.clone(), |number, row| unsafe {
                if !products.is_empty() {
                    (tile.pack_right)(right, row, number);
                }
                totals.iter_mut().for_each(|total| (tile.add)(total, row));
            });
            let mut behind = &mut left[..];
            for product in products.iter() {
                let (own, next) = behind.split_at_mut(left_size(product.height));
                // SAFETY: as above.
                over(product.lefts, rows.clone(), |number, row| unsafe {
                    (tile.pack_left)(own, row, number);
                });
                behind = next;
            }
            for (column, right) in right.chunks(panel_size(tile.width)).take(wide).enumerate() {
                let mut behind = &left[..];
                for product in products.iter_mut() {
                    let (lefts, next) = behind.split_at(left_size(product.height));
                    behind = next;
                    let mut block = Block {
                        tile,
                        count: rows.len(),
                        sum: &mut *product.sum,
                        size: [product.height, width],
                        own: &mut *own,
                    };
                    for (panel, left) in lefts.chunks(panel_size(tile.panel)).enumerate() {
                        block.add_panel(panel, left, column, right);
                    }
                }
            }
        }
    }
}

/// Gives some of the rows, each with its number among them, and has the processor ask for those behind it.
fn over(all: &[&[f32]], rows: Range<usize>, mut each: impl FnMut(usize, &[f32])) {
    for (number, row) in all[rows.clone()].iter().enumerate() {
        if let Some(next) = all.get(rows.start + number + AHEAD) {
            prefetch(next);
        }
        each(number, row);
    }
}

/// Packed rows, and the sum that they are added to.
struct Block<'a> {
    tile: Tile,
    /// How many rows are packed.
    count: usize,
    sum: &'a mut [f32],
    size: [usize; 2],
    /// Memory for a tile at the edge.
    own: &'a mut [f32],
}

impl Block<'_> {
    /// Goes over all tiles of one panel of each side.
    fn add_panel(&mut self, panel: usize, left: &[f32], column: usize, right: &[f32]) {
        let Block { tile, count, .. } = *self;
        let [height, width] = self.size;
        let (top, side) = (panel * tile.panel, column * tile.width);
        let across = tile.width.min(width - side);
        for part in (0..tile.panel.min(height - top)).step_by(tile.height) {
            let (left, right) = (left[part..].as_ptr(), right.as_ptr());
            let down = tile.height.min(height - top - part);
            let first = (top + part) * width + side;
            if [down, across] == [tile.height, tile.width] {
                let to = self.sum[first..].as_mut_ptr();
                // SAFETY: `best_tile` gives what the processor can run; both sides have `count`
                // packed rows from there on, and all of the tile is inside of the sum.
                unsafe { (tile.run)([down, across], count, left, right, to, width) };
                continue;
            }
            let places = (0..down).map(|row| first + row * width);
            for (place, own) in places.clone().zip(self.own.chunks_exact_mut(tile.width)) {
                own[..across].copy_from_slice(&self.sum[place..place + across]);
            }
            let to = self.own.as_mut_ptr();
            // SAFETY: as above, and `own` has the size of a tile.
            unsafe { (tile.run)([down, across], count, left, right, to, tile.width) };
            for (place, own) in places.zip(self.own.chunks_exact(tile.width)) {
                self.sum[place..place + across].copy_from_slice(&own[..across]);
            }
        }
    }
}

/// Puts a row into panels of `SIZE` columns, each `[ROWS][SIZE]` and room behind it. What is behind its end is not
/// looked at.
#[inline(always)]
fn pack<const SIZE: usize>(panels: &mut [f32], row: &[f32], number: usize) {
    let (whole, rest) = row.as_chunks::<SIZE>();
    let mut places = panels[number * SIZE..].chunks_mut(const { panel_size(SIZE) });
    for (part, panel) in whole.iter().zip(places.by_ref()) {
        if let Some(to) = panel.first_chunk_mut::<SIZE>() {
            *to = *part;
        }
    }
    if let Some(panel) = places.next() {
        panel[..rest.len()].copy_from_slice(rest);
    }
}

#[inline(always)]
fn add_row(sum: &mut [f32], row: &[f32]) {
    for (to, from) in sum.iter_mut().zip(row) {
        *to += from;
    }
}

/// Asks for a row that will be read soon.
pub fn prefetch(row: &[f32]) {
    #[cfg(target_arch = "x86_64")]
    for line in row.chunks(16) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: it is of x86-64 as such, and reads nothing.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = row;
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
                panel: 12,
                pack_left: x86::pack_512::<12>,
                pack_right: x86::pack_512::<32>,
                add: x86::add_512,
                run: x86::run_512,
            });
        }
        if std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma") {
            tiles.push(Tile {
                height: 6,
                width: 16,
                panel: 12,
                pack_left: x86::pack_256::<12>,
                pack_right: x86::pack_256::<16>,
                add: x86::add_256,
                run: x86::run_256,
            });
        }
    }
    tiles.push(Tile {
        height: 4,
        width: 16,
        panel: 4,
        pack_left: pack::<4>,
        pack_right: pack::<16>,
        add: add_row,
        run: run_anywhere,
    });
    tiles
}

/// # Safety
///
/// As [`Run`] says, of 4 rows and 16 columns.
unsafe fn run_anywhere(
    _: [usize; 2],
    rows: usize,
    left: *const f32,
    right: *const f32,
    tile: *mut f32,
    stride: usize,
) {
    for row in 0..rows {
        for down in 0..4 {
            for across in 0..16 {
                // SAFETY: the caller's promise.
                unsafe {
                    let to = tile.add(down * stride + across);
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
        _mm256_broadcast_ss, _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_set1_ps, _mm256_storeu_ps,
        _mm512_fmadd_ps, _mm512_loadu_ps, _mm512_set1_ps, _mm512_storeu_ps,
    };

    use super::{add_row, pack};

    /// [`pack`] with the widest copies.
    #[target_feature(enable = "avx512f")]
    pub fn pack_512<const SIZE: usize>(panels: &mut [f32], row: &[f32], number: usize) {
        pack::<SIZE>(panels, row, number);
    }

    /// The same.
    #[target_feature(enable = "avx2")]
    pub fn pack_256<const SIZE: usize>(panels: &mut [f32], row: &[f32], number: usize) {
        pack::<SIZE>(panels, row, number);
    }

    /// [`add_row`] with the widest vectors.
    #[target_feature(enable = "avx512f")]
    pub fn add_512(sum: &mut [f32], row: &[f32]) {
        add_row(sum, row);
    }

    /// The same.
    #[target_feature(enable = "avx2")]
    pub fn add_256(sum: &mut [f32], row: &[f32]) {
        add_row(sum, row);
    }

    /// # Safety
    ///
    /// As [`super::Run`] says, of 12 rows and 32 columns.
    #[target_feature(enable = "avx512f")]
    pub unsafe fn run_512(
        [down, across]: [usize; 2],
        rows: usize,
        left: *const f32,
        right: *const f32,
        tile: *mut f32,
        stride: usize,
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            match (down, across) {
                (9.., 17..) => part_512::<12, 2>(rows, left, right, tile, stride),
                (9.., _) => part_512::<12, 1>(rows, left, right, tile, stride),
                (5.., 17..) => part_512::<8, 2>(rows, left, right, tile, stride),
                (5.., _) => part_512::<8, 1>(rows, left, right, tile, stride),
                (_, 17..) => part_512::<4, 2>(rows, left, right, tile, stride),
                (_, _) => part_512::<4, 1>(rows, left, right, tile, stride),
            }
        }
    }

    /// The first rows and vectors of such a tile.
    ///
    /// # Safety
    ///
    /// As [`run_512`].
    #[target_feature(enable = "avx512f")]
    unsafe fn part_512<const DOWN: usize, const VECTORS: usize>(
        rows: usize,
        left: *const f32,
        right: *const f32,
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
            for row in 0..rows {
                let mut vectors = [_mm512_set1_ps(0.0); VECTORS];
                for (number, vector) in vectors.iter_mut().enumerate() {
                    *vector = _mm512_loadu_ps(right.add(row * 32 + number * 16));
                }
                for (down, sums) in sums.iter_mut().enumerate() {
                    let factor = _mm512_set1_ps(*left.add(row * 12 + down));
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
        [down, across]: [usize; 2],
        rows: usize,
        left: *const f32,
        right: *const f32,
        tile: *mut f32,
        stride: usize,
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            match (down, across) {
                (5.., 9..) => part_256::<6, 2>(rows, left, right, tile, stride),
                (5.., _) => part_256::<6, 1>(rows, left, right, tile, stride),
                (3.., 9..) => part_256::<4, 2>(rows, left, right, tile, stride),
                (3.., _) => part_256::<4, 1>(rows, left, right, tile, stride),
                (_, 9..) => part_256::<2, 2>(rows, left, right, tile, stride),
                (_, _) => part_256::<2, 1>(rows, left, right, tile, stride),
            }
        }
    }

    /// The first rows and vectors of such a tile.
    ///
    /// # Safety
    ///
    /// As [`run_256`].
    #[target_feature(enable = "avx2,fma")]
    unsafe fn part_256<const DOWN: usize, const VECTORS: usize>(
        rows: usize,
        left: *const f32,
        right: *const f32,
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
            for row in 0..rows {
                let mut vectors = [_mm256_set1_ps(0.0); VECTORS];
                for (number, vector) in vectors.iter_mut().enumerate() {
                    *vector = _mm256_loadu_ps(right.add(row * 16 + number * 8));
                }
                for (down, sums) in sums.iter_mut().enumerate() {
                    let factor = _mm256_broadcast_ss(&*left.add(row * 12 + down));
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
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against one multiply-add after the other, to the bit, on sizes that fit no tile, with chains that
    /// stop and go on.
    #[test]
    fn each_element_is_one_chain() {
        let number = |seed: usize| ((seed * 7919) % 1013) as f32 / 101.3 - 5.0;
        let mut panels = Panels::default();
        for [height, width, rows] in [
            [1, 1, 1],
            [3, 28, 5],
            [61, 33, 200],
            [12, 32, 192],
            [257, 3, 401],
            [210, 40, 513],
        ] {
            let left: Vec<f32> = (0..rows * height).map(number).collect();
            let other: Vec<f32> = (0..rows * 13).map(|seed| number(seed + 5)).collect();
            let right: Vec<f32> = (0..rows * width).map(|seed| number(seed + 17)).collect();
            let chain = |left: &[f32], height: usize| {
                let mut sum = vec![0.25_f32; height * width];
                for row in 0..rows {
                    for (at, to) in sum.iter_mut().enumerate() {
                        let (down, across) = (at / width, at % width);
                        *to = left[row * height + down].mul_add(right[row * width + across], *to);
                    }
                }
                sum
            };
            // The right rows alone are products with ones.
            let expected = [
                chain(&left, height),
                chain(&other, 13),
                chain(&vec![1.0; rows], 1),
            ];
            let lefts: Vec<&[f32]> = left.chunks_exact(height).collect();
            let others: Vec<&[f32]> = other.chunks_exact(13).collect();
            let rights: Vec<&[f32]> = right.chunks_exact(width).collect();
            let cut = rows / 3;
            let bits =
                |numbers: &[f32]| -> Vec<u32> { numbers.iter().map(|own| own.to_bits()).collect() };
            for tile in tiles() {
                let mut sums = expected.clone().map(|sum| vec![0.25_f32; sum.len()]);
                let [sum, beside, total] = &mut sums;
                for own in [0..cut, cut..rows] {
                    let mut products = [
                        Product {
                            sum,
                            height,
                            lefts: &lefts[own.clone()],
                        },
                        Product {
                            sum: beside,
                            height: 13,
                            lefts: &others[own.clone()],
                        },
                    ];
                    // What is left in the panels is of no account.
                    panels.add(tile, &mut products, &mut [total], &rights[own]);
                }
                let what = format!("{height} x {width}, {rows} rows, tiles of {}", tile.height);
                for (sum, expected) in sums.iter().zip(&expected) {
                    assert_eq!(bits(sum), bits(expected), "{what}");
                }
            }
        }
    }
}
