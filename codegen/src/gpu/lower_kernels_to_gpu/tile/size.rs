//! What of a tile a thread has, and what shared memory that takes.

use cohort_abi::gpu::Precision;

use super::super::function::SHARED;
use super::super::ops::{THREADS, WARP, WIDE};
use super::warpgroup::PATTERN_BYTES;

/// Warps of a block, and buffers of each side, but of the largest tiles.
pub const WARPS: i64 = THREADS / WARP;
pub const STAGES: i64 = 2;

/// Elements behind each row of the left side, and words behind each k of the right side, where tensor cores
/// multiply: the lanes of a warp then read from 32 different banks, pairs of floats or words of two bf16 of eight rows. With
/// two k in a word they read from four neighbouring rows of the right side instead of from every other. Elsewhere lanes read the
/// same element of the left side, and neighbours of the right side.
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
    /// The warp as a whole; `across` warps lie side by side. The right side may be rounded already, and the left side kept
    /// in bf16.
    Tensor {
        precision: Precision,
        across: i64,
        is_rounded: bool,
        keeps_rows: bool,
    },
    /// A warpgroup as a whole, whose warps lie one below the other; both sides are in bf16 in memory.
    Warpgroups,
}

/// What of a tile's products decides how much shared memory a block needs.
#[derive(Clone, Copy, Debug)]
pub struct Gates {
    /// Columns of each.
    pub columns: i64,
    /// How many there are, and how many of the sum that has the most.
    pub all: i64,
    pub most: i64,
}

/// What one thread computes: rows and columns of each gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    pub unit: Unit,
    pub rows: i64,
    pub columns: i64,
    /// How many k are in a buffer of shared memory.
    pub depth: i64,
    /// Warps of a block.
    pub warps: i64,
    /// Buffers of each side: one is multiplied while the others are filled.
    pub stages: i64,
}

/// Terms of a buffer where warpgroups multiply: 128 bytes of each row and of each column.
pub const GROUP_TERMS: i64 = 64;

/// Rows and warps of a warpgroup.
pub const GROUP_ROWS: i64 = 64;
pub const GROUP_WARPS: i64 = 4;

impl Size {
    /// The size of `groups` warpgroups, with `columns` columns of each sum and `stages` buffers.
    pub fn of_warpgroups([groups, columns, stages]: [i64; 3]) -> Size {
        Size {
            unit: Unit::Warpgroups,
            rows: 2,
            columns: columns / 4,
            depth: GROUP_TERMS,
            warps: GROUP_WARPS * groups,
            stages,
        }
    }

    /// As the loop level has it: rows and columns of a thread, how many k are in shared memory at once, warps side by
    /// side, warps of a block and buffers. The first four are a size that has as many warps and buffers as most do.
    pub fn numbers(self) -> [i64; 6] {
        let across = self.across();
        let Size {
            rows,
            columns,
            depth,
            warps,
            stages,
            ..
        } = self;
        [rows, columns, depth, across, warps, stages]
    }

    /// What the address of a block's shared memory is a multiple of: of the copies, or of the pattern of the swizzle.
    pub fn alignment(self) -> i64 {
        match self.unit {
            Unit::Warpgroups => PATTERN_BYTES,
            Unit::Lanes | Unit::Tensor { .. } => 16,
        }
    }

    /// Threads of a block.
    pub fn threads(self) -> i64 {
        self.warps * WARP
    }

    /// The same of a block.
    pub fn block_rows(self) -> i64 {
        self.down() * self.warp_rows()
    }

    /// Warps one below the other.
    pub fn down(self) -> i64 {
        self.warps / self.across()
    }

    /// Warps side by side.
    pub fn across(self) -> i64 {
        match self.unit {
            Unit::Lanes | Unit::Warpgroups => 1,
            Unit::Tensor { across, .. } => across,
        }
    }

    pub fn block_columns(self) -> i64 {
        self.across() * self.warp_columns()
    }

