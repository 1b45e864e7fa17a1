//! The blocks of a launch, and who waits for whom.
//!
//! A *round* runs every thread of a block from one barrier to the next, warp by warp, in an order that is turned from
//! round to round and from block to block. Blocks of a launch run one after another to their ends; those that are
//! together run until all of their threads wait for other blocks.

use std::collections::BTreeMap;

use crate::instruction::{Function, Instruction, Product, SPECIAL, Slot};
use crate::memory::Memory;
use crate::mma::{Lane, WARP, multiply};
use crate::thread::{Around, Arrival, Stop, Thread};
use crate::view::View;
use crate::warpgroup::{GROUP, Operands, Warpgroups};
use crate::wgmma::WARPS;
use crate::{Error, Launch};

/// A block whose threads have begun.
struct Block {
    at: (u32, u32),
    threads: Vec<Thread>,
    /// Of all threads, one after another.
    registers: Vec<u64>,
    shared: Vec<u8>,
    /// Where others run at the same time.
    view: Option<View>,
    /// Where the function has products of them.
    warpgroups: Option<Warpgroups>,
    is_turned: bool,
    rounds: u64,
}

/// What does not change from block to block.
struct Run<'a> {
    function: &'a Function,
    arguments: Vec<u8>,
    launch: &'a Launch,
    /// Registers of a thread, the constants among them.
    stride: usize,
}

/// Runs all blocks.
pub fn run(
    function: &Function,
    arguments: &[u64],
    launch: &Launch,
    memory: &mut Memory<'_>,
) -> Result<(), Error> {
    let run = Run {
        function,
        arguments: pack(function, arguments)?,
        launch,
        stride: function.registers as usize + function.constants.len(),
    };
    let (columns, rows) = launch.grid;
    let places = (0..rows).flat_map(|y| (0..columns).map(move |x| (x, y)));
    if launch.is_together {
        let mut blocks: Vec<Block> = places.map(|at| run.begin(at, None)).collect();
        return run.together(&mut blocks, memory);
    }
    let mut last = None;
    for at in places {
        let mut block = [run.begin(at, last)];
        run.together(&mut block, memory)?;
        last = Some(
            block
                .into_iter()
                .next()
                .map_or_else(Vec::new, |block| block.registers),
        );
    }
    Ok(())
}

/// The bytes of the parameters.
fn pack(function: &Function, arguments: &[u64]) -> Result<Vec<u8>, Error> {
    if arguments.len() != function.parameters.len() {
        let (given, all) = (arguments.len(), function.parameters.len());
        let message = format!("{given} arguments are given, and there are {all} parameters");
        return Err(Error::new(function.line, message));
    }
    let mut bytes = Vec::new();
    for (argument, (begin, length)) in arguments.iter().zip(&function.parameters) {
        let length = *length as usize;
        if length > 8 {
            return Err(Error::new(
                function.line,
                "a parameter has more than 8 bytes",
            ));
        }
        bytes.resize(*begin as usize + length, 0);
        bytes[*begin as usize..].copy_from_slice(&argument.to_le_bytes()[..length]);
    }
    Ok(bytes)
}

