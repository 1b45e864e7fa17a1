//! `unify-kernels`: kernels that compute the same with other parameters are one function (level 3).
//!
//! Layers that are written out, or the branches of `share-slices`, are kernels that differ in nothing but
//! which parameters they read, or which part of one. A kernel's function reads its constants through a
//! table, so such functions differ at most in where they begin to read a constant. That goes into the
//! description, which makes the functions equal; of equal ones the first stays, and the others become
//! declarations that name it, whose descriptions say which constants it is called with. LLVM then
//! compiles it once.
//!
//! ```mlir
//! func.func @main_1(…) attributes {cfb.kernel = "{… \"constants\":[{\"plain\":{\"param\":\"w\"}}] …}"} {
//!   %w = llvm.load %table : !llvm.ptr -> !llvm.ptr
//!   %part = llvm.getelementptr %w[4096] : (!llvm.ptr) -> !llvm.ptr, i8
//!   …
//! }
//! // becomes, where @main_0 does the same at the beginning of a constant
//! func.func private @main_1(…) attributes {cfb.kernel = "{… \"symbol\":\"main_0\" …
//!   \"constants\":[{\"part\":{\"of\":{\"plain\":{\"param\":\"w\"}},\"from\":4096}}] …}"}
//! ```
//!
//! Requires: level 3, right after `lower-kernels`. Leaves: the same; functions of kernels may be
//! declarations, which `lower-control` removes. Nothing of what runs changes.

use cohort_dialects::builder::{Op, Val, arguments_of, operands_of, operations_of, result_of};
use cohort_dialects::equal::Distinct;
use cohort_dialects::keys;
use cohort_passes::kernel::description::{
    ATTRIBUTE, ConstantDescription, KernelDescription, parse, to_json,
};
use cohort_passes::pass::{Outcome, PassInfo, error};
use cohort_passes::support::ir::{
    blocks_of, defining_op, erase, functions_of, key, name_attribute, remove_attribute,
    replace_uses, set_attribute, users_of,
};
use melior::{
    Context,
    ir::{
        OperationRef, RegionLike,
        attribute::{DenseI32ArrayAttribute, StringAttribute, TypeAttribute},
        operation::OperationLike,
        r#type::IntegerType,
    },
};

/// The pass `unify-kernels`.
pub const PASS: PassInfo = PassInfo {
    name: "unify-kernels",
    summary: "Make kernels that differ in their constants alone one function (level 3)",
    description: include_str!("unify_kernels.rs"),
    run,
};

/// The argument of a kernel's function that is the table of its constants.
const TABLE: usize = 4;

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    let mut known: Distinct<String> = Distinct::default();
    // They are put back when no function is compared any longer.
    let mut descriptions = Vec::new();
    for function in functions_of(module) {
        let Some(json) = name_attribute(function, ATTRIBUTE) else {
            continue;
        };
        let mut description: KernelDescription = parse(&json)
            .map_err(|problem| error(function, &format!("bad `{ATTRIBUTE}`: {problem}")))?;
        let from = take_offsets(context, function, description.constants.len());
        for (constant, from) in description.constants.iter_mut().zip(from) {
            if from > 0 {
                *constant = ConstantDescription::Part {
                    of: Box::new(constant.clone()),
                    from,
                };
            }
        }
        remove_attribute(function, ATTRIBUTE);
        match known.get(function) {
            Some(first) => {
                description.symbol = first.clone();
                make_declaration(context, function);
            }
            None => known.insert(function, description.symbol.clone()),
        }
        descriptions.push((function, to_json(&description)));
    }
    for (function, json) in descriptions {
        let json = StringAttribute::new(context, &json).into();
        set_attribute(function, ATTRIBUTE, json);
    }
    Ok(())
}

/// Lets a function begin to read each constant where it does first; how far behind the constant's
/// beginning that is, in bytes.
fn take_offsets<'c>(
    context: &'c Context,
    function: OperationRef<'c, 'c>,
    constants: usize,
) -> Vec<u64> {
    let mut found = vec![0; constants];
    let Some(entry) = blocks_of(function).first().copied() else {
        return found;
    };
    let Some(table) = arguments_of(entry).get(TABLE).copied() else {
        return found;
    };
    for load in operations_of(entry) {
        if !Op::LlvmLoad.is(load) {
            continue;
        }
        let address = operands_of(load)[0];
        let place = match defining_op(address) {
            Some(gep) if operands_of(gep).first().map(|base| key(*base)) == Some(key(table)) => {
                fixed_offset(gep)
            }
            _ if key(address) == key(table) => Some(0),
            _ => None,
        };
        let number = place.map(|place| place as usize / size_of::<u64>());
        let Some(number) = number.filter(|number| *number < constants) else {
            continue;
        };
        let mut added = Vec::new();
        if !additions(result_of(load, 0), &mut added) {
            continue;
        }
        let least = added.iter().map(|(_, offset)| *offset).min();
        let Some(least) = least.filter(|least| *least > 0) else {
            continue;
        };
        found[number] = least as u64;
        for (gep, offset) in added {
            if offset > least {
                let indices = DenseI32ArrayAttribute::new(context, &[offset - least]);
                set_attribute(gep, keys::RAW_CONSTANT_INDICES, indices.into());
            } else {
                replace_uses(result_of(gep, 0), operands_of(gep)[0]);
                erase(gep);
            }
        }
    }
    found
}

/// Where a known number of bytes is added to an address, be it behind what is known when it runs alone;
/// says whether nothing else is done with the address.
fn additions<'c>(address: Val<'c>, added: &mut Vec<(OperationRef<'c, 'c>, i32)>) -> bool {
    users_of(address).into_iter().all(|user| {
        if let Some(offset) = fixed_offset(user) {
            added.push((user, offset));
            return true;
        }
        let is_address = operands_of(user).first().map(|base| key(*base)) == Some(key(address));
        let is_moved = Op::LlvmGetelementptr.is(user) && operands_of(user).len() == 2;
        is_address && is_moved && additions(result_of(user, 0), added)
    })
}

/// The bytes that a computation of an address adds, where that is known.
fn fixed_offset(operation: OperationRef<'_, '_>) -> Option<i32> {
    if !Op::LlvmGetelementptr.is(operation) || operands_of(operation).len() != 1 {
        return None;
    }
    let element = TypeAttribute::try_from(operation.attribute(&keys::ELEM_TYPE).ok()?).ok()?;
    if IntegerType::try_from(element.value()).ok()?.width() != 8 {
        return None;
    }
    let indices = operation.attribute(&keys::RAW_CONSTANT_INDICES).ok()?;
    let indices = DenseI32ArrayAttribute::try_from(indices).ok()?;
    match indices.len() {
        1 => indices.element(0).ok(),
        _ => None,
    }
}

/// Drops the body.
fn make_declaration<'c>(context: &'c Context, function: OperationRef<'c, 'c>) {
    if let Ok(region) = function.region(0) {
        let nothing = melior::ir::Region::new();
        // SAFETY: both regions are alive; the function's body moves, and dies with `nothing`.
        unsafe { mlir_sys::mlirRegionTakeBody(nothing.to_raw(), region.to_raw()) };
    }
    let private = StringAttribute::new(context, "private").into();
    set_attribute(function, keys::SYM_VISIBILITY, private);
}
