//! Reductions over lists, of which each row has its own: empty ones, short ones, long ones.

use super::check::{Kernel, Random, f64s, vecmat};

/// Folds the rows of a list, `elements` each.
fn fold(list: &[f64], start: Vec<f64>, combine: impl Fn(f64, f64) -> f64) -> Vec<f64> {
    list.chunks(start.len()).fold(start.clone(), |sum, row| {
        sum.iter().zip(row).map(|(a, b)| combine(*a, *b)).collect()
    })
}

#[test]
fn sums_of_any_shape() {
    for shape in [
        "", "1x", "3x", "16x", "28x", "64x", "100x", "257x", "3x5x", "2x31x",
    ] {
        let elements = shape
            .split_terminator('x')
            .map(|n| n.parse::<usize>().unwrap())
            .product();
        let (row, t) = (
            format!("tensor<{shape}f32>"),
            format!("tensor<?x{shape}f32>"),
        );
        let kernel = Kernel {
            params: &[],
            operands: &[("s", &t), ("l", &format!("!cfb.rows<{row}>"))],
            scalars: &[],
            body: &format!(
                "%zero = arith.constant 0.0 : f32
                 %e = tensor.empty(%rows) : {t}
                 %z = linalg.fill ins(%zero : f32) outs(%e : {t}) -> {t}
                 %d = arith.addf %s, %s : {t}
                 %a = cfb.reduce_rows %l init(%z) : (!cfb.rows<{row}>, {t}) -> {t} {{
                 ^bb0(%x: f32, %y: f32):
                   %n = arith.addf %x, %y : f32
                   cfb.yield %n : f32
                 }}
                 %b = cfb.reduce_rows %l init(%d) : (!cfb.rows<{row}>, {t}) -> {t} {{
                 ^bb0(%x: f32, %y: f32):
                   %half = arith.constant 0.5 : f32
                   %h = arith.mulf %x, %half : f32
                   %n = arith.subf %h, %y : f32
                   cfb.yield %n : f32
                 }}
                 cfb.yield %a, %b : {t}, {t}"
            ),
        };
        kernel.check(&[], 1e-4, |inputs| {
            let start = inputs[0].iter().map(|s| 2.0 * s).collect();
            vec![
                fold(&inputs[1], vec![0.0; elements], |a, b| a + b),
                fold(&inputs[1], start, |a, b| 0.5 * a - b),
            ]
        });
    }
}

#[test]
fn integers_and_booleans() {
    let (t, b) = ("tensor<?x19xi32>", "tensor<?x5xi1>");
    let kernel = Kernel {
        params: &[],
        operands: &[
            ("l", "!cfb.rows<tensor<19xi32>>"),
            ("m", "!cfb.rows<tensor<5xi1>>"),
            ("s", b),
        ],
        scalars: &[],
        body: &format!(
            "%low = arith.constant -7 : i32
             %e = tensor.empty(%rows) : {t}
             %z = linalg.fill ins(%low : i32) outs(%e : {t}) -> {t}
             %a = cfb.reduce_rows %l init(%z) : (!cfb.rows<tensor<19xi32>>, {t}) -> {t} {{
             ^bb0(%x: i32, %y: i32):
               %more = arith.cmpi sgt, %y, %x : i32
               %n = arith.select %more, %y, %x : i32
               cfb.yield %n : i32
             }}
             %b = cfb.reduce_rows %m init(%s) : (!cfb.rows<tensor<5xi1>>, {b}) -> {b} {{
             ^bb0(%x: i1, %y: i1):
               %n = arith.xori %x, %y : i1
               cfb.yield %n : i1
             }}
             %q = cfb.reduce_rows %l init(%z) : (!cfb.rows<tensor<19xi32>>, {t}) -> {t} {{
             ^bb0(%x: i32, %y: i32):
               // A divisor of zero gives something, and no other row is harmed.
               %d = arith.divsi %x, %y : i32
               %o = arith.muli %d, %y : i32
               %n = arith.subi %o, %o : i32
               cfb.yield %n : i32
             }}
             cfb.yield %a, %b, %q : {t}, {b}, {t}"
        ),
    };
    kernel.check(&[], 0.0, |inputs| {
        let end = if inputs[0].is_empty() { -7.0 } else { 0.0 };
        vec![
            fold(&inputs[0], vec![-7.0; 19], f64::max),
            fold(&inputs[1], inputs[2].clone(), |a, b| f64::from(a != b)),
            vec![end; 19],
        ]
    });
}

/// A node of a child-sum tree: two lists, products and gates in one kernel.
#[test]
fn sums_that_feed_a_product() {
    for n in [1, 22, 61] {
        let (t, list) = (
            format!("tensor<?x{n}xf32>"),
            format!("!cfb.rows<tensor<{n}xf32>>"),
        );
        let w = format!("w_{n}");
        let sum = "{\n^bb0(%a: f32, %b: f32):\n%n = arith.addf %a, %b : f32\ncfb.yield %n : f32\n}";
        let kernel = Kernel {
            params: &[(&w, &format!("tensor<{n}x{n}xf32>"))],
            operands: &[("h", &list), ("c", &list), ("x", &t)],
            scalars: &[],
            body: &format!(
                "%zero = arith.constant 0.0 : f32
                 %e = tensor.empty(%rows) : {t}
                 %z = linalg.fill ins(%zero : f32) outs(%e : {t}) -> {t}
                 %hs = cfb.reduce_rows %h init(%z) : ({list}, {t}) -> {t} {sum}
                 %cs = cfb.reduce_rows %c init(%z) : ({list}, {t}) -> {t} {sum}
                 %p = linalg.matmul ins(%hs, %{w} : {t}, tensor<{n}x{n}xf32>) outs(%x : {t}) -> {t}
                 %g = math.tanh %p : {t}
                 %r = arith.addf %g, %cs : {t}
                 cfb.yield %r : {t}"
            ),
        };
        let bits = Random(3).floats(n * n);
        kernel.check(&[(&w, &bits)], 2e-3, |inputs| {
            let hs = fold(&inputs[0], vec![0.0; n], |a, b| a + b);
            let cs = fold(&inputs[1], vec![0.0; n], |a, b| a + b);
            let product = vecmat(&hs, &f64s(&bits), n);
            let row = product.iter().zip(&inputs[2]).zip(cs);
            vec![row.map(|((p, x), c)| (p + x).tanh() + c).collect()]
        });
    }
}
