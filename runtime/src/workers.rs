//! Threads: the rows of a launch are split into ranges of whole tiles, or it comes in tasks.
//!
//! A kernel computes each row independently of which other rows are in its range, so the split has
//! no influence on any bit of the results.

use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::error::Error;
use crate::execute::Task;
use crate::memory::AlignedBuffer;

/// Work below which a range is not worth handing to another thread, in operations (see
/// [`Shape::row_work`]); a few microseconds.
pub const MIN_WORK: u64 = 400_000;
/// Ranges a thread, so that a thread that is held up does not hold up the launch.
const RANGES_A_THREAD: u64 = 3;

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

    /// Calls `run(begin, end, scratch)` for each task, and returns when all are done. A thread that is
    /// done with one takes the next, in their order.
    pub fn each_task(&self, tasks: &[Task], run: &(dyn Fn(u64, u64, *mut u8) + Sync)) {
        let next = AtomicUsize::new(0);
        let take = || {
            while let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
                run(task.begin, task.end, self.scratch());
            }
        };
        if self.pool.is_none() || tasks.len() <= 1 {
            return take();
        }
        rayon::scope(|scope| {
            for _ in 1..self.threads().min(tasks.len()) {
                scope.spawn(|_| take());
            }
            take();
        });
    }

    pub fn threads(&self) -> usize {
        self.scratch.len()
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
