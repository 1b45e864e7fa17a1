//! Whole functions with products of warpgroups: their sums, and what is told of those that lack something.

use crate::instruction::Shape;
use crate::mma::{Lane, TensorCores, WARP, multiply};
use crate::{Launch, Memory, Module, Region};

/// Rows that a warpgroup multiplies, and bytes of a row in a tile.
const ROWS: usize = 64;
const ROW: usize = 128;

/// Elements of a row.
const K: usize = ROW / 2;

/// Where the arguments lie.
const IMAGE: u64 = 0x10_0000;
const SUMS: u64 = 0x20_0000;

const MODELS: [TensorCores; 3] = [
    TensorCores::Nearest,
    TensorCores::Ampere,
    TensorCores::Hopper,
];

const N8: &str = "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16";
const N64: &str = "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16";
const N128: &str = "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16";
const N256: &str = "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16";

fn forward(count: usize, _: bool) -> Vec<usize> {
    (0..count).collect()
}

fn backward(count: usize, _: bool) -> Vec<usize> {
    (0..count).rev().collect()
}

fn in_turns(count: usize, is_turned: bool) -> Vec<usize> {
    match is_turned {
        true => forward(count, true),
        false => backward(count, false),
    }
}

/// Numbers of differing exponents, in bf16.
fn numbers(count: usize, first: usize) -> Vec<f32> {
    let number = |at: usize| {
        let hash = (first + at).wrapping_mul(2_654_435_761) >> 7;
        let value = (hash % 2003) as f32 / 1000.0 - 1.0;
        let scaled = value * 2.0_f32.powi((hash % 13) as i32 - 6);
        f32::from_bits(scaled.to_bits() & 0xffff_0000)
    };
    (0..count).map(number).collect()
}

/// Rows of 64 elements as tiles.
fn tiles(rows: &[f32]) -> Vec<u8> {
    let mut bytes = vec![0; rows.len() / K * ROW];
    for (at, value) in rows.iter().enumerate() {
        let (row, k) = (at / K, at % K);
        let place = row * ROW + ((k / 8) ^ (row % 8)) * 16 + k % 8 * 2;
        bytes[place..place + 2].copy_from_slice(&value.to_bits().to_le_bytes()[2..]);
    }
    bytes
}

/// A left factor of rows and a right one of columns, each of 64 elements.
struct Factors {
    left: Vec<f32>,
    right: Vec<f32>,
}

impl Factors {
    fn new(rows: usize, columns: usize, first: usize) -> Factors {
        Factors {
            left: numbers(rows * K, first),
            right: numbers(columns * K, first + 70_001),
        }
    }

    /// What threads copy to shared memory, 16 bytes each at a time.
    fn image(&self, threads: usize) -> Vec<u8> {
        let mut bytes = [tiles(&self.left), tiles(&self.right)].concat();
        bytes.resize(bytes.len().next_multiple_of(16 * threads), 0);
        bytes
    }

    fn columns(&self) -> usize {
        self.right.len() / K
    }

    /// Rows of sums with the products of `mma.sync` over `steps` times 16 of k.
    fn add_with_mma(&self, cores: TensorCores, sums: &mut [f32], steps: usize) {
        let columns = self.columns();
        let pair = |of: &[f32], row: usize, k: usize| {
            let bits = |k: usize| of[row * K + k].to_bits();
            bits(k) >> 16 | bits(k + 1) & 0xffff_0000
        };
        for (first, column) in (0..self.left.len() / K)
            .step_by(16)
            .flat_map(|row| (0..columns).step_by(8).map(move |column| (row, column)))
        {
            for step in 0..steps {
                let mut lanes = [Lane::default(); WARP];
                let places = |lane: usize| {
                    [(0, 0), (0, 1), (8, 0), (8, 1)].map(|(row, next)| {
                        (first + lane / 4 + row) * columns + column + lane % 4 * 2 + next
                    })
                };
                for (lane, own) in lanes.iter_mut().enumerate() {
                    let (row, k) = (first + lane / 4, step * 16 + lane % 4 * 2);
                    let left = |row, k| pair(&self.left, row, k);
                    own.left = [
                        left(row, k),
                        left(row + 8, k),
                        left(row, k + 8),
                        left(row + 8, k + 8),
                    ];
                    let right = |k| pair(&self.right, column + lane / 4, k);
                    own.right = [right(k), right(k + 8)];
                    own.sums = places(lane).map(|place| sums[place].to_bits());
                }
                multiply(Shape::Bf16, cores, &mut lanes);
                for (lane, own) in lanes.iter().enumerate() {
                    for (place, sum) in places(lane).into_iter().zip(own.sums) {
                        sums[place] = f32::from_bits(sum);
                    }
                }
            }
        }
    }

