//! Runs of a program whose paths depend on tensors: in one engine, or in one for each thread.

use std::time::{Duration, Instant};

use super::beside::{Supplying, Told};
use super::{Batch, Session};
use crate::engine::{MOST_ALIVE, Report, Window};
use crate::error::Error;
use crate::failure::InstanceError;
use crate::io::feed::{Feed, Supplied, Supply};
use crate::io::input::Inputs;
use crate::recorder::MAX_CHUNK_BUCKETS;

/// Instances decoded at once when they run in flight: few, since none is forgotten before all are.
const CHUNK: usize = 64;
/// Instances decoded at once when lanes get them: few, so that lanes get equally many.
const DEALT: usize = 32;
/// Chunks of them that may be alive; an instance that holds up this number of them is waited for.
const MOST_CHUNKS: usize = 1 << 10;

impl Session {
    /// How many instances should be decoded together, and how many such chunks may be alive: their
    /// slots are the numbers below that.
    pub fn chunks(&self) -> (usize, usize) {
        let count = self.config.batch_count();
        if self.lane.engine.is_none() {
            return (count, 1);
        }
        let is_in_flight = matches!(self.config.batch, Batch::InFlight(_));
        let row_pools = self.program.manifest.row_pools.len().max(1);
        // One more is that of cotangents.
        let most = (MAX_CHUNK_BUCKETS as usize / row_pools).clamp(2, MOST_CHUNKS) - 1;
        if self.may_divide() {
            let chunk = count.div_ceil(2 * self.config.threads).min(DEALT);
            let of_lane = count.div_ceil(chunk);
            // As many chunks may wait as lanes work on; in flight, each instance that is alive keeps one chunk.
            let waiting = of_lane.saturating_mul(self.config.threads);
            let alive = match is_in_flight {
                true => count,
                false => waiting,
            };
            return (
                chunk,
                waiting.saturating_add(alive).saturating_add(1).min(most),
            );
        }
        match is_in_flight {
            // The next instance is in another one.
            true => (count.min(CHUNK), count.saturating_add(1).min(most)),
            false => (count, 1),
        }
    }

    /// Whether instances may be divided between engines at all.
    fn may_divide(&self) -> bool {
        self.config.threads > 1
            && !self.config.gradients
            && self.config.batch != Batch::Unbatched
            && !self.lane.executor.is_on_device()
    }

    /// Makes lanes for engines, and gives how many there are; one, where they do not run side by side.
    pub(super) fn make_engines(&mut self) -> usize {
        let shows = self.config.debug && !self.program.manifest.debugs.is_empty();
        if self.lane.engine.is_none() || !self.may_divide() || shows {
            return 1;
        }
        match self.most_lanes() {
            0 | 1 => 1,
            lanes => self.make_lanes(lanes).max(1),
        }
    }

    /// Which instances are alive at once in each of `engines` engines.
    pub(super) fn window(&self, engines: usize) -> Window {
        let is_in_flight = matches!(self.config.batch, Batch::InFlight(_));
        let count = match is_in_flight {
            true => self.config.batch_count().div_ceil(engines),
            false => self.config.batch_count(),
        };
        Window {
            count: count.min(MOST_ALIVE / engines).max(1),
            memory: self.config.batch_memory / engines as u64,
            is_in_flight,
            enough: self.enough.clone(),
        }
    }

    /// Runs all instances of a supply; returns how long it took to read them.
    pub(super) fn run_deciding(
        &mut self,
        supply: &mut dyn Supply,
        told: &mut Told<'_, '_>,
    ) -> Result<Duration, Error> {
        let is_divisible = supply.is_divisible();
        let mut supply = Begun {
            first: None,
            supply,
        };
        let begin = Instant::now();
        // Few instances, or some that come one by one, are not worth engines of their own.
        if is_divisible && self.may_divide() && supply.begin()? >= self.chunks().0 {
            let lanes = self.make_engines();
            if lanes > 1 {
                let mut source = Supplying {
                    supply: &mut supply,
                    read: begin.elapsed(),
                };
                self.run_engines(lanes, &mut source, told)?;
                return Ok(source.read);
            }
        }
        let read = begin.elapsed();
        let mut feed = Feed::stream(&mut supply, self.chunks().1);
        self.run_engine(&mut feed, told)?;
        Ok(read + feed.read())
    }

    /// Runs all instances of a feed in one engine, whose launches all threads share.
    pub(super) fn run_engine(
        &mut self,
        feed: &mut Feed<'_>,
        told: &mut Told<'_, '_>,
    ) -> Result<(), Error> {
        let window = self.window(1);
        let shows = self.config.debug && told.sink.is_some();
        let (entry, manifest) = (self.program.entry, &self.program.manifest);
        let Some((engine, mut machine)) = self.lane.engine(entry, manifest, shows) else {
            return Ok(());
        };
        let mut report = Report {
            sink: told.sink,
            times: told.times,
            stats: told.stats,
            progress: told.progress,
        };
        engine.run(&mut machine, feed, &window, &mut report)?;
        match told.sink {
            Some(sink) => sink.flush(),
            None => Ok(()),
        }
    }
}

/// A supply whose first chunk was looked at.
struct Begun<'s> {
    first: Option<Inputs>,
    supply: &'s mut dyn Supply,
}

impl Begun<'_> {
    /// Waits for the first chunk; how many instances it has.
    fn begin(&mut self) -> Result<usize, Error> {
        if let Supplied::Instances(inputs) = self.supply.next(0, true)? {
            self.first = Some(*inputs);
        }
        Ok(self.first.as_ref().map_or(0, Inputs::len))
    }
}

impl Supply for Begun<'_> {
    fn next(&mut self, slot: usize, may_wait: bool) -> Result<Supplied, Error> {
        match self.first.take() {
            Some(inputs) => Ok(Supplied::Instances(Box::new(inputs))),
            None => self.supply.next(slot, may_wait),
        }
    }

    fn done(&mut self, inputs: Inputs) {
        self.supply.done(inputs);
    }

    fn given_up(&mut self) -> Vec<(u64, InstanceError)> {
        self.supply.given_up()
    }

    fn last_deadline(&self) -> Option<Instant> {
        self.supply.last_deadline()
    }

    fn reads_ahead(&self) -> bool {
        self.supply.reads_ahead()
    }

    fn is_divisible(&self) -> bool {
        self.supply.is_divisible()
    }

    fn bytes_read(&self) -> u64 {
        self.supply.bytes_read()
    }
}
