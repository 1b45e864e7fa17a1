//! Writes a row launch: stages over whole rows, with a barrier after each.
//!
//! Elements of a stage are distributed over the threads in order, four neighbours at a time where that is one
//! load or store, so neighbours read and write neighbours.

mod folds;

use std::collections::HashMap;

use cohort_dialects::builder::Val;

use super::ops::{THREADS, WARP, barrier, block, delinearise, divide, load_neighbours, thread};
use super::plan::{Rows, Stage};
use super::site::{Address, Frame, Known, Row, Site, memory};
use crate::codegen::cpu::lower_kernels::compute::element_address;
use crate::codegen::cpu::lower_kernels::reduce_rows;
use crate::codegen::emit::{Emitter, Index, Width};
use crate::codegen::generic_body as generic;
use crate::kernel::rows::body::{Body, Instruction, Store, ValueId};
use crate::kernel::rows::graph::{Graph, Kind, Linear, NodeId, dense_strides};
use crate::kernel::rows::layout::{Place, View, elem_bytes};
use crate::kernel::rows::stage::ReduceRows;
use crate::support::ir::blocks_of;
use folds::{WARP_RESULTS, by_warps, results};

pub use folds::lanes_bytes;

/// Elements of a stage that a block should have, at least.
const ELEMENTS: i64 = 1024;

