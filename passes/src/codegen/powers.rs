//! Powers of integers, for which there is no instruction: `math.ipowi` as a loop over the bits of the
//! exponent, of numbers or of vectors.

use cohort_dialects::builder::{Builder, Val, arguments_of, region_with_block, results_of};
use melior::ir::ValueLike;

pub const POWER: &str = "math.ipowi";

/// The bits of an exponent that is not negative.
const BITS: i64 = 31;

/// A power that wraps. A negative exponent is one of `1 / base`, which is 0 but for 1 and -1.
pub fn power<'c>(b: &Builder<'c>, base: Val<'c>, exponent: Val<'c>) -> Val<'c> {
    let ty = base.r#type();
    let (zero, one) = (b.integer(0, ty), b.integer(1, ty));

    let word = b.ty("i64");
    let (region, block) = region_with_block(&[word, ty, ty, ty], b.location);
    let inside = Builder::at_end(b.context(), block, b.location);
    let [_, product, square, rest] = arguments_of(block)[..] else {
        unreachable!("the block was made with four arguments")
    };
    let apply = |name: &str, left, right| inside.value(name, &[left, right], ty);
    let is_set = compare(&inside, NE, apply("arith.andi", rest, one), zero);
    let factor = inside.value("arith.select", &[is_set, square, one], ty);
    let next = [
        apply("arith.muli", product, factor),
        apply("arith.muli", square, square),
        apply("arith.shrui", rest, one),
    ];
    inside.op("scf.yield", &next, &[], &[], vec![]);
    let bounds = [0, BITS, 1].map(|bound| b.integer(bound, word));
    let operands = [&bounds[..], &[one, base, exponent]].concat();
    let product = results_of(b.op("scf.for", &operands, &[ty, ty, ty], &[], vec![region]))[0];

    let units = [one, b.integer(-1, ty)].map(|unit| compare(b, EQ, base, unit));
    let is_unit = b.value("arith.ori", &units, units[0].r#type());
    let divided = b.value("arith.select", &[is_unit, product, zero], ty);
    let is_negative = compare(b, LT, exponent, zero);
    b.value("arith.select", &[is_negative, divided, product], ty)
}

/// Predicates of `arith.cmpi`.
const EQ: i64 = 0;
const NE: i64 = 1;
const LT: i64 = 2;

fn compare<'c>(b: &Builder<'c>, predicate: i64, left: Val<'c>, right: Val<'c>) -> Val<'c> {
    let ty = left.r#type().to_string();
    let bits = match ty
        .strip_prefix("vector<")
        .and_then(|ty| ty.rsplit_once('x'))
    {
        Some((lanes, _)) => b.ty(&format!("vector<{lanes}xi1>")),
        None => b.ty("i1"),
    };
    let predicate = b.i64_attr(predicate);
    b.value_with(
        "arith.cmpi",
        &[left, right],
        bits,
        &[("predicate", predicate)],
    )
}
