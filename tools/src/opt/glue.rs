//! The C++ side of `batch-opt` (`glue/opt_main.cpp`) as Rust functions.

use std::ffi::{CString, OsString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use cohort_abi::gpu::Precision;
use cohort_abi::manifest::WeightFormat;
use cohort_codegen::pipeline::{self, Granularity, PASSES};
use cohort_passes::pass;
use melior::{StringRef, diagnostic::Diagnostic, dialect::DialectRegistry};
use mlir_sys::{MlirDiagnostic, MlirDialectRegistry, MlirPass, MlirStringRef};

use crate::compile::Format;
use crate::compile::cache::Cache;
use crate::compile::source::{Dims, open_weights};
use crate::exit::Stop;

/// Every dialect that may appear in an input: upstream's and ours.
pub struct Registry(DialectRegistry);

impl Registry {
    pub fn new() -> Registry {
        let registry = DialectRegistry::new();
        cohort_dialects::register(&registry);
        Registry(registry)
    }
}

/// What the command line says.
#[derive(Debug)]
pub struct Options {
    pub input: PathBuf,
    pub output: PathBuf,
    pub emit: Option<String>,
    pub input_format: Option<String>,
    pub entry: Option<String>,
    pub weights: Option<PathBuf>,
    pub dims: Vec<String>,
    pub without: Vec<String>,
    /// The only symbol of the module that is printed.
    pub kernel: Option<String>,
    pub granularity: Option<String>,
    /// How many levels of children are computed with a node.
    pub unroll: Option<String>,
    pub target_cpu: Option<String>,
    pub gpu_arch: Option<String>,
    pub precision: Option<String>,
    /// What packed weights are kept in.
    pub keep_weights: Option<String>,
    pub sign_key: Option<PathBuf>,
    pub sarif: Option<PathBuf>,
    pub bisect: bool,
    /// Whether the functions of gradients are made too.
    pub gradients: bool,
    /// What `--bisect` and `--tune` run the program over.
    pub instances: Option<PathBuf>,
    pub tolerance: Option<String>,
    pub tune: bool,
    /// How long that may take.
    pub budget: Option<String>,
    /// Where what it finds is written to, and what was found before is read from.
    pub write_tuning: Option<PathBuf>,
    pub tuning: Option<PathBuf>,
    pub list_passes_markdown: bool,
    /// Whether there are options that are MLIR's or LLVM's own, which may change any code.
    has_others: bool,
}

impl Options {
    /// Where code is kept that was compiled with no other options than Cohort's.
    pub fn cache(&self) -> Option<Cache> {
        Cache::of_user().filter(|_| !self.has_others)
    }

    /// The format of the input, as told or by the file's extension.
    pub fn format(&self) -> Result<Format, Stop> {
        match self.input_format.as_deref() {
            Some("coh") => Ok(Format::Coh),
            Some("mlir") => Ok(Format::Mlir),
            Some(other) => Err(Stop::usage(format!(
                "unknown input format `{other}`; `coh` and `mlir` are known"
            ))),
            None => Ok(Format::of(&self.input)),
        }
    }

    /// The function that runs for each instance.
    pub fn entry(&self) -> &str {
        self.entry.as_deref().unwrap_or(cohort_frontend::MAIN)
    }

    /// How the pipeline behind `--emit` differs from the default.
    pub fn pipeline(&self) -> Result<pipeline::Options, Stop> {
        let mut options = pipeline::Options::without(&self.without)
            .map_err(|error| Stop::usage(error.to_string()))?;
        if let Some(name) = &self.granularity {
            options.granularity = Granularity::parse(name).ok_or_else(|| {
                Stop::usage(format!(
                    "unknown granularity `{name}`; the compiler knows operator, block and function"
                ))
            })?;
        }
        if let Some(levels) = &self.unroll {
            options.unroll = levels
                .parse()
                .map_err(|_| Stop::usage(format!("`--unroll {levels}`: not a number of levels")))?;
        }
        if let Some(name) = &self.precision {
            options.precision = Precision::parse(name).ok_or_else(|| {
                Stop::usage(format!(
                    "unknown precision `{name}`; a GPU knows {}",
                    Precision::NAMES
                ))
            })?;
        }
        if let Some(name) = &self.keep_weights {
            options.keep_weights = WeightFormat::parse(name).ok_or_else(|| {
                Stop::usage(format!(
                    "`--keep-weights {name}`: weights can be kept in {}",
                    WeightFormat::NAMES
                ))
            })?;
        }
        options.gradients = self.gradients;
        Ok(options)
    }

    /// How the pipeline behind `--emit` was changed, but for a tuning, for people.
    pub fn described(&self) -> Vec<String> {
        let granularity = self.granularity.iter();
        let unroll = self.unroll.iter();
        let precision = self.precision.iter();
        let kept = self.keep_weights.iter();
        let without = self.without.iter();
        granularity
            .map(|unit| format!("--granularity {unit}"))
            .chain(unroll.map(|levels| format!("--unroll {levels}")))
            .chain(precision.map(|name| format!("--precision {name}")))
            .chain(kept.map(|name| format!("--keep-weights {name}")))
            .chain(without.map(|pass| format!("--without {pass}")))
            .collect()
    }

    /// What the program's dims are bound from.
    pub fn dims(&self) -> Result<Dims, Stop> {
        Dims::new(open_weights(self.weights.as_deref())?, &self.dims)
    }

    /// Whether the pipeline behind `--emit` differs from the default.
    pub fn changes_pipeline(&self) -> bool {
        let compiled =
            self.granularity.is_some() || self.unroll.is_some() || self.keep_weights.is_some();
        !self.without.is_empty() || compiled || self.gradients || self.tuning.is_some()
    }
}

/// Registers all passes and parses the command line, the program's name first.
pub fn parse(
    registry: &Registry,
    arguments: Vec<Vec<u8>>,
    overview: &str,
) -> Result<Options, Stop> {
    let arguments = arguments
        .into_iter()
        // Passes written in Rust run with the context's threads off.
        .chain([b"--mlir-disable-threading".to_vec()])
        .map(|argument| CString::new(argument).map_err(|_| Stop::usage("an argument holds NUL")))
        .collect::<Result<Vec<_>, _>>()?;
    // LLVM keeps pointers into the arguments.
    let arguments: &'static [CString] = arguments.leak();
    let pointers: Vec<*const c_char> = arguments.iter().map(|text| text.as_ptr()).collect();
    let count = c_int::try_from(pointers.len()).map_err(|_| Stop::usage("too many arguments"))?;

    let mut parsed = RawOptions::default();
    let mut errors: Vec<u8> = Vec::new();
    // SAFETY: every pointer is valid during the call, and the arguments for good.
    let succeeded = unsafe {
        cohort_opt_parse(
            registry.0.to_raw(),
            count,
            pointers.as_ptr(),
            StringRef::new(overview).to_raw(),
            PASSES.len(),
            make_pass,
            (&raw mut errors).cast(),
            append,
            &mut parsed,
        )
    };
    if !succeeded {
        return Err(Stop::usage(usage_message(&String::from_utf8_lossy(
            &errors,
        ))));
    }
    // SAFETY: the options were parsed, and their strings live as long as the process.
    let options = unsafe {
        Options {
            input: path(parsed.input),
            output: path(parsed.output),
            emit: non_empty(text(parsed.emit)),
            input_format: non_empty(text(parsed.input_format)),
            entry: non_empty(text(parsed.entry)),
            weights: (parsed.weights.length > 0).then(|| path(parsed.weights)),
            dims: (0..cohort_opt_dim_count())
                .map(|index| text(cohort_opt_dim(index)))
                .collect(),
            kernel: non_empty(text(parsed.kernel)),
            granularity: non_empty(text(parsed.granularity)),
            unroll: non_empty(text(parsed.unroll)),
            target_cpu: non_empty(text(parsed.target_cpu)),
            gpu_arch: non_empty(text(parsed.gpu_arch)),
            precision: non_empty(text(parsed.precision)),
            keep_weights: non_empty(text(parsed.keep_weights)),
            sign_key: (parsed.sign_key.length > 0).then(|| path(parsed.sign_key)),
            sarif: (parsed.sarif.length > 0).then(|| path(parsed.sarif)),
            bisect: parsed.bisect,
            gradients: parsed.gradients,
            instances: (parsed.instances.length > 0).then(|| path(parsed.instances)),
            tolerance: non_empty(text(parsed.tolerance)),
            tune: parsed.tune,
            budget: non_empty(text(parsed.budget)),
            write_tuning: (parsed.write_tuning.length > 0).then(|| path(parsed.write_tuning)),
            tuning: (parsed.tuning.length > 0).then(|| path(parsed.tuning)),
            without: (0..cohort_opt_without_count())
                .map(|index| text(cohort_opt_without(index)))
                .collect(),
            list_passes_markdown: parsed.list_passes_markdown,
            has_others: parsed.has_others,
        }
    };
    Ok(options)
}

/// Runs mlir-opt's driver, `pipeline` (of the module, may be empty) before the passes of the
/// command line; returns whether it succeeded and what it printed. What passes say goes to the log of findings too.
pub fn run(registry: &Registry, input: &[u8], name: &Path, pipeline: &str) -> (bool, Vec<u8>) {
    let input = MlirStringRef {
        data: input.as_ptr().cast(),
        length: input.len(),
    };
    let name = if name == Path::new("-") {
        "<stdin>".into()
    } else {
        name.to_string_lossy()
    };
    let mut output: Vec<u8> = Vec::new();
    // SAFETY: every pointer is valid during the call; the command line was parsed before.
    let succeeded = unsafe {
        cohort_opt_run(
            registry.0.to_raw(),
            input,
            StringRef::new(&name).to_raw(),
            StringRef::new(pipeline).to_raw(),
            log,
            (&raw mut output).cast(),
            append,
        )
    };
    (succeeded, output)
}

/// LLVM's message without the program's name in front, and without the blank around it.
fn usage_message(message: &str) -> String {
    let lines: Vec<&str> = message
        .lines()
        .map(|line| {
            line.trim()
                .trim_start_matches(|c: char| c != ':')
                .trim_start_matches(": ")
        })
        .filter(|line| !line.is_empty())
        .collect();
    lines.join("\n")
}

fn non_empty(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

/// # Safety
///
/// The reference must point at as many bytes as it says.
unsafe fn bytes(reference: MlirStringRef) -> Vec<u8> {
    if reference.length == 0 {
        return Vec::new();
    }
    // SAFETY: the caller's.
    unsafe { std::slice::from_raw_parts(reference.data.cast(), reference.length) }.to_vec()
}

/// # Safety
///
/// As for [`bytes()`].
unsafe fn text(reference: MlirStringRef) -> String {
    // SAFETY: the caller's.
    String::from_utf8_lossy(&unsafe { bytes(reference) }).into_owned()
}

/// # Safety
///
/// As for [`bytes()`].
unsafe fn path(reference: MlirStringRef) -> PathBuf {
    // SAFETY: the caller's.
    OsString::from_vec(unsafe { bytes(reference) }).into()
}

extern "C" fn make_pass(index: usize) -> MlirPass {
    match PASSES.get(index) {
        Some(info) => pass::create(*info).to_raw(),
        // C++ asks for no index that it was not given.
        None => std::process::abort(),
    }
}

extern "C" fn log(diagnostic: MlirDiagnostic) {
    // SAFETY: it is alive during the call.
    crate::compile::diagnostics::log(&unsafe { Diagnostic::from_raw(diagnostic) });
}

extern "C" fn append(context: *mut c_void, bytes: MlirStringRef) {
    if bytes.length == 0 {
        return;
    }
    // SAFETY: the context is the `Vec` that was given along with this function, and the bytes are
    // valid during the call.
    unsafe {
        let output = &mut *context.cast::<Vec<u8>>();
        output.extend_from_slice(std::slice::from_raw_parts(bytes.data.cast(), bytes.length));
    }
}

#[repr(C)]
struct RawOptions {
    input: MlirStringRef,
    output: MlirStringRef,
    emit: MlirStringRef,
    input_format: MlirStringRef,
    entry: MlirStringRef,
    weights: MlirStringRef,
    kernel: MlirStringRef,
    granularity: MlirStringRef,
    unroll: MlirStringRef,
    target_cpu: MlirStringRef,
    gpu_arch: MlirStringRef,
    precision: MlirStringRef,
    keep_weights: MlirStringRef,
    sign_key: MlirStringRef,
    sarif: MlirStringRef,
    instances: MlirStringRef,
    tolerance: MlirStringRef,
    budget: MlirStringRef,
    write_tuning: MlirStringRef,
    tuning: MlirStringRef,
    bisect: bool,
    tune: bool,
    gradients: bool,
    list_passes_markdown: bool,
    has_others: bool,
}

impl Default for RawOptions {
    fn default() -> Self {
        let empty = MlirStringRef {
            data: std::ptr::null(),
            length: 0,
        };
        RawOptions {
            input: empty,
            output: empty,
            emit: empty,
            input_format: empty,
            entry: empty,
            weights: empty,
            kernel: empty,
            granularity: empty,
            unroll: empty,
            target_cpu: empty,
            gpu_arch: empty,
            precision: empty,
            keep_weights: empty,
            sign_key: empty,
            sarif: empty,
            instances: empty,
            tolerance: empty,
            budget: empty,
            write_tuning: empty,
            tuning: empty,
            bisect: false,
            tune: false,
            gradients: false,
            list_passes_markdown: false,
            has_others: false,
        }
    }
}

type Sink = extern "C" fn(*mut c_void, MlirStringRef);

unsafe extern "C" {
    fn cohort_opt_parse(
        registry: MlirDialectRegistry,
        argc: c_int,
        argv: *const *const c_char,
        overview: MlirStringRef,
        pass_count: usize,
        make_pass: extern "C" fn(usize) -> MlirPass,
        error_context: *mut c_void,
        errors: Sink,
        parsed: *mut RawOptions,
    ) -> bool;
    fn cohort_opt_dim_count() -> usize;
    fn cohort_opt_dim(index: usize) -> MlirStringRef;
    fn cohort_opt_without_count() -> usize;
    fn cohort_opt_without(index: usize) -> MlirStringRef;
    fn cohort_opt_run(
        registry: MlirDialectRegistry,
        input: MlirStringRef,
        name: MlirStringRef,
        pipeline: MlirStringRef,
        log: extern "C" fn(MlirDiagnostic),
        output_context: *mut c_void,
        output: Sink,
    ) -> bool;
}
