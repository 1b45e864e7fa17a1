//! What a flush launches, as the one function reads it that runs whole flushes
//! ([`cohort_abi::gpu::flush`]), and whether that is worth while.

use std::cmp::Reverse;

use cohort_abi::gpu::flush::{
    CLUSTER_BLOCKS, CLUSTER_WORDS, HEADER_WORDS, LAUNCH_WORDS, NOTHING, STEP_WORDS, most_steps,
};

use super::FlushGrid;
use super::persistent::{Functions, Persistent};
use super::queue::{Queue, waves_of};

/// Blocks of a step, on average, up to which a flush is one launch. A card runs a few hundred at a time,
/// and a launch takes about as long as these do: with more of them its latency does not matter, and each
/// function does better with the registers and the shared memory of its own launch. The number is the
/// same for every device, so that the simulator runs what a card does.
const MOST_BLOCKS_A_STEP: u64 = 1024;

/// What a *turn* takes, in which each of the processors that share a step computes one of its blocks, and what barriers do, in
/// nanoseconds: by the model of time (docs/gpu-time.md), of a card with this number of processors.
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
    /// What it takes, where a barrier takes `barrier` nanoseconds.
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

impl Schedule {
    /// Empties it.
    pub fn clear(&mut self) {
        self.words.clear();
    }

    /// Upper bound in words of the schedule of some calls, each divided into `parts` parts.
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

    /// Adds the steps of a queue, each of which `sharing` blocks share, and `processors` processors of a card; nothing where a launch
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
mod tests;
