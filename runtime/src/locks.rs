//! Locks that a panic of another thread leaves usable.
//!
//! A panic ends the work that it happened in and is reported there. What it leaves behind a lock is either consistent
//! or not read again, so the lock need not refuse whoever comes after.

use std::sync::{LockResult, Mutex, MutexGuard, PoisonError};

/// Locks a mutex, whether or not a thread panicked while it held it.
pub fn locked<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    unpoisoned(mutex.lock())
}

/// What a lock, or a wait on a condition variable, gives, whether or not a thread panicked while it held the lock.
pub fn unpoisoned<T>(result: LockResult<T>) -> T {
    result.unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_leaves_the_lock_to_others() {
        let mutex = Mutex::new(1);
        let panicked = std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let mut value = locked(&mutex);
                *value = 2;
                panic!("while it is locked");
            });
            thread.join().is_err()
        });
        assert!(panicked && mutex.is_poisoned());
        assert_eq!(*locked(&mutex), 2);
        assert_eq!(unpoisoned(mutex.into_inner()), 2);
    }
}
