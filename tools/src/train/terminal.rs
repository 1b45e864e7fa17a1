//! What training shows and keeps: progress, a line an epoch, warnings, the log and checkpoints.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Instant;

use cohort_train::checkpoint::{self, Identity};
use cohort_train::log::Log;
use cohort_train::state::{EpochRecord, Means};
use cohort_train::{Error, Settings, State, Watcher};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value as Json, json};

use super::args::Arguments;
use crate::exit::{harmless, say};

/// So many failures are named; the others are counted.
const MOST_FAILURES: u64 = 20;

pub struct Terminal<'a> {
    settings: &'a Settings,
    identity: &'a Identity,
    checkpoint: Option<PathBuf>,
    log: Option<Log>,
    bar: ProgressBar,
    is_quiet: bool,
    begin: Instant,
    failures: u64,
}

impl<'a> Terminal<'a> {
    pub fn new(
        arguments: &Arguments,
        settings: &'a Settings,
        identity: &'a Identity,
        state: &State,
    ) -> Result<Terminal<'a>, Error> {
        let log = arguments.log.as_deref();
        let log = log.map(|path| Log::open(path, state.progress.log_lines));
        Ok(Terminal {
            settings,
            identity,
            checkpoint: arguments.checkpoint_file().map(PathBuf::from),
            log: log.transpose()?,
            bar: bar(arguments.quiet),
            is_quiet: arguments.quiet,
            begin: Instant::now(),
            failures: 0,
        })
    }

    fn say(&self, line: &str) {
        self.bar.suspend(|| say(line));
    }

    pub fn say_failure(&mut self, sentence: &str) {
        self.failures += 1;
        match self.failures {
            count if count <= MOST_FAILURES => self.say(sentence),
            count if count == MOST_FAILURES + 1 => self.say("more failed; they are counted"),
            _ => {}
        }
    }

    /// Training is over: how many instances failed in it.
    pub fn finish(&self, state: &State) -> u64 {
        self.bar.finish_and_clear();
        let progress = &state.progress;
        let epochs = progress
            .history
            .iter()
            .map(|record| record.train.failed + record.dev.as_ref().map_or(0, |dev| dev.failed));
        let failed = epochs.sum::<u64>() + progress.totals.failed;
        if failed > 0 && !self.is_quiet {
            say(&format!(
                "{failed} times an instance failed and was left out"
            ));
        }
        if let Some(best) = progress.best.filter(|_| !self.is_quiet) {
            let (name, epoch) = (&self.settings.best.name, best.epoch);
            say(&format!(
                "the best epoch on the development data is {epoch}, {name} {:.4}",
                best.score.0
            ));
        }
        failed
    }
}

fn bar(is_quiet: bool) -> ProgressBar {
    if is_quiet || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(0);
    bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(10));
    if let Ok(style) =
        ProgressStyle::with_template("{prefix} {wide_bar} {pos}/{len} {msg} (eta {eta})")
    {
        bar.set_style(style);
    }
    bar
}

impl Watcher for Terminal<'_> {
    fn progress(&mut self, state: &State, instances: u64, loss: f64) {
        if self.bar.is_hidden() {
            return;
        }
        if self.bar.position() > state.progress.position {
            self.bar.reset();
        }
        self.bar.set_length(instances);
        self.bar
            .set_prefix(format!("epoch {}", state.progress.epoch + 1));
        self.bar.set_position(state.progress.position);
        self.bar.set_message(format!("loss {loss:.4}"));
    }

    fn warn(&mut self, sentence: &str) {
        self.say(&format!("warning: {}", harmless(sentence)));
    }

    fn failed(&mut self, id: &str, kind: &str, message: &str) {
        self.say_failure(&format!("instance {id} is left out: {kind}: {message}"));
    }

    fn log(&mut self, mut line: Json) -> Result<(), Error> {
        line["seconds"] = json!((self.begin.elapsed().as_secs_f64() * 1e3).round() / 1e3);
        match &mut self.log {
            Some(log) => log.append(&line),
            None => Ok(()),
        }
    }

    fn epoch(&mut self, _: &State, record: &EpochRecord) -> Result<(), Error> {
        if self.is_quiet {
            return Ok(());
        }
        let means = |means: &Means| {
            let metrics = means.metrics.iter().enumerate();
            let metrics = metrics.map(|(place, metric)| {
                format!(", {} {:.4}", self.settings.metric(place), metric.0)
            });
            format!("loss {:.4}{}", means.loss.0, metrics.collect::<String>())
        };
        let mut line = format!("epoch {}: {}", record.epoch, means(&record.train));
        if let Some(dev) = &record.dev {
            line += &format!("; dev {}", means(dev));
        }
        if record.is_best {
            line += " (best)";
        }
        self.say(&line);
        Ok(())
    }

    fn save(&mut self, state: &State) -> Result<(), Error> {
        match &self.checkpoint {
            Some(path) => checkpoint::save(path, state, &self.settings.groups, self.identity),
            None => Ok(()),
        }
    }
}
