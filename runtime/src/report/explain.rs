//! Where batching was gained and where it was lost: what `--explain` shows.
//!
//! A [`Survey`] looks at every flush while instances run; an [`Explanation`] is made of it at the end.
//! Three things lose batching:
//!
//! * a *decision*: instances wait for a flush, and only those that wait share its launches;
//! * *misalignment*: calls of one kernel that do not depend on each other are launched apart, because
//!   they lie at different depths or in different phases. The fewest launches of a flush are the calls of
//!   the kernel on the longest way through its graph ([`Explanation::fewest_launches`]);
//! * an *unshared matrix*: a product reads one matrix a row, although the matrix is a parameter.
//!
//! What a launch costs whatever its rows is estimated from all launches of its kernel
//! ([`crate::report::stats::Launches::fixed_cost`]), and so are the seconds that a loss costs.

mod survey;
mod ways;

use cohort_abi::manifest::{Elem, Kernel, Manifest, Operand};
use serde::Serialize;

pub use survey::Survey;

use crate::report::stats::{
    BatchStats, Launches, Modes, RaggedWork, ScheduleReuse, SchedulerStats, Stats, StrandStats,
};

/// What a run gained by batching, and what it lost.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// Instances that were run.
    pub instances: u64,
    /// Those that failed.
    pub failed: u64,
    /// How often recorded calls were computed.
    pub flushes: u64,
    /// Launches of all kernels.
    pub kernel_launches: u64,
    /// That dependencies allow, whatever was waited for; absent when there was too much to tell.
    pub fewest_launches: Option<u64>,
    /// Rows that the launches computed.
    pub rows: u64,
    /// Rows of a launch on average, over all kernels.
    pub mean_rows_per_launch: f64,
    /// Running the control program.
    pub record_seconds: f64,
    /// Finding launches and their order, rows, indices.
    pub schedule_seconds: f64,
    /// Running kernels, over all launches.
    pub kernel_seconds: f64,
    /// Which order launches were in, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<SchedulerStats>,
    /// How schedules were reused by the structure of instances, or why they were not.
    pub schedule_reuse: ScheduleReuse,
    /// How many strands of instances waited side by side, and why not all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strands: Option<StrandStats>,
    /// Why batches ended early, where they did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batches: Option<BatchStats>,
    /// What each kernel did, in the manifest's order.
    pub blocks: Vec<Block>,
    /// The most expensive first.
    pub losses: Vec<Loss>,
}

/// What a kernel did.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Block {
    /// The kernel's name.
    pub name: String,
    /// Where it comes from in the source, as `file:line:column`.
    pub location: String,
    /// How often it was launched.
    pub launches: u64,
    /// The fewest that dependencies allow; absent when there was too much to tell.
    pub fewest_launches: Option<u64>,
    /// Rows that it computed.
    pub rows: u64,
    /// Rows of a launch on average.
    pub mean_rows_per_launch: f64,
    /// What all its launches took together.
    pub seconds: f64,
    /// Of the time of all kernels.
    pub share: f64,
    /// Floating-point operations of its products.
    pub flops: u64,
    /// Of a block whose calls have rows as their instances have lengths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ragged: Option<RaggedWork>,
    /// Parameters that all rows share.
    pub shared: Vec<String>,
    /// How each operand was read.
    pub operands: Vec<OperandModes>,
}

/// How often an operand was read in which mode, in launches.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OperandModes {
    /// Of a row: `f32[64]`.
    #[serde(rename = "type")]
    pub ty: String,
    /// A number of the host, given by value.
    pub is_scalar: bool,
    /// Launches by mode.
    #[serde(flatten)]
    pub modes: Modes,
}

/// What loses batching; [`crate::report::explain`] tells of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// Instances waited for a decision.
    Decision,
    /// Calls of one kernel were launched apart.
    Misalignment,
    /// A product read one matrix a row.
    UnsharedMatrix,
}

