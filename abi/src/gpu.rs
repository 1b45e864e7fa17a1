//! Kernels on a GPU: what a launch needs to know, and what its functions are given.
//!
//! A kernel of the program is a short sequence of *launches*, one after another. Each
//! launch computes all rows of a bucket, and the next one may read whatever it wrote, unless it is
//! [`beside`](GpuLaunch::beside) it. All its
//! functions, of every launch, take the same arguments; they are listed below.
//!
//! A launch has one function, or some that differ in their tiles only: a small tile spreads few
//! rows over the card, a large one loads a weight for more rows at once. They give the same bits,
//! so the number of rows may choose between them ([`GpuLaunch::function`]).
//!
//! All launches of a flush can be one: see [`flush`].
//!
//! The very same functions can be run on the host, compiled by `lower-gpu-to-host`: see [`SimFn`].
//!
//! # Arguments
//!
//! Every argument has 8 bytes. In order:
//!
//! | argument | count | |
//! |---|---|---|
//! | `rows` | 1 | rows of the bucket, `i64`, at least 1 |
//! | `base`, `index`, `offsets` | for each of the kernel's operands | the fields of [`OperandRef`](crate::OperandRef), as addresses on the device |
//! | `result` | for each of the kernel's results | the address of the row of the bucket's row 0; rows are dense |
//! | `constant` | for each of [`GpuKernel::constants`] | its address; 0 for one `by_columns` if the loaded code has no warpgroup function for the kernel |
//! | `scratch` | 1 | [`GpuKernel::scratch`] bytes, uninitialised, private to this call of the kernel |
//!
//! A scalar operand's values are in `index`, as for the CPU; what an operand does not use is 0. The
//! addresses of row pools (`base`), of constants and of scratch are multiples of [`ALIGNMENT`]. Results are
//! rows of row pools too, so those whose rows have a multiple of 16 bytes begin at one. Addresses of
//! indices are multiples of 4. Constants may be read
//! up to 64 bytes behind their end, as on the CPU; nothing else is.
//!
//! Where the unit is the call ([`Unit::Calls`](crate::manifest::Unit::Calls)), two more are there, and
//! others mean something else:
//!
//! | argument | count | |
//! |---|---|---|
//! | `rows` | 1 | calls of the bucket |
//! | `base`, `index`, `offsets` | for each operand | `index` has an entry a call: of ragged operands their first row |
//! | `firsts` | 1 | for each call the row of the bucket at which its results begin, `u32` |
//! | `result`, `constant` | as above | |
//! | `scratch` | 1 | as above; by calls, not rows |
//! | `blocks` | for each launch | what each of its blocks computes: a call and the number of one of its tiles, both `u32` |
//!
//! # Grid
//!
//! `grid = (blocks(rows), column_blocks, 1)`, `block = (threads, 1, 1)`: [`GpuFunction::grid`].
//! A bucket without rows is not launched. Shared memory is static, so a launch asks for none.
//!
//! Where the unit is the call, `grid = (entries of blocks, 1, 1)`: a block an entry, for each call as
//! many as it has tiles ([`CallTiles`]), those that take longest first. A launch without blocks is left
//! out.

pub mod flush;

pub use flush::{GpuClusters, GpuFlush};

use serde::{Deserialize, Serialize};
use std::ffi::c_void;

use crate::manifest::{Constant, Extent, constants_with};

/// Bytes that the addresses of row pools, constants and scratch on the device are multiples of.
pub const ALIGNMENT: u64 = 64;

/// How a kernel runs on a GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuKernel<Param = usize> {
    /// What the functions' `constant` arguments point to; none is [`Constant::Panels`].
    pub constants: Vec<Constant<Param>>,
    /// Bytes of scratch whatever the number of rows; a multiple of [`ALIGNMENT`].
    pub scratch_bytes: u64,
    /// Bytes of scratch a row; a multiple of [`ALIGNMENT`].
    pub scratch_bytes_per_row: u64,
    /// Of its products.
    #[serde(default, skip_serializing_if = "Precision::is_f32")]
    pub precision: Precision,
    /// In order; at least one.
    pub launches: Vec<GpuLaunch>,
}

impl<Param> GpuKernel<Param> {
    /// The same kernel, with something else for each parameter.
    pub fn with<P, E>(self, param: &impl Fn(Param) -> Result<P, E>) -> Result<GpuKernel<P>, E> {
        Ok(GpuKernel {
            constants: constants_with(self.constants, param)?,
            scratch_bytes: self.scratch_bytes,
            scratch_bytes_per_row: self.scratch_bytes_per_row,
            precision: self.precision,
            launches: self.launches,
        })
    }
}

