//! Threads that help the one that has work: it begins at once and never waits for a helper to wake up.
//!
//! A launch takes some microseconds up to some milliseconds, and there are many. What hands work to a
//! pool of other threads and sleeps meanwhile pays for two switches each time, and its rows are in
//! another core's cache. Here whoever has work does it, helpers join if they come in time, and both
//! look for each other for some time before they sleep. Work that is shorter than it takes to wake a helper is for those that
//! are awake.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;

use crate::locks::{locked, unpoisoned};

/// How often a thread looks whether helpers are done, before it sleeps: some ten microseconds.
const LOOKS: usize = 400;
/// How often a helper looks for work: a tenth of a millisecond. To wake it takes longer than many a launch.
const HELPER_LOOKS: usize = 5000;

/// Work that any number of threads may do at once, each given its number.
type Work<'a> = dyn Fn(usize) + Sync + 'a;

/// The helpers. Number 0 is the thread that has work.
pub struct ThreadPool {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// There is work, or the end.
    begun: Condvar,
    /// The last helper left.
    ended: Condvar,
    /// Counts what there was to do; changed with the state locked.
    jobs: AtomicU64,
    /// Helpers at work; it grows with the state locked.
    active: AtomicUsize,
    /// Counts work for those that are awake, and helpers that joined.
    offered: AtomicU64,
    joined: AtomicU64,
    panicked: AtomicBool,
}

#[derive(Default)]
struct State {
    /// The work at hand, and how many helpers may still join.
    job: Option<(Job, usize)>,
    asleep: usize,
    /// How often those that sleep were woken to look for work.
    wakes: u64,
    ends: bool,
}

#[derive(Clone, Copy)]
struct Job(*const Work<'static>);

// SAFETY: what it points to may be used by several threads at once, and is there as long as helpers may
// join and until the last of them left: see [`Close`].
unsafe impl Send for Job {}

impl ThreadPool {
    /// With `helpers` helpers.
    pub fn new(helpers: usize) -> std::io::Result<ThreadPool> {
        let mut pool = ThreadPool {
            shared: Arc::default(),
            threads: Vec::with_capacity(helpers),
        };
        for number in 1..=helpers {
            let shared = pool.shared.clone();
            let thread = std::thread::Builder::new().name(format!("cohort-{number}"));
            pool.threads
                .push(thread.spawn(move || shared.help(number))?);
        }
        Ok(pool)
    }

    /// Threads that work, the one that has work included.
    pub fn threads(&self) -> usize {
        self.threads.len() + 1
    }

    /// Does the work on this thread and on at most `helpers` others, and returns when all are done.
    pub fn share(&self, helpers: usize, work: &Work<'_>) {
        self.begin(helpers, true, work, || work(0));
    }

    /// As [`ThreadPool::share`], with helpers that are awake.
    pub fn share_with_awake(&self, helpers: usize, work: &Work<'_>) {
        self.shared.offered.fetch_add(1, Ordering::Relaxed);
        self.begin(helpers, false, work, || work(0));
    }

    /// As [`ThreadPool::share`], with something else to do for this thread, which gives a value.
    pub fn beside<T>(&self, helpers: usize, work: &Work<'_>, own: impl FnOnce() -> T) -> T {
        self.begin(helpers, true, work, own)
    }

    /// Wakes helpers that sleep, to look for work: there is going to be some.
    pub fn wake(&self) {
        let mut state = self.shared.lock();
        if state.asleep > 0 {
            state.wakes += 1;
            self.shared.begun.notify_all();
        }
    }

    /// Since there is the pool: how often there was work for helpers that are awake, and how often a helper joined.
    pub fn offered_and_joined(&self) -> (u64, u64) {
        let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
        (count(&self.shared.offered), count(&self.shared.joined))
    }

    fn begin<T>(&self, helpers: usize, wakes: bool, work: &Work<'_>, own: impl FnOnce() -> T) -> T {
        let helpers = helpers.min(self.threads.len());
        if helpers == 0 {
            return own();
        }
        let job: *const Work<'_> = work;
        // SAFETY: the two types differ in a lifetime only. Helpers use the work while the guard below
        // lives, and the work outlives that.
        let job = Job(unsafe { std::mem::transmute::<*const Work<'_>, *const Work<'static>>(job) });
        self.shared.panicked.store(false, Ordering::Relaxed);
        let close = Close(&self.shared);
        {
            let mut state = self.shared.lock();
            state.job = Some((job, helpers));
            self.shared.jobs.fetch_add(1, Ordering::Release);
            let woken = if wakes { state.asleep } else { 0 };
            for _ in 0..helpers.min(woken) {
                self.shared.begun.notify_one();
            }
        }
        let value = own();
        drop(close);
        if self.shared.panicked.load(Ordering::Relaxed) {
            panic!("a thread that helped panicked");
        }
        value
    }
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        self.shared.lock().ends = true;
        self.shared.begun.notify_all();
        for thread in self.threads.drain(..) {
            // It catches what panics.
            let _ = thread.join();
        }
    }
}

