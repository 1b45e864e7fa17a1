//! Arithmetic, the same on a host scalar and elementwise on tensors of one shape.

use cohort_dialects::builder::{Builder, CmpfPredicate, CmpiPredicate, Op, Val, with_element};
use cohort_dialects::marks::CHECKED;
use cohort_frontend::program::{Binary, Elem, Expr, ExprKind, Literal, Reduction, Unary};
use melior::ir::{
    Attribute, Type, ValueLike,
    attribute::{BoolAttribute, FloatAttribute, IntegerAttribute},
    r#type::{DimSize, IntegerType, RankedTensorType, ShapedTypeLike},
};

use crate::linalg;

pub fn zero(elem: Elem) -> Literal {
    match elem {
        Elem::F32 => Literal::F32(0.0),
        Elem::I32 => Literal::I32(0),
        Elem::Bool => Literal::Bool(false),
    }
}

/// What a reduction starts from: it changes no element.
pub fn neutral(op: Reduction, elem: Elem) -> Literal {
    match (op, elem) {
        (Reduction::Sum | Reduction::Mean, _) => zero(elem),
        (Reduction::Max, Elem::F32) => Literal::F32(f64::NEG_INFINITY),
        (Reduction::Min, Elem::F32) => Literal::F32(f64::INFINITY),
        (Reduction::Max, Elem::I32) => Literal::I32(i32::MIN),
        (Reduction::Min, Elem::I32) => Literal::I32(i32::MAX),
        (Reduction::Max, Elem::Bool) => Literal::Bool(false),
        (Reduction::Min, Elem::Bool) => Literal::Bool(true),
    }
}

/// A constant: of a scalar type the literal itself, of a tensor type every element of it.
pub fn constant<'c>(at: Builder<'c>, ty: Type<'c>, literal: Literal) -> Val<'c> {
    splat(at, ty, self::literal(at, literal))
}

/// A literal as an attribute.
pub fn literal<'c>(at: Builder<'c>, literal: Literal) -> Attribute<'c> {
    let context = at.context();
    match literal {
        Literal::F32(value) => FloatAttribute::new(context, Type::float32(context), value).into(),
        Literal::I32(value) => {
            IntegerAttribute::new(IntegerType::new(context, 32).into(), value.into()).into()
        }
        Literal::Bool(value) => BoolAttribute::new(context, value).into(),
    }
}

/// A constant of `ty`, which has the shape of `value`: where lengths are known at run time only, a
/// tensor filled with it.
pub fn constant_like<'c>(
    at: Builder<'c>,
    value: Val<'c>,
    ty: Type<'c>,
    literal: Literal,
) -> Val<'c> {
    let sizes = lengths(at, value);
    match RankedTensorType::try_from(ty) {
        Ok(tensor) if !sizes.is_empty() => {
            let empty = at.tensor_empty(&sizes, ty);
            let scalar = constant(at, tensor.element(), literal);
            linalg::fill(at, scalar, empty)
        }
        _ => constant(at, ty, literal),
    }
}

/// The lengths of a tensor that are known at run time only.
fn lengths<'c>(at: Builder<'c>, value: Val<'c>) -> Vec<Val<'c>> {
    let Ok(tensor) = RankedTensorType::try_from(value.r#type()) else {
        return vec![];
    };
    (0..tensor.rank())
        .filter(|axis| matches!(tensor.dim_size(*axis), Ok(DimSize::Dynamic)))
        .map(|axis| length(at, value, axis))
        .collect()
}

/// The length of an axis, an `index`.
pub fn length<'c>(at: Builder<'c>, value: Val<'c>, axis: usize) -> Val<'c> {
    let axis = at.index(axis as i64);
    at.tensor_dim(value, axis)
}

/// A constant of a scalar attribute.
pub fn splat<'c>(at: Builder<'c>, ty: Type<'c>, element: Attribute<'c>) -> Val<'c> {
    at.full(element, ty)
}

