//! What a flush launches, as the one function reads it that runs whole flushes
//! ([`cohort_abi::gpu::flush`]), and whether that is worth while.

use std::cmp::Reverse;

use cohort_abi::gpu::flush::{
    CLUSTER_BLOCKS, CLUSTER_WORDS, HEADER_WORDS, LAUNCH_WORDS, NOTHING, STEP_WORDS, most_steps,
};
use cohort_abi::gpu::{GpuFlush, GpuFunction, GpuKernel, GpuLaunch};

use super::queue::{Queue, waves_of};
use super::{Clusters, FlushGrid};

/// Blocks of a step, on average, up to which a flush is one launch. A card runs a few hundred at a time,
/// and a launch takes about as long as these do: with more of them its latency does not matter, and each
/// function does better with the registers and the shared memory of its own launch. The number is the
/// same for every device, so that the simulator runs what a card does.
const MOST_BLOCKS_A_STEP: u64 = 1024;

/// What a *turn* takes, in which each of the processors that share a step computes one of its blocks, and what barriers do, in
/// nanoseconds: by the model of time (docs/gpu-time.md), of a card of so many processors.
const PROCESSORS: u32 = 132;
const TURN: u64 = 2000;
const GRID_BARRIER: u64 = 1500;
const CLUSTER_BARRIER: u64 = 400;

/// The schedule of a flush; its memory is kept from flush to flush.
#[derive(Debug, Default)]
pub struct Schedule {
    /// What is sent.
    pub words: Vec<u32>,
    whole: Steps,
    divided: Steps,
}

/// What a flush is scheduled as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheduled {
    /// What is launched.
    pub grid: FlushGrid,
    /// If it is divided between clusters, the part that takes longest and its steps.
    pub longest: Option<(usize, u64)>,
}

/// Steps one after another.
#[derive(Debug, Default)]
struct Steps {
    steps: Vec<[u32; STEP_WORDS]>,
    clusters: Vec<[u32; CLUSTER_WORDS]>,
    launches: Vec<[u32; LAUNCH_WORDS]>,
    of_step: Vec<Stepped>,
    arguments: Vec<u64>,
}

/// What the steps of a queue are together.
#[derive(Clone, Copy, Debug)]
struct Sum {
    launches: usize,
    steps: usize,
    blocks: u64,
    /// Of a step, at most.
    most: u32,
    /// What blocks are to be a multiple of, so that each has the same columns in each step.
    parts: u32,
    turns: u64,
}

impl Sum {
    /// What it takes, with barriers of so many nanoseconds.
    fn cost(self, barrier: u64) -> u64 {
        self.turns * TURN + self.steps as u64 * barrier
    }
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
    functions: Functions,
    /// The same where blocks form clusters.
    clusters: Option<(Clusters, Functions)>,
    /// Words behind the last arguments.
    padding: usize,
}

/// By a function's number on the device, what runs it in a schedule.
type Functions = Vec<Option<Runs>>;

/// A function in a schedule.
#[derive(Clone, Debug)]
struct Runs {
    /// Its number there.
    number: u32,
    /// What it is, where its weights stay with a block: it takes another grid than the function in whose place it is.
    resident: Option<GpuFunction>,
}

impl Runs {
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
    /// For so many blocks at a time, and perhaps clusters.
    pub fn new(flush: &GpuFlush, blocks: u32, clusters: Option<Clusters>) -> Persistent {
        Persistent {
            blocks,
            functions: Vec::new(),
            clusters: clusters.map(|clusters| (clusters, Vec::new())),
            padding: flush.argument_bytes as usize / size_of::<u32>(),
        }
    }

    /// Into how many parts instances are divided for clusters; 0 where there are none.
    pub fn parts(&self) -> usize {
        (self.clusters.as_ref()).map_or(0, |(clusters, _)| clusters.parts as usize)
    }

