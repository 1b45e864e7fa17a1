//! Attributes, each made as what it is: none is parsed from text.
//!
//! For attributes of upstream dialects MLIR's C interface has no functions; `lib/Attributes.cpp` has them.

use crate::ffi;
use crate::keys::{self, Key};
use melior::Context;
use melior::ir::{
    AffineExpr, AffineMap, Attribute, AttributeLike, Identifier, OperationRef, Type, TypeLike,
    attribute::{
        ArrayAttribute, BoolAttribute, DenseElementsAttribute, DenseI32ArrayAttribute,
        DenseI64ArrayAttribute, DictionaryAttribute, FlatSymbolRefAttribute, FloatAttribute,
        IntegerAttribute, StringAttribute,
    },
    operation::OperationLike,
};

use crate::builder::Builder;

/// What an operation takes or gives along one of its dims: the loop that runs there, or always the
/// same entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapResult {
    /// The loop of this number.
    Loop(usize),
    /// This entry.
    Constant(i64),
}

/// A dim of a GPU's grid or block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GpuDim {
    /// The first dim, along which neighbours are neighbouring threads.
    X,
    /// The second dim.
    Y,
}

impl GpuDim {
    /// As upstream's `gpu` dialect counts them.
    fn number(self) -> u32 {
        match self {
            GpuDim::X => 0,
            GpuDim::Y => 1,
        }
    }

    /// The dim that a `gpu.thread_id`, `gpu.block_id` or `gpu.grid_dim` is of; `None` for a third one.
    pub fn of(operation: OperationRef<'_, '_>) -> Option<GpuDim> {
        let dim = operation.attribute(&keys::DIMENSION).ok()?;
        // SAFETY: the attribute is alive.
        let number = unsafe { ffi::cohortGpuDimensionAttrGetValue(dim.to_raw()) };
        let mut dims = [GpuDim::X, GpuDim::Y].into_iter();
        dims.find(|known| i64::from(known.number()) == number)
    }
}

/// Who may refer to a symbol of LLVM's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Linkage {
    /// Any module.
    External,
    /// Its own module alone.
    Internal,
    /// Its own module alone, and no table of symbols has its name.
    Private,
}

/// The attribute of a linkage.
pub fn linkage(context: &Context, linkage: Linkage) -> Attribute<'_> {
    let raw = match linkage {
        Linkage::External => mlir_sys::MlirLLVMLinkage_MlirLLVMLinkageExternal,
        Linkage::Internal => mlir_sys::MlirLLVMLinkage_MlirLLVMLinkageInternal,
        Linkage::Private => mlir_sys::MlirLLVMLinkage_MlirLLVMLinkagePrivate,
    };
    // SAFETY: the context is alive.
    unsafe { Attribute::from_raw(mlir_sys::mlirLLVMLinkageAttrGet(context.to_raw(), raw)) }
}

/// Whether a global's value comes from the weights' file.
pub fn is_external(global: OperationRef<'_, '_>) -> bool {
    let value = global.attribute(&keys::VALUE);
    // SAFETY: the attribute is alive.
    value.is_ok_and(|value| unsafe { ffi::cohortAttributeIsExtern(value.to_raw()) })
}

