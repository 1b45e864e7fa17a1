//! Gives every program dim its number, from the shapes of the weights and from the command line.

use std::collections::BTreeMap;

use crate::check::items::Param;
use crate::check::{Checked, in_order, plural};
use crate::diagnostic::Diagnostic;
use crate::dims::{Atom, Poly};
use crate::mono;
use crate::program::{self, Elem, Program, Span};
use crate::stack::with_deep_stack;
use crate::stage;
use crate::stored::are_own;
use crate::suggest::nearest;
use crate::types::elem_name;

/// The largest dim that is accepted: lengths are i32 in the language.
pub const MAX_DIM: u64 = i32::MAX as u64;

/// How many elements the known dims of a tensor make at the most: those of f32 take 1 TiB.
pub const MAX_ELEMENTS: u128 = 1 << 38;

/// A dim's number and how it came to have it.
#[derive(Clone, Debug)]
struct Bound {
    value: u64,
    origin: Origin,
}

#[derive(Clone, Debug)]
enum Origin {
    CommandLine,
    /// The parameter's name, the axis, and where the parameter is declared.
    Weight(String, usize, Span),
}

impl Checked {
    /// Binds the program's dims, checks every parameter's shape and makes the program monomorphic.
    ///
    /// # Errors
    ///
    /// Dims that nothing binds or that two weights contradict, weights of another shape or type
    /// than declared, and what the checker could not know before dims had numbers.
    pub fn bind(
        &self,
        weights: &BTreeMap<String, (Elem, Vec<u64>)>,
        dims: &BTreeMap<String, u64>,
    ) -> Result<Program, Vec<Diagnostic>> {
        with_deep_stack(|| self.bind_here(weights, dims, false))
    }

    /// As [`Checked::bind`], of a program whose gradients are wanted: what the entry takes and gives of
    /// floats are tensors.
    ///
    /// # Errors
    ///
    /// Those of [`Checked::bind`].
    pub fn bind_differentiated(
        &self,
        weights: &BTreeMap<String, (Elem, Vec<u64>)>,
        dims: &BTreeMap<String, u64>,
    ) -> Result<Program, Vec<Diagnostic>> {
        with_deep_stack(|| self.bind_here(weights, dims, true))
    }

    fn bind_here(
        &self,
        weights: &BTreeMap<String, (Elem, Vec<u64>)>,
        dims: &BTreeMap<String, u64>,
        is_differentiated: bool,
    ) -> Result<Program, Vec<Diagnostic>> {
        let mut binder = Binder {
            checked: self,
            bound: vec![None; self.items.dims.len()],
            diagnostics: Vec::new(),
        };
        binder.command_line(dims);
        let pairs: Vec<(&Param, Vec<u64>)> = binder.compare_ranks(weights);
        binder.solve(&pairs);
        binder.compare(&pairs);
        let fine = binder.diagnostics.is_empty();
        binder.report_unbound(fine, weights);
        if !binder.diagnostics.is_empty() {
            return Err(in_order(binder.diagnostics));
        }
        let values: Vec<u64> = binder
            .bound
            .iter()
            .map(|bound| bound.as_ref().map_or(0, |b| b.value))
            .collect();
        let program = mono::monomorphise(self, &values).map_err(in_order)?;
        stage::stage(program, is_differentiated).map_err(in_order)
    }
}

struct Binder<'a> {
    checked: &'a Checked,
    bound: Vec<Option<Bound>>,
    diagnostics: Vec<Diagnostic>,
}

impl<'a> Binder<'a> {
    fn show(&self, poly: &Poly) -> String {
        poly.display(&|atom| self.checked.items.atom_name(&[], atom))
    }

    fn declared(&self, param: &Param) -> String {
        let dims: Vec<String> = param.shape.iter().map(|dim| self.show(dim)).collect();
        format!("{}[{}]", elem_name(param.elem), dims.join(", "))
    }

    fn command_line(&mut self, dims: &BTreeMap<String, u64>) {
        for (name, value) in dims {
            let declared = &self.checked.items.dims;
            let Some(index) = declared.iter().position(|dim| dim.name == *name) else {
                let message = format!("the program has no dim `{name}`");
                let known = declared.iter().map(|dim| dim.name.as_str());
                let diagnostic = Diagnostic::error("E0705", message);
                self.diagnostics.push(match nearest(name, known.clone()) {
                    Some(near) => diagnostic.note(format!("did you mean `{near}`?")),
                    None if declared.is_empty() => diagnostic.note("it has none"),
                    None => diagnostic.note(format!(
                        "its dims are {}",
                        known.collect::<Vec<_>>().join(", ")
                    )),
                });
                continue;
            };
            if *value == 0 || *value > MAX_DIM {
                self.diagnostics.push(
                    Diagnostic::error("E0706", format!("`{name}` cannot be {value}"))
                        .at(&declared[index].span, "declared here")
                        .note(format!("a dim is a number from 1 to {MAX_DIM}")),
                );
                continue;
            }
            self.bound[index] = Some(Bound {
                value: *value,
                origin: Origin::CommandLine,
            });
        }
    }

