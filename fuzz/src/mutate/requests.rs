//! Changes of what clients send to a server: several connections, each with how it ends and with its bytes.
//!
//! A file has a line of [`MARK`] and a letter before each connection: `r` reads the answer, `h` sends that
//! nothing more comes and reads then, `c` closes at once, `s` sends in small pieces and reads.

use cohort_e2e::Rng;

use super::{NUMBERS, bytes, json};

const MARK: &[u8] = b"=== connection ";
const ENDS: [u8; 5] = *b"rrhcs";

/// Heads that mean something, or should not.
const HEADERS: [&str; 22] = [
    "connection: close",
    "connection: keep-alive",
    "connection: upgrade\r\nupgrade: websocket",
    "content-length: 0",
    "content-length: 7",
    "content-length: 99999999999999999999",
    "content-length: -1",
    "content-length: 1, 1",
    "transfer-encoding: chunked",
    "transfer-encoding: gzip, chunked",
    "transfer-encoding: identity",
    "expect: 100-continue",
    "content-type: application/json",
    "content-type: application/x-ndjson",
    "content-type: application/vnd.apache.arrow.stream",
    "content-type: image/png",
    "content-encoding: gzip",
    "cohort-deadline: 0",
    "cohort-deadline: 1e-3",
    "cohort-deadline: NaN",
    "cohort-priority: -9223372036854775808",
    "x: \u{1}\u{7f}\u{e9}",
];
const LINES: [&str; 14] = [
    "GET / HTTP/1.1",
    "GET /metrics HTTP/1.0",
    "GET /stats HTTP/1.1",
    "HEAD /health HTTP/1.1",
    "POST /infer HTTP/1.1",
    "POST /infer HTTP/1.0",
    "POST /infer HTTP/2.0",
    "PUT /infer HTTP/1.1",
    "OPTIONS * HTTP/1.1",
    "CONNECT localhost:1 HTTP/1.1",
    "POST http://elsewhere/infer HTTP/1.1",
    "GET /v2/models/whole HTTP/1.1",
    "POST /v2/models/whole/infer HTTP/1.1",
    "PRI * HTTP/2.0",
];

/// The connections of a file: how each ends, and its bytes.
pub fn connections(file: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let mut found = Vec::new();
    let mut rest = file;
    while let Some(at) = find(rest, MARK) {
        rest = &rest[at + MARK.len()..];
        let Some((end, after)) = rest.split_first() else {
            break;
        };
        let after = after.strip_prefix(b"\n").unwrap_or(after);
        let length = find(after, MARK).unwrap_or(after.len());
        found.push((*end, after[..length].to_vec()));
        rest = &after[length..];
    }
    found
}

/// The file of connections.
pub fn file(connections: &[(u8, Vec<u8>)]) -> Vec<u8> {
    let mut file = Vec::new();
    for (end, bytes) in connections {
        file.extend([MARK, &[*end], b"\n", bytes].concat());
    }
    file
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

pub fn mutate(input: &[u8], other: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut connections = connections(input);
    let others = self::connections(other);
    if connections.is_empty() {
        return input.to_vec();
    }
    let at = rng.below(connections.len());
    let other = match others.is_empty() {
        true => connections[at].1.clone(),
        false => rng.pick(&others).1.clone(),
    };
    match rng.below(12) {
        0 => connections[at].0 = *rng.pick(&ENDS),
        1 if connections.len() < 8 => connections.push((*rng.pick(&ENDS), other)),
        2 if connections.len() > 1 => drop(connections.remove(at)),
        // One request behind another.
        3 if connections[at].1.len() < 1 << 16 => connections[at].1.extend(other),
        _ => connections[at].1 = request(&connections[at].1, &other, rng),
    }
    file(&connections)
}

fn request(input: &[u8], other: &[u8], rng: &mut Rng) -> Vec<u8> {
    let Some(end) = find(input, b"\r\n\r\n") else {
        return bytes::mutate(input, other, rng);
    };
    let head = String::from_utf8_lossy(&input[..end]).into_owned();
    let mut lines: Vec<String> = head.split("\r\n").map(str::to_owned).collect();
    let mut body = input[end + 4..].to_vec();
    let mut is_told = true;
    let header = rng.below(lines.len());
    match rng.below(10) {
        0 => return bytes::mutate(input, other, rng),
        1 => return input[..rng.below(input.len())].to_vec(),
        2 => lines[0] = (*rng.pick(&LINES)).to_owned(),
        3 => lines.push((*rng.pick(&HEADERS)).to_owned()),
        4 if lines.len() > 1 => drop(lines.remove(header.max(1))),
        5 => {
            let changed = bytes::mutate(lines[header].as_bytes(), other, rng);
            lines[header] = String::from_utf8_lossy(&changed).into_owned();
        }
        6 => {
            lines.retain(|line| !line.starts_with("content-length"));
            lines.push("transfer-encoding: chunked".to_owned());
            body = chunked(&body, rng);
            is_told = false;
        }
        7 => {
            lines.retain(|line| !line.starts_with("content-length"));
            lines.push(format!("content-length: {}", rng.pick(&NUMBERS)));
            is_told = false;
        }
        _ => {
            let from = find(other, b"\r\n\r\n").map_or(0, |end| end + 4);
            body = match rng.below(4) {
                0 => bytes::mutate(&body, &other[from..], rng),
                _ => json::mutate_text(&body, &other[from..], rng),
            };
        }
    }
    let is_length = |line: &&mut String| line.starts_with("content-length");
    if is_told
        && !rng.one_in(8)
        && let Some(line) = lines.iter_mut().find(is_length)
    {
        *line = format!("content-length: {}", body.len());
    }
    [lines.join("\r\n").as_bytes(), b"\r\n\r\n", &body].concat()
}

/// The body in chunks, some of which are not as long as they say.
fn chunked(body: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut text = Vec::new();
    let mut rest = body;
    while !rest.is_empty() {
        let (chunk, after) = rest.split_at(1 + rng.below(rest.len()));
        rest = after;
        let length = match rng.below(12) {
            0 => (*rng.pick(&NUMBERS)).to_owned(),
            1 => format!("{:x};name=value", chunk.len()),
            _ => format!("{:x}", chunk.len()),
        };
        text.extend([length.as_bytes(), b"\r\n", chunk, b"\r\n"].concat());
    }
    if !rng.one_in(6) {
        text.extend_from_slice(b"0\r\n\r\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_its_connections_back() {
        let given = vec![
            (b'r', b"GET / HTTP/1.1\r\n\r\n".to_vec()),
            (b'c', vec![]),
            (b's', b"x".to_vec()),
        ];
        assert_eq!(connections(&file(&given)), given);
        assert!(connections(b"nothing").is_empty());
    }
}
