//! Calls put together into launches, whatever buckets they were recorded in.
//!
//! Mostly all calls of a bucket go into one launch, one behind another. Such a bucket has one place, and
//! nothing is noted of its calls.

/// Where the calls of a bucket are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// In one launch, in the order of recording, from its call `first` on.
    Whole {
        /// The launch's number.
        launch: u32,
        /// The number in it of the bucket's first call.
        first: u32,
    },
    /// Each where its own place says; that of the first one is here.
    Apart {
        /// The index of that place in [`Groups::places`].
        start: u32,
    },
}

/// Launches in order, and the place of each call in them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Groups {
    /// The kernel and the number of calls of each launch.
    pub launches: Vec<(u32, u32)>,
    /// Of each bucket of calls, in the order in which the scheduler was given them.
    pub shares: Vec<Share>,
    /// Of the calls of buckets that are apart, bucket by bucket: the launch and the number in it.
    pub places: Vec<(u32, u32)>,
}

impl Groups {
    /// Removes all launches.
    pub fn clear(&mut self) {
        self.launches.clear();
        self.shares.clear();
        self.places.clear();
    }

    /// Adds an empty launch.
    pub fn launch(&mut self, kernel: u32) -> u32 {
        self.launches.push((kernel, 0));
        self.launches.len() as u32 - 1
    }

    /// The next bucket's calls are all in a launch.
    pub fn put_whole(&mut self, launch: u32, calls: u32) {
        let (_, count) = &mut self.launches[launch as usize];
        let first = *count;
        self.shares.push(Share::Whole { launch, first });
        *count += calls;
    }

    /// The next bucket's calls are in these launches.
    pub fn put_apart(&mut self, launches: impl Iterator<Item = u32>) {
        let start = self.places.len() as u32;
        self.shares.push(Share::Apart { start });
        for launch in launches {
            let (_, count) = &mut self.launches[launch as usize];
            self.places.push((launch, *count));
            *count += 1;
        }
    }
}
