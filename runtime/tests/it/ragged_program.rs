//! A program over tensors whose lengths differ, as a compiler would make it, written by hand.
//!
//! `main(x: f32[n, 4], y: f32[n], kind: i32) -> (f32[n, 4], f32[4], f32[2, n], f32[m, 4])` mixes kernels
//! whose unit is the row with such whose unit is the call. The kind chooses the path, and makes some
//! instances misbehave.

use std::ffi::c_void;

use cohort_runtime::abi::manifest::*;
use cohort_runtime::abi::{Context, OperandRef, VERSION};
use cohort_runtime::symbols::*;
use cohort_runtime::{Config, Program, Session, Weights};

use crate::program::Functions;

pub const WIDTH: usize = 4;
pub type Row = [f32; WIDTH];

/// Bits of a kind.
pub const PREFIX: i32 = 1;
pub const DECIDE: i32 = 2;
pub const STACK: i32 = 4;
pub const GHOST: i32 = 8;
/// Kinds that misbehave.
pub const TOO_MANY_ROWS: i32 = 16;
pub const OVERFLOW: i32 = 17;
pub const NEGATIVE: i32 = 18;
pub const SHORT_STACK: i32 = 19;

const TOTAL: u32 = 0;
const SCALE: u32 = 1;
const RUNNING: u32 = 2;
const STACKED: u32 = 3;
const FILL: u32 = 4;
const BIG: u32 = 5;
const SCORE: u32 = 6;
const LIST: u32 = 7;

pub fn ragged_manifest(decides: bool) -> Manifest {
    let f32s = |shape: &[u64]| RowPool {
        elem: Elem::F32,
        shape: shape.to_vec(),
    };
    let extent = |lengths: &[usize], times| Extent {
        lengths: lengths.to_vec(),
        times,
    };
    let n = || extent(&[0], 1);
    let rows = |pool| Operand::Ragged { pool, extent: 0 };
    let row = Operand::Row { pool: 0 };
    let kernel = |name: &str, operands: &[Operand], result, call| Kernel {
        name: name.to_owned(),
        symbol: name.to_owned(),
        location: format!("ragged.coh:{name}"),
        operands: operands.to_vec(),
        results: vec![result],
        constants: vec![],
        scratch_bytes: 0,
        row_tile: 4,
        // A lie, so that even small launches are split over threads.
        flops_per_row: 100_000,
        row_products: vec![],
        call,
        gpu: None,
    };
    let by_row = |extents: Vec<Extent>| CallShape {
        extents,
        rows: Some(0),
        fused: true,
        ..CallShape::default()
    };
    let by_call = |extents: Vec<Extent>, rows| CallShape {
        extents,
        rows,
        unit: Unit::Calls,
        flops: vec![extent(&[0], 100_000)],
        ..CallShape::default()
    };
    // Its calls can be computed from any even row on.
    let divided = |call: CallShape| CallShape {
        division: Some(Division {
            length: 0,
            tile: 2,
            shared: 0,
            rising: vec![0],
        }),
        ..call
    };
    let length = Operand::Length;
    let named = |pool| Type::Ragged {
        pool,
        dims: vec![LeadingDim::Named(0)],
    };
    let argument = |name: &str, ty| Argument {
        name: name.to_owned(),
        ty,
    };
    Manifest {
        version: VERSION,
        entry: "main".to_owned(),
        arguments: vec![
            argument("x", named(0)),
            argument("y", named(1)),
            argument("kind", Type::Scalar(Elem::I32)),
        ],
        result: Type::Tuple(vec![
            named(0),
            Type::Tensor { pool: 0 },
            Type::Ragged {
                pool: 1,
                dims: vec![LeadingDim::Known(2), LeadingDim::Named(0)],
            },
            Type::Ragged {
                pool: 0,
                dims: vec![LeadingDim::Any],
            },
        ]),
        dims: vec!["n".to_owned()],
        adts: vec![],
        params: vec![],
        row_pools: vec![f32s(&[WIDTH as u64]), f32s(&[])],
        sources: vec![],
        kernels: vec![
            kernel("total", &[length, rows(0)], 0, by_call(vec![n()], None)),
            kernel(
                "scale",
                &[length, rows(0), rows(1), row, Operand::Scalar(Elem::I32)],
                0,
                by_row(vec![n()]),
            ),
            kernel(
                "running",
                &[length, row, rows(0)],
                0,
                divided(by_call(vec![n()], Some(0))),
            ),
            kernel(
                "stacked",
                &[length, Operand::Stacked { pool: 0, extent: 0 }, rows(0)],
                0,
                by_row(vec![n()]),
            ),
            kernel(
                "fill",
                &[length, Operand::Scalar(Elem::I32)],
                1,
                by_row(vec![extent(&[0], 2)]),
            ),
            kernel(
                "big",
                &[length, length],
                1,
                by_row(vec![extent(&[0, 1, 1], 3)]),
            ),
            kernel("score", &[row], 1, CallShape::default()),
            kernel(
                "list",
                &[length, Operand::Rows { pool: 0 }, rows(0)],
                0,
                by_row(vec![n()]),
            ),
        ],
        locations: vec!["ragged.coh:9:9".to_owned()],
        debugs: vec![],
        forces: match decides {
            true => vec![Force {
                location: "ragged.coh:20:8".to_owned(),
                pool: 1,
            }],
            false => vec![],
        },
        computed: vec![],
        grows_in_place: false,
        gradients: None,
        structure: None,
        gpu_flush: None,
    }
}

