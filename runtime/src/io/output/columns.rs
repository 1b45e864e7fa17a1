//! Results as numbers that lie in memory as compiled code left them: a column for each part of the
//! result, with what all instances have of it behind each other.

use std::sync::Arc;

use cohort_abi::manifest::{Elem, Manifest, Type};

use super::{Group, Places, Tensor, TooLong, Walk, Writer};
use crate::error::Error;
use crate::execute::{Executor, Wanted};
use crate::failure::InstanceError;
use crate::io::sink::Sink;
use crate::program::slot::slot_count;

/// A part of the results of all instances. The parts are what is left when tuples are taken apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Column {
    /// Elements of tensors, and scalars, as they lie in rows.
    pub bytes: Vec<u8>,
    /// What the type does not tell, in the order of the value: lengths of arrays and of tensors, tags of
    /// constructors; and those of texts, in bytes.
    pub words: Vec<u64>,
    /// Behind what each instance has in `bytes` and `words`. A failed one has nothing.
    pub ends: Vec<[usize; 2]>,
}

impl Column {
    /// What an instance has: its bytes and words.
    pub fn get(&self, instance: usize) -> (&[u8], &[u64]) {
        let begin = match instance.checked_sub(1) {
            Some(before) => self.ends[before],
            None => [0, 0],
        };
        let end = self.ends[instance];
        (&self.bytes[begin[0]..end[0]], &self.words[begin[1]..end[1]])
    }

    fn size(&self) -> usize {
        self.bytes.len() + 8 * self.words.len()
    }

    fn last(&self) -> [usize; 2] {
        self.ends.last().copied().unwrap_or_default()
    }
}

/// The results of some instances, in the order in which they were done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    /// A column for each part of the result.
    pub columns: Vec<Column>,
    /// The instances, in the order of the columns' entries.
    pub instances: Vec<Done>,
}

impl Columns {
    /// Without instances, for results of the program.
    pub fn of(manifest: &Manifest) -> Columns {
        Columns {
            columns: vec![Column::default(); parts(&manifest.result).len()],
            instances: Vec::new(),
        }
    }

    /// Bytes of all results.
    pub fn size(&self) -> usize {
        self.columns.iter().map(Column::size).sum()
    }

    /// Appends what other columns of the same program have; the instances' numbers go on.
    pub fn append(&mut self, other: Columns) {
        for (column, more) in self.columns.iter_mut().zip(other.columns) {
            let [bytes, words] = [column.bytes.len(), column.words.len()];
            column.bytes.extend(more.bytes);
            column.words.extend(more.words);
            let ends = more.ends.iter().map(|end| [bytes + end[0], words + end[1]]);
            column.ends.extend(ends);
        }
        for done in other.instances {
            let number = self.instances.len() as u64;
            self.instances.push(Done { number, ..done });
        }
    }

    /// Appends an instance that other columns of the same program have; it keeps its number.
    pub fn push(&mut self, other: &Columns, instance: usize) {
        for (column, more) in self.columns.iter_mut().zip(&other.columns) {
            let (bytes, words) = more.get(instance);
            column.bytes.extend_from_slice(bytes);
            column.words.extend_from_slice(words);
            column.ends.push([column.bytes.len(), column.words.len()]);
        }
        self.instances.push(other.instances[instance].clone());
    }

    /// Appends an instance without a result.
    pub fn append_error(&mut self, id: &str, error: InstanceError) {
        for column in &mut self.columns {
            column.ends.push([column.bytes.len(), column.words.len()]);
        }
        self.instances.push(Done {
            number: self.instances.len() as u64,
            id: id.into(),
            error: Some(error),
        });
    }
}

/// An instance that is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// From 0 on, in the order of the input.
    pub number: u64,
    /// JSON text.
    pub id: Box<str>,
    /// Why it has no result, if it failed.
    pub error: Option<InstanceError>,
}

/// The parts of a result's type, with the first slot of each.
pub fn parts(result: &Type) -> Vec<(&Type, usize)> {
    let mut parts = Vec::new();
    let mut left = vec![result];
    let mut slot = 0;
    while let Some(ty) = left.pop() {
        match ty {
            Type::Tuple(types) => left.extend(types.iter().rev()),
            _ => {
                parts.push((ty, slot));
                slot += slot_count(ty);
            }
        }
    }
    parts
}

