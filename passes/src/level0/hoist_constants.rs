//! `hoist-constants`: what is computed from parameters and constants alone is computed at load.
//!
//! The operations that such a tensor is made of move into a kernel of their own, which the runtime
//! calls once when the weights are loaded; a global with the attribute `cfb.computed` names the
//! tensor, and what used it reads that like any parameter. So a softmax of a parameter is not
//! computed for every instance, and a matrix that is transposed, sliced or added up is packed for
//! products once, as a parameter is.
//!
//! ```mlir
//! %t = linalg.transpose ins(%w : tensor<3x4xf32>) outs(%e : tensor<4x3xf32>) permutation = [1, 0]
//! %p = linalg.vecmat ins(%x, %t : tensor<4xf32>, tensor<4x3xf32>) outs(…) -> tensor<3xf32>
//! // becomes
//! %t = ml_program.global_load_const @computed_0 : tensor<4x3xf32>
//! %p = linalg.vecmat ins(%x, %t : tensor<4xf32>, tensor<4x3xf32>) outs(…) -> tensor<3xf32>
//! // beside
//! cfb.kernel @compute_0 {
//! ^bb0(%rows: index):
//!   %w = ml_program.global_load_const @w : tensor<3x4xf32>
//!   %t = linalg.transpose ins(%w : tensor<3x4xf32>) outs(%e : tensor<4x3xf32>) permutation = [1, 0]
//!   %r = linalg.broadcast ins(%t : tensor<4x3xf32>) outs(…) dimensions = [0]
//!   cfb.yield %r : tensor<?x4x3xf32>
//! }
//! ml_program.global private @computed_0(#ml_program.extern) : tensor<4x3xf32> {cfb.computed = @compute_0}
//! ```
//!
//! What only selects, repeats or renames elements (a slice, a broadcast, a fill, a reshape) costs a
//! kernel nothing and stays where it is; what it selects from may be hoisted. The exception is the
//! right side of a product that would have to be packed at each call, such as a slice of columns.
//! Constants without any parameter are hoisted only where they take a product, a fold, a
//! transcendental function or a rearrangement: anything else, such as what counts along an axis, is
//! cheaper made than read.
//!
//! Runs at level 0, on functions, before blocks are formed, so that a hoisted tensor is a shared
//! operand of them; where gradients are wanted, on the functions of backward, such as the transposed matrices of
//! their products, while those of forward read parameters themselves; and at level 2, on kernels, for what other passes have made of parameters there. What
//! is computed for all rows and is the same in each of them, such as a product of a constant row, is
//! computed for one row, by the same operations, so with the same bits. A
//! record's result that is the same weight for every row becomes a `cfb.param`, but for one that gradients
//! may go through. Leaves the level as
//! it is; what became unused is left to the canonicaliser. Not hoisted: tensors of instance dims,
//! of other elements than `f32`, `i32` and `i1`, or without elements; code inside of `cfb.block`.
//!
//! Constant- and parameter-only work at load: ACRoBat, section 4 (static optimisations), which
//! reuses such operands; here their computation goes as well.

pub mod rows;

use std::collections::{HashMap, HashSet};

use cohort_dialects::builder::{
    Builder, Dialect, Op, Val, arguments_of, is_arithmetic, operands_of, operations_of,
    region_with_block, result_of, results_of,
};
use cohort_dialects::equal::Distinct;
use cohort_dialects::keys;
use melior::{
    Context,
    ir::{
        Attribute, OperationRef, Type, ValueLike,
        attribute::{FlatSymbolRefAttribute, StringAttribute, TypeAttribute},
        operation::OperationLike,
    },
};

use crate::pass::{Outcome, PassInfo};
use crate::support::copies::copy_op;
use crate::support::dims;
use crate::support::ir::{
    COMPUTED, GRADIENT_OF, TensorType, blocks_of, defining_op, elem_of, erase, functions_of,
    integers, is_tensor, kernel_of, key, name_attribute, nested_ops, op_key, replace_uses,
    set_attribute, symbol_of, top_level, users_of,
};
use rows::{keeps_rows, number_of_rows, repeat, repetition, row_of};

