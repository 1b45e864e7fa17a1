//! Chains of operations on tensors with instance dims: what single uses do not show.
//!
//! Each step is one operation on the value so far, whose shape it may change: reductions, products,
//! concatenations, slices, sorts, reshapes, loops. Values stay small enough for f32 to follow f64, as
//! each step knows how large its numbers and its dims may be.

use super::{RandomProgram, Traits};
use crate::rng::Rng;

/// What the instance dims of a chain's instances are chosen from: products of dims stay small.
const LENGTHS: [usize; 6] = [0, 1, 2, 3, 5, 9];

/// The longest of them.
const LONGEST: usize = 9;

/// Of the ranks that functions are written for.
const RANKS: std::ops::RangeInclusive<usize> = 1..=5;

/// Elements from which on a value is only made smaller.
const MANY: usize = 4000;

/// What numbers may reach before they are scaled down.
const LARGE: f64 = 8.0;

/// A dim's text, and the most that it may be.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Dim {
    text: String,
    most: usize,
}

fn dim(text: &str) -> Dim {
    Dim {
        text: text.to_owned(),
        most: text.parse().unwrap_or(LONGEST),
    }
}

/// The value that a chain has come to.
#[derive(Clone, Debug)]
struct Link {
    text: String,
    shape: Vec<Dim>,
    /// The most that a number in it may be, and its negative.
    most: f64,
}

impl Link {
    fn elements(&self) -> usize {
        self.shape.iter().map(|dim| dim.most).product()
    }
}

struct Chains<'r> {
    rng: &'r mut Rng,
    lets: String,
    names: usize,
}

/// A program whose outputs are chains.
pub fn program(rng: &mut Rng) -> RandomProgram {
    let mut chains = Chains {
        rng,
        lets: String::new(),
        names: 0,
    };
    let outputs = chains.rng.between(1, 4);
    let outputs: Vec<Link> = (0..outputs).map(|_| chains.chain()).collect();
    let mut text = "param w: f32[4, 4]\n\n".to_owned();
    for rank in RANKS {
        let dims: Vec<String> = (0..rank).map(|axis| format!("d{axis}")).collect();
        let ty = format!("f32[{}]", dims.join(", "));
        text +=
            &format!("fn layer_{rank}(a: {ty}) -> {ty} {{ tanh(a) + 0.0625 * sum(tanh(a)) }}\n");
    }
    let types: Vec<String> = outputs.iter().map(type_of).collect();
    let values: Vec<&str> = outputs.iter().map(|link| link.text.as_str()).collect();
    text += &format!(
        "\nfn main(x: f32[n, 4], y: f32[m, 4], z: f32[n, m], v: f32[n], t: f32[n, 3, 4], u: f32[m, n, 4],\n        g: f32[3, n, 4], s: i32[n], k: i32) -> ({}) {{\n{}  ({})\n}}\n",
        types.join(", "),
        chains.lets,
        values.join(", ")
    );
    RandomProgram {
        text,
        dims: Vec::new(),
        lengths: &LENGTHS,
        traits: Traits {
            ragged: true,
            ..Traits::default()
        },
    }
}

fn type_of(link: &Link) -> String {
    match link.shape.len() {
        0 => "f32".to_owned(),
        rank => format!("f32[{}]", vec!["_"; rank].join(", ")),
    }
}

/// As a shape is written.
fn shape_text(shape: &[Dim]) -> String {
    let dims: Vec<&str> = shape.iter().map(|dim| dim.text.as_str()).collect();
    format!("[{}]", dims.join(", "))
}

/// A shape with another dim at an axis.
fn with(shape: &[Dim], axis: usize, dim: Dim) -> Vec<Dim> {
    let mut shape = shape.to_vec();
    shape[axis] = dim;
    shape
}

fn without(shape: &[Dim], axis: usize) -> Vec<Dim> {
    let mut shape = shape.to_vec();
    shape.remove(axis);
    shape
}

/// The operations by what they need.
const ANY: [Step; 3] = [Step::Function, Step::Plus, Step::Square];
const OF_A_DIM: [Step; 15] = [
    Step::Mean,
    Step::Softmax,
    Step::RunningSum,
    Step::Concat,
    Step::NewDim,
    Step::Sort,
    Step::Slice,
    Step::Rows,
    Step::Decide,
    Step::Loop,
    Step::Call,
    Step::Scale,
    Step::Sum,
    Step::Largest,
    Step::ProductOfParts,
];
const OF_TWO_DIMS: [Step; 6] = [
    Step::Transpose,
    Step::Permute,
    Step::Join,
    Step::Product,
    Step::Centre,
    Step::SliceLast,
];
const OF_ROWS: [Step; 4] = [Step::Gather, Step::Reorder, Step::Segments, Step::Scatter];
const OF_FOUR: [Step; 3] = [Step::Weights, Step::SplitDim, Step::Halves];
/// What makes a value smaller.
const SMALLER: [Step; 3] = [Step::Sum, Step::Mean, Step::Largest];

