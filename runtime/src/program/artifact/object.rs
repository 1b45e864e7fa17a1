//! Relocatable object files become functions in memory: sections are placed, relocations applied,
//! pages protected. No linker and no file is needed on the machine that runs. The files may refer to each
//! other's global functions.
//!
//! ```text
//! one mapping   | code sections, stubs | constants | data |
//!                 read and execute       read        read and write
//! ```
//!
//! A *stub* stands for a symbol that may lie further away than code reaches: a jump to the address that
//! follows it, so that calls go through the one and loads of the address through the other.

use std::collections::{BTreeMap, HashMap};

use memmap2::MmapMut;
use object::elf;
use object::read::elf::{ElfFile64, ElfSection64, ElfSymbol64};
use object::{
    Endianness, Object, ObjectSection, ObjectSymbol, RelocationFlags, RelocationTarget,
    SectionFlags, SectionIndex, SymbolIndex, SymbolSection,
};

use self::machine::{Field, Form, Machine, Refers};
use super::imports::imports;
use super::{Problem, ProblemKind};
use crate::program::code::CompiledCode;

mod machine;

/// Host code beyond this is no program's.
const MAX_BYTES: u64 = 1 << 30;
/// Sections of different protection lie on different pages, whatever the size of these.
const PAGE: u64 = 1 << 16;
/// Bytes of a stub: the jump, then the address.
const STUB: u64 = 16;
const STUB_ADDRESS: u64 = 8;
/// How far the end of an instruction may lie behind the distance in it: the distance's own four bytes
/// and an immediate of eight.
const PC_BYTES: u64 = 12;

/// How the symbol begins that names the manifest.
pub const MARK: &str = "cohort_manifest_";

type File<'f> = ElfFile64<'f, Endianness>;

/// Host code that is ready to be called.
#[derive(Debug)]
pub struct LoadedObject {
    /// Where each global function is in `memory`.
    functions: HashMap<String, usize>,
    /// The symbol that names the manifest that the code was compiled with.
    manifest: Option<String>,
    memory: MmapMut,
}

// SAFETY: the object was compiled along with the manifest that comes with it in an artifact whose
// checksums hold; its functions live as long as the mapping, which nothing writes to any more but
// they themselves.
unsafe impl CompiledCode for LoadedObject {
    fn symbol(&self, name: &str) -> Option<*const ()> {
        let offset = *self.functions.get(name)?;
        Some(self.memory[offset..].as_ptr().cast())
    }
}

impl LoadedObject {
    /// Loads object files for this machine. Whatever the bytes are, nothing of them is run here.
    pub fn load(files: &[Vec<u8>]) -> Result<LoadedObject, Problem> {
        let Some(here) = Machine::named(std::env::consts::ARCH).filter(|_| cfg!(unix)) else {
            return Err(Problem::new(
                ProblemKind::Mismatched,
                "the machine",
                "x86-64 or AArch64 and a Unix, those that host code can be loaded on",
                format!("{} and {}", std::env::consts::ARCH, std::env::consts::OS),
            ));
        };
        let (object, layout) = LoadedObject::place(files, here)?;
        here.make_visible(&object.memory[..layout.ends[0] as usize]);
        protect(&object.memory, &layout)?;
        Ok(object)
    }

    /// The functions of object files that a machine of some architecture (`aarch64`) could load.
    pub fn check(files: &[Vec<u8>], arch: &str) -> Result<Vec<String>, Problem> {
        let machine = Machine::named(arch)
            .ok_or_else(|| damaged("code for x86_64 or aarch64", format!("for {arch}")))?;
        let (object, _) = LoadedObject::place(files, machine)?;
        Ok(object.functions.into_keys().collect())
    }

    /// Object files in memory that can be written and not yet run.
    fn place(files: &[Vec<u8>], machine: Machine) -> Result<(LoadedObject, ObjectLayout), Problem> {
        let files: Vec<File<'_>> = (files.iter())
            .map(|bytes| parse(bytes, machine))
            .collect::<Result<_, Problem>>()?;
        let layout = ObjectLayout::new(&files, machine)?;
        let mut memory = MmapMut::map_anon(layout.length as usize).map_err(|error| {
            damaged(
                format!("{} bytes of memory", layout.length),
                error.to_string(),
            )
        })?;
        let base = memory.as_ptr() as u64;
        let mut loaders = Vec::with_capacity(files.len());
        for (file, placed) in files.iter().zip(&layout.files) {
            loaders.push(Loader {
                file,
                placed,
                length: layout.length,
                machine,
                base,
            });
        }
        let mut functions = HashMap::new();
        let mut manifest = None;
        for loader in &loaders {
            for (name, offset) in loader.functions()? {
                if functions.insert(name.clone(), offset).is_some() {
                    return Err(damaged(
                        "functions of different names",
                        format!("`{name}` twice"),
                    ));
                }
            }
            manifest = manifest.or(loader.manifest()?);
        }
        // What is in one of the files comes before what the runtime offers.
        let mut known: HashMap<&str, u64> = imports()
            .into_iter()
            .map(|(name, address)| (name, address as u64))
            .collect();
        let own = functions.iter();
        known.extend(own.map(|(name, offset)| (name.as_str(), base + *offset as u64)));
        for loader in &loaders {
            loader.copy(&mut memory)?;
            loader.write_stubs(&mut memory, &known)?;
            loader.relocate(&mut memory, &known)?;
        }
        let object = LoadedObject {
            functions,
            manifest,
            memory,
        };
        Ok((object, layout))
    }

