//! What a plan is made of: launches, their tiles and stages, and the values that they compute.

use cohort_abi::gpu::Precision;
use cohort_abi::manifest::Elem;
use melior::ir::OperationRef;

use crate::kernel::rows::body::{Body, Instruction, ValueId};
use crate::kernel::rows::graph::{Graph, Kind, Linear, NodeId};
use crate::kernel::rows::layout::{Layouts, View};
use crate::kernel::rows::stage::ReduceRows;

pub struct Plan<'c> {
    pub layouts: Layouts,
    pub launches: Vec<Launch<'c>>,
}

#[derive(Clone)]
pub enum Launch<'c> {
    Tile(Box<Tile<'c>>),
    Rows(Rows<'c>),
}

/// Products, and the pointwise values that read them, over one iteration space.
#[derive(Clone)]
pub struct Tile<'c> {
    /// Its last dim is the columns; what comes before counts rows of each row of the kernel.
    pub domain: Vec<i64>,
    pub chains: Vec<Chain<'c>>,
    /// Its loads of products are those of gates.
    pub body: Body<'c>,
}

/// A sum of products, `init + a₀·w₀ + a₁·w₁ + …`.
#[derive(Clone)]
pub struct Chain<'c> {
    /// The last one.
    pub product: NodeId,
    pub segments: Vec<Segment>,
    pub start: NodeId,
    /// What the sum starts from, for each gate over the tile's domain.
    pub init: Body<'c>,
    pub gates: Vec<Gate>,
}

/// Columns `offset..` of a chain's product.
#[derive(Clone, Copy)]
pub struct Gate {
    pub offset: i64,
    pub init: ValueId,
}

#[derive(Clone)]
pub struct Segment {
    pub product: NodeId,
    pub a: View,
    pub weight: View,
    pub k: i64,
}

/// Stages over whole rows.
#[derive(Clone)]
pub struct Rows<'c> {
    /// Not for each row, but once.
    pub once: bool,
    pub stages: Vec<Stage<'c>>,
}

#[derive(Clone)]
pub enum Stage<'c> {
    /// Pointwise values of one domain.
    Group(Body<'c>),
    Fold(Box<Fold<'c>>),
    /// The tensors of a list, folded with the body of an operation.
    List(Box<ReduceRows<'c>>),
    /// A generic that is run as it is, one thread for each index that is not folded.
    Loops {
        node: NodeId,
        body: Body<'c>,
        inputs: Vec<ValueId>,
        inits: Vec<Option<View>>,
    },
}

/// Folds some dims of a domain.
#[derive(Clone)]
pub struct Fold<'c> {
    pub node: NodeId,
    pub body: Body<'c>,
    /// What is folded in; with two, their product.
    pub inputs: Vec<ValueId>,
    pub dims: Vec<usize>,
    /// The operation that folds; none for a sum of products.
    pub combiner: Option<OperationRef<'c, 'c>>,
    /// Over the dims that are kept.
    pub init: Body<'c>,
    pub init_value: ValueId,
}

impl<'c> Stage<'c> {
    pub fn bodies(&self) -> Vec<&Body<'c>> {
        match self {
            Stage::Group(body) | Stage::Loops { body, .. } => vec![body],
            Stage::Fold(fold) => vec![&fold.body, &fold.init],
            Stage::List(list) => vec![&list.init],
        }
    }
}

impl<'c> Launch<'c> {
    /// Whether it computes products in tiles.
    pub fn multiplies(&self) -> bool {
        matches!(self, Launch::Tile(_))
    }

    pub fn bodies(&self) -> Vec<&Body<'c>> {
        match self {
            Launch::Tile(tile) => {
                let inits = tile.chains.iter().map(|chain| &chain.init);
                inits.chain([&tile.body]).collect()
            }
            Launch::Rows(rows) => rows.stages.iter().flat_map(Stage::bodies).collect(),
        }
    }
}

impl<'c> Tile<'c> {
    /// The gate that a load of a product is.
    pub fn gate(&self, product: NodeId, address: &Linear) -> Option<(usize, usize)> {
        let chain = self.chains.iter().position(|c| c.product == product)?;
        let gates = &self.chains[chain].gates;
        let gate = gates.iter().position(|g| g.offset == address.constant)?;
        Some((chain, gate))
    }

    /// Whether its weights are rounded when they are loaded: they are parameters, all of them.
    pub fn is_rounded(&self, graph: &Graph<'_>, precision: Precision) -> bool {
        let mut segments = self.chains.iter().flat_map(|chain| &chain.segments);
        precision != Precision::F32
            && segments.all(|segment| {
                let node = &graph.nodes[segment.weight.buffer];
                let two = segment.weight.strides.len() == 2;
                two && node.elem == Elem::F32 && matches!(node.kind, Kind::Param(_))
            })
    }

    pub fn gates(&self) -> usize {
        self.chains.iter().map(|chain| chain.gates.len()).sum()
    }
}

/// The loads of a body.
pub fn loads_of<'a>(body: &'a Body<'_>) -> impl Iterator<Item = (NodeId, Linear)> + 'a {
    body.values
        .iter()
        .filter_map(|(instruction, _)| match instruction {
            Instruction::Load { buffer, address } => Some((*buffer, address.clone())),
            _ => None,
        })
}
