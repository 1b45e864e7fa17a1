//! A stack deep enough for the deepest tree that the parser lets through.

use crate::diagnostic::Diagnostic;

/// Trees nest at most 500 levels, and no walk needs 100 KiB a level.
const STACK_BYTES: usize = 64 << 20;

/// Runs `work` on a thread of its own with a large stack.
///
/// # Errors
///
/// Those of `work`, and one if no thread can be started.
pub fn with_deep_stack<T: Send>(
    work: impl FnOnce() -> Result<T, Vec<Diagnostic>> + Send,
) -> Result<T, Vec<Diagnostic>> {
    on_stack(STACK_BYTES, work)
}

fn on_stack<T: Send>(
    bytes: usize,
    work: impl FnOnce() -> Result<T, Vec<Diagnostic>> + Send,
) -> Result<T, Vec<Diagnostic>> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .stack_size(bytes)
            .spawn_scoped(scope, work);
        match thread.map(|thread| thread.join()) {
            Ok(Ok(result)) => result,
            // A panic in there is a mistake of ours; it goes on as it would have without a thread.
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(error) => Err(vec![
                Diagnostic::error("E0001", format!("cannot start a thread: {error}")).note(
                    "the compiler needs one with a large stack; are threads or memory limited?",
                ),
            ]),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_cannot_be_started_is_an_error() {
        // No system has room for a stack of half the address space.
        let result = on_stack(usize::MAX / 2, || Ok(()));
        let message = result.map_err(|errors| errors[0].message.clone());
        assert!(
            message
                .as_ref()
                .is_err_and(|text| text.starts_with("cannot start a thread: ")),
            "{message:?}"
        );
    }
}
