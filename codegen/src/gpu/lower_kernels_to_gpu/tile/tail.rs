//! What is made of a tile's sums, and stored.
//!
//! A thread has few neighbouring columns of many rows, as suits the multiplication. Where columns come in
//! fours, the sums go through shared memory, in the place of the buffers: then each thread takes four
//! neighbouring columns of one row after another, reads the sums of each gate and what else is
//! neighbouring by 16 bytes, and stores 16 bytes. Rows' addresses are found once for four columns, and
//! the code is there once instead of once for each row of the thread. Sums that are more than the buffers go through
//! them part by part, some rows of each warp at a time. Where a thread has four neighbouring
//! columns already, or columns do not come in fours, it goes on with its own.

use cohort_abi::manifest::Elem;
use cohort_dialects::builder::Val;

use super::super::ops::{WIDE, below, both, divide, load_neighbours, store_neighbours, when};
use super::super::site::{Known, Site, Sums as Gates, memory};
use super::copies::guarded;
use super::size::Unit;
use super::{Sums, TileRow, Writer};
use crate::emit::Emitter;

/// Some of a thread's rows: from which on, and how many.
#[derive(Clone, Copy)]
struct Part {
    first: i64,
    rows: i64,
}

impl<'c> Writer<'_, '_, 'c> {
    pub(super) fn tail(&self, e: &Emitter<'c>, rows: &[(Val<'c>, TileRow<'c>)], sums: &[Sums<'c>]) {
        let gates = self.tile.gates();
        if !self.size.redistributes(gates) {
            return self.go_on(e, rows, sums, &[]);
        }
        let parts = self.parts;
        for number in 0..parts {
            let part = Part {
                first: number * self.size.rows / parts,
                rows: self.size.rows / parts,
            };
            // The buffers there may still be read; a warpgroup with weights has just waited for its block.
            if number > 0 || self.group.is_none() {
                self.barrier(e);
            }
            self.leave(e, sums, part);
            self.barrier(e);
            self.deal(e, part);
        }
    }

    /// What is loaded beside the products, for each of the thread's rows and columns in the order of [`Writer::go_on`].
    pub(super) fn loaded(
        &self,
        e: &Emitter<'c>,
        rows: &[(Val<'c>, TileRow<'c>)],
    ) -> Vec<Known<'c>> {
        let together = self.at_once();
        let mut loaded = vec![];
        for (_, row) in rows {
            let mut touched = self.addresses(e, row, &self.tile.body);
            for column in (0..self.size.columns).step_by(together as usize) {
                let (_, clamped) = self.column(e, column, together);
                let mut site = Site {
                    frame: self.frame,
                    row: Some(row.row),
                    index: &self.index(row, clamped),
                    count: together,
                    addresses: &mut touched,
                    sums: None,
                };
                loaded.push(site.loaded(e, &self.tile.body));
            }
        }
        loaded
    }

    /// How many columns it goes on with at once.
    fn at_once(&self) -> i64 {
        match self.together() {
            WIDE => WIDE,
            _ => 1,
        }
    }

    /// With the columns that the thread has. What is not `loaded` yet is where it is needed.
    pub(super) fn go_on(
        &self,
        e: &Emitter<'c>,
        rows: &[(Val<'c>, TileRow<'c>)],
        sums: &[Sums<'c>],
        loaded: &[Known<'c>],
    ) {
        let together = self.at_once();
        let mut loaded = loaded.iter();
        for (number, (at, row)) in rows.iter().enumerate() {
            let touched = self.addresses(e, row, &self.tile.body);
            let valid_row = below(e, *at, self.total);
            for column in (0..self.size.columns).step_by(together as usize) {
                let (of_thread, clamped) = self.column(e, column, together);
                let valid_column = below(e, of_thread, e.int(self.tile.columns()));
                let first = number as i64 * self.size.columns + column;
                let gates = self.gates(|_, of_chain, gate| {
                    let at = (gate * self.size.rows * self.size.columns + first) as usize;
                    sums[of_chain][at..at + together as usize].to_vec()
                });
                let index = self.index(row, clamped);
                let mut known = loaded.next().cloned().unwrap_or_default();
                when(e, both(e, valid_row, valid_column), |e| {
                    let mut site = Site {
                        frame: self.frame,
                        row: Some(row.row),
                        index: &index,
                        count: together,
                        addresses: &mut touched.clone(),
                        sums: Some(&gates),
                    };
                    site.run_with(e, &self.tile.body, &mut known);
                });
            }
        }
    }

    /// The sums of all gates, by the number of the gate in all chains, its chain, and its number there.
    fn gates(&self, mut of: impl FnMut(i64, usize, i64) -> Vec<Val<'c>>) -> Gates<'c> {
        let mut number = 0;
        let mut all = vec![];
        for (chain, of_chain) in self.tile.chains.iter().enumerate() {
            for gate in 0..of_chain.gates.len() as i64 {
                all.push(of(number, chain, gate));
                number += 1;
            }
        }
        all
    }

    /// Rows of a warp's part, and of a block's.
    fn rows_of(&self, part: Part) -> (i64, i64) {
        let of_warp = self.size.warp_rows() * part.rows / self.size.rows;
        (of_warp, self.size.down() * of_warp)
    }

    /// Bytes from the sums of a gate to those of the next in shared memory.
    fn gate_bytes(&self, part: Part) -> i64 {
        self.rows_of(part).1 * self.size.sums_stride() * 4
    }

    /// Puts a part of the thread's sums into shared memory.
    fn leave(&self, e: &Emitter<'c>, sums: &[Sums<'c>], part: Part) {
        let size = self.size;
        let neighbours = match size.unit {
            Unit::Lanes => size.columns,
            Unit::Tensor { .. } | Unit::Warpgroups => 2,
        };
        let shared = memory(e, true);
        let mut row = e.sub(self.own_row, self.first_row);
        if part.rows < size.rows {
            let (down, in_warp) = divide(e, row, size.warp_rows());
            row = e.add(e.times(down, self.rows_of(part).0), in_warp);
        }
        let column = e.sub(self.own_column, self.first_column);
        let own = e.add(e.times(row, size.sums_stride() * 4), e.times(column, 4));
        let own = shared.offset(self.frame.shared(), own);
        self.gates(|number, chain, gate| {
            for row in 0..part.rows {
                for column in (0..size.columns).step_by(neighbours as usize) {
                    let of_gate = gate * size.rows + part.first + row;
                    let first = (of_gate * size.columns + column) as usize;
                    let place =
                        (self.row_place(row) * size.sums_stride() + self.column_place(column)) * 4;
                    let at = shared.offset_by(own, number * self.gate_bytes(part) + place);
                    let values = &sums[chain][first..first + neighbours as usize];
                    store_neighbours(&shared, values, at, Elem::F32);
                }
            }
            vec![]
        });
    }

    /// Deals four columns of a row of a part at a time to the threads.
    fn deal(&self, e: &Emitter<'c>, part: Part) {
        let size = self.size;
        let columns = self.tile.columns();
        let per_row = size.block_columns() / WIDE;
        let (of_warp, of_block) = self.rows_of(part);
        let is_whole = part.rows == size.rows;
        let rows = match is_whole {
            true => e.min(e.sub(self.total, self.first_row), e.int(of_block)),
            false => e.int(of_block),
        };
        let pieces = e.times(rows, per_row);
        e.for_loop(self.thread, pieces, size.threads(), &[], |e, piece, _| {
            let (in_part, column) = divide(e, piece, per_row);
            let column = e.times(column, WIDE);
            let of_tile = e.add(self.first_column, column);
            let mut row = in_part;
            if !is_whole {
                let (down, in_warp) = divide(e, in_part, of_warp);
                let in_warp = e.add(in_warp, e.int(self.row_place(part.first)));
                row = e.add(e.times(down, size.warp_rows()), in_warp);
            }
            let of_space = e.add(self.first_row, row);
            let compute = |e: &Emitter<'c>| {
                let shared = memory(e, true);
                let at = e.add(e.times(in_part, size.sums_stride()), column);
                let at = shared.offset(self.frame.shared(), e.times(at, 4));
                let gates = self.gates(|number, _, _| {
                    let at = shared.offset_by(at, number * self.gate_bytes(part));
                    load_neighbours(&shared, at, Elem::F32, WIDE)
                });
                let row = self.row(e, of_space);
                let mut site = Site {
                    frame: self.frame,
                    row: Some(row.row),
                    index: &self.index(&row, of_tile),
                    count: WIDE,
                    addresses: &mut self.addresses(e, &row, &self.tile.body),
                    sums: Some(&gates),
                };
                site.run(e, &self.tile.body);
            };
            let is_row = (!is_whole).then(|| below(e, of_space, self.total));
            let is_column =
                (columns % size.block_columns() != 0).then(|| below(e, of_tile, e.int(columns)));
            let is_there = match (is_row, is_column) {
                (Some(row), Some(column)) => Some(both(e, row, column)),
                (row, column) => row.or(column),
            };
            guarded(e, is_there, compute);
            vec![]
        });
    }
}
