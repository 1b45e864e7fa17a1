//! What a flush launches, as the one function reads it that runs whole flushes
//! ([`cohort_abi::gpu::flush`]), and whether that is worth while.

use cohort_abi::gpu::flush::{HEADER_WORDS, LAUNCH_WORDS, STEP_WORDS, most_steps};
use cohort_abi::gpu::{GpuFlush, GpuKernel};

use super::queue::{Queue, waves_of};

/// Blocks of a step, on average, up to which a flush is one launch. A card runs a few hundred at a time,
/// and a launch takes about as long as these do: with more of them its latency does not matter, and each
/// function does better with the registers and the shared memory of its own launch. The number is the
/// same for every device, so that the simulator runs what a card does.
const MOST_BLOCKS_A_STEP: u64 = 1024;

/// The schedule of a flush; its memory is kept from flush to flush.
#[derive(Debug, Default)]
pub struct Schedule {
    /// What is sent.
    pub words: Vec<u32>,
    steps: Vec<[u32; STEP_WORDS]>,
    launches: Vec<[u32; LAUNCH_WORDS]>,
    arguments: Vec<u64>,
}

/// What runs a device's flushes.
#[derive(Debug)]
pub struct Persistent {
    /// Blocks that are on the device together.
    blocks: u32,
    /// By a function's number on the device, that in a schedule.
    numbers: Vec<Option<u32>>,
}

impl Persistent {
    /// For so many blocks at a time.
    pub fn new(blocks: u32) -> Persistent {
        Persistent {
            blocks,
            numbers: Vec::new(),
        }
    }

    /// Finds a kernel's functions, whose numbers on the device are these for each launch.
    pub fn add(&mut self, flush: &GpuFlush, kernel: &GpuKernel, functions: &[Vec<usize>]) {
        for (launch, on_device) in kernel.launches.iter().zip(functions) {
            for (function, on_device) in launch.functions.iter().zip(on_device) {
                let mut listed = flush.functions.iter();
                let number = listed.position(|symbol| *symbol == function.symbol);
                let fits = function.threads == flush.threads
                    && function.shared_bytes <= flush.shared_bytes;
                if self.numbers.len() <= *on_device {
                    self.numbers.resize(on_device + 1, None);
                }
                self.numbers[*on_device] = number.filter(|_| fits).map(|number| number as u32);
            }
        }
    }
}

impl Schedule {
    /// Empties it.
    pub fn clear(&mut self) {
        self.words.clear();
    }

    /// Words that the schedule of some calls has at most.
    pub fn room(launches: usize, arguments: usize) -> usize {
        // Of a step there is at least one launch; an argument has two words.
        HEADER_WORDS + launches * (STEP_WORDS + LAUNCH_WORDS) + 2 * arguments
    }

    /// Writes the schedule of a queue; gives how many blocks it is for, and nothing where the launches
    /// had better be one by one.
    pub fn write(&mut self, queue: &Queue, persistent: &Persistent) -> Option<u32> {
        self.steps.clear();
        self.launches.clear();
        self.arguments.clear();
        let (mut all, mut most) = (0, 0);
        for wave in queue.waves() {
            let calls: Vec<_> = wave.collect();
            let first = self.arguments.len();
            for (.., arguments) in &calls {
                self.arguments.extend_from_slice(arguments);
            }
            // A call's launches follow one another, those beside each other together; so do those of other calls.
            let mut unqueued: Vec<_> = calls.iter().map(|call| waves_of(call.1)).collect();
            loop {
                let (begin, mut blocks) = (self.launches.len() as u32, 0_u64);
                let mut at = first;
                for ((.., arguments), waves) in calls.iter().zip(&mut unqueued) {
                    for launch in waves.next().unwrap_or_default() {
                        let number = persistent.numbers.get(launch.function).copied()??;
                        let (columns, rows) = launch.grid;
                        let count = columns.checked_mul(rows).filter(|count| *count > 0)?;
                        self.launches.push([number, count, columns, at as u32]);
                        blocks += u64::from(count);
                    }
                    at += arguments.len();
                }
                if blocks == 0 {
                    break;
                }
                self.steps.push([begin, u32::try_from(blocks).ok()?]);
                (all, most) = (all + blocks, blocks.max(most));
            }
        }
        let steps = self.steps.len();
        let blocks = u64::from(persistent.blocks).min(most) as u32;
        if self.launches.len() < 2
            || all > MOST_BLOCKS_A_STEP * steps as u64
            || steps > most_steps(blocks)
        {
            return None;
        }
        self.finish(blocks)
    }

