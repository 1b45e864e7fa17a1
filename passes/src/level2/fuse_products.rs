//! `fuse-products`: products of the same rows with different matrices become one product.
//!
//! Horizontal fusion: `x @ a` and `x @ b` are `x @ [a | b]`, cut in two. So are chains of products
//! that start from one another, when they take the same left sides in the same order, as the gates
//! of a recurrent cell do that were written apart. Each column is computed as before, start and
//! order of K included, so no bit changes; products of so few columns that their lanes run along K
//! are fused among themselves, as long as they still do. What changes is the work around: rows are
//! looked up once, and narrow products, each padded to a whole vector of columns, share one.
//!
//! ```mlir
//! %p = linalg.matmul ins(%x, %a : tensor<?x8xf32>, tensor<8x5xf32>) outs(%s : …) -> tensor<?x5xf32>
//! %q = linalg.matmul ins(%x, %b : tensor<?x8xf32>, tensor<8x1xf32>) outs(%t : …) -> tensor<?x1xf32>
//! // becomes
//! %w = tensor.concat dim(1) %a, %b : (tensor<8x5xf32>, tensor<8x1xf32>) -> tensor<8x6xf32>
//! %r = linalg.matmul ins(%x, %w : tensor<?x8xf32>, tensor<8x6xf32>) outs(%st : …) -> tensor<?x6xf32>
//! %p = tensor.extract_slice %r[0, 0] [%rows, 5] [1, 1] : tensor<?x6xf32> to tensor<?x5xf32>
//! %q = tensor.extract_slice %r[0, 5] [%rows, 1] [1, 1] : tensor<?x6xf32> to tensor<?x1xf32>
//! ```
//!
//! Only narrow products are fused (at most 64 columns each, 256 together): a wide one has work enough
//! of its own, and its result would leave the cache before it is read. A kernel with products of the same rows says how
//! wide the widest of them is in the end, `cfb.fused_columns = 6 : i64`. A tuning (see `apply-tuning`) may say how wide they
//! may become together, whatever each of them is: `cfb.tuning = {cell_1 = {fused_columns = 512 : i64}}`. With 1 none are
//! fused.
//!
//! The matrices side by side, and the biases that the products start from, are made of parameters
//! alone: `hoist-constants` computes them at load. The slices cost nothing, because a kernel reads
//! through them. Siblings that share no operand need no pass: elementwise work of equal shape is
//! one loop of a kernel anyway, and calls of one kernel are one launch.
//!
//! Requires: level 2, after `accumulate-products` has formed the chains. Leaves: level 2; what became
//! unused is left to the canonicaliser. Not fused: products that start from rows, or from anything
//! but zero or one vector for all rows; a chain of which only a part is shared.
//!
//! Horizontal fusion: ACRoBat, section 4.2; DyNet's and Cavs' fusion of gate products is the same
//! by hand.

use std::collections::HashSet;

use cohort_dialects::builder::{Builder, Op, Val, operands_of, operations_of, result_of};
use cohort_dialects::keys;
use cohort_dialects::marks::FUSED_COLUMNS;
use melior::{
    Context,
    ir::{
        OperationRef,
        attribute::{DenseI32ArrayAttribute, DenseI64ArrayAttribute, IntegerAttribute},
        operation::OperationLike,
        r#type::IntegerType,
    },
};

use crate::kernel::rows::stage::panel_width;
use crate::kernel::tuning::{Choice, Tuning, name_of_kernel};
use crate::level2::accumulate_products::{is_product, is_zero};
use crate::pass::{Outcome, PassInfo};
use crate::support::ir::{
    TensorType, blocks_of, clone_op, defining_op, integers, key, move_before, replace_uses,
    set_attribute, set_operand, set_type, top_level, users_of,
};

