//! One thread, from where it may go on to where it has to wait.

use crate::Error;
use crate::instruction::{Access, Function, Instruction, MemoryOperand, Space};
use crate::memory::{Copy, Groups, Memory};
use crate::mma::WARP;
use crate::view::View;
use crate::warpgroup::{GROUP, Warpgroups};

/// Barriers that a block has.
const BARRIERS: u64 = 16;

/// Branches backward that a thread takes without waiting for anything, at the most: more is a loop without an end.
const MOST_TURNS: u32 = 1 << 31;

/// Why a thread does not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It can.
    Ready,
    /// For all threads of its block.
    Barrier,
    /// For threads of its block, of this number together, at the barrier of that one.
    NamedBarrier {
        barrier: u64,
        threads: u64,
    },
    /// For all threads of its warp, at the instruction of this number.
    Warp(usize),
    /// For all threads of its cluster's blocks, at the instruction of this number.
    Cluster(usize),
    /// It looked at what other blocks write, and may have to look again.
    Looked(usize),
    Ended,
}

/// What a thread is beside its registers.
#[derive(Debug)]
pub struct Thread {
    pub pc: usize,
    pub stop: Stop,
    pub copies: Groups<Copy>,
    /// At the barrier of its cluster.
    pub arrival: Arrival,
}

/// How far a thread is with the barrier of its cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arrival {
    /// It has not arrived.
    #[default]
    None,
    /// It has, and others have not.
    Arrived,
    /// All have, so that it need not wait.
    Complete,
}

/// What a thread works on.
pub struct Around<'a, 'b> {
    /// Its number in the block.
    pub number: usize,
    pub function: &'a Function,
    pub arguments: &'a [u8],
    pub registers: &'a mut [u64],
    pub shared: &'a mut [u8],
    pub memory: &'a mut Memory<'b>,
    /// What the block sees of it; all that there is without.
    pub view: Option<&'a mut View>,
    /// Where the function has products of warpgroups.
    pub warpgroups: Option<&'a mut Warpgroups>,
    pub poison: u8,
}

impl Around<'_, '_> {
    fn at(&self, base: u32, offset: i64) -> u64 {
        self.registers[base as usize].wrapping_add_signed(offset)
    }

    fn wrong(&self, pc: usize, message: String) -> Error {
        Error::new(self.function.line_of(pc), message)
    }

    fn outside(&self, pc: usize, verb: &str, bytes: usize, space: Space, address: u64) -> Error {
        let of = match space {
            Space::Global => "global memory that is not the program's".to_owned(),
            Space::Shared => format!("the {} bytes of shared memory", self.shared.len()),
            Space::Parameter => "the parameters".to_owned(),
        };
        let place = match space {
            Space::Global => "in",
            Space::Shared | Space::Parameter => "outside",
        };
        self.wrong(
            pc,
            format!("{verb} {bytes} bytes at {address:#x}, {place} {of}"),
        )
    }

    fn aligned(&self, pc: usize, verb: &str, bytes: usize, address: u64) -> Result<(), Error> {
        match address.is_multiple_of(bytes as u64) {
            true => Ok(()),
            false => {
                let message = format!("{verb} {bytes} bytes at {address:#x}, no multiple of them");
                Err(self.wrong(pc, message))
            }
        }
    }

    /// Before shared memory is written.
    #[inline]
    fn overwrite(&mut self, pc: usize, address: u64, bytes: usize) -> Result<(), Error> {
        let Some(warpgroups) = &mut self.warpgroups else {
            return Ok(());
        };
        let written = warpgroups.write(self.function, self.number, (address, bytes));
        written.map_err(|problem| self.wrong(pc, problem))
    }

