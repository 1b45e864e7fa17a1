//! The uses of every built-in and operator but `@`.

use super::products::broadcast;
use super::{
    Elem::{self, Bool, F32, I32},
    Place, Shape, Table, is_instance, shape, type_of,
};

/// Of rank 0 to 4, with instance dims in every place.
const SHAPES: [&str; 26] = [
    "", "D", "n", "D E", "n D", "D n", "n m", "n n", "D E F", "n D E", "D n E", "D E n", "n m D",
    "n D m", "D n m", "n m k", "n n D", "D E F G", "n D E F", "D n E F", "D E F n", "n m D E",
    "n D m E", "D n m E", "n m k D", "n m k l",
];

fn shapes() -> impl Iterator<Item = Shape> {
    SHAPES.into_iter().map(shape)
}

/// Of rank 1 or more, with each axis.
fn axes() -> impl Iterator<Item = (Shape, usize)> {
    shapes().flat_map(|shape| (0..shape.len()).map(move |axis| (shape.clone(), axis)))
}

fn without(shape: &[String], axis: usize) -> Shape {
    let mut rest = shape.to_vec();
    rest.remove(axis);
    rest
}

fn with(shape: &[String], axis: usize, dim: &str) -> Shape {
    let mut changed = shape.to_vec();
    changed[axis] = dim.to_owned();
    changed
}

pub fn fill(table: &mut Table) {
    elementwise(table);
    broadcasting(table);
    reductions(table);
    parts(table);
    joins(table);
    shape_changes(table);
    making(table);
    lookups(table);
    arrays(table);
    order(table);
}

fn elementwise(table: &mut Table) {
    for shape in shapes() {
        for name in [
            "sigmoid", "tanh", "exp", "sin", "cos", "erf", "abs", "relu", "-",
        ] {
            let x = table.operand(F32, &shape);
            table.end(format!("{name}({x})"), F32, &shape);
        }
        for name in ["log", "sqrt"] {
            let x = table.operand(F32, &shape);
            table.end(format!("{name}(abs({x}) + 0.25)"), F32, &shape);
        }
        for name in ["abs", "-"] {
            let x = table.operand(I32, &shape);
            table.end(format!("{name}({x})"), I32, &shape);
        }
        let x = table.operand(Bool, &shape);
        table.end(format!("!{x}"), Bool, &shape);
        for (from, to) in [(F32, I32), (I32, F32), (Bool, F32), (Bool, I32)] {
            let x = table.operand(from, &shape);
            let text = match from {
                // So that more than 0 is left of it.
                F32 => format!("i32({x} * 9.0)"),
                _ => format!("{}({x})", to.name()),
            };
            table.end(text, to, &shape);
        }
        for elem in [F32, I32] {
            for operator in ["+", "-", "*"] {
                binary(table, operator, elem, elem, &shape, &shape);
            }
            for operator in ["<", "<=", ">", ">=", "==", "!="] {
                binary(table, operator, elem, Bool, &shape, &shape);
            }
            for name in ["min", "max"] {
                let (x, y) = (table.operand(elem, &shape), table.operand(elem, &shape));
                table.end(format!("{name}({x}, {y})"), elem, &shape);
            }
        }
        for operator in ["==", "!=", "&&", "||"] {
            binary(table, operator, Bool, Bool, &shape, &shape);
        }
        let (x, y) = (table.operand(F32, &shape), table.operand(F32, &shape));
        table.end(format!("{x} / (abs({y}) + 0.5)"), F32, &shape);
        let (x, y) = (table.operand(F32, &shape), table.operand(F32, &shape));
        table.end(format!("pow(abs({x}) + 0.5, {y})"), F32, &shape);
        for operator in ["/", "%"] {
            let (x, y) = (table.operand(I32, &shape), table.operand(I32, &shape));
            table.end(format!("{x} {operator} (abs({y}) + 1)"), I32, &shape);
            let x = table.operand(I32, &shape);
            table.end(format!("{x} {operator} 3"), I32, &shape);
        }
    }
}

