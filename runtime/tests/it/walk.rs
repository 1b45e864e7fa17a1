//! A program whose path depends on tensors, as a compiler would make it, written by hand.
//!
//! `main(seed: i32, kind: i32) -> (f32[4], i32)` walks from a point that the seed gives until the
//! point itself says that it is enough; it returns the point and the number of steps. It decides by
//! an `f32`, an `i32` and a `bool` in turn. The kind makes some instances misbehave.

use std::ffi::c_void;

use cohort_runtime::abi::manifest::*;
use cohort_runtime::abi::{Context, Failure, Handle, OperandRef, VERSION};
use cohort_runtime::symbols::*;
use cohort_runtime::{Config, Program, Session, Weights};

use crate::program::Functions;

pub const WIDTH: usize = 4;
pub const MOST_STEPS: i32 = 40;

/// Kinds of instances.
pub const WALK: i32 = 0;
pub const NEVER_DECIDE: i32 = 1;
pub const WALK_FOREVER: i32 = 2;
pub const NAN: i32 = 3;
pub const RECURSE: i32 = 4;
pub const RECORD_FOREVER: i32 = 5;
pub const FAIL_LATER: i32 = 6;
pub const FORGE: i32 = 7;
pub const ALLOCATE_FOREVER: i32 = 8;
pub const RECURSE_FOREVER: i32 = 9;
pub const DECIDE_BY_INPUT: i32 = 10;
pub const SPIN: i32 = 11;

const BEGIN: u32 = 0;
const STEP: u32 = 1;
const SCORE: u32 = 2;
const LABEL: u32 = 3;
const IS_HIGH: u32 = 4;
const JOIN: u32 = 5;

pub fn walk_manifest() -> Manifest {
    let pool = |elem, shape: &[u64]| RowPool {
        elem,
        shape: shape.to_vec(),
    };
    let row = Operand::Row { pool: 0 };
    let kernel = |name: &str, operands: &[Operand], result| Kernel {
        name: name.to_owned(),
        symbol: name.to_owned(),
        location: format!("walk.coh:{name}"),
        operands: operands.to_vec(),
        results: vec![result],
        constants: vec![],
        scratch_bytes: 0,
        row_tile: 4,
        flops_per_row: 1_000_000,
        row_products: vec![],
        call: Default::default(),
        gpu: None,
    };
    let force = |line, pool| Force {
        location: format!("walk.coh:{line}:8"),
        pool,
    };
    let scalar = |name: &str| Argument {
        name: name.to_owned(),
        ty: Type::Scalar(Elem::I32),
    };
    Manifest {
        version: VERSION,
        entry: "walk".to_owned(),
        arguments: vec![
            scalar("seed"),
            scalar("kind"),
            Argument {
                name: "x".to_owned(),
                ty: Type::Tensor { pool: 1 },
            },
        ],
        result: Type::Tuple(vec![Type::Tensor { pool: 0 }, Type::Scalar(Elem::I32)]),
        adts: vec![],
        params: vec![],
        row_pools: vec![
            pool(Elem::F32, &[WIDTH as u64]),
            pool(Elem::F32, &[]),
            pool(Elem::I32, &[1]),
            pool(Elem::Bool, &[]),
        ],
        sources: vec![],
        kernels: vec![
            kernel("begin", &[Operand::Scalar(Elem::I32)], 0),
            kernel("step", &[row], 0),
            kernel("score", &[row], 1),
            kernel("label", &[row], 2),
            kernel("is_high", &[row], 3),
            kernel("join", &[row, row], 0),
        ],
        locations: vec!["walk.coh:9:9".to_owned()],
        debugs: vec![],
        forces: vec![force(20, 1), force(21, 2), force(22, 3), force(23, 1)],
        computed: vec![],
        grows_in_place: false,
        gradients: None,
        structure: None,
        gpu_flush: None,
        dims: vec![],
    }
}

pub fn walk_functions() -> Functions {
    Functions(vec![
        ("walk", walk as *const ()),
        ("begin", begin as *const ()),
        ("step", step as *const ()),
        ("score", score as *const ()),
        ("label", label as *const ()),
        ("is_high", is_high as *const ()),
        ("join", join as *const ()),
    ])
}

pub fn walk_session(config: Config) -> Session {
    let program = Program::new(walk_manifest(), Box::new(walk_functions())).unwrap();
    Session::new(program, &Weights::none(), config).unwrap()
}

