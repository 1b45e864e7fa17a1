//! The value of a node at an index of one call, in one thread.
//!
//! What a value is made of is computed where it is read; a fold is a loop that takes the terms in the
//! order of the program, after the folds that its terms share. What was computed once is taken again
//! wherever it is in scope.

use std::collections::HashMap;

use cohort_dialects::builder::{Op, Val};
use cohort_passes::kernel::affine::{Affine, Var};
use cohort_passes::kernel::calls::graph::{Graph, Kind, NodeId, Size};
use cohort_passes::kernel::rows::layout::elem_bytes;
use melior::ir::ValueLike;

use crate::emit::divides;
use crate::emit::{Emitter, Width};
use crate::variables::{Fold, Variables};

/// Bytes between neighbours.
#[derive(Clone, Copy)]
enum Stride<'c> {
    Bytes(i64),
    Value(Val<'c>),
}

/// Where a node's elements lie in the device's memory, dense and row-major.
#[derive(Clone)]
pub struct Memory<'c> {
    base: Val<'c>,
    strides: Vec<Stride<'c>>,
}

/// Where copies begin.
pub struct Copied<'c> {
    /// Where the value's memory does.
    pub base: Val<'c>,
    pub address: Val<'c>,
    /// Bytes to the next of a dim.
    pub stride: Val<'c>,
}

type Known<'c> = HashMap<(NodeId, Vec<Affine>), Val<'c>>;

/// One call, with what is known of it at the place that code is written to.
pub struct Call<'a, 'c> {
    pub graph: &'a Graph<'c>,
    pub lengths: Vec<Val<'c>>,
    /// Host scalars and lengths.
    pub scalars: HashMap<NodeId, Val<'c>>,
    /// Operands and constants.
    pub memory: HashMap<NodeId, Memory<'c>>,
    variables: Variables<'c>,
    /// What is computed already, a map a scope.
    known: Vec<Known<'c>>,
}

impl<'a, 'c> Call<'a, 'c> {
    pub fn new(graph: &'a Graph<'c>) -> Self {
        Call {
            graph,
            lengths: vec![],
            scalars: HashMap::new(),
            memory: HashMap::new(),
            variables: Variables::default(),
            known: vec![HashMap::new()],
        }
    }

    pub fn size(&self, e: &Emitter<'c>, size: Size) -> Val<'c> {
        match size {
            Size::Known(size) => e.int(size),
            Size::Length(length) => self.lengths[length],
        }
    }

    /// A variable of a value that is known here.
    pub fn variable(&mut self, value: Val<'c>) -> Var {
        self.variables.add(Some(value))
    }

    /// Gives a variable its value, where nothing is known of it yet.
    pub fn set(&mut self, var: Var, value: Val<'c>) {
        self.variables.set(var, value);
    }

    /// Writes with what is known here, and forgets what the body has learnt.
    pub fn scope<T>(&mut self, body: impl FnOnce(&mut Self) -> T) -> T {
        self.known.push(HashMap::new());
        let result = body(self);
        self.known.pop();
        result
    }

    /// Says what a node is at an index.
    pub fn give(&mut self, node: NodeId, at: Vec<Affine>, value: Val<'c>) {
        if let Some(known) = self.known.last_mut() {
            known.insert((node, at), value);
        }
    }

    pub fn is_known(&self, node: NodeId, at: &[Affine]) -> bool {
        look_up(&self.known, node, at).is_some()
    }

    pub fn dense(&self, e: &Emitter<'c>, base: Val<'c>, node: NodeId) -> Memory<'c> {
        let node = &self.graph.nodes[node];
        let mut strides = vec![];
        let mut stride = Stride::Bytes(elem_bytes(node.elem));
        for size in node.shape.iter().rev() {
            strides.push(stride);
            stride = match (stride, size) {
                (Stride::Bytes(bytes), Size::Known(size)) => Stride::Bytes(bytes * size),
                (Stride::Bytes(bytes), Size::Length(length)) => {
                    Stride::Value(e.times(self.lengths[*length], bytes))
                }
                (Stride::Value(value), size) => Stride::Value(e.mul(value, self.size(e, *size))),
            };
        }
        strides.reverse();
        Memory { base, strides }
    }

