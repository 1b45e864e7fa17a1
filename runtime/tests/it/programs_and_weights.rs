//! Programs and weights that do not fit are refused before anything runs.

use std::ffi::c_void;
use std::path::Path;

use cohort_runtime::abi::OperandRef;
use cohort_runtime::abi::manifest::*;
use cohort_runtime::{Config, Error, Fault, Program, Session, WeightShape, WeightShapes, Weights};

use crate::program::*;

fn program_error(change: impl FnOnce(&mut Manifest)) -> Error {
    let mut manifest = tree_manifest();
    change(&mut manifest);
    match Program::new(manifest, Box::new(tree_functions())) {
        Ok(_) => panic!("the program should have been refused"),
        Err(error) => error,
    }
}

#[test]
fn programs_are_checked() {
    let error = program_error(|manifest| manifest.version = 99);
    assert!(matches!(error, Error::Version { found: 99, .. }));

    let error = program_error(|manifest| manifest.kernels[1].symbol = "gone".to_owned());
    assert_eq!(
        error.to_string(),
        "the compiled program has no symbol `gone` for kernel `node`"
    );

    let error = program_error(|manifest| manifest.arguments[0].name = "id".to_owned());
    assert_eq!(error.fault(), Fault::Unsupported);

    type Change = fn(&mut Manifest);
    let broken: [Change; 11] = [
        |manifest| manifest.result = Type::Tensor { pool: 9 },
        |manifest| manifest.adts[0].constructors[1].fields[0] = Type::Adt(3),
        |manifest| manifest.sources[1] = Source::Table { param: 7, pool: 0 },
        |manifest| manifest.sources[1] = Source::Whole { param: 0, pool: 0 },
        |manifest| manifest.kernels[0].row_tile = 0,
        |manifest| manifest.kernels[0].results[0] = 5,
        |manifest| {
            manifest.kernels[1].constants[0] = Constant::Panels {
                param: 0,
                width: 0,
                format: WeightFormat::F32,
            }
        },
        |manifest| add_computed(manifest).kernel = 9,
        |manifest| add_computed(manifest).kernel = 1,
        |manifest| add_computed(manifest).weight.shape = vec![16],
        |manifest| {
            add_computed(manifest);
            manifest.kernels[2].constants[0] = Constant::Plain { param: 2 };
        },
    ];
    for change in broken {
        let error = program_error(change);
        assert_eq!(error.fault(), Fault::Internal, "{error}");
    }

    let error = program_error(|manifest| manifest.params[0].shape = vec![1 << 40, 1 << 40]);
    assert_eq!(error.fault(), Fault::Unsupported);
}

/// Adds a matrix that is twice the parameter `w`.
fn add_computed(manifest: &mut Manifest) -> &mut Computed {
    let mut weight = manifest.params[1].clone();
    weight.name = "twice".to_owned();
    manifest.row_pools.push(RowPool {
        elem: weight.elem,
        shape: weight.shape.clone(),
    });
    manifest.kernels.push(Kernel {
        name: "twice".to_owned(),
        symbol: "twice".to_owned(),
        location: String::new(),
        operands: vec![],
        results: vec![manifest.row_pools.len() - 1],
        constants: vec![Constant::Plain { param: 1 }],
        scratch_bytes: 64,
        row_tile: 1,
        flops_per_row: 0,
        row_products: vec![],
        call: Default::default(),
        gpu: None,
    });
    manifest.computed.push(Computed {
        weight,
        kernel: manifest.kernels.len() - 1,
    });
    manifest.computed.last_mut().unwrap()
}

unsafe extern "C" fn twice(
    begin: i64,
    end: i64,
    _operands: *const OperandRef,
    results: *const *mut c_void,
    constants: *const *const c_void,
    _scratch: *mut c_void,
) {
    assert_eq!((begin, end), (0, 1));
    // SAFETY: one result and one constant of the matrix's size.
    unsafe {
        let (from, to) = ((*constants).cast::<f32>(), (*results).cast::<f32>());
        for element in 0..WIDTH * WIDTH {
            *to.add(element) = *from.add(element) * 2.0;
        }
    }
}

#[test]
fn weights_are_computed_in_order_before_they_are_packed() {
    let mut manifest = tree_manifest();
    add_computed(&mut manifest);
    add_computed(&mut manifest).kernel = 3;
    manifest.kernels[3].constants = vec![Constant::Plain { param: 2 }];
    manifest.kernels[1].constants[0] = Constant::Panels {
        param: 3,
        width: 3,
        format: WeightFormat::F32,
    };
    let mut functions = tree_functions();
    functions.0.push(("twice", twice as *const ()));
    let program = Program::new(manifest, Box::new(functions)).unwrap();

    let mut tensors = tree_tensors();
    tensors[1].2.iter_mut().for_each(|value| *value *= 0.25);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("w.safetensors");
    write_weights(&path, &tensors);
    let weights = Weights::open(&path).unwrap();
    let mut session = Session::new(program, &weights, Config::default()).unwrap();

    let tree = Tree::random(&mut 5, 9);
    let line = format!("{{\"t\": {}}}", tree.json());
    let quartered = run(&mut session, &line).0;
    assert_eq!(
        quartered,
        run(&mut tree_session(Config::default()), &line).0
    );
}

