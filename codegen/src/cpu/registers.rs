//! How much of a product the processor's registers hold.

use cohort_dialects::marks::VECTOR_REGISTERS;
use cohort_passes::support::ir::integer_attribute;
use melior::ir::OperationRef;

/// Vectors of 16 numbers in the registers of a processor with AVX-512, which code is for where nothing is said.
const WITH_AVX_512: i64 = 32;

/// How many vectors of 16 numbers the registers hold that a module's code is for.
pub fn of_module(module: OperationRef<'_, '_>) -> usize {
    let found = integer_attribute(module, VECTOR_REGISTERS).unwrap_or(WITH_AVX_512);
    found.max(1) as usize
}

/// Whether a tile of `rows` by `vectors` fits the registers: its accumulators, the vectors of the right side, and one
/// broadcast number of the left. With a single row each vector of the right side is used once, as a memory operand.
fn holds(registers: usize, rows: usize, vectors: usize) -> bool {
    let right = if rows > 1 { vectors } else { 0 };
    rows * vectors + right < registers
}

/// The tile that a tile is computed by: itself, or where registers do not hold it the largest of the others that
/// divides it, which then computes its parts one after another.
pub fn part(
    registers: usize,
    (rows, vectors): (usize, usize),
    tiles: impl Iterator<Item = (usize, usize)>,
) -> (usize, usize) {
    if holds(registers, rows, vectors) {
        return (rows, vectors);
    }
    let fits = |(r, v): &(usize, usize)| {
        rows.is_multiple_of(*r) && vectors.is_multiple_of(*v) && holds(registers, *r, *v)
    };
    tiles
        .filter(fits)
        .max_by_key(|(r, v)| (r * v, *r))
        .unwrap_or((rows, vectors))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TILES: [(usize, usize); 8] = [
        (12, 2),
        (8, 2),
        (6, 1),
        (4, 4),
        (4, 1),
        (2, 2),
        (1, 4),
        (1, 1),
    ];

    #[test]
    fn tiles_fit_the_registers() {
        let part = |registers, tile| part(registers, tile, TILES.into_iter());
        // AVX-512 holds all of them.
        for tile in TILES {
            assert_eq!(part(32, tile), tile);
        }
        // AVX2 and NEON have room for 8 vectors.
        assert_eq!(part(8, (12, 2)), (6, 1));
        assert_eq!(part(8, (8, 2)), (4, 1));
        assert_eq!(part(8, (4, 4)), (4, 1));
        assert_eq!(part(8, (6, 1)), (6, 1));
        assert_eq!(part(8, (2, 2)), (2, 2));
        assert_eq!(part(8, (1, 4)), (1, 4));
        // Where nothing fits, nothing is gained by parts.
        assert_eq!(part(1, (12, 2)), (12, 2));
    }
}
