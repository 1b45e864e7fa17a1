//! What a flush launches, as the one function reads it that runs whole flushes
//! ([`cohort_abi::gpu::flush`]), and whether that is worth while.

use std::cmp::Reverse;

use cohort_abi::gpu::flush::{HEADER_WORDS, LAUNCH_WORDS, NOTHING, STEP_WORDS, most_steps};
use cohort_abi::gpu::{GpuFlush, GpuFunction, GpuKernel, GpuLaunch};

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
    of_step: Vec<Stepped>,
    arguments: Vec<u64>,
}

/// A launch of a step.
#[derive(Clone, Copy, Debug)]
struct Stepped {
    /// Parts of the columns, where blocks that had them before should have them again; or 0.
    parts: u32,
    launch: [u32; LAUNCH_WORDS],
}

/// What runs a device's flushes.
#[derive(Clone, Debug)]
pub struct Persistent {
    /// Blocks that are on the device together.
    blocks: u32,
    /// By a function's number on the device, what runs it in a schedule.
    functions: Vec<Option<Scheduled>>,
    /// Words behind the last arguments.
    padding: usize,
}

/// A function in a schedule.
#[derive(Clone, Debug)]
struct Scheduled {
    /// Its number there.
    number: u32,
    /// What it is, where its weights stay with a block: it takes another grid than the function in whose place it is.
    resident: Option<GpuFunction>,
}

impl Scheduled {
    /// The first dim of the grid, and all blocks, where the function itself has such a grid and arguments.
    fn grid(&self, (columns, rows): (u32, u32), arguments: &[u64]) -> Option<(u32, u32)> {
        let Some(resident) = &self.resident else {
            return Some((columns, columns.checked_mul(rows)?));
        };
        let (columns, tiles) = resident.resident_grid(*arguments.first()?);
        Some((columns, columns.checked_mul(u32::try_from(tiles).ok()?)?))
    }
}

impl Persistent {
    /// For so many blocks at a time.
    pub fn new(flush: &GpuFlush, blocks: u32) -> Persistent {
        Persistent {
            blocks,
            functions: Vec::new(),
            padding: flush.argument_bytes as usize / size_of::<u32>(),
        }
    }

    /// Finds a kernel's functions, whose numbers on the device are these for each launch.
    pub fn add(&mut self, flush: &GpuFlush, kernel: &GpuKernel, functions: &[Vec<usize>]) {
        for (launch, on_device) in kernel.launches.iter().zip(functions) {
            for (at, on_device) in on_device.iter().enumerate() {
                if self.functions.len() <= *on_device {
                    self.functions.resize(on_device + 1, None);
                }
                self.functions[*on_device] = scheduled(flush, launch, at);
            }
        }
    }
}

/// What runs a function of a launch in a flush.
fn scheduled(flush: &GpuFlush, launch: &GpuLaunch, at: usize) -> Option<Scheduled> {
    let find = |function: &GpuFunction| {
        let mut listed = flush.functions.iter();
        let number = listed.position(|symbol| *symbol == function.symbol)?;
        let fits = function.threads == flush.threads && function.shared_bytes <= flush.shared_bytes;
        fits.then_some(number as u32)
    };
    let resident = launch.resident.as_ref().filter(|_| at == 0);
    let resident = resident.and_then(|function| Some((find(function)?, Some(function.clone()))));
    let itself = || Some((find(launch.functions.get(at)?)?, None));
    let (number, resident) = resident.or_else(itself)?;
    Some(Scheduled { number, resident })
}

impl Schedule {
    /// Empties it.
    pub fn clear(&mut self) {
        self.words.clear();
    }

    /// Words that the schedule of some calls has at most.
    pub fn room(persistent: &Persistent, launches: usize, arguments: usize) -> usize {
        // Of a step there is at least one launch, behind blocks that do nothing; an argument has two words.
        let of_launches = launches * (STEP_WORDS + 2 * LAUNCH_WORDS);
        HEADER_WORDS + of_launches + 2 * arguments + persistent.padding
    }

