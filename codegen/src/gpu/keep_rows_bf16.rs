//! `keep-rows-bf16`: rows that products read are kept in bf16 (the loop level).
//!
//! Products on tensor cores round their factors. A row that is computed in one launch and multiplied in the next is read by every
//! block of columns, and rounded by each. Kept in bf16, it is rounded once, by who computes it, and each block reads half the bytes.
//! The bits are the same: it is the same number that is rounded.
//!
//! ```mlir
//! %h = ragged.scratch : memref<?x2048xf32>
//! …
//! %p = ragged.products %h () -> (0) with %w … copies [4, 4] … : memref<?x2048xf32>, …
//! // becomes
//! %h = ragged.scratch bf16 : memref<?x2048xf32>
//! …
//! %p = ragged.products %h () -> (0) with %w … copies [8, 4] … : memref<?x2048xf32>, …
//! ```
//!
//! That is done for all left sides of a tile or for none. What others read too, such as a residual or a result, is stored twice: as it
//! is, and in bf16. Rows of an operand that is a value of differing length, which are many, are rounded by a launch before the
//! others where 3 blocks of columns or more read them; fewer would read hardly less than that launch moves.
//!
//! Rows have a multiple of 8 elements, and who computes them stores 4 neighbours at once; elsewhere they stay as they are. The
//! largest size of the tile has its buffers chosen anew, as there is more room.
//!
//! Requires: what `plan-kernels-for-gpu` leaves. Leaves: the same; without `--precision bf16` as it is.

use std::collections::HashMap;

use cohort_abi::gpu::Precision;
use cohort_abi::manifest::Elem;
use cohort_dialects::builder::{
    Builder, Op, Val, operands_of, operations_of, region_with_block, result_of,
};
use cohort_dialects::keys;
use cohort_passes::kernel::affine::Affine;
use cohort_passes::kernel::loop_level::{Memory, OperandKind, is_declaration, to_affine, to_map};
use cohort_passes::pass::{Failed, Outcome, PassInfo};
use cohort_passes::support::ir::{
    ValueKey, blocks_of, defining_op, erase, integer_attribute, integers, key, nested_ops,
    set_attribute, set_operand, top_level, users_of,
};
use melior::{
    Context,
    ir::{
        Attribute, OperationRef, ValueLike, attribute::DenseI64ArrayAttribute,
        operation::OperationLike,
    },
};

use super::lower_kernels_to_gpu::launches;
use super::lower_kernels_to_gpu::ops::{THREADS, WIDE};
use super::neighbours::are_neighbours;
use super::plan_kernels_for_gpu::buffers;
use super::precision;

/// The pass `keep-rows-bf16`.
pub const PASS: PassInfo = PassInfo {
    name: "keep-rows-bf16",
    summary: "Keep rows that products read in bf16 (the loop level)",
    description: include_str!("keep_rows_bf16.rs"),
    run,
};

/// Elements of a copy of 16 bytes.
const AT_ONCE: i64 = 8;

/// Blocks of columns that read an operand's rows, from which on they are rounded by a launch of their own.
const READERS: i64 = 3;

/// Elements of a block of that launch, at least.
const ELEMENTS: i64 = 1024;

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    let mut operations = top_level(module).into_iter();
    let Some(gpu) = operations.find(|op| Op::GpuModule.is(*op)) else {
        return Ok(());
    };
    let kernels = top_level(gpu).into_iter();
    for kernel in kernels.filter(|op| Op::RaggedKernel.is(*op)) {
        let tiles = nested_ops(kernel).into_iter().filter(|op| is_bf16(*op));
        let tiles: Vec<_> = tiles.collect();
        if tiles.is_empty() {
            continue;
        }
        let mut keeper = Keeper {
            context,
            kernel,
            readers: readers(kernel)?,
            kept: HashMap::new(),
            rounded: vec![],
        };
        let mut changed = vec![];
        for tile in tiles {
            if keeper.tile(tile) {
                changed.push(tile);
            }
        }
        keeper.round_operands();
        keeper.erase_unread();
        choose_buffers(context, kernel, &changed)?;
    }
    Ok(())
}

fn is_bf16(op: OperationRef<'_, '_>) -> bool {
    let rounded = op.attribute(&keys::ROUNDED).ok().and_then(precision::read);
    Op::RaggedTiles.is(op) && rounded == Some(Precision::Bf16)
}

fn products_of<'c>(tile: OperationRef<'c, 'c>) -> Vec<OperationRef<'c, 'c>> {
    let nested = nested_ops(tile).into_iter();
    nested.filter(|op| Op::RaggedProducts.is(*op)).collect()
}

