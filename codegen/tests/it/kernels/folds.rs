//! Folds, products of matrices that differ by row, and bodies kept as they are.

use super::check::{Kernel, Random, f64s, vecmat};

#[test]
fn folds_along_every_dim() {
    for (m, n) in [(1, 1), (3, 28), (28, 3), (61, 17), (5, 257)] {
        let kernel = Kernel {
            params: &[],
            operands: &[("x", &format!("tensor<?x{m}x{n}xf32>"))],
            scalars: &[],
            body: &format!(
                "%zero = arith.constant 0.0 : f32
                 %low = arith.constant 0xFF800000 : f32
                 %em = tensor.empty(%rows) : tensor<?x{m}xf32>
                 %en = tensor.empty(%rows) : tensor<?x{n}xf32>
                 %e0 = tensor.empty(%rows) : tensor<?xf32>
                 %zm = linalg.fill ins(%zero : f32) outs(%em : tensor<?x{m}xf32>) -> tensor<?x{m}xf32>
                 %zn = linalg.fill ins(%low : f32) outs(%en : tensor<?x{n}xf32>) -> tensor<?x{n}xf32>
                 %z0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<?xf32>) -> tensor<?xf32>
                 %a = linalg.reduce {{ arith.addf }} ins(%x : tensor<?x{m}x{n}xf32>) outs(%zm : tensor<?x{m}xf32>) dimensions = [2]
                 %b = linalg.reduce {{ arith.maximumf }} ins(%x : tensor<?x{m}x{n}xf32>) outs(%zn : tensor<?x{n}xf32>) dimensions = [1]
                 %c = linalg.reduce {{ arith.addf }} ins(%x : tensor<?x{m}x{n}xf32>) outs(%z0 : tensor<?xf32>) dimensions = [1, 2]
                 cfb.yield %a, %b, %c : tensor<?x{m}xf32>, tensor<?x{n}xf32>, tensor<?xf32>"
            ),
        };
        kernel.check(&[], 1e-5, |inputs| {
            let x = &inputs[0];
            let column = |j: usize| {
                (0..m)
                    .map(|i| x[i * n + j])
                    .fold(f64::NEG_INFINITY, f64::max)
            };
            vec![
                x.chunks(n).map(|row| row.iter().sum()).collect(),
                (0..n).map(column).collect(),
                vec![x.iter().sum()],
            ]
        });
    }
}

#[test]
fn products_of_matrices_that_differ_by_row() {
    for (m, k, n) in [
        (1, 1, 1),
        (3, 28, 5),
        (28, 3, 61),
        (17, 40, 33),
        (4, 16, 64),
    ] {
        let (a, b) = (
            format!("tensor<?x{m}x{k}xf32>"),
            format!("tensor<?x{k}x{n}xf32>"),
        );
        let kernel = Kernel {
            params: &[],
            operands: &[("a", &a), ("b", &b), ("x", &format!("tensor<?x{k}xf32>"))],
            scalars: &[],
            body: &format!(
                "%zero = arith.constant 0.0 : f32
                 %ec = tensor.empty(%rows) : tensor<?x{m}x{n}xf32>
                 %en = tensor.empty(%rows) : tensor<?x{n}xf32>
                 %em = tensor.empty(%rows) : tensor<?x{m}xf32>
                 %zc = linalg.fill ins(%zero : f32) outs(%ec : tensor<?x{m}x{n}xf32>) -> tensor<?x{m}x{n}xf32>
                 %zn = linalg.fill ins(%zero : f32) outs(%en : tensor<?x{n}xf32>) -> tensor<?x{n}xf32>
                 %zm = linalg.fill ins(%zero : f32) outs(%em : tensor<?x{m}xf32>) -> tensor<?x{m}xf32>
                 %p = linalg.batch_matmul ins(%a, %b : {a}, {b}) outs(%zc : tensor<?x{m}x{n}xf32>) -> tensor<?x{m}x{n}xf32>
                 %q = linalg.batch_vecmat ins(%x, %b : tensor<?x{k}xf32>, {b}) outs(%zn : tensor<?x{n}xf32>) -> tensor<?x{n}xf32>
                 %r = linalg.batch_matvec ins(%a, %x : {a}, tensor<?x{k}xf32>) outs(%zm : tensor<?x{m}xf32>) -> tensor<?x{m}xf32>
                 %xx = arith.mulf %x, %x : tensor<?x{k}xf32>
                 %e0 = tensor.empty(%rows) : tensor<?xf32>
                 %z0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<?xf32>) -> tensor<?xf32>
                 %d = linalg.reduce {{ arith.addf }} ins(%xx : tensor<?x{k}xf32>) outs(%z0 : tensor<?xf32>) dimensions = [1]
                 cfb.yield %p, %q, %r, %d : tensor<?x{m}x{n}xf32>, tensor<?x{n}xf32>, tensor<?x{m}xf32>, tensor<?xf32>"
            ),
        };
        kernel.check(&[], 1e-5, |inputs| {
            let [a, b, x] = inputs else {
                panic!("three operands")
            };
            vec![
                a.chunks(k).flat_map(|row| vecmat(row, b, n)).collect(),
                vecmat(x, b, n),
                a.chunks(k)
                    .map(|row| row.iter().zip(x).map(|(a, x)| a * x).sum())
                    .collect(),
                vec![x.iter().map(|x| x * x).sum()],
            ]
        });
    }
}

