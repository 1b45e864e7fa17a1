//! The check of batch invariance: it passes what is invariant, and catches and names what is not.

use std::ffi::c_void;

use cohort_runtime::abi::manifest::*;
use cohort_runtime::abi::{Context, Handle, OperandRef, VERSION};
use cohort_runtime::symbols::cohort_record;
use cohort_runtime::verify::{Difference, Divergence, Options, Verdict, verify};
use cohort_runtime::{Batch, Config, Program, Weights};

use crate::program::{
    Functions, Tree, WIDTH, tree_functions, tree_manifest, tree_weights, write_weights,
};

const OPTIONS: Options = Options {
    compositions: 12,
    seed: 5,
    max_threads: 2,
    cotangents: None,
};

fn input() -> Vec<u8> {
    let mut seed = 3;
    let lines = (0..20).map(|index| {
        let tree = Tree::random(&mut seed, 1 + index % 7);
        // One instance fails, and must fail the same way everywhere.
        let tree = if index == 9 { Tree::Leaf(-1) } else { tree };
        format!("{{\"id\": \"s{index}\", \"t\": {}}}\n", tree.json())
    });
    (lines.collect::<String>() + "not an instance\n\n{}").into_bytes()
}

/// Runs the program of trees with another function in place of one of its kernels.
fn check(symbol: &str, function: *const ()) -> Verdict {
    let Functions(mut functions) = tree_functions();
    for (name, address) in &mut functions {
        if *name == symbol {
            *address = function;
        }
    }
    let manifest: Manifest = tree_manifest();
    let program = Program::new(manifest, Box::new(Functions(functions))).unwrap();
    let config = Config {
        batch: Batch::Count(8),
        ..Config::default()
    };
    verify(
        &program,
        &tree_weights(),
        config,
        &input(),
        OPTIONS,
        &mut |_| {},
    )
    .unwrap()
}

fn difference(verdict: Verdict) -> Difference {
    match verdict {
        Verdict::Differs(difference) => *difference,
        Verdict::Holds(summary) => panic!("nothing was found: {summary}"),
        Verdict::SumsDiffer(difference) => panic!("{difference}"),
    }
}

#[test]
fn an_invariant_program_passes_and_the_summary_says_what_was_tried() {
    match check("", std::ptr::null()) {
        Verdict::Holds(summary) => {
            assert_eq!((summary.instances, summary.failed), (22, 3));
            assert_eq!(summary.compositions, 12);
            assert!(summary.compared >= 12 * 11);
            assert!(summary.all_at_once > 0 && summary.unbatched > 0);
            assert_eq!(summary.threads.len(), 2);
        }
        Verdict::Differs(difference) => panic!("{difference}"),
        Verdict::SumsDiffer(difference) => panic!("{difference}"),
    }
}

#[test]
fn a_kernel_that_looks_at_its_row_number_is_named_with_the_bit() {
    let found = difference(check("leaf", leaf_by_row as *const ()));
    let Divergence::Row {
        kernel,
        location,
        element,
        first,
        then,
        ..
    } = &found.place
    else {
        panic!("{found}");
    };
    assert_eq!(
        (kernel.as_str(), location.as_str()),
        ("leaf", "trees.coh:3:5")
    );
    assert_eq!((*element, first ^ then), (2, 1));
    assert!(
        found.to_string().contains("leaf at trees.coh:3:5"),
        "{found}"
    );
}

#[test]
fn a_kernel_that_looks_at_the_number_of_rows_is_named() {
    let found = difference(check("node", node_by_count as *const ()));
    let Divergence::Row { kernel, .. } = &found.place else {
        panic!("{found}");
    };
    assert_eq!(kernel, "node");
}

/// Element 2 is one bit off in odd rows.
unsafe extern "C" fn leaf_by_row(
    begin: i64,
    end: i64,
    _operands: *const OperandRef,
    results: *const *mut c_void,
    _constants: *const *const c_void,
    _scratch: *mut c_void,
) {
    for row in begin as usize..end as usize {
        for column in 0..WIDTH {
            let odd = u32::from(column == 2 && row % 2 == 1);
            // SAFETY: one result, `WIDTH` elements a row.
            unsafe {
                let out = (*results).cast::<u32>().add(row * WIDTH + column);
                out.write(0x3f80_0000 | odd);
            }
        }
    }
}

/// All elements are the number of rows that were computed together.
unsafe extern "C" fn node_by_count(
    begin: i64,
    end: i64,
    _operands: *const OperandRef,
    results: *const *mut c_void,
    _constants: *const *const c_void,
    _scratch: *mut c_void,
) {
    for result in 0..2 {
        for at in begin as usize * WIDTH..end as usize * WIDTH {
            // SAFETY: two results, `WIDTH` elements a row.
            unsafe {
                let out = (*results.add(result)).cast::<f32>().add(at);
                out.write((end - begin) as f32);
            }
        }
    }
}

