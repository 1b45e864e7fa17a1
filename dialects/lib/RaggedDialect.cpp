// The `ragged` dialect: registration, its attributes, and its part in inlining.

#include "Ragged.h"

#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Registration.h"
#include "mlir/CAPI/Support.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FoldInterfaces.h"
#include "mlir/Transforms/InliningUtils.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"

#include "ragged/RaggedDialect.cpp.inc"
#include "ragged/RaggedEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "ragged/RaggedAttrs.cpp.inc"

using namespace mlir;
using namespace cohort::ragged;

namespace {

/// Every operation of the dialect may be inlined, and a callee of one block may be inlined into any
/// of its regions.
struct RaggedInlinerInterface : public DialectInlinerInterface {
  using DialectInlinerInterface::DialectInlinerInterface;

  bool isLegalToInline(Region *, Region *src, bool, IRMapping &) const final {
    return src->hasOneBlock();
  }
  bool isLegalToInline(Operation *, Region *, bool, IRMapping &) const final { return true; }
};

/// Constants that folding finds stay in the stage that uses them.
struct RaggedFoldInterface : public DialectFoldInterface {
  using DialectFoldInterface::DialectFoldInterface;

  bool shouldMaterializeInto(Region *region) const final {
    return isa<NestOp, FoldOp, FoldListOp, LoopsOp, PackPanelsOp>(region->getParentOp());
  }
};

} // namespace

void RaggedDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "ragged/RaggedAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "ragged/RaggedOps.cpp.inc"
      >();
  addInterfaces<RaggedFoldInterface, RaggedInlinerInterface>();
}

//===----------------------------------------------------------------------===//
// Assembly of shapes
//===----------------------------------------------------------------------===//

void cohort::ragged::printDimNames(AsmPrinter &printer, ArrayRef<FlatSymbolRefAttr> dims) {
  if (dims.empty())
    return;
  printer << '(';
  llvm::interleaveComma(dims, printer, [&](FlatSymbolRefAttr dim) { printer << dim; });
  printer << ')';
}

ParseResult cohort::ragged::parseDimNames(AsmParser &parser,
                                           SmallVectorImpl<FlatSymbolRefAttr> &dims) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::OptionalParen, [&]() -> ParseResult {
    StringAttr name;
    if (parser.parseSymbolName(name))
      return failure();
    dims.push_back(FlatSymbolRefAttr::get(name));
    return success();
  });
}

/// `_ pad 16` or `@seq(@batch) max 512 pad 32 bulk 64`
static DimAttr parseDim(AsmParser &parser) {
  SMLoc start = parser.getCurrentLocation();
  FlatSymbolRefAttr name;
  SmallVector<FlatSymbolRefAttr> outer;
  if (failed(parser.parseOptionalKeyword("_"))) {
    StringAttr symbol;
    if (parser.parseSymbolName(symbol))
      return {};
    name = FlatSymbolRefAttr::get(symbol);
  }
  if (parseDimNames(parser, outer))
    return {};
  // A missing `max` is 0: no length is known to be bounded.
  int64_t max = 0, pad = 1, bulk = 1;
  for (auto [keyword, value] : {std::pair<StringRef, int64_t *>{"max", &max},
                                {"pad", &pad},
                                {"bulk", &bulk}}) {
    if (failed(parser.parseOptionalKeyword(keyword)))
      continue;
    SMLoc place = parser.getCurrentLocation();
    if (parser.parseInteger(*value))
      return {};
    if (*value < 1 || (keyword != "max" && *value > maxPad)) {
      parser.emitError(place) << "ragged_shape_c4: expected `" << keyword << "` to be at least 1"
                              << (keyword == "max" ? "" : " and below 2^31") << ", but got "
                              << *value;
      return {};
    }
  }
  return DimAttr::getChecked([&] { return parser.emitError(start); }, parser.getContext(), name,
                             outer, max, pad, bulk);
}

static void printDim(AsmPrinter &printer, DimAttr dim) {
  if (dim.getName())
    printer << dim.getName();
  else
    printer << '_';
  printDimNames(printer, dim.getOuter());
  if (dim.getMax() != 0)
    printer << " max " << dim.getMax();
  if (dim.getPad() != 1)
    printer << " pad " << dim.getPad();
  if (dim.getBulk() != 1)
    printer << " bulk " << dim.getBulk();
}

