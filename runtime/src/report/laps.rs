//! What the parts of a span take, where a part is too short to read the clock for.
//!
//! A launch of a few rows takes less than a microsecond, and to read the clock some thirtieth of one. Parts are told
//! from each other by the processor's counter, which takes a third of that, and the clock is read once, at the end:
//! each part has taken its share of what it says.

use std::time::Instant;

/// A part: how it is counted, and the counter's ticks that it took.
#[derive(Clone, Copy, Debug)]
struct Lap<T> {
    of: T,
    ticks: u64,
}

/// The parts of a span, one behind another. Its memory is kept from span to span.
#[derive(Clone, Debug)]
pub struct Laps<T> {
    laps: Vec<Lap<T>>,
    before: u64,
}

impl<T> Default for Laps<T> {
    fn default() -> Self {
        Laps {
            laps: Vec::new(),
            before: 0,
        }
    }
}

impl<T: Copy> Laps<T> {
    /// The first part begins here.
    pub fn begin(&mut self) {
        self.laps.clear();
        self.before = ticks();
    }

    /// A part ends here, and the next one begins.
    #[inline]
    pub fn lap(&mut self, of: T) {
        let now = ticks();
        // Counters of two sockets may differ.
        let ticks = now.saturating_sub(self.before);
        self.laps.push(Lap { of, ticks });
        self.before = now;
    }

    /// Each part with its nanoseconds, where all of them took from one time to another.
    pub fn within(&self, begin: Instant, end: Instant) -> impl Iterator<Item = (T, u64)> {
        let all: u64 = self.laps.iter().map(|lap| lap.ticks).sum();
        let nanoseconds = (end - begin).as_nanos() as f64;
        let of_tick = nanoseconds / all.max(1) as f64;
        let laps = self.laps.iter();
        laps.map(move |lap| (lap.of, (lap.ticks as f64 * of_tick) as u64))
    }
}

/// The processor's counter of time, of whatever frequency.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn ticks() -> u64 {
    // SAFETY: every processor of this kind has the counter.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// The processor's counter of time, of whatever frequency.
#[cfg(target_arch = "aarch64")]
#[inline(always)]
fn ticks() -> u64 {
    let ticks: u64;
    // SAFETY: every processor of this kind has the counter, and programs may read it.
    unsafe {
        std::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack));
    }
    ticks
}

/// The clock, in nanoseconds.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn ticks() -> u64 {
    static BEGIN: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);
    BEGIN.elapsed().as_nanos() as u64
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn parts_have_their_shares_of_the_whole() {
        let begin = Instant::now();
        let mut laps = Laps::default();
        assert_eq!(laps.within(begin, begin).count(), 0);
        laps.begin();
        for (part, milliseconds) in [(7, 10), (8, 30)] {
            std::thread::sleep(Duration::from_millis(milliseconds));
            laps.lap(part);
        }
        let second = Duration::from_secs(1);
        let shares: Vec<_> = laps.within(begin, begin + second).collect();
        let [(7, first), (8, last)] = shares[..] else {
            panic!("{shares:?}")
        };
        // A thread sleeps as long as it is told at least, and no longer than that but where others run.
        assert!(first < last, "{shares:?}");
        assert!(
            (999_999_000..=1_000_000_000).contains(&(first + last)),
            "{shares:?}"
        );
        laps.begin();
        assert_eq!(laps.within(begin, begin + second).count(), 0);
    }
}