    /// The same by rows and columns, every 16 of k rounded once.
    fn add(&self, sums: &mut [f32], steps: usize) {
        let columns = self.columns();
        for (place, sum) in sums.iter_mut().enumerate() {
            let row = &self.left[place / columns * K..][..16 * steps];
            let column = &self.right[place % columns * K..][..16 * steps];
            for (row, column) in row.chunks(16).zip(column.chunks(16)) {
                let products = row.iter().zip(column);
                let products = products.map(|(a, b)| f64::from(*a) * f64::from(*b));
                *sum = products.fold(f64::from(*sum), |sum, product| sum + product) as f32;
            }
        }
    }
}

/// How often, and in which order, a text is run.
#[derive(Clone, Copy)]
struct Way {
    threads: u32,
    cores: TensorCores,
    order: fn(usize, bool) -> Vec<usize>,
}

const WAY: Way = Way {
    threads: 128,
    cores: TensorCores::Nearest,
    order: forward,
};

/// The rows of sums that a text computes.
fn run(text: &str, image: &[u8], columns: usize, way: Way) -> Result<Vec<f32>, String> {
    let module = Module::parse(text).map_err(|error| error.to_string())?;
    let mut image = image.to_vec();
    let mut sums = vec![0xff; way.threads as usize * columns / 2 * 4];
    let writable = sums.len();
    let region = |address, bytes, writable| Region {
        address,
        bytes,
        writable,
    };
    let mut memory = Memory::new(vec![
        region(IMAGE, &mut image[..], 0),
        region(SUMS, &mut sums[..], writable),
    ]);
    let launch = Launch {
        grid: (1, 1),
        threads: way.threads,
        dynamic_shared_bytes: 0,
        is_together: false,
        blocks_of_cluster: 1,
        poison: 0xff,
        order: way.order,
        tensor_cores: way.cores,
    };
    let done = module.run("f", &[IMAGE, SUMS], &launch, &mut memory);
    done.map_err(|error| error.to_string())?;
    // As the instruction set places them: a warp has 16 rows, and a thread two neighbours of every eight columns, in
    // two rows.
    let mut rows = vec![0.0; writable / 4];
    for (at, word) in sums.chunks_exact(4).enumerate() {
        let (thread, number) = (at / (columns / 2), at % (columns / 2));
        let row = thread / 32 * 16 + thread % 32 / 4 + (number >> 1 & 1) * 8;
        let column = (number >> 2) * 8 + thread % 4 * 2 + (number & 1);
        rows[row * columns + column] = f32::from_le_bytes([word[0], word[1], word[2], word[3]]);
    }
    Ok(rows)
}

fn registers(columns: usize) -> String {
    let all: Vec<String> = (0..columns / 2)
        .map(|number| format!("%d{number}"))
        .collect();
    format!("{{{}}}", all.join(", "))
}

/// A product as the compiler writes it, whose factors' descriptors are in `%rd7` and `%rd8`.
fn product(opcode: &str, columns: usize, is_added: u32) -> String {
    let sums = registers(columns);
    format!(
        "// begin inline asm\n{{\n.reg .pred p;\nsetp.ne.b32 p, {is_added}, 0;\n\
         {opcode} {sums}, %rd7, %rd8, p, 1,  1, 0,  0;\n}}\n\n// end inline asm\n"
    )
}

fn head(columns: usize, shared: usize) -> String {
    format!(
        ".version 8.0\n.target sm_90a\n.address_size 64\n\
         .visible .entry f(.param .u64 f_0, .param .u64 f_1)\n{{\n\
         .reg .pred %p<4>; .reg .b32 %r<12>; .reg .b64 %rd<20>; .reg .b32 %d<{}>;\n\
         .shared .align 1024 .b8 s[{shared}];\n\
         ld.param.b64 %rd1, [f_0]; ld.param.b64 %rd2, [f_1]; mov.u32 %r1, %tid.x;\n\
         mul.wide.u32 %rd3, %r1, 16; add.s64 %rd4, %rd1, %rd3; mov.b64 %rd5, s; add.s64 %rd6, %rd5, %rd3;\n",
        columns / 2 + 4
    )
}

