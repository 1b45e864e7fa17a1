//! Loops without folds: addresses, elements that are not floats, results of all kinds.

use super::check::Kernel;

#[test]
fn slices_transpositions_and_reshapes_are_only_addresses() {
    let kernel = Kernel {
        params: &[],
        operands: &[("x", "tensor<?x6x20xf32>")],
        scalars: &[],
        body: "%s = tensor.extract_slice %x[0, 1, 3] [%rows, 4, 5] [1, 1, 3] : tensor<?x6x20xf32> to tensor<?x4x5xf32>
               %e = tensor.empty(%rows) : tensor<?x5x4xf32>
               %t = linalg.transpose ins(%s : tensor<?x4x5xf32>) outs(%e : tensor<?x5x4xf32>) permutation = [0, 2, 1]
               %row = tensor.extract_slice %x[0, 2, 0] [%rows, 1, 20] [1, 1, 1] : tensor<?x6x20xf32> to tensor<?x20xf32>
               %m = tensor.expand_shape %row [[0], [1, 2]] output_shape [%rows, 5, 4] : tensor<?x20xf32> into tensor<?x5x4xf32>
               %a = arith.addf %t, %m : tensor<?x5x4xf32>
               %f = tensor.collapse_shape %a [[0], [1, 2]] : tensor<?x5x4xf32> into tensor<?x20xf32>
               %g = arith.mulf %f, %row : tensor<?x20xf32>
               cfb.yield %g : tensor<?x20xf32>",
    };
    kernel.check(&[], 1e-6, |inputs| {
        let x = &inputs[0];
        let result = (0..20).map(|at| {
            let (i, j) = (at / 4, at % 4);
            let sliced = x[(1 + j) * 20 + 3 + 3 * i];
            (sliced + x[2 * 20 + at]) * x[2 * 20 + at]
        });
        vec![result.collect()]
    });
}

#[test]
fn host_scalars_integers_and_booleans() {
    let kernel = Kernel {
        params: &[],
        operands: &[
            ("x", "tensor<?x19xf32>"),
            ("s", "tensor<?xf32>"),
            ("n", "tensor<?xi32>"),
            ("q", "tensor<?xi1>"),
            ("k", "tensor<?x19xi32>"),
            ("f", "tensor<?x19xi1>"),
        ],
        scalars: &["s", "n", "q"],
        body: "%e = tensor.empty(%rows) : tensor<?x19xf32>
               %ei = tensor.empty(%rows) : tensor<?x19xi32>
               %eb = tensor.empty(%rows) : tensor<?x19xi1>
               %sb = linalg.broadcast ins(%s : tensor<?xf32>) outs(%e : tensor<?x19xf32>) dimensions = [1]
               %nb = linalg.broadcast ins(%n : tensor<?xi32>) outs(%ei : tensor<?x19xi32>) dimensions = [1]
               %qb = linalg.broadcast ins(%q : tensor<?xi1>) outs(%eb : tensor<?x19xi1>) dimensions = [1]
               %m = arith.muli %k, %nb : tensor<?x19xi32>
               %more = arith.cmpf ogt, %x, %sb : tensor<?x19xf32>
               %either = arith.ori %more, %f : tensor<?x19xi1>
               %both = arith.andi %either, %qb : tensor<?x19xi1>
               %v = arith.select %both, %x, %sb : tensor<?x19xi1>, tensor<?x19xf32>
               %as = arith.sitofp %m : tensor<?x19xi32> to tensor<?x19xf32>
               %w = arith.addf %v, %as : tensor<?x19xf32>
               cfb.yield %w, %m, %both, %s : tensor<?x19xf32>, tensor<?x19xi32>, tensor<?x19xi1>, tensor<?xf32>",
    };
    kernel.check(&[], 1e-6, |inputs| {
        let [x, s, n, q, k, f] = inputs else {
            panic!("six operands")
        };
        let m: Vec<f64> = k.iter().map(|k| k * n[0]).collect();
        let both: Vec<f64> = x
            .iter()
            .zip(f)
            .map(|(x, f)| f64::from(u8::from((*x > s[0] || *f != 0.0) && q[0] != 0.0)))
            .collect();
        let w = (0..19).map(|i| if both[i] != 0.0 { x[i] } else { s[0] } + m[i]);
        vec![w.collect(), m, both.clone(), s.clone()]
    });
}

#[test]
fn results_that_nothing_computes() {
    let kernel = Kernel {
        params: &[],
        operands: &[("x", "tensor<?x5xf32>")],
        scalars: &[],
        body: "%c = arith.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
               %e = tensor.empty(%rows) : tensor<?x3xf32>
               %cb = linalg.broadcast ins(%c : tensor<3xf32>) outs(%e : tensor<?x3xf32>) dimensions = [0]
               %two = arith.constant 2.0 : f32
               %f = linalg.fill ins(%two : f32) outs(%e : tensor<?x3xf32>) -> tensor<?x3xf32>
               %n = arith.negf %x : tensor<?x5xf32>
               cfb.yield %x, %cb, %f, %n, %n : tensor<?x5xf32>, tensor<?x3xf32>, tensor<?x3xf32>, tensor<?x5xf32>, tensor<?x5xf32>",
    };
    kernel.check(&[], 0.0, |inputs| {
        let x = &inputs[0];
        let n: Vec<f64> = x.iter().map(|x| -x).collect();
        vec![x.clone(), vec![1.0, 2.0, 3.0], vec![2.0; 3], n.clone(), n]
    });
}

#[test]
fn division_of_integers_never_traps() {
    let kernel = Kernel {
        params: &[],
        operands: &[("a", "tensor<?x5xi32>"), ("b", "tensor<?x5xi32>")],
        scalars: &[],
        body: "%q = arith.divsi %a, %b : tensor<?x5xi32>
               %r = arith.remsi %a, %b : tensor<?x5xi32>
               cfb.yield %q, %r : tensor<?x5xi32>, tensor<?x5xi32>",
    };
    kernel.check(&[], 0.0, |inputs| {
        let pairs = || inputs[0].iter().zip(&inputs[1]);
        // By zero is by one: the instance's error is raised before, where the divisor is known.
        let divisor = |b: f64| if b == 0.0 { 1.0 } else { b };
        vec![
            pairs().map(|(a, b)| (a / divisor(*b)).trunc()).collect(),
            pairs().map(|(a, b)| a % divisor(*b)).collect(),
        ]
    });
}
