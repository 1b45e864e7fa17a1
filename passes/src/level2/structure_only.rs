//! `structure-only`: writes down what of an instance its calls depend on (level 2).
//!
//! Where no tensor decides, an instance's path, its calls and what they read from each other follow from its
//! *structure*: constructors, lengths, and numbers that the program computes or decides with. Other numbers only
//! choose a row of a parameter, as a word does, and what follows from them is the row alone. The entry of such a
//! program has `cfb.chooses_rows`, the numbers of the arguments that do no more than that; a `cfb.adt` has
//! the same of the fields of each constructor. The runtime keeps schedules by structure, and puts the rows in.
//!
//! ```mlir
//! cfb.adt @Tree ["Leaf", "Node"] [[i32], [!cfb.adt<@Tree>, !cfb.adt<@Tree>]]
//! func.func @main(%t: !cfb.adt<@Tree>) -> !cfb.lazy<tensor<8xf32>> attributes {cfb.entry, …}
//! // becomes, where `Leaf`'s number only is an index of `cfb.param_row`
//! cfb.adt @Tree ["Leaf", "Node"] [[i32], [!cfb.adt<@Tree>, !cfb.adt<@Tree>]] {cfb.chooses_rows = [[0], []]}
//! func.func @main(…) -> … attributes {cfb.chooses_rows = [], cfb.entry, …}
//! ```
//!
//! A number is followed from where it is read through calls, elements of arrays and `cfb.array_reverse`; all else
//! that takes it (arithmetic, a kernel, a constructor, an array that is made) may decide something. So may a field of
//! a type that the result has. Programs are left as they are that wait for tensors, show values or draw random
//! numbers, and those that ask whether two handles are the same (`cfb.same`) of which neither is known to be a
//! parameter's or a constant's.
//!
//! Requires: level 2. Leaves: level 2. After just-in-time dynamic batching, which keeps the analysis of graphs that
//! are alike.

use cohort_dialects::keys;
use cohort_dialects::marks;
use std::collections::{HashMap, HashSet};

use cohort_abi::manifest::Elem;
use cohort_dialects::builder::{Op, Val, arguments_of, operands_of, results_of};
use cohort_dialects::types::{adt_name, array_element, flatten};
use melior::{
    Context,
    ir::{
        Attribute, OperationRef, Type, ValueLike,
        attribute::{ArrayAttribute, IntegerAttribute, TypeAttribute},
        operation::OperationLike,
        r#type::IntegerType,
    },
};

use crate::pass::{Outcome, PassInfo};
use crate::support::ir::{
    array, blocks_of, callee_of, elem_of, elements_of, functions_of, key, nested_ops,
    set_attribute, symbol_of, top_level, users_of,
};
use crate::support::origins::{Origin, Origins, adts_in};
use crate::support::waves::waits;
use cohort_dialects::marks::CHOOSES_ROWS;

/// The pass `structure-only`.
pub const PASS: PassInfo = PassInfo {
    name: "structure-only",
    summary: "Write down which numbers of an instance only choose rows, where no tensor decides (level 2)",
    description: include_str!("structure_only.rs"),
    run,
};

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    let functions = functions_of(module);
    let entry = functions
        .iter()
        .find(|f| f.attribute(&marks::ENTRY).is_ok());
    let all = nested_ops(module);
    let Some(entry) = entry.filter(|_| all_follows_from_structure(module, &all)) else {
        return Ok(());
    };
    let numbers = Numbers {
        functions: functions
            .iter()
            .filter_map(|function| Some((symbol_of(*function)?, *function)))
            .collect(),
    };
    let adts: Vec<Adt<'c>> = top_level(module).into_iter().filter_map(Adt::of).collect();
    let shown = shown_by(*entry, &adts);
    for adt in &adts {
        let matches = all.iter().filter(|op| {
            Op::CfbMatch.is(**op)
                && adt_name(operands_of(**op)[0].r#type()).as_deref() == Some(&adt.name)
        });
        let matches: Vec<_> = matches.map(|op| blocks_of(*op)).collect();
        let constructors = adt.fields.iter().enumerate().map(|(tag, fields)| {
            let (mut place, mut choosing) = (0, Vec::new());
            for (field, ty) in fields.iter().enumerate() {
                let read = matches.iter().filter_map(|cases| {
                    let arguments = arguments_of(*cases.get(tag)?);
                    arguments.get(place).copied()
                });
                if is_number(*ty)
                    && !shown.contains(&adt.name)
                    && numbers.choose_rows(read.collect())
                {
                    choosing.push(field);
                }
                place += flatten(*ty).len();
            }
            choosing
        });
        let constructors: Vec<_> = constructors.collect();
        let constructors: Vec<_> = constructors
            .iter()
            .map(|fields| numbers_of(context, fields))
            .collect();
        let constructors = ArrayAttribute::new(context, &constructors).into();
        set_attribute(adt.declaration, CHOOSES_ROWS, constructors);
    }
    let mut values = blocks_of(*entry)
        .first()
        .map_or(vec![], |body| arguments_of(*body))
        .into_iter();
    let mut choosing = Vec::new();
    for (number, ty) in types(array(*entry, marks::ARGUMENT_TYPES))
        .into_iter()
        .enumerate()
    {
        let own: Vec<_> = values.by_ref().take(flatten(ty).len()).collect();
        if is_number(ty) && numbers.choose_rows(own) {
            choosing.push(number);
        }
    }
    set_attribute(*entry, CHOOSES_ROWS, numbers_of(context, &choosing));
    Ok(())
}

