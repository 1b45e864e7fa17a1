//! Big aligned blocks that grow without copying, and what all memory of instances may take together.

pub mod arena;
pub mod bump;
mod caches;
pub mod inputs;
mod machine;
pub(crate) mod rows;

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::MmapMut;

use crate::error::Error;

/// Every block starts on a multiple of this.
pub const ALIGNMENT: usize = 64;
/// Bytes that may be read, and are never written by a kernel, after the end of what was asked for.
pub const SLACK: usize = 64;
/// From this size on the kernel is asked for huge pages: fewer page faults and TLB misses.
const HUGE_PAGES_FROM: usize = 4 << 20;

pub use caches::{core_bytes, second_level_bytes};
pub use machine::free_bytes;

/// Bytes that this process has in blocks and in the memory of instances, those of them that no limit
/// is for, and how many more it may have.
static TAKEN: AtomicU64 = AtomicU64::new(0);
static BEFORE: AtomicU64 = AtomicU64::new(0);
static MOST: AtomicU64 = AtomicU64::new(u64::MAX);

/// From now on the process gets no more than `bytes` bytes besides those that it has.
pub fn set_most(bytes: u64) {
    BEFORE.store(TAKEN.load(Ordering::Relaxed), Ordering::Relaxed);
    MOST.store(bytes, Ordering::Relaxed);
}

/// The limit of [`set_most`].
pub fn most() -> u64 {
    MOST.load(Ordering::Relaxed)
}

/// Bytes of the process's memory, given back when it is dropped.
#[derive(Debug, Default)]
pub struct Share(u64);

impl Share {
    /// Takes `bytes` bytes, if they are left.
    pub fn take(bytes: u64) -> Option<Share> {
        let mut share = Share(0);
        share.set(bytes).then_some(share)
    }

    /// Makes it `bytes` bytes; whether they are left.
    pub fn set(&mut self, bytes: u64) -> bool {
        let grown = TAKEN.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |taken| {
            let all = (taken - self.0).checked_add(bytes)?;
            let most = BEFORE.load(Ordering::Relaxed).saturating_add(most());
            (bytes <= self.0 || all <= most).then_some(all)
        });
        if grown.is_ok() {
            self.0 = bytes;
        }
        grown.is_ok()
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// Anonymous memory of its own mapping: page-aligned, zeros until written, and (on Linux) grown
/// by moving pages instead of copying bytes.
#[derive(Debug, Default)]
pub struct AlignedBuffer {
    map: Option<MmapMut>,
    share: Share,
}

impl AlignedBuffer {
    /// At least `bytes` zeros, and [`SLACK`] more.
    pub fn zeroed(bytes: usize, purpose: &'static str) -> Result<AlignedBuffer, Error> {
        let mut buffer = AlignedBuffer::default();
        buffer.ensure(bytes, purpose)?;
        Ok(buffer)
    }

    /// Bytes that can be used now.
    pub fn capacity(&self) -> usize {
        self.map.as_ref().map_or(0, |map| map.len() - SLACK)
    }

    /// Makes room for `bytes` bytes and [`SLACK`] more; keeps the contents, may move them.
    pub fn ensure(&mut self, bytes: usize, purpose: &'static str) -> Result<(), Error> {
        if self.map.is_some() && bytes <= self.capacity() {
            return Ok(());
        }
        // Growing by half keeps the number of moves logarithmic; the first size is exact, so that
        // what is made once, like a packed weight, wastes nothing.
        let amply = bytes.max(self.capacity() + self.capacity() / 2);
        let share = &mut self.share;
        let wanted = [amply, bytes]
            .into_iter()
            .find(|bytes| share.set(*bytes as u64));
        let Some(wanted) = wanted else {
            return Err(Error::OutOfMemory {
                purpose,
                bytes: bytes as u64,
                source: io::Error::other(format!(
                    "{} bytes may be used, see --total-memory",
                    most()
                )),
            });
        };
        let out_of_memory = |source: io::Error| Error::OutOfMemory {
            purpose,
            bytes: wanted as u64,
            source,
        };
        let length = wanted
            .checked_add(SLACK)
            .ok_or_else(|| out_of_memory(io::ErrorKind::OutOfMemory.into()))?;
        match &mut self.map {
            None => self.map = Some(MmapMut::map_anon(length).map_err(out_of_memory)?),
            Some(map) => resize(map, length).map_err(out_of_memory)?,
        }
        #[cfg(target_os = "linux")]
        if let Some(map) = &self.map
            && length >= HUGE_PAGES_FROM
        {
            // Only advice: a system without huge pages works as well.
            let _ = map.advise(memmap2::Advice::HugePage);
        }
        Ok(())
    }

    /// The whole block.
    pub fn bytes(&self) -> &[u8] {
        self.map.as_deref().unwrap_or_default()
    }

    /// The whole block, to be written.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.map.as_deref_mut().unwrap_or_default()
    }

