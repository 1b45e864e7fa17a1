//! Cuts a kernel's graph into launches.
//!
//! A *tile* launch computes products: a block has a tile of rows and of columns of one iteration
//! space. Slices of a product are *gates*, products of their own over that space, so that the
//! pointwise values which read them at the same column are computed where the sums lie, in
//! registers. A *row* launch computes everything else: a block has whole rows and runs one *stage*
//! after another, with a barrier in between. Launches talk through the results' rows and scratch.
//!
//! A product is never stored but where a fold or a later launch needs more of it than one column.
//! Then the last value is stored that can still be computed with it ([`Planner::frontier`]).

use std::collections::HashMap;

use cohort_abi::manifest::Elem;
use melior::ir::OperationRef;

use crate::cpu::lower_kernels::body::{Body, Instruction, MustStore, Source, Store, ValueId};
use crate::cpu::lower_kernels::graph::{Graph, Kind, Linear, NodeId, dense_strides, identity};
use crate::cpu::lower_kernels::layout::{Layouts, Place, View};
use crate::cpu::lower_kernels::repetition;

/// Products at the same place of one iteration space that a thread may hold.
pub const MAX_GATES: usize = 8;

/// Products of no more columns are folded like other sums: there are too few for a tile.
const NARROW: i64 = 4;

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
    List(Box<List<'c>>),
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

#[derive(Clone)]
pub struct List<'c> {
    pub node: NodeId,
    pub list: usize,
    pub op: OperationRef<'c, 'c>,
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

    fn gates(&self) -> usize {
        self.chains.iter().map(|chain| chain.gates.len()).sum()
    }
}

/// Why a kernel has no plan for a GPU.
pub struct Refused<'c> {
    pub op: OperationRef<'c, 'c>,
    pub reason: &'static str,
}

pub fn plan<'c>(graph: &Graph<'c>) -> Result<Plan<'c>, Refused<'c>> {
    let counts = graph.use_counts();
    let mut stored = vec![false; graph.nodes.len()];
    loop {
        let layouts = Layouts::assign(graph, &counts, &stored);
        let mut planner = Planner {
            graph,
            counts: &counts,
            stored: &stored,
            layouts,
            launches: vec![],
            written: HashMap::new(),
        };
        let next = match planner.run() {
            Ok(()) => match planner.costly() {
                None => {
                    let is_empty = |launch: &Launch<'c>| matches!(launch, Launch::Rows(rows) if rows.stages.is_empty());
                    planner.launches.retain(|launch| !is_empty(launch));
                    return Ok(Plan {
                        layouts: planner.layouts,
                        launches: planner.launches,
                    });
                }
                Some(node) => node,
            },
            Err(Stop::Store(node)) => node,
            Err(Stop::Refused(refused)) => return Err(refused),
        };
        if stored[next] {
            return Err(Refused {
                op: graph.nodes[next].op,
                reason: "a value that cannot be addressed",
            });
        }
        stored[next] = true;
    }
}

enum Stop<'c> {
    /// The node must be stored, a product as it is.
    Store(NodeId),
    Refused(Refused<'c>),
}

impl From<MustStore> for Stop<'_> {
    fn from(MustStore(node): MustStore) -> Self {
        Stop::Store(node)
    }
}

/// A launch and, of a row launch, the stage that writes a value.
type Written = (usize, usize);

/// A value that is computed and stored.
struct Root<'a> {
    id: NodeId,
    domain: &'a [i64],
    rows: bool,
    /// Compute the node instead of loading it: this is what fills its memory.
    defines: bool,
    place: Place,
    offset: i64,
    strides: &'a [i64],
}

struct Planner<'a, 'c> {
    graph: &'a Graph<'c>,
    counts: &'a [usize],
    stored: &'a [bool],
    layouts: Layouts,
    launches: Vec<Launch<'c>>,
    written: HashMap<NodeId, Written>,
}

