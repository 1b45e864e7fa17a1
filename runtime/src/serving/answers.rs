//! The sink of the session: each instance's answer goes where it belongs.

use std::sync::{Arc, Mutex};

use cohort_abi::manifest::Manifest;

use super::Failure;
use super::queue::Shared;
use crate::error::Error;
use crate::execute::{Executor, Wanted};
use crate::failure::InstanceError;
use crate::io::output::columns::{Collector, Columns};
use crate::io::sink::Sink;
use crate::limits::Limits;
use crate::locks::locked;

pub(super) struct Answers {
    shared: Arc<Shared>,
    /// Of one instance at a time.
    collector: Collector,
    collected: Arc<Mutex<Columns>>,
}

impl Answers {
    pub fn new(shared: Arc<Shared>, manifest: &Arc<Manifest>, limits: &Limits) -> Answers {
        let collected = Arc::<Mutex<Columns>>::default();
        let taken = collected.clone();
        let take = move |columns| {
            *locked(&taken) = columns;
            Ok(())
        };
        Answers {
            shared,
            collector: Collector::new(manifest.clone(), limits.max_memory, take),
            collected,
        }
    }
}

impl Sink for Answers {
    unsafe fn put(
        &mut self,
        number: u64,
        id: &str,
        result: Result<*const u64, &InstanceError>,
        executor: &Executor,
    ) -> Result<bool, Error> {
        // SAFETY: the caller's promise.
        let is_written = unsafe { self.collector.put(number, id, result, executor)? };
        let all = executor.launches().iter();
        let (launches, rows) = all.fold((0, 0), |(launches, rows), kernel| {
            (launches + kernel.launches, rows + kernel.rows)
        });
        self.shared.launched(launches, rows);
        self.collector.flush()?;
        let mut columns = std::mem::take(&mut *locked(&self.collected));
        let error = columns
            .instances
            .first_mut()
            .and_then(|done| done.error.take());
        if let Some((then, in_time)) = self.shared.finish(number, error.is_none()) {
            then(match (in_time, error) {
                (Err(late), _) => Err(Failure::Instance(late)),
                (Ok(()), Some(error)) => Err(Failure::Instance(error)),
                (Ok(()), None) => Ok(columns),
            });
        }
        Ok(is_written)
    }

    unsafe fn wanted(&mut self, slots: *const u64, executor: &Executor, wanted: &mut Vec<Wanted>) {
        // SAFETY: the caller's promise.
        unsafe { self.collector.wanted(slots, executor, wanted) }
    }

    fn is_full(&self) -> bool {
        false
    }

    fn flush(&mut self) -> Result<(), Error> {
        Ok(())
    }
}
