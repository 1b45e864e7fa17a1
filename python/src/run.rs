//! A run of instances: Python adds them and takes results, here chunks are built of them and wait for
//! their turn.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use cohort_runtime::abi::manifest::Manifest;
use cohort_runtime::io::input::{Builder, Inputs};
use cohort_runtime::io::output::columns::Columns;
use cohort_runtime::late::Interrupt;
use cohort_runtime::locks::locked;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyList};

use crate::detached::detached;
use crate::errors::{exception, in_python, owner_ended};
use crate::flat::Flat;
use crate::objects::Objects;
use crate::owner::{Ended, Event, Gradients, Job, Owner, Wanted};
use crate::process::Process;
use crate::types::Types;

/// How often a waiting thread looks for Ctrl-C.
pub const LOOK: Duration = Duration::from_millis(50);
/// Chunks that wait, where all have the same slot.
const AHEAD: usize = 3;
/// Bytes of a chunk, about.
const CHUNK_BYTES: u64 = 256 << 20;

/// Owners that have nothing to do.
pub type Idle = Arc<Mutex<Vec<Owner>>>;

/// How instances are run.
pub struct How {
    pub batch: usize,
    pub threads: usize,
    pub is_surveyed: bool,
    pub draw: u64,
    pub gradients: Option<Wanted>,
}

/// A run that has begun.
#[pyclass(frozen, module = "cohort._cohort")]
pub struct Run {
    manifest: Arc<Manifest>,
    types: Arc<Types>,
    max_memory: u64,
    process: Process,
    interrupt: Interrupt,
    state: Mutex<State>,
}

struct State {
    /// Until there are no more instances.
    supply: Option<Sender<Inputs>>,
    /// As long as an iterator is asked for instances.
    fed: Option<Arc<()>>,
    events: Option<Receiver<Event>>,
    /// Instances of a chunk.
    count: usize,
    /// Slots for chunks; where there is one, several chunks may wait for it.
    free: Vec<usize>,
    spare: Vec<Inputs>,
    results: Vec<Columns>,
    has_ended: bool,
    stats: String,
    explanation: Option<String>,
    gradients: Option<Gradients>,
    /// Its own session, and where that goes afterwards.
    owner: Option<(Owner, Option<Idle>)>,
}

impl Run {
    pub fn new(manifest: Arc<Manifest>, types: Arc<Types>, max_memory: u64) -> Run {
        Run {
            manifest,
            types,
            max_memory,
            process: Process::this(),
            interrupt: Interrupt::default(),
            state: Mutex::new(State {
                supply: None,
                fed: None,
                events: None,
                count: 0,
                free: Vec::new(),
                spare: Vec::new(),
                results: Vec::new(),
                has_ended: false,
                stats: String::new(),
                explanation: None,
                gradients: None,
                owner: None,
            }),
        }
    }

    /// Marks the run as fed by an iterator; the reference that it gives is alive until the iterator is exhausted.
    pub fn is_fed(&self) -> Weak<()> {
        let fed = Arc::default();
        let until = Arc::downgrade(&fed);
        self.state().fed = Some(fed);
        until
    }

    /// Tells the owner of it.
    pub fn submit(&self, owner: &Owner, how: How) -> PyResult<()> {
        let (supply, taken) = channel();
        let (told, events) = channel();
        let job = Job {
            batch: how.batch,
            threads: how.threads,
            is_surveyed: how.is_surveyed,
            draw: how.draw,
            gradients: how.gradients,
            supply: taken,
            events: told,
            interrupt: self.interrupt.clone(),
        };
        if !owner.submit(job) {
            return Err(owner_ended());
        }
        let mut state = self.state();
        state.supply = Some(supply);
        state.events = Some(events);
        Ok(())
    }

    /// Waits until the owner has time for it.
    pub fn begun(self, py: Python<'_>) -> PyResult<Run> {
        while self.chunk() == 0 && !self.has_ended() {
            if let Some(event) = self.wait(py)? {
                self.state().take(py, event)?;
            }
        }
        Ok(self)
    }

