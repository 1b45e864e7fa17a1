//! Tensor expressions, against results computed by hand.

use cohort_frontend::program::{Binary, Elem, ExprKind, ParamId, Reduction, Type, Unary};
use cohort_oracle::{ErrorKind, InstanceError, Limits, Tensor};
use serde_json::{Value as Json, json};

use crate::build::*;

/// One operation over the one argument `x`.
fn of_x(
    ty: Type,
    x: Json,
    result: Type,
    op: impl FnOnce(Box<cohort_frontend::program::Expr>) -> ExprKind,
) -> Result<Json, InstanceError> {
    evaluate(&[("x", ty)], json!({ "x": x }), |b| {
        expr(result, op(b.boxed_var(0)))
    })
}

/// One operation over two arguments.
fn of_two(
    (left, a): (Type, Json),
    (right, b): (Type, Json),
    result: Type,
    op: impl FnOnce(
        Box<cohort_frontend::program::Expr>,
        Box<cohort_frontend::program::Expr>,
    ) -> ExprKind,
) -> Result<Json, InstanceError> {
    evaluate(
        &[("a", left), ("b", right)],
        json!({ "a": a, "b": b }),
        |build| expr(result, op(build.boxed_var(0), build.boxed_var(1))),
    )
}

#[test]
fn binary_operations_broadcast_as_in_numpy() {
    let column = (f32s(&["n", "1"]), json!([[1], [2]]));
    let row = (f32s(&["3"]), json!([10, 20, 30]));
    let output = of_two(column, row, f32s(&["n", "3"]), |lhs, rhs| {
        ExprKind::Binary {
            op: Binary::Add,
            lhs,
            rhs,
        }
    });
    assert_eq!(output, Ok(json!([[11.0, 21.0, 31.0], [12.0, 22.0, 32.0]])));
}

#[test]
fn lengths_that_do_not_broadcast_are_the_instances_error() {
    let a = (f32s(&["n"]), json!([1, 2]));
    let b = (f32s(&["m"]), json!([1, 2, 3]));
    let output = of_two(a, b, f32s(&["n"]), |lhs, rhs| ExprKind::Binary {
        op: Binary::Add,
        lhs,
        rhs,
    });
    assert_eq!(output.unwrap_err().kind, ErrorKind::ShapeMismatch);
}

#[test]
fn a_comparison_of_tensors_selects() {
    let args = json!({"x": [-1.5, 0.0, 2.0]});
    let output = evaluate(&[("x", f32s(&["3"]))], args, |b| {
        let zero = boxed(f32s(&[]), ExprKind::Lift(Box::new(float(0.0))));
        let positive = ExprKind::Binary {
            op: Binary::Gt,
            lhs: b.boxed_var(0),
            rhs: zero,
        };
        let other = boxed(f32s(&[]), ExprKind::Lift(Box::new(float(-9.0))));
        let select = ExprKind::Select {
            cond: boxed(tensor_of(Elem::Bool, &["3"]), positive),
            then: b.boxed_var(0),
            otherwise: other,
        };
        expr(f32s(&["3"]), select)
    });
    assert_eq!(output, Ok(json!([-9.0, -9.0, 2.0])));
}

#[test]
fn elementwise_functions_and_casts() {
    let output = of_x(f32s(&["2"]), json!([0, -3]), f32s(&["2"]), |value| {
        ExprKind::Unary {
            op: Unary::Sigmoid,
            value,
        }
    });
    assert_eq!(output, Ok(json!([0.5, 1.0 / (1.0 + 3.0_f64.exp())])));
    let output = of_x(
        f32s(&["2"]),
        json!([1.9, -1.9]),
        i32s(&["2"]),
        ExprKind::Cast,
    );
    assert_eq!(output, Ok(json!([1, -1])));
}

