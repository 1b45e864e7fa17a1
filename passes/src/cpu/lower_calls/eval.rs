//! Writes the value of a node at an index: what it is made of is computed where it is read.
//!
//! A fold is written as a loop where the index that it depends on is known, before the loops that
//! it does not depend on; what was computed once is taken again wherever it is in scope.

use std::collections::{HashMap, HashSet};

use cohort_abi::manifest::Elem;
use cohort_dialects::builder::{Val, name_of};
use melior::ir::{OperationRef, ValueLike};

use super::graph::{Graph, Index, Kind, NodeId, Size, Var, part_of};
use crate::calls;
pub use crate::calls::parts::Window;
use crate::cpu::lower_kernels::{
    compute::DIVISIONS,
    emit::{Emitter, Width},
    layout::{LANES, elem_bytes},
};

/// Bytes between neighbours.
#[derive(Clone, Copy)]
pub enum Stride<'c> {
    Bytes(i64),
    Value(Val<'c>),
    /// Those of what this many last dims of a node hold, found from the call's lengths at each use.
    Within(NodeId, usize),
}

/// A length or a first row of a call.
#[derive(Clone, Copy)]
pub enum Held<'c> {
    /// It was read before the call's loops.
    Value(Val<'c>),
    /// It is read from this address at each use.
    At(Val<'c>),
}

impl<'c> Held<'c> {
    /// Reads it now, or leaves it where it is.
    pub fn new(e: &Emitter<'c>, address: Val<'c>, hoisted: bool) -> Held<'c> {
        match hoisted {
            true => Held::Value(e.load_u32(address)),
            false => Held::At(address),
        }
    }

    pub fn value(self, e: &Emitter<'c>) -> Val<'c> {
        match self {
            Held::Value(value) => value,
            Held::At(address) => e.load_u32(address),
        }
    }
}

/// Where a value begins.
#[derive(Clone, Copy)]
pub enum Base<'c> {
    Address(Val<'c>),
    /// At a row of so many bytes from an address on.
    Row(Val<'c>, Held<'c>, i64),
}

impl<'c> Base<'c> {
    pub fn of_row(e: &Emitter<'c>, address: Val<'c>, row: Held<'c>, bytes: i64) -> Base<'c> {
        match row {
            Held::Value(row) => Base::Address(e.offset(address, e.times(row, bytes))),
            Held::At(_) => Base::Row(address, row, bytes),
        }
    }

    pub fn address(self, e: &Emitter<'c>) -> Val<'c> {
        match self {
            Base::Address(address) => address,
            Base::Row(address, row, bytes) => e.offset(address, e.times(row.value(e), bytes)),
        }
    }
}

/// Where a node's elements lie.
#[derive(Clone)]
pub struct Memory<'c> {
    pub base: Base<'c>,
    /// The index of each dim that lies at the base; 0 where there is none.
    pub origin: Vec<Option<Val<'c>>>,
    pub strides: Vec<Stride<'c>>,
    /// A vector may be read from its last element on.
    pub padded: bool,
}

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

#[derive(Clone, Copy)]
struct Variable<'c> {
    value: Option<Val<'c>>,
    /// Values are below this.
    below: Option<i64>,
}

type Known<'c> = HashMap<(NodeId, Vec<Index>, Option<Var>), Val<'c>>;

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
    pub piece: Option<[Val<'c>; 2]>,
    variables: Vec<Variable<'c>>,
    /// What is computed already, a map a scope.
    known: Vec<Known<'c>>,
}

/// A range of a dim at run time: `count` entries from `first` on.
#[derive(Clone, Copy)]
pub struct Range<'c> {
    pub first: Option<Val<'c>>,
    pub from: i64,
    pub count: Val<'c>,
    /// `count`, if it is known.
    pub known: Option<i64>,
    /// What all entries, counted without `from`, are below, if it is known.
    pub below: Option<i64>,
}

