//! Sums of outer products, `sum += Σ leftᵀ right` over rows: the gradients of matrices.
//!
//! Both sides are packed, some rows at a time, so that a tile of the sum stays in registers while it goes over them, and
//! what it reads lies one behind another. The left side is packed first. Panels of the right side are packed one ahead:
//! while tiles multiply one, the rows of the next are asked for, wherever they lie, and copied as they come; and so is
//! the next tile of the sum asked for.
//! Each element gets one fused multiply-add a row, in the order of rows, whatever the tile and
//! the processor: tiles go on from what the sum was. Products that have the right side in common, as of the parts of a
//! concatenation, are computed together, and it is read and packed once; so is its sum, the gradient of a bias.

use std::mem;
use std::ops::Range;

use super::lines::Lines;

/// The most rows that are packed at once: so that the sum is read and written rarely, and what is packed lies in the
/// second-level cache.
const ROWS: usize = 512;

/// Numbers of a panel of this width. Panels are not a power of two apart: a row goes to the same place of each, and
/// these must not all be in one set of the caches.
const fn panel_size(width: usize) -> usize {
    width * ROWS + 16
}

/// How many rows ahead of those that are read the processor is asked for: they lie anywhere. The second is for a few
/// columns of rows.
pub const AHEAD: usize = 4;
const COLUMNS_AHEAD: usize = 16;

/// After how many rows a tile asks for more of what is needed soon: if it asked for all of it at once, it would wait.
const STRETCH: usize = 32;

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
    pack_left: PackLeft,
    pack_right: PackRight,
}

/// `(sides, [down, across], tile, stride)`: adds to the first `down` rows and `across` columns of a tile at least, and to
/// what lies beside them in the tile at most. The rows of `tile` are `stride` numbers apart. Runs on a processor that has
/// what it is compiled for.
type Run = unsafe fn(Sides<'_>, [usize; 2], *mut f32, usize);

/// Adds a tile's rows of a right panel, whose number is given, to a sum of at most the tile's columns.
type Add = unsafe fn(*const f32, usize, &mut [f32]);

/// Packs rows of the left side into panels; on such a processor.
type PackLeft = unsafe fn(&[&[f32]], &mut [f32]);

/// Packs the columns of a panel from this one on, or as many as there are, of rows of the right side; on such a
/// processor.
type PackRight = unsafe fn(&[&[f32]], usize, &mut [f32]);

/// What a tile multiplies: a row after the other, as many numbers each as a panel has columns.
#[derive(Clone, Copy)]
struct Sides<'a> {
    rows: usize,
    /// From the tile's first column of the panel on.
    left: *const f32,
    right: *const f32,
    /// What is needed soon, as many numbers of each as a tile has columns.
    soon: &'a [*const f32],
}

impl<'a> Sides<'a> {
    /// All rows in order, in stretches of about the same length, each with what is to be asked for before it.
    #[inline(always)]
    fn stretches(self) -> impl Iterator<Item = (&'a [*const f32], Range<usize>)> {
        let count = self.rows.div_ceil(STRETCH).max(1);
        let [asked, step] = [self.soon.len(), self.rows].map(|size| size.div_ceil(count));
        let part = |size: usize, step: usize, number: usize| {
            size.min(number * step)..size.min((number + 1) * step)
        };
        (0..count).map(move |number| {
            let asked = part(self.soon.len(), asked, number);
            (&self.soon[asked], part(self.rows, step, number))
        })
    }
}

/// A panel of the right side that is packed while tiles multiply the one before it.
struct NextPanel<'a> {
    /// The rows that are not packed yet, and the panel's first column.
    rows: &'a [&'a [f32]],
    first: usize,
    /// Where they are to be packed.
    packed: &'a mut [f32],
}

impl NextPanel<'_> {
    /// Where the next `count` rows are.
    fn places(&self, count: usize) -> impl Iterator<Item = *const f32> {
        let rows = self.rows.iter().take(count);
        rows.map(|row| row[self.first..].as_ptr())
    }

    /// Packs the next `count` rows, or those that are left.
    fn pack(&mut self, tile: Tile, count: usize) {
        let (rows, left) = self.rows.split_at(count.min(self.rows.len()));
        let (packed, behind) = mem::take(&mut self.packed).split_at_mut(rows.len() * tile.width);
        // SAFETY: `best_tile` gives what the processor can run.
        unsafe { (tile.pack_right)(rows, self.first, packed) };
        (self.rows, self.packed) = (left, behind);
    }
}

