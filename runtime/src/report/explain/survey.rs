//! What is counted while instances run, and for nothing but an explanation.

use cohort_abi::Handle;
use cohort_abi::manifest::{Manifest, Source};

use crate::program::log::Entries;
use crate::program::slot::Slot;
use crate::schedule::graph::CallGraph;
use crate::schedule::{Ready, Recorded};

use super::ways::Ways;

/// How instances waited at one place.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Waits {
    /// Flushes that some instance waited for here.
    pub flushes: u64,
    /// Instances, over these flushes.
    pub instances: u64,
    /// Launches of these flushes; where instances waited at several places, the share of this one.
    pub launches: f64,
}

/// What is seen of the flushes of a run.
#[derive(Debug, Default)]
pub struct Survey {
    graph: CallGraph,
    ways: Ways,
    /// Of each kernel: the fewest launches, summed over flushes.
    fewest: Vec<u64>,
    /// Whether a flush was too large.
    is_incomplete: bool,
    /// Of each kernel and operand: rows that were a parameter or a part of one.
    parameter_rows: Vec<Vec<u64>>,
    /// By source: whether it is a parameter, whole or a part by its leading index.
    is_parameter: Vec<bool>,
    /// Of each place of a decision.
    waits: Vec<Waits>,
    /// Instances that wait at each place for the flush at hand.
    waiting: Vec<u64>,
    launches: u64,
}

impl Survey {
    /// A survey that has seen nothing yet, for runs of a program.
    pub fn new(manifest: &Manifest) -> Survey {
        let operands = manifest.kernels.iter().map(|kernel| kernel.operands.len());
        Survey {
            ways: Ways::new(manifest.kernels.len()),
            fewest: vec![0; manifest.kernels.len()],
            parameter_rows: operands.map(|count| vec![0; count]).collect(),
            is_parameter: manifest
                .sources
                .iter()
                .map(|source| matches!(source, Source::Whole { .. } | Source::Table { .. }))
                .collect(),
            waits: vec![Waits::default(); manifest.forces.len()],
            waiting: vec![0; manifest.forces.len()],
            ..Survey::default()
        }
    }

    /// Forgets what it has seen.
    pub fn clear(&mut self) {
        self.ways = Ways::new(self.fewest.len());
        self.fewest.fill(0);
        self.is_incomplete = false;
        self.parameter_rows.iter_mut().for_each(|rows| rows.fill(0));
        self.waits.fill(Waits::default());
    }

    /// The fewest launches of a kernel that the dependencies of its calls allow.
    pub fn allowed(&self, kernel: usize) -> Option<u64> {
        self.ways.fewest(kernel)
    }

    /// Instances from now on share nothing with those before.
    pub(crate) fn begin_batch(&mut self) {
        self.ways.begin();
    }

    /// No row of these buckets can be read any more.
    pub(crate) fn forget(&mut self, buckets: &[u32]) {
        self.ways.forget(buckets);
    }

    /// The fewest launches of a kernel, given what was flushed together; `None` when a flush was too large
    /// to tell.
    pub fn fewest(&self, kernel: usize) -> Option<u64> {
        (!self.is_incomplete).then(|| self.fewest[kernel])
    }

    /// Of each operand of a kernel.
    pub fn parameter_rows(&self, kernel: usize) -> &[u64] {
        &self.parameter_rows[kernel]
    }

    /// Of each place of the manifest's forces.
    pub fn waits(&self) -> &[Waits] {
        &self.waits
    }

    /// What a flush is about to compute.
    pub(crate) fn flush(&mut self, recorded: Recorded<'_>, buckets: &[Ready]) {
        self.ways.flush(recorded, buckets);
        self.graph.build(recorded, buckets);
        match self.graph.fewest_launches() {
            Some(fewest) => {
                for (kernel, fewest) in fewest {
                    self.fewest[kernel as usize] += u64::from(fewest);
                }
            }
            None => self.is_incomplete = true,
        }
        let kernels: std::collections::HashMap<u64, u32> = buckets
            .iter()
            .map(|ready| (u64::from(ready.bucket), ready.kernel))
            .collect();
        let mut entries = Entries::of(recorded.log);
        while let Some(entry) = entries.next(|bucket| {
            let kernel = kernels.get(&(bucket as u64))?;
            Some(&recorded.forms[*kernel as usize])
        }) {
            let Some(form) = entry.kernel else {
                continue;
            };
            let kernel = kernels[&(entry.bucket as u64)];
            let of_kernel = &mut self.parameter_rows[kernel as usize];
            let rows = form.rows(entry.slots);
            for ((operand, slot), of_operand) in entry.slots.iter().zip(&form.slots).zip(of_kernel)
            {
                let source = Handle(*operand).bucket() as usize;
                let is_parameter = self.is_parameter.get(source).copied().unwrap_or(false);
                if *slot == Slot::Row && is_parameter {
                    *of_operand += rows;
                }
            }
        }
    }

    /// The flush computes calls of the kernel to be kept, in a launch of their own.
    pub(crate) fn keeps(&mut self, kernel: u32) {
        self.fewest[kernel as usize] += 1;
        self.ways.add_alone(kernel as usize);
    }

    /// The flush took `launches` launches.
    pub(crate) fn launched(&mut self, launches: usize) {
        self.launches = launches as u64;
    }

    /// An instance waited for the last flush, at that place.
    pub(crate) fn wait(&mut self, force: u32) {
        if let Some(waiting) = self.waiting.get_mut(force as usize) {
            *waiting += 1;
        }
    }

    /// All that waited for the last flush are counted.
    pub(crate) fn end_round(&mut self) {
        let all: u64 = self.waiting.iter().sum();
        for (waits, waiting) in self.waits.iter_mut().zip(&mut self.waiting) {
            let waiting = std::mem::take(waiting);
            if waiting > 0 {
                waits.flushes += 1;
                waits.instances += waiting;
                waits.launches += self.launches as f64 * waiting as f64 / all as f64;
            }
        }
    }
}
