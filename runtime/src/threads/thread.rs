//! A thread that owns a session.
//!
//! LLVM takes its static objects down when the process ends, and a session that is dropped at that moment by
//! another thread still uses them: its program is taken down by compiled code. So the end of the process waits
//! for threads whose owner has let them go.

use std::sync::{Mutex, Once};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::locks::locked;

/// How long the process waits at its end for a thread that is in the middle of a launch; what that thread does
/// then does not need LLVM.
const PATIENCE: Duration = Duration::from_secs(5);

/// Threads that were let go, and the process that has them: one that it forks has none of them.
static LET_GO: Mutex<Vec<(u32, JoinHandle<()>)>> = Mutex::new(Vec::new());

/// Lets its thread go when it is dropped; whoever drops it tells the thread to end.
pub struct SessionThread(Option<JoinHandle<()>>);

impl SessionThread {
    /// Starts a thread that does the work.
    pub fn start(name: &str, work: impl FnOnce() + Send + 'static) -> Result<SessionThread, Error> {
        let thread = std::thread::Builder::new().name(name.to_owned());
        let started = thread.spawn(work);
        let handle =
            started.map_err(|error| Error::Usage(format!("cannot start a thread: {error}")))?;
        Ok(SessionThread(Some(handle)))
    }
}

impl Drop for SessionThread {
    fn drop(&mut self) {
        static AT_EXIT: Once = Once::new();
        // By now LLVM has what it needs, and what is registered later is called earlier.
        AT_EXIT.call_once(|| {
            // SAFETY: the function may be called at any time, by any thread. Without room for it, nothing waits.
            unsafe { libc::atexit(wait) };
        });
        if let Some(handle) = self.0.take() {
            let mut let_go = locked(&LET_GO);
            let_go.retain(|(_, handle)| !handle.is_finished());
            let_go.push((std::process::id(), handle));
        }
    }
}

/// Waits for the threads that were let go. Thread-local variables are gone where this is called, so it sleeps
/// rather than to wait for a word of them.
extern "C" fn wait() {
    let end = Instant::now() + PATIENCE;
    let this = std::process::id();
    // It is locked for ever where the process forked in that moment.
    let Ok(mut let_go) = LET_GO.try_lock() else {
        return;
    };
    for (process, handle) in let_go.drain(..) {
        while process == this && !handle.is_finished() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
