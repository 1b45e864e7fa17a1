//! Cases of each instruction. Expected bits are written out, or are those of the same operation of the host, which IEEE
//! 754 says to the bit.

use std::cell::RefCell;
use std::collections::BTreeSet;

use super::*;

thread_local! {
    /// Opcodes of which there was a case.
    static RUN: RefCell<BTreeSet<String>> = RefCell::default();
}

/// The bits that an instruction gives.
fn run(opcode: &str, operands: &[u64]) -> u64 {
    RUN.with_borrow_mut(|run| run.insert(opcode.to_owned()));
    let found = find(opcode).unwrap_or_else(|| panic!("`{opcode}` is unknown"));
    match (found.compute, operands) {
        (Unary(f), [a]) => f(*a),
        (Binary(f), [a, b]) => f(*a, *b),
        (Ternary(f), [a, b, c]) => f(*a, *b, *c),
        _ => panic!("`{opcode}` does not take {} operands", operands.len()),
    }
}

fn check(cases: &[(&str, &[u64], u64)]) {
    for (opcode, operands, expected) in cases {
        let found = run(opcode, operands);
        assert_eq!(
            found, *expected,
            "{opcode} of {operands:x?} is {found:#x}, not {expected:#x}"
        );
    }
}

fn s64(value: i64) -> u64 {
    value as u64
}

fn s32(value: i32) -> u64 {
    (value as u32).into()
}

fn f(value: f32) -> u64 {
    value.to_bits().into()
}

fn d(value: f64) -> u64 {
    value.to_bits()
}

const NAN: u64 = 0x7fff_ffff;
const NAN_64: u64 = 0x7fff_ffff_ffff_ffff;
const ALL: u64 = u64::MAX;

#[test]
fn integers() {
    check(&[
        ("add.s64", &[s64(i64::MAX), 1], s64(i64::MIN)),
        ("add.s32", &[0xffff_ffff, 1], 0),
        ("add.s16", &[0xffff, 2], 1),
        ("sub.s64", &[3, 5], s64(-2)),
        ("sub.s32", &[3, 5], 0xffff_fffe),
        ("mul.lo.s64", &[s64(-3), 5], s64(-15)),
        ("mul.lo.s64", &[1 << 63, 2], 0),
        ("mul.lo.s32", &[s32(-3), 5], s32(-15)),
        ("mul.hi.u64", &[ALL, ALL], ALL - 1),
        ("mul.hi.u64", &[1 << 32, 1 << 32], 1),
        (
            "mul.wide.u32",
            &[0xffff_ffff, 0xffff_ffff],
            0xffff_fffe_0000_0001,
        ),
        ("mul.wide.s32", &[s32(-2), 3], s64(-6)),
        ("mad.lo.s64", &[s64(-3), 5, 16], 1),
        ("mad.lo.s32", &[0x8000_0000, 2, 7], 7),
        ("mad.wide.u32", &[0xffff_ffff, 2, 1], 0x1_ffff_ffff),
        ("div.u64", &[ALL, 2], ALL >> 1),
        ("div.u32", &[7, 2], 3),
        ("div.u32", &[7, 0], 0xffff_ffff),
        ("div.s32", &[s32(-7), 2], s32(-3)),
        ("rem.u64", &[ALL, 10], 5),
        ("rem.u32", &[7, 4], 3),
        ("rem.s32", &[s32(-7), 4], s32(-3)),
        ("min.s64", &[s64(-1), 1], s64(-1)),
        ("min.u64", &[ALL, 1], 1),
        ("max.s64", &[s64(-1), 1], 1),
        ("max.s32", &[s32(-1), 1], 1),
        ("min.relu.s32", &[s32(-1), 5], 0),
        ("min.relu.s32", &[7, 5], 5),
        ("max.relu.s32", &[s32(-1), s32(-2)], 0),
        ("max.relu.s32", &[s32(-1), 3], 3),
        ("neg.s64", &[5], s64(-5)),
        ("neg.s32", &[0x8000_0000], 0x8000_0000),
        ("abs.s32", &[-7_i32 as u32 as u64], 7),
        ("abs.s32", &[7], 7),
        ("abs.s64", &[-7_i64 as u64], 7),
    ]);
}

