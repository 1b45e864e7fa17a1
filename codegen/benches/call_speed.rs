//! How fast kernels over calls run: products of three lengths, of a triangle, and attention.
//!
//! `cargo bench -p cohort-codegen --bench call_speed [WHAT…]`, where WHAT is `product`, `triangle`,
//! `attention` or `causal`. Operations are counted as if nothing was masked, but for triangles.

#[path = "../tests/it/jit.rs"]
mod jit;

use std::collections::HashMap;

use jit::{Bits, Jit, Operand};

fn floats(count: usize) -> Bits {
    let mut state = 7_u32;
    (0..count)
        .map(|_| {
            state = state.wrapping_mul(1664525).wrapping_add(1013904223);
            ((state >> 8) as f32 / (1 << 24) as f32 - 0.5).to_bits()
        })
        .collect()
}

const HEAD: &str = "
  !md = tensor<?x?x?xf32, #ragged.shape<@batch, @m(@batch), @d(@batch)>>
  !dn = tensor<?x?x?xf32, #ragged.shape<@batch, @d(@batch), @n(@batch)>>
  !mn = tensor<?x?x?xf32, #ragged.shape<@batch, @m(@batch), @n(@batch)>>
  !mm = tensor<?x?x?xf32, #ragged.shape<@batch, @m(@batch), @m(@batch)>>
  !bm = tensor<?x?x?xi1, #ragged.shape<@batch, @m(@batch), @m(@batch)>>
  !im = tensor<?x?x?xi32, #ragged.shape<@batch, @m(@batch), @m(@batch)>>
  !m = tensor<?x?xf32, #ragged.shape<@batch, @m(@batch)>>
  #map = affine_map<(b, i, j) -> (b, i, j)>\n";

fn product() -> String {
    format!(
        "{HEAD} cfb.kernel @k attributes {{unit = #cfb<unit calls>, lengths = [@m, @d, @n], rows = [@m, @n]}} {{
  ^bb0(%calls: index, %m: tensor<?xindex>, %d: tensor<?xindex>, %n: tensor<?xindex>, %a: !md, %b: !dn):
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %zero = arith.constant 0.0 : f32
    %dm = tensor.dim %a, %c1 : !md
    %dn = tensor.dim %b, %c2 : !dn
    %e = tensor.empty(%calls, %dm, %dn) : !mn
    %z = linalg.fill ins(%zero : f32) outs(%e : !mn) -> !mn
    %p = linalg.batch_matmul ins(%a, %b : !md, !dn) outs(%z : !mn) -> !mn
    cfb.yield %p : !mn
  }}"
    )
}

/// `%r`: which columns are not behind their row.
const TRIANGLE: &str = "
    %ei = tensor.empty(%calls, %dm, %dm) : !im
    %i = linalg.generic {indexing_maps = [#map], iterator_types = [\"parallel\", \"parallel\", \"parallel\"]} outs(%ei : !im) {
    ^bb0(%o: i32):
      %x = linalg.index 1 : index
      %y = arith.index_cast %x : index to i32
      linalg.yield %y : i32
    } -> !im
    %j = linalg.generic {indexing_maps = [#map], iterator_types = [\"parallel\", \"parallel\", \"parallel\"]} outs(%ei : !im) {
    ^bb0(%o: i32):
      %x = linalg.index 2 : index
      %y = arith.index_cast %x : index to i32
      linalg.yield %y : i32
    } -> !im
    %r = arith.cmpi sge, %i, %j : !im";

fn triangle() -> String {
    format!(
        "{HEAD} cfb.kernel @k attributes {{unit = #cfb<unit calls>, lengths = [@m, @n], rows = [@m, @n]}} {{
  ^bb0(%calls: index, %m: tensor<?xindex>, %n: tensor<?xindex>, %a: !mm, %b: !mn):
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %zero = arith.constant 0.0 : f32
    %dm = tensor.dim %b, %c1 : !mn
    %dn = tensor.dim %b, %c2 : !mn
    {TRIANGLE}
    %em = tensor.empty(%calls, %dm, %dm) : !mm
    %zm = linalg.fill ins(%zero : f32) outs(%em : !mm) -> !mm
    %e = tensor.empty(%calls, %dm, %dn) : !mn
    %z = linalg.fill ins(%zero : f32) outs(%e : !mn) -> !mn
    %t = arith.select %r, %a, %zm : !bm, !mm
    %p = linalg.batch_matmul ins(%t, %b : !mm, !mn) outs(%z : !mn) -> !mn
    cfb.yield %p : !mn
  }}"
    )
}

