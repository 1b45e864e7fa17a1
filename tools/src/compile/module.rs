//! Modules: read, brought down, and asked for their manifest.

use cohort_dialects::marks;
use std::ffi::CString;
use std::path::Path;

use cohort_abi::manifest::Manifest;
use cohort_codegen::gpu::lower_kernels_to_gpu::ATTRIBUTE as GPU_ATTRIBUTE;
use cohort_codegen::lower_control::MANIFEST_ATTRIBUTE;
use cohort_codegen::pipeline::{self, Stage};
use cohort_dialects::builder::Op;
use cohort_dialects::diagnostics::emit_error;
use cohort_passes::kernel::description::ATTRIBUTE as KERNEL_ATTRIBUTE;
use cohort_passes::support::ir::{clone_op, name_attribute, top_level};
use cohort_runtime::program::artifact::manifest_mark;
use melior::{
    Context, StringRef,
    ir::{BlockLike, Module, OperationRef, operation::OperationLike},
};

use super::trial;
use crate::exit::{Stop, USAGE};

/// Parses MLIR, text or bytecode: the file, or the bytes that were read from stdin.
pub fn parse<'c>(context: &'c Context, path: &Path, bytes: &[u8]) -> Result<Module<'c>, Stop> {
    trial::parse(path, bytes)?;
    parse_raw(context, path, bytes)
        .ok_or_else(|| Stop::usage(format!("{} is not a valid MLIR module", path.display())))
}

/// The same by MLIR's parser alone, which may end the process; what is wrong goes to the context's
/// handlers.
pub(super) fn parse_raw<'c>(context: &'c Context, path: &Path, bytes: &[u8]) -> Option<Module<'c>> {
    let name = CString::new(path.as_os_str().as_encoded_bytes()).ok()?;
    // MLIR's lexer wants a NUL behind the text.
    let text = [bytes, b"\0"].concat();
    // SAFETY: the text and the path are alive during the call; a null result is told apart.
    unsafe {
        let raw = if path == Path::new("-") {
            let text = mlir_sys::MlirStringRef {
                data: text.as_ptr().cast(),
                length: bytes.len(),
            };
            mlir_sys::mlirModuleCreateParse(context.to_raw(), text)
        } else {
            let name = StringRef::from_c_str(&name);
            mlir_sys::mlirModuleCreateParseFromFile(context.to_raw(), name.to_raw())
        };
        Module::from_option_raw(raw)
    }
}

/// The level that a module is at, by what is in it.
pub fn level(module: &Module<'_>) -> Stage {
    let operation = module.as_operation();
    if operation.has_attribute(&MANIFEST_ATTRIBUTE) {
        return Stage::Target;
    }
    let mut level = Stage::Program;
    let operations = top_level(operation);
    let is_planned = |operation: &OperationRef<'_, '_>| match Op::of(*operation) {
        Some(Op::RaggedKernel) => true,
        Some(Op::GpuModule) => !operation.has_attribute(&GPU_ATTRIBUTE),
        _ => false,
    };
    let is_left = |operation: &OperationRef<'_, '_>| Op::CfbKernel.is(*operation);
    if operations.iter().any(is_planned) && !operations.iter().any(is_left) {
        return Stage::Loops;
    }
    for operation in top_level(operation) {
        if Op::CfbKernel.is(operation) || operation.has_attribute(&KERNEL_ATTRIBUTE) {
            return Stage::Batched;
        }
        let nested = cohort_passes::support::ir::nested_ops(operation);
        if nested
            .into_iter()
            .any(|operation| Op::CfbBlock.is(operation))
        {
            level = Stage::Blocks;
        }
    }
    level
}

/// Takes a module from a level down to the `llvm` dialect; problems go to the context's handlers.
pub fn run_passes(
    context: &Context,
    module: &mut Module<'_>,
    from: Stage,
    options: &pipeline::Options,
) -> Result<(), Stop> {
    run_passes_upto(context, module, from, Stage::Llvm, options)
}

/// The same, down to a stage.
pub fn run_passes_upto(
    context: &Context,
    module: &mut Module<'_>,
    from: Stage,
    upto: Stage,
    options: &pipeline::Options,
) -> Result<(), Stop> {
    for stage in pipeline::STAGES {
        if stage > from && stage <= upto {
            pipeline::run_stage(context, module, stage, options)
                .map_err(|_| Stop::reported(USAGE))?;
        }
    }
    Ok(())
}

/// Refuses assembly in a module of the `llvm` dialect: LLVM would end the process over it, since no
/// assembler is part of it here.
pub fn refuse_assembly(module: &Module<'_>) -> Result<(), Stop> {
    let operation = module.as_operation();
    let nested = cohort_passes::support::ir::nested_ops(operation);
    let inline = nested
        .into_iter()
        .find(|nested| Op::LlvmInlineAsm.is(*nested));
    if let Some(inline) = inline {
        emit_error(
            inline,
            "inline assembly cannot be compiled; call a function of the runtime",
        );
        return Err(Stop::reported(USAGE));
    }
    if operation.has_attribute(&marks::MODULE_ASSEMBLY) {
        emit_error(operation, "assembly of a module cannot be compiled");
        return Err(Stop::reported(USAGE));
    }
    Ok(())
}

/// Adds the symbol by which an artifact's code names its manifest.
pub fn mark(context: &Context, module: &Module<'_>, manifest: &Manifest) -> Result<(), Stop> {
    let mark = manifest_mark(manifest).map_err(|error| Stop::usage(error.to_string()))?;
    let text = format!(
        "module {{ llvm.mlir.global external constant @{mark}(0 : i8) {{addr_space = 0 : i32}} : i8 }}"
    );
    let Some(parsed) = Module::parse(context, &text) else {
        return Err(Stop::usage(
            "internal error: the manifest's mark does not parse",
        ));
    };
    for global in top_level(parsed.as_operation()) {
        module.body().append_operation(clone_op(global));
    }
    Ok(())
}

/// The manifest that `lower-control` wrote.
pub fn manifest(module: &Module<'_>) -> Result<Manifest, Stop> {
    let json = name_attribute(module.as_operation(), MANIFEST_ATTRIBUTE)
        .ok_or_else(|| Stop::usage("the module has no manifest; is it a program?"))?;
    serde_json::from_str(&json)
        .map_err(|error| Stop::usage(format!("the module's manifest is malformed: {error}")))
}