#[test]
fn softmax_and_layernorm() {
    for n in [1, 3, 28, 61, 257] {
        let t = format!("tensor<?x{n}xf32>");
        let inverse = 1.0 / n as f32;
        let kernel = Kernel {
            params: &[("g", &format!("tensor<{n}xf32>"))],
            operands: &[("x", &t)],
            scalars: &[],
            body: &format!(
                "%zero = arith.constant 0.0 : f32
                 %low = arith.constant 0xFF800000 : f32
                 %e0 = tensor.empty(%rows) : tensor<?xf32>
                 %e = tensor.empty(%rows) : {t}
                 %z0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<?xf32>) -> tensor<?xf32>
                 %l0 = linalg.fill ins(%low : f32) outs(%e0 : tensor<?xf32>) -> tensor<?xf32>
                 %m = linalg.reduce {{ arith.maximumf }} ins(%x : {t}) outs(%l0 : tensor<?xf32>) dimensions = [1]
                 %mb = linalg.broadcast ins(%m : tensor<?xf32>) outs(%e : {t}) dimensions = [1]
                 %d = arith.subf %x, %mb : {t}
                 %ex = math.exp %d : {t}
                 %s = linalg.reduce {{ arith.addf }} ins(%ex : {t}) outs(%z0 : tensor<?xf32>) dimensions = [1]
                 %sb = linalg.broadcast ins(%s : tensor<?xf32>) outs(%e : {t}) dimensions = [1]
                 %soft = arith.divf %ex, %sb : {t}
                 %inv = arith.constant {inverse:?} : f32
                 %eps = arith.constant 1.0e-5 : f32
                 %i0 = linalg.fill ins(%inv : f32) outs(%e0 : tensor<?xf32>) -> tensor<?xf32>
                 %p0 = linalg.fill ins(%eps : f32) outs(%e0 : tensor<?xf32>) -> tensor<?xf32>
                 %t = linalg.reduce {{ arith.addf }} ins(%x : {t}) outs(%z0 : tensor<?xf32>) dimensions = [1]
                 %mean = arith.mulf %t, %i0 : tensor<?xf32>
                 %meanb = linalg.broadcast ins(%mean : tensor<?xf32>) outs(%e : {t}) dimensions = [1]
                 %c = arith.subf %x, %meanb : {t}
                 %cc = arith.mulf %c, %c : {t}
                 %v = linalg.reduce {{ arith.addf }} ins(%cc : {t}) outs(%z0 : tensor<?xf32>) dimensions = [1]
                 %var = arith.mulf %v, %i0 : tensor<?xf32>
                 %vare = arith.addf %var, %p0 : tensor<?xf32>
                 %rs = math.rsqrt %vare : tensor<?xf32>
                 %rsb = linalg.broadcast ins(%rs : tensor<?xf32>) outs(%e : {t}) dimensions = [1]
                 %nrm = arith.mulf %c, %rsb : {t}
                 %gb = linalg.broadcast ins(%g : tensor<{n}xf32>) outs(%e : {t}) dimensions = [0]
                 %ln = arith.mulf %nrm, %gb : {t}
                 cfb.yield %soft, %ln : {t}, {t}"
            ),
        };
        let g = Random(5).floats(n);
        kernel.check(&[("g", &g)], 1e-4, |inputs| {
            let x = &inputs[0];
            let max = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let exp: Vec<f64> = x.iter().map(|x| (x - max).exp()).collect();
            let sum: f64 = exp.iter().sum();
            let mean = x.iter().sum::<f64>() / n as f64;
            let var = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n as f64;
            let scale = 1.0 / (var + 1e-5).sqrt();
            vec![
                exp.iter().map(|e| e / sum).collect(),
                x.iter()
                    .zip(f64s(&g))
                    .map(|(x, g)| (x - mean) * scale * g)
                    .collect(),
            ]
        });
    }
}