/// What the factors of products are rounded to. Sums are of `f32`, and so is all else.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// Not rounded.
    #[default]
    F32,
    /// 11 bits, with the exponents of `f32`, on tensor cores.
    Tf32,
    /// 8 bits, with the exponents of `f32`, on tensor cores.
    Bf16,
}

impl Precision {
    /// For messages.
    pub const NAMES: &'static str = "f32, tf32 and bf16";

    /// The precision of that name; `None` where there is none.
    pub fn parse(name: &str) -> Option<Precision> {
        let all = [Precision::F32, Precision::Tf32, Precision::Bf16];
        all.into_iter().find(|precision| precision.name() == name)
    }

    /// As `--precision` takes it.
    pub fn name(self) -> &'static str {
        match self {
            Precision::F32 => "f32",
            Precision::Tf32 => "tf32",
            Precision::Bf16 => "bf16",
        }
    }

    /// How many elements of a rounded matrix have a word of 4 bytes together.
    pub fn per_word(self) -> u64 {
        match self {
            Precision::F32 | Precision::Tf32 => 1,
            Precision::Bf16 => 2,
        }
    }

    /// Whether products are exact to `f32`, on any unit.
    pub fn is_f32(&self) -> bool {
        *self == Precision::F32
    }
}

impl std::fmt::Display for Precision {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name())
    }
}

impl GpuKernel {
    /// Bytes of scratch that a call for `rows` rows needs; beyond any memory where they cannot be counted.
    pub fn scratch(&self, rows: u64) -> u64 {
        rows.saturating_mul(self.scratch_bytes_per_row)
            .saturating_add(self.scratch_bytes)
            .min(1 << 62)
    }
}

/// Shared memory that code declares itself, at most, in bytes. A block that has more has all of it from whoever launches it.
pub const STATIC_SHARED_BYTES: u32 = 48 << 10;

/// Arguments' bytes that every GPU takes.
pub const ARGUMENT_BYTES: usize = 4096;

/// Shared memory of a block on every GPU that there is code for, in bytes: those of compute capability 8.6, 8.9 and 12
/// have no more.
pub const MOST_SHARED_BYTES: u32 = 99 << 10;

/// Shared memory of a block on every GPU that has clusters, in bytes, but for those of compute capability 12, on which programs
/// run without.
pub const MOST_CLUSTER_SHARED_BYTES: u32 = 227 << 10;

/// What of a block's shared memory its launch gives.
pub fn dynamic_shared_bytes(shared_bytes: u32) -> u32 {
    match shared_bytes > STATIC_SHARED_BYTES {
        true => shared_bytes,
        false => 0,
    }
}

/// One launch: the same work in one or more sizes of tiles.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuLaunch {
    /// By [`GpuFunction::from_rows`], the first of which is 0.
    pub functions: Vec<GpuFunction>,
    /// What replaces them, from its own [`GpuFunction::from_rows`] on, if the loaded code has it: a function that multiplies by
    /// warpgroups (sm_90a).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grouped: Option<GpuFunction>,
    /// What takes the place of the first of them in a flush that is one launch, where [`GpuFlush::functions`] has it: its
    /// weights stay in a block's shared memory as long as the block has the same columns. So its grid has the columns
    /// along the first dim and the rows along the second ([`GpuFunction::resident_grid`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resident: Option<GpuFunction>,
    /// The same in a flush whose blocks form clusters, where [`GpuClusters::functions`] has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clustered: Option<GpuFunction>,
    /// Whether it needs nothing of the launch before it, nor of those which that one is beside: all of them are a
    /// *wave*. A kernel's first launch is beside nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub beside: bool,
}

impl GpuLaunch {
    /// All functions: those that are launched, on some cards or all, and those that only flushes run.
    pub fn all_functions(&self) -> impl Iterator<Item = &GpuFunction> {
        let launched = self.functions.iter();
        let others = [&self.grouped, &self.resident, &self.clustered];
        launched.chain(others.into_iter().flatten())
    }

    /// The function for `rows` rows.
    pub fn function(&self, rows: u64) -> Option<&GpuFunction> {
        let fits = |function: &&GpuFunction| function.from_rows <= rows;
        self.functions.iter().rev().find(fits)
    }
}

