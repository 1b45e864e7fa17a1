//! Types of upstream that kernels and the control program are made of, as methods of the [`Builder`].

use melior::dialect::llvm;
use melior::ir::r#type::{FunctionType, IntegerType};
use melior::ir::{Type, TypeLike};

use crate::builder::Builder;

impl<'c> Builder<'c> {
    /// A truth value.
    pub fn i1(&self) -> Type<'c> {
        IntegerType::new(self.context(), 1).into()
    }

    /// A byte.
    pub fn i8(&self) -> Type<'c> {
        IntegerType::new(self.context(), 8).into()
    }

    /// An integer of 32 bits.
    pub fn i32(&self) -> Type<'c> {
        IntegerType::new(self.context(), 32).into()
    }

    /// An integer of 64 bits.
    pub fn i64(&self) -> Type<'c> {
        IntegerType::new(self.context(), 64).into()
    }

    /// A float of 32 bits.
    pub fn f32(&self) -> Type<'c> {
        Type::float32(self.context())
    }

    /// A float of 64 bits.
    pub fn f64(&self) -> Type<'c> {
        Type::float64(self.context())
    }

    /// A float of 16 bits with the exponent of one of 32.
    pub fn bf16(&self) -> Type<'c> {
        Type::bfloat16(self.context())
    }

    /// The type of lengths and of what counts elements.
    pub fn index_type(&self) -> Type<'c> {
        Type::index(self.context())
    }

    /// LLVM's pointer to memory of the host.
    pub fn pointer(&self) -> Type<'c> {
        self.pointer_in(0)
    }

    /// LLVM's pointer into an address space.
    pub fn pointer_in(&self, space: u32) -> Type<'c> {
        llvm::r#type::pointer(self.context(), space)
    }

    /// LLVM's array of `count` elements.
    pub fn llvm_array(&self, count: u32, element: Type<'c>) -> Type<'c> {
        llvm::r#type::array(element, count)
    }

    /// LLVM's struct without a name.
    pub fn llvm_struct(&self, fields: &[Type<'c>]) -> Type<'c> {
        llvm::r#type::r#struct(self.context(), fields, false)
    }

    /// A vector of `lanes` lanes.
    pub fn vector_type(&self, lanes: u64, element: Type<'c>) -> Type<'c> {
        Type::vector(&[lanes], element)
    }

    /// A tensor without an encoding; `None` is a dim that differs.
    pub fn tensor_type(&self, shape: &[Option<u64>], element: Type<'c>) -> Type<'c> {
        tensor_type(shape, element)
    }

    /// A function's type.
    pub fn function_type(&self, inputs: &[Type<'c>], results: &[Type<'c>]) -> Type<'c> {
        FunctionType::new(self.context(), inputs, results).into()
    }
}

/// A tensor without an encoding; `None` is a dim that differs.
pub fn tensor_type<'c>(shape: &[Option<u64>], element: Type<'c>) -> Type<'c> {
    let sizes = sizes(shape);
    // SAFETY: shape and element are valid; there is no encoding.
    unsafe {
        Type::from_raw(mlir_sys::mlirRankedTensorTypeGet(
            sizes.len() as isize,
            sizes.as_ptr(),
            element.to_raw(),
            mlir_sys::mlirAttributeGetNull(),
        ))
    }
}

/// The sizes of a shape as MLIR has them.
pub fn sizes(shape: &[Option<u64>]) -> Vec<i64> {
    // SAFETY: a pure function that returns MLIR's mark of a dynamic dim.
    let dynamic = unsafe { mlir_sys::mlirShapedTypeGetDynamicSize() };
    let sizes = shape.iter();
    sizes
        .map(|dim| dim.map_or(dynamic, |size| size as i64))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use melior::ir::{Location, Module};

    #[test]
    fn types_print_as_mlir_writes_them() {
        let context = crate::new_context();
        let location = Location::unknown(&context);
        let module = Module::new(location);
        let b = Builder::at_end(&context, module.body(), location);
        for (ty, text) in [
            (b.pointer(), "!llvm.ptr"),
            (b.pointer_in(3), "!llvm.ptr<3>"),
            (b.llvm_array(4, b.i8()), "!llvm.array<4 x i8>"),
            (
                b.llvm_struct(&[b.f32(), b.i64()]),
                "!llvm.struct<(f32, i64)>",
            ),
            (b.vector_type(2, b.bf16()), "vector<2xbf16>"),
            (
                b.tensor_type(&[None, Some(3)], b.index_type()),
                "tensor<?x3xindex>",
            ),
            (b.tensor_type(&[], b.f64()), "tensor<f64>"),
            (b.function_type(&[b.i1()], &[b.i32()]), "(i1) -> i32"),
        ] {
            assert_eq!(Some(ty), Type::parse(&context, text), "{text}");
        }
    }
}
