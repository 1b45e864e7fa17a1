use cohort_abi::gpu::{GpuFlush, GpuFunction, GpuKernel, GpuLaunch};

use super::*;
use crate::device::persistent::Runs;
use crate::device::queue::Launch;
use crate::device::{Clusters, Piece};

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
        grid_stride: false,
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
            grouped: None,
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

/// What has clusters: their number, and parts of the instances.
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

/// A queue of waves of one call each, with these numbers of blocks and one argument.
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
