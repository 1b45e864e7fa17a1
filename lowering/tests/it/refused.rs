//! What no lowering can say is refused where it is written, and what once was refused is not.

use cohort_frontend::program::{Binary, Elem, ExprKind, Type};

use crate::build::*;

#[test]
fn a_length_that_no_tensor_has() {
    let mut test = Test::new();
    let xs = test.argument("xs", array(ragged(&[3])));
    let sum = expr(ExprKind::Sum(boxed(xs)), ragged(&[3]));
    let refused = test.try_lower(sum).expect_err("is refused");
    assert_eq!(refused.len(), 1);
    assert_eq!(
        refused[0].message,
        "no tensor at hand tells a length of this"
    );
    assert_eq!(refused[0].labels[0].message, "this is `f32[n, 3]`");
    assert_eq!(refused[0].labels[0].span, place());
}

#[test]
fn an_array_of_known_shapes_as_one_of_any() {
    let mut test = Test::new();
    let boxed_type = test.adt("Box", &[("Box", vec![array(ragged(&[]))])]);
    let xs = test.argument("xs", array(tensor(&[3])));
    let construct = ExprKind::Construct {
        adt: boxed_type,
        constructor: 0,
        fields: vec![xs],
    };
    expect(
        &test.lower(expr(construct, Type::Adt(boxed_type))),
        &[
            "cfb.map %arg0",
            "cfb.length %c3",
            "cfb.widen %arg1(%2) : tensor<3xf32> -> tensor<?xf32>",
            "cfb.construct \"Box\"",
        ],
    );
}

/// Division by zero and by -1 traps in machine code; both have a result here.
#[test]
fn integers_divide_by_any_tensor() {
    let ty = tensor_of(Elem::I32, &[3]);
    let lowered = |op| {
        let mut test = Test::new();
        let x = test.argument("x", ty.clone());
        let y = test.argument("y", ty.clone());
        test.lower(binary(op, x, y, ty.clone()))
    };
    expect(
        &lowered(Binary::Div),
        &[
            "arith.cmpi eq, %arg1",
            "arith.select",
            "arith.divsi %arg0",
            "arith.select",
        ],
    );
    expect(
        &lowered(Binary::Rem),
        &["arith.cmpi eq, %arg1", "arith.select", "arith.remsi %arg0"],
    );
}

#[test]
fn powers_of_integers_are_one_operation() {
    let ty = tensor_of(Elem::I32, &[3]);
    let mut test = Test::new();
    let x = test.argument("x", ty.clone());
    let y = test.argument("y", ty.clone());
    expect(
        &test.lower(binary(Binary::Pow, x, y, ty)),
        &["math.ipowi %arg0, %arg1 : tensor<3xi32>"],
    );
}

#[test]
fn a_parameter_called_main() {
    let mut test = Test::new();
    let main = test.param("main", &[3]);
    expect(
        &test.lower(main),
        &["ml_program.global public @main(", "func.func @main_1("],
    );
}