Attribute DimAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  DimAttr dim = parseDim(parser);
  if (!dim || parser.parseGreater())
    return {};
  return dim;
}

void DimAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printDim(printer, *this);
  printer << '>';
}

Attribute ShapeAttr::parse(AsmParser &parser, Type) {
  SMLoc start = parser.getCurrentLocation();
  SmallVector<DimAttr> dims;
  auto parseEntry = [&]() -> ParseResult {
    DimAttr dim = parseDim(parser);
    if (!dim)
      return failure();
    dims.push_back(dim);
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater, parseEntry))
    return {};
  return getChecked([&] { return parser.emitError(start); }, parser.getContext(), dims);
}

void ShapeAttr::print(AsmPrinter &printer) const {
  printer << '<';
  llvm::interleaveComma(getDims(), printer, [&](DimAttr dim) { printDim(printer, dim); });
  printer << '>';
}

//===----------------------------------------------------------------------===//
// Constraints of shapes
//===----------------------------------------------------------------------===//

LogicalResult DimAttr::verify(function_ref<InFlightDiagnostic()> emitError, FlatSymbolRefAttr name,
                              ArrayRef<FlatSymbolRefAttr> outer, int64_t max, int64_t pad,
                              int64_t bulk) {
  if (max < 0 || pad < 1 || bulk < 1 || pad > maxPad || bulk > maxPad)
    return emitError() << "ragged_shape_c4: expected `max`, `pad` and `bulk` to be at least 1, and "
                          "`pad` and `bulk` below 2^31";
  if (bulk != 1 && outer.empty())
    return emitError() << "ragged_shape_c5: expected `bulk` on a ragged dim only";
  llvm::SmallDenseSet<Attribute> seen;
  for (FlatSymbolRefAttr dim : outer)
    if (!seen.insert(dim).second)
      return emitError() << "ragged_shape_c6: " << dim << " appears twice among the outer dims of "
                         << name;
  if (!name && !outer.empty())
    return emitError() << "ragged_shape_c8: expected no outer dims of a dim without a name";
  if (name && name.getValue().empty())
    return emitError() << "ragged_shape_c8: expected `_` for a dim without a name";
  return success();
}

LogicalResult ShapeAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                ArrayRef<DimAttr> dims) {
  llvm::SmallDenseMap<Attribute, DimAttr> before;
  for (DimAttr dim : dims) {
    for (FlatSymbolRefAttr outer : dim.getOuter())
      if (!before.contains(outer))
        return emitError() << "ragged_shape_c2: " << dim.getName() << " depends on " << outer
                           << ", which does not come before it";
    if (!dim.getName())
      continue;
    DimAttr first = before.try_emplace(dim.getName(), dim).first->second;
    if (first.getOuter() != dim.getOuter() || first.getMax() != dim.getMax())
      return emitError() << "ragged_shape_c7: expected the same outer dims and the same `max` "
                            "wherever "
                         << dim.getName() << " appears";
  }
  return success();
}

LogicalResult ShapeAttr::verifyEncoding(ArrayRef<int64_t> shape, Type,
                                        function_ref<InFlightDiagnostic()> emitError) const {
  if (shape.size() != getDims().size())
    return emitError() << "ragged_shape_c1: expected " << shape.size()
                       << " entries, one for each dim, but got " << getDims().size();
  for (auto [size, dim] : llvm::zip(shape, getDims())) {
    if (dim.isRagged() && !ShapedType::isDynamic(size))
      return emitError() << "ragged_shape_c3: expected the ragged dim " << dim.getName()
                         << " to be dynamic, but it is " << size;
    if (dim.getMax() != 0 && !ShapedType::isDynamic(size) && size > dim.getMax())
      return emitError() << "ragged_shape_c9: expected at most " << dim.getMax() << ", but got "
                         << size;
    if (!ShapedType::isDynamic(size) && size > std::numeric_limits<int64_t>::max() - dim.getPad())
      return emitError() << "ragged_shape_c10: expected a size that can be padded, but got " << size;
  }
  return success();
}

