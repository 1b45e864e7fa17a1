//! GPU code of a module: PTX by LLVM, CUBIN from it by NVIDIA's assembler.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use cohort_dialects::builder::{Builder, Op, operands_of, result_of};
use cohort_dialects::keys;
use cohort_dialects::marks::BY_WARPGROUPS;
use cohort_passes::pass::create;
use cohort_passes::support::ir::{
    array, blocks_of, callee_of, clone_op, erase, nested_ops, replace_uses, symbol_of, top_level,
};
use melior::{
    Context,
    ir::{BlockLike, Location, Module, OperationRef, ValueLike, operation::OperationLike},
    pass::PassManager,
    utility::parse_pass_pipeline,
};

use super::lower_kernels_to_gpu::function::shared_of;
use super::{expand_flush, persistence};

/// A GPU architecture by name, `sm_90`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Architecture {
    name: String,
    number: u32,
}

/// What is wrong with the name of an architecture, or with code for it.
#[derive(Debug, thiserror::Error)]
pub enum GpuError {
    /// No architecture that code is made for has this name.
    #[error("unknown GPU architecture `{0}`; it is `sm_80`, `sm_90` or a later one, like `sm_100`")]
    Architecture(String),
    /// No kernel of the module runs on a GPU.
    #[error("the module has no code for a GPU")]
    NoCode,
    /// The code calls a function that nothing defines.
    #[error("internal error: GPU code calls `{0}`, which nothing defines")]
    Missing(String),
    /// LLVM refused the code; the reason is among the diagnostics.
    #[error("the GPU code could not be lowered to PTX")]
    Lowering,
    /// No `ptxas` was found.
    #[error(
        "there is no `ptxas` to assemble code for a GPU; `make setup` installs it, or set \
         COHORT_PTXAS to the path of one"
    )]
    AssemblerMissing,
    /// The assembler of this path could not be started.
    #[error("{0} could not be run: {1}")]
    NoAssembler(String, std::io::Error),
    /// The assembler refused the code, and said this.
    #[error("ptxas refused the code:\n{0}")]
    Assembler(String),
}

impl Architecture {
    /// The one that PTX for newer devices is made for.
    pub const OLDEST: &'static str = "sm_80";
    /// The first one whose blocks form clusters.
    pub const WITH_CLUSTERS: &'static str = "sm_90";
    /// The one whose warpgroups multiply; code for it runs on no other.
    pub const WITH_WARPGROUPS: &'static str = "sm_90a";

    /// Reads `sm_90` and the like; an error for what is older than [`Architecture::OLDEST`], or none.
    pub fn parse(name: &str) -> Result<Architecture, GpuError> {
        let number = name.strip_prefix("sm_").and_then(|text| {
            let digits = text.trim_end_matches(['a', 'f']);
            (text.len() - digits.len() <= 1).then(|| digits.parse::<u32>().ok())?
        });
        match number {
            Some(number) if (80..1000).contains(&number) => Ok(Architecture {
                name: name.to_owned(),
                number,
            }),
            _ => Err(GpuError::Architecture(name.to_owned())),
        }
    }

    /// Whether a block of a cluster can have [`cohort_abi::gpu::MOST_CLUSTER_SHARED_BYTES`] of shared memory.
    fn has_clusters(&self) -> bool {
        (90..120).contains(&self.number)
    }

    /// Whether warpgroups multiply (`wgmma`): on this architecture alone, which its suffix says.
    fn has_warpgroups(&self) -> bool {
        self.name == Architecture::WITH_WARPGROUPS
    }

    /// The version of PTX that knows it.
    fn ptx(&self) -> &'static str {
        match self.number {
            0..100 => "+ptx80",
            100 | 101 => "+ptx86",
            _ => "+ptx88",
        }
    }
}

impl fmt::Display for Architecture {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.name)
    }
}

/// The steps from `gpu` to the `nvvm` dialect, for an architecture.
fn to_nvvm(architecture: &Architecture) -> String {
    format!(
        "builtin.module(nvvm-attach-target{{chip={} features={} O=3}},\
         gpu.module(convert-scf-to-cf,convert-gpu-to-nvvm{{index-bitwidth=64}},convert-nvvm-to-llvm,\
         convert-vector-to-llvm,convert-arith-to-llvm,convert-index-to-llvm,\
         reconcile-unrealized-casts))",
        architecture.name,
        architecture.ptx()
    )
}

/// The steps from there to PTX.
const TO_PTX: &str =
    "builtin.module(gpu.module(canonicalize,cse),gpu-module-to-binary{format=isa})";

