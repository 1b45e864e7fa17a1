//! Loops over ragged dims and what they read, compiled and compared with plain Rust.

use std::ffi::c_void;

use cohort_dialects::builder::{extend_op, name_of};
use cohort_passes::loops::{
    ragged_fuse_loops, ragged_hfuse_loops, ragged_lower_loops, ragged_lower_prelude,
    ragged_lower_storage, ragged_remap_loops, ragged_split_loops,
};
use cohort_passes::pass::{self, PassInfo};
use cohort_passes::support::ir::{erase, top_level};
use melior::{ExecutionEngine, ir::Module, pass::PassManager, utility::parse_pass_pipeline};

const DIMS: &str = "
  ragged.dim @batch
  ragged.dim @seq(@batch)
  ragged.dim @until(@seq) lengths (i) -> (i floordiv 2 + i mod 3 + 1)
  ragged.dim @pairs(@batch) lengths (b)[n, m] -> (n * m + b) of [@seq, @seq]
  ragged.dim @word(@batch, @seq)
  ragged.dim @late(@batch) lengths (i) -> (i - 3)
  ragged.dim @triangle(@batch, @seq) lengths (b, i) -> (i + 1)
  ragged.dim @scores(@batch) lengths (b)[n] -> (2 * n * n) of [@seq]
  ragged.dim @column
  ragged.dim @cell(@batch, @column)
  ragged.dim @both lengths ()[n] -> (2 * n) of [@column]";

/// What bufferizes and translates what our passes leave.
const TO_LLVM: &str = "builtin.module(canonicalize,cse,\
    one-shot-bufferize{bufferize-function-boundaries=true},canonicalize,expand-strided-metadata,\
    lower-affine,arith-expand,convert-scf-to-cf,convert-cf-to-llvm,finalize-memref-to-llvm,\
    convert-arith-to-llvm,convert-index-to-llvm,convert-func-to-llvm,reconcile-unrealized-casts)";

pub const LOWER: &[PassInfo] = &[
    ragged_lower_prelude::PASS,
    ragged_lower_loops::PASS,
    ragged_lower_storage::PASS,
];
const TRANSFORM: &[PassInfo] = &[
    ragged_fuse_loops::PASS,
    ragged_remap_loops::PASS,
    ragged_split_loops::PASS,
    ragged_hfuse_loops::PASS,
    ragged_lower_prelude::PASS,
    ragged_lower_loops::PASS,
];

/// Lengths of so many rows, some of them empty.
pub fn lengths(rows: usize) -> Vec<i64> {
    (0..rows as i64).map(|row| row * row * 7 % 13).collect()
}

pub const ROWS: [usize; 6] = [0, 1, 3, 28, 61, 257];

/// A memref of one dim, as compiled code takes it.
#[repr(C)]
struct MemRef {
    allocated: *mut i64,
    aligned: *mut i64,
    offset: i64,
    size: i64,
    stride: i64,
}

pub struct Compiled {
    engine: ExecutionEngine,
}

impl Compiled {
    /// Compiles `@f`, which takes four tables of `index`; panics when that fails.
    pub fn new(function: &str, passes: &[PassInfo]) -> Self {
        let context = cohort_dialects::new_context();
        let text = format!("{DIMS}\n{function}");
        let mut module = Module::parse(&context, &text).expect("parses");
        for info in passes {
            let manager = PassManager::new(&context);
            manager.add_pass(pass::create(*info));
            manager.run(&mut module).expect(info.name);
        }
        let text = module.as_operation().to_string();
        for operation in top_level(extend_op(module.as_operation())) {
            if name_of(operation) == "ragged.dim" {
                erase(operation);
            }
        }
        let manager = PassManager::new(&context);
        parse_pass_pipeline(manager.as_operation_pass_manager(), TO_LLVM).expect("a pipeline");
        assert!(manager.run(&mut module).is_ok(), "{text}");
        Compiled {
            engine: ExecutionEngine::new(&module, 2, &[], false, false),
        }
    }

    /// Calls `@f` on the tables, which it may write.
    pub fn call(&self, tables: [&mut Vec<i64>; 4]) {
        let symbol = self.engine.lookup("_mlir_ciface_f");
        assert!(!symbol.is_null());
        let [mut a, mut b, mut c, mut d] = tables.map(|table| MemRef {
            allocated: table.as_mut_ptr(),
            aligned: table.as_mut_ptr(),
            offset: 0,
            size: table.len() as i64,
            stride: 1,
        });
        type Function =
            unsafe extern "C" fn(*mut MemRef, *mut MemRef, *mut MemRef, *mut MemRef) -> *mut c_void;
        // SAFETY: the function takes four memrefs of one dim through its C interface, and each
        // describes a vector that outlives the call.
        unsafe {
            let function = std::mem::transmute::<*mut (), Function>(symbol);
            function(&raw mut a, &raw mut b, &raw mut c, &raw mut d);
        }
    }
}

