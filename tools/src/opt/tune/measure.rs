//! Programs that run over the same instances, in turns, and how long each of their kernels takes.

use std::collections::BTreeMap;
use std::time::Instant;

use cohort_runtime::{Config, Program, Session, Weights};

use crate::exit::{Stop, stop};

/// Programs run in turns as often as this at least, however long it takes, and at most.
const LEAST_TURNS: usize = 3;
const MOST_TURNS: usize = 101;

/// A loaded program with what it runs over.
pub struct Measured<'a> {
    session: Session,
    instances: &'a [u8],
}

/// What a run gave, and how long it took.
pub struct Run {
    pub output: Vec<u8>,
    pub times: Times,
}

/// Seconds of a run.
pub struct Times {
    /// Recording and kernels, without reading and writing lines.
    pub seconds: f64,
    /// Of each kernel by its name.
    pub kernels: BTreeMap<String, f64>,
}

impl Measured<'_> {
    pub fn new<'a>(
        program: Program,
        weights: &Weights,
        instances: &'a [u8],
    ) -> Result<Measured<'a>, Stop> {
        let config = Config {
            // Each run computes all that there is to compute.
            keep_memory: 0,
            allow_unused_weights: true,
            debug: false,
            ..Config::default()
        };
        let session = Session::new(program, weights, config).map_err(stop)?;
        Ok(Measured { session, instances })
    }

    pub fn run(&mut self) -> Result<Run, Stop> {
        let mut output = Vec::new();
        let stats = self
            .session
            .run_stream(self.instances, &mut output, &mut |_| {});
        let stats = stats.map_err(stop)?;
        if stats.instances == 0 {
            return Err(Stop::usage(
                "`--tune` needs some instances, and `--input` has none",
            ));
        }
        if stats.failed > 0 {
            let text = String::from_utf8_lossy(&output);
            let first = text
                .lines()
                .find(|line| line.contains("\"error\""))
                .unwrap_or_default();
            return Err(Stop::usage(format!(
                "`--tune` needs instances that can be computed: {} of {} failed; the first: {first}",
                stats.failed, stats.instances
            )));
        }
        let mut kernels = BTreeMap::new();
        for kernel in &stats.kernels {
            *kernels.entry(kernel.name.clone()).or_insert(0.0) += kernel.seconds;
        }
        let seconds = stats.record_seconds + stats.execute_seconds;
        Ok(Run {
            output,
            times: Times { seconds, kernels },
        })
    }
}

/// Runs two programs in turns until then: what comes and goes on a machine meets both. Who begins changes, too.
pub fn in_turns(
    a: &mut Measured<'_>,
    b: &mut Measured<'_>,
    until: Instant,
) -> Result<Vec<[Times; 2]>, Stop> {
    // The first run of each is one to warm up.
    a.run()?;
    b.run()?;
    let mut turns = Vec::new();
    while turns.len() < LEAST_TURNS || (turns.len() < MOST_TURNS && Instant::now() < until) {
        let turn = match turns.len() % 2 {
            0 => [a.run()?.times, b.run()?.times],
            _ => {
                let of_b = b.run()?.times;
                [a.run()?.times, of_b]
            }
        };
        turns.push(turn);
    }
    Ok(turns)
}

/// The middle one of numbers, the lower of two; 1 where there are none.
pub fn median(numbers: impl Iterator<Item = f64>) -> f64 {
    let mut numbers: Vec<f64> = numbers.collect();
    numbers.sort_by(f64::total_cmp);
    let middle = numbers.len().saturating_sub(1) / 2;
    numbers.get(middle).copied().unwrap_or(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), 2.0);
        assert_eq!(median([4.0, 1.0, 3.0, 2.0].into_iter()), 2.0);
        assert_eq!(median([f64::NAN, 1.0, 2.0].into_iter()), 2.0);
        assert_eq!(median(std::iter::empty()), 1.0);
    }
}
