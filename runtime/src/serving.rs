//! Instances one at a time, from any number of threads, through one session.
//!
//! ```text
//! submit ──► queue ──► session, in a thread of its own ──► answer
//! ```
//!
//! An instance waits in a queue of limited length until there is room for it: in a program whose path
//! depends on tensors, as soon as another instance is done; in others, when those that wait are taken
//! together. The longest waiting one goes first; a *priority* counts as time that it has waited. At the
//! boundary of a round, instances that were cancelled or whose deadline is over are given up.
//!
//! What an instance gives does not depend on any of this, to the bit.

mod answers;
mod queue;
mod ticket;

use std::sync::Arc;
use std::time::{Duration, Instant};

use cohort_abi::manifest::Manifest;

use crate::error::Error;
use crate::failure::InstanceError;
use crate::io::input::Inputs;
use crate::io::output::columns::Columns;
use crate::session::{Batch, Session};
use crate::threads::thread::SessionThread;
use queue::{Request, Shared};

pub use queue::{Key, ServingStats};
pub use ticket::Ticket;

/// How much one step of priority counts.
const STEP: Duration = Duration::from_millis(100);

/// How an engine takes instances.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Instances that are computed at once.
    pub in_flight: usize,
    /// Instances that may wait beside them.
    pub max_queued: usize,
    /// Bytes that those which wait may have together.
    pub max_queued_bytes: u64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            in_flight: 64,
            max_queued: 1024,
            max_queued_bytes: 1 << 30,
        }
    }
}

/// What is asked of an instance.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// It goes before those that have waited up to a tenth of a second a step longer.
    pub priority: i32,
    /// Its answer is an error if there is no result by then.
    pub deadline: Option<Instant>,
}

/// What comes of an instance: columns of one.
pub type Answer = Result<Columns, Failure>;

/// Why there is no result.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Failure {
    /// The instance has failed, was cancelled or is late; the engine goes on.
    #[error("{}: {}", .0.kind, .0.message)]
    Instance(InstanceError),
    /// The engine cannot go on; all that it had has this.
    #[error("{0}")]
    Engine(Arc<Error>),
}

/// Too many instances wait; this one is given back.
pub struct Full(pub Box<Inputs>);

impl std::fmt::Debug for Full {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Full")
    }
}

/// A session that serves. When it is dropped, what it still has is cancelled.
pub struct Engine {
    shared: Arc<Shared>,
    manifest: Arc<Manifest>,
    /// It ends once `shared` is closed.
    _thread: SessionThread,
}

impl Engine {
    /// Starts the thread, which makes the session, and waits until it has.
    pub fn start(
        settings: Settings,
        session: impl FnOnce() -> Result<Session, Error> + Send + 'static,
    ) -> Result<Engine, Error> {
        let shared = Arc::new(Shared::new(settings));
        let (made, is_made) = std::sync::mpsc::channel();
        let of_thread = shared.clone();
        let thread = SessionThread::start("cohort-engine", move || {
            let made_session = session().and_then(|mut session| {
                session.set_batch(Batch::InFlight(settings.in_flight))?;
                Ok(session)
            });
            match made_session {
                Ok(session) => {
                    let manifest = Arc::new(session.program().manifest().clone());
                    if made.send(Ok(manifest.clone())).is_ok() {
                        serve(session, &manifest, &of_thread);
                    }
                }
                // Nobody waits if that fails.
                Err(error) => drop(made.send(Err(error))),
            }
        })?;
        let manifest = is_made.recv().map_err(|_| queue::thread_ended())??;
        Ok(Engine {
            shared,
            manifest,
            _thread: thread,
        })
    }

    /// The program's.
    pub fn manifest(&self) -> &Arc<Manifest> {
        &self.manifest
    }

    /// Takes an instance, the only one of inputs that were built for chunk 0.
    pub fn submit(&self, instance: Inputs, options: Options) -> Result<Ticket, Full> {
        let slot = ticket::Slot::new();
        let answered = slot.clone();
        let then = Box::new(move |answer| answered.put(answer));
        let key = self.submit_then(instance, options, then)?;
        Ok(Ticket::new(self.shared.clone(), key, slot))
    }

    /// As [`Engine::submit`], but calls a function with the answer: at once where the instance is wrong,
    /// otherwise from the engine's thread or from that which cancels. It should be short.
    pub fn submit_then(
        &self,
        instance: Inputs,
        options: Options,
        then: Box<dyn FnOnce(Answer) + Send>,
    ) -> Result<Key, Full> {
        self.shared.submit(Request {
            instance,
            options,
            then,
        })
    }

    /// Waits until another instance may be submitted; whether it may.
    pub fn wait_for_room(&self, timeout: Duration) -> bool {
        self.shared.wait_for_room(timeout)
    }

    /// Gives an instance up, which is then answered at once; whether it had no answer yet.
    pub fn cancel(&self, key: Key) -> bool {
        self.shared.cancel(key)
    }

    /// Waits until everything is answered; whether it is, before the time is over.
    pub fn drain(&self, timeout: Duration) -> bool {
        self.shared.drain(timeout)
    }

    /// What it did so far, and what it has at present.
    pub fn stats(&self) -> ServingStats {
        self.shared.stats()
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.shared.close();
    }
}

/// Runs until the engine is dropped, or cannot go on.
fn serve(mut session: Session, manifest: &Arc<Manifest>, shared: &Arc<Shared>) {
    let end = queue::AtEnd(shared.clone());
    let mut supply = queue::Queue::new(shared.clone(), manifest.clone());
    let mut answers = answers::Answers::new(shared.clone(), manifest, session.limits());
    let ended = session.run(&mut supply, &mut answers, &mut |_| {});
    if let Err(error) = ended {
        shared.fail(error);
    }
    drop(end);
}
