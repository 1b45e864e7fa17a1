//! Ghosts: other names of rows, with larger order keys.

use cohort_abi::manifest::{Manifest, Type};
use cohort_abi::{Failure, Handle};

use super::costs::GHOST_BYTES;
use super::{Grouping, Recorder};
use crate::failure::StoppedAt;

/// Levels that one ghost may go deeper.
const MAX_LEVELS: u32 = (1 << 12) - 1;

impl Recorder {
    /// Another name of a row, `levels` deeper; see [`cohort_abi::symbols::GHOST`].
    ///
    /// # Safety
    ///
    /// An instance runs on this recorder.
    pub(crate) unsafe fn ghost(&mut self, handle: u64, levels: u32) -> u64 {
        match self.state.memory_left.checked_sub(GHOST_BYTES) {
            Some(left) => self.state.memory_left = left,
            None => self.stop_because(Failure::MemoryLimit, StoppedAt::Unknown),
        }
        if levels == 0 || self.grouping == Grouping::Unbatched || self.is_ragged(handle) {
            return handle;
        }
        let ghosts = self.kernels.len() - 1;
        // SAFETY: the last kernel is that of the ghosts, which has one operand.
        unsafe { self.append::<false>(ghosts as u32, &handle, levels.min(MAX_LEVELS)) }
    }

    /// Whether the handle may be that of several rows. Those of a ghost would not be one behind
    /// another, so such a tensor has none, and what reads it is launched where it is.
    fn is_ragged(&self, handle: u64) -> bool {
        let bucket = Handle(handle).bucket() as usize;
        match self.kernels.get(self.buckets.kernel(bucket) as usize) {
            Some(calls) => calls.form.has_extent(),
            None => {
                let pool = self.numbering.input_pool(bucket);
                pool.is_some_and(|pool| self.is_ragged_input[pool])
            }
        }
    }
}

/// Of each row pool, whether arguments have ragged tensors in it. What a program hands around as a
/// tensor of known shape may be in it too.
pub(super) fn ragged_inputs(manifest: &Manifest) -> Vec<bool> {
    fn note(ty: &Type, row_pools: &mut [bool]) {
        match ty {
            Type::Ragged { pool, .. } => row_pools[*pool] = true,
            Type::Tuple(types) => types.iter().for_each(|ty| note(ty, row_pools)),
            Type::Array(element) => note(element, row_pools),
            // Their fields are looked at once, below.
            Type::Adt(_)
            | Type::Scalar(_)
            | Type::Str
            | Type::Tensor { .. }
            | Type::Stacked { .. } => {}
        }
    }
    let mut row_pools = vec![false; manifest.row_pools.len()];
    let arguments = manifest.arguments.iter().map(|argument| &argument.ty);
    let constructors = manifest.adts.iter().flat_map(|adt| &adt.constructors);
    let fields = constructors.flat_map(|constructor| &constructor.fields);
    for ty in arguments.chain(fields) {
        note(ty, &mut row_pools);
    }
    row_pools
}
