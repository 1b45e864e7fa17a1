//! Writes products: the table of left rows, then one call of the shared code, or one for each row tile
//! where the kernel asks for smaller ones.

use cohort_abi::manifest::WeightFormat;
use cohort_abi::symbols;
use cohort_dialects::builder::{Val, operands_of};
use cohort_dialects::keys;
use cohort_passes::kernel::affine::Affine;
use cohort_passes::kernel::description::ConstantDescription;
use cohort_passes::kernel::loop_level::{Memory, address_of};
use cohort_passes::kernel::rows::layout::{LANES, Place};
use cohort_passes::kernel::rows::stage::{PANEL, TILE_ROWS, product_row_bytes};
use cohort_passes::pass::{Failed, Outcome, error};
use cohort_passes::support::ir::integers;
use melior::ir::{OperationRef, operation::OperationLike};

use super::compute::{Computer, Known, Lanes};
use super::frame::{Block, Frame, Rows};
use super::function::Called;
use crate::cpu::micro_kernels::{narrow_product, product as wide_product};
use crate::emit::{Emitter, Index, Width};
use crate::read_rows::body::{Body, block_of, yields};
use crate::read_rows::kernel::{Kernel, number};

/// Bytes of an `f32`, of which products are.
const BYTES: i64 = 4;

/// Bytes of an entry of the table of rows.
const ENTRY: i64 = 8;

/// Multiply-adds from which on threads may share a product: one or two microseconds, and some tenths of one to begin
/// and to end.
const SHARED_FROM: i64 = 1 << 16;

/// What a `ragged.product` says.
struct Product {
    left: Place,
    /// The first element of each of the row's matrix rows.
    address: Affine,
    rows: i64,
    k: i64,
    columns: i64,
    /// The panels, how many rows they have, the columns of one, what each number is kept in, and where the product
    /// begins in them.
    right: Place,
    right_rows: i64,
    width: i64,
    format: WeightFormat,
    row: i64,
    /// Shared elements that it starts from; what the memory holds.
    start: Option<(Place, i64)>,
    onto: bool,
    memory: Place,
    tile: i64,
}

impl Product {
    fn read<'c>(frame: &Frame<'_, 'c>, op: OperationRef<'c, 'c>) -> Result<Product, Failed> {
        let operands = operands_of(op);
        let place = |value: Val<'c>| frame.arguments.kernel.place(value);
        let (right, columns) = (place(operands[1]), number(op, keys::COLUMNS)?);
        let (width, format) = panels(frame.arguments.kernel, op)?;
        let right_rows = match right {
            Place::Constant(_) => {
                let memory = Memory::of(operands[1]);
                memory.map_or(0, |memory| memory.elements() / columns)
            }
            _ => number(op, keys::K)?,
        };
        let start = match operands[..] {
            [_, _, start, _] => Some((place(start), number(op, keys::OFFSET)?)),
            _ => None,
        };
        Ok(Product {
            left: place(operands[0]),
            address: address_of(op).ok_or_else(|| error(op, "expected a linear map"))?,
            rows: number(op, keys::ROWS)?,
            k: number(op, keys::K)?,
            columns,
            right,
            right_rows,
            width,
            format,
            row: number(op, keys::ROW)?,
            start,
            onto: op.has_attribute(&keys::ONTO),
            memory: place(operands[operands.len() - 1]),
            tile: number(op, keys::TILE)?,
        })
    }
}

/// What a product of the kernel calls.
pub fn called<'c>(kernel: &Kernel<'c>, op: OperationRef<'c, 'c>) -> Result<Called, Failed> {
    let (width, format) = panels(kernel, op)?;
    let columns = number(op, keys::COLUMNS)?;
    let most = kernel.block_rows.saturating_mul(number(op, keys::ROWS)?);
    let is_shared = width > 1 && shared_from(number(op, keys::K)?, columns) <= most;
    Ok(Called { format, is_shared })
}

/// How many rows a product has at least that threads may share: more than there are of one panel, which is computed as
/// a whole.
fn shared_from(k: i64, columns: i64) -> i64 {
    match columns > PANEL {
        true => 1 + (SHARED_FROM - 1) / k.saturating_mul(columns).max(1),
        false => i64::MAX,
    }
}

/// The columns of a panel of a product's right side, and what its numbers are kept in.
pub fn panels<'c>(
    kernel: &Kernel<'c>,
    op: OperationRef<'c, 'c>,
) -> Result<(i64, WeightFormat), Failed> {
    match kernel.place(operands_of(op)[1]) {
        Place::Constant(constant) => match &kernel.constants[constant] {
            ConstantDescription::Panels { width, format, .. } => Ok((*width as i64, *format)),
            _ => Err(error(op, "expected a packed parameter")),
        },
        _ => Ok((PANEL, WeightFormat::F32)),
    }
}

