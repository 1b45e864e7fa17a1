use std::ffi::c_void;

use cohort_abi::manifest::{self, CallShape, Division, Extent, Manifest, Operand};
use cohort_abi::{KernelFn, OperandRef};

use super::*;
use crate::execute::ragged::RaggedLaunches;
use crate::program::pack::pack_constants;

const RULE: TableRule = TableRule {
    items: Rule {
        threads: 2,
        remapping: true,
        most_work: u64::MAX,
    },
    is_padded: false,
    keeps_padding: true,
    is_shared: true,
    has_pieces: true,
};

/// A projection, attention over calls and a projection again, `layers` times.
fn layers(layers: usize) -> Vec<Kernel> {
    let n = |times| Extent {
        lengths: vec![0],
        times,
    };
    let squared = Extent {
        lengths: vec![0, 0],
        times: 1 << 20,
    };
    let rows = |extents: Vec<Extent>| CallShape {
        extents,
        rows: Some(0),
        ..CallShape::default()
    };
    let over_rows = CallShape {
        fused: true,
        ..rows(vec![n(1)])
    };
    let over_calls = CallShape {
        unit: Unit::Calls,
        flops: vec![squared],
        division: Some(Division {
            length: 0,
            tile: 2,
            shared: 0,
            rising: vec![],
        }),
        ..rows(vec![n(1)])
    };
    let kernel = |name: &str, call: &CallShape| manifest::Kernel {
        name: name.to_owned(),
        symbol: name.to_owned(),
        location: String::new(),
        operands: vec![Operand::Length, Operand::Ragged { pool: 0, extent: 0 }],
        results: vec![0],
        constants: vec![],
        scratch_bytes: 0,
        row_tile: 1,
        flops_per_row: 5,
        row_products: vec![],
        call: call.clone(),
        gpu: None,
    };
    let layer = [&over_rows, &over_calls, &over_rows];
    let kernels = (0..layers).flat_map(|_| layer.map(|call| kernel("k", call)));
    let manifest = Manifest {
        kernels: kernels.collect(),
        row_pools: vec![manifest::RowPool {
            elem: manifest::Elem::F32,
            shape: vec![4],
        }],
        ..crate::memory::arena::tests::manifest()
    };
    let constants = pack_constants(&manifest, &[]).unwrap();
    let functions = vec![nothing as KernelFn; manifest.kernels.len()];
    Kernel::all(&manifest, &functions, &constants)
}

unsafe extern "C" fn nothing(
    _: i64,
    _: i64,
    _: *const OperandRef,
    _: *const *mut c_void,
    _: *const *const c_void,
    _: *mut c_void,
) {
}

/// A flush of all kernels over calls of these lengths: the tables of each.
fn flush(tables: &mut Tables, kernels: &[Kernel], lengths: &[u32]) -> Vec<Found> {
    tables.begin_flush();
    let words = [&[lengths.len() as u32], lengths].concat();
    let rows = lengths.iter().sum();
    let each = kernels
        .iter()
        .map(|kernel| tables.find(kernel, &words, rows, |_| 16));
    each.map(Option::unwrap).collect()
}

/// Everything that launches read.
fn read(tables: &Tables, found: &[Found]) -> String {
    let each = found.iter().map(|found| {
        let rows = (
            tables.starts(*found),
            found.spans.map(|spans| &tables.spans[spans]),
        );
        let work = (tables.work(*found), tables.tasks(*found));
        format!("{:?} {rows:?} {work:?}", tables.lengths(*found, 0))
    });
    each.collect()
}

#[test]
fn six_layers_have_the_tables_of_one() {
    let lengths = [3, 0, 4, 1];
    let mut one = Tables::new(RULE);
    let first = flush(&mut one, &layers(1), &lengths);
    assert_eq!(one.lengths(first[1], 0), lengths);
    let spans = [(0, 3), (3, 0), (3, 4), (7, 1)];
    assert_eq!(one.all_spans(first[0]), spans);
    assert_eq!(one.starts(first[1]).unwrap(), [0, 3, 3, 7]);
    // The lengths; first rows; the rows of each call; work of either kind.
    assert_eq!(one.counts(), TableCounts { made: 5, shared: 4 });
    let mut six = Tables::new(RULE);
    let found = flush(&mut six, &layers(6), &lengths);
    let counts = TableCounts {
        made: 5,
        // Each of a layer's three kernels asks for three.
        shared: 6 * 9 - 5,
    };
    assert_eq!(six.counts(), counts);
    let mut apart = Tables::new(TableRule {
        is_shared: false,
        ..RULE
    });
    let found_apart = flush(&mut apart, &layers(6), &lengths);
    let counts = TableCounts {
        made: 6 * 9,
        shared: 0,
    };
    assert_eq!(apart.counts(), counts);
    assert_eq!(read(&six, &found), read(&apart, &found_apart));
    assert_eq!(read(&six, &found[15..]), read(&one, &first));
}

#[test]
fn lengths_in_another_order_are_others_and_are_found_again_until_the_batch_ends() {
    let kernels = layers(1);
    let mut tables = Tables::new(RULE);
    let all = [&[3, 4, 1][..], &[4, 3, 1], &[3, 4], &[], &[3, 4, 1]];
    let found = all.map(|lengths| flush(&mut tables, &kernels, lengths));
    assert_eq!(found[0], found[4]);
    for (at, one) in found[..4].iter().enumerate() {
        let mut alone = Tables::new(RULE);
        let found = flush(&mut alone, &kernels, all[at]);
        assert_eq!(read(&tables, one), read(&alone, &found));
    }
    tables.clear();
    tables.clear_counts();
    flush(&mut tables, &kernels, all[0]);
    assert_eq!(tables.counts(), TableCounts { made: 5, shared: 4 });
}

