//! Writes a row launch: stages over whole rows, with a barrier after each.
//!
//! Elements of a stage are dealt to the threads in order, so neighbours read and write neighbours.
//! A fold with many results gives each to one thread, which folds in the order of the program. One
//! with few results gives each to a warp: a lane folds every 32nd element, and one thread folds
//! what the lanes have, lane by lane. Which of the two depends on the shapes alone.

use std::collections::HashMap;

use cohort_abi::manifest::Elem;
use cohort_dialects::builder::Val;
use melior::ir::{ValueLike, operation::OperationLike};

use super::ops::{THREADS, WARP, barrier, below, block, delinearise, divide, thread, when};
use super::plan::{Fold, List, Rows, Stage};
use super::site::{Address, Frame, Row, Site, memory};
use crate::cpu::lower_kernels::body::{Body, Instruction, Store, ValueId};
use crate::cpu::lower_kernels::compute::element_address;
use crate::cpu::lower_kernels::emit::{Emitter, Index, Width};
use crate::cpu::lower_kernels::graph::{Graph, Kind, Linear, NodeId, dense_strides};
use crate::cpu::lower_kernels::layout::{Place, View, elem_bytes};
use crate::cpu::lower_kernels::{loops as generic, reduce_rows};

/// Elements of a stage that a block should have, at least.
const ELEMENTS: i64 = 1024;

/// Results of folds by warps that a block has at most: their lanes' values are in shared memory.
const WARP_RESULTS: i64 = 64;

/// Fewer results than this are folded by warps, if there is enough to fold.
const FEW_RESULTS: i64 = 32;
const MUCH_TO_FOLD: i64 = 16;

/// Lanes' values of one result; one more than there are lanes, so that results lie in other banks.
const LANES_STRIDE: i64 = WARP + 1;

/// Whether warps fold it.
fn by_warps(fold: &Fold<'_>) -> bool {
    results(fold) < FEW_RESULTS && folded(fold) > MUCH_TO_FOLD
}

fn results(fold: &Fold<'_>) -> i64 {
    fold.init.domain.iter().product()
}

fn folded(fold: &Fold<'_>) -> i64 {
    fold.dims.iter().map(|dim| fold.body.domain[*dim]).product()
}

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

