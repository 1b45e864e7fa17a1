//! Tensors whose lengths differ: the same bits whatever the batch, and errors of one instance only.

use cohort_runtime::abi::gpu::{CallTiles, GpuFunction, GpuKernel, GpuLaunch, TiledDim};
use cohort_runtime::abi::manifest::*;
use cohort_runtime::verify::{Options, Verdict, verify};
use cohort_runtime::{Batch, Config, Error, Limits, Policy, Program, Session, Weights};
use serde_json::Value;

use crate::program::{Functions, echo_session, run};
use crate::ragged_program::*;

/// All lengths with all paths, none and one among them.
fn instances(decides: bool) -> Vec<Instance> {
    let kinds: Vec<i32> = (0..16)
        .filter(|kind| decides || kind & DECIDE == 0)
        .collect();
    let lengths = [3, 0, 1, 17, 5, 2, 0, 40, 9];
    let all = (0..kinds.len() * 9).map(|i| Instance::new(lengths[i % 9], kinds[i % kinds.len()]));
    all.collect()
}

fn lines(instances: &[Instance]) -> String {
    instances.iter().map(Instance::line).collect()
}

/// The same with the bits of all numbers.
fn bits(value: &Value) -> Value {
    match value {
        Value::Array(parts) => parts.iter().map(bits).collect(),
        number => Value::from(number.to_string().parse::<f32>().unwrap().to_bits()),
    }
}

#[test]
fn results_are_those_of_the_program_whatever_the_batch() {
    for decides in [false, true] {
        let instances = instances(decides);
        let input = lines(&instances);
        let (reference, stats) = run(&mut ragged_session(decides, Config::default()), &input);
        assert_eq!(stats.failed, 0, "{reference:?}");
        for (instance, line) in instances.iter().zip(&reference) {
            let found: Value = serde_json::from_str(line).unwrap();
            let expected = serde_json::to_value(instance.expected()).unwrap();
            assert_eq!(bits(&found["output"]), bits(&expected), "{line}");
        }
        for (threads, remapping) in [(1, true), (2, true), (2, false), (5, true)] {
            for batch in [
                Batch::Count(1),
                Batch::Count(7),
                Batch::All,
                Batch::Unbatched,
                Batch::InFlight(11),
            ] {
                for scheduler in [
                    Policy::Depth,
                    Policy::Agenda,
                    Policy::Lookahead,
                    Policy::Instances,
                ] {
                    let config = Config {
                        batch,
                        threads,
                        scheduler,
                        gather_fusion: threads == 1,
                        remapping,
                        shared_prelude: remapping,
                        ..Config::default()
                    };
                    let (output, _) = run(&mut ragged_session(decides, config), &input);
                    assert!(output == reference, "{batch:?} {scheduler:?} {threads}");
                }
            }
        }
    }
}

#[test]
fn the_check_of_invariance_knows_calls_of_several_rows() {
    for decides in [false, true] {
        let input = lines(&instances(decides));
        let options = Options {
            compositions: 20,
            seed: 1,
            max_threads: 2,
            cotangents: None,
        };
        let verdict = verify(
            &ragged_program(decides),
            &Weights::none(),
            Config::default(),
            input.as_bytes(),
            options,
            &mut |_| {},
        );
        assert!(matches!(verdict.unwrap(), Verdict::Holds(_)));
    }
}