    /// The same of a warp.
    pub fn warp_rows(self) -> i64 {
        match self.unit {
            Unit::Lanes => self.rows,
            Unit::Tensor { .. } | Unit::Warpgroups => 8 * self.rows,
        }
    }

    pub fn warp_columns(self) -> i64 {
        match self.unit {
            Unit::Lanes => WARP * self.columns,
            Unit::Tensor { .. } | Unit::Warpgroups => 4 * self.columns,
        }
    }

    pub fn column_blocks(self, gates: Gates) -> i64 {
        (gates.columns + self.block_columns() - 1) / self.block_columns()
    }

    /// Bytes of shared memory: the buffers of both operands, which the epilogue reuses to redistribute the sums.
    pub fn shared_bytes(self, gates: Gates) -> i64 {
        let sums = match self.redistributes(gates) {
            true => self.sums_bytes(gates) / self.parts(gates),
            false => 0,
        };
        self.buffers_bytes(gates).max(sums)
    }

    fn buffers_bytes(self, gates: Gates) -> i64 {
        self.stages * (self.left_bytes() + self.right_bytes(gates.most))
    }

    /// Bytes of a block's sums as the epilogue lays them out.
    pub fn sums_bytes(self, gates: Gates) -> i64 {
        gates.all * self.block_rows() * self.sums_stride() * 4
    }

    /// How many passes the epilogue takes to redistribute the sums: one if all of them fit into static shared memory,
    /// otherwise as many as it takes for the rows of a pass to fit into the buffers.
    pub fn parts(self, gates: Gates) -> i64 {
        self.parts_in(gates, self.buffers_bytes(gates).max(SHARED))
    }

    /// The same with `room` bytes of shared memory for the sums.
    pub fn parts_in(self, gates: Gates, room: i64) -> i64 {
        let mut parts = 1;
        while self.sums_bytes(gates) / parts > room && self.rows % (2 * parts) == 0 {
            parts *= 2;
        }
        parts
    }

    /// Whether threads get other columns than those of their sums, four neighbours each.
    pub fn redistributes(self, gates: Gates) -> bool {
        let has_four = self.unit == Unit::Lanes && self.columns == WIDE;
        gates.columns % WIDE == 0 && !has_four
    }

    /// Floats from a row of sums in shared memory to the next.
    pub fn sums_stride(self) -> i64 {
        let columns = self.block_columns();
        match self.unit {
            Unit::Tensor { .. } | Unit::Warpgroups if columns % 32 == 0 => columns + SUMS_PADDING,
            _ => columns,
        }
    }

    /// Whether rows of the left side are kept in bf16.
    pub fn keeps_rows(self) -> bool {
        self.left_elem() == 2
    }

    /// Bytes of an element of the left side.
    pub fn left_elem(self) -> i64 {
        match self.unit {
            Unit::Tensor {
                keeps_rows: true, ..
            }
            | Unit::Warpgroups => 2,
            _ => 4,
        }
    }

    /// Bytes from a row of the left side to the next.
    pub fn left_stride(self) -> i64 {
        let padding = match self.unit {
            Unit::Lanes | Unit::Warpgroups => 0,
            Unit::Tensor { .. } => LEFT_PADDING,
        };
        (self.depth + padding) * self.left_elem()
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
            Unit::Warpgroups => 2,
            Unit::Tensor { precision, .. } if self.is_rounded() => precision.per_word() as i64,
            _ => 1,
        }
    }

    /// Words from a k of the right side, or a few that share words, all gates, to the next.
    pub fn right_stride(self, gates: i64) -> i64 {
        let columns = gates * self.block_columns();
        match self.unit {
            Unit::Lanes | Unit::Warpgroups => columns,
            Unit::Tensor { .. } if self.per_word() == 1 => columns + RIGHT_PADDING,
            Unit::Tensor { .. } => columns + PAIRED_PADDING,
        }
    }

    pub fn left_bytes(self) -> i64 {
        self.block_rows() * self.left_stride()
    }

    pub fn right_bytes(self, gates: i64) -> i64 {
        self.depth / self.per_word() * self.right_stride(gates) * 4
    }
}
