//! Writes decisions as flat matches with the arms' bodies at their ends.
//!
//! An arm that several ways lead to, such as `_`, becomes a function of its own that each way
//! calls. Written out on each way, its tensor code would be different code each time, and what is
//! different code is not batched together.

use rustc_hash::FxHashSet;

use super::decide::{Decision, Row};
use super::function::Instance;
use crate::diagnostic::Diagnostic;
use crate::hir::{self, Kind, LocalId};
use crate::program::{
    Arm, Binary, Elem, Expr, ExprKind, Function, FunctionId, Literal, Span, Type, VarId,
};
use crate::stage::walk::for_each_child;

/// What is the same for all ways through one match.
pub struct Goal<'p> {
    pub ty: Type,
    pub span: Span,
    pub bodies: Vec<&'p hir::Expr>,
    /// One an arm, or none at all.
    pub guards: Vec<Option<&'p hir::Expr>>,
}

/// What is computed once an arm is chosen; both see what its pattern binds.
#[derive(Clone, Copy)]
enum Part {
    Body(usize),
    Guard(usize),
}

impl<'p> Goal<'p> {
    fn expr(&self, part: Part) -> Option<&'p hir::Expr> {
        match part {
            Part::Body(arm) => self.bodies.get(arm).copied(),
            Part::Guard(arm) => self.guards.get(arm).copied().flatten(),
        }
    }

    fn ty(&self, part: Part) -> Type {
        match part {
            Part::Body(_) => self.ty.clone(),
            Part::Guard(_) => Type::Scalar(Elem::Bool),
        }
    }

    /// The place of a part among all of them.
    fn place(&self, part: Part) -> usize {
        match part {
            Part::Body(arm) => arm,
            Part::Guard(arm) => self.bodies.len() + arm,
        }
    }
}

/// A part that became a function, with the values it takes.
struct Shared {
    function: FunctionId,
    /// Locals that the pattern binds, in the order of the first parameters.
    locals: Vec<LocalId>,
    /// Variables from around the match, the other parameters.
    outer: Vec<VarId>,
}

struct Writer<'g, 'p> {
    goal: &'g Goal<'p>,
    /// How many ways lead to each part.
    ways: Vec<usize>,
    shared: Vec<Option<Shared>>,
}

