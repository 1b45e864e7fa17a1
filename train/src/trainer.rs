//! The loop: epochs of mini-batches, each one a step of the optimiser.

use serde_json::{Value as Json, json};

use crate::error::Error;
use crate::gradients::Gradients;
use crate::instances::Instance;
use crate::log;
use crate::optimiser;
use crate::order;
use crate::schedule::Schedule;
use crate::scores::{Bits, Outcome, Totals};
use crate::settings::{Reduction, Settings};
use crate::state::{BestEpoch, EpochRecord, Means, State};
use crate::step::{Evaluate, Interrupt, Step, StepError};

/// An observer: shows the progress of training, and keeps its messages.
pub trait Watcher {
    /// `instances` instances of the epoch are done; `loss` is their mean.
    fn progress(&mut self, state: &State, instances: u64, loss: f64);

    /// Something is worth a sentence.
    fn warn(&mut self, sentence: &str);

    /// An instance failed, in the training data or the development data.
    fn failed(&mut self, id: &str, kind: &str, message: &str);

    /// A line for the log.
    fn log(&mut self, line: Json) -> Result<(), Error>;

    /// An epoch is done.
    fn epoch(&mut self, state: &State, record: &EpochRecord) -> Result<(), Error>;

    /// The state is to be kept.
    fn save(&mut self, state: &State) -> Result<(), Error>;
}

/// How training ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// All epochs are done.
    Done,
    /// No epoch was better for as long as was to be waited.
    StoppedEarly,
    /// By a signal of this number; the state is kept.
    Interrupted(i32),
}

/// The development data, and its evaluation.
pub struct Dev<'a> {
    /// The development data.
    pub instances: &'a [Instance],
    /// Computes their losses.
    pub evaluate: &'a mut dyn Evaluate,
}

/// A training, with all that it takes.
pub struct Trainer<'a> {
    /// What is to be done.
    pub settings: &'a Settings,
    /// The training data.
    pub instances: &'a [Instance],
    /// Computes gradients.
    pub step: &'a mut dyn Step,
    /// The development data, if there is any.
    pub dev: Option<Dev<'a>>,
    /// Whether it should end.
    pub interrupt: Interrupt,
    /// Is told of the progress.
    pub watcher: &'a mut dyn Watcher,
}

/// Why the loop is left.
enum Leave {
    Failed(Error),
    Interrupted,
}

impl From<Error> for Leave {
    fn from(error: Error) -> Leave {
        Leave::Failed(error)
    }
}

impl From<StepError> for Leave {
    fn from(error: StepError) -> Leave {
        match error {
            StepError::Interrupted => Leave::Interrupted,
            StepError::Failed(reason) => Leave::Failed(Error::Engine(reason)),
        }
    }
}

