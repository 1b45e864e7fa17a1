//! What a flush launches, complete with arguments, before any of it is given to a device: so that a
//! device can see whether it launched the like before.

use super::Piece;

/// Waves of calls; those of one wave need nothing of each other. A call's launches follow one another, but
/// for those that are beside others.
#[derive(Debug, Default)]
pub struct Queue {
    launches: Vec<Launch>,
    arguments: Vec<u64>,
    calls: Vec<Call>,
    /// Of each wave but the last, the calls up to its end.
    waves: Vec<usize>,
}

/// A kernel's call for the rows of a bucket.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// What no other call of the wave has.
    pub scratch: Piece,
    /// Where its launches and its arguments begin.
    launches: usize,
    arguments: usize,
}

/// One launch of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    /// As the device numbered it.
    pub function: usize,
    /// Blocks in the first and the second dim.
    pub grid: (u32, u32),
    /// Threads of a block.
    pub threads: u32,
    /// Whether it needs nothing of the call's launch before it, nor of those which that one is beside.
    pub beside: bool,
}

/// The launches of a call, those together that are beside each other.
pub fn waves_of(launches: &[Launch]) -> impl Iterator<Item = &[Launch]> {
    launches.chunk_by(|_, next| next.beside)
}

/// What ends a call, and a wave, in a queue's form.
const END_OF_CALL: u32 = u32::MAX;
const END_OF_WAVE: u32 = 0;

impl Queue {
    /// Empties the queue, and keeps its memory.
    pub fn clear(&mut self) {
        self.launches.clear();
        self.arguments.clear();
        self.calls.clear();
        self.waves.clear();
    }

    /// What is added from now on waits for everything before it.
    pub fn end_level(&mut self) {
        if self.calls.len() > self.waves.last().copied().unwrap_or(0) {
            self.waves.push(self.calls.len());
        }
    }

    /// Adds a call, whose arguments all its launches get; returns the list to add them to.
    pub fn call(&mut self, scratch: Piece) -> &mut Vec<u64> {
        self.calls.push(Call {
            scratch,
            launches: self.launches.len(),
            arguments: self.arguments.len(),
        });
        &mut self.arguments
    }

    /// Adds a launch to the last call.
    pub fn launch(&mut self, launch: Launch) {
        self.launches.push(launch);
    }

    /// How many launches are queued, over all calls.
    pub fn launch_count(&self) -> usize {
        self.launches.len()
    }

    /// The launches and the arguments of a call, by its number.
    fn call_at(&self, number: usize) -> (Call, &[Launch], &[u64]) {
        let call = self.calls[number];
        let (launches, arguments) = match self.calls.get(number + 1) {
            Some(next) => (next.launches, next.arguments),
            None => (self.launches.len(), self.arguments.len()),
        };
        (
            call,
            &self.launches[call.launches..launches],
            &self.arguments[call.arguments..arguments],
        )
    }

    /// Of each wave, its calls: what they have for themselves, their launches, their arguments.
    pub fn waves(
        &self,
    ) -> impl Iterator<Item = impl ExactSizeIterator<Item = (Call, &[Launch], &[u64])>> {
        let ends = self.waves.iter().copied();
        let last = self.waves.last().copied().unwrap_or(0);
        let open = (last < self.calls.len()).then_some(self.calls.len());
        let mut begin = 0;
        ends.chain(open).map(move |end| {
            let range = begin..end;
            begin = end;
            range.map(|number| self.call_at(number))
        })
    }

    /// How often something is begun that waits for all before it, the first time counted: in each wave as often as in
    /// its call of the most waves.
    pub fn steps(&self) -> u64 {
        let waves = self.waves();
        let steps = waves.map(|wave| {
            let of_calls = wave.map(|(_, launches, _)| waves_of(launches).count());
            of_calls.max().unwrap_or(0) as u64
        });
        steps.sum()
    }

    /// Its form: for each wave, for each call, how many of its launches are beside each other at a time.
    pub fn form(&self) -> Vec<u32> {
        let ends = self.calls.len() + self.waves.len() + 1;
        let mut form = Vec::with_capacity(self.launches.len() + ends);
        for wave in self.waves() {
            for (_, launches, _) in wave {
                form.extend(waves_of(launches).map(|beside| beside.len() as u32));
                form.push(END_OF_CALL);
            }
            form.push(END_OF_WAVE);
        }
        form
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_have_calls_with_launches() {
        let mut queue = Queue::default();
        let launch = |function| Launch {
            function,
            grid: (1, 1),
            threads: 32,
            beside: false,
        };
        let scratch = Piece {
            address: 0,
            bytes: 0,
        };
        assert!(queue.form().is_empty());
        queue.end_level();
        queue.call(scratch).extend([1, 2]);
        queue.launch(launch(7));
        queue.launch(launch(8));
        queue.call(scratch).push(3);
        queue.launch(launch(9));
        queue.end_level();
        queue.end_level();
        queue.call(scratch).push(4);
        queue.launch(launch(7));
        let (call, wave) = (END_OF_CALL, END_OF_WAVE);
        let form = [1, 1, call, 1, call, wave, 1, call, wave];
        assert_eq!(queue.form(), form);
        assert_eq!(queue.steps(), 3);
        let waves: Vec<Vec<_>> = queue
            .waves()
            .map(|wave| {
                wave.map(|(_, launches, arguments)| (launches.len(), arguments.to_vec()))
                    .collect()
            })
            .collect();
        assert_eq!(
            waves,
            [vec![(2, vec![1, 2]), (1, vec![3])], vec![(1, vec![4])]]
        );
        queue.end_level();
        assert_eq!(queue.form(), form);
        // Two beside each other, and one that waits for both.
        queue.clear();
        queue.call(scratch);
        for beside in [false, true, false] {
            queue.launch(Launch {
                beside,
                ..launch(7)
            });
        }
        assert_eq!(queue.form(), [2, 1, call, wave]);
        assert_eq!(queue.steps(), 2);
    }
}
