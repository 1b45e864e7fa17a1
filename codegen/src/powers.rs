//! Powers of integers, for which there is no instruction: `math.ipowi` as a loop over the bits of the
//! exponent, of numbers or of vectors.

use cohort_dialects::builder::{
    Builder, CmpiPredicate, Val, arguments_of, region_with_block, results_of,
};
use melior::ir::ValueLike;

/// The bits of an exponent that is not negative.
const BITS: i64 = 31;

/// A power that wraps. A negative exponent is one of `1 / base`, which is 0 but for 1 and -1.
pub fn power<'c>(b: &Builder<'c>, base: Val<'c>, exponent: Val<'c>) -> Val<'c> {
    let ty = base.r#type();
    let (zero, one) = (b.integer(0, ty), b.integer(1, ty));

    let word = b.i64();
    let (region, block) = region_with_block(&[word, ty, ty, ty], b.location);
    let inside = Builder::at_end(b.context(), block, b.location);
    let [_, product, square, rest] = arguments_of(block)[..] else {
        unreachable!("the block was made with four arguments")
    };
    let is_set = inside.cmpi(CmpiPredicate::Ne, inside.andi(rest, one), zero);
    let factor = inside.select(is_set, square, one);
    let next = [
        inside.muli(product, factor),
        inside.muli(square, square),
        inside.shrui(rest, one),
    ];
    inside.scf_yield(&next);
    let bounds = [0, BITS, 1].map(|bound| b.integer(bound, word));
    let product = results_of(b.scf_for(bounds, &[one, base, exponent], region))[0];

    let units = [one, b.integer(-1, ty)].map(|unit| b.cmpi(CmpiPredicate::Eq, base, unit));
    let is_unit = b.ori(units[0], units[1]);
    let divided = b.select(is_unit, product, zero);
    let is_negative = b.cmpi(CmpiPredicate::Slt, exponent, zero);
    b.select(is_negative, divided, product)
}
