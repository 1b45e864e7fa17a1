//! Products with a shared right side, and what comes before and after them.

use super::check::{Kernel, Random, f64s, sigmoid, vecmat};
use crate::jit::Bits;

#[test]
fn product_with_bias_of_any_size() {
    for (k, n) in [
        (1, 1),
        (3, 28),
        (28, 61),
        (61, 257),
        (257, 3),
        (64, 48),
        (5, 130),
        // Narrow: the lanes run along k.
        (28, 1),
        (61, 2),
        (256, 1),
        (129, 4),
    ] {
        let mut random = Random(7);
        let (w, b) = (random.floats(k * n), random.floats(n));
        let (w_type, b_type) = (format!("tensor<{k}x{n}xf32>"), format!("tensor<{n}xf32>"));
        let weight = format!("w_{n}");
        let kernel = Kernel {
            params: &[(&weight, &w_type), ("b", &b_type)],
            operands: &[("x", &format!("tensor<?x{k}xf32>"))],
            scalars: &[],
            body: &format!(
                "%e = tensor.empty(%rows) : tensor<?x{n}xf32>
                 %s = linalg.broadcast ins(%b : {b_type}) outs(%e : tensor<?x{n}xf32>) dimensions = [0]
                 %p = linalg.matmul ins(%x, %{weight} : tensor<?x{k}xf32>, {w_type}) outs(%s : tensor<?x{n}xf32>) -> tensor<?x{n}xf32>
                 cfb.yield %p : tensor<?x{n}xf32>"
            ),
        };
        kernel.check(&[(&weight, &w), ("b", &b)], 1e-5, |inputs| {
            let product = vecmat(&inputs[0], &f64s(&w), n);
            vec![product.iter().zip(f64s(&b)).map(|(p, b)| p + b).collect()]
        });
    }
}

#[test]
fn treelstm_node_of_any_size() {
    for h in [1, 3, 28, 61] {
        let n = 5 * h;
        let mut random = Random(9);
        let (ul, ur, b) = (random.floats(h * n), random.floats(h * n), random.floats(n));
        let t = format!("tensor<?x{h}xf32>");
        let (left, right) = (format!("ul_{n}"), format!("ur_{n}"));
        let mut body = format!(
            "%zero = arith.constant 0.0 : f32
             %e = tensor.empty(%rows) : tensor<?x{n}xf32>
             %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x{n}xf32>) -> tensor<?x{n}xf32>
             %pl = linalg.matmul ins(%hl, %{left} : {t}, tensor<{h}x{n}xf32>) outs(%z : tensor<?x{n}xf32>) -> tensor<?x{n}xf32>
             %pr = linalg.matmul ins(%hr, %{right} : {t}, tensor<{h}x{n}xf32>) outs(%z : tensor<?x{n}xf32>) -> tensor<?x{n}xf32>
             %bb = linalg.broadcast ins(%b : tensor<{n}xf32>) outs(%e : tensor<?x{n}xf32>) dimensions = [0]
             %sum = arith.addf %pl, %pr : tensor<?x{n}xf32>
             %g = arith.addf %sum, %bb : tensor<?x{n}xf32>
             %one = arith.constant 1.0 : f32
             %et = tensor.empty(%rows) : {t}
             %ones = linalg.fill ins(%one : f32) outs(%et : {t}) -> {t}\n"
        );
        for (at, gate) in ["i", "o", "u", "fl", "fr"].iter().enumerate() {
            body += &format!(
                "%{gate} = tensor.extract_slice %g[0, {}] [%rows, {h}] [1, 1] : tensor<?x{n}xf32> to {t}
                 %{gate}_n = arith.negf %{gate} : {t}
                 %{gate}_e = math.exp %{gate}_n : {t}
                 %{gate}_p = arith.addf %{gate}_e, %ones : {t}
                 %{gate}_s = arith.divf %ones, %{gate}_p : {t}\n",
                at * h
            );
        }
        body += &format!(
            "%tu = math.tanh %u : {t}
             %c0 = arith.mulf %i_s, %tu : {t}
             %c1 = arith.mulf %fl_s, %cl : {t}
             %c2 = arith.mulf %fr_s, %cr : {t}
             %c3 = arith.addf %c0, %c1 : {t}
             %c = arith.addf %c3, %c2 : {t}
             %tc = math.tanh %c : {t}
             %h = arith.mulf %o_s, %tc : {t}
             cfb.yield %h, %c : {t}, {t}"
        );
        let kernel = Kernel {
            params: &[
                (&left, &format!("tensor<{h}x{n}xf32>")),
                (&right, &format!("tensor<{h}x{n}xf32>")),
                ("b", &format!("tensor<{n}xf32>")),
            ],
            operands: &[("hl", &t), ("hr", &t), ("cl", &t), ("cr", &t)],
            scalars: &[],
            body: &body,
        };
        kernel.check(&[(&left, &ul), (&right, &ur), ("b", &b)], 1e-5, |inputs| {
            let l = vecmat(&inputs[0], &f64s(&ul), n);
            let r = vecmat(&inputs[1], &f64s(&ur), n);
            let g: Vec<f64> = l
                .iter()
                .zip(r)
                .zip(f64s(&b))
                .map(|((l, r), b)| l + r + b)
                .collect();
            let c: Vec<f64> = (0..h)
                .map(|j| {
                    sigmoid(g[j]) * g[2 * h + j].tanh()
                        + sigmoid(g[3 * h + j]) * inputs[2][j]
                        + sigmoid(g[4 * h + j]) * inputs[3][j]
                })
                .collect();
            let hidden = (0..h).map(|j| sigmoid(g[h + j]) * c[j].tanh()).collect();
            vec![hidden, c]
        });
    }
}

