//! Host arithmetic that must not trap or be undefined.

use cohort_abi::Failure;
use cohort_dialects::builder::{Builder, CmpiPredicate, Op, operands_of, result_of};
use cohort_passes::pass::Outcome;
use melior::ir::{OperationRef, ValueLike};

use super::emit::i64_constant;
use super::function::Lowering;

impl<'c> Lowering<'c, '_> {
    /// `arith.divsi` and `remsi`: a division by zero gives the instance up, and the one quotient
    /// that does not fit wraps around as the other operations do.
    pub fn divide(&mut self, b: &Builder<'c>, source: OperationRef<'c, 'c>) -> Outcome {
        let operands = self.values(&operands_of(source));
        let (lhs, rhs) = (operands[0], operands[1]);
        let ty = lhs.r#type();
        let (zero, one, minus_one) = (b.integer(0, ty), b.integer(1, ty), b.integer(-1, ty));

        let by_zero = b.cmpi(CmpiPredicate::Eq, rhs, zero);
        let nothing = i64_constant(b, 0);
        self.fail_when(
            b,
            source,
            by_zero,
            Failure::DivisionByZero,
            (nothing, nothing),
        );

        let by_minus_one = b.cmpi(CmpiPredicate::Eq, rhs, minus_one);
        let divisor = b.select(by_minus_one, one, rhs);
        let result = result_of(b.again(source, &[lhs, divisor], &[ty], vec![]), 0);
        let wrapped = if Op::ArithDivsi.is(source) {
            b.subi(zero, lhs)
        } else {
            zero
        };
        let result = b.select(by_minus_one, wrapped, result);
        self.bind_results(source, &[result]);
        Ok(())
    }

    /// A host index as an `i64`.
    pub fn wide_index(
        &self,
        b: &Builder<'c>,
        index: cohort_dialects::builder::Val<'c>,
    ) -> cohort_dialects::builder::Val<'c> {
        b.extsi(index, b.i64())
    }
}
