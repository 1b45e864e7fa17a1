// The loop level of the `ragged` dialect: verifiers of kernels, of their memory and of their stages.

#include "Ragged.h"

#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/AffineMap.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace cohort::ragged;

/// Columns of a packed panel.
static constexpr int64_t panelColumns = 32;

/// Elements that a vector has.
static constexpr int64_t lanesOfVector = 16;

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

static bool hasSizes(ArrayRef<int64_t> sizes) {
  return llvm::all_of(sizes, [](int64_t size) { return size > 0; });
}

bool cohort::ragged::isRowMemory(Type type) {
  auto memory = dyn_cast<MemRefType>(type);
  return memory && memory.getRank() > 0 && memory.isDynamicDim(0) &&
         hasSizes(memory.getShape().drop_front()) && memory.getLayout().isIdentity();
}

bool cohort::ragged::isSharedMemory(Type type) {
  auto memory = dyn_cast<MemRefType>(type);
  return memory && hasSizes(memory.getShape()) && memory.getLayout().isIdentity();
}

Type cohort::ragged::getElement(Type memory) { return cast<MemRefType>(memory).getElementType(); }

/// Elements of a row, or of all where rows share them.
static __int128 elementsOfRow(Type type) {
  __int128 elements = 1;
  for (int64_t size : cast<MemRefType>(type).getShape())
    if (!ShapedType::isDynamic(size) && elements < (__int128(1) << 62))
      elements *= size;
  return elements;
}

LogicalResult ParamOp::verify() {
  int64_t panels = static_cast<int64_t>(getPanels().value_or(1));
  bool packed = getPanels().has_value();
  if (panels != 1 && panels != panelColumns)
    return emitOpError() << "ragged_param_c1: expected panels of 32 columns or of 1, but got " << panels;
  if (packed && (getMemory().getType().getRank() < 2 || !getMemory().getType().getElementType().isF32()))
    return emitOpError() << "ragged_param_c1: expected panels of an f32 of at least two dims, but got "
                         << getMemory().getType();
  return success();
}

LogicalResult ConstantOp::verify() {
  auto type = cast<ShapedType>(getValue().getType());
  auto memory = getMemory().getType();
  if (type.getShape() != memory.getShape() || type.getElementType() != memory.getElementType())
    return emitOpError() << "ragged_constant_c1: expected memory of the shape and elements of " << type
                         << ", but got " << memory;
  return success();
}

