//! Makes an MLIR file small with MLIR's own reducer, which knows regions, blocks and operations, our
//! dialects registered.

use std::ffi::{CString, OsStr, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use melior::dialect::DialectRegistry;
use mlir_sys::MlirDialectRegistry;

use crate::exit::Stop;

/// Reduces the file `input` to the file `output`; `tester` is a program that ends with 1 while the file
/// that it is given is of interest, with 0 otherwise.
///
/// May be called once in a process, since LLVM's command lines are global.
pub fn reduce(tester: &Path, input: &Path, output: &Path) -> Result<(), Stop> {
    let pass = format!(
        "--reduction-tree=traversal-mode=0 test={}",
        tester.display()
    );
    let arguments = [
        OsStr::new("batch-reduce"),
        input.as_os_str(),
        OsStr::new(&pass),
        OsStr::new("-o"),
        output.as_os_str(),
    ];
    let arguments = arguments
        .map(|argument| CString::new(argument.as_bytes()))
        .into_iter()
        .collect::<Result<Vec<_>, _>>()
        .map_err(|_| Stop::usage("a path holds NUL"))?;
    // LLVM keeps pointers into them.
    let arguments: &'static [CString] = arguments.leak();
    let mut pointers: Vec<*const c_char> = arguments.iter().map(|text| text.as_ptr()).collect();

    let registry = DialectRegistry::new();
    cohort_dialects::register(&registry);
    // SAFETY: the registry and the arguments are alive during the call; nothing there writes to the
    // strings.
    let succeeded = unsafe {
        cohort_reduce_run(
            registry.to_raw(),
            pointers.len() as c_int,
            pointers.as_mut_ptr(),
        )
    };
    match succeeded {
        true => Ok(()),
        false => Err(Stop::failed("MLIR's reducer did not succeed")),
    }
}

unsafe extern "C" {
    fn cohort_reduce_run(
        registry: MlirDialectRegistry,
        argc: c_int,
        argv: *mut *const c_char,
    ) -> bool;
}
