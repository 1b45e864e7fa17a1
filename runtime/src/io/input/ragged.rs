//! Tensors with instance dims: nested lists, whose lengths are found while they are read.
//!
//! All lists of one level must be equally long. Dims of one name must agree in all arguments of an
//! instance. Of a dim inside of an empty list nothing is seen: it is as long as the others of its
//! name, which may come later in the line; then the line is read once more ([`Dims::is_guess_wrong`]).

use cohort_abi::manifest::LeadingDim;

use super::Inputs;
use super::builder::Builder;
use super::message::Problem;
use super::source::Source;
use super::tensor::{append, wrong_shape};

/// No dim may be longer.
const MAX_LENGTH: u64 = (1 << 31) - 1;

/// Where a dim was seen.
#[derive(Clone, Debug)]
pub struct Seen {
    pub length: u64,
    pub argument: usize,
    /// In the argument, where that is not the tensor itself.
    pub path: String,
    pub axis: usize,
}

/// The named dims of the instance at hand.
#[derive(Debug, Default)]
pub(super) struct Dims {
    seen: Vec<Option<Seen>>,
    /// Lengths that were needed before they were seen, taken as these.
    guesses: Vec<Option<u64>>,
    /// Of what was seen when the line was read before.
    known: Vec<u64>,
}

impl Dims {
    pub fn new(count: usize) -> Dims {
        Dims {
            seen: vec![None; count],
            guesses: vec![None; count],
            known: vec![0; count],
        }
    }

    /// Begins with an instance.
    pub fn begin(&mut self) {
        self.seen.fill(None);
        self.guesses.fill(None);
        self.known.fill(0);
    }

    /// Whether a length was guessed that is another; the line must be read again, and now all are
    /// known.
    pub fn is_guess_wrong(&mut self) -> bool {
        let mut is_wrong = false;
        for ((guess, seen), known) in self.guesses.iter().zip(&self.seen).zip(&mut self.known) {
            if let (Some(guess), Some(seen)) = (guess, seen) {
                is_wrong |= *guess != seen.length;
                *known = seen.length;
            }
        }
        self.seen.fill(None);
        self.guesses.fill(None);
        is_wrong
    }

    /// The length of a dim of which nothing is seen here.
    fn unseen(&mut self, dim: usize) -> u64 {
        match &self.seen[dim] {
            Some(seen) => seen.length,
            None => *self.guesses[dim].insert(self.known[dim]),
        }
    }

    fn see(&mut self, dim: usize, seen: Seen) -> Result<(), Problem> {
        match &self.seen[dim] {
            Some(before) if before.length != seen.length => Err(Problem::Dims {
                dim,
                seen: Box::new([before.clone(), seen]),
            }),
            Some(_) => Ok(()),
            None => {
                self.seen[dim] = Some(seen);
                Ok(())
            }
        }
    }
}

impl<'m> Builder<'m> {
    /// Appends the tensor's rows to the inputs' rows, and its slots to the values.
    pub(super) fn ragged(
        &mut self,
        source: &mut impl Source,
        pool: usize,
        dims: &'m [LeadingDim],
        inputs: &mut Inputs,
    ) -> Result<(), Problem> {
        let first = inputs.rows.row_pools[pool].rows;
        let mut lengths: Vec<Option<u64>> = vec![None; dims.len()];
        self.leading.clear();
        self.counters.clear();
        if !self.whole(source, pool, dims, &mut lengths, inputs)? {
            self.nested(source, pool, dims, &mut lengths, inputs)?;
        }
        let position = u32::try_from(first).map_err(|_| Problem::Memory)?;
        self.values
            .push(self.input_handle(inputs, pool, position).0);
        self.name_lengths(dims, &lengths)
    }

