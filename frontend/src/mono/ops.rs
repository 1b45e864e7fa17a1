//! Built-ins of one instance, with every number in them known.

use super::function::{Instance, check_elements};
use crate::diagnostic::Diagnostic;
use crate::hir::{self, Op};
use crate::program::{Dim, Expr, ExprKind, Literal, Span, Type};

impl Instance<'_, '_> {
    pub fn op(&mut self, op: &Op, args: &[hir::Expr], ty: Type, span: &Span) -> Expr {
        let mut operands = self.exprs(args).into_iter();
        let mut next = || operands.next().map(Box::new);
        let (first, second, third) = (next(), next(), next());
        let kind = match (op, first, second, third) {
            (Op::Iota(axis), None, ..) => ExprKind::Iota { axis: *axis },
            (Op::Len, Some(array), ..) => ExprKind::Len(array),
            (Op::Host, Some(value), ..) => ExprKind::Force(value),
            (Op::Index, Some(array), Some(index), _) => ExprKind::Index { array, index },
            (Op::Push, Some(array), Some(value), _) => ExprKind::Push { array, value },
            (Op::Reverse, Some(array), ..) => ExprKind::Reverse(array),
            (Op::Range, Some(count), ..) => ExprKind::Range(count),
            (Op::SumArray, Some(array), ..) => ExprKind::Sum(array),
            (Op::Stack, Some(array), ..) => ExprKind::Stack(array),
            (Op::Unary(op), Some(value), ..) => ExprKind::Unary { op: *op, value },
            (Op::Binary(op), Some(lhs), Some(rhs), _) => ExprKind::Binary { op: *op, lhs, rhs },
            (Op::Select, Some(cond), Some(then), Some(otherwise)) => ExprKind::Select {
                cond,
                then,
                otherwise,
            },
            (Op::Cast, Some(value), ..) => ExprKind::Cast(value),
            (Op::Fill, Some(value), ..) => ExprKind::Fill(value),
            (Op::MatMul, Some(lhs), Some(rhs), _) => ExprKind::MatMul { lhs, rhs },
            (Op::Reduce(op, axis), Some(value), ..) => ExprKind::Reduce {
                op: *op,
                value,
                axis: *axis,
            },
            (Op::ArgMax(axis), Some(value), ..) => ExprKind::ArgMax { value, axis: *axis },
            (Op::Softmax(axis), Some(value), ..) => ExprKind::Softmax { value, axis: *axis },
            (Op::CumSum(axis), Some(value), ..) => {
                self.check_pairs(shape(&value), shape(&value).get(*axis), span);
                ExprKind::CumSum { value, axis: *axis }
            }
            (Op::Sort { axis, order, part }, Some(value), ..) => {
                self.check_pairs(shape(&value), shape(&value).get(*axis), span);
                self.check_count(&value, &ty, *axis, span);
                ExprKind::Sort {
                    value,
                    axis: *axis,
                    order: *order,
                    part: *part,
                }
            }
            (Op::SegmentSum, Some(values), Some(segments), _) => {
                self.check_pairs(shape(&values), dims_of(&ty).first(), span);
                ExprKind::SegmentSum { values, segments }
            }
            (Op::Scatter, Some(value), Some(indices), Some(rows)) => {
                self.check_pairs(shape(&rows), shape(&value).first(), span);
                ExprKind::Scatter {
                    value,
                    indices,
                    rows,
                }
            }
            (Op::Slice { axis, bounds }, Some(value), start, end) => {
                let numbers = start.map(|start| (*start, end.map(|end| *end)));
                return self.slice(*value, *axis, bounds.as_ref(), numbers, ty, span);
            }
            (Op::Concat(axis), Some(first), second, third) => {
                let mut values = vec![*first];
                values.extend(second.into_iter().chain(third).map(|value| *value));
                values.extend(operands);
                ExprKind::Concat {
                    values,
                    axis: *axis,
                }
            }
            (Op::Reshape, Some(value), ..) => ExprKind::Reshape(value),
            (Op::Transpose(permutation), Some(value), ..) => ExprKind::Transpose {
                value,
                permutation: permutation.clone(),
            },
            (Op::Row, Some(table), Some(index), _) => {
                self.check_row(&table, &index);
                ExprKind::Row { table, index }
            }
            (Op::Gather, Some(table), Some(indices), _) => ExprKind::Gather { table, indices },
            (Op::DimSize(axis), Some(value), ..) => match shape(&value).get(*axis) {
                Some(Dim::Known(size)) => {
                    ExprKind::Literal(Literal::I32(i32::try_from(*size).unwrap_or(i32::MAX)))
                }
                _ => ExprKind::DimSize { value, axis: *axis },
            },
            (Op::Random, Some(counter), ..) => ExprKind::Random { counter },
            (Op::Text(text), None, ..) => ExprKind::Text(text.clone()),
            (Op::SameText, Some(lhs), Some(rhs), _) => ExprKind::SameText { lhs, rhs },
            (Op::Debug(text), Some(value), ..) => ExprKind::Debug {
                text: text.clone(),
                value,
            },
            (Op::CheckShape, Some(value), ..) => ExprKind::CheckShape(value),
            _ => {
                self.report(
                    Diagnostic::error("E0999", "a built-in without its arguments")
                        .at(span, "this is a mistake of the compiler"),
                );
                return self.placeholder(ty, span);
            }
        };
        Expr {
            kind,
            ty,
            span: span.clone(),
        }
    }

    /// Reports more elements than an axis of known length has.
    fn check_count(&mut self, value: &Expr, taken: &Type, axis: usize, span: &Span) {
        let length = |ty| match dims_of(ty).get(axis) {
            Some(Dim::Known(length)) => Some(*length),
            _ => None,
        };
        let (Some(all), Some(taken)) = (length(&value.ty), length(taken)) else {
            return;
        };
        if taken > all {
            let message = format!("`topk` takes 1 to {all} elements here, not {taken}");
            let label = format!("the axis has length {all}");
            self.report(Diagnostic::error("E0407", message).at(span, label));
        }
    }

    /// Reports an operation that goes through more pairs than a tensor may have elements: each element with
    /// each entry of an axis.
    fn check_pairs(&mut self, elements: &[Dim], entries: Option<&Dim>, span: &Span) {
        let pairs: Vec<Dim> = elements.iter().chain(entries).cloned().collect();
        check_elements(
            self.mono,
            &pairs,
            span,
            "its pairs of elements that are known are",
        );
    }

    /// Reports a row by number that a table of known length does not have.
    fn check_row(&mut self, table: &Expr, index: &Expr) {
        let (Some(Dim::Known(size)), ExprKind::Literal(Literal::I32(row))) =
            (shape(table).first(), &index.kind)
        else {
            return;
        };
        if u64::try_from(*row).is_ok_and(|row| row < *size) {
            return;
        }
        self.report(
            Diagnostic::error(
                "E0407",
                format!("index {row} is not within 0 to {}", size - 1),
            )
            .at(&index.span, format!("the axis has length {size}")),
        );
    }
}

pub fn shape(value: &Expr) -> &[Dim] {
    dims_of(&value.ty)
}

fn dims_of(ty: &Type) -> &[Dim] {
    match ty {
        Type::Tensor { shape, .. } => shape,
        _ => &[],
    }
}
