//! What a per-instance kernel does for a call, stage after stage, as `ragged.calls` lists it. Values are nodes
//! of the kernel's graph, read at indices of the stage's loops.

use cohort_abi::manifest::{Division, Extent, Padding};

use super::graph::{Index, NodeId, Size};

/// Loops that store a value to a result.
#[derive(Debug, Default)]
pub struct Nest {
    pub over: Vec<Size>,
    /// The loop that runs in vectors.
    pub lanes: Option<usize>,
    pub value: NodeId,
    pub at: Vec<Index>,
    /// The number of the result, and where it is stored.
    pub result: usize,
    pub store: Vec<Index>,
}

/// How a kernel's calls are computed and counted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Calls {
    /// Loops of unknown length have a main part of whole vectors and tiles, and a tail.
    pub split: bool,
    /// A call's lengths and first rows are read once, before its loops.
    pub hoisted: bool,
    pub division: Option<Division>,
    pub flops: Vec<Extent>,
    pub padding: Option<Padding>,
}