    /// Finds a kernel's functions, whose numbers on the device are these for each launch.
    pub fn add(&mut self, flush: &GpuFlush, kernel: &GpuKernel, functions: &[Vec<usize>]) {
        let listed = (&flush.functions[..], flush.shared_bytes);
        let resident = |launch: &GpuLaunch| launch.resident.clone();
        add_functions(
            &mut self.functions,
            flush,
            listed,
            kernel,
            functions,
            resident,
        );
        if let (Some((_, of_clusters)), Some(clusters)) = (&mut self.clusters, &flush.clusters) {
            let listed = (&clusters.functions[..], clusters.shared_bytes);
            let clustered = |launch: &GpuLaunch| launch.clustered.clone();
            add_functions(of_clusters, flush, listed, kernel, functions, clustered);
        }
    }
}

/// Finds what runs a kernel's functions: those of few rows are run by what keeps their weights.
fn add_functions(
    all: &mut Functions,
    flush: &GpuFlush,
    (listed, shared_bytes): (&[String], u32),
    kernel: &GpuKernel,
    functions: &[Vec<usize>],
    resident: impl Fn(&GpuLaunch) -> Option<GpuFunction>,
) {
    let find = |function: &GpuFunction| {
        let number = listed
            .iter()
            .position(|symbol| *symbol == function.symbol)?;
        let fits = function.threads == flush.threads && function.shared_bytes <= shared_bytes;
        fits.then_some(number as u32)
    };
    for (launch, on_device) in kernel.launches.iter().zip(functions) {
        for (at, on_device) in on_device.iter().enumerate() {
            if all.len() <= *on_device {
                all.resize(on_device + 1, None);
            }
            let resident = resident(launch).filter(|_| at == 0);
            let resident = resident.and_then(|function| Some((find(&function)?, Some(function))));
            let itself = || Some((find(launch.functions.get(at)?)?, None));
            let found = resident.or_else(itself);
            all[*on_device] = found.map(|(number, resident)| Runs { number, resident });
        }
    }
}

impl Schedule {
    /// Empties it.
    pub fn clear(&mut self) {
        self.words.clear();
    }

    /// Words that the schedule of some calls has at most, each of which is divided into so many parts.
    pub fn room(persistent: &Persistent, launches: usize, arguments: usize, parts: usize) -> usize {
        let parts = parts.max(1);
        // Of a step there is at least one launch, behind blocks that do nothing; an argument has two words.
        let of_launches = launches * parts * (STEP_WORDS + 2 * LAUNCH_WORDS);
        let of_clusters = CLUSTER_WORDS * parts;
        HEADER_WORDS + of_launches + of_clusters + 2 * parts * arguments + persistent.padding
    }

    /// Writes the schedule of a queue; nothing where the launches had better be one by one. `divided` is the same in parts, if
    /// it can be divided: first what instances share, then a queue for each part.
    pub fn write(
        &mut self,
        queue: &Queue,
        divided: &[Queue],
        persistent: &Persistent,
    ) -> Option<Scheduled> {
        let padding = persistent.padding;
        self.whole.clear();
        let sharing = (persistent.blocks, PROCESSORS);
        let whole = self.whole.add(queue, &persistent.functions, sharing)?;
        let blocks = persistent.blocks.min(whole.most);
        let blocks = (blocks - blocks % whole.parts).max(blocks.min(whole.parts));
        let is_short = whole.launches < 2;
        let is_large = whole.blocks > MOST_BLOCKS_A_STEP * whole.steps as u64;
        if is_short || is_large || whole.steps > most_steps(blocks) {
            return None;
        }
        if let Some(found) = self.divide(divided, persistent)
            && found.cost < whole.cost(GRID_BARRIER)
        {
            let blocks = found.clusters * CLUSTER_BLOCKS;
            let header = [blocks, found.grid_steps];
            self.divided.write(&mut self.words, header, padding)?;
            return Some(Scheduled {
                grid: FlushGrid::Clusters(found.clusters),
                longest: Some(found.longest),
            });
        }
        let header = [blocks, whole.steps as u32];
        self.whole.write(&mut self.words, header, padding)?;
        Some(Scheduled {
            grid: FlushGrid::Blocks(blocks),
            longest: None,
        })
    }

