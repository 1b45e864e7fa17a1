//! The names of attributes: those that operations declare, in one place.
//!
//! No other place writes one down: builders and readers take a [`Key`], which only this crate can make. What the
//! compiler leaves on operations of any dialect, which no operation declares, is in [`marks`](crate::marks).

use std::fmt;
use std::ops::Deref;

use melior::ir::Identifier;

/// The name of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key<'n>(&'n str);

impl Key<'static> {
    pub(crate) const fn new(name: &'static str) -> Key<'static> {
        Key(name)
    }
}

impl<'c> Key<'c> {
    /// The name of an attribute that an operation has.
    pub fn of(name: Identifier<'c>) -> Key<'c> {
        // SAFETY: MLIR keeps the bytes of an identifier as long as its context.
        let bytes = unsafe {
            let text = mlir_sys::mlirIdentifierStr(name.to_raw());
            std::slice::from_raw_parts(text.data.cast::<u8>(), text.length)
        };
        Key(std::str::from_utf8(bytes).unwrap_or_default())
    }
}

/// MLIR's own functions take a key as a text.
impl Deref for Key<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        self.0
    }
}

impl fmt::Display for Key<'_> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.0)
    }
}

macro_rules! keys {
    ($($key:ident: $name:literal,)*) => {
        $(
            #[doc = concat!("`", $name, "`")]
            pub const $key: Key<'static> = Key($name);
        )*

        #[cfg(test)]
        const ALL: &[Key<'static>] = &[$($key),*];
    };
}

keys! {
    ABOVE: "above",
    ACROSS_ROWS: "across_rows",
    ADDRESS: "address",
    ADDRESSES: "addresses",
    ADDR_SPACE: "addr_space",
    ALIGNED: "aligned",
    ALIGNMENT: "alignment",
    ALWAYS_INLINE: "always_inline",
    ARG_ATTRS: "arg_attrs",
    ASM_STRING: "asm_string",
    AXIS: "axis",
    BF16: "bf16",
    BIN_OP: "bin_op",
    BLOCKS: "blocks",
    BY: "by",
    BY_ROWS: "by_rows",
    CACHE: "cache",
    CALLEE: "callee",
    CASES: "cases",
    CLUSTERED: "clustered",
    COLUMNS: "columns",
    CONSTANT: "constant",
    CONSTRAINTS: "constraints",
    CONSTRUCTOR: "constructor",
    CONSTRUCTORS: "constructors",
    COPIES: "copies",
    DEPTH: "depth",
    DEPTH_DIMS: "depth_dims",
    DIM: "dim",
    DIMENSION: "dimension",
    DIMENSIONS: "dimensions",
    DIMS: "dims",
    ELEM_TYPE: "elem_type",
    EXACT: "exact",
    FIELDS: "fields",
    FLOPS: "flops",
    FOLDING: "folding",
    FROM: "from",
    FUNCTION_TYPE: "function_type",
    FUSED: "fused",
    GATES: "gates",
    GIVEN: "given",
    GLOBAL: "global",
    GLOBAL_NAME: "global_name",
    GLOBAL_TYPE: "global_type",
    GRADIENTS: "gradients",
    GROUPED_FROM: "grouped_from",
    HELD: "held",
    HAS_SIDE_EFFECTS: "has_side_effects",
    HINT: "hint",
    HOISTED: "hoisted",
    INDEXING_MAPS: "indexing_maps",
    IS_INT_MIN_POISON: "is_int_min_poison",
    IS_VOLATILE: "isVolatile",
    ITERATOR_TYPES: "iterator_types",
    K: "k",
    KERNEL: "kernel",
    KEYS: "keys",
    KEY_DIMS: "key_dims",
    KIND: "kind",
    KNOWN_BLOCK_SIZE: "known_block_size",
    LANES: "lanes",
    LARGE: "large",
    LARGEST: "largest",
    LAYOUT_A: "layoutA",
    LAYOUT_B: "layoutB",
    LEADING: "leading",
    LEFT_ADDRESS: "left_address",
    LEFT_ALONG_DEPTH: "left_along_depth",
    LENGTHS: "lengths",
    LEVELS: "levels",
    LINKAGE: "linkage",
    MAP: "map",
    MASK: "mask",
    MASKED: "masked",
    MODE: "mode",
    MODIFIER: "modifier",
    MULTIPLICAND_APTX_TYPE: "multiplicandAPtxType",
    MULTIPLICAND_BPTX_TYPE: "multiplicandBPtxType",
    N: "n",
    NAME: "name",
    NAMES: "names",
    NEEDS: "needs",
    NEIGHBOURS: "neighbours",
    NO_INLINE: "no_inline",
    NO_WRAP_FLAGS: "noWrapFlags",
    NUMBER: "number",
    OBJECTS: "objects",
    OF: "of",
    OFFSET: "offset",
    ONTO: "onto",
    ON_CHIP: "on_chip",
    SCALE_A: "scaleA",
    SCALE_B: "scaleB",
    SCALE_D: "scaleD",
    SPACE: "space",
    TAKES: "takes",
    OPERAND_SEGMENT_SIZES: "operandSegmentSizes",
    OP_BUNDLE_SIZES: "op_bundle_sizes",
    ORDERING: "ordering",
    OVER: "over",
    PADDING: "padding",
    PANELS: "panels",
    PARAM: "param",
    PASSTHROUGH: "passthrough",
    PERMUTATION: "permutation",
    GRAIN: "grain",
    POSITION: "position",
    PREDICATE: "predicate",
    PRODUCTS: "products",
    RAW_CONSTANT_INDICES: "rawConstantIndices",
    REASSOCIATION: "reassociation",
    RELU: "relu",
    RES_ATTRS: "res_attrs",
    RESIDENT: "resident",
    REUSE: "reuse",
    RIGHT_ADDRESS: "right_address",
    RIGHT_ALONG_DEPTH: "right_along_depth",
    RISING: "rising",
    RND: "rnd",
    ROUNDED: "rounded",
    ROW: "row",
    ROWS: "rows",
    ROW_PRODUCTS: "row_products",
    RW: "rw",
    SAT: "sat",
    SAVED: "saved",
    SHAPE: "shape",
    SHARED: "shared",
    SIZE: "size",
    SMALL: "small",
    SOURCE: "source",
    SPLIT: "split",
    STATIC_OFFSETS: "static_offsets",
    STATIC_OUTPUT_SHAPE: "static_output_shape",
    STATIC_POSITION: "static_position",
    STATIC_SIZES: "static_sizes",
    STATIC_STRIDES: "static_strides",
    STORED: "stored",
    SYM_NAME: "sym_name",
    SYM_VISIBILITY: "sym_visibility",
    SYNCSCOPE: "syncscope",
    TEXT: "text",
    TILE: "tile",
    TYPE: "type",
    TYPE_A: "typeA",
    TYPE_B: "typeB",
    TYPE_D: "typeD",
    UNIT: "unit",
    UNTIL: "until",
    VALUE: "value",
    VALUES_ALONG_KEYS: "values_along_keys",
    VECTORS: "vectors",
    WARPGROUPS: "warpgroups",
    WEIGHTS: "weights",
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::Op;

    #[test]
    fn each_is_declared_by_an_operation() {
        let context = crate::new_context();
        let is_declared = |key: &Key<'_>| Op::ALL.iter().any(|kind| kind.declares(&context, *key));
        let others: Vec<_> = ALL.iter().filter(|key| !is_declared(key)).collect();
        // This is a property that has the name of an attribute in the IR's text only.
        assert_eq!(others, [&NO_WRAP_FLAGS]);
    }
}
