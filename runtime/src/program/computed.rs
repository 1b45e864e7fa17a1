//! What a program needs that is made of its parameters alone, computed once when they are loaded.

use std::ffi::c_void;

use cohort_abi::manifest::Kernel;
use cohort_abi::{KernelFn, OperandRef};

use crate::error::Error;
use crate::memory::AlignedBuffer;
use crate::program::code::Program;
use crate::program::pack::{pack_constant, write_constant};

const PURPOSE: &str = "what is computed from the weights";

/// The rows of the manifest's `computed`.
pub struct ComputedWeights {
    /// Buffers and the bytes of them that count.
    rows: Vec<(AlignedBuffer, usize)>,
    scratch: AlignedBuffer,
    /// The constants of each entry's kernel, once they were computed anew: training does it in each step.
    constants: Vec<Vec<AlignedBuffer>>,
}

impl ComputedWeights {
    /// Runs the load-time kernels. `params` holds each parameter's bytes, row-major, in the order of
    /// the manifest; they were checked against it.
    pub fn new(program: &Program, params: &[&[u8]]) -> Result<ComputedWeights, Error> {
        let manifest = program.manifest();
        let mut computed = ComputedWeights {
            rows: Vec::with_capacity(manifest.computed.len()),
            scratch: AlignedBuffer::default(),
            constants: Vec::new(),
        };
        for entry in &manifest.computed {
            let kernel = &manifest.kernels[entry.kernel];
            let bytes = manifest.row_pools[kernel.results[0]].row_bytes() as usize;
            let row = AlignedBuffer::zeroed(bytes, PURPOSE)?;
            computed.rows.push((row, bytes));
            let scratch = kernel.scratch_bytes as usize;
            computed.scratch.ensure(scratch, PURPOSE)?;
        }
        computed.update(program, params)?;
        computed.constants.clear();
        Ok(computed)
    }

    /// Computes them anew, in their places, of other parameters.
    pub fn update(&mut self, program: &Program, params: &[&[u8]]) -> Result<(), Error> {
        let manifest = program.manifest();
        for (index, entry) in manifest.computed.iter().enumerate() {
            let (before, own) = self.rows.split_at_mut(index);
            let before = before.iter().map(|(row, bytes)| &row.bytes()[..*bytes]);
            let weights: Vec<&[u8]> = params.iter().copied().chain(before).collect();
            let function = program.kernels[entry.kernel];
            let kernel = &manifest.kernels[entry.kernel];
            match self.constants.get_mut(index) {
                Some(constants) => {
                    for (buffer, constant) in constants.iter_mut().zip(&kernel.constants) {
                        let (whole, _) = constant.whole();
                        write_constant(manifest, &weights, whole, buffer.bytes_mut());
                    }
                }
                None => {
                    let constants = kernel.constants.iter();
                    let packed =
                        constants.map(|constant| pack_constant(manifest, &weights, constant));
                    self.constants.push(packed.collect::<Result<_, _>>()?);
                }
            }
            let memory = (&mut own[0].0, &mut self.scratch);
            run(kernel, function, &self.constants[index], memory);
        }
        Ok(())
    }

    /// The bytes of all weights as [`Manifest::weight`](cohort_abi::manifest::Manifest::weight) counts them: the parameters' and these.
    pub fn behind<'a>(&'a self, params: &[&'a [u8]]) -> Vec<&'a [u8]> {
        let computed = self.rows.iter().map(|(row, bytes)| &row.bytes()[..*bytes]);
        params.iter().copied().chain(computed).collect()
    }
}

/// Writes the one row of the kernel's one result; there is room for it, and for scratch. `constants` are the kernel's, whole.
fn run(
    kernel: &Kernel,
    function: KernelFn,
    constants: &[AlignedBuffer],
    (row, scratch): (&mut AlignedBuffer, &mut AlignedBuffer),
) {
    let addresses: Vec<*const c_void> = (constants.iter().zip(&kernel.constants))
        .map(|(buffer, constant)| (buffer.address()).wrapping_add(constant.whole().1 as usize))
        .map(|address| address.cast())
        .collect();
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
}