/// Each thread stores its sums.
fn stores(columns: usize) -> String {
    let mut text = format!(
        "mul.wide.u32 %rd9, %r1, {}; add.s64 %rd9, %rd2, %rd9;\n",
        columns * 2
    );
    for number in 0..columns / 2 {
        text += &format!("st.global.b32 [%rd9+{}], %d{number};\n", 4 * number);
    }
    text
}

/// A function whose threads copy an image of shared memory there, and whose warpgroups multiply 64 rows each with the
/// columns behind all rows, over `steps` times 16 of k.
fn one(opcode: &str, columns: usize, threads: usize, (steps, is_added): (usize, u32)) -> String {
    let left = threads / 2 * ROW;
    let bytes = (left + columns * ROW).next_multiple_of(16 * threads);
    let mut text = head(columns, bytes);
    for at in (0..bytes).step_by(16 * threads) {
        text += &format!(
            "ld.global.v4.b32 {{%r4, %r5, %r6, %r7}}, [%rd4+{at}];\n\
             st.shared.v4.b32 [%rd6+{at}], {{%r4, %r5, %r6, %r7}};\n"
        );
    }
    text += &format!(
        "fence.proxy.async.shared::cta;\nbar.sync 0;\n\
         shr.u64 %rd7, %rd5, 4; or.b64 %rd7, %rd7, 0x4000004000000000; add.s64 %rd8, %rd7, {};\n\
         shr.u32 %r2, %r1, 7; mul.wide.u32 %rd9, %r2, 512; add.s64 %rd7, %rd7, %rd9;\n",
        left / 16
    );
    for number in 0..columns / 2 {
        text += &format!("mov.b32 %d{number}, 0f3F000000;\n");
    }
    text += "wgmma.fence.sync.aligned;\n";
    for step in 0..steps {
        let is_added = if step == 0 { is_added } else { 1 };
        text += &product(opcode, columns, is_added);
        text += "add.s64 %rd7, %rd7, 2; add.s64 %rd8, %rd8, 2;\n";
    }
    text += "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n";
    format!("{text}{}$L_end:\nret;\n}}\n", stores(columns))
}

#[test]
fn sums_are_those_of_the_factors_and_of_mma() {
    for (opcode, columns, threads, steps) in [
        (N8, 8, 128, 1),
        (N64, 64, 128, 1),
        (N64, 64, 256, 4),
        (N128, 128, 128, 1),
        (N256, 256, 128, 1),
    ] {
        let text = one(opcode, columns, threads, (steps, 1));
        let factors = Factors::new(threads / 2, columns, 17 * columns);
        let image = factors.image(threads);
        let halves = vec![0.5; threads / 2 * columns];
        let mut found = Vec::new();
        for cores in MODELS {
            let way = Way {
                threads: threads as u32,
                cores,
                order: in_turns,
            };
            let sums = run(&text, &image, columns, way).unwrap();
            let mut expected = halves.clone();
            factors.add_with_mma(cores, &mut expected, steps);
            assert!(sums == expected, "{opcode} {cores:?}");
            found.push(sums);
        }
        let mut direct = halves;
        factors.add(&mut direct, steps);
        assert!(found[0] == direct, "{opcode}");
        // The models differ, so something was compared.
        assert!(found[0] != found[1] && found[1] != found[2], "{opcode}");
    }
}

#[test]
fn a_product_may_replace_the_sums() {
    let text = one(N8, 8, 128, (2, 0));
    let factors = Factors::new(ROWS, 8, 5);
    let sums = run(&text, &factors.image(128), 8, WAY).unwrap();
    let mut expected = vec![0.0; ROWS * 8];
    factors.add(&mut expected, 2);
    assert_eq!(sums, expected);
}

/// The right text, of one product.
fn right() -> String {
    one(N8, 8, 128, (1, 1))
}

/// What is wrong with the right text where something of it is replaced; the number of the product's line is left out.
fn refused_with(changes: &[(&str, &str)], way: Way) -> String {
    let mut text = right();
    for (from, to) in changes {
        assert_eq!(text.matches(from).count(), 1, "{from} in {text}");
        text = text.replace(from, to);
    }
    let image = Factors::new(ROWS, 8, 5).image(128);
    let line = 1 + text
        .lines()
        .take_while(|line| !line.starts_with("wgmma.mma_async"))
        .count();
    match run(&text, &image, 8, way) {
        Ok(_) => panic!("it ran: {text}"),
        Err(problem) => problem.replace(&format!("line {line} "), "its line "),
    }
}