/// How many blocks of columns read each left side, where launches have the most rows.
fn readers(kernel: OperationRef<'_, '_>) -> Result<HashMap<ValueKey, i64>, Failed> {
    let mut readers = HashMap::new();
    for tile in launches::tiles(kernel)? {
        let size = tile.largest.map_or(tile.large.0, |(size, _)| size);
        for products in products_of(tile.op) {
            *readers.entry(key(operands_of(products)[0])).or_insert(0) +=
                size.column_blocks(tile.gates());
        }
    }
    Ok(readers)
}

/// Keeps rows of one kernel in bf16.
struct Keeper<'c> {
    context: &'c Context,
    kernel: OperationRef<'c, 'c>,
    /// Blocks of columns by left side.
    readers: HashMap<ValueKey, i64>,
    /// Scratch in bf16 for memory.
    kept: HashMap<ValueKey, Val<'c>>,
    /// Operands that are rounded first, and where to.
    rounded: Vec<(Val<'c>, Val<'c>)>,
}

impl<'c> Keeper<'c> {
    /// Whether a tile's left sides can be kept, which they are then.
    fn tile(&mut self, tile: OperationRef<'c, 'c>) -> bool {
        let products = products_of(tile);
        let can_keep =
            |op: &OperationRef<'c, 'c>| self.can_read(*op) && self.can_keep(operands_of(*op)[0]);
        if !products.iter().all(can_keep) {
            return false;
        }
        for op in products {
            let left = self.keep(operands_of(op)[0]);
            set_operand(op, 0, left);
            let mut copies = integers(op, keys::COPIES);
            copies[0] = AT_ONCE;
            set_attribute(op, keys::COPIES, self.numbers(&copies));
        }
        true
    }

