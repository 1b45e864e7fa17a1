//! The operations of our own dialect, one function each.

use cohort_dialects::builder::{Builder, Op, Val, result_of, results_of};
use cohort_dialects::keys;
use melior::ir::{
    Attribute, Region, Type, ValueLike,
    attribute::{ArrayAttribute, StringAttribute, TypeAttribute},
};

/// One of a data type.
pub struct Constructor<'n, 'c> {
    pub name: &'n str,
    pub fields: Vec<Type<'c>>,
    /// One a field, or none at all.
    pub names: &'n [String],
}

pub fn adt<'c>(at: Builder<'c>, name: &str, constructors: &[Constructor<'_, 'c>]) {
    let context = at.context();
    let text = |text: &str| -> Attribute<'c> { StringAttribute::new(context, text).into() };
    let list = |elements: Vec<Attribute<'c>>| -> Attribute<'c> {
        ArrayAttribute::new(context, &elements).into()
    };
    let each = |of: &dyn Fn(&Constructor<'_, 'c>) -> Attribute<'c>| {
        list(constructors.iter().map(of).collect())
    };
    let mut attributes = vec![
        (keys::SYM_NAME, text(name)),
        (
            keys::CONSTRUCTORS,
            each(&|constructor| text(constructor.name)),
        ),
        (
            keys::FIELDS,
            each(&|constructor| {
                let types = constructor.fields.iter();
                list(types.map(|ty| TypeAttribute::new(*ty).into()).collect())
            }),
        ),
    ];
    if constructors.iter().any(|own| !own.names.is_empty()) {
        let names = each(&|own| list(own.names.iter().map(|name| text(name)).collect()));
        attributes.push((keys::NAMES, names));
    }
    at.op(Op::CfbAdt, &[], &[], &attributes, vec![]);
}

pub fn construct<'c>(
    at: Builder<'c>,
    constructor: &str,
    fields: &[Val<'c>],
    result: Type<'c>,
) -> Val<'c> {
    let constructor = StringAttribute::new(at.context(), constructor).into();
    at.value_with(
        Op::CfbConstruct,
        fields,
        result,
        &[(keys::CONSTRUCTOR, constructor)],
    )
}

/// One region a constructor, in the type's order, whose arguments are the fields.
pub fn match_<'c>(
    at: Builder<'c>,
    scrutinee: Val<'c>,
    results: &[Type<'c>],
    arms: Vec<Region<'c>>,
) -> Vec<Val<'c>> {
    results_of(at.op(Op::CfbMatch, &[scrutinee], results, &[], arms))
}

pub fn yield_<'c>(at: Builder<'c>, values: &[Val<'c>]) {
    at.cfb_yield(values);
}

/// Begins the body of a loop that may not end.
pub fn turn(at: Builder<'_>) {
    at.op(Op::CfbTurn, &[], &[], &[], vec![]);
}

/// Shows a value of the type, flattened.
pub fn debug<'c>(at: Builder<'c>, text: &str, ty: Type<'c>, values: &[Val<'c>]) {
    let text = StringAttribute::new(at.context(), text).into();
    let attributes = [
        (keys::TEXT, text),
        (keys::TYPE, TypeAttribute::new(ty).into()),
    ];
    at.op(Op::CfbDebug, values, &[], &attributes, vec![]);
}

/// `array[index]`, which is several values where elements are tuples.
pub fn array_get<'c>(
    at: Builder<'c>,
    array: Val<'c>,
    index: Val<'c>,
    results: &[Type<'c>],
) -> Vec<Val<'c>> {
    results_of(at.op(Op::CfbArrayGet, &[array, index], results, &[], vec![]))
}

/// The region takes the elements and yields the result's element.
pub fn map<'c>(at: Builder<'c>, arrays: &[Val<'c>], result: Type<'c>, body: Region<'c>) -> Val<'c> {
    result_of(at.op(Op::CfbMap, arrays, &[result], &[], vec![body]), 0)
}

/// The region takes the accumulator, then the element, and yields the accumulator.
pub fn fold<'c>(
    at: Builder<'c>,
    array: Val<'c>,
    init: &[Val<'c>],
    body: Region<'c>,
) -> Vec<Val<'c>> {
    let operands: Vec<_> = std::iter::once(array).chain(init.iter().copied()).collect();
    let results: Vec<_> = init.iter().map(ValueLike::r#type).collect();
    results_of(at.op(Op::CfbFold, &operands, &results, &[], vec![body]))
}
