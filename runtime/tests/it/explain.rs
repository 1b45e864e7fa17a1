//! Explanations: what was lost is found where it was lost, and nothing where nothing was.

use cohort_runtime::abi::manifest::{RowProduct, Source};
use cohort_runtime::report::explain::{Cause, Explanation};
use cohort_runtime::{Batch, Config, Policy, Program, Session};

use crate::program::{Tree, run, tree_functions, tree_manifest, tree_weights};
use crate::walk::{WALK, line, walk_session};

fn explain(session: &mut Session, input: &str) -> Explanation {
    session.survey();
    let (_, stats) = run(session, input);
    session.explain(&stats).unwrap()
}

/// Trees of two kinds of node: a leaf and a chain, so that nodes lie at different depths.
fn chains(lengths: &[usize]) -> String {
    let chain = |length: &usize| {
        let end = Tree::Node(Box::new(Tree::Leaf(1)), Box::new(Tree::Leaf(2)));
        let tree = (0..*length).fold(end, |tree, _| {
            Tree::Node(Box::new(Tree::Empty), Box::new(tree))
        });
        format!("{{\"t\": {}}}\n", tree.json())
    };
    lengths.iter().map(chain).collect()
}

fn session(scheduler: Policy) -> Session {
    let mut manifest = tree_manifest();
    // The row that an empty tree stands for, as if it were a parameter that a product reads.
    manifest.kernels[1].row_products = vec![RowProduct {
        operand: 0,
        flops: 250_000,
    }];
    manifest.params.push(manifest.params[0].clone());
    manifest.params[2].name = "whole".to_owned();
    manifest.params[2].shape = vec![4];
    manifest.sources[0] = Source::Whole { param: 2, pool: 0 };
    let program = Program::new(manifest, Box::new(tree_functions())).unwrap();
    let mut tensors = crate::program::tree_tensors();
    tensors.push(("whole", vec![4], vec![0.5; 4]));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.safetensors");
    crate::program::write_weights(&path, &tensors);
    let weights = cohort_runtime::Weights::open(&path).unwrap();
    let config = Config {
        batch: Batch::All,
        scheduler,
        ..Config::default()
    };
    Session::new(program, &weights, config).unwrap()
}

#[test]
fn a_matrix_that_is_a_parameter_is_told_with_the_work_that_it_costs() {
    let explanation = explain(&mut session(Policy::Depth), &chains(&[0, 2, 3]));
    let losses = explanation.losses.iter();
    let loss = losses
        .clone()
        .find(|loss| loss.cause == Cause::UnsharedMatrix)
        .unwrap();
    // Five of the eight nodes have an empty tree on their left.
    assert_eq!(
        (loss.location.as_str(), loss.flops),
        ("trees.coh:4:5", 5 * 250_000)
    );
    assert!(loss.why.contains("in 5 of 8 rows"), "{}", loss.why);
    let helps = "a function for each parameter helps";
    assert!(loss.why.contains(helps), "{}", loss.why);
    assert!(loss.seconds.unwrap() > 0.0);
    assert_eq!(losses.count(), 1, "chains are as few launches as can be");
}

#[test]
fn calls_that_could_have_waited_are_told_and_gone_with_the_agenda() {
    // A node of two empty trees lies as deep as a leaf.
    let two_empty = Tree::Node(Box::new(Tree::Empty), Box::new(Tree::Empty));
    let input = chains(&[1, 1]) + &format!("{{\"t\": {}}}\n", two_empty.json());
    let misaligned = |scheduler| {
        let program = Program::new(tree_manifest(), Box::new(tree_functions())).unwrap();
        let config = Config {
            scheduler,
            ..Config::default()
        };
        let mut session = Session::new(program, &tree_weights(), config).unwrap();
        let explanation = explain(&mut session, &input);
        assert_eq!(explanation.fewest_launches, Some(3));
        for loss in &explanation.losses {
            let helps = "`--scheduler lookahead` may align them, or a `phase`";
            assert!(loss.why.contains(helps), "{}", loss.why);
        }
        let losses = explanation.losses.into_iter();
        losses
            .map(|loss| (loss.cause, loss.block, loss.launches))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        misaligned(Policy::Depth),
        [(Cause::Misalignment, Some("node".to_owned()), 1)]
    );
    assert_eq!(misaligned(Policy::Agenda), []);
}

#[test]
fn decisions_are_told_with_how_many_wait() {
    let input: String = (0..40).map(|seed| line(seed, WALK)).collect();
    let mut session = walk_session(Config::default());
    let explanation = explain(&mut session, &input);
    let found = explanation
        .losses
        .iter()
        .find(|l| l.cause == Cause::Decision);
    let loss = found.unwrap();
    assert!(!loss.location.is_empty() && loss.block.is_none());
    assert!(loss.why.contains("waits for this decision"), "{}", loss.why);
    assert!(loss.why.contains("`--in-flight`"), "{}", loss.why);
    let shares: f64 = explanation.blocks.iter().map(|block| block.share).sum();
    assert!((shares - 1.0).abs() < 1e-9);
    for block in &explanation.blocks {
        for operand in block.operands.iter().filter(|operand| !operand.is_scalar) {
            let modes = operand.modes;
            let all = modes.contiguous + modes.identical + modes.gathered;
            assert_eq!(all, block.launches, "every launch has one mode an operand");
        }
    }
}
