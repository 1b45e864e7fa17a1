//! Control flow, calls and memory as methods of the [`Builder`], over the builders that melior has for them or generates
//! from declarations.

use melior::dialect::{
    func,
    llvm::{self, LoadStoreOptions},
    ods, scf,
};
use melior::ir::{
    Attribute, OperationRef, Region, Type, ValueLike,
    attribute::{FlatSymbolRefAttribute, StringAttribute},
};

use crate::builder::{Builder, Val, result_of, results_of};

impl<'c> Builder<'c> {
    /// `func.call`
    pub fn func_call(
        &self,
        function: &str,
        operands: &[Val<'c>],
        results: &[Type<'c>],
    ) -> OperationRef<'c, 'c> {
        let function = FlatSymbolRefAttribute::new(self.context(), function);
        self.insert(func::call(
            self.context(),
            function,
            operands,
            results,
            self.location,
        ))
    }

    /// `scf.for`: a loop from a number up to another by a step, whose body takes the counter and what is carried.
    pub fn scf_for(
        &self,
        [from, to, step]: [Val<'c>; 3],
        carried: &[Val<'c>],
        body: Region<'c>,
    ) -> OperationRef<'c, 'c> {
        let types: Vec<_> = carried.iter().map(ValueLike::r#type).collect();
        let operation = ods::scf::ForOperation::builder(self.context(), self.location)
            .results(&types)
            .lower_bound(from)
            .upper_bound(to)
            .step(step)
            .init_args(carried)
            .region(body)
            .build();
        self.insert(operation.into())
    }

    /// `scf.while`: the first region decides whether the second runs, and what the loop gives in the end.
    pub fn scf_while(
        &self,
        carried: &[Val<'c>],
        results: &[Type<'c>],
        [decides, body]: [Region<'c>; 2],
    ) -> OperationRef<'c, 'c> {
        self.insert(scf::r#while(carried, results, decides, body, self.location))
    }

    /// `scf.condition`: whether a loop goes on, and with what.
    pub fn scf_condition(&self, condition: Val<'c>, values: &[Val<'c>]) -> OperationRef<'c, 'c> {
        self.insert(scf::condition(condition, values, self.location))
    }

    /// `llvm.load`, of natural alignment.
    pub fn llvm_load(&self, address: Val<'c>, ty: Type<'c>) -> Val<'c> {
        let options = LoadStoreOptions::new();
        let operation = llvm::load(self.context(), address, ty, self.location, options);
        result_of(self.insert(operation), 0)
    }

    /// `llvm.store`, of natural alignment.
    pub fn llvm_store(&self, value: Val<'c>, address: Val<'c>) -> OperationRef<'c, 'c> {
        let options = LoadStoreOptions::new();
        let operation = llvm::store(self.context(), value, address, self.location, options);
        self.insert(operation)
    }

    /// `llvm.return` of nothing.
    pub fn llvm_return(&self) -> OperationRef<'c, 'c> {
        self.insert(llvm::r#return(None, self.location))
    }

    /// `llvm.return` of a value.
    pub fn llvm_return_value(&self, value: Val<'c>) -> OperationRef<'c, 'c> {
        self.insert(llvm::r#return(Some(value), self.location))
    }

    /// `ml_program.global_load_const`: what a global of this symbol holds.
    pub fn global(&self, symbol: Attribute<'c>, ty: Type<'c>) -> Val<'c> {
        let operation =
            crate::ml_program::global_load_const(self.context(), ty, symbol, self.location);
        result_of(self.insert(operation.into()), 0)
    }

    /// `cfb.param`: the handle of the parameter of this name.
    pub fn cfb_param(&self, parameter: Attribute<'c>, ty: Type<'c>) -> Val<'c> {
        let operation =
            crate::cfb::param(self.context(), ty, flat_symbol(parameter), self.location);
        result_of(self.insert(operation.into()), 0)
    }

    /// `cfb.construct`: a value of an algebraic data type.
    pub fn cfb_construct(&self, constructor: &str, fields: &[Val<'c>], ty: Type<'c>) -> Val<'c> {
        let constructor = StringAttribute::new(self.context(), constructor);
        let operation =
            crate::cfb::construct(self.context(), ty, fields, constructor, self.location);
        result_of(self.insert(operation.into()), 0)
    }

    /// `cfb.record`: the handles of what a call of a kernel will have computed.
    pub fn cfb_record(
        &self,
        kernel: &str,
        inputs: &[Val<'c>],
        results: &[Type<'c>],
    ) -> Vec<Val<'c>> {
        let kernel = FlatSymbolRefAttribute::new(self.context(), kernel);
        let operation = crate::cfb::record(self.context(), results, inputs, kernel, self.location);
        results_of(self.insert(operation.into()))
    }
}

fn flat_symbol(symbol: Attribute<'_>) -> FlatSymbolRefAttribute<'_> {
    FlatSymbolRefAttribute::try_from(symbol)
        .unwrap_or_else(|_| unreachable!("`{symbol}` is not a name of a symbol"))
}