/// The pass `hoist-constants`.
pub const PASS: PassInfo = PassInfo {
    name: "hoist-constants",
    summary: "Compute what is made of parameters alone once, when they are loaded (levels 0 and 2)",
    description: include_str!("hoist_constants.rs"),
    run,
};

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    let Some(mut weights) = Weights::new(context, module) else {
        return Ok(());
    };
    for scope in top_level(module) {
        let name = symbol_of(scope).unwrap_or_default();
        let is_code = matches!(Op::of(scope), Some(Op::FuncFunc | Op::CfbKernel));
        if is_code && !weights.kernels.contains(&name) {
            hoist_in(&mut weights, scope);
        }
    }
    for kernel in top_level(module) {
        if Op::CfbKernel.is(kernel) {
            read_weights_directly(context, module, kernel);
        }
    }
    Ok(())
}

/// What of a function or kernel depends on parameters and constants only.
struct Fixed<'c> {
    /// By operation, in order: whether something is worth computing at load.
    operations: HashMap<usize, Worth>,
    order: Vec<OperationRef<'c, 'c>>,
    /// The number of rows, of a kernel whose unit is the row.
    rows: Option<Val<'c>>,
}

#[derive(Clone, Copy, Default)]
struct Worth {
    /// Some parameter is read.
    reads: bool,
    /// Something is computed from it that does not merely select elements.
    computes: bool,
    /// It is expensive enough to be worth a read where it would be made of nothing.
    worth_reading: bool,
}

impl Worth {
    fn read() -> Worth {
        Worth {
            reads: true,
            ..Worth::default()
        }
    }

    fn is_enough(self) -> bool {
        self.computes && (self.reads || self.worth_reading)
    }
}

impl<'c> Fixed<'c> {
    fn find(scope: OperationRef<'c, 'c>) -> Fixed<'c> {
        let mut fixed = Fixed {
            operations: HashMap::new(),
            order: Vec::new(),
            rows: number_of_rows(scope),
        };
        for operation in code_of(scope) {
            if let Some(worth) = fixed.worth_of(operation) {
                fixed.operations.insert(op_key(operation), worth);
                fixed.order.push(operation);
            }
        }
        fixed
    }

    /// Adds a read of a weight, or what repeats one, which stands before `next`.
    fn add_load(&mut self, load: OperationRef<'c, 'c>, next: OperationRef<'c, 'c>) {
        let at = self.order.iter().position(|op| op_key(*op) == op_key(next));
        self.order.insert(at.unwrap_or(0), load);
        self.operations.insert(op_key(load), Worth::read());
    }

    fn contains(&self, operation: OperationRef<'c, 'c>) -> bool {
        self.operations.contains_key(&op_key(operation))
    }

    /// `None` when the operation depends on anything else.
    fn worth_of(&self, operation: OperationRef<'c, 'c>) -> Option<Worth> {
        if Op::MlProgramGlobalLoadConst.is(operation) {
            return is_storable(result_of(operation, 0)).then(Worth::read);
        }
        if Op::ArithConstant.is(operation) {
            return Some(Worth::default());
        }
        let results = results_of(operation);
        let keeps_rows = self.rows.is_some_and(|rows| keeps_rows(operation, rows));
        let is_tensor_code = (is_arithmetic(operation)
            || matches!(
                Dialect::of(operation),
                Some(Dialect::Linalg | Dialect::Tensor)
            ))
            && !results.is_empty()
            && (results.iter())
                .all(|result| is_storable(*result) || keeps_rows && row_of(*result).is_some());
        if !is_tensor_code {
            return None;
        }
        let mut worth = Worth {
            reads: false,
            computes: !selects(operation),
            worth_reading: is_worth_reading(operation) && !counts(operation),
        };
        for value in outside_values(operation) {
            if keeps_rows && self.rows.is_some_and(|rows| key(rows) == key(value)) {
                continue;
            }
            let producer = self.operations.get(&op_key(defining_op(value)?))?;
            worth.reads |= producer.reads;
            worth.computes |= producer.computes;
            worth.worth_reading |= producer.worth_reading;
        }
        Some(worth)
    }
}

/// The operations of a function or kernel, those of its regions included; not those of blocks,
/// which are isolated, nor the scalar ones inside of structured operations.
fn code_of<'c>(scope: OperationRef<'c, 'c>) -> Vec<OperationRef<'c, 'c>> {
    let mut code = Vec::new();
    let mut stack = vec![scope];
    while let Some(parent) = stack.pop() {
        let children: Vec<_> = blocks_of(parent)
            .into_iter()
            .flat_map(operations_of)
            .collect();
        code.extend(children.iter().copied());
        stack.extend(
            children
                .into_iter()
                .rev()
                .filter(|child| !Op::CfbBlock.is(*child) && !Dialect::Linalg.has(*child)),
        );
    }
    code
}

