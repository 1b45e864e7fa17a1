//! Random programs: against the oracle, and bit for bit batched and unbatched.

use std::panic;

use cohort_e2e::instances::{Instances, Shape};
use cohort_e2e::programs::RandomProgram;
use cohort_e2e::records::{Closeness, compare_records};
use cohort_e2e::{Model, Rng};
use serde_json::Value as Json;

use crate::models::to_text;

const PROGRAMS: u64 = 20;

/// Ways to compile a program other than the default; every other program is compiled in one of them
/// too.
const COMPILATIONS: [&[&str]; 4] = [
    &["--granularity", "operator"],
    &["--granularity", "function"],
    &["--without", "hoist-operators,operand-reuse"],
    &["--granularity", "operator", "--without", "operand-reuse"],
];

#[test]
fn random_programs_agree_with_the_oracle_and_with_themselves() {
    let mut failures = Vec::new();
    for seed in 0..PROGRAMS {
        // Every seed is tried, since one rule that is wrong shows in several.
        if let Err(payload) = panic::catch_unwind(|| check_program(seed)) {
            let message = payload
                .downcast_ref::<String>()
                .cloned()
                .or_else(|| payload.downcast_ref::<&str>().map(|text| text.to_string()));
            failures.push(format!("seed {seed}: {}", message.unwrap_or_default()));
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {PROGRAMS} programs fail\n\n{}",
        failures.len(),
        failures.join("\n\n")
    );
}

fn check_program(seed: u64) {
    let mut rng = Rng::new(1000 + seed);
    let program = RandomProgram::new(&mut rng);
    let context = format!("dims {:?} of\n{}", program.dims, program.text);
    let model = Model::from_text(&program.text, &program.dims, &mut rng);
    let mut instances = Instances::new(&model.program, model.vocabulary());
    let instances: Vec<Json> = (0..15)
        .map(|index| {
            let shape = Shape::nth(index, 8, &mut rng);
            instances.instance(&format!("i{index}"), shape, &mut rng)
        })
        .collect();
    let input = to_text(&instances);

    check_compiled(&model, &input, &[], &context);
    if seed % 2 == 1 {
        let way = COMPILATIONS[seed as usize / 2 % COMPILATIONS.len()];
        check_compiled(&model, &input, way, &context);
    }
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
