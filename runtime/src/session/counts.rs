//! What a run counts, as its statistics.

use std::time::{Duration, Instant};

use super::lane::Lane;
use super::{Batch, Session};
use crate::backward::Backward;
use crate::call_cache::call_bytes;
use crate::engine::Engine;
use crate::instance::strands::ENOUGH;
use crate::report::stats::{
    BatchStats, DeviceStats, GradientStats, KernelStats, ScheduleReuse, SchedulerStats,
    SpeculationStats, Stats, StrandStats, Times, peak_memory_bytes,
};
use crate::schedule::Policy;

impl Session {
    pub(super) fn clear_counts(&mut self) {
        for lane in self.lanes_mut() {
            lane.executor.clear_launches();
            lane.ended_early = 0;
            lane.recorder.clear_counts();
            if let Some(reuse) = &mut lane.reuse {
                reuse.clear_counts();
            }
            if let Some(engine) = &mut lane.engine {
                engine.clear_counts();
            }
        }
        if let Some(backward) = self.lane.engine.as_mut().and_then(Engine::backward_mut) {
            backward.clear_stats();
        }
    }

    /// What backward did, where gradients are computed.
    pub(super) fn gradient_stats(&self) -> Option<GradientStats> {
        let backward = self.lane.engine.as_ref().and_then(Engine::backward);
        backward.map(Backward::stats)
    }

    fn lanes(&self) -> impl Iterator<Item = &Lane> {
        [&self.lane].into_iter().chain(&self.beside)
    }

    pub(super) fn lanes_mut(&mut self) -> impl Iterator<Item = &mut Lane> {
        [&mut self.lane].into_iter().chain(&mut self.beside)
    }

    pub(super) fn new_stats(&self) -> Stats {
        Stats {
            load_seconds: self.load_seconds,
            threads: self.config.threads.max(1),
            ..Stats::default()
        }
    }

    /// Which order launches were in, and why; a run without batches has none.
    fn scheduler_stats(&self) -> Option<SchedulerStats> {
        if self.config.batch == Batch::Unbatched {
            return None;
        }
        if self.config.scheduler == Policy::Auto {
            let mut stats = self.lane.executor.scheduler_stats();
            for lane in &self.beside {
                stats.join(lane.executor.scheduler_stats());
            }
            return Some(stats);
        }
        let (asked, why) = match self.asked {
            Policy::Auto => (
                "auto",
                "on a device launches are queued, and no flush is timed by itself",
            ),
            _ if self.config.is_guided => ("profile-guided", "an earlier run used it"),
            asked => (asked.name(), "it was asked for"),
        };
        Some(SchedulerStats {
            asked: asked.to_owned(),
            used: self.config.scheduler.name().to_owned(),
            why: why.to_owned(),
            measured: Vec::new(),
        })
    }

    /// Why batches had fewer instances than they might have had, if that is so.
    fn batch_stats(&self) -> Option<BatchStats> {
        let ended_early = |lane: &Lane| {
            let of_engine = lane.engine.as_ref().map_or(0, Engine::ended_early);
            lane.ended_early + of_engine
        };
        let ended_early: u64 = self.lanes().map(ended_early).sum();
        (ended_early > 0).then(|| BatchStats {
            most_instances: self.config.batch_count() as u64,
            enough_bytes: self.enough.bytes,
            ended_early,
            why: format!(
                "{ended_early} ended before they had {} instances: {} KiB of rows and more are as much as the second \
                 cache holds beside weights, and launches were long, so that more instances would gain nothing",
                self.config.batch_count(),
                self.enough.bytes >> 10
            ),
        })
    }

    /// How many strands waited side by side, where instances have some.
    fn strand_stats(&self) -> Option<StrandStats> {
        let (mut side_by_side, mut in_turn) = (0, 0);
        for lane in self.lanes() {
            let forks = lane.recorder.forks();
            side_by_side += forks.side_by_side;
            in_turn += forks.in_turn;
        }
        let all = side_by_side + in_turn;
        (all > 0).then(|| StrandStats {
            side_by_side,
            in_turn,
            why: match in_turn {
                0 => format!("all {all} waited beside others of their instance"),
                _ => format!(
                    "{side_by_side} of {all} waited beside others of their instance, and the rest ran in their turn: \
                     {ENOUGH} instances and strands that wait fill a flush"
                ),
            },
        })
    }

