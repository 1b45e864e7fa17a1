//! The same bits whatever the batch, the order, the threads.

use cohort_runtime::{Batch, Config, Policy};

use crate::program::{Tree, expected, run, tree_session};

fn trees(count: usize) -> Vec<Tree> {
    let mut seed = 7;
    (0..count)
        .map(|index| Tree::random(&mut seed, 1 + (index as u32 * 5) % 40))
        .collect()
}

fn lines(trees: &[Tree]) -> String {
    let line = |(index, tree): (usize, &Tree)| {
        format!("{{\"id\": \"s{index}\", \"t\": {}}}\n", tree.json())
    };
    trees.iter().enumerate().map(line).collect()
}

fn config(batch: Batch, threads: usize) -> Config {
    Config {
        batch,
        threads,
        ..Config::default()
    }
}

fn numbers(line: &str) -> Vec<f32> {
    let value: serde_json::Value = serde_json::from_str(line).unwrap();
    value["output"][0]
        .as_array()
        .unwrap()
        .iter()
        .map(|number| number.to_string().parse().unwrap())
        .collect()
}

#[test]
fn results_are_those_of_the_program() {
    let trees = trees(50);
    let (output, stats) = run(&mut tree_session(Config::default()), &lines(&trees));
    assert_eq!((stats.instances, stats.failed), (50, 0));
    for (tree, line) in trees.iter().zip(&output) {
        assert_eq!(numbers(line), expected(tree));
    }
}

#[test]
fn neither_batches_nor_threads_change_a_bit() {
    let trees = trees(200);
    let input = lines(&trees);
    let (reference, stats) = run(&mut tree_session(config(Batch::Count(1), 1)), &input);
    assert_eq!(stats.flushes, 200);
    for threads in [1, 2, 3] {
        for batch in [
            Batch::Count(3),
            Batch::Count(64),
            Batch::All,
            Batch::Unbatched,
        ] {
            let (output, _) = run(&mut tree_session(config(batch, threads)), &input);
            assert_eq!(output, reference, "{batch:?} on {threads} threads");
        }
    }
}

#[test]
fn neither_schedulers_nor_copies_of_operands_change_a_bit() {
    // Of more trees, a single launch saved would not be worth looking at all calls.
    let trees = trees(25);
    let input = lines(&trees);
    let calls: u64 = trees.iter().map(Tree::nodes).sum();
    let (reference, by_depth) = run(&mut tree_session(Config::default()), &input);
    for scheduler in [
        Policy::Agenda,
        Policy::Lookahead,
        Policy::Instances,
        Policy::Depth,
        Policy::Auto,
    ] {
        for (threads, share_calls, gather_fusion) in [(1, true, true), (2, false, false)] {
            let mut session = tree_session(Config {
                threads,
                share_calls,
                gather_fusion,
                scheduler,
                ..Config::default()
            });
            let (output, stats) = run(&mut session, &input);
            assert_eq!(output, reference, "{scheduler:?}");
            let launches = stats.kernel_launches;
            match scheduler {
                // So little is computed that there is nothing to choose.
                Policy::Auto | Policy::Depth => {
                    assert_eq!(launches, by_depth.kernel_launches);
                }
                // Nodes of two empty trees lie as deep as leaves, and can wait for others.
                Policy::Agenda | Policy::Lookahead => {
                    assert_eq!(launches, by_depth.kernel_launches - 1, "{scheduler:?}");
                }
                // Trees of one form share launches, others do not.
                Policy::Instances => {
                    assert!(launches < calls && launches > by_depth.kernel_launches);
                    assert_eq!(stats.rows, calls);
                }
            }
        }
    }
}

#[test]
fn neither_order_nor_company_change_a_bit() {
    let trees = trees(30);
    let (reference, _) = run(&mut tree_session(Config::default()), &lines(&trees));
    let mut twice: Vec<Tree> = trees.iter().rev().cloned().collect();
    twice.extend(trees.iter().cloned());
    let (output, _) = run(&mut tree_session(Config::default()), &lines(&twice));
    for (index, line) in reference.iter().enumerate() {
        assert_eq!(numbers(&output[29 - index]), numbers(line));
        assert_eq!(numbers(&output[30 + index]), numbers(line));
    }
}

#[test]
fn unbatched_launches_every_call_alone() {
    let trees = trees(20);
    let calls: u64 = trees.iter().map(Tree::nodes).sum();
    let (_, alone) = run(
        &mut tree_session(config(Batch::Unbatched, 1)),
        &lines(&trees),
    );
    assert_eq!((alone.kernel_launches, alone.rows), (calls, calls));
    let (_, together) = run(&mut tree_session(config(Batch::All, 1)), &lines(&trees));
    assert_eq!(together.rows, calls);
    assert!(together.mean_rows_per_launch > 4.0, "{together:?}");
    assert_eq!(together.kernels[0].rows + together.kernels[1].rows, calls);
}

#[test]
fn a_batch_ends_when_its_memory_is_used() {
    let trees = trees(100);
    let input = lines(&trees);
    let (reference, _) = run(&mut tree_session(Config::default()), &input);
    let mut small = tree_session(Config {
        batch: Batch::All,
        batch_memory: 20_000,
        ..Config::default()
    });
    let (output, stats) = run(&mut small, &input);
    assert_eq!(output, reference);
    assert!(stats.flushes > 5, "{}", stats.flushes);
}

#[test]
fn an_instance_that_finds_no_bucket_left_gets_a_batch_of_its_own() {
    // Two sources and one input bucket are always there; the chain needs 17 more, the leaf one.
    let chain = |nodes: usize| {
        let chain = (0..nodes).fold(Tree::Empty, |tree, _| {
            Tree::Node(Box::new(Tree::Empty), Box::new(tree))
        });
        chain.json()
    };
    let input = format!(
        "{{\"t\": {{\"Leaf\": [1]}}}}\n{{\"t\": {}}}\n{{\"t\": {}}}\n{{\"t\": \"Empty\"}}\n",
        chain(17),
        chain(18)
    );
    let (reference, _) = run(&mut tree_session(Config::default()), &input);
    let mut small = tree_session(Config {
        max_buckets: 20,
        ..Config::default()
    });
    let (output, stats) = run(&mut small, &input);
    assert_eq!((stats.instances, stats.failed), (4, 1));
    for index in [0, 1, 3] {
        assert_eq!(output[index], reference[index]);
    }
    assert!(output[2].contains("node_limit"), "{}", output[2]);
}

#[test]
fn a_benchmark_repeats_and_writes_once() {
    let trees = trees(40);
    let input = lines(&trees);
    for batch in [Batch::Count(7), Batch::All, Batch::Unbatched] {
        let mut session = tree_session(config(batch, 1));
        let (reference, plain) = run(&mut session, &input);
        let mut output = Vec::new();
        let stats = session
            .benchmark(input.as_bytes(), &mut output, 3, false, &mut |_| {})
            .unwrap();
        let output = String::from_utf8(output).unwrap();
        assert_eq!(output.lines().collect::<Vec<_>>(), reference);
        assert_eq!(stats.repetitions.len(), 3);
        assert_eq!(stats.kernel_launches, plain.kernel_launches);
        assert_eq!(stats.instances, 40);
    }
}

#[test]
fn nothing_in_nothing_out() {
    let mut session = tree_session(Config::default());
    for input in ["", "\n\n  \n"] {
        let (output, stats) = run(&mut session, input);
        assert!(output.is_empty());
        assert_eq!((stats.instances, stats.kernel_launches), (0, 0));
        assert_eq!(stats.mean_rows_per_launch, 0.0);
    }
}
