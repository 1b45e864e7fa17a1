//! `--explain=html` and `--sarif`: what there is to say of a program, at the lines that it is about.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use cohort_e2e::tools::run;
use cohort_e2e::{BatchRun, Model, Rng};
use serde_json::Value as Json;

use crate::models::{model_case, to_text};

/// Deciding instances, too few of them at once.
fn few_at_once(arguments: &[&str], path: &Path) -> (Model, String) {
    let case = model_case("act");
    let model = case.shipped();
    let instances = to_text(&case.instances(&model, 12, &mut Rng::new(3)));
    let call = model.batch_run().args(&["--batch", "2", "--quiet"]);
    call.args(arguments)
        .arg(path)
        .run(&instances)
        .expect_code(0);
    let text = fs::read_to_string(path).expect("the file is written");
    (model, text)
}

/// Fails unless every element ends, in the order of their beginnings.
#[track_caller]
fn check_elements(page: &str) {
    let mut open = Vec::new();
    for piece in page.split('<').skip(1) {
        let (tag, _) = piece.split_once('>').expect("a tag ends");
        let name = tag.split_whitespace().next().unwrap_or_default();
        match name.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name), "{tag}"),
            None if matches!(name, "!DOCTYPE" | "meta") => {}
            None => open.push(name),
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn the_page_has_every_line_of_the_source_with_its_cost_and_what_limits_batching() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("page.html");
    let (model, page) = few_at_once(&["--explain=html", "--explain-output"], &path);
    assert!(page.starts_with("<!DOCTYPE html>"));
    check_elements(&page);
    for outside in ["<script", "<link", "src=", "href=", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
    let escaped = |text: &str| {
        let text = text.replace('&', "&amp;").replace('<', "&lt;");
        text.replace('>', "&gt;").replace('"', "&quot;")
    };
    let source = fs::read_to_string(&model.source).expect("the source is there");
    for line in source.lines() {
        let code = format!("<code>{}</code>", escaped(line));
        assert!(page.contains(&code), "{line}");
    }
    let rows: Vec<&str> = page.lines().collect();
    let decides = rows.iter().position(|row| row.contains("p &gt; rem"));
    let lost = rows[decides.expect("the line that decides") + 1];
    assert!(lost.starts_with("<tr class=\"loss\""), "{lost}");
    assert!(lost.contains("decision, at most"), "{lost}");
    let computed = rows.iter().find(|row| row.contains("sigmoid("));
    let computed = computed.expect("the line that computes");
    assert!(
        computed.contains(" %</td>") && !computed.contains("--heat: 0.000"),
        "{computed}"
    );
    for title in ["Blocks, by time", "Operands", "Where batching was lost"] {
        assert!(page.contains(&format!("<h2>{title}")), "{title}");
    }
}

#[test]
fn what_a_source_or_a_name_holds_is_text_in_the_page() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = folder.path().join("<b>&.coh");
    fs::write(
        &program,
        "// <script>alert(\"&\")</script>\nfn main(x: f32[4]) -> f32[4] { tanh(x) }\n",
    )
    .expect("the folder is writable");
    let outcome = BatchRun::new(&program)
        .args(&["--explain=html", "--quiet", "--explain-output", "-"])
        .args(&["--output", "/dev/null"])
        .run_as_given("{\"x\": [1, 2, 3, 4]}\n")
        .expect_code(0);
    check_elements(&outcome.output);
    assert!(!outcome.output.contains("<script"), "{}", outcome.output);
    assert!(
        outcome
            .output
            .contains("&lt;script&gt;alert(&quot;&amp;&quot;)")
    );
}

