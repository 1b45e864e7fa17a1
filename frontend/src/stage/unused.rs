//! Leaves out what nothing uses: a name's value that is never read is not computed, and is not an error. What
//! shows a value, by itself or in a function that it calls, stays.

use rustc_hash::FxHashSet;

use super::walk::{for_each_child, for_each_child_mut};
use crate::program::{Expr, ExprKind, Literal, Program, VarId};

pub fn leave_out(program: &mut Program) {
    let showing = showing(program);
    for function in &mut program.functions {
        let mut used = FxHashSet::default();
        in_expr(&mut function.body, &showing, &mut used);
    }
}

/// `used` gets the variables that an expression reads, once what it does not need is gone.
fn in_expr(expr: &mut Expr, showing: &FxHashSet<usize>, used: &mut FxHashSet<VarId>) {
    if let ExprKind::Let { var, value, body } = &mut expr.kind {
        // Nothing but the body can read the variable.
        in_expr(body, showing, used);
        if used.contains(var) || shows(value, showing) {
            in_expr(value, showing, used);
        } else {
            let nothing = Expr {
                kind: ExprKind::Literal(Literal::Bool(false)),
                ty: body.ty.clone(),
                span: body.span.clone(),
            };
            let body = std::mem::replace(&mut **body, nothing);
            *expr = body;
        }
        return;
    }
    if let ExprKind::Var(var) = &expr.kind {
        used.insert(*var);
    }
    for_each_child_mut(expr, &mut |child| in_expr(child, showing, used));
}

/// The functions that show a value, or call one that does.
fn showing(program: &Program) -> FxHashSet<usize> {
    let mut found = FxHashSet::default();
    loop {
        let before = found.len();
        for (number, function) in program.functions.iter().enumerate() {
            if !found.contains(&number) && shows(&function.body, &found) {
                found.insert(number);
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

fn shows(expr: &Expr, showing: &FxHashSet<usize>) -> bool {
    let mut found = match &expr.kind {
        ExprKind::Debug { .. } => true,
        ExprKind::Call { function, .. } => showing.contains(&function.0),
        _ => false,
    };
    for_each_child(expr, &mut |child| found = found || shows(child, showing));
    found
}
