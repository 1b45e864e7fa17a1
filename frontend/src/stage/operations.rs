//! Operations with their operands on the host or as tensors, whichever the result is.

use super::emit::Emit;
use super::scalars::{elem, force, is_rank_zero, is_total, lift};
use crate::program::{Binary, Closure, Elem, Expr, ExprKind, Literal, Span, Type};

impl Emit<'_, '_> {
    pub fn operation(&mut self, expr: &Expr, ty: Type, span: Span) -> Expr {
        let on_host = matches!(ty, Type::Scalar(_));
        let kind = match &expr.kind {
            ExprKind::Array(elements) => {
                let element = match &ty {
                    Type::Array(element) => (**element).clone(),
                    other => other.clone(),
                };
                ExprKind::Array(elements.iter().map(|e| self.to(e, &element)).collect())
            }
            // The program asks for it on the host; what is there already stays.
            ExprKind::Force(value) => {
                let value = *self.host(value);
                return if on_host { value } else { lift(value) };
            }
            ExprKind::SameText { lhs, rhs } => ExprKind::SameText {
                lhs: self.boxed(lhs),
                rhs: self.boxed(rhs),
            },
            ExprKind::Len(array) => ExprKind::Len(self.boxed(array)),
            ExprKind::Index { array, index } => ExprKind::Index {
                array: self.boxed(array),
                index: self.host(index),
            },
            ExprKind::Push { array, value } => {
                let array = self.boxed(array);
                let element = match &ty {
                    Type::Array(element) => (**element).clone(),
                    other => other.clone(),
                };
                ExprKind::Push {
                    array,
                    value: Box::new(self.to(value, &element)),
                }
            }
            ExprKind::Reverse(array) => ExprKind::Reverse(self.boxed(array)),
            ExprKind::Range(count) => {
                let ty_here = ty;
                let ty = Type::Array(Box::new(Type::Scalar(Elem::I32)));
                let kind = ExprKind::Range(self.host(count));
                let range = Expr {
                    kind,
                    ty,
                    span: span.clone(),
                };
                let lift_all = matches!(&ty_here, Type::Array(element) if is_rank_zero(element));
                return if lift_all {
                    self.lift_elements(range)
                } else {
                    range
                };
            }
            ExprKind::Sum(array) => ExprKind::Sum(self.boxed(array)),
            ExprKind::Stack(array) => ExprKind::Stack(self.tensors(array)),
            ExprKind::Unary { op, value } if on_host => ExprKind::ScalarUnary {
                op: *op,
                value: self.host(value),
            },
            ExprKind::Unary { op, value } => ExprKind::Unary {
                op: *op,
                value: self.tensor(value),
            },
            ExprKind::Binary {
                op: op @ (Binary::And | Binary::Or),
                lhs,
                rhs,
            } if matches!(expr.ty, Type::Scalar(_)) => {
                return self.connective(*op, lhs, rhs, ty, span);
            }
            ExprKind::Binary { op, lhs, rhs } if on_host => ExprKind::ScalarBinary {
                op: *op,
                lhs: self.host(lhs),
                rhs: self.host(rhs),
            },
            ExprKind::Binary {
                op: op @ (Binary::Div | Binary::Rem),
                lhs,
                rhs,
            } if elem(&ty) == Some(Elem::I32) => ExprKind::Binary {
                op: *op,
                lhs: self.tensor(lhs),
                rhs: self.divisor(rhs),
            },
            ExprKind::Binary { op, lhs, rhs } => ExprKind::Binary {
                op: *op,
                lhs: self.tensor(lhs),
                rhs: self.tensor(rhs),
            },
            ExprKind::Select {
                cond,
                then,
                otherwise,
            } if on_host => ExprKind::If {
                cond: self.host(cond),
                then: self.host(then),
                otherwise: self.host(otherwise),
            },
            ExprKind::Select {
                cond,
                then,
                otherwise,
            } => ExprKind::Select {
                cond: self.tensor(cond),
                then: self.tensor(then),
                otherwise: self.tensor(otherwise),
            },
            ExprKind::Cast(value) if on_host => ExprKind::ScalarCast(self.host(value)),
            ExprKind::Cast(value) => ExprKind::Cast(self.tensor(value)),
            ExprKind::Fill(value) => ExprKind::Fill(self.boxed(value)),
            ExprKind::MatMul { lhs, rhs } => ExprKind::MatMul {
                lhs: self.tensor(lhs),
                rhs: self.tensor(rhs),
            },
            ExprKind::Reduce { op, value, axis } => ExprKind::Reduce {
                op: *op,
                value: self.tensor(value),
                axis: *axis,
            },
            ExprKind::ArgMax { value, axis } => ExprKind::ArgMax {
                value: self.tensor(value),
                axis: *axis,
            },
            ExprKind::Softmax { value, axis } => ExprKind::Softmax {
                value: self.tensor(value),
                axis: *axis,
            },
            ExprKind::CumSum { value, axis } => ExprKind::CumSum {
                value: self.tensor(value),
                axis: *axis,
            },
            ExprKind::Sort {
                value,
                axis,
                order,
                part,
            } => ExprKind::Sort {
                value: self.tensor(value),
                axis: *axis,
                order: *order,
                part: *part,
            },
            ExprKind::SegmentSum { values, segments } => ExprKind::SegmentSum {
                values: self.tensor(values),
                segments: self.tensor(segments),
            },
            ExprKind::Scatter {
                value,
                indices,
                rows,
            } => ExprKind::Scatter {
                value: self.tensor(value),
                indices: self.tensor(indices),
                rows: self.tensor(rows),
            },
            ExprKind::Slice {
                value,
                axis,
                start,
                length,
            } => ExprKind::Slice {
                value: self.tensor(value),
                axis: *axis,
                start: *start,
                length: *length,
            },
            ExprKind::Concat { values, axis } => {
                let values = values.iter().map(|value| *self.tensor(value)).collect();
                ExprKind::Concat {
                    values,
                    axis: *axis,
                }
            }
            ExprKind::Reshape(value) => ExprKind::Reshape(self.tensor(value)),
            ExprKind::CheckShape(value) => ExprKind::CheckShape(self.tensor(value)),
            ExprKind::Transpose { value, permutation } => {
                let permutation = permutation.clone();
                ExprKind::Transpose {
                    value: self.tensor(value),
                    permutation,
                }
            }
            ExprKind::Row { table, index } => ExprKind::Row {
                table: self.tensor(table),
                index: self.host(index),
            },
            ExprKind::Gather { table, indices } => ExprKind::Gather {
                table: self.tensor(table),
                indices: self.tensor(indices),
            },
            ExprKind::DimSize { value, axis } => ExprKind::DimSize {
                value: self.tensor(value),
                axis: *axis,
            },
            ExprKind::Random { counter } => ExprKind::Random {
                counter: self.host(counter),
            },
            ExprKind::Iota { axis } => ExprKind::Iota { axis: *axis },
            // Control was written above, and staging alone makes the others.
            other => other.clone(),
        };
        Expr { kind, ty, span }
    }

