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
#[derive(Clone, Debug, Default)]
pub struct Laps<T> {
    laps: Vec<Lap<T>>,
    before: u64,
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
        let end = begin + Duration::from_micros(1);
        let mut laps = Laps {
            laps: [(7, 10), (8, 30)]
                .map(|(of, ticks)| Lap { of, ticks })
                .into(),
            before: 40,
        };
        let shares: Vec<_> = laps.within(begin, end).collect();
        assert_eq!(shares, [(7, 250), (8, 750)]);
        laps.begin();
        assert_eq!(laps.within(begin, end).count(), 0);
        // Of parts that took no tick nobody can tell.
        laps.laps.push(Lap { of: 7, ticks: 0 });
        assert_eq!(laps.within(begin, end).collect::<Vec<_>>(), [(7, 0)]);
    }

    #[test]
    fn the_counter_goes_on() {
        let mut laps = Laps::default();
        laps.begin();
        std::thread::sleep(Duration::from_millis(1));
        laps.lap(());
        assert!(laps.laps[0].ticks > 0);
    }
}
