//! The default pipeline: every pass between two levels of IR, in order.
//!
//! [`run()`] takes a module from level 0 to any later level. Each step is also a flag of `batch-opt`,
//! so that what a stage does can be repeated by hand from its printed input.

mod options;
mod run;

use cohort_abi::gpu::Precision;
use cohort_abi::manifest::WeightFormat;
pub use cohort_dialects::enums::Granularity;
use cohort_passes::level0::{
    form_blocks, guard_decisions, hoist_constants, hoist_invariants, hoist_lookups,
    hoist_operators, keep_functions, keep_operators, limit_inlining, mark_recursive,
    recognise_reductions, refactor_recursion, resolve_dims, share_leaf_products, share_slices,
    specialise_constructors, specialise_functions, split_products, unroll_counters, unroll_loops,
    unroll_recursion,
};
use cohort_passes::level1::{
    batch_blocks, differentiate_blocks, find_phases, operand_reuse, static_depth,
};
use cohort_passes::level2::{
    accumulate_products, balance_branches, explain_batching, fork_join, fuse_products,
    hoist_arguments, specialise_kernels, structure_only,
};
use cohort_passes::loops::{
    apply_tuning, bound_masks, divide_calls, fuse_launches, fuse_rows, hoist_lengths, online_folds,
    split_tails,
};
use cohort_passes::pass::PassInfo;

use crate::cpu::{keep_weights_bf16, lower_kernels, plan_kernels, round_separately, unify_kernels};
use crate::gpu::{
    expand_flush, form_clusters, form_warpgroups, hold_weights, keep_rows_bf16, lower_gpu_to_host,
    lower_kernels_to_gpu, persistence, plan_kernels_for_gpu, round_products_bf16,
    round_products_tf32,
};
use crate::lower_control;

pub use options::{NotOptional, Options};
pub use run::{PipelineError, run, run_stage};

/// Every pass of ours, in the order of the default pipeline; then those that only report.
pub const PASSES: &[PassInfo] = &[
    keep_operators::PASS,
    keep_functions::PASS,
    mark_recursive::PASS,
    limit_inlining::PASS,
    specialise_constructors::PASS,
    unroll_loops::PASS,
    unroll_counters::PASS,
    unroll_recursion::PASS,
    resolve_dims::PASS,
    guard_decisions::PASS,
    share_slices::PASS,
    hoist_constants::PASS,
    specialise_functions::PASS,
    hoist_invariants::PASS,
    recognise_reductions::PASS,
    refactor_recursion::PASS,
    share_leaf_products::PASS,
    split_products::PASS,
    hoist_operators::PASS,
    hoist_lookups::PASS,
    form_blocks::PASS,
    operand_reuse::PASS,
    static_depth::PASS,
    find_phases::PASS,
    differentiate_blocks::PASS,
    batch_blocks::PASS,
    accumulate_products::PASS,
    fuse_products::PASS,
    hoist_arguments::PASS,
    specialise_kernels::PASS,
    balance_branches::PASS,
    fork_join::PASS,
    structure_only::PASS,
    round_products_tf32::PASS,
    round_products_bf16::PASS,
    plan_kernels_for_gpu::PASS,
    keep_rows_bf16::PASS,
    form_warpgroups::PASS,
    hold_weights::PASS,
    form_clusters::PASS,
    plan_kernels::PASS,
    keep_weights_bf16::PASS,
    online_folds::PASS,
    bound_masks::PASS,
    fuse_rows::PASS,
    split_tails::PASS,
    apply_tuning::PASS,
    divide_calls::PASS,
    hoist_lengths::PASS,
    fuse_launches::PASS,
    lower_kernels_to_gpu::PASS,
    persistence::PASS,
    lower_kernels::PASS,
    unify_kernels::PASS,
    lower_control::PASS,
    round_separately::PASS,
    expand_flush::PASS,
    lower_gpu_to_host::PASS,
    explain_batching::PASS,
];

/// How far down a module is taken; see `docs/ir.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Level 0, as the frontend lowers it.
    Program,
    /// Level 1: static blocks with the reuse of their operands.
    Blocks,
    /// Level 2: batched kernels and the control program.
    Batched,
    /// The loop level: kernels as loops over memory; for a GPU in a `gpu.module`.
    Loops,
    /// Level 3: loops, vectors and calls of the ABI.
    Target,
    /// Level 3 in the `llvm` dialect alone.
    Llvm,
}

