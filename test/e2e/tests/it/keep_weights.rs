//! `--keep-weights bf16`: the bits of weights that were rounded before, whatever the batch; and where it is refused.

use cohort_e2e::weights::write_weights;
use cohort_e2e::{BatchRun, Model, Rng};
use cohort_oracle::Data;
use half::bf16;

use crate::models::{model_case, to_text};

const BF16: [&str; 2] = ["--keep-weights", "bf16"];

/// Models, each with its parameters of more than one dim that something besides a product reads.
const MODELS: &[(&str, &[&str])] = &[
    ("act", &[]),
    ("berxit", &[]),
    ("birnn", &["emb"]),
    ("childsum", &["emb"]),
    ("dagrnn", &["emb"]),
    ("drnn", &[]),
    (
        "encoder",
        &["b1", "b2", "bd", "bp", "bqkv", "bu", "g1", "g2"],
    ),
    ("mvrnn", &["emb", "memb"]),
    ("nestedrnn", &["emb"]),
    ("stackrnn", &["emb"]),
    ("treegru", &["emb"]),
    ("treelstm", &["emb"]),
];

/// Sizes at and beside those of vectors, panels and words of two numbers.
const SIZES: [u64; 5] = [1, 3, 28, 61, 257];

/// Writes the model's weights with those of products rounded, over the file that it has.
fn round_weights(model: &mut Model, others: &[&str]) {
    for (name, tensor) in &mut model.weights {
        let Data::F32(numbers) = &mut tensor.data else {
            continue;
        };
        if tensor.shape.len() > 1 && !others.contains(&name.as_str()) {
            for number in numbers {
                *number = bf16::from_f32(*number as f32).to_f64();
            }
        }
    }
    write_weights(&model.weights_path, &model.weights);
}

/// Runs kept in bf16, then in f32 of rounded weights; the lines that both give.
#[track_caller]
fn expect_rounded(model: &mut Model, others: &[&str], input: &str) -> Vec<String> {
    let in_f32 = model.batch_run().run(input).expect_code(0).lines();
    let kept = model.batch_run().args(&BF16).run(input).expect_code(0);
    round_weights(model, others);
    let rounded = model.batch_run().run(input).expect_code(0).lines();
    assert_eq!(kept.lines(), rounded, "{}", kept.describe());
    // Rounding twice is rounding once.
    let again = model.batch_run().args(&BF16).run(input).expect_code(0);
    assert_eq!(again.lines(), rounded, "{}", again.describe());
    assert_eq!(in_f32.len(), rounded.len());
    in_f32
}

#[test]
fn bits_are_those_of_rounded_weights() {
    for (name, others) in MODELS {
        let case = model_case(name);
        let mut rng = Rng::new(91);
        let mut model = case.with_sizes([28, 13, 33, 5], &mut rng);
        let input = to_text(&case.instances(&model, 9, &mut rng));
        let in_f32 = expect_rounded(&mut model, others, &input);
        let rounded = model.batch_run().run(&input).expect_code(0).lines();
        // The choices of a DRNN may be the same ones.
        assert!(
            in_f32 != rounded || *name == "drnn",
            "{name} rounds nothing"
        );
    }
}

#[test]
fn batches_change_no_bit() {
    for (name, _) in MODELS {
        let case = model_case(name);
        let mut rng = Rng::new(92);
        let model = case.with_sizes([28, 13, 61, 5], &mut rng);
        let input = to_text(&case.instances(&model, 14, &mut rng));
        let call = model.batch_run().args(&BF16);
        call.args(&["--verify-batch-invariance", "5", "--quiet"])
            .run(&input)
            .expect_code(0);
        let all = model.batch_run().args(&BF16).run(&input).expect_code(0);
        for way in [
            &["--no-batch"][..],
            &["--batch", "5", "--threads", "2"],
            &["--scheduler", "agenda"],
        ] {
            let other = model.batch_run().args(&BF16).args(way).run(&input);
            let other = other.expect_code(0);
            assert_eq!(all.lines(), other.lines(), "{}", other.describe());
        }
    }
}

