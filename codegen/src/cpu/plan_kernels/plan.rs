//! Cuts a kernel's graph into stages.
//!
//! A *stage* is one pass over the rows of a block: a product, a fold, loops kept as they were, or a
//! group of pointwise computations that share one loop nest. Stages talk through memory: scratch,
//! or the result's rows. A pointwise value is stored only if it is a result, if a stage must find
//! it in memory, or if computing it again for every reader would cost more than a store and loads.

use std::collections::HashMap;

use crate::plan_rows::repetition;
use cohort_passes::kernel::affine::{Affine, identity};
use cohort_passes::kernel::rows::body::{Body, MustStore};
use cohort_passes::kernel::rows::graph::{Graph, Kind, NodeId};
use cohort_passes::kernel::rows::layout::{Layout, Layouts, Place, Slot, round_up};
use cohort_passes::kernel::rows::stage::{
    Fold, PANEL, Product, ReduceRows, Stage, Start, Weight, panel_width,
};
use cohort_passes::kernel::rows::walk::{Planner, Root};
use cohort_passes::pass::{Failed, error};
use melior::ir::OperationRef;

pub struct RowsPlan<'c> {
    pub layouts: Layouts,
    /// Run once a call.
    pub shared: Vec<Stage<'c>>,
    /// Run for every block of rows.
    pub rows: Vec<Stage<'c>>,
}

pub fn plan<'c>(graph: &Graph<'c>) -> Result<RowsPlan<'c>, Failed> {
    let counts = graph.use_counts();
    let mut stored = stored_for_products(graph, &counts);
    loop {
        let mut planner =
            StagePlanner::new(graph, &counts, Layouts::assign(graph, &counts, &stored));
        match planner.walk(&counts) {
            Ok(()) => {
                let costly = planner.costly();
                if costly.is_empty() {
                    return Ok(planner.finish());
                }
                for node in costly {
                    stored[node] = true;
                }
            }
            Err(Stop::Store(node)) if !stored[node] => stored[node] = true,
            Err(Stop::Store(node)) => {
                let op = graph.nodes[node].op;
                return Err(error(
                    op,
                    "not supported yet: a value that cannot be addressed",
                ));
            }
            Err(Stop::Failed(failed)) => return Err(failed),
        }
    }
}

/// The nodes that products must find in memory, which they read row by row. What else must be stored is
/// found as the stages are made, one node at a time.
fn stored_for_products(graph: &Graph<'_>, counts: &[usize]) -> Vec<bool> {
    let mut stored = vec![false; graph.nodes.len()];
    let mut layouts = Layouts::assign(graph, counts, &stored);
    for (node, count) in graph.nodes.iter().zip(counts) {
        if let (Kind::Product { a, .. }, 1..) = (&node.kind, count)
            && layouts.view(graph, *a).is_none()
        {
            stored[*a] = true;
            layouts = Layouts::assign(graph, counts, &stored);
        }
    }
    stored
}

enum Stop {
    Store(NodeId),
    Failed(Failed),
}

impl From<MustStore> for Stop {
    fn from(MustStore(node): MustStore) -> Stop {
        Stop::Store(node)
    }
}

struct StagePlanner<'a, 'c> {
    graph: &'a Graph<'c>,
    counts: &'a [usize],
    layouts: Layouts,
    shared: Vec<Stage<'c>>,
    rows: Vec<Stage<'c>>,
    /// The stage that writes a node's memory, in its list.
    written: HashMap<NodeId, usize>,
    packed: HashMap<NodeId, usize>,
}

impl<'a, 'c> StagePlanner<'a, 'c> {
    fn new(graph: &'a Graph<'c>, counts: &'a [usize], layouts: Layouts) -> Self {
        StagePlanner {
            graph,
            counts,
            layouts,
            shared: vec![],
            rows: vec![],
            written: HashMap::new(),
            packed: HashMap::new(),
        }
    }

