//! Isolation: a bad line is an error record in its place, and the others keep their bits.

use cohort_e2e::records::Record;
use cohort_e2e::{Model, Rng};
use serde_json::json;

use crate::models::{MODELS, ModelCase, model_case, to_text};

/// A line, and the kinds of error that it may be.
struct BadLine {
    text: String,
    kinds: &'static [&'static str],
}

fn bad(text: impl Into<String>) -> BadLine {
    BadLine {
        text: text.into(),
        kinds: &["bad_input"],
    }
}

fn out_of_range(text: impl Into<String>) -> BadLine {
    BadLine {
        text: text.into(),
        kinds: &["index_out_of_range"],
    }
}

/// Runs good lines with bad lines between them, and compares with the good lines alone.
#[track_caller]
fn check_isolation(model: &Model, good: &[String], bad_lines: &[BadLine]) {
    let clean = model
        .batch_run()
        .run(&good.join("\n"))
        .expect_code(0)
        .lines();
    assert_eq!(clean.len(), good.len());

    // Each bad line stands behind a good one, and there are good ones at both ends.
    let mut mixed = Vec::new();
    for index in 0..good.len().max(bad_lines.len() + 1) {
        mixed.push((good[index % good.len()].clone(), None));
        if let Some(bad) = bad_lines.get(index) {
            mixed.push((bad.text.clone(), Some(bad)));
        }
    }
    let input: String = mixed.iter().map(|(line, _)| format!("{line}\n")).collect();
    let outcome = model.batch_run().run(&input).expect_code(1);
    let lines = outcome.lines();
    assert_eq!(
        lines.len(),
        mixed.len(),
        "the number of records of {}",
        outcome.describe()
    );

    let mut expected_good = clean.iter().cycle();
    for (line, (text, bad)) in lines.iter().zip(&mixed) {
        let shown: String = text.chars().take(200).collect();
        match bad {
            None => {
                let expected = expected_good.next().expect("an endless iterator");
                assert!(
                    line == expected,
                    "another's error changed {shown}\n{expected}\n{line}"
                );
            }
            Some(bad) => {
                let record = Record::parse(line).expect("already checked");
                let Err(error) = record.result else {
                    panic!("no error for {shown}\n{line}");
                };
                assert!(
                    bad.kinds.contains(&error.kind.as_str()),
                    "{:?} expected for {shown}\n{line}",
                    bad.kinds
                );
                assert!(
                    !error.message.trim().is_empty(),
                    "no message for {shown}\n{line}"
                );
            }
        }
    }
}

fn good_lines(name: &str, model: &Model, count: usize) -> Vec<String> {
    let instances = model_case(name).instances(model, count, &mut Rng::new(31));
    instances
        .iter()
        .map(|instance| instance.to_string())
        .collect()
}

#[test]
fn lines_that_are_not_json() {
    let model = model_case("treelstm").shipped();
    let lines = [
        "nonsense",
        "{",
        "}",
        "{\"t\":{\"Leaf\":[0]}",
        "{\"t\":{\"Leaf\":[0]}}}",
        "{\"t\":{\"Leaf\":[0]}} {\"t\":{\"Leaf\":[0]}}",
        "{'t':{'Leaf':[0]}}",
        "{\"t\":{\"Leaf\":[0,]}}",
        "{\"t\":{\"Leaf\":[00]}}",
        "{\"t\":{\"Leaf\":[+1]}}",
        "{\"t\":{\"Leaf\":[NaN]}}",
        "{\"t\" {\"Leaf\":[0]}}",
        "{\"t\":\"\\q\"}",
        "{\"id\":\"\\ud800\",\"t\":{\"Leaf\":[0]}}",
        "{\"t\":\"unfinished}",
        "\u{0}",
    ];
    check_isolation(&model, &good_lines("treelstm", &model, 9), &lines.map(bad));
}

