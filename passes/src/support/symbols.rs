//! The symbols of a module: names that are free, and the calls that name a kernel.

use std::collections::{HashMap, HashSet};

use cohort_dialects::builder::Op;
use melior::ir::OperationRef;

use super::ir::{kernel_of, symbol_of, top_level};

/// The names that are taken.
pub struct Symbols(HashSet<String>);

impl Symbols {
    /// The names of a module's top level.
    pub fn of(module: OperationRef<'_, '_>) -> Symbols {
        let operations = top_level(module).into_iter();
        Symbols(operations.filter_map(symbol_of).collect())
    }

    /// The first free one of the names that `named` makes of 0, 1 and so on; it is taken from then on.
    pub fn free(&mut self, mut named: impl FnMut(usize) -> String) -> String {
        let mut number = 0;
        loop {
            let name = named(number);
            if self.0.insert(name.clone()) {
                return name;
            }
            number += 1;
        }
    }

    /// This name, with a number behind it where it is taken.
    pub fn free_like(&mut self, base: &str) -> String {
        self.free(|number| match number {
            0 => base.to_owned(),
            number => format!("{base}_{number}"),
        })
    }
}

/// The records among these operations, by the kernel that they call.
pub fn records_by_kernel<'c>(
    operations: impl IntoIterator<Item = OperationRef<'c, 'c>>,
) -> HashMap<String, Vec<OperationRef<'c, 'c>>> {
    let mut records: HashMap<String, Vec<_>> = HashMap::new();
    for operation in operations {
        if Op::CfbRecord.is(operation)
            && let Some(kernel) = kernel_of(operation)
        {
            records.entry(kernel).or_default().push(operation);
        }
    }
    records
}
