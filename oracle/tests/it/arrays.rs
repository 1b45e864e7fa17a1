//! Arrays and the closures over them.

use cohort_frontend::program::{Binary, ExprKind};
use cohort_oracle::ErrorKind;
use serde_json::json;

use crate::build::*;

#[test]
fn literals_length_index_push_and_reverse() {
    let args = || json!({"xs": [4, 5, 6], "i": 1});
    let params = || [("xs", array_of(I32)), ("i", I32)];
    let length = evaluate(&params(), args(), |b| {
        expr(I32, ExprKind::Len(b.boxed_var(0)))
    });
    assert_eq!(length, Ok(json!(3)));
    let element = evaluate(&params(), args(), |b| {
        expr(
            I32,
            ExprKind::Index {
                array: b.boxed_var(0),
                index: b.boxed_var(1),
            },
        )
    });
    assert_eq!(element, Ok(json!(5)));
    let pushed = evaluate(&params(), args(), |b| {
        expr(
            array_of(I32),
            ExprKind::Push {
                array: b.boxed_var(0),
                value: b.boxed_var(1),
            },
        )
    });
    assert_eq!(pushed, Ok(json!([4, 5, 6, 1])));
    let reversed = evaluate(&params(), args(), |b| {
        expr(array_of(I32), ExprKind::Reverse(b.boxed_var(0)))
    });
    assert_eq!(reversed, Ok(json!([6, 5, 4])));
    let literal = evaluate(&params(), args(), |b| {
        expr(array_of(I32), ExprKind::Array(vec![b.var(1), int(9)]))
    });
    assert_eq!(literal, Ok(json!([1, 9])));
}

#[test]
fn an_index_out_of_range_is_the_instances_error() {
    for index in [-1, 2] {
        let params = [("xs", array_of(I32)), ("i", I32)];
        let error = evaluate(&params, json!({"xs": [4, 5], "i": index}), |b| {
            expr(
                I32,
                ExprKind::Index {
                    array: b.boxed_var(0),
                    index: b.boxed_var(1),
                },
            )
        })
        .unwrap_err();
        assert_eq!(error.kind, ErrorKind::IndexOutOfRange);
        assert!(error.message.contains(&index.to_string()), "{error}");
    }
}

#[test]
fn range_counts_from_zero_and_is_empty_below() {
    let range = |count: i32| {
        evaluate(&[("n", I32)], json!({ "n": count }), |b| {
            expr(array_of(I32), ExprKind::Range(b.boxed_var(0)))
        })
    };
    assert_eq!(range(3), Ok(json!([0, 1, 2])));
    assert_eq!(range(-3), Ok(json!([])));
}

#[test]
fn map_runs_over_arrays_of_equal_length_and_sees_outer_variables() {
    let params = || [("a", array_of(I32)), ("b", array_of(I32)), ("k", I32)];
    let map = |args| {
        evaluate(&params(), args, |build| {
            let x = build.local("x", I32);
            let y = build.local("y", I32);
            let product = boxed(
                I32,
                ExprKind::ScalarBinary {
                    op: Binary::Mul,
                    lhs: build.boxed_var(x),
                    rhs: build.boxed_var(y),
                },
            );
            let body = expr(
                I32,
                ExprKind::ScalarBinary {
                    op: Binary::Add,
                    lhs: product,
                    rhs: build.boxed_var(2),
                },
            );
            let arrays = vec![build.var(0), build.var(1)];
            expr(
                array_of(I32),
                ExprKind::Map {
                    arrays,
                    closure: closure(&[x, y], body),
                },
            )
        })
    };
    assert_eq!(
        map(json!({"a": [1, 2], "b": [3, 4], "k": 10})),
        Ok(json!([13, 18]))
    );
    let error = map(json!({"a": [1, 2], "b": [3], "k": 10})).unwrap_err();
    assert_eq!(error.kind, ErrorKind::LengthMismatch);
}

#[test]
fn fold_takes_the_accumulator_first() {
    let output = evaluate(&[("xs", array_of(I32))], json!({"xs": [1, 2, 3]}), |b| {
        let total = b.local("total", I32);
        let x = b.local("x", I32);
        let body = expr(
            I32,
            ExprKind::ScalarBinary {
                op: Binary::Sub,
                lhs: b.boxed_var(total),
                rhs: b.boxed_var(x),
            },
        );
        let fold = ExprKind::Fold {
            array: b.boxed_var(0),
            init: Box::new(int(100)),
            closure: closure(&[total, x], body),
        };
        expr(I32, fold)
    });
    assert_eq!(output, Ok(json!(94)));
}

#[test]
fn sum_of_tensors_and_zeros_for_none() {
    let sum = |xs| {
        evaluate(
            &[("xs", array_of(f32s(&["2"])))],
            json!({ "xs": xs }),
            |b| expr(f32s(&["2"]), ExprKind::Sum(b.boxed_var(0))),
        )
    };
    assert_eq!(sum(json!([[1, 2], [3, 4]])), Ok(json!([4.0, 6.0])));
    assert_eq!(sum(json!([])), Ok(json!([0.0, 0.0])));
}

#[test]
fn sum_of_nothing_has_the_length_that_its_dim_has_elsewhere() {
    let params = [("x", f32s(&["n"])), ("xs", array_of(f32s(&["n"])))];
    let output = evaluate(&params, json!({"x": [1, 2, 3], "xs": []}), |b| {
        expr(f32s(&["n"]), ExprKind::Sum(b.boxed_var(1)))
    });
    assert_eq!(output, Ok(json!([0.0, 0.0, 0.0])));
}

#[test]
fn stack_adds_a_leading_axis() {
    let stack = |xs| {
        evaluate(
            &[("xs", array_of(f32s(&["2"])))],
            json!({ "xs": xs }),
            |b| expr(f32s(&["n", "2"]), ExprKind::Stack(b.boxed_var(0))),
        )
    };
    assert_eq!(
        stack(json!([[1, 2], [3, 4], [5, 6]])),
        Ok(json!([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
    );
    assert_eq!(stack(json!([])), Ok(json!([])));
}
