//! Writes the function that runs a flush; `abi/src/gpu/flush.rs` has the layout of what it reads.

use cohort_abi::gpu::flush::{
    CLUSTER_BLOCKS, CLUSTER_WORDS, HEADER_WORDS, LAUNCH_WORDS, STEP_WORDS,
};
use cohort_abi::manifest::Elem;
use cohort_dialects::attributes::GpuDim;
use cohort_dialects::builder::{
    Builder, CmpiPredicate, Op, Val, arguments_of, region_with_block, results_of,
};
use cohort_dialects::keys::{self, Key};
use melior::{
    Context,
    ir::{
        Attribute, Region, Type,
        attribute::{StringAttribute, TypeAttribute},
        r#type::FunctionType,
    },
};

use super::memory::{Memory, Run};
use super::{
    BLOCK_OF, CLUSTER_ARRIVE, CLUSTER_WAIT, GRID_ARRIVE, GRID_WAIT, IN_CLUSTER, SHARED_FROM,
};
use crate::emit::{Emitter, Width};
use crate::gpu::lower_kernels_to_gpu::function::{Block, add_kernel};
use crate::gpu::lower_kernels_to_gpu::ops::{
    THREADS, barrier, below, block, commit_copies, divide, thread, wait_for_copies, when,
};
use crate::gpu::lower_kernels_to_gpu::site::memory;

/// Bytes of a word.
const WORD: i64 = 4;

/// What a block is to compute, in its shared memory: words, then its arguments.
#[derive(Clone, Copy)]
enum Order {
    /// The number of the launch, and the block of the step that it begins with.
    Launch,
    Begin,
    Function,
    /// The block's place in the launch's grid.
    X,
    Y,
    /// The blocks of the step.
    Blocks,
}

/// Bytes of an order before its arguments.
const ORDER_BYTES: i64 = 32;

/// Bytes of the double buffer of orders, for functions of at most `arguments` arguments: one is executed while the next
/// is written.
pub fn order_bytes(arguments: usize) -> i64 {
    2 * (ORDER_BYTES + argument_bytes(arguments))
}

/// Bytes of an order's arguments, a multiple of 16.
pub fn argument_bytes(arguments: usize) -> i64 {
    8 * arguments.next_multiple_of(2) as i64
}

/// A function that runs a flush.
pub struct Flush {
    pub symbol: &'static str,
    pub threads: u32,
    /// Of an order.
    pub argument_bytes: i64,
    /// Whether clusters have steps of their own.
    pub is_clustered: bool,
}

impl Flush {
    /// Adds the function, and declares what it calls, at the end of the `gpu.module`.
    pub fn write<'c>(
        &self,
        context: &'c Context,
        module: &Builder<'c>,
        (functions, memory): (&[Run], &Memory),
    ) {
        let (pointer, in_shared) = (module.pointer_in(1), module.pointer_in(3));
        let i64 = module.i64();
        match self.is_clustered {
            false => {
                declare(module, GRID_ARRIVE, &[pointer], vec![]);
                declare(module, GRID_WAIT, &[pointer, i64], vec![]);
            }
            true => {
                declare(module, CLUSTER_ARRIVE, &[], vec![]);
                declare(module, CLUSTER_WAIT, &[], vec![]);
            }
        }
        for (run, from) in functions.iter().zip(&memory.from) {
            let types = [in_shared, i64, i64];
            let symbol = &run.function.symbol;
            let mut attributes = vec![(BLOCK_OF, module.symbol(symbol))];
            if *from > 0 {
                attributes.push((SHARED_FROM, module.i64_attr(*from)));
            }
            if self.is_clustered {
                attributes.push((IN_CLUSTER, module.unit_attr()));
            }
            declare(module, &self.block_function(symbol), &types, attributes);
        }
        add_kernel(
            (context, module),
            self.symbol,
            &[pointer],
            Block::new(self.threads.into(), memory.bytes),
            |e, arguments, shared| {
                let Some(shared) = shared else { return };
                Writer {
                    flush: self,
                    functions,
                    memory,
                    shared,
                    schedule: arguments[0],
                }
                .steps(e);
            },
        );
    }

    /// The function that runs one block of a kernel's function.
    fn block_function(&self, function: &str) -> String {
        let place = if self.is_clustered {
            "cluster"
        } else {
            "block"
        };
        format!("{function}${place}")
    }
}

