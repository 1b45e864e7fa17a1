//! What is kept, within bounds.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::recorder::Recording;

/// What an entry takes besides its recording.
const ENTRY_BYTES: usize = 64;
/// Structures that are remembered as met once.
const MET: usize = 1 << 16;

/// By structure its recording, or that there is none.
type Entries = HashMap<u128, Option<Recording>, BuildHasherDefault<Folded>>;

/// Recordings by structure. They are in two halves: when the first is full it becomes the second, and what was the
/// second goes. What is used moves to the first half, so that goes which was not used for the longest time.
pub struct Kept {
    most: usize,
    fresh: Half,
    stale: Half,
    /// Keys that were met once, each in one of the two places that its bits say; 0 where there is none.
    met: Vec<u64>,
}

#[derive(Default)]
struct Half {
    entries: Entries,
    bytes: usize,
}

impl Half {
    fn put(&mut self, key: u128, recording: Option<Recording>) {
        self.bytes += bytes_of(&recording);
        self.entries.insert(key, recording);
    }
}

fn bytes_of(recording: &Option<Recording>) -> usize {
    ENTRY_BYTES + recording.as_ref().map_or(0, |recording| recording.size())
}

impl Kept {
    /// An empty store with a limit in bytes.
    pub fn new(most: usize) -> Kept {
        Kept {
            most,
            fresh: Half::default(),
            stale: Half::default(),
            met: Vec::new(),
        }
    }

    /// Whether the structure is met for the first time, as far as that is remembered.
    pub fn is_new(&mut self, key: u128) -> bool {
        if self.met.is_empty() {
            self.met.resize(MET, 0);
        }
        let key = key as u64;
        let places = [key, key >> 32].map(|bits| bits as usize % MET);
        if places.iter().any(|place| self.met[*place] == key) {
            return false;
        }
        // Of two that begin with the same place, the second goes to another.
        let place = places[usize::from(self.met[places[0]] != 0)];
        self.met[place] = key;
        true
    }

    /// What is recorded of a structure, which now counts as used, or that nothing is; `None` where that was not found
    /// out.
    #[inline]
    pub fn find(&mut self, key: u128) -> Option<Option<Recording>> {
        if let Some(recording) = self.fresh.entries.get(&key) {
            return Some(recording.clone());
        }
        let recording = self.stale.entries.remove(&key)?;
        self.stale.bytes -= bytes_of(&recording);
        self.put(key, recording.clone());
        Some(recording)
    }

    /// Keeps a recording, if it is not larger than all may be; or that there is none.
    pub fn put(&mut self, key: u128, recording: Option<Recording>) {
        let half = self.most / 2;
        let bytes = bytes_of(&recording);
        let (recording, bytes) = match bytes <= half {
            true => (recording, bytes),
            false => (None, ENTRY_BYTES),
        };
        if self.fresh.bytes + bytes > half {
            self.stale = std::mem::take(&mut self.fresh);
        }
        if bytes <= half {
            self.fresh.put(key, recording);
        }
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        *self = Kept::new(self.most);
    }

    /// Structures with a recording.
    pub fn count(&self) -> usize {
        let halves = [&self.fresh, &self.stale];
        let entries = halves.iter().flat_map(|half| half.entries.values());
        entries.filter(|recording| recording.is_some()).count()
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

    fn recording() -> Option<Recording> {
        Some(Recording::default())
    }

    #[test]
    fn what_is_used_stays_and_the_rest_goes() {
        let size = bytes_of(&recording());
        let mut kept = Kept::new(8 * size);
        let mut knows = |kept: &mut Kept, key| kept.find(key).is_some();
        for key in 0..100 {
            assert!(!knows(&mut kept, key));
            kept.put(key, recording());
            assert!(matches!(kept.find(0), Some(Some(_))), "{key}");
            assert!(kept.bytes() <= 8 * size);
        }
        assert!(knows(&mut kept, 99) && knows(&mut kept, 98) && !knows(&mut kept, 50));
        assert!(kept.count() >= 4);
        kept.clear();
        assert_eq!(
            (kept.count(), kept.bytes(), knows(&mut kept, 0)),
            (0, 0, false)
        );
    }

    #[test]
    fn what_has_no_room_is_not_kept() {
        let mut kept = Kept::new(ENTRY_BYTES * 2);
        kept.put(1, recording());
        assert!(matches!(kept.find(1), Some(None)));
        let mut kept = Kept::new(0);
        kept.put(1, None);
        assert!(kept.find(1).is_none());
        assert_eq!(
            (kept.is_new(7), kept.is_new(7), kept.is_new(8)),
            (true, false, true)
        );
        let same_place = 7 + (1 << 20) as u128 * 64;
        assert_eq!(
            (
                kept.is_new(same_place),
                kept.is_new(same_place),
                kept.is_new(7)
            ),
            (true, false, false)
        );
    }
}
