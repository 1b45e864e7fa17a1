//! The value of a node at an index of one call, in one thread.
//!
//! What a value is made of is computed where it is read; a fold is a loop that takes the terms in the
//! order of the program, after the folds that its terms share. What was computed once is taken again
//! wherever it is in scope.

use std::collections::{HashMap, HashSet};

use cohort_dialects::builder::{Val, name_of};
use melior::ir::{OperationRef, ValueLike};

use crate::calls::graph::{Graph, Index, Kind, NodeId, Size, Var, part_of};
use crate::cpu::lower_kernels::compute::DIVISIONS;
use crate::cpu::lower_kernels::emit::{Emitter, Width};
use crate::cpu::lower_kernels::layout::elem_bytes;

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

#[derive(Clone, Copy)]
struct Variable<'c> {
    value: Option<Val<'c>>,
    /// Values are below this.
    below: Option<i64>,
}

type Known<'c> = HashMap<(NodeId, Vec<Index>), Val<'c>>;

/// One call, with what is known of it at the place that code is written to.
pub struct Call<'a, 'c> {
    pub graph: &'a Graph<'c>,
    pub lengths: Vec<Val<'c>>,
    /// Host scalars and lengths.
    pub scalars: HashMap<NodeId, Val<'c>>,
    /// Operands and constants.
    pub memory: HashMap<NodeId, Memory<'c>>,
    variables: Vec<Variable<'c>>,
    /// What is computed already, a map a scope.
    known: Vec<Known<'c>>,
}

/// A fold at an index, with variables for the dims that it folds.
pub struct Fold<'c> {
    pub input: NodeId,
    pub domain: Vec<Index>,
    pub combiner: OperationRef<'c, 'c>,
    pub inner: Vec<Var>,
    pub sizes: Vec<Val<'c>>,
    pub init: NodeId,
}

