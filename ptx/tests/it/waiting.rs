//! Threads of a block, lanes of a warp, and blocks that wait for each other.

use crate::Case;

/// Threads hand words to their neighbours through shared memory.
fn hand_over(barrier: &str) -> Vec<u32> {
    let body = format!(
        "mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.s32 %r2, %r1, 1; and.b32 %r2, %r2, 63;
         mul.wide.u32 %rd3, %r2, 4; mov.b64 %rd4, s; add.s64 %rd5, %rd4, %rd2; add.s64 %rd6, %rd4, %rd3;
         st.shared.b32 [%rd5], %r1; {barrier} ld.shared.b32 %r3, [%rd6];
         add.s64 %rd7, %rd1, %rd2; st.global.b32 [%rd7], %r3; ret;"
    );
    Case::new(&body, 64).threads(64).run().unwrap()
}

#[test]
fn a_missing_barrier_shows() {
    let right: Vec<u32> = (0..64).map(|thread| (thread + 1) % 64).collect();
    assert_eq!(hand_over("bar.sync 0;"), right);
    let wrong = hand_over("");
    assert_ne!(wrong, right);
    // Lanes of one warp are no exception.
    assert_eq!(wrong[3], u32::MAX);
}

#[test]
fn a_barrier_that_some_do_not_reach_is_told() {
    let body = "mov.u32 %r1, %tid.x; setp.gt.u32 %p1, %r1, 40; @%p1 ret;\nbar.sync 0; ret;";
    let error = Case::new(body, 1).threads(64).refused();
    let expected = "line 10 of the PTX: in block (0, 0), 41 of 64 threads wait at a barrier after 0 others, \
                    and 23 have ended";
    assert_eq!(error, expected);
}

/// The warpgroups of a block hand words to neighbours of their own, the one a second time.
fn hand_over_in_groups(barrier: &str) -> Result<Vec<u32>, String> {
    let body = format!(
        "mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.s32 %r2, %r1, 1; and.b32 %r2, %r2, 127;
         and.b32 %r3, %r1, 128; or.b32 %r2, %r2, %r3; mul.wide.u32 %rd3, %r2, 4; mov.b64 %rd4, s;
         add.s64 %rd5, %rd4, %rd2; add.s64 %rd6, %rd4, %rd3; shr.u32 %r4, %r1, 7; add.s32 %r5, %r4, 1; mov.b32 %r8, %r1;
         $L_turn: st.shared.b32 [%rd5], %r8;
{barrier}
         ld.shared.b32 %r8, [%rd6];
bar.sync %r5, 128; add.s32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, 2; @%p1 bra $L_turn;
         add.s64 %rd7, %rd1, %rd2; st.global.b32 [%rd7], %r8; ret;"
    );
    let run = Case::new(&body, 256).threads(256).run();
    run.map_err(|problem| problem.to_string())
}

#[test]
fn a_warpgroup_waits_for_itself_alone() {
    let neighbour = |thread: u32, by: u32| (thread + by) % 128 + thread / 128 * 128;
    let right = |thread| neighbour(thread, if thread < 128 { 2 } else { 1 });
    let right: Vec<u32> = (0..256).map(right).collect();
    assert_eq!(hand_over_in_groups("bar.sync %r5, 128;").unwrap(), right);
    assert_ne!(hand_over_in_groups("").unwrap(), right);
    for (barrier, message) in [
        (
            "bar.sync 3, 128;",
            "256 threads wait at barrier 3 for 128, and others there for others",
        ),
        (
            "@%p1 bar.sync %r5, 128;",
            "128 threads of a warpgroup wait at barrier 1, the rest do not",
        ),
        (
            "bar.sync %r5, 64;",
            "waits at barrier 1 for 64 threads: those from 1 to 15 are interpreted, for multiples of 128",
        ),
        (
            "bar.sync %r1, 128;",
            "for 128 threads: those from 1 to 15 are interpreted, for multiples of 128",
        ),
        (
            "bar.sync 3, 384;",
            "256 threads wait at barrier 3 for 384, and the rest elsewhere",
        ),
    ] {
        let barrier = barrier.replace("@%p1", "setp.gt.u32 %p1, %r1, 40; @%p1");
        let problem = hand_over_in_groups(&barrier).unwrap_err();
        assert!(problem.contains(message), "{barrier}: {problem}");
    }
}

