//! A kernel's body as a graph of the values of one call.
//!
//! A node's shape is that of one call: the batch dim is left out, and a ragged dim is the length
//! that the kernel's argument gives. Nodes are read at an [`Affine`] a dim, an affine expression of
//! the variables of the loops around, so that broadcasts, slices and transpositions cost nothing.

use std::collections::HashSet;

use cohort_abi::manifest::Elem;
use cohort_dialects::builder::{Op, name_of};
use melior::ir::OperationRef;

use crate::kernel::affine::{Affine, Var, identity};
use crate::support::ir::attributes_without;

/// The place of a node in [`Graph::nodes`].
pub type NodeId = usize;

/// How long a dim of a call is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Size {
    /// The same for all calls.
    Known(i64),
    /// The kernel's length of this number.
    Length(usize),
}

impl Size {
    /// The number, unless it is a length of the call.
    pub fn known(self) -> Option<i64> {
        match self {
            Size::Known(size) => Some(size),
            Size::Length(_) => None,
        }
    }
}

/// What a node's elements are.
pub enum Kind<'c> {
    /// An operand of the kernel that is a tensor.
    Operand,
    /// A host scalar.
    Scalar,
    /// A length, as an integer.
    Length,
    /// The parameter of this name.
    Param(String),
    /// Elements known to the compiler.
    Dense(Vec<u32>),
    /// Every element of these bits.
    Splat(u32),
    /// The index along a dim.
    Iota(usize),
    /// An operation an element; its inputs have its shape.
    Pointwise {
        /// `arith` or `math`, with as many operands as there are inputs.
        op: OperationRef<'c, 'c>,
        /// In the order of the operation's operands.
        inputs: Vec<NodeId>,
    },
    /// Element `i` is the source's at `index(i)`, whose variables are this node's dims.
    Access {
        /// The node that is read.
        source: NodeId,
        /// An index for each dim of the source.
        index: Vec<Affine>,
    },
    /// One input after another along a dim of known size.
    Concat {
        /// Of the same shape but for `dim`.
        inputs: Vec<NodeId>,
        /// The dim along which they lie.
        dim: usize,
    },
    /// Folds the input over `dims`; the others, in order, are this node's.
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
}

/// A tensor of a kernel's graph; one element for every index of its shape.
pub struct Node<'c> {
    /// What its elements are.
    pub kind: Kind<'c>,
    /// The sizes of its dims; none for a scalar.
    pub shape: Vec<Size>,
    /// The type of its elements.
    pub elem: Elem,
    /// Where it comes from.
    pub op: OperationRef<'c, 'c>,
}

/// An operand of the kernel's function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// A length of the call.
    Length,
    /// One number that the host passes.
    Scalar,
    /// One row of its row pool a call.
    Row,
    /// As many rows as the leading dims, up to the last ragged one, have entries.
    Ragged,
}

/// A kernel's values, each after those it reads.
#[derive(Default)]
pub struct Graph<'c> {
    /// The values; a [`NodeId`] is a place here.
    pub nodes: Vec<Node<'c>>,
    /// The kernel's operands, lengths first.
    pub operands: Vec<(NodeId, Form)>,
    /// What the kernel yields, in order.
    pub results: Vec<NodeId>,
    /// How many of the operands, the first, are lengths.
    pub lengths: usize,
    /// The dims that count a call's rows; none where a call has one.
    pub rows: Vec<Size>,
}

