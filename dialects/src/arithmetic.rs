//! Operations of `arith`, `math` and `tensor`, and the ends of blocks, as methods of the [`Builder`], over the builders that
//! melior has for them: operands in, the result out, the result's type that of the first operand unless it is
//! given.

use melior::dialect::{arith, func, ods, scf};
use melior::ir::{OperationRef, Region, Type, ValueLike};

use crate::builder::{Builder, Val, result_of};

/// Operations of two operands of a type.
macro_rules! binary {
    ($($name:ident: $what:literal,)*) => {
        impl<'c> Builder<'c> {
            $(
                #[doc = concat!("`arith.", stringify!($name), "`: ", $what, ".")]
                pub fn $name(&self, a: Val<'c>, b: Val<'c>) -> Val<'c> {
                    result_of(self.insert(arith::$name(a, b, self.location)), 0)
                }
            )*
        }
    };
}

binary! {
    addf: "the sum of two floats",
    addi: "the sum of two integers",
    andi: "the bits that both have",
    ceildivsi: "the quotient of signed integers, rounded up",
    divf: "the quotient of two floats",
    divsi: "the quotient of signed integers, rounded towards zero",
    divui: "the quotient of unsigned integers",
    floordivsi: "the quotient of signed integers, rounded down",
    maxsi: "the greater one of signed integers",
    maxui: "the greater one of unsigned integers",
    minimumf: "the smaller one of two floats, or NaN where one is",
    minsi: "the smaller one of signed integers",
    mulf: "the product of two floats",
    muli: "the product of two integers",
    ori: "the bits that one of them has",
    remui: "the rest of a division of unsigned integers",
    shli: "the first one's bits moved up",
    shrui: "the first one's bits moved down, and zeros",
    subf: "the difference of two floats",
    subi: "the difference of two integers",
    xori: "the bits in which they differ",
}

/// Conversions to a type.
macro_rules! cast {
    ($($name:ident: $what:literal,)*) => {
        impl<'c> Builder<'c> {
            $(
                #[doc = concat!("`arith.", stringify!($name), "`: ", $what, ".")]
                pub fn $name(&self, value: Val<'c>, to: Type<'c>) -> Val<'c> {
                    result_of(self.insert(arith::$name(value, to, self.location)), 0)
                }
            )*
        }
    };
}

cast! {
    bitcast: "the same bits as another type",
    extf: "a float as a wider one",
    extsi: "a signed integer as a wider one",
    extui: "an unsigned integer as a wider one",
    fptosi: "a float as a signed integer, what is behind the point left out",
    index_cast: "an index as an integer, or an integer as an index",
    sitofp: "a signed integer as a float",
    truncf: "a float as a narrower one",
    trunci: "the low bits of an integer",
}

