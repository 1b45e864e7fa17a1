// Level 2: kernels, and the control program that records calls of them.

#ifndef COHORT_CFB_BATCHED_OPS_TD
#define COHORT_CFB_BATCHED_OPS_TD

include "cfb/CfbOpBase.td"

def Cfb_KernelOp : Cfb_Op<"kernel", [
    IsolatedFromAbove, SingleBlock,
    DeclareOpInterfaceMethods<Symbol, ["canDiscardOnUseEmpty"]>]> {
  let summary = "a block over a leading batch dim";
  let description = [{
    The region's first argument is the number of rows; the others are the row operands, in the order
    of `cfb.record`'s, each a tensor with the batch as its first dim, or for each row a list of
    tensors. A kernel that nothing records is dropped by `symbol-dce`.

    - `cfb_kernel_c1`: the region's first argument is an `index`, the number of rows.
    - `cfb_kernel_c2`: its other arguments are tensors with a leading dynamic dim, or `!cfb.rows`.
    - `cfb_kernel_c3`: the region ends in a `cfb.yield` of tensors with a leading dynamic dim.
    - `cfb_kernel_c4`: `lengths` names dims, and the arguments after the number of rows are their
      lengths, `tensor<?xindex>`; no other argument is of such a type.
    - `cfb_kernel_c5`: with `lengths` goes `unit`; without, neither `unit` nor
      `rows` nor `takes`.
    - `cfb_kernel_c6`: `rows` has dims of `lengths` and numbers of at least one.
    - `cfb_kernel_c7`: where the unit is `rows`, `takes` says of each argument after the lengths that it
      is `ragged`, a `row`, a `scalar`, a `list` or `stacked`.

    ```mlir
    cfb.kernel @double {
    ^bb0(%rows: index, %x: tensor<?x28xf32>):
      %y = arith.addf %x, %x : tensor<?x28xf32>
      cfb.yield %y : tensor<?x28xf32>
    }
    ```

    `source` is the name of what it computes in the program, for reports.

    A call on tensors whose lengths differ adds as many rows as the product of `rows` is. `unit` says what
    the region is about: single rows, `rows`, for which an operand is expanded (`ragged`) or repeated for
    all rows of its call (`row`); or whole `calls`, whose arguments have their shapes as encodings.

    ```mlir
    cfb.kernel @scale attributes {lengths = [@n0], rows = [@n0], takes = [#cfb<takes ragged>, #cfb<takes row>], unit = #cfb<unit rows>} {
    ^bb0(%rows: index, %n: tensor<?xindex>, %x: tensor<?x28xf32>, %g: tensor<?x28xf32>):
      %y = arith.mulf %x, %g : tensor<?x28xf32>
      cfb.yield %y : tensor<?x28xf32>
    }
    ```
  }];
  let arguments = (ins
    SymbolNameAttr:$sym_name,
    OptionalAttr<ArrayAttr>:$lengths,
    OptionalAttr<Cfb_KernelUnitAttr>:$unit,
    OptionalAttr<ArrayAttr>:$rows,
    OptionalAttr<Cfb_TakesArrayAttr>:$takes,
    OptionalAttr<StrAttr>:$source
  );
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name attr-dict-with-keyword $body";
  let hasRegionVerifier = 1;
}

