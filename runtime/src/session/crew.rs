//! The threads of lanes, which stay from run to run: of those that are begun anew, some began milliseconds late.

use std::sync::Mutex;

use crate::locks::locked;
use crate::threads::thread_pool::ThreadPool;

/// A thread for each lane that runs.
#[derive(Default)]
pub(super) struct Crew(Option<ThreadPool>);

impl Crew {
    /// Begins threads until there are `count`, or the system has no more; gives how many of those there are.
    pub fn grow(&mut self, count: usize) -> usize {
        let helpers = |pool: &ThreadPool| pool.threads() - 1;
        if self.0.as_ref().map_or(0, helpers) < count {
            // Those that there are end first.
            self.0 = None;
            self.0 = (1..=count)
                .rev()
                .find_map(|count| ThreadPool::new(count).ok());
        }
        self.0.as_ref().map_or(0, helpers).min(count)
    }

    /// Runs `work(number, given)` of each lane on a thread of its own, with what is given to it, and `desk` on this one, whose
    /// value it gives once all are done. There are threads for all of them.
    pub fn run<G: Send, T>(
        &self,
        given: Vec<G>,
        work: &(dyn Fn(usize, G) + Sync),
        desk: impl FnOnce() -> T,
    ) -> T {
        let Some(pool) = &self.0 else {
            drop(given);
            return desk();
        };
        let given: Vec<Mutex<Option<G>>> =
            given.into_iter().map(|of| Mutex::new(Some(of))).collect();
        let take = |number: usize| locked(&given[number]).take();
        // A thread begins with the lane of its number, whose weights may be in its cache.
        let lane = |thread: usize| {
            let numbers = (0..given.len()).map(|next| (thread - 1 + next) % given.len());
            let mut taken = numbers.filter_map(|number| Some((number, take(number)?)));
            if let Some((number, given)) = taken.next() {
                work(number, given);
            }
        };
        pool.beside(given.len(), &lane, desk)
    }
}
