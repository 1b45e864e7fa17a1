//! Follows values through the program to the places they reach.

use rustc_hash::FxHashMap;

use super::{Places, is_flag};
use crate::program::{Closure, Elem, Expr, ExprKind, Program, Type, VarId};

/// Edges between the places of scalars, and which of them are tensors.
pub struct Flow<'p> {
    program: &'p Program,
    edges: Vec<Vec<usize>>,
    tensor: Vec<bool>,
    /// By type, constructor and field.
    pub fields: Vec<Vec<Vec<Places>>>,
    /// By function and variable; `None` for a variable that nothing binds.
    pub vars: Vec<Vec<Option<Places>>>,
    pub results: Vec<Places>,
    /// The places of each expression's value. The program is borrowed, so its nodes stay where
    /// they are and their addresses name them.
    exprs: FxHashMap<*const Expr, Places>,
    function: usize,
}

impl<'p> Flow<'p> {
    pub fn new(program: &'p Program) -> Self {
        let mut flow = Flow {
            program,
            edges: Vec::new(),
            tensor: Vec::new(),
            fields: Vec::new(),
            vars: Vec::new(),
            results: Vec::new(),
            exprs: FxHashMap::default(),
            function: 0,
        };
        for adt in &program.adts {
            let constructors = adt
                .constructors
                .iter()
                .map(|constructor| {
                    constructor
                        .fields
                        .iter()
                        .map(|field| flow.places(field))
                        .collect()
                })
                .collect();
            flow.fields.push(constructors);
        }
        for function in &program.functions {
            let mut vars = vec![None; function.vars.len()];
            for param in &function.params {
                vars[param.0] = Some(flow.places(&function.vars[param.0].ty));
            }
            flow.vars.push(vars);
            let result = flow.places(&function.result);
            flow.results.push(result);
        }
        flow
    }

    pub fn program(&mut self) {
        let program = self.program;
        for (index, function) in program.functions.iter().enumerate() {
            self.function = index;
            let body = self.expr(&function.body);
            let result = self.results[index].clone();
            self.flow(&body, &result);
        }
    }

