//! An engine for instances that come one at a time, from an event loop of Python.
//!
//! The engine's thread never touches the interpreter: it leaves answers in a list and writes a byte into a
//! pair of sockets, whose other end the event loop watches.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use cohort_runtime::abi::manifest::Manifest;
use cohort_runtime::io::input::{Builder, Inputs};
use cohort_runtime::locks::locked;
use cohort_runtime::serving::{Answer, Engine as Serving, Failure, Full, Key, Options, Settings};
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::detached::detached;
use crate::errors::{exception, in_python};
use crate::objects::Objects;
use crate::owner::Parts;
use crate::process::Process;
use crate::run::portion;
use crate::types::Types;

/// Longest time that a deadline may be away.
const MOST_SECONDS: f64 = 1e9;

/// Answers that nobody has taken.
struct Finished {
    answers: Mutex<Vec<(u64, Answer)>>,
    told: UnixStream,
}

impl Finished {
    fn put(&self, number: u64, answer: Answer) {
        let mut answers = locked(&self.answers);
        let was_empty = answers.is_empty();
        answers.push((number, answer));
        drop(answers);
        if was_empty {
            // If it is full, the other end is told already.
            let _ = (&self.told).write(&[0]);
        }
    }
}

/// An instance that is built and not submitted yet.
#[pyclass(frozen, module = "cohort._cohort")]
pub struct Built(Mutex<Option<Inputs>>);

#[pyclass(frozen, module = "cohort._cohort")]
pub struct Engine {
    serving: Mutex<Option<Serving>>,
    manifest: Arc<Manifest>,
    types: Arc<Types>,
    max_memory: u64,
    finished: Arc<Finished>,
    watched: UnixStream,
    /// Of instances without an answer, by their number.
    keys: Mutex<HashMap<u64, Key>>,
    process: Process,
}

impl Engine {
    pub fn start(
        py: Python<'_>,
        parts: Parts,
        types: Arc<Types>,
        settings: Settings,
        threads: usize,
    ) -> PyResult<Engine> {
        let pair = UnixStream::pair().and_then(|(watched, told)| {
            watched.set_nonblocking(true)?;
            told.set_nonblocking(true)?;
            Ok((watched, told))
        });
        let (watched, told) = pair.map_err(|error| PyOSError::new_err(error.to_string()))?;
        let max_memory = parts.config.limits.max_memory;
        let session = move || {
            let mut session = parts.session()?;
            session.set_threads(threads)?;
            Ok(session)
        };
        let started = detached(py, move || Serving::start(settings, session));
        let serving = started.map_err(|error| exception(py, &error))?;
        Ok(Engine {
            manifest: serving.manifest().clone(),
            serving: Mutex::new(Some(serving)),
            types,
            max_memory,
            finished: Arc::new(Finished {
                answers: Mutex::default(),
                told,
            }),
            watched,
            keys: Mutex::default(),
            process: Process::this(),
        })
    }
}

#[pymethods]
impl Engine {
    /// What becomes readable when there are answers.
    fn fileno(&self) -> i32 {
        self.watched.as_raw_fd()
    }

    /// Builds an instance, or its error.
    fn build(&self, py: Python<'_>, instance: &Bound<'_, PyAny>, number: u64) -> PyResult<Built> {
        let mut inputs = Inputs::default();
        inputs.reset(&self.manifest, 0);
        let mut builder = Builder::new(&self.manifest, self.max_memory);
        let mut objects = Objects::new(py, &self.types, self.max_memory);
        objects.instance(&mut builder, instance, number, &mut inputs)?;
        Ok(Built(Mutex::new(Some(inputs))))
    }

    /// Submits an instance; whether there was room for it. The deadline is in seconds from now.
    fn submit(
        &self,
        built: &Built,
        number: u64,
        priority: i32,
        deadline: Option<f64>,
    ) -> PyResult<bool> {
        self.process.check("this engine was made")?;
        let serving = locked(&self.serving);
        let Some(serving) = &*serving else {
            return Err(PyRuntimeError::new_err("the engine is closed"));
        };
        let mut place = locked(&built.0);
        let instance = (place.take())
            .ok_or_else(|| PyRuntimeError::new_err("this instance was submitted before"))?;
        let seconds = deadline.map(|seconds| seconds.clamp(0.0, MOST_SECONDS));
        let options = Options {
            priority,
            deadline: seconds.map(|seconds| Instant::now() + Duration::from_secs_f64(seconds)),
        };
        let finished = self.finished.clone();
        let then = Box::new(move |answer| finished.put(number, answer));
        match serving.submit_then(instance, options, then) {
            Ok(key) => {
                locked(&self.keys).insert(number, key);
                Ok(true)
            }
            Err(Full(instance)) => {
                *place = Some(*instance);
                Ok(false)
            }
        }
    }

    /// Gives an instance up.
    fn cancel(&self, number: u64) -> bool {
        let key = locked(&self.keys).get(&number).copied();
        match (key, &*locked(&self.serving)) {
            (Some(key), Some(serving)) => serving.cancel(key),
            _ => false,
        }
    }

    /// The answers since the last time: the number, and results as a run has them, or the kind and message
    /// of an error.
    fn take<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let mut bytes = [0; 64];
        while (&self.watched)
            .read(&mut bytes)
            .is_ok_and(|count| count == bytes.len())
        {}
        let answers = std::mem::take(&mut *locked(&self.finished.answers));
        let mut taken = Vec::with_capacity(answers.len());
        for (number, answer) in answers {
            locked(&self.keys).remove(&number);
            taken.push(match answer {
                Ok(columns) => (number, portion(py, columns)?)
                    .into_pyobject(py)?
                    .into_any(),
                Err(Failure::Instance(error)) => {
                    let error = (error.kind, in_python(&error.message));
                    (number, py.None(), error).into_pyobject(py)?.into_any()
                }
                Err(Failure::Engine(error)) => {
                    let error = exception(py, &error);
                    (number, py.None(), error).into_pyobject(py)?.into_any()
                }
            });
        }
        Ok(taken)
    }

    /// By name: what waits, what runs, and what was done.
    fn stats(&self) -> PyResult<HashMap<&'static str, u64>> {
        let serving = locked(&self.serving);
        let closed = || PyValueError::new_err("the engine is closed");
        let stats = serving.as_ref().ok_or_else(closed)?.stats();
        Ok(HashMap::from([
            ("queued", stats.queued as u64),
            ("running", stats.running as u64),
            ("done", stats.done),
            ("failed", stats.failed),
            ("cancelled", stats.cancelled),
            ("late", stats.late),
            ("refused", stats.refused),
            ("launches", stats.launches),
            ("rows", stats.rows),
        ]))
    }

    /// Cancels what is left; the thread ends when what it computes is computed.
    fn close(&self) {
        locked(&self.serving).take();
    }
}
