//! What a gradient function returns: cotangents of its call's operands, and what the gradients of parameters are made of.

use cohort_dialects::builder::Val;
use cohort_dialects::enums::Part;
use cohort_dialects::marks;
use melior::{Context, ir::Attribute};

use super::rules::{Backward, NoRule, is_f32};
use super::signature::Signature;
use super::sites::Site;
use super::source::Source;
use crate::support::ir::key;

/// The values that are returned, and what each is.
#[derive(Default)]
pub struct Returned<'c> {
    pub values: Vec<Val<'c>>,
    pub parts: Vec<Part>,
}

impl<'c> Returned<'c> {
    /// The cotangents of the block's operands, but for those that are unwanted. Where a parameter has one, it becomes a
    /// site.
    pub fn cotangents(
        source: &Source<'c>,
        signature: &Signature<'c>,
        backward: &mut Backward<'c>,
        is_unwanted: impl Fn(usize) -> bool,
    ) -> Result<Returned<'c>, NoRule> {
        let mut returned = Returned::default();
        for (index, operand) in source.operands.iter().enumerate() {
            if !is_f32(*operand) || is_unwanted(index) {
                continue;
            }
            let Some(cotangent) = backward.cotangent(*operand)? else {
                continue;
            };
            if source.shared[index] {
                let view = backward.views[&key(*operand)].clone();
                backward.sites.push(Site {
                    view,
                    left: None,
                    right: cotangent,
                });
            } else if let Some(own) = signature.operands.get(&index) {
                returned.add(cotangent, Part::Operand(own.of_call));
            }
        }
        Ok(returned)
    }

    /// Describes the sites of a function that takes `taken`; what they are made of is returned, if it is not known
    /// anyway.
    pub fn sites(
        &mut self,
        context: &'c Context,
        backward: &Backward<'c>,
        taken: &[Val<'c>],
    ) -> Attribute<'c> {
        let b = backward.b;
        let list = |numbers: &[u64]| {
            let numbers: Vec<i64> = numbers.iter().map(|number| *number as i64).collect();
            b.i64s(&numbers)
        };
        let mut place_of = |value| self.place_of(value, taken).attribute(context);
        let mut sites: Vec<Attribute<'c>> = Vec::new();
        for Site { view, left, right } in &backward.sites {
            let left = left.map(&mut place_of);
            let left = left.map(|left| (marks::gradient::LEFT, left));
            let entries = [
                (marks::gradient::RIGHT, place_of(*right)),
                (marks::gradient::PARAMETER, b.symbol(&view.parameter)),
                (marks::gradient::OFFSET, b.i64_attr(view.offset as i64)),
                (marks::gradient::SHAPE, list(&view.shape)),
                (marks::gradient::STRIDES, list(&view.strides)),
            ];
            let entries: Vec<_> = left.into_iter().chain(entries).collect();
            sites.push(b.dictionary(&entries));
        }
        b.array(&sites)
    }

    /// Where a value is that a function took, or returns from now on.
    fn place_of(&mut self, value: Val<'c>, taken: &[Val<'c>]) -> Part {
        let position = |values: &[Val<'c>]| values.iter().position(|own| key(*own) == key(value));
        if let Some(argument) = position(taken) {
            return Part::Argument(argument);
        }
        let known = position(&self.values);
        Part::Result(known.unwrap_or_else(|| self.add(value, Part::Site)))
    }

    fn add(&mut self, value: Val<'c>, part: Part) -> usize {
        self.values.push(value);
        self.parts.push(part);
        self.values.len() - 1
    }
}
