//! Loops over the elements of a part of a result, by vectors along one of its dims.

use cohort_dialects::builder::Val;
use cohort_passes::kernel::affine::{Affine, Var};
use cohort_passes::kernel::calls::stages::Store;
use cohort_passes::kernel::rows::layout::LANES;

use super::super::graph::Size;
use super::{Call, Lanes, Memory};
use crate::emit::{Emitter, Width};

/// A range of a dim at run time: `count` entries from `first` on.
#[derive(Clone, Copy)]
pub struct Range<'c> {
    pub first: Option<Val<'c>>,
    pub count: Val<'c>,
    /// `count`, if it is known.
    pub known: Option<i64>,
}

impl<'c> Range<'c> {
    /// The first entry, and the one behind the last.
    pub fn ends(&self, e: &Emitter<'c>) -> [Val<'c>; 2] {
        match self.first {
            None => [e.int(0), self.count],
            Some(first) => [first, e.add(first, self.count)],
        }
    }
}

impl<'c> Call<'_, 'c> {
    /// A loop over `0..count` by vectors: `body` is given an index, which of the lanes count, if not
    /// all do, and what is carried. Where the loop is split, the mask is left to its last step.
    pub fn lanes_loop(
        &mut self,
        e: &Emitter<'c>,
        count: Val<'c>,
        known: Option<i64>,
        carried: &[Val<'c>],
        mut body: impl FnMut(
            &mut Self,
            &Emitter<'c>,
            Val<'c>,
            Option<Val<'c>>,
            &[Val<'c>],
        ) -> Vec<Val<'c>>,
    ) -> Vec<Val<'c>> {
        let main = match (self.split, known) {
            (false, _) => None,
            (true, Some(known)) if known % LANES == 0 => {
                return e.for_loop(e.int(0), count, LANES, carried, |e, value, carried| {
                    body(self, e, value, None, carried)
                });
            }
            (true, Some(known)) => (known > LANES).then(|| e.int(known - known % LANES)),
            (true, None) => Some(e.and(count, -LANES)),
        };
        let mut carried = carried.to_vec();
        if let Some(main) = main {
            carried = e.for_loop(e.int(0), main, LANES, &carried, |e, value, carried| {
                body(self, e, value, None, carried)
            });
        }
        let first = main.unwrap_or_else(|| e.int(0));
        e.for_loop(first, count, LANES, &carried, |e, value, carried| {
            let mask = e.first_lanes(e.sub(count, value));
            body(self, e, value, Some(mask), carried)
        })
    }

    /// The ranges of a stage's loops, of this work item of the first.
    pub fn ranges(&self, e: &Emitter<'c>, over: &[Size]) -> Vec<Range<'c>> {
        let mut ranges: Vec<_> = over
            .iter()
            .map(|size| Range {
                first: None,
                count: self.size(e, *size),
                known: size.known(),
            })
            .collect();
        if let (Some([from, to]), Some(range)) = (self.item, ranges.first_mut()) {
            range.first = Some(from);
            range.count = e.sub(to, from);
        }
        ranges
    }

    /// Computes a node at every index of the ranges and stores it.
    pub fn store_all(
        &mut self,
        e: &Emitter<'c>,
        store: &Store,
        ranges: &[Range<'c>],
        memory: &Memory<'c>,
    ) {
        let vars: Vec<Var> = ranges.iter().map(|_| self.variables.add(None)).collect();
        let of_vars: Vec<Affine> = vars.iter().map(|var| Affine::var(*var)).collect();
        let [at, to] = [&store.at, &store.to]
            .map(|index| index.iter().map(|index| index.at(&of_vars)).collect());
        let stores = Stores {
            store,
            ranges,
            memory,
            vars,
            at,
            to,
        };
        self.prepare(e, store.value, &stores.at, Lanes::default(), &stores.vars);
        self.store_loops(e, &stores, 0);
    }

    fn store_loops(&mut self, e: &Emitter<'c>, stores: &Stores<'_, 'c>, dim: usize) {
        let node = stores.store.value;
        let elem = self.graph.nodes[node].elem;
        let Some(range) = stores.ranges.get(dim) else {
            let value = self.value(e, node, &stores.at, Lanes::default());
            let address = self.address(e, stores.memory, &stores.to);
            e.store_elem(value, address, elem, Width::Scalar, None);
            return;
        };
        let var = stores.vars[dim];
        if stores.store.lanes != Some(dim) {
            e.for_loop(e.int(0), range.count, 1, &[], |e, value, _| {
                self.scope(|call| {
                    let position = range.first.map_or(value, |first| e.add(first, value));
                    call.variables.set(var, position);
                    let blocked = &stores.vars[dim + 1..];
                    call.prepare(e, node, &stores.at, Lanes::default(), blocked);
                    call.store_loops(e, stores, dim + 1);
                });
                vec![]
            });
            return;
        }
        self.lanes_loop(
            e,
            range.count,
            range.known,
            &[],
            |call, e, value, mask, _| {
                call.scope(|call| {
                    let position = range.first.map_or(value, |first| e.add(first, value));
                    call.variables.set(var, position);
                    for rest in &stores.vars[dim + 1..] {
                        call.variables.set(*rest, e.int(0));
                    }
                    let lanes = Lanes {
                        var: Some(var),
                        mask,
                    };
                    let value = call.value(e, node, &stores.at, lanes);
                    let address = call.address(e, stores.memory, &stores.to);
                    e.store_elem(value, address, elem, Width::Vector, mask);
                });
                vec![]
            },
        );
    }
}

/// What is stored, with the variables of the loops.
struct Stores<'a, 'c> {
    store: &'a Store,
    ranges: &'a [Range<'c>],
    memory: &'a Memory<'c>,
    vars: Vec<Var>,
    at: Vec<Affine>,
    to: Vec<Affine>,
}
