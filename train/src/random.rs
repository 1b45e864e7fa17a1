//! Numbers that look random and are counted out: each stream is a function of the seed, of what it is for and
//! of a name, and no stream depends on whether another one was drawn from.
//!
//! A stream is ChaCha8 under the SHA-256 of those three.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use sha2::{Digest, Sha256};

/// A stream of random numbers.
pub struct Stream(ChaCha8Rng);

impl Stream {
    /// From its beginning, for a seed, what it is for, and a name.
    pub fn new(seed: u64, purpose: &str, name: &[u8]) -> Stream {
        let mut hash = Sha256::new();
        hash.update(seed.to_le_bytes());
        hash.update((purpose.len() as u64).to_le_bytes());
        hash.update(purpose.as_bytes());
        hash.update(name);
        Stream(ChaCha8Rng::from_seed(hash.finalize().into()))
    }

    /// In [0, 1), a multiple of 2^-24.
    pub fn uniform(&mut self) -> f64 {
        f64::from(self.0.next_u32() >> 8) / f64::from(1 << 24)
    }

    /// Of mean 0 and variance 1, by the method of Box and Muller, half of it.
    pub fn normal(&mut self) -> f64 {
        // In (0, 1].
        let radius = (f64::from(self.0.next_u32()) + 1.0) / 4_294_967_296.0;
        let angle = f64::from(self.0.next_u32()) / 4_294_967_296.0;
        (-2.0 * libm::log(radius)).sqrt() * libm::cos(std::f64::consts::TAU * angle)
    }

    /// Below `count`, each number as likely as the others: what the last part of the range holds too little
    /// of is drawn again.
    pub fn below(&mut self, count: u64) -> u64 {
        let count = count.max(1);
        let most = u64::MAX - u64::MAX % count;
        loop {
            let drawn = self.0.next_u64();
            if drawn < most {
                return drawn % count;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_by_seed_purpose_and_name() {
        let first = |seed, purpose, name: &[u8]| Stream::new(seed, purpose, name).below(u64::MAX);
        let drawn = [
            first(1, "a", b"x"),
            first(2, "a", b"x"),
            first(1, "b", b"x"),
            first(1, "a", b"y"),
            first(1, "ax", b""),
        ];
        for (index, number) in drawn.iter().enumerate() {
            assert!(!drawn[..index].contains(number));
        }
        assert_eq!(first(1, "a", b"x"), drawn[0]);
    }

    #[test]
    fn distributions_have_their_moments() {
        let mut stream = Stream::new(7, "test", b"");
        let count = 100_000;
        let moments = |draw: &mut dyn FnMut() -> f64| {
            let numbers: Vec<f64> = (0..count).map(|_| draw()).collect();
            let mean = numbers.iter().sum::<f64>() / f64::from(count);
            let square = |x: &f64| (x - mean) * (x - mean);
            (
                mean,
                numbers.iter().map(square).sum::<f64>() / f64::from(count),
            )
        };
        let (mean, variance) = moments(&mut || stream.uniform());
        assert!((mean - 0.5).abs() < 0.01 && (variance - 1.0 / 12.0).abs() < 0.002);
        let (mean, variance) = moments(&mut || stream.normal());
        assert!(mean.abs() < 0.01 && (variance - 1.0).abs() < 0.02);
    }
}
