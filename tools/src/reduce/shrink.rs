//! Makes what failed small: parts are left out as long as the rest still fails the same way.

use std::time::{Duration, Instant};

/// How often, and for how long, something smaller is tried.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    trials: usize,
    end: Instant,
}

impl Budget {
    /// So many trials, for at most this time from now on.
    pub fn new(trials: usize, time: Duration) -> Budget {
        Budget {
            trials,
            end: Instant::now() + time,
        }
    }

    /// Whether there is one more trial, which is taken.
    pub fn take(&mut self) -> bool {
        let is_left = self.trials > 0 && Instant::now() < self.end;
        self.trials = self.trials.saturating_sub(1);
        is_left
    }

    /// Whether there is no trial left.
    pub fn is_spent(&self) -> bool {
        self.trials == 0 || Instant::now() >= self.end
    }
}

/// The smallest list of units that was found; all of them are needed, if the budget was large enough.
pub fn shrink<T: Clone>(
    units: &[T],
    budget: &mut Budget,
    mut fails: impl FnMut(&[T]) -> bool,
) -> Vec<T> {
    let mut units = units.to_vec();
    let mut size = units.len().div_ceil(2);
    while size > 0 {
        let mut start = 0;
        let mut is_smaller = false;
        while start < units.len() {
            if !budget.take() {
                return units;
            }
            let end = (start + size).min(units.len());
            let rest = [&units[..start], &units[end..]].concat();
            if fails(&rest) {
                units = rest;
                is_smaller = true;
            } else {
                start = end;
            }
        }
        if size == 1 && !is_smaller {
            break;
        }
        size = match size {
            1 => 1,
            _ => size.div_ceil(2),
        };
    }
    units
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn only_what_is_needed_is_left() {
        let units: Vec<u32> = (0..100).collect();
        let needed = [3, 50, 51, 97];
        let fails = |units: &[u32]| needed.iter().all(|unit| units.contains(unit));
        assert_eq!(
            shrink(&units, &mut Budget::new(1000, MINUTE), fails),
            needed
        );
    }

    #[test]
    fn the_number_of_trials_is_bounded() {
        let mut asked = 0;
        shrink(&[0; 1000], &mut Budget::new(17, MINUTE), |_| {
            asked += 1;
            false
        });
        assert_eq!(asked, 17);
    }
}