    /// The symbol that names a manifest, see [`super::manifest_mark`].
    pub fn manifest(&self) -> Option<&String> {
        self.manifest.as_ref()
    }
}

fn parse(bytes: &[u8], machine: Machine) -> Result<File<'_>, Problem> {
    let file =
        File::parse(bytes).map_err(|error| damaged("an ELF file of 64 bits", error.to_string()))?;
    let header = file.elf_header();
    let (kind, number) = (
        header.e_type.get(file.endian()),
        header.e_machine.get(file.endian()),
    );
    if (kind, number, file.endian()) != (elf::ET_REL, machine.number(), Endianness::Little) {
        return Err(damaged(
            format!("a relocatable ELF file for {}", machine.name()),
            format!("type {kind}, machine {number}"),
        ));
    }
    Ok(file)
}

fn damaged(expected: impl Into<String>, found: impl Into<String>) -> Problem {
    Problem::damaged("the host code", expected, found)
}

fn malformed(error: object::Error) -> Problem {
    damaged("a well-formed object file", error.to_string())
}

/// What pages may be used for, in the order of the mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Access {
    Execute,
    Read,
    Write,
}

/// Where everything goes.
struct ObjectLayout {
    files: Vec<Placed>,
    /// Where each part ends, the one before it begins at; multiples of [`PAGE`].
    ends: [u64; 3],
    length: u64,
}

/// Where what is in a file goes.
#[derive(Default)]
struct Placed {
    /// By the section's index.
    sections: BTreeMap<usize, u64>,
    /// The stub of each symbol that needs one.
    stubs: BTreeMap<usize, u64>,
}

/// A section of a file, the number of which comes first.
type Part = (usize, SectionIndex, u64, u64);

