//! Writes loops, pointer arithmetic and vectors.
//!
//! All integers are `i64`, addresses count bytes, and vectors have [`LANES`] lanes.

mod functions;
mod memory;

use cohort_abi::manifest::Elem;
use cohort_dialects::builder::{
    Builder, CmpiPredicate, Op, Val, arguments_of, region_with_block, results_of,
};
use cohort_dialects::keys;
use cohort_dialects::marks;
use cohort_passes::kernel::affine::Affine;
use cohort_passes::kernel::rows::layout::LANES;
use cohort_passes::support::ir::{key, repeat, set_attribute};
use melior::ir::{
    OperationRef, Type, ValueLike, attribute::IntegerAttribute, operation::OperationLike,
    r#type::IntegerType,
};

use crate::powers;

/// Divisions of integers, which the processor refuses for some operands.
pub fn divides(op: OperationRef<'_, '_>) -> bool {
    matches!(
        Op::of(op),
        Some(Op::ArithDivsi | Op::ArithRemsi | Op::ArithDivui | Op::ArithRemui)
    )
}

/// The index of a loop's dim: a value, a constant, or their sum.
#[derive(Clone, Copy)]
pub struct Index<'c> {
    pub value: Option<Val<'c>>,
    pub constant: i64,
}

impl<'c> Index<'c> {
    pub fn constant(constant: i64) -> Self {
        Index {
            value: None,
            constant,
        }
    }

    pub fn plus(self, constant: i64) -> Self {
        Index {
            constant: self.constant + constant,
            ..self
        }
    }

    /// What identifies it, for maps.
    pub fn identity(&self) -> (usize, i64) {
        (self.value.map_or(0, key), self.constant)
    }
}

/// The address of an element of a row that begins at `base`.
pub fn element_address<'c>(
    e: &Emitter<'c>,
    base: Val<'c>,
    address: &Affine,
    bytes: i64,
    index: &[Index<'c>],
) -> Val<'c> {
    let mut at = base;
    let mut constant = address.constant;
    for (dim, coefficient) in &address.terms {
        let index = index[*dim];
        constant += coefficient * index.constant;
        if let Some(value) = index.value {
            at = e.offset(at, e.times(value, coefficient * bytes));
        }
    }
    e.offset_by(at, constant * bytes)
}

/// One value an element, a vector of [`LANES`], or two vectors as one value.
///
/// Operations on a pair come in twos that do not depend on each other. A processor looks only so far
/// ahead, and the polynomials behind a gate are long chains: a pair keeps its units twice as busy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Width {
    Scalar,
    Vector,
    Pair,
}

impl Width {
    pub fn lanes(self) -> i64 {
        match self {
            Width::Scalar => 1,
            Width::Vector => LANES,
            Width::Pair => 2 * LANES,
        }
    }
}

/// The body of a nest of loops: the loops' indices and carried values to the next carried values.
pub type NestBody<'a, 'c> = dyn FnMut(&Emitter<'c>, &[Index<'c>], &[Val<'c>]) -> Vec<Val<'c>> + 'a;

#[derive(Clone, Copy)]
pub struct Emitter<'c> {
    pub b: Builder<'c>,
    pub i64: Type<'c>,
    pub i32: Type<'c>,
    pub i8: Type<'c>,
    pub pointer: Type<'c>,
}

impl<'c> Emitter<'c> {
    pub fn new(b: Builder<'c>) -> Self {
        Emitter {
            b,
            i64: b.i64(),
            i32: b.i32(),
            i8: b.i8(),
            pointer: b.pointer(),
        }
    }

    /// The same, writing somewhere else.
    pub fn within(&self, block: melior::ir::BlockRef<'c, 'c>) -> Self {
        Emitter {
            b: Builder::at_end(self.b.context(), block, self.b.location),
            ..*self
        }
    }

    /// The same, writing in front of an operation.
    pub fn before(&self, operation: OperationRef<'c, 'c>) -> Option<Self> {
        let b = Builder::before(self.b.context(), operation)?;
        let b = b.at(operation.location());
        Some(Emitter { b, ..*self })
    }

