//! Why one instance has no result: the error record that takes its place in the output.

use cohort_abi::Failure;
use cohort_abi::manifest::Manifest;

use crate::error::Error;
use crate::limits::Limits;
use crate::memory;

/// `{"kind": …, "message": …}` of an error record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceError {
    /// A name that programs can rely on: `bad_input`, `memory_limit`.
    pub kind: &'static str,
    /// What happened, for people.
    pub message: String,
}

impl InstanceError {
    /// The line is not an instance of the program.
    pub fn bad_input(message: impl Into<String>) -> InstanceError {
        InstanceError {
            kind: "bad_input",
            message: message.into(),
        }
    }

    /// There is no memory for it, although no other instance uses any: what the flush said that could not
    /// be done, if it came to that.
    pub fn no_memory(flush: Option<&Error>) -> InstanceError {
        InstanceError {
            kind: Failure::MemoryLimit.kind(),
            message: match (flush, memory::most()) {
                (Some(error @ Error::Device { .. }), _) => error.to_string(),
                (_, u64::MAX) => "there is not enough memory".to_owned(),
                (_, most) => format!(
                    "needs more than is left of the {most} bytes that a run may use; raise the limit \
                     with --total-memory"
                ),
            },
        }
    }

    /// What is NaN or infinite has no gradient.
    pub fn not_finite(what: &str, number: f64) -> InstanceError {
        InstanceError {
            kind: "loss_not_finite",
            message: format!("{what} is {number}, so it has no gradient"),
        }
    }

    /// Nobody waits for it any more.
    pub fn cancelled() -> InstanceError {
        InstanceError {
            kind: "cancelled",
            message: "it was cancelled".to_owned(),
        }
    }

    /// It has no result when its caller wanted one.
    pub fn deadline() -> InstanceError {
        InstanceError {
            kind: "deadline",
            message: "it has no result by its deadline".to_owned(),
        }
    }

    /// `what` needs more memory than the `max_memory` bytes that an instance may use.
    pub fn memory_limit(what: &str, max_memory: u64) -> InstanceError {
        InstanceError {
            kind: Failure::MemoryLimit.kind(),
            message: format!(
                "{what} needs more than {max_memory} bytes; raise the limit with --max-memory"
            ),
        }
    }
}

/// Where compiled code was when it gave up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoppedAt {
    /// Index into the manifest's locations.
    Location(u32),
    /// At the manifest's force of that index.
    Force(u32),
    /// In a call of the kernel.
    Kernel(u32),
    /// In a call of the kernel with `a` rows, more than the `b` that there may be.
    Rows(u32),
    /// In a call of the kernel with a length of `a`, which is not between 0 and `b`.
    Length(u32),
    /// At a place that nothing tells of.
    Unknown,
}

/// What compiled code, or the recorder on its behalf, reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// What went wrong.
    pub failure: Failure,
    /// The first number that the message names, an index or a length; 0 where it names none.
    pub a: i64,
    /// The second one.
    pub b: i64,
    /// Where it happened.
    pub place: StoppedAt,
}

impl Stop {
    /// Its time is over.
    pub const LATE: Stop = Stop {
        failure: Failure::TimeLimit,
        a: 0,
        b: 0,
        place: StoppedAt::Unknown,
    };

    /// The batch had no bucket left, although the instance was alone in it.
    pub const NO_BUCKET: Stop = Stop {
        failure: Failure::NodeLimit,
        a: 0,
        b: 0,
        place: StoppedAt::Unknown,
    };

    /// The error record; `depth` is the depth of the recursion when it stopped.
    pub fn describe(&self, manifest: &Manifest, limits: &Limits, depth: u64) -> InstanceError {
        let location = match self.place {
            StoppedAt::Location(index) => manifest.locations.get(index as usize),
            StoppedAt::Force(index) => manifest
                .forces
                .get(index as usize)
                .map(|force| &force.location),
            StoppedAt::Kernel(index) | StoppedAt::Rows(index) | StoppedAt::Length(index) => {
                manifest
                    .kernels
                    .get(index as usize)
                    .map(|kernel| &kernel.location)
            }
            StoppedAt::Unknown => None,
        };
        let at = match location {
            Some(location) if !location.is_empty() => format!(" ({location})"),
            _ => String::new(),
        };
        let (a, b) = (self.a, self.b);
        let message = match self.failure {
            Failure::MemoryLimit if matches!(self.place, StoppedAt::Rows(_)) => format!(
                "needs more rows than there is memory for: {a} rows in one call, where {b} more \
                 are allowed{at}; the limit on bytes is {}, set with --max-memory",
                limits.max_memory
            ),
            Failure::ShapeMismatch if matches!(self.place, StoppedAt::Length(_)) => {
                format!("a length of {a}, which is not between 0 and {b}{at}")
            }
            Failure::DepthLimit if depth < limits.max_depth => format!(
                "recursion used up its stack at a depth of {depth} calls{at}; enlarge it with \
                 --max-depth (now {})",
                limits.max_depth
            ),
            Failure::DepthLimit => format!(
                "recursion went deeper than {} calls{at}; raise the limit with --max-depth",
                limits.max_depth
            ),
            Failure::NodeLimit => format!(
                "needs more than {} kernel calls{at}; raise the limit with --max-nodes",
                limits.max_nodes
            ),
            Failure::MemoryLimit => format!(
                "needs more than {} bytes{at}; raise the limit with --max-memory",
                limits.max_memory
            ),
            Failure::StepLimit => format!(
                "needs more than {} turns of loops and calls{at}; raise the limit with --max-steps",
                limits.max_steps
            ),
            // A length that a number gives is asked for as an index of everything that may be one.
            Failure::IndexOutOfRange if b > i64::from(i32::MAX) => format!(
                "a length of {a}, which is not between 0 and {}{at}",
                i32::MAX
            ),
            Failure::IndexOutOfRange => format!("index {a} is out of range for length {b}{at}"),
            Failure::LengthMismatch => format!("lengths {a} and {b} differ{at}"),
            Failure::ShapeMismatch => format!("dims {a} and {b} differ{at}"),
            Failure::DivisionByZero => format!("division by zero{at}"),
            Failure::TimeLimit => format!(
                "has no result after {:?}{at}; raise the limit with --max-seconds",
                limits.max_time.unwrap_or_default()
            ),
            Failure::NanDecision => format!("a tensor that decides is not a number (NaN){at}"),
        };
        InstanceError {
            kind: self.failure.kind(),
            message,
        }
    }
}
