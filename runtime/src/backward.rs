//! Gradients: the calls that instances made, gone over again from the last to the first.
//!
//! What was recorded of an instance is its *tape*: its calls in order, which is an order of need. Once a
//! batch of instances is done, each tape is gone over backwards. A call's *gradient function*, compiled
//! beside the program, takes what the call took, its results and their cotangents, and *records* the
//! calls that compute the cotangents of its operands ([`record`]). So backward is batched
//! like anything else: by the same recorder, schedulers and kernels.
//!
//! The cotangents of a value come from those that read it. None: nothing is recorded for it. One: that is
//! it. Several: they are added up, pair by pair in the order of recording; the last addition is the
//! gradient function's own where it has a form for that. All of that is one instance's own, so its
//! cotangents depend on nothing else, to the bit. Where it begins, at the loss or at all that
//! the instance gave, tell [`cotangents`]; where it ends, at what the instance took,
//! [`inputs`].
//!
//! The gradient of a parameter is no call's. Each use of one is a *site* ([`cohort_abi::manifest::Site`]),
//! and when all is computed each site is summed up over the rows of all instances, in the order of the
//! input and of recording: one chain of multiply-adds an element ([`sums`]), which the next
//! batch goes on with. So it depends neither on how instances fall into batches nor on threads.

mod cotangents;
mod inputs;
mod lines;
mod outer;
mod readers;
mod record;
mod recording;
mod sums;

use std::time::Instant;

use cohort_abi::manifest::{GradientFunction, HelperKind, Manifest, OfCall, Type};
use cohort_abi::{EntryFn, Handle};

use crate::error::Error;
use crate::execute::{Executor, Generation, Wanted};
use crate::failure::{InstanceError, Stop};
use crate::instance::{Machine, Ticket};
use crate::io::feed::Feed;
use crate::memory::inputs::{InputBlock, InputRows};
use crate::program::code::Program;
use crate::program::numbering::Numbering;
use crate::program::slot::slot_count;
use crate::recorder::Stopped;
use crate::report::stats::GradientStats;
use crate::schedule::{Policy, Scheduler};
use crate::threads::fiber::{Event, Fiber, Job};

pub use cotangents::{Cotangent, CotangentLines, Cotangents, Numbers};
use cotangents::{Seed, weigh};
pub use inputs::{Flat, InputGradient, InputGradients};
pub use sums::Sums;

/// What one instance left to go back over.
#[derive(Debug)]
pub(crate) struct Taped {
    /// Its chunk of inputs must stay until then.
    pub ticket: Ticket,
    pub tape: Vec<u64>,
    pub seeds: Vec<Seed>,
}

/// What is asked of a run, besides the gradients of parameters.
#[derive(Default)]
pub struct Question {
    /// The cotangents of the outputs; without them the entry gives a loss.
    pub cotangents: Option<Box<dyn Cotangents>>,
    /// Where the gradients of inputs go.
    pub inputs: Option<Box<dyn InputGradients>>,
}

/// The functions that backward calls.
pub(crate) struct Functions {
    /// By kernel.
    gradients: Vec<Option<Gradient>>,
    /// By kernel: those that take some cotangents in two parts.
    in_parts: Vec<Option<Gradient>>,
    /// By row pool.
    helpers: Vec<Helpers>,
    one: EntryFn,
}

struct Gradient {
    /// Of those in the manifest.
    number: usize,
    /// The one whose sites its rows are noted for.
    sites: usize,
    function: EntryFn,
    /// Where the slots of each argument begin, and of each result, and where they end.
    argument_slots: Vec<usize>,
    result_slots: Vec<usize>,
    /// What it takes of the cotangent of each of the kernel's results.
    takes: Vec<Takes>,
}

/// What a gradient function takes of a cotangent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    Nothing,
    Whole,
    Parts,
}

