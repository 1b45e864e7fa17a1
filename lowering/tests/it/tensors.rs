//! Tensor arithmetic, products, reductions and shapes.

use cohort_frontend::program::{Binary, Elem, Expr, ExprKind, Reduction, Type, Unary};

use crate::build::*;

#[test]
fn every_operation_has_its_place_in_the_source() {
    let context = cohort_dialects::new_context();
    let mut test = Test::new();
    let x = test.argument("x", tensor(&[3]));
    let body = unary(Unary::Tanh, x);
    test.program.entry = test.function("main", body);
    let mut sources = cohort_frontend::Sources::new();
    sources.add("test.coh", SOURCE);
    let module = cohort_lowering::lower(&context, &test.program, &sources).expect("is supported");
    let flags = melior::ir::operation::OperationPrintingFlags::new().enable_debug_info(true, true);
    let text =
        melior::ir::operation::OperationLike::to_string_with_flags(&module.as_operation(), flags);
    expect(
        &text.expect("is text"),
        &["math.tanh ", "%arg0 : tensor<3xf32> test.coh:2:11"],
    );
}

#[test]
fn elementwise_operations() {
    let mut test = Test::new();
    let (x, y) = (
        test.argument("x", tensor(&[3])),
        test.argument("y", tensor(&[3])),
    );
    let bools = tensor_of(Elem::Bool, &[3]);
    let less = binary(Binary::Lt, x.clone(), y.clone(), bools.clone());
    let either = binary(
        Binary::Or,
        less.clone(),
        unary(Unary::Not, less.clone()),
        bools.clone(),
    );
    let select = ExprKind::Select {
        cond: boxed(either),
        then: boxed(binary(Binary::Max, x.clone(), y.clone(), tensor(&[3]))),
        otherwise: boxed(unary(Unary::Sigmoid, x.clone())),
    };
    let cast = expr(ExprKind::Cast(boxed(less)), tensor(&[3]));
    let body = binary(Binary::Div, expr(select, tensor(&[3])), cast, tensor(&[3]));
    expect(
        &test.lower(body),
        &[
            "arith.cmpf olt, %arg0, %arg1 : tensor<3xf32>",
            "arith.xori",
            "arith.ori",
            "arith.maximumf %arg0, %arg1",
            "dense<1.000000e+00> : tensor<3xf32>",
            "arith.negf",
            "math.exp",
            "arith.addf",
            "arith.divf",
            "arith.select %",
            "tensor<3xi1>, tensor<3xf32>",
            "arith.uitofp",
            "arith.divf",
        ],
    );
}

#[test]
fn a_literal_becomes_a_constant_of_the_whole_shape() {
    let mut test = Test::new();
    let x = test.argument("x", tensor(&[2, 3]));
    let one = test.let_("one", f32(1.5), |_, one| {
        let doubled = binary(Binary::Mul, x.clone(), lift(f32(2.0)), tensor(&[2, 3]));
        binary(Binary::Add, doubled, lift(one), tensor(&[2, 3]))
    });
    let text = test.lower(one);
    expect(
        &text,
        &[
            "dense<2.000000e+00> : tensor<2x3xf32>",
            "arith.mulf",
            "dense<1.500000e+00> : tensor<2x3xf32>",
        ],
    );
    assert!(
        !text.contains("linalg.broadcast") && !text.contains("from_elements"),
        "{text}"
    );
}

#[test]
fn a_host_scalar_is_spread() {
    let mut test = Test::new();
    let (x, s) = (test.argument("x", tensor(&[3])), test.argument("s", F32));
    let fill = expr(ExprKind::Fill(boxed(s.clone())), tensor(&[3]));
    let product = binary(Binary::Mul, x, lift(s), tensor(&[3]));
    expect(
        &test.lower(binary(Binary::Add, product, fill, tensor(&[3]))),
        &[
            "tensor.from_elements %arg1 : tensor<f32>",
            "linalg.broadcast ins(%from_elements : tensor<f32>) outs(%0 : tensor<3xf32>) dimensions = [0]",
            "arith.mulf",
            "linalg.broadcast",
        ],
    );
}

#[test]
fn axes_of_one_collapse_before_they_grow() {
    let mut test = Test::new();
    let x = test.argument("x", tensor(&[4, 1, 3]));
    let y = test.argument("y", tensor(&[5, 1]));
    expect(
        &test.lower(binary(Binary::Add, x, y, tensor(&[4, 5, 3]))),
        &[
            "tensor.collapse_shape %arg0 [[0], [1, 2]] : tensor<4x1x3xf32> into tensor<4x3xf32>",
            "linalg.broadcast ins(%collapsed : tensor<4x3xf32>)",
            "dimensions = [1]",
            "tensor.collapse_shape %arg1 [[0, 1]] : tensor<5x1xf32> into tensor<5xf32>",
            "dimensions = [0, 2]",
        ],
    );
}

