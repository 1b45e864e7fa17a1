//! A kernel's body as a graph of values of one row.
//!
//! A node's *shape* is that of one row: the batch dim is left out. Where level 2 has collapsed dims
//! of the row into the batch dim (`[rows, m, k]` as `[rows * m, k]`), the node keeps them, so both
//! tensors are the same node of shape `[m, k]`. A node that does not depend on the row is *shared*.

use cohort_abi::manifest::Elem;
use melior::ir::OperationRef;

pub type NodeId = usize;

/// `constant + Σ coefficients[d] * index[d]`, over the index of a reader.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Linear {
    pub constant: i64,
    pub coefficients: Vec<i64>,
}

impl Linear {
    pub fn constant(constant: i64, rank: usize) -> Linear {
        Linear {
            constant,
            coefficients: vec![0; rank],
        }
    }

    pub fn dim(dim: usize, rank: usize) -> Linear {
        let mut linear = Linear::constant(0, rank);
        linear.coefficients[dim] = 1;
        linear
    }

    pub fn plus(&self, other: &Linear) -> Linear {
        let sums = self
            .coefficients
            .iter()
            .zip(&other.coefficients)
            .map(|(a, b)| a + b);
        Linear {
            constant: self.constant + other.constant,
            coefficients: sums.collect(),
        }
    }

    pub fn times(&self, factor: i64) -> Linear {
        let products = self.coefficients.iter().map(|a| a * factor);
        Linear {
            constant: self.constant * factor,
            coefficients: products.collect(),
        }
    }

    /// This over the index of a second reader, who reads the first at `index`.
    pub fn at(&self, index: &[Linear]) -> Linear {
        let rank = index.first().map_or(0, |linear| linear.coefficients.len());
        let mut sum = Linear::constant(self.constant, rank);
        for (coefficient, linear) in self.coefficients.iter().zip(index) {
            sum = sum.plus(&linear.times(*coefficient));
        }
        sum
    }
}

/// Every dim read at itself.
pub fn identity(rank: usize) -> Vec<Linear> {
    (0..rank).map(|dim| Linear::dim(dim, rank)).collect()
}

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
        op: OperationRef<'c, 'c>,
        inputs: Vec<NodeId>,
    },
    /// Element `i` is the source's at `index(i)`: broadcasts, slices, transpositions.
    Access {
        source: NodeId,
        index: Vec<Linear>,
    },
    /// The source's elements in the same order.
    Reshape {
        source: NodeId,
    },
    Concat {
        inputs: Vec<NodeId>,
        dim: usize,
    },
    /// `a[i] · weight + init[i]` for every row `i` of the row's matrix.
    Product {
        a: NodeId,
        weight: NodeId,
        init: NodeId,
    },
    /// Folds `dims` of the input with `combiner`, starting from `init`.
    Reduce {
        input: NodeId,
        dims: Vec<usize>,
        combiner: OperationRef<'c, 'c>,
        init: NodeId,
    },
    /// Folds a list's tensors with the body of a `cfb.reduce_rows`, starting from `init`.
    ReduceRows {
        list: NodeId,
        op: OperationRef<'c, 'c>,
        init: NodeId,
    },
    /// A `linalg.generic` emitted as it is, one element after another.
    Loops(Loops<'c>),
    /// Result `result` of a [`Kind::Loops`].
    LoopsResult {
        loops: NodeId,
        result: usize,
    },
}

pub struct Loops<'c> {
    pub op: OperationRef<'c, 'c>,
    /// Sizes of the loops, and which fold.
    pub domain: Vec<i64>,
    pub folds: Vec<bool>,
    /// Each already read over the whole domain.
    pub inputs: Vec<NodeId>,
    pub inits: Vec<NodeId>,
    /// For each result, where the domain's index goes.
    pub results: Vec<Vec<Linear>>,
    /// The generic's loop of each dim of the domain; the batch dim is not among them.
    pub loop_of_dim: Vec<usize>,
}

pub struct Node<'c> {
    pub kind: Kind<'c>,
    pub shape: Vec<i64>,
    pub elem: Elem,
    /// Whether the value differs from row to row.
    pub rows: bool,
    /// Where it comes from, for errors.
    pub op: OperationRef<'c, 'c>,
}

impl Node<'_> {
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
