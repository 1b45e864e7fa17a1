// What the operations of the `cfb` dialect share.

#ifndef COHORT_CFB_OP_BASE_TD
#define COHORT_CFB_OP_BASE_TD

include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "cfb/CfbAttrs.td"
include "cfb/CfbDialect.td"
include "cfb/CfbTypes.td"

class Cfb_Op<string mnemonic, list<Trait> traits = []> : Op<Cfb_Dialect, mnemonic, traits>;

// Has no effect, but may end the instance with an error: removed or merged freely, never moved to
// where it would not have run.
def Cfb_MayFail : TraitList<[
  NoMemoryEffect,
  DeclareOpInterfaceMethods<ConditionallySpeculatable>
]>;

#endif // COHORT_CFB_OP_BASE_TD
