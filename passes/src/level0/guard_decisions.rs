//! `guard-decisions`: gives each decision a guard that tells when it was made on what is not a number.
//!
//! A comparison with NaN has an answer, but none that means anything, so an instance that decides
//! by one must end with an error rather than go on somewhere. This pass follows the value of each
//! `cfb.force` back through logic, choices, integer arithmetic and rearrangement to the comparisons
//! it is made of, builds beside each a predicate "one of the compared numbers is NaN", joins them
//! by the same way forward, and makes the result the guard of the force. The predicate stands
//! where the comparison stands, so `form-blocks` puts it into the same block: it costs one more
//! result of one element, and its read costs nothing once the instance has waited for the decision.
//!
//! ```mlir
//! %c = arith.cmpf ogt, %p, %half : tensor<f32>
//! %d = cfb.force %c : tensor<i1> -> i1
//! // becomes
//! %c = arith.cmpf ogt, %p, %half : tensor<f32>
//! %n = arith.cmpf uno, %p, %half : tensor<f32>
//! %d = cfb.force %c guard(%n : tensor<i1>) : tensor<i1> -> i1
//! ```
//!
//! What counts: the operands of a comparison, everything that an `argmax` looks at, a number
//! converted to an integer. The right side of `&&` and `||` counts only where it is asked, and of a
//! choice only the side that is chosen. A forced `f32` needs no guard, the runtime sees it itself.
//!
//! Requires: level 0 after inlining. Leaves: level 0. A decision on a `bool` or `i32` that a call,
//! a loop, a data type or an array hands on was made elsewhere; what it was made of is not seen,
//! and a remark says so.

use cohort_abi::manifest::Elem;
use cohort_dialects::builder::{
    Builder, CmpfPredicate, Dialect, Op, Val, extend_op, is_arithmetic, operands_of,
    region_with_block, result_of, results_of,
};
use cohort_dialects::keys;
use cohort_dialects::marks;
use std::collections::{HashMap, HashSet};

use melior::{
    Context,
    ir::{
        Attribute, BlockLike, OperationRef, Region, Type, ValueLike,
        attribute::DenseI64ArrayAttribute, operation::OperationLike,
    },
};

use crate::pass::{Outcome, PassInfo, remark};
use crate::support::ir::{
    TensorType, affine_map, argument_of, array, defining_op, elem_of, erase, functions_of,
    is_tensor, key, nested_ops, op_key, replace_uses,
};

/// The pass `guard-decisions`.
pub const PASS: PassInfo = PassInfo {
    name: "guard-decisions",
    summary: "Guard each decision against values that are not numbers (level 0)",
    description: include_str!("guard_decisions.rs"),
    run,
};

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    for function in functions_of(module) {
        let forces: Vec<_> = nested_ops(function)
            .into_iter()
            .filter(|op| Op::CfbForce.is(*op) && op.operand_count() == 1)
            .collect();
        let mut guards = Guards {
            context,
            known: HashMap::new(),
            behind: HashMap::new(),
            replaced: HashSet::new(),
            is_hidden: false,
        };
        for force in &forces {
            guards.guard(*force);
        }
        // Only now, since new operations are put in front of old ones.
        for force in forces {
            if guards.replaced.contains(&op_key(force)) {
                erase(force);
            }
        }
    }
    Ok(())
}

/// Where something was decided by NaN, element by element, for the values of a function.
struct Guards<'c> {
    context: &'c Context,
    /// For each value met, a `bool` tensor of its shape; `None` where no element can be meant.
    known: HashMap<usize, Option<Val<'c>>>,
    /// For each operation that was followed, the one that stood behind it at first.
    behind: HashMap<usize, OperationRef<'c, 'c>>,
    /// Forces that have a successor with a guard.
    replaced: HashSet<usize>,
    /// Whether the value that is followed now comes from where nothing can be seen.
    is_hidden: bool,
}

