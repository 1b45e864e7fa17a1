//! `--draw`: other random numbers for the same instances.
//!
//! The key of an instance, a hash of its id, and the number of the draw make another key: the two words
//! of Threefry-2x32 in 20 rounds (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3,
//! SC 2011) of the draw's words under the key. So an epoch's numbers depend on the instance and the draw
//! alone, and draws are as independent as instances are.

/// By how many bits each of eight rounds rotates.
const ROTATIONS: [u32; 8] = [13, 15, 26, 6, 17, 29, 16, 24];

/// The key of an instance in a draw. Draw 0 is the default: it leaves the key as it is.
pub fn key(key: u64, draw: u64) -> u64 {
    match draw {
        0 => key,
        _ => join(threefry(split(key), split(draw))),
    }
}

/// The lower word, then the upper one.
fn split(bits: u64) -> [u32; 2] {
    [bits as u32, (bits >> 32) as u32]
}

fn join([low, high]: [u32; 2]) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

fn threefry(key: [u32; 2], [mut x, mut y]: [u32; 2]) -> [u32; 2] {
    let keys = [key[0], key[1], 0x1bd1_1bda ^ key[0] ^ key[1]];
    let add = |word: &mut u32, other: u32| *word = word.wrapping_add(other);
    add(&mut x, keys[0]);
    add(&mut y, keys[1]);
    for round in 0..20 {
        add(&mut x, y);
        y = y.rotate_left(ROTATIONS[round % ROTATIONS.len()]) ^ x;
        if round % 4 == 3 {
            let turn = round / 4 + 1;
            add(&mut x, keys[turn % 3]);
            add(&mut y, keys[(turn + 1) % 3]);
            add(&mut y, turn as u32);
        }
    }
    [x, y]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of the known answers that the authors give with their code.
    #[test]
    fn threefry_gives_the_known_answers() {
        assert_eq!(threefry([0; 2], [0; 2]), [0x6b20_0159, 0x99ba_4efe]);
        assert_eq!(threefry([!0; 2], [!0; 2]), [0x1cb9_96fc, 0xbb00_2be7]);
    }

    #[test]
    fn each_draw_of_each_instance_has_a_key_of_its_own() {
        let mut keys: Vec<u64> = (0..30)
            .flat_map(|instance| (0..30).map(move |draw| key(instance << 30, draw)))
            .collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), 900);
        assert_eq!(key(7, 0), 7);
    }
}
