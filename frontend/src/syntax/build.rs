//! Construction of syntax nodes for the grammar's actions.
//!
//! Each node's depth is computed here, and a node past [`MAX_DEPTH`] becomes an error node with a
//! diagnostic. The LALRPOP parser keeps its own stack on the heap, so this one place bounds the
//! recursion of everything that follows, the dropping of the tree included.

use std::cell::{Cell, RefCell};

use lalrpop_util::ErrorRecovery;

use super::ast::{
    Arg, Arm, BinaryOp, ConstructorItem, DimExpr, DimKind, DimOp, Expr, ExprKind, FieldItem, Ident,
    IndexArg, LoopVar, Pattern, PatternKind, Statement, StoredItem, TypeExpr, TypeKind, UnaryOp,
};
use super::lexer::{Spanned, Token};
use super::parser::syntax_error;
use crate::diagnostic::Diagnostic;
use crate::program::{Span, Stored};

/// The deepest tree that is accepted; a `let` counts as one level, as does each `+` of a sum.
pub const MAX_DEPTH: u32 = 500;

/// A tuple, a constructor, an or-pattern and a call have at most this many parts.
const MAX_PARTS: usize = 100;

/// The dims that a tensor's type may have.
const MAX_RANK: usize = 16;

/// The arms that a `match` may have: each integer is a comparison within the one before.
const MAX_ARMS: usize = 250;

/// What the grammar's actions share: the file and the diagnostics so far.
pub struct Builder<'t, 's> {
    file: usize,
    /// Those of the item that is being parsed.
    tokens: &'t [Spanned<'s>],
    pub diagnostics: RefCell<Vec<Diagnostic>>,
    too_deep: Cell<bool>,
}

type Recovery<'s> = ErrorRecovery<usize, Token<'s>, &'static str>;

impl<'t, 's> Builder<'t, 's> {
    pub fn new(file: usize) -> Self {
        Self {
            file,
            tokens: &[],
            diagnostics: RefCell::default(),
            too_deep: Cell::new(false),
        }
    }

