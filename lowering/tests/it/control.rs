//! Structure, control flow, arrays and host scalars.

use cohort_frontend::program::{Arm, Binary, Elem, ExprKind, Type, Unary};

use crate::build::*;

#[test]
fn a_recursive_function_matches_and_constructs() {
    let mut test = Test::new();
    let tree = test.adt("Tree", &[("Leaf", vec![I32]), ("Node", vec![])]);
    let ty = Type::Adt(tree);
    test.program.adts[tree.0].constructors[1].fields = vec![ty.clone(), ty.clone()];

    let argument = test.argument("t", ty.clone());
    let word = test.var("w", I32);
    let left = test.var("l", ty.clone());
    let leaf = Arm {
        constructor: 0,
        fields: vec![Some(word)],
        body: test.get(word),
    };
    let call = ExprKind::Call {
        function: cohort_frontend::program::FunctionId(0),
        args: vec![test.get(left)],
    };
    let node = Arm {
        constructor: 1,
        fields: vec![Some(left), None],
        body: expr(call, I32),
    };
    let arms = vec![leaf, node];
    let body = expr(
        ExprKind::Match {
            scrutinee: boxed(argument),
            arms,
        },
        I32,
    );
    let leftmost = test.function("leftmost", body);

    let leaf = |value| {
        expr(
            ExprKind::Construct {
                adt: tree,
                constructor: 0,
                fields: vec![i32(value)],
            },
            ty.clone(),
        )
    };
    let node = ExprKind::Construct {
        adt: tree,
        constructor: 1,
        fields: vec![leaf(1), leaf(2)],
    };
    let call = ExprKind::Call {
        function: leftmost,
        args: vec![expr(node, ty.clone())],
    };
    expect(
        &test.lower(expr(call, I32)),
        &[
            r#"cfb.adt @Tree ["Leaf", "Node"] [[i32], [!cfb.adt<@Tree>, !cfb.adt<@Tree>]]"#,
            "func.func private @leftmost(%arg0: !cfb.adt<@Tree>) -> i32 {",
            "cfb.match %arg0 : !cfb.adt<@Tree> -> (i32) ({",
            "^bb0(%arg1: i32):",
            "cfb.yield %arg1 : i32",
            "^bb0(%arg1: !cfb.adt<@Tree>, %arg2: !cfb.adt<@Tree>):",
            "call @leftmost(%arg1)",
            "func.func @main() -> i32 attributes {",
            "cfb.entry",
            "cfb.construct \"Node\"",
            "call @leftmost(",
        ],
    );
}

#[test]
fn tuples_are_flat_but_where_structure_matters() {
    let mut test = Test::new();
    let pair = Type::Tuple(vec![F32, Type::Tuple(vec![I32, BOOL])]);
    let boxed_pair = test.adt("Box<(f32, (i32, bool))>", &[("Box", vec![pair.clone()])]);
    let argument = test.argument("p", pair.clone());
    let inner = ExprKind::TupleGet {
        tuple: boxed(argument.clone()),
        index: 1,
    };
    let inner = expr(inner, Type::Tuple(vec![I32, BOOL]));
    let made = ExprKind::Construct {
        adt: boxed_pair,
        constructor: 0,
        fields: vec![argument],
    };
    let made = expr(made, Type::Adt(boxed_pair));
    let ty = Type::Tuple(vec![inner.ty.clone(), made.ty.clone()]);
    expect(
        &test.lower(expr(ExprKind::Tuple(vec![inner, made]), ty)),
        &[
            r#"cfb.adt @"Box<(f32, (i32, bool))>" ["Box"] [[tuple<f32, tuple<i32, i1>>]]"#,
            "@main(%arg0: f32, %arg1: i32, %arg2: i1) -> (i32, i1, !cfb.adt<",
            "cfb.argument_types = [tuple<f32, tuple<i32, i1>>]",
            r#"cfb.arguments = ["p"]"#,
            r#"cfb.result_type = tuple<tuple<i32, i1>, !cfb.adt<@"Box<(f32, (i32, bool))>">>"#,
            "cfb.construct \"Box\"(%arg0, %arg1, %arg2)",
            "return %arg1, %arg2, %",
        ],
    );
}

