//! Control flow: branches, loops, matches, calls.

use cohort_dialects::builder::{Builder, Op, Val, arguments_of, region_with_block, results_of};
use cohort_frontend::program::{Arm, Expr, FunctionId, Type, VarId};
use melior::ir::{BlockLike, Region, RegionLike};

use crate::cfb;
use crate::expr::{Lowering, types_of};

impl<'c> Lowering<'_, 'c> {
    pub fn match_(
        &mut self,
        at: Builder<'c>,
        ty: &Type,
        scrutinee: &Expr,
        arms: &[Arm],
    ) -> Vec<Val<'c>> {
        let Type::Adt(adt) = scrutinee.ty else {
            unreachable!("a match on {:?}", scrutinee.ty)
        };
        let scrutinee = self.value(at, scrutinee);
        let regions = arms
            .iter()
            .map(|arm| {
                let fields = &self.types().adt(adt).constructors[arm.constructor].fields;
                self.arm(at, fields, arm, ty)
            })
            .collect();
        let results = self.types().flat(ty);
        cfb::match_(at, scrutinee, &results, regions)
    }

    fn arm(&mut self, at: Builder<'c>, fields: &[Type], arm: &Arm, ty: &Type) -> Region<'c> {
        let at = at.at(self.unit.locations.of(&arm.body.span));
        let (region, block) = region_with_block(&self.types().flat_all(fields), at.location);
        let arguments = arguments_of(block);
        let outside = self.dims.clone();
        let inside = Builder::at_end(at.context(), block, at.location);
        let mut rest = &arguments[..];
        for (field, var) in fields.iter().zip(&arm.fields) {
            let (own, after) = rest.split_at(crate::types::width(field));
            self.bind_all(inside, var.as_slice(), own);
            rest = after;
        }
        let values = self.expr(inside, &arm.body);
        let values = self.fitted(inside, values, ty);
        cfb::yield_(inside, &values);
        self.dims = outside;
        region
    }

    pub fn if_(
        &mut self,
        at: Builder<'c>,
        ty: &Type,
        cond: &Expr,
        then: &Expr,
        otherwise: &Expr,
    ) -> Vec<Val<'c>> {
        let cond = self.value(at, cond);
        let regions = [then, otherwise].map(|branch| {
            let at = at.at(self.unit.locations.of(&branch.span));
            self.region(at, &[], branch, ty, Op::ScfYield)
        });
        results_of(at.scf_if(cond, &self.types().flat(ty), regions))
    }

    pub fn while_(
        &mut self,
        at: Builder<'c>,
        vars: &[VarId],
        init: &[Expr],
        cond: &Expr,
        body: &Expr,
    ) -> Vec<Val<'c>> {
        let var_types = self.types_of_vars(vars);
        let init = self.expected(at, init, var_types.iter().copied());
        let types = types_of(&init);

        let (before, block) = region_with_block(&types, at.location);
        let state = arguments_of(block);
        let outside = self.dims.clone();
        let inside = Builder::at_end(at.context(), block, at.location);
        self.bind_all(inside, vars, &state);
        let goes_on = self.value(inside, cond);
        inside.scf_condition(goes_on, &state);
        self.dims = outside;

        let state = match &var_types[..] {
            [only] => (*only).clone(),
            several => Type::Tuple(several.iter().map(|ty| (*ty).clone()).collect()),
        };
        let after = self.region(at, vars, body, &state, Op::ScfYield);
        if let Some(first) = after.first_block().and_then(|body| body.first_operation())
            && let Some(begin) = Builder::before(at.context(), first)
        {
            cfb::turn(begin.at(at.location));
        }
        results_of(at.scf_while(&init, &types, [before, after]))
    }

    pub fn call(
        &mut self,
        at: Builder<'c>,
        ty: &Type,
        function: FunctionId,
        args: &[Expr],
    ) -> Vec<Val<'c>> {
        let called = &self.unit.program.functions[function.0];
        let types = called.params.iter().map(|var| &called.vars[var.0].ty);
        let args = self.expected(at, args, types);
        let results = self.types().flat(ty);
        results_of(at.func_call(&self.unit.symbols[function.0], &args, &results))
    }
}
