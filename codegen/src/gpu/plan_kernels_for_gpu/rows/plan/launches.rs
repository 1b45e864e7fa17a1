//! What a plan is made of: launches, their tiles and stages, and the values that they compute.

use cohort_abi::gpu::Precision;
use cohort_abi::manifest::Elem;
use cohort_passes::kernel::affine::Affine;
use cohort_passes::kernel::rows::body::{Body, Instruction, ValueId};
use cohort_passes::kernel::rows::graph::{Graph, Kind, NodeId};
use cohort_passes::kernel::rows::layout::{Layouts, View};
use cohort_passes::kernel::rows::stage::Stage;

pub struct LaunchPlan<'c> {
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

impl<'c> Launch<'c> {
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
    pub fn gate(&self, product: NodeId, address: &Affine) -> Option<(usize, usize)> {
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

    pub fn columns(&self) -> i64 {
        self.domain.last().copied().unwrap_or(1)
    }

    /// Rows of the tile's space for each row of the kernel.
    pub fn matrix_rows(&self) -> i64 {
        let outer = self.domain.split_last();
        outer.map_or(1, |(_, outer)| outer.iter().product())
    }

    pub fn gates(&self) -> usize {
        self.chains.iter().map(|chain| chain.gates.len()).sum()
    }
}

/// The loads of a body.
pub fn loads_of<'a>(body: &'a Body<'_>) -> impl Iterator<Item = (NodeId, Affine)> + 'a {
    body.values
        .iter()
        .filter_map(|(instruction, _)| match instruction {
            Instruction::Load { buffer, address } => Some((*buffer, address.clone())),
            _ => None,
        })
}
