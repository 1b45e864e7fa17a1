//! How large the tiles of a launch are, and what of them a thread has.

use cohort_abi::gpu::Precision;

use super::super::function::SHARED;
use super::super::ops::{THREADS, WARP, WIDE};
use super::super::plan::Tile;
use super::{columns_of, matrix_rows};
use crate::kernel::rows::layout::round_up;

const WARPS: i64 = THREADS / WARP;

/// How many k are in shared memory at once. With few rows there is little to compute while the next
/// ones are on their way, so more of them are sent for at once.
const DEPTH: i64 = 16;
const SMALL_DEPTH: i64 = 32;
/// The same where elements are copied one by one: each takes registers for its address.
const NARROW_DEPTH: i64 = 8;

/// Streaming multiprocessors that a launch should fill before it takes larger tiles.
const PROCESSORS: i64 = 128;

/// Floats behind each row of the left side, and behind each k of the right side, where tensor cores
/// multiply: the lanes of a warp then read from 32 different banks. With two k in a word they read from
/// four neighbouring rows of the right side instead of from every other. Elsewhere lanes read the same element of the
/// left side, and neighbours of the right side.
const LEFT_PADDING: i64 = 8;
const RIGHT_PADDING: i64 = 4;
const PAIRED_PADDING: i64 = 8;

/// The same behind each row of sums: eight lanes' neighbouring rows of eight columns each.
const SUMS_PADDING: i64 = 8;

/// What multiplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Each lane its own sums, in `f32`.
    Lanes,
    /// The warp as a whole; so many warps lie side by side. The right side may be rounded already.
    Tensor {
        precision: Precision,
        across: i64,
        is_rounded: bool,
    },
}

/// What one thread computes: rows and columns of each gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    pub unit: Unit,
    pub rows: i64,
    pub columns: i64,
    /// How many k are in shared memory at once.
    pub depth: i64,
}

impl Size {
    /// The same of a block.
    pub fn block_rows(self) -> i64 {
        match self.unit {
            Unit::Lanes => WARPS * self.rows,
            Unit::Tensor { across, .. } => WARPS / across * self.warp_rows(),
        }
    }

    pub fn block_columns(self) -> i64 {
        match self.unit {
            Unit::Lanes => self.warp_columns(),
            Unit::Tensor { across, .. } => across * self.warp_columns(),
        }
    }

    /// The same of a warp.
    pub fn warp_rows(self) -> i64 {
        match self.unit {
            Unit::Lanes => self.rows,
            Unit::Tensor { .. } => 8 * self.rows,
        }
    }

    pub fn warp_columns(self) -> i64 {
        match self.unit {
            Unit::Lanes => WARP * self.columns,
            Unit::Tensor { .. } => 4 * self.columns,
        }
    }

    pub fn column_blocks(self, tile: &Tile<'_>) -> i64 {
        (columns_of(tile) + self.block_columns() - 1) / self.block_columns()
    }

    /// Bytes of shared memory: two buffers of each side, and later in their place the sums that are dealt
    /// anew.
    pub fn shared_bytes(self, tile: &Tile<'_>) -> i64 {
        let gates = tile.chains.iter().map(|chain| chain.gates.len() as i64);
        let gates = gates.max().unwrap_or(1);
        let buffers = 2 * (self.left_bytes() + self.right_bytes(gates));
        let sums = match self.deals_anew(tile) {
            true => tile.gates() as i64 * self.block_rows() * self.sums_stride() * 4,
            false => 0,
        };
        buffers.max(sums)
    }

    /// Whether threads get other columns than those of their sums, four neighbours each.
    pub fn deals_anew(self, tile: &Tile<'_>) -> bool {
        let has_four = self.unit == Unit::Lanes && self.columns == WIDE;
        columns_of(tile) % WIDE == 0 && !has_four
    }

    /// Floats from a row of sums in shared memory to the next.
    pub fn sums_stride(self) -> i64 {
        let columns = self.block_columns();
        match self.unit {
            Unit::Tensor { .. } if columns % 32 == 0 => columns + SUMS_PADDING,
            _ => columns,
        }
    }

    /// Floats from a row of the left side to the next.
    pub fn left_stride(self) -> i64 {
        match self.unit {
            Unit::Lanes => self.depth,
            Unit::Tensor { .. } => self.depth + LEFT_PADDING,
        }
    }

    /// Whether the right side is of rounded weights.
    pub fn is_rounded(self) -> bool {
        matches!(
            self.unit,
            Unit::Tensor {
                is_rounded: true,
                ..
            }
        )
    }

