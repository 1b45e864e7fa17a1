//! Sums of outer products, `sum += Σ leftᵀ right` over rows: the gradients of matrices.
//!
//! Both sides are packed, some rows at a time, so that a tile of the sum stays in registers while it goes
//! over them, and a panel of each side lies in the nearest caches. The first tile that needs a panel packs it as it goes:
//! rows lie anywhere, and are waited for while it multiplies.
//! Each element gets one fused multiply-add a row, in the order of rows, whatever the tile and
//! the processor: tiles go on from what the sum was. Products that have the right side in common, as of the parts of a
//! concatenation, are computed together, and it is read and packed once; so is its sum, the gradient of a bias.

/// The most rows that are packed at once: so that the sum is read and written rarely, and what is packed lies in the
/// second-level cache.
const ROWS: usize = 512;

/// Numbers of a left panel of this width. Panels are not a power of two apart: a row goes to the same place of each, and
/// these must not all be in one set of the caches.
const fn panel_size(width: usize) -> usize {
    width * ROWS + 16
}

/// How many rows ahead of those that are read the processor is asked for: they lie anywhere. The second is for a few
/// columns of rows.
pub const AHEAD: usize = 4;
const COLUMNS_AHEAD: usize = 16;

/// A way to go over rows.
#[derive(Clone, Copy)]
struct Tile {
    /// Rows and columns of the sum that one tile has.
    height: usize,
    width: usize,
    /// Rows of the sum that a panel of the left side is for, one tile or several: wide copies are fewer.
    panel: usize,
    run: Run,
    add: Add,
}

/// `(left, right, [down, across], tile, stride)`, of as many rows on both sides: adds to the first `down` rows and `across`
/// columns of a tile at least, and to what lies beside them in the tile at most. The rows of `tile` are `stride` numbers
/// apart. Runs on a processor that has what it is compiled for.
type Run = unsafe fn(Side<'_>, Side<'_>, [usize; 2], *mut f32, usize);

/// Adds the right rows to a sum of as many columns as a tile has, or fewer; on such a processor.
type Add = unsafe fn(Side<'_>, &mut [f32]);

/// A panel: some columns of rows, and where they are packed.
#[derive(Clone, Copy)]
struct Side<'a> {
    rows: &'a [&'a [f32]],
    /// The first column.
    first: usize,
    /// A row after the other, as many numbers each as the panel has columns.
    packed: *mut f32,
    /// Whether the rows are there already.
    is_packed: bool,
}

impl<'a> Side<'a> {
    /// What is to be packed of a row, which may have fewer columns than the panel, unless all rows are; has the processor
    /// ask for a row behind it.
    #[inline(always)]
    fn unpacked<const WIDTH: usize>(&self, row: usize) -> Option<&'a [f32]> {
        if self.is_packed {
            return None;
        }
        if let Some(next) = self.rows.get(row + COLUMNS_AHEAD) {
            ask::<WIDTH>(next.as_ptr().wrapping_add(self.first));
        }
        Some(&self.rows[row][self.first..])
    }

    /// Packs a row, unless all are. What is behind its end is not looked at.
    ///
    /// # Safety
    ///
    /// The panel has `WIDTH` columns, and memory for all rows.
    #[inline(always)]
    unsafe fn pack<const WIDTH: usize>(&self, row: usize) {
        let Some(own) = self.unpacked::<WIDTH>(row) else {
            return;
        };
        // SAFETY: the caller's promise.
        unsafe {
            let to = self.packed.add(row * WIDTH);
            match own.first_chunk::<WIDTH>() {
                Some(own) => to.cast::<[f32; WIDTH]>().write_unaligned(*own),
                None => to.copy_from_nonoverlapping(own.as_ptr(), own.len()),
            }
        }
    }
}

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
    /// One panel.
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
        for (panels, size) in [
            (&mut self.left, lefts.sum()),
            (&mut self.right, tile.width * ROWS),
            (&mut self.own, tile.height * tile.width),
        ] {
            if panels.len() < size {
                panels.resize(size, 0.0);
            }
        }
        // As many at a time as nearly equal parts have: a few rows at the end would not pay for reading the sum.
        let most = rights.len().div_ceil(rights.len().div_ceil(ROWS));
        for first in (0..rights.len()).step_by(most) {
            let rows = first..rights.len().min(first + most);
            for side in (0..width).step_by(tile.width) {
                let mut right = Side {
                    rows: &rights[rows.clone()],
                    first: side,
                    packed: self.right.as_mut_ptr(),
                    is_packed: false,
                };
                let mut behind = &mut self.left[..];
                for product in products.iter_mut() {
                    let (panels, next) = behind.split_at_mut(left_size(product.height));
                    behind = next;
                    for (panel, packed) in panels.chunks_mut(panel_size(tile.panel)).enumerate() {
                        let left = Side {
                            rows: &product.lefts[rows.clone()],
                            first: panel * tile.panel,
                            packed: packed.as_mut_ptr(),
                            is_packed: side > 0,
                        };
                        let size = [product.height, width];
                        add_panel(tile, [left, right], product.sum, size, &mut self.own);
                        right.is_packed = true;
                    }
                }
                for total in totals.iter_mut() {
                    let total = &mut total[side..width.min(side + tile.width)];
                    // SAFETY: `best_tile` gives what the processor can run; there is memory for all rows of a panel.
                    unsafe { (tile.add)(right, total) };
                    right.is_packed = true;
                }
            }
        }
    }
}

