//! Kernels over calls: one batch of calls of every length, and what has to hold of its results, on the
//! processor and on the simulated GPU.

use std::collections::HashMap;

use cohort_abi::gpu::Precision;
use cohort_abi::manifest::Extent;
use cohort_passes::kernel_description::OperandDescription;

use super::check::{Random, f64s};
use super::gpu::with_precision;
use crate::jit::{Bits, Jit, Operand};
use crate::simulator::{Calls, How, Order, Simulator, gpu_text};

/// Awkward lengths.
pub const LENGTHS: [u32; 7] = [28, 0, 1, 3, 61, 257, 600];

/// A kernel `k` over calls. Types may be written `[n, 16]`: a tensor over the batch, with the
/// dims of `lengths` and numbers.
pub struct CallKernel<'a> {
    pub lengths: &'a [&'a str],
    pub rows: &'a str,
    pub operands: &'a [(&'a str, &'a str)],
    pub body: &'a str,
    /// What stands before the kernel, and its further attributes.
    pub declarations: &'a str,
}

/// Where a kernel runs: on the processor in ranges of calls or in pieces of them, or on a GPU.
/// The description is the processor's.
enum Machine<'a> {
    Cpu(&'a [(usize, usize)]),
    Pieces(&'a [[u32; 3]]),
    Gpu(&'a Simulator, How),
}

const FORWARD: How = How {
    order: Order::Forward,
    largest: false,
};

/// One batch: the lengths of each call, and its operands' values.
pub struct Batch {
    lengths: Vec<Vec<u32>>,
    values: Vec<Vec<Bits>>,
}

impl CallKernel<'_> {
    /// The text, with every `[…]` of names and numbers behind a `:` or `->` written out.
    pub fn text(&self) -> String {
        let mut text = format!("ragged.dim @batch\n{}\n", self.declarations);
        for length in self.lengths {
            text += &format!("ragged.dim @{length}(@batch)\n");
        }
        let names: Vec<_> = self.lengths.iter().map(|name| format!("@{name}")).collect();
        text += &format!(
            "cfb.kernel @k attributes {{unit = \"calls\", lengths = [{}], rows = {}}} {{\n\
             ^bb0(%calls: index",
            names.join(", "),
            self.rows
        );
        for length in self.lengths {
            text += &format!(", %{length}: tensor<?xindex>");
        }
        for (name, ty) in self.operands {
            text += &format!(", %{name}: {}", self.ty(ty));
        }
        text += "):\n";
        // `!(n, 16)` is a type in the body.
        let mut rest = self.body;
        while let Some((before, after)) = rest.split_once("!(") {
            let (ty, after) = after.split_once(')').expect("a type's end");
            text += before;
            text += &self.ty(ty);
            rest = after;
        }
        text + rest + "\n}\n"
    }

    fn ty(&self, dims: &str) -> String {
        let (dims, elem) = dims.split_once(':').unwrap_or((dims, "f32"));
        let mut sizes = String::from("?x");
        let mut names = vec!["@batch".to_owned()];
        for dim in dims.split(", ").filter(|dim| !dim.is_empty()) {
            match dim.parse::<u32>() {
                Ok(size) => {
                    sizes += &format!("{size}x");
                    names.push("_".into());
                }
                Err(_) => {
                    sizes += "?x";
                    names.push(format!("@{dim}(@batch)"));
                }
            }
        }
        if !names.iter().any(|name| name.contains('(')) {
            return format!("tensor<{sizes}{elem}>");
        }
        format!("tensor<{sizes}{elem}, #ragged.shape<{}>>", names.join(", "))
    }

    /// Checks all calls against the reference, which takes a call's lengths and operands, and their
    /// bits against other batches of the same calls.
    pub fn check(
        &self,
        lengths: &[Vec<u32>],
        tolerance: f64,
        reference: impl Fn(&[usize], &[Vec<f64>]) -> Vec<Vec<f64>>,
    ) {
        let jit = Jit::new(&self.marked());
        self.check_on(&jit, lengths, tolerance, reference);
        let unmarked = Jit::new(&self.text());
        let batch = Batch::new(&jit, lengths);
        let all: Vec<usize> = (0..lengths.len()).collect();
        let run = |jit| batch.run(jit, &all, &Machine::Cpu(&[(0, all.len())]));
        assert_eq!(run(&unmarked), run(&jit), "unmarked");
    }

    /// The text as it is after `split-tails` and `hoist-lengths`.
    fn marked(&self) -> String {
        let marks = "attributes {ragged.split = 16 : i64, ragged.hoisted, ";
        self.text().replacen("attributes {", marks, 1)
    }

    pub fn check_on(
        &self,
        jit: &Jit,
        lengths: &[Vec<u32>],
        tolerance: f64,
        reference: impl Fn(&[usize], &[Vec<f64>]) -> Vec<Vec<f64>>,
    ) {
        let batch = Batch::new(jit, lengths);
        let all: Vec<usize> = (0..lengths.len()).collect();
        let whole = batch.run(jit, &all, &Machine::Cpu(&[(0, all.len())]));
        batch.close(&whole, tolerance, &reference);
        let one_by_one: Vec<_> = all.iter().map(|call| (*call, call + 1)).collect();
        let one_by_one = batch.run(jit, &all, &Machine::Cpu(&one_by_one));
        assert_eq!(one_by_one, whole, "one at a time");
        batch.same_in_others(jit, &whole, |_| Machine::Cpu(&[]));
        batch.same_in_pieces(jit, &whole);
        self.check_on_gpu(jit, Precision::F32, lengths, tolerance, reference);
    }

    /// The same on the simulated GPU, in a precision.
    pub fn check_on_gpu(
        &self,
        jit: &Jit,
        precision: Precision,
        lengths: &[Vec<u32>],
        tolerance: f64,
        reference: impl Fn(&[usize], &[Vec<f64>]) -> Vec<Vec<f64>>,
    ) {
        let batch = Batch::new(jit, lengths);
        let text = with_precision(&self.text(), precision);
        let gpu = Simulator::new(&gpu_text(&text).expect("it lowers"));
        let whole = batch.run_on_gpu(jit, &gpu, FORWARD);
        batch.close(&whole, tolerance, &reference);
        batch.same_in_others(jit, &whole, |_| {
            let how = How {
                order: Order::Backward,
                largest: true,
            };
            Machine::Gpu(&gpu, how)
        });
    }
}

impl Batch {
    pub fn new(jit: &Jit, lengths: &[Vec<u32>]) -> Batch {
        let description = &jit.kernels["k"];
        let mut random = Random(5);
        let values = lengths
            .iter()
            .map(|lengths| {
                description
                    .operands
                    .iter()
                    .map(|operand| match operand {
                        OperandDescription::Ragged { row, extent } => {
                            let rows = rows_of(&description.call.extents[*extent], lengths);
                            random.floats(rows * row.shape.iter().product::<u64>() as usize)
                        }
                        OperandDescription::Row(row) => {
                            random.floats(row.shape.iter().product::<u64>() as usize)
                        }
                        _ => vec![],
                    })
                    .collect()
            })
            .collect();
        Batch {
            lengths: lengths.to_vec(),
            values,
        }
    }

    /// Whether all calls' results are those of the reference.
    fn close(
        &self,
        whole: &[Vec<Bits>],
        tolerance: f64,
        reference: &impl Fn(&[usize], &[Vec<f64>]) -> Vec<Vec<f64>>,
    ) {
        for (call, results) in whole.iter().enumerate() {
            let sizes: Vec<usize> = self.lengths[call].iter().map(|n| *n as usize).collect();
            let inputs: Vec<_> = self.values[call][sizes.len()..]
                .iter()
                .map(|bits| f64s(bits))
                .collect();
            let wanted = reference(&sizes, &inputs);
            assert_eq!(wanted.len(), results.len());
            for (result, (wanted, got)) in wanted.iter().zip(results).enumerate() {
                let got = f64s(got);
                assert_eq!(wanted.len(), got.len(), "result {result} at {sizes:?}");
                for (at, (wanted, got)) in wanted.iter().zip(got).enumerate() {
                    let same = wanted.is_nan() && got.is_nan();
                    assert!(
                        same || (got - wanted).abs() <= tolerance * (1.0 + wanted.abs()),
                        "result {result} at {sizes:?}, element {at}: {got}, not {wanted}"
                    );
                }
            }
        }
    }

    /// Whether the calls give the same bits in another order, and alone.
    fn same_in_others<'m>(
        &self,
        jit: &Jit,
        whole: &[Vec<Bits>],
        machine: impl Fn(usize) -> Machine<'m>,
    ) {
        let count = whole.len();
        let turned: Vec<usize> = (0..count).rev().collect();
        let again = self.run(jit, &turned, &machine(count));
        for (results, call) in again.iter().zip(&turned) {
            assert_eq!(*results, whole[*call], "in another order");
        }
        for call in [0, count - 1] {
            let alone = self.run(jit, &[call], &machine(1));
            assert_eq!(alone[0], whole[call], "alone");
        }
    }

    /// Whether calls give the same bits when they are cut into pieces, if they can be.
    fn same_in_pieces(&self, jit: &Jit, whole: &[Vec<Bits>]) {
        let Some(division) = &jit.kernels["k"].call.division else {
            return;
        };
        let all: Vec<usize> = (0..whole.len()).collect();
        for tiles in [1, 3] {
            let step = tiles * division.tile as u32;
            let pieces = (0..).zip(&self.lengths).flat_map(|(call, lengths)| {
                let length = lengths[division.length];
                let froms = (0..length.max(1)).step_by(step as usize);
                froms.map(move |from| [call, from, (from + step).min(length)])
            });
            let backwards: Vec<_> = pieces.collect::<Vec<_>>().into_iter().rev().collect();
            let cut = self.run(jit, &all, &Machine::Pieces(&backwards));
            assert_eq!(cut, whole, "in pieces of {tiles} tiles");
        }
    }
}