impl Takes {
    fn of(function: &GradientFunction, result: usize) -> Takes {
        let takes = |of| (function.arguments.iter()).any(|argument| argument.of == of);
        match (
            takes(OfCall::Addend(result)),
            takes(OfCall::Cotangent(result)),
        ) {
            (true, _) => Takes::Parts,
            (false, true) => Takes::Whole,
            (false, false) => Takes::Nothing,
        }
    }
}

/// Where the slots of each of these types begin, and the end.
fn slots_of<'m>(types: impl Iterator<Item = &'m Type>) -> Vec<usize> {
    let mut end = 0;
    let ends = types.map(|ty| {
        end += slot_count(ty);
        end
    });
    std::iter::once(0).chain(ends).collect()
}

#[derive(Clone, Copy, Default)]
struct Helpers {
    add: Option<EntryFn>,
    add_runs: Option<EntryFn>,
    stack: Option<EntryFn>,
    zero: Option<EntryFn>,
}

/// Gradients of one session's runs.
pub struct Backward {
    functions: Functions,
    fiber: Fiber,
    recording: recording::Recording,
    sums: Sums,
    question: Question,
    /// The cotangents of the instances that are to be gone back over, as rows.
    weights: InputRows,
    /// The chunk of inputs that these rows are taken for.
    chunk: usize,
    /// By what the calls of backward are put together, if not as those of forward.
    scheduler: Option<Box<dyn Scheduler>>,
    stats: GradientStats,
}

impl Backward {
    /// Of a program that was compiled for it, whose calls are scheduled like that.
    ///
    /// By depth, backward would take many more launches than forward: what several calls read lies as deep as
    /// the sum of their cotangents, so like calls of different instances lie apart. It looks ahead instead.
    pub fn new(
        program: &Program,
        stack_bytes: u64,
        policy: Option<Policy>,
    ) -> Result<Backward, Error> {
        Ok(Backward {
            functions: Functions::find(program)?,
            fiber: Fiber::new(stack_bytes)?,
            recording: recording::Recording::default(),
            sums: Sums::new(program.manifest()),
            question: Question::default(),
            weights: InputRows::default(),
            chunk: 0,
            scheduler: matches!(policy, Some(Policy::Auto | Policy::Depth))
                .then(|| Policy::Lookahead.scheduler()),
            stats: GradientStats::default(),
        })
    }

    /// From now on this is asked of runs.
    pub fn ask(&mut self, question: Question) {
        self.question = question;
    }

    /// A run begins, whose instances have `chunks` chunks of inputs; the next one is that of cotangents.
    pub(crate) fn begin(&mut self, manifest: &Manifest, chunks: usize) -> Result<(), Error> {
        if self.question.cotangents.is_none() && loss_pool(manifest).is_none() {
            return Err(Error::Usage(
                "there is no loss: the entry must give one f32, or a tuple whose first part is one; or \
                 say by cotangents what its output weighs"
                    .to_owned(),
            ));
        }
        let of_parameters = (manifest.gradients.as_ref()).is_some_and(|all| all.parameters_only);
        if self.question.inputs.is_some() && of_parameters {
            return Err(Error::Usage(
                "the program was compiled for gradients of parameters, not of inputs".to_owned(),
            ));
        }
        self.chunk = chunks;
        self.weights.row_pools.clear();
        let row_pools = manifest.row_pools.len();
        self.weights
            .row_pools
            .resize_with(row_pools, InputBlock::default);
        Ok(())
    }