    pub fn int(&self, value: i64) -> Val<'c> {
        self.b.integer(value, self.i64)
    }

    pub fn add(&self, a: Val<'c>, b: Val<'c>) -> Val<'c> {
        self.b.addi(a, b)
    }

    pub fn sub(&self, a: Val<'c>, b: Val<'c>) -> Val<'c> {
        self.b.subi(a, b)
    }

    pub fn mul(&self, a: Val<'c>, b: Val<'c>) -> Val<'c> {
        self.b.muli(a, b)
    }

    pub fn times(&self, a: Val<'c>, factor: i64) -> Val<'c> {
        if factor == 1 {
            a
        } else {
            self.mul(a, self.int(factor))
        }
    }

    pub fn min(&self, a: Val<'c>, b: Val<'c>) -> Val<'c> {
        self.b.minsi(a, b)
    }

    pub fn max(&self, a: Val<'c>, b: Val<'c>) -> Val<'c> {
        self.b.maxsi(a, b)
    }

    pub fn and(&self, a: Val<'c>, bits: i64) -> Val<'c> {
        self.b.andi(a, self.int(bits))
    }

    pub fn shift_right(&self, a: Val<'c>, by: i64) -> Val<'c> {
        self.b.shrui(a, self.int(by))
    }

    /// `a >= b`.
    pub fn at_least(&self, a: Val<'c>, b: Val<'c>) -> Val<'c> {
        self.b.cmpi(CmpiPredicate::Sge, a, b)
    }

    pub fn index_value(&self, index: Index<'c>) -> Val<'c> {
        match index.value {
            None => self.int(index.constant),
            Some(value) if index.constant == 0 => value,
            Some(value) => self.add(value, self.int(index.constant)),
        }
    }

    /// `for i in from..to step step`, carrying values.
    pub fn for_loop(
        &self,
        from: Val<'c>,
        to: Val<'c>,
        step: i64,
        carried: &[Val<'c>],
        body: impl FnOnce(&Emitter<'c>, Val<'c>, &[Val<'c>]) -> Vec<Val<'c>>,
    ) -> Vec<Val<'c>> {
        results_of(self.scf_for([from, to], step, carried, body))
    }

    /// The same, and LLVM may not unroll it.
    pub fn rolled_loop(
        &self,
        from: Val<'c>,
        to: Val<'c>,
        step: i64,
        carried: &[Val<'c>],
        body: impl FnOnce(&Emitter<'c>, Val<'c>, &[Val<'c>]) -> Vec<Val<'c>>,
    ) -> Vec<Val<'c>> {
        let the_loop = self.scf_for([from, to], step, carried, body);
        set_attribute(the_loop, marks::LOOP_ANNOTATION, self.b.rolled());
        results_of(the_loop)
    }

    fn scf_for(
        &self,
        [from, to]: [Val<'c>; 2],
        step: i64,
        carried: &[Val<'c>],
        body: impl FnOnce(&Emitter<'c>, Val<'c>, &[Val<'c>]) -> Vec<Val<'c>>,
    ) -> OperationRef<'c, 'c> {
        let types: Vec<_> = carried.iter().map(|value| value.r#type()).collect();
        let mut arguments = vec![self.i64];
        arguments.extend(&types);
        let (region, block) = region_with_block(&arguments, self.b.location);
        let inner = self.within(block);
        let arguments = arguments_of(block);
        let yielded = body(&inner, arguments[0], &arguments[1..]);
        inner.b.scf_yield(&yielded);
        self.b.scf_for([from, to, self.int(step)], carried, region)
    }

    /// A loop of known length; of length one it is only its body.
    pub fn for_static(
        &self,
        to: i64,
        step: i64,
        carried: &[Val<'c>],
        body: impl FnOnce(&Emitter<'c>, Index<'c>, &[Val<'c>]) -> Vec<Val<'c>>,
    ) -> Vec<Val<'c>> {
        if to <= 0 {
            return carried.to_vec();
        }
        if to <= step {
            return body(self, Index::constant(0), carried);
        }
        self.for_loop(
            self.int(0),
            self.int(to),
            step,
            carried,
            |inner, value, carried| {
                body(
                    inner,
                    Index {
                        value: Some(value),
                        constant: 0,
                    },
                    carried,
                )
            },
        )
    }

    /// A nest of loops of known length over `sizes`, outermost first.
    pub fn for_nest(
        &self,
        sizes: &[i64],
        carried: &[Val<'c>],
        body: &mut NestBody<'_, 'c>,
    ) -> Vec<Val<'c>> {
        self.nest(sizes, &mut vec![], carried, body)
    }

    fn nest(
        &self,
        sizes: &[i64],
        indices: &mut Vec<Index<'c>>,
        carried: &[Val<'c>],
        body: &mut NestBody<'_, 'c>,
    ) -> Vec<Val<'c>> {
        let Some((size, rest)) = sizes.split_first() else {
            return body(self, indices, carried);
        };
        self.for_static(*size, 1, carried, |inner, index, carried| {
            indices.push(index);
            let results = inner.nest(rest, indices, carried, body);
            indices.pop();
            results
        })
    }

    /// The type of an element in registers.
    pub fn elem_type(&self, elem: Elem, width: Width) -> Type<'c> {
        self.sized(
            match elem {
                Elem::F32 => self.b.f32(),
                Elem::I32 => self.i32,
                Elem::Bool => self.b.i1(),
            },
            width,
        )
    }

    /// One element, or a vector of `lanes`.
    pub fn sized(&self, element: Type<'c>, width: Width) -> Type<'c> {
        match width {
            Width::Scalar => element,
            width => self.b.vector_type(width.lanes() as u64, element),
        }
    }

    /// A scalar in every lane.
    pub fn splat(&self, scalar: Val<'c>, elem: Elem, width: Width) -> Val<'c> {
        match width {
            Width::Scalar => scalar,
            width => self
                .b
                .value(Op::VectorBroadcast, &[scalar], self.elem_type(elem, width)),
        }
    }

    /// The constant of these bits.
    pub fn bits(&self, bits: u32, elem: Elem, width: Width) -> Val<'c> {
        let ty = self.elem_type(elem, width);
        let element = match elem {
            Elem::F32 => self.b.f32_attr(f32::from_bits(bits)),
            Elem::I32 => self.b.i32_attr(bits as i32),
            Elem::Bool => self.b.bool_attr(bits != 0),
        };
        self.b.full(element, ty)
    }

    /// Which lanes are below `count`.
    pub fn mask(&self, count: i64) -> Val<'c> {
        let lanes: Vec<i64> = (0..LANES).map(|lane| i64::from(lane < count)).collect();
        let ty = self.elem_type(Elem::Bool, Width::Vector);
        let element = self.elem_type(Elem::Bool, Width::Scalar);
        self.b.constant(self.b.elements(ty, element, &lanes), ty)
    }

    /// Which lanes are below a count that is known at run time.
    pub fn first_lanes(&self, count: Val<'c>) -> Val<'c> {
        let count = self.b.index_cast(count, self.b.index_type());
        let ty = self.elem_type(Elem::Bool, Width::Vector);
        self.b.value(Op::VectorCreateMask, &[count], ty)
    }

    /// Each lane's unsigned number times a constant, as `i64`.
    pub fn scaled_lanes(&self, numbers: Val<'c>, by: i64) -> Val<'c> {
        let ty = self.sized(self.i64, Width::Vector);
        let numbers = self.b.extui(numbers, ty);
        self.b.muli(numbers, self.b.integer(by, ty))
    }

    /// Whether each lane's number is one more than that of the lane before.
    pub fn are_neighbours(&self, numbers: Val<'c>) -> Val<'c> {
        let ty = numbers.r#type();
        let lanes: Vec<i64> = (0..LANES).collect();
        let counting = self.b.constant(self.b.elements(ty, self.i32, &lanes), ty);
        let first = self.first_lane(numbers, Elem::I32);
        let first = self.splat(first, Elem::I32, Width::Vector);
        let equal = self
            .b
            .cmpi(CmpiPredicate::Eq, numbers, self.b.addi(first, counting));
        let bits = IntegerType::new(self.b.context(), LANES as u32).into();
        let equal = self.b.value(Op::LlvmBitcast, &[equal], bits);
        self.b
            .cmpi(CmpiPredicate::Eq, equal, self.b.integer(-1, bits))
    }

    /// Lane 0 of a vector.
    pub fn first_lane(&self, value: Val<'c>, elem: Elem) -> Val<'c> {
        let position = self.b.i64s(&[0]);
        let ty = self.elem_type(elem, Width::Scalar);
        self.b.value_with(
            Op::VectorExtract,
            &[value],
            ty,
            &[(keys::STATIC_POSITION, position)],
        )
    }

    /// The lanes of a vector, `by` places on.
    pub fn rotate(&self, value: Val<'c>, by: i64) -> Val<'c> {
        let lanes: Vec<i64> = (0..LANES).map(|lane| (lane + by) % LANES).collect();
        let mask = self.b.i64s(&lanes);
        self.b.value_with(
            Op::VectorShuffle,
            &[value, value],
            value.r#type(),
            &[(keys::MASK, mask)],
        )
    }

    pub fn add_floats(&self, a: Val<'c>, b: Val<'c>) -> Val<'c> {
        self.b.addf(a, b)
    }

    /// `a * b + c` of vectors, rounded once.
    /// Brings what lies at an address near, without need: it may be no memory at all.
    pub fn prefetch(&self, address: Val<'c>) {
        let number = |value| IntegerAttribute::new(self.b.i32(), value).into();
        let (read, keep, data) = (number(0), number(3), number(1));
        let attributes = [(keys::RW, read), (keys::HINT, keep), (keys::CACHE, data)];
        self.b
            .op(Op::LlvmIntrPrefetch, &[address], &[], &attributes, vec![]);
    }

    pub fn fma(&self, a: Val<'c>, b: Val<'c>, c: Val<'c>) -> Val<'c> {
        self.b.vector_fma(a, b, c)
    }

    pub fn select(&self, condition: Val<'c>, yes: Val<'c>, no: Val<'c>) -> Val<'c> {
        self.b.select(condition, yes, no)
    }

    /// 1 instead of a divisor that the processor would trap on: 0, and -1 under the least integer.
    /// No row may stop the others, nor may lanes that belong to no element.
    pub fn safe_divisor(&self, dividend: Val<'c>, divisor: Val<'c>, width: Width) -> Val<'c> {
        let number = |value: i32| self.bits(value as u32, Elem::I32, width);
        let equal = |a: Val<'c>, b: Val<'c>| self.b.cmpi(CmpiPredicate::Eq, a, b);
        let overflows = self.b.andi(
            equal(dividend, number(i32::MIN)),
            equal(divisor, number(-1)),
        );
        let zero = equal(divisor, number(0));
        let traps = self.b.ori(zero, overflows);
        self.select(traps, number(1), divisor)
    }

    /// The operation of the same name and attributes on other values; marks of ours stay behind.
    pub fn copy(&self, op: OperationRef<'c, 'c>, inputs: &[Val<'c>], ty: Type<'c>) -> Val<'c> {
        if Op::MathIpowi.is(op) {
            return powers::power(&self.b.at(op.location()), inputs[0], inputs[1]);
        }
        self.repeat(op, inputs, ty)
    }

    /// The same, of powers too, which [`Self::copy`] writes out.
    pub fn repeat(&self, op: OperationRef<'c, 'c>, inputs: &[Val<'c>], ty: Type<'c>) -> Val<'c> {
        repeat(&self.b, op, inputs, ty)
    }
}