    /// Schedules what is divided; nothing where nothing is, or a function has no place in clusters.
    fn divide(&mut self, queues: &[Queue], persistent: &Persistent) -> Option<Divided> {
        let (shared, parts) = queues.split_first()?;
        let (together, functions) = persistent.clusters.as_ref()?;
        let steps = &mut self.divided;
        steps.clear();
        let all_blocks = together.count * CLUSTER_BLOCKS;
        let shared = steps.add(
            shared,
            functions,
            (all_blocks, together.parts * CLUSTER_BLOCKS),
        )?;
        let clusters = (together.count as usize).min(parts.len()).max(1);
        let mut divided: Option<Divided> = None;
        for cluster in 0..clusters {
            let first = steps.steps.len();
            for number in (cluster..parts.len()).step_by(clusters) {
                let sharing = (CLUSTER_BLOCKS, CLUSTER_BLOCKS);
                let sum = steps.add(&parts[number], functions, sharing)?;
                let cost = shared.cost(GRID_BARRIER) + sum.cost(CLUSTER_BARRIER);
                if divided.is_none_or(|found| cost > found.cost) {
                    divided = Some(Divided {
                        clusters: 0,
                        grid_steps: shared.steps as u32,
                        cost,
                        longest: (number, sum.steps as u64),
                    });
                }
            }
            let count = steps.steps.len() - first;
            if count > 0 {
                steps.clusters.push([first as u32, count as u32]);
            }
        }
        let used = steps.clusters.len() as u32;
        let divided = divided.filter(|_| used > 0)?;
        Some(Divided {
            clusters: used,
            ..divided
        })
    }
}

/// What is divided between clusters.
#[derive(Clone, Copy, Debug)]
struct Divided {
    /// That have something to do.
    clusters: u32,
    grid_steps: u32,
    /// What the part takes that takes longest, with all that parts share; and that part, and its steps.
    cost: u64,
    longest: (usize, u64),
}

impl Steps {
    fn clear(&mut self) {
        self.steps.clear();
        self.clusters.clear();
        self.launches.clear();
        self.arguments.clear();
    }