fn weights_error(path: &Path) -> String {
    let program = Program::new(tree_manifest(), Box::new(tree_functions())).unwrap();
    let weights = match Weights::open(path) {
        Ok(weights) => weights,
        Err(error) => return error.to_string(),
    };
    match Session::new(program, &weights, Config::default()) {
        Ok(_) => panic!("the weights should have been refused"),
        Err(error) => {
            assert_eq!(error.fault(), Fault::User);
            error.to_string()
        }
    }
}

#[test]
fn weights_are_checked_by_name_shape_and_type() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("w.safetensors");

    let mut tensors = tree_tensors();
    tensors[1].1 = vec![8, 2];
    tensors[0].0 = "embedding";
    write_weights(&path, &tensors);
    let message = weights_error(&path);
    for part in [
        "w.safetensors:",
        "`emb`: expected f32[10, 4], found none",
        "`w`: expected f32[4, 4], found f32[8, 2]",
        "`embedding`: the program has no such parameter (allow it with --allow-unused-weights)",
    ] {
        assert!(message.contains(part), "{message}");
    }

    let ints =
        safetensors::tensor::TensorView::new(safetensors::tensor::Dtype::I32, vec![4, 4], &[0; 64]);
    let file = safetensors::serialize([("w", ints.unwrap())], None).unwrap();
    std::fs::write(&path, file).unwrap();
    let message = weights_error(&path);
    assert!(
        message.contains("`w`: expected f32[4, 4], found i32[4, 4]"),
        "{message}"
    );
}

#[test]
fn extra_weights_can_be_allowed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("w.safetensors");
    let mut tensors = tree_tensors();
    tensors.push(("extra", vec![1], vec![0.0]));
    write_weights(&path, &tensors);
    let program = Program::new(tree_manifest(), Box::new(tree_functions())).unwrap();
    let config = Config {
        allow_unused_weights: true,
        ..Config::default()
    };
    let mut session = Session::new(program, &Weights::open(&path).unwrap(), config).unwrap();
    let (output, _) = run(&mut session, "{\"t\": \"Empty\"}");
    assert_eq!(
        output,
        ["{\"id\": 1, \"output\": [[0.5, 0.5, 0.5, 0.5], 0]}"]
    );
}

#[test]
fn files_that_are_no_weights() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("w.safetensors");
    assert!(weights_error(&path).starts_with("cannot open "));
    write_weights(&path, &tree_tensors());
    let whole = std::fs::read(&path).unwrap();
    for length in [0, 4, 8, 60, whole.len() - 1] {
        std::fs::write(&path, &whole[..length]).unwrap();
        let message = weights_error(&path);
        assert!(
            message.contains("is not a usable safetensors file"),
            "{message}"
        );
    }
    std::fs::write(&path, [0xff; 200]).unwrap();
    assert!(weights_error(&path).contains("is not a usable safetensors file"));
}

#[test]
fn a_file_that_becomes_shorter_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("w.safetensors");
    write_weights(&path, &tree_tensors());
    let weights = Weights::open(&path).unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(100).unwrap();
    let program = Program::new(tree_manifest(), Box::new(tree_functions())).unwrap();
    let Err(error) = Session::new(program, &weights, Config::default()) else {
        panic!("the weights are not there");
    };
    assert_eq!(error.fault(), Fault::User);
    assert!(error.to_string().contains("became shorter"), "{error}");
}

#[test]
fn shapes_can_be_read_before_anything_is_compiled() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("w.safetensors");
    write_weights(&path, &tree_tensors());
    let shapes = WeightShapes::read(&path).unwrap();
    let expected = WeightShape {
        dtype: "f32".to_owned(),
        elem: Some(Elem::F32),
        shape: vec![10, 4],
    };
    assert_eq!(shapes["emb"], expected);
    assert_eq!(shapes.len(), 2);
}

#[test]
fn a_batch_of_none_is_refused() {
    let program = Program::new(tree_manifest(), Box::new(tree_functions())).unwrap();
    let config = Config {
        batch: cohort_runtime::Batch::Count(0),
        ..Config::default()
    };
    assert!(matches!(
        Session::new(program, &tree_weights(), config),
        Err(Error::Usage(_))
    ));
}

#[test]
fn weights_that_are_replaced_give_what_they_give_when_loaded() {
    let mut seed = 3;
    let input: String = (0..40)
        .map(|size| format!("{{\"t\": {}}}\n", Tree::random(&mut seed, size % 9).json()))
        .collect();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("other.safetensors");
    let mut tensors = tree_tensors();
    for (_, _, values) in &mut tensors {
        values.iter_mut().for_each(|value| *value = 0.5 - *value);
    }
    write_weights(&path, &tensors);
    let other = Weights::open(&path).unwrap();
    let program = || Program::new(tree_manifest(), Box::new(tree_functions())).unwrap();
    let loaded = |weights: &Weights| {
        let mut session = Session::new(program(), weights, Config::default()).unwrap();
        run(&mut session, &input).0
    };
    let (first, second) = (loaded(&tree_weights()), loaded(&other));
    assert_ne!(first, second);

    let mut session = tree_session(Config::default());
    assert_eq!(run(&mut session, &input).0, first);
    session.set_weights(&other).unwrap();
    assert_eq!(run(&mut session, &input).0, second);
    // What does not fit changes nothing.
    write_weights(&path, &tensors[..1]);
    assert!(session.set_weights(&Weights::open(&path).unwrap()).is_err());
    assert!(session.set_weights(&Weights::none()).is_err());
    assert_eq!(run(&mut session, &input).0, second);
    session.set_weights(&tree_weights()).unwrap();
    assert_eq!(run(&mut session, &input).0, first);
}
