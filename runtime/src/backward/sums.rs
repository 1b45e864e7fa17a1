//! Gradients of parameters: sums over the rows of all instances.
//!
//! Every element of a site's sum is one chain of multiply-adds over rows in order. It can stop and go on,
//! and elements can be computed in any order: rows are never divided ([`outer`](super::outer)).

use std::collections::BTreeSet;

use cohort_abi::manifest::{Elem, Manifest, Site};
use safetensors::Dtype;
use safetensors::tensor::TensorView;

use super::outer::outer_products;

/// One row of a site's values; `left` is empty where the site is a sum of rows.
#[derive(Clone, Copy)]
pub struct Pair<'a> {
    pub left: &'a [f32],
    pub right: &'a [f32],
}

/// The sums so far.
#[derive(Default)]
pub struct Sums {
    /// By gradient function and site.
    sites: Vec<Vec<Vec<f32>>>,
    views: Vec<Vec<Site>>,
    /// By parameter: what rows of it got that were looked up, if there were any.
    rows: Vec<Option<Rows>>,
    /// By parameter: its shape, if it has a gradient.
    shapes: Vec<Option<Vec<u64>>>,
}

#[derive(Default)]
struct Rows {
    sum: Vec<f32>,
    touched: BTreeSet<u32>,
}

impl Sums {
    pub fn new(manifest: &Manifest) -> Sums {
        let functions = manifest.gradients.iter().flat_map(|all| &all.functions);
        let views: Vec<Vec<Site>> = functions.map(|function| function.sites.clone()).collect();
        let shapes: Vec<Option<Vec<u64>>> = (manifest.params.iter())
            .map(|param| (param.elem == Elem::F32).then(|| param.shape.clone()))
            .collect();
        let mut sums = Sums {
            sites: Vec::new(),
            views,
            rows: Vec::new(),
            shapes,
        };
        sums.clear();
        sums
    }

    pub fn clear(&mut self) {
        self.sites = (self.views.iter())
            .map(|sites| vec![Vec::new(); sites.len()])
            .collect();
        self.rows.clear();
        self.rows.resize_with(self.shapes.len(), || None);
    }

    /// The gradient of a parameter; `None` of one that is not of floats.
    pub fn gradient(&self, param: usize) -> Option<Vec<f32>> {
        let shape = self.shapes.get(param)?.as_ref()?;
        let mut gradient = vec![0.0; shape.iter().product::<u64>() as usize];
        for (sums, views) in self.sites.iter().zip(&self.views) {
            for (sum, view) in sums.iter().zip(views) {
                if view.param == param && !sum.is_empty() {
                    scatter(sum, view, &mut gradient);
                }
            }
        }
        if let Some(rows) = self.rows.get(param)?.as_ref() {
            for (to, from) in gradient.iter_mut().zip(&rows.sum) {
                *to += from;
            }
        }
        Some(gradient)
    }

    /// A safetensors file with a tensor for each parameter of floats, of its name and shape.
    pub fn to_safetensors(&self, manifest: &Manifest) -> Result<Vec<u8>, safetensors::SafeTensorError> {
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

    /// The rows of a parameter that have a gradient, where it is only looked up; `None` if all may.
    pub fn touched(&self, param: usize) -> Option<Vec<u32>> {
        let is_dense = (self.sites.iter().flatten())
            .zip(self.views.iter().flatten())
            .any(|(sum, view)| view.param == param && !sum.is_empty());
        let rows = self.rows.get(param)?.as_ref()?;
        (!is_dense).then(|| rows.touched.iter().copied().collect())
    }

    /// Goes on with the sum of a site.
    pub(super) fn add_site(&mut self, function: usize, place: usize, site: &Site, pairs: &[Pair<'_>]) {
        if pairs.is_empty() {
            return;
        }
        let sum = &mut self.sites[function][place];
        let size = site.shape.iter().product::<u64>() as usize;
        sum.resize(size, 0.0);
        match (site.left, &site.shape[..]) {
            (Some(_), [rows, columns]) => {
                outer_products(sum, [*rows as usize, *columns as usize], pairs);
            }
            _ => {
                for pair in pairs {
                    for row in pair.right.chunks_exact(size.max(1)) {
                        for (to, from) in sum.iter_mut().zip(row) {
                            *to += from;
                        }
                    }
                }
            }
        }
    }

    /// Adds the cotangent of one row of a parameter.
    pub(super) fn add_row(&mut self, param: usize, row: u32, values: &[f32]) {
        let Some(shape) = self.shapes.get(param).and_then(Option::as_ref) else {
            return;
        };
        let size = shape.iter().product::<u64>() as usize;
        let rows = self.rows[param].get_or_insert_with(Rows::default);
        rows.sum.resize(size, 0.0);
        rows.touched.insert(row);
        let first = row as usize * values.len();
        let own = rows.sum.get_mut(first..first + values.len());
        for (to, from) in own.into_iter().flatten().zip(values) {
            *to += from;
        }
    }
}

/// Adds the elements of a site's sum to where the parameter has them.
fn scatter(sum: &[f32], view: &Site, gradient: &mut [f32]) {
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
