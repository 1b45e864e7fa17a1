//! How the default pipeline is changed: passes that are left out, and what others are told.

use cohort_abi::gpu::Precision;
use cohort_abi::manifest::WeightFormat;
use cohort_dialects::builder::extend_op;
use cohort_dialects::enums::{DialectEnum, Gradients, Granularity};
use cohort_dialects::marks::{CACHES, GRADIENTS, UNROLL};
use cohort_passes::kernel::tuning::Tuning;
use cohort_passes::level0::hoist_constants;
use cohort_passes::pass::PassInfo;
use cohort_passes::support::ir::set_attribute;
use melior::{
    Context,
    ir::{
        Module, OperationRef,
        attribute::{DenseI64ArrayAttribute, IntegerAttribute},
        operation::OperationLike,
        r#type::IntegerType,
    },
};

use super::{PASSES, Stage, Step, TO_GRADIENTS, list_optional, optional, steps};

/// How the default pipeline is changed.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Print the module to standard error after every pass.
    pub print_after_all: bool,
    /// What one unit of batching is.
    pub granularity: Granularity,
    /// How many levels of children recursive functions compute with a node.
    pub unroll: u32,
    /// How many vectors of 16 numbers the processor's registers hold, where that is known.
    pub vector_registers: Option<u32>,
    /// Bytes of the processor's caches, as [`CACHES`] has them, where they are known.
    pub caches: Option<[i64; 3]>,
    /// Whether the processor has no fused multiply-adds.
    pub rounds_separately: bool,
    /// Make code for a GPU as well; it is a `gpu.module`, which must be taken out
    /// ([`crate::gpu::binary::remove`]) or made the host's before [`Stage::Llvm`].
    pub gpu: bool,
    /// Of products in that code.
    pub precision: Precision,
    /// What the packed weights of products are kept in, on the processor.
    pub keep_weights: WeightFormat,
    /// Make the functions that gradients are computed by as well.
    pub gradients: bool,
    /// Of these, only those of parameters: nobody asks for gradients of inputs.
    pub parameters_only: bool,
    /// What kernels get of numbers that were measured, in place of those that would be chosen.
    pub tuning: Tuning,
    without: Vec<String>,
}

/// A name that is not one of an optional pass.
#[derive(Debug, thiserror::Error)]
pub enum NotOptional {
    /// The pass of this name cannot be left out.
    #[error("the pass `{0}` is needed; these can be left out:{list}", list = list_optional())]
    Needed(String),
    /// No pass has this name.
    #[error("there is no pass `{0}`; these can be left out:{list}", list = list_optional())]
    Unknown(String),
}

impl Options {
    /// Leaves passes out of the pipeline.
    pub fn without(names: &[String]) -> Result<Options, NotOptional> {
        for name in names {
            if !optional().any(|(optional, _)| optional == name) {
                let is_pass = PASSES.iter().any(|pass| pass.name == name);
                return Err(match is_pass {
                    true => NotOptional::Needed(name.clone()),
                    false => NotOptional::Unknown(name.clone()),
                });
            }
        }
        Ok(Options {
            without: names.to_vec(),
            ..Options::default()
        })
    }

    /// Whether a pass is left out.
    pub fn is_without(&self, pass: PassInfo) -> bool {
        self.without.iter().any(|name| name == pass.name)
    }

    /// Writes into a level-0 module what its passes read there.
    pub fn write_down(&self, context: &Context, module: &Module<'_>) {
        let module = extend_op(module.as_operation());
        if self.gradients {
            let of = match self.parameters_only {
                true => Gradients::Parameters,
                false => Gradients::All,
            };
            set_attribute(module, GRADIENTS, of.attribute(context));
        }
        if self.unroll > 0 {
            let ty = IntegerType::new(context, 64).into();
            let levels = IntegerAttribute::new(ty, i64::from(self.unroll));
            set_attribute(module, UNROLL, levels.into());
        }
        if !self.tuning.is_empty() {
            self.tuning.write_down(context, module);
        }
        self.write_caches(context, module);
    }

    /// Writes what a module does not say itself of the processor's caches.
    pub(super) fn write_caches<'c>(&self, context: &'c Context, module: OperationRef<'c, 'c>) {
        if let Some(caches) = &self.caches
            && !module.has_attribute(&CACHES)
        {
            let caches = DenseI64ArrayAttribute::new(context, caches);
            set_attribute(module, CACHES, caches.into());
        }
    }

    /// The steps that lead to a stage from the one before it.
    pub fn steps(&self, stage: Stage) -> impl Iterator<Item = &'static Step> {
        let to_gradients = match self.gradients && stage == Stage::Blocks {
            true => TO_GRADIENTS,
            false => &[],
        };
        // Blocks are differentiated as far as the parameters themselves.
        let is_early = move |step: &&Step| match step {
            Step::Optional(pass, _) => {
                !to_gradients.is_empty() && pass.name == hoist_constants::PASS.name
            }
            _ => false,
        };
        let steps = steps(stage).iter().filter(move |step| !is_early(step));
        let steps = steps.chain(to_gradients);
        steps.filter(move |step| match step {
            Step::Optional(pass, _) => !self.is_without(*pass),
            Step::Host(pass, _) => !self.gpu && !self.is_without(*pass),
            Step::At(granularity, _) => *granularity == self.granularity,
            Step::Unroll(_) => self.unroll > 0,
            Step::Gpu(_) => self.gpu,
            Step::In(precision, _) => self.gpu && *precision == self.precision,
            Step::Keeping(format, _) => *format == self.keep_weights,
            _ => true,
        })
    }
}
