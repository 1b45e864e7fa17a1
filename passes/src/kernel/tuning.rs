//! What of a kernel's schedule may be chosen otherwise without another bit in its results: one number a choice, by the
//! kernel's name as reports and statistics have it.

use cohort_dialects::keys::{self, Key};
pub use cohort_dialects::marks::TUNING;
use std::collections::BTreeMap;

use cohort_dialects::builder::{Op, extend_op, operands_of};
use melior::{
    Context,
    ir::{
        Attribute, Identifier, OperationRef,
        attribute::{DenseI64ArrayAttribute, DictionaryAttribute, IntegerAttribute},
        r#type::IntegerType,
    },
};

use super::loop_level::kernels;
use crate::support::ir::{
    defining_op, entries_of, integer_attribute, integers, name_attribute, nested_ops,
    set_attribute, symbol_of,
};

/// A number that a kernel has at the loop level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Choice {
    /// The rows of a block of a row-wise kernel.
    Rows,
    /// The rows of a product's largest micro-kernel.
    Tile,
    /// The elements of a nest's vectors, where there may be more than of one.
    Width,
    /// The rows that a product of a call packs at once.
    ProductRows,
    /// The columns that it packs.
    ProductColumns,
    /// The terms that it packs.
    ProductTerms,
    /// The rows of a block of a softmax.
    SoftmaxRows,
}

impl Choice {
    /// Every choice, in the order of the files.
    pub const ALL: [Choice; 7] = [
        Choice::Rows,
        Choice::Tile,
        Choice::Width,
        Choice::ProductRows,
        Choice::ProductColumns,
        Choice::ProductTerms,
        Choice::SoftmaxRows,
    ];

    /// The name that files have for it.
    pub fn name(self) -> &'static str {
        match self {
            Choice::Rows => "rows",
            Choice::Tile => "tile",
            Choice::Width => "width",
            Choice::ProductRows => "product_rows",
            Choice::ProductColumns => "product_columns",
            Choice::ProductTerms => "product_terms",
            Choice::SoftmaxRows => "softmax_rows",
        }
    }

    /// The choice of a name that files have.
    pub fn parse(name: &str) -> Option<Choice> {
        Choice::ALL.into_iter().find(|choice| choice.name() == name)
    }

    /// The numbers that are worth a try.
    pub fn candidates(self) -> &'static [i64] {
        match self {
            Choice::Rows => &[12, 24, 48, 96, 192, 384],
            Choice::Tile => &[4, 6, 8, 12],
            Choice::Width => &[16, 32],
            Choice::ProductRows => &[24, 48, 96, 192, 384],
            Choice::ProductColumns => &[64, 128, 256, 512],
            Choice::ProductTerms => &[64, 128, 256],
            Choice::SoftmaxRows => &[24, 48, 96, 192],
        }
    }

    /// What is wrong with a number, whatever has it: the same that the verifier refuses.
    pub fn check(self, number: i64) -> Result<(), String> {
        let (is_possible, expected) = match self {
            Choice::Rows => ((1..=65536).contains(&number), "from 1 to 65536"),
            Choice::Tile => ([1, 2, 4, 6, 8, 12].contains(&number), "1, 2, 4, 6, 8 or 12"),
            Choice::Width => ([16, 32].contains(&number), "16 or 32"),
            Choice::ProductRows | Choice::SoftmaxRows => (
                (12..=1536).contains(&number) && number % 12 == 0,
                "a multiple of 12 up to 1536",
            ),
            Choice::ProductColumns => ((1..=512).contains(&number), "from 1 to 512"),
            Choice::ProductTerms => ((1..=256).contains(&number), "from 1 to 256"),
        };
        match is_possible {
            true => Ok(()),
            false => Err(format!(
                "expected `{}` to be {expected}, but got {number}",
                self.name()
            )),
        }
    }

    /// The stages of this name have it, as this attribute, or as an element of it.
    fn place(self) -> (Op, Key<'static>, Option<usize>) {
        match self {
            Choice::Rows => (Op::RaggedBlocks, keys::OF, None),
            Choice::Tile => (Op::RaggedProduct, keys::TILE, None),
            Choice::Width => (Op::RaggedNest, keys::BY, None),
            Choice::ProductRows => (Op::RaggedMatmul, keys::ROWS, None),
            Choice::ProductColumns => (Op::RaggedMatmul, keys::BLOCKS, Some(0)),
            Choice::ProductTerms => (Op::RaggedMatmul, keys::BLOCKS, Some(1)),
            Choice::SoftmaxRows => (Op::RaggedOnlineSoftmax, keys::BLOCKS, Some(0)),
        }
    }

    /// Whether an operation of that name has a choice.
    fn is_free(self, operation: OperationRef<'_, '_>) -> bool {
        match self {
            // Panels of one column have one micro-kernel.
            Choice::Tile => {
                let right = operands_of(operation).get(1).copied().and_then(defining_op);
                right.and_then(|right| integer_attribute(right, keys::PANELS)) != Some(1)
            }
            // One vector is always possible, two are where the planner had them.
            Choice::Width => integer_attribute(operation, keys::BY) == Some(32),
            _ => true,
        }
    }

    /// The operations of a kernel that have it.
    fn operations<'c>(self, kernel: OperationRef<'c, 'c>) -> Vec<OperationRef<'c, 'c>> {
        let (stage, ..) = self.place();
        let nested = nested_ops(kernel).into_iter();
        nested
            .filter(|operation| stage.is(*operation) && self.is_free(*operation))
            .collect()
    }

    /// What a kernel has; the largest, where it has several.
    fn of_kernel(self, kernel: OperationRef<'_, '_>) -> Option<i64> {
        let (_, name, element) = self.place();
        let operations = self.operations(extend_op(kernel));
        let numbers = operations
            .into_iter()
            .filter_map(|operation| match element {
                None => integer_attribute(operation, name),
                Some(element) => integers(operation, name).get(element).copied(),
            });
        numbers.max()
    }

    /// Gives a kernel the number; whether it has a place for it. Whether it can be, the verifier says.
    pub fn set<'c>(self, context: &'c Context, kernel: OperationRef<'c, 'c>, number: i64) -> bool {
        let (_, name, element) = self.place();
        let operations = self.operations(kernel);
        for operation in &operations {
            let attribute = match element {
                None => i64_attribute(context, number),
                Some(element) => {
                    let mut numbers = integers(*operation, name);
                    if let Some(place) = numbers.get_mut(element) {
                        *place = number;
                    }
                    DenseI64ArrayAttribute::new(context, &numbers).into()
                }
            };
            set_attribute(*operation, name, attribute);
        }
        !operations.is_empty()
    }
}

