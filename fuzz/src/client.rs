//! A run of `batch-serve` with clients: what they send is in a file, and afterwards a good request has to be
//! answered with the bits of `batch-run`.
//!
//! The server is a process of its own, as any tool's run is; the clients are in the process that judges, which
//! ends with [`FOUND`] where the server took something badly.

use std::ffi::OsString;
use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::FromRawFd;
use std::sync::OnceLock;
use std::thread::sleep;
use std::time::Duration;

use crate::child::Main;
use crate::mutate::connections;

/// What clients send.
pub const REQUESTS: &str = "requests";
/// The body of a request that is good.
pub const GOOD: &str = "good.json";
/// The answer to it.
pub const EXPECTED: &str = "expected.json";

/// The exit code of a run in which something is wrong.
const FOUND: u8 = 3;
/// How long the server waits for a client, in seconds.
const PATIENCE: &str = "0.5";
/// How long a client waits until it has an answer or its connection is closed: far more than that, as the machine
/// is busy.
const MOST_SILENCE: Duration = Duration::from_secs(20);
/// How often a good request is sent where it did not come through in the server's patience.
const TRIES: usize = 20;

static SERVER: OnceLock<Main> = OnceLock::new();

/// Says what the server is.
pub fn set_server(server: Main) {
    let _ = SERVER.set(server);
}

/// Runs the server with these arguments and all clients.
pub fn run(arguments: Vec<OsString>) -> u8 {
    match try_run(arguments) {
        Ok(()) => 0,
        Err(problem) => {
            eprintln!("error: {problem}");
            FOUND
        }
    }
}

fn try_run(mut arguments: Vec<OsString>) -> Result<(), String> {
    let limits = [
        "--listen",
        "127.0.0.1:0",
        "--patience",
        PATIENCE,
        "--grace",
        "10",
    ];
    arguments.extend(limits.map(OsString::from));
    let text = |error: io::Error| error.to_string();
    let server = Server::start(arguments).map_err(text)?;
    let sent = connections(&fs::read(REQUESTS).map_err(text)?);
    let mut open = Vec::new();
    for (end, bytes) in &sent {
        let stream = server.connect()?;
        send(&stream, *end, bytes);
        // Who breaks off is gone now.
        if *end != b'c' {
            open.push(stream);
        }
    }
    for stream in open {
        answered(stream)?;
    }
    let good = fs::read(GOOD).map_err(text)?;
    let expected = fs::read(EXPECTED).map_err(text)?;
    let mut answer = Vec::new();
    for _ in 0..TRIES {
        answer = request(server.connect()?, &good).unwrap_or_default();
        if !answer.is_empty() && !answer.starts_with(b"HTTP/1.1 408") {
            break;
        }
    }
    let body = answer.windows(4).position(|four| four == b"\r\n\r\n");
    let body = body.map_or(&[][..], |at| &answer[at + 4..]);
    if !answer.starts_with(b"HTTP/1.1 200") || body != expected {
        let answer = String::from_utf8_lossy(&answer);
        return Err(format!("a good request was answered by {answer:?}"));
    }
    server.end()
}

/// What goes wrong with sending is the server's right: it may have closed the connection.
fn send(mut stream: &TcpStream, end: u8, bytes: &[u8]) {
    match end {
        b's' => {
            for piece in bytes.chunks(bytes.len().div_ceil(20).max(1)) {
                let _ = stream.write_all(piece);
                sleep(Duration::from_millis(1));
            }
        }
        _ => drop(stream.write_all(bytes)),
    }
    if end == b'h' {
        let _ = stream.shutdown(Shutdown::Write);
    }
}

/// Waits for the begin of an answer, or the end of the connection.
fn answered(mut stream: TcpStream) -> Result<(), String> {
    let mut answer = [0; 12];
    let mut length = 0;
    while length < answer.len() {
        match stream.read(&mut answer[length..]) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return Err("a connection has no answer and is not closed".to_owned());
            }
            Err(_) => break,
        }
    }
    let is_whole = length == answer.len();
    let is_answer = answer.starts_with(b"HTTP/1.") && answer[9..].iter().all(u8::is_ascii_digit);
    match (length, is_whole && is_answer) {
        (0, _) => Ok(()),
        (_, false) => Err("an answer that is not one of HTTP".to_owned()),
        _ if answer.ends_with(b"500") => Err("an answer that tells of a mistake within".to_owned()),
        _ => Ok(()),
    }
}

