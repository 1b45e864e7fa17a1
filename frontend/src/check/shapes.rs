//! Built-ins that cut tensors into parts, join them and move their axes.

use super::body::Body;
use super::calls::Args;
use super::control::let_in;
use crate::diagnostic::Diagnostic;
use crate::dims::Poly;
use crate::hir::{self, Kind, Op};
use crate::program::{Elem, Span};
use crate::syntax::ast;
use crate::types::{Dim, Ty};

impl Body<'_> {
    /// Equal parts along an axis, as many as the pattern takes or as are asked for.
    pub fn split(&mut self, args: &Args<'_>, hint: Option<&Ty>) -> hir::Expr {
        let Some(value) = self.first_argument(args, 2) else {
            return self.error(args.span);
        };
        let Some((elem, shape)) = self.tensor(&value) else {
            return self.refuse(args, &value, "a tensor");
        };
        let asked = self.values(args).and_then(|values| values.get(1).copied());
        let parts = match (asked, hint.map(|hint| self.infer.shallow(hint))) {
            (Some(asked), _) => match self.integer(asked, "the number of parts") {
                Some(parts) => parts,
                None => return self.error(args.span),
            },
            (None, Some(Ty::Tuple(parts))) => i64::try_from(parts.len()).unwrap_or(0),
            (None, _) => {
                self.report(
                    Diagnostic::error("E0405", "into how many parts?")
                        .at(args.span, "nothing says how many")
                        .note("write `let (a, b) = split(x)` or `split(x, 2)`"),
                );
                return self.error(args.span);
            }
        };
        let (Ok(parts), true) = (u64::try_from(parts), (1..=100).contains(&parts)) else {
            self.report(
                Diagnostic::error(
                    "E0405",
                    format!("`split` makes 1 to 100 parts, not {parts}"),
                )
                .at(args.span, "not a number of parts"),
            );
            return self.error(args.span);
        };
        let last = shape.len() - 1;
        let axis = match args.axis {
            Some(axis) => self.axis(axis, shape.len(), &value),
            None => Some(last),
        };
        let Some(axis) = axis else {
            return self.error(args.span);
        };
        let whole = shape.get(axis).cloned().unwrap_or_default();
        let length = whole.divide(&Poly::constant(parts));
        let divides = length.as_ref().is_some_and(|length| {
            length
                .as_constant()
                .is_none_or(|ratio| ratio.whole().is_some())
        });
        let Some(length) = length.filter(|_| divides) else {
            let (shown, dim) = (self.show(&value.ty), self.show_dim(&whole));
            let diagnostic = Diagnostic::error(
                "E0405",
                format!("{dim} does not divide into {parts} equal parts"),
            )
            .at(args.span, format!("asked for {parts} parts"))
            .see(&value.span, format!("this is `{shown}`"))
            .note("take parts of unequal length with slices, `x[.., 0..H]`");
            self.report(diagnostic);
            return self.error(args.span);
        };
        let mut part_shape = shape;
        if let Some(dim) = part_shape.get_mut(axis) {
            *dim = length.clone();
        }
        self.parts(value, elem, &part_shape, axis, parts, &length, args.span)
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "the tail of `split`, which knows all of it"
    )]
    fn parts(
        &mut self,
        value: hir::Expr,
        elem: Elem,
        shape: &[Poly],
        axis: usize,
        parts: u64,
        length: &Poly,
        span: &Span,
    ) -> hir::Expr {
        let ty = value.ty.clone();
        let whole = self.temporary("whole", ty.clone(), span);
        let mut slices = Vec::new();
        for part in 0..parts {
            let start = length.multiply(&Poly::constant(part)).unwrap_or_default();
            let op = Op::Slice {
                axis,
                bounds: Some((start, length.clone())),
            };
            let local = self.make(Kind::Local(whole), ty.clone(), span);
            slices.push(self.op(op, vec![local], Ty::tensor(elem, shape.to_vec()), span));
        }
        let tuple_ty = Ty::Tuple(slices.iter().map(|slice| slice.ty.clone()).collect());
        // One part is the tensor itself: there are no tuples of one.
        let tuple = match slices.pop() {
            Some(only) if slices.is_empty() => only,
            Some(last) => {
                slices.push(last);
                self.make(Kind::Tuple(slices), tuple_ty, span)
            }
            None => return self.error(span),
        };
        let pattern = hir::Pattern {
            kind: hir::PatternKind::Bind(whole),
            ty,
            span: span.clone(),
        };
        let_in(vec![(pattern, value)], tuple)
    }

    pub fn concat(&mut self, args: &Args<'_>) -> hir::Expr {
        let Some(values) = self.values(args) else {
            return self.error(args.span);
        };
        let mut checked: Vec<hir::Expr> = values.iter().map(|v| self.expr(v, None)).collect();
        let mut lets = Vec::new();
        // A tuple, as `split` and `map` give it, stands for its elements.
        if let [only] = checked.as_slice()
            && let Ty::Tuple(types) = self.infer.shallow(&only.ty)
        {
            let mut binds = Vec::new();
            let mut parts = Vec::new();
            for ty in types {
                let id = self.temporary("part", ty.clone(), args.span);
                parts.push(hir::Expr {
                    kind: Kind::Local(id),
                    ty: ty.clone(),
                    span: only.span.clone(),
                });
                let kind = hir::PatternKind::Bind(id);
                binds.push(hir::Pattern {
                    kind,
                    ty,
                    span: args.span.clone(),
                });
            }
            let kind = hir::PatternKind::Tuple(binds);
            let pattern = hir::Pattern {
                kind,
                ty: only.ty.clone(),
                span: args.span.clone(),
            };
            let tuple = std::mem::replace(&mut checked, parts);
            lets.extend(tuple.into_iter().map(|value| (pattern.clone(), value)));
        }
        let Some(first) = checked.first().cloned() else {
            self.wrong_arguments(args, 2);
            return self.error(args.span);
        };
        if matches!(self.infer.shallow(&first.ty), Ty::Array(_)) {
            checked.remove(0);
            let joined = self.concat_arrays(args, first, checked);
            return let_in(lets, joined);
        }
        let Some((elem, mut shape)) = self.tensor(&first) else {
            return self.refuse(args, &first, "arrays, or tensors of rank 1 or more");
        };
        let axis = match args.axis {
            Some(axis) => self.axis(axis, shape.len(), &first),
            None => Some(shape.len() - 1),
        };
        let Some(axis) = axis else {
            return self.error(args.span);
        };
        for value in checked.iter().skip(1) {
            let Some((own, dims)) = self.tensor(value) else {
                return self.refuse(args, value, "tensors of rank 1 or more");
            };
            let mut fits = own == elem && dims.len() == shape.len();
            for (index, (dim, whole)) in dims.iter().zip(&mut shape).enumerate() {
                if index != axis {
                    fits &= self.infer.unify_dims(dim, whole).is_ok();
                } else if let Some(sum) = whole.add(dim) {
                    *whole = sum;
                }
            }
            if !fits {
                let (one, other) = (self.show(&first.ty), self.show(&value.ty));
                let diagnostic = Diagnostic::error(
                    "E0401",
                    format!("`concat` along axis {axis} does not fit: `{one}` and `{other}`"),
                )
                .at(&value.span, format!("this is `{other}`"))
                .see(&first.span, format!("this is `{one}`"))
                .note(format!("all dims but that of axis {axis} must be equal"));
                let diagnostic = self.explain_lengths(diagnostic);
                self.report(diagnostic);
                return self.error(args.span);
            }
        }
        let result = self.op(
            Op::Concat(axis),
            checked,
            Ty::tensor(elem, shape),
            args.span,
        );
        let_in(lets, result)
    }

    pub fn reshape(&mut self, args: &Args<'_>) -> hir::Expr {
        let Some([value, dims]) = self.exactly(args) else {
            return self.error(args.span);
        };
        let value = self.expr(value, None);
        let Some((shape, counted)) = self.sizes(dims) else {
            return self.error(args.span);
        };
        let Ty::Tensor { elem, shape: own } = self.infer.shallow(&value.ty) else {
            return self.refuse(args, &value, "a tensor");
        };
        let own = own
            .iter()
            .try_fold(Poly::constant(1), |product, dim| match dim {
                Dim::Poly(poly) => product.multiply(&self.infer.dim(poly)),
                Dim::Any => None,
            });
        let wanted = shape
            .iter()
            .try_fold(Poly::constant(1), |product, dim| product.multiply(dim));
        match (own, wanted) {
            (Some(own), Some(wanted)) if own == wanted => {
                let ty = Ty::tensor(elem, shape);
                let reshaped = self.op(Op::Reshape, vec![value], ty, args.span);
                self.with_sizes(counted, reshaped)
            }
            (Some(own), Some(wanted)) => {
                let (own, wanted) = (self.show_dim(&own), self.show_dim(&wanted));
                let shown = self.show(&value.ty);
                let diagnostic = Diagnostic::error(
                    "E0406",
                    format!("a reshape keeps the number of elements: {own} is not {wanted}"),
                )
                .at(&dims.span, format!("{wanted} elements"))
                .see(&value.span, format!("this is `{shown}`, {own} elements"));
                let diagnostic = self.explain_lengths(diagnostic);
                self.report(diagnostic);
                self.error(args.span)
            }
            _ => self.refuse(args, &value, "a tensor of known dims"),
        }
    }

    pub fn transpose(&mut self, args: &Args<'_>) -> hir::Expr {
        let Some(value) = self.first_argument(args, 2) else {
            return self.error(args.span);
        };
        let Some((elem, shape)) = self.tensor(&value).filter(|(_, shape)| shape.len() > 1) else {
            return self.refuse(args, &value, "a tensor of rank 2 or more");
        };
        let mut permutation: Vec<usize> = (0..shape.len()).collect();
        match self.values(args).and_then(|values| values.get(1).copied()) {
            None => permutation.swap(shape.len() - 2, shape.len() - 1),
            Some(written) => {
                let ast::ExprKind::Array(axes) = &written.kind else {
                    self.report(
                        Diagnostic::error("E0309", "an order of axes is written `[1, 0, 2]`")
                            .at(&written.span, "expected a list of axes"),
                    );
                    return self.error(args.span);
                };
                let axes: Option<Vec<usize>> = axes
                    .iter()
                    .map(|axis| self.axis(axis, shape.len(), &value))
                    .collect();
                let Some(axes) = axes else {
                    return self.error(args.span);
                };
                let mut sorted = axes.clone();
                sorted.sort_unstable();
                if sorted != permutation {
                    let shown = self.show(&value.ty);
                    self.report(
                        Diagnostic::error("E0404", "each axis must be named once")
                            .at(&written.span, format!("`{shown}` has {} axes", shape.len())),
                    );
                    return self.error(args.span);
                }
                permutation = axes;
            }
        }
        let moved = permutation
            .iter()
            .filter_map(|axis| shape.get(*axis).cloned())
            .collect();
        self.op(
            Op::Transpose(permutation),
            vec![value],
            Ty::tensor(elem, moved),
            args.span,
        )
    }
}
