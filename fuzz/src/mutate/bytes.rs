//! Changes that know nothing.

use cohort_e2e::Rng;

/// Values of two to eight bytes at which something happens.
const WORDS: [u64; 10] = [
    0,
    1,
    0x7f,
    0xff,
    0x7fff,
    0xffff,
    0x7fff_ffff,
    0xffff_ffff,
    0x7fff_ffff_ffff_ffff,
    u64::MAX,
];

pub fn mutate(input: &[u8], other: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut bytes = input.to_vec();
    if bytes.is_empty() {
        return other.iter().copied().take(rng.below(100)).collect();
    }
    let at = rng.below(bytes.len());
    let end = at + 1 + rng.below((bytes.len() - at).min(64));
    match rng.below(9) {
        0 | 1 => bytes[at] ^= 1 << rng.below(8),
        2 => bytes[at] = rng.below(256) as u8,
        3 => drop(bytes.drain(at..end)),
        4 => {
            let copy = bytes[at..end].to_vec();
            let to = rng.below(bytes.len() + 1);
            bytes.splice(to..to, copy);
        }
        5 => put_word(&mut bytes, at, rng),
        6 => bytes.truncate(at),
        7 if !other.is_empty() => {
            let from = rng.below(other.len());
            let length = 1 + rng.below((other.len() - from).min(200));
            bytes.splice(at..end, other[from..from + length].iter().copied());
        }
        _ => bytes.insert(at, rng.below(256) as u8),
    }
    bytes
}

/// Changes an ELF object where it is not code: its header, and the tables at its end.
pub fn mutate_tables(input: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut bytes = input.to_vec();
    if bytes.len() < 64 {
        return mutate(input, &[], rng);
    }
    let section_table = u64::from_le_bytes(bytes[40..48].try_into().unwrap_or_default());
    let section_table = usize::try_from(section_table).unwrap_or(usize::MAX);
    let tables = section_table.min(bytes.len() - 1);
    let at = match rng.below(5) {
        0 => rng.below(64),
        _ => tables + rng.below(bytes.len() - tables),
    };
    match rng.below(3) {
        0 => bytes[at] ^= 1 << rng.below(8),
        1 => bytes[at] = rng.below(256) as u8,
        _ => put_word(&mut bytes, at & !7, rng),
    }
    bytes
}

fn put_word(bytes: &mut [u8], at: usize, rng: &mut Rng) {
    let word = rng.pick(&WORDS).to_le_bytes();
    let width = *rng.pick(&[1, 2, 4, 8]);
    for (byte, value) in bytes[at..].iter_mut().zip(&word[..width]) {
        *byte = *value;
    }
}
