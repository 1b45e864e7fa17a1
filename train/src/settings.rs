//! What is to be done, all of it; read from a command line elsewhere.

use crate::criterion::{Criterion, LOSS};
use crate::error::Error;
use crate::groups::Group;
use crate::log::BESIDE_METRICS;
use crate::schedule::Course;

/// What the gradient of a mini-batch is of: a loss of all its instances that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// The mean of their losses.
    Mean,
    /// The sum of their losses.
    Sum,
}

/// All of them, checked.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Of each parameter, in the order of the program.
    pub groups: Vec<Group>,
    /// What the gradient of a mini-batch is of.
    pub reduction: Reduction,
    /// The longest that a gradient may be.
    pub clip: Option<f64>,
    /// How learning rates change behind the warm-up.
    pub course: Course,
    /// Steps of the warm-up.
    pub warmup: u64,
    /// Instances of a mini-batch; the last of an epoch may have fewer.
    pub batch: usize,
    /// How often all instances are seen.
    pub epochs: u64,
    /// What the order of instances and all that looks random follow from.
    pub seed: u64,
    /// Which epoch is the best on the development data.
    pub best: Criterion,
    /// Training ends after this many epochs without a better one.
    pub patience: Option<u64>,
    /// The names of the metrics; those behind them are called by their place.
    pub metrics: Vec<String>,
    /// How many steps there are between checkpoints within an epoch.
    pub checkpoint_steps: Option<u64>,
    /// How many steps there are between lines of the log within an epoch.
    pub log_steps: Option<u64>,
    /// An instance that fails ends training.
    pub stop_on_failure: bool,
}

impl Settings {
    /// The name of the metric at that place, counted from 0.
    pub fn metric(&self, place: usize) -> String {
        let name = self.metrics.get(place).cloned();
        name.unwrap_or_else(|| format!("metric{}", place + 1))
    }

    /// Checks the names of metrics, of which a loss has at most `count`.
    ///
    /// # Errors
    ///
    /// Says which name is one too many, or does not tell a metric from what else the log has.
    pub fn check_metrics(&self, count: usize) -> Result<(), Error> {
        let wrong = |what: String| {
            let names = self.metrics.join(",");
            Err(Error::Setting(format!("`--metrics {names}`: {what}")))
        };
        if let Some(name) = self.metrics.get(count) {
            let metrics = if count == 1 { "metric" } else { "metrics" };
            return wrong(format!(
                "`{name}` is one name too many: `loss` returns {count} {metrics}"
            ));
        }
        for place in 0..count {
            let name = self.metric(place);
            if (0..place).any(|before| self.metric(before) == name) {
                return wrong(format!("two metrics are called `{name}`"));
            }
            if BESIDE_METRICS.contains(&name.as_str()) {
                return wrong(format!(
                    "`{name}` is not a metric's: the log has it beside them"
                ));
            }
        }
        Ok(())
    }

    /// The place of the metric that the best epoch is told by, among `count`; none if it is told by the loss.
    ///
    /// # Errors
    ///
    /// Says which metrics there are if it is none of them.
    pub fn best_metric(&self, count: usize) -> Result<Option<usize>, Error> {
        let best = &self.best.name;
        if best == LOSS {
            return Ok(None);
        }
        let names: Vec<String> = (0..count).map(|place| self.metric(place)).collect();
        let place = names.iter().position(|name| name == best);
        place.map(Some).ok_or_else(|| {
            let known = [LOSS].into_iter().chain(names.iter().map(String::as_str));
            let known = known.collect::<Vec<_>>().join(", ");
            Error::Setting(format!(
                "`--best {best}`: there is no such metric; there are {known}"
            ))
        })
    }

    /// The random numbers of an epoch, counted from 1, as `batch-run --draw` takes them.
    pub fn draw(&self, epoch: u64) -> u64 {
        self.seed.wrapping_mul(1 << 16).wrapping_add(epoch)
    }
}
