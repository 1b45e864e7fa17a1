//! Instructions in the form in which they run: registers are numbers of slots of 64 bits, constants are slots
//! that nothing writes.

/// Slots at the beginning of a thread's registers, for what it knows of itself.
pub const SPECIAL: [&str; 6] = [
    "%tid.x",
    "%ntid.x",
    "%ctaid.x",
    "%ctaid.y",
    "%nctaid.x",
    "%nctaid.y",
];

/// A register.
pub type Slot = u32;

#[derive(Debug)]
pub struct Function {
    pub line: u32,
    /// Where each parameter begins, and how long it is, in bytes.
    pub parameters: Vec<(u32, u32)>,
    /// Bytes of shared memory that it declares, and where behind them begins what a launch gives.
    pub shared_bytes: u32,
    pub dynamic_begin: u32,
    /// Registers that are written; behind them are the constants.
    pub registers: Slot,
    pub constants: Vec<u64>,
    pub code: Vec<Instruction>,
    /// Registers that warpgroups' products add to, in the order in which they occur.
    pub accumulators: Vec<Accumulator>,
    /// Of each instruction.
    pub lines: Vec<u32>,
}

impl Function {
    pub fn line_of(&self, pc: usize) -> u32 {
        self.lines.get(pc).copied().unwrap_or(self.line)
    }
}

/// What a result's bits are, as a function of the operands' bits; those above its width are 0.
#[derive(Clone, Copy, Debug)]
pub enum Compute {
    Unary(fn(u64) -> u64),
    Binary(fn(u64, u64) -> u64),
    Ternary(fn(u64, u64, u64) -> u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    Global,
    Shared,
    Parameter,
}

/// Where a load or a store goes, and what of.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    pub space: Space,
    /// Of one element.
    pub bytes: u8,
    /// Elements.
    pub count: u8,
    pub base: Slot,
    pub offset: i64,
    /// The registers of the elements.
    pub registers: [Slot; 4],
}

impl Access {
    pub fn all_bytes(&self) -> usize {
        usize::from(self.bytes) * usize::from(self.count)
    }

    /// The registers of those elements that there are.
    pub fn elements(&self) -> &[Slot] {
        &self.registers[..usize::from(self.count).min(self.registers.len())]
    }
}

/// A place in memory.
#[derive(Clone, Copy, Debug)]
pub struct MemoryOperand {
    pub base: Slot,
    pub offset: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// 16 rows, 8 columns, 8 of k, in tf32.
    Tf32,
    /// 16 rows, 8 columns, 16 of k, in bf16.
    Bf16,
}

/// The registers of a thread's part of a product.
#[derive(Clone, Copy, Debug)]
pub struct Product {
    pub shape: Shape,
    pub results: [Slot; 4],
    pub left: [Slot; 4],
    pub right: [Slot; 2],
    pub sums: [Slot; 4],
}

/// A register that warpgroups' products add to.
#[derive(Debug)]
pub struct Accumulator {
    pub slot: Slot,
    pub name: String,
}

/// A thread's part of a warpgroup's product of 64 rows and 16 of k, in bf16, with both factors in shared memory.
#[derive(Debug)]
pub struct WarpgroupProduct {
    pub columns: usize,
    /// Numbers of [`Function::accumulators`].
    pub sums: Box<[u32]>,
    /// The registers of the factors' descriptors.
    pub left: Slot,
    pub right: Slot,
    /// The predicate that says whether the product is added to the sums, which it replaces otherwise.
    pub is_added: Slot,
}

