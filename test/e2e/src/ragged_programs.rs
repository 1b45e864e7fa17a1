//! Random programs over instance dims: ragged values, what mixes along a ragged dim, and both
//! dynamisms at once.
//!
//! A program has one to three functions over `f32[n, A]` and `f32[m, A]` that may call themselves as
//! often as an integer of the instance says, and expressions of all that ragged values are for:
//! products with parameters and of two ragged values, reductions and softmax along any axis, masks,
//! attention, concatenations, rows. Branches and loops hang on data, on lengths and on integers. As in
//! [`programs`](crate::programs) values stay within a few units and every expression is continuous
//! where a tensor decides; what divides by a length adds one to it, since lengths may be 0.

use crate::programs::RandomProgram;
use crate::rng::Rng;

/// Program dims, whose numbers are awkward for tiles and vectors.
const WIDTHS: [u64; 8] = [1, 2, 3, 5, 8, 13, 16, 28];

/// The names of the dims of a value: `n` and `m` are instance dims, `A` and `B` the program's.
type Shape = &'static [&'static str];

const ROWS: [&str; 2] = ["n", "m"];
const COLUMNS: [&str; 2] = ["A", "B"];

/// The lengths that instance dims have: none, one, and ends of tiles and vectors.
pub const LENGTHS: [usize; 5] = [0, 1, 3, 28, 61];

pub fn ragged_program(rng: &mut Rng) -> RandomProgram {
    let dims = COLUMNS.map(|name| (name, *rng.pick(&WIDTHS))).to_vec();
    let text = Writer::new(rng).program();
    RandomProgram { text, dims }
}

/// A function from `(x: f32[n, A], y: f32[m, A], k: i32)`, and the shape of what it returns.
#[derive(Clone)]
struct Signature {
    name: String,
    result: [&'static str; 2],
}

#[derive(Clone)]
struct Value {
    text: String,
    shape: Vec<&'static str>,
}

struct Writer<'r> {
    rng: &'r mut Rng,
    params: Vec<String>,
    functions: Vec<Signature>,
    names: usize,
}

