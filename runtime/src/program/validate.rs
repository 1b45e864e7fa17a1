//! Checks of a manifest, so that nothing behind it can index out of range or overflow.

mod flush;
mod gradients;

use std::collections::HashSet;

use cohort_abi::Handle;
use cohort_abi::gpu::{GpuFunction, GpuKernel, GpuLaunch, Precision};
use cohort_abi::manifest::{
    CallShape, Constant, Division, Elem, Extent, Kernel, LeadingDim, Manifest, Operand, Source,
    Type, Unit,
};

use crate::error::Error;
use crate::program::numbering::Numbering;

/// No row, parameter or constant may be bigger: 1 TiB.
const MAX_BYTES: u64 = 1 << 40;
/// No kernel may need more memory while it computes, which is asked for when it runs: nobody has it, and
/// sums of such sizes are numbers.
const MAX_SCRATCH: u64 = 1 << 60;
/// The key of a line that is not an argument.
pub const ID_KEY: &str = "id";

pub fn validate(manifest: &Manifest) -> Result<(), Error> {
    for pool in &manifest.row_pools {
        sized("a row pool", pool.elem, &pool.shape)?;
    }
    let computed = manifest.computed.iter().map(|computed| &computed.weight);
    for param in manifest.params.iter().chain(computed) {
        sized("a parameter", param.elem, &param.shape)?;
    }
    let buckets = Numbering::of(manifest).first_call(1) as u64;
    if buckets >= Handle::MAX_BUCKETS / 2 {
        return Err(Error::Unsupported(format!(
            "{buckets} sources, kernels and row pools in one program"
        )));
    }
    types(manifest)?;
    for (index, source) in manifest.sources.iter().enumerate() {
        self::source(manifest, source)
            .map_err(|problem| broken(format!("source {index}: {problem}")))?;
    }
    for (index, force) in manifest.forces.iter().enumerate() {
        pool(manifest, force.pool)
            .and_then(|()| match manifest.row_pools[force.pool].row_elements() {
                1 => Ok(()),
                elements => Err(format!("a row of {elements} elements")),
            })
            .map_err(|problem| broken(format!("force {index}: {problem}")))?;
    }
    for kernel in &manifest.kernels {
        self::kernel(manifest, kernel)
            .map_err(|problem| broken(format!("kernel `{}`: {problem}", kernel.name)))?;
    }
    for (index, computed) in manifest.computed.iter().enumerate() {
        self::computed(manifest, index)
            .map_err(|problem| broken(format!("`{}`: {problem}", computed.weight.name)))?;
    }
    flush::validate(manifest)
        .map_err(|problem| broken(format!("what runs a flush on a GPU: {problem}")))?;
    gradients::validate(manifest)
        .map_err(|problem| broken(format!("what gradients are computed by: {problem}")))
}

fn broken(problem: String) -> Error {
    Error::Internal(format!("the program's manifest is inconsistent: {problem}"))
}

fn types(manifest: &Manifest) -> Result<(), Error> {
    let mut names = HashSet::new();
    for argument in &manifest.arguments {
        if argument.name == ID_KEY {
            return Err(Error::Unsupported(
                "a parameter of the entry called `id`: that key names the instance in the input; \
                 rename the parameter"
                    .to_owned(),
            ));
        }
        if !names.insert(&argument.name) {
            return Err(broken(format!("two arguments called `{}`", argument.name)));
        }
        self::ty(manifest, &argument.ty).map_err(broken)?;
    }
    ty(manifest, &manifest.result).map_err(broken)?;
    for debug in &manifest.debugs {
        ty(manifest, &debug.ty).map_err(broken)?;
    }
    for adt in &manifest.adts {
        for constructor in &adt.constructors {
            for field in &constructor.fields {
                ty(manifest, field).map_err(broken)?;
            }
            let names: HashSet<&String> = constructor.names.iter().collect();
            let count = constructor.names.len();
            if count != 0 && count != constructor.fields.len() || names.len() < count {
                let name = &constructor.name;
                return Err(broken(format!(
                    "names of fields of `{name}` that do not fit"
                )));
            }
        }
    }
    Ok(())
}

fn ty(manifest: &Manifest, ty: &Type) -> Result<(), String> {
    match ty {
        Type::Scalar(_) | Type::Str => Ok(()),
        Type::Tensor { pool } | Type::Stacked { pool } => self::pool(manifest, *pool),
        Type::Tuple(types) => types.iter().try_for_each(|ty| self::ty(manifest, ty)),
        Type::Array(element) => self::ty(manifest, element),
        Type::Adt(adt) if *adt < manifest.adts.len() => Ok(()),
        Type::Adt(adt) => Err(format!("no data type {adt}")),
        Type::Ragged { pool, dims } => {
            self::pool(manifest, *pool)?;
            ragged(manifest, dims)
        }
    }
}

