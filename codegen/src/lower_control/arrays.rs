//! Arrays: `[length, element slots…]` in memory, never changed once built but for the buffer of a
//! fold that pushes, see [`growth`].

use cohort_abi::Failure;
use cohort_dialects::builder::{
    Builder, CmpiPredicate, Op, Val, arguments_of, operands_of, results_of,
};
use cohort_dialects::keys;
use cohort_dialects::types::{array_element, flatten};
use cohort_passes::level2::fork_join::STRANDS;
use cohort_passes::pass::{Failed, Outcome, error};
use cohort_passes::support::ir::{blocks_of, op_key};
use melior::ir::{OperationRef, Type, ValueLike, operation::OperationLike};

use super::emit::{
    allocate, allocate_slots, count_loop, i64_constant, load_slot, slot_address, slot_address_at,
    step, store_slot,
};
use super::function::Lowering;
use super::growth::growth;

impl<'c> Lowering<'c, '_> {
    pub fn array_create(&mut self, b: &Builder<'c>, source: OperationRef<'c, 'c>) -> Outcome {
        let slots = self.values(&operands_of(source));
        let width = self.element_slots(source, results_of(source)[0])?.len();
        let array = allocate(b, self.runtime, 1 + slots.len() as i64);
        store_slot(
            b,
            i64_constant(b, (slots.len() / width.max(1)) as i64),
            array,
        );
        for (slot, number) in slots.into_iter().zip(1..) {
            store_slot(b, slot, slot_address(b, array, number));
        }
        self.bind_results(source, &[array]);
        Ok(())
    }

    pub fn array_len(&mut self, b: &Builder<'c>, source: OperationRef<'c, 'c>) -> Outcome {
        let array = self.value(operands_of(source)[0]);
        let length = load_slot(b, array, b.i64());
        let length = b.trunci(length, b.i32());
        self.bind_results(source, &[length]);
        Ok(())
    }

    pub fn array_get(&mut self, b: &Builder<'c>, source: OperationRef<'c, 'c>) -> Outcome {
        let operands = operands_of(source);
        let types = self.element_slots(source, operands[0])?;
        let (array, index) = (self.value(operands[0]), self.value(operands[1]));
        let index = self.wide_index(b, index);
        let length = load_slot(b, array, b.i64());
        let outside = b.cmpi(CmpiPredicate::Uge, index, length);
        self.fail_when(
            b,
            source,
            outside,
            Failure::IndexOutOfRange,
            (index, length),
        );
        let values = load_element(b, array, index, &types);
        self.bind_results(source, &values);
        Ok(())
    }

    pub fn array_push(&mut self, b: &Builder<'c>, source: OperationRef<'c, 'c>) -> Outcome {
        let operands = operands_of(source);
        let width = self.element_slots(source, operands[0])?.len();
        let operands = self.values(&operands);
        let (old, values) = (operands[0], &operands[1..]);
        let length = load_slot(b, old, b.i64());
        let longer = b.addi(length, i64_constant(b, 1));
        let array = if self.in_place.contains(&op_key(source)) {
            old
        } else {
            self.longer_copy(b, old, length, longer, width)
        };
        store_slot(b, longer, array);
        store_element(b, array, length, values);
        self.bind_results(source, &[array]);
        Ok(())
    }

    pub fn array_reverse(&mut self, b: &Builder<'c>, source: OperationRef<'c, 'c>) -> Outcome {
        let types = self.element_slots(source, operands_of(source)[0])?;
        let old = self.value(operands_of(source)[0]);
        let length = load_slot(b, old, b.i64());
        let array = self.new_array(b, length, types.len());
        let last = b.subi(length, i64_constant(b, 1));
        count_loop::<Failed>(b, length, &[], |b, index, _| {
            let from = b.subi(last, index);
            let element = load_element(b, old, from, &types);
            store_element(b, array, index, &element);
            Ok(Vec::new())
        })?;
        self.bind_results(source, &[array]);
        Ok(())
    }

    pub fn array_range(&mut self, b: &Builder<'c>, source: OperationRef<'c, 'c>) -> Outcome {
        let count = self.value(operands_of(source)[0]);
        let count = self.wide_index(b, count);
        let count = b.maxsi(count, i64_constant(b, 0));
        let array = self.new_array(b, count, 1);
        count_loop::<Failed>(b, count, &[], |b, index, _| {
            store_element(b, array, index, &[index]);
            Ok(Vec::new())
        })?;
        self.bind_results(source, &[array]);
        Ok(())
    }

    /// A tensor stacked from rows is the array of its rows.
    pub fn stack(&mut self, b: &Builder<'c>, source: OperationRef<'c, 'c>) -> Outcome {
        let operand = operands_of(source)[0];
        let types = self.element_slots(source, operand)?;
        if types != [b.i64()] {
            return Err(error(
                source,
                "not supported yet: a tensor stacked from host values",
            ));
        }
        let array = self.value(operand);
        self.bind_results(source, &[array]);
        Ok(())
    }

    pub fn map(&mut self, b: &Builder<'c>, source: OperationRef<'c, 'c>) -> Outcome {
        let operands = operands_of(source);
        let types = operands
            .iter()
            .map(|array| self.element_slots(source, *array))
            .collect::<Result<Vec<_>, _>>()?;
        let width = self.element_slots(source, results_of(source)[0])?.len();
        let arrays = self.values(&operands);
        let length = load_slot(b, arrays[0], b.i64());
        for array in &arrays[1..] {
            let other = load_slot(b, *array, b.i64());
            let differs = b.cmpi(CmpiPredicate::Ne, length, other);
            self.fail_when(b, source, differs, Failure::LengthMismatch, (length, other));
        }
        let result = self.new_array(b, length, width);
        step(b, self.runtime, length);
        if source.has_attribute(&STRANDS) {
            self.map_strands(b, source, &types, (result, length))?;
            self.bind_results(source, &[result]);
            return Ok(());
        }
        let body = blocks_of(source)[0];
        count_loop(b, length, &[], |b, index, _| {
            let mut elements = Vec::new();
            for (array, types) in arrays.iter().zip(&types) {
                elements.extend(load_element(b, *array, index, types));
            }
            self.bind_all(source, &arguments_of(body), &elements)?;
            let element = self.block(b, body)?;
            store_element(b, result, index, &element);
            Ok(Vec::new())
        })?;
        self.bind_results(source, &[result]);
        Ok(())
    }

    pub fn fold(&mut self, b: &Builder<'c>, source: OperationRef<'c, 'c>) -> Outcome {
        let operands = operands_of(source);
        let types = self.element_slots(source, operands[0])?;
        let carried_values = operands[1..].to_vec();
        let array = self.value(operands[0]);
        let length = load_slot(b, array, b.i64());
        step(b, self.runtime, length);
        let body = blocks_of(source)[0];
        let mut starts = Vec::new();
        for (number, carried) in carried_values.iter().enumerate() {
            let init = &self.value(*carried);
            match growth(source, number) {
                None => starts.extend(self.slots(*carried)),
                Some(growth) => {
                    self.program.manifest.grows_in_place = true;
                    self.in_place
                        .extend(growth.pushes.iter().map(|push| op_key(*push)));
                    let width = self.element_slots(source, carried_values[number])?.len();
                    let held = load_slot(b, *init, b.i64());
                    let pushes = i64_constant(b, growth.pushes_a_turn as i64);
                    let pushes = b.muli(length, pushes);
                    let capacity = b.addi(held, pushes);
                    let copy = self.longer_copy(b, *init, held, capacity, width);
                    store_slot(b, held, copy);
                    starts.push(copy);
                }
            }
        }
        let results = count_loop(b, length, &starts, |b, index, carried| {
            let element = load_element(b, array, index, &types);
            let values = [carried, &element].concat();
            self.bind_all(source, &arguments_of(body), &values)?;
            self.block(b, body)
        })?;
        self.bind_results(source, &results);
        Ok(())
    }

    /// The lowered types of an array's element, one a slot.
    fn element_slots(
        &self,
        source: OperationRef<'c, 'c>,
        array: Val<'c>,
    ) -> Result<Vec<Type<'c>>, Failed> {
        let element = array_element(array.r#type())
            .ok_or_else(|| error(source, "an operand is not an array"))?;
        let mut slots = Vec::new();
        for ty in flatten(element) {
            slots.extend(self.lowered_type(source, ty)?);
        }
        Ok(slots)
    }

    /// The first `length` elements of an array in room for `capacity`; the length is not written.
    fn longer_copy(
        &self,
        b: &Builder<'c>,
        old: Val<'c>,
        length: Val<'c>,
        capacity: Val<'c>,
        width: usize,
    ) -> Val<'c> {
        let array = self.room(b, capacity, width);
        let bytes = b.muli(length, i64_constant(b, 8 * width as i64));
        copy_bytes(b, slot_address(b, array, 1), slot_address(b, old, 1), bytes);
        array
    }

    /// Room for `length` elements, the length written.
    fn new_array(&self, b: &Builder<'c>, length: Val<'c>, width: usize) -> Val<'c> {
        let array = self.room(b, length, width);
        store_slot(b, length, array);
        array
    }

    fn room(&self, b: &Builder<'c>, capacity: Val<'c>, width: usize) -> Val<'c> {
        let slots = b.muli(capacity, i64_constant(b, width as i64));
        let slots = b.addi(slots, i64_constant(b, 1));
        allocate_slots(b, self.runtime, slots)
    }
}

