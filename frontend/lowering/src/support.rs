//! What the compiler refuses, because no pass can compile it yet.
//!
//! `stack` makes tensors for the entry's result, where they only pass through; nothing computes upon
//! them.

use cohort_frontend::Diagnostic;
use cohort_frontend::program::{
    Binary, Elem, Expr, ExprKind, Function, Program, Span, Type, VarId,
};
use rustc_hash::FxHashSet;

use crate::module::ENTRY;
use crate::numbers::is_safe_divisor;
use crate::types::{elem_of, instance_dims, known, shown};
use crate::walk::each_expr;

pub const UNSUPPORTED: &str = "E0900";
const INTERNAL: &str = "E0999";

/// More would not help anybody.
const MOST: usize = 20;

/// One diagnostic for each thing that is not supported yet.
pub fn refusals(program: &Program) -> Vec<Diagnostic> {
    let mut refusals = Refusals {
        program,
        found: Vec::new(),
    };
    refusals.params();
    refusals.entry();
    refusals.stacks();
    for function in &program.functions {
        each_expr(&function.body, |expr| {
            refusals.operation(expr);
            refusals.widening(function, expr);
        });
        if widens(&function.body.ty, &function.result) {
            let label = format!("this is `{}`", shown(&function.body.ty, program));
            let what = "a tensor of known shape as one whose shape differs by instance";
            refusals.refuse(what, &function.body.span, label);
        }
    }
    refusals.found.truncate(MOST);
    refusals.found
}

/// What to say when lowering made a module that does not verify: it is never the user's mistake.
pub fn invalid_module(program: &Program) -> Diagnostic {
    let message = "internal error: the program was lowered to an invalid module";
    Diagnostic::error(INTERNAL, message)
        .at(&program.functions[program.entry.0].span, "in this program")
        .note("this is a bug of the compiler; please report it with the program")
}

struct Refusals<'p> {
    program: &'p Program,
    found: Vec<Diagnostic>,
}

impl<'p> Refusals<'p> {
    fn refuse(&mut self, what: &str, span: &Span, label: impl Into<String>) {
        let message = format!("not supported yet: {what}");
        self.found
            .push(Diagnostic::error(UNSUPPORTED, message).at(span, label));
    }

    fn params(&mut self) {
        let clash = self.program.params.iter().find(|param| param.name == ENTRY);
        if let Some(param) = clash {
            self.refuse(
                "a parameter with the name of the entry",
                &param.span,
                "rename this",
            );
        }
    }

