//! Cuts long blocks: a kernel of a thousand operations takes a compiler minutes, as what it does to a
//! function grows with more than its length. And blocks of many operands and results: a GPU gives a kernel
//! 4 KiB of arguments, and a handle counts 256 results.
//!
//! A cut is where the fewest numbers are handed over: between two layers, not within one. So the parts of
//! equal layers are equal too, and `unify-kernels` makes them one function.
//!
//! What only says how a value from outside is read, as a slice of a matrix, is not handed over: each part
//! that reads through it gets a copy. So the matrix stays an operand that all rows share.

use std::collections::{HashMap, HashSet};

use cohort_dialects::builder::{Builder, Val, operands_of, results_of};
use melior::{Context, ir::OperationRef};

use super::parts::Part;
use crate::support::copies::replace_operands;
use crate::support::dim_equality::{DimEquality, Kind};
use crate::support::ir::{
    TensorType, clone_op, defining_op, is_local, is_within, key, op_key, users_of,
};
use crate::support::waves::{Role, is_view, role, used_values};

/// Operations of a block.
const MOST: usize = 256;
/// Of one that needs the rows of an instance together, a cut stores what else is never stored, such as the
/// scores of an attention. So it is cut for its operands alone.
const MOST_TOGETHER: usize = usize::MAX;
/// Numbers along a dim that only instances know, to compare what is handed over.
const UNKNOWN: u64 = 64;
/// Operands and results of a block, as arguments of a kernel on a GPU, which takes 512 of them; the rest is
/// for constants.
const ARGUMENTS: usize = 448;
/// The arguments that a row is.
const ROW: usize = 3;

/// One part, or several of the same kind in order. What only copies stand for joins `made_again`.
pub fn cut<'c>(
    context: &'c Context,
    mut part: Part<'c>,
    made_again: &mut HashSet<usize>,
    equality: &mut DimEquality,
) -> Vec<Part<'c>> {
    let views = outer_views(&part);
    let view_keys: HashSet<usize> = views.iter().map(|view| op_key(*view)).collect();
    let mut parts = Vec::new();
    loop {
        let plan = CutPlan::new(&part, &view_keys, made_again);
        if plan.is_one() {
            break;
        }
        let rest = part.operations.split_off(plan.place());
        let kind = part.kind.clone();
        let operations = std::mem::replace(&mut part.operations, rest);
        parts.push(Part { operations, kind });
    }
    parts.push(part);
    if parts.len() == 1 {
        return parts;
    }
    for part in &mut parts {
        copy_views(context, part, &views, equality);
    }
    // One that only other parts read is nowhere but in their copies; the last of a chain goes first.
    let mut unused = HashSet::new();
    for view in views.into_iter().rev() {
        let mut users = results_of(view).into_iter().flat_map(users_of);
        if users.all(|user| unused.contains(&op_key(user))) {
            unused.insert(op_key(view));
        }
    }
    for part in &mut parts {
        part.operations.retain(|op| !unused.contains(&op_key(*op)));
    }
    made_again.extend(unused);
    parts.retain(|part| !part.operations.is_empty());
    parts
}

/// The views of what a part does not compute, and views of those, in order.
fn outer_views<'c>(part: &Part<'c>) -> Vec<OperationRef<'c, 'c>> {
    let mut computed: HashSet<usize> = part.operations.iter().map(|op| op_key(*op)).collect();
    let mut views = Vec::new();
    for operation in &part.operations {
        let mut producers = used_values(*operation).into_iter().filter_map(defining_op);
        if is_view(*operation) && !producers.any(|producer| computed.contains(&op_key(producer))) {
            computed.remove(&op_key(*operation));
            views.push(*operation);
        }
    }
    views
}

/// Gives a part copies of the views of other parts that it reads through.
fn copy_views<'c>(
    context: &'c Context,
    part: &mut Part<'c>,
    views: &[OperationRef<'c, 'c>],
    equality: &mut DimEquality,
) {
    let own: HashSet<usize> = part.operations.iter().map(|op| op_key(*op)).collect();
    let mut read: HashSet<usize> = HashSet::new();
    for operation in &part.operations {
        read.extend(used_values(*operation).into_iter().map(key));
    }
    let mut needed = Vec::new();
    for view in views
        .iter()
        .rev()
        .filter(|view| !own.contains(&op_key(**view)))
    {
        if results_of(*view)
            .iter()
            .any(|result| read.contains(&key(*result)))
        {
            read.extend(operands_of(*view).into_iter().map(key));
            needed.push(*view);
        }
    }
    let first = part.operations.first();
    let Some(start) = first.and_then(|first| Builder::before(context, *first)) else {
        return;
    };
    needed.reverse();
    let mut copies = Vec::new();
    let mut replacement = HashMap::new();
    for view in needed {
        let copy = start.insert(clone_op(view));
        for (old, new) in results_of(view).into_iter().zip(results_of(copy)) {
            equality.join_shapes(old, new);
            replacement.insert(key(old), new);
        }
        copies.push(copy);
    }
    part.operations.splice(0..0, copies);
    for operation in &part.operations {
        replace_operands(*operation, &replacement);
    }
}

