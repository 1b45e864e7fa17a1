//! A model that is differentiated by hand: the loss of an instance is (w · x - y)² / 2, of a table's row w.

use cohort_train::criterion::Criterion;
use cohort_train::groups::Group;
use cohort_train::optimiser::Algorithm;
use cohort_train::schedule::Course;
use cohort_train::settings::Reduction;
use cohort_train::state::EpochRecord;
use cohort_train::{
    Changed, Data, Error, Evaluate, Gradient, Gradients, Instance, Interrupt, Outcome, Parameter,
    Parameters, Settings, State, Step, StepError, Watcher,
};
use serde_json::{Value as Json, json};

pub const WIDTH: usize = 2;

pub fn settings() -> Settings {
    let group = |is_table| Group {
        algorithm: match is_table {
            true => Algorithm::AdaGrad { epsilon: 1e-10 },
            false => Algorithm::Sgd {
                momentum: 0.5,
                nesterov: false,
            },
        },
        rate: if is_table { 0.5 } else { 0.05 },
        decay: 0.01,
        frozen: false,
        sparse: is_table,
    };
    Settings {
        groups: vec![group(true), group(false)],
        reduction: Reduction::Mean,
        clip: Some(3.0),
        course: Course::Cosine,
        warmup: 3,
        batch: 7,
        epochs: 4,
        seed: 5,
        best: Criterion::default(),
        patience: None,
        metrics: vec![],
        checkpoint_steps: None,
        log_steps: Some(1),
        stop_on_failure: false,
    }
}

/// A table and a shift; `unused` has no gradient where there is one.
pub fn parameters() -> Parameters {
    let parameter = |name: &str, shape: &[usize], is_table| Parameter {
        name: name.into(),
        shape: shape.to_vec(),
        data: Data::F32(
            (0..shape.iter().product())
                .map(|k: usize| 0.1 * k as f32)
                .collect(),
        ),
        is_table,
    };
    Parameters {
        list: vec![
            parameter("table", &[5, WIDTH], true),
            parameter("shift", &[1], false),
        ],
    }
}

pub fn instances(count: usize) -> Vec<Instance> {
    let instance = |k: usize| {
        let x = [(k % 3) as f64 - 1.0, (k % 4) as f64 - 1.5];
        let row = k % 4;
        let line = json!({"id": k, "row": row, "x": x, "y": x[0] - 2.0 * x[1] + row as f64});
        Instance {
            id: k.to_string(),
            line: line.to_string(),
        }
    };
    (0..count).map(instance).collect()
}

#[derive(Default)]
pub struct Model {
    pub parameters: Parameters,
    /// The draws of all steps.
    pub draws: Vec<u64>,
    /// The ids of the instances in the order in which they came.
    pub seen: Vec<String>,
    /// Asks for the end when `steps` steps were asked for.
    pub interrupt: Option<(u64, Interrupt)>,
    pub steps: u64,
}

impl Model {
    /// The loss of an instance, its row and the gradient of the score.
    fn loss(&self, instance: &Instance) -> Result<(f64, usize, f64, Vec<f64>), Outcome> {
        let line: Json = serde_json::from_str(&instance.line).expect("a line of JSON");
        let failed = |kind: &str| Outcome::Failed {
            kind: kind.into(),
            message: "it is bad".into(),
        };
        let (Some(row), Some(x)) = (line["row"].as_u64(), line["x"].as_array()) else {
            return Err(failed("bad_input"));
        };
        let x: Vec<f64> = x.iter().map(|x| x.as_f64().expect("a number")).collect();
        let row = row as usize;
        let table = self.parameters.list[0].floats().expect("floats");
        let shift = self.parameters.list[1].floats().expect("floats")[0];
        let weights = &table[row * WIDTH..][..WIDTH];
        let score: f64 = weights.iter().zip(&x).map(|(w, x)| f64::from(*w) * x).sum();
        let error = score + f64::from(shift) - line["y"].as_f64().unwrap_or(f64::NAN);
        match error.is_finite() {
            true => Ok((error * error / 2.0, row, error, x)),
            false => Err(failed("loss_not_finite")),
        }
    }
}