fn ragged(manifest: &Manifest, dims: &[LeadingDim]) -> Result<(), String> {
    if let None | Some(LeadingDim::Known(_)) = dims.last() {
        return Err("a ragged tensor whose last leading dim is not an instance dim".to_owned());
    }
    let mut known = 1_u64;
    for dim in dims {
        match dim {
            LeadingDim::Named(name) if *name >= manifest.dims.len() => {
                return Err(format!("no instance dim {name}"));
            }
            LeadingDim::Named(_) | LeadingDim::Any => {}
            LeadingDim::Known(length) => known = known.saturating_mul(*length),
        }
    }
    if known > MAX_BYTES {
        return Err(format!("leading dims of {known} rows"));
    }
    Ok(())
}

fn pool(manifest: &Manifest, pool: usize) -> Result<(), String> {
    if pool < manifest.row_pools.len() {
        Ok(())
    } else {
        Err(format!("no row pool {pool}"))
    }
}

fn source(manifest: &Manifest, source: &Source) -> Result<(), String> {
    pool(manifest, source.pool())?;
    let pool = &manifest.row_pools[source.pool()];
    let (param, row) = match source {
        Source::Splat { .. } => return Ok(()),
        Source::Dense { bits, .. } if bits.len() as u64 == pool.row_elements() => return Ok(()),
        Source::Dense { bits, .. } => {
            return Err(format!(
                "{} elements for a row of {}",
                bits.len(),
                pool.row_elements()
            ));
        }
        Source::Table { param, .. } => (param, 1),
        Source::Whole { param, .. } => (param, 0),
    };
    let Some(param) = manifest.weight(*param) else {
        return Err(format!("no parameter {param}"));
    };
    let Some(row) = param.shape.get(row..) else {
        return Err(format!("`{}` has no leading dim", param.name));
    };
    if param.elem != pool.elem || row.iter().product::<u64>() != pool.row_elements() {
        return Err(format!("rows of `{}` do not fit the row pool", param.name));
    }
    Ok(())
}

fn kernel(manifest: &Manifest, kernel: &Kernel) -> Result<(), String> {
    for operand in &kernel.operands {
        match operand {
            Operand::Row { pool }
            | Operand::Rows { pool }
            | Operand::Ragged { pool, .. }
            | Operand::Stacked { pool, .. } => self::pool(manifest, *pool)?,
            Operand::Scalar(_) | Operand::Length => {}
        }
    }
    call_shape(kernel)?;
    for result in &kernel.results {
        pool(manifest, *result)?;
    }
    if kernel.results.len() as u64 > Handle::MAX_RESULTS {
        return Err(format!("{} results", kernel.results.len()));
    }
    if kernel.row_tile == 0 || kernel.row_tile > 1 << 20 {
        return Err(format!("a row tile of {}", kernel.row_tile));
    }
    if kernel.scratch_bytes > MAX_SCRATCH {
        return Err(format!("{} bytes of scratch", kernel.scratch_bytes));
    }
    constants(manifest, &kernel.constants)?;
    match &kernel.gpu {
        Some(gpu) => {
            let valid = self::gpu(manifest, gpu).and_then(|()| call_tiles(kernel, gpu));
            valid.map_err(|problem| format!("on a GPU: {problem}"))
        }
        None => Ok(()),
    }
}

/// That every number of rows has its functions, and that their sizes are possible.
fn gpu(manifest: &Manifest, gpu: &GpuKernel) -> Result<(), String> {
    constants(manifest, &gpu.constants)?;
    let of_hosts =
        |constant: &Constant| matches!(constant, Constant::Panels { .. } | Constant::Part { .. });
    if gpu.constants.iter().any(of_hosts) {
        return Err("a constant in panels or a part of one".to_owned());
    }
    if gpu.scratch_bytes.max(gpu.scratch_bytes_per_row) > MAX_SCRATCH {
        return Err(format!(
            "{} bytes of scratch and {} a row",
            gpu.scratch_bytes, gpu.scratch_bytes_per_row
        ));
    }
    match gpu.launches.first() {
        None => return Err("no launch".to_owned()),
        Some(first) if first.beside => return Err("a first launch beside another".to_owned()),
        Some(_) => {}
    }
    for launch in &gpu.launches {
        if launch.functions.first().map(|function| function.from_rows) != Some(0) {
            return Err("no function for few rows".to_owned());
        }
        if !launch
            .functions
            .is_sorted_by_key(|function| function.from_rows)
        {
            return Err("functions out of order".to_owned());
        }
        for function in launch.all_functions() {
            let GpuFunction {
                symbol,
                threads,
                tile_rows_per_row,
                ..
            } = function;
            if !(1..=1024).contains(threads) || threads % 32 != 0 {
                return Err(format!("`{symbol}` has {threads} threads a block"));
            }
            // Rows are fewer than 2³², so that their product is a number.
            if *tile_rows_per_row > 1 << 31 {
                return Err(format!(
                    "`{symbol}` has {tile_rows_per_row} tile rows a row"
                ));
            }
        }
    }
    Ok(())
}

