//! Decisions are guessed, so that a device goes on while nobody on the host knows yet what was decided.
//!
//! On a device a flush that ends with a decision costs a launch, a copy to the host and the wait for it, however few
//! its rows. So an instance that comes to a decision *guesses* it, as branches are predicted in a processor: it keeps a
//! [`Checkpoint`] and *runs ahead*, recording what it would compute if the guess is right. One flush computes all of it, several
//! turns of a loop at once, and brings all decisions back together. The first one that was guessed wrong takes the instance
//! back to its checkpoint, where it goes on with what was decided; what it recorded behind that was computed for nothing.
//!
//! Nobody sees a guess. An instance that has run ahead ends, shows a value, and meets an error only when all guesses
//! before are known to be right; so results, errors and limits are those of an instance that waits. What is computed for nothing
//! are rows of their own, which no other row depends on.
//!
//! # What is guessed
//!
//! Truth values, by what was decided before: of each place of the program, and of how many decisions an instance had
//! made when it came there ([`Predictor`]). Loops that halt by a tensor have a distribution of steps, which these numbers are.
//! An instance runs ahead as long as it is likely enough to be on the right path, and as long as the rows that
//! it computes for nothing are worth it: see [`Predictor::guess`]. Programs whose lists grow in place are not guessed
//! for, since what is pushed cannot be taken back ([`cohort_abi::manifest::Manifest::grows_in_place`]), nor are instances while
//! several strands of them are there.

use cohort_abi::Handle;
use cohort_abi::manifest::{Elem, Manifest};

use crate::recorder::Saved;
use crate::threads::fiber::Checkpoint;

/// Decisions of an instance that are told apart by their number; those behind are one.
const NUMBERS: usize = 64;
/// How many decisions a place has made before the next one is guessed.
const LEAST_SEEN: u32 = 8;
/// The most that is believed of a decision where no instance has made one of that number at the place.
const MOST_CERTAIN: f32 = 0.75;
/// What was seen counts half when there is so much, so that it follows the data.
const MOST_SEEN: u32 = 1 << 10;
/// How likely an instance has to be on the right path to run on.
const LEAST_CHANCE: f32 = 0.25;
/// What a flush costs besides what it computes, in operations: those of a large card in some 40 µs, at a fifth of its peak, as
/// much as small batches reach.
const FLUSH_FLOPS: f32 = 5e8;
/// What a step of a flush takes however few its rows, in operations: some 8 µs.
const STEP_FLOPS: f32 = 1e8;
/// By how much the operations of the last flush count in those that are expected.
const NEWEST: f32 = 0.25;
/// Decisions that an instance has guessed at most, each with a checkpoint,
pub const MOST_GUESSES: usize = 64;
/// and how many there are at most of all instances, of a few KiB each.
const MOST_CHECKPOINTS: usize = 1 << 14;

/// A decision that was guessed.
pub struct Guess {
    /// The row that decides.
    pub handle: Handle,
    /// The place of the program that asks.
    pub force: u32,
    /// What it was guessed to be.
    pub bits: u32,
    /// Where the instance was before.
    pub before: Path,
    /// The fiber, and what the recorder has of the instance, when it asked; nothing, where no call was made since the guess
    /// before, so that it may as well go back there.
    pub origin: Option<(Checkpoint, Saved)>,
}

/// What was computed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Work {
    /// Operations of products.
    pub flops: u64,
    /// Steps of flushes: see [`crate::report::stats::DeviceStats::steps`].
    pub steps: u64,
}

/// Where an instance is that has run ahead.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Path {
    /// How likely it is the right path.
    chance: f32,
    /// Decisions that it ran ahead of.
    decisions: f32,
    /// Operations that all instances may be expected to have wasted if all of them are as far.
    wasted: f32,
}

impl Default for Path {
    /// Of one that has guessed nothing.
    fn default() -> Path {
        Path {
            chance: 1.0,
            decisions: 0.0,
            wasted: 0.0,
        }
    }
}

/// How often something was decided, and how often it was true.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    all: u32,
    truths: u32,
}

impl Seen {
    fn add(&mut self, truth: bool) {
        if self.all >= MOST_SEEN {
            self.all /= 2;
            self.truths /= 2;
        }
        self.all += 1;
        self.truths += u32::from(truth);
    }

    /// What is likelier, and how likely it is; nothing where too little was seen.
    fn likelier(self) -> Option<(bool, f32)> {
        if self.all < LEAST_SEEN {
            return None;
        }
        // As if it had been seen once more each way.
        let truth = (self.truths + 1) as f32 / (self.all + 2) as f32;
        Some(match truth >= 0.5 {
            true => (true, truth),
            false => (false, 1.0 - truth),
        })
    }
}

