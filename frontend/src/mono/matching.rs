//! `let` and `match`: values get variables, patterns become decisions on them.

use super::arms::Goal;
use super::decide::Row;
use super::function::Instance;
use crate::hir::{self, Kind, LocalId, Pattern, PatternKind};
use crate::program::{Expr, ExprKind, Span, Type, VarId};

impl Instance<'_, '_> {
    pub fn match_arms(
        &mut self,
        scrutinee: &hir::Expr,
        arms: &[hir::Arm],
        ty: Type,
        span: &Span,
    ) -> Expr {
        let patterns = arms.iter().enumerate();
        let patterns = patterns.flat_map(|(index, arm)| {
            let alternatives = arm.pattern.alternatives().into_iter();
            alternatives.map(move |pattern| (index, pattern))
        });
        let goal = Goal {
            ty,
            span: span.clone(),
            bodies: arms.iter().map(|arm| &arm.body).collect(),
            guards: arms.iter().map(|arm| arm.guard.as_ref()).collect(),
        };
        self.match_value(scrutinee, &patterns.collect::<Vec<_>>(), &goal)
    }

    /// Binds a value to a pattern that always matches.
    pub fn let_pattern(&mut self, pattern: &Pattern, value: &hir::Expr, body: &hir::Expr) -> Expr {
        // `let p = (let q = v in w) in b` is `let q = v in let p = w in b`: locals are unique.
        if let Kind::Let {
            pattern: inner,
            value: first,
            body: second,
        } = &value.kind
            && is_plain(inner)
        {
            let ty = self.ty(&body.ty, &body.span);
            let mut outer = self.open_let(inner, first);
            let rest = self.let_pattern(pattern, second, body);
            outer.body = Some(rest);
            return outer.close(self, ty, &body.span);
        }
        let ty = self.ty(&body.ty, &body.span);
        let goal = Goal {
            ty,
            span: body.span.clone(),
            bodies: vec![body],
            guards: Vec::new(),
        };
        self.match_value(value, &[(0, pattern)], &goal)
    }

    /// The bindings of an outer `let` whose body is still to come.
    fn open_let(&mut self, pattern: &Pattern, value: &hir::Expr) -> OpenLet {
        let mut lets = Vec::new();
        self.bind(pattern, value, &mut lets);
        OpenLet { lets, body: None }
    }

    /// Evaluates `value` and binds the locals of a pattern of tuples and variables.
    fn bind(&mut self, pattern: &Pattern, value: &hir::Expr, lets: &mut Vec<(VarId, Expr)>) {
        if let (PatternKind::Tuple(parts), Kind::Tuple(values)) = (&pattern.kind, &value.kind) {
            for (part, value) in parts.iter().zip(values) {
                self.bind(part, value, lets);
            }
            return;
        }
        let var = match pattern.kind {
            PatternKind::Bind(local) => self.hold_as(local, value, lets),
            _ => self.hold(value, lets),
        };
        self.bind_parts(pattern, var, lets);
    }

    fn bind_parts(&mut self, pattern: &Pattern, var: VarId, lets: &mut Vec<(VarId, Expr)>) {
        let PatternKind::Tuple(parts) = &pattern.kind else {
            return;
        };
        for (index, part) in parts.iter().enumerate() {
            if matches!(part.kind, PatternKind::Wildcard) {
                continue;
            }
            let tuple = self.read(var, &part.span);
            let ty = self.ty(&part.ty, &part.span);
            let part_var = match part.kind {
                PatternKind::Bind(local) => self.declare(local),
                _ => self.var("part", ty.clone(), &part.span),
            };
            let kind = ExprKind::TupleGet {
                tuple: Box::new(tuple),
                index,
            };
            lets.push((
                part_var,
                Expr {
                    kind,
                    ty,
                    span: part.span.clone(),
                },
            ));
            self.bind_parts(part, part_var, lets);
        }
    }