    fn stages(&mut self, rows: bool) -> &mut Vec<Stage<'c>> {
        if rows {
            &mut self.rows
        } else {
            &mut self.shared
        }
    }

    /// Adds a stage behind the others that run as often as a node is computed; where it is.
    fn push(&mut self, node: NodeId, stage: Stage<'c>) -> usize {
        let list = self.stages(self.graph.nodes[node].rows);
        list.push(stage);
        list.len() - 1
    }

    /// Whether all that a body loads was written by earlier stages.
    fn may_run_at(&self, body: &Body<'c>, rows: bool, at: usize) -> bool {
        body.buffers().all(|buffer| {
            self.graph.nodes[buffer].rows != rows
                || self
                    .written
                    .get(&buffer)
                    .is_none_or(|written| *written < at)
        })
    }

    fn weight(&mut self, weight: NodeId, k: i64, columns: i64) -> Result<Weight, Stop> {
        if let Some(view) = self.layouts.view(self.graph, weight) {
            let param = &self.graph.nodes[view.buffer];
            let width = param.shape.last().copied().unwrap_or(0);
            let whole = width == columns && view.strides == [columns, 1];
            if matches!(param.kind, Kind::Param(_)) && whole && view.offset % width == 0 {
                let rows = param.elements() / width;
                let offset = view.offset / width;
                return Ok(Weight::Panels {
                    param: view.buffer,
                    offset,
                    width: panel_width(rows, columns),
                });
            }
        }
        if let Some(slot) = self.packed.get(&weight) {
            return Ok(Weight::Packed { slot: *slot });
        }
        let mut body = Body::new(vec![k, columns], false);
        let value = body.value(&self.source(), weight, &identity(2))?;
        let bytes = round_up(columns, PANEL) * k * 4;
        let place = self.layouts.add_slot(Slot {
            bytes,
            rows: false,
            product_rows: 0,
            on_chip: false,
            bf16: false,
        });
        let Place::Slot(slot) = place else {
            return Err(Stop::Store(weight));
        };
        let address = Affine::constant(0);
        body.stores.push(cohort_passes::kernel::rows::body::Store {
            place,
            address,
            value,
        });
        self.packed.insert(weight, slot);
        self.shared.push(Stage::Pack { body, slot });
        Ok(Weight::Packed { slot })
    }

    fn start(&mut self, id: NodeId, init: NodeId) -> Result<Start, Stop> {
        let node = &self.graph.nodes[init];
        if matches!(node.kind, Kind::Splat(0)) {
            return Ok(Start::Zero);
        }
        if self.layouts.continues(self.graph, self.counts, init) {
            return Ok(Start::InPlace);
        }
        if let Some(view) = self.layouts.view(self.graph, init) {
            let (last, outer) = view
                .strides
                .split_last()
                .map_or((0, &[][..]), |(l, o)| (*l, o));
            let shared = !self.graph.nodes[view.buffer].rows;
            if shared && last == 1 && outer.iter().all(|stride| *stride == 0) {
                return Ok(Start::Shared {
                    buffer: view.buffer,
                    offset: view.offset,
                });
            }
        }
        let Some(Layout { place, strides }) = self.layouts.of_node[id].clone() else {
            return Ok(Start::Zero);
        };
        self.root(Root {
            id: init,
            domain: &self.graph.nodes[id].shape,
            rows: true,
            defines: false,
            place,
            offset: 0,
            strides: &strides,
        })?;
        Ok(Start::InPlace)
    }

    fn costly(&self) -> Vec<NodeId> {
        let stages = self.shared.iter().chain(&self.rows);
        repetition::costly(self.graph, &self.layouts, stages)
    }

    fn finish(self) -> RowsPlan<'c> {
        RowsPlan {
            layouts: self.layouts,
            shared: self.shared,
            rows: self.rows,
        }
    }
}

