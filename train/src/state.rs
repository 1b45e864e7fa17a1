//! All that training knows between two steps: what a checkpoint holds.

use serde::{Deserialize, Serialize};

use crate::groups::Group;
use crate::optimiser::Memory;
use crate::parameters::Parameters;
use crate::scores::{Bits, Totals};

/// What training goes on from.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    /// As they are now.
    pub parameters: Parameters,
    /// What the optimisers remember of them.
    pub memory: Memory,
    /// Those of the best epoch on the development data.
    pub best: Option<Parameters>,
    /// How far it is.
    pub progress: Progress,
}

/// How far a training is, and what came of it so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Epochs that are done.
    pub epoch: u64,
    /// Instances of the epoch that goes on that are done.
    pub position: u64,
    /// Mini-batches that are done, of all epochs.
    pub step: u64,
    /// Of the epoch that goes on.
    pub totals: Totals,
    /// Steps of the epoch whose gradient was not finite, and which changed nothing.
    pub skipped: u64,
    /// Which parameters had a gradient at some time.
    pub flowed: Vec<bool>,
    /// The best epoch so far, where there is development data.
    pub best: Option<BestEpoch>,
    /// What came of each epoch that is done.
    pub history: Vec<EpochRecord>,
    /// Lines of the log that were written.
    pub log_lines: u64,
    /// Nothing is left to do, though not all epochs are done.
    pub stopped: bool,
}

/// The epoch that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BestEpoch {
    /// Its number, counted from 1.
    pub epoch: u64,
    /// What it scored on the development data.
    pub score: Bits,
}

/// What came of an epoch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EpochRecord {
    /// Its number, counted from 1.
    pub epoch: u64,
    /// Mini-batches that were done at its end, of all epochs.
    pub step: u64,
    /// Over the training data, as parameters changed.
    pub train: Means,
    /// Over the development data, at its end.
    pub dev: Option<Means>,
    /// Steps whose gradient was not finite.
    pub skipped: u64,
    /// Whether it is the best so far.
    pub is_best: bool,
}

/// The means over a data set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Means {
    /// All that ran, failed ones included.
    pub instances: u64,
    /// Those that failed.
    pub failed: u64,
    /// The mean loss.
    pub loss: Bits,
    /// The mean of each metric, in the order of the program.
    pub metrics: Vec<Bits>,
}

impl From<&Totals> for Means {
    fn from(totals: &Totals) -> Means {
        Means {
            instances: totals.instances,
            failed: totals.failed,
            loss: Bits(totals.loss()),
            metrics: totals.metrics().into_iter().map(Bits).collect(),
        }
    }
}

impl State {
    /// Before the first step.
    pub fn new(parameters: Parameters, groups: &[Group]) -> State {
        State {
            memory: Memory::new(&parameters, groups),
            best: None,
            progress: Progress {
                flowed: vec![false; parameters.list.len()],
                ..Progress::default()
            },
            parameters,
        }
    }

    /// What training gives: the best epoch's parameters where there is one, or else the last ones.
    pub fn result(&self) -> &Parameters {
        self.best.as_ref().unwrap_or(&self.parameters)
    }
}
