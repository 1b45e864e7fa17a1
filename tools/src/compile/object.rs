//! Code as an object file, by LLVM's C interface, for this machine and for others.

use std::ffi::{CStr, CString, c_char, c_int, c_uint};
use std::ptr::{null, null_mut};
use std::sync::{Mutex, Once};

use cohort_codegen::pipeline;
use cohort_passes::kernel::schedule::{USUAL_CACHES, are_possible};
use cohort_runtime::locks::{locked, unpoisoned};
use cohort_runtime::memory::core_bytes;
use cohort_runtime::program::artifact::{HostTarget, known_features};
use melior::ir::{Module, operation::OperationLike};
use mlir_sys::{
    LLVMContextCreate, LLVMContextDispose, LLVMContextRef, LLVMDisposeMessage, LLVMModuleRef,
    mlirTranslateModuleToLLVMIR,
};

use super::cache::{Cache, Key};
use super::gpu::Effort;
use super::split::Part;
use crate::exit::Stop;

/// A processor that `--target-cpu` takes beside `native`.
struct Level {
    name: &'static str,
    arch: &'static str,
    /// As LLVM calls it.
    cpu: &'static str,
    /// Beyond those of the levels of its architecture before it.
    features: &'static [&'static str],
    /// As [`Target::caches`] has them. A level is of many processors: what servers usually have.
    caches: [i64; 3],
}

/// The psABI's levels of x86-64, AArch64's baseline, and the first of the servers' processors of it.
const LEVELS: [Level; 6] = [
    Level {
        name: "x86-64",
        arch: "x86_64",
        cpu: "x86-64",
        features: &[],
        caches: USUAL_CACHES,
    },
    Level {
        name: "x86-64-v2",
        arch: "x86_64",
        cpu: "x86-64-v2",
        features: &["cx16", "popcnt", "sse3", "ssse3", "sse4.1", "sse4.2"],
        caches: USUAL_CACHES,
    },
    Level {
        name: "x86-64-v3",
        arch: "x86_64",
        cpu: "x86-64-v3",
        features: &[
            "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe",
        ],
        caches: USUAL_CACHES,
    },
    Level {
        name: "x86-64-v4",
        arch: "x86_64",
        cpu: "x86-64-v4",
        features: &["avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"],
        caches: USUAL_CACHES,
    },
    Level {
        name: "aarch64",
        arch: "aarch64",
        cpu: "generic",
        features: &["neon"],
        caches: USUAL_CACHES,
    },
    Level {
        name: "neoverse-n1",
        arch: "aarch64",
        cpu: "neoverse-n1",
        features: &[
            "aes", "ccpp", "crc", "dotprod", "fullfp16", "lse", "rcpc", "rdm", "sha2",
        ],
        // Of the system's cache a core has less than of its second, which is then the last that counts.
        caches: [64 << 10, 1 << 20, 1 << 20],
    },
];

/// The features of every processor of its architecture, as LLVM calls them.
const BASELINE: [&str; 8] = [
    "64bit", "cmov", "cx8", "fxsr", "mmx", "sse", "sse2", "fp-armv8",
];

/// A processor to compile for.
#[derive(Clone, Debug)]
pub struct Target {
    /// The processor, as artifacts name it.
    pub host: HostTarget,
    /// Bytes of a core's caches of data, as the module's attribute `cfb.caches` has them; `None` where nobody says.
    pub caches: Option<[i64; 3]>,
    /// As LLVM takes it: `+avx,-amx-tile`.
    features: String,
}

impl Target {
    /// This machine's processor (`native`), or a level of the architecture.
    pub fn new(name: Option<&str>) -> Result<Target, Stop> {
        // SAFETY: LLVM gives a text that is the caller's.
        let triple = message(unsafe { LLVMGetDefaultTargetTriple() });
        match name {
            None | Some("native") => Ok(Target::native(triple)),
            Some(name) => Target::level(triple, name),
        }
    }

