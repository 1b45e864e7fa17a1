// The operations of the `ragged` dialect but for its loops: verifiers and folds.

#include "Ragged.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Support/MathExtras.h"

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

/// `longest_first`
static ParseResult parseOrderOfRows(OpAsmParser &parser, OrderAttr &order) {
  FailureOr<Order> value = FieldParser<Order>::parse(parser);
  if (failed(value))
    return failure();
  order = OrderAttr::get(parser.getContext(), *value);
  return success();
}

static void printOrderOfRows(OpAsmPrinter &printer, Operation *, OrderAttr order) {
  printer << stringifyOrder(order.getValue());
}

/// Two values of one type, which is written once.
static ParseResult parseSameTypes(OpAsmParser &parser, Type &first, Type &second) {
  if (parser.parseType(first))
    return failure();
  second = first;
  return success();
}

static void printSameTypes(OpAsmPrinter &printer, Operation *, Type first, Type) {
  printer << first;
}

#define GET_OP_CLASSES
#include "ragged/RaggedOps.cpp.inc"

//===----------------------------------------------------------------------===//
// Dims
//===----------------------------------------------------------------------===//

DimOp cohort::ragged::lookupDim(SymbolTableCollection &symbols, Operation *from,
                                FlatSymbolRefAttr name) {
  return symbols.lookupNearestSymbolFrom<DimOp>(from, name);
}

/// The outer dims of a declaration.
static SmallVector<FlatSymbolRefAttr> outerDims(DimOp dim) {
  if (ArrayAttr outer = dim.getOuterAttr())
    return llvm::to_vector(outer.getAsRange<FlatSymbolRefAttr>());
  return {};
}

static SmallVector<FlatSymbolRefAttr> factorDims(DimOp dim) {
  if (ArrayAttr factors = dim.getFactorsAttr())
    return llvm::to_vector(factors.getAsRange<FlatSymbolRefAttr>());
  return {};
}

// Types of values name it, which `symbol-dce` does not see.
bool DimOp::canDiscardOnUseEmpty() { return false; }

/// Whether every division in a rule is by a positive constant; no other is sure to have a result.
static bool dividesByConstants(AffineMap rule) {
  bool fine = true;
  rule.walkExprs([&](AffineExpr expression) {
    AffineExprKind kind = expression.getKind();
    if (kind != AffineExprKind::FloorDiv && kind != AffineExprKind::CeilDiv &&
        kind != AffineExprKind::Mod)
      return;
    auto divisor = dyn_cast<AffineConstantExpr>(cast<AffineBinaryOpExpr>(expression).getRHS());
    fine &= divisor && divisor.getValue() > 0;
  });
  return fine;
}

LogicalResult DimOp::verify() {
  // MLIR prints such a symbol in a way that it does not read.
  if (getSymName().empty())
    return emitOpError() << "ragged_dim_c10: expected a name that is not empty";
  SmallVector<FlatSymbolRefAttr> outer = outerDims(*this);
  llvm::SmallDenseSet<Attribute> seen;
  for (FlatSymbolRefAttr dim : outer)
    if (!seen.insert(dim).second)
      return emitOpError() << "ragged_dim_c2: " << dim << " appears twice among the outer dims";
  size_t symbols = 0;
  if (std::optional<AffineMap> rule = getRule()) {
    if (rule->getNumResults() != 1 || rule->getNumDims() != outer.size())
      return emitOpError() << "ragged_dim_c4: expected a rule of " << outer.size()
                           << " indices and one length, but got " << getRuleAttr();
    symbols = rule->getNumSymbols();
    if (!dividesByConstants(*rule))
      return emitOpError() << "ragged_dim_c9: expected divisions by positive constants only";
  }
  if (factorDims(*this).size() != symbols)
    return emitOpError() << "ragged_dim_c5: expected " << symbols
                         << " dims after `of`, one for each symbol of the rule, but got "
                         << factorDims(*this).size();
  if (std::optional<int64_t> max = getMax(); max && *max < 1)
    return emitOpError() << "ragged_dim_c8: expected `max` to be at least 1, but got " << *max;
  return success();
}

