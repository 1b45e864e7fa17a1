//! The way back out of compiled code: what runs on a fiber waits, or is given up, through its gate.

use corosensei::Yielder;

use super::signal::{Event, Signal, Strand};
use super::{Host, Job};

/// What a coroutine is given when it gets control: two words.
#[derive(Clone, Copy)]
pub(super) enum Input {
    /// An instance to start with, which is read before control comes back; only after [`Event::Finished`], or first.
    Run(*const Job),
    /// A strand of an instance to start with, and what it runs with; as [`Input::Run`].
    Strand(*const (Host, Strand)),
    /// The bits of the element that was forced, whether a strand was begun, or any; only after an event
    /// that is none of [`Event::Finished`] and [`Event::Stopped`].
    Decided(u64),
}

const _: () = assert!(size_of::<Input>() == 16);

/// What a coroutine switches back by.
pub(super) type Switch = Yielder<Input, Signal>;

/// Gives control back from inside compiled code, to whoever runs its fiber.
#[derive(Debug)]
pub struct Gate {
    /// That of the fiber that runs, or null.
    switch: *const Switch,
    waiting_frame: usize,
}

impl Default for Gate {
    /// One through which nothing leads before a fiber runs with it.
    fn default() -> Gate {
        Gate {
            switch: std::ptr::null(),
            waiting_frame: 0,
        }
    }
}

impl Gate {
    /// From now on it leads off that fiber.
    pub(super) fn open(&mut self, switch: *const Switch) {
        self.switch = switch;
    }

    /// Gives control back until the fiber goes on, and returns the bits that it is given then.
    ///
    /// # Safety
    ///
    /// The caller runs on the fiber that runs with this gate. While it waits, whoever owns the gate uses it, so the
    /// caller must hold no reference to it.
    #[inline]
    pub unsafe fn wait(gate: *mut Gate, event: Event) -> u64 {
        // SAFETY: the caller's promise.
        let switch = unsafe {
            (*gate).waiting_frame = (&raw const event).addr();
            (*gate).switch
        };
        if !switch.is_null() {
            // SAFETY: the fiber opened the gate when it began or continued this code, and the switch lives at the bottom
            // of the stack that this runs on.
            let input = unsafe { (*switch).suspend(event.into()) };
            if let Input::Decided(bits) = input {
                // SAFETY: this code runs again. Others have opened the gate for their own fibers.
                unsafe { (*gate).open(switch) };
                return bits;
            }
        }
        // Reached only if compiled code runs outside a fiber.
        std::process::abort()
    }

    /// Leaves compiled code for good.
    ///
    /// # Safety
    ///
    /// The caller runs on the fiber that runs with this gate, and nothing between it and the fiber has to be dropped.
    #[cold]
    pub unsafe fn stop(&self) -> ! {
        let switch = self.switch;
        if !switch.is_null() {
            // SAFETY: as in `wait`.
            unsafe { (*switch).suspend(Event::Stopped.into()) };
        }
        // Reached only if a stopped instance is resumed, or compiled code runs outside a fiber.
        std::process::abort()
    }

    /// An address in the frame in which the code on the fiber waits: nothing below it is in use but by the switch.
    pub fn waiting_frame(&self) -> usize {
        self.waiting_frame
    }
}
