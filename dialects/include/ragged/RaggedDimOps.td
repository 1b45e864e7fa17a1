// Declaring dims, and what ends a region.

#ifndef COHORT_RAGGED_DIM_OPS_TD
#define COHORT_RAGGED_DIM_OPS_TD

include "ragged/RaggedOpBase.td"

def Ragged_DimOp : Ragged_Op<"dim", [
    DeclareOpInterfaceMethods<Symbol, ["canDiscardOnUseEmpty"]>,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "declares a dim and what its length depends on";
  let description = [{
    A dim without outer dims has one length. A dim with outer dims has one for each row of them. `max`
    bounds every length.

    - `ragged_dim_c1`: the outer dims are declared.
    - `ragged_dim_c2`: the outer dims differ.
    - `ragged_dim_c3`: each outer dim comes after its own outer dims, so that no dim depends on itself.
    - `ragged_dim_c4`: `max` is at least one.
    - `ragged_dim_c5`: the name is not empty.

    ```mlir
    ragged.dim @batch
    ragged.dim @seq(@batch) max 512
    ragged.dim @word(@batch, @seq)
    ```
  }];
  let arguments = (ins
    SymbolNameAttr:$sym_name,
    OptionalAttr<FlatSymbolRefArrayAttr>:$outer,
    OptionalAttr<I64Attr>:$max
  );
  let assemblyFormat = [{
    custom<Declared>($sym_name, $outer) (`max` $max^)? attr-dict
  }];
  let hasVerifier = 1;
}

def Ragged_YieldOp : Ragged_Op<"yield", [Pure, ReturnLike, Terminator]> {
  let summary = "ends the region of a stage";
  let description = [{
    - `ragged_yield_c1`: it is in a stage of a `ragged.kernel`.

    ```mlir
    ragged.yield %sum : f32
    ```
  }];
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
  let builders = [OpBuilder<(ins), [{ /* Yields nothing. */ }]>];
  let hasVerifier = 1;
}

#endif // COHORT_RAGGED_DIM_OPS_TD