#[test]
fn branches_and_loops() {
    let mut test = Test::new();
    let n = test.argument("n", I32);
    let (i, total) = (test.var("i", I32), test.var("total", F32));
    let below = scalar_binary(Binary::Lt, test.get(i), n, BOOL);
    let next = scalar_binary(Binary::Add, test.get(i), i32(1), I32);
    let even = scalar_binary(Binary::Rem, test.get(i), i32(2), I32);
    let even = scalar_binary(Binary::Eq, even, i32(0), BOOL);
    let grown = scalar_binary(Binary::Add, test.get(total), f32(0.5), F32);
    let branch = ExprKind::If {
        cond: boxed(even),
        then: boxed(grown),
        otherwise: boxed(test.get(total)),
    };
    let state = Type::Tuple(vec![I32, F32]);
    let body = expr(
        ExprKind::Tuple(vec![next, expr(branch, F32)]),
        state.clone(),
    );
    let looped = ExprKind::While {
        vars: vec![i, total],
        init: vec![i32(0), f32(0.0)],
        cond: boxed(below),
        body: boxed(body),
    };
    expect(
        &test.lower(expr(looped, state)),
        &[
            "scf.while (%arg1 = %c0_i32, %arg2 = %cst) : (i32, f32) -> (i32, f32) {",
            "arith.cmpi slt, %arg1, %arg0 : i32",
            "scf.condition(",
            "} do {",
            "arith.addi %arg1,",
            "arith.remsi",
            "scf.if %",
            "arith.addf %arg2,",
            "} else {",
            "scf.yield %arg2 : f32",
            "scf.yield",
        ],
    );
}

#[test]
fn arrays_of_tuples() {
    let mut test = Test::new();
    let element = Type::Tuple(vec![I32, F32]);
    let pair = expr(ExprKind::Tuple(vec![i32(1), f32(2.0)]), element.clone());
    let ty = array(element.clone());
    let made = expr(ExprKind::Array(vec![pair.clone()]), ty.clone());
    let pushed = ExprKind::Push {
        array: boxed(made),
        value: boxed(pair),
    };
    let reversed = expr(ExprKind::Reverse(boxed(expr(pushed, ty.clone()))), ty);
    let got = test.let_("xs", reversed, |_, xs| {
        let length = expr(ExprKind::Len(boxed(xs.clone())), I32);
        let last = scalar_binary(Binary::Sub, length, i32(1), I32);
        expr(
            ExprKind::Index {
                array: boxed(xs),
                index: boxed(last),
            },
            element,
        )
    });
    expect(
        &test.lower(got),
        &[
            "cfb.array_create %",
            "(i32, f32) -> !cfb.array<tuple<i32, f32>>",
            "cfb.array_push",
            "cfb.array_reverse",
            "cfb.array_len",
            "cfb.array_get",
            "-> (i32, f32)",
        ],
    );
}

#[test]
fn maps_folds_and_sums() {
    let mut test = Test::new();
    let xs = test.argument("xs", array(tensor(&[3])));
    let range = expr(ExprKind::Range(boxed(i32(4))), array(I32));
    let closure = test.closure(&[("x", tensor(&[3])), ("i", I32)], |_, args| {
        args[0].clone()
    });
    let mapped = ExprKind::Map {
        arrays: vec![xs, range],
        closure,
    };
    let mapped = expr(mapped, array(tensor(&[3])));
    let result = test.let_("ys", mapped, |test, ys| {
        let closure = test.closure(&[("count", I32), ("y", tensor(&[3]))], |_, args| {
            scalar_binary(Binary::Add, args[0].clone(), i32(1), I32)
        });
        let fold = ExprKind::Fold {
            array: boxed(ys.clone()),
            init: boxed(i32(0)),
            closure,
        };
        let sum = expr(ExprKind::Sum(boxed(ys)), tensor(&[3]));
        let ty = Type::Tuple(vec![I32, tensor(&[3])]);
        expr(ExprKind::Tuple(vec![expr(fold, I32), sum]), ty)
    });
    expect(
        &test.lower(result),
        &[
            "cfb.array_range",
            "cfb.map %arg0, %",
            "^bb0(%arg1: tensor<3xf32>, %arg2: i32):",
            "cfb.yield %arg1 : tensor<3xf32>",
            "cfb.fold",
            "^bb0(%arg1: i32, %arg2: tensor<3xf32>):",
            "arith.addi %arg1",
            "dense<0.000000e+00> : tensor<3xf32>",
            "cfb.fold",
            "arith.addf %arg1, %arg2 : tensor<3xf32>",
        ],
    );
}

