//! What differs between architectures when code is loaded: the forms of relocations, and the stub.
//!
//! After the ELF supplements of the two: "System V Application Binary Interface, AMD64 Architecture Processor
//! Supplement", section 4.4, and "ELF for the Arm 64-bit Architecture", section 5.7.

use object::elf;

use super::{Problem, damaged, write};

/// The relocation that does nothing, on either.
pub const NONE: u32 = 0;

/// An architecture whose code can be loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    X86_64,
    Aarch64,
}

/// What a relocation refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refers {
    /// The symbol itself.
    Symbol,
    /// The symbol, or its stub where it is not in the file.
    Function,
    /// The place of the symbol's address, in its stub.
    Slot,
}

/// What a relocation writes of the address it refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// All of it.
    Address,
    /// How far it is from here, in 64 bits.
    Far,
    /// How far it is from here, in 32 bits.
    Near,
    /// How far it is from here, in instructions of four bytes, in 26 bits of one.
    Branch,
    /// How many pages of 4 KiB it is from here, in 21 bits of an instruction.
    Page,
    /// Its offset within its page in units of the operand's size (the exponent of a power of two, in bytes), in 12
    /// bits of an instruction.
    InPage(u32),
}

/// A relocation's form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    pub refers: Refers,
    pub field: Field,
}

impl Machine {
    /// The one of a name, as [`std::env::consts::ARCH`] has it.
    pub fn named(arch: &str) -> Option<Machine> {
        [Machine::X86_64, Machine::Aarch64]
            .into_iter()
            .find(|machine| machine.name() == arch)
    }

    pub fn name(self) -> &'static str {
        match self {
            Machine::X86_64 => "x86_64",
            Machine::Aarch64 => "aarch64",
        }
    }

    /// Its number in ELF files.
    pub fn number(self) -> u16 {
        match self {
            Machine::X86_64 => elf::EM_X86_64,
            Machine::Aarch64 => elf::EM_AARCH64,
        }
    }

    /// A jump to the address behind it.
    pub fn stub(self) -> [u8; 8] {
        match self {
            // jmp *[rip + 2], and two bytes that are never run
            Machine::X86_64 => [0xff, 0x25, 2, 0, 0, 0, 0xcc, 0xcc],
            // ldr x16, [pc + 8]; br x16
            Machine::Aarch64 => [0x50, 0, 0, 0x58, 0, 0x02, 0x1f, 0xd6],
        }
    }

    /// A relocation's form; `None` if position-independent code has none such.
    pub fn form(self, relocation: u32) -> Option<Form> {
        let (refers, field) = match self {
            Machine::X86_64 => match relocation {
                elf::R_X86_64_64 => (Refers::Symbol, Field::Address),
                elf::R_X86_64_PC64 => (Refers::Symbol, Field::Far),
                elf::R_X86_64_PC32 | elf::R_X86_64_PLT32 => (Refers::Function, Field::Near),
                elf::R_X86_64_GOTPCREL | elf::R_X86_64_GOTPCRELX | elf::R_X86_64_REX_GOTPCRELX => {
                    (Refers::Slot, Field::Near)
                }
                _ => return None,
            },
            Machine::Aarch64 => match relocation {
                elf::R_AARCH64_ABS64 => (Refers::Symbol, Field::Address),
                elf::R_AARCH64_PREL64 => (Refers::Symbol, Field::Far),
                elf::R_AARCH64_PREL32 => (Refers::Symbol, Field::Near),
                elf::R_AARCH64_CALL26 | elf::R_AARCH64_JUMP26 => (Refers::Function, Field::Branch),
                elf::R_AARCH64_ADR_PREL_PG_HI21 => (Refers::Symbol, Field::Page),
                elf::R_AARCH64_ADD_ABS_LO12_NC | elf::R_AARCH64_LDST8_ABS_LO12_NC => {
                    (Refers::Symbol, Field::InPage(0))
                }
                elf::R_AARCH64_LDST16_ABS_LO12_NC => (Refers::Symbol, Field::InPage(1)),
                elf::R_AARCH64_LDST32_ABS_LO12_NC => (Refers::Symbol, Field::InPage(2)),
                elf::R_AARCH64_LDST64_ABS_LO12_NC => (Refers::Symbol, Field::InPage(3)),
                elf::R_AARCH64_LDST128_ABS_LO12_NC => (Refers::Symbol, Field::InPage(4)),
                elf::R_AARCH64_ADR_GOT_PAGE => (Refers::Slot, Field::Page),
                elf::R_AARCH64_LD64_GOT_LO12_NC => (Refers::Slot, Field::InPage(3)),
                _ => return None,
            },
        };
        Some(Form { refers, field })
    }

    /// Lets the processor run what was just written: AArch64 keeps instructions in a cache of their own.
    pub fn make_visible(self, code: &[u8]) {
        #[cfg(target_arch = "aarch64")]
        {
            unsafe extern "C" {
                fn __clear_cache(begin: *const u8, end: *const u8);
            }
            let range = code.as_ptr_range();
            // SAFETY: the range is memory of this process; nothing but caches changes.
            unsafe { __clear_cache(range.start, range.end) };
        }
        let _ = code;
    }
}