/// What a part may be cut by.
struct CutPlan {
    /// What each operation reads that the part does not compute, itself or through views of it; nothing
    /// for these views.
    sources: Vec<Vec<usize>>,
    /// The arguments that each source is.
    weights: HashMap<usize, usize>,
    /// Numbers that the operation's results are.
    sizes: Vec<u64>,
    /// Which operation reads the results last; beyond all of them where something outside of the part does.
    last_use: Vec<usize>,
    /// How many operations may be one block.
    longest: usize,
}

impl CutPlan {
    /// What is `made_again` is neither read from outside nor handed over.
    fn new(part: &Part<'_>, views: &HashSet<usize>, made_again: &HashSet<usize>) -> CutPlan {
        let operations = &part.operations;
        let numbers: HashMap<usize, usize> =
            operations.iter().map(|op| op_key(*op)).zip(0..).collect();
        let inside: HashSet<usize> = numbers.keys().copied().collect();
        let mut plan = CutPlan {
            sources: vec![Vec::new(); operations.len()],
            weights: HashMap::new(),
            sizes: Vec::new(),
            last_use: (0..operations.len()).collect(),
            longest: match part.kind {
                Kind::Calls => MOST_TOGETHER,
                Kind::Plain | Kind::Rows(_) => MOST,
            },
        };
        for (number, operation) in operations.iter().enumerate() {
            let is_view = views.contains(&op_key(*operation));
            let shapes = results_of(*operation).into_iter();
            let shapes = shapes.filter_map(TensorType::of_value);
            let elements = shapes.map(|ty| {
                let dims = ty.shape.into_iter().map(|dim| dim.unwrap_or(UNKNOWN));
                dims.fold(1, u64::saturating_mul)
            });
            let size = elements.fold(0, u64::saturating_add);
            plan.sizes.push(if is_view { 0 } else { size });
            let mut users = results_of(*operation).into_iter().flat_map(users_of);
            if !is_view && users.any(|user| !is_within(user, &inside)) {
                plan.last_use[number] = usize::MAX;
            }
            let mut pending = match is_view {
                true => Vec::new(),
                false => used_values(*operation),
            };
            while let Some(value) = pending.pop() {
                let producer = defining_op(value);
                let own = producer.map(op_key);
                if own.is_some_and(|own| views.contains(&own)) {
                    pending.extend(producer.map(operands_of).unwrap_or_default());
                } else if let Some(used) = own.and_then(|own| numbers.get(&own)) {
                    plan.last_use[*used] = plan.last_use[*used].max(number);
                } else if let Some(weight) = weight_of(value, operations[number], made_again) {
                    plan.sources[number].push(key(value));
                    plan.weights.insert(key(value), weight);
                }
            }
        }
        plan
    }

    /// Whether all operations can be one block.
    fn is_one(&self) -> bool {
        let sources: HashSet<&usize> = self.sources.iter().flatten().collect();
        let operands: usize = sources.into_iter().map(|source| self.weights[source]).sum();
        let all = self.sources.len();
        all <= 1 || all <= self.longest && operands + self.handed_over(all).count() <= ARGUMENTS
    }

    /// How many of the operations, from the first on, can be one block.
    fn most(&self) -> usize {
        let (mut sources, mut operands, mut most) = (HashSet::new(), 0, 1);
        for place in 1..=self.longest.min(self.sources.len() - 1) {
            let new = self.sources[place - 1].iter();
            let new = new.filter(|source| sources.insert(**source));
            operands += new.map(|source| self.weights[source]).sum::<usize>();
            if operands + self.handed_over(place).count() <= ARGUMENTS {
                most = place;
            }
        }
        most
    }

    /// The operations before a place whose results are read behind it.
    fn handed_over(&self, place: usize) -> impl Iterator<Item = usize> {
        (0..place).filter(move |number| self.sizes[*number] > 0 && self.last_use[*number] >= place)
    }

    /// The number of operations before the cut that hands the fewest numbers over, of several the last.
    fn place(&self) -> usize {
        let most = self.most();
        let numbers = |place: usize| {
            let sizes = self.handed_over(place).map(|number| self.sizes[number]);
            sizes.fold(0, u64::saturating_add)
        };
        let places = (most.div_ceil(2)..=most).rev();
        places.min_by_key(|place| numbers(*place)).unwrap_or(most)
    }
}

/// The arguments that a value from outside is: a row has an address, a list of rows and where they begin; a
/// parameter has an address. None where it is made again, or belongs to the operation's own region.
fn weight_of<'c>(
    value: Val<'c>,
    operation: OperationRef<'c, 'c>,
    made_again: &HashSet<usize>,
) -> Option<usize> {
    if is_local(value, &HashSet::from([op_key(operation)])) {
        return None;
    }
    match defining_op(value) {
        Some(producer) if made_again.contains(&op_key(producer)) => None,
        Some(producer) => match role(producer) {
            Role::Constant => None,
            Role::Parameter => Some(1),
            Role::Control | Role::Tensor => Some(ROW),
        },
        None => Some(ROW),
    }
}
