//! What is kept, within bounds.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// What an entry takes besides its recording.
const ENTRY_BYTES: usize = 64;
/// Structures of which it is remembered how often they were met.
const MET: usize = 1 << 16;
/// Odd, with about as many bits as not: by how much [`Store::clear`] changes the salt.
const SALT: u64 = 0x9e37_79b9_7f4a_7c15;
/// How often a structure must have come before a recording of it is made. To make one takes as long as to run the
/// control program 12 to 20 times, as measured over the tree and list models; so where a structure never comes again
/// after that, a third more was spent on recording than without, and else it is soon paid back.
pub const WORTH: u64 = 64;
/// The bits of a place that count.
const COUNT: u64 = 0x7f;

/// What is kept of a structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The number of its recording, or that there is none.
    pub recording: Option<u32>,
    /// Those of the recording.
    pub bytes: usize,
}

type Entries = HashMap<u128, Entry, BuildHasherDefault<Folded>>;

/// Recordings by structure. They are in two halves: when the first is full it becomes the second, and what was the
/// second goes. What is used moves to the first half, so that goes which was not used for the longest time.
pub struct Store {
    most: usize,
    fresh: Half,
    stale: Half,
    /// Keys without their last bits, in which it stands how often they were met, each in one of the two places that its
    /// bits say; 0 where there is none.
    met: Vec<u64>,
    /// What these keys are changed by, so that to forget them all is to take another.
    salt: u64,
    /// Recordings of structures that are not kept any more.
    gone: Vec<u32>,
}

#[derive(Default)]
struct Half {
    entries: Entries,
    bytes: usize,
}

impl Half {
    fn recordings(&self) -> impl Iterator<Item = u32> {
        self.entries.values().filter_map(|entry| entry.recording)
    }
}

impl Entry {
    fn all_bytes(self) -> usize {
        ENTRY_BYTES + self.bytes
    }
}

impl Store {
    /// An empty store with a limit in bytes.
    pub fn new(most: usize) -> Store {
        Store {
            most,
            fresh: Half::default(),
            stale: Half::default(),
            met: Vec::new(),
            salt: 0,
            gone: Vec::new(),
        }
    }

    /// Counts that the structure is met, and says whether that is the [`WORTH`]th time, as far as it is remembered.
    pub fn is_due(&mut self, key: u128) -> bool {
        if self.met.is_empty() {
            self.met.resize(MET, 0);
        }
        let (key, places) = self.places(key);
        let known = places
            .iter()
            .find(|place| self.met[**place] & !COUNT == key);
        // Of two that begin with the same place, the second goes to another.
        let place = *known.unwrap_or(&places[usize::from(self.met[places[0]] != 0)]);
        let count = match known {
            Some(_) => self.met[place] & COUNT,
            None => 0,
        };
        let is_due = count + 1 >= WORTH;
        // If it is forgotten after that, it is counted anew.
        self.met[place] = key | if is_due { 0 } else { count + 1 };
        is_due
    }

    /// How often a structure was met is asked soon: what tells it comes from memory meanwhile.
    #[inline]
    pub fn fetch(&self, key: u128) {
        for place in self.places(key).1 {
            let place = self.met.as_ptr().wrapping_add(place);
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a prefetch reads nothing that the program sees, wherever it points.
            unsafe {
                use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
                _mm_prefetch::<_MM_HINT_T0>(place.cast());
            }
            #[cfg(not(target_arch = "x86_64"))]
            let _ = place;
        }
    }

    /// A key as it is noted, and the two places where it may be.
    #[inline]
    fn places(&self, key: u128) -> (u64, [usize; 2]) {
        let key = (key as u64 ^ self.salt) & !COUNT;
        (key, [key >> 7, key >> 32].map(|bits| bits as usize % MET))
    }

    /// What is kept of a structure, which now counts as used; `None` where nothing was found out.
    #[inline]
    pub fn find(&mut self, key: u128) -> Option<Entry> {
        match self.fresh.entries.get(&key) {
            Some(entry) => Some(*entry),
            None => self.find_stale(key),
        }
    }