    /// The floats that the entry takes and gives are tensors.
    pub fn differentiate_entry(&mut self) {
        let program = self.program;
        let Some(entry) = program.functions.get(program.entry.0) else {
            return;
        };
        let mut reached = vec![false; program.adts.len()];
        let mut left: Vec<(&'p Type, Places)> = Vec::new();
        for param in &entry.params {
            if let Some(places) = &self.vars[program.entry.0][param.0] {
                left.push((&entry.vars[param.0].ty, places.clone()));
            }
        }
        left.push((&entry.result, self.results[program.entry.0].clone()));
        while let Some((ty, places)) = left.pop() {
            match (ty, places) {
                (Type::Scalar(Elem::F32), Places::Scalar(place)) => self.tensor[place] = true,
                (Type::Tuple(types), Places::Tuple(places)) => {
                    left.extend(types.iter().zip(places))
                }
                (Type::Array(element), Places::Array(places)) => left.push((element, *places)),
                (Type::Adt(adt), _) if !std::mem::replace(&mut reached[adt.0], true) => {
                    let constructors = program.adts[adt.0].constructors.iter();
                    for (constructor, places) in constructors.zip(&self.fields[adt.0]) {
                        let fields = constructor.fields.iter();
                        left.extend(fields.zip(places.iter().cloned()));
                    }
                }
                _ => {}
            }
        }
    }

    /// Spreads tensors along the edges until nothing changes.
    pub fn solve(&mut self) {
        let mut work: Vec<usize> = (0..self.tensor.len())
            .filter(|place| self.tensor[*place])
            .collect();
        while let Some(place) = work.pop() {
            for &target in &self.edges[place] {
                if !self.tensor[target] {
                    self.tensor[target] = true;
                    work.push(target);
                }
            }
        }
    }

    pub fn of(&self, expr: &Expr) -> Places {
        self.exprs
            .get(&std::ptr::from_ref(expr))
            .cloned()
            .unwrap_or(Places::Opaque)
    }

    /// A type with its scalars where they were found to live.
    pub fn staged(&self, ty: &Type, places: &Places) -> Type {
        match (ty, places) {
            (Type::Scalar(elem), Places::Scalar(place)) if self.tensor[*place] => Type::Tensor {
                elem: *elem,
                shape: Vec::new(),
            },
            (Type::Tuple(types), Places::Tuple(places)) => Type::Tuple(
                types
                    .iter()
                    .zip(places)
                    .map(|(ty, places)| self.staged(ty, places))
                    .collect(),
            ),
            (Type::Array(ty), Places::Array(places)) => {
                Type::Array(Box::new(self.staged(ty, places)))
            }
            _ => ty.clone(),
        }
    }

    fn fresh(&mut self) -> usize {
        self.edges.push(Vec::new());
        self.tensor.push(false);
        self.tensor.len() - 1
    }

    fn places(&mut self, ty: &Type) -> Places {
        match ty {
            Type::Scalar(_) => Places::Scalar(self.fresh()),
            Type::Tuple(types) => Places::Tuple(types.iter().map(|ty| self.places(ty)).collect()),
            Type::Array(element) => Places::Array(Box::new(self.places(element))),
            Type::Tensor { .. } | Type::Adt(_) | Type::Str => Places::Opaque,
        }
    }

    /// The places of what a tensor computation gives: its scalars are tensors.
    fn computed(&mut self, ty: &Type) -> Places {
        let places = self.places(ty);
        if let Places::Scalar(place) = places {
            self.tensor[place] = true;
        }
        places
    }

    /// A value at `from` is put where `to` is; it can be lifted on the way, but not inside an
    /// array, whose elements live where the other array's do.
    fn flow(&mut self, from: &Places, to: &Places) {
        match (from, to) {
            (Places::Scalar(from), Places::Scalar(to)) => self.edges[*from].push(*to),
            (Places::Tuple(from), Places::Tuple(to)) => {
                for (from, to) in from.iter().zip(to) {
                    self.flow(from, to);
                }
            }
            (Places::Array(from), Places::Array(to)) => self.equate(from, to),
            _ => {}
        }
    }

    fn equate(&mut self, left: &Places, right: &Places) {
        match (left, right) {
            (Places::Scalar(left), Places::Scalar(right)) => {
                self.edges[*left].push(*right);
                self.edges[*right].push(*left);
            }
            (Places::Tuple(left), Places::Tuple(right)) => {
                for (left, right) in left.iter().zip(right) {
                    self.equate(left, right);
                }
            }
            (Places::Array(left), Places::Array(right)) => self.equate(left, right),
            _ => {}
        }
    }

    fn set(&mut self, var: VarId, places: Places) {
        self.vars[self.function][var.0] = Some(places);
    }

    fn var_type(&self, var: VarId) -> &'p Type {
        &self.program.functions[self.function].vars[var.0].ty
    }

    fn expr(&mut self, expr: &'p Expr) -> Places {
        let places = self.expr_places(expr);
        self.exprs.insert(std::ptr::from_ref(expr), places.clone());
        places
    }

    /// The value of whichever branch is taken.
    fn join(&mut self, ty: &Type, branches: &[Places]) -> Places {
        let result = self.places(ty);
        for branch in branches {
            self.flow(branch, &result);
        }
        result
    }

    fn element(&mut self, array: &'p Expr) -> Places {
        match self.expr(array) {
            Places::Array(element) => *element,
            _ => Places::Opaque,
        }
    }

