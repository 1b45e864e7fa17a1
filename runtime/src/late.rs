//! What a kernel asks within a long call: whether there is any time left.
//!
//! Each thread knows the end of the launch that it computes a part of. A kernel that is told that it is
//! late computes no more; what it leaves is never read, as the flush ends with an error.

use std::cell::Cell;
use std::time::Instant;

thread_local! {
    static END: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Runs a part of a launch that may be given up when it is too late.
pub fn until(end: Option<Instant>, run: impl FnOnce()) {
    END.set(end);
    run();
    END.set(None);
}

/// See [`cohort_abi::symbols::LATE`].
pub extern "C" fn cohort_late() -> i32 {
    i32::from(END.get().is_some_and(|end| Instant::now() >= end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn only_launches_with_an_end_are_late() {
        let now = Instant::now();
        assert_eq!(cohort_late(), 0);
        until(None, || assert_eq!(cohort_late(), 0));
        until(Some(now), || assert_eq!(cohort_late(), 1));
        until(Some(now + Duration::from_secs(60)), || {
            assert_eq!(cohort_late(), 0)
        });
        assert_eq!(cohort_late(), 0);
    }
}