std::optional<unsigned> ShapeAttr::getLastRagged() const {
  for (unsigned index = getDims().size(); index-- > 0;)
    if (getDims()[index].isRagged())
      return index;
  return std::nullopt;
}

SmallVector<DimAttr> ShapeAttr::getRaggedDims() const {
  SmallVector<DimAttr> found;
  for (DimAttr dim : getDims())
    if (dim.isRagged() &&
        llvm::none_of(found, [&](DimAttr other) { return other.getName() == dim.getName(); }))
      found.push_back(dim);
  return found;
}

ShapeAttr cohort::ragged::getShape(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? dyn_cast_or_null<ShapeAttr>(tensor.getEncoding()) : ShapeAttr();
}

//===----------------------------------------------------------------------===//
// For Rust; the declarations in `src/ffi.rs` must agree with these.
//===----------------------------------------------------------------------===//

extern "C" {

MlirDialectHandle mlirGetDialectHandle__ragged__();

struct CohortRaggedDim {
  bool isNamed;
  MlirStringRef name;
  int64_t sizes[3];
  intptr_t outerCount;
  const MlirStringRef *outer;
};

/// The shape of these dims; null, with a diagnostic, when they do not make one.
MlirAttribute cohortRaggedShapeGet(MlirContext context, intptr_t count, const CohortRaggedDim *dims) {
  MLIRContext *ctx = unwrap(context);
  auto emit = [&] { return emitError(UnknownLoc::get(ctx)); };
  auto symbol = [&](MlirStringRef name) { return FlatSymbolRefAttr::get(ctx, unwrap(name)); };
  SmallVector<DimAttr> entries;
  for (const CohortRaggedDim &dim : ArrayRef(dims, count)) {
    SmallVector<FlatSymbolRefAttr> outer;
    for (MlirStringRef name : ArrayRef(dim.outer, dim.outerCount))
      outer.push_back(symbol(name));
    DimAttr entry = DimAttr::getChecked(emit, ctx, dim.isNamed ? symbol(dim.name) : FlatSymbolRefAttr(), outer,
                                        dim.sizes[0], dim.sizes[1], dim.sizes[2]);
    if (!entry)
      return wrap(Attribute());
    entries.push_back(entry);
  }
  return wrap(Attribute(ShapeAttr::getChecked(emit, ctx, entries)));
}

/// The shape in a tensor type's encoding; null for every other type.
MlirAttribute cohortTypeGetRaggedShape(MlirType type) {
  return wrap(Attribute(getShape(unwrap(type))));
}
bool cohortAttributeIsRaggedShape(MlirAttribute attribute) {
  return isa<ShapeAttr>(unwrap(attribute));
}
intptr_t cohortRaggedShapeGetRank(MlirAttribute shape) {
  return cast<ShapeAttr>(unwrap(shape)).getDims().size();
}

static DimAttr entry(MlirAttribute shape, intptr_t index) {
  return cast<ShapeAttr>(unwrap(shape)).getDims()[index];
}

/// The name of an entry; empty where it has none.
MlirStringRef cohortRaggedShapeGetName(MlirAttribute shape, intptr_t index) {
  FlatSymbolRefAttr name = entry(shape, index).getName();
  return wrap(name ? name.getValue() : StringRef());
}
/// `max` (0 for none), `pad` and `bulk` of an entry.
void cohortRaggedShapeGetSizes(MlirAttribute shape, intptr_t index, int64_t *sizes) {
  DimAttr dim = entry(shape, index);
  sizes[0] = dim.getMax();
  sizes[1] = dim.getPad();
  sizes[2] = dim.getBulk();
}
intptr_t cohortRaggedShapeGetOuterCount(MlirAttribute shape, intptr_t index) {
  return entry(shape, index).getOuter().size();
}
MlirStringRef cohortRaggedShapeGetOuter(MlirAttribute shape, intptr_t index, intptr_t outer) {
  return wrap(entry(shape, index).getOuter()[outer].getValue());
}

} // extern "C"

MLIR_DEFINE_CAPI_DIALECT_REGISTRATION(Ragged, ragged, cohort::ragged::RaggedDialect)