fn binary(table: &mut Table, operator: &str, of: Elem, to: Elem, left: &Shape, right: &Shape) {
    let (x, y) = (table.operand(of, left), table.operand(of, right));
    table.end(format!("{x} {operator} {y}"), to, &broadcast(left, right));
}

fn broadcasting(table: &mut Table) {
    for whole in shapes().filter(|shape| !shape.is_empty()) {
        let mut others: Vec<Shape> = (1..=whole.len())
            .map(|from| whole[from..].to_vec())
            .collect();
        others.extend((0..whole.len()).map(|axis| with(&whole, axis, "1")));
        for other in others {
            binary(table, "+", F32, F32, &whole, &other);
            binary(table, "-", I32, I32, &other, &whole);
            binary(table, "&&", Bool, Bool, &whole, &other);
            binary(table, ">=", F32, Bool, &other, &whole);
            let cond = table.operand(Bool, &other);
            let (x, y) = (table.operand(F32, &whole), table.operand(F32, &other));
            table.end(format!("select({cond}, {x}, {y})"), F32, &whole);
            let cond = table.operand(Bool, &whole);
            let (x, y) = (table.operand(I32, &other), table.operand(I32, &other));
            table.end(format!("select({cond}, {x}, {y})"), I32, &whole);
        }
        // A row and a column.
        if let [rows, columns] = &whole[..] {
            let column = [rows.clone(), "1".to_owned()].to_vec();
            binary(table, "*", F32, F32, &column, &vec![columns.clone()]);
        }
        let x = table.operand(F32, &whole);
        table.end(format!("1 - {x}"), F32, &whole);
        let x = table.operand(Bool, &whole);
        table.end(format!("select({x}, 1, 2)"), I32, &whole);
        for elem in [F32, I32] {
            // A number that a tensor computation made.
            let (x, y) = (table.operand(elem, &whole), table.operand(elem, &[]));
            let z = table.operand(elem, &shape("D"));
            table.end(format!("{x} * (sum({z}) + {y})"), elem, &whole);
        }
    }
}

fn reductions(table: &mut Table) {
    for (whole, axis) in axes() {
        let rest = without(&whole, axis);
        for (name, elem) in [
            ("sum", F32),
            ("max", F32),
            ("min", F32),
            ("mean", F32),
            ("sum", I32),
            ("max", I32),
            ("min", I32),
        ] {
            let x = table.operand(elem, &whole);
            table.end(format!("{name}({x}, axis = {axis})"), elem, &rest);
        }
        let x = table.operand(F32, &whole);
        table.end(format!("softmax({x}, axis = {axis})"), F32, &whole);
        for (elem, name) in [
            (F32, "argmax"),
            (I32, "argmax"),
            (F32, "argmin"),
            (I32, "argmin"),
        ] {
            let x = table.operand(elem, &whole);
            let text = match is_instance(&whole[axis]) {
                false => format!("{name}({x}, axis = {axis})"),
                // Of nothing there is none.
                true => {
                    let one = table.operand(elem, &with(&whole, axis, "1"));
                    format!("{name}(concat({one}, {x}, axis = {axis}), axis = {axis})")
                }
            };
            table.end(text, I32, &rest);
        }
    }
    for whole in shapes().filter(|shape| !shape.is_empty()) {
        for (name, elem) in [
            ("sum", F32),
            ("max", F32),
            ("mean", F32),
            ("min", I32),
            ("sum", I32),
        ] {
            let x = table.operand(elem, &whole);
            table.end(format!("{name}({x})"), elem, &[]);
        }
    }
}