/// A sum of outer products, row-major, and the left rows; its height is their length.
pub struct Product<'a> {
    pub sum: &'a mut [f32],
    pub height: usize,
    pub lefts: &'a [&'a [f32]],
}

impl Product<'_> {
    /// How many panels its left side has.
    fn panels(&self, tile: Tile) -> usize {
        self.height.div_ceil(tile.panel)
    }
}

/// Memory for packed rows, which is used again.
#[derive(Default)]
pub struct Panels {
    /// Of one product behind another.
    left: Lines,
    /// The panel that is multiplied, and the next.
    right: [Lines; 2],
    /// A tile at the edge of the sum.
    own: Lines,
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
        if rights.first().is_none_or(|row| row.is_empty()) {
            return;
        }
        let panels = products.iter().map(|product| product.panels(tile));
        self.left
            .grow(panels.sum::<usize>() * panel_size(tile.panel));
        for right in &mut self.right {
            right.grow(panel_size(tile.width));
        }
        self.own.grow(tile.height * tile.width);
        // In nearly equal parts: a few rows left at the end would not pay for reading the sum.
        let most = rights.len().div_ceil(rights.len().div_ceil(ROWS));
        for first in (0..rights.len()).step_by(most) {
            let rows = first..rights.len().min(first + most);
            self.add_rows(tile, products, totals, rights, rows);
        }
    }

    /// Goes over some rows, as many as a panel has at most.
    fn add_rows(
        &mut self,
        tile: Tile,
        products: &mut [Product<'_>],
        totals: &mut [&mut [f32]],
        rights: &[&[f32]],
        rows: Range<usize>,
    ) {
        let rights = &rights[rows.clone()];
        let width = rights[0].len();
        let mut panels = 0;
        for product in products.iter() {
            let packed = &mut self.left[panels * panel_size(tile.panel)..];
            // SAFETY: `best_tile` gives what the processor can run.
            unsafe { (tile.pack_left)(&product.lefts[rows.clone()], packed) };
            panels += product.panels(tile);
        }
        let [right, next] = &mut self.right;
        // SAFETY: as above.
        unsafe { (tile.pack_right)(rights, 0, right) };
        let mut soon = Vec::new();
        for side in (0..width).step_by(tile.width) {
            let first = side + tile.width;
            let mut next_panel = NextPanel {
                rows: if first < width { rights } else { &[] },
                first,
                packed: next,
            };
            let share = rights.len().div_ceil(panels.max(1));
            let mut lefts = self.left.chunks_exact(panel_size(tile.panel));
            for product in products.iter_mut() {
                let tops = (0..product.height).step_by(tile.panel);
                for (top, left) in tops.zip(&mut lefts) {
                    soon.clear();
                    soon.extend(next_panel.places(share));
                    let sides = Sides {
                        rows: rights.len(),
                        left: left.as_ptr(),
                        right: right.as_ptr(),
                        soon: &[],
                    };
                    let place = [top, side, width];
                    add_panel(tile, sides, product, place, &mut soon, &mut self.own);
                    next_panel.pack(tile, share);
                }
            }
            // All of them where there is no product.
            next_panel.pack(tile, rights.len());
            for total in totals.iter_mut() {
                let total = &mut total[side..width.min(first)];
                // SAFETY: `best_tile` gives what the processor can run; all rows are packed.
                unsafe { (tile.add)(right.as_ptr(), rights.len(), total) };
            }
            mem::swap(right, next);
        }
    }
}

/// Goes over the tiles of one panel of each side, of a sum of this width. Asks for what is in `soon`, and for the next
/// tile; `own` is memory for a tile at the edge.
fn add_panel(
    tile: Tile,
    sides: Sides<'_>,
    product: &mut Product<'_>,
    [top, side, width]: [usize; 3],
    soon: &mut Vec<*const f32>,
    own: &mut [f32],
) {
    let count = soon.len();
    let across = tile.width.min(width - side);
    for part in (0..tile.panel.min(product.height - top)).step_by(tile.height) {
        let down = tile.height.min(product.height - top - part);
        let first = (top + part) * width + side;
        let to = product.sum[first..].as_mut_ptr();
        soon.truncate(count);
        let below = (0..tile.height).map(|row| (tile.height + row) * width);
        soon.extend(below.map(|numbers| to.wrapping_add(numbers).cast_const()));
        let sides = Sides {
            left: sides.left.wrapping_add(part),
            soon,
            ..sides
        };
        if [down, across] == [tile.height, tile.width] {
            // SAFETY: `best_tile` gives what the processor can run; all rows are packed, and all of the tile is inside of
            // the sum.
            unsafe { (tile.run)(sides, [down, across], to, width) };
        } else {
            let places = (0..down).map(|row| first + row * width);
            for (place, own) in places.clone().zip(own.chunks_exact_mut(tile.width)) {
                own[..across].copy_from_slice(&product.sum[place..place + across]);
            }
            // SAFETY: as above, and `own` has the size of a tile.
            unsafe { (tile.run)(sides, [down, across], own.as_mut_ptr(), tile.width) };
            for (place, own) in places.zip(own.chunks_exact(tile.width)) {
                product.sum[place..place + across].copy_from_slice(&own[..across]);
            }
        }
    }
}

