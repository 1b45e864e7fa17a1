//! Step 5 of a flush where the kernels are on a device, and the rows that come back from there.

use std::time::Instant;

use cohort_abi::Handle;
use cohort_abi::manifest::{Manifest, Operand, Unit};

use super::kernel::Kernel;
use super::ragged::{RaggedLaunches, Run};
use super::tables::Tables;
use super::{Executor, Generation, launch};
use crate::device::runner::{Placed, Runner, Work};
use crate::error::Error;
use crate::memory::arena::Region;
use crate::report::profile::Span;
use crate::report::stats::DeviceStats;

/// Consecutive rows of a value, the first of which a handle names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The first row.
    pub handle: Handle,
    /// The number of its row pool.
    pub pool: usize,
    /// How many rows.
    pub rows: u64,
}

/// Writes what kernels on a device read among the index lists: lists of operands that lie in one piece,
/// and tables of lengths.
fn write_lists(
    placed: &[launch::Placed],
    kernels: &[Kernel],
    ragged: &RaggedLaunches,
    tables: &Tables,
    index: &mut [u32],
) {
    for placed in placed {
        let Some(number) = placed.ragged.filter(|_| placed.rows > 0) else {
            continue;
        };
        let launch = &ragged.launches[number];
        let kernel = &kernels[placed.kernel as usize];
        let entries = placed.entries as usize;
        let list = |position: usize| {
            let start = placed.index_start + position * entries;
            start..start + entries
        };
        for (position, operand) in kernel.operands.iter().enumerate() {
            let index = &mut index[list(position)];
            match (operand, ragged.run(number, position)) {
                (Operand::Length, _) if kernel.form.unit == Unit::Calls => {
                    let column = kernel.form.column(position);
                    index.copy_from_slice(tables.lengths(launch.tables, column));
                }
                (Operand::Row { .. } | Operand::Ragged { .. }, run) => match run {
                    Run::ByCall => index.copy_from_slice(ragged.firsts(number, position)),
                    Run::OnePiece { first } => count(index, first, 0..),
                    Run::Pieces => unreachable!("a device computes all calls at once"),
                    Run::Listed { first, list } => {
                        count(index, first, tables.list(list).iter().copied());
                    }
                },
                _ => {}
            }
        }
        if kernel.form.unit == Unit::Calls {
            let index = &mut index[list(kernel.operands.len())];
            match tables.starts(launch.tables) {
                Some(starts) => index.copy_from_slice(starts),
                None => count(index, 0, 0..),
            }
        }
    }
}

/// Writes rows that are counted from a first one.
fn count(index: &mut [u32], first: u32, offsets: impl Iterator<Item = u32>) {
    for (entry, offset) in index.iter_mut().zip(offsets) {
        *entry = first.wrapping_add(offset);
    }
}

impl launch::Placed {
    fn on_device(&self, wave: u32, part_ends: Option<usize>) -> Placed {
        Placed {
            kernel: self.kernel,
            rows: self.rows,
            entries: self.entries,
            index_start: self.index_start,
            result_start: self.result_start,
            list_start: self.list_start,
            wave,
            part_ends,
        }
    }
}

impl Executor {
    /// Moves all kernels to a device.
    pub(super) fn move_to(&mut self, mut runner: Runner, manifest: &Manifest) {
        for region in self.arena.sources() {
            runner.put(region);
        }
        self.device = Some(Box::new(runner));
        self.deciding = manifest.forces.iter().map(|force| force.pool).collect();
    }

    /// Whether kernels run on a device rather than on the processor.
    pub fn is_on_device(&self) -> bool {
        self.device.is_some()
    }

    /// Whether batches may run beside those of this one: on a device, where it has memory for them.
    pub fn has_room_beside(&self) -> bool {
        (self.device.as_ref()).is_none_or(|runner| runner.has_room_beside())
    }

    /// What the device did since the last [`Executor::clear_launches`].
    pub fn device_stats(&self) -> Option<DeviceStats> {
        let runner = self.device.as_ref()?;
        Some(runner.stats())
    }

    /// Steps of its flushes so far, as [`DeviceStats::steps`] counts them.
    pub fn device_steps(&self) -> u64 {
        (self.device.as_ref()).map_or(0, |runner| runner.steps())
    }

