//! Runs the passes of the pipeline on a module.

use cohort_dialects::builder::extend_op;
use cohort_dialects::enums::{DialectEnum, Rounding};
use cohort_dialects::marks::{ROUNDING, VECTOR_REGISTERS};
use cohort_passes::pass::create;
use cohort_passes::support::ir::{integer_attribute, set_attribute};
use melior::{
    Context,
    ir::{
        Module, attribute::IntegerAttribute, operation::OperationPrintingFlags, r#type::IntegerType,
    },
    pass::{PassIrPrintingOptions, PassManager},
    utility::parse_pass_pipeline,
};

use super::{Options, STAGES, Stage};
use crate::gpu::binary;

/// A pass failed; what it found was reported as diagnostics of the context.
#[derive(Debug, thiserror::Error)]
#[error("a pass failed on the way to {stage:?}")]
pub struct PipelineError {
    /// The stage that was to be reached.
    pub stage: Stage,
}

/// Takes a level-0 module down to `upto`.
pub fn run(
    context: &Context,
    module: &mut Module<'_>,
    upto: Stage,
    options: &Options,
) -> Result<(), PipelineError> {
    for stage in STAGES {
        if stage <= upto {
            run_stage(context, module, stage, options)?;
        }
    }
    Ok(())
}

/// Takes a module of the level before `stage` to it.
pub fn run_stage(
    context: &Context,
    module: &mut Module<'_>,
    stage: Stage,
    options: &Options,
) -> Result<(), PipelineError> {
    let failed = |_| PipelineError { stage };
    if stage == Stage::Blocks {
        options.write_down(context, module);
    }
    if stage == Stage::Loops {
        options.write_caches(context, extend_op(module.as_operation()));
    }
    if let (Stage::Target, Some(registers)) = (stage, options.vector_registers) {
        let module = extend_op(module.as_operation());
        if integer_attribute(module, VECTOR_REGISTERS).is_none() {
            let ty = IntegerType::new(context, 64).into();
            let registers = IntegerAttribute::new(ty, i64::from(registers));
            set_attribute(module, VECTOR_REGISTERS, registers.into());
        }
    }
    if stage == Stage::Target && options.rounds_separately {
        let module = extend_op(module.as_operation());
        set_attribute(module, ROUNDING, Rounding::Separate.attribute(context));
    }
    if stage == Stage::Target && !options.gpu {
        // Loops that were planned for a GPU are nobody's.
        binary::remove(extend_op(module.as_operation()));
    }
    for step in options.steps(stage) {
        // A manager a step: it then holds either our passes or a textual pipeline, in order.
        let manager = PassManager::new(context);
        if options.print_after_all {
            manager.enable_ir_printing(&PassIrPrintingOptions {
                before_all: false,
                after_all: true,
                module_scope: true,
                on_change: false,
                on_failure: true,
                flags: OperationPrintingFlags::new(),
                tree_printing_path: std::path::PathBuf::new(),
            });
        }
        match step.pass() {
            Ok(pass) => manager.add_pass(create(*pass)),
            Err(text) => {
                // Only what our own passes leave is verified: it takes a third of the time of all passes otherwise.
                manager.enable_verifier(false);
                let text = format!("builtin.module({text})");
                parse_pass_pipeline(manager.as_operation_pass_manager(), &text).map_err(failed)?;
            }
        }
        manager.run(module).map_err(failed)?;
    }
    Ok(())
}