/// Declares a function.
fn declare<'c>(
    module: &Builder<'c>,
    symbol: &str,
    types: &[Type<'c>],
    more: Vec<(Key<'_>, Attribute<'c>)>,
) {
    let context = module.context();
    let ty = FunctionType::new(context, types, &[]).into();
    let private = StringAttribute::new(context, "private").into();
    let mut attributes = vec![
        (keys::SYM_NAME, StringAttribute::new(context, symbol).into()),
        (keys::FUNCTION_TYPE, TypeAttribute::new(ty).into()),
        (keys::SYM_VISIBILITY, private),
    ];
    attributes.extend(more);
    module.op(Op::FuncFunc, &[], &[], &attributes, vec![Region::new()]);
}

fn call<'c>(e: &Emitter<'c>, symbol: &str, operands: &[Val<'c>]) {
    e.b.func_call(symbol, operands, &[]);
}

struct Writer<'a, 'c> {
    flush: &'a Flush,
    functions: &'a [Run],
    memory: &'a Memory,
    shared: Val<'c>,
    schedule: Val<'c>,
}

/// The parts of a schedule, and which block this is.
#[derive(Clone, Copy)]
struct Parts<'c> {
    records: Val<'c>,
    launches: Val<'c>,
    /// Steps of the grid, and all that this block has.
    of_grid: Val<'c>,
    steps: Val<'c>,
    grid: Team<'c>,
    cluster: Option<Cluster<'c>>,
}

/// The blocks that share a step, and the number of this one among them.
#[derive(Clone, Copy)]
struct Team<'c> {
    me: Val<'c>,
    blocks: Val<'c>,
}

/// Where clusters have steps of their own.
#[derive(Clone, Copy)]
struct Cluster<'c> {
    team: Team<'c>,
    /// From the number of a step of this block to that of its record.
    shift: Val<'c>,
}

impl<'c> Parts<'c> {
    /// Whether all blocks of the grid share a step, if that is not known.
    fn is_of_grid(&self, e: &Emitter<'c>, step: Val<'c>) -> Option<Val<'c>> {
        self.cluster.map(|_| below(e, step, self.of_grid))
    }

    /// Who shares a step.
    fn team(&self, e: &Emitter<'c>, step: Val<'c>) -> Team<'c> {
        match (self.cluster, self.is_of_grid(e, step)) {
            (Some(cluster), Some(is_of_grid)) => Team {
                me: e.select(is_of_grid, self.grid.me, cluster.team.me),
                blocks: e.select(is_of_grid, self.grid.blocks, cluster.team.blocks),
            },
            _ => self.grid,
        }
    }

    /// The number of a step's record.
    fn record(&self, e: &Emitter<'c>, step: Val<'c>) -> Val<'c> {
        match (self.cluster, self.is_of_grid(e, step)) {
            (Some(cluster), Some(is_of_grid)) => {
                e.select(is_of_grid, step, e.add(step, cluster.shift))
            }
            _ => step,
        }
    }
}