impl<'c> Graph<'c> {
    /// Adds a node, whose inputs are there already.
    pub fn add(&mut self, node: Node<'c>) -> NodeId {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    /// The node that is in the end read at an index, and where, behind broadcasts and slices.
    pub fn resolve(&self, mut node: NodeId, at: &[Affine]) -> (NodeId, Vec<Affine>) {
        let mut at = at.to_vec();
        while let Kind::Access { source, index } = &self.nodes[node].kind {
            at = index.iter().map(|linear| linear.at(&at)).collect();
            node = *source;
        }
        (node, at)
    }

    /// The variables that a node depends on at an index, in rising order.
    pub fn depends(&self, node: NodeId, at: &[Affine]) -> Vec<Var> {
        let mut vars = vec![];
        self.collect_vars(node, at, &mut HashSet::new(), &mut vars);
        vars.sort_unstable();
        vars.dedup();
        vars
    }

    fn collect_vars(
        &self,
        node: NodeId,
        at: &[Affine],
        seen: &mut HashSet<(NodeId, Vec<Affine>)>,
        vars: &mut Vec<Var>,
    ) {
        let (node, at) = self.resolve(node, at);
        if !seen.insert((node, at.clone())) {
            return;
        }
        match &self.nodes[node].kind {
            Kind::Splat(_) | Kind::Scalar | Kind::Length => {}
            Kind::Iota(dim) => vars.extend(at[*dim].terms.iter().map(|term| term.0)),
            Kind::Pointwise { inputs, .. } => {
                for input in inputs {
                    self.collect_vars(*input, &at, seen, vars);
                }
            }
            _ => vars.extend(at.iter().flat_map(|index| index.terms.iter().map(|t| t.0))),
        }
    }

    /// How many elements of a row pool lie between neighbours along the leading dims of a shape: the
    /// dims behind the last ragged one.
    pub fn row_shape(&self, shape: &[Size]) -> Vec<u64> {
        let known = |size: &Size| size.known().map(|size| size as u64);
        let lead = shape.iter().rposition(|size| known(size).is_none());
        let lead = lead.map_or(0, |last| last + 1);
        shape[lead..].iter().filter_map(known).collect()
    }

    /// Whether a node adds up products.
    pub fn is_sum_of_products(&self, node: NodeId) -> bool {
        let Kind::Reduce {
            input, combiner, ..
        } = &self.nodes[node].kind
        else {
            return false;
        };
        let rank = self.nodes[*input].shape.len();
        let (input, _) = self.resolve(*input, &identity(rank));
        let product = match &self.nodes[input].kind {
            Kind::Pointwise { op, .. } => Op::ArithMulf.is(*op),
            _ => false,
        };
        product && Op::ArithAddf.is(*combiner)
    }

    /// The two factors of a sum of products, each over the domain of kept dims, then the summed.
    pub fn product(&self, node: NodeId) -> Option<Product> {
        let Kind::Reduce {
            input,
            dims,
            combiner,
            init,
        } = &self.nodes[node].kind
        else {
            return None;
        };
        let rank = self.nodes[node].shape.len();
        if !Op::ArithAddf.is(*combiner) || rank < 2 || dims.len() != 1 {
            return None;
        }
        // The domain's index, with the summed dim's variable behind the kept ones.
        let summed = dims[0];
        let at: Vec<Affine> = (0..=rank)
            .map(|dim| match dim {
                dim if dim == summed => Affine::var(rank),
                dim if dim > summed => Affine::var(dim - 1),
                dim => Affine::var(dim),
            })
            .collect();
        let (input, at) = self.resolve(*input, &at);
        let Kind::Pointwise { op, inputs } = &self.nodes[input].kind else {
            return None;
        };
        let [x, y] = inputs[..] else { return None };
        if !Op::ArithMulf.is(*op) {
            return None;
        }
        let (row, column) = (rank - 2, rank - 1);
        let uses = |node: NodeId| {
            let vars = self.depends(node, &at);
            [row, column, rank].map(|var| vars.contains(&var))
        };
        let (a, b) = match (uses(x), uses(y)) {
            ([true, false, true], [false, true, true]) => (x, y),
            ([false, true, true], [true, false, true]) => (y, x),
            _ => return None,
        };
        Some(Product {
            a,
            b,
            at,
            depth: self.nodes[input_of(self, node)?].shape[summed],
            init: *init,
        })
    }

    /// Whether two nodes are computed alike at such indices, though they may be written twice.
    pub fn same(&self, a: (NodeId, &[Affine]), b: (NodeId, &[Affine])) -> bool {
        self.same_of(a, b, &mut HashSet::new())
    }

    fn same_of(
        &self,
        (a, at_a): (NodeId, &[Affine]),
        (b, at_b): (NodeId, &[Affine]),
        seen: &mut HashSet<[(NodeId, Vec<Affine>); 2]>,
    ) -> bool {
        let (a, b) = (self.resolve(a, at_a), self.resolve(b, at_b));
        // What is being compared, or was, need not be again: one difference decides.
        if a == b || !seen.insert([a.clone(), b.clone()]) {
            return true;
        }
        let (of_a, of_b) = (&self.nodes[a.0], &self.nodes[b.0]);
        match (&of_a.kind, &of_b.kind) {
            (Kind::Splat(a), Kind::Splat(b)) => a == b && of_a.elem == of_b.elem,
            (Kind::Iota(of_a), Kind::Iota(of_b)) => a.1[*of_a] == b.1[*of_b],
            (
                Kind::Pointwise { op, inputs },
                Kind::Pointwise {
                    op: other,
                    inputs: others,
                },
            ) => {
                let mut inputs = inputs.iter().zip(others);
                is_same_operation(*op, *other)
                    && inputs.all(|(x, y)| self.same_of((*x, &a.1), (*y, &b.1), seen))
            }
            (
                Kind::Reduce {
                    input,
                    dims,
                    combiner,
                    init,
                },
                Kind::Reduce {
                    input: other_input,
                    dims: other_dims,
                    combiner: other,
                    init: other_init,
                },
            ) => {
                let (shape, other_shape) =
                    (&self.nodes[*input].shape, &self.nodes[*other_input].shape);
                let sizes = |shape: &[Size], dims: &[usize]| -> Vec<Size> {
                    dims.iter().map(|dim| shape[*dim]).collect()
                };
                // Both run over variables that neither index has.
                let vars = [&a.1, &b.1]
                    .into_iter()
                    .flatten()
                    .flat_map(|index| &index.terms);
                let first = vars.map(|(var, _)| var + 1).max().unwrap_or(0);
                let domain = |shape: &[Size], dims: &[usize], at: &[Affine]| {
                    let mut vars = first..;
                    domain_of(shape, dims, at, |_| vars.next().unwrap_or(first))
                };
                let domains = (
                    domain(shape, dims, &a.1),
                    domain(other_shape, other_dims, &b.1),
                );
                sizes(shape, dims) == sizes(other_shape, other_dims)
                    && is_same_operation(*combiner, *other)
                    && self.same_of((*init, &a.1), (*other_init, &b.1), seen)
                    && self.same_of((*input, &domains.0), (*other_input, &domains.1), seen)
            }
            _ => false,
        }
    }

    /// Goes over what a node is computed of at an index, each once: `each` is told the node, the index and whether
    /// it is within a fold, and says whether to go on behind it. The variables of folds are those from `first` on.
    /// Returns a concatenation that is read across its parts; what lies behind one is left out.
    pub fn walk(
        &self,
        (node, at): (NodeId, &[Affine]),
        first: Var,
        below: &dyn Fn(Var) -> Option<i64>,
        each: &mut dyn FnMut(NodeId, &[Affine], bool) -> bool,
    ) -> Option<NodeId> {
        let (mut folded, mut seen) = (vec![], HashSet::new());
        let mut across = None;
        let mut stack = vec![(node, at.to_vec(), false)];
        while let Some((node, at, within)) = stack.pop() {
            let (node, at) = self.resolve(node, &at);
            if !seen.insert((node, at.clone(), within)) || !each(node, &at, within) {
                continue;
            }
            match &self.nodes[node].kind {
                Kind::Pointwise { inputs, .. } => {
                    let inputs = inputs.iter().rev();
                    stack.extend(inputs.map(|input| (*input, at.clone(), within)));
                }
                Kind::Concat { inputs, dim } => {
                    let below = |var: Var| match var.checked_sub(first) {
                        Some(fold) => folded.get(fold).copied().flatten(),
                        None => below(var),
                    };
                    match part_of(self, inputs, *dim, &at, below) {
                        Some((input, at)) => stack.push((input, at, within)),
                        None => across = across.or(Some(node)),
                    }
                }
                Kind::Reduce {
                    input, dims, init, ..
                } => {
                    let domain = domain_of(&self.nodes[*input].shape, dims, &at, |size| {
                        folded.push(size.known());
                        first + folded.len() - 1
                    });
                    stack.push((*input, domain, true));
                    stack.push((*init, at, true));
                }
                _ => {}
            }
        }
        across
    }

    /// The folds that a node reads at an index, short of those within folds, and where.
    pub fn reads(
        &self,
        node: NodeId,
        at: &[Affine],
        below: &dyn Fn(Var) -> Option<i64>,
    ) -> Vec<(NodeId, Vec<Affine>)> {
        let mut found = vec![];
        self.walk((node, at), Var::MAX, below, &mut |node, at, _| {
            let fold = matches!(self.nodes[node].kind, Kind::Reduce { .. });
            found.extend(fold.then(|| (node, at.to_vec())));
            !fold
        });
        found
    }

    /// The folds that are computed for one element of a node, short of what is `bound`, outermost
    /// ones first.
    pub fn folds(&self, node: NodeId, bound: &[NodeId]) -> Vec<NodeId> {
        let (mut found, mut seen, mut stack) = (vec![], HashSet::new(), vec![node]);
        while let Some(node) = stack.pop() {
            if bound.contains(&node) || !seen.insert(node) {
                continue;
            }
            match &self.nodes[node].kind {
                Kind::Reduce { .. } => found.push(node),
                Kind::Pointwise { inputs, .. } | Kind::Concat { inputs, .. } => {
                    stack.extend(inputs.iter().rev());
                }
                Kind::Access { source, .. } => stack.push(*source),
                _ => {}
            }
        }
        found
    }
}

/// Whether two operations do the same to operands that are the same.
fn is_same_operation<'c>(a: OperationRef<'c, 'c>, b: OperationRef<'c, 'c>) -> bool {
    let attributes = |op: OperationRef<'c, 'c>| {
        let attributes = attributes_without(op, &[]).into_iter();
        attributes.filter(|(name, _)| !name.starts_with("cfb."))
    };
    name_of(a) == name_of(b) && attributes(a).eq(attributes(b))
}

