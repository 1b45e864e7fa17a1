//! Results of any depth and size.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use cohort_runtime::abi::manifest::*;
use cohort_runtime::abi::{Context, VERSION};
use cohort_runtime::io::feed::Chunks;
use cohort_runtime::io::input::Reader;
use cohort_runtime::io::output::columns::{Collector, Columns};
use cohort_runtime::symbols::cohort_alloc;
use cohort_runtime::{Config, Error, Limits, Program, Session, Weights};

use crate::program::{Functions, echo_session, run};

fn list() -> Adt {
    Adt {
        name: "List".to_owned(),
        constructors: vec![
            Constructor {
                names: vec![],
                name: "Nil".to_owned(),
                fields: vec![],
            },
            Constructor {
                names: vec![],
                name: "Cons".to_owned(),
                fields: vec![
                    Type::Tuple(vec![Type::Scalar(Elem::F32), Type::Scalar(Elem::Bool)]),
                    Type::Adt(0),
                ],
            },
        ],
    }
}

#[test]
fn deep_results_are_written_without_recursion() {
    let mut session = echo_session(vec![Type::Adt(0)], vec![list()], vec![], Config::default());
    let value = "{\"Cons\": [[0.5, true], ".repeat(300_000) + "\"Nil\"" + &"]}".repeat(300_000);
    let (output, _) = run(&mut session, &format!("{{\"a\": {value}}}"));
    assert!(output[0] == format!("{{\"id\": 1, \"output\": [{value}]}}"));
}

/// What a session that echoes makes of the lines, as columns.
fn columns(session: &mut Session, max_bytes: u64, input: &str) -> Columns {
    let manifest = Arc::new(session.program().manifest().clone());
    let reader = Reader::new(&manifest, input.as_bytes(), 1 << 30, 1 << 20);
    let taken = Rc::new(RefCell::new(Vec::new()));
    let into = taken.clone();
    let mut sink = Collector::new(manifest.clone(), max_bytes, move |columns| {
        into.borrow_mut().push(columns);
        Ok(())
    });
    let mut supply = Chunks::new(reader, 64, 1 << 30);
    session.run(&mut supply, &mut sink, &mut |_| {}).unwrap();
    let mut taken = taken.borrow_mut();
    assert_eq!(taken.len(), 1);
    taken.remove(0)
}

#[test]
fn columns_hold_the_parts_of_results_as_numbers() {
    let types = vec![
        Type::Tuple(vec![Type::Scalar(Elem::I32), Type::Scalar(Elem::Bool)]),
        Type::Ragged {
            pool: 0,
            dims: vec![LeadingDim::Named(0)],
        },
        Type::Adt(0),
    ];
    let row_pools = vec![RowPool {
        elem: Elem::F32,
        shape: vec![2],
    }];
    let mut session = echo_session(types, vec![list()], row_pools, Config::default());
    let lines = concat!(
        r#"{"id": "x", "a": [7, true], "b": [[1, 2], [3, "NaN"]], "c": {"Cons": [[0.5, true], "Nil"]}}"#,
        "\n",
        r#"{"a": [7, true], "b": 0, "c": "Nil"}"#,
        "\n",
        r#"{"a": [-1, false], "b": [], "c": "Nil"}"#,
    );
    let columns = columns(&mut session, 1 << 20, lines);
    let ids: Vec<_> = columns
        .instances
        .iter()
        .map(|done| (done.number, &*done.id))
        .collect();
    assert_eq!(ids, [(0, "\"x\""), (1, "2"), (2, "3")]);
    let errors = columns.instances.iter().map(|done| done.error.is_some());
    assert!(errors.eq([false, true, false]));
    let f32s = |values: &[f32]| -> Vec<u8> {
        values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect()
    };
    let expected = [
        // The i32, the bool, the tensor with its length, the list with its tags.
        [(vec![7, 0, 0, 0], vec![]), (vec![255; 4], vec![])],
        [(vec![1], vec![]), (vec![0], vec![])],
        [
            (f32s(&[1.0, 2.0, 3.0, f32::NAN]), vec![2]),
            (vec![], vec![0]),
        ],
        [
            ([f32s(&[0.5]), vec![1]].concat(), vec![1, 0]),
            (vec![], vec![0]),
        ],
    ];
    assert_eq!(columns.columns.len(), expected.len());
    for (column, [first, last]) in columns.columns.iter().zip(&expected) {
        for (instance, (bytes, words)) in [first, &(vec![], vec![]), last].into_iter().enumerate() {
            assert_eq!(column.get(instance), (&bytes[..], &words[..]));
        }
    }
}

