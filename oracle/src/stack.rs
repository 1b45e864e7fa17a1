//! A stack large enough for the recursion of interpreted programs, and how much of it is left.
//!
//! The interpreter is recursive because that is how it stays readable. Its depth is the
//! program's, so it runs on a thread with a large stack (reserved, and touched only as far as it
//! is used) and asks before each call whether some is left.

use std::cell::Cell;
use std::{io, panic, thread};

const RESERVED: usize = 2 << 30;

/// What is kept for the deepest expression that a call may hold.
const MARGIN: usize = 64 << 20;

thread_local! {
    /// The address below which the stack counts as exhausted, on a thread with a large stack.
    static FLOOR: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Runs `work` on a thread with a large stack: this one, if it has one.
pub fn on_large_stack<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    if FLOOR.get().is_some() {
        return Ok(work());
    }
    thread::scope(|scope| {
        let thread = thread::Builder::new()
            .name("oracle".to_string())
            .stack_size(RESERVED)
            .spawn_scoped(scope, || {
                FLOOR.set(Some(stack_pointer().saturating_sub(RESERVED - MARGIN)));
                work()
            })?;
        Ok(thread
            .join()
            .unwrap_or_else(|payload| panic::resume_unwind(payload)))
    })
}

/// Whether the next call should be refused for want of stack.
pub(crate) fn is_nearly_exhausted() -> bool {
    FLOOR.get().is_some_and(|floor| stack_pointer() < floor)
}

/// About where the stack, which grows downwards, ends now.
#[inline(never)]
fn stack_pointer() -> usize {
    let here = 0_u8;
    std::hint::black_box(&raw const here).addr()
}