impl<'c> Guards<'c> {
    fn guard(&mut self, force: OperationRef<'c, 'c>) {
        let value = operands_of(force)[0];
        if !is_tensor(value.r#type()) {
            return;
        }
        self.is_hidden = false;
        let guard = self.of(value);
        if self.is_hidden {
            let message = "a NaN that made this value elsewhere is not found: it comes from a call, \
                           a loop, a data type or an array";
            remark(force, message);
        }
        let (Some(guard), Some(b)) = (guard, Builder::before(self.context, force)) else {
            return;
        };
        let old = result_of(force, 0);
        let new = b.value(Op::CfbForce, &[value, guard], old.r#type());
        replace_uses(old, new);
        self.replaced.insert(op_key(force));
    }

    fn of(&mut self, value: Val<'c>) -> Option<Val<'c>> {
        if let Some(known) = self.known.get(&key(value)) {
            return *known;
        }
        let found = match TensorType::of(value.r#type()) {
            Some(tensor) if is_integer(tensor.element) => match defining_op(value) {
                Some(maker) => self.of_result(value, maker),
                None => self.of_argument(value),
            },
            // A number, whatever it was made of, is told by itself; a host scalar was decided.
            _ => None,
        };
        self.known.insert(key(value), found);
        found
    }

    fn hidden(&mut self) -> Option<Val<'c>> {
        self.is_hidden = true;
        None
    }

    /// The instance's own input was never computed.
    fn of_argument(&mut self, value: Val<'c>) -> Option<Val<'c>> {
        let owner = argument_of(value).and_then(|(block, _)| block.parent_operation());
        match owner {
            Some(owner) if owner.has_attribute(&marks::ENTRY) => None,
            _ => self.hidden(),
        }
    }

    fn of_result(&mut self, value: Val<'c>, maker: OperationRef<'c, 'c>) -> Option<Val<'c>> {
        let operands = operands_of(maker);
        match Op::of(maker) {
            Some(Op::ArithCmpf) => self.unordered(maker, operands[0], operands[1]),
            Some(Op::ArithFptosi) => self.unordered(maker, operands[0], operands[0]),
            Some(Op::ArithAndi | Op::ArithOri) if is_bool(value) => {
                self.connective(maker, &operands)
            }
            Some(Op::ArithSelect) => self.choice(maker, &operands),
            Some(
                Op::ArithConstant
                | Op::TensorEmpty
                | Op::TensorFromElements
                | Op::LinalgFill
                | Op::MlProgramGlobalLoadConst,
            ) => None,
            Some(Op::CfbLookup) => {
                let moved = self.of(operands[0])?;
                self.again(maker, value, &[moved, operands[1]], vec![])
            }
            Some(Op::TensorExtractSlice | Op::TensorCollapseShape | Op::TensorExpandShape) => {
                let moved = self.of(operands[0])?;
                let mut all = operands.clone();
                all[0] = moved;
                self.again(maker, value, &all, vec![])
            }
            Some(Op::TensorConcat) => self.join(maker, value, &operands),
            Some(Op::LinalgTranspose | Op::LinalgBroadcast) => {
                let moved = self.of(operands[0])?;
                let b = self.after(maker)?;
                let empty = self.empty(&b, value)?;
                let region = combiner(&b, None, bool_type(&b));
                self.again(maker, value, &[moved, empty], vec![region])
            }
            Some(Op::LinalgReduce) if operands.len() == 2 => {
                let input = self.of(operands[0])?;
                let dims = maker.attribute(&keys::DIMENSIONS).ok()?;
                self.any(maker, value, input, dims)
            }
            Some(Op::LinalgGeneric) => self.of_generic(value, maker, &operands),
            _ if is_arithmetic(maker) => {
                let parts: Vec<_> = operands
                    .into_iter()
                    .filter_map(|operand| self.of(operand))
                    .collect();
                let b = self.after(maker)?;
                parts.into_iter().reduce(|a, c| or(&b, a, c))
            }
            _ => self.hidden(),
        }
    }

    /// `&&` and `||`: the right side counts where the left one leaves it to decide.
    fn connective(&mut self, maker: OperationRef<'c, 'c>, operands: &[Val<'c>]) -> Option<Val<'c>> {
        let (left, right) = (self.of(operands[0]), self.of(operands[1]));
        let b = self.after(maker)?;
        let asked = right.and_then(|right| {
            let asks = match Op::of(maker) {
                Some(Op::ArithAndi) => operands[0],
                _ => {
                    let yes = self.everywhere(&b, operands[0], true)?;
                    b.xori(operands[0], yes)
                }
            };
            Some(b.andi(asks, right))
        });
        [left, asked]
            .into_iter()
            .flatten()
            .reduce(|a, c| or(&b, a, c))
    }

    fn choice(&mut self, maker: OperationRef<'c, 'c>, operands: &[Val<'c>]) -> Option<Val<'c>> {
        let condition = self.of(operands[0]);
        let sides = [self.of(operands[1]), self.of(operands[2])];
        let b = self.after(maker)?;
        let chosen = match sides {
            [None, None] => None,
            sides => {
                let like = operands[1];
                let mut chosen = vec![operands[0]];
                for side in sides {
                    chosen.push(match side {
                        Some(side) => side,
                        None => self.everywhere(&b, like, false)?,
                    });
                }
                Some(b.select(chosen[0], chosen[1], chosen[2]))
            }
        };
        [condition, chosen]
            .into_iter()
            .flatten()
            .reduce(|a, c| or(&b, a, c))
    }

    fn join(
        &mut self,
        maker: OperationRef<'c, 'c>,
        value: Val<'c>,
        operands: &[Val<'c>],
    ) -> Option<Val<'c>> {
        let parts: Vec<_> = operands.iter().map(|part| self.of(*part)).collect();
        if parts.iter().all(Option::is_none) {
            return None;
        }
        let b = self.after(maker)?;
        let parts: Option<Vec<_>> = parts
            .into_iter()
            .zip(operands)
            .map(|(part, operand)| part.or_else(|| self.everywhere(&b, *operand, false)))
            .collect();
        self.again(maker, value, &parts?, vec![])
    }

    /// A search of one tensor along some of its axes, as `argmax` is: every element is looked at.
    fn of_generic(
        &mut self,
        value: Val<'c>,
        maker: OperationRef<'c, 'c>,
        operands: &[Val<'c>],
    ) -> Option<Val<'c>> {
        let results = results_of(maker);
        let number = results
            .iter()
            .position(|result| key(*result) == key(value))?;
        let inputs = operands.len().checked_sub(results.len())?;
        if inputs == 0 {
            // Made of indices.
            return None;
        }
        if inputs > 1 && is_of_integers(maker) {
            // Element by element.
            let parts = operands[..inputs].iter().map(|input| self.of(*input));
            let parts: Vec<_> = parts.flatten().collect();
            let b = self.after(maker)?;
            return parts.into_iter().reduce(|a, c| or(&b, a, c));
        }
        let (Some(searched), 1) = (searched_dims(maker, inputs + number), inputs) else {
            return self.hidden();
        };
        let dims = DenseI64ArrayAttribute::new(self.context, &searched).into();
        let input = operands[0];
        let element = TensorType::of(input.r#type())?.element;
        if is_integer(element) {
            let input = self.of(input)?;
            return self.any(maker, value, input, dims);
        }
        let b = self.after(maker)?;
        let largest = match searched.is_empty() {
            true => input,
            false => {
                let shape = TensorType {
                    element,
                    ..TensorType::of(value.r#type())?
                };
                let lowest = b.constant(b.f32_attr(f32::NEG_INFINITY), element);
                // A maximum is NaN as soon as one element is.
                self.reduce(
                    value,
                    maker,
                    Op::ArithMaximumf,
                    (input, lowest),
                    shape,
                    dims,
                )?
            }
        };
        self.unordered(maker, largest, largest)
    }

    fn any(
        &mut self,
        maker: OperationRef<'c, 'c>,
        value: Val<'c>,
        input: Val<'c>,
        dims: Attribute<'c>,
    ) -> Option<Val<'c>> {
        let b = self.after(maker)?;
        let shape = TensorType {
            element: bool_type(&b),
            ..TensorType::of(value.r#type())?
        };
        let no = b.integer(0, bool_type(&b));
        self.reduce(value, maker, Op::ArithOri, (input, no), shape, dims)
    }

    /// A fold of `input` whose result has the lengths of a value.
    fn reduce(
        &mut self,
        like: Val<'c>,
        maker: OperationRef<'c, 'c>,
        combine: Op,
        (input, neutral): (Val<'c>, Val<'c>),
        shape: TensorType<'c>,
        dims: Attribute<'c>,
    ) -> Option<Val<'c>> {
        let Some(lengths) = lengths(like) else {
            return self.hidden();
        };
        let b = self.after(maker)?;
        let ty = shape.to_type();
        let empty = b.tensor_empty(&lengths, ty);
        let start = b.fill(neutral, empty);
        let region = combiner(&b, Some(combine), shape.element);
        let reduced = b.op(
            Op::LinalgReduce,
            &[input, start],
            &[ty],
            &[(keys::DIMENSIONS, dims)],
            vec![region],
        );
        Some(result_of(reduced, 0))
    }

    fn unordered(
        &mut self,
        maker: OperationRef<'c, 'c>,
        a: Val<'c>,
        c: Val<'c>,
    ) -> Option<Val<'c>> {
        Some(self.after(maker)?.cmpf(CmpfPredicate::Uno, a, c))
    }

    /// The maker's operation on `bool`s, with its attributes.
    fn again(
        &mut self,
        maker: OperationRef<'c, 'c>,
        value: Val<'c>,
        operands: &[Val<'c>],
        regions: Vec<Region<'c>>,
    ) -> Option<Val<'c>> {
        let b = self.after(maker)?;
        let ty = bool_like(&b, value)?;
        Some(result_of(b.again(maker, operands, &[ty], regions), 0))
    }

    fn empty(&mut self, b: &Builder<'c>, like: Val<'c>) -> Option<Val<'c>> {
        match lengths(like) {
            Some(lengths) => Some(b.tensor_empty(&lengths, bool_like(b, like)?)),
            None => self.hidden(),
        }
    }

    /// A `bool` tensor of a value's shape that is the same everywhere.
    fn everywhere(&mut self, b: &Builder<'c>, like: Val<'c>, truth: bool) -> Option<Val<'c>> {
        let ty = bool_like(b, like)?;
        if !TensorType::of(ty)?.shape.contains(&None) {
            let all = b.splat(ty, b.bool_attr(truth));
            return Some(b.constant(all, ty));
        }
        let empty = self.empty(b, like)?;
        let truth = b.integer(i64::from(truth), bool_type(b));
        Some(b.fill(truth, empty))
    }

    /// Right after the operation, so that blocks hold both.
    fn after(&mut self, maker: OperationRef<'c, 'c>) -> Option<Builder<'c>> {
        let next = match self.behind.get(&op_key(maker)) {
            Some(next) => *next,
            None => extend_op(maker.next_in_block()?),
        };
        self.behind.insert(op_key(maker), next);
        Some(Builder::before(self.context, next)?.at(maker.location()))
    }
}

fn or<'c>(b: &Builder<'c>, a: Val<'c>, c: Val<'c>) -> Val<'c> {
    b.ori(a, c)
}

/// The lengths that a tensor was made with, of the dims that are not known; `None` where that is not
/// told by what made it.
fn lengths<'c>(value: Val<'c>) -> Option<Vec<Val<'c>>> {
    let shape = TensorType::of(value.r#type())?.shape;
    if !shape.contains(&None) {
        return Some(vec![]);
    }
    let maker = defining_op(value)?;
    let operands = operands_of(maker);
    match Dialect::of(maker) {
        _ if Op::TensorEmpty.is(maker) => Some(operands),
        // The last operand is what the only result is written over.
        Some(Dialect::Linalg) if results_of(maker).len() == 1 => lengths(*operands.last()?),
        Some(Dialect::Arith | Dialect::Math) => {
            let like = |operand: &Val<'c>| {
                TensorType::of(operand.r#type()).is_some_and(|ty| ty.shape == shape)
            };
            operands.into_iter().filter(like).find_map(lengths)
        }
        _ => None,
    }
}

fn bool_type<'c>(b: &Builder<'c>) -> Type<'c> {
    b.i1()
}

