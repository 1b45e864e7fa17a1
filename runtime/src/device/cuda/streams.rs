//! The streams that launches are queued on. All work is in the order of the first; calls of one wave
//! are spread over several, which begin behind the first and end before what follows there.

use cudarc::driver::result::{self, DriverError, stream::StreamKind};
use cudarc::driver::sys;

use super::clock::Clock;
use super::driver::Function;
use super::graphs::pointers_to;
use crate::device::queue::{Launch, Queue, waves_of};

const STREAMS: usize = 4;

pub struct Streams {
    streams: Vec<sys::CUstream>,
    /// What streams that begin wait for, then what each stream but the first ends with.
    begun: sys::CUevent,
    ended: Vec<sys::CUevent>,
}

impl Streams {
    pub fn new() -> Result<Streams, DriverError> {
        let event = || result::event::create(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING);
        let stream = |_| result::stream::create(StreamKind::NonBlocking);
        Ok(Streams {
            streams: (0..STREAMS).map(stream).collect::<Result<_, _>>()?,
            begun: event()?,
            ended: (1..STREAMS).map(|_| event()).collect::<Result<_, _>>()?,
        })
    }

    pub fn first(&self) -> sys::CUstream {
        self.streams[0]
    }

    /// Waits for everything.
    pub fn wait(&self) -> Result<(), DriverError> {
        // SAFETY: the stream is this one's; whatever ran on the others was joined.
        unsafe { result::stream::synchronize(self.first()) }
    }

    /// Queues every launch, calls of one wave side by side. Launches of each of several calls follow each other on a stream, also
    /// those that would not have to: to part them would take an event more for each. Those of a call by itself are parted.
    ///
    /// # Safety
    ///
    /// As for [`crate::device::Device::run`]; the functions are those of the queue's numbers.
    pub unsafe fn launch(&self, queue: &Queue, functions: &[Function]) -> Result<(), DriverError> {
        for mut wave in queue.waves() {
            let streams = wave.len().min(STREAMS);
            if streams < 2 {
                for (_, launches, arguments) in &mut wave {
                    // SAFETY: the caller's promise.
                    unsafe { self.launch_call(functions, launches, arguments)? };
                }
                continue;
            }
            self.fork(streams)?;
            for (number, (_, launches, arguments)) in wave.enumerate() {
                let stream = self.streams[number % streams];
                for launch in launches {
                    // SAFETY: the caller's promise.
                    unsafe { queue_launch(functions, launch, arguments, stream)? };
                }
            }
            self.join(streams)?;
        }
        Ok(())
    }

    /// Queues every launch one after another, each call timed.
    ///
    /// # Safety
    ///
    /// As for [`Streams::launch`].
    pub unsafe fn launch_timed(
        &self,
        queue: &Queue,
        functions: &[Function],
        clock: &mut Clock,
    ) -> Result<(), DriverError> {
        clock.begin_calls(self.first())?;
        for (_, launches, arguments) in queue.waves().flatten() {
            // SAFETY: the caller's promise.
            unsafe { self.launch_call(functions, launches, arguments)? };
            clock.mark_call(self.first())?;
        }
        Ok(())
    }

    /// Queues a call's launches behind what is queued, those of one wave side by side: they may have divided the processors between
    /// them.
    ///
    /// # Safety
    ///
    /// As for [`Streams::launch`].
    unsafe fn launch_call(
        &self,
        functions: &[Function],
        launches: &[Launch],
        arguments: &[u64],
    ) -> Result<(), DriverError> {
        for beside in waves_of(launches) {
            let streams = beside.len().min(STREAMS);
            self.fork(streams)?;
            for (number, launch) in beside.iter().enumerate() {
                let stream = self.streams[number % streams];
                // SAFETY: the caller's promise.
                unsafe { queue_launch(functions, launch, arguments, stream)? };
            }
            self.join(streams)?;
        }
        Ok(())
    }

    /// Lets `streams` streams begin when all that is queued is done.
    fn fork(&self, streams: usize) -> Result<(), DriverError> {
        if streams < 2 {
            return Ok(());
        }
        // SAFETY: streams and events are this one's.
        unsafe {
            result::event::record(self.begun, self.first())?;
            for stream in &self.streams[1..streams] {
                let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
                result::stream::wait_event(*stream, self.begun, flags)?;
            }
        }
        Ok(())
    }

    /// Lets what is queued after this wait for the streams that were forked.
    fn join(&self, streams: usize) -> Result<(), DriverError> {
        if streams < 2 {
            return Ok(());
        }
        for (stream, ended) in self.streams[1..streams].iter().zip(&self.ended) {
            // SAFETY: streams and events are this one's.
            unsafe {
                result::event::record(*ended, *stream)?;
                let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
                result::stream::wait_event(self.first(), *ended, flags)?;
            }
        }
        Ok(())
    }

    /// Gives everything back.
    ///
    /// # Safety
    ///
    /// Nothing is queued.
    pub unsafe fn destroy(&mut self) {
        // SAFETY: streams and events are this one's, and not used after this.
        unsafe {
            for event in self.ended.drain(..).chain([self.begun]) {
                let _ = result::event::destroy(event);
            }
            for stream in self.streams.drain(..) {
                let _ = result::stream::destroy(stream);
            }
        }
    }
}

/// # Safety
///
/// As for [`Streams::launch`].
unsafe fn queue_launch(
    functions: &[Function],
    launch: &Launch,
    arguments: &[u64],
    stream: sys::CUstream,
) -> Result<(), DriverError> {
    let mut pointers = pointers_to(arguments);
    let function = functions[launch.function];
    // SAFETY: the caller's promise; the driver copies the arguments before it returns.
    unsafe {
        result::launch_kernel(
            function.handle,
            (launch.grid.0, launch.grid.1, 1),
            (launch.threads, 1, 1),
            function.shared,
            stream,
            &mut pointers,
        )
    }
}
