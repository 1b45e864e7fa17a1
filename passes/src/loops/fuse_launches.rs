//! `fuse-launches`: launches of a kernel that need nothing of each other run side by side.
//!
//! On a GPU a kernel is a list of launches, each of which waits for the one before. Many do not depend on it: products
//! of different operands, or two projections of the same rows. Launches are grouped into *waves*, each launch as early
//! as its dependences allow, and those of one wave run concurrently:
//!
//! ```mlir
//! ragged.blocks of 113 tile 1 { … into %s … }
//! ragged.tiles over [9] … { … %s … ragged.store %a, %v … }
//! ragged.tiles over [9, 9] … { … ragged.store %b, %m … }
//! // becomes
//! ragged.wave {
//!   ragged.blocks of 113 tile 1 { … into %s … }
//!   ragged.tiles over [9, 9] … { … ragged.store %b, %m … }
//! }
//! ragged.tiles over [9] … { … %s … ragged.store %a, %v … }
//! ```
//!
//! The blocks of a wave are scheduled together, so a launch of few rows leaves no multiprocessor idle that another one
//! could use. A flush that is one launch (`persistence`) has one barrier less for each launch that joins a wave, and a
//! CUDA graph has parallel branches. Each launch reads and writes what it did before, so the bits are the same.
//!
//! Two launches depend on each other where one touches a result or scratch that the other one writes, even in different
//! parts. Launches of different kernels need no pass: the runtime puts independent calls of a flush into one step. On the
//! CPU there is nothing to fuse: all stages of a kernel are one function, whose rows threads divide.
//!
//! After CoRa (Fegade et al., MLSys 2022), §4.1: horizontal fusion, of operators that are independent. Requires: the
//! loop level, of `plan-kernels-for-gpu`, after `online-folds` and `bound-masks`. Leaves: the loop level; a kernel
//! with waves as it is.

use cohort_dialects::builder::{Builder, Op, operations_of, region_with_block};
use cohort_dialects::memory::{Touched, touched};
use melior::{
    Context,
    ir::{BlockRef, OperationRef, operation::OperationLike},
};

use crate::kernel::loop_level::{is_declaration, kernels_for_gpu, launches_of};
use crate::pass::{Outcome, PassInfo};
use crate::support::ir::{ValueKey, blocks_of, key, move_to_end};

/// The pass `fuse-launches`.
pub const PASS: PassInfo = PassInfo {
    name: "fuse-launches",
    summary: "Let launches of a GPU's kernel that need nothing of each other run side by side (loop level)",
    description: include_str!("fuse_launches.rs"),
    run,
};

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    for [kernel, last] in kernels_for_gpu(module) {
        let around = match Op::RaggedCalls.is(last) {
            true => last,
            false => kernel,
        };
        for block in blocks_of(around) {
            form_waves(context, block);
        }
    }
    Ok(())
}

fn form_waves<'c>(context: &'c Context, block: BlockRef<'c, 'c>) {
    let operations = operations_of(block).into_iter();
    let operations: Vec<_> = operations.filter(|op| !is_declaration(*op)).collect();
    if operations.iter().any(|op| Op::RaggedWave.is(*op)) {
        return;
    }
    let launches = launches_of(&operations);
    let waves = waves_of(&launches);
    let count = waves.iter().max().map_or(0, |last| last + 1);
    if count == launches.len() {
        return;
    }
    for number in 0..count {
        let of_wave = launches.iter().zip(&waves);
        let of_wave = of_wave.filter(|(_, wave)| **wave == number);
        let of_wave: Vec<_> = of_wave.map(|(launch, _)| launch).collect();
        let to = match of_wave[..] {
            [_] => block,
            _ => {
                let location = of_wave[0][0].location();
                let (region, inside) = region_with_block(&[], location);
                let b = Builder::at_end(context, block, location);
                b.op(Op::RaggedWave, &[], &[], &[], vec![region]);
                inside
            }
        };
        for op in of_wave.into_iter().flatten() {
            move_to_end(*op, to);
        }
    }
}

/// The wave of each launch: the first in which nothing waits.
fn waves_of(launches: &[Vec<OperationRef<'_, '_>>]) -> Vec<usize> {
    let uses: Vec<Uses> = launches.iter().map(|launch| Uses::of(launch)).collect();
    let mut waves: Vec<usize> = Vec::with_capacity(uses.len());
    for (number, of) in uses.iter().enumerate() {
        let before = uses[..number].iter().zip(&waves);
        let awaited = before.filter(|(earlier, _)| earlier.conflict_with(of));
        let wave = awaited.map(|(_, wave)| wave + 1).max();
        waves.push(wave.unwrap_or(0));
    }
    waves
}

/// The memory that a launch touches.
struct Uses {
    read: Vec<ValueKey>,
    written: Vec<ValueKey>,
}

impl Uses {
    fn of(launch: &[OperationRef<'_, '_>]) -> Uses {
        let touched = launch.iter().flat_map(|op| touched(*op));
        let (written, read): (Vec<Touched<'_>>, Vec<_>) = touched.partition(|of| of.is_written);
        let keys = |all: Vec<Touched<'_>>| all.into_iter().map(|of| key(of.memory)).collect();
        Uses {
            read: keys(read),
            written: keys(written),
        }
    }

    /// Whether either touches what the other one writes.
    fn conflict_with(&self, other: &Uses) -> bool {
        let touches = |of: &Uses, memory| of.read.contains(memory) || of.written.contains(memory);
        self.written.iter().any(|memory| touches(other, memory))
            || other.written.iter().any(|memory| touches(self, memory))
    }
}
