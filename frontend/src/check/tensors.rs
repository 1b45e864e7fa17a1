//! Built-ins on whole tensors: reductions, and those that change shapes.

use super::body::{Body, Why};
use super::calls::Args;
use crate::dims::Poly;
use crate::hir::{self, Kind, Op};
use crate::program::{Elem, Reduction, SortPart};
use crate::syntax::ast;
use crate::types::{Dim, I32, Ty};

impl Body<'_> {
    pub fn tensor_builtin(&mut self, args: &Args<'_>, hint: Option<&Ty>) -> hir::Expr {
        match args.name.name.as_str() {
            "softmax" => self.softmax(args),
            "argmax" => self.argmax(args),
            "argmin" => self.argmin(args),
            "sort" => self.sort(args, SortPart::Values),
            "argsort" => self.sort(args, SortPart::Indices),
            "topk" => self.topk(args),
            "cumsum" => self.cumsum(args),
            "one_hot" => self.one_hot(args),
            "einsum" => self.einsum(args),
            "segment_sum" => self.segment_sum(args),
            "scatter" => self.scatter(args),
            "scatter_add" => self.scatter_add(args),
            "split" => self.split(args, hint),
            "concat" => self.concat(args),
            "reshape" => self.reshape(args),
            "transpose" => self.transpose(args),
            "zeros" => self.constant(args, 0),
            "ones" => self.constant(args, 1),
            "fill" => self.fill(args, hint),
            "dim" => self.dim_size(args),
            "gather" => self.gather(args),
            "iota" => self.iota(args),
            _ => self.error(args.span),
        }
    }

    /// A tensor of rank 1 or more with its dims.
    pub fn tensor(&self, value: &hir::Expr) -> Option<(Elem, Vec<Poly>)> {
        let Ty::Tensor { elem, shape } = self.infer.shallow(&value.ty) else {
            return None;
        };
        let shape: Option<Vec<Poly>> = shape
            .into_iter()
            .map(|dim| match dim {
                Dim::Poly(poly) => Some(self.infer.dim(&poly)),
                Dim::Any => None,
            })
            .collect();
        shape
            .filter(|shape| !shape.is_empty())
            .map(|shape| (elem, shape))
    }

    pub fn reduction(&mut self, args: &Args<'_>, op: Reduction) -> hir::Expr {
        let Some(value) = self.first_argument(args, 2) else {
            return self.error(args.span);
        };
        self.reduce(args, value, op)
    }

    /// The elaborated first of at most `most` arguments.
    pub fn first_argument(&mut self, args: &Args<'_>, most: usize) -> Option<hir::Expr> {
        let values = self.values(args)?;
        let Some(first) = values.first().filter(|_| values.len() <= most) else {
            self.wrong_arguments(args, 1);
            return None;
        };
        Some(self.expr(first, None))
    }

    /// Reduces one axis, or all of them when none is given.
    pub fn reduce(&mut self, args: &Args<'_>, value: hir::Expr, op: Reduction) -> hir::Expr {
        let Some((elem, shape)) = self.tensor(&value) else {
            return self.refuse(args, &value, "a tensor");
        };
        if elem == Elem::Bool || (op == Reduction::Mean && elem != Elem::F32) {
            return self.refuse(args, &value, "a tensor of f32");
        }
        let positional = self.values(args).and_then(|values| values.get(1).copied());
        let axes: Vec<usize> = match args.axis.or(positional) {
            Some(axis) => match self.axis(axis, shape.len(), &value) {
                Some(axis) => vec![axis],
                None => return self.error(args.span),
            },
            None => (0..shape.len()).rev().collect(),
        };
        let mut shape = shape;
        let mut result = value;
        for axis in axes {
            shape.remove(axis);
            let ty = Ty::tensor(elem, shape.clone());
            result = self.op(Op::Reduce(op, axis), vec![result], ty, args.span);
        }
        result
    }

    fn softmax(&mut self, args: &Args<'_>) -> hir::Expr {
        let Some(value) = self.first_argument(args, 2) else {
            return self.error(args.span);
        };
        match self.tensor(&value) {
            Some((Elem::F32, shape)) => {
                let last = shape.len() - 1;
                let Some(axis) = self.axis_argument(args, 1, shape.len(), &value, last) else {
                    return self.error(args.span);
                };
                let ty = value.ty.clone();
                self.op(Op::Softmax(axis), vec![value], ty, args.span)
            }
            _ => self.refuse(args, &value, "a tensor of f32"),
        }
    }

    fn argmax(&mut self, args: &Args<'_>) -> hir::Expr {
        let Some(value) = self.first_argument(args, 2) else {
            return self.error(args.span);
        };
        match self.tensor(&value) {
            Some((Elem::F32 | Elem::I32, mut shape)) => {
                let last = shape.len() - 1;
                let Some(axis) = self.axis_argument(args, 1, shape.len(), &value, last) else {
                    return self.error(args.span);
                };
                shape.remove(axis);
                self.op(
                    Op::ArgMax(axis),
                    vec![value],
                    Ty::tensor(Elem::I32, shape),
                    args.span,
                )
            }
            _ => self.refuse(args, &value, "a tensor of numbers"),
        }
    }

    fn constant(&mut self, args: &Args<'_>, value: u64) -> hir::Expr {
        let Some([dims]) = self.exactly(args) else {
            return self.error(args.span);
        };
        let Some((shape, counted)) = self.sizes(dims) else {
            return self.error(args.span);
        };
        let value = self.int(value, false, args.span, Some(&crate::types::F32));
        let ty = Ty::tensor(Elem::F32, shape);
        let filled = self.op(Op::Fill, vec![value], ty, args.span);
        self.with_sizes(counted, filled)
    }

    fn fill(&mut self, args: &Args<'_>, hint: Option<&Ty>) -> hir::Expr {
        let Some([dims, value]) = self.exactly(args) else {
            return self.error(args.span);
        };
        let shape = self.sizes(dims);
        let value = self.expr(value, hint);
        let Some((shape, counted)) = shape else {
            return self.error(args.span);
        };
        match self.infer.shallow(&value.ty) {
            Ty::Tensor { elem, shape: own } if own.is_empty() => {
                let ty = Ty::tensor(elem, shape);
                let filled = self.op(Op::Fill, vec![value], ty, args.span);
                self.with_sizes(counted, filled)
            }
            _ => self.refuse(args, &value, "a scalar"),
        }
    }

    fn dim_size(&mut self, args: &Args<'_>) -> hir::Expr {
        let Some([value, axis]) = self.exactly(args) else {
            return self.error(args.span);
        };
        let value = self.expr(value, None);
        let Some((_, shape)) = self.tensor(&value) else {
            return self.refuse(args, &value, "a tensor");
        };
        match self.axis(axis, shape.len(), &value) {
            Some(axis) => self.op(Op::DimSize(axis), vec![value], I32, args.span),
            None => self.error(args.span),
        }
    }

    fn gather(&mut self, args: &Args<'_>) -> hir::Expr {
        let Some([table, indices]) = self.exactly(args) else {
            return self.error(args.span);
        };
        let (table, indices) = (self.expr(table, None), self.expr(indices, None));
        let Some((elem, shape)) = self.tensor(&table) else {
            return self.refuse(args, &table, "a tensor");
        };
        match self
            .tensor(&indices)
            .as_ref()
            .map(|(elem, shape)| (*elem, shape.as_slice()))
        {
            Some((Elem::I32, [count])) => {
                let mut result = vec![count.clone()];
                result.extend(shape.into_iter().skip(1));
                self.op(
                    Op::Gather,
                    vec![table, indices],
                    Ty::tensor(elem, result),
                    args.span,
                )
            }
            _ => self.refuse(args, &indices, "i32[_]; an array becomes one by `stack`"),
        }
    }

    fn iota(&mut self, args: &Args<'_>) -> hir::Expr {
        let Some([dims, axis]) = self.exactly(args) else {
            return self.error(args.span);
        };
        let Some((shape, counted)) = self.sizes(dims) else {
            return self.error(args.span);
        };
        let ty = Ty::tensor(Elem::I32, shape.clone());
        let place = hir::Expr {
            kind: Kind::Error,
            ty: ty.clone(),
            span: dims.span.clone(),
        };
        match self.axis(axis, shape.len(), &place) {
            Some(axis) => {
                let iota = self.op(Op::Iota(axis), vec![], ty, args.span);
                self.with_sizes(counted, iota)
            }
            None => self.error(args.span),
        }
    }

    /// One tensor of an array's elements, as long as the array.
    pub fn stack(&mut self, args: &Args<'_>) -> hir::Expr {
        let Some([array]) = self.exactly(args) else {
            return self.error(args.span);
        };
        let array = self.expr(array, None);
        let Ty::Array(element) = self.infer.shallow(&array.ty) else {
            return self.refuse(args, &array, "an array of tensors");
        };
        let length = self.count_of(&array);
        let length = length.unwrap_or_else(|| self.infer.opened_dim());
        match self.infer.shallow(&element) {
            Ty::Tensor { elem, shape } if !shape.contains(&Dim::Any) => {
                let mut dims = vec![Dim::Poly(length)];
                dims.extend(shape);
                let ty = Ty::Tensor { elem, shape: dims };
                self.of_elements(Op::Stack, array, ty, args.span)
            }
            Ty::Tensor { .. } => self.refuse(args, &array, "elements of one shape"),
            _ => self.refuse(args, &array, "an array of tensors or scalars"),
        }
    }

    /// An i32 on its way to an index.
    pub fn index_value(&mut self, expr: &ast::Expr) -> hir::Expr {
        self.expect(
            expr,
            &I32,
            &Why {
                span: None,
                text: "",
            },
        )
    }
}