    /// Makes a chunk of up to `count` instances, and hands it on.
    fn build(
        &self,
        count: usize,
        mut instance: impl FnMut(&mut Builder<'_>, usize, &mut Inputs) -> PyResult<()>,
    ) -> PyResult<usize> {
        let mut inputs = {
            let mut state = self.state();
            let Some(slot) = state.free.pop() else {
                return Ok(0);
            };
            let mut inputs = state.spare.pop().unwrap_or_default();
            inputs.reset(&self.manifest, slot);
            inputs
        };
        let mut builder = Builder::new(&self.manifest, self.max_memory);
        let mut taken = 0;
        while taken < count && inputs.bytes() < CHUNK_BYTES {
            instance(&mut builder, taken, &mut inputs)?;
            taken += 1;
        }
        if taken > 0
            && let Some(supply) = &self.state().supply
        {
            // If it fails, the run has ended, and its last event tells why.
            let _ = supply.send(inputs);
        }
        Ok(taken)
    }

    pub fn with_owner(self, owner: Owner, then: Option<Idle>) -> Run {
        self.state().owner = Some((owner, then));
        self
    }

    /// Waits for the next event, for a while, and looks for Ctrl-C.
    fn wait(&self, py: Python<'_>) -> PyResult<Option<Event>> {
        self.process.check("this call began")?;
        // Nothing is locked while it waits: who wants the lock may have the interpreter's.
        let Some(events) = self.state().events.take() else {
            return Err(PyRuntimeError::new_err(
                "the run has not begun, or another thread waits for it",
            ));
        };
        let (event, events) = detached(py, move || (events.recv_timeout(LOOK), events));
        self.state().events = Some(events);
        py.check_signals()?;
        match event {
            Ok(event) => Ok(Some(event)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(owner_ended()),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }
}

#[pymethods]
impl Run {
    /// Instances that should be added at once.
    #[getter]
    fn chunk(&self) -> usize {
        self.state().count
    }

    /// Whether there is room for a chunk.
    #[getter]
    fn has_room(&self) -> bool {
        !self.state().free.is_empty()
    }

    #[getter]
    fn has_ended(&self) -> bool {
        self.state().has_ended
    }

    /// Statistics of the run, as JSON, when it has ended.
    #[getter]
    fn stats(&self) -> String {
        self.state().stats.clone()
    }

    #[getter]
    fn explanation(&self) -> Option<String> {
        self.state().explanation.clone()
    }

    /// The gradients of a run that computed them, when it has ended: by parameter its name and its numbers,
    /// and by instance its number, the numbers of all tensors of floats, and the shape of each.
    fn gradients<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(gradients) = self.state().gradients.take() else {
            return Ok(None);
        };
        let bytes = |numbers: &[f32]| {
            let bytes: Vec<u8> = numbers.iter().flat_map(|own| own.to_le_bytes()).collect();
            PyByteArray::new(py, &bytes)
        };
        let of_params = gradients.of_params.iter();
        let of_params: Vec<_> = of_params
            .map(|(name, gradient)| (name, bytes(gradient)))
            .collect();
        let of_inputs = gradients.of_inputs.iter();
        let of_inputs: Vec<_> = of_inputs
            .map(|(number, flat)| (*number, bytes(&flat.numbers), &flat.shapes))
            .collect();
        let both = (of_params, of_inputs).into_pyobject(py)?;
        Ok(Some(both.into_any()))
    }

    /// Builds a chunk of instances; `number` is that of the first, from 0. How many it took: not all
    /// where they need much memory.
    fn add(&self, py: Python<'_>, instances: &Bound<'_, PyList>, number: u64) -> PyResult<usize> {
        let mut objects = Objects::new(py, &self.types, self.max_memory);
        self.build(instances.len(), |builder, place, inputs| {
            let instance = instances.get_item(place)?;
            // An id is counted from 1, as the lines of a file are.
            let id = number + place as u64 + 1;
            objects.instance(builder, &instance, id, inputs)
        })
    }

    /// Builds a chunk of instances from the one of that number on; how many it took.
    fn add_flat(&self, instances: &Flat, number: usize) -> PyResult<usize> {
        let instances = instances.instances(&self.manifest)?;
        let count = instances.count().saturating_sub(number).min(self.chunk());
        self.build(count, |builder, place, inputs| {
            instances.build(builder, number + place, inputs);
            Ok(())
        })
    }

    /// There are no more instances.
    fn end(&self) {
        let mut state = self.state();
        (state.supply, state.fed) = (None, None);
    }

    /// Gives the run up, in the middle of what is being computed.
    fn cancel(&self) {
        self.interrupt.set();
        self.end();
    }

    /// Takes what there is to take; if `may_wait`, at least one event. Results since the last time, each a
    /// tuple of numbers, ids, errors and columns.
    fn take<'py>(&self, py: Python<'py>, may_wait: bool) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let mut must_wait = may_wait;
        while !self.has_ended() {
            let event = match self.state().events.as_ref().map(Receiver::try_recv) {
                Some(Ok(event)) => Some(event),
                _ => None,
            };
            let event = match event {
                Some(event) => event,
                None if !must_wait => break,
                None => match self.wait(py)? {
                    Some(event) => event,
                    None => continue,
                },
            };
            must_wait = false;
            self.state().take(py, event)?;
        }
        let results = std::mem::take(&mut self.state().results);
        results
            .into_iter()
            .map(|columns| portion(py, columns))
            .collect()
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.cancel();
    }
}

