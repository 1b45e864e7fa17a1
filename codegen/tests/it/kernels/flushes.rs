//! What runs a whole flush: steps that read what the blocks of the step before wrote, and launches side by
//! side, give the bits of launches one by one, and without any one barrier some order of blocks and threads
//! does not.

use std::collections::HashMap;

use cohort_abi::gpu::GpuFunction;
use cohort_abi::manifest::Elem;

use super::check::Random;
use super::gpu::gates;
use crate::jit::{Aligned, Bits, Operand, constant_memory};
use crate::simulator::{
    Call, How, Order, Simulator, Tiles, flush_text, gpu_text, interpret_flush, put_words,
};

const WIDTH: usize = 40;
const ROWS: usize = 29;
const STEPS: usize = 5;
const LAYER: usize = ROWS * WIDTH;

/// A product with what is made of its sums, and other signs.
fn kernels() -> String {
    let negate = format!(
        "cfb.kernel @negate {{
         ^bb0(%rows: index, %x: tensor<?x{WIDTH}xf32>):
           %y = arith.negf %x : tensor<?x{WIDTH}xf32>
           cfb.yield %y : tensor<?x{WIDTH}xf32>
         }}"
    );
    format!("{}\n{negate}", gates(WIDTH, WIDTH))
}

/// Each step makes rows of those of the step before; besides, by another function, it makes some of the first.
struct Flush {
    index: Vec<u32>,
    rows: Bits,
    params: [(&'static str, Bits); 2],
}

impl Flush {
    fn new() -> Flush {
        let mut random = Random(7);
        Flush {
            // What a block reads, others wrote.
            index: (0..ROWS).map(|row| (row * 7 % ROWS) as u32).collect(),
            rows: random.floats(LAYER),
            params: [
                ("w_80", random.floats(WIDTH * 2 * WIDTH)),
                ("b", random.floats(2 * WIDTH)),
            ],
        }
    }

    fn params(&self) -> HashMap<&str, Bits> {
        let params = self.params.iter();
        params.map(|(name, bits)| (*name, bits.clone())).collect()
    }

    fn kernel(step: usize) -> &'static str {
        ["k", "k", "negate"][step % 3]
    }

    /// Launch by launch: the rows of the last step, then those that each step makes besides.
    fn one_by_one(&self, simulator: &Simulator) -> Vec<Bits> {
        let run = |kernel: &str, rows: &Bits, tiles| {
            let operand = Operand {
                pool: rows.clone(),
                index: self.index.clone(),
                ..Operand::default()
            };
            let call = Call {
                kernel,
                params: &self.params(),
                operands: &[operand],
                types: &[Some((Elem::F32, WIDTH))],
                results: &[(Elem::F32, WIDTH)],
            };
            let order = Order::Forward;
            simulator.run(&call, ROWS, How { order, tiles }).remove(0)
        };
        let mut last = self.rows.clone();
        for step in 0..STEPS {
            last = run(Flush::kernel(step), &last, Tiles::ByRows);
        }
        vec![last, run("k", &self.rows, Tiles::Largest)]
    }

    /// Memory and schedule of a flush that runs as one launch of `blocks` blocks.
    fn prepare(&self, simulator: &Simulator, blocks: u32) -> Prepared {
        // Not a number, until it is written.
        let mut memory = Aligned::new(4 * LAYER * (1 + 2 * STEPS));
        memory.bytes().fill(0xFF);
        put_words(&mut memory, &self.rows);
        let mut index = Aligned::new(4 * ROWS);
        put_words(&mut index, &self.index);
        let start = memory.pointer() as u64;
        let layer = |number: usize| start + 4 * (number * LAYER) as u64;
        let params = self.params();
        let mut constants: HashMap<&str, Vec<Aligned>> = HashMap::new();
        for kernel in ["k", "negate"] {
            let needed = simulator.kernels[kernel].constants.iter();
            let made = needed.map(|constant| constant_memory(constant, &params));
            constants.insert(kernel, made.collect());
        }
        let mut schedule = Schedule::default();
        for step in 0..STEPS {
            let functions = |kernel: &str| &simulator.kernels[kernel].launches[0].functions;
            let kernel = Flush::kernel(step);
            let calls = [
                (
                    kernel,
                    functions(kernel).first(),
                    layer(step),
                    layer(step + 1),
                ),
                (
                    "k",
                    functions("k").last(),
                    layer(0),
                    layer(1 + STEPS + step),
                ),
            ];
            let mut launches = Vec::new();
            for (kernel, function, from, to) in calls {
                let mut arguments = vec![ROWS as u64, from, index.pointer() as u64, 0, to];
                let constants = constants.get_mut(kernel).expect("its constants");
                arguments.extend(constants.iter_mut().map(|memory| memory.pointer() as u64));
                arguments.push(0);
                launches.push((function.expect("a function"), arguments));
            }
            schedule.step(simulator, &launches);
        }
        let flush = simulator.flush.as_ref().expect("what runs flushes");
        let words = schedule.words(blocks, flush.argument_bytes);
        Prepared {
            memory,
            index,
            constants: constants.into_values().flatten().collect(),
            schedule: words,
        }
    }

    /// Runs the flush as one launch of `blocks` blocks.
    fn at_once(
        &self,
        simulator: &Simulator,
        blocks: u32,
        order: Order,
    ) -> Result<Vec<Bits>, String> {
        let prepared = self.prepare(simulator, blocks);
        simulator.run_flush(&prepared.schedule, blocks, order)?;
        prepared.results()
    }

    /// The same in PTX, interpreted.
    fn in_ptx(&self, text: &str, blocks: u32) -> Result<Vec<Bits>, String> {
        let simulator = Simulator::new(text);
        let flush = simulator.flush.as_ref().expect("what runs flushes");
        let mut prepared = self.prepare(&simulator, blocks);
        let function = (&*flush.symbol, flush.shared_bytes, flush.threads);
        let memories = [&mut prepared.memory, &mut prepared.index].into_iter();
        let memories = memories.chain(&mut prepared.constants);
        interpret_flush(
            text,
            function,
            [blocks, 1],
            memories,
            &mut prepared.schedule,
        )?;
        prepared.results()
    }
}

/// The memory of a flush.
struct Prepared {
    /// The first rows, those of each step, and those that each step makes besides.
    memory: Aligned,
    index: Aligned,
    constants: Vec<Aligned>,
    schedule: Vec<u64>,
}

impl Prepared {
    /// The rows of the last step, then those that each step makes besides.
    fn results(mut self) -> Result<Vec<Bits>, String> {
        let bits = |bytes: &[u8]| u32::from_ne_bytes(bytes.try_into().expect("four bytes"));
        let all: Bits = self.memory.bytes().chunks(4).map(bits).collect();
        let layers: Vec<Bits> = all.chunks(LAYER).map(<[u32]>::to_vec).collect();
        let besides = &layers[1 + STEPS..1 + 2 * STEPS];
        let is_same = besides.iter().all(|rows| *rows == besides[0]);
        is_same
            .then(|| vec![layers[STEPS].clone(), besides[0].clone()])
            .ok_or_else(|| "a launch gives other bits in another step".to_owned())
    }
}

/// A schedule as `abi/src/gpu/flush.rs` describes it.
#[derive(Default)]
struct Schedule {
    steps: Vec<[u64; 2]>,
    launches: Vec<[u64; 4]>,
    arguments: Vec<u64>,
}

impl Schedule {
    fn step(&mut self, simulator: &Simulator, launches: &[(&GpuFunction, Vec<u64>)]) {
        let flush = simulator.flush.as_ref().expect("what runs flushes");
        let first = self.launches.len() as u64;
        let mut all = 0;
        for (function, arguments) in launches {
            let (x, y) = function.grid(ROWS as u64);
            let mut listed = flush.functions.iter();
            let number = listed.position(|symbol| *symbol == function.symbol);
            let number = number.expect("a function of the flush") as u64;
            let blocks = x * u64::from(y);
            self.launches
                .push([number, blocks, x, self.arguments.len() as u64]);
            self.arguments.extend(arguments);
            all += blocks;
        }
        self.steps.push([first, all]);
    }