/// One step of the pipeline.
#[derive(Clone, Copy)]
pub enum Step {
    /// A pass that is always run.
    Ours(PassInfo),
    /// A pass that can be left out, and what is lost without it.
    Optional(PassInfo, &'static str),
    /// The same of a pass that runs where no code for a GPU is wanted.
    Host(PassInfo, &'static str),
    /// A pass that runs where code for a GPU is wanted.
    Gpu(PassInfo),
    /// A pass that runs where code for a GPU is wanted in this precision.
    In(Precision, PassInfo),
    /// A pass that runs where weights are to be kept in this.
    Keeping(WeightFormat, PassInfo),
    /// A pass that runs where recursions are to be unrolled.
    Unroll(PassInfo),
    /// A pass that runs at one granularity only.
    At(Granularity, PassInfo),
    /// A textual pipeline of upstream passes.
    Upstream(&'static str),
}

impl Step {
    /// Its pass.
    ///
    /// # Errors
    ///
    /// The text of a pipeline where its passes are upstream's.
    pub fn pass(&self) -> Result<&PassInfo, &'static str> {
        match self {
            Step::Ours(pass)
            | Step::Optional(pass, _)
            | Step::Host(pass, _)
            | Step::At(_, pass)
            | Step::In(_, pass)
            | Step::Keeping(_, pass)
            | Step::Unroll(pass)
            | Step::Gpu(pass) => Ok(pass),
            Step::Upstream(text) => Err(text),
        }
    }
}

/// At level 0, of the program and of its backward, and again for what the passes in between have made of
/// parameters.
const HOIST_CONSTANTS: Step = Step::Optional(
    hoist_constants::PASS,
    "what is made of parameters alone is computed, and packed for products, at each call",
);

const OPERAND_REUSE: Step = Step::Optional(
    operand_reuse::PASS,
    "parameters are operands of each row like any other, so products take one matrix a row",
);

const TO_BLOCKS: &[Step] = &[
    Step::At(Granularity::Operator, keep_operators::PASS),
    Step::At(Granularity::Function, keep_functions::PASS),
    Step::Ours(mark_recursive::PASS),
    Step::Ours(limit_inlining::PASS),
    Step::Upstream("inline,symbol-dce,canonicalize,cse"),
    Step::Optional(
        specialise_constructors::PASS,
        "what a recursion does with a value that its caller has just built is a call of its own",
    ),
    Step::Upstream("canonicalize"),
    Step::Ours(mark_recursive::PASS),
    Step::Ours(limit_inlining::PASS),
    Step::Optional(
        unroll_loops::PASS,
        "layers that a loop counts take one matrix a row",
    ),
    Step::Upstream("canonicalize,cse"),
    Step::Optional(
        unroll_counters::PASS,
        "layers that a recursion counts take one matrix a row",
    ),
    Step::Unroll(unroll_recursion::PASS),
    Step::Upstream("inline,symbol-dce,canonicalize,cse"),
    Step::Ours(resolve_dims::PASS),
    Step::Ours(guard_decisions::PASS),
    Step::Optional(
        share_slices::PASS,
        "products with a part of a parameter that the host chooses take one matrix a row",
    ),
    HOIST_CONSTANTS,
    Step::Upstream("canonicalize,cse"),
    Step::Optional(
        specialise_functions::PASS,
        "a function that is called with different parameters takes one matrix a row",
    ),
    Step::Optional(
        hoist_invariants::PASS,
        "what is the same in every step of a loop is computed in every step",
    ),
    Step::Upstream("canonicalize,cse"),
    Step::Optional(
        recognise_reductions::PASS,
        "a sum of a list is one call an element, each deeper than the one before",
    ),
    Step::Optional(
        refactor_recursion::PASS,
        "what a node makes of each child's result is a launch of its own at each level",
    ),
    // A product behind what is not a row's alone is a launch of its own on a GPU, and levels there are what takes time.
    Step::Host(
        share_leaf_products::PASS,
        "what a node multiplies a leaf's result with is computed for each node, not once for equal leaves",
    ),
    Step::Upstream("symbol-dce,canonicalize,cse"),
    Step::Optional(
        split_products::PASS,
        "a product waits for the recursion as a whole, although part of its input does not",
    ),
    Step::Optional(
        hoist_operators::PASS,
        "work that does not depend on the recursion runs with what does, step by step",
    ),
    // One launch more, behind which others wait.
    Step::Host(
        hoist_lookups::PASS,
        "what a looked-up row is multiplied with is computed in each step of a loop, not once for equal rows",
    ),
    Step::Ours(form_blocks::PASS),
    OPERAND_REUSE,
    Step::Upstream("canonicalize,cse"),
    Step::Ours(static_depth::PASS),
    Step::Optional(
        find_phases::PASS,
        "what waits for recursions and loops runs at the depth that each instance happens to have",
    ),
];

/// After those, where gradients are wanted: blocks of what the backward of blocks is.
const TO_GRADIENTS: &[Step] = &[
    Step::Ours(differentiate_blocks::PASS),
    Step::Upstream("canonicalize,cse"),
    // A transposed matrix is then an operand that all rows share.
    HOIST_CONSTANTS,
    Step::Upstream("canonicalize,cse"),
    Step::Ours(form_blocks::PASS),
    OPERAND_REUSE,
    Step::Upstream("canonicalize,cse"),
];

const TO_BATCHED: &[Step] = &[
    Step::Ours(batch_blocks::PASS),
    Step::Upstream("canonicalize,cse"),
    Step::Optional(
        accumulate_products::PASS,
        "sums of products and products of concatenations are computed apart, then added",
    ),
    Step::Upstream("canonicalize,cse"),
    Step::Optional(
        fuse_products::PASS,
        "products of the same rows with different matrices are computed one by one",
    ),
    Step::Optional(
        hoist_arguments::PASS,
        "what a recursion makes of an argument that it hands on is computed anew in each call",
    ),
    Step::Optional(
        specialise_kernels::PASS,
        "what a leaf or a first step makes of zeros or of a parameter is computed at each call",
    ),
    Step::Upstream("canonicalize,cse"),
    HOIST_CONSTANTS,
    Step::Upstream("canonicalize,cse,symbol-dce"),
    Step::Optional(
        balance_branches::PASS,
        "what follows branches of unequal length runs in a batch for each length",
    ),
    Step::Optional(
        fork_join::PASS,
        "an instance waits for one decision at a time, also for those that do not need each other",
    ),
    Step::Ours(structure_only::PASS),
];

const TO_LOOPS: &[Step] = &[
    Step::In(Precision::Tf32, round_products_tf32::PASS),
    Step::In(Precision::Bf16, round_products_bf16::PASS),
    Step::Gpu(plan_kernels_for_gpu::PASS),
    Step::Optional(
        keep_rows_bf16::PASS,
        "a GPU's products round a row anew for each block of columns, and read it in f32",
    ),
    Step::Optional(
        form_warpgroups::PASS,
        "large products in bf16 are multiplied warp by warp on all cards",
    ),
    Step::Optional(
        hold_weights::PASS,
        "a GPU reads the weights of a recursion anew for every few rows of each level",
    ),
    Step::Optional(
        form_clusters::PASS,
        "all blocks of a GPU wait for each other behind each level of a recursion",
    ),
    Step::Ours(plan_kernels::PASS),
    Step::Keeping(WeightFormat::Bf16, keep_weights_bf16::PASS),
    Step::Optional(
        online_folds::PASS,
        "softmax-like folds between products compute the first product anew for each of them",
    ),
    Step::Optional(
        bound_masks::PASS,
        "what a triangular mask hides of a product or of scores is computed and thrown away",
    ),
    Step::Optional(
        fuse_rows::PASS,
        "work on each row of values of differing length is launched call by call",
    ),
    Step::Optional(
        split_tails::PASS,
        "loops over what differs in length have masks throughout, not at their end only",
    ),
    Step::Ours(apply_tuning::PASS),
    Step::Optional(
        divide_calls::PASS,
        "a call is computed by one thread, however long it is",
    ),
    Step::Optional(
        hoist_lengths::PASS,
        "where a call's values begin, and how long they are, is read at each use",
    ),
    Step::Optional(
        fuse_launches::PASS,
        "each launch of a GPU's kernel waits for the one before, also where it needs nothing of it",
    ),
];

const TO_TARGET: &[Step] = &[
    Step::Gpu(lower_kernels_to_gpu::PASS),
    Step::Optional(
        persistence::PASS,
        "a GPU launches each step of a flush by itself, and waits for it",
    ),
    Step::Ours(lower_kernels::PASS),
    Step::Optional(
        unify_kernels::PASS,
        "kernels that differ in their parameters alone are compiled one by one",
    ),
    Step::Ours(lower_control::PASS),
    Step::Ours(round_separately::PASS),
    // Code for a GPU needs a few registers less as it is.
    Step::Upstream("func.func(canonicalize,cse)"),
];

const TO_LLVM: &[Step] = &[Step::Upstream(
    "convert-scf-to-cf,convert-vector-to-llvm,convert-math-to-llvm,convert-ub-to-llvm,\
     convert-arith-to-llvm,convert-index-to-llvm,convert-cf-to-llvm,convert-func-to-llvm,\
     reconcile-unrealized-casts,canonicalize,cse",
)];

/// The steps that lead to a stage from the one before it.
pub fn steps(stage: Stage) -> &'static [Step] {
    match stage {
        Stage::Program => &[],
        Stage::Blocks => TO_BLOCKS,
        Stage::Batched => TO_BATCHED,
        Stage::Loops => TO_LOOPS,
        Stage::Target => TO_TARGET,
        Stage::Llvm => TO_LLVM,
    }
}

/// The stages above level 0, in order.
pub const STAGES: [Stage; 5] = [
    Stage::Blocks,
    Stage::Batched,
    Stage::Loops,
    Stage::Target,
    Stage::Llvm,
];

/// The passes that can be left out, each with what is lost without it.
pub fn optional() -> impl Iterator<Item = (&'static str, &'static str)> {
    let mut listed = Vec::new();
    let steps = STAGES.into_iter().flat_map(steps);
    steps.filter_map(move |step| match step {
        // A pass may run more than once.
        Step::Optional(pass, lost) | Step::Host(pass, lost) if !listed.contains(&pass.name) => {
            listed.push(pass.name);
            Some((pass.name, *lost))
        }
        _ => None,
    })
}

/// A line for each pass that can be left out.
pub fn list_optional() -> String {
    optional()
        .map(|(name, lost)| format!("\n  {name}: without it, {lost}"))
        .collect()
}
