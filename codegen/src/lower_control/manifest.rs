//! Builds the manifest, each of its entries once, and what of the control program refers to.

use cohort_dialects::keys::{self, Key};
use cohort_dialects::marks;
use cohort_passes::kernel::description::{ATTRIBUTE, GpuDescription, KernelDescription, parse};
use cohort_passes::pass::{Failed, error};
use cohort_passes::support::ir::{
    COMPUTED, TensorType, array, elem_of, elements_of, name_attribute, remove_attribute, strings,
    symbol_of, text_of, top_level,
};
use std::collections::HashMap;

use cohort_abi::gpu::GpuFlush;
use cohort_abi::manifest::{
    Adt, Computed, Constructor, Debug, Elem, Force, Kernel, LeadingDim, Param, RowPool, Source,
    Stored, Structure, Type as ManifestType,
};
use cohort_dialects::attributes::is_external;
use cohort_dialects::builder::Op;
use cohort_dialects::location::{caller_elsewhere, file_line_col};
use cohort_dialects::types::{adt_name, array_element, is_str, lazy_tensor};
use melior::ir::{
    Location, OperationRef, Type, attribute::TypeAttribute, operation::OperationLike,
};

use super::gradients::entry;
use super::types::tuple_elements;
use crate::gpu::lower_kernels_to_gpu::{
    ATTRIBUTE as GPU_ATTRIBUTE, descriptions as gpu_descriptions,
};
use crate::gpu::persistence::ATTRIBUTE as FLUSH_ATTRIBUTE;

#[derive(Default)]
pub struct ManifestBuilder {
    pub adts: Vec<Adt>,
    pub params: Vec<Param>,
    pub computed: Vec<Computed>,
    /// Names of the entry's instance dims.
    pub dims: Vec<String>,
    pub row_pools: Vec<RowPool>,
    pub sources: Vec<Source>,
    pub kernels: Vec<Kernel>,
    pub locations: Vec<String>,
    pub forces: Vec<Force>,
    pub debugs: Vec<Debug>,
    pub grows_in_place: bool,
    pub gpu_flush: Option<GpuFlush>,
    pub structure: Option<Structure>,
    adt_numbers: HashMap<String, usize>,
    param_numbers: HashMap<String, usize>,
    pool_numbers: HashMap<(Elem, Vec<u64>), usize>,
    kernel_numbers: HashMap<String, usize>,
    location_numbers: HashMap<String, u32>,
}

/// What is known of the parts of a type, in order.
struct Leaves<'a> {
    /// The names of instance dims; none for any length.
    names: std::slice::Iter<'a, String>,
    /// Whether each SSA value is a tensor stacked from rows.
    stacked: std::slice::Iter<'a, bool>,
}

