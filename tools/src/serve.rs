//! `batch-serve`: a program behind HTTP, instances of all clients batched together.
//!
//! ```text
//! connection ──► request ──► instances ──► serving::Engine ──► answers ──► response
//!  [`server`]    [`routes`]   [`infer`], by [`json`], [`arrow`] or [`kserve`]
//! ```
//!
//! Everything has a limit: connections, bodies one by one and together, what waits, and for how long. What is
//! beyond gets a status code that says so ([`refusal`]), and a client that breaks off cancels what it asked for.

mod args;
mod arrow;
mod body;
mod infer;
mod json;
mod kserve;
mod metrics;
mod paced;
mod refusal;
mod room;
mod routes;
mod server;
mod signature;

use std::ffi::OsString;
use std::sync::Arc;
use std::sync::mpsc;

use clap::Parser;
use cohort_runtime::serving::{Engine, Settings};
use cohort_runtime::{Batch, Config, Error, Session, Weights, memory};

use crate::exit::{Stop, stop};
use crate::model::{self, args::ModelArguments};
use args::Arguments;
use routes::Service;

/// Runs the tool and returns its exit code.
pub fn main(arguments: impl Iterator<Item = OsString>) -> Result<u8, Stop> {
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help goes to stdout with code 0, a mistake to stderr with code 2.
            let code = u8::try_from(error.exit_code()).unwrap_or(crate::exit::USAGE);
            let _ = error.print();
            return Ok(code);
        }
    };
    arguments.model.refuse_unsupported(false)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(usize::from(arguments.http_threads))
        .thread_name("cohort-http")
        .enable_all()
        .build()
        .map_err(|error| Stop::usage(format!("cannot start threads: {error}")))?;
    // An address that is taken is known before the program is compiled.
    let listener = runtime.block_on(server::listen(&arguments.listen))?;
    let (engine, config) = engine(&arguments)?;
    let service = Service::new(engine, &arguments, config.limits);
    let service = Arc::new(service.map_err(|refusal| Stop::usage(refusal.message))?);
    let code = runtime.block_on(server::run(&service, listener, &arguments));
    // Threads of requests that would not end are waited for a second, since they use what the end of the process
    // takes down.
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    code
}

/// Starts the engine, in whose thread the program is compiled or loaded.
fn engine(arguments: &Arguments) -> Result<(Engine, Config), Stop> {
    let in_flight = arguments.in_flight as usize;
    let settings = Settings {
        in_flight,
        max_queued: arguments.max_queued as usize,
        max_queued_bytes: arguments.max_queued_memory,
    };
    let total = arguments.model.total_memory();
    // What is loaded may take all that is free, and no more.
    memory::set_most(memory::free_bytes().unwrap_or(u64::MAX));
    let config = arguments.model.config(Batch::InFlight(in_flight), total);
    cohort_runtime::device::probe(config.device).map_err(stop)?;
    let model = arguments.model.clone();
    let (told, reason) = mpsc::channel();
    let make = move || {
        let made = session(&model, config);
        memory::set_most(total);
        made.map_err(|stop| {
            let error = Error::Usage(stop.message.clone());
            // Who starts the engine waits for it.
            let _ = told.send(stop);
            error
        })
    };
    match Engine::start(settings, make) {
        Ok(engine) => Ok((engine, config)),
        Err(error) => Err(reason.try_recv().unwrap_or_else(|_| stop(error))),
    }
}

fn session(arguments: &ModelArguments, mut config: Config) -> Result<Session, Stop> {
    let weights = match &arguments.weights {
        Some(path) => Some(Arc::new(Weights::open(path).map_err(stop)?)),
        None => None,
    };
    let program = model::load(arguments, weights.clone())?;
    arguments.guide(&mut config, program.manifest())?;
    let weights = weights.unwrap_or_else(|| Arc::new(Weights::none()));
    for sentence in weights.conversions(program.manifest()) {
        crate::exit::say(&format!("note: {sentence}"));
    }
    Session::new(program, &weights, config).map_err(stop)
}
