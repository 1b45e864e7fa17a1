//! The oracle's gradients against differences of its own outputs, in f64.
//!
//! What is differentiated is the sum of an instance's numbers with random weights. Its derivative in a
//! random direction of the parameters, or of the inputs, is what the gradient says of that direction.
//! Where the function has a kink, or jumps, its slopes to both sides differ, and nothing is compared.

use cohort_frontend::program::Program;
use cohort_oracle::{Data, Gradient, Limits, Oracle, Question};
use serde_json::Value as Json;

use crate::rng::Rng;
use crate::weights::Weights;

/// What was found for one instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The gradient is that of the differences, within the tolerance.
    Agrees,
    /// The slopes to both sides differ.
    Kink,
    /// The instance fails, or nothing that is finite comes out.
    Nothing,
}

/// How far to go to either side.
const STEP: f64 = 1e-6;
/// Inputs are read as f32, so that steps must be longer.
const INPUT_STEP: f64 = 2e-5;

/// Compares along one direction of the parameters and one of the inputs.
pub fn compare(
    program: &Program,
    weights: &Weights,
    instance: &Json,
    rng: &mut Rng,
) -> Result<Verdict, String> {
    let limits = Limits::default();
    let oracle = Oracle::new(program, weights.clone()).map_err(|error| error.to_string())?;
    let Ok(output) = oracle.run("x", instance, limits) else {
        return Ok(Verdict::Nothing);
    };
    let cotangent = cotangent_like(&output, rng);
    let question = Question {
        cotangent: Some(&cotangent),
        of_inputs: true,
    };
    let gradient = match oracle.differentiate("x", instance, question, limits) {
        Ok(gradient) => gradient,
        Err(error) if error.kind == cohort_oracle::ErrorKind::LossNotFinite => {
            return Ok(Verdict::Nothing);
        }
        Err(error) => return Err(error.to_string()),
    };
    if gradient.output != output {
        return Err("recording changes the output".to_owned());
    }
    let here = weighed(&output, &cotangent);
    let at = |weights: &Weights, instance: &Json| -> Option<f64> {
        let oracle = Oracle::new(program, weights.clone()).ok()?;
        let output = oracle.run("x", instance, limits).ok()?;
        Some(weighed(&output, &cotangent))
    };

    let moved = Moved::of_weights(program, weights, &gradient, rng);
    let to = |weights| at(weights, instance);
    let of_weights = judge(here, to(&moved.ahead), to(&moved.back), moved.expected)
        .map_err(|message| format!("parameters: {message}"))?;
    let inputs = gradient
        .inputs
        .as_ref()
        .ok_or("no gradient of the inputs")?;
    let moved = Moved::of_inputs(instance, inputs, rng);
    let to = |instance| at(weights, instance);
    let of_inputs = judge(here, to(&moved.ahead), to(&moved.back), moved.expected)
        .map_err(|message| format!("inputs: {message}"))?;
    Ok(match (of_weights, of_inputs) {
        (Verdict::Agrees, other) | (other, _) => other,
    })
}

/// What is a step ahead, what is one back, and by how much the function should differ between them.
struct Moved<T> {
    ahead: T,
    back: T,
    expected: f64,
}

impl Moved<Weights> {
    fn of_weights(
        program: &Program,
        weights: &Weights,
        gradient: &Gradient,
        rng: &mut Rng,
    ) -> Moved<Weights> {
        let mut moved = Moved {
            ahead: weights.clone(),
            back: weights.clone(),
            expected: 0.0,
        };
        for (param, gradient) in program.params.iter().zip(&gradient.params) {
            let ahead = moved
                .ahead
                .get_mut(&param.name)
                .map(|tensor| &mut tensor.data);
            let back = moved
                .back
                .get_mut(&param.name)
                .map(|tensor| &mut tensor.data);
            let (Some(Data::F32(ahead)), Some(Data::F32(back))) = (ahead, back) else {
                continue;
            };
            for place in 0..ahead.len() {
                let step = STEP * rng.signed_unit();
                ahead[place] += step;
                back[place] -= step;
                let slope = gradient.as_ref().map_or(0.0, |gradient| gradient[place]);
                moved.expected += slope * (ahead[place] - back[place]);
            }
        }
        moved
    }
}

