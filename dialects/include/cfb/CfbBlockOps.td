// Level 1: static blocks.

#ifndef COHORT_CFB_BLOCK_OPS_TD
#define COHORT_CFB_BLOCK_OPS_TD

include "cfb/CfbOpBase.td"

def Cfb_BlockOp : Cfb_Op<"block", [
    IsolatedFromAbove, RecursiveMemoryEffects, RecursivelySpeculatable, SingleBlock]> {
  let summary = "tensor operations that are scheduled as one";
  let description = [{
    The unit of scheduling: everything in it runs together, and calls of it from different instances
    or places can run as one batch. `reuse` says of each operand whether every call sees the same
    value (`shared`) or each its own (`row`).

    - `cfb_block_c1`: the operands are tensors, scalars or arrays of tensors.
    - `cfb_block_c2`: the region's arguments have the operands' types.
    - `cfb_block_c3`: the region ends in a `cfb.yield` of the results' types.
    - `cfb_block_c4`: the results are tensors.
    - `cfb_block_c5`: `reuse` has one entry for each operand.
    - `cfb_block_c6`: `lengths` names dims, whose lengths are the first operands, `index` values; no
      other operand is one.
    - `cfb_block_c7`: with `lengths` go `unit`, `rows` and `leading`, which has
      a list for each operand after the lengths; without, none of them.
    - `cfb_block_c8`: `rows` and the lists in `leading` have dims of `lengths` and numbers of at least
      one.

    Of a block with instance dims, `leading` says which dims each operand has, up to the last
    instance dim, and `rows` the same of the results. The block's `unit` is `rows` where each row of
    these dims is computed from the same row of the operands, or from what there is once. The last
    `saved` results are what its backward takes of it, and nothing of the program uses them. `gradients` names
    the functions that are its backward: one, or two of which the second takes some cotangents in two parts.

    ```mlir
    %y = cfb.block "cell"(%x, %w) : (tensor<28xf32>, tensor<28x3xf32>) -> tensor<3xf32>
        attributes {reuse = [#cfb<reuse row>, #cfb<reuse shared>]} {
    ^bb0(%a: tensor<28xf32>, %b: tensor<28x3xf32>):
      …
      cfb.yield %p : tensor<3xf32>
    }
    %z = cfb.block "add"(%n, %x, %b) : (index, tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
        attributes {leading = [[@n0], [@n0]], lengths = [@n0], rows = [@n0], unit = #cfb<unit rows>} {
    ^bb0(%l: index, %a: tensor<?x3xf32>, %c: tensor<?x3xf32>):
      %s = arith.addf %a, %c : tensor<?x3xf32>
      cfb.yield %s : tensor<?x3xf32>
    }
    ```
  }];
  let arguments = (ins
    StrAttr:$name,
    OptionalAttr<Cfb_ReuseArrayAttr>:$reuse,
    OptionalAttr<ArrayAttr>:$lengths,
    OptionalAttr<Cfb_KernelUnitAttr>:$unit,
    OptionalAttr<ArrayAttr>:$rows,
    OptionalAttr<ArrayAttr>:$leading,
    OptionalAttr<I64Attr>:$saved,
    OptionalAttr<StrArrayAttr>:$gradients,
    Variadic<AnyType>:$inputs
  );
  let results = (outs Variadic<AnyType>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $name `(` $inputs `)` `:` functional-type($inputs, $results) attr-dict-with-keyword $body
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

#endif // COHORT_CFB_BLOCK_OPS_TD