/// The address of the slot before element `index`.
fn element_base<'c>(b: &Builder<'c>, array: Val<'c>, index: Val<'c>, width: usize) -> Val<'c> {
    let offset = match width {
        1 => index,
        _ => b.muli(index, i64_constant(b, width as i64)),
    };
    slot_address_at(b, array, offset)
}

pub fn load_element<'c>(
    b: &Builder<'c>,
    array: Val<'c>,
    index: Val<'c>,
    types: &[Type<'c>],
) -> Vec<Val<'c>> {
    let base = element_base(b, array, index, types.len());
    types
        .iter()
        .zip(1..)
        .map(|(ty, slot)| load_slot(b, slot_address(b, base, slot), *ty))
        .collect()
}

pub fn store_element<'c>(b: &Builder<'c>, array: Val<'c>, index: Val<'c>, values: &[Val<'c>]) {
    let base = element_base(b, array, index, values.len());
    for (value, slot) in values.iter().zip(1..) {
        store_slot(b, *value, slot_address(b, base, slot));
    }
}

fn copy_bytes<'c>(b: &Builder<'c>, to: Val<'c>, from: Val<'c>, bytes: Val<'c>) {
    let attributes = [(keys::IS_VOLATILE, b.bool_attr(false))];
    b.op(
        Op::LlvmIntrMemcpy,
        &[to, from, bytes],
        &[],
        &attributes,
        vec![],
    );
}
