//! Which rows of each launch belong to which part of the instances, where a device's clusters compute parts by themselves.
//!
//! Instances record their calls one after another, and index lists are written in that order. So the calls of an instance are
//! neighbours in each launch, and a part, which is some neighbouring instances, ends in a launch behind as many as are
//! written when the last of its instances is. Parts are of about equal length in the log and the recordings.
//!
//! A call that instances share ([`crate::call_cache::sharing`]) belongs to none of them. It has no operand but a row of a
//! parameter, so mostly its launch is of the first depth: such launches are not divided, and run before all that are. A flush
//! with other shared calls, of a later phase, is not divided.

use cohort_abi::manifest::Unit;

use super::Executor;
use super::launch::Placed;
use crate::recorder::{Calls, Part, Recorder};
use crate::schedule::groups::Share;

/// How a flush is divided; its memory is kept from flush to flush.
#[derive(Debug, Default)]
pub(super) struct Division {
    /// Into how many parts; 0 if it is not divided.
    pub parts: usize,
    /// Of each part, behind which row of each launch it ends: part by part.
    ends: Vec<u32>,
    /// Parts that have ended.
    ended: usize,
    /// Words of calls: in all, so far, and before the part at hand.
    all: usize,
    written: usize,
    begin: usize,
}

impl Division {
    /// Behind which of the launch's rows a part ends.
    pub fn end(&self, part: usize, launch: usize, launches: usize) -> u32 {
        self.ends[part * launches + launch]
    }

    /// How many words from here on the part at hand ends, if another one follows.
    fn left(&self) -> Option<usize> {
        let is_last = self.ended + 1 >= self.parts;
        let end = (self.ended + 1) * self.all / self.parts.max(1);
        // Each has an instance, as long as there are some.
        let least = usize::from(self.written == self.begin);
        (!is_last).then(|| end.saturating_sub(self.written).max(least))
    }
}

impl Executor {
    /// Whether the flush at hand is divided, and begins to divide it: where a device has clusters, each launch has the calls of one
    /// bucket, as rows, no call that instances share is behind others, and there are instances to divide.
    pub(super) fn begin_division(&mut self, recorder: &Recorder) {
        let parts = self.device.as_ref().map_or(0, |runner| runner.parts());
        let is_bucket = |(at, share): (usize, &Share)| match *share {
            Share::Whole { launch, call, .. } => launch as usize == at && call == 0,
            Share::Apart { .. } => false,
        };
        let are_buckets = self.groups.launches.len() == self.ready.len()
            && self.groups.shares.iter().enumerate().all(is_bucket);
        let of_rows =
            |placed: &Placed| self.kernels[placed.kernel as usize].form.unit == Unit::Rows;
        let is_possible = are_buckets && !recorder.shares_late() && self.placed.iter().all(of_rows);
        let division = &mut self.division;
        division.parts = match is_possible {
            true => parts.min(recorder.segments().len()),
            false => 0,
        };
        division.ends.clear();
        (division.ended, division.written, division.begin) = (0, 0, 0);
        let of_recordings = |calls: Calls<'_>| calls.recording.part(Part::Columns).len();
        division.all = match division.parts {
            0 => 0,
            _ => recorder.log().len() + recorder.replayed().map(of_recordings).sum::<usize>(),
        };
    }

    /// Where in a part of the log, of which all before was written, the instances of the part at hand have ended: there
    /// [`Executor::end_part`] is due. Nothing if they have not.
    pub(super) fn part_end(&self, recorder: &Recorder, from: usize, to: usize) -> Option<usize> {
        let left = self.division.left()?;
        let segments = recorder.segments();
        let next = segments.partition_point(|begin| *begin < from + left);
        segments.get(next).copied().filter(|begin| *begin < to)
    }

    /// Counts words of calls that were written.
    pub(super) fn written(&mut self, words: usize) {
        self.division.written += words;
    }

    /// Whether the part at hand has ended, where an instance begins.
    pub(super) fn is_part_over(&self) -> bool {
        self.division.left() == Some(0)
    }

    /// The part at hand ends behind what was written.
    pub(super) fn end_part(&mut self) {
        let launches = self.groups.launches.len();
        let first = self.division.ends.len();
        self.division.ends.resize(first + launches, 0);
        for ready in &self.ready {
            let plan = &self.plans[ready.bucket as usize];
            let is_ragged = self.placed[plan.placed].ragged.is_some();
            let rows = if is_ragged { plan.next_row } else { plan.next };
            self.division.ends[first + plan.placed] = rows;
        }
        self.division.ended += 1;
        self.division.begin = self.division.written;
    }

    /// All calls are written: the last part ends, and those that have nothing.
    pub(super) fn end_division(&mut self) {
        while self.division.ended < self.division.parts {
            self.end_part();
        }
    }

    /// Whether calls of a launch, of this number among the buckets' launches, may be shared by instances.
    pub(super) fn is_shared(&self, launch: usize) -> bool {
        self.ready.get(launch).is_some_and(|ready| {
            let is_first = ready.phase == 0 && ready.depth <= 1;
            is_first && self.may_share.get(ready.kernel as usize) == Some(&true)
        })
    }
}
