//! What a flush launches, as the one function reads it that runs whole flushes
//! ([`cohort_abi::gpu::flush`]), and whether that is worth while.

use cohort_abi::gpu::flush::{HEADER_WORDS, LAUNCH_WORDS, STEP_WORDS, most_steps};
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
    arguments: Vec<u64>,
}

/// What runs a device's flushes.
#[derive(Clone, Debug)]
pub struct Persistent {
    /// Blocks that are on the device together.
    blocks: u32,
    /// By a function's number on the device, what runs it in a schedule.
    functions: Vec<Option<Scheduled>>,
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
    pub fn new(blocks: u32) -> Persistent {
        Persistent {
            blocks,
            functions: Vec::new(),
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
        // As many blocks as there are parts of the columns, or a multiple: then a block has the same part in each step.
        let (mut all, mut most, mut parts) = (0, 0, 1);
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
                        let function = persistent.functions.get(launch.function)?.as_ref()?;
                        let (columns, count) = function.grid(launch.grid, arguments)?;
                        if count == 0 {
                            return None;
                        }
                        if function.resident.is_some() {
                            parts = parts.max(columns);
                        }
                        let launch = [function.number, count, columns, at as u32];
                        self.launches.push(launch);
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
        let blocks = (blocks - blocks % parts).max(blocks.min(parts));
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
        let mut functions = vec![None; 6];
        functions[5] = Some(Scheduled {
            number: 1,
            resident: None,
        });
        Persistent { blocks, functions }
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
        let mut persistent = Persistent::new(blocks);
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
