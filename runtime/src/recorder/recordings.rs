//! The recordings that a recorder writes calls from, by number.

use super::recording::Recording;

/// See the [module's page](self). A number is used again when its recording was dropped.
#[derive(Debug, Default)]
pub struct Recordings {
    all: Vec<Recording>,
    free: Vec<u32>,
}

impl Recordings {
    /// Takes a recording; gives its number.
    pub fn put(&mut self, recording: Recording) -> u32 {
        match self.free.pop() {
            Some(number) => {
                self.all[number as usize] = recording;
                number
            }
            None => {
                self.all.push(recording);
                (self.all.len() - 1) as u32
            }
        }
    }

    /// Drops the recordings of these numbers, by which no instance was recorded since the last flush.
    pub fn drop(&mut self, numbers: &mut Vec<u32>) {
        for number in &*numbers {
            self.all[*number as usize] = Recording::default();
        }
        self.free.append(numbers);
    }

    /// The recording of a number, which was not dropped.
    #[inline]
    pub fn get(&self, number: u32) -> &Recording {
        &self.all[number as usize]
    }
}