/// What was decided so far, of all instances.
pub struct Predictor {
    /// Of each place: by the number of the decision, and all together. None of a place that is no truth value.
    places: Vec<Option<(Box<[Seen; NUMBERS]>, Seen)>>,
    /// Operations that an instance computes from one decision to the next, on average.
    flops: f32,
    /// Steps that all instances together take meanwhile.
    steps: f32,
    /// What all flushes so far took.
    computed: Work,
    /// Checkpoints that nobody needs.
    idle: Vec<Checkpoint>,
    /// How many others there are.
    in_use: usize,
    /// Guesses that were made.
    pub guesses: u64,
    /// Guesses that were wrong.
    pub wrong: u64,
    /// Rows that were computed behind wrong guesses, for nothing.
    pub wasted_rows: u64,
}

impl Predictor {
    /// One for a program; none where it may not be guessed for.
    pub fn new(manifest: &Manifest) -> Option<Predictor> {
        if manifest.forces.is_empty() || manifest.grows_in_place {
            return None;
        }
        let is_truth = |pool: usize| manifest.row_pools[pool].elem == Elem::Bool;
        let places = manifest
            .forces
            .iter()
            .map(|force| {
                is_truth(force.pool)
                    .then(|| (Box::new([Seen::default(); NUMBERS]), Seen::default()))
            })
            .collect();
        Some(Predictor {
            places,
            flops: 0.0,
            steps: 0.0,
            computed: Work::default(),
            idle: Vec::new(),
            in_use: 0,
            guesses: 0,
            wrong: 0,
            wasted_rows: 0,
        })
    }

    /// Predicts what a place decides for an instance that is on `path` and has made `number` decisions, with `alive` instances
    /// in the batch. Returns the bits and the path extended by them, or `None` if the instance should wait.
    ///
    /// Each decision that all run ahead of spares a part of a flush. It costs what those compute that should not, and
    /// where nobody should, the time that this takes however few they are. It is worth that as long as it costs no
    /// more than the flush, and what was wasted in it, cost a decision so far.
    pub fn guess(
        &self,
        force: u32,
        number: usize,
        path: Path,
        alive: usize,
    ) -> Option<(u32, Path)> {
        let (numbers, all) = self.places.get(force as usize)?.as_ref()?;
        let of_number = numbers[number.min(NUMBERS - 1)].likelier();
        let of_all = || {
            all.likelier()
                .map(|(truth, likely)| (truth, likely.min(MOST_CERTAIN)))
        };
        let (truth, likely) = of_number.or_else(of_all)?;
        let chance = path.chance * likely;
        let (wrong, alive) = (1.0 - chance, alive as f32);
        let wasted = wrong * alive * self.flops + wrong.powf(alive) * self.steps * STEP_FLOPS;
        let decisions = path.decisions + 1.0;
        let is_worth = chance >= LEAST_CHANCE && wasted <= (FLUSH_FLOPS + path.wasted) / decisions;
        let path = Path {
            chance,
            decisions,
            wasted: path.wasted + wasted,
        };
        is_worth.then_some((u32::from(truth), path))
    }

    /// Records what a place decided as an instance's decision of this number.
    pub fn learn(&mut self, force: u32, number: usize, bits: u32) {
        if let Some(Some((numbers, all))) = self.places.get_mut(force as usize) {
            numbers[number.min(NUMBERS - 1)].add(bits != 0);
            all.add(bits != 0);
        }
    }

    /// Updates what work costs from that of all flushes so far, and from how many decisions the last one computed: of all
    /// instances, and at most of one.
    pub fn computed(&mut self, all: Work, decisions: usize, of_one: usize) {
        // They are counted anew, now and then.
        let since = |all: u64, before: u64| all.checked_sub(before).unwrap_or(all) as f32;
        let flops = since(all.flops, self.computed.flops);
        let steps = since(all.steps, self.computed.steps);
        self.computed = all;
        if decisions > 0 {
            self.flops += NEWEST * (flops / decisions as f32 - self.flops);
            self.steps += NEWEST * (steps / of_one as f32 - self.steps);
        }
    }

    /// Forgets what was counted, and not what was decided.
    pub fn clear_counts(&mut self) {
        (self.guesses, self.wrong, self.wasted_rows) = (0, 0, 0);
    }

    /// A checkpoint to write to, if there are not too many.
    pub fn checkpoint(&mut self) -> Option<Checkpoint> {
        if self.in_use >= MOST_CHECKPOINTS {
            return None;
        }
        self.in_use += 1;
        Some(self.idle.pop().unwrap_or_default())
    }

