// The attributes of the `cfb` dialect: words of which one is said, and what a gradient function takes and gives.

#ifndef COHORT_CFB_ATTRS_TD
#define COHORT_CFB_ATTRS_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "cfb/CfbDialect.td"

class Cfb_Enum<string name, string summary, list<I32EnumAttrCase> cases> : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::cohort::cfb";
  let genSpecializedAttr = 0;
}

//===----------------------------------------------------------------------===//
// Of blocks and kernels; the loop level keeps them of its kernels
//===----------------------------------------------------------------------===//

def Cfb_KernelUnit : Cfb_Enum<"KernelUnit", "what a kernel is about: rows or calls", [
    I32EnumAttrCase<"rows", 0>,
    I32EnumAttrCase<"calls", 1>]>;
def Cfb_KernelUnitAttr : EnumAttr<Cfb_Dialect, Cfb_KernelUnit, "unit">;

def Cfb_Takes : Cfb_Enum<"Takes", "how a row-wise kernel takes an operand", [
    I32EnumAttrCase<"ragged", 0>,
    I32EnumAttrCase<"row", 1>,
    I32EnumAttrCase<"scalar", 2>,
    I32EnumAttrCase<"list", 3>,
    I32EnumAttrCase<"stacked", 4>]>;
def Cfb_TakesAttr : EnumAttr<Cfb_Dialect, Cfb_Takes, "takes">;
def Cfb_TakesArrayAttr : TypedArrayAttrBase<Cfb_TakesAttr,
    "how operands are taken: ragged, row, scalar, list or stacked">;

def Cfb_Reuse : Cfb_Enum<"Reuse", "whether each call has its own value of an operand, or all share one", [
    I32EnumAttrCase<"row", 0>,
    I32EnumAttrCase<"shared", 1>]>;
def Cfb_ReuseAttr : EnumAttr<Cfb_Dialect, Cfb_Reuse, "reuse">;
def Cfb_ReuseArrayAttr : TypedArrayAttrBase<Cfb_ReuseAttr,
    "who has operands, a list of row and shared">;

//===----------------------------------------------------------------------===//
// Of modules and functions
//===----------------------------------------------------------------------===//

def Cfb_Granularity : Cfb_Enum<"Granularity", "the unit of scheduling: an operator, a block or a function", [
    I32EnumAttrCase<"op", 0, "operator">,
    I32EnumAttrCase<"block", 1>,
    I32EnumAttrCase<"function", 2>]>;
def Cfb_GranularityAttr : EnumAttr<Cfb_Dialect, Cfb_Granularity, "granularity">;

def Cfb_Precision : Cfb_Enum<"Precision",
    "what the factors of products are rounded to on a GPU: f32 (not at all), tf32 or bf16", [
    I32EnumAttrCase<"f32", 0>,
    I32EnumAttrCase<"tf32", 1>,
    I32EnumAttrCase<"bf16", 2>]>;
def Cfb_PrecisionAttr : EnumAttr<Cfb_Dialect, Cfb_Precision, "precision">;

def Cfb_Rounding : Cfb_Enum<"Rounding", "whether a product is rounded before it is added to something", [
    I32EnumAttrCase<"fused", 0>,
    I32EnumAttrCase<"separate", 1>]>;
def Cfb_RoundingAttr : EnumAttr<Cfb_Dialect, Cfb_Rounding, "rounding">;

def Cfb_Gradients : Cfb_Enum<"Gradients", "of what gradients are computed", [
    I32EnumAttrCase<"all", 0>,
    I32EnumAttrCase<"parameters", 1>]>;
def Cfb_GradientsAttr : EnumAttr<Cfb_Dialect, Cfb_Gradients, "gradients">;

def Cfb_GradientHelper : Cfb_Enum<"GradientHelper", "what a function that backward needs of its own gives", [
    I32EnumAttrCase<"add", 0>,
    I32EnumAttrCase<"add_runs", 1>,
    I32EnumAttrCase<"stack", 2>,
    I32EnumAttrCase<"zero", 3>,
    I32EnumAttrCase<"one", 4>]>;
def Cfb_GradientHelperAttr : EnumAttr<Cfb_Dialect, Cfb_GradientHelper, "gradient_helper">;

//===----------------------------------------------------------------------===//
// Of gradient functions
//===----------------------------------------------------------------------===//

def Cfb_PartKind : Cfb_Enum<"PartKind", "what a part of a call or of its gradient function is", [
    I32EnumAttrCase<"operand", 0>,
    I32EnumAttrCase<"result", 1>,
    I32EnumAttrCase<"cotangent", 2>,
    I32EnumAttrCase<"addend", 3>,
    I32EnumAttrCase<"argument", 4>,
    I32EnumAttrCase<"site", 5>]>;

def Cfb_PartAttr : AttrDef<Cfb_Dialect, "Part"> {
  let mnemonic = "part";
  let summary = "a part of a call or of its gradient function";
  let description = [{
    Of a call its operand, its result or the cotangent of a result, each by its number, or an `addend`, which is
    to be added to a result's cotangent; of a gradient function its argument or its result. A gradient function's results
    are cotangents of operands, which have these operands' names, and factors of sites, `site`, which have no number.

    - `cfb_part_c1`: there is a number of at least zero, but of a `site`.

    ```mlir
    #cfb.part<operand 2>
    #cfb.part<site>
    ```
  }];
  let parameters = (ins
    EnumParameter<Cfb_PartKind>:$kind,
    OptionalParameter<"std::optional<int64_t>">:$number
  );
  let assemblyFormat = "`<` $kind ($number^)? `>`";
  let genVerifyDecl = 1;
}

#endif // COHORT_CFB_ATTRS_TD
