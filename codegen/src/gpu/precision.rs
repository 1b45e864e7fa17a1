//! The precision of products on GPUs, as the module's attribute says it.

use cohort_abi::gpu::Precision;
use cohort_dialects::builder::Op;
use cohort_dialects::enums::{self, DialectEnum};
use cohort_dialects::marks::PRECISION;
use cohort_passes::pass::{Failed, Outcome, error};
use cohort_passes::support::ir::{set_attribute, top_level};
use melior::{
    Context,
    ir::{Attribute, OperationRef, operation::OperationLike},
};

/// What the module asks for.
pub fn of(module: OperationRef<'_, '_>) -> Result<Precision, Failed> {
    let Ok(attribute) = module.attribute(&PRECISION) else {
        return Ok(Precision::F32);
    };
    read(attribute).ok_or_else(|| {
        let message = format!("`{PRECISION}` is one of {}", Precision::NAMES);
        error(module, &message)
    })
}

/// The precision that an attribute says.
pub fn read(attribute: Attribute<'_>) -> Option<Precision> {
    enums::Precision::of(attribute).map(|precision| match precision {
        enums::Precision::F32 => Precision::F32,
        enums::Precision::Tf32 => Precision::Tf32,
        enums::Precision::Bf16 => Precision::Bf16,
    })
}

/// The attribute that [`read`] reads.
pub fn attribute(context: &Context, precision: Precision) -> Attribute<'_> {
    let precision = match precision {
        Precision::F32 => enums::Precision::F32,
        Precision::Tf32 => enums::Precision::Tf32,
        Precision::Bf16 => enums::Precision::Bf16,
    };
    precision.attribute(context)
}

/// Writes it down, before there is code for GPUs.
pub fn set<'c>(
    context: &'c Context,
    module: OperationRef<'c, 'c>,
    precision: Precision,
) -> Outcome {
    let before = of(module)?;
    if before == precision {
        return Ok(());
    }
    if module.has_attribute(&PRECISION) {
        let message = format!("the module's products are of {before} already");
        return Err(error(module, &message));
    }
    let code = top_level(module)
        .into_iter()
        .find(|op| Op::GpuModule.is(*op));
    if let Some(code) = code {
        return Err(error(
            code,
            "its code is made already, in another precision",
        ));
    }
    set_attribute(module, PRECISION, attribute(context, precision));
    Ok(())
}