    fn numbers(&self, values: &[i64]) -> Attribute<'c> {
        DenseI64ArrayAttribute::new(self.context, values).into()
    }

    /// Whether products copy neighbours of 16 bytes of the rows that they read.
    fn can_read(&self, products: OperationRef<'c, 'c>) -> bool {
        let address = products.attribute(&keys::LEFT_ADDRESS).ok();
        let Some(address) = address.and_then(to_affine) else {
            return false;
        };
        let mut strides = address.terms.iter().map(|(_, stride)| *stride);
        integer_attribute(products, keys::K).is_some_and(|k| k % AT_ONCE == 0)
            && address.constant % AT_ONCE == 0
            && strides.all(|stride| stride % AT_ONCE == 0)
    }

    fn can_keep(&self, left: Val<'c>) -> bool {
        let Some(declaration) = defining_op(left) else {
            return false;
        };
        if !Memory::of(left).is_some_and(|memory| memory.rows && memory.elements() % AT_ONCE == 0) {
            return false;
        }
        match Op::of(declaration) {
            Some(Op::RaggedScratch | Op::RaggedResult) => {
                users_of(left).into_iter().all(|op| match Op::of(op) {
                    Some(Op::RaggedLoad) => true,
                    Some(Op::RaggedProducts) => key(operands_of(op)[1]) != key(left),
                    Some(Op::RaggedStore) => stores_by_four(op),
                    _ => false,
                })
            }
            Some(Op::RaggedOperand) => {
                let kind = integer_attribute(declaration, keys::KIND);
                kind.and_then(OperandKind::from_number) == Some(OperandKind::Expanded)
                    && self.readers.get(&key(left)) >= Some(&READERS)
            }
            _ => false,
        }
    }

    /// The scratch in bf16 for some memory.
    fn keep(&mut self, left: Val<'c>) -> Val<'c> {
        if self.kept.values().any(|kept| key(*kept) == key(left)) {
            return left;
        }
        if let Some(kept) = self.kept.get(&key(left)) {
            return *kept;
        }
        let declaration = defining_op(left);
        let place = declaration
            .filter(|op| Op::RaggedScratch.is(*op))
            .or_else(|| self.first_launch());
        let Some(b) = place.and_then(|op| Builder::before(self.context, op)) else {
            unreachable!("products are in a launch of the kernel")
        };
        let bf16 = [(keys::BF16, Attribute::unit(self.context))];
        let kept = b.value_with(Op::RaggedScratch, &[], left.r#type(), &bf16);
        match declaration.and_then(Op::of) {
            Some(Op::RaggedOperand) => self.rounded.push((left, kept)),
            _ => self.store_too(left, kept),
        }
        self.kept.insert(key(left), kept);
        kept
    }

    /// Stores what is stored to some memory to its twin, too.
    fn store_too(&self, memory: Val<'c>, twin: Val<'c>) {
        for store in users_of(memory) {
            let (true, Some(b)) = (
                Op::RaggedStore.is(store),
                Builder::before(self.context, store),
            ) else {
                continue;
            };
            let address = store.attribute(&keys::ADDRESS).ok();
            let address: Vec<_> = address
                .map(|map| (keys::ADDRESS, map))
                .into_iter()
                .collect();
            let operands = [operands_of(store)[0], twin];
            b.op(Op::RaggedStore, &operands, &[], &address, vec![]);
        }
    }

    /// The first operation of the kernel that declares nothing.
    fn first_launch(&self) -> Option<OperationRef<'c, 'c>> {
        let mut operations = blocks_of(self.kernel).into_iter().flat_map(operations_of);
        operations.find(|op| !is_declaration(*op))
    }

    /// Writes the launch that rounds rows of operands, one stage for all of a width.
    fn round_operands(&self) {
        let Some(b) = self
            .first_launch()
            .and_then(|op| Builder::before(self.context, op))
        else {
            return;
        };
        let width = |value: Val<'c>| Memory::of(value).map_or(1, |memory| memory.elements());
        let mut widths: Vec<i64> = self.rounded.iter().map(|(from, _)| width(*from)).collect();
        widths.sort_unstable();
        widths.dedup();
        let Some(widest) = widths.last() else { return };
        let rows = (ELEMENTS / widest).clamp(1, THREADS);
        let (stages, block) = region_with_block(&[], b.location);
        let inside = Builder::at_end(self.context, block, b.location);
        for elements in widths {
            let (body, block) = region_with_block(&[], b.location);
            let inner = Builder::at_end(self.context, block, b.location);
            let map = to_map(self.context, &Affine::strided(0, &[1]), 1);
            let address = [(keys::ADDRESS, b.map(map))];
            for (from, to) in self
                .rounded
                .iter()
                .filter(|(from, _)| width(*from) == elements)
            {
                let value = inner.value_with(Op::RaggedLoad, &[*from], b.f32(), &address);
                inner.op(Op::RaggedStore, &[value, *to], &[], &address, vec![]);
            }
            inner.ragged_yield(&[]);
            let attributes = [
                (keys::OVER, self.numbers(&[elements])),
                (keys::BY, b.i64_attr(WIDE)),
            ];
            inside.op(Op::RaggedNest, &[], &[], &attributes, vec![body]);
        }
        let attributes = [(keys::OF, b.i64_attr(rows)), (keys::TILE, b.i64_attr(1))];
        b.op(Op::RaggedBlocks, &[], &[], &attributes, vec![stages]);
    }

    /// Erases scratch that nobody reads any more, with the stores to it.
    fn erase_unread(&self) {
        let declarations = blocks_of(self.kernel).into_iter().flat_map(operations_of);
        for scratch in declarations.filter(|op| Op::RaggedScratch.is(*op)) {
            let memory = result_of(scratch, 0);
            let users = users_of(memory);
            if self.kept.contains_key(&key(memory))
                && users.iter().all(|op| Op::RaggedStore.is(*op))
            {
                users.into_iter().for_each(erase);
                erase(scratch);
            }
        }
    }
}

/// Whether a store takes four neighbours at once where it is lowered.
fn stores_by_four(store: OperationRef<'_, '_>) -> bool {
    let Some(stage) = store.parent_operation() else {
        return false;
    };
    let takes = match Op::of(stage) {
        Some(Op::RaggedNest) => integer_attribute(stage, keys::BY) == Some(WIDE),
        Some(Op::RaggedTiles) => is_bf16(stage),
        _ => false,
    };
    let over = integers(stage, keys::OVER);
    let address = store.attribute(&keys::ADDRESS).ok().and_then(to_affine);
    takes
        && over.last().is_some_and(|last| last % WIDE == 0)
        && address.is_some_and(|address| are_neighbours(&over, &address, Elem::F32, WIDE))
}

/// Chooses the buffers of the largest size anew where rows are kept.
fn choose_buffers<'c>(
    context: &'c Context,
    kernel: OperationRef<'c, 'c>,
    tiles: &[OperationRef<'c, 'c>],
) -> Outcome {
    for tile in launches::tiles(kernel)? {
        let Some((largest, _)) = tile.largest.filter(|_| tiles.contains(&tile.op)) else {
            continue;
        };
        let segments = tile.chains.iter().flat_map(|chain| &chain.segments);
        let terms = segments.map(|segment| segment.k);
        if let Some(chosen) = buffers(largest, tile.gates(), terms, tile.small.depth) {
            let numbers = DenseI64ArrayAttribute::new(context, &chosen.numbers());
            set_attribute(tile.op, keys::LARGEST, numbers.into());
        }
    }
    Ok(())
}
