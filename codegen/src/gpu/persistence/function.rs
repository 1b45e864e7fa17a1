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
use super::{BLOCK_OF, GRID_BARRIER, SHARED_FROM};
use crate::emit::{Emitter, Width};
use crate::gpu::lower_kernels_to_gpu::function::add_kernel;
use crate::gpu::lower_kernels_to_gpu::ops::{barrier, block, commit_copies, wait_for_copies};
use crate::gpu::lower_kernels_to_gpu::site::memory;

/// Bytes of a word.
const WORD: i64 = 4;

/// Adds the function, and declares what it calls, at the end of the `gpu.module`.
pub fn write<'c>(
    context: &'c Context,
    module: &Builder<'c>,
    flush: &GpuFlush,
    (functions, memory): (&[Run], &Memory),
) {
    let pointer = module.pointer_in(1);
    let i64 = module.i64();
    declare(module, GRID_BARRIER, &[pointer, i64], None);
    for (function, from) in flush.functions.iter().zip(&memory.from) {
        let types = [pointer, i64, i64];
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
            Writer {
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
    shared: Option<Val<'c>>,
    schedule: Val<'c>,
}

impl<'c> Writer<'_, 'c> {
    fn steps(&self, e: &Emitter<'c>) {
        let word = |at: i64| e.load_u32(e.offset_by(self.schedule, at * WORD));
        let (all_blocks, steps) = (word(1), word(2));
        let records = e.offset_by(self.schedule, HEADER_WORDS as i64 * WORD);
        let launches = e.offset(records, e.times(steps, STEP_WORDS as i64 * WORD));
        let me = block(e, GpuDim::X);
        self.hold_nothing(e);
        e.for_loop(e.int(0), steps, 1, &[], |e, step, _| {
            let is_later = e.b.cmpi(CmpiPredicate::Sgt, step, e.int(0));
            e.if_then(is_later, |e| {
                call(e, GRID_BARRIER, &[self.schedule, e.mul(step, all_blocks)]);
            });
            let record = e.offset(records, e.times(step, STEP_WORDS as i64 * WORD));
            let first = e.load_u32(record);
            let blocks = e.load_u32(e.offset_by(record, WORD));
            self.blocks(e, [me, blocks, all_blocks], launches, first);
            vec![]
        });
    }

    /// Says of each function whose weights stay that none are there. Every thread does.
    fn hold_nothing(&self, e: &Emitter<'c>) {
        let Some(shared) = self.shared else { return };
        let s = memory(e, true);
        for (run, from) in self.functions.iter().zip(&self.memory.from) {
            if run.is_resident {
                let nothing = e.b.integer(0, e.i32);
                let word = s.offset_by(shared, from + run.held_at.unwrap_or(0));
                s.store_elem(nothing, word, Elem::I32, Width::Scalar, None);
            }
        }
    }

    /// Of a step's blocks, those that this block computes.
    fn blocks(
        &self,
        e: &Emitter<'c>,
        [me, blocks, all_blocks]: [Val<'c>; 3],
        launches: Val<'c>,
        first: Val<'c>,
    ) {
        let types = [e.i64; 3];
        let (region, body) = region_with_block(&types, e.b.location);
        let inner = e.within(body);
        let arguments = arguments_of(body);
        let [at, launch, begin] = arguments[..] else {
            unreachable!("a block with three arguments");
        };
        let [launch, begin] = find_launch(&inner, launches, at, [launch, begin]);
        let record = inner.offset(launches, inner.times(launch, LAUNCH_WORDS as i64 * WORD));
        let word = |word: i64| inner.load_u32(inner.offset_by(record, word * WORD));
        let columns = word(2);
        let place = inner.sub(at, begin);
        let x = inner.b.remui(place, columns);
        let y = inner.b.divui(place, columns);
        let list = inner.offset(self.schedule, word(3));
        self.dispatch(&inner, word(0), [list, x, y]);
        commit_copies(&inner);
        wait_for_copies(&inner);
        barrier(&inner);
        inner.b.scf_yield(&[launch, begin]);
        e.b.scf_for([me, blocks, all_blocks], &[first, e.int(0)], region);
    }

    /// Runs a block of the function of that number.
    fn dispatch(&self, e: &Emitter<'c>, function: Val<'c>, operands: [Val<'c>; 3]) {
        let index = Type::index(e.b.context());
        let function = e.b.index_cast(function, index);
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
