//! Writes the function that runs a flush; `abi/src/gpu/flush.rs` has the layout of what it reads.

use cohort_abi::gpu::GpuFlush;
use cohort_abi::gpu::flush::{HEADER_WORDS, LAUNCH_WORDS, STEP_WORDS};
use cohort_abi::manifest::Elem;
use cohort_dialects::attributes::GpuDim;
use cohort_dialects::builder::{
    Builder, CmpiPredicate, Op, Val, arguments_of, region_with_block, results_of,
};
use cohort_dialects::keys;
use melior::{
    Context,
    ir::{
        Region, Type,
        attribute::{StringAttribute, TypeAttribute},
        r#type::FunctionType,
    },
};

use super::memory::{Memory, Run};
use super::{BLOCK_OF, GRID_ARRIVE, GRID_WAIT, SHARED_FROM};
use crate::emit::{Emitter, Width};
use crate::gpu::lower_kernels_to_gpu::function::add_kernel;
use crate::gpu::lower_kernels_to_gpu::ops::{
    THREADS, barrier, below, block, commit_copies, thread, wait_for_copies, when,
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

/// Adds the function, and declares what it calls, at the end of the `gpu.module`.
pub fn write<'c>(
    context: &'c Context,
    module: &Builder<'c>,
    flush: &GpuFlush,
    (functions, memory): (&[Run], &Memory),
) {
    let (pointer, in_shared) = (module.pointer_in(1), module.pointer_in(3));
    let i64 = module.i64();
    declare(module, GRID_ARRIVE, &[pointer], None);
    declare(module, GRID_WAIT, &[pointer, i64], None);
    for (function, from) in flush.functions.iter().zip(&memory.from) {
        let types = [in_shared, i64, i64];
        let block_of = Some((&function[..], *from));
        declare(module, &block_function(function), &types, block_of);
    }
    let shared = i64::from(flush.shared_bytes);
    let threads = flush.threads as i32;
    add_kernel(
        (context, module),
        &flush.symbol,
        (&[pointer], threads),
        shared,
        |e, arguments, shared| {
            let Some(shared) = shared else { return };
            Writer {
                functions,
                memory,
                shared,
                schedule: arguments[0],
                argument_bytes: i64::from(flush.argument_bytes),
            }
            .steps(e);
        },
    );
}

/// The function that runs one block of a kernel's function.
fn block_function(function: &str) -> String {
    format!("{function}$block")
}

/// Declares a function; one that runs a block, with whose block it is and where its shared memory begins.
fn declare<'c>(
    module: &Builder<'c>,
    symbol: &str,
    types: &[Type<'c>],
    block_of: Option<(&str, i64)>,
) {
    let context = module.context();
    let ty = FunctionType::new(context, types, &[]).into();
    let private = StringAttribute::new(context, "private").into();
    let mut attributes = vec![
        (keys::SYM_NAME, StringAttribute::new(context, symbol).into()),
        (keys::FUNCTION_TYPE, TypeAttribute::new(ty).into()),
        (keys::SYM_VISIBILITY, private),
    ];
    if let Some((function, from)) = block_of {
        attributes.push((BLOCK_OF, module.symbol(function)));
        if from > 0 {
            attributes.push((SHARED_FROM, module.i64_attr(from)));
        }
    }
    module.op(Op::FuncFunc, &[], &[], &attributes, vec![Region::new()]);
}

fn call<'c>(e: &Emitter<'c>, symbol: &str, operands: &[Val<'c>]) {
    e.b.func_call(symbol, operands, &[]);
}

struct Writer<'a, 'c> {
    functions: &'a [Run],
    memory: &'a Memory,
    shared: Val<'c>,
    schedule: Val<'c>,
    /// Of an order.
    argument_bytes: i64,
}

/// The parts of a schedule, and which block this is.
#[derive(Clone, Copy)]
struct Parts<'c> {
    records: Val<'c>,
    launches: Val<'c>,
    me: Val<'c>,
    all_blocks: Val<'c>,
}

impl<'c> Writer<'_, 'c> {
    fn steps(&self, e: &Emitter<'c>) {
        let word = |at: i64| e.load_u32(e.offset_by(self.schedule, at * WORD));
        let (all_blocks, steps) = (word(1), word(2));
        let records = e.offset_by(self.schedule, HEADER_WORDS as i64 * WORD);
        let parts = Parts {
            records,
            launches: e.offset(records, e.times(steps, STEP_WORDS as i64 * WORD)),
            me: block(e, GpuDim::X),
            all_blocks,
        };
        self.hold_nothing(e);
        self.order_first(e, parts, e.int(0));
        barrier(e);
        e.for_loop(e.int(0), steps, 1, &[], |e, step, _| {
            let is_later = e.b.cmpi(CmpiPredicate::Sgt, step, e.int(0));
            e.if_then(is_later, |e| {
                call(e, GRID_WAIT, &[self.schedule, e.mul(step, all_blocks)]);
            });
            self.blocks(e, parts);
            let next = e.add(step, e.int(1));
            when(e, below(e, next, steps), |e| {
                call(e, GRID_ARRIVE, &[self.schedule]);
                self.order_first(e, parts, next);
            });
            vec![]
        });
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
    fn blocks(&self, e: &Emitter<'c>, parts: Parts<'c>) {
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
        let next = inner.add(at, parts.all_blocks);
        let other = inner.sub(inner.int(self.bytes_of_order()), order);
        when(&inner, below(&inner, next, blocks), |e| {
            let of = [Order::Launch, Order::Begin].map(|word| self.read(e, order, word));
            self.order(e, parts, other, next, of);
        });
        barrier(&inner);
        inner.b.scf_yield(&[other]);
        e.b.scf_for([parts.me, blocks, parts.all_blocks], &[e.int(0)], region);
    }

    // Orders.

    fn bytes_of_order(&self) -> i64 {
        ORDER_BYTES + self.argument_bytes
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
        let record = e.offset(parts.records, e.times(step, STEP_WORDS as i64 * WORD));
        let first = e.load_u32(record);
        let blocks = e.load_u32(e.offset_by(record, WORD));
        let order = e.int(0);
        self.say(e, order, &[(Order::Blocks, blocks)]);
        when(e, below(e, parts.me, blocks), |e| {
            self.order(e, parts, order, parts.me, [first, e.int(0)]);
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
        let words = e.int(self.argument_bytes / WORD);
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
                call(&inner, &block_function(&run.function.symbol), &operands);
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