    /// Where the backward of an instance begins, whose results these are, or why it does not.
    ///
    /// # Safety
    ///
    /// The slots are what the program's entry left for an instance of the executor's last flush, and
    /// everything they point to is still there.
    pub(crate) unsafe fn seeds(
        &mut self,
        manifest: &Manifest,
        executor: &Executor,
        (number, id): (u64, &str),
        results: *const u64,
    ) -> Result<Result<Vec<Seed>, InstanceError>, Error> {
        let Some(cotangents) = &mut self.question.cotangents else {
            let lost = || Error::Internal("no loss".to_owned());
            let pool = loss_pool(manifest).ok_or_else(lost)?;
            // SAFETY: it is the first slot of the results.
            let handle = Handle(unsafe { results.read() });
            let loss = f32::from_bits(executor.decision(handle, pool)?);
            return Ok(match loss.is_finite() {
                true => Ok(vec![Seed {
                    handle,
                    rows: 1,
                    cotangent: None,
                }]),
                false => Err(InstanceError::not_finite("the loss", f64::from(loss))),
            });
        };
        let cotangent = match cotangents.of(number, id) {
            Ok(cotangent) => cotangent,
            Err(error) => return Ok(Err(error)),
        };
        // SAFETY: the caller's promise.
        let weighed = match unsafe { weigh(manifest, executor, results, cotangent)? } {
            Ok(weighed) => weighed,
            Err(error) => return Ok(Err(error)),
        };
        let mut seeds = Vec::with_capacity(weighed.tensors.len());
        for (tensor, first) in weighed.tensors {
            let Wanted { handle, pool, rows } = tensor;
            let count = (rows * manifest.row_pools[pool].row_elements()) as usize;
            let block = &mut self.weights.row_pools[pool];
            let position = u32::try_from(block.rows);
            let position = position.map_err(|_| Error::BatchTooLarge(TOO_MANY.to_owned()))?;
            let numbers = weighed.numbers[first..first + count].iter();
            numbers.for_each(|number| block.extend(&number.to_le_bytes()));
            block.rows += rows;
            let bucket = Numbering::of(manifest).input(self.chunk, pool);
            seeds.push(Seed {
                handle,
                rows,
                cotangent: Some(Handle::new(bucket as u32, 0, position)),
            });
        }
        Ok(Ok(seeds))
    }

    /// An instance has no gradient.
    pub(crate) fn put_error(
        &mut self,
        number: u64,
        id: &str,
        error: &InstanceError,
    ) -> Result<(), Error> {
        match &mut self.question.inputs {
            Some(inputs) => inputs.put(number, id, Err(error)),
            None => Ok(()),
        }
    }

    /// The run is over.
    pub(crate) fn flush(&mut self) -> Result<(), Error> {
        match &mut self.question.inputs {
            Some(inputs) => inputs.flush(),
            None => Ok(()),
        }
    }

    /// The gradients so far, of the sum of the losses of all instances.
    pub fn sums(&self) -> &Sums {
        &self.sums
    }

    /// Begins anew.
    pub fn clear(&mut self) {
        self.sums.clear();
    }

    /// What was done since [`Backward::clear_stats`].
    pub fn stats(&self) -> GradientStats {
        self.stats
    }

    /// Sets what [`Backward::stats`] counts to zero.
    pub fn clear_stats(&mut self) {
        self.stats = GradientStats::default();
    }

    /// Goes back over instances whose calls are all computed and still there, and forgets what that
    /// computed. Where there is too little memory or time for all at once, it goes over half of them, and so
    /// on: sums go on from part to part.
    pub(crate) fn run(
        &mut self,
        machine: &mut Machine<'_>,
        feed: &Feed<'_>,
        taped: &mut [Taped],
        generation: &mut Generation,
    ) -> Result<(), Error> {
        let begin = Instant::now();
        taped.sort_by_key(|instance| instance.ticket.number);
        machine.executor.put_inputs(self.chunk, &self.weights)?;
        let mut left: &[Taped] = taped;
        let mut most = left.len();
        while !left.is_empty() {
            let (part, rest) = left.split_at(most.min(left.len()));
            let late = machine.recorder.limits().max_time;
            let late = late.and_then(|time| Instant::now().checked_add(time));
            let done = self.run_part(machine, feed, part, generation, late);
            if done.is_err() {
                machine.recorder.give_up_calls();
            }
            machine.executor.release(generation);
            machine.recorder.recycle(&mut generation.buckets);
            match done {
                Ok(()) => left = rest,
                Err(error) if error.is_of_batch() && part.len() > 1 => most = part.len() / 2,
                Err(error) if error.is_of_batch() => {
                    let Ticket { chunk, index, .. } = part[0].ticket;
                    let id = feed.inputs(chunk)?.id(index);
                    return Err(Error::Usage(match error {
                        Error::Late => format!(
                            "the gradient of the instance {id} takes longer than --max-seconds allows"
                        ),
                        error => format!(
                            "not enough memory for the gradient of the instance {id}: {error}"
                        ),
                    }));
                }
                Err(error) => return Err(error),
            }
        }
        machine.executor.drop_inputs(self.chunk);
        for block in &mut self.weights.row_pools {
            block.truncate(0, 0);
        }
        self.stats.seconds += begin.elapsed().as_secs_f64();
        Ok(())
    }