    fn expr_places(&mut self, expr: &'p Expr) -> Places {
        match &expr.kind {
            ExprKind::Literal(_) => self.places(&expr.ty),
            ExprKind::Var(var) => self.vars[self.function][var.0]
                .clone()
                .unwrap_or(Places::Opaque),
            ExprKind::Param(_) | ExprKind::Iota { .. } => self.computed(&expr.ty),
            ExprKind::Let { var, value, body } => {
                let places = self.expr(value);
                self.set(*var, places);
                self.expr(body)
            }
            ExprKind::Phase(body) | ExprKind::Debug { value: body, .. } => self.expr(body),
            ExprKind::Length { count, body, .. } => {
                self.expr(count);
                self.expr(body)
            }
            ExprKind::Tuple(parts) => {
                Places::Tuple(parts.iter().map(|part| self.expr(part)).collect())
            }
            ExprKind::TupleGet { tuple, index } => match self.expr(tuple) {
                Places::Tuple(parts) => parts.get(*index).cloned().unwrap_or(Places::Opaque),
                _ => Places::Opaque,
            },
            ExprKind::Construct {
                adt,
                constructor,
                fields,
            } => {
                for (index, field) in fields.iter().enumerate() {
                    let places = self.expr(field);
                    let to = self.fields[adt.0][*constructor][index].clone();
                    self.flow(&places, &to);
                }
                Places::Opaque
            }
            ExprKind::Match { scrutinee, arms } => {
                self.expr(scrutinee);
                let mut branches = Vec::new();
                for arm in arms {
                    if let Type::Adt(adt) = &scrutinee.ty {
                        for (index, var) in arm.fields.iter().enumerate() {
                            let Some(var) = var else { continue };
                            let places = self.fields[adt.0][arm.constructor][index].clone();
                            self.set(*var, places);
                        }
                    }
                    branches.push(self.expr(&arm.body));
                }
                self.join(&expr.ty, &branches)
            }
            ExprKind::If {
                cond,
                then,
                otherwise,
            } => {
                self.expr(cond);
                let branches = [self.expr(then), self.expr(otherwise)];
                self.join(&expr.ty, &branches)
            }
            ExprKind::While {
                vars,
                init,
                cond,
                body,
            } => self.while_loop(vars, init, cond, body),
            ExprKind::Call { function, args } => {
                let callee = &self.program.functions[function.0];
                for (arg, param) in args.iter().zip(&callee.params) {
                    let places = self.expr(arg);
                    if let Some(to) = self.vars[function.0][param.0].clone() {
                        self.flow(&places, &to);
                    }
                }
                self.results[function.0].clone()
            }
            ExprKind::Map { arrays, closure } => {
                for (array, param) in arrays.iter().zip(&closure.params) {
                    let element = self.element(array);
                    self.set(*param, element);
                }
                let body = self.expr(&closure.body);
                let element = self.join(&closure.body.ty, &[body]);
                Places::Array(Box::new(element))
            }
            ExprKind::Fold {
                array,
                init,
                closure,
            } => self.fold(array, init, closure),
            _ => self.operation(expr),
        }
    }

    fn while_loop(
        &mut self,
        vars: &'p [VarId],
        init: &'p [Expr],
        cond: &'p Expr,
        body: &'p Expr,
    ) -> Places {
        let mut state = Vec::new();
        for (var, init) in vars.iter().zip(init) {
            let from = self.expr(init);
            let ty = self.var_type(*var);
            let places = self.places(ty);
            if !is_flag(ty) {
                self.flow(&from, &places);
            }
            self.set(*var, places.clone());
            state.push(places);
        }
        self.expr(cond);
        let next = match self.expr(body) {
            Places::Tuple(parts) if vars.len() > 1 => parts,
            only => vec![only],
        };
        for ((var, next), places) in vars.iter().zip(&next).zip(&state) {
            if !is_flag(self.var_type(*var)) {
                self.flow(next, places);
            }
        }
        match (state.pop(), vars.len()) {
            (Some(only), 1) => only,
            (Some(last), _) => {
                state.push(last);
                Places::Tuple(state)
            }
            (None, _) => Places::Opaque,
        }
    }

    fn fold(&mut self, array: &'p Expr, init: &'p Expr, closure: &'p Closure) -> Places {
        let element = self.element(array);
        let init = self.expr(init);
        let [acc_var, element_var] = closure.params.as_slice() else {
            return Places::Opaque;
        };
        let acc = self.places(self.var_type(*acc_var));
        self.flow(&init, &acc);
        self.set(*acc_var, acc.clone());
        self.set(*element_var, element);
        let body = self.expr(&closure.body);
        self.flow(&body, &acc);
        acc
    }