#[test]
fn bits() {
    check(&[
        ("and.b64", &[0b1100, 0b1010], 0b1000),
        ("and.b32", &[0b1100, 0b1010], 0b1000),
        ("or.b64", &[0b1100, 0b1010], 0b1110),
        ("or.b32", &[0b1100, 0b1010], 0b1110),
        ("xor.b64", &[0b1100, 0b1010], 0b0110),
        ("not.b32", &[0], 0xffff_ffff),
        ("not.b64", &[0], ALL),
        ("and.pred", &[1, 0], 0),
        ("or.pred", &[1, 0], 1),
        ("xor.pred", &[1, 1], 0),
        ("not.pred", &[1], 0),
        ("not.pred", &[0], 1),
        ("shl.b64", &[1, 63], 1 << 63),
        ("shl.b64", &[1, 64], 0),
        ("shl.b32", &[3, 31], 0x8000_0000),
        ("shl.b32", &[3, 32], 0),
        ("shr.u64", &[1 << 63, 63], 1),
        ("shr.u64", &[ALL, 64], 0),
        ("shr.u16", &[0x8000, 15], 1),
        ("shr.u16", &[0x8000, 40], 0),
        ("shr.s32", &[0x8000_0000, 31], 0xffff_ffff),
        ("shr.s64", &[1 << 63, 1000], ALL),
        ("bfe.u64", &[0xabcd, 4, 8], 0xbc),
        ("bfe.u64", &[ALL, 60, 8], 0xf),
        ("bfe.u64", &[ALL, 0, 64], ALL),
        ("bfe.u32", &[0xabcd, 8, 0], 0),
        ("bfe.s64", &[0b1000, 3, 1], ALL),
        ("bfe.s64", &[0b0111, 3, 1], 0),
        ("bfe.s64", &[0xabcd, 4, 7], 0x3c),
        ("bfe.s64", &[0xabcd, 4, 8], s64(0xbc - 0x100)),
        ("bfe.s64", &[1 << 63, 60, 8], s64(-8)),
        ("bfe.s64", &[1 << 62, 60, 8], 4),
        ("bfe.s64", &[1 << 63, 70, 8], ALL),
        ("bfe.s64", &[ALL, 5, 0], 0),
        ("bfe.s64", &[ALL, 0, 64], ALL),
        ("bfe.s32", &[0x8000_0000, 28, 8], 0xffff_fff8),
        ("bfe.s32", &[0x7000_0000, 28, 8], 7),
        ("shf.l.wrap.b32", &[0x8000_0001, 5, 1], 11),
        ("shf.l.wrap.b32", &[7, 5, 32], 5),
        ("shf.l.wrap.b32", &[7, 5, 0], 5),
        ("shf.l.clamp.b32", &[7, 5, 40], 7),
        ("shf.r.wrap.b32", &[2, 3, 1], 0x8000_0001),
        ("shf.r.wrap.b32", &[7, 5, 32], 7),
        ("shf.r.clamp.b32", &[7, 5, 40], 5),
        ("selp.b32", &[1, 2, 1], 1),
        ("selp.b64", &[1, 2, 0], 2),
        ("selp.f32", &[f(1.0), f(2.0), 0], f(2.0)),
        ("selp.f64", &[d(1.0), d(2.0), 1], d(1.0)),
        ("selp.b16", &[1, 0, 1], 1),
        ("mov.b32", &[7], 7),
        ("mov.u32", &[7], 7),
        ("mov.b64", &[ALL], ALL),
        ("mov.pred", &[1], 1),
    ]);
}