/// Sends an instance; the whole answer.
fn request(mut stream: TcpStream, body: &[u8]) -> io::Result<Vec<u8>> {
    let length = body.len();
    let head = format!(
        "POST /infer HTTP/1.1\r\nhost: test\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n"
    );
    stream.write_all(&[head.as_bytes(), body].concat())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(answer)
}

struct Server {
    process: libc::pid_t,
    address: String,
}

impl Server {
    /// The calling process must have one thread only.
    fn start(arguments: Vec<OsString>) -> io::Result<Server> {
        let server = SERVER.get().ok_or(ErrorKind::NotFound)?;
        let mut pipe = [0; 2];
        // SAFETY: there is room for both ends; this process has one thread, so the child is a whole copy of it.
        let process = unsafe {
            if libc::pipe(pipe.as_mut_ptr()) != 0 {
                return Err(io::Error::last_os_error());
            }
            libc::fork()
        };
        let [read, write] = pipe;
        if process == 0 {
            // SAFETY: plain numbers; the server ends when whoever started it does.
            unsafe {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                libc::dup2(write, 1);
                libc::close(read);
                libc::close(write);
            }
            std::process::exit(i32::from(server(arguments)));
        }
        // SAFETY: both ends are open, and nothing else has them.
        let (mut read, write) =
            unsafe { (fs::File::from_raw_fd(read), fs::File::from_raw_fd(write)) };
        drop(write);
        if process < 0 {
            return Err(io::Error::last_os_error());
        }
        let mut line = Vec::new();
        let mut byte = [0];
        while read.read(&mut byte)? == 1 && byte != *b"\n" {
            line.push(byte[0]);
        }
        let line = String::from_utf8_lossy(&line);
        let address = line
            .rsplit_once("http://")
            .map(|(_, address)| address.to_owned());
        let address = address.ok_or_else(|| io::Error::other("the server does not start"))?;
        Ok(Server { process, address })
    }

    fn connect(&self) -> Result<TcpStream, String> {
        let stream = TcpStream::connect(&self.address);
        let stream = stream.map_err(|error| format!("the server takes no connection: {error}"))?;
        // Plain numbers, which are not refused.
        let _ = stream.set_read_timeout(Some(MOST_SILENCE));
        let _ = stream.set_write_timeout(Some(MOST_SILENCE));
        Ok(stream)
    }

    /// Ends it in order.
    fn end(self) -> Result<(), String> {
        let mut status = 0;
        // SAFETY: the process is this one's own child, and the pointer is valid.
        let ended = unsafe {
            libc::kill(self.process, libc::SIGTERM);
            libc::waitpid(self.process, &raw mut status, 0)
        };
        match ended == self.process && libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0 {
            true => Ok(()),
            false => Err(format!("the server ended with the status {status}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// What is thought of a server that sends this and closes the connection.
    fn judged(answer: &'static [u8]) -> Result<(), String> {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            stream.write_all(answer).expect("the client reads");
        });
        let judged = answered(TcpStream::connect(address).expect("a server"));
        server.join().expect("the server ends");
        judged
    }

    #[test]
    fn an_answer_or_the_end_is_right_and_anything_else_is_not() {
        assert_eq!(judged(b""), Ok(()));
        assert_eq!(judged(b"HTTP/1.1 400 Bad Request\r\n\r\n"), Ok(()));
        for wrong in [
            &b"HTTP/1.1 500 Internal Server Error\r\n\r\n"[..],
            b"HTTP/1.1 20",
            b"no answer at all",
        ] {
            assert!(judged(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_connection_that_stays_silent_is_found() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let stream = TcpStream::connect(listener.local_addr().expect("an address"));
        let stream = stream.expect("a server");
        let short = Some(Duration::from_millis(20));
        stream.set_read_timeout(short).expect("a time");
        assert!(answered(stream).is_err_and(|problem| problem.contains("not closed")));
    }
}