impl<'c> Planner<'_, 'c> {
    fn run(&mut self) -> Result<(), Stop<'c>> {
        let graph = self.graph;
        for (id, node) in graph.nodes.iter().enumerate() {
            if self.counts[id] == 0 {
                continue;
            }
            match &node.kind {
                Kind::Product { a, weight, init } => self.product(id, *a, *weight, *init)?,
                Kind::Concat { inputs, dim } => self.concat(id, inputs, *dim)?,
                Kind::Reduce { .. } => self.fold(id)?,
                Kind::ReduceRows { list, op, init } => self.list(id, *list, *op, *init)?,
                Kind::Loops(_) => self.loops(id)?,
                Kind::LoopsResult { loops, .. } => {
                    if let Some(written) = self.written.get(loops) {
                        self.written.insert(id, *written);
                    }
                }
                Kind::Operand(_) | Kind::List(_) | Kind::Param(_) | Kind::Dense(_) => {}
                _ => {
                    if let Some(layout) = self.layouts.of_node[id].clone() {
                        let written = self.root(Root {
                            id,
                            domain: &node.shape,
                            rows: node.rows,
                            defines: true,
                            place: layout.place,
                            offset: 0,
                            strides: &layout.strides,
                        })?;
                        self.written.insert(id, written);
                    }
                }
            }
        }
        for (result, id) in self.layouts.copies.clone() {
            let node = &graph.nodes[id];
            self.root(Root {
                id,
                domain: &node.shape,
                rows: true,
                defines: false,
                place: Place::Result(result),
                offset: 0,
                strides: &dense_strides(&node.shape),
            })?;
        }
        Ok(())
    }

    fn source(&self) -> Source<'_, 'c> {
        Source {
            graph: self.graph,
            layouts: &self.layouts,
        }
    }

    fn refuse(&self, id: NodeId, reason: &'static str) -> Stop<'c> {
        Stop::Refused(Refused {
            op: self.graph.nodes[id].op,
            reason,
        })
    }

    fn costly(&self) -> Option<NodeId> {
        let bodies = self.launches.iter().flat_map(Launch::bodies);
        repetition::costly_in(self.graph, &self.layouts, bodies)
    }

    // Products.

    fn is_narrow(&self, id: NodeId) -> bool {
        self.graph.nodes[id]
            .shape
            .last()
            .is_none_or(|columns| *columns <= NARROW)
    }

    /// Whether a buffer's values are sums in registers, in no memory yet.
    fn is_pending(&self, buffer: NodeId) -> bool {
        matches!(self.graph.nodes[buffer].kind, Kind::Product { .. })
            && !self.written.contains_key(&buffer)
    }

    fn product(
        &mut self,
        id: NodeId,
        a: NodeId,
        weight: NodeId,
        init: NodeId,
    ) -> Result<(), Stop<'c>> {
        let node = &self.graph.nodes[id];
        if self.is_narrow(id) {
            return self.narrow(id, a, weight, init);
        }
        if node.elem != Elem::F32 || node.shape.len() > 2 {
            return Err(self.refuse(id, "this product"));
        }
        if !self.stored[id] {
            return Ok(());
        }
        let Some(layout) = self.layouts.of_node[id].clone() else {
            return Ok(());
        };
        let written = self.root(Root {
            id,
            domain: &node.shape,
            rows: true,
            defines: false,
            place: layout.place,
            offset: 0,
            strides: &layout.strides,
        })?;
        self.written.insert(id, written);
        Ok(())
    }

    /// A product as a fold over k.
    fn narrow(
        &mut self,
        id: NodeId,
        a: NodeId,
        weight: NodeId,
        init: NodeId,
    ) -> Result<(), Stop<'c>> {
        let node = &self.graph.nodes[id];
        let k = self.graph.nodes[a].shape.last().copied().unwrap_or(1);
        let rank = node.shape.len();
        let mut domain = node.shape.clone();
        domain.push(k);
        let all = identity(rank + 1);
        let mut body = Body::new(domain, false);
        let mut a_index: Vec<Linear> = all[..rank - 1].to_vec();
        a_index.push(all[rank].clone());
        let w_index = [all[rank].clone(), all[rank - 1].clone()];
        let inputs = vec![
            body.value(&self.source(), a, &a_index)?,
            body.value(&self.source(), weight, &w_index)?,
        ];
        let mut start = Body::new(node.shape.clone(), false);
        let init_value = start.value(&self.source(), init, &identity(rank))?;
        self.needs_memory(a, &body)?;
        self.needs_memory(init, &start)?;
        let fold = Fold {
            node: id,
            body,
            inputs,
            dims: vec![rank],
            combiner: None,
            init: start,
            init_value,
        };
        let written = self.stage(true, Stage::Fold(Box::new(fold)));
        self.written.insert(id, written);
        Ok(())
    }

    /// The sum that ends with a product: its parts, and what it starts from.
    fn chain(&self, product: NodeId) -> Result<(Vec<Segment>, NodeId), Stop<'c>> {
        let mut segments = Vec::new();
        let mut next = product;
        let init = loop {
            let Kind::Product { a, weight, init } = self.graph.nodes[next].kind else {
                break next;
            };
            segments.push(self.segment(next, a, weight)?);
            if !self.layouts.continues(self.graph, self.counts, init) || self.stored[init] {
                break init;
            }
            next = init;
        };
        segments.reverse();
        Ok((segments, init))
    }

    fn segment(&self, product: NodeId, a: NodeId, weight: NodeId) -> Result<Segment, Stop<'c>> {
        let a_node = &self.graph.nodes[a];
        let view = self.layouts.view(self.graph, a).ok_or(Stop::Store(a))?;
        if self.is_pending(view.buffer) {
            return Err(Stop::Store(view.buffer));
        }
        let k = a_node.shape.last().copied().unwrap_or(1);
        let last = view.strides.len() - 1;
        if view.strides[last] != 1 && k != 1 {
            return Err(Stop::Store(a));
        }
        if !self.graph.nodes[view.buffer].rows || a_node.elem != Elem::F32 {
            return Err(self.refuse(product, "this product"));
        }
        let weight = self
            .layouts
            .view(self.graph, weight)
            .ok_or(Stop::Store(weight))?;
        Ok(Segment { a: view, weight, k })
    }

    /// The columns' offset of a gate, where a load reads one.
    fn gate_offset(&self, product: NodeId, address: &Linear, domain: &[i64]) -> Option<i64> {
        let shape = &self.graph.nodes[product].shape;
        let strides = &self.layouts.of_node[product].as_ref()?.strides;
        let (columns, outer) = match domain.split_last() {
            Some((columns, outer)) => (*columns, outer),
            None => (1, domain),
        };
        let last = domain.len().saturating_sub(1);
        if columns > 1 && address.coefficients[last] != 1 {
            return None;
        }
        let fits = match shape.len() {
            1 => outer.iter().all(|size| *size == 1),
            _ => outer == &shape[..1] && (outer[0] == 1 || address.coefficients[0] == strides[0]),
        };
        let offset = address.constant;
        let width = shape.last().copied().unwrap_or(1);
        (fits && (0..width).contains(&offset) && offset + columns <= width).then_some(offset)
    }

    /// Whether some columns of a product are computed by a launch other than `but`.
    fn computed_elsewhere(
        &self,
        product: NodeId,
        offset: i64,
        columns: i64,
        but: Option<usize>,
    ) -> bool {
        let tiles = self
            .launches
            .iter()
            .enumerate()
            .filter(|(at, _)| Some(*at) != but);
        tiles.into_iter().any(|(_, launch)| match launch {
            Launch::Rows(_) => false,
            Launch::Tile(tile) => {
                let width = tile.domain.last().copied().unwrap_or(1);
                let chains = tile.chains.iter().filter(|chain| chain.product == product);
                chains
                    .flat_map(|chain| &chain.gates)
                    .any(|gate| gate.offset < offset + columns && offset < gate.offset + width)
            }
        })
    }

    // Values.

    /// Adds a value to a launch that may hold it, or to a new one; where it is written.
    fn root(&mut self, root: Root<'_>) -> Result<Written, Stop<'c>> {
        let mut alone = Body::new(root.domain.to_vec(), false);
        self.add_root(&mut alone, &root)?;
        let pending: Vec<NodeId> = alone
            .buffers()
            .filter(|buffer| self.is_pending(*buffer))
            .collect();
        if !root.rows || pending.is_empty() {
            return self.pointwise(&root, alone);
        }
        for at in 0..self.launches.len() {
            if let Some(tile) = self.joined(at, &root)? {
                self.launches[at] = Launch::Tile(Box::new(tile));
                return Ok((at, 0));
            }
        }
        let empty = Tile {
            domain: root.domain.to_vec(),
            chains: vec![],
            body: Body::new(root.domain.to_vec(), false),
        };
        let at = self.launches.len();
        match self.with_root(at, empty, &root)? {
            Some(tile) => {
                self.launches.push(Launch::Tile(Box::new(tile)));
                Ok((at, 0))
            }
            None => {
                let product = pending.into_iter().min().unwrap_or(root.id);
                Err(Stop::Store(self.frontier(product, root.id)))
            }
        }
    }

    fn joined(&self, at: usize, root: &Root<'_>) -> Result<Option<Tile<'c>>, Stop<'c>> {
        match &self.launches[at] {
            Launch::Tile(tile) if tile.domain == root.domain => {
                self.with_root(at, Tile::clone(tile), root)
            }
            _ => Ok(None),
        }
    }

    /// A tile launch with one value more, where it can compute it.
    fn with_root(
        &self,
        at: usize,
        mut tile: Tile<'c>,
        root: &Root<'_>,
    ) -> Result<Option<Tile<'c>>, Stop<'c>> {
        self.add_root(&mut tile.body, root)?;
        let columns = tile.domain.last().copied().unwrap_or(1);
        let loads: Vec<(NodeId, Linear)> = loads_of(&tile.body).collect();
        for (buffer, address) in loads {
            if tile.gate(buffer, &address).is_some() {
                continue;
            }
            if !self.is_pending(buffer) {
                if !self.is_before(buffer, at) {
                    return Ok(None);
                }
                continue;
            }
            let Some(offset) = self.gate_offset(buffer, &address, &tile.domain) else {
                return Ok(None);
            };
            if self.computed_elsewhere(buffer, offset, columns, Some(at)) {
                return Ok(None);
            }
            if !self.add_gate(at, &mut tile, buffer, offset)? {
                return Ok(None);
            }
        }
        Ok((tile.gates() <= MAX_GATES).then_some(tile))
    }

    /// Adds a gate to a tile launch, unless what it reads is written too late.
    fn add_gate(
        &self,
        at: usize,
        tile: &mut Tile<'c>,
        product: NodeId,
        offset: i64,
    ) -> Result<bool, Stop<'c>> {
        let known = tile
            .chains
            .iter()
            .position(|chain| chain.product == product);
        let chain = match known {
            Some(chain) => chain,
            None => {
                let (segments, start) = self.chain(product)?;
                for segment in &segments {
                    let buffers = [segment.a.buffer, segment.weight.buffer];
                    if !buffers.iter().all(|buffer| self.is_before(*buffer, at)) {
                        return Ok(false);
                    }
                }
                tile.chains.push(Chain {
                    product,
                    segments,
                    start,
                    init: Body::new(tile.domain.clone(), false),
                    gates: vec![],
                });
                tile.chains.len() - 1
            }
        };
        let rank = self.graph.nodes[product].shape.len();
        let mut index = identity(tile.domain.len());
        index.drain(..index.len().saturating_sub(rank));
        match index.last_mut() {
            Some(last) => last.constant += offset,
            None => index.push(Linear::constant(offset, 0)),
        }
        let chain = &mut tile.chains[chain];
        let start = chain.start;
        let init = chain.init.value(&self.source(), start, &index)?;
        for buffer in chain.init.buffers() {
            if self.is_pending(buffer) {
                return Err(Stop::Store(self.frontier(buffer, start)));
            }
            if !self.is_before(buffer, at) {
                return Ok(false);
            }
        }
        chain.gates.push(Gate { offset, init });
        Ok(true)
    }

    /// Whether a buffer's values are in memory before a launch.
    fn is_before(&self, buffer: NodeId, launch: usize) -> bool {
        match self.graph.nodes[buffer].kind {
            Kind::Operand(_) | Kind::Param(_) | Kind::Dense(_) => true,
            _ => self
                .written
                .get(&buffer)
                .is_some_and(|written| written.0 < launch),
        }
    }

    /// Values that read no product: a tile launch of the same domain, a stage, or a new one.
    fn pointwise(&mut self, root: &Root<'_>, alone: Body<'c>) -> Result<Written, Stop<'c>> {
        for at in 0..self.launches.len() {
            if root.rows
                && let Some(tile) = self.joined(at, root)?
            {
                self.launches[at] = Launch::Tile(Box::new(tile));
                return Ok((at, 0));
            }
            let Launch::Rows(rows) = &self.launches[at] else {
                continue;
            };
            if rows.once == root.rows {
                continue;
            }
            let mut joined = None;
            for (number, stage) in rows.stages.iter().enumerate() {
                let before = |buffer: NodeId| {
                    let known = self.written.get(&buffer);
                    known.is_none_or(|written| *written < (at, number))
                };
                let Stage::Group(body) = stage else { continue };
                if body.domain != root.domain {
                    continue;
                }
                let mut body = body.clone();
                self.add_root(&mut body, root)?;
                if body.buffers().all(before) {
                    joined = Some((number, body));
                    break;
                }
            }
            if let Some((number, body)) = joined
                && let Launch::Rows(rows) = &mut self.launches[at]
            {
                rows.stages[number] = Stage::Group(body);
                return Ok((at, number));
            }
        }
        Ok(self.stage(root.rows, Stage::Group(alone)))
    }

    /// Adds a stage to the last row launch that may hold it, or to a new one.
    fn stage(&mut self, rows: bool, stage: Stage<'c>) -> Written {
        let bodies = stage.bodies();
        let latest = bodies
            .iter()
            .flat_map(|body| body.buffers())
            .filter_map(|buffer| self.written.get(&buffer))
            .map(|written| written.0)
            .max();
        let earliest = latest.unwrap_or(0);
        for at in earliest..self.launches.len() {
            if let Launch::Rows(of_launch) = &mut self.launches[at]
                && of_launch.once != rows
            {
                of_launch.stages.push(stage);
                return (at, of_launch.stages.len() - 1);
            }
        }
        self.launches.push(Launch::Rows(Rows {
            once: !rows,
            stages: vec![stage],
        }));
        (self.launches.len() - 1, 0)
    }

    fn add_root(&self, body: &mut Body<'c>, root: &Root<'_>) -> Result<(), Stop<'c>> {
        let index = identity(root.domain.len());
        let value = if root.defines {
            let value = body.compute(&self.source(), root.id, &index)?;
            body.define(root.id, &index, value);
            value
        } else {
            body.value(&self.source(), root.id, &index)?
        };
        body.stores.push(Store {
            place: root.place,
            address: Linear {
                constant: root.offset,
                coefficients: root.strides.to_vec(),
            },
            value,
        });
        Ok(())
    }

    /// The last node on the way from a product to `end` that needs nothing but the product and what
    /// is in memory, and that everything on that way goes through.
    fn frontier(&self, product: NodeId, end: NodeId) -> NodeId {
        let mut cone = vec![false; self.graph.nodes.len()];
        let mut stack = vec![end];
        while let Some(id) = stack.pop() {
            if !std::mem::replace(&mut cone[id], true) && (id == end || self.is_computed(id)) {
                stack.extend(self.graph.nodes[id].inputs());
            }
        }
        let mut at = product;
        loop {
            let mut users = (0..cone.len()).filter(|id| {
                let reads = *id == end || self.is_computed(*id);
                cone[*id] && reads && self.graph.nodes[*id].inputs().contains(&at)
            });
            let (Some(user), None) = (users.next(), users.next()) else {
                return at;
            };
            let node = &self.graph.nodes[user];
            let others = node.inputs().into_iter().filter(|input| *input != at);
            let alone = others.into_iter().all(|input| self.in_memory_alone(input));
            if user == end || !alone || self.stored[user] {
                return at;
            }
            at = user;
        }
    }

    /// Whether a node is computed from its inputs where it is read.
    fn is_computed(&self, id: NodeId) -> bool {
        let pointwise = matches!(
            self.graph.nodes[id].kind,
            Kind::Pointwise { .. } | Kind::Access { .. } | Kind::Reshape { .. }
        );
        pointwise && self.layouts.of_node[id].is_none()
    }

    /// Whether a node needs only operands, constants and what was written already.
    fn in_memory_alone(&self, id: NodeId) -> bool {
        if self.is_computed(id) {
            let inputs = self.graph.nodes[id].inputs();
            return inputs.into_iter().all(|input| self.in_memory_alone(input));
        }
        matches!(
            self.graph.nodes[id].kind,
            Kind::Operand(_)
                | Kind::Param(_)
                | Kind::Dense(_)
                | Kind::Splat(_)
                | Kind::HostScalar(_)
        ) || self.written.contains_key(&id)
    }

    /// Stores what a body reads of products in registers.
    fn needs_memory(&self, end: NodeId, body: &Body<'c>) -> Result<(), Stop<'c>> {
        match body
            .buffers()
            .filter(|buffer| self.is_pending(*buffer))
            .min()
        {
            // The end itself may be what is stored.
            Some(product) => Err(Stop::Store(self.frontier_to(product, end))),
            None => Ok(()),
        }
    }

    /// As [`Planner::frontier`], where `end` is read by what needs memory.
    fn frontier_to(&self, product: NodeId, end: NodeId) -> NodeId {
        let before = self.frontier(product, end);
        let only = self.graph.nodes[end].inputs();
        let others = only.iter().filter(|input| **input != before);
        let alone = others.into_iter().all(|input| self.in_memory_alone(*input));
        let grows = self.graph.nodes[end].elements() > self.graph.nodes[before].elements();
        if self.is_computed(end) && only.contains(&before) && alone && !grows {
            end
        } else {
            before
        }
    }

    // Stages over rows.

    fn concat(&mut self, id: NodeId, inputs: &[NodeId], dim: usize) -> Result<(), Stop<'c>> {
        let Some(layout) = self.layouts.of_node[id].clone() else {
            return Ok(());
        };
        let node = &self.graph.nodes[id];
        let mut start = 0;
        let mut last = (0, 0);
        for input in inputs {
            let mut domain = self.graph.nodes[*input].shape.clone();
            if domain.len() != node.shape.len()
                && matches!(self.graph.nodes[*input].kind, Kind::Splat(_))
            {
                return Err(self.refuse(id, "this concatenation"));
            }
            domain.resize(node.shape.len(), 1);
            let written = self.root(Root {
                id: *input,
                domain: &domain,
                rows: node.rows,
                defines: false,
                place: layout.place,
                offset: start * layout.strides[dim],
                strides: &layout.strides,
            })?;
            start += domain[dim];
            last = last.max(written);
        }
        self.written.insert(id, last);
        Ok(())
    }

    fn fold(&mut self, id: NodeId) -> Result<(), Stop<'c>> {
        let node = &self.graph.nodes[id];
        let Kind::Reduce {
            input,
            dims,
            combiner,
            init,
        } = &node.kind
        else {
            return Ok(());
        };
        let domain = self.graph.nodes[*input].shape.clone();
        let mut body = Body::new(domain.clone(), false);
        let value = body.value(&self.source(), *input, &identity(domain.len()))?;
        let mut start = Body::new(node.shape.clone(), false);
        let init_value = start.value(&self.source(), *init, &identity(node.shape.len()))?;
        self.needs_memory(*input, &body)?;
        self.needs_memory(*init, &start)?;
        let (inputs, combiner) = match factors(&body, value, *combiner) {
            Some(factors) => (factors, None),
            None => (vec![value], Some(*combiner)),
        };
        let fold = Fold {
            node: id,
            body,
            inputs,
            dims: dims.clone(),
            combiner,
            init: start,
            init_value,
        };
        let written = self.stage(node.rows, Stage::Fold(Box::new(fold)));
        self.written.insert(id, written);
        Ok(())
    }

    fn list(
        &mut self,
        id: NodeId,
        list: NodeId,
        op: OperationRef<'c, 'c>,
        init: NodeId,
    ) -> Result<(), Stop<'c>> {
        let node = &self.graph.nodes[id];
        let Kind::List(list) = self.graph.nodes[list].kind else {
            return Err(self.refuse(id, "a reduction of what is no list"));
        };
        let mut start = Body::new(node.shape.clone(), false);
        let init_value = start.value(&self.source(), init, &identity(node.shape.len()))?;
        self.needs_memory(init, &start)?;
        let stage = List {
            node: id,
            list,
            op,
            init: start,
            init_value,
        };
        let written = self.stage(true, Stage::List(Box::new(stage)));
        self.written.insert(id, written);
        Ok(())
    }

    fn loops(&mut self, id: NodeId) -> Result<(), Stop<'c>> {
        let node = &self.graph.nodes[id];
        let Kind::Loops(loops) = &node.kind else {
            return Ok(());
        };
        let mut body = Body::new(loops.domain.clone(), false);
        let index = identity(loops.domain.len());
        let mut inputs = vec![];
        for input in &loops.inputs {
            inputs.push(body.value(&self.source(), *input, &index)?);
            self.needs_memory(*input, &body)?;
        }
        let mut inits = vec![];
        for init in &loops.inits {
            if matches!(self.graph.nodes[*init].kind, Kind::Splat(_)) {
                inits.push(None);
                continue;
            }
            let view = self
                .layouts
                .view(self.graph, *init)
                .ok_or(Stop::Store(*init))?;
            if self.is_pending(view.buffer) {
                return Err(Stop::Store(view.buffer));
            }
            inits.push(Some(view));
        }
        let stage = Stage::Loops {
            node: id,
            body,
            inputs,
            inits: inits.clone(),
        };
        let mut written = self.stage(node.rows, stage);
        // A start that is written later than what the body reads needs a launch behind it.
        for view in inits.into_iter().flatten() {
            if self
                .written
                .get(&view.buffer)
                .is_some_and(|start| *start >= written)
            {
                written = self.move_last(written, node.rows);
            }
        }
        self.written.insert(id, written);
        Ok(())
    }

    /// Moves the last stage of a launch into a launch of its own, behind all others.
    fn move_last(&mut self, (at, _): Written, rows: bool) -> Written {
        if let Launch::Rows(of_launch) = &mut self.launches[at]
            && let Some(stage) = of_launch.stages.pop()
        {
            self.launches.push(Launch::Rows(Rows {
                once: !rows,
                stages: vec![stage],
            }));
        }
        (self.launches.len() - 1, 0)
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

/// The factors of what is summed, where a multiply-add does both.
fn factors<'c>(
    body: &Body<'c>,
    value: ValueId,
    combiner: OperationRef<'c, 'c>,
) -> Option<Vec<ValueId>> {
    use crate::cpu::lower_kernels::compute::is_operation;
    use cohort_dialects::builder::name_of;
    let (instruction, elem) = &body.values[value];
    let Instruction::Pointwise { inputs, .. } = instruction else {
        return None;
    };
    (*elem == Elem::F32
        && is_operation(instruction, "arith.mulf")
        && name_of(combiner) == "arith.addf")
        .then(|| inputs.clone())
}
