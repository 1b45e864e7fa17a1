//! Packs a block of a side of a product into scratch, as the shared code of products reads it.
//!
//! The left side is rows, each with its terms side by side; the right side is panels of 32 columns. A side is computed
//! while it is packed. A left side that lies in memory as tiles read it need not be packed.

use cohort_dialects::builder::{Op, Val};
use cohort_dialects::keys;
use cohort_passes::kernel::affine::{Affine, Var};
use cohort_passes::kernel::calls::stages::Side;
use cohort_passes::kernel::rows::layout::LANES;
use cohort_passes::kernel::rows::stage::PANEL;
use melior::ir::ValueLike;

use super::eval::{Call, Lanes, Range};
use super::graph::{Kind, NodeId};
use crate::emit::Emitter;

/// How many rows further on memory is asked for while the left side is packed: rows lie apart, and are too short for
/// a processor to foresee them.
const ROWS_AHEAD: i64 = 4;

/// A block of depth of a side of a product, to be packed.
pub struct Packing<'a, 'c> {
    pub side: &'a Side,
    /// The first loops.
    pub outer: &'a [Var],
    /// The numbers of the loops over the side's own rows or columns, and along the depth.
    pub own: usize,
    pub along: usize,
    /// The first of the block, how many there are, and how many there are in all.
    pub k: Val<'c>,
    pub k_count: Val<'c>,
    pub depth: Val<'c>,
}

