//! `ragged-lower-prelude`: preludes become loops over tables.
//!
//! A `ragged.prelude` is replaced by what is in it, and the operations that compute lengths, offsets,
//! maps and lists become `scf` loops that fill integer tensors.
//!
//! ```mlir
//! %o = ragged.offsets @seq(%n) pad 4 : tensor<?xindex> -> tensor<?xindex>
//! // becomes
//! %rows = tensor.dim %n, %c0 : tensor<?xindex>
//! %e = tensor.empty(%entries) : tensor<?xindex>      // one more than there are rows
//! %s = tensor.insert %c0 into %e[%c0] : tensor<?xindex>
//! %o:2 = scf.for %row = %c0 to %rows step %c1 iter_args(%t = %s, %sum = %c0) -> (…) {
//!   %length = tensor.extract %n[%row] : tensor<?xindex>
//!   …                                                // rounded up to 4, and added to the sum
//!   %next = tensor.insert %end into %t[%after] : tensor<?xindex>
//!   scf.yield %next, %end : tensor<?xindex>, index
//! }
//! ```
//!
//! `ragged.fuse` takes time and memory in the order of the entries there really are. `ragged.remap`
//! and `ragged.merge` count, for every row, the rows before it: time in the order of the square of
//! the number of rows, and no memory but the result.
//!
//! A length that a rule makes negative is 0. A table over several dims is one list of its entries in order of storage: one over ragged dims is
//! taken as its storage (`ragged.to_storage`), a dense one collapsed.
//!
//! Requires: lengths are not negative. Leaves: `scf`, `arith` and `tensor` operations, ready for
//! bufferization once `ragged-lower-storage` has run; loops and storage are untouched. Limits: where a
//! result is a table over ragged dims, what it is computed of comes from a `ragged.from_storage` in the
//! function. After Fegade et al., "The CoRa Tensor Compiler"
//! (MLSys 2022), section 5, whose prelude this is.

use cohort_dialects::builder::{
    Builder, CmpiPredicate, Op, Val, arguments_of, operands_of, operations_of, results_of,
};
use melior::{
    Context,
    ir::{
        OperationRef, Type, ValueLike, attribute::DenseI64ArrayAttribute, operation::OperationLike,
    },
};

use super::index::Indices;
use super::nest::segments;
use super::rules::{apply_rule, declaration_of};
use super::tables::{flat_type, flatten, unflatten};
use crate::pass::{Failed, Outcome, PassInfo, error};
use crate::support::ir::{
    blocks_of, erase, integer_attribute, key, move_before, name_attribute, nested_ops, replace_uses,
};
use cohort_dialects::attributes::longest_first;

pub const PASS: PassInfo = PassInfo {
    name: "ragged-lower-prelude",
    summary: "Make preludes loops that fill tables of offsets, maps and lists",
    description: include_str!("ragged_lower_prelude.rs"),
    run,
};

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    // Chosen first: a prelude is erased together with what ends it.
    let preludes: Vec<_> = nested_ops(module)
        .into_iter()
        .filter(|op| Op::RaggedPrelude.is(*op))
        .collect();
    preludes.into_iter().for_each(dissolve);
    for op in nested_ops(module) {
        lower(context, module, op)?;
    }
    Ok(())
}

/// Puts what is in a prelude in its place.
fn dissolve<'c>(prelude: OperationRef<'c, 'c>) {
    let Some(block) = blocks_of(prelude).first().copied() else {
        return;
    };
    for (argument, operand) in arguments_of(block).into_iter().zip(operands_of(prelude)) {
        replace_uses(argument, operand);
    }
    for op in operations_of(block) {
        if Op::RaggedYield.is(op) {
            for (result, value) in results_of(prelude).into_iter().zip(operands_of(op)) {
                replace_uses(result, value);
            }
        } else {
            move_before(op, prelude);
        }
    }
    erase(prelude);
}

