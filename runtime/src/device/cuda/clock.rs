//! Times on the device, by events between what is queued; they are read once all of it is done.

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys;

/// What takes time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// From a flush's first copy to the end of its launches.
    Flush,
    /// Of a flush, until its first launch.
    Lists,
    /// Bringing rows to the host.
    Fetch,
}

/// Sums of seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Seconds {
    pub flushes: f64,
    pub lists: f64,
    pub fetches: f64,
}

#[derive(Default)]
pub struct Clock {
    /// Events that nothing waits for.
    spare: Vec<sys::CUevent>,
    begun: Option<sys::CUevent>,
    spans: Vec<(Span, sys::CUevent, sys::CUevent)>,
    /// Between the calls of a flush, if they are timed.
    marks: Vec<sys::CUevent>,
    /// To be used again when `spans` were read.
    used: Vec<sys::CUevent>,
    pub seconds: Seconds,
    pub calls: Vec<f64>,
}

impl Clock {
    /// Queues a new event.
    fn event(&mut self, stream: sys::CUstream) -> Result<sys::CUevent, DriverError> {
        let event = match self.spare.pop() {
            Some(event) => event,
            None => result::event::create(sys::CUevent_flags::CU_EVENT_DEFAULT)?,
        };
        self.used.push(event);
        // SAFETY: the event is this one's, and the stream is alive.
        unsafe { result::event::record(event, stream)? };
        Ok(event)
    }

    /// The next [`Clock::end`] is of what begins here.
    pub fn begin(&mut self, stream: sys::CUstream) -> Result<(), DriverError> {
        self.begun = Some(self.event(stream)?);
        Ok(())
    }

    pub fn end(&mut self, span: Span, stream: sys::CUstream) -> Result<(), DriverError> {
        let end = self.event(stream)?;
        if let Some(begin) = self.begun.take() {
            self.spans.push((span, begin, end));
        }
        Ok(())
    }

    /// The calls of a flush begin.
    pub fn begin_calls(&mut self, stream: sys::CUstream) -> Result<(), DriverError> {
        let event = self.event(stream)?;
        self.calls.clear();
        self.marks = vec![event];
        if let Some(begin) = self.begun {
            self.spans.push((Span::Lists, begin, event));
        }
        Ok(())
    }

    /// A call ends, and the next one begins.
    pub fn mark_call(&mut self, stream: sys::CUstream) -> Result<(), DriverError> {
        let event = self.event(stream)?;
        self.marks.push(event);
        Ok(())
    }

    /// Reads all times; everything that was queued is done.
    pub fn read(&mut self) -> Result<(), DriverError> {
        let elapsed = |begin, end| -> Result<f64, DriverError> {
            // SAFETY: both events were recorded, and are done.
            let milliseconds = unsafe { result::event::elapsed(begin, end)? };
            Ok(f64::from(milliseconds) * 1e-3)
        };
        for (span, begin, end) in self.spans.drain(..) {
            *match span {
                Span::Flush => &mut self.seconds.flushes,
                Span::Lists => &mut self.seconds.lists,
                Span::Fetch => &mut self.seconds.fetches,
            } += elapsed(begin, end)?;
        }
        for pair in self.marks.windows(2) {
            self.calls.push(elapsed(pair[0], pair[1])?);
        }
        self.marks.clear();
        // What is being timed goes on.
        let (begun, used) = (self.begun, std::mem::take(&mut self.used));
        let (kept, done) = used.into_iter().partition(|event| Some(*event) == begun);
        self.used = kept;
        self.spare.extend::<Vec<_>>(done);
        Ok(())
    }

    /// Gives all events back.
    pub fn destroy(&mut self) {
        for event in self.spare.drain(..).chain(self.used.drain(..)) {
            // SAFETY: the event is this one's and not used any more.
            let _ = unsafe { result::event::destroy(event) };
        }
    }
}
