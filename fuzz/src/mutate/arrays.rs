//! Changes of NumPy's files: the header of an array, its numbers, the members of an archive.

use std::io::{Cursor, Read, Write};

use cohort_e2e::Rng;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use super::{bytes, tokens};

/// Begins an array; then come a version and the length of the header, both of two bytes.
const MAGIC: &[u8] = b"\x93NUMPY";
const BEFORE_HEADER: usize = 10;

/// Of its elements.
const TYPES: [&str; 14] = [
    "<f4", ">f4", "<f8", "<f2", "<i4", ">i8", "<u8", "|u1", "|b1", "<U5", "|S3", "|O", "<c8", "?",
];

/// Changes an array.
pub fn mutate_npy(input: &[u8], other: &[u8], rng: &mut Rng) -> Vec<u8> {
    let Some((mut header, data)) = parts(input) else {
        return bytes::mutate(input, other, rng);
    };
    let mut data = data.to_vec();
    match rng.below(6) {
        0 => data = bytes::mutate(&data, other, rng),
        1 => data.truncate(rng.below(data.len() + 1)),
        2 => {
            let mut text = String::from_utf8_lossy(&header).into_owned();
            if let Some(at) = text.find("'descr': '").map(|at| at + 10)
                && let Some(length) = text[at..].find('\'')
            {
                text.replace_range(at..at + length, rng.pick::<&str>(&TYPES));
            }
            header = text.into_bytes();
        }
        _ => header = tokens::mutate(&header, b"(3, -1)", rng),
    }
    let length = u16::try_from(header.len()).unwrap_or(u16::MAX);
    let length = match rng.below(12) {
        0 => rng.bits() as u16,
        _ => length,
    };
    let before = [MAGIC, &[1, 0], &length.to_le_bytes()];
    [&before.concat()[..], &header, &data].concat()
}

/// The header of an array and its numbers.
fn parts(npy: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let rest = npy
        .get(BEFORE_HEADER..)
        .filter(|_| npy.starts_with(MAGIC))?;
    let length = usize::from(u16::from_le_bytes([npy[8], npy[9]]));
    Some((rest.get(..length)?.to_vec(), rest.get(length..)?))
}

/// Changes an archive; the sums over its members are right.
pub fn mutate_npz(input: &[u8], other: &[u8], rng: &mut Rng) -> Vec<u8> {
    let Some(mut members) = members(input).filter(|members| !members.is_empty()) else {
        return bytes::mutate(input, other, rng);
    };
    let at = rng.below(members.len());
    let donor = rng.below(members.len());
    match rng.below(8) {
        0 => drop(members.remove(at)),
        1 => members[at].0 += *rng.pick(&["x", ".0", ".offsets.npy", "/../x", "\u{e9}"]),
        2 => members[at].1 = members[donor].1.clone(),
        3 => {
            let name = members[donor].0.clone();
            members[at].0 = name;
        }
        _ => members[at].1 = mutate_npy(&members[at].1, &members[donor].1, rng),
    }
    archive(&members).unwrap_or_else(|| bytes::mutate(input, other, rng))
}

/// The members of an archive, by name.
fn members(npz: &[u8]) -> Option<Vec<(String, Vec<u8>)>> {
    let mut archive = ZipArchive::new(Cursor::new(npz)).ok()?;
    let count = archive.len();
    let read = |index| {
        let mut member = archive.by_index(index).ok()?;
        let name = member.name().ok()?.into_owned();
        let mut content = Vec::new();
        member.read_to_end(&mut content).ok()?;
        Some((name, content))
    };
    (0..count).map(read).collect()
}

/// `None` if there can be no such archive: two members of one name.
fn archive(members: &[(String, Vec<u8>)]) -> Option<Vec<u8>> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let plain = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    for (name, content) in members {
        writer.start_file(name.as_str(), plain).ok()?;
        writer.write_all(content).ok()?;
    }
    Some(writer.finish().ok()?.into_inner())
}