#[test]
fn a_stack_is_the_entrys_result() {
    let mut test = Test::new();
    let xs = test.argument("xs", array(tensor(&[3])));
    let stack = expr(ExprKind::Stack(boxed(xs)), ragged(&[3]));
    let result = test.let_("ys", stack, |_, ys| ys);
    expect(
        &test.lower(result),
        &[
            "cfb.result_type = tensor<?x3xf32>",
            "cfb.stack %arg0 : !cfb.array<tensor<3xf32>> -> tensor<?x3xf32>",
        ],
    );
}

#[test]
fn host_scalars() {
    let mut test = Test::new();
    let x = test.argument("x", F32);
    let b = test.argument("b", BOOL);
    let all = [
        Unary::Neg,
        Unary::Abs,
        Unary::Exp,
        Unary::Log,
        Unary::Sqrt,
        Unary::Sin,
        Unary::Cos,
        Unary::Tanh,
        Unary::Erf,
        Unary::Sigmoid,
        Unary::Relu,
    ];
    let mut values: Vec<_> = all
        .into_iter()
        .map(|op| {
            expr(
                ExprKind::ScalarUnary {
                    op,
                    value: boxed(x.clone()),
                },
                F32,
            )
        })
        .collect();
    values.push(expr(
        ExprKind::ScalarUnary {
            op: Unary::Not,
            value: boxed(b.clone()),
        },
        BOOL,
    ));
    values.push(scalar_binary(Binary::Pow, x.clone(), f32(0.5), F32));
    values.push(scalar_binary(Binary::Ne, x.clone(), f32(0.5), BOOL));
    values.push(scalar_binary(Binary::And, b.clone(), bool(true), BOOL));
    values.push(scalar_binary(Binary::Ge, b, bool(true), BOOL));
    let ty = Type::Tuple(values.iter().map(|value| value.ty.clone()).collect());
    expect(
        &test.lower(expr(ExprKind::Tuple(values), ty)),
        &[
            "arith.negf",
            "math.absf",
            "math.exp",
            "math.log",
            "math.sqrt",
            "math.sin",
            "math.cos",
            "math.tanh",
            "math.erf",
            "arith.negf",
            "math.exp",
            "arith.addf",
            "arith.divf",
            "arith.maximumf",
            "arith.xori",
            "math.powf",
            "arith.cmpf une",
            "arith.andi",
            "arith.cmpi uge",
        ],
    );
}

#[test]
fn casts() {
    let mut test = Test::new();
    let (x, i, b) = (
        test.argument("x", F32),
        test.argument("i", I32),
        test.argument("b", BOOL),
    );
    let cast = |value: &cohort_frontend::program::Expr, to| {
        expr(ExprKind::ScalarCast(boxed(value.clone())), Type::Scalar(to))
    };
    let values = vec![
        cast(&i, Elem::F32),
        cast(&b, Elem::F32),
        cast(&b, Elem::I32),
        cast(&i, Elem::Bool),
        cast(&x, Elem::Bool),
        cast(&x, Elem::I32),
        cast(&x, Elem::F32),
    ];
    let ty = Type::Tuple(values.iter().map(|value| value.ty.clone()).collect());
    expect(
        &test.lower(expr(ExprKind::Tuple(values), ty)),
        &[
            "arith.sitofp",
            "arith.uitofp",
            "arith.extui",
            "arith.cmpi ne",
            "arith.cmpf une",
            "arith.maximumf",
            "arith.minimumf",
            "arith.cmpf ord",
            "arith.fptosi",
            "arith.select",
        ],
    );
}