impl ObjectLayout {
    fn new(files: &[File<'_>], machine: Machine) -> Result<ObjectLayout, Problem> {
        let mut parts: [Vec<Part>; 3] = Default::default();
        for (number, file) in files.iter().enumerate() {
            for section in file.sections() {
                if let Some(access) = access(&section)? {
                    let align = section.align().max(1);
                    if !align.is_power_of_two() || align > PAGE {
                        return Err(damaged("an alignment up to a page's", align.to_string()));
                    }
                    let part = (number, section.index(), section.size(), align);
                    parts[access as usize].push(part);
                }
            }
        }
        let mut layout = ObjectLayout {
            files: files.iter().map(|_| Placed::default()).collect(),
            ends: [0; 3],
            length: 0,
        };
        let mut at: u64 = 0;
        for (part, sections) in parts.iter().enumerate() {
            for (number, index, size, align) in sections {
                at = at.next_multiple_of(*align);
                layout.files[*number].sections.insert(index.0, at);
                at = at.saturating_add(*size);
                if at > MAX_BYTES {
                    return Err(damaged(format!("at most {MAX_BYTES} bytes"), "more"));
                }
            }
            if part == Access::Execute as usize {
                at = at.next_multiple_of(STUB);
                for (file, placed) in files.iter().zip(&mut layout.files) {
                    for symbol in stubs(file, machine)? {
                        placed.stubs.insert(symbol.0, at);
                        at += STUB;
                    }
                }
            }
            at = at.next_multiple_of(PAGE);
            layout.ends[part] = at;
        }
        layout.length = at.max(PAGE);
        Ok(layout)
    }
}

/// How a section's bytes are used; nothing if they are not.
fn access(section: &ElfSection64<'_, '_, Endianness>) -> Result<Option<Access>, Problem> {
    let SectionFlags::Elf { sh_flags } = section.flags() else {
        return Ok(None);
    };
    let has = |flag: u32| sh_flags & u64::from(flag) != 0;
    if !has(elf::SHF_ALLOC) || section.size() == 0 {
        return Ok(None);
    }
    let name = section.name().unwrap_or_default();
    if has(elf::SHF_TLS) || name.starts_with(".init_array") || name.starts_with(".ctors") {
        return Err(damaged(
            "code without thread-local variables and initialisers",
            format!("the section {name}"),
        ));
    }
    Ok(Some(match (has(elf::SHF_EXECINSTR), has(elf::SHF_WRITE)) {
        (true, false) => Access::Execute,
        (false, false) => Access::Read,
        (false, true) => Access::Write,
        (true, true) => {
            return Err(damaged(
                "code that does not change",
                format!("the section {name}, which can be written and run"),
            ));
        }
    }))
}

/// The symbols that need a stub: those that are not in the file, and those whose address is loaded.
fn stubs(file: &File<'_>, machine: Machine) -> Result<Vec<SymbolIndex>, Problem> {
    let mut wanted = Vec::new();
    for section in file.sections() {
        if access(&section)?.is_none() {
            continue;
        }
        for (_, relocation) in section.relocations() {
            let RelocationTarget::Symbol(index) = relocation.target() else {
                continue;
            };
            let symbol = file.symbol_by_index(index).map_err(malformed)?;
            let form = match relocation.flags() {
                RelocationFlags::Elf { r_type } => machine.form(r_type),
                _ => None,
            };
            if symbol.is_undefined() || form.is_some_and(|form| form.refers == Refers::Slot) {
                wanted.push(index);
            }
        }
    }
    wanted.sort_unstable_by_key(|index| index.0);
    wanted.dedup();
    Ok(wanted)
}

struct Loader<'l, 'f> {
    file: &'l File<'f>,
    placed: &'l Placed,
    machine: Machine,
    /// The address of the mapping, and its bytes.
    base: u64,
    length: u64,
}

/// The addresses of functions that are not in a file itself.
type Known<'k> = HashMap<&'k str, u64>;

impl<'f> Loader<'_, 'f> {
    fn copy(&self, memory: &mut [u8]) -> Result<(), Problem> {
        for (index, offset) in &self.placed.sections {
            let section = self
                .file
                .section_by_index(SectionIndex(*index))
                .map_err(malformed)?;
            let data = section.data().map_err(malformed)?;
            // A section without bytes in the file is zeros.
            let target = memory
                .get_mut(*offset as usize..*offset as usize + data.len())
                .ok_or_else(|| damaged("sections of the size that they say", "a longer one"))?;
            target.copy_from_slice(data);
        }
        Ok(())
    }

    fn write_stubs(&self, memory: &mut [u8], known: &Known<'_>) -> Result<(), Problem> {
        for (symbol, offset) in &self.placed.stubs {
            let symbol = self
                .file
                .symbol_by_index(SymbolIndex(*symbol))
                .map_err(malformed)?;
            let address = match symbol.is_undefined() {
                true => import(&symbol, known)?,
                false => self.address(&symbol)?,
            };
            write(memory, *offset, &self.machine.stub())?;
            write(memory, *offset + STUB_ADDRESS, &address.to_le_bytes())?;
        }
        Ok(())
    }

    /// The address of a symbol of the file.
    fn address(&self, symbol: &ElfSymbol64<'f, '_, Endianness>) -> Result<u64, Problem> {
        let placed = match symbol.section() {
            SymbolSection::Section(section) => self.placed.sections.get(&section.0),
            _ => None,
        };
        let (Some(offset), true) = (placed, symbol.address() <= self.length) else {
            return Err(damaged(
                "symbols within loaded sections",
                format!("`{}`", symbol.name().unwrap_or_default()),
            ));
        };
        Ok(self.base + offset + symbol.address())
    }

    /// What a relocation refers to: an address within the loaded sections and up to
    /// [`PC_BYTES`] before them, as distances count from the end of an instruction.
    fn target(&self, address: u64, addend: i64) -> Result<u64, Problem> {
        let target = address.wrapping_add_signed(addend);
        let from = self.base - PC_BYTES;
        if (from..=self.base + self.length).contains(&target) {
            return Ok(target);
        }
        Err(damaged(
            "references within the loaded sections",
            format!("one {addend} bytes from its symbol"),
        ))
    }

