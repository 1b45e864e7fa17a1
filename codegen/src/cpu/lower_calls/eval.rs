//! Writes the value of a node at an index: what it is made of is computed where it is read.
//!
//! A fold is written as a loop where the index that it depends on is known, before the loops that
//! it does not depend on; what was computed once is taken again wherever it is in scope.

mod memory;
mod stores;

use std::collections::HashMap;

use cohort_abi::manifest::Elem;
use cohort_dialects::builder::{Op, Val};
use cohort_passes::kernel::affine::{Affine, Var};
use cohort_passes::kernel::calls;
use cohort_passes::kernel::rows::layout::LANES;
use melior::ir::ValueLike;

use super::graph::{Graph, Kind, NodeId, Size};
use crate::emit::divides;
use crate::emit::{Emitter, Width};
use crate::variables::{Fold, Variables};

pub use memory::{Base, Held, Memory, Stride};
pub use stores::Range;

/// The variable that lanes run along, and which of them count.
#[derive(Clone, Copy, Default)]
pub struct Lanes<'c> {
    pub var: Option<Var>,
    pub mask: Option<Val<'c>>,
}

impl Lanes<'_> {
    fn width(&self) -> Width {
        match self.var {
            Some(_) => Width::Vector,
            None => Width::Scalar,
        }
    }
}

type Known<'c> = HashMap<(NodeId, Vec<Affine>, Option<Var>), Val<'c>>;

/// One call, with what is known of it at the place that code is written to.
pub struct Call<'a, 'c> {
    pub graph: &'a Graph<'c>,
    pub lengths: Vec<Held<'c>>,
    /// Loops of unknown length have a main part of whole vectors and tiles, and a tail.
    pub split: bool,
    /// Host scalars, and lengths that were read before the call's loops.
    pub scalars: HashMap<NodeId, Val<'c>>,
    /// What lies in memory: operands, parameters, and what stages have computed.
    pub memory: HashMap<NodeId, Memory<'c>>,
    /// What is computed of the results' first dim, where not all of it is: from and to.
    pub item: Option<[Val<'c>; 2]>,
    variables: Variables<'c>,
    /// What is computed already, a map a scope.
    known: Vec<Known<'c>>,
}

impl<'a, 'c> Call<'a, 'c> {
    pub fn new(graph: &'a Graph<'c>, split: bool) -> Self {
        Call {
            graph,
            lengths: vec![],
            split,
            scalars: HashMap::new(),
            memory: HashMap::new(),
            item: None,
            variables: Variables::default(),
            known: vec![HashMap::new()],
        }
    }

    pub fn size(&self, e: &Emitter<'c>, size: Size) -> Val<'c> {
        match size {
            Size::Known(size) => e.int(size),
            Size::Length(length) => self.lengths[length].value(e),
        }
    }

    /// A variable of a value that is known here.
    pub fn variable(&mut self, value: Val<'c>) -> Var {
        self.variables.add(Some(value))
    }

    /// Gives a variable another value, where nothing is known of it yet.
    pub fn set(&mut self, var: Var, value: Val<'c>) {
        self.variables.set(var, value);
    }

    pub fn value_of(&self, var: Var) -> Option<Val<'c>> {
        self.variables.value(var)
    }

    /// Writes with what is known here, and forgets what the body has learnt.
    pub fn scope<T>(&mut self, body: impl FnOnce(&mut Self) -> T) -> T {
        self.known.push(HashMap::new());
        let result = body(self);
        self.known.pop();
        result
    }

    /// The value of a node at an index, one or a vector of them.
    pub fn value(
        &mut self,
        e: &Emitter<'c>,
        node: NodeId,
        at: &[Affine],
        lanes: Lanes<'c>,
    ) -> Val<'c> {
        let (node, at) = self.graph.resolve(node, at);
        let elem = self.graph.nodes[node].elem;
        if let Some(lane) = lanes.var
            && !self.graph.depends(node, &at).contains(&lane)
        {
            let key = (node, at.clone(), Some(lane));
            if let Some(value) = self.look_up(&key) {
                return value;
            }
            let scalar = self.value(e, node, &at, Lanes::default());
            let value = e.splat(scalar, elem, Width::Vector);
            self.learn(key, value);
            return value;
        }
        let key = (node, at.clone(), lanes.var);
        if let Some(value) = self.look_up(&key) {
            return value;
        }
        let value = self.compute(e, node, elem, &at, lanes);
        self.learn(key, value);
        value
    }