#[test]
fn an_instance_with_too_many_rows_fails_and_no_other() {
    let good = Instance::new(5, PREFIX | STACK).line();
    let cases = [
        (
            TOO_MANY_ROWS,
            "memory_limit",
            "900000000 rows in one call, where ",
        ),
        (
            OVERFLOW,
            "memory_limit",
            "needs more rows than there is memory for: 9223372036854775807 rows",
        ),
        (
            NEGATIVE,
            "shape_mismatch",
            "a length of -5, which is not between 0 and 2147483647 (ragged.coh:big)",
        ),
        (
            SHORT_STACK,
            "shape_mismatch",
            "dims 3 and 0 differ (ragged.coh:stacked)",
        ),
    ];
    for batch in [Batch::All, Batch::Count(1), Batch::Unbatched] {
        let config = Config {
            batch,
            limits: Limits {
                max_memory: 1 << 20,
                ..Limits::default()
            },
            ..Config::default()
        };
        let (alone, _) = run(&mut ragged_session(false, config), &good);
        for (kind, error, message) in cases {
            let bad = Instance::new(3, kind).line();
            let input = format!("{good}{bad}{good}");
            let (output, stats) = run(&mut ragged_session(false, config), &input);
            assert_eq!((stats.instances, stats.failed), (3, 1), "{output:?}");
            assert_eq!([&output[0][9..], &output[2][9..]], [&alone[0][9..]; 2]);
            let record: Value = serde_json::from_str(&output[1]).unwrap();
            assert_eq!(record["error"]["kind"], error, "{record}");
            let found = record["error"]["message"].as_str().unwrap();
            assert!(found.contains(message), "{found}");
        }
    }
}

#[test]
fn rows_and_padding_that_was_not_computed_are_counted() {
    let instances: Vec<Instance> = [2, 6, 0, 4].map(|n| Instance::new(n, PREFIX)).into();
    let (_, stats) = run(
        &mut ragged_session(false, Config::default()),
        &lines(&instances),
    );
    let of = |name: &str| stats.kernels.iter().find(|k| k.name == name).unwrap();
    let (scale, running, total) = (of("scale"), of("running"), of("total"));
    assert_eq!((scale.launches, scale.rows), (1, 12));
    let work = scale.ragged.unwrap();
    assert_eq!((work.calls, work.dense_rows), (4, 24));
    assert_eq!((work.flops, work.dense_flops), (1_200_000, 2_400_000));
    // Rows of 16, 4 and 16 bytes.
    assert_eq!((work.bytes, work.dense_bytes), (12 * 36, 24 * 36));
    assert_eq!((running.launches, running.rows), (1, 12));
    assert_eq!(running.flops, 12 * 200_000);
    assert_eq!((total.rows, total.ragged.unwrap().calls), (4, 4));
    let mut session = ragged_session(false, Config::default());
    session.survey();
    let (_, stats) = run(&mut session, &lines(&instances));
    let explanation = session.explain(&stats).unwrap();
    assert_eq!(explanation.blocks[1].ragged, Some(work));
    assert_eq!(explanation.blocks[1].flops, work.flops);
    assert_eq!(explanation.losses, []);
    assert!(stats.prelude_tables.made > 0 && stats.prelude_tables.shared > 0);
    assert!(stats.prelude_seconds > 0.0 && stats.prelude_seconds <= stats.schedule_seconds);
}

/// `main(a: f32[n, 2], b: f32[n, m], c: [f32[3, _, 1]])`.
fn echo() -> Session {
    let pool = |shape: &[u64]| RowPool {
        elem: Elem::F32,
        shape: shape.to_vec(),
    };
    let ragged = |pool, dims: &[LeadingDim]| Type::Ragged {
        pool,
        dims: dims.to_vec(),
    };
    let named = LeadingDim::Named;
    echo_session(
        vec![
            ragged(0, &[named(0)]),
            ragged(1, &[named(0), named(1)]),
            Type::Array(Box::new(ragged(
                2,
                &[LeadingDim::Known(3), LeadingDim::Any],
            ))),
        ],
        vec![],
        vec![pool(&[2]), pool(&[]), pool(&[1])],
        Config::default(),
    )
}