impl State {
    fn take(&mut self, py: Python<'_>, event: Event) -> PyResult<()> {
        match event {
            Event::Begun { count, slots } => {
                self.count = count;
                self.free = match slots {
                    1 => vec![0; AHEAD],
                    slots => (0..slots).rev().collect(),
                };
            }
            Event::Used(inputs) => {
                self.free.push(inputs.chunk());
                self.spare.push(inputs);
            }
            Event::Results(columns) => self.results.push(columns),
            Event::Ended(ended) => {
                self.has_ended = true;
                (self.supply, self.fed) = (None, None);
                if let Some((owner, Some(idle))) = self.owner.take() {
                    locked(&idle).push(owner);
                }
                let Ended {
                    stats,
                    explanation,
                    gradients,
                } = ended.map_err(|error| exception(py, &error))?;
                self.gradients = gradients;
                let text = |error: serde_json::Error| PyRuntimeError::new_err(error.to_string());
                self.stats = serde_json::to_string(&stats).map_err(text)?;
                let explanation = explanation.as_ref().map(serde_json::to_string);
                self.explanation = explanation.transpose().map_err(text)?;
            }
        }
        Ok(())
    }
}

/// Results as objects: numbers, ids, errors by place, and the bytes, words and ends of each column.
pub fn portion<'py>(py: Python<'py>, columns: Columns) -> PyResult<Bound<'py, PyAny>> {
    let words = |words: &mut dyn Iterator<Item = u64>| {
        let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
        PyByteArray::new(py, &bytes)
    };
    let done = &columns.instances;
    let numbers = words(&mut done.iter().map(|done| done.number));
    let ids = PyList::new(py, done.iter().map(|done| &*done.id))?;
    let errors: Vec<(usize, &str, String)> = done
        .iter()
        .enumerate()
        .filter_map(|(place, done)| {
            let error = done.error.as_ref()?;
            Some((place, error.kind, in_python(&error.message)))
        })
        .collect();
    let columns: Vec<_> = columns
        .columns
        .iter()
        .map(|column| {
            (
                PyByteArray::new(py, &column.bytes),
                words(&mut column.words.iter().copied()),
                words(&mut column.ends.iter().flatten().map(|end| *end as u64)),
            )
        })
        .collect();
    Ok((numbers, ids, errors, columns)
        .into_pyobject(py)?
        .into_any())
}
