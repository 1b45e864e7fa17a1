//! Softmax-like folds between products, and products of triangles.

use cohort_abi::gpu::Precision;

use super::batches::{CallKernel, LENGTHS, ZEROS, several, softmax};
use crate::jit::Jit;

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
    // What is above the diagonal is not a triangle that a bound could end.
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
