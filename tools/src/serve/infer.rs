//! Instances of one request through the engine.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use cohort_runtime::InstanceError;
use cohort_runtime::io::input::Inputs;
use cohort_runtime::io::output::columns::Columns;
use cohort_runtime::serving::{Engine, Failure, Full, Options, Ticket};
use tokio::task::block_in_place;
use tokio::time::{sleep, timeout_at};

use super::refusal::Refusal;
use super::room::{Held, Room};

/// From this number of bytes on, work is done where it holds up no other request.
const HEAVY: usize = 64 << 10;
/// How long a request that found no room waits before it asks again.
const PAUSE: Duration = Duration::from_millis(2);
/// How much later than its deadline an instance may be answered by the engine; then it is not asked any
/// more, whatever it computes.
const GRACE: Duration = Duration::from_millis(50);
/// Instances that one request may have.
pub const MOST_INSTANCES: usize = 1 << 20;

/// Work on `bytes` bytes.
pub fn work<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    match bytes > HEAVY {
        true => block_in_place(work),
        false => work(),
    }
}

/// How the instances of a request go through the engine.
pub struct Way<'e> {
    pub engine: &'e Engine,
    pub options: Options,
    /// Instances that it may have in the engine at once.
    pub window: usize,
    /// Bytes that its results may have together.
    pub max_response: u64,
    /// What the results of all requests have, until their answers are read.
    pub room: &'e Room,
}

/// An instance whose answer is waited for.
struct Waiting {
    id: String,
    ticket: Ticket,
}

impl Way<'_> {
    /// Runs `count` instances, each built when there is room for it; their results in this order, and the
    /// room that these take. When this is dropped, they are cancelled.
    pub async fn run(
        &self,
        count: usize,
        mut build: impl FnMut(usize) -> Inputs,
    ) -> Result<(Columns, Held), Refusal> {
        if count > MOST_INSTANCES {
            return Err(Refusal::too_large(format!(
                "a request has at most {MOST_INSTANCES} instances"
            )));
        }
        let mut columns = Columns::of(self.engine.manifest());
        let mut held = self.room.enter();
        let mut waiting = VecDeque::new();
        for number in 0..count {
            if waiting.len() >= self.window {
                self.take(&mut waiting, &mut columns, &mut held).await?;
            }
            let mut instance = build(number);
            let id = instance.id(0).to_owned();
            loop {
                match self.engine.submit(instance, self.options) {
                    Ok(ticket) => {
                        waiting.push_back(Waiting { id, ticket });
                        break;
                    }
                    Err(Full(again)) => instance = *again,
                }
                // Who has nothing in the engine yet has to come again, later.
                if number == 0 {
                    return Err(Refusal::full());
                }
                if waiting.is_empty() {
                    sleep(PAUSE).await;
                    let is_over = |end: Instant| end <= Instant::now();
                    if self.options.deadline.is_some_and(is_over) {
                        columns.append_error(&id, InstanceError::deadline());
                        break;
                    }
                } else {
                    self.take(&mut waiting, &mut columns, &mut held).await?;
                }
            }
        }
        while !waiting.is_empty() {
            self.take(&mut waiting, &mut columns, &mut held).await?;
        }
        Ok((columns, held))
    }

    /// Waits for the first answer that is missing.
    async fn take(
        &self,
        waiting: &mut VecDeque<Waiting>,
        columns: &mut Columns,
        held: &mut Held,
    ) -> Result<(), Refusal> {
        let Some(Waiting { id, mut ticket }) = waiting.pop_front() else {
            return Ok(());
        };
        let answer = match self.options.deadline {
            Some(deadline) => timeout_at((deadline + GRACE).into(), &mut ticket)
                .await
                .unwrap_or_else(|_| Err(Failure::Instance(InstanceError::deadline()))),
            None => ticket.await,
        };
        match answer {
            Ok(result) if (columns.size() + result.size()) as u64 > self.max_response => {
                columns.append_error(&id, too_much(self.max_response));
            }
            Ok(result) => {
                held.grow(columns.size() + result.size())?;
                columns.append(result);
            }
            Err(Failure::Instance(error)) => columns.append_error(&id, error),
            Err(Failure::Engine(error)) => return Err(Refusal::ended(error.to_string())),
        }
        Ok(())
    }
}

fn too_much(most: u64) -> InstanceError {
    InstanceError {
        kind: "memory_limit",
        message: format!(
            "the results of this request have more than {most} bytes; raise the limit with \
             --max-response, or send fewer instances at once"
        ),
    }
}