impl ManifestBuilder {
    /// Reads the declarations of a module: types, parameters and lowered kernels.
    pub fn new<'c>(module: OperationRef<'c, 'c>) -> Result<ManifestBuilder, Failed> {
        let mut manifest = ManifestBuilder::default();
        let operations = top_level(module);
        let named = |kind: Op| operations.iter().copied().filter(move |op| kind.is(*op));
        let globals = manifest.add_params(named(Op::MlProgramGlobal))?;
        for (number, adt) in named(Op::CfbAdt).enumerate() {
            let name = symbol_of(adt).unwrap_or_default();
            manifest.adt_numbers.insert(name.clone(), number);
            manifest.adts.push(Adt {
                name,
                constructors: Vec::new(),
            });
        }
        for (number, adt) in named(Op::CfbAdt).enumerate() {
            manifest.adts[number].constructors = manifest.constructors(adt)?;
        }
        for function in named(Op::FuncFunc) {
            manifest.add_kernel(function)?;
        }
        for gpu in named(Op::GpuModule) {
            manifest.add_gpu_kernels(gpu)?;
        }
        manifest.finish_computed(&globals)?;
        Ok(manifest)
    }

    pub fn adt(&self, ty: Type<'_>) -> Option<&Adt> {
        self.adt_numbers
            .get(&adt_name(ty)?)
            .map(|number| &self.adts[*number])
    }

    pub fn param(&self, name: &str) -> Option<usize> {
        self.param_numbers.get(name).copied()
    }

    /// A parameter or what is computed from them, as [`ManifestBuilder::param`] counts them.
    pub fn weight(&self, number: usize) -> &Param {
        match number.checked_sub(self.params.len()) {
            None => &self.params[number],
            Some(computed) => &self.computed[computed].weight,
        }
    }

    /// Whether a kernel computes a weight.
    pub fn is_load_time(&self, kernel: usize) -> bool {
        self.computed
            .iter()
            .any(|computed| computed.kernel == kernel)
    }

    pub fn kernel(&self, symbol: &str) -> Option<usize> {
        self.kernel_numbers.get(symbol).copied()
    }

    pub fn pool(&mut self, elem: Elem, shape: &[u64]) -> usize {
        let row_pools = &mut self.row_pools;
        *self
            .pool_numbers
            .entry((elem, shape.to_vec()))
            .or_insert_with(|| {
                row_pools.push(RowPool {
                    elem,
                    shape: shape.to_vec(),
                });
                row_pools.len() - 1
            })
    }

    /// The number of a source, and thereby its bucket.
    pub fn source(&mut self, source: Source) -> usize {
        match self.sources.iter().position(|known| *known == source) {
            Some(number) => number,
            None => {
                self.sources.push(source);
                self.sources.len() - 1
            }
        }
    }

    /// The number of a place where a row of one element decides.
    pub fn force(&mut self, location: Location<'_>, elem: Elem) -> usize {
        let pool = self.pool(elem, &[]);
        let location = place(location);
        self.forces.push(Force { location, pool });
        self.forces.len() - 1
    }

    pub fn location(&mut self, location: Location<'_>) -> u32 {
        let text = place(location);
        let locations = &mut self.locations;
        *self
            .location_numbers
            .entry(text)
            .or_insert_with_key(|text| {
                locations.push(text.clone());
                (locations.len() - 1) as u32
            })
    }

    /// The row pool of a tensor when its dims are all known; otherwise the dims up to the last instance
    /// dim, whose names are the next ones, and the row pool of those behind.
    fn tensor_type(
        &mut self,
        ty: Type<'_>,
        leaves: &mut Leaves<'_>,
    ) -> Result<ManifestType, String> {
        let unsupported = || format!("not supported yet: a value of type {ty}");
        let tensor = TensorType::of(ty).ok_or_else(unsupported)?;
        let elem = elem_of(tensor.element).ok_or_else(unsupported)?;
        let stacked = leaves.stacked.next().copied().unwrap_or(false);
        let last = tensor.shape.iter().rposition(Option::is_none);
        let (leading, row) = tensor.shape.split_at(last.map_or(0, |last| last + 1));
        let row: Option<Vec<u64>> = row.iter().copied().collect();
        let pool = self.pool(elem, &row.ok_or_else(unsupported)?);
        if leading.is_empty() {
            return Ok(ManifestType::Tensor { pool });
        }
        if stacked {
            return match leading {
                [None] => Ok(ManifestType::Stacked { pool }),
                _ => Err(unsupported()),
            };
        }
        let dims = leading.iter().map(|size| match size {
            Some(size) => LeadingDim::Known(*size),
            None => match leaves.names.next().map(String::as_str) {
                None | Some("_") => LeadingDim::Any,
                Some(name) => LeadingDim::Named(self.dim(name)),
            },
        });
        let dims = dims.collect();
        Ok(ManifestType::Ragged { pool, dims })
    }

    /// The number of an instance dim of the entry.
    fn dim(&mut self, name: &str) -> usize {
        let known = self.dims.iter().position(|known| known == name);
        known.unwrap_or_else(|| {
            self.dims.push(name.to_owned());
            self.dims.len() - 1
        })
    }

    /// The form of an argument of the entry, whose tensors' instance dims have these names.
    pub fn argument_type(
        &mut self,
        ty: Type<'_>,
        names: &[String],
    ) -> Result<ManifestType, String> {
        let (names, stacked) = (names.iter(), [].iter());
        self.described(ty, &mut Leaves { names, stacked })
    }

    /// The form of the entry's result; which of its parts are stacked is given.
    pub fn result_type(&mut self, ty: Type<'_>, stacked: &[bool]) -> Result<ManifestType, String> {
        let (names, stacked) = ([].iter(), stacked.iter());
        self.described(ty, &mut Leaves { names, stacked })
    }

    /// The manifest's form of a type of the control program.
    pub fn manifest_type(&mut self, ty: Type<'_>) -> Result<ManifestType, String> {
        self.argument_type(ty, &[])
    }

    fn described(&mut self, ty: Type<'_>, leaves: &mut Leaves<'_>) -> Result<ManifestType, String> {
        if let Some(elem) = elem_of(ty) {
            leaves.stacked.next();
            return Ok(ManifestType::Scalar(elem));
        }
        if let Some(elements) = tuple_elements(ty) {
            let elements: Result<_, _> = elements
                .into_iter()
                .map(|element| self.described(element, leaves))
                .collect();
            return Ok(ManifestType::Tuple(elements?));
        }
        if let Some(element) = array_element(ty) {
            leaves.stacked.next();
            let mut inner = Leaves {
                names: leaves.names.clone(),
                stacked: [].iter(),
            };
            let element = self.described(element, &mut inner)?;
            leaves.names = inner.names;
            return Ok(ManifestType::Array(Box::new(element)));
        }
        if is_str(ty) {
            leaves.stacked.next();
            return Ok(ManifestType::Str);
        }
        if let Some(name) = adt_name(ty) {
            leaves.stacked.next();
            let number = self.adt_numbers.get(&name).copied();
            return number
                .map(ManifestType::Adt)
                .ok_or_else(|| format!("{ty} is not declared"));
        }
        self.tensor_type(lazy_tensor(ty).unwrap_or(ty), leaves)
    }

    /// Parameters are numbered first, what is computed from them after; gives the latter's globals.
    fn add_params<'c>(
        &mut self,
        globals: impl Iterator<Item = OperationRef<'c, 'c>>,
    ) -> Result<Vec<OperationRef<'c, 'c>>, Failed> {
        let (computed, params): (Vec<_>, Vec<_>) =
            globals.partition(|global| name_attribute(*global, COMPUTED).is_some());
        for global in params {
            let param = param_of(global)?;
            self.param_numbers
                .insert(param.name.clone(), self.params.len());
            self.params.push(param);
        }
        for global in &computed {
            let weight = param_of(*global)?;
            let number = self.params.len() + self.computed.len();
            self.param_numbers.insert(weight.name.clone(), number);
            // Kernels are numbered later.
            self.computed.push(Computed { weight, kernel: 0 });
        }
        Ok(computed)
    }

    /// Tells each computed weight its kernel. What it is computed from must be known by then.
    fn finish_computed(&mut self, globals: &[OperationRef<'_, '_>]) -> Result<(), Failed> {
        for (number, global) in globals.iter().enumerate() {
            let symbol = name_attribute(*global, COMPUTED).unwrap_or_default();
            let Some(kernel) = self.kernel(&symbol) else {
                let message =
                    format!("@{symbol} is not a lowered kernel; run `lower-kernels` first");
                return Err(error(*global, &message));
            };
            self.computed[number].kernel = kernel;
            let constants = self.kernels[kernel].constants.iter();
            let latest = constants.filter_map(|constant| constant.param()).max();
            if latest.is_some_and(|latest| latest >= self.params.len() + number) {
                let message = "computed from a weight that is computed later";
                return Err(error(*global, message));
            }
        }
        Ok(())
    }

    fn constructors(&mut self, adt: OperationRef<'_, '_>) -> Result<Vec<Constructor>, Failed> {
        let names = array(adt, keys::CONSTRUCTORS);
        let fields = array(adt, keys::FIELDS);
        let of_fields = array(adt, keys::NAMES);
        let mut constructors = Vec::new();
        for (number, (name, fields)) in names.into_iter().zip(fields).enumerate() {
            let name = text_of(name);
            let fields: Result<Vec<_>, String> = elements_of(fields)
                .into_iter()
                .filter_map(|field| TypeAttribute::try_from(field).ok())
                .map(|field| self.manifest_type(field.value()))
                .collect();
            let fields = fields.map_err(|message| error(adt, &message))?;
            constructors.push(Constructor {
                name: name.unwrap_or_default(),
                fields,
                names: of_fields
                    .get(number)
                    .map_or(vec![], |names| strings(*names)),
            });
        }
        Ok(constructors)
    }

    /// Takes a lowered kernel's description off its function.
    fn add_kernel(&mut self, function: OperationRef<'_, '_>) -> Result<(), Failed> {
        let Some(json) = name_attribute(function, ATTRIBUTE) else {
            return Ok(());
        };
        let kernel = parse::<KernelDescription>(&json)
            .map_err(|problem| problem.to_string())
            .and_then(|description| self.kernel_of(description))
            .map_err(|problem| error(function, &format!("bad `{ATTRIBUTE}`: {problem}")))?;
        // Records name the kernel; its function may be that of an equal one.
        let name = symbol_of(function).unwrap_or_default();
        let is_of_another = name != kernel.symbol;
        self.kernel_numbers.insert(name, self.kernels.len());
        self.kernels.push(kernel);
        // What has no function of its own goes when the control program is lowered.
        if !is_of_another {
            remove_attribute(function, ATTRIBUTE);
        }
        Ok(())
    }

    fn kernel_of(&mut self, description: KernelDescription) -> Result<Kernel, String> {
        let params = std::mem::take(&mut self.param_numbers);
        let kernel = description.with(
            |row| self.pool(row.elem, &row.shape),
            |name| number_of(&params, &name),
        );
        self.param_numbers = params;
        kernel
    }

    /// Takes the descriptions of kernels' functions off the `gpu.module`.
    fn add_gpu_kernels(&mut self, gpu: OperationRef<'_, '_>) -> Result<(), Failed> {
        let Ok(entries) = gpu.attribute(&GPU_ATTRIBUTE) else {
            return Ok(());
        };
        for (name, json) in gpu_descriptions(entries) {
            let described = text_of(json)
                .ok_or_else(|| "expected a string".to_owned())
                .and_then(|json| parse::<GpuDescription>(&json).map_err(|p| p.to_string()))
                .and_then(|kernel| {
                    kernel.with(&|name: String| number_of(&self.param_numbers, &name))
                })
                .map_err(|problem| error(gpu, &format!("bad `{GPU_ATTRIBUTE}`: {problem}")))?;
            // A kernel that is called nowhere has no entry.
            if let Some(number) = self.kernel(&name) {
                self.kernels[number].gpu = Some(described);
            }
        }
        remove_attribute(gpu, GPU_ATTRIBUTE);
        if let Ok(flush) = gpu.attribute(&FLUSH_ATTRIBUTE) {
            let json = text_of(flush).ok_or_else(|| "expected a string".to_owned());
            let parsed = json.and_then(|json| {
                serde_json::from_str(&json).map_err(|problem| problem.to_string())
            });
            self.gpu_flush =
                Some(parsed.map_err(|problem| {
                    error(gpu, &format!("bad `{FLUSH_ATTRIBUTE}`: {problem}"))
                })?);
            remove_attribute(gpu, FLUSH_ATTRIBUTE);
        }
        Ok(())
    }
}