    fn native(triple: String) -> Target {
        // SAFETY: LLVM gives texts that are the caller's.
        let (cpu, has) = unsafe {
            (
                message(LLVMGetHostCPUName()),
                message(LLVMGetHostCPUFeatures()),
            )
        };
        // What cannot be checked where the code runs, it must not use.
        let known = known_features(std::env::consts::ARCH);
        let is_known = |name: &str| known.contains(&name) || BASELINE.contains(&name);
        let mut used = Vec::new();
        let features: Vec<String> = has
            .split(',')
            .filter_map(|feature| feature.split_at_checked(1))
            .map(|(sign, name)| {
                if sign == "+" && known.contains(&name) {
                    used.push(name.to_owned());
                }
                match sign == "+" && is_known(name) {
                    true => format!("+{name}"),
                    false => format!("-{name}"),
                }
            })
            .collect();
        Target {
            host: HostTarget {
                triple,
                cpu,
                features: used,
            },
            caches: own_caches(),
            features: features.join(","),
        }
    }

    fn level(triple: String, name: &str) -> Result<Target, Stop> {
        let Some(level) = LEVELS.iter().position(|level| level.name == name) else {
            let known: Vec<&str> = LEVELS.iter().map(|level| level.name).collect();
            return Err(Stop::usage(format!(
                "`--target-cpu {name}`: expected native, {}",
                known.join(", ")
            )));
        };
        let Level {
            arch, cpu, caches, ..
        } = LEVELS[level];
        let below = LEVELS[..=level].iter().filter(|level| level.arch == arch);
        let features = below.flat_map(|level| level.features);
        Ok(Target {
            host: HostTarget {
                triple: match triple.split('-').next() == Some(arch) {
                    true => triple,
                    false => format!("{arch}-unknown-linux-gnu"),
                },
                cpu: cpu.to_owned(),
                features: features.map(|name| name.to_string()).collect(),
            },
            caches: Some(caches),
            features: String::new(),
        })
    }
}

impl Target {
    /// How many vectors of 16 numbers its registers hold.
    pub fn vector_registers(&self) -> u32 {
        match self.host.arch() {
            "aarch64" => 8,
            _ if self.has("avx512f") => 32,
            _ if self.has("avx") => 8,
            _ => 4,
        }
    }

    /// Whether it multiplies and adds in one step, with one rounding.
    pub fn has_fused_multiply_add(&self) -> bool {
        self.host.arch() == "aarch64" || self.has("fma")
    }

    /// The pipeline, told what it may know of this processor.
    pub fn pipeline(&self, options: &pipeline::Options) -> pipeline::Options {
        let mut options = options.clone();
        options.vector_registers = Some(self.vector_registers());
        options.caches = self.caches;
        options.rounds_separately = !self.has_fused_multiply_add();
        options
    }

    fn has(&self, feature: &str) -> bool {
        self.host.features.iter().any(|name| name == feature)
    }
}

/// The caches of this machine, as far as the system tells something possible.
fn own_caches() -> Option<[i64; 3]> {
    let bytes = core_bytes()?.map(|bytes| i64::try_from(bytes).unwrap_or(i64::MAX));
    are_possible(bytes).then_some(bytes)
}

/// The machine code of a module of the `llvm` dialect, as a relocatable object file.
pub fn emit(module: &Module<'_>, target: &Target, effort: Effort) -> Result<Vec<u8>, Stop> {
    Translated::new(module)?.compile(target, effort)
}

