//! Forms of tensors of floats, integers and truth values.

use super::types::{Elem, Ty, is_instance, shape_text};
use super::{Scope, Writer};

/// The dims of the program.
const COLUMNS: [&str; 2] = ["A", "B"];

/// Functions of tensors of any lengths, which may be called with those of known ones.
pub(super) const ANY_LENGTH: &str = "any_length";
pub(super) const ANY_ROWS: &str = "any_rows";

impl Writer<'_> {
    /// `f32[…]` without computation, if there is such a thing.
    pub(super) fn plain_floats(&mut self, shape: &[&'static str], scope: &Scope) -> String {
        match *shape {
            [row] if is_instance(row) => {
                format!("{}[.., 0]", self.leaf(&Ty::f32(&[row, "A"]), scope))
            }
            [row, column] if is_instance(row) && is_instance(column) => {
                let (x, y) = (
                    self.leaf(&Ty::f32(&[row, "A"]), scope),
                    self.leaf(&Ty::f32(&[column, "A"]), scope),
                );
                format!("(0.3 * {x} @ transpose({y}))")
            }
            [row, column] if is_instance(row) => {
                let weight = self.param(&["A", column]);
                format!("({} @ {weight})", self.leaf(&Ty::f32(&[row, "A"]), scope))
            }
            [column, row] if is_instance(row) => {
                format!("transpose({})", self.plain_floats(&[row, column], scope))
            }
            _ => self.param(shape),
        }
    }

    /// `f32[…]`
    pub(super) fn floats(&mut self, shape: &[&'static str], scope: &Scope, depth: usize) -> String {
        let ty = Ty::f32(shape);
        let form = self.rng.below(if self.traits.extreme { 22 } else { 18 });
        if (8..18).contains(&form) {
            return match shape {
                [dim] => self.vector(dim, scope, depth),
                [row, column] => self.matrix(row, column, scope, depth),
                _ => self.leaf(&ty, scope),
            };
        }
        let x = self.expr(&ty, scope, depth - 1);
        match form {
            0 => {
                let function = *self
                    .rng
                    .pick(&["tanh", "sigmoid", "relu", "abs", "sin", "cos", "erf"]);
                format!("{function}({x})")
            }
            1 => match self.rng.below(3) {
                0 => format!("exp(-abs({x}))"),
                1 => format!("sqrt({x} * {x} + 0.25)"),
                _ => format!("log(1.5 + abs({x}))"),
            },
            2 | 3 => {
                let y = self.expr(&ty, scope, depth - 1);
                let operator = *self.rng.pick(&["+", "-", "*"]);
                format!("({x} {operator} {y})")
            }
            4 => {
                let y = self.expr(&ty, scope, depth - 1);
                match self.rng.below(4) {
                    0 => format!("max({x}, {y})"),
                    1 => format!("min({x}, {y})"),
                    2 => format!("({x} / (1.0 + {y} * {y}))"),
                    // Continuous where both are equal.
                    _ => format!("select({x} > {y}, {x} * 0.5, {y} * 0.5)"),
                }
            }
            5 => {
                let y = self.expr(&Ty::F32, scope, depth - 1);
                format!("({x} * tanh({y}))")
            }
            6 => {
                let chosen = self.expr(&Ty::Tensor(Elem::Bool, shape.to_vec()), scope, depth - 1);
                let y = self.expr(&ty, scope, depth - 1);
                format!("select({chosen}, {x}, {y})")
            }
            7 => {
                let numbers = self.expr(&Ty::Tensor(Elem::I32, shape.to_vec()), scope, depth - 1);
                format!("({x} + 0.25 * f32({numbers} % 5))")
            }
            18 => format!("log({x})"),
            19 => format!("exp(60.0 * {x})"),
            20 => format!("({x} / ({} - {x}))", self.leaf(&ty, scope)),
            _ => format!("sqrt({x})"),
        }
    }

    /// `f32[d]`
    fn vector(&mut self, dim: &'static str, scope: &Scope, depth: usize) -> String {
        let other = *self.rng.pick(&COLUMNS);
        let ty = Ty::f32(&[dim]);
        if is_instance(dim) {
            let rows = self.expr(&Ty::f32(&[dim, other]), scope, depth - 1);
            return match self.rng.below(5) {
                0 => format!("({rows} @ {})", self.param(&[other])),
                1 => format!(
                    "{}({rows}, axis = 1)",
                    self.rng.pick(&["mean", "max", "min"])
                ),
                2 => format!("softmax({})", self.expr(&ty, scope, depth - 1)),
                3 => {
                    let scores = self.expr(&Ty::f32(&["m", dim]), scope, depth - 1);
                    format!("tanh(max(max({scores}, axis = 0), -2.0))")
                }
                _ => format!(
                    "reshape({}, [{dim}])",
                    self.expr(&Ty::f32(&[dim, "1"]), scope, depth - 1)
                ),
            };
        }
        let x = self.expr(&ty, scope, depth - 1);
        match self.rng.below(14) {
            0 | 1 => {
                let y = self.expr(&Ty::f32(&[other]), scope, depth - 1);
                format!("({y} @ {} + {x})", self.param(&[other, dim]))
            }
            2 => {
                let y = self.expr(&Ty::f32(&[other]), scope, depth - 1);
                format!("({} @ {y})", self.param(&[dim, other]))
            }
            3 => {
                let y = self.expr(&Ty::f32(&[other]), scope, depth - 1);
                match self.rng.below(3) {
                    0 => format!("concat({x}, {y})[0..{dim}]"),
                    1 => format!("concat({y}, {x})[{other}..{other} + {dim}]"),
                    _ => format!(
                        "(concat({x}, {y}) @ {})",
                        self.param(&[&format!("{dim} + {other}"), dim])
                    ),
                }
            }
            4 => format!("softmax({x})"),
            5 => {
                let (a, b) = (self.name(), self.name());
                let weight = self.param(&[other, &format!("2*{dim}")]);
                let y = self.expr(&Ty::f32(&[other]), scope, depth - 1);
                format!("({{ let ({a}, {b}) = split({y} @ {weight}); {a} * tanh({b}) }})")
            }
            6 => {
                let (row, divisor) = match self.traits.ragged {
                    true => ("n", "(1.0 + f32(n))".to_owned()),
                    false => (other, format!("(1.0 + f32({other}))")),
                };
                let rows = self.expr(&Ty::f32(&[row, dim]), scope, depth - 1);
                format!("(sum({rows}, axis = 0) / {divisor})")
            }
            7 => format!(
                "reshape({}, [{dim}])",
                self.expr(&Ty::f32(&["1", dim]), scope, depth - 1)
            ),
            8 => {
                let array = self.expr(&Ty::Array(Box::new(Ty::f32(&[dim]))), scope, depth - 1);
                format!("tanh(sum({array}))")
            }
            9 => {
                let (element, v) = (self.fixed_ty(), self.name());
                let array = self.expr(&Ty::Array(Box::new(element.clone())), scope, depth - 1);
                let mut inside = scope.clone();
                inside.push((v.clone(), element));
                let each = self.expr(&ty, &inside, depth - 1);
                format!("tanh(sum(stack(map({array}, |{v}| {each})), axis = 0))")
            }
            10 => {
                let table = self.param(&["5", dim]);
                let index = self.expr(&Ty::I32, scope, depth - 1);
                // What the checker can compute, it refuses.
                let is_computed = index.contains(|c: char| c.is_ascii_lowercase());
                match self.traits.errors && is_computed {
                    true => format!("{table}[{index}]"),
                    false => format!("{table}[abs({index} % 5)]"),
                }
            }
            11 | 12 => self.widened(dim, &x, scope, depth),
            _ => {
                let (g, b) = (self.param(&[dim]), self.param(&[dim]));
                // Elements must not be nearly equal, or f32 is far from f64.
                let apart = self.param(&[dim]);
                match dim {
                    "1" => x,
                    _ => format!("layernorm(0.3 * {x} + {apart}, {g}, {b})"),
                }
            }
        }
    }

    /// `f32[d]` of known length, which for a while has any.
    fn widened(&mut self, dim: &'static str, x: &str, scope: &Scope, depth: usize) -> String {
        let (wide, known) = (self.name(), self.name());
        let value = match self.rng.below(6) {
            0 => return format!("{ANY_LENGTH}({x})"),
            1 => {
                let row = *self.rng.pick(&COLUMNS);
                let rows = self.expr(&Ty::f32(&[row, dim]), scope, depth - 1);
                return format!("tanh({ANY_ROWS}({rows}))");
            }
            2 => format!("softmax({wide})"),
            3 => format!("tanh({wide}) + 0.5"),
            4 => format!("{ANY_LENGTH}({wide} - mean({wide}))"),
            _ => format!("concat({wide}, {wide})[0..{dim}]"),
        };
        format!("({{ let {wide}: f32[_] = {x}; let {known}: f32[{dim}] = {value}; {known} }})")
    }

    /// `f32[r, c]`
    fn matrix(
        &mut self,
        row: &'static str,
        column: &'static str,
        scope: &Scope,
        depth: usize,
    ) -> String {
        let inner = *self.rng.pick(&COLUMNS);
        let ty = Ty::f32(&[row, column]);
        let is_scores = is_instance(column);
        let x = self.expr(&ty, scope, depth - 1);
        match self.rng.below(11) {
            0 | 1 if !is_scores => {
                let y = self.expr(&Ty::f32(&[row, inner]), scope, depth - 1);
                format!("({y} @ {} + {x})", self.param(&[inner, column]))
            }
            0 | 1 => {
                let (a, b) = (
                    self.expr(&Ty::f32(&[row, inner]), scope, depth - 1),
                    self.expr(&Ty::f32(&[column, inner]), scope, depth - 1),
                );
                format!("(0.3 * tanh({a}) @ transpose({b}))")
            }
            2 => format!("softmax({x}, axis = {})", self.rng.below(2)),
            3 => format!(
                "transpose({})",
                self.expr(&Ty::f32(&[column, row]), scope, depth - 1)
            ),
            4 => format!(
                "({x} + {})",
                self.expr(&Ty::f32(&[column]), scope, depth - 1)
            ),
            5 => {
                let y = self.expr(&Ty::f32(&[row]), scope, depth - 1);
                format!("({x} * reshape({y}, [{row}, 1]))")
            }
            6 if !is_scores => {
                let y = self.expr(&Ty::f32(&[row, inner]), scope, depth - 1);
                match self.rng.below(2) {
                    0 => format!("concat({x}, {y}, axis = 1)[.., 0..{column}]"),
                    _ => format!(
                        "(concat({x}, {y}, axis = 1) @ {})",
                        self.param(&[&format!("{column} + {inner}"), column])
                    ),
                }
            }
            7 if !is_scores && is_instance(row) => {
                let other = *self.rng.pick(&["n", "m"]);
                let q = self.expr(&Ty::f32(&[row, inner]), scope, depth - 1);
                let k = self.expr(&Ty::f32(&[other, inner]), scope, depth - 1);
                let v = self.expr(&Ty::f32(&[other, column]), scope, depth - 1);
                match other == row && self.rng.below(2) == 1 {
                    true => format!("attend_causal({q}, {k}, {v})"),
                    false => format!("attend({q}, {k}, {v})"),
                }
            }
            8 if is_instance(row) => {
                let y = self.expr(&ty, scope, depth - 1);
                format!("concat({x}, {y}, axis = 0)[0..{row}]")
            }
            10 => self.scattered(&ty, row, &x, scope, depth),
            9 => format!(
                "fill({}, {})",
                shape_text(&[row, column]),
                self.expr(&Ty::F32, scope, depth - 1)
            ),
            _ => format!("(0.75 * {x} - 0.125)"),
        }
    }

    /// A tensor of `row` rows, some of them replaced by others or with others added.
    fn scattered(
        &mut self,
        ty: &Ty,
        row: &'static str,
        x: &str,
        scope: &Scope,
        depth: usize,
    ) -> String {
        let numbers = self.expr(&Ty::Tensor(Elem::I32, vec![row]), scope, depth - 1);
        let y = self.expr(ty, scope, depth - 1);
        let function = *self.rng.pick(&["scatter", "scatter_add"]);
        match self.traits.errors && self.rng.below(3) == 0 {
            true => format!("{function}({x}, {numbers}, {y})"),
            // Where there is no row, there is no index either.
            false => format!("{function}({x}, abs({numbers} % 1000) % max({row}, 1), {y})"),
        }
    }

    /// `i32[…]`
    pub(super) fn integers(
        &mut self,
        shape: &[&'static str],
        scope: &Scope,
        depth: usize,
    ) -> String {
        let ty = Ty::Tensor(Elem::I32, shape.to_vec());
        if depth == 0 {
            return self.leaf(&ty, scope);
        }
        let x = self.expr(&ty, scope, depth - 1);
        match self.rng.below(10) {
            9 => self.scattered(&ty, shape[0], &x, scope, depth),
            0 => format!(
                "iota({}, {})",
                shape_text(shape),
                self.rng.below(shape.len())
            ),
            1 | 2 => {
                let y = self.expr(&ty, scope, depth - 1);
                let operator = *self.rng.pick(&["+", "-", "*"]);
                format!("({x} {operator} {y})")
            }
            3 => {
                let y = self.expr(&ty, scope, depth - 1);
                format!("{}({x}, {y})", self.rng.pick(&["min", "max"]))
            }
            4 => format!(
                "({x} {} {})",
                self.rng.pick(&["/", "%"]),
                self.rng.pick(&["2", "3", "-1", "7"])
            ),
            5 => format!("({x} + {})", self.expr(&Ty::I32, scope, depth - 1)),
            6 => {
                let chosen = self.expr(&Ty::Tensor(Elem::Bool, shape.to_vec()), scope, depth - 1);
                let y = self.expr(&ty, scope, depth - 1);
                format!("select({chosen}, {x}, {y})")
            }
            7 => format!("abs({x})"),
            _ => format!("(-{x})"),
        }
    }

    /// `bool[…]`
    pub(super) fn truths(&mut self, shape: &[&'static str], scope: &Scope, depth: usize) -> String {
        let ty = Ty::Tensor(Elem::Bool, shape.to_vec());
        match self.rng.below(4) {
            0 | 1 => {
                let numbers = Ty::Tensor(Elem::I32, shape.to_vec());
                let (x, y) = (
                    self.expr(&numbers, scope, depth - 1),
                    self.expr(&numbers, scope, depth - 1),
                );
                let operator = *self.rng.pick(&["==", "!=", "<", "<=", ">", ">="]);
                format!("({x} {operator} {y})")
            }
            2 => {
                let (x, y) = (
                    self.expr(&ty, scope, depth - 1),
                    self.expr(&ty, scope, depth - 1),
                );
                format!("({x} {} {y})", self.rng.pick(&["&&", "||"]))
            }
            _ => format!("(!{})", self.expr(&ty, scope, depth - 1)),
        }
    }
}
