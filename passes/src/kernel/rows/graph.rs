//! A kernel's body as a graph of values of one row.
//!
//! A node's *shape* is that of one row: the batch dim is left out. Where level 2 has collapsed dims
//! of the row into the batch dim (`[rows, m, k]` as `[rows * m, k]`), the node keeps them, so both
//! tensors are the same node of shape `[m, k]`. A node that does not depend on the row is *shared*.

use crate::kernel::affine::Affine;
use cohort_abi::manifest::Elem;
use melior::ir::OperationRef;

/// The place of a node in [`Graph::nodes`].
pub type NodeId = usize;

/// What a node's elements are.
pub enum Kind<'c> {
    /// Row operand of this position among the kernel's operands.
    Operand(usize),
    /// List operand of this position: any number of tensors of the node's shape a row. Nothing but
    /// a reduction reads it.
    List(usize),
    /// Host scalar of this position; rank 0.
    HostScalar(usize),
    /// Shared.
    Param(String),
    /// Shared, elements known to the compiler.
    Dense,
    /// Every element of these bits; of any shape.
    Splat(u32),
    /// An `arith` or `math` operation an element; its inputs have its shape.
    Pointwise {
        /// The operation.
        op: OperationRef<'c, 'c>,
        /// In the order of the operation's operands.
        inputs: Vec<NodeId>,
    },
    /// Element `i` is the source's at `index(i)`: broadcasts, slices, transpositions.
    Access {
        /// The node that is read.
        source: NodeId,
        /// An index for each dim of the source.
        index: Vec<Affine>,
    },
    /// The source's elements in the same order.
    Reshape {
        /// The node that is read.
        source: NodeId,
    },
    /// One input after another along a dim.
    Concat {
        /// Of the same shape but for `dim`.
        inputs: Vec<NodeId>,
        /// The dim along which they lie.
        dim: usize,
    },
    /// `a[i] · weight + init[i]` for every row `i` of the row's matrix.
    Product {
        /// The left factor: `[rows, terms]`, or `[terms]` for one row.
        a: NodeId,
        /// The right factor, the same for all rows: `[terms, columns]`.
        weight: NodeId,
        /// What the sums start from, of the product's shape.
        init: NodeId,
    },
    /// Folds `dims` of the input with `combiner`, starting from `init`.
    Reduce {
        /// The node that is folded.
        input: NodeId,
        /// The dims of the input that are folded.
        dims: Vec<usize>,
        /// The operation that folds one element in.
        combiner: OperationRef<'c, 'c>,
        /// Where the fold starts, of this node's shape.
        init: NodeId,
    },
    /// Folds a list's tensors with the body of a `cfb.reduce_rows`, starting from `init`.
    ReduceRows {
        /// The list, an operand of the kernel.
        list: NodeId,
        /// The `cfb.reduce_rows`.
        op: OperationRef<'c, 'c>,
        /// Where the fold starts, of this node's shape.
        init: NodeId,
    },
    /// A `linalg.generic` emitted as it is, one element after another.
    Loops(Loops<'c>),
    /// Result `result` of a [`Kind::Loops`].
    LoopsResult {
        /// The node of the loops.
        loops: NodeId,
        /// The number of the result.
        result: usize,
    },
}

/// A `linalg.generic` that is emitted as it is.
pub struct Loops<'c> {
    /// The operation.
    pub op: OperationRef<'c, 'c>,
    /// Sizes of the loops, and which fold.
    pub domain: Vec<i64>,
    /// For each loop, whether it folds.
    pub folds: Vec<bool>,
    /// Each already read over the whole domain.
    pub inputs: Vec<NodeId>,
    /// What each result starts from.
    pub inits: Vec<NodeId>,
    /// For each result, where the domain's index goes.
    pub results: Vec<Vec<Affine>>,
    /// The generic's loop of each dim of the domain; the batch dim is not among them.
    pub loop_of_dim: Vec<usize>,
}

/// A tensor of a kernel's graph: one for each row, or one for all.
pub struct Node<'c> {
    /// What its elements are.
    pub kind: Kind<'c>,
    /// The sizes of its dims, without that of the rows.
    pub shape: Vec<i64>,
    /// The type of its elements.
    pub elem: Elem,
    /// Whether the value differs from row to row.
    pub rows: bool,
    /// Where it comes from, for errors.
    pub op: OperationRef<'c, 'c>,
}

impl Node<'_> {
    /// How many elements it has, in one row.
    pub fn elements(&self) -> i64 {
        self.shape.iter().product()
    }

    /// The nodes that this one reads.
    pub fn inputs(&self) -> Vec<NodeId> {
        match &self.kind {
            Kind::Operand(_)
            | Kind::List(_)
            | Kind::HostScalar(_)
            | Kind::Param(_)
            | Kind::Dense
            | Kind::Splat(_) => vec![],
            Kind::Pointwise { inputs, .. } | Kind::Concat { inputs, .. } => inputs.clone(),
            Kind::Access { source, .. } | Kind::Reshape { source } => vec![*source],
            Kind::Product { a, weight, init } => vec![*a, *weight, *init],
            Kind::Reduce { input, init, .. } => vec![*input, *init],
            Kind::ReduceRows { list, init, .. } => vec![*list, *init],
            Kind::Loops(loops) => loops.inputs.iter().chain(&loops.inits).copied().collect(),
            Kind::LoopsResult { loops, .. } => vec![*loops],
        }
    }
}

/// A kernel's values.
#[derive(Default)]
pub struct Graph<'c> {
    /// Every node after those it reads.
    pub nodes: Vec<Node<'c>>,
    /// The kernel's row operands, in order: host scalars are marked.
    pub operands: Vec<NodeId>,
    /// What the kernel yields.
    pub results: Vec<NodeId>,
}

impl<'c> Graph<'c> {
    /// Adds a node, whose inputs are there already.
    pub fn add(&mut self, node: Node<'c>) -> NodeId {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    /// How often each node is read by nodes and results that are needed at all.
    pub fn use_counts(&self) -> Vec<usize> {
        let mut counts = vec![0; self.nodes.len()];
        for result in &self.results {
            counts[*result] += 1;
        }
        for id in (0..self.nodes.len()).rev() {
            if counts[id] > 0 {
                for input in self.nodes[id].inputs() {
                    counts[input] += 1;
                }
            }
        }
        counts
    }
}

/// Offsets between neighbours along each dim of a dense row-major tensor.
pub fn dense_strides(shape: &[i64]) -> Vec<i64> {
    let mut strides = vec![1; shape.len()];
    for dim in (1..shape.len()).rev() {
        strides[dim - 1] = strides[dim] * shape[dim];
    }
    strides
}
