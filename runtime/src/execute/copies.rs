//! Rows of operands copied together before a launch, where kernels read no lists (`--without gather-fusion`).

use cohort_abi::OperandRef;
use cohort_abi::manifest::{Operand, Unit};

use super::kernel::Kernel;
use super::launch::{Flush, Placed};
use super::workers::Shape;
use crate::error::Error;
use crate::memory::arena::PoolBase;

/// Copies the rows of each operand that is not contiguous together; returns how many.
pub fn copy_operands(
    flush: &Flush<'_>,
    kernel: &Kernel,
    placed: &Placed,
    operands: &mut [OperandRef],
    copies: *mut u8,
) -> Result<u64, Error> {
    let tables = placed
        .ragged
        .map(|ragged| flush.ragged.launches[ragged].tables);
    let spans = tables.and_then(|tables| flush.tables.spans(kernel, tables));
    let mut rows = 0;
    let mut to = copies;
    for (operand, given) in kernel.operands.iter().zip(operands) {
        let pool = match operand {
            Operand::Row { pool } | Operand::Stacked { pool, .. } => pool,
            // Where the unit is the call, its rows lie behind each other anyway.
            Operand::Ragged { pool, .. } if kernel.form.unit == Unit::Rows => pool,
            _ => continue,
        };
        if std::ptr::eq(given.index, flush.identity.as_ptr()) {
            continue;
        }
        let row_bytes = flush.bases[*pool].row_bytes;
        let copy = Copy {
            from: *given,
            to,
            row_bytes,
        };
        let shape = Shape {
            rows: u64::from(placed.entries),
            row_tile: 1,
            row_work: row_bytes as u64,
        };
        let run = |begin, end, _: *mut u8| copy.run(begin, end);
        match spans {
            // What is between the rows of calls names no row.
            Some(spans) => flush.each_span(spans, shape, &run)?,
            None => flush.each_range(shape, &run)?,
        }
        *given = OperandRef {
            base: to.cast_const().cast(),
            index: flush.identity.as_ptr(),
            offsets: std::ptr::null(),
        };
        to = to.wrapping_add(copy_bytes(row_bytes, placed.entries));
        rows += u64::from(placed.entries);
    }
    Ok(rows)
}

/// What the copy of an operand takes, so that the next one is aligned like rows are.
fn copy_bytes(row_bytes: usize, entries: u32) -> usize {
    (row_bytes * entries as usize).next_multiple_of(64)
}

/// The room that the copies of a launch's operands may need.
pub fn copies_bytes(kernel: &Kernel, entries: u32, bases: &[PoolBase]) -> usize {
    let rows = kernel.operands.iter().map(|operand| match operand {
        Operand::Row { pool } | Operand::Ragged { pool, .. } | Operand::Stacked { pool, .. } => {
            copy_bytes(bases[*pool].row_bytes, entries)
        }
        // Lists are never copied.
        Operand::Rows { .. } | Operand::Scalar(_) | Operand::Length => 0,
    });
    rows.sum()
}

struct Copy {
    from: OperandRef,
    to: *mut u8,
    row_bytes: usize,
}

// SAFETY: threads get disjoint ranges of rows, each writes those of its range, and what is read is
// written by nobody meanwhile.
unsafe impl Sync for Copy {}

impl Copy {
    fn run(&self, begin: u64, end: u64) {
        for row in begin as usize..end as usize {
            // SAFETY: the index lists rows of the base's row pool, which was checked when it was
            // written; the room for copies holds as many rows as the launch has calls, and does not
            // overlap the arena.
            unsafe {
                let from = (self.from.base as *const u8)
                    .add(*self.from.index.add(row) as usize * self.row_bytes);
                let to = self.to.add(row * self.row_bytes);
                std::ptr::copy_nonoverlapping(from, to, self.row_bytes);
            }
        }
    }
}
