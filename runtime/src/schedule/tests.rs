use cohort_abi::Handle;

use super::graph::CallGraph;
use super::groups::Share;
use super::*;
use crate::program::slot::Slot;

/// Records calls as the recorder would: buckets by kernel, phase and depth, from bucket 1 on.
#[derive(Default)]
struct Log {
    log: Vec<u64>,
    buckets: Vec<Ready>,
    segments: Vec<usize>,
    /// Of each call: kernel, phase and the calls that it reads.
    calls: Vec<(u32, u32, Vec<usize>)>,
    handles: Vec<(u64, u32)>,
    has_gaps: bool,
}

const KERNELS: usize = 4;
const GHOST: u32 = KERNELS as u32;

impl Log {
    fn begin_instance(&mut self) {
        self.segments.push(self.log.len());
    }

    /// A call with two operands: of each kernel the first is a handle, the second a handle or a
    /// scalar.
    fn call(&mut self, kernel: u32, phase: u32, inputs: &[usize]) -> usize {
        let handles: Vec<(u64, u32)> = inputs.iter().map(|input| self.handles[*input]).collect();
        self.append(kernel, phase, &handles);
        self.calls.push((kernel, phase, inputs.to_vec()));
        self.calls.len() - 1
    }

    /// From here on a call goes by another name.
    fn ghost(&mut self, call: usize) {
        let phase = self.calls[call].1;
        let of = self.handles[call];
        self.append(GHOST, phase, &[of]);
        self.handles[call] = self.handles.pop().unwrap();
    }

    fn append(&mut self, kernel: u32, phase: u32, operands: &[(u64, u32)]) {
        // Calls of an earlier phase do not add to the depth.
        let phase_of = |handle: u64| {
            let bucket = Handle(handle).bucket();
            let found = self.buckets.iter().find(|ready| ready.bucket == bucket);
            found.map_or(0, |ready| ready.phase)
        };
        let same_phase = operands
            .iter()
            .filter(|(handle, _)| phase_of(*handle) == phase);
        let depth = 1 + same_phase.map(|(_, depth)| *depth).max().unwrap_or(0);
        let found = self
            .buckets
            .iter()
            .position(|r| (r.kernel, r.phase, r.depth) == (kernel, phase, depth));
        let index = found.unwrap_or_else(|| {
            self.buckets.push(Ready {
                bucket: self.buckets.len() as u32 + 1,
                kernel,
                phase,
                depth,
                calls: 0,
                rows: 0,
            });
            self.buckets.len() - 1
        });
        let ready = &mut self.buckets[index];
        self.handles
            .push((Handle::new(ready.bucket, 0, ready.calls).0, depth));
        ready.calls += 1;
        ready.rows += 1;
        self.log.push(u64::from(ready.bucket));
        let count = if kernel == GHOST { 1 } else { 2 };
        let slots = operands.iter().map(|(handle, _)| *handle);
        self.log.extend(
            slots
                .chain(std::iter::repeat(Handle::new(0, 0, 9).0))
                .take(count),
        );
    }

    /// Schedules by a policy; gives the launches as lists of calls, checked to be in order.
    fn schedule(&self, policy: Policy) -> Vec<(u32, Vec<usize>)> {
        let forms = vec![CallForm::plain([Slot::Row, Slot::Row].into()); KERNELS];
        let (ghosts, mut buckets): (Vec<Ready>, Vec<Ready>) =
            self.buckets.iter().partition(|ready| ready.kernel == GHOST);
        let recorded = Recorded {
            log: &self.log,
            forms: &forms,
            ghosts: &ghosts,
            segments: &self.segments,
            has_gaps: self.has_gaps,
            has_cached: false,
        };
        let mut groups = Groups::default();
        (policy.scheduler()).schedule(recorded, &mut buckets, &mut groups);
        let mut launches: Vec<(u32, Vec<usize>)> = groups
            .launches
            .iter()
            .map(|launch| (launch.kernel, vec![usize::MAX; launch.calls as usize]))
            .collect();
        let places = self.places(&buckets, &groups);
        for (call, (launch, row)) in places.iter().enumerate() {
            let (kernel, calls) = &mut launches[*launch as usize];
            assert_eq!(
                (*kernel, calls[*row as usize]),
                (self.calls[call].0, usize::MAX)
            );
            calls[*row as usize] = call;
            let wave_of = |launch: u32| groups.launches[launch as usize].wave;
            for input in &self.calls[call].2 {
                assert!(
                    places[*input].0 < *launch && wave_of(places[*input].0) < wave_of(*launch),
                    "{policy:?}: {call} before {input}"
                );
            }
        }
        let phases = launches.iter().map(|(_, calls)| self.calls[calls[0]].1);
        assert!(phases.is_sorted(), "{policy:?}");
        assert_eq!(
            launches.iter().map(|(_, calls)| calls.len()).sum::<usize>(),
            self.calls.len()
        );
        launches
    }

