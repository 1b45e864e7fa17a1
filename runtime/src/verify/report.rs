//! What a verification found, in words.

use std::collections::BTreeSet;
use std::fmt;

use super::compare::Record;
use super::compose::Composition;
use crate::schedule::Policy;
use crate::session::Batch;

/// Whether the bits were the same in every composition.
#[derive(Debug)]
pub enum Verdict {
    /// They were the same.
    Holds(Box<Summary>),
    /// An instance gave another record.
    Differs(Box<Difference>),
    /// Every record was the same, but a parameter's gradient was not.
    SumsDiffer(Box<SumDifference>),
}

/// What was compared without a difference.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Instances of the first run.
    pub instances: usize,
    /// Of these, those that gave an error record, which must be the same too.
    pub failed: usize,
    /// Runs after the first one.
    pub compositions: u64,
    /// Records that were compared with the first run's.
    pub compared: u64,
    /// The sizes of batches that were tried.
    pub batches: BTreeSet<usize>,
    /// The numbers of instances in flight that were tried.
    pub in_flight: BTreeSet<usize>,
    /// Compositions with all instances in one batch.
    pub all_at_once: u64,
    /// Compositions with each call alone.
    pub unbatched: u64,
    /// Compositions that made equal calls each by itself.
    pub unshared: u64,
    /// Compositions that kept nothing for later batches.
    pub unkept: u64,
    /// Compositions whose kernels read copies of their operands.
    pub copied: u64,
    /// Compositions that were scheduled by the agenda.
    pub agenda: u64,
    /// Compositions that were scheduled by looking ahead.
    pub lookahead: u64,
    /// Compositions that were scheduled by whole instances.
    pub instancewise: u64,
    /// The numbers of threads that were tried.
    pub threads: BTreeSet<usize>,
    /// Compositions whose gradients were compared.
    pub gradients: u64,
}

impl Summary {
    pub(super) fn new(first: &[Record]) -> Summary {
        Summary {
            instances: first.len(),
            failed: first.iter().filter(|record| record.is_error()).count(),
            ..Summary::default()
        }
    }

    pub(super) fn add(&mut self, composition: &Composition) {
        let config = composition.config;
        self.compositions += 1;
        self.compared += composition.order.len() as u64;
        match config.batch {
            Batch::Count(count) => _ = self.batches.insert(count),
            Batch::InFlight(count) => _ = self.in_flight.insert(count),
            Batch::All => self.all_at_once += 1,
            Batch::Unbatched => self.unbatched += 1,
        }
        self.unshared += u64::from(!config.share_calls);
        self.unkept += u64::from(config.keep_memory == 0);
        self.copied += u64::from(!config.gather_fusion);
        if config.batch != Batch::Unbatched {
            match config.scheduler {
                Policy::Auto | Policy::Depth => {}
                Policy::Agenda => self.agenda += 1,
                Policy::Lookahead => self.lookahead += 1,
                Policy::Instances => self.instancewise += 1,
            }
        }
        self.threads.insert(config.threads);
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "batch invariance holds: {} records of {} instances ({} of them failing) have the bits \
             of the first run, in {} compositions",
            self.compared, self.instances, self.failed, self.compositions
        )?;
        writeln!(f, "  batch sizes        {}", list(&self.batches))?;
        writeln!(f, "  in flight          {}", list(&self.in_flight))?;
        writeln!(f, "  all in one batch   {} times", self.all_at_once)?;
        writeln!(f, "  each call alone    {} times", self.unbatched)?;
        writeln!(f, "  no equal calls     {} times", self.unshared)?;
        writeln!(f, "  nothing kept       {} times", self.unkept)?;
        writeln!(f, "  copied operands    {} times", self.copied)?;
        writeln!(f, "  agenda             {} times", self.agenda)?;
        writeln!(f, "  look-ahead         {} times", self.lookahead)?;
        writeln!(f, "  whole instances    {} times", self.instancewise)?;
        write!(f, "  threads            {}", list(&self.threads))?;
        match self.gradients {
            0 => Ok(()),
            count => write!(
                f,
                "\n  gradients          {count} times, of inputs and parameters"
            ),
        }
    }
}

/// `1, 2, 7`, or `-`; of a long list its ends.
fn list(numbers: &BTreeSet<usize>) -> String {
    const SHOWN: usize = 12;
    let texts: Vec<String> = numbers.iter().map(usize::to_string).collect();
    match texts.len() {
        0 => "-".to_owned(),
        count if count <= SHOWN => texts.join(", "),
        count => format!(
            "{}, … {} ({count} values)",
            texts[..SHOWN - 1].join(", "),
            texts[count - 1]
        ),
    }
}