/// Functions of NVIDIA's library that upstream calls although one instruction does it, of `f32`; those of
/// `f64`, which the polynomials of sine and cosine use, are named without the `f`. Every other function
/// is a polynomial by now, the same as on the CPU.
const INSTRUCTIONS: &[(&str, Op)] = &[
    ("__nv_abs", Op::LlvmIntrAbs),
    ("__nv_ceilf", Op::LlvmIntrCeil),
    ("__nv_copysignf", Op::LlvmIntrCopysign),
    ("__nv_fabsf", Op::LlvmIntrFabs),
    ("__nv_floorf", Op::LlvmIntrFloor),
    ("__nv_fmaf", Op::LlvmIntrFma),
    ("__nv_rintf", Op::LlvmIntrRoundeven),
    ("__nv_sqrtf", Op::LlvmIntrSqrt),
    ("__nv_truncf", Op::LlvmIntrTrunc),
];

/// Operations of `math` that run on a GPU besides those that are expanded to polynomials.
pub const SUPPORTED_MATH: &[Op] = &[
    Op::MathAbsf,
    Op::MathAbsi,
    Op::MathCeil,
    Op::MathCopysign,
    Op::MathFloor,
    Op::MathFma,
    Op::MathRoundeven,
    Op::MathRsqrt,
    Op::MathSqrt,
    Op::MathTrunc,
];

/// A function that is called and not there.
fn missing_function(module: OperationRef<'_, '_>) -> Option<String> {
    let operations = nested_ops(module);
    let of_kind = |kind: Op| operations.iter().filter(move |op| kind.is(**op));
    let has_body = |op: &&OperationRef<'_, '_>| !blocks_of(**op).is_empty();
    let defined = of_kind(Op::LlvmFunc).filter(has_body);
    let defined: Vec<_> = defined.filter_map(|op| symbol_of(*op)).collect();
    of_kind(Op::LlvmCall)
        .filter_map(|op| callee_of(*op))
        .find(|callee| !defined.contains(callee))
}

/// Makes calls of the library's functions the instructions that they are.
fn use_instructions(context: &Context, module: OperationRef<'_, '_>) {
    let instruction_of = |symbol: Option<String>| {
        let symbol = symbol?;
        let of = |name: &str| symbol == name || Some(symbol.as_str()) == name.strip_suffix('f');
        let known = INSTRUCTIONS.iter().find(|(name, _)| of(name));
        known.map(|(_, instruction)| *instruction)
    };
    let module = cohort_dialects::builder::extend_op(module);
    for operation in nested_ops(module) {
        match Op::of(operation) {
            Some(Op::LlvmCall) => {
                let Some(instruction) = instruction_of(callee_of(operation)) else {
                    continue;
                };
                let result = result_of(operation, 0);
                let Some(b) = Builder::before(context, operation) else {
                    continue;
                };
                let attributes = match instruction {
                    // The smallest is its own.
                    Op::LlvmIntrAbs => vec![(keys::IS_INT_MIN_POISON, b.bool_attr(false))],
                    _ => vec![],
                };
                let operands = operands_of(operation);
                let value = b.value_with(instruction, &operands, result.r#type(), &attributes);
                replace_uses(result, value);
                erase(operation);
            }
            Some(Op::LlvmFunc) if instruction_of(symbol_of(operation)).is_some() => {
                erase(operation);
            }
            _ => {}
        }
    }
}

/// Takes away the function that runs a flush in clusters, and what only it calls.
fn remove_clusters(module: OperationRef<'_, '_>) {
    use persistence::{CLUSTER_ARRIVE, CLUSTER_WAIT, CLUSTERS, IN_CLUSTER};
    let names = [CLUSTERS, CLUSTER_ARRIVE, CLUSTER_WAIT, &shared_of(CLUSTERS)].map(str::to_owned);
    let functions = gpu_module(module).map(top_level).unwrap_or_default();
    for op in functions {
        let is_named = symbol_of(op).is_some_and(|name| names.contains(&name));
        if is_named || op.has_attribute(&IN_CLUSTER) {
            erase(op);
        }
    }
}

/// Takes away the functions that multiply by warpgroups.
fn remove_warpgroups(module: OperationRef<'_, '_>) {
    let functions = gpu_module(module).map(top_level).unwrap_or_default();
    let by_groups = functions
        .iter()
        .filter(|op| op.has_attribute(&BY_WARPGROUPS));
    let memory: Vec<_> = by_groups
        .filter_map(|op| symbol_of(*op))
        .map(|name| shared_of(&name))
        .collect();
    for op in functions {
        let is_memory = symbol_of(op).is_some_and(|name| memory.contains(&name));
        if is_memory || op.has_attribute(&BY_WARPGROUPS) {
            erase(op);
        }
    }
}

/// The PTX of a module's `gpu.module`, which stays as it is.
pub fn ptx(
    context: &Context,
    module: OperationRef<'_, '_>,
    architecture: &Architecture,
) -> Result<String, GpuError> {
    let source = gpu_module(module).ok_or(GpuError::NoCode)?;
    let mut alone = Module::new(Location::unknown(context));
    alone.body().append_operation(clone_op(source));
    if !architecture.has_clusters() {
        remove_clusters(alone.as_operation());
    }
    if !architecture.has_warpgroups() {
        remove_warpgroups(alone.as_operation());
    }
    let manager = PassManager::new(context);
    manager.add_pass(create(expand_flush::PASS));
    manager.run(&mut alone).map_err(|_| GpuError::Lowering)?;
    run_pipeline(context, &mut alone, &to_nvvm(architecture))?;
    use_instructions(context, alone.as_operation());
    if let Some(name) = missing_function(alone.as_operation()) {
        return Err(GpuError::Missing(name));
    }
    run_pipeline(context, &mut alone, TO_PTX)?;
    let binary = top_level(alone.as_operation())
        .into_iter()
        .find(|op| Op::GpuBinary.is(*op))
        .ok_or(GpuError::Lowering)?;
    let objects = array(binary, keys::OBJECTS);
    let object = objects.first().ok_or(GpuError::Lowering)?;
    Ok(object_text(*object)?.trim_end_matches('\0').to_owned())
}

/// The text of what [`ptx`] compiles, and all that its result depends on besides the architecture: what the
/// host is told of kernels is not.
pub fn text(module: OperationRef<'_, '_>) -> Option<String> {
    let functions = top_level(gpu_module(module)?).into_iter();
    Some(functions.map(|op| op.to_string()).collect())
}

fn gpu_module<'c>(module: OperationRef<'c, 'c>) -> Option<OperationRef<'c, 'c>> {
    let mut ops = top_level(module).into_iter();
    ops.find(|op| Op::GpuModule.is(*op))
}

