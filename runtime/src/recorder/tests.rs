use cohort_abi::manifest::{Kernel, Operand};

use super::buckets::MAX_PHASE;
use super::*;
use crate::limits::Limits;

#[test]
fn the_context_comes_first() {
    assert_eq!(std::mem::offset_of!(Recorder, state), 0);
    assert_eq!(std::mem::offset_of!(State, context), 0);
}

/// A kernel of which nothing but this is known.
pub(crate) fn kernel(operands: Vec<Operand>, results: Vec<usize>) -> Kernel {
    Kernel {
        name: String::new(),
        symbol: String::new(),
        location: String::new(),
        operands,
        results,
        constants: vec![],
        scratch_bytes: 0,
        row_tile: 1,
        flops_per_row: 0,
        row_products: vec![],
        call: Default::default(),
        gpu: None,
    }
}

/// A recorder for a kernel with one operand, on which calls are made as compiled code would.
struct Calls(Box<Recorder>);

impl Calls {
    fn new() -> Calls {
        Calls::of(crate::memory::arena::tests::manifest(), false)
    }

    /// Its operands are rows of a table, whose equal calls are shared.
    fn sharing() -> Calls {
        let mut manifest = crate::memory::arena::tests::manifest();
        manifest.params.push(cohort_abi::manifest::Param {
            name: String::new(),
            elem: cohort_abi::manifest::Elem::I32,
            shape: vec![8, 2],
            stored: None,
        });
        manifest
            .sources
            .push(cohort_abi::manifest::Source::Table { param: 0, pool: 0 });
        Calls::of(manifest, true)
    }

    fn of(mut manifest: Manifest, share: bool) -> Calls {
        let row = Operand::Row { pool: 0 };
        manifest.kernels.push(kernel(vec![row], vec![0]));
        let grouping = Grouping::ByDepth { share };
        Calls(Recorder::new(
            &manifest,
            Limits::default(),
            100,
            grouping,
            0,
        ))
    }

    /// Gives a handle of the table, if there is one, or of an input.
    fn begin(&mut self) -> Handle {
        self.0.begin_instance(0, 0);
        let numbering = self.0.numbering;
        let bucket = match numbering.sources {
            0 => numbering.input(0, 0),
            _ => 0,
        };
        Handle::new(bucket as u32, 0, 0)
    }

    fn call(&mut self, operand: Handle) -> Handle {
        // SAFETY: the kernel has one operand.
        Handle(unsafe { self.0.record(0, &operand.0) })
    }

    fn ghost(&mut self, handle: Handle, levels: u32) -> Handle {
        // SAFETY: there are no limits that it could meet.
        Handle(unsafe { self.0.ghost(handle.0, levels) })
    }

    fn key(&self, handle: Handle) -> (u32, u32) {
        let bucket = handle.bucket() as usize;
        (self.0.buckets.phase(bucket), self.0.buckets.depth(bucket))
    }
}

#[test]
fn phases_count_their_own_depths_and_share_buckets() {
    let mut calls = Calls::new();
    let mut last = Vec::new();
    for depth in [3, 5] {
        let mut handle = calls.begin();
        for _ in 0..depth {
            handle = calls.call(handle);
        }
        assert_eq!(calls.key(handle), (0, depth));
        calls.0.state.context.phase = 1;
        let first = calls.call(handle);
        assert_eq!(calls.key(first), (1, 1));
        calls.0.state.context.phase = u64::MAX;
        let late = calls.call(first);
        assert_eq!(calls.key(late), (MAX_PHASE as u32, 1));
        last.push((first, late));
    }
    assert_eq!(last[0].0.bucket(), last[1].0.bucket());
    assert_eq!(last[0].1.bucket(), last[1].1.bucket());
    let pending = calls.0.buckets().pending().len();
    calls.0.flushed();
    // All tables are empty again: nothing joins what is computed.
    let handle = calls.begin();
    let handle = calls.call(handle);
    assert_eq!(
        (calls.0.buckets().count(), calls.key(handle)),
        (2 + pending + 1, (0, 1))
    );
    assert_eq!(calls.0.is_computed(last[0].1), Some(true));
    let after = calls.call(last[0].1);
    assert_eq!(after.bucket(), handle.bucket());
}