/// Whether following outer dims and factors leads from a dim back to it. Chains can be long, so the
/// walk keeps its own stack.
static bool dependsOnItself(SymbolTableCollection &symbols, DimOp start) {
  llvm::SmallPtrSet<Operation *, 8> visited;
  SmallVector<DimOp> waiting{start};
  while (!waiting.empty()) {
    DimOp from = waiting.pop_back_val();
    SmallVector<FlatSymbolRefAttr> next = outerDims(from);
    llvm::append_range(next, factorDims(from));
    for (FlatSymbolRefAttr name : next) {
      DimOp dim = lookupDim(symbols, from, name);
      if (!dim)
        continue;
      if (dim == start)
        return true;
      if (visited.insert(dim).second)
        waiting.push_back(dim);
    }
  }
  return false;
}

LogicalResult DimOp::verifySymbolUses(SymbolTableCollection &symbols) {
  SmallVector<FlatSymbolRefAttr> outer = outerDims(*this);
  for (auto [index, name] : llvm::enumerate(outer)) {
    DimOp dim = lookupDim(symbols, *this, name);
    if (!dim)
      return emitOpError() << "ragged_dim_c1: " << name << " is not a declared dim";
    if (getRule())
      continue;
    ArrayRef<FlatSymbolRefAttr> before = ArrayRef(outer).take_front(index);
    for (FlatSymbolRefAttr needed : outerDims(dim))
      if (!llvm::is_contained(before, needed))
        return emitOpError() << "ragged_dim_c3: expected " << needed << " before " << name
                             << ", whose length depends on it";
  }
  for (FlatSymbolRefAttr name : factorDims(*this)) {
    DimOp dim = lookupDim(symbols, *this, name);
    if (!dim)
      return emitOpError() << "ragged_dim_c6: " << name << " is not a declared dim";
    for (FlatSymbolRefAttr needed : outerDims(dim))
      if (!llvm::is_contained(outer, needed))
        return emitOpError() << "ragged_dim_c6: expected " << needed
                             << " among the outer dims, because the length of " << name
                             << " depends on it";
  }
  if (dependsOnItself(symbols, *this))
    return emitOpError() << "ragged_dim_c7: the dim depends on itself";
  return success();
}

/// Checks that the named dims of a shape are declared as it says.
static LogicalResult verifyDeclared(Operation *op, SymbolTableCollection &symbols, Type type,
                                    StringRef constraint) {
  ShapeAttr shape = getShape(type);
  if (!shape)
    return success();
  for (DimAttr entry : shape.getDims()) {
    if (!entry.getName())
      continue;
    DimOp dim = lookupDim(symbols, op, entry.getName());
    if (!dim)
      return op->emitOpError() << constraint << ": " << entry.getName() << " is not a declared dim";
    if (ArrayRef(outerDims(dim)) != entry.getOuter() || dim.getMax().value_or(0) != entry.getMax()) {
      InFlightDiagnostic diagnostic = op->emitOpError()
                                      << constraint << ": expected " << entry.getName()
                                      << " with the outer dims and the `max` of its declaration";
      diagnostic.attachNote(dim.getLoc()) << "declared here";
      return diagnostic;
    }
  }
  return success();
}

/// The declaration of a ragged dim; reports a name that is none.
static DimOp requireRagged(Operation *op, SymbolTableCollection &symbols, FlatSymbolRefAttr name,
                           StringRef constraint) {
  DimOp dim = lookupDim(symbols, op, name);
  if (!dim)
    op->emitOpError() << constraint << ": " << name << " is not a declared dim";
  else if (outerDims(dim).empty())
    op->emitOpError() << constraint << ": " << name << " is not ragged";
  else
    return dim;
  return {};
}

//===----------------------------------------------------------------------===//
// The prelude
//===----------------------------------------------------------------------===//

