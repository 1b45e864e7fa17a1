//! Every built-in and operator on operands of every element type, rank and kind of dim, as small
//! programs.
//!
//! A *use* is one expression whose operands have names; [`tables`] lists them by the language's
//! rules. A program has several uses as its outputs, since compiling takes the time. The same table
//! is read once for each [`Variant`]: what is an operand (an argument, a parameter, a value that was
//! computed) and what happens to the result.

mod products;
mod tables;

use std::collections::BTreeSet;

/// Program dims and their lengths.
pub const DIMS: [(&str, u64); 4] = [("D", 3), ("E", 2), ("F", 4), ("G", 5)];

/// What the instance dims of an instance are chosen from.
pub const LENGTHS: [usize; 4] = [0, 1, 3, 6];

/// The type of an operand's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Elem {
    /// `f32`
    F32,
    /// `i32`
    I32,
    /// `bool`
    Bool,
}

use Elem::{Bool, F32, I32};

impl Elem {
    fn name(self) -> &'static str {
        match self {
            F32 => "f32",
            I32 => "i32",
            Bool => "bool",
        }
    }
}

/// The dims of a tensor: program dims in capitals, instance dims in small letters, and numbers.
pub type Shape = Vec<String>;

/// `"n D 1"`.
fn shape(text: &str) -> Shape {
    text.split_whitespace().map(str::to_owned).collect()
}

fn is_instance(dim: &str) -> bool {
    dim.starts_with(char::is_lowercase)
}

fn type_of(elem: Elem, shape: &[String]) -> String {
    match shape {
        [] => elem.name().to_owned(),
        _ => format!("{}[{}]", elem.name(), shape.join(", ")),
    }
}

/// What an operand is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// An argument of the entry function.
    Argument,
    /// An argument where a dim differs by instance.
    Parameter,
    /// The result of another operation.
    Computed,
}

/// Where an operation's operands come from, and where its result goes.
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    /// Of the operands in turn.
    places: &'static [Place],
    /// Whether more is computed of the result.
    goes_on: bool,
}

const fn variant(places: &'static [Place], goes_on: bool) -> Variant {
    Variant { places, goes_on }
}

/// Every way in which each operation is tried.
pub const VARIANTS: [Variant; 6] = [
    variant(&[Place::Argument], false),
    variant(&[Place::Argument], true),
    variant(&[Place::Computed], true),
    variant(&[Place::Computed, Place::Argument], false),
    variant(&[Place::Parameter], false),
    variant(&[Place::Argument, Place::Parameter], true),
];

/// One expression.
#[derive(Clone, Debug)]
pub struct Use {
    /// The expression.
    pub text: String,
    /// The type of its value.
    pub result: String,
    /// `name: type`.
    arguments: BTreeSet<String>,
    parameters: BTreeSet<String>,
}

/// Every use, each once.
pub fn all() -> Vec<Use> {
    let mut seen = BTreeSet::new();
    let mut uses = Vec::new();
    for variant in VARIANTS {
        let mut table = Table::new(variant);
        tables::fill(&mut table);
        products::fill(&mut table);
        let of_variant = table.uses.into_iter();
        uses.extend(of_variant.filter(|one| seen.insert(one.text.clone())));
    }
    uses
}

/// A program of which each use is an output.
pub fn program(uses: &[&Use]) -> String {
    let all = |of: fn(&Use) -> &BTreeSet<String>| -> BTreeSet<String> {
        uses.iter().flat_map(|one| of(one).clone()).collect()
    };
    let parameters: String = all(|one| &one.parameters)
        .into_iter()
        .map(|parameter| format!("param {parameter}\n"))
        .collect();
    let arguments: Vec<String> = all(|one| &one.arguments).into_iter().collect();
    let list = |part: fn(&Use) -> &String| -> String {
        let parts: Vec<&str> = uses.iter().map(|one| part(one).as_str()).collect();
        parts.join(",\n    ")
    };
    format!(
        "dim D, E, F, G\n{parameters}param every: f32[D, E, F, G]\nfn main(start: f32[D], {}) -> (f32[D],\n    {}\n) {{ (start,\n    {}\n) }}\n",
        arguments.join(", "),
        list(|one| &one.result),
        list(|one| &one.text)
    )
}

/// Collects uses of one variant.
struct Table {
    variant: Variant,
    uses: Vec<Use>,
    /// Of the use that is being written.
    arguments: BTreeSet<String>,
    parameters: BTreeSet<String>,
    operands: usize,
}

impl Table {
    fn new(variant: Variant) -> Table {
        Table {
            variant,
            uses: Vec::new(),
            arguments: BTreeSet::new(),
            parameters: BTreeSet::new(),
            operands: 0,
        }
    }

    /// An operand of the use that is being written.
    fn operand(&mut self, elem: Elem, shape: &[String]) -> String {
        let places = self.variant.places;
        let place = places[self.operands % places.len()];
        self.operand_in(place, elem, shape)
    }

    fn operand_in(&mut self, place: Place, elem: Elem, shape: &[String]) -> String {
        let letter = &elem.name()[..1];
        let name = format!(
            "{letter}{}_{}",
            self.operands,
            shape.concat().replace('*', "x")
        );
        self.operands += 1;
        let declared = |name: &str| format!("{name}: {}", type_of(elem, shape));
        let is_static = !shape.iter().any(|dim| is_instance(dim));
        match place {
            Place::Parameter if is_static => {
                let name = format!("p_{name}");
                self.parameters.insert(declared(&name));
                name
            }
            Place::Computed => {
                self.arguments.insert(declared(&name));
                match elem {
                    F32 => format!("({name} * 2.0)"),
                    I32 => format!("({name} - 2)"),
                    Bool => format!("(!{name})"),
                }
            }
            _ => {
                self.arguments.insert(declared(&name));
                name
            }
        }
    }

    /// Ends a use: what it is written as, and its type.
    fn end(&mut self, text: String, elem: Elem, shape: &[String]) {
        let text = match (self.variant.goes_on, elem) {
            (false, _) => text,
            (true, F32) => format!("(0.5 - ({text}))"),
            (true, I32) => format!("(7 - ({text}))"),
            (true, Bool) => format!("(!({text}))"),
        };
        self.end_as(text, type_of(elem, shape));
    }

    /// Ends a use of any type.
    fn end_as(&mut self, text: String, result: String) {
        self.operands = 0;
        self.uses.push(Use {
            text,
            result,
            arguments: std::mem::take(&mut self.arguments),
            parameters: std::mem::take(&mut self.parameters),
        });
    }
}
