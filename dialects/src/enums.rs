//! The enums that the `cfb` dialect declares, and parts of calls.

use melior::Context;
use melior::ir::{Attribute, AttributeLike};

use crate::ffi;

/// An enum of the `cfb` dialect.
pub trait DialectEnum: Copy + PartialEq + 'static {
    /// Its number in `lib/Attributes.cpp`.
    #[doc(hidden)]
    const WHICH: u32;

    /// All values, in the order of the declaration.
    const ALL: &'static [Self];

    /// The attribute that is this value.
    fn attribute(self, context: &Context) -> Attribute<'_> {
        let value = Self::ALL.iter().position(|known| *known == self);
        let (which, value) = (Self::WHICH, value.unwrap_or_default() as u32);
        // SAFETY: the context is alive, and a test sees that each value has an attribute.
        unsafe { Attribute::from_raw(ffi::cohortEnumAttrGet(context.to_raw(), which, value)) }
    }

    /// The value that an attribute is; `None` of any other attribute.
    fn of(attribute: Attribute<'_>) -> Option<Self> {
        // SAFETY: the attribute is alive.
        let value = unsafe { ffi::cohortEnumAttrGetValue(attribute.to_raw(), Self::WHICH) };
        Self::ALL.get(usize::try_from(value).ok()?).copied()
    }
}