    pub fn address(&self, e: &Emitter<'c>, memory: &Memory<'c>, at: &[Affine]) -> Val<'c> {
        let mut address = memory.base;
        for (index, stride) in at.iter().zip(&memory.strides) {
            let Some(value) = self.variables.index(e, index) else {
                continue;
            };
            let bytes = match stride {
                Stride::Bytes(bytes) => e.times(value, *bytes),
                Stride::Value(bytes) => e.mul(value, *bytes),
            };
            address = e.offset(address, bytes);
        }
        address
    }

    /// Where a value lies that is read at an index; `outer` is the variable along which a thread goes on.
    pub fn copied(&self, e: &Emitter<'c>, node: NodeId, at: &[Affine], outer: Var) -> Copied<'c> {
        let (node, at) = self.graph.resolve(node, at);
        let memory = &self.memory[&node];
        let mut stride = e.int(0);
        for (index, of_dim) in at.iter().zip(&memory.strides) {
            let bytes = match (index.coefficient(outer), of_dim) {
                (0, _) => continue,
                (coefficient, Stride::Bytes(bytes)) => e.int(coefficient * bytes),
                (coefficient, Stride::Value(bytes)) => e.times(*bytes, coefficient),
            };
            stride = e.add(stride, bytes);
        }
        Copied {
            base: memory.base,
            address: self.address(e, memory, &at),
            stride,
        }
    }

    /// The value of a node at an index.
    pub fn value(&mut self, e: &Emitter<'c>, node: NodeId, at: &[Affine]) -> Val<'c> {
        let (node, at) = self.graph.resolve(node, at);
        if let Some(value) = look_up(&self.known, node, &at) {
            return value;
        }
        let value = self.compute(e, node, &at);
        self.give(node, at, value);
        value
    }

    fn compute(&mut self, e: &Emitter<'c>, node: NodeId, at: &[Affine]) -> Val<'c> {
        let graph = self.graph;
        let elem = graph.nodes[node].elem;
        if let Some(memory) = self.memory.get(&node) {
            let address = self.address(e, memory, at);
            return e.load_elem(address, elem, Width::Scalar, None);
        }
        match &graph.nodes[node].kind {
            Kind::Splat(bits) => e.bits(*bits, elem, Width::Scalar),
            Kind::Scalar | Kind::Length => self.scalars[&node],
            Kind::Iota(dim) => {
                let value = self.variables.index(e, &at[*dim]);
                let value = value.unwrap_or_else(|| e.int(0));
                e.b.trunci(value, e.i32)
            }
            Kind::Pointwise { op, inputs } => {
                let mut inputs: Vec<_> = inputs
                    .iter()
                    .map(|input| self.value(e, *input, at))
                    .collect();
                if divides(*op) {
                    inputs[1] = e.safe_divisor(inputs[0], inputs[1], Width::Scalar);
                }
                e.copy(*op, &inputs, e.elem_type(elem, Width::Scalar))
            }
            Kind::Reduce { .. } => {
                let fold = self.fold_of(node, at);
                self.prepare(e, fold.input, &fold.domain, &fold.inner);
                let start = self.value(e, fold.init, at);
                self.fold_loops(e, &fold, 0, start)
            }
            Kind::Operand | Kind::Param(_) | Kind::Dense(_) => unreachable!("it lies in memory"),
            Kind::Access { .. } | Kind::Concat { .. } => unreachable!("only selects"),
        }
    }

    // Folds.

    pub fn fold_of(&mut self, node: NodeId, at: &[Affine]) -> Fold<'c> {
        self.variables.fold_of(self.graph, node, at)
    }

    /// The folds that a node needs, that are not known, and that do not depend on `blocked` variables.
    pub fn ready(
        &mut self,
        node: NodeId,
        at: &[Affine],
        blocked: &[Var],
    ) -> Vec<(NodeId, Vec<Affine>)> {
        let (memory, known) = (&self.memory, &self.known);
        let done = |node: NodeId, at: &[Affine]| {
            memory.contains_key(&node) || look_up(known, node, at).is_some()
        };
        self.variables.ready(self.graph, (node, at), blocked, &done)
    }

    fn prepare(&mut self, e: &Emitter<'c>, node: NodeId, at: &[Affine], blocked: &[Var]) {
        for (node, at) in self.ready(node, at, blocked) {
            self.value(e, node, &at);
        }
    }

    /// The loops of a fold from one of its dims on.
    fn fold_loops(
        &mut self,
        e: &Emitter<'c>,
        fold: &Fold<'c>,
        dim: usize,
        sum: Val<'c>,
    ) -> Val<'c> {
        let Some(var) = fold.inner.get(dim).copied() else {
            return self.fold_step(e, fold, sum);
        };
        let size = self.size(e, fold.sizes[dim]);
        e.for_loop(e.int(0), size, 1, &[sum], |e, value, sums| {
            self.scope(|call| {
                call.set(var, value);
                call.prepare(e, fold.input, &fold.domain, &fold.inner[dim + 1..]);
                vec![call.fold_loops(e, fold, dim + 1, sums[0])]
            })
        })[0]
    }

    /// Folds in the term at the index that the variables have.
    pub fn fold_step(&mut self, e: &Emitter<'c>, fold: &Fold<'c>, sum: Val<'c>) -> Val<'c> {
        let graph = self.graph;
        let (input, at) = graph.resolve(fold.input, &fold.domain);
        if let Kind::Pointwise { op, inputs } = &graph.nodes[input].kind
            && Op::ArithMulf.is(*op)
            && Op::ArithAddf.is(fold.combiner)
        {
            let a = self.value(e, inputs[0], &at);
            let b = self.value(e, inputs[1], &at);
            return e.b.fma(a, b, sum);
        }
        let value = self.value(e, input, &at);
        e.copy(fold.combiner, &[sum, value], sum.r#type())
    }
}

fn look_up<'c>(known: &[Known<'c>], node: NodeId, at: &[Affine]) -> Option<Val<'c>> {
    let key = (node, at.to_vec());
    let mut known = known.iter().rev();
    known.find_map(|known| known.get(&key)).copied()
}
