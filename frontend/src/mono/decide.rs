//! Nested patterns become decisions, one level at a time.
//!
//! Rows of tests on variables stand for the arms. The first test of the first row picks a variable;
//! a decision on it splits the rows by constructor, and so on until the first row has no test left.

use super::function::Instance;
use crate::hir::{LocalId, Pattern, PatternKind};
use crate::program::{Elem, Literal, Span, Type, VarId};
use crate::types::Ty;

/// One arm: what must hold for it, and the locals it binds so far.
#[derive(Clone)]
pub struct Row<'p> {
    tests: Vec<(VarId, &'p Pattern)>,
    binds: Vec<(LocalId, VarId)>,
    arm: usize,
    /// Whether the arm has a guard, so that it may not be taken although its tests hold.
    guarded: bool,
}

impl<'p> Row<'p> {
    pub fn new(arm: usize, guarded: bool, tests: Vec<(VarId, &'p Pattern)>) -> Self {
        Row {
            tests,
            binds: Vec::new(),
            arm,
            guarded,
        }
    }
}

/// What to look at, and what is known at the end.
pub enum Decision {
    Arm {
        arm: usize,
        binds: Vec<(LocalId, VarId)>,
    },
    /// An arm that is taken if its guard holds.
    Guard {
        arm: usize,
        binds: Vec<(LocalId, VarId)>,
        otherwise: Box<Decision>,
    },
    /// Takes a tuple apart.
    Tuple {
        var: VarId,
        parts: Vec<VarId>,
        rest: Box<Decision>,
    },
    /// One way a constructor, with variables for its fields.
    Switch {
        var: VarId,
        ways: Vec<(Vec<VarId>, Decision)>,
    },
    /// Whether an integer is this one, or a `bool` true.
    Test {
        var: VarId,
        literal: Literal,
        then: Box<Decision>,
        otherwise: Box<Decision>,
    },
    /// No arm is left, or there are too many ways: neither gets out.
    Nothing,
}

impl Instance<'_, '_> {
    pub fn decide(&mut self, rows: Vec<Row<'_>>, span: &Span) -> Decision {
        if !self.mono.count_expression(span) {
            return Decision::Nothing;
        }
        let mut rows: Vec<Row<'_>> = rows.into_iter().map(settle).collect();
        let (var, pattern) = loop {
            let Some(first) = rows.first() else {
                return Decision::Nothing;
            };
            let Some((var, pattern)) = first.tests.first().copied() else {
                let (arm, guarded, binds) = (first.arm, first.guarded, first.binds.clone());
                if !guarded {
                    return Decision::Arm { arm, binds };
                }
                rows.remove(0);
                let otherwise = Box::new(self.decide(rows, span));
                return Decision::Guard {
                    arm,
                    binds,
                    otherwise,
                };
            };
            if !rows.iter().any(|row| chooses(row, var)) {
                break (var, pattern);
            }
            rows = rows.into_iter().flat_map(|row| choices(row, var)).collect();
        };
        match &pattern.kind {
            PatternKind::Tuple(parts) => self.decide_tuple(rows, var, parts.len(), span),
            PatternKind::Construct { .. } => self.decide_adt(&rows, var, &pattern.ty, span),
            PatternKind::Int(value) => self.decide_literal(&rows, var, Literal::I32(*value), span),
            PatternKind::Bool(_) => self.decide_literal(&rows, var, Literal::Bool(true), span),
            PatternKind::Wildcard | PatternKind::Bind(_) | PatternKind::Or(_) => Decision::Nothing,
        }
    }

    fn decide_tuple(
        &mut self,
        rows: Vec<Row<'_>>,
        var: VarId,
        count: usize,
        span: &Span,
    ) -> Decision {
        let types = match self.vars.get(var.0).map(|var| &var.ty) {
            Some(Type::Tuple(types)) => types.clone(),
            _ => vec![Type::Scalar(Elem::I32); count],
        };
        let parts: Vec<VarId> = types
            .into_iter()
            .map(|ty| self.var("part", ty, span))
            .collect();
        let rows = rows
            .into_iter()
            .map(|row| expand(row, var, &parts))
            .collect();
        let rest = Box::new(self.decide(rows, span));
        Decision::Tuple { var, parts, rest }
    }

