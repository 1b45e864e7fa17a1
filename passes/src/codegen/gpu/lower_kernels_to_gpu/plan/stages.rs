//! Stages over whole rows: folds, lists and generics that are run as they are.

use cohort_abi::manifest::Elem;
use cohort_dialects::builder::name_of;
use melior::ir::OperationRef;

use super::launches::{Fold, Launch, Rows, Stage};
use super::{LaunchPlanner, Stop, Written};
use crate::codegen::cpu::plan_kernels::is_operation;
use crate::kernel::rows::body::{Body, Instruction, ValueId};
use crate::kernel::rows::graph::{Kind, NodeId};
use crate::kernel::rows::stage::Fold as ReduceStage;
use crate::kernel::rows::walk::Planner;

impl<'c> LaunchPlanner<'_, 'c> {
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

    pub(super) fn plan_fold(
        &mut self,
        fold: ReduceStage<'c>,
        input: NodeId,
        init: NodeId,
    ) -> Result<Written, Stop<'c>> {
        self.needs_memory(input, &fold.body)?;
        self.needs_memory(init, &fold.init)?;
        let (inputs, combiner) = match factors(&fold.body, fold.input, fold.combiner) {
            Some(factors) => (factors, None),
            None => (vec![fold.input], Some(fold.combiner)),
        };
        let rows = self.graph.nodes[fold.node].rows;
        let fold = Fold {
            node: fold.node,
            body: fold.body,
            inputs,
            dims: fold.dims,
            combiner,
            init: fold.init,
            init_value: fold.init_value,
        };
        Ok(self.stage(rows, Stage::Fold(Box::new(fold))))
    }

    pub(super) fn plan_loops(&mut self, id: NodeId) -> Result<Written, Stop<'c>> {
        let node = &self.graph.nodes[id];
        let (body, inputs) = self.loop_inputs(id)?;
        let Kind::Loops(loops) = &node.kind else {
            return Err(self.refuse(node.op, "loops"));
        };
        for input in &loops.inputs {
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
        Ok(written)
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
