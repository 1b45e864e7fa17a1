//! What an instance scored, and the means of many.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

/// What a step says of an instance.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It ran, and its loss is finite.
    Done(Scores),
    /// It adds nothing to the gradient.
    Failed {
        /// As in an error record.
        kind: String,
        /// What was wrong.
        message: String,
    },
}

impl Outcome {
    /// Of what an instance gave, with metrics at these places; its loss must be finite.
    pub fn of(output: &Json, metrics: &[usize]) -> Outcome {
        let failed = |kind: &str, message: String| Outcome::Failed {
            kind: kind.to_owned(),
            message,
        };
        match Scores::of(output, metrics) {
            Some(scores) if scores.loss.is_finite() => Outcome::Done(scores),
            Some(scores) => failed("loss_not_finite", format!("the loss is {}", scores.loss)),
            None => failed("internal", "the output has no loss".to_owned()),
        }
    }
}

/// Its loss, and the metrics behind it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scores {
    /// What is made smaller.
    pub loss: f64,
    /// In the order of the program.
    pub metrics: Vec<Metric>,
}

/// A number, and how much it counts in the mean of all instances.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Metric {
    /// Times how much it counts.
    pub sum: f64,
    /// How much it counts.
    pub weight: f64,
}

impl Scores {
    /// Of an output: the loss, or a tuple of it and metrics at these places. A number or a bool counts
    /// once, a pair of numbers is a sum and how many it is of.
    pub fn of(output: &Json, metrics: &[usize]) -> Option<Scores> {
        let Json::Array(parts) = output else {
            let loss = number(output)?;
            return Some(Scores {
                loss,
                metrics: vec![],
            });
        };
        let metrics = metrics.iter().map(|place| metric(parts.get(*place)?));
        Some(Scores {
            loss: number(parts.first()?)?,
            metrics: metrics.collect::<Option<_>>()?,
        })
    }
}

fn number(json: &Json) -> Option<f64> {
    match json {
        Json::Bool(truth) => Some(f64::from(u8::from(*truth))),
        Json::Number(number) => number.as_f64(),
        // As outputs write what JSON has no numbers for.
        Json::String(text) => match text.as_str() {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}

fn metric(json: &Json) -> Option<Metric> {
    let (sum, weight) = match json {
        Json::Array(pair) => match pair.as_slice() {
            [sum, weight] => (number(sum)?, number(weight)?),
            _ => return None,
        },
        other => (number(other)?, 1.0),
    };
    Some(Metric { sum, weight })
}

/// The sums over the instances of an epoch, in the order in which they ran.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Totals {
    /// All that ran, failed ones included.
    pub instances: u64,
    /// Those that failed.
    pub failed: u64,
    loss: Bits,
    /// A sum and its weight.
    metrics: Vec<(Bits, Bits)>,
}

/// A number that is kept to the bit, finite or not, where JSON is written.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(from = "u64", into = "u64")]
pub struct Bits(pub f64);

impl From<u64> for Bits {
    fn from(bits: u64) -> Bits {
        Bits(f64::from_bits(bits))
    }
}

impl From<Bits> for u64 {
    fn from(Bits(number): Bits) -> u64 {
        number.to_bits()
    }
}

impl PartialEq for Bits {
    fn eq(&self, other: &Bits) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}

impl Totals {
    /// Counts an instance.
    pub fn add(&mut self, outcome: &Outcome) {
        self.instances += 1;
        let Outcome::Done(scores) = outcome else {
            self.failed += 1;
            return;
        };
        self.loss.0 += scores.loss;
        if self.metrics.len() < scores.metrics.len() {
            self.metrics
                .resize(scores.metrics.len(), (Bits(0.0), Bits(0.0)));
        }
        for (total, metric) in self.metrics.iter_mut().zip(&scores.metrics) {
            total.0.0 += metric.sum;
            total.1.0 += metric.weight;
        }
    }

    /// The mean over the instances that did not fail; NaN where there are none.
    pub fn loss(&self) -> f64 {
        self.loss.0 / (self.instances - self.failed) as f64
    }

    /// The mean of each metric.
    pub fn metrics(&self) -> Vec<f64> {
        let means = self.metrics.iter().map(|(sum, weight)| sum.0 / weight.0);
        means.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn metrics_are_means_of_numbers_truths_and_pairs() {
        let mut totals = Totals::default();
        // What has the form of a metric in some outputs need not be one.
        for output in [
            json!([1.0, [5, 7], "NaN", true, [1, 1]]),
            json!([3.0, [], "text", false, [1, 3]]),
        ] {
            totals.add(&Outcome::Done(Scores::of(&output, &[3, 4]).unwrap()));
        }
        totals.add(&Outcome::Failed {
            kind: "bad_input".into(),
            message: "no".into(),
        });
        assert_eq!((totals.instances, totals.failed), (3, 1));
        assert_eq!(totals.loss(), 2.0);
        assert_eq!(totals.metrics(), [0.5, 0.5]);
        assert_eq!(Scores::of(&json!(2.5), &[]).unwrap().loss, 2.5);
        assert!(Scores::of(&json!({"Leaf": [1]}), &[]).is_none());
        assert!(Scores::of(&json!([]), &[]).is_none());
    }
}
