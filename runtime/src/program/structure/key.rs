//! Structures, and what differs between instances of one.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::OnceLock;

use cohort_abi::Handle;
use cohort_abi::manifest::Manifest;
use siphasher::sip128::{Hasher128, SipHasher13};

use super::{ValueForm, Visit};

/// The structure of an instance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Structured {
    /// Equal where structures are. Of 128 bits and under a key that no input knows, so that others never have it.
    pub key: u128,
    /// Where what else is of the instance begins in the data of its inputs.
    pub data: usize,
}

/// Reads the structure of instances.
pub struct Reading {
    plan: ValueForm,
    keys: (u64, u64),
}

impl Reading {
    /// Of a program's arguments; `None` where calls depend on more than structures.
    pub fn of(manifest: &Manifest) -> Option<Reading> {
        static KEYS: OnceLock<(u64, u64)> = OnceLock::new();
        let random = || {
            let state = RandomState::new();
            (state.hash_one(0), state.hash_one(1))
        };
        Some(Reading {
            plan: ValueForm::of_arguments(manifest)?,
            keys: *KEYS.get_or_init(random),
        })
    }

    /// Reads the structure of an instance. To `data` goes the rest: of each row pool the handle of the instance's first
    /// input row, which are the `origins`, and then the numbers that choose rows.
    ///
    /// # Safety
    ///
    /// The slots are arguments of the program.
    pub unsafe fn read(
        &self,
        slots: *const u64,
        origins: &[Handle],
        data: &mut Vec<u64>,
    ) -> Structured {
        let begin = data.len();
        data.extend(origins.iter().map(|handle| handle.0));
        let mut digest = Digest {
            hasher: SipHasher13::new_with_keys(self.keys.0, self.keys.1),
            origins: begin,
            data,
        };
        // SAFETY: the caller's promise.
        unsafe { self.plan.walk(slots, usize::MAX, &mut digest) };
        Structured {
            key: digest.hasher.finish128().as_u128(),
            data: begin,
        }
    }
}

struct Digest<'d> {
    hasher: SipHasher13,
    origins: usize,
    data: &'d mut Vec<u64>,
}

impl Visit for Digest<'_> {
    fn word(&mut self, _: usize, bits: u64) {
        self.hasher.write_u64(bits);
    }

    fn row(&mut self, _: usize, number: u64) {
        self.data.push(number);
    }

    fn tensor(&mut self, _: usize, pool: usize, handle: u64) {
        // Where its rows are among those of the instance.
        let origin = self.data[self.origins + pool];
        self.hasher.write_u64(handle.wrapping_sub(origin));
    }

    fn text(&mut self, _: usize, address: u64) {
        let text = address as *const u64;
        // SAFETY: a text is its length in bytes and then these, in whole slots.
        let slots = unsafe {
            let bytes = *text as usize;
            std::slice::from_raw_parts(text, 1 + bytes.div_ceil(size_of::<u64>()))
        };
        for slot in slots {
            self.hasher.write_u64(*slot);
        }
    }

    fn block(&mut self, _: usize, _: usize, number: u64) {
        self.hasher.write_u64(number);
    }
}
