//! Writes products: the table of left rows, then one call of the shared code.

use cohort_dialects::builder::Val;
use melior::ir::attribute::FlatSymbolRefAttribute;

use super::compute::{Computer, Known, Lanes, place_of};
use super::frame::{Block, Frame};
use super::micro_kernels::{NARROW_PRODUCT, PRODUCT};
use super::scratch::ROW_TILE;
use crate::codegen::emit::{Emitter, Index, Width};
use crate::kernel::rows::body::Body;
use crate::kernel::rows::layout::{LANES, Place, elem_bytes};
use crate::kernel::rows::stage::{PANEL, Product, Start, Weight, product_row_bytes};

pub fn product<'c>(e: &Emitter<'c>, frame: &Frame<'_, 'c>, product: &Product, block: Block<'c>) {
    let table = e.offset_by(frame.scratch, frame.map.table);
    let rows = e.times(block.count, product.rows);
    fill_table(e, frame, product, block, table, rows);

    let (b, panel_rows, width) = match &product.weight {
        Weight::Panels {
            param,
            offset,
            rows,
            width,
        } => {
            let b = e.offset_by(frame.panels[param], offset * width * 4);
            (b, *rows, *width)
        }
        Weight::Packed { slot } => {
            let b = frame.address(e, Place::Slot(*slot), None);
            (b, product.k, PANEL)
        }
    };
    let c = frame.address(e, product.c, None);
    let c_row = e.int(product_row_bytes(product.columns));
    let zero = e.int(0);
    let (start, start_row, start_vector) = match &product.start {
        Start::Zero => (e.offset_by(frame.scratch, frame.map.zeros), zero, zero),
        Start::Shared { buffer, offset } => {
            let base = frame.address(e, place_of(frame, *buffer), None);
            (e.offset_by(base, offset * 4), zero, e.int(LANES * 4))
        }
        Start::InPlace => (c, c_row, e.int(LANES * 4)),
    };
    let (callee, columns) = match width {
        1 => (NARROW_PRODUCT, product.columns),
        _ => (PRODUCT, (product.columns + LANES - 1) / LANES),
    };
    let arguments = [
        table,
        b,
        e.int(panel_rows * width * 4),
        e.int(product.k),
        c,
        c_row,
        start,
        start_row,
        start_vector,
        rows,
        e.int(columns),
    ];
    call(e, callee, &arguments);
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
    let node = &frame.graph.nodes[product.a.buffer];
    let bytes = elem_bytes(node.elem);
    let place = place_of(frame, product.a.buffer);
    frame.for_rows(e, Some(block), |e, row| {
        let start = frame.address(e, place, row.filter(|_| node.rows));
        let start = e.offset_by(start, product.a.offset * bytes);
        let Some(row) = row else { return };
        let first = e.times(row.in_block, product.rows * 8);
        let entry = e.offset(table, first);
        e.for_static(product.rows, 1, &[], |e, i, _| {
            let (entry, start) = match i.value {
                None => (entry, start),
                Some(i) => (
                    e.offset(entry, e.times(i, 8)),
                    e.offset(start, e.times(i, product.a_stride * bytes)),
                ),
            };
            e.store(start, entry, 8);
            vec![]
        });
    });
    let end = e.offset(table, e.times(rows, 8));
    let last = e.load(e.offset_by(end, -8), e.pointer, 8);
    for surplus in 0..ROW_TILE - 1 {
        e.store(last, e.offset_by(end, surplus * 8), 8);
    }
}

pub fn call<'c>(e: &Emitter<'c>, callee: &str, arguments: &[Val<'c>]) {
    let context = e.b.context();
    let segments = e.b.attr(&format!("array<i32: {}, 0>", arguments.len()));
    e.b.op(
        "llvm.call",
        arguments,
        &[],
        &[
            (
                "callee",
                FlatSymbolRefAttribute::new(context, callee).into(),
            ),
            ("operandSegmentSizes", segments),
            ("op_bundle_sizes", e.b.attr("array<i32>")),
        ],
        vec![],
    );
}

/// Packs a computed weight into panels, once a call.
pub fn pack<'c>(e: &Emitter<'c>, frame: &Frame<'_, 'c>, body: &Body<'c>, slot: usize) {
    let [k, columns] = body.domain[..] else {
        return;
    };
    let Some(store) = body.stores.first() else {
        return;
    };
    let elem = body.values[store.value].1;
    let computer = Computer::new(e, frame, body, None);
    let packed = frame.address(e, Place::Slot(slot), None);
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
            let value = computer.value(e, store.value, &[i, column], lanes, &mut Known::new());
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
}