    /// A tensor that comes as a whole; whether it does.
    fn whole(
        &mut self,
        source: &mut impl Source,
        pool: usize,
        dims: &'m [LeadingDim],
        lengths: &mut [Option<u64>],
        inputs: &mut Inputs,
    ) -> Result<bool, Problem> {
        let of_row = &self.manifest.row_pools[pool];
        let Some(shape) = source.tensor(of_row.elem)? else {
            return Ok(false);
        };
        let fits = shape.len() == dims.len() + of_row.shape.len()
            && shape[dims.len()..] == of_row.shape
            && (dims.iter().zip(shape)).all(|(dim, length)| match dim {
                LeadingDim::Known(known) => known == length,
                LeadingDim::Named(_) | LeadingDim::Any => true,
            });
        if !fits {
            let expected = self.expected_ragged(pool, dims);
            return Err(wrong_shape(&expected, of_row.elem, shape));
        }
        let leading = &shape[..dims.len()];
        let rows = match leading.contains(&0) {
            true => 0,
            false => leading
                .iter()
                .fold(1, |rows: u64, length| rows.saturating_mul(*length)),
        };
        if rows > MAX_LENGTH {
            return Err(Problem::Memory);
        }
        for (seen, length) in lengths.iter_mut().zip(leading) {
            *seen = Some(*length);
        }
        self.charge(rows.saturating_mul(of_row.row_bytes()))?;
        let block = &mut inputs.rows.row_pools[pool];
        append(block, source.elements(of_row.elem)?)?;
        block.rows += rows;
        Ok(true)
    }

    /// A tensor that comes as lists of lists.
    fn nested(
        &mut self,
        source: &mut impl Source,
        pool: usize,
        dims: &'m [LeadingDim],
        lengths: &mut [Option<u64>],
        inputs: &mut Inputs,
    ) -> Result<(), Problem> {
        'value: loop {
            let level = self.leading.len();
            if level == dims.len() {
                self.tensor(source, pool, inputs)?;
            } else {
                if !source.begin_list()? {
                    return Err(Problem::Value {
                        expected: self.expected_ragged(pool, &dims[level..]),
                        found: source.found(),
                    });
                }
                self.leading.push(0);
                if source.next(true)? {
                    continue 'value;
                }
                self.end_list(dims, lengths)?;
            }
            // A part is complete; so are all around it of which it is the last.
            loop {
                let level = self.leading.len();
                let Some(counter) = self.leading.last_mut() else {
                    return Ok(());
                };
                *counter += 1;
                if !source.next(false)? {
                    self.end_list(dims, lengths)?;
                    continue;
                }
                if *counter > MAX_LENGTH {
                    return Err(Problem::Memory);
                }
                let expected = known_length(dims, lengths, level - 1);
                if expected.is_some_and(|expected| *counter >= expected) {
                    *counter += source.skip_rest()?;
                    self.end_list(dims, lengths)?;
                }
                continue 'value;
            }
        }
    }

    /// The innermost list ends; checks that it is as long as the others of its level.
    fn end_list(
        &mut self,
        dims: &[LeadingDim],
        lengths: &mut [Option<u64>],
    ) -> Result<(), Problem> {
        let Some(length) = self.leading.pop() else {
            return Ok(());
        };
        let level = self.leading.len();
        match known_length(dims, lengths, level) {
            Some(expected) if expected != length => Err(Problem::Value {
                expected: match dims[level] {
                    LeadingDim::Known(_) => format!("a list of {expected}"),
                    _ => format!("a list of {expected}, as long as the first one there"),
                },
                found: format!("one of {length}"),
            }),
            _ => {
                lengths[level] = Some(length);
                Ok(())
            }
        }
    }

    /// Appends the lengths that have slots, after they were compared with those of their names.
    fn name_lengths(
        &mut self,
        dims: &[LeadingDim],
        lengths: &[Option<u64>],
    ) -> Result<(), Problem> {
        for (axis, (dim, length)) in dims.iter().zip(lengths).enumerate() {
            let length = match (dim, length) {
                (LeadingDim::Known(_), _) => continue,
                (LeadingDim::Any, length) => length.unwrap_or(0),
                (LeadingDim::Named(dim), None) => self.dims.unseen(*dim),
                (LeadingDim::Named(dim), Some(length)) => {
                    let seen = Seen {
                        length: *length,
                        argument: self.argument,
                        path: self.path(),
                        axis,
                    };
                    self.dims.see(*dim, seen)?;
                    *length
                }
            };
            self.values.push(length);
        }
        self.charge(0)
    }
}

/// How long lists of a level must be, as far as is known.
fn known_length(dims: &[LeadingDim], lengths: &[Option<u64>], level: usize) -> Option<u64> {
    match dims[level] {
        LeadingDim::Known(length) => Some(length),
        LeadingDim::Named(_) | LeadingDim::Any => lengths[level],
    }
}
