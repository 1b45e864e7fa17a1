//! The vector-Jacobian product of each tensor operation.
//!
//! From the cotangent of an operation's result follow those of its operands. Cotangents of one value
//! that come from slices of it side by side are joined by one concatenation; all others are added up.
//! The formulas are listed in `docs/training.md`; broadcasts and sums are each other's cotangents.

use cohort_abi::manifest::Elem;
use cohort_dialects::builder::{
    Builder, CmpfPredicate, Dialect, Op, Val, name_of, operands_of, results_of,
};
use cohort_dialects::keys;
use std::collections::HashMap;

use melior::ir::{OperationRef, ValueLike, operation::OperationLike};

use super::emit::{Shape, full, padded};
use super::sites::{Site, View};
use crate::support::dim_equality::{DimEquality, Length};
use crate::support::ir::{TensorType, ValueKey, defining_op, elem_of, key};

/// What is known of the cotangent of a value so far.
#[derive(Default)]
struct Contributions<'c> {
    whole: Vec<Val<'c>>,
    /// Of elements along an axis: the axis, the first, how many.
    slices: Vec<(usize, u64, u64, Val<'c>)>,
}

/// The backward of one block, as it is written.
pub struct Backward<'c> {
    pub b: Builder<'c>,
    /// What each value of the block is here.
    pub forward: HashMap<ValueKey, Val<'c>>,
    /// The instance dims of the block's values, and their lengths here.
    pub equality: DimEquality,
    pub lengths: HashMap<usize, Val<'c>>,
    /// The values of the block that are a parameter or a part of one.
    pub views: HashMap<ValueKey, View>,
    pub sites: Vec<Site<'c>>,
    cotangents: HashMap<ValueKey, Contributions<'c>>,
}

/// What has no derivative here.
pub struct NoRule(pub String);

pub(super) type Rule = Result<(), NoRule>;

