//! What a program needs that is made of its parameters alone, computed once when they are loaded.

use std::ffi::c_void;

use cohort_abi::manifest::{Kernel, Manifest};
use cohort_abi::{KernelFn, OperandRef};

use crate::code::Program;
use crate::error::Error;
use crate::memory::AlignedBuffer;
use crate::pack::pack_constant;

const PURPOSE: &str = "what is computed from the weights";

/// The rows of the manifest's `computed`.
pub struct ComputedWeights {
    /// Buffers and the bytes of them that count.
    rows: Vec<(AlignedBuffer, usize)>,
}

impl ComputedWeights {
    /// Runs the load-time kernels. `params` holds each parameter's bytes, row-major, in the order of
    /// the manifest; they were checked against it.
    pub fn new(program: &Program, params: &[&[u8]]) -> Result<ComputedWeights, Error> {
        let manifest = program.manifest();
        let mut computed = ComputedWeights { rows: Vec::new() };
        for entry in &manifest.computed {
            let weights = computed.behind(params);
            let function = program.kernels[entry.kernel];
            let kernel = &manifest.kernels[entry.kernel];
            let row = run(manifest, kernel, function, &weights)?;
            computed.rows.push(row);
        }
        Ok(computed)
    }

    /// The bytes of all weights as [`Manifest::weight`] counts them: the parameters' and these.
    pub fn behind<'a>(&'a self, params: &[&'a [u8]]) -> Vec<&'a [u8]> {
        let computed = self.rows.iter().map(|(row, bytes)| &row.bytes()[..*bytes]);
        params.iter().copied().chain(computed).collect()
    }
}

/// The one row of the kernel's one result, and its bytes.
fn run(
    manifest: &Manifest,
    kernel: &Kernel,
    function: KernelFn,
    weights: &[&[u8]],
) -> Result<(AlignedBuffer, usize), Error> {
    let mut constants = Vec::with_capacity(kernel.constants.len());
    for constant in &kernel.constants {
        constants.push(pack_constant(manifest, weights, constant)?);
    }
    let addresses: Vec<*const c_void> = (constants.iter().zip(&kernel.constants))
        .map(|(buffer, constant)| (buffer.address()).wrapping_add(constant.whole().1 as usize))
        .map(|address| address.cast())
        .collect();
    let bytes = manifest.spaces[kernel.results[0]].row_bytes() as usize;
    let mut row = AlignedBuffer::zeroed(bytes, PURPOSE)?;
    let mut scratch = AlignedBuffer::zeroed(kernel.scratch_bytes as usize, PURPOSE)?;
    let operands: [OperandRef; 0] = [];
    let results: [*mut c_void; 1] = [row.bytes_mut().as_mut_ptr().cast()];
    // SAFETY: the kernel's ABI. It has no operands and one result, both checked with the manifest;
    // the result has the bytes of one row, the constants are those that the manifest lists, and the
    // scratch has the size that it asks for.
    unsafe {
        function(
            0,
            1,
            operands.as_ptr(),
            results.as_ptr(),
            addresses.as_ptr(),
            scratch.bytes_mut().as_mut_ptr().cast(),
        );
    }
    Ok((row, bytes))
}
