//! `batch-serve`: what it answers, what it refuses, and how it ends.

use std::path::Path;
use std::time::{Duration, Instant};

use cohort_e2e::http::{Client, Response};
use cohort_e2e::paths::{Golden, goldens, model_source};
use cohort_e2e::{BatchRun, Running};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Counts up to `n` by additions of tensors: a million take seconds.
const COUNT: &str = "fn main(n: i32) -> f32[2] {\n  \
                     while sum(a) < 2.0 * f32(n) with (a = zeros([2])) { a + 1.0 }\n}\n";
const FOREVER: &str = r#"{"n": 2000000000}"#;

/// Four million numbers: more than the system takes for a socket.
const LARGE: &str = "fn main(x: f32[1]) -> f32[4000, 1000] { zeros([4000, 1000]) + x[0] }";
const LARGE_BODY: &[u8] = br#"{"x": [0.5]}"#;

pub struct Server {
    pub run: Running,
    pub address: String,
    _folder: Option<TempDir>,
}

impl Server {
    #[track_caller]
    pub fn start(model: &Path, arguments: &[&str]) -> Server {
        let arguments = [&["--listen", "127.0.0.1:0"], arguments].concat();
        let run = Running::tool("batch-serve", model, &arguments);
        let line = run.line();
        let address = line.rsplit_once("http://").map(|(_, address)| address);
        Server {
            address: address.expect("an address").to_owned(),
            run,
            _folder: None,
        }
    }

    #[track_caller]
    pub fn of_golden(golden: &Golden, arguments: &[&str]) -> Server {
        let weights = golden.weights.to_str().expect("a plain path");
        let arguments = [&["--weights", weights], arguments].concat();
        Server::start(&model_source(golden.model), &arguments)
    }

    #[track_caller]
    fn of_text(source: &str, arguments: &[&str]) -> Server {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("model.coh");
        std::fs::write(&path, source).expect("the temporary folder is writable");
        Server {
            _folder: Some(folder),
            ..Server::start(&path, arguments)
        }
    }

    #[track_caller]
    pub fn client(&self) -> Client {
        Client::connect(&self.address).expect("the server takes connections")
    }

    #[track_caller]
    pub fn stats(&self) -> Value {
        self.client().get("/stats").expect("an answer").json()
    }