    /// Of each call in the order of recording, its launch and its number in it.
    fn places(&self, buckets: &[Ready], groups: &Groups) -> Vec<(u32, u32)> {
        let mut seen = vec![0; buckets.len()];
        let mut places = Vec::new();
        let mut at = 0;
        while let Some(bucket) = self.log.get(at) {
            let of = |ready: &Ready| u64::from(ready.bucket) == *bucket;
            let Some(index) = buckets.iter().position(of) else {
                at += 2;
                continue;
            };
            places.push(match groups.shares[index] {
                Share::Whole { launch, call, .. } => (launch, call + seen[index]),
                Share::Apart { start } => groups.places[(start + seen[index]) as usize],
            });
            seen[index] += 1;
            at += 3;
        }
        places
    }
}

/// Instances of random graphs, with ghosts and phases.
fn random(seed: u64) -> Log {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut log = Log::default();
    for _ in 0..rng.usize(0..12) {
        log.begin_instance();
        let first = log.calls.len();
        let mut phase = 0;
        for _ in 0..rng.usize(0..25) {
            phase += u32::from(rng.u32(0..10) == 0);
            let known = log.calls.len() - first;
            let inputs: Vec<usize> = (0..rng.usize(0..3))
                .filter(|_| known > 0)
                .map(|_| first + rng.usize(0..known))
                .collect();
            let call = log.call(rng.u32(0..KERNELS as u32), phase, &inputs);
            if rng.u32(0..6) == 0 {
                log.ghost(call);
            }
        }
    }
    log
}

#[test]
fn every_policy_computes_every_call_after_what_it_reads() {
    for seed in 0..300 {
        let log = random(seed);
        for policy in [
            Policy::Depth,
            Policy::Agenda,
            Policy::Lookahead,
            Policy::Instances,
        ] {
            log.schedule(policy);
        }
    }
}

#[test]
fn phase_comes_before_depth_before_kernel() {
    let ready = |bucket, kernel, phase, depth| Ready {
        bucket,
        kernel,
        phase,
        depth,
        calls: 1,
        rows: 1,
    };
    let mut buckets = [
        ready(3, 0, 1, 1),
        ready(4, 0, 0, 2),
        ready(5, 1, 0, 1),
        ready(6, 0, 0, 1),
    ];
    let recorded = Recorded {
        log: &[],
        forms: &[],
        ghosts: &[],
        segments: &[],
        has_gaps: false,
        has_cached: true,
    };
    let mut groups = Groups::default();
    DepthScheduler.schedule(recorded, &mut buckets, &mut groups);
    assert_eq!(buckets.map(|ready| ready.bucket), [6, 5, 4, 3]);
    let waves: Vec<u32> = groups.launches.iter().map(|launch| launch.wave).collect();
    assert_eq!(waves, [1, 1, 2, 3]);
}

/// Chains of different lengths, each ended by one call of another kernel.
#[test]
fn the_agenda_merges_what_lies_at_different_depths() {
    let mut log = Log::default();
    for length in [1, 2, 5] {
        log.begin_instance();
        let mut last = log.call(0, 0, &[]);
        for _ in 1..length {
            last = log.call(0, 0, &[last]);
        }
        log.call(1, 0, &[last]);
    }
    assert_eq!(log.schedule(Policy::Depth).len(), 8);
    let agenda = log.schedule(Policy::Agenda);
    assert_eq!(agenda.len(), 6);
    assert_eq!(agenda[5], (1, vec![1, 4, 10]));
}

