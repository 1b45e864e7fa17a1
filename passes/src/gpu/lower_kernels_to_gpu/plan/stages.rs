//! Stages over whole rows: folds, lists, concatenations and generics that are run as they are.

use cohort_abi::manifest::Elem;
use cohort_dialects::builder::name_of;
use melior::ir::OperationRef;

use super::launches::{Fold, Launch, List, Rows, Stage};
use super::{Planner, Root, Stop, Written};
use crate::cpu::lower_kernels::body::{Body, Instruction, ValueId};
use crate::cpu::lower_kernels::compute::is_operation;
use crate::cpu::lower_kernels::graph::{Kind, NodeId, identity};

impl<'c> Planner<'_, 'c> {
    /// Adds a stage to the last row launch that may hold it, or to a new one.
    pub(super) fn stage(&mut self, rows: bool, stage: Stage<'c>) -> Written {
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

    pub(super) fn concat(
        &mut self,
        id: NodeId,
        inputs: &[NodeId],
        dim: usize,
    ) -> Result<(), Stop<'c>> {
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

    pub(super) fn fold(&mut self, id: NodeId) -> Result<(), Stop<'c>> {
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

    pub(super) fn list(
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

    pub(super) fn loops(&mut self, id: NodeId) -> Result<(), Stop<'c>> {
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

/// The factors of what is summed, where a multiply-add does both.
fn factors<'c>(
    body: &Body<'c>,
    value: ValueId,
    combiner: OperationRef<'c, 'c>,
) -> Option<Vec<ValueId>> {
    let (instruction, elem) = &body.values[value];
    let Instruction::Pointwise { inputs, .. } = instruction else {
        return None;
    };
    (*elem == Elem::F32
        && is_operation(instruction, "arith.mulf")
        && name_of(combiner) == "arith.addf")
        .then(|| inputs.clone())
}
