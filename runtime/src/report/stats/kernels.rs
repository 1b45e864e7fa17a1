//! What kernels did: launches, rows, operations and bytes, and how operands were read.

use cohort_abi::manifest::{Constant, Kernel, Manifest};
use serde::Serialize;

/// What one kernel did in the whole run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct KernelStats {
    /// As reports and the compiler's output call it.
    pub name: String,
    /// Where it comes from in the source, as `file:line:column`.
    pub location: String,
    /// How often it was launched.
    pub launches: u64,
    /// Rows that it computed.
    pub rows: u64,
    /// On a device only where calls are timed.
    pub seconds: f64,
    /// Of products.
    pub flops: u64,
    /// The least that its launches had to read and write: operands, results and constants, each once.
    pub bytes: u64,
    /// Of a kernel whose calls have rows as their instances have lengths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ragged: Option<RaggedWork>,
}

/// How often an operand of a kernel was read in which mode, in launches; see
/// [`crate::execute`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Modes {
    /// Launches that read rows one behind another.
    pub contiguous: u64,
    /// Launches that read one row again and again.
    pub identical: u64,
    /// Launches that read each row by its index.
    pub gathered: u64,
}

add_by_field!(Modes {
    contiguous,
    identical,
    gathered
});

/// What a kernel did, as the executor counts it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Launches {
    /// How often it was launched.
    pub launches: u64,
    /// Rows that it computed.
    pub rows: u64,
    /// What all launches took together.
    pub nanoseconds: u64,
    /// Of each operand.
    pub modes: Vec<Modes>,
    /// Rows of operands that were copied together first.
    pub copied_rows: u64,
    /// Of a ragged kernel.
    pub ragged: RaggedWork,
    /// Over all launches: the squares of the rows, and rows times nanoseconds.
    rows_squared: f64,
    rows_nanoseconds: f64,
}

/// What a ragged kernel did: operations of products, and bytes of ragged operands and results.
/// *Dense* is what it would be if all calls of a launch were as long as the longest: the difference
/// is padding that was not computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RaggedWork {
    /// How many calls.
    pub calls: u64,
    /// Floating-point operations of products.
    pub flops: u64,
    /// Read and written: ragged operands and results.
    pub bytes: u64,
    /// Rows, if it were dense.
    pub dense_rows: u64,
    /// Operations, if it were dense.
    pub dense_flops: u64,
    /// Bytes, if it were dense.
    pub dense_bytes: u64,
}

impl RaggedWork {
    /// Adds what was done elsewhere.
    pub fn add(&mut self, other: &RaggedWork) {
        for (sum, part) in [
            (&mut self.calls, other.calls),
            (&mut self.flops, other.flops),
            (&mut self.bytes, other.bytes),
            (&mut self.dense_rows, other.dense_rows),
            (&mut self.dense_flops, other.dense_flops),
            (&mut self.dense_bytes, other.dense_bytes),
        ] {
            *sum = sum.saturating_add(part);
        }
    }
}

impl Launches {
    /// Of a kernel with `operands` operands, which has done nothing so far.
    pub fn new(operands: usize) -> Launches {
        Launches {
            modes: vec![Modes::default(); operands],
            ..Launches::default()
        }
    }

    /// Sets all counts to zero.
    pub fn clear(&mut self) {
        *self = Launches::new(self.modes.len());
    }

    /// Takes in what the same kernel did elsewhere.
    pub fn join(&mut self, other: &Launches) {
        self.launches += other.launches;
        self.rows += other.rows;
        self.nanoseconds += other.nanoseconds;
        for (modes, more) in self.modes.iter_mut().zip(&other.modes) {
            *modes += *more;
        }
        self.copied_rows += other.copied_rows;
        self.ragged.add(&other.ragged);
        self.rows_squared += other.rows_squared;
        self.rows_nanoseconds += other.rows_nanoseconds;
    }

    /// Operations of products of all its launches.
    pub fn flops(&self, flops_per_row: u64) -> u64 {
        match self.ragged.calls {
            0 => self.rows.saturating_mul(flops_per_row),
            _ => self.ragged.flops,
        }
    }

    /// The least that all its launches had to read and write: see [`KernelStats::bytes`].
    pub fn bytes(&self, manifest: &Manifest, kernel: &Kernel) -> u64 {
        let row = |pool: usize| manifest.row_pools[pool].row_bytes();
        let results: u64 = kernel.results.iter().map(|pool| row(*pool)).sum();
        let operands = kernel
            .operands
            .iter()
            .map(|operand| operand.pool().map_or(size_of::<u32>() as u64, row));
        let elements = |param: usize| {
            let weight = manifest.weight(param);
            weight.map_or(0, |weight| weight.shape.iter().product())
        };
        let constants = kernel
            .constants
            .iter()
            .map(|constant| match constant.whole().0 {
                Constant::Panels { param, format, .. } => elements(*param) * format.bytes() as u64,
                Constant::Plain { param } | Constant::Rounded { param, .. } => {
                    let elem = manifest
                        .weight(*param)
                        .map_or(0, |weight| weight.elem.bytes());
                    elements(*param) * elem as u64
                }
                Constant::Dense { elem, bits } => (bits.len() * elem.bytes()) as u64,
                // A part of a part is none of a valid manifest.
                Constant::Part { .. } => 0,
            });
        let rows = match self.ragged.calls {
            0 => (self.rows).saturating_mul(results + operands.sum::<u64>()),
            _ => self.ragged.bytes,
        };
        rows.saturating_add(self.launches.saturating_mul(constants.sum()))
    }

    /// Counts a launch of `rows` rows.
    pub fn add(&mut self, rows: u32, nanoseconds: u64) {
        self.launches += 1;
        self.rows += u64::from(rows);
        self.nanoseconds += nanoseconds;
        self.rows_squared += f64::from(rows) * f64::from(rows);
        self.rows_nanoseconds += f64::from(rows) * nanoseconds as f64;
    }

    /// Nanoseconds that a launch takes whatever its rows: where the line that fits all launches best
    /// meets no rows. `None` when all launches had the same number of rows.
    pub fn fixed_cost(&self) -> Option<f64> {
        let (n, rows) = (self.launches as f64, self.rows as f64);
        let spread = n * self.rows_squared - rows * rows;
        if spread <= 0.0 {
            return None;
        }
        let nanoseconds = self.nanoseconds as f64;
        let a_row = (n * self.rows_nanoseconds - rows * nanoseconds) / spread;
        let fixed = (nanoseconds - a_row * rows) / n;
        // No launch costs less than nothing, nor more than an average one.
        Some(fixed.clamp(0.0, nanoseconds / n))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_launch_costs_by_itself_is_told_apart_from_what_its_rows_cost() {
        let mut launches = Launches::new(0);
        assert_eq!(launches.fixed_cost(), None);
        launches.add(10, 1500);
        launches.add(10, 1500);
        assert_eq!(launches.fixed_cost(), None);
        launches.add(30, 2500);
        let fixed = launches.fixed_cost().unwrap();
        assert!((fixed - 1000.0).abs() < 1e-6, "{fixed}");
    }
}
