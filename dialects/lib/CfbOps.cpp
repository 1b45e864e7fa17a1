// The operations of the `cfb` dialect: verifiers and interface methods that ODS cannot state.

#include "Cfb.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace cohort::cfb;

/// `(types)`, which may be empty.
static ParseResult parseTypeList(OpAsmParser &parser, SmallVectorImpl<Type> &types) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, [&] {
    return parser.parseType(types.emplace_back());
  });
}

static void printTypeList(OpAsmPrinter &printer, Operation *, TypeRange types) {
  printer << '(' << types << ')';
}

#define GET_OP_CLASSES
#include "cfb/CfbOps.cpp.inc"

//===----------------------------------------------------------------------===//
// Shared checks
//===----------------------------------------------------------------------===//

static SmallVector<Type> flattened(Type type) {
  SmallVector<Type> types;
  flattenType(type, types);
  return types;
}

/// The declaration an ADT type names; null when there is none.
static AdtOp lookupAdt(SymbolTableCollection &symbols, Operation *from, AdtType type) {
  return symbols.lookupNearestSymbolFrom<AdtOp>(from, type.getSymbol());
}

/// Checks that a region's block ends in a `cfb.yield` of the expected types.
static LogicalResult verifyYield(Operation *op, Region &region, TypeRange expected,
                                 StringRef constraint) {
  auto yield = dyn_cast_or_null<YieldOp>(region.front().empty() ? nullptr : &region.front().back());
  if (!yield)
    return op->emitOpError() << constraint << ": expected the region to end in `cfb.yield`";
  if (yield.getOperandTypes() != expected)
    return yield.emitOpError() << constraint << ": expected values of types (" << expected
                               << "), but got (" << yield.getOperandTypes() << ")";
  return success();
}

static LogicalResult verifyArguments(Operation *op, Region &region, TypeRange expected,
                                     StringRef constraint) {
  if (TypeRange(region.getArgumentTypes()) != expected)
    return op->emitOpError() << constraint << ": expected region arguments of types (" << expected
                             << "), but got (" << region.getArgumentTypes() << ")";
  return success();
}

//===----------------------------------------------------------------------===//
// Algebraic data types
//===----------------------------------------------------------------------===//

// Types of values name it, which `symbol-dce` does not see.
bool AdtOp::canDiscardOnUseEmpty() { return false; }

SmallVector<Type> AdtOp::getFlattenedFields(unsigned index) {
  SmallVector<Type> types;
  for (Attribute field : cast<ArrayAttr>(getFields()[index]))
    flattenType(cast<TypeAttr>(field).getValue(), types);
  return types;
}

std::optional<unsigned> AdtOp::getConstructorIndex(StringRef name) {
  for (auto [index, constructor] : llvm::enumerate(getConstructors()))
    if (cast<StringAttr>(constructor).getValue() == name)
      return index;
  return std::nullopt;
}

static LogicalResult verifyNames(AdtOp adt);

LogicalResult AdtOp::verify() {
  if (getConstructors().size() != getFields().size())
    return emitOpError() << "cfb_adt_c1: expected " << getConstructors().size()
                         << " lists of fields, but got " << getFields().size();
  if (getConstructors().empty())
    return emitOpError() << "cfb_adt_c2: expected at least one constructor";
  llvm::StringSet<> seen;
  for (Attribute constructor : getConstructors()) {
    StringRef name = cast<StringAttr>(constructor).getValue();
    if (!seen.insert(name).second)
      return emitOpError() << "cfb_adt_c3: constructor \"" << name << "\" appears twice";
  }
  return verifyNames(*this);
}

/// Checks the names of fields.
static LogicalResult verifyNames(AdtOp adt) {
  std::optional<ArrayAttr> names = adt.getNames();
  if (!names)
    return success();
  if (names->size() != adt.getConstructors().size())
    return adt.emitOpError() << "cfb_adt_c5: expected " << adt.getConstructors().size()
                             << " lists of names, but got " << names->size();
  for (auto [list, fields] : llvm::zip(*names, adt.getFields())) {
    size_t count = cast<ArrayAttr>(list).size();
    size_t expected = cast<ArrayAttr>(fields).size();
    if (count != 0 && count != expected)
      return adt.emitOpError() << "cfb_adt_c5: expected " << expected << " names, but got " << count;
    llvm::StringSet<> seen;
    for (Attribute name : cast<ArrayAttr>(list))
      if (!seen.insert(cast<StringAttr>(name).getValue()).second)
        return adt.emitOpError() << "cfb_adt_c5: field " << name << " appears twice";
  }
  return success();
}

LogicalResult AdtOp::verifySymbolUses(SymbolTableCollection &symbols) {
  WalkResult result = WalkResult::advance();
  AttrTypeWalker walker;
  walker.addWalk([&](AdtType type) {
    if (lookupAdt(symbols, *this, type))
      return WalkResult::advance();
    emitOpError() << "cfb_adt_c4: " << type << " is not declared";
    return WalkResult::interrupt();
  });
  return failure(walker.walk(getFields()).wasInterrupted());
}

LogicalResult ConstructOp::verifySymbolUses(SymbolTableCollection &symbols) {
  AdtOp adt = lookupAdt(symbols, *this, getResult().getType());
  if (!adt)
    return emitOpError() << "cfb_construct_c1: " << getResult().getType() << " is not declared";
  std::optional<unsigned> index = adt.getConstructorIndex(getConstructor());
  if (!index)
    return emitOpError() << "cfb_construct_c2: " << getResult().getType()
                         << " has no constructor \"" << getConstructor() << "\"";
  SmallVector<Type> expected = adt.getFlattenedFields(*index);
  if (!areHeldAs(expected, getFields().getTypes()))
    return emitOpError() << "cfb_construct_c3: expected fields of types (" << TypeRange(expected)
                         << "), but got (" << getFields().getTypes() << ")";
  return success();
}

