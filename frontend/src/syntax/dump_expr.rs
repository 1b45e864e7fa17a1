//! Expressions of the syntax tree as text.

use super::ast::{Arg, Expr, ExprKind, IndexArg, LoopVar, Statement, UnaryOp};
use super::dump::{dump_pattern, dump_type};

fn new_line(text: &mut String, indent: usize) {
    text.push('\n');
    text.push_str(&"  ".repeat(indent));
}

/// A body in braces.
pub fn braced(text: &mut String, indent: usize, body: &Expr) {
    text.push('{');
    new_line(text, indent + 1);
    if let ExprKind::Block { statements, result } = &body.kind {
        for statement in statements {
            let Statement::Let(binding) = statement else {
                text.push_str("phase;");
                new_line(text, indent + 1);
                continue;
            };
            text.push_str("let ");
            text.push_str(&dump_pattern(&binding.pattern));
            if let Some(ty) = &binding.ty {
                text.push_str(": ");
                text.push_str(&dump_type(ty));
            }
            text.push_str(" = ");
            full(text, indent + 1, &binding.value);
            text.push(';');
            new_line(text, indent + 1);
        }
        full(text, indent + 1, result);
    } else {
        full(text, indent + 1, body);
    }
    new_line(text, indent);
    text.push('}');
}

/// An expression where blocks and branches need no parentheses.
fn full(text: &mut String, indent: usize, expr: &Expr) {
    match &expr.kind {
        ExprKind::Block { .. } => braced(text, indent, expr),
        ExprKind::If {
            cond,
            then,
            otherwise,
        } => {
            text.push_str("if ");
            operand(text, indent, cond);
            text.push(' ');
            braced(text, indent, then);
            text.push_str(" else ");
            braced(text, indent, otherwise);
        }
        ExprKind::Match { scrutinee, arms } => {
            text.push_str("match ");
            operand(text, indent, scrutinee);
            text.push_str(" {");
            for arm in arms {
                new_line(text, indent + 1);
                text.push_str(&dump_pattern(&arm.pattern));
                if let Some(guard) = &arm.guard {
                    text.push_str(" if ");
                    operand(text, indent + 1, guard);
                }
                text.push_str(" => ");
                full(text, indent + 1, &arm.body);
                text.push(',');
            }
            new_line(text, indent);
            text.push('}');
        }
        ExprKind::While { cond, vars, body } => {
            text.push_str("while ");
            operand(text, indent, cond);
            loop_vars(text, indent, vars);
            braced(text, indent, body);
        }
        ExprKind::For {
            pattern,
            array,
            vars,
            body,
        } => {
            text.push_str("for ");
            text.push_str(&dump_pattern(pattern));
            text.push_str(" in ");
            operand(text, indent, array);
            loop_vars(text, indent, vars);
            braced(text, indent, body);
        }
        _ => operand(text, indent, expr),
    }
}

fn loop_vars(text: &mut String, indent: usize, vars: &[LoopVar]) {
    text.push_str(" with (");
    separated(text, vars, |text, var| {
        text.push_str(&var.name.name);
        if let Some(ty) = &var.ty {
            text.push_str(": ");
            text.push_str(&dump_type(ty));
        }
        text.push_str(" = ");
        full(text, indent, &var.init);
    });
    text.push_str(") ");
}

fn separated<T>(text: &mut String, parts: &[T], mut write: impl FnMut(&mut String, &T)) {
    for (index, part) in parts.iter().enumerate() {
        if index > 0 {
            text.push_str(", ");
        }
        write(text, part);
    }
}

/// An expression on its own, as the value of a constant.
pub fn inline(expr: &Expr) -> String {
    let mut text = String::new();
    operand(&mut text, 0, expr);
    text
}

/// An expression that may stand within another.
fn operand(text: &mut String, indent: usize, expr: &Expr) {
    match &expr.kind {
        ExprKind::Int(value) => text.push_str(&value.to_string()),
        ExprKind::Float(value) => text.push_str(&format!("{value:?}")),
        ExprKind::Text(value) => text.push_str(&format!("{value:?}")),
        ExprKind::Bool(value) => text.push_str(&value.to_string()),
        ExprKind::Name(name) => text.push_str(&name.name),
        ExprKind::Call { name, args } => {
            text.push_str(&name.name);
            text.push('(');
            separated(text, args, |text, arg| argument(text, indent, arg));
            text.push(')');
        }
        ExprKind::Index { value, indices } => {
            operand(text, indent, value);
            text.push('[');
            separated(text, indices, |text, index| match index {
                IndexArg::At(value) => full(text, indent, value),
                IndexArg::Range { start, end, .. } => {
                    start.iter().for_each(|start| operand(text, indent, start));
                    text.push_str("..");
                    end.iter().for_each(|end| operand(text, indent, end));
                }
            });
            text.push(']');
        }
        ExprKind::Field { value, name } => {
            operand(text, indent, value);
            text.push('.');
            text.push_str(&name.name);
        }
        ExprKind::Unary { op, value } => {
            text.push_str(match op {
                UnaryOp::Neg => "(-",
                UnaryOp::Not => "(!",
            });
            operand(text, indent, value);
            text.push(')');
        }
        ExprKind::Binary { op, lhs, rhs, .. } => {
            text.push('(');
            operand(text, indent, lhs);
            text.push_str(&format!(" {} ", op.symbol()));
            operand(text, indent, rhs);
            text.push(')');
        }
        ExprKind::Tuple(parts) => {
            text.push('(');
            separated(text, parts, |text, part| full(text, indent, part));
            text.push(')');
        }
        ExprKind::Array(elements) => {
            text.push('[');
            separated(text, elements, |text, element| full(text, indent, element));
            text.push(']');
        }
        ExprKind::Error => text.push('?'),
        ExprKind::Block { .. }
        | ExprKind::If { .. }
        | ExprKind::Match { .. }
        | ExprKind::While { .. }
        | ExprKind::For { .. } => {
            text.push('(');
            full(text, indent, expr);
            text.push(')');
        }
    }
}

fn argument(text: &mut String, indent: usize, arg: &Arg) {
    match arg {
        Arg::Value(value) => full(text, indent, value),
        Arg::Named(name, value) => {
            text.push_str(&name.name);
            text.push_str(" = ");
            full(text, indent, value);
        }
        Arg::Closure(closure) => {
            text.push('|');
            separated(text, &closure.params, |text, param| {
                text.push_str(&dump_pattern(param))
            });
            text.push_str("| ");
            full(text, indent, &closure.body);
        }
    }
}