pub fn ragged_program(decides: bool) -> Program {
    let functions = Functions(vec![
        ("main", main as *const ()),
        ("total", total as *const ()),
        ("scale", scale as *const ()),
        ("running", running as *const ()),
        ("stacked", stacked as *const ()),
        ("fill", fill as *const ()),
        ("big", fill as *const ()),
        ("score", score as *const ()),
        ("list", list as *const ()),
    ]);
    Program::new(ragged_manifest(decides), Box::new(functions)).unwrap()
}

pub fn ragged_session(decides: bool, config: Config) -> Session {
    Session::new(ragged_program(decides), &Weights::none(), config).unwrap()
}

/// An instance, and what the program gives for it.
pub struct Instance {
    pub x: Vec<Row>,
    pub y: Vec<f32>,
    pub kind: i32,
}

impl Instance {
    pub fn new(n: usize, kind: i32) -> Instance {
        let value = |i: usize| ((i * 37 + n * 11) % 64) as f32 / 16.0 - 1.5;
        Instance {
            x: (0..n)
                .map(|row| std::array::from_fn(|column| value(row * WIDTH + column)))
                .collect(),
            y: (0..n).map(|row| value(row + 7)).collect(),
            kind,
        }
    }

    pub fn line(&self) -> String {
        format!(
            "{{\"x\": {:?}, \"y\": {:?}, \"kind\": {}}}\n",
            self.x, self.y, self.kind
        )
    }

    /// Computed without any of the runtime.
    pub fn expected(&self) -> (Vec<Row>, Row, Vec<Vec<f32>>, Vec<Row>) {
        let sum = total_of(&self.x);
        let scaled = |x: &[Row], by| -> Vec<Row> {
            let rows = x.iter().zip(&self.y);
            rows.map(|(x, y)| scale_of(x, *y, &sum, by)).collect()
        };
        let mut x = scaled(&self.x, self.kind);
        if self.kind & PREFIX != 0 {
            x = running_of(&x, &sum);
        }
        if self.kind & DECIDE != 0 && !x.is_empty() {
            let mut steps = 0;
            while x[0][0] < 4.0 && steps < 6 {
                x = scaled(&x, 3);
                steps += 1;
            }
        }
        if self.kind & STACK != 0 {
            let reversed = x.iter().rev();
            x = reversed.zip(&x).map(|(a, b)| add(a, b)).collect();
            let listed: Vec<Row> = x.iter().take(3).copied().collect();
            x = x.iter().map(|x| add(x, &total_of(&listed))).collect();
        }
        let filled = vec![vec![self.kind as f32; x.len()]; 2];
        let part = x.iter().skip(1).take(2).copied().collect();
        (x, sum, filled, part)
    }
}