    /// Puts the parts one behind another.
    fn finish(&mut self, blocks: u32) -> Option<u32> {
        let (steps, launches) = (self.steps.len(), self.launches.len());
        let begin = size_of::<u32>() * Schedule::room(0, 0)
            + size_of::<[u32; STEP_WORDS]>() * steps
            + size_of::<[u32; LAUNCH_WORDS]>() * launches;
        u32::try_from(begin + size_of_val(&self.arguments[..])).ok()?;
        self.words.extend([0, blocks, steps as u32, 0]);
        self.words.extend(self.steps.iter().flatten());
        for [function, count, columns, at] in &self.launches {
            let at = begin as u32 + 8 * at;
            self.words.extend([*function, *count, *columns, at]);
        }
        for argument in &self.arguments {
            self.words
                .extend([*argument as u32, (argument >> 32) as u32]);
        }
        Some(blocks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Piece;
    use crate::device::queue::Launch;

    fn launch(function: usize, grid: (u32, u32)) -> Launch {
        Launch {
            function,
            grid,
            threads: 128,
            beside: false,
        }
    }

    /// A call's arguments, and the grids of its launches.
    type Call<'a> = (&'a [u64], &'a [(u32, u32)]);

    /// Calls of one wave, each with its arguments and the grids of its launches of function 5.
    fn wave(queue: &mut Queue, calls: &[Call<'_>]) {
        let scratch = Piece {
            address: 0,
            bytes: 0,
        };
        for (arguments, grids) in calls {
            queue.call(scratch).extend_from_slice(arguments);
            for grid in *grids {
                queue.launch(launch(5, *grid));
            }
        }
        queue.end_level();
    }

    fn persistent(blocks: u32) -> Persistent {
        let mut numbers = vec![None; 6];
        numbers[5] = Some(1);
        Persistent { blocks, numbers }
    }

    #[test]
    fn a_step_ends_where_something_waits() {
        let mut queue = Queue::default();
        let far = 7 << 32 | 9;
        wave(
            &mut queue,
            &[(&[far, 2], &[(2, 3), (4, 1)]), (&[3], &[(5, 1)])],
        );
        wave(&mut queue, &[(&[4], &[(1, 1)])]);
        let mut schedule = Schedule::default();
        assert_eq!(schedule.write(&queue, &persistent(8)), Some(8));
        // The header, three steps and four launches.
        let begin = 4 * (4 + 3 * 2 + 4 * 4);
        let expected = [
            &[0, 8, 3, 0][..],
            &[0, 11, 2, 4, 3, 1],
            &[1, 6, 2, begin, 1, 5, 5, begin + 16],
            &[1, 4, 4, begin],
            &[1, 1, 1, begin + 24],
            &[9, 7, 2, 0, 3, 0, 4, 0],
        ];
        assert_eq!(schedule.words, expected.concat());
        assert!(schedule.words.len() <= Schedule::room(4, 4));
        // Blocks that would have nothing to do in any step are not launched.
        schedule.clear();
        assert_eq!(schedule.write(&queue, &persistent(100)), Some(11));
    }

    #[test]
    fn launches_beside_each_other_share_a_step() {
        let scratch = Piece {
            address: 0,
            bytes: 0,
        };
        let mut queue = Queue::default();
        for besides in [&[false, true, false][..], &[false, false]] {
            queue.call(scratch).push(1);
            for beside in besides {
                queue.launch(Launch {
                    beside: *beside,
                    ..launch(5, (2, 1))
                });
            }
        }
        let mut schedule = Schedule::default();
        assert_eq!(schedule.write(&queue, &persistent(8)), Some(6));
        // Two steps: three launches, and two.
        assert_eq!(schedule.words[..8], [0, 6, 2, 0, 0, 6, 3, 4]);
    }

    #[test]
    fn what_gains_nothing_is_launched_one_by_one() {
        let written = |calls: &[Call<'_>]| {
            let mut queue = Queue::default();
            wave(&mut queue, calls);
            Schedule::default().write(&queue, &persistent(8))
        };
        assert_eq!(written(&[]), None);
        assert_eq!(written(&[(&[1], &[(2, 2)])]), None);
        assert_eq!(written(&[(&[1], &[(2, 2), (1, 1)])]), Some(4));
        assert_eq!(written(&[(&[1], &[(2047, 1), (1, 1)])]), Some(8));
        assert_eq!(written(&[(&[1], &[(2048, 1), (1, 1)])]), None);
        assert_eq!(written(&[(&[1], &[(1 << 16, 1 << 16), (1, 1)])]), None);
        // Of a function that it does not know.
        let mut queue = Queue::default();
        wave(&mut queue, &[(&[1], &[(1, 1), (1, 1)])]);
        queue.launch(launch(3, (1, 1)));
        assert_eq!(Schedule::default().write(&queue, &persistent(8)), None);
    }
}