    fn decide_adt(&mut self, rows: &[Row<'_>], var: VarId, ty: &Ty, span: &Span) -> Decision {
        let checked = self.mono.checked;
        let Ty::Adt(adt, args) = ty else {
            return Decision::Nothing;
        };
        let Some(decl) = checked.items.types.get(*adt) else {
            return Decision::Nothing;
        };
        let mut ways = Vec::new();
        for (constructor, declared) in decl.constructors.iter().enumerate() {
            let mut fields = Vec::new();
            for field in &declared.fields {
                let ty = self.ty(&field.instantiate(args), span);
                fields.push(self.var("field", ty, span));
            }
            let matching = rows
                .iter()
                .filter_map(|row| specialise(row, var, constructor, &fields))
                .collect();
            let decision = self.decide(matching, span);
            ways.push((fields, decision));
        }
        Decision::Switch { var, ways }
    }

    fn decide_literal(
        &mut self,
        rows: &[Row<'_>],
        var: VarId,
        literal: Literal,
        span: &Span,
    ) -> Decision {
        let (mut equal, mut unequal) = (Vec::new(), Vec::new());
        for row in rows {
            let place = row.tests.iter().position(|(tested, _)| *tested == var);
            let tested = place
                .and_then(|place| row.tests.get(place))
                .map(|(_, p)| &p.kind);
            let without_test = || {
                let mut row = row.clone();
                row.tests.retain(|(tested, _)| *tested != var);
                row
            };
            match (tested, literal) {
                (Some(PatternKind::Int(own)), Literal::I32(value)) if *own == value => {
                    equal.push(without_test());
                }
                (Some(PatternKind::Int(_)), _) => unequal.push(row.clone()),
                (Some(PatternKind::Bool(true)), _) => equal.push(without_test()),
                (Some(PatternKind::Bool(false)), _) => unequal.push(without_test()),
                _ => {
                    equal.push(row.clone());
                    unequal.push(row.clone());
                }
            }
        }
        let then = Box::new(self.decide(equal, span));
        let otherwise = Box::new(self.decide(unequal, span));
        Decision::Test {
            var,
            literal,
            then,
            otherwise,
        }
    }
}

/// Moves tests that always succeed to the bindings.
fn settle(mut row: Row<'_>) -> Row<'_> {
    let tests = std::mem::take(&mut row.tests);
    for (var, pattern) in tests {
        match pattern.kind {
            PatternKind::Wildcard => {}
            PatternKind::Bind(local) => row.binds.push((local, var)),
            _ => row.tests.push((var, pattern)),
        }
    }
    row
}

/// Whether a row tests a variable by an or-pattern.
fn chooses(row: &Row<'_>, var: VarId) -> bool {
    let test = row.tests.iter().find(|(tested, _)| *tested == var);
    test.is_some_and(|(_, pattern)| matches!(pattern.kind, PatternKind::Or(_)))
}

/// One row for each alternative of an or-pattern that tests the variable.
fn choices(row: Row<'_>, var: VarId) -> Vec<Row<'_>> {
    let place = row.tests.iter().position(|(tested, _)| *tested == var);
    let Some(place) = place.filter(|_| chooses(&row, var)) else {
        return vec![row];
    };
    let alternatives = row.tests[place].1.alternatives();
    let with = |alternative| {
        let mut row = row.clone();
        row.tests[place].1 = alternative;
        settle(row)
    };
    alternatives.into_iter().map(with).collect()
}

/// The row with a test on a tuple replaced by tests on its parts.
fn expand<'p>(mut row: Row<'p>, var: VarId, parts: &[VarId]) -> Row<'p> {
    let Some(place) = row.tests.iter().position(|(tested, _)| *tested == var) else {
        return row;
    };
    let (_, pattern) = row.tests.remove(place);
    if let PatternKind::Tuple(patterns) = &pattern.kind {
        let tests: Vec<_> = parts.iter().copied().zip(patterns).collect();
        row.tests.splice(place..place, tests);
    }
    row
}

/// The row once the variable is known to be made by a constructor; `None` if it cannot match.
fn specialise<'p>(
    row: &Row<'p>,
    var: VarId,
    constructor: usize,
    fields: &[VarId],
) -> Option<Row<'p>> {
    let mut row = row.clone();
    let Some(place) = row.tests.iter().position(|(tested, _)| *tested == var) else {
        return Some(row);
    };
    let (_, pattern) = row.tests.remove(place);
    match &pattern.kind {
        PatternKind::Construct {
            constructor: own,
            fields: patterns,
            ..
        } => {
            if *own != constructor {
                return None;
            }
            let tests: Vec<_> = fields.iter().copied().zip(patterns).collect();
            row.tests.splice(place..place, tests);
            Some(row)
        }
        _ => Some(row),
    }
}