fn rows_of(extent: &Extent, lengths: &[u32]) -> usize {
    let lengths = extent.lengths.iter().map(|at| lengths[*at] as usize);
    lengths.product::<usize>() * extent.times as usize
}

impl Batch {
    /// The results' bits on a GPU of all calls in order, by call.
    pub fn run_on_gpu(&self, jit: &Jit, gpu: &Simulator, how: How) -> Vec<Vec<Bits>> {
        let all: Vec<usize> = (0..self.lengths.len()).collect();
        self.run(jit, &all, &Machine::Gpu(gpu, how))
    }

    /// The results' bits of the calls in this order, by call.
    fn run(&self, jit: &Jit, calls: &[usize], machine: &Machine<'_>) -> Vec<Vec<Bits>> {
        let description = &jit.kernels["k"];
        let shape = &description.call;
        let mut operands: Vec<Operand> = vec![];
        for (at, operand) in description.operands.iter().enumerate() {
            let row = match operand {
                OperandDescription::Length => {
                    let index = calls.iter().map(|call| self.lengths[*call][at]);
                    operands.push(Operand {
                        index: index.collect(),
                        ..Operand::default()
                    });
                    continue;
                }
                OperandDescription::Ragged { row, .. } | OperandDescription::Row(row) => row,
                other => unreachable!("{other:?}"),
            };
            // Other rows lie between the values, and their order is another one.
            let elements = row.shape.iter().product::<u64>().max(1) as usize;
            let mut of_call = HashMap::new();
            let mut space: Bits = vec![];
            for call in calls.iter().rev() {
                space.extend(vec![f32::NAN.to_bits(); 3 * elements]);
                of_call.insert(*call, (space.len() / elements) as u32);
                space.extend(&self.values[*call][at]);
            }
            operands.push(Operand {
                space,
                index: calls.iter().map(|call| of_call[call]).collect(),
                ..Operand::default()
            });
        }
        let rows = |call: usize| match shape.rows {
            Some(extent) => rows_of(&shape.extents[extent], &self.lengths[call]),
            None => 1,
        };
        let firsts: Vec<usize> = calls
            .iter()
            .scan(0, |sum, call| {
                let first = *sum;
                *sum += rows(*call);
                Some(first)
            })
            .collect();
        let starts: Vec<u32> = firsts.iter().map(|first| *first as u32).collect();
        let total = calls.iter().map(|call| rows(*call)).sum();
        let results = match machine {
            Machine::Cpu(_) | Machine::Pieces(_) => {
                if shape.rows.is_some() {
                    operands.push(Operand {
                        index: starts,
                        ..Operand::default()
                    });
                }
                let whole = calls.iter().zip(0..).map(|(call, at)| {
                    let division = shape.division.as_ref();
                    [at, 0, division.map_or(0, |d| self.lengths[*call][d.length])]
                });
                let (pieces, ranges) = match machine {
                    Machine::Pieces(pieces) => (pieces.to_vec(), &[][..]),
                    Machine::Cpu(ranges) => (whole.collect(), *ranges),
                    Machine::Gpu(..) => unreachable!("it has no pieces"),
                };
                let all = [(0, pieces.len())];
                let ranges = if ranges.is_empty() { &all } else { ranges };
                if shape.division.is_some() {
                    operands.push(Operand {
                        index: pieces.concat(),
                        ..Operand::default()
                    });
                }
                jit.call("k", &HashMap::new(), &operands).run(total, ranges)
            }
            Machine::Gpu(gpu, how) => {
                let of_calls = Calls {
                    kernel: description,
                    operands: &operands,
                    firsts: &starts,
                    rows: total,
                };
                gpu.run_calls(&of_calls, *how)
            }
        };
        calls
            .iter()
            .zip(&firsts)
            .map(|(call, first)| {
                results
                    .iter()
                    .zip(&description.results)
                    .map(|(bits, row)| {
                        let elements = row.shape.iter().product::<u64>() as usize;
                        bits[first * elements..(first + rows(*call)) * elements].to_vec()
                    })
                    .collect()
            })
            .collect()
    }
}