#[test]
fn permutations() {
    let (a, b) = (0x8372_6150, 0xc7b6_2594);
    check(&[
        // Each of the eight bytes, at each place.
        ("prmt.b32", &[a, b, 0x3210], a),
        ("prmt.b32", &[a, b, 0x7654], b),
        ("prmt.b32", &[a, b, 0x0123], 0x5061_7283),
        ("prmt.b32", &[a, b, 0x4567], 0x9425_b6c7),
        ("prmt.b32", &[a, b, 0x7340], 0xc783_9450),
        ("prmt.b32", &[a, b, 0x1111], 0x6161_6161),
        // The same bytes, of which nothing but the sign is left, everywhere.
        ("prmt.b32", &[a, b, 0xba98], 0xff00_0000),
        ("prmt.b32", &[a, b, 0xfedc], 0xffff_00ff),
        ("prmt.b32", &[a, b, 0x0b3c], 0x50ff_83ff),
        // As it is written where bools are put together.
        ("prmt.b32", &[1, 0, 0x7771], 0),
        ("prmt.b32", &[1, 0, 0x3340], 0x1),
        ("prmt.b32", &[0x0001, 0x0100, 0x5410], 0x0100_0001),
        // Of a selector only sixteen bits are looked at.
        ("prmt.b32", &[a, b, 0xabcd_3210], a),
    ]);
}

#[test]
fn comparisons() {
    for (opcode, holds) in [
        ("setp.eq.b64", [false, true, false]),
        ("setp.ne.b64", [true, false, true]),
        ("setp.lt.s64", [true, false, false]),
        ("setp.le.s64", [true, true, false]),
        ("setp.gt.s64", [false, false, true]),
        ("setp.ge.s64", [false, true, true]),
        ("setp.lt.u64", [false, false, true]),
        ("setp.le.u64", [false, true, true]),
        ("setp.ge.u64", [true, true, false]),
        ("setp.gt.u64", [true, false, false]),
    ] {
        for ((a, b), holds) in [(-1, 1), (1, 1), (1, -1)].into_iter().zip(holds) {
            assert_eq!(
                run(opcode, &[s64(a), s64(b)]),
                u64::from(holds),
                "{opcode} {a} {b}"
            );
            let narrow = opcode.replace("64", "32");
            assert_eq!(
                run(&narrow, &[s32(a as i32), s32(b as i32)]),
                u64::from(holds),
                "{narrow}"
            );
        }
    }
    // Less, equal, greater, and where one is not a number.
    for (name, holds) in [
        ("eq", [0, 1, 0, 0]),
        ("ne", [1, 0, 1, 0]),
        ("lt", [1, 0, 0, 0]),
        ("le", [1, 1, 0, 0]),
        ("gt", [0, 0, 1, 0]),
        ("ge", [0, 1, 1, 0]),
        ("equ", [0, 1, 0, 1]),
        ("neu", [1, 0, 1, 1]),
        ("ltu", [1, 0, 0, 1]),
        ("leu", [1, 1, 0, 1]),
        ("gtu", [0, 0, 1, 1]),
        ("geu", [0, 1, 1, 1]),
        ("num", [1, 1, 1, 0]),
        ("nan", [0, 0, 0, 1]),
    ] {
        let pairs = [(-1.0, 2.0), (0.0, -0.0), (2.0, -1.0), (f32::NAN, 1.0)];
        for ((a, b), holds) in pairs.into_iter().zip(holds) {
            let opcode = format!("setp.{name}.f32");
            assert_eq!(run(&opcode, &[f(a), f(b)]), holds, "{opcode} {a} {b}");
            let opcode = format!("setp.{name}.f64");
            assert_eq!(
                run(&opcode, &[d(a.into()), d(b.into())]),
                holds,
                "{opcode} {a} {b}"
            );
        }
    }
}

