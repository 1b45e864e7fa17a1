//! SIGINT and SIGTERM: the first one asks training to end behind the step that goes on, the second one ends
//! the process.

use std::thread;

use cohort_train::Interrupt;
use signal_hook::consts::{SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;

use crate::exit::{Stop, say};

pub fn watch() -> Result<Interrupt, Stop> {
    let cannot = |error| Stop::usage(format!("cannot wait for signals: {error}"));
    // A file that may not grow is an error of who writes it, and no end of the process.
    signal_hook::flag::register(SIGXFSZ, Default::default()).map_err(cannot)?;
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(cannot)?;
    let interrupt = Interrupt::default();
    let seen = interrupt.clone();
    let wait = move || {
        for signal in signals.forever() {
            if seen.signal().is_some() {
                say("error: interrupted twice; what was done since the last checkpoint is lost");
                // SAFETY: it ends the process, and runs nothing of it.
                unsafe { libc::_exit(128 + signal) }
            }
            seen.set(signal);
        }
    };
    let thread = thread::Builder::new().spawn(wait);
    thread.map_err(|error| Stop::usage(format!("cannot start a thread: {error}")))?;
    Ok(interrupt)
}