/// Blocks add up what all of them wrote, with a barrier of the grid in between.
fn add_up(barrier: &str, is_together: bool) -> Case {
    let body = format!(
        "mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r9, %nctaid.x;
         setp.ne.b32 %p1, %r1, 0; @%p1 bra $L_end;
         mul.wide.u32 %rd2, %r2, 4; add.s64 %rd2, %rd2, %rd1; add.s32 %r3, %r2, 10; st.global.b32 [%rd2+4], %r3;
         {barrier}
         mov.b32 %r5, 0; mov.b32 %r6, 0; mov.b64 %rd3, %rd1;
         $L_sum: ld.global.b32 %r7, [%rd3+4]; add.s32 %r5, %r5, %r7; add.s64 %rd3, %rd3, 4; add.s32 %r6, %r6, 1;
         setp.lt.u32 %p2, %r6, %r9; @%p2 bra $L_sum;
         st.global.b32 [%rd2+20], %r5; $L_end: ret;"
    );
    Case::new(&body, 9).blocks(4, is_together)
}

const GRID_BARRIER: &str = "fence.acq_rel.gpu; atom.global.add.u32 %r4, [%rd1], 1;
    $L_wait: ld.relaxed.gpu.global.b32 %r8, [%rd1]; setp.gt.u32 %p3, %r9, %r8; @%p3 bra $L_wait;
    fence.acq_rel.gpu;";

#[test]
fn blocks_that_are_together_wait_for_each_other() {
    let sums = |barrier| add_up(barrier, true).run().unwrap()[5..].to_vec();
    assert_eq!(sums(GRID_BARRIER), [46; 4]);
    assert_ne!(sums(""), [46; 4]);
}

#[test]
fn a_missing_fence_shows() {
    let sums = |barrier: &str| add_up(barrier, true).run().unwrap()[5..].to_vec();
    let (release, rest) = GRID_BARRIER.split_once(' ').unwrap();
    assert_eq!(release, "fence.acq_rel.gpu;");
    // Of what the others wrote, a block then sees only what those have written that have ended.
    assert_ne!(sums(rest), [46; 4]);

    // What was read before the barrier is read anew behind it.
    let early = "ld.global.v4.b32 {%r10, %r11, %r12, %r13}, [%rd1];";
    assert_eq!(sums(&format!("{early} {GRID_BARRIER}")), [46; 4]);
    // A load that acquires is the second fence, one that is relaxed is none.
    let (wait, acquire) = rest.rsplit_once(' ').unwrap();
    assert_eq!(acquire, "fence.acq_rel.gpu;");
    let unfenced = format!("{release} {early} {wait}");
    assert_ne!(sums(&unfenced), [46; 4]);
    assert_eq!(sums(&unfenced.replace("relaxed", "acquire")), [46; 4]);
}

/// Blocks of two clusters add up what those of their own wrote.
fn add_up_in_clusters(barrier: &str) -> Case {
    let body = format!(
        "mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; and.b32 %r9, %r2, 2; setp.ne.b32 %p1, %r1, 0;
         mul.wide.u32 %rd2, %r2, 4; add.s64 %rd2, %rd2, %rd1; add.s32 %r3, %r2, 10;
         @%p1 bra $L_written; st.global.b32 [%rd2], %r3; $L_written:
         {barrier}
         @%p1 bra $L_end;
         mul.wide.u32 %rd3, %r9, 4; add.s64 %rd3, %rd3, %rd1; ld.global.v2.b32 {{%r5, %r6}}, [%rd3];
         add.s32 %r5, %r5, %r6; st.global.b32 [%rd2+16], %r5; $L_end: ret;"
    );
    Case::new(&body, 8).blocks(4, true).clusters_of(2)
}

#[test]
fn blocks_of_a_cluster_wait_for_each_other() {
    let (arrive, wait) = (
        "barrier.cluster.arrive.aligned;",
        "barrier.cluster.wait.aligned;",
    );
    let sums = |barrier: &str| add_up_in_clusters(barrier).run().unwrap()[4..].to_vec();
    let right = [21, 21, 25, 25];
    assert_eq!(sums(&format!("{arrive} {wait}")), right);
    assert_eq!(sums(&format!("{arrive} {wait} {arrive} {wait}")), right);
    assert_ne!(sums(""), right);
    // What was read before is read anew behind the wait.
    let early = "ld.global.v4.b32 {%r10, %r11, %r12, %r13}, [%rd1];";
    assert_eq!(sums(&format!("{early} {arrive} {early} {wait}")), right);
    // Who has arrived and does not wait may be too early.
    assert_ne!(sums(arrive), right);
    let refused = |barrier: &str| add_up_in_clusters(barrier).refused();
    for (barrier, expected) in [
        (wait.to_owned(), "at which it did not arrive"),
        (
            format!("{arrive} {arrive} {wait}"),
            "arrives at its cluster's barrier twice",
        ),
        (
            format!("@%p1 bra $L_end; {arrive} {wait}"),
            "waits for its cluster, of whose 64 threads 62 have ended",
        ),
        (
            format!("@%p1 bra $L_all; {arrive} {wait} $L_all: bar.sync 0;"),
            "waits for what no other block will write",
        ),
    ] {
        let error = refused(&barrier);
        assert!(error.contains(expected), "{barrier}: {error}");
    }
}

