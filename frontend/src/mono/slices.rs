//! Slices of one instance: of known bounds, and of those that are known once it runs.

use super::function::{Instance, NO_LENGTH};
use super::ops::shape;
use crate::diagnostic::Diagnostic;
use crate::dims::Poly;
use crate::program::{Binary, Closure, Dim, Elem, Expr, ExprKind, Literal, Span, Type, VarId};

/// Rows that a slice of known length may take from an axis of unknown length; each becomes a node of
/// its own.
const MAX_CHECKED_ROWS: u64 = 64;

const INTEGER: Type = Type::Scalar(Elem::I32);

impl Instance<'_, '_> {
    /// A slice whose start and length are `bounds`, and `numbers` as the instance computes them: the
    /// start, and the end unless it is that of the tensor. A part of a `split` has no numbers.
    pub fn slice(
        &mut self,
        value: Expr,
        axis: usize,
        bounds: Option<&(Poly, Poly)>,
        numbers: Option<(Expr, Option<Expr>)>,
        ty: Type,
        span: &Span,
    ) -> Expr {
        let known = bounds.and_then(|(start, length)| {
            let start = self.number_of(start)?;
            Some((start, self.number_of(length)?))
        });
        let (start, length) = match (known, numbers) {
            (Some(known), _) => known,
            (None, Some(numbers)) => {
                return self.along_first(value, axis, ty, span, |instance, value, ty| {
                    instance.computed_slice(value, numbers, ty, span)
                });
            }
            // A fraction is reported where it is the dim of a type.
            (None, None) if bounds.is_some_and(|(_, length)| self.is_number(length)) => {
                return self.placeholder(ty, span);
            }
            (None, None) => {
                self.report(
                    Diagnostic::error("E0708", "`split` of an axis of unknown length")
                        .at(span, "the axis differs from instance to instance")
                        .note("take slices, `x[0..n/2]` and `x[n/2..n]`"),
                );
                return self.placeholder(ty, span);
            }
        };
        match shape(&value).get(axis) {
            Some(Dim::Known(size)) if start == 0 && length == *size => value,
            Some(Dim::Instance(name)) if name == NO_LENGTH && start == 0 && length == 0 => value,
            // Later levels have no slices of nothing.
            Some(Dim::Known(size)) if start <= *size && length == 0 => nothing(ty, span),
            Some(Dim::Known(size)) if start.saturating_add(length) <= *size => {
                let kind = ExprKind::Slice {
                    value: Box::new(value),
                    axis,
                    start,
                    length,
                };
                typed(kind, ty, span)
            }
            Some(Dim::Known(size)) => {
                let end = start.saturating_add(length);
                self.report(
                    Diagnostic::error(
                        "E0407",
                        format!("the slice {start}..{end} ends past {size}"),
                    )
                    .at(span, "not within the tensor"),
                );
                self.placeholder(ty, span)
            }
            // The instance may be shorter than the slice, which reading row by row notices.
            _ if length <= MAX_CHECKED_ROWS => {
                self.along_first(value, axis, ty, span, |instance, value, ty| {
                    instance.rows(value, start, length, ty, span)
                })
            }
            _ => {
                self.report(
                    Diagnostic::error("E0708", "a slice of an axis of unknown length")
                        .at(span, "the axis differs from instance to instance")
                        .note(format!(
                            "at most {MAX_CHECKED_ROWS} entries can be taken so; \
                             use `stack(map(range(k), |i| x[i]))`"
                        )),
                );
                self.placeholder(ty, span)
            }
        }
    }

    /// A slice along the first axis, to which any other is moved, and back.
    fn along_first(
        &mut self,
        value: Expr,
        axis: usize,
        ty: Type,
        span: &Span,
        slice: impl FnOnce(&mut Self, Expr, Type) -> Expr,
    ) -> Expr {
        if axis == 0 {
            return slice(self, value, ty);
        }
        let (moved, moved_ty) = (swapped(&value.ty, axis), swapped(&ty, axis));
        let value = slice(self, transposed(value, axis, moved, span), moved_ty);
        transposed(value, axis, ty, span)
    }

