//! Threads: the rows of a launch are split into ranges of whole tiles.
//!
//! A kernel computes each row independently of which other rows are in its range, so the split has
//! no influence on any bit of the results.

use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::error::Error;
use crate::memory::AlignedBuffer;

/// Work below which a range is not worth handing to another thread, in operations (see
/// [`Shape::row_work`]); a few microseconds.
const MIN_WORK: u64 = 400_000;
/// Ranges a thread, so that a thread that is held up does not hold up the launch.
const RANGES_A_THREAD: u64 = 3;
/// The same of calls of different length, which need finer ranges to come out even.
const CALL_RANGES_A_THREAD: u64 = 12;

/// How a launch may be split.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub rows: u64,
    /// Every range but the last is a multiple of this.
    pub row_tile: u64,
    /// Operations a row, roughly.
    pub row_work: u64,
}

/// The threads, each with memory of its own for kernels.
pub struct Workers {
    pool: Option<ThreadPool>,
    scratch: Vec<Scratch>,
}

struct Scratch {
    address: *mut u8,
    _buffer: AlignedBuffer,
}

// SAFETY: the address is of the buffer, which is never touched but through it, and by one thread
// at a time: the one of that number.
unsafe impl Send for Scratch {}
// SAFETY: as above.
unsafe impl Sync for Scratch {}

impl Workers {
    /// With one thread there is no pool: everything runs on the caller's.
    pub fn new(threads: usize, scratch_bytes: usize) -> Result<Workers, Error> {
        let threads = threads.max(1);
        let pool = if threads == 1 {
            None
        } else {
            let pool = ThreadPoolBuilder::new()
                .num_threads(threads)
                .thread_name(|index| format!("cohort-{index}"))
                .build()
                .map_err(|error| {
                    Error::Usage(format!("cannot start {threads} threads: {error}"))
                })?;
            Some(pool)
        };
        let scratch = (0..threads)
            .map(|_| {
                let mut buffer = AlignedBuffer::zeroed(scratch_bytes, "the kernels' scratch")?;
                Ok(Scratch {
                    address: buffer.bytes_mut().as_mut_ptr(),
                    _buffer: buffer,
                })
            })
            .collect::<Result<_, Error>>()?;
        Ok(Workers { pool, scratch })
    }

    /// Runs `work` where [`Workers::each_range`] is cheap to call many times.
    pub fn enter<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        match &self.pool {
            Some(pool) => pool.install(work),
            None => work(),
        }
    }

    /// Calls `run(begin, end, scratch)` for ranges that cover all rows, and returns when all are
    /// done. The scratch is private to the call.
    pub fn each_range(&self, shape: Shape, run: &(dyn Fn(u64, u64, *mut u8) + Sync)) {
        let ranges = self.ranges(shape);
        if ranges <= 1 {
            run(0, shape.rows, self.scratch());
            return;
        }
        let tiles = shape.rows.div_ceil(shape.row_tile);
        let bound = |range: u64| (tiles * range / ranges * shape.row_tile).min(shape.rows);
        rayon::scope(|scope| {
            for range in 1..ranges {
                scope.spawn(move |_| run(bound(range), bound(range + 1), self.scratch()));
            }
            run(bound(0), bound(1), self.scratch());
        });
    }

    /// Calls `run(begin, end, scratch)` for ranges that cover all calls, whose work in operations is
    /// given, and returns when all are done. The longest ranges begin first, so that what is left at
    /// the end is short.
    pub fn each_call(&self, works: &[u64], run: &(dyn Fn(u64, u64, *mut u8) + Sync)) {
        let all = works.iter().copied().fold(0, u64::saturating_add);
        let threads = self.scratch.len() as u64;
        if self.pool.is_none() || works.len() == 1 || all < 2 * MIN_WORK {
            run(0, works.len() as u64, self.scratch());
            return;
        }
        let least = MIN_WORK.max(all / (threads * CALL_RANGES_A_THREAD));
        let ranges = call_ranges(works, least);
        let next = AtomicUsize::new(0);
        let take = || {
            while let Some((begin, end)) = ranges.get(next.fetch_add(1, Ordering::Relaxed)) {
                run(*begin, *end, self.scratch());
            }
        };
        rayon::scope(|scope| {
            for _ in 1..threads.min(ranges.len() as u64) {
                scope.spawn(|_| take());
            }
            take();
        });
    }

    fn ranges(&self, shape: Shape) -> u64 {
        if self.pool.is_none() {
            return 1;
        }
        let tile = shape.row_tile.max(1);
        let tile_work = shape.row_work.saturating_mul(tile).max(1);
        let tiles_a_range = MIN_WORK.div_ceil(tile_work).max(1);
        let most = self.scratch.len() as u64 * RANGES_A_THREAD;
        (shape.rows.div_ceil(tile) / tiles_a_range).min(most)
    }

    /// The scratch of the thread that asks. A thread runs one range at a time and never another
    /// inside it, because a kernel does not call back.
    fn scratch(&self) -> *mut u8 {
        let index = rayon::current_thread_index().unwrap_or(0);
        let index = if self.pool.is_some() { index } else { 0 };
        self.scratch[index].address
    }
}

/// Ranges of calls that have at least that much work each, the last excepted; those with most work
/// first.
fn call_ranges(works: &[u64], least: u64) -> Vec<(u64, u64)> {
    let mut ranges = Vec::new();
    let (mut begin, mut work) = (0, 0_u64);
    for (call, of_call) in (0..).zip(works) {
        work = work.saturating_add(*of_call);
        if work >= least || call + 1 == works.len() as u64 {
            ranges.push((work, (begin, call + 1)));
            (begin, work) = (call + 1, 0);
        }
    }
    ranges.sort_by_key(|(work, _)| std::cmp::Reverse(*work));
    ranges.into_iter().map(|(_, range)| range).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn ranges_cover_all_rows_in_whole_tiles() {
        let workers = Workers::new(2, 64).unwrap();
        for rows in [1, 7, 8, 9, 1000, 1001] {
            let seen = Mutex::new(Vec::new());
            let shape = Shape {
                rows,
                row_tile: 8,
                row_work: 100_000,
            };
            workers.enter(|| {
                workers.each_range(shape, &|begin, end, scratch| {
                    assert!(!scratch.is_null());
                    seen.lock().unwrap().push((begin, end));
                });
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
    fn calls_are_split_by_work_and_the_longest_go_first() {
        let works = [3, 9, 1, 1, 1, 1, 20, 0, 2];
        let ranges = call_ranges(&works, 4);
        assert_eq!(ranges, [(6, 7), (0, 2), (2, 6), (7, 9)]);
        let workers = Workers::new(2, 0).unwrap();
        let works = [MIN_WORK; 9];
        let seen = Mutex::new(Vec::new());
        workers.enter(|| {
            workers.each_call(&works, &|begin, end, _| {
                seen.lock().unwrap().extend(begin..end);
            });
        });
        let mut seen = seen.into_inner().unwrap();
        seen.sort_unstable();
        assert_eq!(seen, (0..9).collect::<Vec<_>>());
    }

    #[test]
    fn small_launches_stay_on_one_thread() {
        let workers = Workers::new(2, 0).unwrap();
        let shape = Shape {
            rows: 100,
            row_tile: 8,
            row_work: 10,
        };
        assert!(workers.ranges(shape) <= 1);
    }
}