    /// Takes up another item.
    pub fn begin(&mut self, tokens: &'t [Spanned<'s>]) {
        self.tokens = tokens;
    }

    pub fn span(&self, start: usize, end: usize) -> Span {
        Span {
            file: self.file,
            range: start..end,
        }
    }

    pub fn ident(&self, start: usize, name: &str, end: usize) -> Ident {
        Ident {
            name: name.to_owned(),
            span: self.span(start, end),
        }
    }

    fn report(&self, diagnostic: Diagnostic) {
        self.diagnostics.borrow_mut().push(diagnostic);
    }

    /// Keeps the diagnostic of a mistake that the grammar recovered from.
    pub fn recovered(&self, recovery: Recovery<'_>) {
        self.report(syntax_error(self.file, self.tokens, recovery.error));
    }

    /// `from "name".T`, whose words are names elsewhere.
    pub fn stored(
        &self,
        from: Ident,
        start: usize,
        text: &str,
        transposed: Option<Ident>,
        end: usize,
    ) -> StoredItem {
        let is_known = |word: &Ident, known: &str| {
            if word.name != known {
                let found = format!("expected `{known}`, found `{}`", word.name);
                self.report(
                    Diagnostic::error("E0110", found)
                        .at(&word.span, "not known here")
                        .note("a parameter that is stored by another name is written `param w: f32[D, H] from \"layer.weight\".T`"),
                );
            }
        };
        is_known(&from, "from");
        if let Some(word) = &transposed {
            is_known(word, "T");
        }
        StoredItem {
            stored: Stored {
                name: text.trim_matches('"').to_owned(),
                transposed: transposed.is_some(),
            },
            span: self.span(start, end),
        }
    }

    /// One more than the deepest child's depth, or `None`, reported once, where that is too deep.
    fn depth(&self, children: u32, span: &Span) -> Option<u32> {
        if children < MAX_DEPTH {
            return Some(children + 1);
        }
        if !self.too_deep.replace(true) {
            self.report(
                Diagnostic::error("E0105", "this nests too deeply")
                    .at(span, format!("more than {MAX_DEPTH} levels"))
                    .note("give parts of it a name with `let`, or move them to functions"),
            );
        }
        None
    }

    /// Reports a tuple or a pattern with too many parts and says whether it did.
    fn too_wide(&self, parts: usize, span: &Span) -> bool {
        let note = "group parts: in types of their own, in arrays, in several arms";
        self.too_many(("parts", parts, MAX_PARTS), span, note)
    }

    /// Reports more of something than there may be, and says whether there were.
    fn too_many(&self, (what, count, most): (&str, usize, usize), span: &Span, note: &str) -> bool {
        if count > most {
            self.report(
                Diagnostic::error("E0105", format!("{count} {what} are too many"))
                    .at(span, format!("at most {most} are allowed"))
                    .note(note),
            );
        }
        count > most
    }

    pub fn expr(&self, start: usize, kind: ExprKind, end: usize) -> Expr {
        let span = self.span(start, end);
        let is_too_wide = match &kind {
            ExprKind::Tuple(parts) => self.too_wide(parts.len(), &span),
            ExprKind::Call { args, .. } => self.too_many(
                ("arguments", args.len(), MAX_PARTS),
                &span,
                "give several as one, in a tuple, a type of their own or an array",
            ),
            ExprKind::Match { arms, .. } => self.too_many(
                ("arms", arms.len(), MAX_ARMS),
                &span,
                "look numbers up in an array, or match in several steps",
            ),
            _ => false,
        };
        if is_too_wide {
            return Expr {
                kind: ExprKind::Error,
                span,
                depth: 0,
            };
        }
        match self.depth(expr_children(&kind), &span) {
            Some(depth) => Expr { kind, span, depth },
            None => Expr {
                kind: ExprKind::Error,
                span,
                depth: 0,
            },
        }
    }

    pub fn binary(
        &self,
        start: usize,
        lhs: Expr,
        op: (usize, BinaryOp, usize),
        rhs: Expr,
        end: usize,
    ) -> Expr {
        let op_span = self.span(op.0, op.2);
        let (lhs, rhs) = (Box::new(lhs), Box::new(rhs));
        self.expr(
            start,
            ExprKind::Binary {
                op: op.1,
                op_span,
                lhs,
                rhs,
            },
            end,
        )
    }

    pub fn unary(&self, start: usize, op: UnaryOp, value: Expr, end: usize) -> Expr {
        self.expr(
            start,
            ExprKind::Unary {
                op,
                value: Box::new(value),
            },
            end,
        )
    }

    /// `if` without `else` parses, so that the mistake is explained instead of merely rejected.
    pub fn if_without_else(&self, start: usize, cond: Expr, then: Expr, end: usize) -> Expr {
        let span = self.span(start, end);
        self.report(
            Diagnostic::error("E0106", "an `if` needs an `else`")
                .at(&span, "what is the value when the condition is false?")
                .note("every expression has a value: add `else { … }`"),
        );
        drop((cond, then));
        Expr {
            kind: ExprKind::Error,
            span,
            depth: 0,
        }
    }

    pub fn block(
        &self,
        start: usize,
        statements: Vec<Option<Statement>>,
        result: Expr,
        end: usize,
    ) -> Expr {
        let statements: Vec<Statement> = statements.into_iter().flatten().collect();
        if statements.is_empty() {
            return result;
        }
        self.expr(
            start,
            ExprKind::Block {
                statements,
                result: Box::new(result),
            },
            end,
        )
    }

    /// A block that ends with `;` parses, so that the mistake is explained.
    pub fn block_without_value(
        &self,
        start: usize,
        statements: Vec<Option<Statement>>,
        end: usize,
    ) -> Expr {
        let span = self.span(start, end);
        // After a statement that did not parse, the missing value may well be part of it.
        if statements.iter().all(Option::is_some) {
            self.report(
                Diagnostic::error("E0107", "this block has no value")
                    .at(
                        &self.span(end.saturating_sub(1).max(start), end),
                        "expected an expression before this",
                    )
                    .note("a block ends with the expression that is its value, without `;`"),
            );
        }
        Expr {
            kind: ExprKind::Error,
            span,
            depth: 0,
        }
    }

    pub fn constructor(
        &self,
        start: usize,
        name: Ident,
        fields: Vec<FieldItem>,
        end: usize,
    ) -> ConstructorItem {
        let wide = self.too_wide(fields.len(), &self.span(start, end));
        ConstructorItem {
            name,
            fields: if wide { Vec::new() } else { fields },
        }
    }

    pub fn int(&self, start: usize, digits: &str, end: usize) -> u64 {
        digits.parse().unwrap_or_else(|_| {
            let span = self.span(start, end);
            self.report(
                Diagnostic::error("E0103", format!("the number `{digits}` is too large"))
                    .at(&span, "does not fit an i32")
                    .note("integers are 32 bits wide: at most 2147483647"),
            );
            0
        })
    }

    pub fn float(&self, start: usize, digits: &str, end: usize) -> f64 {
        let value: f64 = digits.parse().unwrap_or(0.0);
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the range is what is checked"
        )]
        if (value as f32).is_finite() {
            return value;
        }
        let span = self.span(start, end);
        self.report(
            Diagnostic::error("E0104", format!("the number `{digits}` is too large"))
                .at(&span, "does not fit an f32")
                .note("the largest f32 is about 3.4e38"),
        );
        0.0
    }

    pub fn ty(&self, start: usize, kind: TypeKind, end: usize) -> TypeExpr {
        let span = self.span(start, end);
        let children = match &kind {
            TypeKind::Name { args, .. } | TypeKind::Tuple(args) => deepest(args, |t| t.depth),
            TypeKind::Tensor { shape, .. } => deepest(shape, |d| d.depth),
            TypeKind::Array(element) => element.depth,
            TypeKind::Error => 0,
        };
        let is_too_wide = match &kind {
            TypeKind::Name { args, .. } | TypeKind::Tuple(args) => self.too_wide(args.len(), &span),
            TypeKind::Tensor { shape, .. } => self.too_many(
                ("dims", shape.len(), MAX_RANK),
                &span,
                "several dims can be one, their product",
            ),
            _ => false,
        };
        if is_too_wide {
            return TypeExpr {
                kind: TypeKind::Error,
                span,
                depth: 0,
            };
        }
        match self.depth(children, &span) {
            Some(depth) => TypeExpr { kind, span, depth },
            None => TypeExpr {
                kind: TypeKind::Error,
                span,
                depth: 0,
            },
        }
    }

    pub fn dim(&self, start: usize, kind: DimKind, end: usize) -> DimExpr {
        let span = self.span(start, end);
        let children = match &kind {
            DimKind::Binary { lhs, rhs, .. } => lhs.depth.max(rhs.depth),
            _ => 0,
        };
        match self.depth(children, &span) {
            Some(depth) => DimExpr { kind, span, depth },
            None => DimExpr {
                kind: DimKind::Error,
                span,
                depth: 0,
            },
        }
    }

    pub fn dim_binary(
        &self,
        start: usize,
        op: DimOp,
        lhs: DimExpr,
        rhs: DimExpr,
        end: usize,
    ) -> DimExpr {
        let (lhs, rhs) = (Box::new(lhs), Box::new(rhs));
        self.dim(start, DimKind::Binary { op, lhs, rhs }, end)
    }

    pub fn pattern(&self, start: usize, kind: PatternKind, end: usize) -> Pattern {
        let span = self.span(start, end);
        let children = match &kind {
            PatternKind::Constructor { fields, .. } => deepest(fields, |f| f.pattern.depth),
            PatternKind::Tuple(parts) | PatternKind::Or(parts) => deepest(parts, |p| p.depth),
            _ => 0,
        };
        let parts = match &kind {
            PatternKind::Constructor { fields, .. } => fields.len(),
            PatternKind::Tuple(parts) | PatternKind::Or(parts) => parts.len(),
            _ => 0,
        };
        if self.too_wide(parts, &span) {
            return Pattern {
                kind: PatternKind::Error,
                span,
                depth: 0,
            };
        }
        match self.depth(children, &span) {
            Some(depth) => Pattern { kind, span, depth },
            None => Pattern {
                kind: PatternKind::Error,
                span,
                depth: 0,
            },
        }
    }

    pub fn or_pattern(
        &self,
        start: usize,
        first: Pattern,
        rest: Vec<Pattern>,
        end: usize,
    ) -> Pattern {
        let alternatives = std::iter::once(first).chain(rest).collect();
        self.pattern(start, PatternKind::Or(alternatives), end)
    }

    /// A literal in a pattern, checked against the range of an i32.
    pub fn pattern_int(
        &self,
        start: usize,
        digits: &str,
        negative: bool,
        end: usize,
    ) -> PatternKind {
        let value = i64::try_from(self.int(start, digits, end)).unwrap_or(i64::MAX);
        let value = if negative { -value } else { value };
        if i32::try_from(value).is_err() {
            self.report(
                Diagnostic::error("E0103", format!("the number `{value}` is too large"))
                    .at(&self.span(start, end), "does not fit an i32")
                    .note("integers are 32 bits wide: -2147483648 to 2147483647"),
            );
            return PatternKind::Error;
        }
        PatternKind::Int(value)
    }
}

