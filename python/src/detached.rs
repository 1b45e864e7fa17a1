//! Waiting without the interpreter, also when it ends meanwhile.
//!
//! CPython ends threads that want to go on after it began to shut down, in the middle of whatever called
//! it, which Rust does not survive. So a thread that waits here then waits for ever: the process ends
//! without it.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use pyo3::prelude::*;

/// The thread that ends the interpreter, once it does.
static ENDING: OnceLock<ThreadId> = OnceLock::new();
/// Threads that are about to go on.
static RETURNING: AtomicUsize = AtomicUsize::new(0);

/// Does the work while other threads have the interpreter.
pub fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> T {
    let done = py.detach(|| {
        let done = work();
        RETURNING.fetch_add(1, Ordering::SeqCst);
        if let Some(ending) = ENDING.get()
            && *ending != std::thread::current().id()
        {
            RETURNING.fetch_sub(1, Ordering::SeqCst);
            loop {
                std::thread::park();
            }
        }
        done
    });
    RETURNING.fetch_sub(1, Ordering::SeqCst);
    done
}

/// The interpreter ends; from now on no other thread goes on.
#[pyfunction]
pub fn end(py: Python<'_>) {
    let _ = ENDING.set(std::thread::current().id());
    py.detach(|| {
        let begin = Instant::now();
        while RETURNING.load(Ordering::SeqCst) > 0 && begin.elapsed() < Duration::from_secs(1) {
            std::thread::sleep(Duration::from_millis(1));
        }
    });
}
