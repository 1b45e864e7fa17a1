//! `cohort_entry`, what the runtime calls for an instance, and the manifest around it.

use cohort_abi::manifest::{Argument, Manifest, Structure};
use cohort_dialects::builder::{Op, Val, arguments_of, operands_of, operations_of};
use cohort_dialects::marks;
use cohort_dialects::marks::CHOOSES_ROWS;
use cohort_dialects::types::flatten;
use cohort_passes::pass::{Failed, error};
use cohort_passes::support::ir::{
    array, blocks_of, elements_of, strings, symbol_of, text_of, top_level,
};
use melior::ir::{
    Attribute, BlockRef, OperationRef, ValueLike,
    attribute::{IntegerAttribute, TypeAttribute},
    operation::OperationLike,
};

use super::Program;
use super::emit::{call, function, load_slot, module_end, slot_address, store_slot};
use super::function::PREFIX;
use super::types::{is_stacked, lowered, lowered_value};

const ENTRY: &str = "cohort_entry";

/// Adds the entry and describes the program.
pub fn lower(program: &mut Program<'_>) -> Result<Manifest, Failed> {
    let main = program.calls.entry();
    let body = blocks_of(main)[0];
    let names = array(main, marks::ARGUMENTS);
    let types = array(main, marks::ARGUMENT_TYPES);
    let mut arguments = Vec::new();
    let mut slots = Vec::new();
    let dims = array(main, marks::ARGUMENT_DIMS);
    for (number, (name, ty)) in names.iter().zip(&types).enumerate() {
        let (Some(name), Ok(ty)) = (text_of(*name), TypeAttribute::try_from(*ty)) else {
            return Err(error(
                main,
                "`cfb.arguments` or `cfb.argument_types` is malformed",
            ));
        };
        let named = dims.get(number).map_or(vec![], |names| strings(*names));
        let described = program.manifest.argument_type(ty.value(), &named);
        let ty_of = described.map_err(|message| error(main, &message))?;
        arguments.push(Argument { name, ty: ty_of });
        slots.extend(flatten(ty.value()));
    }
    let result = main.attribute(&marks::RESULT_TYPE).ok();
    let Some(result) = result.and_then(|ty| TypeAttribute::try_from(ty).ok()) else {
        return Err(error(main, "the entry has no `cfb.result_type`"));
    };
    let results = flatten(result.value());
    let values = returned_by(body);
    let stacked: Vec<bool> = values.iter().map(|value| is_stacked(*value)).collect();
    let result_type = program.manifest.result_type(result.value(), &stacked);
    let result_type = result_type.map_err(|message| error(main, &message))?;
    let returned = values.len();
    if names.len() != types.len()
        || slots.len() != arguments_of(body).len()
        || results.len() != returned
    {
        return Err(error(main, "the entry's types do not fit the function"));
    }

    program.manifest.structure = structure(program, main);

    callable(program, main, ENTRY);
    let gradients = super::gradients::lower(program)?;

    let manifest = std::mem::take(&mut program.manifest);
    Ok(Manifest {
        version: cohort_abi::VERSION,
        entry: ENTRY.to_owned(),
        arguments,
        result: result_type,
        adts: manifest.adts,
        params: manifest.params,
        row_pools: manifest.row_pools,
        sources: manifest.sources,
        kernels: manifest.kernels,
        locations: manifest.locations,
        forces: manifest.forces,
        debugs: manifest.debugs,
        grows_in_place: manifest.grows_in_place,
        computed: manifest.computed,
        dims: manifest.dims,
        gradients,
        structure: manifest.structure,
        gpu_flush: manifest.gpu_flush,
    })
}

/// What `structure-only` wrote down.
fn structure(program: &Program<'_>, main: OperationRef<'_, '_>) -> Option<Structure> {
    main.attribute(&CHOOSES_ROWS).ok()?;
    let mut fields = Vec::new();
    let adts = top_level(program.module).into_iter();
    for (adt, declaration) in adts.filter(|op| Op::CfbAdt.is(*op)).enumerate() {
        for (tag, chosen) in array(declaration, CHOOSES_ROWS).into_iter().enumerate() {
            fields.extend(numbers(elements_of(chosen)).map(|field| [adt, tag, field]));
        }
    }
    Some(Structure {
        arguments: numbers(array(main, CHOOSES_ROWS)).collect(),
        fields,
    })
}

fn numbers(attributes: Vec<Attribute<'_>>) -> impl Iterator<Item = usize> {
    let numbers = attributes.into_iter();
    let numbers = numbers.filter_map(|number| IntegerAttribute::try_from(number).ok());
    numbers.filter_map(|number| usize::try_from(number.value()).ok())
}

/// Adds the function of this symbol that the runtime calls, which reads the arguments of one of the
/// control program from slots, and leaves its results in slots.
pub fn callable<'c>(program: &Program<'c>, source: OperationRef<'c, 'c>, symbol: &str) {
    let body = blocks_of(source)[0];
    let module = module_end(program).at(source.location());
    let word = module.pointer();
    let b = function(&module, symbol, &[word, word, word], &[], &[]);
    let parameters = arguments_of(b.block());
    let mut operands = vec![parameters[0]];
    let inputs = arguments_of(body)
        .into_iter()
        .filter_map(|argument| lowered(program.context, argument.r#type()))
        .flatten();
    for (ty, slot) in inputs.zip(0..) {
        operands.push(load_slot(&b, slot_address(&b, parameters[1], slot), ty));
    }
    let types: Vec<_> = returned_by(body)
        .into_iter()
        .filter_map(|value| lowered_value(program.context, value))
        .flatten()
        .collect();
    let name = symbol_of(source).unwrap_or_default();
    let values = call(&b, &format!("{PREFIX}{name}"), &operands, &types);
    for (value, slot) in values.into_iter().zip(0..) {
        store_slot(&b, value, slot_address(&b, parameters[2], slot));
    }
    b.return_(&[]);
}

/// What a function gives.
pub fn returned_by<'c>(body: BlockRef<'c, 'c>) -> Vec<Val<'c>> {
    let terminator = operations_of(body).pop();
    terminator.map(operands_of).unwrap_or_default()
}