#[test]
fn only_a_division_that_may_fail_is_checked() {
    let mut test = Test::new();
    let (a, b) = (test.argument("a", I32), test.argument("b", I32));
    let unknown = scalar_binary(Binary::Div, a.clone(), b, I32);
    let known = scalar_binary(Binary::Div, a, i32(3), I32);
    let ty = Type::Tuple(vec![I32, I32]);
    let text = test.lower(expr(ExprKind::Tuple(vec![unknown, known]), ty));
    expect(
        &text,
        &[
            "arith.divsi %arg0, %arg1 {cfb.checked} : i32",
            "arith.divsi %arg0, %c3_i32 : i32",
        ],
    );
}

#[test]
fn what_may_fail_runs_only_where_it_decides() {
    let mut test = Test::new();
    let xs = test.argument("xs", array(BOOL));
    let length = expr(ExprKind::Len(boxed(xs.clone())), I32);
    let some = scalar_binary(Binary::Lt, i32(0), length, BOOL);
    let first = expr(
        ExprKind::Index {
            array: boxed(xs),
            index: boxed(i32(0)),
        },
        BOOL,
    );
    let both = scalar_binary(Binary::And, some, first, BOOL);
    expect(
        &test.lower(both),
        &[
            "arith.cmpi slt",
            "scf.if",
            "cfb.array_get",
            "} else {",
            "%false",
            "scf.yield %false",
        ],
    );
}

#[test]
fn a_tensor_decides() {
    let mut test = Test::new();
    let p = test.argument("p", tensor_of(Elem::Bool, &[]));
    let cond = expr(ExprKind::Force(boxed(p)), BOOL);
    let branch = ExprKind::If {
        cond: boxed(cond),
        then: boxed(i32(1)),
        otherwise: boxed(i32(2)),
    };
    expect(
        &test.lower(expr(branch, I32)),
        &["cfb.force %arg0 : tensor<i1> -> i1", "scf.if"],
    );
}

#[test]
fn functions_give_way_to_parameters_and_the_entry() {
    let mut test = Test::new();
    let body = test.param("cell", &[3]);
    let cell = test.function("cell", body);
    let call = expr(
        ExprKind::Call {
            function: cell,
            args: vec![],
        },
        tensor(&[3]),
    );
    let main = test.function("main", call);
    let call = expr(
        ExprKind::Call {
            function: main,
            args: vec![],
        },
        tensor(&[3]),
    );
    expect(
        &test.lower(call),
        &[
            "#ml_program.extern",
            "ml_program.global public @cell(#extern) : tensor<3xf32>",
            "func.func private @cell_1()",
            "ml_program.global_load_const @cell : tensor<3xf32>",
            "func.func private @main_1()",
            "call @cell_1()",
            "func.func @main()",
            "call @main_1()",
        ],
    );
}

#[test]
fn a_long_chain_of_lets_needs_no_stack() {
    const COUNT: usize = 20_000;
    // Dropping the program takes a large stack, lowering it only a small one.
    let whole = || {
        let mut test = Test::new();
        let last = test.var("x", I32);
        let mut body = test.get(last);
        for _ in 0..COUNT {
            body = expr(
                ExprKind::Let {
                    var: last,
                    value: boxed(i32(1)),
                    body: boxed(body),
                },
                I32,
            );
        }
        test.program.entry = test.function("main", body);
        let program = &test.program;
        let text = std::thread::scope(|scope| {
            let small = std::thread::Builder::new().stack_size(256 << 10);
            let lowering = small.spawn_scoped(scope, || lower_program(program));
            lowering
                .expect("a thread starts")
                .join()
                .expect("the stack suffices")
        });
        assert_eq!(
            text.expect("is supported")
                .matches("arith.constant")
                .count(),
            COUNT
        );
    };
    let large = std::thread::Builder::new().stack_size(64 << 20);
    large
        .spawn(whole)
        .expect("a thread starts")
        .join()
        .expect("lowers");
}

#[test]
fn what_nests_as_deep_as_the_parser_allows() {
    let mut test = Test::new();
    let cond = test.argument("b", BOOL);
    let mut body = i32(0);
    for _ in 0..500 {
        let branch = ExprKind::If {
            cond: boxed(cond.clone()),
            then: boxed(body),
            otherwise: boxed(i32(1)),
        };
        body = expr(branch, I32);
    }
    assert_eq!(test.lower(body).matches("scf.if").count(), 500);
}
