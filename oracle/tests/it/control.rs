//! Bindings, data types, branches, loops and calls.

use cohort_frontend::program::{AdtId, Arm, Binary, ExprKind, Program, Type, VarId};
use serde_json::{Value as Json, json};

use crate::build::*;

const TREE: Type = Type::Adt(AdtId(0));

/// `main(t) = match t { Leaf(w) => w, Node(l, r) => main(l) + 10 * main(r), Empty => 0 }`.
pub fn sum_program() -> Program {
    let mut build = Build::new("main", &[("t", TREE)]);
    let word = build.local("w", I32);
    let left = build.local("l", TREE);
    let right = build.local("r", TREE);
    let of = |var: usize, build: &Build| Box::new(call(I32, 0, vec![build.var(var)]));
    let tens = boxed(
        I32,
        ExprKind::ScalarBinary {
            op: Binary::Mul,
            lhs: Box::new(int(10)),
            rhs: of(right, &build),
        },
    );
    let sum = ExprKind::ScalarBinary {
        op: Binary::Add,
        lhs: of(left, &build),
        rhs: tens,
    };
    let arms = vec![
        Arm {
            constructor: 0,
            fields: vec![Some(VarId(word))],
            body: build.var(word),
        },
        Arm {
            constructor: 1,
            fields: vec![Some(VarId(left)), Some(VarId(right))],
            body: expr(I32, sum),
        },
        Arm {
            constructor: 2,
            fields: vec![],
            body: int(0),
        },
    ];
    let body = expr(
        I32,
        ExprKind::Match {
            scrutinee: build.boxed_var(0),
            arms,
        },
    );
    with_tree(program(vec![build.finish(body)]))
}

#[test]
fn recursion_over_a_tree() {
    let tree = json!({"Node": [{"Leaf": [1]}, {"Node": [{"Leaf": [2]}, "Empty"]}]});
    assert_eq!(run(&sum_program(), json!({ "t": tree })), Ok(json!(21)));
}

#[test]
fn a_constructed_tree_is_encoded_as_it_is_decoded() {
    let build = Build::new("main", &[("t", TREE), ("w", I32)]);
    let leaf = expr(
        TREE,
        ExprKind::Construct {
            adt: AdtId(0),
            constructor: 0,
            fields: vec![build.var(1)],
        },
    );
    let node = ExprKind::Construct {
        adt: AdtId(0),
        constructor: 1,
        fields: vec![build.var(0), leaf],
    };
    let program = with_tree(program(vec![build.finish(expr(TREE, node))]));
    let output = run(
        &program,
        json!({"t": {"Node": ["Empty", {"Leaf": [-3]}]}, "w": 8}),
    );
    let expected = json!({"Node": [{"Node": ["Empty", {"Leaf": [-3]}]}, {"Leaf": [8]}]});
    assert_eq!(output, Ok(expected));
}

#[test]
fn let_tuples_and_if() {
    let choose = |flag: bool| {
        evaluate(&[("flag", BOOL)], json!({ "flag": flag }), |b| {
            let pair_type = Type::Tuple(vec![I32, F32]);
            let pair = b.local("pair", pair_type.clone());
            let element = |ty: Type, index: usize, b: &Build| {
                expr(
                    ty,
                    ExprKind::TupleGet {
                        tuple: b.boxed_var(pair),
                        index,
                    },
                )
            };
            let swapped = Type::Tuple(vec![F32, I32]);
            let then = boxed(
                swapped.clone(),
                ExprKind::Tuple(vec![element(F32, 1, b), element(I32, 0, b)]),
            );
            let otherwise = boxed(swapped.clone(), ExprKind::Tuple(vec![float(-1.0), int(-1)]));
            let cond = b.boxed_var(0);
            let body = boxed(
                swapped.clone(),
                ExprKind::If {
                    cond,
                    then,
                    otherwise,
                },
            );
            let value = boxed(pair_type, ExprKind::Tuple(vec![int(7), float(0.25)]));
            expr(
                swapped,
                ExprKind::Let {
                    var: VarId(pair),
                    value,
                    body,
                },
            )
        })
    };
    assert_eq!(choose(true), Ok(json!([0.25, 7])));
    assert_eq!(choose(false), Ok(json!([-1.0, -1])));
}

/// Adds the numbers below `n`, in a loop over `(i, total)`.
fn sum_below(n: i32) -> Json {
    let output = evaluate(&[("n", I32)], json!({ "n": n }), |b| {
        let i = b.local("i", I32);
        let total = b.local("total", I32);
        let add = |lhs, rhs| {
            expr(
                I32,
                ExprKind::ScalarBinary {
                    op: Binary::Add,
                    lhs,
                    rhs,
                },
            )
        };
        let state = Type::Tuple(vec![I32, I32]);
        let next = vec![
            add(b.boxed_var(i), Box::new(int(1))),
            add(b.boxed_var(total), b.boxed_var(i)),
        ];
        let cond = ExprKind::ScalarBinary {
            op: Binary::Lt,
            lhs: b.boxed_var(i),
            rhs: b.boxed_var(0),
        };
        let body = boxed(state.clone(), ExprKind::Tuple(next));
        let loop_ = ExprKind::While {
            vars: vec![VarId(i), VarId(total)],
            init: vec![int(0), int(0)],
            cond: boxed(BOOL, cond),
            body,
        };
        expr(state, loop_)
    });
    output.expect("the loop ends")
}

#[test]
fn a_loop_gives_its_last_state() {
    assert_eq!(sum_below(0), json!([0, 0]));
    assert_eq!(sum_below(5), json!([5, 10]));
}

#[test]
fn a_loop_with_one_variable_has_no_tuple() {
    let output = evaluate(&[("n", I32)], json!({"n": 100}), |b| {
        let x = b.local("x", I32);
        let half = ExprKind::ScalarBinary {
            op: Binary::Div,
            lhs: b.boxed_var(x),
            rhs: Box::new(int(2)),
        };
        let cond = ExprKind::ScalarBinary {
            op: Binary::Gt,
            lhs: b.boxed_var(x),
            rhs: Box::new(int(10)),
        };
        let loop_ = ExprKind::While {
            vars: vec![VarId(x)],
            init: vec![b.var(0)],
            cond: boxed(BOOL, cond),
            body: boxed(I32, half),
        };
        expr(I32, loop_)
    });
    assert_eq!(output, Ok(json!(6)));
}
