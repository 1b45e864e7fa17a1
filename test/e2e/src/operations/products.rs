//! `@` of operands of every rank, with dims of every kind.

use super::{Elem::F32, Shape, Table, shape};

pub fn fill(table: &mut Table) {
    for inner in ["D", "n"] {
        for rows in ["", "E", "n", "m"] {
            for columns in ["", "F", "n", "k"] {
                pair(table, "", rows, inner, "", columns);
            }
        }
    }
    let batches = [
        // NumPy's broadcasting of what comes before the matrices.
        ("G", ""),
        ("", "G"),
        ("G", "G"),
        ("k", ""),
        ("", "k"),
        ("k", "k"),
        ("k", "1"),
        ("1", "G"),
        ("E F", ""),
        ("k G", ""),
        ("k G", "G"),
        ("k G", "k G"),
        ("G k", "k"),
        ("k l", "k l"),
    ];
    for (left, right) in batches {
        for (rows, inner, columns) in [
            ("E", "D", "F"),
            ("n", "D", "F"),
            ("n", "D", "m"),
            ("n", "m", "D"),
            ("E", "n", "F"),
            ("", "D", "F"),
            ("E", "D", ""),
            ("n", "D", "n"),
        ] {
            // A vector has no dims before it.
            if (rows.is_empty() && !left.is_empty()) || (columns.is_empty() && !right.is_empty()) {
                continue;
            }
            pair(table, left, rows, inner, right, columns);
        }
    }
}

fn pair(table: &mut Table, left: &str, rows: &str, inner: &str, right: &str, columns: &str) {
    let (left, right) = (shape(left), shape(right));
    let (rows, inner, columns) = (shape(rows), shape(inner), shape(columns));
    let lhs = [left.clone(), rows.clone(), inner.clone()].concat();
    let rhs = [right.clone(), inner, columns.clone()].concat();
    let batch = broadcast(&left, &right);
    let (x, w) = (table.operand(F32, &lhs), table.operand(F32, &rhs));
    table.end(format!("{x} @ {w}"), F32, &[batch, rows, columns].concat());
}

/// The dims of two shapes together.
pub fn broadcast(left: &[String], right: &[String]) -> Shape {
    let rank = left.len().max(right.len());
    let at = |shape: &[String], axis: usize| -> Option<String> {
        (axis + shape.len())
            .checked_sub(rank)
            .map(|axis| shape[axis].clone())
    };
    let of = |axis| match (at(left, axis), at(right, axis)) {
        (Some(left), Some(right)) if left == "1" => right,
        (Some(left), _) => left,
        (None, right) => right.unwrap_or_default(),
    };
    (0..rank).map(of).collect()
}