/// Collects results until they are taken.
pub struct Collector {
    manifest: Arc<Manifest>,
    max_bytes: u64,
    collected: Columns,
    /// Takes what is there whenever the run has no more for now.
    take: Box<dyn FnMut(Columns) -> Result<(), Error>>,
}

impl Collector {
    /// `max_bytes` limits what one result has. `take` gets results in portions as they are done;
    /// its error ends the run.
    pub fn new(
        manifest: Arc<Manifest>,
        max_bytes: u64,
        take: impl FnMut(Columns) -> Result<(), Error> + 'static,
    ) -> Collector {
        Collector {
            collected: Columns::default(),
            manifest,
            max_bytes,
            take: Box::new(take),
        }
    }
}

impl Sink for Collector {
    unsafe fn put(
        &mut self,
        number: u64,
        id: &str,
        result: Result<*const u64, &InstanceError>,
        executor: &Executor,
    ) -> Result<bool, Error> {
        let manifest = self.manifest.clone();
        let mut walk = Walk::new(&manifest);
        let parts = parts(&manifest.result);
        self.collected
            .columns
            .resize_with(parts.len(), Column::default);
        let columns = &mut self.collected.columns;
        let mut error = result.err().cloned();
        if let Ok(slots) = result {
            let mut left = self.max_bytes;
            for ((ty, slot), column) in parts.iter().zip(&mut *columns) {
                let mut writer = Limited {
                    most: (column.size() as u64).saturating_add(left),
                    column: &mut *column,
                };
                let before = writer.column.size();
                // SAFETY: the caller's promise; the part begins at that slot of the result.
                let written = unsafe { walk.value(ty, slots.add(*slot), executor, &mut writer) };
                left = left.saturating_sub((column.size() - before) as u64);
                if let Err(problem) = written {
                    let TooLong = problem.into_too_long()?;
                    error = Some(InstanceError::memory_limit("the result", self.max_bytes));
                    break;
                }
            }
        }
        for column in columns {
            if error.is_some() {
                let [bytes, words] = column.last();
                column.bytes.truncate(bytes);
                column.words.truncate(words);
            }
            column.ends.push([column.bytes.len(), column.words.len()]);
        }
        let is_written = error.is_none() || result.is_err();
        self.collected.instances.push(Done {
            number,
            id: id.into(),
            error,
        });
        Ok(is_written)
    }

    unsafe fn wanted(&mut self, slots: *const u64, executor: &Executor, wanted: &mut Vec<Wanted>) {
        let manifest = self.manifest.clone();
        let mut places = Places::new(wanted, self.max_bytes);
        let mut walk = Walk::new(&manifest);
        // What is wrong with the result is told when it is written.
        // SAFETY: the caller's promise.
        let _ = unsafe { walk.value(&manifest.result, slots, executor, &mut places) };
    }

    fn is_full(&self) -> bool {
        false
    }

    fn flush(&mut self) -> Result<(), Error> {
        if !self.collected.instances.is_empty() {
            (self.take)(std::mem::take(&mut self.collected))?;
        }
        Ok(())
    }
}

/// A column that may become so large.
struct Limited<'c> {
    column: &'c mut Column,
    most: u64,
}

impl Writer for Limited<'_> {
    fn scalar(&mut self, elem: Elem, bits: u32) {
        let bytes = bits.to_le_bytes();
        self.column.bytes.extend_from_slice(&bytes[..elem.bytes()]);
    }

    fn text(&mut self, text: &str) {
        self.column.words.push(text.len() as u64);
        self.column.bytes.extend_from_slice(text.as_bytes());
    }

    fn tensor(&mut self, tensor: Tensor<'_>) -> Result<(), TooLong> {
        let size = (self.column.size() + tensor.bytes.len()) as u64;
        if size > self.most {
            return Err(TooLong);
        }
        self.column.words.extend_from_slice(tensor.lengths);
        self.column.bytes.extend_from_slice(tensor.bytes);
        Ok(())
    }

    fn begin(&mut self, group: Group<'_>) {
        match group {
            Group::Tuple => {}
            Group::Array { length } => self.column.words.push(length),
            Group::Node { tag, .. } => self.column.words.push(tag),
        }
    }

    fn end(&mut self, _: Group<'_>) {}

    fn is_full(&self) -> bool {
        self.column.size() as u64 > self.most
    }
}
