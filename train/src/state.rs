//! All that training knows between two steps: what a checkpoint holds.

use serde::{Deserialize, Serialize};

use crate::groups::Group;
use crate::optimiser::Memory;
use crate::parameters::Parameters;
use crate::scores::{Bits, Totals};

#[derive(Clone, Debug, PartialEq)]
pub struct State {
    pub parameters: Parameters,
    pub memory: Memory,
    /// Those of the best epoch on the development data.
    pub best: Option<Parameters>,
    pub progress: Progress,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Epochs that are done.
    pub epoch: u64,
    /// Instances of the epoch that goes on that are done.
    pub position: u64,
    /// Mini-batches that are done, of all epochs.
    pub step: u64,
    pub totals: Totals,
    /// Steps of the epoch whose gradient was not finite, and which changed nothing.
    pub skipped: u64,
    /// Which parameters had a gradient at some time.
    pub flowed: Vec<bool>,
    pub best: Option<BestEpoch>,
    pub history: Vec<EpochRecord>,
    pub log_lines: u64,
    /// Nothing is left to do, though not all epochs are done.
    pub stopped: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BestEpoch {
    pub epoch: u64,
    pub score: Bits,
}

/// What came of an epoch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EpochRecord {
    pub epoch: u64,
    pub step: u64,
    pub train: Means,
    pub dev: Option<Means>,
    pub skipped: u64,
    pub is_best: bool,
}

/// The means over a data set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Means {
    pub instances: u64,
    pub failed: u64,
    pub loss: Bits,
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
