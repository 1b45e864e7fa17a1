//! Which instances a run takes, in which order, and how it batches them.

use std::fmt;

use fastrand::Rng;

use super::Options;
use crate::device::DeviceKind;
use crate::schedule::Policy;
use crate::session::{Batch, Config};

/// One way to run.
pub struct Composition {
    pub config: Config,
    /// Indices of lines; a line may be missing or occur more than once.
    pub order: Vec<usize>,
    /// What `order` is, for reports.
    shape: &'static str,
}

/// How a composition chooses its instances.
const SHAPES: [&str; 5] = [
    "in the given order",
    "reversed",
    "in random order",
    "in random order, some twice",
    "in random order, some left out",
];

/// They take turns too, each with every kind of batching in time.
const SCHEDULERS: [Policy; 4] = [
    Policy::Depth,
    Policy::Agenda,
    Policy::Lookahead,
    Policy::Instances,
];

impl Composition {
    /// The first run: every line once, as configured.
    pub fn as_given(config: Config, lines: usize) -> Composition {
        Composition {
            config,
            order: (0..lines).collect(),
            shape: SHAPES[0],
        }
    }

    /// The same instances in the same order, one by one.
    pub fn one_by_one(&self, base: Config) -> Composition {
        Composition {
            config: Config {
                batch: Batch::Count(1),
                ..base
            },
            order: self.order.clone(),
            shape: self.shape,
        }
    }

    /// Composition `number`. Kinds of batching and of order take turns, so that few compositions
    /// see all of them; what is left of a kind is random.
    pub fn random(
        base: Config,
        number: u64,
        lines: usize,
        options: &Options,
        rng: &mut Rng,
    ) -> Composition {
        let number = number as usize;
        let shape = SHAPES[1 + number % (SHAPES.len() - 1)];
        let order = order(shape, lines, rng);
        let batch = match number % 5 {
            0 => Batch::Count(random_size(order.len(), rng)),
            1 => Batch::All,
            2 => Batch::Unbatched,
            3 => Batch::Count(1 + rng.usize(0..8)),
            _ => Batch::InFlight(random_size(order.len(), rng)),
        };
        let mut config = Config {
            batch,
            threads: 1 + rng.usize(0..options.max_threads.max(1)),
            share_calls: rng.bool(),
            // What is kept is all that may be, little or nothing.
            keep_memory: base
                .keep_memory
                .min([u64::MAX, 1 << 10, 0][rng.usize(0..3)]),
            schedule_memory: base
                .schedule_memory
                .min([u64::MAX, 1 << 12, 0][rng.usize(0..3)]),
            scheduler: SCHEDULERS[(number + number / 4) % SCHEDULERS.len()],
            gather_fusion: rng.u32(0..4) != 0,
            ragged_storage: rng.u32(0..4) != 0,
            remapping: rng.u32(0..4) != 0,
            shared_prelude: rng.u32(0..4) != 0,
            lends_from: [u64::MAX, base.lends_from, 1][rng.usize(0..3)],
            ..base
        };
        if config.device == DeviceKind::Cuda {
            config.device_options.graphs &= rng.bool();
        }
        if config.device != DeviceKind::Cpu {
            config.device_options.overlap &= rng.bool();
            config.device_options.speculation &= rng.bool();
        }
        Composition {
            config,
            order,
            shape,
        }
    }
}

fn order(shape: &str, lines: usize, rng: &mut Rng) -> Vec<usize> {
    let mut order: Vec<usize> = (0..lines).collect();
    match shape {
        "reversed" => order.reverse(),
        "in random order, some twice" => {
            let twice: Vec<usize> = order.iter().copied().filter(|_| rng.bool()).collect();
            order.extend(twice);
            rng.shuffle(&mut order);
        }
        "in random order, some left out" => {
            rng.shuffle(&mut order);
            order.truncate(lines - rng.usize(0..=lines / 2));
        }
        _ => rng.shuffle(&mut order),
    }
    order
}

/// From 1 to `most`, small ones as often as large ones.
fn random_size(most: usize, rng: &mut Rng) -> usize {
    let largest = most.max(1);
    let bits = usize::BITS - largest.leading_zeros();
    let range = 1 << rng.u32(0..bits + 1).min(62);
    (1 + rng.usize(0..range)).min(largest)
}

impl fmt::Display for Composition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} instances {}", self.order.len(), self.shape)?;
        match self.config.batch {
            Batch::Count(count) => write!(f, ", --batch {count}")?,
            Batch::InFlight(count) => write!(f, ", --in-flight {count}")?,
            Batch::All => write!(f, ", --batch all")?,
            Batch::Unbatched => write!(f, ", --no-batch")?,
        }
        write!(f, ", --threads {}", self.config.threads)?;
        match self.config.scheduler {
            Policy::Auto => {}
            Policy::Depth => write!(f, ", --scheduler depth")?,
            Policy::Agenda => write!(f, ", --scheduler agenda")?,
            Policy::Lookahead => write!(f, ", --scheduler lookahead")?,
            Policy::Instances => write!(f, ", --granularity instance")?,
        }
        if !self.config.share_calls {
            write!(f, ", --no-sharing")?;
        }
        write!(f, ", --keep-memory {}", self.config.keep_memory)?;
        write!(f, ", --schedule-memory {}", self.config.schedule_memory)?;
        if !self.config.gather_fusion {
            write!(f, ", --without gather-fusion")?;
        }
        if self.config.lends_from == u64::MAX {
            write!(f, ", --without lending")?;
        }
        if !self.config.ragged_storage {
            write!(f, ", --without ragged-storage")?;
        }
        if !self.config.device_options.overlap {
            write!(f, ", --without overlap")?;
        }
        if !self.config.device_options.speculation {
            write!(f, ", --without speculation")?;
        }
        if !self.config.device_options.graphs {
            write!(f, ", --no-graphs")?;
        }
        if !self.config.remapping {
            write!(f, ", --without remapping")?;
        }
        if !self.config.shared_prelude {
            write!(f, ", --without shared-prelude")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_compositions_see_every_kind_and_never_a_line_that_is_not_there() {
        let options = Options {
            compositions: 20,
            seed: 1,
            max_threads: 2,
            cotangents: None,
        };
        let mut rng = Rng::with_seed(1);
        for lines in [0, 1, 2, 9] {
            let mut shapes = std::collections::HashSet::new();
            let mut batches = std::collections::HashSet::new();
            for number in 0..20 {
                let composition =
                    Composition::random(Config::default(), number, lines, &options, &mut rng);
                assert!(composition.order.iter().all(|line| *line < lines));
                assert!(composition.order.is_empty() == (lines == 0));
                shapes.insert(composition.shape);
                batches.insert(std::mem::discriminant(&composition.config.batch));
            }
            assert_eq!((shapes.len(), batches.len()), (4, 4));
        }
    }
}
