//! Products as gates of tiles: sums over one iteration space, whose columns are a product's from an
//! offset on.

use cohort_abi::manifest::Elem;
use cohort_passes::kernel::affine::{Affine, identity};
use cohort_passes::kernel::rows::body::Body;
use cohort_passes::kernel::rows::graph::{Kind, NodeId};
use cohort_passes::kernel::rows::stage::{Combiner, Fold, Stage};
use cohort_passes::kernel::rows::walk::{Planner, Root};

use super::launches::{Chain, Gate, Launch, Segment, Tile};
use super::{LaunchPlanner, NARROW, Stop};

impl<'c> LaunchPlanner<'_, 'c> {
    fn is_narrow(&self, id: NodeId) -> bool {
        self.graph.nodes[id]
            .shape
            .last()
            .is_none_or(|columns| *columns <= NARROW)
    }

    /// Whether a buffer's values are sums in registers, in no memory yet.
    pub(super) fn is_pending(&self, buffer: NodeId) -> bool {
        matches!(self.graph.nodes[buffer].kind, Kind::Product { .. })
            && !self.written.contains_key(&buffer)
    }

    pub(super) fn plan_product(
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
            return Err(self.refuse(node.op, "this product"));
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
        let mut a_index: Vec<Affine> = all[..rank - 1].to_vec();
        a_index.push(all[rank].clone());
        let w_index = [all[rank].clone(), all[rank - 1].clone()];
        let input = body.value(&self.source(), a, &a_index)?;
        let factor = body.value(&self.source(), weight, &w_index)?;
        let mut start = Body::new(node.shape.clone(), false);
        let init_value = start.value(&self.source(), init, &identity(rank))?;
        self.needs_memory(a, &body)?;
        self.needs_memory(init, &start)?;
        let fold = Fold {
            node: id,
            body,
            input,
            dims: vec![rank],
            combiner: Combiner::Product(node.op, factor),
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
        // A tile is of rows: what all of them share is written for each.
        let is_of_rows = self.graph.nodes[view.buffer].rows;
        if !is_of_rows && a_node.rows && view.buffer != a {
            return Err(Stop::Store(a));
        }
        if !is_of_rows || a_node.elem != Elem::F32 {
            return Err(self.refuse(self.graph.nodes[product].op, "this product"));
        }
        let weight = self
            .layouts
            .view(self.graph, weight)
            .ok_or(Stop::Store(weight))?;
        if weight.strides.len() != 2 {
            return Err(self.refuse(self.graph.nodes[product].op, "this product"));
        }
        Ok(Segment {
            product,
            a: view,
            weight,
            k,
        })
    }

    /// The columns' offset of a gate, where a load reads one.
    pub(super) fn gate_offset(
        &self,
        product: NodeId,
        address: &Affine,
        domain: &[i64],
    ) -> Option<i64> {
        let shape = &self.graph.nodes[product].shape;
        let strides = &self.layouts.of_node[product].as_ref()?.strides;
        let (columns, outer) = match domain.split_last() {
            Some((columns, outer)) => (*columns, outer),
            None => (1, domain),
        };
        let last = domain.len().saturating_sub(1);
        if columns > 1 && address.coefficient(last) != 1 {
            return None;
        }
        let fits = match shape.len() {
            1 => outer.iter().all(|size| *size == 1),
            _ => outer == &shape[..1] && (outer[0] == 1 || address.coefficient(0) == strides[0]),
        };
        let offset = address.constant;
        let width = shape.last().copied().unwrap_or(1);
        (fits && (0..width).contains(&offset) && offset + columns <= width).then_some(offset)
    }

    /// Whether some columns of a product are computed by a launch other than `but`.
    pub(super) fn computed_elsewhere(
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

    /// Adds a gate to a tile launch, unless what it reads is written too late.
    pub(super) fn add_gate(
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
            None => index.push(Affine::constant(offset)),
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
    pub(super) fn is_before(&self, buffer: NodeId, launch: usize) -> bool {
        match self.graph.nodes[buffer].kind {
            Kind::Operand(_) | Kind::Param(_) | Kind::Dense => true,
            _ => self
                .written
                .get(&buffer)
                .is_some_and(|written| written.0 < launch),
        }
    }
}
