//! Strands: functions of their own, which the runtime runs side by side.
//!
//! A strand gets the address of its *scope*, slots of its caller's frame (`cohort_abi::StrandFn`): a count that
//! is the runtime's, the values that the strands use, and room for what they hand over. The caller forks
//! all strands but the last, which it runs itself, and those for which the runtime has no stack; then it joins.
//! A strand that needs what earlier ones hand over begins by waiting for these.

use cohort_dialects::keys;
use cohort_dialects::marks;
use cohort_passes::level2::fork_join::STRANDS;
use cohort_passes::pass::{Failed, Outcome};
use cohort_passes::support::ir::{blocks_of, integers, is_local, key, nested_ops, op_key};
use cohort_passes::support::waves::used_values;
use std::collections::BTreeSet;

use cohort_abi::symbols;
use cohort_dialects::builder::{
    Builder, CmpiPredicate, Op, Val, arguments_of, operands_of, operations_of, region_with_block,
    result_of, results_of,
};
use melior::ir::{
    OperationRef, Type,
    attribute::{FlatSymbolRefAttribute, StringAttribute},
    operation::OperationLike,
};

use super::Program;
use super::arrays::{load_element, store_element};
use super::emit::{
    call, count_loop, function, i32_constant, i64_constant, load_slot, module_end, slot_address,
    store_slot, when,
};
use super::function::{Lowering, lowered_types, stack_slots};

/// A value that a strand needs of an earlier one of its scope.
#[derive(Clone)]
struct Handed<'c> {
    strand: usize,
    slot: i32,
    types: Vec<Type<'c>>,
}

/// The type of every strand's function.
pub fn strand_type<'c>(b: &Builder<'c>) -> Type<'c> {
    b.function_type(&[b.pointer(), b.pointer(), b.i64()], &[])
}

/// Slots of the function's frame for its largest scope. One is joined before the next begins.
pub fn scope_slots<'c>(
    b: &Builder<'c>,
    program: &Program<'c>,
    source: OperationRef<'c, 'c>,
) -> Option<Val<'c>> {
    let slots = |op: OperationRef<'c, 'c>| {
        let results = results_of(op);
        let values = [captured(op), results].concat();
        lowered_types(program, op, &values).map_or(0, |types| 1 + types.len())
    };
    let forks = nested_ops(source).into_iter().filter(|op| forks(*op));
    stack_slots(b, forks.map(slots).max())
}

fn forks(operation: OperationRef<'_, '_>) -> bool {
    Op::CfbFork.is(operation) || operation.has_attribute(&STRANDS)
}

/// What the strands of an operation use from outside of it, and its operands.
fn captured<'c>(source: OperationRef<'c, 'c>) -> Vec<Val<'c>> {
    let inside = [op_key(source)].into();
    let mut known = std::collections::HashSet::new();
    let mut values = used_values(source);
    values.retain(|value| !is_local(*value, &inside) && known.insert(key(*value)));
    values
}

