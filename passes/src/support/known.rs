//! What is made of parameters alone, and of one row of a parameter.

use std::collections::HashSet;

use cohort_dialects::builder::{Op, Val, operands_of};

use crate::support::ir::{defining_op, is_local, op_key};
use crate::support::waves::{Role, role, used_values};

/// Whether a value is a constant or a parameter, or made of such alone.
pub fn is_known(value: Val<'_>) -> bool {
    defining_op(value).is_some_and(|producer| match role(producer) {
        Role::Constant | Role::Parameter => true,
        Role::Tensor => operands_of(producer).into_iter().all(is_known),
        Role::Control => false,
    })
}

/// Whether a value is a row of a parameter, which the host looks up.
pub fn is_row(value: Val<'_>) -> bool {
    defining_op(value)
        .is_some_and(|producer| Op::CfbLookup.is(producer) && is_known(operands_of(producer)[0]))
}

/// Whether values are made of one row of a parameter, and of parameters and constants.
pub fn is_made_of_a_row(values: Vec<Val<'_>>) -> bool {
    let mut rows = HashSet::new();
    let mut pending = values;
    while let Some(value) = pending.pop() {
        let Some(producer) = defining_op(value) else {
            return false;
        };
        if is_row(value) {
            rows.insert(op_key(producer));
        } else if role(producer) == Role::Tensor {
            let inside = HashSet::from([op_key(producer)]);
            let used = used_values(producer).into_iter();
            pending.extend(used.filter(|value| !is_local(*value, &inside)));
        } else if !is_known(value) {
            return false;
        }
    }
    rows.len() == 1
}
