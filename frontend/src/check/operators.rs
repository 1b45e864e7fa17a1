//! Operators and elementwise functions: elements agree, shapes broadcast.

use super::body::Body;
use crate::diagnostic::Diagnostic;
use crate::dims::Poly;
use crate::hir::{self, Kind, Op};
use crate::program::{Binary, Elem, Literal, Span, Unary};
use crate::syntax::ast::{self, BinaryOp, UnaryOp};
use crate::types::{BOOL, Dim, F32, Ty};

/// Whether an expression is made of integer literals only, so that it may just as well be f32.
pub fn is_flexible(expr: &ast::Expr) -> bool {
    match &expr.kind {
        ast::ExprKind::Int(_) => true,
        ast::ExprKind::Unary {
            op: UnaryOp::Neg,
            value,
        } => is_flexible(value),
        ast::ExprKind::Binary { op, lhs, rhs, .. } => {
            matches!(op, BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul)
                && is_flexible(lhs)
                && is_flexible(rhs)
        }
        _ => false,
    }
}

/// Whether an expression may take its elements from the other operand: literals, and what is chosen or computed of
/// them alone.
fn may_follow(expr: &ast::Expr) -> bool {
    match &expr.kind {
        ast::ExprKind::Call { name, args } => {
            matches!(name.name.as_str(), "abs" | "max" | "min")
                && args
                    .iter()
                    .all(|arg| matches!(arg, ast::Arg::Value(value) if may_follow(value)))
        }
        ast::ExprKind::If {
            then, otherwise, ..
        } => may_follow(then) && may_follow(otherwise),
        _ => is_flexible(expr),
    }
}

/// The elements that a binary operation works on.
fn accepts(op: Binary, elem: Elem) -> bool {
    match op {
        Binary::Add
        | Binary::Sub
        | Binary::Mul
        | Binary::Div
        | Binary::Pow
        | Binary::Min
        | Binary::Max => elem != Elem::Bool,
        Binary::Rem => elem == Elem::I32,
        Binary::And | Binary::Or => elem == Elem::Bool,
        Binary::Eq | Binary::Ne => true,
        Binary::Lt | Binary::Le | Binary::Gt | Binary::Ge => elem != Elem::Bool,
    }
}

fn accepted_names(op: Binary) -> &'static str {
    match op {
        Binary::Rem => "i32",
        Binary::And | Binary::Or => "bool",
        Binary::Eq | Binary::Ne => "f32, i32 or bool",
        _ => "f32 or i32",
    }
}

fn result_elem(op: Binary, operands: Elem) -> Elem {
    match op {
        Binary::Eq | Binary::Ne | Binary::Lt | Binary::Le | Binary::Gt | Binary::Ge => Elem::Bool,
        _ => operands,
    }
}

