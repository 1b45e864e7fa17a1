//! Values of algebraic data types: `[tag, field slots…]` in memory.

use cohort_abi::manifest::Constructor;
use cohort_abi::text_slots;
use cohort_dialects::builder::{
    Builder, CmpiPredicate, Op, Val, arguments_of, operands_of, region_with_block, result_of,
    results_of,
};
use cohort_dialects::keys;
use cohort_passes::pass::{Failed, Outcome, error};
use cohort_passes::support::ir::{blocks_of, name_attribute, symbol_of, top_level};
use melior::ir::{
    BlockRef, OperationRef, Region, Type, ValueLike,
    attribute::{FlatSymbolRefAttribute, StringAttribute, TypeAttribute},
};

use super::emit::{allocate, i64_constant, load_slot, module_end, slot_address, store_slot};
use super::function::Lowering;

impl<'c> Lowering<'c, '_> {
    pub fn construct(&mut self, b: &Builder<'c>, source: OperationRef<'c, 'c>) -> Outcome {
        let ty = results_of(source)[0].r#type();
        let name = name_attribute(source, keys::CONSTRUCTOR).unwrap_or_default();
        let tag = self
            .constructors(source, ty)?
            .iter()
            .position(|known| known.name == name);
        let Some(tag) = tag else {
            return Err(error(
                source,
                &format!("`{ty}` has no constructor `{name}`"),
            ));
        };
        let fields = self.values(&operands_of(source));
        let value = if fields.is_empty() {
            self.constant_tag(b, tag)
        } else {
            let value = allocate(b, self.runtime, 1 + fields.len() as i64);
            store_slot(b, i64_constant(b, tag as i64), value);
            for (field, slot) in fields.into_iter().zip(1..) {
                store_slot(b, field, slot_address(b, value, slot));
            }
            value
        };
        self.bind_results(source, &[value]);
        Ok(())
    }

    /// A constructor without fields needs no memory of the instance.
    fn constant_tag(&mut self, b: &Builder<'c>, tag: usize) -> Val<'c> {
        self.constant_slots(b, &format!("cohort.tag.{tag}"), &[tag as u64])
    }

    /// Nor does a text of the program.
    pub fn str_constant(&mut self, b: &Builder<'c>, source: OperationRef<'c, 'c>) -> Outcome {
        let text = name_attribute(source, keys::TEXT).unwrap_or_default();
        let slots = text_slots(&text);
        let words: Vec<String> = slots.iter().map(|slot| format!("{slot:x}")).collect();
        let text = self.constant_slots(b, &format!("cohort.text.{}", words.join(".")), &slots);
        self.bind_results(source, &[text]);
        Ok(())
    }

    /// The address of slots that never change, whose name tells what they hold.
    fn constant_slots(&mut self, b: &Builder<'c>, name: &str, slots: &[u64]) -> Val<'c> {
        let symbol = FlatSymbolRefAttribute::new(b.context(), name).into();
        let known = top_level(self.program.module)
            .into_iter()
            .any(|op| symbol_of(op).as_deref() == Some(name));
        if !known {
            let count = slots.len();
            let words: Vec<i64> = slots.iter().map(|slot| *slot as i64).collect();
            let (value, ty) = match words.as_slice() {
                [only] => (b.i64_attr(*only), b.i64()),
                _ => {
                    let table = b.tensor_type(&[Some(count as u64)], b.i64());
                    let value = b.elements(table, b.i64(), &words);
                    (value, b.llvm_array(count as u32, b.i64()))
                }
            };
            let attributes = [
                (
                    keys::SYM_NAME,
                    StringAttribute::new(b.context(), name).into(),
                ),
                (keys::GLOBAL_TYPE, TypeAttribute::new(ty).into()),
                (keys::VALUE, value),
                (keys::LINKAGE, b.internal_linkage()),
                (keys::CONSTANT, b.unit_attr()),
                (keys::ADDR_SPACE, b.i32_attr(0)),
            ];
            module_end(self.program).op(
                Op::LlvmMlirGlobal,
                &[],
                &[],
                &attributes,
                vec![Region::new()],
            );
        }
        b.value_with(
            Op::LlvmMlirAddressof,
            &[],
            b.pointer(),
            &[(keys::GLOBAL_NAME, symbol)],
        )
    }

    pub fn match_(&mut self, b: &Builder<'c>, source: OperationRef<'c, 'c>) -> Outcome {
        let scrutinee = self.value(operands_of(source)[0]);
        let types = self.result_types(source)?;
        let cases = blocks_of(source);
        let results = match cases.as_slice() {
            [] => return Err(error(source, "a match without cases")),
            [only] => self.case(b, source, *only, scrutinee)?,
            [first, second] => {
                let tag = load_slot(b, scrutinee, b.i64());
                let is_first = b.cmpi(CmpiPredicate::Eq, tag, i64_constant(b, 0));
                let first = self.case_region(b, source, *first, scrutinee)?;
                let second = self.case_region(b, source, *second, scrutinee)?;
                results_of(b.scf_if(is_first, &types, [first, second]))
            }
            [tested @ .., last] => {
                let tag = load_slot(b, scrutinee, b.i64());
                let tag = b.index_cast(tag, b.index_type());
                let mut regions = vec![self.case_region(b, source, *last, scrutinee)?];
                for case in tested {
                    regions.push(self.case_region(b, source, *case, scrutinee)?);
                }
                let tags: Vec<i64> = (0..tested.len() as i64).collect();
                let tags = b.i64s(&tags);
                let switch = b.op(
                    Op::ScfIndexSwitch,
                    &[tag],
                    &types,
                    &[(keys::CASES, tags)],
                    regions,
                );
                (0..types.len())
                    .map(|index| result_of(switch, index))
                    .collect()
            }
        };
        self.bind_results(source, &results);
        Ok(())
    }

    fn case_region(
        &mut self,
        b: &Builder<'c>,
        source: OperationRef<'c, 'c>,
        case: BlockRef<'c, 'c>,
        scrutinee: Val<'c>,
    ) -> Result<Region<'c>, Failed> {
        let (region, block) = region_with_block(&[], b.location);
        let inner = Builder::at_end(b.context(), block, b.location);
        let results = self.case(&inner, source, case, scrutinee)?;
        inner.scf_yield(&results);
        Ok(region)
    }

    /// Reads the fields and rebuilds the case's operations.
    fn case(
        &mut self,
        b: &Builder<'c>,
        source: OperationRef<'c, 'c>,
        case: BlockRef<'c, 'c>,
        scrutinee: Val<'c>,
    ) -> Result<Vec<Val<'c>>, Failed> {
        let mut slot = 1;
        for field in arguments_of(case) {
            let mut slots = Vec::new();
            for ty in self.lowered_type(source, field.r#type())? {
                slots.push(load_slot(b, slot_address(b, scrutinee, slot), ty));
                slot += 1;
            }
            self.bind_slots(field, slots);
        }
        self.block(b, case)
    }

    fn constructors(
        &self,
        source: OperationRef<'c, 'c>,
        ty: Type<'c>,
    ) -> Result<&[Constructor], Failed> {
        let adt = self.program.manifest.adt(ty);
        adt.map(|adt| adt.constructors.as_slice())
            .ok_or_else(|| error(source, &format!("`{ty}` is not declared")))
    }
}
