//! What is recorded of instances of one structure, in one block of memory.
//!
//! A recording is a list of rows and numbers, each row relative to one of the instance's *bases*: the first of its
//! input rows in a row pool, a row that one of its numbers chooses, the result of a call that may be shared, the
//! first of its calls in a bucket; or it is a row that is always the same. Calls are there by *group*, which is those
//! of a kernel at an order key, and groups of a kernel at one depth after another are a [`Run`]. In a run rows are
//! there operand by operand, as index lists have them, so that what an instance adds to lists is copied in one loop.
//!
//! All of it is words of 32 bits that lie one behind another, so that it can be fetched ahead.

use cohort_abi::Handle;

/// The parts of the block, in order, each up to where the head says that it ends. What is read while an instance is
/// recorded comes first, and then what is read in the flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Bases: the row pools of input rows; what is [`Chosen`]; [`SharedCalls`]; the groups of [`Run`]s.
    Inputs,
    Chosen,
    Shared,
    Runs,
    /// The result's slots and what belongs to it, see [`crate::program::structure::Image`]; which of them are addresses, as
    /// places; the numbers among them, two words each.
    Results,
    Addresses,
    Values,
    /// What words refer to, by number: results of bases; handles that are always the same, two words each; then, in
    /// results, the numbers.
    References,
    Fixed,
    /// For each run and each slot of its kernel: what each call has there, a list's length for a list. Then, for each
    /// list, the rows of each call.
    Columns,
}

const PARTS: usize = Part::Columns as usize + 1;

/// Before the parts are what the instance uses of its limits, the form of words, how many bases there are before
/// those of groups and with them, and where the parts end.
const FORM: usize = 6;
const FIRST_GROUP: usize = FORM + 1;
const BASES: usize = FIRST_GROUP + 1;
const ENDS: usize = BASES + 1;
const HEAD: usize = ENDS + PARTS;

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

/// Calls of a kernel that are equal to others on the same rows, see [`crate::call_cache::sharing`].
#[derive(Clone, Copy, Debug)]
pub(super) struct SharedCalls<'r> {
    pub kernel: u32,
    /// Where the rows are.
    pub source: u32,
    /// Of each call which of the instance's numbers chooses the row, or the row itself with [`SAME_ROW`].
    pub rows: &'r [u32],
}

/// Marks a row that is always the same.
pub(super) const SAME_ROW: u32 = 1 << 31;

/// Groups of a kernel, each a level deeper than the one before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run<'r> {
    pub kernel: u32,
    /// The order key of the first.
    pub key: u64,
    /// How many calls they have together.
    pub all_calls: u32,
    /// Of each group; and how many rows these make.
    pub calls: &'r [u32],
    pub rows: &'r [u32],
}

/// Marks a run whose calls do not make a row each.
const IS_RAGGED: u32 = 1 << 31;

