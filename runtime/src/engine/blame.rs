//! Whose time it was, when a flush of several instances takes too long.
//!
//! What an instance recorded says how much work it is. When a flush is given up, its time is charged to
//! its instances by that, and they run again, apart: no batch has more than half of the work, so that
//! what takes most of it is alone, or with few, from the first cut on, and those beside it lose nothing
//! of their own time. How the work is estimated decides nothing but who runs again with whom.

use std::time::Duration;

/// The work of the instances of a flush that was given up, each by its place.
pub struct Blame {
    works: Vec<u64>,
    all: f64,
}

impl Blame {
    pub fn of(mut works: Vec<u64>) -> Blame {
        // Where nothing is known, all are equal.
        works.iter_mut().for_each(|work| *work = (*work).max(1));
        let all = works.iter().map(|work| *work as f64).sum();
        Blame { works, all }
    }

    /// The part of the flush's time that was one instance's.
    pub fn charge(&self, place: usize, time: Duration) -> Duration {
        time.mul_f64((self.works[place] as f64 / self.all).min(1.0))
    }

    /// The places, from those with little work to those with much.
    pub fn lightest_first(&self) -> Vec<usize> {
        let mut places: Vec<usize> = (0..self.works.len()).collect();
        places.sort_by_key(|place| self.works[*place]);
        places
    }

    /// How long the batches are in which these run again when they come in that order. If it is all of
    /// them, there are several.
    pub fn batches(&self, places: &[usize]) -> Vec<usize> {
        let most = match places.len() == self.works.len() {
            true => (places.len() / 2).max(1),
            // Without those that are missing, the others may do together.
            false => places.len(),
        };
        let mut batches: Vec<usize> = Vec::new();
        let mut work = 0.0;
        for place in places {
            let own = self.works[*place] as f64;
            match batches.last_mut() {
                Some(length) if *length < most && work + own <= self.all / 2.0 => {
                    *length += 1;
                    work += own;
                }
                _ => {
                    batches.push(1);
                    work = own;
                }
            }
        }
        batches
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_most_is_alone_and_is_charged_for_it() {
        let blame = Blame::of(vec![1, 1, 1, 996, 1, 0]);
        let in_order: Vec<usize> = (0..6).collect();
        assert_eq!(blame.batches(&in_order), [3, 1, 2]);
        let lightest_first = blame.lightest_first();
        assert_eq!(lightest_first, [0, 1, 2, 4, 5, 3]);
        assert_eq!(blame.batches(&lightest_first), [3, 2, 1]);
        let second = Duration::from_secs(1);
        assert!(blame.charge(3, second) > Duration::from_millis(990));
        assert!(blame.charge(0, second) < Duration::from_millis(2));
    }

    #[test]
    fn several_are_always_cut() {
        for works in [vec![0; 2], vec![5; 7], vec![u64::MAX; 9], vec![3, 3]] {
            let blame = Blame::of(works);
            let places = blame.lightest_first();
            let batches = blame.batches(&places);
            assert!(batches.len() >= 2, "{batches:?}");
            assert_eq!(batches.iter().sum::<usize>(), places.len());
        }
    }
}