impl<'c> Builder<'c> {
    /// The shape of a product of a warp that sums over `k`.
    pub fn mma_shape(&self, k: i32) -> Attribute<'c> {
        // SAFETY: the context is alive.
        self.known(unsafe { ffi::cohortMmaShapeAttrGet(self.raw_context(), 16, 8, k) })
    }

    /// The shape of a warpgroup's bf16 product with `columns` columns: `m64nNk16`.
    pub fn warpgroup_shape(&self, columns: i32) -> Attribute<'c> {
        // SAFETY: the context is alive.
        self.known(unsafe { ffi::cohortMmaShapeAttrGet(self.raw_context(), 64, columns, 16) })
    }

    /// What a product of a warpgroup multiplies, bf16, or else what it adds to, f32.
    pub fn warpgroup_type(&self, is_bf16: bool) -> Attribute<'c> {
        // SAFETY: the context is alive.
        self.known(unsafe { ffi::cohortWarpgroupTypeAttrGet(self.raw_context(), is_bf16) })
    }

    /// That a product of a warpgroup adds to the sums there are, or else that it takes a factor as it is.
    pub fn warpgroup_scale(&self, is_of_sums: bool) -> Attribute<'c> {
        // SAFETY: the context is alive.
        self.known(unsafe { ffi::cohortWarpgroupScaleAttrGet(self.raw_context(), is_of_sums) })
    }

    /// Of a fence: between what threads do with shared memory and what is done asynchronously.
    pub fn async_shared_proxy(&self) -> Attribute<'c> {
        // SAFETY: the context is alive.
        self.known(unsafe { ffi::cohortAsyncSharedProxyAttrGet(self.raw_context()) })
    }

    /// The shared memory of a block.
    pub fn shared_space(&self) -> Attribute<'c> {
        // SAFETY: the context is alive.
        self.known(unsafe { ffi::cohortSharedSpaceAttrGet(self.raw_context()) })
    }

    /// The elements that a product of a warp multiplies: bf16, or else tf32.
    pub fn mma_type(&self, is_bf16: bool) -> Attribute<'c> {
        // SAFETY: the context is alive.
        self.known(unsafe { ffi::cohortMmaTypeAttrGet(self.raw_context(), is_bf16) })
    }

    /// How a side of a product of a warp lies: by columns, or else by rows.
    pub fn mma_layout(&self, is_column_major: bool) -> Attribute<'c> {
        // SAFETY: the context is alive.
        self.known(unsafe { ffi::cohortMmaLayoutAttrGet(self.raw_context(), is_column_major) })
    }

    /// In which caches of a GPU a load leaves what it read: in the one that all share alone, or else in all.
    pub fn load_cache(&self, is_global: bool) -> Attribute<'c> {
        // SAFETY: the context is alive.
        self.known(unsafe { ffi::cohortLoadCacheAttrGet(self.raw_context(), is_global) })
    }

    /// That a GPU rounds to the nearest: halves away from zero, or else to even.
    pub fn rounding_mode(&self, is_away: bool) -> Attribute<'c> {
        // SAFETY: the context is alive.
        self.known(unsafe { ffi::cohortRoundingModeAttrGet(self.raw_context(), is_away) })
    }

    /// That what is too large when it is rounded is infinite.
    pub fn no_saturation(&self) -> Attribute<'c> {
        // SAFETY: the context is alive.
        self.known(unsafe { ffi::cohortNoSaturationAttrGet(self.raw_context()) })
    }

    /// That LLVM may not unroll a loop.
    pub fn rolled(&self) -> Attribute<'c> {
        // SAFETY: the context is alive.
        self.known(unsafe { ffi::cohortRolledLoopAttrGet(self.raw_context()) })
    }

    /// A dim of a grid or block, as upstream's `gpu` dialect has it.
    pub fn gpu_dim(&self, dim: GpuDim) -> Attribute<'c> {
        // SAFETY: the context is alive.
        self.known(unsafe { ffi::cohortGpuDimensionAttrGet(self.raw_context(), dim.number()) })
    }

    /// That a shuffle gives a lane the value of the one whose number differs in the bits of the offset.
    pub fn shuffle_xor(&self) -> Attribute<'c> {
        // SAFETY: the context is alive.
        self.known(unsafe { ffi::cohortShuffleXorAttrGet(self.raw_context()) })
    }

    fn raw_context(&self) -> mlir_sys::MlirContext {
        self.context().to_raw()
    }

    fn known(&self, raw: mlir_sys::MlirAttribute) -> Attribute<'c> {
        // SAFETY: an attribute that was just made of this context.
        unsafe { Attribute::from_raw(raw) }
    }

    /// An integer of 64 bits: an axis, a predicate.
    pub fn i64_attr(&self, value: i64) -> Attribute<'c> {
        IntegerAttribute::new(self.i64(), value).into()
    }

    /// An integer of 32 bits.
    pub fn i32_attr(&self, value: i32) -> Attribute<'c> {
        IntegerAttribute::new(self.i32(), i64::from(value)).into()
    }

    /// A float, which may be infinite.
    pub fn f32_attr(&self, value: f32) -> Attribute<'c> {
        FloatAttribute::new(self.context(), self.f32(), f64::from(value)).into()
    }

    /// `true` or `false`.
    pub fn bool_attr(&self, value: bool) -> Attribute<'c> {
        BoolAttribute::new(self.context(), value).into()
    }

    /// The attribute that says by being there.
    pub fn unit_attr(&self) -> Attribute<'c> {
        Attribute::unit(self.context())
    }

    /// A text.
    pub fn string(&self, text: &str) -> Attribute<'c> {
        StringAttribute::new(self.context(), text).into()
    }

    /// The symbol of this name, which is written without `@`.
    pub fn symbol(&self, name: &str) -> Attribute<'c> {
        FlatSymbolRefAttribute::new(self.context(), name).into()
    }

    /// A list of attributes.
    pub fn array(&self, elements: &[Attribute<'c>]) -> Attribute<'c> {
        ArrayAttribute::new(self.context(), elements).into()
    }

    /// A list of texts.
    pub fn strings<T: AsRef<str>>(&self, texts: impl IntoIterator<Item = T>) -> Attribute<'c> {
        let texts = texts.into_iter().map(|text| self.string(text.as_ref()));
        self.array(&texts.collect::<Vec<_>>())
    }

    /// Attributes by name.
    pub fn dictionary(&self, entries: &[(Key<'_>, Attribute<'c>)]) -> Attribute<'c> {
        let entries = entries.iter();
        let entries = entries.map(|(key, value)| (Identifier::new(self.context(), key), *value));
        DictionaryAttribute::new(self.context(), &entries.collect::<Vec<_>>()).into()
    }

    /// `array<i64: …>`: sizes, offsets, positions.
    pub fn i64s(&self, values: &[i64]) -> Attribute<'c> {
        DenseI64ArrayAttribute::new(self.context(), values).into()
    }

    /// `array<i32: …>`, such as the sizes of segments of operands.
    pub fn i32s(&self, values: &[i32]) -> Attribute<'c> {
        DenseI32ArrayAttribute::new(self.context(), values).into()
    }

    /// The elements of a vector or tensor of integers.
    pub fn elements(&self, ty: Type<'c>, element: Type<'c>, values: &[i64]) -> Attribute<'c> {
        let values = values.iter();
        let values = values.map(|value| IntegerAttribute::new(element, *value).into());
        DenseElementsAttribute::new(ty, &values.collect::<Vec<_>>())
            .unwrap_or_else(|error| unreachable!("elements of {ty}: {error}"))
            .into()
    }

    /// A vector, or a tensor of known shape, that is full of one element.
    pub fn splat(&self, ty: Type<'c>, element: Attribute<'c>) -> Attribute<'c> {
        DenseElementsAttribute::splat(ty, element).into()
    }

    /// The axes that each axis of the smaller side of a reshape stands for.
    pub fn reassociation(&self, groups: &[Vec<usize>]) -> Attribute<'c> {
        let axes = |group: &Vec<usize>| {
            let axes = group.iter().map(|axis| self.i64_attr(*axis as i64));
            self.array(&axes.collect::<Vec<_>>())
        };
        self.array(&groups.iter().map(axes).collect::<Vec<_>>())
    }

    /// The indexing maps of a structured operation of `loops` loops, one an operand.
    pub fn indexing_maps<T: AsRef<[MapResult]>>(&self, loops: usize, maps: &[T]) -> Attribute<'c> {
        let expression = |place: &MapResult| match place {
            MapResult::Loop(number) => AffineExpr::dim(self.context(), *number),
            MapResult::Constant(entry) => AffineExpr::constant(self.context(), *entry),
        };
        let map = |places: &T| {
            let results: Vec<_> = places.as_ref().iter().map(expression).collect();
            self.map(AffineMap::new(self.context(), loops, 0, &results))
        };
        self.array(&maps.iter().map(map).collect::<Vec<_>>())
    }

    /// An affine map.
    pub fn map(&self, map: AffineMap<'c>) -> Attribute<'c> {
        // SAFETY: the map is alive as long as its context.
        unsafe { Attribute::from_raw(mlir_sys::mlirAffineMapAttrGet(map.to_raw())) }
    }

    /// The kinds of loops of a structured operation: those that fold, and the others.
    pub fn iterators(&self, folds: &[bool]) -> Attribute<'c> {
        let kinds = folds.iter().map(|folds| iterator(self.context(), *folds));
        self.array(&kinds.collect::<Vec<_>>())
    }

    /// The value of a global that the weights' file has.
    pub fn external(&self, ty: Type<'c>) -> Attribute<'c> {
        // SAFETY: the type is alive.
        self.known(unsafe { ffi::cohortExternAttrGet(ty.to_raw()) })
    }

    /// The linkage of what another module defines.
    pub fn external_linkage(&self) -> Attribute<'c> {
        linkage(self.context(), Linkage::External)
    }

    /// The linkage of what only its module refers to.
    pub fn internal_linkage(&self) -> Attribute<'c> {
        linkage(self.context(), Linkage::Internal)
    }
}