    fn look_up(&self, key: &(NodeId, Vec<Affine>, Option<Var>)) -> Option<Val<'c>> {
        self.known
            .iter()
            .rev()
            .find_map(|known| known.get(key))
            .copied()
    }

    fn learn(&mut self, key: (NodeId, Vec<Affine>, Option<Var>), value: Val<'c>) {
        if let Some(known) = self.known.last_mut() {
            known.insert(key, value);
        }
    }

    fn compute(
        &mut self,
        e: &Emitter<'c>,
        node: NodeId,
        elem: Elem,
        at: &[Affine],
        lanes: Lanes<'c>,
    ) -> Val<'c> {
        if let Some(memory) = self.memory.get(&node) {
            return self.load(e, &memory.clone(), elem, at, lanes);
        }
        let graph = self.graph;
        match &graph.nodes[node].kind {
            Kind::Splat(bits) => e.bits(*bits, elem, lanes.width()),
            Kind::Scalar | Kind::Length => self.scalar(e, node),
            Kind::Iota(dim) => self.iota(e, &at[*dim], lanes),
            Kind::Pointwise { op, inputs } => {
                let mut inputs: Vec<_> = inputs
                    .iter()
                    .map(|input| self.value(e, *input, at, lanes))
                    .collect();
                if divides(*op) {
                    inputs[1] = e.safe_divisor(inputs[0], inputs[1], lanes.width());
                }
                e.copy(*op, &inputs, e.elem_type(elem, lanes.width()))
            }
            Kind::Reduce { .. } => self.fold(e, node, at, lanes),
            Kind::Operand | Kind::Param(_) | Kind::Dense(_) => unreachable!("it lies in memory"),
            Kind::Access { .. } | Kind::Concat { .. } => unreachable!("only selects"),
        }
    }

    /// A host scalar or a length.
    fn scalar(&self, e: &Emitter<'c>, node: NodeId) -> Val<'c> {
        self.scalars.get(&node).copied().unwrap_or_else(|| {
            let mut operands = self.graph.operands.iter();
            let length = operands.position(|(operand, _)| *operand == node);
            let length = length.unwrap_or_else(|| unreachable!("lengths are operands"));
            e.b.trunci(self.lengths[length].value(e), e.i32)
        })
    }

    fn iota(&self, e: &Emitter<'c>, index: &Affine, lanes: Lanes<'c>) -> Val<'c> {
        let first = self.variables.index(e, index).unwrap_or_else(|| e.int(0));
        let first = e.b.trunci(first, e.i32);
        let Some(lane) = lanes.var else { return first };
        let ty = e.elem_type(Elem::I32, Width::Vector);
        let coefficient = index.coefficient(lane);
        let steps: Vec<i64> = (0..LANES).map(|lane| lane * coefficient).collect();
        let steps = e.b.constant(e.b.elements(ty, e.i32, &steps), ty);
        e.b.addi(e.splat(first, Elem::I32, Width::Vector), steps)
    }

    /// Computes the folds that a node needs and that do not depend on `blocked` variables.
    pub fn prepare(
        &mut self,
        e: &Emitter<'c>,
        node: NodeId,
        at: &[Affine],
        lanes: Lanes<'c>,
        blocked: &[Var],
    ) {
        let memory = &self.memory;
        let done = |node: NodeId, _: &[Affine]| memory.contains_key(&node);
        let ready = self.variables.ready(self.graph, (node, at), blocked, &done);
        for (node, at) in ready {
            self.value(e, node, &at, lanes);
        }
    }

    fn fold(&mut self, e: &Emitter<'c>, node: NodeId, at: &[Affine], lanes: Lanes<'c>) -> Val<'c> {
        let elem = self.graph.nodes[node].elem;
        let fold = self.variables.fold_of(self.graph, node, at);
        self.prepare(e, fold.input, &fold.domain, lanes, &fold.inner);
        let start = self.value(e, fold.init, at, lanes);
        if lanes.var.is_some() {
            return self.fold_loops(e, &fold, 0, lanes, start);
        }
        let neutral = e.bits(calls::neutral(fold.combiner), elem, Width::Vector);
        let mut all = self.fold_loops(e, &fold, 0, lanes, neutral);
        for by in [8, 4, 2, 1] {
            all = e.copy(fold.combiner, &[all, e.rotate(all, by)], all.r#type());
        }
        let all = e.first_lane(all, elem);
        e.copy(fold.combiner, &[start, all], all.r#type())
    }

    /// The loops of a fold from one of its dims on. Without lanes, they run along the last.
    fn fold_loops(
        &mut self,
        e: &Emitter<'c>,
        fold: &Fold<'c>,
        dim: usize,
        lanes: Lanes<'c>,
        sum: Val<'c>,
    ) -> Val<'c> {
        let Some(var) = fold.inner.get(dim).copied() else {
            return self.fold_step(e, fold, lanes, sum);
        };
        let size = self.size(e, fold.sizes[dim]);
        if lanes.var.is_some() || dim + 1 < fold.inner.len() {
            return e.for_loop(e.int(0), size, 1, &[sum], |e, value, sums| {
                self.scope(|call| {
                    call.variables.set(var, value);
                    let blocked = &fold.inner[dim + 1..];
                    call.prepare(e, fold.input, &fold.domain, lanes, blocked);
                    vec![call.fold_loops(e, fold, dim + 1, lanes, sums[0])]
                })
            })[0];
        }
        let known = fold.sizes[dim].known();
        self.lanes_loop(e, size, known, &[sum], |call, e, value, mask, sums| {
            call.scope(|call| {
                call.variables.set(var, value);
                let var = Some(var);
                let next = call.fold_step(e, fold, Lanes { var, mask }, sums[0]);
                match mask {
                    Some(mask) => vec![e.select(mask, next, sums[0])],
                    None => vec![next],
                }
            })
        })[0]
    }

    fn fold_step(
        &mut self,
        e: &Emitter<'c>,
        fold: &Fold<'c>,
        lanes: Lanes<'c>,
        sum: Val<'c>,
    ) -> Val<'c> {
        let graph = self.graph;
        let (input, at) = graph.resolve(fold.input, &fold.domain);
        if let Kind::Pointwise { op, inputs } = &graph.nodes[input].kind
            && Op::ArithMulf.is(*op)
            && Op::ArithAddf.is(fold.combiner)
        {
            let a = self.value(e, inputs[0], &at, lanes);
            let b = self.value(e, inputs[1], &at, lanes);
            return e.b.vector_fma(a, b, sum);
        }
        let value = self.value(e, input, &at, lanes);
        e.copy(fold.combiner, &[sum, value], sum.r#type())
    }
}