    fn words(&self, blocks: u32, argument_bytes: u32) -> Vec<u64> {
        let begin = 4 * (6 + 2 * self.steps.len() + 4 * self.launches.len()) as u64;
        let mut launches = self.launches.clone();
        launches
            .iter_mut()
            .for_each(|launch| launch[3] = begin + 8 * launch[3]);
        let steps = self.steps.len() as u64;
        let header = [0, u64::from(blocks), steps, 0, steps, 0];
        let words = [header.to_vec(), self.steps.concat(), launches.concat()].concat();
        let pairs = words.chunks(2).map(|pair| pair[0] | pair[1] << 32);
        let padding = vec![0; argument_bytes as usize / 8];
        pairs
            .chain(self.arguments.iter().copied())
            .chain(padding)
            .collect()
    }
}

const ORDERS: [Order; 4] = [
    Order::Turns,
    Order::Forward,
    Order::Backward,
    Order::Shuffled,
];

#[test]
fn a_flush_at_once_gives_the_bits_of_its_launches() {
    let gpu = gpu_text(&kernels()).expect("it lowers");
    let flush = Flush::new();
    let right = flush.one_by_one(&Simulator::new(&gpu));
    let persistent = flush_text(&gpu).expect("a function for flushes");
    let simulator = Simulator::new(&persistent);
    for order in ORDERS {
        for blocks in [1, 2, 3, 8] {
            let found = flush.at_once(&simulator, blocks, order);
            assert_eq!(found.as_ref(), Ok(&right), "{order:?}, {blocks} blocks");
        }
    }
}

/// The text of a function for flushes, before its name and by lines from there on.
struct Text<'a> {
    before: &'a str,
    lines: Vec<&'a str>,
}

