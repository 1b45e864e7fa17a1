//! The shape encoding of the `ragged` dialect, `#ragged.shape<@batch, @seq(@batch), _>`: building it
//! and taking it apart.

use crate::ffi;
use melior::{
    Context,
    ir::{Attribute, Type, TypeLike, attribute::AttributeLike},
};

/// What a shape says of one dim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dim {
    /// `None` for a dim that is only as long as the tensor's type says.
    pub name: Option<String>,
    /// The dims on whose index the length depends; none for a dim of one length.
    pub outer: Vec<String>,
    /// A bound of every length.
    pub max: Option<u64>,
    /// Every row's extent in storage is a multiple of this.
    pub pad: u64,
    /// The extents of all rows together are a multiple of this.
    pub bulk: u64,
}

impl Dim {
    /// `_`
    pub fn unnamed() -> Self {
        Dim {
            name: None,
            outer: Vec::new(),
            max: None,
            pad: 1,
            bulk: 1,
        }
    }

    /// `@name`
    pub fn named(name: &str) -> Self {
        Dim {
            name: Some(name.to_owned()),
            ..Dim::unnamed()
        }
    }

    /// `@name(@outer, …)`
    pub fn ragged(name: &str, outer: &[&str]) -> Self {
        Dim {
            outer: outer.iter().map(|outer| (*outer).to_owned()).collect(),
            ..Dim::named(name)
        }
    }

    /// Whether its length depends on the index in outer dims.
    pub fn is_ragged(&self) -> bool {
        !self.outer.is_empty()
    }
}

/// What the encoding of a tensor says of each of its dims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// One for each dim of the tensor.
    pub dims: Vec<Dim>,
}

impl Shape {
    /// The attribute; `None`, with a diagnostic, when the dims do not make a shape.
    pub fn to_attribute<'c>(&self, context: &'c Context) -> Option<Attribute<'c>> {
        let outer: Vec<Vec<_>> = self
            .dims
            .iter()
            .map(|dim| dim.outer.iter().map(|name| ffi::view(name)).collect())
            .collect();
        let dims = self.dims.iter().zip(&outer);
        let dims: Vec<_> = dims
            .map(|(dim, outer)| ffi::RaggedDim {
                is_named: dim.name.is_some(),
                name: ffi::view(dim.name.as_deref().unwrap_or_default()),
                sizes: [dim.max.unwrap_or(0), dim.pad, dim.bulk].map(|size| size as i64),
                outer_count: outer.len() as isize,
                outer: outer.as_ptr(),
            })
            .collect();
        // SAFETY: the context is alive, and MLIR copies the dims and their names.
        unsafe {
            let count = dims.len() as isize;
            let shape = ffi::cohortRaggedShapeGet(context.to_raw(), count, dims.as_ptr());
            Attribute::from_option_raw(shape)
        }
    }

    /// `None` for an attribute of another kind.
    pub fn from_attribute(attribute: Attribute<'_>) -> Option<Self> {
        // SAFETY: the attribute is alive; its kind is checked before it is read.
        unsafe {
            ffi::cohortAttributeIsRaggedShape(attribute.to_raw()).then(|| read(attribute.to_raw()))
        }
    }

    /// The shape in a tensor type's encoding; `None` for every other type.
    pub fn of_type(ty: Type<'_>) -> Option<Self> {
        // SAFETY: the type is alive, and a shape that is not null is one.
        unsafe {
            let attribute = ffi::cohortTypeGetRaggedShape(ty.to_raw());
            (!attribute.ptr.is_null()).then(|| read(attribute))
        }
    }
}

/// # Safety
/// `shape` must be a live shape attribute.
unsafe fn read(shape: mlir_sys::MlirAttribute) -> Shape {
    // SAFETY: the caller vouches for the attribute; indices stay within the counts it gives.
    unsafe {
        let dims = (0..ffi::cohortRaggedShapeGetRank(shape)).map(|index| {
            let name = ffi::string_from(ffi::cohortRaggedShapeGetName(shape, index));
            let mut sizes = [0; 3];
            ffi::cohortRaggedShapeGetSizes(shape, index, sizes.as_mut_ptr());
            let [max, pad, bulk] = sizes.map(|size| size as u64);
            let outer = (0..ffi::cohortRaggedShapeGetOuterCount(shape, index))
                .map(|outer| ffi::string_from(ffi::cohortRaggedShapeGetOuter(shape, index, outer)));
            Dim {
                name: (!name.is_empty()).then_some(name),
                outer: outer.collect(),
                max: (max != 0).then_some(max),
                pad,
                bulk,
            }
        });
        Shape {
            dims: dims.collect(),
        }
    }
}
