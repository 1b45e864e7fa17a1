//! Where a function ends with its results: in its last operation, or, where it chooses, in each arm of that.

use cohort_dialects::builder::{Builder, Op, Val, operands_of, operations_of, results_of};
use melior::{
    Context,
    ir::{OperationRef, Type, operation::OperationLike},
};

use crate::support::ir::{blocks_of, defining_op, erase, key, take_region, users_of};

/// The ends that an end stands for: its own, or, where it only hands on what an operation chooses, those of its arms.
pub fn ends_below<'c>(end: OperationRef<'c, 'c>) -> Vec<OperationRef<'c, 'c>> {
    match choice(end) {
        Some(choice) => ends_of_arms(choice).flat_map(ends_below).collect(),
        None => vec![end],
    }
}

/// Lets what ends here with some results end with others, of these types: `values` makes them of the old ones, before
/// each of the [ends](ends_below).
pub fn change_ends<'c>(
    context: &'c Context,
    end: OperationRef<'c, 'c>,
    types: &[Type<'c>],
    values: &mut dyn FnMut(&Builder<'c>, &[Val<'c>]) -> Vec<Val<'c>>,
) {
    let Some(before) = Builder::before(context, end) else {
        return;
    };
    let choice = choice(end);
    let values = match choice {
        Some(choice) => {
            let ends: Vec<_> = ends_of_arms(choice).collect();
            for end in ends {
                change_ends(context, end, types, values);
            }
            let regions = (0..choice.region_count()).map(|index| take_region(choice, index));
            let regions = regions.collect();
            let before = before.at(choice.location());
            results_of(before.again(choice, &operands_of(choice), types, regions))
        }
        None => values(&before, &operands_of(end)),
    };
    before.again(end, &values, &[], vec![]);
    erase(end);
    if let Some(choice) = choice {
        erase(choice);
    }
}

fn ends_of_arms<'c>(choice: OperationRef<'c, 'c>) -> impl Iterator<Item = OperationRef<'c, 'c>> {
    let arms = blocks_of(choice).into_iter();
    arms.filter_map(|arm| operations_of(arm).last().copied())
}

/// The operation whose results are what ends here, all of them and in order, and nothing else uses.
fn choice<'c>(end: OperationRef<'c, 'c>) -> Option<OperationRef<'c, 'c>> {
    let values = operands_of(end);
    let choice = defining_op(*values.first()?)?;
    let results = results_of(choice);
    let is_choice = matches!(Op::of(choice), Some(Op::CfbMatch | Op::ScfIf))
        && choice.attributes().next().is_none();
    let same = results.len() == values.len()
        && results.iter().zip(&values).all(|(a, b)| key(*a) == key(*b))
        && results.iter().all(|result| users_of(*result).len() == 1);
    (is_choice && same).then_some(choice)
}