impl Body<'_> {
    pub fn unary(
        &mut self,
        op: UnaryOp,
        value: &ast::Expr,
        span: &Span,
        hint: Option<&Ty>,
    ) -> hir::Expr {
        if let (UnaryOp::Neg, ast::ExprKind::Int(value)) = (op, &value.kind) {
            return self.int(*value, true, span, hint);
        }
        if let (UnaryOp::Neg, ast::ExprKind::Float(value)) = (op, &value.kind) {
            return self.make(Kind::Literal(Literal::F32(-value)), F32, span);
        }
        let checked = self.expr(value, hint);
        match op {
            UnaryOp::Neg => self.elementwise("-", Unary::Neg, checked, span),
            UnaryOp::Not => self.elementwise("!", Unary::Not, checked, span),
        }
    }

    /// Applies a function of one element to a scalar or to every element of a tensor.
    pub fn elementwise(
        &mut self,
        name: &str,
        op: Unary,
        value: hir::Expr,
        span: &Span,
    ) -> hir::Expr {
        let wanted = match op {
            Unary::Not => "bool",
            Unary::Neg | Unary::Abs => "f32 or i32",
            _ => "f32",
        };
        let ty = self.infer.shallow(&value.ty);
        let fits = match (&ty, wanted) {
            (Ty::Error, _) => return self.error(span),
            (
                Ty::Tensor {
                    elem: Elem::Bool, ..
                },
                wanted,
            ) => wanted == "bool",
            (
                Ty::Tensor {
                    elem: Elem::I32, ..
                },
                wanted,
            ) => wanted == "f32 or i32",
            (
                Ty::Tensor {
                    elem: Elem::F32, ..
                },
                wanted,
            ) => wanted != "bool",
            _ => false,
        };
        if !fits {
            let shown = self.show(&ty);
            let mut diagnostic =
                Diagnostic::error("E0303", format!("`{name}` does not apply to `{shown}`"))
                    .at(&value.span, format!("this is `{shown}`, expected {wanted}"));
            diagnostic = match ty.elem() {
                Some(Elem::I32 | Elem::Bool) if wanted == "f32" => {
                    diagnostic.note("convert it with `f32(…)`")
                }
                Some(Elem::Bool) => diagnostic.note("convert it with `f32(…)` or `i32(…)`"),
                Some(_) if wanted == "bool" => diagnostic.note("compare it: `x == 0`"),
                None if matches!(ty, Ty::Array(_)) => {
                    diagnostic.note("apply it to each element with `map`")
                }
                _ => diagnostic,
            };
            self.report(diagnostic);
            return self.error(span);
        }
        self.make(Kind::Op(Op::Unary(op), vec![value]), ty, span)
    }

    pub fn binary(
        &mut self,
        op: BinaryOp,
        op_span: &Span,
        lhs: &ast::Expr,
        rhs: &ast::Expr,
        span: &Span,
        hint: Option<&Ty>,
    ) -> hir::Expr {
        let op = match op {
            BinaryOp::MatMul => {
                let (lhs, rhs) = (self.expr(lhs, None), self.expr(rhs, None));
                return self.matmul(lhs, rhs, op_span, span);
            }
            BinaryOp::Add => Binary::Add,
            BinaryOp::Sub => Binary::Sub,
            BinaryOp::Mul => Binary::Mul,
            BinaryOp::Div => Binary::Div,
            BinaryOp::Rem => Binary::Rem,
            BinaryOp::Eq => Binary::Eq,
            BinaryOp::Ne => Binary::Ne,
            BinaryOp::Lt => Binary::Lt,
            BinaryOp::Le => Binary::Le,
            BinaryOp::Gt => Binary::Gt,
            BinaryOp::Ge => Binary::Ge,
            BinaryOp::And => Binary::And,
            BinaryOp::Or => Binary::Or,
        };
        let (lhs, rhs) = self.operands(lhs, rhs, hint.filter(|_| arithmetic(op)));
        self.combine(op, op_symbol(op), lhs, rhs, op_span, span)
    }

    /// Elaborates two operands, giving literals the other operand's element type.
    pub fn operands(
        &mut self,
        lhs: &ast::Expr,
        rhs: &ast::Expr,
        hint: Option<&Ty>,
    ) -> (hir::Expr, hir::Expr) {
        // What the result is taken as must not make an operand one of any length, which fits no other.
        let hint = hint
            .filter(|hint| !matches!(hint, Ty::Tensor { shape, .. } if shape.contains(&Dim::Any)));
        match (may_follow(lhs), may_follow(rhs)) {
            (true, false) => {
                let rhs = self.expr(rhs, hint);
                let like = self.infer.shallow(&rhs.ty);
                (self.expr(lhs, Some(&like)), rhs)
            }
            (false, true) => {
                let lhs = self.expr(lhs, hint);
                let like = self.infer.shallow(&lhs.ty);
                let rhs = self.expr(rhs, Some(&like));
                (lhs, rhs)
            }
            _ => (self.expr(lhs, hint), self.expr(rhs, hint)),
        }
    }

    /// An elementwise operation of two elaborated operands.
    pub fn combine(
        &mut self,
        op: Binary,
        name: &str,
        lhs: hir::Expr,
        rhs: hir::Expr,
        op_span: &Span,
        span: &Span,
    ) -> hir::Expr {
        let (left, right) = (self.infer.shallow(&lhs.ty), self.infer.shallow(&rhs.ty));
        if matches!(left, Ty::Error) || matches!(right, Ty::Error) {
            return self.error(span);
        }
        if matches!((&left, &right), (Ty::Str, Ty::Str)) && matches!(op, Binary::Eq | Binary::Ne) {
            let same = self.make(Kind::Op(Op::SameText, vec![lhs, rhs]), BOOL, span);
            return match op {
                Binary::Eq => same,
                _ => self.make(Kind::Op(Op::Unary(Unary::Not), vec![same]), BOOL, span),
            };
        }
        let (
            Ty::Tensor {
                elem: e1,
                shape: s1,
            },
            Ty::Tensor {
                elem: e2,
                shape: s2,
            },
        ) = (&left, &right)
        else {
            return self.bad_operands(op, name, &lhs, &rhs, op_span, span);
        };
        if e1 != e2 || !accepts(op, *e1) {
            return self.bad_operands(op, name, &lhs, &rhs, op_span, span);
        }
        match self.broadcast(s1, s2) {
            Ok(shape) => {
                let ty = Ty::Tensor {
                    elem: result_elem(op, *e1),
                    shape,
                };
                self.make(Kind::Op(Op::Binary(op), vec![lhs, rhs]), ty, span)
            }
            Err((left, right)) => {
                let diagnostic = self.bad_shapes(name, &lhs, &rhs, (&left, &right), op_span);
                self.report(diagnostic);
                self.error(span)
            }
        }
    }

    fn bad_operands(
        &mut self,
        op: Binary,
        name: &str,
        lhs: &hir::Expr,
        rhs: &hir::Expr,
        op_span: &Span,
        span: &Span,
    ) -> hir::Expr {
        let (left, right) = (self.show(&lhs.ty), self.show(&rhs.ty));
        let mut diagnostic = Diagnostic::error(
            "E0303",
            format!("`{name}` does not apply to `{left}` and `{right}`"),
        )
        .at(op_span, format!("expected two of {}", accepted_names(op)))
        .see(&lhs.span, format!("this is `{left}`"))
        .see(&rhs.span, format!("this is `{right}`"));
        let elems = (
            self.infer.shallow(&lhs.ty).elem(),
            self.infer.shallow(&rhs.ty).elem(),
        );
        let mixed = matches!(
            elems,
            (Some(Elem::I32), Some(Elem::F32)) | (Some(Elem::F32), Some(Elem::I32))
        );
        let has = |elem| elems.0 == Some(elem) || elems.1 == Some(elem);
        if op == Binary::Rem && has(Elem::F32) && !has(Elem::Bool) {
            let text =
                "a remainder of f32 is `x - y * f32(i32(x / y))`; `i32(…)` drops the fraction";
            diagnostic = diagnostic.note(text);
        } else if matches!(op, Binary::And | Binary::Or) {
            diagnostic = diagnostic.note("compare numbers first: `x > 0 && y > 0`");
        } else if mixed {
            diagnostic = diagnostic.note("convert the integer with `f32(…)`");
        } else if op == Binary::Pow && has(Elem::I32) {
            diagnostic = diagnostic.note("convert integers with `f32(…)`");
        } else if elems.0.is_some() && elems.1.is_some() && has(Elem::Bool) {
            diagnostic = diagnostic.note("convert a `bool` with `f32(…)` or `i32(…)`");
        } else if elems.0.is_none() && elems.1.is_none() && matches!(op, Binary::Eq | Binary::Ne) {
            diagnostic = diagnostic.note("only scalars and tensors are compared; use `match`");
        }
        self.report(diagnostic);
        self.error(span)
    }

    fn bad_shapes(
        &self,
        name: &str,
        lhs: &hir::Expr,
        rhs: &hir::Expr,
        dims: (&Poly, &Poly),
        op_span: &Span,
    ) -> Diagnostic {
        let (left, right) = (self.show(&lhs.ty), self.show(&rhs.ty));
        let message = format!(
            "the shapes of `{left}` and `{right}` do not fit: {} against {}",
            self.show_dim(dims.0),
            self.show_dim(dims.1)
        );
        let diagnostic = Diagnostic::error("E0402", message)
            .at(
                op_span,
                format!("`{name}` needs equal dims, or a 1 that is repeated"),
            )
            .see(&lhs.span, format!("this is `{left}`"))
            .see(&rhs.span, format!("this is `{right}`"));
        let diagnostic = self.see_origin(diagnostic, lhs);
        let diagnostic = self.see_origin(diagnostic, rhs);
        self.explain_lengths(diagnostic)
    }

    /// The shape of two operands together; the dims that do not fit where there is none.
    pub fn broadcast(&mut self, left: &[Dim], right: &[Dim]) -> Result<Vec<Dim>, (Poly, Poly)> {
        let rank = left.len().max(right.len());
        let mut shape = Vec::with_capacity(rank);
        let at = |dims: &[Dim], axis: usize| -> Option<Dim> {
            (axis + dims.len())
                .checked_sub(rank)
                .and_then(|index| dims.get(index))
                .cloned()
        };
        for axis in 0..rank {
            let dim = match (at(left, axis), at(right, axis)) {
                (Some(Dim::Poly(left)), Some(Dim::Poly(right))) => {
                    Dim::Poly(self.broadcast_dims(&left, &right)?)
                }
                (Some(Dim::Any), _) | (_, Some(Dim::Any)) => Dim::Poly(self.infer.opened_dim()),
                (Some(dim), None) | (None, Some(dim)) => dim,
                (None, None) => continue,
            };
            shape.push(dim);
        }
        Ok(shape)
    }

    fn broadcast_dims(&mut self, left: &Poly, right: &Poly) -> Result<Poly, (Poly, Poly)> {
        let (left, right) = (self.infer.dim(left), self.infer.dim(right));
        if left.is_constant(1) {
            return Ok(right);
        }
        if right.is_constant(1) {
            return Ok(left);
        }
        match self.infer.unify_dims(&left, &right) {
            Ok(()) => Ok(left),
            Err(_) => Err((left, right)),
        }
    }

    /// `x @ w`: the last dim of `x` meets the first of the matrix `w`, or its only one. What comes before
    /// matrices broadcasts.
    fn matmul(&mut self, lhs: hir::Expr, rhs: hir::Expr, op_span: &Span, span: &Span) -> hir::Expr {
        let (left, right) = (self.infer.shallow(&lhs.ty), self.infer.shallow(&rhs.ty));
        let (
            Ty::Tensor {
                elem: Elem::F32,
                shape: s1,
            },
            Ty::Tensor {
                elem: Elem::F32,
                shape: s2,
            },
        ) = (&left, &right)
        else {
            if !matches!(left, Ty::Error) && !matches!(right, Ty::Error) {
                self.bad_product(&lhs, &rhs, op_span, "expected two f32 tensors");
            }
            return self.error(span);
        };
        if s1.is_empty() || s2.is_empty() {
            self.bad_product(&lhs, &rhs, op_span, "expected vectors or matrices");
            return self.error(span);
        }
        let (before_left, left_matrix) = s1.split_at(s1.len().saturating_sub(2));
        let (before_right, right_matrix) = s2.split_at(s2.len().saturating_sub(2));
        let (Some((Dim::Poly(last), rows)), Some((Dim::Poly(first), columns))) =
            (left_matrix.split_last(), right_matrix.split_first())
        else {
            return self.error(span);
        };
        if self.infer.unify_dims(last, first).is_err() {
            let which = match before_right {
                [] => "first",
                _ => "last but one",
            };
            let message = format!(
                "`@` needs the last dim of the left to be the {which} of the right: {} against {}",
                self.show_dim(last),
                self.show_dim(first)
            );
            let (l, r) = (self.show(&lhs.ty), self.show(&rhs.ty));
            let mut diagnostic = Diagnostic::error("E0403", message)
                .at(op_span, format!("`{l}` @ `{r}`"))
                .see(
                    &lhs.span,
                    format!("this is `{l}`, its last dim is {}", self.show_dim(last)),
                )
                .see(
                    &rhs.span,
                    format!("this is `{r}`, its {which} dim is {}", self.show_dim(first)),
                );
            diagnostic = self.see_origin(diagnostic, &lhs);
            diagnostic = self.see_origin(diagnostic, &rhs);
            if s2.len() > 1 && s2.last().is_some_and(|dim| *dim == Dim::Poly(last.clone())) {
                diagnostic = diagnostic.note("the dims fit with `transpose(…)` of the right");
            }
            let diagnostic = self.explain_lengths(diagnostic);
            self.report(diagnostic);
            return self.error(span);
        }
        let mut shape = match self.broadcast(before_left, before_right) {
            Ok(shape) => shape,
            Err((left, right)) => {
                let mut diagnostic = self.bad_shapes("@", &lhs, &rhs, (&left, &right), op_span);
                diagnostic = diagnostic.note("these are dims before those of the matrices");
                self.report(diagnostic);
                return self.error(span);
            }
        };
        shape.extend(rows.iter().chain(columns).cloned());
        let ty = Ty::Tensor {
            elem: Elem::F32,
            shape,
        };
        self.make(Kind::Op(Op::MatMul, vec![lhs, rhs]), ty, span)
    }

    fn bad_product(&mut self, lhs: &hir::Expr, rhs: &hir::Expr, op_span: &Span, wanted: &str) {
        let (left, right) = (self.show(&lhs.ty), self.show(&rhs.ty));
        let diagnostic = Diagnostic::error(
            "E0403",
            format!("`@` does not apply to `{left}` and `{right}`"),
        )
        .at(op_span, wanted)
        .see(&lhs.span, format!("this is `{left}`"))
        .see(&rhs.span, format!("this is `{right}`"))
        .note("`@` multiplies f32 vectors and matrices; `*` multiplies elementwise");
        self.report(diagnostic);
    }
}

fn arithmetic(op: Binary) -> bool {
    matches!(
        op,
        Binary::Add | Binary::Sub | Binary::Mul | Binary::Div | Binary::Rem
    )
}

fn op_symbol(op: Binary) -> &'static str {
    match op {
        Binary::Add => "+",
        Binary::Sub => "-",
        Binary::Mul => "*",
        Binary::Div => "/",
        Binary::Rem => "%",
        Binary::Min => "min",
        Binary::Max => "max",
        Binary::Pow => "pow",
        Binary::And => "&&",
        Binary::Or => "||",
        Binary::Eq => "==",
        Binary::Ne => "!=",
        Binary::Lt => "<",
        Binary::Le => "<=",
        Binary::Gt => ">",
        Binary::Ge => ">=",
    }
}