/// A function that computes tables of the lengths in its first argument.
fn tables(body: &str, results: &[&str]) -> String {
    let stores: Vec<_> = results
        .iter()
        .enumerate()
        .map(|(at, result)| {
            format!(
                "bufferization.materialize_in_destination {result} in restrict writable %o{at}
                   : (tensor<?xindex>, memref<?xindex>) -> ()"
            )
        })
        .collect();
    format!(
        "func.func @f(%m: memref<?xindex>, %o0: memref<?xindex>, %o1: memref<?xindex>,
                      %o2: memref<?xindex>) attributes {{llvm.emit_c_interface}} {{
           %n = bufferization.to_tensor %m restrict : memref<?xindex> to tensor<?xindex>
           {body}
           {}
           return
         }}",
        stores.join("\n")
    )
}

/// Checks what a function computes of lengths, at every number of rows.
fn check(function: &str, expected: impl Fn(&[i64]) -> Vec<Vec<i64>>) {
    let compiled = Compiled::new(function, LOWER);
    for rows in ROWS {
        let mut lengths = lengths(rows);
        let mut expected = expected(&lengths);
        expected.resize(3, vec![]);
        let mut results: Vec<Vec<i64>> = expected
            .iter()
            .map(|table| vec![-77; table.len()])
            .collect();
        if let [a, b, c] = &mut results[..] {
            compiled.call([&mut lengths, a, b, c]);
        }
        assert_eq!(results, expected, "{rows} rows");
    }
}

pub fn round_up(value: i64, multiple: i64) -> i64 {
    (value + multiple - 1) / multiple * multiple
}

pub fn offsets(lengths: &[i64], pad: i64) -> Vec<i64> {
    let mut offsets = vec![0];
    for length in lengths {
        offsets.push(offsets[offsets.len() - 1] + round_up(*length, pad));
    }
    offsets
}

#[test]
fn offsets_with_and_without_padding() {
    let body = "%p:3 = ragged.prelude(%n) : (tensor<?xindex>)
          -> (tensor<?xindex>, tensor<?xindex>, tensor<?xindex>) {
        ^bb0(%l: tensor<?xindex>):
          %a = ragged.offsets @seq(%l) : tensor<?xindex> -> tensor<?xindex>
          %b = ragged.offsets @seq(%l) pad 4 : tensor<?xindex> -> tensor<?xindex>
          %c = ragged.offsets @seq(%l) pad 2 bulk 64 : tensor<?xindex> -> tensor<?xindex>
          ragged.yield %a, %b, %c : tensor<?xindex>, tensor<?xindex>, tensor<?xindex>
        }";
    check(&tables(body, &["%p#0", "%p#1", "%p#2"]), |lengths| {
        let mut bulk = offsets(lengths, 2);
        if let Some(last) = bulk.last_mut() {
            *last = round_up(*last, 64);
        }
        vec![offsets(lengths, 1), offsets(lengths, 4), bulk]
    });
}

#[test]
fn maps_of_fused_loops_and_lengths_by_rule() {
    let body = "%o = ragged.offsets @seq(%n) pad 2 : tensor<?xindex> -> tensor<?xindex>
        %row, %index = ragged.fuse @seq(%o) : tensor<?xindex> -> tensor<?xindex>
        %u = ragged.lengths @until at(%index) : (tensor<?xindex>) -> tensor<?xindex>";
    check(&tables(body, &["%row", "%index", "%u"]), |lengths| {
        let entries: Vec<_> = (0..)
            .zip(lengths)
            .flat_map(|(row, length)| (0..round_up(*length, 2)).map(move |at| (row, at)))
            .collect();
        vec![
            entries.iter().map(|(row, _)| *row).collect(),
            entries.iter().map(|(_, at)| *at).collect(),
            entries.iter().map(|(_, at)| at / 2 + at % 3 + 1).collect(),
        ]
    });
}

#[test]
fn aligned_parts_and_products_of_lengths() {
    let body = "%main, %tail = ragged.split %n by 4 : tensor<?xindex>
        %p = ragged.lengths @pairs at(%tail) of(%n, %main)
            : (tensor<?xindex>, tensor<?xindex>, tensor<?xindex>) -> tensor<?xindex>";
    check(&tables(body, &["%main", "%tail", "%p"]), |lengths| {
        let map = |entry: fn(i64) -> i64| lengths.iter().map(|n| entry(*n)).collect();
        vec![
            map(|n| n / 4 * 4),
            map(|n| n % 4),
            map(|n| n * (n / 4 * 4) + n % 4),
        ]
    });
}

