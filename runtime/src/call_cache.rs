//! The cache of calls: computed once while a program is loaded.
//!
//! A call that may be shared ([`crate::call_cache::sharing`]) takes a row of a parameter and nothing else, and
//! parameters never change. So what it computes is a constant, and the first batch that needs it
//! computes it for all that follow. Each kernel has a bucket of its own for these calls and, in each
//! row pool of its results, rows that nothing else is ever put into: as many as the parameter has, if
//! all of them are within the limit. The call at position `p` of the bucket has row `p` of them.
//!
//! The order key of a cached call is always that of a first call, whether it is computed or about to
//! be. So what reads it is launched with the same others, whatever earlier batches left behind.

pub(crate) mod sharing;

use cohort_abi::Handle;
use cohort_abi::manifest::Manifest;

use crate::call_cache::sharing::SharedCalls;

/// The cached calls of one kernel.
#[derive(Debug)]
pub struct CachedCalls {
    bucket: u32,
    most: usize,
    /// The parameter's row that each call takes.
    rows: Vec<u32>,
    /// By the parameter's row: one more than the position of its call; 0 where there is none. Small,
    /// since it is looked at here and there.
    places: Vec<u32>,
    /// How many of them are computed; they come first.
    computed: usize,
}

/// Calls that the next flush computes, to be cached.
#[derive(Clone, Copy, Debug)]
pub struct NewCalls<'a> {
    /// The kernel's number in the manifest.
    pub kernel: usize,
    /// The position of the first in the kernel's bucket of cached calls.
    pub first: u32,
    /// The source and its rows that they take.
    pub source: u32,
    /// The row of the source that each call takes.
    pub rows: &'a [u32],
}

impl CachedCalls {
    /// At most `most` calls are cached in that bucket, of a parameter with `rows` rows.
    pub fn new(bucket: u32, most: u32, rows: u64) -> CachedCalls {
        CachedCalls {
            bucket,
            most: most as usize,
            rows: Vec::new(),
            places: vec![0; if most == 0 { 0 } else { rows as usize }],
            computed: 0,
        }
    }

    /// The handle of the call that takes the row, if it is cached.
    #[inline]
    pub fn get(&self, row: usize) -> Option<Handle> {
        let position = self.places.get(row)?.checked_sub(1)?;
        Some(Handle::new(self.bucket, 0, position))
    }

    /// Keeps the call that takes the row, which is not kept; gives its handle, if there is room.
    #[inline]
    pub fn add(&mut self, row: usize) -> Option<Handle> {
        let position = self.rows.len();
        if position == self.most {
            return None;
        }
        self.rows.push(row as u32);
        self.places[row] = self.rows.len() as u32;
        Some(Handle::new(self.bucket, 0, position as u32))
    }

    /// Takes the last call back, which is not computed.
    pub fn take_back(&mut self) {
        if self.rows.len() > self.computed
            && let Some(row) = self.rows.pop()
        {
            self.places[row as usize] = 0;
        }
    }

    /// Takes all calls back.
    pub fn clear(&mut self) {
        self.computed = 0;
        for row in self.rows.drain(..) {
            self.places[row as usize] = 0;
        }
    }

    /// All calls are computed.
    pub fn flushed(&mut self) {
        self.computed = self.rows.len();
    }

    /// The position of the first call that is not computed, and the rows of those.
    pub fn new_calls(&self) -> (u32, &[u32]) {
        (self.computed as u32, &self.rows[self.computed..])
    }

    /// Whether there are no calls, computed or not.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Calls that are computed.
    pub fn computed(&self) -> usize {
        self.computed
    }
}

/// How many calls of each kernel may be kept within `bytes` bytes. When all that the parameters have
/// rows for are too many, every kernel has the same share of its own.
pub fn most_cached(manifest: &Manifest, bytes: u64) -> Vec<u32> {
    let rows: Vec<u64> = (0..manifest.kernels.len())
        .map(|kernel| SharedCalls::of(manifest, kernel).map_or(0, |shared| shared.rows()))
        .collect();
    let of_kernel = |(kernel, rows): (usize, &u64)| {
        u128::from(*rows) * u128::from(call_bytes(manifest, kernel))
    };
    let all: u128 = rows.iter().enumerate().map(of_kernel).sum();
    let most = |rows: &u64| match bytes {
        // Not even rows without elements.
        0 => 0,
        _ if all <= u128::from(bytes) => *rows,
        _ => (u128::from(*rows) * u128::from(bytes) / all) as u64,
    };
    rows.iter().map(|rows| most(rows) as u32).collect()
}

/// Bytes of the results of a call that makes one row.
pub fn call_bytes(manifest: &Manifest, kernel: usize) -> u64 {
    let row_pools = manifest.kernels[kernel].results.iter();
    row_pools
        .map(|pool| manifest.row_pools[*pool].row_bytes())
        .sum()
}

#[cfg(test)]
mod tests {
    use cohort_abi::manifest::{Elem, Operand, Param, Source};

    use super::*;

    #[test]
    fn positions_are_rows_in_the_order_of_keeping() {
        let mut cached = CachedCalls::new(7, 3, 60);
        let handle = |position| Some(Handle::new(7, 0, position));
        assert_eq!((cached.add(40), cached.add(10)), (handle(0), handle(1)));
        cached.take_back();
        cached.flushed();
        // What is computed stays, also when a batch fails.
        cached.take_back();
        assert_eq!((cached.get(40), cached.get(10)), (handle(0), None));
        assert_eq!(cached.add(20), handle(1));
        assert_eq!(cached.new_calls(), (1, &[20][..]));
        assert_eq!((cached.add(30), cached.add(50)), (handle(2), None));
        assert_eq!(
            (cached.get(30), cached.get(59), cached.get(60)),
            (handle(2), None, None)
        );
        cached.clear();
        assert_eq!(
            (cached.computed(), cached.get(40), cached.add(50)),
            (0, None, handle(0))
        );
    }

    #[test]
    fn kernels_share_the_bytes() {
        let mut manifest = crate::memory::arena::tests::manifest();
        manifest.params.push(Param {
            name: String::new(),
            elem: Elem::I32,
            shape: vec![10, 2],
            stored: None,
        });
        manifest.sources.push(Source::Table { param: 0, pool: 0 });
        let row = Operand::Row { pool: 0 };
        for operands in [vec![row], vec![row, row], vec![row]] {
            let kernel = crate::recorder::tests::kernel(operands, vec![0]);
            manifest.kernels.push(kernel);
        }
        assert_eq!(call_bytes(&manifest, 0), 8);
        assert_eq!(most_cached(&manifest, 160), [10, 0, 10]);
        assert_eq!(most_cached(&manifest, 159), [9, 0, 9]);
        assert_eq!(most_cached(&manifest, 15), [0, 0, 0]);
        assert_eq!(most_cached(&manifest, 0), [0, 0, 0]);
    }
}