impl<'c> Range<'c> {
    /// The first entry, and the one behind the last.
    pub fn ends(&self, e: &Emitter<'c>) -> [Val<'c>; 2] {
        match self.first {
            None => [e.int(0), self.count],
            Some(first) => [first, e.add(first, self.count)],
        }
    }
}

impl<'a, 'c> Call<'a, 'c> {
    pub fn new(graph: &'a Graph<'c>, split: bool) -> Self {
        Call {
            graph,
            lengths: vec![],
            split,
            scalars: HashMap::new(),
            memory: HashMap::new(),
            piece: None,
            variables: vec![],
            known: vec![HashMap::new()],
        }
    }

    pub fn size(&self, e: &Emitter<'c>, size: Size) -> Val<'c> {
        match size {
            Size::Known(size) => e.int(size),
            Size::Length(length) => self.lengths[length].value(e),
        }
    }

    /// A loop over `0..count` by vectors: `body` is given an index, which of the lanes count, if not
    /// all do, and what is carried. Where the loop is split, the mask is left to its last step.
    pub fn lanes_loop(
        &mut self,
        e: &Emitter<'c>,
        count: Val<'c>,
        known: Option<i64>,
        carried: &[Val<'c>],
        mut body: impl FnMut(
            &mut Self,
            &Emitter<'c>,
            Val<'c>,
            Option<Val<'c>>,
            &[Val<'c>],
        ) -> Vec<Val<'c>>,
    ) -> Vec<Val<'c>> {
        let main = match (self.split, known) {
            (false, _) => None,
            (true, Some(known)) if known % LANES == 0 => {
                return e.for_loop(e.int(0), count, LANES, carried, |e, value, carried| {
                    body(self, e, value, None, carried)
                });
            }
            (true, Some(known)) => (known > LANES).then(|| e.int(known - known % LANES)),
            (true, None) => Some(e.and(count, -LANES)),
        };
        let mut carried = carried.to_vec();
        if let Some(main) = main {
            carried = e.for_loop(e.int(0), main, LANES, &carried, |e, value, carried| {
                body(self, e, value, None, carried)
            });
        }
        let first = main.unwrap_or_else(|| e.int(0));
        e.for_loop(first, count, LANES, &carried, |e, value, carried| {
            let mask = e.first_lanes(e.sub(count, value));
            body(self, e, value, Some(mask), carried)
        })
    }

    /// The ranges of a part of a result, of this piece of it.
    pub fn ranges(&self, e: &Emitter<'c>, windows: &[Window]) -> Vec<Range<'c>> {
        let mut ranges: Vec<_> = windows
            .iter()
            .map(|window| Range {
                first: None,
                from: window.from,
                count: self.size(e, window.size),
                known: window.size.known(),
                below: window.size.known(),
            })
            .collect();
        if let (Some([from, to]), Some(range)) = (self.piece, ranges.first_mut()) {
            range.first = Some(from);
            range.count = e.sub(to, from);
        }
        ranges
    }

    /// A variable of a value that is known here.
    pub fn variable(&mut self, value: Val<'c>, below: Option<i64>) -> Var {
        let value = Some(value);
        self.variables.push(Variable { value, below });
        self.variables.len() - 1
    }

    /// A variable that gets its value later.
    fn unknown(&mut self, below: Option<i64>) -> Var {
        let value = None;
        self.variables.push(Variable { value, below });
        self.variables.len() - 1
    }

    /// Gives a variable another value, where nothing is known of it yet.
    pub fn set(&mut self, var: Var, value: Val<'c>) {
        self.variables[var].value = Some(value);
    }

    pub fn value_of(&self, var: Var) -> Option<Val<'c>> {
        self.variables[var].value
    }

    /// How many loads of a node would gather with lanes along a variable.
    pub fn gathers(&self, node: NodeId, at: &[Index], lane: Var) -> usize {
        let (mut count, mut seen) = (0, HashSet::new());
        let mut stack = vec![(node, at.to_vec())];
        while let Some((node, at)) = stack.pop() {
            let (node, at) = self.graph.resolve(node, &at);
            if !seen.insert((node, at.clone())) {
                continue;
            }
            if let Some(memory) = self.memory.get(&node) {
                let bytes = elem_bytes(self.graph.nodes[node].elem);
                let stride = self.lane_stride(memory, &at, lane);
                count += usize::from(stride.is_none_or(|stride| stride != 0 && stride != bytes));
                continue;
            }
            match &self.graph.nodes[node].kind {
                Kind::Pointwise { inputs, .. } => {
                    stack.extend(inputs.iter().map(|input| (*input, at.clone())));
                }
                Kind::Concat { inputs, dim } => stack.extend(self.part_of(inputs, *dim, &at)),
                Kind::Reduce { input, dims, .. } => {
                    let mut kept = at.into_iter();
                    let domain = (0..self.graph.nodes[*input].shape.len())
                        .map(|dim| match dims.contains(&dim) {
                            true => Index::default(),
                            false => kept.next().unwrap_or_default(),
                        })
                        .collect();
                    stack.push((*input, domain));
                }
                _ => {}
            }
        }
        count
    }

    /// Writes with what is known here, and forgets what the body has learnt.
    pub fn scope<T>(&mut self, body: impl FnOnce(&mut Self) -> T) -> T {
        self.known.push(HashMap::new());
        let result = body(self);
        self.known.pop();
        result
    }

    /// Dense row-major memory.
    pub fn dense(&self, e: &Emitter<'c>, base: Base<'c>, id: NodeId, padded: bool) -> Memory<'c> {
        let node = &self.graph.nodes[id];
        let mut strides = vec![];
        let mut stride = Stride::Bytes(elem_bytes(node.elem));
        for (inner, size) in node.shape.iter().rev().enumerate() {
            strides.push(stride);
            stride = match (stride, size) {
                (Stride::Bytes(bytes), Size::Known(size)) => Stride::Bytes(bytes * size),
                (Stride::Bytes(bytes), Size::Length(length)) => match self.lengths[*length] {
                    Held::Value(length) => Stride::Value(e.times(length, bytes)),
                    Held::At(_) => Stride::Within(id, inner + 1),
                },
                (Stride::Value(value), size) => Stride::Value(e.mul(value, self.size(e, *size))),
                (Stride::Within(id, inner), _) => Stride::Within(id, inner + 1),
            };
        }
        strides.reverse();
        Memory {
            base,
            origin: vec![None; strides.len()],
            strides,
            padded,
        }
    }

    /// The value of an index; of lanes, that of the first.
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

    /// The bytes of a stride.
    pub fn stride(&self, e: &Emitter<'c>, stride: Stride<'c>) -> Val<'c> {
        match stride {
            Stride::Bytes(bytes) => e.int(bytes),
            Stride::Value(bytes) => bytes,
            Stride::Within(node, inner) => {
                let node = &self.graph.nodes[node];
                let within = &node.shape[node.shape.len() - inner..];
                let bytes = e.int(elem_bytes(node.elem));
                let sizes = within.iter().map(|size| self.size(e, *size));
                sizes.fold(bytes, |bytes, size| e.mul(bytes, size))
            }
        }
    }

