//! As much of HTTP as a client of `batch-serve` needs.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// An answer that takes longer does not come.
const PATIENCE: Duration = Duration::from_secs(60);

/// A connection.
#[derive(Debug)]
pub struct Client {
    stream: BufReader<TcpStream>,
}

/// An answer of a server.
#[derive(Clone, Debug)]
pub struct Response {
    /// The status code, 200 if all is well.
    pub status: u16,
    headers: Vec<(String, String)>,
    /// What follows the headers, put together where it came in chunks.
    pub body: Vec<u8>,
}

impl Response {
    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON; panics if it is none.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        let json = serde_json::from_slice(&self.body);
        json.unwrap_or_else(|error| panic!("{error} in {}", self.text()))
    }

    /// The value of a header, whose name is in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let header = self.headers.iter().find(|(given, _)| given == name);
        header.map(|(_, value)| value.as_str())
    }
}

impl Client {
    /// Connects to `host:port`; an answer that takes too long is an error.
    pub fn connect(address: &str) -> io::Result<Client> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Client {
            stream: BufReader::new(stream),
        })
    }

    /// Sends bytes as they are.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    /// Takes one byte of what comes.
    pub fn read_byte(&mut self) -> io::Result<u8> {
        let mut byte = [0];
        // Not by the buffer, which takes all that is there.
        self.stream.get_mut().read_exact(&mut byte)?;
        Ok(byte[0])
    }

    /// Sends a request with headers of its own, each with the end of its line.
    pub fn begin(
        &mut self,
        method: &str,
        path: &str,
        headers: &str,
        body: &[u8],
    ) -> io::Result<()> {
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: test\r\ncontent-length: {length}\r\n{headers}\r\n"
        );
        self.send(&[head.as_bytes(), body].concat())
    }

    /// Sends a request, with more headers or none, and reads the answer.
    pub fn request(
        &mut self,
        method: &str,
        path: &str,
        headers: &str,
        body: &[u8],
    ) -> io::Result<Response> {
        self.begin(method, path, headers, body)?;
        self.receive()
    }

    /// Asks for a path.
    pub fn get(&mut self, path: &str) -> io::Result<Response> {
        self.request("GET", path, "", b"")
    }

    /// Sends a body to a path.
    pub fn post(&mut self, path: &str, body: &str) -> io::Result<Response> {
        self.request("POST", path, "", body.as_bytes())
    }

    /// The next response.
    pub fn receive(&mut self) -> io::Result<Response> {
        let wrong = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let status = line.split(' ').nth(1).and_then(|code| code.parse().ok());
        let status = status.ok_or_else(|| wrong("no status"))?;
        let mut headers = Vec::new();
        loop {
            line.clear();
            self.stream.read_line(&mut line)?;
            let line = line.trim_end();
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').ok_or_else(|| wrong("no header"))?;
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut response = Response {
            status,
            headers,
            body: Vec::new(),
        };
        let length = response.header("content-length");
        let length = length.and_then(|length| length.parse().ok());
        response
            .body
            .resize(length.ok_or_else(|| wrong("no length"))?, 0);
        self.stream.read_exact(&mut response.body)?;
        Ok(response)
    }
}
