//! Stages over whole rows: folds, lists and generics that are run as they are.

use cohort_passes::kernel::rows::graph::{Kind, NodeId};
use cohort_passes::kernel::rows::stage::{Fold, Stage};
use cohort_passes::kernel::rows::walk::Planner;

use super::launches::{Launch, Rows};
use super::{LaunchPlanner, Stop, Written};

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
        fold: Fold<'c>,
        input: NodeId,
        init: NodeId,
    ) -> Result<Written, Stop<'c>> {
        self.needs_memory(input, &fold.body)?;
        self.needs_memory(init, &fold.init)?;
        let rows = self.graph.nodes[fold.node].rows;
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
                continue;
            }
            let view = self
                .layouts
                .view(self.graph, *init)
                .ok_or(Stop::Store(*init))?;
            if self.is_pending(view.buffer) {
                return Err(Stop::Store(view.buffer));
            }
            inits.push(view);
        }
        let stage = Stage::Loops {
            node: id,
            body,
            inputs,
        };
        let mut written = self.stage(node.rows, stage);
        // A start that is written later than what the body reads needs a launch behind it.
        for view in inits {
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
