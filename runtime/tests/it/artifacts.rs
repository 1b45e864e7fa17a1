//! Artifacts come back as they were written, or are refused with the reason, whatever the bytes.

use std::path::Path;

use cohort_runtime::abi::manifest::Manifest;
use cohort_runtime::abi::symbols;
use cohort_runtime::program::artifact::{
    DeviceCode, DeviceFormat, HostTarget, LoadedObject, ProblemKind, SecretKey, TrustedKeys,
    manifest_mark,
};
use cohort_runtime::{Artifact, CompiledCode, Error, Fault};
use object::write::{Object, Relocation, Symbol, SymbolId, SymbolSection};
use object::{
    Architecture, BinaryFormat, Endianness, RelocationFlags, SectionKind, SymbolFlags, SymbolKind,
    SymbolScope, elf,
};

use serde_json::json;

use crate::program::tree_manifest;

/// `mov eax, [rip + the constant]; ret`
const LOAD: &[u8] = &[0x8b, 0x05, 0, 0, 0, 0, 0xc3];
/// `mov rax, [rip + the address's place]; jmp rax`
const JUMP: &[u8] = &[0x48, 0x8b, 0x05, 0, 0, 0, 0, 0xff, 0xe0];
/// `jmp the function`
const TAIL_CALL: &[u8] = &[0xe9, 0, 0, 0, 0];

/// Bytes before the header.
const HEAD: usize = 192;
/// Where the public key and the signature in the head end; before them is the checksum.
const SIGNATURE_END: usize = 152;

struct Writer {
    object: Object<'static>,
}

impl Writer {
    fn new() -> Writer {
        Writer {
            object: Object::new(BinaryFormat::Elf, Architecture::X86_64, Endianness::Little),
        }
    }

    fn symbol(&mut self, name: &str, section: SymbolSection, value: u64) -> SymbolId {
        self.object.add_symbol(Symbol {
            name: name.into(),
            value,
            size: 0,
            kind: SymbolKind::Text,
            scope: SymbolScope::Dynamic,
            weak: false,
            section,
            flags: SymbolFlags::None,
        })
    }

    /// A function with one relocation of 32 bits, at the given byte of its code.
    fn function(
        &mut self,
        name: &str,
        code: &[u8],
        at: u64,
        r_type: u32,
        to: SymbolId,
    ) -> SymbolId {
        let text = self.object.section_id(object::write::StandardSection::Text);
        let offset = self.object.append_section_data(text, code, 16);
        let relocation = Relocation {
            offset: offset + at,
            symbol: to,
            addend: -4,
            flags: RelocationFlags::Elf { r_type },
        };
        self.object.add_relocation(text, relocation).unwrap();
        self.symbol(name, SymbolSection::Section(text), offset)
    }

    fn bytes(self) -> Vec<u8> {
        self.object.write().unwrap()
    }
}

/// `answer` loads a constant, `jump` goes there by its address, `far` to a function of this process,
/// and a table in writable data holds an address.
fn object() -> Vec<u8> {
    let mut writer = Writer::new();
    let constants =
        writer
            .object
            .add_section(vec![], b".rodata.cst4".to_vec(), SectionKind::ReadOnlyData);
    let offset = writer
        .object
        .append_section_data(constants, &42_u32.to_le_bytes(), 4);
    let constant = writer.symbol("constant", SymbolSection::Section(constants), offset);
    let mark = manifest_mark(&tree_manifest()).unwrap();
    writer.symbol(&mark, SymbolSection::Section(constants), offset);
    let answer = writer.function("answer", LOAD, 2, elf::R_X86_64_PC32, constant);
    writer.function("jump", JUMP, 3, elf::R_X86_64_REX_GOTPCRELX, answer);
    let outside = writer.symbol("fabsf", SymbolSection::Undefined, 0);
    writer.function("far", TAIL_CALL, 1, elf::R_X86_64_PLT32, outside);
    let data = writer
        .object
        .section_id(object::write::StandardSection::Data);
    let offset = writer.object.append_section_data(data, &[0; 8], 8);
    let relocation = Relocation {
        offset,
        symbol: answer,
        addend: 0,
        flags: RelocationFlags::Elf {
            r_type: elf::R_X86_64_64,
        },
    };
    writer.object.add_relocation(data, relocation).unwrap();
    writer.bytes()
}

