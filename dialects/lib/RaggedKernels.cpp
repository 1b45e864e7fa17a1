// The loop level of the `ragged` dialect: verifiers of kernels, of their memory and of their stages.

#include "Ragged.h"

#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/AffineMap.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace cohort::ragged;

/// Columns of a packed panel.
static constexpr int64_t panelColumns = 32;

/// Rows of the largest tile of a product on the CPU, and the most that are packed at once.
static constexpr int64_t rowsOfTile = 12;
static constexpr int64_t maxRowsOfBlock = 1536;

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
         llvm::all_of(memory.getShape(), [](int64_t size) { return size > 0 || ShapedType::isDynamic(size); }) &&
         memory.getLayout().isIdentity();
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
  if (getBf16() && !packed)
    return emitOpError() << "ragged_param_c2: expected panels of what is kept in bf16";
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

/// Whether a kernel, or what is in it, is for a GPU.
static bool isForGpu(Operation *operation) {
  auto kernel = isa<KernelOp>(operation) ? cast<KernelOp>(operation) : operation->getParentOfType<KernelOp>();
  Operation *around = kernel ? kernel->getParentOp() : nullptr;
  return around && around->getName().getStringRef() == "gpu.module";
}

/// Whether rows can be kept in bf16; who stores to them and who reads them sees to the rest.
static LogicalResult verifyRounded(ScratchOp scratch) {
  auto type = scratch.getMemory().getType();
  if (!isForGpu(scratch) || scratch.getOnChip() || scratch.getProducts() || !isRowMemory(type) ||
      !getElement(type).isF32() || elementsOfRow(type) % 8 != 0)
    return scratch.emitOpError() << "ragged_scratch_c4: expected what is kept in bf16 to be rows of f32 of a multiple of 8 "
                                    "elements in the memory of a GPU, but got "
                                 << type;
  for (Operation *user : scratch.getMemory().getUsers())
    if (!isa<ProductsOp, StoreOp>(user)) {
      auto diagnostic = scratch.emitOpError()
                        << "ragged_scratch_c4: expected only products to read what is kept in bf16, and only stores to write it";
      diagnostic.attachNote(user->getLoc()) << "touched here";
      return diagnostic;
    }
  return success();
}

