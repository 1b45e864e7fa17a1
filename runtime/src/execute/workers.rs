//! Threads: the rows of a launch are split into ranges of whole tiles, or it comes in tasks.
//!
//! A kernel computes each row independently of which other rows are in its range, so the split has
//! no influence on any bit of the results.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use crate::error::Error;
use crate::execute::Task;
use crate::locks::locked;
use crate::memory::AlignedBuffer;
use crate::report::profile::Profile;
use crate::threads::share;
use crate::threads::thread_pool::ThreadPool;

/// Work below which a range is not worth handing to another thread, in operations (see
/// [`Shape::row_work`]); a few microseconds.
pub const MIN_WORK: u64 = 400_000;
/// Bytes that a thread copies at once. They stay in its cache, and are few enough for no copy to go
/// around it.
const COPIED: usize = 256 << 10;
/// Work for which sleeping threads are woken, so that they share its products: a tenth of a millisecond, as that takes some
/// microseconds; and at most, where fewer than half of the products were shared after the times before: a thread may look for
/// work in place of the one that has it.
const WAKING_WORK: u64 = 8_000_000;
const MOST_WAKING_WORK: u64 = WAKING_WORK << 6;
/// Ranges a thread, so that a thread that is held up does not hold up the launch.
const RANGES_A_THREAD: u64 = 3;

/// How a launch may be split.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// How many rows.
    pub rows: u64,
    /// Every range but the last is a multiple of this.
    pub row_tile: u64,
    /// Operations a row, roughly.
    pub row_work: u64,
}

/// What scratch memory is for, in errors.
const PURPOSE: &str = "the kernels' scratch";

/// The threads, each with memory of its own for kernels.
pub struct Workers {
    pool: ThreadPool,
    /// Each is locked by the thread of its number alone, while it computes.
    scratch: Vec<Mutex<AlignedBuffer>>,
    /// What each has room for.
    reserved: AtomicUsize,
    waking: Mutex<Waking>,
    /// Is told which thread did what.
    profile: Option<Arc<Profile>>,
}

/// When sleeping threads are woken.
struct Waking {
    /// Work since they were, and how much there is to be until they are.
    work: u64,
    most: u64,
    /// How often there was work for those that are awake by then, and one of them joined.
    offered: u64,
    joined: u64,
}

impl Workers {
    /// The caller's thread is one of them.
    pub fn new(threads: usize) -> Result<Workers, Error> {
        let threads = threads.max(1);
        let pool = ThreadPool::new(threads - 1)
            .map_err(|error| Error::Usage(format!("cannot start {threads} threads: {error}")))?;
        let scratch = (0..threads).map(|_| AlignedBuffer::zeroed(0, PURPOSE).map(Mutex::new));
        Ok(Workers {
            pool,
            scratch: scratch.collect::<Result<_, Error>>()?,
            reserved: AtomicUsize::new(0),
            waking: Mutex::new(Waking {
                work: 0,
                most: WAKING_WORK,
                offered: 0,
                joined: 0,
            }),
            profile: None,
        })
    }

    /// Makes room for kernels that need that much scratch memory: before the first launch of one, so that
    /// a kernel whose scratch the machine does not have fails those that need it, and nobody else.
    pub fn reserve(&self, scratch_bytes: usize) -> Result<(), Error> {
        if scratch_bytes > self.reserved.load(Ordering::Relaxed) {
            for scratch in &self.scratch {
                locked(scratch).ensure(scratch_bytes, PURPOSE)?;
            }
            self.reserved.store(scratch_bytes, Ordering::Relaxed);
        }
        Ok(())
    }

    /// From now on the profile is told which thread did how much when.
    pub fn set_profile(&mut self, profile: Option<Arc<Profile>>) {
        self.profile = profile;
    }

    /// There are going to be launches with this number of operations.
    pub fn expect(&self, work: u64) {
        let mut waking = locked(&self.waking);
        waking.work = waking.work.saturating_add(work);
        if waking.work < waking.most {
            return;
        }
        let (offered, joined) = self.pool.offered_and_joined();
        let (new, helped) = (offered - waking.offered, joined - waking.joined);
        waking.most = match 2 * helped > new {
            true => WAKING_WORK,
            false => (2 * waking.most).min(MOST_WAKING_WORK),
        };
        (waking.work, waking.offered, waking.joined) = (0, offered, joined);
        self.pool.wake();
    }

    /// Calls `run(begin, end, scratch)` for ranges that cover all rows, and returns when all are
    /// done. The scratch is private to the call.
    pub fn each_range(&self, shape: Shape, run: &(dyn Fn(u64, u64, *mut u8) + Sync)) {
        let ranges = self.ranges(shape);
        if ranges <= 1 {
            let mut scratch = locked(&self.scratch[0]);
            let scratch = address(&mut scratch);
            return share::with_helpers(&self.pool, || run(0, shape.rows, scratch));
        }
        let tiles = shape.rows.div_ceil(shape.row_tile);
        let bound = |range: u64| (tiles * range / ranges * shape.row_tile).min(shape.rows);
        self.each(ranges as usize, &|range, scratch| {
            run(bound(range as u64), bound(range as u64 + 1), scratch);
        });
    }

    /// Calls `run(begin, end, scratch)` for each task, and returns when all are done. A thread that is
    /// done with one takes the next, in their order.
    pub fn each_task(&self, tasks: &[Task], run: &(dyn Fn(u64, u64, *mut u8) + Sync)) {
        self.each(tasks.len(), &|task, scratch| {
            run(tasks[task].begin, tasks[task].end, scratch);
        });
    }