fn artifact() -> Artifact {
    Artifact {
        compiler: "0.1.0".to_owned(),
        options: vec!["--granularity function".to_owned()],
        target: HostTarget {
            triple: format!("{}-unknown-linux-gnu", std::env::consts::ARCH),
            cpu: "generic".to_owned(),
            features: vec![],
        },
        manifest: tree_manifest(),
        objects: vec![object()],
        device_code: vec![DeviceCode {
            target: "sm_90".to_owned(),
            format: DeviceFormat::Cubin,
            bytes: vec![7; 100],
        }],
    }
}

fn refused(bytes: &[u8]) -> cohort_runtime::program::artifact::Problem {
    Artifact::from_bytes(bytes).expect_err("it should have been refused")
}

#[test]
fn artifacts_come_back() {
    let bytes = artifact().to_bytes().unwrap();
    assert!(Artifact::is_artifact(&bytes));
    assert_eq!(Artifact::from_bytes(&bytes), Ok(artifact()));
}

#[test]
fn a_cut_is_told_at_every_length() {
    let bytes = artifact().to_bytes().unwrap();
    for length in 0..bytes.len() {
        let problem = refused(&bytes[..length]);
        let expected = match length {
            0 => ProblemKind::Foreign,
            _ => ProblemKind::Damaged,
        };
        assert_eq!(problem.kind, expected, "{length}: {problem}");
    }
    let longer = [&bytes[..], &[0]].concat();
    assert!(refused(&longer).to_string().contains("its length"));
}

#[test]
fn every_changed_byte_is_told() {
    let bytes = artifact().to_bytes().unwrap();
    for at in 0..bytes.len() {
        for mask in [0x01, 0x80, 0xff] {
            let mut changed = bytes.clone();
            changed[at] ^= mask;
            refused(&changed);
        }
    }
}

#[test]
fn refusals_name_the_place_and_both_values() {
    let bytes = artifact().to_bytes().unwrap();
    let changed_at = |place: usize| {
        let mut changed = bytes.clone();
        changed[place] ^= 1;
        refused(&changed).to_string()
    };
    let place_of = |part: &[u8]| {
        let mut windows = bytes.windows(part.len());
        windows.position(|window| window == part).unwrap()
    };
    assert!(changed_at(200).starts_with("is damaged: the header (bytes 0.."));
    let manifest = changed_at(place_of(b"\"entry\":\"trees\""));
    assert!(
        manifest.starts_with("is damaged: the manifest (bytes "),
        "{manifest}"
    );
    assert!(manifest.contains("expected SHA-256 "), "{manifest}");
    assert!(changed_at(place_of(b"\x7fELF")).starts_with("is damaged: the host code (bytes "));
    assert!(changed_at(place_of(&[7; 100])).contains("the device code for sm_90"));
    assert_eq!(
        changed_at(8),
        "cannot run here: its format: expected version 3, found version 2"
    );
    assert_eq!(
        refused(b"PK\x03\x04 and so on").to_string(),
        r#"is not an artifact: its first bytes: expected "\x89COHORT\n", found "PK\x03\x04 and""#
    );
}

#[test]
fn other_versions_and_machines_are_refused() {
    let mut other = artifact();
    other.target.features.push("avx1024".to_owned());
    let problem = refused(&other.to_bytes().unwrap());
    assert_eq!(problem.kind, ProblemKind::Mismatched);
    assert!(problem.to_string().contains("avx1024"), "{problem}");

    // The checksum of the header is right: an artifact of another version of the ABI.
    let bytes = artifact().to_bytes().unwrap();
    let problem = refused(&with_header(&bytes, |header| header["abi"] = 1.into()));
    assert_eq!(problem.kind, ProblemKind::Mismatched);
    assert!(
        problem.to_string().contains("found version 1,"),
        "{problem}"
    );
}

