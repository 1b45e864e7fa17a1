//! What was recorded of a batch's backward, and the sums that are made of it.

use cohort_abi::Handle;
use cohort_abi::manifest::{GradientFunction, Manifest, Site, SiteValue, Source, Type};
use rustc_hash::FxHashMap;

use super::readers::Readers;
use super::sums::{Factors, Sums};
use crate::error::Error;
use crate::execute::Wanted;
use crate::instance::Machine;
use crate::program::call_form::CallForm;
use crate::program::numbering::Numbering;

/// What was recorded of a batch's backward.
#[derive(Default)]
pub struct Recording {
    pub forms: Vec<CallForm>,
    pub numbering: Option<Numbering>,
    /// For each gradient function and site: the rows it is the sum of.
    pub sites: Vec<Vec<Vec<SiteRows>>>,
    /// Rows of sources with the cotangents that they get: the source, the row, the cotangent.
    pub sources: Vec<(usize, u32, u64)>,
    /// For each instance, each tensor of its inputs with the first row of its cotangent, if it has one.
    pub inputs: Vec<Vec<(Wanted, Option<u64>)>>,
    /// Those of the instance that is gone back over.
    pub readers: Readers,
    pub buffers: Buffers,
    /// Where the calls of that instance begin on its tape.
    pub calls: Vec<usize>,
    /// How many rows each site had before it.
    pub marks: Vec<usize>,
    /// The rows that its ghosts stand for.
    pub ghosts: FxHashMap<u64, u64>,
    /// The cotangents of the results of one of its calls.
    pub cotangents: Vec<Cotangent>,
    /// Of the tensors of its inputs, as in `inputs`.
    pub of_inputs: Vec<(Wanted, Option<u64>)>,
}

/// What readers give a result, added up but for the last addition.
#[derive(Clone, Copy)]
pub enum Cotangent {
    Nothing,
    Whole(u64),
    /// To be added.
    Parts(u64, u64),
}

/// The first rows of a site's values, and how many.
#[derive(Clone, Copy)]
pub struct SiteRows {
    pub left: u64,
    pub right: u64,
    pub rows: u64,
}

/// Memory that compiled code reads and writes.
#[derive(Default)]
pub struct Buffers {
    pub arguments: Vec<u64>,
    pub results: Vec<u64>,
    /// Arrays, `[length, handles…]`, behind one another.
    pub arrays: Vec<u64>,
    /// Where in `arguments` the address of an array goes, and where in `arrays` that is.
    pub addresses: Vec<(usize, usize)>,
}

impl Recording {
    pub fn begin(&mut self, manifest: &Manifest) {
        if self.forms.len() != manifest.kernels.len() {
            self.forms = manifest.kernels.iter().map(CallForm::of).collect();
            self.numbering = Some(Numbering::of(manifest));
        }
        let functions = manifest.gradients.iter().flat_map(|all| &all.functions);
        self.sites.clear();
        self.sites
            .extend(functions.map(|function| vec![Vec::new(); function.sites.len()]));
        self.sources.clear();
        self.inputs.clear();
        // One that was given up left some.
        self.readers.take_all();
    }

    /// Begins with the next instance.
    pub fn begin_instance(&mut self) {
        self.calls.clear();
        self.ghosts.clear();
        self.of_inputs.clear();
        self.marks.clear();
        self.marks.extend(self.sites.iter().flatten().map(Vec::len));
    }

    /// The rows that are read when backward is computed.
    pub fn read(&self, manifest: &Manifest) -> Vec<Wanted> {
        let mut read = Vec::new();
        let mut want = |handle: u64, pool: usize, rows: u64| {
            read.push(Wanted {
                handle: Handle(handle),
                pool,
                rows,
            });
        };
        let functions = manifest.gradients.iter().flat_map(|all| &all.functions);
        for (function, sites) in functions.zip(&self.sites) {
            for (site, all) in function.sites.iter().zip(sites) {
                let left = site.left.and_then(|value| pool_of(function, value));
                let right = pool_of(function, site.right);
                for rows in all {
                    for (first, pool) in [(rows.left, left), (rows.right, right)] {
                        if let Some(pool) = pool {
                            want(first, pool, rows.rows);
                        }
                    }
                }
            }
        }
        for (source, _, cotangent) in &self.sources {
            if let Source::Table { pool, .. } | Source::Whole { pool, .. } =
                manifest.sources[*source]
            {
                want(*cotangent, pool, 1);
            }
        }
        for (tensor, cotangent) in self.inputs.iter().flatten() {
            if let Some(cotangent) = cotangent {
                want(*cotangent, tensor.pool, tensor.rows);
            }
        }
        read
    }

