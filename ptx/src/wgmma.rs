//! `wgmma.mma_async`: what a warpgroup, four warps, multiplies together, of 64 rows, 8 to 256 columns and 16 of k.
//!
//! Both factors are in shared memory, K-major and in the 128-byte swizzling mode (*PTX ISA*, "Asynchronous Warpgroup
//! Level Matrix Shared Memory Layout" and "Matrix Descriptor"). A warp computes 16 of the rows; which element is in
//! which register of which lane is said by "Register Fragments for wgmma.mma_async.m64nNk16". Sums are those of
//! `mma.sync` over the same k ([`TensorCores`]).

use crate::instruction::Shape;
use crate::mma::{TensorCores, add};

/// Warps of a warpgroup.
pub const WARPS: usize = 4;

/// Rows of a product that each of its warps computes.
pub const ROWS: usize = 16;

const DEPTH: usize = 16;

/// A row of the left factor or a column of the right one.
pub type Line = [f32; DEPTH];

/// Bytes that a row or a column has in a tile, and those of eight of them, after which swizzling repeats.
const LINE_BYTES: u64 = 128;
const TILE_BYTES: u64 = 8 * LINE_BYTES;

/// Bytes that stay together when tiles are swizzled.
pub const PIECE: u64 = 16;

/// Where the rows of a left factor or the columns of a right one are in shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    start: u64,
    /// Bytes from eight rows to the next eight.
    stride: u64,
}

impl Descriptor {
    /// What the bits of a matrix descriptor say, or what is wrong with them.
    pub fn read(bits: u64) -> Result<Descriptor, String> {
        let field = |first: u32, count: u32| bits >> first & ((1 << count) - 1);
        if field(62, 2) != 1 {
            return Err(format!(
                "a swizzling mode of {} is not interpreted, only 1, which is of 128 bytes",
                field(62, 2)
            ));
        }
        if field(49, 3) != 0 {
            return Err(format!(
                "a base offset of {} is not interpreted, only 0",
                field(49, 3)
            ));
        }
        for (first, count) in [(14, 2), (30, 2), (46, 3), (52, 10)] {
            if field(first, count) != 0 {
                let last = first + count - 1;
                return Err(format!("bits {first} to {last} are not 0"));
            }
        }
        let (start, stride) = (field(0, 14) * PIECE, field(32, 14) * PIECE);
        if start % TILE_BYTES > LINE_BYTES - 2 * PIECE {
            return Err(format!(
                "the matrix begins at {start:#x}, not in the first {LINE_BYTES} bytes of a tile at a \
                 multiple of {TILE_BYTES}"
            ));
        }
        if stride % TILE_BYTES != 0 {
            return Err(format!(
                "the stride of {stride} bytes is not a multiple of {TILE_BYTES}"
            ));
        }
        Ok(Descriptor { start, stride })
    }

    /// The address of the first or the second eight elements of a row or column.
    pub fn piece(self, row: usize, half: usize) -> u64 {
        let (tile, line) = (row as u64 / 8, row as u64 % 8);
        let address = self.start + tile * self.stride + line * LINE_BYTES + half as u64 * PIECE;
        // Bits 4 to 6 are combined with bits 7 to 9.
        address ^ (address >> 3 & 0x70)
    }

    /// A row or column; the bytes that are beyond shared memory are 0.
    pub fn line(self, shared: &[u8], row: usize) -> Line {
        let mut line = [0.0; DEPTH];
        for (half, elements) in line.chunks_exact_mut(DEPTH / 2).enumerate() {
            let begin = self.piece(row, half) as usize;
            let bytes = shared.get(begin..begin + PIECE as usize).unwrap_or(&[]);
            for (element, bytes) in elements.iter_mut().zip(bytes.chunks_exact(2)) {
                let bits = u16::from_le_bytes([bytes[0], bytes[1]]);
                *element = f32::from_bits(u32::from(bits) << 16);
            }
        }
        line
    }
}

/// The row, of those of its warp, and the column of a lane's sum.
pub fn place(lane: usize, number: usize) -> (usize, usize) {
    let row = lane / 4 + number / 2 % 2 * 8;
    (row, number / 4 * 8 + lane % 4 * 2 + number % 2)
}

