// The attributes of the `ragged` dialect: the shape encoding, and kinds of operands.

#ifndef COHORT_RAGGED_ATTRS_TD
#define COHORT_RAGGED_ATTRS_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/TensorEncoding.td"
include "ragged/RaggedDialect.td"

class Ragged_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<Ragged_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

def Ragged_DimAttr : Ragged_Attr<"Dim", "extent"> {
  let summary = "what a ragged shape says of one dim";
  let description = [{
    `_`, a dim without a name; `@batch`, a named dim of one length; or `@seq(@batch)`, a dim whose
    length depends on the index in the dims it lists. Then, each if there is anything to say:
    `max N`, no length is over N; `pad N`, every row's extent in storage is its length rounded up to
    a multiple of N; `bulk N`, the extents of all rows together are rounded up to a multiple of N.

    Written within a `#ragged.shape`; alone it looks like this:

    ```mlir
    #ragged.extent<@seq(@batch) max 512 pad 32>
    ```
  }];
  let parameters = (ins
    "::mlir::FlatSymbolRefAttr":$name,
    ArrayRefParameter<"::mlir::FlatSymbolRefAttr">:$outer,
    "int64_t":$max,
    "int64_t":$pad,
    "int64_t":$bulk
  );
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Whether the length differs from row to row.
    bool isRagged() const { return !getOuter().empty(); }
  }];
}

def Ragged_ShapeAttr : Ragged_Attr<"Shape", "shape", [
    DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let summary = "the encoding of a tensor some of whose dims are ragged";
  let description = [{
    One entry a dim of the tensor, separated by commas. An outer dim is the nearest one of its name
    before the entry.

    ```mlir
    // Sentences of words of 512 features; the batch and 8 heads; every word by every word.
    !Hidden = tensor<?x?x512xf32, #ragged.shape<@batch, @seq(@batch), _>>
    !Scores = tensor<?x8x?x?xf32, #ragged.shape<@batch, _, @seq(@batch), @seq(@batch)>>

    // A row of a triangle; words of sentences of documents.
    !Tri = tensor<?x?xf32, #ragged.shape<@row, @until(@row)>>
    !Text = tensor<?x?x?xf32, #ragged.shape<@doc, @sent(@doc), @word(@doc, @sent)>>

    // Every row padded to 32, the whole to 64, and no sentence has over 512 words.
    !Tiled = tensor<?x?x512xf32, #ragged.shape<@batch, @seq(@batch) max 512 pad 32 bulk 64, _>>
    ```

    Storage is row-major over the extents: `_` and named dims have one extent, a ragged dim that of
    the row, each rounded up to its padding. All dims up to the last ragged one are one dim of storage.
    The dims up to the last one on which another's length depends number its
    *rows*, which lie one after another, and where one starts is given by offsets of rows + 1 entries:
    a row of `!Hidden` is a sentence, one of `!Scores` all scores of a sentence, one
    of `!Text` a sentence of a document, so offsets never take more than the real sizes do. Within a row
    the dims behind have one extent each. This is also how IREE's ragged shapes are stored, which have one ragged dim
    and no padding: `#ragged.shape<@batch, @seq(@batch), _>` with its storage and offsets is IREE's
    cast of the storage to a ragged shape with the offsets as column lengths, and back.

    - `ragged_shape_c1`: there is one entry for each dim of the tensor.
    - `ragged_shape_c2`: the outer dims of an entry come before it.
    - `ragged_shape_c3`: a ragged dim is dynamic in the tensor's type.
    - `ragged_shape_c4`: `max`, `pad` and `bulk` are at least one, `pad` and `bulk` below 2^31.
    - `ragged_shape_c5`: `bulk` is said of a ragged dim only; no other has a total over rows.
    - `ragged_shape_c6`: the outer dims of an entry differ.
    - `ragged_shape_c7`: entries of one dim have the same outer dims and the same `max`.
    - `ragged_shape_c8`: a dim without a name is `_` and has no outer dims.
    - `ragged_shape_c9`: a static size is within the dim's `max`.
    - `ragged_shape_c10`: a static size, rounded up to its padding, is an integer of 64 bits.

    **Bad cases.** Upstream
    operations replace an unused `outs` that is not a `tensor.empty` by one without the encoding; let
    every `outs` of a `linalg` operation be a `tensor.empty` of the encoded type.
  }];
  let parameters = (ins ArrayRefParameter<"::cohort::ragged::DimAttr">:$dims);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The position of the last ragged dim, if there is one.
    std::optional<unsigned> getLastRagged() const;

    /// The ragged dims, each once, in the order in which they first appear.
    ::llvm::SmallVector<::cohort::ragged::DimAttr> getRaggedDims() const;
  }];
}

def Ragged_OperandKind : I32EnumAttr<"OperandKind", "how a kernel takes an operand", [
    I32EnumAttrCase<"row", 0>,
    I32EnumAttrCase<"list", 1>,
    I32EnumAttrCase<"scalar", 2>,
    I32EnumAttrCase<"length", 3>,
    I32EnumAttrCase<"expanded", 4>,
    I32EnumAttrCase<"stacked", 5>]> {
  let cppNamespace = "::cohort::ragged";
}

#endif // COHORT_RAGGED_ATTRS_TD
