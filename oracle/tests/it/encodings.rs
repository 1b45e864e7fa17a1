//! Inputs that do not fit, and streams of records.

use cohort_frontend::program::{ExprKind, Type};
use cohort_oracle::{ErrorKind, Limits, Oracle, StreamSummary};
use serde_json::{Value as Json, json};

use crate::build::*;
use crate::control::sum_program;

#[track_caller]
fn rejects(args: Json, message: &str) {
    let error = run(&sum_program(), args).unwrap_err();
    assert_eq!(
        (error.kind, error.message.as_str()),
        (ErrorKind::BadInput, message)
    );
}

#[test]
fn errors_name_the_path() {
    rejects(
        json!({"t": {"Node": [{"Leaf": [1]}, {"Leaf": [null]}]}}),
        "t.Node[1].Leaf[0]: expected an integer, found null",
    );
    rejects(
        json!({"t": {"Node": ["Empty"]}}),
        "t.Node: expected 2 fields, found 1",
    );
    rejects(
        json!({"t": {"Node": ["Empty", "Nil"]}}),
        "t.Node[1]: `Nil` is not a constructor of `Tree`",
    );
    rejects(json!({"t": "Leaf"}), "t.Leaf: expected 1 fields, found 0");
    rejects(
        json!({"t": {"Leaf": 3}}),
        "t.Leaf: expected an array, found 3",
    );
    rejects(
        json!({"t": {"Leaf": [1], "Empty": []}}),
        "t: expected an object with one constructor of `Tree`, found 2 members",
    );
    rejects(
        json!({"t": 5}),
        "t: expected a constructor of `Tree`, found 5",
    );
}

#[test]
fn an_i32_has_no_point_and_no_negative_zero() {
    for text in ["1.0", "1e0", "-0", "\"1\""] {
        let args: Json =
            serde_json::from_str(&format!("{{\"t\": {{\"Leaf\": [{text}]}}}}")).unwrap();
        let error = run(&sum_program(), args).unwrap_err();
        assert!(
            error.message.contains("expected an integer"),
            "{text}: {}",
            error.message
        );
    }
}

#[test]
fn the_path_to_a_deep_error_is_shortened() {
    let mut tree = json!("Nil");
    for _ in 0..60 {
        tree = json!({"Node": ["Empty", tree]});
    }
    let message = run(&sum_program(), json!({ "t": tree }))
        .unwrap_err()
        .message;
    assert!(message.len() < 300 && message.contains(" … "), "{message}");
}

#[test]
fn arguments_are_neither_missing_nor_too_many() {
    rejects(json!({}), "the argument `t` is missing");
    rejects(
        json!({"id": "x", "t": "Empty", "u": 1}),
        "`main` has no parameter `u`",
    );
    rejects(json!([1]), "expected an object, found an array of 1");
}

#[test]
fn integers_must_be_integers_that_fit() {
    rejects(
        json!({"t": {"Leaf": [1.0]}}),
        "t.Leaf[0]: expected an integer, found 1.0",
    );
    rejects(
        json!({"t": {"Leaf": [2147483648_u64]}}),
        "t.Leaf[0]: 2147483648 does not fit an i32",
    );
    rejects(
        json!({"t": {"Leaf": [true]}}),
        "t.Leaf[0]: expected an integer, found true",
    );
}

fn identity(ty: Type, x: Json) -> Result<Json, cohort_oracle::InstanceError> {
    evaluate(&[("x", ty)], json!({ "x": x }), |b| b.var(0))
}

#[test]
fn floats_are_the_f32_that_is_nearest() {
    assert_eq!(identity(F32, json!(0.1)), Ok(json!(f64::from(0.1_f32))));
    assert_eq!(
        identity(F32, json!(1e39)).unwrap_err().kind,
        ErrorKind::BadInput
    );
    assert_eq!(
        identity(F32, json!("nan")).unwrap_err().kind,
        ErrorKind::BadInput
    );
    for name in ["NaN", "Infinity", "-Infinity"] {
        assert_eq!(identity(F32, json!(name)), Ok(json!(name)));
    }
}

#[test]
fn tensors_are_nested_arrays_of_their_shape() {
    let ty = || f32s(&["n", "2"]);
    assert_eq!(
        identity(ty(), json!([[1, 2], [3, 4]])),
        Ok(json!([[1.0, 2.0], [3.0, 4.0]]))
    );
    assert_eq!(identity(ty(), json!([])), Ok(json!([])));
    for (x, message) in [
        (json!([[1, 2], [3]]), "x[1]: expected 2 elements, found 1"),
        (
            json!([[1, 2, 3]]),
            "x: axis 1: expected a length of 2, found 3",
        ),
        (json!([1, 2]), "x[0]: expected an array, found 1"),
        (
            json!([[1, [2]]]),
            "x[0][1]: expected a number, found an array of 1",
        ),
    ] {
        let error = identity(ty(), x).unwrap_err();
        assert_eq!(
            (error.kind, error.message.as_str()),
            (ErrorKind::BadInput, message)
        );
    }
}

#[test]
fn dims_of_one_name_have_one_length() {
    let params = [("a", f32s(&["m", "k"])), ("b", f32s(&["k"]))];
    let product = |args| {
        evaluate(&params, args, |build| {
            let (lhs, rhs) = (build.boxed_var(0), build.boxed_var(1));
            expr(f32s(&["m"]), ExprKind::MatMul { lhs, rhs })
        })
    };
    assert_eq!(
        product(json!({"a": [[1, 2]], "b": [3, 4]})),
        Ok(json!([11.0]))
    );
    // The length of `k` inside of an empty `a` comes from `b`, which is read later.
    assert_eq!(product(json!({"a": [], "b": [3, 4]})), Ok(json!([])));
    let error = product(json!({"a": [[1, 2]], "b": [3]})).unwrap_err();
    assert_eq!(error.kind, ErrorKind::ShapeMismatch);
}

#[test]
fn a_stream_answers_every_line_in_order() {
    let program = sum_program();
    let oracle = Oracle::new(&program, Default::default()).unwrap();
    let input = "{\"id\":\"a\",\"t\":{\"Leaf\":[4]}}\n\
        not json\n\
        \n\
        {\"t\":\"Empty\"}\n\
        {\"id\":7,\"t\":{\"Leaf\":[\"x\"]}}\n\
        {\"id\":[],\"t\":\"Empty\"}";
    let mut output = Vec::new();
    let summary = oracle
        .run_stream(input.as_bytes(), &mut output, Limits::default())
        .unwrap();
    assert_eq!(
        summary,
        StreamSummary {
            instances: 5,
            failed: 3
        }
    );
    let output = String::from_utf8(output).unwrap();
    let lines: Vec<&str> = output.lines().collect();
    assert_eq!(lines[0], r#"{"id":"a","output":4}"#);
    assert!(lines[1].starts_with(r#"{"id":2,"error":{"kind":"bad_input","message":"the line is"#));
    assert_eq!(lines[2], r#"{"id":4,"output":0}"#);
    assert_eq!(
        lines[3],
        r#"{"id":7,"error":{"kind":"bad_input","message":"t.Leaf[0]: expected an integer, found the string \"x\""}}"#
    );
    assert!(lines[4].starts_with(r#"{"id":6,"error""#));
    assert_eq!(lines.len(), 5);
}
