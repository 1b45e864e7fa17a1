//! Why code on a fiber gives control back, as two words.

use std::ptr;

use cohort_abi::{Handle, StrandFn};

/// A part of an instance that runs beside others of it; see [`cohort_abi::StrandFn`].
#[derive(Clone, Copy, Debug)]
pub struct Strand {
    /// What it runs.
    pub function: StrandFn,
    /// The slots that it shares with its caller.
    pub scope: *mut u64,
    /// Which of the scope's strands it is.
    pub index: i64,
    /// Bytes of stack that its caller has left, and it may use.
    pub stack_left: u64,
}

/// Why the coroutine gave control back.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// The entry returned; its results are written.
    Finished,
    /// The recorder's `stopped` says why there is no result.
    Stopped,
    /// The instance waits for the element of a row; `force` indexes the manifest's forces.
    Forced {
        /// The row.
        handle: Handle,
        /// Which place of the program asks.
        force: u32,
    },
    /// The instance shows a value, whose slots these are; `debug` indexes the manifest's debugs.
    Shown {
        /// Which place of the program shows it.
        debug: u32,
        /// Where the value is.
        slots: *const u64,
    },
    /// The instance asks that a strand of it begin, and goes on when that waits or has ended; it lies on the
    /// coroutine's stack until then.
    Forked(*const Strand),
    /// The instance waits until all strands of the scope have ended.
    Joined {
        /// The slots that the strands share with their caller.
        scope: *mut u64,
    },
    /// The instance waits until a strand of the scope has ended.
    Awaited {
        /// As of [`Event::Joined`].
        scope: *mut u64,
        /// Which of the scope's strands.
        index: u32,
    },
}

/// An [`Event`] as two words, as which it goes from hand to hand at each decision. It is written and read word by word;
/// what is written by smaller parts and then read at once, as an enum is, a processor waits for.
#[derive(Clone, Copy, Debug)]
pub struct Signal {
    /// Which event it is, and above that its number.
    what: u64,
    of: *mut u64,
}

const _: () = assert!(size_of::<Signal>() == 16);

impl From<Event> for Signal {
    #[inline]
    fn from(event: Event) -> Signal {
        let (what, number, of) = match event {
            Event::Finished => (0, 0, ptr::null_mut()),
            Event::Stopped => (1, 0, ptr::null_mut()),
            Event::Forced { handle, force } => {
                (2, force, ptr::without_provenance_mut(handle.0 as usize))
            }
            Event::Shown { debug, slots } => (3, debug, slots.cast_mut()),
            Event::Forked(strand) => (4, 0, strand.cast_mut().cast()),
            Event::Joined { scope } => (5, 0, scope),
            Event::Awaited { scope, index } => (6, index, scope),
        };
        Signal {
            what: what | u64::from(number) << u32::BITS,
            of,
        }
    }
}

impl Signal {
    /// The event.
    #[inline]
    pub fn event(self) -> Event {
        let number = (self.what >> u32::BITS) as u32;
        match self.what as u32 {
            0 => Event::Finished,
            2 => Event::Forced {
                handle: Handle(self.of.addr() as u64),
                force: number,
            },
            3 => Event::Shown {
                debug: number,
                slots: self.of,
            },
            4 => Event::Forked(self.of.cast()),
            5 => Event::Joined { scope: self.of },
            6 => Event::Awaited {
                scope: self.of,
                index: number,
            },
            _ => Event::Stopped,
        }
    }
}