LogicalResult PreludeOp::verify() {
  for (TypeRange types : {TypeRange(getInputs()), TypeRange(getResultTypes())})
    for (Type type : types)
      if (!getElementTypeOrSelf(type).isIntOrIndex())
        return emitOpError() << "ragged_prelude_c3: expected integers or tensors of integers, but got "
                             << type;
  return success();
}

LogicalResult PreludeOp::verifyRegions() {
  Block &block = getBody().front();
  if (block.getArgumentTypes() != TypeRange(getInputs()))
    return emitOpError() << "ragged_prelude_c1: expected region arguments of types ("
                         << TypeRange(getInputs()) << "), but got (" << block.getArgumentTypes()
                         << ")";
  auto yield = dyn_cast_or_null<YieldOp>(block.empty() ? nullptr : &block.back());
  if (!yield)
    return emitOpError() << "ragged_prelude_c2: expected the region to end in `ragged.yield`";
  if (yield.getOperandTypes() != getResultTypes())
    return yield.emitOpError() << "ragged_prelude_c2: expected values of types ("
                               << getResultTypes() << "), but got (" << yield.getOperandTypes()
                               << ")";
  for (Operation &op : block)
    if (!isMemoryEffectFree(&op))
      return op.emitOpError() << "ragged_prelude_c4: expected no memory effects within a prelude";
  return success();
}

LogicalResult YieldOp::verify() {
  Operation *parent = (*this)->getParentOp();
  if (!isa_and_nonnull<PreludeOp, ForOp, ForallOp, NestOp, FoldOp, FoldListOp, LoopsOp, PackPanelsOp, ReduceOp,
                       MatmulOp, OnlineSoftmaxOp, TilesOp>(
          parent))
    return emitOpError() << "ragged_yield_c1: expected to be in a prelude, a loop over a dim or a stage";
  return success();
}

LogicalResult LengthsOp::verify() {
  for (Type type : getOperandTypes())
    if (type != getResult().getType())
      return emitOpError() << "ragged_lengths_c4: expected a table of type "
                           << getResult().getType() << ", but got " << type;
  if (getNumOperands() == 0)
    return emitOpError() << "ragged_lengths_c5: expected at least one table";
  return success();
}

LogicalResult LengthsOp::verifySymbolUses(SymbolTableCollection &symbols) {
  DimOp dim = lookupDim(symbols, *this, getDimAttr());
  if (!dim || !dim.getRule())
    return emitOpError() << "ragged_lengths_c1: " << getDimAttr()
                         << (dim ? " has no rule" : " is not a declared dim");
  AffineMap rule = *dim.getRule();
  bool readsIndices = false;
  for (unsigned index = 0; index < rule.getNumDims(); ++index)
    readsIndices |= rule.isFunctionOfDim(index);
  size_t indices = getIndices().size();
  if (indices != rule.getNumDims() && (readsIndices || indices != 0))
    return emitOpError() << "ragged_lengths_c2: expected " << rule.getNumDims()
                         << " tables after `at`, one for each outer dim, but got " << indices;
  if (getFactors().size() != rule.getNumSymbols())
    return emitOpError() << "ragged_lengths_c3: expected " << rule.getNumSymbols()
                         << " tables after `of`, one for each dim the rule names, but got "
                         << getFactors().size();
  return success();
}

LogicalResult OffsetsOp::verify() {
  auto lengths = cast<RankedTensorType>(getLengths().getType());
  auto result = cast<RankedTensorType>(getResult().getType());
  // Rows of several dims are counted together, and only their number at run time is known.
  int64_t rows = lengths.getRank() == 1 ? lengths.getDimSize(0) : ShapedType::kDynamic;
  bool countable = ShapedType::isDynamic(rows) || rows < std::numeric_limits<int64_t>::max();
  int64_t entries = ShapedType::isDynamic(rows) || !countable ? ShapedType::kDynamic : rows + 1;
  if (result.getElementType() != lengths.getElementType() || result.getDimSize(0) != entries ||
      result.getEncoding())
    return emitOpError() << "ragged_offsets_c3: expected a result of type "
                         << RankedTensorType::get({entries}, lengths.getElementType())
                         << ", but got " << result;
  for (auto [keyword, value] : {std::pair<StringRef, int64_t>{"pad", getPad()}, {"bulk", getBulk()}})
    if (value < 1 || value > maxPad)
      return emitOpError() << "ragged_offsets_c4: expected `" << keyword
                           << "` to be at least 1 and below 2^31, but got " << value;
  return success();
}