pub fn product<'c>(
    e: &Emitter<'c>,
    frame: &Frame<'_, 'c>,
    stage: OperationRef<'c, 'c>,
    block: Block<'c>,
) -> Outcome {
    let product = Product::read(frame, stage)?;
    let called = called(frame.arguments.kernel, stage)?;
    let table = e.offset_by(frame.scratch, frame.map.table);
    let rows = e.times(block.count, product.rows);
    fill_table(e, frame, &product, block, table, rows);

    let b = frame.address(e, product.right, None);
    let right_row = product.width * product.format.bytes() as i64;
    let b = e.offset_by(b, product.row * right_row);
    let c = frame.address(e, product.memory, None);
    let c_bytes = product_row_bytes(product.columns);
    let c_row = e.int(c_bytes);
    let zero = e.int(0);
    let (start, start_bytes, start_vector) = match product.start {
        Some((place, offset)) => {
            let base = frame.address(e, place, None);
            (e.offset_by(base, offset * BYTES), 0, e.int(LANES * BYTES))
        }
        None if product.onto => (c, c_bytes, e.int(LANES * BYTES)),
        None => (e.offset_by(frame.scratch, frame.map.zeros), 0, zero),
    };
    let start_row = match start_bytes {
        0 => zero,
        _ => c_row,
    };
    let (callee, columns) = match product.width {
        1 => (narrow_product(product.format), product.columns),
        _ => (
            wide_product(product.format),
            (product.columns + LANES - 1) / LANES,
        ),
    };
    let entry = e.int(ENTRY);
    let arguments = |e: &Emitter<'c>, [table, c, start, rows]: [Val<'c>; 4]| {
        [
            table,
            entry,
            b,
            e.int(product.right_rows * right_row),
            e.int(product.k),
            c,
            c_row,
            start,
            start_row,
            start_vector,
            rows,
            e.int(columns),
        ]
    };
    let call = |e: &Emitter<'c>, part: [Val<'c>; 4]| {
        let arguments = arguments(e, part);
        if !called.is_shared {
            return e.call(callee, &arguments);
        }
        let least = e.int(shared_from(product.k, product.columns));
        e.if_else(
            e.at_least(part[3], least),
            |e| {
                let product = e.address_of(callee);
                e.call(
                    symbols::SHARE_PRODUCT,
                    &[&[product], &arguments[..]].concat(),
                );
            },
            |e| e.call(callee, &arguments),
        );
    };
    if product.width == 1 || product.tile == TILE_ROWS {
        call(e, [table, c, start, rows]);
        return Ok(());
    }
    // The shared code has tiles of twelve rows; it gets smaller ones one by one.
    e.for_loop(e.int(0), rows, product.tile, &[], |e, row, _| {
        let part = [
            e.offset(table, e.times(row, ENTRY)),
            e.offset(c, e.times(row, c_bytes)),
            match start_bytes {
                0 => start,
                bytes => e.offset(start, e.times(row, bytes)),
            },
            e.min(e.sub(rows, row), e.int(product.tile)),
        ];
        call(e, part);
        vec![]
    });
    Ok(())
}

/// The address of every row of the left side, the last one repeated to fill a tile.
fn fill_table<'c>(
    e: &Emitter<'c>,
    frame: &Frame<'_, 'c>,
    product: &Product,
    block: Block<'c>,
    table: Val<'c>,
    rows: Val<'c>,
) {
    frame.for_rows(e, Some(block), |e, row| {
        let start = frame.address(e, product.left, row);
        let start = e.offset_by(start, product.address.constant * BYTES);
        let Some(row) = row else { return };
        let first = e.times(row.in_block, product.rows * ENTRY);
        let entry = e.offset(table, first);
        e.for_static(product.rows, 1, &[], |e, i, _| {
            let (entry, start) = match i.value {
                None => (entry, start),
                Some(i) => (
                    e.offset(entry, e.times(i, ENTRY)),
                    e.offset(start, e.times(i, product.address.coefficient(0) * BYTES)),
                ),
            };
            e.store(start, entry, 8);
            vec![]
        });
    });
    let end = e.offset(table, e.times(rows, ENTRY));
    let last = e.load(e.offset_by(end, -ENTRY), e.pointer, 8);
    for surplus in 0..TILE_ROWS - 1 {
        e.store(last, e.offset_by(end, surplus * ENTRY), 8);
    }
}

/// Packs a computed weight into panels, once a call.
pub fn pack<'c>(e: &Emitter<'c>, frame: &Frame<'_, 'c>, stage: OperationRef<'c, 'c>) -> Outcome {
    let over = integers(stage, keys::OVER);
    let [k, columns] = over[..] else {
        return Err(error(stage, "expected two loops"));
    };
    let block = block_of(stage, 0)?;
    let body = Body::read(frame.arguments.kernel, block, over, None)?;
    let value = body.id(yields(block)[0]);
    let elem = body.values[value].1;
    let computer = Computer::new(e, frame, &body, Rows::One(None));
    let packed = frame.address(e, frame.arguments.kernel.place(operands_of(stage)[0]), None);
    let whole = columns / LANES;
    let write = |e: &Emitter<'c>, vector: Index<'c>, half: i64, mask: Option<Val<'c>>| {
        // `vector` counts panels, `half` is the vector in it.
        e.for_static(k, 1, &[], |e, i, _| {
            let column = Index {
                value: vector.value.map(|panel| e.times(panel, PANEL)),
                constant: vector.constant * PANEL + half * LANES,
            };
            let lanes = Lanes {
                width: Width::Vector,
                dim: Some(1),
                mask,
            };
            let value = computer.value(e, value, &[i, column], lanes, &mut Known::new());
            let value = match mask {
                Some(mask) => e.select(mask, value, e.bits(0, elem, Width::Vector)),
                None => value,
            };
            let at = e.offset(packed, e.times(e.index_value(vector), k * PANEL * 4));
            let at = e.offset(at, e.times(e.index_value(i), PANEL * 4));
            e.store_elem(
                value,
                e.offset_by(at, half * LANES * 4),
                elem,
                Width::Vector,
                None,
            );
            vec![]
        });
    };
    for half in 0..2 {
        e.for_static((whole - half + 1) / 2, 1, &[], |e, panel, _| {
            write(e, panel, half, None);
            vec![]
        });
    }
    if columns % LANES != 0 {
        let mask = e.mask(columns % LANES);
        write(e, Index::constant(whole / 2), whole % 2, Some(mask));
    }
    Ok(())
}