#[test]
fn products_of_every_pair_of_ranks() {
    let matmul = |lhs, rhs| ExprKind::MatMul { lhs, rhs };
    let matrix = || (f32s(&["2", "3"]), json!([[1, 2, 3], [4, 5, 6]]));
    let other = || (f32s(&["3", "2"]), json!([[1, 0], [0, 1], [1, 1]]));
    let pair = || (f32s(&["2"]), json!([10, 1]));
    let triple = || (f32s(&["3"]), json!([1, -1, 1]));
    let output = of_two(matrix(), other(), f32s(&["2", "2"]), matmul);
    assert_eq!(output, Ok(json!([[4.0, 5.0], [10.0, 11.0]])));
    let output = of_two(pair(), matrix(), f32s(&["3"]), matmul);
    assert_eq!(output, Ok(json!([14.0, 25.0, 36.0])));
    let output = of_two(matrix(), triple(), f32s(&["2"]), matmul);
    assert_eq!(output, Ok(json!([2.0, 5.0])));
    let output = of_two(triple(), triple(), f32s(&[]), matmul);
    assert_eq!(output, Ok(json!(3.0)));
}

#[test]
fn a_product_over_unequal_lengths_is_the_instances_error() {
    let a = (f32s(&["m", "k"]), json!([[1, 2]]));
    let b = (f32s(&["l", "n"]), json!([[1], [2], [3]]));
    let output = of_two(a, b, f32s(&["m", "n"]), |lhs, rhs| ExprKind::MatMul {
        lhs,
        rhs,
    });
    assert_eq!(output.unwrap_err().kind, ErrorKind::ShapeMismatch);
}

#[test]
fn reductions_take_their_axis_away() {
    let x = || json!([[1, 5, 3], [4, 2, 9]]);
    let ty = || f32s(&["2", "3"]);
    let reduce = |op, axis| move |value| ExprKind::Reduce { op, value, axis };
    let output = of_x(ty(), x(), f32s(&["3"]), reduce(Reduction::Sum, 0));
    assert_eq!(output, Ok(json!([5.0, 7.0, 12.0])));
    let output = of_x(ty(), x(), f32s(&["2"]), reduce(Reduction::Mean, 1));
    assert_eq!(output, Ok(json!([3.0, 5.0])));
    let output = of_x(ty(), x(), f32s(&["2"]), reduce(Reduction::Max, 1));
    assert_eq!(output, Ok(json!([5.0, 9.0])));
    let output = of_x(ty(), x(), f32s(&["3"]), reduce(Reduction::Min, 0));
    assert_eq!(output, Ok(json!([1.0, 2.0, 3.0])));
}

#[test]
fn argmax_is_the_first_of_equals() {
    let x = json!([[1, 7, 7], [3, 2, 1]]);
    let output = of_x(f32s(&["2", "3"]), x, i32s(&["2"]), |value| {
        ExprKind::ArgMax { value, axis: 1 }
    });
    assert_eq!(output, Ok(json!([1, 0])));
}

#[test]
fn softmax_sums_to_one_and_survives_large_numbers() {
    let x = json!([[1000, 1000], [0, -2000]]);
    let output = of_x(f32s(&["2", "2"]), x, f32s(&["2", "2"]), |value| {
        ExprKind::Softmax { value, axis: 1 }
    });
    assert_eq!(output, Ok(json!([[0.5, 0.5], [1.0, 0.0]])));
}

#[test]
fn slice_concat_reshape_and_transpose_move_elements() {
    let x = || json!([[1, 2, 3], [4, 5, 6]]);
    let ty = || f32s(&["2", "3"]);
    let output = of_x(ty(), x(), f32s(&["2", "2"]), |value| ExprKind::Slice {
        value,
        axis: 1,
        start: 1,
        length: 2,
    });
    assert_eq!(output, Ok(json!([[2.0, 3.0], [5.0, 6.0]])));
    let output = of_x(ty(), x(), f32s(&["3", "2"]), ExprKind::Reshape);
    assert_eq!(output, Ok(json!([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])));
    let output = of_x(ty(), x(), f32s(&["3", "2"]), |value| ExprKind::Transpose {
        value,
        permutation: vec![1, 0],
    });
    assert_eq!(output, Ok(json!([[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]])));
    let right = (f32s(&["2", "1"]), json!([[7], [8]]));
    let output = of_two((ty(), x()), right, f32s(&["2", "4"]), |a, b| {
        ExprKind::Concat {
            values: vec![*a, *b],
            axis: 1,
        }
    });
    assert_eq!(
        output,
        Ok(json!([[1.0, 2.0, 3.0, 7.0], [4.0, 5.0, 6.0, 8.0]]))
    );
}

