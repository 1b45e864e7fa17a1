//! How fast kernels run: the inner node of a TreeLSTM, and the products in it alone.
//!
//! `cargo bench -p cohort-codegen --bench kernel_speed [H…]`

#[path = "../tests/it/jit.rs"]
mod jit;

use std::collections::HashMap;
use std::time::Instant;

use jit::{Bits, Jit, Operand};

fn floats(count: usize, seed: u32) -> Bits {
    let mut state = seed;
    (0..count)
        .map(|_| {
            state = state.wrapping_mul(1664525).wrapping_add(1013904223);
            ((state >> 8) as f32 / (1 << 24) as f32 - 0.5).to_bits()
        })
        .collect()
}

/// The gates of a TreeLSTM's inner node; without them, only the products.
fn module(h: usize, gates: bool) -> String {
    let w = 5 * h;
    let slice = |name: &str, at: usize| {
        format!(
            "%{name} = tensor.extract_slice %g[0, {}] [%rows, {h}] [1, 1] : tensor<?x{w}xf32> to tensor<?x{h}xf32>\n",
            at * h
        )
    };
    let t = format!("tensor<?x{h}xf32>");
    let sigmoid = |result: &str, of: &str| {
        format!(
            "%{result}_n = arith.negf %{of} : {t}\n%{result}_e = math.exp %{result}_n : {t}\n\
             %{result}_p = arith.addf %{result}_e, %one : {t}\n%{result} = arith.divf %one, %{result}_p : {t}\n"
        )
    };
    let tail = if gates {
        let mut text = format!(
            "%one_s = arith.constant 1.0 : f32\n%he = tensor.empty(%rows) : {t}\n\
             %one = linalg.fill ins(%one_s : f32) outs(%he : {t}) -> {t}\n"
        );
        for (at, name) in ["i", "o", "u", "fl", "fr"].iter().enumerate() {
            text += &slice(name, at);
        }
        for name in ["i", "o", "fl", "fr"] {
            text += &sigmoid(&format!("s{name}"), name);
        }
        text + &format!(
            "%tu = math.tanh %u : {t}\n%c0 = arith.mulf %si, %tu : {t}\n\
             %c1 = arith.mulf %sfl, %cl : {t}\n%c2 = arith.mulf %sfr, %cr : {t}\n\
             %c3 = arith.addf %c0, %c1 : {t}\n%c = arith.addf %c3, %c2 : {t}\n\
             %tc = math.tanh %c : {t}\n%h = arith.mulf %so, %tc : {t}\n\
             cfb.yield %h, %c : {t}, {t}\n"
        )
    } else {
        slice("h", 0) + &format!("cfb.yield %h, %h : {t}, {t}\n")
    };
    format!(
        "ml_program.global private @ul_{w}(#ml_program.extern<tensor<{h}x{w}xf32>>) : tensor<{h}x{w}xf32>
         ml_program.global private @ur_{w}(#ml_program.extern<tensor<{h}x{w}xf32>>) : tensor<{h}x{w}xf32>
         ml_program.global private @b(#ml_program.extern<tensor<{w}xf32>>) : tensor<{w}xf32>
         cfb.kernel @cell {{
         ^bb0(%rows: index, %hl: {t}, %hr: {t}, %cl: {t}, %cr: {t}):
           %ul = ml_program.global_load_const @ul_{w} : tensor<{h}x{w}xf32>
           %ur = ml_program.global_load_const @ur_{w} : tensor<{h}x{w}xf32>
           %b = ml_program.global_load_const @b : tensor<{w}xf32>
           %e = tensor.empty(%rows) : tensor<?x{w}xf32>
           %bb = linalg.broadcast ins(%b : tensor<{w}xf32>) outs(%e : tensor<?x{w}xf32>) dimensions = [0]
           %p = linalg.matmul ins(%hl, %ul : {t}, tensor<{h}x{w}xf32>) outs(%bb : tensor<?x{w}xf32>) -> tensor<?x{w}xf32>
           %g = linalg.matmul ins(%hr, %ur : {t}, tensor<{h}x{w}xf32>) outs(%p : tensor<?x{w}xf32>) -> tensor<?x{w}xf32>
           {tail}
         }}"
    )
}

fn main() {
    let sizes: Vec<usize> = std::env::args()
        .filter_map(|size| size.parse().ok())
        .collect();
    let sizes = if sizes.is_empty() {
        vec![64, 256]
    } else {
        sizes
    };
    for h in sizes {
        let params = HashMap::from([
            ("b", floats(5 * h, 1)),
            (&*format!("ul_{}", 5 * h).leak(), floats(h * 5 * h, 2)),
            (&*format!("ur_{}", 5 * h).leak(), floats(h * 5 * h, 3)),
        ]);
        let start = Instant::now();
        let [cell, bare] = [true, false].map(|gates| Jit::new(&module(h, gates)));
        println!(
            "H={h}: both compiled in {:.0} ms",
            start.elapsed().as_secs_f64() * 1e3
        );
        println!(
            "{:>6} {:>14} {:>14} {:>8}",
            "rows", "cell GFLOP/s", "bare GFLOP/s", "us/call"
        );
        for rows in [1, 2, 3, 4, 6, 8, 12, 13, 24, 64, 500] {
            let row_pools = 1024;
            let operands: Vec<_> = (0..4)
                .map(|at| Operand {
                    pool: floats(row_pools * h, at),
                    index: (0..rows as u32)
                        .map(|row| (row * 7 + at) % row_pools as u32)
                        .collect(),
                    ..Operand::default()
                })
                .collect();
            let flops = (2 * 2 * h * 5 * h * rows) as f64;
            let mut seconds = [f64::MAX; 2];
            let mut calls = [&cell, &bare].map(|jit| jit.call("cell", &params, &operands));
            for _ in 0..7 {
                for (call, best) in calls.iter_mut().zip(&mut seconds) {
                    let repeat = (2e8 / flops).ceil() as usize + 1;
                    call.run(rows, &vec![(0, rows); repeat]);
                    *best = best.min(call.seconds / repeat as f64);
                }
            }
            let speed = seconds.map(|seconds| flops / seconds / 1e9);
            println!(
                "{rows:>6} {:>14.1} {:>14.1} {:>8.2}",
                speed[0],
                speed[1],
                seconds[0] * 1e6
            );
        }
    }
}
