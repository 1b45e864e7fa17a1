//! Limits: exceeding one is an error, and nothing overflows a stack.

use cohort_frontend::program::{ExprKind, Literal, VarId};
use cohort_oracle::{ErrorKind, Limits, Oracle};
use serde_json::{Value as Json, json};

use crate::build::*;
use crate::control::sum_program;

/// `{"Node": ["Empty", {"Node": ["Empty", … ]}]}` as text.
fn chain(depth: usize) -> String {
    let left = "{\"Node\":[\"Empty\",".repeat(depth);
    format!("{{\"t\":{left}\"Empty\"{}}}", "]}".repeat(depth))
}

fn run_chain(depth: usize, limits: Limits) -> Result<String, ErrorKind> {
    let program = sum_program();
    let oracle = Oracle::new(&program, Default::default()).unwrap();
    let mut output = Vec::new();
    oracle
        .run_stream(chain(depth).as_bytes(), &mut output, limits)
        .unwrap();
    let record: Json = serde_json::from_slice(&output).unwrap();
    match &record["error"]["kind"] {
        Json::Null => Ok(record["output"].to_string()),
        kind => {
            let kinds = [ErrorKind::DepthLimit, ErrorKind::StepLimit];
            Err(*kinds.iter().find(|k| *kind == k.as_str()).unwrap())
        }
    }
}

#[test]
fn the_default_depth_fits_the_stack() {
    // Frames are several times larger where nothing is optimised.
    let depth = if cfg!(debug_assertions) {
        20_000
    } else {
        99_990
    };
    assert_eq!(run_chain(depth, Limits::default()), Ok("0".to_string()));
}

#[test]
fn a_call_too_deep_is_an_error() {
    let limits = Limits {
        max_depth: 100,
        ..Limits::default()
    };
    assert_eq!(run_chain(99, limits), Ok("0".to_string()));
    assert_eq!(run_chain(100, limits), Err(ErrorKind::DepthLimit));
}

#[test]
fn text_that_nests_as_deep_as_any_limit_allows_is_read() {
    let limits = Limits {
        max_depth: u64::MAX,
        max_steps: 0,
        ..Limits::default()
    };
    assert_eq!(run_chain(249_000, limits), Err(ErrorKind::StepLimit));
}

#[test]
fn text_that_nests_without_end_is_an_error() {
    assert_eq!(
        run_chain(1_000_000, Limits::default()),
        Err(ErrorKind::DepthLimit)
    );
}

#[test]
fn a_depth_limit_beyond_the_stack_ends_in_an_error_too() {
    let limits = Limits {
        max_depth: u64::MAX,
        ..Limits::default()
    };
    let build = Build::new("main", &[("n", I32)]);
    let body = call(I32, 0, vec![build.var(0)]);
    let program = program(vec![build.finish(body)]);
    let error = run_with(&program, &[], json!({"n": 1}), limits).unwrap_err();
    assert_eq!(error.kind, ErrorKind::DepthLimit);
}

#[test]
fn a_loop_without_end_exceeds_the_steps() {
    let mut build = Build::new("main", &[("n", I32)]);
    let x = build.local("x", I32);
    let endless = ExprKind::While {
        vars: vec![VarId(x)],
        init: vec![build.var(0)],
        cond: boxed(BOOL, ExprKind::Literal(Literal::Bool(true))),
        body: build.boxed_var(x),
    };
    let program = program(vec![build.finish(expr(I32, endless))]);
    let limits = Limits {
        max_steps: 1000,
        ..Limits::default()
    };
    let error = run_with(&program, &[], json!({"n": 1}), limits).unwrap_err();
    assert_eq!(error.kind, ErrorKind::StepLimit);
}