    /// Goes back over instances together.
    fn run_part(
        &mut self,
        machine: &mut Machine<'_>,
        feed: &Feed<'_>,
        taped: &[Taped],
        generation: &mut Generation,
        late: Option<Instant>,
    ) -> Result<(), Error> {
        let begin = Instant::now();
        self.recording.begin(machine.manifest);
        for instance in taped.iter() {
            let inputs = match self.question.inputs {
                Some(_) => {
                    let arguments = arguments(feed, instance.ticket)?;
                    // SAFETY: the feed keeps them until the instance is done.
                    unsafe { inputs::tensors(machine.manifest, machine.executor, arguments)? }
                }
                None => Vec::new(),
            };
            let mut job = record::Instance {
                manifest: machine.manifest,
                functions: &self.functions,
                recording: &mut self.recording,
                taped: instance,
                inputs: &inputs,
                problem: None,
            };
            (machine.recorder).begin_backward(self.fiber.stack_limit(), late);
            let arguments = (&raw mut job).cast::<u64>();
            let job_of_fiber = Job {
                entry: record::entry,
                host: machine.recorder.host(),
                arguments,
                results: std::ptr::null_mut(),
            };
            // SAFETY: the recorder is touched by nothing else until the fiber gives control back, and
            // `record::entry` takes such an instance for its arguments.
            let signal = unsafe { self.fiber.run(job_of_fiber)? };
            if let Some(problem) = job.problem.take() {
                return Err(problem);
            }
            match signal.event() {
                Event::Finished => machine.recorder.finish_instance(),
                Event::Stopped => {
                    let (stopped, _) = machine.recorder.abandon_instance();
                    return Err(match stopped {
                        Stopped::Broken(problem) => Error::Internal(problem),
                        Stopped::Interrupted => Error::Interrupted,
                        Stopped::Failure(Stop::LATE) => Error::Late,
                        Stopped::BatchFull | Stopped::OutOfMemory | Stopped::Failure(_) => {
                            Error::BatchTooLarge("the calls of its backward".to_owned())
                        }
                    });
                }
                Event::Forced { .. }
                | Event::Shown { .. }
                | Event::Forked(_)
                | Event::Joined { .. }
                | Event::Awaited { .. } => {
                    let problem = "a decision in the backward of a program";
                    return Err(Error::Internal(problem.to_owned()));
                }
            }
        }
        self.stats.record_seconds += begin.elapsed().as_secs_f64();
        machine.executor.exchange_scheduler(&mut self.scheduler);
        let flushed = machine
            .executor
            .flush(machine.recorder, generation, Instant::now(), late);
        machine.executor.exchange_scheduler(&mut self.scheduler);
        flushed?;
        machine.recorder.flushed();
        if machine.executor.is_on_device() {
            let read = self.recording.read(machine.manifest);
            machine.executor.fetch(&read)?;
        }
        let begin = Instant::now();
        self.stats.sum_flops += self.recording.sum_up(machine, &mut self.sums)?;
        self.stats.sum_seconds += begin.elapsed().as_secs_f64();
        if let Some(sink) = &mut self.question.inputs {
            for (instance, cotangents) in taped.iter().zip(&self.recording.inputs) {
                let Ticket {
                    number,
                    chunk,
                    index,
                } = instance.ticket;
                let arguments = arguments(feed, instance.ticket)?;
                // SAFETY: the feed keeps them until the instance is done, and backward was just computed.
                let gradient = unsafe {
                    InputGradient::new(machine.manifest, machine.executor, arguments, cotangents)
                };
                sink.put(number, feed.inputs(chunk)?.id(index), Ok(gradient))?;
            }
        }
        Ok(())
    }
}