impl Instance<'_, '_> {
    pub fn decide_and_write<'p>(&mut self, rows: Vec<Row<'p>>, goal: &Goal<'p>) -> Expr {
        let decision = self.decide(rows, &goal.span);
        let mut ways = vec![0; 2 * goal.bodies.len()];
        count_ways(&decision, goal, &mut ways);
        let shared = ways.iter().map(|_| None).collect();
        let mut writer = Writer { goal, ways, shared };
        self.write(&decision, &mut writer)
    }

    fn write(&mut self, decision: &Decision, writer: &mut Writer<'_, '_>) -> Expr {
        let span = writer.goal.span.clone();
        let ty = writer.goal.ty.clone();
        match decision {
            Decision::Arm { arm, binds } => self.write_part(Part::Body(*arm), binds, writer),
            Decision::Guard {
                arm,
                binds,
                otherwise,
            } => {
                let cond = Box::new(self.write_part(Part::Guard(*arm), binds, writer));
                let then = Box::new(self.write_part(Part::Body(*arm), binds, writer));
                let otherwise = Box::new(self.write(otherwise, writer));
                Expr {
                    kind: ExprKind::If {
                        cond,
                        then,
                        otherwise,
                    },
                    ty,
                    span,
                }
            }
            Decision::Tuple { var, parts, rest } => {
                let body = self.write(rest, writer);
                let mut lets = Vec::new();
                for (index, part) in parts.iter().enumerate() {
                    if self.is_used(*part) {
                        let tuple = Box::new(self.read(*var, &span));
                        let ty = self.vars[part.0].ty.clone();
                        let kind = ExprKind::TupleGet { tuple, index };
                        lets.push((
                            *part,
                            Expr {
                                kind,
                                ty,
                                span: span.clone(),
                            },
                        ));
                    }
                }
                self.wrap(lets, body)
            }
            Decision::Switch { var, ways } => {
                let scrutinee = Box::new(self.read(*var, &span));
                let mut arms = Vec::new();
                for (constructor, (fields, decision)) in ways.iter().enumerate() {
                    let body = self.write(decision, writer);
                    let fields = fields
                        .iter()
                        .map(|field| self.is_used(*field).then_some(*field))
                        .collect();
                    arms.push(Arm {
                        constructor,
                        fields,
                        body,
                    });
                }
                Expr {
                    kind: ExprKind::Match { scrutinee, arms },
                    ty,
                    span,
                }
            }
            Decision::Test {
                var,
                literal,
                then,
                otherwise,
            } => {
                let value = self.read(*var, &span);
                let cond = Box::new(equals(value, *literal));
                let then = Box::new(self.write(then, writer));
                let otherwise = Box::new(self.write(otherwise, writer));
                Expr {
                    kind: ExprKind::If {
                        cond,
                        then,
                        otherwise,
                    },
                    ty,
                    span,
                }
            }
            Decision::Nothing => {
                self.report(
                    Diagnostic::error("E0707", "this match cannot be compiled")
                        .at(&span, "too many ways lead through it")
                        .note("match on one value after the other instead of on all at once"),
                );
                self.placeholder(ty, &span)
            }
        }
    }

    fn is_used(&self, var: VarId) -> bool {
        self.used.get(var.0).copied().unwrap_or(false)
    }

    fn write_part(
        &mut self,
        part: Part,
        binds: &[(LocalId, VarId)],
        writer: &mut Writer<'_, '_>,
    ) -> Expr {
        let ty = writer.goal.ty(part);
        let place = writer.goal.place(part);
        let Some(body) = writer.goal.expr(part) else {
            return self.placeholder(ty, &writer.goal.span);
        };
        if writer.ways.get(place).is_none_or(|ways| *ways < 2) || is_small(body) {
            let mut lets = Vec::new();
            for (local, var) in binds {
                self.bind_local(*local, *var, &mut lets);
            }
            let body = self.expr(body);
            return self.wrap(lets, body);
        }
        let shared = match writer.shared.get_mut(place).and_then(Option::take) {
            Some(shared) => shared,
            None => self.share(body, binds, &ty),
        };
        let mut args = Vec::new();
        for local in &shared.locals {
            let bound = binds
                .iter()
                .find(|(own, _)| own == local)
                .map(|(_, var)| *var);
            args.push(self.read(bound.unwrap_or_default(), &body.span));
        }
        for var in &shared.outer {
            args.push(self.read(*var, &body.span));
        }
        let kind = ExprKind::Call {
            function: shared.function,
            args,
        };
        if let Some(slot) = writer.shared.get_mut(place) {
            *slot = Some(shared);
        }
        Expr {
            kind,
            ty,
            span: body.span.clone(),
        }
    }

    /// Lets a local stand for a variable; a field of any length gets a length of its own by it.
    fn bind_local(&mut self, local: LocalId, var: VarId, lets: &mut Vec<(VarId, Expr)>) {
        let Some(declared) = self.source.locals.get(local) else {
            return;
        };
        let ty = self.ty(&declared.ty, &declared.span);
        let Some(own) = self.vars.get_mut(var.0) else {
            return;
        };
        if own.ty == ty {
            if is_anonymous(&own.name) && !declared.name.starts_with('#') {
                own.name.clone_from(&declared.name);
                own.span = declared.span.clone();
            }
            self.locals.insert(local, var);
        } else {
            let mut value = self.read(var, &declared.span);
            value.ty = ty;
            let bound = self.declare(local);
            lets.push((bound, value));
        }
    }

    /// Makes an arm a function of what its pattern binds and of what it uses from around it.
    fn share(&mut self, body: &hir::Expr, binds: &[(LocalId, VarId)], ty: &Type) -> Shared {
        let bound: Vec<(LocalId, VarId)> = binds
            .iter()
            .map(|(local, _)| (*local, self.declare(*local)))
            .collect();
        let used_before = self.used.clone();
        let lowered = self.expr(body);
        // What the function reads is no use by this one; the calls are.
        for (used, before) in self.used.iter_mut().zip(used_before) {
            *used = before;
        }
        let mut free = Free::default();
        free.expr(&lowered);
        let bound: Vec<(LocalId, VarId)> = bound
            .into_iter()
            .filter(|(_, var)| free.vars.contains(var))
            .collect();
        let outer: Vec<VarId> = free
            .vars
            .iter()
            .copied()
            .filter(|var| bound.iter().all(|(_, own)| own != var))
            .collect();
        let params = bound
            .iter()
            .map(|(_, var)| *var)
            .chain(outer.iter().copied())
            .collect();
        let name = self
            .mono
            .unique_name(&format!("{}.arm", self.signature.name.name));
        let function = self.mono.add_function(Function {
            name,
            params,
            result: ty.clone(),
            body: lowered,
            // Variables keep their places, so the function has all of them.
            vars: self.vars.clone(),
            span: body.span.clone(),
        });
        Shared {
            function,
            locals: bound.into_iter().map(|(local, _)| local).collect(),
            outer,
        }
    }
}

