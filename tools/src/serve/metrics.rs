//! What the server counts: for Prometheus, and for the page.

use cohort_runtime::locks::locked;
use cohort_runtime::serving::ServingStats;
use prometheus::core::Collector;
use prometheus::{
    Histogram, HistogramOpts, IntCounter, IntCounterVec, IntGauge, Opts, Registry, TextEncoder,
    exponential_buckets,
};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::refusal::Refusal;

/// Requests whose latency the page shows.
const RECENT: usize = 1024;

/// Gets what a counter of the engine has.
type Get = fn(&ServingStats) -> u64;

pub struct Metrics {
    begin: Instant,
    registry: Registry,
    requests: IntCounterVec,
    seconds: Histogram,
    gauges: Vec<(IntGauge, Get)>,
    counters: Vec<(IntCounter, Get)>,
    /// Of the last requests that had a result, in seconds.
    recent: Mutex<VecDeque<f64>>,
}

fn gauge(name: &str, about: &str, get: Get) -> Result<(IntGauge, Get), prometheus::Error> {
    Ok((IntGauge::new(name, about)?, get))
}

fn counter(name: &str, about: &str, get: Get) -> Result<(IntCounter, Get), prometheus::Error> {
    Ok((IntCounter::new(name, about)?, get))
}

impl Metrics {
    pub fn new() -> Result<Metrics, prometheus::Error> {
        let registry = Registry::new();
        let requests = IntCounterVec::new(
            Opts::new("cohort_requests_total", "Requests for results, by status."),
            &["code"],
        )?;
        // From 0.1 ms to 26 s.
        let buckets = exponential_buckets(1e-4, 2.0, 19)?;
        let about = "Time from a request for results to its answer.";
        let options = HistogramOpts::new("cohort_request_seconds", about).buckets(buckets);
        let seconds = Histogram::with_opts(options)?;
        let metrics = Metrics {
            begin: Instant::now(),
            gauges: vec![
                gauge(
                    "cohort_instances_running",
                    "Instances that are computed now.",
                    |s| s.running as u64,
                )?,
                gauge("cohort_instances_queued", "Instances that wait.", |s| {
                    s.queued as u64
                })?,
            ],
            counters: vec![
                counter(
                    "cohort_instances_done_total",
                    "Instances with a result.",
                    |s| s.done,
                )?,
                counter(
                    "cohort_instances_failed_total",
                    "Instances with an error.",
                    |s| s.failed,
                )?,
                counter(
                    "cohort_instances_cancelled_total",
                    "Instances that nobody waited for any more.",
                    |s| s.cancelled,
                )?,
                counter(
                    "cohort_instances_late_total",
                    "Instances whose deadline came before their result.",
                    |s| s.late,
                )?,
                counter(
                    "cohort_instances_refused_total",
                    "Times that there was no room for an instance.",
                    |s| s.refused,
                )?,
                counter("cohort_launches_total", "Calls of kernels.", |s| s.launches)?,
                counter("cohort_rows_total", "Rows that kernels computed.", |s| {
                    s.rows
                })?,
            ],
            recent: Mutex::default(),
            registry,
            requests,
            seconds,
        };
        metrics.register(metrics.requests.clone())?;
        metrics.register(metrics.seconds.clone())?;
        for (gauge, _) in &metrics.gauges {
            metrics.register(gauge.clone())?;
        }
        for (counter, _) in &metrics.counters {
            metrics.register(counter.clone())?;
        }
        Ok(metrics)
    }

    fn register(&self, collector: impl Collector + 'static) -> Result<(), prometheus::Error> {
        self.registry.register(Box::new(collector))
    }

    /// A request was answered.
    pub fn answered(&self, status: hyper::StatusCode, time: Duration) {
        self.requests.with_label_values(&[status.as_str()]).inc();
        self.seconds.observe(time.as_secs_f64());
        if status.is_success() {
            let mut recent = locked(&self.recent);
            if recent.len() == RECENT {
                recent.pop_front();
            }
            recent.push_back(time.as_secs_f64());
        }
    }

    /// In Prometheus' text form.
    pub fn text(&self, stats: &ServingStats) -> Result<String, Refusal> {
        // One at a time: what is added to a counter follows from what it has.
        let _recent = locked(&self.recent);
        for (gauge, get) in &self.gauges {
            gauge.set(i64::try_from(get(stats)).unwrap_or(i64::MAX));
        }
        for (counter, get) in &self.counters {
            counter.inc_by(get(stats).saturating_sub(counter.get()));
        }
        let families = self.registry.gather();
        let text = TextEncoder::new().encode_to_string(&families);
        text.map_err(|error| Refusal::internal(error.to_string()))
    }

    /// For the page.
    pub fn page(&self, model: &str, in_flight: usize, stats: &ServingStats) -> Value {
        let recent = locked(&self.recent);
        let mut sorted: Vec<f64> = recent.iter().copied().collect();
        drop(recent);
        sorted.sort_by(f64::total_cmp);
        let quantile = |part: f64| {
            let last = sorted.len().checked_sub(1)?;
            Some(sorted[(part * last as f64).round() as usize])
        };
        json!({
            "model": model,
            "uptime_seconds": self.begin.elapsed().as_secs_f64(),
            "in_flight": in_flight,
            "running": stats.running,
            "queued": stats.queued,
            "done": stats.done,
            "failed": stats.failed,
            "cancelled": stats.cancelled,
            "late": stats.late,
            "refused": stats.refused,
            "launches": stats.launches,
            "rows": stats.rows,
            "latency_seconds": {"p50": quantile(0.5), "p90": quantile(0.9), "p99": quantile(0.99)},
        })
    }
}
