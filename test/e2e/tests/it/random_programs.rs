//! Random programs: against the oracle, and bit for bit batched and unbatched.

use std::panic;

use cohort_e2e::instances::{Instances, Shape};
use cohort_e2e::programs::RandomProgram;
use cohort_e2e::ragged_programs::{LENGTHS, ragged_program};
use cohort_e2e::records::{Closeness, compare_records};
use cohort_e2e::{Model, Rng};
use serde_json::Value as Json;

use crate::models::to_text;

const PROGRAMS: u64 = 20;

const RAGGED_PROGRAMS: u64 = 24;

/// Ways to compile a program other than the default; every other program is compiled in one of them
/// too, and the others run on the simulated GPU.
const COMPILATIONS: [&[&str]; 4] = [
    &["--granularity", "operator"],
    &["--granularity", "function"],
    &["--without", "hoist-operators,operand-reuse"],
    &["--granularity", "operator", "--without", "operand-reuse"],
];

#[test]
fn random_programs_agree_with_the_oracle_and_with_themselves() {
    try_all(PROGRAMS, |seed| {
        let mut rng = Rng::new(1000 + seed);
        let program = RandomProgram::new(&mut rng);
        check_program(seed, &program, rng, 8, &[1, 2, 3, 4, 5, 6, 7, 8, 9]);
    });
}

#[test]
fn random_programs_over_instance_dims_agree_with_the_oracle_and_with_themselves() {
    try_all(RAGGED_PROGRAMS, |seed| {
        let mut rng = Rng::new(5000 + seed);
        let program = ragged_program(&mut rng);
        check_program(seed, &program, rng, 4, &LENGTHS);
    });
}

/// Tries every seed, since one rule that is wrong shows in several.
fn try_all(count: u64, check: impl Fn(u64) + panic::RefUnwindSafe) {
    let mut failures = Vec::new();
    for seed in 0..count {
        if let Err(payload) = panic::catch_unwind(|| check(seed)) {
            let message = payload
                .downcast_ref::<String>()
                .cloned()
                .or_else(|| payload.downcast_ref::<&str>().map(|text| text.to_string()));
            failures.push(format!("seed {seed}: {}", message.unwrap_or_default()));
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {count} programs fail\n\n{}",
        failures.len(),
        failures.join("\n\n")
    );
}

/// Runs a program over instances whose structures have up to `size` nodes and whose instance dims have
/// some of these lengths.
fn check_program(seed: u64, program: &RandomProgram, mut rng: Rng, size: usize, lengths: &[usize]) {
    let context = format!("dims {:?} of\n{}", program.dims, program.text);
    let model = Model::from_text(&program.text, &program.dims, &mut rng);
    // A program without words has integers of other uses.
    let words = match model.weights.contains_key("emb") {
        true => model.vocabulary(),
        false => 4,
    };
    let mut instances = Instances::new(&model.program, words);
    instances.lengths_from(lengths);
    let instances: Vec<Json> = (0..15)
        .map(|index| {
            let shape = Shape::nth(index, size, &mut rng);
            instances.instance(&format!("i{index}"), shape, &mut rng)
        })
        .collect();
    let input = to_text(&instances);

    check_compiled(&model, &input, &[], &context);
    if seed.is_multiple_of(2) {
        check_simulated(&model, &input, &context);
    } else {
        let way = COMPILATIONS[seed as usize / 2 % COMPILATIONS.len()];
        check_compiled(&model, &input, way, &context);
    }
}

/// Compares what the code of GPUs computes with the oracle.
fn check_simulated(model: &Model, input: &str, context: &str) {
    let call = model.batch_run().args(&["--device", "gpu-sim"]);
    let outcome = call.run(input);
    assert_eq!(outcome.code, 0, "{}\n{context}", outcome.describe());
    let expected = model.oracle_lines(input);
    compare_records(&expected, &outcome.lines(), Closeness::WholeOutput(1e-4))
        .unwrap_or_else(|message| panic!("simulated, against the oracle: {message}\n{context}"));
}

/// Compares a program, compiled in one way, with the oracle and with itself unbatched.
fn check_compiled(model: &Model, input: &str, way: &[&str], context: &str) {
    let compiled = model.compile(way);
    let run = |arguments: &[&str]| {
        let call = compiled.batch_run().args(arguments);
        let outcome = call.run(input);
        assert_eq!(outcome.code, 0, "{}\n{context}", outcome.describe());
        outcome.lines()
    };
    let batched = run(&[]);
    compare_records(
        &model.oracle_lines(input),
        &batched,
        Closeness::WholeOutput(1e-4),
    )
    .unwrap_or_else(|message| panic!("{way:?} against the oracle: {message}\n{context}"));
    for arguments in [
        &["--no-batch"][..],
        &["--batch", "4", "--threads", "2"],
        &["--in-flight", "3"],
    ] {
        let other = run(arguments);
        for (expected, actual) in batched.iter().zip(&other) {
            assert!(
                expected == actual,
                "other bits with {way:?} {arguments:?}\nfirst {expected}\nthen  {actual}\n{context}"
            );
        }
    }
}
