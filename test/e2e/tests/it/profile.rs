//! `--profile`: a trace that viewers open, whose launches are those of `--stats`.

use std::collections::BTreeMap;
use std::fs;

use cohort_e2e::paths::model_source;
use cohort_e2e::{Model, Rng};
use serde_json::Value as Json;

use crate::models::{model_case, to_text};

/// What of an event is compared, in nanoseconds.
#[derive(Clone, Debug)]
struct Span {
    name: String,
    thread: u64,
    begin: u64,
    end: u64,
    args: Json,
}

struct Profiled {
    events: Vec<Json>,
    left_out: u64,
    stats: Json,
}

fn run(model: &Model, instances: &str, arguments: &[&str]) -> Profiled {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (profile, stats) = (folder.path().join("p.json"), folder.path().join("s.json"));
    let call = model.batch_run().args(arguments);
    let call = call.arg("--profile").arg(&profile);
    let outcome = call.arg("--stats").arg(&stats).run(instances);
    let outcome = outcome.expect_code(0);
    let read = |path| {
        let text = fs::read_to_string(path).unwrap_or_default();
        serde_json::from_str::<Json>(&text)
            .unwrap_or_else(|error| panic!("{error} from {}", outcome.describe()))
    };
    let trace = read(&profile);
    let events = trace["traceEvents"].as_array().expect("a list of events");
    Profiled {
        events: events.clone(),
        left_out: trace["otherData"]["left_out"].as_u64().expect("a number"),
        stats: read(&stats),
    }
}

fn nanoseconds(event: &Json, name: &str) -> u64 {
    let microseconds = event[name].as_f64();
    (microseconds.unwrap_or_else(|| panic!("no `{name}` in {event}")) * 1e3).round() as u64
}

impl Profiled {
    /// Spans of a category, in the order of the file.
    fn spans(&self, category: &str) -> Vec<Span> {
        let of_category = |event: &&Json| event["ph"] == "X" && event["cat"] == category;
        let span = |event: &Json| {
            let begin = nanoseconds(event, "ts");
            Span {
                name: event["name"].as_str().expect("a name").to_owned(),
                thread: event["tid"].as_u64().expect("a thread"),
                begin,
                end: begin + nanoseconds(event, "dur"),
                args: event["args"].clone(),
            }
        };
        (self.events.iter().filter(of_category).map(span)).collect()
    }

    fn named(&self, category: &str, name: &str) -> Vec<Span> {
        let all = self.spans(category).into_iter();
        all.filter(|span| span.name == name).collect()
    }

    /// Each span of a thread begins behind those before it, and ends within all that are open.
    #[track_caller]
    fn check_nesting(&self) {
        let categories = ["start", "phase", "launch", "share"];
        let of_file = |event: &&Json| event["ph"] == "X";
        let count: usize = (categories.iter())
            .map(|category| self.spans(category).len())
            .sum();
        assert_eq!(count, self.events.iter().filter(of_file).count());
        let mut open: BTreeMap<u64, Vec<(u64, u64)>> = BTreeMap::new();
        let mut last: BTreeMap<u64, u64> = BTreeMap::new();
        for event in self.events.iter().filter(of_file) {
            let thread = event["tid"].as_u64().expect("a thread");
            let begin = nanoseconds(event, "ts");
            let end = begin + nanoseconds(event, "dur");
            assert!(begin >= *last.get(&thread).unwrap_or(&0), "{event}");
            last.insert(thread, begin);
            let open = open.entry(thread).or_default();
            while open.last().is_some_and(|(_, outer)| *outer <= begin) {
                open.pop();
            }
            for (outer_begin, outer_end) in open.iter() {
                assert!(
                    *outer_begin <= begin && end <= *outer_end,
                    "{event} in {outer_begin}..{outer_end}"
                );
            }
            open.push((begin, end));
        }
    }

    /// Launches, rows and time of each kernel are as the statistics have them; each launch is in a flush.
    #[track_caller]
    fn check_launches(&self) {
        let launches = self.spans("launch");
        let flushes = self.named("phase", "flush");
        assert_eq!(self.stats["flushes"], flushes.len());
        for launch in &launches {
            let is_around = |flush: &Span| flush.begin <= launch.begin && launch.end <= flush.end;
            assert!(flushes.iter().any(is_around), "{launch:?}");
        }
        let kernels = self.stats["kernels"].as_array().expect("a list of kernels");
        assert!(kernels.iter().any(|kernel| kernel["launches"] != 0));
        for (number, kernel) in kernels.iter().enumerate() {
            let own = launches
                .iter()
                .filter(|launch| launch.args["kernel"] == number);
            let (mut count, mut rows, mut time) = (0, 0, 0);
            for launch in own {
                assert_eq!(kernel["name"], *launch.name);
                assert_eq!(kernel["location"], launch.args["place"]);
                count += 1;
                rows += launch.args["rows"].as_u64().expect("rows");
                time += launch.end - launch.begin;
            }
            assert_eq!(kernel["launches"], count, "{kernel}");
            assert_eq!(kernel["rows"], rows, "{kernel}");
            let seconds = kernel["seconds"].as_f64().expect("seconds");
            assert!((seconds - time as f64 * 1e-9).abs() < 1e-9, "{kernel}");
        }
    }

