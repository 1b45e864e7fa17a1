//! What only GPU code can get wrong: tiles of any size, barriers, copies that are not waited for, and
//! factors that are rounded.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use cohort_abi::gpu::Precision;
use cohort_abi::manifest::Elem;
use cohort_runtime::device::sim;

use super::attention::{SCALED, attention};
use super::batches::{Batch, CallKernel, ZEROS};
use super::check::{Random, f64s, sigmoid, vecmat};
use crate::jit::{Bits, Jit, Operand};
use crate::simulator::{Call, How, Order, Simulator, Tiles, gpu_text};

/// `sigmoid(i) * tanh(u)` of the halves of `x · w_N + b`.
pub fn gates(k: usize, h: usize) -> String {
    let n = 2 * h;
    format!(
        "ml_program.global private @w_{n}(#ml_program.extern<tensor<{k}x{n}xf32>>) : tensor<{k}x{n}xf32>
         ml_program.global private @b(#ml_program.extern<tensor<{n}xf32>>) : tensor<{n}xf32>
         cfb.kernel @k {{
         ^bb0(%rows: index, %x: tensor<?x{k}xf32>):
           %w = ml_program.global_load_const @w_{n} : tensor<{k}x{n}xf32>
           %b = ml_program.global_load_const @b : tensor<{n}xf32>
           %one = arith.constant 1.0 : f32
           %e = tensor.empty(%rows) : tensor<?x{n}xf32>
           %e1 = tensor.empty(%rows) : tensor<?x{h}xf32>
           %ones = linalg.fill ins(%one : f32) outs(%e1 : tensor<?x{h}xf32>) -> tensor<?x{h}xf32>
           %z = linalg.broadcast ins(%b : tensor<{n}xf32>) outs(%e : tensor<?x{n}xf32>) dimensions = [0]
           %p = linalg.matmul ins(%x, %w : tensor<?x{k}xf32>, tensor<{k}x{n}xf32>) outs(%z : tensor<?x{n}xf32>) -> tensor<?x{n}xf32>
           %i = tensor.extract_slice %p[0, 0] [%rows, {h}] [1, 1] : tensor<?x{n}xf32> to tensor<?x{h}xf32>
           %u = tensor.extract_slice %p[0, {h}] [%rows, {h}] [1, 1] : tensor<?x{n}xf32> to tensor<?x{h}xf32>
           %m = arith.negf %i : tensor<?x{h}xf32>
           %x1 = math.exp %m : tensor<?x{h}xf32>
           %d = arith.addf %x1, %ones : tensor<?x{h}xf32>
           %s = arith.divf %ones, %d : tensor<?x{h}xf32>
           %t = math.tanh %u : tensor<?x{h}xf32>
           %c = arith.mulf %s, %t : tensor<?x{h}xf32>
           cfb.yield %c : tensor<?x{h}xf32>
         }}"
    )
}

struct Case {
    k: usize,
    h: usize,
    w: Bits,
    b: Bits,
    operand: Operand,
}

impl Case {
    fn new(k: usize, h: usize, rows: usize) -> Case {
        let mut random = Random((k * 1000 + h) as u64);
        Case {
            k,
            h,
            w: random.floats(k * 2 * h),
            b: random.floats(2 * h),
            operand: Operand {
                pool: random.floats((rows + 2) * k),
                index: (0..rows)
                    .map(|row| ((row * 7 + 1) % (rows + 2)) as u32)
                    .collect(),
                ..Operand::default()
            },
        }
    }

    fn run(&self, simulator: &Simulator, rows: usize, how: How) -> Bits {
        let name = format!("w_{}", 2 * self.h);
        let params = HashMap::from([(name.as_str(), self.w.clone()), ("b", self.b.clone())]);
        let call = Call {
            kernel: "k",
            params: &params,
            operands: std::slice::from_ref(&self.operand),
            types: &[Some((Elem::F32, self.k))],
            results: &[(Elem::F32, self.h)],
        };
        simulator.run(&call, rows, how).remove(0)
    }

    fn reference(&self, row: usize, precision: Precision) -> Vec<f64> {
        let from = self.operand.index[row] as usize * self.k;
        let x = rounded(&self.operand.pool[from..from + self.k], precision);
        let w = rounded(&self.w, precision);
        let mut sums = vecmat(&f64s(&x), &f64s(&w), 2 * self.h);
        for (sum, b) in sums.iter_mut().zip(f64s(&self.b)) {
            *sum += b;
        }
        let (i, u) = sums.split_at(self.h);
        i.iter()
            .zip(u)
            .map(|(i, u)| sigmoid(*i) * u.tanh())
            .collect()
    }
}

const FORWARD: How = How {
    order: Order::Forward,
    tiles: Tiles::ByRows,
};

/// The bits that the factors of products are rounded to.
fn rounded(bits: &[u32], precision: Precision) -> Bits {
    let round = |bits: &u32| match precision {
        Precision::F32 => *bits,
        Precision::Tf32 => sim::cohort_sim_to_tf32(f32::from_bits(*bits)),
        Precision::Bf16 => sim::cohort_sim_to_bf16_pair(f32::from_bits(*bits), 0.0),
    };
    bits.iter().map(round).collect()
}

pub fn with_precision(text: &str, precision: Precision) -> String {
    if precision == Precision::F32 {
        return text.to_owned();
    }
    // Aliases stand before the module.
    let (aliases, rest): (Vec<_>, Vec<_>) =
        text.lines().partition(|line| line.starts_with("#map = "));
    let (aliases, rest) = (aliases.join("\n"), rest.join("\n"));
    format!(
        "{aliases}\nmodule attributes {{cfb.precision = #cfb<precision {precision}>}} {{ {rest} }}"
    )
}

#[test]
fn gates_of_any_size_in_tiles_of_both_sizes() {
    for (k, h) in [
        (1, 96),
        (3, 61),
        (28, 28),
        (61, 3),
        (96, 96),
        (28, 1),
        (256, 40),
    ] {
        check_gates(k, h, Precision::F32);
    }
}

/// The factors are rounded, and nothing else: against a reference that rounds them, too.
#[test]
fn tensor_cores_multiply_rounded_factors() {
    for precision in [Precision::Tf32, Precision::Bf16] {
        for (k, h) in [(1, 96), (3, 61), (28, 28), (64, 128)] {
            check_gates(k, h, precision);
        }
    }
}

/// The same bits of a row whatever the tile, the other rows and the order of threads.
fn check_gates(k: usize, h: usize, precision: Precision) {
    let text = with_precision(&gates(k, h), precision);
    let simulator = Simulator::new(&gpu_text(&text).expect("it lowers"));
    // Sums of one column are folds, not tiles.
    let of_tiles = if h > 1 { precision } else { Precision::F32 };
    assert_eq!(simulator.kernels["k"].precision, of_tiles);
    let case = Case::new(k, h, 257);
    let all = case.run(&simulator, 257, FORWARD);
    for row in 0..257 {
        let got = f64s(&all[row * h..(row + 1) * h]);
        for (got, wanted) in got.iter().zip(case.reference(row, precision)) {
            assert!(
                (got - wanted).abs() <= 2e-5,
                "k={k} h={h} {precision}: {got}, not {wanted}"
            );
        }
    }
    for rows in [1, 3, 28, 61] {
        let largest = How {
            order: Order::Backward,
            tiles: Tiles::Largest,
        };
        for how in [FORWARD, largest] {
            let some = case.run(&simulator, rows, how);
            assert_eq!(
                some,
                all[..rows * h],
                "k={k} h={h} {precision} rows={rows} {how:?}"
            );
        }
    }
}

/// A sum of two products of the same rows, in halves that are added.
fn two_products(k: usize, h: usize) -> String {
    let n = 2 * h;
    gates(k, h).replace(
        "%i = tensor.extract_slice %p",
        &format!(
            "%p2 = linalg.matmul ins(%x, %w : tensor<?x{k}xf32>, tensor<{k}x{n}xf32>) outs(%p : tensor<?x{n}xf32>) -> tensor<?x{n}xf32>
             %i = tensor.extract_slice %p2"
        ),
    ).replace("%u = tensor.extract_slice %p[", "%u = tensor.extract_slice %p2[")
}

/// Whether some order of the threads gives other bits, or an error, where the code lacks what is at
/// `at`.
fn is_missed(gpu: &str, (at, operation): (usize, &str), case: &Case, right: &[u32]) -> bool {
    let without = gpu[..at].to_owned() + &gpu[at + operation.len()..];
    let simulator = Simulator::new(&without);
    [Order::Forward, Order::Backward, Order::Shuffled]
        .into_iter()
        .any(|order| {
            let how = How {
                order,
                tiles: Tiles::ByRows,
            };
            catch_unwind(AssertUnwindSafe(|| case.run(&simulator, 29, how)))
                .map_or(true, |bits| bits != right)
        })
}

/// Every barrier and every wait for copies is needed: without any one of them, some order of the threads
/// gives other bits, for shared memory begins as NaNs and is then written for another step, and what
/// is being copied is NaNs until it is waited for.
#[test]
fn a_missing_barrier_or_wait_is_seen() {
    // A fold by warps whose result is used by another stage.
    let fold = "cfb.kernel @k {
      ^bb0(%rows: index, %x: tensor<?x100xf32>):
        %zero = arith.constant 0.0 : f32
        %e = tensor.empty(%rows) : tensor<?xf32>
        %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
        %s = linalg.reduce { arith.addf } ins(%x : tensor<?x100xf32>) outs(%z : tensor<?xf32>) dimensions = [1]
        %e1 = tensor.empty(%rows) : tensor<?x100xf32>
        %m = linalg.broadcast ins(%s : tensor<?xf32>) outs(%e1 : tensor<?x100xf32>) dimensions = [1]
        %y = arith.subf %x, %m : tensor<?x100xf32>
        cfb.yield %y : tensor<?x100xf32>
      }";
    // Of an odd number of steps each, so that the second begins with a buffer that is in use.
    let products = two_products(37, 40);
    let on_tensor_cores = with_precision(&products, Precision::Tf32);
    for (text, k, h, waits) in [
        (products, 37, 40, 2),
        (on_tensor_cores, 37, 40, 2),
        (fold.to_owned(), 100, 100, 0),
    ] {
        let gpu = gpu_text(&text).expect("it lowers");
        let case = Case::new(k, h, 29);
        let right = case.run(&Simulator::new(&gpu), 29, FORWARD);
        // What the large tile lacks comes last and is not run here.
        let small = gpu.split("_large(").next().unwrap_or(&gpu);
        let found = |operation: &'static str| -> Vec<(usize, &str)> {
            small.match_indices(operation).collect()
        };
        let (barriers, of_copies) = (found("gpu.barrier"), found("nvvm.cp.async.wait.group 0"));
        assert!(barriers.len() >= 2, "{} barriers", barriers.len());
        assert_eq!(of_copies.len(), waits);
        for operation in barriers.into_iter().chain(of_copies) {
            let missed = is_missed(&gpu, operation, &case, &right);
            assert!(missed, "nothing misses {operation:?}");
        }
    }
}

