// Level 0: algebraic data types and decisions.

#ifndef COHORT_CFB_STRUCTURE_OPS_TD
#define COHORT_CFB_STRUCTURE_OPS_TD

include "cfb/CfbOpBase.td"

def Cfb_AdtOp : Cfb_Op<"adt", [
    DeclareOpInterfaceMethods<Symbol, ["canDiscardOnUseEmpty"]>,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "declares an algebraic data type";
  let description = [{
    `constructors` names the constructors in the order of their tags; `fields` gives the types of
    each one's fields, before flattening.

    - `cfb_adt_c1`: there is one list of fields for each constructor.
    - `cfb_adt_c2`: there is at least one constructor.
    - `cfb_adt_c3`: the names of the constructors differ.
    - `cfb_adt_c4`: every `!cfb.adt` among the fields is declared.
    - `cfb_adt_c5`: with `names` there is one list for each constructor, of no names or of one for each
      field, and no name comes twice.

    ```mlir
    cfb.adt @Tree ["Leaf", "Node"] [[i32], [!cfb.adt<@Tree>, !cfb.adt<@Tree>]]
        {names = [[], ["left", "right"]]}
    ```
  }];
  let arguments = (ins
    SymbolNameAttr:$sym_name,
    StrArrayAttr:$constructors,
    TypedArrayAttrBase<TypeArrayAttr, "array of arrays of types">:$fields,
    OptionalAttr<TypedArrayAttrBase<StrArrayAttr, "array of arrays of strings">>:$names
  );
  let assemblyFormat = "$sym_name $constructors $fields attr-dict";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The flattened types of constructor `index`'s fields.
    ::llvm::SmallVector<::mlir::Type> getFlattenedFields(unsigned index);

    /// The position of a constructor, if it is one of this type's.
    std::optional<unsigned> getConstructorIndex(::llvm::StringRef name);
  }];
}

def Cfb_ConstructOp : Cfb_Op<"construct", [
    Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "builds a value of an algebraic data type";
  let description = [{
    The operands are the constructor's fields, flattened. A tensor field may be held as its lazy
    handle.

    - `cfb_construct_c1`: the result's type is declared by a `cfb.adt`.
    - `cfb_construct_c2`: the type has the constructor.
    - `cfb_construct_c3`: the operands' types are the constructor's flattened fields.

    ```mlir
    %t = cfb.construct "Node"(%l, %r)
        : (!cfb.adt<@Tree>, !cfb.adt<@Tree>) -> !cfb.adt<@Tree>
    ```
  }];
  let arguments = (ins StrAttr:$constructor, Variadic<AnyType>:$fields);
  let results = (outs Cfb_AdtType:$result);
  let assemblyFormat = [{
    $constructor `(` $fields `)` attr-dict `:` functional-type($fields, $result)
  }];
}

def Cfb_MatchOp : Cfb_Op<"match", [
    RecursiveMemoryEffects, RecursivelySpeculatable, SingleBlock,
    DeclareOpInterfaceMethods<RegionBranchOpInterface, ["getRegionInvocationBounds"]>,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "takes a value of an algebraic data type apart";
  let description = [{
    One region for each constructor, in the order of their declaration; a region's arguments are the
    constructor's fields, flattened. A tensor field may be held as its lazy handle.

    - `cfb_match_c1`: the scrutinee's type is declared by a `cfb.adt`.
    - `cfb_match_c2`: there is one region for each constructor.
    - `cfb_match_c3`: a region's arguments are the constructor's flattened fields.
    - `cfb_match_c4`: a region ends in a `cfb.yield` of the results' types.

    Canonicalization takes the region of a constructor that is known: of a value that `cfb.construct` has
    built, or that an enclosing match takes apart already.

    ```mlir
    %n = cfb.match %t : !cfb.adt<@Tree> -> (i32) ({
    ^bb0(%w: i32):
      cfb.yield %w : i32
    }, {
    ^bb0(%l: !cfb.adt<@Tree>, %r: !cfb.adt<@Tree>):
      %a = func.call @leftmost(%l) : (!cfb.adt<@Tree>) -> i32
      cfb.yield %a : i32
    })
    ```
  }];
  let arguments = (ins Cfb_AdtType:$scrutinee);
  let results = (outs Variadic<AnyType>:$results);
  let regions = (region VariadicRegion<SizedRegion<1>>:$cases);
  let assemblyFormat = [{
    $scrutinee attr-dict `:` qualified(type($scrutinee)) `->` custom<TypeList>(type($results)) ` ` `(` $cases `)`
  }];
  let hasVerifier = 1;
  let hasCanonicalizeMethod = 1;
}

