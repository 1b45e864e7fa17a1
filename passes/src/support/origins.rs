//! Where values of the control program come from, at levels 1 and 2.

use std::collections::{HashMap, HashSet};
use std::fmt;

use cohort_dialects::builder::{
    Op, Val, arguments_of, extend_op, operands_of, operations_of, results_of,
};
use cohort_dialects::keys::{self, Key};
use cohort_dialects::types::{adt_name, array_element, flatten};
use melior::ir::{
    Attribute, BlockLike, OperationRef, Type, ValueLike, attribute::TypeAttribute,
    operation::OperationLike,
};

use crate::support::ir::{
    argument_of, array, blocks_of, callee_of, defining_op, elements_of, functions_of, global_of,
    integers, is_private, key, name_attribute, nested_ops, op_key, strings, symbol_of, top_level,
};

/// What a tensor may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin<'c> {
    /// A whole parameter.
    Parameter(String),
    /// A row of a parameter that the instance chooses.
    Row(String),
    /// A constant.
    Constant(Constant<'c>),
    /// A result of a kernel or block.
    Computed(String),
    /// Rows or elements that the program put together or took apart.
    Arranged,
    /// Part of what the instance is: an argument of the entry, or a field or element of one.
    Instance,
}

/// The value of a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constant<'c>(pub Attribute<'c>);

impl Origin<'_> {
    /// Where it stands among others: by kind, then by name. Constants stay in the order in which they are found.
    fn rank(&self) -> (usize, &str) {
        match self {
            Origin::Parameter(name) => (0, name),
            Origin::Row(name) => (1, name),
            Origin::Constant(_) => (2, ""),
            Origin::Computed(name) => (3, name),
            Origin::Arranged => (4, ""),
            Origin::Instance => (5, ""),
        }
    }
}

impl fmt::Display for Origin<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Parameter(name) => write!(f, "the parameter @{name}"),
            Origin::Row(name) => write!(f, "a row of @{name} by the instance's choice"),
            Origin::Constant(_) => write!(f, "a constant"),
            Origin::Computed(kernel) => write!(f, "computed by block `{kernel}`"),
            Origin::Arranged => write!(f, "arranged by the program"),
            Origin::Instance => write!(f, "part of the instance's data"),
        }
    }
}

/// Arrays in arrays beyond this are not told apart from the instance's.
const DEEPEST: usize = 4;

/// A value, or what lies in it: which component of the elements of an array, outermost array first.
type Component<'c> = (Val<'c>, Vec<usize>);

/// Follows values back through calls, branches, loops, arrays and constructors.
pub struct Origins<'c> {
    /// Those that may be called from outside, whose arguments are the instance.
    entries: HashSet<usize>,
    functions: HashMap<String, OperationRef<'c, 'c>>,
    /// By function: its name and the calls of it.
    names: HashMap<usize, String>,
    calls: HashMap<String, Vec<OperationRef<'c, 'c>>>,
    /// By type and constructor: where the program makes values of it.
    constructs: HashMap<(String, String), Vec<OperationRef<'c, 'c>>>,
    constructors: HashMap<String, Vec<String>>,
    /// The types of which values may come with the instance.
    given: HashSet<String>,
}

