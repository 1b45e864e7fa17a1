// The loops of the `ragged` dialect: assembly, verifiers, interfaces.

#include "Ragged.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace cohort::ragged;

//===----------------------------------------------------------------------===//
// Assembly
//===----------------------------------------------------------------------===//

using Operand = OpAsmParser::UnresolvedOperand;

/// `iter_args(%a = %x, …) -> (types)`; without it nothing is carried.
static ParseResult parseCarried(OpAsmParser &parser, SmallVectorImpl<OpAsmParser::Argument> &arguments,
                                SmallVectorImpl<Operand> &inits, OperationState &result) {
  if (failed(parser.parseOptionalKeyword("iter_args")))
    return success();
  if (parser.parseAssignmentList(arguments, inits) ||
      parser.parseArrowTypeList(result.types))
    return failure();
  if (inits.size() != result.types.size())
    return parser.emitError(parser.getNameLoc()) << "expected " << inits.size() << " types, but got "
                                                 << result.types.size();
  for (auto [argument, type] : llvm::zip(llvm::drop_begin(arguments), result.types))
    argument.type = type;
  return success();
}

/// `%s in @seq(%b) from %m to %n : tensor<?xindex> pad 4 …`
template <typename LoopOp>
static ParseResult parseLoop(OpAsmParser &parser, OperationState &result, bool carries) {
  Builder &builder = parser.getBuilder();
  SmallVector<OpAsmParser::Argument> arguments(1);
  SmallVector<Operand> outer, from, to, rows, inits;
  StringAttr dim;
  if (parser.parseArgument(arguments[0]) || parser.parseKeyword("in") ||
      parser.parseSymbolName(dim) ||
      parser.parseOperandList(outer, OpAsmParser::Delimiter::OptionalParen))
    return failure();
  arguments[0].type = builder.getIndexType();
  result.addAttribute("dim", FlatSymbolRefAttr::get(dim));

  for (auto [keyword, operands] :
       {std::pair<StringRef, SmallVector<Operand> *>{"rows", &rows}, {"from", &from}, {"to", &to}})
    if (succeeded(parser.parseOptionalKeyword(keyword)) &&
        parser.parseOperand(operands->emplace_back()))
      return failure();
  // One type: a list excludes the bounds, and these have the same.
  Type type;
  if (!(rows.empty() && from.empty() && to.empty()) && parser.parseColonType(type))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("pad"))) {
    int64_t pad;
    if (parser.parseInteger(pad))
      return failure();
    result.addAttribute("pad", builder.getI64IntegerAttr(pad));
  }
  if (carries && parseCarried(parser, arguments, inits, result))
    return failure();

  if (parser.resolveOperands(outer, builder.getIndexType(), result.operands))
    return failure();
  for (SmallVector<Operand> *operands : {&from, &to, &rows})
    if (parser.resolveOperands(*operands, type, result.operands))
      return failure();
  if (parser.resolveOperands(inits, result.types, parser.getNameLoc(), result.operands))
    return failure();
  SmallVector<int32_t> segments{
      static_cast<int32_t>(outer.size()), static_cast<int32_t>(from.size()),
      static_cast<int32_t>(to.size()), static_cast<int32_t>(rows.size())};
  if (carries)
    segments.push_back(inits.size());
  result.addAttribute(LoopOp::getOperandSegmentSizeAttr(), builder.getDenseI32ArrayAttr(segments));

  Region *body = result.addRegion();
  if (parser.parseOptionalAttrDictWithKeyword(result.attributes) ||
      parser.parseRegion(*body, arguments))
    return failure();
  // A body that yields nothing may leave the terminator out.
  if (body->empty())
    body->emplaceBlock();
  Block &block = body->front();
  if (block.empty() || !block.back().hasTrait<OpTrait::IsTerminator>()) {
    OpBuilder inserter(parser.getContext());
    inserter.setInsertionPointToEnd(&block);
    YieldOp::create(inserter, result.location);
  }
  return success();
}