    /// Writes the schedule of a queue; gives how many blocks it is for, and nothing where the launches
    /// had better be one by one.
    pub fn write(&mut self, queue: &Queue, persistent: &Persistent) -> Option<u32> {
        self.steps.clear();
        self.launches.clear();
        self.arguments.clear();
        let (mut all, mut most, mut launches) = (0, 0, 0);
        // As many blocks as there are parts of the columns, or a multiple: then a block has the same part in each step.
        let mut parts = 1;
        for wave in queue.waves() {
            let calls: Vec<_> = wave.collect();
            let first = self.arguments.len();
            for (.., arguments) in &calls {
                self.arguments.extend_from_slice(arguments);
            }
            // A call's launches follow one another, those beside each other together; so do those of other calls.
            let mut unqueued: Vec<_> = calls.iter().map(|call| waves_of(call.1)).collect();
            loop {
                self.of_step.clear();
                let mut at = first;
                for ((.., arguments), waves) in calls.iter().zip(&mut unqueued) {
                    for launch in waves.next().unwrap_or_default() {
                        let function = persistent.functions.get(launch.function)?.as_ref()?;
                        let (columns, count) = function.grid(launch.grid, arguments)?;
                        if count == 0 {
                            return None;
                        }
                        self.of_step.push(Stepped {
                            parts: function.resident.as_ref().map_or(0, |_| columns),
                            launch: [function.number, count, columns, at as u32],
                        });
                    }
                    at += arguments.len();
                }
                if self.of_step.is_empty() {
                    break;
                }
                launches += self.of_step.len();
                for stepped in &self.of_step {
                    parts = common_multiple(parts, stepped.parts.max(1), persistent.blocks);
                }
                let blocks = self.step()?;
                (all, most) = (all + u64::from(blocks), most.max(blocks));
            }
        }
        let steps = self.steps.len();
        let blocks = persistent.blocks.min(most);
        let blocks = (blocks - blocks % parts).max(blocks.min(parts));
        if launches < 2 || all > MOST_BLOCKS_A_STEP * steps as u64 || steps > most_steps(blocks) {
            return None;
        }
        self.finish(blocks, persistent.padding)
    }

    /// Adds the launches of a step; how many blocks they have. Those whose weights stay come first, each from a multiple of
    /// its parts on, so that the same blocks have the same part, whatever else is in the step.
    fn step(&mut self) -> Option<u32> {
        self.of_step.sort_by_key(|stepped| Reverse(stepped.parts));
        let (begin, mut blocks) = (self.launches.len() as u32, 0_u32);
        for Stepped { parts, launch } in &self.of_step {
            let missing = blocks.checked_next_multiple_of((*parts).max(1))? - blocks;
            if missing > 0 {
                self.launches.push([NOTHING, missing, 1, 0]);
            }
            self.launches.push(*launch);
            blocks = blocks.checked_add(missing)?.checked_add(launch[1])?;
        }
        self.steps.push([begin, blocks]);
        Some(blocks)
    }

    /// Puts the parts one behind another.
    fn finish(&mut self, blocks: u32, padding: usize) -> Option<u32> {
        let (steps, launches) = (self.steps.len(), self.launches.len());
        let begin = size_of::<u32>() * HEADER_WORDS
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
        self.words.resize(self.words.len() + padding, 0);
        Some(blocks)
    }
}