    /// `patterns` come with the arms that they choose.
    fn match_value<'p>(
        &mut self,
        value: &hir::Expr,
        patterns: &[(usize, &'p Pattern)],
        goal: &Goal<'p>,
    ) -> Expr {
        let new_row = |arm: usize, tests| {
            let guarded = goal.guards.get(arm).is_some_and(Option::is_some);
            Row::new(arm, guarded, tests)
        };
        let mut lets: Vec<(VarId, Expr)> = Vec::new();
        let rows = match &value.kind {
            // A tuple that is taken apart at once is never built.
            Kind::Tuple(parts)
                if patterns.iter().all(|(_, pattern)| {
                    matches!(pattern.kind, PatternKind::Tuple(_) | PatternKind::Wildcard)
                }) =>
            {
                let vars: Vec<VarId> = parts
                    .iter()
                    .map(|part| self.hold(part, &mut lets))
                    .collect();
                let row = |(arm, pattern): &(usize, &'p Pattern)| match &pattern.kind {
                    PatternKind::Tuple(tests) => {
                        new_row(*arm, vars.iter().copied().zip(tests).collect())
                    }
                    _ => new_row(*arm, Vec::new()),
                };
                patterns.iter().map(row).collect()
            }
            _ => {
                // A plain `let` names its variable itself.
                let var = match patterns {
                    [
                        (
                            _,
                            Pattern {
                                kind: PatternKind::Bind(local),
                                ..
                            },
                        ),
                    ] => self.hold_as(*local, value, &mut lets),
                    _ => self.hold(value, &mut lets),
                };
                let row =
                    |(arm, pattern): &(usize, &'p Pattern)| new_row(*arm, vec![(var, *pattern)]);
                patterns.iter().map(row).collect()
            }
        };
        let body = self.decide_and_write(rows, goal);
        self.wrap(lets, body)
    }

    /// A variable that holds a value: its own if it is one, else a new one.
    fn hold(&mut self, value: &hir::Expr, lets: &mut Vec<(VarId, Expr)>) -> VarId {
        if let Kind::Local(local) = value.kind
            && let Some(var) = self.locals.get(&local)
        {
            return *var;
        }
        let held = self.expr(value);
        let var = self.var("value", held.ty.clone(), &value.span);
        lets.push((var, held));
        var
    }

    /// A variable that holds a value under the name of a local; another variable of the same type
    /// is that one under a second name.
    fn hold_as(
        &mut self,
        local: LocalId,
        value: &hir::Expr,
        lets: &mut Vec<(VarId, Expr)>,
    ) -> VarId {
        if let Kind::Local(other) = value.kind
            && let Some(var) = self.locals.get(&other).copied()
            && let Some(declared) = self.source.locals.get(local)
        {
            let ty = self.ty(&declared.ty, &declared.span);
            if self.vars.get(var.0).is_some_and(|var| var.ty == ty) {
                self.locals.insert(local, var);
                return var;
            }
        }
        let held = self.expr(value);
        let var = self.declare(local);
        lets.push((var, held));
        var
    }

    pub fn wrap(&mut self, lets: Vec<(VarId, Expr)>, body: Expr) -> Expr {
        lets.into_iter().rev().fold(body, |body, (var, value)| {
            let (ty, span) = (body.ty.clone(), body.span.clone());
            let kind = ExprKind::Let {
                var,
                value: Box::new(value),
                body: Box::new(body),
            };
            Expr { kind, ty, span }
        })
    }
}

/// The bindings around a body that is lowered after them.
struct OpenLet {
    lets: Vec<(VarId, Expr)>,
    body: Option<Expr>,
}

impl OpenLet {
    fn close(self, instance: &mut Instance<'_, '_>, ty: Type, span: &Span) -> Expr {
        match self.body {
            Some(body) => instance.wrap(self.lets, body),
            None => instance.placeholder(ty, span),
        }
    }
}

/// Whether a pattern only takes tuples apart.
fn is_plain(pattern: &Pattern) -> bool {
    match &pattern.kind {
        PatternKind::Wildcard | PatternKind::Bind(_) => true,
        PatternKind::Tuple(parts) => parts.iter().all(is_plain),
        PatternKind::Construct { .. }
        | PatternKind::Or(_)
        | PatternKind::Int(_)
        | PatternKind::Bool(_) => false,
    }
}