/// Goes over the tiles of one panel of each side, of a sum of this size; `own` is memory for a tile at the edge.
fn add_panel(
    tile: Tile,
    [mut left, mut right]: [Side<'_>; 2],
    sum: &mut [f32],
    [height, width]: [usize; 2],
    own: &mut [f32],
) {
    let (top, side) = (left.first, right.first);
    let panel = left.packed;
    let across = tile.width.min(width - side);
    for part in (0..tile.panel.min(height - top)).step_by(tile.height) {
        left.packed = panel.wrapping_add(part);
        let down = tile.height.min(height - top - part);
        let first = (top + part) * width + side;
        if [down, across] == [tile.height, tile.width] {
            let to = sum[first..].as_mut_ptr();
            // SAFETY: `best_tile` gives what the processor can run; there is memory for all rows of a panel, and all of
            // the tile is inside of the sum.
            unsafe { (tile.run)(left, right, [down, across], to, width) };
        } else {
            let places = (0..down).map(|row| first + row * width);
            for (place, own) in places.clone().zip(own.chunks_exact_mut(tile.width)) {
                own[..across].copy_from_slice(&sum[place..place + across]);
            }
            // SAFETY: as above, and `own` has the size of a tile.
            unsafe { (tile.run)(left, right, [down, across], own.as_mut_ptr(), tile.width) };
            for (place, own) in places.zip(own.chunks_exact(tile.width)) {
                sum[place..place + across].copy_from_slice(&own[..across]);
            }
        }
        (left.is_packed, right.is_packed) = (true, true);
    }
}

/// [`Add`] for tiles of `WIDTH` columns.
///
/// # Safety
///
/// The panel has as many columns, and memory for all rows.
#[inline(always)]
unsafe fn add_rows<const WIDTH: usize>(right: Side<'_>, total: &mut [f32]) {
    let mut own = [0.0; WIDTH];
    own[..total.len()].copy_from_slice(total);
    for row in 0..right.rows.len() {
        // SAFETY: the caller's promise.
        unsafe {
            right.pack::<WIDTH>(row);
            let row = (right.packed.add(row * WIDTH).cast::<[f32; WIDTH]>()).read_unaligned();
            for (to, from) in own.iter_mut().zip(row) {
                *to += from;
            }
        }
    }
    total.copy_from_slice(&own[..total.len()]);
}

/// Asks for a row that will be read soon.
pub fn prefetch(row: &[f32]) {
    for part in row.chunks(16) {
        ask::<1>(part.as_ptr());
    }
}

/// Asks for so many numbers.
#[inline(always)]
fn ask<const NUMBERS: usize>(first: *const f32) {
    #[cfg(target_arch = "x86_64")]
    for number in (0..NUMBERS).step_by(16).chain([NUMBERS - 1]) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: it is of x86-64 as such, and reads nothing.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(first.wrapping_add(number).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = first;
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
                run: x86::run_512,
                add: x86::add_512,
            });
        }
        if std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma") {
            tiles.push(Tile {
                height: 6,
                width: 16,
                panel: 12,
                run: x86::run_256,
                add: x86::add_256,
            });
        }
    }
    tiles.push(Tile {
        height: 4,
        width: 16,
        panel: 4,
        run: run_anywhere,
        add: add_rows::<16>,
    });
    tiles
}

/// # Safety
///
/// As [`Run`] says, of 4 rows and 16 columns.
unsafe fn run_anywhere(
    left: Side<'_>,
    right: Side<'_>,
    _: [usize; 2],
    tile: *mut f32,
    stride: usize,
) {
    for row in 0..right.rows.len() {
        // SAFETY: the caller's promise.
        unsafe {
            left.pack::<4>(row);
            right.pack::<16>(row);
            for (down, across) in (0..4).flat_map(|down| (0..16).map(move |across| (down, across)))
            {
                let to = tile.add(down * stride + across);
                let a = *left.packed.add(row * 4 + down);
                let g = *right.packed.add(row * 16 + across);
                *to = a.mul_add(g, *to);
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86;

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
