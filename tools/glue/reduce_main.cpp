// The part of batch-reduce that exists only in C++: mlir-reduce, with the dialects that Rust registers.

#include "mlir/CAPI/IR.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Tools/mlir-reduce/MlirReduceMain.h"

using namespace mlir;

// Runs mlir-reduce by its command line, the program's name first.
extern "C" bool cohort_reduce_run(MlirDialectRegistry registry, int argc, char **argv) {
  MLIRContext context(*unwrap(registry), MLIRContext::Threading::DISABLED);
  // Most of what it tries is not valid, and says so.
  ScopedDiagnosticHandler silence(&context, [](Diagnostic &) { return success(); });
  return succeeded(mlirReduceMain(argc, argv, context));
}