/// The pass `fuse-products`.
pub const PASS: PassInfo = PassInfo {
    name: "fuse-products",
    summary: "Make products of the same rows one product over all columns (level 2)",
    description: include_str!("fuse_products.rs"),
    run,
};

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    let tuning = Tuning::of(module)?;
    for kernel in top_level(module) {
        if !Op::CfbKernel.is(kernel) {
            continue;
        }
        let columns = tuning.get(&name_of_kernel(kernel), Choice::FusedColumns);
        let widest = fuse_in(context, kernel, &Widths::new(columns));
        if let Some(widest) = widest {
            let columns =
                IntegerAttribute::new(IntegerType::new(context, 64).into(), widest as i64);
            set_attribute(kernel, FUSED_COLUMNS, columns.into());
        }
    }
    Ok(())
}

/// Columns from which on a product gains nothing from company: its own work covers what a call and
/// a look-up of rows cost, and its last vector of columns is a small part of it.
const NARROW: u64 = 64;
/// Columns that a fused product may have. Rows of a wide result no longer stay in the fastest cache
/// until they are read: two products of 256 columns were a fifth slower as one of 512.
const WIDEST: u64 = 256;

/// Which products are fused.
struct Widths {
    /// Columns that each may have.
    of_one: u64,
    /// Columns that a fused product may have.
    together: u64,
}

impl Widths {
    /// Those that were measured to be the best for a kernel, if somebody has.
    fn new(tuned: Option<i64>) -> Widths {
        let tuned = tuned.and_then(|columns| u64::try_from(columns).ok());
        Widths {
            of_one: tuned.unwrap_or(NARROW),
            together: tuned.unwrap_or(WIDEST),
        }
    }
}

/// Products that start from one another; the first starts from the same for all rows.
struct Chain<'c> {
    /// In order.
    products: Vec<OperationRef<'c, 'c>>,
    start: Start<'c>,
    columns: u64,
}

#[derive(Clone, Copy)]
enum Start<'c> {
    Zero,
    /// This vector in every row.
    Vector(Val<'c>),
}

impl<'c> Chain<'c> {
    fn left_sides(&self) -> Vec<Val<'c>> {
        self.products.iter().map(|op| operands_of(*op)[0]).collect()
    }

    /// What chains must have in common to be fused: the left sides, and how each product runs.
    fn key(&self) -> Vec<(usize, i64)> {
        let lefts = self.left_sides().into_iter().map(key);
        let panels = self
            .products
            .iter()
            .map(|op| panels_of(operands_of(*op)[1]));
        lefts.zip(panels).collect()
    }

    /// Whether a fused product of `columns` columns runs as this one does.
    fn runs_alike(&self, columns: u64) -> bool {
        self.products.iter().all(|product| {
            let right = operands_of(*product)[1];
            let rows = TensorType::of_value(right).and_then(|ty| ty.shape[0]);
            let fused = panel_width(rows.unwrap_or(0) as i64, columns as i64);
            fused == panels_of(right)
        })
    }

    fn last(&self) -> OperationRef<'c, 'c> {
        self.products[self.products.len() - 1]
    }
}

/// Fuses group after group: a fused product may be what the next group reads. Gives the columns of the widest product
/// then, of those that have the same rows as another or had; none where there is none such.
fn fuse_in<'c>(context: &'c Context, kernel: OperationRef<'c, 'c>, widths: &Widths) -> Option<u64> {
    let body = blocks_of(kernel).first().copied()?;
    let mut done = HashSet::new();
    let mut widest = None;
    loop {
        let chains: Vec<_> = operations_of(body)
            .into_iter()
            .filter_map(chain_that_ends_in)
            .collect();
        let next = chains.iter().find(|chain| !done.contains(&chain.key()));
        let Some(wanted) = next.map(Chain::key) else {
            return widest;
        };
        let alike = chains.into_iter().filter(|chain| chain.key() == wanted);
        let alike: Vec<_> = alike.collect();
        if alike.len() > 1 {
            widest = widest.max(alike.iter().map(|chain| chain.columns).max());
        }
        for group in groups(alike, widths) {
            widest = widest.max(Some(group.iter().map(|chain| chain.columns).sum()));
            fuse(context, &group);
        }
        done.insert(wanted);
    }
}

