//! Gradients of parameters: sums over the rows of all instances.
//!
//! Every element of a site's sum is one chain of multiply-adds over rows in order. It can stop and go on,
//! and elements can be computed in any order: rows are never divided ([`outer`](super::outer)).

use std::ops::Range;

use cohort_abi::manifest::{Elem, Manifest, Site, Source};
use safetensors::Dtype;
use safetensors::tensor::TensorView;

use super::lines::Lines;
use super::outer::{AHEAD, Panels, Product, prefetch};
use crate::memory;

/// What sites with one right factor are the sums of, row by row.
#[derive(Default)]
pub struct Factors<'a> {
    /// By site; none where the site is a sum of rows.
    pub lefts: Vec<Vec<&'a [f32]>>,
    pub rights: Vec<&'a [f32]>,
}

/// The sums so far.
#[derive(Default)]
pub struct Sums {
    /// By gradient function and site.
    sites: Vec<Vec<Lines>>,
    views: Vec<Vec<Site>>,
    /// By source: what rows of a parameter got that were read by themselves.
    rows: Vec<Rows>,
    /// By parameter: its shape, if it has a gradient.
    shapes: Vec<Option<Vec<u64>>>,
    panels: Panels,
}

/// What a source's rows got: a parameter's along its first axis, or the whole of it as one row.
#[derive(Default)]
struct Rows {
    /// The parameter, if the source is of one.
    param: Option<usize>,
    /// Elements of a row.
    width: usize,
    /// Of the whole parameter, or empty.
    sum: Vec<f32>,
    /// Those that have a gradient, and whether a row is one of them.
    touched: Vec<u32>,
    is_touched: Vec<bool>,
}

impl Rows {
    fn of(source: &Source, manifest: &Manifest) -> Rows {
        match *source {
            Source::Table { param, pool } | Source::Whole { param, pool } => Rows {
                param: Some(param),
                width: manifest.row_pools[pool].row_elements() as usize,
                ..Rows::default()
            },
            Source::Splat { .. } | Source::Dense { .. } => Rows::default(),
        }
    }

    /// Where the elements of a row are.
    fn place(&self, row: u32) -> Range<usize> {
        let first = row as usize * self.width;
        first..first + self.width
    }

    /// The rows that have a gradient, ascending.
    fn in_order(&self) -> Vec<u32> {
        let mut rows = self.touched.clone();
        rows.sort_unstable();
        rows
    }

    /// Adds a row's cotangent, of a parameter with `size` elements.
    fn add(&mut self, size: usize, row: u32, values: &[f32]) {
        if self.sum.is_empty() {
            self.sum = vec![0.0; size];
            memory::advise_huge_pages(&self.sum);
            self.is_touched.resize(size / self.width.max(1), false);
        }
        let place = self.place(row);
        let is_touched = self.is_touched.get_mut(row as usize);
        let (Some(own), Some(is_touched)) = (self.sum.get_mut(place), is_touched) else {
            return;
        };
        if !*is_touched {
            *is_touched = true;
            self.touched.push(row);
        }
        for (to, from) in own.iter_mut().zip(values) {
            *to += from;
        }
    }
}

impl Sums {
    /// Sums of 0, for the parameters of a program.
    pub fn new(manifest: &Manifest) -> Sums {
        let functions = manifest.gradients.iter().flat_map(|all| &all.functions);
        let views: Vec<Vec<Site>> = functions.map(|function| function.sites.clone()).collect();
        let shapes: Vec<Option<Vec<u64>>> = (manifest.params.iter())
            .map(|param| (param.elem == Elem::F32).then(|| param.shape.clone()))
            .collect();
        let sites = (views.iter()).map(|sites| sites.iter().map(|_| Lines::default()).collect());
        let rows = (manifest.sources.iter()).map(|source| Rows::of(source, manifest));
        Sums {
            sites: sites.collect(),
            rows: rows.collect(),
            views,
            shapes,
            panels: Panels::default(),
        }
    }

    /// All gradients are zeros; the memory stays.
    pub fn clear(&mut self) {
        for sum in self.sites.iter_mut().flatten() {
            sum.clear();
        }
        for rows in &mut self.rows {
            for row in std::mem::take(&mut rows.touched) {
                let place = rows.place(row);
                rows.sum[place].fill(0.0);
                rows.is_touched[row as usize] = false;
            }
        }
    }

    /// Whether a parameter has a gradient, be it zero.
    pub fn is_reached(&self, param: usize) -> bool {
        self.has_sites(param) || self.touched(param).next().is_some()
    }

    /// Of the sources of a parameter, those with rows that have a gradient.
    fn touched(&self, param: usize) -> impl Iterator<Item = &Rows> {
        let of_param = move |rows: &&Rows| rows.param == Some(param) && !rows.touched.is_empty();
        self.rows.iter().filter(of_param)
    }

    fn has_sites(&self, param: usize) -> bool {
        (self.sites.iter().flatten())
            .zip(self.views.iter().flatten())
            .any(|(sum, view)| view.param == param && !sum.is_empty())
    }

    /// The gradient of a parameter; `None` of one that is not of floats.
    pub fn gradient(&self, param: usize) -> Option<Vec<f32>> {
        let mut gradient = Vec::new();
        self.write_gradient(param, &mut gradient)?;
        Some(gradient)
    }

