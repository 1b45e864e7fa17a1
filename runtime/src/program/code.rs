//! Compiled code as the runtime sees it: symbols, turned into checked functions.

use std::sync::Arc;

use cohort_abi::manifest::Manifest;
use cohort_abi::{EntryFn, KernelFn, VERSION};

use crate::error::Error;
use crate::program::artifact::DeviceCode;
use crate::program::validate::validate;

/// Where the entry and the kernels of a program come from: an object file, a test.
///
/// # Safety
///
/// An address that `symbol` returns must be the function that the manifest promises under that
/// name, with the ABI of [`cohort_abi`] (a function of a GPU kernel is a
/// [`cohort_abi::gpu::SimFn`]), callable for as long as `self` lives, and from any
/// thread if it is a kernel. Kernels must keep to the rows and bytes that they are given.
pub unsafe trait CompiledCode {
    /// The address of the function with this name, `None` where there is none.
    fn symbol(&self, name: &str) -> Option<*const ()>;
}

/// A program that is ready to run: its manifest, its functions, and what keeps them alive. A clone
/// shares them.
#[derive(Clone)]
pub struct Program {
    pub(crate) manifest: Arc<Manifest>,
    pub(crate) entry: EntryFn,
    pub(crate) kernels: Vec<KernelFn>,
    pub(crate) code: Arc<dyn CompiledCode>,
    pub(crate) device_code: Arc<[DeviceCode]>,
}

impl Program {
    /// Checks the manifest and finds every function that it names.
    pub fn new(manifest: Manifest, code: Box<dyn CompiledCode>) -> Result<Program, Error> {
        if manifest.version != VERSION {
            return Err(Error::Version {
                expected: VERSION,
                found: manifest.version,
            });
        }
        validate(&manifest)?;
        let find = |symbol: &str, purpose: &dyn Fn() -> String| {
            code.symbol(symbol)
                .filter(|address| !address.is_null())
                .ok_or_else(|| Error::MissingSymbol {
                    symbol: symbol.to_owned(),
                    purpose: purpose(),
                })
        };
        let entry = find(&manifest.entry, &|| "the entry".to_owned())?;
        // SAFETY: `CompiledCode` promises that the entry's symbol is an `EntryFn`.
        let entry = unsafe { std::mem::transmute::<*const (), EntryFn>(entry) };
        let mut kernels = Vec::with_capacity(manifest.kernels.len());
        for kernel in &manifest.kernels {
            let address = find(&kernel.symbol, &|| format!("kernel `{}`", kernel.name))?;
            // SAFETY: `CompiledCode` promises that a kernel's symbol is a `KernelFn`.
            kernels.push(unsafe { std::mem::transmute::<*const (), KernelFn>(address) });
        }
        Ok(Program {
            manifest: Arc::new(manifest),
            entry,
            kernels,
            code: Arc::from(code),
            device_code: Arc::from([]),
        })
    }

    /// With its kernels for devices, if it was compiled for any.
    pub fn with_device_code(mut self, codes: Vec<DeviceCode>) -> Program {
        self.device_code = codes.into();
        self
    }

    /// What the compiler says of the program.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }
}
