//! Few instances on many threads: these share the products of a launch, panel by panel, and change no bit.

use cohort_e2e::Rng;

use crate::models::{model_case, to_text};

/// Sizes with panels that are whole, cut, and one alone.
const SIZES: [[u64; 2]; 3] = [[256, 128], [257, 61], [28, 300]];
/// Models with chains, trees, layers and decisions.
const MODELS: [&str; 5] = ["treelstm", "childsum", "nestedrnn", "encoder", "act"];

/// Compiles a model of that size in some way, and runs few instances of it on one thread and on more.
#[track_caller]
fn expect_same_bits(name: &str, [wide, narrow]: [u64; 2], way: &[&str]) {
    let mut rng = Rng::new(24);
    let case = model_case(name);
    let model = case.with_sizes([33, wide, narrow, 5], &mut rng);
    let compiled = model.compile(way);
    for instances in [1, 3] {
        let input = to_text(&case.instances(&model, instances, &mut rng));
        let run = |threads: &str| {
            let call = compiled.batch_run().args(&["--threads", threads]);
            call.run(&input).expect_code(0).lines()
        };
        let alone = run("1");
        assert_eq!(alone.len(), instances, "{name}");
        for threads in ["2", "4"] {
            let what = format!("{name}, {wide} and {narrow}, {way:?}, {threads} threads");
            assert!(run(threads) == alone, "{what}");
        }
    }
}

#[test]
fn threads_that_share_products_change_no_bit() {
    for name in MODELS {
        for sizes in SIZES {
            expect_same_bits(name, sizes, &[]);
        }
    }
    expect_same_bits("treelstm", [257, 61], &["--keep-weights", "bf16"]);
}

/// Where registers hold fewer vectors, tiles are smaller, and panels are not.
#[test]
#[cfg(target_arch = "x86_64")]
fn nor_do_they_on_other_processors() {
    for target in ["x86-64-v2", "x86-64-v3"] {
        expect_same_bits("nestedrnn", [257, 61], &["--target-cpu", target]);
    }
}
