// Declarations generated for the `cfb` dialect, and what its source files share.

#ifndef COHORT_CFB_H
#define COHORT_CFB_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "cfb/CfbDialect.h.inc"
#include "cfb/CfbEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "cfb/CfbAttrs.h.inc"

#define GET_TYPEDEF_CLASSES
#include "cfb/CfbTypes.h.inc"

#define GET_OP_CLASSES
#include "cfb/CfbOps.h.inc"

namespace cohort::cfb {

/// Appends the types that remain of `type` when every tuple is taken apart.
void flattenType(mlir::Type type, llvm::SmallVectorImpl<mlir::Type> &result);

/// Whether a value of type `held` can stand for one declared as `declared`: the same type, or with
/// lazy handles in place of tensors.
bool isHeldAs(mlir::Type declared, mlir::Type held);

/// Whether the types agree one by one, in the sense of `isHeldAs`.
bool areHeldAs(mlir::TypeRange declared, mlir::TypeRange held);

/// Tensors of the same dims and elements, whatever their encodings.
bool areSameTensors(mlir::RankedTensorType left, mlir::RankedTensorType right);

/// The type without its first dim; null for a tensor of rank 0. The encoding is dropped.
mlir::RankedTensorType dropLeadingDim(mlir::RankedTensorType type);

/// The type with one dynamic dim more in front. The encoding is dropped.
mlir::RankedTensorType addLeadingDim(mlir::RankedTensorType type);

} // namespace cohort::cfb

#endif // COHORT_CFB_H
