//! How large the tiles of a launch are.

use cohort_abi::gpu::Precision;
use cohort_passes::kernel::rows::layout::round_up;

use super::plan::Tile;
use crate::gpu::lower_kernels_to_gpu::function::SHARED;
use crate::gpu::lower_kernels_to_gpu::tile::{Gates, Size, Unit};

/// How many k are in shared memory at once. With few rows there is little to compute while the next
/// ones are on their way, so more of them are sent for at once.
const DEPTH: i64 = 16;
const SMALL_DEPTH: i64 = 32;
/// The same where elements are copied one by one: each takes registers for its address.
const NARROW_DEPTH: i64 = 8;

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
    let deeper = Size {
        depth: SMALL_DEPTH,
        ..size
    };
    let mut segments = tile.chains.iter().flat_map(|chain| &chain.segments);
    let same = segments.all(|s| round_up(s.k, SMALL_DEPTH) == round_up(s.k, DEPTH));
    if same && deeper.shared_bytes(gates_of(tile)) <= SHARED {
        deeper
    } else {
        size
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

/// The sizes of a tile, and the number of rows from which on the large one is used. Both pad k alike.
pub fn sizes(tile: &Tile<'_>, precision: Precision, is_rounded: bool) -> (Size, Size, i64) {
    let gates = tile.gates() as i64;
    let (small, large) = match precision {
        Precision::F32 => of_lanes(tile, gates),
        _ => of_tensor_cores(tile, gates, (precision, is_rounded)),
    };
    let blocks = PROCESSORS / large.column_blocks(gates_of(tile));
    let from = (blocks * large.block_rows() / tile.matrix_rows()).max(1);
    (small, large, from)
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
    };
    let small = Size {
        rows: 2,
        columns: if gates == 1 { columns.min(2) } else { 1 },
        ..large
    };
    let small = if wide { deeper(small, tile) } else { small };
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
    let room = |size: Size| size.shared_bytes(gates_of(tile)) <= SHARED;
    if is_wide(tile) && room(deep(small)) && room(deep(large)) {
        return (deep(small), deep(large));
    }
    (small, large)
}
