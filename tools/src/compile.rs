//! From a program's text to code in memory: what both tools share of the way down.

pub mod diagnostics;
pub mod jit;
pub mod module;
pub mod object;
pub mod source;

use std::path::Path;

use cohort_abi::manifest::Manifest;
use cohort_passes::pipeline::{self, Stage};

use crate::exit::Stop;
use diagnostics::Reporter;
use source::{Dims, Source};

/// Compiles a `.coh` program, or MLIR of any level, for this machine.
pub fn compile(
    path: &Path,
    bytes: &[u8],
    dims: &Dims,
    pipeline: &pipeline::Options,
) -> Result<cohort_runtime::Program, Stop> {
    let (manifest, code) = if is_coh(path) {
        let source = Source::check(path, bytes)?;
        let program = source.bind(dims)?;
        let reporter = Reporter::with_sources(&source.sources);
        let context = cohort_dialects::new_context();
        let _handler = reporter.attach(&context);
        let mut module = source.lower(&context, &program)?;
        module::run_passes(&context, &mut module, Stage::Program, pipeline)?;
        to_code(&module)?
    } else {
        let context = cohort_dialects::new_context();
        let mut module = module::parse(&context, path, bytes)?;
        let level = module::level(&module);
        module::run_passes(&context, &mut module, level, pipeline)?;
        to_code(&module)?
    };
    cohort_runtime::Program::new(manifest, Box::new(code))
        .map_err(|error| Stop::usage(error.to_string()))
}

/// Whether a file holds a `.coh` program, going by its name.
pub fn is_coh(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "coh")
}

fn to_code(module: &melior::ir::Module<'_>) -> Result<(Manifest, jit::Jit), Stop> {
    let manifest = module::manifest(module)?;
    let code = jit::Jit::new(module)?;
    code.register(&cohort_runtime::abi_symbols());
    Ok((manifest, code))
}
