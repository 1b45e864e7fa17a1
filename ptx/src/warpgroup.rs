//! Products that a block's warpgroups have begun, and who may do what before they are complete.
//!
//! A product reads its factors and writes its sums at some time between its beginning and the end of the wait for its
//! group, at another one in each warp. Here each warp computes its rows as late as it may, when it waits. That they
//! would be the same at any other time is checked: until then nobody accesses the sums or writes the factors. So each
//! mistake is told, whatever the values are (*PTX ISA*, "Asynchronous wgmma Proxy Operations").

use std::collections::VecDeque;

use crate::instruction::{Accumulator, Function, Instruction, WarpgroupProduct};
use crate::memory::Groups;
use crate::mma::{TensorCores, WARP};
use crate::proxy::{Proxy, Unseen};
use crate::wgmma::{Descriptor, Line, PIECE, ROWS, WARPS, place, sum};

/// Threads of a warpgroup.
pub const GROUP: usize = WARPS * WARP;

/// Of a block.
#[derive(Debug)]
pub struct Warpgroups {
    warps: Vec<Warp>,
    sequences: Vec<Sequence>,
    /// What products see of shared memory.
    pub proxy: Proxy,
    shared_bytes: usize,
}

#[derive(Debug)]
struct Warp {
    products: Groups<Pending>,
    /// Of each accumulator of the function.
    registers: Vec<Register>,
    /// Products that it has begun.
    begun: u64,
}

/// What a warp's threads did with an accumulator.
#[derive(Clone, Copy, Debug)]
struct Register {
    last: Last,
    /// Products that are not complete.
    pending: u32,
    /// The last product.
    pc: usize,
}

/// What orders an accumulator before the next product: a fence, or that the last product had as many columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Last {
    Access,
    Fence,
    Product(usize),
}

/// The operands of a product, which all threads of a warpgroup have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operands {
    /// The descriptors of the factors.
    pub left: u64,
    pub right: u64,
    pub is_added: bool,
}

/// A warp's part of a product that is not complete.
#[derive(Clone, Copy, Debug)]
struct Pending {
    pc: usize,
    left: Descriptor,
    right: Descriptor,
    columns: usize,
    is_added: bool,
}

impl Pending {
    /// Where a warp reads its rows and all columns.
    fn pieces(self, warp: usize) -> impl Iterator<Item = u64> {
        let first = warp % WARPS * ROWS;
        let left = (first..first + ROWS).map(move |row| (self.left, row));
        let lines = left.chain((0..self.columns).map(move |column| (self.right, column)));
        lines.flat_map(|(of, line)| [of.piece(line, 0), of.piece(line, 1)])
    }
}

/// Products that some warp of a warpgroup has begun and another has not.
#[derive(Debug, Default)]
struct Sequence {
    products: VecDeque<(usize, Operands)>,
    /// Products before them.
    before: u64,
}

fn product(function: &Function, pc: usize) -> Option<&WarpgroupProduct> {
    match function.code.get(pc) {
        Some(Instruction::WarpgroupMultiply(product)) => Some(product),
        _ => None,
    }
}

fn accumulators<'a>(
    function: &'a Function,
    product: &'a WarpgroupProduct,
) -> impl Iterator<Item = (usize, &'a Accumulator)> {
    let numbers = product.sums.iter().map(|number| *number as usize);
    numbers.filter_map(|number| Some((number, function.accumulators.get(number)?)))
}

impl Warpgroups {
    /// Of a block without products, if there are any in the function.
    pub fn new(function: &Function, threads: usize, shared_bytes: usize) -> Option<Warpgroups> {
        if function.accumulators.is_empty() {
            return None;
        }
        let register = Register {
            last: Last::Access,
            pending: 0,
            pc: 0,
        };
        let warp = || Warp {
            products: Groups::default(),
            registers: vec![register; function.accumulators.len()],
            begun: 0,
        };
        let warps: Vec<Warp> = (0..threads.div_ceil(WARP)).map(|_| warp()).collect();
        Some(Warpgroups {
            sequences: warps.chunks(WARPS).map(|_| Sequence::default()).collect(),
            warps,
            proxy: Proxy::new(threads, shared_bytes),
            shared_bytes,
        })
    }

