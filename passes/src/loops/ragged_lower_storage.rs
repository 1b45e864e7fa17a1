//! `ragged-lower-storage`: ragged tensors become their storage.
//!
//! An element of a ragged tensor is one of its storage, at the place that lengths and offsets give.
//! Packing and unpacking are loops over what is within the lengths, what a loop of `scf` carries is
//! storage, and elementwise arithmetic is done to storage as to one dense tensor, padding and all.
//!
//! ```mlir
//! %x = ragged.from_storage %rows lengths(%n) offsets(%o)
//!     : tensor<?x512xf32>, (tensor<?xindex>), tensor<?xindex>
//!     -> tensor<?x?x512xf32, #ragged.shape<@batch, @seq(@batch), _>>
//! %e = tensor.extract %x[%b, %s, %d] : tensor<?x?x512xf32, #ragged.shape<@batch, @seq(@batch), _>>
//! // becomes
//! %first = tensor.extract %o[%b] : tensor<?xindex>
//! %row = arith.addi %first, %s : index
//! %e = tensor.extract %rows[%row, %d] : tensor<?x512xf32>
//! ```
//!
//! The dims up to the last one on which another's length depends number the rows that offsets count;
//! the dims behind them have one extent in a row, its padding included. Rows of several dims are
//! numbered as the table of lengths over these dims stores them. Where there is none, offsets of these
//! dims are computed at the `ragged.from_storage`: an entry a row, whatever the longest row is.
//!
//! Requires: `ragged-lower-prelude` and `ragged-lower-loops` have run. Leaves: no ragged tensors, but
//! in kernels, where `lower-kernels` knows what to do with them, and no declared dims where nothing can
//! name them. Limits: a ragged tensor's storage is known in the function, by `ragged.from_storage`;
//! functions neither take nor return ragged tensors, and no other operations than these have them as
//! operands (divisions of integers neither, for padding may be zero): that is an error at the operation.
//! After
//! Fegade et al., "The CoRa Tensor Compiler" (MLSys 2022), §5.2: lowering of storage accesses.

use std::collections::HashMap;
use std::rc::Rc;

use cohort_dialects::builder::{
    Builder, Dialect, Op, Val, arguments_of, is_arithmetic, name_of, operands_of, operations_of,
    results_of,
};
use cohort_dialects::shape::Shape;
use melior::{
    Context,
    ir::{BlockRef, OperationRef, ValueLike},
};

use super::index::Indices;
use super::layout::{Layout, Table, nest};
use super::nest::segments;
use crate::pass::{Failed, Outcome, PassInfo, error};
use crate::support::ir::{
    TensorType, ValueKey, blocks_of, erase, key, nested_ops, op_key, replace_uses, set_operand,
    set_type, top_level,
};

pub const PASS: PassInfo = PassInfo {
    name: "ragged-lower-storage",
    summary: "Make ragged tensors their storage, and their elements places in it",
    description: include_str!("ragged_lower_storage.rs"),
    run,
};

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    for op in top_level(module) {
        if Op::CfbKernel.is(op) {
            continue;
        }
        let within = nested_ops(op).into_iter().chain([op]);
        let mut lowering = Lowering {
            context,
            ragged: within.filter_map(ragged_operands).collect(),
            stored: HashMap::new(),
            dead: Vec::new(),
        };
        lowering.op(op)?;
        // Users stand behind what they use.
        lowering.dead.into_iter().rev().for_each(|op| erase(op));
    }
    let names_dims = |op: &OperationRef<'c, 'c>| {
        let is_ragged = Dialect::Ragged.has(*op) && !Op::RaggedDim.is(*op);
        Dialect::Cfb.has(*op) || is_ragged
    };
    if !nested_ops(module).iter().any(names_dims) {
        let dims = top_level(module)
            .into_iter()
            .filter(|op| Op::RaggedDim.is(*op));
        dims.for_each(|op| erase(op));
    }
    Ok(())
}

/// What a ragged tensor has become.
#[derive(Clone)]
struct Stored<'c> {
    storage: Val<'c>,
    layout: Rc<Layout<'c>>,
}

