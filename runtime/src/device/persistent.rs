//! The functions that run a device's flushes, and what each of a kernel's functions is there.

use cohort_abi::gpu::{GpuFlush, GpuFunction, GpuKernel, GpuLaunch};

use super::Clusters;

/// What runs a device's flushes.
#[derive(Clone, Debug)]
pub struct Persistent {
    /// Blocks that are on the device together.
    pub(super) blocks: u32,
    pub(super) functions: Functions,
    /// The same where blocks form clusters.
    pub(super) clusters: Option<(Clusters, Functions)>,
    /// Words behind the last arguments.
    pub(super) padding: usize,
}

/// By a function's number on the device, what runs it in a schedule.
pub(super) type Functions = Vec<Option<Runs>>;

/// A function in a schedule.
#[derive(Clone, Debug)]
pub(super) struct Runs {
    /// Its number there.
    pub number: u32,
    /// What it is, where its weights stay with a block: it takes another grid than the function in whose place it is.
    pub resident: Option<GpuFunction>,
}

impl Runs {
    /// The first dim of the grid, and all blocks, where the function itself has such a grid and arguments.
    pub fn grid(&self, (columns, rows): (u32, u32), arguments: &[u64]) -> Option<(u32, u32)> {
        let Some(resident) = &self.resident else {
            return Some((columns, columns.checked_mul(rows)?));
        };
        let (columns, tiles) = resident.resident_grid(*arguments.first()?);
        Some((columns, columns.checked_mul(u32::try_from(tiles).ok()?)?))
    }
}

impl Persistent {
    /// For a device that runs at most `blocks` blocks concurrently, and `clusters` if it has any.
    pub fn new(flush: &GpuFlush, blocks: u32, clusters: Option<Clusters>) -> Persistent {
        Persistent {
            blocks,
            functions: Vec::new(),
            clusters: clusters.map(|clusters| (clusters, Vec::new())),
            padding: flush.argument_bytes as usize / size_of::<u32>(),
        }
    }

    /// Into how many parts instances are divided for clusters; 0 where there are none.
    pub fn parts(&self) -> usize {
        (self.clusters.as_ref()).map_or(0, |(clusters, _)| clusters.parts as usize)
    }

    /// Finds a kernel's functions, whose numbers on the device are these for each launch.
    pub fn add(&mut self, flush: &GpuFlush, kernel: &GpuKernel, functions: &[Vec<usize>]) {
        let listed = (&flush.functions[..], flush.shared_bytes);
        let resident = |launch: &GpuLaunch| launch.resident.clone();
        add_functions(
            &mut self.functions,
            flush,
            listed,
            kernel,
            functions,
            resident,
        );
        if let (Some((_, of_clusters)), Some(clusters)) = (&mut self.clusters, &flush.clusters) {
            let listed = (&clusters.functions[..], clusters.shared_bytes);
            let clustered = |launch: &GpuLaunch| launch.clustered.clone();
            add_functions(of_clusters, flush, listed, kernel, functions, clustered);
        }
    }
}

/// Finds what runs a kernel's functions: those of few rows are run by what keeps their weights.
fn add_functions(
    all: &mut Functions,
    flush: &GpuFlush,
    (listed, shared_bytes): (&[String], u32),
    kernel: &GpuKernel,
    functions: &[Vec<usize>],
    resident: impl Fn(&GpuLaunch) -> Option<GpuFunction>,
) {
    let find = |function: &GpuFunction| {
        let number = listed
            .iter()
            .position(|symbol| *symbol == function.symbol)?;
        let fits = function.threads == flush.threads && function.shared_bytes <= shared_bytes;
        fits.then_some(number as u32)
    };
    for (launch, on_device) in kernel.launches.iter().zip(functions) {
        for (at, on_device) in on_device.iter().enumerate() {
            if all.len() <= *on_device {
                all.resize(on_device + 1, None);
            }
            let resident = resident(launch).filter(|_| at == 0);
            let resident = resident.and_then(|function| Some((find(&function)?, Some(function))));
            let itself = || Some((find(launch.functions.get(at)?)?, None));
            let found = resident.or_else(itself);
            all[*on_device] = found.map(|(number, resident)| Runs { number, resident });
        }
    }
}
