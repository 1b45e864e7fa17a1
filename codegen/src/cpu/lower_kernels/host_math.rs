//! Transcendental functions of the control program's scalars.
//!
//! A polynomial is some dozens of operations. Where the control program has many of them, they become functions, one
//! each, and calls of these: LLVM takes more than twice the time for a function of twice the length.

use cohort_dialects::builder::{Op, operands_of, result_of};
use cohort_passes::kernel::description::ATTRIBUTE;
use cohort_passes::support::ir::{erase, nested_ops, replace_uses, top_level};
use melior::ir::{OperationRef, TypeLike, ValueLike, operation::OperationLike};

use crate::emit::Emitter;
use crate::math::EXPANDABLE;

/// Up to this many operations of a kind stay inline.
const FEW: usize = 4;

/// Makes functions of what the control program computes often; `end` is the end of the module.
pub fn share<'c>(end: &Emitter<'c>, module: OperationRef<'c, 'c>) {
    let is_control = |function: &OperationRef<'c, 'c>| {
        Op::FuncFunc.is(*function) && !function.has_attribute(&ATTRIBUTE)
    };
    let functions = top_level(module).into_iter().filter(is_control);
    // What is replaced is gone, and looked at no more.
    let found: Vec<_> = functions
        .flat_map(nested_ops)
        .filter_map(|operation| {
            let kind = Op::of(operation).filter(|kind| EXPANDABLE.contains(kind))?;
            let is_scalar = result_of(operation, 0).r#type().is_f32();
            is_scalar.then_some((kind, operation))
        })
        .collect();
    for kind in EXPANDABLE {
        let uses = found.iter().filter(|(own, _)| own == kind);
        let uses: Vec<_> = uses.map(|(_, operation)| *operation).collect();
        if uses.len() > FEW {
            share_kind(end, *kind, &uses);
        }
    }
}

fn share_kind<'c>(end: &Emitter<'c>, kind: Op, uses: &[OperationRef<'c, 'c>]) {
    let name = format!("cohort_host_{}", kind.name().replace('.', "_"));
    let ty = end.b.f32();
    let arguments = vec![ty; operands_of(uses[0]).len()];
    end.scalar_function(&name, &arguments, ty, |e, arguments| {
        e.b.value(kind, arguments, ty)
    });
    for operation in uses {
        let Some(e) = end.before(*operation) else {
            continue;
        };
        let value = e.call_scalar(&name, &operands_of(*operation), ty);
        replace_uses(result_of(*operation, 0), value);
        erase(*operation);
    }
}
