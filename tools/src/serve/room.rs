//! Memory that requests share: each holds what it uses, and who finds no more is refused.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::refusal::Refusal;

/// What a permit stands for.
const UNIT: u64 = 1 << 10;

#[derive(Clone)]
pub struct Room(Arc<Semaphore>);

/// What one request holds, until it is dropped.
pub struct Held {
    room: Room,
    permit: Option<OwnedSemaphorePermit>,
}

impl Room {
    /// Room for `bytes` bytes.
    pub fn new(bytes: u64) -> Room {
        let units = usize::try_from(bytes.div_ceil(UNIT)).unwrap_or(usize::MAX);
        Room(Arc::new(Semaphore::new(units.min(Semaphore::MAX_PERMITS))))
    }

    /// A place that holds nothing yet.
    pub fn enter(&self) -> Held {
        Held {
            room: self.clone(),
            permit: None,
        }
    }
}

impl Held {
    /// Holds `bytes` bytes in all, if there is room.
    pub fn grow(&mut self, bytes: usize) -> Result<(), Refusal> {
        let held = self
            .permit
            .as_ref()
            .map_or(0, |permit| permit.num_permits());
        let more = bytes.div_ceil(UNIT as usize).saturating_sub(held);
        if more == 0 {
            return Ok(());
        }
        let more = u32::try_from(more).unwrap_or(u32::MAX);
        let semaphore = self.room.0.clone();
        let more = semaphore.try_acquire_many_owned(more);
        let more = more.map_err(|_| Refusal::full())?;
        match &mut self.permit {
            Some(permit) => permit.merge(more),
            None => self.permit = Some(more),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_is_given_back() {
        let room = Room::new(4 << 10);
        let (mut one, mut other) = (room.enter(), room.enter());
        assert!(one.grow(1).is_ok() && one.grow(3 << 10).is_ok());
        assert!(other.grow(1 << 10).is_ok());
        assert!(other.grow((1 << 10) + 1).is_err() && other.grow(1 << 10).is_ok());
        drop(one);
        assert!(other.grow(4 << 10).is_ok());
    }
}
