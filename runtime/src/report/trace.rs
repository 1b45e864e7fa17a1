//! What one instance of a run computed, call by call.
//!
//! A trace is taken to compare two runs of the same instance: all bits that its calls made, and all
//! decisions that were read from them, in the order in which the control program recorded them.

use cohort_abi::Handle;
use cohort_abi::manifest::Manifest;

use crate::execute::Executor;
use crate::recorder::Recorder;

/// The calls and decisions of one instance, in the order of recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// What happened, one thing after another.
    pub events: Vec<Event>,
}

/// A call, or a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A call of the kernel of this number, with the bytes of the rows of each result.
    Call {
        /// The kernel's number in the manifest.
        kernel: u32,
        /// Of each result the bytes of its rows; empty before they are computed.
        rows: Vec<Box<[u8]>>,
    },
    /// The bits that the place of this number, an index into the manifest's forces, decided by.
    Decision {
        /// Which place decided.
        force: u32,
        /// Of the element that was read.
        bits: u32,
    },
}

/// Takes a trace while instances are recorded. What was recorded before a flush is known after it.
#[derive(Debug)]
pub struct Tracer {
    /// The instance's number in the run, from 0.
    instance: u64,
    is_recording: bool,
    /// Calls whose rows are not computed yet: the event, the handle of the first result, and the
    /// number of rows.
    pending: Vec<(usize, Handle, u32)>,
    trace: Trace,
}

impl Tracer {
    /// Takes the trace of that instance of the run, counted from 0.
    pub fn new(instance: u64) -> Tracer {
        Tracer {
            instance,
            is_recording: false,
            pending: Vec::new(),
            trace: Trace::default(),
        }
    }

    /// What is recorded from here on belongs to the instance of this number.
    pub fn enter(&mut self, instance: u64) {
        self.is_recording = instance == self.instance;
    }

    /// The instance starts, perhaps for a second time.
    pub fn begin(&mut self, instance: u64) {
        self.enter(instance);
        if self.is_recording {
            self.trace.events.clear();
            self.pending.clear();
        }
    }

    /// The instance at hand called a kernel: the handle of its first result, and the rows that it makes.
    #[cold]
    pub fn call(&mut self, kernel: u32, handle: u64, rows: u32) {
        if self.is_recording {
            let event = self.trace.events.len();
            self.pending.push((event, Handle(handle), rows));
            self.trace.events.push(Event::Call {
                kernel,
                rows: Vec::new(),
            });
        }
    }

    /// The instance at hand was given a decision.
    #[cold]
    pub fn decision(&mut self, force: u32, bits: u32) {
        if self.is_recording {
            self.trace.events.push(Event::Decision { force, bits });
        }
    }

    /// Takes the rows of the calls of the last flush; `find(kernel, handle, rows, result)` finds
    /// them, `None` when the kernel has no such result.
    pub fn flushed(&mut self, find: impl Fn(u32, Handle, u32, u8) -> Option<Box<[u8]>>) {
        for (event, handle, count) in self.pending.drain(..) {
            if let Event::Call { kernel, rows } = &mut self.trace.events[event] {
                let results = 0..=u8::MAX;
                rows.extend(results.map_while(|result| find(*kernel, handle, count, result)));
            }
        }
    }

    /// The trace, once the run is over.
    pub fn finish(self) -> Trace {
        self.trace
    }
}

/// Gives the recorder's tracer, if there is one, the rows of the last flush.
pub fn trace_flush(manifest: &Manifest, recorder: &mut Recorder, executor: &Executor) {
    if let Some(tracer) = recorder.tracer() {
        tracer.flushed(|kernel, handle, rows, result| {
            let results = &manifest.kernels.get(kernel as usize)?.results;
            let pool = *results.get(usize::from(result))?;
            executor
                .rows(handle.result_handle(result), pool, u64::from(rows))
                .map(Box::from)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_instance_is_traced_and_a_second_start_forgets_the_first() {
        let mut tracer = Tracer::new(3);
        tracer.begin(2);
        tracer.call(0, 7, 1);
        tracer.begin(3);
        tracer.call(1, 8, 1);
        tracer.begin(3);
        tracer.call(1, 9, 2);
        tracer.enter(4);
        tracer.decision(0, 1);
        tracer.flushed(|kernel, handle, rows, result| {
            (result < 2).then(|| vec![kernel as u8, handle.0 as u8, rows as u8, result].into())
        });
        let rows = vec![Box::from([1, 9, 2, 0]), Box::from([1, 9, 2, 1])];
        assert_eq!(tracer.finish().events, [Event::Call { kernel: 1, rows }]);
    }
}
