//! Weights that are stored in other types than the program's: read where every number stays the
//! same, refused by tensor, element and value where one does not.

use std::ffi::OsString;

use cohort_e2e::records::{Closeness, compare_records};
use cohort_e2e::{BatchRun, Model};
use safetensors::tensor::{Dtype, TensorView, serialize};

const TEXT: &str = "dim V, H
    param emb: f32[V, H]  param w: f32[H, H]  param b: f32[H]  param order: i32[V]
    fn main(k: i32) -> (f32[H], i32) { (emb[k] @ w + b, order[k]) }";

const INPUT: &str = "{\"id\":\"a\",\"k\":0}\n{\"id\":\"b\",\"k\":2}\n";

type Stored = (&'static str, Dtype, Vec<usize>, Vec<u8>);

/// Numbers that all the types of floats hold.
fn numbers(count: usize) -> impl Iterator<Item = f32> {
    (0..count).map(|index| (index as f32 - 3.0) / 4.0)
}

fn halves(count: usize) -> Vec<u8> {
    numbers(count)
        .flat_map(|x| half::f16::from_f32(x).to_le_bytes())
        .collect()
}

fn brains(count: usize) -> Vec<u8> {
    numbers(count)
        .flat_map(|x| half::bf16::from_f32(x).to_le_bytes())
        .collect()
}

fn doubles(values: impl Iterator<Item = f64>) -> Vec<u8> {
    values.flat_map(f64::to_le_bytes).collect()
}

fn stored() -> [Stored; 4] {
    let order = [7_i64, -1, i64::from(i32::MIN)];
    [
        ("emb", Dtype::F16, vec![3, 2], halves(6)),
        ("w", Dtype::BF16, vec![2, 2], brains(4)),
        ("b", Dtype::F64, vec![2], doubles(numbers(2).map(f64::from))),
        (
            "order",
            Dtype::I64,
            vec![3],
            order.map(i64::to_le_bytes).concat(),
        ),
    ]
}

fn file(tensors: &[Stored]) -> Vec<u8> {
    let views = tensors.iter().map(|(name, dtype, shape, bytes)| {
        let view = TensorView::new(*dtype, shape.clone(), bytes);
        (*name, view.expect("the bytes are those of the shape"))
    });
    serialize(views, None).expect("the tensors can be serialised")
}

#[test]
fn numbers_stay_what_they_are_and_the_run_says_so() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (source, weights) = (
        folder.path().join("p.coh"),
        folder.path().join("w.safetensors"),
    );
    std::fs::write(&source, TEXT).expect("the folder is writable");
    std::fs::write(&weights, file(&stored())).expect("the folder is writable");
    let model = Model::with_weights_file(&source, &weights);
    for arguments in [&[][..], &["--device", "gpu-sim"]] {
        let outcome = model.batch_run().args(arguments).run(INPUT).expect_code(0);
        let expected = model.oracle_lines(INPUT);
        compare_records(&expected, &outcome.lines(), Closeness::EachNumber(1e-6))
            .unwrap_or_else(|message| panic!("{message}\nfrom {}", outcome.describe()));
        outcome.expect_message(&[
            "weights of f16 are read as f32, each number as it is: `emb`",
            "weights of bf16 are read as f32, each number as it is: `w`",
            "weights of f64 are read as f32, each number as it is: `b`",
            "weights of i64 are read as i32, each number as it is: `order`",
        ]);
    }
}

#[test]
fn a_number_that_would_change_is_refused_by_name_place_and_value() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (source, weights) = (
        folder.path().join("p.coh"),
        folder.path().join("w.safetensors"),
    );
    std::fs::write(&source, TEXT).expect("the folder is writable");
    let mut tensors = stored();
    tensors[1] = (
        "w",
        Dtype::F64,
        vec![2, 2],
        doubles([0.5, 1.0, 0.1, 2.0].into_iter()),
    );
    tensors[3].3 = [7_i64, 1 << 31, 0].map(i64::to_le_bytes).concat();
    std::fs::write(&weights, file(&tensors)).expect("the folder is writable");
    let run = BatchRun::new(&source).weights(&weights);
    run.clone().run(INPUT).expect_code(2).expect_message(&[
        "`w`: element [1, 0] is 0.1, which f32 does not hold exactly; the file has f64",
        "`order`: element [1] is 2147483648, which i32 does not hold exactly; the file has i64",
    ]);
    run.arg("--oracle")
        .run(INPUT)
        .expect_code(2)
        .expect_message(&["does not hold exactly"]);
}