impl<'r> Writer<'r> {
    fn new(rng: &'r mut Rng) -> Writer<'r> {
        let functions = (0..rng.between(1, 3))
            .map(|index| Signature {
                name: format!("f{index}"),
                result: ["n", *rng.pick(&COLUMNS)],
            })
            .collect();
        Writer {
            rng,
            params: COLUMNS
                .map(|dim| format!("start{dim}: f32[{dim}]"))
                .to_vec(),
            functions,
            names: 0,
        }
    }

    fn program(mut self) -> String {
        let signatures = self.functions.clone();
        let functions: Vec<String> = signatures
            .iter()
            .map(|signature| self.function(signature))
            .collect();
        let main = self.main();
        let params: String = self.params.iter().map(|p| format!("param {p}\n")).collect();
        format!("dim A, B\n\n{params}\n{}\n{main}", functions.join("\n"))
    }

    /// A function that calls itself, at most three deep, or one that does not.
    fn function(&mut self, signature: &Signature) -> String {
        let mut scope = self.arguments();
        let mut body = self.lets(&mut scope);
        let result = self.expr(&signature.result, &scope, 2);
        if signature.result == ["n", "A"] && self.rng.one_in(2) {
            let again = self.expr(&["n", "A"], &scope, 1);
            let call = format!("{}(tanh({again}), y, min(k, 3) - 1)", signature.name);
            // In the last place it is a loop, elsewhere a recursion.
            let call = match self.rng.below(3) {
                0 => call,
                1 => format!("tanh({call} + {result})"),
                _ => format!("0.5 * {call} - {}", self.expr(&["n", "A"], &scope, 1)),
            };
            let condition = *self
                .rng
                .pick(&["k > 0", "k > 0 && n > 1", "k > 0 && m != 3"]);
            body += &format!("  if {condition} {{ {call} }} else {{ tanh({result}) }}\n");
        } else {
            body += &format!("  tanh({result})\n");
        }
        let result = types(&signature.result);
        format!(
            "fn {}(x: f32[n, A], y: f32[m, A], k: i32) -> {result} {{\n{body}}}\n",
            signature.name
        )
    }

    fn main(&mut self) -> String {
        let mut scope = self.arguments();
        scope.push(value("u", &["n"]));
        let mut body = String::new();
        for _ in 0..self.rng.between(1, 2) {
            body += &self.call(&mut scope);
        }
        body += &self.lets(&mut scope);
        let shapes: [Shape; 7] = [
            &["n", "A"],
            &["m", "B"],
            &["n"],
            &["n", "m"],
            &["m", "m"],
            &["A"],
            &[],
        ];
        let first = types(&["n", "A"]);
        let mut results = vec![(first, self.expr(&["n", "A"], &scope, 2))];
        for _ in 0..self.rng.between(1, 2) {
            let shape = *self.rng.pick(&shapes);
            results.push((types(shape), self.expr(shape, &scope, 2)));
        }
        let (types, values): (Vec<_>, Vec<_>) = results.into_iter().unzip();
        format!(
            "fn main(x: f32[n, A], y: f32[m, A], u: f32[n], k: i32) -> ({}) {{\n{body}  ({})\n}}\n",
            types.join(", "),
            values.join(", ")
        )
    }

    fn arguments(&self) -> Vec<Value> {
        vec![value("x", &["n", "A"]), value("y", &["m", "A"])]
    }

    /// A call with the rows of either dim in either place.
    fn call(&mut self, scope: &mut Vec<Value>) -> String {
        let callee = self.rng.pick(&self.functions).clone();
        let (row, other) = (self.row_dim(), self.row_dim());
        let x = self.expr(&[row, "A"], scope, 1);
        let y = self.expr(&[other, "A"], scope, 1);
        let name = self.name();
        let text = format!("  let {name} = {}({x}, {y}, k);\n", callee.name);
        scope.push(value(&name, &[row, callee.result[1]]));
        text
    }

    /// Up to three bindings.
    fn lets(&mut self, scope: &mut Vec<Value>) -> String {
        let mut text = String::new();
        for _ in 0..self.rng.below(4) {
            let name = self.name();
            let shapes: [Shape; 5] = [&["n", "A"], &["m", "B"], &["n"], &["n", "n"], &["B"]];
            let shape = *self.rng.pick(&shapes);
            text += &match self.rng.below(3) {
                0 => self.decision(&name, shape, scope),
                1 => self.turns(&name, shape, scope),
                _ => format!("  let {name} = {};\n", self.expr(shape, scope, 2)),
            };
            scope.push(value(&name, shape));
        }
        text
    }

    /// A branch: on a length, on an integer, or on a tensor, where the closer the decision the less
    /// hangs on it.
    fn decision(&mut self, name: &str, shape: Shape, scope: &[Value]) -> String {
        let (x, y) = (self.expr(shape, scope, 1), self.expr(shape, scope, 1));
        if self.rng.one_in(2) {
            let conditions = ["n > 3", "m == 0", "k % 2 == 0", "n > m || k > 2"];
            let condition = *self.rng.pick(&conditions);
            return format!("  let {name} = if {condition} {{ {x} }} else {{ {y} }};\n");
        }
        let decider = self.name();
        let number = self.expr(&[], scope, 1);
        format!(
            "  let {decider} = {number};\n  let {name} = if {decider} > 0.05 {{ {x} + ({decider} - 0.05) * \
             tanh({y}) }} else {{ {x} }};\n"
        )
    }

    /// A loop: as often as an integer or a length says, over the rows, or until a tensor ends it.
    fn turns(&mut self, name: &str, shape: Shape, scope: &[Value]) -> String {
        let (x, y) = (self.expr(shape, scope, 1), self.expr(shape, scope, 1));
        let mut inside = scope.to_vec();
        inside.push(value("v", shape));
        let next = self.expr(shape, &inside, 1);
        match self.rng.below(4) {
            0 => {
                let count = *self.rng.pick(&["k % 3", "n % 4", "m % 3"]);
                format!(
                    "  let {name} = for i in range({count}) with (v = {x}) {{ tanh({next}) }};\n"
                )
            }
            1 if shape == ["B"] => {
                let rows = self.expr(&["n", "B"], scope, 1);
                format!(
                    "  let rows_{name} = {rows};\n  let {name} = for i in range(n) with (v = {x}) {{ \
                     tanh(0.5 * v + rows_{name}[n - 1 - i]) }};\n"
                )
            }
            _ => {
                let (decider, number) = (self.name(), self.expr(&[], &inside, 1));
                format!(
                    "  let ({name}, _, _) = while go with (v = {x}, turn = 0, go = true) {{\n    \
                     let {decider} = {number};\n    (v - relu({decider} - 0.01) * tanh({y}), turn + 1, \
                     turn < 2 && {decider} > 0.01)\n  }};\n"
                )
            }
        }
    }

    /// An expression of a shape, nested no deeper than `depth`.
    fn expr(&mut self, shape: &[&'static str], scope: &[Value], depth: usize) -> String {
        if depth == 0 || self.rng.one_in(8) {
            return self.leaf(shape, scope);
        }
        if self.rng.one_in(3) {
            return self.elementwise(shape, scope, depth);
        }
        match *shape {
            [] => self.number(scope, depth),
            [row] if ROWS.contains(&row) => self.ragged_vector(row, scope, depth),
            [column] => self.vector(column, scope, depth),
            [row, other] if ROWS.contains(&other) => self.scores(row, other, scope, depth),
            [row, column, ..] => self.rows(row, column, scope, depth),
        }
    }

    /// What has a shape without any computation, or with next to none.
    fn leaf(&mut self, shape: &[&'static str], scope: &[Value]) -> String {
        let fitting: Vec<&Value> = scope.iter().filter(|value| value.shape == shape).collect();
        if !fitting.is_empty() {
            return self.rng.pick(&fitting).text.clone();
        }
        match *shape {
            [] => "0.25".to_string(),
            [row] if ROWS.contains(&row) => {
                let x = self.leaf(&[row, "A"], scope);
                format!("{x}[.., 0]")
            }
            [column] => self.param(&[column]),
            [row, other] if ROWS.contains(&other) => {
                let (x, y) = (
                    self.leaf(&[row, "A"], scope),
                    self.leaf(&[other, "A"], scope),
                );
                format!("(0.3 * {x} @ transpose({y}))")
            }
            [row, column, ..] => {
                let (x, weight) = (self.leaf(&[row, "A"], scope), self.param(&["A", column]));
                format!("({x} @ {weight})")
            }
        }
    }

    fn elementwise(&mut self, shape: &[&'static str], scope: &[Value], depth: usize) -> String {
        let x = self.expr(shape, scope, depth - 1);
        let y = self.expr(shape, scope, depth - 1);
        match self.rng.below(8) {
            0 => {
                let function = *self
                    .rng
                    .pick(&["tanh", "sigmoid", "relu", "abs", "sin", "erf"]);
                format!("{function}({x})")
            }
            1 => format!("sqrt({x} * {x} + 0.25)"),
            2 => format!("exp(-abs({x}))"),
            3 => format!("max({x}, {y})"),
            4 => format!("({x} / (1.0 + {y} * {y}))"),
            // Continuous where both are equal.
            5 => format!("select({x} > {y}, {x} * 0.5, {y} * 0.5)"),
            _ => {
                let operator = *self.rng.pick(&["+", "-", "*"]);
                format!("({x} {operator} {y})")
            }
        }
    }

    /// `f32`.
    fn number(&mut self, scope: &[Value], depth: usize) -> String {
        let (row, other) = (self.row_dim(), self.row_dim());
        let of_rows = self.expr(&[row], scope, depth - 1);
        match self.rng.below(5) {
            0 => format!("(sum({of_rows}) / (1.0 + f32({row})))"),
            1 => format!("max(max({of_rows}), -1.0)"),
            2 => {
                let v = self.expr(&[row], scope, depth - 1);
                format!("(({of_rows} @ {v}) / (1.0 + f32({row})))")
            }
            3 => {
                let s = self.expr(&[row, other], scope, depth - 1);
                format!("(sum(tanh({s})) / (1.0 + f32({row} * {other})))")
            }
            _ => format!("mean({})", self.expr(&["A"], scope, depth - 1)),
        }
    }

    /// `f32[n]`.
    fn ragged_vector(&mut self, row: &'static str, scope: &[Value], depth: usize) -> String {
        let (column, other) = (self.column(), self.row_dim());
        match self.rng.below(6) {
            0 => {
                let x = self.expr(&[row, column], scope, depth - 1);
                let reduction = *self.rng.pick(&["mean", "max", "min"]);
                format!("{reduction}({x}, axis = 1)")
            }
            1 => {
                let x = self.expr(&[row, column], scope, depth - 1);
                format!("({x} @ {})", self.param(&[column]))
            }
            2 => format!("softmax({})", self.expr(&[row], scope, depth - 1)),
            3 => {
                let s = self.expr(&[row, other], scope, depth - 1);
                format!("(sum(tanh({s}), axis = 1) / (1.0 + f32({other})))")
            }
            4 => {
                let s = self.expr(&[other, row], scope, depth - 1);
                format!("max(max({s}, axis = 0), -2.0)")
            }
            _ => {
                let (s, v) = (
                    self.expr(&[row, other], scope, depth - 1),
                    self.expr(&[other], scope, depth - 1),
                );
                format!("(softmax({s}) @ {v})")
            }
        }
    }

    /// `f32[A]`.
    fn vector(&mut self, column: &'static str, scope: &[Value], depth: usize) -> String {
        let row = self.row_dim();
        let x = self.expr(&[row, column], scope, depth - 1);
        match self.rng.below(5) {
            0 => format!("(sum({x}, axis = 0) / (1.0 + f32({row})))"),
            1 => format!("max(max({x}, axis = 0), {})", self.param(&[column])),
            2 => {
                let u = self.expr(&[row], scope, depth - 1);
                format!("(softmax({u}) @ {x})")
            }
            3 => format!(
                "(transpose({x}) @ softmax({}))",
                self.expr(&[row], scope, depth - 1)
            ),
            _ => {
                let rows = self.name();
                format!(
                    "({{ let {rows} = {x}; tanh(sum(map(range({row}), |i| 0.1 * {rows}[i]))) }})"
                )
            }
        }
    }

    /// `f32[n, m]`.
    fn scores(
        &mut self,
        row: &'static str,
        other: &'static str,
        scope: &[Value],
        depth: usize,
    ) -> String {
        let column = self.column();
        match self.rng.below(7) {
            0 | 1 => {
                let x = self.expr(&[row, column], scope, depth - 1);
                let y = self.expr(&[other, column], scope, depth - 1);
                format!("({x} @ transpose({y}) / f32({column}))")
            }
            2 => {
                let (u, v) = (
                    self.expr(&[row], scope, depth - 1),
                    self.expr(&[other], scope, depth - 1),
                );
                format!("(reshape({u}, [{row}, 1]) * reshape({v}, [1, {other}]))")
            }
            3 => format!("softmax({})", self.expr(&[row, other], scope, depth - 1)),
            4 => format!("transpose({})", self.expr(&[other, row], scope, depth - 1)),
            5 if row == other => format!("tril({})", self.expr(&[row, other], scope, depth - 1)),
            _ => {
                let (s, t) = (
                    self.expr(&[row, other], scope, depth - 1),
                    self.expr(&[row, other], scope, depth - 1),
                );
                let shape = format!("[{row}, {other}]");
                format!("select(iota({shape}, 0) > iota({shape}, 1) + 1, {s}, 0.5 * {t})")
            }
        }
    }

    /// `f32[n, A]`.
    fn rows(
        &mut self,
        row: &'static str,
        column: &'static str,
        scope: &[Value],
        depth: usize,
    ) -> String {
        let (inner, other) = (self.column(), self.row_dim());
        let x = self.expr(&[row, inner], scope, depth - 1);
        match self.rng.below(12) {
            0 | 1 => format!(
                "({x} @ {} + {})",
                self.param(&[inner, column]),
                self.param(&[column])
            ),
            2 => {
                let x = self.expr(&[row, column], scope, depth - 1);
                let (g, b) = (self.param(&[column]), self.param(&[column]));
                // The rows must not be nearly constant, or f32 is far from f64.
                let apart = self.param(&[column]);
                format!("layernorm(0.5 * {x} + {apart}, {g}, {b})")
            }
            3 => {
                let x = self.expr(&[row, column], scope, depth - 1);
                let axis = self.rng.below(2);
                format!("softmax({x}, axis = {axis})")
            }
            4 => {
                let s = self.expr(&[row, other], scope, depth - 1);
                let y = self.expr(&[other, column], scope, depth - 1);
                format!("(tanh({s}) @ {y} / (1.0 + f32({other})))")
            }
            5 | 6 => {
                let k = self.expr(&[other, inner], scope, depth - 1);
                let v = self.expr(&[other, column], scope, depth - 1);
                format!("attend({x}, {k}, {v})")
            }
            7 => {
                let k = self.expr(&[row, inner], scope, depth - 1);
                let v = self.expr(&[row, column], scope, depth - 1);
                format!("attend_causal({x}, {k}, {v})")
            }
            8 => {
                let y = self.expr(&[row, column], scope, depth - 1);
                let weight = self.param(&[&format!("{inner} + {column}"), column]);
                format!("(concat({x}, {y}, axis = 1) @ {weight})")
            }
            9 => {
                let y = self.expr(&[row, column], scope, depth - 1);
                format!("concat({y}, {x}, axis = 1)[.., 0..{column}]")
            }
            10 => {
                let (y, u) = (
                    self.expr(&[row, column], scope, depth - 1),
                    self.expr(&[row], scope, depth - 1),
                );
                format!("({y} * reshape({u}, [{row}, 1]))")
            }
            _ => {
                let y = self.expr(&[row, column], scope, depth - 1);
                let z = self.name();
                format!("({{ let {z} = {y}; {z} - sum({z}, axis = 0) / (1.0 + f32({row})) }})")
            }
        }
    }

    fn row_dim(&mut self) -> &'static str {
        ROWS[self.rng.below(ROWS.len())]
    }

    fn column(&mut self) -> &'static str {
        COLUMNS[self.rng.below(COLUMNS.len())]
    }

    /// A new parameter of the given shape.
    fn param(&mut self, shape: &[&str]) -> String {
        let name = format!("p{}", self.params.len());
        self.params
            .push(format!("{name}: f32[{}]", shape.join(", ")));
        name
    }

    fn name(&mut self) -> String {
        self.names += 1;
        format!("v{}", self.names)
    }
}

fn value(text: &str, shape: &[&'static str]) -> Value {
    Value {
        text: text.to_string(),
        shape: shape.to_vec(),
    }
}

fn types(shape: &[&str]) -> String {
    match shape {
        [] => "f32".to_string(),
        _ => format!("f32[{}]", shape.join(", ")),
    }
}
