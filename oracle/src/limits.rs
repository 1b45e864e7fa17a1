//! How much one instance may ask for.

/// Exceeding a limit is that instance's error and nobody else's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Calls that are active at once.
    pub max_depth: u64,
    /// Calls, loop iterations and applications of closures, all together.
    pub max_steps: u64,
    /// Bytes of one tensor, or of one array of numbers, at 4 bytes an element.
    pub max_memory: u64,
}

impl Limits {
    /// How deep the JSON of an instance may nest. A level of a recursive type is two levels of
    /// JSON, three where it holds its children in an array, and one call for most programs. The
    /// bound is what reading and dropping JSON can do on the stack.
    pub(crate) fn max_nesting(&self) -> u64 {
        self.max_depth
            .saturating_mul(4)
            .saturating_add(64)
            .min(500_000)
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            max_depth: 100_000,
            max_steps: 100_000_000,
            max_memory: 4 << 30,
        }
    }
}