/// Each change is told, in any order of threads.
fn are_refused(cases: &[(&[(&str, &str)], &str)]) {
    for (changes, message) in cases {
        for order in [forward, backward, in_turns] {
            let problem = refused_with(changes, Way { order, ..WAY });
            assert!(problem.contains(message), "{changes:?}: {problem}");
        }
    }
}

const FENCE: &str = "wgmma.fence.sync.aligned;";
const COMMIT: &str = "wgmma.commit_group.sync.aligned;";
const WAIT: &str = "wgmma.wait_group.sync.aligned 0;";
const PROXY_FENCE: &str = "fence.proxy.async.shared::cta;";
const BARRIER: &str = "bar.sync 0;";
const STORE: &str = "st.global.b32 [%rd9+0], %d0;";

/// Behind what is there.
fn with(before: &str, behind: &str) -> String {
    format!("{before} {behind}")
}

#[test]
fn the_right_text_runs_in_any_order() {
    let factors = Factors::new(ROWS, 8, 5);
    let mut expected = vec![0.5; ROWS * 8];
    factors.add(&mut expected, 1);
    for order in [forward, backward, in_turns] {
        let sums = run(&right(), &factors.image(128), 8, Way { order, ..WAY });
        assert_eq!(sums.unwrap(), expected);
    }
}

#[test]
fn registers_of_a_product_are_left_alone_until_it_is_waited_for() {
    let read = with(COMMIT, "mov.b32 %r7, %d2;");
    let stored = with(COMMIT, "st.shared.v2.b32 [s+8], {%r1, %d3};");
    let written = with(COMMIT, "ld.global.b32 %d1, [%rd1];");
    let guarded = with(COMMIT, "setp.eq.b32 %p1, %r1, 77; @%p1 mov.b32 %d1, 0;");
    let skipped = "st.global.b32 [%rd9+0], %r1;";
    let (of_2, of_0) = (
        "reads `%d2`, to which the product of its line adds",
        "reads `%d0`, to",
    );
    are_refused(&[
        (&[(COMMIT, &read)], of_2),
        (
            &[(COMMIT, &stored)],
            "reads `%d3`, to which the product of its line adds that was not",
        ),
        (
            &[(COMMIT, &written)],
            "writes `%d1`, to which the product of its line adds",
        ),
        (
            &[(COMMIT, &guarded)],
            "thread 77: writes `%d1`, to which the product of its line",
        ),
        (&[(WAIT, "wgmma.wait_group.sync.aligned 1;")], of_0),
        (&[(WAIT, "")], of_0),
        (&[(COMMIT, "")], of_0),
        (&[(COMMIT, ""), (WAIT, &with(WAIT, COMMIT))], of_0),
        (&[(WAIT, ""), (STORE, skipped)], "reads `%d1`, to"),
    ]);
}

#[test]
fn products_that_are_pending_at_the_end_are_told() {
    let end = "ret; $L_more:";
    are_refused(&[
        (
            &[(WAIT, end)],
            "ends, and the product of its line was not waited for",
        ),
        (
            &[(COMMIT, ""), (WAIT, &with(WAIT, end))],
            "ends, and the product of its line was not committed",
        ),
    ]);
}

#[test]
fn accesses_before_a_product_are_fenced() {
    let mine = format!("{FENCE} mov.b32 %d3, 0;");
    let read = format!("{FENCE} mov.b32 %r7, %d2;");
    // A product with as many columns needs no fence, but behind an access.
    let again = |between: &str| format!("{WAIT} {between} {} {COMMIT} {WAIT}", product(N8, 8, 1));
    let accessed = again("mov.b32 %r7, %d2;");
    let wider = product(
        "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16",
        16,
        1,
    );
    let wider = format!("{WAIT} {wider} {COMMIT} {WAIT}");
    are_refused(&[
        (&[(FENCE, "")], "adds to `%d0` without a `wgmma.fence`"),
        (
            &[(FENCE, &mine)],
            "adds to `%d3` without a `wgmma.fence` behind its last access",
        ),
        (
            &[(FENCE, &read)],
            "adds to `%d2` without a `wgmma.fence` behind its last access",
        ),
        (
            &[(WAIT, &accessed)],
            "adds to `%d2` without a `wgmma.fence`",
        ),
        (
            &[(WAIT, &wider), (".b32 %d<8>", ".b32 %d<12>")],
            "adds to `%d0` without a",
        ),
    ]);
    let image = Factors::new(ROWS, 8, 5).image(128);
    for between in ["", "mov.b32 %r7, %d2; wgmma.fence.sync.aligned;"] {
        let text = right().replace("add.s64 %rd7, %rd7, 2; add.s64 %rd8, %rd8, 2;", "");
        run(&text.replace(WAIT, &again(between)), &image, 8, WAY).unwrap();
    }
}

