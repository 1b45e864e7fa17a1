//! What a run tells of itself: statistics, profiles, and why it was batched as it was.

pub mod explain;
pub mod laps;
pub mod profile;
pub mod stats;
pub mod trace;

/// How far a run is, for a progress bar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Instances with a line in the output, failed ones included.
    pub instances: u64,
    /// Of these, those that failed.
    pub failed: u64,
    /// Bytes of the input.
    pub bytes_read: u64,
}
