//! A flush in parts, for clusters of blocks: each part is the rows of some instances, in every launch.
//!
//! Instances need nothing of each other but what they share, equal calls of rows of parameters, and these are launched before all
//! else. So the launches of a part wait for launches of the same part alone. A row is computed from the same operands by the same
//! function whatever part it is in: a part's arguments begin at its first row.

use std::collections::BTreeMap;
use std::ops::Range;

use super::{Piece, Problem, Queue, Rows, Runner, Work};
use crate::report::stats::{ClusterStats, RowsLaunched, StepsLaunched};

/// Queues of parts, whose memory is kept from flush to flush.
#[derive(Default)]
pub struct Divided {
    /// What instances share, then each part; as many as `used`, which is 0 if nothing is divided.
    queues: Vec<Queue>,
    used: usize,
    counts: Counts,
}

/// What was counted of flushes that are one launch.
#[derive(Default)]
struct Counts {
    flushes: u64,
    divided: u64,
    undivided: Steps,
    shared: Steps,
    longest: Steps,
}

/// Steps, and how often in them a kernel was launched for each number of rows.
#[derive(Default)]
struct Steps {
    steps: u64,
    launches: BTreeMap<(u32, u32), u64>,
}

impl Steps {
    fn launch(&mut self, kernel: u32, rows: u32) {
        if rows > 0 {
            *self.launches.entry((kernel, rows)).or_default() += 1;
        }
    }

    fn stats(&self, names: &[String]) -> StepsLaunched {
        let launches = self.launches.iter();
        let launches = launches.map(|((kernel, rows), times)| RowsLaunched {
            kernel: names.get(*kernel as usize).cloned().unwrap_or_default(),
            rows: *rows,
            times: *times,
        });
        StepsLaunched {
            steps: self.steps,
            launches: launches.collect(),
        }
    }
}

impl Divided {
    /// What instances share, then each part; none if nothing is divided.
    pub fn queues(&self) -> &[Queue] {
        &self.queues[..self.used]
    }

    /// Counts a flush that is one launch, of `steps` steps if it is not divided. If it is, `longest` is the part that takes
    /// longest, and its steps.
    pub fn count(&mut self, longest: Option<(usize, u64)>, steps: u64, work: &Work<'_>) {
        let counts = &mut self.counts;
        counts.flushes += 1;
        let Some((part, steps)) = longest else {
            counts.undivided.steps += steps;
            for placed in work.launches {
                counts.undivided.launch(placed.kernel, placed.entries);
            }
            return;
        };
        counts.divided += 1;
        counts.shared.steps += self.queues[0].steps();
        counts.longest.steps += steps;
        for placed in work.launches {
            match placed.part_ends {
                Some(ends) => {
                    let rows = rows_of(ends, part, work).count;
                    counts.longest.launch(placed.kernel, rows);
                }
                None => counts.shared.launch(placed.kernel, placed.entries),
            }
        }
    }

    /// What was counted, by the names of kernels; nothing if no flush was.
    pub fn stats(&self, names: &[String]) -> Option<ClusterStats> {
        let counts = &self.counts;
        (counts.flushes > 0).then(|| ClusterStats {
            flushes: counts.flushes,
            divided: counts.divided,
            undivided: counts.undivided.stats(names),
            shared: counts.shared.stats(names),
            longest: counts.longest.stats(names),
        })
    }

    /// Sets the counts to zero.
    pub fn clear_stats(&mut self) {
        self.counts = Counts::default();
    }
}

/// A part's rows of a launch that is divided.
fn rows_of(ends: usize, part: usize, work: &Work<'_>) -> Rows {
    let ends = &work.part_ends[ends..];
    let first = match part {
        0 => 0,
        part => ends[part - 1],
    };
    Rows {
        first,
        count: ends[part] - first,
    }
}

impl Runner {
    /// Queues what instances share, and each part, if the flush is divided.
    pub(super) fn divide(&mut self, work: &Work<'_>) -> Result<(), Problem> {
        self.divided.used = 0;
        if work.parts == 0 {
            return Ok(());
        }
        let mut queues = std::mem::take(&mut self.divided.queues);
        queues.resize_with(queues.len().max(work.parts + 1), Queue::default);
        let (shared, parts) = queues.split_at_mut(1);
        let mut scratch = self.scratch.address;
        self.queue_part(None, work, scratch, &mut shared[0])?;
        for (part, queue) in parts[..work.parts].iter_mut().enumerate() {
            scratch += self.queue_part(Some(part), work, scratch, queue)?;
        }
        self.divided.queues = queues;
        self.divided.used = work.parts + 1;
        Ok(())
    }

    /// Queues a part, or what all share; gives the bytes of scratch that it has from an address on. Parts run at the same time,
    /// and each has scratch of its own, which its waves use one after another.
    fn queue_part(
        &self,
        part: Option<usize>,
        work: &Work<'_>,
        scratch: u64,
        queue: &mut Queue,
    ) -> Result<u64, Problem> {
        queue.clear();
        let mut most = 0;
        for wave in waves(work) {
            let mut bytes = 0;
            for number in wave {
                let placed = &work.launches[number];
                let rows = match (part, placed.part_ends) {
                    (None, None) => Rows {
                        first: 0,
                        count: placed.entries,
                    },
                    (Some(part), Some(ends)) => rows_of(ends, part, work),
                    _ => continue,
                };
                if rows.count == 0 {
                    continue;
                }
                let own = self.scratch_of_rows(placed, rows.count)?;
                let piece = Piece {
                    address: scratch + bytes,
                    bytes: own,
                };
                self.queue_call((number, rows), work, piece, queue)?;
                bytes += own;
            }
            queue.end_level();
            most = bytes.max(most);
        }
        Ok(most)
    }

    /// Bytes of scratch that all parts need.
    pub(super) fn scratch_of_parts(&self, work: &Work<'_>) -> Result<u64, Problem> {
        let mut all = 0_u64;
        for part in 0..work.parts {
            let mut most = 0;
            for wave in waves(work) {
                let mut bytes = 0_u64;
                for number in wave {
                    let placed = &work.launches[number];
                    let rows = placed
                        .part_ends
                        .map_or(0, |ends| rows_of(ends, part, work).count);
                    if rows > 0 {
                        bytes = bytes.saturating_add(self.scratch_of_rows(placed, rows)?);
                    }
                }
                most = bytes.max(most);
            }
            all = all.saturating_add(most);
        }
        Ok(all)
    }
}

/// The numbers of the launches of each wave.
fn waves<'a>(work: &'a Work<'_>) -> impl Iterator<Item = Range<usize>> + 'a {
    let mut begin = 0;
    let waves = work.launches.chunk_by(|one, next| one.wave == next.wave);
    waves.map(move |wave| {
        begin += wave.len();
        begin - wave.len()..begin
    })
}
