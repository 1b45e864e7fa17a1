//! Types whose values are numbers of a shape.

use cohort_runtime::abi::manifest::{Elem, LeadingDim, Manifest, Type};

/// A value that is numbers of a shape, `None` where an instance has lengths of its own.
pub struct Numbers {
    /// The type of the numbers.
    pub elem: Elem,
    /// The sizes of the dims, the outermost first.
    pub dims: Vec<Option<u64>>,
}

/// The form of a type as numbers, if it has one.
pub fn numbers(manifest: &Manifest, ty: &Type) -> Option<Numbers> {
    let rows = |pool: usize| {
        let pool = &manifest.row_pools[pool];
        (pool.elem, pool.shape.iter().map(|dim| Some(*dim)))
    };
    let (elem, dims) = match ty {
        Type::Scalar(elem) => (*elem, Vec::new()),
        Type::Tensor { pool } => {
            let (elem, dims) = rows(*pool);
            (elem, dims.collect())
        }
        Type::Stacked { pool } => {
            let (elem, dims) = rows(*pool);
            (elem, [None].into_iter().chain(dims).collect())
        }
        Type::Ragged {
            pool,
            dims: leading,
        } => {
            let (elem, dims) = rows(*pool);
            let leading = leading.iter().map(|dim| match dim {
                LeadingDim::Known(length) => Some(*length),
                LeadingDim::Named(_) | LeadingDim::Any => None,
            });
            (elem, leading.chain(dims).collect())
        }
        Type::Array(element) if matches!(**element, Type::Scalar(_) | Type::Tensor { .. }) => {
            let element = numbers(manifest, element)?;
            let dims = [None].into_iter().chain(element.dims).collect();
            (element.elem, dims)
        }
        Type::Array(_) | Type::Tuple(_) | Type::Adt(_) | Type::Str => return None,
    };
    Some(Numbers { elem, dims })
}
