//! A flush in clusters: each computes its own rows, step by step, with the bits of launches one by one; and without any barrier of
//! theirs, or with one in another place, something else.

use std::collections::HashMap;

use cohort_abi::gpu::flush::CLUSTER_BLOCKS;
use cohort_abi::manifest::Elem;

use super::check::Random;
use super::gpu::gates;
use crate::jit::{Aligned, Bits, Operand, constant_memory};
use crate::simulator::{
    Call, How, Order, Simulator, Tiles, flush_text, gpu_text_of_loops, interpret_flush, loops_text,
    ptx, put_words,
};

const WIDTH: usize = 64;
const STEPS: usize = 4;
/// Rows of each cluster: a tile whose threads have two rows, and one where they have one; and two of two, the last not full.
const PARTS: [usize; 2] = [84, 97];
const ROWS: usize = PARTS[0] + PARTS[1];

/// A kernel whose weights stay in clusters, in as many parts as these have blocks, and what runs its flushes.
fn text() -> String {
    let loops = loops_text(&gates(WIDTH, WIDTH)).expect("loops");
    let (before, behind) = loops.split_once("ragged.tiles").expect("tiles");
    let (head, body) = behind.split_once('{').expect("their body");
    let held = "resident [8, 16, 3] clustered [4, 16, 3]";
    let loops = format!("{before}ragged.tiles{head}{held} {{{body}");
    flush_text(&gpu_text_of_loops(&loops).expect("functions")).expect("a function for flushes")
}