impl<'c> Writer<'_, 'c> {
    fn steps(&self, e: &Emitter<'c>) {
        let parts = self.parts(e);
        self.hold_nothing(e);
        self.order_first(e, parts, e.int(0));
        barrier(e);
        e.for_loop(e.int(0), parts.steps, 1, &[], |e, step, _| {
            let is_later = e.b.cmpi(CmpiPredicate::Sgt, step, e.int(0));
            e.if_then(is_later, |e| {
                // The barrier is behind the step before.
                let is_of_grid = parts.cluster.map(|_| e.at_least(parts.of_grid, step));
                at_barrier(e, is_of_grid, |e, is_of_grid| match is_of_grid {
                    true => {
                        let arrivals = e.mul(step, parts.grid.blocks);
                        call(e, GRID_WAIT, &[self.schedule, arrivals]);
                    }
                    false => call(e, CLUSTER_WAIT, &[]),
                });
            });
            self.blocks(e, parts, parts.team(e, step));
            let next = e.add(step, e.int(1));
            when(e, below(e, next, parts.steps), |e| {
                let is_of_grid = parts.is_of_grid(e, step);
                at_barrier(e, is_of_grid, |e, is_of_grid| match is_of_grid {
                    true => call(e, GRID_ARRIVE, &[self.schedule]),
                    false => call(e, CLUSTER_ARRIVE, &[]),
                });
                self.order_first(e, parts, next);
            });
            vec![]
        });
    }

    /// Reads the header, and what this block's cluster has.
    fn parts(&self, e: &Emitter<'c>) -> Parts<'c> {
        let word = |at: i64| e.load_u32(e.offset_by(self.schedule, at * WORD));
        let [blocks, of_grid, clusters, all_steps] = [1, 2, 3, 4].map(word);
        let me = block(e, GpuDim::X);
        let records = e.offset_by(self.schedule, HEADER_WORDS as i64 * WORD);
        let of_clusters = e.offset(records, e.times(all_steps, STEP_WORDS as i64 * WORD));
        let mut parts = Parts {
            records,
            launches: e.offset(of_clusters, e.times(clusters, CLUSTER_WORDS as i64 * WORD)),
            of_grid,
            steps: of_grid,
            grid: Team { me, blocks },
            cluster: None,
        };
        if !self.flush.is_clustered {
            return parts;
        }
        let (number, rank) = divide(e, me, i64::from(CLUSTER_BLOCKS));
        let has_own = e.b.cmpi(CmpiPredicate::Sgt, clusters, e.int(0));
        // Where there are no clusters, words of something else are read, and not used.
        let number = e.select(has_own, number, e.int(0));
        let own = e.offset(of_clusters, e.times(number, CLUSTER_WORDS as i64 * WORD));
        let (first, steps) = (e.load_u32(own), e.load_u32(e.offset_by(own, WORD)));
        parts.steps = e.add(of_grid, e.select(has_own, steps, e.int(0)));
        parts.cluster = Some(Cluster {
            team: Team {
                me: rank,
                blocks: e.int(i64::from(CLUSTER_BLOCKS)),
            },
            shift: e.sub(first, of_grid),
        });
        parts
    }

    /// Says of each function whose weights stay that none are there. Every thread does.
    fn hold_nothing(&self, e: &Emitter<'c>) {
        let s = memory(e, true);
        for (run, from) in self.functions.iter().zip(&self.memory.from) {
            if run.is_resident {
                let nothing = e.b.integer(0, e.i32);
                let word = s.offset_by(self.shared, from + run.held_at.unwrap_or(0));
                s.store_elem(nothing, word, Elem::I32, Width::Scalar, None);
            }
        }
    }

    /// Of a step's blocks, those that this block computes. The first one is ordered.
    fn blocks(&self, e: &Emitter<'c>, parts: Parts<'c>, team: Team<'c>) {
        let blocks = self.read(e, e.int(0), Order::Blocks);
        let types = [e.i64; 2];
        let (region, body) = region_with_block(&types, e.b.location);
        let inner = e.within(body);
        let arguments = arguments_of(body);
        let [at, order] = arguments[..] else {
            unreachable!("a block with two arguments");
        };
        self.dispatch(&inner, order);
        commit_copies(&inner);
        wait_for_copies(&inner);
        let next = inner.add(at, team.blocks);
        let other = inner.sub(inner.int(self.bytes_of_order()), order);
        when(&inner, below(&inner, next, blocks), |e| {
            let of = [Order::Launch, Order::Begin].map(|word| self.read(e, order, word));
            self.order(e, parts, other, next, of);
        });
        barrier(&inner);
        inner.b.scf_yield(&[other]);
        e.b.scf_for([team.me, blocks, team.blocks], &[e.int(0)], region);
    }

    // Orders.

    fn bytes_of_order(&self) -> i64 {
        ORDER_BYTES + self.flush.argument_bytes
    }

    /// The address of a byte within an order; `order` is the order's offset in the double buffer.
    fn at(&self, e: &Emitter<'c>, order: Val<'c>, bytes: i64) -> Val<'c> {
        let s = memory(e, true);
        s.offset_by(s.offset(self.shared, order), self.memory.orders + bytes)
    }

    fn read(&self, e: &Emitter<'c>, order: Val<'c>, word: Order) -> Val<'c> {
        memory(e, true).load_u32(self.at(e, order, word as i64 * WORD))
    }

    /// Writes words of an order. All threads store the same values, so there is no divergent branch.
    fn say(&self, e: &Emitter<'c>, order: Val<'c>, words: &[(Order, Val<'c>)]) {
        for (word, value) in words {
            let value = e.b.trunci(*value, e.i32);
            let at = self.at(e, order, *word as i64 * WORD);
            memory(e, true).store_elem(value, at, Elem::I32, Width::Scalar, None);
        }
    }

    /// Orders the first block that this one has of a step, if it has one.
    fn order_first(&self, e: &Emitter<'c>, parts: Parts<'c>, step: Val<'c>) {
        let me = parts.team(e, step).me;
        let step = parts.record(e, step);
        let record = e.offset(parts.records, e.times(step, STEP_WORDS as i64 * WORD));
        let first = e.load_u32(record);
        let blocks = e.load_u32(e.offset_by(record, WORD));
        let order = e.int(0);
        self.say(e, order, &[(Order::Blocks, blocks)]);
        when(e, below(e, me, blocks), |e| {
            self.order(e, parts, order, me, [first, e.int(0)]);
        });
    }

    /// Writes the order for a block of the step, which belongs to this launch or one behind it.
    fn order(
        &self,
        e: &Emitter<'c>,
        parts: Parts<'c>,
        order: Val<'c>,
        at: Val<'c>,
        from: [Val<'c>; 2],
    ) {
        let [launch, begin] = find_launch(e, parts.launches, at, from);
        let record = e.offset(parts.launches, e.times(launch, LAUNCH_WORDS as i64 * WORD));
        let word = |word: i64| e.load_u32(e.offset_by(record, word * WORD));
        let (function, columns) = (word(0), word(2));
        let list = e.offset(self.schedule, word(3));
        let words = e.int(self.flush.argument_bytes / WORD);
        e.for_loop(thread(e), words, THREADS, &[], |e, word, _| {
            let bytes = e.times(word, WORD);
            let value = e.load(e.offset(list, bytes), e.i32, 4);
            let to = memory(e, true).offset(self.at(e, order, ORDER_BYTES), bytes);
            memory(e, true).store_elem(value, to, Elem::I32, Width::Scalar, None);
            vec![]
        });
        // A division of 32 bits takes fewer instructions than one of 64.
        let [place, columns] = [e.sub(at, begin), columns].map(|wide| e.b.trunci(wide, e.i32));
        let x = e.b.extui(e.b.remui(place, columns), e.i64);
        let y = e.b.extui(e.b.divui(place, columns), e.i64);
        let words = [
            (Order::Launch, launch),
            (Order::Begin, begin),
            (Order::Function, function),
            (Order::X, x),
            (Order::Y, y),
        ];
        self.say(e, order, &words);
    }

    /// Runs the block that was ordered.
    fn dispatch(&self, e: &Emitter<'c>, order: Val<'c>) {
        let index = Type::index(e.b.context());
        let function = e.b.index_cast(self.read(e, order, Order::Function), index);
        let list = self.at(e, order, ORDER_BYTES);
        let [x, y] = [Order::X, Order::Y].map(|word| self.read(e, order, word));
        let operands = [list, x, y];
        let case = |run: Option<&Run>| {
            let (region, block) = region_with_block(&[], e.b.location);
            let inner = e.within(block);
            if let Some(run) = run {
                if self.memory.is_shared && !run.is_resident {
                    self.hold_nothing(&inner);
                }
                call(
                    &inner,
                    &self.flush.block_function(&run.function.symbol),
                    &operands,
                );
            }
            inner.b.scf_yield(&[]);
            region
        };
        let mut regions = vec![case(None)];
        regions.extend(self.functions.iter().map(|run| case(Some(run))));
        let numbers: Vec<i64> = (0..self.functions.len() as i64).collect();
        let cases = [(keys::CASES, e.b.i64s(&numbers))];
        e.b.op(Op::ScfIndexSwitch, &[function], &[], &cases, regions);
    }
}

/// Does what a barrier asks for: of the grid, or of the cluster where that is so.
fn at_barrier<'c>(e: &Emitter<'c>, is_of_grid: Option<Val<'c>>, act: impl Fn(&Emitter<'c>, bool)) {
    match is_of_grid {
        None => act(e, true),
        Some(is_of_grid) => e.if_else(is_of_grid, |e| act(e, true), |e| act(e, false)),
    }
}

/// The launch that a block of the step belongs to, and the block that it begins with, from those of a block
/// before it on.
fn find_launch<'c>(
    e: &Emitter<'c>,
    launches: Val<'c>,
    at: Val<'c>,
    from: [Val<'c>; 2],
) -> [Val<'c>; 2] {
    let types = [e.i64; 3];
    let (before, block) = region_with_block(&types[..2], e.b.location);
    let inner = e.within(block);
    let arguments = arguments_of(block);
    let bytes = inner.times(arguments[0], LAUNCH_WORDS as i64 * WORD);
    let record = inner.offset(launches, bytes);
    let blocks = inner.load_u32(inner.offset_by(record, WORD));
    let end = inner.add(arguments[1], blocks);
    let is_behind = inner.at_least(at, end);
    inner
        .b
        .scf_condition(is_behind, &[arguments[0], arguments[1], end]);
    let (after, block) = region_with_block(&types, e.b.location);
    let inner = e.within(block);
    let arguments = arguments_of(block);
    let next = [inner.add(arguments[0], inner.int(1)), arguments[2]];
    inner.b.scf_yield(&next);
    let found = results_of(e.b.scf_while(&from, &types, [before, after]));
    [found[0], found[1]]
}