#[test]
fn products_of_every_rank() {
    let cases = [
        ([&[3][..], &[3], &[]], "linalg.dot ins("),
        ([&[3], &[3, 5], &[5]], "linalg.vecmat ins("),
        ([&[2, 3], &[3], &[2]], "linalg.matvec ins("),
        ([&[2, 3], &[3, 5], &[2, 5]], "linalg.matmul ins("),
    ];
    for ([lhs, rhs, result], name) in cases {
        let mut test = Test::new();
        let (lhs, rhs) = (test.argument("a", tensor(lhs)), test.param("w", rhs));
        let product = ExprKind::MatMul {
            lhs: boxed(lhs),
            rhs: boxed(rhs),
        };
        expect(
            &test.lower(expr(product, tensor(result))),
            &[
                "ml_program.global_load_const @w",
                "tensor.empty()",
                "linalg.fill ins(%cst : f32)",
                name,
            ],
        );
    }
}

#[test]
fn reductions() {
    let cases = [
        (Reduction::Sum, "0.000000e+00", "arith.addf"),
        (Reduction::Max, "0xFF800000", "arith.maximumf"),
        (Reduction::Min, "0x7F800000", "arith.minimumf"),
    ];
    for (op, neutral, combine) in cases {
        let mut test = Test::new();
        let x = test.argument("x", tensor(&[2, 3]));
        let reduced = expr(
            ExprKind::Reduce {
                op,
                value: boxed(x),
                axis: 1,
            },
            tensor(&[2]),
        );
        let combine = format!("linalg.reduce {{ {combine} }} ins(%arg0 : tensor<2x3xf32>)");
        expect(
            &test.lower(reduced),
            &[neutral, "linalg.fill", &combine, "dimensions = [1]"],
        );
    }
}

#[test]
fn a_mean_is_a_sum_and_a_product() {
    let mut test = Test::new();
    let x = test.argument("x", tensor(&[4]));
    let mean = ExprKind::Reduce {
        op: Reduction::Mean,
        value: boxed(x),
        axis: 0,
    };
    let parts = [
        "arith.addf",
        "dense<2.500000e-01> : tensor<f32>",
        "arith.mulf",
    ];
    expect(&test.lower(expr(mean, tensor(&[]))), &parts);
}

#[test]
fn a_softmax_is_written_out() {
    let mut test = Test::new();
    let x = test.argument("x", tensor(&[2, 3]));
    let softmax = expr(
        ExprKind::Softmax {
            value: boxed(x),
            axis: 1,
        },
        tensor(&[2, 3]),
    );
    expect(
        &test.lower(softmax),
        &[
            "linalg.reduce { arith.maximumf }",
            "linalg.broadcast",
            "arith.subf",
            "math.exp",
            "linalg.reduce { arith.addf }",
            "linalg.broadcast",
            "arith.divf",
        ],
    );
}

#[test]
fn argmax_of_every_element_type() {
    for elem in [Elem::F32, Elem::I32, Elem::Bool] {
        let mut test = Test::new();
        let x = test.argument("x", tensor_of(elem, &[2, 3]));
        let argmax = ExprKind::ArgMax {
            value: boxed(x),
            axis: 1,
        };
        let text = test.lower(expr(argmax, tensor_of(Elem::I32, &[2])));
        expect(
            &text,
            &[
                "linalg.generic {indexing_maps = [#map, #map1, #map1], iterator_types = [\"parallel\", \"reduction\"]}",
                "linalg.index 1 : index",
                "arith.index_cast",
                "arith.select",
                "linalg.yield",
                "return %",
                "#1",
            ],
        );
    }
}

#[test]
fn slices_and_concatenation() {
    let mut test = Test::new();
    let x = test.argument("x", tensor(&[2, 6]));
    let slice = |start, length| {
        let kind = ExprKind::Slice {
            value: boxed(x.clone()),
            axis: 1,
            start,
            length,
        };
        expr(kind, tensor(&[2, length]))
    };
    let values = vec![slice(1, 2), slice(3, 3)];
    expect(
        &test.lower(expr(ExprKind::Concat { values, axis: 1 }, tensor(&[2, 5]))),
        &[
            "tensor.extract_slice %arg0[0, 1] [2, 2] [1, 1] : tensor<2x6xf32> to tensor<2x2xf32>",
            "tensor.extract_slice %arg0[0, 3] [2, 3] [1, 1]",
            "tensor.concat dim(1) %",
        ],
    );
}

