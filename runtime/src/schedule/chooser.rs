//! Chooses between two schedulers by what their flushes took.
//!
//! Whether fewer launches are worth looking at the calls depends on the kernels, on the machine and on the
//! instances, so it is measured. A run begins by depth. When it has computed enough for a choice to matter, there
//! is a *trial*: the two take turns flush by flush, and two flushes side by side, which are about equally large,
//! make a pair. The pair's ratio is that of their seconds a row. Of these ratios the median counts, each weighing
//! as much as its quicker flush took: a thread that was interrupted spoils a pair and not the trial. The one in use
//! stays unless the other is better by a margin, and long after it there is another trial, each later than
//! the one before.
//!
//! No result depends on the choice. The number of launches does, where the two differ in it.

/// Flushes, and rows, that a run computes before the first trial; a smaller run has nothing to choose.
const FIRST_FLUSHES: u64 = 2;
const FIRST_ROWS: u64 = 1 << 14;
/// A trial ends after this number of pairs, if they have this number of rows,
const FEWEST_PAIRS: usize = 6;
const TRIAL_ROWS: u64 = 1 << 17;
/// or after this number of pairs, whatever their rows.
const MOST_PAIRS: usize = 128;
/// It ends sooner if this number of flushes have no fewer launches by looking ahead.
const BARREN: u64 = 16;
/// By which part of its time the other one must be better.
const MARGIN: f64 = 0.02;
/// Flushes between the first trial and the second, for each of the trial; from then on twice as many each time,
/// up to a limit.
const FIRST_PAUSE: u64 = 8;
const LAST_PAUSE: u64 = 64;

/// A scheduler that is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arm {
    /// Bucket by bucket, the least deep first.
    Depth,
    /// Looking ahead, see [`super::lookahead`].
    Lookahead,
}

impl Arm {
    fn other(self) -> Arm {
        match self {
            Arm::Depth => Arm::Lookahead,
            Arm::Lookahead => Arm::Depth,
        }
    }

    /// As statistics call it.
    pub fn name(self) -> &'static str {
        match self {
            Arm::Depth => "depth",
            Arm::Lookahead => "lookahead",
        }
    }
}

/// What is known of a flush when it is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Taken {
    /// Rows that it computes.
    pub rows: u64,
    /// Launches that it has.
    pub launches: u64,
    /// How many launches it has by depth.
    pub by_depth: u64,
    /// How long it took, from the search for launches to the end of the last.
    pub seconds: f64,
}

/// Why the one in use is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reason {
    /// There was no trial so far.
    Little {
        /// Rows that were computed so far.
        rows: u64,
    },
    /// By looking ahead no flush of the trial had fewer launches.
    Barren {
        /// Flushes that it scheduled in the trial.
        flushes: u64,
    },
    /// The look-ahead took this part of the time by depth.
    Measured {
        /// Its seconds a row over those by depth, a median.
        ratio: f64,
        /// Of how many pairs of flushes.
        pairs: usize,
    },
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Reason::Little { rows } if *rows >= FIRST_ROWS => {
                write!(f, "there was too little to compute for a whole trial")
            }
            Reason::Little { rows } => write!(
                f,
                "too little was computed to choose by: {rows} rows, and {FIRST_ROWS} are needed"
            ),
            Reason::Barren { flushes } => write!(
                f,
                "looking ahead saved no launch in any of the {flushes} flushes where it was tried"
            ),
            Reason::Measured { ratio, pairs } => write!(
                f,
                "a row took {ratio:.3} times as long by looking ahead as by depth, the median of \
                 {pairs} pairs of flushes; the other one must be better by {:.0} %",
                MARGIN * 100.0
            ),
        }
    }
}

#[derive(Debug)]
enum Stage {
    /// No trial, for this number of flushes.
    Settled {
        flushes: u64,
    },
    Trial(Trial),
}

#[derive(Debug, Default)]
struct Trial {
    /// The look-ahead's seconds a row over those by depth, and the seconds of the quicker one.
    pairs: Vec<(f64, f64)>,
    first: Option<(Arm, Taken)>,
    rows: u64,
    /// Flushes by looking ahead, and the launches that they saved.
    flushes: u64,
    saved: u64,
}

/// Measures flushes, and says how the next one is scheduled.
#[derive(Debug)]
pub struct Chooser {
    used: Arm,
    reason: Reason,
    stage: Stage,
    /// Of the next pause, for each flush of the trial before it.
    pause: u64,
}