/// The least common multiple, or, if that is more than `most`, the larger of both.
fn common_multiple(a: u32, b: u32, most: u32) -> u32 {
    let (mut divisor, mut rest) = (a, b);
    while rest > 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    let multiple = u64::from(a / divisor) * u64::from(b);
    match multiple <= u64::from(most) {
        true => multiple as u32,
        false => a.max(b),
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
        let mut functions = vec![None; 6];
        functions[5] = Some(Scheduled {
            number: 1,
            resident: None,
        });
        Persistent {
            blocks,
            functions,
            padding: 2,
        }
    }

    /// The same, of which weights stay: tiles of 4 rows and 3 parts of the columns.
    fn resident(blocks: u32) -> Persistent {
        let function = |symbol: &str| GpuFunction {
            symbol: symbol.to_owned(),
            from_rows: 0,
            threads: 128,
            tile_rows_per_row: 1,
            tile_rows: 4,
            column_blocks: 3,
            shared_bytes: 64,
            calls: None,
        };
        let flush = GpuFlush {
            symbol: "flush".to_owned(),
            threads: 128,
            shared_bytes: 64,
            argument_bytes: 16,
            functions: ["other", "resident", "large"].map(str::to_owned).to_vec(),
        };
        let kernel = GpuKernel {
            launches: vec![GpuLaunch {
                functions: vec![function("small"), function("large")],
                resident: Some(function("resident")),
                beside: false,
            }],
            ..GpuKernel::default()
        };
        let mut persistent = Persistent::new(&flush, blocks);
        persistent.add(&flush, &kernel, &[vec![5, 6]]);
        persistent
    }

    #[test]
    fn a_block_has_the_same_columns_in_each_step() {
        let mut queue = Queue::default();
        for rows in [9, 2] {
            wave(&mut queue, &[(&[rows, 0], &[(7, 1)])]);
        }
        let mut schedule = Schedule::default();
        // Three parts of the columns by three tiles of rows, and by one.
        assert_eq!(schedule.write(&queue, &resident(8)), Some(6));
        let begin = 4 * (4 + 2 * 2 + 2 * 4);
        let expected = [0, 9, 1, 3, 1, 9, 3, begin, 1, 3, 3, begin + 16];
        assert_eq!(schedule.words[4..16], expected);
        // Where there are fewer blocks than parts, they take turns.
        for (together, blocks) in [(2, 2), (3, 3), (5, 3), (100, 9)] {
            schedule.clear();
            assert_eq!(schedule.write(&queue, &resident(together)), Some(blocks));
        }
        // The other function of the launch is itself, with the grid that it has.
        queue.clear();
        queue.call(Piece {
            address: 0,
            bytes: 0,
        });
        for _ in 0..2 {
            queue.launch(launch(6, (2, 3)));
        }
        schedule.clear();
        assert_eq!(schedule.write(&queue, &resident(100)), Some(6));
        assert_eq!(schedule.words[8..11], [2, 6, 2]);
    }

    #[test]
    fn blocks_begin_where_they_have_weights() {
        let mut queue = Queue::default();
        // A function without weights of 5 blocks, and one with 3 parts of the columns, twice.
        let others = persistent(100);
        let mut all = resident(100);
        all.functions.resize(7, None);
        all.functions[3] = others.functions[5].clone();
        let scratch = Piece {
            address: 0,
            bytes: 0,
        };
        queue.call(scratch).push(1);
        queue.launch(launch(3, (5, 1)));
        for rows in [9, 2] {
            queue.call(scratch).push(rows);
            queue.launch(launch(5, (7, 1)));
        }
        queue.end_level();
        let mut schedule = Schedule::default();
        assert_eq!(schedule.write(&queue, &all), Some(15));
        let begin = 4 * (4 + 2 + 3 * 4);
        let [one, two, three] = [begin, begin + 8, begin + 16];
        let expected = [
            // One step of three launches, those with weights first.
            [0, 17].as_slice(),
            &[1, 9, 3, two],
            &[1, 3, 3, three],
            &[1, 5, 5, one],
        ];
        assert_eq!(schedule.words[4..18], expected.concat());
        // Parts of two functions that have no common multiple among the blocks: each begins at one of its own.
        let stepped = |parts, blocks| Stepped {
            parts,
            launch: [7, blocks, parts.max(1), 0],
        };
        schedule.clear();
        schedule.steps.clear();
        schedule.launches.clear();
        schedule.of_step = vec![stepped(0, 2), stepped(3, 6), stepped(4, 4)];
        assert_eq!(schedule.step(), Some(14));
        let launches = [[7, 4, 4, 0], [NOTHING, 2, 1, 0], [7, 6, 3, 0], [7, 2, 1, 0]];
        assert_eq!(schedule.launches, launches);
        assert_eq!(
            [(4, 6, 100), (3, 1, 8), (64, 96, 132), (3, 4, 12)]
                .map(|(a, b, most)| common_multiple(a, b, most)),
            [12, 3, 96, 12]
        );
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
            // Behind the last list, which is read as if it were longer.
            &[0, 0],
        ];
        assert_eq!(schedule.words, expected.concat());
        assert!(schedule.words.len() <= Schedule::room(&persistent(8), 4, 4));
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
