//! The optimisers against PyTorch's: `test/goldens/optimisers.py` makes what is expected.

use std::path::Path;

use cohort_train::groups::Group;
use cohort_train::optimiser::{Algorithm, Memory, Moments, update};
use cohort_train::schedule::{Course, Schedule};
use cohort_train::{Data, Gradient, Gradients, Parameter, Parameters};
use serde_json::Value as Json;

fn goldens() -> Json {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../test/goldens/optimisers.json");
    let text = std::fs::read_to_string(path).expect("the goldens are there");
    serde_json::from_str(&text).expect("the goldens are JSON")
}

const MOMENTS: Moments = Moments {
    beta1: 0.8,
    beta2: 0.95,
    epsilon: 1e-8,
};

/// How each case is set here; the script says the same to PyTorch.
fn case(name: &str) -> (Algorithm, f64) {
    let sgd = |momentum, nesterov| Algorithm::Sgd { momentum, nesterov };
    let adagrad = Algorithm::AdaGrad { epsilon: 1e-10 };
    match name {
        "sgd" | "sparse_sgd" | "sgd_warmup" => (sgd(0.0, false), 0.0),
        "sgd_decay" => (sgd(0.0, false), 0.3),
        "sgd_momentum" => (sgd(0.9, false), 0.3),
        "sgd_nesterov" => (sgd(0.9, true), 0.3),
        "adagrad" => (adagrad, 0.3),
        "sparse_adagrad" => (adagrad, 0.0),
        "adam" => (Algorithm::Adam(MOMENTS), 0.3),
        "adam_clip" | "sparse_adam" => (Algorithm::Adam(MOMENTS), 0.0),
        "adamw" => (Algorithm::AdamW(MOMENTS), 0.3),
        other => panic!("no case is called {other}"),
    }
}

fn numbers(json: &Json) -> Vec<f64> {
    match json {
        Json::Array(elements) => elements.iter().flat_map(numbers).collect(),
        other => vec![other.as_f64().expect("a number")],
    }
}

fn floats(json: &Json) -> Vec<f32> {
    numbers(json)
        .into_iter()
        .map(|number| number as f32)
        .collect()
}

/// A parameter `w: f32[4, 3]`, trained as the case says.
struct Training {
    groups: Vec<Group>,
    parameters: Parameters,
    memory: Memory,
}

impl Training {
    fn new(name: &str, golden: &Json) -> Training {
        let (algorithm, decay) = case(name);
        let groups = vec![Group {
            algorithm,
            rate: 0.1,
            decay,
            frozen: false,
            sparse: golden["sparse"] == true,
        }];
        let parameters = Parameters {
            list: vec![Parameter {
                name: "w".into(),
                shape: vec![4, 3],
                data: Data::F32(floats(&golden["start"])),
                is_table: true,
            }],
        };
        Training {
            memory: Memory::new(&parameters, &groups),
            groups,
            parameters,
        }
    }

    fn step(&mut self, golden: &Json, step: u64, gradient: Gradient) -> &[f32] {
        let mut gradients = Gradients { of: vec![gradient] };
        if let Some(most) = golden["clip"].as_f64() {
            let norm = gradients.norm();
            gradients.clip(norm, most);
        }
        let schedule = Schedule {
            course: Course::Constant,
            warmup: golden["warmup"].as_u64().unwrap_or(0),
            steps_an_epoch: 1,
            epochs: 1,
        };
        update(
            &self.groups,
            schedule.factor(step),
            step,
            &gradients,
            &mut self.parameters,
            &mut self.memory,
        );
        self.parameters.list[0].floats().expect("floats")
    }
}

fn rows_of(dense: &Gradient) -> Gradient {
    let touched = dense.touched(3);
    Gradient::Rows {
        rows: touched.iter().map(|(row, _)| *row).collect(),
        values: touched.iter().flat_map(|(_, row)| row.to_vec()).collect(),
    }
}

#[test]
fn optimisers_do_what_those_of_pytorch_do() {
    let goldens = goldens();
    let cases = goldens.as_object().expect("an object");
    assert_eq!(cases.len(), 12);
    for (name, golden) in cases {
        let mut training = Training::new(name, golden);
        let steps = golden["steps"].as_array().expect("steps");
        for (index, step) in steps.iter().enumerate() {
            let gradient = Gradient::Dense(floats(&step["gradient"]));
            let found = training.step(golden, index as u64 + 1, gradient);
            for (found, expected) in found.iter().zip(numbers(&step["parameter"])) {
                let difference = (f64::from(*found) - expected).abs();
                assert!(
                    difference <= 2e-6 * expected.abs().max(1.0),
                    "{name}, step {}: {found}, not {expected}",
                    index + 1
                );
            }
        }
    }
}

#[test]
fn bits_do_not_depend_on_how_a_gradient_is_kept() {
    let goldens = goldens();
    for (name, golden) in goldens.as_object().expect("an object") {
        let (mut dense, mut rows) = (Training::new(name, golden), Training::new(name, golden));
        let steps = golden["steps"].as_array().expect("steps");
        for (index, step) in steps.iter().enumerate() {
            let gradient = Gradient::Dense(floats(&step["gradient"]));
            let few = rows_of(&gradient);
            let expected = dense.step(golden, index as u64 + 1, gradient).to_vec();
            assert_eq!(rows.step(golden, index as u64 + 1, few), expected, "{name}");
        }
    }
}

#[test]
fn frozen_parameters_and_rows_without_gradient_stay() {
    let goldens = goldens();
    let golden = &goldens["adamw"];
    let start = floats(&golden["start"]);
    let mut frozen = Training::new("adamw", golden);
    frozen.groups[0].frozen = true;
    assert_eq!(
        frozen.step(golden, 1, Gradient::Dense(vec![1.0; 12])),
        start
    );

    let mut sparse = Training::new("adamw", golden);
    sparse.groups[0].sparse = true;
    let second = Gradient::Rows {
        rows: vec![1],
        values: vec![1.0; 3],
    };
    let values = sparse.step(golden, 1, second).to_vec();
    assert_eq!((&values[..3], &values[6..]), (&start[..3], &start[6..]));
    assert_ne!(values[3..6], start[3..6]);
    assert_eq!(sparse.step(golden, 2, Gradient::None), values);

    // Where it is not sparse, all of it decays.
    let mut dense = Training::new("adamw", golden);
    let values = dense.step(golden, 1, Gradient::None);
    assert!(
        values
            .iter()
            .zip(&start)
            .all(|(value, start)| *value == start * (1.0 - 0.03_f32))
    );
}
