//! What a program needs on a device before its first flush: functions and constants.

use cohort_abi::manifest::{Constant, Manifest};

use super::{Kernel, Runner};
use crate::device::{Piece, Problem};
use crate::error::Error;
use crate::program::pack::pack_constant;

impl Runner {
    /// Finds the functions of a kernel and sends its constants, but for those in `sent`.
    pub(super) fn kernel<'m>(
        &mut self,
        manifest: &Manifest,
        kernel: &'m cohort_abi::manifest::Kernel,
        weights: &[&[u8]],
        sent: &mut Vec<(&'m Constant, u64)>,
    ) -> Result<Kernel, Error> {
        let no_code = |why: &str| {
            Problem::NoCode(format!(
                "the kernel `{}` ({}) {why}",
                kernel.name, kernel.location
            ))
        };
        let Some(gpu) = &kernel.gpu else {
            return Err(self.error(no_code(
                "has no code for GPUs: the program was not compiled for one (`batch-opt --gpu-arch`), or \
                 the kernel cannot run there",
            )));
        };
        let mut functions = Vec::with_capacity(gpu.launches.len());
        let mut grouped = Vec::with_capacity(gpu.launches.len());
        for launch in &gpu.launches {
            let found: Result<Vec<usize>, Problem> = launch
                .functions
                .iter()
                .map(|function| self.device.function(function))
                .collect();
            functions.push(found.map_err(|problem| self.error(problem))?);
            let of_groups = launch.grouped.as_ref();
            let found = of_groups.map(|function| self.device.function_if_there(function));
            let found = found.transpose().map_err(|problem| self.error(problem))?;
            grouped.push(found.flatten());
        }
        let has_warpgroups = grouped.iter().any(Option::is_some);
        let mut constants = Vec::with_capacity(gpu.constants.len());
        for constant in &gpu.constants {
            let is_for_warpgroups =
                matches!(constant, Constant::Rounded { by_columns, .. } if *by_columns);
            let known = sent.iter().find(|(known, _)| *known == constant);
            constants.push(match known {
                Some((_, address)) => *address,
                None if is_for_warpgroups && !has_warpgroups => 0,
                None => {
                    let address = self.constant(manifest, weights, constant)?;
                    sent.push((constant, address));
                    address
                }
            });
        }
        Ok(Kernel {
            gpu: gpu.clone(),
            unit: kernel.call.unit,
            operands: kernel.operands.clone(),
            results: kernel.results.clone(),
            constants,
            functions,
            grouped,
        })
    }

    fn constant(
        &mut self,
        manifest: &Manifest,
        weights: &[&[u8]],
        constant: &Constant,
    ) -> Result<u64, Error> {
        let packed = pack_constant(manifest, weights, constant)?;
        let bytes = packed.bytes();
        let taken = self.pool.take(&mut *self.device, bytes.len() as u64);
        let block = taken.map_err(|problem| {
            self.error(match problem {
                Problem::OutOfMemory { bytes, room } => Problem::Full(format!(
                    "the program's constants do not fit: for one of them {bytes} bytes are needed \
                     and {room} are free (try a larger --device-memory)"
                )),
                problem => problem,
            })
        })?;
        // SAFETY: the block was taken for these bytes; the zeros behind the constant are theirs.
        let uploaded = unsafe { self.device.upload(block.address, bytes) };
        uploaded.map_err(|problem| self.error(problem))?;
        self.constants.push(Piece {
            address: block.address,
            bytes: bytes.len() as u64,
        });
        Ok(block.address)
    }
}
