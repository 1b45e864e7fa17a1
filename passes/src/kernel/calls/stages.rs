//! What a per-instance kernel does for a call, stage after stage, as `ragged.calls` lists it. Values are nodes
//! of the kernel's graph, read at indices of the stage's loops.

use cohort_abi::manifest::{Division, Extent, Padding};

use super::graph::{NodeId, Size};
use crate::kernel::affine::Affine;

/// A part of a kernel's work, after which its results are in memory.
pub enum Stage {
    /// Loops around one value.
    Nest(Nest),
    /// A product of matrices.
    Matmul(Matmul),
    /// A softmax and its product with values, by blocks of keys.
    Online(OnlineSoftmax),
}

impl Stage {
    /// What is computed in it: nodes, and where they are read.
    pub fn values(&self) -> Vec<(NodeId, &[Affine])> {
        match self {
            Stage::Nest(nest) => vec![nest.store.read()],
            Stage::Matmul(matmul) => {
                let sides = [matmul.left.read(), matmul.right.read()];
                let finish = matmul.finish.as_ref().map(Store::read);
                sides.into_iter().chain(finish).collect()
            }
            Stage::Online(online) => vec![
                online.left.read(),
                online.right.read(),
                (online.scores.0, &online.scores.1),
                online.values.read(),
                online.finish.read(),
            ],
        }
    }
}

/// Loops that store a value to a result.
pub struct Nest {
    /// The sizes of the loops, the outermost first.
    pub over: Vec<Size>,
    /// What each turn stores.
    pub store: Store,
}

/// What is computed for each index of loops, and where it goes.
#[derive(Clone, Default)]
pub struct Store {
    /// The node that is computed.
    pub value: NodeId,
    /// The index in the node, in variables of the loops.
    pub at: Vec<Affine>,
    /// The loop that runs in vectors.
    pub lanes: Option<usize>,
    /// The number of the result, and the index there.
    pub result: usize,
    /// The index in the result, in variables of the loops.
    pub to: Vec<Affine>,
}

impl Store {
    /// The node and the index that are computed.
    pub fn read(&self) -> (NodeId, &[Affine]) {
        (self.value, &self.at)
    }
}

/// A side of a product, which is computed while it is packed.
#[derive(Clone)]
pub struct Side {
    /// The node that is read.
    pub value: NodeId,
    /// The index in the node, in variables of the loops and of the summed dim.
    pub at: Vec<Affine>,
    /// Whether vectors run along the dim that is summed over; else along rows or columns.
    pub along_depth: bool,
}

impl Side {
    /// The node and the index that are read.
    pub fn read(&self) -> (NodeId, &[Affine]) {
        (self.value, &self.at)
    }
}

/// A product of blocks whose sums lie in a result. Loops are those over the result, then the depth.
pub struct Matmul {
    /// Those of matrices, then rows and columns.
    pub over: Vec<Size>,
    /// How many terms each element sums.
    pub depth: Size,
    /// The most rows of a block on the CPU; on a GPU they follow from the columns.
    pub rows: Option<i64>,
    /// The most columns and terms of a block.
    pub blocks: [i64; 2],
    /// The left factor.
    pub left: Side,
    /// The right factor.
    pub right: Side,
    /// The sums go on from what the result holds.
    pub onto: bool,
    /// The number of the result that holds the sums.
    pub result: usize,
    /// The index of a sum in the result, in variables of the loops.
    pub to: Vec<Affine>,
    /// Row `i` has the first `i + until` terms only.
    pub until: Option<i64>,
    /// What is computed of the sums as soon as they are complete.
    pub finish: Option<Store>,
    /// What finishes needs whole rows of sums.
    pub by_rows: bool,
}

/// Softmax-like weights, which are made of a product, times values. Loops are those over the result, then
/// the keys, then the depth.
pub struct OnlineSoftmax {
    /// The sizes of the loops around the keys; the last is that of the rows.
    pub over: Vec<Size>,
    /// How many keys there are.
    pub keys: Size,
    /// How many terms a score sums.
    pub depth: i64,
    /// The most rows and keys of a block.
    pub blocks: [i64; 2],
    /// The left factor of the scores: the queries.
    pub left: Side,
    /// The right factor of the scores: the keys.
    pub right: Side,
    /// What the softmax is of, and the node in it that is the product's element, by key.
    pub scores: (NodeId, Vec<Affine>),
    /// The node of the product that the scores are computed from.
    pub product: NodeId,
    /// What the softmax weighs: a row for each key.
    pub values: Side,
    /// How many keys more than its index a row has, and the bits of the score of all others.
    pub until: Option<(i64, u32)>,
    /// What is stored, and the node in it that is the sums.
    pub finish: Store,
    /// The node in what is stored that is the weighted sums.
    pub sums: NodeId,
}

/// How a kernel's calls are computed and counted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Calls {
    /// Loops of unknown length have a main part of whole vectors and tiles, and a tail.
    pub split: bool,
    /// A call's lengths and first rows are read once, before its loops.
    pub hoisted: bool,
    /// How a call is divided among threads; `None` where it is not.
    pub division: Option<Division>,
    /// The work of a call: the sum of these, in floating-point operations.
    pub flops: Vec<Extent>,
    /// How many rows that no call computes the storage gets; `None` for none.
    pub padding: Option<Padding>,
}