    fn gauge(&self, name: &str) -> Vec<u64> {
        let own = |event: &&Json| event["ph"] == "C" && event["name"] == name;
        let value = |event: &Json| {
            let mut values = event["args"].as_object().expect("values").values();
            values.next().and_then(Json::as_u64).expect("a number")
        };
        self.events.iter().filter(own).map(value).collect()
    }
}

#[test]
fn a_batched_run_shows_how_it_started_and_what_each_flush_launched() {
    let case = model_case("treelstm");
    let model = case.shipped();
    let instances = to_text(&case.instances(&model, 30, &mut Rng::new(7)));
    let profiled = run(&model, &instances, &["--batch", "8"]);
    assert_eq!(profiled.left_out, 0);
    profiled.check_nesting();
    profiled.check_launches();
    let starts = profiled.spans("start");
    let names: Vec<&str> = starts.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(names, ["open", "compile", "pack the weights"]);
    let recorded = profiled.named("phase", "record");
    assert_eq!(recorded.len(), 4);
    assert!(starts.iter().all(|start| start.end <= recorded[0].begin));
    let compile = profiled.stats["compile_seconds"].as_f64().unwrap_or(0.0);
    let shown = (starts[1].end - starts[0].begin) as f64 * 1e-9;
    assert!((shown - compile).abs() < 0.05, "{shown} and {compile}");
    for phase in ["read", "write", "schedule"] {
        assert!(profiled.named("phase", phase).len() >= 4, "{phase}");
    }
    let bytes = profiled.gauge("memory of rows");
    assert_eq!(bytes.len(), 4);
    assert!(bytes.iter().all(|bytes| *bytes > 0));
}

#[test]
fn threads_show_their_share_of_a_launch() {
    let source = model_source("treelstm");
    let mut rng = Rng::new(3);
    let dims = [("V", 50), ("D", 256), ("H", 256), ("C", 5)];
    let model = Model::with_random_weights(&source, &dims, &mut rng);
    let instances = to_text(&model_case("treelstm").instances(&model, 40, &mut rng));
    let profiled = run(&model, &instances, &["--threads", "2"]);
    profiled.check_nesting();
    profiled.check_launches();
    let (launches, shares) = (profiled.spans("launch"), profiled.spans("share"));
    assert!(shares.iter().any(|share| share.thread == 0), "{shares:?}");
    for share in &shares {
        assert!(share.thread < 2 && share.args["work_items"].as_u64() > Some(0));
        let its = launches.iter().find(|launch| {
            launch.args["kernel"] == share.args["kernel"]
                && launch.begin <= share.begin
                && share.end <= launch.end
        });
        assert!(its.is_some(), "{share:?}");
    }
}

#[test]
fn instances_that_decide_are_shown_from_their_beginning_to_their_end() {
    let case = model_case("act");
    let model = case.shipped();
    let instances = to_text(&case.instances(&model, 20, &mut Rng::new(5)));
    let profiled = run(&model, &instances, &["--in-flight", "6"]);
    profiled.check_nesting();
    profiled.check_launches();
    let mut ends = BTreeMap::new();
    for event in profiled.events.iter().filter(|event| event["ph"] == "e") {
        ends.insert(event["id"].to_string(), nanoseconds(event, "ts"));
    }
    let begins = profiled.events.iter().filter(|event| event["ph"] == "b");
    let mut count = 0;
    for begin in begins {
        let end = ends[&begin["id"].to_string()];
        assert!(nanoseconds(begin, "ts") < end, "{begin}");
        count += 1;
    }
    assert_eq!((count, ends.len()), (20, 20));
    let alive = profiled.gauge("instances alive");
    // Those that wait for no decision are beside the six.
    assert!(alive.iter().max() >= Some(&6), "{alive:?}");
    assert_eq!(alive.last(), Some(&0), "{alive:?}");
    assert!(!profiled.named("phase", "decide").is_empty());
}

#[test]
fn of_a_benchmark_the_last_repetition_is_shown() {
    let case = model_case("treelstm");
    let model = case.shipped();
    let instances = to_text(&case.instances(&model, 12, &mut Rng::new(9)));
    let arguments = ["--benchmark-repetitions", "3", "--batch", "4"];
    let profiled = run(&model, &instances, &arguments);
    profiled.check_nesting();
    profiled.check_launches();
    assert_eq!(profiled.spans("start").len(), 3);
}

#[test]
fn calls_on_a_device_are_in_a_track_of_their_own() {
    let case = model_case("treelstm");
    let model = case.shipped();
    let instances = to_text(&case.instances(&model, 3, &mut Rng::new(2)));
    let profiled = run(&model, &instances, &["--device", "gpu-sim"]);
    let launches = profiled.spans("launch");
    assert_eq!(profiled.stats["kernel_launches"], launches.len());
    assert!(launches.iter().all(|launch| launch.thread == 1));
    let is_name = |event: &&Json| event["ph"] == "M" && event["tid"] == 1;
    let name = profiled.events.iter().find(is_name).expect("a name");
    assert_eq!(name["args"]["name"], "device");
}

#[test]
fn a_profile_does_not_go_where_something_is_read() {
    let model = model_case("treelstm").shipped();
    let call = model.batch_run().arg("--profile").arg(&model.weights_path);
    call.run("")
        .expect_code(2)
        .expect_message(&["--profile", "the weights file"]);
}
