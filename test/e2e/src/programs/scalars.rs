//! Forms of scalars, on the host and of tensors.

use super::types::{Elem, Ty};
use super::{Scope, Writer};

impl Writer<'_> {
    /// `f32`
    pub(super) fn number(&mut self, scope: &Scope, depth: usize) -> String {
        let x = self.expr(&Ty::F32, scope, depth - 1);
        match self.rng.below(if self.traits.extreme { 14 } else { 10 }) {
            0 => format!("f32({} % 7)", self.expr(&Ty::I32, scope, depth - 1)),
            1 => {
                let function = *self
                    .rng
                    .pick(&["tanh", "sigmoid", "relu", "abs", "sin", "cos", "erf"]);
                format!("{function}({x})")
            }
            2 => format!("(0.5 * {x} - 0.125)"),
            3 | 4 => {
                let y = self.expr(&Ty::F32, scope, depth - 1);
                match self.rng.below(5) {
                    0 => format!("max({x}, {y})"),
                    1 => format!("({x} / (1.0 + {y} * {y}))"),
                    2 => format!("({x} * tanh({y}))"),
                    3 => format!("({x} - {y})"),
                    _ => format!("({x} + {y})"),
                }
            }
            5 => {
                let shape = self.shape();
                let value = self.expr(&Ty::Tensor(Elem::F32, shape.clone()), scope, depth - 1);
                let count: Vec<String> = shape.iter().map(|dim| format!("f32({dim})")).collect();
                format!("(sum(tanh({value})) / (1.0 + {}))", count.join(" * "))
            }
            6 => {
                let shape = self.shape();
                let value = self.expr(&Ty::Tensor(Elem::F32, shape), scope, depth - 1);
                let reduction = *self.rng.pick(&["max", "min"]);
                format!("tanh(min(max({reduction}({value}), -2.0), 2.0))")
            }
            7 => {
                let (a, b) = (
                    self.expr(&Ty::f32(&["A"]), scope, depth - 1),
                    self.expr(&Ty::f32(&["A"]), scope, depth - 1),
                );
                format!("tanh({a} @ {b})")
            }
            8 => format!("{}[0]", self.leaf(&Ty::f32(&["B"]), scope)),
            9 => format!("sum({})", self.leaf(&Ty::Array(Box::new(Ty::F32)), scope)),
            10 => format!("log({x})"),
            11 => format!("exp(60.0 * {x})"),
            12 => format!("({x} / ({} - {x}))", self.leaf(&Ty::F32, scope)),
            _ => format!("sqrt({x})"),
        }
    }

    /// `i32`
    pub(super) fn integer(&mut self, scope: &Scope, depth: usize) -> String {
        let x = self.expr(&Ty::I32, scope, depth - 1);
        match self.rng.below(if self.traits.extreme { 14 } else { 12 }) {
            0 => self.literal(),
            1 | 2 => {
                let y = self.expr(&Ty::I32, scope, depth - 1);
                let operator = *self.rng.pick(&["+", "-", "*"]);
                format!("({x} {operator} {y})")
            }
            3 => {
                let operator = *self.rng.pick(&["/", "%"]);
                let by = *self.rng.pick(&["2", "3", "7", "-1", "-3", "2147483647"]);
                format!("({x} {operator} {by})")
            }
            4 => {
                let y = self.expr(&Ty::I32, scope, depth - 1);
                let function = *self.rng.pick(&["min", "max"]);
                format!("{function}({x}, {y})")
            }
            5 => format!("abs({x})"),
            6 => format!("(-{x})"),
            // Whether an error of the elements is met is left open where only their number is used.
            7 if !self.traits.errors => {
                let element = self.fixed_ty();
                format!(
                    "len({})",
                    self.expr(&Ty::Array(Box::new(element)), scope, depth - 1)
                )
            }
            7 | 8 => self.dim(),
            9 => {
                let (c, y) = (
                    self.expr(&Ty::Bool, scope, depth - 1),
                    self.expr(&Ty::I32, scope, depth - 1),
                );
                format!("select({c}, {x}, {y})")
            }
            10 => format!("sum({})", self.leaf(&Ty::Array(Box::new(Ty::I32)), scope)),
            11 => {
                let shape = self.shape();
                format!(
                    "sum({})",
                    self.expr(&Ty::Tensor(Elem::I32, shape), scope, depth - 1)
                )
            }
            12 => format!("i32({})", self.expr(&Ty::F32, scope, depth - 1)),
            _ => format!("argmax({})", self.expr(&Ty::f32(&["A"]), scope, depth - 1)),
        }
    }

    /// `bool`
    pub(super) fn truth(&mut self, scope: &Scope, depth: usize) -> String {
        match self.rng.below(6) {
            0 | 1 => {
                let (x, y) = (
                    self.expr(&Ty::I32, scope, depth - 1),
                    self.expr(&Ty::I32, scope, depth - 1),
                );
                let operator = *self.rng.pick(&["==", "!=", "<", "<=", ">", ">="]);
                format!("({x} {operator} {y})")
            }
            2 => {
                let (x, y) = (
                    self.expr(&Ty::Bool, scope, depth - 1),
                    self.expr(&Ty::Bool, scope, depth - 1),
                );
                let operator = *self.rng.pick(&["&&", "||", "=="]);
                format!("({x} {operator} {y})")
            }
            3 => format!("(!{})", self.expr(&Ty::Bool, scope, depth - 1)),
            5 => {
                let (x, y) = (
                    self.expr(&Ty::Str, scope, depth - 1),
                    self.expr(&Ty::Str, scope, depth - 1),
                );
                format!("({x} {} {y})", self.rng.pick(&["==", "!="]))
            }
            _ if self.traits.extreme && self.traits.decisions => {
                format!("({} > 0.5)", self.expr(&Ty::F32, scope, depth - 1))
            }
            _ => format!("({} % 2 == 0)", self.expr(&Ty::I32, scope, depth - 1)),
        }
    }

    pub(super) fn literal(&mut self) -> String {
        let small = ["0", "1", "2", "5", "-3"];
        let bounds = ["2147483647", "(-2147483647 - 1)", "65536", "-2147483647"];
        let is_small = !self.traits.integers || self.rng.below(2) == 0;
        self.rng
            .pick(if is_small { &small[..] } else { &bounds })
            .to_string()
    }

    /// The number of a dim.
    pub(super) fn dim(&mut self) -> String {
        let dims: &[&str] = if self.traits.ragged {
            &["n", "m", "A"]
        } else {
            &["A", "B"]
        };
        self.rng.pick(dims).to_string()
    }
}
