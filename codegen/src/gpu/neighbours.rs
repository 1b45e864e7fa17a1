//! Which elements a thread takes at once.

use cohort_abi::manifest::Elem;
use cohort_passes::kernel::affine::Affine;

/// Whether `count` neighbouring indices along the last of some loops, from a multiple of their number on, are
/// neighbouring elements that can be loaded or stored at once. Rows begin at multiples of as many elements.
pub fn are_neighbours(loops: &[i64], address: &Affine, elem: Elem, count: i64) -> bool {
    let Some((_, outer)) = loops.split_last() else {
        return false;
    };
    let mut outer = outer.iter().enumerate();
    elem != Elem::Bool
        && address.coefficient(loops.len() - 1) == 1
        && address.constant % count == 0
        && outer.all(|(dim, size)| *size == 1 || address.coefficient(dim) % count == 0)
}
