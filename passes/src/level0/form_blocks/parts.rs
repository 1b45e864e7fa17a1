//! Cuts tensor operations that can run together into parts of one unit and one extent.
//!
//! Each operation is plain, row-wise over some leading dims, or needs the rows of an instance
//! together ([`Kind`]). Of a tensor with several instance dims, elementwise work next to the latter
//! joins it: a product's scores are scaled, masked and normalised where they are. A reshape that makes
//! one dim of several stays apart. Operations are then ranked: one of another kind than what it uses comes
//! a rank later, and so do what a product is made of another product's rows by, what reads each element
//! of a product many times, or those of what a sum is in beside each other (a sort), or all elements of a fold for each of its
//! own, what a fold reads of a concatenation, and what makes several dims of one of a concatenation, as a kernel over calls stores
//! nothing between its operations. Those of one rank and kind are a part; what needs an instance's rows is
//! further cut into pieces that share nothing but what is made of lengths and constants alone, a mask for
//! one, which each makes for itself.

use std::collections::{BTreeMap, HashMap, HashSet};

use cohort_dialects::builder::{Op, operands_of, results_of};
use cohort_dialects::keys;
use melior::ir::{BlockLike, OperationRef, TypeLike, ValueLike, operation::OperationLike};

use crate::support::dim_equality::{DimEquality, Kind, Length, loops_of, reassociation};
use crate::support::ir::{
    TensorType, argument_of, defining_op, integers, move_before, op_key, users_of,
};
use crate::support::products::multiplies;
use crate::support::waves::{Role, is_expensive, is_view, role, used_values};

/// Whether a reshape makes one dim of several. Where such a dim is read at an index, that of the others
/// is not a sum of multiples of it, which kernels over calls need.
pub fn joins_dims(operation: OperationRef<'_, '_>) -> bool {
    let source = operands_of(operation).first().copied();
    let Some(from) = source.and_then(TensorType::of_value) else {
        return false;
    };
    let is_long = |axis: &&usize| from.shape.get(**axis) != Some(&Some(1));
    Op::TensorCollapseShape.is(operation)
        && reassociation(operation)
            .iter()
            .any(|group| group.iter().filter(is_long).count() > 1)
}

/// Whether a reshape makes several dims of one.
fn splits_dim(operation: OperationRef<'_, '_>) -> bool {
    let result = results_of(operation).first().copied();
    let Some(to) = result.and_then(TensorType::of_value) else {
        return false;
    };
    let is_long = |axis: &&usize| to.shape.get(**axis) != Some(&Some(1));
    Op::TensorExpandShape.is(operation)
        && reassociation(operation)
            .iter()
            .any(|group| group.iter().filter(is_long).count() > 1)
}

/// Operations that are one block.
pub struct Part<'c> {
    pub operations: Vec<OperationRef<'c, 'c>>,
    pub kind: Kind,
}

/// The parts of neighbouring operations, which are moved so that those of a part are neighbours too.
/// What each part makes for itself joins `copied`.
pub fn parts<'c>(
    group: &[OperationRef<'c, 'c>],
    copied: &mut HashSet<usize>,
    equality: &mut DimEquality,
) -> Vec<Part<'c>> {
    let kinds: Vec<Kind> = group
        .iter()
        .map(|op| match equality.kind(*op) {
            Kind::Rows(_) if copies_calls(*op, copied, equality) => Kind::Calls,
            kind => kind,
        })
        .collect();
    if kinds.iter().all(|kind| *kind == Kind::Plain) {
        return vec![Part {
            operations: group.to_vec(),
            kind: Kind::Plain,
        }];
    }
    let mut graph = Graph::new(group, kinds);
    graph.join_calls();
    let views = graph.join_views();
    graph.find_free(copied);
    graph.free_repeated(copied);
    let ranks = graph.ranks_with(&views);
    let mut found: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
    for (number, rank) in ranks.iter().enumerate() {
        if graph.free[number] {
            continue;
        }
        let same_kind = |other: &Kind| *other == graph.kinds[number];
        let first = graph.kinds.iter().position(same_kind).unwrap_or(number);
        found.entry((*rank, first)).or_default().push(number);
    }
    let mut parts: Vec<Part<'c>> = Vec::new();
    for ((_, first), numbers) in found {
        let kind = graph.kinds[first].clone();
        let pieces = match kind {
            Kind::Calls => graph.pieces(&numbers, equality),
            _ => vec![numbers],
        };
        parts.extend(pieces.into_iter().map(|numbers| Part {
            operations: numbers.into_iter().map(|number| group[number]).collect(),
            kind: kind.clone(),
        }));
    }
    let after = group.last().and_then(|last| last.next_in_block());
    if let (Some(after), true) = (after, parts.len() > 1) {
        for operation in parts.iter().flat_map(|part| &part.operations) {
            move_before(*operation, after);
        }
    }
    parts
}