    /// As [`Sums::gradient`], into memory that is there already.
    pub fn write_gradient(&self, param: usize, gradient: &mut Vec<f32>) -> Option<()> {
        let shape = self.shapes.get(param)?.as_ref()?;
        gradient.clear();
        gradient.resize(shape.iter().product::<u64>() as usize, 0.0);
        for (sums, views) in self.sites.iter().zip(&self.views) {
            for (sum, view) in sums.iter().zip(views) {
                if view.param == param && !sum.is_empty() {
                    scatter(sum, view, gradient);
                }
            }
        }
        for rows in self.touched(param) {
            for row in &rows.touched {
                let own = rows.place(*row);
                for (to, from) in gradient[own.clone()].iter_mut().zip(&rows.sum[own]) {
                    *to += from;
                }
            }
        }
        Some(())
    }

    /// A safetensors file with a tensor for each parameter of floats, of its name and shape.
    pub fn to_safetensors(
        &self,
        manifest: &Manifest,
    ) -> Result<Vec<u8>, safetensors::SafeTensorError> {
        let params = manifest.params.iter().enumerate();
        let tensors: Vec<_> = params
            .filter_map(|(number, param)| {
                let gradient = self.gradient(number)?;
                let bytes: Vec<u8> = gradient.iter().flat_map(|own| own.to_le_bytes()).collect();
                let shape: Vec<usize> = param.shape.iter().map(|size| *size as usize).collect();
                Some((&param.name, shape, bytes))
            })
            .collect();
        let views = (tensors.iter())
            .map(|(name, shape, bytes)| {
                let view = TensorView::new(Dtype::F32, shape.clone(), bytes)?;
                Ok((name.as_str(), view))
            })
            .collect::<Result<Vec<_>, safetensors::SafeTensorError>>()?;
        safetensors::serialize(views, None)
    }

    /// The rows of a parameter that have a gradient, ascending, and their elements, where it was only
    /// looked up in one way; `None` if all may have one, or none has.
    pub fn rows(&self, param: usize) -> Option<(Vec<u32>, Vec<f32>)> {
        let mut sources = self.touched(param);
        let rows = sources.next()?;
        if sources.next().is_some() || self.has_sites(param) {
            return None;
        }
        let touched = rows.in_order();
        let values = (touched.iter()).flat_map(|row| &rows.sum[rows.place(*row)]);
        let values = values.copied().collect();
        Some((touched, values))
    }

    /// Goes on with the sums of these sites of a gradient function.
    pub(super) fn add_sites(&mut self, function: usize, places: &[usize], factors: &Factors<'_>) {
        if factors.rights.is_empty() {
            return;
        }
        let (mut products, mut totals) = (Vec::new(), Vec::new());
        let sums = self.sites[function].iter_mut().zip(&self.views[function]);
        for (place, (sum, site)) in sums.enumerate() {
            let Some(number) = places.iter().position(|own| *own == place) else {
                continue;
            };
            sum.grow(site.shape.iter().product::<u64>() as usize);
            match site.sides() {
                (Some(0), _) => {}
                (Some(height), _) => products.push(Product {
                    sum,
                    height: height as usize,
                    lefts: &factors.lefts[number],
                }),
                (None, _) => totals.push(&mut sum[..]),
            }
        }
        (self.panels).add_all(&mut products, &mut totals, &factors.rights);
    }

    /// Adds cotangents of rows of sources: the source, the row, its cotangent.
    pub(super) fn add_rows(&mut self, all: &[(usize, u32, &[f32])]) {
        for (number, (source, row, values)) in all.iter().enumerate() {
            if let Some((source, row, values)) = all.get(number + AHEAD) {
                prefetch(values);
                let rows = &self.rows[*source];
                if let Some(own) = rows.sum.get(rows.place(*row)) {
                    prefetch(own);
                }
            }
            let rows = &mut self.rows[*source];
            let shape = rows
                .param
                .and_then(|param| self.shapes.get(param)?.as_ref());
            if let Some(shape) = shape {
                rows.add(shape.iter().product::<u64>() as usize, *row, values);
            }
        }
    }
}

/// Adds the elements of a site's sum to where the parameter has them.
fn scatter(sum: &[f32], view: &Site, gradient: &mut [f32]) {
    let mut next = 1;
    let mut axes = view.shape.iter().zip(&view.strides).rev();
    let is_contiguous = axes.all(|(size, stride)| {
        let fits = *stride == next || *size == 1;
        next *= *size;
        fits
    });
    let first = view.offset as usize;
    if let (true, Some(own)) = (is_contiguous, gradient.get_mut(first..first + sum.len())) {
        for (to, value) in own.iter_mut().zip(sum) {
            *to += value;
        }
        return;
    }
    let mut index = vec![0_u64; view.shape.len()];
    let mut at = view.offset;
    for value in sum {
        if let Some(to) = gradient.get_mut(at as usize) {
            *to += value;
        }
        for axis in (0..index.len()).rev() {
            index[axis] += 1;
            at += view.strides[axis];
            if index[axis] < view.shape[axis] {
                break;
            }
            at -= view.strides[axis] * view.shape[axis];
            index[axis] = 0;
        }
    }
}
