//! How the last chunk of a run is shared between lanes, so that all of them are done at about the same time.

use std::time::{Duration, Instant};

use super::batches::Chunk;
use super::beside::LONG;

/// The least part of a chunk for which it is divided: a small batch takes longer an instance.
const LEAST_PART: f64 = 0.1;

/// How long lanes take for what they have, by how long they took before.
pub(super) struct Pace {
    /// Sizes of the chunks that are done, and the time that they took.
    size: u64,
    took: Duration,
    /// For each lane, when it began its chunk, and how large that is; none where it has none.
    begun: Vec<Option<(Instant, u64)>>,
    /// The last chunk is divided once.
    has_divided: bool,
}

impl Pace {
    pub fn new(lanes: usize) -> Pace {
        Pace {
            size: 0,
            took: Duration::ZERO,
            begun: vec![None; lanes],
            has_divided: false,
        }
    }

    pub fn begin(&mut self, lane: usize, chunk: &Chunk<'_>) {
        self.begun[lane] = Some((Instant::now(), chunk.size()));
    }

    pub fn done(&mut self, lane: usize, chunk: &Chunk<'_>) {
        if let Some((_, size)) = self.begun[lane].take() {
            self.size += size;
            self.took += chunk.times.record + chunk.times.execute;
        }
    }

    /// The last chunk is divided.
    pub fn divided(&mut self) {
        self.has_divided = true;
    }

    /// How the last chunk, of that size, is shared between a lane that is idle, which comes first, and others that are done
    /// before it would be, so that all are done at about the same time. Of one share where that is not worth it.
    pub fn shares(&self, lane: usize, size: u64) -> Vec<f64> {
        if self.size == 0 || self.has_divided {
            return vec![1.0];
        }
        let seconds = |size: u64| self.took.as_secs_f64() * size as f64 / self.size as f64;
        let left = |(_, begun): (usize, &Option<(Instant, u64)>)| {
            begun.map_or(0.0, |(begin, size)| {
                (seconds(size) - begin.elapsed().as_secs_f64()).max(0.0)
            })
        };
        let others = self.begun.iter().enumerate();
        let mut others: Vec<f64> = others
            .filter(|(other, _)| *other != lane)
            .map(left)
            .collect();
        others.sort_by(f64::total_cmp);
        // Each has what fills it up to the time at which all are done.
        let all = seconds(size);
        let (mut sum, mut count, mut end) = (all, 1.0, all);
        for left in &others {
            if *left < end {
                (sum, count) = (sum + left, count + 1.0);
                end = sum / count;
            }
        }
        let least = LONG.as_secs_f64().max(LEAST_PART * all);
        let parts = others
            .iter()
            .map(|left| end - left)
            .filter(|part| *part > least);
        [end].into_iter().chain(parts).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_chunk_is_shared_so_that_all_end_together() {
        let now = Instant::now();
        // A second for a thousand bytes.
        let mut pace = Pace {
            size: 2000,
            took: Duration::from_secs(2),
            begun: vec![None, Some((now, 500)), Some((now, 3000))],
            has_divided: false,
        };
        // The second lane is done in half a second, the third one later than all.
        let shares = pace.shares(0, 1000);
        assert_eq!(shares.len(), 2);
        assert!(
            (shares[0] - 0.75).abs() < 0.01 && (shares[1] - 0.25).abs() < 0.01,
            "{shares:?}"
        );
        // Less than a tenth is not worth it, nor is half a millisecond.
        pace.begun[1] = Some((now, 900));
        assert_eq!(pace.shares(0, 1000).len(), 1);
        pace.begun[1] = None;
        assert_eq!(pace.shares(0, 1000).len(), 2);
        assert_eq!(pace.shares(0, 1).len(), 1);
        pace.divided();
        assert_eq!(pace.shares(0, 1000).len(), 1);
        assert_eq!(Pace::new(3).shares(0, 1000).len(), 1);
    }
}
