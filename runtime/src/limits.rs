//! What one instance may use before it is given up with an error record of its own.

use std::time::Duration;

/// The limits of one instance. None of them is ever shared between instances: whether an instance
/// hits a limit does not depend on its batch, but for the one on time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Calls of functions of the control program that may be active at once. The stack of the
    /// control program is sized from it.
    pub max_depth: u64,
    /// Kernel calls that an instance may record.
    pub max_nodes: u64,
    /// Bytes that an instance may use: its decoded input, what its control program allocates, the
    /// rows and log entries of its kernel calls, and the text of its output (each on its own).
    pub max_memory: u64,
    /// Loop iterations of the control program.
    pub max_steps: u64,
    /// From its beginning to its result, waiting for the others of its batch included. What is left of
    /// it decides nothing but whether there is a result.
    pub max_time: Option<Duration>,
}

impl Default for Limits {
    /// A depth of 100,000, 10 million kernel calls, 4 GiB and 100 million iterations.
    fn default() -> Limits {
        Limits {
            max_depth: 100_000,
            max_nodes: 10_000_000,
            max_memory: 4 << 30,
            max_steps: 100_000_000,
            max_time: None,
        }
    }
}

/// Stack that one active call of compiled code is expected to need at most. A bigger frame is
/// safe too: compiled code checks its stack pointer, and gives up earlier than the limit says.
const STACK_BYTES_A_CALL: u64 = 2560;
/// Never reserve more address space than this, whatever the limit on the depth is.
const MAX_STACK_BYTES: u64 = 1 << 40;

impl Limits {
    /// Address space to reserve for the stack of the control program.
    pub fn stack_bytes(&self) -> u64 {
        self.max_depth
            .saturating_mul(STACK_BYTES_A_CALL)
            .saturating_add(4 << 20)
            .min(MAX_STACK_BYTES)
    }
}