#[test]
fn a_result_of_too_many_bytes_leaves_nothing_in_its_columns() {
    let types = vec![Type::Array(Box::new(Type::Scalar(Elem::F32)))];
    let mut session = echo_session(types, vec![], vec![], Config::default());
    let long = vec!["1"; 1000].join(", ");
    let lines = format!("{{\"a\": [{long}]}}\n{{\"a\": [1]}}\n");
    let columns = columns(&mut session, 100, &lines);
    let kinds: Vec<_> = (columns.instances.iter())
        .map(|done| done.error.as_ref().map(|error| error.kind))
        .collect();
    assert_eq!(kinds, [Some("memory_limit"), None]);
    assert_eq!(columns.columns[0].get(0), (&[][..], &[][..]));
    assert_eq!(columns.columns[0].get(1).1, [1]);
}

#[test]
fn floats_come_back_with_the_same_bits() {
    let types = vec![Type::Array(Box::new(Type::Scalar(Elem::F32)))];
    let mut session = echo_session(types, vec![], vec![], Config::default());
    let mut bits = 1_u32;
    let mut values = Vec::new();
    while values.len() < 10_000 {
        bits = bits.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let value = f32::from_bits(bits);
        if value.is_finite() {
            values.push(value);
        }
    }
    // Nine digits always tell two floats apart.
    let texts: Vec<String> = values.iter().map(|value| format!("{value:.8e}")).collect();
    let (output, _) = run(&mut session, &format!("{{\"a\": [{}]}}", texts.join(",")));
    let begin = output[0].find("[[").unwrap() + 2;
    let end = output[0].find("]]").unwrap();
    let back: Vec<u32> = output[0][begin..end]
        .split(", ")
        .map(|text| text.parse::<f32>().unwrap().to_bits())
        .collect();
    let bits: Vec<u32> = values.iter().map(|value| value.to_bits()).collect();
    assert_eq!(back, bits);
}

/// `x` sixty times doubled: small in memory, 2^60 values when written out.
unsafe extern "C" fn doubled(context: *mut Context, _arguments: *const u64, results: *mut u64) {
    // SAFETY: a node has a tag and two fields; the result is one slot.
    unsafe {
        let mut tree = cohort_alloc(context, 1);
        tree.write(0);
        for _ in 0..60 {
            let node = cohort_alloc(context, 3);
            node.write(1);
            node.add(1).write(tree as u64);
            node.add(2).write(tree as u64);
            tree = node;
        }
        results.write(tree as u64);
    }
}

#[test]
fn a_result_that_explodes_when_written_is_an_error_record() {
    let tree = Adt {
        name: "Tree".to_owned(),
        constructors: vec![
            Constructor {
                names: vec![],
                name: "Leaf".to_owned(),
                fields: vec![],
            },
            Constructor {
                names: vec![],
                name: "Node".to_owned(),
                fields: vec![Type::Adt(0), Type::Adt(0)],
            },
        ],
    };
    let manifest = Manifest {
        version: VERSION,
        entry: "doubled".to_owned(),
        arguments: vec![],
        result: Type::Adt(0),
        adts: vec![tree],
        params: vec![],
        row_pools: vec![],
        sources: vec![],
        kernels: vec![],
        locations: vec![],
        debugs: vec![],
        forces: vec![],
        computed: vec![],
        grows_in_place: false,
        gradients: None,
        structure: None,
        gpu_flush: None,
        dims: vec![],
    };
    let functions = Functions(vec![("doubled", doubled as *const ())]);
    let program = Program::new(manifest, Box::new(functions)).unwrap();
    let config = Config {
        limits: Limits {
            max_memory: 1 << 20,
            ..Limits::default()
        },
        ..Config::default()
    };
    let mut session = Session::new(program, &Weights::none(), config).unwrap();
    let (output, stats) = run(&mut session, "{}\n");
    assert_eq!((stats.instances, stats.failed), (1, 1));
    assert_eq!(
        output[0],
        "{\"id\": 1, \"error\": {\"kind\": \"memory_limit\", \"message\": \"the text of the result \
         needs more than 1048576 bytes; raise the limit with --max-memory\"}}"
    );
}

struct Full;

impl std::io::Write for Full {
    fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
        Err(std::io::ErrorKind::StorageFull.into())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_ends_the_run() {
    let types = vec![Type::Scalar(Elem::I32)];
    let mut session = echo_session(types, vec![], vec![], Config::default());
    let result = session.run_stream("{\"a\": 1}\n".as_bytes(), Full, &mut |_| {});
    assert!(matches!(result, Err(Error::WriteOutput(_))));
}
