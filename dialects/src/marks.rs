//! The names of the attributes that the compiler leaves on operations of any dialect, to be read by later passes, by the
//! runtime's side of it, or by whoever reads the IR.

use crate::keys::Key;

/// The attribute of a phase that the program did not ask for, and to which instances come after different flushes.
pub const AFTER_DECISION: Key<'static> = Key::new("cfb.after_decision");

/// For each argument of a function the names of its unknown lengths; `_` has none.
pub const ARGUMENT_DIMS: Key<'static> = Key::new("cfb.argument_dims");

/// The types of an entry's arguments in the program, with their structure.
pub const ARGUMENT_TYPES: Key<'static> = Key::new("cfb.argument_types");

/// The names of an entry's arguments.
pub const ARGUMENTS: Key<'static> = Key::new("cfb.arguments");

/// What a function that runs one block names: the kernel's function.
pub const BLOCK_OF: Key<'static> = Key::new("cfb.block_of");

/// The caches of the processor that code is for, an attribute of the module: bytes of a core's first-level cache of data,
/// of its second-level cache, and of its part of the cache behind. It changes the sizes of blocks, and no bits.
pub const CACHES: Key<'static> = Key::new("cfb.caches");

/// Marks a division that has to be checked: a zero divisor is the instance's error, and the least
/// integer by -1 wraps to itself.
pub const CHECKED: Key<'static> = Key::new("cfb.checked");

/// The numbers of an entry's arguments, and of the fields of each constructor of a `cfb.adt`, that only choose rows of
/// parameters; the entry has it where all that an instance records follows from its structure.
pub const CHOOSES_ROWS: Key<'static> = Key::new("cfb.chooses_rows");

/// The attribute of a global that a kernel computes at load, which it names; see the dialect.
pub const COMPUTED: Key<'static> = Key::new("cfb.computed");

/// Whether tensors decide that a block runs, or what it runs on.
pub const CONTROL: Key<'static> = Key::new("cfb.control");

/// The static depth of a block.
pub const DEPTH: Key<'static> = Key::new("cfb.depth");

/// The function that runs for an instance.
pub const ENTRY: Key<'static> = Key::new("cfb.entry");

/// The attribute of a `cfb.map` whose elements are strands.
pub const STRANDS: Key<'static> = Key::new("cfb.fork");

/// The columns of a kernel's widest product, of those that take the same rows as another, or did before they were fused.
pub const FUSED_COLUMNS: Key<'static> = Key::new("cfb.fused_columns");

/// The `gpu.module`'s attribute: the function's description in JSON, a `GpuFlush`.
pub const GPU_FLUSH: Key<'static> = Key::new("cfb.gpu_flush");

/// The `gpu.module`'s attribute: a dictionary of each kernel's description in JSON.
pub const GPU_KERNELS: Key<'static> = Key::new("cfb.gpu_kernels");

/// The attribute of a gradient function.
pub const GRADIENT: Key<'static> = Key::new("cfb.gradient");

/// The attribute of a function that backward needs of its own: a [`GradientHelper`](crate::enums::GradientHelper).
pub const GRADIENT_HELPER: Key<'static> = Key::new("cfb.gradient_helper");

/// The attribute of a gradient function that names its kernel.
pub const GRADIENT_OF: Key<'static> = Key::new("cfb.gradient_of");

/// The attribute of a module whose blocks will be differentiated: [`Gradients`](crate::enums::Gradients).
pub const GRADIENTS: Key<'static> = Key::new("cfb.gradients");

/// The module's unit of scheduling, a [`Granularity`](crate::enums::Granularity), or a function's; `block` when it is not
/// there.
pub const GRANULARITY: Key<'static> = Key::new("cfb.granularity");

/// A tensor operation with this attribute stays in its own wave, although all that use it wait
/// longer than it has to; see `hoist-operators`.
pub const HOISTED: Key<'static> = Key::new("cfb.hoisted");

/// The discardable attribute of a lowered kernel's `func.func`.
pub const KERNEL: Key<'static> = Key::new("cfb.kernel");

/// The library that a function of the compiler's own is from, a text. Its functions follow from the target alone, so
/// programs have their code in common.
pub const LIBRARY: Key<'static> = Key::new("cfb.library");

/// The module attribute that holds the manifest, in JSON.
pub const MANIFEST: Key<'static> = Key::new("cfb.manifest");

/// What the factors of products are rounded to on a GPU, a [`Precision`](crate::enums::Precision); `f32`, so not at all,
/// when it is not there.
pub const PRECISION: Key<'static> = Key::new("cfb.precision");