/// Bytes of shared memory for the lanes of folds.
pub fn lanes_bytes(rows: &Rows<'_>, block_rows: i64) -> i64 {
    let folds = rows.stages.iter().filter_map(|stage| match stage {
        Stage::Fold(fold) if by_warps(fold) => Some(results(fold) * block_rows * LANES_STRIDE * 4),
        _ => None,
    });
    folds.max().unwrap_or(0)
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
        let elements = body.domain.iter().product();
        self.deal(e, elements, self.threads(), |e, _, row, at| {
            let index = delinearise(e, at, &body.domain);
            let mut addresses = HashMap::new();
            let mut site = self.site(row, &index, &mut addresses);
            let mut known = HashMap::new();
            for store in &body.stores {
                let value = site.value(e, body, store.value, &mut known);
                site.store(e, store, value, body.values[store.value].1);
            }
        });
    }

    fn site<'s>(
        &'s self,
        row: Option<Row<'c>>,
        index: &'s [Index<'c>],
        addresses: &'s mut HashMap<Place, Address<'c>>,
    ) -> Site<'s, 's, 'c> {
        Site {
            frame: self.frame,
            row,
            index,
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

    // Folds.

    fn fold(&self, e: &Emitter<'c>, fold: &Fold<'c>) {
        let store = self.store_of(fold.node, fold.init_value);
        self.deal(e, results(fold), self.threads(), |e, _, row, at| {
            let kept = delinearise(e, at, &fold.init.domain);
            let mut touched = self.addresses(e, row, &[&fold.body, &fold.init], &[store.place]);
            let mut known = HashMap::new();
            let start = self.site(row, &kept, &mut touched).value(
                e,
                &fold.init,
                fold.init_value,
                &mut known,
            );
            let sizes: Vec<i64> = fold.dims.iter().map(|dim| fold.body.domain[*dim]).collect();
            let end = e.for_nest(&sizes, &[start], &mut |e, at, carried| {
                let index = whole_index(fold, &kept, at);
                vec![self.step(e, fold, row, &index, &mut touched.clone(), carried[0])]
            })[0];
            self.site(row, &kept, &mut touched)
                .store(e, &store, end, elem_of(fold));
        });
    }

    fn fold_by_warps(&self, e: &Emitter<'c>, fold: &Fold<'c>) {
        let elem = elem_of(fold);
        let lanes = memory(e, true).offset_by(self.frame.shared(), self.lanes);
        let (warp, lane) = divide(e, self.thread, WARP);
        let count = folded(fold);
        let sizes: Vec<i64> = fold.dims.iter().map(|dim| fold.body.domain[*dim]).collect();
        self.deal(
            e,
            results(fold),
            (warp, THREADS / WARP),
            |e, piece, row, at| {
                let kept = delinearise(e, at, &fold.init.domain);
                let touched = self.addresses(e, row, &[&fold.body], &[]);
                let one_lane = |e: &Emitter<'c>| {
                    let at = delinearise(e, lane, &sizes);
                    let index = whole_index(fold, &kept, &at);
                    let first = self.first(e, fold, row, &index, &mut touched.clone());
                    let next = e.add(lane, e.int(WARP));
                    let end = e.for_loop(next, e.int(count), WARP, &[first], |e, at, carried| {
                        let at = delinearise(e, at, &sizes);
                        let index = whole_index(fold, &kept, &at);
                        vec![self.step(e, fold, row, &index, &mut touched.clone(), carried[0])]
                    })[0];
                    let e = memory(e, true);
                    let of_piece = e.offset(lanes, e.times(piece, LANES_STRIDE * 4));
                    let at = e.offset(of_piece, e.times(lane, 4));
                    e.store_elem(end, at, elem, Width::Scalar, None);
                };
                if count >= WARP {
                    one_lane(e);
                } else {
                    when(e, below(e, lane, e.int(count)), one_lane);
                }
            },
        );
        barrier(e);
        let store = self.store_of(fold.node, fold.init_value);
        self.deal(e, results(fold), self.threads(), |e, piece, row, at| {
            let kept = delinearise(e, at, &fold.init.domain);
            let mut touched = self.addresses(e, row, &[&fold.init], &[store.place]);
            let mut known = HashMap::new();
            let start = self.site(row, &kept, &mut touched).value(
                e,
                &fold.init,
                fold.init_value,
                &mut known,
            );
            let of_piece = memory(e, true).offset(lanes, e.times(piece, LANES_STRIDE * 4));
            let end = e.for_static(count.min(WARP), 1, &[start], |e, at, carried| {
                let of_lane = e.times(e.index_value(at), 4);
                let shared = memory(e, true);
                let at = shared.offset(of_piece, of_lane);
                let value = shared.load_elem(at, elem, Width::Scalar, None);
                vec![combine(e, fold, carried[0], value)]
            })[0];
            self.site(row, &kept, &mut touched)
                .store(e, &store, end, elem);
        });
    }

    /// The value at an index, folded into what was folded before.
    fn step(
        &self,
        e: &Emitter<'c>,
        fold: &Fold<'c>,
        row: Option<Row<'c>>,
        index: &[Index<'c>],
        touched: &mut HashMap<Place, Address<'c>>,
        before: Val<'c>,
    ) -> Val<'c> {
        let values = self.inputs(e, fold, row, index, touched);
        match values[..] {
            [a, b] => e.b.value("math.fma", &[a, b, before], before.r#type()),
            _ => combine(e, fold, before, values[0]),
        }
    }

    /// The value at an index, with which a fold begins.
    fn first(
        &self,
        e: &Emitter<'c>,
        fold: &Fold<'c>,
        row: Option<Row<'c>>,
        index: &[Index<'c>],
        touched: &mut HashMap<Place, Address<'c>>,
    ) -> Val<'c> {
        let values = self.inputs(e, fold, row, index, touched);
        match values[..] {
            [a, b] => e.b.value("arith.mulf", &[a, b], a.r#type()),
            _ => values[0],
        }
    }

    fn inputs(
        &self,
        e: &Emitter<'c>,
        fold: &Fold<'c>,
        row: Option<Row<'c>>,
        index: &[Index<'c>],
        touched: &mut HashMap<Place, Address<'c>>,
    ) -> Vec<Val<'c>> {
        let mut site = self.site(row, index, touched);
        let mut known = HashMap::new();
        let inputs = fold.inputs.iter();
        inputs
            .map(|input| site.value(e, &fold.body, *input, &mut known))
            .collect()
    }

    // Lists and generics.

    fn list(&self, e: &Emitter<'c>, list: &List<'c>) {
        let node = &self.frame.graph.nodes[list.node];
        let elem = node.elem;
        let store = self.store_of(list.node, list.init_value);
        let domain = &list.init.domain;
        let dense = Linear {
            constant: 0,
            coefficients: dense_strides(domain),
        };
        self.deal(
            e,
            domain.iter().product(),
            self.threads(),
            |e, _, row, at| {
                let Some(of_row) = row else { return };
                let index = delinearise(e, at, domain);
                let mut touched = self.addresses(e, row, &[&list.init], &[store.place]);
                let mut known = HashMap::new();
                let start = self.site(row, &index, &mut touched).value(
                    e,
                    &list.init,
                    list.init_value,
                    &mut known,
                );
                let [_, entries, offsets] = self.frame.operands[list.list];
                let entry = e.offset(offsets, e.times(of_row.in_bucket, 4));
                let first = e.load_u32(entry);
                let end = e.load_u32(e.offset_by(entry, 4));
                let end = e.for_loop(first, end, 1, &[start], |e, at, carried| {
                    let entry = e.offset(entries, e.times(at, 4));
                    let base = self.frame.operand_row(e, list.list, entry);
                    let at = element_address(e, base, &dense, elem_bytes(elem), &index);
                    let element = e.load_elem(at, elem, Width::Scalar, None);
                    let values = [carried[0], element];
                    vec![reduce_rows::combine(
                        e,
                        list.op,
                        elem,
                        values,
                        Width::Scalar,
                    )]
                })[0];
                self.site(row, &index, &mut touched)
                    .store(e, &store, end, elem);
            },
        );
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
                    let mut site = self.site(row, &index, &mut addresses);
                    let mut known = HashMap::new();
                    let mut arguments: Vec<_> = inputs
                        .iter()
                        .map(|input| site.value(e, body, *input, &mut known))
                        .collect();
                    arguments.extend(carried);
                    generic::copy_body(e, loops, &arguments, &index)
                });
                let mut addresses = touched.clone();
                let mut site = self.site(row, &index, &mut addresses);
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
                    site.store(e, &store, *end, self.frame.graph.nodes[*result].elem);
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

fn elem_of(fold: &Fold<'_>) -> Elem {
    fold.body.values[fold.inputs[0]].1
}

/// The index of a fold's domain that kept and folded dims make up.
fn whole_index<'c>(fold: &Fold<'c>, kept: &[Index<'c>], folded: &[Index<'c>]) -> Vec<Index<'c>> {
    let mut kept = kept.iter();
    let mut index = Vec::new();
    for dim in 0..fold.body.domain.len() {
        let at = match fold.dims.iter().position(|folded| *folded == dim) {
            Some(position) => folded.get(position),
            None => kept.next(),
        };
        index.push(at.copied().unwrap_or(Index::constant(0)));
    }
    index
}

fn combine<'c>(e: &Emitter<'c>, fold: &Fold<'c>, a: Val<'c>, b: Val<'c>) -> Val<'c> {
    match fold.combiner {
        Some(combiner) => {
            let e = Emitter {
                b: e.b.at(combiner.location()),
                ..*e
            };
            e.copy(combiner, &[a, b], a.r#type())
        }
        None => e.b.value("arith.addf", &[a, b], a.r#type()),
    }
}
