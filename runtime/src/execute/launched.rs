//! A launch that is over, for whoever wants to look at it: what each call was given, and what came out.

use std::ffi::c_void;

use cohort_abi::OperandRef;
use cohort_abi::manifest::{Operand, Unit};

use super::kernel::Kernel;
use super::pieces::Pieces;
use crate::memory::arena::PoolBase;

/// Sees every launch of a run on the processor, as soon as it is over.
pub trait Inspector: Send {
    /// A launch is over. Its results are there until this returns, and are not to be kept.
    fn launched(&mut self, launch: &Launched<'_>);
}

/// What a kernel's function has computed.
#[derive(Clone, Copy)]
pub struct Launched<'a> {
    /// The kernel's number in the manifest.
    pub number: usize,
    pub(super) kernel: &'a Kernel,
    pub(super) operands: &'a [OperandRef],
    pub(super) results: &'a [*mut c_void],
    pub(super) bases: &'a [PoolBase],
    /// What the kernel counts: rows, or calls.
    pub(super) entries: u32,
    /// How it was computed call by call, where it was.
    pub(super) pieces: Option<Pieces<'a>>,
    /// The ranges of rows that it computed; without, all.
    pub(super) spans: Option<&'a [(u32, u32)]>,
}

/// What a call, or a row, was given for an operand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Given<'a> {
    /// The bits of a number of the host.
    Scalar(u32),
    /// How long an instance dim is; where the kernel counts rows, they are not told.
    Length(Option<u32>),
    /// Consecutive rows of a row pool, and the number of the first.
    Rows {
        /// The number of the first row.
        first: u32,
        /// The rows, one behind another.
        bytes: &'a [u8],
    },
    /// Rows of a row pool, each somewhere.
    List(ListOf<'a>),
}

/// Rows of a row pool, each somewhere.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ListOf<'a> {
    base: *const u8,
    row_bytes: usize,
    /// The numbers of the rows; one may be there several times.
    pub rows: &'a [u32],
}

impl<'a> ListOf<'a> {
    /// The bytes of each row.
    pub fn bytes(self) -> impl Iterator<Item = &'a [u8]> {
        self.rows.iter().map(move |row| {
            // SAFETY: the list holds rows of the base's row pool, which was checked when it was written,
            // and nobody writes to them while the launch is looked at.
            unsafe {
                let first = self.base.add(*row as usize * self.row_bytes);
                std::slice::from_raw_parts(first, self.row_bytes)
            }
        })
    }
}

impl<'a> Launched<'a> {
    /// The numbers of its calls, or of its rows where the kernel counts rows.
    pub fn entries(&self) -> Vec<usize> {
        match self.spans {
            None => (0..self.entries as usize).collect(),
            Some(spans) => spans
                .iter()
                .flat_map(|(first, rows)| *first as usize..(first + rows) as usize)
                .collect(),
        }
    }

    /// What an entry was given, one for each operand of the manifest.
    pub fn given(&self, entry: usize) -> Vec<Given<'a>> {
        let at = self.operands_of(entry);
        let operands = self.kernel.operands.iter().zip(&at).enumerate();
        let given = operands.map(|(position, (operand, at))| match operand {
            // SAFETY: the list has a word for each entry.
            Operand::Scalar(_) => Given::Scalar(unsafe { *at.index.add(entry) }),
            Operand::Length => Given::Length(self.length(position, entry)),
            Operand::Rows { pool } => Given::List(self.list(*pool, at, entry)),
            Operand::Row { pool }
            | Operand::Ragged { pool, .. }
            | Operand::Stacked { pool, .. } => {
                let extent = match operand {
                    Operand::Ragged { extent, .. } if self.kernel.form.unit == Unit::Calls => {
                        let length = |of| self.length(of, entry).map_or(0, u64::from);
                        self.kernel.form.extent_of(*extent, length)
                    }
                    _ => 1,
                };
                self.rows(*pool, at, entry, extent as usize)
            }
        });
        given.collect()
    }

    /// What the kernel was given when it computed an entry.
    fn operands_of(&self, entry: usize) -> Vec<OperandRef> {
        let mut operands = self.operands.to_vec();
        if let Some(pieces) = self.pieces {
            let entry = entry as u64;
            for (call, _, _) in pieces.within(entry, entry + 1) {
                pieces.move_to(call, self.operands, &mut operands);
            }
        }
        operands
    }

    /// The bytes of each of an entry's results.
    pub fn results(&self, entry: usize) -> Vec<&'a [u8]> {
        let (first, rows) = match self.kernel.form.unit {
            Unit::Rows => (entry, 1),
            Unit::Calls => {
                let length = |of| self.length(of, entry).map_or(0, u64::from);
                let starts = self.operands.get(self.kernel.operands.len());
                let starts = starts.filter(|_| self.kernel.form.has_extent());
                // SAFETY: the list says of each call where its rows begin.
                let first =
                    starts.map_or(entry, |starts| unsafe { *starts.index.add(entry) as usize });
                (first, self.kernel.form.rows_of(length) as usize)
            }
        };
        let row_pools = self.kernel.results.iter().zip(self.results);
        let results = row_pools.map(|(pool, base)| {
            let row_bytes = self.bases[*pool].row_bytes;
            // SAFETY: the launch has written these rows of the bucket, whose row 0 is at the base.
            unsafe {
                let from = (*base).cast::<u8>().cast_const().add(first * row_bytes);
                std::slice::from_raw_parts(from, rows * row_bytes)
            }
        });
        results.collect()
    }

    fn length(&self, operand: usize, entry: usize) -> Option<u32> {
        // SAFETY: where the kernel counts calls, the list has a length for each of them.
        (self.kernel.form.unit == Unit::Calls)
            .then(|| unsafe { *self.operands[operand].index.add(entry) })
    }

    fn rows(&self, pool: usize, at: &OperandRef, entry: usize, count: usize) -> Given<'a> {
        let base = &self.bases[pool];
        // SAFETY: the list has the first row of each entry, counted from the operand's base; as many
        // rows lie behind it as the call's lengths say.
        let (first, bytes) = unsafe {
            let from = (at.base.cast::<u8>()).add(*at.index.add(entry) as usize * base.row_bytes);
            let bytes = std::slice::from_raw_parts(from, count * base.row_bytes);
            (from, bytes)
        };
        let offset = (first as usize).wrapping_sub(base.address as usize);
        Given::Rows {
            first: (offset / base.row_bytes.max(1)) as u32,
            bytes,
        }
    }

    fn list(&self, pool: usize, at: &OperandRef, entry: usize) -> ListOf<'a> {
        // SAFETY: there is one offset more than entries, and the index has as many rows as the last
        // of them says.
        let rows = unsafe {
            let (from, to) = (*at.offsets.add(entry), *at.offsets.add(entry + 1));
            std::slice::from_raw_parts(at.index.add(from as usize), (to - from) as usize)
        };
        ListOf {
            base: at.base.cast(),
            row_bytes: self.bases[pool].row_bytes,
            rows,
        }
    }
}