impl<'c> Backward<'c> {
    pub fn new(b: Builder<'c>, equality: DimEquality) -> Backward<'c> {
        Backward {
            b,
            forward: HashMap::new(),
            equality,
            lengths: HashMap::new(),
            views: HashMap::new(),
            sites: Vec::new(),
            cotangents: HashMap::new(),
        }
    }

    /// A value of the block, as the function has it.
    pub fn value(&self, value: Val<'c>) -> Val<'c> {
        self.forward.get(&key(value)).copied().unwrap_or(value)
    }

    /// The shape of a value of the block.
    pub fn shape(&mut self, value: Val<'c>) -> Result<Shape<'c>, NoRule> {
        let ty = TensorType::of_value(value)
            .ok_or_else(|| NoRule("a value that is not a tensor".to_owned()))?;
        let mut lengths = Vec::new();
        for length in self.equality.shape(value) {
            if let Length::Dim(number) = length {
                let known = self.lengths.get(&number).copied();
                lengths
                    .push(known.ok_or_else(|| NoRule("a length that nothing tells".to_owned()))?);
            }
        }
        Ok(Shape { ty, lengths })
    }

    pub fn add(&mut self, value: Val<'c>, cotangent: Val<'c>) {
        let own = self.cotangents.entry(key(value)).or_default();
        own.whole.push(cotangent);
    }

    pub(super) fn add_slice(
        &mut self,
        value: Val<'c>,
        axis: usize,
        first: u64,
        size: u64,
        part: Val<'c>,
    ) {
        let own = self.cotangents.entry(key(value)).or_default();
        own.slices.push((axis, first, size, part));
    }

    /// The cotangent of a value of the block, once all its uses are done; `None` if there is none.
    pub fn cotangent(&mut self, value: Val<'c>) -> Result<Option<Val<'c>>, NoRule> {
        let Some(mut own) = self.cotangents.remove(&key(value)) else {
            return Ok(None);
        };
        let b = self.b;
        let mut parts = std::mem::take(&mut own.slices);
        parts.sort_by_key(|(axis, first, _, _)| (*axis, *first));
        let mut whole = Vec::new();
        while !parts.is_empty() {
            // As many as lie side by side along one axis.
            let (axis, mut end) = (parts[0].0, 0);
            let mut rest = Vec::new();
            let mut row = Vec::new();
            for part in parts {
                if part.0 == axis && part.1 >= end {
                    end = part.1 + part.2;
                    row.push(part);
                } else {
                    rest.push(part);
                }
            }
            parts = rest;
            let shape = self.shape(value)?;
            whole.push(padded(&b, &shape, axis, &row));
        }
        whole.append(&mut own.whole);
        let sum = whole.into_iter().reduce(|left, right| b.addf(left, right));
        if let Some(sum) = sum {
            self.cotangents.entry(key(value)).or_default().whole = vec![sum];
        }
        Ok(sum)
    }

    /// Goes from the cotangents of an operation's results to those of its operands.
    pub fn differentiate(&mut self, operation: OperationRef<'c, 'c>) -> Rule {
        let mut found = None;
        for result in results_of(operation) {
            if is_f32(result)
                && let Some(cotangent) = self.cotangent(result)?
            {
                found = Some((result, cotangent));
            }
        }
        let Some((result, g)) = found else {
            return Ok(());
        };
        if self.views.contains_key(&key(result)) {
            self.b = self.b.at(operation.location());
            let view = self.views[&key(result)].clone();
            self.sites.push(Site {
                view,
                left: None,
                right: g,
            });
            return Ok(());
        }
        self.b = self.b.at(operation.location());
        let Some(kind) = Op::of(operation) else {
            return Err(no_rule(operation));
        };
        match (Dialect::of(operation), kind) {
            (Some(Dialect::Arith | Dialect::Math), _) => {
                self.elementwise(operation, kind, result, g)
            }
            (Some(Dialect::Linalg), _) => self.structured(operation, kind, result, g),
            (Some(Dialect::Tensor), _) | (_, Op::CfbWiden) => self.reshaped(operation, kind, g),
            (_, Op::CfbReduceRows) => self.reduce_rows(operation, g),
            _ => Err(no_rule(operation)),
        }
    }

    fn elementwise(
        &mut self,
        operation: OperationRef<'c, 'c>,
        kind: Op,
        result: Val<'c>,
        g: Val<'c>,
    ) -> Rule {
        let b = self.b;
        let of = operands_of(operation);
        if kind == Op::ArithConstant {
            return Ok(());
        }
        let shape = self.shape(result)?;
        let number = |value: f32| full(&b, &shape, value);
        let at: Vec<Val<'c>> = of.iter().map(|operand| self.value(*operand)).collect();
        let y = self.value(result);
        let mul = |left, right| b.mulf(left, right);
        match kind {
            Op::ArithAddf => {
                self.add(of[0], g);
                self.add(of[1], g);
            }
            Op::ArithSubf => {
                self.add(of[0], g);
                self.add(of[1], b.negf(g));
            }
            Op::ArithNegf => self.add(of[0], b.negf(g)),
            Op::ArithMulf => {
                self.add(of[0], mul(g, at[1]));
                self.add(of[1], mul(g, at[0]));
            }
            Op::ArithDivf => match sigmoid_of(operation) {
                // Of both together, for far out exp is infinite and what it is multiplied by zero.
                Some(x) => {
                    let rest = b.subf(number(1.0), y);
                    self.add(x, mul(g, mul(y, rest)));
                }
                None => {
                    let share = b.divf(g, at[1]);
                    self.add(of[0], share);
                    self.add(of[1], b.negf(mul(share, y)));
                }
            },
            Op::ArithMaximumf | Op::ArithMinimumf | Op::ArithMaxnumf | Op::ArithMinnumf => {
                let better = match matches!(kind, Op::ArithMaximumf | Op::ArithMaxnumf) {
                    true => CmpfPredicate::Ogt,
                    false => CmpfPredicate::Olt,
                };
                let is_left = b.cmpf(better, at[0], at[1]);
                let zero = number(0.0);
                self.add(of[0], b.select(is_left, g, zero));
                self.add(of[1], b.select(is_left, zero, g));
            }
            Op::ArithSelect => {
                let zero = number(0.0);
                self.add(of[1], b.select(at[0], g, zero));
                self.add(of[2], b.select(at[0], zero, g));
            }
            Op::MathExp => self.add(of[0], mul(g, y)),
            Op::MathLog => self.add(of[0], b.divf(g, at[0])),
            Op::MathSqrt => {
                let twice = b.addf(y, y);
                self.add(of[0], b.divf(g, twice));
            }
            Op::MathTanh => {
                let rest = b.subf(number(1.0), mul(y, y));
                self.add(of[0], mul(g, rest));
            }
            Op::MathSin => self.add(of[0], mul(g, b.cos(at[0]))),
            Op::MathCos => {
                let slope = b.negf(b.sin(at[0]));
                self.add(of[0], mul(g, slope));
            }
            Op::MathErf => {
                let exponent = b.negf(mul(at[0], at[0]));
                let bell = b.exp(exponent);
                let slope = mul(number(std::f32::consts::FRAC_2_SQRT_PI), bell);
                self.add(of[0], mul(g, slope));
            }
            Op::MathAbsf => {
                let zero = number(0.0);
                let negative = b.cmpf(CmpfPredicate::Olt, at[0], zero);
                let positive = b.cmpf(CmpfPredicate::Ogt, at[0], zero);
                let turned = b.negf(g);
                let below = b.select(negative, turned, zero);
                self.add(of[0], b.select(positive, g, below));
            }
            Op::MathPowf => {
                let (zero, one) = (number(0.0), number(1.0));
                let less = b.subf(at[1], one);
                let slope = mul(at[1], b.powf(at[0], less));
                let flat = b.cmpf(CmpfPredicate::Oeq, at[1], zero);
                self.add(of[0], mul(g, b.select(flat, zero, slope)));
                let log = b.log(at[0]);
                let base = b.cmpf(CmpfPredicate::Oeq, at[0], zero);
                let below = b.cmpf(CmpfPredicate::Olt, at[1], zero);
                let grows = b.select(below, mul(y, log), zero);
                self.add(of[1], mul(g, b.select(base, grows, mul(y, log))));
            }
            Op::ArithSitofp | Op::ArithUitofp => {}
            _ => return Err(no_rule(operation)),
        }
        Ok(())
    }
}

/// What `1 / (1 + exp(-x))` is the sigmoid of.
fn sigmoid_of<'c>(division: OperationRef<'c, 'c>) -> Option<Val<'c>> {
    let of = operands_of(division);
    if !is_one(of[0]) {
        return None;
    }
    let sum = defining_op(of[1]).filter(|op| Op::ArithAddf.is(*op))?;
    let sides = operands_of(sum);
    let exponential = match (is_one(sides[0]), is_one(sides[1])) {
        (false, true) => sides[0],
        (true, false) => sides[1],
        _ => return None,
    };
    let exponential = defining_op(exponential).filter(|op| Op::MathExp.is(*op))?;
    let turned = defining_op(operands_of(exponential)[0])?;
    (Op::ArithNegf.is(turned)).then(|| operands_of(turned)[0])
}

/// Whether a value is full of ones.
fn is_one(value: Val<'_>) -> bool {
    let Some(producer) = defining_op(value) else {
        return false;
    };
    match Op::of(producer) {
        Some(Op::ArithConstant) => {
            let number = match TensorType::of_value(value) {
                Some(_) => crate::support::ir::splat_value(producer),
                None => producer.attribute(&keys::VALUE).ok(),
            };
            let number = number
                .and_then(|number| melior::ir::attribute::FloatAttribute::try_from(number).ok());
            number.is_some_and(|number| number.value() == 1.0)
        }
        Some(Op::LinalgFill | Op::LinalgBroadcast) => is_one(operands_of(producer)[0]),
        _ => false,
    }
}

/// What has no rule.
pub(super) fn no_rule(operation: OperationRef<'_, '_>) -> NoRule {
    NoRule(format!("`{}`", name_of(operation)))
}

/// Whether a value holds what has a gradient.
pub fn is_f32(value: Val<'_>) -> bool {
    let ty = value.r#type();
    let held = cohort_dialects::types::array_element(ty).unwrap_or(ty);
    TensorType::of(held).is_some_and(|ty| elem_of(ty.element) == Some(Elem::F32))
}