#[test]
fn a_product_of_every_row_of_a_matrix() {
    for (m, k, n) in [(1, 3, 5), (3, 28, 61), (13, 17, 33)] {
        let mut random = Random(3);
        let (w, b) = (random.floats(k * n), random.floats(n));
        let weight = format!("w_{n}");
        let kernel = Kernel {
            params: &[
                (&weight, &format!("tensor<{k}x{n}xf32>")),
                ("b", &format!("tensor<{n}xf32>")),
            ],
            operands: &[("x", &format!("tensor<?x{m}x{k}xf32>"))],
            scalars: &[],
            body: &format!(
                "%zero = arith.constant 0.0 : f32
                 %e = tensor.empty(%rows) : tensor<?x{m}x{n}xf32>
                 %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x{m}x{n}xf32>) -> tensor<?x{m}x{n}xf32>
                 %xf = tensor.collapse_shape %x [[0, 1], [2]] : tensor<?x{m}x{k}xf32> into tensor<?x{k}xf32>
                 %zf = tensor.collapse_shape %z [[0, 1], [2]] : tensor<?x{m}x{n}xf32> into tensor<?x{n}xf32>
                 %p = linalg.matmul ins(%xf, %{weight} : tensor<?x{k}xf32>, tensor<{k}x{n}xf32>) outs(%zf : tensor<?x{n}xf32>) -> tensor<?x{n}xf32>
                 %pe = tensor.expand_shape %p [[0, 1], [2]] output_shape [%rows, {m}, {n}] : tensor<?x{n}xf32> into tensor<?x{m}x{n}xf32>
                 %bb = linalg.broadcast ins(%b : tensor<{n}xf32>) outs(%e : tensor<?x{m}x{n}xf32>) dimensions = [0, 1]
                 %s = arith.addf %pe, %bb : tensor<?x{m}x{n}xf32>
                 cfb.yield %s : tensor<?x{m}x{n}xf32>"
            ),
        };
        kernel.check(&[(&weight, &w), ("b", &b)], 1e-5, |inputs| {
            let rows = inputs[0].chunks(k);
            let (w, b) = (f64s(&w), f64s(&b));
            let sum = |row: &[f64]| -> Vec<f64> {
                vecmat(row, &w, n)
                    .iter()
                    .zip(&b)
                    .map(|(p, b)| p + b)
                    .collect()
            };
            vec![rows.flat_map(sum).collect()]
        });
    }
}