/// Changes the header and makes the checksum fit.
fn with_header(bytes: &[u8], change: impl FnOnce(&mut serde_json::Value)) -> Vec<u8> {
    use sha2::{Digest, Sha256};
    let length = u32::from_le_bytes(bytes[12..16].try_into().unwrap()) as usize;
    let mut header = serde_json::from_slice(&bytes[HEAD..HEAD + length]).unwrap();
    change(&mut header);
    let mut json = serde_json::to_vec(&header).unwrap();
    json.resize(length, b' ');
    let mut changed = bytes.to_vec();
    changed[HEAD..HEAD + length].copy_from_slice(&json);
    let checksum = Sha256::new()
        .chain_update(&changed[..24])
        .chain_update(&changed[SIGNATURE_END..HEAD + length])
        .finalize();
    changed[24..56].copy_from_slice(&checksum);
    changed
}

#[test]
fn sections_must_lie_one_after_another() {
    let bytes = artifact().to_bytes().unwrap();
    for (section, key, value) in [
        (0, "offset", 0_u64),
        (1, "offset", 1 << 60),
        (1, "length", u64::MAX),
        (2, "offset", 193),
    ] {
        let changed = with_header(&bytes, |header| {
            header["sections"][section][key] = value.into();
            header["compiler"] = "".into();
            header["options"] = serde_json::json!([]);
        });
        assert_eq!(refused(&changed).kind, ProblemKind::Damaged);
    }
}

#[test]
fn an_artifact_is_the_users_fault_and_names_its_path() {
    let Err(error) = Artifact::open(Path::new("tree.cohort"), b"") else {
        panic!("it should have been refused");
    };
    assert_eq!(error.fault(), Fault::User);
    assert!(
        error
            .to_string()
            .starts_with("tree.cohort is not an artifact")
    );
}

#[test]
fn a_good_artifact_without_the_functions_of_its_manifest_is_refused() {
    let bytes = artifact().to_bytes().unwrap();
    let result = Artifact::open(Path::new("tree.cohort"), &bytes);
    assert!(matches!(result.err(), Some(Error::MissingSymbol { .. })));
}

/// Whatever is changed of a manifest, with right checksums: code runs with its own and with no other.
#[test]
fn code_with_another_manifest_is_refused() {
    let good = serde_json::to_value(tree_manifest()).unwrap();
    let mut all = Vec::new();
    crate::manifests::places(&good, "", &mut all);
    let mut changed = 0;
    for place in all {
        for with in [
            json!(0),
            json!(7),
            json!(u32::MAX),
            json!([]),
            json!("x"),
            json!(null),
        ] {
            let mut manifest = good.clone();
            *manifest.pointer_mut(&place).unwrap() = with;
            let Ok(manifest) = serde_json::from_value::<Manifest>(manifest) else {
                continue;
            };
            if manifest == tree_manifest() {
                continue;
            }
            let artifact = Artifact {
                manifest,
                ..artifact()
            };
            let result = Artifact::open(Path::new("tree.cohort"), &artifact.to_bytes().unwrap());
            let Err(Error::Artifact { problem, .. }) = result else {
                panic!("{place} was changed, and nobody saw it");
            };
            assert_eq!(
                (problem.kind, &*problem.place),
                (ProblemKind::Damaged, "the manifest")
            );
            changed += 1;
        }
    }
    assert!(changed > 100, "{changed} changes");
}

/// Made by `openssl genpkey -algorithm ed25519` and `openssl pkey -pubout`, for these tests.
const SECRET: &str = "-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIN1sb+Zlocmu6Srzf2gzQammcFZfsUgkye3biMIvZ+h4
-----END PRIVATE KEY-----
";
const PUBLIC: &str = "-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEAm+RqnSHsfvbPrAm1ocmjlFy4TCcQR9SXZuDERtNJVBA=
-----END PUBLIC KEY-----
";
/// Another's, from RFC 8410.
const STRANGER: &str = "-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=
-----END PUBLIC KEY-----
";

fn signed() -> Vec<u8> {
    let mut bytes = artifact().to_bytes().unwrap();
    let secret = SecretKey::from_pem(SECRET).unwrap();
    secret.sign(&mut bytes).unwrap();
    bytes
}

