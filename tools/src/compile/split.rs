//! A module of the `llvm` dialect in parts that LLVM can compile side by side.
//!
//! Which part a function goes to depends on the module alone, never on the machine that compiles, so that equal
//! programs give equal artifacts. Functions that LLVM could inline stay with those that call them: calls between
//! parts are of functions marked `no_inline`, so that nothing is slower for it. Constants are in every part that
//! reads them. The functions of a library are a part of their own, which is the same in all programs for a target.

use std::collections::{BTreeMap, BTreeSet};

use cohort_dialects::attributes::{Linkage, linkage};
use cohort_dialects::builder::Op;
use cohort_dialects::keys::{self, Key};
use cohort_dialects::marks::LIBRARY;
use cohort_passes::support::ir::{
    clone_op, name_attribute, nested_ops, remove_attribute, set_attribute, take_region, text_of,
    top_level,
};
use melior::{
    Context,
    ir::{
        BlockLike, Location, Module, Operation, OperationRef, attribute::FlatSymbolRefAttribute,
        operation::OperationLike,
    },
};

/// Parts are no smaller than this many operations: each costs LLVM some milliseconds of its own.
const LEAST_OPERATIONS: usize = 250;
/// The most parts that a module is split into.
const MOST_PARTS: usize = 4;

/// A part of a module.
pub struct Part<'c> {
    pub module: Module<'c>,
    /// Whether it is a library's, and follows from the target alone.
    pub is_library: bool,
}

/// The parts of a module; the first has the function `entry`, and what nothing refers to. One where it is small, or
/// holds anything but functions and globals.
pub fn split<'c>(context: &'c Context, module: &Module<'c>, entry: &str) -> Vec<Part<'c>> {
    let symbols: Option<Vec<Symbol<'c>>> = top_level(module.as_operation())
        .into_iter()
        .map(|operation| Symbol::new(context, operation))
        .collect();
    let program = symbols.and_then(|symbols| Program::new(symbols, entry));
    let homes = program.as_ref().map_or(vec![], Program::distribute);
    match (program, homes.iter().max()) {
        (Some(program), Some(last)) if *last > 0 => (0..=*last)
            .map(|part| program.part(context, module, &homes, part))
            .collect(),
        _ => {
            let whole = empty_like(context, module);
            for operation in top_level(module.as_operation()) {
                whole.body().append_operation(clone_op(operation));
            }
            vec![Part {
                module: whole,
                is_library: false,
            }]
        }
    }
}

/// How a symbol relates to the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// Of a function that the runtime offers.
    Declaration,
    /// A function that nobody inlines.
    Apart,
    /// A function that LLVM may inline, or a global that can change.
    Together,
    /// A constant that no other module can see, and that refers to nothing.
    Constant,
}

/// A function or a global.
struct Symbol<'c> {
    name: String,
    role: Role,
    operation: OperationRef<'c, 'c>,
    /// How many operations it has.
    operations: usize,
    library: Option<String>,
    refers_to: BTreeSet<String>,
}

impl<'c> Symbol<'c> {
    fn new(context: &'c Context, operation: OperationRef<'c, 'c>) -> Option<Symbol<'c>> {
        let nested = nested_ops(operation);
        let is_hidden = [Linkage::Internal, Linkage::Private]
            .into_iter()
            .any(|hidden| {
                operation.attribute(&keys::LINKAGE).ok() == Some(linkage(context, hidden))
            });
        let of_all = nested.iter().chain([&operation]);
        let refers_to: BTreeSet<String> = of_all
            .flat_map(|operation| operation.attributes())
            .filter_map(|(_, attribute)| FlatSymbolRefAttribute::try_from(attribute).ok())
            .filter_map(|reference| text_of(reference.into()))
            .collect();
        let is_constant = operation.has_attribute(&keys::CONSTANT) && refers_to.is_empty();
        let role = match Op::of(operation) {
            Some(Op::LlvmFunc) if nested.is_empty() => Role::Declaration,
            Some(Op::LlvmFunc) if operation.has_attribute(&keys::NO_INLINE) => Role::Apart,
            Some(Op::LlvmFunc) => Role::Together,
            Some(Op::LlvmMlirGlobal) if is_hidden && is_constant => Role::Constant,
            Some(Op::LlvmMlirGlobal) => Role::Together,
            _ => return None,
        };
        Some(Symbol {
            name: name_attribute(operation, keys::SYM_NAME)?,
            role,
            operation,
            operations: nested.len(),
            library: name_attribute(operation, LIBRARY),
            refers_to,
        })
    }
}

/// All symbols, and which of them belong together.
struct Program<'c> {
    symbols: Vec<Symbol<'c>>,
    /// Which symbols each refers to, and which refer to it.
    references: Vec<Vec<usize>>,
    users: Vec<Vec<usize>>,
    /// The first symbol of each one's unit.
    units: Vec<usize>,
    entry: usize,
}