const TOO_MANY: &str =
    "more cotangents in one batch than a row number counts; try a smaller --batch";

/// The slots of an instance's arguments; it has some.
fn arguments<'f>(feed: &'f Feed<'_>, ticket: Ticket) -> Result<&'f [u64], Error> {
    let arguments = feed.inputs(ticket.chunk)?.arguments(ticket.index);
    let (slots, _) = arguments.map_err(|error| Error::Internal(error.message.clone()))?;
    Ok(slots)
}

impl Functions {
    fn find(program: &Program) -> Result<Functions, Error> {
        let manifest = program.manifest();
        let gradients = manifest
            .gradients
            .as_ref()
            .ok_or_else(|| Error::Usage("the program was not compiled for gradients".to_owned()))?;
        let find = |symbol: &str| {
            let address = program
                .code
                .symbol(symbol)
                .filter(|address| !address.is_null());
            let address = address.ok_or_else(|| Error::MissingSymbol {
                symbol: symbol.to_owned(),
                purpose: "gradients".to_owned(),
            })?;
            // SAFETY: `CompiledCode` promises that the symbol is an `EntryFn`, as the manifest says.
            Ok(unsafe { std::mem::transmute::<*const (), EntryFn>(address) })
        };
        let none = || -> Vec<Option<Gradient>> { manifest.kernels.iter().map(|_| None).collect() };
        let (mut of_kernel, mut in_parts) = (none(), none());
        for (number, gradient) in gradients.functions.iter().enumerate() {
            if gradient.refused.is_none() {
                let function = find(&gradient.symbol)?;
                let arguments = gradient.arguments.iter().map(|argument| &argument.ty);
                let whole = gradients.whole(gradient).unwrap_or(number);
                let own = match whole == number {
                    true => &mut of_kernel[gradient.kernel],
                    false => &mut in_parts[gradient.kernel],
                };
                *own = Some(Gradient {
                    number,
                    sites: whole,
                    function,
                    argument_slots: slots_of(arguments),
                    result_slots: slots_of(gradient.results.iter().map(|result| &result.ty)),
                    takes: (0..manifest.kernels[gradient.kernel].results.len())
                        .map(|result| Takes::of(gradient, result))
                        .collect(),
                });
            }
        }
        let mut helpers = vec![Helpers::default(); manifest.row_pools.len()];
        let mut one = None;
        for helper in &gradients.helpers {
            let function = Some(find(&helper.symbol)?);
            let own = &mut helpers[helper.pool];
            match helper.kind {
                HelperKind::Add => own.add = function,
                HelperKind::AddRuns => own.add_runs = function,
                HelperKind::Stack => own.stack = function,
                HelperKind::Zero => own.zero = function,
                HelperKind::One => one = function,
            }
        }
        let one = one.ok_or_else(|| Error::Internal("no cotangent of a loss".to_owned()))?;
        Ok(Functions {
            gradients: of_kernel,
            in_parts,
            helpers,
            one,
        })
    }
}

/// The row pool of the loss that a program gives, if it gives one; its slot is the first.
fn loss_pool(manifest: &Manifest) -> Option<usize> {
    let first = match &manifest.result {
        Type::Tuple(parts) => parts.first()?,
        whole => whole,
    };
    let Type::Tensor { pool } = first else {
        return None;
    };
    let described = manifest.row_pools.get(*pool)?;
    let is_number = described.elem == cohort_abi::manifest::Elem::F32 && described.shape.is_empty();
    is_number.then_some(*pool)
}