    fn relocate(&self, memory: &mut [u8], known: &Known<'_>) -> Result<(), Problem> {
        for (index, start) in &self.placed.sections {
            let section = self
                .file
                .section_by_index(SectionIndex(*index))
                .map_err(malformed)?;
            for (offset, relocation) in section.relocations() {
                let RelocationFlags::Elf { r_type } = relocation.flags() else {
                    continue;
                };
                if r_type == machine::NONE {
                    continue;
                }
                let RelocationTarget::Symbol(symbol) = relocation.target() else {
                    return Err(damaged("relocations by symbols", format!("type {r_type}")));
                };
                let form = self.machine.form(r_type).ok_or_else(|| {
                    damaged(
                        "relocations of position-independent code",
                        format!("type {r_type}"),
                    )
                })?;
                let is_within = offset
                    .checked_add(form.field.bytes())
                    .is_some_and(|end| end <= section.size());
                if relocation.has_implicit_addend() || !is_within {
                    return Err(damaged(
                        "relocations within their sections",
                        format!("one at {offset} of {}", section.size()),
                    ));
                }
                let target = self.referred(form, symbol, relocation.addend(), known)?;
                form.field
                    .write(memory, start + offset, self.base, target)?;
            }
        }
        Ok(())
    }

    /// The address that a relocation refers to.
    fn referred(
        &self,
        form: Form,
        index: SymbolIndex,
        addend: i64,
        known: &Known<'_>,
    ) -> Result<u64, Problem> {
        let symbol = self.file.symbol_by_index(index).map_err(malformed)?;
        let stub = self.placed.stubs.get(&index.0).map(|stub| self.base + stub);
        let target = match form.refers {
            Refers::Slot => stub.ok_or_else(|| damaged("a stub", "none"))? + STUB_ADDRESS,
            Refers::Symbol if symbol.is_undefined() && form.field == Field::Address => {
                return match addend {
                    0 => import(&symbol, known),
                    _ => Err(damaged("the address of a function", "one within it")),
                };
            }
            Refers::Function if symbol.is_undefined() => {
                stub.ok_or_else(|| damaged("a stub", "none"))?
            }
            Refers::Function | Refers::Symbol => self.address(&symbol)?,
        };
        self.target(target, addend)
    }

    /// The offsets of all global functions.
    fn functions(&self) -> Result<HashMap<String, usize>, Problem> {
        let mut functions = HashMap::new();
        for symbol in self.file.symbols() {
            if !symbol.is_global() || symbol.is_undefined() {
                continue;
            }
            let SymbolSection::Section(section) = symbol.section() else {
                continue;
            };
            let section = self.file.section_by_index(section).map_err(malformed)?;
            if access(&section)? != Some(Access::Execute) || symbol.address() >= section.size() {
                continue;
            }
            let offset = self.address(&symbol)? - self.base;
            functions.insert(
                symbol.name().map_err(malformed)?.to_owned(),
                offset as usize,
            );
        }
        Ok(functions)
    }

    fn manifest(&self) -> Result<Option<String>, Problem> {
        for symbol in self.file.symbols() {
            let name = symbol.name().map_err(malformed)?;
            if symbol.is_global() && !symbol.is_undefined() && name.starts_with(MARK) {
                return Ok(Some(name.to_owned()));
            }
        }
        Ok(None)
    }
}

/// The address of a function of this process, or of another file.
fn import(symbol: &ElfSymbol64<'_, '_, Endianness>, known: &Known<'_>) -> Result<u64, Problem> {
    let name = symbol.name().unwrap_or_default();
    let address = known.get(name).ok_or_else(|| {
        damaged(
            "calls of functions that the runtime offers",
            format!("one of `{name}`"),
        )
    })?;
    Ok(*address)
}

fn write(memory: &mut [u8], at: u64, bytes: &[u8]) -> Result<(), Problem> {
    let at = at as usize;
    at.checked_add(bytes.len())
        .and_then(|end| memory.get_mut(at..end))
        .ok_or_else(|| damaged("relocations within the code", format!("one at {at}")))?
        .copy_from_slice(bytes);
    Ok(())
}

/// Lets code be run and nothing but data be written.
fn protect(memory: &MmapMut, layout: &ObjectLayout) -> Result<(), Problem> {
    let protections = [
        libc::PROT_READ | libc::PROT_EXEC,
        libc::PROT_READ,
        libc::PROT_READ | libc::PROT_WRITE,
    ];
    let mut begin = 0;
    for (end, protection) in layout.ends.into_iter().zip(protections) {
        if end > begin {
            let start = memory[begin as usize..].as_ptr().cast_mut().cast();
            // SAFETY: the range is within the mapping and begins and ends at pages; Rust reads and
            // writes none of it after this.
            let code = unsafe { libc::mprotect(start, (end - begin) as usize, protection) };
            if code != 0 {
                return Err(Problem::new(
                    ProblemKind::Mismatched,
                    "the host code",
                    "a system that lets memory be run",
                    std::io::Error::last_os_error().to_string(),
                ));
            }
        }
        begin = end;
    }
    Ok(())
}
