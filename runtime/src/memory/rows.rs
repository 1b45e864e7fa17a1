//! Which rows of a row pool are in use.
//!
//! Rows are taken in ranges, one a flush and row pool or one a chunk of inputs, and given back in
//! ranges, in any order. The first gap that is big enough is taken, so that rows stay few and close
//! together; only when there is none do the rows in use reach further.

/// Rows next to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Gap {
    first: u64,
    rows: u64,
}

/// The rows in use of one row pool.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    /// In order, none empty, none next to another, none that reaches `end`.
    gaps: Vec<Gap>,
    /// No row from here on is in use.
    end: u64,
    used: u64,
}

impl Rows {
    /// Takes `rows` rows next to each other; gives the first.
    pub fn take(&mut self, rows: u64) -> u64 {
        if rows == 0 {
            return self.end;
        }
        self.used += rows;
        let Some(place) = self.gaps.iter().position(|gap| gap.rows >= rows) else {
            let first = self.end;
            self.end += rows;
            return first;
        };
        let gap = &mut self.gaps[place];
        let first = gap.first;
        gap.first += rows;
        gap.rows -= rows;
        if gap.rows == 0 {
            self.gaps.remove(place);
        }
        first
    }

    /// Gives rows back that were taken together.
    pub fn give(&mut self, first: u64, rows: u64) {
        if rows == 0 {
            return;
        }
        self.used -= rows;
        let place = self.gaps.partition_point(|gap| gap.first < first);
        let before = place
            .checked_sub(1)
            .filter(|before| self.gaps[*before].first + self.gaps[*before].rows == first);
        let touches_next = (self.gaps.get(place)).is_some_and(|gap| gap.first == first + rows);
        match (before, touches_next) {
            (Some(before), true) => {
                self.gaps[before].rows += rows + self.gaps[place].rows;
                self.gaps.remove(place);
            }
            (Some(before), false) => self.gaps[before].rows += rows,
            (None, true) => {
                self.gaps[place].first = first;
                self.gaps[place].rows += rows;
            }
            (None, false) => self.gaps.insert(place, Gap { first, rows }),
        }
        if let Some(last) = self.gaps.last()
            && last.first + last.rows == self.end
        {
            self.end = last.first;
            self.gaps.pop();
        }
    }

    /// Every row in use is below.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Number of rows in use.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// Gives all rows from this one on back.
    pub fn truncate(&mut self, end: u64) {
        self.gaps.clear();
        self.end = end;
        self.used = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row is in use or not.
    #[derive(Default)]
    struct Naive(Vec<bool>);

    impl Naive {
        fn take(&mut self, rows: usize) -> usize {
            let is_free = |row: usize| !self.0.get(row).copied().unwrap_or(false);
            let first = (0..)
                .find(|first| (*first..first + rows).all(is_free))
                .unwrap();
            self.0.resize(self.0.len().max(first + rows), false);
            self.0[first..first + rows].fill(true);
            first
        }

        fn give(&mut self, first: usize, rows: usize) {
            self.0[first..first + rows].fill(false);
        }

        fn end(&self) -> usize {
            self.0
                .iter()
                .rposition(|used| *used)
                .map_or(0, |row| row + 1)
        }
    }

    #[test]
    fn ranges_are_those_of_a_naive_first_fit() {
        let mut rng = fastrand::Rng::with_seed(3);
        for round in 0..60 {
            let (mut rows, mut naive) = (Rows::default(), Naive::default());
            let mut taken: Vec<(u64, u64)> = Vec::new();
            for _ in 0..400 {
                // Some rounds grow, some shrink; some are first in, first out, as flushes are.
                if taken.is_empty() || rng.u32(0..10) < 4 + round % 3 {
                    let count = rng.u64(1..1 + [3, 20, 100][round as usize % 3]);
                    let first = rows.take(count);
                    assert_eq!(first, naive.take(count as usize) as u64);
                    taken.push((first, count));
                } else {
                    let place = if round % 2 == 0 {
                        0
                    } else {
                        rng.usize(0..taken.len())
                    };
                    let (first, count) = taken.remove(place);
                    rows.give(first, count);
                    naive.give(first as usize, count as usize);
                }
                assert_eq!(rows.end(), naive.end() as u64);
                assert_eq!(
                    rows.used(),
                    naive.0.iter().filter(|used| **used).count() as u64
                );
                for pair in rows.gaps.windows(2) {
                    assert!(pair[0].rows > 0 && pair[0].first + pair[0].rows < pair[1].first);
                }
            }
            for (first, count) in taken {
                rows.give(first, count);
            }
            assert_eq!((rows.end(), rows.used(), rows.gaps.len()), (0, 0, 0));
        }
    }
}