fn bool_like<'c>(b: &Builder<'c>, like: Val<'c>) -> Option<Type<'c>> {
    let shape = TensorType::of(like.r#type())?;
    let element = bool_type(b);
    Some(TensorType { element, ..shape }.to_type())
}

fn is_integer(ty: Type<'_>) -> bool {
    matches!(elem_of(ty), Some(Elem::Bool | Elem::I32))
}

fn is_bool(value: Val<'_>) -> bool {
    TensorType::of_value(value).is_some_and(|tensor| elem_of(tensor.element) == Some(Elem::Bool))
}

/// The region of a `linalg` operation: combines an element with the result so far, or hands it on.
fn combiner<'c>(b: &Builder<'c>, kind: Option<Op>, element: Type<'c>) -> Region<'c> {
    let (region, block) = region_with_block(&[element, element], b.location);
    let inner = Builder::at_end(b.context(), block, b.location);
    let arguments = cohort_dialects::builder::arguments_of(block);
    let value = match kind {
        Some(kind) => inner.value(kind, &[arguments[1], arguments[0]], element),
        None => arguments[0],
    };
    inner.linalg_yield(&[value]);
    region
}

/// Whether a `linalg.generic` is made of one element of each operand, by arithmetic of integers.
fn is_of_integers(generic: OperationRef<'_, '_>) -> bool {
    let is_in_order =
        |map| dims_of(map).is_some_and(|dims| dims.iter().copied().eq(0..dims.len() as i64));
    array(generic, keys::INDEXING_MAPS)
        .into_iter()
        .all(is_in_order)
        && nested_ops(generic).into_iter().all(|op| {
            let values = operands_of(op).into_iter().chain(results_of(op));
            values.into_iter().all(|value| is_integer(value.r#type()))
        })
}

/// The loops of a `linalg.generic` that operand `result` does not have, where its first operand
/// has all loops in order and `result` the others in order.
fn searched_dims(generic: OperationRef<'_, '_>, result: usize) -> Option<Vec<i64>> {
    let maps = array(generic, keys::INDEXING_MAPS);
    let input = dims_of(*maps.first()?)?;
    let kept = dims_of(*maps.get(result)?)?;
    let in_order = input.iter().copied().eq(0..input.len() as i64);
    (in_order && kept.is_sorted()).then(|| {
        input
            .into_iter()
            .filter(|dim| !kept.contains(dim))
            .collect()
    })
}

/// The loops that an affine map's results are, if each is one.
fn dims_of(map: Attribute<'_>) -> Option<Vec<i64>> {
    let map = affine_map(map)?;
    (0..map.result_count())
        .map(|index| {
            let result = map.result(index).ok()?;
            result.is_dim().then(|| result.dim_position() as i64)
        })
        .collect()
}
