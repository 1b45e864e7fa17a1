//! Libraries that trust what they read in places, and panic where it is damaged.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::Once;

thread_local! {
    static READS: Cell<bool> = const { Cell::new(false) };
}

/// Reads by such a library; a panic is told as damage, and nothing else of it is shown.
pub fn reading<T>(read: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let show = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !READS.get() {
                show(panic);
            }
        }));
    });
    let before = READS.replace(true);
    let read = catch_unwind(AssertUnwindSafe(read));
    READS.set(before);
    read.map_err(|_| "it is damaged".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_damage() {
        assert_eq!(reading(|| 1), Ok(1));
        let damaged: Result<i32, String> = reading(|| panic!("not to be shown"));
        assert_eq!(damaged, Err("it is damaged".to_owned()));
        assert!(!READS.get());
    }
}
