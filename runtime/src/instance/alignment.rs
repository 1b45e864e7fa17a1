//! Lets instances that were just admitted meet the others in the same launches.
//!
//! Within a flush a call's depth counts from where its instance began or went on. To its next
//! decision, an instance that was just admitted has farther to go than one that goes on in a loop:
//! the first step of the loop comes after what comes before the loop. So that step would be a launch
//! of its own, with the few rows of the new instances. But how far it is to the next decision is
//! mostly the same; so it is remembered, and whoever has less far to go starts deeper, such that most
//! reach their next decision at one depth.
//!
//! A wrong guess costs launches, never a bit: a call still runs after its operands.

/// Instances that have farther to go are not waited for.
const MOST_LEVELS: u32 = 1 << 10;
/// How often an instance must differ from what is usual before it is forgotten.
const MOST_VOTES: u32 = 64;

/// How far it usually is to the next decision: the majority of the last instances.
#[derive(Clone, Copy, Debug, Default)]
struct Usual {
    levels: u32,
    votes: u32,
}

impl Usual {
    fn learn(&mut self, levels: u32) {
        if self.levels == levels {
            self.votes = (self.votes + 1).min(MOST_VOTES);
        } else if self.votes > 0 {
            self.votes -= 1;
        } else {
            (self.levels, self.votes) = (levels, 1);
        }
    }
}

/// The depths from which instances count.
#[derive(Clone, Copy, Debug, Default)]
pub struct Alignment {
    new: Usual,
    old: Usual,
    new_floor: u32,
    old_floor: u32,
}

impl Alignment {
    /// Instances that go on or begin from now on shall meet; what is learnt from the first of them
    /// does not move the others.
    pub fn meet(&mut self) {
        self.new_floor = self.old.levels.saturating_sub(self.new.levels);
        self.old_floor = self.new.levels.saturating_sub(self.old.levels);
    }

    /// The depth from which an instance counts that begins, or goes on.
    pub fn floor(&self, is_new: bool) -> u32 {
        if is_new {
            self.new_floor
        } else {
            self.old_floor
        }
    }

    /// An instance that began, or went on, needed `levels` levels to its next decision.
    pub fn learn(&mut self, is_new: bool, levels: u32) {
        if levels <= MOST_LEVELS {
            let usual = if is_new { &mut self.new } else { &mut self.old };
            usual.learn(levels);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_less_far_to_go_starts_deeper() {
        let mut alignment = Alignment::default();
        alignment.learn(true, 5);
        alignment.learn(false, 2);
        assert_eq!([true, false].map(|is_new| alignment.floor(is_new)), [0, 0]);
        alignment.meet();
        assert_eq!([true, false].map(|is_new| alignment.floor(is_new)), [0, 3]);
        for _ in 0..10 {
            alignment.learn(false, MOST_LEVELS + 1);
            alignment.learn(false, 9);
        }
        alignment.meet();
        assert_eq!([true, false].map(|is_new| alignment.floor(is_new)), [4, 0]);
    }

    #[test]
    fn exceptions_are_not_the_rule() {
        let mut usual = Usual::default();
        for levels in [2, 2, 2, 7, 2, 9, 2] {
            usual.learn(levels);
        }
        assert_eq!(usual.levels, 2);
        for _ in 0..2 * MOST_VOTES {
            usual.learn(3);
        }
        assert_eq!(usual.levels, 3);
    }
}