impl Default for Chooser {
    fn default() -> Chooser {
        Chooser {
            used: Arm::Depth,
            reason: Reason::Little { rows: 0 },
            stage: Stage::Settled {
                flushes: FIRST_FLUSHES,
            },
            pause: FIRST_PAUSE,
        }
    }
}

impl Chooser {
    /// Which one is in use, but for trials.
    pub fn used(&self) -> Arm {
        self.used
    }

    /// Why that one is in use.
    pub fn reason(&self) -> Reason {
        self.reason
    }

    /// Which one schedules the next flush.
    pub fn next(&self) -> Arm {
        match &self.stage {
            Stage::Settled { .. } => self.used,
            Stage::Trial(trial) => match trial.first {
                Some((first, _)) => first.other(),
                // Every second pair begins with the other one, so that what grows or shrinks from flush to
                // flush is to the advantage of neither.
                None if trial.pairs.len() % 2 == 1 => self.used.other(),
                None => self.used,
            },
        }
    }

    /// The flush that [`Chooser::next`] was asked for took that.
    pub fn took(&mut self, taken: Taken) {
        let arm = self.next();
        match &mut self.stage {
            Stage::Settled { flushes } => {
                *flushes = flushes.saturating_sub(1);
                let is_ready = match &mut self.reason {
                    Reason::Little { rows } => {
                        *rows += taken.rows;
                        *rows >= FIRST_ROWS
                    }
                    _ => true,
                };
                if is_ready && *flushes == 0 {
                    self.stage = Stage::Trial(Trial::default());
                }
            }
            Stage::Trial(trial) => {
                trial.add(arm, taken);
                let is_over = trial.is_over();
                if trial.saved == 0 && (is_over || trial.flushes >= BARREN) {
                    let flushes = trial.flushes;
                    self.settle(Arm::Depth, Reason::Barren { flushes }, 2 * flushes);
                } else if is_over {
                    let (ratio, pairs) = (trial.ratio(), trial.pairs.len());
                    let used = match self.used {
                        Arm::Depth if ratio < 1.0 - MARGIN => Arm::Lookahead,
                        Arm::Lookahead if ratio > 1.0 / (1.0 - MARGIN) => Arm::Depth,
                        used => used,
                    };
                    self.settle(used, Reason::Measured { ratio, pairs }, 2 * pairs as u64);
                }
            }
        }
    }

    /// Ends a trial that took `flushes`.
    fn settle(&mut self, used: Arm, reason: Reason, flushes: u64) {
        (self.used, self.reason) = (used, reason);
        self.stage = Stage::Settled {
            flushes: self.pause * flushes,
        };
        self.pause = (2 * self.pause).min(LAST_PAUSE);
    }
}

impl Trial {
    fn add(&mut self, arm: Arm, taken: Taken) {
        if arm == Arm::Lookahead {
            self.flushes += 1;
            self.saved += taken.by_depth.saturating_sub(taken.launches);
        }
        self.rows += taken.rows;
        let Some((first, other)) = self.first.take() else {
            self.first = Some((arm, taken));
            return;
        };
        let (depth, lookahead) = match first {
            Arm::Depth => (other, taken),
            Arm::Lookahead => (taken, other),
        };
        let a_row = |taken: Taken| taken.seconds / taken.rows.max(1) as f64;
        let ratio = a_row(lookahead) / a_row(depth).max(f64::MIN_POSITIVE);
        self.pairs
            .push((ratio, depth.seconds.min(lookahead.seconds)));
    }

    fn is_over(&self) -> bool {
        let pairs = self.pairs.len();
        self.first.is_none()
            && (pairs >= MOST_PAIRS || (pairs >= FEWEST_PAIRS && self.rows >= TRIAL_ROWS))
    }

