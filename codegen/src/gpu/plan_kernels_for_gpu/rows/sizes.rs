//! How large the tiles of a launch are.

use cohort_abi::gpu::Precision;
use cohort_passes::kernel::rows::layout::round_up;

use super::plan::Tile;
use crate::gpu::lower_kernels_to_gpu::function::{MOST_SHARED, SHARED};
use crate::gpu::lower_kernels_to_gpu::tile::{Gates, STAGES, Size, Unit, WARPS};

/// How many k are in shared memory at once. With few rows there is little to compute while the next
/// ones are on their way, so more of them are sent for at once.
const DEPTH: i64 = 16;
const SMALL_DEPTH: i64 = 32;
/// The same where elements are copied one by one: each takes registers for its address. `MOST_COPIES` limits how many a thread
/// of the small size copies per step.
const NARROW_DEPTH: i64 = 8;
const MOST_COPIES: i64 = 12;

/// Columns of a thread in the largest tiles, of all gates, and their depths and buffers, the best first.
const LARGEST_COLUMNS: i64 = 16;
const BUFFERS: [(i64, i64); 5] = [(32, 3), (16, 4), (16, 3), (32, 2), (16, 2)];

/// Streaming multiprocessors that a launch should fill before it takes larger tiles.
const PROCESSORS: i64 = 128;

fn gates_of(tile: &Tile<'_>) -> Gates {
    let gates = tile.chains.iter().map(|chain| chain.gates.len() as i64);
    Gates {
        columns: tile.columns(),
        all: tile.gates() as i64,
        most: gates.max().unwrap_or(1),
    }
}

/// The same with more k at once, if there is room, and if no sum is then padded with other zeros:
/// a zero that is added can change the sign of a zero.
fn deeper(size: Size, tile: &Tile<'_>) -> Size {
    let gates = gates_of(tile);
    let copies = |depth: i64| {
        let elements = (size.block_rows() + gates.most * size.block_columns()) * depth;
        elements / size.threads()
    };
    let fits = |depth: &i64| {
        let mut segments = tile.chains.iter().flat_map(|chain| &chain.segments);
        segments.all(|s| round_up(s.k, *depth) == round_up(s.k, size.depth))
            && (is_wide(tile) || copies(*depth) <= MOST_COPIES)
            && Size {
                depth: *depth,
                ..size
            }
            .shared_bytes(gates)
                <= SHARED
    };
    let depth = [SMALL_DEPTH, DEPTH].into_iter().find(fits);
    Size {
        depth: depth.unwrap_or(size.depth),
        ..size
    }
}

/// Whether rows and columns can be copied by four.
fn is_wide(tile: &Tile<'_>) -> bool {
    let mut segments = tile.chains.iter().flat_map(|chain| &chain.segments);
    let mut gates = tile.chains.iter().flat_map(|chain| &chain.gates);
    tile.columns() % 4 == 0
        && segments.all(|segment| segment.k % 4 == 0)
        && gates.all(|gate| gate.offset % 4 == 0)
}

/// The sizes of a tile. All of them pad k alike.
pub struct Sizes {
    pub small: Size,
    /// With the number of rows from which on it is used.
    pub large: (Size, i64),
    /// The same, where there is one.
    pub largest: Option<(Size, i64)>,
}

/// Chooses the sizes of a tile.
pub fn sizes(tile: &Tile<'_>, precision: Precision, is_rounded: bool) -> Sizes {
    let gates = tile.gates() as i64;
    let (small, large) = match precision {
        Precision::F32 => of_lanes(tile, gates),
        _ => of_tensor_cores(tile, gates, (precision, is_rounded)),
    };
    let largest = match precision {
        Precision::F32 => None,
        _ => largest(tile, small, large),
    };
    let from = |size: Size| rows_from(size, gates_of(tile), tile.matrix_rows());
    Sizes {
        small,
        large: (large, from(large)),
        largest: largest.map(|size| (size, from(size).max(from(large)))),
    }
}

fn of_lanes(tile: &Tile<'_>, gates: i64) -> (Size, Size) {
    let columns = match (gates, tile.columns()) {
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
        warps: WARPS,
        stages: STAGES,
    };
    let small = Size {
        rows: 2,
        columns: if gates == 1 { columns.min(2) } else { 1 },
        ..large
    };
    (deeper(small, tile), large)
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
        keeps_rows: false,
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
        warps: WARPS,
        stages: STAGES,
    };
    let small = Size {
        unit: unit(4),
        rows: 2,
        columns: 2,
        ..large
    };
    let deep = |size: Size| Size {
        depth: SMALL_DEPTH,
        ..size
    };
    let room = |size: Size| size.shared_bytes(gates_of(tile)) <= SHARED;
    if is_wide(tile) && room(deep(small)) && room(deep(large)) {
        return (deep(small), deep(large));
    }
    (small, large)
}

/// A tile of 128 rows and 256 columns in all, or as near as its gates come, of which a thread has 128 sums: it moves the
/// fewest bytes for what it multiplies that registers let it. Buffers are as deep and as many as all cards have room
/// for. There is none where the large size is as good: where the tile has fewer columns, or copies elements one by one.
fn largest(tile: &Tile<'_>, small: Size, large: Size) -> Option<Size> {
    let Unit::Tensor {
        precision,
        is_rounded,
        ..
    } = large.unit
    else {
        return None;
    };
    let gates = gates_of(tile);
    let columns = LARGEST_COLUMNS / gates.all / 2 * 2;
    let size = Size {
        unit: Unit::Tensor {
            precision,
            across: 4,
            is_rounded,
            keeps_rows: false,
        },
        rows: 8,
        columns,
        warps: 8,
        ..large
    };
    let segments = tile.chains.iter().flat_map(|chain| &chain.segments);
    let size = buffers(size, gates, segments.map(|segment| segment.k), small.depth)?;
    let is_worth_it = is_wide(tile) && columns > 0 && size.block_columns() <= gates.columns;
    is_worth_it.then_some(size)
}

/// The largest size with the best depth and number of buffers that have room, and that fill all sums' terms as a size of another
/// depth does.
pub fn buffers(
    size: Size,
    gates: Gates,
    terms: impl Iterator<Item = i64>,
    other: i64,
) -> Option<Size> {
    let terms: Vec<i64> = terms.collect();
    let pads_alike = |size: &Size| {
        let mut terms = terms.iter();
        terms.all(|k| round_up(*k, size.depth) == round_up(*k, other))
    };
    let candidates = BUFFERS.into_iter();
    let mut candidates = candidates.map(|(depth, stages)| Size {
        depth,
        stages,
        ..size
    });
    candidates.find(|size| pads_alike(size) && size.shared_bytes(gates) <= MOST_SHARED)
}

/// So many rows of a kernel that each multiprocessor has a tile of this size.
pub fn rows_from(size: Size, gates: Gates, matrix_rows: i64) -> i64 {
    let blocks = PROCESSORS / size.column_blocks(gates);
    (blocks * size.block_rows() / matrix_rows).max(1)
}
