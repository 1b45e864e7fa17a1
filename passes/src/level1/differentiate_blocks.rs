//! `differentiate-blocks`: level 1. Gives each block the function that is its backward.
//!
//! The control program is not differentiated: the runtime keeps the calls that an instance made, and
//! goes back over them. For each it calls the block's *gradient function*, which takes what the call
//! took, its results and their cotangents, and records the calls that give the cotangents of its
//! operands. That function is tensor code of one instance, like any at level 0, so what follows forms
//! blocks of it, batches and fuses them.
//!
//! ```mlir
//! %h = cfb.block "f"(%x, %w) : (tensor<8xf32>, tensor<8x8xf32>) -> tensor<8xf32>
//!     attributes {reuse = [#cfb<reuse row>, #cfb<reuse shared>]} {
//! ^bb0(%a: tensor<8xf32>, %b: tensor<8x8xf32>):
//!   %p = linalg.vecmat ins(%a, %b : …) outs(%z : tensor<8xf32>) -> tensor<8xf32>
//!   cfb.yield %p : tensor<8xf32>
//! }
//! // gains `gradients = ["f$gradient$0"]`, and there is
//! func.func @f$gradient$0(%a: tensor<8xf32>, %p: tensor<8xf32>, %g: tensor<8xf32>) -> tensor<8xf32>
//!     attributes {cfb.gradient = {
//!       arguments = [#cfb.part<operand 0>, #cfb.part<result 0>, #cfb.part<cotangent 0>], results = [#cfb.part<operand 0>],
//!       sites = [{left = #cfb.part<argument 0>, right = #cfb.part<argument 2>, parameter = @w, …}]}} {
//!   %w = ml_program.global_load_const @w : tensor<8x8xf32>
//!   %t = linalg.transpose ins(%w : …) outs(%e : …) permutation = [1, 0]
//!   %d = linalg.vecmat ins(%g, %t : …) outs(%z : …) -> tensor<8xf32>
//!   return %d : tensor<8xf32>
//! }
//! ```
//!
//! The gradient of a parameter is computed by no call: a *site* is a use of one, and says of which rows
//! of each call it is the sum ([`sites`]). Of the module's own are the functions that add
//! cotangents up, make zeros and stack rows, for each type of row.
//!
//! A result that the program reads at several places mostly gets a cotangent from each. Its block has a second
//! function, which takes such cotangents in two parts, `cotangent 0` and `addend 0`, and adds them up
//! itself, so that no call is recorded for it.
//!
//! What a block computes inside is computed again where backward needs it, but for what takes a product,
//! a reduction, a quotient or a function like `exp`: that is *saved*, as results of the block that nothing
//! else reads ([`saved`]).
//!
//! Where the module has `cfb.gradients = #cfb<gradients parameters>`, what the entry itself takes has no cotangent.
//!
//! Requires: level 1, with `reuse`. Leaves: level 1, but for the new functions, which are level 0. A
//! block that holds what has no derivative gets a function that says what and where, `{refused = "…"}`,
//! and a program fails only where a gradient reaches it.

mod contraction;
mod emit;
mod helpers;
mod recompute;
mod reshapes;
mod returned;
mod rules;
mod saved;
mod signature;
mod sites;
mod source;
mod structured;

use std::collections::{BTreeSet, HashSet};

use cohort_abi::manifest::Unit;
use cohort_dialects::builder::{
    Builder, Op, Val, arguments_of, operands_of, region_with_block, results_of,
};
use cohort_dialects::enums::{DialectEnum, Gradients, Granularity, Part};
use cohort_dialects::keys::{self, Key};
use cohort_dialects::marks;
pub use cohort_dialects::marks::{GRADIENT, GRADIENT_HELPER as HELPER};
use cohort_dialects::types::array_element;
use melior::{
    Context,
    ir::{
        Attribute, Location, OperationRef, Region, Type, ValueLike,
        attribute::{StringAttribute, TypeAttribute},
        operation::OperationLike,
        r#type::FunctionType,
    },
};

use crate::pass::{Outcome, PassInfo};
use crate::support::dims;
use crate::support::ir::{
    TensorType, ValueKey, blocks_of, enum_attribute, erase, functions_of, key, name_attribute,
    nested_ops, set_attribute, users_of,
};
use crate::support::symbols::Symbols;
use cohort_dialects::marks::{GRADIENTS, GRANULARITY};
use recompute::recompute;
use returned::Returned;
use rules::{Backward, NoRule, is_f32};
use signature::Signature;
use source::Source;