impl<'c> Program<'c> {
    fn new(symbols: Vec<Symbol<'c>>, entry: &str) -> Option<Program<'c>> {
        let names = symbols.iter().enumerate();
        let numbers: BTreeMap<&str, usize> = names
            .map(|(number, symbol)| (symbol.name.as_str(), number))
            .collect();
        let entry = *numbers.get(entry)?;
        let number_of = |name: &String| numbers.get(name.as_str()).copied();
        let references: Vec<Vec<usize>> = (symbols.iter())
            .map(|symbol| symbol.refers_to.iter().filter_map(number_of).collect())
            .collect();
        let mut users = vec![vec![]; symbols.len()];
        for (from, to) in references.iter().enumerate() {
            to.iter().for_each(|to| users[*to].push(from));
        }
        let mut units: Vec<usize> = (0..symbols.len()).collect();
        for (number, symbol) in symbols.iter().enumerate() {
            if symbol.role != Role::Together {
                continue;
            }
            users[number]
                .iter()
                .for_each(|user| join(&mut units, *user, number));
            let is_function = Op::LlvmFunc.is(symbol.operation);
            if !is_function && users[number].is_empty() {
                join(&mut units, entry, number);
            }
        }
        for number in 0..units.len() {
            units[number] = root(&mut units, number);
        }
        Some(Program {
            symbols,
            references,
            users,
            units,
            entry,
        })
    }

    /// Whether a symbol is code, or a global, of one part alone.
    fn is_of_one_part(&self, number: usize) -> bool {
        matches!(self.symbols[number].role, Role::Apart | Role::Together)
    }

    /// The part of each symbol: the largest units first, each to the part that has the least; libraries behind them.
    fn distribute(&self) -> Vec<usize> {
        let mut sizes: BTreeMap<usize, usize> = BTreeMap::new();
        for (number, unit) in self.units.iter().enumerate() {
            if self.is_of_one_part(number) && self.symbols[number].library.is_none() {
                *sizes.entry(*unit).or_default() += self.symbols[number].operations;
            }
        }
        let total: usize = sizes.values().sum();
        let count = (total / LEAST_OPERATIONS).clamp(1, MOST_PARTS);
        let mut loads = vec![0; count];
        let entry = self.units[self.entry];
        loads[0] = sizes.remove(&entry).unwrap_or_default();
        let mut parts = BTreeMap::from([(entry, 0)]);
        let mut units: Vec<(usize, usize)> = sizes.into_iter().collect();
        units.sort_by_key(|(_, size)| std::cmp::Reverse(*size));
        for (unit, size) in units {
            let least = (0..count).min_by_key(|part| loads[*part]).unwrap_or(0);
            loads[least] += size;
            parts.insert(unit, least);
        }
        let libraries: BTreeSet<&String> = (self.symbols.iter())
            .filter_map(|symbol| symbol.library.as_ref())
            .collect();
        let homes = self.symbols.iter().zip(&self.units).map(|(symbol, unit)| {
            let library = symbol.library.as_ref();
            let library = library.and_then(|own| libraries.iter().position(|name| *name == own));
            match library {
                Some(library) => count + library,
                None => parts.get(unit).copied().unwrap_or(0),
            }
        });
        homes.collect()
    }

    /// A module of the symbols of one part, with all that they refer to.
    fn part(
        &self,
        context: &'c Context,
        module: &Module<'c>,
        homes: &[usize],
        part: usize,
    ) -> Part<'c> {
        let is_member = |number: usize| homes[number] == part && self.is_of_one_part(number);
        let mut needed: BTreeSet<usize> = (0..homes.len())
            .filter(|number| is_member(*number))
            .collect();
        let mut rest: Vec<usize> = needed.iter().copied().collect();
        while let Some(number) = rest.pop() {
            let is_whole = is_member(number) || self.symbols[number].role == Role::Constant;
            for to in &self.references[number] {
                if is_whole && needed.insert(*to) {
                    rest.push(*to);
                }
            }
        }
        let is_seen = |number: usize| {
            let mut users = self.users[number].iter();
            users.any(|user| homes[*user] != part && self.is_of_one_part(*user))
        };
        let is_library = (0..homes.len())
            .any(|number| is_member(number) && self.symbols[number].library.is_some());
        // What the module says is of the program.
        let whole = match is_library {
            true => Module::new(Location::unknown(context)),
            false => empty_like(context, module),
        };
        for number in needed {
            let symbol = &self.symbols[number];
            let copy = clone_op(symbol.operation);
            let is_whole = is_member(number) || symbol.role == Role::Constant;
            if !is_whole {
                drop(take_region(reference(&copy), 0));
            }
            // Which of a library's functions a program calls must make no difference.
            let is_offered =
                is_library && self.users[number].iter().all(|user| homes[*user] != part);
            let is_shared =
                !is_whole || (symbol.role == Role::Apart && (is_offered || is_seen(number)));
            remove_attribute(reference(&copy), LIBRARY);
            if is_shared {
                let external = linkage(context, Linkage::External);
                set_attribute(reference(&copy), keys::LINKAGE, external);
            }
            whole.body().append_operation(copy);
        }
        Part {
            module: whole,
            is_library,
        }
    }
}

/// The first of a unit, which each symbol leads to.
fn root(units: &mut [usize], mut number: usize) -> usize {
    while units[number] != number {
        units[number] = units[units[number]];
        number = units[number];
    }
    number
}

fn join(units: &mut [usize], a: usize, b: usize) {
    let (a, b) = (root(units, a), root(units, b));
    units[a.max(b)] = a.min(b);
}

fn reference<'c, 'a>(operation: &'a Operation<'c>) -> OperationRef<'c, 'a> {
    // SAFETY: the operation is alive as long as it is borrowed.
    unsafe { OperationRef::from_raw(operation.to_raw()) }
}

/// An empty module with the attributes of another.
fn empty_like<'c>(context: &'c Context, module: &Module<'c>) -> Module<'c> {
    let empty = Module::new(Location::unknown(context));
    let to = empty.as_operation();
    for (name, attribute) in module.as_operation().attributes() {
        set_attribute(to, Key::of(name), attribute);
    }
    empty
}