    pub(super) fn launch_on_device(&mut self, index_length: usize) -> Result<(), Error> {
        write_lists(
            &self.placed,
            &self.kernels,
            &self.ragged,
            &self.tables,
            self.index.words_mut(),
        );
        let mut launches = Vec::with_capacity(self.cached.placed.len() + self.placed.len());
        // Before the first wave.
        launches.extend((self.cached.placed.iter()).map(|placed| placed.on_device(0, None)));
        let parts = self.division.parts;
        let mut part_ends = Vec::new();
        for (number, (placed, launch)) in self.placed.iter().zip(&self.groups.launches).enumerate()
        {
            // Of values without rows.
            if placed.rows == 0 {
                continue;
            }
            let is_divided = parts > 0 && !self.is_shared(number);
            let begin = is_divided.then_some(part_ends.len());
            if is_divided {
                let end = |part| self.division.end(part, number, self.placed.len());
                part_ends.extend((0..parts).map(end));
            }
            launches.push(placed.on_device(launch.wave, begin));
        }
        let Some(runner) = &mut self.device else {
            return Ok(());
        };
        let lists = self.lists.operands.iter();
        let lists: Vec<(usize, usize)> = lists.map(|list| (list.offsets, list.rows)).collect();
        let work = Work {
            launches: &launches,
            result_rows: &self.result_rows,
            index: &self.index.words_mut()[..index_length],
            offsets: &self.lists.offsets,
            lists: &lists,
            parts,
            part_ends: &part_ends,
        };
        let begin = Instant::now();
        runner.flush(&self.arena, &work)?;
        for placed in self.placed.iter().filter(|placed| placed.rows > 0) {
            if let Some(ragged) = placed.ragged {
                let (work, _) = self.tables.work(self.ragged.launches[ragged].tables);
                self.launches[placed.kernel as usize].ragged.add(work);
            }
        }
        // Times are known of all calls, or of none.
        let mut seconds = runner.call_seconds()?.iter();
        // When a call began is not known: they are shown one behind another.
        let mut at = self.profile.as_ref().map_or(0, |profile| profile.at(begin));
        for placed in &launches {
            let nanoseconds = seconds.next().map_or(0, |seconds| (seconds * 1e9) as u64);
            self.launches[placed.kernel as usize].add(placed.rows, nanoseconds);
            if let Some(profile) = &self.profile {
                let what = Span::Launch {
                    kernel: placed.kernel,
                    calls: placed.entries,
                    rows: placed.rows,
                };
                profile.timed(what, self.workers.threads() as u32, at, nanoseconds);
                at += nanoseconds;
            }
        }
        Ok(())
    }

    /// Waits for a flush and brings everything to the host that can decide, in one copy: a decision
    /// that is read later, or again, costs no other one.
    pub(super) fn fetch_deciding(&mut self, regions: &[Region]) -> Result<(), Error> {
        let cached: Vec<Region> = self.new_cached_regions().collect();
        let Some(runner) = &mut self.device else {
            return Ok(());
        };
        let decides = |region: &&Region| self.deciding.contains(&region.pool);
        let mut rows: Vec<Region> = regions.iter().filter(decides).copied().collect();
        rows.extend(cached.iter().filter(decides));
        runner.fetch(&mut self.arena, &mut rows)
    }

    /// Brings rows that are wanted on the host, if they are on a device. What has no row is left
    /// out; that is reported when it is read.
    pub fn fetch(&mut self, wanted: &[Wanted]) -> Result<(), Error> {
        let Some(runner) = &mut self.device else {
            return Ok(());
        };
        // Sources and inputs never left the host.
        let (numbering, chunks) = (self.numbering, self.chunks.len());
        let is_computed = |bucket: usize| {
            numbering.cached_kernel(bucket).is_some() || bucket >= numbering.first_call(chunks)
        };
        let mut rows = Vec::with_capacity(wanted.len());
        for want in wanted
            .iter()
            .filter(|want| is_computed(want.handle.bucket() as usize))
        {
            let all = self.arena.rows(want.pool);
            if let Some(first) = self.rows.find(want.handle.0, all)
                && want.rows <= all - first
            {
                rows.push(Region {
                    pool: want.pool,
                    first: first as u32,
                    rows: want.rows as u32,
                });
            }
        }
        runner.fetch(&mut self.arena, &mut rows)
    }

    /// Brings everything to the host that a flush computed, if it is on a device.
    pub fn fetch_all(&mut self, generation: &Generation) -> Result<(), Error> {
        let cached: Vec<Region> = self.new_cached_regions().collect();
        let Some(runner) = &mut self.device else {
            return Ok(());
        };
        let mut rows = [&generation.regions[..], &cached].concat();
        runner.fetch(&mut self.arena, &mut rows)
    }
}
