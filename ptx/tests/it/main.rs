//! Whole functions: memory, branches, and threads and blocks that wait for each other. What each instruction of
//! arithmetic computes is tested beside it.

mod memory;
mod product;
mod waiting;

use std::collections::HashSet;

use cohort_ptx::{Error, Launch, Memory, Module, Region, TensorCores};

/// Where the words of [`Case::words`] lie.
const AT: u64 = 0x1_0000;

fn forward_and_backward(count: usize, is_turned: bool) -> Vec<usize> {
    match is_turned {
        false => (0..count).collect(),
        true => (0..count).rev().collect(),
    }
}

/// A function of one argument, the address of some words, which it may change.
struct Case {
    body: String,
    words: Vec<u32>,
    launch: Launch,
}

impl Case {
    /// With registers `%p`, `%r` and `%rd`, of which `%rd1` has the address.
    fn new(body: &str, words: usize) -> Case {
        Case {
            body: body.to_owned(),
            words: vec![0; words],
            launch: Launch {
                grid: (1, 1),
                threads: 32,
                dynamic_shared_bytes: 0,
                is_together: false,
                blocks_of_cluster: 1,
                poison: 0xff,
                order: forward_and_backward,
                tensor_cores: TensorCores::Nearest,
            },
        }
    }

    fn blocks(mut self, blocks: u32, is_together: bool) -> Case {
        self.launch.grid = (blocks, 1);
        self.launch.is_together = is_together;
        self
    }

    fn clusters_of(mut self, blocks: u32) -> Case {
        self.launch.blocks_of_cluster = blocks;
        self
    }

    fn threads(mut self, threads: u32) -> Case {
        self.launch.threads = threads;
        self
    }

    fn dynamic_shared_bytes(mut self, bytes: u32) -> Case {
        self.launch.dynamic_shared_bytes = bytes;
        self
    }

    fn text(&self) -> String {
        format!(
            ".version 8.0\n.target sm_80\n.address_size 64\n.extern .shared .align 16 .b8 given[];\
             .visible .entry f(.param .u64 f_0)\n{{\n\
             .reg .pred %p<8>; .reg .b16 %rs<8>; .reg .b32 %r<40>; .reg .b64 %rd<16>;\n\
             .shared .align 16 .b8 s[1024];\nld.param.b64 %rd1, [f_0];\n{}\n}}",
            self.body
        )
    }

    /// The words behind the run.
    fn run(mut self) -> Result<Vec<u32>, Error> {
        let module = Module::parse(&self.text())?;
        let mut bytes: Vec<u8> = self
            .words
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect();
        let writable = bytes.len();
        let mut memory = Memory::new(vec![Region {
            address: AT,
            bytes: &mut bytes,
            writable,
        }]);
        module.run("f", &[AT], &self.launch, &mut memory)?;
        let words = bytes
            .chunks_exact(4)
            .map(|word| [word[0], word[1], word[2], word[3]]);
        self.words = words.map(u32::from_le_bytes).collect();
        Ok(self.words)
    }

    /// What is wrong with it.
    fn refused(self) -> String {
        match self.run() {
            Ok(words) => panic!("it ran: {words:x?}"),
            Err(error) => error.to_string(),
        }
    }
}

/// Of the opcodes that the compiler writes for all examples, in every precision.
#[test]
fn each_opcode_that_is_not_arithmetic_has_a_case() {
    let cases = [
        include_str!("memory.rs"),
        include_str!("waiting.rs"),
        include_str!("product.f32.ptx"),
        include_str!("../../src/warpgroup/tests.rs"),
    ];
    let ends = |c: char| c.is_whitespace() || c == ';' || c == '"';
    let words = cases.iter().flat_map(|case| case.split(ends));
    let words: HashSet<&str> = words.collect();
    let names = [
        "atom", "bar", "barrier", "bra", "brx", "cp", "fence", "ld", "mma", "ret", "shfl", "st",
        "wgmma",
    ];
    let listed = include_str!("../opcodes.txt").lines();
    let missing = listed.filter(|opcode| {
        let name = opcode.split('.').next().unwrap_or_default();
        names.contains(&name) && !words.contains(opcode)
    });
    assert_eq!(missing.collect::<Vec<_>>(), Vec::<&str>::new());
}