/// A place where batching was lost.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Loss {
    /// Which of the three it is.
    pub cause: Cause,
    /// Where in the source, as `file:line:column`.
    pub location: String,
    /// The kernel's name; a decision has none.
    pub block: Option<String>,
    /// What was seen there and what the program could do about it, in words.
    pub why: String,
    /// More than would be needed.
    pub launches: u64,
    /// That were done a row at a time.
    pub flops: u64,
    /// What it costs at most, estimated; absent where the launches do not tell.
    pub seconds: Option<f64>,
}

impl Explanation {
    /// Explains a run that is over, from its counts, its flushes and what each kernel did.
    pub fn new(
        manifest: &Manifest,
        stats: &Stats,
        survey: &Survey,
        launches: &[Launches],
    ) -> Explanation {
        let nanoseconds: u64 = launches.iter().map(|kernel| kernel.nanoseconds).sum();
        let kernels = || manifest.kernels.iter().zip(launches).enumerate();
        let blocks = kernels().map(|(index, (kernel, launches))| {
            block(
                manifest,
                kernel,
                launches,
                survey.allowed(index),
                nanoseconds,
            )
        });
        let scheduler = stats.scheduler.as_ref();
        let helps = against_misalignment(scheduler.map(|scheduler| scheduler.used.as_str()));
        let mut losses: Vec<Loss> = kernels()
            .flat_map(|(index, (kernel, launches))| {
                let misaligned = survey
                    .fewest(index)
                    .and_then(|fewest| misalignment(kernel, launches, fewest, helps));
                misaligned.into_iter().chain(unshared_matrices(
                    kernel,
                    launches,
                    survey.parameter_rows(index),
                ))
            })
            .collect();
        losses.extend(decisions(manifest, survey, launches));
        losses.sort_by(|a, b| {
            let cost = |loss: &Loss| loss.seconds.unwrap_or(0.0);
            cost(b).total_cmp(&cost(a))
        });
        Explanation {
            instances: stats.instances,
            failed: stats.failed,
            flushes: stats.flushes,
            kernel_launches: stats.kernel_launches,
            fewest_launches: (0..launches.len()).map(|index| survey.allowed(index)).sum(),
            rows: stats.rows,
            mean_rows_per_launch: stats.mean_rows_per_launch,
            record_seconds: stats.record_seconds,
            schedule_seconds: stats.schedule_seconds,
            kernel_seconds: seconds(nanoseconds as f64),
            scheduler: stats.scheduler.clone(),
            schedule_reuse: stats.schedule_reuse.clone(),
            strands: stats.strands.clone(),
            batches: stats.batches.clone(),
            blocks: blocks.collect(),
            losses,
        }
    }
}

/// Never the negative zero of a sum of nothing, nor an estimate below nothing.
fn seconds(nanoseconds: f64) -> f64 {
    nanoseconds.max(0.0) * 1e-9 + 0.0
}

fn ratio(part: u64, whole: u64) -> f64 {
    match whole {
        0 => 0.0,
        whole => part as f64 / whole as f64,
    }
}

fn block(
    manifest: &Manifest,
    kernel: &Kernel,
    launches: &Launches,
    fewest_launches: Option<u64>,
    all_nanoseconds: u64,
) -> Block {
    let params = kernel
        .constants
        .iter()
        .filter_map(|constant| manifest.params.get(constant.param()?));
    let mut shared: Vec<String> = params.map(|param| param.name.clone()).collect();
    shared.sort();
    shared.dedup();
    let operands = kernel.operands.iter().zip(&launches.modes);
    Block {
        name: kernel.name.clone(),
        location: kernel.location.clone(),
        launches: launches.launches,
        fewest_launches,
        rows: launches.rows,
        mean_rows_per_launch: ratio(launches.rows, launches.launches),
        seconds: seconds(launches.nanoseconds as f64),
        share: ratio(launches.nanoseconds, all_nanoseconds),
        flops: launches.flops(kernel.flops_per_row),
        ragged: (launches.ragged.calls > 0).then_some(launches.ragged),
        shared,
        operands: operands
            .map(|(operand, modes)| OperandModes {
                ty: row_type(manifest, operand),
                is_scalar: matches!(operand, Operand::Scalar(_) | Operand::Length),
                modes: *modes,
            })
            .collect(),
    }
}