/// That functions have tiles where the unit is the call, and only there, and that these are counted by
/// lengths.
fn call_tiles(kernel: &Kernel, gpu: &GpuKernel) -> Result<(), String> {
    let launches = gpu.launches.iter();
    for function in launches.flat_map(GpuLaunch::all_functions) {
        let symbol = &function.symbol;
        let Some(tiles) = &function.calls else {
            if kernel.call.unit == Unit::Rows {
                continue;
            }
            return Err(format!("`{symbol}` has no tiles of calls"));
        };
        if kernel.call.unit == Unit::Rows {
            return Err(format!(
                "`{symbol}` has tiles of calls, and its unit is the row"
            ));
        }
        let lengths = tiles.dims.iter().map(|dim| &dim.length);
        for length in lengths.chain([&tiles.work]).flat_map(|e| &e.lengths) {
            if kernel.operands.get(*length) != Some(&Operand::Length) {
                return Err(format!("operand {length} counts tiles and is not a length"));
            }
        }
        // An entry of the list has 32 bits for a tile's number.
        if tiles.dims.iter().any(|dim| dim.tile == 0) {
            return Err(format!("`{symbol}` has tiles without entries"));
        }
    }
    Ok(())
}

/// What a constant takes that a part may be of; nothing of any other.
fn bytes_of(manifest: &Manifest, constant: &Constant) -> u64 {
    let weight = |param: &usize| manifest.weight(*param);
    let bytes = |elem: Elem, count: u64| count.saturating_mul(elem.bytes() as u64);
    match constant {
        Constant::Plain { param } => weight(param).map_or(0, |weight| {
            bytes(weight.elem, weight.shape.iter().product())
        }),
        Constant::Panels {
            param,
            width,
            format,
        } => weight(param)
            .and_then(|weight| weight.shape.split_last())
            .map_or(0, |(columns, rows)| {
                let columns = columns.checked_next_multiple_of(*width).unwrap_or(0);
                let count = columns.saturating_mul(rows.iter().product());
                count.saturating_mul(format.bytes() as u64)
            }),
        Constant::Dense { elem, bits } => bytes(*elem, bits.len() as u64),
        Constant::Rounded { .. } | Constant::Part { .. } => 0,
    }
}

fn constants(manifest: &Manifest, constants: &[Constant]) -> Result<(), String> {
    for constant in constants {
        let (constant, from) = constant.whole();
        if from > 0 && from >= bytes_of(manifest, constant) {
            return Err(format!("a part of a constant from byte {from} on"));
        }
        let Some(param) = constant.param() else {
            continue;
        };
        let Some(param) = manifest.weight(param) else {
            return Err(format!("no parameter {param}"));
        };
        match constant {
            Constant::Panels { width, .. } => {
                if param.elem != Elem::F32 || param.shape.len() < 2 {
                    return Err(format!(
                        "panels of `{}`, which is not an f32 matrix",
                        param.name
                    ));
                }
                if *width == 0 || *width > 1 << 16 {
                    return Err(format!("panels of width {width}"));
                }
            }
            Constant::Rounded {
                precision,
                offset,
                strides: [k_stride, column_stride],
                k,
                columns,
                by_columns,
                ..
            } => {
                let elements = param
                    .shape
                    .iter()
                    .try_fold(1_u64, |all, n| all.checked_mul(*n));
                let along = |count: u64, stride: u64| count.checked_sub(1)?.checked_mul(stride);
                let last = along(*k, *k_stride)
                    .and_then(|rows| rows.checked_add(along(*columns, *column_stride)?))
                    .and_then(|inside| inside.checked_add(*offset));
                let inside = last.is_some_and(|last| elements.is_some_and(|all| last < all));
                let words = k
                    .checked_mul(*columns)
                    .filter(|words| *words <= MAX_BYTES / 4);
                let is_ordered = !by_columns || *precision == Precision::Bf16 && k % 2 == 0;
                if param.elem != Elem::F32
                    || precision.is_f32()
                    || !inside
                    || words.is_none()
                    || !is_ordered
                {
                    return Err(format!("a rounded matrix that `{}` has not", param.name));
                }
            }
            Constant::Part { .. } => return Err("a part of a part of a constant".to_owned()),
            Constant::Plain { .. } | Constant::Dense { .. } => {}
        }
    }
    Ok(())
}

