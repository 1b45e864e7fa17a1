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
mod reshapes;
mod rules;
mod saved;
mod sites;
mod structured;

use std::collections::{BTreeSet, HashMap, HashSet};

use cohort_abi::manifest::Unit;
use cohort_dialects::builder::{
    Builder, Op, Val, arguments_of, operands_of, operations_of, region_with_block, result_of,
    results_of,
};
use cohort_dialects::enums::{DialectEnum, Gradients, Granularity, Part};
use cohort_dialects::keys::{self, Key};
use cohort_dialects::marks;
pub use cohort_dialects::marks::{GRADIENT, GRADIENT_HELPER as HELPER};
use cohort_dialects::types::array_element;
use melior::{
    Context,
    ir::{
        Attribute, OperationRef, Type, ValueLike,
        attribute::{StringAttribute, TypeAttribute},
        operation::OperationLike,
        r#type::FunctionType,
    },
};

use crate::pass::{Outcome, PassInfo};
use crate::support::copies::replace_operands;
use crate::support::dim_equality::DimEquality;
use crate::support::dims;
use crate::support::ir::{
    TensorType, ValueKey, blocks_of, clone_op, defining_op, elements_of, enum_attribute, erase,
    functions_of, global_of, integer_attribute, key, name_attribute, nested_ops, op_key,
    set_attribute, text_of, users_of,
};
use crate::support::symbols::Symbols;
use crate::support::waves::used_values;
use cohort_dialects::marks::{GRADIENTS, GRANULARITY};
use rules::{Backward, NoRule, is_f32};
use sites::View;

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

/// An argument of a gradient function.
struct Argument<'c> {
    ty: Type<'c>,
    /// What of the call it is.
    of: Part,
    /// Its instance dims, and the axis of each.
    dims: Vec<(Attribute<'c>, usize)>,
}

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

/// The instance dims of a block's operands and results.
struct BlockDims<'c> {
    lengths: Vec<Attribute<'c>>,
    rows: Vec<Attribute<'c>>,
    leading: Vec<Vec<Attribute<'c>>>,
}

