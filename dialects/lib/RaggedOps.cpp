// The operations of the `ragged` dialect but for kernels: assembly and verifiers.

#include "Ragged.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace cohort::ragged;

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