    /// Arrays and computations; those without scalars in their result need no edges.
    fn operation(&mut self, expr: &'p Expr) -> Places {
        match &expr.kind {
            ExprKind::Array(elements) => {
                let places = self.places(&expr.ty);
                for element in elements {
                    let from = self.expr(element);
                    if let Places::Array(to) = &places {
                        self.flow(&from, to);
                    }
                }
                places
            }
            ExprKind::Index { array, index } => {
                self.expr(index);
                self.element(array)
            }
            ExprKind::Push { array, value } => {
                let array = self.expr(array);
                let value = self.expr(value);
                if let Places::Array(element) = &array {
                    self.flow(&value, element);
                }
                array
            }
            ExprKind::Reverse(array) => self.expr(array),
            ExprKind::Sum(array) => match self.element(array) {
                // The sum is a value of its own: what becomes of it does not concern the elements.
                Places::Scalar(element) => self.join(&expr.ty, &[Places::Scalar(element)]),
                _ => Places::Opaque,
            },
            ExprKind::Text(_) => Places::Opaque,
            ExprKind::SameText { lhs, rhs } => {
                self.expr(lhs);
                self.expr(rhs);
                self.places(&expr.ty)
            }
            ExprKind::Len(value)
            | ExprKind::DimSize { value, .. }
            | ExprKind::Range(value)
            | ExprKind::Force(value) => {
                self.expr(value);
                self.places(&expr.ty)
            }
            ExprKind::Unary { value, .. } | ExprKind::Cast(value) => {
                let value = self.expr(value);
                self.elementwise(&expr.ty, &[value])
            }
            ExprKind::Binary { lhs, rhs, .. } => {
                let operands = [self.expr(lhs), self.expr(rhs)];
                self.elementwise(&expr.ty, &operands)
            }
            ExprKind::Select {
                cond,
                then,
                otherwise,
            } => {
                let operands = [self.expr(cond), self.expr(then), self.expr(otherwise)];
                self.elementwise(&expr.ty, &operands)
            }
            ExprKind::MatMul { lhs, rhs } => {
                self.expr(lhs);
                self.expr(rhs);
                self.computed(&expr.ty)
            }
            ExprKind::Row { table, index }
            | ExprKind::Gather {
                table,
                indices: index,
            }
            | ExprKind::SegmentSum {
                values: table,
                segments: index,
            } => {
                self.expr(table);
                self.expr(index);
                self.computed(&expr.ty)
            }
            ExprKind::Scatter {
                value,
                indices,
                rows,
            } => {
                for operand in [value, indices, rows] {
                    self.expr(operand);
                }
                self.computed(&expr.ty)
            }
            ExprKind::Concat { values, .. } => {
                for value in values {
                    self.expr(value);
                }
                self.computed(&expr.ty)
            }
            ExprKind::Fill(value)
            | ExprKind::Stack(value)
            | ExprKind::Reduce { value, .. }
            | ExprKind::ArgMax { value, .. }
            | ExprKind::Softmax { value, .. }
            | ExprKind::CumSum { value, .. }
            | ExprKind::Sort { value, .. }
            | ExprKind::Slice { value, .. }
            | ExprKind::Reshape(value)
            | ExprKind::CheckShape(value)
            | ExprKind::Transpose { value, .. }
            | ExprKind::Random { counter: value } => {
                self.expr(value);
                self.computed(&expr.ty)
            }
            // Control was followed above, and staging alone makes the others.
            _ => Places::Opaque,
        }
    }

    /// A scalar is a tensor as soon as an operand is.
    fn elementwise(&mut self, ty: &Type, operands: &[Places]) -> Places {
        let result = self.places(ty);
        if let Places::Scalar(_) = result {
            for operand in operands {
                self.flow(operand, &result);
            }
        }
        result
    }
}