/// The kind of a loop of a structured operation.
fn iterator(context: &Context, folds: bool) -> Attribute<'_> {
    // SAFETY: the context is alive.
    unsafe { Attribute::from_raw(ffi::cohortIteratorTypeAttrGet(context.to_raw(), folds)) }
}

/// Which loops of a structured operation fold, by its `iterator_types`; `None` where it has none.
pub fn folds_of(operation: OperationRef<'_, '_>) -> Option<Vec<bool>> {
    let kinds = ArrayAttribute::try_from(operation.attribute(&keys::ITERATOR_TYPES).ok()?).ok()?;
    let context = operation.context();
    // SAFETY: the context outlives the operations in it.
    let context = unsafe { context.to_ref() };
    let folds = iterator(context, true);
    let kinds = (0..kinds.len()).filter_map(|number| kinds.element(number).ok());
    Some(kinds.map(|kind| kind == folds).collect())
}

#[cfg(test)]
mod tests {
    use melior::ir::{Location, Module};

    use super::*;

    #[test]
    fn attributes_print_as_mlir_writes_them() {
        let context = crate::new_context();
        let location = Location::unknown(&context);
        let module = Module::new(location);
        let b = Builder::at_end(&context, module.body(), location);
        let maps = [vec![MapResult::Loop(0), MapResult::Constant(3)], vec![]];
        for (attribute, text) in [
            (
                b.indexing_maps(2, &maps),
                "[affine_map<(d0, d1) -> (d0, 3)>, affine_map<(d0, d1) -> ()>]",
            ),
            (
                b.iterators(&[false, true]),
                "[#linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>]",
            ),
            (b.reassociation(&[vec![0, 1], vec![2]]), "[[0, 1], [2]]"),
            (b.gpu_dim(GpuDim::Y), "#gpu<dim y>"),
            (b.external(b.f32()), "#ml_program.extern : f32"),
            (b.mma_shape(16), "#nvvm.shape<m = 16, n = 8, k = 16>"),
            (
                b.warpgroup_shape(256),
                "#nvvm.shape<m = 64, n = 256, k = 16>",
            ),
            (b.warpgroup_type(true), "#nvvm.wgmma_type<bf16>"),
            (b.warpgroup_type(false), "#nvvm.wgmma_type<f32>"),
            (b.warpgroup_scale(true), "#nvvm.wgmma_scale_out<one>"),
            (b.warpgroup_scale(false), "#nvvm.wgmma_scale_in<one>"),
            (b.async_shared_proxy(), "#nvvm.proxy_kind<async.shared>"),
            (b.shared_space(), "#nvvm.shared_space<cta>"),
            (b.mma_type(true), "#nvvm.mma_type<bf16>"),
            (b.mma_type(false), "#nvvm.mma_type<tf32>"),
            (b.mma_layout(true), "#nvvm.mma_layout<col>"),
            (b.mma_layout(false), "#nvvm.mma_layout<row>"),
            (b.load_cache(true), "#nvvm<load_cache_modifier cg>"),
            (b.load_cache(false), "#nvvm<load_cache_modifier ca>"),
            (b.rounding_mode(true), "#nvvm.fp_rnd_mode<rna>"),
            (b.rounding_mode(false), "#nvvm.fp_rnd_mode<rn>"),
            (b.no_saturation(), "#nvvm.sat_mode<none>"),
            (
                b.rolled(),
                "#llvm.loop_annotation<unroll = <disable = true>>",
            ),
            (
                b.elements(b.vector_type(3, b.i1()), b.i1(), &[1, 0, 1]),
                "dense<[true, false, true]> : vector<3xi1>",
            ),
            (
                b.splat(
                    b.tensor_type(&[Some(2)], b.f32()),
                    b.f32_attr(f32::NEG_INFINITY),
                ),
                "dense<0xFF800000> : tensor<2xf32>",
            ),
            (
                b.dictionary(&[
                    (keys::NAMES, b.strings(["a\"b"])),
                    (keys::OF, b.symbol("f")),
                ]),
                r#"{names = ["a\22b"], of = @f}"#,
            ),
        ] {
            assert_eq!(
                Some(attribute),
                Attribute::parse(&context, text),
                "{attribute}"
            );
        }
    }

    #[test]
    fn a_float_keeps_its_bits() {
        let context = crate::new_context();
        let location = Location::unknown(&context);
        let module = Module::new(location);
        let b = Builder::at_end(&context, module.body(), location);
        for bits in [0_u32, 0x8000_0000, 0x7FC0_0000, 0xFFC0_0000, 0x7F80_0000, 1] {
            let text = format!("0x{bits:08X} : f32");
            assert_eq!(
                Some(b.f32_attr(f32::from_bits(bits))),
                Attribute::parse(&context, &text),
                "{text}"
            );
        }
    }
}