fn deepest<T>(children: &[T], depth: impl Fn(&T) -> u32) -> u32 {
    children.iter().map(depth).max().unwrap_or(0)
}

fn expr_children(kind: &ExprKind) -> u32 {
    match kind {
        ExprKind::Int(_)
        | ExprKind::Float(_)
        | ExprKind::Text(_)
        | ExprKind::Bool(_)
        | ExprKind::Name(_)
        | ExprKind::Error => 0,
        ExprKind::Call { args, .. } => deepest(args, arg_depth),
        ExprKind::Index { value, indices } => value.depth.max(deepest(indices, index_depth)),
        ExprKind::Unary { value, .. } | ExprKind::Field { value, .. } => value.depth,
        ExprKind::Binary { lhs, rhs, .. } => lhs.depth.max(rhs.depth),
        ExprKind::Tuple(elements) | ExprKind::Array(elements) => deepest(elements, |e| e.depth),
        ExprKind::Block { statements, result } => block_depth(statements, result),
        ExprKind::If {
            cond,
            then,
            otherwise,
        } => cond.depth.max(then.depth).max(otherwise.depth),
        ExprKind::Match { scrutinee, arms } => scrutinee.depth.max(deepest(arms, |arm: &Arm| {
            let guard = arm.guard.as_ref().map_or(0, |guard| guard.depth);
            arm.pattern.depth.max(arm.body.depth).max(guard)
        })),
        ExprKind::While { cond, vars, body } => cond
            .depth
            .max(body.depth)
            .max(deepest(vars, loop_var_depth)),
        ExprKind::For {
            pattern,
            array,
            vars,
            body,
        } => {
            let parts = pattern.depth.max(array.depth).max(body.depth);
            parts.max(deepest(vars, loop_var_depth))
        }
    }
}

