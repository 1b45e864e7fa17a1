//! A loaded program.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, Weak};

use cohort_runtime::abi::manifest::Manifest;
use cohort_runtime::backward::Numbers;
use cohort_runtime::device::DeviceKind;
use cohort_runtime::io::input::{Builder, Inputs};
use cohort_runtime::locks::locked;
use cohort_runtime::serving::Settings;
use cohort_runtime::{Config, Limits};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyCapsule, PyDict, PyType};

use crate::detached::detached;
use crate::engine::Engine;
use crate::errors::{exception, in_python};
use crate::flat::Flat;
use crate::objects::Objects;
use crate::owner::{Owner, Parts, Wanted, WeightsFrom};
use crate::process::Process;
use crate::run::{How, Idle, Run};
use crate::types::Types;

/// The shape and the bytes of what weighs a part of an output.
type Given = Option<(Vec<u64>, PyBackedBytes)>;

/// A program with its weights, ready to run.
#[pyclass(frozen, module = "cohort._cohort")]
pub struct Model {
    parts: Mutex<Parts>,
    limits: Limits,
    manifest: Arc<Manifest>,
    types: OnceLock<Arc<Types>>,
    /// Owners that no stream has. The first is always there and takes all runs that end by themselves.
    owner: Mutex<Arc<Owner>>,
    /// One that computes gradients, from the first time on that they are wanted until weights are replaced
    /// where nothing is replaced in place.
    differentiating: Mutex<Option<Arc<Owner>>>,
    idle: Mutex<Idle>,
    /// There as long as the run that began last of those whose instances come from an iterator has not seen its end.
    fed: Mutex<Weak<()>>,
    process: Process,
}

#[pymethods]
impl Model {
    /// Loads an artifact; `weights` is a path, the bytes of a safetensors file, or `None`.
    #[new]
    #[pyo3(signature = (artifact, path, weights, *, allow_unused_weights, device, limits))]
    fn new(
        py: Python<'_>,
        artifact: &[u8],
        path: PathBuf,
        weights: Option<Bound<'_, PyAny>>,
        allow_unused_weights: bool,
        device: &str,
        limits: [Option<u64>; 4],
    ) -> PyResult<Model> {
        let weights = weights_from(weights)?;
        let defaults = Limits::default();
        let [max_depth, max_nodes, max_memory, max_steps] = limits;
        let limits = Limits {
            max_depth: max_depth.unwrap_or(defaults.max_depth),
            max_nodes: max_nodes.unwrap_or(defaults.max_nodes),
            max_memory: max_memory.unwrap_or(defaults.max_memory),
            max_steps: max_steps.unwrap_or(defaults.max_steps),
            max_time: None,
        };
        let parts = Parts {
            path,
            artifact: artifact.into(),
            weights,
            config: Config {
                limits,
                allow_unused_weights,
                device: match device {
                    "cpu" => DeviceKind::Cpu,
                    "cuda" => DeviceKind::Cuda,
                    "gpu-sim" => DeviceKind::GpuSim,
                    "ptx-sim" => DeviceKind::PtxSim,
                    _ => {
                        let known = "\"cpu\", \"cuda\", \"gpu-sim\" or \"ptx-sim\"";
                        let problem = format!("unknown device {device:?}: expected {known}");
                        return Err(PyValueError::new_err(problem));
                    }
                },
                ..Config::default()
            },
        };
        let started = detached(py, || Owner::start(parts.clone()));
        let (owner, manifest) = started.map_err(|error| exception(py, &error))?;
        Ok(Model {
            limits: parts.config.limits,
            parts: Mutex::new(parts),
            manifest,
            types: OnceLock::new(),
            owner: Mutex::new(Arc::new(owner)),
            differentiating: Mutex::default(),
            idle: Mutex::default(),
            fed: Mutex::default(),
            process: Process::this(),
        })
    }

    /// What the program is, as JSON.
    fn manifest(&self) -> PyResult<String> {
        serde_json::to_string(&*self.manifest)
            .map_err(|error| PyRuntimeError::new_err(error.to_string()))
    }