/// [`PackLeft`] for panels of `PANEL` columns.
#[inline(always)]
fn pack_left<const PANEL: usize>(rows: &[&[f32]], panels: &mut [f32]) {
    for (number, row) in rows.iter().enumerate() {
        if let Some(next) = rows.get(number + AHEAD) {
            prefetch(next);
        }
        let (whole, rest) = row.as_chunks::<PANEL>();
        let panels = panels.chunks_exact_mut(panel_size(PANEL));
        let mut places = panels.map(|panel| &mut panel[number * PANEL..][..PANEL]);
        for (part, place) in whole.iter().zip(&mut places) {
            place.copy_from_slice(part);
        }
        if let Some(place) = places.next() {
            place[..rest.len()].copy_from_slice(rest);
        }
    }
}

/// [`PackRight`] for panels of `WIDTH` columns.
#[inline(always)]
fn pack_right<const WIDTH: usize>(rows: &[&[f32]], first: usize, panel: &mut [f32]) {
    let places = panel.as_chunks_mut::<WIDTH>().0;
    for (number, (row, place)) in rows.iter().zip(places).enumerate() {
        if let Some(next) = rows.get(number + COLUMNS_AHEAD) {
            ask::<WIDTH>(next[first..].as_ptr());
        }
        let row = &row[first..];
        match row.first_chunk() {
            Some(row) => *place = *row,
            None => place[..row.len()].copy_from_slice(row),
        }
    }
}

/// [`Add`] for tiles of `WIDTH` columns.
///
/// # Safety
///
/// The panel has `WIDTH` columns and `rows` rows.
#[inline(always)]
unsafe fn add_rows<const WIDTH: usize>(right: *const f32, rows: usize, total: &mut [f32]) {
    let mut own = [0.0; WIDTH];
    own[..total.len()].copy_from_slice(total);
    for row in 0..rows {
        // SAFETY: the caller's promise.
        let row = unsafe { *right.add(row * WIDTH).cast::<[f32; WIDTH]>() };
        for (to, from) in own.iter_mut().zip(row) {
            *to += from;
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

/// Asks the caches for `NUMBERS` numbers.
#[inline(always)]
fn ask<const NUMBERS: usize>(first: *const f32) {
    #[cfg(target_arch = "x86_64")]
    for line in 0..=NUMBERS.div_ceil(16) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // The last one lies in a line of its own where the first does not begin one.
        let number = (line * 16).min(NUMBERS - 1);
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
                pack_left: x86::pack_left_512,
                pack_right: x86::pack_right_512,
            });
        }
        if std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma") {
            tiles.push(Tile {
                height: 6,
                width: 16,
                panel: 12,
                run: x86::run_256,
                add: x86::add_256,
                pack_left: x86::pack_left_256,
                pack_right: x86::pack_right_256,
            });
        }
    }
    tiles.push(Tile {
        height: 4,
        width: 16,
        panel: 4,
        run: run_anywhere,
        add: add_rows::<16>,
        pack_left: pack_left::<4>,
        pack_right: pack_right::<16>,
    });
    tiles
}

/// # Safety
///
/// As [`Run`] says, of 4 rows and 16 columns.
unsafe fn run_anywhere(sides: Sides<'_>, _: [usize; 2], tile: *mut f32, stride: usize) {
    for (soon, rows) in sides.stretches() {
        for own in soon {
            ask::<16>(*own);
        }
        let elements =
            |row| (0..4).flat_map(move |down| (0..16).map(move |across| (row, down, across)));
        for (row, down, across) in rows.flat_map(elements) {
            // SAFETY: the caller's promise.
            unsafe {
                let to = tile.add(down * stride + across);
                let a = *sides.left.add(row * 4 + down);
                let g = *sides.right.add(row * 16 + across);
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
                let mut alone = vec![0.25_f32; width];
                panels.add(tile, &mut [], &mut [&mut alone], &rights);
                assert_eq!(bits(&alone), bits(&expected[2]), "{what}");
            }
        }
    }
}
