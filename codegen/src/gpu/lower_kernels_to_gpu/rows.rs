//! Writes a row launch: stages over whole rows, with a barrier after each.
//!
//! Elements of a stage are distributed over the threads in order, four neighbours at a time where that is one
//! load or store, so neighbours read and write neighbours.

mod folds;

use std::collections::HashMap;

use cohort_abi::manifest::Elem;
use cohort_dialects::attributes::GpuDim;
use cohort_dialects::builder::Val;
use cohort_passes::kernel::affine::Affine;
use cohort_passes::kernel::rows::graph::dense_strides;
use cohort_passes::kernel::rows::layout::{Place, elem_bytes};

use super::Result;
use super::launches::{Rows, Stage};
use super::ops::{THREADS, barrier, block, delinearise, divide, load_neighbours, thread};
use super::site::{Address, Frame, Known, Site, loads_of};
use crate::emit::{Emitter, Index, Width, element_address};
use crate::read_rows::body::Body;
use crate::read_rows::folds::{List, combine};
use crate::read_rows::loops::Loops;
use crate::read_rows::memory::{Row, Scalars};

pub use folds::lanes_bytes;

/// What a block computes: how many rows from which on.
struct Writer<'a, 'f, 'c> {
    frame: &'a Frame<'f, 'c>,
    thread: Val<'c>,
    first: Val<'c>,
    count: Val<'c>,
    once: bool,
    /// Where lanes leave their values, bytes from the start of shared memory.
    lanes: i64,
}

pub fn write<'c>(
    e: &Emitter<'c>,
    frame: &Frame<'_, 'c>,
    rows: &Rows<'c>,
    lanes: i64,
) -> Result<()> {
    let first = e.times(block(e, GpuDim::X), rows.block_rows);
    let count = match rows.once {
        true => e.int(1),
        false => e.min(e.sub(frame.rows, first), e.int(rows.block_rows)),
    };
    let writer = Writer {
        frame,
        thread: thread(e),
        first,
        count,
        once: rows.once,
        lanes,
    };
    for (number, stage) in rows.stages.iter().enumerate() {
        if number > 0 {
            barrier(e);
        }
        match stage {
            Stage::Group(body, width) => writer.group(e, body, *width),
            Stage::Fold(fold) if fold.lanes.is_some() => writer.fold_by_warps(e, fold),
            Stage::Fold(fold) => writer.fold(e, fold),
            Stage::List(list) => writer.list(e, list),
            Stage::Loops(loops) => writer.loops(e, loops)?,
        }
    }
    Ok(())
}