/// Appends a run to the words of that part. `None` if it is too long.
pub(super) fn write_run(words: &mut Vec<u32>, run: Run<'_>) -> Option<()> {
    let [low, high] = halves(run.key);
    let count = u32::try_from(run.calls.len()).ok()?;
    let is_ragged = run.calls != run.rows;
    let mark = if is_ragged { IS_RAGGED } else { 0 };
    words.extend([run.kernel, low, high, run.all_calls, count | mark]);
    words.extend(run.calls);
    if is_ragged {
        words.extend(run.rows);
    }
    (count < IS_RAGGED).then_some(())
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
    /// For offsets up to `largest` and this number of references and values; `None` if words are too small for them.
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
#[derive(Debug)]
pub struct Recording(Box<[u32]>);

impl Default for Recording {
    /// Of a structure that makes no calls, and whose result has no slots.
    fn default() -> Recording {
        let mut words = [0; HEAD];
        words[ENDS..].fill(HEAD as u32);
        Recording(words.into())
    }
}

impl Recording {
    /// Of the words of each part: how many bases come before those of groups, and how many there are with them.
    pub(super) fn new(
        used: Used,
        form: Form,
        [first_group, bases]: [usize; 2],
        parts: &[(Part, Vec<u32>)],
    ) -> Option<Recording> {
        let mut words = vec![0; HEAD];
        let limits = [used.calls, used.rows as u64, used.bytes];
        for (to, limit) in words.chunks_exact_mut(2).zip(limits) {
            to.copy_from_slice(&halves(limit));
        }
        words[FORM] = form.0;
        words[FIRST_GROUP] = u32::try_from(first_group).ok()?;
        words[BASES] = u32::try_from(bases).ok()?;
        for number in 0..PARTS {
            let own = parts.iter().filter(|(part, _)| *part as usize == number);
            own.for_each(|(_, own)| words.extend_from_slice(own));
            words[ENDS + number] = u32::try_from(words.len()).ok()?;
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
        self.0[ENDS + part as usize] as usize
    }

    /// The words of a part.
    #[inline]
    pub(crate) fn part(&self, part: Part) -> &[u32] {
        let begin = match part {
            Part::Inputs => HEAD,
            _ => self.0[ENDS + part as usize - 1] as usize,
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
        Form(self.0[FORM])
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
    pub(super) fn shared(&self) -> impl Iterator<Item = SharedCalls<'_>> {
        let mut words = self.part(Part::Shared);
        std::iter::from_fn(move || {
            let ([kernel, source, count], behind) = words.split_first_chunk()?;
            let (rows, behind) = behind.split_at(*count as usize);
            words = behind;
            Some(SharedCalls {
                kernel: *kernel,
                source: *source,
                rows,
            })
        })
    }

    #[inline]
    pub(crate) fn runs(&self) -> impl Iterator<Item = Run<'_>> {
        let mut words = self.part(Part::Runs);
        std::iter::from_fn(move || {
            let (&[kernel, low, high, all_calls, marked], behind) = words.split_first_chunk()?;
            let count = (marked & !IS_RAGGED) as usize;
            let (calls, behind) = behind.split_at(count);
            let (rows, behind) = match marked & IS_RAGGED {
                0 => (calls, behind),
                _ => behind.split_at(count),
            };
            words = behind;
            Some(Run {
                kernel,
                key: whole(low, high),
                all_calls,
                calls,
                rows,
            })
        })
    }

    /// How many bases are before those of groups.
    #[inline]
    pub(crate) fn first_group(&self) -> usize {
        self.0[FIRST_GROUP] as usize
    }

    /// How many bases an instance has.
    #[inline]
    pub(crate) fn bases(&self) -> usize {
        self.0[BASES] as usize
    }

    /// The handles that are always the same.
    #[inline]
    pub(crate) fn fixed(&self) -> impl ExactSizeIterator<Item = u64> {
        let (all, _) = self.part(Part::Fixed).as_chunks();
        all.iter().map(|&[low, high]| whole(low, high))
    }

    /// The handle that a word stands for, of an instance with these bases.
    #[inline]
    pub(crate) fn handle(&self, bases: &[u64], word: u32) -> u64 {
        let (form, references) = (self.form(), self.part(Part::References));
        let number = form.reference(word);
        match references.get(number) {
            Some(reference) => {
                let (base, result) = follow(*reference);
                bases[base]
                    + (u64::from(result) << Handle::RESULT_SHIFT)
                    + u64::from(form.offset(word))
            }
            None => self.pair(Part::Fixed, number - references.len()),
        }
    }

    /// Writes a result, its own slots and the rest.
    pub(super) fn write_results(&self, bases: &[u64], slots: &mut [u64], rest: &mut [u64]) {
        let (first, count) = (rest.as_ptr(), slots.len());
        let rows = self.part(Part::References).len() + self.fixed().len();
        let form = self.form();
        let places = slots.iter_mut().chain(&mut *rest);
        for (slot, word) in places.zip(self.part(Part::Results)) {
            *slot = match form.reference(*word).checked_sub(rows) {
                Some(value) => self.pair(Part::Values, value),
                None => self.handle(bases, *word),
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

/// The base and the result of a reference.
#[inline]
pub(crate) fn follow(reference: u32) -> (usize, u8) {
    ((reference >> RESULT_BITS) as usize, reference as u8)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_hold_references_and_offsets() {
        assert_eq!(Form::new(0, 0).map(|form| form.word(0, 0)), Some(0));
        for (largest, references) in [(0, 7), (1, 1 << 31), (255, 1 << 24), (u32::MAX, 1)] {
            let form = Form::new(largest, references).expect("words that are wide enough");
            for (reference, offset) in [(0, 0), (references - 1, largest)] {
                let word = form.word(reference as u32, offset);
                let found = (form.reference(word), form.offset(word));
                assert_eq!(found, (reference, offset), "{largest} {references}");
            }
        }
        assert_eq!(Form::new(256, 1 << 24), None);
        assert_eq!(Form::new(u32::MAX, 2), None);
    }

    #[test]
    fn parts_are_read_as_they_were_written() {
        let used = Used {
            calls: 7,
            rows: -3,
            bytes: 1 << 40,
        };
        let mut runs = Vec::new();
        let written = [
            (5, 1 << 32 | 2, &[2, 1][..], &[2, 1][..]),
            (9, 1, &[1], &[30]),
            (6, 3, &[4], &[4]),
        ];
        for (kernel, key, calls, rows) in written {
            let run = Run {
                kernel,
                key,
                all_calls: calls.iter().sum(),
                calls,
                rows,
            };
            write_run(&mut runs, run).expect("a short run");
        }
        let form = Form::new(100, 3).expect("words that are wide enough");
        let fixed = Handle::new(3, 2, 9).0;
        let parts = [
            (Part::Columns, vec![form.word(0, 100), form.word(1, 0)]),
            (Part::References, vec![reference(1, 4).expect("few bases")]),
            (Part::Fixed, halves(fixed).to_vec()),
            (Part::Values, halves(1 << 50).to_vec()),
            (Part::Results, vec![form.word(2, 0), form.word(0, 1)]),
            (Part::Shared, vec![8, 0, 2, 4, SAME_ROW | 6, 9, 1, 1, 3]),
            (Part::Runs, runs),
        ];
        let recording = Recording::new(used, form, [2, 6], &parts).expect("few words");
        assert_eq!(recording.used(), used);
        assert_eq!((recording.first_group(), recording.bases()), (2, 6));
        let found = recording.runs();
        let found = found.map(|run| (run.kernel, run.key, run.calls, run.rows));
        assert_eq!(found.collect::<Vec<_>>(), written);
        let shared = recording.shared();
        let shared = shared.map(|calls| (calls.kernel, calls.source, calls.rows));
        assert_eq!(
            shared.collect::<Vec<_>>(),
            [(8, 0, &[4, SAME_ROW | 6][..]), (9, 1, &[3])]
        );
        assert!(recording.part(Part::Inputs).is_empty());
        let bases = [0, Handle::new(20, 0, 5).0];
        let handles = recording.part(Part::Columns).iter();
        let handles = handles.map(|word| recording.handle(&bases, *word));
        assert_eq!(
            handles.collect::<Vec<_>>(),
            [Handle::new(20, 4, 105).0, fixed]
        );
        let mut slots = [0; 2];
        recording.write_results(&bases, &mut slots, &mut []);
        assert_eq!(slots, [1 << 50, Handle::new(20, 4, 6).0]);
    }
}
