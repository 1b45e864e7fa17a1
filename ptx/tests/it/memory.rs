//! Loads, stores, copies and branches of one thread at a time.

use crate::Case;

/// `%rd2` is the place of the thread's own word, `%r1` its number.
const OWN: &str = "mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd2, %rd2, %rd1;\n";

#[test]
fn words_are_loaded_and_stored() {
    let body = "mov.b32 %r1, 0x11223344; mov.b32 %r2, -1; mov.b32 %r3, 5; mov.b32 %r4, 6;
        st.global.v4.b32 [%rd1], {%r1, %r2, %r3, %r4};
        ld.global.v2.b32 {%r5, %r6}, [%rd1+8]; add.s32 %r7, %r5, %r6; st.global.b32 [%rd1+16], %r7;
        ld.global.b32 %rd3, [%rd1+4]; st.global.b64 [%rd1+24], %rd3;
        st.shared.b32 [s+4], %r1; mov.b64 %rd4, s; ld.shared.b32 %r8, [%rd4+4];
        st.global.b32 [%rd1+20], %r8; mov.b64 %rd5, 0xab; cvt.u16.u64 %rs1, %rd5; st.global.b8 [%rd1+33], %rs1; ret;";
    let words = Case::new(body, 9).run().unwrap();
    // What is loaded into a register with more bits has zeros above it.
    let expected = [
        0x1122_3344,
        u32::MAX,
        5,
        6,
        11,
        0x1122_3344,
        u32::MAX,
        0,
        0xab00,
    ];
    assert_eq!(words, expected);
}

#[test]
fn a_launch_gives_shared_memory_behind_what_is_declared() {
    let body =
        "mov.b32 %r1, 7; st.shared.b32 [given+12], %r1; mov.b64 %rd2, given; mov.b64 %rd3, s;
        sub.s64 %rd4, %rd2, %rd3; st.global.b64 [%rd1], %rd4; ld.shared.b32 %r2, [s+1036];
        st.global.b32 [%rd1+8], %r2; ret;";
    let case = |bytes| {
        let case = Case::new(body, 3).threads(1);
        case.dynamic_shared_bytes(bytes)
    };
    assert_eq!(case(16).run().unwrap(), [1024, 0, 7]);
    let error = case(12).refused();
    assert!(error.contains("the 1036 bytes of shared memory"), "{error}");
}

#[test]
fn several_words_are_loaded_and_stored_at_once() {
    let body = "mov.b32 %r1, 7; mov.b32 %r2, 8; st.shared.v2.b32 [s+8], {%r1, %r2};
        ld.shared.v2.b32 {%r3, %r4}, [s+8]; st.global.b32 [%rd1], %r4; st.global.b32 [%rd1+4], %r3;
        ld.global.b64 %rd2, [%rd1]; add.s64 %rd2, %rd2, 1; st.global.b64 [%rd1+8], %rd2; ret;";
    let words = Case::new(body, 4).threads(1).run().unwrap();
    assert_eq!(words, [8, 7, 9, 7]);
}

#[test]
fn words_of_64_bits_are_loaded_of_shared_memory() {
    let body = "mov.b32 %r1, 7; mov.b32 %r2, 8; mov.b32 %r3, 9; mov.b32 %r4, -1;
        st.shared.v4.b32 [s+16], {%r1, %r2, %r3, %r4}; ld.shared.b64 %rd2, [s+24];
        ld.shared.v2.b64 {%rd3, %rd4}, [s+16]; st.global.b64 [%rd1], %rd2; st.global.b64 [%rd1+8], %rd3;
        st.global.b64 [%rd1+16], %rd4; ret;";
    let words = Case::new(body, 6).threads(1).run().unwrap();
    assert_eq!(words, [9, u32::MAX, 7, 8, 9, u32::MAX]);
    let misaligned = body.replace("[s+24]", "[s+20]");
    let error = Case::new(&misaligned, 6).threads(1).refused();
    assert!(error.contains("reads 8 bytes at 0x14"), "{error}");
}

