//! `batch-serve` under load: many clients at once, some of which send nonsense or break off.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cohort_e2e::http::Client;
use cohort_e2e::paths::{goldens, model_source};
use cohort_e2e::{BatchRun, Rng};

use crate::serving::Server;

const CLIENTS: u64 = 24;
const REQUESTS: u64 = 60;
const MOST_QUEUED: u64 = 16;

/// Instances with what comes of each in a batch of 1; both without their ids.
struct Known(Vec<(String, String)>);

impl Known {
    fn of(model: &'static str) -> Known {
        let golden = &goldens(model)[0];
        let input = std::fs::read_to_string(&golden.input).expect("the example has inputs");
        let output = BatchRun::new(&model_source(model))
            .weights(&golden.weights)
            .args(&["--batch", "1"])
            .run(&input)
            .expect_code(0)
            .lines();
        let without_id = |line: &str| {
            let (_, rest) = line.split_once(", ").expect("an id, and more");
            rest.to_owned()
        };
        let pairs = input.lines().zip(&output);
        Known(
            pairs
                .map(|(line, record)| (without_id(line), without_id(record)))
                .collect(),
        )
    }

    /// An instance with an id of its own, and its record.
    fn pick(&self, rng: &mut Rng, id: &str) -> (String, String) {
        let (instance, record) = &self.0[rng.below(self.0.len())];
        (
            format!("{{\"id\": \"{id}\", {instance}"),
            format!("{{\"id\": \"{id}\", {record}"),
        )
    }
}

/// What the clients counted.
#[derive(Default)]
struct Counts {
    answered: AtomicU64,
    refused: AtomicU64,
    broken_off: AtomicU64,
    instances: AtomicU64,
    microseconds: AtomicU64,
    slowest: AtomicU64,
}

/// One client: each answer must be exactly what is known.
fn client(address: &str, known: &Known, number: u64, counts: &Counts) {
    let mut rng = Rng::new(number);
    let connect = || Client::connect(address).expect("the server takes connections");
    let mut connection = connect();
    for request in 0..REQUESTS {
        let id = format!("{number}-{request}");
        let (headers, body, expected) = match rng.below(10) {
            0 => {
                let body = format!("{{\"id\": \"{id}\", \"nothing\": [[[1");
                ("", body, None)
            }
            1 | 2 => {
                let count = 1 + rng.below(12);
                let picked = (0..count).map(|at| known.pick(&mut rng, &format!("{id}-{at}")));
                let (instances, records): (Vec<_>, Vec<_>) = picked.unzip();
                counts.instances.fetch_add(count as u64, Ordering::Relaxed);
                let headers = "content-type: application/x-ndjson\r\n";
                (headers, instances.join("\n"), Some(records.join("\n")))
            }
            _ => {
                let (instance, record) = known.pick(&mut rng, &id);
                counts.instances.fetch_add(1, Ordering::Relaxed);
                ("", instance, Some(record))
            }
        };
        if rng.below(12) == 0 {
            // It goes away in the middle of its request, or without its answer.
            let length = match rng.below(2) {
                0 => body.len() / 2,
                _ => body.len(),
            };
            let head = format!(
                "POST /infer HTTP/1.1\r\nhost: test\r\n{headers}content-length: {}\r\n\r\n",
                body.len()
            );
            connection
                .send(&[head.as_bytes(), &body.as_bytes()[..length]].concat())
                .unwrap();
            connection = connect();
            counts.broken_off.fetch_add(1, Ordering::Relaxed);
            continue;
        }
        let begin = Instant::now();
        let response = loop {
            let response = connection.request("POST", "/infer", headers, body.as_bytes());
            let response = response.expect("an answer");
            if response.status != 429 {
                break response;
            }
            assert!(response.header("retry-after").is_some());
            counts.refused.fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(1 + rng.below(5) as u64));
        };
        let microseconds = begin.elapsed().as_micros() as u64;
        counts
            .microseconds
            .fetch_add(microseconds, Ordering::Relaxed);
        counts.slowest.fetch_max(microseconds, Ordering::Relaxed);
        counts.answered.fetch_add(1, Ordering::Relaxed);
        match expected {
            Some(expected) => {
                assert_eq!(response.status, 200, "{}", response.text());
                assert_eq!(response.text().trim_end(), expected);
            }
            None => {
                assert_eq!(response.status, 400, "{}", response.text());
                assert_eq!(response.json()["id"], *id, "{}", response.text());
            }
        }
    }
}

