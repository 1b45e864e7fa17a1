//! Flushes that cannot be done, or not in time: which instances have failed then, and which run again.

use std::time::{Duration, Instant};

use super::Engine;
use super::blame::Blame;
use crate::error::Error;
use crate::execute::Generation;
use crate::instance::{Instance, Machine, Status};

/// How much later than in time an answer may come, rather than have others begin again.
const PATIENCE: Duration = Duration::from_millis(50);

impl Engine {
    /// When a flush has taken so long that some instance gets no answer in time. Those that are over wait for none.
    pub(super) fn late(&self, machine: &Machine<'_>) -> Option<Instant> {
        machine.recorder.limits().max_time?;
        let waiting = self.alive.iter().filter(|instance| !instance.is_over());
        let first = waiting
            .clone()
            .filter_map(|instance| instance.end())
            .min()?;
        match waiting.count() {
            1 => Some(first),
            // The others would have to begin again.
            _ => first.checked_add(PATIENCE),
        }
    }

    /// A flush cannot be done, and took that long: those that are late have failed, and the others run
    /// again, each alone, or, where it was time that they had too little of, apart by their work.
    pub(super) fn give_up(
        &mut self,
        machine: &mut Machine<'_>,
        mut generation: Generation,
        error: &Error,
        took: Duration,
    ) {
        let is_alone = self.alive.len() == 1;
        if let (Error::Late, false) = (error, is_alone) {
            self.give_up_late(machine, took);
        } else {
            for instance in &mut self.alive {
                instance.give_up(machine, error, is_alone);
            }
        }
        machine.recorder.give_up_calls();
        machine.executor.release(&mut generation);
        machine.recorder.recycle(&mut generation.buckets);
        self.spare.push(generation);
    }

    /// Of several instances some have no time left: each is charged its part of what the flush took.
    fn give_up_late(&mut self, machine: &Machine<'_>, took: Duration) {
        let works = machine.executor.works(machine.recorder);
        let work = |instance: &Instance| match instance.is_over() {
            true => 0,
            false => works.get(instance.segment()).copied().unwrap_or(0),
        };
        let blame = Blame::of(self.alive.iter().map(|instance| work(instance)).collect());
        let most = machine.recorder.limits().max_time;
        let mut again = Vec::new();
        for place in blame.lightest_first() {
            let instance = &mut self.alive[place];
            if !instance.give_up_late(machine, took, blame.charge(place, took), most) {
                again.push(place);
            }
        }
        let mut places = again.iter();
        for length in blame.batches(&again) {
            for place in places.by_ref().take(length) {
                if let Status::Crowded(again) = &mut self.alive[*place].status {
                    again.crowd = Some(self.next_crowd);
                }
            }
            self.next_crowd += 1;
        }
    }
}