    fn operation(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Gather { .. } => {
                let label = "the rows are chosen here";
                self.refuse("rows chosen by a tensor of indices", &expr.span, label);
            }
            ExprKind::Binary {
                op: Binary::Div | Binary::Rem,
                lhs,
                rhs,
            } if elem_of(&lhs.ty) == Elem::I32 && !is_safe_divisor(rhs) => {
                let label = "the divisor must be a literal other than 0 and -1";
                self.refuse("division of integer tensors by a tensor", &rhs.span, label);
            }
            ExprKind::Binary {
                op: Binary::Pow,
                lhs,
                ..
            }
            | ExprKind::ScalarBinary {
                op: Binary::Pow,
                lhs,
                ..
            } if elem_of(&lhs.ty) == Elem::I32 => {
                self.refuse("powers of integers", &expr.span, "convert to f32 first");
            }
            _ => {}
        }
    }

    /// Arithmetic of instance dims in what an instance is given.
    fn entry(&mut self) {
        let entry = &self.program.functions[self.program.entry.0];
        for param in &entry.params {
            let var = &entry.vars[param.0];
            let is_name = |name: &&str| name.chars().all(|c| c.is_alphanumeric() || c == '_');
            if !instance_dims(&var.ty).iter().all(is_name) {
                let label = format!("this is `{}`", shown(&var.ty, self.program));
                let what = "arithmetic of the lengths of an instance's tensors";
                self.refuse(what, &var.span, label);
            }
        }
    }

    /// A value whose shape is known where its shape may differ by instance.
    fn widening(&mut self, function: &Function, expr: &Expr) {
        let program = self.program;
        let mut given: Vec<(&Expr, &Type)> = Vec::new();
        match &expr.kind {
            ExprKind::Call {
                function: callee,
                args,
            } => {
                let callee = &program.functions[callee.0];
                let types = callee.params.iter().map(|var| &callee.vars[var.0].ty);
                given.extend(args.iter().zip(types));
            }
            ExprKind::Construct {
                adt,
                constructor,
                fields,
            } => {
                let types = &program.adts[adt.0].constructors[*constructor].fields;
                given.extend(fields.iter().zip(types));
            }
            ExprKind::If {
                then, otherwise, ..
            } => given.extend([(&**then, &expr.ty), (otherwise, &expr.ty)]),
            ExprKind::Match { arms, .. } => {
                given.extend(arms.iter().map(|arm| (&arm.body, &expr.ty)));
            }
            ExprKind::Let { var, value, .. } => {
                given.push((value, &function.vars[var.0].ty));
            }
            ExprKind::While { vars, init, .. } => {
                let types = vars.iter().map(|var| &function.vars[var.0].ty);
                given.extend(init.iter().zip(types));
            }
            ExprKind::Fold { init, closure, .. } => {
                given.extend([(&**init, &expr.ty), (&*closure.body, &expr.ty)]);
            }
            ExprKind::Array(elements) => {
                if let Type::Array(element) = &expr.ty {
                    given.extend(elements.iter().map(|value| (value, &**element)));
                }
            }
            ExprKind::Push { value, .. } => {
                if let Type::Array(element) = &expr.ty {
                    given.push((value, element));
                }
            }
            _ => {}
        }
        for (value, expected) in given {
            if widens(&value.ty, expected) {
                let label = format!("this is `{}`", shown(&value.ty, program));
                let what = "a tensor of known shape as one whose shape differs by instance";
                self.refuse(what, &value.span, label);
            }
        }
    }

    /// Tensors stacked from the elements of an array, which only pass through.
    fn stacks(&mut self) {
        let program = self.program;
        let entry = &program.functions[program.entry.0];
        let (allowed, stacked) = passing_through(entry);
        let mut used: Vec<&Expr> = Vec::new();
        for function in &program.functions {
            let is_entry = std::ptr::eq(function, entry);
            each_expr(&function.body, |expr| {
                let is_stack = match &expr.kind {
                    ExprKind::Stack(_) => true,
                    ExprKind::Var(var) => is_entry && stacked.contains(var),
                    _ => false,
                };
                if is_stack && !allowed.contains(&std::ptr::from_ref(expr)) {
                    used.push(expr);
                }
            });
        }
        for expr in used {
            let what = "computing with a tensor made by `stack`";
            let label = format!("this is `{}`", shown(&expr.ty, program));
            self.refuse(what, &expr.span, label);
            if let Some(last) = self.found.pop() {
                let note = "it may only be part of the result of `main` as it is";
                self.found.push(last.note(note));
            }
        }
    }
}

/// Whether a tensor in one type has a known length where the other has an instance dim.
fn widens(from: &Type, to: &Type) -> bool {
    match (from, to) {
        (Type::Tensor { shape: from, .. }, Type::Tensor { shape: to, .. }) => from
            .iter()
            .zip(to)
            .any(|(from, to)| known(from).is_some() != known(to).is_some()),
        (Type::Tuple(from), Type::Tuple(to)) => {
            from.iter().zip(to).any(|(from, to)| widens(from, to))
        }
        (Type::Array(from), Type::Array(to)) => widens(from, to),
        _ => false,
    }
}

/// The entry's expressions through which a `stack` reaches the result as it is, and the variables
/// that hold one on the way.
fn passing_through(entry: &Function) -> (FxHashSet<*const Expr>, FxHashSet<VarId>) {
    let mut allowed = FxHashSet::default();
    let mut stacked = FxHashSet::default();
    let mut pending = vec![&entry.body];
    while let Some(expr) = pending.pop() {
        allowed.insert(std::ptr::from_ref(expr));
        match &expr.kind {
            ExprKind::Let { var, value, body } => {
                if holds_stack(value, &stacked) {
                    stacked.insert(*var);
                }
                // The value last, so that variables are known before they are used.
                pending.extend([&**value, body]);
            }
            ExprKind::Phase(body) => pending.push(body),
            ExprKind::Tuple(elements) => pending.extend(elements),
            ExprKind::TupleGet { tuple, .. } => pending.push(tuple),
            ExprKind::Stack(_) | ExprKind::Var(_) => {}
            // Anything else computes, or decides between two shapes.
            _ => {
                allowed.remove(&std::ptr::from_ref(expr));
            }
        }
    }
    (allowed, stacked)
}

/// Whether a value is a `stack`, or has one as a part.
fn holds_stack(expr: &Expr, stacked: &FxHashSet<VarId>) -> bool {
    match &expr.kind {
        ExprKind::Stack(_) => true,
        ExprKind::Var(var) => stacked.contains(var),
        ExprKind::Let { body, .. } | ExprKind::Phase(body) => holds_stack(body, stacked),
        ExprKind::Tuple(elements) => elements.iter().any(|part| holds_stack(part, stacked)),
        ExprKind::TupleGet { tuple, .. } => holds_stack(tuple, stacked),
        _ => false,
    }
}