#[test]
fn orders_of_rows() {
    let body = "%a = ragged.remap %n longest_first : tensor<?xindex>
        %b = ragged.remap %n shortest_first : tensor<?xindex>";
    check(&tables(body, &["%a", "%b"]), |lengths| {
        let mut longest: Vec<_> = (0..lengths.len() as i64).collect();
        let mut shortest = longest.clone();
        longest.sort_by_key(|row| -lengths[*row as usize]);
        shortest.sort_by_key(|row| lengths[*row as usize]);
        vec![longest, shortest]
    });
}

#[test]
fn classes_of_rows_and_their_union() {
    let body = "%a, %b, %c = ragged.partition %n at [3, 9]
            : tensor<?xindex> -> tensor<?xindex>, tensor<?xindex>, tensor<?xindex>
        %two = ragged.merge %c, %a : tensor<?xindex>, tensor<?xindex> -> tensor<?xindex>
        %all = ragged.merge %c, %a, %b
            : tensor<?xindex>, tensor<?xindex>, tensor<?xindex> -> tensor<?xindex>";
    check(&tables(body, &["%b", "%two", "%all"]), |lengths| {
        let rows = |belongs: fn(i64) -> bool| {
            (0..lengths.len() as i64)
                .filter(|row| belongs(lengths[*row as usize]))
                .collect()
        };
        vec![
            rows(|n| n > 3 && n <= 9),
            rows(|n| n <= 3 || n > 9),
            rows(|_| true),
        ]
    });
}

/// Every loop leaves a number in the output that depends on where and how often it ran.
const MARKS: &str = "func.func @f(%m: memref<?xindex>, %o0: memref<?xindex>,
        %o1: memref<?xindex>, %o2: memref<?xindex>) attributes {llvm.emit_c_interface} {
      %n = bufferization.to_tensor %m restrict : memref<?xindex> to tensor<?xindex>
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c16 = arith.constant 16 : index
      %rows = memref.dim %m, %c0 : memref<?xindex>
      ragged.forall %b in @batch to %rows : index attributes {FUSE} {
        ragged.forall %s in @seq(%b) to %n : tensor<?xindex> PAD attributes {SPLIT} {
          %r = arith.muli %b, %c16 : index
          %at = arith.addi %r, %s : index
          %old = memref.load %o0[%at] : memref<?xindex>
          %more = arith.addi %old, %at : index
          %new = arith.addi %more, %c1 : index
          memref.store %new, %o0[%at] : memref<?xindex>
        }
      }
      %sum = ragged.for %b in @batch to %rows : index iter_args(%a = %c1) -> (index)
          attributes {FUSE} {
        %row = ragged.for %s in @seq(%b) to %n : tensor<?xindex> iter_args(%c = %a) -> (index)
            attributes {SPLIT} {
          %t = arith.muli %c, %c16 : index
          %u = arith.addi %t, %s : index
          %v = arith.remui %u, %big : index
          %w = arith.addi %v, %b : index
          ragged.yield %w : index
        }
        ragged.yield %row : index
      }
      memref.store %sum, %o1[%c0] : memref<?xindex>
      return
    }";

fn marks(fuse: &str, split: &str, pad: &str) -> String {
    MARKS
        .replace("FUSE", fuse)
        .replace("SPLIT", split)
        .replace("PAD", pad)
        .replace(
            "%rows =",
            "%big = arith.constant 1000003 : index\n      %rows =",
        )
}

/// Runs the marks and compares them, whatever was done to the loops.
fn check_marks(function: &str, passes: &[PassInfo], pad: i64) {
    let compiled = Compiled::new(function, passes);
    for rows in ROWS {
        let mut lengths = lengths(rows);
        let mut marked = vec![0; rows * 16];
        let mut sum = 1;
        for (row, length) in lengths.iter().enumerate() {
            for at in 0..round_up(*length, pad) as usize {
                marked[row * 16 + at] = (row * 16 + at + 1) as i64;
            }
            for at in 0..*length {
                sum = (sum * 16 + at) % 1_000_003 + row as i64;
            }
        }
        let (mut marks, mut total, mut none) = (vec![0; rows * 16], vec![0], vec![]);
        compiled.call([&mut lengths, &mut marks, &mut total, &mut none]);
        assert_eq!(marks, marked, "{rows} rows");
        assert_eq!(total, [sum], "{rows} rows");
    }
}

#[test]
fn loops_over_rows_of_every_length() {
    check_marks(&marks("", "", ""), LOWER, 1);
}

#[test]
fn padded_loops_run_to_a_multiple() {
    check_marks(&marks("", "", "pad 4"), LOWER, 4);
}

