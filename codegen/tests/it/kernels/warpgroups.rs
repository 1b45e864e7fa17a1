//! Rows that are kept in bf16 between two products, and products of warpgroups: the same bits as with rows in `f32` that are
//! rounded by whoever reads them.

use std::collections::HashMap;

use cohort_abi::gpu::Precision;
use cohort_abi::manifest::Elem;

use super::check::Random;
use super::gpu::with_precision;
use crate::jit::{Bits, Operand};
use crate::simulator::{
    Call, How, Order, Simulator, Tiles, gpu_text_of_loops, loops_text, planned_text, ptx,
};

/// A first product whose rows have `inner` columns, multiplied by the matrices of `gates` gates with `columns` columns each, which
/// are added.
#[derive(Clone, Copy, Debug)]
struct Case {
    inner: usize,
    columns: usize,
    gates: usize,
}

const WIDTH: usize = 24;

impl Case {
    /// `Σ_g (tanh(x · u) · w)_g + Σ_c h_c`, where the second sum makes the inner row one that others read, too.
    fn text(self, reads_twice: bool) -> String {
        let Case {
            inner: m,
            columns: n,
            gates,
        } = self;
        let all = n * gates;
        let slices: String = (0..gates)
            .map(|gate| {
                let from = gate * n;
                format!(
                    "%g{gate} = tensor.extract_slice %p[0, {from}] [%rows, {n}] [1, 1] : tensor<?x{all}xf32> to tensor<?x{n}xf32>\n"
                )
            })
            .collect();
        let sums: String = (1..gates)
            .map(|gate| {
                let before = if gate == 1 {
                    "%g0".to_owned()
                } else {
                    format!("%s{}", gate - 1)
                };
                format!("%s{gate} = arith.addf {before}, %g{gate} : tensor<?x{n}xf32>\n")
            })
            .collect();
        let last = if gates == 1 {
            "%g0".to_owned()
        } else {
            format!("%s{}", gates - 1)
        };
        let (fold, last) = match reads_twice {
            true => (
                format!(
                    "%e3 = tensor.empty(%rows) : tensor<?xf32>
                     %z3 = linalg.fill ins(%zero : f32) outs(%e3 : tensor<?xf32>) -> tensor<?xf32>
                     %f = linalg.reduce {{ arith.addf }} ins(%h : tensor<?x{m}xf32>) outs(%z3 : tensor<?xf32>) dimensions = [1]
                     %e4 = tensor.empty(%rows) : tensor<?x{n}xf32>
                     %b = linalg.broadcast ins(%f : tensor<?xf32>) outs(%e4 : tensor<?x{n}xf32>) dimensions = [1]
                     %last = arith.addf {last}, %b : tensor<?x{n}xf32>"
                ),
                "%last".to_owned(),
            ),
            false => (String::new(), last),
        };
        format!(
            "ml_program.global private @u_{m}(#ml_program.extern<tensor<{WIDTH}x{m}xf32>>) : tensor<{WIDTH}x{m}xf32>
             ml_program.global private @w_{all}(#ml_program.extern<tensor<{m}x{all}xf32>>) : tensor<{m}x{all}xf32>
             cfb.kernel @k {{
             ^bb0(%rows: index, %x: tensor<?x{WIDTH}xf32>):
               %u = ml_program.global_load_const @u_{m} : tensor<{WIDTH}x{m}xf32>
               %w = ml_program.global_load_const @w_{all} : tensor<{m}x{all}xf32>
               %zero = arith.constant 0.0 : f32
               %e = tensor.empty(%rows) : tensor<?x{m}xf32>
               %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x{m}xf32>) -> tensor<?x{m}xf32>
               %q = linalg.matmul ins(%x, %u : tensor<?x{WIDTH}xf32>, tensor<{WIDTH}x{m}xf32>) outs(%z : tensor<?x{m}xf32>) -> tensor<?x{m}xf32>
               %h = math.tanh %q : tensor<?x{m}xf32>
               %e2 = tensor.empty(%rows) : tensor<?x{all}xf32>
               %z2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<?x{all}xf32>) -> tensor<?x{all}xf32>
               %p = linalg.matmul ins(%h, %w : tensor<?x{m}xf32>, tensor<{m}x{all}xf32>) outs(%z2 : tensor<?x{all}xf32>) -> tensor<?x{all}xf32>
               {slices}{sums}{fold}
               cfb.yield {last} : tensor<?x{n}xf32>
             }}"
        )
    }

    fn params(self) -> Vec<(String, Bits)> {
        let mut random = Random(self.inner as u64);
        let all = self.columns * self.gates;
        vec![
            (
                format!("u_{}", self.inner),
                random.floats(WIDTH * self.inner),
            ),
            (format!("w_{all}"), random.floats(self.inner * all)),
        ]
    }

    fn run(self, simulator: &Simulator, rows: usize, order: Order, tiles: Tiles) -> Bits {
        let run = |call: &Call<'_>| simulator.run(call, rows, How { order, tiles });
        self.call(rows, run).remove(0)
    }

    /// The same of the functions for warpgroups in PTX, interpreted.
    fn interpret(self, simulator: &Simulator, ptx: &str, rows: usize) -> Result<Bits, String> {
        let ptx = cohort_ptx::Module::parse(ptx).map_err(|problem| problem.to_string())?;
        let interpret = |call: &Call<'_>| simulator.interpret(&ptx, call, rows, Tiles::Warpgroups);
        Ok(self.call(rows, interpret)?.remove(0))
    }

    fn call<R>(self, rows: usize, run: impl FnOnce(&Call<'_>) -> R) -> R {
        let params = self.params();
        let params: HashMap<&str, Bits> = (params.iter())
            .map(|(name, bits)| (name.as_str(), bits.clone()))
            .collect();
        let operand = Operand {
            pool: Random(3).floats(400 * WIDTH),
            index: (0..rows as u32).map(|row| row * 7 % 400).collect(),
            ..Operand::default()
        };
        let call = Call {
            kernel: "k",
            params: &params,
            operands: &[operand],
            types: &[Some((Elem::F32, WIDTH))],
            results: &[(Elem::F32, self.columns)],
        };
        run(&call)
    }
}

