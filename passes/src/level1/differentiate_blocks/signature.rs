//! What a gradient function takes: what its call took, what that gave, and the cotangents of this.

use std::collections::HashMap;
use std::ops::Range;

use cohort_dialects::builder::Builder;
use cohort_dialects::enums::Part;
use cohort_dialects::keys;
use melior::ir::{Attribute, Type, ValueLike};

use super::rules::is_f32;
use super::source::{NamedAxis, Source};
use crate::support::ir::{TensorType, integer_attribute, text_of};

/// An argument of a gradient function.
pub struct Argument<'c> {
    ty: Type<'c>,
    /// What of the call it is.
    of: Part,
    dims: Vec<NamedAxis<'c>>,
}

/// How a gradient function knows a length of its call.
pub enum KnownLength {
    /// It is an argument.
    Argument(usize),
    /// It is an axis of an argument.
    Axis { argument: usize, axis: usize },
}

/// An operand of the block that a gradient function takes.
pub struct TakenOperand {
    pub argument: usize,
    /// Which operand of the call it is: what is shared is none.
    pub of_call: usize,
}

/// The arguments of a gradient function, and which of them are what.
pub struct Signature<'c> {
    arguments: Vec<Argument<'c>>,
    /// By operand of the block.
    pub operands: HashMap<usize, TakenOperand>,
    /// Of each result, its argument.
    pub results: Vec<usize>,
    /// Of results that have a cotangent, the arguments that are its parts.
    pub cotangents: Vec<(usize, Range<usize>)>,
    pub lengths: Vec<KnownLength>,
}

impl<'c> Signature<'c> {
    /// That of a function which takes the cotangents of the results `in_parts` in two parts; `number` is the type of
    /// lengths.
    pub fn of(source: &Source<'c>, in_parts: &[usize], number: Type<'c>) -> Signature<'c> {
        let mut signature = Signature {
            arguments: Vec::new(),
            operands: HashMap::new(),
            results: Vec::new(),
            cotangents: Vec::new(),
            lengths: Vec::new(),
        };
        signature.take_operands(source);
        for (index, result) in source.results.iter().enumerate() {
            let dims = source.dims.of_results();
            let argument = signature.add(result.r#type(), Part::Result(index), dims);
            signature.results.push(argument);
        }
        signature.take_cotangents(source, in_parts);
        signature.take_lengths(source, number);
        signature
    }

    /// The types of the arguments.
    pub fn types(&self) -> Vec<Type<'c>> {
        self.arguments.iter().map(|argument| argument.ty).collect()
    }

    /// What of the call each argument is.
    pub fn parts(&self) -> Vec<Part> {
        self.arguments.iter().map(|argument| argument.of).collect()
    }

    /// The names of the instance dims of each argument.
    pub fn dim_names(&self, b: &Builder<'c>) -> Attribute<'c> {
        let names = self.arguments.iter().map(|argument| {
            let names = argument.dims.iter().filter_map(|(dim, _)| text_of(*dim));
            b.strings(names)
        });
        b.array(&names.collect::<Vec<_>>())
    }

    fn add(&mut self, ty: Type<'c>, of: Part, dims: Vec<NamedAxis<'c>>) -> usize {
        self.arguments.push(Argument { ty, of, dims });
        self.arguments.len() - 1
    }

    fn take_operands(&mut self, source: &Source<'c>) {
        let own = source.operands.iter().enumerate();
        let own = own.filter(|(index, _)| !source.shared[*index]);
        for (of_call, (index, operand)) in own.enumerate() {
            if index >= source.lengths() {
                let dims = source.dims.of_operand(index);
                let argument = self.add(operand.r#type(), Part::Operand(of_call), dims);
                let taken = TakenOperand { argument, of_call };
                self.operands.insert(index, taken);
            }
        }
    }

    fn take_cotangents(&mut self, source: &Source<'c>, in_parts: &[usize]) {
        // What is saved nothing reads but this.
        let saved = integer_attribute(source.block, keys::SAVED).unwrap_or(0) as usize;
        for (index, result) in source.results.iter().enumerate() {
            if is_f32(*result) && index + saved < source.results.len() {
                let parts: &[fn(usize) -> Part] = match in_parts.contains(&index) {
                    true => &[Part::Cotangent, Part::Addend],
                    false => &[Part::Cotangent],
                };
                let begin = self.arguments.len();
                for part in parts {
                    self.add(result.r#type(), part(index), source.dims.of_results());
                }
                self.cotangents.push((index, begin..self.arguments.len()));
            }
        }
    }

    /// Lengths that no tensor among the arguments has are taken as numbers.
    fn take_lengths(&mut self, source: &Source<'c>, number: Type<'c>) {
        for (index, dim) in source.dims.lengths.iter().enumerate() {
            let length = match self.axis_of(dim) {
                Some((argument, axis)) => KnownLength::Axis { argument, axis },
                None => KnownLength::Argument(self.add(number, Part::Operand(index), vec![])),
            };
            self.lengths.push(length);
        }
    }

    fn axis_of(&self, dim: &Attribute<'c>) -> Option<(usize, usize)> {
        let tensors = self.arguments.iter().enumerate();
        let mut tensors = tensors.filter(|(_, argument)| TensorType::of(argument.ty).is_some());
        tensors.find_map(|(index, argument)| {
            let (_, axis) = argument.dims.iter().find(|(own, _)| own == dim)?;
            Some((index, *axis))
        })
    }
}
