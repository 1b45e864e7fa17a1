// What blocks and kernels say of calls on tensors whose lengths differ; the loop level keeps it of its kernels.

#ifndef COHORT_CFB_CALL_ATTRS_TD
#define COHORT_CFB_CALL_ATTRS_TD

include "mlir/IR/CommonAttrConstraints.td"

// A string that is one of some words.
class Cfb_Word<list<string> words> : StringBasedAttr<
    And<[StrAttrPred,
         CPred<"::llvm::is_contained({" # !interleave(!foreach(word, words, "\"" # word # "\""), ", ")
               # "}, ::llvm::cast<::mlir::StringAttr>($_self).getValue())">]>,
    "one of " # !interleave(words, ", ")>;

// What a kernel is about: single rows, or all rows of a call.
def Cfb_Unit : Cfb_Word<["rows", "calls"]>;

// How each operand of a kernel over rows is taken.
def Cfb_Takes : TypedArrayAttrBase<
    Cfb_Word<["ragged", "row", "scalar", "list", "stacked"]>,
    "how operands are taken, a list of ragged, row, scalar, list and stacked">;

// Whether every call of a block sees the same value of an operand, or each its own.
def Cfb_Reuse : TypedArrayAttrBase<Cfb_Word<["row", "shared"]>, "a list of row and shared">;

#endif // COHORT_CFB_CALL_ATTRS_TD