    /// `&&` and `||` of scalars: the right side is evaluated only where it decides, unless that is
    /// sure to give a value and costs less than a branch.
    fn connective(&mut self, op: Binary, lhs: &Expr, rhs: &Expr, ty: Type, span: Span) -> Expr {
        let (lhs, rhs) = (self.expr(lhs), self.expr(rhs));
        let (left_waits, right_waits) = (is_rank_zero(&lhs.ty), is_rank_zero(&rhs.ty));
        let total = is_total(&rhs);
        let (first, second) = match (left_waits, right_waits) {
            (false, false) if total => {
                let (lhs, rhs) = (Box::new(lhs), Box::new(rhs));
                return Expr {
                    kind: ExprKind::ScalarBinary { op, lhs, rhs },
                    ty,
                    span,
                };
            }
            (true, true) if total && short_cut(&lhs, op) => return extend(lhs, op, rhs),
            (true, true) if total => {
                let (lhs, rhs) = (Box::new(lhs), Box::new(rhs));
                return Expr {
                    kind: ExprKind::Binary { op, lhs, rhs },
                    ty,
                    span,
                };
            }
            // What the host knows goes first: it may make waiting for the tensor needless.
            (true, false) if total && is_total(&lhs) => (rhs, lhs),
            _ => (lhs, rhs),
        };
        let known = Expr {
            kind: ExprKind::Literal(Literal::Bool(op == Binary::Or)),
            ty: Type::Scalar(Elem::Bool),
            span: span.clone(),
        };
        let known = Box::new(self.coerce(known, &ty));
        let second = Box::new(self.coerce(second, &ty));
        let cond = Box::new(force(first));
        let kind = if op == Binary::And {
            ExprKind::If {
                cond,
                then: second,
                otherwise: known,
            }
        } else {
            ExprKind::If {
                cond,
                then: known,
                otherwise: second,
            }
        };
        Expr { kind, ty, span }
    }