#[test]
fn a_signed_artifact_is_trusted_by_who_trusts_its_key() {
    let bytes = signed();
    assert_eq!(Artifact::from_bytes(&bytes), Ok(artifact()));
    let trusts = |keys: &str| TrustedKeys::from_pem(keys).unwrap().check(&bytes);
    assert_eq!(trusts(PUBLIC), Ok(()));
    assert_eq!(trusts(&format!("{STRANGER}{PUBLIC}")), Ok(()));
    let problem = trusts(STRANGER).unwrap_err();
    assert_eq!(problem.kind, ProblemKind::Untrusted);
    assert!(
        problem.to_string().contains("found one by the key "),
        "{problem}"
    );

    let unsigned = artifact().to_bytes().unwrap();
    let problem = TrustedKeys::from_pem(PUBLIC)
        .unwrap()
        .check(&unsigned)
        .unwrap_err();
    assert_eq!(
        problem.to_string(),
        "is not trusted: its signature: expected that of the trusted key, found none"
    );
}

#[test]
fn every_byte_of_a_signature_counts() {
    let bytes = signed();
    for at in 56..HEAD {
        let mut changed = bytes.clone();
        changed[at] ^= 0x10;
        assert_eq!(refused(&changed).kind, ProblemKind::Damaged, "byte {at}");
    }
}

#[test]
fn a_signature_is_of_the_whole_content() {
    // The checksums fit the changed header, the signature does not.
    let changed = with_header(&signed(), |header| header["compiler"] = "9.9.9".into());
    let problem = refused(&changed);
    assert!(
        problem.to_string().starts_with("is damaged: its signature"),
        "{problem}"
    );
}

#[test]
fn keys_that_are_none_are_refused() {
    assert!(SecretKey::from_pem(PUBLIC).is_err());
    assert!(TrustedKeys::from_pem("").is_err());
    assert!(TrustedKeys::from_pem(SECRET).is_err());
    let cut = &PUBLIC[..PUBLIC.len() - 30];
    let error = TrustedKeys::from_pem(&format!("{PUBLIC}{cut}")).unwrap_err();
    assert!(error.starts_with("key 2 "), "{error}");
}

#[cfg(all(target_arch = "x86_64", unix))]
mod code {
    use super::*;

    fn function(code: &LoadedObject, name: &str) -> *const () {
        code.symbol(name)
            .unwrap_or_else(|| panic!("there is no {name}"))
    }

    #[test]
    fn code_runs() {
        let code = LoadedObject::load(&[object()]).unwrap();
        // SAFETY: the functions were written above.
        unsafe {
            type Answer = unsafe extern "C" fn() -> u32;
            type Far = unsafe extern "C" fn(f32) -> f32;
            let answer: Answer = std::mem::transmute(function(&code, "answer"));
            let jump: Answer = std::mem::transmute(function(&code, "jump"));
            let far: Far = std::mem::transmute(function(&code, "far"));
            assert_eq!((answer(), jump(), far(-2.5)), (42, 42, 2.5));
        }
        assert_eq!(
            code.symbol("constant"),
            None,
            "a constant is not a function"
        );
        assert_eq!(code.symbol("fabsf"), None);
    }

    /// `jump` goes to `answer`, which is in another file.
    #[test]
    fn files_refer_to_each_other() {
        let mut writer = Writer::new();
        let answer = writer.symbol("answer", SymbolSection::Undefined, 0);
        writer.function("there", TAIL_CALL, 1, elf::R_X86_64_PLT32, answer);
        let other = writer.bytes();
        for files in [[object(), other.clone()], [other.clone(), object()]] {
            let code = LoadedObject::load(&files).unwrap();
            assert!(code.manifest().is_some());
            // SAFETY: the functions were written above.
            unsafe {
                type Answer = unsafe extern "C" fn() -> u32;
                let there: Answer = std::mem::transmute(function(&code, "there"));
                assert_eq!(there(), 42);
            }
        }
        let problem = LoadedObject::load(&[other]).unwrap_err().to_string();
        assert!(problem.contains("found one of `answer`"), "{problem}");
        let twice = LoadedObject::load(&[object(), object()]).unwrap_err();
        assert!(twice.to_string().contains("twice"), "{twice}");
    }