impl Moved<Json> {
    fn of_inputs(instance: &Json, gradients: &Json, rng: &mut Rng) -> Moved<Json> {
        let mut moved = Moved {
            ahead: instance.clone(),
            back: instance.clone(),
            expected: 0.0,
        };
        moved.expected = step_aside(&mut moved.ahead, &mut moved.back, gradients, rng);
        moved
    }
}

/// Moves each number that has a gradient to either side; by how much the function should differ.
fn step_aside(ahead: &mut Json, back: &mut Json, gradient: &Json, rng: &mut Rng) -> f64 {
    match (&mut *ahead, &mut *back, gradient) {
        (Json::Number(number), Json::Number(_), Json::Number(slope)) => {
            let (Some(x), Some(slope)) = (number.as_f64(), slope.as_f64()) else {
                return 0.0;
            };
            let step = INPUT_STEP * rng.signed_unit();
            let (x, y) = ((x + step) as f32, (x - step) as f32);
            (*ahead, *back) = (Json::from(x), Json::from(y));
            slope * (f64::from(x) - f64::from(y))
        }
        (Json::Array(ahead), Json::Array(back), Json::Array(gradients)) => {
            let pairs = ahead.iter_mut().zip(back).zip(gradients);
            pairs
                .map(|((ahead, back), gradient)| step_aside(ahead, back, gradient, rng))
                .sum()
        }
        (Json::Object(ahead), Json::Object(back), Json::Object(gradients)) => gradients
            .iter()
            .filter_map(|(name, gradient)| {
                let (ahead, back) = (ahead.get_mut(name)?, back.get_mut(name)?);
                Some(step_aside(ahead, back, gradient, rng))
            })
            .sum(),
        _ => 0.0,
    }
}

fn judge(
    here: f64,
    ahead: Option<f64>,
    back: Option<f64>,
    expected: f64,
) -> Result<Verdict, String> {
    let (Some(ahead), Some(back)) = (ahead, back) else {
        return Ok(Verdict::Kink);
    };
    let (up, down, found) = (ahead - here, here - back, ahead - back);
    if !found.is_finite() || !here.is_finite() {
        return Ok(Verdict::Nothing);
    }
    // Of what a sum of numbers of this size can tell.
    let noise = 1e-13 * (1.0 + here.abs());
    let scale = up.abs().max(down.abs());
    if (up - down).abs() > 1e-3 * scale + noise {
        return Ok(Verdict::Kink);
    }
    // A slope that is not finite has no kink beside it.
    let error = (found - expected).abs();
    if error <= 1e-4 * scale + noise {
        return Ok(Verdict::Agrees);
    }
    Err(format!(
        "the function differs by {found:e}, and should by {expected:e}"
    ))
}

/// Random weights for the floats of an output, in its form.
fn cotangent_like(output: &Json, rng: &mut Rng) -> Json {
    match output {
        Json::Number(number) if number.is_f64() => Json::from(rng.signed_unit()),
        Json::String(name) if ["NaN", "Infinity", "-Infinity"].contains(&name.as_str()) => {
            Json::from(0.0)
        }
        Json::String(name) => Json::from(name.as_str()),
        Json::Array(elements) => elements
            .iter()
            .map(|element| cotangent_like(element, rng))
            .collect(),
        Json::Object(members) => members
            .iter()
            .map(|(name, member)| (name.clone(), cotangent_like(member, rng)))
            .collect(),
        _ => Json::Null,
    }
}

fn weighed(output: &Json, cotangent: &Json) -> f64 {
    match (output, cotangent) {
        (Json::Number(number), Json::Number(weight)) => {
            number.as_f64().unwrap_or(0.0) * weight.as_f64().unwrap_or(0.0)
        }
        (Json::Array(output), Json::Array(cotangent)) => {
            let pairs = output.iter().zip(cotangent);
            pairs.map(|(o, c)| weighed(o, c)).sum()
        }
        (Json::Object(output), Json::Object(cotangent)) => output
            .iter()
            .filter_map(|(name, output)| Some(weighed(output, cotangent.get(name)?)))
            .sum(),
        // A constructor, an integer, or what has no weight.
        _ => 0.0,
    }
}