#[derive(Debug)]
pub enum Instruction {
    Unary(fn(u64) -> u64, Slot, [Slot; 1]),
    Binary(fn(u64, u64) -> u64, Slot, [Slot; 2]),
    Ternary(fn(u64, u64, u64) -> u64, Slot, [Slot; 3]),
    Load(Access),
    /// A load that other blocks are waited for by, and that finds what is in memory.
    Look(Access),
    /// The same, behind which all is read anew.
    Acquire(Access),
    Store(Access),
    /// Adds to a word of 32 bits of global memory, and gives what was there.
    AtomicAdd {
        result: Slot,
        place: MemoryOperand,
        value: Slot,
    },
    /// Begins a copy from global to shared memory; of its bytes all but the first `copied` are zeros.
    Copy {
        bytes: u8,
        to: MemoryOperand,
        from: MemoryOperand,
        copied: Slot,
    },
    Commit,
    /// Waits until at most this many groups of copies are pending.
    Wait(u32),
    Branch(u32),
    /// Branches where the predicate is the given one.
    BranchIf(Slot, bool, u32),
    /// Branches to the label of this number.
    BranchIndexed(Slot, Box<[u32]>),
    Barrier,
    /// `bar.sync barrier, threads`: the number of a named barrier, and how many threads it synchronises.
    NamedBarrier(Slot, Slot),
    /// The halves of a cluster's barrier, of which one orders what the thread wrote, and the other what it reads.
    ClusterArrive,
    ClusterWait,
    Fence,
    /// Shows what the thread wrote in shared memory to the async proxy.
    ProxyFence,
    /// Gives the value of the lane whose number differs in these bits.
    Shuffle {
        result: Slot,
        value: Slot,
        lanes: u8,
    },
    Multiply(Box<Product>),
    WarpgroupMultiply(Box<WarpgroupProduct>),
    /// Orders accesses of registers before products that add to them.
    WarpgroupFence,
    WarpgroupCommit,
    /// Waits until at most this many groups of products are pending.
    WarpgroupWait(u32),
    /// Stands before an instruction that reads or writes accumulators, and has their numbers and whether they are
    /// written.
    Watch(Box<[(u32, bool)]>),
    Return,
}

impl Instruction {
    /// The registers that it reads and writes while it runs, and whether they are written. A warpgroup's product is
    /// asynchronous, so its sums are not among them.
    pub fn registers(&self) -> impl Iterator<Item = (Slot, bool)> {
        let (read, written): (Vec<Slot>, Vec<Slot>) = match self {
            Instruction::Unary(_, to, from) => (from.to_vec(), vec![*to]),
            Instruction::Binary(_, to, from) => (from.to_vec(), vec![*to]),
            Instruction::Ternary(_, to, from) => (from.to_vec(), vec![*to]),
            Instruction::Load(access)
            | Instruction::Look(access)
            | Instruction::Acquire(access) => (vec![access.base], access.elements().to_vec()),
            Instruction::Store(access) => ([&[access.base], access.elements()].concat(), vec![]),
            Instruction::AtomicAdd {
                result,
                place,
                value,
            } => (vec![place.base, *value], vec![*result]),
            Instruction::Copy {
                to, from, copied, ..
            } => (vec![to.base, from.base, *copied], vec![]),
            Instruction::Shuffle { result, value, .. } => (vec![*value], vec![*result]),
            Instruction::BranchIf(of, ..) | Instruction::BranchIndexed(of, _) => {
                (vec![*of], vec![])
            }
            Instruction::Multiply(product) => {
                let factors = [&product.left[..], &product.right].concat();
                (
                    [factors, product.sums.to_vec()].concat(),
                    product.results.to_vec(),
                )
            }
            Instruction::NamedBarrier(barrier, threads) => (vec![*barrier, *threads], vec![]),
            Instruction::WarpgroupMultiply(product) => {
                (vec![product.left, product.right, product.is_added], vec![])
            }
            Instruction::Commit
            | Instruction::Wait(_)
            | Instruction::Branch(_)
            | Instruction::Barrier
            | Instruction::ClusterArrive
            | Instruction::ClusterWait
            | Instruction::Fence
            | Instruction::ProxyFence
            | Instruction::WarpgroupFence
            | Instruction::WarpgroupCommit
            | Instruction::WarpgroupWait(_)
            | Instruction::Watch(_)
            | Instruction::Return => (vec![], vec![]),
        };
        let read = read.into_iter().map(|slot| (slot, false));
        read.chain(written.into_iter().map(|slot| (slot, true)))
    }
}