impl<'c> Packing<'_, 'c> {
    /// A variable for the side's rows or columns, one for the depth, and the side's index of both.
    fn variables(&self, call: &mut Call<'_, 'c>, first: Val<'c>) -> (Var, Var, Vec<Affine>) {
        let own = call.variable(first);
        let k = call.variable(self.k);
        let mut loops: Vec<Affine> = self.outer.iter().map(|var| Affine::var(*var)).collect();
        loops.resize(self.along + 1, Affine::default());
        loops[self.own] = Affine::var(own);
        loops[self.along] = Affine::var(k);
        let at = self.side.at.iter();
        (own, k, at.map(|index| index.at(&loops)).collect())
    }

    /// Where tiles can read the left side's terms from a row on, and the bytes between its rows; none where it does not
    /// lie in memory with its terms side by side.
    pub fn in_place(
        &self,
        e: &Emitter<'c>,
        call: &mut Call<'_, 'c>,
        first: Val<'c>,
    ) -> Option<[Val<'c>; 2]> {
        let (row, k, at) = self.variables(call, first);
        let (memory, at) = call.in_memory(self.side.value, &at, k)?;
        let stride = call.stride_along(e, &memory, &at, row);
        Some([call.address(e, &memory, &at), stride])
    }

    /// Rows of the left side, each with its columns side by side.
    pub fn left(
        &self,
        e: &Emitter<'c>,
        call: &mut Call<'_, 'c>,
        rows: Range<'c>,
        all: Val<'c>,
        to: Val<'c>,
        stride: Val<'c>,
    ) {
        let zero = e.int(0);
        let first = rows.first.unwrap_or(zero);
        let (row_var, k_var, at) = self.variables(call, first);
        let node = self.side.value;
        if self.side.along_depth {
            let last = e.sub(rows.count, e.int(1));
            e.for_loop(zero, rows.count, 1, &[], |e, i, _| {
                call.scope(|call| {
                    call.set(row_var, e.add(first, i));
                    call.prepare(e, node, &at, Lanes::default(), &[k_var]);
                    let to = e.offset(to, e.mul(i, stride));
                    let ahead = e.min(e.add(i, e.int(ROWS_AHEAD)), last);
                    let ahead = self.addresses(e, call, e.add(first, ahead));
                    self.k_loop(e, call, |call, e, k, masked| {
                        for row in &ahead {
                            e.prefetch(e.offset(*row, e.times(k, 4)));
                        }
                        let value = self.along_k(e, call, node, &at, (k_var, k), masked);
                        e.store(value, e.offset(to, e.times(k, 4)), 4);
                    });
                });
                vec![]
            });
            return;
        }
        // Lanes run along the rows, and squares of them are transposed.
        call.lanes_loop(e, rows.count, rows.known, &[], |call, e, i, mask, _| {
            let to = e.offset(to, e.mul(i, stride));
            e.for_loop(zero, self.k_count, LANES, &[], |e, k, _| {
                let square = (0..LANES).map(|lane| {
                    call.scope(|call| {
                        let k = e.add(self.k, e.add(k, e.int(lane)));
                        call.set(k_var, e.min(k, e.sub(self.depth, e.int(1))));
                        let row = e.add(first, i);
                        call.set(row_var, row);
                        let lanes = Lanes {
                            var: Some(row_var),
                            mask: mask.map(|_| e.first_lanes(e.sub(all, row))),
                        };
                        call.value(e, node, &at, lanes)
                    })
                });
                let square = transpose(e, square.collect());
                store_lines(e, square, e.offset(to, e.times(k, 4)), stride);
                vec![]
            });
            vec![]
        });
    }

    /// Where the memory that the side is computed of has its terms side by side: from the block's first term of a row on.
    fn addresses(&self, e: &Emitter<'c>, call: &mut Call<'_, 'c>, row: Val<'c>) -> Vec<Val<'c>> {
        let (_, k, at) = self.variables(call, row);
        let (mut addresses, mut stack) = (vec![], vec![self.side.value]);
        while let Some(node) = stack.pop() {
            if let Some((memory, at)) = call.in_memory(node, &at, k) {
                addresses.push(call.address(e, &memory, &at));
            } else if let Kind::Pointwise { inputs, .. } = &call.graph.nodes[node].kind {
                // They are read at the same index.
                stack.extend(inputs);
            }
        }
        addresses
    }

    /// A loop over the block's depth by vectors; the body is told whether some lanes may not count.
    fn k_loop<'a>(
        &self,
        e: &Emitter<'c>,
        call: &mut Call<'a, 'c>,
        mut body: impl FnMut(&mut Call<'a, 'c>, &Emitter<'c>, Val<'c>, bool),
    ) {
        call.lanes_loop(e, self.k_count, None, &[], |call, e, k, mask, _| {
            call.scope(|call| body(call, e, k, mask.is_some()));
            vec![]
        });
    }

    /// The left or right side at an index, with lanes along the depth from `k` of the block on.
    fn along_k(
        &self,
        e: &Emitter<'c>,
        call: &mut Call<'_, 'c>,
        node: NodeId,
        at: &[Affine],
        (k_var, k): (Var, Val<'c>),
        masked: bool,
    ) -> Val<'c> {
        let k = e.add(self.k, k);
        call.set(k_var, k);
        let lanes = Lanes {
            var: Some(k_var),
            mask: masked.then(|| e.first_lanes(e.sub(self.depth, k))),
        };
        call.value(e, node, at, lanes)
    }

    /// Panels of the right side: `[columns / 32][k][32]`.
    pub fn right(
        &self,
        e: &Emitter<'c>,
        call: &mut Call<'_, 'c>,
        columns: Range<'c>,
        all: Val<'c>,
        to: Val<'c>,
        panel: Val<'c>,
    ) {
        let zero = e.int(0);
        let first = columns.first.unwrap_or(zero);
        let (var, k_var, at) = self.variables(call, first);
        let node = self.side.value;
        let place = |e: &Emitter<'c>, j: Val<'c>| {
            let panels = e.shift_right(j, 5);
            let half = e.and(e.times(j, 4), 64);
            let to = e.offset(to, e.add(e.mul(panels, panel), half));
            (to, e.add(first, j))
        };
        if !self.side.along_depth {
            let whole = match call.split {
                true => e.and(columns.count, -PANEL),
                false => zero,
            };
            if call.split {
                self.whole_panels(e, call, (var, k_var, &at), whole, &place);
            }
            let rest = e.sub(columns.count, whole);
            let known = columns.known.map(|known| match call.split {
                true => known % PANEL,
                false => known,
            });
            call.lanes_loop(e, rest, known, &[], |call, e, j, mask, _| {
                let (to, column) = place(e, e.add(whole, j));
                let mask = mask.map(|_| e.first_lanes(e.sub(all, column)));
                e.for_loop(zero, self.k_count, 1, &[], |e, k, _| {
                    call.scope(|call| {
                        call.set(var, column);
                        call.set(k_var, e.add(self.k, k));
                        let var = Some(var);
                        let value = call.value(e, node, &at, Lanes { var, mask });
                        e.store(value, e.offset(to, e.times(k, PANEL * 4)), 4);
                    });
                    vec![]
                });
                vec![]
            });
            return;
        }
        e.for_loop(zero, columns.count, LANES, &[], |e, j, _| {
            let (to, column) = place(e, j);
            self.k_loop(e, call, |call, e, k, masked| {
                let square = (0..LANES).map(|lane| {
                    call.scope(|call| {
                        let column = e.add(column, e.int(lane));
                        call.set(var, e.min(column, e.sub(all, e.int(1))));
                        self.along_k(e, call, node, &at, (k_var, k), masked)
                    })
                });
                let square = transpose(e, square.collect());
                store_lines(
                    e,
                    square,
                    e.offset(to, e.times(k, PANEL * 4)),
                    e.int(PANEL * 4),
                );
            });
            vec![]
        });
    }

    /// Panels that are whole, of a side whose columns lie side by side: both vectors of a term at once, as memory is read
    /// faster where neighbours are asked for together.
    fn whole_panels(
        &self,
        e: &Emitter<'c>,
        call: &mut Call<'_, 'c>,
        (var, k_var, at): (Var, Var, &[Affine]),
        whole: Val<'c>,
        place: &dyn Fn(&Emitter<'c>, Val<'c>) -> (Val<'c>, Val<'c>),
    ) {
        let zero = e.int(0);
        e.for_loop(zero, whole, PANEL, &[], |e, j, _| {
            let halves = [zero, e.int(LANES)].map(|lane| place(e, e.add(j, lane)));
            e.for_loop(zero, self.k_count, 1, &[], |e, k, _| {
                let values = halves.map(|(_, column)| {
                    call.scope(|call| {
                        call.set(var, column);
                        call.set(k_var, e.add(self.k, k));
                        let lanes = Lanes {
                            var: Some(var),
                            mask: None,
                        };
                        call.value(e, self.side.value, at, lanes)
                    })
                });
                for (value, (to, _)) in values.into_iter().zip(halves) {
                    e.store(value, e.offset(to, e.times(k, PANEL * 4)), 4);
                }
                vec![]
            });
            vec![]
        });
    }
}

