//! Runs through the units of a flush: what is ready is launched, and makes more ready.

use super::Ready;
use super::groups::Groups;
use super::units::{NONE, Units};

/// The units that are ready, by kind.
#[derive(Debug, Default)]
pub struct Frontier {
    ready: Vec<Vec<u32>>,
    /// For each unit: how many of its inputs were not launched.
    waiting: Vec<u32>,
    /// The units that read unit `u` are `users[user_starts[u]..user_starts[u + 1]]`.
    users: Vec<u32>,
    user_starts: Vec<u32>,
    /// Of each unit.
    launches: Vec<u32>,
    /// The units of the launch at hand.
    launched: Vec<u32>,
}

/// Which kind comes next.
pub trait Policy {
    /// Everything begins; nothing is ready.
    fn begin(&mut self, _units: &Units) {}

    /// The unit is ready.
    fn is_ready(&mut self, _units: &Units, _unit: u32) {}

    /// Whether the kind should rather be launched than one behind it that has ready units too.
    fn is_good(&self, _units: &Units, _kind: u32) -> bool {
        true
    }

    /// All ready units of the kind became a launch.
    fn launched(&mut self, _units: &Units, _kind: u32, _launched: &[u32]) {}
}

impl Frontier {
    /// Launches everything, all ready units of a kind at a time: of the first kind that is good, or else of
    /// the first one.
    pub fn run(
        &mut self,
        units: &Units,
        buckets: &[Ready],
        groups: &mut Groups,
        policy: &mut impl Policy,
    ) {
        groups.clear();
        self.begin(units, policy);
        let mut launched = std::mem::take(&mut self.launched);
        let kinds = &units.kinds;
        let mut first = 0;
        while let Some(phase) = kinds.get(first).map(|kind| kind.phase) {
            let of_phase = kinds[first..].iter().take_while(|kind| kind.phase == phase);
            let end = first + of_phase.count();
            loop {
                let is_ready = |kind: &usize| !self.ready[*kind].is_empty();
                let mut ready = (first..end).filter(is_ready);
                let Some(least_deep) = ready.next() else {
                    break;
                };
                let mut ready = std::iter::once(least_deep).chain(ready);
                let kind = ready.find(|kind| policy.is_good(units, *kind as u32));
                let kind = kind.unwrap_or(least_deep);
                launched.clear();
                std::mem::swap(&mut self.ready[kind], &mut launched);
                let launch = groups.launch(kinds[kind].kernel);
                policy.launched(units, kind as u32, &launched);
                for unit in &launched {
                    self.launches[*unit as usize] = launch;
                }
                self.release(units, &launched, policy);
            }
            first = end;
        }
        self.launched = launched;
        self.place(units, buckets, groups);
    }

    fn begin(&mut self, units: &Units, policy: &mut impl Policy) {
        policy.begin(units);
        self.ready.iter_mut().for_each(Vec::clear);
        if self.ready.len() < units.kinds.len() {
            self.ready.resize_with(units.kinds.len(), Vec::new);
        }
        self.launches.clear();
        self.launches.resize(units.count(), NONE);
        self.user_starts.clear();
        self.user_starts.resize(units.count() + 1, 0);
        for input in units.inputs() {
            self.user_starts[*input as usize] += 1;
        }
        // Each unit's entry is where its users end; writing them moves it to where they begin.
        let mut total = 0;
        for count in &mut self.user_starts {
            total += *count;
            *count = total;
        }
        self.users.clear();
        self.users.resize(total as usize, 0);
        self.waiting.clear();
        for (number, unit) in units.units.iter().enumerate() {
            let inputs = units.inputs_of(number);
            self.waiting.push(inputs.len() as u32);
            if inputs.is_empty() {
                self.ready[unit.kind as usize].push(number as u32);
                policy.is_ready(units, number as u32);
            }
            for input in inputs {
                let start = &mut self.user_starts[*input as usize];
                *start -= 1;
                self.users[*start as usize] = number as u32;
            }
        }
    }

    fn release(&mut self, units: &Units, launched: &[u32], policy: &mut impl Policy) {
        for unit in launched {
            let unit = *unit as usize;
            let users = self.user_starts[unit]..self.user_starts[unit + 1];
            for user in &self.users[users.start as usize..users.end as usize] {
                let waiting = &mut self.waiting[*user as usize];
                *waiting -= 1;
                if *waiting == 0 {
                    self.ready[units.units[*user as usize].kind as usize].push(*user);
                    policy.is_ready(units, *user);
                }
            }
        }
    }

    /// Puts the calls of units into the launches of these, bucket by bucket.
    fn place(&self, units: &Units, buckets: &[Ready], groups: &mut Groups) {
        for (ready, bucket) in buckets.iter().zip(&units.buckets) {
            let of = |unit: u32| self.launches[unit as usize];
            let before = |unit: &u32| {
                let before = units.units[*unit as usize].before;
                (before != NONE).then_some(before)
            };
            let mut all = std::iter::successors(Some(bucket.last), before);
            let launch = of(bucket.last);
            if all.all(|unit| of(unit) == launch) {
                groups.put_whole(launch, ready);
            } else {
                let first = bucket.first_call as usize;
                let calls = &units.unit_of[first..first + ready.calls as usize];
                groups.put_apart(calls.iter().map(|unit| of(*unit)));
            }
        }
    }
}
