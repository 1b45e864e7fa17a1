//! Which functions make up the control program, and which of them recurse.

use cohort_dialects::marks;
use cohort_passes::kernel::description::ATTRIBUTE;
use cohort_passes::level1::differentiate_blocks::{GRADIENT, HELPER};
use cohort_passes::pass::{Failed, error};
use cohort_passes::support::ir::{callee_of, erase, functions_of, nested_ops, symbol_of};
use std::collections::{HashMap, HashSet};

use cohort_dialects::builder::Op;
use melior::ir::{OperationRef, RegionLike, operation::OperationLike};

/// The functions that are not kernels, in module order, and their calls of each other.
pub struct CallGraph {
    names: Vec<String>,
    raw: Vec<mlir_sys::MlirOperation>,
    callees: Vec<HashSet<usize>>,
    entry: usize,
    /// Those that only the runtime calls, for gradients.
    gradients: Vec<usize>,
}

impl CallGraph {
    pub fn new<'c>(module: OperationRef<'c, 'c>) -> Result<CallGraph, Failed> {
        let functions: Vec<_> = functions_of(module)
            .into_iter()
            .filter(|function| !function.has_attribute(&ATTRIBUTE) && has_body(*function))
            .collect();
        let names: Vec<String> = functions
            .iter()
            .map(|function| symbol_of(*function).unwrap_or_default())
            .collect();
        let numbers: HashMap<&String, usize> = names.iter().zip(0..).collect();
        let mut callees = Vec::new();
        for function in &functions {
            let calls = nested_ops(*function)
                .into_iter()
                .filter(|op| Op::FuncCall.is(*op));
            callees.push(
                calls
                    .filter_map(callee_of)
                    .filter_map(|callee| numbers.get(&callee).copied())
                    .collect(),
            );
        }
        let mut entries = functions
            .iter()
            .zip(0..)
            .filter(|(function, _)| function.has_attribute(&marks::ENTRY));
        let Some((_, entry)) = entries.next() else {
            return Err(error(
                module,
                "no function has the attribute `cfb.entry`; `--lower-kernels` lowers kernels alone",
            ));
        };
        if let Some((second, _)) = entries.next() {
            return Err(error(
                *second,
                "a second function with the attribute `cfb.entry`",
            ));
        }
        let of_gradients = |function: &OperationRef<'c, 'c>| {
            [GRADIENT, HELPER]
                .iter()
                .any(|name| function.has_attribute(name))
        };
        let gradients = (functions.iter().zip(0..))
            .filter(|(function, _)| of_gradients(function))
            .map(|(_, number)| number)
            .collect();
        let raw = functions.iter().map(|function| function.to_raw()).collect();
        Ok(CallGraph {
            gradients,
            names,
            raw,
            callees,
            entry,
        })
    }

    pub fn entry<'c>(&self) -> OperationRef<'c, 'c> {
        // SAFETY: the module owns the function until `erase`.
        unsafe { OperationRef::from_raw(self.raw[self.entry]) }
    }

    /// The functions that the entry reaches, itself included, and those of gradients, in module order.
    pub fn reachable<'c>(&self) -> Vec<OperationRef<'c, 'c>> {
        let mut reached = self.reached_from(self.entry);
        reached.insert(self.entry);
        reached.extend(&self.gradients);
        let mut numbers: Vec<usize> = reached.into_iter().collect();
        numbers.sort_unstable();
        // SAFETY: the module owns the functions until `erase`.
        numbers
            .into_iter()
            .map(|n| unsafe { OperationRef::from_raw(self.raw[n]) })
            .collect()
    }

    pub fn contains(&self, name: &str) -> bool {
        self.names.iter().any(|known| known == name)
    }

    /// Whether a function of the program calls it, and not the runtime alone.
    pub fn is_called(&self, name: &str) -> bool {
        let number = self.names.iter().position(|known| known == name);
        number.is_some_and(|number| self.callees.iter().any(|callees| callees.contains(&number)))
    }

    /// Whether a function may be active more than once at a time.
    pub fn is_recursive(&self, name: &str) -> bool {
        let number = self.names.iter().position(|known| known == name);
        number.is_some_and(|number| self.reached_from(number).contains(&number))
    }

    /// Removes the functions from the module.
    pub fn erase(self) {
        for raw in self.raw {
            // SAFETY: the module owns the function, and `self` ends here.
            erase(unsafe { OperationRef::from_raw(raw) });
        }
    }

    fn reached_from(&self, start: usize) -> HashSet<usize> {
        let mut reached = HashSet::new();
        let mut pending = vec![start];
        while let Some(function) = pending.pop() {
            for callee in &self.callees[function] {
                if reached.insert(*callee) {
                    pending.push(*callee);
                }
            }
        }
        reached
    }
}

fn has_body(function: OperationRef<'_, '_>) -> bool {
    function
        .region(0)
        .is_ok_and(|region| region.first_block().is_some())
}