/// Each step makes rows of those of the step before, which other blocks of the cluster wrote.
struct Flush {
    index: Vec<u32>,
    rows: Bits,
    params: [(&'static str, Bits); 2],
}

/// Where a step's rows begin in memory, in rows: each step has as many.
fn layer(step: usize) -> usize {
    step * ROWS
}

impl Flush {
    fn new() -> Flush {
        let mut random = Random(11);
        let [first, second] = PARTS;
        let own = (0..first).map(|row| row * 5 % first);
        let others = (0..second).map(|row| first + row * 7 % second);
        Flush {
            index: own.chain(others).map(|row| row as u32).collect(),
            rows: random.floats(ROWS * WIDTH),
            params: [
                ("w_128", random.floats(WIDTH * 2 * WIDTH)),
                ("b", random.floats(2 * WIDTH)),
            ],
        }
    }

    fn params(&self) -> HashMap<&str, Bits> {
        let params = self.params.iter();
        params.map(|(name, bits)| (*name, bits.clone())).collect()
    }

    /// The rows of the last step, launch by launch.
    fn one_by_one(&self, simulator: &Simulator) -> Bits {
        let mut last = self.rows.clone();
        for _ in 0..STEPS {
            let operand = Operand {
                pool: last.clone(),
                index: self.index.clone(),
                ..Operand::default()
            };
            let call = Call {
                kernel: "k",
                params: &self.params(),
                operands: &[operand],
                types: &[Some((Elem::F32, WIDTH))],
                results: &[(Elem::F32, WIDTH)],
            };
            let how = How {
                order: Order::Forward,
                tiles: Tiles::ByRows,
            };
            last = simulator.run(&call, ROWS, how).remove(0);
        }
        last
    }

    /// Memory and a schedule of both parts, the first of whose steps all blocks of the grid compute together.
    fn prepare(&self, simulator: &Simulator) -> Prepared {
        let mut memory = Aligned::new(4 * WIDTH * layer(STEPS + 1));
        memory.bytes().fill(0xFF);
        put_words(&mut memory, &self.rows);
        let mut index = Aligned::new(4 * ROWS);
        put_words(&mut index, &self.index);
        let (rows, indices) = (memory.pointer() as u64, index.pointer() as u64);
        let row = |row: usize| rows + (4 * WIDTH * row) as u64;
        let at = |row: usize| indices + 4 * row as u64;
        let kernel = &simulator.kernels["k"];
        let params = self.params();
        let constants = kernel.constants.iter();
        let mut constants: Vec<Aligned> = constants
            .map(|constant| constant_memory(constant, &params))
            .collect();
        let flush = simulator.flush.as_ref().expect("what runs flushes");
        let clusters = flush.clusters.as_ref().expect("what runs clusters");
        let function = kernel.launches[0].clustered.as_ref().expect("a function");
        let mut listed = clusters.functions.iter();
        let number = listed.position(|symbol| *symbol == function.symbol);
        let number = number.expect("a function of the flush") as u64;
        let (mut steps, mut launches, mut lists) = (vec![], vec![], vec![]);
        let mut add = |step: usize, first: usize, rows: usize| {
            let list = [
                rows as u64,
                row(layer(step)),
                at(first),
                0,
                row(layer(step + 1) + first),
            ];
            let (columns, tiles) = function.resident_grid(rows as u64);
            let blocks = u64::from(columns) * tiles;
            steps.extend([launches.len() as u64 / 4, blocks]);
            launches.extend([number, blocks, columns.into(), lists.len() as u64]);
            lists.extend(list);
            lists.extend(constants.iter_mut().map(|memory| memory.pointer() as u64));
            lists.push(0);
        };
        add(0, 0, ROWS);
        for (part, rows) in PARTS.into_iter().enumerate() {
            (1..STEPS).for_each(|step| add(step, part * PARTS[0], rows));
        }
        let own = STEPS as u64 - 1;
        let of_clusters = [1, own, 1 + own, own];
        let all = steps.len() as u64 / 2;
        let begin = 4 * (6 + steps.len() + of_clusters.len() + launches.len()) as u64;
        launches
            .iter_mut()
            .skip(3)
            .step_by(4)
            .for_each(|list| *list = begin + 8 * *list);
        let blocks = PARTS.len() as u64 * u64::from(CLUSTER_BLOCKS);
        let header = [0, blocks, 1, PARTS.len() as u64, all, 0];
        let words = [&header[..], &steps, &of_clusters, &launches].concat();
        let pairs = words.chunks(2).map(|pair| pair[0] | pair[1] << 32);
        let padding = vec![0; flush.argument_bytes as usize / 8];
        let schedule = pairs.chain(lists).chain(padding).collect();
        Prepared {
            memory,
            index,
            constants,
            schedule,
        }
    }

    fn at_once(&self, simulator: &Simulator, order: Order) -> Result<Bits, String> {
        let prepared = self.prepare(simulator);
        simulator.run_clusters(&prepared.schedule, PARTS.len() as u32, order)?;
        Ok(prepared.last())
    }

    /// The same in PTX, interpreted.
    fn in_ptx(&self, text: &str) -> Result<Bits, String> {
        let simulator = Simulator::new(text);
        let flush = simulator.flush.as_ref().expect("what runs flushes");
        let clusters = flush.clusters.as_ref().expect("what runs clusters");
        let mut prepared = self.prepare(&simulator);
        let function = (&*clusters.symbol, clusters.shared_bytes, flush.threads);
        let blocks = [PARTS.len() as u32 * CLUSTER_BLOCKS, CLUSTER_BLOCKS];
        let memories = [&mut prepared.memory, &mut prepared.index].into_iter();
        let memories = memories.chain(&mut prepared.constants);
        interpret_flush(text, function, blocks, memories, &mut prepared.schedule)?;
        Ok(prepared.last())
    }
}

/// The memory of a flush.
struct Prepared {
    /// The first rows, and those of each step.
    memory: Aligned,
    index: Aligned,
    constants: Vec<Aligned>,
    schedule: Vec<u64>,
}

impl Prepared {
    /// The rows of the last step.
    fn last(mut self) -> Bits {
        let bits = |bytes: &[u8]| u32::from_ne_bytes(bytes.try_into().expect("four bytes"));
        let all = self.memory.bytes()[4 * WIDTH * layer(STEPS)..].chunks(4);
        all.take(WIDTH * ROWS).map(bits).collect()
    }
}

#[test]
fn clusters_give_the_bits_of_launches_one_by_one() {
    let text = text();
    let flush = Flush::new();
    let simulator = Simulator::new(&text);
    let right = flush.one_by_one(&simulator);
    for order in [
        Order::Turns,
        Order::Forward,
        Order::Backward,
        Order::Shuffled,
    ] {
        assert_eq!(
            flush.at_once(&simulator, order).as_ref(),
            Ok(&right),
            "{order:?}"
        );
    }
    assert_eq!(flush.in_ptx(&text).as_ref(), Ok(&right));
}

/// A text with the lines of the function for clusters changed.
fn changed(text: &str, change: impl Fn(&mut Vec<&str>)) -> String {
    let name = text
        .find("gpu.func @cohort_flush_clusters")
        .expect("it is there");
    let mut lines: Vec<&str> = text[name..].lines().collect();
    change(&mut lines);
    format!("{}{}", &text[..name], lines.join("\n"))
}

/// The only line with a part.
fn place(lines: &[&str], part: &str) -> usize {
    let places = (0..lines.len()).filter(|at| lines[*at].contains(part));
    let places: Vec<usize> = places.collect();
    let [place] = places[..] else {
        panic!("{part}: {places:?}");
    };
    place
}

#[test]
fn a_missing_or_misplaced_barrier_of_a_cluster_is_seen() {
    let text = text();
    let flush = Flush::new();
    let right = flush.one_by_one(&Simulator::new(&text));
    let is_seen = |text: &str| flush.in_ptx(text).as_ref() != Ok(&right);
    let (wait, arrive) = ("call @cohort_cluster_wait(", "call @cohort_cluster_arrive(");
    for barriers in [&[wait][..], &[arrive], &[wait, arrive]] {
        let without = changed(&text, |lines| {
            lines.retain(|line| !barriers.iter().any(|part| line.contains(part)));
        });
        assert!(is_seen(&without), "nothing misses {barriers:?}");
    }
    // An arrival before the work, or a wait behind it.
    for (from, to) in [(wait, arrive), (arrive, wait)] {
        let moved = changed(&text, |lines| {
            let line = lines.remove(place(lines, from));
            let to = place(lines, to);
            let at = if from == arrive { to + 1 } else { to };
            lines.insert(at, line);
        });
        assert!(is_seen(&moved), "{from} may be beside {to}");
    }
    // All that the grid's first step wrote is read by both.
    let grid = changed(&text, |lines| {
        lines.retain(|line| !line.contains("call @cohort_grid_"));
    });
    assert!(is_seen(&grid), "nothing misses the barrier of the grid");
}

#[test]
fn only_cards_with_clusters_have_code_for_them() {
    let text = text();
    let has = |architecture: &str| {
        let ptx = ptx(&text, architecture);
        assert!(ptx.contains(".entry cohort_flush("), "{architecture}");
        let function = ptx.contains(".entry cohort_flush_clusters(");
        assert_eq!(ptx.contains("barrier.cluster"), function, "{architecture}");
        function
    };
    let found = ["sm_80", "sm_89", "sm_90", "sm_100", "sm_120"].map(has);
    assert_eq!(found, [false, false, true, true, false]);
}
