//! The file: a fixed head, a JSON header with the table of sections, the sections.
//!
//! Every byte is covered by a check: the head and the header by the head's checksum, each section by
//! its own in the table, and what lies between them is zero. The checksum of the head, which so stands
//! for the whole content, is what a signature is of.

use std::ops::Range;

use cohort_abi::VERSION;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::signature::{self, KEY_BYTES, SIGNATURE_BYTES};
use super::target::HostTarget;
use super::{Artifact, DeviceCode, Problem, ProblemKind};

/// A file that went through a text conversion or a seven-bit channel does not begin like this.
pub const MAGIC: [u8; 8] = *b"\x89COHORT\n";
/// Raised by every change of the head, the header or the sections.
pub const FORMAT_VERSION: u32 = 3;

/// Sections, and the header behind the head, begin at multiples of it.
const ALIGN: usize = 64;
/// Bytes of the head: magic, version, length of the header, length of the file, checksum, public key and
/// signature (zeros where there are none), zeros.
const HEAD: usize = 192;
const VERSION_AT: usize = 8;
const HEADER_LENGTH_AT: usize = 12;
const FILE_LENGTH_AT: usize = 16;
const CHECKSUM: Range<usize> = 24..56;
const KEY_AT: usize = CHECKSUM.end;
const SIGNATURE_AT: usize = KEY_AT + KEY_BYTES;
/// Where what the checksum covers goes on.
const COVERED_FROM: usize = SIGNATURE_AT + SIGNATURE_BYTES;

/// What follows the head, as JSON.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    compiler: String,
    /// [`cohort_abi::VERSION`] of the compiler.
    abi: u32,
    options: Vec<String>,
    host: HostTarget,
    sections: Vec<Section>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Section {
    kind: Kind,
    offset: u64,
    length: u64,
    /// Of its bytes, in hexadecimal.
    sha256: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum Kind {
    /// [`cohort_abi::manifest::Manifest`] as JSON.
    Manifest,
    /// A relocatable object file, one of any number.
    HostObject,
    DeviceCode {
        target: String,
        format: DeviceFormat,
    },
}

/// What device code is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviceFormat {
    /// Machine code of one architecture.
    Cubin,
    /// Text that the driver compiles for any architecture from the named one on.
    Ptx,
}

impl Kind {
    fn name(&self) -> String {
        match self {
            Kind::Manifest => "the manifest".to_owned(),
            Kind::HostObject => "the host code".to_owned(),
            Kind::DeviceCode { target, .. } => format!("the device code for {target}"),
        }
    }
}

pub fn write(artifact: &Artifact) -> serde_json::Result<Vec<u8>> {
    let manifest = serde_json::to_vec(&artifact.manifest)?;
    let mut contents: Vec<(Kind, &[u8])> = vec![(Kind::Manifest, &manifest)];
    let objects = artifact.objects.iter();
    contents.extend(objects.map(|object| (Kind::HostObject, object.as_slice())));
    for code in &artifact.device_code {
        let (target, format) = (code.target.clone(), code.format);
        contents.push((Kind::DeviceCode { target, format }, &code.bytes));
    }
    let mut header = Header {
        compiler: artifact.compiler.clone(),
        abi: VERSION,
        options: artifact.options.clone(),
        host: artifact.target.clone(),
        sections: contents
            .iter()
            .map(|(kind, bytes)| Section {
                kind: kind.clone(),
                offset: 0,
                length: bytes.len() as u64,
                sha256: digest(bytes),
            })
            .collect(),
    };
    // Offsets depend on the header's length and it on their digits: both grow until they agree.
    let (json, length) = loop {
        let json = serde_json::to_vec(&header)?;
        let mut offset = HEAD + json.len();
        let mut moved = false;
        for section in &mut header.sections {
            offset = offset.next_multiple_of(ALIGN);
            moved |= section.offset != offset as u64;
            section.offset = offset as u64;
            offset += section.length as usize;
        }
        if !moved {
            break (json, offset);
        }
    };
    let mut file = vec![0; length];
    file[..MAGIC.len()].copy_from_slice(&MAGIC);
    put(&mut file, VERSION_AT, &FORMAT_VERSION.to_le_bytes());
    put(
        &mut file,
        HEADER_LENGTH_AT,
        &(json.len() as u32).to_le_bytes(),
    );
    put(&mut file, FILE_LENGTH_AT, &(length as u64).to_le_bytes());
    put(&mut file, HEAD, &json);
    for (section, (_, bytes)) in header.sections.iter().zip(&contents) {
        put(&mut file, section.offset as usize, bytes);
    }
    let checksum = head_checksum(&file, HEAD + json.len());
    put(&mut file, CHECKSUM.start, &checksum);
    Ok(file)
}