#[test]
fn ragged_tensors_are_nested_lists() {
    let cases = [
        ("[[1.5, 2.0]]", "[[3.0, 4.0]]", "[]"),
        ("[]", "[]", "[[[], [], []]]"),
        (
            "[[1.0, 2.0], [3.0, 4.0]]",
            "[[], []]",
            "[[[[5.0]], [[6.0]], [[7.0]]], [[], [], []]]",
        ),
        (
            "[[1.0, 2.0], [3.0, 4.0]]",
            "[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]",
            "[[[[5.0], [5.5]], [[6.0], [6.5]], [[7.0], [7.5]]]]",
        ),
    ];
    for (a, b, c) in cases {
        let input = format!("{{\"a\": {a}, \"b\": {b}, \"c\": {c}}}\n");
        let (output, _) = run(&mut echo(), &input);
        let expected = format!("{{\"id\": 1, \"output\": [{a}, {b}, {c}]}}");
        assert_eq!(output, [expected]);
    }
}

#[test]
fn what_is_wrong_with_a_ragged_tensor() {
    let good = ("[[1, 2]]", "[[3, 4]]", "[]");
    let cases = [
        (
            ("5", good.1, good.2),
            "bad_input",
            "argument a: expected a list (f32[n, 2]), found 5",
        ),
        (
            ("[[1, 2], [3]]", good.1, good.2),
            "bad_input",
            "argument a: at [1][1]: expected an f32, found the end of the list",
        ),
        (
            (good.0, "[[1, 2], [3]]", good.2),
            "bad_input",
            "argument b: at [1]: expected a list of 2, as long as the first one there, found one of 1",
        ),
        (
            (good.0, "[[1, 2], [3, 4], [5, 6, {}, [7]]]", good.2),
            "bad_input",
            "argument b: at [2]: expected a list of 2, as long as the first one there, found one of 4",
        ),
        (
            (good.0, "[[], [3]]", good.2),
            "bad_input",
            "argument b: at [1]: expected a list of 0, as long as the first one there, found one of 1",
        ),
        (
            (good.0, "[[1, [2]]]", good.2),
            "bad_input",
            "argument b: at [0][1]: expected an f32, found a list",
        ),
        (
            (good.0, "[[1, 2], 3]", good.2),
            "bad_input",
            "argument b: at [1]: expected a list (f32[m]), found 3",
        ),
        (
            (good.0, good.1, "[[[[1]], [[2]]]]"),
            "bad_input",
            "argument c: at [0]: expected a list of 3, found one of 2",
        ),
        (
            (good.0, good.1, "[[[], [], [], []]]"),
            "bad_input",
            "argument c: at [0]: expected a list of 3, found one of 4",
        ),
        (
            ("[[1, 2], [3, 4]]", "[[3, 4]]", good.2),
            "shape_mismatch",
            "dim n is 2 in argument a, axis 0, and 1 in argument b, axis 0",
        ),
        (
            ("[]", "[[3, 4]]", good.2),
            "shape_mismatch",
            "dim n is 0 in argument a, axis 0, and 1 in argument b, axis 0",
        ),
    ];
    for ((a, b, c), kind, message) in cases {
        let line = |a, b, c| format!("{{\"a\": {a}, \"b\": {b}, \"c\": {c}}}\n");
        let good = line(good.0, good.1, good.2);
        let (output, stats) = run(&mut echo(), &format!("{good}{}{good}", line(a, b, c)));
        assert_eq!((stats.instances, stats.failed), (3, 1), "{output:?}");
        let record: Value = serde_json::from_str(&output[1]).unwrap();
        assert_eq!(record["error"]["kind"], kind, "{record}");
        assert_eq!(record["error"]["message"], message);
        assert_eq!(output[0][9..], output[2][9..]);
    }
    let deep = format!("{{\"a\": {}", "[".repeat(300_000));
    let (output, _) = run(&mut echo(), &deep);
    assert!(output[0].contains("bad_input"), "{}", output[0]);
}