/// Functions of one number.
macro_rules! function {
    ($($name:ident: $what:literal,)*) => {
        impl<'c> Builder<'c> {
            $(
                #[doc = concat!("`math.", stringify!($name), "`: ", $what, ".")]
                pub fn $name(&self, x: Val<'c>) -> Val<'c> {
                    let operation = ods::math::$name(self.context(), x, self.location);
                    result_of(self.insert(operation.into()), 0)
                }
            )*
        }
    };
}

function! {
    absf: "without its sign",
    absi: "of an integer, without its sign",
    cos: "the cosine",
    erf: "the error function",
    exp: "e to that power",
    floor: "rounded down",
    log: "the natural logarithm",
    roundeven: "rounded to the nearest integer, halves to the even one",
    sin: "the sine",
    sqrt: "the square root",
    tanh: "the hyperbolic tangent",
}

impl<'c> Builder<'c> {
    /// `arith.maximumf`: the greater one of two floats, or NaN where one is.
    pub fn maximumf(&self, a: Val<'c>, b: Val<'c>) -> Val<'c> {
        let operation = ods::arith::maximumf(self.context(), a, b, self.location);
        result_of(self.insert(operation.into()), 0)
    }

    /// `arith.negf`: a float with its sign turned.
    pub fn negf(&self, x: Val<'c>) -> Val<'c> {
        result_of(self.insert(arith::negf(x, self.location)), 0)
    }

    /// `arith.select`: one of two values; of vectors and tensors, an element of one of them each.
    pub fn select(&self, condition: Val<'c>, yes: Val<'c>, no: Val<'c>) -> Val<'c> {
        let operation = arith::select(condition, yes, no, self.location);
        result_of(self.insert(operation), 0)
    }

    /// `math.fma`: `a * b + c`, rounded once.
    pub fn fma(&self, a: Val<'c>, b: Val<'c>, c: Val<'c>) -> Val<'c> {
        let operation = ods::math::fma(self.context(), a, b, c, self.location);
        result_of(self.insert(operation.into()), 0)
    }

    /// `math.copysign`: the first one's magnitude with the second one's sign.
    pub fn copysign(&self, magnitude: Val<'c>, sign: Val<'c>) -> Val<'c> {
        let operation = ods::math::copysign(self.context(), magnitude, sign, self.location);
        result_of(self.insert(operation.into()), 0)
    }

    /// `math.powf`: a float to the power of another.
    pub fn powf(&self, base: Val<'c>, exponent: Val<'c>) -> Val<'c> {
        let operation = ods::math::powf(self.context(), base, exponent, self.location);
        result_of(self.insert(operation.into()), 0)
    }

    /// `vector.fma`: `a * b + c` lane by lane, rounded once.
    pub fn vector_fma(&self, a: Val<'c>, b: Val<'c>, c: Val<'c>) -> Val<'c> {
        let operation = ods::vector::fma(self.context(), a.r#type(), a, b, c, self.location);
        result_of(self.insert(operation.into()), 0)
    }

    /// `tensor.cast`: a tensor as another type of the same elements, with more or fewer lengths known.
    pub fn tensor_cast(&self, value: Val<'c>, to: Type<'c>) -> Val<'c> {
        let operation = ods::tensor::cast(self.context(), to, value, self.location);
        result_of(self.insert(operation.into()), 0)
    }

    /// `tensor.dim`: a tensor's length along an axis.
    pub fn tensor_dim(&self, value: Val<'c>, axis: Val<'c>) -> Val<'c> {
        let operation = ods::tensor::dim(
            self.context(),
            Type::index(self.context()),
            value,
            axis,
            self.location,
        );
        result_of(self.insert(operation.into()), 0)
    }

    /// `tensor.empty`: a tensor to be written, with the lengths that its type does not know.
    pub fn tensor_empty(&self, lengths: &[Val<'c>], ty: Type<'c>) -> Val<'c> {
        let operation = ods::tensor::empty(self.context(), ty, lengths, self.location);
        result_of(self.insert(operation.into()), 0)
    }

    /// `tensor.from_elements`: a tensor of these elements, in row-major order.
    pub fn from_elements(&self, elements: &[Val<'c>], ty: Type<'c>) -> Val<'c> {
        let operation = ods::tensor::from_elements(self.context(), ty, elements, self.location);
        result_of(self.insert(operation.into()), 0)
    }

    /// `scf.if`: the values of the first region where the condition holds, of the second where not.
    pub fn scf_if(
        &self,
        condition: Val<'c>,
        results: &[Type<'c>],
        [yes, no]: [Region<'c>; 2],
    ) -> OperationRef<'c, 'c> {
        self.insert(scf::r#if(condition, results, yes, no, self.location))
    }

    /// `scf.yield`: what a region of structured control flow gives.
    pub fn scf_yield(&self, values: &[Val<'c>]) -> OperationRef<'c, 'c> {
        self.insert(scf::r#yield(values, self.location))
    }

    /// `func.return`: what a function gives.
    pub fn return_(&self, values: &[Val<'c>]) -> OperationRef<'c, 'c> {
        self.insert(func::r#return(values, self.location))
    }

    /// `linalg.yield`: what a region of `linalg` gives for an element.
    pub fn linalg_yield(&self, values: &[Val<'c>]) -> OperationRef<'c, 'c> {
        let operation = ods::linalg::r#yield(self.context(), values, self.location);
        self.insert(operation.into())
    }

    /// `cfb.yield`: what a region of `cfb` gives.
    pub fn cfb_yield(&self, values: &[Val<'c>]) -> OperationRef<'c, 'c> {
        let operation = crate::cfb::r#yield(self.context(), values, self.location);
        self.insert(operation.into())
    }

    /// `ragged.yield`: what a region of `ragged` gives.
    pub fn ragged_yield(&self, values: &[Val<'c>]) -> OperationRef<'c, 'c> {
        let operation = crate::ragged::r#yield(self.context(), values, self.location);
        self.insert(operation.into())
    }
}
