//! The functions that gradients are computed by: callable from the runtime, and described in the manifest.

use cohort_abi::manifest::{
    Elem, GradientArgument, GradientFunction, GradientHelper, GradientResult, Gradients,
    HelperKind, OfCall, Site, SiteValue, Type as ManifestType,
};
use cohort_dialects::builder::{Val, arguments_of};
use cohort_dialects::enums::{self, Part};
use cohort_dialects::keys::Key;
use cohort_dialects::marks::GRADIENTS;
use cohort_dialects::marks::{self, gradient as own};
use cohort_dialects::types::lazy_tensor;
use cohort_passes::level0::form_blocks::DIM;
use cohort_passes::level1::differentiate_blocks::{GRADIENT, HELPER};
use cohort_passes::pass::{Failed, error};
use cohort_passes::support::ir::{
    GRADIENT_OF, array, blocks_of, elements_of, enum_attribute, name_attribute, strings, symbol_of,
    text_of,
};
use melior::ir::{
    Attribute, OperationRef, ValueLike,
    attribute::{AttributeLike, DenseI64ArrayAttribute},
    operation::OperationLike,
    r#type::IntegerType,
};

use super::Program;
use super::entry::{callable, returned_by};

/// Adds what the runtime calls for gradients, if the program has it.
pub fn lower(program: &mut Program<'_>) -> Result<Option<Gradients>, Failed> {
    let mut gradients = Gradients::default();
    for function in program.calls.reachable() {
        if function.has_attribute(&GRADIENT) {
            gradients.functions.extend(gradient(program, function)?);
        } else if function.has_attribute(&HELPER) {
            gradients.helpers.push(helper(program, function)?);
        }
    }
    let wanted = enum_attribute(program.module, GRADIENTS);
    gradients.parameters_only = wanted == Some(enums::Gradients::Parameters);
    let any = !gradients.helpers.is_empty();
    Ok(any.then_some(gradients))
}

fn helper<'c>(
    program: &mut Program<'c>,
    function: OperationRef<'c, 'c>,
) -> Result<GradientHelper, Failed> {
    let kind = match enum_attribute(function, HELPER) {
        Some(enums::GradientHelper::Add) => HelperKind::Add,
        Some(enums::GradientHelper::AddRuns) => HelperKind::AddRuns,
        Some(enums::GradientHelper::Stack) => HelperKind::Stack,
        Some(enums::GradientHelper::Zero) => HelperKind::Zero,
        Some(enums::GradientHelper::One) => HelperKind::One,
        None => return Err(error(function, "`cfb.gradient_helper` is malformed")),
    };
    let results = returned_by(blocks_of(function)[0]);
    let Some(result) = results.first() else {
        return Err(error(function, "`cfb.gradient_helper` gives nothing"));
    };
    let (ManifestType::Tensor { pool } | ManifestType::Ragged { pool, .. }) =
        described(program, function, *result)?
    else {
        return Err(error(function, "`cfb.gradient_helper` gives no tensor"));
    };
    let symbol = format!("cohort_{}", symbol_of(function).unwrap_or_default());
    callable(program, function, &symbol);
    Ok(GradientHelper { kind, pool, symbol })
}

