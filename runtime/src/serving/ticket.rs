//! Tickets: how a caller waits for its answer.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::Answer;
use super::queue::{Key, Shared};

use crate::locks::{locked, unpoisoned};

/// Where an answer comes.
#[derive(Default)]
pub(super) struct Slot {
    state: Mutex<State>,
    came: Condvar,
}

#[derive(Default)]
struct State {
    answer: Option<Answer>,
    /// Whether there is or was one.
    has_come: bool,
    waker: Option<Waker>,
}

impl Slot {
    pub fn new() -> Arc<Slot> {
        Arc::default()
    }

    pub fn put(&self, answer: Answer) {
        let mut state = self.state();
        state.answer = Some(answer);
        state.has_come = true;
        let waker = state.waker.take();
        drop(state);
        self.came.notify_all();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }
}

/// A submitted instance: asked, waited for, or awaited. When it is dropped without an answer, the instance
/// is cancelled.
#[must_use = "an instance whose ticket is dropped is cancelled"]
pub struct Ticket {
    shared: Arc<Shared>,
    key: Key,
    slot: Arc<Slot>,
}

impl Ticket {
    pub(super) fn new(shared: Arc<Shared>, key: Key, slot: Arc<Slot>) -> Ticket {
        Ticket { shared, key, slot }
    }

    /// For [`Engine::cancel`](super::Engine::cancel).
    pub fn key(&self) -> Key {
        self.key
    }

    /// The answer, if it is there; it is given once.
    pub fn try_poll(&mut self) -> Option<Answer> {
        self.slot.state().answer.take()
    }

    /// Waits for the answer, for a while.
    pub fn wait(&mut self, timeout: Duration) -> Option<Answer> {
        let is_missing = |state: &mut State| state.answer.is_none();
        let state = self.slot.state();
        let waited = (self.slot.came).wait_timeout_while(state, timeout, is_missing);
        let (mut state, _) = unpoisoned(waited);
        state.answer.take()
    }

    /// Gives the instance up; its answer says so, unless there was one.
    pub fn cancel(&self) -> bool {
        self.shared.cancel(self.key)
    }
}

impl Future for Ticket {
    type Output = Answer;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Answer> {
        let mut state = self.slot.state();
        match state.answer.take() {
            Some(answer) => Poll::Ready(answer),
            None => {
                state.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let has_come = self.slot.state().has_come;
        if !has_come {
            self.shared.cancel(self.key);
        }
    }
}
