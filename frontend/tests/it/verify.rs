//! A typed program keeps what `program.rs` promises: every node's operands are where it needs them.

use cohort_frontend::program::{
    Closure, Dim, Elem, Expr, ExprKind, Function, Literal, Program, Type, VarId,
};

/// Panics, with a word on the place, at the first node that is not as promised.
pub fn verify(program: &Program) {
    for function in &program.functions {
        let verify = Verify { program, function };
        verify.expr(&function.body);
        verify.same("result", &function.body.ty, &function.result);
    }
}

struct Verify<'p> {
    program: &'p Program,
    function: &'p Function,
}

fn scalar(elem: Elem) -> Type {
    Type::Scalar(elem)
}

fn is_scalar(ty: &Type) -> bool {
    matches!(ty, Type::Scalar(_))
}

fn is_tensor(ty: &Type) -> bool {
    matches!(ty, Type::Tensor { .. })
}

fn elem(ty: &Type) -> Option<Elem> {
    match ty {
        Type::Scalar(elem) | Type::Tensor { elem, .. } => Some(*elem),
        _ => None,
    }
}

fn rank(ty: &Type) -> usize {
    match ty {
        Type::Tensor { shape, .. } => shape.len(),
        _ => 0,
    }
}

/// Whether types are equal but for what instance dims are called; such a dim takes any length.
fn agree(left: &Type, right: &Type) -> bool {
    match (left, right) {
        (
            Type::Tensor {
                elem: e1,
                shape: s1,
            },
            Type::Tensor {
                elem: e2,
                shape: s2,
            },
        ) => {
            let dims = |(l, r): (&Dim, &Dim)| match (l, r) {
                (Dim::Known(l), Dim::Known(r)) => l == r,
                _ => true,
            };
            e1 == e2 && s1.len() == s2.len() && s1.iter().zip(s2).all(dims)
        }
        (Type::Tuple(l), Type::Tuple(r)) => {
            l.len() == r.len() && l.iter().zip(r).all(|(l, r)| agree(l, r))
        }
        (Type::Array(l), Type::Array(r)) => agree(l, r),
        _ => left == right,
    }
}