#[test]
fn blocks_that_wait_for_nobody_end_with_an_error() {
    let error = add_up(GRID_BARRIER, false).refused();
    assert!(
        error.contains("block (0, 0), thread 0: waits for what no other block will write"),
        "{error}"
    );
    assert!(error.starts_with("line 13 of the PTX"), "{error}");
    let one_more = GRID_BARRIER.replace("setp.gt.u32", "setp.ge.u32");
    let error = add_up(&one_more, true).refused();
    assert!(
        error.contains("waits for what no other block will write"),
        "{error}"
    );
}

const PRODUCT: &str = "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32
    {%r20, %r21, %r22, %r23}, {%r2, %r2, %r2, %r2}, {%r3, %r3}, {%r4, %r4, %r4, %r4};";

const PRODUCT_OF_PAIRS: &str = "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
    {%r20, %r21, %r22, %r23}, {%r2, %r2, %r2, %r2}, {%r3, %r3}, {%r4, %r4, %r4, %r4};";

#[test]
fn a_warp_multiplies_together() {
    let own = "mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 16; add.s64 %rd2, %rd2, %rd1;";
    for (one, two, product, expected) in [
        ("0f3F800000", "0f40000000", PRODUCT, 16.5),
        ("0x3F803F80", "0x40004000", PRODUCT_OF_PAIRS, 32.5),
    ] {
        let body = format!(
            "{own} mov.b32 %r2, {one}; mov.b32 %r3, {two}; mov.b32 %r4, 0f3F000000; {product}
             st.global.v4.b32 [%rd2], {{%r20, %r21, %r22, %r23}}; ret;"
        );
        let words = Case::new(&body, 128).run().unwrap();
        assert!(
            words.iter().all(|word| f32::from_bits(*word) == expected),
            "{words:x?}"
        );
    }
}

#[test]
fn a_product_that_some_lanes_leave_out_is_told() {
    let body = format!("mov.u32 %r1, %tid.x; setp.gt.u32 %p1, %r1, 7; @%p1 ret;\n{PRODUCT} ret;");
    let error = Case::new(&body, 1).refused();
    assert!(
        error.contains("8 of the 32 threads of a warp multiply, the rest do not"),
        "{error}"
    );
    let body = format!(
        "mov.u32 %r1, %tid.x; setp.gt.u32 %p1, %r1, 7; @%p1 bra $L;\n{PRODUCT} ret; $L: {PRODUCT} ret;"
    );
    let error = Case::new(&body, 1).refused();
    assert!(
        error.contains("the threads of a warp multiply at different places"),
        "{error}"
    );
}

#[test]
fn lanes_exchange_values() {
    let own = "mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd2, %rd2, %rd1;";
    for lanes in [0, 1, 2, 5, 31] {
        let body = format!(
            "{own} add.s32 %r2, %r1, 100; shfl.sync.bfly.b32 %r3, %r2, {lanes}, 31, -1;
             st.global.b32 [%rd2], %r3; ret;"
        );
        let words = Case::new(&body, 64).threads(64).run().unwrap();
        let expected: Vec<u32> = (0..64).map(|lane| (lane ^ lanes) + 100).collect();
        assert_eq!(words, expected);
    }
}

#[test]
fn values_that_some_lanes_do_not_exchange_are_told() {
    let shuffle = "shfl.sync.bfly.b32 %r3, %r1, 1, 31, -1;";
    let body = format!("mov.u32 %r1, %tid.x; setp.gt.u32 %p1, %r1, 7; @%p1 ret;\n{shuffle} ret;");
    let error = Case::new(&body, 1).refused();
    assert!(
        error.contains("8 of the 32 threads of a warp execute `shfl.sync`, the rest do not"),
        "{error}"
    );
    for other in [
        "shfl.sync.bfly.b32 %r3, %r1, 32, 31, -1;",
        "shfl.sync.bfly.b32 %r3, %r1, 1, 31, 255;",
        "shfl.sync.bfly.b32 %r3, %r1, 1, 7199, -1;",
    ] {
        let error = Case::new(&format!("{other} ret;"), 1).refused();
        assert!(error.contains("is not interpreted"), "{other}: {error}");
    }
}
