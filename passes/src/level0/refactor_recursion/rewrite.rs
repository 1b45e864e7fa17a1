//! How a recursion is refactored: the ends of the function, the list of its results, the calls from outside.

use cohort_dialects::builder::{
    Builder, Op, Val, arguments_of, extend, operands_of, operations_of, region_with_block,
    result_of, results_of,
};
use cohort_dialects::keys;
use cohort_dialects::types::array;
use melior::ir::{
    BlockLike, OperationRef, Type, ValueLike,
    attribute::TypeAttribute,
    operation::OperationLike,
    r#type::{FunctionType, TupleType},
};

use super::{Head, Recursion, end_of, takes_alone, users_once, zero_of};
use crate::support::copies::Copies;
use crate::support::ends::change_ends;
use crate::support::ir::{
    erase, key, move_before, op_key, replace_uses, replace_uses_except, set_attribute, take_region,
    users_of,
};

pub(super) fn rewrite<'c>(recursion: &Recursion<'c>, head: &Head<'c>) {
    let location = recursion.function.location();
    let Some(end) = operations_of(recursion.body).last().copied() else {
        return;
    };
    for operation in &head.earlier {
        move_before(*operation, recursion.children);
    }
    let kept = kept(recursion);
    let results = results_of(recursion.call);
    let edges = recursion.edges.iter().filter_map(|edge| end_of(*edge));
    let made = edges.flat_map(operands_of);
    let rewrite = Rewrite {
        recursion,
        head,
        types: kept
            .iter()
            .map(|index| results[*index])
            .chain(made)
            .map(|value| value.r#type())
            .collect(),
        kept,
        given: head
            .needed
            .iter()
            .map(|value| extend(recursion.body.add_argument(value.r#type(), location)))
            .collect(),
    };
    change_ends(
        recursion.context,
        end,
        &rewrite.types,
        &mut |before, results| rewrite.values(before, results),
    );
    rewrite.change_type();
    rewrite.change_list();
    for call in &recursion.callers {
        rewrite.change_caller(*call);
    }
}

/// The results that somebody uses, the edges aside.
fn kept(recursion: &Recursion<'_>) -> Vec<usize> {
    let results = results_of(recursion.call);
    let mut used = vec![false; results.len()];
    for call in &recursion.callers {
        for (used, result) in used.iter_mut().zip(results_of(*call)) {
            *used |= !users_of(result).is_empty();
        }
    }
    for user in users_once(result_of(recursion.children, 0)) {
        if recursion.is_edge(user) {
            continue;
        }
        let arguments = takes_alone(user).map(arguments_of);
        for (place, result) in recursion.parts.iter().enumerate() {
            used[*result] |= match &arguments {
                Some(arguments) => !users_of(arguments[place]).is_empty(),
                None => true,
            };
        }
    }
    (0..used.len()).filter(|index| used[*index]).collect()
}

impl<'c> Recursion<'c> {
    fn is_edge(&self, operation: OperationRef<'c, 'c>) -> bool {
        self.edges
            .iter()
            .any(|edge| op_key(*edge) == op_key(operation))
    }
}

struct Rewrite<'a, 'c> {
    recursion: &'a Recursion<'c>,
    head: &'a Head<'c>,
    /// Which of the function's results stay. Behind them come those that the edges make.
    kept: Vec<usize>,
    /// The types of the new results.
    types: Vec<Type<'c>>,
    /// The arguments that stand for what the edges need.
    given: Vec<Val<'c>>,
}

impl<'c> Rewrite<'_, 'c> {
    /// The new results where the function would have ended with these.
    fn values(&self, before: &Builder<'c>, results: &[Val<'c>]) -> Vec<Val<'c>> {
        let mut values: Vec<Val<'c>> = self.kept.iter().map(|index| results[*index]).collect();
        let mut copies = Copies::default();
        for (needed, given) in self.head.needed.iter().zip(&self.given) {
            copies.values.insert(key(*needed), *given);
        }
        for operation in &self.head.constants {
            copies.copy(before, *operation);
        }
        for edge in &self.recursion.edges {
            let Some(body) = takes_alone(*edge) else {
                continue;
            };
            for (argument, result) in arguments_of(body).into_iter().zip(&self.recursion.parts) {
                copies.values.insert(key(argument), results[*result]);
            }
            let mut operations = operations_of(body);
            let end = operations.pop();
            for operation in operations {
                copies.copy(before, operation);
            }
            let made = end.map(operands_of).unwrap_or_default();
            values.extend(made.into_iter().map(|value| copies.of(value)));
        }
        values
    }

    fn change_type(&self) {
        let inputs: Vec<Type<'c>> = arguments_of(self.recursion.body)
            .into_iter()
            .map(|argument| argument.r#type())
            .collect();
        let ty = FunctionType::new(self.recursion.context, &inputs, &self.types);
        let attribute = TypeAttribute::new(ty.into()).into();
        set_attribute(self.recursion.function, keys::FUNCTION_TYPE, attribute);
    }

    /// A call in place of another, which is given more.
    fn call(
        &self,
        before: &Builder<'c>,
        call: OperationRef<'c, 'c>,
        more: &[Val<'c>],
    ) -> OperationRef<'c, 'c> {
        let mut operands = operands_of(call);
        operands.extend(more);
        before.func_call(&self.recursion.name, &operands, &self.types)
    }

    fn change_caller(&self, call: OperationRef<'c, 'c>) {
        let Some(before) = Builder::before(self.recursion.context, call) else {
            return;
        };
        let zeros = self.head.needed.iter().filter_map(|value| {
            let ty = value.r#type();
            let zero = zero_of(self.recursion.context, ty)?;
            Some(before.constant(zero, ty))
        });
        let zeros: Vec<Val<'c>> = zeros.collect();
        let new = self.call(&before, call, &zeros);
        for (place, index) in self.kept.iter().enumerate() {
            replace_uses(result_of(call, *index), result_of(new, place));
        }
        erase(call);
    }

    /// Makes the list of results one of the new ones, and lets what used it use that.
    fn change_list(&self) {
        let children = self.recursion.children;
        let (Some(before), Some(end)) = (
            Builder::before(self.recursion.context, children),
            end_of(children),
        ) else {
            return;
        };
        if let Some(before) = Builder::before(self.recursion.context, end) {
            let call = self.call(&before, self.recursion.call, &self.head.needed);
            before.cfb_yield(&results_of(call));
        }
        erase(end);
        erase(self.recursion.call);
        let element = match self.types[..] {
            [only] => only,
            _ => TupleType::new(self.recursion.context, &self.types).into(),
        };
        let list = before.op(
            Op::CfbMap,
            &operands_of(children),
            &[array(element)],
            &[],
            vec![take_region(children, 0)],
        );
        let list = result_of(list, 0);
        let mut made = self.kept.len();
        for edge in &self.recursion.edges {
            let count = end_of(*edge).map_or(0, |end| operands_of(end).len());
            let parts: Vec<usize> = (made..made + count).collect();
            made += count;
            self.replace(*edge, list, |_, arguments| {
                parts.iter().map(|part| arguments[*part]).collect()
            });
        }
        let place = |index: usize| self.kept.iter().position(|kept| *kept == index);
        for user in users_once(result_of(children, 0)) {
            let Some(body) = takes_alone(user) else {
                continue;
            };
            self.replace(user, list, |end, arguments| {
                for (argument, result) in arguments_of(body).into_iter().zip(&self.recursion.parts)
                {
                    if let Some(place) = place(*result) {
                        replace_uses(argument, arguments[place]);
                    }
                }
                let mut operations = operations_of(body);
                let old = operations.pop();
                for operation in operations {
                    move_before(operation, end);
                }
                old.map(operands_of).unwrap_or_default()
            });
        }
        // Whatever else uses it wants it as it was.
        if !users_of(result_of(children, 0)).is_empty() {
            let (ty, after) = (result_of(children, 0).r#type(), before);
            let parts = &self.recursion.parts;
            let old = self.map(&after, list, ty, |_, arguments| {
                parts
                    .iter()
                    .filter_map(|result| Some(arguments[place(*result)?]))
                    .collect()
            });
            replace_uses_except(result_of(children, 0), old, &[]);
        }
        erase(children);
    }

    /// A map over the new list in place of another operation that makes one list.
    fn replace(
        &self,
        operation: OperationRef<'c, 'c>,
        list: Val<'c>,
        values: impl FnOnce(OperationRef<'c, 'c>, &[Val<'c>]) -> Vec<Val<'c>>,
    ) {
        let Some(before) = Builder::before(self.recursion.context, operation) else {
            return;
        };
        let old = result_of(operation, 0);
        let new = self.map(&before, list, old.r#type(), values);
        replace_uses(old, new);
        erase(operation);
    }

    /// A map over the new list. What it yields is told the end before which it may put operations, and the parts
    /// of an element.
    fn map(
        &self,
        before: &Builder<'c>,
        list: Val<'c>,
        ty: Type<'c>,
        values: impl FnOnce(OperationRef<'c, 'c>, &[Val<'c>]) -> Vec<Val<'c>>,
    ) -> Val<'c> {
        let location = self.recursion.children.location();
        let (region, block) = region_with_block(&self.types, location);
        let inner = Builder::at_end(self.recursion.context, block, location);
        let mark = inner.cfb_yield(&[]);
        let values = values(mark, &arguments_of(block));
        inner.cfb_yield(&values);
        erase(mark);
        result_of(before.op(Op::CfbMap, &[list], &[ty], &[], vec![region]), 0)
    }
}