/// Each statement holds the rest of its block, so the `k`th value is `k` levels down.
fn block_depth(statements: &[Statement], result: &Expr) -> u32 {
    statements
        .iter()
        .rev()
        .fold(result.depth, |rest, statement| {
            let Statement::Let(binding) = statement else {
                return rest + 1;
            };
            let ty = binding.ty.as_ref().map_or(0, |ty| ty.depth);
            rest.max(binding.value.depth)
                .max(binding.pattern.depth)
                .max(ty)
                + 1
        })
}

fn loop_var_depth(var: &LoopVar) -> u32 {
    var.init.depth.max(var.ty.as_ref().map_or(0, |ty| ty.depth))
}

fn arg_depth(arg: &Arg) -> u32 {
    match arg {
        Arg::Value(value) | Arg::Named(_, value) => value.depth,
        Arg::Closure(closure) => {
            closure
                .body
                .depth
                .max(deepest(&closure.params, |p| p.depth))
                + 1
        }
    }
}

fn index_depth(index: &IndexArg) -> u32 {
    match index {
        IndexArg::At(value) => value.depth,
        IndexArg::Range { start, end, .. } => {
            let depth = |bound: &Option<Expr>| bound.as_ref().map_or(0, |e| e.depth);
            depth(start).max(depth(end))
        }
    }
}
