//! What clients send to `batch-serve`.

use std::fs;
use std::io;
use std::rc::Rc;

use serde_json::{Value as Json, json};

use super::{Corpora, LIMITS, artifacts, strings};
use crate::case::{Case, Check, Tool};
use crate::child::How;
use crate::client::{EXPECTED, GOOD, REQUESTS};
use crate::mutate::{Form, file_of};

/// Of those that are compiled: trees, decisions, and all types.
const PROGRAMS: [&str; 3] = ["treegru", "act", "types"];
const ARROW: &str = "content-type: application/vnd.apache.arrow.stream\r\n";
const LINES: &str = "content-type: application/x-ndjson\r\n";
const JSON: &str = "content-type: application/json\r\n";

pub fn of(place: &Corpora) -> io::Result<Vec<Case>> {
    let mut cases = Vec::new();
    for program in artifacts::all(place)? {
        if !PROGRAMS.contains(&program.name) {
            continue;
        }
        let lines: Vec<&str> = program.lines.iter().take(3).map(String::as_str).collect();
        let Some(good) = lines.first() else {
            continue;
        };
        let list = format!("[{}]", lines.join(","));
        let kserve = kserve(good)?.to_string();
        let requests = [
            vec![
                post("/infer", JSON, good.as_bytes()),
                post("/infer", "", list.as_bytes()),
            ],
            vec![post("/infer", LINES, lines.join("\n").as_bytes())],
            vec![
                post("/v2/models/whole/infer", JSON, kserve.as_bytes()),
                looks(),
            ],
        ];
        for requests in requests {
            let weights = Some(program.weights.clone());
            cases.push(case(place, &program.artifact, weights, good, requests)?);
        }
    }
    let corpus = place.root.join("fuzz/corpus");
    let source = corpus.join("files.coh");
    let arguments = [
        &*source.to_string_lossy(),
        "--emit=artifact",
        "-o",
        "whole.cohort",
    ];
    if !place.tools.prepare(&arguments)? {
        return Err(io::Error::other(fs::read_to_string("stderr")?));
    }
    let artifact: Rc<[u8]> = fs::read("whole.cohort")?.into();
    let stream = fs::read(corpus.join("stream.arrow"))?;
    let good = r#"{"id": 1, "a": 1.5, "b": 2, "c": true, "v": [1, 2, 3], "x": [[1, 2]], "y": [3], "z": [[0.5]], "l": [1], "t": {"Leaf": [3]}}"#;
    let requests = vec![
        post("/infer", ARROW, &stream),
        post("/infer", JSON, good.as_bytes()),
    ];
    cases.push(case(place, &artifact, None, good, requests)?);
    Ok(cases)
}

fn post(path: &str, header: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head =
        format!("POST {path} HTTP/1.1\r\nhost: test\r\n{header}content-length: {length}\r\n\r\n");
    [head.as_bytes(), body].concat()
}

/// All that is asked for without an instance, one behind the other.
fn looks() -> Vec<u8> {
    let paths = [
        "/",
        "/health",
        "/stats",
        "/metrics",
        "/v2",
        "/v2/models/whole",
        "/v2/health/live",
    ];
    let requests = paths.map(|path| format!("GET {path} HTTP/1.1\r\nhost: test\r\n\r\n"));
    requests.concat().into_bytes()
}

/// An instance as a request of KServe; what is a shape of numbers by itself, all else as JSON.
fn kserve(line: &str) -> io::Result<Json> {
    let instance: Json = serde_json::from_str(line)?;
    let arguments = instance.as_object().into_iter().flatten();
    let inputs = arguments.filter(|(name, _)| *name != "id").map(|(name, value)| {
        let mut shape = Vec::new();
        let mut inner = value;
        while let Some([first, ..]) = inner.as_array().map(Vec::as_slice) {
            shape.push(inner.as_array().map_or(0, Vec::len));
            inner = first;
        }
        match (inner.is_number(), shape.is_empty()) {
            (true, is_scalar) => {
                let shape = if is_scalar { vec![1] } else { shape };
                let data = if is_scalar { json!([value]) } else { value.clone() };
                let kind = if inner.is_i64() { "INT32" } else { "FP32" };
                json!({"name": name, "shape": shape, "datatype": kind, "data": data})
            }
            (false, _) => json!({"name": name, "shape": [1], "datatype": "BYTES", "data": [value.to_string()]}),
        }
    });
    Ok(json!({"id": "q", "inputs": inputs.collect::<Vec<_>>()}))
}

/// A case of these connections, with what a good instance gives alone.
fn case(
    place: &Corpora,
    artifact: &Rc<[u8]>,
    weights: Option<Rc<[u8]>>,
    good: &str,
    requests: Vec<Vec<u8>>,
) -> io::Result<Case> {
    let mut arguments = vec!["whole.cohort"];
    let mut files = vec![("whole.cohort".to_owned(), artifact.clone())];
    if let Some(weights) = weights {
        arguments.extend(["--weights", "weights.safetensors"]);
        files.push(("weights.safetensors".to_owned(), weights));
    }
    let input = format!("{good}\n");
    let alone = ["--input", GOOD, "--output", EXPECTED];
    let mut case = Case {
        tool: Tool::Run,
        arguments: strings(&[&arguments[..], &alone, &LIMITS].concat()),
        files,
        subject: GOOD.to_owned(),
        bytes: input.clone().into_bytes(),
        form: Form::Requests,
        check: Check::Nothing,
    };
    let ending = place.tools.run(&case)?;
    if ending.how != How::Code(0) {
        let problem = format!("a good instance fails: {}", ending.stderr);
        return Err(io::Error::other(problem));
    }
    let expected: Rc<[u8]> = fs::read(EXPECTED)?.into();
    case.files
        .push((GOOD.to_owned(), input.into_bytes().into()));
    case.files.push((EXPECTED.to_owned(), expected));
    case.tool = Tool::Serve;
    // `--batch` is `batch-run`'s.
    let limits = LIMITS
        .iter()
        .copied()
        .take_while(|option| *option != "--batch");
    case.arguments = strings(&arguments.into_iter().chain(limits).collect::<Vec<_>>());
    case.subject = REQUESTS.to_owned();
    case.bytes = file_of(
        &requests
            .into_iter()
            .map(|bytes| (b'r', bytes))
            .collect::<Vec<_>>(),
    );
    let ending = place.tools.run(&case)?;
    match ending.how == How::Code(0) {
        true => Ok(case),
        false => Err(io::Error::other(format!(
            "good requests fail: {}",
            ending.stderr
        ))),
    }
}