template <typename LoopOp>
static void printLoop(LoopOp loop, OpAsmPrinter &printer, ValueRange inits) {
  Block &block = loop.getBody().front();
  printer << ' ' << block.getArgument(0) << " in " << loop.getDimAttr();
  if (!loop.getOuter().empty())
    printer << '(' << loop.getOuter() << ')';
  Type type;
  for (auto [keyword, value] : {std::pair<StringRef, Value>{"rows", loop.getRows()},
                                {"from", loop.getFrom()},
                                {"to", loop.getTo()}}) {
    if (!value)
      continue;
    printer << ' ' << keyword << ' ' << value;
    type = value.getType();
  }
  if (type)
    printer << " : " << type;
  if (loop.getPad() != 1)
    printer << " pad " << loop.getPad();
  if (!inits.empty()) {
    printer << " iter_args(";
    llvm::interleaveComma(llvm::zip(block.getArguments().drop_front(), inits), printer,
                          [&](auto pair) {
                            printer << std::get<0>(pair) << " = " << std::get<1>(pair);
                          });
    printer << ") -> (" << inits.getTypes() << ')';
  }
  printer.printOptionalAttrDictWithKeyword(
      loop->getAttrs(), {"dim", "pad", LoopOp::getOperandSegmentSizeAttr()});
  printer << ' ';
  printer.printRegion(loop.getBody(), /*printEntryBlockArgs=*/false,
                      /*printBlockTerminators=*/!inits.empty());
}

ParseResult ForOp::parse(OpAsmParser &parser, OperationState &result) {
  return parseLoop<ForOp>(parser, result, /*carries=*/true);
}
void ForOp::print(OpAsmPrinter &printer) { printLoop(*this, printer, getInits()); }

ParseResult ForallOp::parse(OpAsmParser &parser, OperationState &result) {
  return parseLoop<ForallOp>(parser, result, /*carries=*/false);
}
void ForallOp::print(OpAsmPrinter &printer) { printLoop(*this, printer, {}); }

//===----------------------------------------------------------------------===//
// Constraints
//===----------------------------------------------------------------------===//

/// What the two loops' names of a constraint differ in.
static std::string constraint(Operation *loop, StringRef number) {
  return ((isa<ForOp>(loop) ? "ragged_for_" : "ragged_forall_") + number).str();
}

/// Whether the length of a dim follows from the row alone.
static bool needsNoLengths(DimOp dim) { return dim.getRule() && dim.getRule()->getNumSymbols() == 0; }

template <typename LoopOp>
static LogicalResult verifyLoopDim(LoopOp loop, SymbolTableCollection &symbols) {
  DimOp dim = lookupDim(symbols, loop, loop.getDimAttr());
  if (!dim)
    return loop.emitOpError() << constraint(loop, "c1") << ": " << loop.getDimAttr()
                              << " is not a declared dim";
  size_t outer = dim.getOuter() ? dim.getOuter()->size() : 0;
  if (loop.getOuter().size() != outer)
    return loop.emitOpError() << constraint(loop, "c2") << ": expected " << outer
                              << " indices, one for each outer dim, but got "
                              << loop.getOuter().size();
  Value to = loop.getTo();
  if (!to) {
    if (loop.getRows() || needsNoLengths(dim))
      return success();
    return loop.emitOpError() << constraint(loop, "c4") << ": expected a length after `to`";
  }
  auto table = dyn_cast<RankedTensorType>(to.getType());
  bool fits = outer == 0 ? !table : table && table.getRank() == static_cast<int64_t>(outer);
  if (!fits)
    return loop.emitOpError() << constraint(loop, "c3") << ": expected "
                              << (outer == 0 ? "an index" : "a table of one dim for each outer dim")
                              << ", but got " << to.getType();
  return success();
}

template <typename LoopOp>
static LogicalResult verifyLoop(LoopOp loop) {
  if (loop.getFrom() && (!loop.getTo() || loop.getFrom().getType() != loop.getTo().getType()))
    return loop.emitOpError() << constraint(loop, "c5")
                              << ": expected `to` with the type of `from`, "
                              << loop.getFrom().getType();
  if (loop.getRows() && (!loop.getOuter().empty() || loop.getFrom() || loop.getTo()))
    return loop.emitOpError() << constraint(loop, "c6")
                              << ": expected `rows` only for a dim of one length, and no bounds";
  int64_t pad = static_cast<int64_t>(loop.getPad());
  if (pad < 1 || pad > maxPad)
    return loop.emitOpError() << constraint(loop, "c7")
                              << ": expected `pad` to be at least 1 and below 2^31, but got " << pad;
  int64_t split = static_cast<int64_t>(loop.getSplit().value_or(2));
  if (split < 2 || split > maxPad)
    return loop.emitOpError() << constraint(loop, "c9")
                              << ": expected `split` to be at least 2 and below 2^31, but got "
                              << split;
  return success();
}