#[test]
fn threads_know_their_places() {
    let body = format!(
        "{OWN} mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %nctaid.x;
         mad.lo.s32 %r5, %r2, %r3, %r1; mul.wide.u32 %rd3, %r5, 4; add.s64 %rd3, %rd3, %rd1;
         mad.lo.s32 %r6, %r4, 1000, %r5; st.global.b32 [%rd3], %r6; ret;"
    );
    let words = Case::new(&body, 96).blocks(3, false).run().unwrap();
    assert!(
        words
            .iter()
            .enumerate()
            .all(|(at, word)| *word == 3000 + at as u32)
    );
}

#[test]
fn branches_go_where_they_are_told() {
    let body = format!(
        "{OWN} and.b32 %r2, %r1, 3; setp.ge.u32 %p1, %r2, 3; mov.b32 %r3, 100;
         @%p1 bra $L_end; $T: .branchtargets $L_0, $L_1, $L_0; brx.idx %r2, $T;
         $L_0: mov.b32 %r3, 7; bra.uni $L_end;
         $L_1: add.s32 %r3, %r3, 1; setp.lt.u32 %p2, %r3, 110; @%p2 bra $L_1;
         $L_end: @!%p1 add.s32 %r3, %r3, 1000; st.global.b32 [%rd2], %r3; ret;"
    );
    let words = Case::new(&body, 32).run().unwrap();
    assert!(
        words.chunks(4).all(|four| four == [1007, 1110, 1007, 100]),
        "{words:?}"
    );
}

#[test]
fn registers_of_a_scope_are_known_there_alone() {
    let body = "mov.b32 %r1, 1; mov.b32 %r5, 5;
        { .reg .b32 %r<2>; .reg .b32 own; mov.b32 own, 7; add.s32 %r1, own, %r5;
          { .reg .b32 own; mov.b32 own, 0; } st.global.v2.b32 [%rd1], {%r1, own}; }
        { .reg .b32 own; mov.b32 own, 9; st.global.b32 [%rd1+8], own; }
        st.global.b32 [%rd1+12], %r1; ret;";
    assert_eq!(Case::new(body, 4).run().unwrap(), [12, 7, 9, 1]);
    let error = Case::new("{ .reg .b32 own; } mov.b32 %r1, own; ret;", 1).refused();
    assert!(error.contains("there is no register `own`"), "{error}");
}

#[test]
fn what_nobody_wrote_is_poison() {
    let body =
        "ld.shared.b32 %r1, [s+12]; st.global.b32 [%rd1], %r1; st.global.b32 [%rd1+4], %r9; ret;";
    assert_eq!(Case::new(body, 2).run().unwrap(), [u32::MAX; 2]);
}

#[test]
fn copies_arrive_when_they_are_waited_for() {
    let body = |groups: u32| {
        format!(
            "mov.u32 %r1, %tid.x; setp.ne.b32 %p1, %r1, 0; @%p1 bra $L_end;
             mov.b32 %r2, 77; st.global.b32 [%rd1], %r2; mov.b64 %rd3, s; mov.b32 %r4, 0;
             cp.async.ca.shared.global [%rd3], [%rd1], 4, 4; cp.async.commit_group;
             cp.async.ca.shared.global [%rd3+4], [%rd1], 4, %r4; cp.async.commit_group;
             cp.async.wait_group {groups};
             ld.shared.v2.b32 {{%r5, %r6}}, [s]; st.global.v2.b32 [%rd1+8], {{%r5, %r6}}; $L_end: ret;"
        )
    };
    let after = |groups| Case::new(&body(groups), 4).run().unwrap()[2..].to_vec();
    assert_eq!(after(0), [77, 0]);
    assert_eq!(after(1), [77, u32::MAX]);
    assert_eq!(after(2), [u32::MAX, u32::MAX]);
}