#[test]
fn transpose_of_three_axes() {
    let x = json!([[[1, 2], [3, 4], [5, 6]]]);
    // Element [i, j, k] of the result is element [k, i, j] of the value.
    let output = of_x(f32s(&["1", "3", "2"]), x, f32s(&["3", "2", "1"]), |value| {
        ExprKind::Transpose {
            value,
            permutation: vec![1, 2, 0],
        }
    });
    assert_eq!(
        output,
        Ok(json!([[[1.0], [2.0]], [[3.0], [4.0]], [[5.0], [6.0]]]))
    );
}

#[test]
fn reshape_finds_the_one_length_that_the_type_leaves_open() {
    let x = json!([1, 2, 3, 4, 5, 6]);
    let output = of_x(f32s(&["n"]), x, f32s(&["m", "2"]), ExprKind::Reshape);
    assert_eq!(output, Ok(json!([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])));
    let output = of_x(
        f32s(&["n"]),
        json!([1, 2, 3]),
        f32s(&["m", "2"]),
        ExprKind::Reshape,
    );
    assert_eq!(output.unwrap_err().kind, ErrorKind::ShapeMismatch);
}

#[test]
fn rows_of_a_parameter_by_host_index_and_by_tensor() {
    let table = Tensor::f32(&[3, 2], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let param = || boxed(f32s(&["3", "2"]), ExprKind::Param(ParamId(0)));
    let row = {
        let build = Build::new("main", &[("w", I32)]);
        let body = ExprKind::Row {
            table: param(),
            index: build.boxed_var(0),
        };
        with_param(
            program(vec![build.finish(expr(f32s(&["2"]), body))]),
            "emb",
            Elem::F32,
            &[3, 2],
        )
    };
    let weights = [("emb", table)];
    let run_row = |w: i32| run_with(&row, &weights, json!({ "w": w }), Limits::default());
    assert_eq!(run_row(2), Ok(json!([5.0, 6.0])));
    for outside in [-1, 3] {
        assert_eq!(
            run_row(outside).unwrap_err().kind,
            ErrorKind::IndexOutOfRange
        );
    }
    let gather = {
        let build = Build::new("main", &[("w", i32s(&["n"]))]);
        let body = ExprKind::Gather {
            table: param(),
            indices: build.boxed_var(0),
        };
        let function = build.finish(expr(f32s(&["n", "2"]), body));
        with_param(program(vec![function]), "emb", Elem::F32, &[3, 2])
    };
    let run_gather = |w: Json| run_with(&gather, &weights, json!({ "w": w }), Limits::default());
    assert_eq!(
        run_gather(json!([2, 0])),
        Ok(json!([[5.0, 6.0], [1.0, 2.0]]))
    );
    assert_eq!(run_gather(json!([])), Ok(json!([])));
    assert_eq!(
        run_gather(json!([3])).unwrap_err().kind,
        ErrorKind::IndexOutOfRange
    );
}

#[test]
fn iota_counts_along_its_axis() {
    let output = of_x(f32s(&["n"]), json!([0, 0, 0]), i32s(&["n", "2"]), |value| {
        let _ = value;
        ExprKind::Iota { axis: 0 }
    });
    assert_eq!(output, Ok(json!([[0, 0], [1, 1], [2, 2]])));
}

#[test]
fn random_numbers_depend_on_instance_counter_and_position_only() {
    let draw = |id: &str, counter: i32| {
        let build = Build::new("main", &[("c", I32)]);
        let body = expr(
            f32s(&["4"]),
            ExprKind::Random {
                counter: build.boxed_var(0),
            },
        );
        let program = program(vec![build.finish(body)]);
        let oracle = cohort_oracle::Oracle::new(&program, Default::default()).unwrap();
        oracle
            .run(id, &json!({ "c": counter }), Limits::default())
            .unwrap()
    };
    assert_eq!(draw("a", 0), draw("a", 0));
    assert_ne!(draw("a", 0), draw("a", 1));
    assert_ne!(draw("a", 0), draw("b", 0));
    for number in draw("a", 7).as_array().unwrap() {
        assert!((0.0..1.0).contains(&number.as_f64().unwrap()));
    }
}