fn put(file: &mut [u8], at: usize, bytes: &[u8]) {
    file[at..at + bytes.len()].copy_from_slice(bytes);
}

/// Of the head and the header without the checksum itself and the signature.
fn head_checksum(file: &[u8], end: usize) -> [u8; 32] {
    Sha256::new()
        .chain_update(&file[..CHECKSUM.start])
        .chain_update(&file[COVERED_FROM..end])
        .finalize()
        .into()
}

pub fn read(file: &[u8]) -> Result<Artifact, Problem> {
    let header_end = check_head(file)?;
    let header: Header = serde_json::from_slice(&file[HEAD..header_end])
        .map_err(|error| Problem::damaged("the header", "its JSON", error.to_string()))?;
    if header.abi != VERSION {
        return Err(Problem::new(
            ProblemKind::Mismatched,
            "what compiled code and runtime share",
            format!("version {VERSION}"),
            format!(
                "version {}, of compiler {} (compile the program again)",
                header.abi, header.compiler
            ),
        ));
    }
    header.host.check()?;
    let sections = check_sections(file, header_end, &header)?;
    signature::verify(file)?;

    let mut manifest = None;
    let mut objects = Vec::new();
    let mut device_code = Vec::new();
    for (section, bytes) in header.sections.into_iter().zip(sections) {
        let twice = match section.kind {
            Kind::Manifest => {
                let read = serde_json::from_slice(bytes).map_err(|error| {
                    Problem::damaged("the manifest", "its JSON", error.to_string())
                })?;
                manifest.replace(read).is_some()
            }
            Kind::HostObject => {
                objects.push(bytes.to_vec());
                false
            }
            Kind::DeviceCode { target, format } => {
                let bytes = bytes.to_vec();
                device_code.push(DeviceCode {
                    target,
                    format,
                    bytes,
                });
                false
            }
        };
        if twice {
            return Err(Problem::damaged("the sections", "one of a kind", "two"));
        }
    }
    let lacks = |what: &str| Problem::damaged("the sections", what, "none");
    if objects.is_empty() {
        return Err(lacks("host code"));
    }
    Ok(Artifact {
        compiler: header.compiler,
        options: header.options,
        target: header.host,
        manifest: manifest.ok_or_else(|| lacks("a manifest"))?,
        objects,
        device_code,
    })
}