fn reshape(from: &[u64], to: &[u64]) -> String {
    let mut test = Test::new();
    let x = test.argument("x", tensor(from));
    test.lower(expr(ExprKind::Reshape(boxed(x)), tensor(to)))
}

#[test]
fn reshapes() {
    expect(
        &reshape(&[4, 6], &[24]),
        &["tensor.collapse_shape %arg0 [[0, 1]]"],
    );
    expect(
        &reshape(&[4, 6], &[4, 2, 3]),
        &["tensor.expand_shape %arg0 [[0], [1, 2]] output_shape [4, 2, 3]"],
    );
    expect(
        &reshape(&[4, 6], &[8, 3]),
        &[
            "tensor.collapse_shape",
            "into tensor<24xf32>",
            "tensor.expand_shape",
        ],
    );
    expect(&reshape(&[1, 1], &[]), &["tensor.collapse_shape %arg0 []"]);
    expect(
        &reshape(&[], &[1]),
        &["tensor.expand_shape %arg0 [] output_shape [1]"],
    );
    expect(&reshape(&[5], &[5]), &["return %arg0"]);
    expect(
        &reshape(&[5], &[1, 5, 1]),
        &["tensor.expand_shape %arg0 [[0, 1, 2]]"],
    );
}

#[test]
fn transposition() {
    let mut test = Test::new();
    let x = test.argument("x", tensor(&[2, 3, 5]));
    let permutation = vec![2, 0, 1];
    let transposed = ExprKind::Transpose {
        value: boxed(x),
        permutation,
    };
    expect(
        &test.lower(expr(transposed, tensor(&[5, 2, 3]))),
        &[
            "linalg.transpose ins(%arg0 : tensor<2x3x5xf32>) outs(%0 : tensor<5x2x3xf32>) permutation = [2, 0, 1]",
        ],
    );
}

#[test]
fn rows_sizes_and_indices() {
    let mut test = Test::new();
    let (table, word) = (test.param("emb", &[7, 3]), test.argument("w", I32));
    let size = expr(
        ExprKind::DimSize {
            value: boxed(table.clone()),
            axis: 0,
        },
        I32,
    );
    let row = expr(
        ExprKind::Row {
            table: boxed(table),
            index: boxed(word),
        },
        tensor(&[3]),
    );
    let line = expr(ExprKind::Iota { axis: 0 }, tensor_of(Elem::I32, &[3]));
    let plane = expr(ExprKind::Iota { axis: 1 }, tensor_of(Elem::I32, &[2, 3]));
    let values: Vec<Expr> = vec![size, row, line, plane];
    let ty = Type::Tuple(values.iter().map(|value| value.ty.clone()).collect());
    expect(
        &test.lower(expr(ExprKind::Tuple(values), ty)),
        &[
            "arith.constant 7 : i32",
            "cfb.lookup %emb[%arg0] : tensor<7x3xf32> -> tensor<3xf32>",
            "arith.constant dense<[0, 1, 2]> : tensor<3xi32>",
            "linalg.broadcast",
            "dimensions = [0]",
        ],
    );
}

#[test]
fn a_known_row_of_a_computed_tensor_is_a_slice() {
    let row = |index| {
        let mut test = Test::new();
        let x = test.argument("x", tensor(&[4, 3]));
        let row = ExprKind::Row {
            table: boxed(x),
            index: boxed(i32(index)),
        };
        test.lower(expr(row, tensor(&[3])))
    };
    expect(
        &row(2),
        &[
            "tensor.extract_slice %arg0[2, 0] [1, 3] [1, 1]",
            "tensor.collapse_shape %extracted_slice [[0, 1]] : tensor<1x3xf32> into tensor<3xf32>",
        ],
    );
    // Out of range is found out when it runs, as for any index.
    expect(
        &row(4),
        &[
            "cfb.widen %arg0(%0) : tensor<4x3xf32> -> tensor<?x3xf32>",
            "cfb.lookup %1[%c4_i32]",
        ],
    );
}

#[test]
fn integers_divide_by_literals() {
    let mut test = Test::new();
    let x = test.argument("x", tensor_of(Elem::I32, &[3]));
    let half = binary(Binary::Div, x, lift(i32(2)), tensor_of(Elem::I32, &[3]));
    expect(
        &test.lower(half),
        &["arith.divsi %arg0, %cst : tensor<3xi32>"],
    );
}