impl<'a, 'c> Call<'a, 'c> {
    pub fn new(graph: &'a Graph<'c>) -> Self {
        Call {
            graph,
            lengths: vec![],
            scalars: HashMap::new(),
            memory: HashMap::new(),
            variables: vec![],
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
    pub fn variable(&mut self, value: Val<'c>, below: Option<i64>) -> Var {
        let value = Some(value);
        self.variables.push(Variable { value, below });
        self.variables.len() - 1
    }

    fn unknown(&mut self, below: Option<i64>) -> Var {
        let value = None;
        self.variables.push(Variable { value, below });
        self.variables.len() - 1
    }

    /// Gives a variable its value, where nothing is known of it yet.
    pub fn set(&mut self, var: Var, value: Val<'c>) {
        self.variables[var].value = Some(value);
    }

    /// Writes with what is known here, and forgets what the body has learnt.
    pub fn scope<T>(&mut self, body: impl FnOnce(&mut Self) -> T) -> T {
        self.known.push(HashMap::new());
        let result = body(self);
        self.known.pop();
        result
    }

    /// Says what a node is at an index.
    pub fn give(&mut self, node: NodeId, at: Vec<Index>, value: Val<'c>) {
        if let Some(known) = self.known.last_mut() {
            known.insert((node, at), value);
        }
    }

    pub fn is_known(&self, node: NodeId, at: &[Index]) -> bool {
        self.look_up(node, at).is_some()
    }

    fn look_up(&self, node: NodeId, at: &[Index]) -> Option<Val<'c>> {
        let key = (node, at.to_vec());
        let mut known = self.known.iter().rev();
        known.find_map(|known| known.get(&key)).copied()
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

    fn index(&self, e: &Emitter<'c>, index: &Index) -> Option<Val<'c>> {
        let terms = index.terms.iter().map(|(var, coefficient)| {
            let value = self.variables[*var].value;
            let value = value.unwrap_or_else(|| unreachable!("a variable has its loop"));
            e.times(value, *coefficient)
        });
        let sum = terms.reduce(|a, b| e.add(a, b));
        match (sum, index.constant) {
            (Some(sum), 0) => Some(sum),
            (Some(sum), constant) => Some(e.add(sum, e.int(constant))),
            (None, 0) => None,
            (None, constant) => Some(e.int(constant)),
        }
    }

    pub fn address(&self, e: &Emitter<'c>, memory: &Memory<'c>, at: &[Index]) -> Val<'c> {
        let mut address = memory.base;
        for (index, stride) in at.iter().zip(&memory.strides) {
            let Some(value) = self.index(e, index) else {
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

    /// How many loads of a node are not of neighbours where a variable counts up.
    pub fn gathers(&self, node: NodeId, at: &[Index], along: Var) -> usize {
        let (mut count, mut seen) = (0, HashSet::new());
        let mut stack = vec![(node, at.to_vec())];
        while let Some((node, at)) = stack.pop() {
            let (node, at) = self.graph.resolve(node, &at);
            if !seen.insert((node, at.clone())) {
                continue;
            }
            if let Some(memory) = self.memory.get(&node) {
                let bytes = elem_bytes(self.graph.nodes[node].elem);
                let mut strides = at.iter().zip(&memory.strides);
                count += usize::from(!strides.all(|(index, stride)| {
                    let coefficient = index.coefficient(along);
                    let near = matches!(stride, Stride::Bytes(b) if coefficient * b == bytes);
                    coefficient == 0 || near
                }));
                continue;
            }
            match &self.graph.nodes[node].kind {
                Kind::Pointwise { inputs, .. } => {
                    stack.extend(inputs.iter().map(|input| (*input, at.clone())));
                }
                Kind::Concat { inputs, dim } => stack.extend(self.part_of(inputs, *dim, &at)),
                _ => {}
            }
        }
        count
    }

    /// The value of a node at an index.
    pub fn value(&mut self, e: &Emitter<'c>, node: NodeId, at: &[Index]) -> Val<'c> {
        let (node, at) = self.graph.resolve(node, at);
        if let Some(value) = self.look_up(node, &at) {
            return value;
        }
        let value = self.compute(e, node, &at);
        self.give(node, at, value);
        value
    }

    fn compute(&mut self, e: &Emitter<'c>, node: NodeId, at: &[Index]) -> Val<'c> {
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
                let value = self.index(e, &at[*dim]).unwrap_or_else(|| e.int(0));
                e.b.value("arith.trunci", &[value], e.i32)
            }
            Kind::Pointwise { op, inputs } => {
                let mut inputs: Vec<_> = inputs
                    .iter()
                    .map(|input| self.value(e, *input, at))
                    .collect();
                if DIVISIONS.contains(&name_of(*op).as_str()) {
                    inputs[1] = e.safe_divisor(inputs[0], inputs[1], Width::Scalar);
                }
                e.copy(*op, &inputs, e.elem_type(elem, Width::Scalar))
            }
            Kind::Concat { inputs, dim } => {
                let part = self.part_of(inputs, *dim, at);
                let (input, at) = part.unwrap_or_else(|| unreachable!("checked before"));
                self.value(e, input, &at)
            }
            Kind::Reduce { .. } => {
                let fold = self.fold_of(e, node, at);
                self.prepare(e, fold.input, &fold.domain, &fold.inner);
                let start = self.value(e, fold.init, at);
                self.fold_loops(e, &fold, 0, start)
            }
            Kind::Operand | Kind::Param(_) | Kind::Dense(_) | Kind::Access { .. } => {
                unreachable!("it lies in memory")
            }
        }
    }

    fn part_of(&self, inputs: &[NodeId], dim: usize, at: &[Index]) -> Option<(NodeId, Vec<Index>)> {
        part_of(self.graph, inputs, dim, at, |var| self.variables[var].below)
    }

    // Folds.

    pub fn fold_of(&mut self, e: &Emitter<'c>, node: NodeId, at: &[Index]) -> Fold<'c> {
        let graph = self.graph;
        let Kind::Reduce {
            input,
            dims,
            combiner,
            init,
        } = &graph.nodes[node].kind
        else {
            unreachable!("it is a fold");
        };
        let (domain, inner) = self.domain(*input, dims, at);
        let sizes = dims
            .iter()
            .map(|dim| self.size(e, graph.nodes[*input].shape[*dim]))
            .collect();
        Fold {
            input: *input,
            domain,
            combiner: *combiner,
            inner,
            sizes,
            init: *init,
        }
    }

    /// The index of a fold's domain, with new variables for the dims that it folds.
    fn domain(&mut self, input: NodeId, dims: &[usize], at: &[Index]) -> (Vec<Index>, Vec<Var>) {
        let graph = self.graph;
        let mut kept = at.iter();
        let mut inner = vec![];
        let mut domain = vec![];
        for (dim, size) in graph.nodes[input].shape.iter().enumerate() {
            if dims.contains(&dim) {
                let var = self.unknown(size.known());
                inner.push(var);
                domain.push(Index::var(var));
            } else {
                domain.push(kept.next().cloned().unwrap_or_default());
            }
        }
        (domain, inner)
    }

    /// The folds that a node needs, that are not known, and that do not depend on `blocked` variables;
    /// those that others may need last.
    pub fn ready(
        &mut self,
        node: NodeId,
        at: &[Index],
        blocked: &[Var],
    ) -> Vec<(NodeId, Vec<Index>)> {
        let graph = self.graph;
        let mut stack = vec![(node, at.to_vec(), blocked.to_vec())];
        let (mut seen, mut ready) = (HashSet::new(), vec![]);
        while let Some((node, at, blocked)) = stack.pop() {
            let (node, at) = graph.resolve(node, &at);
            let done = self.memory.contains_key(&node) || self.is_known(node, &at);
            if done || !seen.insert((node, at.clone())) {
                continue;
            }
            match &graph.nodes[node].kind {
                Kind::Pointwise { inputs, .. } => {
                    stack.extend(inputs.iter().map(|i| (*i, at.clone(), blocked.clone())));
                }
                Kind::Concat { inputs, dim } => {
                    if let Some((input, at)) = self.part_of(inputs, *dim, &at) {
                        stack.push((input, at, blocked));
                    }
                }
                Kind::Reduce {
                    input, dims, init, ..
                } => {
                    let vars = graph.depends(node, &at);
                    if vars.iter().all(|var| !blocked.contains(var)) {
                        ready.push((node, at));
                        continue;
                    }
                    let (domain, inner) = self.domain(*input, dims, &at);
                    let mut more = blocked.clone();
                    more.extend(inner);
                    stack.push((*input, domain, more));
                    stack.push((*init, at, blocked));
                }
                _ => {}
            }
        }
        ready.reverse();
        ready
    }

    fn prepare(&mut self, e: &Emitter<'c>, node: NodeId, at: &[Index], blocked: &[Var]) {
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
        e.for_loop(e.int(0), fold.sizes[dim], 1, &[sum], |e, value, sums| {
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
            && name_of(*op) == "arith.mulf"
            && name_of(fold.combiner) == "arith.addf"
        {
            let a = self.value(e, inputs[0], &at);
            let b = self.value(e, inputs[1], &at);
            return e.b.value("math.fma", &[a, b, sum], sum.r#type());
        }
        let value = self.value(e, input, &at);
        e.copy(fold.combiner, &[sum, value], sum.r#type())
    }
}