#[test]
fn concatenation_as_a_result_and_into_a_product() {
    let (h, d, n) = (28, 13, 35);
    let mut random = Random(11);
    let w = random.floats((h + d) * n);
    let kernel = Kernel {
        params: &[("w_35", "tensor<41x35xf32>")],
        operands: &[("x", "tensor<?x13xf32>"), ("y", "tensor<?x28xf32>")],
        scalars: &[],
        body: "%c = tensor.concat dim(1) %x, %y : (tensor<?x13xf32>, tensor<?x28xf32>) -> tensor<?x41xf32>
               %zero = arith.constant 0.0 : f32
               %e = tensor.empty(%rows) : tensor<?x35xf32>
               %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x35xf32>) -> tensor<?x35xf32>
               %p = linalg.matmul ins(%c, %w_35 : tensor<?x41xf32>, tensor<41x35xf32>) outs(%z : tensor<?x35xf32>) -> tensor<?x35xf32>
               %t = math.tanh %x : tensor<?x13xf32>
               %c2 = tensor.concat dim(1) %t, %p, %x : (tensor<?x13xf32>, tensor<?x35xf32>, tensor<?x13xf32>) -> tensor<?x61xf32>
               cfb.yield %p, %c2 : tensor<?x35xf32>, tensor<?x61xf32>",
    };
    kernel.check(&[("w_35", &w)], 1e-5, |inputs| {
        let product = vecmat(&inputs.concat(), &f64s(&w), n);
        let tanh: Vec<f64> = inputs[0].iter().map(|x| x.tanh()).collect();
        vec![product.clone(), [tanh, product, inputs[0].clone()].concat()]
    });
}

#[test]
fn values_of_parameters_alone() {
    let mut random = Random(13);
    let (p, w, l) = (
        random.floats(21),
        random.floats(17 * 21),
        random.floats(3 * 17 * 21),
    );
    let kernel = Kernel {
        params: &[
            ("p", "tensor<21xf32>"),
            ("w_17", "tensor<21x17xf32>"),
            ("l_21", "tensor<3x17x21xf32>"),
        ],
        operands: &[("x", "tensor<?x17xf32>")],
        scalars: &[],
        body: "%t = math.tanh %p : tensor<21xf32>
               %e = tensor.empty() : tensor<17x21xf32>
               %wt = linalg.transpose ins(%w_17 : tensor<21x17xf32>) outs(%e : tensor<17x21xf32>) permutation = [1, 0]
               %e2 = tensor.empty(%rows) : tensor<?x21xf32>
               %tb = linalg.broadcast ins(%t : tensor<21xf32>) outs(%e2 : tensor<?x21xf32>) dimensions = [0]
               %q = linalg.matmul ins(%x, %wt : tensor<?x17xf32>, tensor<17x21xf32>) outs(%tb : tensor<?x21xf32>) -> tensor<?x21xf32>
               %layer = tensor.extract_slice %l_21[1, 0, 0] [1, 17, 21] [1, 1, 1] : tensor<3x17x21xf32> to tensor<17x21xf32>
               %r = linalg.matmul ins(%x, %layer : tensor<?x17xf32>, tensor<17x21xf32>) outs(%q : tensor<?x21xf32>) -> tensor<?x21xf32>
               %o = arith.mulf %q, %tb : tensor<?x21xf32>
               cfb.yield %r, %o, %tb : tensor<?x21xf32>, tensor<?x21xf32>, tensor<?x21xf32>",
    };
    kernel.check(&[("p", &p), ("w_17", &w), ("l_21", &l)], 1e-5, |inputs| {
        let x = &inputs[0];
        let (w, l) = (f64s(&w), f64s(&l));
        let t: Vec<f64> = f64s(&p).iter().map(|p| p.tanh()).collect();
        let q: Vec<f64> = (0..21)
            .map(|j| t[j] + (0..17).map(|k| x[k] * w[j * 17 + k]).sum::<f64>())
            .collect();
        let layer = vecmat(x, &l[17 * 21..2 * 17 * 21], 21);
        vec![
            q.iter().zip(layer).map(|(q, l)| q + l).collect(),
            q.iter().zip(&t).map(|(q, t)| q * t).collect(),
            t,
        ]
    });
}

