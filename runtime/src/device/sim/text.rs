//! The text that a card's driver would be given, interpreted ([`cohort_ptx`]): what lies between the kernels and the
//! card, the compiler's way down to PTX, is run as well.

use std::collections::BTreeMap;
use std::sync::Arc;

use cohort_abi::gpu::dynamic_shared_bytes;
use cohort_ptx::{Launch, Memory, Module, Region};

use super::block::Order;
use super::{Allocation, GUARD, POISON};
use crate::device::{Problem, TensorCores};
use crate::memory::SLACK;
use crate::program::artifact::{DeviceCode, DeviceFormat};

/// A module that was read; a program without kernels has none.
#[derive(Clone)]
pub struct Text {
    module: Option<Arc<Module>>,
    tensor_cores: TensorCores,
}

impl Text {
    /// The text for the latest architecture among these codes, if there is one.
    pub fn new(codes: &[DeviceCode], tensor_cores: TensorCores) -> Result<Text, Problem> {
        let texts = codes.iter().filter(|code| code.format == DeviceFormat::Ptx);
        let number = |code: &&DeviceCode| {
            let digits = code.target.chars().filter(char::is_ascii_digit);
            let number = digits.collect::<String>().parse::<u32>().unwrap_or(0);
            // `sm_90a` has more than `sm_90`.
            (number, code.target.ends_with('a'))
        };
        let code = texts.max_by_key(number);
        let module = code.map(read).transpose().map_err(Problem::NoCode)?;
        Ok(Text {
            module: module.map(Arc::new),
            tensor_cores,
        })
    }

    /// Whether there is a function of that name.
    pub fn has(&self, symbol: &str) -> bool {
        let module = self.module.as_ref();
        module.is_some_and(|module| module.shared_bytes(symbol).is_some())
    }

    /// Whether there is a function that declares no more shared memory than that: less where its launch gives some.
    pub fn check(&self, symbol: &str, shared_bytes: u32) -> Result<(), Problem> {
        let Some(module) = &self.module else {
            return Err(Problem::NoCode("the program has no PTX".to_owned()));
        };
        match module.shared_bytes(symbol) {
            None => Err(Problem::NoCode(format!(
                "its PTX has no function `{symbol}`"
            ))),
            Some(found) if found > shared_bytes - dynamic_shared_bytes(shared_bytes) => {
                Err(Problem::NoCode(format!(
                    "`{symbol}` has {found} bytes of shared memory in the PTX, and {shared_bytes} are promised"
                )))
            }
            Some(_) => Ok(()),
        }
    }

    /// Runs a grid of blocks of the given numbers of threads and of bytes of shared memory: all of them together, in clusters of
    /// so many; or, without a number, one after another.
    pub fn run(
        &self,
        symbol: &str,
        (grid, threads, shared_bytes): ((u32, u32), u32, u32),
        clusters_of: Option<u32>,
        arguments: &[u64],
        memory: &mut BTreeMap<u64, Allocation>,
    ) -> Result<(), String> {
        let launch = Launch {
            grid,
            threads,
            dynamic_shared_bytes: dynamic_shared_bytes(shared_bytes),
            is_together: clusters_of.is_some(),
            blocks_of_cluster: clusters_of.unwrap_or(1),
            poison: POISON,
            order: |count, is_turned| Order::Turns.numbers(count, is_turned),
            tensor_cores: self.tensor_cores,
        };
        let regions = memory.iter_mut().map(|(address, allocation)| Region {
            address: *address,
            bytes: &mut allocation.buffer.bytes_mut()[GUARD..GUARD + allocation.bytes + SLACK],
            writable: allocation.bytes,
        });
        let mut memory = Memory::new(regions.collect());
        let module = self.module.as_ref().ok_or("the program has no PTX")?;
        let run = module.run(symbol, arguments, &launch, &mut memory);
        run.map_err(|error| error.to_string())
    }
}

/// The functions of a text.
fn read(code: &DeviceCode) -> Result<Module, String> {
    // The driver takes text that ends with a 0.
    let bytes = code.bytes.strip_suffix(&[0]).unwrap_or(&code.bytes);
    let text =
        std::str::from_utf8(bytes).map_err(|error| format!("its PTX is not text: {error}"))?;
    Module::parse(text).map_err(|error| error.to_string())
}
