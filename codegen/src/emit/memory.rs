//! Writes addresses, loads and stores.
//!
//! A boolean is a byte in memory and one bit in registers.

use cohort_abi::manifest::Elem;
use cohort_dialects::builder::{CmpiPredicate, Op, Val, element_of};
use cohort_dialects::keys::{self, Key};
use cohort_passes::kernel::rows::layout::LANES;
use melior::ir::TypeLike;
use melior::ir::{
    Attribute, Type, ValueLike,
    attribute::{DenseI32ArrayAttribute, IntegerAttribute, TypeAttribute},
    r#type::IntegerType,
};

use super::{Emitter, Width};

impl<'c> Emitter<'c> {
    /// `base + bytes`.
    pub fn offset(&self, base: Val<'c>, bytes: Val<'c>) -> Val<'c> {
        self.gep(&[base, bytes], i32::MIN, self.pointer)
    }

    pub fn offset_by(&self, base: Val<'c>, bytes: i64) -> Val<'c> {
        if bytes == 0 {
            return base;
        }
        match i32::try_from(bytes) {
            Ok(bytes) if bytes != i32::MIN => self.gep(&[base], bytes, self.pointer),
            _ => self.offset(base, self.int(bytes)),
        }
    }

    fn gep(&self, operands: &[Val<'c>], constant: i32, ty: Type<'c>) -> Val<'c> {
        let context = self.b.context();
        self.b.value_with(
            Op::LlvmGetelementptr,
            operands,
            ty,
            &[
                (keys::ELEM_TYPE, TypeAttribute::new(self.i8).into()),
                (
                    keys::RAW_CONSTANT_INDICES,
                    DenseI32ArrayAttribute::new(context, &[constant]).into(),
                ),
            ],
        )
    }

    /// A vector of addresses, one a lane.
    pub fn offsets(&self, base: Val<'c>, bytes: Val<'c>) -> Val<'c> {
        self.gep(
            &[base, bytes],
            i32::MIN,
            self.b.vector_type(LANES as u64, self.b.pointer()),
        )
    }

    fn alignment(&self, bytes: i64) -> (Key<'static>, Attribute<'c>) {
        (
            keys::ALIGNMENT,
            IntegerAttribute::new(self.i64, bytes).into(),
        )
    }

    pub fn load(&self, address: Val<'c>, ty: Type<'c>, alignment: i64) -> Val<'c> {
        self.b
            .value_with(Op::LlvmLoad, &[address], ty, &[self.alignment(alignment)])
    }

    pub fn store(&self, value: Val<'c>, address: Val<'c>, alignment: i64) {
        self.b.op(
            Op::LlvmStore,
            &[value, address],
            &[],
            &[self.alignment(alignment)],
            vec![],
        );
    }

    pub fn load_pointer(&self, table: Val<'c>, entry: i64) -> Val<'c> {
        self.load(self.offset_by(table, entry * 8), self.pointer, 8)
    }

    /// A `u32` as an `i64`.
    pub fn load_u32(&self, address: Val<'c>) -> Val<'c> {
        let value = self.load(address, self.i32, 4);
        self.b.extui(value, self.i64)
    }

    /// The type of an element in memory.
    fn memory_type(&self, elem: Elem, width: Width) -> Type<'c> {
        self.sized(
            match elem {
                Elem::F32 => self.b.f32(),
                Elem::I32 => self.i32,
                Elem::Bool => self.i8,
            },
            width,
        )
    }

    /// `0, stride, 2 * stride, …` as `i64`.
    pub fn lane_offsets(&self, stride: i64) -> Val<'c> {
        let lanes: Vec<i64> = (0..LANES).map(|lane| lane * stride).collect();
        let ty = self.b.vector_type(LANES as u64, self.i64);
        self.b.constant(self.b.elements(ty, self.i64, &lanes), ty)
    }

    /// Loads one element, or neighbouring ones.
    pub fn load_elem(
        &self,
        address: Val<'c>,
        elem: Elem,
        width: Width,
        mask: Option<Val<'c>>,
    ) -> Val<'c> {
        let ty = self.memory_type(elem, width);
        let value = match mask {
            None => self.load(address, ty, elem.bytes() as i64),
            Some(mask) => {
                let rest = self.zero(ty);
                let alignment = IntegerAttribute::new(self.i32, elem.bytes() as i64).into();
                let attributes = [(keys::ALIGNMENT, alignment)];
                self.b.value_with(
                    Op::LlvmIntrMaskedLoad,
                    &[address, mask, rest],
                    ty,
                    &attributes,
                )
            }
        };
        self.in_registers(value, elem)
    }

    /// Loads a vector of neighbouring bf16, widened to f32.
    pub fn load_bf16(&self, address: Val<'c>) -> Val<'c> {
        let half = IntegerType::new(self.b.context(), 16).into();
        let halves = self.load(address, self.sized(half, Width::Vector), 2);
        let ty = self.memory_type(Elem::I32, Width::Vector);
        self.lower_halves(self.b.extui(halves, ty))
    }

    /// Loads a vector of words that hold two bf16 each: the lower halves, then the upper ones, widened to f32.
    pub fn load_bf16_pairs(&self, address: Val<'c>) -> [Val<'c>; 2] {
        let ty = self.memory_type(Elem::I32, Width::Vector);
        let words = self.load(address, ty, 2);
        let upper = self.b.andi(words, self.b.integer(-1 << 16, ty));
        [self.lower_halves(words), self.floats(upper)]
    }

    fn lower_halves(&self, words: Val<'c>) -> Val<'c> {
        let by = self.b.integer(16, words.r#type());
        let shifted = self.b.value(Op::ArithShli, &[words, by], words.r#type());
        self.floats(shifted)
    }

    fn floats(&self, words: Val<'c>) -> Val<'c> {
        let ty = self.memory_type(Elem::F32, Width::Vector);
        self.b.value(Op::ArithBitcast, &[words], ty)
    }

    /// Loads an element a lane, `stride` bytes apart.
    pub fn gather(
        &self,
        address: Val<'c>,
        stride: i64,
        elem: Elem,
        mask: Option<Val<'c>>,
    ) -> Val<'c> {
        self.gather_at(address, self.lane_offsets(stride), elem, mask)
    }

    /// Loads an element a lane, each at its offset in bytes.
    pub fn gather_at(
        &self,
        address: Val<'c>,
        offsets: Val<'c>,
        elem: Elem,
        mask: Option<Val<'c>>,
    ) -> Val<'c> {
        let addresses = self.offsets(address, offsets);
        let mask = mask.unwrap_or_else(|| self.mask(LANES));
        let ty = self.memory_type(elem, Width::Vector);
        let alignment = IntegerAttribute::new(self.i32, elem.bytes() as i64).into();
        let operands = [addresses, mask, self.zero(ty)];
        let value = self.b.value_with(
            Op::LlvmIntrMaskedGather,
            &operands,
            ty,
            &[(keys::ALIGNMENT, alignment)],
        );
        self.in_registers(value, elem)
    }

    /// Stores each lane's element at its offset in bytes.
    pub fn scatter_at(
        &self,
        value: Val<'c>,
        address: Val<'c>,
        offsets: Val<'c>,
        elem: Elem,
        mask: Val<'c>,
    ) {
        let value = self.as_stored(value, elem, Width::Vector);
        let alignment = IntegerAttribute::new(self.i32, elem.bytes() as i64).into();
        let operands = [value, self.offsets(address, offsets), mask];
        let attributes = [(keys::ALIGNMENT, alignment)];
        self.b.op(
            Op::LlvmIntrMaskedScatter,
            &operands,
            &[],
            &attributes,
            vec![],
        );
    }

    fn zero(&self, ty: Type<'c>) -> Val<'c> {
        match element_of(ty).is_f32() {
            true => self.b.float(0.0, ty),
            false => self.b.integer(0, ty),
        }
    }

    fn in_registers(&self, value: Val<'c>, elem: Elem) -> Val<'c> {
        if elem != Elem::Bool {
            return value;
        }
        let zero = self.zero(value.r#type());
        self.b.cmpi(CmpiPredicate::Ne, value, zero)
    }

    fn as_stored(&self, value: Val<'c>, elem: Elem, width: Width) -> Val<'c> {
        match elem {
            Elem::Bool => self.b.extui(value, self.memory_type(elem, width)),
            _ => value,
        }
    }

    pub fn store_elem(
        &self,
        value: Val<'c>,
        address: Val<'c>,
        elem: Elem,
        width: Width,
        mask: Option<Val<'c>>,
    ) {
        let value = self.as_stored(value, elem, width);
        match mask {
            None => self.store(value, address, elem.bytes() as i64),
            Some(mask) => {
                let alignment = IntegerAttribute::new(self.i32, elem.bytes() as i64).into();
                let operands = [value, address, mask];
                let attributes = [(keys::ALIGNMENT, alignment)];
                self.b
                    .op(Op::LlvmIntrMaskedStore, &operands, &[], &attributes, vec![]);
            }
        }
    }
}