/// `None` where the kernel is called nowhere.
fn gradient<'c>(
    program: &mut Program<'c>,
    function: OperationRef<'c, 'c>,
) -> Result<Option<GradientFunction>, Failed> {
    let malformed = || error(function, "`cfb.gradient` is malformed");
    let dictionary = function.attribute(&GRADIENT).map_err(|_| malformed())?;
    let kernel = name_attribute(function, GRADIENT_OF).unwrap_or_default();
    let Some(kernel) = program.manifest.kernel(&kernel) else {
        return Ok(None);
    };
    let symbol = format!("cohort_{}", symbol_of(function).unwrap_or_default());
    let mut gradient = GradientFunction {
        kernel,
        symbol,
        arguments: vec![],
        results: vec![],
        sites: vec![],
        refused: entry(dictionary, own::REFUSED).map(text),
    };
    if gradient.refused.is_some() {
        return Ok(Some(gradient));
    }
    let body = blocks_of(function)[0];
    let dims = array(function, marks::ARGUMENT_DIMS);
    let of = parts(dictionary, own::ARGUMENTS);
    for ((number, value), of) in arguments_of(body).into_iter().enumerate().zip(&of) {
        let names = dims.get(number).map_or(vec![], |names| strings(*names));
        let length = |name: &String| name.strip_prefix(DIM)?.parse().ok();
        let lengths: Option<Vec<usize>> = names.iter().map(length).collect();
        let of = match of {
            Part::Operand(number) => Some(OfCall::Operand(*number)),
            Part::Result(number) => Some(OfCall::Result(*number)),
            Part::Cotangent(number) => Some(OfCall::Cotangent(*number)),
            Part::Addend(number) => Some(OfCall::Addend(*number)),
            Part::Argument(_) | Part::Site => None,
        };
        gradient.arguments.push(GradientArgument {
            of: of.ok_or_else(malformed)?,
            ty: described(program, function, value)?,
            lengths: lengths.ok_or_else(malformed)?,
        });
    }
    let results = parts(dictionary, own::RESULTS);
    for (value, of) in returned_by(body).into_iter().zip(results) {
        gradient.results.push(GradientResult {
            ty: described(program, function, value)?,
            operand: match of {
                Part::Operand(number) => Some(number),
                _ => None,
            },
        });
    }
    for site in entry(dictionary, own::SITES).map_or(vec![], elements_of) {
        let value = |name: Key<'_>| match Part::of(entry(site, name)?)? {
            Part::Argument(number) => Some(SiteValue::Argument(number)),
            Part::Result(number) => Some(SiteValue::Result(number)),
            _ => None,
        };
        let numbers = |name: Key<'_>| -> Option<Vec<u64>> {
            let numbers = DenseI64ArrayAttribute::try_from(entry(site, name)?).ok()?;
            (0..numbers.len())
                .map(|index| numbers.element(index).ok().map(|number| number as u64))
                .collect()
        };
        let parameter = entry(site, own::PARAMETER).map(text).unwrap_or_default();
        let offset = entry(site, own::OFFSET)
            .and_then(|offset| melior::ir::attribute::IntegerAttribute::try_from(offset).ok());
        gradient.sites.push(Site {
            param: program.manifest.param(&parameter).ok_or_else(malformed)?,
            offset: offset.ok_or_else(malformed)?.value() as u64,
            shape: numbers(own::SHAPE).ok_or_else(malformed)?,
            strides: numbers(own::STRIDES).ok_or_else(malformed)?,
            left: value(own::LEFT),
            right: value(own::RIGHT).ok_or_else(malformed)?,
        });
    }
    callable(program, function, &gradient.symbol.clone());
    Ok(Some(gradient))
}

/// The type of a value of a gradient function.
fn described<'c>(
    program: &mut Program<'c>,
    function: OperationRef<'c, 'c>,
    value: Val<'c>,
) -> Result<ManifestType, Failed> {
    let ty = value.r#type();
    if IntegerType::try_from(ty).is_ok_and(|ty| ty.width() == 64) {
        // A length.
        return Ok(ManifestType::Scalar(Elem::I32));
    }
    let ty = lazy_tensor(ty).unwrap_or(ty);
    let described = program.manifest.manifest_type(ty);
    described.map_err(|message| error(function, &message))
}

pub fn entry<'c>(dictionary: Attribute<'c>, name: Key<'_>) -> Option<Attribute<'c>> {
    let name = melior::StringRef::new(&name);
    // SAFETY: the attribute is alive, and it is asked for its kind before it is read.
    unsafe {
        if !mlir_sys::mlirAttributeIsADictionary(dictionary.to_raw()) {
            return None;
        }
        let found =
            mlir_sys::mlirDictionaryAttrGetElementByName(dictionary.to_raw(), name.to_raw());
        (!found.ptr.is_null()).then(|| Attribute::from_raw(found))
    }
}

fn parts(dictionary: Attribute<'_>, name: Key<'_>) -> Vec<Part> {
    let parts = entry(dictionary, name).map_or(vec![], elements_of);
    parts.into_iter().filter_map(Part::of).collect()
}

fn text(attribute: Attribute<'_>) -> String {
    text_of(attribute).unwrap_or_default()
}
