//! What a batched kernel means: its body at level 2, interpreted in f64.
//!
//! It shares nothing with the ways that lead from level 2 to code, so a result that differs from it is
//! a mistake of theirs. Numbers have the precision of f64 and the range of f32: what would overflow in
//! f32 is infinite, and what would vanish is 0. Integers wrap at their width.
//!
//! A kernel with an operation that is not interpreted says which, and has no reference.

mod eval;
mod read;
mod scalars;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use cohort_abi::manifest::Elem;
use cohort_dialects::builder::{Op, extend_op};
use melior::{Context, ir::Module, pass::PassManager, utility::parse_pass_pipeline};

use crate::support::ir::{COMPUTED, clone_op, name_attribute, symbol_of, top_level};
use read::Kernel;
pub use scalars::Scalar;

/// Numbers in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// The sizes of its dims.
    pub shape: Vec<usize>,
    /// In row-major order.
    pub elements: Vec<Scalar>,
}

impl Tensor {
    /// Numbers as they lie in memory.
    pub fn from_bytes(shape: Vec<usize>, elem: Elem, bytes: &[u8]) -> Tensor {
        Tensor {
            shape,
            elements: numbers(elem, bytes),
        }
    }
}

/// Numbers as they lie in memory.
pub fn numbers(elem: Elem, bytes: &[u8]) -> Vec<Scalar> {
    let words = bytes.chunks_exact(4).map(|word| {
        let mut four = [0; 4];
        four.copy_from_slice(word);
        u32::from_ne_bytes(four)
    });
    match elem {
        Elem::Bool => bytes
            .iter()
            .map(|byte| Scalar::Int(i64::from(*byte != 0)))
            .collect(),
        _ => words.map(|bits| number(elem, bits)).collect(),
    }
}

/// A number of these bits.
pub fn number(elem: Elem, bits: u32) -> Scalar {
    match elem {
        Elem::F32 => Scalar::Float(f64::from(f32::from_bits(bits))),
        Elem::I32 => Scalar::Int(i64::from(bits as i32)),
        Elem::Bool => Scalar::Int(i64::from(bits != 0)),
    }
}

/// What becomes of each number that is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// All digits of f64 are kept.
    None,
    /// The nearest number of f32, as by code that computes in this order. How far its results are from
    /// those without rounding tells what f32 can make of a kernel: where large numbers cancel, little.
    F32,
}

/// What a kernel is given for an operand, over all entries of a batch.
#[derive(Clone, Debug)]
pub enum Input {
    /// The numbers of each entry, one entry after another.
    Numbers(Vec<Scalar>),
    /// A length of an instance dim, which only kernels over calls read; they take one call at a time.
    Length(Option<usize>),
    /// The rows of each entry's list.
    Lists(Vec<Vec<Vec<Scalar>>>),
}

/// The kernels of a module.
pub struct Reference {
    kernels: HashMap<String, Result<Kernel, String>>,
    /// Parameters that kernels compute at load: the name of each, and of its kernel.
    computed: Vec<(String, String)>,
    params: HashMap<String, Arc<Tensor>>,
}

impl Reference {
    /// Reads the kernels of a module at level 2.
    ///
    /// # Errors
    /// If structured operations cannot be written as loops, which MLIR has said why.
    pub fn read(context: &Context, module: &Module<'_>) -> Result<Reference, String> {
        let copy = clone_op(module.as_operation());
        let mut copy = Module::from_operation(copy).ok_or("the module cannot be copied")?;
        let passes = PassManager::new(context);
        let pipeline = "builtin.module(linalg-generalize-named-ops)";
        parse_pass_pipeline(passes.as_operation_pass_manager(), pipeline)
            .map_err(|error| error.to_string())?;
        passes.run(&mut copy).map_err(|error| error.to_string())?;
        let mut reference = Reference {
            kernels: HashMap::new(),
            computed: Vec::new(),
            params: HashMap::new(),
        };
        for operation in top_level(extend_op(copy.as_operation())) {
            let name = symbol_of(operation).unwrap_or_default();
            if Op::CfbKernel.is(operation) {
                reference.kernels.insert(name, read::read(operation));
            } else if let Some(kernel) = name_attribute(operation, COMPUTED) {
                reference.computed.push((name, kernel));
            }
        }
        Ok(reference)
    }

    /// Gives the parameters, and computes what is made of them at load.
    ///
    /// # Errors
    /// If one of those has no reference.
    pub fn set_params(&mut self, params: BTreeMap<String, Tensor>) -> Result<(), String> {
        for (name, tensor) in params {
            self.params.insert(name, Arc::new(tensor));
        }
        for (name, kernel) in self.computed.clone() {
            let mut results = self.run(&kernel, Rounding::None, 1, &[])?;
            let mut result = results.pop().ok_or("a kernel without a result")?;
            // It is the one row.
            result.shape.remove(0);
            self.params.insert(name, Arc::new(result));
        }
        Ok(())
    }

    /// The name at level 2 of the kernel that a function computes: another way of recording a kernel gives
    /// it a second function, with a number behind its name.
    pub fn kernel_of<'a>(&self, function: &'a str) -> &'a str {
        if self.kernels.contains_key(function) {
            return function;
        }
        function
            .rsplit_once("_scalars_")
            .map_or(function, |(kernel, _)| kernel)
    }

    /// The results of a kernel for a number of entries: rows, or one call.
    ///
    /// # Errors
    /// If the kernel has no reference, or is given what it does not take.
    pub fn run(
        &self,
        kernel: &str,
        rounding: Rounding,
        entries: usize,
        inputs: &[Input],
    ) -> Result<Vec<Tensor>, String> {
        match self.kernels.get(kernel) {
            Some(Ok(kernel)) => eval::run(kernel, &self.params, rounding, entries, inputs),
            Some(Err(problem)) => Err(problem.clone()),
            None => Err("it is not in the module".to_owned()),
        }
    }
}