#[test]
fn fused_loops_do_the_same() {
    check_marks(&marks("fuse", "", ""), TRANSFORM, 1);
    check_marks(&marks("fuse", "", "pad 4"), TRANSFORM, 4);
}

/// Rows of which the first three have no elements: what a rule makes negative is none.
#[test]
fn fused_triangles_do_the_same() {
    let function = "func.func @f(%m: memref<?xindex>, %o0: memref<?xindex>,
        %o1: memref<?xindex>, %o2: memref<?xindex>) attributes {llvm.emit_c_interface} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %rows = memref.dim %m, %c0 : memref<?xindex>
      ragged.for %i in @batch to %rows : index attributes {FUSE} {
        ragged.for %j in @late(%i) {
          %old = memref.load %o0[%i] : memref<?xindex>
          %more = arith.addi %old, %j : index
          %new = arith.addi %more, %c1 : index
          memref.store %new, %o0[%i] : memref<?xindex>
        }
      }
      return
    }";
    for fuse in ["", "fuse"] {
        let compiled = Compiled::new(&function.replace("FUSE", fuse), TRANSFORM);
        for rows in ROWS {
            let (mut lengths, mut sums) = (vec![0; rows], vec![0; rows]);
            compiled.call([&mut lengths, &mut sums, &mut vec![], &mut vec![]]);
            let expected = (0..rows as i64).map(|row| (row - 3).max(0));
            let expected: Vec<_> = expected.map(|n| n * (n + 1) / 2).collect();
            assert_eq!(sums, expected, "{rows} rows, {fuse}");
        }
    }
}

#[test]
fn split_loops_do_the_same() {
    check_marks(&marks("", "split = 4", ""), TRANSFORM, 1);
    check_marks(&marks("", "split = 8", "pad 4"), TRANSFORM, 4);
}

#[test]
fn fused_and_split_loops_do_the_same() {
    check_marks(&marks("fuse", "split = 32", ""), TRANSFORM, 1);
}

#[test]
fn remapped_loops_do_the_same() {
    let remap = "remap = #ragged.order<longest_first>";
    check_marks(&marks(remap, "", "pad 4"), TRANSFORM, 4);
}

#[test]
fn aligned_parts_and_tails_in_one_launch_do_the_same() {
    let parts = "split = 4, hfuse = \"parts\"";
    check_marks(&marks("", parts, ""), TRANSFORM, 1);
    check_marks(&marks("", parts, "pad 2"), TRANSFORM, 2);
    let remap = "remap = #ragged.order<shortest_first>";
    check_marks(&marks(remap, parts, ""), TRANSFORM, 1);
    check_marks(&marks("fuse", parts, ""), TRANSFORM, 1);
}

#[test]
fn loops_over_lists_parts_and_rules() {
    let function = "func.func @f(%m: memref<?xindex>, %o0: memref<?xindex>,
        %o1: memref<?xindex>, %o2: memref<?xindex>) attributes {llvm.emit_c_interface} {
      %n = bufferization.to_tensor %m restrict : memref<?xindex> to tensor<?xindex>
      %c16 = arith.constant 16 : index
      %short, %long = ragged.partition %n at [6]
          : tensor<?xindex> -> tensor<?xindex>, tensor<?xindex>
      %main, %tail = ragged.split %n by 4 : tensor<?xindex>
      ragged.hfuse {
        ragged.forall %b in @batch rows %long : tensor<?xindex> {
          ragged.forall %s in @seq(%b) from %main to %n : tensor<?xindex> {
            %r = arith.muli %b, %c16 : index
            %at = arith.addi %r, %s : index
            ragged.for %j in @until(%s) {
              %old = memref.load %o0[%at] : memref<?xindex>
              %new = arith.addi %old, %c16 : index
              memref.store %new, %o0[%at] : memref<?xindex>
            }
          }
        }
      }, {
        ragged.forall %b in @batch rows %short : tensor<?xindex> {
          %r = arith.muli %b, %c16 : index
          memref.store %b, %o0[%r] : memref<?xindex>
        }
      }
      return
    }";
    let compiled = Compiled::new(function, LOWER);
    for rows in ROWS {
        let mut lengths = lengths(rows);
        let mut expected = vec![0; rows * 16];
        for (row, length) in lengths.iter().enumerate() {
            if *length <= 6 {
                expected[row * 16] = row as i64;
                continue;
            }
            for at in length / 4 * 4..*length {
                expected[row * 16 + at as usize] = 16 * (at / 2 + at % 3 + 1);
            }
        }
        let (mut marks, mut none, mut other) = (vec![0; rows * 16], vec![], vec![]);
        compiled.call([&mut lengths, &mut marks, &mut none, &mut other]);
        assert_eq!(marks, expected, "{rows} rows");
    }
}
