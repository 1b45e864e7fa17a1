//! What an executor says of its work, and who looks on: counts, times, a survey, a profile, an inspector.

use std::sync::Arc;
use std::time::Instant;

use super::{Executor, Inspector};
use crate::memory::arena::Arena;
use crate::program::pack::Constants;
use crate::report::explain::Survey;
use crate::report::profile::{Profile, Span};
use crate::report::stats::{Launches, SchedulerStats, TableCounts};
use crate::schedule::Scheduler;

impl Executor {
    /// What kernels read of weights and constants.
    pub fn constants(&self) -> &Constants {
        self.parameters.constants()
    }

    /// The rows of inputs and results.
    pub fn arena(&self) -> &Arena {
        &self.arena
    }

    /// What was launched since the last [`Executor::clear_launches`], a kernel.
    pub fn launches(&self) -> &[Launches] {
        &self.launches
    }

    /// Time that flushes spent before their kernels ran: on order, rows, indices.
    pub fn schedule_nanoseconds(&self) -> u64 {
        self.schedule_nanoseconds
    }

    /// Of these, on where rows are and which lengths calls have, in a program with ragged kernels.
    pub fn prelude_nanoseconds(&self) -> u64 {
        self.prelude_nanoseconds
    }

    /// Tables of lengths, made and shared, since the last [`Executor::clear_launches`].
    pub fn tables(&self) -> TableCounts {
        self.tables.counts()
    }

    /// From now on every flush is looked at for an explanation.
    pub fn set_survey(&mut self, survey: Survey) {
        self.survey = Some(Box::new(survey));
    }

    /// Lets somebody look at every launch on the processor.
    pub fn set_inspector(&mut self, inspector: Box<dyn Inspector>) {
        self.inspector = Some(inspector);
    }

    /// What watches flushes, for an explanation; `None` where nobody asked for one.
    pub fn survey(&self) -> Option<&Survey> {
        self.survey.as_deref()
    }

    /// The survey, to be told which instances wait.
    pub(crate) fn survey_mut(&mut self) -> Option<&mut Survey> {
        self.survey.as_deref_mut()
    }

    /// From now on a profile is told what is done when.
    pub fn set_profile(&mut self, profile: Arc<Profile>) {
        self.workers.set_profile(Some(profile.clone()));
        self.profile = Some(profile);
    }

    /// What is told when things are done; `None` where no profile was set.
    pub fn profile(&self) -> Option<&Profile> {
        self.profile.as_deref()
    }

    /// Tells the profile, if there is one, what the time since `begin` went into.
    pub(crate) fn spent(&self, what: Span, begin: Instant) {
        if let Some(profile) = &self.profile {
            profile.spent(what, begin);
        }
    }

    /// Tells the profile, if there is one, what the time from `begin` to `end` went into.
    pub(crate) fn span(&self, what: Span, begin: Instant, end: Instant) {
        if let Some(profile) = &self.profile {
            profile.span(what, begin, end);
        }
    }

    /// Whether somebody looks at what is done, one thing after another.
    pub fn is_watched(&self) -> bool {
        self.survey.is_some() || self.profile.is_some() || self.inspector.is_some()
    }

    /// Forgets what was counted so far: launches, times, and what survey and profile saw.
    pub fn clear_launches(&mut self) {
        self.launches.iter_mut().for_each(Launches::clear);
        if let Some(survey) = &mut self.survey {
            survey.clear();
        }
        if let Some(profile) = &self.profile {
            profile.clear();
        }
        self.schedule_nanoseconds = 0;
        self.prelude_nanoseconds = 0;
        self.scheduler.clear_counts();
        self.tables.clear_counts();
        if let Some(runner) = &mut self.device {
            runner.clear_stats();
        }
    }

    /// What its scheduler chose, if it chooses.
    pub fn scheduler_stats(&self) -> SchedulerStats {
        self.scheduler.stats()
    }

    /// Schedules by another one, if there is one, and hands out that of before.
    pub fn exchange_scheduler(&mut self, other: &mut Option<Box<dyn Scheduler>>) {
        if let Some(other) = other {
            std::mem::swap(&mut self.scheduler, other);
        }
    }
}