fn parts(table: &mut Table) {
    for (whole, axis) in axes() {
        let before = ".., ".repeat(axis);
        let dim = whole[axis].clone();
        for elem in [F32, I32, Bool] {
            if !is_instance(&dim) {
                let x = table.operand(elem, &whole);
                table.end(format!("{x}[{before}1]"), elem, &without(&whole, axis));
                let x = table.operand(elem, &whole);
                table.end(format!("{x}[{before}1..2]"), elem, &with(&whole, axis, "1"));
            }
            // A number of the host, and one that a tensor computation made.
            let x = table.operand(elem, &whole);
            let long = long_enough(table, elem, &whole, axis, &x);
            let index = table.operand_in(Place::Argument, I32, &[]);
            table.end(
                format!("{long}[{before}{index} % 2]"),
                elem,
                &without(&whole, axis),
            );
            let x = table.operand(elem, &whole);
            let long = long_enough(table, elem, &whole, axis, &x);
            let score = table.operand(F32, &shape("2"));
            let row = without(&whole, axis);
            table.end(format!("{long}[{before}argmax({score})]"), elem, &row);
            if dim == "F" {
                let x = table.operand(elem, &whole);
                let half = type_of(elem, &with(&whole, axis, "F/2"));
                table.end_as(
                    format!("split({x}, 2, axis = {axis})"),
                    format!("({half}, {half})"),
                );
            }
            if is_instance(&dim) {
                let x = table.operand(elem, &whole);
                let part = with(&whole, axis, "_");
                if axis == 0 {
                    let part = type_of(elem, &part);
                    table.end_as(format!("{x}[0..{dim} / 2]"), part);
                } else {
                    let all = format!("{x}[{before}0..{dim}]");
                    table.end(all, elem, &whole);
                }
            }
        }
    }
}

/// An operand with two elements more along an axis that may have none.
fn long_enough(table: &mut Table, elem: Elem, whole: &Shape, axis: usize, x: &str) -> String {
    if !is_instance(&whole[axis]) {
        return x.to_owned();
    }
    let two = table.operand(elem, &with(whole, axis, "2"));
    format!("concat({two}, {x}, axis = {axis})")
}

fn joins(table: &mut Table) {
    for (whole, axis) in axes() {
        for elem in [F32, I32, Bool] {
            let dim = &whole[axis];
            let (x, y) = (table.operand(elem, &whole), table.operand(elem, &whole));
            let sum = format!("2*{dim}");
            table.end(
                format!("concat({x}, {y}, axis = {axis})"),
                elem,
                &with(&whole, axis, &sum),
            );
            let (x, y) = (
                table.operand(elem, &whole),
                table.operand(elem, &with(&whole, axis, "1")),
            );
            let sum = format!("1 + {dim}");
            table.end(
                format!("concat({y}, {x}, axis = {axis})"),
                elem,
                &with(&whole, axis, &sum),
            );
        }
    }
    for whole in shapes().filter(|shape| shape.len() < 4) {
        for elem in [F32, I32, Bool] {
            let xs: Vec<String> = (0..3).map(|_| table.operand(elem, &whole)).collect();
            let stacked = [shape("3"), whole.clone()].concat();
            table.end(format!("stack([{}])", xs.join(", ")), elem, &stacked);
        }
        // Made by a tensor computation.
        let x = table.operand(F32, &[whole.clone(), shape("D")].concat());
        let last = whole.len();
        let stacked = [shape("2"), whole.clone()].concat();
        let text = format!("stack([sum({x}, axis = {last}), max({x}, axis = {last})])");
        table.end(text, F32, &stacked);
    }
}

fn shape_changes(table: &mut Table) {
    for elem in [F32, I32, Bool] {
        for whole in shapes() {
            let more: Vec<Shape> = (0..=whole.len())
                .map(|axis| [&whole[..axis], &shape("1"), &whole[axis..]].concat())
                .collect();
            for to in more {
                reshape(table, elem, &whole, &to);
                reshape(table, elem, &to, &whole);
            }
            // Neighbours that are joined, and taken apart again.
            for axis in 1..whole.len() {
                let joined = format!("{}*{}", whole[axis - 1], whole[axis]);
                let to = [&whole[..axis - 1], &[joined], &whole[axis + 1..]].concat();
                reshape(table, elem, &whole, &to);
                reshape(table, elem, &to, &whole);
            }
            if whole.len() > 1 {
                let x = table.operand(elem, &whole);
                let mut moved = whole.clone();
                moved.swap(whole.len() - 2, whole.len() - 1);
                table.end(format!("transpose({x})"), elem, &moved);
                for order in orders(whole.len()) {
                    let x = table.operand(elem, &whole);
                    let moved: Shape = order.iter().map(|axis| whole[*axis].clone()).collect();
                    table.end(format!("transpose({x}, {order:?})"), elem, &moved);
                }
            }
        }
    }
    for (whole, axis) in axes() {
        let x = table.operand(F32, &whole);
        table.end(format!("dim({x}, {axis})"), I32, &[]);
    }
}