struct Lowering<'c> {
    context: &'c Context,
    /// The operations that have ragged operands or results, and which operands: as it was, for values
    /// become storage on the way.
    ragged: HashMap<usize, Vec<bool>>,
    stored: HashMap<ValueKey, Stored<'c>>,
    /// What has been replaced.
    dead: Vec<OperationRef<'c, 'c>>,
}

fn is_ragged(value: Val<'_>) -> bool {
    let shape = Shape::of_type(value.r#type());
    shape.is_some_and(|shape| shape.dims.iter().any(|dim| dim.is_ragged()))
}

/// Whether an operation does the same to each element, whatever is in it.
fn is_elementwise(op: OperationRef<'_, '_>) -> bool {
    let divides = matches!(
        Op::of(op),
        Some(
            Op::ArithCeildivsi
                | Op::ArithCeildivui
                | Op::ArithDivsi
                | Op::ArithDivui
                | Op::ArithFloordivsi
                | Op::ArithRemsi
                | Op::ArithRemui
        )
    );
    let has_one_result = results_of(op).len() == 1 && !operands_of(op).is_empty();
    has_one_result && is_arithmetic(op) && !divides
}

fn ragged_operands(op: OperationRef<'_, '_>) -> Option<(usize, Vec<bool>)> {
    let operands: Vec<_> = operands_of(op).into_iter().map(is_ragged).collect();
    let concerned = operands.contains(&true) || results_of(op).into_iter().any(is_ragged);
    concerned.then(|| (op_key(op), operands))
}

impl<'c> Lowering<'c> {
    fn op(&mut self, op: OperationRef<'c, 'c>) -> Outcome {
        let operands = operands_of(op);
        let results = results_of(op);
        let ragged = self.ragged.get(&op_key(op)).cloned();
        let concerned = ragged.is_some();
        match Op::of(op) {
            Some(Op::RaggedFromStorage) => self.locate(op)?,
            Some(Op::RaggedToStorage) => {
                let storage = self.of(operands[0], op)?.storage;
                self.replace(op, storage);
            }
            Some(Op::RaggedPack) => self.pack(op)?,
            Some(Op::RaggedUnpack) => self.unpack(op)?,
            Some(Op::TensorExtract) if concerned => {
                let stored = self.of(operands[0], op)?;
                let e = self.before(op)?;
                let place = stored.layout.place(&e, &operands[1..]);
                self.replace(op, e.extract(stored.storage, &place));
            }
            Some(Op::TensorInsert) if concerned => {
                let stored = self.of(operands[1], op)?;
                let e = self.before(op)?;
                let place = stored.layout.place(&e, &operands[2..]);
                let storage = e.insert(operands[0], stored.storage, &place);
                self.put(op, Stored { storage, ..stored });
            }
            Some(Op::ScfFor) => self.carry(op, &ragged.unwrap_or_default())?,
            Some(Op::ScfIf) if concerned => {}
            _ if concerned && is_elementwise(op) => {
                self.elementwise(op, &ragged.unwrap_or_default())?
            }
            Some(Op::ScfYield) if concerned => {
                let flags = ragged.into_iter().flatten();
                for (at, (operand, is_ragged)) in operands.into_iter().zip(flags).enumerate() {
                    if is_ragged {
                        set_operand(op, at, self.of(operand, op)?.storage);
                    }
                }
            }
            _ if concerned => {
                let message = format!("not supported yet: `{}` of a ragged tensor", name_of(op));
                return Err(error(op, &message));
            }
            _ => {}
        }
        let blocks = blocks_of(op);
        let mut arguments = blocks.iter().flat_map(|block| arguments_of(*block));
        if arguments.any(is_ragged) {
            let message = format!(
                "not supported yet: `{}` that takes a ragged tensor; let it take storage, lengths \
                 and offsets",
                name_of(op)
            );
            return Err(error(op, &message));
        }
        let mut yielded = Vec::new();
        for block in blocks {
            yielded = self.block(block)?;
        }
        if Op::ScfIf.is(op) {
            // Whichever branch it is, rows lie where the dims' tables say.
            for (result, stored) in results.into_iter().zip(yielded) {
                if let Some(stored) = stored.filter(|_| is_ragged(result)) {
                    self.retype(result, &stored);
                }
            }
        }
        Ok(())
    }

    /// Lowers a block; what its terminator's ragged operands were.
    fn block(&mut self, block: BlockRef<'c, 'c>) -> Result<Vec<Option<Stored<'c>>>, Failed> {
        let operations = operations_of(block);
        let mut yielded = Vec::new();
        for (at, op) in operations.iter().enumerate() {
            if at + 1 == operations.len() {
                let stored = |value| self.stored.get(&key(value)).cloned();
                yielded = operands_of(*op).into_iter().map(stored).collect();
            }
            self.op(*op)?;
        }
        Ok(yielded)
    }

    fn before(&self, op: OperationRef<'c, 'c>) -> Result<Indices<'c>, Failed> {
        Builder::before(self.context, op)
            .map(Indices::new)
            .ok_or(Failed)
    }

    fn of(&self, value: Val<'c>, op: OperationRef<'c, 'c>) -> Result<Stored<'c>, Failed> {
        self.stored.get(&key(value)).cloned().ok_or_else(|| {
            let message = "not supported yet: a ragged tensor whose storage is not given by \
                `ragged.from_storage`";
            error(op, message)
        })
    }

    /// Gives all uses of an operation's result another value.
    fn replace(&mut self, op: OperationRef<'c, 'c>, value: Val<'c>) {
        replace_uses(results_of(op)[0], value);
        self.dead.push(op);
    }

    /// An operation's result is stored so from here on.
    fn put(&mut self, op: OperationRef<'c, 'c>, stored: Stored<'c>) {
        self.stored.insert(key(results_of(op)[0]), stored);
        self.dead.push(op);
    }

    /// A value stays, as storage.
    fn retype(&mut self, value: Val<'c>, stored: &Stored<'c>) {
        let like = TensorType::of_value(stored.storage);
        let own = TensorType::of_value(value);
        if let (Some(like), Some(own)) = (like, own) {
            let element = own.element;
            set_type(value, TensorType { element, ..like }.to_type());
        }
        let layout = stored.layout.clone();
        let storage = value;
        self.stored.insert(key(value), Stored { storage, layout });
    }

    fn elementwise(&mut self, op: OperationRef<'c, 'c>, ragged: &[bool]) -> Outcome {
        let operands = operands_of(op);
        let mixed = operands
            .iter()
            .zip(ragged)
            .any(|(operand, is_ragged)| !is_ragged && TensorType::of_value(*operand).is_some());
        if mixed {
            let message = format!(
                "not supported yet: `{}` of a dense and a ragged tensor",
                name_of(op)
            );
            return Err(error(op, &message));
        }
        for (at, (operand, is_ragged)) in operands.into_iter().zip(ragged).enumerate() {
            if *is_ragged {
                let stored = self.of(operand, op)?;
                set_operand(op, at, stored.storage);
                self.retype(results_of(op)[0], &stored);
            }
        }
        Ok(())
    }

    fn carry(&mut self, op: OperationRef<'c, 'c>, ragged: &[bool]) -> Outcome {
        let block = blocks_of(op).first().copied().ok_or(Failed)?;
        let (arguments, results) = (arguments_of(block), results_of(op));
        for (at, (init, is_ragged)) in operands_of(op).into_iter().zip(ragged).enumerate() {
            if *is_ragged {
                let stored = self.of(init, op)?;
                set_operand(op, at, stored.storage);
                self.retype(arguments[at - 2], &stored);
                self.retype(results[at - 3], &stored);
            }
        }
        Ok(())
    }

    /// Notes where a ragged tensor lies.
    fn locate(&mut self, op: OperationRef<'c, 'c>) -> Outcome {
        let operands = operands_of(op);
        let [storage, lengths @ .., offsets] = &operands[..] else {
            return Err(Failed);
        };
        let flags = self.ragged.get(&op_key(op)).cloned().unwrap_or_default();
        let tables: Vec<_> = lengths
            .iter()
            .zip(flags.into_iter().skip(1))
            .map(|(table, is_ragged)| self.table(*table, is_ragged, op))
            .collect::<Result<_, _>>()?;
        let ty = results_of(op)[0].r#type();
        let layout = Layout::new(&self.before(op)?, ty, &tables, *offsets);
        let layout = Rc::new(layout.map_err(|why| error(op, why))?);
        let storage = *storage;
        self.put(op, Stored { storage, layout });
        Ok(())
    }

    fn table(
        &self,
        table: Val<'c>,
        is_ragged: bool,
        op: OperationRef<'c, 'c>,
    ) -> Result<Table<'c>, Failed> {
        if !is_ragged {
            return Ok(Table {
                values: table,
                layout: None,
            });
        }
        let stored = self.of(table, op)?;
        Ok(Table {
            values: stored.storage,
            layout: Some(stored.layout),
        })
    }

    /// The tensor that says how a loop over all of its lengths runs.
    fn looped(&self, value: Val<'c>, op: OperationRef<'c, 'c>) -> Result<Stored<'c>, Failed> {
        let stored = self.of(value, op)?;
        if stored.layout.has_lengths() {
            return Ok(stored);
        }
        let message = "not supported yet: a ragged tensor whose first dim no table is over";
        Err(error(op, message))
    }

    fn pack(&mut self, op: OperationRef<'c, 'c>) -> Outcome {
        let operands = operands_of(op);
        let destination = operands[operands.len() - 1];
        let stored = self.looped(destination, op)?;
        let layout = &stored.layout;
        let e = self.before(op)?;
        let (source, depth) = (operands[0], layout.depth());
        let has_starts = segments(op).get(1) == Some(&1);
        let behind = behind(
            &e,
            destination,
            source,
            depth,
            if has_starts { 1 } else { depth },
        );
        let storage = if has_starts {
            let starts = operands[1];
            layout.for_each(&e, &[], 1, &[stored.storage], &mut |e, at, carried| {
                let carried = [carried[0], e.get(starts, at)];
                let all = layout.for_each(e, at, depth, &carried, &mut |e, at, carried| {
                    let row = carried[1];
                    let copied = nest(
                        e,
                        &behind,
                        &mut vec![],
                        &carried[..1],
                        &mut |e, dims, to| {
                            let element = e.extract(source, &[&[row], dims].concat());
                            let place = layout.place(e, &[at, dims].concat());
                            vec![e.insert(element, to[0], &place)]
                        },
                    );
                    vec![copied[0], e.add(row, e.constant(1))]
                });
                vec![all[0]]
            })
        } else {
            layout.for_each(&e, &[], depth, &[stored.storage], &mut |e, at, carried| {
                nest(e, &behind, &mut vec![], carried, &mut |e, dims, to| {
                    let at = [at, dims].concat();
                    let element = e.extract(source, &at);
                    vec![e.insert(element, to[0], &layout.place(e, &at))]
                })
            })
        };
        let (storage, layout) = (storage[0], stored.layout.clone());
        self.put(op, Stored { storage, layout });
        Ok(())
    }

    fn unpack(&mut self, op: OperationRef<'c, 'c>) -> Outcome {
        let operands = operands_of(op);
        let dense = operands[operands.len() - 1];
        let stored = self.looped(operands[0], op)?;
        let layout = &stored.layout;
        let e = self.before(op)?;
        let depth = layout.depth();
        let behind = behind(&e, operands[0], dense, depth, depth);
        let filled = layout.for_each(&e, &[], depth, &[dense], &mut |e, at, carried| {
            nest(e, &behind, &mut vec![], carried, &mut |e, dims, to| {
                let at = [at, dims].concat();
                let element = e.extract(stored.storage, &layout.place(e, &at));
                vec![e.insert(element, to[0], &at)]
            })
        });
        self.replace(op, filled[0]);
        Ok(())
    }
}

/// The sizes of the dims behind those that are one of storage: as the type says, or as the dense
/// tensor's dims from `first` on.
fn behind<'c>(
    e: &Indices<'c>,
    ragged: Val<'c>,
    dense: Val<'c>,
    depth: usize,
    first: usize,
) -> Vec<Val<'c>> {
    let shape = TensorType::of_value(ragged).map_or(vec![], |ty| ty.shape);
    let sizes = shape.iter().skip(depth).enumerate();
    sizes
        .map(|(at, size)| match size {
            Some(size) => e.constant(*size as i64),
            None => e.size_of(dense, first + at),
        })
        .collect()
}
