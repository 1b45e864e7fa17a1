//! What the compiler refuses, because no pass can compile it yet.

use cohort_frontend::Diagnostic;
use cohort_frontend::program::{Binary, Dim, Elem, Expr, ExprKind, Function, Program, Span, Type};

use crate::module::ENTRY;
use crate::numbers::is_safe_divisor;
use crate::types::{elem_of, instance_dims, known, shape_of, shown};
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
    for function in &program.functions {
        each_expr(&function.body, |expr| {
            refusals.operation(expr);
            refusals.rows(expr);
            if let ExprKind::Reshape(value) = &expr.kind {
                refusals.reshape(expr, value);
            }
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

    /// What has rows whose lengths differ by instance, one behind another.
    fn rows(&mut self, expr: &Expr) {
        let (axis, what) = match &expr.kind {
            ExprKind::Stack(_) => (0, "a stack of tensors"),
            ExprKind::Concat { values, axis } if values.len() > 1 => (*axis, "a concatenation"),
            _ => return,
        };
        let shape = shape_of(&expr.ty);
        if known(&shape[axis]).is_some() {
            return;
        }
        let label = format!("this is `{}`", shown(&expr.ty, self.program));
        if axis > 0 {
            let what = "a concatenation along another axis than the first where its length differs by instance";
            self.refuse(what, &expr.span, label);
            self.help("transpose, concatenate with `axis = 0`, and transpose back");
        } else if shape[1..].iter().any(|dim| known(dim).is_none()) {
            let what = format!("{what} of which several lengths differ by instance");
            self.refuse(&what, &expr.span, label);
        }
    }

    /// A dim that is joined with others, or split from them, where a length of these differs by
    /// instance.
    fn reshape(&mut self, expr: &Expr, value: &Expr) {
        let own = |ty: &Type| {
            let mut shape = shape_of(ty);
            shape.retain(|dim| known(dim) != Some(1));
            shape
        };
        let (from, to) = (own(&value.ty), own(&expr.ty));
        let lengths = |shape: &[Dim]| -> Vec<Dim> {
            let unknown = shape.iter().filter(|dim| known(dim).is_none());
            unknown.cloned().collect()
        };
        if lengths(&from) != lengths(&to) {
            let label = format!("this is `{}`", shown(&expr.ty, self.program));
            let what = format!(
                "a reshape of `{}` that joins or splits a length that differs by instance",
                shown(&value.ty, self.program)
            );
            self.refuse(&what, &expr.span, label);
            self.help("reductions and products take one axis at a time: `sum(x)` needs no reshape");
        }
    }

    /// Adds how to mend it to what was refused last.
    fn help(&mut self, note: &str) {
        if let Some(last) = self.found.pop() {
            self.found.push(last.note(note));
        }
    }
}

/// Whether a value of one type cannot become one of another by copying tensors whose shape is known to
/// where they may have any.
fn widens(from: &Type, to: &Type) -> bool {
    match (from, to) {
        (Type::Tensor { shape: from, .. }, Type::Tensor { shape: to, .. }) => from
            .iter()
            .zip(to)
            .any(|(from, to)| known(from).is_none() && known(to).is_some()),
        (Type::Tuple(from), Type::Tuple(to)) => {
            from.iter().zip(to).any(|(from, to)| widens(from, to))
        }
        (Type::Array(from), Type::Array(to)) => differs(from, to),
        _ => false,
    }
}

/// Whether a tensor in one type has a known length where the other has an instance dim.
fn differs(from: &Type, to: &Type) -> bool {
    match (from, to) {
        (Type::Tensor { shape: from, .. }, Type::Tensor { shape: to, .. }) => from
            .iter()
            .zip(to)
            .any(|(from, to)| known(from).is_some() != known(to).is_some()),
        (Type::Tuple(from), Type::Tuple(to)) => {
            from.iter().zip(to).any(|(from, to)| differs(from, to))
        }
        (Type::Array(from), Type::Array(to)) => differs(from, to),
        _ => false,
    }
}