/// Checks the head and the header's bytes; returns the end of the header.
fn check_head(file: &[u8]) -> Result<usize, Problem> {
    let magic = &file[..file.len().min(MAGIC.len())];
    if magic != MAGIC {
        // What was cut within the first bytes was an artifact perhaps.
        let kind = match MAGIC.starts_with(magic) && !magic.is_empty() {
            true => ProblemKind::Damaged,
            false => ProblemKind::Foreign,
        };
        return Err(Problem::new(
            kind,
            "its first bytes",
            show_bytes(&MAGIC),
            show_bytes(magic),
        ));
    }
    if file.len() < HEAD {
        return Err(Problem::damaged(
            "its length",
            format!("at least {HEAD} bytes"),
            format!("{} bytes", file.len()),
        ));
    }
    let version = u32::from_le_bytes(array(file, VERSION_AT));
    if version != FORMAT_VERSION {
        return Err(Problem::new(
            ProblemKind::Mismatched,
            "its format",
            format!("version {FORMAT_VERSION}"),
            format!("version {version}"),
        ));
    }
    let length = u64::from_le_bytes(array(file, FILE_LENGTH_AT));
    if length != file.len() as u64 {
        return Err(Problem::damaged(
            "its length",
            format!("{length} bytes"),
            format!("{} bytes", file.len()),
        ));
    }
    let header_length = u32::from_le_bytes(array(file, HEADER_LENGTH_AT)) as usize;
    let end = HEAD + header_length;
    if end > file.len() {
        return Err(Problem::damaged(
            "the length of the header",
            format!("at most {} bytes", file.len() - HEAD),
            format!("{header_length} bytes"),
        ));
    }
    let checksum = head_checksum(file, end);
    if checksum != file[CHECKSUM] {
        return Err(Problem::damaged(
            format!("the header (bytes 0..{end})"),
            format!("SHA-256 {}", hex(&file[CHECKSUM])),
            hex(&checksum),
        ));
    }
    Ok(end)
}

/// The bytes of each section.
fn check_sections<'f>(
    file: &'f [u8],
    header_end: usize,
    header: &Header,
) -> Result<Vec<&'f [u8]>, Problem> {
    let mut end = header_end;
    let mut sections = Vec::with_capacity(header.sections.len());
    for section in &header.sections {
        let name = section.kind.name();
        let range = section
            .offset
            .checked_add(section.length)
            .filter(|last| *last <= file.len() as u64)
            .map(|last| section.offset as usize..last as usize);
        let Some(range) = range.filter(|range| range.start >= end) else {
            return Err(Problem::damaged(
                format!("the place of {name}"),
                format!("within bytes {end}..{}", file.len()),
                format!("{} bytes from {}", section.length, section.offset),
            ));
        };
        check_zeros(file, end..range.start)?;
        let bytes = &file[range.clone()];
        let sha256 = digest(bytes);
        if sha256 != section.sha256 {
            return Err(Problem::damaged(
                format!("{name} (bytes {}..{})", range.start, range.end),
                format!("SHA-256 {}", section.sha256),
                sha256,
            ));
        }
        end = range.end;
        sections.push(bytes);
    }
    check_zeros(file, end..file.len())?;
    Ok(sections)
}

fn check_zeros(file: &[u8], range: Range<usize>) -> Result<(), Problem> {
    match file[range.clone()].iter().position(|byte| *byte != 0) {
        None => Ok(()),
        Some(at) => Err(Problem::damaged(
            format!("byte {}, between sections", range.start + at),
            "0",
            file[range.start + at].to_string(),
        )),
    }
}

/// The checksum that stands for the content of a file that was read.
pub fn checksum(file: &[u8]) -> [u8; 32] {
    array(file, CHECKSUM.start)
}

/// The public key and the signature in a file that was read, if it is signed.
pub fn signature(file: &[u8]) -> Option<(&[u8; KEY_BYTES], &[u8; SIGNATURE_BYTES])> {
    let (key, rest) = file.get(KEY_AT..COVERED_FROM)?.split_first_chunk()?;
    let signature = rest.first_chunk()?;
    let is_signed = file[KEY_AT..COVERED_FROM].iter().any(|byte| *byte != 0);
    is_signed.then_some((key, signature))
}

/// Writes the public key and the signature into a file that was read.
pub fn put_signature(file: &mut [u8], key: &[u8; KEY_BYTES], signature: &[u8; SIGNATURE_BYTES]) {
    put(file, KEY_AT, key);
    put(file, SIGNATURE_AT, signature);
}

/// `N` bytes of the head.
fn array<const N: usize>(file: &[u8], at: usize) -> [u8; N] {
    std::array::from_fn(|index| file[at + index])
}

/// The SHA-256 of bytes, in hexadecimal.
pub fn digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn show_bytes(bytes: &[u8]) -> String {
    match bytes {
        [] => "nothing: the file is empty".to_owned(),
        _ => format!("\"{}\"", bytes.escape_ascii()),
    }
}
