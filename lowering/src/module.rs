//! The module's symbols: data types, parameters, functions.

use cohort_dialects::builder::{Builder, Op, arguments_of, region_with_block};
use cohort_dialects::keys;
use cohort_dialects::marks;
use cohort_frontend::program::{AdtId, Function, Param, Program, Type, VarId};
use cohort_frontend::{Diagnostic, Sources};
use melior::{
    Context,
    ir::{
        Attribute, Module,
        attribute::{ArrayAttribute, StringAttribute, TypeAttribute},
        r#type::FunctionType,
    },
};
use rustc_hash::FxHashSet;
use std::cell::RefCell;

use crate::cfb;
use crate::expr::Lowering;
use crate::locations::Locations;
use crate::types::{Types, instance_dims, known_shape};
use crate::walk::each_expr;

/// What all functions of a program share while they are lowered.
pub struct Unit<'a, 'c> {
    pub program: &'a Program,
    pub types: Types<'a, 'c>,
    pub locations: Locations<'a, 'c>,
    /// The symbol of each function.
    pub symbols: Vec<String>,
    /// What of the program could not be lowered.
    pub refused: RefCell<Vec<Diagnostic>>,
}

/// Lowers a program.
///
/// # Errors
/// One diagnostic for each tensor whose length nothing tells.
pub fn build<'c>(
    context: &'c Context,
    program: &Program,
    sources: &Sources,
) -> Result<Module<'c>, Vec<Diagnostic>> {
    let unit = Unit {
        program,
        types: Types { context, program },
        locations: Locations::new(context, sources),
        symbols: function_symbols(program),
        refused: RefCell::default(),
    };
    let entry = &program.functions[program.entry.0];
    let location = unit.locations.of(&entry.span);
    let module = Module::new(location);
    let top = Builder::at_end(context, module.body(), location);
    for id in reachable_adts(program) {
        declare_adt(&unit, top, id);
    }
    for param in &program.params {
        declare_param(&unit, top, param);
    }
    for (index, function) in program.functions.iter().enumerate() {
        define_function(&unit, top, function, index);
    }
    let refused = unit.refused.into_inner();
    match refused.is_empty() {
        true => Ok(module),
        false => Err(refused),
    }
}

/// Each function keeps its name, the entry first, unless a type or a parameter has it, whose names are
/// those of the input and the weights.
fn function_symbols(program: &Program) -> Vec<String> {
    let adts = program.adts.iter().map(|adt| adt.name.clone());
    let params = program.params.iter().map(|param| param.name.clone());
    let mut taken: FxHashSet<String> = adts.chain(params).collect();
    let mut free = |wanted: &str| {
        let mut name = wanted.to_owned();
        let mut suffix = 0;
        while !taken.insert(name.clone()) {
            suffix += 1;
            name = format!("{wanted}_{suffix}");
        }
        name
    };
    let functions = program.functions.iter().enumerate();
    let entry = program.functions.get(program.entry.0);
    let entry = free(entry.map_or("main", |entry| &entry.name));
    let symbols = functions.map(|(index, function)| match index == program.entry.0 {
        true => entry.clone(),
        false => free(&function.name),
    });
    symbols.collect()
}

/// The data types that the functions' values are made of, in the program's order.
pub fn reachable_adts(program: &Program) -> Vec<AdtId> {
    let mut found = vec![false; program.adts.len()];
    let mut pending: Vec<&Type> = Vec::new();
    for function in &program.functions {
        pending.push(&function.result);
        pending.extend(function.vars.iter().map(|var| &var.ty));
        each_expr(&function.body, |expr| pending.push(&expr.ty));
    }
    while let Some(ty) = pending.pop() {
        match ty {
            Type::Scalar(_) | Type::Tensor { .. } | Type::Str => {}
            Type::Tuple(elements) => pending.extend(elements),
            Type::Array(element) => pending.push(element),
            Type::Adt(id) => {
                if !std::mem::replace(&mut found[id.0], true) {
                    let constructors = &program.adts[id.0].constructors;
                    pending.extend(constructors.iter().flat_map(|one| &one.fields));
                }
            }
        }
    }
    (0..found.len())
        .filter(|id| found[*id])
        .map(AdtId)
        .collect()
}