fn count_ways(decision: &Decision, goal: &Goal<'_>, ways: &mut [usize]) {
    let mut count = |part| {
        if let Some(count) = ways.get_mut(goal.place(part)) {
            *count += 1;
        }
    };
    match decision {
        Decision::Arm { arm, .. } => count(Part::Body(*arm)),
        Decision::Guard { arm, otherwise, .. } => {
            count(Part::Guard(*arm));
            count(Part::Body(*arm));
            count_ways(otherwise, goal, ways);
        }
        Decision::Tuple { rest, .. } => count_ways(rest, goal, ways),
        Decision::Switch { ways: branches, .. } => {
            branches
                .iter()
                .for_each(|(_, decision)| count_ways(decision, goal, ways));
        }
        Decision::Test {
            then, otherwise, ..
        } => {
            count_ways(then, goal, ways);
            count_ways(otherwise, goal, ways);
        }
        Decision::Nothing => {}
    }
}

/// Whether a body is as small as the call that would stand for it.
fn is_small(body: &hir::Expr) -> bool {
    let leaf = |expr: &hir::Expr| {
        matches!(
            expr.kind,
            Kind::Literal(_) | Kind::Local(_) | Kind::Param(_) | Kind::Dim(_)
        )
    };
    match &body.kind {
        Kind::Construct { fields: parts, .. }
        | Kind::Tuple(parts)
        | Kind::Array(parts)
        | Kind::Call { args: parts, .. } => parts.iter().all(leaf),
        _ => leaf(body),
    }
}

fn equals(value: Expr, literal: Literal) -> Expr {
    if matches!(literal, Literal::Bool(_)) {
        return value;
    }
    let span = value.span.clone();
    let ty = Type::Scalar(Elem::I32);
    let rhs = Box::new(Expr {
        kind: ExprKind::Literal(literal),
        ty,
        span: span.clone(),
    });
    let kind = ExprKind::Binary {
        op: Binary::Eq,
        lhs: Box::new(value),
        rhs,
    };
    Expr {
        kind,
        ty: Type::Scalar(Elem::Bool),
        span,
    }
}

fn is_anonymous(name: &str) -> bool {
    matches!(name, "value" | "part" | "field")
}

/// Variables that an expression reads and does not bind itself, by first use.
#[derive(Default)]
struct Free {
    vars: Vec<VarId>,
    bound: FxHashSet<VarId>,
}

impl Free {
    /// A variable is bound once in a function, so what is bound anywhere inside is bound.
    fn expr(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Var(var) if !self.bound.contains(var) && !self.vars.contains(var) => {
                self.vars.push(*var);
            }
            ExprKind::Let { var, .. } => {
                self.bound.insert(*var);
            }
            ExprKind::Match { arms, .. } => {
                self.bound
                    .extend(arms.iter().flat_map(|arm| arm.fields.iter().flatten()));
            }
            ExprKind::While { vars, .. } => self.bound.extend(vars),
            ExprKind::Map { closure, .. } | ExprKind::Fold { closure, .. } => {
                self.bound.extend(&closure.params);
            }
            _ => {}
        }
        for_each_child(expr, &mut |child| self.expr(child));
    }
}