#[test]
fn ghosts_are_deeper_and_are_taken_back() {
    let mut calls = Calls::new();
    let source = calls.begin();
    let long = calls.call(source);
    let long = calls.call(long);
    let long = calls.call(long);
    let source = calls.begin();
    let ghost = calls.ghost(source, 1);
    let ghost = calls.ghost(ghost, 1);
    assert_eq!(calls.key(ghost), (0, 2));
    assert_eq!(calls.call(ghost).bucket(), long.bucket());
    assert_eq!(calls.ghost(ghost, 0), ghost);
    let log = calls.0.log().len();
    let source = calls.begin();
    let again = calls.ghost(source, 2);
    assert_eq!((again.bucket(), again.position()), (ghost.bucket(), 1));
    calls.0.abandon_instance();
    assert_eq!(calls.0.log().len(), log);
    let source = calls.begin();
    assert_eq!(calls.ghost(source, 2), again);
}

#[test]
fn calls_are_shared_with_instances_that_were_alive_when_they_were_computed() {
    let mut calls = Calls::sharing();
    let row = calls.begin();
    let first = calls.call(row);
    assert_eq!(calls.call(row), first);
    calls.0.flushed();
    // The same instance goes on: its generation is kept for it.
    assert_eq!(calls.call(row), first);
    // One that begins only now must not name what may be taken back before it ends.
    calls.begin();
    let second = calls.call(row);
    assert_ne!(second, first);
    assert_eq!(calls.call(row), second);
    // What an instance takes back, no other may name.
    calls.0.abandon_instance();
    calls.begin();
    assert_eq!(calls.0.log().len(), 0);
    calls.call(row);
    assert_eq!(calls.0.log().len(), 2);
}

#[test]
fn kept_calls_are_for_all_instances_to_come_once_they_are_computed() {
    let mut calls = Calls::sharing();
    calls.0.cache(&[2]);
    calls.begin();
    let words = [5, 6, 7].map(|row| Handle::new(0, 0, row));
    let kept = calls.call(words[0]);
    assert_eq!((calls.call(words[0]), calls.0.log().len()), (kept, 0));
    assert_eq!(calls.0.is_computed(kept), Some(false));
    let known = |calls: &Calls| -> Vec<(u32, Vec<u32>)> {
        let new = calls.0.new_cached_calls();
        new.map(|new| (new.first, new.rows.to_vec())).collect()
    };
    // What reads it lies as deep, whether it is computed or not.
    let reader = |calls: &mut Calls| {
        let reader = calls.call(kept);
        calls.key(reader)
    };
    assert_eq!(reader(&mut calls), (0, 2));
    assert_eq!(known(&calls), [(0, vec![5])]);
    calls.0.flushed();
    assert_eq!(calls.0.is_computed(kept), Some(true));
    // What an instance takes back was never computed, and its place is free.
    calls.begin();
    assert_eq!(calls.call(words[0]), kept);
    let taken_back = calls.call(words[1]);
    calls.0.abandon_instance();
    assert_eq!(known(&calls), []);
    calls.begin();
    assert_eq!(reader(&mut calls), (0, 2));
    assert_eq!(calls.call(words[2]), taken_back);
    // There is no room for this one, so it is shared for a while.
    let other = calls.call(words[1]);
    assert_eq!(calls.call(words[1]), other);
    assert_eq!(calls.0.is_computed(other), Some(false));
    // Nobody flushed this batch.
    calls.0.begin_batch();
    calls.begin();
    assert_eq!((calls.call(words[0]), calls.0.log().len()), (kept, 0));
    assert_eq!(calls.call(words[1]), taken_back);
    assert_eq!(known(&calls), [(1, vec![6])]);
    calls.0.flushed();
    calls.0.forget_cached();
    calls.begin();
    assert_eq!(calls.call(words[2]), kept);
    assert_eq!(known(&calls), [(0, vec![7])]);
}

#[test]
fn numbers_of_buckets_are_used_again() {
    let mut calls = Calls::new();
    for _ in 0..1000 {
        let source = calls.begin();
        let handle = calls.call(source);
        calls.call(handle);
        let mut buckets = calls.0.buckets().pending().to_vec();
        calls.0.flushed();
        calls.0.recycle(&mut buckets);
    }
    assert_eq!(
        (calls.0.buckets().count(), calls.0.buckets().used()),
        (4, 0)
    );
}
