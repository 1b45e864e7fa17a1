// Declaring dims, and computing what loops over them read.

#ifndef COHORT_RAGGED_PRELUDE_OPS_TD
#define COHORT_RAGGED_PRELUDE_OPS_TD

include "ragged/RaggedOpBase.td"

def Ragged_DimOp : Ragged_Op<"dim", [
    DeclareOpInterfaceMethods<Symbol, ["canDiscardOnUseEmpty"]>,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "declares a dim and what its length depends on";
  let description = [{
    A dim without outer dims has one length. A dim with outer dims has one for each row of them: read
    from a table that the program provides, or computed by the rule after `lengths`. The rule's dims
    are the indices in the outer dims, its symbols the lengths of the dims listed after `of`, in the
    same row. `max` bounds every length.

    - `ragged_dim_c1`: the outer dims are declared.
    - `ragged_dim_c2`: the outer dims differ.
    - `ragged_dim_c3`: where lengths are read from a table, each outer dim comes after its own outer
      dims.
    - `ragged_dim_c4`: the rule gives one length and takes one index for each outer dim.
    - `ragged_dim_c5`: the rule takes one symbol for each dim listed after `of`.
    - `ragged_dim_c6`: a dim listed after `of` is declared, and its outer dims are among this one's.
    - `ragged_dim_c7`: no dim depends on itself.
    - `ragged_dim_c8`: `max` is at least one.
    - `ragged_dim_c9`: the rule divides by positive constants only.
    - `ragged_dim_c10`: the name is not empty.

    ```mlir
    ragged.dim @batch
    ragged.dim @seq(@batch) max 512
    ragged.dim @until(@seq) lengths (i) -> (i + 1)
    ragged.dim @pairs(@batch) lengths (b)[n, m] -> (n * m) of [@seq, @seq]
    ```
  }];
  let arguments = (ins
    SymbolNameAttr:$sym_name,
    OptionalAttr<FlatSymbolRefArrayAttr>:$outer,
    OptionalAttr<AffineMapAttr>:$rule,
    OptionalAttr<FlatSymbolRefArrayAttr>:$factors,
    OptionalAttr<I64Attr>:$max
  );
  let assemblyFormat = [{
    custom<Declared>($sym_name, $outer) (`lengths` custom<Rule>($rule)^ (`of` $factors^)?)? (`max` $max^)?
    attr-dict
  }];
  let hasVerifier = 1;
}

