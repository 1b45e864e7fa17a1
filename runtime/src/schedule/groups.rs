//! What every scheduler gives: launches in order, and where in them each call is.
//!
//! Mostly all calls of a bucket go into one launch, one behind another. Such a bucket has one place, and
//! nothing is noted of its calls.

use super::Ready;

/// Where the calls of a bucket are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// In one launch, in the order of recording.
    Whole {
        /// The launch's number.
        launch: u32,
        /// The number in it of the bucket's first call.
        call: u32,
        /// What the calls before that one make; see [`Launch::rows`].
        row: u32,
    },
    /// Each where its own place says; that of the first one is here.
    Apart {
        /// The index of that place in [`Groups::places`].
        start: u32,
    },
}

/// Calls of a kernel that run together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The kernel's number in the manifest.
    pub kernel: u32,
    /// How many calls it has.
    pub calls: u32,
    /// What its calls make, if those that are apart make one row each; otherwise the log says.
    pub rows: u32,
    /// Launches next to each other of the same wave need nothing of each other.
    pub wave: u32,
}

/// Launches in order, and the place of each call in them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Groups {
    /// The launches, one after another.
    pub launches: Vec<Launch>,
    /// Of each bucket of calls, in the order in which the scheduler leaves them.
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

    /// Makes each bucket a launch, in this order, of which every call reads only those before. Neighbours of one
    /// depth are a wave.
    pub fn of_buckets(&mut self, buckets: &[Ready]) {
        self.clear();
        let (mut wave, mut before) = (0, None);
        self.launches.extend(buckets.iter().map(|ready| {
            let depth = Some((ready.phase, ready.depth));
            wave += u32::from(std::mem::replace(&mut before, depth) != depth);
            Launch {
                kernel: ready.kernel,
                calls: ready.calls,
                rows: ready.rows,
                wave,
            }
        }));
        let launches = 0..buckets.len() as u32;
        self.shares.extend(launches.map(|launch| Share::Whole {
            launch,
            call: 0,
            row: 0,
        }));
    }

    /// Adds an empty launch, a wave of its own.
    pub fn launch(&mut self, kernel: u32) -> u32 {
        let number = self.launches.len() as u32;
        self.launches.push(Launch {
            kernel,
            calls: 0,
            rows: 0,
            wave: number + 1,
        });
        number
    }

    /// The next bucket's calls are all in a launch.
    pub fn put_whole(&mut self, launch: u32, bucket: &Ready) {
        let of = &mut self.launches[launch as usize];
        let (call, row) = (of.calls, of.rows);
        self.shares.push(Share::Whole { launch, call, row });
        of.calls += bucket.calls;
        of.rows += bucket.rows;
    }

    /// The next bucket's calls are in these launches.
    pub fn put_apart(&mut self, launches: impl Iterator<Item = u32>) {
        let start = self.places.len() as u32;
        self.shares.push(Share::Apart { start });
        for launch in launches {
            let of = &mut self.launches[launch as usize];
            self.places.push((launch, of.calls));
            of.calls += 1;
            of.rows += 1;
        }
    }

    /// Gives each call of a bucket, of that number among the buckets, a place of its own: where it is.
    pub fn take_apart(&mut self, bucket: usize, calls: u32) {
        if let Share::Whole { launch, call, .. } = self.shares[bucket] {
            let start = self.places.len() as u32;
            self.shares[bucket] = Share::Apart { start };
            (self.places).extend((call..call + calls).map(|call| (launch, call)));
        }
    }
}
