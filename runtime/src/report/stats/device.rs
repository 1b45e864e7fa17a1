//! What a device did: launches, copies, graphs, and flushes that were one launch.

use cohort_abi::gpu::Precision;
use serde::Serialize;

/// What a device did.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DeviceStats {
    /// As the device tells it: `NVIDIA H200 (cuda:0)`.
    pub name: String,
    /// What the factors of products were rounded to at most; `f32` is not at all.
    pub precision: Precision,
    /// By the device's own clock: from a flush's first copy to the device to the end of its last
    /// launch, over all flushes. Of flushes at the same time each counts.
    pub seconds: f64,
    /// Of these, until the first launch began: copies to the device. Only where calls are timed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list_seconds: Option<f64>,
    /// Bringing decisions and results together and to the host.
    pub fetch_seconds: f64,
    /// The most that was in use of its memory.
    pub peak_memory_bytes: u64,
    /// Functions that were launched, those in graphs included; a call of a kernel may be several.
    pub launches: u64,
    /// How often launches, of one call or of different ones, waited for all before them, the first of each flush counted:
    /// those of one step need nothing of each other.
    pub steps: u64,
    /// Copies between host and device.
    pub copies: Copies,
    /// Flushes that were launched as a graph.
    pub graphs: GraphStats,
    /// Flushes that were one launch, where they could be divided between clusters of blocks; nothing if none could.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clusters: Option<ClusterStats>,
}

/// Flushes that were one launch of a program that can divide them between clusters of blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ClusterStats {
    /// How many.
    pub flushes: u64,
    /// Of these, how many were divided.
    pub divided: u64,
    /// What those launched that were not.
    pub undivided: StepsLaunched,
    /// Of those that were divided, what all clusters compute together.
    pub shared: StepsLaunched,
    /// Of those that were divided, the part that takes longest.
    pub longest: StepsLaunched,
}

/// Steps one after another, and what is launched in them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StepsLaunched {
    /// How many.
    pub steps: u64,
    /// By kernels and rows.
    pub launches: Vec<RowsLaunched>,
}

/// A kernel's launches with the same number of rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RowsLaunched {
    /// The kernel's name.
    pub kernel: String,
    /// Rows of each.
    pub rows: u32,
    /// How often it was launched for that number.
    pub times: u64,
}

impl StepsLaunched {
    fn join(&mut self, other: StepsLaunched) {
        self.steps += other.steps;
        for other in other.launches {
            let is_same =
                |own: &&mut RowsLaunched| (&own.kernel, own.rows) == (&other.kernel, other.rows);
            match self.launches.iter_mut().find(is_same) {
                Some(own) => own.times += other.times,
                None => self.launches.push(other),
            }
        }
    }
}

impl ClusterStats {
    fn join(mut self, other: ClusterStats) -> ClusterStats {
        self.flushes += other.flushes;
        self.divided += other.divided;
        self.undivided.join(other.undivided);
        self.shared.join(other.shared);
        self.longest.join(other.longest);
        self
    }
}

impl DeviceStats {
    /// With what another one of the same device did at the same time.
    #[must_use]
    pub fn join(self, other: DeviceStats) -> DeviceStats {
        let list_seconds = match (self.list_seconds, other.list_seconds) {
            (Some(one), Some(two)) => Some(one + two),
            (one, two) => one.or(two),
        };
        DeviceStats {
            seconds: self.seconds + other.seconds,
            list_seconds,
            fetch_seconds: self.fetch_seconds + other.fetch_seconds,
            peak_memory_bytes: self.peak_memory_bytes.max(other.peak_memory_bytes),
            launches: self.launches + other.launches,
            steps: self.steps + other.steps,
            clusters: match (self.clusters, other.clusters) {
                (Some(one), Some(two)) => Some(one.join(two)),
                (one, two) => one.or(two),
            },
            copies: self.copies + other.copies,
            graphs: self.graphs + other.graphs,
            ..self
        }
    }
}

/// Copies between host and device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Copies {
    /// Copies to the device.
    pub to_device: u64,
    /// Bytes of these copies together.
    pub bytes_to_device: u64,
    /// Copies to the host.
    pub to_host: u64,
    /// Bytes of these copies together.
    pub bytes_to_host: u64,
}

add_by_field!(Copies {
    to_device,
    bytes_to_device,
    to_host,
    bytes_to_host
});

impl Copies {
    /// Counts a copy to the device.
    pub fn sent(&mut self, bytes: usize) {
        self.to_device += 1;
        self.bytes_to_device += bytes as u64;
    }

    /// Counts a copy to the host.
    pub fn fetched(&mut self, bytes: usize) {
        self.to_host += 1;
        self.bytes_to_host += bytes as u64;
    }
}

/// Flushes that were launched as one graph, and what was done to make that possible.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GraphStats {
    /// Graphs that were made, for a form of flush that came again.
    pub made: u64,
    /// Flushes that were launched as a graph made before.
    pub replayed: u64,
    /// Launches of these flushes that had other rows, arguments or functions than the time before.
    pub changed_launches: u64,
}

add_by_field!(GraphStats {
    made,
    replayed,
    changed_launches
});