def Ragged_PreludeOp : Ragged_Op<"prelude", [
    IsolatedFromAbove, RecursiveMemoryEffects, RecursivelySpeculatable, SingleBlock]> {
  let summary = "computes what loops over ragged dims read, once a batch";
  let description = [{
    Takes lengths, gives offsets, maps and lists. It has no effects and sees no values of the model,
    so equal preludes are one, and one in a loop moves out of it. It needs no device: it can run
    before anything is launched, on what is known once the batch is.

    - `ragged_prelude_c1`: the region's arguments have the operands' types.
    - `ragged_prelude_c2`: the region ends in a `ragged.yield` of the results' types.
    - `ragged_prelude_c3`: operands and results are integers or tensors of integers.
    - `ragged_prelude_c4`: what is in it has no memory effects.

    ```mlir
    %o, %b, %s = ragged.prelude(%n) : (tensor<?xindex>)
        -> (tensor<?xindex>, tensor<?xindex>, tensor<?xindex>) {
    ^bb0(%lengths: tensor<?xindex>):
      %offsets = ragged.offsets @seq(%lengths) : tensor<?xindex> -> tensor<?xindex>
      %outer, %inner = ragged.fuse @seq(%offsets) : tensor<?xindex> -> tensor<?xindex>
      ragged.yield %offsets, %outer, %inner : tensor<?xindex>, tensor<?xindex>, tensor<?xindex>
    }
    ```
  }];
  let arguments = (ins Variadic<AnyType>:$inputs);
  let results = (outs Variadic<AnyType>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    `(` $inputs `)` `:` functional-type($inputs, $results) attr-dict-with-keyword $body
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Ragged_YieldOp : Ragged_Op<"yield", [Pure, ReturnLike, Terminator]> {
  let summary = "ends the region of a prelude, of a loop or of a stage";
  let description = [{
    - `ragged_yield_c1`: it is in a `ragged.prelude`, a `ragged.for`, a `ragged.forall` or a stage of a
      `ragged.kernel`.

    ```mlir
    ragged.yield %sum : f32
    ```
  }];
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
  let builders = [OpBuilder<(ins), [{ /* Yields nothing. */ }]>];
  let hasVerifier = 1;
}

def Ragged_LengthsOp : Ragged_Op<"lengths", [
    Pure, AttrSizedOperandSegments, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "the lengths of a dim that has a rule";
  let description = [{
    Applies the rule to every row: the tables after `at` give each row's index in the outer dims,
    those after `of` the lengths of the dims that the rule names. All have the same entries' order.

    - `ragged_lengths_c1`: the dim is declared and has a rule.
    - `ragged_lengths_c2`: there is one table after `at` for each outer dim; none is needed where the
      rule reads no index.
    - `ragged_lengths_c3`: there is one table after `of` for each dim that the rule names.
    - `ragged_lengths_c4`: all tables have the result's type.
    - `ragged_lengths_c5`: there is at least one table, which says how many rows there are.

    ```mlir
    %t = ragged.lengths @until at(%inner) : (tensor<?xindex>) -> tensor<?xindex>
    %p = ragged.lengths @pairs of(%n, %n) : (tensor<?xindex>, tensor<?xindex>) -> tensor<?xindex>
    ```
  }];
  let arguments = (ins
    FlatSymbolRefAttr:$dim,
    Variadic<Ragged_Table>:$indices,
    Variadic<Ragged_Table>:$factors
  );
  let results = (outs Ragged_Table:$result);
  let assemblyFormat = [{
    $dim (`at` `(` $indices^ `)`)? (`of` `(` $factors^ `)`)? attr-dict
    `:` functional-type(operands, $result)
  }];
  let hasVerifier = 1;
}

def Ragged_OffsetsOp : Ragged_Op<"offsets", [
    Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "where each row of a ragged dim starts in storage";
  let description = [{
    Sums the extents of the rows before each row; the last entry is the sum of all. `pad` rounds every
    row's extent up to a multiple, `bulk` the total. There is one entry more than there are rows, none
    of them included: no rows have the one offset 0. Rows of several outer dims are the entries of the
    table of lengths, counted in their order in storage; where the table itself is padded, its padding
    counts, with the lengths that stand there.

    - `ragged_offsets_c1`: the dim is declared and ragged.
    - `ragged_offsets_c2`: the lengths have one dim for each outer dim.
    - `ragged_offsets_c3`: the result has one dim, of one entry more than there are rows where that is
      static, and the lengths' element type.
    - `ragged_offsets_c4`: `pad` and `bulk` are at least one and below 2^31.
    - `ragged_offsets_c5`: where an outer dim is ragged, the lengths' type says so.

    ```mlir
    // Lengths 3, 0, 5: offsets 0, 4, 4, 12 with `pad 4`, and 0, 4, 4, 16 with `bulk 16`.
    %o = ragged.offsets @seq(%n) pad 4 bulk 16 : tensor<?xindex> -> tensor<?xindex>
    ```
  }];
  let arguments = (ins
    FlatSymbolRefAttr:$dim,
    Ragged_Table:$lengths,
    DefaultValuedAttr<I64Attr, "1">:$pad,
    DefaultValuedAttr<I64Attr, "1">:$bulk
  );
  let results = (outs Ragged_List:$result);
  let assemblyFormat = [{
    $dim `(` $lengths `)` (`pad` $pad^)? (`bulk` $bulk^)? attr-dict
    `:` type($lengths) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Ragged_FuseOp : Ragged_Op<"fuse", [
    Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "the maps of one loop over all rows of a ragged dim";
  let description = [{
    A loop over the outer dims and the loop over the ragged dim within it become one loop over all
    entries, from 0 to the last offset. The maps give back, for each of its iterations, the row (of
    several outer dims: their row in order of storage) and the index in the row. They have as many
    entries as there really are: memory grows with the data, not with the longest row. Where offsets
    are padded, so is the fused loop; what lies behind a row's length belongs to that row, and what
    `bulk` adds to the last one.

    - `ragged_fuse_c1`: the dim is declared and ragged.
    - `ragged_fuse_c2`: a map has one dynamic dim and the offsets' element type.

    ```mlir
    // Offsets 0, 3, 3, 5: rows 0, 0, 0, 2, 2 and indices 0, 1, 2, 0, 1.
    %row, %index = ragged.fuse @seq(%o) : tensor<?xindex> -> tensor<?xindex>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$dim, Ragged_List:$offsets);
  let results = (outs Ragged_List:$outer, Ragged_List:$inner);
  let assemblyFormat = [{
    $dim `(` $offsets `)` attr-dict `:` type($offsets) `->` custom<SameTypes>(type($outer), type($inner))
  }];
  let hasVerifier = 1;
}

def Ragged_SplitOp : Ragged_Op<"split", [
    Pure, AllTypesMatch<["lengths", "main", "tail"]>]> {
  let summary = "the aligned part of each row, and the rest";
  let description = [{
    The first result is each length rounded down to a multiple, the second what remains. A loop to the
    first needs no bounds check in tiles of that size; a loop from the first does the rest.

    - `ragged_split_c1`: the multiple is at least two and below 2^31.

    ```mlir
    // Lengths 3, 0, 70 by 32: 0, 0, 64 and 3, 0, 6.
    %main, %tail = ragged.split %n by 32 : tensor<?xindex>
    ```
  }];
  let arguments = (ins Ragged_Table:$lengths, I64Attr:$multiple);
  let results = (outs Ragged_Table:$main, Ragged_Table:$tail);
  let assemblyFormat = "$lengths `by` $multiple attr-dict `:` type($lengths)";
  let hasVerifier = 1;
}

def Ragged_RemapOp : Ragged_Op<"remap", [Pure, AllTypesMatch<["lengths", "rows"]>]> {
  let summary = "an order of rows that balances what threads do";
  let description = [{
    A list of all rows. `longest_first` lets the last thread to finish finish early; rows of one
    length keep their order. What a row computes does not depend on the order.

    ```mlir
    %rows = ragged.remap %n longest_first : tensor<?xindex>
    ```
  }];
  let arguments = (ins Ragged_List:$lengths, Ragged_OrderAttr:$order);
  let results = (outs Ragged_List:$rows);
  let assemblyFormat = "$lengths custom<OrderOfRows>($order) attr-dict `:` type($lengths)";
}

def Ragged_PartitionOp : Ragged_Op<"partition", [Pure]> {
  let summary = "the rows by classes of length";
  let description = [{
    With bounds `[16, 64]`, the first list has the rows of lengths up to 16, the second those over 16
    and up to 64, the third the others. Each is in rising order; together they have every row once.

    - `ragged_partition_c1`: there is at least one bound, and the bounds rise.
    - `ragged_partition_c2`: there is one list more than there are bounds.
    - `ragged_partition_c3`: a list has one dynamic dim and the lengths' element type.

    ```mlir
    %short, %long = ragged.partition %n at [64] : tensor<?xindex> -> tensor<?xindex>, tensor<?xindex>
    ```
  }];
  let arguments = (ins Ragged_List:$lengths, DenseI64ArrayAttr:$bounds);
  let results = (outs Variadic<Ragged_List>:$parts);
  let assemblyFormat = "$lengths `at` $bounds attr-dict `:` type($lengths) `->` type($parts)";
  let hasVerifier = 1;
}

def Ragged_MergeOp : Ragged_Op<"merge", [Pure]> {
  let summary = "the rows of several lists, in rising order";
  let description = [{
    The inverse of `ragged.partition`: the lists rise and have no row in common. Merging one list is
    that list.

    - `ragged_merge_c1`: there is at least one list.
    - `ragged_merge_c2`: the lists and the result have the same element type.
    - `ragged_merge_c3`: the result is dynamic, unless it is as long as the lists together.

    ```mlir
    %rows = ragged.merge %short, %long : tensor<?xindex>, tensor<?xindex> -> tensor<?xindex>
    ```
  }];
  let arguments = (ins Variadic<Ragged_List>:$parts);
  let results = (outs Ragged_List:$rows);
  let assemblyFormat = "$parts attr-dict `:` type($parts) `->` type($rows)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

#endif // COHORT_RAGGED_PRELUDE_OPS_TD