/// The same of the parts of a module, side by side on as many threads as the machine has. Those of libraries are kept
/// in a cache, and not compiled where they are there.
pub fn emit_all(
    parts: &[Part<'_>],
    target: &Target,
    effort: Effort,
    cache: Option<&Cache>,
) -> Result<Vec<Vec<u8>>, Stop> {
    let mut done = Vec::with_capacity(parts.len());
    let mut waiting = Vec::new();
    for (number, part) in parts.iter().enumerate() {
        let kept = cache.filter(|_| part.is_library).and_then(|cache| {
            let text = part.module.as_operation().to_string();
            Some((cache, Key::of_library(&text, target, effort)?))
        });
        match kept.as_ref().and_then(|(cache, key)| cache.find_code(key)) {
            Some(object) => done.push((number, Ok(object))),
            // MLIR's context belongs to this thread; LLVM's are one for each module.
            None => waiting.push((number, Translated::new(&part.module)?, kept)),
        }
    }
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = threads.min(waiting.len()).max(1);
    let waiting = Mutex::new(waiting.into_iter());
    let done = Mutex::new(done);
    let work = || {
        while let Some((number, module, kept)) = next(&waiting) {
            let object = module.compile(target, effort);
            if let (Some((cache, key)), Ok(object)) = (&kept, &object) {
                cache.keep_code(key, object);
            }
            locked(&done).push((number, object));
        }
        Ok(())
    };
    side_by_side(threads, &work)?;
    let mut done = unpoisoned(done.into_inner());
    done.sort_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, object)| object).collect()
}

/// Does the work on some threads at once, each with a stack that LLVM's recursions fit on.
fn side_by_side(threads: usize, work: &(impl Fn() -> Result<(), Stop> + Sync)) -> Result<(), Stop> {
    const STACK_BYTES: usize = 256 << 20;
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads)
            .map(|_| scope.spawn(|| crate::stack::with_stack(STACK_BYTES, work)))
            .collect();
        let mine = work();
        let ended = others.into_iter().map(|thread| {
            thread
                .join()
                .unwrap_or_else(|_| Err(internal("a thread of the compiler failed")))
        });
        ended.fold(mine, Result::and)
    })
}

fn next<T>(waiting: &Mutex<impl Iterator<Item = T>>) -> Option<T> {
    locked(waiting).next()
}

/// A module in LLVM's own IR, in a context of its own.
struct Translated {
    // Before the context that it is in.
    module: LlvmModule,
    _context: Context,
}

// SAFETY: a context of LLVM's and what is in it may be used by any thread, by one at a time.
unsafe impl Send for Translated {}

impl Translated {
    fn new(module: &Module<'_>) -> Result<Translated, Stop> {
        let operation = module.as_operation();
        if !operation.verify() {
            return Err(internal("the compiled module is not valid"));
        }
        super::module::refuse_assembly(module)?;
        // SAFETY: a context of its own, which outlives the module in it.
        let context = Context(unsafe { LLVMContextCreate() });
        // SAFETY: the operation is alive and only read.
        let raw = unsafe { mlirTranslateModuleToLLVMIR(operation.to_raw(), context.0) };
        if raw.is_null() {
            return Err(internal("the module cannot be translated for LLVM"));
        }
        Ok(Translated {
            module: LlvmModule(raw),
            _context: context,
        })
    }

    fn compile(&self, target: &Target, effort: Effort) -> Result<Vec<u8>, Stop> {
        let machine = Machine::new(target)?;
        machine.optimise(&self.module, effort)?;
        machine.emit(&self.module)
    }
}

fn internal(problem: &str) -> Stop {
    Stop::usage(format!("internal error: {problem}"))
}

struct Context(LLVMContextRef);

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: nothing of the context is used after this.
        unsafe { LLVMContextDispose(self.0) }
    }
}

struct LlvmModule(LLVMModuleRef);

impl Drop for LlvmModule {
    fn drop(&mut self) {
        // SAFETY: the module is this one's alone.
        unsafe { LLVMDisposeModule(self.0) }
    }
}

/// LLVM's code generator for a target.
struct Machine {
    raw: *mut TargetMachine,
    triple: CString,
}