impl<'a> Text<'a> {
    fn new(text: &'a str) -> Text<'a> {
        let name = text.find("gpu.func @cohort_flush").expect("it is there");
        Text {
            before: &text[..name],
            lines: text[name..].lines().collect(),
        }
    }

    fn with(&self, lines: &[&str]) -> String {
        format!("{}{}", self.before, lines.join("\n"))
    }

    fn places(&self, part: &str) -> Vec<usize> {
        let places = (0..self.lines.len()).filter(|at| self.lines[*at].contains(part));
        places.collect()
    }

    fn without(&self, place: usize) -> String {
        self.with(&[&self.lines[..place], &self.lines[place + 1..]].concat())
    }
}

/// In the interpreter, which checks addresses: what is looked up ahead may be any where a barrier is missing.
#[test]
fn a_missing_or_misplaced_barrier_of_a_flush_is_seen() {
    let gpu = gpu_text(&kernels()).expect("it lowers");
    let flush = Flush::new();
    let right = flush.one_by_one(&Simulator::new(&gpu));
    let persistent = flush_text(&gpu).expect("a function for flushes");
    let text = Text::new(&persistent);
    for blocks in [1, 3, 64] {
        let found = flush.in_ptx(&persistent, blocks);
        assert_eq!(found.as_ref(), Ok(&right), "{blocks} blocks");
    }
    let is_seen = |text: &str| flush.in_ptx(text, 3).as_ref() != Ok(&right);
    // The last two: behind the first order, and behind each block's work.
    let barriers = [
        "call @cohort_grid_wait(",
        "call @cohort_grid_arrive(",
        "gpu.barrier",
    ];
    for (barrier, count) in barriers.into_iter().zip([1, 1, 2]) {
        let places = text.places(barrier);
        assert_eq!(places.len(), count, "{barrier}");
        for place in places {
            assert!(is_seen(&text.without(place)), "nothing misses {barrier}");
        }
    }
    // Behind the work of every step but the first, in place of before it: the last line of the loop over
    // steps stands before the end of the function.
    let lines = &text.lines;
    let wait = text.places("call @cohort_grid_wait(")[0];
    let begin = lines[..wait]
        .iter()
        .rposition(|line| line.contains("scf.if"));
    let begin = begin.expect("the barrier of all steps but the first");
    let end = text.places("gpu.return")[0] - 1;
    let (condition, work) = (&lines[begin..wait + 2], &lines[wait + 2..end]);
    let later = [&lines[..begin], work, condition, &lines[end..]].concat();
    assert!(is_seen(&text.with(&later)), "the wait may be later");
    // A block that arrives before its work is done.
    let arrive = text.places("call @cohort_grid_arrive(")[0];
    let earlier = [
        &lines[..begin],
        &lines[arrive..=arrive],
        &lines[begin..arrive],
        &lines[arrive + 1..],
    ]
    .concat();
    assert!(is_seen(&text.with(&earlier)), "the arrival may be earlier");
}