fn reshape(table: &mut Table, elem: Elem, from: &Shape, to: &Shape) {
    // An argument's lengths have names, and products have none.
    if from
        .iter()
        .any(|dim| dim.contains('*') && dim.contains(is_small))
    {
        return;
    }
    let x = table.operand(elem, from);
    table.end(format!("reshape({x}, [{}])", to.join(", ")), elem, to);
}

fn is_small(letter: char) -> bool {
    letter.is_ascii_lowercase()
}

/// Some orders of axes.
fn orders(rank: usize) -> Vec<Vec<usize>> {
    match rank {
        2 => vec![vec![1, 0]],
        3 => vec![vec![1, 0, 2], vec![2, 1, 0], vec![1, 2, 0], vec![2, 0, 1]],
        _ => vec![
            vec![0, 2, 1, 3],
            vec![3, 1, 0, 2],
            vec![1, 2, 3, 0],
            vec![2, 3, 0, 1],
        ],
    }
}

fn making(table: &mut Table) {
    for whole in shapes().filter(|shape| !shape.is_empty()) {
        let dims = whole.join(", ");
        for (name, elem) in [("zeros", F32), ("ones", F32)] {
            let x = table.operand_in(Place::Argument, F32, &whole);
            table.end(format!("{x} - {name}([{dims}])"), elem, &whole);
        }
        for (text, elem) in [("zeros", F32), ("random", F32)] {
            // What is made has the lengths of an argument.
            table.operand_in(Place::Argument, F32, &whole);
            let made = match text {
                "random" => format!("random(3, [{dims}])"),
                _ => format!("{text}([{dims}])"),
            };
            table.end(made, elem, &whole);
        }
        for elem in [F32, I32, Bool] {
            table.operand_in(Place::Argument, F32, &whole);
            let v = table.operand(elem, &[]);
            table.end(format!("fill([{dims}], {v})"), elem, &whole);
            table.operand_in(Place::Argument, F32, &whole);
            let v = table.operand(elem, &shape("D"));
            table.end(format!("fill([{dims}], {v}[1])"), elem, &whole);
        }
        for axis in 0..whole.len() {
            table.operand_in(Place::Argument, F32, &whole);
            table.end(format!("iota([{dims}], {axis})"), I32, &whole);
        }
    }
}

fn lookups(table: &mut Table) {
    for whole in shapes().filter(|shape| !shape.is_empty()) {
        for elem in [F32, I32, Bool] {
            for count in ["G", "n", "k"] {
                let x = table.operand(elem, &whole);
                let long = long_enough(table, elem, &whole, 0, &x);
                let rows = table.operand(I32, &shape(count));
                let result = [shape(count), whole[1..].to_vec()].concat();
                table.end(format!("gather({long}, abs({rows}) % 2)"), elem, &result);
                let x = table.operand(elem, &whole);
                let long = long_enough(table, elem, &whole, 0, &x);
                let scores = table.operand(F32, &[shape(count), shape("2")].concat());
                table.end(format!("gather({long}, argmax({scores}))"), elem, &result);
            }
        }
    }
    for elem in [F32, I32, Bool] {
        let x = table.operand(elem, &shape("D E"));
        let rows = table.operand(I32, &shape("n"));
        let text = format!("gather(reshape({x}, [D*E]), abs({rows}) % 6)");
        table.end(text, elem, &shape("n"));
    }
}