fn attention(d: usize, causal: bool) -> String {
    let ty = format!("tensor<?x?x{d}xf32, #ragged.shape<@batch, @m(@batch), _>>");
    let turned = format!("tensor<?x{d}x?xf32, #ragged.shape<@batch, _, @m(@batch)>>");
    let masked = match causal {
        true => format!("{TRIANGLE}\n    %s = arith.select %r, %f, %masked : !bm, !mm"),
        false => "%s = arith.addf %f, %z : !mm".to_owned(),
    };
    format!(
        "{HEAD} !x = {ty}\n !t = {turned}
  cfb.kernel @k attributes {{unit = #cfb<unit calls>, lengths = [@m], rows = [@m]}} {{
  ^bb0(%calls: index, %m: tensor<?xindex>, %q: !x, %k: !x, %v: !x):
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %low = arith.constant 0xFF800000 : f32
    %lowest = arith.constant -1.0e30 : f32
    %eighth = arith.constant 0.125 : f32
    %dm = tensor.dim %q, %c1 : !x
    %e = tensor.empty(%calls, %dm, %dm) : !mm
    %z = linalg.fill ins(%zero : f32) outs(%e : !mm) -> !mm
    %masked = linalg.fill ins(%lowest : f32) outs(%e : !mm) -> !mm
    %scale = linalg.fill ins(%eighth : f32) outs(%e : !mm) -> !mm
    %e1 = tensor.empty(%calls, %dm) : !m
    %z1 = linalg.fill ins(%zero : f32) outs(%e1 : !m) -> !m
    %l1 = linalg.fill ins(%low : f32) outs(%e1 : !m) -> !m
    %eo = tensor.empty(%calls, %dm) : !x
    %zo = linalg.fill ins(%zero : f32) outs(%eo : !x) -> !x
    %et = tensor.empty(%calls, %dm) : !t
    %kt = linalg.transpose ins(%k : !x) outs(%et : !t) permutation = [0, 2, 1]
    %p = linalg.batch_matmul ins(%q, %kt : !x, !t) outs(%z : !mm) -> !mm
    %f = arith.mulf %p, %scale : !mm
    {masked}
    %most = linalg.reduce {{ arith.maximumf }} ins(%s : !mm) outs(%l1 : !m) dimensions = [2]
    %mb = linalg.broadcast ins(%most : !m) outs(%e : !mm) dimensions = [2]
    %d = arith.subf %s, %mb : !mm
    %w = math.exp %d : !mm
    %total = linalg.reduce {{ arith.addf }} ins(%w : !mm) outs(%z1 : !m) dimensions = [2]
    %tb = linalg.broadcast ins(%total : !m) outs(%e : !mm) dimensions = [2]
    %y = arith.divf %w, %tb : !mm
    %o = linalg.batch_matmul ins(%y, %v : !mm, !x) outs(%zo : !x) -> !x
    cfb.yield %o : !x
  }}"
    )
}

/// GFLOP/s of one call, the best of some runs.
fn speed(jit: &Jit, lengths: &[usize], rows: usize, row_pools: &[usize], flops: f64) -> f64 {
    let of = |pool: Bits, index: u32| Operand {
        pool,
        index: vec![index],
        ..Operand::default()
    };
    let mut operands: Vec<_> = lengths.iter().map(|n| of(vec![], *n as u32)).collect();
    operands.extend(row_pools.iter().map(|count| of(floats(*count), 0)));
    operands.push(of(vec![], 0));
    // One work item, all of the call.
    operands.push(Operand {
        index: vec![0, 0, lengths[0] as u32],
        ..Operand::default()
    });
    let mut call = jit.call("k", &HashMap::new(), &operands);
    let repeat = (1e8 / flops).ceil() as usize;
    let runs = (0..7).map(|_| {
        call.run(rows, &vec![(0, 1); repeat]);
        call.seconds / repeat as f64
    });
    flops / runs.fold(f64::MAX, f64::min) / 1e9
}

fn main() {
    let wanted: Vec<_> = std::env::args()
        .filter(|arg| !arg.starts_with('-'))
        .skip(1)
        .collect();
    let asked = |what: &str| wanted.is_empty() || wanted.iter().any(|w| w == what);
    if asked("product") {
        let jit = Jit::new(&product());
        for (m, d, n) in [
            (512, 512, 512),
            (640, 1024, 768),
            (1408, 1408, 1408),
            (1000, 61, 28),
            (28, 28, 28),
        ] {
            let flops = 2.0 * (m * d * n) as f64;
            let speed = speed(&jit, &[m, d, n], m * n, &[m * d, d * n], flops);
            println!("product {m:>5} x {d:>5} x {n:>5}: {speed:>8.1} GFLOP/s");
        }
    }
    if asked("triangle") {
        let jit = Jit::new(&triangle());
        let full = Jit::new(&product());
        for n in [512, 1024, 2048, 4096] {
            let flops = 2.0 * (n * n * n) as f64;
            let dense = speed(&full, &[n, n, n], n * n, &[n * n, n * n], flops);
            let half = speed(&jit, &[n, n], n * n, &[n * n, n * n], flops);
            println!(
                "triangle {n:>5}: {:>6.2} times the full product's {dense:.1} GFLOP/s",
                half / dense
            );
        }
    }
    for (what, causal) in [("attention", false), ("causal", true)] {
        if !asked(what) {
            continue;
        }
        for d in [64, 28] {
            let jit = Jit::new(&attention(d, causal));
            for n in [16, 28, 64, 128, 256, 512] {
                let flops = 4.0 * (n * n * d) as f64;
                let speed = speed(&jit, &[n], n, &[n * d; 3], flops);
                println!("{what} {n:>4} rows, {d} wide: {speed:>8.1} GFLOP/s");
            }
        }
    }
}