impl Machine {
    fn new(target: &Target) -> Result<Machine, Stop> {
        let text = |text: &str| CString::new(text).map_err(|_| internal("a target's name has NUL"));
        let triple = text(&target.host.triple)?;
        let (cpu, features) = (text(&target.host.cpu)?, text(&target.features)?);
        let mut llvm_target = null();
        let mut error = null_mut();
        // SAFETY: every pointer is valid during the call; an error's text is the caller's.
        unsafe {
            static INITIALISED: Once = Once::new();
            INITIALISED.call_once(|| initialise_targets());
            if LLVMGetTargetFromTriple(triple.as_ptr(), &mut llvm_target, &mut error) != 0 {
                return Err(internal(&message(error)));
            }
        }
        // SAFETY: as before; the target lives as long as the process.
        let raw = unsafe {
            LLVMCreateTargetMachine(
                llvm_target,
                triple.as_ptr(),
                cpu.as_ptr(),
                features.as_ptr(),
                AGGRESSIVE,
                POSITION_INDEPENDENT,
                DEFAULT_CODE_MODEL,
            )
        };
        if raw.is_null() {
            return Err(internal("LLVM knows no such target"));
        }
        Ok(Machine { raw, triple })
    }

    fn optimise(&self, module: &LlvmModule, effort: Effort) -> Result<(), Stop> {
        let pipeline = match effort {
            Effort::Full => c"default<O3>",
            Effort::Little => c"default<O1>",
        };
        // SAFETY: module and machine are alive; the layout and the options are disposed of here, and
        // an error's text is the caller's.
        unsafe {
            LLVMSetTarget(module.0, self.triple.as_ptr());
            let layout = LLVMCreateTargetDataLayout(self.raw);
            LLVMSetModuleDataLayout(module.0, layout);
            LLVMDisposeTargetData(layout);
            let options = LLVMCreatePassBuilderOptions();
            let error = LLVMRunPasses(module.0, pipeline.as_ptr(), self.raw, options);
            LLVMDisposePassBuilderOptions(options);
            if error.is_null() {
                return Ok(());
            }
            let text = LLVMGetErrorMessage(error);
            let problem = CStr::from_ptr(text).to_string_lossy().into_owned();
            LLVMDisposeErrorMessage(text);
            Err(internal(&problem))
        }
    }