    /// A warp begins the product of an instruction; otherwise what is wrong with it.
    pub fn begin(
        &mut self,
        function: &Function,
        (pc, warp): (usize, usize),
        operands: Operands,
    ) -> Result<(), String> {
        let Some(product) = product(function, pc) else {
            return Ok(());
        };
        let warps = self.warps.chunks(WARPS).nth(warp / WARPS);
        let warps = warps.map_or(0, <[Warp]>::len);
        if warps < WARPS {
            return Err(format!(
                "multiplies as one of {warps} warps, and a warpgroup has {WARPS}"
            ));
        }
        let read = |bits, which| {
            let descriptor = Descriptor::read(bits);
            descriptor.map_err(|problem| format!("of the {which} factor's descriptor {problem}"))
        };
        let pending = Pending {
            pc,
            left: read(operands.left, "left")?,
            right: read(operands.right, "right")?,
            columns: product.columns,
            is_added: operands.is_added,
        };
        self.follow(function, (pc, warp), operands)?;
        self.order(function, (pc, warp), product)?;
        for piece in pending.pieces(warp) {
            if piece + PIECE > self.shared_bytes as u64 {
                let all = self.shared_bytes;
                return Err(format!(
                    "reads {PIECE} bytes at {piece:#x}, outside the {all} bytes of shared memory"
                ));
            }
            let seen = self.proxy.check(piece, warp / WARPS);
            seen.map_err(Unseen::problem)?;
        }
        for piece in pending.pieces(warp) {
            self.proxy.hold(piece);
        }
        self.warps[warp].products.begin(pending);
        Ok(())
    }

    /// Compares a warp's product with those of the other warps.
    fn follow(
        &mut self,
        function: &Function,
        (pc, warp): (usize, usize),
        operands: Operands,
    ) -> Result<(), String> {
        let group = warp / WARPS;
        let sequence = &mut self.sequences[group];
        let at = (self.warps[warp].begun - sequence.before) as usize;
        match sequence.products.get(at) {
            None => sequence.products.push_back((pc, operands)),
            Some((other, _)) if *other != pc => {
                let line = function.line_of(*other);
                return Err(format!(
                    "multiplies where another warp of its warpgroup multiplies at line {line}"
                ));
            }
            Some((_, other)) => operands.same_as(*other, "another warp of its warpgroup")?,
        }
        self.warps[warp].begun += 1;
        let warps = self.warps[group * WARPS..].iter().take(WARPS);
        if warps.map(|warp| warp.begun).min() > Some(sequence.before) {
            sequence.products.pop_front();
            sequence.before += 1;
        }
        Ok(())
    }

    /// Checks that a product's registers are its own, and that what was done with them before is ordered before it.
    fn order(
        &mut self,
        function: &Function,
        (pc, warp): (usize, usize),
        own: &WarpgroupProduct,
    ) -> Result<(), String> {
        let registers = &mut self.warps[warp].registers;
        for (number, Accumulator { name, .. }) in accumulators(function, own) {
            let register = &mut registers[number];
            let is_of_same = |pc| product(function, pc).is_some_and(|of| of.sums == own.sums);
            if register.pending > 0 && register.pc != pc && !is_of_same(register.pc) {
                let line = function.line_of(register.pc);
                return Err(format!(
                    "adds to `{name}`, to which the product of line {line} with other registers is \
                     still to add"
                ));
            }
            if !matches!(register.last, Last::Fence) && register.last != Last::Product(own.columns)
            {
                return Err(format!(
                    "adds to `{name}` without a `wgmma.fence` behind its last access"
                ));
            }
            register.last = Last::Product(own.columns);
            register.pending += 1;
            register.pc = pc;
        }
        Ok(())
    }

    /// A warp's accesses to registers so far are ordered before its products from now on.
    pub fn fence(&mut self, warp: usize) {
        for register in &mut self.warps[warp].registers {
            register.last = Last::Fence;
        }
    }

    /// A warp's products of no group are one.
    pub fn commit(&mut self, warp: usize) {
        self.warps[warp].products.commit();
    }

    /// Completes a warp's products until at most this many groups are pending; `registers` counts those of each thread.
    pub fn wait(
        &mut self,
        function: &Function,
        (warp, pending): (usize, u32),
        (cores, shared): (TensorCores, &[u8]),
        (registers, stride): (&mut [u64], usize),
    ) {
        while let Some(pending) = self.warps[warp].products.next(pending) {
            let Some(product) = product(function, pending.pc) else {
                continue;
            };
            let first = warp % WARPS * ROWS;
            let rows = first..first + ROWS;
            let rows: Vec<Line> = rows.map(|row| pending.left.line(shared, row)).collect();
            let columns = 0..pending.columns;
            let columns: Vec<Line> = columns
                .map(|column| pending.right.line(shared, column))
                .collect();
            let threads = registers.chunks_exact_mut(stride.max(1)).skip(warp * WARP);
            for (lane, own) in threads.take(WARP).enumerate() {
                let sums = accumulators(function, product).enumerate();
                for (number, (_, Accumulator { slot, .. })) in sums {
                    let (row, column) = place(lane, number);
                    let of = &mut own[*slot as usize];
                    let before = match pending.is_added {
                        true => f32::from_bits(*of as u32),
                        false => 0.0,
                    };
                    *of = sum(cores, before, &rows[row], &columns[column])
                        .to_bits()
                        .into();
                }
            }
            for (number, _) in accumulators(function, product) {
                self.warps[warp].registers[number].pending -= 1;
            }
            for piece in pending.pieces(warp) {
                self.proxy.release(piece);
            }
        }
    }

