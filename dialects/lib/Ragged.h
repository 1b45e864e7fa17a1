// Declarations generated for the `ragged` dialect, and what its source files share.

#ifndef COHORT_RAGGED_H
#define COHORT_RAGGED_H

#include "Cfb.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/IntegerSet.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "ragged/RaggedDialect.h.inc"
#include "ragged/RaggedEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "ragged/RaggedAttrs.h.inc"

namespace cohort::ragged {

/// A memref of elements whose first dim is dynamic; one of static shape.
bool isRowMemory(mlir::Type type);
bool isSharedMemory(mlir::Type type);

/// The type of the elements of a memref.
mlir::Type getElement(mlir::Type memory);

} // namespace cohort::ragged

#define GET_OP_CLASSES
#include "ragged/RaggedOps.h.inc"

namespace cohort::ragged {

/// No padding is rounded up to more: extents and their sums stay far from the largest integer.
constexpr int64_t maxPad = (int64_t(1) << 31) - 1;

/// Calls back with each memory that an operation, or what is in its regions, has as an operand, and whether it is
/// written there.
void forEachMemory(mlir::Operation *operation, llvm::function_ref<void(mlir::Value, bool)> callback);

/// The shape in a tensor's encoding; null for every other type.
ShapeAttr getShape(mlir::Type type);

/// `(@a, @b)`, or nothing for no dims.
void printDimNames(mlir::AsmPrinter &printer, llvm::ArrayRef<mlir::FlatSymbolRefAttr> dims);
mlir::ParseResult parseDimNames(mlir::AsmParser &parser,
                                 llvm::SmallVectorImpl<mlir::FlatSymbolRefAttr> &dims);

} // namespace cohort::ragged

#endif // COHORT_RAGGED_H
