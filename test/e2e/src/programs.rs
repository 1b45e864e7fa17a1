//! Random programs: well typed, of every kind of type and of most of what the language has.
//!
//! A program is written by type: for each type there is a list of forms, whose parts are written the
//! same way. Scalars, tensors of three element types with dims of the program, of one, and of the
//! instance; tuples; arrays; types with tensors inside; recursion over trees and over integers; closures,
//! loops and branches that integers, lengths or tensors decide.
//!
//! Compiled code computes in f32 and the oracle in f64, so where both are compared, values stay within a
//! few units (what a function returns or a loop carries goes through `tanh`) and a tensor of floats only
//! decides where both ways give the same. Integers are exact, and may be at their bounds. A program whose
//! [`Traits::extreme`] is set has none of these precautions: it is only compared with itself.
//!
//! Choices that are 0 give the simplest form of everything, so a program is made smaller by making its
//! choices smaller ([`Rng::replay`]).

pub mod chains;
mod control;
mod scalars;
mod structures;
mod tensors;
mod types;

use crate::rng::Rng;
use types::{Elem, Shape, Ty, shape_text};

/// Lengths of the program's dims: one, and ends of tiles and vectors.
const WIDTHS: [u64; 8] = [1, 2, 3, 5, 8, 13, 16, 33];

/// Lengths of instance dims.
pub const LENGTHS: [usize; 6] = [0, 1, 2, 3, 7, 28];

/// What is in a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traits {
    /// Recursion over a declared type.
    pub trees: bool,
    /// Tensors with instance dims.
    pub ragged: bool,
    /// Tensors decide branches and loops.
    pub decisions: bool,
    /// Integers reach their bounds.
    pub integers: bool,
    /// Numbers that are not finite, and nothing that keeps values small.
    pub extreme: bool,
    /// Indices may be out of range.
    pub errors: bool,
    /// Values are shown.
    pub debug: bool,
}

impl Traits {
    /// The names of those that are set.
    pub fn names(self) -> Vec<&'static str> {
        let all = [
            (self.trees, "trees"),
            (self.ragged, "ragged"),
            (self.decisions, "decisions"),
            (self.integers, "integers"),
            (self.extreme, "extreme"),
            (self.errors, "errors"),
            (self.debug, "debug"),
        ];
        let names = all.iter().filter(|(is_set, _)| *is_set);
        names.map(|(_, name)| *name).collect()
    }
}

/// The text of a program, and the numbers for its dims.
#[derive(Clone, Debug)]
pub struct RandomProgram {
    /// The program.
    pub text: String,
    /// The sizes of its dims, as `--dim` takes them.
    pub dims: Vec<(&'static str, u64)>,
    /// What the instance dims are to be chosen from.
    pub lengths: &'static [usize],
    /// What it was to have.
    pub traits: Traits,
}

impl RandomProgram {
    /// A program with traits chosen at random.
    pub fn new(rng: &mut Rng) -> RandomProgram {
        let mut likely = |n| rng.below(n) == n - 1;
        let mut traits = Traits {
            trees: likely(2),
            ragged: likely(2),
            decisions: likely(3),
            integers: likely(3),
            extreme: likely(5),
            errors: likely(6),
            debug: likely(6),
        };
        // What nothing uses is computed as far as it is shown: which errors that meets is left open.
        traits.debug &= !traits.errors;
        RandomProgram::with(traits, rng)
    }

    /// A program with given traits.
    pub fn with(traits: Traits, rng: &mut Rng) -> RandomProgram {
        let dims = vec![("A", *rng.pick(&WIDTHS)), ("B", *rng.pick(&WIDTHS))];
        let text = Writer {
            rng,
            traits,
            params: Vec::new(),
            functions: Vec::new(),
            names: 0,
        }
        .program();
        RandomProgram {
            text,
            dims,
            lengths: &LENGTHS,
            traits,
        }
    }
}

/// A value that an expression may use.
type Scope = Vec<(String, Ty)>;

/// A function that is called with what its arguments' types say.
#[derive(Clone)]
struct Function {
    name: String,
    arguments: Vec<Ty>,
    result: Ty,
}

struct Writer<'r> {
    rng: &'r mut Rng,
    traits: Traits,
    params: Vec<String>,
    /// Those that may be called: written already.
    functions: Vec<Function>,
    names: usize,
}

/// How deep expressions nest.
const DEPTH: usize = 3;

