//! Kernels over calls of every length: reductions, values of a whole call, transpositions, products.

use super::batches::{CallKernel, ZEROS, matmul, several, single, softmax};

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