/// A list of numbers.
fn numbers_of<'c>(context: &'c Context, numbers: &[usize]) -> Attribute<'c> {
    let word = IntegerType::new(context, 64).into();
    let numbers = numbers.iter();
    let numbers = numbers.map(|number| IntegerAttribute::new(word, *number as i64).into());
    ArrayAttribute::new(context, &numbers.collect::<Vec<_>>()).into()
}

/// Whether nothing but an instance's data says which calls it makes.
fn all_follows_from_structure<'c>(
    module: OperationRef<'c, 'c>,
    all: &[OperationRef<'c, 'c>],
) -> bool {
    let is = |kind: Op| all.iter().filter(move |op| kind.is(**op));
    if all.iter().any(|op| waits(*op)) || is(Op::CfbInstanceKey).next().is_some() {
        return false;
    }
    // Rows that numbers choose have other handles than whole parameters and constants.
    let origins = Origins::new(module);
    let is_fixed = |value: Val<'c>| {
        let all = origins.of_all([value]);
        (all.iter()).all(|one| matches!(one, Origin::Parameter(_) | Origin::Constant(_)))
    };
    is(Op::CfbSame).all(|op| operands_of(*op).into_iter().any(is_fixed))
}

/// A number, or an array of numbers.
fn is_number(ty: Type<'_>) -> bool {
    elem_of(array_element(ty).unwrap_or(ty)) == Some(Elem::I32)
}

fn types(attributes: Vec<Attribute<'_>>) -> Vec<Type<'_>> {
    let types = attributes.into_iter();
    let types = types.filter_map(|ty| TypeAttribute::try_from(ty).ok());
    types.map(|ty| ty.value()).collect()
}

struct Adt<'c> {
    name: String,
    declaration: OperationRef<'c, 'c>,
    /// Of each constructor.
    fields: Vec<Vec<Type<'c>>>,
}

impl<'c> Adt<'c> {
    fn of(declaration: OperationRef<'c, 'c>) -> Option<Adt<'c>> {
        if !Op::CfbAdt.is(declaration) {
            return None;
        }
        let fields = array(declaration, keys::FIELDS).into_iter();
        Some(Adt {
            name: symbol_of(declaration)?,
            declaration,
            fields: fields.map(|fields| types(elements_of(fields))).collect(),
        })
    }
}

/// The data types of which values are in the entry's result.
fn shown_by<'c>(entry: OperationRef<'c, 'c>, adts: &[Adt<'c>]) -> HashSet<String> {
    let result = entry.attribute(&marks::RESULT_TYPE).ok();
    let mut open = types(result.into_iter().collect());
    let mut shown = HashSet::new();
    while let Some(ty) = open.pop() {
        for name in adts_in(ty) {
            let adt = adts.iter().find(|adt| adt.name == name);
            if shown.insert(name) {
                open.extend(adt.iter().flat_map(|adt| adt.fields.iter().flatten()));
            }
        }
    }
    shown
}

/// Follows numbers from where they are read.
struct Numbers<'c> {
    functions: HashMap<String, OperationRef<'c, 'c>>,
}

impl<'c> Numbers<'c> {
    /// Whether nothing comes of these, numbers or arrays of numbers, but rows of parameters and lengths.
    fn choose_rows(&self, values: Vec<Val<'c>>) -> bool {
        let mut open = values;
        let mut seen = HashSet::new();
        while let Some(value) = open.pop() {
            if !seen.insert(key(value)) {
                continue;
            }
            for user in users_of(value) {
                match self.goes_on(value, user) {
                    Some(further) => open.extend(further),
                    None => return false,
                }
            }
        }
        true
    }

    /// Where a user hands the value, or what is in it, on to; `None` if it may do anything else with it.
    fn goes_on(&self, value: Val<'c>, user: OperationRef<'c, 'c>) -> Option<Vec<Val<'c>>> {
        let operands = operands_of(user);
        let is_it = |operand: &Val<'c>| key(*operand) == key(value);
        let first_argument = |place: usize| {
            let body = blocks_of(user).into_iter().next()?;
            arguments_of(body).get(place).copied()
        };
        match Op::of(user) {
            Some(Op::CfbParamRow | Op::CfbArrayLen) => Some(vec![]),
            Some(Op::CfbArrayReverse) => Some(results_of(user)),
            // The array; its element's place is a number that something else must be known of.
            Some(Op::CfbArrayGet)
                if operands.iter().filter(|operand| is_it(operand)).count() == 1
                    && is_it(&operands[0]) =>
            {
                Some(results_of(user))
            }
            Some(Op::FuncCall) => {
                let callee = self.functions.get(&callee_of(user)?)?;
                let parameters = arguments_of(blocks_of(*callee).into_iter().next()?);
                let handed = operands.iter().zip(parameters);
                let handed = handed.filter(|(operand, _)| is_it(operand));
                Some(handed.map(|(_, parameter)| parameter).collect())
            }
            Some(Op::CfbFold) if !operands[1..].iter().any(is_it) => {
                Some(vec![first_argument(operands.len() - 1)?])
            }
            Some(Op::CfbMap) => {
                let (mut place, mut elements) = (0, Vec::new());
                for operand in &operands {
                    if is_it(operand) {
                        elements.push(first_argument(place)?);
                    }
                    let element = array_element(operand.r#type());
                    place += element.map_or(0, |element| flatten(element).len());
                }
                Some(elements)
            }
            _ => None,
        }
    }
}
