//! The shared code of products: tiles whose sums registers hold, and the loops that call them.
//!
//! A product computes `c[i] = s[i] + a[i] · b` for rows `i`. The right side comes as panels of 32 columns, each
//! `[k][32]`. Every element is its start followed by one fused multiply-add for each `k` in order: so its bits
//! depend on no tile, and not on the rows beside it.
//!
//! A [`product`] is what kernels over rows call: rows of the left side lie anywhere, and results in memory that is
//! padded to whole vectors. [`BLOCK`] is what kernels over calls do: rows lie evenly, and nothing is written beyond
//! the result. A product of few columns would leave most lanes of a vector unused, and is a [`narrow_product`].
//!
//! Kernels over rows have the same for panels in `bf16`, whose numbers are widened as they are read: each multiply-add is
//! that of the rounded number in `f32`, in the same order.

mod blocks;
mod narrow;
mod rows;
mod tile;

pub use blocks::{BLOCK, CHECKED_BLOCK};
pub use narrow::narrow_product;
pub use rows::product;

use cohort_abi::manifest::WeightFormat;
use cohort_abi::symbols;

use crate::emit::Emitter;
use tile::Operands;

/// Bytes of a vector.
const VECTOR: i64 = 64;

/// Adds what kernels over rows call for weights that are kept so, for a processor whose registers hold `registers`
/// vectors.
pub fn add_products(module: &Emitter<'_>, registers: usize, format: WeightFormat) {
    rows::add(module, registers, format);
    narrow::add(module, format);
}

/// Declares what products of rows call that threads may share.
pub fn declare_sharing(module: &Emitter<'_>) {
    let mut types = vec![module.pointer];
    types.extend(Operands::types(module));
    types.extend([module.i64; 2]);
    module.declare(symbols::SHARE_PRODUCT, &types, None);
}

/// Adds what kernels over calls call.
pub fn add_blocks(module: &Emitter<'_>, registers: usize) {
    blocks::add(module, registers);
}