/// Whether a kernel reads the result through an address of its operand's memory.
fn selects(operation: OperationRef<'_, '_>) -> bool {
    matches!(
        Op::of(operation),
        Some(
            Op::LinalgFill
                | Op::LinalgBroadcast
                | Op::TensorEmpty
                | Op::TensorExtractSlice
                | Op::TensorCollapseShape
                | Op::TensorExpandShape
                | Op::TensorFromElements
                | Op::TensorSplat
                | Op::TensorCast
        )
    )
}

/// Whether its result, made of nothing but constants, is rather read than computed again.
fn is_worth_reading(operation: OperationRef<'_, '_>) -> bool {
    let is_structured = Dialect::Linalg.has(operation) && !selects(operation);
    is_structured || Dialect::Math.has(operation) || Op::TensorConcat.is(operation)
}

/// Whether each element is made of its own indices, by no more than a conversion: `iota`.
fn counts(operation: OperationRef<'_, '_>) -> bool {
    let outputs = results_of(operation).len();
    Op::LinalgGeneric.is(operation)
        && operands_of(operation).len() == outputs
        && nested_ops(operation).into_iter().all(|op| {
            let kind = Op::of(op);
            matches!(
                kind,
                Some(Op::LinalgIndex | Op::ArithIndexCast | Op::LinalgYield)
            )
        })
}

/// A tensor of fixed shape, with elements, that an arena can hold.
fn is_storable(value: Val<'_>) -> bool {
    TensorType::of_value(value).is_some_and(|ty| is_storable_type(&ty))
}

fn is_storable_type(ty: &TensorType<'_>) -> bool {
    ty.shape.iter().all(|dim| dim.is_some_and(|size| size > 0)) && elem_of(ty.element).is_some()
}

/// The operands of an operation and what its regions use from outside of it.
fn outside_values<'c>(operation: OperationRef<'c, 'c>) -> Vec<Val<'c>> {
    let nested = nested_ops(operation);
    let mut inside: HashSet<usize> = HashSet::new();
    for op in std::iter::once(operation).chain(nested.iter().copied()) {
        let arguments = blocks_of(op).into_iter().flat_map(arguments_of);
        inside.extend(arguments.map(key));
    }
    inside.extend(nested.iter().flat_map(|op| results_of(*op)).map(key));
    let mut values = operands_of(operation);
    values.extend(nested.into_iter().flat_map(operands_of));
    values.retain(|value| !inside.contains(&key(*value)));
    values
}

/// Hoists what the rest of a function or kernel reads.
fn hoist_in<'c>(weights: &mut Weights<'c>, scope: OperationRef<'c, 'c>) {
    let mut fixed = Fixed::find(scope);
    let mut wanted: Vec<Val<'c>> = Vec::new();
    for operation in &fixed.order {
        for result in results_of(*operation) {
            for user in users_of(result) {
                if !is_fixed_use(&fixed, user) {
                    let packed = is_right_side(user, result) && !is_panel_view(&fixed, result);
                    wanted.extend(to_hoist(&fixed, result, packed));
                }
            }
        }
    }
    let mut seen = HashSet::new();
    wanted.retain(|value| seen.insert(key(*value)));
    for value in wanted {
        weights.hoist(&mut fixed, value);
    }
}

/// Whether the user, or the structured operation that it is in, is fixed as well.
fn is_fixed_use<'c>(fixed: &Fixed<'c>, user: OperationRef<'c, 'c>) -> bool {
    let mut current = Some(user);
    while let Some(operation) = current {
        if fixed.contains(operation) {
            return true;
        }
        current = operation
            .parent_operation()
            .map(cohort_dialects::builder::extend_op);
    }
    false
}

/// What to compute at load so that a fixed value costs nothing more than reads: itself, or what it
/// selects from.
fn to_hoist<'c>(fixed: &Fixed<'c>, value: Val<'c>, packed: bool) -> Option<Val<'c>> {
    let producer = defining_op(value)?;
    if Op::MlProgramGlobalLoadConst.is(producer) || !is_tensor(value.r#type()) {
        return None;
    }
    let worth = fixed.operations.get(&op_key(producer))?;
    if packed && worth.reads {
        return Some(value);
    }
    if !worth.is_enough() {
        return None;
    }
    if selects(producer) {
        return to_hoist(fixed, *operands_of(producer).first()?, false);
    }
    Some(value)
}