#[test]
fn lines_that_are_no_instance() {
    let model = model_case("treelstm").shipped();
    let lines = [
        "null",
        "[]",
        "3",
        "\"t\"",
        "{}",
        "{\"id\":\"only\"}",
        "{\"id\":\"u\",\"t\":{\"Leaf\":[0]},\"u\":1}",
        "{\"id\":\"wrong name\",\"T\":{\"Leaf\":[0]}}",
    ];
    check_isolation(&model, &good_lines("treelstm", &model, 9), &lines.map(bad));
}

#[test]
fn values_of_another_type() {
    let model = model_case("treelstm").shipped();
    let values = [
        "null",
        "true",
        "7",
        "\"Leaf\"",
        "[]",
        "{}",
        "{\"Leaf\":[]}",
        "{\"Leaf\":[0,0]}",
        "{\"Leaf\":0}",
        "{\"Leaf\":{\"0\":0}}",
        "{\"Leaf\":[0.5]}",
        "{\"Leaf\":[\"0\"]}",
        "{\"Leaf\":[null]}",
        "{\"Leaf\":[[0]]}",
        "{\"Leaf\":[\"NaN\"]}",
        "{\"Leaf\":[2147483648]}",
        "{\"Leaf\":[-2147483649]}",
        "{\"Leaf\":[99999999999999999999999]}",
        "{\"Leef\":[0]}",
        "{\"leaf\":[0]}",
        "{\"Leaf\":[0],\"Node\":[]}",
        "{\"Node\":[{\"Leaf\":[0]}]}",
        "{\"Node\":[{\"Leaf\":[0]},{\"Leaf\":[0]},{\"Leaf\":[0]}]}",
        "{\"Node\":[{\"Leaf\":[0]},{\"Node\":[{\"Leaf\":[0]},\"Empty\"]}]}",
    ];
    let lines = values.map(|value| bad(format!("{{\"id\":\"bad\",\"t\":{value}}}")));
    check_isolation(&model, &good_lines("treelstm", &model, 9), &lines);
}

#[test]
fn the_message_says_where_and_what() {
    let model = model_case("treelstm").shipped();
    let input = "{\"id\":\"b\",\"t\":{\"Node\":[{\"Leaf\":[0]},{\"Nod\":[]}]}}\n";
    let outcome = model.batch_run().run(input).expect_code(1);
    let records = outcome.records();
    assert_eq!(records[0].id, json!("b"));
    let Err(error) = &records[0].result else {
        panic!("no error: {}", outcome.output)
    };
    for text in ["t", "Nod", "[1]"] {
        assert!(
            error.message.contains(text),
            "the message lacks `{text}`: {}",
            error.message
        );
    }
}

#[test]
fn words_outside_of_the_vocabulary() {
    let of_words = |case: &&ModelCase| case.name != "dagrnn" && case.dims.contains(&"V");
    for case in MODELS.iter().filter(of_words) {
        let model = case.shipped();
        let words = model.vocabulary();
        let good = good_lines(case.name, &model, 9);
        let lines: Vec<BadLine> = [-1, i64::from(i32::MIN), words as i64, i64::from(i32::MAX)]
            .iter()
            .map(|word| out_of_range(line_with_word(case.name, *word)))
            .collect();
        check_isolation(&model, &good, &lines);
    }
}

/// An instance with the word deep inside.
fn line_with_word(model: &str, word: i64) -> String {
    match model {
        "childsum" => {
            let tree = json!({"Tree": [0, [{"Tree": [0, []]}, {"Tree": [word, []]}]]});
            json!({"id": "bad", "a": {"Tree": [0, []]}, "b": tree}).to_string()
        }
        "birnn" | "nestedrnn" | "stackrnn" => {
            json!({"id": "bad", "words": [0, 0, word]}).to_string()
        }
        _ => {
            let tree =
                json!({"Node": [{"Leaf": [0]}, {"Node": [{"Leaf": [word]}, {"Leaf": [0]}]}]});
            json!({"id": "bad", "t": tree}).to_string()
        }
    }
}

