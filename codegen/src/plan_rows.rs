//! What planners of row-wise kernels share, whatever the target: which values are stored rather than computed again,
//! and how memory and stages are written at the loop level.

pub mod declare;
pub mod repetition;
pub mod stages;

use cohort_dialects::builder::Op;
use cohort_passes::kernel::rows::body::{Body, Instruction};
use cohort_passes::kernel::rows::stage::{Fold, ReduceRows};

/// What a target chooses of the stages that both have.
pub trait Schedule<'c> {
    fn nest(&self, body: &Body<'c>) -> NestSchedule<'c>;

    fn fold(&self, fold: &Fold<'c>) -> FoldSchedule;

    /// The `vectors` of a fold of a list's rows, which have this shape.
    fn list(&self, list: &ReduceRows<'c>, shape: &[i64]) -> i64;
}

/// How a nest runs: its loops may have become fewer.
pub struct NestSchedule<'c> {
    pub body: Body<'c>,
    pub lanes: Option<usize>,
    pub by: Option<i64>,
    pub across_rows: bool,
}

/// How a fold runs.
pub struct FoldSchedule {
    pub lanes: Option<usize>,
    pub vectors: i64,
    pub neighbours: i64,
    pub across_rows: bool,
}

/// Whether an instruction is this operation.
pub fn is_operation<M>(instruction: &Instruction<'_, M>, kind: Op) -> bool {
    matches!(instruction, Instruction::Pointwise { op, .. } if kind.is(*op))
}