    /// As many rows, one by one, which notices those that the tensor does not have.
    fn rows(&mut self, value: Expr, start: u64, length: u64, ty: Type, span: &Span) -> Expr {
        let Some(row_ty) = row_type(&ty) else {
            return self.placeholder(ty, span);
        };
        let (var, bind) = self.bound(value, "value", span);
        let mut rows = Vec::new();
        for place in start..start.saturating_add(length) {
            let index = integer(i32::try_from(place).unwrap_or(i32::MAX), span);
            rows.push(self.row(var, index, &row_ty, span));
        }
        let array = typed(ExprKind::Array(rows), Type::Array(Box::new(row_ty)), span);
        let stack = typed(ExprKind::Stack(Box::new(array)), ty, span);
        within(bind, stack)
    }

    /// The rows from one number to another, which are known once the instance runs.
    fn computed_slice(
        &mut self,
        value: Expr,
        numbers: (Expr, Option<Expr>),
        ty: Type,
        span: &Span,
    ) -> Expr {
        let Some(row_ty) = row_type(&ty) else {
            return self.placeholder(ty, span);
        };
        let (value, bind_value) = self.bound(value, "value", span);
        let (start, bind_start) = self.bound(numbers.0, "start", span);
        let end = match numbers.1 {
            Some(end) => end,
            None => self.rows_of(value, span),
        };
        let length = self.binary(Binary::Sub, end, start, span);
        let (length, bind_length) = self.bound(length, "length", span);
        let count = self.checked_count(start, length, value, span);
        let range = typed(
            ExprKind::Range(Box::new(count)),
            Type::Array(Box::new(INTEGER)),
            span,
        );
        let place = self.var("place", INTEGER, span);
        let from = self.read(place, span);
        let index = self.binary(Binary::Add, from, start, span);
        let row = self.row(value, index, &row_ty, span);
        let rows = ExprKind::Map {
            arrays: vec![range],
            closure: Closure {
                params: vec![place],
                body: Box::new(row),
            },
        };
        let rows = typed(rows, Type::Array(Box::new(row_ty)), span);
        let stack = typed(ExprKind::Stack(Box::new(rows)), ty, span);
        within(bind_value, within(bind_start, within(bind_length, stack)))
    }

    /// The number of rows of a tensor.
    fn rows_of(&mut self, tensor: VarId, span: &Span) -> Expr {
        let value = Box::new(self.read(tensor, span));
        let kind = match shape(&value).first() {
            Some(Dim::Known(size)) => {
                ExprKind::Literal(Literal::I32(i32::try_from(*size).unwrap_or(i32::MAX)))
            }
            _ => ExprKind::DimSize { value, axis: 0 },
        };
        typed(kind, INTEGER, span)
    }

    /// A number of rows of a tensor, where one below zero or beyond all of them is an index out of range: the bound that
    /// is out of range, or the number below zero where the slice ends before it begins.
    fn checked_count(&mut self, start: VarId, length: VarId, tensor: VarId, span: &Span) -> Expr {
        let rows = Box::new(self.rows_of(tensor, span));
        let array = typed(ExprKind::Range(rows), Type::Array(Box::new(INTEGER)), span);
        let begin = self.read(start, span);
        let end = self.binary(Binary::Add, begin, length, span);
        let late = choice(self.negative(length, span), self.read(length, span), end);
        let wrong = choice(self.negative(start, span), self.read(start, span), late);
        let kind = ExprKind::Index {
            array: Box::new(array),
            index: Box::new(wrong),
        };
        let failing = typed(kind, INTEGER, span);
        let rows = self.rows_of(tensor, span);
        let kind = ExprKind::Binary {
            op: Binary::Or,
            lhs: Box::new(self.negative(length, span)),
            rhs: Box::new(compare(rows, self.read(length, span), span)),
        };
        let is_wrong = typed(kind, Type::Scalar(Elem::Bool), span);
        choice(is_wrong, failing, self.read(length, span))
    }