/// A function of the GPU code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuFunction {
    /// Its name in the PTX or CUBIN; for the host, that of a [`SimFn`].
    pub symbol: String,
    /// The number of rows from which on it is the better choice; where the unit is the call, the
    /// number of its own blocks.
    pub from_rows: u64,
    /// Threads of a block, a multiple of 32.
    pub threads: u32,
    /// What the tiles count: rows of a matrix a row of the bucket, 1 where a row is a vector, or 0
    /// where the work is the same for any number of rows.
    pub tile_rows_per_row: u64,
    /// Of these, how many a block computes.
    pub tile_rows: u64,
    /// Blocks along the second dim of the grid.
    pub column_blocks: u32,
    /// Shared memory of a block, at most [`MOST_SHARED_BYTES`]; [`MOST_CLUSTER_SHARED_BYTES`] in a cluster, or where
    /// warpgroups multiply.
    pub shared_bytes: u32,
    /// Whether a block goes on to further tiles at a stride of the grid's first dim, which then needs no more blocks than the device
    /// has at once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub grid_stride: bool,
    /// What the blocks of a call are, where the unit is the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<CallTiles>,
}

/// How a call is cut into tiles, each of which a block computes. They are numbered row-major, and a
/// tile at the end of a dim may have less.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallTiles {
    /// Outermost first.
    pub dims: Vec<TiledDim>,
    /// How much a tile takes, roughly.
    pub work: Extent,
}

/// A dim that is cut into tiles.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TiledDim {
    /// How long it is in a call.
    pub length: Extent,
    /// Entries of a tile, at least 1.
    pub tile: u64,
}

impl CallTiles {
    /// The tiles of a call whose lengths, given by operand, are these.
    pub fn count(&self, length: impl Fn(usize) -> u64) -> u64 {
        let tiles = |dim: &TiledDim| dim.length.count(&length).div_ceil(dim.tile.max(1));
        self.dims.iter().map(tiles).fold(1, u64::saturating_mul)
    }
}

impl GpuFunction {
    /// Of a function whose weights stay: the blocks along the first dim, one for each part of the columns, and the
    /// second.
    pub fn resident_grid(&self, rows: u64) -> (u32, u64) {
        let (tiles, columns) = self.grid(rows);
        (columns, tiles)
    }

    /// Blocks along the first and the second dim of the grid.
    pub fn grid(&self, rows: u64) -> (u64, u32) {
        let tile_rows = (rows * self.tile_rows_per_row).max(1);
        (
            tile_rows.div_ceil(self.tile_rows.max(1)),
            self.column_blocks,
        )
    }

    /// The same where the device has `blocks` blocks of it at once, which is as many as there are if they go on to further tiles.
    pub fn grid_within(&self, rows: u64, blocks: u64) -> (u64, u32) {
        let (tiles, columns) = self.grid(rows);
        let most = match self.grid_stride {
            true => (blocks / u64::from(columns.max(1))).max(1),
            false => u64::MAX,
        };
        (tiles.min(most), columns)
    }
}

/// `thread(arguments, block_x, block_y, thread, shared, context)`: runs one thread of a block.
///
/// * `arguments`: the function's arguments as listed [above](self#arguments), one `u64` each, host
///   addresses;
/// * `shared`: the block's [`GpuFunction::shared_bytes`], aligned to 16;
/// * `context`: handed on to [`BARRIER`] as it is.
///
/// At a barrier the function calls [`BARRIER`], `extern "C" fn(context: *mut c_void)`, which returns
/// when all threads of the block have called it; each of them runs on a fiber of its own until then.
/// Every thread of a block calls it equally often.
pub type SimFn = unsafe extern "C" fn(
    arguments: *const u64,
    block_x: u64,
    block_y: u64,
    thread: u64,
    shared: *mut c_void,
    context: *mut c_void,
);

/// The symbol that a [`SimFn`] calls at a barrier, with its `context`.
pub const BARRIER: &str = "cohort_sim_barrier";

/// `fn(context, barrier: i64, threads: i64)`, called at a named barrier, `bar.sync barrier, threads`: returns when `threads` threads of
/// the block, those of whole warpgroups, have called it with this `barrier`, a number from 1 to 15.
pub const NAMED_BARRIER: &str = "cohort_sim_named_barrier";

/// `fn(context) -> i64`: blocks along the first dim of the grid.
pub const GRID_DIM: &str = "cohort_sim_grid_dim";

/// The symbol that a [`SimFn`] calls with its `context` where all threads of all blocks wait for each
/// other; only [`GpuFlush::symbol`] does.
pub const GRID_BARRIER: &str = "cohort_sim_grid_barrier";

/// The symbol that a [`SimFn`] calls with its `context` where all threads of a cluster's blocks wait for each other; only
/// [`GpuClusters::symbol`] does.
pub const CLUSTER_BARRIER: &str = "cohort_sim_cluster_barrier";