fn arrays(table: &mut Table) {
    for inner in shapes().filter(|shape| shape.len() < 4) {
        for outer in ["n", "G"] {
            let whole = [shape(outer), inner.clone()].concat();
            for elem in [F32, I32, Bool] {
                let x = table.operand(elem, &whole);
                let backwards = format!("stack(map(range({outer}), |i| {x}[{outer} - 1 - i]))");
                let mut result = whole.clone();
                result[0] = "_".to_owned();
                if table.variant.goes_on && elem == F32 {
                    table.end(backwards, elem, &result);
                } else {
                    table.end_as(backwards, type_of(elem, &result));
                }
                if elem != Bool {
                    let x = table.operand(elem, &whole);
                    table.end(
                        format!("sum(map(range({outer}), |i| {x}[i]))"),
                        elem,
                        &inner,
                    );
                    let (x, y) = (table.operand(elem, &whole), table.operand(elem, &inner));
                    let text = format!("fold(range({outer}), {y}, |acc, i| {x}[i] - acc)");
                    table.end(text, elem, &inner);
                }
            }
        }
    }
    for elem in [F32, I32] {
        let xs = format!("xs{}", elem.name());
        for inner in ["", "D"] {
            let inner = shape(inner);
            let name = format!("{xs}{}", inner.len());
            table
                .arguments
                .insert(format!("{name}: [{}]", type_of(elem, &inner)));
            let result = [shape("_"), inner.clone()].concat();
            table.end(format!("stack({name})"), elem, &result);
            table
                .arguments
                .insert(format!("{name}: [{}]", type_of(elem, &inner)));
            let y = table.operand(elem, &inner);
            table.end(format!("stack(push(reverse({name}), {y}))"), elem, &result);
            table
                .arguments
                .insert(format!("{name}: [{}]", type_of(elem, &inner)));
            table.end(format!("sum({name})"), elem, &inner);
            table
                .arguments
                .insert(format!("{name}: [{}]", type_of(elem, &inner)));
            table.end(format!("len({name})"), I32, &[]);
        }
    }
}

fn order(table: &mut Table) {
    for (whole, axis) in axes() {
        for elem in [F32, I32] {
            for (name, to) in [("sort", elem), ("argsort", I32), ("cumsum", elem)] {
                let x = table.operand(elem, &whole);
                table.end(format!("{name}({x}, axis = {axis})"), to, &whole);
            }
            if !is_instance(&whole[axis]) {
                let x = table.operand(elem, &whole);
                let most = with(&whole, axis, "2");
                let result = format!("({}, {})", type_of(elem, &most), type_of(I32, &most));
                table.end_as(format!("topk({x}, 2, axis = {axis})"), result);
            }
        }
    }
    for whole in shapes().filter(|shape| shape.len() < 4) {
        let x = table.operand(I32, &whole);
        table.end(
            format!("one_hot({x}, E)"),
            F32,
            &[whole.clone(), shape("E")].concat(),
        );
    }
    for whole in shapes().filter(|shape| !shape.is_empty()) {
        for elem in [F32, I32] {
            let x = table.operand(elem, &whole);
            let segments = table.operand(I32, &whole[..1]);
            let text = format!("segment_sum({x}, abs({segments}) % 2, E)");
            table.end(text, elem, &with(&whole, 0, "E"));
        }
        for elem in [F32, I32, Bool] {
            let x = table.operand(elem, &with(&whole, 0, "E"));
            let indices = table.operand(I32, &whole[..1]);
            let rows = table.operand(elem, &whole);
            let text = format!("scatter({x}, abs({indices}) % 2, {rows})");
            table.end(text, elem, &with(&whole, 0, "E"));
        }
        let x = table.operand(F32, &whole);
        let indices = table.operand(I32, &shape("2"));
        let rows = table.operand(F32, &with(&whole, 0, "2"));
        let text = match is_instance(&whole[0]) {
            // Of nothing there is no row.
            true => {
                format!("scatter_add(concat({x}, {rows}, axis = 0), abs({indices}) % 2, {rows})")
            }
            false => format!("scatter_add({x}, abs({indices}) % 2, {rows})"),
        };
        let sum = format!("{} + 2", whole[0]);
        let dim = if is_instance(&whole[0]) {
            &sum
        } else {
            &whole[0]
        };
        table.end(text, F32, &with(&whole, 0, dim));
    }
}