    /// Before accumulators of warpgroups' products are accessed.
    fn watch(&mut self, pc: usize, accessed: &[(u32, bool)]) -> Result<(), Error> {
        let Some(warpgroups) = &mut self.warpgroups else {
            return Ok(());
        };
        let warp = self.number / WARP;
        let mut accessed = accessed.iter();
        let checked = accessed.try_for_each(|of| warpgroups.access(self.function, warp, *of));
        checked.map_err(|problem| self.wrong(pc, problem))
    }

    #[inline]
    fn load(&mut self, pc: usize, access: &Access) -> Result<(), Error> {
        let address = self.at(access.base, access.offset);
        let all = access.all_bytes();
        self.aligned(pc, "reads", all, address)?;
        let found = match access.space {
            Space::Global => read(self.memory, self.view.as_deref_mut(), address, all),
            Space::Shared => {
                range(self.shared.len(), address, all).map(|range| &self.shared[range])
            }
            Space::Parameter => {
                range(self.arguments.len(), address, all).map(|range| &self.arguments[range])
            }
        };
        let Some(found) = found else {
            return Err(self.outside(pc, "reads", all, access.space, address));
        };
        let mut words = [0_u64; 4];
        let bytes = usize::from(access.bytes);
        for (word, found) in words.iter_mut().zip(found.chunks_exact(bytes)) {
            let mut whole = [0; 8];
            whole[..bytes].copy_from_slice(found);
            *word = u64::from_le_bytes(whole);
        }
        for (register, word) in access.registers.iter().zip(words).take(access.count.into()) {
            self.registers[*register as usize] = word;
        }
        Ok(())
    }

    /// Loads what is in memory, whatever the block has seen of it.
    fn look(&mut self, pc: usize, access: &Access) -> Result<(), Error> {
        let address = self.at(access.base, access.offset);
        if let (Space::Global, Some(view)) = (access.space, &mut self.view) {
            view.meet(self.memory, address, access.all_bytes());
        }
        self.load(pc, access)
    }

    #[inline]
    fn store(&mut self, pc: usize, access: &Access) -> Result<(), Error> {
        let address = self.at(access.base, access.offset);
        let all = access.all_bytes();
        self.aligned(pc, "writes", all, address)?;
        if access.space == Space::Shared {
            self.overwrite(pc, address, all)?;
        }
        let found = match access.space {
            Space::Global => match &mut self.view {
                Some(view) => view.write(self.memory, address, all),
                None => self.memory.write(address, all),
            },
            Space::Shared => {
                range(self.shared.len(), address, all).map(|range| &mut self.shared[range])
            }
            Space::Parameter => None,
        };
        let Some(found) = found else {
            return Err(self.outside(pc, "writes", all, access.space, address));
        };
        let bytes = usize::from(access.bytes);
        for (register, found) in access.registers.iter().zip(found.chunks_exact_mut(bytes)) {
            let word = self.registers[*register as usize].to_le_bytes();
            found.copy_from_slice(&word[..bytes]);
        }
        Ok(())
    }

    /// Adds to a word, and gives what was there.
    fn add(&mut self, pc: usize, place: MemoryOperand, value: u32) -> Result<u32, Error> {
        let address = self.at(place.base, place.offset);
        self.aligned(pc, "adds to", 4, address)?;
        if let Some(view) = &mut self.view {
            view.meet(self.memory, address, 4);
        }
        let Some(word) = self.memory.write(address, 4) else {
            return Err(self.outside(pc, "adds to", 4, Space::Global, address));
        };
        let before = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
        word.copy_from_slice(&before.wrapping_add(value).to_le_bytes());
        Ok(before)
    }

    /// The place of a copy holds poison until the copy is waited for.
    fn begin_copy(&mut self, copy: Copy) -> Result<(), Error> {
        let Copy {
            to,
            from,
            bytes,
            pc,
            ..
        } = copy;
        self.aligned(pc, "copies", bytes, to)?;
        self.aligned(pc, "copies", bytes, from)?;
        let Some(range) = range(self.shared.len(), to, bytes) else {
            return Err(self.outside(pc, "copies to", bytes, Space::Shared, to));
        };
        self.overwrite(pc, to, bytes)?;
        self.shared[range].fill(self.poison);
        Ok(())
    }