fn run_pipeline(context: &Context, module: &mut Module<'_>, text: &str) -> Result<(), GpuError> {
    let manager = PassManager::new(context);
    // What our own passes leave is verified.
    manager.enable_verifier(false);
    parse_pass_pipeline(manager.as_operation_pass_manager(), text)
        .map_err(|_| GpuError::Lowering)?;
    manager.run(module).map_err(|_| GpuError::Lowering)
}

fn object_text(object: melior::ir::Attribute<'_>) -> Result<String, GpuError> {
    use melior::ir::attribute::AttributeLike;
    // SAFETY: the attribute is alive, and its kind is asked before its text is read.
    let bytes = unsafe {
        if !mlir_sys::mlirAttributeIsAGPUObjectAttr(object.to_raw()) {
            return Err(GpuError::Lowering);
        }
        let text = mlir_sys::mlirGPUObjectAttrGetObject(object.to_raw());
        std::slice::from_raw_parts(text.data.cast::<u8>(), text.length)
    };
    Ok(String::from_utf8_lossy(bytes).into_owned())
}

/// Code that a driver loads as it is.
pub struct Cubin {
    /// The file.
    pub bytes: Vec<u8>,
    /// Registers, spills and shared memory of each function, as the assembler reports them.
    pub resources: String,
}

/// Assembles PTX with the given `ptxas`.
pub fn cubin(ptx: &str, architecture: &Architecture, ptxas: &Path) -> Result<Cubin, GpuError> {
    let failed = |error| GpuError::NoAssembler(ptxas.display().to_string(), error);
    let folder = tempfile::tempdir().map_err(failed)?;
    let input = folder.path().join("kernels.ptx");
    let output = folder.path().join("kernels.cubin");
    std::fs::write(&input, ptx).map_err(failed)?;
    let run = Command::new(ptxas)
        .arg(format!("-arch={architecture}"))
        .args(["-O3", "-v"])
        .arg(&input)
        .arg("-o")
        .arg(&output)
        .output()
        .map_err(failed)?;
    let messages = String::from_utf8_lossy(&run.stderr) + String::from_utf8_lossy(&run.stdout);
    if !run.status.success() {
        return Err(GpuError::Assembler(messages.into_owned()));
    }
    Ok(Cubin {
        bytes: std::fs::read(&output).map_err(failed)?,
        resources: messages.into_owned(),
    })
}

/// Whether a module has code for a GPU.
pub fn is_there(module: OperationRef<'_, '_>) -> bool {
    top_level(module).into_iter().any(|op| Op::GpuModule.is(op))
}

/// NVIDIA's assembler: the one that `COHORT_PTXAS` names, on the path, or in `.tools/bin`, where
/// `make setup` puts it.
pub fn find_assembler() -> Result<PathBuf, GpuError> {
    if let Some(path) = std::env::var_os("COHORT_PTXAS") {
        return Ok(PathBuf::from(path));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain([PathBuf::from(".tools/bin")]);
    let mut candidates = folders.map(|folder| folder.join("ptxas"));
    candidates
        .find(|candidate| candidate.is_file())
        .ok_or(GpuError::AssemblerMissing)
}

/// Takes the GPU code out of a module, so that the rest can go on to the host's code.
pub fn remove(module: OperationRef<'_, '_>) {
    for operation in top_level(module) {
        if Op::GpuModule.is(operation) {
            erase(operation);
        }
    }
}
