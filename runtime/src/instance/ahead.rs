//! An instance runs ahead of decisions that it guessed, and goes back where a guess was wrong: see [`crate::speculation`].

use cohort_abi::Handle;

use super::strands::Wait;
use super::{Common, Instance, Machine};
use crate::error::Error;
use crate::speculation::{Guess, MOST_GUESSES, Path};
use crate::threads::fiber::Signal;

/// What an instance has guessed since the last flush; by default, one that has decided nothing.
#[derive(Default)]
pub(super) struct Ahead {
    guesses: Vec<Guess>,
    /// How likely all of them are right, and at what cost.
    path: Path,
    /// Decisions that it has made, those that it guessed among them.
    decided: usize,
    /// Whether its entry returned; its results are written, and mean something if all guesses are right.
    has_ended: bool,
}

impl Ahead {
    /// It guessed, and is on that path now.
    fn push(&mut self, guess: Guess, path: Path) {
        self.guesses.push(guess);
        self.path = path;
        self.decided += 1;
    }

    /// It takes its last guess back, and is on the path where it was before.
    fn pop(&mut self) -> Option<Guess> {
        let guess = self.guesses.pop()?;
        self.path = guess.before;
        self.decided -= 1;
        Some(guess)
    }
}

/// Where an instance that has run ahead stands when its decisions are known.
pub(super) enum Found {
    /// All guesses were right, or there were none: what it waits for now is next.
    Right,
    /// All guesses were right, and its results are.
    Ended,
    /// Some guess was wrong, and it is back where it asks for what that place of the program decided.
    Wrong {
        /// Which place.
        force: u32,
        /// What it decided.
        bits: u32,
    },
}

impl Instance {
    /// Whether it has run ahead of a decision.
    pub(super) fn is_ahead(&self) -> bool {
        !self.ahead.guesses.is_empty()
    }

    /// The decisions that it wants, and which place of the program asks for each: those that it guessed, in that order,
    /// and then those that it waits for.
    pub fn asks_for(&self) -> impl Iterator<Item = (Handle, u32)> {
        let guessed = self.ahead.guesses.iter();
        let waits = self.strands.waits().filter_map(|wait| match *wait {
            Wait::Forced { handle, force } => Some((handle, force)),
            Wait::Shown(_) => None,
        });
        guessed
            .map(|guess| (guess.handle, guess.force))
            .chain(waits)
    }

    /// How many of [`Instance::asks_for`] were guessed.
    pub fn guesses(&self) -> usize {
        self.ahead.guesses.len()
    }

    /// It begins anew, or goes on with nothing guessed.
    pub(super) fn forget_guesses(&mut self, common: &mut Common) {
        let origins = self
            .ahead
            .guesses
            .drain(..)
            .filter_map(|guess| guess.origin);
        if let Some(predictor) = &mut common.predictor {
            origins.for_each(|(checkpoint, _)| predictor.recycle(checkpoint));
        }
        self.ahead.path = Path::default();
        self.ahead.has_ended = false;
    }

    /// As [`Instance::forget_guesses`], of one that decided nothing so far.
    pub(super) fn decide_nothing(&mut self, common: &mut Common) {
        self.forget_guesses(common);
        self.ahead.decided = 0;
    }

    /// It runs on by what it guesses of a row that is not computed; nothing where it should wait instead.
    ///
    /// # Safety
    ///
    /// As [`Instance::decide`]; the instance's state is the recorder's, and it has just asked for that row.
    pub(super) unsafe fn guess(
        &mut self,
        machine: &mut Machine<'_>,
        common: &mut Common,
        (handle, force): (Handle, u32),
    ) -> Result<Option<Signal>, Error> {
        let ahead = &mut self.ahead;
        let Some(predictor) = &mut common.predictor else {
            return Ok(None);
        };
        // One that begins again had too little room.
        if ahead.guesses.len() >= MOST_GUESSES
            || self.again.is_some()
            || !self.strands.is_single()
            || machine.recorder.tracer().is_some()
        {
            return Ok(None);
        }
        let guess = predictor.guess(force, ahead.decided, ahead.path, common.alive);
        let Some((bits, path)) = guess else {
            return Ok(None);
        };
        let origins = ahead.guesses.iter().rev();
        let last = origins.filter_map(|guess| guess.origin.as_ref()).next();
        let origin = match last {
            Some((_, saved)) if !machine.recorder.has_called_since(saved) => None,
            _ => {
                let Some(mut checkpoint) = predictor.checkpoint() else {
                    return Ok(None);
                };
                let frame = machine.recorder.waiting_frame();
                if !self.strands.fiber()?.save(frame, &mut checkpoint) {
                    predictor.recycle(checkpoint);
                    return Ok(None);
                }
                Some((checkpoint, machine.recorder.save()))
            }
        };
        let guess = Guess {
            handle,
            force,
            bits,
            before: ahead.path,
            origin,
        };
        ahead.push(guess, path);
        machine.recorder.run_in_turn();
        // SAFETY: the caller's promise: it waits for a decision.
        unsafe { self.strands.fiber()?.resume(bits) }.map(Some)
    }