/// Whether what an operation uses, and is made where it is used, is not row-wise.
fn copies_calls<'c>(
    operation: OperationRef<'c, 'c>,
    copied: &HashSet<usize>,
    equality: &mut DimEquality,
) -> bool {
    let producers = used_values(operation).into_iter().filter_map(defining_op);
    let copies: Vec<_> = producers
        .filter(|producer| copied.contains(&op_key(*producer)))
        .collect();
    copies
        .into_iter()
        .any(|copy| equality.kind(copy) == Kind::Calls || copies_calls(copy, copied, equality))
}

fn folds(operation: OperationRef<'_, '_>) -> bool {
    loops_of(operation).is_some_and(|loops| loops.folds.contains(&true))
}

/// Whether an operation is a product, by whatever name.
fn contracts(operation: OperationRef<'_, '_>) -> bool {
    folds(operation) && !Op::LinalgReduce.is(operation)
}

fn concatenates(operation: OperationRef<'_, '_>) -> bool {
    Op::TensorConcat.is(operation)
}

/// Whether an operation is too expensive to be done more than once.
fn is_product(operation: OperationRef<'_, '_>) -> bool {
    is_expensive(operation) && !Op::LinalgGeneric.is(operation)
}

/// The operations of a group by number, with their users.
struct Graph<'c> {
    operations: Vec<OperationRef<'c, 'c>>,
    kinds: Vec<Kind>,
    /// The operations whose results each one uses.
    uses: Vec<Vec<usize>>,
    /// The operations that use each one's results.
    users: Vec<Vec<usize>>,
    /// Whether something outside of the group uses the results.
    leaves: Vec<bool>,
    /// What each part makes for itself.
    free: Vec<bool>,
}