#[test]
fn products_that_are_pending_together_have_the_same_registers_or_none_in_common() {
    let other = |sums: &str| {
        let sums = product(N8, 8, 1).replace("{%d0, %d1, %d2, %d3}", sums);
        format!("{FENCE} {sums} {COMMIT}")
    };
    let message =
        "adds to `%d1`, to which the product of its line with other registers is still to add";
    are_refused(&[
        (&[(COMMIT, &other("{%d1, %d2, %d3, %d4}"))], message),
        (&[(COMMIT, &other("{%d1, %d0, %d2, %d3}"))], message),
    ]);
    let image = Factors::new(ROWS, 8, 5).image(128);
    let text = right().replace(COMMIT, &other("{%d4, %d5, %d6, %d7}"));
    run(&text, &image, 8, WAY).unwrap();
}

#[test]
fn shared_memory_is_fenced_by_its_writers_and_before_a_barrier() {
    let by_one = format!("setp.eq.b32 %p1, %r1, 0; @%p1 {PROXY_FENCE}");
    let early = format!("{PROXY_FENCE} ld.global.v4.b32 {{%r4, %r5, %r6, %r7}}, [%rd4+0];");
    let load = "ld.global.v4.b32 {%r4, %r5, %r6, %r7}, [%rd4+0];";
    let late = format!("{BARRIER} {PROXY_FENCE}");
    let unfenced = "wrote and did not fence behind (`fence.proxy.async`)";
    let unordered = "wrote and fenced without a barrier of the block behind";
    are_refused(&[
        (&[(PROXY_FENCE, "")], unfenced),
        (
            &[(PROXY_FENCE, &by_one)],
            "0 of shared memory, which thread 1 wrote and did not",
        ),
        (&[(PROXY_FENCE, ""), (load, &early)], unfenced),
        (
            &[(PROXY_FENCE, ""), (BARRIER, &late)],
            "of shared memory, which thread",
        ),
    ]);
    let problem = refused_with(&[(PROXY_FENCE, ""), (BARRIER, &late)], WAY);
    assert!(problem.contains(unordered), "{problem}");
    // Without a barrier a warp reads what others have not written yet, if it is the first.
    for order in [forward, backward] {
        let problem = refused_with(&[(BARRIER, "")], Way { order, ..WAY });
        assert!(problem.contains(unordered), "{problem}");
    }
    for fence in ["fence.proxy.async;", PROXY_FENCE] {
        let image = Factors::new(ROWS, 8, 5).image(128);
        run(&right().replace(PROXY_FENCE, fence), &image, 8, WAY).unwrap();
    }
}

#[test]
fn copies_are_fenced_once_they_have_arrived() {
    let bytes = Factors::new(ROWS, 8, 5).image(128).len();
    let mut text = right();
    for at in (0..bytes).step_by(2048) {
        let load = format!("ld.global.v4.b32 {{%r4, %r5, %r6, %r7}}, [%rd4+{at}];\n");
        let copy = format!("cp.async.cg.shared.global [%rd6+{at}], [%rd4+{at}], 16;\n");
        let store = format!("st.shared.v4.b32 [%rd6+{at}], {{%r4, %r5, %r6, %r7}};\n");
        text = text.replace(&load, &copy).replace(&store, "");
    }
    let waited = "cp.async.commit_group; cp.async.wait_group 0;";
    let with = |fence: &str| {
        let image = Factors::new(ROWS, 8, 5).image(128);
        run(&text.replace(PROXY_FENCE, fence), &image, 8, WAY)
    };
    let right = with(&format!("{waited} {PROXY_FENCE}")).unwrap();
    let mut expected = vec![0.5; ROWS * 8];
    Factors::new(ROWS, 8, 5).add(&mut expected, 1);
    assert_eq!(right, expected);
    for fence in [format!("{PROXY_FENCE} {waited}"), waited.to_owned()] {
        let problem = with(&fence).unwrap_err();
        assert!(
            problem.contains("wrote and did not fence behind"),
            "{problem}"
        );
    }
    // What is not waited for is poison.
    let poisoned = with(PROXY_FENCE).unwrap();
    assert!(poisoned.iter().all(|sum| sum.is_nan()));
}

