// C functions for what Rust needs of MLIR and of the `cfb` dialect and no C header offers.
// The declarations in `src/ffi.rs` must agree with these.

#include "Cfb.h"
#include "Ragged.h"

#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Support.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Location.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace cohort::cfb;

extern "C" {

// Kernels load what they need once, so looking for loads of the same memory costs global value numbering most of its time
// and finds nothing. Options of LLVM are the process's; one that its command line has stays.
void cohortConfigureLlvm() {
  auto &options = llvm::cl::getRegisteredOptions();
  auto found = options.find("enable-gvn-memdep");
  if (found != options.end() && found->second->getNumOccurrences() == 0)
    static_cast<llvm::cl::opt<bool> *>(found->second)->setValue(false);
}

// Types.

bool cohortTypeIsAdt(MlirType type) { return isa<AdtType>(unwrap(type)); }
bool cohortTypeIsArray(MlirType type) { return isa<ArrayType>(unwrap(type)); }
bool cohortTypeIsRows(MlirType type) { return isa<RowsType>(unwrap(type)); }
bool cohortTypeIsLazy(MlirType type) { return isa<LazyType>(unwrap(type)); }

bool cohortTypeIsStr(MlirType type) { return isa<StrType>(unwrap(type)); }

MlirType cohortStrTypeGet(MlirContext context) { return wrap(Type(StrType::get(unwrap(context)))); }
MlirType cohortAdtTypeGet(MlirContext context, MlirStringRef symbol) {
  MLIRContext *ctx = unwrap(context);
  return wrap(Type(AdtType::get(ctx, FlatSymbolRefAttr::get(ctx, unwrap(symbol)))));
}
MlirStringRef cohortAdtTypeGetSymbol(MlirType type) {
  return wrap(cast<AdtType>(unwrap(type)).getSymbol().getValue());
}
MlirType cohortArrayTypeGet(MlirType element) {
  Type type = unwrap(element);
  return wrap(Type(ArrayType::get(type.getContext(), type)));
}
MlirType cohortArrayTypeGetElement(MlirType type) {
  return wrap(cast<ArrayType>(unwrap(type)).getElementType());
}
MlirType cohortRowsTypeGet(MlirType tensor) {
  auto type = dyn_cast<RankedTensorType>(unwrap(tensor));
  if (!type || !type.hasStaticShape())
    return wrap(Type());
  return wrap(Type(RowsType::get(type.getContext(), type)));
}
MlirType cohortRowsTypeGetTensor(MlirType type) {
  return wrap(cast<RowsType>(unwrap(type)).getTensorType());
}
MlirType cohortLazyTypeGet(MlirType tensor) {
  Type type = unwrap(tensor);
  if (!isa<RankedTensorType>(type))
    return wrap(Type());
  return wrap(Type(LazyType::get(type.getContext(), type)));
}
MlirType cohortLazyTypeGetTensor(MlirType type) {
  return wrap(cast<LazyType>(unwrap(type)).getTensorType());
}
void cohortTypeFlatten(MlirType type, void (*callback)(MlirType, void *), void *data) {
  SmallVector<Type> types;
  flattenType(unwrap(type), types);
  for (Type element : types)
    callback(wrap(element), data);
}

// Diagnostics. The severity is that of MlirDiagnosticSeverity: error, warning, note, remark.

void cohortEmitDiagnostic(MlirLocation location, int severity, MlirStringRef message,
                          intptr_t noteCount, const MlirLocation *noteLocations,
                          const MlirStringRef *noteMessages) {
  auto kind = severity == 0   ? DiagnosticSeverity::Error
              : severity == 1 ? DiagnosticSeverity::Warning
                              : DiagnosticSeverity::Remark;
  Location loc = unwrap(location);
  InFlightDiagnostic diagnostic = kind == DiagnosticSeverity::Error     ? emitError(loc)
                                  : kind == DiagnosticSeverity::Warning ? emitWarning(loc)
                                                                        : emitRemark(loc);
  diagnostic << unwrap(message);
  for (intptr_t index = 0; index < noteCount; ++index)
    diagnostic.attachNote(unwrap(noteLocations[index])) << unwrap(noteMessages[index]);
}

// Locations.

bool cohortLocationGetFileLineColumn(MlirLocation location, MlirStringRef *file, unsigned *line,
                                     unsigned *column) {
  // The first place in the source, in the order in which a location tells its story: of a call site
  // the callee, of fused locations the first.
  FileLineColLoc found;
  unwrap(location)->walk([&](Location inner) {
    found = dyn_cast<FileLineColLoc>(inner);
    return found ? WalkResult::interrupt() : WalkResult::advance();
  });
  if (!found)
    return false;
  *file = wrap(found.getFilename().getValue());
  *line = found.getLine();
  *column = found.getColumn();
  return true;
}

// Operations.

/// Whether operations of this name declare an attribute of that one.
bool cohortOperationDeclares(MlirContext context, MlirStringRef operation, MlirStringRef attribute) {
  auto name = RegisteredOperationName::lookup(unwrap(operation), unwrap(context));
  return name && llvm::any_of(name->getAttributeNames(), [&](StringAttr declared) {
           return declared.getValue() == unwrap(attribute);
         });
}

/// A number of what an operation does that equal ones have in common, whatever symbol it declares.
size_t cohortOperationHash(MlirOperation op) {
  llvm::hash_code hash(0);
  for (Region &region : unwrap(op)->getRegions())
    region.walk<WalkOrder::PreOrder>([&](Operation *inner) {
      hash = llvm::hash_combine(hash, inner->getName(), inner->hashProperties(),
                                inner->getDiscardableAttrDictionary(),
                                llvm::hash_combine_range(inner->getResultTypes()));
    });
  return hash;
}

/// Whether two operations are the same but for the symbols that they declare and their locations.
bool cohortOperationsAreEqual(MlirOperation left, MlirOperation right) {
  Operation *first = unwrap(left), *second = unwrap(right);
  auto withoutSymbol = [](Operation *op) {
    NamedAttrList attributes(op->getAttrDictionary());
    attributes.erase(SymbolTable::getSymbolAttrName());
    return attributes.getDictionary(op->getContext());
  };
  if (first->getName() != second->getName() || withoutSymbol(first) != withoutSymbol(second) ||
      first->getNumRegions() != second->getNumRegions())
    return false;
  // Which value of the second stands where one of the first does. Operands are compared in order, also those of
  // operations that are commutative: what they give may differ where both are not numbers.
  DenseMap<Value, Value> same;
  auto areSame = [&](Value a, Value b) {
    auto known = same.find(a);
    return success(known == same.end() ? a == b : known->second == b);
  };
  auto note = [&](Value a, Value b) { same[a] = b; };
  return llvm::all_of(llvm::zip(first->getRegions(), second->getRegions()), [&](auto regions) {
    return OperationEquivalence::isRegionEquivalentTo(&std::get<0>(regions), &std::get<1>(regions), areSame,
                                                      note, OperationEquivalence::IgnoreLocations);
  });
}

/// Calls back with each memory that an operation of the loop level touches, and whether it writes it.
void cohortForEachMemory(MlirOperation op, void (*callback)(MlirValue, bool, void *), void *data) {
  cohort::ragged::forEachMemory(unwrap(op), [&](Value memory, bool isWritten) { callback(wrap(memory), isWritten, data); });
}

// Rewrites.

/// Replaces the math operations named by `names` with polynomials, everywhere in `op`.
bool cohortExpandMath(MlirOperation op, intptr_t count, const MlirStringRef *names) {
  Operation *operation = unwrap(op);
  llvm::SmallVector<StringRef> chosen;
  for (intptr_t index = 0; index < count; ++index)
    chosen.push_back(unwrap(names[index]));
  auto isChosen = [&](StringRef name) { return llvm::is_contained(chosen, name); };
  RewritePatternSet patterns(operation->getContext());
  populateMathPolynomialApproximationPatterns(patterns, isChosen);
  return succeeded(applyPatternsGreedily(operation, std::move(patterns)));
}

// Translation.

/// The text of a module in the `llvm` dialect as LLVM IR; false when it cannot be translated.
bool cohortTranslateToLlvmIr(MlirOperation module, MlirStringCallback callback, void *data) {
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> translated = translateModuleToLLVMIR(unwrap(module), context);
  if (!translated)
    return false;
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << *translated;
  callback(wrap(StringRef(text)), data);
  return true;
}

} // extern "C"