#[test]
fn tables_that_became_too_large_are_dropped() {
    let kernels = layers(1);
    let mut tables = Tables::new(RULE);
    let long: Vec<u32> = (0..MOST_WORDS as u32 / 4).map(|call| call % 2).collect();
    flush(&mut tables, &kernels, &[3, 4]);
    flush(&mut tables, &kernels, &long);
    assert!(tables.size > MOST_WORDS);
    let found = flush(&mut tables, &kernels, &[3, 4]);
    assert!(tables.size < 100);
    assert_eq!(tables.starts(found[1]).unwrap(), [0, 3]);
}

#[test]
fn other_rows_than_there_is_room_for_are_refused() {
    let kernels = layers(1);
    let mut tables = Tables::new(RULE);
    assert_eq!(tables.find(&kernels[1], &[2, 3, 4], 8, |_| 16), None);
    let mut padded = Tables::new(TableRule {
        is_padded: true,
        ..RULE
    });
    let found = padded.find(&kernels[0], &[2, 3, 4], 8, |_| 16).unwrap();
    assert_eq!(padded.spans(&kernels[0], found).unwrap(), [(0, 3), (4, 4)]);
}

#[test]
fn lists_count_from_a_row_and_are_made_only_where_rows_do_not_lie_in_one_piece() {
    let kernels = layers(2);
    let mut tables = Tables::new(RULE);
    let found = flush(&mut tables, &kernels, &[2, 0, 2, 1]);
    let (kernel, of) = (&kernels[0], found[0]);
    let run = tables.expand(kernel, 1, of, &[10, 77, 12, 14]);
    assert_eq!(run, Run::OnePiece { first: 10 });
    let before = tables.counts();
    let rows = |tables: &Tables, run| match run {
        Run::Listed { first, list } => tables.list(list).iter().map(|row| first + row).collect(),
        _ => vec![],
    };
    let run = tables.expand(kernel, 1, of, &[10, 77, 30, 2]);
    assert_eq!(rows(&tables, run), [10, 11, 30, 31, 2]);
    let again = tables.repeat(kernel, 1, of, &[10, 77, 30, 2]);
    assert_eq!(rows(&tables, again), [10, 10, 30, 30, 2]);
    // The next layer's rows lie as these do.
    let next = tables.expand(&kernels[3], 1, found[3], &[110, 5, 130, 102]);
    assert_eq!(rows(&tables, next), [110, 111, 130, 131, 102]);
    let counts = tables.counts();
    assert_eq!(
        (counts.made - before.made, counts.shared - before.shared),
        (3, 3)
    );
    // Equal rows of others than these lengths are another list.
    let other = flush(&mut tables, &kernels, &[1, 1, 1, 1]);
    let run = tables.expand(kernel, 1, other[0], &[10, 77, 30, 2]);
    assert_eq!(rows(&tables, run), [10, 77, 30, 2]);
}

#[test]
fn long_calls_are_computed_one_by_one_if_they_have_no_products() {
    let mut kernels = layers(1);
    let mut tables = Tables::new(RULE);
    let mut run = |kernels: &[Kernel], lengths: &[u32]| {
        let found = flush(&mut tables, kernels, lengths)[0];
        tables.expand(&kernels[0], 1, found, &[10, 77, 300, 2])
    };
    assert!(matches!(
        run(&kernels, &[60, 0, 60, 20]),
        Run::Listed { .. }
    ));
    kernels[0].flops_per_row = 0;
    assert_eq!(run(&kernels, &[60, 0, 60, 20]), Run::Pieces);
    assert!(matches!(
        run(&kernels, &[60, 0, 40, 20]),
        Run::Listed { .. }
    ));
}

#[test]
fn calls_are_divided_between_the_threads_that_there_are_now() {
    let of_threads = |threads| TableRule {
        items: Rule {
            threads,
            ..RULE.items
        },
        ..RULE
    };
    let (kernels, lengths) = (layers(1), [61, 3, 28]);
    let flush = |tables: &mut Tables| {
        let found = flush(tables, &kernels, &lengths);
        read(tables, &found)
    };
    let of_one = flush(&mut Tables::new(of_threads(1)));
    let of_two = flush(&mut Tables::new(of_threads(2)));
    assert_ne!(of_one, of_two);
    let mut tables = Tables::new(of_threads(1));
    assert_eq!(flush(&mut tables), of_one);
    tables.set_threads(2);
    assert_eq!(flush(&mut tables), of_two);
}

#[test]
fn calls_without_rows_begin_where_others_do() {
    let kernels = layers(1);
    let mut launches = RaggedLaunches::default();
    let operand = 1;
    for (given, firsts) in [
        ([None, Some(7), None, Some(3)], [7, 7, 7, 3]),
        ([Some(5), Some(0), None, None], [5, 0, 5, 5]),
        ([None; 4], [0; 4]),
    ] {
        let launch = launches.add(&kernels[1].form, 4);
        for (call, first) in given.into_iter().enumerate() {
            launches.note_first(launch, 0, call, Some(9));
            launches.note_first(launch, operand, call, first);
        }
        launches.place_empty(launch);
        assert_eq!(launches.firsts(launch, operand), firsts);
        assert_eq!(launches.firsts(launch, 0), [9; 4]);
    }
}
