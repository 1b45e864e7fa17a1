//! Which elements a thread takes at once.

use cohort_abi::manifest::Elem;
use cohort_passes::kernel::rows::graph::Linear;

/// Whether so many neighbouring indices along the last of some loops, from a multiple of their number on, are
/// neighbouring elements that can be loaded or stored at once. Rows begin at multiples of as many elements.
pub fn are_neighbours(loops: &[i64], address: &Linear, elem: Elem, count: i64) -> bool {
    let Some((last, outer)) = address.coefficients.split_last() else {
        return false;
    };
    let mut outer = outer.iter().zip(loops);
    elem != Elem::Bool
        && *last == 1
        && address.constant % count == 0
        && outer.all(|(coefficient, size)| *size == 1 || coefficient % count == 0)
}