/// That extents are made of lengths, and that rows of one call match where they must.
fn call_shape(kernel: &Kernel) -> Result<(), String> {
    let CallShape {
        extents,
        rows,
        unit,
        flops,
        fused: _,
        division,
        padding,
    } = &kernel.call;
    for length in extents.iter().chain(flops).flat_map(|e| &e.lengths) {
        if kernel.operands.get(*length) != Some(&Operand::Length) {
            return Err(format!("operand {length} counts rows and is not a length"));
        }
    }
    let extent = |index: usize| {
        let extent = extents.get(index);
        extent.ok_or_else(|| format!("no extent {index}"))
    };
    let rows = rows.map(extent).transpose()?;
    if padding.is_some_and(|padding| padding.rows == 0 || padding.bulk == 0) {
        return Err("padded to a multiple of nothing".to_owned());
    }
    if padding.is_some() && (*unit != Unit::Calls || rows.is_none()) {
        return Err("padded, where a call is not a whole with rows".to_owned());
    }
    if let Some(division) = division {
        self::division(kernel, division, rows)?;
    }
    for (index, operand) in kernel.operands.iter().enumerate() {
        let (Operand::Ragged { extent: own, .. } | Operand::Stacked { extent: own, .. }) = operand
        else {
            continue;
        };
        let own = extent(*own)?;
        match unit {
            Unit::Rows if !rows.is_some_and(|rows| same(rows, own)) => {
                return Err(format!("operand {index} has other rows than the call"));
            }
            Unit::Calls if matches!(operand, Operand::Stacked { .. }) => {
                return Err(format!("operand {index} is stacked, in a call of a whole"));
            }
            Unit::Rows | Unit::Calls => {}
        }
    }
    Ok(())
}

/// That a call's work items are made of its rows.
fn division(kernel: &Kernel, division: &Division, rows: Option<&Extent>) -> Result<(), String> {
    if kernel.call.unit != Unit::Calls {
        return Err("divided, where the unit is the row".to_owned());
    }
    if !rows.is_some_and(|rows| rows.lengths.contains(&division.length)) {
        return Err(format!("divided along operand {}", division.length));
    }
    if division.tile == 0 || division.tile > 1 << 20 || division.shared > 1 << 20 {
        return Err(format!(
            "work items of {} and {}",
            division.tile, division.shared
        ));
    }
    match division
        .rising
        .iter()
        .find(|at| **at >= kernel.call.flops.len())
    {
        Some(at) => Err(format!("no operations {at}")),
        None => Ok(()),
    }
}

/// Whether two extents are equal, whatever the lengths.
fn same(a: &Extent, b: &Extent) -> bool {
    let sorted = |extent: &Extent| {
        let mut lengths = extent.lengths.clone();
        lengths.sort_unstable();
        lengths
    };
    a.times == b.times && sorted(a) == sorted(b)
}

fn computed(manifest: &Manifest, index: usize) -> Result<(), String> {
    let computed = &manifest.computed[index];
    let Some(kernel) = manifest.kernels.get(computed.kernel) else {
        return Err(format!("no kernel {}", computed.kernel));
    };
    let [result] = kernel.results[..] else {
        return Err(format!("{} results", kernel.results.len()));
    };
    let pool = &manifest.row_pools[result];
    if pool.elem != computed.weight.elem || pool.shape != computed.weight.shape {
        return Err("its kernel gives another type".to_owned());
    }
    if !kernel.operands.is_empty() {
        return Err("its kernel takes operands".to_owned());
    }
    if kernel.call != CallShape::default() {
        return Err("its kernel counts rows or calls".to_owned());
    }
    let known = manifest.params.len() + index;
    match kernel.constants.iter().filter_map(Constant::param).max() {
        Some(latest) if latest >= known => Err("it is computed from later ones".to_owned()),
        _ => Ok(()),
    }
}

/// The product of the dims must not overflow, nor be beyond any memory.
fn sized(what: &str, elem: Elem, shape: &[u64]) -> Result<(), Error> {
    let bytes = shape
        .iter()
        .try_fold(elem.bytes() as u64, |bytes, dim| bytes.checked_mul(*dim));
    match bytes {
        Some(bytes) if bytes <= MAX_BYTES => Ok(()),
        _ => Err(Error::Unsupported(format!(
            "{what} of shape {shape:?}: it would need more than {MAX_BYTES} bytes"
        ))),
    }
}