    #[test]
    fn no_page_can_be_written_and_run() {
        let code = LoadedObject::load(&[object()]).unwrap();
        let inside = function(&code, "answer") as usize;
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let mut protections = maps.lines().map(|line| {
            let (range, rest) = line.split_once(' ').unwrap();
            let (from, to) = range.split_once('-').unwrap();
            let address = |text| usize::from_str_radix(text, 16).unwrap();
            (address(from)..address(to), &rest[..3])
        });
        assert_eq!(protections.clone().find(|(_, flags)| *flags == "rwx"), None);
        let of_code = protections.find(|(range, _)| range.contains(&inside));
        assert_eq!(of_code.map(|(_, flags)| flags), Some("r-x"));
    }

    /// A table in writable data with one address, `addend` from a function, at `offset`.
    fn table(offset: u64, addend: i64) -> Result<(), String> {
        let mut writer = Writer::new();
        let text = writer
            .object
            .section_id(object::write::StandardSection::Text);
        writer.object.append_section_data(text, &[0xc3], 16);
        let f = writer.symbol("f", SymbolSection::Section(text), 0);
        let data = writer
            .object
            .section_id(object::write::StandardSection::Data);
        writer.object.append_section_data(data, &[0; 16], 8);
        let flags = RelocationFlags::Elf {
            r_type: elf::R_X86_64_64,
        };
        let relocation = Relocation {
            offset,
            symbol: f,
            addend,
            flags,
        };
        writer.object.add_relocation(data, relocation).unwrap();
        let loaded = LoadedObject::load(&[writer.bytes()]).map(drop);
        loaded.map_err(|problem| problem.to_string())
    }

    #[test]
    fn relocations_stay_within_their_section_and_the_code() {
        assert_eq!(table(8, 0), Ok(()));
        for offset in [9, 16, 1 << 20, u64::MAX] {
            let error = table(offset, 0).unwrap_err();
            assert!(
                error.contains("relocations within their sections"),
                "{error}"
            );
        }
        for addend in [-64, 1 << 40, i64::MIN, i64::MAX] {
            let error = table(0, addend).unwrap_err();
            assert!(
                error.contains("references within the loaded sections"),
                "{error}"
            );
        }
    }

    #[test]
    fn code_that_cannot_be_loaded_is_refused() {
        let tail_call = |r_type, name: &str| {
            let mut writer = Writer::new();
            let outside = writer.symbol(name, SymbolSection::Undefined, 0);
            writer.function("f", TAIL_CALL, 1, r_type, outside);
            LoadedObject::load(&[writer.bytes()]).map(drop)
        };
        assert_eq!(tail_call(elf::R_X86_64_PLT32, symbols::RECORD), Ok(()));
        let problem = tail_call(elf::R_X86_64_PLT32, "system").unwrap_err();
        assert!(
            problem.to_string().contains("found one of `system`"),
            "{problem}"
        );
        let problem = tail_call(elf::R_X86_64_32S, symbols::RECORD).unwrap_err();
        assert!(problem.to_string().contains("found type 11"), "{problem}");
        assert!(LoadedObject::load(&[vec![]]).is_err());
        assert!(LoadedObject::load(&[b"\x7fELF".to_vec()]).is_err());
    }

    /// Checksums hold off accidents; the loader must stand whatever passes them.
    #[test]
    fn no_object_file_brings_the_loader_down() {
        let good = object();
        let mut rng = fastrand::Rng::with_seed(5);
        for at in 0..good.len() {
            for value in [0, 0xff, good[at] ^ 1, good[at] ^ 0x80] {
                let mut changed = good.clone();
                changed[at] = value;
                let _ = LoadedObject::load(&[changed]);
            }
            let _ = LoadedObject::load(&[good[..at].to_vec()]);
        }
        for _ in 0..20_000 {
            let mut changed = good.clone();
            for _ in 0..rng.usize(1..6) {
                let at = rng.usize(..changed.len());
                changed[at] = rng.u8(..);
            }
            let _ = LoadedObject::load(&[changed]);
        }
    }
}