    /// Adds what was computed to the sums; gives the operations of their products.
    pub fn sum_up(&self, machine: &Machine<'_>, sums: &mut Sums) -> Result<u64, Error> {
        let mut flops = 0;
        let manifest = machine.manifest;
        let functions = manifest.gradients.iter().flat_map(|all| &all.functions);
        for ((number, function), rows) in functions.enumerate().zip(&self.sites) {
            for places in with_one_right(&function.sites) {
                let factors = find_factors(machine, function, &places, rows)?;
                sums.add_sites(number, &places, &factors);
                for (place, lefts) in places.iter().zip(&factors.lefts) {
                    let size: u64 = function.sites[*place].shape.iter().product();
                    flops += 2 * size * lefts.len() as u64;
                }
            }
        }
        let mut rows = Vec::with_capacity(self.sources.len());
        for (source, row, cotangent) in &self.sources {
            if let Source::Table { pool, .. } | Source::Whole { pool, .. } =
                manifest.sources[*source]
            {
                rows.push((*source, *row, numbers_of(machine, *cotangent, pool)?));
            }
        }
        sums.add_rows(&rows);
        Ok(flops)
    }
}

/// The sites by what their right factor is, and how long a row of it.
fn with_one_right(sites: &[Site]) -> Vec<Vec<usize>> {
    let key = |place: usize| (sites[place].right, sites[place].sides().1);
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for place in 0..sites.len() {
        match groups.iter_mut().find(|group| key(group[0]) == key(place)) {
            Some(group) => group.push(place),
            None => groups.push(vec![place]),
        }
    }
    groups
}

/// The rows of sites that have one right factor.
fn find_factors<'a>(
    machine: &'a Machine<'_>,
    function: &GradientFunction,
    places: &[usize],
    rows: &[Vec<SiteRows>],
) -> Result<Factors<'a>, Error> {
    let find = |value, size: u64, rows: &[SiteRows], first: fn(&SiteRows) -> u64| {
        let pool = pool_of(function, value).ok_or_else(lost)?;
        let mut found = Vec::new();
        for own in rows {
            for row in 0..own.rows {
                let numbers = numbers_of(machine, first(own) + row, pool)?;
                found.extend(numbers.chunks_exact(size.max(1) as usize));
            }
        }
        Ok::<_, Error>(found)
    };
    let mut factors = Factors::default();
    for place in places {
        let site = &function.sites[*place];
        let (height, width) = site.sides();
        if factors.lefts.is_empty() {
            factors.rights = find(site.right, width, &rows[*place], |own| own.right)?;
        }
        let left = site.left.zip(height);
        let lefts = match left {
            Some((left, height)) => find(left, height, &rows[*place], |own| own.left)?,
            None => Vec::new(),
        };
        if left.is_some_and(|(_, height)| height > 0) && lefts.len() != factors.rights.len() {
            return Err(lost());
        }
        factors.lefts.push(lefts);
    }
    Ok(factors)
}

fn lost() -> Error {
    Error::Internal("a site of a row that is not there".to_owned())
}

/// The numbers of a computed row.
fn numbers_of<'a>(machine: &'a Machine<'_>, handle: u64, pool: usize) -> Result<&'a [f32], Error> {
    let row = machine.executor.row(Handle(handle), pool);
    row.and_then(numbers).ok_or_else(lost)
}

/// The row pool of the rows of a site's value.
fn pool_of(function: &GradientFunction, value: SiteValue) -> Option<usize> {
    match value {
        SiteValue::Argument(index) => pool(&function.arguments[index].ty),
        SiteValue::Result(index) => pool(&function.results[index].ty),
    }
}

/// The row pool of a tensor's rows.
fn pool(ty: &Type) -> Option<usize> {
    match ty {
        Type::Tensor { pool } | Type::Ragged { pool, .. } => Some(*pool),
        _ => None,
    }
}

fn numbers(bytes: &[u8]) -> Option<&[f32]> {
    // SAFETY: any bits are an f32; what is not aligned for it is refused.
    let (before, numbers, after) = unsafe { bytes.align_to::<f32>() };
    (before.is_empty() && after.is_empty()).then_some(numbers)
}
