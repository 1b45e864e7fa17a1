//! Host scalars, and the ways between them and tensors.

use cohort_frontend::program::{Binary, Elem, Expr, ExprKind, Type, Unary};
use cohort_oracle::{ErrorKind, InstanceError};
use serde_json::{Value as Json, json};

use crate::build::*;

fn binary(op: Binary, result: Type, ty: Type, args: Json) -> Result<Json, InstanceError> {
    evaluate(&[("a", ty.clone()), ("b", ty)], args, |b| {
        expr(
            result,
            ExprKind::ScalarBinary {
                op,
                lhs: b.boxed_var(0),
                rhs: b.boxed_var(1),
            },
        )
    })
}

#[test]
fn arithmetic_of_integers_wraps() {
    let args = json!({"a": i32::MAX, "b": 2});
    assert_eq!(
        binary(Binary::Add, I32, I32, args.clone()),
        Ok(json!(i32::MIN + 1))
    );
    assert_eq!(binary(Binary::Mul, I32, I32, args), Ok(json!(-2)));
}

#[test]
fn division_by_zero_is_the_instances_error() {
    let error = binary(Binary::Div, I32, I32, json!({"a": 1, "b": 0})).unwrap_err();
    assert_eq!(error.kind, ErrorKind::DivisionByZero);
    let error = binary(Binary::Rem, I32, I32, json!({"a": 1, "b": 0})).unwrap_err();
    assert_eq!(error.kind, ErrorKind::DivisionByZero);
}

#[test]
fn comparisons_give_bools() {
    let args = json!({"a": 1.5, "b": 2.5});
    assert_eq!(binary(Binary::Lt, BOOL, F32, args.clone()), Ok(json!(true)));
    assert_eq!(binary(Binary::Ge, BOOL, F32, args), Ok(json!(false)));
}

#[test]
fn and_does_not_evaluate_its_right_side_in_vain() {
    let output = evaluate(&[("a", I32)], json!({"a": 0}), |b| {
        let quotient = expr(
            I32,
            ExprKind::ScalarBinary {
                op: Binary::Div,
                lhs: Box::new(int(1)),
                rhs: b.boxed_var(0),
            },
        );
        let rhs = boxed(
            BOOL,
            ExprKind::ScalarBinary {
                op: Binary::Gt,
                lhs: Box::new(quotient),
                rhs: Box::new(int(0)),
            },
        );
        expr(
            BOOL,
            ExprKind::ScalarBinary {
                op: Binary::And,
                lhs: Box::new(boolean(false)),
                rhs,
            },
        )
    });
    assert_eq!(output, Ok(json!(false)));
}

#[test]
fn unary_and_cast() {
    let output = evaluate(&[("a", F32)], json!({"a": -2.75}), |b| {
        let negated = boxed(
            F32,
            ExprKind::ScalarUnary {
                op: Unary::Neg,
                value: b.boxed_var(0),
            },
        );
        expr(I32, ExprKind::ScalarCast(negated))
    });
    assert_eq!(output, Ok(json!(2)));
}

#[test]
fn lift_force_and_fill_go_between_host_and_tensors() {
    let output = evaluate(&[("a", F32)], json!({"a": 0.5}), |b| {
        let lifted = boxed(f32s(&[]), ExprKind::Lift(b.boxed_var(0)));
        let sine = boxed(
            f32s(&[]),
            ExprKind::Unary {
                op: Unary::Sqrt,
                value: lifted,
            },
        );
        let forced = boxed(F32, ExprKind::Force(sine));
        expr(f32s(&["2"]), ExprKind::Fill(forced))
    });
    let root = 0.5_f64.sqrt();
    assert_eq!(output, Ok(json!([root, root])));
}

#[test]
fn the_length_of_an_axis_is_a_host_integer() {
    let args = json!({"x": [[1, 2], [3, 4], [5, 6]]});
    let output = evaluate(&[("x", f32s(&["n", "2"]))], args, |b| {
        expr(
            I32,
            ExprKind::DimSize {
                value: b.boxed_var(0),
                axis: 0,
            },
        )
    });
    assert_eq!(output, Ok(json!(3)));
}

/// What is forced of a program over `x: f32[3]` and `y: f32[3]`, its square roots.
fn decide(x: Json, decision: impl FnOnce(&Build) -> Expr) -> Result<Json, ErrorKind> {
    let output = evaluate(&[("x", f32s(&["3"]))], json!({ "x": x }), |b| {
        let forced = decision(b);
        let Type::Tensor { elem, .. } = forced.ty.clone() else {
            panic!("only a tensor is forced");
        };
        expr(Type::Scalar(elem), ExprKind::Force(Box::new(forced)))
    });
    output.map_err(|error| error.kind)
}

fn roots(b: &Build) -> Box<Expr> {
    let (op, value) = (Unary::Sqrt, b.boxed_var(0));
    boxed(f32s(&["3"]), ExprKind::Unary { op, value })
}

/// `sqrt(x)[index] > 1`, as an element of the comparison of all.
fn is_large(b: &Build, index: u64) -> Box<Expr> {
    let bools = |dims: &[&str]| tensor_of(Elem::Bool, dims);
    let (op, lhs) = (Binary::Gt, roots(b));
    let rhs = boxed(f32s(&[]), ExprKind::Lift(Box::new(float(1.0))));
    let value = boxed(bools(&["3"]), ExprKind::Binary { op, lhs, rhs });
    let slice = ExprKind::Slice {
        value,
        axis: 0,
        start: index,
        length: 1,
    };
    boxed(bools(&[]), ExprKind::Reshape(boxed(bools(&["1"]), slice)))
}

#[test]
fn a_decision_by_nan_is_an_error_and_what_is_not_asked_does_not_count() {
    let nan = Err(ErrorKind::NanDecision);
    for (x, index, expected) in [
        (json!([4, -4, 0]), 0, Ok(json!(true))),
        (json!([4, -4, 0]), 1, nan.clone()),
        (json!([4, -4, 0]), 2, Ok(json!(false))),
    ] {
        assert_eq!(decide(x, |b| *is_large(b, index)), expected);
    }
    for (x, op, expected) in [
        (json!([4, -4, 0]), Binary::And, nan.clone()),
        (json!([0, -4, 0]), Binary::And, Ok(json!(false))),
        (json!([-4, 0, 0]), Binary::And, nan.clone()),
        (json!([4, -4, 0]), Binary::Or, Ok(json!(true))),
        (json!([0, -4, 0]), Binary::Or, nan.clone()),
    ] {
        let connective = |b: &Build| {
            let (lhs, rhs) = (is_large(b, 0), is_large(b, 1));
            expr(lhs.ty.clone(), ExprKind::Binary { op, lhs, rhs })
        };
        assert_eq!(decide(x, connective), expected, "{op:?}");
    }
    for (x, expected) in [(json!([4, 9, 0]), Ok(json!(1))), (json!([4, 9, -1]), nan)] {
        let largest = |b: &Build| {
            let (value, axis) = (roots(b), 0);
            expr(i32s(&[]), ExprKind::ArgMax { value, axis })
        };
        assert_eq!(decide(x, largest), expected);
    }
}
