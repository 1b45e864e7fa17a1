//! What is recorded of instances of one structure, in one block of memory.
//!
//! A recording is a list of rows and numbers, each row relative to one of the instance's *bases*: the first of its input
//! rows in a space, a row that one of its numbers chooses, the result of a call that may be shared, the first of its calls
//! in a bucket, or a row that is always the same. Calls are there by *group*, which is those of a kernel at an order key,
//! and in a group operand by operand, as index lists have them: so what an instance adds to a list is copied in one loop.
//!
//! All of it is words of 32 bits that lie one behind another, so that it can be fetched ahead.

use std::sync::Arc;

use cohort_abi::Handle;

/// The parts of the block, in order, each up to where the head says that it ends. What is read while an instance is
/// recorded comes first, and then what is read in the flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Bases: the spaces of input rows; what is [`Chosen`]; [`SharedCall`]s; [`Group`]s.
    Inputs,
    Chosen,
    Shared,
    Groups,
    /// The result's slots and what belongs to it, see [`crate::structure::Image`]: words, or, behind the last reference, the
    /// number of one of the values. Which of them are addresses, as places.
    Results,
    Addresses,
    /// Two words each.
    Values,
    /// The last bases: handles, two words each.
    Constants,
    /// A base, and a result: what words refer to.
    References,
    /// For each group and each slot of its kernel: what each call has there, a list's length for a list. Then, for each list,
    /// the rows of each call.
    Columns,
}

const PARTS: usize = Part::Columns as usize + 1;
/// Words before the first part: what the instance uses of its limits, bits of a word's offset, and ends.
const HEAD: usize = 2 * LIMITS + 1 + PARTS;
const LIMITS: usize = 3;
/// Bits of a result in a reference.
const RESULT_BITS: u32 = Handle::BUCKET_SHIFT - Handle::RESULT_SHIFT;
/// Bytes that are fetched ahead at most.
const FETCHED: usize = 2 << 10;
const LINE: usize = 64;

/// A row of a parameter that a number chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Chosen {
    /// Which of the instance's numbers.
    pub number: u32,
    /// The source, and its rows.
    pub source: u32,
    pub rows: u32,
}

/// A call that is equal to others on the same row, see [`crate::sharing`].
#[derive(Clone, Copy, Debug)]
pub(super) struct SharedCall {
    pub kernel: u32,
    /// The base that is the row.
    pub operand: u32,
}

/// The calls of a kernel at an order key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group {
    pub kernel: u32,
    pub key: u64,
    pub rows: u32,
    pub calls: u32,
    /// Its words in the columns.
    pub words: u32,
}

/// What the instance uses of its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Used {
    pub calls: u64,
    /// Beyond one for each call.
    pub rows: i64,
    pub bytes: u64,
}

/// The form of words: a reference, and how far behind it the row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Form(u32);

impl Form {
    /// For offsets up to that one, and so many references and values; `None` if words are too small for them.
    pub(super) fn new(largest: u32, references: usize) -> Option<Form> {
        let bits = u32::BITS - largest.leading_zeros();
        let most = 1_u64 << (u32::BITS - bits);
        (references as u64 <= most).then_some(Form(bits))
    }

    pub(super) fn word(self, reference: u32, offset: u32) -> u32 {
        match self.0 {
            u32::BITS => offset,
            bits => reference << bits | offset,
        }
    }

    #[inline]
    pub(crate) fn reference(self, word: u32) -> usize {
        (u64::from(word) >> self.0) as usize
    }

    #[inline]
    pub(crate) fn offset(self, word: u32) -> u32 {
        (u64::from(word) & ((1 << self.0) - 1)) as u32
    }
}

/// What is recorded of instances of one structure, see the [module's page](self).
#[derive(Clone, Debug)]
pub struct Recording(Arc<[u32]>);

impl Default for Recording {
    /// Of a structure that makes no calls, and whose result has no slots.
    fn default() -> Recording {
        let mut words = [0; HEAD];
        words[HEAD - PARTS..].fill(HEAD as u32);
        Recording(words.into())
    }
}

impl Recording {
    /// Of the words of each part.
    pub(super) fn new(used: Used, form: Form, parts: &[(Part, Vec<u32>)]) -> Option<Recording> {
        let mut words = vec![0; HEAD];
        let limits = [used.calls, used.rows as u64, used.bytes];
        for (to, limit) in words.chunks_exact_mut(2).zip(limits) {
            to.copy_from_slice(&halves(limit));
        }
        words[2 * LIMITS] = form.0;
        for number in 0..PARTS {
            let own = parts.iter().filter(|(part, _)| *part as usize == number);
            own.for_each(|(_, own)| words.extend_from_slice(own));
            words[2 * LIMITS + 1 + number] = u32::try_from(words.len()).ok()?;
        }
        Some(Recording(words.into()))
    }

    /// Bytes that it takes.
    pub fn size(&self) -> usize {
        size_of_val(&*self.0)
    }

    /// Tells the processor that it is read soon.
    #[inline]
    pub(crate) fn fetch(&self) {
        fetch(&self.0);
    }

