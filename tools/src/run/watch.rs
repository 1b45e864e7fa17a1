//! A run that is ended from outside: by a signal, or because its time is over.
//!
//! Whatever the run does then, computing, compiling or waiting for input, it ends at once: the records
//! that are finished are put in place, as whole lines, and the process is gone. No code of the run
//! itself has to look at a clock for that.

use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use cohort_runtime::locks::locked;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::exit::{FAILED, Stop, say};
use crate::output::Lines;

/// Ends the process when it must end.
#[derive(Clone, Default)]
pub struct Watch {
    output: Arc<Mutex<Vec<Lines>>>,
}

impl Watch {
    /// Begins to wait for signals, and for the end of the run's time.
    pub fn start(most: Option<Duration>) -> Result<Watch, Stop> {
        let watch = Watch::default();
        let cannot = |error| Stop::usage(format!("cannot wait for signals: {error}"));
        let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(cannot)?;
        let of_signals = watch.clone();
        let wait = move || {
            if let Some(signal) = signals.forever().next() {
                // As shells tell it.
                of_signals.end(128 + signal, "interrupted");
            }
        };
        spawn(wait)?;
        if let Some(most) = most {
            let of_time = watch.clone();
            spawn(move || {
                thread::sleep(most);
                let reason = format!("stopped after {most:?}, the limit of --max-run-seconds");
                of_time.end(i32::from(FAILED), &reason);
            })?;
        }
        Ok(watch)
    }

    /// From now on, what is written there is kept too.
    pub fn keep(&self, output: &Lines) {
        self.lock().push(output.clone());
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Lines>> {
        locked(&self.output)
    }

    fn end(&self, code: i32, reason: &str) -> ! {
        let output = self.lock();
        output.iter().for_each(Lines::keep);
        match output.is_empty() {
            false => say(&format!(
                "error: {reason}; the output has the records that are finished"
            )),
            true => say(&format!("error: {reason}")),
        }
        // The other threads go on meanwhile, so nothing is taken down in order.
        // SAFETY: it ends the process, and runs nothing of it.
        unsafe { libc::_exit(code) }
    }
}

fn spawn(work: impl FnOnce() + Send + 'static) -> Result<(), Stop> {
    let thread = thread::Builder::new().spawn(work);
    thread
        .map(drop)
        .map_err(|error| Stop::usage(format!("cannot start a thread: {error}")))
}