/// Whether a product takes the value as the matrix that all its rows share.
fn is_right_side<'c>(user: OperationRef<'c, 'c>, value: Val<'c>) -> bool {
    matches!(Op::of(user), Some(Op::LinalgMatmul | Op::LinalgVecmat))
        && operands_of(user)
            .get(1)
            .is_some_and(|right| key(*right) == key(value))
}

/// Whether a matrix can be read from a parameter's, or a hoisted tensor's, panels: whole rows of it.
fn is_panel_view<'c>(fixed: &Fixed<'c>, value: Val<'c>) -> bool {
    let Some(producer) = defining_op(value) else {
        return false;
    };
    let last = |value: Val<'c>| TensorType::of_value(value).and_then(|ty| ty.shape.last().copied());
    match Op::of(producer) {
        Some(Op::TensorExtractSlice | Op::TensorCollapseShape | Op::TensorExpandShape) => {
            let source = operands_of(producer)[0];
            // Only neighbouring rows are a part of the panels.
            let strides = integers(producer, keys::STATIC_STRIDES);
            let dense = strides.iter().all(|stride| *stride == 1);
            dense && last(source) == last(value) && is_panel_view(fixed, source)
        }
        kind => {
            let worth = fixed.operations.get(&op_key(producer));
            kind == Some(Op::MlProgramGlobalLoadConst)
                || !selects(producer) && worth.is_some_and(|worth| worth.is_enough())
        }
    }
}

/// The globals that kernels compute.
struct Weights<'c> {
    context: &'c Context,
    /// New ones go before the first operation of the module that is not a parameter's, so each
    /// stands behind what it is computed from.
    top: Builder<'c>,
    /// The kernels that compute weights.
    kernels: HashSet<String>,
    /// The globals, by their kernels.
    known: Distinct<'c, String>,
    symbols: HashSet<String>,
    next: usize,
}

impl<'c> Weights<'c> {
    /// `None` for an empty module.
    fn new(context: &'c Context, module: OperationRef<'c, 'c>) -> Option<Self> {
        let operations = top_level(module);
        let last = operations
            .iter()
            .rposition(|op| Op::MlProgramGlobal.is(*op));
        let behind = last.map_or(0, |last| last + 1);
        let top = match operations.get(behind) {
            Some(next) => Builder::before(context, *next)?,
            None => {
                let body = blocks_of(module).first().copied()?;
                Builder::at_end(context, body, module.location())
            }
        };
        Some(Weights {
            context,
            top,
            kernels: operations
                .iter()
                .filter_map(|op| name_attribute(*op, COMPUTED))
                .collect(),
            known: Distinct::default(),
            symbols: operations.iter().filter_map(|op| symbol_of(*op)).collect(),
            next: 0,
        })
    }