    /// The block as 32-bit words.
    pub fn words_mut(&mut self) -> &mut [u32] {
        let bytes = self.bytes_mut();
        let words = bytes.len() / 4;
        // SAFETY: the mapping is page-aligned and initialised, every bit pattern is a u32, and the
        // length is rounded down. An empty slice is aligned for u8 only, so it is replaced.
        unsafe {
            if words == 0 {
                &mut []
            } else {
                std::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast::<u32>(), words)
            }
        }
    }

    /// The address of the first byte; valid until the next growth.
    pub fn address(&self) -> *const u8 {
        self.bytes().as_ptr()
    }
}

#[cfg(target_os = "linux")]
fn resize(map: &mut MmapMut, length: usize) -> io::Result<()> {
    // SAFETY: the mapping is anonymous, so every page of the new length is backed; it is borrowed
    // mutably, so that no reference into it survives the move.
    unsafe { map.remap(length, memmap2::RemapOptions::new().may_move(true)) }
}

#[cfg(not(target_os = "linux"))]
fn resize(map: &mut MmapMut, length: usize) -> io::Result<()> {
    let mut larger = MmapMut::map_anon(length)?;
    larger[..map.len()].copy_from_slice(map);
    *map = larger;
    Ok(())
}

/// Whether a page of the range is in memory; `false` where the system does not say.
#[cfg(target_os = "linux")]
pub fn is_resident(range: std::ops::Range<usize>) -> bool {
    let mut pages = [0_u8; 4096];
    let (begin, length) = whole_pages(range);
    let count = length / page_bytes();
    // SAFETY: the system writes one byte a page, for which there is room, and only looks at the
    // range; one that is not mapped is an error.
    let known = count <= pages.len()
        && unsafe { libc::mincore(begin as *mut libc::c_void, length, pages.as_mut_ptr()) } == 0;
    known && pages[..count].iter().any(|page| page & 1 != 0)
}

/// Whether a page of the range is in memory; `false` where the system does not say.
#[cfg(not(target_os = "linux"))]
pub fn is_resident(_: std::ops::Range<usize>) -> bool {
    false
}

/// Asks for huge pages where a big slice lies, best before it is written: its rows are looked up anywhere.
#[cfg(target_os = "linux")]
pub fn advise_huge_pages<T>(slice: &[T]) {
    if size_of_val(slice) >= HUGE_PAGES_FROM {
        let bytes = slice.as_ptr_range();
        let (begin, length) = whole_pages(bytes.start as usize..bytes.end as usize);
        // SAFETY: it is advice on mapped memory, whose contents stay.
        let _ = unsafe { libc::madvise(begin as *mut libc::c_void, length, libc::MADV_HUGEPAGE) };
    }
}

/// Does nothing where there are none to ask for.
#[cfg(not(target_os = "linux"))]
pub fn advise_huge_pages<T>(_: &[T]) {}

/// Gives the pages that lie in the range back to the system; they are zeros when they are used next.
///
/// # Safety
///
/// The range is anonymous memory of which nothing is needed any more.
#[cfg(target_os = "linux")]
pub unsafe fn discard(range: std::ops::Range<usize>) {
    let (begin, length) = whole_pages(range);
    // SAFETY: the caller's promise. It is no harm if the system refuses.
    let _ = unsafe { libc::madvise(begin as *mut libc::c_void, length, libc::MADV_DONTNEED) };
}

/// # Safety
///
/// None; it does nothing.
#[cfg(not(target_os = "linux"))]
pub unsafe fn discard(_: std::ops::Range<usize>) {}

/// The address and length of the pages that lie in the range as a whole.
#[cfg(target_os = "linux")]
fn whole_pages(range: std::ops::Range<usize>) -> (usize, usize) {
    let page = page_bytes();
    let begin = range.start.next_multiple_of(page);
    (begin, (range.end / page * page).saturating_sub(begin))
}

#[cfg(target_os = "linux")]
fn page_bytes() -> usize {
    // SAFETY: it only asks.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).unwrap_or(4096)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growing_keeps_contents_and_alignment() {
        let mut buffer = AlignedBuffer::zeroed(10, "a test").unwrap();
        assert!(buffer.capacity() >= 10);
        buffer.bytes_mut()[..4].copy_from_slice(&[1, 2, 3, 4]);
        buffer.ensure(5_000_000, "a test").unwrap();
        assert!(buffer.capacity() >= 5_000_000);
        assert_eq!(buffer.address() as usize % ALIGNMENT, 0);
        assert_eq!(&buffer.bytes()[..6], &[1, 2, 3, 4, 0, 0]);
        assert!(AlignedBuffer::default().words_mut().is_empty());
    }

    #[test]
    fn shares_are_counted() {
        // More than other tests take beside this one.
        let large = 1 << 50;
        let mut share = Share::take(large).unwrap();
        assert!(TAKEN.load(Ordering::Relaxed) >= large);
        assert!(share.set(5));
        assert!(TAKEN.load(Ordering::Relaxed) < large);
    }

    #[test]
    fn an_impossible_size_is_an_error() {
        let error = AlignedBuffer::zeroed(usize::MAX - 5, "a test").unwrap_err();
        assert!(error.to_string().contains("for a test"), "{error}");
    }
}