    /// How many k of a column share a word of the right side.
    pub fn per_word(self) -> i64 {
        match self.unit {
            Unit::Tensor { precision, .. } if self.is_rounded() => precision.per_word() as i64,
            _ => 1,
        }
    }

    /// Words from a k of the right side, or a few that share words, all gates, to the next.
    pub fn right_stride(self, gates: i64) -> i64 {
        let columns = gates * self.block_columns();
        match self.unit {
            Unit::Lanes => columns,
            Unit::Tensor { .. } if self.per_word() == 1 => columns + RIGHT_PADDING,
            Unit::Tensor { .. } => columns + PAIRED_PADDING,
        }
    }

    pub fn left_bytes(self) -> i64 {
        self.block_rows() * self.left_stride() * 4
    }

    pub fn right_bytes(self, gates: i64) -> i64 {
        self.depth / self.per_word() * self.right_stride(gates) * 4
    }

    /// The same with more k at once, if there is room, and if no sum is then padded with other zeros:
    /// a zero that is added can change the sign of a zero.
    fn deeper(self, tile: &Tile<'_>) -> Size {
        let deeper = Size {
            depth: SMALL_DEPTH,
            ..self
        };
        let mut segments = tile.chains.iter().flat_map(|chain| &chain.segments);
        let same = segments.all(|s| round_up(s.k, SMALL_DEPTH) == round_up(s.k, DEPTH));
        if same && deeper.shared_bytes(tile) <= SHARED {
            deeper
        } else {
            self
        }
    }
}

/// Whether rows and columns can be copied by four.
fn is_wide(tile: &Tile<'_>) -> bool {
    let mut segments = tile.chains.iter().flat_map(|chain| &chain.segments);
    let mut gates = tile.chains.iter().flat_map(|chain| &chain.gates);
    columns_of(tile) % 4 == 0
        && segments.all(|segment| segment.k % 4 == 0)
        && gates.all(|gate| gate.offset % 4 == 0)
}

/// The sizes of a tile, each with the number of rows from which on it is used. All of them pad k alike.
pub fn sizes(tile: &Tile<'_>, precision: Precision, is_rounded: bool) -> Vec<(Size, i64)> {
    let gates: i64 = tile
        .chains
        .iter()
        .map(|chain| chain.gates.len() as i64)
        .sum();
    let (small, large) = match precision {
        Precision::F32 => of_lanes(tile, gates),
        _ => of_tensor_cores(tile, gates, (precision, is_rounded)),
    };
    let blocks = PROCESSORS / large.column_blocks(tile);
    let from = (blocks * large.block_rows() / matrix_rows(tile)).max(1);
    vec![(small, 0), (large, from)]
}

fn of_lanes(tile: &Tile<'_>, gates: i64) -> (Size, Size) {
    let columns = match (gates, columns_of(tile)) {
        (_, ..=32) => 1,
        (1, 128..) => 4,
        (1 | 2, _) => 2,
        _ => 1,
    };
    let rows = if gates * columns <= 5 { 8 } else { 4 };
    let wide = is_wide(tile);
    let large = Size {
        unit: Unit::Lanes,
        rows,
        columns,
        depth: if wide { DEPTH } else { NARROW_DEPTH },
    };
    let small = Size {
        rows: 2,
        columns: if gates == 1 { columns.min(2) } else { 1 },
        ..large
    };
    let small = if wide { small.deeper(tile) } else { small };
    (small, large)
}

/// A warp multiplies 16 rows and 8 columns at a time, of which a thread has two and two.
fn of_tensor_cores(
    tile: &Tile<'_>,
    gates: i64,
    (precision, is_rounded): (Precision, bool),
) -> (Size, Size) {
    let unit = |across| Unit::Tensor {
        precision,
        across,
        is_rounded,
    };
    let large = Size {
        unit: unit(2),
        rows: 4,
        columns: match gates {
            1 | 2 => 8,
            3 | 4 => 4,
            _ => 2,
        },
        depth: DEPTH,
    };
    let small = Size {
        unit: unit(4),
        rows: 2,
        columns: 2,
        depth: DEPTH,
    };
    let deep = |size: Size| Size {
        depth: SMALL_DEPTH,
        ..size
    };
    let room = |size: Size| size.shared_bytes(tile) <= SHARED;
    if is_wide(tile) && room(deep(small)) && room(deep(large)) {
        return (deep(small), deep(large));
    }
    (small, large)
}