    /// Makes a fixed value a read of a weight.
    fn hoist(&mut self, fixed: &mut Fixed<'c>, value: Val<'c>) {
        let Some(producer) = defining_op(value) else {
            return;
        };
        let kernel = self.kernel(fixed, value, producer);
        let of_rows = row_of(value).zip(fixed.rows);
        let ty = of_rows
            .as_ref()
            .map_or(value.r#type(), |(row, _)| row.to_type());
        let global = match self.known.get(kernel).cloned() {
            Some(global) => {
                erase(kernel);
                global
            }
            None => {
                let global = self.global(kernel, ty);
                self.known.insert(kernel, global.clone());
                global
            }
        };
        let Some(before) = Builder::before(self.context, producer) else {
            return;
        };
        let mut read = before.global(before.symbol(&global), ty);
        if let Some(load) = defining_op(read) {
            fixed.add_load(load, producer);
        }
        if let Some((_, rows)) = of_rows {
            read = repeat(&before, rows, read);
            for operation in repetition(read) {
                fixed.add_load(operation, producer);
            }
        }
        replace_uses(value, read);
    }

    /// A kernel, still without its name, that gives the value for each of its rows.
    fn kernel(
        &self,
        fixed: &Fixed<'c>,
        value: Val<'c>,
        producer: OperationRef<'c, 'c>,
    ) -> OperationRef<'c, 'c> {
        let location = producer.location();
        let (region, body) = region_with_block(&[Type::index(self.context)], location);
        let inner = Builder::at_end(self.context, body, location);
        let mut copies: HashMap<usize, Val<'c>> = HashMap::new();
        let rows = arguments_of(body)[0];
        copies.extend(fixed.rows.map(|of_scope| (key(of_scope), rows)));
        for operation in needed(fixed, producer) {
            copy_op(&inner, operation, &mut copies);
        }
        let copy = copies.get(&key(value)).copied().unwrap_or(value);
        let result = match row_of(copy) {
            Some(_) => copy,
            None => repeat(&inner, rows, copy),
        };
        inner.cfb_yield(&[result]);
        let name =
            |text: &str| -> Attribute<'c> { StringAttribute::new(self.context, text).into() };
        self.top.at(location).op(
            Op::CfbKernel,
            &[],
            &[],
            &[
                (keys::SYM_NAME, name("kernel")),
                (keys::SYM_VISIBILITY, name("private")),
            ],
            vec![region],
        )
    }

    /// Names the kernel and declares what it computes.
    fn global(&mut self, kernel: OperationRef<'c, 'c>, ty: Type<'c>) -> String {
        let (kernel_name, name) = loop {
            let number = self.next;
            self.next += 1;
            let names = (format!("compute_{number}"), format!("computed_{number}"));
            if !self.symbols.contains(&names.0) && !self.symbols.contains(&names.1) {
                break names;
            }
        };
        self.symbols.extend([kernel_name.clone(), name.clone()]);
        self.kernels.insert(kernel_name.clone());
        let text =
            |text: &str| -> Attribute<'c> { StringAttribute::new(self.context, text).into() };
        set_attribute(kernel, keys::SYM_NAME, text(&kernel_name));
        let symbol: Attribute<'c> = FlatSymbolRefAttribute::new(self.context, &kernel_name).into();
        self.top.at(kernel.location()).op(
            Op::MlProgramGlobal,
            &[],
            &[],
            &[
                (keys::SYM_NAME, text(&name)),
                (keys::SYM_VISIBILITY, text("private")),
                (keys::TYPE, TypeAttribute::new(ty).into()),
                (keys::VALUE, self.top.external(ty)),
                (COMPUTED, symbol),
            ],
            vec![],
        );
        name
    }
}

/// The operations that a fixed one is made of, itself included, in order.
fn needed<'c>(fixed: &Fixed<'c>, last: OperationRef<'c, 'c>) -> Vec<OperationRef<'c, 'c>> {
    let mut found = HashSet::from([op_key(last)]);
    let mut stack = vec![last];
    while let Some(operation) = stack.pop() {
        let producers = outside_values(operation)
            .into_iter()
            .filter_map(defining_op);
        stack.extend(producers.filter(|producer| found.insert(op_key(*producer))));
    }
    fixed
        .order
        .iter()
        .copied()
        .filter(|operation| found.contains(&op_key(*operation)))
        .collect()
}

/// A result that is a parameter or a computed weight for every row is not recorded but read.
fn read_weights_directly<'c>(
    context: &'c Context,
    module: OperationRef<'c, 'c>,
    kernel: OperationRef<'c, 'c>,
) {
    // Of a call's many rows no weight is a handle.
    if dims::has_lengths(kernel) {
        return;
    }
    let name = symbol_of(kernel);
    // A gradient that reaches the call goes on to the parameters from there.
    let is_differentiated = functions_of(module)
        .into_iter()
        .any(|function| name_attribute(function, GRADIENT_OF) == name);
    if is_differentiated {
        return;
    }
    let Some(end) = blocks_of(kernel)
        .first()
        .and_then(|body| operations_of(*body).last().copied())
    else {
        return;
    };
    let weights: Vec<_> = operands_of(end).into_iter().map(repeated_weight).collect();
    if weights.iter().all(Option::is_none) {
        return;
    }
    let records = nested_ops(module)
        .into_iter()
        .filter(|op| Op::CfbRecord.is(*op) && kernel_of(*op) == name);
    for record in records {
        for (result, weight) in results_of(record).into_iter().zip(&weights) {
            let (Some(weight), Some(before)) = (weight, Builder::before(context, record)) else {
                continue;
            };
            if !users_of(result).is_empty() {
                replace_uses(result, before.cfb_param(*weight, result.r#type()));
            }
        }
    }
}

/// The symbol of the weight that is broadcast whole to every row.
fn repeated_weight(value: Val<'_>) -> Option<Attribute<'_>> {
    let broadcast = defining_op(value).filter(|op| Op::LinalgBroadcast.is(*op))?;
    let load =
        defining_op(operands_of(broadcast)[0]).filter(|op| Op::MlProgramGlobalLoadConst.is(*op))?;
    (integers(broadcast, keys::DIMENSIONS) == [0])
        .then(|| load.attribute(&keys::GLOBAL).ok())
        .flatten()
}