macro_rules! enums {
    ($($(#[$doc:meta])* $name:ident = $which:literal { $($(#[$of_case:meta])* $case:ident,)* })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub enum $name {
                $($(#[$of_case])* $case,)*
            }

            impl DialectEnum for $name {
                const WHICH: u32 = $which;
                const ALL: &'static [$name] = &[$($name::$case),*];
            }
        )*
    };
}

enums! {
    /// What a kernel is about.
    KernelUnit = 0 {
        /// Single rows.
        Rows,
        /// All rows of a call.
        Calls,
    }

    /// How a row-wise kernel takes an operand.
    Takes = 1 {
        /// As many rows as the call has.
        Ragged,
        /// One row, which all rows of a call share.
        Row,
        /// A number that the host passes.
        Scalar,
        /// Any number of rows for each row.
        List,
        /// An array of handles, one for each row of the call.
        Stacked,
    }

    /// Who has an operand of a block.
    Reuse = 2 {
        /// Each call has its own.
        Row,
        /// All calls share one.
        Shared,
    }

    /// The unit of scheduling.
    #[derive(Default)]
    Granularity = 3 {
        /// A tensor operation.
        Operator,
        /// Whatever tensor code can run together.
        #[default]
        Block,
        /// A function of the source, where it is tensor code only; what can run together elsewhere.
        Function,
    }

    /// What the factors of products are rounded to on a GPU.
    Precision = 4 {
        /// Not rounded.
        F32,
        /// 11 bits, with the exponents of `f32`.
        Tf32,
        /// 8 bits, with the exponents of `f32`.
        Bf16,
    }

    /// How a product is rounded that is added to something.
    Rounding = 5 {
        /// Not at all.
        Fused,
        /// Before it is added.
        Separate,
    }

    /// Of what gradients are computed.
    Gradients = 6 {
        /// Of parameters, and of what the entry takes.
        All,
        /// Of parameters alone.
        Parameters,
    }

    /// What a function gives that backward needs of its own.
    GradientHelper = 7 {
        /// Of two rows their sum.
        Add,
        /// Of two runs of rows of one length their sum.
        AddRuns,
        /// Of an array of rows a run of them.
        Stack,
        /// A row of zeros, of nothing.
        Zero,
        /// The number 1, of nothing.
        One,
    }
}

impl Granularity {
    /// The granularity of a name on the command line.
    pub fn parse(name: &str) -> Option<Granularity> {
        match name {
            "operator" => Some(Granularity::Operator),
            "block" => Some(Granularity::Block),
            "function" => Some(Granularity::Function),
            _ => None,
        }
    }
}

/// A part of a call, or of its gradient function, by its number: `#cfb.part`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// What the call took.
    Operand(usize),
    /// What the call gave; of a gradient function, what that gives.
    Result(usize),
    /// The cotangent of a result of the call.
    Cotangent(usize),
    /// What is to be added to the cotangent of a result of the call.
    Addend(usize),
    /// What the gradient function takes.
    Argument(usize),
    /// A factor of a site.
    Site,
}

impl Part {
    /// The attribute that is this part.
    pub fn attribute(self, context: &Context) -> Attribute<'_> {
        let (kind, number) = match self {
            Part::Operand(number) => (0, number as i64),
            Part::Result(number) => (1, number as i64),
            Part::Cotangent(number) => (2, number as i64),
            Part::Addend(number) => (3, number as i64),
            Part::Argument(number) => (4, number as i64),
            Part::Site => (5, -1),
        };
        // SAFETY: the context is alive, and all but a site have a number.
        unsafe { Attribute::from_raw(ffi::cohortPartAttrGet(context.to_raw(), kind, number)) }
    }

    /// The part that an attribute is; `None` of any other attribute.
    pub fn of(attribute: Attribute<'_>) -> Option<Part> {
        let mut number = -1;
        // SAFETY: the attribute is alive.
        let kind = unsafe { ffi::cohortPartAttrGetKind(attribute.to_raw(), &raw mut number) };
        let number = usize::try_from(number).ok();
        match kind {
            0 => number.map(Part::Operand),
            1 => number.map(Part::Result),
            2 => number.map(Part::Cotangent),
            3 => number.map(Part::Addend),
            4 => number.map(Part::Argument),
            5 => Some(Part::Site),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<E: DialectEnum + std::fmt::Debug>(context: &Context, mnemonic: &str, words: &[&str]) {
        assert_eq!(E::ALL.len(), words.len(), "{mnemonic}");
        for (value, word) in E::ALL.iter().zip(words) {
            let attribute = value.attribute(context);
            assert_eq!(attribute.to_string(), format!("#cfb<{mnemonic} {word}>"));
            assert_eq!(E::of(attribute), Some(*value), "{attribute}");
        }
    }

    #[test]
    fn each_is_what_the_dialect_declares() {
        let context = &crate::new_context();
        check::<KernelUnit>(context, "unit", &["rows", "calls"]);
        let takes = ["ragged", "row", "scalar", "list", "stacked"];
        check::<Takes>(context, "takes", &takes);
        check::<Reuse>(context, "reuse", &["row", "shared"]);
        let granularity = ["operator", "block", "function"];
        check::<Granularity>(context, "granularity", &granularity);
        check::<Precision>(context, "precision", &["f32", "tf32", "bf16"]);
        check::<Rounding>(context, "rounding", &["fused", "separate"]);
        check::<Gradients>(context, "gradients", &["all", "parameters"]);
        let helpers = ["add", "add_runs", "stack", "zero", "one"];
        check::<GradientHelper>(context, "gradient_helper", &helpers);
    }

    #[test]
    fn a_part_says_its_kind_and_its_number() {
        let context = crate::new_context();
        for (part, text) in [
            (Part::Operand(0), "#cfb.part<operand 0>"),
            (Part::Result(1), "#cfb.part<result 1>"),
            (Part::Cotangent(2), "#cfb.part<cotangent 2>"),
            (Part::Addend(0), "#cfb.part<addend 0>"),
            (Part::Argument(3), "#cfb.part<argument 3>"),
            (Part::Site, "#cfb.part<site>"),
        ] {
            let attribute = part.attribute(&context);
            assert_eq!(attribute.to_string(), text);
            assert_eq!(Attribute::parse(&context, text), Some(attribute), "{text}");
            assert_eq!(Part::of(attribute), Some(part));
        }
        assert_eq!(Part::of(Attribute::unit(&context)), None);
        assert_eq!(Reuse::of(Takes::Row.attribute(&context)), None);
    }
}