#[test]
fn addresses_are_checked() {
    for (statement, message) in [
        ("ld.global.b32 %r2, [%rd1+16];", "reads 4 bytes at 0x10010, in global memory that is not the program's"),
        ("st.global.b32 [%rd1+-4], %r2;", "writes 4 bytes at 0xfffc, in global memory that is not"),
        ("ld.global.v2.b32 {%r2, %r3}, [%rd1+4];", "reads 8 bytes at 0x10004, no multiple of them"),
        ("ld.shared.b32 %r2, [s+1024];", "reads 4 bytes at 0x400, outside the 1024 bytes of shared memory"),
        ("st.shared.b32 [s+2], %r2;", "writes 4 bytes at 0x2, no multiple of them"),
        ("ld.param.b64 %rd3, [f_0+8];", "reads 8 bytes at 0x8, outside the parameters"),
        ("mov.b64 %rd3, 1020; cp.async.cg.shared.global [%rd3], [%rd1], 16;", "copies 16 bytes at 0x3fc, no multiple"),
        ("mov.b64 %rd3, 1024; cp.async.cg.shared.global [%rd3], [%rd1], 16;", "copies to 16 bytes at 0x400, outside"),
        (
            "mov.b64 %rd3, 0; cp.async.ca.shared.global [%rd3], [%rd1+16], 4; cp.async.commit_group;
             cp.async.wait_group 0;",
            "copies 4 bytes at 0x10010, in global memory",
        ),
        ("atom.global.add.u32 %r2, [%rd1+16], 1;", "adds to 4 bytes at 0x10010, in global memory"),
        ("mov.b32 %r2, 1; $T: .branchtargets $L; brx.idx %r2, $T; $L:", "label 1 of 1 is taken"),
    ] {
        let error = Case::new(&format!("{statement} ret;"), 4).refused();
        assert!(error.contains(message), "{error}");
        assert!(error.starts_with("line 9 of the PTX: block (0, 0), thread 0: "), "{error}");
    }
}

#[test]
fn what_is_not_interpreted_is_told() {
    for (statement, message) in [
        (
            "ex2.approx.f32 %r1, %r2;",
            "`ex2.approx.f32` is not interpreted",
        ),
        (
            "shfl.sync.up.b32 %r1, %r2, 1, 0, -1;",
            "`shfl.sync.up.b32` is not interpreted",
        ),
        (
            "ld.b32 %r1, [%rd1];",
            "`ld.b32` with these operands is not interpreted",
        ),
        (
            "ld.local.b32 %r1, [%rd1];",
            "`ld.local.b32` with these operands is not interpreted",
        ),
        ("bar.sync 1;", "`bar.sync` is not interpreted"),
        ("add.s64 %rd1, %rd1, %r1;", "`%r1` has 32 bits, not 64"),
        ("add.s64 %rd1, %rd1;", "`add.s64` takes 2 operands"),
        ("add.s64 %rd1, %rd1, %rd99;", "there is no register `%rd99`"),
        ("mov.b32 %tid.x, %r1;", "`%tid.x` is only read"),
        ("bra $L_no;", "there is no label `$L_no`"),
        (
            "ld.global.v2.b32 %r1, [%rd1];",
            "`ld.global.v2.b32` with these operands",
        ),
        (
            "cp.async.ca.shared.global [%rd1], [%rd1], 5;",
            "with these operands is not interpreted",
        ),
        (
            "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%r1}, {%r1}, {%r1}, {%r1};",
            "with these operands",
        ),
    ] {
        let error = Case::new(&format!("{statement} ret;"), 1).refused();
        assert!(
            error.contains(message) && error.starts_with("line 9 of the PTX: "),
            "{error}"
        );
    }
    let error = Case::new("add.s64 %rd1, %rd1, 1;", 1).refused();
    assert!(error.contains("a function ends without `ret`"), "{error}");
}
