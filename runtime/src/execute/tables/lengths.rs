//! The lengths of the calls of a launch, and what follows from them.

use crate::execute::kernel::Kernel;
use crate::execute::ragged::Padded;

/// The lengths of the calls of a launch: the number of calls, then each length of all calls.
#[derive(Clone, Copy)]
pub struct Lengths<'a>(pub &'a [u32]);

impl<'a> Lengths<'a> {
    pub fn calls(self) -> usize {
        self.0[0] as usize
    }

    pub fn columns(self) -> usize {
        (self.0.len() - 1) / self.calls().max(1)
    }

    /// One of the lengths of all calls.
    pub fn column(self, position: usize) -> &'a [u32] {
        let calls = self.calls();
        &self.0[1 + position * calls..][..calls]
    }

    /// A call's length, given by operand.
    pub fn of_call(self, kernel: &Kernel, call: usize) -> impl Fn(usize) -> u64 {
        move |operand| u64::from(self.column(kernel.form.column(operand))[call])
    }

    pub fn are_same(self, one: usize, other: usize) -> bool {
        let mut columns = (0..self.columns()).map(|column| self.column(column));
        columns.all(|column| column[one] == column[other])
    }

    /// The longest length of all calls, given by operand.
    pub fn longest(self, kernel: &Kernel) -> impl Fn(usize) -> u64 {
        move |operand| {
            let longest = self.column(kernel.form.column(operand)).iter().max();
            longest.map_or(0, |longest| u64::from(*longest))
        }
    }

    /// The rows of each call.
    pub fn rows(self, kernel: &Kernel) -> impl Iterator<Item = u64> {
        (0..self.calls()).map(move |call| kernel.form.rows_of(self.of_call(kernel, call)))
    }

    /// The rows that each call has room for; no more than an index can tell.
    pub fn rooms(self, kernel: &Kernel, padded: Padded) -> Vec<u32> {
        let count = |rows| u32::try_from(rows).unwrap_or(u32::MAX);
        let mut rooms: Vec<_> = self.rows(kernel).map(count).collect();
        padded.apply(&mut rooms);
        rooms
    }

    /// Of each call the first row, and how many.
    pub fn spans(self, kernel: &Kernel, padded: Padded) -> impl Iterator<Item = (u32, u32)> {
        let rooms = self.rooms(kernel, padded);
        let mut next = 0;
        self.rows(kernel).zip(rooms).map(move |(rows, room)| {
            let first = next;
            next += room;
            (first, rows as u32)
        })
    }
}
