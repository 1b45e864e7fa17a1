//! An interpreter of PTX, the text that a compiler writes for NVIDIA's GPUs: of the part of it that occurs here.
//!
//! It is there to check what was written, to the bit, where there is no card:
//!
//! ```text
//! text ──parse──► statements ──decode──► instructions with numbered registers ──► Module
//!                                                                                  │ run
//!                                              blocks ► warps ► threads ◄──────────┘
//! ```
//!
//! Each thread runs by itself from one point where it must wait to the next: a barrier of its block or its cluster, a
//! product of its warp, or the look at a word that another block will change. Threads do not run in the
//! order of their numbers ([`Launch::order`]), memory that nobody wrote holds a byte that the caller chooses,
//! copies to shared memory arrive as late as they may, nobody touches what a warpgroup's product works on until that is
//! waited for, blocks that are together see of each other what fences promise and
//! no more, and every address is checked. So text that lacks a barrier or a fence, waits for too few copies or leaves its
//! memory shows.
//!
//! What an instruction does is said by NVIDIA's *PTX ISA*; each has its cases in the tests. What that leaves open,
//! in which order and to how many bits a tensor core adds, is chosen by [`TensorCores`]. Other instructions than
//! those that occur are errors, not guesses.

mod arithmetic;
mod block;
mod decode;
mod error;
mod instruction;
mod lexer;
mod memory;
mod mma;
mod parser;
mod proxy;
mod thread;
mod view;
mod warpgroup;
mod watch;
mod wgmma;

use std::collections::HashMap;

pub use error::Error;
pub use memory::{Memory, Region};
pub use mma::TensorCores;

use instruction::Function;

/// Text that was read, ready to run.
#[derive(Debug)]
pub struct Module {
    functions: HashMap<String, Function>,
}

/// How a function is run.
#[derive(Clone, Copy, Debug)]
pub struct Launch {
    /// Blocks of the grid's first and second dim.
    pub grid: (u32, u32),
    /// Threads of a block, a multiple of 32.
    pub threads: u32,
    /// Bytes of shared memory that a block has behind what the function declares.
    pub dynamic_shared_bytes: u32,
    /// All blocks are on the device together and may wait for each other.
    pub is_together: bool,
    /// Blocks per cluster, along the grid's first dim: the threads that a `barrier.cluster` synchronises.
    pub blocks_of_cluster: u32,
    /// What shared memory and registers hold before they are written.
    pub poison: u8,
    /// In which order a number of threads, warps or blocks run; whether it is the turn of another one.
    pub order: fn(count: usize, is_turned: bool) -> Vec<usize>,
    /// How a warp's products are added.
    pub tensor_cores: TensorCores,
}

impl Module {
    /// Reads the text of a module.
    ///
    /// # Errors
    ///
    /// The first line that is not PTX, or that needs what is not interpreted here.
    pub fn parse(text: &str) -> Result<Module, Error> {
        let mut functions = HashMap::new();
        let declared = parser::parse(text)?;
        for entry in &declared.entries {
            let function = decode::decode(entry, &declared.dynamic)?;
            functions.insert(entry.name.to_owned(), function);
        }
        Ok(Module { functions })
    }

    /// Bytes of shared memory that a function declares; nothing where there is no such function.
    pub fn shared_bytes(&self, function: &str) -> Option<u32> {
        self.functions.get(function).map(|found| found.shared_bytes)
    }

    /// Runs all blocks of a function to their ends. The arguments are the bits of its parameters.
    ///
    /// # Errors
    ///
    /// The first thing that no thread may do, with the line and the thread; what was written before stays.
    pub fn run(
        &self,
        function: &str,
        arguments: &[u64],
        launch: &Launch,
        memory: &mut Memory<'_>,
    ) -> Result<(), Error> {
        let Some(found) = self.functions.get(function) else {
            return Err(Error::new(0, format!("there is no function `{function}`")));
        };
        block::run(found, arguments, launch, memory)
    }
}