fn simulator(loops: &str) -> Simulator {
    Simulator::new(&gpu_text_of_loops(loops).expect("functions"))
}

/// The loops with tiles both of whose sides come to shared memory step by step, as those do whose weights have no room there.
fn streamed(loops: &str, case: Case) -> String {
    let held = |line: &str| line.contains("warpgroups [") && line.contains(" held ");
    let streamed = |line: &str| {
        let (before, rest) = line.split_once("warpgroups [").expect("a size");
        let (_, behind) = rest.split_once(']').expect("its end");
        let columns = 256 / case.gates / 8 * 8;
        let behind = behind.replace(" held ", " ");
        format!("{before}warpgroups [3, {columns}, 3]{behind}")
    };
    let line = |line: &str| match held(line) {
        true => streamed(line) + "\n",
        false => format!("{line}\n"),
    };
    assert!(loops.lines().any(held), "{loops}");
    loops.lines().map(line).collect()
}

/// Columns of whole blocks and of others, in fours and one by one; one gate and more.
const CASES: [Case; 5] = [
    Case {
        inner: 64,
        columns: 256,
        gates: 1,
    },
    Case {
        inner: 128,
        columns: 300,
        gates: 1,
    },
    Case {
        inner: 64,
        columns: 257,
        gates: 1,
    },
    Case {
        inner: 192,
        columns: 128,
        gates: 2,
    },
    Case {
        inner: 64,
        columns: 52,
        gates: 5,
    },
];

#[test]
fn rows_in_bf16_and_warpgroups_give_the_same_bits() {
    for (number, case) in CASES.into_iter().enumerate() {
        let text = with_precision(&case.text(number % 2 == 1), Precision::Bf16);
        let kept = loops_text(&text).expect("loops");
        assert!(
            kept.contains("scratch bf16") && kept.contains("warpgroups ["),
            "{kept}"
        );
        let plain = simulator(&planned_text(&text).expect("loops"));
        let streamed = simulator(&streamed(&kept, case));
        let kept = simulator(&kept);
        let all = case.run(&plain, 600, Order::Forward, Tiles::ByRows);
        for tiles in [Tiles::ByRows, Tiles::Largest, Tiles::Warpgroups] {
            assert_eq!(
                case.run(&kept, 600, Order::Backward, tiles),
                all,
                "{case:?} {tiles:?}"
            );
        }
        for rows in [1, 3, 61, 193, 257] {
            for simulator in [&kept, &streamed] {
                let some = case.run(simulator, rows, Order::Shuffled, Tiles::Warpgroups);
                assert_eq!(some, all[..rows * case.columns], "{case:?}, {rows} rows");
            }
        }
    }
}

