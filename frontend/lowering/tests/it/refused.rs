//! What is not supported yet is refused where it is written.

use cohort_frontend::Diagnostic;
use cohort_frontend::program::{Binary, Elem, ExprKind};

use crate::build::*;

fn messages(refused: &[Diagnostic]) -> Vec<&str> {
    assert!(
        refused
            .iter()
            .all(|diagnostic| diagnostic.labels[0].span == place())
    );
    refused
        .iter()
        .map(|diagnostic| diagnostic.message.as_str())
        .collect()
}

#[test]
fn several_things_at_once() {
    let mut test = Test::new();
    let a = test.argument("a", tensor_of(Elem::I32, &[2]));
    let b = test.argument("b", tensor_of(Elem::I32, &[2]));
    let power = binary(
        Binary::Pow,
        a.clone(),
        b.clone(),
        tensor_of(Elem::I32, &[2]),
    );
    let body = binary(Binary::Div, b, power, tensor_of(Elem::I32, &[2]));
    let refused = test.try_lower(body).expect_err("is refused");
    let expected = [
        "not supported yet: division of integer tensors by a tensor",
        "not supported yet: powers of integers",
    ];
    assert_eq!(messages(&refused), expected);
}

#[test]
fn a_length_that_no_tensor_has() {
    let mut test = Test::new();
    let xs = test.argument("xs", array(ragged(&[3])));
    let sum = expr(ExprKind::Sum(boxed(xs)), ragged(&[3]));
    let refused = test.try_lower(sum).expect_err("is refused");
    let expected = "not supported yet: a tensor whose length no tensor in scope has";
    assert_eq!(messages(&refused), [expected]);
    assert_eq!(refused[0].labels[0].message, "this is `f32[n, 3]`");
}

#[test]
fn an_array_of_known_shapes_as_one_of_any() {
    let mut test = Test::new();
    let boxed_type = test.adt("Box", &[("Box", vec![array(ragged(&[]))])]);
    let xs = test.argument("xs", array(tensor(&[3])));
    let adt = cohort_frontend::program::Type::Adt(boxed_type);
    let construct = ExprKind::Construct {
        adt: boxed_type,
        constructor: 0,
        fields: vec![xs],
    };
    let expected =
        "not supported yet: a tensor of known shape as one whose shape differs by instance";
    assert_eq!(
        messages(
            &test
                .try_lower(expr(construct, adt))
                .expect_err("is refused")
        ),
        [expected]
    );
}

#[test]
fn integer_arithmetic_without_a_result_for_some_operands() {
    let ty = tensor_of(Elem::I32, &[3]);
    for (op, divisor) in [(Binary::Div, 0), (Binary::Rem, -1), (Binary::Pow, 2)] {
        let mut test = Test::new();
        let x = test.argument("x", ty.clone());
        let body = binary(op, x, lift(i32(divisor)), ty.clone());
        assert_eq!(
            test.try_lower(body).expect_err("is refused").len(),
            1,
            "{op:?}"
        );
    }
}

#[test]
fn a_parameter_called_main() {
    let mut test = Test::new();
    let main = test.param("main", &[3]);
    let expected = ["not supported yet: a parameter with the name of the entry"];
    assert_eq!(
        messages(&test.try_lower(main).expect_err("is refused")),
        expected
    );
}