fn declare_adt<'c>(unit: &Unit<'_, 'c>, top: Builder<'c>, id: AdtId) {
    let adt = unit.types.adt(id);
    let constructors: Vec<_> = adt
        .constructors
        .iter()
        .map(|constructor| {
            let fields = constructor
                .fields
                .iter()
                .map(|ty| unit.types.whole(ty))
                .collect();
            cfb::Constructor {
                name: &constructor.name,
                fields,
                names: &constructor.names,
            }
        })
        .collect();
    cfb::adt(
        top.at(unit.locations.of(&adt.span)),
        &adt.name,
        &constructors,
    );
}

fn declare_param<'c>(unit: &Unit<'_, 'c>, top: Builder<'c>, param: &Param) {
    let ty = unit.types.tensor(param.elem, &known_shape(&param.shape));
    let text = |text: &str| -> Attribute<'c> { StringAttribute::new(top.context(), text).into() };
    let mut attributes = vec![
        (keys::SYM_NAME, text(&param.name)),
        // The weights file must hold it whether it is used or not, so it may not be dropped.
        (keys::SYM_VISIBILITY, text("public")),
        (keys::TYPE, TypeAttribute::new(ty).into()),
        (keys::VALUE, top.external(ty)),
    ];
    if let Some(stored) = &param.stored {
        let mut entries = vec![(marks::stored::NAME, text(&stored.name))];
        if stored.transposed {
            entries.push((marks::stored::TRANSPOSED, top.unit_attr()));
        }
        attributes.push((marks::STORED, top.dictionary(&entries)));
    }
    let place = top.at(unit.locations.of(&param.span));
    place.op(Op::MlProgramGlobal, &[], &[], &attributes, vec![]);
}

fn define_function<'c>(unit: &Unit<'_, 'c>, top: Builder<'c>, function: &Function, index: usize) {
    let name = &unit.symbols[index];
    let types = unit.types;
    let location = unit.locations.of(&function.span);
    let var_type = |var: &VarId| &function.vars[var.0].ty;
    let arguments = types.flat_all(function.params.iter().map(var_type));
    let results = types.flat(&function.result);

    let (region, block) = region_with_block(&arguments, location);
    let mut lowering = Lowering::new(unit, function);
    let body = Builder::at_end(top.context(), block, location);
    lowering.bind_all(body, &function.params, &arguments_of(block));
    let values = lowering.expr(body, &function.body);
    let values = lowering.fitted(body, values, &function.result);
    body.return_(&values);

    let context = top.context();
    let text = |text: &str| -> Attribute<'c> { StringAttribute::new(context, text).into() };
    let ty = FunctionType::new(context, &arguments, &results);
    let mut attributes = vec![
        (keys::SYM_NAME, text(name)),
        (keys::FUNCTION_TYPE, TypeAttribute::new(ty.into()).into()),
    ];
    let names: Vec<Vec<&str>> = function
        .params
        .iter()
        .map(|var| instance_dims(var_type(var)))
        .collect();
    if names.iter().any(|names| !names.is_empty()) {
        let dims = names.iter().map(|names| -> Attribute<'c> {
            let names: Vec<_> = names.iter().map(|name| text(name)).collect();
            ArrayAttribute::new(context, &names).into()
        });
        let dims: Vec<_> = dims.collect();
        let dims = ArrayAttribute::new(context, &dims).into();
        attributes.push((marks::ARGUMENT_DIMS, dims));
    }
    if index == unit.program.entry.0 {
        let names: Vec<_> = function
            .params
            .iter()
            .map(|var| text(&function.vars[var.0].name))
            .collect();
        let whole: Vec<_> = function
            .params
            .iter()
            .map(|var| TypeAttribute::new(types.whole(var_type(var))).into())
            .collect();
        attributes.extend([
            (marks::ENTRY, Attribute::unit(context)),
            (
                marks::ARGUMENTS,
                ArrayAttribute::new(context, &names).into(),
            ),
            (
                marks::ARGUMENT_TYPES,
                ArrayAttribute::new(context, &whole).into(),
            ),
            (
                marks::RESULT_TYPE,
                TypeAttribute::new(types.whole(&function.result)).into(),
            ),
        ]);
    } else {
        attributes.push((keys::SYM_VISIBILITY, text("private")));
    }
    top.at(location)
        .op(Op::FuncFunc, &[], &[], &attributes, vec![region]);
}
