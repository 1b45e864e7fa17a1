//! What reads the values of an instance: the cotangents that they have so far.

use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The cotangents that one reader of a value gives it: a run of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reader {
    pub rows: u64,
    pub cotangent: u64,
}

/// Those of a value, in the order of recording; most values have one or two.
pub type Own = SmallVec<[Reader; 2]>;

/// By the first row that is read.
#[derive(Default)]
pub struct Readers {
    by_row: FxHashMap<u64, Own>,
}

impl Readers {
    pub fn add(&mut self, row: u64, reader: Reader) {
        self.by_row.entry(row).or_default().push(reader);
    }

    /// Takes those that read from this row on, if all of them read it alone.
    pub fn take_row(&mut self, row: u64) -> Option<Own> {
        let Entry::Occupied(own) = self.by_row.entry(row) else {
            return None;
        };
        let is_alone = own.get().iter().all(|reader| reader.rows == 1);
        is_alone.then(|| own.remove())
    }

    /// Takes those that read from one of these rows on, in the order of rows.
    pub fn take_rows(&mut self, first: u64, rows: u64) -> Vec<(u64, Own)> {
        let all = first..first + rows;
        all.filter_map(|row| self.by_row.remove_entry(&row))
            .collect()
    }

    /// Takes all that are left, in the order of rows.
    pub fn take_all(&mut self) -> Vec<(u64, Own)> {
        let mut all: Vec<(u64, Own)> = self.by_row.drain().collect();
        all.sort_unstable_by_key(|(row, _)| *row);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(rows: u64, cotangent: u64) -> Reader {
        Reader { rows, cotangent }
    }

    #[test]
    fn readers_are_taken_in_the_order_of_recording() {
        let mut readers = Readers::default();
        for (row, own) in [
            (7, reader(1, 1)),
            (3, reader(1, 2)),
            (7, reader(1, 3)),
            (4, reader(2, 4)),
            (7, reader(1, 5)),
        ] {
            readers.add(row, own);
        }
        assert_eq!(readers.take_row(5), None);
        // It is read together with the row behind it.
        assert_eq!(readers.take_row(4), None);
        let own = readers.take_row(7).unwrap();
        assert_eq!(own[..], [reader(1, 1), reader(1, 3), reader(1, 5)]);
        assert_eq!(readers.take_row(7), None);
        let taken = readers.take_rows(3, 2);
        let rows: Vec<u64> = taken.iter().map(|(row, _)| *row).collect();
        assert_eq!(rows, [3, 4]);
        readers.add(9, reader(1, 6));
        readers.add(8, reader(1, 7));
        let left = [(8, reader(1, 7)), (9, reader(1, 6))];
        assert_eq!(
            readers.take_all(),
            left.map(|(row, own)| (row, Own::from_slice(&[own])))
        );
        assert_eq!(readers.take_all(), []);
    }
}
