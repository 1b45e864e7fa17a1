//! The techniques of the runtime that `--without` takes beside the compiler's passes.

/// One a line: its name, and what is lost without it.
pub const TECHNIQUES: [(&str, &str); 9] = [
    (
        GATHER_FUSION,
        "rows that do not lie together are copied together before their kernel reads them",
    ),
    (
        LENDING,
        "large inputs are copied to the memory of a batch before kernels read them",
    ),
    (
        OVERLAP,
        "a batch is recorded when a device is done with the one before it",
    ),
    (
        REMAPPING,
        "no call is divided between threads, and calls begin in the order in which they were recorded",
    ),
    (
        RAGGED_STORAGE,
        "every call of a launch gets as many rows of memory as the longest of them",
    ),
    (
        SCHEDULE_REUSE,
        "the control program runs for each instance, also for those of a structure that came before",
    ),
    (
        SHARED_PRELUDE,
        "what the lengths of calls make is made for each launch, and not once a batch",
    ),
    (
        SHARING,
        "equal calls on a parameter's row are computed each time they occur",
    ),
    (
        SPECULATION,
        "an instance waits for each decision that a device computes before it goes on",
    ),
];

const GATHER_FUSION: &str = "gather-fusion";
const LENDING: &str = "lending";
const OVERLAP: &str = "overlap";
const REMAPPING: &str = "remapping";
const RAGGED_STORAGE: &str = "ragged-storage";
const SCHEDULE_REUSE: &str = "schedule-reuse";
const SHARED_PRELUDE: &str = "shared-prelude";
const SHARING: &str = "sharing";
const SPECULATION: &str = "speculation";

/// What `--without` leaves out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Without {
    /// Passes, if they are known to the compiler.
    pub passes: Vec<String>,
    /// Whether rows are copied together before a kernel reads them.
    pub gather_fusion: bool,
    /// Whether all inputs are copied.
    pub lending: bool,
    /// Whether batches run on a device one after another.
    pub overlap: bool,
    /// Whether every call gets memory for as many rows as the longest of its launch.
    pub ragged_storage: bool,
    /// Whether calls are neither divided nor put in another order.
    pub remapping: bool,
    /// Whether the control program runs for every instance.
    pub schedule_reuse: bool,
    /// Whether what lengths make is made for each launch.
    pub shared_prelude: bool,
    /// Whether equal calls are computed each time.
    pub sharing: bool,
    /// Whether no decision is guessed.
    pub speculation: bool,
}

impl Without {
    /// Reads the names that `--without` was given; those of no technique are taken for passes.
    pub fn new(names: &[String]) -> Without {
        let has = |name: &str| names.iter().any(|given| given == name);
        let is_pass = |name: &&String| TECHNIQUES.iter().all(|(known, _)| known != name);
        Without {
            passes: names.iter().filter(is_pass).cloned().collect(),
            gather_fusion: has(GATHER_FUSION),
            lending: has(LENDING),
            overlap: has(OVERLAP),
            ragged_storage: has(RAGGED_STORAGE),
            remapping: has(REMAPPING),
            schedule_reuse: has(SCHEDULE_REUSE),
            shared_prelude: has(SHARED_PRELUDE),
            sharing: has(SHARING),
            speculation: has(SPECULATION),
        }
    }
}

/// A line for each technique, to go behind the list of passes.
#[cfg(feature = "compiler")]
pub fn list() -> String {
    TECHNIQUES
        .iter()
        .map(|(name, lost)| format!("\n  {name}: without it, {lost}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_techniques_are_told_from_those_of_passes() {
        let names = ["sharing", "hoist-operators"].map(str::to_owned);
        assert_eq!(
            Without::new(&names),
            Without {
                passes: vec!["hoist-operators".to_owned()],
                gather_fusion: false,
                lending: false,
                overlap: false,
                ragged_storage: false,
                remapping: false,
                schedule_reuse: false,
                shared_prelude: false,
                sharing: true,
                speculation: false,
            }
        );
    }
}