#[test]
fn floats() {
    let third = 1.0_f32 / 3.0;
    let least = f32::from_bits(1);
    check(&[
        ("add.rn.f32", &[f(1.0), f(f32::EPSILON / 2.0)], f(1.0)),
        ("add.rn.f32", &[f(f32::MAX), f(f32::MAX)], f(f32::INFINITY)),
        ("add.rn.f32", &[f(f32::INFINITY), f(f32::NEG_INFINITY)], NAN),
        ("sub.rn.f32", &[f(1.0), f(third)], f(1.0 - third)),
        ("mul.rn.f32", &[f(third), f(third)], f(third * third)),
        // Numbers below the normal ones are kept.
        ("mul.rn.f32", &[f(least), f(2.0)], 2),
        ("div.rn.f32", &[f(1.0), f(3.0)], f(third)),
        ("div.rn.f32", &[f(0.0), f(0.0)], NAN),
        ("rcp.rn.f32", &[f(-0.0)], f(f32::NEG_INFINITY)),
        ("rcp.rn.f32", &[f(3.0)], f(third)),
        ("sqrt.rn.f32", &[f(2.0)], f(2.0_f32.sqrt())),
        ("sqrt.rn.f32", &[f(-1.0)], NAN),
        ("sqrt.rn.f32", &[f(-0.0)], f(-0.0)),
        // Rounded once: a product that is rounded by itself would leave 0.
        (
            "fma.rn.f32",
            &[f(1.0 + f32::EPSILON), f(1.0 - f32::EPSILON), f(-1.0)],
            f(-f32::EPSILON * f32::EPSILON),
        ),
        ("neg.f32", &[f(0.0)], f(-0.0)),
        ("abs.f32", &[f(-2.0)], f(2.0)),
        ("min.f32", &[f(0.0), f(-0.0)], f(-0.0)),
        ("max.f32", &[f(-0.0), f(0.0)], f(0.0)),
        ("max.f32", &[f(f32::NAN), f(1.0)], f(1.0)),
        ("min.f32", &[f(1.0), f(f32::NAN)], f(1.0)),
        ("max.NaN.f32", &[f(1.0), f(f32::NAN)], NAN),
        ("max.NaN.f32", &[f(1.0), f(2.0)], f(2.0)),
        ("min.NaN.f32", &[f(f32::NAN), f(2.0)], NAN),
        ("add.rn.f64", &[d(1.0), d(2.0)], d(3.0)),
        ("mul.rn.f64", &[d(0.1), d(0.1)], d(0.1 * 0.1)),
        (
            "fma.rn.f64",
            &[d(1.0 + f64::EPSILON), d(1.0 - f64::EPSILON), d(-1.0)],
            d(-f64::EPSILON * f64::EPSILON),
        ),
        ("neg.f64", &[d(1.0)], d(-1.0)),
        ("min.f64", &[d(1.0), d(-1.0)], d(-1.0)),
        ("max.f64", &[d(f64::NAN), d(-1.0)], d(-1.0)),
    ]);
}