    /// As [`Recording::fetch`], of what is read in the flush.
    #[inline]
    pub(crate) fn fetch_columns(&self) {
        fetch(&self.0[self.end(Part::Values)..]);
    }

    #[inline]
    fn end(&self, part: Part) -> usize {
        self.0[2 * LIMITS + 1 + part as usize] as usize
    }

    /// The words of a part.
    #[inline]
    pub(crate) fn part(&self, part: Part) -> &[u32] {
        let begin = match part {
            Part::Inputs => HEAD,
            _ => self.0[2 * LIMITS + part as usize] as usize,
        };
        &self.0[begin..self.end(part)]
    }

    #[inline]
    pub(super) fn used(&self) -> Used {
        let limit = |number: usize| whole(self.0[2 * number], self.0[2 * number + 1]);
        Used {
            calls: limit(0),
            rows: limit(1) as i64,
            bytes: limit(2),
        }
    }

    #[inline]
    pub(crate) fn form(&self) -> Form {
        Form(self.0[2 * LIMITS])
    }

    #[inline]
    pub(super) fn chosen(&self) -> impl ExactSizeIterator<Item = Chosen> {
        let (all, _) = self.part(Part::Chosen).as_chunks();
        all.iter().map(|&[number, source, rows]| Chosen {
            number,
            source,
            rows,
        })
    }

    #[inline]
    pub(super) fn shared(&self) -> impl ExactSizeIterator<Item = SharedCall> {
        let (all, _) = self.part(Part::Shared).as_chunks();
        all.iter()
            .map(|&[kernel, operand]| SharedCall { kernel, operand })
    }

    #[inline]
    pub(crate) fn groups(&self) -> impl ExactSizeIterator<Item = Group> {
        let (all, _) = self.part(Part::Groups).as_chunks();
        all.iter()
            .map(|&[kernel, low, high, rows, calls, words]| Group {
                kernel,
                key: whole(low, high),
                rows,
                calls,
                words,
            })
    }

    /// The handle of a base, whose instance has these of its own.
    #[inline]
    pub(crate) fn base(&self, own: &[u64], base: usize) -> u64 {
        match own.get(base) {
            Some(handle) => *handle,
            None => self.constant(base - own.len()),
        }
    }

    /// A base that is always the same.
    #[inline]
    pub(super) fn constant(&self, number: usize) -> u64 {
        self.pair(Part::Constants, number)
    }

    /// Where a reference leads: the handle of a base, and a result.
    #[inline]
    pub(crate) fn follow(&self, own: &[u64], reference: u32) -> (u64, u8) {
        let base = self.base(own, (reference >> RESULT_BITS) as usize);
        (base, reference as u8)
    }

    /// The handle that a word stands for.
    #[inline]
    pub(crate) fn handle(&self, own: &[u64], word: u32) -> u64 {
        let form = self.form();
        let reference = self.part(Part::References)[form.reference(word)];
        let (base, result) = self.follow(own, reference);
        base + (u64::from(result) << Handle::RESULT_SHIFT) + u64::from(form.offset(word))
    }

    /// Writes a result, its own slots and the rest.
    pub(super) fn write_results(&self, own: &[u64], slots: &mut [u64], rest: &mut [u64]) {
        let (first, count) = (rest.as_ptr(), slots.len());
        let references = self.part(Part::References).len();
        let form = self.form();
        let places = slots.iter_mut().chain(&mut *rest);
        for (slot, word) in places.zip(self.part(Part::Results)) {
            *slot = match form.reference(*word).checked_sub(references) {
                Some(value) => self.pair(Part::Values, value),
                None => self.handle(own, *word),
            };
        }
        for place in self.part(Part::Addresses) {
            let place = *place as usize;
            let slot = match place.checked_sub(count) {
                None => &mut slots[place],
                Some(place) => &mut rest[place],
            };
            *slot = first.wrapping_add(*slot as usize - count) as u64;
        }
    }

    #[inline]
    fn pair(&self, part: Part, number: usize) -> u64 {
        let words = self.part(part);
        whole(words[2 * number], words[2 * number + 1])
    }
}

/// A reference to a result of a base; `None` if there are too many bases.
pub(super) fn reference(base: usize, result: u8) -> Option<u32> {
    let base = u32::try_from(base).ok()?;
    let is_small = base < 1 << (u32::BITS - RESULT_BITS);
    is_small.then_some(base << RESULT_BITS | u32::from(result))
}

/// A number as two words.
pub(super) fn halves(value: u64) -> [u32; 2] {
    [value as u32, (value >> u32::BITS) as u32]
}

#[inline]
fn whole(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << u32::BITS
}

#[inline]
fn fetch(words: &[u32]) {
    let bytes = size_of_val(words).min(FETCHED);
    for offset in (0..bytes).step_by(LINE) {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            // SAFETY: every processor of this kind has the instruction, and an address may be any.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(words.as_ptr().cast::<i8>().byte_add(offset)) }
        }
        let _ = offset;
    }
}
