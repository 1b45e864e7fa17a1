//! Where the functions of a flush have their shared memory.

use cohort_abi::gpu::GpuFunction;

use crate::gpu::lower_kernels_to_gpu::tile::resident::HELD_BYTES;

/// A function that a flush runs.
pub struct Run {
    pub function: GpuFunction,
    /// Whether its weights stay in shared memory.
    pub is_resident: bool,
    /// From which byte on these are kept, if the function says that; else from the beginning of its own shared memory.
    pub held_at: Option<i64>,
    /// How many it takes.
    pub arguments: usize,
}

/// What each function has of a flush's shared memory.
pub struct Memory {
    /// Bytes of a block.
    pub bytes: i64,
    /// Where the memory of each function begins.
    pub from: Vec<i64>,
    /// Whether the memory of those whose weights stay is that of the others, too.
    pub is_shared: bool,
    /// Where the orders of blocks begin, behind all of these.
    pub orders: i64,
}

impl Memory {
    /// Lays out the shared memory of the functions and `orders` bytes of orders, of which a block has at most `most` bytes;
    /// `None` if weights that stay do not fit.
    pub fn new(functions: &[Run], orders: i64, most: i64) -> Option<Memory> {
        let all = most;
        let most = all - orders;
        let bytes = |run: &Run| i64::from(run.function.shared_bytes);
        let of = |is_resident| {
            let all = functions.iter();
            all.filter(move |run| run.is_resident == is_resident)
        };
        let others = of(false).map(bytes).max().unwrap_or(0);
        let residents: i64 = of(true).map(bytes).sum();
        if of(true).any(|run| run.held_at.is_some()) {
            return Memory::placed(functions, others, orders, all);
        }
        // One behind another, and the others behind these; or in the same place, behind the word that says what is there.
        let (is_shared, first) = match of(true).count() {
            _ if residents + others <= most => (false, residents),
            1 if residents <= most && HELD_BYTES + others <= most => (true, HELD_BYTES),
            _ => return None,
        };
        let mut next = 0;
        let from = functions.iter().map(|run| match run.is_resident {
            true => {
                next += bytes(run);
                next - bytes(run)
            }
            false => first,
        });
        let from = from.collect();
        let end = (residents.max(first + others) as u64).next_multiple_of(16) as i64;
        Some(Memory {
            from,
            bytes: end + orders,
            is_shared,
            orders: end,
        })
    }
}

impl Memory {
    /// The same of functions that say where their weights are: behind what others need for as long as they run.
    fn placed(functions: &[Run], others: i64, orders: i64, most: i64) -> Option<Memory> {
        let residents = functions.iter().filter(|run| run.is_resident);
        let span = |run: &Run| Some((run.held_at?, i64::from(run.function.shared_bytes)));
        let mut spans: Vec<_> = residents.map(span).collect::<Option<_>>()?;
        spans.sort_unstable();
        let mut end = others;
        for (from, to) in spans {
            if from < end {
                return None;
            }
            end = to;
        }
        let end = (end as u64).next_multiple_of(16) as i64;
        (end + orders <= most).then(|| Memory {
            bytes: end + orders,
            from: vec![0; functions.len()],
            is_shared: false,
            orders: end,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::lower_kernels_to_gpu::function::MOST_SHARED;

    fn run(shared_bytes: u32, is_resident: bool) -> Run {
        let function = GpuFunction {
            symbol: String::new(),
            from_rows: 0,
            threads: 128,
            tile_rows_per_row: 1,
            tile_rows: 1,
            column_blocks: 1,
            shared_bytes,
            grid_stride: false,
            calls: None,
        };
        Run {
            function,
            is_resident,
            held_at: None,
            arguments: 0,
        }
    }

    #[test]
    fn weights_are_where_functions_say() {
        let memory = |runs: &[(u32, Option<i64>)]| {
            let runs = runs.iter().map(|(bytes, held_at)| Run {
                held_at: *held_at,
                ..run(*bytes, held_at.is_some())
            });
            Memory::new(&runs.collect::<Vec<_>>(), 0, MOST_SHARED)
                .map(|found| (found.bytes, found.from))
        };
        let two = [(4096, Some(3072)), (2048, None), (3072, Some(2048))];
        assert_eq!(memory(&two), Some((4096, vec![0; 3])));
        // In the way of each other, of another function, and of the end.
        assert_eq!(memory(&[(4096, Some(2048)), (3072, Some(2048))]), None);
        assert_eq!(memory(&[(4096, Some(2048)), (2064, None)]), None);
        assert_eq!(memory(&[(101_392, Some(2048))]), None);
    }

    #[test]
    fn weights_have_memory_of_their_own_where_there_is_room() {
        let memory = |runs: &[(u32, bool)]| {
            let runs: Vec<Run> = runs.iter().map(|(bytes, is)| run(*bytes, *is)).collect();
            Memory::new(&runs, 0, MOST_SHARED)
                .map(|found| (found.bytes, found.from, found.is_shared))
        };
        assert_eq!(
            memory(&[(64, false), (32, false)]),
            Some((64, vec![0, 0], false))
        );
        let two = [(1024, true), (64, false), (2048, true), (512, false)];
        assert_eq!(memory(&two), Some((3584, vec![0, 3072, 1024, 3072], false)));
        assert_eq!(
            memory(&[(81_920, true), (19_456, false)]),
            Some((101_376, vec![0, 81_920], false))
        );
        assert_eq!(
            memory(&[(81_920, true), (40_000, false)]),
            Some((81_920, vec![0, 16], true))
        );
        assert_eq!(
            memory(&[(81_920, true), (101_360, false)]),
            Some((101_376, vec![0, 16], true))
        );
        assert_eq!(memory(&[(81_920, true), (101_376, false)]), None);
        assert_eq!(memory(&[(81_920, true), (19_456, true), (16, false)]), None);
    }

    #[test]
    fn orders_are_behind_all_else() {
        let memory = |runs: &[Run], orders| {
            let found = Memory::new(runs, orders, MOST_SHARED);
            found.map(|found| (found.orders, found.bytes))
        };
        assert_eq!(memory(&[run(0, false)], 160), Some((0, 160)));
        assert_eq!(memory(&[run(100, false)], 160), Some((112, 272)));
        let two = [run(81_920, true), run(19_296, false)];
        assert_eq!(memory(&two, 160), Some((101_216, 101_376)));
        // In the place of what stays, and then no more.
        assert_eq!(memory(&two, 176), Some((81_920, 82_096)));
        assert_eq!(memory(&[run(101_376, true)], 16), None);
        let placed = Run {
            held_at: Some(1024),
            ..run(2060, true)
        };
        assert_eq!(memory(&[placed], 32), Some((2064, 2096)));
    }
}
