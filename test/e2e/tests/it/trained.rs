//! The examples whose weights were trained by `batch-train` do what they were trained for.

use cohort_e2e::{BatchRun, paths};
use serde_json::Value as Json;

/// Each input of an example with what the program gives for it.
fn answers(name: &str) -> Vec<(Json, Json)> {
    let folder = paths::workspace().join("examples").join(name);
    let input =
        std::fs::read_to_string(folder.join("input.jsonl")).expect("the example has an input");
    let run = BatchRun::new(&folder.join(format!("{name}.coh")));
    let outcome = run
        .weights(&folder.join("weights.safetensors"))
        .run(&input)
        .expect_code(0);
    let json = |line: &str| serde_json::from_str::<Json>(line).expect("a line of JSON");
    let outputs = outcome.lines();
    assert_eq!(outputs.len(), input.lines().count());
    let outputs = outputs.iter().map(|line| json(line)["output"].take());
    input.lines().map(json).zip(outputs).collect()
}

#[test]
fn a_tape_is_read_up_to_its_mark() {
    let mut seen = std::collections::BTreeSet::new();
    for (input, output) in answers("ponder") {
        let tape = input["tape"].as_array().expect("a tape");
        let bits = tape.iter().position(|symbol| *symbol == 2).expect("a mark");
        let ones = tape[..bits].iter().filter(|bit| **bit == 1).count();
        assert_eq!(output, serde_json::json!([ones % 2, bits + 1]), "{input}");
        seen.insert(bits);
    }
    assert_eq!(seen.len(), 8, "tapes of all lengths");
}

#[test]
fn nested_lists_have_their_values() {
    let answers = answers("listops");
    let is_right = |(input, output): &&(Json, Json)| input["e"]["List"]["value"] == *output;
    let right = answers.iter().filter(is_right).count();
    assert!(
        right * 100 >= answers.len() * 90,
        "{right} of {} are right",
        answers.len()
    );
}
