//! From the command line to what training is told, and by what it is known.

use clap::ValueEnum;
use cohort_train::checkpoint::Identity;
use cohort_train::groups::Group;
use cohort_train::optimiser::{Algorithm, Moments};
use cohort_train::schedule::Schedule;
use cohort_train::{Error, Parameters, Settings, groups};

use super::args::{Arguments, Optimiser, Reduction};
use super::begin::Program;
use super::data::Data;

impl Arguments {
    pub fn settings(&self, parameters: &Parameters) -> Result<Settings, Error> {
        Ok(Settings {
            groups: self.groups(parameters)?,
            reduction: match self.reduction {
                Reduction::Mean => cohort_train::settings::Reduction::Mean,
                Reduction::Sum => cohort_train::settings::Reduction::Sum,
            },
            clip: self.clip,
            course: self.schedule,
            warmup: self.warmup,
            batch: usize::try_from(self.batch).unwrap_or(usize::MAX),
            epochs: self.epochs,
            seed: self.seed,
            best: self.best.clone(),
            patience: self.patience,
            metrics: self.metrics.clone(),
            checkpoint_steps: self.checkpoint_steps,
            log_steps: self.log_steps,
            stop_on_failure: self.stop_on_failure,
        })
    }

    /// How each parameter is trained.
    fn groups(&self, parameters: &Parameters) -> Result<Vec<Group>, Error> {
        let usual = Group {
            algorithm: self.algorithm(self.optimiser),
            rate: self.own_rate(),
            decay: self.decay,
            frozen: false,
            sparse: false,
        };
        let by_name = |name: &str| {
            let optimiser = Optimiser::from_str(name, false).ok()?;
            Some(self.algorithm(optimiser))
        };
        groups::assign(&self.groups, &usual, &by_name, parameters)
    }

    fn own_rate(&self) -> f64 {
        self.rate.unwrap_or(match self.optimiser {
            Optimiser::Sgd | Optimiser::AdaGrad => 1e-2,
            Optimiser::Adam | Optimiser::AdamW => 1e-3,
        })
    }

    fn algorithm(&self, optimiser: Optimiser) -> Algorithm {
        let moments = Moments {
            beta1: self.beta1,
            beta2: self.beta2,
            epsilon: self.epsilon.unwrap_or(1e-8),
        };
        match optimiser {
            Optimiser::Sgd => Algorithm::Sgd {
                momentum: self.momentum,
                nesterov: self.nesterov,
            },
            Optimiser::AdaGrad => Algorithm::AdaGrad {
                epsilon: self.epsilon.unwrap_or(1e-10),
            },
            Optimiser::Adam => Algorithm::Adam(moments),
            Optimiser::AdamW => Algorithm::AdamW(moments),
        }
    }

    /// All that decides which bits come out, but for what the parameters begin with, which a checkpoint has.
    pub fn identity(
        &self,
        program: &Program,
        dev_program: Option<&Program>,
        data: &Data,
        dev: Option<&Data>,
    ) -> Identity {
        let mut identity = Identity::new();
        let mut say = |name: &str, value: String| {
            identity.insert(name.to_owned(), value);
        };
        say("the program", program.fingerprint.clone());
        say("the training data", data.fingerprint.clone());
        let by = if self.oracle {
            "the oracle"
        } else {
            "compiled code"
        };
        say("gradients are computed by", by.to_owned());
        let optimiser = self.optimiser.to_possible_value();
        say(
            "--optimiser",
            optimiser.map_or_else(String::new, |value| value.get_name().to_owned()),
        );
        say("--momentum", self.momentum.to_string());
        say("--nesterov", self.nesterov.to_string());
        say("--beta1", self.beta1.to_string());
        say("--beta2", self.beta2.to_string());
        say(
            "--epsilon",
            self.epsilon
                .map_or("the usual one".to_owned(), |x| x.to_string()),
        );
        say("--rate", self.own_rate().to_string());
        say("--decay", self.decay.to_string());
        say("--group", self.groups.join(" "));
        say(
            "--clip",
            self.clip.map_or("none".to_owned(), |clip| clip.to_string()),
        );
        say(
            "--reduction",
            format!("{:?}", self.reduction).to_lowercase(),
        );
        say("--schedule", self.schedule.to_string());
        say("--warmup", self.warmup.to_string());
        say("--batch", self.batch.to_string());
        say("--seed", self.seed.to_string());
        let schedule = Schedule {
            course: self.schedule,
            warmup: self.warmup,
            steps_an_epoch: 1,
            epochs: self.epochs,
        };
        if schedule.depends_on_epochs() {
            say("--epochs", self.epochs.to_string());
        }
        if let Some(dev) = dev {
            let dev_program = dev_program.unwrap_or(program);
            say("the development data", dev.fingerprint.clone());
            say("the program for it", dev_program.fingerprint.clone());
            say("--best", self.best.to_string());
        }
        identity
    }
}