    /// How decisions were guessed, if any was.
    fn speculation_stats(&self) -> Option<SpeculationStats> {
        let engines = self.lanes().filter_map(|lane| lane.engine.as_ref());
        let mut stats = SpeculationStats::default();
        for predictor in engines.filter_map(Engine::predictor) {
            stats.guesses += predictor.guesses;
            stats.wrong += predictor.wrong;
            stats.wasted_rows += predictor.wasted_rows;
        }
        (stats.guesses > 0).then_some(stats)
    }

    /// How schedules were reused, or why they were not.
    fn schedule_reuse(&self) -> ScheduleReuse {
        let mut stats = ScheduleReuse::default();
        for reuse in self.lanes().filter_map(|lane| lane.reuse.as_ref()) {
            let (counts, (kept, bytes)) = (reuse.counts(), reuse.kept());
            stats.reused += counts.reused;
            stats.recorded += counts.recorded;
            stats.kept += kept as u64;
            stats.kept_bytes += bytes as u64;
        }
        let all = stats.reused + stats.recorded;
        if all > 0 {
            stats.hit_rate = stats.reused as f64 / all as f64;
        }
        let manifest = self.program.manifest();
        if self.lane.reuse.is_none() {
            stats.unused = Some(if self.config.gradients {
                "gradients need the calls of each instance"
            } else if manifest.waits() {
                "instances wait for what is computed"
            } else if self.config.batch == Batch::Unbatched {
                "calls are not batched"
            } else if self.config.schedule_memory == 0 {
                "it was left out"
            } else {
                "calls may depend on more than the structure of instances"
            });
        }
        stats
    }

    pub(super) fn finish_stats(
        &self,
        stats: &mut Stats,
        read: Duration,
        times: Times,
        begin: Instant,
    ) {
        stats.read_seconds = read.as_secs_f64();
        stats.record_seconds = times.record.as_secs_f64();
        stats.execute_seconds = times.execute.as_secs_f64();
        for lane in self.lanes() {
            stats.schedule_seconds += lane.executor.schedule_nanoseconds() as f64 * 1e-9;
            stats.prelude_seconds += lane.executor.prelude_nanoseconds() as f64 * 1e-9;
            stats.prelude_tables.add(lane.executor.tables());
        }
        stats.write_seconds = times.write.as_secs_f64();
        let manifest = self.program.manifest();
        let mut all = self.lane.executor.launches().to_vec();
        for lane in &self.beside {
            for (launches, more) in all.iter_mut().zip(lane.executor.launches()) {
                launches.join(more);
            }
        }
        for (kernel, launches) in manifest.kernels.iter().zip(&all) {
            stats.kernel_launches += launches.launches;
            stats.rows += launches.rows;
            stats.kernels.push(KernelStats {
                name: kernel.name.clone(),
                location: kernel.location.clone(),
                launches: launches.launches,
                rows: launches.rows,
                seconds: launches.nanoseconds as f64 * 1e-9,
                flops: launches.flops(kernel.flops_per_row),
                bytes: launches.bytes(manifest, kernel),
                ragged: (launches.ragged.calls > 0).then_some(launches.ragged),
            });
        }
        stats.scheduler = self.scheduler_stats();
        stats.schedule_reuse = self.schedule_reuse();
        stats.strands = self.strand_stats();
        stats.speculation = self.speculation_stats();
        stats.batches = self.batch_stats();
        for lane in self.lanes() {
            stats.shared_calls += lane.recorder.shared_calls();
            for (kernel, calls) in lane.recorder.cached_calls().enumerate() {
                stats.kept_calls += calls as u64;
                stats.kept_bytes += calls as u64 * call_bytes(manifest, kernel);
            }
        }
        stats.gradients = self.gradient_stats();
        let engines = self.lanes().filter_map(|lane| lane.engine.as_ref());
        let wasted = engines.map(Engine::wasted_rows).sum::<u64>();
        stats.useful_rows_share = match stats.rows {
            0 => 1.0,
            rows => 1.0 - wasted.min(rows) as f64 / rows as f64,
        };
        if stats.kernel_launches > 0 {
            stats.mean_rows_per_launch = stats.rows as f64 / stats.kernel_launches as f64;
        }
        let devices = self.lanes().filter_map(|lane| lane.executor.device_stats());
        stats.device = devices.reduce(DeviceStats::join);
        stats.peak_memory_bytes = peak_memory_bytes();
        stats.wall_seconds = begin.elapsed().as_secs_f64();
    }
}