/// The first instance whose record is not the same, and where that begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// From 1.
    pub composition: u64,
    /// How many there were to be.
    pub compositions: u64,
    /// How that composition was run.
    pub way: String,
    /// Of the input, from 1.
    pub line: usize,
    /// As JSON text.
    pub id: String,
    /// How the records differ.
    pub output: OutputDifference,
    /// Where the computation parted.
    pub place: Divergence,
}

/// The first element of a parameter's gradient that is not what the same instances give one by one.
#[derive(Clone, Debug, PartialEq)]
pub struct SumDifference {
    /// From 1.
    pub composition: u64,
    /// How many there were to be.
    pub compositions: u64,
    /// How that composition was run.
    pub way: String,
    /// The parameter's name.
    pub parameter: String,
    /// Which of its elements, counted through all dims.
    pub element: usize,
    /// One by one.
    pub first: f32,
    /// In the composition.
    pub then: f32,
}

impl fmt::Display for SumDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, then) = (self.first, self.then);
        writeln!(
            f,
            "batch invariance does not hold: the gradient of `{}` differs in composition {} of {}",
            self.parameter, self.composition, self.compositions
        )?;
        writeln!(f, "  composition  {}", self.way)?;
        write!(
            f,
            "  gradient     element {}: one by one {first:e} (0x{:08x}), then {then:e} (0x{:08x})",
            self.element,
            first.to_bits(),
            then.to_bits()
        )
    }
}

/// The first part of the records that differs: `output[0][3]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputDifference {
    /// Which part of the record.
    pub path: String,
    /// What the first run has there; of a number, its bits too.
    pub first: String,
    /// What the composition has there.
    pub then: String,
}

/// Where the computation of an instance parted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Divergence {
    /// A kernel gave other bits from the same calls before it.
    Row {
        /// The kernel's name.
        kernel: String,
        /// Where it comes from in the source.
        location: String,
        /// Which of the instance's calls, from 1.
        call: usize,
        /// Which of the call's results, from 0.
        result: usize,
        /// Of the result's row, counted through all dims.
        element: usize,
        /// Whether the element is an `f32`.
        is_float: bool,
        /// The element's bits in the first run.
        first: u32,
        /// Its bits in the composition.
        then: u32,
    },
    /// The same row was read as another decision.
    Decision {
        /// Where in the source it decides.
        location: String,
        /// The decision's bits in the first run.
        first: u32,
        /// Its bits in the composition.
        then: u32,
    },
    /// All rows are the same up to this many calls, and then other kernels were called.
    Path {
        /// How many calls.
        calls: usize,
    },
    /// The output is the same, and the gradients of the inputs are not.
    Backward,
    /// When both were run again, all rows were the same: the bits change from run to run.
    Unstable,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OutputDifference { path, first, then } = &self.output;
        writeln!(
            f,
            "batch invariance does not hold: instance {} (line {}) differs in composition {} of {}",
            self.id, self.line, self.composition, self.compositions
        )?;
        writeln!(f, "  composition  {}", self.way)?;
        writeln!(f, "  record       {path}: first {first}, then {then}")?;
        write!(f, "  {}", self.place)
    }
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = |location: &str| match location {
            "" => String::new(),
            location => format!(" at {location}"),
        };
        match self {
            Divergence::Row {
                kernel,
                location,
                call,
                result,
                element,
                is_float,
                first,
                then,
            } => {
                writeln!(
                    f,
                    "block        {kernel}{}, call {call} of the instance",
                    at(location)
                )?;
                let bit = (first ^ then).trailing_zeros();
                write!(
                    f,
                    "  bit          result {result}, element {element}, bit {bit}: first \
                     0x{first:08x}, then 0x{then:08x}"
                )?;
                if *is_float {
                    let (first, then) = (f32::from_bits(*first), f32::from_bits(*then));
                    write!(f, " ({first:e} and {then:e})")?;
                }
                Ok(())
            }
            Divergence::Decision {
                location,
                first,
                then,
            } => write!(
                f,
                "decision    {}: first 0x{first:08x}, then 0x{then:08x}, from equal rows",
                at(location)
            ),
            Divergence::Path { calls } => write!(
                f,
                "block        after {calls} calls with equal rows the instance takes another path"
            ),
            Divergence::Backward => write!(
                f,
                "block        none of forward: the outputs are equal, and backward computed other bits"
            ),
            Divergence::Unstable => write!(
                f,
                "block        none: run again, all rows were equal, so the bits change from run \
                 to run"
            ),
        }
    }
}