LogicalResult OffsetsOp::verifySymbolUses(SymbolTableCollection &symbols) {
  DimOp dim = requireRagged(*this, symbols, getDimAttr(), "ragged_offsets_c1");
  if (!dim)
    return failure();
  SmallVector<FlatSymbolRefAttr> outer = outerDims(dim);
  auto lengths = cast<RankedTensorType>(getLengths().getType());
  if (lengths.getRank() != static_cast<int64_t>(outer.size()))
    return emitOpError() << "ragged_offsets_c2: expected lengths of " << outer.size()
                         << " dims, one for each outer dim of " << getDimAttr() << ", but got "
                         << lengths;
  ShapeAttr shape = getShape(lengths);
  for (auto [index, name] : llvm::enumerate(outer)) {
    DimOp outerDim = lookupDim(symbols, *this, name);
    if (!outerDim || outerDims(outerDim).empty())
      continue;
    // A table over a single ragged dim is one over the indices in it, whatever the row.
    if (outer.size() > 1 && (!shape || shape.getDims()[index].getName() != name))
      return emitOpError() << "ragged_offsets_c5: expected the lengths' type to say that dim " << index
                           << " is " << name;
  }
  return verifyDeclared(*this, symbols, lengths, "ragged_offsets_c5");
}

/// The type of a list as long as only the run knows, of the elements of another.
static RankedTensorType dynamicList(Type type) {
  return RankedTensorType::get({ShapedType::kDynamic}, getElementTypeOrSelf(type));
}

LogicalResult FuseOp::verify() {
  RankedTensorType expected = dynamicList(getOffsets().getType());
  for (Type type : getResultTypes())
    if (type != expected)
      return emitOpError() << "ragged_fuse_c2: expected maps of type " << expected << ", but got "
                           << type;
  return success();
}

LogicalResult FuseOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return success(bool(requireRagged(*this, symbols, getDimAttr(), "ragged_fuse_c1")));
}

LogicalResult SplitOp::verify() {
  int64_t multiple = static_cast<int64_t>(getMultiple());
  if (multiple < 2 || multiple > maxPad)
    return emitOpError() << "ragged_split_c1: expected a multiple of at least 2 and below 2^31, but got "
                         << multiple;
  return success();
}

LogicalResult PartitionOp::verify() {
  ArrayRef<int64_t> bounds = getBounds();
  if (bounds.empty() || !llvm::is_sorted(bounds, std::less_equal<int64_t>()))
    return emitOpError() << "ragged_partition_c1: expected bounds that rise";
  if (getNumResults() != bounds.size() + 1)
    return emitOpError() << "ragged_partition_c2: expected " << bounds.size() + 1
                         << " lists, but got " << getNumResults();
  RankedTensorType expected = dynamicList(getLengths().getType());
  for (Type type : getResultTypes())
    if (type != expected)
      return emitOpError() << "ragged_partition_c3: expected a list of type " << expected
                           << ", but got " << type;
  return success();
}

LogicalResult MergeOp::verify() {
  if (getParts().empty())
    return emitOpError() << "ragged_merge_c1: expected at least one list";
  auto result = cast<RankedTensorType>(getRows().getType());
  int64_t together = 0;
  for (Type type : getParts().getTypes()) {
    auto part = cast<RankedTensorType>(type);
    if (part.getElementType() != result.getElementType())
      return emitOpError() << "ragged_merge_c2: expected lists of " << result.getElementType()
                           << ", but got " << part;
    // Lists too long to be counted are as long as only the run knows.
    bool dynamic = ShapedType::isDynamic(together) || part.isDynamicDim(0) ||
                   llvm::AddOverflow(together, part.getDimSize(0), together);
    together = dynamic ? ShapedType::kDynamic : together;
  }
  if (!result.isDynamicDim(0) && result.getDimSize(0) != together)
    return emitOpError() << "ragged_merge_c3: expected a dynamic result, but got " << result;
  return success();
}