    /// What the weights have of a parameter: by its own name, or by those of its `from`.
    fn find(
        &mut self,
        param: &Param,
        weights: &BTreeMap<String, (Elem, Vec<u64>)>,
        own: bool,
    ) -> Option<(Elem, Vec<u64>)> {
        let Some(stored) = param.stored.as_ref().filter(|_| !own) else {
            return weights.get(&param.name.name).cloned();
        };
        match stored.find(weights) {
            Ok(found) => found,
            Err(problem) => {
                let message = format!("the weights have no `{}` as declared", param.name.name);
                self.diagnostics.push(
                    Diagnostic::error("E0702", message)
                        .at(&param.name.span, format!("declared from {stored}"))
                        .note(problem),
                );
                None
            }
        }
    }

    /// The parameters that have a weight of the declared type and rank.
    fn compare_ranks(
        &mut self,
        weights: &BTreeMap<String, (Elem, Vec<u64>)>,
    ) -> Vec<(&'a Param, Vec<u64>)> {
        let mut pairs = Vec::new();
        let params = &self.checked.items.params;
        let names = params.iter();
        let names = names.map(|param| (param.name.name.as_str(), param.stored.as_ref()));
        let own = are_own(names, weights);
        for param in params {
            let Some((elem, shape)) = self.find(param, weights, own) else {
                continue;
            };
            let message = if elem != param.elem {
                let problem = format!("holds {}", elem_name(elem));
                Some(("E0703", problem))
            } else if shape.len() != param.shape.len() {
                let dims = plural(shape.len(), "dim");
                Some(("E0702", format!("has {dims}, not {}", param.shape.len())))
            } else {
                None
            };
            let Some((code, problem)) = message else {
                pairs.push((param, shape));
                continue;
            };
            let (declared, found) = (self.declared(param), shown_shape(elem, &shape));
            let place = format!("declared `{declared}`, found `{found}`");
            let message = format!("the weight `{}` {problem}", param.name.name);
            let diagnostic = Diagnostic::error(code, message).at(&param.name.span, place);
            self.diagnostics.push(with_origin(diagnostic, param));
        }
        pairs
    }

    fn substitute(&self, poly: &Poly) -> Option<Poly> {
        poly.substitute(&|atom| match atom {
            Atom::Program(index) => self
                .bound
                .get(index)?
                .as_ref()
                .map(|bound| Poly::constant(bound.value)),
            _ => None,
        })
    }

    /// Binds dims from axes with one unknown until no more can be learnt.
    fn solve(&mut self, pairs: &[(&Param, Vec<u64>)]) {
        let mut learnt = true;
        while learnt {
            learnt = false;
            for (param, shape) in pairs {
                for (axis, (dim, size)) in param.shape.iter().zip(shape.iter()).enumerate() {
                    let equation = self
                        .substitute(dim)
                        .and_then(|dim| dim.subtract(&Poly::constant(*size)));
                    let solved = equation.and_then(|equation| equation.solve(&|_| true));
                    let Some((Atom::Program(index), solution)) = solved else {
                        continue;
                    };
                    let value = solution.as_constant().and_then(|ratio| ratio.whole());
                    let value = value.and_then(|value| u64::try_from(value).ok());
                    let Some(value) = value.filter(|v| (1..=MAX_DIM).contains(v)) else {
                        continue;
                    };
                    let origin =
                        Origin::Weight(param.name.name.clone(), axis, param.name.span.clone());
                    if let Some(slot) = self.bound.get_mut(index) {
                        *slot = Some(Bound { value, origin });
                        learnt = true;
                    }
                }
            }
        }
    }

    /// Reports each weight whose shape is not the declared one, and why it is expected.
    fn compare(&mut self, pairs: &[(&Param, Vec<u64>)]) {
        for (param, shape) in pairs {
            let expected: Vec<Option<Poly>> =
                param.shape.iter().map(|dim| self.substitute(dim)).collect();
            let differs = |expected: &Option<Poly>, size: u64| {
                expected
                    .as_ref()
                    .is_none_or(|expected| !expected.is_constant(size))
            };
            let wrong: Vec<usize> = (0..shape.len())
                .filter(|axis| differs(&expected[*axis], shape[*axis]))
                .collect();
            if wrong.is_empty() {
                continue;
            }
            let numbers: Vec<String> = expected
                .iter()
                .map(|dim| {
                    dim.as_ref()
                        .map_or_else(|| "?".to_owned(), |dim| self.show(dim))
                })
                .collect();
            let declared = self.declared(param);
            let mut diagnostic = Diagnostic::error(
                "E0702",
                format!(
                    "the weight `{}` does not have the declared shape",
                    param.name.name
                ),
            )
            .at(
                &param.name.span,
                format!(
                    "expected `{declared}`, that is [{}], found [{}]",
                    numbers.join(", "),
                    joined(shape)
                ),
            );
            diagnostic = with_origin(diagnostic, param);
            let mut told = Vec::new();
            for axis in wrong {
                for atom in param.shape[axis].atoms() {
                    if told.contains(&atom) {
                        continue;
                    }
                    told.push(atom);
                    diagnostic = self.explain(diagnostic, atom, &param.name.name);
                }
            }
            self.diagnostics.push(diagnostic);
        }
    }