pub fn unary<'c>(at: Builder<'c>, op: Unary, elem: Elem, value: Val<'c>) -> Val<'c> {
    let ty = value.r#type();
    let constant = |literal| constant_like(at, value, ty, literal);
    match (op, elem) {
        (Unary::Neg, Elem::F32) => at.negf(value),
        (Unary::Neg, _) => {
            let nothing = constant(zero(elem));
            integer_operation(at, [nothing, value], ty, &|at, sides| {
                at.subi(sides[0], sides[1])
            })
        }
        (Unary::Not, _) => at.xori(value, constant(Literal::Bool(true))),
        (Unary::Abs, Elem::F32) => at.absf(value),
        (Unary::Abs, _) => at.absi(value),
        (Unary::Exp, _) => at.exp(value),
        (Unary::Log, _) => at.log(value),
        (Unary::Sqrt, _) => at.sqrt(value),
        (Unary::Sin, _) => at.sin(value),
        (Unary::Cos, _) => at.cos(value),
        (Unary::Tanh, _) => at.tanh(value),
        (Unary::Erf, _) => at.erf(value),
        (Unary::Sigmoid, _) => {
            let one = constant(Literal::F32(1.0));
            let power = at.exp(at.negf(value));
            at.divf(one, at.addf(one, power))
        }
        (Unary::Relu, Elem::F32) => at.maximumf(value, constant(zero(elem))),
        (Unary::Relu, _) => at.maxsi(value, constant(zero(elem))),
    }
}

/// Operands are of one type.
pub fn binary<'c>(at: Builder<'c>, op: Binary, elem: Elem, lhs: Val<'c>, rhs: Val<'c>) -> Val<'c> {
    let float = float_predicate(op).filter(|_| elem == Elem::F32);
    if let Some(predicate) = float {
        return at.cmpf(predicate, lhs, rhs);
    }
    if let Some(predicate) = integer_predicate(op, elem) {
        let truth = with_element(lhs.r#type(), at.i1());
        return integer_operation(at, [lhs, rhs], truth, &|at, sides| {
            at.cmpi(predicate, sides[0], sides[1])
        });
    }
    let ty = lhs.r#type();
    let apply = |at: Builder<'c>, sides: &[Val<'c>]| {
        at.value(operation(op, elem), sides, sides[0].r#type())
    };
    match elem {
        Elem::I32 if op == Binary::Sub => integer_operation(at, [lhs, rhs], ty, &apply),
        _ => apply(at, &[lhs, rhs]),
    }
}

/// An operation of which upstream makes a constant where both sides are the same value. A constant has no
/// lengths, so where there are any it is hidden in a `linalg.generic`.
fn integer_operation<'c>(
    at: Builder<'c>,
    sides: [Val<'c>; 2],
    ty: Type<'c>,
    apply: &dyn Fn(Builder<'c>, &[Val<'c>]) -> Val<'c>,
) -> Val<'c> {
    let sizes = lengths(at, sides[0]);
    match sizes.is_empty() {
        true => apply(at, &sides),
        false => {
            let empty = at.tensor_empty(&sizes, ty);
            linalg::elementwise(at, &sides, empty, apply)
        }
    }
}

/// Whether an operation with this right side can be the instance's error.
pub fn can_fail(op: Binary, elem: Elem, rhs: &Expr) -> bool {
    let divides = matches!(op, Binary::Div | Binary::Rem) && elem == Elem::I32;
    divides && !is_safe_divisor(rhs)
}

/// Whether dividing any integer by the expression's value has a result.
pub fn is_safe_divisor(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Literal(Literal::I32(value)) => !matches!(value, 0 | -1),
        ExprKind::Lift(value) | ExprKind::Fill(value) => is_safe_divisor(value),
        _ => false,
    }
}

/// A division of host integers whose divisor is not known.
pub fn checked_division<'c>(at: Builder<'c>, op: Binary, lhs: Val<'c>, rhs: Val<'c>) -> Val<'c> {
    let name = operation(op, Elem::I32);
    let checked = Attribute::unit(at.context());
    at.value_with(name, &[lhs, rhs], lhs.r#type(), &[(CHECKED, checked)])
}

pub fn select<'c>(at: Builder<'c>, cond: Val<'c>, then: Val<'c>, otherwise: Val<'c>) -> Val<'c> {
    at.select(cond, then, otherwise)
}

/// A conversion of elements; `ty` is the result's type.
pub fn cast<'c>(at: Builder<'c>, from: Elem, to: Elem, value: Val<'c>, ty: Type<'c>) -> Val<'c> {
    let apply = |kind: Op| at.value(kind, &[value], ty);
    match (from, to) {
        (Elem::F32, Elem::F32) | (Elem::I32, Elem::I32) | (Elem::Bool, Elem::Bool) => value,
        (Elem::I32, Elem::F32) => apply(Op::ArithSitofp),
        (Elem::Bool, Elem::F32) => apply(Op::ArithUitofp),
        (Elem::Bool, Elem::I32) => apply(Op::ArithExtui),
        (Elem::F32 | Elem::I32, Elem::Bool) => {
            let zero = constant_like(at, value, value.r#type(), zero(from));
            binary(at, Binary::Ne, from, value, zero)
        }
        (Elem::F32, Elem::I32) => truncate(at, value, ty),
    }
}