#[derive(Clone, Copy, Debug)]
enum Step {
    Function,
    Plus,
    Square,
    Sum,
    Mean,
    Largest,
    Softmax,
    RunningSum,
    Concat,
    NewDim,
    Sort,
    Slice,
    Rows,
    Decide,
    Loop,
    Call,
    Scale,
    Transpose,
    Permute,
    Join,
    Product,
    ProductOfParts,
    Centre,
    SliceLast,
    Gather,
    Reorder,
    Segments,
    Scatter,
    Weights,
    SplitDim,
    Halves,
}

impl Chains<'_> {
    fn chain(&mut self) -> Link {
        let mut link = self.leaf();
        for _ in 0..self.rng.between(1, 6) {
            if link.shape.len() > 4 {
                break;
            }
            link = self.step(&link);
            if link.most > LARGE {
                link.text = format!("{:?} * {}", 1.0 / link.most, link.text);
                link.most = 1.0;
            }
            link.text = match link.text.len() > 40 || self.rng.one_in(2) {
                true => self.bind(&link.text),
                false => format!("({})", link.text),
            };
        }
        link
    }

    fn bind(&mut self, value: &str) -> String {
        self.names += 1;
        self.lets += &format!("  let v{} = {value};\n", self.names);
        format!("v{}", self.names)
    }

    fn leaf(&mut self) -> Link {
        let leaves: [(&str, &[&str], f64); 11] = [
            ("x", &["n", "4"], 1.0),
            ("y", &["m", "4"], 1.0),
            ("z", &["n", "m"], 1.0),
            ("w", &["4", "4"], 1.0),
            ("v", &["n"], 1.0),
            ("t", &["n", "3", "4"], 1.0),
            ("u", &["m", "n", "4"], 1.0),
            ("g", &["3", "n", "4"], 1.0),
            ("f32(iota([n, m], 0))", &["n", "m"], 8.0),
            ("f32(iota([n, m], 1))", &["n", "m"], 8.0),
            // Of what both sides compare alike.
            ("one_hot(argsort(z, axis = 0), 3)", &["n", "m", "3"], 1.0),
        ];
        let (text, shape, most) = *self.rng.pick(&leaves);
        Link {
            text: text.to_owned(),
            shape: shape.iter().map(|text| dim(text)).collect(),
            most,
        }
    }

    fn choose(&mut self, shape: &[Dim], elements: usize) -> Step {
        if elements > MANY && !shape.is_empty() {
            return *self.rng.pick(&SMALLER);
        }
        let mut steps = ANY.to_vec();
        if !shape.is_empty() {
            steps.extend(OF_A_DIM);
        }
        if shape.len() >= 2 {
            steps.extend(OF_TWO_DIMS);
        }
        if shape.first().is_some_and(|first| first.text == "n") {
            steps.extend(OF_ROWS);
        }
        if shape.last().is_some_and(|last| last.text == "4") {
            steps.extend(OF_FOUR);
        }
        *self.rng.pick(&steps)
    }

    fn step(&mut self, link: &Link) -> Link {
        let Link {
            text: e,
            shape,
            most,
        } = link;
        let most = *most;
        let rank = shape.len();
        let step = self.choose(shape, link.elements());
        let axis = if rank == 0 { 0 } else { self.rng.below(rank) };
        let length = shape.get(axis).map_or(1, |dim| dim.most) as f64;
        let same = |text: String, most: f64| Link {
            text,
            shape: shape.clone(),
            most,
        };
        let shaped = |text: String, shape: Vec<Dim>, most: f64| Link { text, shape, most };
        match step {
            Step::Function => {
                let (before, after, most) = *self.rng.pick(&[
                    ("tanh(", ")", 1.0),
                    ("", " * 0.5", most),
                    ("abs(", ")", most),
                    ("relu(", " + 0.125)", most + 0.125),
                    ("-", "", most),
                    ("exp(-abs(", "))", 1.0),
                ]);
                same(format!("{before}{e}{after}"), most)
            }
            Step::Plus => same(format!("{e} + sin({e})"), most + 1.0),
            Step::Square => same(format!("{e} * {e}"), most * most),
            Step::Sum => shaped(
                format!("sum({e}, axis = {axis})"),
                without(shape, axis),
                most * length,
            ),
            Step::Mean => shaped(
                format!("mean({e}, axis = {axis})"),
                without(shape, axis),
                most,
            ),
            Step::Largest => {
                // Of no elements, too.
                let zeros = shape_text(&with(shape, axis, dim("1")));
                shaped(
                    format!("max(concat({e}, zeros({zeros}), axis = {axis}), axis = {axis})"),
                    without(shape, axis),
                    most,
                )
            }
            Step::Softmax => same(format!("softmax({e}, axis = {axis})"), 1.0),
            Step::RunningSum => same(format!("cumsum({e}, axis = {axis})"), most * length),
            Step::Concat => self.concat(link, axis),
            Step::NewDim => {
                let mut wider = shape.clone();
                wider.insert(axis, dim("1"));
                shaped(format!("reshape({e}, {})", shape_text(&wider)), wider, most)
            }
            Step::Sort => same(format!("sort({e}, axis = {axis})"), most),
            Step::Slice => self.slice(link),
            Step::Rows => {
                let first = &shape[0].text;
                let element = match self.rng.below(3) {
                    0 => format!("{e}[i]"),
                    1 => format!("tanh({e}[i])"),
                    _ => format!("{e}[{first} - 1 - i]"),
                };
                same(
                    format!("stack(map(range({first}), |i| {element}))"),
                    most.max(1.0),
                )
            }
            // Both ways give the same, as the sum may be near 0.
            Step::Decide => same(
                format!("(if sum({e}) > 0.0 {{ {e} }} else {{ 0.5 * ({e} + {e}) }})"),
                most,
            ),
            Step::Loop => {
                let (turn, most) = *self.rng.pick(&[
                    ("a + sin(a)", most + 2.0),
                    ("a * 0.5", most),
                    ("tanh(a) + 0.25 * a", most + 1.0),
                ]);
                same(
                    format!("(for i in range(2) with (a = {e}) {{ {turn} }})"),
                    most,
                )
            }
            Step::Call => same(
                format!("layer_{rank}({e})"),
                1.0 + 0.0625 * link.elements() as f64,
            ),
            Step::Scale => {
                let one = shape_text(&with(shape, axis, dim("1")));
                same(
                    format!("{e} * reshape(sum({e}, axis = {axis}), {one})"),
                    most * most * length,
                )
            }
            Step::Transpose => {
                let mut turned = shape.clone();
                turned.swap(rank - 2, rank - 1);
                shaped(format!("transpose({e})"), turned, most)
            }
            Step::Permute => {
                let mut order: Vec<usize> = (0..rank).collect();
                self.rng.shuffle(&mut order);
                let turned = order.iter().map(|axis| shape[*axis].clone()).collect();
                shaped(format!("transpose({e}, {order:?})"), turned, most)
            }
            Step::Join => {
                let first = self.rng.below(rank - 1);
                let joined = Dim {
                    text: format!("({} * {})", shape[first].text, shape[first + 1].text),
                    most: shape[first].most * shape[first + 1].most,
                };
                let mut flat = shape.clone();
                flat.splice(first..first + 2, [joined]);
                shaped(format!("reshape({e}, {})", shape_text(&flat)), flat, most)
            }
            Step::Product => {
                let inner = shape[rank - 1].most as f64;
                let square = with(shape, rank - 1, shape[rank - 2].clone());
                shaped(format!("{e} @ transpose({e})"), square, most * most * inner)
            }
            Step::ProductOfParts => self.product_of_parts(link, axis),
            Step::Centre => same(format!("{e} - mean({e}, axis = 0)"), 2.0 * most),
            Step::SliceLast => {
                let last = &shape[rank - 1].text;
                let others = ".., ".repeat(rank - 1);
                same(format!("concat({e}, {e})[{others}1..{last} + 1]"), most)
            }
            Step::Gather => same(format!("gather({e}, min(s, n - 1))"), most),
            Step::Reorder => same(format!("gather({e}, argsort(v))"), most),
            Step::Segments => same(
                format!("segment_sum({e}, min(s, n - 1), n)"),
                most * LONGEST as f64,
            ),
            Step::Scatter => same(
                format!("scatter({e}, min(s, n - 1), tanh({e}))"),
                most.max(1.0),
            ),
            Step::Weights => same(format!("{e} @ w"), 4.0 * most),
            Step::SplitDim => {
                let mut split = shape.clone();
                split.splice(rank - 1.., [dim("2"), dim("2")]);
                shaped(format!("reshape({e}, {})", shape_text(&split)), split, most)
            }
            Step::Halves => same(
                format!("concat(map(split({e}, 2), |h| h * 2.0))"),
                2.0 * most,
            ),
        }
    }

    /// The value before or behind another.
    fn concat(&mut self, link: &Link, axis: usize) -> Link {
        let Link {
            text: e,
            shape,
            most,
        } = link;
        let own = &shape[axis];
        let beside = |text: &str| shape_text(&with(shape, axis, dim(text)));
        let (other, text, longest) = match self.rng.below(4) {
            0 => (e.clone(), format!("(2 * {})", own.text), 2 * own.most),
            1 => (
                format!("tanh({e})"),
                format!("(2 * {})", own.text),
                2 * own.most,
            ),
            2 => (
                format!("ones({})", beside("2")),
                format!("({} + 2)", own.text),
                own.most + 2,
            ),
            _ => (
                format!("zeros({})", beside("m")),
                format!("({} + m)", own.text),
                own.most + LONGEST,
            ),
        };
        let (first, second) = match self.rng.one_in(2) {
            true => (e, &other),
            false => (&other, e),
        };
        Link {
            text: format!("concat({first}, {second}, axis = {axis})"),
            shape: with(
                shape,
                axis,
                Dim {
                    text,
                    most: longest,
                },
            ),
            most: most.max(1.0),
        }
    }

    /// A product whose sum or whose rows go on from one part of a concatenation to the next.
    fn product_of_parts(&mut self, link: &Link, axis: usize) -> Link {
        let Link {
            text: e,
            shape,
            most,
        } = link;
        let rank = shape.len();
        let (parts, shape) = match rank == 1 || self.rng.one_in(2) {
            true => (
                format!("stack([{e}, tanh({e})])"),
                [&[dim("2")], &shape[..]].concat(),
            ),
            false => {
                let joined = Dim {
                    text: format!("(2 * {})", shape[axis].text),
                    most: 2 * shape[axis].most,
                };
                (
                    format!("concat({e}, sin({e}), axis = {axis})"),
                    with(shape, axis, joined),
                )
            }
        };
        let parts = self.bind(&parts);
        let (left, right) = *self.rng.pick(&[("", ""), ("tanh(", ")"), ("0.5 * (", ")")]);
        let (row, column) = (&shape[shape.len() - 2], &shape[shape.len() - 1]);
        let most = most.max(1.0) * most.max(1.0);
        let both = |text: String, dim: &Dim, summed: &Dim| Link {
            text,
            shape: [&shape[..shape.len() - 2], &[dim.clone(), dim.clone()]].concat(),
            most: most * summed.most as f64,
        };
        match self.rng.one_in(2) {
            true => both(
                format!("{left}{parts}{right} @ transpose({parts})"),
                row,
                column,
            ),
            false => both(
                format!("transpose({parts}) @ ({left}{parts}{right})"),
                column,
                row,
            ),
        }
    }

    /// Some rows of the value.
    fn slice(&mut self, link: &Link) -> Link {
        let Link {
            text: e,
            shape,
            most,
        } = link;
        let rows = &shape[0].text;
        let most = most.max(1.0);
        let mut shape = shape.clone();
        let text = match self.rng.below(4) {
            0 => format!("concat({e}, {e}, axis = 0)[{rows}..2 * {rows}]"),
            1 => {
                let one = shape_text(&with(&shape, 0, dim("1")));
                format!("concat(ones({one}), {e}, axis = 0)[0..{rows}]")
            }
            2 => {
                let count = self.bind(&format!("min(k, {rows})"));
                let text = format!("{e}[0..{count}]");
                shape[0].text = count;
                text
            }
            _ => format!("{e}[0..{rows}]"),
        };
        Link { text, shape, most }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use cohort_frontend::{Sources, check};

    use super::*;

    #[test]
    fn every_chain_is_well_typed() {
        for seed in 0..300 {
            let program = program(&mut Rng::new(seed));
            let mut sources = Sources::new();
            let file = sources.add("chains.coh", program.text.clone());
            let bound = check(&sources, file)
                .and_then(|checked| checked.bind(&BTreeMap::new(), &BTreeMap::new()));
            if let Err(diagnostics) = bound {
                let mut text = Vec::new();
                // Writing to memory does not fail.
                let _ = cohort_frontend::render(&diagnostics, &sources, &mut text, false);
                panic!(
                    "seed {seed}\n{}\n{}",
                    String::from_utf8_lossy(&text),
                    program.text
                );
            }
        }
    }
}