    /// Waits until a number of the statistics is this.
    #[track_caller]
    pub fn wait_for(&self, name: &str, expected: u64) {
        let begin = Instant::now();
        while self.stats()[name] != expected {
            let stats = self.stats();
            assert!(begin.elapsed() < Duration::from_secs(60), "{name}: {stats}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

#[track_caller]
fn post(server: &Server, path: &str, body: &str) -> Response {
    server.client().post(path, body).expect("an answer")
}

/// The kind of the error that a response has.
#[track_caller]
fn kind(response: &Response) -> String {
    response.json()["error"]["kind"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn every_form_of_a_body_gives_the_records_of_batch_run() {
    for model in ["treelstm", "exprtree", "berxit", "stackrnn"] {
        let golden = &goldens(model)[0];
        let input = std::fs::read_to_string(&golden.input).expect("the example has inputs");
        let expected = BatchRun::new(&model_source(model))
            .weights(&golden.weights)
            .args(&["--batch", "1"])
            .run(&input)
            .expect_code(0)
            .lines();
        let server = Server::of_golden(golden, &["--in-flight", "5"]);
        let mut client = server.client();
        for (line, expected) in input.lines().zip(&expected) {
            let response = client.post("/infer", line).expect("an answer");
            assert_eq!(
                (response.status, response.text().trim_end()),
                (200, &**expected)
            );
        }
        let lines = "content-type: application/x-ndjson\r\n";
        let response = client
            .request("POST", "/infer", lines, input.as_bytes())
            .unwrap();
        assert_eq!(response.text().lines().collect::<Vec<_>>(), expected);
        let list = format!("[{}]", input.lines().collect::<Vec<_>>().join(",\n"));
        let response = client.post("/infer", &list).unwrap();
        assert_eq!(
            response.text().trim_end(),
            format!("[{}]", expected.join(",\n "))
        );
        assert_eq!(server.stats()["done"], 3 * expected.len());
    }
}

#[test]
fn a_wrong_instance_has_its_status_and_its_error() {
    let source = "fn main(n: i32, d: i32) -> i32 { if n < 0 { 1 / d } else { n + 1 } }\n";
    let server = Server::of_text(source, &["--max-body", "1K"]);
    let answer = |body: &str| post(&server, "/infer", body);
    assert_eq!(
        answer(r#"{"id": "a", "n": 1, "d": 0}"#).text(),
        "{\"id\": \"a\", \"output\": 2}\n"
    );
    let wrong = answer(r#"{"id": "b", "n": true, "d": 0}"#);
    assert_eq!((wrong.status, &*kind(&wrong)), (400, "bad_input"));
    assert_eq!(wrong.json()["id"], "b");
    let failed = answer("{\n  \"n\": -1,\n  \"d\": 0\n}\n");
    assert_eq!((failed.status, &*kind(&failed)), (422, "division_by_zero"));
    let message = failed.json()["error"]["message"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    assert!(message.contains("model.coh:1:"), "{message}");
    for (body, what) in [
        ("", 400),
        ("{", 400),
        ("[{]", 400),
        ("[3]", 200),
        ("[]", 200),
    ] {
        assert_eq!(answer(body).status, what, "{body}");
    }
    let long = answer(&format!("{{\"n\": {}1}}", " ".repeat(1 << 20)));
    assert_eq!((long.status, &*kind(&long)), (413, "body_too_large"));
    let other = server
        .client()
        .request("POST", "/infer", "content-type: image/png\r\n", b"")
        .unwrap();
    assert_eq!(
        (other.status, &*kind(&other)),
        (415, "unsupported_media_type")
    );
    assert_eq!(server.client().get("/nothing").unwrap().status, 404);
    let method = server.client().get("/infer").unwrap();
    assert_eq!((method.status, method.header("allow")), (405, Some("POST")));
    for header in [
        "cohort-deadline: soon\r\n",
        "cohort-deadline: -1\r\n",
        "cohort-priority: 1.5\r\n",
    ] {
        let refused = server
            .client()
            .request("POST", "/infer", header, b"{}")
            .unwrap();
        assert_eq!(
            (refused.status, &*kind(&refused)),
            (400, "bad_request"),
            "{header}"
        );
    }
    // None of that harmed it.
    assert_eq!(
        answer(r#"{"n": 1, "d": 0}"#).text(),
        "{\"id\": 1, \"output\": 2}\n"
    );
}

#[test]
fn what_finds_no_room_or_no_time_is_told_so() {
    let server = Server::of_text(COUNT, &["--in-flight", "1", "--max-queued", "1"]);
    let (mut running, mut queued) = (server.client(), server.client());
    running
        .begin("POST", "/infer", "", FOREVER.as_bytes())
        .unwrap();
    server.wait_for("running", 1);
    queued
        .begin("POST", "/infer", "", FOREVER.as_bytes())
        .unwrap();
    server.wait_for("queued", 1);
    let full = post(&server, "/infer", r#"{"n": 1}"#);
    assert_eq!((full.status, &*kind(&full)), (429, "queue_full"));
    assert!(full.header("retry-after").is_some());
    // Who breaks off makes room.
    drop(running);
    drop(queued);
    server.wait_for("cancelled", 2);
    server.wait_for("running", 0);
    let late = server.client().request(
        "POST",
        "/infer",
        "cohort-deadline: 0.05\r\n",
        FOREVER.as_bytes(),
    );
    let late = late.unwrap();
    assert_eq!((late.status, &*kind(&late)), (504, "deadline"));
    server.wait_for("running", 0);
    assert_eq!(
        post(&server, "/infer", r#"{"n": 1}"#).text(),
        "{\"id\": 1, \"output\": [1.0, 1.0]}\n"
    );
}

/// One product that takes minutes: nothing but the kernel itself could see that nobody waits for it.
#[test]
fn a_deadline_within_a_long_call_is_kept_and_the_next_one_is_served() {
    let text =
        "fn main(n: i32) -> f32 { let a = f32(iota([n, n], 0) + iota([n, n], 1)); sum(a @ a) }";
    let server = Server::of_text(text, &[]);
    let small = post(&server, "/infer", r#"{"n": 3}"#).text();
    let begin = Instant::now();
    let long = br#"{"n": 14000}"#;
    let late = (server.client())
        .request("POST", "/infer", "cohort-deadline: 1\r\n", long)
        .unwrap();
    assert_eq!((late.status, &*kind(&late)), (504, "deadline"));
    assert_eq!(post(&server, "/infer", r#"{"n": 3}"#).text(), small);
    // Over a minute, if it were computed.
    assert!(begin.elapsed() < Duration::from_secs(12));
}

#[test]
fn a_request_of_more_instances_than_may_wait_is_answered() {
    let server = Server::of_text(COUNT, &["--in-flight", "2", "--max-queued", "2"]);
    let list: Vec<String> = (0..500).map(|n| format!("{{\"n\": {}}}", n % 7)).collect();
    let response = post(&server, "/infer", &format!("[{}]", list.join(",")));
    assert_eq!(response.status, 200);
    for (number, record) in response
        .json()
        .as_array()
        .expect("a list")
        .iter()
        .enumerate()
    {
        let n = (number % 7) as f64;
        assert_eq!(*record, json!({"id": number + 1, "output": [n, n]}));
    }
}

/// The engine's thread takes the program down while the process ends, which went wrong one time in ten.
#[test]
fn a_server_ends_in_order_each_time() {
    for _ in 0..30 {
        let server = Server::of_text(COUNT, &[]);
        server.run.signal("-TERM");
        let (code, _, stderr) = server.run.end();
        assert_eq!(code, 0, "{stderr}");
    }
}

#[test]
fn a_server_that_is_told_to_stop_finishes_what_it_has() {
    for signal in ["-TERM", "-INT"] {
        let server = Server::of_text(COUNT, &[]);
        let mut client = server.client();
        client
            .begin("POST", "/infer", "", br#"{"n": 200000}"#)
            .unwrap();
        server.wait_for("running", 1);
        server.run.signal(signal);
        let response = client.receive().expect("what is in flight is answered");
        assert_eq!(
            response.text(),
            "{\"id\": 1, \"output\": [200000.0, 200000.0]}\n"
        );
        assert!(
            Client::connect(&server.address).is_err(),
            "it takes nothing new"
        );
        let (code, _, stderr) = server.run.end();
        assert_eq!(code, 0, "{stderr}");
    }
    let server = Server::of_text(COUNT, &["--grace", "0.2"]);
    let mut client = server.client();
    client
        .begin("POST", "/infer", "", FOREVER.as_bytes())
        .unwrap();
    server.wait_for("running", 1);
    server.run.signal("-TERM");
    let (code, _, stderr) = server.run.end();
    assert_eq!(code, 1, "{stderr}");
    assert!(stderr.contains("--grace"), "{stderr}");
}

#[test]
fn health_metrics_and_the_protocol_of_kserve() {
    let source = "type T = Leaf(i32) | Pair(T, T)\n\
                  fn total(t: T) -> i32 { match t { Leaf(k) => k, Pair(a, b) => total(a) + total(b) } }\n\
                  fn main(x: f32[n, 2], t: T, k: i32) -> (f32[n, 2], i32, T) { (x * f32(k), total(t), t) }\n";
    let server = Server::of_text(source, &["--name", "twice"]);
    let mut client = server.client();
    for path in [
        "/health",
        "/v2/health/live",
        "/v2/health/ready",
        "/v2/models/twice/ready",
        "/v2",
    ] {
        assert_eq!(client.get(path).unwrap().status, 200, "{path}");
    }
    let model = client.get("/v2/models/twice").unwrap().json();
    assert_eq!(model["inputs"][0]["shape"], json!([-1, 2]));
    assert_eq!(model["inputs"][1]["datatype"], "BYTES");
    assert_eq!(model["outputs"][1]["name"], "output_1");
    let example = client
        .post("/infer", &model["example"].to_string())
        .unwrap();
    assert_eq!(example.status, 200, "{}", example.text());
    let request = |x: Value, shape: Value, kind: &str| {
        json!({"id": "q", "inputs": [
            {"name": "x", "shape": shape, "datatype": kind, "data": x},
            {"name": "t", "shape": [1], "datatype": "BYTES", "data": [r#"{"Pair": [{"Leaf": [3]}, {"Leaf": [4]}]}"#]},
            {"name": "k", "shape": [1], "datatype": "INT64", "data": [2]},
        ]})
    };
    let path = "/v2/models/twice/infer";
    for x in [json!([0.5, 1, 2, 3]), json!([[0.5, 1], [2, 3]])] {
        let answer = client
            .post(path, &request(x, json!([2, 2]), "FP32").to_string())
            .unwrap();
        let answer = answer.json();
        assert_eq!(
            (&answer["model_name"], &answer["id"]),
            (&json!("twice"), &json!("q"))
        );
        let outputs = &answer["outputs"];
        assert_eq!(
            outputs[0],
            json!({"name": "output_0", "datatype": "FP32", "shape": [2, 2], "data": [1.0, 2.0, 4.0, 6.0]})
        );
        assert_eq!(outputs[1]["data"], json!([7]));
        let tree: Value = serde_json::from_str(outputs[2]["data"][0].as_str().unwrap()).unwrap();
        assert_eq!(tree, json!({"Pair": [{"Leaf": [3]}, {"Leaf": [4]}]}));
    }
    let empty = client
        .post(path, &request(json!([]), json!([0, 2]), "FP32").to_string())
        .unwrap();
    assert_eq!(empty.json()["outputs"][0]["shape"], json!([0, 2]));
    for (x, shape, kind) in [
        (json!([1, 2]), json!([2, 2]), "FP32"),
        (json!([1, 2]), json!([1, 2]), "INT32"),
        (json!([1, 2]), json!([2, 1]), "FP32"),
        (json!([1, 2]), json!([1, 1, 2]), "FP32"),
        (json!("no"), json!([1, 2]), "FP32"),
    ] {
        let refused = client
            .post(path, &request(x, shape, kind).to_string())
            .unwrap();
        assert_eq!(refused.status, 400, "{}", refused.text());
        assert!(refused.json()["error"].is_string(), "{}", refused.text());
    }
    let metrics = client.get("/metrics").unwrap();
    assert!(
        metrics
            .header("content-type")
            .is_some_and(|kind| kind.starts_with("text/plain"))
    );
    for line in [
        "cohort_instances_done_total 4",
        "cohort_instances_running 0",
        "cohort_requests_total{code=\"200\"} 4",
        "# TYPE cohort_request_seconds histogram",
    ] {
        assert!(
            metrics.text().contains(line),
            "{line} in {}",
            metrics.text()
        );
    }
}

/// One connection is all there is, so whoever comes next waits until it is closed.
#[test]
fn a_client_that_never_reads_its_answer_makes_room_for_the_next() {
    let server = Server::of_text(LARGE, &["--max-connections", "1", "--patience", "1"]);
    let mut deaf = server.client();
    deaf.begin("POST", "/infer", "", LARGE_BODY)
        .expect("it is taken");
    let health = server.client().get("/health").expect("an answer");
    assert_eq!(health.status, 200);
    // What it was sent before ends in the middle.
    assert!(deaf.receive().is_err());
}

#[test]
fn a_body_that_does_not_come_is_not_waited_for() {
    let server = Server::of_text(COUNT, &["--patience", "1"]);
    let mut slow = server.client();
    let head = b"POST /infer HTTP/1.1\r\nhost: test\r\ncontent-length: 9\r\n\r\n{";
    slow.send(head).expect("it is taken");
    let late = slow.receive().expect("an answer");
    assert_eq!((late.status, &*kind(&late)), (408, "body_timeout"));
}

/// Something is always read, and never enough.
#[test]
fn a_client_that_reads_a_byte_at_a_time_makes_room_for_the_next() {
    let server = Server::of_text(LARGE, &["--max-connections", "1", "--patience", "1"]);
    let mut slow = server.client();
    slow.begin("POST", "/infer", "", LARGE_BODY)
        .expect("it is taken");
    let address = server.address.clone();
    let next = std::thread::spawn(move || {
        let mut client = Client::connect(&address).expect("it waits to be taken");
        client.get("/health").map(|response| response.status)
    });
    let begin = Instant::now();
    while !next.is_finished() {
        assert!(
            begin.elapsed() < Duration::from_secs(50),
            "nobody else is served"
        );
        let _ = slow.read_byte();
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(next.join().expect("an answer").expect("an answer"), 200);
}

#[test]
fn answers_that_nobody_reads_take_no_more_memory_than_they_may() {
    let limits = [
        "--in-flight",
        "2",
        "--max-queued-memory",
        "40M",
        "--max-response",
        "40M",
    ];
    let server = Server::of_text(LARGE, &[&limits[..], &["--patience", "3"]].concat());
    let before = server.run.resident_bytes();
    // Results of 16 MB each: there is room for two.
    let mut deaf: Vec<Client> = (0..20).map(|_| server.client()).collect();
    for client in &mut deaf {
        client
            .begin("POST", "/infer", "", LARGE_BODY)
            .expect("it is taken");
    }
    let begin = Instant::now();
    let mut refused = 0;
    // What is refused is seen, until those who do not read are given up.
    loop {
        let answer = post(&server, "/infer", r#"{"x": [1.5]}"#);
        match answer.status {
            200 if refused > 0 => break,
            200 => {}
            429 => refused += 1,
            status => panic!("{status}: {}", answer.text()),
        }
        assert!(
            begin.elapsed() < Duration::from_secs(60),
            "{}",
            server.stats()
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    let most = before + (600 << 20);
    assert!(
        server.run.resident_bytes() < most,
        "{} bytes",
        server.run.resident_bytes()
    );
}

/// Lengths that are announced are nothing yet.
#[test]
fn bodies_that_do_not_come_take_no_room_from_those_that_do() {
    let limits = ["--max-queued-memory", "1M", "--max-body", "1M"];
    let server = Server::of_text(COUNT, &limits);
    let mut slow: Vec<Client> = (0..50).map(|_| server.client()).collect();
    for client in &mut slow {
        let head = b"POST /infer HTTP/1.1\r\nhost: test\r\ncontent-length: 1000000\r\n\r\n{";
        client.send(head).expect("it is taken");
    }
    for _ in 0..3 {
        let answer = post(&server, "/infer", r#"{"n": 3}"#);
        assert_eq!(answer.text(), "{\"id\": 1, \"output\": [3.0, 3.0]}\n");
    }
}