    fn emit(&self, module: &LlvmModule) -> Result<Vec<u8>, Stop> {
        let mut error = null_mut();
        let mut buffer = null_mut();
        // SAFETY: module and machine are alive; the buffer is copied and disposed of, and an
        // error's text is the caller's.
        unsafe {
            let failed = LLVMTargetMachineEmitToMemoryBuffer(
                self.raw,
                module.0,
                OBJECT_FILE,
                &mut error,
                &mut buffer,
            );
            if failed != 0 {
                return Err(internal(&message(error)));
            }
            let bytes = std::slice::from_raw_parts(
                LLVMGetBufferStart(buffer).cast::<u8>(),
                LLVMGetBufferSize(buffer),
            )
            .to_vec();
            LLVMDisposeMemoryBuffer(buffer);
            Ok(bytes)
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // SAFETY: the machine is this one's alone.
        unsafe { LLVMDisposeTargetMachine(self.raw) }
    }
}

/// Takes over a text of LLVM's.
fn message(text: *mut c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: LLVM's texts end with NUL, and this one is the caller's to dispose of.
    unsafe {
        let owned = CStr::from_ptr(text).to_string_lossy().into_owned();
        LLVMDisposeMessage(text);
        owned
    }
}

/// Makes LLVM know the architectures.
///
/// # Safety
///
/// As for LLVM's functions; may be called any number of times, by one thread at a time.
unsafe fn initialise_targets() {
    // SAFETY: the caller's.
    unsafe {
        LLVMInitializeX86TargetInfo();
        LLVMInitializeX86Target();
        LLVMInitializeX86TargetMC();
        LLVMInitializeX86AsmPrinter();
        LLVMInitializeAArch64TargetInfo();
        LLVMInitializeAArch64Target();
        LLVMInitializeAArch64TargetMC();
        LLVMInitializeAArch64AsmPrinter();
    }
}

// The part of `llvm-c` that `mlir-sys` does not declare.

/// `LLVMCodeGenLevelAggressive`
const AGGRESSIVE: c_uint = 3;
/// `LLVMRelocPIC`
const POSITION_INDEPENDENT: c_uint = 2;
/// `LLVMCodeModelDefault`
const DEFAULT_CODE_MODEL: c_uint = 0;
/// `LLVMObjectFile`
const OBJECT_FILE: c_uint = 1;

#[repr(C)]
struct TargetMachine(u8);
#[repr(C)]
struct LlvmTarget(u8);
#[repr(C)]
struct TargetData(u8);
#[repr(C)]
struct MemoryBuffer(u8);
#[repr(C)]
struct PassBuilderOptions(u8);
#[repr(C)]
struct LlvmError(u8);

unsafe extern "C" {
    fn LLVMInitializeX86TargetInfo();
    fn LLVMInitializeX86Target();
    fn LLVMInitializeX86TargetMC();
    fn LLVMInitializeX86AsmPrinter();
    fn LLVMInitializeAArch64TargetInfo();
    fn LLVMInitializeAArch64Target();
    fn LLVMInitializeAArch64TargetMC();
    fn LLVMInitializeAArch64AsmPrinter();
}

unsafe extern "C" {
    fn LLVMGetDefaultTargetTriple() -> *mut c_char;
    fn LLVMGetHostCPUName() -> *mut c_char;
    fn LLVMGetHostCPUFeatures() -> *mut c_char;
    fn LLVMGetTargetFromTriple(
        triple: *const c_char,
        target: *mut *const LlvmTarget,
        error: *mut *mut c_char,
    ) -> c_int;
    fn LLVMCreateTargetMachine(
        target: *const LlvmTarget,
        triple: *const c_char,
        cpu: *const c_char,
        features: *const c_char,
        level: c_uint,
        relocation: c_uint,
        code_model: c_uint,
    ) -> *mut TargetMachine;
    fn LLVMDisposeTargetMachine(machine: *mut TargetMachine);
    fn LLVMCreateTargetDataLayout(machine: *mut TargetMachine) -> *mut TargetData;
    fn LLVMDisposeTargetData(layout: *mut TargetData);
    fn LLVMSetModuleDataLayout(module: LLVMModuleRef, layout: *mut TargetData);
    fn LLVMSetTarget(module: LLVMModuleRef, triple: *const c_char);
    fn LLVMDisposeModule(module: LLVMModuleRef);
    fn LLVMCreatePassBuilderOptions() -> *mut PassBuilderOptions;
    fn LLVMDisposePassBuilderOptions(options: *mut PassBuilderOptions);
    fn LLVMRunPasses(
        module: LLVMModuleRef,
        passes: *const c_char,
        machine: *mut TargetMachine,
        options: *mut PassBuilderOptions,
    ) -> *mut LlvmError;
    fn LLVMGetErrorMessage(error: *mut LlvmError) -> *mut c_char;
    fn LLVMDisposeErrorMessage(text: *mut c_char);
    fn LLVMTargetMachineEmitToMemoryBuffer(
        machine: *mut TargetMachine,
        module: LLVMModuleRef,
        kind: c_uint,
        error: *mut *mut c_char,
        buffer: *mut *mut MemoryBuffer,
    ) -> c_int;
    fn LLVMGetBufferStart(buffer: *mut MemoryBuffer) -> *const c_char;
    fn LLVMGetBufferSize(buffer: *mut MemoryBuffer) -> usize;
    fn LLVMDisposeMemoryBuffer(buffer: *mut MemoryBuffer);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_has_caches() {
        for level in LEVELS {
            let target = Target::new(Some(level.name)).unwrap();
            assert_eq!(target.caches, Some(level.caches), "{}", level.name);
            assert!(are_possible(level.caches), "{}", level.name);
        }
        let native = Target::new(None).unwrap();
        assert!(native.caches.is_none_or(are_possible));
        assert_eq!(
            native.pipeline(&pipeline::Options::default()).caches,
            native.caches
        );
    }
}