/// Stores vectors, `stride` bytes apart.
fn store_lines<'c>(e: &Emitter<'c>, lines: Vec<Val<'c>>, to: Val<'c>, stride: Val<'c>) {
    for (line, vector) in lines.into_iter().enumerate() {
        e.store(vector, e.offset(to, e.times(stride, line as i64)), 4);
    }
}

/// A square of sixteen vectors, transposed by exchanges at distances 1, 2, 4, 8.
fn transpose<'c>(e: &Emitter<'c>, mut square: Vec<Val<'c>>) -> Vec<Val<'c>> {
    let lanes = LANES as usize;
    for distance in [1, 2, 4, 8] {
        for row in (0..lanes).filter(|row| row & distance == 0) {
            let (a, b) = (square[row], square[row + distance]);
            let low: Vec<usize> = (0..lanes)
                .map(|lane| match lane & distance {
                    0 => lane,
                    _ => lanes + lane - distance,
                })
                .collect();
            let high: Vec<usize> = (0..lanes)
                .map(|lane| match lane & distance {
                    0 => lane + distance,
                    _ => lanes + lane,
                })
                .collect();
            square[row] = shuffle(e, a, b, &low);
            square[row + distance] = shuffle(e, a, b, &high);
        }
    }
    square
}

fn shuffle<'c>(e: &Emitter<'c>, a: Val<'c>, b: Val<'c>, lanes: &[usize]) -> Val<'c> {
    let lanes: Vec<i64> = lanes.iter().map(|lane| *lane as i64).collect();
    let mask = e.b.i64s(&lanes);
    e.b.value_with(
        Op::VectorShuffle,
        &[a, b],
        a.r#type(),
        &[(keys::MASK, mask)],
    )
}