#[test]
fn conversions() {
    check(&[
        ("cvt.u64.u32", &[0xffff_ffff], 0xffff_ffff),
        ("cvt.s64.s32", &[0xffff_ffff], ALL),
        ("cvt.u32.u64", &[0x1_2345_6789], 0x2345_6789),
        ("cvt.u16.u64", &[0x1_2345_6789], 0x6789),
        ("cvt.u16.u32", &[0x2345_6789], 0x6789),
        ("cvt.u32.u16", &[0x6789], 0x6789),
        ("cvt.u64.u16", &[0xffff], 0xffff),
        ("cvt.s64.s16", &[0x8000], s64(-0x8000)),
        ("cvt.rzi.s32.f32", &[f(-2.75)], s32(-2)),
        ("cvt.rzi.s32.f32", &[f(3e9)], 0x7fff_ffff),
        ("cvt.rzi.s32.f32", &[NAN], 0),
        ("cvt.rmi.f32.f32", &[f(-2.25)], f(-3.0)),
        ("cvt.rni.f64.f64", &[d(2.5)], d(2.0)),
        ("cvt.rni.f64.f64", &[d(3.5)], d(4.0)),
        ("cvt.rmi.f64.f64", &[d(-0.5)], d(-1.0)),
        ("cvt.rn.f32.f64", &[d(0.1)], f(0.1)),
        ("cvt.rn.f32.f64", &[NAN_64], NAN),
        ("cvt.f64.f32", &[f(0.1)], d(0.1_f32.into())),
        ("cvt.rn.f32.s32", &[s32(-16_777_217)], f(-16_777_216.0)),
        ("copysign.f32", &[f(-0.0), f(2.0)], f(-2.0)),
        ("copysign.f32", &[f(1.0), f(-2.0)], f(2.0)),
        ("copysign.f64", &[d(-1.0), d(2.0)], d(-2.0)),
        ("cvt.rn.f64.s32", &[s32(-3)], d(-3.0)),
        ("cvt.rn.f64.u32", &[0xffff_ffff], d(4_294_967_295.0)),
        ("cvt.rn.f64.s64", &[s64(-3)], d(-3.0)),
        (
            "cvt.rn.f64.s64",
            &[s64((1 << 53) + 1)],
            d(9_007_199_254_740_992.0),
        ),
        ("cvt.rn.f64.u64", &[ALL], d(18_446_744_073_709_551_616.0)),
        ("cvt.rzi.s32.f64", &[d(-2.9)], s32(-2)),
        ("cvt.rzi.s32.f64", &[d(1e10)], 0x7fff_ffff),
        ("cvt.rzi.s32.f64", &[NAN_64], 0x8000_0000),
        ("cvt.rzi.u32.f64", &[d(-1.0)], 0),
        ("cvt.rzi.u32.f64", &[d(4e9)], 4_000_000_000),
        ("cvt.rzi.s64.f64", &[d(-1e15)], s64(-1_000_000_000_000_000)),
        ("cvt.rzi.s64.f64", &[NAN_64], 1 << 63),
        ("cvt.rzi.u64.f64", &[d(1e30)], ALL),
        ("cvt.rzi.s64.f32", &[f(-2.5)], s64(-2)),
        ("cvt.rzi.s64.f32", &[NAN], 1 << 63),
        ("cvt.rzi.u64.f32", &[f(3.7)], 3),
        ("cvt.rn.f32.s64", &[s64(-3)], f(-3.0)),
        ("cvt.rn.f32.u32", &[0xffff_ffff], f(4_294_967_296.0)),
    ]);
    let ulp = 2.0_f32.powi(-10);
    check(&[
        ("cvt.rna.tf32.f32", &[f(1.0 + ulp * 0.49)], f(1.0)),
        ("cvt.rna.tf32.f32", &[f(1.0 + ulp * 0.5)], f(1.0 + ulp)),
        ("cvt.rna.tf32.f32", &[f(-1.0 - ulp * 0.5)], f(-1.0 - ulp)),
        ("cvt.rna.tf32.f32", &[f(f32::MAX)], f(f32::INFINITY)),
        ("cvt.rna.tf32.f32", &[f(f32::NAN)], NAN),
        ("cvt.rn.bf16x2.f32", &[f(1.0), f(2.0)], 0x3f80_4000),
        ("cvt.rn.bf16x2.f32", &[f(f32::NAN), f(-0.0)], 0x7fff_8000),
    ]);
    let ulp = 2.0_f32.powi(-7);
    check(&[
        ("cvt.rn.bf16x2.f32", &[f(0.0), f(1.0 + ulp * 0.5)], 0x3f80),
        ("cvt.rn.bf16x2.f32", &[f(0.0), f(1.0 + ulp * 1.5)], 0x3f82),
        ("cvt.rn.bf16x2.f32", &[f(0.0), f(f32::MAX)], 0x7f80),
    ]);
}

/// Of the opcodes that the compiler writes for all examples, in every precision.
#[test]
fn each_opcode_that_is_written_has_a_case() {
    for cases in [
        integers,
        bits,
        permutations,
        comparisons,
        floats,
        conversions,
    ] {
        cases();
    }
    let known = include_str!("../../tests/opcodes.txt").lines();
    let known = known.filter(|opcode| find(opcode).is_some());
    let missing: Vec<&str> =
        RUN.with_borrow(|run| known.filter(|opcode| !run.contains(*opcode)).collect());
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn what_is_not_known_is_not_guessed() {
    for opcode in [
        "ex2.approx.f32",
        "add.f32",
        "add.rz.f32",
        "add.ftz.f32",
        "fma.rn.ftz.f32",
        "mul.lo.f32",
        "setp.eq.f16",
        "setp.lt.b32",
        "and.u32",
        "cvt.rn.f16.f32",
        "shl.u32",
        "bfe.b32",
        "mul.wide.s64",
        "prmt.b32.f4e",
        "prmt.b32.b4e",
        "prmt.b32.rc8",
        "prmt.b32.ecl",
        "prmt.b32.ecr",
        "prmt.b32.rc16",
        "prmt.b64",
        "prmt",
        "add",
        "mov.b24",
    ] {
        assert!(find(opcode).is_none(), "{opcode}");
    }
}
