//! A connection whose client has to read what it is sent.

use std::future::Future;
use std::io::{Error, ErrorKind, IoSlice, Result};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

/// What a client reads at least, of an answer that has so much left, in the time that it is waited for.
const PACE: usize = 1 << 20;

/// Fails where its client reads too slowly: an answer would hold its memory, and a connection's place, for as long
/// as the client likes.
pub struct Paced {
    stream: TcpStream,
    patience: Duration,
    /// Begun when nothing more could be written.
    wait: Option<Pin<Box<Sleep>>>,
    /// Bytes that were written since.
    written: usize,
}

impl Paced {
    pub fn new(stream: TcpStream, patience: Duration) -> Paced {
        Paced {
            stream,
            patience,
            wait: None,
            written: 0,
        }
    }

    fn begin_anew(&mut self) {
        self.wait = None;
        self.written = 0;
    }

    /// What came of writing.
    fn paced(
        &mut self,
        context: &mut Context<'_>,
        poll: Poll<Result<usize>>,
    ) -> Poll<Result<usize>> {
        match &poll {
            Poll::Ready(Ok(count)) => {
                self.written = self.written.saturating_add(*count);
                if self.written >= PACE {
                    self.begin_anew();
                }
            }
            Poll::Ready(Err(_)) => {}
            Poll::Pending => {
                let patience = self.patience;
                let wait = self.wait.get_or_insert_with(|| Box::pin(sleep(patience)));
                if wait.as_mut().poll(context).is_ready() {
                    return Poll::Ready(Err(Error::from(ErrorKind::TimedOut)));
                }
            }
        }
        poll
    }
}

impl AsyncRead for Paced {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Paced {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize>> {
        let poll = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.paced(context, poll)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        let poll = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.paced(context, poll)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// Asked for when all that there was is written: nobody is waited for.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        self.begin_anew();
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
