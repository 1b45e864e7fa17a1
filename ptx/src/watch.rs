//! Instructions that access accumulators of warpgroups' products, and what checks each access.
//!
//! A product adds to its registers at some time between its beginning and the wait for it, so nobody else may access
//! them meanwhile. Each instruction that may is preceded by an [`Instruction::Watch`]; a function without such products
//! stays as it is.

use std::collections::HashMap;

use crate::instruction::{Function, Instruction, Slot};

/// Inserts what checks accesses to accumulators.
pub fn watch(function: &mut Function) {
    if function.accumulators.is_empty() {
        return;
    }
    let accumulators = function.accumulators.iter().zip(0..);
    let numbers: HashMap<Slot, u32> = accumulators.map(|(of, number)| (of.slot, number)).collect();
    let before = std::mem::take(&mut function.code);
    let lines_before = std::mem::take(&mut function.lines);
    let (code, lines) = (&mut function.code, &mut function.lines);
    // Where each instruction is now, with what checks it.
    let mut places = Vec::new();
    for (instruction, line) in before.into_iter().zip(lines_before) {
        places.push(code.len() as u32);
        let registers = instruction.registers();
        let accessed = registers.filter_map(|(slot, is_written)| {
            let number = numbers.get(&slot)?;
            Some((*number, is_written))
        });
        let accessed: Vec<(u32, bool)> = accessed.collect();
        if !accessed.is_empty() {
            code.push(Instruction::Watch(accessed.into()));
        }
        code.push(instruction);
        lines.resize(code.len(), line);
    }
    let end = code.len() as u32;
    let place = |target: &mut u32| {
        *target = places.get(*target as usize).copied().unwrap_or(end);
    };
    for instruction in code {
        match instruction {
            Instruction::Branch(target) | Instruction::BranchIf(_, _, target) => place(target),
            Instruction::BranchIndexed(_, targets) => targets.iter_mut().for_each(place),
            _ => {}
        }
    }
}