#[test]
fn what_a_product_reads_is_not_written_before_it_is_waited_for() {
    let of = |write: &str| format!("{COMMIT} {write}");
    let copy = "cp.async.ca.shared.global [s+8192], [%rd4], 16;";
    let by_last = "setp.ne.b32 %p1, %r1, 127; @%p1 bra $L; st.shared.b32 [s+8192], %r1; $L:";
    let writes =
        "writes 0x2000 of shared memory, which the product of its line reads, for which warp";
    are_refused(&[
        (
            &[(COMMIT, &of("mov.b32 %r9, 0; st.shared.b32 [s+8192], %r9;"))],
            writes,
        ),
        (&[(COMMIT, &of(by_last))], writes),
        (&[(COMMIT, &of(copy))], writes),
    ]);
    // What it does not read may be.
    let image = Factors::new(ROWS, 8, 5).image(128);
    let text = right().replace(COMMIT, &of("st.shared.b32 [s+32], %r1;"));
    run(&text, &image, 8, WAY).unwrap();
    // Behind its own wait a warp knows nothing of the others.
    let early = format!("{WAIT} st.shared.b32 [s+8192], %r1;");
    let problem = refused_with(&[(WAIT, &early)], WAY);
    assert!(
        problem.contains("reads 0x2000 of shared memory, which thread 31 wrote"),
        "{problem}"
    );
    let late = format!("{COMMIT} {BARRIER} {WAIT} st.shared.b32 [s+8192], %r1;");
    let problem = refused_with(&[(COMMIT, &late)], WAY);
    assert!(
        problem.contains("of its line reads, for which warp 1 has not waited"),
        "{problem}"
    );
    let ordered = format!("{WAIT} {BARRIER} st.shared.b32 [s+8192], %r1;");
    run(&right().replace(WAIT, &ordered), &image, 8, WAY).unwrap();
}

#[test]
fn descriptors_are_checked() {
    for (instead, message) in [
        (
            "0x0000004000000000",
            "a swizzling mode of 0 is not interpreted",
        ),
        (
            "0x4002004000000000",
            "a base offset of 1 is not interpreted",
        ),
        (
            "0x4000004100000000",
            "the stride of 1040 bytes is not a multiple of 1024",
        ),
    ] {
        let problem = refused_with(&[("0x4000004000000000", instead)], WAY);
        let expected = format!(
            "its line of the PTX: block (0, 0), thread 0: of the left factor's descriptor {message}"
        );
        assert!(problem.contains(&expected), "{problem}");
    }
    for (instead, message) in [
        (
            "0x4000008000000000",
            "reads 16 bytes at 0x3000, outside the 10240 bytes of shared memory",
        ),
        (
            "0x4000004000002000",
            "reads 16 bytes at 0x21800, outside the 10240 bytes",
        ),
    ] {
        let problem = refused_with(
            &[("0x4000004000000000", instead)],
            Way {
                order: backward,
                ..WAY
            },
        );
        assert!(problem.contains(message), "{problem}");
    }
    let right = (
        "add.s64 %rd8, %rd7, 512;",
        "add.s64 %rd8, %rd7, 513; add.s64 %rd8, %rd8, 7;",
    );
    let problem = refused_with(&[right], WAY);
    assert!(
        problem.contains("of the right factor's descriptor the matrix begins at 0x2080"),
        "{problem}"
    );
}