    #[cold]
    fn find_stale(&mut self, key: u128) -> Option<Entry> {
        let entry = self.stale.entries.remove(&key)?;
        self.stale.bytes -= entry.all_bytes();
        self.put(key, entry);
        Some(entry)
    }

    /// Keeps an entry, without its recording if that is larger than all may be.
    pub fn put(&mut self, key: u128, mut entry: Entry) {
        let half = self.most / 2;
        if entry.all_bytes() > half {
            self.gone.extend(entry.recording);
            entry = Entry {
                recording: None,
                bytes: 0,
            };
        }
        if self.fresh.bytes + entry.all_bytes() > half {
            let stale = std::mem::replace(&mut self.stale, std::mem::take(&mut self.fresh));
            self.gone.extend(stale.recordings());
        }
        if entry.all_bytes() <= half {
            self.fresh.bytes += entry.all_bytes();
            self.fresh.entries.insert(key, entry);
        }
    }

    /// Recordings that nobody finds any more, to be taken out.
    pub fn gone(&mut self) -> &mut Vec<u32> {
        &mut self.gone
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        let mut gone = std::mem::take(&mut self.gone);
        gone.extend(self.fresh.recordings().chain(self.stale.recordings()));
        *self = Store {
            gone,
            met: std::mem::take(&mut self.met),
            salt: self.salt.wrapping_add(SALT),
            ..Store::new(self.most)
        };
    }

    /// Structures with a recording.
    pub fn count(&self) -> usize {
        self.fresh
            .recordings()
            .chain(self.stale.recordings())
            .count()
    }

    /// Bytes of all.
    pub fn bytes(&self) -> usize {
        self.fresh.bytes + self.stale.bytes
    }
}

/// Keys are hashes already.
#[derive(Default)]
struct Folded(u64);

impl Hasher for Folded {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u128(&mut self, key: u128) {
        self.0 = key as u64 ^ (key >> u64::BITS) as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(number: u32) -> Entry {
        Entry {
            recording: Some(number),
            bytes: 100,
        }
    }

    #[test]
    fn what_is_used_stays_and_the_rest_goes() {
        let size = entry(0).all_bytes();
        let mut store = Store::new(8 * size);
        let mut gone = Vec::new();
        for key in 0..100 {
            assert_eq!(store.find(key), None);
            store.put(key, entry(key as u32));
            assert_eq!(store.find(0), Some(entry(0)), "{key}");
            assert!(store.bytes() <= 8 * size);
            gone.append(store.gone());
        }
        assert!(store.find(99).is_some() && store.find(98).is_some() && store.find(50).is_none());
        assert!(store.count() >= 4);
        store.clear();
        assert_eq!((store.count(), store.bytes(), store.find(0)), (0, 0, None));
        // Each recording is given back once.
        gone.append(store.gone());
        gone.sort_unstable();
        assert_eq!(gone, (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn what_has_no_room_is_not_kept() {
        let mut store = Store::new(ENTRY_BYTES * 2);
        store.put(1, entry(5));
        let none = Entry {
            recording: None,
            bytes: 0,
        };
        assert_eq!((store.find(1), &store.gone()[..]), (Some(none), &[5][..]));
        let mut store = Store::new(0);
        store.put(1, none);
        assert!(store.find(1).is_none());
    }

    #[test]
    fn a_structure_is_due_when_it_came_often() {
        let mut store = Store::new(0);
        let (key, other) = (7 << 7, 8 << 7);
        let same_place = key + (1 << 30);
        for round in 0..3 {
            for count in 1..=WORTH {
                let is_due = [key, other, same_place].map(|key| store.is_due(key));
                assert_eq!(is_due, [count == WORTH; 3], "{round} {count}");
            }
        }
        (1..WORTH).for_each(|_| assert!(!store.is_due(key)));
        store.clear();
        (1..WORTH).for_each(|_| assert!(!store.is_due(key)));
        assert!(store.is_due(key));
    }
}