/// The text for cards that have warpgroups gives these bits, too, of more rows than a block has.
#[test]
fn ptx_of_warpgroups_gives_the_same_bits() {
    for case in [CASES[0], CASES[2], CASES[4]] {
        let text = with_precision(&case.text(false), Precision::Bf16);
        let held = loops_text(&text).expect("loops");
        for (loops, rows) in [(&held, 300), (&streamed(&held, case), 200)] {
            let gpu = gpu_text_of_loops(loops).expect("functions");
            let simulator = Simulator::new(&gpu);
            let ptx = ptx(&gpu, "sm_90a");
            assert!(ptx.contains("wgmma.mma_async"));
            let right = case.run(&simulator, rows, Order::Forward, Tiles::ByRows);
            let found = case.interpret(&simulator, &ptx, rows);
            assert_eq!(found.as_ref(), Ok(&right), "{case:?}");
        }
    }
}

/// Code for other cards has no such function, and shared memory for none.
#[test]
fn other_cards_have_no_function_for_warpgroups() {
    let text = with_precision(&CASES[0].text(false), Precision::Bf16);
    let gpu = gpu_text_of_loops(&loops_text(&text).expect("loops")).expect("functions");
    for (architecture, is_there) in [
        ("sm_80", false),
        ("sm_90", false),
        ("sm_90a", true),
        ("sm_100", false),
    ] {
        let text = ptx(&gpu, architecture);
        assert_eq!(text.contains("warpgroups"), is_there, "{architecture}");
    }
}

/// Without any one of what makes copies, products and what reads their sums wait for each other, or with it in another place, the
/// interpreter has an error or other bits.
#[test]
fn a_missing_fence_or_wait_of_warpgroups_is_seen() {
    let case = Case {
        inner: 320,
        columns: 256,
        gates: 1,
    };
    let text = with_precision(&case.text(false), Precision::Bf16);
    let held = loops_text(&text).expect("loops");
    assert_eq!(
        unseen(case, &streamed(&held, case), 70),
        Vec::<String>::new()
    );
    assert_eq!(unseen(case, &held, 520), Vec::<String>::new());
}

/// What synchronises threads in the function for warpgroups, and can be left out unseen.
fn unseen(case: Case, loops: &str, rows: usize) -> Vec<String> {
    let gpu = gpu_text_of_loops(loops).expect("functions");
    let simulator = Simulator::new(&gpu);
    let ptx = ptx(&gpu, "sm_90a");
    let begin = ptx.find("k$1_warpgroups(").expect("the function");
    let (before, function) = ptx.split_at(begin);
    let right = case.run(&simulator, rows, Order::Forward, Tiles::ByRows);
    assert_eq!(case.interpret(&simulator, &ptx, rows).as_ref(), Ok(&right));
    let lines: Vec<&str> = function.lines().collect();
    let synchronises = |line: &str| {
        [
            "bar.sync",
            "fence.proxy",
            "wgmma.fence",
            "wgmma.commit",
            "wgmma.wait",
            "cp.async.wait_group",
        ]
        .into_iter()
        .any(|name| line.contains(name))
    };
    let places: Vec<usize> = (0..lines.len())
        .filter(|at| synchronises(lines[*at]))
        .collect();
    assert!(places.len() >= 8, "{} places", places.len());
    let is_unseen = |at: &usize| {
        let mut changed = lines.clone();
        changed.remove(*at);
        // The text ends behind a brace of another function's or its own.
        let changed = format!("{before}{}\n", changed.join("\n"));
        cohort_ptx::Module::parse(&changed).expect("PTX");
        case.interpret(&simulator, &changed, rows).as_ref() == Ok(&right)
    };
    let places = places.into_iter().filter(is_unseen);
    let words = |at: usize| lines[at].split_whitespace().collect::<Vec<_>>().join(" ");
    places.map(words).collect()
}