impl Writer<'_> {
    fn program(mut self) -> String {
        let mut functions = String::new();
        for _ in 0..self.rng.below(3) {
            functions += &self.function();
        }
        let main = self.main();
        let mut text = "dim A, B\n\nparam start: f32[A]  param other: f32[B]\n".to_owned();
        for param in &self.params {
            text += &format!("param {param}\n");
        }
        text += "\ntype Box = Nothing | Box(f32[A], i32) | Pair((f32[B], bool), Box)\n";
        text += "type Tree = Leaf(i32) | Node(Tree, Tree) | Many(f32[A], [Tree])\n\n";
        for (name, definition) in [
            (
                tensors::ANY_LENGTH,
                "(x: f32[a]) -> f32[a] { tanh(x + zeros([a])) + 0.125 * f32(iota([a], 0) % 3) }",
            ),
            (
                tensors::ANY_ROWS,
                "(x: f32[a, b]) -> f32[b] { sum(softmax(x, axis = 0) * x, axis = 0) }",
            ),
        ] {
            if functions.contains(name) || main.contains(name) {
                text += &format!("fn {name}{definition}\n\n");
            }
        }
        text + &functions + &main
    }

    /// A function that recurs over a tree or an integer, or does not.
    fn function(&mut self) -> String {
        let name = format!("f{}", self.functions.len());
        let result = self.ty(1);
        let mut arguments = self.lengths_arguments();
        let mut scope = arguments.clone();
        let kind = self.rng.below(if self.traits.trees { 4 } else { 2 });
        let first = match kind {
            0 => ("z".to_owned(), self.ty(1)),
            1 => ("k".to_owned(), Ty::I32),
            _ => ("t".to_owned(), Ty::Tree),
        };
        arguments.insert(0, first.clone());
        let types = arguments.iter().map(|(_, ty)| ty.clone()).collect();
        let itself = Function {
            name: name.clone(),
            arguments: types,
            result: result.clone(),
        };
        let body = match kind {
            0 => {
                scope.push(first);
                self.body(&result, &mut scope)
            }
            1 => self.countdown(&itself, &mut scope),
            _ => self.over_tree(&itself, &mut scope),
        };
        self.functions.push(itself);
        let arguments: Vec<String> = arguments
            .iter()
            .map(|(name, ty)| format!("{name}: {ty}"))
            .collect();
        format!(
            "fn {name}({}) -> {result} {{\n{body}}}\n\n",
            arguments.join(", ")
        )
    }

    fn main(&mut self) -> String {
        let mut arguments = self.lengths_arguments();
        for index in 0..1 + self.rng.below(3) {
            let ty = self.ty(1);
            arguments.push((format!("a{index}"), ty));
        }
        if self.traits.trees {
            arguments.push(("t".to_owned(), Ty::Tree));
        }
        let mut scope = arguments.clone();
        let mut body = String::new();
        for function in self.functions.clone() {
            let (name, call) = (self.name(), self.call(&function, &scope, 1));
            body += &format!("  let {name} = {call};\n");
            scope.push((name, function.result));
        }
        let results = Ty::Tuple(vec![self.ty(0), self.ty(1)]);
        body += &self.body(&results, &mut scope);
        let arguments: Vec<String> = arguments
            .iter()
            .map(|(name, ty)| format!("{name}: {ty}"))
            .collect();
        format!(
            "fn main({}) -> {results} {{\n{body}}}\n",
            arguments.join(", ")
        )
    }

    /// What binds the instance dims.
    fn lengths_arguments(&self) -> Scope {
        match self.traits.ragged {
            true => vec![
                ("x".to_owned(), Ty::f32(&["n", "A"])),
                ("y".to_owned(), Ty::f32(&["m", "A"])),
            ],
            false => Vec::new(),
        }
    }

    /// Some bindings, and a result that is small.
    fn body(&mut self, result: &Ty, scope: &mut Scope) -> String {
        let bindings = self.lets(scope);
        format!("{bindings}  {}\n", self.bounded(result, scope, DEPTH))
    }

    fn lets(&mut self, scope: &mut Scope) -> String {
        let mut text = String::new();
        for _ in 0..self.rng.below(3) {
            let ty = self.ty(1);
            let (name, value) = (self.name(), self.expr(&ty, scope, DEPTH - 1));
            text += &format!("  let {name} = {value};\n");
            scope.push((name, ty));
        }
        text
    }

    /// A type; what has parts has them of types `depth` less deep.
    fn ty(&mut self, depth: usize) -> Ty {
        let choices = if depth == 0 { 10 } else { 14 };
        match self.rng.below(choices) {
            0 => Ty::f32(&["A"]),
            1 => Ty::F32,
            2 => Ty::I32,
            3 => Ty::Bool,
            4 => Ty::Tensor(Elem::I32, self.shape()),
            5 => Ty::Tensor(Elem::Bool, self.shape()),
            6..=8 => Ty::Tensor(Elem::F32, self.shape()),
            9 => Ty::Str,
            10 => Ty::Tuple(vec![self.ty(depth - 1), self.ty(depth - 1)]),
            11 => Ty::Array(Box::new(self.fixed_ty())),
            _ => Ty::Box,
        }
    }

    /// A type of elements of an array: the same shape in all of them.
    fn fixed_ty(&mut self) -> Ty {
        match self.rng.below(6) {
            0 => Ty::f32(&["A"]),
            1 => Ty::I32,
            2 => Ty::F32,
            3 => Ty::Tuple(vec![Ty::f32(&["B"]), Ty::I32]),
            4 => Ty::Str,
            _ => Ty::f32(&["B", "1"]),
        }
    }

    fn shape(&mut self) -> Shape {
        let shapes: &[&[&'static str]] = match self.traits.ragged {
            false => &[
                &["A"],
                &["B"],
                &["A", "B"],
                &["1", "A"],
                &["B", "1"],
                &["3"],
            ],
            true => &[
                &["n", "A"],
                &["n"],
                &["m", "B"],
                &["n", "m"],
                &["A"],
                &["n", "1"],
                &["m", "m"],
            ],
        };
        self.rng.pick(shapes).to_vec()
    }

    /// An expression of a type, nested no deeper than `depth`.
    fn expr(&mut self, ty: &Ty, scope: &Scope, depth: usize) -> String {
        if depth == 0 || self.rng.below(6) == 0 {
            return self.leaf(ty, scope);
        }
        if self.rng.below(4) == 3 {
            return self.control(ty, scope, depth);
        }
        match ty {
            Ty::F32 => self.number(scope, depth),
            Ty::I32 => self.integer(scope, depth),
            Ty::Bool => self.truth(scope, depth),
            Ty::Tensor(Elem::F32, shape) => self.floats(shape, scope, depth),
            Ty::Tensor(Elem::I32, shape) => self.integers(shape, scope, depth),
            Ty::Tensor(Elem::Bool, shape) => self.truths(shape, scope, depth),
            _ => self.structure(ty, scope, depth),
        }
    }

    /// What has a type with next to no computation.
    fn leaf(&mut self, ty: &Ty, scope: &Scope) -> String {
        let fitting: Vec<&String> = scope
            .iter()
            .filter(|(_, t)| t == ty)
            .map(|(name, _)| name)
            .collect();
        if !fitting.is_empty() {
            return (*self.rng.pick(&fitting)).clone();
        }
        match ty {
            Ty::F32 => "0.25".to_owned(),
            Ty::I32 => self.literal(),
            Ty::Bool => "true".to_owned(),
            Ty::Str => format!(
                "\"{}\"",
                self.rng.pick(&["", "a", "seven b", "eight by", "é"])
            ),
            Ty::Tensor(Elem::F32, shape) => self.plain_floats(shape, scope),
            Ty::Tensor(Elem::I32, shape) => format!("iota({}, 0)", shape_text(shape)),
            Ty::Tensor(Elem::Bool, shape) => format!("(iota({}, 0) > 0)", shape_text(shape)),
            _ => self.plain_structure(ty, scope),
        }
    }

    /// An expression whose floats are of -1 to 1, unless they may be anything.
    fn bounded(&mut self, ty: &Ty, scope: &Scope, depth: usize) -> String {
        match ty {
            Ty::F32 | Ty::Tensor(Elem::F32, _) if !self.traits.extreme => {
                format!("tanh({})", self.expr(ty, scope, depth))
            }
            Ty::Tuple(parts) => {
                let parts: Vec<String> = parts
                    .iter()
                    .map(|part| self.bounded(part, scope, depth))
                    .collect();
                format!("({})", parts.join(", "))
            }
            Ty::Array(_) | Ty::Box | Ty::Tree => self.structure(ty, scope, depth.max(1)),
            _ => self.expr(ty, scope, depth),
        }
    }

    /// A new parameter of floats.
    fn param(&mut self, shape: &[&str]) -> String {
        let name = format!("p{}", self.params.len());
        self.params
            .push(format!("{name}: f32[{}]", shape.join(", ")));
        name
    }

    fn name(&mut self) -> String {
        self.names += 1;
        format!("v{}", self.names)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use cohort_frontend::{Sources, check};

    use super::*;

    #[test]
    fn every_program_is_well_typed() {
        for seed in 0..300 {
            let program = RandomProgram::new(&mut Rng::new(seed));
            let mut sources = Sources::new();
            let file = sources.add("random.coh", program.text.clone());
            let dims: BTreeMap<String, u64> = program
                .dims
                .iter()
                .map(|(name, size)| (name.to_string(), *size))
                .collect();
            let bound =
                check(&sources, file).and_then(|checked| checked.bind(&BTreeMap::new(), &dims));
            if let Err(diagnostics) = bound {
                let mut text = Vec::new();
                // Writing to memory does not fail.
                let _ = cohort_frontend::render(&diagnostics, &sources, &mut text, false);
                panic!(
                    "seed {seed}\n{}\n{}",
                    String::from_utf8_lossy(&text),
                    program.text
                );
            }
        }
    }

    #[test]
    fn choices_of_nothing_give_a_simple_program() {
        let program = RandomProgram::new(&mut Rng::replay(vec![]));
        assert_eq!(program.traits, Traits::default());
        assert!(program.text.len() < 400, "{}", program.text);
    }
}
