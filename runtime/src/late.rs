//! What a kernel asks within a long call: whether there is any time left, and whether anyone still waits.
//!
//! Each thread knows the end of the launch that it computes a part of, and what may interrupt it. A kernel that
//! is told that it is late computes no more; what it leaves is never read, as the flush ends with an error.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::error::Error;

/// Whether nobody waits for a run any more. Any thread may set it; the run then ends with
/// [`Error::Interrupted`] as soon as it looks, which it does wherever it would look at the clock.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Nobody waits any more.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether nobody waits.
    #[inline]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// [`Error::Interrupted`] if nobody waits.
    #[inline]
    pub fn check(&self) -> Result<(), Error> {
        match self.is_set() {
            true => Err(Error::Interrupted),
            false => Ok(()),
        }
    }
}

thread_local! {
    static END: Cell<Option<Instant>> = const { Cell::new(None) };
    /// Null, or an [`AtomicBool`] that outlives what runs.
    static INTERRUPT: Cell<*const AtomicBool> = const { Cell::new(std::ptr::null()) };
}

/// Runs a part of a launch that may be given up when it is too late or interrupted; one that is interrupted already does
/// not begin.
pub fn until(end: Option<Instant>, interrupt: &Interrupt, run: impl FnOnce()) {
    if interrupt.is_set() {
        return;
    }
    END.set(end);
    INTERRUPT.set(Arc::as_ptr(&interrupt.0));
    run();
    INTERRUPT.set(std::ptr::null());
    END.set(None);
}

/// See [`cohort_abi::symbols::LATE`].
pub extern "C" fn cohort_late() -> i32 {
    // SAFETY: it is null, or what `until` borrows as long as this thread is within it.
    let interrupt = unsafe { INTERRUPT.get().as_ref() };
    let is_interrupted = interrupt.is_some_and(|interrupt| interrupt.load(Ordering::Relaxed));
    i32::from(is_interrupted || END.get().is_some_and(|end| Instant::now() >= end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn only_launches_with_an_end_are_late() {
        let now = Instant::now();
        assert_eq!(cohort_late(), 0);
        let none = Interrupt::default();
        until(None, &none, || assert_eq!(cohort_late(), 0));
        until(Some(now), &none, || assert_eq!(cohort_late(), 1));
        until(Some(now + Duration::from_secs(60)), &none, || {
            assert_eq!(cohort_late(), 0)
        });
        assert_eq!(cohort_late(), 0);
    }

    #[test]
    fn an_interrupted_launch_ends_and_no_other_begins() {
        let interrupt = Interrupt::default();
        until(None, &interrupt, || {
            assert_eq!(cohort_late(), 0);
            interrupt.set();
            assert_eq!(cohort_late(), 1);
        });
        assert_eq!(cohort_late(), 0);
        until(None, &interrupt, || unreachable!("it is interrupted"));
        assert!(matches!(interrupt.check(), Err(Error::Interrupted)));
    }
}
