//! Sees an object that contains itself.

/// No object is watched above this depth.
const WATCHED_FROM: usize = 64;

/// Of the objects around the value at hand one is remembered, ever deeper ones; on the way into a cycle it
/// comes again.
pub struct Watch {
    object: usize,
    depth: usize,
    next: usize,
}

impl Default for Watch {
    fn default() -> Watch {
        Watch {
            object: 0,
            depth: 0,
            next: WATCHED_FROM,
        }
    }
}

impl Watch {
    pub fn reset(&mut self) {
        *self = Watch::default();
    }

    /// The object is entered, so that as many are open now; false if it contains itself.
    #[inline]
    pub fn enter(&mut self, object: usize, depth: usize) -> bool {
        if object == self.object {
            return false;
        }
        if depth == self.next {
            *self = Watch {
                object,
                depth,
                next: 2 * depth,
            };
        }
        true
    }

    /// An object is left, so that as many are open now.
    #[inline]
    pub fn leave(&mut self, depth: usize) {
        if depth < self.depth {
            *self = Watch {
                object: 0,
                depth: 0,
                next: (depth + 1).next_power_of_two().max(WATCHED_FROM),
            };
        }
    }
}