impl Field {
    /// How many bytes it writes.
    pub fn bytes(self) -> u64 {
        match self {
            Field::Address | Field::Far => 8,
            _ => 4,
        }
    }

    /// Writes it into the memory at `base`.
    pub fn write(self, memory: &mut [u8], at: u64, base: u64, target: u64) -> Result<(), Problem> {
        const PAGE: u64 = 1 << 12;
        let here = base + at;
        let distance = target.wrapping_sub(here) as i64;
        let far = |distance: i64| damaged("distances that code reaches", distance.to_string());
        match self {
            Field::Address => write(memory, at, &target.to_le_bytes()),
            Field::Far => write(memory, at, &distance.to_le_bytes()),
            Field::Near => {
                let near = i32::try_from(distance).map_err(|_| far(distance))?;
                write(memory, at, &near.to_le_bytes())
            }
            Field::Branch => {
                let steps = signed(distance / 4, 26).filter(|_| distance % 4 == 0);
                let steps = steps.ok_or_else(|| far(distance))?;
                patch(memory, at, 0x03ff_ffff, steps)
            }
            Field::Page => {
                let pages = (target / PAGE) as i64 - (here / PAGE) as i64;
                let pages = signed(pages, 21).ok_or_else(|| far(distance))?;
                // The two lowest bits are elsewhere than the others.
                patch(memory, at, 0x60ff_ffe0, (pages & 3) << 29 | pages >> 2 << 5)
            }
            Field::InPage(scale) => {
                let within = (target % PAGE) as u32;
                if !within.is_multiple_of(1 << scale) {
                    let found = format!("one at {target:#x} of {} bytes", 1 << scale);
                    return Err(damaged("operands at multiples of their size", found));
                }
                patch(memory, at, 0x003f_fc00, within >> scale << 10)
            }
        }
    }
}

/// The lowest bits of a number that they hold with its sign.
fn signed(value: i64, bits: u32) -> Option<u32> {
    let most = 1 << (bits - 1);
    (-most..most)
        .contains(&value)
        .then_some(value as u32 & ((1 << bits) - 1))
}

/// Replaces some bits of an instruction.
fn patch(memory: &mut [u8], at: u64, mask: u32, bits: u32) -> Result<(), Problem> {
    let found = memory.get(at as usize..).and_then(<[u8]>::first_chunk);
    let instruction = found.map_or(0, |bytes| u32::from_le_bytes(*bytes));
    write(
        memory,
        at,
        &(instruction & !mask | bits & mask).to_le_bytes(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a field makes of an instruction at 0x1000 of memory at 0x10_0000.
    fn written(field: Field, instruction: u32, target: u64) -> Result<u32, String> {
        let mut memory = vec![0; 0x2000];
        memory[0x1000..0x1004].copy_from_slice(&instruction.to_le_bytes());
        field
            .write(&mut memory, 0x1000, 0x10_0000, target)
            .map_err(|problem| problem.to_string())?;
        Ok(u32::from_le_bytes(
            memory[0x1000..0x1004].try_into().unwrap(),
        ))
    }

    /// Instructions as an assembler writes them.
    #[test]
    fn instructions_of_aarch64_are_patched() {
        let (bl, adrp, add, ldr) = (0x9400_0000, 0x9000_0000, 0x9100_0000, 0x3dc0_0000);
        assert_eq!(written(Field::Branch, bl, 0x10_1008), Ok(bl | 2));
        assert_eq!(written(Field::Branch, bl, 0x10_0ffc), Ok(0x97ff_ffff));
        assert_eq!(written(Field::Page, adrp, 0x10_1fff), Ok(adrp));
        assert_eq!(written(Field::Page, adrp, 0x10_2000), Ok(0xb000_0000));
        assert_eq!(written(Field::Page, adrp, 0x10_5000), Ok(0x9000_0020));
        assert_eq!(written(Field::Page, adrp, 0x10_0000), Ok(0xf0ff_ffe0));
        assert_eq!(
            written(Field::InPage(0), add, 0x12_3abc),
            Ok(add | 0xabc << 10)
        );
        assert_eq!(
            written(Field::InPage(4), ldr, 0x12_3ab0),
            Ok(ldr | 0xab << 10)
        );
    }

    #[test]
    fn what_cannot_be_reached_is_told() {
        for (field, target, words) in [
            (
                Field::Branch,
                0x10_1000 + (1 << 27),
                "distances that code reaches",
            ),
            (Field::Branch, 0x10_1002, "distances that code reaches"),
            (
                Field::Page,
                0x10_1000 + (1 << 33),
                "distances that code reaches",
            ),
            (
                Field::Near,
                0x10_1000 + (1 << 31),
                "distances that code reaches",
            ),
            (
                Field::InPage(3),
                0x10_0004,
                "operands at multiples of their size",
            ),
        ] {
            let problem = written(field, 0, target).unwrap_err();
            assert!(problem.contains(words), "{problem}");
        }
    }
}