def Cfb_RecordOp : Cfb_Op<"record", [
    Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "records one row of a kernel call";
  let description = [{
    The operands are what the row reads: lazy handles, arrays of them where the kernel takes a list,
    or scalars known to the control program. An array is read when the call is recorded. The
    results are handles of what the kernel will have computed for the row.

    - `cfb_record_c1`: the symbol is a `cfb.kernel`, or carries the attribute `cfb.kernel` that the
      lowering of kernels leaves; the latter is not checked further.
    - `cfb_record_c2`: there are as many operands as the kernel has row operands.
    - `cfb_record_c3`: an operand is a lazy handle of the row operand without its batch dim, a
      scalar of its element type, or an array of lazy handles of what `!cfb.rows` holds. Where the
      kernel's unit is the row, a ragged operand has the dims of `rows` in front, and a stacked one
      is an array of handles.
    - `cfb_record_c4`: the results are lazy handles of what the kernel yields, without the batch dim;
      where its unit is the row, with the dims of `rows` in front.
    - `cfb_record_c5`: an operand is a lazy handle, a scalar, a length or an array of lazy handles.

    ```mlir
    %h = cfb.record @cell_0(%x, %s) : (!cfb.lazy<tensor<13xf32>>, f32) -> !cfb.lazy<tensor<28xf32>>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<AnyType>:$inputs);
  let results = (outs Variadic<Cfb_LazyType>:$results);
  let assemblyFormat = [{
    $kernel `(` $inputs `)` attr-dict `:` functional-type($inputs, $results)
  }];
  let hasVerifier = 1;
}

def Cfb_ParamOp : Cfb_Op<"param", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "a whole parameter as a value of the control program";
  let description = [{
    - `cfb_param_c1`: the symbol is an `ml_program.global`.
    - `cfb_param_c2`: the result is a lazy handle of the global's type.

    ```mlir
    %h = cfb.param @hf : !cfb.lazy<tensor<28xf32>>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$param);
  let results = (outs Cfb_LazyType:$result);
  let assemblyFormat = "$param attr-dict `:` qualified(type($result))";
}

def Cfb_ParamRowOp : Cfb_Op<"param_row", [
    Cfb_MayFail, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "one row of a parameter as a value of the control program";
  let description = [{
    Ends the instance with an error when the index is out of bounds.

    - `cfb_param_row_c1`: the symbol is an `ml_program.global` of at least one dim.
    - `cfb_param_row_c2`: the result is a lazy handle of the global's type without its first dim.

    ```mlir
    %x = cfb.param_row @emb[%w] : !cfb.lazy<tensor<13xf32>>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$param, I32:$index);
  let results = (outs Cfb_LazyType:$result);
  let assemblyFormat = "$param `[` $index `]` attr-dict `:` qualified(type($result))";
}

def Cfb_DimOp : Cfb_Op<"dim", [Pure]> {
  let summary = "the length of a dim of a lazy tensor";
  let description = [{
    Known before the tensor is computed.

    - `cfb_dim_c1`: the tensor has the dim, and it is dynamic.

    ```mlir
    %n = cfb.dim %x, 0 : !cfb.lazy<tensor<?x13xf32>>
    ```
  }];
  let arguments = (ins Cfb_LazyType:$value, I64Attr:$axis);
  let results = (outs Index:$result);
  let assemblyFormat = "$value `,` $axis attr-dict `:` qualified(type($value))";
  let hasVerifier = 1;
}

def Cfb_RowOp : Cfb_Op<"row", [Cfb_MayFail]> {
  let summary = "one slice of the first dim of a lazy tensor";
  let description = [{
    A handle of rows that will be computed with the others, so it costs nothing. Ends the instance
    with an error when the index is out of bounds.

    - `cfb_row_c1`: the tensor's first dim is dynamic.
    - `cfb_row_c2`: the result is a handle of the tensor's type without its first dim.

    ```mlir
    %y = cfb.row %x[%i] : !cfb.lazy<tensor<?x13xf32>> -> !cfb.lazy<tensor<13xf32>>
    ```
  }];
  let arguments = (ins Cfb_LazyType:$value, I32:$index);
  let results = (outs Cfb_LazyType:$result);
  let assemblyFormat = [{
    $value `[` $index `]` attr-dict `:` qualified(type($value)) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

def Cfb_ConstantOp : Cfb_Op<"constant", [Pure]> {
  let summary = "a constant tensor as a value of the control program";
  let description = [{
    - `cfb_constant_c1`: the result is a lazy handle of the value's type.

    ```mlir
    %z = cfb.constant dense<0.0> : tensor<28xf32> -> !cfb.lazy<tensor<28xf32>>
    ```
  }];
  let arguments = (ins ElementsAttr:$value);
  let results = (outs Cfb_LazyType:$result);
  let assemblyFormat = "$value attr-dict `->` qualified(type($result))";
  let hasVerifier = 1;
}

def Cfb_PhaseOp : Cfb_Op<"phase"> {
  let summary = "the start of the program's next phase";
  let description = [{
    Kernel calls recorded after it run after those recorded before it, whatever their depths.

    - `cfb_phase_c1`: the number is at least one; phase 0 needs no mark.

    ```mlir
    cfb.phase 1
    ```
  }];
  let arguments = (ins I64Attr:$number);
  let assemblyFormat = "$number attr-dict";
  let hasVerifier = 1;
}

def Cfb_GhostOp : Cfb_Op<"ghost", [Pure, SameOperandsAndResultType]> {
  let summary = "a handle made to look deeper than it is";
  let description = [{
    Delays what reads the handle by `levels` depths, so that it can join a later, larger batch.

    - `cfb_ghost_c1`: `levels` is at least one.

    ```mlir
    %h2 = cfb.ghost %h {levels = 1} : !cfb.lazy<tensor<28xf32>>
    ```
  }];
  let arguments = (ins Cfb_LazyType:$value, I64Attr:$levels);
  let results = (outs Cfb_LazyType:$result);
  let assemblyFormat = "$value attr-dict `:` qualified(type($value))";
  let hasVerifier = 1;
}

def Cfb_SameOp : Cfb_Op<"same", [Pure, SameTypeOperands]> {
  let summary = "whether two handles are the same";
  let description = [{
    Of handles that exist before anything runs, those of constants and of parameters, this tells whether the
    other is one: of two equal ones, by `cfb.constant` or `cfb.param`, the handle is the same. It never
    looks at what was computed, so it does not depend on the batch.

    ```mlir
    %z = cfb.constant dense<0.0> : tensor<28xf32> -> !cfb.lazy<tensor<28xf32>>
    %is_first = cfb.same %h, %z : !cfb.lazy<tensor<28xf32>>
    ```
  }];
  let arguments = (ins Cfb_LazyType:$left, Cfb_LazyType:$right);
  let results = (outs I1:$result);
  let assemblyFormat = "$left `,` $right attr-dict `:` qualified(type($left))";
}

def Cfb_ForkOp : Cfb_Op<"fork", [RecursiveMemoryEffects, SingleBlock]> {
  let summary = "strands of the control program that wait side by side";
  let description = [{
    The regions, *strands*, may each wait for a decision. They may run in any order and by turns; what comes
    after the operation runs when all of them have ended. The results are what the strands hand over, first to
    last. An error of an instance is the one that it meets first when they run one after another.

    A strand may need what earlier ones hand over. It has an argument for each such result, whose number is in
    `needs`, first strand to last, and begins when the strands that hand them over have ended.

    - `cfb_fork_c1`: there are at least two strands.
    - `cfb_fork_c2`: a strand ends in a `cfb.join`.
    - `cfb_fork_c3`: the results' types are those of the joined values, first strand to last.
    - `cfb_fork_c4`: `needs` has the number of a result for each argument of a strand, of its type and of an
      earlier strand.

    ```mlir
    %a, %b = cfb.fork -> (i1, i1) ({
      %p = cfb.force %x : !cfb.lazy<tensor<i1>> -> i1
      cfb.join %p : i1
    }, {
      %q = func.call @settled(%y) : (!cfb.lazy<tensor<8xf32>>) -> i1
      cfb.join %q : i1
    })
    ```

    Here the third needs the first, and not the second:

    ```mlir
    %a, %b, %c = cfb.fork {needs = array<i64: 0>} -> (i1, i1, i1) ({
      %p = func.call @settled(%x) : (!cfb.lazy<tensor<8xf32>>) -> i1
      cfb.join %p : i1
    }, {
      %q = func.call @settled(%y) : (!cfb.lazy<tensor<8xf32>>) -> i1
      cfb.join %q : i1
    }, {
    ^bb0(%p: i1):
      %r = func.call @go_on(%p) : (i1) -> i1
      cfb.join %r : i1
    })
    ```

    The elements of a `cfb.map` are strands where it has the attribute `cfb.fork`.
  }];
  let arguments = (ins OptionalAttr<DenseI64ArrayAttr>:$needs);
  let results = (outs Variadic<AnyType>:$results);
  let regions = (region VariadicRegion<SizedRegion<1>>:$strands);
  let assemblyFormat = "attr-dict `->` custom<TypeList>(type($results)) ` ` `(` $strands `)`";
  let hasVerifier = 1;
}

def Cfb_JoinOp : Cfb_Op<"join", [Pure, Terminator, ReturnLike, HasParent<"ForkOp">]> {
  let summary = "ends a strand with its values";
  let description = [{
    ```mlir
    cfb.join %h, %c : !cfb.lazy<tensor<28xf32>>, i1
    ```
  }];
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
}

#endif // COHORT_CFB_BATCHED_OPS_TD