pub fn line(seed: i32, kind: i32) -> String {
    format!(
        "{{\"seed\": {seed}, \"kind\": {kind}, \"x\": {}.5}}\n",
        seed % 7
    )
}

unsafe fn call(context: *mut Context, kernel: u32, operands: &[u64]) -> u64 {
    // SAFETY: the tests give as many operands as the kernel has.
    unsafe { cohort_record(context, kernel, operands.as_ptr()) }
}

unsafe extern "C" fn walk(context: *mut Context, arguments: *const u64, results: *mut u64) {
    // SAFETY: three arguments, two results; kernels, forces and failures of the manifest.
    unsafe {
        let seed = arguments.read() as u32 as i32;
        let kind = arguments.add(1).read() as u32 as i32;
        let input = arguments.add(2).read();
        let mut x = call(context, BEGIN, &[seed as u32 as u64]);
        // Memory of the instance must last.
        let memory = cohort_alloc(context, 2);
        memory.write(seed as u64);
        let steps = match kind {
            NEVER_DECIDE => {
                for _ in 0..seed % 5 {
                    x = call(context, STEP, &[x]);
                }
                seed % 5
            }
            RECURSE | RECURSE_FOREVER => {
                let steps = if kind == RECURSE {
                    10 + seed % 30
                } else {
                    i32::MAX
                };
                x = descend(context, x, steps);
                steps
            }
            DECIDE_BY_INPUT => {
                let bits = cohort_force(context, input, 3);
                let steps = f32::from_bits(bits) as i32;
                for _ in 0..steps {
                    x = call(context, STEP, &[x]);
                }
                steps
            }
            _ => wander(context, &mut x, kind),
        };
        assert_eq!(memory.read(), seed as u64);
        results.write(x);
        results.add(1).write(u64::from(steps as u32));
    }
}

unsafe fn wander(context: *mut Context, x: &mut u64, kind: i32) -> i32 {
    // SAFETY: as `walk`.
    unsafe {
        for steps in 1.. {
            cohort_step(context, 1);
            *x = call(context, STEP, &[*x]);
            match (kind, steps) {
                (NAN, 4) => *x = call(context, BEGIN, &[u64::from(i32::MIN as u32)]),
                (FAIL_LATER, 5) => {
                    call(context, STEP, &[*x]);
                    cohort_fail(context, Failure::IndexOutOfRange as u32, 7, 3, 0);
                }
                (FORGE, 3) => {
                    cohort_force(context, Handle::new(7777, 0, 0).0, 0);
                }
                (RECORD_FOREVER, 3) => loop {
                    *x = call(context, STEP, &[*x]);
                },
                (SPIN, 1) => loop {
                    cohort_step(context, 1);
                },
                (ALLOCATE_FOREVER, 3) => loop {
                    cohort_alloc(context, 100);
                },
                _ => {}
            }
            let is_enough = match steps % 3 {
                0 => {
                    let score = call(context, SCORE, &[*x]);
                    f32::from_bits(cohort_force(context, score, 0)) > 0.9
                }
                1 => {
                    let label = call(context, LABEL, &[*x]);
                    // A decision that is there already costs nothing.
                    let first = cohort_force(context, label, 1);
                    assert_eq!(cohort_force(context, label, 1), first);
                    first == 3
                }
                _ => {
                    let is_high = call(context, IS_HIGH, &[*x]);
                    if cohort_force(context, is_high, 2) == 1 {
                        let side = call(context, STEP, &[*x]);
                        *x = call(context, JOIN, &[side, *x]);
                    } else {
                        // As deep as the other branch.
                        *x = cohort_ghost(context, *x, 1);
                        *x = cohort_ghost(context, *x, 1);
                    }
                    false
                }
            };
            if kind == WALK && (is_enough || steps == MOST_STEPS) {
                (*context).phase = 1;
                *x = call(context, STEP, &[*x]);
                return steps;
            }
        }
        0
    }
}