impl<'c> Writer<'_, '_, 'c> {
    /// Deals `per_row` pieces of work of each row to threads, or to warps, whose number is `worker`.
    fn deal(
        &self,
        e: &Emitter<'c>,
        per_row: i64,
        (worker, workers): (Val<'c>, i64),
        body: impl FnOnce(&Emitter<'c>, Val<'c>, Option<Row<'c>>, Val<'c>),
    ) {
        let total = e.times(self.count, per_row);
        e.for_loop(worker, total, workers, &[], |e, piece, _| {
            let (in_block, rest) = divide(e, piece, per_row);
            let row = (!self.once).then(|| Row {
                in_block,
                in_bucket: e.add(self.first, in_block),
            });
            body(e, piece, row, rest);
            vec![]
        });
    }

    fn threads(&self) -> (Val<'c>, i64) {
        (self.thread, THREADS)
    }

    /// The addresses that bodies and stores touch for a row.
    fn addresses(
        &self,
        e: &Emitter<'c>,
        row: Option<Row<'c>>,
        bodies: &[&Body<'c>],
        places: &[Place],
    ) -> HashMap<Place, Address<'c>> {
        addresses(e, self.frame, row, bodies, places)
    }

    fn group(&self, e: &Emitter<'c>, body: &Body<'c>, width: i64) {
        let pieces = body.domain.iter().product::<i64>() / width;
        self.deal(e, pieces, self.threads(), |e, _, row, at| {
            let index = pieces_index(e, at, &body.domain, width);
            let mut addresses = HashMap::new();
            self.site(row, &index, width, &mut addresses).run(e, body);
        });
    }

    fn site<'s>(
        &'s self,
        row: Option<Row<'c>>,
        index: &'s [Index<'c>],
        count: i64,
        addresses: &'s mut HashMap<Place, Address<'c>>,
    ) -> Site<'s, 's, 'c> {
        Site {
            frame: self.frame,
            row,
            index,
            count,
            addresses,
            sums: None,
        }
    }

    fn list(&self, e: &Emitter<'c>, list: &List<'c>) {
        let elem = list.elem;
        let store = &list.store;
        let domain = &list.init.domain;
        let dense = Affine::strided(0, &dense_strides(domain));
        let width = list.vectors;
        let pieces = domain.iter().product::<i64>() / width;
        self.deal(e, pieces, self.threads(), |e, _, row, at| {
            let Some(of_row) = row else { return };
            let index = pieces_index(e, at, domain, width);
            let mut touched = self.addresses(e, row, &[&list.init], &[store.place]);
            let starts = self.site(row, &index, width, &mut touched).values(
                e,
                &list.init,
                store.value,
                &mut Known::new(),
            );
            let entries = self.frame.arguments.list(e, list.list, of_row);
            let ends = e.for_loop(entries.first, entries.end, 1, &starts, |e, at, carried| {
                let base = self.frame.arguments.listed(e, list.list, at);
                let elements = self.list_elements(e, list, base, (&dense, elem), &index);
                carried
                    .iter()
                    .zip(elements)
                    .map(|(carried, element)| {
                        let values = [*carried, element];
                        combine(e, list.step, elem, values, Width::Scalar)
                    })
                    .collect()
            });
            let mut site = self.site(row, &index, width, &mut touched);
            site.store(e, &list.init, store, &ends, elem);
        });
    }

    /// Neighbouring elements of a row of a list.
    fn list_elements(
        &self,
        e: &Emitter<'c>,
        list: &List<'c>,
        base: Val<'c>,
        (dense, elem): (&Affine, Elem),
        index: &[Index<'c>],
    ) -> Vec<Val<'c>> {
        let place = Place::Operand(list.list);
        let body = &list.init;
        if self
            .frame
            .are_neighbours(body, place, dense, elem, list.vectors)
        {
            let at = element_address(e, base, dense, elem_bytes(elem), index);
            return load_neighbours(e, at, elem, list.vectors);
        }
        let neighbours = (0..list.vectors).map(|number| {
            let mut index = index.to_vec();
            if let Some(last) = index.last_mut() {
                *last = last.plus(number);
            }
            let at = element_address(e, base, dense, elem_bytes(elem), &index);
            e.load_elem(at, elem, Width::Scalar, None)
        });
        neighbours.collect()
    }

    fn loops(&self, e: &Emitter<'c>, loops: &Loops<'c>) -> Result<()> {
        let sizes = loops.sizes(&loops.kept());
        let mut written = Ok(());
        self.deal(
            e,
            sizes.iter().product(),
            self.threads(),
            |e, _, row, at| {
                let index = loops.index(&delinearise(e, at, &sizes));
                let places = loops.places(self.frame.arguments.kernel);
                let scalars = Scalars {
                    arguments: &self.frame.arguments,
                    row,
                    addresses: self.addresses(e, row, &[], &places),
                };
                let done = loops.at(e, &index, &scalars);
                if done.is_err() {
                    written = done;
                }
            },
        );
        written
    }
}

/// The addresses that bodies and stores touch for a row.
pub fn addresses<'c>(
    e: &Emitter<'c>,
    frame: &Frame<'_, 'c>,
    row: Option<Row<'c>>,
    bodies: &[&Body<'c>],
    places: &[Place],
) -> HashMap<Place, Address<'c>> {
    let bodies = bodies.iter();
    let loads = bodies
        .flat_map(|body| loads_of(body))
        .map(|(place, _)| place);
    let mut addresses = HashMap::new();
    for place in loads.chain(places.iter().copied()) {
        addresses
            .entry(place)
            .or_insert_with(|| frame.address(e, place, row));
    }
    addresses
}

/// The index of a piece's first element, its last dim being counted in pieces.
fn widened<'c>(e: &Emitter<'c>, index: &[Index<'c>], width: i64) -> Vec<Index<'c>> {
    let mut index = index.to_vec();
    if let Some(last) = index.last_mut() {
        *last = Index {
            value: last.value.map(|value| e.times(value, width)),
            constant: last.constant * width,
        };
    }
    index
}

/// The index of the first element of piece `at` of a dense row-major domain, cut into pieces of `width`
/// along its last dim.
fn pieces_index<'c>(e: &Emitter<'c>, at: Val<'c>, domain: &[i64], width: i64) -> Vec<Index<'c>> {
    let mut pieces = domain.to_vec();
    if let Some(last) = pieces.last_mut() {
        *last /= width;
    }
    widened(e, &delinearise(e, at, &pieces), width)
}