OpFoldResult MergeOp::fold(FoldAdaptor) {
  if (getParts().size() == 1 && getParts()[0].getType() == getRows().getType())
    return getParts()[0];
  return {};
}

//===----------------------------------------------------------------------===//
// Storage
//===----------------------------------------------------------------------===//

/// The type of a ragged tensor's storage; null when the tensor is not ragged. The dims behind the last
/// ragged one have their padding.
static RankedTensorType storageOf(Type type) {
  ShapeAttr shape = getShape(type);
  std::optional<unsigned> last = shape ? shape.getLastRagged() : std::nullopt;
  if (!last)
    return {};
  auto tensor = cast<RankedTensorType>(type);
  SmallVector<int64_t> dims{ShapedType::kDynamic};
  for (auto [size, dim] : llvm::zip(tensor.getShape().drop_front(*last + 1),
                                    shape.getDims().drop_front(*last + 1)))
    dims.push_back(ShapedType::isDynamic(size) ? size : llvm::alignTo(size, dim.getPad()));
  return RankedTensorType::get(dims, tensor.getElementType());
}

static LogicalResult verifyRagged(Operation *op, Type type, StringRef constraint) {
  if (storageOf(type))
    return success();
  return op->emitOpError() << constraint << ": expected a ragged tensor, but got " << type;
}

static LogicalResult verifyStorage(Operation *op, Type storage, Type tensor, StringRef constraint) {
  if (storage == storageOf(tensor))
    return success();
  return op->emitOpError() << constraint << ": expected storage of type " << storageOf(tensor)
                           << ", but got " << storage;
}

/// One table for each ragged dim, of one dim for each of its outer dims.
static LogicalResult verifyLengths(Operation *op, ValueRange lengths, Type tensor,
                                   StringRef constraint) {
  SmallVector<DimAttr> dims = getShape(tensor).getRaggedDims();
  if (lengths.size() != dims.size())
    return op->emitOpError() << constraint << ": expected " << dims.size()
                             << " tables of lengths, one for each ragged dim, but got "
                             << lengths.size();
  for (auto [table, dim] : llvm::zip(lengths.getTypes(), dims)) {
    if (cast<RankedTensorType>(table).getRank() != static_cast<int64_t>(dim.getOuter().size()))
      return op->emitOpError() << constraint << ": expected the lengths of " << dim.getName()
                               << " to have one dim for each outer dim, but got " << table;
    ShapeAttr own = getShape(table);
    for (auto [index, name] : llvm::enumerate(dim.getOuter())) {
      FlatSymbolRefAttr said = own ? own.getDims()[index].getName() : FlatSymbolRefAttr();
      bool isRagged = llvm::any_of(dims, [&](DimAttr other) { return other.getName() == name; });
      // A table over a single ragged dim is one over the indices in it, whatever the row.
      bool mustSay = isRagged && dim.getOuter().size() > 1;
      if (said ? said != name : mustSay)
        return op->emitOpError() << constraint << ": expected the type of the lengths of "
                                 << dim.getName() << " to say that dim " << index << " is " << name
                                 << ", but got " << table;
    }
  }
  return success();
}

/// A dense tensor that has room for what a ragged one holds, as far as types tell.
static LogicalResult verifyDense(Operation *op, Type type, Type ragged, StringRef constraint) {
  auto dense = cast<RankedTensorType>(type);
  auto tensor = cast<RankedTensorType>(ragged);
  bool agrees = !dense.getEncoding() && dense.getRank() == tensor.getRank() &&
                dense.getElementType() == tensor.getElementType();
  for (int64_t dim = 0; agrees && dim < tensor.getRank(); ++dim)
    agrees = dense.isDynamicDim(dim) || tensor.isDynamicDim(dim) ||
             dense.getDimSize(dim) == tensor.getDimSize(dim);
  if (agrees)
    return success();
  return op->emitOpError() << constraint << ": expected a dense tensor of the dims and elements of "
                           << tensor << ", but got " << dense;
}

