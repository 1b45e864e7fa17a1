//! The precision of products on GPUs, as the module's attribute says it.

use cohort_abi::gpu::Precision;
use cohort_dialects::builder::Op;
use cohort_passes::pass::{Failed, Outcome, error};
use cohort_passes::support::ir::{set_attribute, top_level};
use cohort_passes::support::levels::PRECISION;
use melior::{
    Context,
    ir::{OperationRef, attribute::StringAttribute, operation::OperationLike},
};

/// What the module asks for.
pub fn of(module: OperationRef<'_, '_>) -> Result<Precision, Failed> {
    let Ok(attribute) = module.attribute(&PRECISION) else {
        return Ok(Precision::F32);
    };
    let name = StringAttribute::try_from(attribute).ok();
    name.and_then(|name| Precision::parse(name.value()))
        .ok_or_else(|| {
            let message = format!("`{PRECISION}` is one of {}", Precision::NAMES);
            error(module, &message)
        })
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
    let name = StringAttribute::new(context, precision.name()).into();
    set_attribute(module, PRECISION, name);
    Ok(())
}
