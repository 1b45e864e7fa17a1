// The types of the `cfb` dialect.

#ifndef COHORT_CFB_TYPES_TD
#define COHORT_CFB_TYPES_TD

include "mlir/IR/AttrTypeBase.td"
include "cfb/CfbDialect.td"

class Cfb_Type<string name, string typeMnemonic> : TypeDef<Cfb_Dialect, name> {
  let mnemonic = typeMnemonic;
}

def Cfb_AdtType : Cfb_Type<"Adt", "adt"> {
  let summary = "a value of an algebraic data type";
  let description = [{
    The symbol names the `cfb.adt` that declares the constructors.

    ```mlir
    !cfb.adt<@Tree>
    ```
  }];
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$symbol);
  let assemblyFormat = "`<` $symbol `>`";
}

def Cfb_ArrayType : Cfb_Type<"Array", "array"> {
  let summary = "an immutable array whose length is known at run time";
  let description = [{
    Elements may be scalars, tensors, lazy handles, ADTs, arrays, or tuples of these.

    ```mlir
    !cfb.array<tuple<tensor<3xf32>, i32>>
    ```
  }];
  let parameters = (ins "::mlir::Type":$elementType);
  let assemblyFormat = "`<` $elementType `>`";
}

def Cfb_StrType : Cfb_Type<"Str", "str"> {
  let summary = "a text, which only passes through a program";
  let description = [{
    ```mlir
    !cfb.str
    ```
  }];
}

def Cfb_LazyType : Cfb_Type<"Lazy", "lazy"> {
  let summary = "a handle of a tensor that a recorded kernel call will produce";
  let description = [{
    - `cfb_lazy_c1`: the held type is a ranked tensor.

    ```mlir
    !cfb.lazy<tensor<28xf32>>
    ```
  }];
  let parameters = (ins "::mlir::Type":$tensorType);
  let assemblyFormat = "`<` $tensorType `>`";
  let genVerifyDecl = 1;
}

def Cfb_RowsType : Cfb_Type<"Rows", "rows"> {
  let summary = "for each row of a kernel, a list of tensors of any length";
  let description = [{
    What `!cfb.array` of a tensor becomes over a batch: a ragged operand. The lists have lengths of
    their own, which may be zero.

    - `cfb_rows_c1`: an entry is a ranked tensor of static shape.

    ```mlir
    !cfb.rows<tensor<28xf32>>
    ```
  }];
  let parameters = (ins "::mlir::Type":$tensorType);
  let assemblyFormat = "`<` $tensorType `>`";
  let genVerifyDecl = 1;
}

def Cfb_LazyTensor : AnyTypeOf<[AnyRankedTensor, Cfb_LazyType], "tensor or lazy handle">;

#endif // COHORT_CFB_TYPES_TD
