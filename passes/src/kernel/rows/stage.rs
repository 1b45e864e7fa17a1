//! The stages that a plan is made of.

use melior::ir::OperationRef;

use super::body::Body;
use super::graph::NodeId;
use super::layout::{LANES, Place, View, round_up};

/// Columns of a packed panel of weights.
pub const PANEL: i64 = 32;

/// Rows of the largest tile of a product.
pub const TILE_ROWS: i64 = 12;

#[derive(Clone)]
pub enum Stage<'c> {
    Group(Body<'c>),
    Fold(Box<Fold<'c>>),
    ReduceRows(Box<ReduceRows<'c>>),
    Product(Product),
    Loops {
        node: NodeId,
        body: Body<'c>,
        inputs: Vec<usize>,
    },
    /// Packs a computed weight into panels.
    Pack {
        body: Body<'c>,
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
    Operation(OperationRef<'c, 'c>),
    /// The products of the value with another are added up; the operation is the product of matrices.
    Product(OperationRef<'c, 'c>, usize),
}

/// A `Reduce`: the body computes what is folded in, over kept and folded dims.
#[derive(Clone)]
pub struct Fold<'c> {
    pub node: NodeId,
    pub body: Body<'c>,
    pub input: usize,
    pub dims: Vec<usize>,
    pub combiner: Combiner<'c>,
    /// Computes the start of each element of the result.
    pub init: Body<'c>,
    pub init_value: usize,
}

/// A `ReduceRows`: for each row, the tensors of its list are folded, one after another.
#[derive(Clone)]
pub struct ReduceRows<'c> {
    pub node: NodeId,
    /// The list's position among the kernel's operands.
    pub list: usize,
    pub op: OperationRef<'c, 'c>,
    /// Computes the start of each element of the result.
    pub init: Body<'c>,
    pub init_value: usize,
}

#[derive(Clone)]
pub struct Product {
    /// Reads rows of `k` neighbouring elements.
    pub a: View,
    /// Rows of the product for each row of the kernel, and how far apart the matrix's rows are.
    pub rows: i64,
    pub a_stride: i64,
    pub k: i64,
    pub columns: i64,
    pub weight: Weight,
    pub start: Start,
    pub c: Place,
}

#[derive(Clone)]
pub enum Weight {
    /// Rows `offset..` of the panels of a parameter, each `width` columns: [`PANEL`] or, for a
    /// narrow product, one.
    Panels {
        param: NodeId,
        offset: i64,
        width: i64,
    },
    Packed {
        slot: usize,
    },
}

/// What a product adds to.
#[derive(Clone)]
pub enum Start {
    Zero,
    /// The same for every row: elements from `offset` of a shared node's memory.
    Shared {
        buffer: NodeId,
        offset: i64,
    },
    /// What the memory of the product holds already.
    InPlace,
}

/// Bytes that a row of the product's result takes.
pub fn product_row_bytes(columns: i64) -> i64 {
    round_up(columns, LANES) * 4
}

/// Columns in a panel of a parameter of so many rows and columns.
///
/// A micro-kernel computes at least a vector of columns. For fewer, such as the one of a vote to
/// stop, it is cheaper to run over the rows of one column in vectors and to add up the lanes, which
/// costs about as much as `LANE_SUM` multiply-adds.
pub fn panel_width(rows: i64, columns: i64) -> i64 {
    const LANE_SUM: i64 = 20;
    let narrow = columns * (rows / LANES + LANE_SUM);
    if narrow < rows { 1 } else { PANEL }
}