LogicalResult MatchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  AdtOp adt = lookupAdt(symbols, *this, getScrutinee().getType());
  if (!adt)
    return emitOpError() << "cfb_match_c1: " << getScrutinee().getType() << " is not declared";
  if (adt.getConstructors().size() != getCases().size())
    return emitOpError() << "cfb_match_c2: expected " << adt.getConstructors().size()
                         << " regions, one for each constructor, but got " << getCases().size();
  for (auto [index, region] : llvm::enumerate(getCases())) {
    SmallVector<Type> expected = adt.getFlattenedFields(index);
    if (!areHeldAs(expected, region.getArgumentTypes()))
      return emitOpError() << "cfb_match_c3: expected arguments of types (" << TypeRange(expected)
                           << ") for constructor " << adt.getConstructors()[index] << ", but got ("
                           << region.getArgumentTypes() << ")";
  }
  return success();
}

// Before the regions' own verification, whose interface would report the same in other words.
LogicalResult MatchOp::verify() {
  for (Region &region : getCases())
    if (failed(verifyYield(*this, region, getResultTypes(), "cfb_match_c4")))
      return failure();
  return success();
}

void MatchOp::getSuccessorRegions(RegionBranchPoint point,
                                  SmallVectorImpl<RegionSuccessor> &successors) {
  if (!point.isParent()) {
    successors.emplace_back(getOperation(), getResults());
    return;
  }
  // A region's arguments are the fields: no operand is forwarded to them.
  for (Region &region : getCases())
    successors.emplace_back(&region);
}

void MatchOp::getRegionInvocationBounds(ArrayRef<Attribute>,
                                        SmallVectorImpl<InvocationBounds> &bounds) {
  unsigned minimum = getCases().size() == 1 ? 1 : 0;
  bounds.append(getCases().size(), InvocationBounds(minimum, 1));
}

/// The region of a match that is taken, and the fields that it gets, where its scrutinee's constructor is known.
static std::optional<std::pair<unsigned, ValueRange>> knownCase(MatchOp match) {
  Value scrutinee = match.getScrutinee();
  if (auto construct = scrutinee.getDefiningOp<ConstructOp>()) {
    auto name = construct.getResult().getType().getSymbol();
    auto adt = SymbolTable::lookupNearestSymbolFrom<AdtOp>(match, name);
    if (std::optional<unsigned> index = adt ? adt.getConstructorIndex(construct.getConstructor())
                                            : std::nullopt)
      return std::pair(*index, ValueRange(construct.getFields()));
  }
  for (Region *region = match->getParentRegion(); region; region = region->getParentRegion())
    if (auto outer = dyn_cast<MatchOp>(region->getParentOp());
        outer && outer.getScrutinee() == scrutinee)
      return std::pair(region->getRegionNumber(), ValueRange(region->getArguments()));
  return std::nullopt;
}

LogicalResult MatchOp::canonicalize(MatchOp match, PatternRewriter &rewriter) {
  auto known = knownCase(match);
  if (!known)
    return failure();
  auto [index, fields] = *known;
  Block &block = match.getCases()[index].front();
  // One may hold a tensor where the other holds its handle.
  if (TypeRange(fields) != TypeRange(block.getArgumentTypes()))
    return failure();
  auto yield = cast<YieldOp>(block.getTerminator());
  rewriter.inlineBlockBefore(&block, match, fields);
  rewriter.replaceOp(match, yield.getOperands());
  rewriter.eraseOp(yield);
  return success();
}

//===----------------------------------------------------------------------===//
// Reading tensors
//===----------------------------------------------------------------------===//

Speculation::Speculatability LookupOp::getSpeculatability() { return Speculation::NotSpeculatable; }

LogicalResult LookupOp::verify() {
  RankedTensorType expected = dropLeadingDim(cast<RankedTensorType>(getTable().getType()));
  if (!expected)
    return emitOpError() << "cfb_lookup_c1: expected a table of at least one dim, but got "
                         << getTable().getType();
  if (!areSameTensors(expected, cast<RankedTensorType>(getResult().getType())))
    return emitOpError() << "cfb_lookup_c2: expected a result of type " << expected << ", but got "
                         << getResult().getType();
  return success();
}

Speculation::Speculatability WithinOp::getSpeculatability() { return Speculation::NotSpeculatable; }

Speculation::Speculatability QuotientOp::getSpeculatability() {
  return Speculation::NotSpeculatable;
}

Speculation::Speculatability ViewOp::getSpeculatability() { return Speculation::NotSpeculatable; }

LogicalResult ViewOp::verify() {
  auto tensorOf = [](Type type) {
    auto lazy = dyn_cast<LazyType>(type);
    return cast<RankedTensorType>(lazy ? lazy.getTensorType() : type);
  };
  RankedTensorType from = tensorOf(getValue().getType()), to = tensorOf(getResult().getType());
  auto row = [](RankedTensorType tensor) {
    ArrayRef<int64_t> shape = tensor.getShape();
    size_t size = 0;
    while (size < shape.size() && !ShapedType::isDynamic(shape[shape.size() - 1 - size]))
      ++size;
    return shape.take_back(size);
  };
  bool differ = isa<LazyType>(getValue().getType()) != isa<LazyType>(getResult().getType());
  if (differ || from.getElementType() != to.getElementType() || row(from) != row(to) ||
      from.hasStaticShape() || to.hasStaticShape())
    return emitOpError() << "cfb_view_c1: expected the rows of " << from << ", but got " << to;
  if (getLengths().size() != size_t(to.getNumDynamicDims()))
    return emitOpError() << "cfb_view_c2: expected " << to.getNumDynamicDims()
                         << " lengths, but got " << getLengths().size();
  if (getExact() && from.getShape() != to.getShape())
    return emitOpError() << "cfb_view_c3: expected the dims of " << from << ", but got " << to;
  return success();
}

