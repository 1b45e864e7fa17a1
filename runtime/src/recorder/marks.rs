//! Marks say which of an instance's numbers chose a row.
//!
//! The control program runs on a recorder of its own, with marks in place of the numbers. A parameter may have fewer
//! rows than there are numbers, so a mark is one digit of the number's place a *take*; and one take more, in which all
//! first digits are others, tells marks from rows that the program names.

/// More digits are not worth their takes.
const MOST_DIGITS: usize = 3;
/// Marks are smaller, so that a few digits of them are a number.
const LARGEST_BASE: u64 = 1 << 20;

/// The marks of an instance's numbers.
#[derive(Clone, Copy, Debug)]
pub struct Marks {
    count: u64,
    base: u64,
    digits: usize,
}

impl Marks {
    /// For `count` numbers, each of which must choose one of `rows` rows; `None` where they cannot be told apart.
    pub fn new(count: usize, rows: u64) -> Option<Marks> {
        let (count, base) = (count as u64, rows.min(LARGEST_BASE));
        if count == 0 {
            return Some(Marks {
                count,
                base,
                digits: 0,
            });
        }
        let digits = (1..=MOST_DIGITS).find(|digits| base.pow(*digits as u32) >= count)?;
        (base >= 2).then_some(Marks {
            count,
            base,
            digits,
        })
    }

    /// How often the control program runs.
    pub fn takes(&self) -> usize {
        self.digits + 1
    }

    /// The mark of a number in a take.
    pub fn mark(&self, take: usize, number: usize) -> u64 {
        let digit = |digit: usize| number as u64 / self.base.pow(digit as u32) % self.base;
        match take == self.digits {
            true => (digit(0) + 1) % self.base,
            false => digit(take),
        }
    }

    /// The number that has these marks in all takes.
    pub(super) fn number(&self, marks: &[u64]) -> Option<u32> {
        let (last, digits) = marks.split_last()?;
        let number = digits.iter().rev().try_fold(0_u64, |number, digit| {
            number.checked_mul(self.base)?.checked_add(*digit)
        })?;
        let is_it = number < self.count && self.mark(self.digits, number as usize) == *last;
        is_it.then_some(number as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_tell_numbers_apart() {
        for (count, rows) in [
            (0, 0),
            (1, 2),
            (3, 2),
            (8, 2),
            (5, 1000),
            (1000, 10),
            (1_000_000, 1 << 31),
        ] {
            let marks = Marks::new(count, rows).unwrap();
            for number in 0..count {
                let of_number: Vec<u64> = (0..marks.takes())
                    .map(|take| marks.mark(take, number))
                    .collect();
                assert!(
                    of_number.iter().all(|mark| *mark < rows),
                    "{count} of {rows}"
                );
                assert_eq!(
                    marks.number(&of_number),
                    Some(number as u32),
                    "{count} of {rows}"
                );
            }
        }
        let marks = Marks::new(5, 1000).unwrap();
        assert_eq!(marks.number(&[5, 6]), None);
        assert_eq!(marks.number(&[3, 3]), None);
        assert!(Marks::new(9, 2).is_none());
        assert!(Marks::new(1, 1).is_none());
    }
}