/// The one run of a log that has all that SARIF 2.1.0 asks for.
#[track_caller]
fn checked(text: &str) -> Json {
    let log: Json = serde_json::from_str(text).expect("a log is JSON");
    assert_eq!(log["version"], "2.1.0");
    let schema = log["$schema"].as_str().expect("a schema");
    assert!(schema.starts_with("https://") && schema.contains("sarif-2.1.0"));
    let [run] = &log["runs"].as_array().expect("a list of runs")[..] else {
        panic!("one run: {log}");
    };
    let driver = &run["tool"]["driver"];
    assert!(driver["name"].is_string(), "{driver}");
    let rules = driver["rules"].as_array().expect("a list of rules");
    for invocation in run["invocations"].as_array().expect("a list") {
        assert!(invocation["executionSuccessful"].is_boolean());
    }
    for result in run["results"].as_array().expect("a list of results") {
        let text = result["message"]["text"].as_str().unwrap_or_default();
        assert!(!text.is_empty(), "{result}");
        let level = result["level"].as_str().unwrap_or_default();
        assert!(["error", "warning", "note"].contains(&level), "{result}");
        let rule = result["ruleIndex"].as_u64().expect("a rule") as usize;
        assert_eq!(rules[rule]["id"], result["ruleId"]);
        for location in result["locations"].as_array().expect("a list of places") {
            let place = &location["physicalLocation"];
            let uri = place["artifactLocation"]["uri"].as_str().expect("a uri");
            assert!(!uri.is_empty() && !uri.contains(' '), "{uri}");
            let number = |name: &str| place["region"][name].as_u64();
            assert!(number("startLine") >= Some(1) && number("startColumn") >= Some(1));
            if let Some(line) = number("endLine") {
                let end = (line, number("endColumn").expect("a column"));
                assert!(Some(end) >= number("startLine").zip(number("startColumn")));
            }
        }
    }
    run.clone()
}

/// The log of `batch-opt` over a program, and its exit code.
fn opted(text: &str, more: &[&str]) -> (Json, i32) {
    optimised("p.coh", text, &[&["--emit=program"], more].concat())
}

/// The same of a file of that name.
fn optimised(name: &str, text: &str, more: &[&str]) -> (Json, i32) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (program, log) = (folder.path().join(name), folder.path().join("log.sarif"));
    fs::write(&program, text).expect("the folder is writable");
    let mut arguments: Vec<OsString> = vec![program.into()];
    arguments.extend(["-o", "/dev/null", "--sarif"].map(OsString::from));
    arguments.push(log.clone().into());
    arguments.extend(more.iter().map(OsString::from));
    let outcome = run("batch-opt", &arguments, "");
    let text = fs::read_to_string(&log).expect("the log is written");
    (checked(&text), outcome.code)
}

#[test]
fn a_mistake_is_logged_where_it_is() {
    let (run, code) = opted(
        "// ä\nfn main(x: f32[4]) -> f32[4] {\n  /* no */ y\n}\n",
        &[],
    );
    assert_eq!(code, 2);
    assert_eq!(run["invocations"][0]["exitCode"], 2);
    let (run, code) = opted("fn main(x: f32[4]) -> f32[4] {\n  x + yy\n}\n", &[]);
    assert_eq!(code, 2);
    assert_eq!(run["invocations"][0]["executionSuccessful"], false);
    let result = &run["results"][0];
    assert_eq!(result["level"], "error");
    let rule = result["ruleId"].as_str().expect("a code");
    assert!(rule.starts_with('E'), "{rule}");
    let region = &result["locations"][0]["physicalLocation"]["region"];
    let expected = [
        ("startLine", 2),
        ("startColumn", 7),
        ("endLine", 2),
        ("endColumn", 9),
    ];
    for (name, number) in expected {
        assert_eq!(region[name], number, "{region}");
    }
}

#[test]
fn a_program_without_mistakes_has_a_log_without_results_and_warnings_are_in_it() {
    let (run, code) = opted("fn main(x: f32[4]) -> f32[4] { x }\n", &[]);
    assert_eq!(
        (code, run["results"].as_array().map(Vec::len)),
        (0, Some(0))
    );
    assert_eq!(run["invocations"][0]["executionSuccessful"], true);
    let (run, code) = opted(
        "fn main(xs: [i32], x: f32[4]) -> f32[4] { let y = xs[3]; x }\n",
        &[],
    );
    assert_eq!(code, 0);
    let results = run["results"].as_array().expect("a list");
    assert!(!results.is_empty());
    assert!(
        results.iter().all(|result| result["level"] == "warning"),
        "{results:?}"
    );
}

/// The levels and places of what passes said.
fn said(run: &Json, file: &str) -> Vec<(String, u64)> {
    let results = run["results"].as_array().expect("a list");
    let by_passes = (results.iter())
        .filter(|result| result["ruleId"].as_str().unwrap_or("").starts_with("pass/"));
    let said = by_passes.map(|result| {
        let place = &result["locations"][0]["physicalLocation"];
        let uri = place["artifactLocation"]["uri"]
            .as_str()
            .unwrap_or_default();
        assert!(uri.ends_with(file), "{uri}");
        let line = place["region"]["startLine"].as_u64().expect("a line");
        (
            result["level"].as_str().unwrap_or_default().to_owned(),
            line,
        )
    });
    said.collect()
}

