//! Parameters and constants as kernels want them, made once at load.

use std::ffi::c_void;

use cohort_abi::manifest::{Constant, Elem, Manifest, Source, WeightFormat};

use crate::error::Error;
use crate::memory::AlignedBuffer;
use crate::memory::arena::{Arena, Region};
use crate::program::rounding;

const PURPOSE: &str = "the packed weights";

/// All constants of a program. A constant that several kernels use is packed once.
pub struct Constants {
    /// What each buffer holds.
    packed: Vec<Constant>,
    buffers: Vec<AlignedBuffer>,
    /// For each kernel and each of its constants, the buffer and the byte that it begins with.
    kernels: Vec<Vec<(usize, usize)>>,
}

impl Constants {
    /// The addresses of the kernel's constants in the order of the manifest; they stay valid as
    /// long as `self` lives.
    pub fn addresses(&self, kernel: usize) -> Vec<*const c_void> {
        self.kernels[kernel]
            .iter()
            .map(|(buffer, from)| self.buffers[*buffer].address().wrapping_add(*from).cast())
            .collect()
    }

    /// The same in memory of its own.
    pub fn copy(&self) -> Result<Constants, Error> {
        let buffers = self.buffers.iter().map(|buffer| {
            let bytes = buffer.bytes();
            let mut copy = AlignedBuffer::zeroed(bytes.len(), PURPOSE)?;
            copy.bytes_mut()[..bytes.len()].copy_from_slice(bytes);
            Ok(copy)
        });
        Ok(Constants {
            packed: self.packed.clone(),
            buffers: buffers.collect::<Result<_, Error>>()?,
            kernels: self.kernels.clone(),
        })
    }

    /// Bytes of those that each kernel reads.
    pub fn bytes_of_kernels(&self) -> impl Iterator<Item = u64> {
        self.kernels.iter().map(|constants| {
            let mut buffers: Vec<usize> = constants.iter().map(|(buffer, _)| *buffer).collect();
            buffers.sort_unstable();
            buffers.dedup();
            let bytes = buffers
                .iter()
                .map(|buffer| self.buffers[*buffer].capacity() as u64);
            bytes.sum()
        })
    }

    /// Bytes of all of them.
    pub fn bytes(&self) -> u64 {
        let bytes = self.buffers.iter().map(|buffer| buffer.capacity() as u64);
        bytes.sum()
    }

