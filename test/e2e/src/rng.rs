//! Random numbers for tests: SplitMix64, the same everywhere from the same seed.
//!
//! What is made of random numbers is made smaller by making the numbers smaller: [`Rng::record`] keeps
//! them, and [`Rng::replay`] gives them again, and zeros when there are no more.

/// A generator of pseudo-random numbers.
#[derive(Clone, Debug)]
pub struct Rng {
    source: Source,
    /// What was chosen, if it is kept.
    choices: Option<Vec<u64>>,
}

#[derive(Clone, Debug)]
enum Source {
    Seed(u64),
    Choices(std::vec::IntoIter<u64>),
}

impl Rng {
    /// Numbers that follow from a seed.
    pub fn new(seed: u64) -> Rng {
        Rng {
            source: Source::Seed(seed),
            choices: None,
        }
    }

    /// Keeps what [`Rng::below`] and all that is made of it choose.
    pub fn record(mut self) -> Rng {
        self.choices = Some(Vec::new());
        self
    }

    /// Chooses what was chosen before.
    pub fn replay(choices: Vec<u64>) -> Rng {
        Rng {
            source: Source::Choices(choices.into_iter()),
            choices: None,
        }
    }

    /// What was chosen since recording began.
    pub fn choices(&self) -> &[u64] {
        self.choices.as_deref().unwrap_or_default()
    }

    /// 64 bits, each as likely as not; 0 where the recorded choices have ended.
    pub fn bits(&mut self) -> u64 {
        let state = match &mut self.source {
            Source::Seed(state) => state,
            Source::Choices(choices) => return choices.next().unwrap_or(0),
        };
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = *state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, which must not be zero.
    pub fn below(&mut self, bound: usize) -> usize {
        let chosen = self.bits() % bound as u64;
        if let Some(choices) = &mut self.choices {
            choices.push(chosen);
        }
        chosen as usize
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high - low + 1)
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// A number in [-1, 1) that an f32 holds exactly.
    pub fn signed_unit(&mut self) -> f64 {
        let bits = (self.bits() >> 40) as f64;
        bits / f64::from(1 << 23) - 1.0
    }

    /// One of the choices, of which there is at least one.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }

    /// Puts the elements in a random order.
    pub fn shuffle<T>(&mut self, elements: &mut [T]) {
        for last in (1..elements.len()).rev() {
            elements.swap(last, self.below(last + 1));
        }
    }
}
