//! Instances one at a time, from many threads: each has its own answer, whatever the others do.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake};
use std::time::{Duration, Instant};

use cohort_runtime::abi::manifest::*;
use cohort_runtime::io::input::{Inputs, Patience, Reader};
use cohort_runtime::io::output::columns::Columns;
use cohort_runtime::serving::{Answer, Engine, Failure, Options, Settings, Ticket};
use cohort_runtime::{Batch, Config, Error, Limits, Session};

use crate::program::{Tree, echo_session, tree_session};
use crate::walk::*;

const LONG: Duration = Duration::from_secs(60);

fn config() -> Config {
    Config {
        batch: Batch::InFlight(8),
        limits: Limits {
            max_nodes: u64::MAX,
            max_steps: u64::MAX,
            ..Limits::default()
        },
        ..Config::default()
    }
}

fn settings(in_flight: usize, max_queued: usize) -> Settings {
    Settings {
        in_flight,
        max_queued,
        ..Settings::default()
    }
}

fn walks(in_flight: usize, max_queued: usize) -> Engine {
    Engine::start(settings(in_flight, max_queued), || {
        Ok(walk_session(config()))
    })
    .unwrap()
}

/// The instance of a line.
fn built(manifest: &Manifest, line: &str) -> Inputs {
    let mut inputs = Inputs::default();
    let mut reader = Reader::new(manifest, line.as_bytes(), 1 << 30, 1 << 20);
    let read = reader.read_batch(&mut inputs, 0, 1, u64::MAX, Patience::Full);
    assert!(read.is_ok() && inputs.len() == 1, "{line}");
    inputs
}

fn submit(engine: &Engine, line: &str) -> Ticket {
    let instance = built(engine.manifest(), line);
    engine.submit(instance, Options::default()).unwrap()
}

fn answer(ticket: &mut Ticket) -> Answer {
    ticket.wait(LONG).expect("an answer in time")
}

fn kind(answer: &Answer) -> &'static str {
    match answer {
        Ok(_) => "done",
        Err(Failure::Instance(error)) => error.kind,
        Err(Failure::Engine(_)) => "engine",
    }
}

/// What a session makes of each line alone.
fn alone(mut session: Session, lines: &[String]) -> Vec<Columns> {
    use cohort_runtime::io::feed::{Supplied, Supply};
    use cohort_runtime::io::output::columns::Collector;
    struct One(Option<Inputs>);
    impl Supply for One {
        fn next(&mut self, _: usize, _: bool) -> Result<Supplied, Error> {
            Ok((self.0.take()).map_or(Supplied::End, |inputs| {
                Supplied::Instances(Box::new(inputs))
            }))
        }
    }
    let manifest = Arc::new(session.program().manifest().clone());
    let each = lines.iter().map(|line| {
        let found = Arc::new(Mutex::new(Columns::default()));
        let taken = found.clone();
        let mut sink = Collector::new(manifest.clone(), 1 << 30, move |columns| {
            *taken.lock().unwrap() = columns;
            Ok(())
        });
        let mut supply = One(Some(built(&manifest, line)));
        session.run(&mut supply, &mut sink, &mut |_| {}).unwrap();
        std::mem::take(&mut *found.lock().unwrap())
    });
    each.collect()
}

/// The numbers of an answer; ids are those of lines.
fn columns(answer: Answer) -> Vec<cohort_runtime::io::output::columns::Column> {
    answer.unwrap().columns
}

fn from_many_threads(engine: &Engine, lines: &[String], expected: &[Columns]) {
    let manifest = engine.manifest();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            scope.spawn(move || {
                let mut tickets = Vec::new();
                for at in (thread..lines.len()).step_by(8) {
                    let mut instance = built(manifest, &lines[at]);
                    loop {
                        match engine.submit(instance, Options::default()) {
                            Ok(ticket) => break tickets.push((at, ticket)),
                            Err(full) => instance = *full.0,
                        }
                        assert!(engine.wait_for_room(LONG));
                    }
                }
                for (at, mut ticket) in tickets {
                    assert_eq!(columns(answer(&mut ticket)), expected[at].columns, "{at}");
                }
            });
        }
    });
    assert!(engine.drain(LONG));
    let stats = engine.stats();
    assert_eq!((stats.queued, stats.running), (0, 0));
    assert_eq!((stats.done, stats.failed), (lines.len() as u64, 0));
}

#[test]
fn many_submitters_get_the_bits_of_each_instance_alone() {
    let kinds = [WALK, NEVER_DECIDE, RECURSE, DECIDE_BY_INPUT];
    let lines: Vec<String> = (0..400)
        .map(|seed| line(seed, kinds[seed as usize % 4]))
        .collect();
    let expected = alone(walk_session(config()), &lines);
    from_many_threads(&walks(8, 16), &lines, &expected);
}

#[test]
fn a_program_without_decisions_takes_what_waits() {
    let mut seed = 5;
    let lines: Vec<String> = (0..300)
        .map(|size| format!("{{\"t\": {}}}\n", Tree::random(&mut seed, size % 9).json()))
        .collect();
    let expected = alone(tree_session(config()), &lines);
    let engine = Engine::start(settings(32, 64), || Ok(tree_session(config()))).unwrap();
    from_many_threads(&engine, &lines, &expected);
}