/// Decides at every level on the way down, and again on the way up.
unsafe fn descend(context: *mut Context, x: u64, left: i32) -> u64 {
    let frame = std::hint::black_box([left; 16]);
    // SAFETY: as `walk`.
    unsafe {
        let here = frame.as_ptr() as u64;
        if (*context).depth >= (*context).max_depth || here < (*context).stack_limit {
            cohort_fail(context, Failure::DepthLimit as u32, 0, 0, 0);
        }
        (*context).depth += 1;
        let score = call(context, SCORE, &[x]);
        let down = f32::from_bits(cohort_force(context, score, 0));
        let mut x = call(context, STEP, &[x]);
        if left > 0 {
            x = descend(context, x, left - 1);
        }
        let is_high = call(context, IS_HIGH, &[x]);
        if (cohort_force(context, is_high, 2) == 1) != (down > 0.5) {
            x = call(context, JOIN, &[x, x]);
        }
        (*context).depth -= 1;
        assert_eq!(std::hint::black_box(frame)[15], left);
        x
    }
}

type Point = [f32; WIDTH];

fn begin_at(seed: i32) -> Point {
    if seed == i32::MIN {
        return [f32::NAN; WIDTH];
    }
    std::array::from_fn(|column| {
        let mixed = (seed as u32)
            .wrapping_mul(2_654_435_761)
            .wrapping_add(column as u32 * 97);
        ((mixed >> 8) % 1000) as f32 / 1000.0 * 0.98 + 0.01
    })
}

fn step_from(x: &Point) -> Point {
    std::array::from_fn(|column| {
        let mixed = 0.75 * x[column] + 0.25 * x[(column + 1) % WIDTH];
        3.9 * mixed * (1.0 - mixed)
    })
}

fn score_of(x: &Point) -> f32 {
    (x[0] + x[1]) * 0.5
}

fn label_of(x: &Point) -> i32 {
    (x[1] * 3.7) as i32
}

fn is_high_at(x: &Point) -> bool {
    x[2] > 0.5
}

fn join_of(a: &Point, b: &Point) -> Point {
    std::array::from_fn(|column| 0.5 * a[column] + 0.5 * b[column])
}

/// What `main` gives for a seed that walks or recurses, computed without any of the runtime.
pub fn expected(seed: i32, kind: i32) -> (Point, i32) {
    let mut x = begin_at(seed);
    let steps = match kind {
        NEVER_DECIDE => seed % 5,
        DECIDE_BY_INPUT => seed % 7,
        RECURSE => {
            let steps = 10 + seed % 30;
            return (descended(x, steps), steps);
        }
        _ => {
            for steps in 1.. {
                x = step_from(&x);
                let is_enough = match steps % 3 {
                    0 => score_of(&x) > 0.9,
                    1 => label_of(&x) == 3,
                    _ => {
                        if is_high_at(&x) {
                            x = join_of(&step_from(&x), &x);
                        }
                        false
                    }
                };
                if is_enough || steps == MOST_STEPS {
                    return (step_from(&x), steps);
                }
            }
            0
        }
    };
    for _ in 0..steps {
        x = step_from(&x);
    }
    (x, steps)
}

fn descended(x: Point, left: i32) -> Point {
    let down = score_of(&x);
    let mut x = step_from(&x);
    if left > 0 {
        x = descended(x, left - 1);
    }
    if is_high_at(&x) != (down > 0.5) {
        x = join_of(&x, &x);
    }
    x
}

unsafe fn point(operand: OperandRef, row: usize) -> Point {
    // SAFETY: a row operand of row pool 0, and a row of its index list.
    unsafe {
        let base = operand.base.cast::<Point>();
        *base.add(*operand.index.add(row) as usize)
    }
}

/// A kernel that computes each row by itself.
macro_rules! kernel {
    ($name:ident, $ty:ty, |$operands:ident, $row:ident| $value:expr) => {
        pub unsafe extern "C" fn $name(
            begin: i64,
            end: i64,
            $operands: *const OperandRef,
            results: *const *mut c_void,
            _constants: *const *const c_void,
            _scratch: *mut c_void,
        ) {
            // SAFETY: operands and the result are as the manifest lists them.
            unsafe {
                for $row in begin as usize..end as usize {
                    *(*results).cast::<$ty>().add($row) = $value;
                }
            }
        }
    };
}

kernel!(begin, Point, |operands, row| begin_at(
    *(*operands).index.add(row) as i32
));
kernel!(step, Point, |operands, row| step_from(&point(
    *operands, row
)));
kernel!(score, f32, |operands, row| score_of(&point(*operands, row)));
kernel!(label, i32, |operands, row| label_of(&point(*operands, row)));
kernel!(is_high, u8, |operands, row| u8::from(is_high_at(&point(
    *operands, row
))));
kernel!(join, Point, |operands, row| join_of(
    &point(*operands, row),
    &point(*operands.add(1), row)
));