/// The pass `differentiate-blocks`.
pub const PASS: PassInfo = PassInfo {
    name: "differentiate-blocks",
    summary: "Give each block the function that is its backward (level 1)",
    description: include_str!("differentiate_blocks.rs"),
    run,
};

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    let Some(body) = blocks_of(module).first().copied() else {
        return Ok(());
    };
    let blocks: Vec<_> = nested_ops(module)
        .into_iter()
        .filter(|op| Op::CfbBlock.is(*op))
        .collect();
    let mut differentiation = Differentiation {
        context,
        end: Builder::at_end(context, body, module.location()),
        symbols: Symbols::of(module),
        rows: BTreeSet::new(),
        inputs: match enum_attribute(module, GRADIENTS) {
            Some(Gradients::Parameters) => inputs(module),
            _ => HashSet::new(),
        },
    };
    for block in blocks {
        differentiation.block(block);
    }
    differentiation.helpers();
    Ok(())
}

struct Differentiation<'c> {
    context: &'c Context,
    /// The end of the module.
    end: Builder<'c>,
    symbols: Symbols,
    /// The shapes of the rows that have cotangents.
    rows: BTreeSet<Vec<u64>>,
    /// Values whose cotangents nobody asks for.
    inputs: HashSet<ValueKey>,
}

/// What the entry takes.
fn inputs(module: OperationRef<'_, '_>) -> HashSet<ValueKey> {
    let entries = functions_of(module).into_iter();
    let entries = entries.filter(|function| function.has_attribute(&marks::ENTRY));
    let bodies = entries.filter_map(|function| blocks_of(function).first().copied());
    bodies.flat_map(arguments_of).map(key).collect()
}

/// A gradient function, and what of its block had better be kept for it: the results of these operations
/// of its body.
type Written<'c> = (OperationRef<'c, 'c>, Vec<(usize, usize)>);

/// What has no derivative, and the operation of the block that it is, if it is one.
type Refusal<'c> = (Option<OperationRef<'c, 'c>>, NoRule);

/// The results of a block that the program reads at several places, so that backward often has several
/// cotangents to add up. A block that needs the rows of an instance together has none: what it adds is
/// stored anyway.
fn read_twice(block: OperationRef<'_, '_>) -> Vec<usize> {
    if dims::unit(block) == Some(Unit::Calls) {
        return vec![];
    }
    let results = results_of(block).into_iter().enumerate();
    let results = results.filter(|(_, result)| is_f32(*result) && users_of(*result).len() > 1);
    results.map(|(index, _)| index).collect()
}

impl<'c> Differentiation<'c> {
    /// Writes the gradient function of a block, if some result of it has a gradient.
    fn block(&mut self, block: OperationRef<'c, 'c>) {
        let results = results_of(block);
        if !results.iter().any(|result| is_f32(*result)) {
            return;
        }
        let place = block.location();
        let base = name_attribute(block, keys::NAME).unwrap_or_else(|| "block".to_owned());
        let name = self
            .symbols
            .free(|number| format!("{base}$gradient${number}"));
        let mut block = block;
        let mut names = vec![name.clone()];
        let written = self
            .function(block, &name, &[])
            .and_then(|(function, saved)| {
                if !saved.is_empty() {
                    erase(function);
                    block = saved::save(self.context, block, &saved);
                    self.function(block, &name, &[])?;
                }
                let in_parts = read_twice(block);
                if !in_parts.is_empty() {
                    let name = self
                        .symbols
                        .free(|number| format!("{base}$gradient${number}"));
                    self.function(block, &name, &in_parts)?;
                    names.push(name);
                }
                Ok(())
            });
        if let Err((at, NoRule(what))) = written {
            let at = at.map_or(place, |op| op.location());
            self.refuse(place, &name, at, what);
        }
        set_attribute(block, keys::GRADIENTS, self.end.strings(&names));
    }

    /// Writes the function of a block that has no gradient, which says what and where.
    fn refuse(&self, place: Location<'c>, name: &str, at: Location<'c>, what: String) {
        let text = match cohort_dialects::location::file_line_col(at) {
            Some((file, line, column)) => format!("{file}:{line}:{column}: {what}"),
            None => what,
        };
        let (region, entry) = region_with_block(&[], place);
        let b = Builder::at_end(self.context, entry, place);
        b.return_(&[]);
        let refused = b.dictionary(&[(marks::gradient::REFUSED, b.string(&text))]);
        self.add_function(place, name, (&[], &[]), &[(GRADIENT, refused)], region);
    }

