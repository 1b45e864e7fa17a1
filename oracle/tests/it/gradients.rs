//! Gradients where a rule has a convention, and what they are asked for by.

use std::collections::BTreeMap;

use cohort_frontend::{Sources, check};
use cohort_oracle::{
    ErrorKind, Gradient, InstanceError, Limits, Oracle, Question, Tensor, weight_shapes,
};
use serde_json::{Value as Json, json};

/// The answer for one instance of a program.
fn ask(
    text: &str,
    weights: &[(&str, Tensor)],
    args: Json,
    cotangent: Option<Json>,
) -> Result<Gradient, InstanceError> {
    let weights: BTreeMap<String, Tensor> = weights
        .iter()
        .map(|(name, tensor)| (name.to_string(), tensor.clone()))
        .collect();
    let mut sources = Sources::new();
    let file = sources.add("test.coh", text);
    let program = check(&sources, file)
        .and_then(|checked| checked.bind(&weight_shapes(&weights), &BTreeMap::new()))
        .unwrap_or_else(|diagnostics| panic!("{diagnostics:?}"));
    let oracle = Oracle::new(&program, weights).expect("the weights fit");
    let question = Question {
        cotangent: cotangent.as_ref(),
        of_inputs: true,
    };
    oracle.differentiate("test", &args, question, Limits::default())
}

/// The gradients of the inputs.
#[track_caller]
fn of_inputs(text: &str, args: Json) -> Json {
    let answer = ask(text, &[], args, None).expect("there is a gradient");
    answer.inputs.expect("it was asked for")
}

/// The gradient of one expression over `x: f32[n]`, each element of which counts by its index from 1.
#[track_caller]
fn of_x(expression: &str, x: Json) -> Json {
    let text = format!(
        "fn main(x: f32[n]) -> f32 {{ let y = {expression}; sum(y * f32(iota([len(y)], 0) + 1)) }}"
    );
    of_inputs(&text, json!({ "x": x }))["x"].take()
}

#[test]
fn what_is_flat_on_one_side_has_the_slope_zero_at_its_kink() {
    assert_eq!(of_x("relu(x)", json!([-1, 0, 2])), json!([0.0, 0.0, 3.0]));
    assert_eq!(
        of_x("max(x, 0.0)", json!([-1, 0, 2])),
        json!([0.0, 0.0, 3.0])
    );
    assert_eq!(
        of_x("min(x, 0.0)", json!([-1, 0, 2])),
        json!([1.0, 0.0, 0.0])
    );
    assert_eq!(of_x("abs(x)", json!([-1, 0, 2])), json!([-1.0, 0.0, 3.0]));
}

#[test]
fn of_equal_operands_the_right_one_is_the_larger() {
    let text = "fn main(a: f32, b: f32, c: f32[1]) -> f32 { max(a, b) + 2 * min(a, b) + c[0] }";
    let gradients = of_inputs(text, json!({"a": 1, "b": 1, "c": [5]}));
    assert_eq!(gradients, json!({"a": 0.0, "b": 3.0, "c": [1.0]}));
}

#[test]
fn elements_that_are_all_the_largest_share_the_gradient() {
    let text = "fn main(x: f32[n]) -> f32 { 6 * max(x) + min(x) }";
    let gradients = of_inputs(text, json!({"x": [2, 1, 2, 2]}));
    assert_eq!(gradients["x"], json!([2.0, 1.0, 2.0, 2.0]));
}

#[test]
fn sigmoid_is_flat_far_out_and_never_no_number() {
    let slope = 3.720_075_976_020_835_6e-44;
    assert_eq!(
        of_x("sigmoid(x)", json!([-100, -1000])),
        json!([slope, 0.0])
    );
}

#[test]
fn a_power_of_zero_has_a_slope() {
    let text = "fn main(a: f32, b: f32, c: f32[1]) -> f32 { pow(a + c[0], b + c[0]) }";
    let at = |a: i32, b: i32| of_inputs(text, json!({"a": a, "b": b, "c": [0]}));
    assert_eq!(at(0, 0), json!({"a": 0.0, "b": 0.0, "c": [0.0]}));
    assert_eq!(at(0, 2), json!({"a": 0.0, "b": 0.0, "c": [0.0]}));
    assert_eq!(at(0, 1), json!({"a": 1.0, "b": 0.0, "c": [1.0]}));
}

#[test]
fn what_select_does_not_choose_gets_nothing() {
    let chosen = of_x("select(x > 0.0, log(x), x * 3.0)", json!([-1, 1, 2]));
    assert_eq!(chosen, json!([3.0, 2.0, 1.5]));
}

#[test]
fn sorting_gives_each_gradient_back_to_where_its_element_was() {
    assert_eq!(of_x("sort(x)", json!([3, 1, 2])), json!([3.0, 1.0, 2.0]));
    let text = "fn main(x: f32[n]) -> f32 { let (best, _) = topk(x, 2); best[0] + 10 * best[1] }";
    let gradients = of_inputs(text, json!({"x": [3, 1, 2]}));
    assert_eq!(gradients["x"], json!([1.0, 0.0, 10.0]));
    assert_eq!(
        of_x(
            "scatter(x, stack([1, 1]), 10.0 * x[0..2])",
            json!([3, 1, 2])
        ),
        json!([1.0, 20.0, 3.0])
    );
    assert_eq!(of_x("cumsum(x)", json!([3, 1, 2])), json!([6.0, 5.0, 3.0]));
}