    /// A thread of a warp reads or writes an accumulator.
    pub fn access(
        &mut self,
        function: &Function,
        warp: usize,
        (number, is_written): (u32, bool),
    ) -> Result<(), String> {
        let Some(register) = self.warps[warp].registers.get_mut(number as usize) else {
            return Ok(());
        };
        if register.pending > 0 {
            let verb = if is_written { "writes" } else { "reads" };
            let accumulator = function.accumulators.get(number as usize);
            let name = accumulator.map_or("", |of| &of.name);
            let line = function.line_of(register.pc);
            return Err(format!(
                "{verb} `{name}`, to which the product of line {line} adds that was not waited for"
            ));
        }
        register.last = Last::Access;
        Ok(())
    }

    /// A thread writes shared memory.
    pub fn write(
        &mut self,
        function: &Function,
        thread: usize,
        (address, bytes): (u64, usize),
    ) -> Result<(), String> {
        self.proxy.write(thread, address, bytes).map_err(|read| {
            let warps = self.warps.iter().enumerate();
            let mut pending = warps.flat_map(|(warp, of)| {
                let pending = of.products.pending();
                pending.map(move |product| (warp, *product))
            });
            let reads = |(warp, product): &(usize, Pending)| {
                let mut pieces = product.pieces(*warp);
                pieces.any(|piece| piece == read / PIECE * PIECE)
            };
            let (warp, line) = pending.find(reads).map_or((0, 0), |(warp, product)| {
                (warp, function.line_of(product.pc))
            });
            format!(
                "writes {read:#x} of shared memory, which the product of line {line} reads, for which warp {warp} has \
                 not waited"
            )
        })
    }

    /// What is wrong where a thread of a warp ends.
    pub fn end(&self, function: &Function, warp: usize) -> Result<(), String> {
        let products = &self.warps[warp].products;
        let Some(product) = products.pending().next() else {
            return Ok(());
        };
        let line = function.line_of(product.pc);
        let why = match products.is_committed() {
            true => "waited for",
            false => "committed",
        };
        Err(format!(
            "ends, and the product of line {line} was not {why}"
        ))
    }

    /// All threads are at a barrier, or have ended; otherwise the product that some warps of a warpgroup left out, and
    /// how many did not.
    pub fn meet(&mut self) -> Result<(), (usize, usize)> {
        for group in 0..self.sequences.len() {
            self.are_together(group)?;
        }
        self.proxy.meet();
        Ok(())
    }

    /// The same of the threads of some warpgroups at their barrier.
    pub fn meet_groups(&mut self, groups: &[usize]) -> Result<(), (usize, usize)> {
        for group in groups {
            self.are_together(*group)?;
        }
        self.proxy.meet_groups(groups);
        Ok(())
    }

    /// Whether the warps of a warpgroup have begun as many products.
    fn are_together(&self, group: usize) -> Result<(), (usize, usize)> {
        let Some(sequence) = self.sequences.get(group) else {
            return Ok(());
        };
        let warps = self.warps.iter().skip(group * WARPS).take(WARPS);
        match sequence.products.front() {
            Some((pc, _)) => {
                let begun = warps.filter(|warp| warp.begun > sequence.before);
                Err((*pc, begun.count()))
            }
            None => Ok(()),
        }
    }
}

impl Operands {
    /// What is wrong where others multiply with other operands.
    pub fn same_as(self, other: Operands, whose: &str) -> Result<(), String> {
        let pairs = [
            ("left", self.left, other.left),
            ("right", self.right, other.right),
        ];
        for (which, own, other) in pairs {
            if own != other {
                return Err(format!(
                    "multiplies with {own:#x} as the {which} factor's descriptor, and {whose} with {other:#x}"
                ));
            }
        }
        match self.is_added == other.is_added {
            true => Ok(()),
            false => Err(format!("multiplies with another `scale-d` than {whose}")),
        }
    }
}

impl Unseen {
    fn problem(self) -> String {
        let Unseen {
            address,
            writer,
            is_fenced,
        } = self;
        let lacks = match is_fenced {
            true => "fenced without a barrier of the block behind",
            false => "did not fence behind (`fence.proxy.async`)",
        };
        format!("reads {address:#x} of shared memory, which thread {writer} wrote and {lacks}")
    }
}

#[cfg(test)]
mod tests;