#[test]
fn indices_of_nodes_that_do_not_exist_yet() {
    let model = model_case("dagrnn").shipped();
    let good = good_lines("dagrnn", &model, 9);
    let words = model.vocabulary();
    let lines = [
        json!({"nodes": [{"Node": [0, [0]]}]}),
        json!({"nodes": [{"Node": [0, []]}, {"Node": [0, [0, 1]]}]}),
        json!({"nodes": [{"Node": [0, []]}, {"Node": [0, [-1]]}]}),
        json!({"nodes": [{"Node": [0, []]}, {"Node": [words, [0]]}]}),
    ]
    .map(|line| out_of_range(line.to_string()));
    check_isolation(&model, &good, &lines);
}

#[test]
fn nesting_without_end() {
    let model = model_case("treelstm").shipped();
    let depth = 100_000;
    let either = |text: String| BadLine {
        text,
        kinds: &["bad_input", "depth_limit"],
    };
    let lines = [
        either(format!(
            "{{\"t\":{}{}}}",
            "[".repeat(depth),
            "]".repeat(depth)
        )),
        either("[".repeat(depth)),
        either("{\"t\":".repeat(depth)),
        either(format!(
            "{{\"id\":{}{},\"t\":{{\"Leaf\":[0]}}}}",
            "[".repeat(depth),
            "]".repeat(depth)
        )),
        either(format!("{{\"t\":{}", "{\"Node\":[".repeat(depth))),
    ];
    check_isolation(&model, &good_lines("treelstm", &model, 9), &lines);
}

#[test]
fn text_that_is_not_utf8() {
    let model = model_case("treelstm").shipped();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (input, output) = (
        folder.path().join("in.jsonl"),
        folder.path().join("out.jsonl"),
    );
    let good = to_text(&[json!({"id": "g", "t": {"Leaf": [0]}})]);
    let text = [good.as_bytes(), b"{\"t\":\"\xff\xfe\"}\n", good.as_bytes()].concat();
    std::fs::write(&input, text).expect("the temporary folder is writable");
    let run = model
        .batch_run()
        .arg("--input")
        .arg(&input)
        .arg("--output")
        .arg(&output);
    run.run_as_given("").expect_code(1);
    let output = std::fs::read_to_string(&output).expect("the output is text");
    let lines: Vec<&str> = output.lines().collect();
    assert_eq!(lines.len(), 3, "{output}");
    assert_eq!(lines[0], lines[2]);
    let record = Record::parse(lines[1]).expect("a record");
    assert_eq!(
        record.result.map_err(|error| error.kind),
        Err("bad_input".to_string())
    );
}

#[test]
fn numbers_that_are_not_finite_stay_where_they_are() {
    let text = "dim D\nparam w: f32[D, D]\nfn main(x: f32[D]) -> f32[D] { log(x) @ w }\n";
    let model = Model::from_text(text, &[("D", 5)], &mut Rng::new(32));
    let line = |x: [f64; 5]| json!({"id": "x", "x": x}).to_string();
    let good = [
        line([1.0, 2.0, 3.0, 4.0, 5.0]),
        line([0.5; 5]),
        line([9.0; 5]),
    ];
    let clean = model
        .batch_run()
        .run(&good.join("\n"))
        .expect_code(0)
        .lines();
    let input = [
        &good[0],
        &line([-1.0; 5]),
        &good[1],
        &line([0.0; 5]),
        &good[2],
    ];
    let outcome = model
        .batch_run()
        .run(&input.map(|line| format!("{line}\n")).concat());
    // A record of NaNs is an output, not an error.
    let lines = outcome.expect_code(0).lines();
    assert_eq!(
        [&lines[0], &lines[2], &lines[4]],
        [&clean[0], &clean[1], &clean[2]]
    );
}

const PRODUCT: &str = "fn main(a: f32[m, k], b: f32[k, n]) -> f32[m, n] { a @ b }\n";