/// Kernel 1 lies less deep than kernel 0 on average, but waiting for the last of kernel 0 makes it one
/// launch.
#[test]
fn looking_ahead_leaves_nothing_behind() {
    let mut log = Log::default();
    for _ in 0..3 {
        log.begin_instance();
        log.call(1, 0, &[]);
    }
    log.begin_instance();
    let mut last = log.call(0, 0, &[]);
    for _ in 0..3 {
        last = log.call(0, 0, &[last]);
    }
    log.call(1, 0, &[last]);
    assert_eq!(log.schedule(Policy::Agenda).len(), 6);
    let lookahead = log.schedule(Policy::Lookahead);
    assert_eq!(lookahead.len(), 5);
    assert_eq!(lookahead[4], (1, vec![0, 1, 2, 7]));
}

/// Where the condition always holds, no order has fewer launches; and the bound is never passed.
#[test]
fn no_policy_does_with_fewer_launches_than_the_bound() {
    for seed in 0..100 {
        let log = random(seed);
        let forms = vec![CallForm::plain([Slot::Row, Slot::Row].into()); KERNELS];
        let (ghosts, buckets): (Vec<Ready>, Vec<Ready>) =
            log.buckets.iter().partition(|ready| ready.kernel == GHOST);
        let mut graph = CallGraph::default();
        let recorded = Recorded {
            log: &log.log,
            forms: &forms,
            ghosts: &ghosts,
            segments: &log.segments,
            has_gaps: false,
            has_cached: true,
        };
        graph.build(recorded, &buckets);
        let bound = graph.fewest_launches().unwrap();
        let bound = bound.iter().map(|(_, fewest)| *fewest as usize).sum();
        for policy in [
            Policy::Depth,
            Policy::Agenda,
            Policy::Lookahead,
            Policy::Instances,
        ] {
            assert!(
                log.schedule(policy).len() >= bound,
                "{policy:?}, seed {seed}"
            );
        }
    }
}

/// A phase parts what no operand does.
#[test]
fn the_fewest_launches_are_those_of_no_phases() {
    let mut log = Log::default();
    log.begin_instance();
    let first = log.call(0, 0, &[]);
    log.call(0, 1, &[]);
    log.call(1, 1, &[first]);
    log.call(0, 2, &[first]);
    let mut graph = CallGraph::default();
    let recorded = Recorded {
        log: &log.log,
        forms: &vec![CallForm::plain([Slot::Row, Slot::Row].into()); KERNELS],
        ghosts: &[],
        segments: &log.segments,
        has_gaps: false,
        has_cached: true,
    };
    graph.build(recorded, &log.buckets);
    assert_eq!(graph.fewest_launches(), Some(vec![(0, 2), (1, 1)]));
}

#[test]
fn instances_of_one_shape_run_as_one_batch() {
    let mut log = Log::default();
    let mut instance = |reads_first: bool| {
        log.begin_instance();
        let a = log.call(0, 0, &[]);
        let b = log.call(0, 0, &[]);
        log.call(1, 0, &[if reads_first { a } else { b }]);
    };
    instance(true);
    instance(false);
    instance(true);
    let launches = log.schedule(Policy::Instances);
    assert_eq!(
        launches,
        [
            (0, vec![0, 6]),
            (0, vec![1, 7]),
            (1, vec![2, 8]),
            (0, vec![3]),
            (0, vec![4]),
            (1, vec![5]),
        ]
    );
}

/// Instances that do the same are one chain of units, however many there are.
#[test]
fn calls_that_wait_for_the_same_are_one_unit() {
    let mut log = Log::default();
    for length in [2, 3, 3, 2, 3] {
        log.begin_instance();
        let mut last = log.call(0, 0, &[]);
        for _ in 1..length {
            last = log.call(0, 0, &[last]);
        }
        log.call(1, 0, &[last]);
    }
    let forms = vec![CallForm::plain([Slot::Row, Slot::Row].into()); KERNELS];
    let recorded = Recorded {
        log: &log.log,
        forms: &forms,
        ghosts: &[],
        segments: &log.segments,
        has_gaps: false,
        has_cached: true,
    };
    let mut units = units::Units::default();
    assert!(units.open_kinds(recorded, &log.buckets) > 0);
    assert!(units.find(recorded, &log.buckets));
    assert_eq!((units.count(), log.buckets.len()), (5, 5));
}

