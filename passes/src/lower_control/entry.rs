//! `cohort_entry`, what the runtime calls for an instance, and the manifest around it.

use cohort_abi::manifest::{Argument, Manifest};
use cohort_dialects::builder::{arguments_of, operands_of, operations_of};
use cohort_dialects::types::flatten;
use melior::ir::{
    ValueLike,
    attribute::{StringAttribute, TypeAttribute},
    operation::OperationLike,
};

use super::Program;
use super::emit::{call, function, load_slot, module_end, pointer, slot_address, store_slot};
use super::function::PREFIX;
use super::tables::array;
use super::types::lowered;
use crate::ir::{blocks_of, name_attribute};
use crate::pass::{Failed, error};

const ENTRY: &str = "cohort_entry";

/// Adds the entry and describes the program.
pub fn lower(program: &mut Program<'_>) -> Result<Manifest, Failed> {
    let main = program.calls.entry();
    let body = blocks_of(main)[0];
    let names = array(main, "cfb.arguments");
    let types = array(main, "cfb.argument_types");
    let mut arguments = Vec::new();
    let mut slots = Vec::new();
    for (name, ty) in names.iter().zip(&types) {
        let (Ok(name), Ok(ty)) = (
            StringAttribute::try_from(*name),
            TypeAttribute::try_from(*ty),
        ) else {
            return Err(error(
                main,
                "`cfb.arguments` or `cfb.argument_types` is malformed",
            ));
        };
        let described = program.tables.manifest_type(ty.value());
        let ty_of = described.map_err(|message| error(main, &message))?;
        arguments.push(Argument {
            name: name.value().to_owned(),
            ty: ty_of,
        });
        slots.extend(flatten(ty.value()));
    }
    let result = main.attribute("cfb.result_type").ok();
    let Some(result) = result.and_then(|ty| TypeAttribute::try_from(ty).ok()) else {
        return Err(error(main, "the entry has no `cfb.result_type`"));
    };
    let results = flatten(result.value());
    let result_type = program.tables.manifest_type(result.value());
    let result_type = result_type.map_err(|message| error(main, &message))?;
    let returned = operations_of(body)
        .last()
        .map_or(0, |terminator| terminator.operand_count());
    if names.len() != types.len()
        || slots.len() != arguments_of(body).len()
        || results.len() != returned
    {
        return Err(error(main, "the entry's types do not fit the function"));
    }

    let module = module_end(program).at(main.location());
    let word = pointer(&module);
    let b = function(&module, ENTRY, &[word, word, word], &[], &[]);
    let parameters = arguments_of(b.block());
    let mut operands = vec![parameters[0]];
    for (argument, slot) in arguments_of(body).into_iter().zip(0..) {
        let ty = lowered(program.context, argument.r#type()).unwrap_or(word);
        operands.push(load_slot(&b, slot_address(&b, parameters[1], slot), ty));
    }
    let types: Vec<_> = operations_of(body)
        .last()
        .map(|terminator| operands_of(*terminator))
        .unwrap_or_default()
        .into_iter()
        .filter_map(|value| lowered(program.context, value.r#type()))
        .collect();
    let name = name_attribute(main, "sym_name").unwrap_or_default();
    let values = call(&b, &format!("{PREFIX}{name}"), &operands, &types);
    for (value, slot) in values.into_iter().zip(0..) {
        store_slot(&b, value, slot_address(&b, parameters[2], slot));
    }
    b.op("func.return", &[], &[], &[], vec![]);

    let tables = std::mem::take(&mut program.tables);
    Ok(Manifest {
        version: cohort_abi::VERSION,
        entry: ENTRY.to_owned(),
        arguments,
        result: result_type,
        adts: tables.adts,
        params: tables.params,
        spaces: tables.spaces,
        sources: tables.sources,
        kernels: tables.kernels,
        locations: tables.locations,
        forces: tables.forces,
        computed: tables.computed,
        dims: tables.dims,
    })
}