LogicalResult WidenOp::verify() {
  auto from = cast<RankedTensorType>(getValue().getType());
  auto to = cast<RankedTensorType>(getResult().getType());
  bool fits = from.getElementType() == to.getElementType() && from.getRank() == to.getRank();
  for (int64_t dim = 0; fits && dim < to.getRank(); ++dim)
    fits = to.isDynamicDim(dim) || from.getDimSize(dim) == to.getDimSize(dim);
  if (!fits)
    return emitOpError() << "cfb_widen_c1: expected the elements of " << from << ", but got " << to;
  if (getLengths().size() != size_t(to.getNumDynamicDims()))
    return emitOpError() << "cfb_widen_c2: expected " << to.getNumDynamicDims()
                         << " lengths, but got " << getLengths().size();
  return success();
}

Speculation::Speculatability ForceOp::getSpeculatability() { return Speculation::NotSpeculatable; }

LogicalResult ForceOp::verify() {
  Type type = getValue().getType();
  if (auto lazy = dyn_cast<LazyType>(type))
    type = lazy.getTensorType();
  auto tensor = cast<RankedTensorType>(type);
  if (tensor.getRank() != 0)
    return emitOpError() << "cfb_force_c1: expected a tensor of rank 0, but got " << tensor;
  if (getResult().getType() != tensor.getElementType())
    return emitOpError() << "cfb_force_c2: expected a result of type " << tensor.getElementType()
                         << ", but got " << getResult().getType();
  if (!getGuard())
    return success();
  bool isLazy = isa<LazyType>(getValue().getType());
  Type decision = RankedTensorType::get({}, IntegerType::get(getContext(), 1));
  Type expected = isLazy ? Type(LazyType::get(getContext(), decision)) : decision;
  if (getGuard().getType() != expected)
    return emitOpError() << "cfb_force_c3: expected a guard of type " << expected << ", but got "
                         << getGuard().getType();
  return success();
}

LogicalResult DebugOp::verify() {
  SmallVector<Type> expected = flattened(getType());
  if (!areHeldAs(expected, getValues().getTypes()))
    return emitOpError() << "cfb_debug_c1: expected values of types (" << TypeRange(expected)
                         << "), but got (" << getValues().getTypes() << ")";
  return success();
}

//===----------------------------------------------------------------------===//
// Arrays
//===----------------------------------------------------------------------===//

LogicalResult ArrayCreateOp::verify() {
  SmallVector<Type> element = flattened(getResult().getType().getElementType());
  if (element.empty())
    return emitOpError() << "cfb_array_create_c1: an element of " << getResult().getType()
                         << " holds no value";
  auto types = getElements().getTypes();
  bool matches = types.size() % element.size() == 0;
  for (auto [index, type] : llvm::enumerate(types))
    matches = matches && type == element[index % element.size()];
  if (!matches)
    return emitOpError() << "cfb_array_create_c2: expected elements of types (" << TypeRange(element)
                         << "), but got (" << TypeRange(types) << ")";
  return success();
}

OpFoldResult ArrayLenOp::fold(FoldAdaptor) {
  Type type = getResult().getType();
  if (auto create = getArray().getDefiningOp<ArrayCreateOp>()) {
    size_t width = flattened(create.getResult().getType().getElementType()).size();
    return IntegerAttr::get(type, create.getElements().size() / width);
  }
  if (auto reverse = getArray().getDefiningOp<ArrayReverseOp>()) {
    getArrayMutable().assign(reverse.getArray());
    return getResult();
  }
  return {};
}

Speculation::Speculatability ArrayGetOp::getSpeculatability() {
  return Speculation::NotSpeculatable;
}

LogicalResult ArrayGetOp::verify() {
  SmallVector<Type> expected = flattened(getArray().getType().getElementType());
  if (getResultTypes() != TypeRange(expected))
    return emitOpError() << "cfb_array_get_c1: expected results of types (" << TypeRange(expected)
                         << "), but got (" << getResultTypes() << ")";
  return success();
}

LogicalResult ArrayPushOp::verify() {
  SmallVector<Type> expected = flattened(getArray().getType().getElementType());
  if (TypeRange(getValues()) != TypeRange(expected))
    return emitOpError() << "cfb_array_push_c1: expected values of types (" << TypeRange(expected)
                         << "), but got (" << TypeRange(getValues()) << ")";
  return success();
}

LogicalResult ArrayRangeOp::verify() {
  if (!getResult().getType().getElementType().isSignlessInteger(32))
    return emitOpError() << "cfb_array_range_c1: expected a result of type !cfb.array<i32>, but got "
                         << getResult().getType();
  return success();
}

LogicalResult MapOp::verifyRegions() {
  if (getArrays().empty())
    return emitOpError() << "cfb_map_c1: expected at least one array";
  SmallVector<Type> expected;
  for (Type array : getArrays().getTypes())
    flattenType(cast<ArrayType>(array).getElementType(), expected);
  if (failed(verifyArguments(*this, getBody(), expected, "cfb_map_c2")))
    return failure();
  return verifyYield(*this, getBody(), flattened(getResult().getType().getElementType()),
                     "cfb_map_c3");
}