/// When dropped, no helper joins any more, and all have left.
struct Close<'a>(&'a Shared);

impl Drop for Close<'_> {
    fn drop(&mut self) {
        self.0.lock().job = None;
        let is_busy = || self.0.active.load(Ordering::Acquire) > 0;
        look(LOOKS, || !is_busy());
        if is_busy() {
            let mut state = self.0.lock();
            while is_busy() {
                state = unpoisoned(self.0.ended.wait(state));
            }
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is locked.
        locked(&self.state)
    }

    /// What a helper does all its life.
    fn help(&self, number: usize) {
        let mut seen = 0;
        while let Some(job) = self.next(&mut seen) {
            let work = AssertUnwindSafe(|| {
                // SAFETY: this helper counts as active, so the work is there.
                unsafe { (*job.0)(number) }
            });
            if catch_unwind(work).is_err() {
                self.panicked.store(true, Ordering::Relaxed);
            }
            if self.active.fetch_sub(1, Ordering::AcqRel) == 1 {
                // The thread that waits looks at `active` with the state locked, so it cannot miss this.
                let _state = self.lock();
                self.ended.notify_all();
            }
        }
    }

    /// Waits for work that was not seen so far, and joins; `None` at the end.
    fn next(&self, seen: &mut u64) -> Option<Job> {
        loop {
            look(HELPER_LOOKS, || self.jobs.load(Ordering::Acquire) != *seen);
            let mut state = self.lock();
            let wakes = state.wakes;
            let is_idle = || self.jobs.load(Ordering::Relaxed) == *seen;
            while is_idle() && !state.ends && state.wakes == wakes {
                state.asleep += 1;
                state = unpoisoned(self.begun.wait(state));
                state.asleep -= 1;
            }
            if state.ends {
                return None;
            }
            if is_idle() {
                continue;
            }
            *seen = self.jobs.load(Ordering::Relaxed);
            if let Some((job, seats @ 1..)) = &mut state.job {
                *seats -= 1;
                self.active.fetch_add(1, Ordering::Relaxed);
                self.joined.fetch_add(1, Ordering::Relaxed);
                return Some(*job);
            }
        }
    }
}

/// Waits for something for a short time.
fn look(times: usize, is_there: impl Fn() -> bool) {
    for _ in 0..times {
        if is_there() {
            return;
        }
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn all_who_may_join_work_at_once_and_nobody_is_left_behind() {
        let pool = ThreadPool::new(3).unwrap();
        for helpers in [3, 1, 2, 0, 7] {
            let barrier = Barrier::new(helpers.min(3) + 1);
            let seen = Mutex::new(HashSet::new());
            pool.share(helpers, &|number| {
                seen.lock().unwrap().insert(number);
                barrier.wait();
            });
            let seen = seen.into_inner().unwrap();
            assert_eq!(seen.len(), helpers.min(3) + 1);
            assert!(seen.contains(&0));
        }
    }

    #[test]
    fn work_that_is_done_waits_for_nobody_and_is_done_once() {
        let pool = ThreadPool::new(2).unwrap();
        for round in 0..20_000_usize {
            let next = AtomicUsize::new(0);
            let sum = AtomicUsize::new(0);
            pool.share(2, &|_| {
                while let task @ ..3 = next.fetch_add(1, Ordering::Relaxed) {
                    sum.fetch_add(round + task, Ordering::Relaxed);
                }
            });
            assert_eq!(sum.into_inner(), 3 * round + 3);
        }
    }

    #[test]
    fn one_that_sleeps_helps_with_short_work_once_it_is_woken() {
        let pool = ThreadPool::new(1).unwrap();
        let sleeps = || pool.shared.lock().asleep == 1;
        while !sleeps() {
            std::thread::yield_now();
        }
        pool.share_with_awake(1, &|number| assert_eq!(number, 0));
        assert!(sleeps() && pool.offered_and_joined() == (1, 0));
        while pool.offered_and_joined().1 == 0 {
            pool.wake();
            pool.share_with_awake(1, &|_| std::thread::yield_now());
        }
    }

    #[test]
    fn a_panic_comes_back_and_the_crew_goes_on() {
        let pool = ThreadPool::new(1).unwrap();
        let barrier = Barrier::new(2);
        for panics in [0, 1] {
            let shared = AssertUnwindSafe(|| {
                pool.share(1, &|number| {
                    barrier.wait();
                    assert!(number != panics);
                });
            });
            assert!(catch_unwind(shared).is_err());
        }
        pool.share(1, &|_| {
            barrier.wait();
        });
    }
}
