//! Every built-in and operator, on every element type, rank and kind of dim: it compiles, computes what
//! the oracle does whatever the batch, and its code for GPUs does too, to the same bits on either simulator, and calls nothing that
//! a GPU lacks.
//!
//! A sample of the table runs by default, of another seed with `COHORT_OPERATIONS_SEED=7`; with
//! `COHORT_EVERY_OPERATION=1` all of it does, with `COHORT_EVERY_OPERATION=3/20` the third of twenty parts,
//! and with `COHORT_OPERATIONS=TEXT` what has the text in it. Where there is a `ptxas`, it must take the
//! code for GPUs: what the simulator runs, a GPU may lack.

use std::panic;

use cohort_e2e::instances::{Instances, Shape};
use cohort_e2e::operations::{self, DIMS, LENGTHS, Use};
use cohort_e2e::records::{Closeness, compare_records};
use cohort_e2e::{Model, Rng, tools};
use serde_json::Value as Json;

use crate::models::to_text;

/// How many uses make a program.
const TOGETHER: usize = 10;

/// One use in this many is in the sample.
const SAMPLE: usize = 120;

#[test]
fn every_operation_on_every_kind_of_operand() {
    let mut uses = operations::all();
    let seed = std::env::var("COHORT_OPERATIONS_SEED");
    let seed = seed.ok().and_then(|seed| seed.parse().ok()).unwrap_or(77);
    // Neighbours in the table are alike, those of a program should not be.
    Rng::new(seed).shuffle(&mut uses);
    let chosen: Vec<&Use> = match (
        std::env::var("COHORT_OPERATIONS"),
        std::env::var("COHORT_EVERY_OPERATION"),
    ) {
        (Ok(text), _) => uses.iter().filter(|one| one.text.contains(&text)).collect(),
        (_, Ok(part)) => {
            let (part, parts) = part_of(&part);
            uses.iter().skip(part - 1).step_by(parts).collect()
        }
        _ => uses.iter().step_by(SAMPLE).collect(),
    };
    assert!(!chosen.is_empty(), "no operation is chosen");
    let mut failures = Vec::new();
    for uses in chosen.chunks(TOGETHER) {
        let Err(together) = attempt(uses) else {
            continue;
        };
        // Which of them it is.
        let alone: Vec<String> = uses
            .iter()
            .filter_map(|one| attempt(&[one]).err())
            .collect();
        match alone.is_empty() {
            true => failures.push(together),
            false => failures.extend(alone),
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {} operations fail\n\n{}",
        failures.len(),
        chosen.len(),
        failures.join("\n\n")
    );
}

/// `3/20`, or `1` for the only one.
fn part_of(text: &str) -> (usize, usize) {
    let (part, parts) = text.split_once('/').unwrap_or((text, "1"));
    match (part.parse(), parts.parse()) {
        (Ok(part), Ok(parts)) if (1..=parts).contains(&part) => (part, parts),
        _ => panic!("`{text}` is not one of some parts, like `3/20`"),
    }
}

/// With a `ptxas` at hand, which assembles the code, that of a GPU.
fn architectures() -> &'static str {
    match tools::assembler() {
        Some(_) => "--gpu-arch=sm_80,ptx,sim",
        None => "--gpu-arch=ptx,sim",
    }
}

fn attempt(uses: &[&Use]) -> Result<(), String> {
    let text = operations::program(uses);
    panic::catch_unwind(|| check(&text)).map_err(|payload| {
        let message = payload.downcast_ref::<String>().cloned();
        format!("{}\nof\n{text}", message.unwrap_or_default())
    })
}

fn check(text: &str) {
    let mut rng = Rng::new(78);
    let model = Model::from_text(text, &DIMS, &mut rng);
    let mut instances = Instances::new(&model.program, 4);
    instances.lengths_from(&LENGTHS);
    let instances: Vec<Json> = (0..6)
        .map(|index| {
            let shape = Shape::nth(index, 4, &mut rng);
            instances.instance(&format!("i{index}"), shape, &mut rng)
        })
        .collect();
    let input = to_text(&instances);
    let expected = model.oracle_lines(&input);
    let errors = expected.iter().filter(|line| line.contains("\"error\""));
    assert_eq!(errors.count(), 0, "an instance has an error: {expected:?}");

    let compiled = model.compile(&[architectures()]);
    let code = std::fs::read(&compiled.artifact).expect("the artifact can be read");
    let undefined = String::from_utf8_lossy(&code)
        .lines()
        .find(|line| line.starts_with(".extern .func"))
        .map(str::to_owned);
    assert_eq!(undefined, None, "code for GPUs calls what nothing defines");
    let run = |device: &str, way: &[&str]| {
        let call = compiled.batch_run().args(&["--device", device]).args(way);
        call.run(&input).expect_code(0)
    };
    for device in ["cpu", "gpu-sim"] {
        let batched = run(device, &[]);
        compare_records(&expected, &batched.lines(), Closeness::EachNumber(1e-4))
            .unwrap_or_else(|message| panic!("{message}\nfrom {}", batched.describe()));
        for way in [&["--no-batch"][..], &["--batch", "2"]] {
            let other = run(device, way);
            assert_eq!(batched.lines(), other.lines(), "{}", other.describe());
        }
    }
    let [compiled, interpreted] = ["gpu-sim", "ptx-sim"].map(|device| run(device, &[]));
    assert_eq!(
        compiled.lines(),
        interpreted.lines(),
        "{}",
        interpreted.describe()
    );
}
