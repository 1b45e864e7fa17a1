//! What of a kernel's schedule may be chosen otherwise without another bit in its results: one number a choice, by the
//! kernel's name as reports and statistics have it.

use cohort_dialects::keys;
use cohort_dialects::marks::FUSED_COLUMNS;
pub use cohort_dialects::marks::TUNING;
use std::collections::BTreeMap;

use cohort_dialects::builder::{Op, extend_op, operands_of};
use melior::{
    Context,
    ir::{
        Attribute, Identifier, OperationRef,
        attribute::{DenseI64ArrayAttribute, DictionaryAttribute, IntegerAttribute},
        operation::OperationLike,
        r#type::IntegerType,
    },
};

use super::loop_level::kernels;
use super::rows::layout::LANES;
use crate::pass::{Failed, error};
use crate::support::dims;
use crate::support::ir::{
    defining_op, entries_of, integer_attribute, integers, name_attribute, nested_ops,
    remove_attribute, set_attribute, symbol_of,
};

/// A number that a kernel has at the loop level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Choice {
    /// The columns of the widest product that products of the same rows are made into.
    FusedColumns,
    /// Whether the rows of all calls are one loop: 1, or 0.
    FusedRows,
    /// The vector length at which loops over ragged dims are split into an unmasked main loop and a tail; 0 for masks throughout.
    Tails,
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
    pub const ALL: [Choice; 10] = [
        Choice::FusedColumns,
        Choice::FusedRows,
        Choice::Tails,
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
            Choice::FusedColumns => "fused_columns",
            Choice::FusedRows => "fused_rows",
            Choice::Tails => "tails",
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
            Choice::ProductColumns => &[64, 128, 256, 512, 1024, 2048],
            Choice::ProductTerms => &[64, 128, 256, 512, 1024],
            Choice::SoftmaxRows => &[24, 48, 96, 192],
            Choice::FusedColumns => &[1, 128, 256, 512, 1024],
            Choice::FusedRows => &[0, 1],
            Choice::Tails => &[0, LANES],
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
            Choice::ProductColumns => ((1..=2048).contains(&number), "from 1 to 2048"),
            Choice::ProductTerms => ((1..=1024).contains(&number), "from 1 to 1024"),
            Choice::FusedColumns => ((1..=65536).contains(&number), "from 1 to 65536"),
            Choice::FusedRows => ([0, 1].contains(&number), "0 or 1"),
            Choice::Tails => ([0, LANES].contains(&number), "0 or 16"),
        };
        match is_possible {
            true => Ok(()),
            false => Err(format!(
                "expected `{}` to be {expected}, but got {number}",
                self.name()
            )),
        }
    }

    /// The operations of this name have it.
    fn place(self) -> Op {
        match self {
            Choice::Rows | Choice::FusedRows => Op::RaggedBlocks,
            Choice::Tile => Op::RaggedProduct,
            Choice::Width => Op::RaggedNest,
            Choice::ProductRows | Choice::ProductColumns | Choice::ProductTerms => Op::RaggedMatmul,
            Choice::SoftmaxRows => Op::RaggedOnlineSoftmax,
            Choice::FusedColumns => Op::RaggedKernel,
            Choice::Tails => Op::RaggedCalls,
        }
    }

    /// What an operation of that name has; none where there is nothing to choose.
    fn read(self, operation: OperationRef<'_, '_>) -> Option<i64> {
        let number = |name| integer_attribute(operation, name);
        let block = |place: usize| integers(operation, keys::BLOCKS).get(place).copied();
        match self {
            Choice::Rows => number(keys::OF),
            // Panels of one column have one micro-kernel.
            Choice::Tile => {
                let right = operands_of(operation).get(1).copied().and_then(defining_op);
                let panels = right.and_then(|right| integer_attribute(right, keys::PANELS));
                number(keys::TILE).filter(|_| panels != Some(1))
            }
            // One vector is always possible, two are where the planner had them.
            Choice::Width => number(keys::BY).filter(|by| *by == 32),
            Choice::ProductRows => number(keys::ROWS),
            Choice::ProductColumns | Choice::SoftmaxRows => block(0),
            Choice::ProductTerms => block(1),
            Choice::FusedColumns => number(FUSED_COLUMNS),
            Choice::FusedRows => {
                let kernel = extend_op(operation.parent_operation()?);
                let has_rows = !dims::lengths(kernel).is_empty();
                has_rows.then(|| i64::from(operation.has_attribute(&keys::FUSED)))
            }
            Choice::Tails => Some(number(keys::SPLIT).unwrap_or(0)),
        }
    }

    /// Gives it to an operation that has one.
    fn write<'c>(self, context: &'c Context, operation: OperationRef<'c, 'c>, number: i64) {
        let set = |name| set_attribute(operation, name, i64_attribute(context, number));
        let set_block = |place: usize| {
            let mut numbers = integers(operation, keys::BLOCKS);
            if let Some(block) = numbers.get_mut(place) {
                *block = number;
            }
            let blocks = DenseI64ArrayAttribute::new(context, &numbers).into();
            set_attribute(operation, keys::BLOCKS, blocks);
        };
        match self {
            Choice::Rows => set(keys::OF),
            Choice::Tile => set(keys::TILE),
            Choice::Width => set(keys::BY),
            Choice::ProductRows => set(keys::ROWS),
            Choice::ProductColumns | Choice::SoftmaxRows => set_block(0),
            Choice::ProductTerms => set_block(1),
            // `fuse-products` has read it.
            Choice::FusedColumns => {}
            Choice::FusedRows if number == 0 => remove_attribute(operation, keys::FUSED),
            Choice::FusedRows => set_attribute(operation, keys::FUSED, Attribute::unit(context)),
            Choice::Tails if number == 0 => remove_attribute(operation, keys::SPLIT),
            Choice::Tails => set(keys::SPLIT),
        }
    }

    /// The operations of a kernel that have it, each with its number.
    fn operations<'c>(self, kernel: OperationRef<'c, 'c>) -> Vec<(OperationRef<'c, 'c>, i64)> {
        let all = std::iter::once(kernel).chain(nested_ops(kernel));
        all.filter(|operation| self.place().is(*operation))
            .filter_map(|operation| Some((operation, self.read(operation)?)))
            .collect()
    }

    /// What a kernel has; the largest, where it has several.
    fn of_kernel(self, kernel: OperationRef<'_, '_>) -> Option<i64> {
        let operations = self.operations(extend_op(kernel)).into_iter();
        operations.map(|(_, number)| number).max()
    }

    /// Gives a kernel the number; whether it has a place for it. Whether it can be, the verifier says.
    pub fn set<'c>(self, context: &'c Context, kernel: OperationRef<'c, 'c>, number: i64) -> bool {
        let operations = self.operations(kernel);
        for (operation, _) in &operations {
            self.write(context, *operation, number);
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

    /// The one that a module was given; without choices where it has none.
    pub fn of(module: OperationRef<'_, '_>) -> Result<Tuning, Failed> {
        let Ok(attribute) = module.attribute(&TUNING) else {
            return Ok(Tuning::default());
        };
        Tuning::read(attribute).map_err(|problem| error(module, &problem))
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
