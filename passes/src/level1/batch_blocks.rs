//! `batch-blocks`: level 1 to level 2. Each static block becomes a batched kernel, the rest the
//! control program, which records kernel calls and holds lazy handles.
//!
//! The tensor code of a block gains a leading batch dim by a rule an operation
//! ([`rules`]); equal blocks share one kernel. In the control program every tensor
//! type becomes `!cfb.lazy` of it, a block becomes a `cfb.record`, a lookup in a parameter becomes
//! `cfb.param_row`, and a parameter or a constant used as a value becomes `cfb.param` or
//! `cfb.constant`.
//!
//! ```mlir
//! %h = cfb.block "f"(%x, %w) : (tensor<8xf32>, tensor<8x8xf32>) -> (tensor<8xf32>)
//!     attributes {reuse = [#cfb<reuse row>, #cfb<reuse shared>]} {
//! ^bb0(%a: tensor<8xf32>, %b: tensor<8x8xf32>):
//!   %p = linalg.vecmat ins(%a, %b : …) outs(%z : tensor<8xf32>) -> tensor<8xf32>
//!   cfb.yield %p : tensor<8xf32>
//! }
//! // becomes
//! cfb.kernel @f_0 {
//! ^bb0(%rows: index, %a: tensor<?x8xf32>):
//!   %b = ml_program.global_load_const @w : tensor<8x8xf32>
//!   %p = linalg.matmul ins(%a, %b : …) outs(%z : tensor<?x8xf32>) -> tensor<?x8xf32>
//!   cfb.yield %p : tensor<?x8xf32>
//! }
//! %h = cfb.record @f_0(%x) : (!cfb.lazy<tensor<8xf32>>) -> (!cfb.lazy<tensor<8xf32>>)
//! ```
//!
//! A block with instance dims becomes a kernel of its unit. Where that is the row, the block is first
//! written for one row ([`row_form`]), so its kernel is one over all rows of all
//! instances, and `takes` tells which arguments are a row of a call's many. Where it is the call,
//! the types say which dims differ by call ([`shapes`]).
//!
//! A `cfb.stack` that something computes with is a call of a kernel too, which copies rows to where
//! they lie one behind another ([`stacks`]).
//!
//! Requires: level 1; a block without `reuse` has no shared operands. Leaves: level 2. What has no rule is refused
//! with an error at its place.

mod control;
mod generic;
mod products;
mod row_form;
mod rules;
mod shapes;
mod stacks;
mod views;

use std::collections::{HashMap, HashSet};

use cohort_abi::manifest::Unit;
use cohort_dialects::builder::{
    Builder, Op, arguments_of, operands_of, operations_of, region_with_block, results_of,
};
use cohort_dialects::enums::{DialectEnum, Reuse};
use cohort_dialects::equal::Distinct;
use cohort_dialects::keys::{self, Key};
use cohort_dialects::types::{array_element, lazy, lazy_tensor, rows};
use melior::{
    Context,
    ir::{
        Attribute, OperationRef, Type, ValueLike, attribute::StringAttribute,
        operation::OperationLike,
    },
};

use crate::level1::differentiate_blocks::GRADIENT;
use crate::pass::{Outcome, PassInfo, error};
use crate::support::dims::{self, Takes};
use crate::support::ir::{
    GRADIENT_OF, TensorType, array, blocks_of, clone_op, defining_op, elements_of, erase,
    functions_of, is_within, name_attribute, nested_ops, op_key, replace_uses, set_attribute,
    set_type, strings, symbol_of, top_level,
};
use crate::support::symbols::Symbols;
pub use products::named;
use rules::Batcher;

/// The pass `batch-blocks`.
pub const PASS: PassInfo = PassInfo {
    name: "batch-blocks",
    summary: "Make blocks batched kernels and the rest the control program (level 1 to level 2)",
    description: include_str!("batch_blocks.rs"),
    run,
};

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    let Some(first) = top_level(module).first().copied() else {
        return Ok(());
    };
    let Some(top) = Builder::before(context, first) else {
        return Ok(());
    };
    let mut kernels = Kernels {
        top,
        names: Distinct::default(),
        counts: HashMap::new(),
        symbols: Symbols::of(module),
        gradients: functions_of(module)
            .into_iter()
            .filter(|function| function.has_attribute(&GRADIENT))
            .filter_map(|function| Some((symbol_of(function)?, function)))
            .collect(),
        differentiated: HashSet::new(),
        dropped: Vec::new(),
    };
    let blocks: Vec<_> = nested_ops(module)
        .into_iter()
        .filter(|op| Op::CfbBlock.is(*op))
        .collect();
    for block in blocks {
        let dropped = kernels.dropped.iter().map(|function| op_key(*function));
        if !is_within(block, &dropped.collect()) {
            record_block(context, &mut kernels, block)?;
        }
    }
    for function in std::mem::take(&mut kernels.dropped) {
        erase(function);
    }
    stacks::record_stacks(context, &mut kernels, module)?;
    control::make_lazy(context, module)
}