    fn end_copy(&mut self, copy: Copy) -> Result<(), Error> {
        let Copy {
            to,
            from,
            bytes,
            copied,
            pc,
        } = copy;
        let mut whole = [0; 16];
        if copied > 0 {
            let view = self.view.as_deref_mut();
            let Some(found) = read(self.memory, view, from, copied) else {
                return Err(self.outside(pc, "copies", copied, Space::Global, from));
            };
            whole[..copied].copy_from_slice(found);
        }
        self.overwrite(pc, to, bytes)?;
        // That it is within shared memory was seen when the copy began.
        if let Some(range) = range(self.shared.len(), to, bytes) {
            self.shared[range].copy_from_slice(&whole[..bytes]);
        }
        Ok(())
    }
}

/// Bytes of global memory as a block sees them.
#[inline]
fn read<'a>(
    memory: &'a mut Memory<'_>,
    view: Option<&'a mut View>,
    address: u64,
    bytes: usize,
) -> Option<&'a [u8]> {
    match view {
        Some(view) => view.read(memory, address, bytes),
        None => memory.read(address, bytes),
    }
}

fn range(length: usize, address: u64, bytes: usize) -> Option<std::ops::Range<usize>> {
    let begin = usize::try_from(address).ok()?;
    let end = begin.checked_add(bytes)?;
    (end <= length).then_some(begin..end)
}

impl Thread {
    pub fn new() -> Thread {
        Thread {
            pc: 0,
            stop: Stop::Ready,
            copies: Groups::default(),
            arrival: Arrival::None,
        }
    }