LogicalResult ForkOp::verify() {
  if (getStrands().size() < 2)
    return emitOpError() << "cfb_fork_c1: expected at least two strands";
  SmallVector<Type> joined;
  ArrayRef<int64_t> needs = getNeeds().value_or(ArrayRef<int64_t>());
  size_t needed = 0;
  for (Region &strand : getStrands()) {
    auto join = dyn_cast_or_null<JoinOp>(strand.front().empty() ? nullptr : &strand.front().back());
    if (!join)
      return emitOpError() << "cfb_fork_c2: expected a strand that ends in `cfb.join`";
    for (BlockArgument argument : strand.getArguments()) {
      int64_t result = needed < needs.size() ? needs[needed++] : -1;
      if (result < 0 || result >= static_cast<int64_t>(joined.size()) ||
          joined[result] != argument.getType())
        return emitOpError() << "cfb_fork_c4: expected `needs` to name an earlier strand's result of "
                             << "type " << argument.getType() << " for argument "
                             << argument.getArgNumber() << " of strand " << strand.getRegionNumber();
    }
    llvm::append_range(joined, join.getOperandTypes());
  }
  if (needed != needs.size())
    return emitOpError() << "cfb_fork_c4: expected as many results in `needs` as strands have "
                         << "arguments, " << needed << ", but got " << needs.size();
  if (TypeRange(joined) != getResultTypes())
    return emitOpError() << "cfb_fork_c3: expected results of types (" << TypeRange(joined)
                         << "), but got (" << getResultTypes() << ")";
  return success();
}

// See `MatchOp::verify`.
LogicalResult FoldOp::verify() {
  if (TypeRange(getInits()) != getResultTypes())
    return emitOpError() << "cfb_fold_c1: expected results of types (" << TypeRange(getInits())
                         << "), but got (" << getResultTypes() << ")";
  SmallVector<Type> expected(getInits().getTypes());
  flattenType(getArray().getType().getElementType(), expected);
  if (failed(verifyArguments(*this, getBody(), expected, "cfb_fold_c2")))
    return failure();
  return verifyYield(*this, getBody(), TypeRange(getInits()), "cfb_fold_c3");
}

OperandRange FoldOp::getEntrySuccessorOperands(RegionSuccessor) { return getInits(); }

void FoldOp::getSuccessorRegions(RegionBranchPoint, SmallVectorImpl<RegionSuccessor> &successors) {
  // The array may be empty, and after any element there may be another.
  successors.emplace_back(&getBody(), getBody().getArguments().take_front(getInits().size()));
  successors.emplace_back(getOperation(), getResults());
}

LogicalResult ReduceRowsOp::verify() {
  RankedTensorType expected;
  if (auto rows = dyn_cast<RowsType>(getList().getType()))
    expected = addLeadingDim(cast<RankedTensorType>(rows.getTensorType()));
  else
    expected = dyn_cast<RankedTensorType>(cast<ArrayType>(getList().getType()).getElementType());
  bool isArray = isa<ArrayType>(getList().getType());
  if (!expected || (isArray && !expected.hasStaticShape()))
    return emitOpError() << "cfb_reduce_rows_c1: expected a list of tensors of static shape, but got "
                         << getList().getType();
  if (!areSameTensors(expected, cast<RankedTensorType>(getResult().getType())))
    return emitOpError() << "cfb_reduce_rows_c2: expected a result of type " << expected
                         << ", but got " << getResult().getType();
  return success();
}

LogicalResult ReduceRowsOp::verifyRegions() {
  Type element = cast<RankedTensorType>(getResult().getType()).getElementType();
  if (failed(verifyArguments(*this, getBody(), {element, element}, "cfb_reduce_rows_c3")))
    return failure();
  if (failed(verifyYield(*this, getBody(), element, "cfb_reduce_rows_c4")))
    return failure();
  for (Operation &operation : getBody().front().without_terminator())
    if (!OpTrait::hasElementwiseMappableTraits(&operation) &&
        !operation.hasTrait<OpTrait::ConstantLike>())
      return operation.emitOpError()
             << "cfb_reduce_rows_c5: expected an elementwise operation or a constant";
  return success();
}

