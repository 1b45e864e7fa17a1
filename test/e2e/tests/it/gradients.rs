//! The oracle's gradients against finite differences of its outputs, which share no rule with them.

use std::panic;

use cohort_e2e::differences::{self, Verdict};
use cohort_e2e::instances::{Instances, Shape};
use cohort_e2e::operations::{self, DIMS, LENGTHS, Use};
use cohort_e2e::programs::{self, RandomProgram, Traits};
use cohort_e2e::{Model, Rng};
use serde_json::Value as Json;

use crate::models::MODELS;

/// How many instances ended how.
#[derive(Debug, Default)]
struct Tally {
    agree: usize,
    kinks: usize,
    nothing: usize,
}

impl Tally {
    #[track_caller]
    fn compare(&mut self, model: &Model, instances: &[Json], rng: &mut Rng) {
        for instance in instances {
            let verdict = differences::compare(&model.program, &model.weights, instance, rng);
            match verdict {
                Ok(Verdict::Agrees) => self.agree += 1,
                Ok(Verdict::Kink) => self.kinks += 1,
                Ok(Verdict::Nothing) => self.nothing += 1,
                Err(message) => panic!("{message}\nof the instance {instance}"),
            }
        }
    }

    fn add(&mut self, other: &Tally) {
        self.agree += other.agree;
        self.kinks += other.kinks;
        self.nothing += other.nothing;
    }

    /// Most of what was to be compared could be.
    #[track_caller]
    fn expect_most(&self) {
        assert!(
            self.agree > 9 * (self.kinks + self.nothing),
            "too little was compared: {self:?}"
        );
    }
}

/// Some instances of a program with random weights.
#[track_caller]
fn of_program(text: &str, dims: &[(&str, u64)], lengths: &[usize], seed: u64) -> Tally {
    let attempt = panic::catch_unwind(|| {
        let mut rng = Rng::new(seed);
        let model = Model::from_text(text, dims, &mut rng);
        let mut instances = Instances::new(&model.program, 4);
        instances.lengths_from(lengths);
        let instances: Vec<Json> = (0..3)
            .map(|index| instances.instance("x", Shape::nth(index, 4, &mut rng), &mut rng))
            .collect();
        let mut tally = Tally::default();
        tally.compare(&model, &instances, &mut rng);
        tally
    });
    attempt.unwrap_or_else(|_| panic!("seed {seed} of the program\n{text}"))
}

/// Of every built-in and operator, on every element type, rank and kind of dim.
#[test]
fn gradients_of_operations_are_those_of_differences() {
    const TOGETHER: usize = 12;
    const SAMPLE: usize = 9;
    let mut uses = operations::all();
    Rng::new(91).shuffle(&mut uses);
    let chosen: Vec<&Use> = match std::env::var("COHORT_OPERATIONS") {
        Ok(text) => uses.iter().filter(|one| one.text.contains(&text)).collect(),
        Err(_) => uses.iter().step_by(SAMPLE).collect(),
    };
    let mut tally = Tally::default();
    for uses in chosen.chunks(TOGETHER) {
        tally.add(&of_program(&operations::program(uses), &DIMS, &LENGTHS, 92));
    }
    tally.expect_most();
}

#[test]
fn gradients_of_examples_are_those_of_differences() {
    for case in MODELS {
        let mut rng = Rng::new(93);
        let model = case.with_sizes([7, 5, 4, 3], &mut rng);
        let instances = case.instances(&model, 6, &mut rng);
        let mut tally = Tally::default();
        tally.compare(&model, &instances, &mut rng);
        assert!(tally.agree >= 4, "{}: {tally:?}", case.name);
    }
}

#[test]
fn gradients_of_random_programs_are_those_of_differences() {
    let mut tally = Tally::default();
    for seed in 0..200 {
        let mut rng = Rng::new(seed);
        let traits = Traits {
            trees: rng.one_in(2),
            ragged: rng.one_in(2),
            decisions: rng.one_in(3),
            ..Traits::default()
        };
        let program = RandomProgram::with(traits, &mut rng);
        let lengths = &programs::LENGTHS;
        tally.add(&of_program(&program.text, &program.dims, lengths, seed));
    }
    tally.expect_most();
}
