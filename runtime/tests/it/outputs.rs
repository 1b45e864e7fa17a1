//! Results of any depth and size.

use cohort_runtime::abi::manifest::*;
use cohort_runtime::abi::{Context, VERSION};
use cohort_runtime::symbols::cohort_alloc;
use cohort_runtime::{Config, Error, Limits, Program, Session, Weights};

use crate::program::{Functions, echo_session, run};

fn list() -> Adt {
    Adt {
        name: "List".to_owned(),
        constructors: vec![
            Constructor {
                name: "Nil".to_owned(),
                fields: vec![],
            },
            Constructor {
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
                name: "Leaf".to_owned(),
                fields: vec![],
            },
            Constructor {
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
        spaces: vec![],
        sources: vec![],
        kernels: vec![],
        locations: vec![],
        forces: vec![],
        computed: vec![],
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
