//! Which row a handle stands for.

use cohort_abi::Handle;

/// First row of what has no rows, or none in order: beyond those of any row pool.
pub(super) const NO_ROW: u32 = u32::MAX;

/// The rows of all buckets.
///
/// The calls of a bucket that is a launch have consecutive rows, and its first row tells them all.
/// Where a bucket's calls went into several launches, or it is one of ghosts, which are other names of
/// rows, each position has an entry of its own.
#[derive(Debug, Default)]
pub(super) struct BucketRows {
    /// At `bucket << result_shift | result`; [`NO_ROW`] where there is none.
    first: Vec<u32>,
    /// At the same place; empty where the first row tells them all.
    scattered: Vec<Vec<u32>>,
    result_shift: u32,
}

impl BucketRows {
    /// For kernels of at most `most_results` results.
    pub fn new(most_results: usize) -> BucketRows {
        BucketRows {
            result_shift: usize::BITS - most_results.saturating_sub(1).leading_zeros(),
            ..BucketRows::default()
        }
    }

    /// No bucket has rows.
    pub fn reset(&mut self) {
        self.first.fill(NO_ROW);
        self.scattered.iter_mut().for_each(Vec::clear);
    }

    /// Room for `buckets` buckets.
    pub fn make_room(&mut self, buckets: usize) {
        let length = buckets << self.result_shift;
        if self.first.len() < length {
            self.first.resize(length, NO_ROW);
        }
    }

    /// The bucket's results have no rows so far.
    pub fn forget(&mut self, bucket: usize) {
        let results = (bucket << self.result_shift)..((bucket + 1) << self.result_shift);
        if let Some(scattered) = self.scattered.get_mut(results.clone()) {
            scattered.iter_mut().for_each(Vec::clear);
        }
        match self.first.get_mut(results) {
            // To fill so little takes longer than to set it.
            Some([first]) => *first = NO_ROW,
            Some(first) => first.fill(NO_ROW),
            None => {}
        }
    }

    /// The bucket's calls have consecutive rows for this result.
    pub fn set_first(&mut self, bucket: usize, result: usize, row: u32) {
        self.first[bucket << self.result_shift | result] = row;
    }

    /// The next call of the bucket has this row.
    pub fn push(&mut self, bucket: usize, result: usize, row: u32) {
        let place = bucket << self.result_shift | result;
        if self.scattered.len() <= place {
            self.scattered
                .resize_with(self.first.len().max(place + 1), Vec::new);
        }
        self.scattered[place].push(row);
    }

    /// The row of a handle that should have one below `rows`; `None` if it has not.
    #[inline]
    pub fn find(&self, handle: u64, rows: u64) -> Option<u64> {
        let handle = Handle(handle);
        let result = usize::from(handle.result());
        if result >> self.result_shift != 0 {
            return None;
        }
        let place = (handle.bucket() as usize) << self.result_shift | result;
        let first = self.first.get(place)?;
        let row = u64::from(*first) + u64::from(handle.position());
        if row < rows {
            return Some(row);
        }
        self.find_scattered(place, handle.position(), rows)
    }

    /// The row of that result of a handle's call, of a bucket whose first row tells them all.
    #[inline]
    pub fn of_result(&self, handle: u64, result: u8) -> Option<u32> {
        if usize::from(result) >> self.result_shift != 0 {
            return None;
        }
        let handle = Handle(handle);
        let place = (handle.bucket() as usize) << self.result_shift | usize::from(result);
        let first = self.first.get(place).filter(|first| **first != NO_ROW)?;
        first.checked_add(handle.position())
    }

    #[inline(never)]
    fn find_scattered(&self, place: usize, position: u32, rows: u64) -> Option<u64> {
        let row = *self.scattered.get(place)?.get(position as usize)?;
        (u64::from(row) < rows).then_some(u64::from(row))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_in_order_or_scattered() {
        let mut rows = BucketRows::new(2);
        rows.make_room(3);
        rows.set_first(1, 1, 40);
        rows.push(2, 0, 7);
        rows.push(2, 0, 3);
        let find = |rows: &BucketRows, bucket, result, position| {
            rows.find(Handle::new(bucket, result, position).0, 50)
        };
        assert_eq!(find(&rows, 1, 1, 9), Some(49));
        assert_eq!(find(&rows, 1, 1, 10), None);
        assert_eq!(find(&rows, 1, 0, 0), None);
        assert_eq!(find(&rows, 2, 0, 1), Some(3));
        assert_eq!(find(&rows, 2, 0, 2), None);
        assert_eq!(find(&rows, 9, 0, 0), None);
        assert_eq!(find(&rows, 1, 2, 0), None);
        rows.forget(2);
        assert_eq!(find(&rows, 2, 0, 0), None);
    }
}