    /// Copies bytes; many by all threads.
    pub fn copy(&self, from: &[u8], to: &mut [u8]) {
        let helpers = (from.len() / COPIED).saturating_sub(1);
        let items = Mutex::new(to.chunks_mut(COPIED).zip(from.chunks(COPIED)));
        let next = || locked(&items).next();
        self.pool.share(helpers, &|_| {
            while let Some((to, from)) = next() {
                to.copy_from_slice(from);
            }
        });
    }

    /// Calls `run(number, scratch)` for each number below `count`.
    fn each(&self, count: usize, run: &(dyn Fn(usize, *mut u8) + Sync)) {
        let next = AtomicUsize::new(0);
        self.pool.share(count.saturating_sub(1), &|thread| {
            let mut scratch = locked(&self.scratch[thread]);
            let scratch = address(&mut scratch);
            let begin = self.profile.as_ref().map(|_| Instant::now());
            let mut items = 0;
            loop {
                match next.fetch_add(1, Ordering::Relaxed) {
                    number if number < count => run(number, scratch),
                    _ => break,
                }
                items += 1;
            }
            if let (Some(profile), Some(begin), 1..) = (&self.profile, begin, items) {
                profile.shared(thread, begin, items);
            }
        });
    }

    /// Threads that compute, the calling one included.
    pub fn threads(&self) -> usize {
        self.scratch.len()
    }

    /// How many ranges there are. Where the fullest thread would have a third more rows than its share, there is one: a
    /// few tiles of rows are divided worse than the panels of their products.
    fn ranges(&self, shape: Shape) -> u64 {
        if self.threads() == 1 {
            return 1;
        }
        let tile = shape.row_tile.max(1);
        let tile_work = shape.row_work.saturating_mul(tile).max(1);
        let tiles_a_range = MIN_WORK.div_ceil(tile_work).max(1);
        let threads = self.threads() as u64;
        let tiles = shape.rows.div_ceil(tile);
        let of_fullest = tiles.div_ceil(threads).saturating_mul(tile);
        if shape.rows.saturating_mul(4) < of_fullest.saturating_mul(3 * threads) {
            return 1;
        }
        (tiles / tiles_a_range).min(threads * RANGES_A_THREAD)
    }
}

fn address(scratch: &mut AlignedBuffer) -> *mut u8 {
    scratch.bytes_mut().as_mut_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_cover_all_rows_in_whole_tiles() {
        let workers = Workers::new(2).unwrap();
        for rows in [1, 7, 8, 9, 1000, 1001] {
            let seen = Mutex::new(Vec::new());
            let shape = Shape {
                rows,
                row_tile: 8,
                row_work: 100_000,
            };
            workers.each_range(shape, &|begin, end, scratch| {
                assert!(!scratch.is_null());
                seen.lock().unwrap().push((begin, end));
            });
            let mut seen = seen.into_inner().unwrap();
            seen.sort_unstable();
            assert!(seen.len() <= 6);
            assert_eq!((seen[0].0, seen[seen.len() - 1].1), (0, rows));
            for pair in seen.windows(2) {
                assert_eq!(pair[0].1, pair[1].0);
                assert_eq!(pair[0].1 % 8, 0);
                assert!(pair[1].0 < pair[1].1);
            }
        }
    }

    #[test]
    fn scratch_that_there_is_not_leaves_what_there_is() {
        let workers = Workers::new(2).unwrap();
        workers.reserve(1 << 10).unwrap();
        assert!(matches!(
            workers.reserve(1 << 60),
            Err(Error::OutOfMemory { .. })
        ));
        let shape = Shape {
            rows: 1,
            row_tile: 1,
            row_work: 1,
        };
        workers.each_range(shape, &|_, _, scratch| {
            // SAFETY: so much was reserved, and nobody else has it.
            unsafe { scratch.write_bytes(1, 1 << 10) };
        });
    }

    #[test]
    fn copies_have_every_byte() {
        let workers = Workers::new(2).unwrap();
        for length in [0, 5, 2 * COPIED, 5 * COPIED + 3] {
            let from: Vec<u8> = (0..length).map(|byte| (byte % 251) as u8).collect();
            let mut to = vec![255; length];
            workers.copy(&from, &mut to);
            assert!(from == to, "{length}");
        }
    }

    #[test]
    fn a_few_tiles_are_divided_only_where_that_is_even() {
        let workers = Workers::new(2).unwrap();
        let ranges = |rows| {
            workers.ranges(Shape {
                rows,
                row_tile: 12,
                row_work: 1_000_000,
            })
        };
        assert_eq!([1, 12, 13, 17].map(ranges), [1; 4]);
        assert_eq!([18, 24].map(ranges), [2; 2]);
        assert_eq!([25, 35].map(ranges), [1; 2]);
        assert_eq!([36, 48, 1000].map(ranges), [3, 4, 6]);
    }

    #[test]
    fn threads_that_do_not_come_are_woken_ever_more_rarely() {
        let workers = Workers::new(2).unwrap();
        let most = || workers.waking.lock().unwrap().most;
        workers.expect(WAKING_WORK - 1);
        assert_eq!(most(), WAKING_WORK);
        workers.expect(1);
        assert_eq!(most(), 2 * WAKING_WORK);
        for _ in 0..20 {
            workers.expect(u64::MAX);
        }
        assert_eq!(most(), MOST_WAKING_WORK);
        // One that came once is worth waking.
        while workers.pool.offered_and_joined().1 == 0 {
            workers.pool.share(1, &|_| std::thread::yield_now());
        }
        workers.expect(MOST_WAKING_WORK);
        assert_eq!(most(), WAKING_WORK);
    }

    #[test]
    fn small_launches_stay_on_one_thread() {
        let workers = Workers::new(2).unwrap();
        let shape = Shape {
            rows: 100,
            row_tile: 8,
            row_work: 10,
        };
        assert!(workers.ranges(shape) <= 1);
    }
}