LogicalResult StackOp::verify() {
  Type element = getArray().getType().getElementType();
  auto lazy = dyn_cast<LazyType>(element);
  Type inner = lazy ? lazy.getTensorType() : element;
  RankedTensorType tensor = dyn_cast<RankedTensorType>(inner);
  if (!tensor && inner.isIntOrFloat())
    tensor = RankedTensorType::get({}, inner);
  if (!tensor)
    return emitOpError() << "cfb_stack_c1: an element of type " << element << " cannot be stacked";

  tensor = addLeadingDim(tensor);
  Type result = getResult().getType();
  auto lazyResult = dyn_cast<LazyType>(result);
  auto actual = cast<RankedTensorType>(lazyResult ? lazyResult.getTensorType() : result);
  if (bool(lazy) != bool(lazyResult) || !areSameTensors(tensor, actual)) {
    Type expected = lazy ? Type(LazyType::get(getContext(), tensor)) : Type(tensor);
    return emitOpError() << "cfb_stack_c2: expected a result of type " << expected << ", but got "
                         << result;
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

/// Whether a type is an array of `Element`s.
template <typename Element>
static bool isArrayOf(Type type) {
  auto array = dyn_cast<ArrayType>(type);
  return array && isa<Element>(array.getElementType());
}

/// Whether an attribute is a list of dims among `lengths` and of numbers of at least one.
static bool isListOfDims(Attribute list, ArrayAttr lengths) {
  auto dims = dyn_cast_or_null<ArrayAttr>(list);
  return dims && llvm::all_of(dims, [&](Attribute dim) {
           if (auto number = dyn_cast<IntegerAttr>(dim))
             return number.getInt() >= 1;
           return isa<FlatSymbolRefAttr>(dim) && llvm::is_contained(lengths, dim);
         });
}

/// Whether an attribute names dims, each once.
static bool isListOfNames(ArrayAttr lengths) {
  llvm::DenseSet<Attribute> seen;
  return lengths && llvm::all_of(lengths, [&](Attribute name) {
           return isa<FlatSymbolRefAttr>(name) && seen.insert(name).second;
         });
}

/// The constraints of blocks on tensors whose lengths differ.
static LogicalResult verifyDims(BlockOp block) {
  KernelUnitAttr unit = block.getUnitAttr();
  ArrayAttr rows = block.getRowsAttr(), lists = block.getLeadingAttr(), names = block.getLengthsAttr();
  if (names && !isListOfNames(names))
    return block.emitOpError() << "cfb_block_c6: expected names of dims in `lengths`, each once";
  size_t count = names ? names.size() : 0;
  for (auto [index, type] : llvm::enumerate(block.getInputs().getTypes()))
    if (names && type.isIndex() != (index < count))
      return block.emitOpError() << "cfb_block_c6: expected the first " << count
                                 << " operands, and no others, to be lengths, but operand " << index
                                 << " is of type " << type;
  if (count > block.getInputs().size())
    return block.emitOpError() << "cfb_block_c6: expected " << count << " lengths as operands";
  if (!names) {
    if (unit || rows || lists)
      return block.emitOpError() << "cfb_block_c7: `unit`, `rows` and `leading` go with `lengths`";
    return success();
  }
  if (!unit || !rows || !lists || lists.size() != block.getInputs().size() - count)
    return block.emitOpError() << "cfb_block_c7: expected `unit`, `rows`, and `leading` with a list for "
                                  "each operand after the lengths";
  bool valid = isListOfDims(rows, names);
  for (Attribute list : lists)
    valid = valid && isListOfDims(list, names);
  if (!valid)
    return block.emitOpError() << "cfb_block_c8: expected dims of `lengths` and numbers of at least "
                                  "one in `rows` and `leading`";
  return success();
}

LogicalResult BlockOp::verify() {
  if (failed(verifyDims(*this)))
    return failure();
  for (Type type : getInputs().getTypes())
    if (!isa<RankedTensorType>(type) && !type.isIntOrIndexOrFloat() &&
        !isArrayOf<RankedTensorType>(type))
      return emitOpError() << "cfb_block_c1: expected a tensor, a scalar or an array of tensors, "
                              "but got "
                           << type;
  for (Type type : getResultTypes())
    if (!isa<RankedTensorType>(type))
      return emitOpError() << "cfb_block_c4: expected a tensor as a result, but got " << type;
  std::optional<ArrayAttr> reuse = getReuse();
  if (!reuse)
    return success();
  if (reuse->size() != getInputs().size())
    return emitOpError() << "cfb_block_c5: expected " << getInputs().size()
                         << " entries in `reuse`, one for each operand, but got " << reuse->size();
  return success();
}

LogicalResult BlockOp::verifyRegions() {
  if (failed(verifyArguments(*this, getBody(), TypeRange(getInputs()), "cfb_block_c2")))
    return failure();
  return verifyYield(*this, getBody(), getResultTypes(), "cfb_block_c3");
}

//===----------------------------------------------------------------------===//
// Kernels and records
//===----------------------------------------------------------------------===//

static bool hasBatchDim(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.getRank() > 0 && tensor.isDynamicDim(0);
}

bool KernelOp::canDiscardOnUseEmpty() { return true; }

static bool isLengthTable(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.getRank() == 1 && tensor.getElementType().isIndex();
}

/// Whether a symbol is what a kernel becomes below level 2.
static bool isLowered(Operation *symbol) {
  return symbol->hasAttr("cfb.kernel") || symbol->getName().getStringRef() == "ragged.kernel";
}

/// The constraints of kernels on tensors whose lengths differ.
static LogicalResult verifyDims(KernelOp kernel) {
  KernelUnitAttr unit = kernel.getUnitAttr();
  ArrayAttr rows = kernel.getRowsAttr(), names = kernel.getLengthsAttr();
  ArrayAttr takes = kernel.getTakesAttr();
  if (names && !isListOfNames(names))
    return kernel.emitOpError() << "cfb_kernel_c4: expected names of dims in `lengths`, each once";
  size_t count = names ? names.size() : 0;
  auto arguments = kernel.getBody().getArgumentTypes();
  for (auto [index, type] : llvm::enumerate(llvm::drop_begin(arguments)))
    if (isLengthTable(type) != (index < count))
      return kernel.emitOpError() << "cfb_kernel_c4: expected the first " << count
                                  << " arguments after the number of rows, and no others, to be "
                                     "lengths, but argument "
                                  << index + 1 << " is of type " << type;
  if (count + 1 > arguments.size())
    return kernel.emitOpError() << "cfb_kernel_c4: expected " << count << " lengths as arguments";
  if (!names) {
    if (unit || rows || takes)
      return kernel.emitOpError() << "cfb_kernel_c5: `unit`, `rows` and `takes` go with `lengths`";
    return success();
  }
  if (!unit)
    return kernel.emitOpError() << "cfb_kernel_c5: expected `unit`, as there are `lengths`";
  if (!isListOfDims(rows, names))
    return kernel.emitOpError() << "cfb_kernel_c6: expected dims of `lengths` and numbers of at least "
                                   "one in `rows`";
  if (unit.getValue() == KernelUnit::calls)
    return success();
  if (!takes || takes.size() != arguments.size() - 1 - count)
    return kernel.emitOpError() << "cfb_kernel_c7: expected `takes` to say of each argument after the "
                                   "lengths how it is taken";
  return success();
}

LogicalResult KernelOp::verifyRegions() {
  Region &body = getBody();
  if (body.getNumArguments() == 0 || !body.getArgument(0).getType().isIndex())
    return emitOpError() << "cfb_kernel_c1: expected the first argument to be an index, the number "
                            "of rows";
  for (BlockArgument argument : body.getArguments().drop_front())
    if (!hasBatchDim(argument.getType()) && !isa<RowsType>(argument.getType()))
      return emitOpError() << "cfb_kernel_c2: expected a tensor with a leading dynamic dim or "
                              "`!cfb.rows`, but got "
                           << argument.getType();
  auto yield = dyn_cast_or_null<YieldOp>(body.front().empty() ? nullptr : &body.front().back());
  if (!yield)
    return emitOpError() << "cfb_kernel_c3: expected the region to end in `cfb.yield`";
  for (Type type : yield.getOperandTypes())
    if (!hasBatchDim(type))
      return yield.emitOpError() << "cfb_kernel_c3: expected a tensor with a leading dynamic dim, "
                                    "but got "
                                 << type;
  return verifyDims(*this);
}

LogicalResult RecordOp::verify() {
  for (Type type : getInputs().getTypes())
    if (!isa<LazyType>(type) && !type.isIntOrIndexOrFloat() && !isArrayOf<LazyType>(type))
      return emitOpError() << "cfb_record_c5: expected a lazy handle, a scalar, a length or an array "
                              "of lazy handles, but got "
                           << type;
  return success();
}

/// How a kernel whose unit is the row takes or gives a value.
enum class Taken { Once, Expanded, Stacked };

/// Whether a handle has `rows` in front of the dims of one row of a batched tensor.
static bool isExpansionOf(Type value, Type batched, ArrayAttr rows) {
  auto lazy = dyn_cast<LazyType>(value);
  RankedTensorType row = dropLeadingDim(cast<RankedTensorType>(batched));
  if (!lazy)
    return false;
  SmallVector<int64_t> shape;
  for (Attribute dim : rows)
    shape.push_back(isa<IntegerAttr>(dim) ? cast<IntegerAttr>(dim).getInt() : ShapedType::kDynamic);
  llvm::append_range(shape, row.getShape());
  auto tensor = cast<RankedTensorType>(lazy.getTensorType());
  return tensor.getShape() == ArrayRef<int64_t>(shape) &&
         tensor.getElementType() == row.getElementType();
}

/// Whether a handle or a scalar is a row of a batched tensor, or an array one of a kernel's lists.
static bool isRowOf(Type row, Type batched) {
  if (isLengthTable(batched))
    return row.isIndex();
  if (auto rows = dyn_cast<RowsType>(batched)) {
    auto array = dyn_cast<ArrayType>(row);
    return array && isHeldAs(rows.getTensorType(), array.getElementType());
  }
  RankedTensorType expected = dropLeadingDim(cast<RankedTensorType>(batched));
  if (auto lazy = dyn_cast<LazyType>(row))
    return areSameTensors(cast<RankedTensorType>(lazy.getTensorType()), expected);
  return expected.getRank() == 0 && row == expected.getElementType();
}

LogicalResult RecordOp::verifySymbolUses(SymbolTableCollection &symbols) {
  Operation *symbol = symbols.lookupNearestSymbolFrom(*this, getKernelAttr());
  auto kernel = dyn_cast_or_null<KernelOp>(symbol);
  if (!kernel) {
    if (symbol && isLowered(symbol))
      return success();
    return emitOpError() << "cfb_record_c1: " << getKernelAttr() << " is not a kernel";
  }
  // Uses of symbols are verified last, so the kernel itself is known to be well formed.
  Region &body = kernel.getBody();
  auto yield = cast<YieldOp>(body.front().back());
  size_t rows = body.getNumArguments() - 1;
  if (getInputs().size() != rows)
    return emitOpError() << "cfb_record_c2: expected " << rows << " operands, but got "
                         << getInputs().size();
  bool byRow = kernel.getUnit() == KernelUnit::rows;
  ArrayAttr extent = byRow ? kernel.getRowsAttr() : ArrayAttr();
  ArrayAttr kinds = byRow ? kernel.getTakesAttr() : ArrayAttr();
  for (auto [index, row, batched] :
       llvm::enumerate(getInputs().getTypes(), llvm::drop_begin(body.getArgumentTypes()))) {
    Taken taken = Taken::Once;
    if (kinds && index + kinds.size() >= rows) {
      Takes takes = cast<TakesAttr>(kinds[index + kinds.size() - rows]).getValue();
      taken = takes == Takes::ragged ? Taken::Expanded : takes == Takes::stacked ? Taken::Stacked : Taken::Once;
    }
    bool fits = taken == Taken::Expanded  ? isExpansionOf(row, batched, extent)
                : taken == Taken::Stacked ? isArrayOf<LazyType>(row)
                                          : isRowOf(row, batched);
    if (!fits)
      return emitOpError() << "cfb_record_c3: expected a row of " << batched << ", but got " << row;
  }
  bool matches = yield.getNumOperands() == getNumResults();
  if (matches)
    for (auto [row, batched] : llvm::zip(getResultTypes(), yield.getOperandTypes()))
      matches = matches && (byRow ? isExpansionOf(row, batched, extent) : isRowOf(row, batched));
  if (!matches)
    return emitOpError() << "cfb_record_c4: expected rows of (" << yield.getOperandTypes()
                         << ") as results, but got (" << getResultTypes() << ")";
  return success();
}

//===----------------------------------------------------------------------===//
// Parameters and constants
//===----------------------------------------------------------------------===//

/// A global that a kernel computes. Neither the kernel nor its body has been verified yet.
static LogicalResult verifyComputed(Operation *global, Attribute value) {
  auto type = global->getAttrOfType<TypeAttr>("type");
  auto tensor = type ? dyn_cast<RankedTensorType>(type.getValue()) : RankedTensorType();
  if (global->getName().getStringRef() != "ml_program.global" || !tensor)
    return global->emitOpError()
           << "cfb_computed_c1: expected `cfb.computed` only on a global of tensor type";
  auto name = dyn_cast<FlatSymbolRefAttr>(value);
  Operation *symbol = name ? SymbolTable::lookupNearestSymbolFrom(global, name) : nullptr;
  auto kernel = dyn_cast_or_null<KernelOp>(symbol);
  if (!kernel) {
    if (symbol && isLowered(symbol))
      return success();
    return global->emitOpError() << "cfb_computed_c2: " << value << " is not a kernel";
  }
  Region &body = kernel.getBody();
  auto yield = dyn_cast_or_null<YieldOp>(
      body.empty() || body.front().empty() ? nullptr : &body.front().back());
  bool fits = yield && yield.getNumOperands() == 1 && body.getNumArguments() == 1;
  if (fits) {
    auto rows = dyn_cast<RankedTensorType>(yield.getOperandTypes().front());
    fits = rows && rows.getRank() > 0 && areSameTensors(dropLeadingDim(rows), tensor);
  }
  if (!fits)
    return global->emitOpError() << "cfb_computed_c3: expected " << value
                                 << " to take no rows and to yield rows of " << tensor;
  return success();
}

/// A parameter that the weights file has under a name, or names, of its own.
static LogicalResult verifyStored(Operation *global, Attribute value) {
  auto type = global->getAttrOfType<TypeAttr>("type");
  auto tensor = type ? dyn_cast<RankedTensorType>(type.getValue()) : RankedTensorType();
  if (global->getName().getStringRef() != "ml_program.global" || !tensor)
    return global->emitOpError()
           << "cfb_stored_c1: expected `cfb.stored` only on a global of tensor type";
  auto stored = dyn_cast<DictionaryAttr>(value);
  auto name = stored ? stored.getAs<StringAttr>("name") : StringAttr();
  Attribute transposed = stored ? stored.get("transposed") : Attribute();
  bool isKnown = name && (!transposed || isa<UnitAttr>(transposed)) &&
                 stored.size() == (transposed ? 2u : 1u);
  if (!isKnown)
    return global->emitOpError() << "cfb_stored_c2: expected a `name` and perhaps `transposed`, but "
                                    "got "
                                 << value;
  size_t axes = name.getValue().count("{}") + (transposed ? 2 : 0);
  if (static_cast<size_t>(tensor.getRank()) < axes)
    return global->emitOpError() << "cfb_stored_c3: expected at least " << axes
                                 << " dims, but got " << tensor;
  return success();
}

/// An attribute of a module or a function that is one of some words.
template <typename Word, typename Enum>
static LogicalResult verifyWord(Operation *operation, NamedAttribute attribute, StringRef (*stringify)(Enum),
                                uint64_t last) {
  if (isa<Word>(attribute.getValue()))
    return success();
  InFlightDiagnostic error = operation->emitOpError()
                             << "cfb_words_c1: expected `" << attribute.getName().getValue() << "` to be `#cfb<"
                             << Word::getMnemonic() << " …>` with one of ";
  for (uint64_t number = 0; number <= last; ++number)
    error << (number == 0 ? "" : ", ") << stringify(static_cast<Enum>(number));
  return error << ", but got " << attribute.getValue();
}

/// Whether an attribute is a list of parts of these kinds.
static bool areParts(Attribute list, ArrayRef<PartKind> kinds) {
  auto parts = dyn_cast_or_null<ArrayAttr>(list);
  return parts && llvm::all_of(parts, [&](Attribute part) {
           auto known = dyn_cast<PartAttr>(part);
           return known && llvm::is_contained(kinds, known.getKind());
         });
}

/// What a gradient function takes and gives, or why there is none.
static LogicalResult verifyGradient(Operation *function, Attribute value) {
  auto gradient = dyn_cast<DictionaryAttr>(value);
  if (gradient && gradient.size() == 1 && gradient.getAs<StringAttr>("refused"))
    return success();
  auto isFactor = [](Attribute factor) {
    auto part = dyn_cast_or_null<PartAttr>(factor);
    return part && llvm::is_contained({PartKind::argument, PartKind::result}, part.getKind());
  };
  auto isSite = [&](Attribute site) {
    auto use = dyn_cast<DictionaryAttr>(site);
    Attribute left = use ? use.get("left") : Attribute();
    return use && (!left || isFactor(left)) && isFactor(use.get("right")) && use.getAs<FlatSymbolRefAttr>("parameter");
  };
  auto sites = gradient ? gradient.getAs<ArrayAttr>("sites") : ArrayAttr();
  auto ofCall = {PartKind::operand, PartKind::result, PartKind::cotangent, PartKind::addend};
  if (!sites || !areParts(gradient.get("arguments"), ofCall) ||
      !areParts(gradient.get("results"), {PartKind::operand, PartKind::site}) || !llvm::all_of(sites, isSite))
    return function->emitOpError()
           << "cfb_gradient_c1: expected `refused`, a text, or `arguments` and `results` of `#cfb.part`, and `sites` "
              "of a `parameter` with factors that are arguments or results, but got "
           << value;
  return success();
}

LogicalResult CfbDialect::verifyOperationAttribute(Operation *operation, NamedAttribute attribute) {
  if (attribute.getName() == "cfb.computed")
    return verifyComputed(operation, attribute.getValue());
  if (attribute.getName() == "cfb.stored")
    return verifyStored(operation, attribute.getValue());
  if (attribute.getName() == "cfb.gradient")
    return verifyGradient(operation, attribute.getValue());
  if (attribute.getName() == "cfb.gradient_helper")
    return verifyWord<GradientHelperAttr>(operation, attribute, stringifyGradientHelper, getMaxEnumValForGradientHelper());
  if (attribute.getName() == "cfb.gradients")
    return verifyWord<GradientsAttr>(operation, attribute, stringifyGradients, getMaxEnumValForGradients());
  if (attribute.getName() == "cfb.granularity")
    return verifyWord<GranularityAttr>(operation, attribute, stringifyGranularity, getMaxEnumValForGranularity());
  if (attribute.getName() == "cfb.precision")
    return verifyWord<PrecisionAttr>(operation, attribute, stringifyPrecision, getMaxEnumValForPrecision());
  if (attribute.getName() == "cfb.rounding")
    return verifyWord<RoundingAttr>(operation, attribute, stringifyRounding, getMaxEnumValForRounding());
  return success();
}

/// The type of a parameter; null when the symbol is none.
static RankedTensorType lookupParameter(SymbolTableCollection &symbols, Operation *from,
                                        FlatSymbolRefAttr name) {
  Operation *symbol = symbols.lookupNearestSymbolFrom(from, name);
  if (!symbol || symbol->getName().getStringRef() != "ml_program.global")
    return {};
  auto type = symbol->getAttrOfType<TypeAttr>("type");
  return type ? dyn_cast<RankedTensorType>(type.getValue()) : RankedTensorType();
}

LogicalResult ParamOp::verifySymbolUses(SymbolTableCollection &symbols) {
  RankedTensorType type = lookupParameter(symbols, *this, getParamAttr());
  if (!type)
    return emitOpError() << "cfb_param_c1: " << getParamAttr() << " is not a parameter";
  if (getResult().getType().getTensorType() != type)
    return emitOpError() << "cfb_param_c2: expected a handle of " << type << ", but got "
                         << getResult().getType();
  return success();
}

Speculation::Speculatability ParamRowOp::getSpeculatability() {
  return Speculation::NotSpeculatable;
}

LogicalResult ParamRowOp::verifySymbolUses(SymbolTableCollection &symbols) {
  RankedTensorType type = lookupParameter(symbols, *this, getParamAttr());
  RankedTensorType row = type ? dropLeadingDim(type) : RankedTensorType();
  if (!row)
    return emitOpError() << "cfb_param_row_c1: " << getParamAttr()
                         << " is not a parameter of at least one dim";
  if (!areSameTensors(row, cast<RankedTensorType>(getResult().getType().getTensorType())))
    return emitOpError() << "cfb_param_row_c2: expected a handle of " << row << ", but got "
                         << getResult().getType();
  return success();
}

LogicalResult DimOp::verify() {
  auto tensor = cast<RankedTensorType>(getValue().getType().getTensorType());
  int64_t axis = getAxis();
  if (axis < 0 || axis >= tensor.getRank() || !tensor.isDynamicDim(axis))
    return emitOpError() << "cfb_dim_c1: expected dim " << axis << " of " << tensor
                         << " to be dynamic";
  return success();
}

Speculation::Speculatability RowOp::getSpeculatability() { return Speculation::NotSpeculatable; }

LogicalResult RowOp::verify() {
  auto tensor = cast<RankedTensorType>(getValue().getType().getTensorType());
  if (tensor.getRank() == 0 || !tensor.isDynamicDim(0))
    return emitOpError() << "cfb_row_c1: expected the first dim of " << tensor << " to be dynamic";
  RankedTensorType row = dropLeadingDim(tensor);
  if (!areSameTensors(row, cast<RankedTensorType>(getResult().getType().getTensorType())))
    return emitOpError() << "cfb_row_c2: expected a handle of " << row << ", but got "
                         << getResult().getType();
  return success();
}

LogicalResult ConstantOp::verify() {
  if (getResult().getType().getTensorType() != getValue().getType())
    return emitOpError() << "cfb_constant_c1: expected a handle of " << getValue().getType()
                         << ", but got " << getResult().getType();
  return success();
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

LogicalResult TurnOp::verify() {
  Region *region = (*this)->getParentRegion();
  Operation *loop = region ? region->getParentOp() : nullptr;
  if (!loop || loop->getName().getStringRef() != "scf.while" || region->getRegionNumber() != 1)
    return emitOpError() << "cfb_turn_c1: expected to stand in the second region of an `scf.while`";
  return success();
}

//===----------------------------------------------------------------------===//
// Schedule
//===----------------------------------------------------------------------===//

LogicalResult PhaseOp::verify() {
  if (getNumber() < 1)
    return emitOpError() << "cfb_phase_c1: expected a number of at least 1, but got " << getNumber();
  return success();
}

LogicalResult GhostOp::verify() {
  if (getLevels() < 1)
    return emitOpError() << "cfb_ghost_c1: expected `levels` of at least 1, but got " << getLevels();
  return success();
}