/// `q · kᵀ` of two lengths.
fn product() -> String {
    format!(
        "{ZEROS}
          %dn = tensor.dim %q, %c1 : !(n, 28)
          %dm = tensor.dim %k, %c1 : !(m, 28)
          %w = tensor.empty(%calls, %dm) : !(28, m)
          %e = tensor.empty(%calls, %dn, %dm) : !(n, m)
          %s = linalg.fill ins(%zero : f32) outs(%e : !(n, m)) -> !(n, m)
          %kt = linalg.transpose ins(%k : !(m, 28)) outs(%w : !(28, m)) permutation = [0, 2, 1]
          %o = linalg.batch_matmul ins(%q, %kt : !(n, 28), !(28, m)) outs(%s : !(n, m)) -> !(n, m)
          cfb.yield %o : !(n, m)"
    )
}

fn of_three<'a>(rows: &'a str, body: &'a str) -> CallKernel<'a> {
    CallKernel {
        lengths: &["n", "m"],
        rows,
        operands: &[("q", "n, 28"), ("k", "m, 28"), ("v", "m, 28")],
        declarations: "",
        body,
    }
}

/// The factors of products over calls are rounded, too, and nothing else: here both are copied.
#[test]
fn tensor_cores_multiply_rounded_factors_of_calls() {
    let body = product();
    let kernel = of_three("[@n, @m]", &body);
    let jit = Jit::new(&kernel.text());
    let lengths = [vec![61, 97], vec![0, 3], vec![1, 257], vec![130, 28]];
    for precision in [Precision::Tf32, Precision::Bf16] {
        let round = |values: &[f64]| {
            let bits: Bits = values.iter().map(|v| (*v as f32).to_bits()).collect();
            f64s(&rounded(&bits, precision))
        };
        kernel.check_on_gpu(&jit, precision, &lengths, 2e-5, |lengths, inputs| {
            let (q, k) = (round(&inputs[0]), round(&inputs[1]));
            let at = |i: usize, j: usize| -> f64 {
                (0..28).map(|c| q[i * 28 + c] * k[j * 28 + c]).sum()
            };
            let (n, m) = (lengths[0], lengths[1]);
            vec![(0..n * m).map(|to| at(to / m, to % m)).collect()]
        });
    }
}