    /// Runs to where the thread has to wait, or to its end.
    pub fn run(&mut self, around: &mut Around<'_, '_>) -> Result<Stop, Error> {
        let code = &around.function.code[..];
        let mut pc = self.pc;
        let mut turns = 0;
        let mut branch = |pc: &mut usize, target: u32| {
            turns += u32::from(target as usize <= *pc);
            *pc = target as usize;
            turns < MOST_TURNS
        };
        let stop = loop {
            let Some(instruction) = code.get(pc) else {
                return Err(around.wrong(pc, "a function ends without `ret`".to_owned()));
            };
            let registers = &mut *around.registers;
            let mut is_finite = true;
            match instruction {
                Instruction::Unary(f, to, [a]) => {
                    registers[*to as usize] = f(registers[*a as usize]);
                }
                Instruction::Binary(f, to, [a, b]) => {
                    registers[*to as usize] = f(registers[*a as usize], registers[*b as usize]);
                }
                Instruction::Ternary(f, to, [a, b, c]) => {
                    let [a, b, c] = [a, b, c].map(|slot| registers[*slot as usize]);
                    registers[*to as usize] = f(a, b, c);
                }
                Instruction::Load(access) => around.load(pc, access)?,
                Instruction::Store(access) => around.store(pc, access)?,
                Instruction::Look(access) => {
                    around.look(pc, access)?;
                    break Stop::Looked(pc);
                }
                Instruction::Acquire(access) => {
                    if let Some(view) = &mut around.view {
                        view.forget();
                    }
                    around.load(pc, access)?;
                    break Stop::Looked(pc);
                }
                Instruction::AtomicAdd {
                    result,
                    place,
                    value,
                } => {
                    let value = registers[*value as usize] as u32;
                    let before = around.add(pc, *place, value)?;
                    around.registers[*result as usize] = before.into();
                }
                Instruction::Copy {
                    bytes,
                    to,
                    from,
                    copied,
                } => {
                    let copied = registers[*copied as usize] as usize;
                    let copy = Copy {
                        to: around.at(to.base, to.offset),
                        from: around.at(from.base, from.offset),
                        bytes: (*bytes).into(),
                        copied,
                        pc,
                    };
                    if copied > copy.bytes {
                        let message = format!("copies {copied} of {bytes} bytes");
                        return Err(around.wrong(pc, message));
                    }
                    around.begin_copy(copy)?;
                    self.copies.begin(copy);
                }
                Instruction::Commit => self.copies.commit(),
                Instruction::Wait(pending) => {
                    while let Some(copy) = self.copies.next(*pending) {
                        around.end_copy(copy)?;
                    }
                }
                Instruction::Branch(target) => {
                    is_finite = branch(&mut pc, *target);
                    if is_finite {
                        continue;
                    }
                }
                Instruction::BranchIf(predicate, when, target) => {
                    if (registers[*predicate as usize] & 1 == 1) == *when {
                        is_finite = branch(&mut pc, *target);
                        if is_finite {
                            continue;
                        }
                    }
                }
                Instruction::BranchIndexed(index, targets) => {
                    let index = registers[*index as usize];
                    let Some(target) = targets.get(index as usize) else {
                        let message = format!("label {index} of {} is taken", targets.len());
                        return Err(around.wrong(pc, message));
                    };
                    is_finite = branch(&mut pc, *target);
                    if is_finite {
                        continue;
                    }
                }
                Instruction::Fence => {
                    if let Some(view) = &mut around.view {
                        view.publish(around.memory);
                        view.forget();
                    }
                }
                Instruction::Barrier => break Stop::Barrier,
                Instruction::NamedBarrier(barrier, threads) => {
                    let [barrier, threads] =
                        [barrier, threads].map(|slot| registers[*slot as usize]);
                    let is_of_groups = threads > 0 && threads.is_multiple_of(GROUP as u64);
                    if !(1..BARRIERS).contains(&barrier) || !is_of_groups {
                        let message = format!(
                            "waits at barrier {barrier} for {threads} threads: those from 1 to {} are interpreted, \
                             for multiples of {GROUP}",
                            BARRIERS - 1
                        );
                        return Err(around.wrong(pc, message));
                    }
                    break Stop::NamedBarrier { barrier, threads };
                }
                Instruction::ClusterArrive => {
                    let before = std::mem::replace(&mut self.arrival, Arrival::Arrived);
                    if before != Arrival::None {
                        let message = "arrives at its cluster's barrier twice".to_owned();
                        return Err(around.wrong(pc, message));
                    }
                    if let Some(view) = &mut around.view {
                        view.publish(around.memory);
                    }
                }
                Instruction::ClusterWait => match self.arrival {
                    Arrival::None => {
                        let message =
                            "waits at its cluster's barrier, at which it did not arrive".to_owned();
                        return Err(around.wrong(pc, message));
                    }
                    Arrival::Arrived => break Stop::Cluster(pc),
                    Arrival::Complete => self.arrival = Arrival::None,
                },
                Instruction::ProxyFence => {
                    if let Some(warpgroups) = &mut around.warpgroups {
                        warpgroups.proxy.fence(around.number);
                    }
                }
                Instruction::Watch(accessed) => around.watch(pc, accessed)?,
                Instruction::Shuffle { .. }
                | Instruction::Multiply(_)
                | Instruction::WarpgroupMultiply(_)
                | Instruction::WarpgroupFence
                | Instruction::WarpgroupCommit
                | Instruction::WarpgroupWait(_) => break Stop::Warp(pc),
                Instruction::Return => {
                    if let Some(warpgroups) = &around.warpgroups {
                        let ended = warpgroups.end(around.function, around.number / WARP);
                        ended.map_err(|problem| around.wrong(pc, problem))?;
                    }
                    break Stop::Ended;
                }
            }
            if !is_finite {
                return Err(around.wrong(pc, "a loop does not end".to_owned()));
            }
            pc += 1;
        };
        self.pc = pc + 1;
        self.stop = stop;
        Ok(stop)
    }
}