#[test]
fn what_passes_remark_is_logged_at_every_level() {
    let program = "dim L, D\nparam w: f32[L, D, D]\nfn main(x: f32[D]) -> f32[D] {\n  \
                   for i in range(L) with (x = x) { x @ w[i] }\n}\n";
    for level in ["batched", "llvm", "object", "artifact"] {
        let level = format!("--emit={level}");
        let dims = ["--dim", "L=9000", "--dim", "D=4"];
        let (run, code) = optimised("p.coh", program, &[&[&*level], &dims[..]].concat());
        assert_eq!(code, 0, "{level}");
        let said = said(&run, "p.coh");
        assert!(said.contains(&("note".to_owned(), 4)), "{level}: {said:?}");
    }
}

#[test]
fn what_a_pass_refuses_in_ir_is_logged() {
    let ir = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n  \
              %r = cfb.nothing %x : tensor<4xf32>\n  return %r : tensor<4xf32>\n}\n";
    let (run, code) = optimised("p.mlir", ir, &["--emit=object"]);
    assert_ne!(code, 0);
    assert_eq!(run["invocations"][0]["executionSuccessful"], false);
    let refused = fs::read_to_string("../passes/lower-kernels/calls_unsupported.mlir");
    let refused = refused.expect("the tests of passes are there");
    let (run, code) = optimised(
        "p.mlir",
        &refused,
        &["--plan-kernels", "--lower-kernels", "--split-input-file"],
    );
    assert_eq!(code, 1);
    let errors = said(&run, "p.mlir");
    assert!(
        errors.iter().any(|(level, _)| level == "error"),
        "{errors:?}"
    );
}

#[test]
fn what_ends_a_run_without_a_place_is_a_notification() {
    let (run, code) = opted(
        "dim H\nparam w: f32[H]\nfn main(x: f32[H]) -> f32[H] { x + w }\n",
        &["--weights", "/no/such.safetensors"],
    );
    assert_eq!(code, 2);
    let notification = &run["invocations"][0]["toolExecutionNotifications"][0];
    let text = notification["message"]["text"].as_str().expect("a text");
    assert!(text.contains("/no/such.safetensors"), "{text}");
}

#[test]
fn lost_batching_is_logged_at_its_line() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("log.sarif");
    let (_, text) = few_at_once(&["--explain", "--sarif"], &path);
    let run = checked(&text);
    let results = run["results"].as_array().expect("a list");
    let is_decision = |result: &&Json| result["ruleId"] == "lost-batching/decision";
    let decision = results.iter().find(is_decision).expect("a decision");
    assert_eq!(decision["level"], "note");
    assert!(decision["properties"]["seconds"].is_number(), "{decision}");
    let place = &decision["locations"][0]["physicalLocation"];
    let uri = place["artifactLocation"]["uri"].as_str().expect("a uri");
    assert!(uri.ends_with("examples/act/act.coh"), "{uri}");
}

/// A kernel over a length counts the rows that it makes, not their elements; no time is a zero less than zero.
#[test]
fn rows_are_rows_and_zeros_have_no_sign() {
    let text = "fn main(x: f32[n, 8], y: f32[n, 8]) -> f32[_, 8] { softmax(x @ transpose(y), axis = 1) @ y }";
    let model = Model::from_text(text, &[], &mut Rng::new(5));
    let lengths = [1, 3, 28];
    let line = |rows: &usize| {
        let matrix = vec![vec![0.25; 8]; *rows];
        serde_json::json!({"x": matrix, "y": matrix}).to_string()
    };
    let input: Vec<String> = lengths.iter().map(line).collect();
    let explained = |how: &str| {
        let call = model.batch_run().args(&["--quiet", how]);
        let outcome = call.run(&input.join("\n"));
        outcome.expect_code(0).stderr
    };
    let all: Json = serde_json::from_str(&explained("--explain=json")).expect("JSON");
    let blocks = all["blocks"].as_array().expect("a list");
    assert!(!blocks.is_empty());
    let rows: usize = lengths.iter().sum();
    for block in blocks {
        assert_eq!(block["rows"], rows, "{block}");
        assert_eq!(block["ragged"]["calls"], lengths.len(), "{block}");
    }
    for how in ["--explain", "--explain=json"] {
        let text = explained(how);
        assert!(!text.contains("-0.0"), "{text}");
    }
}