    /// An array whose elements are tensors, for `stack`.
    fn tensors(&mut self, array: &Expr) -> Box<Expr> {
        let array = self.expr(array);
        Box::new(self.lift_elements(array))
    }

    fn lift_elements(&mut self, array: Expr) -> Expr {
        let Type::Array(element) = &array.ty else {
            return array;
        };
        let Type::Scalar(elem) = **element else {
            return array;
        };
        let span = array.span.clone();
        let lifted = Type::Tensor {
            elem,
            shape: Vec::new(),
        };
        let ty = Type::Array(Box::new(lifted));
        let kind = match array.kind {
            ExprKind::Array(elements) => ExprKind::Array(elements.into_iter().map(lift).collect()),
            _ => {
                let var = self.var("element", Type::Scalar(elem), &span);
                let element = Expr {
                    kind: ExprKind::Var(var),
                    ty: Type::Scalar(elem),
                    span: span.clone(),
                };
                let closure = Closure {
                    params: vec![var],
                    body: Box::new(lift(element)),
                };
                ExprKind::Map {
                    arrays: vec![array],
                    closure,
                }
            }
        };
        Expr { kind, ty, span }
    }
}

/// Whether an expression is a connective of the same kind whose left side the host knows.
fn short_cut(expr: &Expr, op: Binary) -> bool {
    let ExprKind::If {
        then, otherwise, ..
    } = &expr.kind
    else {
        return false;
    };
    let known = if op == Binary::And { otherwise } else { then };
    let ExprKind::Lift(known) = &known.kind else {
        return false;
    };
    matches!(known.kind, ExprKind::Literal(Literal::Bool(value)) if value == (op == Binary::Or))
}

/// `(a || b) || c` as `a || (b || c)`: nothing waits for `c` either when `a` decides.
fn extend(expr: Expr, op: Binary, rhs: Expr) -> Expr {
    let Expr { kind, ty, span } = expr;
    let both = |lhs: Box<Expr>| {
        let span = lhs.span.clone();
        let kind = ExprKind::Binary {
            op,
            lhs,
            rhs: Box::new(rhs),
        };
        Box::new(Expr {
            kind,
            ty: ty.clone(),
            span,
        })
    };
    let kind = match kind {
        ExprKind::If {
            cond,
            then,
            otherwise,
        } if op == Binary::And => ExprKind::If {
            cond,
            then: both(then),
            otherwise,
        },
        ExprKind::If {
            cond,
            then,
            otherwise,
        } => ExprKind::If {
            cond,
            then,
            otherwise: both(otherwise),
        },
        other => other,
    };
    Expr { kind, ty, span }
}