LogicalResult ScratchOp::verify() {
  if (!getProducts())
    return success();
  int64_t products = static_cast<int64_t>(*getProducts());
  if (products < 1 || elementsOfRow(getMemory().getType()) % products != 0)
    return emitOpError() << "ragged_scratch_c1: expected `products` to divide the elements of a row, but got "
                         << products;
  return success();
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

static bool isStage(Operation &operation) {
  return isa<NestOp, FoldOp, FoldListOp, LoopsOp, PackPanelsOp, ProductOp>(operation);
}

bool KernelOp::canDiscardOnUseEmpty() { return true; }

LogicalResult KernelOp::verifyRegions() {
  Block &block = getBody().front();
  bool ends = !block.empty() && isa<BlocksOp>(block.back());
  if (!ends)
    return emitOpError() << "ragged_kernel_c1: expected the region to end in `ragged.blocks`";
  for (Operation &operation : llvm::drop_end(block))
    if (!isStage(operation) && !isa<OperandOp, ResultOp, ParamOp, ConstantOp, ScratchOp>(operation))
      return operation.emitOpError() << "ragged_kernel_c1: expected declarations and stages only";
  for (Operation &operation : llvm::drop_end(block)) {
    if (!isStage(operation))
      continue;
    WalkResult walk = operation.walk([](Operation *nested) {
      bool rows = llvm::any_of(nested->getOperandTypes(), isRowMemory);
      return rows ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (walk.wasInterrupted())
      return operation.emitOpError() << "ragged_kernel_c2: expected what runs once a call to touch what all "
                                        "rows share only";
  }
  if (getRowProducts() && getRowProducts()->size() % 2 != 0)
    return emitOpError() << "ragged_kernel_c1: expected pairs in `row_products`";
  return success();
}

LogicalResult BlocksOp::verify() {
  for (auto [number, name, value] :
       {std::tuple<StringRef, StringRef, uint64_t>{"c1", "of", getOf()}, {"c2", "tile", getTile()}})
    if (value < 1 || value > 65536)
      return emitOpError() << "ragged_blocks_" << number << ": expected `" << name
                           << "` to be from 1 to 65536, but got " << static_cast<int64_t>(value);
  return success();
}

LogicalResult BlocksOp::verifyRegions() {
  for (Operation &operation : getBody().front())
    if (!isStage(operation))
      return operation.emitOpError() << "ragged_blocks_c3: expected stages only";
  return success();
}

//===----------------------------------------------------------------------===//
// Loops and addresses
//===----------------------------------------------------------------------===//

/// `ragged_fold_c1`
static std::string constraint(Operation *operation, StringRef number) {
  return ("ragged_" + operation->getName().stripDialect() + "_" + number).str();
}

/// What a message about a constraint begins with.
static InFlightDiagnostic violates(Operation *operation, StringRef number) {
  InFlightDiagnostic diagnostic = operation->emitOpError();
  diagnostic << constraint(operation, number) << ": ";
  return diagnostic;
}

static LogicalResult verifyLengths(Operation *stage, ArrayRef<int64_t> over) {
  int64_t iterations = 1;
  for (int64_t length : over) {
    if (length < 1 || llvm::MulOverflow(iterations, length, iterations))
      return violates(stage, "c1") << "expected loops of at least one and fewer than 2^63 iterations";
  }
  return success();
}

static LogicalResult verifyFolding(Operation *stage, ArrayRef<int64_t> over, ArrayRef<int64_t> folding) {
  int64_t before = -1;
  for (int64_t dim : folding) {
    if (dim <= before || dim >= static_cast<int64_t>(over.size()))
      return violates(stage, "c2") << "expected numbers of loops in rising order, but got " << dim;
    before = dim;
  }
  return success();
}

static SmallVector<int64_t> keptLoops(ArrayRef<int64_t> over, ArrayRef<int64_t> folding) {
  SmallVector<int64_t> kept;
  for (int64_t dim = 0; dim < static_cast<int64_t>(over.size()); ++dim)
    if (!llvm::is_contained(folding, dim))
      kept.push_back(dim);
  return kept;
}

static SmallVector<int64_t> lengthsOf(ArrayRef<int64_t> over, ArrayRef<int64_t> dims) {
  SmallVector<int64_t> lengths;
  for (int64_t dim : dims)
    lengths.push_back(over[dim]);
  return lengths;
}

/// The lengths of the loops around an operation of a stage.
static SmallVector<int64_t> loopsAround(Operation *operation) {
  Operation *stage = operation->getParentOp();
  if (auto nest = dyn_cast<NestOp>(stage))
    return llvm::to_vector(nest.getOver());
  if (auto pack = dyn_cast<PackPanelsOp>(stage))
    return llvm::to_vector(pack.getOver());
  if (auto list = dyn_cast<FoldListOp>(stage))
    return llvm::to_vector(list.getOver());
  if (auto fold = dyn_cast<FoldOp>(stage)) {
    if (operation->getParentRegion() == &fold.getStep())
      return llvm::to_vector(fold.getOver());
    return lengthsOf(fold.getOver(), keptLoops(fold.getOver(), fold.getFolding()));
  }
  if (auto loops = dyn_cast<LoopsOp>(stage)) {
    SmallVector<int64_t> lengths = llvm::to_vector(loops.getOver());
    // The start sees folded loops at 0.
    if (operation->getParentRegion() == &loops.getStart())
      for (int64_t dim : loops.getFolding())
        lengths[dim] = 1;
    return lengths;
  }
  return {};
}

/// Adds `times` times an expression to the coefficients of the indices and to the constant after them.
/// Fails if it is not linear, or if a coefficient overflows.
static LogicalResult addLinear(AffineExpr expression, int64_t times, SmallVectorImpl<int64_t> &flat) {
  auto add = [&](int64_t &to, int64_t value) {
    int64_t product;
    return failure(llvm::MulOverflow(value, times, product) || llvm::AddOverflow(to, product, to));
  };
  if (auto constant = dyn_cast<AffineConstantExpr>(expression))
    return add(flat.back(), constant.getValue());
  if (auto dim = dyn_cast<AffineDimExpr>(expression))
    return add(flat[dim.getPosition()], 1);
  auto binary = dyn_cast<AffineBinaryOpExpr>(expression);
  if (!binary)
    return failure();
  if (binary.getKind() == AffineExprKind::Add)
    return success(succeeded(addLinear(binary.getLHS(), times, flat)) &&
                   succeeded(addLinear(binary.getRHS(), times, flat)));
  auto factor = dyn_cast<AffineConstantExpr>(binary.getRHS());
  if (binary.getKind() != AffineExprKind::Mul || !factor ||
      llvm::MulOverflow(times, factor.getValue(), times))
    return failure();
  return addLinear(binary.getLHS(), times, flat);
}

/// The coefficient of each index, and the constant behind them; nothing when the map is not linear.
static std::optional<SmallVector<int64_t>> linear(AffineMap map, size_t loops) {
  if (map.getNumDims() != loops || map.getNumSymbols() != 0 || map.getNumResults() != 1)
    return std::nullopt;
  SmallVector<int64_t> flat(loops + 1, 0);
  if (failed(addLinear(map.getResult(0), 1, flat)))
    return std::nullopt;
  return flat;
}

/// That a map is one of these loops, and leads nowhere but into a row, of which `neighbours` elements
/// are touched from there on.
static LogicalResult verifyAddress(Operation *operation, StringRef isLinear, StringRef isInside,
                                   AffineMap map, ArrayRef<int64_t> loops, Type memory,
                                   int64_t neighbours = 1) {
  auto flat = linear(map, loops.size());
  if (!flat)
    return violates(operation, isLinear) << "expected a linear map of " << loops.size()
                                         << " indices to one number, but got "
                                         << AffineMapAttr::get(map);
  __int128 least = flat->back(), most = flat->back();
  for (auto [coefficient, length] : llvm::zip(*flat, loops))
    (coefficient < 0 ? least : most) += __int128(coefficient) * (length - 1);
  if (least < 0 || most + neighbours > elementsOfRow(memory))
    return violates(operation, isInside) << AffineMapAttr::get(map) << " leads out of a row of "
                                         << memory;
  return success();
}

/// The coefficient of an index in a map that has been verified.
static int64_t along(AffineMap map, int64_t dim) {
  auto flat = linear(map, map.getNumDims());
  return flat ? (*flat)[dim] : 0;
}

LogicalResult LoadOp::verify() {
  Operation *stage = (*this)->getParentOp();
  bool computes = isa_and_nonnull<NestOp, FoldOp, LoopsOp, PackPanelsOp>(stage);
  if (auto list = dyn_cast_or_null<FoldListOp>(stage))
    computes = (*this)->getParentRegion() == &list.getStart();
  if (!computes)
    return emitOpError() << "ragged_load_c1: expected to be in loops of a stage";
  auto operand = getMemory().getDefiningOp<OperandOp>();
  auto param = getMemory().getDefiningOp<ParamOp>();
  if (operand && (operand.getKind() == OperandKind::list || operand.getKind() == OperandKind::length))
    return emitOpError() << "ragged_load_c3: expected memory whose elements can be loaded, but it is a "
                         << stringifyOperandKind(operand.getKind());
  if (param && param.getPanels())
    return emitOpError() << "ragged_load_c3: expected memory whose elements can be loaded, but it is packed";
  return verifyAddress(*this, "c1", "c2", getAddress(), loopsAround(*this), getMemory().getType());
}

static bool isWritable(Value memory) { return isa_and_nonnull<ResultOp, ScratchOp>(memory.getDefiningOp()); }

LogicalResult StoreOp::verify() {
  if (!isWritable(getMemory()))
    return emitOpError() << "ragged_store_c3: expected a result or scratch";
  return verifyAddress(*this, "c1", "c2", getAddress(), loopsAround(*this), getMemory().getType());
}

LogicalResult IndexOp::verify() {
  auto loops = cast<LoopsOp>((*this)->getParentOp());
  if (getDim() >= loops.getOver().size())
    return emitOpError() << "ragged_index_c1: there is no loop " << static_cast<int64_t>(getDim());
  return success();
}

//===----------------------------------------------------------------------===//
// Stages
//===----------------------------------------------------------------------===//

static bool isElement(Type type) { return type.isF32() || type.isInteger(32) || type.isInteger(1); }

/// That a region of a stage computes with scalars, and yields values of these types.
static LogicalResult verifyScalars(Operation *stage, StringRef number, Region &region, TypeRange takes,
                                   TypeRange yields, bool loads = true) {
  bool any = isa<LoopsOp>(stage);
  Block &block = region.front();
  if (block.getArgumentTypes() != takes)
    return violates(stage, number) << "expected a region that takes (" << takes << "), but got ("
                                   << block.getArgumentTypes() << ")";
  auto yield = dyn_cast_or_null<YieldOp>(block.empty() ? nullptr : &block.back());
  if (!yield || yield.getOperandTypes() != yields)
    return violates(stage, number) << "expected a region that yields (" << yields << ")";
  for (Operation &operation : block.without_terminator()) {
    if (isa<LoadOp, StoreOp, IndexOp>(operation)) {
      if (!loads)
        return operation.emitOpError() << constraint(stage, number) << ": expected `arith` and `math` only";
      continue;
    }
    StringRef dialect = operation.getName().getDialectNamespace();
    bool plain = operation.getNumResults() == 1 && operation.getNumRegions() == 0;
    if ((dialect != "arith" && dialect != "math") || !plain)
      return operation.emitOpError() << constraint(stage, number)
                                     << ": expected `arith` and `math` on scalars only";
    for (Type type : llvm::concat<const Type>(SmallVector<Type>(operation.getOperandTypes()),
                                              SmallVector<Type>(operation.getResultTypes())))
      if (any ? !type.isIntOrIndexOrFloat() : !isElement(type))
        return operation.emitOpError() << constraint(stage, number) << ": expected elements of f32, i32 or "
                                       << "i1, but got " << type;
  }
  return success();
}

LogicalResult NestOp::verify() {
  if (failed(verifyLengths(*this, getOver())))
    return failure();
  if (getLanes() && *getLanes() >= getOver().size())
    return emitOpError() << "ragged_nest_c2: there is no loop " << static_cast<int64_t>(*getLanes());
  if (getBy() != lanesOfVector && getBy() != 2 * lanesOfVector)
    return emitOpError() << "ragged_nest_c3: expected vectors of 16 or 32 elements, but got "
                         << static_cast<int64_t>(getBy());
  return success();
}

LogicalResult NestOp::verifyRegions() {
  if (failed(verifyScalars(*this, "c4", getBody(), {}, {})))
    return failure();
  if (!getLanes())
    return success();
  int64_t lanes = *getLanes();
  bool wide = getBy() == 2 * lanesOfVector;
  if (wide && getOver()[lanes] < 2 * lanesOfVector)
    return emitOpError() << "ragged_nest_c3: expected at least 32 iterations, but loop " << lanes << " has "
                         << getOver()[lanes];
  for (Operation &operation : getBody().front()) {
    if (auto store = dyn_cast<StoreOp>(operation); store && along(store.getAddress(), lanes) != 1)
      return store.emitOpError() << "ragged_nest_c2: expected neighbouring elements along loop " << lanes
                                 << ", which runs in vectors";
    if (auto load = dyn_cast<LoadOp>(operation); load && wide) {
      int64_t stride = along(load.getAddress(), lanes);
      if (stride != 0 && stride != 1)
        return load.emitOpError() << "ragged_nest_c3: expected one element or neighbouring ones along loop "
                                  << lanes << ", which runs in two vectors at a time";
    }
  }
  return success();
}

/// From 1 to 8: more would not fit into registers.
static LogicalResult verifyAtOnce(Operation *stage, StringRef number, StringRef name, uint64_t value) {
  if (value >= 1 && value <= 8)
    return success();
  return violates(stage, number) << "expected `" << name << "` to be from 1 to 8, but got "
                                 << static_cast<int64_t>(value);
}

LogicalResult FoldOp::verify() {
  if (failed(verifyLengths(*this, getOver())) || failed(verifyFolding(*this, getOver(), getFolding())))
    return failure();
  SmallVector<int64_t> kept = keptLoops(getOver(), getFolding());
  SmallVector<int64_t> lengths = lengthsOf(getOver(), kept);
  if (failed(verifyAtOnce(*this, "c4", "vectors", getVectors())) ||
      failed(verifyAtOnce(*this, "c4", "neighbours", getNeighbours())))
    return failure();
  if (!isWritable(getMemory()))
    return emitOpError() << "ragged_fold_c6: expected a result or scratch";
  if (failed(verifyAddress(*this, "c6", "c6", getAddress(), lengths, getMemory().getType())))
    return failure();
  if (!getLanes())
    return success();
  int64_t lanes = *getLanes();
  if (!kept.empty() && lanes == kept.back()) {
    if (along(getAddress(), kept.size() - 1) != 1)
      return emitOpError() << "ragged_fold_c6: expected neighbouring results along loop " << lanes
                           << ", which runs in vectors";
    return success();
  }
  if (!llvm::is_contained(getFolding(), lanes))
    return emitOpError() << "ragged_fold_c3: expected the last kept loop or a folded one, but got " << lanes;
  return success();
}

static bool isCombiner(Operation *operation) {
  static constexpr StringLiteral combiners[] = {
      "addf", "mulf", "maximumf", "minimumf", "maxnumf", "minnumf", "addi", "muli",
      "maxsi", "minsi", "maxui", "minui", "andi", "ori", "xori"};
  return operation->getName().getDialectNamespace() == "arith" &&
         llvm::is_contained(combiners, operation->getName().stripDialect());
}

LogicalResult FoldOp::verifyRegions() {
  Type element = getElement(getMemory().getType());
  if (failed(verifyScalars(*this, "c5", getStart(), {}, element)) ||
      failed(verifyScalars(*this, "c5", getStep(), element, element)))
    return failure();
  Value folded = getStep().getArgument(0);
  Operation *combiner = getStep().front().getTerminator()->getOperand(0).getDefiningOp();
  if (!combiner || !isCombiner(combiner) || combiner->getOperand(0) != folded || !folded.hasOneUse() ||
      combiner->getNextNode() != getStep().front().getTerminator())
    return emitOpError() << "ragged_fold_c5: expected the step to end in an operation that combines what "
                            "was folded with a value";
  return success();
}

LogicalResult FoldListOp::verify() {
  if (failed(verifyLengths(*this, getOver())) ||
      failed(verifyAtOnce(*this, "c2", "vectors", getVectors())))
    return failure();
  if (getOver() != cast<MemRefType>(getList().getType()).getShape().drop_front())
    return emitOpError() << "ragged_fold_list_c1: expected the loops of a row of " << getList().getType();
  auto operand = getList().getDefiningOp<OperandOp>();
  if (!operand || operand.getKind() != OperandKind::list)
    return emitOpError() << "ragged_fold_list_c3: expected an operand that is a list";
  if (!isWritable(getMemory()))
    return emitOpError() << "ragged_fold_list_c5: expected a result or scratch";
  if (failed(verifyAddress(*this, "c5", "c5", getAddress(), getOver(), getMemory().getType())))
    return failure();
  if (!getOver().empty() && getOver().back() > 1 && along(getAddress(), getOver().size() - 1) != 1)
    return emitOpError() << "ragged_fold_list_c5: expected neighbouring results along the last loop";
  return success();
}

LogicalResult FoldListOp::verifyRegions() {
  Type element = getElement(getMemory().getType());
  if (element != getElement(getList().getType()))
    return emitOpError() << "ragged_fold_list_c4: expected elements of " << element;
  if (failed(verifyScalars(*this, "c4", getStart(), {}, element)))
    return failure();
  return verifyScalars(*this, "c4", getStep(), {element, element}, element, /*loads=*/false);
}

LogicalResult LoopsOp::verify() {
  if (failed(verifyLengths(*this, getOver())) || failed(verifyFolding(*this, getOver(), getFolding())))
    return failure();
  if (getAddresses().size() != getMemories().size() || getStored().size() != getMemories().size())
    return emitOpError() << "ragged_loops_c4: expected a map and a number of a result for each memory";
  SmallVector<int64_t> lengths = llvm::to_vector(getOver());
  for (int64_t dim : getFolding())
    lengths[dim] = 1;
  for (auto [memory, map] : llvm::zip(getMemories(), getAddresses().getAsValueRange<AffineMapAttr>())) {
    if (!isWritable(memory))
      return emitOpError() << "ragged_loops_c4: expected results or scratch";
    if (failed(verifyAddress(*this, "c4", "c4", map, lengths, memory.getType())))
      return failure();
  }
  return success();
}

LogicalResult LoopsOp::verifyRegions() {
  SmallVector<Type> elements(getStep().getArgumentTypes());
  if (!llvm::all_of(elements, isElement))
    return emitOpError() << "ragged_loops_c3: expected to fold elements of f32, i32 or i1";
  if (failed(verifyScalars(*this, "c3", getStart(), {}, elements)) ||
      failed(verifyScalars(*this, "c3", getStep(), elements, elements)))
    return failure();
  for (auto [memory, result] : llvm::zip(getMemories(), getStored()))
    if (result < 0 || result >= static_cast<int64_t>(elements.size()) ||
        elements[result] != getElement(memory.getType()))
      return emitOpError() << "ragged_loops_c4: expected a result of the elements of " << memory.getType();
  return success();
}

LogicalResult PackPanelsOp::verify() {
  if (failed(verifyLengths(*this, getOver())))
    return failure();
  __int128 room = elementsOfRow(getMemory().getType());
  if (getOver().size() != 2 || !getMemory().getDefiningOp<ScratchOp>() ||
      room != __int128(getOver()[0]) * llvm::divideCeil(getOver()[1], panelColumns) * panelColumns)
    return emitOpError() << "ragged_pack_panels_c1: expected two loops, and scratch of whole panels";
  return success();
}

LogicalResult PackPanelsOp::verifyRegions() {
  return verifyScalars(*this, "c2", getBody(), {}, Float32Type::get(getContext()));
}

LogicalResult ProductOp::verify() {
  int64_t tile = static_cast<int64_t>(getTile()), rows = static_cast<int64_t>(getRows());
  int64_t k = static_cast<int64_t>(getK()), columns = static_cast<int64_t>(getColumns());
  int64_t row = static_cast<int64_t>(getRow());
  for (int64_t size : {rows, k, columns})
    if (size < 1 || size > maxPad)
      return emitOpError() << "ragged_product_c2: expected `rows`, `k` and `columns` of at least one, but got "
                           << size;
  for (Value memory : getOperands())
    if (!getElement(memory.getType()).isF32())
      return emitOpError() << "ragged_product_c7: expected elements of f32, but got " << memory.getType();
  if (failed(verifyAddress(*this, "c3", "c3", getAddress(), rows, getLeft().getType(), k)))
    return failure();

  auto right = cast<MemRefType>(getRight().getType());
  auto param = getRight().getDefiningOp<ParamOp>();
  int64_t panels = param ? static_cast<int64_t>(param.getPanels().value_or(0)) : panelColumns;
  __int128 room = elementsOfRow(right);
  bool fits = row >= 0;
  if (param)
    fits &= panels != 0 && right.getShape().back() == columns && __int128(row) + k <= room / columns;
  else
    fits &= getRight().getDefiningOp<ScratchOp>() && row == 0 &&
            room == __int128(k) * llvm::divideCeil(columns, panelColumns) * panelColumns;
  if (!fits)
    return emitOpError() << "ragged_product_c4: expected packed memory of " << k << " rows from " << row
                         << " on, of " << columns << " columns each";
  static constexpr int64_t tiles[] = {1, 2, 4, 6, 8, 12};
  if (panels == 1 ? tile != 4 : !llvm::is_contained(tiles, tile))
    return emitOpError() << "ragged_product_c1: expected a row tile of "
                         << (panels == 1 ? "4, with panels of one column" : "1, 2, 4, 6, 8 or 12")
                         << ", but got " << tile;

  auto scratch = getMemory().getDefiningOp<ScratchOp>();
  __int128 padded = __int128(llvm::divideCeil(columns, lanesOfVector)) * lanesOfVector;
  if (!scratch || static_cast<int64_t>(scratch.getProducts().value_or(0)) != rows ||
      elementsOfRow(getMemory().getType()) != padded * rows)
    return emitOpError() << "ragged_product_c5: expected scratch of products of " << rows << " rows of "
                         << columns << " columns, padded to whole vectors";
  if (static_cast<bool>(getStart()) != getOffset().has_value() || (getStart() && getOnto()))
    return emitOpError() << "ragged_product_c6: expected `from` with an offset and without `onto`";
  if (getStart()) {
    int64_t offset = static_cast<int64_t>(*getOffset());
    auto packed = getStart().getDefiningOp<ParamOp>();
    if (offset < 0 || __int128(offset) + columns > elementsOfRow(getStart().getType()) ||
        (packed && packed.getPanels()))
      return emitOpError() << "ragged_product_c6: expected " << columns << " elements from " << offset << " on";
  }
  return success();
}
