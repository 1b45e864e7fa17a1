//! Fields of constructors by name, in inputs and outputs.

use cohort_e2e::{Model, Rng};
use serde_json::{Value as Json, json};

use crate::language::check;

#[test]
fn fields_come_in_any_order_or_in_that_of_their_declaration() {
    let text = "type Tree = Leaf(word: i32) | Node(left: Tree, at: (f32[2], [i32]), right: Tree) | Pair(i32, Tree)
        fn swap(t: Tree) -> Tree {
          match t {
            Leaf(w) => Leaf(w + 1),
            Node(left = l, at = (a, k), right = r) => Node(right = swap(l), left = swap(r), at = (a * 2.0, reverse(k))),
            Pair(k, t) => Pair(k, swap(t))
          }
        }
        fn main(t: Tree, x: f32[n, 2]) -> (Tree, f32[n, 2]) { (swap(t), x) }";
    check(
        text,
        &[],
        &[
            r#"{"id":"a","x":[],"t":{"Node":{"right":{"Leaf":[1]},"at":[[1,2],[3,4]],"left":{"Leaf":{"word":5}}}}}"#,
            r#"{"id":"b","x":[[1,2]],"t":{"Node":[{"Pair":[3,{"Leaf":{"word":-1}}]},[[0.5,"NaN"],[]],{"Leaf":[7]}]}}"#,
            r#"{"id":"c","x":[],"t":{"Leaf":{"wrd":1}}}"#,
            r#"{"id":"d","x":[],"t":{"Leaf":{}}}"#,
            r#"{"id":"e","x":[],"t":{"Leaf":{"word":1,"more":2}}}"#,
            r#"{"id":"f","x":[],"t":{"Pair":{"word":1}}}"#,
            r#"{"id":"g","x":[],"t":{"Node":{"left":{"Leaf":[1]},"right":{"Leaf":[true]},"at":[[1,2],[]]}}}"#,
            r#"{"id":"h","x":[],"t":{"Node":{"left":{"Leaf":[1]},"at":[[1],[]],"right":{"Leaf":[1]}}}}"#,
            r#"{"id":"i","x":[],"t":{"Node":{"left":{"Leaf":[1]},"left":{"Leaf":[1]}}}}"#,
        ],
    );
}

/// What comes out goes in again, and is the same.
#[test]
fn outputs_have_the_names_and_are_inputs() {
    let text = "type Tree = Leaf(word: i32) | Node(left: Tree, right: Tree) | None
        fn main(t: Tree) -> Tree { t }";
    let model = Model::from_text(text, &[], &mut Rng::new(91));
    let input = r#"{"t":{"Node":[{"Leaf":[3]},{"Node":{"right":"None","left":{"Leaf":[4]}}}]}}"#;
    let outcome = model.batch_run().run(input);
    let expected = r#"{"id": 1, "output": {"Node": {"left": {"Leaf": {"word": 3}}, "right": {"Node": {"left": {"Leaf": {"word": 4}}, "right": "None"}}}}}"#;
    assert_eq!(outcome.lines(), [expected]);
    let record: Json = serde_json::from_str(expected).unwrap_or_default();
    let again = model
        .batch_run()
        .run(&json!({"t": record["output"]}).to_string());
    assert_eq!(again.lines(), [expected]);
}

/// What is wrong is told by the names.
#[test]
fn errors_name_fields() {
    let text = "type Tree = Leaf(word: i32) | Node(left: Tree, right: Tree)
        fn main(t: Tree) -> Tree { t }";
    let model = Model::from_text(text, &[], &mut Rng::new(92));
    let cases = [
        (
            r#"{"Node":{"right":{"Leaf":{"word":true}}}}"#,
            "argument t: at .Node.right.Leaf.word: expected an i32, found true",
        ),
        (
            r#"{"Node":{"right":{"Leaf":[1]}}}"#,
            "argument t: at .Node.left: expected a Tree (Leaf, Node), found no such field",
        ),
        (
            r#"{"Leaf":{"word":1,"word":1}}"#,
            "argument t: at .Leaf.word: expected a field once, found `word` again",
        ),
        (
            r#"{"Leaf":{"words":1}}"#,
            "argument t: at .Leaf: expected a field of Leaf (word), found \"words\"",
        ),
        (
            r#"{"Leaf":3}"#,
            "argument t: expected a list or an object of the fields of Leaf, found 3",
        ),
    ];
    for (tree, message) in cases {
        let outcome = model.batch_run().run(&format!("{{\"t\":{tree}}}"));
        let record: Json = serde_json::from_str(&outcome.lines()[0]).unwrap_or_default();
        assert_eq!(record["error"]["message"], message);
    }
}

#[test]
fn a_constructor_with_whatever_fields() {
    check(
        "type Tree = Leaf(word: i32) | Node(left: Tree, right: Tree) | Pair(i32, Tree) | None
        fn depth(t: Tree) -> i32 {
          match t { Node(left = Node(..)) | Pair(..) => 2, Node(..) => 1, None(..) | Leaf(..) => 0 }
        }
        fn main(t: Tree) -> i32 { depth(t) }",
        &[],
        &[
            r#"{"t":{"Node":[{"Leaf":[3]},{"Leaf":[3]}]}}"#,
            r#"{"t":{"Node":[{"Node":["None","None"]},{"Leaf":[3]}]}}"#,
            r#"{"t":{"Pair":[3,{"Leaf":[3]}]}}"#,
            r#"{"t":"None"}"#,
        ],
    );
}