/// Each depth needs the one before it, so that buckets are launches already.
#[test]
fn where_no_launch_can_be_saved_buckets_are_launches() {
    let mut log = Log::default();
    for length in [2, 5, 3] {
        log.begin_instance();
        let mut last = log.call(0, 0, &[]);
        for _ in 1..length {
            last = log.call(0, 0, &[last]);
        }
    }
    let forms = vec![CallForm::plain([Slot::Row, Slot::Row].into()); KERNELS];
    let recorded = Recorded {
        log: &log.log,
        forms: &forms,
        ghosts: &[],
        segments: &log.segments,
        has_gaps: false,
        has_cached: true,
    };
    for policy in [Policy::Agenda, Policy::Lookahead] {
        let mut buckets = log.buckets.clone();
        let mut groups = Groups::default();
        (policy.scheduler()).schedule(recorded, &mut buckets, &mut groups);
        let mut by_depth = Groups::default();
        DepthScheduler.schedule(recorded, &mut log.buckets.clone(), &mut by_depth);
        assert_eq!(groups, by_depth, "{policy:?}");
    }
}

/// What a call waits for goes down depth by depth, so a kind that is alone there has no fewer launches.
#[test]
fn where_kinds_are_alone_no_call_is_looked_at() {
    let forms = vec![CallForm::plain([Slot::Row, Slot::Row].into()); KERNELS];
    let reads_calls = |log: &Log| {
        let (ghosts, buckets): (Vec<Ready>, Vec<Ready>) =
            log.buckets.iter().partition(|ready| ready.kernel == GHOST);
        let recorded = Recorded {
            log: &[],
            forms: &forms,
            ghosts: &ghosts,
            segments: &log.segments,
            has_gaps: log.has_gaps,
            has_cached: true,
        };
        let of = |policy: Policy| policy.scheduler().reads_calls(recorded, &buckets);
        assert_eq!(of(Policy::Agenda), of(Policy::Lookahead));
        of(Policy::Lookahead)
    };
    let mut log = Log::default();
    for length in [3, 6, 4] {
        log.begin_instance();
        let mut last = log.call(3, 0, &[]);
        for turn in 1..length {
            last = log.call(turn % 2, 0, &[last]);
        }
    }
    assert!(!reads_calls(&log));
    log.has_gaps = true;
    assert!(reads_calls(&log));
    log.has_gaps = false;
    // Where a kind is deepest another one is in nobody's way, and above it may be.
    log.begin_instance();
    let last = log.calls.len() - 1;
    log.call(2, 0, &[last]);
    assert!(!reads_calls(&log));
    log.call(2, 0, &[0]);
    assert!(reads_calls(&log));
    // A ghost's depth says nothing of the calls above it.
    let mut log = Log::default();
    log.begin_instance();
    let first = log.call(0, 0, &[]);
    let second = log.call(0, 0, &[first]);
    assert!(reads_calls(&log), "a cached call may be at the first depth");
    let third = log.call(1, 0, &[second]);
    log.ghost(third);
    log.call(1, 0, &[third]);
    assert!(reads_calls(&log));
}

/// Trees of two kernels that alternate as they like, with a call at the end.
fn random_trees(instances: usize) -> Log {
    let mut rng = fastrand::Rng::with_seed(3);
    let mut log = Log::default();
    for _ in 0..instances {
        log.begin_instance();
        let mut nodes: Vec<usize> = (0..rng.usize(4..12)).map(|_| log.call(0, 0, &[])).collect();
        while nodes.len() > 1 {
            let left = nodes.swap_remove(rng.usize(0..nodes.len()));
            let right = nodes.swap_remove(rng.usize(0..nodes.len()));
            nodes.push(log.call(rng.u32(1..3), 0, &[left, right]));
        }
        log.call(3, 0, &[nodes[0]]);
    }
    log
}

