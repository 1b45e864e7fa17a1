//! Launches over rows whose calls have many rows each. What a call reads of an operand lies in one piece; so
//! the kernel is given each call's piece, call by call, instead of a list of all rows.
//!
//! A list costs a word a row, which is as much as a row of one number; a call costs a few instructions.

use cohort_abi::OperandRef;

use super::kernel::Kernel;

/// Rows that a launch's calls have on average, from which on they are computed call by call.
const LEAST_ROWS: usize = 32;

/// Whether the calls of a launch are better computed one by one than listed. Products gain more from full tiles.
pub(super) fn are_worth_it(kernel: &Kernel, calls: usize, rows: usize) -> bool {
    kernel.flops_per_row == 0 && rows >= calls.saturating_mul(LEAST_ROWS)
}

/// An operand that has one piece a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct PieceOperand<'a> {
    /// Its position among the kernel's operands.
    pub position: usize,
    pub row_bytes: usize,
    /// The first row of each call's piece.
    pub firsts: &'a [u32],
}

/// How a launch is computed call by call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pieces<'a> {
    /// Of each call the first of the launch's rows, and how many.
    pub spans: &'a [(u32, u32)],
    pub operands: &'a [PieceOperand<'a>],
}

impl Pieces<'_> {
    /// The calls that have rows in a range of the launch's, and which rows these are.
    pub fn within(&self, begin: u64, end: u64) -> impl Iterator<Item = (usize, u64, u64)> {
        let end_of = |(first, rows): &(u32, u32)| u64::from(*first) + u64::from(*rows);
        let from = self.spans.partition_point(|span| end_of(span) <= begin);
        let spans = self.spans.iter().enumerate().skip(from);
        spans
            .take_while(move |(_, (first, _))| u64::from(*first) < end)
            .map(move |(call, span)| (call, begin.max(span.0.into()), end.min(end_of(span))))
            .filter(|(_, begin, end)| begin < end)
    }

    /// Makes what the kernel is given for row 0 of each row pool what it is given for a call.
    pub fn move_to(&self, call: usize, of_pools: &[OperandRef], operands: &mut [OperandRef]) {
        for operand in self.operands {
            let rows = i64::from(operand.firsts[call]) - i64::from(self.spans[call].0);
            let base = of_pools[operand.position].base.cast::<u8>();
            let by = rows as isize * operand.row_bytes as isize;
            operands[operand.position].base = base.wrapping_offset(by).cast();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_of_rows_is_cut_where_calls_end() {
        // The second call has no rows, and there is room between the others.
        let pieces = Pieces {
            spans: &[(0, 3), (3, 0), (3, 4), (10, 2)],
            operands: &[],
        };
        let within = |begin, end| pieces.within(begin, end).collect::<Vec<_>>();
        assert_eq!(within(0, 12), [(0, 0, 3), (2, 3, 7), (3, 10, 12)]);
        assert_eq!(within(2, 5), [(0, 2, 3), (2, 3, 5)]);
        assert_eq!(within(3, 4), [(2, 3, 4)]);
        assert_eq!(within(7, 10), []);
        assert_eq!(within(11, 11), []);
    }

    #[test]
    fn an_operand_counts_from_where_the_rows_of_its_call_would_begin() {
        let operands = [PieceOperand {
            position: 1,
            row_bytes: 8,
            firsts: &[100, 2],
        }];
        let pieces = Pieces {
            spans: &[(0, 3), (3, 4)],
            operands: &operands,
        };
        let of_pool = OperandRef {
            base: std::ptr::without_provenance(1 << 20),
            index: std::ptr::null(),
            offsets: std::ptr::null(),
        };
        let given = [of_pool; 2];
        let mut moved = given;
        let mut at = |call| {
            pieces.move_to(call, &given, &mut moved);
            moved.map(|operand| operand.base.addr())
        };
        assert_eq!(at(0), [1 << 20, (1 << 20) + 800]);
        // Row 3 of the launch reads row 2.
        assert_eq!(at(1), [1 << 20, (1 << 20) - 8]);
    }
}