/// A copy of 16 bytes from or to an address that is not a multiple of 16 ends the program, as on a card.
#[test]
fn a_misaligned_copy_is_seen() {
    // Rows of 27 floats begin anywhere, so they are copied one by one.
    let body = product().replace("28", "27");
    let kernel = CallKernel {
        operands: &[("q", "n, 27"), ("k", "m, 27")],
        ..of_three("[@n, @m]", &body)
    };
    let gpu = gpu_text(&kernel.text()).expect("it lowers");
    assert!(!gpu.contains(", 16, cache"));
    let jit = Jit::new(&kernel.text());
    let batch = Batch::new(&jit, &[vec![3, 61]]);
    let ends = |gpu: &str| {
        let simulator = Simulator::new(gpu);
        catch_unwind(AssertUnwindSafe(|| {
            batch.run_on_gpu(&jit, &simulator, FORWARD)
        }))
        .is_ok()
    };
    assert!(ends(&gpu));
    assert!(!ends(&gpu.replace(", 4, cache", ", 16, cache")));
}

/// The same of kernels over calls: products, softmax-like folds between two, and folds by warps.
#[test]
fn a_missing_barrier_or_wait_of_a_kernel_over_calls_is_seen() {
    let sums = format!(
        "{ZEROS}
          %e = tensor.empty(%calls) : !(28)
          %z = linalg.fill ins(%zero : f32) outs(%e : !(28)) -> !(28)
          %s = linalg.reduce {{ arith.addf }} ins(%q : !(n, 28)) outs(%z : !(28)) dimensions = [1]
          cfb.yield %s : !(28)"
    );
    let product = product();
    // One side is computed while it is brought, the other is copied.
    let scaled = product
        .replace(
            "%o = linalg",
            "%qn = arith.negf %q : !(n, 28)\n %o = linalg",
        )
        .replace("ins(%q, %kt", "ins(%qn, %kt");
    let online = attention(1, 28, SCALED);
    for (rows, body, barriers, waits, precision) in [
        ("[@n, @m]", &product, 1, 1, Precision::F32),
        ("[@n, @m]", &product, 1, 1, Precision::Tf32),
        ("[@n, @m]", &scaled, 1, 1, Precision::F32),
        ("[@n]", &online, 5, 2, Precision::F32),
        ("[@n]", &online, 5, 3, Precision::Bf16),
        ("[]", &sums, 1, 0, Precision::F32),
    ] {
        let kernel = of_three(rows, body);
        let text = with_precision(&kernel.text(), precision);
        let gpu = gpu_text(&text).expect("it lowers");
        let jit = Jit::new(&kernel.text());
        let batch = Batch::new(&jit, &[vec![61, 97], vec![3, 61]]);
        let right = batch.run_on_gpu(&jit, &Simulator::new(&gpu), FORWARD);
        let small = gpu.split("_large(").next().unwrap_or(&gpu);
        let found = |operation: &'static str| -> Vec<(usize, usize)> {
            let found = small.match_indices(operation);
            found.map(|(at, _)| (at, operation.len())).collect()
        };
        let of_barriers = found("gpu.barrier");
        let mut of_copies = found("nvvm.cp.async.wait.group 0");
        of_copies.extend(found("nvvm.cp.async.wait.group 1"));
        assert_eq!(of_barriers.len(), barriers, "{rows}");
        assert_eq!(of_copies.len(), waits, "{rows}");
        for (at, length) in of_barriers.into_iter().chain(of_copies) {
            let without = gpu[..at].to_owned() + &gpu[at + length..];
            let simulator = Simulator::new(&without);
            let seen = [Order::Forward, Order::Backward, Order::Shuffled].map(|order| {
                let how = How {
                    order,
                    tiles: Tiles::ByRows,
                };
                catch_unwind(AssertUnwindSafe(|| batch.run_on_gpu(&jit, &simulator, how)))
                    .map_or(true, |bits| bits != right)
            });
            let operation = &gpu[at..at + length];
            assert!(
                seen.contains(&true),
                "{rows} {precision}: nothing misses {operation} at {at}"
            );
        }
    }
}