/// Two instances with kernels that alternate, one beginning with the other's second: by depth nothing is shared.
fn opposite_chains() -> Log {
    let mut log = Log::default();
    for first in 1..3 {
        log.begin_instance();
        let mut last = log.call(first, 0, &[]);
        for turn in 1..8 {
            last = log.call(1 + (first + turn + 1) % 2, 0, &[last]);
        }
    }
    log
}

/// Where a search saved too little for all that it looked at, fewer and fewer flushes are searched; where it saves
/// enough, all are.
#[test]
fn few_flushes_are_searched_where_that_is_not_worth_it() {
    let forms = vec![CallForm::plain([Slot::Row, Slot::Row].into()); KERNELS];
    for policy in [Policy::Agenda, Policy::Lookahead] {
        let mut scheduler = policy.scheduler();
        let mut searched = |log: &Log| {
            let recorded = Recorded {
                log: &log.log,
                forms: &forms,
                ghosts: &[],
                segments: &log.segments,
                has_gaps: false,
                has_cached: true,
            };
            let searched = scheduler.reads_calls(recorded, &log.buckets);
            let mut groups = Groups::default();
            scheduler.schedule(recorded, &mut log.buckets.clone(), &mut groups);
            assert!(searched || groups.launches.len() == log.buckets.len());
            searched
        };
        let (small, large) = (opposite_chains(), random_trees(200));
        assert!((0..9).all(|_| searched(&small)), "{policy:?}");
        let which: Vec<usize> = (0..40).filter(|_| searched(&large)).collect();
        assert_eq!(which, [0, 1, 3, 7, 15, 23, 31, 39], "{policy:?}");
        // The next search finds that it is worth it again.
        while !searched(&small) {}
        assert!((0..9).all(|_| searched(&small)), "{policy:?}");
    }
}

/// As many launches as where each call is looked at.
#[test]
fn kinds_that_are_alone_have_no_fewer_launches() {
    let mut alone = 0;
    for seed in 0..300 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut log = Log::default();
        for _ in 0..rng.usize(1..6) {
            log.begin_instance();
            let (mut last, mut phase) = (log.call(rng.u32(0..2), 0, &[]), 0);
            for turn in 0..rng.u32(0..8) {
                phase += u32::from(rng.u32(0..8) == 0);
                let kernel = match rng.u32(0..12) {
                    0 => 3,
                    _ => turn % 3,
                };
                last = log.call(kernel, phase, &[last]);
                if rng.u32(0..40) == 0 {
                    log.ghost(last);
                }
            }
        }
        for policy in [Policy::Agenda, Policy::Lookahead] {
            log.has_gaps = true;
            let launches = log.schedule(policy).len();
            log.has_gaps = false;
            assert_eq!(
                log.schedule(policy).len(),
                launches,
                "{policy:?}, seed {seed}"
            );
        }
        alone += usize::from(log.schedule(Policy::Lookahead).len() == log.buckets.len());
    }
    assert!(alone > 30, "{alone}");
}

/// A bucket that is taken apart keeps its calls where they are.
#[test]
fn a_bucket_begins_where_those_before_it_in_the_launch_end() {
    let ready = |calls, rows| Ready {
        bucket: 1,
        kernel: 0,
        phase: 0,
        depth: 1,
        calls,
        rows,
    };
    let mut groups = Groups::default();
    let launch = groups.launch(0);
    groups.put_whole(launch, &ready(2, 7));
    groups.put_whole(launch, &ready(3, 4));
    groups.put_apart([launch, launch].into_iter());
    let whole = |call, row| Share::Whole { launch, call, row };
    assert_eq!(groups.shares[..2], [whole(0, 0), whole(2, 7)]);
    groups.take_apart(1, 3);
    groups.take_apart(2, 2);
    assert_eq!(
        groups.shares[1..],
        [Share::Apart { start: 2 }, Share::Apart { start: 0 }]
    );
    assert_eq!(groups.places, [(0, 5), (0, 6), (0, 2), (0, 3), (0, 4)]);
    assert_eq!((groups.launches[0].calls, groups.launches[0].rows), (7, 13));
}
