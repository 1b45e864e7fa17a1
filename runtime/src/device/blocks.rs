//! What the blocks of kernels over calls compute: for each launch a list of calls and tiles.
//!
//! Calls differ in their lengths, so no formula of a block's number would tell its call; the list is
//! made with the other lists of a flush, and sent with them. Its order has no influence on any bit.

use std::cmp::Reverse;

use cohort_abi::gpu::{CallTiles, GpuKernel, GpuLaunch};

use super::Problem;

/// Blocks that a grid has at most.
const MOST: u64 = (1 << 31) - 1;

/// The lists of a flush, one behind another.
#[derive(Debug, Default)]
pub struct Blocks {
    pub words: Vec<u32>,
    lists: Vec<List>,
    calls: Vec<(u64, u32, u32)>,
}

/// The blocks of one launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct List {
    /// Of the launch's functions, the one that they are for.
    pub function: usize,
    /// Where it begins in the words.
    pub start: usize,
    /// Its entries, two words each.
    pub blocks: u32,
}

impl Blocks {
    pub fn clear(&mut self) {
        self.words.clear();
        self.lists.clear();
    }

    /// The number that the next list gets.
    pub fn next(&self) -> usize {
        self.lists.len()
    }

    /// The lists of a kernel's launches, from the first one's number on.
    pub fn of(&self, first: usize, kernel: &GpuKernel) -> &[List] {
        let lists = self.lists.get(first..first + kernel.launches.len());
        lists.unwrap_or_default()
    }

    /// Adds the lists of a kernel's launches for some calls; `length` gives a call's length by operand.
    pub fn add(
        &mut self,
        kernel: &GpuKernel,
        calls: u32,
        length: &dyn Fn(usize, u32) -> u64,
    ) -> Result<(), Problem> {
        for launch in &kernel.launches {
            let (function, tiles, blocks) = choose(launch, calls, length)?;
            self.lists.push(List {
                function,
                start: self.words.len(),
                blocks,
            });
            self.calls.clear();
            for call in 0..calls {
                let of_call = |operand| length(operand, call);
                let count = tiles.count(of_call) as u32;
                self.calls.push((tiles.work.count(of_call), call, count));
            }
            self.calls
                .sort_by_key(|(work, call, _)| (Reverse(*work), *call));
            self.words.reserve(2 * blocks as usize);
            for (_, call, count) in &self.calls {
                // Of a triangle's tiles, the last are the longest.
                for tile in (0..*count).rev() {
                    self.words.extend([*call, tile]);
                }
            }
        }
        Ok(())
    }
}

/// The last function whose blocks are enough, and how many they are.
fn choose<'l>(
    launch: &'l GpuLaunch,
    calls: u32,
    length: &dyn Fn(usize, u32) -> u64,
) -> Result<(usize, &'l CallTiles, u32), Problem> {
    let mut functions = launch.functions.iter().enumerate().rev();
    let found = functions.find_map(|(number, function)| {
        let tiles = function.calls.as_ref()?;
        let each = (0..calls).map(|call| tiles.count(|operand| length(operand, call)));
        let blocks = each.fold(0, u64::saturating_add);
        (function.from_rows <= blocks || number == 0).then_some((number, tiles, blocks))
    });
    match found {
        Some((number, tiles, blocks)) if blocks <= MOST => Ok((number, tiles, blocks as u32)),
        Some((.., blocks)) => Err(Problem::NoCode(format!(
            "{calls} calls need {blocks} blocks, more than a grid has (try a smaller --batch)"
        ))),
        None => Err(Problem::NoCode(format!("no function for {calls} calls"))),
    }
}

#[cfg(test)]
mod tests {
    use cohort_abi::gpu::{GpuFunction, TiledDim};
    use cohort_abi::manifest::Extent;

    use super::*;

    fn function(from_rows: u64, tile: u64) -> GpuFunction {
        let length = Extent {
            lengths: vec![0],
            times: 1,
        };
        GpuFunction {
            symbol: String::new(),
            from_rows,
            threads: 128,
            tile_rows_per_row: 0,
            tile_rows: 1,
            column_blocks: 1,
            shared_bytes: 0,
            grid_stride: false,
            calls: Some(CallTiles {
                dims: vec![TiledDim {
                    length: length.clone(),
                    tile,
                }],
                work: length,
            }),
        }
    }

    fn listed(lengths: &[u64]) -> Blocks {
        let kernel = GpuKernel {
            launches: vec![GpuLaunch {
                functions: vec![function(0, 2), function(3, 10)],
                grouped: None,
                resident: None,
                clustered: None,
                beside: false,
            }],
            ..GpuKernel::default()
        };
        let mut blocks = Blocks::default();
        let length = |_: usize, call: u32| lengths[call as usize];
        blocks.add(&kernel, lengths.len() as u32, &length).unwrap();
        blocks
    }

    #[test]
    fn the_longest_calls_come_first_and_empty_ones_not_at_all() {
        let blocks = listed(&[1, 0, 3]);
        assert_eq!(blocks.words, [2, 1, 2, 0, 0, 0]);
        assert_eq!((blocks.lists[0].function, blocks.lists[0].blocks), (0, 3));
    }

    #[test]
    fn large_tiles_are_taken_where_they_are_enough() {
        let blocks = listed(&[10, 11]);
        assert_eq!(blocks.words, [1, 1, 1, 0, 0, 0]);
        assert_eq!((blocks.lists[0].function, blocks.lists[0].blocks), (1, 3));
        assert_eq!(listed(&[10, 10]).lists[0].function, 0);
    }
}