impl<'c> BlockDims<'c> {
    fn of(block: OperationRef<'c, '_>) -> BlockDims<'c> {
        let leading = block
            .attribute(&keys::LEADING)
            .map_or(vec![], elements_of)
            .into_iter();
        BlockDims {
            lengths: dims::lengths(block),
            rows: dims::rows(block),
            leading: leading.map(elements_of).collect(),
        }
    }

    /// Those of leading dims that are instance dims, with their axes.
    fn named(leading: &[Attribute<'c>]) -> Vec<(Attribute<'c>, usize)> {
        let dims = leading.iter().enumerate();
        dims.filter(|(_, dim)| dims::name(**dim).is_some())
            .map(|(axis, dim)| (*dim, axis))
            .collect()
    }
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
        match written {
            Ok(()) => {}
            Err((at, NoRule(what))) => {
                let at = at.map_or(place, |op| op.location());
                let text = match cohort_dialects::location::file_line_col(at) {
                    Some((file, line, column)) => format!("{file}:{line}:{column}: {what}"),
                    None => what,
                };
                let (region, entry) = region_with_block(&[], place);
                let b = Builder::at_end(self.context, entry, place);
                b.return_(&[]);
                let refused = b.dictionary(&[(marks::gradient::REFUSED, b.string(&text))]);
                self.add_function(place, &name, (&[], &[]), &[(GRADIENT, refused)], region);
            }
        }
        set_attribute(block, keys::GRADIENTS, self.end.strings(&names));
    }

    /// Writes a gradient function, which takes the cotangents of the results `in_parts` in two parts.
    fn function(
        &mut self,
        block: OperationRef<'c, 'c>,
        name: &str,
        in_parts: &[usize],
    ) -> Result<Written<'c>, (Option<OperationRef<'c, 'c>>, NoRule)> {
        let Some(body) = blocks_of(block).first().copied() else {
            return Err((None, NoRule("a block without a body".to_owned())));
        };
        let dims = BlockDims::of(block);
        let shared = crate::level1::batch_blocks::shared_operands(block);
        let operands = arguments_of(body);
        let results = results_of(block);
        let count = dims.lengths.len();

        // What the function takes.
        let mut arguments: Vec<Argument<'c>> = Vec::new();
        let mut row = 0;
        let mut of_operand: HashMap<usize, (usize, usize)> = HashMap::new();
        for (index, operand) in operands.iter().enumerate() {
            if shared[index] {
                continue;
            }
            if index >= count {
                let leading = dims.leading.get(index - count);
                of_operand.insert(index, (arguments.len(), row));
                arguments.push(Argument {
                    ty: operand.r#type(),
                    of: Part::Operand(row),
                    dims: leading.map_or(vec![], |dims| BlockDims::named(dims)),
                });
            }
            row += 1;
        }
        let mut of_result = Vec::new();
        for (index, result) in results.iter().enumerate() {
            of_result.push(arguments.len());
            arguments.push(Argument {
                ty: result.r#type(),
                of: Part::Result(index),
                dims: BlockDims::named(&dims.rows),
            });
        }
        let mut of_cotangent = Vec::new();
        // What is saved nothing reads but this.
        let saved = integer_attribute(block, keys::SAVED).unwrap_or(0) as usize;
        for (index, result) in results.iter().enumerate() {
            if is_f32(*result) && index + saved < results.len() {
                let parts: &[fn(usize) -> Part] = match in_parts.contains(&index) {
                    true => &[Part::Cotangent, Part::Addend],
                    false => &[Part::Cotangent],
                };
                of_cotangent.push((index, arguments.len()..arguments.len() + parts.len()));
                arguments.extend(parts.iter().map(|part| Argument {
                    ty: result.r#type(),
                    of: part(index),
                    dims: BlockDims::named(&dims.rows),
                }));
            }
        }
        let known = |arguments: &[Argument<'c>], dim: &Attribute<'c>| {
            arguments.iter().position(|argument| {
                let is_tensor = TensorType::of(argument.ty).is_some();
                is_tensor && argument.dims.iter().any(|(own, _)| own == dim)
            })
        };
        let mut of_length = Vec::new();
        for (number, dim) in dims.lengths.iter().enumerate() {
            match known(&arguments, dim) {
                Some(holder) => of_length.push((holder, false)),
                None => {
                    of_length.push((arguments.len(), true));
                    arguments.push(Argument {
                        ty: self.end.i64(),
                        of: Part::Operand(number),
                        dims: vec![],
                    });
                }
            }
        }
        let types: Vec<Type<'c>> = arguments.iter().map(|argument| argument.ty).collect();
        let (region, entry) = region_with_block(&types, block.location());
        let b = Builder::at_end(self.context, entry, block.location());
        let taken = arguments_of(entry);

        // The block's own code, as far as it is needed.
        let mut equality = DimEquality::new(operations_of(body));
        for (index, leading) in dims.leading.iter().enumerate() {
            for (dim, axis) in BlockDims::named(leading) {
                let length = dims.lengths.iter().position(|own| *own == dim);
                if let (Some(length), Some(_)) =
                    (length, TensorType::of_value(operands[count + index]))
                {
                    equality.join_length(operands[count + index], axis, operands[length]);
                }
            }
        }
        let mut backward = Backward::new(b, equality);
        for (number, (holder, is_number)) in of_length.iter().enumerate() {
            let length = match is_number {
                true => b.index_cast(taken[*holder], b.index_type()),
                false => {
                    let dim = &dims.lengths[number];
                    let own = arguments[*holder].dims.iter().find(|(own, _)| own == dim);
                    let axis = b.index(own.map_or(0, |(_, axis)| *axis as i64));
                    b.tensor_dim(taken[*holder], axis)
                }
            };
            backward.forward.insert(key(operands[number]), length);
        }
        for (index, operand) in operands.iter().enumerate() {
            if shared[index] {
                let load = defining_op(operands_of(block)[index]);
                let Some(load) = load.filter(|op| Op::MlProgramGlobalLoadConst.is(*op)) else {
                    return Err((None, NoRule("a shared operand".to_owned())));
                };
                let copy = b.insert(clone_op(load));
                backward.forward.insert(key(*operand), result_of(copy, 0));
                let parameter = global_of(load).unwrap_or_default();
                let view = TensorType::of_value(*operand)
                    .and_then(|ty| View::whole(parameter, &ty))
                    .filter(|_| is_f32(*operand));
                if let Some(view) = view {
                    backward.views.insert(key(*operand), view);
                }
            } else if let Some((argument, _)) = of_operand.get(&index) {
                backward.forward.insert(key(*operand), taken[*argument]);
            }
        }
        let mut copies = HashSet::new();
        let mut operations = operations_of(body);
        let yielded = operations.pop().map(operands_of).unwrap_or_default();
        for operation in &operations {
            let copy = b.at(operation.location()).insert(clone_op(*operation));
            copies.insert(op_key(copy));
            replace_operands(copy, &backward.forward);
            for (old, new) in results_of(*operation).into_iter().zip(results_of(copy)) {
                let given = yielded.iter().position(|own| key(*own) == key(old));
                let new = given.map_or(new, |given| taken[of_result[given]]);
                backward.forward.insert(key(old), new);
                let view = used_values(*operation)
                    .first()
                    .and_then(|from| backward.views.get(&key(*from)))
                    .and_then(|view| view.through(*operation, old));
                if let Some(view) = view {
                    backward.views.insert(key(old), view);
                }
            }
        }
        for operand in &operands[..count] {
            let dim = backward.equality.dim_of_length(*operand);
            let length = backward.value(*operand);
            backward.lengths.insert(dim, length);
        }

        // Back over it.
        for (index, parts) in of_cotangent {
            let parts = taken[parts].iter().copied();
            if let Some(sum) = parts.reduce(|left, right| b.addf(left, right)) {
                backward.add(yielded[index], sum);
            }
        }
        for operation in operations.iter().rev() {
            backward
                .differentiate(*operation)
                .map_err(|problem| (Some(*operation), problem))?;
        }
        let mut returned: Vec<Val<'c>> = Vec::new();
        let mut of_returned: Vec<Part> = Vec::new();
        for (index, operand) in operands.iter().enumerate() {
            let is_unwanted = self.inputs.contains(&key(operands_of(block)[index]));
            if !is_f32(*operand) || is_unwanted {
                continue;
            }
            let cotangent = backward.cotangent(*operand).map_err(|why| (None, why))?;
            let Some(cotangent) = cotangent else {
                continue;
            };
            match (shared[index], of_operand.get(&index)) {
                (true, _) => {
                    let view = backward.views[&key(*operand)].clone();
                    backward.sites.push(sites::Site {
                        view,
                        left: None,
                        right: cotangent,
                    });
                }
                (false, Some((_, row))) => {
                    returned.push(cotangent);
                    of_returned.push(Part::Operand(*row));
                }
                _ => {}
            }
        }
        let mut place_of = |value: Val<'c>| {
            if let Some(argument) = taken.iter().position(|own| key(*own) == key(value)) {
                return Part::Argument(argument).attribute(self.context);
            }
            let known = returned.iter().position(|own| key(*own) == key(value));
            let place = known.unwrap_or_else(|| {
                returned.push(value);
                of_returned.push(Part::Site);
                returned.len() - 1
            });
            Part::Result(place).attribute(self.context)
        };
        let mut sites: Vec<Attribute<'c>> = Vec::new();
        for site in &backward.sites {
            let list = |numbers: &[u64]| {
                let numbers: Vec<i64> = numbers.iter().map(|number| *number as i64).collect();
                b.i64s(&numbers)
            };
            let left = site.left.map(&mut place_of);
            let left = left.map(|left| (marks::gradient::LEFT, left));
            let view = &site.view;
            let entries = [
                (marks::gradient::RIGHT, place_of(site.right)),
                (marks::gradient::PARAMETER, b.symbol(&view.parameter)),
                (marks::gradient::OFFSET, b.i64_attr(view.offset as i64)),
                (marks::gradient::SHAPE, list(&view.shape)),
                (marks::gradient::STRIDES, list(&view.strides)),
            ];
            let entries: Vec<_> = left.into_iter().chain(entries).collect();
            sites.push(b.dictionary(&entries));
        }
        let end = b.return_(&returned);
        let saved = match dims::unit(block) {
            Some(Unit::Calls) => vec![],
            _ => {
                let needed = saved::needed(end, &copies);
                saved::chosen(
                    &operations,
                    &yielded,
                    &mut backward,
                    &needed,
                    dims.rows.len(),
                )
            }
        };

        // What rows have cotangents.
        for value in returned.iter().chain(&results).chain(&operands) {
            self.note_rows(*value);
        }
        let parts = |parts: &[Part]| {
            let parts = parts.iter().map(|part| part.attribute(self.context));
            b.array(&parts.collect::<Vec<_>>())
        };
        let of_arguments: Vec<_> = arguments.iter().map(|argument| argument.of).collect();
        let gradient = b.dictionary(&[
            (marks::gradient::ARGUMENTS, parts(&of_arguments)),
            (marks::gradient::RESULTS, parts(&of_returned)),
            (marks::gradient::SITES, b.array(&sites)),
        ]);
        let names: Vec<Attribute<'c>> = arguments
            .iter()
            .map(|argument| {
                let names = argument.dims.iter().filter_map(|(dim, _)| text_of(*dim));
                b.strings(names)
            })
            .collect();
        let results: Vec<Type<'c>> = returned.iter().map(|value| value.r#type()).collect();
        let mut attributes = vec![
            (GRADIENT, gradient),
            (marks::ARGUMENT_DIMS, b.array(&names)),
        ];
        if dims::unit(block) == Some(Unit::Calls) {
            // What needs the rows of an instance together is stored: most of it is needed more than once.
            let by_operator = Granularity::Operator.attribute(self.context);
            attributes.push((GRANULARITY, by_operator));
        }
        let types = (&types[..], &results[..]);
        let function = self.add_function(block.location(), name, types, &attributes, region);
        Ok((function, saved))
    }

    fn add_function(
        &self,
        location: melior::ir::Location<'c>,
        name: &str,
        (inputs, results): (&[Type<'c>], &[Type<'c>]),
        attributes: &[(Key<'_>, Attribute<'c>)],
        region: melior::ir::Region<'c>,
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