impl Verify<'_> {
    fn check(&self, what: &str, holds: bool, expr: &Expr) {
        assert!(
            holds,
            "{what} in {} at {:?}: {:?}",
            self.function.name, expr.span, expr.kind
        );
    }

    fn same(&self, what: &str, left: &Type, right: &Type) {
        assert!(
            agree(left, right),
            "{what} in {}: {left:?} {right:?}",
            self.function.name
        );
    }

    fn var(&self, var: VarId) -> &Type {
        &self.function.vars[var.0].ty
    }

    fn element<'t>(&self, ty: &'t Type) -> &'t Type {
        match ty {
            Type::Array(element) => element,
            other => panic!("an array in {}: {other:?}", self.function.name),
        }
    }

    fn closure(&self, closure: &Closure, params: &[&Type], result: &Type) {
        assert_eq!(
            closure.params.len(),
            params.len(),
            "parameters of a closure"
        );
        for (param, ty) in closure.params.iter().zip(params) {
            self.same("closure parameter", self.var(*param), ty);
        }
        self.expr(&closure.body);
        self.same("closure result", &closure.body.ty, result);
    }

    fn operands(&self, expr: &Expr, operands: &[&Expr], wanted: fn(&Type) -> bool) {
        self.check("the result's place", wanted(&expr.ty), expr);
        for operand in operands {
            self.expr(operand);
            self.check("an operand's place", wanted(&operand.ty), expr);
        }
    }

    fn host(&self, expr: &Expr, elem: Elem) {
        self.expr(expr);
        self.same("a host value", &expr.ty, &scalar(elem));
    }

    fn expr(&self, expr: &Expr) {
        let ty = &expr.ty;
        match &expr.kind {
            ExprKind::Literal(literal) => {
                let elem = match literal {
                    Literal::F32(_) => Elem::F32,
                    Literal::I32(_) => Elem::I32,
                    Literal::Bool(_) => Elem::Bool,
                };
                self.same("literal", ty, &scalar(elem));
            }
            ExprKind::Var(var) => self.same("variable", ty, self.var(*var)),
            ExprKind::Param(param) => {
                let param = &self.program.params[param.0];
                let shape = param.shape.iter().map(|size| Dim::Known(*size)).collect();
                self.same(
                    "parameter",
                    ty,
                    &Type::Tensor {
                        elem: param.elem,
                        shape,
                    },
                );
            }
            ExprKind::Let { var, value, body } => {
                self.expr(value);
                self.same("let", &value.ty, self.var(*var));
                self.expr(body);
                self.same("let body", &body.ty, ty);
            }
            ExprKind::Tuple(parts) => {
                parts.iter().for_each(|part| self.expr(part));
                let types = parts.iter().map(|part| part.ty.clone()).collect();
                self.same("tuple", ty, &Type::Tuple(types));
            }
            ExprKind::TupleGet { tuple, index } => {
                self.expr(tuple);
                match &tuple.ty {
                    Type::Tuple(parts) => self.same("part", ty, &parts[*index]),
                    _ => self.check("a tuple", false, expr),
                }
            }
            ExprKind::Construct {
                adt,
                constructor,
                fields,
            } => {
                let declared = &self.program.adts[adt.0].constructors[*constructor].fields;
                assert_eq!(fields.len(), declared.len(), "fields");
                for (field, declared) in fields.iter().zip(declared) {
                    self.expr(field);
                    self.same("field", &field.ty, declared);
                }
                self.same("construct", ty, &Type::Adt(*adt));
            }
            ExprKind::Match { scrutinee, arms } => {
                self.expr(scrutinee);
                let Type::Adt(adt) = &scrutinee.ty else {
                    panic!("a match on {scrutinee:?}")
                };
                let constructors = &self.program.adts[adt.0].constructors;
                assert_eq!(arms.len(), constructors.len(), "arms");
                for (index, arm) in arms.iter().enumerate() {
                    assert_eq!(arm.constructor, index, "the order of arms");
                    assert_eq!(arm.fields.len(), constructors[index].fields.len(), "fields");
                    for (field, declared) in arm.fields.iter().zip(&constructors[index].fields) {
                        if let Some(var) = field {
                            self.same("matched field", self.var(*var), declared);
                        }
                    }
                    self.expr(&arm.body);
                    self.same("arm", &arm.body.ty, ty);
                }
            }
            ExprKind::If {
                cond,
                then,
                otherwise,
            } => {
                self.host(cond, Elem::Bool);
                for branch in [then, otherwise] {
                    self.expr(branch);
                    self.same("branch", &branch.ty, ty);
                }
            }
            ExprKind::While {
                vars,
                init,
                cond,
                body,
            } => {
                for (var, init) in vars.iter().zip(init) {
                    self.expr(init);
                    self.same("loop variable", &init.ty, self.var(*var));
                }
                self.host(cond, Elem::Bool);
                self.expr(body);
                self.same("loop", &body.ty, ty);
                let types: Vec<Type> = vars.iter().map(|var| self.var(*var).clone()).collect();
                let state = if let [only] = types.as_slice() {
                    only.clone()
                } else {
                    Type::Tuple(types)
                };
                self.same("loop state", ty, &state);
            }
            ExprKind::Call { function, args } => {
                let callee = &self.program.functions[function.0];
                assert_eq!(args.len(), callee.params.len(), "arguments");
                for (arg, param) in args.iter().zip(&callee.params) {
                    self.expr(arg);
                    self.same("argument", &arg.ty, &callee.vars[param.0].ty);
                }
                self.same("call", ty, &callee.result);
            }
            _ => self.operation(expr),
        }
    }

    fn operation(&self, expr: &Expr) {
        let ty = &expr.ty;
        match &expr.kind {
            ExprKind::Array(elements) => {
                for element in elements {
                    self.expr(element);
                    self.same("element", &element.ty, self.element(ty));
                }
            }
            ExprKind::Len(array) => {
                self.expr(array);
                self.element(&array.ty);
                self.same("len", ty, &scalar(Elem::I32));
            }
            ExprKind::Index { array, index } => {
                self.expr(array);
                self.host(index, Elem::I32);
                self.same("element", ty, self.element(&array.ty));
            }
            ExprKind::Push { array, value } => {
                self.expr(array);
                self.expr(value);
                self.same("push", &value.ty, self.element(&array.ty));
                self.same("push", ty, &array.ty);
            }
            ExprKind::Reverse(array) => {
                self.expr(array);
                self.same("reverse", ty, &array.ty);
            }
            ExprKind::Range(count) => {
                self.host(count, Elem::I32);
                self.same("range", ty, &Type::Array(Box::new(scalar(Elem::I32))));
            }
            ExprKind::Map { arrays, closure } => {
                arrays.iter().for_each(|array| self.expr(array));
                let params: Vec<&Type> = arrays.iter().map(|a| self.element(&a.ty)).collect();
                self.closure(closure, &params, self.element(ty));
            }
            ExprKind::Fold {
                array,
                init,
                closure,
            } => {
                self.expr(array);
                self.expr(init);
                self.same("fold", &init.ty, ty);
                self.closure(closure, &[ty, self.element(&array.ty)], ty);
            }
            ExprKind::Sum(array) => {
                self.expr(array);
                self.same("sum", ty, self.element(&array.ty));
            }
            ExprKind::Stack(array) => {
                self.expr(array);
                let element = self.element(&array.ty);
                self.check("tensors to stack", is_tensor(element), expr);
                self.check("the rank of a stack", rank(ty) == rank(element) + 1, expr);
            }
            ExprKind::ScalarUnary { value, .. } => self.operands(expr, &[value], is_scalar),
            ExprKind::ScalarBinary { lhs, rhs, .. } => {
                self.operands(expr, &[lhs, rhs], is_scalar);
                self.check("equal elements", elem(&lhs.ty) == elem(&rhs.ty), expr);
            }
            ExprKind::ScalarCast(value) => self.operands(expr, &[value], is_scalar),
            ExprKind::Lift(value) => {
                self.expr(value);
                self.check("lift from the host", is_scalar(&value.ty), expr);
                self.check("lift to rank 0", is_tensor(ty) && rank(ty) == 0, expr);
            }
            ExprKind::Force(value) => {
                self.expr(value);
                self.check(
                    "force rank 0",
                    is_tensor(&value.ty) && rank(&value.ty) == 0,
                    expr,
                );
                self.check("force to the host", is_scalar(ty), expr);
            }
            ExprKind::Fill(value) => {
                self.expr(value);
                self.check("fill with a scalar", rank(&value.ty) == 0, expr);
                self.check(
                    "fill a tensor",
                    is_tensor(ty) && elem(ty) == elem(&value.ty),
                    expr,
                );
            }
            ExprKind::Binary { lhs, rhs, .. } => {
                self.operands(expr, &[lhs, rhs], is_tensor);
                self.check("equal elements", elem(&lhs.ty) == elem(&rhs.ty), expr);
                self.check(
                    "broadcast",
                    rank(ty) == rank(&lhs.ty).max(rank(&rhs.ty)),
                    expr,
                );
            }
            ExprKind::Select {
                cond,
                then,
                otherwise,
            } => {
                self.operands(expr, &[cond, then, otherwise], is_tensor);
            }
            ExprKind::MatMul { lhs, rhs } => {
                self.operands(expr, &[lhs, rhs], is_tensor);
                self.check("ranks", rank(ty) + 2 == rank(&lhs.ty) + rank(&rhs.ty), expr);
            }
            ExprKind::Unary { value, .. }
            | ExprKind::Cast(value)
            | ExprKind::Softmax { value, .. }
            | ExprKind::CumSum { value, .. }
            | ExprKind::Sort { value, .. }
            | ExprKind::Slice { value, .. }
            | ExprKind::Transpose { value, .. } => {
                self.operands(expr, &[value], is_tensor);
                self.check("an unchanged rank", rank(ty) == rank(&value.ty), expr);
            }
            ExprKind::Reduce { value, axis, .. } | ExprKind::ArgMax { value, axis } => {
                self.operands(expr, &[value], is_tensor);
                self.check("an axis less", rank(ty) + 1 == rank(&value.ty), expr);
                self.check("the axis", *axis < rank(&value.ty), expr);
            }
            ExprKind::Concat { values, .. } => {
                let values: Vec<&Expr> = values.iter().collect();
                self.operands(expr, &values, is_tensor);
            }
            ExprKind::Reshape(value) => self.operands(expr, &[value], is_tensor),
            ExprKind::Row { table, index } => {
                self.host(index, Elem::I32);
                self.operands(expr, &[table], is_tensor);
                self.check("a row", rank(ty) + 1 == rank(&table.ty), expr);
            }
            ExprKind::Gather { table, indices }
            | ExprKind::SegmentSum {
                values: table,
                segments: indices,
            } => {
                self.operands(expr, &[table, indices], is_tensor);
            }
            ExprKind::Scatter {
                value,
                indices,
                rows,
            } => {
                self.operands(expr, &[value, indices, rows], is_tensor);
            }
            ExprKind::Text(_) => self.same("text", ty, &Type::Str),
            ExprKind::SameText { lhs, rhs } => {
                for side in [lhs, rhs] {
                    self.expr(side);
                    self.same("text", &side.ty, &Type::Str);
                }
                self.same("a comparison", ty, &scalar(Elem::Bool));
            }
            ExprKind::Debug { value, .. } => {
                self.expr(value);
                self.same("debug", ty, &value.ty);
            }
            ExprKind::DimSize { value, axis } => {
                self.expr(value);
                self.check("the axis", *axis < rank(&value.ty), expr);
                self.same("dim", ty, &scalar(Elem::I32));
            }
            ExprKind::Iota { axis } => self.check("the axis", *axis < rank(ty), expr),
            ExprKind::Random { counter } => {
                self.host(counter, Elem::I32);
                self.check("random tensors", is_tensor(ty), expr);
            }
            other => panic!("not an operation: {other:?}"),
        }
    }
}