/// A location as the manifest names it; empty when it is unknown. Of code of another file, such as the
/// prelude, also where it was called.
fn place(location: Location<'_>) -> String {
    let Some((file, line, column)) = file_line_col(location) else {
        return String::new();
    };
    let place = format!("{file}:{line}:{column}");
    match caller_elsewhere(location) {
        Some((file, line, column)) => format!("{place}, called at {file}:{line}:{column}"),
        None => place,
    }
}

/// What a global declares.
fn param_of(global: OperationRef<'_, '_>) -> Result<Param, Failed> {
    let name = symbol_of(global).unwrap_or_default();
    if !is_external(global) {
        return Err(error(
            global,
            "not supported yet: a global that is not a parameter",
        ));
    }
    let tensor = global
        .attribute(&keys::TYPE)
        .ok()
        .and_then(|ty| TypeAttribute::try_from(ty).ok())
        .and_then(|ty| TensorType::of(ty.value()));
    let described = tensor.and_then(|tensor| {
        let shape: Option<Vec<u64>> = tensor.shape.into_iter().collect();
        Some((elem_of(tensor.element)?, shape?))
    });
    let Some((elem, shape)) = described else {
        return Err(error(global, "not supported yet: a parameter of this type"));
    };
    Ok(Param {
        name,
        elem,
        shape,
        stored: stored_of(global),
    })
}

/// The number of a parameter by its name.
fn number_of(params: &HashMap<String, usize>, name: &str) -> Result<usize, String> {
    let number = params.get(name).copied();
    number.ok_or_else(|| format!("no parameter `{name}`"))
}

/// The names under which a weights file has a global, `cfb.stored`.
fn stored_of(global: OperationRef<'_, '_>) -> Option<Stored> {
    let attribute = global.attribute(&marks::STORED).ok()?;
    let member = |name: Key<'_>| entry(attribute, name);
    Some(Stored {
        name: text_of(member(marks::stored::NAME)?)?,
        transposed: member(marks::stored::TRANSPOSED).is_some(),
    })
}