/// `main(x: f32[4]) -> f32` adds the elements up. Its backward gives two rows: the gradient of the input, and
/// what the parameter's gradient is the sum of.
fn differentiated() -> Manifest {
    let row = || Operand::Row { pool: 0 };
    let number = || Type::Tensor { pool: 1 };
    let kernel = |name: &str, operands: Vec<Operand>, results: Vec<usize>| Kernel {
        name: name.to_owned(),
        symbol: name.to_owned(),
        location: String::new(),
        operands,
        results,
        constants: vec![],
        scratch_bytes: 0,
        row_tile: 4,
        flops_per_row: 1_000_000,
        row_products: vec![],
        call: Default::default(),
        gpu: None,
    };
    let x = || Type::Tensor { pool: 0 };
    let argument = |of, ty| GradientArgument {
        of,
        ty,
        lengths: vec![],
    };
    Manifest {
        version: VERSION,
        entry: "main".to_owned(),
        arguments: vec![Argument {
            name: "x".to_owned(),
            ty: x(),
        }],
        result: number(),
        params: vec![Param {
            name: "w".to_owned(),
            elem: Elem::F32,
            shape: vec![WIDTH as u64],
            stored: None,
        }],
        row_pools: vec![
            RowPool {
                elem: Elem::F32,
                shape: vec![WIDTH as u64],
            },
            RowPool {
                elem: Elem::F32,
                shape: vec![],
            },
        ],
        sources: vec![],
        kernels: vec![
            kernel("add", vec![row()], vec![1]),
            kernel("back", vec![row(), Operand::Row { pool: 1 }], vec![0, 0]),
            kernel("one", vec![], vec![1]),
        ],
        gradients: Some(Gradients {
            functions: vec![GradientFunction {
                kernel: 0,
                symbol: "add_gradient".to_owned(),
                arguments: vec![
                    argument(OfCall::Operand(0), x()),
                    argument(OfCall::Cotangent(0), number()),
                ],
                results: vec![
                    GradientResult {
                        ty: x(),
                        operand: Some(0),
                    },
                    GradientResult {
                        ty: x(),
                        operand: None,
                    },
                ],
                sites: vec![Site {
                    param: 0,
                    offset: 0,
                    shape: vec![WIDTH as u64],
                    strides: vec![1],
                    left: None,
                    right: SiteValue::Result(1),
                }],
                refused: None,
            }],
            helpers: vec![GradientHelper {
                kind: HelperKind::One,
                pool: 1,
                symbol: "make_one".to_owned(),
            }],
            parameters_only: false,
        }),
        ..Manifest {
            adts: vec![],
            ..tree_manifest()
        }
    }
}

unsafe extern "C" fn main_of(context: *mut Context, arguments: *const u64, results: *mut u64) {
    // SAFETY: one argument, a row, and one result.
    unsafe { results.write(cohort_record(context, 0, arguments)) }
}

unsafe extern "C" fn add_gradient(context: *mut Context, arguments: *const u64, results: *mut u64) {
    // SAFETY: two arguments, both rows, and two results.
    unsafe {
        let call = Handle(cohort_record(context, 1, arguments));
        results.write(call.result_handle(0).0);
        results.add(1).write(call.result_handle(1).0);
    }
}

unsafe extern "C" fn make_one(context: *mut Context, arguments: *const u64, results: *mut u64) {
    // SAFETY: no argument and one result.
    unsafe { results.write(cohort_record(context, 2, arguments)) }
}

/// Writes `element(row, number of rows)` to all elements of each of these results.
unsafe fn fill(rows: [i64; 2], outs: [*mut c_void; 2], widths: [usize; 2], elements: [f32; 2]) {
    for ((out, width), element) in outs.into_iter().zip(widths).zip(elements) {
        for at in rows[0] as usize * width..rows[1] as usize * width {
            // SAFETY: the caller's promise: `width` elements a row.
            unsafe { out.cast::<f32>().add(at).write(element) };
        }
    }
}

macro_rules! kernel {
    ($name:ident, $results:literal, $width:expr, |$count:ident| $elements:expr) => {
        unsafe extern "C" fn $name(
            begin: i64,
            end: i64,
            _operands: *const OperandRef,
            results: *const *mut c_void,
            _constants: *const *const c_void,
            _scratch: *mut c_void,
        ) {
            let $count = (end - begin) as f32;
            // SAFETY: as many results of that width as the manifest says; the last is written twice.
            unsafe {
                let outs = [*results, *results.add($results - 1)];
                fill([begin, end], outs, [$width; 2], $elements);
            }
        }
    };
}

kernel!(seven, 1, 1, |_count| [7.0, 7.0]);
kernel!(one, 1, 1, |_count| [1.0, 1.0]);
kernel!(fair, 2, WIDTH, |_count| [2.0, 3.0]);
kernel!(input_by_count, 2, WIDTH, |count| [count, 3.0]);
kernel!(sum_by_count, 2, WIDTH, |count| [2.0, count]);

fn check_gradients(back: *const ()) -> Verdict {
    let functions = Functions(vec![
        ("main", main_of as *const ()),
        ("add_gradient", add_gradient as *const ()),
        ("make_one", make_one as *const ()),
        ("add", seven as *const ()),
        ("one", one as *const ()),
        ("back", back),
    ]);
    let program = Program::new(differentiated(), Box::new(functions)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.safetensors");
    write_weights(&path, &[("w", vec![WIDTH], vec![0.0; WIDTH])]);
    let config = Config {
        batch: Batch::Count(8),
        gradients: true,
        ..Config::default()
    };
    let input = "{\"x\": [1, 2, 3, 4]}\n".repeat(20);
    let weights = Weights::open(&path).unwrap();
    verify(
        &program,
        &weights,
        config,
        input.as_bytes(),
        OPTIONS,
        &mut |_| {},
    )
    .unwrap()
}

#[test]
fn gradients_that_depend_on_the_batch_are_found() {
    match check_gradients(fair as *const ()) {
        Verdict::Holds(summary) => assert_eq!(summary.gradients, 12),
        other => panic!("{other:?}"),
    }
    let found = difference(check_gradients(input_by_count as *const ()));
    assert_eq!(found.place, Divergence::Backward);
    assert_eq!(found.output.path, "gradient.x[0]", "{found}");
    match check_gradients(sum_by_count as *const ()) {
        Verdict::SumsDiffer(found) => {
            assert_eq!((found.parameter.as_str(), found.element), ("w", 0));
            assert!(
                found.to_string().contains("the gradient of `w` differs"),
                "{found}"
            );
        }
        other => panic!("{other:?}"),
    }
}