/// One length a call, all of the awkward ones.
fn single() -> Vec<Vec<u32>> {
    LENGTHS.iter().map(|n| vec![*n]).collect()
}

/// Combinations of lengths, small ones with large ones.
fn several(count: usize) -> Vec<Vec<u32>> {
    let sizes = [28, 61, 0, 1, 3, 130, 17, 257];
    (0..10)
        .map(|call| {
            (0..count)
                .map(|at| sizes[(call * (at + 1) + 3 * at) % sizes.len()])
                .collect()
        })
        .collect()
}

/// `Σ_k a[i, k] · b[k, j]`, where `k` may be all below a limit that depends on `i`.
fn matmul(a: &[f64], b: &[f64], (m, k, n): (usize, usize, usize)) -> Vec<f64> {
    let mut c = vec![0.0; m * n];
    for i in 0..m {
        for k_at in 0..k {
            for j in 0..n {
                c[i * n + j] += a[i * k + k_at] * b[k_at * n + j];
            }
        }
    }
    c
}

fn softmax(x: &mut [f64]) {
    let most = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    x.iter_mut().for_each(|x| *x = (*x - most).exp());
    let sum: f64 = x.iter().sum();
    x.iter_mut().for_each(|x| *x /= sum);
}

#[test]
fn reductions_along_every_dim_and_what_follows() {
    let kernel = CallKernel {
        lengths: &["n"],
        rows: "[@n]",
        operands: &[("x", "n, 28")],
        declarations: "",
        body: "
          %c1 = arith.constant 1 : index
          %d = tensor.dim %x, %c1 : !(n, 28)
          %zero = arith.constant 0.0 : f32
          %low = arith.constant 0xFF800000 : f32
          %en = tensor.empty(%calls, %d) : !(n)
          %e28 = tensor.empty(%calls) : !(28)
          %e = tensor.empty(%calls, %d) : !(n, 28)
          %zn = linalg.fill ins(%zero : f32) outs(%en : !(n)) -> !(n)
          %ln = linalg.fill ins(%low : f32) outs(%en : !(n)) -> !(n)
          %z28 = linalg.fill ins(%zero : f32) outs(%e28 : !(28)) -> !(28)
          %most = linalg.reduce { arith.maximumf } ins(%x : !(n, 28)) outs(%ln : !(n)) dimensions = [2]
          %mb = linalg.broadcast ins(%most : !(n)) outs(%e : !(n, 28)) dimensions = [2]
          %s = arith.subf %x, %mb : !(n, 28)
          %p = math.exp %s : !(n, 28)
          %sum = linalg.reduce { arith.addf } ins(%p : !(n, 28)) outs(%zn : !(n)) dimensions = [2]
          %sb = linalg.broadcast ins(%sum : !(n)) outs(%e : !(n, 28)) dimensions = [2]
          %y = arith.divf %p, %sb : !(n, 28)
          %columns = linalg.reduce { arith.addf } ins(%x : !(n, 28)) outs(%z28 : !(28)) dimensions = [1]
          %cb = linalg.broadcast ins(%columns : !(28)) outs(%e : !(n, 28)) dimensions = [1]
          %r = arith.addf %y, %cb : !(n, 28)
          cfb.yield %r, %sum : !(n, 28), !(n)",
    };
    kernel.check(&single(), 2e-5, |lengths, inputs| {
        let (n, x) = (lengths[0], &inputs[0]);
        let columns: Vec<f64> = (0..28)
            .map(|j| (0..n).map(|i| x[i * 28 + j]).sum())
            .collect();
        let (mut y, mut sums) = (vec![], vec![]);
        for i in 0..n {
            let mut row = x[i * 28..(i + 1) * 28].to_vec();
            let most = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            sums.push(row.iter().map(|x| (x - most).exp()).sum());
            softmax(&mut row);
            y.extend(row.iter().zip(&columns).map(|(y, c)| y + c));
        }
        vec![y, sums]
    });
}

