// Loops over dims.

#ifndef COHORT_RAGGED_LOOP_OPS_TD
#define COHORT_RAGGED_LOOP_OPS_TD

include "ragged/RaggedOpBase.td"

def Ragged_IndexOrTable : AnyTypeOf<[Index, Ragged_Table], "index or table of integers">;

// What both loops say of themselves.
class Ragged_Loop<string mnemonic, list<Trait> traits>
    : Ragged_Op<mnemonic, !listconcat([
        AttrSizedOperandSegments, RecursiveMemoryEffects, SingleBlock,
        DeclareOpInterfaceMethods<SymbolUserOpInterface>], traits)> {
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Ragged_ForOp : Ragged_Loop<"for", [
    DeclareOpInterfaceMethods<LoopLikeOpInterface, [
      "getLoopInductionVars", "getInitsMutable", "getRegionIterArgs", "getYieldedValuesMutable",
      "getLoopResults"]>,
    DeclareOpInterfaceMethods<RegionBranchOpInterface, ["getEntrySuccessorOperands"]>]> {
  let summary = "a loop over a dim, in order";
  let description = [{
    After `in` the dim, with the row: an index for each of its outer dims. `to` gives the length: an
    index for a dim of one length, and for a ragged dim a table, whose entry of the row is read. A dim
    with a rule that names no other lengths needs none. `from` is where the loop begins, 0 by default.
    A loop over a dim of one length may run over a list instead, with `rows`.

    `pad` is loop padding: the number of iterations is rounded up to a multiple. What they read and
    write beyond the length must be there: storage padded at least as much.

    Requests are attributes of the loop; a pass that cannot grant one says so:

    - `fuse`: be one loop with the one nested in it (by the maps of `ragged.fuse`).
    - `split = 32`: be a loop over the aligned part and one over the tail (`ragged.split`).
    - `remap = #ragged.order<longest_first>`: run over rows in this order (`ragged.remap`).
    - `hfuse = "name"`: share a launch with the loops of this name in the block (`ragged.hfuse`).

    Constraints:

    - `ragged_for_c1`: the dim is declared.
    - `ragged_for_c2`: there is one index for each outer dim.
    - `ragged_for_c3`: a dim of one length has an index after `to`; a ragged dim a table of as many
      dims as it has outer dims.
    - `ragged_for_c4`: `to` is missing only where `rows` is given, or the dim has a rule that names no
      other dim.
    - `ragged_for_c5`: `from` has the type of `to`.
    - `ragged_for_c6`: `rows` is given for a dim of one length, without `from` and `to`.
    - `ragged_for_c7`: `pad` is at least one and below 2^31.
    - `ragged_for_c8`: the region takes the index and the carried values, and yields the next ones; the
      results have their types.
    - `ragged_for_c9`: `split` is at least two and below 2^31.
    - `ragged_for_c10`: with `fuse`, the body is one loop whose last outer index is this loop's.

    ```mlir
    %sum = ragged.for %s in @seq(%b) to %n : tensor<?xindex> iter_args(%acc = %zero) -> (f32) {
      %x = tensor.extract %v[%b, %s] : tensor<?x?xf32>
      %next = arith.addf %acc, %x : f32
      ragged.yield %next : f32
    }
    ragged.for %s in @seq(%b) from %main to %n : tensor<?xindex> pad 4 {
      …
    }
    ```
  }];
  let arguments = (ins
    FlatSymbolRefAttr:$dim,
    Variadic<Index>:$outer,
    Optional<Ragged_IndexOrTable>:$from,
    Optional<Ragged_IndexOrTable>:$to,
    Optional<Ragged_List>:$rows,
    Variadic<AnyType>:$inits,
    DefaultValuedAttr<I64Attr, "1">:$pad,
    UnitAttr:$fuse,
    OptionalAttr<I64Attr>:$split,
    OptionalAttr<Ragged_OrderAttr>:$remap,
    OptionalAttr<StrAttr>:$hfuse
  );
  let results = (outs Variadic<AnyType>:$results);
}

def Ragged_ForallOp : Ragged_Loop<"forall", [
    DeclareOpInterfaceMethods<LoopLikeOpInterface, ["getLoopInductionVars"]>]> {
  let summary = "a loop over a dim, in any order or at once";
  let description = [{
    As `ragged.for`, but iterations are independent, carry nothing and give nothing; they write where
    no other iteration reads or writes.

    - `ragged_forall_c1`: the dim is declared.
    - `ragged_forall_c2`: there is one index for each outer dim.
    - `ragged_forall_c3`: a dim of one length has an index after `to`; a ragged dim a table of as many
      dims as it has outer dims.
    - `ragged_forall_c4`: `to` is missing only where `rows` is given, or the dim has a rule that names
      no other dim.
    - `ragged_forall_c5`: `from` has the type of `to`.
    - `ragged_forall_c6`: `rows` is given for a dim of one length, without `from` and `to`.
    - `ragged_forall_c7`: `pad` is at least one and below 2^31.
    - `ragged_forall_c8`: the region takes the index and yields nothing.
    - `ragged_forall_c9`: `split` is at least two and below 2^31.
    - `ragged_forall_c10`: with `fuse`, the body is one loop whose last outer index is this loop's.

    ```mlir
    ragged.forall %b in @batch rows %order : tensor<?xindex> {
      ragged.forall %s in @seq(%b) to %n : tensor<?xindex> {
        memref.store %x, %out[%b, %s] : memref<?x?xf32>
      }
    }
    ```
  }];
  let arguments = (ins
    FlatSymbolRefAttr:$dim,
    Variadic<Index>:$outer,
    Optional<Ragged_IndexOrTable>:$from,
    Optional<Ragged_IndexOrTable>:$to,
    Optional<Ragged_List>:$rows,
    DefaultValuedAttr<I64Attr, "1">:$pad,
    UnitAttr:$fuse,
    OptionalAttr<I64Attr>:$split,
    OptionalAttr<Ragged_OrderAttr>:$remap,
    OptionalAttr<StrAttr>:$hfuse
  );
}

def Ragged_HfuseOp : Ragged_Op<"hfuse", [
    RecursiveMemoryEffects, SingleBlock, NoTerminator, NoRegionArguments]> {
  let summary = "independent loops in one launch";
  let description = [{
    Horizontal fusion: the parts run at once, in any order, and none reads what another writes. Where
    each alone would leave the device half empty, together they fill it.

    - `ragged_hfuse_c1`: there are at least two parts.
    - `ragged_hfuse_c2`: a part has at least one `ragged.forall`, and otherwise only what has no
      effects.

    ```mlir
    ragged.hfuse {
      ragged.forall %b in @batch rows %short : tensor<?xindex> { … }
    }, {
      ragged.forall %b in @batch rows %long : tensor<?xindex> { … }
    }
    ```
  }];
  let regions = (region VariadicRegion<SizedRegion<1>>:$parts);
  let assemblyFormat = "attr-dict-with-keyword $parts";
  let hasRegionVerifier = 1;
}

#endif // COHORT_RAGGED_LOOP_OPS_TD
