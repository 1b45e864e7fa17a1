//! Connections: taken while there is room, served, and ended in order.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use super::args::Arguments;
use super::paced::Paced;
use super::routes::Service;
use crate::exit::{FAILED, SUCCESS, Stop, USAGE, say};

/// How long a connection may be open without a whole head of a request, where a client is waited for so long.
const HEAD: Duration = Duration::from_secs(30);
/// How long to wait where no connection can be taken.
const PAUSE: Duration = Duration::from_millis(50);

pub async fn listen(address: &str) -> Result<TcpListener, Stop> {
    let cannot = |error| Stop::usage(format!("cannot listen on {address}: {error}"));
    TcpListener::bind(address).await.map_err(cannot)
}

/// Serves until it is told to stop, and ends what is in flight.
pub async fn run(
    service: &Arc<Service>,
    listener: TcpListener,
    arguments: &Arguments,
) -> Result<u8, Stop> {
    let mut signals = Signals::new()?;
    let address = listener.local_addr();
    let address = address.map_err(|error| Stop::usage(format!("no address: {error}")))?;
    announce(service.name(), &address.to_string());
    let connections = GracefulShutdown::new();
    let places = Arc::new(Semaphore::new(arguments.max_connections as usize));
    let accept = async {
        loop {
            let Ok(place) = places.clone().acquire_owned().await else {
                return;
            };
            match listener.accept().await {
                Ok((stream, _)) => {
                    let connection = connection(service, stream, arguments.patience);
                    let connection = connections.watch(connection);
                    tokio::spawn(async move {
                        // Whatever ends a connection is its client's affair.
                        let _ = connection.await;
                        drop(place);
                    });
                }
                // Too many files may be open; some will be closed.
                Err(_) => sleep(PAUSE).await,
            }
        }
    };
    let reason = tokio::select! {
        () = accept => None,
        signal = signals.next() => Some(signal),
        () = service.fails() => None,
    };
    service.stop();
    drop(listener);
    if reason.is_some() {
        say("stopping: what is in flight is finished");
    }
    let ended = tokio::select! {
        ended = timeout(arguments.grace, connections.shutdown()) => ended.is_ok(),
        second = signals.next() => return Ok(128 + second),
    };
    if service.has_failed() {
        say("error: the program can compute nothing any more");
        return Ok(USAGE);
    }
    if !ended {
        say("error: some requests took longer than --grace, and were given up");
    }
    Ok(if ended { SUCCESS } else { FAILED })
}

fn connection(
    service: &Arc<Service>,
    stream: TcpStream,
    patience: Duration,
) -> http1::Connection<
    TokioIo<Paced>,
    impl hyper::service::HttpService<
        hyper::body::Incoming,
        ResBody = http_body_util::Full<hyper::body::Bytes>,
        Future: Send,
        Error = std::convert::Infallible,
    > + use<>,
> {
    // Without it an answer waits for more that could go with it; nothing else depends on that.
    let _ = stream.set_nodelay(true);
    let service = service.clone();
    let answer = move |request| {
        let service = service.clone();
        async move { service.answer(request).await }
    };
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD.min(patience))
        .serve_connection(
            TokioIo::new(Paced::new(stream, patience)),
            service_fn(answer),
        )
}

/// Says on stdout where the server is, for whoever started it.
fn announce(name: &str, address: &str) {
    let mut stdout = std::io::stdout();
    // It serves as well where nobody reads that.
    let _ = writeln!(stdout, "serving {name} on http://{address}");
    let _ = stdout.flush();
}

/// The signals that stop the server, by their numbers.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn new() -> Result<Signals, Stop> {
        let cannot = |error| Stop::usage(format!("cannot wait for signals: {error}"));
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt()).map_err(cannot)?,
            terminate: signal(SignalKind::terminate()).map_err(cannot)?,
        })
    }

    async fn next(&mut self) -> u8 {
        tokio::select! {
            _ = self.interrupt.recv() => 2,
            _ = self.terminate.recv() => 15,
        }
    }
}