    fn explain(&self, diagnostic: Diagnostic, atom: Atom, weight: &str) -> Diagnostic {
        let name = self.show(&Poly::atom(atom));
        let bound = match atom {
            Atom::Program(index) => self.bound.get(index).cloned().flatten(),
            _ => None,
        };
        match bound {
            Some(Bound {
                value,
                origin: Origin::CommandLine,
            }) => diagnostic.note(format!("{name} = {value} was given")),
            Some(Bound {
                value,
                origin: Origin::Weight(from, axis, span),
            }) => {
                let text = format!("{name} = {value} comes from axis {axis} of `{from}`");
                if from == weight {
                    diagnostic.note(text)
                } else {
                    diagnostic.see(&span, text)
                }
            }
            None => diagnostic.note(format!(
                "there is no {name} for which they agree: a dim is a whole number from 1"
            )),
        }
    }

    fn report_unbound(&mut self, fine: bool, weights: &BTreeMap<String, (Elem, Vec<u64>)>) {
        // A weight of a wrong shape binds nothing, which is no second mistake.
        if !fine {
            return;
        }
        let dims = self.checked.items.dims.iter().zip(&self.bound);
        for (index, (dim, bound)) in dims.enumerate() {
            if bound.is_some() {
                continue;
            }
            let message = format!("nothing tells what `{}` is", dim.name);
            let mut diagnostic = Diagnostic::error("E0701", message).at(&dim.span, "declared here");
            if !weights.is_empty() {
                for (param, stored) in self.params_with(index) {
                    let text = format!("the weights have no tensor {stored}");
                    diagnostic = diagnostic.see(&param.name.span, text);
                }
            }
            self.diagnostics.push(diagnostic.note(format!(
                "give weights with a parameter that has it, or a number: `--dim {}=256`",
                dim.name
            )));
        }
    }

    /// The parameters with this dim, and under which names weights have them.
    fn params_with(&self, dim: usize) -> impl Iterator<Item = (&'a Param, String)> {
        let has_it = move |param: &&Param| {
            let mut atoms = param.shape.iter().flat_map(Poly::atoms);
            atoms.any(|atom| atom == Atom::Program(dim))
        };
        let named = |param: &'a Param| match &param.stored {
            Some(stored) => (param, format!("\"{}\"", stored.name)),
            None => (param, format!("`{}`", param.name.name)),
        };
        self.checked.items.params.iter().filter(has_it).map(named)
    }
}

/// Says where the weight comes from, and that its shape was found there.
fn with_origin(diagnostic: Diagnostic, param: &Param) -> Diagnostic {
    match &param.stored {
        Some(stored) => diagnostic.note(format!("it is declared from {stored}")),
        None => diagnostic,
    }
}

fn joined(shape: &[u64]) -> String {
    shape
        .iter()
        .map(u64::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

/// `f32[3, 4]`
pub fn shown_shape(elem: Elem, shape: &[u64]) -> String {
    format!("{}[{}]", elem_name(elem), joined(shape))
}

/// The shape of a parameter once all dims have numbers.
pub fn param_shape(param: &Param, values: &[u64]) -> Result<program::Param, Diagnostic> {
    let number = |atom| match atom {
        Atom::Program(index) => values.get(index).map(|value| Poly::constant(*value)),
        _ => None,
    };
    let shape: Option<Vec<u64>> = param
        .shape
        .iter()
        .map(|dim| {
            let value = dim.substitute(&number)?.as_constant()?.whole()?;
            u64::try_from(value)
                .ok()
                .filter(|value| (1..=MAX_DIM).contains(value))
        })
        .collect();
    let elements = |shape: &Vec<u64>| {
        let sizes = shape.iter().map(|size| u128::from(*size));
        sizes.fold(1, u128::saturating_mul)
    };
    match shape {
        Some(shape) if elements(&shape) > MAX_ELEMENTS => Err(Diagnostic::error(
            "E0706",
            "a parameter of too many elements",
        )
        .at(
            &param.name.span,
            format!("its dims make {}", elements(&shape)),
        )
        .note(format!("a parameter has at most {MAX_ELEMENTS} elements"))),
        Some(shape) => Ok(program::Param {
            name: param.name.name.clone(),
            elem: param.elem,
            shape,
            stored: param.stored.clone(),
            span: param.name.span.clone(),
        }),
        None => Err(Diagnostic::error(
            "E0706",
            format!(
                "the dims of `{}` are not whole numbers of 1 or more",
                param.name.name
            ),
        )
        .at(&param.name.span, "declared here")),
    }
}