#[test]
fn dims_that_disagree_and_lists_that_are_no_tensor() {
    let model = Model::from_text(PRODUCT, &[], &mut Rng::new(33));
    let line = |a: &str, b: &str| format!("{{\"id\":\"x\",\"a\":{a},\"b\":{b}}}");
    let good = [
        line("[[1,2],[3,4]]", "[[1],[2]]"),
        line("[]", "[]"),
        line("[]", "[[1,2,3]]"),
        line("[[],[]]", "[]"),
        line("[[1],[2],[3]]", "[[1,2,3,4,5]]"),
        line("[[0.5]]", "[[]]"),
    ];
    let mismatch = |a: &str, b: &str| BadLine {
        text: line(a, b),
        kinds: &["shape_mismatch"],
    };
    let lines = [
        mismatch("[[1,2],[3,4]]", "[[1,2]]"),
        mismatch("[[],[]]", "[[1,2]]"),
        mismatch("[[1]]", "[]"),
        bad(line("[[1,2],[3]]", "[[1],[2]]")),
        bad(line("[[1,2],[3,4,5]]", "[[1],[2]]")),
        bad(line("[[],[3]]", "[]")),
        bad(line("[[1,2],3]", "[[1],[2]]")),
        bad(line("[[1,2],[[3],4]]", "[[1],[2]]")),
        bad(line("[[[1]]]", "[[1]]")),
        bad(line("3", "[[1]]")),
        bad(line("null", "[[1]]")),
        bad(line("[[1,null]]", "[[1],[2]]")),
        bad(line("[[1,1e40]]", "[[1],[2]]")),
        bad(line(&"[".repeat(100_000), "[]")),
    ];
    check_isolation(&model, &good, &lines);

    // The oracle refuses the same lines as the same kind of error.
    let all: Vec<&String> = good
        .iter()
        .chain(lines.iter().map(|line| &line.text))
        .collect();
    let input: String = all.iter().map(|line| format!("{line}\n")).collect();
    let kinds = |lines: Vec<String>| -> Vec<Option<String>> {
        let records = lines
            .iter()
            .map(|line| Record::parse(line).expect("a record"));
        let kind = |record: Record| record.result.err().map(|error| error.kind);
        records.map(kind).collect()
    };
    let found = kinds(model.batch_run().run(&input).expect_code(1).lines());
    assert_eq!(found, kinds(model.oracle_lines(&input)));
}

#[test]
fn the_message_tells_both_dims_and_where_each_comes_from() {
    let model = Model::from_text(PRODUCT, &[], &mut Rng::new(33));
    let cases = [
        (
            "{\"a\":[[1,2]],\"b\":[[1]]}",
            "dim k is 2 in argument a, axis 1, and 1 in argument b, axis 0",
        ),
        (
            "{\"a\":[[1,2],[3,4],[5]],\"b\":[]}",
            "argument a: at [2]: expected a list of 2, as long as the first one there, found one of 1",
        ),
    ];
    for (line, message) in cases {
        let outcome = model.batch_run().run(line).expect_code(1);
        match &outcome.records()[0].result {
            Err(error) => assert_eq!(error.message, message),
            Ok(_) => panic!("no error: {}", outcome.output),
        }
    }
}

#[test]
fn a_slice_that_is_out_of_range_names_the_bound_that_is() {
    let tensors = "fn main(x: i32[n], a: i32, b: i32) -> i32[_] { x[a..b] }";
    let arrays = "fn main(x: [i32], a: i32, b: i32) -> [i32] { x[a..b] }";
    for text in [tensors, arrays] {
        let model = Model::from_text(text, &[], &mut Rng::new(35));
        for (a, b, index) in [(-2, 4, -2), (-3, 3, -3), (1, 7, 7), (3, 1, -2)] {
            let line = format!("{{\"x\":[1,2,3,4],\"a\":{a},\"b\":{b}}}\n");
            let message = format!("index {index} is out of range for");
            let outcome = model.batch_run().run(&line).expect_code(1);
            assert!(outcome.output.contains(&message), "{}", outcome.describe());
            let oracle = model.oracle_lines(&line);
            assert!(oracle[0].contains(&message), "{oracle:?}");
        }
    }
}

