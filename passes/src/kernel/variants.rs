//! The functions that a kernel needs: one for each way in which its records give it operands.

use cohort_dialects::builder::{Op, operands_of};
use cohort_dialects::keys;
use melior::{
    Context,
    ir::{OperationRef, ValueLike, attribute::FlatSymbolRefAttribute},
};

use crate::pass::{Failed, error};
use crate::support::ir::{elem_of, kernel_of, nested_ops, set_attribute, symbol_of};

/// The records of a module.
pub fn records_of<'c>(module: OperationRef<'c, 'c>) -> Vec<OperationRef<'c, 'c>> {
    let nested = nested_ops(module).into_iter();
    nested.filter(|op| Op::CfbRecord.is(*op)).collect()
}

/// The functions that a kernel needs: names, and which operands are host scalars. That is for its
/// records to say. A second way of recording it gets a function, and a name, of its own.
pub fn variants<'c>(
    context: &'c Context,
    kernel: OperationRef<'c, 'c>,
    records: &[OperationRef<'c, 'c>],
) -> Result<Vec<(String, Vec<bool>)>, Failed> {
    let name = symbol_of(kernel).ok_or_else(|| error(kernel, "expected a kernel with a name"))?;
    let mut variants: Vec<(String, Vec<bool>)> = Vec::new();
    for record in records {
        if kernel_of(*record).as_ref() != Some(&name) {
            continue;
        }
        let scalars: Vec<bool> = operands_of(*record)
            .into_iter()
            .map(|operand| elem_of(operand.r#type()).is_some())
            .collect();
        match variants.iter().find(|(_, known)| *known == scalars) {
            Some((variant, _)) if *variant == name => {}
            Some((variant, _)) => set_callee(context, *record, variant),
            None if variants.is_empty() => variants.push((name.clone(), scalars)),
            None => {
                let variant = format!("{name}_scalars_{}", variants.len());
                set_callee(context, *record, &variant);
                variants.push((variant, scalars));
            }
        }
    }
    if variants.is_empty() {
        variants.push((name, vec![]));
    }
    Ok(variants)
}

fn set_callee<'c>(context: &'c Context, record: OperationRef<'c, 'c>, kernel: &str) {
    let callee = FlatSymbolRefAttribute::new(context, kernel).into();
    set_attribute(record, keys::KERNEL, callee);
}