#[test]
fn a_row_that_is_looked_up_twice_gets_both_gradients() {
    let text = "dim V, D param emb: f32[V, D]
        fn main(words: [i32], also: i32[n]) -> f32 {
            sum(sum(map(words, |w| emb[w]))) + 10 * sum(gather(emb, also))
        }";
    let emb = ("emb", Tensor::f32(&[3, 1], vec![1.0, 2.0, 3.0]));
    let args = json!({"words": [2, 2, 0], "also": [0, 2, 0]});
    let answer = ask(text, &[emb], args, None).expect("there is a gradient");
    assert_eq!(answer.params, [Some(vec![21.0, 0.0, 12.0])]);
    assert_eq!(
        answer.inputs,
        Some(json!({"words": [null, null, null], "also": null}))
    );
}

#[test]
fn gradients_go_through_recursion_types_arrays_closures_and_loops() {
    let text = "dim H param w: f32[H]
        type Tree = Leaf(f32) | Node(Tree, Tree)
        fn total(t: Tree) -> f32[H] {
            match t { Leaf(x) => x * w, Node(l, r) => total(l) * total(r) }
        }
        fn main(t: Tree, xs: [(f32, i32)]) -> f32 {
            let turned = for (x, k) in xs with (s = total(t)) { s * x + f32(k) };
            let (_, s) = while i < 3 with (i = 0, s = sum(turned)) { (i + 1, s * 2) };
            s
        }";
    let w = ("w", Tensor::f32(&[1], vec![3.0]));
    let args = json!({
        "t": {"Node": [{"Leaf": [2]}, {"Leaf": [5]}]},
        "xs": [[7, 1], [11, 2]],
    });
    // 8 * ((10 w² * 7 + 1) * 11 + 2)
    let answer = ask(text, &[w], args, None).expect("there is a gradient");
    assert_eq!(answer.output, json!(8.0 * (631.0 * 11.0 + 2.0)));
    assert_eq!(answer.params, [Some(vec![8.0 * 77.0 * 20.0 * 3.0])]);
    let expected = json!({
        "t": {"Node": [
            {"Leaf": [8.0 * 77.0 * 5.0 * 9.0]},
            {"Leaf": [8.0 * 77.0 * 2.0 * 9.0]},
        ]},
        "xs": [[8.0 * 11.0 * 90.0, null], [8.0 * 631.0, null]],
    });
    assert_eq!(answer.inputs, Some(expected));
}

#[test]
fn nothing_flows_through_integers_decisions_and_random_numbers() {
    let text = "fn main(x: f32[n]) -> f32 {
            let k = f32(argmax(x)) + f32(i32(x[0])) + sum(random(3, [len(x)]));
            if sum(x) > 0.0 { k } else { 0.0 }
        }";
    assert_eq!(
        of_inputs(text, json!({"x": [1, 2]}))["x"],
        json!([0.0, 0.0])
    );
}

#[test]
fn cotangents_have_the_form_of_the_output() {
    let text = "type Box = Empty | Full(f32[2], i32)
        fn main(x: f32[2], k: i32) -> (f32[2], [f32], bool, Box, Box) {
            (x * x, [x[0], x[1]], k > 0, Full(x * 10, k), Empty)
        }";
    let args = json!({"x": [2, 3], "k": 1});
    let cotangent = json!([[1, 10], null, null, {"Full": [[0, 100], null]}, "Empty"]);
    let answer = ask(text, &[], args.clone(), Some(cotangent)).expect("there is a gradient");
    assert_eq!(answer.inputs, Some(json!({"x": [4.0, 1060.0], "k": null})));
    for wrong in [
        json!([[1, 10], null, null, null]),
        json!([[1, 10, 100], null, null, null, null]),
        json!([[1, "one"], null, null, null, null]),
        json!([null, null, 1, null, null]),
        json!([null, null, null, "Empty", null]),
        json!([null, null, null, {"Full": [[1, 1], 3]}, null]),
    ] {
        let error = ask(text, &[], args.clone(), Some(wrong)).unwrap_err();
        assert_eq!(error.kind, ErrorKind::BadInput, "{error}");
        assert!(error.message.contains("the cotangent"), "{error}");
    }
}

#[test]
fn a_loss_that_is_no_number_is_the_instances_error() {
    let text = "fn main(x: f32[n]) -> (f32, i32) { (log(sum(x)), len(x)) }";
    let fine = ask(text, &[], json!({"x": [4]}), None).expect("there is a gradient");
    assert_eq!(fine.inputs, Some(json!({"x": [0.25]})));
    for x in [0, -1] {
        let error = ask(text, &[], json!({ "x": [x] }), None).unwrap_err();
        assert_eq!(error.kind, ErrorKind::LossNotFinite, "{error}");
    }
}