    pub fn address(&self, e: &Emitter<'c>, memory: &Memory<'c>, at: &[Index]) -> Val<'c> {
        let mut address = memory.base.address(e);
        for ((index, origin), stride) in at.iter().zip(&memory.origin).zip(&memory.strides) {
            let value = match (self.index(e, index), origin) {
                (None, None) => continue,
                (Some(value), None) => value,
                (None, Some(origin)) => e.sub(e.int(0), *origin),
                (Some(value), Some(origin)) => e.sub(value, *origin),
            };
            let bytes = match stride {
                Stride::Bytes(bytes) => e.times(value, *bytes),
                stride => e.mul(value, self.stride(e, *stride)),
            };
            address = e.offset(address, bytes);
        }
        address
    }

    /// Bytes between lanes; `None` when they differ from call to call.
    pub fn lane_stride(&self, memory: &Memory<'c>, at: &[Index], lane: Var) -> Option<i64> {
        let mut sum = 0;
        for (index, stride) in at.iter().zip(&memory.strides) {
            match (index.coefficient(lane), stride) {
                (0, _) => {}
                (coefficient, Stride::Bytes(bytes)) => sum += coefficient * bytes,
                (_, Stride::Value(_) | Stride::Within(..)) => return None,
            }
        }
        Some(sum)
    }

    fn load(
        &self,
        e: &Emitter<'c>,
        memory: &Memory<'c>,
        elem: Elem,
        at: &[Index],
        lanes: Lanes<'c>,
    ) -> Val<'c> {
        let address = self.address(e, memory, at);
        let Some(lane) = lanes.var else {
            return e.load_elem(address, elem, Width::Scalar, None);
        };
        match self.lane_stride(memory, at, lane) {
            Some(bytes) if bytes == elem_bytes(elem) => {
                let mask = lanes.mask.filter(|_| !memory.padded);
                e.load_elem(address, elem, Width::Vector, mask)
            }
            Some(bytes) => e.gather(address, bytes, elem, lanes.mask),
            None => {
                let ty = e.b.ty(&format!("vector<{LANES}xi64>"));
                let mut offsets = e.b.attr(&format!("dense<0> : {ty}"));
                let zero =
                    e.b.value_with("arith.constant", &[], ty, &[("value", offsets)]);
                let mut sum = zero;
                for (index, stride) in at.iter().zip(&memory.strides) {
                    let coefficient = index.coefficient(lane);
                    if coefficient == 0 {
                        continue;
                    }
                    let text: Vec<_> = (0..LANES).map(|l| (l * coefficient).to_string()).collect();
                    offsets = e.b.attr(&format!("dense<[{}]> : {ty}", text.join(", ")));
                    let lanes =
                        e.b.value_with("arith.constant", &[], ty, &[("value", offsets)]);
                    let bytes = self.stride(e, *stride);
                    let bytes = e.b.value("vector.broadcast", &[bytes], ty);
                    let product = e.b.value("arith.muli", &[lanes, bytes], ty);
                    sum = e.b.value("arith.addi", &[sum, product], ty);
                }
                e.gather_at(address, sum, elem, lanes.mask)
            }
        }
    }

    /// The value of a node at an index, one or a vector of them.
    pub fn value(
        &mut self,
        e: &Emitter<'c>,
        node: NodeId,
        at: &[Index],
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

    fn look_up(&self, key: &(NodeId, Vec<Index>, Option<Var>)) -> Option<Val<'c>> {
        self.known
            .iter()
            .rev()
            .find_map(|known| known.get(key))
            .copied()
    }

    fn learn(&mut self, key: (NodeId, Vec<Index>, Option<Var>), value: Val<'c>) {
        if let Some(known) = self.known.last_mut() {
            known.insert(key, value);
        }
    }

    fn compute(
        &mut self,
        e: &Emitter<'c>,
        node: NodeId,
        elem: Elem,
        at: &[Index],
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
                if DIVISIONS.contains(&name_of(*op).as_str()) {
                    inputs[1] = e.safe_divisor(inputs[0], inputs[1], lanes.width());
                }
                e.copy(*op, &inputs, e.elem_type(elem, lanes.width()))
            }
            Kind::Concat { inputs, dim } => {
                let (input, at) = self
                    .part_of(inputs, *dim, at)
                    .unwrap_or_else(|| unreachable!("checked before"));
                self.value(e, input, &at, lanes)
            }
            Kind::Reduce { .. } => self.fold(e, node, at, lanes),
            Kind::Operand | Kind::Param(_) | Kind::Dense(_) | Kind::Access { .. } => {
                unreachable!("it lies in memory")
            }
        }
    }

    /// A host scalar or a length.
    fn scalar(&self, e: &Emitter<'c>, node: NodeId) -> Val<'c> {
        self.scalars.get(&node).copied().unwrap_or_else(|| {
            let mut operands = self.graph.operands.iter();
            let length = operands.position(|(operand, _)| *operand == node);
            let length = length.unwrap_or_else(|| unreachable!("lengths are operands"));
            e.b.value("arith.trunci", &[self.lengths[length].value(e)], e.i32)
        })
    }

    fn part_of(&self, inputs: &[NodeId], dim: usize, at: &[Index]) -> Option<(NodeId, Vec<Index>)> {
        part_of(self.graph, inputs, dim, at, |var| self.variables[var].below)
    }

    fn iota(&self, e: &Emitter<'c>, index: &Index, lanes: Lanes<'c>) -> Val<'c> {
        let first = self.index(e, index).unwrap_or_else(|| e.int(0));
        let first = e.b.value("arith.trunci", &[first], e.i32);
        let Some(lane) = lanes.var else { return first };
        let ty = e.elem_type(Elem::I32, Width::Vector);
        let coefficient = index.coefficient(lane);
        let steps: Vec<_> = (0..LANES).map(|l| (l * coefficient).to_string()).collect();
        let steps = e.b.attr(&format!("dense<[{}]> : {ty}", steps.join(", ")));
        let steps =
            e.b.value_with("arith.constant", &[], ty, &[("value", steps)]);
        e.b.value(
            "arith.addi",
            &[e.splat(first, Elem::I32, Width::Vector), steps],
            ty,
        )
    }

    /// Computes the folds that a node needs and that do not depend on `blocked` variables.
    pub fn prepare(
        &mut self,
        e: &Emitter<'c>,
        node: NodeId,
        at: &[Index],
        lanes: Lanes<'c>,
        blocked: &[Var],
    ) {
        let mut stack = vec![(node, at.to_vec(), blocked.to_vec())];
        let mut seen = HashSet::new();
        let mut ready = vec![];
        while let Some((node, at, blocked)) = stack.pop() {
            let (node, at) = self.graph.resolve(node, &at);
            if !seen.insert((node, at.clone())) || self.memory.contains_key(&node) {
                continue;
            }
            let graph = self.graph;
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
        for (node, at) in ready.into_iter().rev() {
            self.value(e, node, &at, lanes);
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

    fn fold(&mut self, e: &Emitter<'c>, node: NodeId, at: &[Index], lanes: Lanes<'c>) -> Val<'c> {
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
        let elem = graph.nodes[node].elem;
        let (domain, inner) = self.domain(*input, dims, at);
        self.prepare(e, *input, &domain, lanes, &inner);
        let sizes = dims.iter().map(|dim| graph.nodes[*input].shape[*dim]);
        let sizes = sizes.collect();
        let fold = Fold {
            input: *input,
            domain,
            combiner: *combiner,
            inner,
            sizes,
        };
        let start = self.value(e, *init, at, lanes);
        if lanes.var.is_some() {
            return self.fold_loops(e, &fold, 0, lanes, start);
        }
        let neutral = e.bits(calls::neutral(*combiner), elem, Width::Vector);
        let mut all = self.fold_loops(e, &fold, 0, lanes, neutral);
        for by in [8, 4, 2, 1] {
            all = e.copy(*combiner, &[all, e.rotate(all, by)], all.r#type());
        }
        let all = e.first_lane(all, elem);
        e.copy(*combiner, &[start, all], all.r#type())
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
                    call.variables[var].value = Some(value);
                    let blocked = &fold.inner[dim + 1..];
                    call.prepare(e, fold.input, &fold.domain, lanes, blocked);
                    vec![call.fold_loops(e, fold, dim + 1, lanes, sums[0])]
                })
            })[0];
        }
        let known = fold.sizes[dim].known();
        self.lanes_loop(e, size, known, &[sum], |call, e, value, mask, sums| {
            call.scope(|call| {
                call.variables[var].value = Some(value);
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
            && name_of(*op) == "arith.mulf"
            && name_of(fold.combiner) == "arith.addf"
        {
            let a = self.value(e, inputs[0], &at, lanes);
            let b = self.value(e, inputs[1], &at, lanes);
            return e.b.value("vector.fma", &[a, b, sum], sum.r#type());
        }
        let value = self.value(e, input, &at, lanes);
        e.copy(fold.combiner, &[sum, value], sum.r#type())
    }

    /// Computes a node at every index of the ranges and stores it.
    pub fn store_all(
        &mut self,
        e: &Emitter<'c>,
        node: NodeId,
        ranges: &[Range<'c>],
        memory: &Memory<'c>,
    ) {
        let at: Vec<Var> = ranges
            .iter()
            .map(|range| self.unknown(range.below))
            .collect();
        // Trailing dims of one entry have no lanes, and where folds would gather, they have them.
        let lane = ranges.iter().rposition(|range| range.known != Some(1));
        let index: Vec<Index> = at.iter().map(|var| Index::var(*var)).collect();
        let reads = self
            .graph
            .reads(node, &index, &|var| self.variables[var].below);
        let lane_of = &at;
        let lane = lane.filter(|dim| {
            let gathers =
                |(node, at): &(NodeId, Vec<Index>)| self.gathers(*node, at, lane_of[*dim]);
            !reads.iter().any(|read| gathers(read) > 0)
        });
        self.store_loops(e, node, ranges, memory, &at, 0, lane);
    }

    #[allow(clippy::too_many_arguments)]
    fn store_loops(
        &mut self,
        e: &Emitter<'c>,
        node: NodeId,
        ranges: &[Range<'c>],
        memory: &Memory<'c>,
        vars: &[Var],
        dim: usize,
        lane: Option<usize>,
    ) {
        let index: Vec<Index> = vars
            .iter()
            .zip(ranges)
            .map(|(var, range)| Index::var(*var).plus(&Index::constant(range.from)))
            .collect();
        if dim == 0 {
            self.prepare(e, node, &index, Lanes::default(), vars);
        }
        let Some(range) = ranges.get(dim) else {
            let value = self.value(e, node, &index, Lanes::default());
            let address = self.address(e, memory, &index);
            e.store_elem(
                value,
                address,
                self.graph.nodes[node].elem,
                Width::Scalar,
                None,
            );
            return;
        };
        if lane != Some(dim) {
            e.for_loop(e.int(0), range.count, 1, &[], |e, value, _| {
                self.scope(|call| {
                    let position = range.first.map_or(value, |first| e.add(first, value));
                    call.variables[vars[dim]].value = Some(position);
                    let blocked = &vars[dim + 1..];
                    call.prepare(e, node, &index, Lanes::default(), blocked);
                    call.store_loops(e, node, ranges, memory, vars, dim + 1, lane);
                });
                vec![]
            });
            return;
        }
        self.lanes_loop(
            e,
            range.count,
            range.known,
            &[],
            |call, e, value, mask, _| {
                call.scope(|call| {
                    let position = range.first.map_or(value, |first| e.add(first, value));
                    call.variables[vars[dim]].value = Some(position);
                    for rest in &vars[dim + 1..] {
                        call.variables[*rest].value = Some(e.int(0));
                    }
                    let var = Some(vars[dim]);
                    let value = call.value(e, node, &index, Lanes { var, mask });
                    let address = call.address(e, memory, &index);
                    let elem = call.graph.nodes[node].elem;
                    e.store_elem(value, address, elem, Width::Vector, mask);
                });
                vec![]
            },
        );
    }
}

struct Fold<'c> {
    input: NodeId,
    domain: Vec<Index>,
    combiner: OperationRef<'c, 'c>,
    inner: Vec<Var>,
    sizes: Vec<Size>,
}