#[test]
fn values_of_a_whole_call() {
    let kernel = CallKernel {
        lengths: &["n"],
        rows: "[]",
        operands: &[("x", "n, 5"), ("w", "5")],
        declarations: "",
        body: "
          %zero = arith.constant 0.0 : f32
          %e0 = tensor.empty(%calls) : !()
          %e5 = tensor.empty(%calls) : !(5)
          %z0 = linalg.fill ins(%zero : f32) outs(%e0 : !()) -> !()
          %all = linalg.reduce { arith.addf } ins(%x : !(n, 5)) outs(%z0 : !()) dimensions = [1, 2]
          %ni = arith.index_cast %n : tensor<?xindex> to tensor<?xi32>
          %nf = arith.sitofp %ni : tensor<?xi32> to !()
          %mean = arith.divf %all, %nf : !()
          %mb = linalg.broadcast ins(%mean : !()) outs(%e5 : !(5)) dimensions = [1]
          %y = arith.mulf %w, %mb : !(5)
          cfb.yield %y : !(5)",
    };
    kernel.check(&single(), 2e-5, |lengths, inputs| {
        let mean = inputs[0].iter().sum::<f64>() / lengths[0] as f64;
        vec![inputs[1].iter().map(|w| w * mean).collect()]
    });
}

