// MLIR's execution engine without listeners. Its C interface always has them, and the one for perf
// writes a file for every run.

#include "mlir/CAPI/ExecutionEngine.h"
#include "mlir/CAPI/IR.h"
#include "mlir/ExecutionEngine/OptUtils.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h"
#include "llvm/Support/TargetSelect.h"

using namespace mlir;

namespace {

template <typename T> T *orNothing(llvm::Expected<std::unique_ptr<T>> made) {
  if (made)
    return made->release();
  llvm::consumeError(made.takeError());
  return nullptr;
}

} // namespace

// Compiles a module of the `llvm` dialect for this machine, as LLVM's -O1 to -O3 do; null where LLVM cannot.
extern "C" MlirExecutionEngine cohort_jit_create(MlirModule raw, unsigned optimisationLevel) {
  static const bool isInitialised = [] {
    return !llvm::InitializeNativeTarget() && !llvm::InitializeNativeTargetAsmParser() &&
           !llvm::InitializeNativeTargetAsmPrinter();
  }();
  auto host = llvm::orc::JITTargetMachineBuilder::detectHost();
  if (!isInitialised || !host) {
    llvm::consumeError(host.takeError());
    return {nullptr};
  }
  std::unique_ptr<llvm::TargetMachine> machine(orNothing(host->createTargetMachine()));
  if (!machine)
    return {nullptr};
  ModuleOp module = unwrap(raw);
  registerBuiltinDialectTranslation(*module->getContext());
  registerLLVMDialectTranslation(*module->getContext());

  ExecutionEngineOptions options;
  auto optimise = makeOptimizingTransformer(optimisationLevel, /*sizeLevel=*/0, machine.get());
  options.transformer = optimise;
  options.jitCodeGenOptLevel = llvm::CodeGenOptLevel::Aggressive;
  options.enableGDBNotificationListener = false;
  options.enablePerfNotificationListener = false;
  return wrap(orNothing(ExecutionEngine::create(module, options)));
}