def Cfb_YieldOp : Cfb_Op<"yield", [
    Pure, Terminator, ReturnLike,
    ParentOneOf<["MatchOp", "MapOp", "FoldOp", "BlockOp", "KernelOp",
                 "ReduceRowsOp"]>]> {
  let summary = "ends a region with its values";
  let description = [{
    What is yielded is said by the operation around it.

    ```mlir
    cfb.yield %h, %c : tensor<28xf32>, tensor<28xf32>
    ```
  }];
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
}

def Cfb_TurnOp : Cfb_Op<"turn"> {
  let summary = "one more turn of a loop that may not end";
  let description = [{
    Counts a step of the instance, which ends with an error at the limit of its steps. So a loop has an
    effect, and stays where it is, although nothing changes in its turns or nothing uses its results.

    - `cfb_turn_c1`: it stands in the second region of an `scf.while`.

    ```mlir
    %r = scf.while (%i = %n) : (i32) -> i32 {
      %more = arith.cmpi sgt, %i, %zero : i32
      scf.condition(%more) %i : i32
    } do {
    ^bb0(%i: i32):
      cfb.turn
      scf.yield %i : i32
    }
    ```
  }];
  let assemblyFormat = "attr-dict";
  let hasVerifier = 1;
}

def Cfb_LookupOp : Cfb_Op<"lookup", [Cfb_MayFail]> {
  let summary = "one row of a table";
  let description = [{
    Ends the instance with an error when the index is out of bounds.

    - `cfb_lookup_c1`: the table has at least one dim.
    - `cfb_lookup_c2`: the result is the table's type without its first dim.

    ```mlir
    %x = cfb.lookup %emb[%w] : tensor<40x13xf32> -> tensor<13xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$table, I32:$index);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$table `[` $index `]` attr-dict `:` type($table) `->` qualified(type($result))";
  let hasVerifier = 1;
}

def Cfb_WithinOp : Cfb_Op<"within", [Cfb_MayFail]> {
  let summary = "an index that is within a length";
  let description = [{
    The index itself. Ends the instance with an error when the index is negative or not below the
    length.

    ```mlir
    %k = cfb.within %i of %n
    ```
  }];
  let arguments = (ins I32:$index, Index:$length);
  let results = (outs I32:$result);
  let assemblyFormat = "$index `of` $length attr-dict";
}

def Cfb_QuotientOp : Cfb_Op<"quotient", [Cfb_MayFail]> {
  let summary = "a length that is a quotient of lengths";
  let description = [{
    How often a length goes into another. Ends the instance with an error when something is left over,
    or the divisor is 0.

    ```mlir
    %half = cfb.quotient %n by %two
    ```
  }];
  let arguments = (ins Index:$dividend, Index:$divisor);
  let results = (outs Index:$result);
  let assemblyFormat = "$dividend `by` $divisor attr-dict";
}

def Cfb_ViewOp : Cfb_Op<"view", [Cfb_MayFail]> {
  let summary = "the rows of a tensor under other lengths";
  let description = [{
    The same rows in the same order, counted by other lengths, so it costs nothing. Ends the instance
    with an error when the new lengths do not make as many rows; with `exact`, when one of them is not
    the old one.

    - `cfb_view_c1`: both tensors, or handles of tensors, have the same dims behind their last dynamic
      dim, and the same elements.
    - `cfb_view_c2`: there is a length for each dynamic dim of the result.
    - `cfb_view_c3`: with `exact` both have the same dims.

    ```mlir
    %y = cfb.view %x(%n) : tensor<?x?x13xf32> -> tensor<?x13xf32>
    ```
  }];
  let arguments = (ins Cfb_LazyTensor:$value, Variadic<Index>:$lengths, UnitAttr:$exact);
  let results = (outs Cfb_LazyTensor:$result);
  let assemblyFormat = [{
    (`exact` $exact^)? $value `(` $lengths `)` attr-dict `:` qualified(type($value)) `->`
    qualified(type($result))
  }];
  let hasVerifier = 1;
}

def Cfb_LengthOp : Cfb_Op<"length", [Pure, SameOperandsAndResultType]> {
  let summary = "a length that stays one, whatever is known of it";
  let description = [{
    The number itself, of which nothing is known: no operation that takes it folds to one of a known
    shape. Tensors of which a program says only that they have a length are made with such ones.

    ```mlir
    %n = cfb.length %three
    ```
  }];
  let arguments = (ins Index:$value);
  let results = (outs Index:$length);
  let assemblyFormat = "$value attr-dict";
}

def Cfb_WidenOp : Cfb_Op<"widen", [Pure]> {
  let summary = "a tensor of known shape as one that has lengths";
  let description = [{
    The same elements under a type that knows less of their shape. Unlike a `tensor.cast` it stays
    what it is: what is made of the result has its lengths, and nothing takes the operand in its
    place.

    - `cfb_widen_c1`: the result has the operand's elements and its dims, but for dynamic ones in the
      place of known ones.
    - `cfb_widen_c2`: there is a length for each dynamic dim of the result.

    ```mlir
    %y = cfb.widen %x(%n) : tensor<3x13xf32> -> tensor<?x13xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$value, Variadic<Index>:$lengths);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $value `(` $lengths `)` attr-dict `:` qualified(type($value)) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

def Cfb_ForceOp : Cfb_Op<"force", [Cfb_MayFail]> {
  let summary = "reads a tensor where it decides control flow";
  let description = [{
    Until the tensor's value is known the instance waits, so an operation like this is never moved
    to where it would not have run. Where the *guard* holds, the decision was made on what is not
    a number, and the instance ends with an error.

    - `cfb_force_c1`: the operand is a tensor of rank 0, or a lazy handle of one.
    - `cfb_force_c2`: the result is the tensor's element type.
    - `cfb_force_c3`: the guard is a `tensor<i1>`, or a lazy handle of one if the value is a handle.

    ```mlir
    %stop = cfb.force %p : tensor<i1> -> i1
    %more = cfb.force %q guard(%nan : tensor<i1>) : tensor<i1> -> i1
    ```
  }];
  let arguments = (ins Cfb_LazyTensor:$value, Optional<Cfb_LazyTensor>:$guard);
  let results = (outs AnyType:$result);
  let assemblyFormat = [{
    $value (`guard` `(` $guard^ `:` qualified(type($guard)) `)`)? attr-dict `:`
    qualified(type($value)) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

def Cfb_DebugOp : Cfb_Op<"debug"> {
  let summary = "shows a value to the user";
  let description = [{
    The operands are a value of the type, flattened. The instance waits until all of it is computed. As
    this is seen from outside, an operation like this is neither removed nor repeated, and those of an
    instance stay in their order.

    - `cfb_debug_c1`: the operands' types are those of `type`, flattened. A tensor may be held as its
      lazy handle.

    ```mlir
    cfb.debug "h"(%h, %c) {type = tuple<tensor<28xf32>, i32>} : tensor<28xf32>, i32
    ```
  }];
  let arguments = (ins StrAttr:$text, TypeAttr:$type, Variadic<AnyType>:$values);
  let assemblyFormat = "$text `(` $values `)` attr-dict `:` type($values)";
  let hasVerifier = 1;
}

def Cfb_StrConstantOp : Cfb_Op<"str_constant", [Pure]> {
  let summary = "a text that the program has";
  let description = [{
    ```mlir
    %s = cfb.str_constant "the"
    ```
  }];
  let arguments = (ins StrAttr:$text);
  let results = (outs Cfb_StrType:$result);
  let assemblyFormat = "$text attr-dict";
}

def Cfb_StrEqualOp : Cfb_Op<"str_equal", [Pure]> {
  let summary = "whether two texts are the same";
  let description = [{
    ```mlir
    %same = cfb.str_equal %a, %b
    ```
  }];
  let arguments = (ins Cfb_StrType:$lhs, Cfb_StrType:$rhs);
  let results = (outs I1:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict";
}

def Cfb_InstanceKeyOp : Cfb_Op<"instance_key", [Pure]> {
  let summary = "a hash of the instance's id";
  let description = [{
    64 bits in two words. Two instances of one id have the same key, whatever they are batched with,
    so numbers that are drawn from it do not depend on the batch. No instance is known where a
    parameter is prepared, so an operation like this is never moved there.

    ```mlir
    %low, %high = cfb.instance_key
    ```
  }];
  let results = (outs I32:$low, I32:$high);
  let assemblyFormat = "attr-dict";
}

#endif // COHORT_CFB_STRUCTURE_OPS_TD
