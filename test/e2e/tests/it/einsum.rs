//! Products of axes by letters are what the same arithmetic written out gives.

use cohort_e2e::instances::{Instances, Shape};
use cohort_e2e::records::{Closeness, compare_records};
use cohort_e2e::{Model, Rng};

use crate::models::to_text;

/// Every element of the output is the difference of two ways to say the same.
#[test]
fn axes_by_letters_are_multiplied_and_added_up() {
    let text = r#"dim I, J, K
        param w: f32[I, J, K]
        fn most(a: f32[p]) -> f32 { max(concat(abs(a), zeros([1]))) }
        fn most(a: f32[p, q]) -> f32 { sum(sum(abs(a), axis = 1)) }
        fn most(a: f32[p, q, r]) -> f32 { sum(sum(sum(abs(a), axis = 2), axis = 1)) }
        fn main(x: f32[I, J], y: f32[J, K], z: f32[n, I, J], v: f32[J], k: i32[I, J], q: f32[n, J]) -> [f32] {
          let z4 = reshape(z, [n, I, J, 1]);
          let zw = sum(z4 * w, axis = 2);
          [most(einsum("ij,jk->ik", x, y) - x @ y),
           most(einsum("ij, jk -> ki", x, y) - transpose(x @ y)),
           most(einsum("ij,j->i", x, v) - x @ v),
           abs(einsum("ij,ij->", x, x) - sum(x * x)),
           most(einsum("i,j->ji", x[.., 0], v) - transpose(reshape(x[.., 0], [I, 1]) * v)),
           most(f32(einsum("ij,ij->i", k, k) - sum(k * k, axis = 1))),
           most(einsum("nij,jk->nik", z, y) - sum(z4 * y, axis = 2)),
           most(einsum("nij,ij->nj", z, x) - sum(z * x, axis = 1)),
           most(einsum("nij,ijk->nik", z, w) - zw),
           most(einsum("nij,ijk->nk", z, w) - sum(zw, axis = 1)),
           most(einsum("nij,nj->in", z, q) - transpose(sum(z * reshape(q, [n, 1, J]), axis = 2)))]
        }"#;
    let dims = [("I", 3), ("J", 5), ("K", 28)];
    let mut rng = Rng::new(91);
    let model = Model::from_text(text, &dims, &mut rng);
    let mut instances = Instances::new(&model.program, 5);
    let lines: Vec<_> = [0, 1, 3, 28, 61]
        .into_iter()
        .enumerate()
        .map(|(index, length)| {
            instances.lengths_from(&[length]);
            instances.instance(&format!("i{index}"), Shape::Smallest, &mut rng)
        })
        .collect();
    let input = to_text(&lines);
    let expected = model.oracle_lines(&input);
    let compiled = model.compile(&[]);
    let batched = compiled.batch_run().run(&input).expect_code(0).lines();
    for arguments in [&["--no-batch"][..], &["--batch", "2", "--threads", "2"]] {
        let other = compiled.batch_run().args(arguments).run(&input);
        assert_eq!(batched, other.expect_code(0).lines(), "{arguments:?}");
    }
    let simulated = model.batch_run().args(&["--device", "gpu-sim"]).run(&input);
    for found in [&batched, &simulated.expect_code(0).lines()] {
        compare_records(&expected, found, Closeness::EachNumber(1e-4))
            .unwrap_or_else(|message| panic!("{message}\nin\n{text}"));
        for line in found {
            let record: serde_json::Value = serde_json::from_str(line).expect("a record");
            let differences = record["output"].as_array().expect("an array of numbers");
            assert_eq!(differences.len(), 11, "{line}");
            for difference in differences {
                let difference = difference.as_f64();
                assert!(difference.is_some_and(|x| x < 2e-2), "{line}\nin\n{text}");
            }
        }
    }
}
