//! `batch-run --check-kernels`: every launch computed again, in f64, from what it was given.
//!
//! The results of a launch are compared row by row with the kernel's meaning at level 2
//! ([`cohort_passes::kernel::reference`]). The first that is off is named; nothing is compared after it,
//! since what is wrong is read by other kernels.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex};

use cohort_abi::manifest::{Elem, Kernel, Manifest, Operand, RowPool, Unit};
use cohort_passes::kernel::reference::{
    Input, Reference, Rounding, Scalar, Tensor, number, numbers,
};
use cohort_runtime::execute::{Given, Inspector, Launched};
use cohort_runtime::locks::locked;
use cohort_runtime::{Program, Session, Weights};

use super::args::Arguments;
use crate::exit::{Stop, stop};
use crate::model;

/// Rows that are computed again together.
const ROWS: usize = 16;

/// The program, with what its kernels mean if they are to be checked.
pub fn load(
    arguments: &Arguments,
    weights: Option<Arc<Weights>>,
) -> Result<(Program, Option<Reference>), Stop> {
    if !arguments.check_kernels {
        return Ok((model::load(&arguments.model, weights)?, None));
    }
    let (program, reference) = model::load_with_reference(&arguments.model, weights)?;
    Ok((program, Some(reference)))
}

/// Lets a session's launches be checked, if there is a reference.
pub fn attach(
    session: &mut Session,
    reference: Option<Reference>,
    weights: &Weights,
    tolerance: f64,
) -> Result<Option<Findings>, Stop> {
    let Some(reference) = reference else {
        return Ok(None);
    };
    let manifest = session.program().manifest();
    let (checker, findings) = Checker::new(reference, manifest, weights, tolerance)?;
    session.inspect(Box::new(checker));
    Ok(Some(findings))
}

/// How much farther a row may be from f64 than it is where each number is rounded to f32 on the way, as
/// sums in another order are, or where operands are a last bit off.
const SLACK: f64 = 8.0;

/// How many times operands are taken a last bit off.
const NUDGES: u64 = 4;

/// What was found; shared with the checker, which the session has.
#[derive(Clone, Default)]
pub struct Findings(Arc<Mutex<Found>>);

#[derive(Default)]
struct Found {
    launches: u64,
    /// How far a number is from its reference, as a part of its row's largest.
    worst: f64,
    wrong: Option<String>,
    /// Kernels without a reference, by name, and why.
    unchecked: BTreeMap<String, String>,
}

/// Compares launches with the reference of their kernels.
struct Checker {
    reference: Reference,
    kernels: Vec<Kernel>,
    row_pools: Vec<RowPool>,
    tolerance: f64,
    findings: Findings,
}

impl Checker {
    /// `tolerance` is a part of a row's largest number.
    fn new(
        mut reference: Reference,
        manifest: &Manifest,
        weights: &Weights,
        tolerance: f64,
    ) -> Result<(Checker, Findings), Stop> {
        // What the file has too much is the session's to refuse.
        let bytes = weights.params(manifest, true).map_err(stop)?;
        let params = manifest.params.iter().zip(&bytes).map(|(param, bytes)| {
            let shape = param.shape.iter().map(|dim| *dim as usize).collect();
            (
                param.name.clone(),
                Tensor::from_bytes(shape, param.elem, bytes),
            )
        });
        reference.set_params(params.collect()).map_err(|problem| {
            Stop::usage(format!(
                "cannot check what is computed of the weights: {problem}"
            ))
        })?;
        let findings = Findings::default();
        let checker = Checker {
            reference,
            kernels: manifest.kernels.clone(),
            row_pools: manifest.row_pools.clone(),
            tolerance,
            findings: findings.clone(),
        };
        Ok((checker, findings))
    }