/// The chains to fuse, of those with equal left sides: narrow ones, as many as stay narrow enough.
fn groups<'c>(chains: Vec<Chain<'c>>, widths: &Widths) -> Vec<Vec<Chain<'c>>> {
    let mut groups: Vec<Vec<Chain<'c>>> = vec![vec![]];
    let mut width = 0;
    let narrow = chains.into_iter();
    for chain in narrow.filter(|chain| chain.columns <= widths.of_one) {
        let together = width + chain.columns;
        let fits = together <= widths.together && chain.runs_alike(together);
        if !fits {
            groups.push(vec![]);
            width = 0;
        }
        width += chain.columns;
        if let Some(group) = groups.last_mut() {
            group.push(chain);
        }
    }
    groups.retain(|group| group.len() > 1);
    groups
}

/// Columns in a panel of the matrix, or of the parameter whose rows it is.
fn panels_of(matrix: Val<'_>) -> i64 {
    let last =
        |value: Val<'_>| TensorType::of_value(value).and_then(|ty| ty.shape.last().copied()?);
    let columns = last(matrix).unwrap_or(0);
    let mut whole = matrix;
    while let Some(producer) = defining_op(whole) {
        let source = match Op::of(producer) {
            Some(Op::TensorExtractSlice | Op::TensorCollapseShape | Op::TensorExpandShape) => {
                operands_of(producer)[0]
            }
            _ => break,
        };
        if last(source) != Some(columns) {
            break;
        }
        whole = source;
    }
    let elements: Option<u64> =
        TensorType::of_value(whole).and_then(|ty| ty.shape.into_iter().product());
    panel_width(
        (elements.unwrap_or(0) / columns.max(1)) as i64,
        columns as i64,
    )
}

/// The chain whose last product the operation is.
fn chain_that_ends_in<'c>(last: OperationRef<'c, 'c>) -> Option<Chain<'c>> {
    if !is_product(last) || users_of(result_of(last, 0)).is_empty() {
        return None;
    }
    let ty = TensorType::of_value(result_of(last, 0))?;
    let [None, Some(columns)] = ty.shape[..] else {
        return None;
    };
    if let [user] = users_of(result_of(last, 0))[..] {
        let is_start = operands_of(user).get(2).map(|v| key(*v)) == Some(key(result_of(last, 0)));
        if is_product(user) && is_start {
            return None;
        }
    }
    let mut products = vec![last];
    loop {
        let start = operands_of(*products.last()?)[2];
        match defining_op(start).filter(|op| is_product(*op)) {
            Some(before) if users_of(start).len() == 1 => products.push(before),
            Some(_) => return None,
            None => {
                products.reverse();
                return Some(Chain {
                    products,
                    start: start_of(start)?,
                    columns,
                });
            }
        }
    }
}

fn start_of(value: Val<'_>) -> Option<Start<'_>> {
    if is_zero(value) {
        return Some(Start::Zero);
    }
    let broadcast = defining_op(value).filter(|op| Op::LinalgBroadcast.is(*op))?;
    let vector = operands_of(broadcast)[0];
    let ty = TensorType::of_value(vector)?;
    let to = TensorType::of_value(value)?;
    let along_columns = ty.rank() == 1 && ty.shape[0].is_some() && ty.shape[0] == to.shape[1];
    let over_rows = integers(broadcast, keys::DIMENSIONS) == [0];
    (along_columns && over_rows).then_some(Start::Vector(vector))
}

fn fuse<'c>(context: &'c Context, group: &[Chain<'c>]) {
    let Some(at) = Builder::before(context, group[0].last()) else {
        return;
    };
    let first = group[0].last();
    for chain in group {
        for product in &chain.products {
            raise(operands_of(*product)[1], first);
        }
        if let Start::Vector(vector) = chain.start {
            raise(vector, first);
        }
    }
    let columns: u64 = group.iter().map(|chain| chain.columns).sum();
    let lefts = group[0].left_sides();
    let zero = at.index(0);
    let rows = at.tensor_dim(lefts[0], zero);
    let Some(ty) = TensorType::of_value(result_of(first, 0)) else {
        return;
    };
    let wide = TensorType {
        shape: vec![None, Some(columns)],
        ..ty.clone()
    };
    let mut sum = start(&at, group, rows, &wide);
    for (position, left) in lefts.into_iter().enumerate() {
        let parts: Vec<_> = group
            .iter()
            .map(|chain| operands_of(chain.products[position])[1])
            .collect();
        let matrix = concat(&at, &parts, 1);
        let product = at.insert(clone_op(group[0].products[position]));
        for (index, operand) in [left, matrix, sum].into_iter().enumerate() {
            set_operand(product, index, operand);
        }
        set_type(result_of(product, 0), wide.to_type());
        sum = result_of(product, 0);
    }
    let mut from = 0;
    for chain in group {
        let part = columns_of(
            &at.at(chain.last().location()),
            sum,
            rows,
            from,
            chain.columns,
        );
        replace_uses(result_of(chain.last(), 0), part);
        from += chain.columns;
    }
}

/// Moves what a value that is the same for all rows is made of before an operation, unless it stands
/// there already.
fn raise<'c>(value: Val<'c>, before: OperationRef<'c, 'c>) {
    let Some(producer) = defining_op(value) else {
        return;
    };
    if !is_behind(producer, before) {
        return;
    }
    for operand in operands_of(producer) {
        raise(operand, before);
    }
    move_before(producer, before);
}