/// Whether the last index that a loop runs under is `index`.
template <typename LoopOp>
static bool runsUnder(Operation *op, Value index) {
  auto loop = dyn_cast<LoopOp>(op);
  return loop && !loop.getOuter().empty() && loop.getOuter().back() == index;
}

template <typename LoopOp>
static LogicalResult verifyLoopBody(LoopOp loop, TypeRange carried) {
  Block &block = loop.getBody().front();
  SmallVector<Type> expected{IndexType::get(loop.getContext())};
  llvm::append_range(expected, carried);
  if (block.getArgumentTypes() != TypeRange(expected))
    return loop.emitOpError() << constraint(loop, "c8") << ": expected region arguments of types ("
                              << TypeRange(expected) << "), but got (" << block.getArgumentTypes()
                              << ")";
  if (loop->getResultTypes() != carried)
    return loop.emitOpError() << constraint(loop, "c8") << ": expected results of types (" << carried
                              << "), but got (" << loop->getResultTypes() << ")";
  auto yield = dyn_cast_or_null<YieldOp>(block.empty() ? nullptr : &block.back());
  if (!yield)
    return loop.emitOpError() << constraint(loop, "c8")
                              << ": expected the region to end in `ragged.yield`";
  if (yield.getOperandTypes() != carried)
    return yield.emitOpError() << constraint(loop, "c8") << ": expected values of types (" << carried
                               << "), but got (" << yield.getOperandTypes() << ")";
  if (loop.getFuse() &&
      !(llvm::hasNItems(block, 2) && runsUnder<LoopOp>(&block.front(), block.getArgument(0))))
    return loop.emitOpError() << constraint(loop, "c10")
                              << ": expected the body to be one loop that runs under this one";
  return success();
}

LogicalResult ForOp::verify() { return verifyLoop(*this); }
LogicalResult ForOp::verifyRegions() { return verifyLoopBody(*this, TypeRange(getInits())); }
LogicalResult ForOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyLoopDim(*this, symbols);
}

LogicalResult ForallOp::verify() { return verifyLoop(*this); }
LogicalResult ForallOp::verifyRegions() { return verifyLoopBody(*this, {}); }
LogicalResult ForallOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyLoopDim(*this, symbols);
}

//===----------------------------------------------------------------------===//
// Interfaces
//===----------------------------------------------------------------------===//

// The verifiers of interfaces ask before ours have found that an argument or the terminator is
// missing.

template <typename LoopOp>
static std::optional<SmallVector<Value>> inductionVars(LoopOp loop) {
  if (loop.getBody().getNumArguments() == 0)
    return std::nullopt;
  return SmallVector<Value>{loop.getBody().getArgument(0)};
}

SmallVector<Region *> ForOp::getLoopRegions() { return {&getBody()}; }
std::optional<SmallVector<Value>> ForOp::getLoopInductionVars() { return inductionVars(*this); }
Block::BlockArgListType ForOp::getRegionIterArgs() {
  return getBody().getArguments().drop_front(getBody().getNumArguments() == 0 ? 0 : 1);
}
std::optional<MutableArrayRef<OpOperand>> ForOp::getYieldedValuesMutable() {
  Block &block = getBody().front();
  if (auto yield = dyn_cast_or_null<YieldOp>(block.empty() ? nullptr : &block.back()))
    return yield.getValuesMutable();
  return std::nullopt;
}
std::optional<ResultRange> ForOp::getLoopResults() { return getResults(); }

OperandRange ForOp::getEntrySuccessorOperands(RegionSuccessor) { return getInits(); }
void ForOp::getSuccessorRegions(RegionBranchPoint, SmallVectorImpl<RegionSuccessor> &successors) {
  // The row may be empty, and after any iteration there may be another.
  successors.emplace_back(&getBody(), getRegionIterArgs());
  successors.emplace_back(getOperation(), getResults());
}

SmallVector<Region *> ForallOp::getLoopRegions() { return {&getBody()}; }
std::optional<SmallVector<Value>> ForallOp::getLoopInductionVars() { return inductionVars(*this); }