fn lower<'c>(
    context: &'c Context,
    module: OperationRef<'c, 'c>,
    op: OperationRef<'c, 'c>,
) -> Outcome {
    let kind = Op::of(op);
    let lowering: fn(&Lowering<'c>) -> Option<Vec<Val<'c>>> = match kind {
        Some(Op::RaggedLengths) => Lowering::lengths,
        Some(Op::RaggedOffsets) => Lowering::offsets,
        Some(Op::RaggedFuse) => Lowering::fuse,
        Some(Op::RaggedSplit) => Lowering::split,
        Some(Op::RaggedRemap) => Lowering::remap,
        Some(Op::RaggedPartition) => Lowering::partition,
        Some(Op::RaggedMerge) => Lowering::merge,
        _ => return Ok(()),
    };
    let Some(builder) = Builder::before(context, op) else {
        return Err(Failed);
    };
    let emitter = Indices::new(builder);
    let operands = operands_of(op);
    let lowering_of = Lowering {
        emitter,
        module,
        op,
        types: results_of(op)
            .iter()
            .map(|value| flat_type(value.r#type()))
            .collect(),
        operands: operands
            .iter()
            .map(|table| flatten(&emitter, *table))
            .collect(),
    };
    let Some(values) = lowering(&lowering_of) else {
        let message = "the rule of a dim in another symbol table is not supported yet";
        return Err(error(op, message));
    };
    for (result, value) in results_of(op).into_iter().zip(values) {
        let like = operands.first().copied().unwrap_or(value);
        let Some(table) = unflatten(&emitter, value, result.r#type(), like) else {
            let message = "not supported yet: a table over ragged dims whose storage is not given by \
                `ragged.from_storage`";
            return Err(error(op, message));
        };
        replace_uses(result, table);
    }
    erase(op);
    Ok(())
}

/// One operation and where its replacement is written.
struct Lowering<'c> {
    emitter: Indices<'c>,
    module: OperationRef<'c, 'c>,
    op: OperationRef<'c, 'c>,
    operands: Vec<Val<'c>>,
    types: Vec<Type<'c>>,
}

impl<'c> Lowering<'c> {
    /// A table with an entry for each of the first operand's, each computed from its position.
    fn fill(
        &self,
        tables: usize,
        entries: impl FnOnce(&Indices<'c>, Val<'c>) -> Vec<Val<'c>>,
    ) -> Vec<Val<'c>> {
        let size = self.emitter.size(self.operands[0]);
        let empty: Vec<_> = self.types[..tables]
            .iter()
            .map(|ty| self.emitter.empty(size, *ty))
            .collect();
        self.emitter
            .for_each(self.operands[0], &empty, |inner, at, carried| {
                let entries = entries(inner, at);
                carried
                    .iter()
                    .zip(entries)
                    .map(|(table, entry)| inner.put(*table, at, entry))
                    .collect()
            })
    }

    fn lengths(&self) -> Option<Vec<Val<'c>>> {
        let dim = declaration_of(self.module, &name_attribute(self.op, "dim")?)?;
        let indices = segments(self.op)[0];
        let mut length = None;
        let result = self.fill(1, |inner, at| {
            let values: Vec<_> = self
                .operands
                .iter()
                .map(|table| inner.get(*table, &[at]))
                .collect();
            length = apply_rule(inner, dim, &values[..indices], &values[indices..]);
            // What a rule makes negative is a row without entries, as it is for a loop.
            vec![inner.max(length.unwrap_or(at), inner.constant(0))]
        });
        length.map(|_| result)
    }

    fn offsets(&self) -> Option<Vec<Val<'c>>> {
        let e = &self.emitter;
        let lengths = self.operands[0];
        let pad = integer_attribute(self.op, "pad").unwrap_or(1);
        let bulk = integer_attribute(self.op, "bulk").unwrap_or(1);
        let (zero, one) = (e.constant(0), e.constant(1));
        let rows = e.size(lengths);
        let empty = e.empty(e.add(rows, one), self.types[0]);
        let start = e.put(empty, zero, zero);
        let ends = e.for_each(lengths, &[start, zero], |inner, row, carried| {
            let extent = inner.round_up(inner.get(lengths, &[row]), pad);
            let end = inner.add(carried[1], extent);
            let after = inner.add(row, one);
            vec![inner.put(carried[0], after, end), end]
        });
        Some(vec![if bulk == 1 {
            ends[0]
        } else {
            e.put(ends[0], rows, e.round_up(ends[1], bulk))
        }])
    }

    fn fuse(&self) -> Option<Vec<Val<'c>>> {
        let e = &self.emitter;
        let offsets = self.operands[0];
        let (zero, one) = (e.constant(0), e.constant(1));
        let rows = e.sub(e.size(offsets), one);
        let total = e.get(offsets, &[rows]);
        let empty: Vec<_> = self.types.iter().map(|ty| e.empty(total, *ty)).collect();
        Some(e.for_loop(zero, rows, &empty, |outer, row, carried| {
            let begin = outer.get(offsets, &[row]);
            let end = outer.get(offsets, &[outer.add(row, one)]);
            outer.for_loop(begin, end, carried, |inner, at, carried| {
                vec![
                    inner.put(carried[0], at, row),
                    inner.put(carried[1], at, inner.sub(at, begin)),
                ]
            })
        }))
    }

    fn split(&self) -> Option<Vec<Val<'c>>> {
        let multiple = integer_attribute(self.op, "multiple")?;
        Some(self.fill(2, |inner, at| {
            let length = inner.get(self.operands[0], &[at]);
            let main = inner.round_down(length, multiple);
            vec![main, inner.sub(length, main)]
        }))
    }

    fn remap(&self) -> Option<Vec<Val<'c>>> {
        let earlier = match longest_first(self.op)? {
            true => CmpiPredicate::Sgt,
            false => CmpiPredicate::Slt,
        };
        let e = &self.emitter;
        let lengths = self.operands[0];
        let empty = e.empty(e.size(lengths), self.types[0]);
        Some(e.for_each(lengths, &[empty], |outer, row, carried| {
            let length = outer.get(lengths, &[row]);
            // Rows of one length keep their order.
            let place = outer.count(lengths, |inner, other, at| {
                let before = inner.b.cmpi(earlier, other, length);
                let same = inner.b.cmpi(CmpiPredicate::Eq, other, length);
                let above = inner.b.cmpi(CmpiPredicate::Slt, at, row);
                let tie = inner.b.andi(same, above);
                inner.b.ori(before, tie)
            });
            vec![outer.put(carried[0], place, row)]
        }))
    }

    fn partition(&self) -> Option<Vec<Val<'c>>> {
        let bounds = self.op.attribute("bounds").ok()?;
        let bounds = DenseI64ArrayAttribute::try_from(bounds).ok()?;
        let bounds: Vec<_> = (0..bounds.len())
            .map(|at| bounds.element(at).ok())
            .collect::<Option<_>>()?;
        let classes = (0..=bounds.len()).map(|class| {
            let least = class.checked_sub(1).map(|below| bounds[below]);
            self.rows_between(least, bounds.get(class).copied(), self.types[class])
        });
        Some(classes.collect())
    }

    /// The rows of lengths over one bound and up to another.
    fn rows_between(&self, over: Option<i64>, up_to: Option<i64>, ty: Type<'c>) -> Val<'c> {
        let e = &self.emitter;
        let lengths = self.operands[0];
        let belongs = |inner: &Indices<'c>, length: Val<'c>| {
            let over = over.map(|bound| {
                inner
                    .b
                    .cmpi(CmpiPredicate::Sgt, length, inner.constant(bound))
            });
            let up_to = up_to.map(|bound| {
                inner
                    .b
                    .cmpi(CmpiPredicate::Sle, length, inner.constant(bound))
            });
            match (over, up_to) {
                (Some(over), Some(up_to)) => inner.b.andi(over, up_to),
                (Some(one), None) | (None, Some(one)) => one,
                // There is at least one bound.
                (None, None) => inner.b.cmpi(CmpiPredicate::Eq, length, length),
            }
        };
        let size = e.count(lengths, |inner, length, _| belongs(inner, length));
        let empty = e.empty(size, ty);
        let zero = e.constant(0);
        e.for_each(lengths, &[empty, zero], |outer, row, carried| {
            let length = outer.get(lengths, &[row]);
            let condition = belongs(outer, length);
            outer.if_holds(condition, carried, |inner, carried| {
                let one = inner.constant(1);
                vec![
                    inner.put(carried[0], carried[1], row),
                    inner.add(carried[1], one),
                ]
            })
        })[0]
    }

    fn merge(&self) -> Option<Vec<Val<'c>>> {
        let e = &self.emitter;
        let mut size = e.constant(0);
        for list in &self.operands {
            size = e.add(size, e.size(*list));
        }
        let mut rows = e.empty(size, self.types[0]);
        for list in &self.operands {
            rows = e.for_each(*list, &[rows], |outer, at, carried| {
                let row = outer.get(*list, &[at]);
                let mut place = at;
                for other in &self.operands {
                    if key(*other) != key(*list) {
                        let before = outer.count(*other, |inner, entry, _| {
                            inner.b.cmpi(CmpiPredicate::Slt, entry, row)
                        });
                        place = outer.add(place, before);
                    }
                }
                vec![outer.put(carried[0], place, row)]
            })[0];
        }
        Some(vec![rows])
    }
}
