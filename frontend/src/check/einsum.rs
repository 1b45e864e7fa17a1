//! `einsum("ij,jk->ik", a, b)`: a product of two tensors whose axes are named by letters, written out
//! in transpositions, reshapes and one product.

use super::body::Body;
use super::calls::Args;
use crate::diagnostic::Diagnostic;
use crate::dims::{Atom, Poly};
use crate::hir::{self, Op};
use crate::program::{Binary, Elem, Reduction, Span};
use crate::syntax::ast::{self, Arg};
use crate::types::Ty;

/// A tensor whose axes have letters.
struct Lettered {
    value: hir::Expr,
    elem: Elem,
    letters: Vec<char>,
    shape: Vec<Poly>,
}

impl Body<'_> {
    pub fn einsum(&mut self, args: &Args<'_>) -> hir::Expr {
        if let [Arg::Value(_), Arg::Value(_)] = args.given[..] {
            self.report(
                Diagnostic::error("E0302", "`einsum` is of two tensors")
                    .at(args.span, "one is given")
                    .note(
                        "of one, `transpose(x, [1, 0])` puts the axes in another order, and \
                         `sum(x, axis = 0)` adds up over one",
                    ),
            );
            return self.error(args.span);
        }
        let Some([written, left, right]) = self.exactly(args) else {
            return self.error(args.span);
        };
        let (left, right) = (self.expr(left, None), self.expr(right, None));
        let Some([left_letters, right_letters, result]) = self.letters(written) else {
            return self.error(args.span);
        };
        let (Some(left), Some(right)) = (
            self.lettered(args, left, left_letters, &written.span),
            self.lettered(args, right, right_letters, &written.span),
        ) else {
            return self.error(args.span);
        };
        let known = |letter: &char| left.letters.contains(letter) || right.letters.contains(letter);
        if let Some(unknown) = result.iter().find(|letter| !known(letter)) {
            let message = format!("no operand of `einsum` has an axis `{unknown}`");
            self.report(
                Diagnostic::error("E0404", message).at(&written.span, "only the result has it"),
            );
            return self.error(args.span);
        }
        if left.elem != right.elem {
            return self.refuse(args, &right.value, "elements like those of the other");
        }
        if !self.lengths_agree(&left, &right, &written.span) {
            return self.error(args.span);
        }
        let left = self.summed(left, &right.letters, &result, args.span);
        let right = self.summed(right, &left.letters, &result, args.span);
        self.contracted(left, right, &result, args.span)
    }

    /// The letters of both operands and of the result.
    fn letters(&mut self, written: &ast::Expr) -> Option<[Vec<char>; 3]> {
        let ast::ExprKind::Text(text) = &written.kind else {
            self.report(
                Diagnostic::error("E0309", "the axes of `einsum` are written in the program")
                    .at(&written.span, "expected a text such as \"ij,jk->ik\""),
            );
            return None;
        };
        let text: String = text.chars().filter(|letter| *letter != ' ').collect();
        let parts = text.split_once("->").and_then(|(operands, result)| {
            let (left, right) = operands.split_once(',')?;
            Some([left, right, result].map(|part| part.chars().collect::<Vec<char>>()))
        });
        let is_twice =
            |part: &Vec<char>| (1..part.len()).any(|index| part[..index].contains(&part[index]));
        let label = match &parts {
            None => "expected two operands and a result, \"ij,jk->ik\"",
            Some(parts) if !parts.iter().flatten().all(char::is_ascii_alphabetic) => {
                "an axis is a letter"
            }
            Some(parts) if parts.iter().any(is_twice) => {
                "no operand has an axis twice, and neither has the result"
            }
            Some(_) => return parts,
        };
        self.report(
            Diagnostic::error("E0309", "not the axes of a product").at(&written.span, label),
        );
        None
    }

    fn lettered(
        &mut self,
        args: &Args<'_>,
        value: hir::Expr,
        letters: Vec<char>,
        written: &Span,
    ) -> Option<Lettered> {
        let Some((elem @ (Elem::F32 | Elem::I32), shape)) = self.tensor(&value) else {
            self.refuse(args, &value, "a tensor of numbers");
            return None;
        };
        if shape.len() != letters.len() {
            let (shown, letters) = (self.show(&value.ty), String::from_iter(letters));
            let message = format!("`{letters}` does not name the axes of `{shown}`");
            self.report(
                Diagnostic::error("E0404", message)
                    .at(
                        written,
                        format!("one letter for each of {} axes", shape.len()),
                    )
                    .see(&value.span, format!("this is `{shown}`")),
            );
            return None;
        }
        Some(Lettered {
            value,
            elem,
            letters,
            shape,
        })
    }

    /// Whether axes of one letter have one length.
    fn lengths_agree(&mut self, left: &Lettered, right: &Lettered, written: &Span) -> bool {
        for (letter, dim) in left.letters.iter().zip(&left.shape) {
            let Some(other) = right.letters.iter().position(|other| other == letter) else {
                continue;
            };
            if self.infer.unify_dims(dim, &right.shape[other]).is_ok() {
                continue;
            }
            let (one, two) = (self.show_dim(dim), self.show_dim(&right.shape[other]));
            let message =
                format!("axis `{letter}` of `einsum` has two lengths: {one} against {two}");
            let mut diagnostic =
                Diagnostic::error("E0401", message).at(written, "one letter, one length");
            for operand in [left, right] {
                let shown = self.show(&operand.value.ty);
                diagnostic = diagnostic.see(&operand.value.span, format!("this is `{shown}`"));
            }
            let diagnostic = self.explain_lengths(diagnostic);
            self.report(diagnostic);
            return false;
        }
        true
    }

    /// Without the axes that neither the other operand nor the result has.
    fn summed(&mut self, of: Lettered, other: &[char], result: &[char], span: &Span) -> Lettered {
        let mut of = of;
        for axis in (0..of.letters.len()).rev() {
            let letter = of.letters[axis];
            if other.contains(&letter) || result.contains(&letter) {
                continue;
            }
            of.letters.remove(axis);
            of.shape.remove(axis);
            let ty = Ty::tensor(of.elem, of.shape.clone());
            of.value = self.op(Op::Reduce(Reduction::Sum, axis), vec![of.value], ty, span);
        }
        of
    }

    fn contracted(
        &mut self,
        left: Lettered,
        right: Lettered,
        result: &[char],
        span: &Span,
    ) -> hir::Expr {
        let of = |wanted: &dyn Fn(&char) -> bool, from: &[char]| -> Vec<char> {
            from.iter()
                .copied()
                .filter(|letter| wanted(letter))
                .collect()
        };
        let in_both =
            |letter: &char| left.letters.contains(letter) && right.letters.contains(letter);
        let batch = of(&|letter| in_both(letter), result);
        let rows = of(&|letter| !right.letters.contains(letter), result);
        let columns = of(&|letter| !left.letters.contains(letter), result);
        let inner = of(
            &|letter| in_both(letter) && !result.contains(letter),
            &left.letters,
        );
        let elem = left.elem;
        let dims = |letters: &[char]| -> Vec<Poly> {
            let dim = |letter: &char| {
                let find = |of: &Lettered| {
                    let axis = of.letters.iter().position(|own| own == letter)?;
                    of.shape.get(axis).cloned()
                };
                find(&left).or_else(|| find(&right)).unwrap_or_default()
            };
            letters.iter().map(dim).collect()
        };
        let ones = |count: usize| vec![Poly::constant(1); count];
        let (before, inside) = (dims(&batch), dims(&inner));
        let (down, across) = (dims(&rows), dims(&columns));
        let joined = |dims: &[Poly]| -> Vec<Poly> {
            if dims.is_empty() && before.is_empty() {
                return Vec::new();
            }
            let product = |all: Poly, dim: &Poly| all.multiply(dim).unwrap_or_default();
            vec![dims.iter().fold(Poly::constant(1), product)]
        };
        // Only axes whose lengths the program knows become one; others stay dims before a matrix.
        let can_join = |dims: &[Poly]| {
            let is_known = |dim: &Poly| dim.atoms().all(|atom| matches!(atom, Atom::Program(_)));
            dims.len() < 2 || dims.iter().all(is_known)
        };
        let is_product = elem == Elem::F32 && !inner.is_empty() && can_join(&inside);
        if is_product && can_join(&down) && !can_join(&across) {
            return self.contracted(right, left, result, span);
        }
        let is_product = is_product && can_join(&across);
        // As matrices, or each with axes of 1 where the other has its own.
        let (one, other, shape) = if is_product {
            let (left_rows, beside) = match can_join(&down) {
                true => (joined(&down), Vec::new()),
                false if before.is_empty() => (down.clone(), Vec::new()),
                false => (down.clone(), ones(down.len() - 1)),
            };
            let one = [&before[..], &left_rows, &joined(&inside)].concat();
            let other = [&before[..], &beside, &joined(&inside), &joined(&across)].concat();
            let shape = [&before[..], &left_rows, &joined(&across)].concat();
            (one, other, shape)
        } else {
            let one = [&before[..], &down, &ones(across.len()), &inside].concat();
            let other = [&before[..], &ones(down.len()), &across, &inside].concat();
            let all = [&before[..], &down, &across, &inside].concat();
            (one, other, all)
        };
        let left_order = [&batch[..], &rows, &inner].concat();
        let right_order = match is_product {
            true => [&batch[..], &inner, &columns].concat(),
            false => [&batch[..], &columns, &inner].concat(),
        };
        let left = self.in_order(left, &left_order, span);
        let left = self.reshaped(left, one, elem, span);
        let right = self.in_order(right, &right_order, span);
        let right = self.reshaped(right, other, elem, span);
        let op = match is_product {
            true => Op::MatMul,
            false => Op::Binary(Binary::Mul),
        };
        let mut value = self.op(op, vec![left, right], Ty::tensor(elem, shape.clone()), span);
        let whole = [before, down, across].concat();
        if is_product {
            value = self.reshaped(value, whole.clone(), elem, span);
        } else {
            let mut shape = shape;
            while shape.len() > whole.len() {
                shape.pop();
                let ty = Ty::tensor(elem, shape.clone());
                value = self.op(
                    Op::Reduce(Reduction::Sum, shape.len()),
                    vec![value],
                    ty,
                    span,
                );
            }
        }
        let made = Lettered {
            value,
            elem,
            letters: [batch, rows, columns].concat(),
            shape: whole,
        };
        self.in_order(made, result, span)
    }

    /// With the axes in another order.
    fn in_order(&mut self, of: Lettered, letters: &[char], span: &Span) -> hir::Expr {
        let place = |letter: &char| of.letters.iter().position(|own| own == letter);
        let permutation: Vec<usize> = letters.iter().filter_map(place).collect();
        if permutation.is_sorted() {
            return of.value;
        }
        let shape = permutation
            .iter()
            .map(|axis| of.shape[*axis].clone())
            .collect();
        let ty = Ty::tensor(of.elem, shape);
        self.op(Op::Transpose(permutation), vec![of.value], ty, span)
    }

    fn reshaped(
        &mut self,
        value: hir::Expr,
        shape: Vec<Poly>,
        elem: Elem,
        span: &Span,
    ) -> hir::Expr {
        let ty = Ty::tensor(elem, shape);
        match value.ty == ty {
            true => value,
            false => self.op(Op::Reshape, vec![value], ty, span),
        }
    }
}