fn load(model: &'static str, arguments: &[&str]) {
    let known = Known::of(model);
    let queued = MOST_QUEUED.to_string();
    let arguments = [&["--max-queued", &queued, "--in-flight", "16"], arguments].concat();
    let server = Server::of_golden(&goldens(model)[0], &arguments);
    let counts = Counts::default();
    let is_done = AtomicBool::new(false);
    let mut resident = Vec::new();
    let begin = Instant::now();
    let most_queued = std::thread::scope(|scope| {
        let (mut connection, is_done) = (server.client(), &is_done);
        let watch = scope.spawn(move || {
            let mut most = 0;
            while !is_done.load(Ordering::Relaxed) {
                let stats = connection.get("/stats").expect("an answer").json();
                most = most.max(stats["queued"].as_u64().expect("a number"));
                std::thread::sleep(Duration::from_millis(2));
            }
            most
        });
        // The same load twice: what the first one needed must be enough for the second.
        for _ in 0..2 {
            let clients: Vec<_> = (0..CLIENTS)
                .map(|number| {
                    let (address, known, counts) = (&server.address, &known, &counts);
                    scope.spawn(move || client(address, known, number, counts))
                })
                .collect();
            for client in clients {
                if let Err(panic) = client.join() {
                    is_done.store(true, Ordering::Relaxed);
                    std::panic::resume_unwind(panic);
                }
            }
            resident.push(server.run.resident_bytes());
        }
        is_done.store(true, Ordering::Relaxed);
        watch.join().expect("the statistics were there")
    });
    let seconds = begin.elapsed().as_secs_f64();
    let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let answered = count(&counts.answered);
    assert!(most_queued <= MOST_QUEUED, "{most_queued} wait");
    assert!(count(&counts.broken_off) > 0 && answered > 0);
    // Nothing is left of those that broke off.
    server.wait_for("running", 0);
    server.wait_for("queued", 0);
    let grown = resident[1].saturating_sub(resident[0]);
    assert!(
        grown < 64 << 20,
        "the second load took {grown} bytes more: {resident:?}"
    );
    println!(
        "{model}: {answered} requests of {} instances, {} broken off, {} refused at first, in \
         {seconds:.2} s: {:.0} requests/s, mean latency {:.2} ms, slowest {:.1} ms, at most \
         {most_queued} queued, {} MB",
        count(&counts.instances),
        count(&counts.broken_off),
        count(&counts.refused),
        answered as f64 / seconds,
        count(&counts.microseconds) as f64 / 1e3 / answered as f64,
        count(&counts.slowest) as f64 / 1e3,
        resident[1] >> 20,
    );
    server.run.signal("-TERM");
    let (code, _, stderr) = server.run.end();
    assert_eq!(code, 0, "{stderr}");
    assert!(!stderr.contains("panicked"), "{stderr}");
}

#[test]
fn under_load_every_answer_has_the_bits_of_batch_1() {
    load("treelstm", &[]);
}

#[test]
fn under_load_instances_that_decide_have_the_bits_of_batch_1() {
    load("berxit", &["--threads", "2"]);
}

#[test]
fn a_connection_that_says_nothing_holds_up_no_other() {
    let server = Server::of_golden(&goldens("treelstm")[0], &["--max-connections", "64"]);
    let mut silent: Vec<Client> = (0..40).map(|_| server.client()).collect();
    for (number, client) in silent.iter_mut().enumerate() {
        let begun = [
            "",
            "POST /in",
            "POST /infer HTTP/1.1\r\ncontent-length: 1000\r\n\r\n{",
        ];
        client.send(begun[number % 3].as_bytes()).unwrap();
    }
    let known = Known::of("treelstm");
    let (instance, record) = known.pick(&mut Rng::new(1), "x");
    let response = server.client().post("/infer", &instance).unwrap();
    assert_eq!(response.text().trim_end(), record);
}