    /// Adds the steps of a queue, each of which so many blocks share, and as many processors on a card; nothing where a launch
    /// can be in no schedule.
    fn add(
        &mut self,
        queue: &Queue,
        functions: &Functions,
        (sharing, processors): (u32, u32),
    ) -> Option<Sum> {
        let mut sum = Sum {
            launches: 0,
            steps: 0,
            blocks: 0,
            most: 0,
            parts: 1,
            turns: 0,
        };
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
                        let function = functions.get(launch.function)?.as_ref()?;
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
                sum.launches += self.of_step.len();
                for stepped in &self.of_step {
                    sum.parts = common_multiple(sum.parts, stepped.parts.max(1), sharing);
                }
                let blocks = self.step()?;
                sum.steps += 1;
                sum.blocks += u64::from(blocks);
                sum.most = sum.most.max(blocks);
                sum.turns += u64::from(blocks.div_ceil(processors));
            }
        }
        Some(sum)
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

    /// Puts the parts one behind another; the header begins with these numbers of blocks, and of steps of the grid.
    fn write(
        &self,
        words: &mut Vec<u32>,
        [blocks, of_grid]: [u32; 2],
        padding: usize,
    ) -> Option<()> {
        let (steps, clusters) = (self.steps.len() as u32, self.clusters.len() as u32);
        let begin = size_of::<[u32; HEADER_WORDS]>()
            + size_of_val(&self.steps[..])
            + size_of_val(&self.clusters[..])
            + size_of_val(&self.launches[..]);
        u32::try_from(begin + size_of_val(&self.arguments[..])).ok()?;
        words.extend([0, blocks, of_grid, clusters, steps, 0]);
        words.extend(self.steps.iter().flatten());
        words.extend(self.clusters.iter().flatten());
        for [function, count, columns, at] in &self.launches {
            let at = begin as u32 + 8 * at;
            words.extend([*function, *count, *columns, at]);
        }
        for argument in &self.arguments {
            words.extend([*argument as u32, (argument >> 32) as u32]);
        }
        words.resize(words.len() + padding, 0);
        Some(())
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
        functions[5] = Some(Runs {
            number: 1,
            resident: None,
        });
        Persistent {
            blocks,
            functions,
            clusters: None,
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
            clusters: None,
        };
        let kernel = GpuKernel {
            launches: vec![GpuLaunch {
                functions: vec![function("small"), function("large")],
                resident: Some(function("resident")),
                clustered: None,
                beside: false,
            }],
            ..GpuKernel::default()
        };
        let mut persistent = Persistent::new(&flush, blocks, None);
        persistent.add(&flush, &kernel, &[vec![5, 6]]);
        persistent
    }

    fn blocks_of(schedule: &mut Schedule, queue: &Queue, persistent: &Persistent) -> Option<u32> {
        let scheduled = schedule.write(queue, &[], persistent);
        match scheduled?.grid {
            FlushGrid::Blocks(blocks) => Some(blocks),
            FlushGrid::Clusters(_) => None,
        }
    }

    #[test]
    fn a_block_has_the_same_columns_in_each_step() {
        let mut queue = Queue::default();
        for rows in [9, 2] {
            wave(&mut queue, &[(&[rows, 0], &[(7, 1)])]);
        }
        let mut schedule = Schedule::default();
        // Three parts of the columns by three tiles of rows, and by one.
        assert_eq!(blocks_of(&mut schedule, &queue, &resident(8)), Some(6));
        let begin = 4 * (6 + 2 * 2 + 2 * 4);
        let expected = [0, 9, 1, 3, 1, 9, 3, begin, 1, 3, 3, begin + 16];
        assert_eq!(schedule.words[6..18], expected);
        // Where there are fewer blocks than parts, they take turns.
        for (together, blocks) in [(2, 2), (3, 3), (5, 3), (100, 9)] {
            schedule.clear();
            assert_eq!(
                blocks_of(&mut schedule, &queue, &resident(together)),
                Some(blocks)
            );
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
        assert_eq!(blocks_of(&mut schedule, &queue, &resident(100)), Some(6));
        assert_eq!(schedule.words[10..13], [2, 6, 2]);
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
        assert_eq!(blocks_of(&mut schedule, &queue, &all), Some(15));
        let begin = 4 * (6 + 2 + 3 * 4);
        let [one, two, three] = [begin, begin + 8, begin + 16];
        let expected = [
            // One step of three launches, those with weights first.
            [0, 17].as_slice(),
            &[1, 9, 3, two],
            &[1, 3, 3, three],
            &[1, 5, 5, one],
        ];
        assert_eq!(schedule.words[6..20], expected.concat());
        // Parts of two functions that have no common multiple among the blocks: each begins at one of its own.
        let stepped = |parts, blocks| Stepped {
            parts,
            launch: [7, blocks, parts.max(1), 0],
        };
        let steps = &mut schedule.whole;
        steps.clear();
        steps.of_step = vec![stepped(0, 2), stepped(3, 6), stepped(4, 4)];
        assert_eq!(steps.step(), Some(14));
        let launches = [[7, 4, 4, 0], [NOTHING, 2, 1, 0], [7, 6, 3, 0], [7, 2, 1, 0]];
        assert_eq!(steps.launches, launches);
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
        assert_eq!(blocks_of(&mut schedule, &queue, &persistent(8)), Some(8));
        // The header, three steps and four launches.
        let begin = 4 * (6 + 3 * 2 + 4 * 4);
        let expected = [
            &[0, 8, 3, 0, 3, 0][..],
            &[0, 11, 2, 4, 3, 1],
            &[1, 6, 2, begin, 1, 5, 5, begin + 16],
            &[1, 4, 4, begin],
            &[1, 1, 1, begin + 24],
            &[9, 7, 2, 0, 3, 0, 4, 0],
            // Behind the last list, which is read as if it were longer.
            &[0, 0],
        ];
        assert_eq!(schedule.words, expected.concat());
        assert!(schedule.words.len() <= Schedule::room(&persistent(8), 4, 4, 0));
        // Blocks that would have nothing to do in any step are not launched.
        schedule.clear();
        assert_eq!(blocks_of(&mut schedule, &queue, &persistent(100)), Some(11));
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
        assert_eq!(blocks_of(&mut schedule, &queue, &persistent(8)), Some(6));
        // Two steps: three launches, and two.
        assert_eq!(schedule.words[..10], [0, 6, 2, 0, 2, 0, 0, 6, 3, 4]);
    }

    #[test]
    fn what_gains_nothing_is_launched_one_by_one() {
        let written = |calls: &[Call<'_>]| {
            let mut queue = Queue::default();
            wave(&mut queue, calls);
            blocks_of(&mut Schedule::default(), &queue, &persistent(8))
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
        assert_eq!(
            blocks_of(&mut Schedule::default(), &queue, &persistent(8)),
            None
        );
    }

    /// What has clusters: so many, and parts of the instances.
    fn clustered(clusters: u32, parts: u32) -> Persistent {
        let alone = persistent(100);
        let together = Clusters {
            count: clusters,
            parts,
        };
        Persistent {
            clusters: Some((together, alone.functions.clone())),
            ..alone
        }
    }

    /// A queue of waves of one call each, of so many blocks and with one argument.
    fn waves(blocks: &[u32]) -> Queue {
        let mut queue = Queue::default();
        for blocks in blocks {
            wave(&mut queue, &[(&[7], &[(*blocks, 1)])]);
        }
        queue
    }

    #[test]
    fn clusters_have_steps_of_their_own() {
        let whole = waves(&[3, 40, 24, 8]);
        let parts = [&[3][..], &[20, 24], &[20, 8, 8]].map(waves);
        let mut schedule = Schedule::default();
        let scheduled = schedule.write(&whole, &parts, &clustered(2, 2)).unwrap();
        assert_eq!(scheduled.grid, FlushGrid::Clusters(2));
        assert_eq!(scheduled.longest, Some((1, 3)));
        let begin = 4 * (6 + 6 * 2 + 2 * 2 + 6 * 4);
        let expected = [
            // One step of the grid, two clusters, six steps in all.
            &[0, 32, 1, 2, 6, 0][..],
            &[0, 3, 1, 20, 2, 24, 3, 20, 4, 8, 5, 8],
            &[1, 2, 3, 3],
            &[1, 3, 3, begin, 1, 20, 20, begin + 8, 1, 24, 24, begin + 16],
            &[
                1,
                20,
                20,
                begin + 24,
                1,
                8,
                8,
                begin + 32,
                1,
                8,
                8,
                begin + 40,
            ],
            &[7, 0].repeat(6),
            &[0, 0],
        ];
        assert_eq!(schedule.words, expected.concat());
        assert!(schedule.words.len() <= Schedule::room(&clustered(2, 2), 4, 4, 2));
        // One cluster computes the parts one after another; the longest is the same.
        schedule.clear();
        let alone = schedule.write(&whole, &parts, &clustered(1, 2)).unwrap();
        assert_eq!(
            (alone.grid, alone.longest),
            (FlushGrid::Clusters(1), Some((1, 3)))
        );
        assert_eq!(schedule.words[..6], [0, 16, 1, 1, 6, 0]);
        assert_eq!(schedule.words[18..20], [1, 5]);
    }

    #[test]
    fn what_is_faster_by_all_blocks_is_not_divided() {
        // All of it is one part's, which would take eight turns where the grid takes one.
        let whole = waves(&[128, 128]);
        let parts = [&[][..], &[128, 128], &[]].map(waves);
        let mut schedule = Schedule::default();
        let scheduled = schedule.write(&whole, &parts, &clustered(8, 8)).unwrap();
        assert_eq!(
            (scheduled.grid, scheduled.longest),
            (FlushGrid::Blocks(100), None)
        );
        assert_eq!(schedule.words[..6], [0, 100, 2, 0, 2, 0]);
    }
}