#[test]
fn slices_and_shapes_that_an_instance_cannot_have() {
    let text = "fn main(x: f32[n, 2], i: i32, j: i32) -> (f32[n - 1, 2], f32[_, 2]) {
      (x[1..n] + zeros([n - 1, 2]), x[i..j] * 2.0)
    }";
    let model = Model::from_text(text, &[], &mut Rng::new(34));
    let line = |x: &str, i: i32, j: i32| format!("{{\"id\":\"x\",\"x\":{x},\"i\":{i},\"j\":{j}}}");
    let (none, two) = ("[]", "[[1,2],[3,4]]");
    let good = [line("[[1,2]]", 0, 1), line(two, 1, 1), line(two, 0, 2)];
    let lines = [
        out_of_range(line(none, 0, 0)),
        out_of_range(line(two, 1, 0)),
        out_of_range(line(two, 1, 3)),
        out_of_range(line(two, -1, 1)),
        out_of_range(line(two, 0, i32::MAX)),
        out_of_range(line(two, i32::MAX, -2)),
        bad(line("[[1,2],[3]]", 0, 1)),
        bad(line("[[1,2,3]]", 0, 1)),
    ];
    check_isolation(&model, &good, &lines);
}

#[test]
fn a_length_below_zero() {
    let text = "fn main(x: f32[n]) -> f32[n - 2] { zeros([n - 2]) + 1.0 }";
    let model = Model::from_text(text, &[], &mut Rng::new(35));
    let outcome = model
        .batch_run()
        .run("{\"x\":[1]}\n{\"x\":[1,2,3]}\n")
        .expect_code(1);
    match &outcome.records()[0].result {
        Err(error) => {
            assert_eq!(error.kind, "shape_mismatch");
            assert!(
                error.message.starts_with("a length of -1, "),
                "{}",
                error.message
            );
        }
        Ok(_) => panic!("no error: {}", outcome.output),
    }
    assert_eq!(outcome.records()[1].result, Ok(json!([1.0])));
    // The oracle refuses the same one as the same kind of error.
    let of_oracle = model.oracle_lines("{\"x\":[1]}\n{\"x\":[1,2,3]}\n");
    let of_oracle: Vec<Record> = of_oracle
        .iter()
        .map(|line| Record::parse(line).expect("a record"))
        .collect();
    let kind = of_oracle[0]
        .result
        .as_ref()
        .map_err(|error| error.kind.as_str());
    assert_eq!(kind, Err("shape_mismatch"));
    assert_eq!(of_oracle[1].result, Ok(json!([1.0])));
}

#[test]
fn more_rows_than_the_memory_limit() {
    let model = Model::from_text(PRODUCT, &[], &mut Rng::new(33));
    let line = |rows: usize| {
        let column = vec!["[1]"; rows].join(",");
        let row = vec!["1"; rows].join(",");
        format!("{{\"id\":\"x\",\"a\":[{column}],\"b\":[[{row}]]}}")
    };
    let small = line(3);
    let clean = model.batch_run().run(&small).expect_code(0).lines();
    let input = format!("{small}\n{}\n{small}", line(1000));
    let limits = ["--max-memory", "1000000"];
    let outcome = model.batch_run().args(&limits).run(&input).expect_code(1);
    let lines = outcome.lines();
    assert_eq!([&lines[0], &lines[2]], [&clean[0]; 2]);
    let record = Record::parse(&lines[1]).expect("a record");
    let Err(error) = record.result else {
        panic!("no error: {}", outcome.output)
    };
    assert_eq!(error.kind, "memory_limit");
    for text in ["1000000 rows in one call", "--max-memory"] {
        assert!(error.message.contains(text), "{}", error.message);
    }
}
