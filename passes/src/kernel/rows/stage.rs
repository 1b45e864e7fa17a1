//! The stages that a plan is made of.

use melior::ir::OperationRef;

use super::body::Body;
use super::graph::{Graph, Kind, NodeId};
use super::layout::{LANES, Layouts, Place, View, round_up};

/// Columns of a packed panel of weights.
pub const PANEL: i64 = 32;

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

    /// The memory that it reads or writes.
    pub fn places(&self, graph: &Graph<'_>, layouts: &Layouts) -> Vec<Place> {
        let of_node = |id: NodeId| layouts.of_node[id].as_ref().map(|layout| layout.place);
        let of_body = |body: &Body<'_>| -> Vec<Place> {
            let loads = body.buffers().filter_map(of_node);
            loads
                .chain(body.stores.iter().map(|store| store.place))
                .collect()
        };
        match self {
            Stage::Group(body) | Stage::Pack { body, .. } => of_body(body),
            Stage::Fold(fold) => {
                let bodies = of_body(&fold.body).into_iter().chain(of_body(&fold.init));
                bodies.chain(of_node(fold.node)).collect()
            }
            Stage::ReduceRows(stage) => {
                let init = of_body(&stage.init).into_iter();
                init.chain(of_node(stage.node)).collect()
            }
            Stage::Product(product) => {
                let start = match product.start {
                    Start::Shared { buffer, .. } => of_node(buffer),
                    _ => None,
                };
                of_node(product.a.buffer)
                    .into_iter()
                    .chain(start)
                    .chain([product.c])
                    .collect()
            }
            Stage::Loops { node, body, .. } => {
                let results = (0..graph.nodes.len()).filter(|id| {
                    matches!(graph.nodes[*id].kind, Kind::LoopsResult { loops, .. } if loops == *node)
                });
                let inits = match &graph.nodes[*node].kind {
                    Kind::Loops(loops) => loops.inits.as_slice(),
                    _ => &[],
                };
                let views = inits.iter().filter_map(|init| layouts.view(graph, *init));
                let ids = views.map(|view| view.buffer).chain(results);
                ids.filter_map(of_node).chain(of_body(body)).collect()
            }
        }
    }
}

/// A `Reduce`: the body computes what is folded in, over kept and folded dims.
pub struct Fold<'c> {
    pub node: NodeId,
    pub body: Body<'c>,
    pub input: usize,
    pub dims: Vec<usize>,
    pub combiner: OperationRef<'c, 'c>,
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

pub enum Weight {
    /// Rows `offset..` of the panels of a parameter, each `width` columns: [`PANEL`] or, for a
    /// narrow product, one.
    Panels {
        param: NodeId,
        offset: i64,
        rows: i64,
        width: i64,
    },
    Packed {
        slot: usize,
    },
}

/// What a product adds to.
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
/// costs about as much as [`LANE_SUM`] multiply-adds.
pub fn panel_width(rows: i64, columns: i64) -> i64 {
    const LANE_SUM: i64 = 20;
    let narrow = columns * (rows / LANES + LANE_SUM);
    if narrow < rows { 1 } else { PANEL }
}