impl<'c> Origins<'c> {
    pub fn new(module: OperationRef<'c, 'c>) -> Origins<'c> {
        let mut origins = Origins {
            entries: HashSet::new(),
            functions: HashMap::new(),
            names: HashMap::new(),
            calls: HashMap::new(),
            constructs: HashMap::new(),
            constructors: HashMap::new(),
            given: HashSet::new(),
        };
        let mut named_by: HashMap<String, Vec<String>> = HashMap::new();
        for adt in top_level(module) {
            if Op::CfbAdt.is(adt)
                && let Some(name) = symbol_of(adt)
            {
                let constructors = adt.attribute(&keys::CONSTRUCTORS).map_or(vec![], strings);
                origins.constructors.insert(name.clone(), constructors);
                let fields = array(adt, keys::FIELDS).into_iter().flat_map(elements_of);
                let fields = fields.filter_map(|field| TypeAttribute::try_from(field).ok());
                named_by.insert(
                    name,
                    fields.flat_map(|field| adts_in(field.value())).collect(),
                );
            }
        }
        let mut given = Vec::new();
        for function in functions_of(module) {
            let Some(name) = symbol_of(function) else {
                continue;
            };
            if !is_private(function) {
                origins.entries.insert(op_key(function));
                let body = blocks_of(function);
                let arguments = body.first().map_or(vec![], |body| arguments_of(*body));
                given.extend(arguments.iter().flat_map(|a| adts_in(a.r#type())));
            }
            origins.names.insert(op_key(function), name.clone());
            origins.functions.insert(name, function);
        }
        while let Some(name) = given.pop() {
            if origins.given.insert(name.clone()) {
                given.extend(named_by.get(&name).into_iter().flatten().cloned());
            }
        }
        for operation in nested_ops(module) {
            match Op::of(operation) {
                Some(Op::FuncCall) => {
                    if let Some(callee) = callee_of(operation) {
                        origins.calls.entry(callee).or_default().push(operation);
                    }
                }
                Some(Op::CfbConstruct) => {
                    let adt = adt_name(results_of(operation)[0].r#type());
                    let constructor = name_attribute(operation, keys::CONSTRUCTOR);
                    if let Some(made) = adt.zip(constructor) {
                        origins.constructs.entry(made).or_default().push(operation);
                    }
                }
                _ => {}
            }
        }
        origins
    }

    /// Everything that any of the values may be, each once, in a fixed order.
    pub fn of_all(&self, values: impl IntoIterator<Item = Val<'c>>) -> Vec<Origin<'c>> {
        let mut search = Search {
            found: Vec::new(),
            open: values.into_iter().map(|value| (value, vec![])).collect(),
        };
        let mut seen = HashSet::new();
        while let Some((value, path)) = search.open.pop() {
            if !seen.insert((key(value), path.clone())) {
                continue;
            }
            if path.len() > DEEPEST {
                search.is(Origin::Instance);
            } else if let Some(producer) = defining_op(value) {
                let result = results_of(producer)
                    .iter()
                    .position(|result| key(*result) == key(value));
                self.produced(&mut search, producer, result.unwrap_or(0), &path);
            } else {
                self.argument(&mut search, value, &path);
            }
        }
        let mut found = search.found;
        found.sort_by(|a, b| a.rank().cmp(&b.rank()));
        found
    }

    fn produced(
        &self,
        search: &mut Search<'c>,
        producer: OperationRef<'c, 'c>,
        result: usize,
        path: &[usize],
    ) {
        let named = |attribute: Key<'_>| name_attribute(producer, attribute).unwrap_or_default();
        let operands = operands_of(producer);
        match Op::of(producer) {
            Some(Op::MlProgramGlobalLoadConst) => search.is(Origin::Parameter(named(keys::GLOBAL))),
            Some(Op::CfbParam) => search.is(Origin::Parameter(named(keys::PARAM))),
            Some(Op::CfbParamRow) => search.is(Origin::Row(named(keys::PARAM))),
            Some(Op::CfbLookup) => {
                let table = defining_op(operands[0]);
                let name = table.and_then(global_of);
                search.is(name.map_or(Origin::Instance, Origin::Row));
            }
            Some(Op::CfbConstant | Op::ArithConstant) => {
                let value = producer.attribute(&keys::VALUE).ok();
                let value = value.map(|value| Origin::Constant(Constant(value)));
                search.is(value.unwrap_or(Origin::Instance));
            }
            Some(Op::CfbRecord) => search.is(Origin::Computed(named(keys::KERNEL))),
            Some(Op::CfbBlock) => search.is(Origin::Computed(named(keys::NAME))),
            Some(Op::CfbStack | Op::CfbRow | Op::CfbView) => search.is(Origin::Arranged),
            Some(Op::CfbGhost | Op::CfbArrayReverse) => {
                search.from(operands.into_iter().take(1), path)
            }
            Some(Op::ArithSelect) => search.from(operands.into_iter().skip(1), path),
            Some(Op::FuncCall) => match self.functions.get(&named(keys::CALLEE)) {
                Some(callee) => search.from(ends(*callee, Op::FuncReturn, result), path),
                None => search.is(Origin::Instance),
            },
            Some(Op::CfbMatch | Op::ScfIf) => search.from(yields(producer, result), path),
            Some(Op::CfbFork) => {
                let strands = blocks_of(producer).into_iter().flat_map(operations_of);
                let joined = strands.filter(|op| Op::CfbJoin.is(*op));
                let joined = joined.flat_map(operands_of);
                search.from(joined.skip(result).take(1), path);
            }
            // What leaves a loop is what enters it or what a turn yields.
            Some(Op::CfbFold) => {
                search.from(yields(producer, result), path);
                let first = operands.len().saturating_sub(producer.result_count());
                search.from(operands.get(first + result).copied(), path);
            }
            Some(Op::ScfWhile) => search.from(condition(producer, result), path),
            Some(kind) => self.array(search, kind, producer, result, path),
            None => search.is(Origin::Instance),
        }
    }

    /// What makes arrays, or reads their elements.
    fn array(
        &self,
        search: &mut Search<'c>,
        kind: Op,
        producer: OperationRef<'c, 'c>,
        result: usize,
        path: &[usize],
    ) {
        let operands = operands_of(producer);
        match (kind, path) {
            (Op::CfbArrayGet, _) => search.elements(operands[0], result, path),
            (Op::CfbMap, [component, inner @ ..]) => {
                search.from(yields(producer, *component), inner);
            }
            (Op::CfbArrayCreate, [component, inner @ ..]) => {
                let width = width(results_of(producer)[0]).max(1);
                search.from(operands.into_iter().skip(*component).step_by(width), inner);
            }
            (Op::CfbArrayPush, [component, inner @ ..]) => {
                search.from(operands.get(1 + component).copied(), inner);
                search.from(operands.into_iter().take(1), path);
            }
            _ => search.is(Origin::Instance),
        }
    }

    /// An argument of a block of a region.
    fn argument(&self, search: &mut Search<'c>, value: Val<'c>, path: &[usize]) {
        let place = argument_of(value).and_then(|(block, index)| {
            let owner = extend_op(block.parent_operation()?);
            let number = blocks_of(owner).iter().position(|known| *known == block)?;
            Some((owner, number, index))
        });
        let Some((owner, number, index)) = place else {
            search.is(Origin::Instance);
            return;
        };
        let operands = operands_of(owner);
        match Op::of(owner) {
            Some(Op::FuncFunc) => {
                let name = self.names.get(&op_key(owner));
                let calls = name.and_then(|name| self.calls.get(name));
                if calls.is_none() || self.entries.contains(&op_key(owner)) {
                    search.is(Origin::Instance);
                }
                for call in calls.into_iter().flatten() {
                    search.from(operands_of(*call).get(index).copied(), path);
                }
            }
            Some(Op::ScfWhile) if number == 0 => {
                search.from(yields(owner, index), path);
                search.from(operands.get(index).copied(), path);
            }
            Some(Op::ScfWhile) => search.from(condition(owner, index), path),
            Some(Op::CfbFold) => {
                // The carried values come first, then the elements.
                let carried = owner.result_count();
                if index >= carried {
                    search.elements(operands[0], index - carried, path);
                    return;
                }
                search.from(yields(owner, index), path);
                search.from(
                    operands.get(operands.len() - carried + index).copied(),
                    path,
                );
            }
            Some(Op::CfbMap) => {
                let mut component = index;
                for array in operands {
                    let width = width(array);
                    if component < width {
                        search.elements(array, component, path);
                        return;
                    }
                    component -= width;
                }
                search.is(Origin::Instance);
            }
            Some(Op::CfbMatch) => self.field(search, operands[0], number, index, path),
            Some(Op::CfbFork) => {
                let earlier = blocks_of(owner).into_iter().take(number);
                let before: usize = earlier.map(|strand| arguments_of(strand).len()).sum();
                let result = integers(owner, keys::NEEDS).get(before + index).copied();
                let results = results_of(owner);
                search.from(
                    result.and_then(|result| results.get(result as usize).copied()),
                    path,
                );
            }
            _ => search.is(Origin::Instance),
        }
    }

    /// A field of a value of an algebraic data type: what the program puts there, and what may come so.
    fn field(
        &self,
        search: &mut Search<'c>,
        value: Val<'c>,
        constructor: usize,
        field: usize,
        path: &[usize],
    ) {
        let adt = adt_name(value.r#type());
        let constructor = adt.as_ref().and_then(|adt| {
            let constructors = self.constructors.get(adt)?;
            constructors.get(constructor).cloned()
        });
        let Some(made) = adt.zip(constructor) else {
            search.is(Origin::Instance);
            return;
        };
        if self.given.contains(&made.0) {
            search.is(Origin::Instance);
        }
        for construct in self.constructs.get(&made).into_iter().flatten() {
            search.from(operands_of(*construct).get(field).copied(), path);
        }
    }
}

struct Search<'c> {
    /// Each once.
    found: Vec<Origin<'c>>,
    open: Vec<Component<'c>>,
}

impl<'c> Search<'c> {
    fn is(&mut self, origin: Origin<'c>) {
        if !self.found.contains(&origin) {
            self.found.push(origin);
        }
    }

    fn from(&mut self, values: impl IntoIterator<Item = Val<'c>>, path: &[usize]) {
        let places = values.into_iter().map(|value| (value, path.to_vec()));
        self.open.extend(places);
    }

    /// A component of the elements of an array.
    fn elements(&mut self, array: Val<'c>, component: usize, path: &[usize]) {
        let mut of_array = vec![component];
        of_array.extend(path);
        self.open.push((array, of_array));
    }
}

/// How many values an element of an array is.
fn width(array: Val<'_>) -> usize {
    array_element(array.r#type()).map_or(1, |element| flatten(element).len())
}

/// The algebraic data types that a type is made of.
pub fn adts_in(ty: Type<'_>) -> Vec<String> {
    let parts = flatten(ty).into_iter();
    let names = parts.flat_map(|part| match array_element(part) {
        Some(element) => adts_in(element),
        None => adt_name(part).into_iter().collect(),
    });
    names.collect()
}

/// Operand `index` of the terminators of this kind in an operation's own regions.
fn ends<'c>(operation: OperationRef<'c, 'c>, kind: Op, index: usize) -> Vec<Val<'c>> {
    blocks_of(operation)
        .into_iter()
        .flat_map(operations_of)
        .filter(|op| kind.is(*op))
        .filter_map(|op| operands_of(op).get(index).copied())
        .collect()
}

fn yields<'c>(operation: OperationRef<'c, 'c>, index: usize) -> Vec<Val<'c>> {
    let mut values = ends(operation, Op::CfbYield, index);
    values.extend(ends(operation, Op::ScfYield, index));
    values
}

/// What an `scf.while` passes on: behind the decision in `scf.condition`.
fn condition<'c>(operation: OperationRef<'c, 'c>, index: usize) -> Vec<Val<'c>> {
    ends(operation, Op::ScfCondition, index + 1)
}