#[test]
fn instances_built_apart_are_joined_with_all_that_they_have() {
    let pool = |elem, shape: &[u64]| RowPool {
        elem,
        shape: shape.to_vec(),
    };
    let make = move || {
        let ragged = Type::Ragged {
            pool: 1,
            dims: vec![LeadingDim::Known(2), LeadingDim::Named(0)],
        };
        let field = Type::Tuple(vec![Type::Scalar(Elem::I32), Type::Tensor { pool: 0 }]);
        let types = vec![
            Type::Adt(0),
            Type::Stacked { pool: 1 },
            Type::Array(Box::new(Type::Tuple(vec![
                Type::Adt(0),
                Type::Tensor { pool: 2 },
            ]))),
            ragged,
        ];
        let adts = vec![Adt {
            name: "Tree".to_owned(),
            constructors: vec![
                Constructor {
                    name: "Leaf".to_owned(),
                    fields: vec![field],
                    names: vec![],
                },
                Constructor {
                    name: "Node".to_owned(),
                    fields: vec![
                        Type::Adt(0),
                        Type::Array(Box::new(Type::Tensor { pool: 0 })),
                        Type::Adt(0),
                    ],
                    names: vec![],
                },
                Constructor {
                    name: "Empty".to_owned(),
                    fields: vec![],
                    names: vec![],
                },
            ],
        }];
        let row_pools = vec![
            pool(Elem::F32, &[2]),
            pool(Elem::F32, &[]),
            pool(Elem::Bool, &[2]),
        ];
        echo_session(types, adts, row_pools, config())
    };
    let lines: Vec<String> = (0..60)
        .map(|i| {
            let leaf = |x: i32| format!(r#"{{"Leaf": [[{i}, [{i}, {x}]]]}}"#);
            let tree = match i % 3 {
                0 => r#""Empty""#.to_owned(),
                1 => leaf(1),
                _ => format!(
                    r#"{{"Node": [{}, [[{i}, 0.5], [1, 2]], {}]}}"#,
                    leaf(2),
                    leaf(3)
                ),
            };
            let rows = |count: i32| {
                (0..count)
                    .map(|row| format!("{}", row + i))
                    .collect::<Vec<_>>()
                    .join(", ")
            };
            let pairs: Vec<String> = (0..i % 4)
                .map(|_| format!("[{tree}, [true, false]]"))
                .collect();
            let ragged = [rows(i % 5), rows(i % 5)].map(|rows| format!("[{rows}]"));
            format!(
                "{{\"id\": {i}, \"a\": {tree}, \"b\": [{}], \"c\": [{}], \"d\": [{}]}}\n",
                rows(i % 6),
                pairs.join(", "),
                ragged.join(", ")
            )
        })
        .collect();
    let expected = alone(make(), &lines);
    let engine = Engine::start(settings(16, 64), move || Ok(make())).unwrap();
    from_many_threads(&engine, &lines, &expected);
}

#[test]
fn there_is_room_for_so_many_and_no_more() {
    let engine = walks(2, 3);
    let forever: Vec<Ticket> = (0..2)
        .map(|seed| submit(&engine, &line(seed, WALK_FOREVER)))
        .collect();
    let begin = Instant::now();
    while engine.stats().running < 2 && begin.elapsed() < LONG {
        std::thread::yield_now();
    }
    let mut queued: Vec<Ticket> = (0..3)
        .map(|seed| submit(&engine, &line(seed, WALK)))
        .collect();
    let refused = engine.submit(built(engine.manifest(), &line(9, WALK)), Options::default());
    assert!(refused.is_err_and(|full| full.0.len() == 1));
    assert!(!engine.wait_for_room(Duration::from_millis(10)));
    assert_eq!(engine.stats().refused, 1);
    drop(forever);
    for ticket in &mut queued {
        assert_eq!(kind(&answer(ticket)), "done");
    }
    assert!(engine.wait_for_room(LONG) && engine.drain(LONG));
    assert_eq!(engine.stats().cancelled, 2);
}

#[test]
fn what_is_cancelled_is_answered_at_once_and_the_others_go_on() {
    let engine = walks(4, 64);
    let mut forever = submit(&engine, &line(1, WALK_FOREVER));
    let mut others: Vec<Ticket> = (0..20)
        .map(|seed| submit(&engine, &line(seed, WALK)))
        .collect();
    for ticket in &mut others {
        assert_eq!(kind(&answer(ticket)), "done");
    }
    assert!(forever.try_poll().is_none() && forever.cancel() && !forever.cancel());
    assert_eq!(kind(&forever.try_poll().expect("an answer")), "cancelled");
    assert!(engine.drain(LONG), "its place is free");
    let mut after = submit(&engine, &line(3, WALK));
    assert_eq!(kind(&answer(&mut after)), "done");
    assert_eq!((engine.stats().cancelled, engine.stats().done), (1, 21));
}

#[test]
fn deadlines_end_what_runs_and_what_waits() {
    let engine = walks(1, 64);
    let by = |milliseconds| Options {
        deadline: Some(Instant::now() + Duration::from_millis(milliseconds)),
        ..Options::default()
    };
    let forever = |seed| built(engine.manifest(), &line(seed, WALK_FOREVER));
    let mut running = engine.submit(forever(1), by(1000)).unwrap();
    let mut waiting = engine.submit(forever(2), by(20)).unwrap();
    let mut over = engine.submit(forever(3), by(0)).unwrap();
    let mut in_time = engine
        .submit(built(engine.manifest(), &line(3, WALK)), by(60_000))
        .unwrap();
    assert_eq!(
        kind(&over.try_poll().expect("an answer at once")),
        "deadline"
    );
    assert_eq!(kind(&answer(&mut waiting)), "deadline");
    assert!(
        running.try_poll().is_none(),
        "the other one's deadline is later"
    );
    assert_eq!(kind(&answer(&mut running)), "deadline");
    assert_eq!(kind(&answer(&mut in_time)), "done");
    assert_eq!((engine.stats().late, engine.stats().done), (3, 1));
}

#[test]
fn priorities_count_as_time_that_was_waited() {
    let engine = walks(1, 64);
    let forever = submit(&engine, &line(1, WALK_FOREVER));
    while engine.stats().running < 1 {
        std::thread::yield_now();
    }
    let order = Arc::new(Mutex::new(Vec::new()));
    for (name, priority) in [
        ("first", 0),
        ("second", 0),
        ("last", -5000),
        ("before", 5000),
    ] {
        let order = order.clone();
        let options = Options {
            priority,
            deadline: None,
        };
        let then = Box::new(move |_| order.lock().unwrap().push(name));
        let instance = built(engine.manifest(), &line(4, WALK));
        engine.submit_then(instance, options, then).unwrap();
    }
    drop(forever);
    assert!(engine.drain(LONG));
    // The last answer is given after it is counted.
    while order.lock().unwrap().len() < 4 {
        std::thread::yield_now();
    }
    assert_eq!(
        *order.lock().unwrap(),
        ["before", "first", "second", "last"]
    );
}

#[test]
fn a_wrong_instance_is_answered_and_harms_nobody() {
    let engine = walks(4, 16);
    let mut wrong = submit(&engine, "{\"id\": 3, \"seed\": []}\n");
    let mut failing = submit(&engine, &line(2, FAIL_LATER));
    let mut good = submit(&engine, &line(2, WALK));
    assert_eq!(
        kind(&wrong.try_poll().expect("an answer at once")),
        "bad_input"
    );
    assert_eq!(kind(&answer(&mut failing)), "index_out_of_range");
    assert_eq!(kind(&answer(&mut good)), "done");
    assert_eq!((engine.stats().failed, engine.stats().done), (2, 1));
}

#[test]
fn an_engine_that_is_dropped_answers_all() {
    let engine = walks(2, 64);
    let line = line(1, WALK_FOREVER);
    let mut tickets: Vec<Ticket> = (0..10).map(|_| submit(&engine, &line)).collect();
    drop(engine);
    for ticket in &mut tickets {
        assert_eq!(kind(&answer(ticket)), "cancelled");
    }
}

#[test]
fn a_session_that_cannot_go_on_is_told_to_all() {
    let engine = walks(4, 64);
    let mut forever = submit(&engine, &line(1, WALK_FOREVER));
    let mut forged = submit(&engine, &line(2, FORGE));
    for ticket in [&mut forever, &mut forged] {
        assert_eq!(kind(&answer(ticket)), "engine");
    }
    assert_eq!(
        kind(&answer(&mut submit(&engine, &line(2, WALK)))),
        "engine"
    );
    let failed = Engine::start(Settings::default(), || {
        Err(Error::Usage("no session".to_owned()))
    });
    assert!(failed.is_err_and(|error| error.to_string().contains("no session")));
    let panicked = Engine::start(Settings::default(), || panic!("on purpose"));
    assert!(panicked.is_err());
}

#[test]
fn inputs_of_other_than_one_instance_are_refused_with_an_answer() {
    let engine = walks(4, 64);
    let mut none = engine
        .submit(Inputs::default(), Options::default())
        .unwrap();
    assert_eq!(kind(&answer(&mut none)), "engine");
    assert_eq!(kind(&answer(&mut submit(&engine, &line(2, WALK)))), "done");
}

struct Unpark(std::thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

#[test]
fn tickets_are_awaited() {
    let engine = walks(4, 64);
    let all = async {
        let first = submit(&engine, &line(1, WALK));
        let second = submit(&engine, &line(2, RECURSE));
        (first.await, second.await)
    };
    let waker = Arc::new(Unpark(std::thread::current())).into();
    let mut context = Context::from_waker(&waker);
    let mut all = pin!(all);
    let (first, second) = loop {
        match all.as_mut().poll(&mut context) {
            Poll::Ready(answers) => break answers,
            Poll::Pending => std::thread::park_timeout(LONG),
        }
    };
    assert_eq!((kind(&first), kind(&second)), ("done", "done"));
}