#[test]
fn argmax_as_a_generic_of_two_results() {
    for n in [1, 3, 28] {
        let kernel = Kernel {
            params: &[],
            operands: &[("x", &format!("tensor<?x{n}xf32>"))],
            scalars: &[],
            body: &format!(
                "%low = arith.constant 0xFF800000 : f32
                 %none = arith.constant 0 : i32
                 %ev = tensor.empty(%rows) : tensor<?xf32>
                 %ei = tensor.empty(%rows) : tensor<?xi32>
                 %v = linalg.fill ins(%low : f32) outs(%ev : tensor<?xf32>) -> tensor<?xf32>
                 %i = linalg.fill ins(%none : i32) outs(%ei : tensor<?xi32>) -> tensor<?xi32>
                 %r:2 = linalg.generic {{indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0)>], iterator_types = [\"parallel\", \"reduction\"]}}
                   ins(%x : tensor<?x{n}xf32>) outs(%v, %i : tensor<?xf32>, tensor<?xi32>) {{
                 ^bb0(%a: f32, %best: f32, %at: i32):
                   %here = linalg.index 1 : index
                   %here32 = arith.index_cast %here : index to i32
                   %more = arith.cmpf ogt, %a, %best : f32
                   %value = arith.select %more, %a, %best : f32
                   %place = arith.select %more, %here32, %at : i32
                   linalg.yield %value, %place : f32, i32
                 }} -> (tensor<?xf32>, tensor<?xi32>)
                 cfb.yield %r#1 : tensor<?xi32>"
            ),
        };
        kernel.check(&[], 0.0, |inputs| {
            let mut best = 0;
            for (at, x) in inputs[0].iter().enumerate() {
                if *x > inputs[0][best] {
                    best = at;
                }
            }
            vec![vec![best as f64]]
        });
    }
}

#[test]
fn generics_of_any_map() {
    let kernel = Kernel {
        params: &[],
        operands: &[("x", "tensor<?x6x19xf32>")],
        scalars: &[],
        body: "%zero = arith.constant 0.0 : f32
               %e = tensor.empty(%rows) : tensor<?x19xi32>
               %i = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], iterator_types = [\"parallel\", \"parallel\"]}
                 outs(%e : tensor<?x19xi32>) {
               ^bb0(%o: i32):
                 %at = linalg.index 1 : index
                 %at32 = arith.index_cast %at : index to i32
                 linalg.yield %at32 : i32
               } -> tensor<?x19xi32>
               %et = tensor.empty(%rows) : tensor<?x19x6xf32>
               %t = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = [\"parallel\", \"parallel\", \"parallel\"]}
                 ins(%x : tensor<?x6x19xf32>) outs(%et : tensor<?x19x6xf32>) {
               ^bb0(%a: f32, %o: f32):
                 %two = arith.constant 2.0 : f32
                 %b = arith.mulf %a, %two : f32
                 linalg.yield %b : f32
               } -> tensor<?x19x6xf32>
               %es = tensor.empty(%rows) : tensor<?x6xf32>
               %zs = linalg.fill ins(%zero : f32) outs(%es : tensor<?x6xf32>) -> tensor<?x6xf32>
               %s = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d2)>], iterator_types = [\"parallel\", \"reduction\", \"parallel\"]}
                 ins(%x, %t : tensor<?x6x19xf32>, tensor<?x19x6xf32>) outs(%zs : tensor<?x6xf32>) {
               ^bb0(%a: f32, %b: f32, %o: f32):
                 %p = arith.mulf %a, %b : f32
                 %n = arith.addf %o, %p : f32
                 linalg.yield %n : f32
               } -> tensor<?x6xf32>
               cfb.yield %i, %t, %s : tensor<?x19xi32>, tensor<?x19x6xf32>, tensor<?x6xf32>",
    };
    kernel.check(&[], 1e-5, |inputs| {
        let x = &inputs[0];
        vec![
            (0..19).map(f64::from).collect(),
            (0..19 * 6)
                .map(|at| 2.0 * x[at % 6 * 19 + at / 6])
                .collect(),
            x.chunks(19)
                .map(|row| row.iter().map(|x| 2.0 * x * x).sum())
                .collect(),
        ]
    });
}