/// Rows that a block computes.
pub fn block_rows(graph: &Graph<'_>, rows: &Rows<'_>) -> i64 {
    if rows.once {
        return 1;
    }
    let widest = rows.stages.iter().map(|stage| match stage {
        Stage::Group(body) => body.domain.iter().product(),
        Stage::Fold(fold) if by_warps(fold) => results(fold) * WARP,
        Stage::Fold(fold) => results(fold),
        Stage::List(list) => list.init.domain.iter().product(),
        Stage::Loops { node, .. } => match &graph.nodes[*node].kind {
            Kind::Loops(loops) => kept_of(&loops.folds).map(|dim| loops.domain[dim]).product(),
            _ => 1,
        },
    });
    let widest = widest.max().unwrap_or(1).max(1);
    let folds = rows.stages.iter().filter_map(|stage| match stage {
        Stage::Fold(fold) if by_warps(fold) => Some(WARP_RESULTS / results(fold).max(1)),
        _ => None,
    });
    let most = folds.min().unwrap_or(THREADS).clamp(1, THREADS);
    (ELEMENTS / widest).clamp(1, most)
}

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
    block_rows: i64,
    lanes: i64,
) {
    let first = e.times(block(e, "x"), block_rows);
    let count = match rows.once {
        true => e.int(1),
        false => e.min(e.sub(frame.rows, first), e.int(block_rows)),
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
            Stage::Group(body) => writer.group(e, body),
            Stage::Fold(fold) if by_warps(fold) => writer.fold_by_warps(e, fold),
            Stage::Fold(fold) => writer.fold(e, fold),
            Stage::List(list) => writer.list(e, list),
            Stage::Loops {
                node,
                body,
                inputs,
                inits,
            } => writer.loops(e, *node, body, inputs, inits),
        }
    }
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

    fn group(&self, e: &Emitter<'c>, body: &Body<'c>) {
        let width = self.frame.width(body);
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
            gates: None,
        }
    }

    fn store_of(&self, node: NodeId, value: ValueId) -> Store {
        let layout = self.frame.layouts.of_node[node].as_ref();
        let layout = layout.unwrap_or_else(|| unreachable!("a fold has memory"));
        Store {
            place: layout.place,
            address: Linear {
                constant: 0,
                coefficients: layout.strides.clone(),
            },
            value,
        }
    }

    fn list(&self, e: &Emitter<'c>, list: &ReduceRows<'c>) {
        let node = &self.frame.graph.nodes[list.node];
        let elem = node.elem;
        let Some(step) = blocks_of(list.op).first().copied() else {
            return;
        };
        let store = self.store_of(list.node, list.init_value);
        let domain = &list.init.domain;
        let dense = Linear {
            constant: 0,
            coefficients: dense_strides(domain),
        };
        // The values that are folded in lie as a result's do that is stored densely.
        let mut lying = list.init.clone();
        lying.stores = vec![Store {
            place: Place::Operand(list.list),
            address: dense.clone(),
            value: list.init_value,
        }];
        let width = self.frame.width(&lying);
        let pieces = domain.iter().product::<i64>() / width;
        self.deal(e, pieces, self.threads(), |e, _, row, at| {
            let Some(of_row) = row else { return };
            let index = pieces_index(e, at, domain, width);
            let mut touched = self.addresses(e, row, &[&list.init], &[store.place]);
            let starts = self.site(row, &index, width, &mut touched).values(
                e,
                &list.init,
                list.init_value,
                &mut Known::new(),
            );
            let [_, entries, offsets] = self.frame.operands[list.list];
            let entry = e.offset(offsets, e.times(of_row.in_bucket, 4));
            let first = e.load_u32(entry);
            let end = e.load_u32(e.offset_by(entry, 4));
            let ends = e.for_loop(first, end, 1, &starts, |e, at, carried| {
                let entry = e.offset(entries, e.times(at, 4));
                let base = self.frame.operand_row(e, list.list, entry);
                let at = element_address(e, base, &dense, elem_bytes(elem), &index);
                let elements = load_neighbours(e, at, elem, width);
                carried
                    .iter()
                    .zip(elements)
                    .map(|(carried, element)| {
                        let values = [*carried, element];
                        reduce_rows::combine(e, step, elem, values, Width::Scalar)
                    })
                    .collect()
            });
            let mut site = self.site(row, &index, width, &mut touched);
            site.store(e, &list.init, &store, &ends, elem);
        });
    }

    fn loops(
        &self,
        e: &Emitter<'c>,
        node: NodeId,
        body: &Body<'c>,
        inputs: &[ValueId],
        inits: &[Option<View>],
    ) {
        let Kind::Loops(loops) = &self.frame.graph.nodes[node].kind else {
            return;
        };
        let rank = loops.domain.len();
        let kept: Vec<usize> = kept_of(&loops.folds).collect();
        let folded: Vec<usize> = (0..rank).filter(|dim| loops.folds[*dim]).collect();
        let sizes =
            |dims: &[usize]| -> Vec<i64> { dims.iter().map(|dim| loops.domain[*dim]).collect() };
        let results = generic::results_of_loops(self.frame.graph, self.frame.layouts, node);
        let mut places: Vec<Place> = results
            .iter()
            .flatten()
            .map(|result| self.frame.place_of(*result))
            .collect();
        let views = inits.iter().flatten();
        places.extend(views.map(|view| self.frame.place_of(view.buffer)));
        let kept_sizes = sizes(&kept);
        self.deal(
            e,
            kept_sizes.iter().product(),
            self.threads(),
            |e, _, row, at| {
                let mut index = vec![Index::constant(0); rank];
                for (dim, at) in kept.iter().zip(delinearise(e, at, &kept_sizes)) {
                    index[*dim] = at;
                }
                let touched = self.addresses(e, row, &[body], &places);
                let starts: Vec<_> = (loops.inits.iter().zip(inits).zip(&loops.results))
                    .map(|((init, view), map)| {
                        let of_init = &self.frame.graph.nodes[*init];
                        let Some(view) = view else {
                            let bits = match of_init.kind {
                                Kind::Splat(bits) => bits,
                                _ => 0,
                            };
                            return e.bits(bits, of_init.elem, Width::Scalar);
                        };
                        let base = touched[&self.frame.place_of(view.buffer)];
                        let address = generic::address(map, view.offset, &view.strides, rank);
                        let e = memory(e, base.shared);
                        let bytes = elem_bytes(of_init.elem);
                        let at = element_address(&e, base.at, &address, bytes, &index);
                        e.load_elem(at, of_init.elem, Width::Scalar, None)
                    })
                    .collect();
                let ends = e.for_nest(&sizes(&folded), &starts, &mut |e, inner, carried| {
                    let mut index = index.clone();
                    for (dim, at) in folded.iter().zip(inner) {
                        index[*dim] = *at;
                    }
                    let mut addresses = touched.clone();
                    let mut site = self.site(row, &index, 1, &mut addresses);
                    let mut known = Known::new();
                    let mut arguments: Vec<_> = inputs
                        .iter()
                        .map(|input| site.value(e, body, *input, &mut known))
                        .collect();
                    arguments.extend(carried);
                    generic::copy_body(e, loops, &arguments, &index)
                });
                let mut addresses = touched.clone();
                let mut site = self.site(row, &index, 1, &mut addresses);
                for ((end, map), result) in ends.iter().zip(&loops.results).zip(&results) {
                    let Some(result) = result else { continue };
                    let Some(layout) = &self.frame.layouts.of_node[*result] else {
                        continue;
                    };
                    let store = Store {
                        place: layout.place,
                        address: generic::address(map, 0, &layout.strides, rank),
                        value: 0,
                    };
                    let elem = self.frame.graph.nodes[*result].elem;
                    site.store(e, body, &store, &[*end], elem);
                }
            },
        );
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
    let loads = bodies
        .iter()
        .flat_map(|body| &body.values)
        .filter_map(|(instruction, _)| match instruction {
            Instruction::Load { buffer, .. } => Some(frame.place_of(*buffer)),
            _ => None,
        });
    let mut addresses = HashMap::new();
    for place in loads.chain(places.iter().copied()) {
        addresses
            .entry(place)
            .or_insert_with(|| frame.address(e, place, row));
    }
    addresses
}

fn kept_of(folds: &[bool]) -> impl Iterator<Item = usize> + '_ {
    (0..folds.len()).filter(|dim| !folds[*dim])
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