    /// Writes a gradient function, which takes the cotangents of the results `in_parts` in two parts.
    fn function(
        &mut self,
        block: OperationRef<'c, 'c>,
        name: &str,
        in_parts: &[usize],
    ) -> Result<Written<'c>, Refusal<'c>> {
        let of_block = |why| (None, why);
        let source = Source::of(block).map_err(of_block)?;
        let signature = Signature::of(&source, in_parts, self.end.i64());
        let types = signature.types();
        let (region, entry) = region_with_block(&types, block.location());
        let b = Builder::at_end(self.context, entry, block.location());
        let taken = arguments_of(entry);

        let (mut backward, copies) = recompute(&source, &signature, &taken, b).map_err(of_block)?;
        go_back(&source, &signature, &taken, &mut backward)?;
        let given = operands_of(block);
        let is_unwanted = |operand: usize| self.inputs.contains(&key(given[operand]));
        let mut returned = Returned::cotangents(&source, &signature, &mut backward, is_unwanted)
            .map_err(of_block)?;
        let sites = returned.sites(self.context, &backward, &taken);
        let end = b.return_(&returned.values);

        let needs_rows_together = dims::unit(block) == Some(Unit::Calls);
        let saved = match needs_rows_together {
            true => vec![],
            false => {
                let needed = saved::needed(end, &copies);
                saved::chosen(&source, &mut backward, &needed)
            }
        };
        let values = returned.values.iter();
        for value in values.chain(&source.results).chain(&source.operands) {
            self.note_rows(*value);
        }
        let parts = |parts: &[Part]| {
            let parts = parts.iter().map(|part| part.attribute(self.context));
            b.array(&parts.collect::<Vec<_>>())
        };
        let gradient = b.dictionary(&[
            (marks::gradient::ARGUMENTS, parts(&signature.parts())),
            (marks::gradient::RESULTS, parts(&returned.parts)),
            (marks::gradient::SITES, sites),
        ]);
        let mut attributes = vec![
            (GRADIENT, gradient),
            (marks::ARGUMENT_DIMS, signature.dim_names(&b)),
        ];
        if needs_rows_together {
            // Its values are stored: most of them are needed more than once.
            let by_operator = Granularity::Operator.attribute(self.context);
            attributes.push((GRANULARITY, by_operator));
        }
        let results: Vec<Type<'c>> = returned.values.iter().map(|own| own.r#type()).collect();
        let types = (&types[..], &results[..]);
        let function = self.add_function(block.location(), name, types, &attributes, region);
        Ok((function, saved))
    }

    fn add_function(
        &self,
        location: Location<'c>,
        name: &str,
        (inputs, results): (&[Type<'c>], &[Type<'c>]),
        attributes: &[(Key<'_>, Attribute<'c>)],
        region: Region<'c>,
    ) -> OperationRef<'c, 'c> {
        let ty = FunctionType::new(self.context, inputs, results).into();
        let mut all: Vec<(Key<'_>, Attribute<'c>)> = vec![
            (
                keys::SYM_NAME,
                StringAttribute::new(self.context, name).into(),
            ),
            (keys::FUNCTION_TYPE, TypeAttribute::new(ty).into()),
        ];
        all.extend(attributes);
        let end = self.end.at(location);
        end.op(Op::FuncFunc, &[], &[], &all, vec![region])
    }

    /// The rows of a value have cotangents.
    fn note_rows(&mut self, value: Val<'c>) {
        let ty = value.r#type();
        let held = array_element(ty).unwrap_or(ty);
        let Some(ty) = TensorType::of(held).filter(|_| is_f32(value)) else {
            return;
        };
        let last = ty.shape.iter().rposition(Option::is_none);
        let row = &ty.shape[last.map_or(0, |last| last + 1)..];
        self.rows.insert(row.iter().flatten().copied().collect());
    }
}

/// Goes over the block's operations from the last to the first, and from the cotangents of its results to those of all
/// its values.
fn go_back<'c>(
    source: &Source<'c>,
    signature: &Signature<'c>,
    taken: &[Val<'c>],
    backward: &mut Backward<'c>,
) -> Result<(), Refusal<'c>> {
    let b = backward.b;
    for (result, parts) in &signature.cotangents {
        let parts = taken[parts.clone()].iter().copied();
        if let Some(sum) = parts.reduce(|left, right| b.addf(left, right)) {
            backward.add(source.yielded[*result], sum);
        }
    }
    for operation in source.operations.iter().rev() {
        backward
            .differentiate(*operation)
            .map_err(|problem| (Some(*operation), problem))?;
    }
    Ok(())
}