/// `fn(context, to: *mut u8, from: *const u8, bytes: i64, copied: i64)`, called to begin a copy to
/// shared memory: of `bytes` bytes, all but the first `copied` are zeros. They are there when the thread
/// has waited for the group of the copy, and nothing may be read there before.
pub const COPY: &str = "cohort_sim_copy";

/// `fn(context)`, called to make one group of the copies that the thread began since the last one.
pub const COMMIT: &str = "cohort_sim_commit";

/// `fn(context, pending: i64)`, called to wait for all groups of the thread but the last `pending`.
pub const WAIT: &str = "cohort_sim_wait";

/// `fn(context, k: i64, registers: *mut u32)`, called where a warp multiplies matrices of 16 rows and
/// 8 columns: with `k` 8 of tf32, with 16 of bf16. The thread's 4 registers of the left side, 2 of the
/// right side and 4 sums are as the instruction `mma.sync` has them; the sums are replaced when all 32
/// threads of the warp have called it.
pub const MULTIPLY: &str = "cohort_sim_multiply";

/// `fn(context, columns: i64, left: i64, right: i64, sums: *mut f32)`, called where a warpgroup multiplies bf16 matrices, of
/// shape m64n`columns`k16. `left` and `right` are matrix descriptors as `wgmma.mma_async` takes them, whose addresses are relative to
/// the start of the block's shared memory. `sums` are the thread's `columns / 2` accumulator registers, which are updated once
/// all 128 threads of the warpgroup have called it.
pub const MULTIPLY_GROUP: &str = "cohort_sim_multiply_group";

/// `fn(context, value: f32, lanes: i64) -> f32`, called where the threads of a warp exchange values: gives the value of the lane
/// whose number differs in the bits of `lanes`, as `shfl.sync.bfly` does.
pub const SHUFFLE: &str = "cohort_sim_shuffle";

/// `fn(value: f32) -> u32`: the value rounded to tf32, `cvt.rna.tf32.f32`.
pub const TO_TF32: &str = "cohort_sim_to_tf32";

/// `fn(high: f32, low: f32) -> u32`: both rounded to bf16, `cvt.rn.bf16x2.f32`.
pub const TO_BF16_PAIR: &str = "cohort_sim_to_bf16_pair";

#[cfg(test)]
mod tests {
    use super::*;

    fn function(from_rows: u64, tile_rows: u64) -> GpuFunction {
        GpuFunction {
            symbol: format!("from_{from_rows}"),
            from_rows,
            threads: 128,
            tile_rows_per_row: 3,
            tile_rows,
            column_blocks: 2,
            shared_bytes: 0,
            grid_stride: false,
            calls: None,
        }
    }

    #[test]
    fn the_tiles_of_a_call_depend_on_its_lengths() {
        let dim = |lengths: &[usize], times, tile| TiledDim {
            length: Extent {
                lengths: lengths.to_vec(),
                times,
            },
            tile,
        };
        let tiles = CallTiles {
            dims: vec![dim(&[], 3, 1), dim(&[1], 1, 64), dim(&[0], 2, 32)],
            work: Extent::default(),
        };
        let count = |lengths: [u64; 2]| tiles.count(|operand| lengths[operand]);
        assert_eq!(count([1, 65]), 6);
        assert_eq!(count([17, 64]), 6);
        assert_eq!((count([0, 64]), count([1, 0])), (0, 0));
    }

    #[test]
    fn the_grid_covers_all_rows() {
        assert_eq!(function(0, 8).grid(1), (1, 2));
        assert_eq!(function(0, 8).grid(8), (3, 2));
        assert_eq!(function(0, 8).grid(9), (4, 2));
        assert_eq!(function(0, 8).resident_grid(9), (2, 4));
        assert_eq!(function(0, 8).grid_within(9, 5), (4, 2));
        let strides = GpuFunction {
            grid_stride: true,
            ..function(0, 8)
        };
        assert_eq!(strides.grid_within(9, 5), (2, 2));
        assert_eq!(strides.grid_within(9, 1), (1, 2));
        assert_eq!(strides.grid_within(1, 100), (1, 2));
    }

    #[test]
    fn the_rows_choose_the_function() {
        let launch = GpuLaunch {
            functions: vec![function(0, 8), function(100, 32)],
            grouped: None,
            resident: None,
            clustered: None,
            beside: false,
        };
        let symbol = |rows| launch.function(rows).map(|f| f.symbol.clone());
        assert_eq!(symbol(99).as_deref(), Some("from_0"));
        assert_eq!(symbol(100).as_deref(), Some("from_100"));
    }
}