/// The kernels made so far, by what they compute.
struct Kernels<'c> {
    /// Where kernels are put: the start of the module.
    top: Builder<'c>,
    names: Distinct<'c, String>,
    counts: HashMap<String, usize>,
    /// Names that are taken: by the program's functions, types and parameters, and by kernels.
    symbols: Symbols,
    /// The gradient functions of blocks that are not kernels yet.
    gradients: HashMap<String, OperationRef<'c, 'c>>,
    /// The kernels that have one.
    differentiated: HashSet<String>,
    /// The gradient functions of blocks that are equal to others.
    dropped: Vec<OperationRef<'c, 'c>>,
}

/// Whether each operand of a block is the same parameter for all instances.
pub fn shared_operands(block: OperationRef<'_, '_>) -> Vec<bool> {
    let reuse = array(block, keys::REUSE);
    // Its verifier has seen that `reuse` has one entry an operand.
    let is_shared = |index| reuse.get(index).copied().and_then(Reuse::of) == Some(Reuse::Shared);
    (0..block.operand_count()).map(is_shared).collect()
}

fn record_block<'c>(
    context: &'c Context,
    kernels: &mut Kernels<'c>,
    block: OperationRef<'c, 'c>,
) -> Outcome {
    let Some(body) = blocks_of(block).first().copied() else {
        return Ok(());
    };
    let shared = shared_operands(block);
    let operands = operands_of(block);
    let dims = Dims::of(block);
    // The region is kept alive until the block is batched.
    let (_row_form, body) = match &dims {
        Some(dims) if dims.by_row => {
            let (region, body) = row_form::row_form(context, body, dims.rows.len())?;
            (Some(region), body)
        }
        _ => (None, body),
    };

    // The kernel's arguments: the number of rows, then each row operand with a batch dim.
    let mut types = vec![Type::index(context)];
    let mut rows = Vec::new();
    for ((operand, argument), shared) in operands.iter().zip(arguments_of(body)).zip(&shared) {
        if !shared {
            // The operand itself may be lazy already; the body's argument tells its type.
            types.push(batched_type(argument.r#type()));
            rows.push(*operand);
        }
    }
    let (region, entry) = region_with_block(&types, block.location());
    let inner = Builder::at_end(context, entry, block.location());
    let arguments = arguments_of(entry);
    let mut batcher = Batcher::new(inner, arguments[0]);
    let mut next_row = arguments[1..].iter();
    let mut of_arguments = HashMap::new();
    for ((argument, operand), shared) in arguments_of(body).into_iter().zip(&operands).zip(&shared)
    {
        if *shared {
            let load = defining_op(*operand)
                .filter(|load| Op::MlProgramGlobalLoadConst.is(*load))
                .ok_or_else(|| error(block, "a shared operand must be a parameter load"))?;
            let copy = inner.insert(clone_op(load));
            batcher.define_shared(argument, cohort_dialects::builder::result_of(copy, 0));
        } else if let Some(row) = next_row.next() {
            batcher.define_rows(argument, *row);
            of_arguments.insert(crate::support::ir::key(argument), *row);
        }
    }
    if let Some(dims) = dims.as_ref().filter(|dims| !dims.by_row) {
        let (names, leading) = (&dims.lengths, &dims.leading);
        let bounds = shapes::Bounds::new(inner, body, names, leading, &of_arguments);
        batcher.bounds = Some(bounds);
    }
    let mut yielded = Vec::new();
    for operation in operations_of(body) {
        if Op::CfbYield.is(operation) {
            for operand in operands_of(operation) {
                yielded.push(batcher.rows_of(operand, operation)?);
            }
            batcher.builder.at(operation.location()).cfb_yield(&yielded);
        } else {
            batcher.batch(operation)?;
        }
    }

    let base = name_attribute(block, keys::NAME).unwrap_or_else(|| "block".to_owned());
    let mut attributes = vec![
        (
            keys::SYM_NAME,
            StringAttribute::new(context, "kernel").into(),
        ),
        (
            keys::SYM_VISIBILITY,
            StringAttribute::new(context, "private").into(),
        ),
    ];
    if let Some(dims) = &dims {
        attributes.extend(dims.of_kernel(context, &operands, &shared));
    }
    let top = kernels.top.at(block.location());
    let kernel = top.op(Op::CfbKernel, &[], &[], &attributes, vec![region]);
    if let Some(dims) = dims.as_ref().filter(|dims| !dims.by_row) {
        let arguments = dims.of_arguments(&shared);
        shapes::encode(context, kernel, entry, &dims.lengths, &arguments)?;
    }
    let name = kernels.unify(context, kernel, &base);
    kernels.give_gradients(context, block, &name);

    let Some(before) = Builder::before(context, block) else {
        return Ok(());
    };
    let results: Vec<_> = results_of(block)
        .iter()
        .map(|result| lazy(result.r#type()).unwrap_or(result.r#type()))
        .collect();
    let record = before.cfb_record(&name, &rows, &results);
    for (old, new) in results_of(block).into_iter().zip(record) {
        replace_uses(old, new);
    }
    erase(block);
    Ok(())
}

/// The instance dims of a block.
struct Dims<'c> {
    /// Its attributes, which its kernel gets too.
    attributes: Vec<(Key<'static>, Attribute<'c>)>,
    by_row: bool,
    lengths: Vec<Attribute<'c>>,
    rows: Vec<Attribute<'c>>,
    /// Of each operand after the lengths.
    leading: Vec<Vec<Attribute<'c>>>,
}

impl<'c> Dims<'c> {
    /// `None` for a block without instance dims. Its verifier has seen that the others are there.
    fn of(block: OperationRef<'c, 'c>) -> Option<Dims<'c>> {
        let attribute = |name: Key<'static>| Some((name, block.attribute(&name).ok()?));
        let attributes = [keys::UNIT, keys::LENGTHS, keys::ROWS].map(attribute);
        let [unit, lengths, rows] = attributes.into_iter().collect::<Option<Vec<_>>>()?[..] else {
            return None;
        };
        let leading = elements_of(block.attribute(&keys::LEADING).ok()?).into_iter();
        Some(Dims {
            by_row: dims::unit(block) == Some(Unit::Rows),
            lengths: elements_of(lengths.1),
            rows: elements_of(rows.1),
            leading: leading.map(elements_of).collect(),
            attributes: vec![unit, lengths, rows],
        })
    }

    /// The attributes of the kernel of a block with these operands, of which some are shared.
    fn of_kernel(
        &self,
        context: &'c Context,
        operands: &[cohort_dialects::builder::Val<'c>],
        shared: &[bool],
    ) -> Vec<(Key<'static>, Attribute<'c>)> {
        let mut attributes = self.attributes.clone();
        if self.by_row {
            let count = self.lengths.len();
            let after = operands.iter().zip(shared).skip(count).zip(&self.leading);
            let takes: Vec<Takes> = after
                .filter(|((_, shared), _)| !**shared)
                .map(|((operand, _), leading)| {
                    let ty = operand.r#type();
                    let held = lazy_tensor(ty).is_some() || TensorType::of(ty).is_some();
                    match (leading.is_empty(), array_element(ty), held) {
                        (false, _, _) => Takes::Ragged,
                        (true, Some(_), _) => Takes::List,
                        (true, None, true) => Takes::Row,
                        (true, None, false) => Takes::Scalar,
                    }
                })
                .collect();
            attributes.push((keys::TAKES, dims::takes_attribute(context, &takes)));
        }
        attributes
    }

    /// The leading dims of each argument of the kernel after the number of rows.
    fn of_arguments(&self, shared: &[bool]) -> Vec<Vec<Attribute<'c>>> {
        let lengths = self.lengths.iter().map(|_| vec![]);
        let all = lengths.chain(self.leading.iter().cloned());
        let own = all.zip(shared).filter(|(_, shared)| !**shared);
        own.map(|(leading, _)| leading).collect()
    }
}

impl<'c> Kernels<'c> {
    /// The gradient functions of a block become those of its kernel, if that has none yet.
    fn give_gradients(&mut self, context: &'c Context, block: OperationRef<'c, 'c>, name: &str) {
        let named = block.attribute(&keys::GRADIENTS).map_or(vec![], strings);
        let functions = named.iter().filter_map(|own| self.gradients.remove(own));
        let functions: Vec<_> = functions.collect();
        if functions.is_empty() {
            return;
        }
        if self.differentiated.insert(name.to_owned()) {
            let kernel = StringAttribute::new(context, name).into();
            for function in functions {
                set_attribute(function, GRADIENT_OF, kernel);
            }
        } else {
            self.dropped.extend(functions);
        }
    }

    /// Gives a kernel its name, or drops it in favour of an equal one.
    fn unify(&mut self, context: &'c Context, kernel: OperationRef<'c, 'c>, base: &str) -> String {
        if let Some(name) = self.names.get(kernel) {
            let name = name.clone();
            erase(kernel);
            return name;
        }
        let count = self.counts.entry(base.to_owned()).or_default();
        let name = self.symbols.free(|_| {
            let name = format!("{base}_{count}");
            *count += 1;
            name
        });
        crate::support::ir::set_attribute(
            kernel,
            keys::SYM_NAME,
            StringAttribute::new(context, &name).into(),
        );
        self.names.insert(kernel, name.clone());
        name
    }
}

/// The type of a kernel's operand: a list a row for an array, rows for anything else.
fn batched_type(ty: Type<'_>) -> Type<'_> {
    array_element(ty)
        .and_then(rows)
        .unwrap_or_else(|| row_type(ty).batched().to_type())
}

/// The tensor that one row of an operand is: a host scalar is one of rank 0.
fn row_type<'c>(ty: Type<'c>) -> TensorType<'c> {
    TensorType::of(ty).unwrap_or(TensorType {
        shape: vec![],
        element: ty,
    })
}

/// Changes the type of a value of the control program to its lazy form.
fn make_value_lazy<'c>(context: &'c Context, value: melior::ir::Value<'c, 'c>) {
    let ty = control::lazy_form(context, value.r#type());
    if ty != value.r#type() {
        set_type(value, ty);
    }
}