    /// Packs what was made of changed weights anew, in its place.
    pub fn update(&mut self, manifest: &Manifest, weights: &[&[u8]], changed: &[Changed<'_>]) {
        for (constant, buffer) in self.packed.iter().zip(&mut self.buffers) {
            let changed = constant.param().map(|param| changed[param]);
            if changed.is_some_and(|changed| changed != Changed::Nothing) {
                write_constant(manifest, weights, constant, buffer.bytes_mut());
            }
        }
    }
}

/// What is different of a weight since it was read last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed<'a> {
    /// It is the same.
    Nothing,
    /// Only these rows, counted along the first axis.
    Rows(&'a [u32]),
    /// All of it may be different.
    Whole,
}

/// Packs the constants of every kernel that can be recorded. `weights` holds the bytes of each
/// parameter and of what was computed from them, row-major, as [`Manifest::weight`] counts them.
pub fn pack_constants(manifest: &Manifest, weights: &[&[u8]]) -> Result<Constants, Error> {
    let mut packed: Vec<Constant> = Vec::new();
    let mut buffers = Vec::new();
    let mut kernels = Vec::with_capacity(manifest.kernels.len());
    for (number, kernel) in manifest.kernels.iter().enumerate() {
        let mut indices = Vec::with_capacity(kernel.constants.len());
        let load_time = manifest.is_load_time(number);
        for constant in kernel.constants.iter().filter(|_| !load_time) {
            let (constant, from) = constant.whole();
            let known = packed.iter().position(|known| known == constant);
            let index = match known {
                Some(index) => index,
                None => {
                    buffers.push(pack_constant(manifest, weights, constant)?);
                    packed.push(constant.clone());
                    packed.len() - 1
                }
            };
            indices.push((index, from as usize));
        }
        kernels.push(indices);
    }
    Ok(Constants {
        packed,
        buffers,
        kernels,
    })
}

/// Packs one constant; one of which a kernel gets a part, whole.
pub fn pack_constant(
    manifest: &Manifest,
    weights: &[&[u8]],
    constant: &Constant,
) -> Result<AlignedBuffer, Error> {
    let (constant, _) = constant.whole();
    let length = match constant {
        Constant::Part { .. } => 0,
        Constant::Plain { param } => weights[*param].len(),
        Constant::Panels {
            param,
            width,
            format,
        } => {
            let [k, n] = matrix(manifest, *param);
            n.div_ceil(*width as usize) * k * *width as usize * format.bytes()
        }
        Constant::Rounded {
            precision,
            k,
            columns,
            ..
        } => {
            let words = (*k as usize).div_ceil(precision.per_word() as usize);
            words * *columns as usize * size_of::<u32>()
        }
        Constant::Dense { elem, bits } => bits.len() * elem.bytes(),
    };
    let mut buffer = AlignedBuffer::zeroed(length, PURPOSE)?;
    write_constant(manifest, weights, constant, buffer.bytes_mut());
    Ok(buffer)
}

/// Writes a constant into bytes that are as many as it needs or more, zeros where nothing is written.
pub fn write_constant(manifest: &Manifest, weights: &[&[u8]], constant: &Constant, to: &mut [u8]) {
    match constant {
        Constant::Part { of, .. } => write_constant(manifest, weights, of, to),
        Constant::Plain { param } => {
            let bytes = weights[*param];
            copy_elements(elem_of(manifest, *param), bytes, &mut to[..bytes.len()]);
        }
        Constant::Panels {
            param,
            width,
            format,
        } => {
            let size = matrix(manifest, *param);
            let write = match format {
                WeightFormat::F32 => write_panels,
                WeightFormat::Bf16 => write_rounded_panels,
            };
            write(weights[*param], size, *width as usize, to);
        }
        Constant::Rounded {
            precision,
            param,
            offset,
            strides,
            k,
            columns,
            by_columns,
        } => {
            let [offset, k, columns] = [*offset, *k, *columns].map(|number| number as usize);
            let [k_stride, column_stride] = strides.map(|stride| stride as usize);
            let bytes = weights[*param];
            let element = |row: usize, column: usize| {
                let at = (offset + row * k_stride + column * column_stride) * size_of::<f32>();
                f32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
            };
            let places = to.chunks_exact_mut(size_of::<u32>());
            let write =
                |(place, word): (&mut [u8], u32)| place.copy_from_slice(&word.to_le_bytes());
            match by_columns {
                true => places
                    .zip(rounding::words_by_columns((k, columns), element))
                    .for_each(write),
                false => places
                    .zip(rounding::words(*precision, (k, columns), element))
                    .for_each(write),
            }
        }
        Constant::Dense { elem, bits } => write_bits(*elem, bits, to),
    }
}

/// Rows and columns of a weight; all dims but the last count as rows.
fn matrix(manifest: &Manifest, param: usize) -> [usize; 2] {
    let weight = manifest.weight(param);
    let shape = weight.map_or(&[][..], |weight| &weight.shape);
    let (columns, rows) = shape.split_last().unwrap_or((&1, &[]));
    [rows.iter().product::<u64>() as usize, *columns as usize]
}

/// `f32[k, n]` in column panels, see [`Constant::Panels`].
fn write_panels(bytes: &[u8], [k, n]: [usize; 2], width: usize, packed: &mut [u8]) {
    for panel in 0..n.div_ceil(width) {
        let columns = width.min(n - panel * width);
        for row in 0..k {
            let from = (row * n + panel * width) * 4;
            let to = (panel * k + row) * width * 4;
            packed[to..to + columns * 4].copy_from_slice(&bytes[from..from + columns * 4]);
        }
    }
}

/// The same in bf16, columns in the order of [`Constant::Panels`].
fn write_rounded_panels(bytes: &[u8], [k, n]: [usize; 2], width: usize, packed: &mut [u8]) {
    let place = |column: usize| match width % 2 {
        0 => column % (width / 2) * 2 + column / (width / 2),
        _ => column,
    };
    for panel in 0..n.div_ceil(width) {
        let columns = width.min(n - panel * width);
        for row in 0..k {
            let from = (row * n + panel * width) * 4;
            let to = (panel * k + row) * width * 2;
            let numbers = bytes[from..from + columns * 4].chunks_exact(4);
            for (column, number) in numbers.enumerate() {
                let number = f32::from_le_bytes([number[0], number[1], number[2], number[3]]);
                let at = to + place(column) * 2;
                packed[at..at + 2].copy_from_slice(&rounding::bf16(number).to_le_bytes());
            }
        }
    }
}

/// Writes the rows of every source; gives for each the number of its first row in its row pool.
pub fn fill_sources(
    manifest: &Manifest,
    weights: &[&[u8]],
    arena: &mut Arena,
) -> Result<Vec<u32>, Error> {
    let mut firsts = Vec::with_capacity(manifest.sources.len());
    for source in &manifest.sources {
        let (first, bytes) = arena.add_sources(source.pool(), source_rows(manifest, source))?;
        fill_source(manifest, weights, source, bytes);
        firsts.push(first);
    }
    Ok(firsts)
}

/// Writes the rows of sources whose weights changed anew; the first ones' numbers are those of
/// [`fill_sources`].
pub fn update_sources(
    manifest: &Manifest,
    weights: &[&[u8]],
    changed: &[Changed<'_>],
    firsts: &[u32],
    arena: &mut Arena,
) -> Result<(), Error> {
    for (source, first) in manifest.sources.iter().zip(firsts) {
        let (Source::Table { param, .. } | Source::Whole { param, .. }) = source else {
            continue;
        };
        let region = Region {
            pool: source.pool(),
            first: *first,
            rows: source_rows(manifest, source) as u32,
        };
        let gone = || Error::Internal("the rows of a parameter are gone".to_owned());
        let bytes = arena.rows_mut(region).ok_or_else(gone)?;
        match (changed[*param], source) {
            (Changed::Nothing, _) => {}
            (Changed::Rows(rows), Source::Table { .. }) => {
                let elem = manifest.row_pools[source.pool()].elem;
                let width = bytes.len() / (region.rows as usize).max(1);
                for row in rows {
                    let own = *row as usize * width..(*row as usize + 1) * width;
                    copy_elements(elem, &weights[*param][own.clone()], &mut bytes[own]);
                }
            }
            _ => fill_source(manifest, weights, source, bytes),
        }
    }
    Ok(())
}

fn source_rows(manifest: &Manifest, source: &Source) -> u64 {
    match source {
        Source::Table { param, .. } => manifest
            .weight(*param)
            .and_then(|weight| weight.shape.first().copied())
            .unwrap_or(0),
        Source::Whole { .. } | Source::Splat { .. } | Source::Dense { .. } => 1,
    }
}

fn fill_source(manifest: &Manifest, weights: &[&[u8]], source: &Source, bytes: &mut [u8]) {
    let elem = manifest.row_pools[source.pool()].elem;
    match source {
        Source::Table { param, .. } | Source::Whole { param, .. } => {
            copy_elements(elem, weights[*param], bytes);
        }
        Source::Splat { bits, .. } => {
            for element in bytes.chunks_exact_mut(elem.bytes()) {
                write_bits(elem, &[*bits], element);
            }
        }
        Source::Dense { bits, .. } => write_bits(elem, bits, bytes),
    }
}

/// Copies a parameter. A `bool` is 0 or 1 for kernels, whatever non-zero byte the file has.
fn copy_elements(elem: Elem, from: &[u8], to: &mut [u8]) {
    match elem {
        Elem::F32 | Elem::I32 => to.copy_from_slice(from),
        Elem::Bool => {
            for (to, from) in to.iter_mut().zip(from) {
                *to = u8::from(*from != 0);
            }
        }
    }
}

fn elem_of(manifest: &Manifest, number: usize) -> Elem {
    manifest
        .weight(number)
        .map_or(Elem::F32, |weight| weight.elem)
}

fn write_bits(elem: Elem, bits: &[u32], to: &mut [u8]) {
    for (element, bits) in to.chunks_exact_mut(elem.bytes()).zip(bits) {
        match elem {
            Elem::F32 | Elem::I32 => element.copy_from_slice(&bits.to_le_bytes()),
            Elem::Bool => element[0] = u8::from(*bits != 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounded_panels_hold_columns_in_pairs() {
        let values: Vec<u8> = (1..=6).flat_map(|i| (i as f32).to_le_bytes()).collect();
        let numbers = |packed: &[u8]| -> Vec<f32> {
            let bits = packed
                .chunks_exact(2)
                .map(|bytes| u16::from_le_bytes([bytes[0], bytes[1]]));
            bits.map(|bits| f32::from_bits(u32::from(bits) << 16))
                .collect()
        };
        let mut packed = [0; 16];
        write_rounded_panels(&values, [2, 3], 4, &mut packed);
        assert_eq!(numbers(&packed), [1.0, 3.0, 2.0, 0.0, 4.0, 6.0, 5.0, 0.0]);
        let mut packed = [0; 12];
        write_rounded_panels(&values, [2, 3], 1, &mut packed);
        assert_eq!(numbers(&packed), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    }

    #[test]
    fn panels_are_padded_with_zeros() {
        let values: Vec<u8> = (1..=6).flat_map(|i| (i as f32).to_le_bytes()).collect();
        let mut packed = [0; 32];
        write_panels(&values, [2, 3], 2, &mut packed);
        let packed: Vec<f32> = packed
            .chunks_exact(4)
            .map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap()))
            .collect();
        assert_eq!(packed, [1.0, 2.0, 4.0, 5.0, 3.0, 0.0, 6.0, 0.0]);
    }
}