fn input_of(graph: &Graph<'_>, reduce: NodeId) -> Option<NodeId> {
    match &graph.nodes[reduce].kind {
        Kind::Reduce { input, .. } => Some(*input),
        _ => None,
    }
}

/// The index of the domain of a fold that is read at an index; `variable` makes one for each dim that it folds.
pub fn domain_of(
    shape: &[Size],
    dims: &[usize],
    at: &[Affine],
    mut variable: impl FnMut(Size) -> Var,
) -> Vec<Affine> {
    let mut kept = at.iter();
    let index = shape.iter().enumerate().map(|(dim, size)| {
        if dims.contains(&dim) {
            return Affine::var(variable(*size));
        }
        kept.next().cloned().unwrap_or_default()
    });
    index.collect()
}

/// The input of a concatenation that an index falls into, for all values of its variables, which
/// are below the given numbers.
pub fn part_of(
    graph: &Graph<'_>,
    inputs: &[NodeId],
    dim: usize,
    at: &[Affine],
    below: impl Fn(Var) -> Option<i64>,
) -> Option<(NodeId, Vec<Affine>)> {
    let (mut least, mut most) = (at[dim].constant, at[dim].constant);
    for (var, coefficient) in &at[dim].terms {
        let last = coefficient * (below(*var)? - 1);
        least += last.min(0);
        most += last.max(0);
    }
    let mut start = 0;
    for input in inputs {
        let Size::Known(size) = graph.nodes[*input].shape[dim] else {
            return None;
        };
        if (start..start + size).contains(&least) && (start..start + size).contains(&most) {
            let mut at = at.to_vec();
            at[dim].constant -= start;
            return Some((*input, at));
        }
        start += size;
    }
    None
}

/// `init + Σ a · b`. The factors are read at `at`, whose variables are the result's dims (rows and
/// columns last) and, behind them, the summed dim.
pub struct Product {
    /// The left factor.
    pub a: NodeId,
    /// The right factor.
    pub b: NodeId,
    /// Where the result is, in variables of its dims.
    pub at: Vec<Affine>,
    /// How many terms are summed.
    pub depth: Size,
    /// What the sums start from.
    pub init: NodeId,
}
