//! Writes the function of one kernel.

use cohort_abi::manifest::{CallShape, Elem, RowProduct, WeightFormat};
use cohort_dialects::builder::{Builder, Op, Val, arguments_of, region_with_block};
use cohort_dialects::keys;
use cohort_passes::kernel::call_shape;
use cohort_passes::kernel::description::{
    ATTRIBUTE, KernelDescription, OperandDescription, to_json,
};
use cohort_passes::kernel::loop_level::OperandKind;
use cohort_passes::pass::{Failed, Outcome, error};
use cohort_passes::support::ir::{integers, name_attribute, symbol_of};
use melior::{
    Context,
    ir::{
        OperationRef, Type,
        attribute::{StringAttribute, TypeAttribute},
        operation::OperationLike,
        r#type::FunctionType,
    },
};

use super::frame::{Block, Frame};
use super::scratch::ScratchMap;
use super::{compute, fold, loops, product, reduce_rows};
use crate::emit::{Emitter, Width};
use crate::read_rows::kernel::{Kernel, number, row_type};
use crate::read_rows::memory::{Arguments, OperandFields};

/// What a product calls.
pub struct Called {
    /// What its weight is kept in.
    pub format: WeightFormat,
    /// Whether threads may share it.
    pub is_shared: bool,
}

/// Adds the function before the kernel; tells what each of its products calls.
pub fn lower<'c>(context: &'c Context, op: OperationRef<'c, 'c>) -> Result<Vec<Called>, Failed> {
    let kernel = Kernel::read(op)?;
    let map = ScratchMap::new(&kernel);
    let name = symbol_of(op).ok_or_else(|| error(op, "expected a kernel with a name"))?;

    let before =
        Builder::before(context, op).ok_or_else(|| error(op, "expected a kernel in a module"))?;
    let pointer = before.pointer();
    let arguments = [
        before.i64(),
        before.i64(),
        pointer,
        pointer,
        pointer,
        pointer,
    ];
    let (region, entry) = region_with_block(&arguments, op.location());
    let e = Emitter::new(Builder::at_end(context, entry, op.location()));
    write(&e, &kernel, &map, &arguments_of(entry))?;
    e.b.return_(&[]);

    let description = describe(&kernel, &name, &map)?;
    let ty: Type<'c> = FunctionType::new(context, &arguments, &[]).into();
    before.op(
        Op::FuncFunc,
        &[],
        &[],
        &[
            (keys::SYM_NAME, StringAttribute::new(context, &name).into()),
            (keys::FUNCTION_TYPE, TypeAttribute::new(ty).into()),
            (
                ATTRIBUTE,
                StringAttribute::new(context, &to_json(&description)).into(),
            ),
        ],
        vec![region],
    );
    let products = kernel.rows.iter().filter(|stage| is_product(stage));
    let called = products.map(|stage| product::called(&kernel, *stage));
    called.collect()
}

fn is_product(stage: &OperationRef<'_, '_>) -> bool {
    Op::RaggedProduct.is(*stage)
}

fn write<'c>(
    e: &Emitter<'c>,
    kernel: &Kernel<'c>,
    map: &ScratchMap,
    arguments: &[Val<'c>],
) -> Outcome {
    let &[begin, end, operands, results, table, scratch] = arguments else {
        return Ok(());
    };
    let constants = (0..kernel.constants.len() as i64)
        .map(|index| e.load_pointer(table, index))
        .collect();
    let frame = Frame {
        map,
        scratch,
        arguments: Arguments {
            kernel,
            operands: (0..kernel.operands.len() as i64)
                .map(|i| OperandFields {
                    base: e.load_pointer(operands, 3 * i),
                    index: e.load_pointer(operands, 3 * i + 1),
                    offsets: e.load_pointer(operands, 3 * i + 2),
                })
                .collect(),
            results: (0..kernel.results.len() as i64)
                .map(|i| e.load_pointer(results, i))
                .collect(),
        },
        constants,
    };
    let zero = e.bits(0, Elem::F32, Width::Vector);
    e.store(zero, e.offset_by(scratch, map.zeros), 4);
    for stage in &kernel.shared {
        write_stage(e, &frame, *stage, None)?;
    }
    let mut written = Ok(());
    e.for_loop(begin, end, kernel.block_rows, &[], |e, first, _| {
        let count = e.min(e.sub(end, first), e.int(kernel.block_rows));
        let mut stages = kernel.rows.iter();
        let block = Some(Block { first, count });
        written = stages.try_for_each(|stage| write_stage(e, &frame, *stage, block));
        vec![]
    });
    written
}

fn write_stage<'c>(
    e: &Emitter<'c>,
    frame: &Frame<'_, 'c>,
    stage: OperationRef<'c, 'c>,
    block: Option<Block<'c>>,
) -> Outcome {
    match (Op::of(stage), block) {
        (Some(Op::RaggedNest), _) => compute::nest(e, frame, stage, block),
        (Some(Op::RaggedFold), _) => fold::fold(e, frame, stage, block),
        (Some(Op::RaggedFoldList), _) => reduce_rows::fold_list(e, frame, stage, block),
        (Some(Op::RaggedLoops), _) => loops::loops(e, frame, stage, block),
        (Some(Op::RaggedPackPanels), _) => product::pack(e, frame, stage),
        (Some(Op::RaggedProduct), Some(block)) => product::product(e, frame, stage, block),
        _ => Err(error(stage, "expected a stage of a kernel")),
    }
}

fn describe(
    kernel: &Kernel<'_>,
    name: &str,
    map: &ScratchMap,
) -> Result<KernelDescription, Failed> {
    let operands = kernel.operands.iter().map(|operand| {
        let pool = row_type(&operand.memory);
        match operand.kind {
            OperandKind::Row => OperandDescription::Row { pool },
            OperandKind::List => OperandDescription::Rows { pool },
            OperandKind::Scalar => OperandDescription::Scalar(pool.elem),
            OperandKind::Length => OperandDescription::Length,
            OperandKind::Expanded => OperandDescription::Ragged { pool, extent: 0 },
            OperandKind::Stacked => OperandDescription::Stacked { pool, extent: 0 },
        }
    });
    let mut flops = 0;
    for product in kernel.stages().filter(is_product) {
        let sizes = [
            number(product, keys::ROWS)?,
            number(product, keys::K)?,
            number(product, keys::COLUMNS)?,
        ];
        flops += 2 * sizes.iter().product::<i64>();
    }
    let row_products = integers(kernel.op, keys::ROW_PRODUCTS);
    let row_products = row_products.chunks_exact(2).map(|pair| RowProduct {
        operand: pair[0] as usize,
        flops: pair[1] as u64,
    });
    let location = cohort_dialects::location::file_line_col(kernel.op.location());
    Ok(KernelDescription {
        name: name_attribute(kernel.op, keys::SOURCE).unwrap_or_else(|| name.to_owned()),
        symbol: name.to_owned(),
        location: location.map_or(String::new(), |(file, line, column)| {
            format!("{file}:{line}:{column}")
        }),
        operands: operands.collect(),
        results: kernel.results.iter().map(row_type).collect(),
        constants: kernel.constants.clone(),
        scratch_bytes: map.bytes as u64,
        row_tile: kernel.row_tile as u64,
        flops_per_row: flops as u64,
        row_products: row_products.collect(),
        call: CallShape {
            fused: kernel.fused,
            ..call_shape::of(kernel.op).call
        },
        gpu: None,
    })
}
