// Between dense tensors, instances, storage, and ragged tensors.

#ifndef COHORT_RAGGED_STORAGE_OPS_TD
#define COHORT_RAGGED_STORAGE_OPS_TD

include "ragged/RaggedOpBase.td"

def Ragged_FromStorageOp : Ragged_Op<"from_storage", [
    Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "storage seen as a ragged tensor";
  let description = [{
    Moves nothing. All dims up to the last ragged one are the first dim of storage; the others stay,
    with their padding. There is one table of lengths for each ragged dim of the shape, in the order in
    which they first appear, and the offsets of its rows (see `#ragged.shape`), padded as the shape says.

    - `ragged_from_storage_c1`: the dims of the result's shape are declared as it says.
    - `ragged_from_storage_c2`: the result is ragged.
    - `ragged_from_storage_c3`: the storage has one dynamic dim for all up to the last ragged one, then
      the dims behind it, and the same element type; it has no encoding.
    - `ragged_from_storage_c4`: there is one table of lengths for each ragged dim, of one dim for each of its
      outer dims; the type of one over several dims says which of them are ragged.

    ```mlir
    %x = ragged.from_storage %rows lengths(%n) offsets(%o)
        : tensor<?x512xf32>, (tensor<?xindex>), tensor<?xindex>
        -> tensor<?x?x512xf32, #ragged.shape<@batch, @seq(@batch), _>>
    ```
  }];
  let arguments = (ins
    AnyRankedTensor:$storage,
    Variadic<Ragged_Table>:$lengths,
    Ragged_List:$offsets
  );
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $storage `lengths` `(` $lengths `)` `offsets` `(` $offsets `)` attr-dict
    `:` type($storage) `,` `(` type($lengths) `)` `,` type($offsets) `->` type($result)
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Ragged_ToStorageOp : Ragged_Op<"to_storage", [
    Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "a ragged tensor seen as its storage";
  let description = [{
    Moves nothing. The rows of all instances, one after another, with their padding: what is done to
    every row alike is done to this as to one dense matrix.

    - `ragged_to_storage_c1`: the dims of the source's shape are declared as it says.
    - `ragged_to_storage_c2`: the source is ragged.
    - `ragged_to_storage_c3`: the storage has one dynamic dim for all up to the last ragged one, then
      the dims behind it, and the same element type; it has no encoding.

    ```mlir
    %rows = ragged.to_storage %x
        : tensor<?x?x512xf32, #ragged.shape<@batch, @seq(@batch), _>> -> tensor<?x512xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$source);
  let results = (outs AnyRankedTensor:$storage);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($storage)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Ragged_PackOp : Ragged_Op<"pack", [
    Pure, AttrSizedOperandSegments, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "a dense padded tensor, or rows that lie anywhere, as a ragged tensor";
  let description = [{
    Copies what is within the lengths. The source is a dense tensor of the result's rank; or, with
    `starts`, a space in which instances have consecutive rows, and `starts` says where each
    instance's begin. `into` gives the storage and what the padding holds.

    - `ragged_pack_c1`: the dims of the result's shape are declared as it says.
    - `ragged_pack_c2`: the result is ragged.
    - `ragged_pack_c3`: the result has the destination's type.
    - `ragged_pack_c4`: without `starts`, the source has the result's rank and element type, dims that
      agree with its, and no encoding.
    - `ragged_pack_c5`: with `starts`, the source is of the type of the result's storage.
    - `ragged_pack_c6`: there is one table of lengths for each ragged dim, of one dim for each of its
      outer dims; the type of one over several dims says which of them are ragged.

    ```mlir
    %x = ragged.pack %dense lengths(%n) into(%e)
        : tensor<?x?x512xf32>, (tensor<?xindex>)
        -> tensor<?x?x512xf32, #ragged.shape<@batch, @seq(@batch), _>>
    %y = ragged.pack %space starts(%s) lengths(%n) into(%e)
        : tensor<?x512xf32>, (tensor<?xindex>), tensor<?xindex>
        -> tensor<?x?x512xf32, #ragged.shape<@batch, @seq(@batch), _>>
    ```
  }];
  let arguments = (ins
    AnyRankedTensor:$source,
    Optional<Ragged_List>:$starts,
    Variadic<Ragged_Table>:$lengths,
    AnyRankedTensor:$destination
  );
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $source (`starts` `(` $starts^ `)`)? `lengths` `(` $lengths `)` `into` `(` $destination `)`
    attr-dict `:` type($source) `,` `(` type($lengths) `)` (`,` type($starts)^)?
    `->` custom<SameTypes>(type($destination), type($result))
  }];
  let hasVerifier = 1;
}

def Ragged_UnpackOp : Ragged_Op<"unpack", [
    Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "a ragged tensor as a dense padded one";
  let description = [{
    Copies what is within the lengths into a dense tensor, which says how large the result is and what
    the padding holds.

    - `ragged_unpack_c1`: the dims of the source's shape are declared as it says.
    - `ragged_unpack_c2`: the source is ragged.
    - `ragged_unpack_c3`: the result has the destination's type: the source's rank and element type,
      dims that agree with its, and no encoding.
    - `ragged_unpack_c4`: there is one table of lengths for each ragged dim, of one dim for each of its
      outer dims; the type of one over several dims says which of them are ragged.

    ```mlir
    %dense = ragged.unpack %x lengths(%n) into(%zeros)
        : tensor<?x?x512xf32, #ragged.shape<@batch, @seq(@batch), _>>, (tensor<?xindex>)
        -> tensor<?x?x512xf32>
    ```
  }];
  let arguments = (ins
    AnyRankedTensor:$source,
    Variadic<Ragged_Table>:$lengths,
    AnyRankedTensor:$destination
  );
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $source `lengths` `(` $lengths `)` `into` `(` $destination `)` attr-dict
    `:` type($source) `,` `(` type($lengths) `)`
    `->` custom<SameTypes>(type($destination), type($result))
  }];
  let hasVerifier = 1;
}

#endif // COHORT_RAGGED_STORAGE_OPS_TD