/// Float to integer: truncates, saturates, and a NaN is 0. `arith.fptosi` alone has no defined
/// result for what an integer cannot hold.
fn truncate<'c>(at: Builder<'c>, value: Val<'c>, ty: Type<'c>) -> Val<'c> {
    /// The largest f32 below 2^31.
    const LARGEST: f64 = 2_147_483_520.0;
    let float = |number| constant_like(at, value, value.r#type(), Literal::F32(number));
    let integer = |number| constant_like(at, value, ty, Literal::I32(number));
    let clamped = binary(
        at,
        Binary::Max,
        Elem::F32,
        value,
        float(f64::from(i32::MIN)),
    );
    let clamped = binary(at, Binary::Min, Elem::F32, clamped, float(LARGEST));
    let is_number = at.cmpf(CmpfPredicate::Ord, value, value);
    let clamped = select(at, is_number, clamped, float(0.0));
    let whole = at.fptosi(clamped, ty);
    let is_larger = binary(at, Binary::Gt, Elem::F32, value, float(LARGEST));
    select(at, is_larger, integer(i32::MAX), whole)
}

/// The predicate of a comparison of floats: `!=` holds where either side is NaN, and all others do not.
fn float_predicate(op: Binary) -> Option<CmpfPredicate> {
    Some(match op {
        Binary::Eq => CmpfPredicate::Oeq,
        Binary::Gt => CmpfPredicate::Ogt,
        Binary::Ge => CmpfPredicate::Oge,
        Binary::Lt => CmpfPredicate::Olt,
        Binary::Le => CmpfPredicate::Ole,
        Binary::Ne => CmpfPredicate::Une,
        _ => return None,
    })
}

/// The predicate of a comparison of integers, where `bool`s have no sign.
fn integer_predicate(op: Binary, elem: Elem) -> Option<CmpiPredicate> {
    Some(match (op, elem) {
        (Binary::Eq, _) => CmpiPredicate::Eq,
        (Binary::Ne, _) => CmpiPredicate::Ne,
        (Binary::Gt, Elem::Bool) => CmpiPredicate::Ugt,
        (Binary::Ge, Elem::Bool) => CmpiPredicate::Uge,
        (Binary::Lt, Elem::Bool) => CmpiPredicate::Ult,
        (Binary::Le, Elem::Bool) => CmpiPredicate::Ule,
        (Binary::Gt, _) => CmpiPredicate::Sgt,
        (Binary::Ge, _) => CmpiPredicate::Sge,
        (Binary::Lt, _) => CmpiPredicate::Slt,
        (Binary::Le, _) => CmpiPredicate::Sle,
        _ => return None,
    })
}

fn operation(op: Binary, elem: Elem) -> Op {
    match (op, elem) {
        (Binary::Add, Elem::F32) => Op::ArithAddf,
        (Binary::Add, _) => Op::ArithAddi,
        (Binary::Sub, Elem::F32) => Op::ArithSubf,
        (Binary::Sub, _) => Op::ArithSubi,
        (Binary::Mul, Elem::F32) => Op::ArithMulf,
        (Binary::Mul, _) => Op::ArithMuli,
        (Binary::Div, Elem::F32) => Op::ArithDivf,
        (Binary::Div, _) => Op::ArithDivsi,
        (Binary::Rem, Elem::F32) => Op::ArithRemf,
        (Binary::Rem, _) => Op::ArithRemsi,
        (Binary::Min, Elem::F32) => Op::ArithMinimumf,
        (Binary::Min, Elem::I32) => Op::ArithMinsi,
        (Binary::Max, Elem::F32) => Op::ArithMaximumf,
        (Binary::Max, Elem::I32) => Op::ArithMaxsi,
        (Binary::Pow, Elem::F32) => Op::MathPowf,
        (Binary::And, _) | (Binary::Min, Elem::Bool) => Op::ArithAndi,
        (Binary::Or, _) | (Binary::Max, Elem::Bool) => Op::ArithOri,
        (Binary::Eq | Binary::Ne | Binary::Lt | Binary::Le | Binary::Gt | Binary::Ge, _) => {
            unreachable!("a comparison has a predicate")
        }
        (Binary::Pow, _) => unreachable!("a power of integers is made of products"),
    }
}