    /// What entries are given for each operand, as the reference takes it.
    fn inputs(&self, kernel: &Kernel, given: &[Vec<Given<'_>>]) -> Vec<Input> {
        let operands = kernel.operands.iter().enumerate();
        let inputs = operands.map(|(position, operand)| {
            let each = given.iter().map(|entry| entry[position]);
            match operand {
                Operand::Length => {
                    Input::Length(match given.first().map(|entry| entry[position]) {
                        Some(Given::Length(length)) => length.map(|length| length as usize),
                        _ => None,
                    })
                }
                Operand::Rows { pool } => {
                    let elem = self.row_pools[*pool].elem;
                    let lists = each.map(|given| match given {
                        Given::List(list) => list.bytes().map(|row| numbers(elem, row)).collect(),
                        _ => vec![],
                    });
                    Input::Lists(lists.collect())
                }
                Operand::Scalar(_)
                | Operand::Row { .. }
                | Operand::Ragged { .. }
                | Operand::Stacked { .. } => {
                    let elem = self.elem(operand);
                    let numbers = each.flat_map(|given| match given {
                        Given::Scalar(bits) => vec![number(elem, bits)],
                        Given::Rows { bytes, .. } => numbers(elem, bytes),
                        Given::List(_) | Given::Length(_) => vec![],
                    });
                    Input::Numbers(numbers.collect())
                }
            }
        });
        inputs.collect()
    }

    fn elem(&self, operand: &Operand) -> Elem {
        match operand {
            Operand::Scalar(elem) => *elem,
            Operand::Length => Elem::I32,
            Operand::Row { pool }
            | Operand::Rows { pool }
            | Operand::Ragged { pool, .. }
            | Operand::Stacked { pool, .. } => self.row_pools[*pool].elem,
        }
    }

    /// The first number that is off, if one is; and how far the others are at most.
    fn compare(&self, launch: &Launched<'_>, found: &mut Found) -> Result<(), String> {
        let kernel = &self.kernels[launch.number];
        let name = self.reference.kernel_of(&kernel.symbol);
        let together = match kernel.call.unit {
            Unit::Rows => ROWS,
            Unit::Calls => 1,
        };
        for entries in launch.entries().chunks(together) {
            let given: Vec<Vec<Given<'_>>> =
                entries.iter().map(|entry| launch.given(*entry)).collect();
            let inputs = self.inputs(kernel, &given);
            let run = |rounding| self.reference.run(name, rounding, entries.len(), &inputs);
            let exact = run(Rounding::None)?;
            let mut explained: Option<Vec<Vec<Tensor>>> = None;
            for (at, entry) in entries.iter().enumerate() {
                for (result, bytes) in launch.results(*entry).into_iter().enumerate() {
                    let is = numbers(self.row_pools[kernel.results[result]].elem, bytes);
                    if exact[result].elements.len() != is.len() * entries.len() {
                        return Err("its results have another size than its launch's".to_owned());
                    }
                    let of_entry = at * is.len()..(at + 1) * is.len();
                    let should_be = &exact[result].elements[of_entry.clone()];
                    let Some((element, off)) = farthest(&is, should_be) else {
                        continue;
                    };
                    if off <= self.tolerance {
                        found.worst = found.worst.max(off);
                        continue;
                    }
                    let explained = match &explained {
                        Some(explained) => explained,
                        None => {
                            // What almost cancels is as far off where operands hardly differ.
                            let mut all = vec![run(Rounding::F32)?];
                            for seed in 0..NUDGES {
                                let nudged = nudged(&inputs, seed);
                                let count = entries.len();
                                all.push(self.reference.run(
                                    name,
                                    Rounding::None,
                                    count,
                                    &nudged,
                                )?);
                            }
                            explained.insert(all)
                        }
                    };
                    let each = explained.iter().filter_map(|results| {
                        farthest(&results[result].elements[of_entry.clone()], should_be)
                    });
                    let in_f32 = each.map(|(_, off)| off).fold(0.0, f64::max);
                    if off <= self.tolerance + SLACK * in_f32 {
                        continue;
                    }
                    let place = NumberPlace {
                        launch: found.launches,
                        entry: *entry,
                        result,
                        element,
                    };
                    let numbers = [is[element], should_be[element]];
                    found.wrong = Some(self.describe(kernel, place, numbers, off, &given[at]));
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn describe(
        &self,
        kernel: &Kernel,
        place: NumberPlace,
        [is, should_be]: [Scalar; 2],
        off: f64,
        given: &[Given<'_>],
    ) -> String {
        let unit = match kernel.call.unit {
            Unit::Rows => "row",
            Unit::Calls => "call",
        };
        let mut text = format!(
            "kernel `{}` ({}) is wrong in launch {}, {unit} {}: element {} of result {} is {}, \
             and should be {} (off by {off:.1e} of the {unit}'s largest)",
            kernel.symbol,
            kernel.location,
            place.launch,
            place.entry,
            place.element,
            place.result,
            show(is),
            show(should_be),
        );
        for (position, (operand, given)) in kernel.operands.iter().zip(given).enumerate() {
            let elem = self.elem(operand);
            let pool = |rows: String, bytes: &[u8]| {
                let numbers = numbers(elem, bytes);
                let bad = numbers.iter().filter(|number| !number.float().is_finite());
                let bad = match bad.count() {
                    0 => String::new(),
                    bad => format!(", {bad} of them not finite"),
                };
                format!(
                    "{rows}, {} numbers up to {:.3e}{bad}",
                    numbers.len(),
                    largest(&numbers)
                )
            };
            let what = match given {
                Given::Scalar(bits) => show(number(elem, *bits)),
                Given::Length(Some(length)) => format!("length {length}"),
                Given::Length(None) => continue,
                Given::Rows { first, bytes } => pool(format!("from row {first}"), bytes),
                Given::List(list) => {
                    let bytes: Vec<u8> = list.bytes().flatten().copied().collect();
                    pool(format!("rows {:?}", list.rows), &bytes)
                }
            };
            let _ = write!(text, "\n  operand {position}: {what}");
        }
        text
    }
}

/// Operands with each float a last bit of `f32` larger or smaller.
fn nudged(inputs: &[Input], seed: u64) -> Vec<Input> {
    let mut state = seed;
    let mut nudge = |scalar: &Scalar| match *scalar {
        Scalar::Float(number) => {
            // Knuth's MMIX generator.
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let sign = if state >> 63 == 0 { 1.0 } else { -1.0 };
            Scalar::Float(number * (1.0 + sign * f64::from(f32::EPSILON)))
        }
        other => other,
    };
    let mut all = |numbers: &[Scalar]| numbers.iter().map(&mut nudge).collect::<Vec<_>>();
    inputs
        .iter()
        .map(|input| match input {
            Input::Numbers(numbers) => Input::Numbers(all(numbers)),
            Input::Length(length) => Input::Length(*length),
            Input::Lists(lists) => Input::Lists(
                lists
                    .iter()
                    .map(|list| list.iter().map(|row| all(row)).collect())
                    .collect(),
            ),
        })
        .collect()
}

/// Where a number is.
struct NumberPlace {
    launch: u64,
    entry: usize,
    result: usize,
    element: usize,
}

impl Inspector for Checker {
    fn launched(&mut self, launch: &Launched<'_>) {
        let findings = self.findings.clone();
        let mut found = locked(&findings.0);
        let symbol = &self.kernels[launch.number].symbol;
        if found.wrong.is_some() || found.unchecked.contains_key(symbol) {
            return;
        }
        match self.compare(launch, &mut found) {
            Ok(()) => found.launches += 1,
            Err(problem) => {
                found.unchecked.insert(symbol.clone(), problem);
            }
        }
    }
}

impl Findings {
    /// Says what was found; whether all is right.
    pub fn judge(&self, quiet: bool) -> bool {
        let found = locked(&self.0);
        for (kernel, problem) in &found.unchecked {
            crate::exit::say(&format!(
                "warning: kernel `{kernel}` was not checked: {problem}"
            ));
        }
        if let Some(wrong) = &found.wrong {
            crate::exit::say(&format!("error: {wrong}"));
            return false;
        }
        if !quiet {
            crate::exit::say(&format!(
                "{} launches are right; their numbers are at most {:.1e} of a row's largest away from f64",
                found.launches, found.worst
            ));
        }
        true
    }
}

fn largest(numbers: &[Scalar]) -> f64 {
    let finite = numbers.iter().map(|number| number.float().abs());
    finite
        .filter(|number| number.is_finite())
        .fold(0.0, f64::max)
}

/// The number that is farthest from what it should be, and how far, as a part of the largest.
fn farthest(is: &[Scalar], should_be: &[Scalar]) -> Option<(usize, f64)> {
    let largest = largest(should_be).max(f64::from(f32::MIN_POSITIVE));
    let each = is.iter().zip(should_be).map(|pair| match pair {
        (Scalar::Float(is), Scalar::Float(should_be)) => {
            // What f32 cannot tell apart is equal, also infinities and what is not a number.
            let is_equal = is == should_be || is.is_nan() && should_be.is_nan();
            let off = (is - should_be).abs() / largest;
            match (is_equal, off.is_nan()) {
                (true, _) => 0.0,
                (false, true) => f64::INFINITY,
                (false, false) => off,
            }
        }
        (is, should_be) => match is == should_be {
            true => 0.0,
            false => f64::INFINITY,
        },
    });
    each.enumerate().max_by(|(_, a), (_, b)| a.total_cmp(b))
}

fn show(number: Scalar) -> String {
    match number {
        Scalar::Float(number) => format!("{number:e}"),
        Scalar::Int(number) => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_parts_of_the_largest() {
        let floats = |numbers: &[f64]| {
            numbers
                .iter()
                .map(|x| Scalar::Float(*x))
                .collect::<Vec<_>>()
        };
        let off = |is: &[f64], should_be: &[f64]| farthest(&floats(is), &floats(should_be));
        assert_eq!(off(&[1.0, 3.0], &[1.0, 4.0]), Some((1, 0.25)));
        assert_eq!(
            off(&[f64::NAN, f64::INFINITY], &[f64::NAN, f64::INFINITY]),
            Some((1, 0.0))
        );
        assert_eq!(off(&[f64::NAN], &[1.0]), Some((0, f64::INFINITY)));
        assert_eq!(off(&[], &[]), None);
        let ints = [Scalar::Int(1)];
        assert_eq!(farthest(&ints, &[Scalar::Int(2)]), Some((0, f64::INFINITY)));
    }
}
