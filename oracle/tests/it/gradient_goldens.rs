//! The gradients of every example against those that PyTorch computed in f64, from the same reference
//! as the goldens of the outputs (test/goldens/gradients.py).

use std::path::PathBuf;

use cohort_oracle::{Data, Limits, Oracle, Question, read_weights};
use serde_json::Value as Json;

use crate::models::{compile, examples, read_lines, workspace};

/// How far numbers may be from the goldens, which were rounded to f32, as a part of the largest.
const TOLERANCE: f64 = 1e-6;
/// What is 0 but for rounding, such as the gradient of the keys' bias in attention.
const NOTHING: f64 = 1e-13;

/// Its outputs are decisions, which have no gradient.
const WITHOUT: [&str; 1] = ["drnn"];

/// The k-th float of an output weighs 1 / (1 + k % 3).
fn cotangent_of(output: &Json, floats: &mut usize) -> Json {
    match output {
        Json::Number(number) if number.is_f64() => {
            let weight = 1.0 / (1 + *floats % 3) as f64;
            *floats += 1;
            Json::from(weight)
        }
        Json::Array(parts) => {
            let parts = parts.iter().map(|part| cotangent_of(part, floats));
            Json::Array(parts.collect())
        }
        _ => Json::Null,
    }
}

fn numbers(json: &Json) -> Vec<f64> {
    match json {
        Json::Array(parts) => parts.iter().flat_map(numbers).collect(),
        other => vec![other.as_f64().expect("a number")],
    }
}

#[track_caller]
fn agree(what: &str, expected: &[f64], found: &[f64]) {
    assert_eq!(expected.len(), found.len(), "{what}");
    let largest = expected.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
    for (place, (expected, found)) in expected.iter().zip(found).enumerate() {
        let difference = (expected - found).abs();
        assert!(
            difference <= TOLERANCE * largest + NOTHING,
            "{what}, {place}: {found} is not {expected}"
        );
    }
}

#[track_caller]
fn check(model: &str) {
    let goldens = workspace().join("test/goldens");
    let folder: PathBuf = match model {
        "treelstm" => goldens.join(model),
        _ => workspace().join("examples").join(model),
    };
    let weights = read_weights(&folder.join("weights.safetensors")).unwrap_or_default();
    let program = compile(model, &weights);
    let oracle = Oracle::new(&program, weights).expect("the weights fit");
    let of_inputs = goldens.join(format!("gradients/{model}.jsonl"));
    let of_inputs = of_inputs.is_file().then(|| read_lines(&of_inputs));

    let mut sums: Vec<Vec<f64>> = program
        .params
        .iter()
        .map(|param| vec![0.0; param.shape.iter().product::<u64>() as usize])
        .collect();
    let instances = read_lines(&folder.join("input.jsonl"));
    for (place, instance) in instances.iter().enumerate() {
        let id = instance["id"].as_str().expect("an id");
        let output = oracle.run(id, instance, Limits::default());
        let output = output.unwrap_or_else(|error| panic!("{model}, {id}: {error}"));
        let cotangent = cotangent_of(&output, &mut 0);
        let question = Question {
            cotangent: Some(&cotangent),
            of_inputs: true,
        };
        let gradient = oracle
            .differentiate(id, instance, question, Limits::default())
            .unwrap_or_else(|error| panic!("{model}, {id}: {error}"));
        for (sum, gradient) in sums.iter_mut().zip(gradient.params) {
            for (sum, part) in sum.iter_mut().zip(gradient.unwrap_or_default()) {
                *sum += part;
            }
        }
        if let Some(lines) = &of_inputs {
            assert_eq!(lines[place]["id"], instance["id"], "{model}");
            let found = gradient.inputs.expect("it was asked for");
            let members = lines[place]["gradient"].as_object().expect("an object");
            assert!(!members.is_empty(), "{model}, {id}");
            for (name, expected) in members {
                let what = format!("{model}, {id}, {name}");
                agree(&what, &numbers(expected), &numbers(&found[name]));
            }
        }
    }
    let expected = read_weights(&goldens.join(format!("gradients/{model}.safetensors")));
    let expected = expected.expect("the model has gradients");
    assert_eq!(expected.len(), sums.len(), "{model}");
    for (param, sum) in program.params.iter().zip(&sums) {
        let Data::F32(expected) = &expected[&param.name].data else {
            panic!("{model}: the gradient of {} is not of floats", param.name);
        };
        agree(&format!("{model}, {}", param.name), expected, sum);
    }
}

#[test]
fn every_example_has_the_gradients_of_its_goldens() {
    for model in examples() {
        if !WITHOUT.contains(&model.as_str()) {
            check(&model);
        }
    }
}