    /// Whether an integer is below zero.
    fn negative(&mut self, var: VarId, span: &Span) -> Expr {
        compare(self.read(var, span), integer(0, span), span)
    }

    /// `other op var`, of integers.
    fn binary(&mut self, op: Binary, other: Expr, var: VarId, span: &Span) -> Expr {
        let kind = ExprKind::Binary {
            op,
            lhs: Box::new(other),
            rhs: Box::new(self.read(var, span)),
        };
        typed(kind, INTEGER, span)
    }

    fn row(&mut self, table: VarId, index: Expr, ty: &Type, span: &Span) -> Expr {
        let kind = ExprKind::Row {
            table: Box::new(self.read(table, span)),
            index: Box::new(index),
        };
        typed(kind, ty.clone(), span)
    }

    /// A variable that has a value, and what must be bound for it unless it is a variable already.
    fn bound(&mut self, value: Expr, name: &str, span: &Span) -> (VarId, Option<(VarId, Expr)>) {
        if let ExprKind::Var(var) = value.kind {
            return (var, None);
        }
        let var = self.var(name, value.ty.clone(), span);
        (var, Some((var, value)))
    }
}

fn within(bind: Option<(VarId, Expr)>, body: Expr) -> Expr {
    let Some((var, value)) = bind else {
        return body;
    };
    let (ty, span) = (body.ty.clone(), body.span.clone());
    let kind = ExprKind::Let {
        var,
        value: Box::new(value),
        body: Box::new(body),
    };
    typed(kind, ty, &span)
}

/// A tensor without elements.
fn nothing(ty: Type, span: &Span) -> Expr {
    let zero = match &ty {
        Type::Tensor {
            elem: Elem::F32, ..
        } => typed(
            ExprKind::Literal(Literal::F32(0.0)),
            Type::Scalar(Elem::F32),
            span,
        ),
        Type::Tensor {
            elem: Elem::Bool, ..
        } => typed(
            ExprKind::Literal(Literal::Bool(false)),
            Type::Scalar(Elem::Bool),
            span,
        ),
        _ => integer(0, span),
    };
    typed(ExprKind::Fill(Box::new(zero)), ty, span)
}

/// The first axis in the place of another, which is first.
fn transposed(value: Expr, axis: usize, ty: Type, span: &Span) -> Expr {
    let mut permutation: Vec<usize> = (0..shape(&value).len()).collect();
    permutation.swap(0, axis);
    let kind = ExprKind::Transpose {
        value: Box::new(value),
        permutation,
    };
    typed(kind, ty, span)
}

fn swapped(ty: &Type, axis: usize) -> Type {
    let mut ty = ty.clone();
    if let Type::Tensor { shape, .. } = &mut ty
        && axis < shape.len()
    {
        shape.swap(0, axis);
    }
    ty
}

fn row_type(ty: &Type) -> Option<Type> {
    let Type::Tensor { elem, shape } = ty else {
        return None;
    };
    Some(match shape.get(1..)? {
        [] => Type::Scalar(*elem),
        rest => Type::Tensor {
            elem: *elem,
            shape: rest.to_vec(),
        },
    })
}

/// `left < right`
fn compare(left: Expr, right: Expr, span: &Span) -> Expr {
    let kind = ExprKind::Binary {
        op: Binary::Lt,
        lhs: Box::new(left),
        rhs: Box::new(right),
    };
    typed(kind, Type::Scalar(Elem::Bool), span)
}

/// One of two integers.
fn choice(cond: Expr, then: Expr, otherwise: Expr) -> Expr {
    let span = cond.span.clone();
    let kind = ExprKind::If {
        cond: Box::new(cond),
        then: Box::new(then),
        otherwise: Box::new(otherwise),
    };
    typed(kind, INTEGER, &span)
}

fn integer(value: i32, span: &Span) -> Expr {
    typed(ExprKind::Literal(Literal::I32(value)), INTEGER, span)
}

fn typed(kind: ExprKind, ty: Type, span: &Span) -> Expr {
    Expr {
        kind,
        ty,
        span: span.clone(),
    }
}
