//! The random numbers of the language: a function of the instance's id, a counter and a position.
//!
//! Threefry-2x32 in 20 rounds (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2,
//! 3, SC 2011) of the counter and the position. The key is the 64-bit FNV-1a hash of the id's text,
//! its lower half first; a draw other than 0 makes another key of it, by the same function of the two
//! words of its number. The upper 24 bits of the first word are the number: exact as an f32.

/// What the random numbers of an instance are made with.
#[derive(Clone, Copy)]
pub(crate) struct Key([u32; 2]);

impl Key {
    pub(crate) fn new(instance: &str, draw: u64) -> Key {
        let own = words(hash(instance));
        match draw {
            0 => Key(own),
            _ => Key(threefry(own, words(draw))),
        }
    }

    /// A number in [0, 1).
    pub(super) fn uniform(self, counter: i32, position: usize) -> f64 {
        let [word, _] = threefry(self.0, [counter.cast_unsigned(), position as u32]);
        f64::from(word >> 8) / f64::from(1 << 24)
    }
}

fn words(bits: u64) -> [u32; 2] {
    [bits as u32, (bits >> 32) as u32]
}

fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

fn threefry(key: [u32; 2], counter: [u32; 2]) -> [u32; 2] {
    let key = [key[0], key[1], 0x1bd1_1bda ^ key[0] ^ key[1]];
    let mut x = counter[0].wrapping_add(key[0]);
    let mut y = counter[1].wrapping_add(key[1]);
    for turn in 0..5 {
        let rotations = match turn % 2 {
            0 => [13, 15, 26, 6],
            _ => [17, 29, 16, 24],
        };
        for rotation in rotations {
            x = x.wrapping_add(y);
            y = y.rotate_left(rotation) ^ x;
        }
        let turn = turn + 1;
        x = x.wrapping_add(key[turn % 3]);
        y = y
            .wrapping_add(key[(turn + 1) % 3])
            .wrapping_add(turn as u32);
    }
    [x, y]
}

#[cfg(test)]
mod tests {
    use super::threefry;

    /// Of the known answers that the authors give with their code.
    #[test]
    fn threefry_gives_the_known_answers() {
        assert_eq!(threefry([0; 2], [0; 2]), [0x6b20_0159, 0x99ba_4efe]);
        assert_eq!(threefry([!0; 2], [!0; 2]), [0x1cb9_96fc, 0xbb00_2be7]);
        assert_eq!(
            threefry([0x1319_8a2e, 0x0370_7344], [0x243f_6a88, 0x85a3_08d3]),
            [0xc492_3a9c, 0x483d_f7a0]
        );
    }
}