    /// The weighted median of the pairs.
    fn ratio(&mut self) -> f64 {
        self.pairs.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        let half = self.pairs.iter().map(|(_, weight)| weight).sum::<f64>() / 2.0;
        let mut sum = 0.0;
        let median = self.pairs.iter().find(|(_, weight)| {
            sum += weight;
            sum >= half
        });
        median.map_or(1.0, |(ratio, _)| *ratio)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs flushes of `rows` rows whose seconds a row are those of the arm; gives how many were
    /// scheduled by looking ahead.
    fn run(
        chooser: &mut Chooser,
        flushes: u64,
        rows: u64,
        mut a_row: impl FnMut(u64, Arm) -> f64,
    ) -> u64 {
        let mut ahead = 0;
        for flush in 0..flushes {
            let arm = chooser.next();
            ahead += u64::from(arm == Arm::Lookahead);
            chooser.took(Taken {
                rows,
                launches: if arm == Arm::Lookahead { 7 } else { 10 },
                by_depth: 10,
                seconds: rows as f64 * a_row(flush, arm),
            });
        }
        ahead
    }

    fn costs(depth: f64, lookahead: f64) -> impl Fn(u64, Arm) -> f64 {
        move |_, arm| match arm {
            Arm::Depth => depth,
            Arm::Lookahead => lookahead,
        }
    }

    #[test]
    fn what_is_better_by_a_margin_is_used() {
        let mut chooser = Chooser::default();
        run(&mut chooser, 400, 1000, costs(1e-6, 0.9e-6));
        assert_eq!(chooser.used(), Arm::Lookahead);
        let Reason::Measured { ratio, .. } = chooser.reason() else {
            panic!("{:?}", chooser.reason());
        };
        assert!((ratio - 0.9).abs() < 1e-9);
        let mut chooser = Chooser::default();
        run(&mut chooser, 400, 1000, costs(1e-6, 1.1e-6));
        assert_eq!(chooser.used(), Arm::Depth);
    }

    #[test]
    fn a_run_that_is_small_stays_by_depth() {
        let mut chooser = Chooser::default();
        assert_eq!(run(&mut chooser, 1000, 16, costs(1e-6, 0.1e-6)), 0);
        assert_eq!(chooser.reason(), Reason::Little { rows: 16_000 });
        let mut chooser = Chooser::default();
        assert_eq!(run(&mut chooser, 2, 1 << 20, costs(1e-6, 0.1e-6)), 0);
    }

    #[test]
    fn what_is_about_as_good_never_replaces_what_is_in_use() {
        for start in [0.9, 1.1] {
            let mut chooser = Chooser::default();
            run(&mut chooser, 100, 10_000, costs(1e-6, start * 1e-6));
            let used = chooser.used();
            for ratio in [0.99, 1.01, 0.985, 1.015] {
                run(&mut chooser, 4000, 10_000, costs(1e-6, ratio * 1e-6));
                assert_eq!(chooser.used(), used);
            }
        }
    }

    #[test]
    fn what_changes_in_a_long_run_is_noticed() {
        let mut chooser = Chooser::default();
        run(&mut chooser, 100, 10_000, costs(1e-6, 0.8e-6));
        assert_eq!(chooser.used(), Arm::Lookahead);
        run(&mut chooser, 1000, 10_000, costs(1e-6, 1.3e-6));
        assert_eq!(chooser.used(), Arm::Depth);
        run(&mut chooser, 3000, 10_000, costs(1e-6, 0.8e-6));
        assert_eq!(chooser.used(), Arm::Lookahead);
    }

    #[test]
    fn trials_are_a_small_part_of_a_long_run() {
        let mut chooser = Chooser::default();
        let ahead = run(&mut chooser, 10_000, 1000, costs(1e-6, 2e-6));
        assert!(ahead < 400, "{ahead}");
    }

    #[test]
    fn neither_interruptions_nor_growing_flushes_deceive() {
        let mut chooser = Chooser::default();
        // Each fifth flush takes ten times as long, and each is a little slower than the one before.
        run(&mut chooser, 200, 1000, |flush, arm| {
            let noise = if flush % 5 == 3 { 10.0 } else { 1.0 };
            let grown = 1.0 + flush as f64 * 0.005;
            costs(1e-6, 0.9e-6)(flush, arm) * noise * grown
        });
        let Reason::Measured { ratio, .. } = chooser.reason() else {
            panic!("{:?}", chooser.reason());
        };
        assert!((0.85..0.95).contains(&ratio), "{ratio}");
    }

    #[test]
    fn where_nothing_is_saved_the_trial_is_short() {
        let mut chooser = Chooser::default();
        let mut ahead = 0;
        for _ in 0..500 {
            ahead += u64::from(chooser.next() == Arm::Lookahead);
            chooser.took(Taken {
                rows: 10_000,
                launches: 10,
                by_depth: 10,
                seconds: 1.0,
            });
        }
        assert!(ahead < 50, "{ahead}");
        assert_eq!(chooser.used(), Arm::Depth);
        assert!(matches!(chooser.reason(), Reason::Barren { .. }));
    }
}
