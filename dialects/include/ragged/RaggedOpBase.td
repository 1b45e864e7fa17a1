// What the operations of the `ragged` dialect share.

#ifndef COHORT_RAGGED_OP_BASE_TD
#define COHORT_RAGGED_OP_BASE_TD

include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "cfb/CfbAttrs.td"
include "ragged/RaggedAttrs.td"
include "ragged/RaggedDialect.td"

class Ragged_Op<string mnemonic, list<Trait> traits = []> : Op<Ragged_Dialect, mnemonic, traits>;

#endif // COHORT_RAGGED_OP_BASE_TD