/// Whether an operation comes after another one of its block.
fn is_behind<'c>(operation: OperationRef<'c, 'c>, other: OperationRef<'c, 'c>) -> bool {
    // SAFETY: both are alive and in one block, the kernel's body.
    unsafe { mlir_sys::mlirOperationIsBeforeInBlock(other.to_raw(), operation.to_raw()) }
}

/// What the fused product starts from.
fn start<'c>(
    at: &Builder<'c>,
    group: &[Chain<'c>],
    rows: Val<'c>,
    wide: &TensorType<'c>,
) -> Val<'c> {
    let empty = at.tensor_empty(&[rows], wide.to_type());
    if group.iter().all(|chain| matches!(chain.start, Start::Zero)) {
        let zero = at.constant(at.f32_attr(0.0), wide.element);
        return at.fill(zero, empty);
    }
    let parts: Vec<_> = group
        .iter()
        .map(|chain| match chain.start {
            Start::Vector(vector) => vector,
            Start::Zero => {
                let ty = at.tensor_type(&[Some(chain.columns)], at.f32());
                let zeros = at.splat(ty, at.f32_attr(0.0));
                at.constant(zeros, ty)
            }
        })
        .collect();
    at.broadcast(concat(at, &parts, 0), empty, &[0])
}

/// Tensors of known shape, side by side.
fn concat<'c>(at: &Builder<'c>, parts: &[Val<'c>], dim: usize) -> Val<'c> {
    let types: Vec<_> = parts
        .iter()
        .filter_map(|part| TensorType::of_value(*part))
        .collect();
    let mut ty = types[0].clone();
    ty.shape[dim] = types.iter().map(|ty| ty.shape[dim]).sum();
    at.concat(dim, parts, ty.to_type())
}

/// Columns `from..from + count` of every row.
fn columns_of<'c>(
    at: &Builder<'c>,
    rows_of: Val<'c>,
    rows: Val<'c>,
    from: u64,
    count: u64,
) -> Val<'c> {
    let context = at.context();
    // SAFETY: a pure function that returns MLIR's mark of a dynamic size.
    let dynamic = unsafe { mlir_sys::mlirShapedTypeGetDynamicSize() };
    let array = |values: &[i64]| DenseI64ArrayAttribute::new(context, values).into();
    let element = TensorType::of_value(rows_of).map_or(at.f32(), |ty| ty.element);
    let ty = TensorType {
        shape: vec![None, Some(count)],
        element,
    };
    at.value_with(
        Op::TensorExtractSlice,
        &[rows_of, rows],
        ty.to_type(),
        &[
            (keys::STATIC_OFFSETS, array(&[0, from as i64])),
            (keys::STATIC_SIZES, array(&[dynamic, count as i64])),
            (keys::STATIC_STRIDES, array(&[1, 1])),
            (
                keys::OPERAND_SEGMENT_SIZES,
                DenseI32ArrayAttribute::new(context, &[1, 0, 1, 0]).into(),
            ),
        ],
    )
}