/// Products of every size, of one row and of as many as fill tiles.
#[test]
fn sizes_that_fill_no_panel_are_rounded_alike() {
    let text = "dim K, N
        param w: f32[K, N]  param b: f32[N]
        fn main(x: f32[K]) -> f32[N] { x @ w + b }";
    let mut rng = Rng::new(93);
    for k in SIZES {
        for n in SIZES {
            let mut model = Model::from_text(text, &[("K", k), ("N", n)], &mut rng);
            let lines = (0..27).map(|_| {
                let x: Vec<_> = (0..k).map(|_| rng.signed_unit() as f32).collect();
                format!("{{\"x\":{x:?}}}\n")
            });
            let input: String = lines.collect();
            let kept = model.batch_run().args(&BF16).run(&input).expect_code(0);
            let alone = model.batch_run().args(&BF16).arg("--no-batch").run(&input);
            assert_eq!(kept.lines(), alone.expect_code(0).lines(), "{k} by {n}");
            expect_rounded(&mut model, &[], &input);
        }
    }
}

/// With fewer registers tiles have one vector, which may be the second of a panel; without fused multiply-adds bits are
/// others.
#[test]
#[cfg(target_arch = "x86_64")]
fn other_processors_widen_alike() {
    let case = model_case("treelstm");
    for target in ["x86-64-v2", "x86-64-v3"] {
        let mut rng = Rng::new(96);
        let mut model = case.with_sizes([28, 13, 61, 5], &mut rng);
        let input = to_text(&case.instances(&model, 12, &mut rng));
        let run = |model: &Model, kept: &str| {
            let compiled = model.compile(&["--target-cpu", target, "--keep-weights", kept]);
            compiled.batch_run().run(&input).expect_code(0).lines()
        };
        let kept = run(&model, "bf16");
        assert_ne!(kept, run(&model, "f32"), "{target}");
        round_weights(&mut model, &["emb"]);
        assert_eq!(kept, run(&model, "f32"), "{target}");
    }
}

#[test]
fn artifacts_hold_what_weights_are_kept_in() {
    let case = model_case("treelstm");
    let mut rng = Rng::new(94);
    let model = case.with_sizes([28, 13, 61, 5], &mut rng);
    let input = to_text(&case.instances(&model, 9, &mut rng));
    let expected = model.batch_run().args(&BF16).run(&input).expect_code(0);
    let in_f32 = model.batch_run().run(&input).expect_code(0);
    assert_ne!(expected.lines(), in_f32.lines());
    let compiled = model.compile(&BF16);
    let found = compiled.batch_run().run(&input).expect_code(0);
    assert_eq!(expected.lines(), found.lines(), "{}", found.describe());
    compiled
        .batch_run()
        .args(&BF16)
        .run(&input)
        .expect_code(2)
        .expect_message(&["--keep-weights", "is compiled already"]);
    // What is kept of compiled programs tells one from the other, in either order.
    let cached = |way: &[&str]| model.batch_run().args(way).run(&input).expect_code(0);
    for _ in 0..2 {
        assert_eq!(cached(&[]).lines(), in_f32.lines());
        assert_eq!(cached(&BF16).lines(), expected.lines());
    }
}

#[test]
fn it_is_refused_where_weights_are_not_packed_so() {
    let case = model_case("treelstm");
    let mut rng = Rng::new(95);
    let model = case.with_sizes([28, 13, 33, 5], &mut rng);
    let input = to_text(&case.instances(&model, 2, &mut rng));
    let refused = |way: &[&str], why: &str| {
        let call: BatchRun = model.batch_run().args(&BF16).args(way);
        call.run(&input).expect_code(2).expect_message(&[why]);
    };
    refused(&["--device", "gpu-sim"], "is for `--device cpu`");
    refused(&["--oracle"], "the oracle computes in f64");
    refused(
        &["--gradients", "gradients.safetensors"],
        "leave it out for gradients",
    );
    let opt = |way: &[&str], why: &str| {
        model
            .batch_opt(&[&["-o", "/dev/null"], way].concat())
            .expect_code(2)
            .expect_message(&[why]);
    };
    let artifact = "--emit=artifact";
    opt(
        &[artifact, "--gradients", "--keep-weights=bf16"],
        "leave it out with `--gradients`",
    );
    opt(
        &[artifact, "--gpu-arch=sim", "--keep-weights=bf16"],
        "`--keep-weights` is of the processor",
    );
    opt(
        &[artifact, "--keep-weights=f16"],
        "weights can be kept in f32 and bf16",
    );
    opt(&["--keep-weights=bf16"], "need");
}
