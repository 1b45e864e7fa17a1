//! Expressions of the typed program as indented text.

use std::fmt::Write;

use super::show_type;
use crate::program::{Closure, Expr, ExprKind, Function, Literal, Program, VarId};

/// Writes a function's body, indented once.
pub fn body(text: &mut String, program: &Program, function: &Function) {
    let mut dump = Dump {
        text,
        program,
        function,
    };
    dump.line(1, &function.body);
}

struct Dump<'a> {
    text: &'a mut String,
    program: &'a Program,
    function: &'a Function,
}

impl Dump<'_> {
    fn var(&self, var: VarId) -> String {
        match self.function.vars.get(var.0) {
            Some(declared) => format!("{}%{}", declared.name, var.0),
            None => format!("?%{}", var.0),
        }
    }

    fn typed(&self, var: VarId) -> String {
        let ty = self
            .function
            .vars
            .get(var.0)
            .map(|var| show_type(&var.ty, &self.program.adts));
        format!("{}: {}", self.var(var), ty.unwrap_or_default())
    }

    fn vars(&self, vars: &[VarId]) -> String {
        vars.iter()
            .map(|var| self.typed(*var))
            .collect::<Vec<_>>()
            .join(", ")
    }

    fn write(&mut self, indent: usize, line: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{}{line}", "  ".repeat(indent));
    }

    /// One line for what fits on one, else a head and its parts below.
    fn line(&mut self, indent: usize, expr: &Expr) {
        match &expr.kind {
            ExprKind::Let { var, value, body } => {
                self.named(indent, &format!("let {} =", self.typed(*var)), value);
                self.line(indent, body);
            }
            ExprKind::Length { name, count, body } => {
                self.named(indent, &format!("length {name} ="), count);
                self.line(indent, body);
            }
            ExprKind::Phase(body) => {
                self.write(indent, "phase");
                self.line(indent, body);
            }
            ExprKind::Match { scrutinee, arms } => {
                self.named(indent, "match", scrutinee);
                for arm in arms {
                    let fields: Vec<String> = arm
                        .fields
                        .iter()
                        .map(|field| field.map_or_else(|| "_".to_owned(), |var| self.var(var)))
                        .collect();
                    let name = self.constructor(scrutinee, arm.constructor);
                    self.write(indent + 1, &format!("{name}({}) =>", fields.join(", ")));
                    self.line(indent + 2, &arm.body);
                }
            }
            ExprKind::If {
                cond,
                then,
                otherwise,
            } => {
                self.named(indent, "if", cond);
                self.write(indent, "then");
                self.line(indent + 1, then);
                self.write(indent, "else");
                self.line(indent + 1, otherwise);
            }
            ExprKind::While {
                vars,
                init,
                cond,
                body,
            } => {
                self.write(indent, &format!("while ({})", self.vars(vars)));
                for init in init {
                    self.named(indent + 1, "from", init);
                }
                self.named(indent + 1, "holds", cond);
                self.write(indent + 1, "next");
                self.line(indent + 2, body);
            }
            ExprKind::Map { arrays, closure } => {
                self.write(indent, "map");
                for array in arrays {
                    self.named(indent + 1, "over", array);
                }
                self.closure(indent + 1, closure);
            }
            ExprKind::Fold {
                array,
                init,
                closure,
            } => {
                self.write(indent, "fold");
                self.named(indent + 1, "over", array);
                self.named(indent + 1, "from", init);
                self.closure(indent + 1, closure);
            }
            _ => match self.short(expr) {
                Some(short) => self.write(indent, &short),
                None => {
                    let ty = show_type(&expr.ty, &self.program.adts);
                    let (name, parts) = self.head(expr);
                    self.write(indent, &format!("{name} : {ty}"));
                    for part in parts {
                        self.line(indent + 1, part);
                    }
                }
            },
        }
    }

    fn named(&mut self, indent: usize, name: &str, expr: &Expr) {
        match self.short(expr) {
            Some(short) => self.write(indent, &format!("{name} {short}")),
            None => {
                self.write(indent, name);
                self.line(indent + 1, expr);
            }
        }
    }

    fn closure(&mut self, indent: usize, closure: &Closure) {
        self.write(indent, &format!("|{}|", self.vars(&closure.params)));
        self.line(indent + 1, &closure.body);
    }

    fn constructor(&self, scrutinee: &Expr, constructor: usize) -> String {
        match &scrutinee.ty {
            crate::program::Type::Adt(adt) => self.constructor_name(adt.0, constructor),
            _ => "?".to_owned(),
        }
    }

    fn constructor_name(&self, adt: usize, constructor: usize) -> String {
        let adt = self.program.adts.get(adt);
        let constructor = adt.and_then(|adt| adt.constructors.get(constructor));
        constructor.map_or_else(|| "?".to_owned(), |constructor| constructor.name.clone())
    }

    /// An expression on one line, if it is small.
    fn short(&self, expr: &Expr) -> Option<String> {
        match &expr.kind {
            ExprKind::Literal(Literal::F32(value)) => return Some(format!("{value:?}")),
            ExprKind::Literal(Literal::I32(value)) => return Some(value.to_string()),
            ExprKind::Literal(Literal::Bool(value)) => return Some(value.to_string()),
            ExprKind::Var(var) => return Some(self.var(*var)),
            ExprKind::Param(param) => {
                return self
                    .program
                    .params
                    .get(param.0)
                    .map(|param| format!("@{}", param.name));
            }
            ExprKind::Let { .. }
            | ExprKind::Phase(_)
            | ExprKind::Length { .. }
            | ExprKind::Match { .. }
            | ExprKind::If { .. }
            | ExprKind::While { .. }
            | ExprKind::Map { .. }
            | ExprKind::Fold { .. } => return None,
            _ => {}
        }
        let (name, parts) = self.head(expr);
        let parts: Option<Vec<String>> = parts.into_iter().map(|part| self.short(part)).collect();
        let text = format!("{name}({})", parts?.join(", "));
        (text.len() <= 80).then_some(text)
    }

    /// The name of an operation with its attributes, and its operands.
    fn head<'e>(&self, expr: &'e Expr) -> (String, Vec<&'e Expr>) {
        let name = |name: &str| name.to_owned();
        match &expr.kind {
            ExprKind::Tuple(parts) => (String::new(), parts.iter().collect()),
            ExprKind::TupleGet { tuple, index } => (format!("get {index} "), vec![tuple]),
            ExprKind::Construct {
                adt,
                constructor,
                fields,
            } => (
                self.constructor_name(adt.0, *constructor),
                fields.iter().collect(),
            ),
            ExprKind::Call { function, args } => {
                let callee = self.program.functions.get(function.0);
                let callee = callee.map_or_else(|| "?".to_owned(), |f| f.name.clone());
                (format!("call {callee}"), args.iter().collect())
            }
            ExprKind::Array(elements) => (name("array"), elements.iter().collect()),
            ExprKind::Len(value) => (name("len"), vec![value]),
            ExprKind::Index { array, index } => (name("index"), vec![array, index]),
            ExprKind::Push { array, value } => (name("push"), vec![array, value]),
            ExprKind::Reverse(value) => (name("reverse"), vec![value]),
            ExprKind::Range(value) => (name("range"), vec![value]),
            ExprKind::Sum(value) => (name("sum"), vec![value]),
            ExprKind::Stack(value) => (name("stack"), vec![value]),
            ExprKind::ScalarUnary { op, value } => (lower("host", op), vec![value]),
            ExprKind::ScalarBinary { op, lhs, rhs } => (lower("host", op), vec![lhs, rhs]),
            ExprKind::ScalarCast(value) => {
                (format!("host.to_{}", show_type(&expr.ty, &[])), vec![value])
            }
            ExprKind::Lift(value) => (name("lift"), vec![value]),
            ExprKind::Force(value) => (name("force"), vec![value]),
            ExprKind::Unary { op, value } => (lower("", op), vec![value]),
            ExprKind::Binary { op, lhs, rhs } => (lower("", op), vec![lhs, rhs]),
            ExprKind::Select {
                cond,
                then,
                otherwise,
            } => (name("select"), vec![cond, then, otherwise]),
            ExprKind::Cast(value) => (name("cast"), vec![value]),
            ExprKind::Fill(value) => (format!("fill {}", show_type(&expr.ty, &[])), vec![value]),
            ExprKind::MatMul { lhs, rhs } => (name("matmul"), vec![lhs, rhs]),
            ExprKind::Reduce { op, value, axis } => {
                (format!("{} axis={axis}", lower("reduce", op)), vec![value])
            }
            ExprKind::ArgMax { value, axis } => (format!("argmax axis={axis}"), vec![value]),
            ExprKind::Softmax { value, axis } => (format!("softmax axis={axis}"), vec![value]),
            ExprKind::CumSum { value, axis } => (format!("cumsum axis={axis}"), vec![value]),
            ExprKind::Sort {
                value,
                axis,
                order,
                part,
            } => {
                let (order, part) = (lower("sort", order), lower("", part));
                (format!("{order} {part} axis={axis}"), vec![value])
            }
            ExprKind::SegmentSum { values, segments } => {
                (name("segment_sum"), vec![values, segments])
            }
            ExprKind::Scatter {
                value,
                indices,
                rows,
            } => (name("scatter"), vec![value, indices, rows]),
            ExprKind::Slice {
                value,
                axis,
                start,
                length,
            } => {
                let end = start.saturating_add(*length);
                (format!("slice axis={axis} {start}..{end}"), vec![value])
            }
            ExprKind::Concat { values, axis } => {
                (format!("concat axis={axis}"), values.iter().collect())
            }
            ExprKind::Reshape(value) => {
                (format!("reshape {}", show_type(&expr.ty, &[])), vec![value])
            }
            ExprKind::CheckShape(value) => {
                (format!("check {}", show_type(&expr.ty, &[])), vec![value])
            }
            ExprKind::Transpose { value, permutation } => {
                (format!("transpose {permutation:?}"), vec![value])
            }
            ExprKind::Row { table, index } => (name("row"), vec![table, index]),
            ExprKind::Gather { table, indices } => (name("gather"), vec![table, indices]),
            ExprKind::DimSize { value, axis } => (format!("dim axis={axis}"), vec![value]),
            ExprKind::Iota { axis } => (
                format!("iota {} axis={axis}", show_type(&expr.ty, &[])),
                Vec::new(),
            ),
            ExprKind::Random { counter } => (name("random"), vec![counter]),
            ExprKind::Text(text) => (format!("text {text:?}"), vec![]),
            ExprKind::SameText { lhs, rhs } => (name("same_text"), vec![lhs, rhs]),
            ExprKind::Debug { text, value } => (format!("debug {text:?}"), vec![value]),
            ExprKind::Literal(_)
            | ExprKind::Var(_)
            | ExprKind::Param(_)
            | ExprKind::Let { .. }
            | ExprKind::Phase(_)
            | ExprKind::Length { .. }
            | ExprKind::Match { .. }
            | ExprKind::If { .. }
            | ExprKind::While { .. }
            | ExprKind::Map { .. }
            | ExprKind::Fold { .. } => (String::new(), Vec::new()),
        }
    }
}

/// `host.add` for a host operation, `add` for a tensor's.
fn lower(prefix: &str, op: &impl std::fmt::Debug) -> String {
    let op = format!("{op:?}").to_lowercase();
    if prefix.is_empty() {
        op
    } else {
        format!("{prefix}.{op}")
    }
}