/// The same kernels under a smaller program, `main(x: f32[n, 4]) -> f32[n, 4]`, of those only whose
/// unit is the row; each also for a device that gives kernels `gpu(symbol)`.
pub fn rows_manifest(gpu: impl Fn(&str) -> cohort_runtime::abi::gpu::GpuKernel) -> Manifest {
    let mut manifest = ragged_manifest(false);
    manifest.entry = "rows_main".to_owned();
    manifest.arguments.truncate(1);
    manifest.result = manifest.arguments[0].ty.clone();
    manifest.kernels = vec![
        manifest.kernels[STACKED as usize].clone(),
        manifest.kernels[LIST as usize].clone(),
    ];
    for kernel in &mut manifest.kernels {
        kernel.gpu = Some(gpu(&format!("{}_sim", kernel.name)));
    }
    manifest
}

pub unsafe extern "C" fn rows_main(
    context: *mut Context,
    arguments: *const u64,
    results: *mut u64,
) {
    // SAFETY: arguments, results and kernels of the manifest.
    unsafe {
        let [mut x, n] = std::array::from_fn(|slot| arguments.add(slot).read());
        let rows = cohort_alloc(context, n + 1);
        for _ in 0..3 {
            rows.write(n);
            for row in 0..n {
                rows.add(1 + row as usize).write(x + n - 1 - row);
            }
            x = call(context, 0, &[n, rows as u64, x]);
            // Of as many rows as the instance has, but not always from its first on.
            rows.write(n.min(2));
            x = call(context, 1, &[n, rows as u64, x]);
        }
        results.write(x);
        results.add(1).write(n);
    }
}

unsafe fn call(context: *mut Context, kernel: u32, operands: &[u64]) -> u64 {
    // SAFETY: as many operands as the kernel has.
    unsafe { cohort_record(context, kernel, operands.as_ptr()) }
}

unsafe extern "C" fn main(context: *mut Context, arguments: *const u64, results: *mut u64) {
    // SAFETY: arguments, results and kernels of the manifest.
    unsafe {
        let [x, n, y, m, kind] = std::array::from_fn(|slot| arguments.add(slot).read());
        assert_eq!(n, m);
        let kind = kind as u32 as i32;
        match kind {
            TOO_MANY_ROWS => call(context, BIG, &[n, 10_000]),
            OVERFLOW => call(context, BIG, &[n, (1 << 31) - 1]),
            NEGATIVE => call(context, BIG, &[n, -5_i64 as u64]),
            SHORT_STACK => call(context, STACKED, &[n, [0_u64].as_ptr() as u64, x]),
            _ => 0,
        };
        let sum = call(context, TOTAL, &[n, x]);
        let mut x = call(context, SCALE, &[n, x, y, sum, u64::from(kind as u32)]);
        if kind & PREFIX != 0 {
            x = call(context, RUNNING, &[n, sum, x]);
        } else if kind & GHOST != 0 {
            x = cohort_ghost(context, x, 1);
        }
        let mut steps = 0;
        while kind & DECIDE != 0 && n > 0 && steps < 6 {
            let score = call(context, SCORE, &[x]);
            if f32::from_bits(cohort_force(context, score, 0)) >= 4.0 {
                break;
            }
            x = call(context, SCALE, &[n, x, y, sum, 3]);
            steps += 1;
        }
        if kind & STACK != 0 {
            let rows = cohort_alloc(context, n + 1);
            rows.write(n);
            for row in 0..n {
                rows.add(1 + row as usize).write(x + n - 1 - row);
            }
            x = call(context, STACKED, &[n, rows as u64, x]);
            let count = n.min(3);
            let list = cohort_alloc(context, count + 1);
            list.write(count);
            for row in 0..count {
                list.add(1 + row as usize).write(x + row);
            }
            x = call(context, LIST, &[n, list as u64, x]);
        }
        let filled = call(context, FILL, &[n, u64::from(kind as u32)]);
        let part = n.saturating_sub(1).min(2);
        for (slot, value) in [x, n, sum, filled, n, x + 1, part].into_iter().enumerate() {
            results.add(slot).write(value);
        }
    }
}