#[test]
fn layers_share_scratch_and_a_later_one_reads_an_early_value() {
    let sizes = [20, 61, 28, 61];
    let mut random = Random(17);
    let weights: Vec<Bits> = sizes
        .windows(2)
        .map(|s| random.floats(s[0] * s[1]))
        .collect();
    let names: Vec<_> = (0..3)
        .map(|at| format!("l{at}_{}", sizes[at + 1]))
        .collect();
    let types: Vec<_> = sizes
        .windows(2)
        .map(|s| format!("tensor<{}x{}xf32>", s[0], s[1]))
        .collect();
    let params: Vec<(&str, &str)> = names
        .iter()
        .map(String::as_str)
        .zip(types.iter().map(String::as_str))
        .collect();
    let mut body = String::from("%zero = arith.constant 0.0 : f32\n");
    for at in 0..3 {
        let (from, to) = (format!("tensor<?x{}xf32>", sizes[at]), sizes[at + 1]);
        let to_type = format!("tensor<?x{to}xf32>");
        body += &format!(
            "%e{at} = tensor.empty(%rows) : {to_type}
             %z{at} = linalg.fill ins(%zero : f32) outs(%e{at} : {to_type}) -> {to_type}
             %p{at} = linalg.matmul ins(%h{at}, %{} : {from}, {}) outs(%z{at} : {to_type}) -> {to_type}
             %h{} = math.tanh %p{at} : {to_type}\n",
            names[at],
            types[at],
            at + 1
        );
    }
    body += "%sum = arith.addf %h1, %h3 : tensor<?x61xf32>
             cfb.yield %sum, %h2 : tensor<?x61xf32>, tensor<?x28xf32>";
    let kernel = Kernel {
        params: &params,
        operands: &[("h0", "tensor<?x20xf32>")],
        scalars: &[],
        body: &body,
    };
    let values: Vec<(&str, &Bits)> = names.iter().map(String::as_str).zip(&weights).collect();
    kernel.check(&values, 1e-4, |inputs| {
        let mut hidden = vec![inputs[0].clone()];
        for at in 0..3 {
            let next = vecmat(&hidden[at], &f64s(&weights[at]), sizes[at + 1]);
            hidden.push(next.into_iter().map(f64::tanh).collect());
        }
        let sum = hidden[1].iter().zip(&hidden[3]).map(|(a, b)| a + b);
        vec![sum.collect(), hidden[2].clone()]
    });
}

#[test]
fn a_product_of_one_column_that_starts_from_a_row_value() {
    let w = Random(19).floats(7);
    let kernel = Kernel {
        params: &[("w_1", "tensor<7x1xf32>")],
        operands: &[("x", "tensor<?x5x7xf32>"), ("s", "tensor<?x5x1xf32>")],
        scalars: &[],
        body: "%xf = tensor.collapse_shape %x [[0, 1], [2]] : tensor<?x5x7xf32> into tensor<?x7xf32>
               %sf = tensor.collapse_shape %s [[0, 1], [2]] : tensor<?x5x1xf32> into tensor<?x1xf32>
               %p = linalg.matmul ins(%xf, %w_1 : tensor<?x7xf32>, tensor<7x1xf32>) outs(%sf : tensor<?x1xf32>) -> tensor<?x1xf32>
               %r = tensor.expand_shape %p [[0, 1], [2]] output_shape [%rows, 5, 1] : tensor<?x1xf32> into tensor<?x5x1xf32>
               %c = tensor.collapse_shape %r [[0], [1, 2]] : tensor<?x5x1xf32> into tensor<?x5xf32>
               %e = math.exp %c : tensor<?x5xf32>
               cfb.yield %r, %e : tensor<?x5x1xf32>, tensor<?x5xf32>",
    };
    kernel.check(&[("w_1", &w)], 1e-5, |inputs| {
        let rows = inputs[0].chunks(7).zip(&inputs[1]);
        let r: Vec<f64> = rows.map(|(x, s)| s + vecmat(x, &f64s(&w), 1)[0]).collect();
        let e = r.iter().map(|r| r.exp()).collect();
        vec![r, e]
    });
}
