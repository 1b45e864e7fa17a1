//! Statements as instructions: registers, variables and labels get their numbers.

use std::collections::HashMap;

use crate::Error;
use crate::arithmetic;
use crate::instruction::{
    Access, Accumulator, Compute, Function, Instruction, MemoryOperand, Product, SPECIAL, Shape,
    Slot, Space, WarpgroupProduct,
};
use crate::parser::{Entry, Kind, Operand, Statement, Variable};
use crate::watch::watch;

/// Registers that a function may have; more are a mistake, or meant to use up memory.
const MOST_REGISTERS: u32 = 1 << 16;

/// In which order a load is with what other blocks write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Weak,
    Relaxed,
    Acquire,
}

/// Registers of one prefix, or one register of that very name.
struct Class {
    first: Slot,
    count: u32,
    bits: u32,
}

#[derive(Default)]
struct Names<'a> {
    /// By the scope that declares them.
    classes: HashMap<(u32, &'a str), Class>,
    single: HashMap<(u32, &'a str), Class>,
    /// Scopes that are open, the outermost first, and how many there were.
    scopes: Vec<u32>,
    scopes_before: u32,
    registers: Slot,
    /// Offsets in shared memory, and of parameters.
    shared: HashMap<&'a str, u32>,
    shared_bytes: u32,
    parameters: HashMap<&'a str, u32>,
    /// Instructions, and labels of an indexed branch.
    labels: HashMap<&'a str, u32>,
    targets: HashMap<&'a str, &'a [&'a str]>,
    constants: HashMap<u64, Slot>,
    accumulators: Vec<Accumulator>,
    accumulator_of: HashMap<Slot, u32>,
}

/// The instructions of a function, in whose module these variables are what a launch gives of shared memory.
pub fn decode<'a>(entry: &'a Entry<'a>, dynamic: &'a [Variable<'a>]) -> Result<Function, Error> {
    let mut names = Names {
        registers: SPECIAL.len() as Slot,
        scopes: vec![0],
        ..Names::default()
    };
    let mut parameters = Vec::new();
    let mut end = 0_u32;
    for parameter in &entry.parameters {
        let begin = place(&mut end, parameter, entry.line)?;
        names.parameters.insert(parameter.name, begin);
        parameters.push((begin, parameter.bytes));
    }
    let mut at = 0;
    for statement in &entry.body {
        names.declare(statement, &mut at)?;
    }
    // It begins behind what the function declares.
    let mut dynamic_begin = names.shared_bytes;
    for variable in dynamic {
        place(&mut dynamic_begin, variable, entry.line)?;
    }
    for variable in dynamic {
        names.shared.insert(variable.name, dynamic_begin);
    }
    names.scopes_before = 0;
    let (mut code, mut lines) = (Vec::new(), Vec::new());
    for statement in &entry.body {
        let before = code.len();
        names
            .instruction(statement, &mut code)
            .map_err(|message| Error::new(statement.line, message))?;
        lines.resize(lines.len() + code.len() - before, statement.line);
    }
    let mut constants = vec![0; names.constants.len()];
    for (bits, slot) in names.constants {
        constants[(slot - names.registers) as usize] = bits;
    }
    let mut function = Function {
        line: entry.line,
        parameters,
        shared_bytes: names.shared_bytes,
        dynamic_begin,
        registers: names.registers,
        constants,
        code,
        accumulators: names.accumulators,
        lines,
    };
    watch(&mut function);
    Ok(function)
}

/// Where a variable begins behind others.
fn place(end: &mut u32, variable: &Variable<'_>, line: u32) -> Result<u32, Error> {
    let begin = end.checked_next_multiple_of(variable.alignment);
    let after = begin.and_then(|begin| begin.checked_add(variable.bytes));
    match (begin, after) {
        (Some(begin), Some(after)) => {
            *end = after;
            Ok(begin)
        }
        _ => Err(Error::new(line, "variables of more than 4 GiB")),
    }
}

type Decoded<T> = Result<T, String>;

impl<'a> Names<'a> {
    /// Registers, variables and labels of a statement; `at` counts instructions.
    fn declare(&mut self, statement: &'a Statement<'a>, at: &mut u32) -> Result<(), Error> {
        let line = statement.line;
        match &statement.kind {
            Kind::Registers { of, prefix, count } => {
                let bits = of.strip_prefix('.').and_then(arithmetic::width);
                let bits =
                    bits.ok_or_else(|| Error::new(line, format!("no registers are `{of}`")))?;
                let first = self.registers;
                let classes = match count {
                    Some(_) => &mut self.classes,
                    None => &mut self.single,
                };
                let count = count.unwrap_or(1);
                self.registers = self.registers.saturating_add(count);
                if self.registers > MOST_REGISTERS {
                    let message = format!("a function has more than {MOST_REGISTERS} registers");
                    return Err(Error::new(line, message));
                }
                let scope = self.scopes.last().copied().unwrap_or(0);
                let class = Class { first, count, bits };
                classes.insert((scope, prefix), class);
            }
            Kind::Open | Kind::Close => self.scope(&statement.kind),
            Kind::Shared(variable) => {
                let begin = place(&mut self.shared_bytes, variable, line)?;
                self.shared.insert(variable.name, begin);
            }
            Kind::Label(name) => {
                self.labels.insert(name, *at);
            }
            Kind::Targets(name, labels) => {
                self.targets.insert(name, labels);
            }
            // What is guarded has a branch around it, unless it is one.
            Kind::Instruction { guard, opcode, .. } => {
                let is_branch = opcode.starts_with("bra");
                *at += 1 + u32::from(guard.is_some() && !is_branch);
            }
        }
        Ok(())
    }

    /// Opens or closes a scope. Both passes count them alike.
    fn scope(&mut self, kind: &Kind<'a>) {
        match kind {
            Kind::Open => {
                self.scopes_before += 1;
                self.scopes.push(self.scopes_before);
            }
            Kind::Close => {
                self.scopes.pop();
            }
            _ => {}
        }
    }

    fn instruction(
        &mut self,
        statement: &Statement<'a>,
        code: &mut Vec<Instruction>,
    ) -> Decoded<()> {
        self.scope(&statement.kind);
        let Kind::Instruction {
            guard,
            opcode,
            operands,
        } = &statement.kind
        else {
            return Ok(());
        };
        let guard = match guard {
            Some((name, is_negated)) => Some((self.register(name, 1)?, *is_negated)),
            None => None,
        };
        if matches!(*opcode, "bra" | "bra.uni") {
            let [Operand::Name(label)] = &operands[..] else {
                return Err(format!("`{opcode}` takes a label"));
            };
            let target = self.label(label)?;
            code.push(match guard {
                None => Instruction::Branch(target),
                Some((predicate, is_negated)) => {
                    Instruction::BranchIf(predicate, !is_negated, target)
                }
            });
            return Ok(());
        }
        if let Some((predicate, is_negated)) = guard {
            let behind = code.len() as u32 + 2;
            code.push(Instruction::BranchIf(predicate, is_negated, behind));
        }
        code.push(self.plain(opcode, operands)?);
        Ok(())
    }

    fn plain(&mut self, opcode: &str, operands: &[Operand<'a>]) -> Decoded<Instruction> {
        let unknown = || format!("`{opcode}` with these operands is not interpreted");
        let name = opcode.split('.').next().unwrap_or_default();
        Ok(match (name, opcode, operands) {
            (_, "ret" | "exit", []) => Instruction::Return,
            (_, "bar.sync" | "barrier.sync" | "barrier.sync.aligned", [Operand::Number(0)]) => {
                Instruction::Barrier
            }
            (_, "bar.sync" | "barrier.sync" | "barrier.sync.aligned", [barrier, threads]) => {
                Instruction::NamedBarrier(self.value(barrier, 32)?, self.value(threads, 32)?)
            }
            (
                _,
                "barrier.cluster.arrive"
                | "barrier.cluster.arrive.aligned"
                | "barrier.cluster.arrive.release"
                | "barrier.cluster.arrive.release.aligned",
                [],
            ) => Instruction::ClusterArrive,
            (
                _,
                "barrier.cluster.wait"
                | "barrier.cluster.wait.aligned"
                | "barrier.cluster.wait.acquire"
                | "barrier.cluster.wait.acquire.aligned",
                [],
            ) => Instruction::ClusterWait,
            (_, "fence.acq_rel.gpu" | "fence.sc.gpu" | "membar.gl", []) => Instruction::Fence,
            (_, "fence.proxy.async" | "fence.proxy.async.shared::cta", []) => {
                Instruction::ProxyFence
            }
            (_, "wgmma.fence.sync.aligned", []) => Instruction::WarpgroupFence,
            (_, "wgmma.commit_group.sync.aligned", []) => Instruction::WarpgroupCommit,
            (_, "wgmma.wait_group.sync.aligned", [Operand::Number(pending)]) => {
                Instruction::WarpgroupWait(u32::try_from(*pending).map_err(|_| unknown())?)
            }
            ("wgmma", ..) => self.warpgroup_product(opcode, operands)?,
            (_, "brx.idx", [index, Operand::Name(targets)]) => {
                let labels = self.targets.get(targets).copied();
                let labels = labels.ok_or_else(|| format!("there are no targets `{targets}`"))?;
                let targets: Decoded<Vec<u32>> = labels.iter().map(|l| self.label(l)).collect();
                Instruction::BranchIndexed(self.value(index, 32)?, targets?.into())
            }
            (_, "cp.async.commit_group", []) => Instruction::Commit,
            (_, "cp.async.wait_all", []) => Instruction::Wait(0),
            (_, "cp.async.wait_group", [Operand::Number(pending)]) => {
                Instruction::Wait(u32::try_from(*pending).map_err(|_| unknown())?)
            }
            ("cp", ..) => self.copy(opcode, operands).ok_or_else(unknown)??,
            (_, "atom.global.add.u32" | "atom.relaxed.gpu.global.add.u32", [result, at, value]) => {
                Instruction::AtomicAdd {
                    result: self.result(result, 32)?,
                    place: self.place(at, Space::Global).ok_or_else(unknown)??,
                    value: self.value(value, 32)?,
                }
            }
            // Of all 32 lanes, none of which is kept from another.
            (_, "shfl.sync.bfly.b32", [result, value, lanes, Operand::Number(31), all]) => {
                let (Operand::Number(lanes @ 0..32), Operand::Number(all)) = (lanes, all) else {
                    return Err(unknown());
                };
                if *all as u32 != u32::MAX {
                    return Err(unknown());
                }
                Instruction::Shuffle {
                    result: self.result(result, 32)?,
                    value: self.value(value, 32)?,
                    lanes: *lanes as u8,
                }
            }
            ("mma", _, [results, left, right, sums]) => {
                let shape = match opcode {
                    "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32" => Shape::Tf32,
                    "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32" => Shape::Bf16,
                    _ => return Err(unknown()),
                };
                Instruction::Multiply(Box::new(Product {
                    shape,
                    results: self.vector(results, |names, of| names.result(of, 32))?,
                    left: self.vector(left, |names, of| names.value(of, 32))?,
                    right: self.vector(right, |names, of| names.value(of, 32))?,
                    sums: self.vector(sums, |names, of| names.value(of, 32))?,
                }))
            }
            ("ld", _, [to, from]) => {
                let (access, order) = self.access(opcode, to, from, true)?;
                match order {
                    Order::Weak => Instruction::Load(access),
                    Order::Relaxed => Instruction::Look(access),
                    Order::Acquire => Instruction::Acquire(access),
                }
            }
            ("st", _, [to, from]) => Instruction::Store(self.access(opcode, from, to, false)?.0),
            _ => self.arithmetic(opcode, operands)?,
        })
    }

    /// `wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {sums}, left, right, is_added, 1, 1, 0, 0`, where the last
    /// four are `imm-scale-a`, `imm-scale-b`, `imm-trans-a` and `imm-trans-b`.
    fn warpgroup_product(
        &mut self,
        opcode: &str,
        operands: &[Operand<'a>],
    ) -> Decoded<Instruction> {
        let unknown = || format!("`{opcode}` with these operands is not interpreted");
        let shape = opcode.strip_prefix("wgmma.mma_async.sync.aligned.m64n");
        let columns = shape.and_then(|shape| shape.strip_suffix("k16.f32.bf16.bf16"));
        let columns = columns.and_then(|columns| columns.parse::<usize>().ok());
        let columns = columns.filter(|columns| (8..=256).contains(columns) && columns % 8 == 0);
        let columns = columns.ok_or_else(|| format!("`{opcode}` is not interpreted"))?;
        let [sums, left, right, is_added, immediate @ ..] = operands else {
            return Err(unknown());
        };
        let [scale_a, scale_b, transposes_a, transposes_b] = immediate else {
            return Err(unknown());
        };
        let one = Operand::Number(1);
        if *scale_a != one || *scale_b != one {
            return Err("`imm-scale-a` and `imm-scale-b` other than 1 are not interpreted".into());
        }
        let zero = Operand::Number(0);
        if *transposes_a != zero || *transposes_b != zero {
            let message = "`imm-trans-a` and `imm-trans-b` other than 0, which is K-major, are not interpreted";
            return Err(message.into());
        }
        if let Operand::Vector(_) = left {
            return Err("a left factor in registers is not interpreted".into());
        }
        let sums = match sums {
            Operand::Vector(all) if all.len() == columns / 2 => all,
            _ => return Err(format!("{} registers are expected", columns / 2)),
        };
        let mut numbers = Vec::new();
        for sum in sums {
            let (slot, name) = match sum {
                Operand::Name(name) => (self.result(sum, 32)?, *name),
                _ => return Err("a sum is in a register".into()),
            };
            let next = self.accumulators.len() as u32;
            let number = *self.accumulator_of.entry(slot).or_insert(next);
            if number == next {
                let name = name.to_owned();
                self.accumulators.push(Accumulator { slot, name });
            }
            if numbers.contains(&number) {
                return Err(format!("`{name}` has two sums"));
            }
            numbers.push(number);
        }
        Ok(Instruction::WarpgroupMultiply(Box::new(WarpgroupProduct {
            columns,
            sums: numbers.into(),
            left: self.value(left, 64)?,
            right: self.value(right, 64)?,
            is_added: self.value(is_added, 1)?,
        })))
    }

    fn arithmetic(&mut self, opcode: &str, operands: &[Operand<'a>]) -> Decoded<Instruction> {
        let Some(found) = arithmetic::find(opcode) else {
            return Err(format!("`{opcode}` is not interpreted"));
        };
        let (count, [first, second, third]) = match found.compute {
            Compute::Unary(_) => (1, found.from),
            Compute::Binary(_) => (2, found.from),
            Compute::Ternary(_) => (3, found.from),
        };
        let [result, operands @ ..] = operands else {
            return Err(format!("`{opcode}` takes {count} operands"));
        };
        let to = self.result(result, found.to)?;
        Ok(match (found.compute, operands) {
            (Compute::Unary(f), [a]) => Instruction::Unary(f, to, [self.value(a, first)?]),
            (Compute::Binary(f), [a, b]) => {
                Instruction::Binary(f, to, [self.value(a, first)?, self.value(b, second)?])
            }
            (Compute::Ternary(f), [a, b, c]) => {
                let all = [
                    self.value(a, first)?,
                    self.value(b, second)?,
                    self.value(c, third)?,
                ];
                Instruction::Ternary(f, to, all)
            }
            _ => return Err(format!("`{opcode}` takes {count} operands")),
        })
    }

    /// `cp.async.ca.shared.global [to], [from], bytes, copied`, the last of which may be left out.
    fn copy(&mut self, opcode: &str, operands: &[Operand<'a>]) -> Option<Decoded<Instruction>> {
        let [to, from, Operand::Number(bytes), copied @ ..] = operands else {
            return None;
        };
        let bytes = match (opcode, bytes) {
            ("cp.async.ca.shared.global", 4 | 8 | 16) => *bytes as u8,
            ("cp.async.cg.shared.global", 16) => 16,
            _ => return None,
        };
        let to = self.place(to, Space::Shared)?;
        let from = self.place(from, Space::Global)?;
        let copied = match copied {
            [] => Ok(self.constant(bytes.into())),
            [copied] => self.value(copied, 32),
            _ => return None,
        };
        let copy = |to, from, copied| Instruction::Copy {
            bytes,
            to,
            from,
            copied,
        };
        Some(to.and_then(|to| Ok(copy(to, from?, copied?))))
    }

    /// What a load or a store accesses, and in which order with what others do.
    fn access(
        &mut self,
        opcode: &str,
        registers: &Operand<'a>,
        at: &Operand<'a>,
        is_load: bool,
    ) -> Decoded<(Access, Order)> {
        let unknown = || format!("`{opcode}` with these operands is not interpreted");
        let (mut space, mut count, mut bits, mut order) = (None, 1_u8, None, Order::Weak);
        for word in opcode.split('.').skip(1) {
            match word {
                "global" => space = Some(Space::Global),
                "shared" => space = Some(Space::Shared),
                "param" if is_load => space = Some(Space::Parameter),
                "v2" => count = 2,
                "v4" => count = 4,
                "acquire" if is_load => order = Order::Acquire,
                "relaxed" | "volatile" if is_load => order = Order::Relaxed,
                // Which caches are used, and by whom, changes nothing here.
                "gpu" | "nc" => {}
                of => {
                    bits = Some(
                        arithmetic::width(of)
                            .filter(|bits| *bits >= 8)
                            .ok_or_else(unknown)?,
                    )
                }
            }
        }
        let (Some(space), Some(bits)) = (space, bits) else {
            return Err(unknown());
        };
        let elements = match (count, registers) {
            (1, one) => std::slice::from_ref(one),
            (_, Operand::Vector(all)) if all.len() == usize::from(count) => all,
            _ => return Err(unknown()),
        };
        let mut slots = [0; 4];
        for (slot, element) in slots.iter_mut().zip(elements) {
            // A register may have more bits than what is loaded or stored.
            *slot = match is_load {
                true => self.wide_enough(element, bits)?,
                false => match element {
                    Operand::Number(number) => self.constant(*number),
                    register => self.wide_enough(register, bits)?,
                },
            };
        }
        let place = self.place(at, space).ok_or_else(unknown)??;
        let access = Access {
            space,
            bytes: (bits / 8) as u8,
            count,
            base: place.base,
            offset: place.offset,
            registers: slots,
        };
        Ok((access, order))
    }

    /// `[register + offset]` or `[variable + offset]`.
    fn place(&mut self, operand: &Operand<'a>, space: Space) -> Option<Decoded<MemoryOperand>> {
        let Operand::Address(base, offset) = operand else {
            return None;
        };
        let variables = match space {
            Space::Global => None,
            Space::Shared => Some(&self.shared),
            Space::Parameter => Some(&self.parameters),
        };
        let variable = variables.and_then(|all| all.get(base)).copied();
        let base = match variable {
            Some(begin) => Ok(self.constant(begin.into())),
            None => self.find(base).and_then(|(slot, bits)| match bits {
                32 | 64 => Ok(slot),
                _ => Err(format!("`{base}` is not an address")),
            }),
        };
        Some(base.map(|base| MemoryOperand {
            base,
            offset: *offset,
        }))
    }

    fn constant(&mut self, bits: u64) -> Slot {
        let next = self.registers + self.constants.len() as Slot;
        *self.constants.entry(bits).or_insert(next)
    }

    fn label(&self, name: &str) -> Decoded<u32> {
        let found = self.labels.get(name).copied();
        found.ok_or_else(|| format!("there is no label `{name}`"))
    }

    /// The slot of a register, and its bits.
    fn find(&self, name: &str) -> Decoded<(Slot, u32)> {
        if let Some(slot) = SPECIAL.iter().position(|special| *special == name) {
            return Ok((slot as Slot, 32));
        }
        let prefix = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let number = name[prefix.len()..].parse::<u32>().ok();
        let found = self.scopes.iter().rev().find_map(|scope| {
            if let Some(class) = self.single.get(&(*scope, name)) {
                return Some((class.first, class.bits));
            }
            let class = self.classes.get(&(*scope, prefix))?;
            let number = number.filter(|number| *number < class.count)?;
            Some((class.first + number, class.bits))
        });
        found.ok_or_else(|| format!("there is no register `{name}`"))
    }

    fn register(&self, name: &str, bits: u32) -> Decoded<Slot> {
        match self.find(name)? {
            (slot, found) if found == bits => Ok(slot),
            (_, found) => Err(format!("`{name}` has {found} bits, not {bits}")),
        }
    }

    fn result(&mut self, operand: &Operand<'a>, bits: u32) -> Decoded<Slot> {
        match operand {
            Operand::Name(name) if SPECIAL.contains(name) => Err(format!("`{name}` is only read")),
            Operand::Name(name) => self.register(name, bits),
            _ => Err("a result goes to a register".to_owned()),
        }
    }

    fn wide_enough(&mut self, operand: &Operand<'a>, bits: u32) -> Decoded<Slot> {
        let Operand::Name(name) = operand else {
            return Err("a load or a store is of registers".to_owned());
        };
        let (slot, found) = self.find(name)?;
        match found >= bits && !SPECIAL.contains(name) {
            true => Ok(slot),
            false => Err(format!("`{name}` has {found} bits, not {bits}")),
        }
    }

    fn value(&mut self, operand: &Operand<'a>, bits: u32) -> Decoded<Slot> {
        match operand {
            Operand::Number(number) => {
                let number = match bits {
                    1 => u64::from(*number != 0),
                    _ => number & (u64::MAX >> (64 - bits)),
                };
                Ok(self.constant(number))
            }
            Operand::Name(name) => match self.shared.get(name).copied() {
                Some(begin) if bits >= 32 => Ok(self.constant(begin.into())),
                _ => self.register(name, bits),
            },
            _ => Err("a register or a number is expected".to_owned()),
        }
    }

    fn vector<const N: usize>(
        &mut self,
        operand: &Operand<'a>,
        mut slot: impl FnMut(&mut Names<'a>, &Operand<'a>) -> Decoded<Slot>,
    ) -> Decoded<[Slot; N]> {
        let all = match operand {
            Operand::Vector(all) if all.len() == N => all,
            _ => return Err(format!("{N} registers are expected")),
        };
        let mut slots = [0; N];
        for (place, element) in slots.iter_mut().zip(all) {
            *place = slot(self, element)?;
        }
        Ok(slots)
    }
}