fn add(a: &Row, b: &Row) -> Row {
    std::array::from_fn(|column| a[column] + b[column])
}

fn total_of(x: &[Row]) -> Row {
    x.iter().fold([0.0; WIDTH], |sum, x| add(&sum, x))
}

fn scale_of(x: &Row, y: f32, sum: &Row, by: i32) -> Row {
    std::array::from_fn(|column| x[column] * 0.5 + y * 0.25 + sum[column] * 0.125 + by as f32)
}

fn running_of(x: &[Row], start: &Row) -> Vec<Row> {
    let mut sum = *start;
    let rows = x.iter().map(|x| {
        sum = add(&sum, x);
        sum
    });
    rows.collect()
}

unsafe fn read<T: Copy>(operand: OperandRef, entry: usize) -> T {
    // SAFETY: a row operand, and an entry of its index list.
    unsafe { *(operand.base.cast::<T>()).add(*operand.index.add(entry) as usize) }
}

unsafe fn values<'a>(length: OperandRef, operand: OperandRef, call: usize) -> &'a [Row] {
    // SAFETY: a ragged operand of a kernel whose unit is the call.
    unsafe {
        let (first, n) = (*operand.index.add(call), *length.index.add(call));
        std::slice::from_raw_parts(operand.base.cast::<Row>().add(first as usize), n as usize)
    }
}

macro_rules! kernel {
    ($name:ident, |$operands:ident, $results:ident, $entry:ident| $body:expr) => {
        pub unsafe extern "C" fn $name(
            begin: i64,
            end: i64,
            operands: *const OperandRef,
            results: *const *mut c_void,
            _constants: *const *const c_void,
            _scratch: *mut c_void,
        ) {
            // SAFETY: operands and the result are as the manifest lists them.
            unsafe {
                let $operands = |operand: usize| *operands.add(operand);
                let $results = *results;
                for $entry in begin as usize..end as usize {
                    $body;
                }
            }
        }
    };
}

kernel!(total, |operands, results, call| {
    *results.cast::<Row>().add(call) = total_of(values(operands(0), operands(1), call));
});
kernel!(scale, |operands, results, row| {
    let by = *operands(4).index.add(row) as i32;
    let (x, y, sum) = (
        read::<Row>(operands(1), row),
        read::<f32>(operands(2), row),
        read::<Row>(operands(3), row),
    );
    *results.cast::<Row>().add(row) = scale_of(&x, y, &sum, by);
});
kernel!(running, |operands, results, item| {
    let [call, from, to] = *operands(4).index.cast::<[u32; 3]>().add(item);
    let call = call as usize;
    let x = values(operands(0), operands(2), call);
    let first = *operands(3).index.add(call) as usize;
    let values = running_of(x, &read(operands(1), call));
    let rows = values.iter().enumerate().take(to as usize);
    for (row, value) in rows.skip(from as usize) {
        *results.cast::<Row>().add(first + row) = *value;
    }
});
kernel!(stacked, |operands, results, row| {
    *results.cast::<Row>().add(row) = add(&read(operands(1), row), &read(operands(2), row));
});
kernel!(fill, |operands, results, row| {
    *results.cast::<f32>().add(row) = *operands(1).index.add(row) as i32 as f32;
});
kernel!(score, |operands, results, row| {
    *results.cast::<f32>().add(row) = read::<Row>(operands(0), row)[0];
});
kernel!(list, |operands, results, row| {
    let list = operands(1);
    let mut sum = [0.0; WIDTH];
    for at in *list.offsets.add(row)..*list.offsets.add(row + 1) {
        let from = *list.index.add(at as usize) as usize;
        sum = add(&sum, &*list.base.cast::<Row>().add(from));
    }
    *results.cast::<Row>().add(row) = add(&read(operands(2), row), &sum);
});
