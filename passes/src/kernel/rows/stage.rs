//! The stages that a plan is made of.

use melior::ir::OperationRef;

use super::body::Body;
use super::graph::NodeId;
use super::layout::{LANES, Place, View, round_up};

/// Columns of a packed panel of weights.
pub const PANEL: i64 = cohort_abi::PANEL_COLUMNS;

/// Rows of the largest tile of a product.
pub const TILE_ROWS: i64 = 12;

/// A part of a kernel's work on a block of rows.
#[derive(Clone)]
pub enum Stage<'c> {
    /// Loops that compute and store.
    Group(Body<'c>),
    /// A fold of what a body computes.
    Fold(Box<Fold<'c>>),
    /// A fold of a list's tensors, row by row.
    ReduceRows(Box<ReduceRows<'c>>),
    /// A product of matrices.
    Product(Product),
    /// A `linalg.generic` that is emitted as it is.
    Loops {
        /// The node of the loops.
        node: NodeId,
        /// Reads the inputs at each index.
        body: Body<'c>,
        /// The values of the body that are the inputs.
        inputs: Vec<usize>,
    },
    /// Packs a computed weight into panels.
    Pack {
        /// Computes the weight's elements.
        body: Body<'c>,
        /// The part of the scratch that holds the panels.
        slot: usize,
    },
}

impl<'c> Stage<'c> {
    /// Everything that is computed on demand.
    pub fn bodies(&self) -> Vec<&Body<'c>> {
        match self {
            Stage::Group(body) | Stage::Loops { body, .. } | Stage::Pack { body, .. } => vec![body],
            Stage::Fold(fold) => vec![&fold.body, &fold.init],
            Stage::ReduceRows(stage) => vec![&stage.init],
            Stage::Product(_) => vec![],
        }
    }
}

/// What folds a value in.
#[derive(Clone, Copy)]
pub enum Combiner<'c> {
    /// An operation of two operands.
    Operation(OperationRef<'c, 'c>),
    /// The products of the value with another are added up; the operation is the product of matrices.
    Product(OperationRef<'c, 'c>, usize),
}

/// A `Reduce`: the body computes what is folded in, over kept and folded dims.
#[derive(Clone)]
pub struct Fold<'c> {
    /// The node that is the result.
    pub node: NodeId,
    /// Computes what is folded in.
    pub body: Body<'c>,
    /// The value of the body that is folded in.
    pub input: usize,
    /// The dims of the body's domain that are folded.
    pub dims: Vec<usize>,
    /// What folds it in.
    pub combiner: Combiner<'c>,
    /// Computes the start of each element of the result.
    pub init: Body<'c>,
    /// The value of `init` that is the start.
    pub init_value: usize,
}

/// A `ReduceRows`: for each row, the tensors of its list are folded, one after another.
#[derive(Clone)]
pub struct ReduceRows<'c> {
    /// The node that is the result.
    pub node: NodeId,
    /// The list's position among the kernel's operands.
    pub list: usize,
    /// The `cfb.reduce_rows`.
    pub op: OperationRef<'c, 'c>,
    /// Computes the start of each element of the result.
    pub init: Body<'c>,
    /// The value of `init` that is the start.
    pub init_value: usize,
}

/// A product of matrices, on a block of rows.
#[derive(Clone)]
pub struct Product {
    /// Reads rows of `k` neighbouring elements.
    pub a: View,
    /// Rows of the product for each row of the kernel.
    pub rows: i64,
    /// How many elements apart the rows of the left factor lie.
    pub a_stride: i64,
    /// How many terms each element sums.
    pub k: i64,
    /// How many columns the product has.
    pub columns: i64,
    /// The right factor.
    pub weight: Weight,
    /// What the sums start from.
    pub start: Start,
    /// Where the product is stored.
    pub c: Place,
}

/// Where the right factor of a product lies.
#[derive(Clone)]
pub enum Weight {
    /// Rows `offset..` of the panels of a parameter, each `width` columns: [`PANEL`] or, for a
    /// narrow product, one.
    Panels {
        /// The node of the parameter.
        param: NodeId,
        /// The first row.
        offset: i64,
        /// How many columns a panel has.
        width: i64,
    },
    /// Panels that a [`Stage::Pack`] has made.
    Packed {
        /// The part of the scratch that holds them.
        slot: usize,
    },
}

/// What a product adds to.
#[derive(Clone)]
pub enum Start {
    /// Zero.
    Zero,
    /// The same for every row: elements from `offset` of a shared node's memory.
    Shared {
        /// The node whose memory it is.
        buffer: NodeId,
        /// The first element.
        offset: i64,
    },
    /// What the memory of the product holds already.
    InPlace,
}

/// Bytes that a row of the product's result takes.
pub fn product_row_bytes(columns: i64) -> i64 {
    round_up(columns, LANES) * 4
}

/// Columns in a panel of a parameter of these rows and columns.
///
/// A micro-kernel computes at least a vector of columns. For fewer, such as the one of a vote to
/// stop, it is cheaper to run over the rows of one column in vectors and to add up the lanes, which
/// costs about as much as `LANE_SUM` multiply-adds.
pub fn panel_width(rows: i64, columns: i64) -> i64 {
    const LANE_SUM: i64 = 20;
    let narrow = columns * (rows / LANES + LANE_SUM);
    if narrow < rows { 1 } else { PANEL }
}
