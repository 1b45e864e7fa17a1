//! The thread that has a session: it loads the program and does one run after another.

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};

use cohort_runtime::abi::manifest::Manifest;
use cohort_runtime::backward::{
    Cotangent, Cotangents, Flat, InputGradient, InputGradients, Numbers, Question,
};
use cohort_runtime::io::feed::{Supplied, Supply};
use cohort_runtime::io::input::Inputs;
use cohort_runtime::io::output::columns::{Collector, Columns};
use cohort_runtime::late::Interrupt;
use cohort_runtime::report::explain::Explanation;
use cohort_runtime::threads::thread::SessionThread;
use cohort_runtime::{Artifact, Batch, Config, Error, InstanceError, Session, Stats, Weights};
use pyo3::prelude::*;

use crate::detached::detached;
use crate::errors::{exception, owner_ended};
use crate::run::LOOK;

/// What a session is made of.
#[derive(Clone)]
pub struct Parts {
    /// For messages.
    pub path: PathBuf,
    pub artifact: Arc<[u8]>,
    pub weights: WeightsFrom,
    pub config: Config,
}

#[derive(Clone)]
pub enum WeightsFrom {
    None,
    File(PathBuf),
    Memory(Arc<[u8]>),
}

impl Parts {
    pub fn session(&self) -> Result<Session, Error> {
        let program = Artifact::open(&self.path, &self.artifact)?;
        Session::new(program, &self.weights.open()?, self.config)
    }
}

impl WeightsFrom {
    pub fn open(&self) -> Result<Weights, Error> {
        match self {
            WeightsFrom::None => Ok(Weights::none()),
            WeightsFrom::File(path) => Weights::open(path),
            WeightsFrom::Memory(bytes) => Weights::from_bytes(bytes.clone()),
        }
    }
}

/// What a thread with a session is told, one after another.
enum Command {
    Run(Job),
    /// Unless the flag is up by then; it is afterwards.
    SetWeights(WeightsFrom, Arc<AtomicBool>, Sender<Result<(), Error>>),
}

/// Instances to run.
pub struct Job {
    pub batch: usize,
    pub threads: usize,
    /// Whether to explain the run.
    pub is_surveyed: bool,
    /// Which random numbers instances have.
    pub draw: u64,
    /// What gradients are wanted, of a session that computes them.
    pub gradients: Option<Wanted>,
    pub supply: Receiver<Inputs>,
    pub events: Sender<Event>,
    pub interrupt: Interrupt,
}

/// What is wanted of a run's gradients.
pub struct Wanted {
    /// By the number of the instance, for each part of its output what weighs its floats; without, the
    /// program gives a loss.
    pub cotangents: Option<Vec<Vec<Option<Numbers>>>>,
    pub of_inputs: bool,
}

/// The gradients of a run.
#[derive(Default)]
pub struct Gradients {
    /// By parameter: its name, and its gradient.
    pub of_params: Vec<(String, Vec<f32>)>,
    /// By the number of the instance.
    pub of_inputs: Vec<(u64, Flat)>,
}

/// What a run gives at its end.
pub struct Ended {
    pub stats: Stats,
    pub explanation: Option<Explanation>,
    pub gradients: Option<Gradients>,
}

/// What a run tells, in this order but for the chunks and results.
pub enum Event {
    /// It begins: instances of a chunk, and slots for chunks.
    Begun {
        count: usize,
        slots: usize,
    },
    /// All instances of a chunk are out.
    Used(Inputs),
    Results(Columns),
    Ended(Box<Result<Ended, Error>>),
}

/// The way to the thread; it ends when this is dropped and its runs are done.
pub struct Owner {
    commands: Sender<Command>,
    /// It ends when there can be no command any more.
    _thread: SessionThread,
}

impl Owner {
    /// Starts the thread and waits until it has loaded everything.
    pub fn start(parts: Parts) -> Result<(Owner, Arc<Manifest>), Error> {
        let (commands, todo) = channel();
        let (loaded, is_loaded) = channel();
        let thread = SessionThread::start("cohort-model", move || match parts.session() {
            Ok(session) => {
                let manifest = Arc::new(session.program().manifest().clone());
                if loaded.send(Ok(manifest.clone())).is_ok() {
                    own(session, &manifest, parts.config, &todo);
                }
            }
            // Nobody waits if that fails.
            Err(error) => drop(loaded.send(Err(error))),
        })?;
        let ended = |_| Error::Internal("the thread of the model ended".to_owned());
        let manifest = is_loaded.recv().map_err(ended)??;
        let owner = Owner {
            commands,
            _thread: thread,
        };
        Ok((owner, manifest))
    }

    /// Whether the thread is still there to take the job.
    pub fn submit(&self, job: Job) -> bool {
        self.commands.send(Command::Run(job)).is_ok()
    }