LogicalResult FromStorageOp::verify() {
  if (failed(verifyRagged(*this, getResult().getType(), "ragged_from_storage_c2")) ||
      failed(verifyStorage(*this, getStorage().getType(), getResult().getType(),
                           "ragged_from_storage_c3")))
    return failure();
  return verifyLengths(*this, getLengths(), getResult().getType(), "ragged_from_storage_c4");
}

LogicalResult FromStorageOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyDeclared(*this, symbols, getResult().getType(), "ragged_from_storage_c1");
}

OpFoldResult FromStorageOp::fold(FoldAdaptor) {
  // A dim has one table in a function, so the same type means the same rows.
  if (auto inner = getStorage().getDefiningOp<ToStorageOp>())
    if (inner.getSource().getType() == getResult().getType())
      return inner.getSource();
  return {};
}

LogicalResult ToStorageOp::verify() {
  if (failed(verifyRagged(*this, getSource().getType(), "ragged_to_storage_c2")))
    return failure();
  return verifyStorage(*this, getStorage().getType(), getSource().getType(),
                       "ragged_to_storage_c3");
}

LogicalResult ToStorageOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyDeclared(*this, symbols, getSource().getType(), "ragged_to_storage_c1");
}

OpFoldResult ToStorageOp::fold(FoldAdaptor) {
  if (auto outer = getSource().getDefiningOp<FromStorageOp>())
    return outer.getStorage();
  return {};
}

LogicalResult PackOp::verify() {
  Type result = getResult().getType();
  if (failed(verifyRagged(*this, result, "ragged_pack_c2")))
    return failure();
  if (getDestination().getType() != result)
    return emitOpError() << "ragged_pack_c3: expected a result of type "
                         << getDestination().getType() << ", but got " << result;
  Type source = getSource().getType();
  LogicalResult sourceIsRight = getStarts()
                                    ? verifyStorage(*this, source, result, "ragged_pack_c5")
                                    : verifyDense(*this, source, result, "ragged_pack_c4");
  if (failed(sourceIsRight))
    return failure();
  return verifyLengths(*this, getLengths(), result, "ragged_pack_c6");
}

LogicalResult PackOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyDeclared(*this, symbols, getResult().getType(), "ragged_pack_c1");
}

LogicalResult UnpackOp::verify() {
  Type source = getSource().getType();
  if (failed(verifyRagged(*this, source, "ragged_unpack_c2")))
    return failure();
  if (getDestination().getType() != getResult().getType())
    return emitOpError() << "ragged_unpack_c3: expected a result of type "
                         << getDestination().getType() << ", but got " << getResult().getType();
  if (failed(verifyDense(*this, getResult().getType(), source, "ragged_unpack_c3")))
    return failure();
  return verifyLengths(*this, getLengths(), source, "ragged_unpack_c4");
}

LogicalResult UnpackOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyDeclared(*this, symbols, getSource().getType(), "ragged_unpack_c1");
}

//===----------------------------------------------------------------------===//
// Horizontal fusion
//===----------------------------------------------------------------------===//

LogicalResult HfuseOp::verifyRegions() {
  if (getParts().size() < 2)
    return emitOpError() << "ragged_hfuse_c1: expected at least two parts, but got "
                         << getParts().size();
  for (Region &part : getParts()) {
    bool hasLoop = false;
    for (Operation &op : part.front()) {
      if (isa<ForallOp>(op))
        hasLoop = true;
      else if (!isMemoryEffectFree(&op))
        return op.emitOpError() << "ragged_hfuse_c2: expected a part to hold `ragged.forall` and "
                                   "otherwise only what has no effects";
    }
    if (!hasLoop)
      return emitOpError() << "ragged_hfuse_c2: expected every part to hold a `ragged.forall`";
  }
  return success();
}