impl Trainer<'_> {
    /// Goes on from a state until all is done; the state is then that of the end.
    pub fn run(&mut self, state: &mut State) -> Result<Ending, Error> {
        match self.epochs(state) {
            Ok(ending) => Ok(ending),
            Err(Leave::Failed(error)) => Err(error),
            Err(Leave::Interrupted) => {
                self.watcher.save(state)?;
                Ok(Ending::Interrupted(self.interrupt.signal().unwrap_or(0)))
            }
        }
    }

    fn epochs(&mut self, state: &mut State) -> Result<Ending, Leave> {
        let all = state.parameters.all_changed();
        self.step.set_parameters(&state.parameters, &all)?;
        let mut gradients = Gradients::none(&state.parameters);
        while state.progress.epoch < self.settings.epochs && !state.progress.stopped {
            let epoch = state.progress.epoch + 1;
            let order = order::of_epoch(self.settings.seed, epoch, self.instances.len());
            while (state.progress.position as usize) < order.len() {
                if self.interrupt.signal().is_some() {
                    return Err(Leave::Interrupted);
                }
                let rest = &order[state.progress.position as usize..];
                let batch = &rest[..rest.len().min(self.settings.batch)];
                let batch: Vec<&Instance> = batch.iter().map(|&k| &self.instances[k]).collect();
                self.mini_batch(state, epoch, &batch, &mut gradients)?;
            }
            self.end_epoch(state, epoch)?;
        }
        Ok(match state.progress.stopped {
            true => Ending::StoppedEarly,
            false => Ending::Done,
        })
    }

    /// One step. The state changes only where nothing ends it; `gradients` are for the memory that they have.
    fn mini_batch(
        &mut self,
        state: &mut State,
        epoch: u64,
        batch: &[&Instance],
        gradients: &mut Gradients,
    ) -> Result<(), Leave> {
        let settings = self.settings;
        let outcomes = self.step.step(batch, settings.draw(epoch), gradients)?;
        let mut totals = Totals::default();
        for (instance, outcome) in batch.iter().zip(&outcomes) {
            totals.add(outcome);
            state.progress.totals.add(outcome);
            self.report(instance, outcome)?;
        }
        state.progress.position += batch.len() as u64;
        state.progress.step += 1;
        let step = state.progress.step;
        for (flowed, gradient) in state.progress.flowed.iter_mut().zip(&gradients.of) {
            *flowed |= !gradient.is_zero();
        }
        let counted = totals.instances - totals.failed;
        let mut norm = 0.0;
        if counted > 0 {
            if settings.reduction == Reduction::Mean {
                gradients.divide(counted as f32);
            }
            forget_frozen(settings, gradients);
            norm = gradients.norm();
            if norm.is_finite() {
                if let Some(most) = settings.clip {
                    gradients.clip(norm, most);
                }
                let factor = self.schedule().factor(step);
                let changed = optimiser::update(
                    &settings.groups,
                    factor,
                    step,
                    gradients,
                    &mut state.parameters,
                    &mut state.memory,
                );
                self.step.set_parameters(&state.parameters, &changed)?;
            } else {
                state.progress.skipped += 1;
                if state.progress.skipped == 1 {
                    self.watcher.warn(&format!(
                        "step {step}: the gradient is not finite though the losses are; the parameters stay \
                         as they are"
                    ));
                }
            }
        }
        if settings
            .log_steps
            .is_some_and(|every| step.is_multiple_of(every))
        {
            let line = json!({
                "step": step,
                "epoch": epoch,
                "loss": log::number(totals.loss()),
                "norm": log::number(norm),
                "factor": self.schedule().factor(step),
            });
            self.log(state, line)?;
        }
        self.watcher.progress(
            state,
            self.instances.len() as u64,
            state.progress.totals.loss(),
        );
        if settings
            .checkpoint_steps
            .is_some_and(|every| step.is_multiple_of(every))
        {
            self.watcher.save(state)?;
        }
        Ok(())
    }

    fn end_epoch(&mut self, state: &mut State, epoch: u64) -> Result<(), Leave> {
        let totals = &state.progress.totals;
        if totals.instances == totals.failed {
            return Err(Error::Diverged(format!(
                "epoch {epoch}: no instance has a loss, {} of {} failed",
                totals.failed, totals.instances
            ))
            .into());
        }
        let train = Means::from(totals);
        let dev = self.evaluate(state, epoch)?;
        let is_best = match &dev {
            Some(dev) => self.judge(state, epoch, dev)?,
            None => false,
        };
        let progress = &mut state.progress;
        let record = EpochRecord {
            epoch,
            step: progress.step,
            train,
            dev,
            skipped: progress.skipped,
            is_best,
        };
        progress.history.push(record.clone());
        progress.epoch = epoch;
        progress.position = 0;
        progress.totals = Totals::default();
        progress.skipped = 0;
        let since = |best: &BestEpoch| epoch.saturating_sub(best.epoch);
        let patience = self.settings.patience;
        progress.stopped = match (patience, &progress.best) {
            (Some(patience), Some(best)) => since(best) >= patience,
            _ => false,
        };
        if epoch == 1 {
            self.warn_of_idle(state);
        }
        let line = log::of_epoch(&record, self.settings);
        self.log(state, line)?;
        self.watcher.epoch(state, &record)?;
        self.watcher.save(state)?;
        Ok(())
    }

    fn evaluate(&mut self, state: &State, epoch: u64) -> Result<Option<Means>, Leave> {
        let Some(dev) = &mut self.dev else {
            return Ok(None);
        };
        dev.evaluate.set_parameters(&state.parameters)?;
        let instances: Vec<&Instance> = dev.instances.iter().collect();
        let outcomes = dev
            .evaluate
            .evaluate(&instances, self.settings.draw(epoch))?;
        let mut totals = Totals::default();
        for (instance, outcome) in instances.iter().zip(&outcomes) {
            totals.add(outcome);
            self.report(instance, outcome)?;
        }
        Ok(Some(Means::from(&totals)))
    }

    /// Whether the epoch is the best one so far; it is kept then.
    fn judge(&mut self, state: &mut State, epoch: u64, dev: &Means) -> Result<bool, Error> {
        let criterion = &self.settings.best;
        let score = match self.settings.best_metric(dev.metrics.len()) {
            // Where no instance has a score there is none to compare.
            _ if dev.failed == dev.instances => Bits(f64::NAN),
            place => place?.map_or(dev.loss, |place| dev.metrics[place]),
        };
        let before = state.progress.best.map(|best| best.score.0);
        let is_best = criterion.is_better(score.0, before);
        if is_best {
            state.progress.best = Some(BestEpoch { epoch, score });
            state.best = Some(state.parameters.clone());
        }
        Ok(is_best)
    }

    fn report(&mut self, instance: &Instance, outcome: &Outcome) -> Result<(), Error> {
        let Outcome::Failed { kind, message } = outcome else {
            return Ok(());
        };
        self.watcher.failed(&instance.id, kind, message);
        match self.settings.stop_on_failure {
            true => Err(Error::Diverged(format!(
                "the instance {} failed",
                instance.id
            ))),
            false => Ok(()),
        }
    }

    fn log(&mut self, state: &mut State, line: Json) -> Result<(), Error> {
        self.watcher.log(line)?;
        state.progress.log_lines += 1;
        Ok(())
    }

    /// Says, once, to which parameters nothing flowed in a whole epoch.
    fn warn_of_idle(&mut self, state: &State) {
        let each = state
            .parameters
            .list
            .iter()
            .zip(&self.settings.groups)
            .zip(&state.progress.flowed);
        for ((parameter, group), flowed) in each {
            if !group.frozen && !flowed {
                self.watcher.warn(&format!(
                    "the gradient of the parameter `{}` was zero in all of the first epoch: perhaps no loss \
                     depends on it",
                    parameter.name
                ));
            }
        }
    }

    fn schedule(&self) -> Schedule {
        let instances = self.instances.len();
        Schedule {
            course: self.settings.course,
            warmup: self.settings.warmup,
            steps_an_epoch: instances.div_ceil(self.settings.batch.max(1)) as u64,
            epochs: self.settings.epochs,
        }
    }
}

/// What is not trained has no part in the gradient's length.
fn forget_frozen(settings: &Settings, gradients: &mut Gradients) {
    for (group, gradient) in settings.groups.iter().zip(&mut gradients.of) {
        if group.frozen {
            *gradient = Default::default();
        }
    }
}