impl Run<'_> {
    /// A block at its beginning; the memory of the registers of one before it can be used again.
    fn begin(&self, at: (u32, u32), registers: Option<Vec<u64>>) -> Block {
        let Launch {
            grid,
            threads,
            dynamic_shared_bytes,
            poison,
            ..
        } = *self.launch;
        let shared = match dynamic_shared_bytes as usize {
            0 => self.function.shared_bytes as usize,
            given => self.function.dynamic_begin as usize + given,
        };
        let threads = threads as usize;
        let mut registers = registers.unwrap_or_default();
        registers.resize(self.stride * threads, 0);
        let poisoned = u64::from_le_bytes([poison; 8]);
        let special = |thread| [thread, threads as u32, at.0, at.1, grid.0, grid.1].map(u64::from);
        for (thread, own) in registers.chunks_exact_mut(self.stride.max(1)).enumerate() {
            let (written, constants) = own.split_at_mut(self.function.registers as usize);
            written[..SPECIAL.len()].copy_from_slice(&special(thread as u32));
            written[SPECIAL.len()..].fill(poisoned);
            constants.copy_from_slice(&self.function.constants);
        }
        Block {
            at,
            threads: (0..threads).map(|_| Thread::new()).collect(),
            registers,
            warpgroups: Warpgroups::new(self.function, threads, shared),
            shared: vec![poison; shared],
            view: self.launch.is_together.then(View::default),
            is_turned: at.0.wrapping_add(at.1) % 2 == 1,
            rounds: 0,
        }
    }

    /// Runs blocks until all have ended.
    fn together(&self, blocks: &mut [Block], memory: &mut Memory<'_>) -> Result<(), Error> {
        let mut is_turned = false;
        loop {
            let before = memory.writes;
            let (mut is_over, mut has_moved) = (true, false);
            for number in (self.launch.order)(blocks.len(), is_turned) {
                let block = &mut blocks[number];
                if block.has_ended() {
                    continue;
                }
                let rounds = block.rounds;
                self.run_rounds(block, memory)?;
                if let (true, Some(view)) = (block.has_ended(), &mut block.view) {
                    view.publish(memory);
                }
                is_over &= block.has_ended();
                has_moved |= block.has_ended() || block.rounds > rounds;
            }
            if is_over {
                return Ok(());
            }
            let of_cluster = self.launch.blocks_of_cluster.max(1) as usize;
            for cluster in blocks.chunks_mut(of_cluster) {
                has_moved |= self.meet(cluster)?;
            }
            if !has_moved && memory.writes == before {
                return Err(self.endless(blocks));
            }
            is_turned = !is_turned;
        }
    }

    /// Lets a cluster's threads go on that wait for each other, once all of them have arrived; whether they do.
    fn meet(&self, blocks: &mut [Block]) -> Result<bool, Error> {
        let all = || blocks.iter().flat_map(|block| &block.threads);
        let waits = |thread: &&Thread| match thread.stop {
            Stop::Cluster(pc) => Some(pc),
            _ => None,
        };
        let Some(pc) = all().find_map(|thread| waits(&thread)) else {
            return Ok(false);
        };
        let ended = all().filter(|thread| thread.stop == Stop::Ended).count();
        if ended > 0 {
            let count = all().count();
            let message =
                format!("waits for its cluster, of whose {count} threads {ended} have ended");
            return Err(Error::new(self.function.line_of(pc), message));
        }
        if !all().all(|thread| thread.arrival == Arrival::Arrived) {
            return Ok(false);
        }
        for block in blocks {
            if let Some(view) = &mut block.view {
                view.forget();
            }
            for thread in &mut block.threads {
                thread.arrival = Arrival::Complete;
                if let Stop::Cluster(_) = thread.stop {
                    thread.stop = Stop::Ready;
                    thread.arrival = Arrival::None;
                }
            }
        }
        Ok(true)
    }

    /// Of blocks that look again and again at what nobody will change.
    fn endless(&self, blocks: &[Block]) -> Error {
        let looking = blocks.iter().find_map(|block| {
            let looks = |thread: &Thread| match thread.stop {
                Stop::Looked(pc) | Stop::Cluster(pc) => Some(pc),
                _ => None,
            };
            let mut threads = block.threads.iter().enumerate();
            threads.find_map(|(number, thread)| Some((block.at, number, looks(thread)?)))
        });
        let message = "waits for what no other block will write";
        match looking {
            Some((at, thread, pc)) => Error::new(self.function.line_of(pc), message).of(at, thread),
            None => Error::new(self.function.line, message),
        }
    }

    /// Runs the threads of a block until all have ended, or some wait for other blocks and the rest for them.
    fn run_rounds(&self, block: &mut Block, memory: &mut Memory<'_>) -> Result<(), Error> {
        loop {
            let (order, turned) = (self.launch.order, block.is_turned);
            for warp in order(block.threads.len().div_ceil(WARP), turned) {
                let first = warp * WARP;
                let lanes = WARP.min(block.threads.len() - first);
                let lanes: Vec<usize> = order(lanes, turned)
                    .iter()
                    .map(|lane| first + lane)
                    .collect();
                self.run_warp(block, &lanes, memory)?;
            }
            if self.meet_at_named(block)? {
                block.is_turned = !block.is_turned;
                block.rounds += 1;
                continue;
            }
            let count = |stop: Stop| {
                block
                    .threads
                    .iter()
                    .filter(|thread| thread.stop == stop)
                    .count()
            };
            let (waiting, ended) = (count(Stop::Barrier), count(Stop::Ended));
            let all = block.threads.len();
            if waiting > 0 && ended > 0 {
                let pc = block
                    .threads
                    .iter()
                    .find(|thread| thread.stop == Stop::Barrier);
                let line = pc.map_or(0, |thread| self.function.line_of(thread.pc - 1));
                return Err(Error::new(
                    line,
                    format!(
                        "in block {:?}, {waiting} of {all} threads wait at a barrier after {} others, \
                         and {ended} have ended",
                        block.at, block.rounds
                    ),
                ));
            }
            if waiting.max(ended) == all {
                self.meet_warpgroups(block)?;
            }
            if waiting < all {
                return Ok(());
            }
            for thread in &mut block.threads {
                thread.stop = Stop::Ready;
            }
            block.is_turned = !block.is_turned;
            block.rounds += 1;
        }
    }

    /// All threads of a block are at a barrier, or have ended.
    fn meet_warpgroups(&self, block: &mut Block) -> Result<(), Error> {
        let Some(warpgroups) = &mut block.warpgroups else {
            return Ok(());
        };
        let met = warpgroups.meet();
        met.map_err(|found| self.apart(block.at, found))
    }

    /// What is wrong where some warps of a warpgroup multiply.
    fn apart(&self, at: (u32, u32), (pc, warps): (usize, usize)) -> Error {
        let message = format!(
            "in block {at:?}, {warps} of the {WARPS} warps of a warpgroup multiply, the rest do not"
        );
        Error::new(self.function.line_of(pc), message)
    }

    /// Lets warpgroups go on that are at a named barrier with all that it is for; whether there are some.
    fn meet_at_named(&self, block: &mut Block) -> Result<bool, Error> {
        let at = block.at;
        let mut meeting: BTreeMap<(u64, u64), Vec<usize>> = BTreeMap::new();
        let mut line = 0;
        for (number, group) in block.threads.chunks(GROUP).enumerate() {
            let named = |thread: &Thread| match thread.stop {
                Stop::NamedBarrier { barrier, threads } => Some((barrier, threads)),
                _ => None,
            };
            let Some((thread, first)) = group.iter().find_map(|of| Some((of, named(of)?))) else {
                continue;
            };
            line = self.function.line_of(thread.pc - 1);
            let waiting = group.iter().filter(|thread| named(thread) == Some(first));
            let count = waiting.count();
            if count < GROUP {
                let barrier = first.0;
                let message = format!(
                    "in block {at:?}, {count} of the {GROUP} threads of a warpgroup wait at barrier {barrier}, the rest do not"
                );
                return Err(Error::new(line, message));
            }
            meeting.entry(first).or_default().push(number);
        }
        let mut has_moved = false;
        for ((barrier, threads), groups) in &meeting {
            let count = (groups.len() * GROUP) as u64;
            let others = meeting.keys().filter(|(other, _)| other == barrier).count();
            if count > *threads || others > 1 {
                let message = format!(
                    "in block {at:?}, {count} threads wait at barrier {barrier} for {threads}, and others there for others"
                );
                return Err(Error::new(line, message));
            }
            if count < *threads {
                continue;
            }
            if let Some(warpgroups) = &mut block.warpgroups {
                let met = warpgroups.meet_groups(groups);
                met.map_err(|found| self.apart(at, found))?;
            }
            for group in groups {
                let threads = block.threads.iter_mut().skip(group * GROUP).take(GROUP);
                threads.for_each(|thread| thread.stop = Stop::Ready);
            }
            has_moved = true;
        }
        match meeting.iter().next() {
            Some(((barrier, threads), groups)) if !has_moved => {
                let count = groups.len() * GROUP;
                let message = format!(
                    "in block {at:?}, {count} threads wait at barrier {barrier} for {threads}, and the rest elsewhere"
                );
                Err(Error::new(line, message))
            }
            _ => Ok(has_moved),
        }
    }

    /// Runs the threads of a warp, given in their order, to where each has to wait for others than its warp.
    fn run_warp(
        &self,
        block: &mut Block,
        lanes: &[usize],
        memory: &mut Memory<'_>,
    ) -> Result<(), Error> {
        loop {
            let mut instruction = None;
            let mut count = 0;
            for &number in lanes {
                let thread = &mut block.threads[number];
                if !matches!(thread.stop, Stop::Ready | Stop::Looked(_)) {
                    continue;
                }
                let own = number * self.stride..(number + 1) * self.stride;
                let mut around = Around {
                    number,
                    function: self.function,
                    arguments: &self.arguments,
                    registers: &mut block.registers[own],
                    shared: &mut block.shared,
                    memory,
                    view: block.view.as_mut(),
                    warpgroups: block.warpgroups.as_mut(),
                    poison: self.launch.poison,
                };
                let stop = thread.run(&mut around);
                if let Stop::Warp(pc) = stop.map_err(|error| error.of(block.at, number))? {
                    count += 1;
                    if *instruction.get_or_insert(pc) != pc {
                        let verb = self.verb(pc);
                        let message = format!("the threads of a warp {verb} at different places");
                        let line = self.function.line_of(pc);
                        return Err(Error::new(line, message).of(block.at, number));
                    }
                }
            }
            let Some(pc) = instruction else {
                return Ok(());
            };
            let at = block.at;
            let wrong = |message, thread| {
                let line = self.function.line_of(pc);
                Error::new(line, message).of(at, thread)
            };
            if count < WARP {
                let verb = self.verb(pc);
                let message =
                    format!("{count} of the {WARP} threads of a warp {verb}, the rest do not");
                return Err(wrong(message, lanes[0]));
            }
            let first = lanes.iter().min().copied().unwrap_or(0);
            match self.function.code.get(pc) {
                Some(Instruction::Multiply(product)) => self.multiply(block, product, first),
                Some(&Instruction::Shuffle {
                    result,
                    value,
                    lanes,
                }) => {
                    self.shuffle(block, (result, value), lanes.into(), first);
                }
                _ => {
                    let done = self.with_warpgroup(block, pc, first);
                    done.map_err(|(message, thread)| wrong(message, thread))?;
                }
            }
            for &number in lanes {
                block.threads[number].stop = Stop::Ready;
            }
        }
    }

    /// What the threads of a warp do together at an instruction.
    fn verb(&self, pc: usize) -> &'static str {
        match self.function.code.get(pc) {
            Some(Instruction::Shuffle { .. }) => "execute `shfl.sync`",
            Some(Instruction::WarpgroupFence) => "execute `wgmma.fence`",
            Some(Instruction::WarpgroupCommit) => "execute `wgmma.commit_group`",
            Some(Instruction::WarpgroupWait(_)) => "execute `wgmma.wait_group`",
            _ => "multiply",
        }
    }

    /// What a warp, whose first thread has that number, does as a part of its warpgroup; otherwise what is wrong, and
    /// with which thread.
    fn with_warpgroup(
        &self,
        block: &mut Block,
        pc: usize,
        first: usize,
    ) -> Result<(), (String, usize)> {
        let (Some(warpgroups), function) = (&mut block.warpgroups, self.function) else {
            return Ok(());
        };
        let warp = first / WARP;
        match function.code.get(pc) {
            Some(Instruction::WarpgroupMultiply(product)) => {
                let operands = |thread: usize| {
                    let own = &block.registers[thread * self.stride..];
                    Operands {
                        left: own[product.left as usize],
                        right: own[product.right as usize],
                        is_added: own[product.is_added as usize] & 1 == 1,
                    }
                };
                let all = operands(first);
                for thread in first + 1..first + WARP {
                    let same = operands(thread).same_as(all, "another thread of its warp");
                    same.map_err(|message| (message, thread))?;
                }
                let begun = warpgroups.begin(function, (pc, warp), all);
                begun.map_err(|message| (message, first))?;
            }
            Some(Instruction::WarpgroupFence) => warpgroups.fence(warp),
            Some(Instruction::WarpgroupCommit) => warpgroups.commit(warp),
            Some(Instruction::WarpgroupWait(pending)) => warpgroups.wait(
                function,
                (warp, *pending),
                (self.launch.tensor_cores, &block.shared),
                (&mut block.registers, self.stride),
            ),
            _ => {}
        }
        Ok(())
    }

    /// Gives each lane the value of the one whose number differs in some bits.
    fn shuffle(
        &self,
        block: &mut Block,
        (result, value): (Slot, Slot),
        lanes: usize,
        first: usize,
    ) {
        let at = |lane: usize, slot: Slot| (first + lane) * self.stride + slot as usize;
        let values: [u64; WARP] = std::array::from_fn(|lane| block.registers[at(lane, value)]);
        for lane in 0..WARP {
            block.registers[at(lane, result)] = values[lane ^ lanes];
        }
    }

    fn multiply(&self, block: &mut Block, product: &Product, first: usize) {
        let mut all = [Lane::default(); WARP];
        for (number, lane) in all.iter_mut().enumerate() {
            let own = &block.registers[(first + number) * self.stride..];
            let word = |slot: u32| own[slot as usize] as u32;
            *lane = Lane {
                left: product.left.map(word),
                right: product.right.map(word),
                sums: product.sums.map(word),
            };
        }
        multiply(product.shape, self.launch.tensor_cores, &mut all);
        for (number, lane) in all.iter().enumerate() {
            let own = &mut block.registers[(first + number) * self.stride..];
            for (slot, sum) in product.results.iter().zip(lane.sums) {
                own[*slot as usize] = sum.into();
            }
        }
    }
}

impl Block {
    fn has_ended(&self) -> bool {
        self.threads.iter().all(|thread| thread.stop == Stop::Ended)
    }
}
