//! Words for a value of the wrong type: what it is, what was expected, where each comes from.

use super::body::{Body, Why};
use super::control::{LIKE_FIRST_ARM, LIKE_FIRST_BRANCH};
use super::resolve::plural;
use crate::diagnostic::{Diagnostic, Label};
use crate::hir::{self, Kind};
use crate::program::{Elem, Span};
use crate::types::Ty;

impl Body<'_> {
    pub fn mismatch(&self, expr: &hir::Expr, expected: &Ty, why: &Why<'_>) -> Diagnostic {
        let (found, wanted) = (self.show(&expr.ty), self.show(expected));
        let found_ty = self.infer.shallow(&expr.ty);
        let wanted_ty = self.infer.shallow(expected);
        let shapes = match (&found_ty, &wanted_ty) {
            (Ty::Tensor { elem: e1, .. }, Ty::Tensor { elem: e2, .. }) => e1 == e2,
            _ => false,
        };
        let mut diagnostic = if shapes {
            Diagnostic::error(
                "E0401",
                format!("expected shape `{wanted}`, found `{found}`"),
            )
        } else {
            Diagnostic::error("E0301", format!("expected `{wanted}`, found `{found}`"))
        };
        diagnostic = diagnostic.at(&expr.span, format!("this is `{found}`"));
        if let Some(span) = why.span {
            diagnostic = diagnostic.see(span, format!("expected `{wanted}` {}", why.text));
        }
        diagnostic = self.see_origin(diagnostic, expr);
        if let Some(note) = conversion_note(&found_ty, &wanted_ty) {
            diagnostic = diagnostic.note(note);
        }
        self.explain_lengths(diagnostic)
    }

    /// Points at the declaration of a parameter or variable that an operand merely names.
    pub fn see_origin(&self, diagnostic: Diagnostic, expr: &hir::Expr) -> Diagnostic {
        match &expr.kind {
            Kind::Param(index) => match self.items.params.get(*index) {
                Some(param) => diagnostic.see(
                    &param.name.span,
                    format!(
                        "`{}` is declared `{}`",
                        param.name.name,
                        self.show(&expr.ty)
                    ),
                ),
                None => diagnostic,
            },
            Kind::Local(id) => match self.locals.get(*id) {
                Some(local) if local.span != expr.span => diagnostic.see(
                    &local.span,
                    format!("`{}` is `{}` here", local.name, self.show(&local.ty)),
                ),
                _ => diagnostic,
            },
            _ => diagnostic,
        }
    }

    /// Says what `?1` is when a message of the diagnostic has one, and how two of them are made equal.
    pub fn explain_lengths(&self, diagnostic: Diagnostic) -> Diagnostic {
        let lengths = |text: &str| -> Vec<String> {
            let after = text.split('?').skip(1);
            let number = |part: &str| part.chars().take_while(char::is_ascii_digit).collect();
            after.map(number).collect()
        };
        let of_labels = diagnostic.labels.iter().flat_map(|l| lengths(&l.message));
        let mut all: Vec<String> = lengths(&diagnostic.message);
        let in_message = all.iter().any(|length| *length != all[0]);
        all.extend(of_labels);
        if all.is_empty() {
            return diagnostic;
        }
        let diagnostic =
            diagnostic.note("`?1`, `?2` … are lengths that are known only when the program runs");
        let is_of_branches = |label: &Label| {
            let message = &label.message;
            message.ends_with(LIKE_FIRST_BRANCH) || message.ends_with(LIKE_FIRST_ARM)
        };
        if diagnostic.labels.iter().any(is_of_branches) {
            return diagnostic.note(
                "branches have lengths of their own where the result has some length, `-> f32[_]`",
            );
        }
        match in_message {
            true => diagnostic.note(
                "if two of them are always equal, say so: `let n = len(x);`, then \
                 `let y: f32[n, D] = y;`, where it is checked",
            ),
            false => diagnostic,
        }
    }

    /// Reports a wrong number of something and says whether it did.
    pub fn wrong_count(
        &mut self,
        what: &str,
        wanted: usize,
        found: usize,
        span: &Span,
        usage: &str,
    ) -> bool {
        if wanted == found {
            return false;
        }
        self.report(
            Diagnostic::error(
                "E0302",
                format!("{what} takes {}, not {found}", plural(wanted, "argument")),
            )
            .at(span, format!("{} given", plural(found, "argument")))
            .note(format!("it is used as `{usage}`")),
        );
        true
    }
}

/// How a value of one type is made of another.
fn conversion_note(found: &Ty, wanted: &Ty) -> Option<String> {
    let text = match (found, wanted) {
        (
            Ty::Tensor { elem: f, shape },
            Ty::Tensor {
                elem: w,
                shape: wanted,
            },
        ) => match (f, w, shape.len(), wanted.len()) {
            (Elem::I32, Elem::F32, 0, 0) => "convert it with `f32(…)`, or write `1.0` for `1`",
            (Elem::I32 | Elem::Bool, Elem::F32, ..) => "convert it with `f32(…)`",
            (Elem::F32, Elem::I32, ..) => "convert it with `i32(…)`, which drops the fraction",
            (Elem::Bool, Elem::I32, ..) => "convert it with `i32(…)`, which gives 0 or 1",
            (Elem::F32, Elem::Bool, ..) => "compare it: `x > 0.5`",
            (Elem::I32, Elem::Bool, ..) => "compare it: `x != 0`",
            (_, _, rank, 0) => {
                return Some(format!("take one element of it, `{}`", first_of(rank)));
            }
            (_, _, 0, _) => "a tensor of equal elements is `fill([n, D], value)`",
            _ => return None,
        },
        (Ty::Tensor { shape, .. }, Ty::Array(_)) if !shape.is_empty() => {
            "the rows of a tensor as an array are `map(range(len(x)), |i| x[i])`"
        }
        (_, Ty::Array(element)) if found == &**element => "an array of one element is `[x]`",
        (Ty::Array(element), Ty::Tensor { shape, .. }) => match &**element {
            Ty::Tensor { shape: row, .. } if row.len() + 1 == shape.len() => {
                "make a tensor of an array with `stack(…)`"
            }
            Ty::Tensor { shape: row, .. } if row.len() == shape.len() => {
                "take one element of it, as in `xs[0]`, or add all with `sum(xs)`"
            }
            _ => return None,
        },
        _ => return None,
    };
    Some(text.to_owned())
}

/// The first element of a tensor called `x`.
pub fn first_of(rank: usize) -> String {
    format!("x[{}]", vec!["0"; rank].join(", "))
}