#[test]
fn a_warpgroup_multiplies_together() {
    let own = |shift: u32| {
        format!(
            "shr.u32 %r8, %r1, {shift}; mul.wide.u32 %rd10, %r8, 64; add.s64 %rd8, %rd8, %rd10; {FENCE}"
        )
    };
    let first = "setp.lt.u32 %p1, %r1, 96;";
    let added = [
        ("setp.ne.b32 p, 1, 0;", "setp.ne.b32 p, %r8, 0;"),
        (FENCE, "and.b32 %r8, %r1, 1; wgmma.fence.sync.aligned;"),
    ];
    let added_by_warps = [
        added[0],
        (FENCE, "shr.u32 %r8, %r1, 5; wgmma.fence.sync.aligned;"),
    ];
    let leave = format!("{first} @!%p1 bra $L_end; {FENCE}");
    let skip = format!("{first} @!%p1 bra $L_waited; {FENCE}");
    let skipped = format!("{WAIT} $L_waited: {BARRIER}");
    let elsewhere = format!(
        "{first} @%p1 bra $L_here;\n{FENCE} {} {COMMIT} {WAIT} bra $L_end; $L_here: {FENCE}",
        product(N8, 8, 1)
    );
    let some = format!("setp.lt.u32 %p1, %r1, 8; @%p1 bra $L_end; {FENCE}");
    are_refused(&[
        (
            &[(FENCE, &own(0))],
            "as the right factor's descriptor, and another thread of its warp",
        ),
        (
            &[(FENCE, &own(6))],
            "as the right factor's descriptor, and another warp of its warpgroup",
        ),
        (
            &added,
            "multiplies with another `scale-d` than another thread of its warp",
        ),
        (
            &added_by_warps,
            "multiplies with another `scale-d` than another warp of its warpgroup",
        ),
        (
            &[(FENCE, &leave)],
            "in block (0, 0), 3 of the 4 warps of a warpgroup multiply, the rest",
        ),
        (
            &[(FENCE, &skip), (WAIT, &skipped)],
            "its line of the PTX: in block (0, 0), 3 of the 4",
        ),
        (
            &[(FENCE, &elsewhere)],
            "multiplies where another warp of its warpgroup multiplies at line",
        ),
        (
            &[(FENCE, &some)],
            "24 of the 32 threads of a warp execute `wgmma.fence`, the rest do not",
        ),
    ]);
    let few = Way { threads: 96, ..WAY };
    let problem = refused_with(&[], few);
    assert!(
        problem.contains("multiplies as one of 3 warps, and a warpgroup has 4"),
        "{problem}"
    );
}

#[test]
fn what_is_not_interpreted_is_told() {
    let sums = "{%d0, %d1, %d2, %d3}";
    for (from, to, message) in [
        (
            "p, 1,  1, 0,  0;",
            "p, -1,  1, 0,  0;",
            "`imm-scale-a` and `imm-scale-b` other than 1",
        ),
        (
            "p, 1,  1, 0,  0;",
            "p, 1,  -1, 0,  0;",
            "`imm-scale-a` and `imm-scale-b` other than 1",
        ),
        (
            "p, 1,  1, 0,  0;",
            "p, 1,  1, 1,  0;",
            "`imm-trans-a` and `imm-trans-b` other than 0",
        ),
        (
            "p, 1,  1, 0,  0;",
            "p, 1,  1, 0,  1;",
            "`imm-trans-a` and `imm-trans-b` other than 0",
        ),
        (
            "p, 1,  1, 0,  0;",
            "p, 1,  1;",
            "with these operands is not interpreted",
        ),
        (
            "%rd7, %rd8, p",
            "{%r1, %r2, %r3, %r4}, %rd8, p",
            "a left factor in registers is not",
        ),
        ("%rd7, %rd8, p", "%r7, %rd8, p", "`%r7` has 32 bits, not 64"),
        ("p, 1,  1", "%r1, 1,  1", "`%r1` has 32 bits, not 1"),
        (sums, "{%d0, %d1, %d2}", "4 registers are expected"),
        (sums, "{%d0, %d1, %d2, %d1}", "`%d1` has two sums"),
        (sums, "{%d0, %d1, %d2, 0}", "a sum is in a register"),
        (sums, "{%d0, %d1, %d2, %rd1}", "`%rd1` has 64 bits, not 32"),
        ("m64n8k16", "m64n12k16", "is not interpreted"),
        ("m64n8k16", "m64n264k16", "is not interpreted"),
        (
            "m64n8k16.f32.bf16.bf16",
            "m64n8k8.f32.tf32.tf32",
            "is not interpreted",
        ),
        (FENCE, "wgmma.fence;", "`wgmma.fence` is not interpreted"),
        (
            WAIT,
            "wgmma.wait_group.sync.aligned %r1;",
            "is not interpreted",
        ),
        (PROXY_FENCE, "fence.proxy.tensormap;", "is not interpreted"),
        (
            "p, 1,  1, 0,  0;\n}",
            "p, 1,  1, 0,  0;\n} not.pred p, p;",
            "there is no register `p`",
        ),
    ] {
        let problem = refused_with(&[(from, to)], WAY);
        assert!(problem.contains(message), "{to}: {problem}");
        assert!(problem.contains("line "), "{problem}");
    }
}