/// The sum of what there was and the product of a row and a column.
pub fn sum(cores: TensorCores, before: f32, row: &Line, column: &Line) -> f32 {
    let mut factors = [(0.0, 0.0); DEPTH];
    for (pair, (a, b)) in factors.iter_mut().zip(row.iter().zip(column)) {
        *pair = (*a, *b);
    }
    add(Shape::Bf16, cores, before, &factors)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tile at 16 times that, 1024 bytes from eight rows to the next.
    fn bits(start: u64) -> u64 {
        1 << 62 | 64 << 32 | start
    }

    #[test]
    fn pieces_are_swizzled() {
        let descriptor = Descriptor::read(bits(128)).unwrap();
        let row = |row| [descriptor.piece(row, 0), descriptor.piece(row, 1)];
        assert_eq!(row(0), [2048, 2064]);
        assert_eq!(row(1), [2048 + 128 + 16, 2048 + 128]);
        assert_eq!(row(2), [2048 + 256 + 32, 2048 + 256 + 48]);
        assert_eq!(row(7), [2048 + 896 + 112, 2048 + 896 + 96]);
        assert_eq!(
            row(8 * 3 + 5),
            [2048 + 3072 + 640 + 80, 2048 + 3072 + 640 + 64]
        );
        // The next 16 of k are 32 bytes on, before swizzling.
        let next = Descriptor::read(bits(128 + 6)).unwrap();
        assert_eq!(next.piece(0, 0), 2048 + 96);
        assert_eq!(
            [next.piece(5, 0), next.piece(5, 1)],
            [2048 + 640 + 48, 2048 + 640 + 32]
        );
    }

    #[test]
    fn each_piece_of_a_tile_is_the_place_of_one() {
        let mut all: Vec<u64> = (0..4)
            .map(|k| Descriptor::read(bits(2 * k)).unwrap())
            .flat_map(|of| (0..16).flat_map(move |row| [of.piece(row, 0), of.piece(row, 1)]))
            .collect();
        all.sort_unstable();
        assert_eq!(all, (0..128).map(|piece| piece * PIECE).collect::<Vec<_>>());
    }

    #[test]
    fn elements_are_those_of_the_place() {
        let descriptor = Descriptor::read(bits(0)).unwrap();
        let mut shared = vec![0; 1024];
        // The third element of the second row, and the ninth.
        shared[128 + 16 + 4..][..2].copy_from_slice(&0x3f80_u16.to_le_bytes());
        shared[128..][..2].copy_from_slice(&0xc000_u16.to_le_bytes());
        let mut expected = [0.0; DEPTH];
        (expected[2], expected[8]) = (1.0, -2.0);
        assert_eq!(descriptor.line(&shared, 1), expected);
        assert_eq!(descriptor.line(&shared, 8), [0.0; DEPTH]);
    }

    #[test]
    fn what_a_descriptor_may_not_be_is_told() {
        let read = |bits| Descriptor::read(bits).unwrap_err();
        for (of, expected) in [
            (64 << 32, "a swizzling mode of 0 is not interpreted"),
            (
                bits(0) | 1 << 63,
                "a swizzling mode of 3 is not interpreted",
            ),
            (bits(0) | 5 << 49, "a base offset of 5 is not interpreted"),
            (bits(0) | 1 << 15, "bits 14 to 15 are not 0"),
            (bits(0) | 1 << 30, "bits 30 to 31 are not 0"),
            (bits(0) | 1 << 46, "bits 46 to 48 are not 0"),
            (bits(0) | 1 << 61, "bits 52 to 61 are not 0"),
            (
                bits(8),
                "the matrix begins at 0x80, not in the first 128 bytes",
            ),
            (
                bits(7),
                "the matrix begins at 0x70, not in the first 128 bytes",
            ),
            (
                1 << 62 | 65 << 32,
                "the stride of 1040 bytes is not a multiple of 1024",
            ),
        ] {
            let problem = read(of);
            assert!(problem.contains(expected), "{problem}");
        }
        // The leading dimension's offset is not used.
        assert_eq!(
            Descriptor::read(bits(64) | 0x3fff << 16),
            Descriptor::read(bits(64))
        );
    }
}
