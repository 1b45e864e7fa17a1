//! The names of the attributes that the compiler leaves on operations of any dialect, to be read by later passes, by the
//! runtime's side of it, or by whoever reads the IR.

/// The attribute of a phase that the program did not ask for, and to which instances come after different flushes.
pub const AFTER_DECISION: &str = "cfb.after_decision";

/// For each argument of a function the names of its unknown lengths; `_` has none.
pub const ARGUMENT_DIMS: &str = "cfb.argument_dims";

/// The types of an entry's arguments in the program, with their structure.
pub const ARGUMENT_TYPES: &str = "cfb.argument_types";

/// The names of an entry's arguments.
pub const ARGUMENTS: &str = "cfb.arguments";

/// What a function that runs one block names: the kernel's function.
pub const BLOCK_OF: &str = "cfb.block_of";

/// The caches of the processor that code is for, an attribute of the module: bytes of a core's first-level cache of data,
/// of its second-level cache, and of its part of the cache behind. It changes the sizes of blocks, and no bits.
pub const CACHES: &str = "cfb.caches";

/// Marks a division that has to be checked: a zero divisor is the instance's error, and the least
/// integer by -1 wraps to itself.
pub const CHECKED: &str = "cfb.checked";

/// The numbers of an entry's arguments, and of the fields of each constructor of a `cfb.adt`, that only choose rows of
/// parameters; the entry has it where all that an instance records follows from its structure.
pub const CHOOSES_ROWS: &str = "cfb.chooses_rows";

/// The attribute of a global that a kernel computes at load, which it names; see the dialect.
pub const COMPUTED: &str = "cfb.computed";

/// Whether tensors decide that a block runs, or what it runs on.
pub const CONTROL: &str = "cfb.control";

/// The static depth of a block.
pub const DEPTH: &str = "cfb.depth";

/// The function that runs for an instance.
pub const ENTRY: &str = "cfb.entry";

/// The attribute of a `cfb.map` whose elements are strands.
pub const STRANDS: &str = "cfb.fork";

/// The `gpu.module`'s attribute: the function's description in JSON, a `GpuFlush`.
pub const GPU_FLUSH: &str = "cfb.gpu_flush";

/// The `gpu.module`'s attribute: a dictionary of each kernel's description in JSON.
pub const GPU_KERNELS: &str = "cfb.gpu_kernels";

/// The attribute of a gradient function.
pub const GRADIENT: &str = "cfb.gradient";

/// The attribute of a function that backward needs of its own.
pub const GRADIENT_HELPER: &str = "cfb.gradient_helper";

/// The attribute of a gradient function that names its kernel.
pub const GRADIENT_OF: &str = "cfb.gradient_of";

/// The attribute of a module whose blocks will be differentiated: a unit, or `parameters`.
pub const GRADIENTS: &str = "cfb.gradients";

/// The module's unit of scheduling, `operator`, `block` or `function`; `block` when it is not there.
pub const GRANULARITY: &str = "cfb.granularity";

/// A tensor operation with this attribute stays at its own level, although all that use it wait
/// longer than it has to; see `hoist-operators`.
pub const HOISTED: &str = "cfb.hoisted";

/// The discardable attribute of a lowered kernel's `func.func`.
pub const KERNEL: &str = "cfb.kernel";

/// The library that a function of the compiler's own is from, a text. Its functions follow from the target alone, so
/// programs have their code in common.
pub const LIBRARY: &str = "cfb.library";

/// The module attribute that holds the manifest, in JSON.
pub const MANIFEST: &str = "cfb.manifest";

/// What the factors of products are rounded to on a GPU, `f32`, `tf32` or `bf16`; `f32`, so not at all,
/// when it is not there.
pub const PRECISION: &str = "cfb.precision";

/// The type of an entry's result in the program.
pub const RESULT_TYPE: &str = "cfb.result_type";

/// How the processor that code is for rounds a product that is added to something, an attribute of the module:
/// `separate`, before it is added, or, without the attribute, not at all.
pub const ROUNDING: &str = "cfb.rounding";

/// By which name a checkpoint has a parameter; see the dialect.
pub const STORED: &str = "cfb.stored";

/// The attribute of a module that holds a tuning.
pub const TUNING: &str = "cfb.tuning";

/// How many levels of children a recursive function computes with a node, an attribute of the module.
pub const UNROLL: &str = "cfb.unroll";

/// How many vectors of 16 numbers of 32 bits the registers of the processor hold that code is for, an attribute of the
/// module: 32 of AVX-512, 8 of AVX2 and of NEON, 4 of SSE. It changes no bits.
pub const VECTOR_REGISTERS: &str = "cfb.vector_registers";

/// Of upstream: a function that the host launches.
pub const GPU_KERNEL: &str = "gpu.kernel";

/// Of upstream: the linkage of a `func.func` once it is one of LLVM.
pub const LINKAGE: &str = "llvm.linkage";

/// Of upstream: what LLVM may do to a loop.
pub const LOOP_ANNOTATION: &str = "llvm.loop_annotation";

/// Of upstream: what an assembler is given beside the code.
pub const MODULE_ASSEMBLY: &str = "llvm.module_asm";

/// Of upstream: how many blocks a processor should hold at least.
pub const BLOCKS_A_PROCESSOR: &str = "nvvm.minctasm";
