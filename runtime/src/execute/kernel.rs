//! What a flush knows of a kernel.

use std::ffi::c_void;

use cohort_abi::KernelFn;
use cohort_abi::manifest::{self, Manifest, Operand};

use crate::call_form::CallForm;

/// A kernel with everything about it that does not change.
pub(super) struct Kernel {
    pub function: KernelFn,
    pub operands: Vec<Operand>,
    pub lists: usize,
    pub results: Vec<usize>,
    pub constants: Vec<*const c_void>,
    pub row_tile: u64,
    pub row_work: u64,
    pub flops_per_row: u64,
    pub form: CallForm,
}

impl Kernel {
    /// A kernel of the manifest, with its function and the addresses of its constants.
    pub fn new(
        manifest: &Manifest,
        kernel: &manifest::Kernel,
        function: KernelFn,
        constants: Vec<*const c_void>,
    ) -> Kernel {
        Kernel {
            function,
            operands: kernel.operands.clone(),
            lists: kernel.lists(),
            results: kernel.results.clone(),
            constants,
            row_tile: kernel.row_tile,
            row_work: row_work(manifest, kernel),
            flops_per_row: kernel.flops_per_row,
            form: CallForm::of(kernel),
        }
    }

    /// Bytes of the ragged operands and of the results of a call with these lengths.
    pub fn ragged_bytes(
        &self,
        row_bytes: impl Fn(usize) -> u64,
        length: impl Fn(usize) -> u64,
    ) -> u64 {
        let bytes = |rows: u64, space: usize| rows.saturating_mul(row_bytes(space));
        let operands = self.operands.iter().map(|operand| match operand {
            Operand::Ragged { space, extent } | Operand::Stacked { space, extent } => {
                bytes(self.form.extent_of(*extent, &length), *space)
            }
            _ => 0,
        });
        let rows = self.form.rows_of(&length);
        let results = self.results.iter().map(|space| bytes(rows, *space));
        operands.chain(results).fold(0, u64::saturating_add)
    }
}

/// Operations a row: those of products, and one for each element that is read or written.
fn row_work(manifest: &Manifest, kernel: &manifest::Kernel) -> u64 {
    let elements = |space: usize| manifest.spaces[space].row_elements();
    let read: u64 = kernel
        .operands
        .iter()
        .map(|operand| match operand {
            Operand::Row { space } | Operand::Ragged { space, .. } => elements(*space),
            // Their lengths are known only when they are recorded.
            Operand::Rows { .. } | Operand::Stacked { .. } => 0,
            Operand::Scalar(_) | Operand::Length => 1,
        })
        .sum();
    let written: u64 = kernel.results.iter().map(|space| elements(*space)).sum();
    kernel.flops_per_row + 4 * (read + written)
}
