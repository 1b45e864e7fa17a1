//! What a call of a kernel takes from its instance's limits.

use cohort_abi::Failure;
use cohort_abi::manifest::{Manifest, Unit};

use super::state::State;
use crate::call_cache::sharing::SharedCalls;
use crate::failure::{Stop, StoppedAt};
use crate::program::call_form::CallForm;
use crate::program::log::Called;
use crate::program::slot::Slot;

/// What a handle of a list uses until the end of its batch: log, index.
const HANDLE_BYTES: u64 = 8 + 4;
/// What a ghost uses until it is forgotten: log, row.
pub(super) const GHOST_BYTES: u64 = 16 + 8;
/// No dim of a ragged tensor may be longer.
const MAX_LENGTH: u64 = (1 << 31) - 1;

/// What recording a call of a kernel needs.
pub(super) struct KernelCalls {
    pub form: Box<CallForm>,
    /// For each operand; as the form has them.
    pub slots: Box<[Slot]>,
    /// Whether what a call takes must be looked up: it has lists, or is ragged.
    pub is_special: bool,
    /// Bytes that one call uses until the end of its batch: log, index, rows. Of a ragged kernel,
    /// without what depends on its rows.
    pub call_bytes: u64,
    /// Bytes that a row of a call of a ragged kernel uses: index, results.
    row_bytes: u64,
    pub shared: Option<SharedCalls>,
}

impl Called for KernelCalls {
    fn form(&self) -> &CallForm {
        &self.form
    }
}

impl KernelCalls {
    /// Equal calls are shared where that is possible, if `share`.
    pub fn of(manifest: &Manifest, number: usize, share: bool) -> KernelCalls {
        let kernel = &manifest.kernels[number];
        let form = CallForm::of(kernel);
        let operands = kernel.operands.len() as u64;
        let rows: u64 = kernel
            .results
            .iter()
            .map(|pool| manifest.row_pools[*pool].row_bytes())
            .sum();
        let log = 8 * (1 + operands);
        let (call_bytes, row_bytes) = match (form.is_ragged, form.unit) {
            (false, _) => (log + 4 * operands + rows, 0),
            // Its row among those of its bucket, even where there are no operands.
            (true, Unit::Rows) => (log + 8, 4 * operands.max(1) + rows),
            (true, Unit::Calls) => (log + 4 * (operands + 1) + 8, rows.max(1)),
        };
        KernelCalls {
            is_special: form.is_ragged || form.slots.contains(&Slot::List),
            call_bytes,
            row_bytes,
            shared: share.then(|| SharedCalls::of(manifest, number)).flatten(),
            slots: form.slots.clone(),
            form: form.into(),
        }
    }

    /// Of ghosts.
    pub fn ghosts() -> KernelCalls {
        KernelCalls {
            form: CallForm::plain([Slot::Row].into()).into(),
            slots: [Slot::Row].into(),
            is_special: false,
            call_bytes: GHOST_BYTES,
            row_bytes: 0,
            shared: None,
        }
    }
}

/// What a call takes that has lists or is ragged.
pub(super) struct SpecialCosts {
    /// Handles of all its lists.
    pub listed: usize,
    pub rows: u32,
    pub bytes: u64,
}

/// Whether an instance that has this left may make a call, and what that takes.
///
/// # Safety
///
/// As `Recorder::record`.
pub(super) unsafe fn special_costs(
    calls: &KernelCalls,
    kernel: u32,
    operands: *const u64,
    state: &State,
) -> Result<SpecialCosts, Stop> {
    let stop = |failure, a: u64, b: u64, place| Stop {
        failure,
        a: i64::try_from(a).unwrap_or(i64::MAX),
        b: b as i64,
        place,
    };
    let form = &calls.form;
    // SAFETY: the caller's promise.
    let entry = unsafe { std::slice::from_raw_parts(operands, form.slots.len()) };
    let mut rows = 1;
    if form.is_ragged {
        if let Some(length) = form.lengths().find(|length| entry[*length] > MAX_LENGTH) {
            return Err(Stop {
                a: entry[length] as i64,
                ..stop(
                    Failure::ShapeMismatch,
                    0,
                    MAX_LENGTH,
                    StoppedAt::Length(kernel),
                )
            });
        }
        rows = form.rows(entry);
        let of_memory = state.memory_left / calls.row_bytes.max(1);
        let most = of_memory.min(state.rows_left.max(0) as u64);
        if rows > most {
            return Err(stop(
                Failure::MemoryLimit,
                rows,
                most,
                StoppedAt::Rows(kernel),
            ));
        }
    }
    // SAFETY: the slot of a list operand is the address of an array.
    let length_of = |operand: usize| unsafe { list_at(entry[operand]).len() };
    let is_list = |operand: &usize| form.slots[*operand] == Slot::List;
    let listed: usize = (0..entry.len()).filter(is_list).map(length_of).sum();
    for (operand, wanted) in form.operand_rows(entry) {
        if is_list(&operand) && length_of(operand) as u64 != wanted {
            let length = length_of(operand) as u64;
            return Err(stop(
                Failure::ShapeMismatch,
                wanted,
                length,
                StoppedAt::Kernel(kernel),
            ));
        }
    }
    // Where the unit is the row, each row of a call has its lists.
    let repeated = match form.unit {
        Unit::Rows => rows.max(1),
        Unit::Calls => 1,
    };
    let of_rows = match form.is_ragged {
        true => rows * calls.row_bytes,
        false => 0,
    };
    let bytes = (HANDLE_BYTES * listed as u64)
        .saturating_mul(repeated)
        .saturating_add(of_rows);
    if bytes > state.memory_left {
        return Err(stop(Failure::MemoryLimit, 0, 0, StoppedAt::Kernel(kernel)));
    }
    Ok(SpecialCosts {
        listed,
        rows: rows as u32,
        bytes,
    })
}

/// The handles of an array.
///
/// # Safety
///
/// `address` is that of an array of the control program, which stays as it is during `'a`.
pub(super) unsafe fn list_at<'a>(address: u64) -> &'a [u64] {
    let array = address as *const u64;
    // SAFETY: an array is its length and then as many slots.
    unsafe { std::slice::from_raw_parts(array.add(1), *array as usize) }
}