#[test]
fn transpositions_slices_and_indices() {
    let kernel = CallKernel {
        lengths: &["n", "m"],
        rows: "[@m, @n]",
        operands: &[("x", "n, m"), ("y", "m, 7")],
        declarations: "#map = affine_map<(b, i, j) -> (b, i, j)>",
        body: "
          %c1 = arith.constant 1 : index
          %c2 = arith.constant 2 : index
          %dn = tensor.dim %x, %c1 : !(n, m)
          %dm = tensor.dim %x, %c2 : !(n, m)
          %e = tensor.empty(%calls, %dm, %dn) : !(m, n)
          %t = linalg.transpose ins(%x : !(n, m)) outs(%e : !(m, n)) permutation = [0, 2, 1]
          %col = tensor.extract_slice %y[0, 0, 3] [%calls, %dm, 1] [1, 1, 1] : !(m, 7) to !(m)
          %cb = linalg.broadcast ins(%col : !(m)) outs(%e : !(m, n)) dimensions = [2]
          %r = linalg.generic {indexing_maps = [#map, #map, #map],
              iterator_types = [\"parallel\", \"parallel\", \"parallel\"]}
              ins(%t, %cb : !(m, n), !(m, n)) outs(%e : !(m, n)) {
          ^bb0(%a: f32, %b: f32, %o: f32):
            %i = linalg.index 1 : index
            %j = linalg.index 2 : index
            %c = arith.cmpi sge, %i, %j : index
            %s = arith.select %c, %a, %b : f32
            linalg.yield %s : f32
          } -> !(m, n)
          cfb.yield %r : !(m, n)",
    };
    kernel.check(&several(2), 0.0, |lengths, inputs| {
        let (n, m) = (lengths[0], lengths[1]);
        let at = |i: usize, j: usize| match i >= j {
            true => inputs[0][j * m + i],
            false => inputs[1][i * 7 + 3],
        };
        vec![(0..m * n).map(|at_| at(at_ / n, at_ % n)).collect()]
    });
}

pub const ZEROS: &str = "
          %zero = arith.constant 0.0 : f32
          %c1 = arith.constant 1 : index
          %c2 = arith.constant 2 : index";

#[test]
fn products_of_three_lengths() {
    let kernel = CallKernel {
        lengths: &["m", "d", "n"],
        rows: "[@m, @n]",
        operands: &[("a", "m, d"), ("b", "d, n")],
        declarations: "",
        body: &format!(
            "{ZEROS}
          %dm = tensor.dim %a, %c1 : !(m, d)
          %dn = tensor.dim %b, %c2 : !(d, n)
          %e = tensor.empty(%calls, %dm, %dn) : !(m, n)
          %z = linalg.fill ins(%zero : f32) outs(%e : !(m, n)) -> !(m, n)
          %p = linalg.batch_matmul ins(%a, %b : !(m, d), !(d, n)) outs(%z : !(m, n)) -> !(m, n)
          cfb.yield %p : !(m, n)"
        ),
    };
    let mut lengths = several(3);
    lengths.push(vec![131, 600, 530]);
    kernel.check(&lengths, 2e-5, |lengths, inputs| {
        vec![matmul(
            &inputs[0],
            &inputs[1],
            (lengths[0], lengths[1], lengths[2]),
        )]
    });
}

#[test]
fn products_of_transposed_operands_with_a_start_and_what_follows() {
    let kernel = CallKernel {
        lengths: &["m", "d"],
        rows: "[@m]",
        operands: &[("a", "d, m"), ("b", "28, d"), ("c", "m, 28"), ("g", "m")],
        declarations: "",
        body: &format!(
            "{ZEROS}
          %dk = tensor.dim %a, %c1 : !(d, m)
          %dm = tensor.dim %a, %c2 : !(d, m)
          %ea = tensor.empty(%calls, %dm, %dk) : !(m, d)
          %at = linalg.transpose ins(%a : !(d, m)) outs(%ea : !(m, d)) permutation = [0, 2, 1]
          %eb = tensor.empty(%calls, %dk) : !(d, 28)
          %bt = linalg.transpose ins(%b : !(28, d)) outs(%eb : !(d, 28)) permutation = [0, 2, 1]
          %an = arith.negf %at : !(m, d)
          %p = linalg.batch_matmul ins(%an, %bt : !(m, d), !(d, 28)) outs(%c : !(m, 28)) -> !(m, 28)
          %e = tensor.empty(%calls, %dm) : !(m, 28)
          %gb = linalg.broadcast ins(%g : !(m)) outs(%e : !(m, 28)) dimensions = [2]
          %q = arith.mulf %p, %gb : !(m, 28)
          cfb.yield %q : !(m, 28)"
        ),
    };
    kernel.check(&several(2), 2e-5, |lengths, inputs| {
        let (m, k) = (lengths[0], lengths[1]);
        let mut y = vec![];
        for i in 0..m {
            for j in 0..28 {
                let sum: f64 = (0..k)
                    .map(|at| -inputs[0][at * m + i] * inputs[1][j * k + at])
                    .sum();
                y.push((sum + inputs[2][i * 28 + j]) * inputs[3][i]);
            }
        }
        vec![y]
    });
}

/// One head: `softmax(s(q · kᵀ)) · v`, with `%s` made of `%p` by the given lines.
pub fn attention(heads: usize, d: usize, scores: &str) -> String {
    let whole = heads * d;
    let mut body = format!(
        "{ZEROS}
          %low = arith.constant 0xFF800000 : f32
          %masked = arith.constant -1.0e30 : f32
          %dn = tensor.dim %q, %c1 : !(n, {whole})
          %dm = tensor.dim %k, %c1 : !(m, {whole})
          %en = tensor.empty(%calls, %dn) : !(n)
          %zn = linalg.fill ins(%zero : f32) outs(%en : !(n)) -> !(n)
          %ln = linalg.fill ins(%low : f32) outs(%en : !(n)) -> !(n)
          %e = tensor.empty(%calls, %dn, %dm) : !(n, m)
          %z = linalg.fill ins(%zero : f32) outs(%e : !(n, m)) -> !(n, m)
          %factor = arith.constant 0.25 : f32
          %f = linalg.fill ins(%factor : f32) outs(%e : !(n, m)) -> !(n, m)
          %eo = tensor.empty(%calls, %dn) : !(n, {d})
          %zo = linalg.fill ins(%zero : f32) outs(%eo : !(n, {d})) -> !(n, {d})
          %ek = tensor.empty(%calls, %dm) : !({d}, m)\n"
    );
    for head in 0..heads {
        let slice = |name: &str, length: &str| {
            format!(
                "%{name}{head} = tensor.extract_slice %{name}[0, 0, {}] [%calls, %d{length}, {d}] [1, 1, 1]
                     : !({length}, {whole}) to !({length}, {d})\n",
                head * d
            )
        };
        body += &(slice("q", "n") + &slice("k", "m") + &slice("v", "m"));
        body += &format!(
            "%kt{head} = linalg.transpose ins(%k{head} : !(m, {d})) outs(%ek : !({d}, m)) permutation = [0, 2, 1]
             %p{head} = linalg.batch_matmul ins(%q{head}, %kt{head} : !(n, {d}), !({d}, m)) outs(%z : !(n, m)) -> !(n, m)
             {}
             %m{head} = linalg.reduce {{ arith.maximumf }} ins(%s{head} : !(n, m)) outs(%ln : !(n)) dimensions = [2]
             %mb{head} = linalg.broadcast ins(%m{head} : !(n)) outs(%e : !(n, m)) dimensions = [2]
             %x{head} = arith.subf %s{head}, %mb{head} : !(n, m)
             %w{head} = math.exp %x{head} : !(n, m)
             %t{head} = linalg.reduce {{ arith.addf }} ins(%w{head} : !(n, m)) outs(%zn : !(n)) dimensions = [2]
             %tb{head} = linalg.broadcast ins(%t{head} : !(n)) outs(%e : !(n, m)) dimensions = [2]
             %y{head} = arith.divf %w{head}, %tb{head} : !(n, m)
             %o{head} = linalg.batch_matmul ins(%y{head}, %v{head} : !(n, m), !(m, {d})) outs(%zo : !(n, {d})) -> !(n, {d})\n",
            scores.replace('$', &head.to_string())
        );
    }
    let all = |f: &dyn Fn(usize) -> String| (0..heads).map(f).collect::<Vec<_>>().join(", ");
    if heads > 1 {
        body += &format!(
            "%o = tensor.concat dim(2) {} : ({}) -> !(n, {whole})\n",
            all(&|head| format!("%o{head}")),
            all(&|_| format!("!(n, {d})"))
        );
    }
    let result = if heads > 1 { "%o" } else { "%o0" };
    body + &format!("cfb.yield {result} : !(n, {whole})")
}

pub const SCALED: &str = "%s$ = arith.mulf %p$, %f : !(n, m)";

/// The scores of keys behind the query are masked.
const CAUSAL: &str = "%h$ = arith.mulf %p$, %f : !(n, m)
    %s$ = linalg.generic {indexing_maps = [#map, #map],
        iterator_types = [\"parallel\", \"parallel\", \"parallel\"]}
        ins(%h$ : !(n, m)) outs(%e : !(n, m)) {
    ^bb0(%a$: f32, %old$: f32):
      %i$ = linalg.index 1 : index
      %j$ = linalg.index 2 : index
      %b$ = arith.cmpi sge, %i$, %j$ : index
      %r$ = arith.select %b$, %a$, %masked : f32
      linalg.yield %r$ : f32
    } -> !(n, m)";

fn attended(
    (n, m): (usize, usize),
    inputs: &[Vec<f64>],
    (heads, d): (usize, usize),
    masked: Option<f64>,
) -> Vec<f64> {
    let whole = heads * d;
    let mut out = vec![0.0; n * whole];
    for head in 0..heads {
        for i in 0..n {
            let mut weights: Vec<f64> = (0..m)
                .map(|j| {
                    let at = |c: usize| {
                        inputs[0][i * whole + head * d + c] * inputs[1][j * whole + head * d + c]
                    };
                    match masked {
                        Some(masked) if i < j => masked,
                        _ => (0..d).map(at).sum::<f64>() * 0.25,
                    }
                })
                .collect();
            softmax(&mut weights);
            for (j, weight) in weights.iter().enumerate() {
                for c in 0..d {
                    out[i * whole + head * d + c] += weight * inputs[2][j * whole + head * d + c];
                }
            }
        }
    }
    out
}

fn check_attention(
    heads: usize,
    d: usize,
    scores: &str,
    masked: Option<f64>,
    lengths: &[Vec<u32>],
) {
    let (of_n, of_m) = (format!("n, {}", heads * d), format!("m, {}", heads * d));
    let kernel = CallKernel {
        lengths: &["n", "m"],
        rows: "[@n]",
        operands: &[("q", &of_n), ("k", &of_m), ("v", &of_m)],
        declarations: "#map = affine_map<(b, i, j) -> (b, i, j)>",
        body: &attention(heads, d, scores),
    };
    let reference = |lengths: &[usize], inputs: &[Vec<f64>]| {
        let sizes = (lengths[0], lengths[1]);
        vec![attended(sizes, inputs, (heads, d), masked)]
    };
    kernel.check(lengths, 2e-5, reference);
    let jit = Jit::new(&kernel.text());
    let short: Vec<_> = lengths
        .iter()
        .filter(|lengths| lengths.iter().product::<u32>() < 5_000)
        .cloned()
        .collect();
    for (precision, tolerance) in [(Precision::Tf32, 2e-3), (Precision::Bf16, 2e-2)] {
        kernel.check_on_gpu(&jit, precision, &short, tolerance, reference);
    }
}

#[test]
fn attention_of_one_head_and_of_several() {
    check_attention(1, 64, SCALED, None, &several(2));
    check_attention(3, 28, SCALED, None, &several(2));
    // Deeper than what has room in shared memory.
    check_attention(
        1,
        160,
        SCALED,
        None,
        &[vec![33, 61], vec![0, 3], vec![28, 1]],
    );
    check_attention(
        2,
        5,
        SCALED,
        None,
        &[vec![600, 600], vec![1, 600], vec![600, 1]],
    );
}

#[test]
fn attention_to_what_came_before() {
    let square: Vec<Vec<u32>> = LENGTHS.iter().map(|n| vec![*n, *n]).collect();
    check_attention(1, 28, CAUSAL, Some(-1.0e30), &square);
    check_attention(2, 64, CAUSAL, Some(-1.0e30), &several(2));
    let infinite = CAUSAL.replace("%masked", "%low");
    check_attention(1, 28, &infinite, Some(f64::NEG_INFINITY), &square);
}

/// `Σ_k select(i >= k, a, 0) · b`, with the mask as the given comparison of `%i` and `%j`.
fn check_triangle(compare: &str, after: usize) {
    let kernel = CallKernel {
        lengths: &["n", "m"],
        rows: "[@n, @m]",
        operands: &[("a", "n, n"), ("b", "n, m")],
        declarations: "#map = affine_map<(b, i, j) -> (b, i, j)>",
        body: &format!(
            "{ZEROS}
          %dn = tensor.dim %b, %c1 : !(n, m)
          %dm = tensor.dim %b, %c2 : !(n, m)
          %en = tensor.empty(%calls, %dn, %dn) : !(n, n)
          %t = linalg.generic {{indexing_maps = [#map, #map],
              iterator_types = [\"parallel\", \"parallel\", \"parallel\"]}}
              ins(%a : !(n, n)) outs(%en : !(n, n)) {{
          ^bb0(%x: f32, %o: f32):
            %i = linalg.index 1 : index
            %j = linalg.index 2 : index
            {compare}
            linalg.yield %s : f32
          }} -> !(n, n)
          %e = tensor.empty(%calls, %dn, %dm) : !(n, m)
          %z = linalg.fill ins(%zero : f32) outs(%e : !(n, m)) -> !(n, m)
          %p = linalg.batch_matmul ins(%t, %b : !(n, n), !(n, m)) outs(%z : !(n, m)) -> !(n, m)
          %y = arith.addf %p, %b : !(n, m)
          cfb.yield %y : !(n, m)"
        ),
    };
    let mut lengths = several(2);
    lengths.push(vec![600, 33]);
    kernel.check(&lengths, 2e-5, |lengths, inputs| {
        let (n, m) = (lengths[0], lengths[1]);
        let mut y = inputs[1].clone();
        for i in 0..n {
            for k in 0..(i + after).min(n) {
                for j in 0..m {
                    y[i * m + j] += inputs[0][i * n + k] * inputs[1][k * m + j];
                }
            }
        }
        vec![y]
    });
}

#[test]
fn products_of_triangles() {
    let first = "%r = arith.cmpi sge, %i, %j : index
            %s = arith.select %r, %x, %zero : f32";
    check_triangle(first, 1);
    let strict = "%r = arith.cmpi sge, %j, %i : index
            %s = arith.select %r, %zero, %x : f32";
    check_triangle(strict, 0);
    // What is above the diagonal is no triangle that a bound could end.
    let kept = "%r = arith.cmpi sge, %j, %i : index
            %s = arith.select %r, %x, %x : f32";
    check_triangle(kept, 1 << 20);
}

#[test]
fn scores_that_are_as_low_as_masked_ones_are_not_left_out() {
    let low = CAUSAL
        .replace("arith.mulf %p$, %f", "arith.subf %p$, %big")
        .replacen(
            "%h$ =",
            "%huge = arith.constant 1.0e30 : f32
    %big = linalg.fill ins(%huge : f32) outs(%e : !(n, m)) -> !(n, m)
    %h$ =",
            1,
        );
    let kernel = CallKernel {
        lengths: &["n", "m"],
        rows: "[@n]",
        operands: &[("q", "n, 28"), ("k", "m, 28"), ("v", "m, 28")],
        declarations: "#map = affine_map<(b, i, j) -> (b, i, j)>",
        body: &attention(1, 28, &low),
    };
    // All scores are -1e30, so every key has the same weight.
    kernel.check(&[vec![61, 61], vec![257, 257]], 2e-5, |lengths, inputs| {
        let (n, m) = (lengths[0], lengths[1]);
        let mean = |c: usize| (0..m).map(|j| inputs[2][j * 28 + c]).sum::<f64>() / m as f64;
        let row: Vec<f64> = (0..28).map(mean).collect();
        vec![(0..n).flat_map(|_| row.clone()).collect()]
    });
}
