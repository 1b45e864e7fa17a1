//! What a flush knows of a kernel.

use std::ffi::c_void;

use cohort_abi::KernelFn;
use cohort_abi::manifest::{self, Manifest, Operand};

use crate::program::call_form::CallForm;
use crate::program::log::Called;
use crate::program::pack::Constants;

/// A kernel with everything about it that does not change.
pub(super) struct Kernel {
    pub function: KernelFn,
    pub operands: Vec<Operand>,
    pub lists: usize,
    pub results: Vec<usize>,
    pub constants: Vec<*const c_void>,
    pub row_tile: u64,
    /// What each thread needs while it computes.
    pub scratch_bytes: usize,
    pub row_work: u64,
    pub flops_per_row: u64,
    pub form: CallForm,
    /// Kernels of one number do as much in calls of equal lengths.
    pub form_number: usize,
    /// Kernels of one number make as many rows of equal lengths.
    pub extent: usize,
    /// The first of as many numbers as its operands are and one more; kernels of one form have the same.
    pub hints: usize,
}

impl Called for Kernel {
    fn form(&self) -> &CallForm {
        &self.form
    }
}

impl Kernel {
    /// The kernels of the manifest, with their functions and the addresses of their constants.
    pub fn all(manifest: &Manifest, functions: &[KernelFn], constants: &Constants) -> Vec<Kernel> {
        let kernels = &manifest.kernels;
        let forms: Vec<CallForm> = kernels.iter().map(CallForm::of).collect();
        let extents: Vec<_> = forms.iter().map(CallForm::row_columns).collect();
        let mut all: Vec<Kernel> = Vec::with_capacity(kernels.len());
        let mut hints = 0;
        for (index, (kernel, form)) in kernels.iter().zip(forms).enumerate() {
            let form_number = first_alike(kernels, index, does_as_much);
            let of_form = all.get(form_number).map_or(hints, |first| first.hints);
            hints = hints.max(of_form + 1 + kernel.operands.len());
            all.push(Kernel {
                function: functions[index],
                operands: kernel.operands.clone(),
                lists: kernel.lists(),
                results: kernel.results.clone(),
                constants: constants.addresses(index),
                row_tile: kernel.row_tile,
                scratch_bytes: kernel.scratch_bytes as usize,
                row_work: row_work(manifest, kernel),
                flops_per_row: kernel.flops_per_row,
                form,
                form_number,
                hints: of_form,
                extent: first_alike(&extents, index, PartialEq::eq),
            });
        }
        all
    }

    /// Bytes of the ragged operands and of the results of a call with these lengths.
    pub fn ragged_bytes(
        &self,
        row_bytes: impl Fn(usize) -> u64,
        length: impl Fn(usize) -> u64,
    ) -> u64 {
        let bytes = |rows: u64, pool: usize| rows.saturating_mul(row_bytes(pool));
        let operands = self.operands.iter().map(|operand| match operand {
            Operand::Ragged { pool, extent } | Operand::Stacked { pool, extent } => {
                bytes(self.form.extent_of(*extent, &length), *pool)
            }
            _ => 0,
        });
        let rows = self.form.rows_of(&length);
        let results = self.results.iter().map(|pool| bytes(rows, *pool));
        operands.chain(results).fold(0, u64::saturating_add)
    }
}

/// The first of all that is like this one.
fn first_alike<T>(all: &[T], index: usize, are_alike: impl Fn(&T, &T) -> bool) -> usize {
    let mut before = all[..index].iter();
    let found = before.position(|other| are_alike(other, &all[index]));
    found.unwrap_or(index)
}

/// Whether calls of equal lengths are as much work for both kernels.
fn does_as_much(one: &manifest::Kernel, other: &manifest::Kernel) -> bool {
    one.call == other.call
        && one.operands == other.operands
        && one.results == other.results
        && one.flops_per_row == other.flops_per_row
}

/// Operations a row: those of products, and one for each element that is read or written.
fn row_work(manifest: &Manifest, kernel: &manifest::Kernel) -> u64 {
    let elements = |pool: usize| manifest.row_pools[pool].row_elements();
    let read = kernel
        .operands
        .iter()
        .map(|operand| match operand {
            Operand::Row { pool } | Operand::Ragged { pool, .. } => elements(*pool),
            // Their lengths are known only when they are recorded.
            Operand::Rows { .. } | Operand::Stacked { .. } => 0,
            Operand::Scalar(_) | Operand::Length => 1,
        })
        .fold(0, u64::saturating_add);
    let written = kernel.results.iter().map(|pool| elements(*pool));
    let written = written.fold(0, u64::saturating_add);
    let elements = read.saturating_add(written);
    (kernel.flops_per_row).saturating_add(elements.saturating_mul(4))
}