impl Step for Model {
    /// Takes over what is said to have changed, and nothing else has.
    fn set_parameters(
        &mut self,
        parameters: &Parameters,
        changed: &[Changed],
    ) -> Result<(), StepError> {
        if self.parameters.list.is_empty() {
            self.parameters = parameters.clone();
        }
        let own = self.parameters.list.iter_mut().zip(&parameters.list);
        for ((own, new), changed) in own.zip(changed) {
            match (changed, &mut own.data, &new.data) {
                (Changed::Nothing, ..) => {}
                (Changed::Rows(rows), Data::F32(to), Data::F32(from)) => {
                    for row in rows {
                        let row = *row as usize * WIDTH..(*row as usize + 1) * WIDTH;
                        to[row.clone()].copy_from_slice(&from[row]);
                    }
                }
                _ => own.clone_from(new),
            }
        }
        assert_eq!(self.parameters, *parameters);
        Ok(())
    }

    fn step(
        &mut self,
        instances: &[&Instance],
        draw: u64,
        gradients: &mut Gradients,
    ) -> Result<Vec<Outcome>, StepError> {
        self.steps += 1;
        if let Some((most, interrupt)) = &self.interrupt
            && self.steps > *most
        {
            interrupt.set(15);
            return Err(StepError::Interrupted);
        }
        self.draws.push(draw);
        let mut table = vec![0.0; self.parameters.list[0].floats().expect("floats").len()];
        let mut shift = 0.0;
        let mut outcomes = Vec::new();
        for instance in instances {
            self.seen.push(instance.id.clone());
            outcomes.push(match self.loss(instance) {
                Ok((loss, row, error, x)) => {
                    for (sum, x) in table[row * WIDTH..].iter_mut().zip(&x) {
                        *sum += (error * x) as f32;
                    }
                    shift += error as f32;
                    Outcome::of(&json!([loss, error.abs() < 0.5]), &[1])
                }
                Err(failed) => failed,
            });
        }
        let dense = Gradient::Dense(table);
        let touched = dense.touched(WIDTH);
        let rows = Gradient::Rows {
            rows: touched.iter().map(|(row, _)| *row).collect(),
            values: touched.iter().flat_map(|(_, row)| row.to_vec()).collect(),
        };
        gradients.of = vec![rows, Gradient::Dense(vec![shift])];
        Ok(outcomes)
    }
}

impl Evaluate for Model {
    fn set_parameters(&mut self, parameters: &Parameters) -> Result<(), StepError> {
        self.parameters = parameters.clone();
        Ok(())
    }

    fn evaluate(&mut self, instances: &[&Instance], _: u64) -> Result<Vec<Outcome>, StepError> {
        let of = |instance: &&Instance| match self.loss(instance) {
            Ok((loss, _, error, _)) => Outcome::of(&json!([loss, error.abs() < 0.5]), &[1]),
            Err(failed) => failed,
        };
        Ok(instances.iter().map(of).collect())
    }
}

/// Keeps all that it is told.
#[derive(Default)]
pub struct Seen {
    pub warnings: Vec<String>,
    pub failed: Vec<(String, String)>,
    pub lines: Vec<Json>,
    pub saved: Vec<State>,
}

impl Watcher for Seen {
    fn progress(&mut self, _: &State, _: u64, _: f64) {}

    fn warn(&mut self, sentence: &str) {
        self.warnings.push(sentence.to_owned());
    }

    fn failed(&mut self, id: &str, kind: &str, _: &str) {
        self.failed.push((id.to_owned(), kind.to_owned()));
    }

    fn log(&mut self, line: Json) -> Result<(), Error> {
        self.lines.push(line);
        Ok(())
    }

    fn epoch(&mut self, _: &State, _: &EpochRecord) -> Result<(), Error> {
        Ok(())
    }

    fn save(&mut self, state: &State) -> Result<(), Error> {
        self.saved.push(state.clone());
        Ok(())
    }
}