#[test]
fn other_types_are_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (source, weights) = (
        folder.path().join("p.coh"),
        folder.path().join("w.safetensors"),
    );
    std::fs::write(&source, TEXT).expect("the folder is writable");
    let mut tensors = stored();
    tensors[2] = ("b", Dtype::U8, vec![2], vec![1, 2]);
    std::fs::write(&weights, file(&tensors)).expect("the folder is writable");
    BatchRun::new(&source)
        .weights(&weights)
        .run(INPUT)
        .expect_code(2)
        .expect_message(&[
            "`b` has elements of type u8",
            "f16, bf16 or f64",
            "also as i64",
        ]);
}

const LAYERS: &str = r#"dim L, V, D
    param emb: f32[V, D] from "embeddings.word.weight"
    param w: f32[L, D, D] from "encoder.layer.{}.dense.weight".T
    param b: f32[L, D] from "encoder.layer.{}.dense.bias"
    param wo: f32[D, V] from "embeddings.word.weight".T
    fn main(k: i32) -> f32[V] {
      let h = for i in range(L) with (h = emb[k]) { tanh(h @ w[i] + b[i]) };
      h @ wo
    }"#;

/// Of the checkpoint whose layers are all `[3, 3]`, in the types of several ages.
fn checkpoint(layers: usize) -> Vec<(String, Dtype, Vec<usize>, Vec<u8>)> {
    let mut all = vec![(
        "embeddings.word.weight".to_owned(),
        Dtype::F16,
        vec![5, 3],
        halves(15),
    )];
    for layer in 0..layers {
        let name = |last: &str| format!("encoder.layer.{layer}.dense.{last}");
        let weight = numbers(9).map(|x| x * (layer as f32 + 0.5) / 8.0);
        let weight = weight.flat_map(f32::to_le_bytes).collect();
        all.push((name("weight"), Dtype::F32, vec![3, 3], weight));
        all.push((name("bias"), Dtype::BF16, vec![3], brains(3)));
    }
    all
}

/// The same as the program has it.
fn plain(layers: usize) -> Vec<(String, Dtype, Vec<usize>, Vec<u8>)> {
    let turned = |bytes: &[u8], size: usize, [rows, columns]: [usize; 2]| -> Vec<u8> {
        let places = (0..columns).flat_map(|c| (0..rows).map(move |r| r * columns + c));
        places
            .flat_map(|place| bytes[place * size..][..size].to_vec())
            .collect()
    };
    let stored = checkpoint(layers);
    let of = |last: &str| -> Vec<u8> {
        let each = stored.iter().filter(|tensor| tensor.0.ends_with(last));
        let is_weight = last == "dense.weight";
        each.flat_map(|(.., bytes)| match is_weight {
            true => turned(bytes, 4, [3, 3]),
            false => bytes.clone(),
        })
        .collect()
    };
    vec![
        (
            "emb".to_owned(),
            Dtype::F16,
            vec![5, 3],
            stored[0].3.clone(),
        ),
        (
            "w".to_owned(),
            Dtype::F32,
            vec![layers, 3, 3],
            of("dense.weight"),
        ),
        (
            "b".to_owned(),
            Dtype::BF16,
            vec![layers, 3],
            of("dense.bias"),
        ),
        (
            "wo".to_owned(),
            Dtype::F16,
            vec![3, 5],
            turned(&stored[0].3, 2, [5, 3]),
        ),
    ]
}

fn bytes_of(tensors: &[(String, Dtype, Vec<usize>, Vec<u8>)]) -> Vec<u8> {
    let views = tensors.iter().map(|(name, dtype, shape, bytes)| {
        let view = TensorView::new(*dtype, shape.clone(), bytes);
        (
            name.as_str(),
            view.expect("the bytes are those of the shape"),
        )
    });
    serialize(views, None).expect("the tensors can be serialised")
}

/// A folder with the program and a checkpoint in `files` files with their index.
fn folder_with(files: usize, layers: usize) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let write = |name: &str, bytes: &[u8]| {
        std::fs::write(folder.path().join(name), bytes).expect("the folder is writable");
    };
    write("p.coh", LAYERS.as_bytes());
    write("own.safetensors", &bytes_of(&plain(layers)));
    let mut tensors = checkpoint(layers);
    let mut places = Vec::new();
    for number in 0..files {
        let rest = tensors.split_off(tensors.len() / (files - number));
        let name = format!("model-{number}.safetensors");
        places.extend(
            tensors
                .iter()
                .map(|tensor| format!("\"{}\": \"{name}\"", tensor.0)),
        );
        write(&name, &bytes_of(&tensors));
        tensors = rest;
    }
    let index = format!(
        "{{\"metadata\": {{}}, \"weight_map\": {{{}}}}}",
        places.join(", ")
    );
    write("model.safetensors.index.json", index.as_bytes());
    folder
}