impl<'c> Lowering<'c, '_> {
    pub fn fork(&mut self, b: &Builder<'c>, source: OperationRef<'c, 'c>) -> Outcome {
        let types = self.result_types(source)?;
        let captured = captured(source);
        let scope = self.open_scope(b, &captured);
        let first = 1 + self.values(&captured).len() as i32;
        let strands = blocks_of(source);
        let mut next = first;
        let mut handed = self.handed(source, first)?.into_iter();
        for (number, body) in strands.iter().enumerate() {
            let arguments = arguments_of(*body);
            let needed: Vec<_> = handed.by_ref().take(arguments.len()).collect();
            let strand = self.strand(source, &captured, |inner, b, scope, _| {
                inner.await_needed(b, scope, &needed);
                for (argument, Handed { slot, types, .. }) in arguments.into_iter().zip(needed) {
                    let slots = types.into_iter().zip(slot..);
                    let slots: Vec<Val<'c>> = slots
                        .map(|(ty, slot)| load_slot(b, slot_address(b, scope, slot), ty))
                        .collect();
                    inner.bind_all(source, &[argument], &slots)?;
                }
                for value in inner.block(b, *body)? {
                    store_slot(b, value, slot_address(b, scope, next));
                    next += 1;
                }
                Ok(())
            })?;
            let index = i64_constant(b, number as i64);
            match number + 1 == strands.len() {
                true => self.run_strand(b, &strand, scope, index),
                false => self.begin_strand(b, &strand, scope, index),
            }
        }
        call(b, symbols::JOIN, &[self.runtime, scope], &[]);
        let results: Vec<Val<'c>> = types
            .into_iter()
            .zip(first..)
            .map(|(ty, slot)| load_slot(b, slot_address(b, scope, slot), ty))
            .collect();
        self.bind_results(source, &results);
        Ok(())
    }

    /// Where what strands need of earlier ones is in the scope, first strand to last, where the results begin at
    /// slot `first`.
    fn handed(&self, source: OperationRef<'c, 'c>, first: i32) -> Result<Vec<Handed<'c>>, Failed> {
        let mut slot = first;
        let mut results = Vec::new();
        for (strand, body) in blocks_of(source).into_iter().enumerate() {
            for value in operations_of(body)
                .last()
                .map_or(vec![], |join| operands_of(*join))
            {
                let types = self.types_of(source, &[value])?;
                let width = types.len() as i32;
                results.push(Handed {
                    strand,
                    slot,
                    types,
                });
                slot += width;
            }
        }
        let needs = integers(source, keys::NEEDS).into_iter();
        Ok(needs
            .filter_map(|result| results.get(result as usize).cloned())
            .collect())
    }

    /// Waits for the strands that hand over what the one that begins needs.
    fn await_needed(&self, b: &Builder<'c>, scope: Val<'c>, needed: &[Handed<'c>]) {
        let strands: BTreeSet<usize> = needed.iter().map(|handed| handed.strand).collect();
        for strand in strands {
            let index = i64_constant(b, strand as i64);
            call(b, symbols::AWAIT, &[self.runtime, scope, index], &[]);
        }
    }

    /// The elements of a `cfb.map`, each a strand that writes to the array.
    pub fn map_strands(
        &mut self,
        b: &Builder<'c>,
        source: OperationRef<'c, 'c>,
        types: &[Vec<Type<'c>>],
        (array, length): (Val<'c>, Val<'c>),
    ) -> Outcome {
        let captured = captured(source);
        let scope = self.open_scope(b, &captured);
        let slot = 1 + self.values(&captured).len() as i32;
        store_slot(b, array, slot_address(b, scope, slot));
        let operands = operands_of(source);
        let body = blocks_of(source)[0];
        let strand = self.strand(source, &captured, |inner, b, scope, index| {
            let mut elements = Vec::new();
            for (array, types) in operands.iter().zip(types) {
                elements.extend(load_element(b, inner.value(*array), index, types));
            }
            inner.bind_all(source, &arguments_of(body), &elements)?;
            let element = inner.block(b, body)?;
            let array = load_slot(b, slot_address(b, scope, slot), b.pointer());
            store_element(b, array, index, &element);
            Ok(())
        })?;
        let last = b.subi(length, i64_constant(b, 1));
        count_loop::<Failed>(b, length, &[], |b, index, _| {
            let is_last = b.cmpi(CmpiPredicate::Eq, index, last);
            let branch = |run: &dyn Fn(&Builder<'c>)| {
                let (region, block) = region_with_block(&[], b.location);
                let inner = Builder::at_end(b.context(), block, b.location);
                run(&inner);
                inner.scf_yield(&[]);
                region
            };
            let branches = [
                branch(&|b| self.run_strand(b, &strand, scope, index)),
                branch(&|b| self.begin_strand(b, &strand, scope, index)),
            ];
            b.scf_if(is_last, &[], branches);
            Ok(Vec::new())
        })?;
        call(b, symbols::JOIN, &[self.runtime, scope], &[]);
        Ok(())
    }

    /// A scope in which nothing runs, with the values that its strands use.
    fn open_scope(&mut self, b: &Builder<'c>, captured: &[Val<'c>]) -> Val<'c> {
        // There is one where there is a fork.
        let scope = self.scope_slots.unwrap_or(self.runtime);
        store_slot(b, i64_constant(b, 0), scope);
        for (value, slot) in self.values(captured).into_iter().zip(1..) {
            store_slot(b, value, slot_address(b, scope, slot));
        }
        scope
    }

    /// Adds the function of a strand, whose body gets the scope and the strand's index; gives its name.
    fn strand(
        &mut self,
        source: OperationRef<'c, 'c>,
        captured: &[Val<'c>],
        body: impl FnOnce(&mut Lowering<'c, '_>, &Builder<'c>, Val<'c>, Val<'c>) -> Outcome,
    ) -> Result<String, Failed> {
        let name = format!("cohort_strand_{}", self.program.strands);
        self.program.strands += 1;
        let module = module_end(self.program).at(source.location());
        let private = StringAttribute::new(module.context(), "private").into();
        let attributes = [
            (keys::SYM_VISIBILITY, private),
            (marks::LINKAGE, module.internal_linkage()),
        ];
        let address = module.pointer();
        let inputs = [address, address, module.i64()];
        let b = function(&module, &name, &inputs, &[], &attributes);
        let arguments = arguments_of(b.block());
        let types = self.types_of(source, captured)?;
        let in_place = self.in_place.clone();
        let mut inner = Lowering::new(&b, self.program, source, arguments[0]);
        inner.in_place = in_place;
        let slots: Vec<Val<'c>> = types
            .into_iter()
            .zip(1..)
            .map(|(ty, slot)| load_slot(&b, slot_address(&b, arguments[1], slot), ty))
            .collect();
        inner.bind_all(source, captured, &slots)?;
        body(&mut inner, &b, arguments[1], arguments[2])?;
        b.return_(&[]);
        Ok(name)
    }

    /// Calls a strand.
    fn run_strand(&self, b: &Builder<'c>, strand: &str, scope: Val<'c>, index: Val<'c>) {
        call(b, strand, &[self.runtime, scope, index], &[]);
    }

    /// Forks a strand, or calls it where the runtime does not take it.
    fn begin_strand(&self, b: &Builder<'c>, strand: &str, scope: Val<'c>, index: Val<'c>) {
        let symbol = FlatSymbolRefAttribute::new(b.context(), strand).into();
        let function = b.op(
            Op::FuncConstant,
            &[],
            &[strand_type(b)],
            &[(keys::VALUE, symbol)],
            vec![],
        );
        let operands = [self.runtime, result_of(function, 0), scope, index];
        let begun = call(b, symbols::FORK, &operands, &[b.i32()])[0];
        let is_left = b.cmpi(CmpiPredicate::Eq, begun, i32_constant(b, 0));
        when(b, is_left, |b| self.run_strand(b, strand, scope, index));
    }
}