fn row_type(manifest: &Manifest, operand: &Operand) -> String {
    let name = |elem: Elem| match elem {
        Elem::F32 => "f32",
        Elem::I32 => "i32",
        Elem::Bool => "bool",
    };
    let row = |pool: usize| {
        let pool = &manifest.row_pools[pool];
        let dims: Vec<String> = pool.shape.iter().map(u64::to_string).collect();
        format!("{}[{}]", name(pool.elem), dims.join(", "))
    };
    match operand {
        Operand::Scalar(elem) => name(*elem).to_owned(),
        Operand::Length => "length".to_owned(),
        Operand::Row { pool } => row(*pool),
        Operand::Rows { pool } | Operand::Ragged { pool, .. } | Operand::Stacked { pool, .. } => {
            format!("[{}]", row(*pool))
        }
    }
}

/// What helps against calls that are launched apart, with the scheduler that was used.
fn against_misalignment(used: Option<&str>) -> &'static str {
    match used {
        Some("lookahead") => "a `phase` in the program may align them, or one less",
        _ => "`--scheduler lookahead` may align them, or a `phase` in the program, or one less",
    }
}

fn misalignment(kernel: &Kernel, launches: &Launches, fewest: u64, helps: &str) -> Option<Loss> {
    let more = launches
        .launches
        .checked_sub(fewest)
        .filter(|more| *more > 0)?;
    Some(Loss {
        cause: Cause::Misalignment,
        location: kernel.location.clone(),
        block: Some(kernel.name.clone()),
        why: format!(
            "{} launches of {:.1} rows, where what they read allows {fewest}: its calls lie at \
             different depths, or in different phases; {helps}",
            launches.launches,
            ratio(launches.rows, launches.launches)
        ),
        launches: more,
        flops: 0,
        seconds: launches
            .fixed_cost()
            .map(|fixed| seconds(fixed * more as f64)),
    })
}

/// `parameter_rows` counts, for each operand, the rows that were a parameter or a part of one.
fn unshared_matrices(kernel: &Kernel, launches: &Launches, parameter_rows: &[u64]) -> Vec<Loss> {
    let of_product = |product: &cohort_abi::manifest::RowProduct| {
        let rows = *parameter_rows.get(product.operand)?;
        let flops = rows.saturating_mul(product.flops);
        // Products a row are not in all counts; a part is never more than the whole.
        let all = launches.flops(kernel.flops_per_row).max(flops);
        (rows > 0).then(|| Loss {
            cause: Cause::UnsharedMatrix,
            location: kernel.location.clone(),
            block: Some(kernel.name.clone()),
            why: format!(
                "the matrix of a product is operand {}, which is a parameter or a part of one in {rows} of {} \
                 rows, chosen at run time: a matrix that is the same at every call is shared, so a function \
                 for each parameter helps, or, of `w[k]`, at most 64 parts of 4,096 elements or more",
                product.operand, launches.rows
            ),
            launches: 0,
            flops,
            seconds: Some(seconds(launches.nanoseconds as f64 * ratio(flops, all))),
        })
    };
    kernel.row_products.iter().filter_map(of_product).collect()
}

fn decisions(manifest: &Manifest, survey: &Survey, launches: &[Launches]) -> Vec<Loss> {
    // What a launch costs by itself, over all kernels.
    let fixed: f64 = launches
        .iter()
        .filter_map(|kernel| Some(kernel.fixed_cost()? * kernel.launches as f64))
        .sum();
    let count: u64 = launches.iter().map(|kernel| kernel.launches).sum();
    let places = manifest.forces.iter().zip(survey.waits());
    places
        .filter(|(_, waits)| waits.flushes > 0)
        .map(|(force, waits)| Loss {
            cause: Cause::Decision,
            location: force.location.clone(),
            block: None,
            why: format!(
                "{} flushes with an instance that waits for this decision, {:.1} of them on \
                 average: more in flight would share them (`--in-flight`, `--batch`)",
                waits.flushes,
                ratio(waits.instances, waits.flushes)
            ),
            launches: waits.launches as u64,
            flops: 0,
            seconds: (count > 0).then(|| seconds(fixed / count as f64 * waits.launches)),
        })
        .collect()
}