    /// Nobody goes back there.
    pub fn recycle(&mut self, checkpoint: Checkpoint) {
        self.in_use -= 1;
        self.idle.push(checkpoint);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use cohort_abi::manifest::{Force, RowPool};

    pub(crate) fn predictor() -> Predictor {
        let mut manifest = crate::memory::arena::tests::manifest();
        let pool = manifest.row_pools.len();
        manifest
            .row_pools
            .extend([Elem::Bool, Elem::F32].map(|elem| RowPool {
                elem,
                shape: vec![],
            }));
        manifest.forces = [pool, pool + 1]
            .map(|pool| Force {
                location: String::new(),
                pool,
            })
            .into();
        manifest.grows_in_place = true;
        assert!(Predictor::new(&manifest).is_none());
        manifest.grows_in_place = false;
        Predictor::new(&manifest).unwrap()
    }

    fn at(chance: f32) -> Path {
        Path {
            chance,
            ..Path::default()
        }
    }

    #[test]
    fn loops_are_guessed_by_their_lengths() {
        let mut predictor = predictor();
        assert!(predictor.guess(0, 0, at(1.0), 1).is_none());
        // Of four instances three leave behind the third step, and one goes on to the hundredth.
        for instance in 0..64 {
            let last = if instance % 4 == 0 { 99 } else { 2 };
            (0..=last).for_each(|step| predictor.learn(0, step, u32::from(step != last)));
        }
        let bits = |number, path| predictor.guess(0, number, path, 1).map(|(bits, _)| bits);
        let guessed = [0, 1, 2, 3, 50].map(|number| bits(number, at(1.0)));
        assert_eq!(guessed, [1, 1, 0, 1, 1].map(Some));
        let (_, path) = predictor.guess(0, 2, at(0.5), 1).unwrap();
        assert!((0.35..0.4).contains(&path.chance), "{path:?}");
        assert!(bits(2, at(LEAST_CHANCE)).is_none());
        // What is no truth value is never guessed, nor what the program does not have.
        for force in [1, 2] {
            (0..20).for_each(|_| predictor.learn(force, 0, 1));
            assert!(predictor.guess(force, 0, at(1.0), 1).is_none());
        }
    }

    #[test]
    fn what_was_seen_long_ago_is_forgotten() {
        let mut predictor = predictor();
        (0..4000).for_each(|_| predictor.learn(0, 5, 1));
        (0..1500).for_each(|_| predictor.learn(0, 5, 0));
        let guessed = predictor.guess(0, 5, at(1.0), 1);
        assert_eq!(guessed.map(|(bits, _)| bits), Some(0));
    }

    #[test]
    fn few_operations_are_wasted() {
        let mut predictor = predictor();
        (0..50).for_each(|number| predictor.learn(0, 0, u32::from(number % 10 > 0)));
        assert!(predictor.guess(0, 0, at(1.0), 10_000).is_some());
        // How many decisions instances run ahead of, where each goes on in nine of ten cases.
        let ahead = |predictor: &Predictor, alive| {
            let mut path = Path::default();
            let next = || {
                path = predictor.guess(0, 0, path, alive)?.1;
                Some(())
            };
            std::iter::from_fn(next).take(100).count()
        };
        let most = ahead(&predictor, 1000);
        // A million operations a decision.
        let work = |flops, steps| Work { flops, steps };
        (1..=100).for_each(|flush| predictor.computed(work(flush * 1_000_000_000, 0), 1000, 1));
        assert_eq!(ahead(&predictor, 1), most);
        let far = [300, 1000, 3000, 20_000].map(|alive| ahead(&predictor, alive));
        assert!(far.is_sorted_by(|some, more| some > more), "{far:?}");
        assert_eq!(far[3], 0);
        // Counted from the beginning.
        predictor.computed(work(0, 0), 10, 1);
        predictor.computed(work(1_000_000_000, 0), 1000, 1);
        assert!(ahead(&predictor, 1000) > 0);
        // Where each takes eight steps, one alone does not run far for nobody, and of many somebody does it.
        (1..=100).for_each(|flush| predictor.computed(work(flush, 8 * flush), 10, 1));
        assert!((1..most).contains(&ahead(&predictor, 1)));
        assert_eq!(ahead(&predictor, 100), most);
    }

    #[test]
    fn checkpoints_are_used_again_and_are_not_too_many() {
        let mut predictor = predictor();
        let mut taken: Vec<Checkpoint> = std::iter::from_fn(|| predictor.checkpoint()).collect();
        assert_eq!(taken.len(), MOST_CHECKPOINTS);
        predictor.recycle(taken.pop().unwrap());
        assert!(predictor.checkpoint().is_some() && predictor.checkpoint().is_none());
    }
}
