// The operations of the `ragged` dialect but for kernels: assembly and verifiers.

#include "Ragged.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace cohort::ragged;

/// `@seq(@batch)`: a name, then its outer dims if it has any.
static ParseResult parseDeclared(OpAsmParser &parser, StringAttr &name, ArrayAttr &outer) {
  SmallVector<FlatSymbolRefAttr> dims;
  if (parser.parseSymbolName(name) || parseDimNames(parser, dims))
    return failure();
  if (!dims.empty())
    outer = parser.getBuilder().getArrayAttr(SmallVector<Attribute>(dims.begin(), dims.end()));
  return success();
}

static void printDeclared(OpAsmPrinter &printer, Operation *, StringAttr name, ArrayAttr outer) {
  printer.printSymbolName(name);
  if (outer)
    printDimNames(printer, llvm::to_vector(outer.getAsRange<FlatSymbolRefAttr>()));
}

/// `(i) -> (i + 1)`
static ParseResult parseRule(OpAsmParser &parser, AffineMapAttr &rule) {
  AffineMap map;
  if (parser.parseAffineMap(map))
    return failure();
  rule = AffineMapAttr::get(map);
  return success();
}

static void printRule(OpAsmPrinter &printer, Operation *, AffineMapAttr rule) {
  rule.getValue().print(printer.getStream());
}

/// `[@n, 28]`: numbers, and names of lengths, which stand as dynamic sizes.
static ParseResult parseExtents(OpAsmParser &parser, DenseI64ArrayAttr &over, ArrayAttr &dims) {
  SmallVector<int64_t> sizes;
  SmallVector<Attribute> names;
  auto parseOne = [&]() -> ParseResult {
    StringAttr name;
    if (succeeded(parser.parseOptionalSymbolName(name))) {
      sizes.push_back(ShapedType::kDynamic);
      names.push_back(FlatSymbolRefAttr::get(name));
      return success();
    }
    return parser.parseInteger(sizes.emplace_back());
  };
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Square, parseOne))
    return failure();
  over = parser.getBuilder().getDenseI64ArrayAttr(sizes);
  if (!names.empty())
    dims = parser.getBuilder().getArrayAttr(names);
  return success();
}

static void printExtents(OpAsmPrinter &printer, Operation *, DenseI64ArrayAttr over, ArrayAttr dims) {
  size_t name = 0;
  printer << '[';
  llvm::interleaveComma(over.asArrayRef(), printer, [&](int64_t size) {
    if (dims && ShapedType::isDynamic(size) && name < dims.size())
      printer << dims[name++];
    else
      printer << size;
  });
  printer << ']';
}

#define GET_OP_CLASSES
#include "ragged/RaggedOps.cpp.inc"

//===----------------------------------------------------------------------===//
// Dims
//===----------------------------------------------------------------------===//

/// The declaration of a dim; null when there is none.
static DimOp lookupDim(SymbolTableCollection &symbols, Operation *from, FlatSymbolRefAttr name) {
  return symbols.lookupNearestSymbolFrom<DimOp>(from, name);
}

/// The outer dims of a declaration.
static SmallVector<FlatSymbolRefAttr> outerDims(DimOp dim) {
  if (ArrayAttr outer = dim.getOuterAttr())
    return llvm::to_vector(outer.getAsRange<FlatSymbolRefAttr>());
  return {};
}

// Types of values name it, which `symbol-dce` does not see.
bool DimOp::canDiscardOnUseEmpty() { return false; }

LogicalResult DimOp::verify() {
  // MLIR prints such a symbol in a way that it does not read.
  if (getSymName().empty())
    return emitOpError() << "ragged_dim_c5: expected a name that is not empty";
  SmallVector<FlatSymbolRefAttr> outer = outerDims(*this);
  llvm::SmallDenseSet<Attribute> seen;
  for (FlatSymbolRefAttr dim : outer)
    if (!seen.insert(dim).second)
      return emitOpError() << "ragged_dim_c2: " << dim << " appears twice among the outer dims";
  if (std::optional<int64_t> max = getMax(); max && *max < 1)
    return emitOpError() << "ragged_dim_c4: expected `max` to be at least 1, but got " << *max;
  return success();
}

LogicalResult DimOp::verifySymbolUses(SymbolTableCollection &symbols) {
  SmallVector<FlatSymbolRefAttr> outer = outerDims(*this);
  for (auto [index, name] : llvm::enumerate(outer)) {
    DimOp dim = lookupDim(symbols, *this, name);
    if (!dim)
      return emitOpError() << "ragged_dim_c1: " << name << " is not a declared dim";
    ArrayRef<FlatSymbolRefAttr> before = ArrayRef(outer).take_front(index);
    for (FlatSymbolRefAttr needed : outerDims(dim))
      if (!llvm::is_contained(before, needed))
        return emitOpError() << "ragged_dim_c3: expected " << needed << " before " << name
                             << ", whose length depends on it";
  }
  return success();
}

//===----------------------------------------------------------------------===//
// What ends a region
//===----------------------------------------------------------------------===//

LogicalResult YieldOp::verify() {
  Operation *parent = (*this)->getParentOp();
  if (!isa_and_nonnull<NestOp, FoldOp, FoldListOp, LoopsOp, PackPanelsOp, ReduceOp,
                       MatmulOp, OnlineSoftmaxOp, TilesOp>(
          parent))
    return emitOpError() << "ragged_yield_c1: expected to be in a stage";
  return success();
}
