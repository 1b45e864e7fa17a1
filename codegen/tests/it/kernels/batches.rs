//! Kernels over calls and batches of them, and what has to hold of the results: on the processor, in
//! work items of calls, and on the simulated GPU.

use std::collections::HashMap;

use cohort_abi::gpu::Precision;
use cohort_abi::manifest::Extent;
use cohort_passes::kernel::description::OperandDescription;

use super::check::{Random, f64s};
use super::gpu::with_precision;
use crate::jit::{Bits, Jit, Operand};
use crate::simulator::{Calls, How, Order, Simulator, Tiles, gpu_text};

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

/// Where a kernel runs: on the processor in ranges of calls or in work items of them, or on a GPU.
/// The description is the processor's.
enum Machine<'a> {
    Cpu(&'a [(usize, usize)]),
    WorkItems(&'a [[u32; 3]]),
    Gpu(&'a Simulator, How),
}

const FORWARD: How = How {
    order: Order::Forward,
    tiles: Tiles::ByRows,
};

/// One batch: the lengths of each call, and its operands' values.
pub struct Batch {
    lengths: Vec<Vec<u32>>,
    values: Vec<Vec<Bits>>,
}

impl CallKernel<'_> {
    /// The text, with every `[…]` of names and numbers behind a `:` or `->` written out.
    pub fn text(&self) -> String {
        let mut text = format!("{}\n", self.declarations);
        let names: Vec<_> = self.lengths.iter().map(|name| format!("@{name}")).collect();
        text += &format!(
            "cfb.kernel @k attributes {{unit = #cfb<unit calls>, lengths = [{}], rows = {}}} {{\n\
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
        let jit = Jit::new(&self.text());
        self.check_on(&jit, lengths, tolerance, reference);
        let plain = Jit::with(&self.text(), &[]);
        let batch = Batch::new(&jit, lengths);
        let all: Vec<usize> = (0..lengths.len()).collect();
        let run = |jit| batch.run(jit, &all, &Machine::Cpu(&[(0, all.len())]));
        assert_eq!(run(&plain), run(&jit), "neither split nor hoisted");
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
                tiles: Tiles::Largest,
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
                        OperandDescription::Ragged { pool: row, extent } => {
                            let rows = rows_of(&description.call.extents[*extent], lengths);
                            random.floats(rows * row.shape.iter().product::<u64>() as usize)
                        }
                        OperandDescription::Row { pool: row } => {
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

    /// Whether calls give the same bits when they are cut into work items, if they can be.
    fn same_in_pieces(&self, jit: &Jit, whole: &[Vec<Bits>]) {
        let Some(division) = &jit.kernels["k"].call.division else {
            return;
        };
        let all: Vec<usize> = (0..whole.len()).collect();
        for tiles in [1, 3] {
            let step = tiles * division.tile as u32;
            let items = (0..).zip(&self.lengths).flat_map(|(call, lengths)| {
                let length = lengths[division.length];
                let froms = (0..length.max(1)).step_by(step as usize);
                froms.map(move |from| [call, from, (from + step).min(length)])
            });
            let backwards: Vec<_> = items.collect::<Vec<_>>().into_iter().rev().collect();
            let cut = self.run(jit, &all, &Machine::WorkItems(&backwards));
            assert_eq!(cut, whole, "in work items of {tiles} tiles");
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
                OperandDescription::Ragged { pool: row, .. }
                | OperandDescription::Row { pool: row } => row,
                other => unreachable!("{other:?}"),
            };
            // Other rows lie between the values, and their order is another one.
            let elements = row.shape.iter().product::<u64>().max(1) as usize;
            let mut of_call = HashMap::new();
            let mut pool: Bits = vec![];
            for call in calls.iter().rev() {
                pool.extend(vec![f32::NAN.to_bits(); 3 * elements]);
                of_call.insert(*call, (pool.len() / elements) as u32);
                pool.extend(&self.values[*call][at]);
            }
            operands.push(Operand {
                pool,
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
            Machine::Cpu(_) | Machine::WorkItems(_) => {
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
                let (items, ranges) = match machine {
                    Machine::WorkItems(items) => (items.to_vec(), &[][..]),
                    Machine::Cpu(ranges) => (whole.collect(), *ranges),
                    Machine::Gpu(..) => unreachable!("it has no items"),
                };
                let all = [(0, items.len())];
                let ranges = if ranges.is_empty() { &all } else { ranges };
                if shape.division.is_some() {
                    operands.push(Operand {
                        index: items.concat(),
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
pub fn single() -> Vec<Vec<u32>> {
    LENGTHS.iter().map(|n| vec![*n]).collect()
}

/// Combinations of lengths, small ones with large ones.
pub fn several(count: usize) -> Vec<Vec<u32>> {
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
pub fn matmul(a: &[f64], b: &[f64], (m, k, n): (usize, usize, usize)) -> Vec<f64> {
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

pub fn softmax(x: &mut [f64]) {
    let most = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    x.iter_mut().for_each(|x| *x = (*x - most).exp());
    let sum: f64 = x.iter().sum();
    x.iter_mut().for_each(|x| *x /= sum);
}

/// What most bodies begin with.
pub const ZEROS: &str = "
          %zero = arith.constant 0.0 : f32
          %c1 = arith.constant 1 : index
          %c2 = arith.constant 2 : index";