    /// The artifact that it was loaded from.
    fn artifact<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &locked(&self.parts).artifact)
    }

    /// Takes the class of each constructor, by data type; once.
    fn set_classes(&self, py: Python<'_>, classes: Vec<Vec<Py<PyType>>>) -> PyResult<()> {
        let types = Types::new(py, &self.manifest, &classes)?;
        let _ = self.types.set(Arc::new(types));
        Ok(())
    }

    /// Begins a run of that many instances at once. One that waits for what the caller does between two
    /// results has a session of its own; so has one that begins while another one is `is_fed` by an iterator, which may
    /// wait for this one.
    #[pyo3(signature = (batch, threads, *, draw = 0, is_fed = false, is_stream = false, is_surveyed = false))]
    #[expect(clippy::too_many_arguments, reason = "they are arguments of Python's")]
    fn run(
        &self,
        py: Python<'_>,
        batch: usize,
        threads: usize,
        draw: u64,
        is_fed: bool,
        is_stream: bool,
        is_surveyed: bool,
    ) -> PyResult<Run> {
        self.check_process()?;
        let types = self.types()?.clone();
        let limits = self.limits;
        let how = How {
            batch,
            threads,
            is_surveyed,
            draw,
            gradients: None,
        };
        let run = Run::new(self.manifest.clone(), types, limits.max_memory);
        if !(is_stream || is_surveyed) {
            // Nobody comes between the look and the run.
            let mut fed = locked(&self.fed);
            if fed.upgrade().is_none() {
                if is_fed {
                    *fed = run.is_fed();
                }
                let owner = locked(&self.owner).clone();
                run.submit(&owner, how)?;
                drop(fed);
                return run.begun(py);
            }
        }
        let all_idle = locked(&self.idle).clone();
        let idle = locked(&all_idle).pop();
        let owner = match idle {
            Some(owner) => owner,
            None => {
                let parts = locked(&self.parts).clone();
                let started = detached(py, || Owner::start(parts));
                started.map_err(|error| exception(py, &error))?.0
            }
        };
        run.submit(&owner, how)?;
        let run = run.begun(py)?;
        // A survey takes time, so nothing else is run where one was.
        Ok(run.with_owner(owner, (!is_surveyed).then_some(all_idle)))
    }

    /// Begins a run whose gradients are computed, of a program that was compiled for that. `cotangents` has,
    /// for each instance and part of its output, the shape and the bytes of the numbers that weigh its floats, or `None`.
    #[pyo3(signature = (batch, threads, *, draw, cotangents, of_inputs))]
    fn differentiate(
        &self,
        py: Python<'_>,
        batch: usize,
        threads: usize,
        draw: u64,
        cotangents: Option<Vec<Vec<Given>>>,
        of_inputs: bool,
    ) -> PyResult<Run> {
        self.check_process()?;
        let numbers = |(shape, bytes): (Vec<u64>, PyBackedBytes)| {
            let (words, _) = bytes.as_chunks();
            let numbers = words.iter().map(|word| f32::from_le_bytes(*word));
            let numbers = numbers.collect();
            Numbers { shape, numbers }
        };
        let of_instance = |parts: Vec<Given>| {
            let parts = parts.into_iter();
            parts.map(|part| part.map(numbers)).collect()
        };
        let cotangents =
            cotangents.map(|instances| instances.into_iter().map(of_instance).collect());
        let known = locked(&self.differentiating).clone();
        let owner = match known {
            Some(owner) => owner,
            None => {
                let mut parts = locked(&self.parts).clone();
                parts.config.gradients = true;
                let started = detached(py, || Owner::start(parts));
                let owner = Arc::new(started.map_err(|error| exception(py, &error))?.0);
                *locked(&self.differentiating) = Some(owner.clone());
                owner
            }
        };
        let how = How {
            batch,
            threads,
            is_surveyed: false,
            draw,
            gradients: Some(Wanted {
                cotangents,
                of_inputs,
            }),
        };
        let types = self.types()?.clone();
        let run = Run::new(self.manifest.clone(), types, self.limits.max_memory);
        run.submit(&owner, how)?;
        run.begun(py)
    }

    /// Replaces the weights. Streams and engines that have begun keep theirs.
    fn set_weights(&self, py: Python<'_>, weights: Option<Bound<'_, PyAny>>) -> PyResult<()> {
        self.check_process()?;
        let mut parts = locked(&self.parts).clone();
        parts.weights = weights_from(weights)?;
        match parts.config.device {
            DeviceKind::Cpu => {
                let owner = locked(&self.owner).clone();
                owner.set_weights(py, parts.weights.clone())?;
                let differentiating = locked(&self.differentiating).clone();
                if let Some(owner) = differentiating
                    && owner.set_weights(py, parts.weights.clone()).is_err()
                {
                    // The model has the new weights; another one that has them too is made when it is wanted.
                    *locked(&self.differentiating) = None;
                }
            }
            // There nothing is replaced.
            DeviceKind::Cuda | DeviceKind::GpuSim | DeviceKind::PtxSim => {
                let started = detached(py, || Owner::start(parts.clone()));
                let (owner, _) = started.map_err(|error| exception(py, &error))?;
                *locked(&self.owner) = Arc::new(owner);
                *locked(&self.differentiating) = None;
            }
        }
        *locked(&self.parts) = parts;
        // Those that are in use are not to come back.
        *locked(&self.idle) = Idle::default();
        Ok(())
    }

    /// The bytes of each of the program's parameters, as it declares them.
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let weights = locked(&self.parts).weights.clone();
        let weights = weights.open().map_err(|error| exception(py, &error))?;
        let params = weights.params(&self.manifest, true);
        let params = params.map_err(|error| exception(py, &error))?;
        Ok(params.iter().map(|bytes| PyBytes::new(py, bytes)).collect())
    }

    /// Starts an engine, with a session of its own.
    fn engine(
        &self,
        py: Python<'_>,
        in_flight: usize,
        max_queued: usize,
        threads: usize,
    ) -> PyResult<Engine> {
        self.check_process()?;
        let settings = Settings {
            in_flight,
            max_queued,
            ..Settings::default()
        };
        Engine::start(
            py,
            locked(&self.parts).clone(),
            self.types()?.clone(),
            settings,
            threads,
        )
    }

    /// Instances of flat arrays, by argument.
    fn flat(&self, arguments: &Bound<'_, PyDict>) -> PyResult<Flat> {
        Flat::new(&self.manifest, arguments, self.limits.max_memory)
    }

    /// Instances of a table of Arrow.
    fn table(&self, table: &Bound<'_, PyAny>) -> PyResult<Flat> {
        Flat::of_table(&self.manifest, table)
    }

    /// Results as a stream of Arrow: bytes, words and ends of each column, ids, and errors by place.
    fn arrow<'py>(
        &self,
        py: Python<'py>,
        columns: Vec<[PyBackedBytes; 3]>,
        ids: Vec<String>,
        errors: Vec<Option<(String, String)>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        crate::arrow::stream(py, &self.manifest, &columns, &ids, &errors)
    }

    /// Bytes that the instance takes once it is built.
    fn cost(&self, py: Python<'_>, instance: &Bound<'_, PyAny>) -> PyResult<(u64, Option<String>)> {
        let types = self.types()?;
        let mut inputs = Inputs::default();
        inputs.reset(&self.manifest, 0);
        let max_memory = self.limits.max_memory;
        let mut builder = Builder::new(&self.manifest, max_memory);
        Objects::new(py, types, max_memory).instance(&mut builder, instance, 1, &mut inputs)?;
        Ok(match inputs.arguments(0) {
            Ok((_, bytes)) => (bytes, None),
            Err(error) => (0, Some(in_python(&error.message))),
        })
    }
}

/// A path, the bytes of a safetensors file, or nothing.
fn weights_from(weights: Option<Bound<'_, PyAny>>) -> PyResult<WeightsFrom> {
    let Some(weights) = weights else {
        return Ok(WeightsFrom::None);
    };
    Ok(match weights.downcast::<PyBytes>() {
        Ok(bytes) => WeightsFrom::Memory(bytes.as_bytes().into()),
        Err(_) => WeightsFrom::File(weights.extract()?),
    })
}

impl Model {
    fn types(&self) -> PyResult<&Arc<Types>> {
        let missing = || PyRuntimeError::new_err("the model has no classes yet");
        self.types.get().ok_or_else(missing)
    }

    fn check_process(&self) -> PyResult<()> {
        self.process.check("this model was loaded")
    }
}