impl<'c> Graph<'c> {
    fn new(group: &[OperationRef<'c, 'c>], kinds: Vec<Kind>) -> Graph<'c> {
        let numbers: HashMap<usize, usize> = group.iter().map(|op| op_key(*op)).zip(0..).collect();
        let mut uses = vec![vec![]; group.len()];
        let mut users = vec![vec![]; group.len()];
        for (number, operation) in group.iter().enumerate() {
            for producer in used_values(*operation).into_iter().filter_map(defining_op) {
                if let Some(other) = numbers.get(&op_key(producer)) {
                    uses[number].push(*other);
                    users[*other].push(number);
                }
            }
        }
        let leaves = group.iter().map(|operation| {
            let mut all = results_of(*operation).into_iter().flat_map(users_of);
            all.any(|user| {
                let mut around = Some(cohort_dialects::builder::extend_op(user));
                while let Some(op) = around {
                    if numbers.contains_key(&op_key(op)) {
                        return false;
                    }
                    around = op
                        .parent_operation()
                        .map(cohort_dialects::builder::extend_op);
                }
                true
            })
        });
        Graph {
            operations: group.to_vec(),
            leaves: leaves.collect(),
            free: vec![false; group.len()],
            kinds,
            uses,
            users,
        }
    }

    /// Row-wise work over several instance dims joins what is next to it.
    fn join_calls(&mut self) {
        let is_dim = |length: &&Length| matches!(length, Length::Dim(_));
        let mut pending: Vec<usize> = (0..self.kinds.len())
            .filter(|number| self.kinds[*number] == Kind::Calls)
            .collect();
        while let Some(number) = pending.pop() {
            for next in self.uses[number].iter().chain(&self.users[number]) {
                if let Kind::Rows(rows) = &self.kinds[*next]
                    && rows.iter().filter(is_dim).count() > 1
                    && !joins_dims(self.operations[*next])
                {
                    self.kinds[*next] = Kind::Calls;
                    pending.push(*next);
                }
            }
        }
    }

    /// What only says how a value without instance dims is read joins what reads it; returns which.
    fn join_views(&mut self) -> Vec<usize> {
        let mut joined = Vec::new();
        for number in (0..self.kinds.len()).rev() {
            let mut users = self.users[number].iter().map(|user| &self.kinds[*user]);
            let first = users.next().cloned();
            let alike = users.all(|kind| Some(kind) == first.as_ref());
            let operation = self.operations[number];
            let is_view =
                self.kinds[number] == Kind::Plain && is_view(operation) && !joins_dims(operation);
            if let (true, true, false, Some(kind)) = (is_view, alike, self.leaves[number], first) {
                self.kinds[number] = kind;
                joined.push(number);
            }
        }
        joined
    }

    /// Finds what is made of lengths and constants alone and only used by calls.
    fn find_free(&mut self, copied: &mut HashSet<usize>) {
        let mut made_of_nothing = vec![false; self.kinds.len()];
        for (number, operation) in self.operations.iter().enumerate() {
            let is_free = |producer: OperationRef<'_, '_>| {
                let key = op_key(producer);
                let own = self.operations.iter().position(|op| op_key(*op) == key);
                match own {
                    Some(own) => made_of_nothing[own],
                    None => copied.contains(&key) || role(producer) == Role::Constant,
                }
            };
            let mut values = used_values(*operation).into_iter();
            made_of_nothing[number] = self.kinds[number] == Kind::Calls
                && !is_product(*operation)
                // What reads it across its parts needs it stored.
                && !concatenates(*operation)
                && values.all(|value| match defining_op(value) {
                    Some(producer) => {
                        let around = producer.parent_operation().map(|around| op_key(around));
                        let inside = around == Some(op_key(*operation));
                        inside || value.r#type().is_index() || is_free(producer)
                    }
                    // An argument of the operation's own region.
                    None => {
                        argument_of(value).is_some_and(|(block, _)| {
                            let owner = block.parent_operation();
                            owner.is_some_and(|owner| op_key(owner) == op_key(*operation))
                        }) || value.r#type().is_index()
                    }
                });
        }
        for number in (0..self.kinds.len()).rev() {
            let by_calls = self.users[number]
                .iter()
                .all(|user| self.free[*user] || self.kinds[*user] == Kind::Calls);
            let used = !self.users[number].is_empty();
            if made_of_nothing[number] && by_calls && used && !self.leaves[number] {
                self.free[number] = true;
            }
        }
        // A copy stands before what the part has itself, so it is made of copies alone.
        for number in 0..self.kinds.len() {
            self.free[number] &= self.uses[number].iter().all(|used| self.free[*used]);
            if self.free[number] {
                copied.insert(op_key(self.operations[number]));
            }
        }
    }

    /// What only repeats a value from outside is made by each of the parts that use it, rather than stored by one of them.
    fn free_repeated(&mut self, copied: &mut HashSet<usize>) {
        let ranks = self.ranks();
        for number in 0..self.kinds.len() {
            let users = &self.users[number];
            let is_split = users.iter().any(|user| ranks[*user] != ranks[number]);
            let is_by_calls = users.iter().all(|user| self.kinds[*user] == Kind::Calls);
            let is_made_of_copies = self.uses[number].iter().all(|used| self.free[*used]);
            if self.kinds[number] == Kind::Calls
                && Op::LinalgBroadcast.is(self.operations[number])
                && is_split
                && is_by_calls
                && is_made_of_copies
                && !self.leaves[number]
            {
                self.free[number] = true;
                copied.insert(op_key(self.operations[number]));
            }
        }
    }

    /// Whether each operation is a product over calls, or one is made of it.
    fn for_products(&self) -> Vec<bool> {
        let mut found = vec![false; self.kinds.len()];
        for number in (0..found.len()).rev() {
            found[number] = self.kinds[number] == Kind::Calls
                && (multiplies(self.operations[number])
                    || self.users[number].iter().any(|user| found[*user]));
        }
        found
    }

    /// Whether each operation is a fold over calls, or what one reads short of a concatenation. A kernel over
    /// calls computes each element from one part of a concatenation, and what a fold adds up may lie in
    /// several: a concatenation that one of these reads is stored before.
    fn for_folds(&self) -> Vec<bool> {
        let mut found = vec![false; self.kinds.len()];
        for number in (0..found.len()).rev() {
            let operation = self.operations[number];
            let for_one = || self.users[number].iter().any(|user| found[*user]);
            found[number] = self.kinds[number] == Kind::Calls
                && (folds(operation) || !concatenates(operation) && for_one());
        }
        found
    }

    /// Whether each operation is of such a kind and over calls, or what is made of one element by element.
    fn made_of(&self, is_one: impl Fn(OperationRef<'c, 'c>) -> bool) -> Vec<bool> {
        let mut found = vec![false; self.kinds.len()];
        for number in 0..found.len() {
            let operation = self.operations[number];
            let of_one = || self.uses[number].iter().any(|used| found[*used]);
            found[number] = self.kinds[number] == Kind::Calls
                && (is_one(operation) || !folds(operation) && of_one());
        }
        found
    }

    /// Whether elements of a value meet each other, as in a sort: it is repeated along one dim, and along
    /// another.
    fn meets_itself(&self, number: usize) -> bool {
        let users = self.users[number].iter().map(|user| self.operations[*user]);
        let mut along = users
            .filter(|user| Op::LinalgBroadcast.is(*user))
            .filter_map(|user| user.attribute(&keys::DIMENSIONS).ok());
        along
            .next()
            .is_some_and(|first| along.any(|other| other != first))
    }

    /// Whether a fold goes over all elements of what is broadcast for each of its own, as the search for the element of each place of a
    /// sort does: a fold that they are made of would be made anew each time.
    fn is_gone_over(&self, number: usize) -> bool {
        let added = integers(self.operations[number], keys::DIMENSIONS);
        let is_own = |dim: &i64| !added.contains(dim);
        let mut pending: Vec<usize> = self.users[number].clone();
        let mut seen = HashSet::new();
        while let Some(user) = pending.pop() {
            let operation = self.operations[user];
            if !seen.insert(user) || self.kinds[user] != Kind::Calls {
                continue;
            }
            if Op::LinalgReduce.is(operation) {
                let over = integers(operation, keys::DIMENSIONS);
                let is_kept = |dim: &i64| !over.contains(dim);
                if over.iter().any(is_own) && added.iter().any(is_kept) {
                    return true;
                }
            } else if !folds(operation) && !is_view(operation) && !concatenates(operation) {
                pending.extend(&self.users[user]);
            }
        }
        false
    }

    /// Whether each operation is a concatenation over calls, or what is made of one that is not stored.
    fn of_concatenations(&self, for_folds: &[bool]) -> Vec<bool> {
        let mut found = vec![false; self.kinds.len()];
        for number in 0..found.len() {
            let is_read = |used: &usize| {
                found[*used] && !(for_folds[number] && concatenates(self.operations[*used]))
            };
            let of_one = self.uses[number].iter().any(is_read);
            let operation = self.operations[number];
            found[number] = self.kinds[number] == Kind::Calls
                && (concatenates(operation) || !folds(operation) && of_one);
        }
        found
    }

    /// Whether each operation is a product over calls that is stored before another one is made of it:
    /// any but that of scores, which are more than what they are made of and of what is made of them.
    fn is_stored(&self, number: usize) -> bool {
        let operation = self.operations[number];
        let lengths = results_of(operation)
            .into_iter()
            .filter_map(TensorType::of_value);
        let mut lengths = lengths.map(|ty| ty.shape.iter().filter(|size| size.is_none()).count());
        self.kinds[number] == Kind::Calls
            && multiplies(operation)
            && lengths.all(|lengths| lengths < 2)
    }

    /// The ranks when each of these views is with all that reads it, or is apart from all: a part's
    /// results have the rows of the part, and a view that is read elsewhere would be one without any.
    fn ranks_with(&mut self, views: &[usize]) -> Vec<usize> {
        loop {
            let ranks = self.ranks();
            let is_split = |view: &&usize| {
                let rank = ranks[**view];
                let mut users = self.users[**view].iter();
                self.kinds[**view] != Kind::Plain
                    && !self.free[**view]
                    && users.any(|user| ranks[*user] != rank)
            };
            let split: Vec<usize> = views.iter().filter(is_split).copied().collect();
            if split.is_empty() {
                return ranks;
            }
            for view in split {
                self.kinds[view] = Kind::Plain;
            }
        }
    }

    /// The rank of each operation: as early as can be, but for one that only later operations of
    /// its kind use.
    fn ranks(&self) -> Vec<usize> {
        let mut ranks = vec![0; self.kinds.len()];
        let for_products = self.for_products();
        let for_folds = self.for_folds();
        let of_products = self.made_of(contracts);
        let of_folds = self.made_of(folds);
        let of_concatenations = self.of_concatenations(&for_folds);
        let is_apart = |used: usize, number: usize| {
            // Each of its elements is read many times, and must be the same each time, whose sum may be taken
            // in another order where it is made anew: a sort counts how many are less than it.
            let is_repeated = Op::LinalgBroadcast.is(self.operations[number])
                && (of_products[used]
                    || of_folds[used] && (self.meets_itself(used) || self.is_gone_over(number)));
            self.kinds[used] != self.kinds[number]
                || for_products[number] && self.is_stored(used)
                || for_folds[number] && concatenates(self.operations[used])
                || is_repeated
                // Neighbours along the new dims may lie in different parts of the concatenation.
                || of_concatenations[used] && splits_dim(self.operations[number])
        };
        for number in 0..ranks.len() {
            for used in &self.uses[number] {
                let apart = usize::from(is_apart(*used, number));
                ranks[number] = ranks[number].max(ranks[*used] + apart);
            }
        }
        for number in (0..ranks.len()).rev() {
            let users = &self.users[number];
            let is_with = |user: &usize| !is_apart(number, *user);
            if self.leaves[number] || !users.iter().all(is_with) {
                continue;
            }
            if let Some(first) = users.iter().map(|user| ranks[*user]).min() {
                ranks[number] = first;
            }
        }
        ranks
    }

    /// Pieces that share nothing. All results of one have the same rows; were it not so, each
    /// operation is a piece.
    fn pieces(&self, numbers: &[usize], equality: &mut DimEquality) -> Vec<Vec<usize>> {
        let within: HashSet<usize> = numbers.iter().copied().collect();
        let mut seen = HashSet::new();
        let mut pieces = Vec::new();
        for start in numbers {
            let mut piece = Vec::new();
            let mut pending = vec![*start];
            while let Some(number) = pending.pop() {
                if self.free[number] || !within.contains(&number) || !seen.insert(number) {
                    continue;
                }
                piece.push(number);
                pending.extend(self.uses[number].iter().chain(&self.users[number]));
            }
            if piece.is_empty() {
                continue;
            }
            piece.sort_unstable();
            if self.has_one_extent(&piece, equality) {
                pieces.push(piece);
            } else {
                pieces.extend(piece.into_iter().map(|number| vec![number]));
            }
        }
        pieces
    }

    fn has_one_extent(&self, piece: &[usize], equality: &mut DimEquality) -> bool {
        let within: HashSet<usize> = piece.iter().copied().collect();
        let mut found: Option<Vec<Length>> = None;
        for number in piece {
            let used_inside = |user: &usize| within.contains(user);
            if !self.leaves[*number] && self.users[*number].iter().all(used_inside) {
                continue;
            }
            for result in results_of(self.operations[*number]) {
                let rows = equality.leading(result);
                if found.get_or_insert_with(|| rows.clone()) != &rows {
                    return false;
                }
            }
        }
        true
    }
}