#[test]
fn a_dim_that_one_argument_cannot_show_is_taken_from_another() {
    // `f32[n, m]` with no rows tells nothing about `m`; the second tells, later in the line.
    let named = LeadingDim::Named;
    let ragged = |dims: &[LeadingDim]| Type::Ragged {
        pool: 0,
        dims: dims.to_vec(),
    };
    let types = vec![
        Type::Array(Box::new(ragged(&[named(0), named(1)]))),
        ragged(&[named(1)]),
        ragged(&[LeadingDim::Known(2), named(0), named(1)]),
    ];
    let row_pools = vec![RowPool {
        elem: Elem::F32,
        shape: vec![],
    }];
    let mut session = echo_session(types, vec![], row_pools, Config::default());
    let line = "{\"a\": [[], []], \"b\": [1, 2, 3], \"c\": [[], []]}";
    let (output, _) = run(&mut session, &format!("{line}\n{line}"));
    for (index, output) in output.iter().enumerate() {
        let expected = "\"output\": [[[], []], [1.0, 2.0, 3.0], [[], []]]";
        assert_eq!(*output, format!("{{\"id\": {}, {expected}}}", index + 1));
    }
}

#[test]
fn broken_manifests_of_ragged_kernels_are_refused() {
    type Break = fn(&mut Manifest);
    let broken: [(&str, Break); 11] = [
        ("operand 1 counts rows and is not a length", |manifest| {
            manifest.kernels[1].call.extents[0].lengths[0] = 1;
        }),
        ("no extent 7", |manifest| {
            manifest.kernels[1].call.rows = Some(7)
        }),
        ("operand 1 has other rows than the call", |manifest| {
            manifest.kernels[1].call.rows = None;
        }),
        ("operand 1 is stacked, in a call of a whole", |manifest| {
            manifest.kernels[3].call.unit = Unit::Calls;
        }),
        ("`f` has no tiles of calls", |manifest| {
            manifest.kernels[0].gpu = Some(on_gpu(None));
        }),
        ("operand 1 counts tiles and is not a length", |manifest| {
            manifest.kernels[0].gpu = Some(on_gpu(Some(1)));
        }),
        (
            "`f` has tiles of calls, and its unit is the row",
            |manifest| {
                manifest.kernels[1].gpu = Some(on_gpu(Some(0)));
            },
        ),
        ("divided along operand 1", |manifest| {
            manifest.kernels[2].call.division.as_mut().unwrap().length = 1;
        }),
        ("no operations 1", |manifest| {
            manifest.kernels[2].call.division.as_mut().unwrap().rising = vec![1];
        }),
        ("divided, where the unit is the row", |manifest| {
            manifest.kernels[1].call.division = manifest.kernels[2].call.division.clone();
        }),
        ("no instance dim 3", |manifest| {
            manifest.arguments[0].ty = Type::Ragged {
                pool: 0,
                dims: vec![LeadingDim::Named(3)],
            };
        }),
    ];
    for (message, break_it) in broken {
        let mut manifest = ragged_manifest(false);
        break_it(&mut manifest);
        let program = Program::new(manifest, Box::new(Functions(vec![])));
        match program.err() {
            Some(Error::Internal(found)) => assert!(found.contains(message), "{found}"),
            other => panic!("{message}: {other:?}"),
        }
    }
}

/// A function, whose tiles are counted by an operand if there is one.
fn on_gpu(operand: Option<usize>) -> GpuKernel {
    let tiles = |operand| CallTiles {
        dims: vec![TiledDim {
            length: Extent {
                lengths: vec![operand],
                times: 1,
            },
            tile: 4,
        }],
        work: Extent::default(),
    };
    GpuKernel {
        launches: vec![GpuLaunch {
            functions: vec![GpuFunction {
                symbol: "f".to_owned(),
                from_rows: 0,
                threads: 32,
                tile_rows_per_row: 0,
                tile_rows: 1,
                column_blocks: 1,
                shared_bytes: 0,
                grid_stride: false,
                calls: operand.map(tiles),
            }],
            grouped: None,
            resident: None,
            clustered: None,
            beside: false,
        }],
        ..GpuKernel::default()
    }
}