/// Choices by kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tuning(pub BTreeMap<String, BTreeMap<Choice, i64>>);

impl Tuning {
    /// Whether no kernel is told anything.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of a kernel's choice.
    pub fn get(&self, kernel: &str, choice: Choice) -> Option<i64> {
        self.0.get(kernel)?.get(&choice).copied()
    }

    /// Tells a kernel a number, in place of what it was told before.
    pub fn set(&mut self, kernel: &str, choice: Choice, number: i64) {
        self.0
            .entry(kernel.to_owned())
            .or_default()
            .insert(choice, number);
    }

    /// What the kernels of a module have at the loop level.
    pub fn of_module(module: OperationRef<'_, '_>) -> Tuning {
        let mut tuning = Tuning::default();
        for [kernel, _] in kernels(extend_op(module)) {
            for choice in Choice::ALL {
                if let Some(number) = choice.of_kernel(kernel) {
                    tuning.set(&name_of_kernel(kernel), choice, number);
                }
            }
        }
        tuning
    }

    /// Writes it into a module, for `apply-tuning`.
    pub fn write_down<'c>(&self, context: &'c Context, module: OperationRef<'c, 'c>) {
        let of_kernel = |choices: &BTreeMap<Choice, i64>| -> Attribute<'c> {
            let choices = choices.iter();
            let entries: Vec<_> = choices
                .map(|(choice, number)| {
                    (
                        Identifier::new(context, choice.name()),
                        i64_attribute(context, *number),
                    )
                })
                .collect();
            DictionaryAttribute::new(context, &entries).into()
        };
        let kernels = self.0.iter();
        let entries: Vec<_> = kernels
            .map(|(name, choices)| (Identifier::new(context, name), of_kernel(choices)))
            .collect();
        let all = DictionaryAttribute::new(context, &entries);
        set_attribute(module, TUNING, all.into());
    }

    /// The one that stands in an attribute, or what is wrong with it.
    pub fn read(attribute: Attribute<'_>) -> Result<Tuning, String> {
        let kernels = entries_of(attribute)
            .ok_or("expected `cfb.tuning` to be a dictionary of kernels, each with its choices")?;
        let mut tuning = Tuning::default();
        for (kernel, choices) in kernels {
            let choices = entries_of(choices)
                .ok_or_else(|| format!("expected a dictionary of choices for `{kernel}`"))?;
            for (name, number) in choices {
                let choice = Choice::parse(&name).ok_or_else(|| unknown(&kernel, &name))?;
                let number = IntegerAttribute::try_from(number)
                    .map_err(|_| format!("expected `{name}` of `{kernel}` to be a number"))?;
                choice
                    .check(number.value())
                    .map_err(|problem| format!("`{kernel}`: {problem}"))?;
                tuning.set(&kernel, choice, number.value());
            }
        }
        Ok(tuning)
    }
}

/// What is wrong where a choice has no such name.
pub fn unknown(kernel: &str, name: &str) -> String {
    let known = Choice::ALL.map(|choice| choice.name()).join(", ");
    format!("there is no choice `{name}`, which `{kernel}` is to have; there are {known}")
}

/// A kernel's name as reports and statistics have it; kernels that one was made into share it.
pub fn name_of_kernel(kernel: OperationRef<'_, '_>) -> String {
    let source = name_attribute(kernel, keys::SOURCE);
    source.or_else(|| symbol_of(kernel)).unwrap_or_default()
}

fn i64_attribute(context: &Context, number: i64) -> Attribute<'_> {
    IntegerAttribute::new(IntegerType::new(context, 64).into(), number).into()
}