    /// It met an error, or found too little room, where it may not be at all: it goes back to its last guess and waits
    /// there.
    ///
    /// # Safety
    ///
    /// As [`Instance::guess`]; it has run ahead since it was given control, and stopped.
    pub(super) unsafe fn wait_at_last_guess(
        &mut self,
        machine: &mut Machine<'_>,
        common: &mut Common,
    ) -> Result<(), Error> {
        while let Some(guess) = self.ahead.pop() {
            let Some((checkpoint, saved)) = guess.origin else {
                continue;
            };
            machine.recorder.take_back_since(&saved);
            // SAFETY: the fiber is that of the one strand that there is, which made the checkpoint. What compiled code
            // wrote in memory since then it writes again before it reads it; what it had allocated by then is there.
            unsafe { self.strands.fiber()?.restore(&checkpoint) };
            let (handle, force) = (guess.handle, guess.force);
            self.strands.wait(Wait::Forced { handle, force });
            if let Some(predictor) = &mut common.predictor {
                predictor.recycle(checkpoint);
            }
            return Ok(());
        }
        Err(Error::Internal("a guess of nothing".to_owned()))
    }

    /// Its entry returned where it may not be at all.
    pub(super) fn end_ahead(&mut self) {
        self.ahead.has_ended = true;
    }

    /// Compares what it guessed with what was decided, and takes it back to its first wrong guess. The decisions are
    /// those of [`Instance::asks_for`]; those that it waits for are left, if its guesses were right.
    ///
    /// # Safety
    ///
    /// As [`Instance::guess`], of one that does not run.
    pub(super) unsafe fn check_guesses(
        &mut self,
        machine: &mut Machine<'_>,
        decisions: &mut impl Iterator<Item = u32>,
        common: &mut Common,
    ) -> Result<Found, Error> {
        let guesses = &self.ahead.guesses;
        let origin = |guess: &Guess| guess.origin.as_ref().map(|(_, saved)| *saved);
        let Some(first) = guesses.first().and_then(origin) else {
            return Ok(Found::Right);
        };
        let begin = self.ahead.decided - guesses.len();
        let waits = self.asks_for().count() - guesses.len();
        let mut wrong = None;
        for (index, guess) in guesses.iter().enumerate() {
            let bits = decisions.next();
            let bits = bits.ok_or_else(|| Error::Internal("too few decisions".to_owned()))?;
            if wrong.is_none() {
                if let Some(predictor) = &mut common.predictor {
                    predictor.learn(guess.force, begin + index, bits);
                    predictor.guesses += 1;
                    predictor.wrong += u64::from(bits != guess.bits);
                }
                if bits != guess.bits {
                    wrong = Some((index, bits));
                }
            }
        }
        let Some((wrong, bits)) = wrong else {
            machine.recorder.let_fork_as(&first);
            let has_ended = self.ahead.has_ended;
            self.forget_guesses(common);
            return Ok(match has_ended {
                true => Found::Ended,
                false => Found::Right,
            });
        };
        // What it waits for behind a wrong guess was never asked.
        decisions.by_ref().take(waits).for_each(drop);
        self.strands.forget_waits();
        // What it asks for from there on up to the wrong guess is computed.
        let back = guesses[..=wrong].iter().enumerate().rev();
        let back = back.filter_map(|(index, guess)| Some((index, guess, guess.origin.as_ref()?)));
        let Some((index, guess, (checkpoint, saved))) = back.into_iter().next() else {
            return Err(Error::Internal("a guess from nowhere".to_owned()));
        };
        if let Some(predictor) = &mut common.predictor {
            predictor.wasted_rows += machine.recorder.rows_since(saved);
        }
        machine.recorder.restore(saved);
        machine.recorder.let_fork_as(&first);
        // SAFETY: as in `wait_at_last_guess`.
        unsafe { self.strands.fiber()?.restore(checkpoint) };
        let found = Found::Wrong {
            force: guess.force,
            bits: if index == wrong { bits } else { guess.bits },
        };
        self.ahead.decided = begin + wrong + 1;
        self.forget_guesses(common);
        Ok(found)
    }

    /// It was told what it waited for.
    pub(super) fn decided(&mut self, force: u32, bits: u32, common: &mut Common) {
        if let Some(predictor) = &mut common.predictor {
            predictor.learn(force, self.ahead.decided, bits);
        }
        self.ahead.decided += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::speculation::tests::predictor;

    #[test]
    fn a_guess_that_is_taken_back_restores_its_path() {
        let mut predictor = predictor();
        (0..40).for_each(|_| predictor.learn(0, 0, 1));
        let mut ahead = Ahead::default();
        let mut paths = Vec::new();
        for _ in 0..3 {
            paths.push((ahead.path, ahead.decided));
            let (bits, path) = predictor.guess(0, 0, ahead.path, 1).unwrap();
            assert_ne!(path, ahead.path);
            let guess = Guess {
                handle: Handle(0),
                force: 0,
                bits,
                before: ahead.path,
                origin: None,
            };
            ahead.push(guess, path);
        }
        while let Some(before) = paths.pop() {
            assert!(ahead.pop().is_some());
            assert_eq!((ahead.path, ahead.decided), before);
        }
        assert!(ahead.pop().is_none());
        assert_eq!((ahead.path, ahead.decided), (Path::default(), 0));
    }
}
