//! Texts pass through programs and are compared.

use cohort_e2e::{Model, Rng};
use serde_json::Value as Json;

use crate::language::check;

#[test]
fn labels_pass_through_everything() {
    check(
        "type Tree = Leaf(word: str, at: f32[2]) | Node(left: Tree, label: str, right: Tree) | Empty
        fn swap(t: Tree) -> Tree {
          match t { Leaf(w, x) => Leaf(w, tanh(x)), Node(l, s, r) => Node(swap(r), s, swap(l)), Empty => t }
        }
        fn longest(words: [str], k: i32) -> str { if k < len(words) { words[k] } else { \"none\" } }
        fn main(name: str, t: Tree, words: [str], pairs: [(str, i32)], k: i32) -> (str, Tree, [str], [(str, i32)], str, [str]) {
          (name, swap(t), reverse(words), map(pairs, |(s, k)| (s, k + 1)), longest(words, k), push(words, \"end\"))
        }",
        &[],
        &[
            r#"{"id":"a","name":"x","t":{"Leaf":["the",[1,2]]},"words":["a","b"],"pairs":[["q",1],["",2]],"k":1}"#,
            r#"{"id":"b","name":"","t":{"Node":{"left":"Empty","label":"NP \"quoted\"","right":{"Leaf":["\u00e9\n\ud83d\ude00",[0,"NaN"]]}}},"words":[],"pairs":[],"k":0}"#,
            r#"{"id":"c","name":"exactly8","t":"Empty","words":["nine char","sixteen letters."],"pairs":[["\u0000",0]],"k":0}"#,
            r#"{"id":"d","name":3,"t":"Empty","words":[],"pairs":[],"k":0}"#,
            r#"{"id":"e","name":"x","t":"Empty","words":[null],"pairs":[],"k":0}"#,
            r#"{"id":"f","name":"x","t":{"Leaf":[["the"],[1,2]]},"words":[],"pairs":[],"k":0}"#,
        ],
    );
}

#[test]
fn texts_are_compared_by_their_characters() {
    check(
        "dim H
        param w: f32[H]
        type Node = Node(label: str, x: f32[H])
        fn score(n: Node) -> f32[H] {
          if n.label == \"NP\" { n.x * w } else { if n.label != \"\" { n.x + w } else { w } }
        }
        fn main(nodes: [Node], a: str, b: str) -> ([f32[H]], bool, [bool], i32) {
          (map(nodes, score), a == b, map(nodes, |n| n.label == a && a != \"zzzzzzzzzzzzzzzzzzzzzz\"),
           len(filter(nodes, |n| n.label == b)))
        }",
        &[("H", 3)],
        &[
            r#"{"nodes":[{"Node":["NP",[1,2,3]]},{"Node":["VP",[1,2,3]]},{"Node":["",[1,2,3]]}],"a":"NP","b":"NP"}"#,
            r#"{"nodes":[{"Node":["\u004eP",[1,2,3]]},{"Node":["NPa",[1,2,3]]}],"a":"NP","b":"NP "}"#,
            r#"{"nodes":[],"a":"12345678","b":"123456789"}"#,
            r#"{"nodes":[],"a":"zzzzzzzzzzzzzzzzzzzzzz","b":"zzzzzzzzzzzzzzzzzzzzzz"}"#,
        ],
    );
}

/// The characters of an input are those of the output.
#[test]
fn characters_stay_what_they_are() {
    let model = Model::from_text(
        "fn main(s: str) -> (str, str) { (s, debug(\"s\", s)) }",
        &[],
        &mut Rng::new(97),
    );
    let texts = [
        "",
        "a",
        "12345678",
        "\u{0}\u{1f}\"\\/",
        "é😀\u{2028}",
        &"long ".repeat(2000),
    ];
    let input: String = texts
        .iter()
        .map(|text| format!("{}\n", serde_json::json!({ "s": text })))
        .collect();
    let outcome = model.batch_run().run(&input).expect_code(0);
    for (text, line) in texts.iter().zip(outcome.lines()) {
        let record: Json = serde_json::from_str(&line).unwrap_or_default();
        assert_eq!(record["output"], serde_json::json!([text, text]));
    }
}

/// Texts count for an instance's memory.
#[test]
fn a_long_text_is_within_the_limit_of_memory() {
    let model = Model::from_text("fn main(s: str) -> str { s }", &[], &mut Rng::new(98));
    let input = format!("{{\"s\":\"{}\"}}\n{{\"s\":\"b\"}}\n", "a".repeat(100_000));
    let outcome = model
        .batch_run()
        .args(&["--max-memory", "50000"])
        .run(&input);
    let kinds: Vec<Json> = outcome
        .lines()
        .iter()
        .map(|line| serde_json::from_str::<Json>(line).unwrap_or_default()["error"]["kind"].clone())
        .collect();
    assert_eq!(kinds, [Json::from("memory_limit"), Json::Null]);
}