LogicalResult ScratchOp::verify() {
  if (getMemory().getType().getNumDynamicDims() > 1)
    return emitOpError() << "ragged_scratch_c2: expected rows of static shape, but got " << getMemory().getType();
  if (getOnChip()) {
    // Who touches it runs in one launch, whose blocks each have their own.
    Operation *around = nullptr;
    bool together = llvm::all_of(getMemory().getUsers(), [&](Operation *user) {
      Operation *blocks = user->getParentOfType<BlocksOp>();
      return blocks && (!around || blocks == around) && (around = blocks);
    });
    if (!isForGpu(*this) || !isRowMemory(getMemory().getType()) || !together)
      return emitOpError() << "ragged_scratch_c3: expected what is on the chip to be rows that the stages of one "
                              "`ragged.blocks` for a GPU touch alone";
  }
  if (getBf16() && failed(verifyRounded(*this)))
    return failure();
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

/// Whether a kernel's unit is the call.
static bool isPerInstance(KernelOp kernel) {
  Block &block = kernel.getBody().front();
  return !block.empty() && isa<CallsOp>(block.back());
}

/// Whether an operation is computed for a call.
static bool isOfCall(Operation *operation) { return operation->getParentOfType<CallsOp>() != nullptr; }

/// That each name is a length of the kernel around, one for each dynamic size.
static bool areLengths(Operation *operation, ArrayRef<int64_t> sizes, std::optional<ArrayAttr> names) {
  if (static_cast<size_t>(llvm::count_if(sizes, ShapedType::isDynamic)) != (names ? names->size() : 0))
    return false;
  if (!names)
    return true;
  auto lengths = operation->getParentOfType<KernelOp>().getLengthsAttr();
  return llvm::all_of(*names, [&](Attribute name) { return lengths && llvm::is_contained(lengths, name); });
}

/// That the dims of a call are named, of memory that is declared.
template <typename Declaration> static LogicalResult verifyDims(Declaration declaration, bool mayHave) {
  auto kernel = declaration->template getParentOfType<KernelOp>();
  ArrayRef<int64_t> sizes = declaration.getMemory().getType().getShape().drop_front();
  if (!areLengths(declaration, sizes, declaration.getDims()) ||
      (declaration.getDims() && !(mayHave && isPerInstance(kernel))))
    return declaration.emitOpError() << "ragged_" << declaration->getName().stripDialect()
                                     << "_c1: expected a length of the kernel for each dynamic dim of "
                                     << declaration.getMemory().getType() << " behind the first";
  return success();
}

LogicalResult OperandOp::verify() { return verifyDims(*this, getKind() == OperandKind::expanded); }

LogicalResult ResultOp::verify() { return verifyDims(*this, true); }

static bool isStage(Operation &operation) {
  return isa<NestOp, FoldOp, FoldListOp, LoopsOp>(operation) ||
         (isa<PackPanelsOp, ProductOp>(operation) && !isForGpu(&operation));
}

bool KernelOp::canDiscardOnUseEmpty() { return true; }

LogicalResult KernelOp::verifyRegions() {
  Block &block = getBody().front();
  bool stages = !isPerInstance(*this), launches = stages && isForGpu(*this);
  bool ends = !block.empty() && (launches || isa<BlocksOp, CallsOp>(block.back()));
  if (!ends)
    return emitOpError() << "ragged_kernel_c1: expected the region to end in `ragged.blocks` or `ragged.calls`";
  for (Operation &operation : block)
    if (!(stages && isStage(operation)) && !(launches && isa<BlocksOp, TilesOp, WaveOp>(operation)) &&
        !isa<OperandOp, ResultOp, ParamOp, ConstantOp, ScratchOp>(operation) &&
        !(isa<BlocksOp, CallsOp>(operation) && &operation == &block.back()))
      return operation.emitOpError() << "ragged_kernel_c1: expected declarations and stages only";
  SmallVector<Operation *> outermost;
  for (Operation &operation : block) {
    outermost.push_back(&operation);
    if (auto wave = dyn_cast<WaveOp>(operation))
      for (Operation &inner : wave.getBody().front())
        outermost.push_back(&inner);
  }
  for (Operation *operation : outermost) {
    if (!isStage(*operation))
      continue;
    WalkResult walk = operation->walk([](Operation *nested) {
      bool rows = llvm::any_of(nested->getOperandTypes(), isRowMemory);
      return rows ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (walk.wasInterrupted())
      return operation->emitOpError() << "ragged_kernel_c2: expected what runs once a call to touch what all "
                                         "rows share only";
  }
  if (getRowProducts() && getRowProducts()->size() % 2 != 0)
    return emitOpError() << "ragged_kernel_c1: expected pairs in `row_products`";
  return success();
}

/// The memory that an operation itself writes, without what is in its regions.
static SmallVector<Value> writtenBy(Operation *operation) {
  return TypeSwitch<Operation *, SmallVector<Value>>(operation)
      .Case<StoreOp, FoldOp, FoldListOp, PackPanelsOp, ProductOp, MatmulOp, OnlineSoftmaxOp>(
          [](auto stage) { return SmallVector<Value>{stage.getMemory()}; })
      .Case([](LoopsOp loops) { return SmallVector<Value>(loops.getMemories()); })
      .Default([](Operation *) { return SmallVector<Value>(); });
}

void cohort::ragged::forEachMemory(Operation *operation, llvm::function_ref<void(Value, bool)> callback) {
  operation->walk<WalkOrder::PreOrder>([&](Operation *nested) {
    SmallVector<Value> written = writtenBy(nested);
    for (Value operand : nested->getOperands())
      if (isa<MemRefType>(operand.getType()))
        callback(operand, llvm::is_contained(written, operand));
  });
}

/// Whether an operation is part of the launch that the one before it begins: stages between two launches over rows,
/// which run once, are one; and of a call those that go on from sums.
static bool continuesLaunch(Operation &operation, Operation *before) {
  if (auto matmul = dyn_cast<MatmulOp>(operation))
    return matmul.getOnto();
  return before && !isOfCall(&operation) && isStage(operation) && isStage(*before);
}

LogicalResult WaveOp::verifyRegions() {
  bool ofCall = isOfCall(*this);
  SmallVector<SmallVector<Operation *>> launches;
  Operation *before = nullptr;
  for (Operation &operation : getBody().front()) {
    bool isPart = ofCall ? isa<NestOp, MatmulOp, OnlineSoftmaxOp>(operation)
                         : isStage(operation) || isa<BlocksOp, TilesOp>(operation);
    if (!isPart)
      return operation.emitOpError() << "ragged_wave_c1: expected launches only";
    if (launches.empty() || !continuesLaunch(operation, before))
      launches.emplace_back();
    launches.back().push_back(&operation);
    before = &operation;
  }
  if (!isForGpu(*this) || launches.size() < 2)
    return emitOpError() << "ragged_wave_c1: expected two launches or more, for a GPU";
  // Who writes each memory, and who touches it.
  DenseMap<Value, size_t> writers;
  for (auto [number, launch] : llvm::enumerate(launches))
    for (Operation *operation : launch)
      forEachMemory(operation, [&, number = number](Value memory, bool isWritten) {
        if (isWritten)
          writers.try_emplace(memory, number);
      });
  for (auto [number, launch] : llvm::enumerate(launches))
    for (Operation *operation : launch) {
      bool isShared = false;
      forEachMemory(operation, [&, number = number](Value memory, bool) {
        auto writer = writers.find(memory);
        isShared |= writer != writers.end() && writer->second != number;
      });
      if (isShared)
        return operation->emitOpError() << "ragged_wave_c2: it touches memory that another launch of the wave writes";
    }
  return success();
}

LogicalResult BlocksOp::verify() {
  for (auto [number, name, value] :
       {std::tuple<StringRef, StringRef, uint64_t>{"c1", "of", getOf()}, {"c2", "tile", getTile()}})
    if (value < 1 || value > 65536)
      return emitOpError() << "ragged_blocks_" << number << ": expected `" << name
                           << "` to be from 1 to 65536, but got " << static_cast<int64_t>(value);
  ArrayAttr lengths = (*this)->getParentOfType<KernelOp>().getLengthsAttr();
  if (getFused() && (!lengths || lengths.empty()))
    return emitOpError() << "ragged_blocks_c4: expected `fused` rows of a kernel with `lengths`";
  return success();
}

LogicalResult BlocksOp::verifyRegions() {
  for (Operation &operation : getBody().front())
    if (!isStage(operation))
      return operation.emitOpError() << "ragged_blocks_c3: expected stages only";
  return success();
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

/// What a set says of a kernel's lengths, as sums that are at least zero: the coefficient of each length, and
/// the constant behind them. Nothing when it says something else.
static std::optional<SmallVector<SmallVector<int64_t>>> inequalities(IntegerSet set, size_t lengths) {
  if (set.getNumDims() != lengths || set.getNumSymbols() != 0)
    return std::nullopt;
  SmallVector<SmallVector<int64_t>> sums;
  for (auto [number, constraint] : llvm::enumerate(set.getConstraints()))
    for (int64_t sign : {1, -1}) {
      SmallVector<int64_t> sum(lengths + 1, 0);
      // One that is of no length says nothing, or what never holds.
      if (failed(addLinear(constraint, sign, sum)) ||
          llvm::all_of(ArrayRef(sum).drop_back(), [](int64_t coefficient) { return coefficient == 0; }))
        return std::nullopt;
      if (sign == 1 || set.isEq(number))
        sums.push_back(std::move(sum));
    }
  return sums;
}

LogicalResult CallsOp::verify() {
  auto kernel = cast<KernelOp>((*this)->getParentOp());
  ArrayAttr lengths = kernel.getLengthsAttr();
  ArrayAttr rows = kernel.getRowsAttr();
  if (getSplit() && *getSplit() != lanesOfVector)
    return emitOpError() << "ragged_calls_c1: expected loops to be split at 16, but got "
                         << static_cast<int64_t>(*getSplit());
  int64_t grain = static_cast<int64_t>(getGrain().value_or(1));
  bool ofLength = rows && !rows.empty() && lengths && llvm::is_contained(lengths, rows[0]);
  if (grain < 1 || grain > 65536 || static_cast<int64_t>(getShared().value_or(0)) < 0 ||
      (getGrain() && !ofLength))
    return emitOpError() << "ragged_calls_c2: expected a grain of 1 to 65536 rows of a call whose first dim is "
                            "a length, and `shared` of at least 0";
  SmallVector<Attribute> flops;
  if (getFlops())
    llvm::append_range(flops, *getFlops());
  for (Attribute product : flops) {
    auto factors = dyn_cast<ArrayAttr>(product);
    if (!factors || !llvm::all_of(factors, [&](Attribute factor) {
          auto number = dyn_cast<IntegerAttr>(factor);
          return number ? number.getInt() >= 0 : lengths && llvm::is_contained(lengths, factor);
        }))
      return emitOpError() << "ragged_calls_c3: expected lengths of the kernel and numbers, but got " << product;
  }
  for (int64_t number : getRising().value_or(ArrayRef<int64_t>()))
    if (number < 0 || number >= static_cast<int64_t>(flops.size()))
      return emitOpError() << "ragged_calls_c3: there is no product " << number;
  if (auto given = getGiven(); given && !inequalities(*given, lengths ? lengths.size() : 0))
    return emitOpError() << "ragged_calls_c6: expected linear constraints of the kernel's lengths, but got "
                         << getGivenAttr();
  if (auto padding = getPadding())
    if (padding->size() != 2 || llvm::any_of(*padding, [](int64_t by) { return by < 1 || by > maxPad; }))
      return emitOpError() << "ragged_calls_c4: expected two numbers of at least one";
  return success();
}

LogicalResult CallsOp::verifyRegions() {
  for (Operation &operation : getBody().front())
    if (!isa<NestOp, MatmulOp, OnlineSoftmaxOp, WaveOp>(operation))
      return operation.emitOpError() << "ragged_calls_c5: expected stages of a call only";
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
  if (auto tiles = dyn_cast<TilesOp>(stage))
    return llvm::to_vector(tiles.getOver());
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

/// The coefficient of each index, and the constant behind them; nothing when the map is not linear.
static std::optional<SmallVector<int64_t>> linear(AffineMap map, size_t loops, unsigned results = 1,
                                                  unsigned result = 0) {
  if (map.getNumDims() != loops || map.getNumSymbols() != 0 || map.getNumResults() != results)
    return std::nullopt;
  SmallVector<int64_t> flat(loops + 1, 0);
  if (failed(addLinear(map.getResult(result), 1, flat)))
    return std::nullopt;
  return flat;
}

/// A dim of a call, or a loop over one: its size, or the length's name.
struct Extent {
  int64_t size;
  Attribute name;
};

static void appendExtents(ArrayRef<int64_t> sizes, std::optional<ArrayAttr> names,
                          SmallVectorImpl<Extent> &extents) {
  size_t name = 0;
  for (int64_t size : sizes)
    extents.push_back({size, ShapedType::isDynamic(size) && names ? (*names)[name++] : Attribute()});
}

/// The loops around an operation that is computed for a call.
static SmallVector<Extent> loopsOfCall(Operation *operation) {
  Operation *around = operation->getParentOp();
  SmallVector<Extent> loops;
  if (auto reduce = dyn_cast<ReduceOp>(around)) {
    loops = loopsOfCall(around);
    appendExtents(reduce.getOver(), reduce.getDims(), loops);
  } else if (auto nest = dyn_cast<NestOp>(around)) {
    appendExtents(nest.getOver(), nest.getDims(), loops);
  } else if (auto matmul = dyn_cast<MatmulOp>(around)) {
    appendExtents(matmul.getOver(), matmul.getDims(), loops);
    if (operation->getParentRegion() != &matmul.getFinish())
      appendExtents(matmul.getDepth(), matmul.getDepthDims(), loops);
  } else if (auto online = dyn_cast<OnlineSoftmaxOp>(around)) {
    Region *region = operation->getParentRegion();
    appendExtents(online.getOver(), online.getDims(), loops);
    if (region != &online.getFinish())
      appendExtents(online.getKeys(), online.getKeyDims(), loops);
    if (region == &online.getLeft() || region == &online.getRight())
      loops.push_back({static_cast<int64_t>(online.getDepth()), Attribute()});
  }
  return loops;
}

/// The dims of a call in memory that a kernel declares.
static SmallVector<Extent> dimsOf(Value memory) {
  SmallVector<Extent> dims;
  ArrayRef<int64_t> sizes = cast<MemRefType>(memory.getType()).getShape();
  Operation *declaration = memory.getDefiningOp();
  if (auto operand = dyn_cast_or_null<OperandOp>(declaration)) {
    bool isScalar = operand.getKind() == OperandKind::scalar || operand.getKind() == OperandKind::length;
    appendExtents(isScalar ? ArrayRef<int64_t>() : sizes.drop_front(), operand.getDims(), dims);
  } else if (auto result = dyn_cast_or_null<ResultOp>(declaration)) {
    appendExtents(sizes.drop_front(), result.getDims(), dims);
  } else if (auto sums = dyn_cast<BlockArgument>(memory)) {
    auto online = dyn_cast<OnlineSoftmaxOp>(sums.getOwner()->getParentOp());
    if (online)
      appendExtents(online.getOver(), online.getDims(), dims);
  } else {
    appendExtents(sizes, std::nullopt, dims);
  }
  return dims;
}

/// A sum of a kernel's lengths, each times a coefficient, and of a constant.
class OfLengths {
public:
  explicit OfLengths(Operation *operation)
      : lengths(operation->getParentOfType<KernelOp>().getLengthsAttr()),
        coefficients(lengths ? lengths.size() : 0, 0) {}

  void add(__int128 times, Extent extent = {1, {}}) {
    if (!extent.name)
      constant += times * extent.size;
    else if (size_t length = llvm::find(lengths, extent.name) - lengths.begin(); length < size())
      coefficients[length] += times;
  }

  size_t size() const { return coefficients.size(); }

  /// Whether it is at least zero: as it stands, since no length is negative, or as something at least as small is.
  bool isNotNegative(ArrayRef<SmallVector<int64_t>> given) const {
    auto exceeds = [&](ArrayRef<int64_t> least) {
      return constant >= least.back() &&
             llvm::all_of(llvm::zip(coefficients, least), [](auto pair) { return std::get<0>(pair) >= std::get<1>(pair); });
    };
    return exceeds(SmallVector<int64_t>(coefficients.size() + 1, 0)) || llvm::any_of(given, exceeds);
  }

private:
  ArrayAttr lengths;
  SmallVector<__int128> coefficients;
  __int128 constant = 0;
};

/// That a map of these loops leads to an element of a call's memory, an index a dim: of those that the loops
/// make the least is not negative and the largest below the dim's size, whatever the call's lengths, of which
/// is known what is `given`.
static LogicalResult verifyIndexOf(Operation *operation, StringRef isLinear, StringRef isInside, AffineMap map,
                                   Value memory, ArrayRef<Extent> loops) {
  SmallVector<Extent> dims = dimsOf(memory);
  if (dims.empty() && (map.getNumDims() != loops.size() || map.getNumResults() != 0))
    return violates(operation, isLinear) << "expected a map of " << loops.size() << " indices to none, but got "
                                         << AffineMapAttr::get(map);
  auto calls = operation->getParentOfType<CallsOp>();
  OfLengths none(operation);
  SmallVector<SmallVector<int64_t>> given;
  if (auto set = calls.getGiven())
    if (auto sums = inequalities(*set, none.size()))
      given = std::move(*sums);
  for (auto [number, dim] : llvm::enumerate(dims)) {
    auto flat = linear(map, loops.size(), dims.size(), number);
    if (!flat)
      return violates(operation, isLinear) << "expected a linear map of " << loops.size() << " indices to "
                                       << dims.size() << ", but got " << AffineMapAttr::get(map);
    OfLengths least = none, behind = none;
    least.add(flat->back());
    behind.add(1, dim);
    behind.add(-1 - __int128(flat->back()));
    for (auto [coefficient, loop] : llvm::zip(*flat, loops)) {
      // A loop ends at one less than its size.
      OfLengths &moved = coefficient < 0 ? least : behind;
      __int128 by = coefficient < 0 ? __int128(coefficient) : -__int128(coefficient);
      if (coefficient == 0)
        continue;
      moved.add(by, loop);
      moved.add(-by);
    }
    if (!least.isNotNegative(given) || !behind.isNotNegative(given))
      return violates(operation, isInside) << AffineMapAttr::get(map) << " leads out of dim " << number
                                       << " of a call in " << memory.getType();
  }
  return success();
}

static LogicalResult verifyIndex(Operation *operation, AffineMap map, Value memory) {
  return verifyIndexOf(operation, "c1", "c2", map, memory, loopsOfCall(operation));
}

/// That loops over a call's dims are as long as lengths of the kernel, or as known numbers of at least one.
static LogicalResult verifyExtents(Operation *operation, ArrayRef<int64_t> over, std::optional<ArrayAttr> names) {
  bool known = llvm::all_of(over, [](int64_t size) {
    return ShapedType::isDynamic(size) || (size > 0 && size <= maxPad);
  });
  if (!known || !areLengths(operation, over, names))
    return violates(operation, "c1") << "expected loops over lengths of the kernel, or of 1 to 2^31 - 1 iterations";
  return success();
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
  if (isOfCall(*this)) {
    auto param = getMemory().getDefiningOp<ParamOp>();
    if (param && param.getPanels())
      return emitOpError() << "ragged_load_c3: expected memory whose elements can be loaded, but it is packed";
    return verifyIndex(*this, getAddress(), getMemory());
  }
  bool computes = isa_and_nonnull<NestOp, FoldOp, LoopsOp, PackPanelsOp, TilesOp>(stage);
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

/// That loads of sums in what finishes them are of the index of their own store in all dims but the last
/// `free` ones.
static LogicalResult verifyOwnSums(Operation *stage, Region &finish, Value sums, AffineMap own, unsigned free) {
  WalkResult walk = finish.walk([&](LoadOp load) {
    if (load.getMemory() != sums)
      return WalkResult::advance();
    ArrayRef<AffineExpr> at = load.getAddress().getResults(), expected = own.getResults();
    if (at.size() == expected.size() && at.drop_back(free) == expected.drop_back(free))
      return WalkResult::advance();
    violates(stage, "c5") << "expected sums to be loaded at the index at which they are stored";
    return WalkResult::interrupt();
  });
  return failure(walk.wasInterrupted());
}

static bool isWritable(Value memory) { return isa_and_nonnull<ResultOp, ScratchOp>(memory.getDefiningOp()); }

/// Whether a thread of a GPU can compute `count` neighbours along the last of the loops `over` at once.
static bool areTakenAtOnce(ArrayRef<int64_t> over, uint64_t count) {
  return count == 1 || ((count == 2 || count == 4) && !over.empty() && over.back() % static_cast<int64_t>(count) == 0);
}

/// Whether a store takes four neighbours at once, from a multiple of four on.
static bool storesByFour(StoreOp store) {
  Operation *stage = store->getParentOp();
  auto nest = dyn_cast<NestOp>(stage);
  auto tiles = dyn_cast<TilesOp>(stage);
  if (!(nest ? nest.getBy() == 4 : tiles && tiles.getRounded()))
    return false;
  ArrayRef<int64_t> over = nest ? nest.getOver() : tiles.getOver();
  if (!areTakenAtOnce(over, 4))
    return false;
  SmallVector<int64_t> terms = *linear(store.getAddress(), over.size());
  bool aligned = terms[over.size() - 1] == 1 && terms.back() % 4 == 0;
  for (auto [coefficient, length] : llvm::zip(ArrayRef(terms).take_front(over.size() - 1), over))
    aligned &= length == 1 || coefficient % 4 == 0;
  return aligned;
}

LogicalResult StoreOp::verify() {
  if (!isWritable(getMemory()))
    return emitOpError() << "ragged_store_c3: expected a result or scratch";
  if (isOfCall(*this))
    return getMemory().getDefiningOp<ResultOp>() ? verifyIndex(*this, getAddress(), getMemory())
                                                 : emitOpError() << "ragged_store_c3: expected a result";
  if (failed(verifyAddress(*this, "c1", "c2", getAddress(), loopsAround(*this), getMemory().getType())))
    return failure();
  auto scratch = getMemory().getDefiningOp<ScratchOp>();
  if (scratch && scratch.getBf16() && !storesByFour(*this))
    return emitOpError() << "ragged_store_c4: expected a nest `by 4` or a tile that is rounded to store 4 aligned neighbours "
                            "at once to what is kept in bf16";
  return success();
}

LogicalResult IndexOp::verify() {
  auto loops = cast<LoopsOp>((*this)->getParentOp());
  if (getDim() >= loops.getOver().size())
    return emitOpError() << "ragged_index_c1: there is no loop " << static_cast<int64_t>(getDim());
  return success();
}

LogicalResult PositionOp::verify() {
  if (!isOfCall(*this) || !linear(getAddress(), loopsOfCall(*this).size()))
    return emitOpError() << "ragged_position_c1: expected a linear map of the loops of a call to one number";
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
    if (isa<ProductsOp>(operation) && isa<TilesOp>(stage))
      continue;
    if (isa<LoadOp, StoreOp, IndexOp, PositionOp, ReduceOp>(operation)) {
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

/// Whether the lanes of a stage can be rows.
static bool runsOverRows(Operation *stage) { return isa<BlocksOp>(stage->getParentOp()) && !isForGpu(stage); }

LogicalResult NestOp::verify() {
  bool ofCall = isOfCall(*this);
  if (getAcrossRows() && (!runsOverRows(*this) || getLanes() || getBy() != lanesOfVector))
    return emitOpError() << "ragged_nest_c6: expected a stage of `ragged.blocks` for the CPU whose loops do not run in "
                            "vectors";
  if (failed(ofCall ? verifyExtents(*this, getOver(), getDims()) : verifyLengths(*this, getOver())))
    return failure();
  if (ofCall && getBy() != lanesOfVector)
    return emitOpError() << "ragged_nest_c3: expected vectors of 16 elements in a stage of a call, but got "
                         << static_cast<int64_t>(getBy());
  if (!ofCall && isForGpu(*this)) {
    if (getLanes() || !areTakenAtOnce(getOver(), getBy()))
      return emitOpError() << "ragged_nest_c3: expected a thread of a GPU to take 1, 2 or 4 neighbours along the last loop, "
                              "whose length is a multiple of that, but got "
                           << static_cast<int64_t>(getBy());
    return success();
  }
  if (getLanes() && *getLanes() >= getOver().size())
    return emitOpError() << "ragged_nest_c2: there is no loop " << static_cast<int64_t>(*getLanes());
  if (getBy() != lanesOfVector && getBy() != 2 * lanesOfVector)
    return emitOpError() << "ragged_nest_c3: expected vectors of 16 or 32 elements, but got "
                         << static_cast<int64_t>(getBy());
  return success();
}

/// A nest of a call ends in its one store, along whose last dims its vectors run.
static LogicalResult verifyNestOfCall(NestOp nest) {
  Block &block = nest.getBody().front();
  auto stores = block.getOps<StoreOp>();
  if (std::distance(stores.begin(), stores.end()) != 1 || !isa<StoreOp>(block.getTerminator()->getPrevNode()))
    return nest.emitOpError() << "ragged_nest_c5: expected one store, the last operation";
  if (!nest.getLanes())
    return success();
  StoreOp store = *stores.begin();
  int64_t lanes = *nest.getLanes();
  int64_t stride = 0, between = 1;
  SmallVector<Extent> dims = dimsOf(store.getMemory());
  for (int64_t dim = static_cast<int64_t>(dims.size()) - 1; dim >= 0; --dim) {
    auto flat = linear(store.getAddress(), nest.getOver().size(), dims.size(), dim);
    int64_t step = 0;
    // What a length or too large a number lies between is not side by side.
    if (!flat || ((*flat)[lanes] != 0 &&
                  (between == 0 || llvm::MulOverflow((*flat)[lanes], between, step) ||
                   llvm::AddOverflow(stride, step, stride))))
      stride = ShapedType::kDynamic, between = 0;
    if (dims[dim].name || llvm::MulOverflow(between, dims[dim].size, between))
      between = 0;
  }
  if (stride != 1)
    return store.emitOpError() << "ragged_nest_c2: expected neighbouring elements along loop " << lanes
                               << ", which runs in vectors";
  return success();
}

LogicalResult NestOp::verifyRegions() {
  if (failed(verifyScalars(*this, "c4", getBody(), {}, {})))
    return failure();
  if (isOfCall(*this))
    return verifyNestOfCall(*this);
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
  if (getAcrossRows() && (!runsOverRows(*this) || getLanes()))
    return emitOpError() << "ragged_fold_c7: expected a stage of `ragged.blocks` for the CPU whose loops do not run in "
                            "vectors";
  if (!isWritable(getMemory()))
    return emitOpError() << "ragged_fold_c6: expected a result or scratch";
  if (failed(verifyAddress(*this, "c6", "c6", getAddress(), lengths, getMemory().getType())))
    return failure();
  if (isForGpu(*this)) {
    int64_t last = static_cast<int64_t>(getOver().size()) - 1;
    if (!areTakenAtOnce(getOver(), getVectors()) || getNeighbours() != 1 ||
        (getVectors() > 1 && !llvm::is_contained(getFolding(), last)))
      return emitOpError() << "ragged_fold_c4: expected a thread of a GPU to fold 1, 2 or 4 neighbours along the last loop, "
                              "if it is folded and as long as a multiple of that";
    if (getLanes() && !llvm::is_contained(getFolding(), static_cast<int64_t>(*getLanes())))
      return emitOpError() << "ragged_fold_c3: expected the lanes of a GPU to fold along a folded loop, but got "
                           << static_cast<int64_t>(*getLanes());
    return success();
  }
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

/// That the last operation of a region takes the region's argument, which nothing else uses, and a value.
static bool endsInCombiner(Region &region) {
  Value folded = region.getArgument(0);
  Operation *end = region.front().getTerminator();
  Operation *combiner = end->getOperand(0).getDefiningOp();
  return combiner && isCombiner(combiner) && combiner->getOperand(0) == folded && folded.hasOneUse() &&
         combiner->getNextNode() == end;
}

LogicalResult FoldOp::verifyRegions() {
  Type element = getElement(getMemory().getType());
  if (failed(verifyScalars(*this, "c5", getStart(), {}, element)) ||
      failed(verifyScalars(*this, "c5", getStep(), element, element)))
    return failure();
  if (!endsInCombiner(getStep()))
    return emitOpError() << "ragged_fold_c5: expected the step to end in an operation that combines what "
                            "was folded with a value";
  return success();
}

LogicalResult ReduceOp::verify() {
  if (!isOfCall(*this))
    return emitOpError() << "ragged_reduce_c2: expected to be computed for a call";
  return verifyExtents(*this, getOver(), getDims());
}

LogicalResult ReduceOp::verifyRegions() {
  Type element = getResult().getType();
  if (failed(verifyScalars(*this, "c3", getBody(), element, element)))
    return failure();
  if (!endsInCombiner(getBody()) || getOver().empty() || getBody().front().getOps<StoreOp>().begin() !=
                                                              getBody().front().getOps<StoreOp>().end())
    return emitOpError() << "ragged_reduce_c3: expected loops, and a region that ends in an operation that "
                            "combines what was folded with a value";
  return success();
}

/// What stages of products have in common: loops, one dim that is summed over, and a result.
template <typename Stage>
static LogicalResult verifyPacked(Stage stage, ArrayRef<int64_t> summed, std::optional<ArrayAttr> names) {
  if (stage.getOver().size() < 2 || summed.size() != 1)
    return violates(stage, "c1") << "expected two loops or more and one dim that is summed over";
  if (failed(verifyExtents(stage, stage.getOver(), stage.getDims())) ||
      failed(verifyExtents(stage, summed, names)))
    return failure();
  if (!stage.getMemory().template getDefiningOp<ResultOp>() || !getElement(stage.getMemory().getType()).isF32())
    return violates(stage, "c3") << "expected a result of f32";
  if (stage.getLanes() && *stage.getLanes() >= stage.getOver().size())
    return violates(stage, "c1") << "there is no loop " << static_cast<int64_t>(*stage.getLanes());
  SmallVector<Extent> loops;
  appendExtents(stage.getOver(), stage.getDims(), loops);
  return verifyIndexOf(stage, "c3", "c3", stage.getAddress(), stage.getMemory(), loops);
}

/// Whether blocks of a product may have as many rows on the CPU: whole tiles of its largest micro-kernel.
static bool areRowsOfBlock(int64_t rows) {
  return rows >= rowsOfTile && rows <= maxRowsOfBlock && rows % rowsOfTile == 0;
}

LogicalResult MatmulOp::verify() {
  if (failed(verifyPacked(*this, getDepth(), getDepthDims())))
    return failure();
  ArrayRef<int64_t> blocks = getBlocks();
  if (blocks.size() != 2 || blocks[0] < 1 || blocks[0] > 2048 || blocks[1] < 1 || blocks[1] > 1024)
    return emitOpError() << "ragged_matmul_c2: expected blocks of 1 to 2048 columns and 1 to 1024 terms";
  std::optional<int64_t> rows = getRows();
  if (isForGpu(*this) && rows)
    return emitOpError() << "ragged_matmul_c2: expected no `rows`, which follow from the columns on a GPU";
  if (!isForGpu(*this) && !(rows && areRowsOfBlock(*rows)))
    return emitOpError() << "ragged_matmul_c2: expected blocks of `rows` that are a multiple of " << rowsOfTile
                         << " up to " << maxRowsOfBlock;
  return success();
}

LogicalResult MatmulOp::verifyRegions() {
  Type element = Float32Type::get(getContext());
  if (failed(verifyScalars(*this, "c4", getLeft(), {}, element)) ||
      failed(verifyScalars(*this, "c4", getRight(), {}, element)))
    return failure();
  if (getFinish().empty())
    return success();
  if (failed(verifyScalars(*this, "c4", getFinish(), {}, element)))
    return failure();
  return verifyOwnSums(*this, getFinish(), getMemory(), getAddress(), getByRows() ? 1 : 0);
}

LogicalResult OnlineSoftmaxOp::verify() {
  if (failed(verifyPacked(*this, getKeys(), getKeyDims())))
    return failure();
  if (getOver().back() < 1 || getOver().back() > 1024)
    return emitOpError() << "ragged_online_softmax_c1: expected 1 to 1024 columns";
  if (getDepth() < 1 || getDepth() > 1024)
    return emitOpError() << "ragged_online_softmax_c2: expected a depth of 1 to 1024";
  if (getUntil().has_value() != getMasked().has_value())
    return emitOpError() << "ragged_online_softmax_c6: expected `until` with `masked`";
  ArrayRef<int64_t> blocks = getBlocks();
  if (isForGpu(*this)) {
    if (blocks.size() != 2 || !llvm::all_of(blocks, [](int64_t size) { return size == 32 || size == 64; }))
      return emitOpError() << "ragged_online_softmax_c7: expected blocks of 32 or 64 rows and keys on a GPU";
    return success();
  }
  if (blocks.size() != 2 || !areRowsOfBlock(blocks[0]) || blocks[1] < panelColumns || blocks[1] > 1024 ||
      blocks[1] % panelColumns)
    return emitOpError() << "ragged_online_softmax_c7: expected blocks of a multiple of " << rowsOfTile << " rows up to "
                         << maxRowsOfBlock << " and a multiple of " << panelColumns << " keys up to 1024";
  return success();
}

LogicalResult OnlineSoftmaxOp::verifyRegions() {
  Type element = Float32Type::get(getContext());
  SmallVector<int64_t> shape = {ShapedType::kDynamic};
  llvm::append_range(shape, getOver());
  Type sums = MemRefType::get(shape, element);
  for (Region *region : {&getLeft(), &getRight(), &getValues()})
    if (failed(verifyScalars(*this, "c4", *region, {}, element)))
      return failure();
  if (failed(verifyScalars(*this, "c4", getScores(), element, element)) ||
      failed(verifyScalars(*this, "c4", getFinish(), sums, element)))
    return failure();
  AffineMap own = AffineMap::getMultiDimIdentityMap(getOver().size(), getContext());
  return verifyOwnSums(*this, getFinish(), getFinish().getArgument(0), own, 1);
}

LogicalResult FoldListOp::verify() {
  if (failed(verifyLengths(*this, getOver())) ||
      failed(verifyAtOnce(*this, "c2", "vectors", getVectors())))
    return failure();
  if (isForGpu(*this) && !areTakenAtOnce(getOver(), getVectors()))
    return emitOpError() << "ragged_fold_list_c2: expected a thread of a GPU to fold 1, 2 or 4 neighbours along the last "
                            "loop, whose length is a multiple of that, but got "
                         << static_cast<int64_t>(getVectors());
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

//===----------------------------------------------------------------------===//
// Tiles of a GPU
//===----------------------------------------------------------------------===//

/// Products at the same place of a tile, at most.
static constexpr size_t maxGates = 8;

static int64_t columnsOf(TilesOp tiles) { return tiles.getOver().empty() ? 1 : tiles.getOver().back(); }

static LogicalResult verifySize(TilesOp tiles, StringRef name, ArrayRef<int64_t> size) {
  auto among = [](int64_t value, ArrayRef<int64_t> values) { return llvm::is_contained(values, value); };
  bool isLargest = name == "largest";
  bool fits = size.size() == (isLargest ? 6 : 4);
  if (fits && isLargest)
    fits = among(size[4], {4, 8}) && among(size[5], {2, 3, 4}) && tiles.getRounded();
  if (fits && !tiles.getRounded()) {
    fits = size[0] >= 1 && size[0] <= 16 && among(size[1], {1, 2, 4}) && size[2] >= 4 && size[2] <= 64 &&
           size[2] % 4 == 0 && size[3] == 1;
  } else if (fits) {
    int64_t step = *tiles.getRounded() == cohort::cfb::Precision::bf16 ? 16 : 8;
    fits = among(size[0], {2, 4, 6, 8}) && size[1] >= 2 && size[1] <= 16 && size[1] % 2 == 0 && size[2] >= step &&
           size[2] <= 64 && size[2] % step == 0 && among(size[3], {1, 2, 4});
  }
  if (!fits)
    return tiles.emitOpError() << "ragged_tiles_c2: expected `" << name << "` to be rows and columns of a thread, terms in "
                               << "shared memory and warps side by side that threads can have"
                               << (isLargest ? ", warps and how many times as many terms of a tile that is rounded" : "")
                               << ", but got " << size;
  int64_t sums = 0;
  for (auto products : tiles.getBody().front().getOps<ProductsOp>())
    // One that goes on with the sums of another has the same.
    if (products.getStarts().empty() || !products.getStarts().front().getDefiningOp<ProductsOp>())
      sums += static_cast<int64_t>(products.getSums().size());
  if (sums * size[0] * size[1] > 512)
    return tiles.emitOpError() << "ragged_tiles_c3: expected a thread to have at most 512 sums in `" << name
                               << "`, but got " << sums * size[0] * size[1];
  return success();
}

/// Whether a tile can have its weights in shared memory for a whole flush, in blocks of this size.
static LogicalResult verifyHeld(TilesOp tiles, StringRef name, ArrayRef<int64_t> size) {
  auto among = [](int64_t value, ArrayRef<int64_t> values) { return llvm::is_contained(values, value); };
  bool isPlaced = size.size() == 4;
  if ((size.size() != 3 && !isPlaced) || (isPlaced && (size[3] <= 0 || size[3] % 16 != 0)) ||
      !among(size[0], {4, 8, 16, 32}) || !among(size[1], {16, 32, 64}) || !among(size[2], {2, 3, 4}) ||
      tiles.getRounded() || tiles.getOver().size() != 1 || columnsOf(tiles) % size[0] != 0)
    return tiles.emitOpError() << "ragged_tiles_c7: expected `" << name
                               << "` to be columns of a block, terms in shared memory and "
                               << "how many times, of a tile of f32 with one loop, and perhaps a multiple of 16 bytes, but got "
                               << size;
  for (auto products : tiles.getBody().front().getOps<ProductsOp>()) {
    int64_t k = static_cast<int64_t>(products.getK());
    if (k % size[1] != 0 || k % tiles.getSmall()[2] != 0 || products.getCopies()[0] != 4 ||
        !products.getRight().getDefiningOp<ParamOp>())
      return products.emitOpError() << "ragged_tiles_c7: expected `" << name
                                    << "` sums to be of parameters and of rows that "
                                       "are copied by 4, of a multiple of the terms";
  }
  return success();
}

/// Blocks of a cluster.
static constexpr int64_t clusterBlocks = 16;

/// The same of both sizes that a tile may have for flushes.
static LogicalResult verifyResident(TilesOp tiles) {
  if (std::optional<ArrayRef<int64_t>> resident = tiles.getResident())
    if (failed(verifyHeld(tiles, "resident", *resident)))
      return failure();
  std::optional<ArrayRef<int64_t>> clustered = tiles.getClustered();
  if (!clustered)
    return success();
  if (!tiles.getResident())
    return tiles.emitOpError() << "ragged_tiles_c7: expected a tile that is `clustered` to be `resident`, too";
  if (failed(verifyHeld(tiles, "clustered", *clustered)))
    return failure();
  int64_t parts = columnsOf(tiles) / (*clustered)[0];
  if (parts > clusterBlocks)
    return tiles.emitOpError() << "ragged_tiles_c7: expected `clustered` columns of which 16 blocks have all, but got "
                               << parts << " parts of them";
  return success();
}

/// Terms of a warpgroup's rows in a buffer: 128 bytes of bf16.
static constexpr int64_t warpgroupTerms = 64;

/// Whether a tile can be multiplied by warpgroups.
static LogicalResult verifyWarpgroups(TilesOp tiles) {
  std::optional<ArrayRef<int64_t>> size = tiles.getWarpgroups();
  if (!size)
    return success();
  size_t sums = 0;
  bool isKept = true, isWhole = true;
  for (auto products : tiles.getBody().front().getOps<ProductsOp>()) {
    auto memory = products.getLeft().getDefiningOp<ScratchOp>();
    isKept &= memory && memory.getBf16();
    isWhole &= static_cast<int64_t>(products.getK()) % warpgroupTerms == 0;
    if (products.getStarts().empty() || !products.getStarts().front().getDefiningOp<ProductsOp>())
      sums += products.getSums().size();
  }
  auto within = [](int64_t value, int64_t least, int64_t most) { return value >= least && value <= most; };
  bool isHeld = tiles.getHeld();
  int64_t columns = isHeld ? 128 : 256;
  if (size->size() != 3 || !within((*size)[0], isHeld ? 4 : 1, isHeld ? 4 : 3) || !within((*size)[1], 8, columns) || (*size)[1] % 8 != 0 ||
      !within((*size)[2], 2, 4) || static_cast<int64_t>(sums) * (*size)[1] > columns)
    return tiles.emitOpError() << "ragged_tiles_c8: expected `warpgroups` to be 1 to 3, a multiple of 8 columns of each sum, 256 of "
                               << "all at most, and 2 to 4 times the terms, or 4 of 128 columns with `held` weights, but got " << *size;
  if (tiles.getRounded() != cohort::cfb::Precision::bf16 || !tiles.getWeights() || !isKept || !isWhole)
    return tiles.emitOpError() << "ragged_tiles_c8: expected `warpgroups` of a tile of rows and weights in bf16, of a multiple of "
                               << warpgroupTerms << " terms";
  return success();
}

LogicalResult TilesOp::verify() {
  int64_t iterations = 1;
  for (int64_t length : getOver())
    if (length < 1 || llvm::MulOverflow(iterations, length, iterations) || iterations > maxPad)
      return emitOpError() << "ragged_tiles_c1: expected loops of at least one and fewer than 2^31 iterations";
  if (!isForGpu(*this))
    return emitOpError() << "ragged_tiles_c1: expected to be in a `gpu.module`";
  if (getRounded() == cohort::cfb::Precision::f32)
    return emitOpError() << "ragged_tiles_c6: expected factors rounded to `tf32` or `bf16`, but got `f32`";
  if (getWeights() && !getRounded())
    return emitOpError() << "ragged_tiles_c6: expected `weights` that are rounded with `rounded`";
  if (static_cast<int64_t>(getFrom()) < 1)
    return emitOpError() << "ragged_tiles_c4: expected `from` of at least 1, but got " << static_cast<int64_t>(getFrom());
  if (getLargest().has_value() != getAbove().has_value())
    return emitOpError() << "ragged_tiles_c4: expected `largest` and the rows that it is from together";
  if (getWarpgroups().has_value() != getGroupedFrom().has_value() ||
      (getGroupedFrom() && static_cast<int64_t>(*getGroupedFrom()) < 1))
    return emitOpError() << "ragged_tiles_c8: expected `warpgroups` and the rows that they are from together, at least 1";
  if (getHeld() && !getWarpgroups())
    return emitOpError() << "ragged_tiles_c8: expected weights that are `held` to be of `warpgroups`";
  if (getAbove() && static_cast<int64_t>(*getAbove()) < static_cast<int64_t>(getFrom()))
    return emitOpError() << "ragged_tiles_c4: expected `largest` from at least as many rows as `large`, but got "
                         << static_cast<int64_t>(*getAbove());
  return success();
}

LogicalResult TilesOp::verifyRegions() {
  if (failed(verifyScalars(*this, "c5", getBody(), {}, {})) || failed(verifySize(*this, "small", getSmall())) ||
      failed(verifySize(*this, "large", getLarge())) ||
      (getLargest() && failed(verifySize(*this, "largest", *getLargest()))))
    return failure();
  SmallVector<int64_t> terms = {getSmall()[2], getLarge()[2]};
  if (getLargest())
    terms.push_back((*getLargest())[2]);
  size_t sums = 0;
  for (auto products : getBody().front().getOps<ProductsOp>()) {
    // Here sizes are known to be sizes.
    int64_t k = static_cast<int64_t>(products.getK());
    auto filled = [&](int64_t of) { return static_cast<int64_t>(llvm::divideCeil(k, of)) * of; };
    for (int64_t of : ArrayRef(terms).drop_front())
      if (filled(of) != filled(terms[0]))
        return products.emitOpError() << "ragged_products_c7: expected all sizes of the tile to fill " << k
                                      << " terms to as many, but " << terms[0] << " and " << of << " do not";
    auto right = products.getRight().getDefiningOp<ParamOp>();
    if (getWeights() && !right)
      return products.emitOpError() << "ragged_tiles_c6: expected rounded weights to be a parameter";
    if (!llvm::any_of(products.getSums(), [](Value sum) {
          return llvm::any_of(sum.getUsers(), [](Operation *user) { return isa<ProductsOp>(user); });
        }))
      sums += products.getSums().size();
  }
  if (sums < 1 || sums > maxGates)
    return emitOpError() << "ragged_tiles_c5: expected 1 to 8 sums of products, but got " << sums;
  if (failed(verifyWarpgroups(*this)))
    return failure();
  return verifyResident(*this);
}

/// Whether one of what values are computed from is a sum of products.
static bool dependOnSums(ValueRange values) {
  SmallVector<Value> left = llvm::to_vector(values);
  SmallPtrSet<Operation *, 16> seen;
  while (!left.empty()) {
    Operation *operation = left.pop_back_val().getDefiningOp();
    if (!operation || !seen.insert(operation).second)
      continue;
    if (isa<ProductsOp>(operation))
      return true;
    llvm::append_range(left, operation->getOperands());
  }
  return false;
}

LogicalResult ProductsOp::verify() {
  auto tiles = cast<TilesOp>((*this)->getParentOp());
  int64_t k = static_cast<int64_t>(getK()), columns = static_cast<int64_t>(getColumns());
  for (int64_t size : {k, columns})
    if (size < 1 || size > maxPad)
      return emitOpError() << "ragged_products_c1: expected `k` and `columns` of at least one, but got " << size;
  ArrayRef<int64_t> gates = getGates();
  if (gates.empty() || gates.size() > maxGates || gates.size() != getStarts().size() || gates.size() != getSums().size())
    return emitOpError() << "ragged_products_c2: expected from 1 to 8 gates, with a start and a sum each";
  int64_t width = columnsOf(tiles);
  for (int64_t gate : gates)
    if (gate < 0 || gate > columns - width)
      return emitOpError() << "ragged_products_c2: expected " << width << " columns from " << gate << " on of " << columns;
  for (Value memory : {getLeft(), getRight()})
    if (!getElement(memory.getType()).isF32())
      return emitOpError() << "ragged_products_c8: expected elements of f32, but got " << memory.getType();

  auto operand = getLeft().getDefiningOp<OperandOp>();
  auto scratch = getLeft().getDefiningOp<ScratchOp>();
  bool isIndexed = !operand || (operand.getKind() != OperandKind::list && operand.getKind() != OperandKind::length &&
                                operand.getKind() != OperandKind::scalar);
  if (!isIndexed || (scratch && scratch.getOnChip()))
    return emitOpError() << "ragged_products_c3: expected rows of an operand, a result or scratch of the device";
  ArrayRef<int64_t> rows = tiles.getOver().empty() ? tiles.getOver() : tiles.getOver().drop_back();
  if (failed(verifyAddress(*this, "c3", "c3", getLeftAddress(), rows, getLeft().getType(), k)))
    return failure();
  auto param = getRight().getDefiningOp<ParamOp>();
  if (param && param.getPanels())
    return emitOpError() << "ragged_products_c4: expected a parameter as it is, but it is packed";
  auto rightScratch = getRight().getDefiningOp<ScratchOp>();
  if (rightScratch && rightScratch.getBf16())
    return emitOpError() << "ragged_products_c4: expected a right side in f32, but it is kept in bf16";
  if (failed(verifyAddress(*this, "c4", "c4", getRightAddress(), {k, columns}, getRight().getType())))
    return failure();

  ArrayRef<int64_t> copies = getCopies();
  bool isKept = scratch && scratch.getBf16();
  if (copies.size() != gates.size() + 1 ||
      !llvm::all_of(copies.drop_front(), [](int64_t copy) { return copy == 1 || copy == 4; }) ||
      (isKept ? copies[0] != 8 : copies[0] != 1 && copies[0] != 4))
    return emitOpError() << "ragged_products_c5: expected copies of 1 or 4 elements, of the left side and of each gate, and of "
                            "8 of a left side in bf16";
  auto left = *linear(getLeftAddress(), rows.size());
  int64_t atOnce = copies[0];
  bool aligned =
      k % atOnce == 0 && left.back() % atOnce == 0 && (scratch || elementsOfRow(getLeft().getType()) % atOnce == 0);
  for (auto [coefficient, length] : llvm::zip(left, rows))
    aligned &= length == 1 || coefficient % atOnce == 0;
  if (atOnce != 1 && !aligned)
    return emitOpError() << "ragged_products_c5: expected copies of " << atOnce
                         << " terms to be 16 aligned bytes of each row";
  if (isKept && tiles.getRounded() != cohort::cfb::Precision::bf16)
    return emitOpError() << "ragged_products_c5: expected products of rows in bf16 to be rounded to it";
  for (auto other : tiles.getBody().front().getOps<ProductsOp>()) {
    auto memory = other.getLeft().getDefiningOp<ScratchOp>();
    if ((memory && memory.getBf16()) != isKept)
      return emitOpError() << "ragged_products_c5: expected all left sides of a tile to be kept in bf16, or none";
  }
  auto right = *linear(getRightAddress(), 2);
  // Weights that are rounded are dense.
  if (tiles.getWeights())
    right = {columns, 1, 0};
  for (auto [gate, copy] : llvm::zip(gates, copies.drop_front()))
    if (copy == 4 && (right[1] != 1 || right[0] % 4 != 0 || (right[2] + gate) % 4 != 0 || width % 4 != 0))
      return emitOpError() << "ragged_products_c5: expected copies of 4 columns from " << gate
                           << " on to be 16 aligned bytes of each term";

  auto before = getStarts().front().getDefiningOp<ProductsOp>();
  bool continues = before && llvm::equal(before.getSums(), getStarts()) && before.getGates() == gates &&
                   llvm::all_of(getStarts(), [](Value start) { return start.hasOneUse(); });
  if (!continues && dependOnSums(getStarts()))
    return emitOpError() << "ragged_products_c6: expected starts that depend on no sum, or all sums of one before with the "
                            "same gates";
  return success();
}