const WORDS: &str = "{\"k\":0}\n{\"k\":3}\n{\"k\":4}\n";

#[test]
fn a_checkpoint_of_layers_and_files_gives_the_bits_of_its_own_names() {
    for (files, layers) in [(1, 1), (1, 3), (3, 12)] {
        let folder = folder_with(files, layers);
        let run = BatchRun::new(&folder.path().join("p.coh"));
        let own = run.clone().weights(&folder.path().join("own.safetensors"));
        let expected = own.run(WORDS).expect_code(0).lines();
        for weights in ["model.safetensors.index.json", ""] {
            let run = run.clone().weights(&folder.path().join(weights));
            assert_eq!(run.clone().run(WORDS).expect_code(0).lines(), expected);
            let oracle = run.arg("--oracle").run(WORDS).expect_code(0).lines();
            compare_records(&oracle, &expected, Closeness::EachNumber(1e-5))
                .unwrap_or_else(|message| panic!("{message}"));
        }
    }
}

#[test]
fn what_a_checkpoint_does_not_have_is_named() {
    let folder = folder_with(2, 3);
    let path = |name: &str| folder.path().join(name);
    let run = BatchRun::new(&path("p.coh"));
    // The first half of the tensors is not there.
    let half = run.clone().weights(&path("model-1.safetensors"));
    for run in [half.clone(), half.arg("--oracle")] {
        run.run(WORDS)
            .expect_code(2)
            .expect_message(&["the weights have", "and no `encoder.layer."]);
    }
    // Of what the parameters are declared from, another file has nothing.
    let nothing = bytes_of(&[("x".to_owned(), Dtype::F32, vec![1], vec![0; 4])]);
    std::fs::write(path("nothing.safetensors"), nothing).expect("the folder is writable");
    BatchRun::new(&path("p.coh"))
        .weights(&path("nothing.safetensors"))
        .run(WORDS)
        .expect_code(2)
        .expect_message(&[
            "nothing tells what `L` is",
            "the weights have no tensor \"encoder.layer.{}.dense.weight\"",
            "the weights are those of ",
            "nothing.safetensors",
        ]);
    // An artifact has learnt the shapes, and meets another checkpoint.
    let artifact = path("p.cohort");
    let own = path("own.safetensors");
    let words: [OsString; 6] = [
        path("p.coh").into(),
        "--emit=artifact".into(),
        "--weights".into(),
        own.into(),
        "-o".into(),
        artifact.clone().into(),
    ];
    cohort_e2e::tools::run("batch-opt", &words, "").expect_code(0);
    let mut tensors = checkpoint(4);
    tensors.retain(|tensor| tensor.0 != "encoder.layer.1.dense.weight");
    std::fs::write(path("other.safetensors"), bytes_of(&tensors)).expect("the folder is writable");
    let outcome = BatchRun::new(&artifact)
        .weights(&path("other.safetensors"))
        .run(WORDS)
        .expect_code(2)
        .expect_message(&[
            "`encoder.layer.1.dense.weight`, for `w`: expected f32[3, 3], found none",
            "`encoder.layer.3.dense.bias`: the program has no such parameter",
        ]);
    // The layer behind the one that is missing is read, so it is not unknown.
    let stderr = &outcome.stderr;
    assert!(!stderr.contains("encoder.layer.2"), "{stderr}");
}

#[test]
fn an_index_that_is_wrong_is_refused() {
    let folder = folder_with(2, 3);
    let index = folder.path().join("model.safetensors.index.json");
    let run = BatchRun::new(&folder.path().join("p.coh")).weights(&index);
    for (text, message) in [
        ("{}", "not an index"),
        (
            "{\"weight_map\": {\"a\": \"../w.safetensors\"}}",
            "not in its folder",
        ),
        (
            "{\"weight_map\": {\"a\": \"none.safetensors\"}}",
            "cannot open",
        ),
        (
            "{\"weight_map\": {\"a\": \"own.safetensors\", \"b\": \"twice.safetensors\"}}",
            "is also in",
        ),
    ] {
        let own = bytes_of(&plain(3));
        std::fs::write(folder.path().join("twice.safetensors"), own)
            .expect("the folder is writable");
        std::fs::write(&index, text).expect("the folder is writable");
        run.clone()
            .run(WORDS)
            .expect_code(2)
            .expect_message(&[message]);
    }
}