/// Tiles of 64 of k that the loop adds up.
const TILES: usize = 5;

/// Copies of the next tile are on their way to one half of shared memory while products read the other.
fn double_buffered() -> String {
    let mut copies = String::new();
    for at in (0..10_240).step_by(2048) {
        copies += &format!("cp.async.cg.shared.global [%rd10+{at}], [%rd4+{at}], 16;\n");
    }
    copies += "add.s64 %rd4, %rd4, 10240; cp.async.commit_group;\n";
    let mut products = String::new();
    for _ in 0..4 {
        products += &product(N8, 8, 1);
        products += "add.s64 %rd7, %rd7, 2; add.s64 %rd8, %rd8, 2;\n";
    }
    format!(
        "{}mov.b32 %d0, 0f00000000; mov.b32 %d1, %d0; mov.b32 %d2, %d0; mov.b32 %d3, %d0;\n\
         mov.b32 %r2, 0; mov.b64 %rd11, 0; mov.b64 %rd10, %rd6;\n{copies}\
         shr.u64 %rd12, %rd5, 4; or.b64 %rd12, %rd12, 0x4000004000000000;\n\
         $L_tile:\n\
         cp.async.wait_group 0;\n{PROXY_FENCE}\n{BARRIER}\n\
         shr.u64 %rd13, %rd11, 4; add.s64 %rd7, %rd12, %rd13; add.s64 %rd8, %rd7, 512;\n\
         {FENCE}\n{products}{COMMIT}\n\
         wgmma.wait_group.sync.aligned 1;\nbarrier.sync 0;\n\
         add.s32 %r2, %r2, 1; setp.ge.u32 %p1, %r2, {TILES};\n@%p1 bra $L_end;\n\
         xor.b64 %rd11, %rd11, 16384; add.s64 %rd10, %rd6, %rd11;\n{copies}\
         bra.uni $L_tile;\n\
         $L_end: {WAIT}\n{}ret;\n}}\n",
        head(8, 32_768),
        stores(8)
    )
}

fn loop_tiles() -> (Vec<Factors>, Vec<u8>) {
    let tiles: Vec<Factors> = (0..TILES)
        .map(|tile| Factors::new(ROWS, 8, 999 * tile))
        .collect();
    let image = tiles.iter().flat_map(|tile| tile.image(128)).collect();
    (tiles, image)
}

#[test]
fn a_double_buffered_loop_has_the_same_sums_in_any_order() {
    let (tiles, image) = loop_tiles();
    for cores in MODELS {
        let mut expected = vec![0.0; ROWS * 8];
        for tile in &tiles {
            tile.add_with_mma(cores, &mut expected, 4);
        }
        for order in [forward, backward, in_turns] {
            let way = Way {
                threads: 128,
                cores,
                order,
            };
            assert_eq!(run(&double_buffered(), &image, 8, way).unwrap(), expected);
        }
    }
}

#[test]
fn what_a_double_buffered_loop_lacks_is_told() {
    let (_, image) = loop_tiles();
    let overwrites = "of shared memory, which the product of line";
    let unfenced = "wrote and did not fence behind";
    let arrived = format!("cp.async.wait_group 0;\n{PROXY_FENCE}");
    for (from, to, message) in [
        ("sync.aligned 1;", "sync.aligned 2;", overwrites),
        ("wgmma.wait_group.sync.aligned 1;", "", overwrites),
        ("barrier.sync 0;", "", overwrites),
        (
            "cp.async.wait_group 0;",
            "cp.async.wait_group 1;",
            overwrites,
        ),
        (
            &arrived,
            "fence.proxy.async.shared::cta; cp.async.wait_group 0;",
            unfenced,
        ),
        (PROXY_FENCE, "", unfenced),
        ("\nbar.sync 0;", "", "without a barrier of the block behind"),
        (FENCE, "", "adds to `%d0` without a `wgmma.fence`"),
        (COMMIT, "", overwrites),
        (WAIT, "", "reads `%d0`, to which the product of line"),
    ] {
        assert_eq!(double_buffered().matches(from).count(), 1, "{from}");
        for order in [forward, backward, in_turns] {
            let text = double_buffered().replace(from, to);
            let problem = run(&text, &image, 8, Way { order, ..WAY }).unwrap_err();
            assert!(problem.contains(message), "{from} {to}: {problem}");
        }
    }
}