/// The type of an entry's result in the program.
pub const RESULT_TYPE: Key<'static> = Key::new("cfb.result_type");

/// How the processor that code is for rounds a product that is added to something, an attribute of the module: a
/// [`Rounding`](crate::enums::Rounding), or, without the attribute, not at all.
pub const ROUNDING: Key<'static> = Key::new("cfb.rounding");

/// By which name a checkpoint has a parameter; see the dialect.
pub const STORED: Key<'static> = Key::new("cfb.stored");

/// A function of a `gpu.module` that is run in flushes only: none that is launched by itself is made of it.
pub const ONLY_IN_FLUSH: Key<'static> = Key::new("cfb.only_in_flush");

/// Of a function whose weights stay for a flush: where they begin in the flush's shared memory, in bytes. What is in no other
/// function's way has none.
pub const HELD_AT: Key<'static> = Key::new("cfb.held_at");

/// Of a function that runs one block: where its shared memory begins in that of the flush, in bytes.
pub const SHARED_FROM: Key<'static> = Key::new("cfb.shared_from");

/// Of a function that runs one block in a cluster: its shared memory is in that of the flush for clusters.
pub const IN_CLUSTER: Key<'static> = Key::new("cfb.in_cluster");

/// Of a function that multiplies by warpgroups: it is in code for cards alone that have these.
pub const BY_WARPGROUPS: Key<'static> = Key::new("cfb.by_warpgroups");

/// The attribute of a module that holds a tuning.
pub const TUNING: Key<'static> = Key::new("cfb.tuning");

/// How many levels of children a recursive function computes with a node, an attribute of the module.
pub const UNROLL: Key<'static> = Key::new("cfb.unroll");

/// How many vectors of 16 numbers of 32 bits the registers of the processor hold that code is for, an attribute of the
/// module: 32 of AVX-512, 8 of AVX2 and of NEON, 4 of SSE. It changes no bits.
pub const VECTOR_REGISTERS: Key<'static> = Key::new("cfb.vector_registers");

/// Of upstream: a function that the host launches.
pub const GPU_KERNEL: Key<'static> = Key::new("gpu.kernel");

/// Of upstream: the linkage of a `func.func` once it is one of LLVM.
pub const LINKAGE: Key<'static> = Key::new("llvm.linkage");

/// Of upstream: what LLVM may do to a loop. Branches carry it as a property of that name, so LLVM is told of no other.
pub const LOOP_ANNOTATION: Key<'static> = Key::new("loop_annotation");

/// Of upstream: what an assembler is given beside the code.
pub const MODULE_ASSEMBLY: Key<'static> = Key::new("llvm.module_asm");

/// Of upstream: how many blocks a processor should hold at least.
pub const BLOCKS_A_PROCESSOR: Key<'static> = Key::new("nvvm.minctasm");

/// What the dictionary of [`STORED`] holds.
pub mod stored {
    use super::Key;

    /// The name in the checkpoint, a text.
    pub const NAME: Key<'static> = Key::new("name");

    /// There where the checkpoint has it transposed.
    pub const TRANSPOSED: Key<'static> = Key::new("transposed");
}

/// What the dictionary of [`GRADIENT`] holds.
pub mod gradient {
    use super::Key;

    /// What the function takes of a call, a [`Part`](crate::enums::Part) an argument: an operand, a result or a cotangent.
    pub const ARGUMENTS: Key<'static> = Key::new("arguments");

    /// What its results are, a [`Part`](crate::enums::Part) each: an operand, for the cotangent of it, or of a site.
    pub const RESULTS: Key<'static> = Key::new("results");

    /// A dictionary for each use of a parameter: the products of `left` and `right`, summed over rows, are
    /// the cotangent of a part of it.
    pub const SITES: Key<'static> = Key::new("sites");

    /// Why there is no gradient, a text; the dictionary has nothing else then.
    pub const REFUSED: Key<'static> = Key::new("refused");

    /// Of a site: the left factor, a [`Part`](crate::enums::Part) that is an argument or a result; without, it is one.
    pub const LEFT: Key<'static> = Key::new("left");

    /// Of a site: the right factor, likewise.
    pub const RIGHT: Key<'static> = Key::new("right");

    /// Of a site: the parameter's symbol.
    pub const PARAMETER: Key<'static> = Key::new("parameter");

    /// Of a site: the first element of the part.
    pub const OFFSET: Key<'static> = Key::new("offset");

    /// Of a site: the dims of the part.
    pub const SHAPE: Key<'static> = Key::new("shape");

    /// Of a site: how far elements of the part lie apart along each dim.
    pub const STRIDES: Key<'static> = Key::new("strides");
}
