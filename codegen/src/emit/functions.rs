//! Writes branches, functions of the compiler's own, and calls of them.

use cohort_dialects::builder::{Op, Val, arguments_of, region_with_block, results_of};
use cohort_dialects::keys::{self, Key};
use cohort_dialects::marks::LIBRARY;
use melior::{
    dialect::llvm::{
        attributes::{Linkage, linkage},
        r#type,
    },
    ir::{
        Region, Type, ValueLike,
        attribute::{
            ArrayAttribute, Attribute, FlatSymbolRefAttribute, StringAttribute, TypeAttribute,
        },
    },
};

use super::Emitter;

impl<'c> Emitter<'c> {
    /// Runs one body where a condition holds, and the other elsewhere.
    pub fn if_else(
        &self,
        condition: Val<'c>,
        then: impl FnOnce(&Emitter<'c>),
        otherwise: impl FnOnce(&Emitter<'c>),
    ) {
        let branches = [self.branch(then), self.branch(otherwise)];
        self.b.scf_if(condition, &[], branches);
    }

    /// Runs the body where a condition holds.
    pub fn if_then(&self, condition: Val<'c>, body: impl FnOnce(&Emitter<'c>)) {
        self.b
            .scf_if(condition, &[], [self.branch(body), Region::new()]);
    }

    /// One value where a condition holds, and another one of the same type elsewhere; only that one is computed.
    pub fn choose(
        &self,
        condition: Val<'c>,
        then: impl FnOnce(&Emitter<'c>) -> Val<'c>,
        otherwise: impl FnOnce(&Emitter<'c>) -> Val<'c>,
    ) -> Val<'c> {
        let (then, ty) = self.value_branch(then);
        let (otherwise, _) = self.value_branch(otherwise);
        let results = results_of(self.b.scf_if(condition, &[ty], [then, otherwise]));
        results[0]
    }

    fn value_branch(&self, body: impl FnOnce(&Emitter<'c>) -> Val<'c>) -> (Region<'c>, Type<'c>) {
        let (region, block) = region_with_block(&[], self.b.location);
        let inner = self.within(block);
        let value = body(&inner);
        inner.b.scf_yield(&[value]);
        (region, value.r#type())
    }

    fn branch(&self, body: impl FnOnce(&Emitter<'c>)) -> Region<'c> {
        let (region, block) = region_with_block(&[], self.b.location);
        let inner = self.within(block);
        body(&inner);
        inner.b.scf_yield(&[]);
        region
    }

    /// A function of a library of the compiler's own, which is called within the module alone and stays a function. Its
    /// body gets its arguments.
    pub fn function(
        &self,
        library: &str,
        name: &str,
        arguments: &[Type<'c>],
        body: impl FnOnce(&Emitter<'c>, &[Val<'c>]),
    ) {
        let context = self.b.context();
        let (region, block) = region_with_block(arguments, self.b.location);
        let inner = self.within(block);
        body(&inner, &arguments_of(block));
        inner.b.llvm_return();
        let ty = r#type::function(r#type::void(context), arguments, false);
        let library = StringAttribute::new(context, library).into();
        self.own_function(name, ty, region, &[(LIBRARY, library)]);
    }

    /// A function that gives a value, which is called within the module alone and stays a function.
    pub fn scalar_function(
        &self,
        name: &str,
        arguments: &[Type<'c>],
        result: Type<'c>,
        body: impl FnOnce(&Emitter<'c>, &[Val<'c>]) -> Val<'c>,
    ) {
        let (region, block) = region_with_block(arguments, self.b.location);
        let inner = self.within(block);
        let value = body(&inner, &arguments_of(block));
        inner.b.llvm_return_value(value);
        let ty = r#type::function(result, arguments, false);
        self.own_function(name, ty, region, &[]);
    }

    fn own_function(
        &self,
        name: &str,
        ty: Type<'c>,
        body: Region<'c>,
        others: &[(Key<'_>, Attribute<'c>)],
    ) {
        let context = self.b.context();
        let mut attributes = vec![
            (keys::SYM_NAME, StringAttribute::new(context, name).into()),
            (keys::FUNCTION_TYPE, TypeAttribute::new(ty).into()),
            (keys::LINKAGE, linkage(context, Linkage::Internal)),
            (keys::NO_INLINE, Attribute::unit(context)),
        ];
        attributes.extend_from_slice(others);
        self.b.op(Op::LlvmFunc, &[], &[], &attributes, vec![body]);
    }

    /// Declares a function that the runtime offers, which gives a value of the type `result`, or nothing.
    pub fn declare(&self, name: &str, arguments: &[Type<'c>], result: Option<Type<'c>>) {
        let context = self.b.context();
        let result = result.unwrap_or_else(|| r#type::void(context));
        let ty = r#type::function(result, arguments, false);
        let nounwind = StringAttribute::new(context, "nounwind").into();
        let attributes = [
            (keys::SYM_NAME, StringAttribute::new(context, name).into()),
            (keys::FUNCTION_TYPE, TypeAttribute::new(ty).into()),
            (
                keys::PASSTHROUGH,
                ArrayAttribute::new(context, &[nounwind]).into(),
            ),
        ];
        self.b
            .op(Op::LlvmFunc, &[], &[], &attributes, vec![Region::new()]);
    }

    /// The address of a function of the module.
    pub fn address_of(&self, function: &str) -> Val<'c> {
        let name = FlatSymbolRefAttribute::new(self.b.context(), function).into();
        let attributes = [(keys::GLOBAL_NAME, name)];
        self.b
            .value_with(Op::LlvmMlirAddressof, &[], self.pointer, &attributes)
    }

    /// Calls a function that gives nothing.
    pub fn call(&self, callee: &str, arguments: &[Val<'c>]) {
        let attributes = self.of_call(callee, arguments);
        self.b.op(Op::LlvmCall, arguments, &[], &attributes, vec![]);
    }

    /// Calls a function that gives a value.
    pub fn call_scalar(&self, callee: &str, arguments: &[Val<'c>], result: Type<'c>) -> Val<'c> {
        let attributes = self.of_call(callee, arguments);
        self.b
            .value_with(Op::LlvmCall, arguments, result, &attributes)
    }

    fn of_call(&self, callee: &str, arguments: &[Val<'c>]) -> [(Key<'static>, Attribute<'c>); 3] {
        let context = self.b.context();
        let segments = self.b.i32s(&[arguments.len() as i32, 0]);
        [
            (
                keys::CALLEE,
                FlatSymbolRefAttribute::new(context, callee).into(),
            ),
            (keys::OPERAND_SEGMENT_SIZES, segments),
            (keys::OP_BUNDLE_SIZES, self.b.i32s(&[])),
        ]
    }
}