    /// Replaces the weights, when the runs from before are done. Where there is an error, they are those from before;
    /// so with Ctrl-C, which is looked for until they begin to be replaced.
    pub fn set_weights(&self, py: Python<'_>, weights: WeightsFrom) -> PyResult<()> {
        let has_begun = Arc::new(AtomicBool::new(false));
        let (told, mut is_set) = channel();
        let command = Command::SetWeights(weights, has_begun.clone(), told);
        self.commands.send(command).map_err(|_| owner_ended())?;
        loop {
            let (set, again) = detached(py, move || (is_set.recv_timeout(LOOK), is_set));
            is_set = again;
            match set {
                Ok(set) => return set.map_err(|error| exception(py, &error)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(owner_ended()),
            }
            if has_begun.load(Ordering::SeqCst) {
                continue;
            }
            if let Err(interrupt) = py.check_signals() {
                if !has_begun.swap(true, Ordering::SeqCst) {
                    return Err(interrupt);
                }
                // It has begun in this moment; Ctrl-C comes again when it is done.
                py.import("_thread")?.call_method0("interrupt_main")?;
            }
        }
    }
}

fn own(mut session: Session, manifest: &Arc<Manifest>, config: Config, todo: &Receiver<Command>) {
    for command in todo {
        // Sending fails where nobody waits any more.
        match command {
            Command::Run(mut job) => {
                let ended = run(&mut session, manifest, config, job.take_wanted(), &job);
                let _ = job.events.send(Event::Ended(Box::new(ended)));
            }
            Command::SetWeights(_, has_begun, _) if has_begun.swap(true, Ordering::SeqCst) => {}
            Command::SetWeights(weights, _, told) => {
                let set = weights
                    .open()
                    .and_then(|weights| session.set_weights(&weights));
                let _ = told.send(set);
            }
        }
    }
}

fn run(
    session: &mut Session,
    manifest: &Arc<Manifest>,
    config: Config,
    wanted: Option<Wanted>,
    job: &Job,
) -> Result<Ended, Error> {
    session.set_batch(Batch::InFlight(job.batch))?;
    session.set_threads(job.threads)?;
    session.set_draw(job.draw);
    session.set_interrupt(&job.interrupt);
    let of_inputs = Rc::new(RefCell::new(Vec::new()));
    let is_differentiated = wanted.is_some();
    if let Some(wanted) = wanted {
        session.clear_gradients();
        session.ask(question(wanted, &of_inputs))?;
    }
    if job.is_surveyed {
        session.survey();
    }
    let (count, slots) = session.chunks();
    let _ = job.events.send(Event::Begun { count, slots });
    let events = job.events.clone();
    let interrupt = job.interrupt.clone();
    let take = move |columns| events.send(Event::Results(columns)).is_ok();
    let max_bytes = config.limits.max_memory;
    let mut sink = Collector::new(manifest.clone(), max_bytes, move |columns| {
        interrupt.check()?;
        match take(columns) {
            true => Ok(()),
            false => Err(Error::Interrupted),
        }
    });
    let mut supply = Chunks { job };
    let stats = session.run(&mut supply, &mut sink, &mut |_| {})?;
    let explanation = job.is_surveyed.then(|| session.explain(&stats)).flatten();
    let gradients = (session.gradients().filter(|_| is_differentiated)).map(|sums| Gradients {
        of_params: (manifest.params.iter().enumerate())
            .filter_map(|(number, param)| Some((param.name.clone(), sums.gradient(number)?)))
            .collect(),
        of_inputs: of_inputs.take(),
    });
    Ok(Ended {
        stats,
        explanation,
        gradients,
    })
}

impl Job {
    fn take_wanted(&mut self) -> Option<Wanted> {
        self.gradients.take()
    }
}

/// Gradients of inputs that are collected.
type OfInputs = Rc<RefCell<Vec<(u64, Flat)>>>;

fn question(wanted: Wanted, of_inputs: &OfInputs) -> Question {
    let mut question = Question::default();
    if let Some(given) = wanted.cotangents {
        question.cotangents = Some(Box::new(Given(given)));
    }
    if wanted.of_inputs {
        question.inputs = Some(Box::new(Collected(of_inputs.clone())));
    }
    question
}

/// Cotangents by the number of the instance.
struct Given(Vec<Vec<Option<Numbers>>>);

impl Cotangents for Given {
    fn of(&mut self, number: u64, _: &str) -> Result<Cotangent<'_>, InstanceError> {
        match self.0.get(number as usize) {
            Some(parts) => Ok(Cotangent::Parts(parts)),
            None => Err(InstanceError::bad_input(
                "no cotangent was given for this instance",
            )),
        }
    }
}

struct Collected(OfInputs);

impl InputGradients for Collected {
    fn put(
        &mut self,
        number: u64,
        _: &str,
        gradient: Result<InputGradient<'_>, &InstanceError>,
    ) -> Result<(), Error> {
        // Of an instance that failed the results tell.
        if let Ok(gradient) = gradient {
            self.0.borrow_mut().push((number, gradient.flat()?));
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Error> {
        Ok(())
    }
}

/// Chunks that are built elsewhere.
struct Chunks<'a> {
    job: &'a Job,
}

impl Supply for Chunks<'_> {
    fn next(&mut self, _slot: usize, may_wait: bool) -> Result<Supplied, Error> {
        if self.job.interrupt.is_set() {
            return Ok(Supplied::End);
        }
        // It is built for a slot that is free: one was given back before.
        let next = match may_wait {
            true => self
                .job
                .supply
                .recv()
                .map_err(|_| TryRecvError::Disconnected),
            false => self.job.supply.try_recv(),
        };
        Ok(match next {
            Ok(inputs) => Supplied::Instances(Box::new(inputs)),
            Err(TryRecvError::Empty) => Supplied::Later,
            Err(TryRecvError::Disconnected) => Supplied::End,
        })
    }

    fn done(&mut self, inputs: Inputs) {
        let _ = self.job.events.send(Event::Used(inputs));
    }
}