impl<'a, 'c: 'a> Planner<'a, 'c> for StagePlanner<'a, 'c> {
    type Stop = Stop;
    /// The stage, in its list.
    type Written = usize;

    const SHARED_IN_MEMORY: bool = true;

    fn graph(&self) -> &'a Graph<'c> {
        self.graph
    }

    fn layouts(&self) -> &Layouts {
        &self.layouts
    }

    fn product(&mut self, id: NodeId, a: NodeId, weight: NodeId, init: NodeId) -> Result<(), Stop> {
        let node = &self.graph.nodes[id];
        let a_node = &self.graph.nodes[a];
        let view = self.layouts.view(self.graph, a).ok_or(Stop::Store(a))?;
        let (Some(k), Some(columns)) = (a_node.shape.last().copied(), node.shape.last().copied())
        else {
            return Err(Stop::Failed(error(node.op, "expected operands of rank 2")));
        };
        let last = view.strides.len() - 1;
        if view.strides[last] != 1 && k != 1 {
            return Err(Stop::Store(a));
        }
        let outer = &a_node.shape[..last];
        let rows: i64 = outer.iter().product();
        // All rows of the matrix must be equally far apart.
        let a_stride = match outer.len() {
            0 => 0,
            1 => view.strides[0],
            _ => {
                return Err(Stop::Failed(error(
                    node.op,
                    "not supported yet: more than one dim of rows",
                )));
            }
        };
        let weight = self.weight(weight, k, columns)?;
        let start = self.start(id, init)?;
        let Some(layout) = self.layouts.of_node[id].clone() else {
            return Ok(());
        };
        let at = self.rows.len();
        self.written.insert(id, at);
        let c = layout.place;
        self.rows.push(Stage::Product(Product {
            a: view,
            rows,
            a_stride,
            k,
            columns,
            weight,
            start,
            c,
        }));
        Ok(())
    }

    fn fold(&mut self, fold: Fold<'c>, _: NodeId, _: NodeId) -> Result<usize, Stop> {
        Ok(self.push(fold.node, Stage::Fold(Box::new(fold))))
    }

    fn list(&mut self, list: ReduceRows<'c>, _: NodeId) -> Result<usize, Stop> {
        Ok(self.push(list.node, Stage::ReduceRows(Box::new(list))))
    }

    fn loops(&mut self, id: NodeId) -> Result<usize, Stop> {
        let (body, inputs) = self.loop_inputs(id)?;
        if let Kind::Loops(loops) = &self.graph.nodes[id].kind {
            for init in &loops.inits {
                let splat = matches!(self.graph.nodes[*init].kind, Kind::Splat(_));
                if !splat && self.layouts.view(self.graph, *init).is_none() {
                    return Err(Stop::Store(*init));
                }
            }
        }
        let node = id;
        Ok(self.push(id, Stage::Loops { node, body, inputs }))
    }

    /// Adds a value to the last group that may hold it, or to a new one.
    fn root(&mut self, root: Root<'_>) -> Result<usize, Stop> {
        let count = self.stages(root.rows).len();
        for at in (0..count).rev() {
            let stages = if root.rows { &self.rows } else { &self.shared };
            let Stage::Group(body) = &stages[at] else {
                continue;
            };
            if body.domain != root.domain {
                continue;
            }
            let mut joined = body.clone();
            root.add_to(&mut joined, &self.source())?;
            if self.may_run_at(&joined, root.rows, at) {
                self.stages(root.rows)[at] = Stage::Group(joined);
                return Ok(at);
            }
        }
        let mut body = self.body(root.domain, root.rows);
        root.add_to(&mut body, &self.source())?;
        self.stages(root.rows).push(Stage::Group(body));
        Ok(count)
    }

    fn written(&self, id: NodeId) -> Option<usize> {
        self.written.get(&id).copied()
    }

    fn set_written(&mut self, id: NodeId, written: usize) {
        self.written.insert(id, written);
    }

    fn refuse(&self, op: OperationRef<'c, 'c>, reason: &'static str) -> Stop {
        Stop::Failed(error(op, &format!("not supported yet: {reason}")))
    }
}
