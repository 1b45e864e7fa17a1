//! Weights that are stored in other types than the program's: read where every number stays the
//! same, refused by tensor, element and value where one does not.

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
