//! Gradients: the calls that instances made, gone over again from the last to the first.
//!
//! What was recorded of an instance is its *tape*: its calls in order, which is an order of need. Once a
//! batch of instances is done, each tape is gone over backwards. A call's *gradient function*, compiled
//! beside the program, takes what the call took, its results and their cotangents, and *records* the
//! calls that compute the cotangents of its operands ([`record`](self::record)). So backward is batched
//! like anything else: by the same recorder, schedulers and kernels.
//!
//! The cotangents of a value come from those that read it. None: nothing is recorded for it. One: that is
//! it. Several: they are added up, pair by pair in the order of recording. All of that is one instance's
//! own, so its cotangents depend on nothing else, to the bit.
//!
//! The gradient of a parameter is no call's. Each use of one is a *site* ([`cohort_abi::manifest::Site`]),
//! and when all is computed each site is summed up over the rows of all instances, in the order of the
//! input and of recording: one chain of multiply-adds an element ([`sums`](self::sums)), which the next
//! batch goes on with. So it depends neither on how instances fall into batches nor on threads.

mod outer;
mod record;
mod sums;

use cohort_abi::EntryFn;
use cohort_abi::manifest::{HelperKind, Manifest, Type};

use crate::code::Program;
use crate::error::Error;
use crate::execute::{Executor, Generation};
use crate::fiber::{Event, Fiber, Job};
use crate::instance::Machine;
use crate::recorder::Stopped;

pub use sums::Sums;

/// What one instance left to go back over.
#[derive(Debug, Default)]
pub struct Taped {
    /// In the run.
    pub number: u64,
    /// The chunk of inputs that must stay until then.
    pub chunk: usize,
    pub tape: Vec<u64>,
    /// Of its loss.
    pub loss: u64,
}

/// The functions that backward calls.
pub(crate) struct Functions {
    /// By kernel.
    gradients: Vec<Option<Gradient>>,
    /// By space.
    helpers: Vec<Helpers>,
    one: EntryFn,
}

struct Gradient {
    /// Of those in the manifest.
    number: usize,
    function: EntryFn,
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
    recording: record::Recording,
    sums: Sums,
}

impl Backward {
    /// Of a program that was compiled for it, and whose result is, or begins with, one f32.
    pub fn new(program: &Program, stack_bytes: u64) -> Result<Backward, Error> {
        let functions = Functions::find(program)?;
        if loss_space(program.manifest()).is_none() {
            return Err(Error::Usage(
                "there is no loss: the entry must give one f32, or a tuple whose first part is one"
                    .to_owned(),
            ));
        }
        Ok(Backward {
            functions,
            fiber: Fiber::new(stack_bytes)?,
            recording: record::Recording::default(),
            sums: Sums::new(program.manifest()),
        })
    }

    /// The gradients so far, of the sum of the losses of all instances.
    pub fn sums(&self) -> &Sums {
        &self.sums
    }

    /// Begins anew.
    pub fn clear(&mut self) {
        self.sums.clear();
    }

    /// Goes back over instances whose calls are all computed and still there; gives what that computed.
    pub(crate) fn run(
        &mut self,
        machine: &mut Machine<'_>,
        taped: &mut [Taped],
        mut generation: Generation,
    ) -> Result<Generation, Error> {
        taped.sort_by_key(|instance| instance.number);
        self.recording.begin(machine.manifest);
        for instance in taped.iter() {
            let mut job = record::Instance {
                manifest: machine.manifest,
                functions: &self.functions,
                recording: &mut self.recording,
                taped: instance,
                problem: None,
            };
            machine.recorder.begin_backward(self.fiber.stack_limit());
            let arguments = (&raw mut job).cast::<u64>();
            let job_of_fiber = Job {
                entry: record::entry,
                recorder: &raw mut *machine.recorder,
                arguments,
                results: std::ptr::null_mut(),
            };
            // SAFETY: the recorder is touched by nothing else until the fiber gives control back, and
            // `record::entry` takes such an instance for its arguments.
            let event = unsafe { self.fiber.run(job_of_fiber)? };
            if let Some(problem) = job.problem.take() {
                return Err(problem);
            }
            match event {
                Event::Finished => machine.recorder.finish_instance(),
                Event::Stopped => {
                    let (stopped, _) = machine.recorder.abandon_instance();
                    return Err(match stopped {
                        Stopped::Broken(problem) => Error::Internal(problem),
                        Stopped::BatchFull | Stopped::OutOfMemory | Stopped::Failure(_) => {
                            Error::Usage(
                                "there is not enough room to compute the gradients of a batch: \
                                 make batches smaller with `--batch`"
                                    .to_owned(),
                            )
                        }
                    });
                }
                Event::Forced { .. } | Event::Shown { .. } => {
                    let problem = "a decision in the backward of a program";
                    return Err(Error::Internal(problem.to_owned()));
                }
            }
        }
        machine
            .executor
            .flush(machine.recorder, &mut generation, None)?;
        machine.recorder.flushed();
        self.recording.sum_up(machine, &mut self.sums)?;
        Ok(generation)
    }
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
        let mut of_kernel: Vec<Option<Gradient>> = Vec::new();
        of_kernel.resize_with(manifest.kernels.len(), || None);
        for (number, gradient) in gradients.functions.iter().enumerate() {
            if gradient.refused.is_none() {
                let function = find(&gradient.symbol)?;
                of_kernel[gradient.kernel] = Some(Gradient { number, function });
            }
        }
        let mut helpers = vec![Helpers::default(); manifest.spaces.len()];
        let mut one = None;
        for helper in &gradients.helpers {
            let function = Some(find(&helper.symbol)?);
            let own = &mut helpers[helper.space];
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
            helpers,
            one,
        })
    }
}

/// The space of the loss that a program gives, if it gives one; its slot is the first.
pub fn loss_space(manifest: &Manifest) -> Option<usize> {
    let first = match &manifest.result {
        Type::Tuple(parts) => parts.first()?,
        whole => whole,
    };
    let Type::Tensor { space } = first else {
        return None;
    };
    let described = manifest.spaces.get(*space)?;
    let is_number = described.elem == cohort_abi::manifest::Elem::F32 && described.shape.is_empty();
    is_number.then_some(*space)
}

/// The one f32 of a computed row.
pub(crate) fn number_at(executor: &Executor, handle: u64, space: usize) -> Result<f32, Error> {
    let bits = executor.decision(cohort_abi::Handle(handle), space)?;
    Ok(f32::from_bits(bits))
}
